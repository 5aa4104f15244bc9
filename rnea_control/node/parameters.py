"""The parameters of the controller node, each declared only here.

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
    ),
    Parameter(
        "gains.<joint>.i_clamp_min",
        float,
        -10.0,
        "lower bound of the integral term",
        "computed_torque: rad/s^2, else Nm",
        at_most=0.0,
        live=True,
    ),
    Parameter(
        "effort_limit_scale",
        float,
        1.0,
        "torques are clamped to the URDF's effort limits times this factor",
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
    Parameter(
        "joint_state_timeout",
        float,
        0.1,
        "after a longer gap in joint_states the controller drops the trajectory and commands the "
        "gravity torque, until they are back",
        "s",
        above=0.0,
    ),
    Parameter(
        "allow_partial_joints_goal",
        bool,
        False,
        "take trajectories of some of the joints; the others go on as before",
        live=True,
    ),
    Parameter(
        "allow_nonzero_velocity_at_trajectory_end",
        bool,
        False,
        "take trajectories whose last point moves; without a next one in time the arm settles at "
        "that point",
        live=True,
    ),
    Parameter(
        "allow_integration_in_goal_trajectories",
        bool,
        False,
        "take points without positions, which are integrated from velocities, or these from "
        "accelerations",
        live=True,
    ),
    Parameter(
        "interpolate_from_desired_state",
        bool,
        True,
        "start new trajectories from the desired state, without a jump; false: from the measured "
        "one, as they also start after an error beyond the path tolerance",
        live=True,
    ),
    Parameter(
        "interpolation_method",
        str,
        "splines",
        "what joins the points of a trajectory",
        choices=("splines",),
    ),
    Parameter(
        "positions_upsampling.enable",
        bool,
        False,
        "join points that have only positions by a smooth spline, not by lines",
        live=True,
    ),
    Parameter(
        "positions_upsampling.policy_frequency",
        float,
        0.0,
        "point i of a trajectory whose points all have time 0 is due at (i + 1) / frequency",
        "Hz",
        above=0.0,
        special=(0.0, "refusing these"),
        live=True,
    ),
    Parameter(
        "constraints.stopped_velocity_tolerance",
        float,
        0.01,
        "how fast a joint may still be when the goal is reached",
        "rad/s or m/s",
        above=0.0,
        special=(0.0, "any velocity"),
        live=True,
    ),
    Parameter(
        "constraints.goal_time",
        float,
        0.0,
        "how long after its end a trajectory may take to come within the goal tolerances",
        "s",
        above=0.0,
        special=(0.0, "for ever"),
        live=True,
    ),
    Parameter(
        "cmd_timeout",
        float,
        0.0,
        "the same, where `constraints.goal_time` is 0",
        "s",
        above=0.0,
        special=(0.0, "for ever"),
        live=True,
    ),
    Parameter(
        "constraints.<joint>.trajectory",
        float,
        0.0,
        "path tolerance: how far a joint may be off while it moves",
        "rad or m",
        above=0.0,
        special=(0.0, "any distance"),
        live=True,
    ),
    Parameter(
        "constraints.<joint>.goal",
        float,
        0.0,
        "goal tolerance: how far a joint may be off when the goal is reached",
        "rad or m",
        above=0.0,
        special=(0.0, "any distance"),
        live=True,
    ),
    Parameter(
        "constraints.decelerate_on_cancel",
        bool,
        False,
        "brake within `max_deceleration_on_cancel`; false: as hard as the effort limits allow",
        live=True,
    ),
    Parameter(
        "constraints.<joint>.max_deceleration_on_cancel",
        float,
        0.0,
        "the deceleration of a joint that is stopped along its path",
        "rad/s^2 or m/s^2",
        above=0.0,
        special=(0.0, "what the effort limits allow"),
        live=True,
    ),
    Parameter(
        "constraints.excessive_effort",
        str,
        "warn",
        "what becomes of a trajectory for which the model needs more than the effort limits",
        choices=("refuse", "warn", "slow_down"),
        live=True,
    ),
    Parameter(
        "speed_scaling.initial_scaling_factor",
        float,
        1.0,
        "the speed of trajectories until `~/speed_scaling_input` says another one",
        at_least=0.0,
        at_most=1.0,
    ),
    Parameter(
        "action_monitor_rate",
        float,
        20.0,
        "feedback of the action",
        "Hz",
        above=0.0,
        at_most=1000.0,
    ),
    Parameter(
        "state_publish_rate",
        float,
        50.0,
        "`~/controller_state` and `~/torque_terms`",
        "Hz",
        above=0.0,
        at_most=1000.0,
    ),
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

# Parameters of joint_trajectory_controller that mean nothing here, and why.
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
}
# The same for the last part of `gains.<joint>.<name>`.
GAINS_OF_JOINT_TRAJECTORY_CONTROLLER = {
    "ff_velocity_scale": "the model's torque is the feedforward",
    "u_clamp_max": "set effort_limit_scale",
    "u_clamp_min": "set effort_limit_scale",
    "antiwindup_strategy": "the integral term is clamped to i_clamp_min and i_clamp_max",
    "tracking_time_constant": "the integral term is clamped to i_clamp_min and i_clamp_max",
    "error_deadband": "the integral term has none",
    "angle_wraparound": "continuous joints of the URDF take the shortest way",
}


def meaningless(name: str) -> str:
    """Why a parameter of joint_trajectory_controller has no effect; empty if it is not one."""
    if name.startswith("gains."):
        return GAINS_OF_JOINT_TRAJECTORY_CONTROLLER.get(name.rpartition(".")[2], "")
    return OF_JOINT_TRAJECTORY_CONTROLLER.get(name, "")


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
