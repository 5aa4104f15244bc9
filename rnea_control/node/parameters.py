"""The parameters of the controller node, each declared here and nowhere else.

`python -m rnea_control.node.parameters` prints `docs/parameters.md`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnea_control.control import ControlLaw, ControllerSettings, Gains
from rnea_control.dynamics.vector3 import FloatArray
from rnea_control.model import RobotModel
from rnea_control.node.real_time import RealTimeSettings
from rnea_control.ros.node_parameters import NodeParameters
from rnea_control.ros.parameter_table import Parameter, markdown

PARAMETERS = (
    Parameter(
        "joints",
        list[str],
        None,
        "joints to control, in the order of the effort controller's own list; all others are "
        "locked",
    ),
    Parameter(
        "control_law",
        str,
        "computed_torque",
        "how torques follow from errors; it decides the units of the gains",
        choices=tuple(law.name for law in ControlLaw),
    ),
    Parameter(
        "gains.<joint>.p",
        float,
        None,
        "position gain",
        "computed_torque: 1/s^2, else Nm/rad",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "gains.<joint>.d",
        float,
        None,
        "velocity gain",
        "computed_torque: 1/s, else Nm s/rad",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "gains.<joint>.i",
        float,
        0.0,
        "integral gain",
        "computed_torque: 1/s^3, else Nm/(rad s)",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "gains.<joint>.i_clamp_max",
        float,
        10.0,
        "most that the integral adds",
        "computed_torque: rad/s^2, else Nm",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "gains.<joint>.i_clamp_min",
        float,
        -10.0,
        "least that the integral adds",
        "computed_torque: rad/s^2, else Nm",
        at_most=0.0,
        live=True,
    ),
    Parameter(
        "effort_limit_scale",
        float,
        1.0,
        "torques are clamped to this part of the URDF's effort limits",
        above=0.0,
        at_most=1.0,
        live=True,
    ),
    Parameter(
        "gravity",
        list[float],
        [0.0, 0.0, -9.81],
        "acceleration of gravity in the root link's frame; for walls and ceilings",
        "m/s^2",
        at_least=-1000.0,
        at_most=1000.0,
        length=3,
        live=True,
    ),
    Parameter(
        "hardware_compensates_gravity",
        bool,
        False,
        "the hardware adds gravity torques itself (UR and Franka firmware does): leave them out",
    ),
    Parameter(
        "friction_compensation",
        bool,
        False,
        "add the friction of the drives to the torques; overestimated friction drives by itself",
        live=True,
    ),
    Parameter(
        "friction.<joint>.damping",
        float,
        -1.0,
        "viscous friction; -1 for the URDF's <dynamics damping>",
        "Nm s/rad or N s/m",
        at_least=-1.0,
        live=True,
    ),
    Parameter(
        "friction.<joint>.coulomb",
        float,
        -1.0,
        "Coulomb friction; -1 for the URDF's <dynamics friction>",
        "Nm or N",
        at_least=-1.0,
        live=True,
    ),
    Parameter(
        "friction.<joint>.offset",
        float,
        0.0,
        "torque that the drive needs for nothing",
        "Nm or N",
        live=True,
    ),
    Parameter(
        "armature.<joint>",
        float,
        0.0,
        "inertia of the drive's rotor times the gear ratio squared",
        "kg m^2 or kg",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "payload.link",
        str,
        "",
        "the link that carries the payload; if empty, the one that the last of `joints` moves",
    ),
    Parameter(
        "payload.mass",
        float,
        0.0,
        "mass of what the arm carries; set it together with the centre of mass, while it rests",
        "kg",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "payload.center_of_mass",
        list[float],
        [0.0, 0.0, 0.0],
        "of the payload, in the link's frame",
        "m",
        length=3,
        live=True,
    ),
    Parameter(
        "payload.inertia",
        list[float],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        "of the payload about its centre of mass: xx, xy, xz, yy, yz, zz, in axes parallel to the "
        "link's",
        "kg m^2",
        length=6,
        live=True,
    ),
    Parameter(
        "command_topic",
        str,
        "effort_controller/commands",
        "where the torques go: the topic of a ForwardCommandController on effort interfaces",
    ),
    Parameter(
        "command_reliability",
        str,
        "reliable",
        "QoS of the commands",
        choices=("reliable", "best_effort"),
    ),
    Parameter(
        "joint_state_timeout",
        float,
        0.1,
        "after a longer gap in joint_states the motion is dropped and the measured position held",
        "s",
        above=0.0,
    ),
    Parameter(
        "robot_description",
        str,
        "",
        "URDF text; if empty, the topic robot_description is waited for",
    ),
    Parameter(
        "thread_priority",
        int,
        50,
        "SCHED_FIFO priority of the control loop's thread; the process's other threads get one "
        "less; 0 leaves scheduling alone",
        at_least=0,
        at_most=98,
    ),
    Parameter(
        "cpu_affinity",
        list[int],
        [-1],
        "CPUs that the control loop's thread may use; [-1] for all",
        at_least=-1,
    ),
    Parameter("lock_memory", bool, True, "keep all memory of the process in RAM (mlockall)"),
    Parameter(
        "freeze_garbage_collector",
        bool,
        True,
        "keep Python's garbage collector out of the ticks; it then runs once a second",
    ),
    *(
        Parameter(
            f"diagnostics.{name}.{level}",
            float,
            value,
            f"/diagnostics says {level.upper()} when {meaning} of the last second exceeds this",
            unit,
            above=0.0,
            live=True,
        )
        for name, meaning, unit, values in (
            ("tick_duration", "the 99 % tick duration", "s", (0.0005, 0.005)),
            ("state_age", "the 99 % age of the states when answered", "s", (0.005, 0.05)),
            ("period_jitter", "the 99 % period jitter", "s", (0.005, 0.05)),
            ("missed_states", "the part of states missed", "", (0.01, 0.1)),
            ("late_states", "the part of states late", "", (0.05, 0.5)),
        )
        for level, value in zip(("warn", "error"), values, strict=True)
    ),
    Parameter("autostart", bool, True, "configure and activate without a lifecycle manager"),
)

LOCKED_POSITION = Parameter(
    "locked_positions.<joint>",
    float,
    0.0,
    "where a joint stands that is not in `joints`, such as a gripper's",
    "rad or m",
)


def controller_settings(parameters: NodeParameters, joints: Sequence[str]) -> ControllerSettings:
    """The controller's tuning from the node's parameters.

    Raises:
        ParameterError: a value that is not allowed, or missing.
    """
    gains = {
        name: np.array([parameters[f"gains.{joint}.{name}"] for joint in joints])
        for name in ("p", "i", "d", "i_clamp_max", "i_clamp_min")
    }
    return ControllerSettings(
        Gains(**gains),
        ControlLaw[parameters["control_law"]],
        parameters["effort_limit_scale"],
        parameters["hardware_compensates_gravity"],
        parameters["friction_compensation"],
    )


def tune_model(parameters: NodeParameters, model: RobotModel) -> None:
    """Brings gravity, payload, friction and armature from the node's parameters into the model.

    Raises:
        ParameterError: a value that is not allowed.
        RobotModelError: a payload that no body could be, or on a link that is not there.
    """
    xx, xy, xz, yy, yz, zz = parameters["payload.inertia"]
    model.set_payload(
        parameters["payload.link"] or model.child_links[-1],
        parameters["payload.mass"],
        parameters["payload.center_of_mass"],
        np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]),
    )
    model.gravity = parameters["gravity"]
    names = model.joint_names
    model.armature = [parameters[f"armature.{name}"] for name in names]
    model.torque_offset = [parameters[f"friction.{name}.offset"] for name in names]
    for attribute, key in (("damping", "damping"), ("friction", "coulomb")):
        values = [parameters[f"friction.{name}.{key}"] for name in names]
        setattr(model, attribute, _or_of_urdf(values, getattr(model, f"urdf_{attribute}")))


def _or_of_urdf(values: list[float], of_urdf: FloatArray) -> list[float]:
    return [own if own >= 0.0 else given for own, given in zip(values, of_urdf, strict=True)]


def real_time_settings(parameters: NodeParameters) -> RealTimeSettings:
    """The real-time set-up from the node's parameters.

    Raises:
        ParameterError: a value that is not allowed.
    """
    return RealTimeSettings(
        parameters["thread_priority"],
        tuple(cpu for cpu in parameters["cpu_affinity"] if cpu >= 0),
        parameters["lock_memory"],
        parameters["freeze_garbage_collector"],
    )


if __name__ == "__main__":
    print("# Parameters of `rnea_controller`\n")
    print("Printed from the table in code by `python -m rnea_control.node.parameters`.\n")
    print(markdown((*PARAMETERS, LOCKED_POSITION)), end="")
