"""Data of the control step: numbers of the arm, settings, state and findings.

Kernels and Python read and write the data by the same names; see jit/record.py and jit/rows.py.
Rows have a column for each joint.
"""

from __future__ import annotations

from rnea_control.array_types import Matrix, Vector
from rnea_control.jit.record import Record, numbers
from rnea_control.jit.rows import Rows, rows


class Settings(Rows):
    """Settings of the control step. Effort and velocity limits include their scale factors; an
    infinite velocity limit is no limit."""

    p_gain: Vector
    i_gain: Vector
    d_gain: Vector
    i_clamp_max: Vector
    i_clamp_min: Vector
    error_deadband: Vector  # position error that the integral ignores [rad] or [m]
    feedback_inertia: Vector  # least inertia of the feedback [kg m^2] or [kg]; NaN: `added_inertia`
    dead_time: float  # [s]
    disturbance_bandwidth: float  # [rad/s]; 0: no disturbance is compensated, NaN: a default
    max_disturbance: Vector  # [Nm] or [N]
    hardware_adds_gravity: float  # 1 or 0
    effort_limit: Vector  # [Nm] or [N]
    torque_rate_limit: Vector  # [Nm/s] or [N/s]
    velocity_limit: Vector  # [rad/s] or [m/s]
    margin: Vector  # width of the margin before a position limit [rad] or [m]
    limit_stiffness: float  # stiffness of the soft position limits [1/s^2]
    max_position_error: Vector  # [rad] or [m]
    saturation_timeout: float  # [s]
    max_deceleration: Vector  # [rad/s^2] or [m/s^2]
    blend_time: float  # [s]
    guiding_damping: float  # part of the velocity gain while a hand guides the arm

    # The joint stream (joint_stream.py).
    stream_bandwidth: float  # [rad/s]
    stream_timeout: float  # time without a target after which the arm comes to rest [s]
    stream_max_velocity: Vector
    stream_max_acceleration: Vector
    stream_max_jerk: Vector  # infinity is no bound
    stream_max_distance: Vector  # distance of a target from the desired position [rad] or [m]
    control_timeout: float  # time without a planner's gains after which the arm brakes [s]

    # Task space (task_space.py, pose_stream.py). Six numbers are of the x, y and z directions and
    # rotations in the root link's frame, two numbers are of all directions and all rotations.
    task_law: float  # number of the law of references of poses
    task_link: float  # row of the tip among the links of the model
    task_stiffness: Vector = numbers(6)  # [N/m], [Nm/rad]
    task_damping_ratio: float
    task_error_clip: Vector = numbers(2)  # [m], [rad]
    task_max_force: Vector = numbers(2)  # [N], [Nm]
    task_max_power: float  # [W]
    task_bandwidth: float  # [rad/s]
    task_max_velocity: Vector = numbers(2)  # [m/s], [rad/s]
    task_max_acceleration: Vector = numbers(2)  # [m/s^2], [rad/s^2]
    task_max_distance: Vector = numbers(2)  # [m], [rad]
    task_box: Vector = numbers(6)  # lower, then upper bounds of the tip's position [m]
    nullspace_stiffness: float  # [Nm/rad] or [N/m]
    nullspace_weight: Vector

    # Bounds of the motion, see motion_watch.py; infinity is none.
    max_velocity: float
    max_velocity_error: float
    max_driving_torque: float
    max_driving_power: float
    max_contact_torque: float
    unmodeled_payload: float  # mass that may appear at a link [kg]
    payload_link: float  # row of that link among the links of the model
    observer_gain: float
    max_external_torque: Vector

    # Values from the model.
    continuous: Vector  # 1 for a continuous joint, else 0
    lower_limit: Vector
    upper_limit: Vector
    soft_lower: Vector
    soft_upper: Vector
    state_velocity_limit: Vector
    friction: Matrix = rows(3)  # parameters of `friction_torque`
    reference_speed: Vector  # velocity limit, or a default where there is none [rad/s] or [m/s]
    end_slack: Vector  # distance from a goal without tolerance that is not reported [rad] or [m]

    own: Matrix = rows(8)  # parameters of the law of a user (own_law.py)
    joint_law: float  # number of the law of references of joints
    check_jumps: float  # 1 or 0


MOST_OWN = Settings.fields["own"].height  # parameters of a law of a user, at most
SettingsStack = Settings  # settings of the controller, and settings that hold any arm

# Parameters of the entries of `task_stiffness`.
STIFFNESSES = tuple(f"task.k_{way}_{axis}" for way in ("pos", "rot") for axis in "xyz")
# Rows of the settings that are parameters, unchanged; the step reads no other parameter.
PARAMETERS = {
    "p_gain": "gains.<joint>.p",
    "i_gain": "gains.<joint>.i",
    "d_gain": "gains.<joint>.d",
    "i_clamp_max": "gains.<joint>.i_clamp_max",
    "i_clamp_min": "gains.<joint>.i_clamp_min",
    "error_deadband": "gains.<joint>.error_deadband",
    "feedback_inertia": "feedback_inertia.<joint>",
    "dead_time": "dead_time",
    "disturbance_bandwidth": "disturbance_observer.bandwidth",
    "max_disturbance": "disturbance_observer.max.<joint>",
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
    "stream_bandwidth": "stream.bandwidth",
    "stream_timeout": "stream.target_timeout",
    "stream_max_velocity": "stream.max_velocity.<joint>",
    "stream_max_acceleration": "stream.max_acceleration.<joint>",
    "stream_max_jerk": "stream.max_jerk.<joint>",
    "stream_max_distance": "stream.max_distance",
    "control_timeout": "control_timeout",
    "task_damping_ratio": "task.damping_ratio",
    "task_error_clip": "task.error_clip",
    "task_max_force": "task.max_force",
    "task_max_power": "task.max_power",
    "task_bandwidth": "task.bandwidth",
    "task_max_velocity": "task.max_velocity",
    "task_max_acceleration": "task.max_acceleration",
    "task_max_distance": "task.max_distance",
    "task_box": "task.box",
    "nullspace_stiffness": "nullspace.stiffness",
    "nullspace_weight": "nullspace.weights.<joint>",
    "max_velocity": "motion_bounds.velocity",
    "max_velocity_error": "motion_bounds.velocity_error",
    "max_driving_torque": "motion_bounds.driving_torque",
    "max_driving_power": "motion_bounds.driving_power",
    "max_contact_torque": "motion_bounds.contact_torque",
    "unmodeled_payload": "motion_bounds.unmodeled_payload",
    "observer_gain": "collision_detection.gain",
    "max_external_torque": "collision_detection.threshold.<joint>",
}


class Desired(Rows):
    """Sample of a trajectory at a time: position, its derivatives by trajectory time, effort."""

    desired_position: Vector
    desired_velocity: Vector
    desired_acceleration: Vector
    desired_effort: Vector


class State(Desired):
    """State of the control step. The desired motion is by time once it is scaled."""

    # The errors (feedback.py) and the law (laws.py). Errors are unfiltered: predict_state
    # and ControllerState.measured compute the measured state from them. Changes of the feedback
    # alone are in `feedback` only.
    position_error: Vector  # [rad] or [m]
    velocity_error: Vector  # [rad/s] or [m/s]
    integral: Vector
    feedback: Vector
    added_inertia: Vector  # inertia added in the feedback, set from outside [kg m^2] or [kg]
    added_share: float  # part of it that is in force
    state_age: float  # age of the measured state, set from outside; NaN if it is not known [s]
    longest_age: float  # largest age for which `added_inertia` and `bandwidth` are [s]
    model_position: Vector  # state and acceleration for which the model's torque is computed
    model_velocity: Vector
    model_acceleration: Vector
    torque: Vector  # [Nm] or [N]
    gravity_torque: Vector  # [Nm] or [N]
    reference: float  # number of the reference (references.py)
    feedback_share: float  # part of the feedback that is in force
    # State that the torque is computed for: at the moment when the torque acts, or from the model
    # while no state comes.
    predicted_position: Vector
    predicted_velocity: Vector

    # The trajectory (trajectory.py) [s].
    last_time: float
    last_trajectory_time: float
    segment: float
    behind: float  # delay of trajectory time
    target_scaling: float
    leading_scaling: float
    scaling: float
    scaling_rate: float
    unscaled_until: float
    path_end: float  # time from which the trajectory is at rest
    pause_delay: float  # delay of the motion by pauses of the states
    pause_lasts: float  # 1 while trajectory time runs below its target since a pause

    # The joint stream (joint_stream.py): targets, each carried on by its velocity for its span.
    # Under a planner's gains (gains_stream.py): the state x_0 about which they are, and its torque.
    target: Vector  # [rad] or [m]
    target_rate: Vector  # [rad/s] or [m/s]
    target_effort: Vector  # [Nm] or [N]
    target_at: Vector  # time of the target [s]
    target_span: Vector  # [s]
    stream_at: float  # time of the last targets [s]
    stream_step: float  # time for which the last accelerations were chosen [s]

    # The pose stream (pose_stream.py). A pose is position [m] and quaternion in the root link's
    # frame, a twist linear [m/s] and angular [rad/s] velocity.
    desired_pose: Vector = numbers(7)
    desired_twist: Vector = numbers(6)
    desired_twist_rate: Vector = numbers(6)  # [m/s^2], [rad/s^2]
    target_pose: Vector = numbers(7)
    target_twist: Vector = numbers(6)
    pose_at: float  # time of the target pose [s]
    pose_span: float  # time for which the target is carried on by its twist [s]
    posture: Vector  # desired position in the motions that leave the tip where it is

    # Task space (tip.py, task_space.py), for the state that the torque is computed for.
    pose: Vector = numbers(7)
    twist: Vector = numbers(6)
    task_error: Vector = numbers(6)  # way to the desired pose, and rotation vector [m], [rad]
    wrench: Vector = numbers(6)  # force and moment of the stiffness and the target wrench
    target_wrench: Vector = numbers(6)  # in force, in the root link's frame [N], [Nm]
    asked_wrench: Vector = numbers(6)  # that of the last message
    wrench_at: float  # time of that message [s]
    stiffness: Vector = numbers(36)  # in force; symmetric, row by row [N/m], [N/rad], [Nm/rad]
    target_stiffness: Vector = numbers(36)  # that of the last message or of the settings
    stiffness_setting: Vector = numbers(6)  # `task_stiffness` that has set it last
    jacobian: Matrix = rows(6)  # linear, then angular velocity of the tip
    basis: Matrix = rows(6)  # Q^T
    factor: Vector = numbers(36)  # R
    inverse_inertia: Vector = numbers(36)  # regularized, as its Cholesky factor
    regularization: float  # addition to the inverse inertia; 0 away from singularities
    condition: float  # condition number of the Jacobian; 1 where it is below 17
    weak_direction: Vector = numbers(6)  # motion of the tip that it moves least
    singular_gradient: Vector = numbers(6)  # gradient of its smallest singular value
    modes: Vector = numbers(36)  # eigenvectors of the stiffness, scaled by the inertia
    damped_stiffness: Vector = numbers(36)  # stiffness that the damping is for
    scaled_stiffness: Vector = numbers(36)  # the same, scaled by the inertia
    work: Vector = numbers(36)  # scratch memory
    coordinates: Vector = numbers(6)  # scratch memory
    null_torque: Vector  # [Nm] or [N]

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
    doubted_position: Vector  # position in the last state that was doubted
    doubted_at: float  # time of that state [s]; NaN for none
    rests_since: float  # time since which a predicted arm is at rest [s]; NaN if it moves

    # The output stage (output_stage.py).
    blend_offset: Vector  # torque before the start that has yet to fade
    blend_start: float  # time when it begins to fade [s]; NaN for the next step
    limit_acceleration: Vector  # acceleration by the limits [rad/s^2] or [m/s^2]
    command: Vector  # the last torque that left; NaN for none
    previous_command: Vector  # `command` before the last step
    saturated_since: Vector  # time for which a torque has been at its limit [s]
    position_limited: Vector  # total time for which each stage was at work [s]
    velocity_limited: Vector
    saturated: Vector
    rate_limited: Vector
    held_inertia: Vector  # inertia of a joint with the other joints held
    free_inertia: Vector  # inertia of a joint with the other joints free
    rate_step: float  # longest time that the rate limit counts in the next step [s]
    let_go_damping: Vector  # damping of a joint after letting go; 0 where it is not allowed

    # Shaking (step.py): the sign of a joint's last large velocity error, and the decaying count of
    # sign changes.
    shaken_side: Vector
    reversals: Vector

    # The momentum observer (momentum_observer.py).
    residual: Vector  # external torque [Nm] or [N]
    raw_residual: Vector  # the same, unfiltered: its mean since the state before
    momentum: Vector  # momentum of the last state
    momentum_rate: Vector  # its rate, without the actuators' torque
    next_momentum: Vector  # momentum of the present state
    next_rate: Vector
    acting_torque: Vector  # torque of the actuators, a dead time behind `last_command`
    last_command: Vector
    filtered_command: Vector  # the command through the filter of the residual
    observed_at: float  # time of the last observed state [s]; NaN for none

    # The disturbance observer (disturbance_observer.py).
    disturbance: Vector  # estimated external torque [Nm] or [N]
    compensation: Vector  # torque against it in `torque`
    bandwidth: Vector  # bandwidth of the estimate, set from outside [rad/s]; 0: no estimate
    standing_position: Vector  # position of a joint when it has moved last [rad] or [m]
    standing_disturbance: Vector  # its estimate at that position
    standing_gap: Vector  # most that the estimate was off since
    resting_side: Vector  # side of its place where a joint came to rest, a sign; 0 for none
    near: Vector  # position error within which a joint that rests is near its place [rad] or [m]

    # Bounds of the motion (motion_watch.py).
    smooth_velocity_error: Vector
    moved_by_position: Vector  # recent distance by positions [rad] or [m]
    moved_by_velocity: Vector  # recent distance by velocities [rad] or [m]
    position_rate: Vector  # velocity by positions
    velocity_noise: Vector  # standard deviation, set from outside; NaN while it is not known
    residual_noise: Vector  # standard deviation, set together with `velocity_noise`
    watched_position: Vector  # position in the last state
    watched_velocity: Vector
    contradicting_for: Vector  # time for which positions contradict velocities [s]
    sliding_way: Vector  # direction in which a joint is desired to slide, 1 or -1; 0 for none
    sliding_for: Vector  # time for which it has slid in that direction [s]
    sliding_residual: Vector  # residual of the sliding joint
    payload_weight: Vector  # weight of the payload that explains the residual [Nm] or [N]
    found_residual: Vector  # residual when a bound was violated last
    found_command: Vector
    unrest: float  # share of the last second in which a held joint has moved

    # An arrest (arrest.py).
    braked_since: float  # time from which braking acts [s]; NaN for none
    arrest_speed: Vector  # speed of each joint at the beginning, as a part of reference_speed
    arrest_peak: Vector  # largest speed until braking acted, as a part of reference_speed

    def clear_motion(self) -> None:
        """Sets the desired motion, its errors, the feedback and the model's state to zero."""
        for name in _DESIRED:
            setattr(self, name, 0.0)

    def begin_anew(self) -> None:
        """Forgets the desired motion, its errors and what was found in it. The target of the
        scaling stays: another thread may be setting it."""
        for name in _OF_A_MOTION:
            setattr(self, name, 0.0)


# Names of `State`.
_DESIRED = (
    *("desired_position", "desired_velocity", "desired_acceleration", "desired_effort"),
    *("position_error", "velocity_error", "integral", "feedback"),
    *("model_position", "model_velocity", "model_acceleration"),
)
_OF_A_MOTION = (
    *_DESIRED,
    *("torque", "gravity_torque"),
    *("last_time", "last_trajectory_time", "segment", "behind"),
    *("leading_scaling", "scaling", "scaling_rate", "unscaled_until", "start_time", "end_time"),
    *("violating_joint", "violating_quantity", "violation", "violated_tolerance"),
)


class Arm(Record):
    """Data that exist once for an arm: addresses of its model, its trajectory and its code, and
    results of its steps."""

    # The model and the workspace.
    bodies_at: int = 0
    body_count: int = 0
    body_size: int = 0
    memory_at: int = 0
    memory_rows: int = 0
    memory_columns: int = 0
    matrix_at: int = 0
    gains_at: int = 0
    links_at: int = 0
    link_count: int = 0

    # The trajectory that is followed (trajectory.py).
    starts_at: int = 0
    coefficients_at: int = 0
    segments: int = 0
    revision: int = 0  # number of trajectories so far

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
    own_code: int = 0  # the law of a user; 0 for none

    # The last states and commands (motion_watch.py).
    record_at: int = 0
    recorded: int = 0  # number of recorded states so far

    # Steps.
    braced: int = 0  # index of the settings in force; 1: the settings that hold any arm
    motion: int = 0  # number of the motion that is followed; 0 for none
    gave_way: int = 0  # number of times that the desired position was taken from the arm
    findings: int = 0  # number of findings so far
    outcome: int = 0  # result of the last step of a measured state
    predicting: bool = False  # the last torques were for a predicted state
    gaps: int = 0  # number of times that predictions have begun
    watch: int = 0  # bounds of the motion, see motion_watch.py
    powerless: bool = False  # the controller has let go of the arm
    suspected: bool = False  # the residual of the last state was beyond a bound
    takes_streams: bool = False  # the mode allows a stream to begin
    takes_poses: bool = False  # the rate of the states allows the gains of the tip
    most_tip_frequency: float = 0.0  # largest natural frequency of the tip that it allows [rad/s]
    stream_waits: bool = False  # a stream begins only after a pause of its targets
    is_restless: bool = False  # an arm that is held does not stand still; see unrest.py


class Finding(Record):
    """Result of a step that has found something."""

    kind: int = 0
    ended: int = 0  # number of the motion that the finding ended; 0 for none
    joint: int = 0
    quantity: int = 0  # 0 for its position, 1 for its velocity
    excess: float = 0.0
    allowed: float = 0.0
    found_at: float = 0.0  # trajectory time [s]
    moving_at: float = 0.0  # velocity of the joint
    external_torque: float = 0.0  # external torque at the joint
    late_by: float = 0.0  # delay of the motion by pauses of the states [s]


# Kinds of findings.
# From motion.py:
UNDER_WAY = 0  # nothing found, the motion continues
REACHED = 1  # the motion has ended within its tolerances
PATH_VIOLATED = 2  # a path tolerance is violated
GOAL_VIOLATED = 3  # a goal tolerance is violated
# From step.py:
TORN_AWAY = 4  # the arm was torn away from its desired position
PRESSED = 5  # a torque was at its limit for too long
SHAKEN = 6  # a joint shakes
# From outside a step:
STOPPED = 7  # emergency stop
HUNG = 8  # the Python interpreter does not run
# From motion_watch.py:
BLOCKED = 9  # something is in the way of a joint
CONTRADICTED = 10  # positions and velocities contradict each other
TOO_FAST = 11  # a joint is too fast
RUNAWAY = 12  # a joint is too far from its desired velocity
DRIVEN = 13  # something drives a joint
POWERED = 14  # something drives the whole arm
COLLIDED = 15  # an external torque is beyond its threshold
VIOLATIONS = range(CONTRADICTED, COLLIDED + 1)
# From arrest.py:
LET_GO = 16  # braking did not help, and the controller has let go of the arm
# From unrest.py:
RESTLESS = 17  # a joint moves although it is held
CALM = 18  # the arm stands still again
# From stream_intake.py and joint_stream.py:
STREAM_BEGAN = 19  # a stream of targets replaces the motion
STREAM_ENDED = 20  # targets are missing, and the arm rests
# From gains_stream.py:
GAINS_ENDED = 21  # a planner's gains are missing

MOST_FINDINGS = 64  # number of findings that are kept

# Columns of the recorded states.
RECORD_TIME = 0  # time of the state [s]
RECORD_STATE = 1  # first of the positions, velocities and resulting commands of all joints
RECORD_ROWS = 600  # number of states that are kept
