"""The whole way, URDF to motor and back, over real DDS: controller process and arm in lockstep."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from dds import LockstepArm, controller, ros, trajectory
from robots import PANDA_JOINTS

from rnea_control.control import Trajectory, Waypoint, Waypoints
from rnea_control.control.splicing import continued

START = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8])
GAINS = {joint: {"p": 400.0, "d": 40.0} for joint in PANDA_JOINTS}
# In lockstep the arm waits for as long as the machine needs: no watchdog may answer for the
# controller.
PARAMETERS = {
    "joints": list(PANDA_JOINTS),
    "gains": GAINS,
    "joint_state_timeout": 1000.0,
    "joint_state_gap": 1000.0,
    "dead_time": 0.0005,  # a torque acts at once here, and holds for a period
}
FIRST_TICKS = 50
LEAD = 0.2  # from the message to the start of the trajectory, [s]


def waypoints() -> list[Waypoint]:
    zero = np.zeros(7)
    swing = np.array([0.5, 0.3, -0.5, 0.3, 0.5, -0.4, 0.5])
    return [
        Waypoint(1.0, START + swing, -0.3 * swing, zero),
        Waypoint(2.0, START - swing, zero, zero),
    ]


def run(panda_urdf, **model_errors) -> tuple[np.ndarray, np.ndarray]:
    """Tracking errors (n, 7) of one trajectory at 1 kHz, and the torques (n, 7)."""
    initial = {
        f"initial_positions.{joint}": float(q) for joint, q in zip(PANDA_JOINTS, START, strict=True)
    }
    with ros(81):
        arm = LockstepArm(
            urdf_file=str(panda_urdf), joints=list(PANDA_JOINTS), **initial, **model_errors
        )
        try:
            with controller(PARAMETERS):
                arm.run(FIRST_TICKS)
                start = arm.time[-1] + arm.node.period + LEAD
                points = [(p.time, p.position, p.velocity, p.acceleration) for p in waypoints()]
                # The states' stamps start one period after zero.
                arm.send(trajectory(PANDA_JOINTS, points, start + arm.node.period))
                arm.until_diagnosed("motion", "following")
                arm.run(round((LEAD + 2.8) / arm.node.period))
        finally:
            arm.destroy()
    points = Waypoints.of(waypoints(), 7).delayed(start)
    desired = continued(Trajectory.hold(0.0, START), 0.0, start, points, np.zeros(7))
    errors = np.array([desired.at(t)[0] for t in arm.time]) - np.array(arm.q)
    return errors, np.array(arm.torque)


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


@pytest.fixture(scope="module")
def exact(panda_urdf):
    return run(panda_urdf)


def test_exact_model_tracks_below_a_microradian(exact, report) -> None:
    errors, _ = exact
    report(f"lockstep, exact model: RMS error {1e3 * rms(errors):.6f} mrad (must be below 0.001)")
    assert rms(errors) < 1e-6
    assert np.abs(errors).max() < 1e-5
    assert np.abs(errors[-50:]).max() < 1e-6  # at rest at the end


def test_every_run_gives_the_same_numbers(exact, panda_urdf) -> None:
    digests = {
        hashlib.sha256(np.concatenate(result).tobytes()).hexdigest()
        for result in (exact, run(panda_urdf))
    }
    assert len(digests) == 1


def test_masses_ten_percent_off(panda_urdf, report) -> None:
    """The error stays bounded by what is missing: a tenth of the torque over the stiffness."""
    errors, _ = run(panda_urdf, mass_scale=1.1)
    report(f"lockstep, masses 10 % off: RMS error {1e3 * rms(errors):.6f} mrad (must be below 10)")
    assert 1e-4 < rms(errors) < 0.01
    assert np.abs(errors).max() < 0.03


def test_torque_does_not_jump(exact) -> None:
    _, torque = exact
    holding = torque[1 : FIRST_TICKS - 1]
    np.testing.assert_allclose(holding, np.broadcast_to(holding[0], holding.shape), atol=1e-3)
    assert np.abs(np.diff(torque[1:], axis=0)).max() < 1.0
