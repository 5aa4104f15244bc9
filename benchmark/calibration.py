"""How often the truth lies within two standard deviations of what `identify` finds.

`python benchmark/calibration.py [ROBOTS [NAME]]` prints a table: hidden robots of 25 s at 250 Hz
each, with torque noise of 2 % of the effort limits, whose correlation time is given.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from planted_lies import ROBOTS, hidden, moved, torques
from scipy.signal import lfilter
from table import Table

from rnea_control.analysis import inertial_parameters
from rnea_control.identification.identify import identify
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording
from rnea_control.model import RobotModel, RobotModelWarning

RATE = 250.0  # states a second [Hz]
NOISE = 0.02  # standard deviation of the effort noise [effort limits]
STRIBECK_SPEED = 0.05  # [rad/s]

Disturbance = Callable[[RobotModel, Recording], Recording]


def as_it_is(robot: RobotModel, recording: Recording) -> Recording:
    return recording


def with_12_bits(robot: RobotModel, recording: Recording) -> Recording:
    step = 2.0 * np.pi / 2**12
    return replace(recording, q=step * np.round(recording.q / step))


def with_ripple(robot: RobotModel, recording: Recording) -> Recording:
    """Adds torque ripple of half a percent of the effort limits, eight times a turn."""
    ripple = 0.005 * robot.effort_limit * np.sin(8.0 * recording.q)
    return replace(recording, effort=recording.effort + ripple)


def with_stribeck_friction(robot: RobotModel, recording: Recording) -> Recording:
    """Increases the dry friction by half at low speed."""
    more = 0.5 * robot.friction * np.exp(-((recording.v / STRIBECK_SPEED) ** 2))
    return replace(recording, effort=recording.effort + more * np.sign(recording.v))


CASES: dict[str, tuple[float, float, Disturbance]] = {
    "white": (0.0, 0.0, as_it_is),
    "0.04 s": (0.04, 0.0, as_it_is),
    "0.4 s": (0.4, 0.0, as_it_is),
    "white, 12-bit encoders": (0.0, 0.0, with_12_bits),
    "white, torque ripple": (0.0, 0.0, with_ripple),
    "white, Stribeck friction": (0.0, 0.0, with_stribeck_friction),
    "white, 12 ms late": (0.0, 0.012, as_it_is),
    "0.4 s, 12 ms late": (0.4, 0.012, as_it_is),
}


def noise(shape: tuple[int, ...], correlation: float, rng: np.random.Generator) -> np.ndarray:
    """Noise of variance 1; its correlation falls to 1/e in `correlation` [s]."""
    white = rng.standard_normal(shape)
    if not correlation:
        return white
    kept = np.exp(-1.0 / (RATE * correlation))
    return np.asarray(lfilter([np.sqrt(1.0 - kept**2)], [1.0, -kept], white, axis=0))


def errors(
    name: str, seed: int, correlation: float, delay: float, disturb: Disturbance
) -> np.ndarray:
    """Errors of the base parameters, in standard deviations."""
    rng = np.random.default_rng(seed)
    model = ROBOTS[name]()
    robot = hidden(model, rng)
    recording = moved(model, RATE, rng)
    effort = torques(robot, recording, delay)
    effort += NOISE * robot.effort_limit * noise(effort.shape, correlation, rng)
    recording = disturb(robot, replace(recording, effort=effort))
    found = identify(model, motion_of(recording))
    truth = found.base.values(inertial_parameters(robot))
    return (found.beta - truth) / np.sqrt(np.diag(found.covariance))


def main() -> None:
    robots = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    name = sys.argv[2] if len(sys.argv) > 2 else "xArm7"
    warnings.simplefilter("ignore", RobotModelWarning)
    header = ("noise", "parameters", "within 2 [%]", "RMS", "largest")
    table = Table(f"{name}, {robots} hidden robots", header)
    for title, case in CASES.items():
        z = np.concatenate([errors(name, seed, *case) for seed in range(robots)])
        z = z[np.isfinite(z)]
        within = 100.0 * np.mean(np.abs(z) < 2.0)
        rms, largest = np.sqrt(np.mean(z**2)), np.abs(z).max()
        table.rows.append((title, str(len(z)), f"{within:.1f}", f"{rms:.2f}", f"{largest:.1f}"))
    table.show()


if __name__ == "__main__":
    main()
