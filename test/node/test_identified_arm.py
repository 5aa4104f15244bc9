"""An arm that is not as its URDF says, before and after identification: the real node, in lockstep.

The arm moves once, with the controller by the URDF; from what its joint states said come a new URDF
and parameters; with these the controller moves it along another path.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from dds import LockstepArm, controller, ros, trajectory
from identification_bench import NOISE, fourier_motion
from robots import PANDA_JOINTS, example_robot, load_quietly

from rnea_control.control import Trajectory, Waypoint, Waypoints
from rnea_control.control.splicing import continued
from rnea_control.identification.controller_yaml import controller_yaml
from rnea_control.identification.identify import identify
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording
from rnea_control.identification.urdf_inertials import with_inertials
from rnea_control.model import RobotModel

RATE = 250.0
APPROACH, STEP, LEAD = 3.0, 0.02, 0.2
SECONDS = {"excitation": 16.0, "another": 5.0}
ARMS = {"panda": (PANDA_JOINTS, 0.3, 0.1, 0.05), "ur10_robot": (None, 1.0, 0.5, 0.1)}


def off_by_a_fifth(urdf: bytes, model: RobotModel) -> bytes:
    """The URDF of the arm as it really is: masses and centres of mass up to 20 % off."""
    rng = np.random.default_rng(1)
    inertias = {}
    for link in model.child_links:
        own = model.link_inertias[link]
        mass = own[3, 3]
        center = own[:3, 3] / mass
        about_center = own[:3, :3] - mass * np.outer(center, center)
        moved = center * rng.uniform(0.8, 1.2, 3)
        matrix = mass * np.eye(4)
        matrix[:3, :3] = about_center + mass * np.outer(moved, moved)
        matrix[:3, 3] = matrix[3, :3] = mass * moved
        inertias[link] = rng.uniform(0.8, 1.2) * matrix
    return with_inertials(urdf, inertias, "hidden")


def waypoints(model: RobotModel, seed: int, seconds: float) -> list[Waypoint]:
    rng = np.random.default_rng(seed)
    t, q, v, a = fourier_motion(model, seconds, rng, 1.0 / STEP)
    return [Waypoint(APPROACH + t[k], q[k], v[k], a[k]) for k in range(len(t))]


def run(
    model: RobotModel, hidden: bytes, errors: dict, description: bytes, more: dict, seed: str
) -> tuple[np.ndarray, LockstepArm]:
    """Tracking errors along a motion, and the arm with what it went through."""
    joints = list(model.joint_names)
    points = waypoints(model, list(SECONDS).index(seed) + 10, SECONDS[seed])
    start_q = points[0].position
    parameters = {
        "joints": joints,
        "robot_description": description.decode(),
        "gains": {joint: {"p": 400.0, "d": 40.0} for joint in joints},
        "joint_state_timeout": 1000.0,
        "joint_state_gap": 1000.0,
        "dead_time": 0.5 / RATE,
        # The URDF of the UR10 has next to no inertia at the wrist: feedback would be too weak.
        "feedback_inertia": dict.fromkeys(joints, 0.1),
        "allow_nonzero_velocity_at_trajectory_end": True,  # the run ends before
        **more,
    }
    with ros(78):
        initial = {f"initial_positions.{j}": float(q) for j, q in zip(joints, start_q, strict=True)}
        arm = LockstepArm(
            robot_description=hidden.decode(), joints=joints, rate=RATE, **initial, **errors
        )
        try:
            with controller(parameters) as process:
                arm.run(50)
                start = arm.time[-1] + arm.node.period + LEAD
                rows = [(p.time, p.position, p.velocity, p.acceleration) for p in points]
                arm.send(trajectory(joints, rows, start + arm.node.period))
                arm.until_diagnosed("motion", "following")
                arm.run(round((LEAD + points[-1].time - 0.1) * RATE))
                process.process.kill()  # told to end, it would brake first
        finally:
            arm.destroy()
    planned = Waypoints.of(points, model.nv).delayed(start)
    desired = continued(Trajectory.hold(0.0, start_q), 0.0, start, planned, np.zeros(model.nv))
    moving = np.array(arm.time) > start + APPROACH
    wanted = np.array([desired.at(t)[0] for t in arm.time])
    return (wanted - np.array(arm.q))[moving], arm


def recorded(model: RobotModel, arm: LockstepArm) -> Recording:
    """What the states said, with the noise of its sensors."""
    rng = np.random.default_rng(0)
    q, effort = np.array(arm.q), np.array(arm.torque)
    q = q + 1e-5 * rng.standard_normal(q.shape)
    effort = effort + NOISE * model.effort_limit * rng.standard_normal(effort.shape)
    nothing = np.full_like(q, np.nan)
    return Recording("lockstep", model.joint_names, np.array(arm.time), q, nothing, effort, nothing)


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


@pytest.mark.explores
@pytest.mark.parametrize("name", ARMS)
def test_identified_arm_is_tracked_ten_times_closer(name: str, report) -> None:
    joints, friction, damping, armature = ARMS[name]
    path = example_robot(name)
    urdf = path.read_bytes()
    model = load_quietly(path, joints)
    hidden = off_by_a_fifth(urdf, model)
    errors = {"joint_friction": friction, "joint_damping": damping, "joint_armature": armature}
    _, arm = run(model, hidden, errors, urdf, {}, "excitation")
    found = identify(model, motion_of(recorded(model, arm)))
    new_urdf = with_inertials(urdf, found.inertias, name)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rnea_controller.yaml"
        file.write_text(controller_yaml(found, "the excitation"))
        given = yaml.safe_load(file.read_text())["/**"]["rnea_controller"]["ros__parameters"]
    before, _ = run(model, hidden, errors, urdf, {}, "another")
    with_result = {**given, "friction_compensation": True}
    after, _ = run(model, hidden, errors, new_urdf, with_result, "another")
    report(
        f"lockstep, {name} with hidden masses, friction and rotors: RMS error "
        f"{1e3 * rms(before):.3f} mrad by the URDF, {1e3 * rms(after):.4f} mrad identified, "
        f"{rms(before) / rms(after):.1f} times closer (must be 10)"
    )
    assert rms(before) > 10.0 * rms(after)
