"""The parameters of the controller node, each declared here and nowhere else.

`python -m rnea_control.node.parameters` prints `docs/parameters.md`.
"""

from __future__ import annotations

from rnea_control.control import ControlLaw
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
        at_most=65535,
    ),
    Parameter("lock_memory", bool, True, "keep all memory of the process in RAM (mlockall)"),
    Parameter(
        "freeze_garbage_collector",
        bool,
        True,
        "keep Python's garbage collector out of the ticks; it then runs once a second",
    ),
    Parameter(
        "cpu_dma_latency",
        int,
        -1,
        "longest time that any CPU may take to wake up (/dev/cpu_dma_latency): 0 for CPUs that "
        "never sleep, which answer soonest and draw most power; -1 leaves it alone",
        "us",
        at_least=-1,
        at_most=2_000_000_000,
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


if __name__ == "__main__":
    print("# Parameters of `rnea_controller`\n")
    print("Printed from the table in code by `python -m rnea_control.node.parameters`.\n")
    print(markdown((*PARAMETERS, LOCKED_POSITION)), end="")
