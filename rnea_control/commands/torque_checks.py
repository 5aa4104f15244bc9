"""Checks of the model's torques for the arm at rest: gravity, firmware, payload, rotor inertia."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.commands.command_checks import effort_controller
from rnea_control.commands.evidence import Evidence
from rnea_control.commands.finding import Finding, error, note, warning
from rnea_control.commands.state_checks import are_complete
from rnea_control.control.feasibility import RESTING, light_joints
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import listed
from rnea_control.model import RobotModel
from rnea_control.plausibility import causes
from rnea_control.plausibility.model_check import Witness, check_model

# fmt: off
ARM_MOVES = note("arm-moves",
    "the arm moves: its torques cannot be compared with the model's",
    "Run rnea_doctor again while the arm is at rest")
EFFORT_UNKNOWN = note("effort-unknown",
    "joint states have no effort: the model's gravity torque cannot be compared with it",
    "Export the state interface effort in the <ros2_control> tag, if the hardware measures it")
GRAVITY_UNSEEN = note("gravity-unseen",
    "the measured effort is 0 where the model has gravity torque; brakes, firmware, or an effort "
    "that is not measured can be the reason",
    "Set hardware_compensates_gravity to true if firmware holds the arm (UR, Franka), else to "
    "false: with the wrong value the arm falls or rises")
GRAVITY_NOT_HELD = warning("gravity-not-held",
    "torque is on, and the measured effort is 0 where the model has gravity torque",
    "If firmware holds the arm (UR, Franka): hardware_compensates_gravity: true. If brakes hold "
    "it, or no effort is measured (Gazebo Fortress): leave it false")
GRAVITY_MEASURED = warning("gravity-measured",
    "hardware_compensates_gravity is true, and the measured effort is the gravity torque",
    "This is right for firmware that reports the total motor torque (Franka). Else set the "
    "parameter to false: the arm would fall")
GRAVITY_OPPOSITE = error("gravity-opposite",
    "the measured effort is the opposite of the model's gravity torque: the arm would accelerate "
    "away",
    "Correct the parameter `gravity` (in the frame of the URDF's root link), or the sign of the "
    "efforts in the hardware interface")
GRAVITY_DIRECTION = warning("gravity-direction",
    "the measured efforts fit another direction of gravity",
    "Set the parameter `gravity` in the frame of the URDF's root link, as the message says")
GRAVITY_STRENGTH = warning("gravity-strength",
    "the magnitude of the parameter `gravity` is not that of the Earth",
    "Set `gravity` in m/s^2, in the frame of the URDF's root link; [0, 0, -9.81] for an arm on the "
    "floor")
PAYLOAD = warning("payload",
    "the measured efforts fit another payload on the last link than the model's",
    "Set payload.mass and payload.center_of_mass, or add the tool to the URDF")
PAYLOAD_AT_ORIGIN = note("payload-at-origin",
    "the center of mass of the payload is at the origin of its link",
    "Set payload.center_of_mass, if this is not its position")
GRAVITY_DIFFERS = warning("gravity-differs",
    "the measured efforts are not the model's gravity torques",
    "Follow the remedy in the message; ignore the warning if the effort is a motor current")
ROTOR_INERTIA = warning("rotor-inertia",
    "a joint has little inertia in the model and no `armature`: with the rotor of a real arm its "
    "torque would be too small",
    "Set armature.<joint> to the rotor's inertia times the gear ratio squared, which rnea_tune "
    "measures, or feedback_inertia.<joint>")
# fmt: on

SHORTEST = 1.0  # least time over which motion is judged; noise of the positions dominates below [s]
EARTH = 9.81  # gravity of the Earth [m/s^2]
EARTH_TOLERANCE = 0.05  # relative deviation that is reported


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings about the model's torques."""
    settings, states = evidence.settings, evidence.arm_states
    model = settings.model
    if model is None:
        return
    strength = float(np.linalg.norm(model.gravity))
    if abs(strength / EARTH - 1.0) > EARTH_TOLERANCE:
        yield GRAVITY_STRENGTH.found(f"{settings.where}: the magnitude is {strength:.4g} m/s^2")
    mass = settings.get("payload.mass")
    if mass > 0.0 and not any(settings.get("payload.center_of_mass")):
        yield PAYLOAD_AT_ORIGIN.found(
            f"{settings.where}: payload.mass is {mass:g} kg, payload.center_of_mass is 0, 0, 0"
        )
    of_one_degree = len(model.joint_names) == model.nq == model.nv
    if not (of_one_degree and are_complete(states, model.joint_names)):
        return
    position, velocity, effort = (
        np.array([state.of(model.joint_names, quantity) for state in states])
        for quantity in ("position", "velocity", "effort")
    )
    q = position.mean(axis=0)
    own = [settings.get(f"feedback_inertia.{name}") for name in model.joint_names]
    if light := light_joints(model, q, np.array(own)):
        yield ROTOR_INERTIA.found(f"{settings.where}: {listed(light)}, at the present position")
    # Speed without noise: from the mean velocity, or from the range of the positions.
    mean, way = np.abs(velocity.mean(axis=0)).max(), np.ptp(position, axis=0).max()
    speed = max(mean, way / max(states[-1].received - states[0].received, SHORTEST))
    if speed > RESTING:
        yield ARM_MOVES.found(f"{evidence.states_topic.name}: up to {speed:.2g} rad/s or m/s")
    elif settings.get("model_check.bound") > 0.0:
        yield from _gravity(evidence, model, q, effort.mean(axis=0))


def _gravity(
    evidence: Evidence, model: RobotModel, q: FloatArray, effort: FloatArray
) -> Iterator[Finding]:
    topic, settings = evidence.states_topic.name, evidence.settings
    effort = effort - model.torque_offset
    if not np.isfinite(effort).any():
        yield EFFORT_UNKNOWN.found(f"{topic} has no finite effort")
        return
    bound = settings.get("model_check.bound") * model.effort_limit
    compensated = settings.get("hardware_compensates_gravity")
    link = settings.get("payload.link") or None
    found = check_model(model, Workspace(model), q, effort, bound, Witness.effort, link)
    likely = found.likely
    if likely is None:
        pulls = np.flatnonzero(np.abs(effort - found.difference) > bound)
        if compensated and len(pulls):
            joints = listed([model.joint_names[j] for j in pulls])
            yield GRAVITY_MEASURED.found(f"{topic}: effort and model agree, at {joints}")
        return
    words = f"{topic}: {'; '.join(found.torques)}: {likely.words}"
    if likely.cause is causes.PAYLOAD:
        yield PAYLOAD.found(words)
    elif likely.cause is not causes.GRAVITY:
        yield GRAVITY_DIFFERS.found(f"{words}. {likely.remedy}")
    elif np.allclose(found.values, -model.gravity):
        yield GRAVITY_OPPOSITE.found(words)
    elif found.values.any():
        yield GRAVITY_DIRECTION.found(words)
    elif not compensated:
        own = effort_controller(evidence)
        code = GRAVITY_NOT_HELD if own is not None and own.state == "active" else GRAVITY_UNSEEN
        yield code.found(words)
