r"""Estimates of noise, friction, inertia and dead time of a joint from its responses.

**Friction.** While joint j slides, the mean torque of a pass is known exactly, as it was commanded:

.. math:: \bar\tau_j - \overline{RNEA}_j(q, v, a) = o + c \,\mathrm{sign}(v) + D v

Passes there and back cover the same positions, so an error of the gravity torque is in the offset
o.

**Inertia and dead time.** At each line of the multi-sine, torque and velocities are averages over
all blocks, that is the cross-spectra with the multi-sine. The controller answers the noise of the
velocities by torques, but the multi-sine is not correlated with the noise: the averages have no
bias in a closed loop [Ljung 1999, sec. 13.5]. With a torque that is held for a period P, exact for
a pure inertia,

.. math:: C_j H_T = \sum_k (M_{jk} \, i\tilde\omega + K_{jk} / (i\omega)) V_k + D V_j,
    \quad \tilde\omega = \frac{2}{P} \sin\frac{\omega P}{2}

where H_T delays by T, which has the half period of the hold, and K is the stiffness of gravity.
Unknown are M_jj, D and T; and, with the deviation of a model's masses, each M_jk and K_jj. The
residuals of the blocks give the variances. Their excess over the lines enlarges the deviations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import Workspace, crba, gravity, rnea
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.tuning.response import Response
from rnea_control.identification.tuning.small_motion import (
    BURST,
    BURST_FREQUENCY,
    PAUSE,
    TAPER,
    Pass,
    SmallMotion,
    lines,
)
from rnea_control.model import RobotModel

MASS_DEVIATION = 0.25  # standard deviation of the model's inertias and gravity, as a part of them
LEAST_COUPLING = (
    0.3  # coupling of two joints that counts as this part of what it could be, at least
)
UNEVENNESS = 0.005  # standard deviation of the friction over the positions, as a part of it
SMOOTHING = 0.006  # width of the mean of velocities and torques in a burst [s]
MOVING = 0.3  # part of the largest velocity above which a joint in a burst surely slides
SLIDING = 0.15  # part of the velocity of a pass that its lines must leave while it slides
SLID = 0.25  # part of the velocity of a pass above which the joint slides
CHUNK = 0.04  # time over which this velocity is averaged [s]
LEFT_OUT = 0.1  # part of a pass that is left out after the joint has begun to slide
SHORTEST = 0.25  # shortest part of a pass that counts [s]
LEAST_BLOCKS = 4  # number of blocks that a fit needs
ITERATIONS = 20
EDGE = 0.05  # time over which the velocities at both ends of a pass are averaged [s]
PLACES = 25  # positions of a pass at which the model is evaluated
LEAST_ONSET = 5e-5  # displacement that shows that a joint begins to slide [rad] or [m]
ONSET_DEVIATIONS = 6.0  # the same, in standard deviations of the position at rest
LARGEST_ONSET = 5e-4  # the same, at most [rad] or [m]
NUDGE = 1e-4  # step of the differences of the gravity torque [rad] or [m]

Motions = Sequence[tuple[SmallMotion, Response]]


@dataclass(frozen=True)
class Friction:
    """Friction of a joint, with standard deviations.

    Attributes:
        coulomb: Coulomb friction, [Nm] or [N].
        damping: viscous friction, [Nm s/rad] or [N s/m].
        offset: torque that the model lacks in both directions, [Nm] or [N].
        breakaway: torque at which the joint begins to slide forward, and backward, without the
            offset; both positive for a joint with friction.
    """

    coulomb: float
    coulomb_deviation: float
    damping: float
    damping_deviation: float
    offset: float
    offset_deviation: float
    breakaway: tuple[float, float]
    breakaway_deviation: float


@dataclass(frozen=True)
class Inertia:
    """Inertia and dead time of a joint, with standard deviations.

    Attributes:
        inertia: M_jj with the rotor, [kg m^2] or [kg].
        dead_time: from a measurement until the middle of the hold of its torque, [s].
        excess: residual over the noise, 1 for a joint that the equation describes.
        frequencies: frequencies of the lines, [rad/s].
        response: apparent inertia at each line, complex, after the other terms; for pictures.
        blocks: number of blocks.
        swing: largest velocity of the multi-sine, as a part of that of the pass.
    """

    inertia: float
    inertia_deviation: float
    dead_time: float
    dead_time_deviation: float
    excess: float
    frequencies: FloatArray
    response: FloatArray
    blocks: int
    swing: float = math.nan


def noise(response: Response) -> FloatArray:
    """Standard deviation of the velocities of an arm that is held, shape (nv,)."""
    return np.asarray(np.std(response.v, axis=0))


def burst_speeds(response: Response, joint: int) -> tuple[float, float]:
    """Largest velocities forward and backward in a burst, without noise."""
    part = response.between(TAPER, BURST - TAPER)
    omega: FloatArray = 2.0 * math.pi * BURST_FREQUENCY * np.arange(1.0, 4.0)
    v = part.v[:, [joint]]
    waves = np.exp(1j * np.outer(part.time, omega)) @ _lines(part, v, omega)[:, 0]
    course = v.mean() + 2.0 * waves.real
    return float(course.max()), float(-course.min())


@dataclass(frozen=True)
class Rough:
    """First estimates of a joint, from a burst that has moved it."""

    inertia: float  # with the rotor; rather too small than too large [kg m^2] or [kg]
    friction: float  # [Nm] or [N]
    offset: float  # torque that the model lacks, whatever the direction [Nm] or [N]


def rough_estimate(model: RobotModel, response: Response, joint: int, dead_time: float) -> Rough:
    """First estimates from a burst that has moved the joint.

    Args:
        model: model of the arm.
        response: response to the burst.
        joint: index of the joint.
        dead_time: a guess, [s].
    """
    width = max(round(SMOOTHING / response.period), 1)
    v = np.apply_along_axis(np.convolve, 0, response.v, np.ones(width) / width, "same")
    tau = np.convolve(response.command[:, joint], np.ones(width) / width, "same")
    tau = np.interp(response.time - dead_time, response.time, tau)
    a = np.gradient(v, response.time, axis=0)
    own = crba(model, Workspace(model), response.q[0].copy(), np.zeros((model.nv, model.nv)))[joint]
    holding = gravity(model, Workspace(model), response.q[0].copy(), np.zeros(model.nv))[joint]
    y = tau - holding - (a @ own - own[joint] * a[:, joint])
    slides = np.abs(v[:, joint]) > MOVING * np.abs(v[:, joint]).max()
    slides &= (response.time > TAPER) & (response.time < BURST)
    columns = np.stack([a[:, joint], np.sign(v[:, joint]), np.ones(len(v))], axis=1)
    (inertia, friction, offset), *_ = np.linalg.lstsq(columns[slides], y[slides], rcond=None)
    return Rough(float(inertia), max(float(friction), 0.0), float(offset))


def estimate_friction(
    model: RobotModel, motions: Motions, joint: int, inertia: float, dead_time: float
) -> Friction:
    """Friction from all passes.

    Args:
        model: model of the arm.
        motions: motions with passes, and their responses.
        joint: index of the joint.
        inertia: inertia with the rotor, [kg m^2] or [kg].
        dead_time: [s].

    Raises:
        IdentificationError: fewer than two passes in a direction.
    """
    rows, onsets = [], []
    for motion, response in motions:
        for each in motion.passes:
            window = _sliding(response, joint, each)
            if window is None:
                continue
            mean, speed = _sliding_torque(model, response, joint, inertia, dead_time, window)
            side = math.copysign(1.0, speed)
            rows.append((mean, side, speed))
            onset = _onset(model, response, joint, each, dead_time)
            if math.isfinite(onset):
                onsets.append((side, onset))
    y, sign, speeds = np.array(rows).reshape(-1, 3).T
    if min(np.count_nonzero(sign > 0), np.count_nonzero(sign < 0)) < 2:
        raise IdentificationError(
            f"{model.joint_names[joint]} did not slide in the passes; is it blocked, or does a "
            "motor not follow its commands?"
        )
    X = np.stack([np.ones_like(y), sign, speeds], axis=1)
    span = float(np.ptp(np.abs(speeds)))
    fast = span > 0.5 * float(np.abs(speeds).min())
    X = X if fast else X[:, :2]
    theta, *_ = np.linalg.lstsq(X, y, rcond=None)
    left = y - X @ theta
    freedom = max(len(y) - X.shape[1], 1)
    covariance = np.linalg.inv(X.T @ X) * (left @ left) / freedom
    offset, coulomb = float(theta[0]), float(theta[1])
    damping = float(theta[2]) if fast else 0.0
    spread = np.sqrt(np.diag(covariance))
    # Errors that more passes do not reduce.
    uneven = UNEVENNESS * abs(coulomb) / np.array([1.0, 1.0, max(span, 1e-9)])
    spread = np.hypot(spread, uneven[: len(spread)])
    sides = [[d * (x - offset) for d, x in onsets if d == side] for side in (1.0, -1.0)]
    ways = [float(np.mean(side)) if side else math.nan for side in sides]
    scatter = [np.std(side) / math.sqrt(len(side)) for side in sides if len(side) > 1]
    return Friction(
        coulomb,
        float(spread[1]),
        damping,
        float(spread[2]) if fast else math.inf,
        offset,
        float(spread[0]),
        (ways[0], ways[1]),
        float(max(scatter, default=math.nan)),
    )


def _sliding(response: Response, joint: int, each: Pass) -> tuple[float, float] | None:
    """Longest part of a pass in which the joint slides; None if that is too short."""
    part = response.between(each.begin, each.end - response.period)
    size = max(round(CHUNK / response.period), 1)
    count = len(part.time) // size
    if count < 1:
        return None
    means = part.v[: count * size, joint].reshape(count, size).mean(axis=1)
    slides = means * math.copysign(1.0, each.velocity) > SLID * abs(each.velocity)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], slides, [False]])))
    if not len(edges):
        return None
    first, last = edges.reshape(-1, 2)[np.argmax(edges[1::2] - edges[::2])]
    # The speed-up is left out.
    first += round(LEFT_OUT * (each.end - each.begin) / (size * response.period))
    if (last - first) * size * response.period < SHORTEST:
        return None
    return float(part.time[first * size]), float(part.time[last * size - 1])


def _sliding_torque(
    model: RobotModel,
    response: Response,
    joint: int,
    inertia: float,
    dead_time: float,
    window: tuple[float, float],
) -> tuple[float, float]:
    """Mean torque of the joint in a part of a response, without that of the model and of its own
    inertia, and its mean velocity.

    The mean acceleration is the difference of the mean velocities in the first and the last EDGE.
    That is the mean with the weights of a trapezoid, which the torques get too.
    """
    part = response.between(*window)
    count = len(part.time)
    edge = min(max(round(EDGE / response.period), 1), count // 3)
    if edge < 1:
        return math.nan, 0.0
    rise = (np.arange(count) + 0.5) / edge
    weights = np.clip(np.minimum(rise, rise[::-1]), 0.0, 1.0)
    span = (count - edge) * response.period
    a = (part.v[-edge:].mean(axis=0) - part.v[:edge].mean(axis=0)) / span
    tau = np.interp(part.time - dead_time, response.time, response.command[:, joint])
    own, a[joint] = inertia * a[joint], 0.0
    workspace, torque = Workspace(model), np.zeros(model.nv)
    v = np.average(part.v, axis=0, weights=weights)
    places = np.linspace(0, count - 1, PLACES).astype(int)
    at_rest = [rnea(model, workspace, part.q[k].copy(), v, a, torque)[joint] for k in places]
    modeled = np.average(at_rest, weights=weights[places])
    return float(np.average(tau, weights=weights) - own - modeled), float(v[joint])


def _onset(
    model: RobotModel, response: Response, joint: int, each: Pass, dead_time: float
) -> float:
    """Torque beyond gravity at which the joint begins to slide before a pass; NaN if it is not at
    rest before."""
    rest = response.between(each.rest, each.rest + 0.4 * PAUSE)
    part = response.between(each.rest, each.begin)
    direction = math.copysign(1.0, each.velocity)
    if len(rest.time) < 3:
        return math.nan
    start = float(rest.q[:, joint].mean())
    least = max(LEAST_ONSET, ONSET_DEVIATIONS * float(rest.q[:, joint].std()))
    if least > LARGEST_ONSET:
        return math.nan  # it still moves
    moves = np.flatnonzero(direction * (part.q[:, joint] - start) > least)
    if not len(moves):
        return math.nan
    end = part.time[moves[0]] - dead_time
    before = response.between(end - SMOOTHING, end)
    if not len(before.time):
        return math.nan
    holding = gravity(model, Workspace(model), rest.q[0].copy(), np.zeros(model.nv))[joint]
    return float(before.command[:, joint].mean() - holding)


def estimate_inertia(model: RobotModel, motions: Motions, joint: int, guess: float) -> Inertia:
    """Inertia and dead time from the blocks of all passes.

    Args:
        model: model of the arm.
        motions: motions with a multi-sine, and their responses.
        joint: index of the joint.
        guess: dead time at which the search begins, [s].

    Raises:
        IdentificationError: too few blocks in which the joint slides.
    """
    period, blocks = 0.0, []
    P = motions[0][1].period
    for motion, response in motions:
        period = motion.period
        for each in motion.passes:
            for start in each.blocks:
                part = response.between(start, start + period)
                if len(part.time) < 0.8 * period / P:
                    continue
                x = np.column_stack([part.command[:, joint], part.v])
                blocks.append((start, part, x))
    omega = lines(period)
    spectra: list[FloatArray] = []
    swings = []
    for start, part, x in blocks:
        moved = Response(part.time - start, part.q, part.v, part.command)
        rows = _lines(moved, x, omega)
        mean = abs(float(np.mean(part.v[:, joint])))
        fit = 2.0 * (np.exp(1j * np.outer(moved.time, omega)) @ rows[:, 1 + joint]).real
        crest = float(np.abs(fit).max())
        if mean - crest > SLIDING * mean and mean > 0.0:
            spectra.append(rows)
            swings.append(crest / mean)
    if (used := len(spectra)) < LEAST_BLOCKS:
        raise IdentificationError(
            f"{model.joint_names[joint]} slid steadily in {used} of {len(blocks)} blocks only; at "
            f"least {LEAST_BLOCKS} are needed"
        )
    q0 = motions[0][1].q[0].copy()
    found = _fit(model, np.array(spectra), joint, omega, P, q0, guess)
    return replace(found, swing=float(np.mean(swings)))


def _fit(
    model: RobotModel,
    spectra: FloatArray,
    joint: int,
    omega: FloatArray,
    P: float,
    q0: FloatArray,
    guess: float,
) -> Inertia:
    """Weighted least squares over the lines; `spectra` has the command of the joint and the
    velocities of all joints, shape (blocks, lines, 1 + nv)."""
    nv, count = model.nv, len(spectra)
    workspace = Workspace(model)
    matrix = crba(model, workspace, q0, np.zeros((nv, nv)))
    M = matrix[joint]
    K = _stiffness(model, q0)[joint]
    others = [k for k in range(nv) if k != joint]
    lag = 1j * (2.0 / P) * np.sin(0.5 * omega * P)
    mean = spectra.mean(axis=0)

    def columns(x: FloatArray) -> FloatArray:
        """Derivatives of the torque by M_jj, D, the M_jk and the K_jj."""
        v = x[..., 1 + joint]
        couplings = [lag * x[..., 1 + k] for k in others]
        return np.stack([lag * v, v, *couplings, v / (1j * omega)], axis=-1)

    def fixed(x: FloatArray) -> FloatArray:
        return np.asarray(sum(K[k] * x[..., 1 + k] / (1j * omega) for k in others))

    prior = np.append(M[others], K[joint])
    possible = LEAST_COUPLING * np.sqrt(M[joint] * np.diag(matrix)[others])
    scale = np.maximum(np.append(np.hypot(M[others], possible), abs(K[joint])), 1e-12)
    prior_weight = 1.0 / (MASS_DEVIATION * scale)
    theta = np.concatenate([[M[joint], 0.0], prior])
    T, weight = guess, np.ones(len(omega))
    for _ in range(ITERATIONS):
        turn = _delay(omega, T, P)
        y = mean[:, 0] * turn - fixed(mean)
        J = np.column_stack([columns(mean), 1j * omega * mean[:, 0] * turn])
        real = np.concatenate([(J * weight[:, None]).real, (J * weight[:, None]).imag])
        right = np.concatenate([(y * weight).real, (y * weight).imag])
        rows = np.zeros((len(prior), J.shape[1]))
        rows[np.arange(len(prior)), 2 + np.arange(len(prior))] = prior_weight
        A = np.vstack([real, rows])
        b = np.concatenate([right, prior_weight * prior])
        size = np.linalg.norm(A, axis=0)
        size[size == 0.0] = 1.0
        solution = np.linalg.lstsq(A / size, b, rcond=None)[0] / size
        theta, step = solution[:-1], solution[-1]
        # d(C e^{-i w T})/dT = -i w C e^{-i w T}: the torque at T + step is y - i w C step.
        T = float(np.clip(T + step, 0.5 * P, 0.1))
        turn = _delay(omega, T, P)
        each = spectra[:, :, 0] * turn - fixed(spectra) - columns(spectra) @ theta
        scatter = each - each.mean(axis=0)
        # Variance of the mean's real part.
        variance = (np.abs(scatter) ** 2).sum(axis=0) / (count - 1) / count / 2.0
        floor = (1e-6 * np.abs(mean[:, 0])) ** 2
        weight = 1.0 / np.sqrt(np.maximum(variance, floor))
        if abs(step) < 1e-9:
            break
    left = each.mean(axis=0) * weight
    freedom = 2 * len(omega) - 3
    excess = max(float((np.abs(left) ** 2).sum()) / freedom, 1.0)
    covariance = np.linalg.inv((A / size).T @ (A / size)) / np.outer(size, size) * excess
    deviation = np.sqrt(np.diag(covariance))
    rest = mean[:, 0] * _delay(omega, T, P) - fixed(mean)
    rest = rest - columns(mean)[:, 1:] @ theta[1:]
    return Inertia(
        float(theta[0]),
        float(deviation[0]),
        T,
        float(deviation[-1]),
        math.sqrt(excess),
        omega,
        np.asarray(rest / (lag * mean[:, 1 + joint])),
        count,
    )


def _delay(omega: FloatArray, dead_time: float, period: float) -> FloatArray:
    """Transfer function of the torques from states to the middle of their hold. Within a period the
    torque of two states acts, which also attenuates."""
    whole, part = divmod(max(dead_time - 0.5 * period, 0.0) / period, 1.0)
    z = np.exp(-1j * omega * period)
    return np.asarray(np.sqrt(z) * z**whole * (1.0 - part + part * z))


def _stiffness(model: RobotModel, q: FloatArray) -> FloatArray:
    """Derivative of the gravity torque by the positions, shape (nv, nv)."""
    workspace, found = Workspace(model), np.zeros((model.nv, model.nv))
    for k in range(model.nv):
        pair = []
        for sign in (1.0, -1.0):
            moved = q.copy()
            moved[k] += sign * NUDGE
            pair.append(gravity(model, workspace, moved, np.zeros(model.nv)))
        found[:, k] = (pair[0] - pair[1]) / (2.0 * NUDGE)
    return found


def _lines(part: Response, x: FloatArray, omega: FloatArray) -> FloatArray:
    """Complex amplitude of each column of x at each frequency, half the real amplitude, shape
    (lines, columns); a trend is fitted too, and stamps may be irregular."""
    t = part.time
    s = (t - t.mean()) / max(np.ptp(t), 1e-9)
    angles = np.outer(t, omega)
    X = np.column_stack([np.ones_like(s), s, s**2, np.cos(angles), np.sin(angles)])
    theta = np.linalg.lstsq(X, x, rcond=None)[0]
    n = len(omega)
    return np.asarray(0.5 * (theta[3 : 3 + n] - 1j * theta[3 + n :]))
