"""Small motions of one joint, with an effort of their own in the trajectory points.

A **burst** is some periods of a sine of effort at rest, with a smooth rise and fall.

A **pass** leads the joint through its start at a constant velocity. While the joint slides, its
friction does not change sign, and a multi-sine of effort on top sees a linear joint. The multi-sine
has the same phase in each block of each pass; a block is a period of the multi-sine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rnea_control.array_types import FloatArray

FURTHEST = 0.0524  # largest distance of any joint from its start: 3 degrees [rad], or [m]
REACH = 0.024  # distance from the start to the ends of a pass [rad] or [m]
SLOW = 0.02  # velocity of passes with blocks [rad/s] or [m/s]
FAST = 0.06  # velocity of the other passes, for the viscous friction [rad/s] or [m/s]
SPEED_UP = 0.15  # time from rest to the velocity of a pass [s]
SETTLING = 0.3  # time from the constant velocity to the first block [s]
PAUSE = 0.15  # rest before a pass [s]
STEP = 0.004  # time between points where an effort oscillates [s]
TAPER = 0.1  # rise and fall of an oscillating effort [s]
BURST_FREQUENCY = 10.0  # frequency of a burst [Hz]
BURST = 0.5  # duration of a burst [s]
REST = 0.25  # rest after a burst [s]
# Harmonics of the multi-sine: few, so that each is strong; high ones show the dead time.
HARMONICS = np.array([2, 3, 5, 8, 12, 18, 24, 30])
PERIOD = 0.5  # period of the multi-sine at a high rate of states [s]
LEAST_RATE = 480.0  # rate of states from which PERIOD holds; at lower rates it is longer [Hz]


@dataclass(frozen=True)
class Pass:
    """The part of a motion in which the joint slides at a constant velocity."""

    rest: float  # time at which the joint rests before the pass [s]
    begin: float  # time from which the velocity is constant [s]
    end: float  # time until which the velocity is constant [s]
    velocity: float  # [rad/s] or [m/s]
    blocks: tuple[float, ...]  # starts of the periods of the multi-sine within [s]


@dataclass(frozen=True)
class SmallMotion:
    """A motion of one joint from rest to rest.

    Attributes:
        joint: index of the joint.
        times: times of the points, the first is 0, shape (n,), [s].
        position: position of the joint at the points, relative to the start, shape (n,).
        velocity: velocity at the points, shape (n,).
        acceleration: acceleration at the points, shape (n,).
        effort: effort at the points, shape (n,), [Nm] or [N].
        passes: parts of constant velocity.
        period: period of the multi-sine [s].
    """

    joint: int
    times: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray
    passes: tuple[Pass, ...] = ()
    period: float = PERIOD
    # Constant efforts of the other joints, so that they stay where they are when they are shaken
    # loose, by joint.
    support: Mapping[int, float] = field(default_factory=dict)

    @property
    def duration(self) -> float:
        return float(self.times[-1])

    def efforts(self, nv: int) -> FloatArray:
        """Efforts of all joints at the points, shape (n, nv)."""
        found = np.zeros((len(self.times), nv))
        window = _window(self.times, 0.0, self.duration)
        for k, effort in self.support.items():
            found[:, k] = effort * window
        found[:, self.joint] = self.effort
        return found

    def frequencies(self) -> FloatArray:
        """Frequencies of the lines of the multi-sine, [rad/s]."""
        return lines(self.period)


def multi_sine_period(rate: float) -> float:
    """Period of the multi-sine for a rate of states [Hz], in seconds."""
    return PERIOD * max(1.0, LEAST_RATE / rate)


def lines(period: float) -> FloatArray:
    """Frequencies of the multi-sine of this period [s], in [rad/s]."""
    return np.asarray(2.0 * math.pi * HARMONICS / period)


def multi_sine(time: FloatArray, period: float) -> FloatArray:
    """Effort at an inertia of 1 for an amplitude of velocity of 1 at each line; shape of `time`."""
    n = np.arange(len(HARMONICS))
    phases = -math.pi * n * (n + 1) / len(n)  # low crest [Schroeder 1970]
    omega = lines(period)
    return np.asarray((omega * np.sin(omega * time[..., None] + phases)).sum(axis=-1))


def crest(period: float) -> float:
    """Largest velocity of an inertia of 1 under `multi_sine`."""
    time = np.linspace(0.0, period, 2000)
    n = np.arange(len(HARMONICS))
    phases = -math.pi * n * (n + 1) / len(n)
    return float(np.abs(np.cos(lines(period) * time[:, None] + phases).sum(axis=1)).max())


def burst(joint: int, amplitude: float, bias: float = 0.0) -> SmallMotion:
    """A sine of effort at rest, of this amplitude about a constant bias, both [Nm] or [N]."""
    times: FloatArray = np.linspace(0.0, BURST + REST, round((BURST + REST) / STEP) + 1)
    wave = bias + amplitude * np.sin(2.0 * math.pi * BURST_FREQUENCY * times)
    still = np.zeros_like(times)
    return SmallMotion(joint, times, still, still, still, wave * _window(times, 0.0, BURST))


def passes(
    joint: int,
    friction: float,
    offset: float = 0.0,
    sine: float = 0.0,
    rounds: int = 1,
    fast: bool = False,
    period: float = PERIOD,
) -> SmallMotion:
    """Slow passes there and back, and fast passes at the end.

    Args:
        joint: index of the joint.
        friction: effort in the direction of each pass, [Nm] or [N].
        offset: effort in all passes, [Nm] or [N].
        sine: factor of `multi_sine` in the slow passes: inertia times amplitude of velocity.
        rounds: number of slow passes in each direction.
        fast: True for a fast pass in each direction.
        period: period of the multi-sine, [s].
    """
    way = 2.0 * REACH
    speed = min(SLOW, way / (SETTLING + SPEED_UP + TAPER + period))
    speeds = [speed] * (2 * rounds) + [FAST] * (2 * fast)
    # Knots: time, position, velocity, effort without the multi-sine.
    knots = [(0.0, 0.0, 0.0, 0.0), (PAUSE, 0.0, 0.0, offset - friction)]
    knots.append((PAUSE + 2.0 * REACH / FAST, -REACH, 0.0, offset - friction))
    found: list[Pass] = []
    for k, u in enumerate(speeds):
        direction = 1.0 if k % 2 == 0 else -1.0
        rest, x, effort = knots[-1][0], -direction * REACH, offset + direction * friction
        begin = rest + PAUSE + SPEED_UP
        end = begin + way / u - SPEED_UP
        edge = 0.5 * SPEED_UP * u * direction
        knots += [
            (rest + PAUSE, x, 0.0, effort),
            (begin, x + edge, direction * u, effort),
            (end, -x - edge, direction * u, effort),
            (end + SPEED_UP, -x, 0.0, effort),
        ]
        count = int((end - TAPER - begin - SETTLING) / period + 1e-9) if u == speed else 0
        starts = tuple(begin + SETTLING + i * period for i in range(count))
        found.append(Pass(rest, begin, end, direction * u, starts))
    last = knots[-1][0]
    knots += [(last + 2.0 * REACH / FAST, 0.0, 0.0, knots[-1][3])]
    knots += [(knots[-1][0] + PAUSE, 0.0, 0.0, 0.0), (knots[-1][0] + PAUSE + REST, 0.0, 0.0, 0.0)]
    return _sampled(joint, np.array(knots), found, sine, period)


def _sampled(
    joint: int, knots: FloatArray, found: list[Pass], sine: float, period: float
) -> SmallMotion:
    """The motion with points at the knots, and close points where the multi-sine is on."""
    times = [knots[:, 0]]
    on = [each for each in found if each.blocks] if sine else []
    times += [np.arange(each.begin + STEP, each.end, STEP) for each in on]
    t: FloatArray = np.unique(np.round(np.concatenate(times), 6))
    t = t[np.append(True, np.diff(t) > 0.5 * STEP) | np.isin(t, np.round(knots[:, 0], 6))]
    k = np.clip(np.searchsorted(knots[:, 0], t, side="right") - 1, 0, len(knots) - 2)
    T = np.diff(knots[:, 0])[k]
    s = (t - knots[k, 0]) / T
    (x0, v0), (x1, v1) = knots[k, 1:3].T, knots[k + 1, 1:3].T
    mean = (x1 - x0) / T
    # The quintic between knots without acceleration.
    c3, c4, c5 = 10 * mean - 4 * v1 - 6 * v0, -15 * mean + 7 * v1 + 8 * v0, 6 * mean - 3 * (v1 + v0)
    x = x0 + T * s * (v0 + s**2 * (c3 + s * (c4 + s * c5)))
    v = v0 + s**2 * (3 * c3 + s * (4 * c4 + s * 5 * c5))
    a = s * (6 * c3 + s * (12 * c4 + s * 20 * c5)) / T
    effort: FloatArray = np.interp(t, knots[:, 0], knots[:, 3])
    for each in on:
        window = _window(t, each.begin + SETTLING - 2.0 * TAPER, each.end)
        effort += sine * window * multi_sine(t - each.blocks[0], period)
    return SmallMotion(joint, t, x, v, a, effort, tuple(found), period)


def _window(times: FloatArray, begin: float, end: float) -> FloatArray:
    """1 between the two times [s], with smooth edges of TAPER inside, and 0 elsewhere."""
    edge = np.clip(np.minimum(times - begin, end - times) / TAPER, 0.0, 1.0)
    return np.asarray(edge * edge * (3.0 - 2.0 * edge))
