"""The parameters of the controller node, each declared only here.

`python -m rnea_control.node.parameters` prints `docs/parameters.md`.
"""

from __future__ import annotations

from rnea_control.control import ControlLaw
from rnea_control.node.safety_parameters import SAFETY_PARAMETERS
from rnea_control.node.trajectory_parameters import TRAJECTORY_PARAMETERS
from rnea_control.ros.parameter_table import Parameter, markdown

PARAMETERS = (
    Parameter(
        "joints",
        list[str],
        None,
        "joints to control, in the order of the effort controller's `joints`; all others are "
        "locked",
    ),
    Parameter(
        "control_law",
        str,
        "computed_torque",
        "the law that computes torques from errors; the units of the gains depend on it",
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
        "upper bound of the integral term",
        "computed_torque: rad/s^2, else Nm",
        at_least=0.0,
        live=True,
        infinite=True,
    ),
    Parameter(
        "gains.<joint>.i_clamp_min",
        float,
        -10.0,
        "lower bound of the integral term",
        "computed_torque: rad/s^2, else Nm",
        at_most=0.0,
        live=True,
        infinite=True,
    ),
    Parameter(
        "effort_limit_scale",
        float,
        1.0,
        "torques are clamped to the effort limits times this factor",
        above=0.0,
        at_most=1.0,
        live=True,
    ),
    Parameter(
        "gravity",
        list[float],
        [0.0, 0.0, -9.81],
        "acceleration of gravity in the root link's frame; other values for walls and ceilings",
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
        "true if the hardware adds the gravity torque itself, as UR and Franka firmware does; "
        "commands then leave it out",
    ),
    Parameter(
        "friction_compensation",
        bool,
        False,
        "add the friction torque of the joints to commands; overestimated friction makes a joint "
        "move by itself",
        live=True,
    ),
    Parameter(
        "friction.<joint>.damping",
        float,
        -1.0,
        "viscous friction",
        "Nm s/rad or N s/m",
        at_least=0.0,
        special=(-1.0, "the `damping` of the URDF's `dynamics` tag"),
        live=True,
    ),
    Parameter(
        "friction.<joint>.coulomb",
        float,
        -1.0,
        "Coulomb friction",
        "Nm or N",
        at_least=0.0,
        special=(-1.0, "the `friction` of the URDF's `dynamics` tag"),
        live=True,
    ),
    Parameter(
        "friction.<joint>.offset",
        float,
        0.0,
        "constant torque offset of the actuator",
        "Nm or N",
        live=True,
    ),
    Parameter(
        "armature.<joint>",
        float,
        0.0,
        "rotor inertia of the actuator times the gear ratio squared",
        "kg m^2 or kg",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "payload.link",
        str,
        "",
        "link that the payload is fixed to",
        special=("", "the link that the last of `joints` moves"),
    ),
    Parameter(
        "payload.mass",
        float,
        0.0,
        "mass of the payload; set it together with its centre of mass, while the arm is at rest",
        "kg",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "payload.center_of_mass",
        list[float],
        [0.0, 0.0, 0.0],
        "centre of mass of the payload, in the link's frame",
        "m",
        length=3,
        live=True,
    ),
    Parameter(
        "payload.inertia",
        list[float],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        "inertia of the payload about its centre of mass: xx, xy, xz, yy, yz, zz, in axes parallel "
        "to the link's",
        "kg m^2",
        length=6,
        live=True,
    ),
    Parameter(
        "command_topic",
        str,
        "effort_controller/commands",
        "topic of the commands: that of a ForwardCommandController on effort interfaces",
    ),
    Parameter(
        "command_reliability",
        str,
        "reliable",
        "QoS of the commands",
        choices=("reliable", "best_effort"),
    ),
    *SAFETY_PARAMETERS,
    *TRAJECTORY_PARAMETERS,
    Parameter(
        "robot_description",
        str,
        "",
        "URDF of the robot as text",
        special=("", "the topic robot_description"),
    ),
    Parameter(
        "thread_priority",
        int,
        50,
        "SCHED_FIFO priority of the control loop's thread; the process's other threads get one "
        "less",
        at_least=1,
        at_most=98,
        special=(0, "no change of the scheduling"),
    ),
    Parameter(
        "cpu_affinity",
        list[int],
        [-1],
        "CPUs that the control loop's thread may use",
        at_least=0,
        at_most=65535,
        special=([-1], "all CPUs"),
    ),
    Parameter("lock_memory", bool, True, "keep all memory of the process in RAM (mlockall)"),
    Parameter(
        "freeze_garbage_collector",
        bool,
        True,
        "keep Python's garbage collector out of the ticks; it then runs once a second between them",
    ),
    Parameter(
        "cpu_dma_latency",
        int,
        -1,
        "longest time that any CPU may take to wake up (/dev/cpu_dma_latency); with 0 the CPUs "
        "never sleep, which gives the lowest latency and draws the most power",
        "us",
        at_least=0,
        at_most=2_000_000_000,
        special=(-1, "no change of the CPUs' sleep"),
    ),
    *(
        Parameter(
            f"diagnostics.{name}.{level}",
            float,
            value,
            f"/diagnostics says {level.upper()} when {meaning} exceeds this in the last second",
            unit,
            above=0.0,
            live=True,
        )
        for name, meaning, unit, values in (
            ("tick_duration", "the 99 % quantile of the tick duration", "s", (0.0005, 0.005)),
            ("state_age", "the 99 % quantile of the state age", "s", (0.005, 0.05)),
            ("period_jitter", "the 99 % quantile of the period jitter", "s", (0.005, 0.05)),
            ("missed_states", "the fraction of states missed", "", (0.01, 0.1)),
            ("late_states", "the fraction of late states", "", (0.05, 0.5)),
        )
        for level, value in zip(("warn", "error"), values, strict=True)
    ),
    Parameter(
        "autostart", bool, True, "configure and activate at start, without a lifecycle manager"
    ),
)

LOCKED_POSITION = Parameter(
    "locked_positions.<joint>",
    float,
    0.0,
    "position of a joint that is not in `joints`, such as a gripper's",
    "rad or m",
)


if __name__ == "__main__":
    print("# Parameters of `rnea_controller`\n")
    print("Printed from the table in code by `python -m rnea_control.node.parameters`.\n")
    print(markdown((*PARAMETERS, LOCKED_POSITION)), end="")
