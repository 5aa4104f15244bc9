"""The parameters of trajectories, named as those of joint_trajectory_controller."""

from __future__ import annotations

from rnea_control.ros.parameter_table import Parameter

TRAJECTORY_PARAMETERS = (
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
