"""The parameters of the controller node, and the settings that they put in force in a running
controller.

`python -m rnea_control.node.parameters` prints `docs/parameters.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rnea_control.control import ControlLaw, ControllerSettings, Gains, TrajectorySettings, laws
from rnea_control.control.own_law import OwnLaw, PerJoint
from rnea_control.exceptions import listed, quoted
from rnea_control.model import RobotModel
from rnea_control.parameters import table
from rnea_control.parameters.parameter import (
    JOINT,
    Parameter,
    Parameters,
    joint_of,
    markdown,
    values_in_force,
)
from rnea_control.parameters.settings import update_model

CONTROL_LAW = Parameter(
    "control_law",
    str,
    "computed_torque",
    "the law that computes torques from errors, see below; may change while the arm rests, with "
    "the gains, whose units depend on it",
    choices=tuple(law.name for law in laws.JOINT_LAWS),
    live=True,
)
TASK_LAW = Parameter(
    "task.control_law",
    str,
    "cartesian_impedance",
    "the law that moves the tip to target poses, see below",
    choices=tuple(law.name for law in laws.TASK_LAWS),
    live=True,
)

OWN_LAW = Parameter(
    "own_law.function",
    str,
    "",
    "for `control_law: own`: the function of the law, as package.module.function; read when the "
    "process starts only, see [own_law.md](own_law.md)",
    at_start=True,
)

PARAMETERS = (
    *table.ROBOT,
    *table.LIMITS,
    CONTROL_LAW,
    OWN_LAW,
    *table.FEEDBACK,
    *table.COMMANDS,
    *table.HARDWARE,
    *table.SAFETY,
    *table.HANDOVER,
    *table.TRAJECTORIES,
    TASK_LAW,
    *table.TASK,
    *table.REAL_TIME,
    *table.DIAGNOSTICS,
    *table.START,
)

# Parameters of joint_trajectory_controller without effect here, with the reasons; `gains.<name>` is
# the parameter of each joint.
OF_JOINT_TRAJECTORY_CONTROLLER = {
    "type": "the controller manager does not load this node",
    "command_interfaces": "commands are efforts",
    "state_interfaces": "positions and velocities of joint_states are used",
    "command_joints": "`joints` are commanded",
    "allow_trajectory_replacement": "it is always allowed",
    "set_last_command_interface_value_as_state_on_activation": "the measured position is held",
    "speed_scaling.state_interface": "publish to ~/speed_scaling_input",
    "speed_scaling.command_interface": "publish to ~/speed_scaling_input",
    "open_loop_control": "set interpolate_from_desired_state",
    "gains.ff_velocity_scale": "the model's torque is the feedforward",
    "gains.u_clamp_max": "set effort_limit_scale",
    "gains.u_clamp_min": "set effort_limit_scale",
    "gains.antiwindup_strategy": "the integral term is clamped to i_clamp_min and i_clamp_max",
    "gains.tracking_time_constant": "the integral term is clamped to i_clamp_min and i_clamp_max",
    "gains.angle_wraparound": "continuous joints of the URDF take the shortest way",
}


def meaningless(name: str) -> str:
    """Why a parameter of joint_trajectory_controller has no effect; empty if it is not one."""
    of_gains = name.startswith("gains.")
    key = f"gains.{name.rpartition('.')[2]}" if of_gains else name
    return OF_JOINT_TRAJECTORY_CONTROLLER.get(key, "")


def without_effect(names: Iterable[str], joints: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Messages about parameters that the user has set and the node does not know, as severity and
    sentence. For parameters of a joint that is not controlled, the name may be right."""
    of_others: dict[str, list[str]] = {}
    for name in names:
        if reason := meaningless(name):
            what = f"parameter {quoted(name)} of joint_trajectory_controller has no effect"
            yield "info", f"{what}: {reason}"
        elif joint := joint_of(name, PARAMETERS):
            of_others.setdefault(joint, []).append(name)
        else:
            words = f"parameter {quoted(name)} is not known and has no effect; is it misspelled?"
            yield "warning", words
    for joint, own in of_others.items():
        yield (
            "warning",
            f"{listed(own)}: no effect, as {quoted(joint)} is not in `joints`"
            + (dotted_key(joint, joints)),
        )


def dotted_key(joint: str, joints: Sequence[str]) -> str:
    """Hint for a joint's name that ROS has made of a key with a dot; empty for any other name.
    From the second such key of a map on, rcl puts the first part before the name again."""
    named = next((one for one in joints if "." in one and joint.endswith(f".{one}")), "")
    if not named:
        return ""
    nested = ": {".join(named.split("."))
    return (
        f". ROS misreads the key {named!r} in YAML; write nested maps, {{{nested}: ...}}"
        + "}" * named.count(".")
    )


@dataclass(frozen=True)
class InForce:
    """All settings of a running controller that parameters decide: made from one set of values, and
    applied as a whole.

    Attributes:
        values: values of all parameters, by the names of their rows.
        model: robot model with its loads, friction and gravity.
        controller: settings of the controller.
        description: URDF from the topic; empty if a parameter has it.
    """

    values: Mapping[str, Any]
    model: RobotModel
    controller: ControllerSettings
    description: str = ""


def own_rows(law: OwnLaw) -> dict[str, Parameter]:
    """Rows of the parameters of a user's law, by the names that the law has for them."""
    return {
        name: Parameter(
            f"own_law.{name}.{JOINT}" if isinstance(default, PerJoint) else f"own_law.{name}",
            float,
            default.default if isinstance(default, PerJoint) else default,
            f"parameter of {law.name}",
            live=True,
        )
        for name, default in law.parameters.items()
    }


def in_force(
    parameters: Parameters, robot: RobotModel, description: str = "", own: OwnLaw | None = None
) -> InForce:
    """Settings that the parameters decide.

    Args:
        parameters: parameters of the node.
        robot: robot model of the URDF; not changed.
        description: URDF from the topic; empty if a parameter has it.
        own: the law of a user, if the node was started with one.

    Raises:
        ParameterError: a value that is not allowed, or missing.
        RobotModelError: a payload with an impossible inertia, or on a link that does not exist.
    """
    of_law = own_rows(own) if own else {}
    rows = (*PARAMETERS, *of_law.values())
    values = values_in_force(parameters, rows, robot.joint_names)
    model = robot.copy()
    update_model(parameters, model)
    settings = ControllerSettings.of(
        values,
        gains=Gains.of(values),
        control_law=ControlLaw[values["control_law"]],
        task_law=ControlLaw[values["task.control_law"]],
        trajectories=TrajectorySettings.of(values),
        own_law=own,
        own_values={name: values[row.name] for name, row in of_law.items()},
    )
    return InForce(values, model, settings, description)


if __name__ == "__main__":
    print("# Parameters of `rnea_controller`\n")
    print("Printed from the table in code by `python -m rnea_control.node.parameters`.\n")
    print(markdown((*PARAMETERS, table.LOCKED_POSITION)))
    print("## Control laws\n")
    print("u = Kp e + Kd de + integral of Ki e, with the gains p, d and i. Added are the friction,")
    print("with `friction_compensation`, and the effort of a trajectory's points. After a change")
    print("the torque of the law before fades out over `activation.blend_time`.")
    print("`task.control_law` is one of the laws with J, see [task_space.md](task_space.md).")
    print("`linear_feedback` is the law of [a planner's gains](streams.md#a-planners-gains).\n")
    print(laws.markdown(), end="")
