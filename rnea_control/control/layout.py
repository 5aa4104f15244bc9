"""What the control step works on: the arm's numbers, the settings, the state and the findings.

Kernels and Python read and write them by the same names; see jit/record.py and jit/rows.py. Rows
have a column for each joint.
"""

from __future__ import annotations

from rnea_control.array_types import Matrix, Vector
from rnea_control.jit.record import Record
from rnea_control.jit.rows import Rows, rows


class Settings(Rows):
    """Settings of the control step. Limits are multiplied by what the model and other parameters
    say; a velocity limit of infinity is none."""

    p_gain: Vector
    i_gain: Vector
    d_gain: Vector
    i_clamp_max: Vector
    i_clamp_min: Vector
    error_deadband: Vector  # position error that the integral ignores [rad] or [m]
    feedback_inertia: Vector
    dead_time: float  # [s]
    hardware_adds_gravity: float  # 1 or 0
    effort_limit: Vector
    torque_rate_limit: Vector
    velocity_limit: Vector
    margin: Vector  # of the soft position limits
    limit_stiffness: float
    max_position_error: Vector
    saturation_timeout: float  # [s]
    max_deceleration: Vector
    blend_time: float  # [s]
    guiding_damping: float

    # Bounds of the motion, see motion_watch.py; infinity is none.
    max_velocity: float
    max_velocity_error: float
    max_driving_torque: float
    max_driving_power: float
    max_contact_torque: float
    observer_gain: float
    max_external_torque: Vector

    # What the model decides.
    continuous: Vector  # 1 for a continuous joint, else 0
    lower_limit: Vector
    upper_limit: Vector
    soft_lower: Vector
    soft_upper: Vector
    state_velocity_limit: Vector
    friction: Matrix = rows(3)  # as `friction_torque` takes it
    reference_speed: Vector  # the velocity limit, or what stands in for it where there is none
    end_slack: Vector  # how far a joint may be from the end of a goal without a word

    law: float  # number of the control law
    check_jumps: float  # 1 or 0


SettingsStack = Settings  # those of the controller, and those that hold any arm

# Rows of the settings that are parameters, as they are; the step reads no other parameter.
PARAMETERS = {
    "p_gain": "gains.<joint>.p",
    "i_gain": "gains.<joint>.i",
    "d_gain": "gains.<joint>.d",
    "i_clamp_max": "gains.<joint>.i_clamp_max",
    "i_clamp_min": "gains.<joint>.i_clamp_min",
    "error_deadband": "gains.<joint>.error_deadband",
    "feedback_inertia": "feedback_inertia.<joint>",
    "dead_time": "dead_time",
    "hardware_adds_gravity": "hardware_compensates_gravity",
    "effort_limit": "effort_limits.<joint>",
    "torque_rate_limit": "torque_rate_limits.<joint>",
    "velocity_limit": "velocity_limit_scale",
    "margin": "soft_limits.<joint>.margin",
    "limit_stiffness": "soft_limits.stiffness",
    "max_position_error": "max_position_errors.<joint>",
    "saturation_timeout": "saturation_timeout",
    "max_deceleration": "constraints.<joint>.max_deceleration_on_cancel",
    "blend_time": "activation.blend_time",
    "guiding_damping": "gravity_compensation.damping",
    "max_velocity": "motion_bounds.velocity",
    "max_velocity_error": "motion_bounds.velocity_error",
    "max_driving_torque": "motion_bounds.driving_torque",
    "max_driving_power": "motion_bounds.driving_power",
    "max_contact_torque": "motion_bounds.contact_torque",
    "observer_gain": "collision_detection.gain",
    "max_external_torque": "collision_detection.threshold.<joint>",
}


class Desired(Rows):
    """What a trajectory asks for at a time: position, its derivatives by trajectory time, and
    effort."""

    desired_position: Vector
    desired_velocity: Vector
    desired_acceleration: Vector
    desired_effort: Vector


class State(Desired):
    """State of the control step. The desired motion is by time once it is scaled."""

    # The errors and the law (laws.py). Errors are unfiltered: predict_state
    # and ControllerState.measured compute the measured state from them. What acts on the feedback
    # alone changes `feedback` only.
    position_error: Vector
    velocity_error: Vector
    integral: Vector
    feedback: Vector
    model_position: Vector  # state and acceleration for which the model's torque is computed
    model_velocity: Vector
    model_acceleration: Vector
    torque: Vector
    gravity_torque: Vector
    guided: float  # 1 while a hand guides the arm, and the desired position follows it
    feedback_share: float  # of the feedback, in force
    # State that the torque is computed for: at the moment when the torque acts, or from the model
    # while no state comes.
    predicted_position: Vector
    predicted_velocity: Vector

    # The trajectory (trajectory.py) [s].
    last_time: float
    last_trajectory_time: float
    segment: float
    behind: float  # by how much trajectory time is behind
    target_scaling: float
    leading_scaling: float
    scaling: float
    scaling_rate: float
    unscaled_until: float
    path_end: float  # time from which the trajectory is at rest
    pause_delay: float  # by which pauses of the states have delayed the motion
    pause_lasts: float  # 1 while trajectory time does not run at its target yet since a pause

    # The motion (motion.py).
    start_time: float
    end_time: float
    violating_joint: float
    violating_quantity: float
    violation: float
    violated_tolerance: float

    # Measured states (belief.py).
    last_position: Vector
    last_velocity: Vector
    last_measured: float  # [s]
    jumping_joint: float
    standstill: float  # distance that joints should have moved since positions changed last
    doubted_position: Vector  # of the last state that was not believed
    doubted_at: float  # its time [s]; NaN for none
    rests_since: float  # of an arm that is only predicted [s]; NaN if it is not, or moves

    # The output stage (output_stage.py).
    blend_offset: Vector  # torque before the start that has yet to fade
    blend_start: float  # time when it begins to fade [s]; NaN for the next step
    limit_acceleration: Vector  # that limits ask for
    command: Vector  # the last torque that left; NaN for none
    previous_command: Vector  # `command` before the last step
    saturated_since: Vector  # time for which it has been at its limit [s]
    position_limited: Vector  # time in all for which each stage was at work [s]
    velocity_limited: Vector
    saturated: Vector
    rate_limited: Vector
    held_inertia: Vector  # inertia that a joint feels with the other joints held
    free_inertia: Vector  # and with these free
    rate_step: float  # longest time that the rate limit counts in the next step [s]
    let_go_damping: Vector  # of a joint in an arm that was let go; 0 where that is not allowed

    # Shaking (step.py): the side to which a joint was last faster than it should be, and how often
    # that has changed.
    shaken_side: Vector
    reversals: Vector

    # The momentum observer (momentum_observer.py).
    residual: Vector  # external torque
    momentum: Vector  # of the last state
    momentum_rate: Vector  # without the actuators' torque
    next_momentum: Vector  # of the present state
    next_rate: Vector
    acting_torque: Vector  # of the actuators, a dead time behind `last_command`
    last_command: Vector
    filtered_command: Vector  # the command through the filter of the residual
    observed_at: float  # time of the last observed state [s]; NaN for none

    # Bounds of the motion (motion_watch.py).
    smooth_velocity_error: Vector
    moved_by_position: Vector  # of late
    moved_by_velocity: Vector
    position_rate: Vector  # velocity by positions
    velocity_noise: Vector  # standard deviation, set from outside; NaN while it is not known
    residual_noise: Vector  # set with it
    watched_position: Vector  # of the last state
    watched_velocity: Vector
    contradicting_for: Vector  # [s]
    sliding_way: Vector  # in which a joint is desired to slide
    sliding_for: Vector  # time for which it has slid that way [s]
    sliding_residual: Vector  # that goes with it
    found_residual: Vector  # when a bound was violated last
    found_command: Vector
    unrest: float  # share of the last second in which a held joint has moved

    # An arrest (arrest.py).
    braked_since: float  # time from which braking acts [s]; NaN for none
    arrest_speed: Vector  # of each joint before it
    arrest_peak: Vector  # largest speed until braking acted

    def begin_anew(self) -> None:
        """Forgets the desired motion, its errors and what was found in it. The target of the
        scaling stays: another thread may be setting it."""
        for name in _OF_A_MOTION:
            setattr(self, name, 0.0)


_OF_A_MOTION = (
    *("desired_position", "desired_velocity", "desired_acceleration", "desired_effort"),
    *("position_error", "velocity_error", "integral", "feedback"),
    *("model_position", "model_velocity", "model_acceleration", "torque", "gravity_torque"),
    *("last_time", "last_trajectory_time", "segment", "behind"),
    *("leading_scaling", "scaling", "scaling_rate", "unscaled_until", "start_time", "end_time"),
    *("violating_joint", "violating_quantity", "violation", "violated_tolerance"),
)


class Arm(Record):
    """What there is once for an arm: where its model, its trajectory and its code are, and what its
    steps have found."""

    # The model and the workspace.
    bodies_at: int = 0
    body_count: int = 0
    body_size: int = 0
    memory_at: int = 0
    memory_rows: int = 0
    memory_columns: int = 0
    matrix_at: int = 0

    # The trajectory that is followed (trajectory.py).
    starts_at: int = 0
    coefficients_at: int = 0
    segments: int = 0
    revision: int = 0  # how many there have been

    # Memory of stops (stopping.py).
    spare: int = 0  # the stop that is not followed
    stop_starts_at: int = 0
    stop_coefficients_at: int = 0
    line_starts_at: int = 0
    line_at: int = 0
    shift_at: int = 0
    scratch_at: int = 0

    # Addresses of kernels.
    stop_code: int = 0
    step_code: int = 0
    watch_code: int = 0

    # The last states and commands (motion_watch.py).
    record_at: int = 0
    recorded: int = 0  # how many there have been

    # Steps.
    braced: int = 0  # which settings are in force; 1: those that hold any arm
    motion: int = 0  # number of the motion that is followed; 0 for none
    gave_way: int = 0  # how often the desired position was taken from the arm
    findings: int = 0  # how many there have been
    outcome: int = 0  # of the last step of a measured state
    predicting: bool = False  # the last torques were for a predicted state
    gaps: int = 0  # how often that has begun
    watch: int = 0  # which bounds the motion has, see motion_watch.py
    powerless: bool = False  # the controller has let go of the arm
    suspected: bool = False  # the residual of the last state was beyond a bound
    is_restless: bool = False  # an arm that is held does not stand still; see unrest.py


class Finding(Record):
    """What a step has found."""

    kind: int = 0
    ended: int = 0  # number of the motion that it ended; 0 for none
    joint: int = 0
    quantity: int = 0  # 0 for its position, 1 for its velocity
    excess: float = 0.0
    allowed: float = 0.0
    found_at: float = 0.0  # trajectory time [s]
    moving_at: float = 0.0  # velocity of the joint
    external_torque: float = 0.0  # at the joint
    late_by: float = 0.0  # delay of the motion by pauses of the states [s]


# Kinds of findings. Of motion.py: the motion goes on, has ended well, or has violated a tolerance;
# of step.py: the arm was torn away, torque was at its limit for too long, or a joint shakes; from
# outside a step: an emergency stop, or an interpreter that stands still.
UNDER_WAY, REACHED, PATH_VIOLATED, GOAL_VIOLATED = range(4)
TORN_AWAY, PRESSED, SHAKEN, STOPPED, HUNG = range(4, 9)
# Of motion_watch.py: something is in the way of a joint; positions and velocities contradict each
# other; a joint is too fast, or too far from its desired velocity; something drives a joint, or the
# whole arm; an external torque beyond its threshold.
BLOCKED, CONTRADICTED, TOO_FAST, RUNAWAY, DRIVEN, POWERED, COLLIDED = range(9, 16)
VIOLATIONS = range(CONTRADICTED, COLLIDED + 1)
# Of arrest.py: braking did not help, and the controller has let go of the arm.
LET_GO = 16
RESTLESS = 17  # a joint moves although it is held; see unrest.py
CALM = 18  # it stands still again
MOST_FINDINGS = 64  # that are kept

# Columns of the recorded states: the time; then positions, velocities and the command that answers
# them, of all joints.
RECORD_TIME, RECORD_STATE = 0, 1
RECORD_ROWS = 600
