"""Parameters that several nodes have: of the robot, its limits, the commands, and
real time.
"""

from __future__ import annotations

from rnea_control.ros.parameter_table import Parameter

# Somewhat more than Jupiter's, [m/s^2].
STRONGEST_GRAVITY = 30.0
# As its joint feels it, behind the largest gears, [kg m^2] or [kg].
LARGEST_ROTOR = 1000.0

ROBOT_PARAMETERS = (
    Parameter(
        "joints",
        list[str],
        None,
        "joints to control, in the order of the effort controller's `joints`; all others are "
        "locked",
    ),
    Parameter(
        "gravity",
        list[float],
        [0.0, 0.0, -9.81],
        "acceleration of gravity in the root link's frame; other values for walls and ceilings",
        "m/s^2",
        at_least=-STRONGEST_GRAVITY,
        at_most=STRONGEST_GRAVITY,
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
        at_most=LARGEST_ROTOR,
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
        "mass of the payload; set it together with its centre of mass, while the arm is at rest; "
        "0 for no payload",
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
        "robot_description",
        str,
        "",
        "URDF of the robot as text",
        special=("", "the topic robot_description"),
    ),
)

LIMIT_PARAMETERS = (
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
        "effort_limits.<joint>",
        float,
        -1.0,
        "effort limit in place of the URDF's; `effort_limit_scale` applies to it too",
        "Nm or N",
        above=0.0,
        special=(-1.0, "the `effort` of the URDF's `limit` tag"),
        live=True,
    ),
    Parameter(
        "torque_rate_limits.<joint>",
        float,
        -1.0,
        "commands change no faster than this",
        "Nm/s or N/s",
        above=0.0,
        special=(-1.0, "fifty times the effort limit in a second: from 0 to the limit in 20 ms"),
        live=True,
    ),
    Parameter(
        "soft_limits.<joint>.margin",
        float,
        0.05,
        "this far before a position limit the joint is pushed back, unless it is desired there; at "
        "most a tenth of its range; 0 for no soft limit",
        "rad or m",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "soft_limits.stiffness",
        float,
        900.0,
        "stiffness of the soft limits per inertia, critically damped",
        "1/s^2",
        above=0.0,
        live=True,
    ),
    Parameter(
        "velocity_limit_scale",
        float,
        1.0,
        "joints are braked beyond the URDF's velocity limit times this factor",
        above=0.0,
        live=True,
    ),
    Parameter(
        "max_position_errors.<joint>",
        float,
        0.3,
        "if the joint is further from its desired position, the motion ends and the arm brakes and "
        "holds where it is; 0 for no bound",
        "rad or m",
        at_least=0.0,
        live=True,
    ),
    Parameter(
        "saturation_timeout",
        float,
        0.5,
        "the same after a torque was at its limit for this long; 0 for no bound",
        "s",
        at_least=0.0,
        live=True,
    ),
)

COMMAND_PARAMETERS = (
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
)

REAL_TIME_PARAMETERS = (
    Parameter(
        "thread_priority",
        int,
        50,
        "SCHED_FIFO priority of the thread that commands; the process's other threads get less",
        at_least=1,
        at_most=98,
        special=(0, "no change of the scheduling"),
    ),
    Parameter(
        "cpu_affinity",
        list[int],
        [-1],
        "CPUs that the thread that commands may use",
        at_least=0,
        at_most=65535,
        special=([-1], "all CPUs"),
    ),
    Parameter("lock_memory", bool, True, "keep all memory of the process in RAM (mlockall)"),
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
)

# Both sides of the hand-over must have the same.
HANDOVER_PARAMETERS = (
    Parameter(
        "command_lease",
        float,
        -1.0,
        "a controller that was stopped, or got no CPU, while the arm went on for longer than this "
        "yields to the sentinel (docs/safety.md)",
        "s",
        above=0.0,
        special=(-1.0, "0.01, and 0.1 in simulated time"),
    ),
    Parameter(
        "command_timeout",
        float,
        -1.0,
        "how long commands may be missing before the sentinel takes the arm; longer than "
        "`command_lease` by what a command takes to arrive, several times",
        "s",
        above=0.0,
        special=(-1.0, "1.5 times `command_lease`"),
    ),
)

LOCKED_POSITION = Parameter(
    "locked_positions.<joint>",
    float,
    0.0,
    "position of a joint that is not in `joints`, such as a gripper's",
    "rad or m",
)
