"""The whole way, URDF to motor and back, over real DDS: controller process and arm in lockstep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dds import ALWAYS, PATIENT, PYTHON_TICKS, LockstepArm, controller, ros, trajectory
from robots import PANDA_JOINTS, example_robot
from trajectories import then

from rnea_control.control import Trajectory, Waypoint, Waypoints

FIRST_TICKS = 50
LEAD = 0.2  # from the message to the start of the trajectory, [s]
START = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8])
AWAY = np.array([0.5, 0.3, -0.5, 0.3, 0.5, -0.4, 0.5])
POINTS = [
    Waypoint(1.0, START + AWAY, -0.3 * AWAY, 0.0 * AWAY),
    Waypoint(2.0, START - AWAY, 0.0 * AWAY, 0.0 * AWAY),
]
GAINS = {"gains": {joint: {"p": 400.0, "d": 40.0} for joint in PANDA_JOINTS}}
# A torque acts at once here, and holds for a period.
PARAMETERS = {
    **PATIENT,
    "joints": list(PANDA_JOINTS),
    **GAINS,
    "dead_time": 0.0005,
    # They begin when the thread beside the ticks comes to it, which is another tick each time.
    "disturbance_observer.bandwidth": 0.0,
    "feedback_inertia": dict.fromkeys(PANDA_JOINTS, 0.0),
}


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def swing(seconds: float = 2.8, before: str = "", **errors: float) -> tuple[np.ndarray, np.ndarray]:
    """Tracking errors (n, 7) of one trajectory at 1 kHz, and the torques (n, 7)."""
    start = {f"initial_positions.{j}": float(q) for j, q in zip(PANDA_JOINTS, START, strict=True)}
    with ros(81):
        arm = LockstepArm(
            joints=list(PANDA_JOINTS), urdf_file=str(example_robot("panda")), **start, **errors
        )
        try:
            with controller(PARAMETERS, before=before) as process:
                arm.run(FIRST_TICKS)
                begin = arm.time[-1] + arm.node.period + LEAD
                rows = [(p.time, p.position, p.velocity, p.acceleration) for p in POINTS]
                # The states' stamps start one period after zero.
                arm.send(trajectory(PANDA_JOINTS, rows, begin + arm.node.period))
                arm.until_diagnosed("motion", "following")
                arm.run(round((LEAD + seconds) / arm.node.period))
                process.process.kill()  # told to end, it would brake first
                assert ("all ticks run in Python" in process.output) == bool(before or ALWAYS)
        finally:
            arm.destroy()
    points = Waypoints.of(POINTS, 7)
    planned = replace(points, times=begin + points.times)
    desired = then(Trajectory.hold(0.0, START), planned, 0.0, begin)
    off = np.array([desired.at(t)[0] for t in arm.time]) - np.array(arm.q)
    return off, np.array(arm.torque)


@pytest.fixture(scope="module")
def exact() -> tuple[np.ndarray, np.ndarray]:
    return swing()


def test_exact_model_tracks_below_a_microradian(exact, report) -> None:
    errors, _ = exact
    report(f"lockstep, exact model: RMS error {1e3 * rms(errors):.6f} mrad (must be below 0.001)")
    assert rms(errors) < 1e-6
    assert np.abs(errors).max() < 1e-5
    assert np.abs(errors[-50:]).max() < 1e-6  # at rest at the end


def test_torque_does_not_jump(exact) -> None:
    _, torque = exact
    holding = torque[1 : FIRST_TICKS - 1]
    np.testing.assert_allclose(holding, np.broadcast_to(holding[0], holding.shape), atol=1e-3)
    assert np.abs(np.diff(torque[1:], axis=0)).max() < 1.0


def test_ticks_in_python_give_the_same_numbers(exact) -> None:
    for first, again in zip(exact, swing(1.2, PYTHON_TICKS), strict=True):
        np.testing.assert_array_equal(first[: len(again)], again)


def test_masses_ten_percent_off(report) -> None:
    """The error stays bounded by what is missing: a tenth of the torque over the stiffness."""
    errors, _ = swing(mass_scale=1.1)
    report(f"lockstep, masses 10 % off: RMS error {1e3 * rms(errors):.6f} mrad (must be below 10)")
    assert 1e-4 < rms(errors) < 0.01
    assert np.abs(errors).max() < 0.03
