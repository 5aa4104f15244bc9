"""`LiveChecks`: says while a recording is made what would make it useless, not after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.dynamics import Workspace, gravity
from rnea_control.exceptions import RneaControlError, RobotModelError, listed
from rnea_control.identification.diagnosis import diagnose
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording, of_robot
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units
from rnea_control.parameters.settings import quietly

# So many states are looked at before efforts and rate are judged.
ENOUGH = 20
# A joint that has gone further than this moves, [rad] or [m].
MOVED = 0.05
# A robot none of whose joints has gone further than this, for so long, is at rest.
STILL, REST = 0.005, 0.5
# Periods that make a gap.
GAP = 5.0
LOWEST_RATE = 100.0
# States whose periods have the median.
_PERIODS = 2000
# Gravity must need that much somewhere, and at a joint, to tell anything, [Nm] or [N].
TELLING, LEAST = 10.0, 5.0
# Efforts that are this many times smaller than gravity, or whose ratios to it differ that much.
CURRENT_FACTOR = 5.0
# Smaller efforts are noise: brakes, or firmware that compensates gravity.
NOTHING = 0.01


class LiveChecks:
    """Looks at the states of `joints` in the order in which they come, and says each thing once;
    `states` is how many there were so far."""

    def __init__(self, joints: Sequence[str]) -> None:
        self.states = 0
        self._joints = tuple(joints)
        self._said: set[str] = set()
        self._model: RobotModel | None = None
        self._stamps = np.zeros(0, dtype=np.int64)
        self._lowest = np.full(len(joints), np.inf)
        self._highest = np.full(len(joints), -np.inf)
        self._has_effort = np.zeros(len(joints), dtype=bool)
        self._has_other_than_zero = np.zeros(len(joints), dtype=bool)
        self._all: list[tuple[IntArray, FloatArray]] = []
        self._rested = 0  # from which of these on the robot may be at rest
        self._gaps, self._longest = 0, 0

    def know(self, robot_description: str) -> None:
        """Takes the robot's model from its URDF; without one gravity is not looked at."""
        try:
            self._model = quietly(RobotModel.from_urdf_string, robot_description, self._joints)
        except RobotModelError:  # `rnea_identify fit` and the controller say why
            self._model = None

    def look(self, stamps: IntArray, values: FloatArray) -> list[str]:
        """What is wrong with new states, a sentence each; nothing that was said before: by their
        stamps, shape (n,), [ns], and their positions, velocities and efforts, shape (3, n, joints).
        """
        if not len(stamps):
            return []
        q, _, effort = values
        self._all.append((stamps, values))
        self.states += len(stamps)
        self._lowest = np.fmin(self._lowest, np.fmin.reduce(q))
        self._highest = np.fmax(self._highest, np.fmax.reduce(q))
        self._has_effort |= np.isfinite(effort).any(axis=0)
        self._has_other_than_zero |= (effort != 0.0).any(axis=0)
        found = [*self._of_stamps(stamps), *self._of_effort()]
        if self._model is not None and "current" not in self._said:
            found += self._of_gravity()
        return [text for kind, text in found if kind not in self._said and not self._said.add(kind)]

    def summary(self) -> list[str]:
        """How often stamps fell or repeated and messages were lost, and why a fit would be wrong,
        once the recording is done."""
        found = []
        if self._gaps:
            found.append(
                f"{self._gaps} gaps of more than {GAP:g} periods, the longest of "
                f"{self._longest / 1e6:.1f} ms"
            )
        steps = np.diff(self._stamps)
        falls, repeats = np.count_nonzero(steps < 0), np.count_nonzero(steps == 0)
        if falls or repeats:
            found.append(f"stamps fell {falls} times and repeated {repeats} times")
        if self._model is None or not self._all or self._said & {"none", "zero effort"}:
            return found
        stamps, values = self._since(0)
        seconds = 1e-9 * (stamps - stamps[0])
        recording = Recording("recording", self._joints, seconds, *values)
        try:
            motion = motion_of(of_robot(recording, self._model))
            found += diagnose(self._model, motion).doubts
        except RneaControlError:  # `rnea_identify fit` says why
            pass
        return found

    def _of_stamps(self, stamps: IntArray) -> Iterator[tuple[str, str]]:
        if not stamps.any():
            yield "zero", "the stamps of joint_states are 0; let the publisher fill header.stamp"
            return
        self._stamps = np.concatenate([self._stamps, stamps])
        steps = np.diff(self._stamps[-1 - len(stamps) :])
        if (steps < 0).any():
            yield (
                "fall",
                f"the stamps of joint_states fall, by {-steps.min() / 1e6:.1f} ms; are there two "
                "publishers, or was the simulation reset?",
            )
        if (steps == 0).any():
            yield (
                "repeat",
                "the stamps of joint_states repeat; are there two publishers, or does the hardware "
                "give a state twice?",
            )
        latest = np.diff(self._stamps[-_PERIODS:])
        if np.count_nonzero(latest > 0) < ENOUGH:
            return
        period = float(np.median(latest[latest > 0]))
        gaps = steps[steps > GAP * period]
        if len(gaps):
            self._gaps, self._longest = self._gaps + len(gaps), max(self._longest, int(gaps.max()))
            yield (
                "gap",
                f"joint states are missing: {gaps.max() / 1e6:.1f} ms without one, where they come "
                f"every {period / 1e6:.2f} ms. Is the computer or the network busy?",
            )
        if 1e9 / period < 0.99 * LOWEST_RATE:
            yield (
                "rate",
                f"joint states come {1e9 / period:.0f} times a second; accelerations need at least "
                f"{LOWEST_RATE:.0f} Hz. Raise update_rate of the controller manager",
            )

    def _of_effort(self) -> Iterator[tuple[str, str]]:
        if self.states < ENOUGH:
            return
        none = self._named(~self._has_effort)
        if none:
            yield (
                "none",
                f"no effort of {listed(none)}: it is empty or NaN, and without it nothing can be "
                "identified. Does the hardware export the effort state interface?",
            )
        moved = self._highest - self._lowest > MOVED
        zero = self._named(self._has_effort & ~self._has_other_than_zero & moved)
        if zero:
            yield (
                "zero effort",
                f"the effort of {listed(zero)} is exactly 0 while it moves: it is not measured. "
                "Does the hardware fill the effort state interface?",
            )

    def _of_gravity(self) -> Iterator[tuple[str, str]]:
        """Looks once the robot has rested for a while."""
        assert self._model is not None
        stamps, (q, _, effort) = self._since(self._rested)
        is_still = bool((np.ptp(q, axis=0) < STILL).all())
        if is_still and stamps[-1] - stamps[0] <= 1e9 * REST:
            return
        self._rested = len(self._all)
        if is_still:
            at = np.median(q, axis=0), np.median(effort, axis=0)
            if guess := motor_current_guess(self._model, *at):
                yield "current", guess

    def _since(self, block: int) -> tuple[IntArray, FloatArray]:
        stamps, values = zip(*self._all[block:], strict=True)
        return np.concatenate(stamps), np.concatenate(values, axis=1)

    def _named(self, which: np.ndarray) -> list[str]:
        return [self._joints[i] for i in np.flatnonzero(which).tolist()]


def motor_current_guess(model: RobotModel, q: FloatArray, effort: FloatArray) -> str:
    """Why the efforts measured at rest at q, shape (nv,) each, may be currents, with the numbers;
    empty if nothing says so."""
    needed = gravity(model, Workspace(model), np.ascontiguousarray(q), np.zeros(model.nv))
    heavy = np.flatnonzero(np.abs(needed) >= LEAST)
    if not len(heavy) or np.abs(needed).max() < TELLING or not np.isfinite(effort[heavy]).all():
        return ""
    ratio = effort[heavy] / needed[heavy]
    if ratio.min() < NOTHING:
        return ""
    if ratio.max() < 1.0 / CURRENT_FACTOR:
        found = f"{1.0 / ratio.max():.0f} times smaller or more"
    elif ratio.max() > CURRENT_FACTOR * ratio.min():
        found = f"{ratio.min():.2g} to {ratio.max():.2g} of that, by the joint"
    else:
        return ""
    numbers = ", ".join(
        f"{model.joint_names[i]}: {needed[i]:.1f} {units(model, i).effort}, effort {effort[i]:.2f}"
        for i in heavy.tolist()
    )
    return (
        f"the efforts may be motor currents in ampere: at rest they are {found} than what gravity "
        f"needs by robot_description ({numbers}). This is a guess: a robot that is not mounted as "
        "robot_description has it, springs or counterweights can look like this. If they are "
        "currents, multiply them by torque constant and gear ratio"
    )
