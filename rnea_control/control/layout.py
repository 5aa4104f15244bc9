"""The rows of the arrays that the control step works on."""

from rnea_control.parameters.table import TICK_ROWS, tick_row

# Rows of the settings array, one column a joint. First those that are parameters; of these without
# a joint in their name, entry 0 is that of the arm.
P_GAIN, I_GAIN, D_GAIN = (tick_row(f"gains.<joint>.{name}") for name in ("p", "i", "d"))
I_CLAMP_MAX = tick_row("gains.<joint>.i_clamp_max")
I_CLAMP_MIN = tick_row("gains.<joint>.i_clamp_min")
FEEDBACK_INERTIA, DEAD_TIME = tick_row("feedback_inertia.<joint>"), tick_row("dead_time")
HARDWARE_ADDS_GRAVITY = tick_row("hardware_compensates_gravity")
# Limits, times what the model and other parameters say; a velocity limit of infinity is none.
EFFORT_LIMIT = tick_row("effort_limits.<joint>")
TORQUE_RATE_LIMIT = tick_row("torque_rate_limits.<joint>")
VELOCITY_LIMIT = tick_row("velocity_limit_scale")
MARGIN, LIMIT_STIFFNESS = tick_row("soft_limits.<joint>.margin"), tick_row("soft_limits.stiffness")
MAX_POSITION_ERROR = tick_row("max_position_errors.<joint>")
SATURATION_TIMEOUT = tick_row("saturation_timeout")
# Bounds of the motion, see motion_watch.py; infinity is none.
MAX_VELOCITY = tick_row("motion_bounds.velocity")
MAX_VELOCITY_ERROR = tick_row("motion_bounds.velocity_error")
MAX_DRIVING_TORQUE = tick_row("motion_bounds.driving_torque")
MAX_DRIVING_POWER = tick_row("motion_bounds.driving_power")
MAX_CONTACT_TORQUE = tick_row("motion_bounds.contact_torque")
OBSERVER_GAIN = tick_row("collision_detection.gain")
MAX_EXTERNAL_TORQUE = tick_row("collision_detection.threshold.<joint>")
MAX_DECELERATION = tick_row("constraints.<joint>.max_deceleration_on_cancel")
BLEND_TIME = tick_row("activation.blend_time")
GUIDING_DAMPING = tick_row("gravity_compensation.damping")
# Of the model; friction has the three rows that `friction_torque` takes.
CONTINUOUS, LOWER_LIMIT, UPPER_LIMIT, SOFT_LOWER, SOFT_UPPER, STATE_VELOCITY_LIMIT, FRICTION = (
    range(len(TICK_ROWS), len(TICK_ROWS) + 7)
)
# Of the arm, in entry 0.
LAW, CHECK_JUMPS = FRICTION + 3, FRICTION + 4
# The speed that bounds of the motion are parts of: the velocity limit, if there is one.
REFERENCE_SPEED = FRICTION + 5
# How far a joint may be from the end of a goal without a word.
END_SLACK = FRICTION + 6
SETTINGS_ROWS = FRICTION + 7

# Rows of the state array, one column a joint; from LAST_TIME on, entry 0 is that of the arm.
DESIRED_POSITION, DESIRED_VELOCITY, DESIRED_ACCELERATION, DESIRED_EFFORT = range(4)
# The errors are unfiltered: predict_state and ControllerState.measured take the measured state out
# of them. What shall act on the feedback alone changes FEEDBACK only.
POSITION_ERROR, VELOCITY_ERROR, INTEGRAL, FEEDBACK = range(4, 8)
MODEL_POSITION, MODEL_VELOCITY, MODEL_ACCELERATION, TORQUE, GRAVITY_TORQUE = range(8, 13)
LAST_TIME, LAST_TRAJECTORY_TIME, SEGMENT = range(13, 16)
# Of trajectory.py: by how much trajectory time is behind, and until when it is not scaled.
BEHIND, TARGET_SCALING, LEADING_SCALING, SCALING, SCALING_RATE, UNSCALED_UNTIL = range(16, 22)
# Of motion.py: when the motion starts and ends, and what was found.
START_TIME, END_TIME = range(22, 24)
VIOLATING_JOINT, VIOLATING_QUANTITY, VIOLATION, VIOLATED_TOLERANCE = range(24, 28)
# Whether a hand guides the arm, and the desired position follows it.
GUIDED = 28
# The state that the torque is computed for, one column a joint: predicted to the moment when the
# torque acts, or from the model while none comes.
PREDICTED_POSITION, PREDICTED_VELOCITY = range(29, 31)
# Of belief.py: the last measured state, one column a joint, its time, which joint jumped, and
# how far joints should have moved since positions changed last.
LAST_POSITION, LAST_VELOCITY, LAST_MEASURED, JUMPING_JOINT, STANDSTILL = range(31, 36)
# Of output_stage.py: the torque before the start that has yet to fade out, and when it begins to
# fade (entry 0; NaN for the next step); the acceleration that limits ask for, the last torque that
# left (NaN for none), for how long it has been at its limit, for how long in all each stage was at
# work, and the inertia that a joint feels, with the other joints held and free.
BLEND_OFFSET, BLEND_START, LIMIT_ACCELERATION, COMMAND, SATURATED_SINCE = range(36, 41)
POSITION_LIMITED, VELOCITY_LIMITED, SATURATED, RATE_LIMITED = range(41, 45)
HELD_INERTIA, FREE_INERTIA = range(45, 47)
# The longest time that the rate limit counts in the next step (entry 0).
RATE_STEP = 47
# Of belief.py: the last state that was not believed, and its time; NaN for none.
DOUBTED_POSITION, DOUBTED_AT = range(48, 50)
# Of step.py: to which side a joint was last faster than it should be, and how often that changed.
SHAKEN_SIDE, REVERSALS = range(50, 52)
# Of belief.py: since when the predicted arm has been at rest; NaN if it is not, or measured.
RESTS_SINCE = 52
# Of trajectory.py: from when on the trajectory is at rest.
PATH_END = 53
# Of momentum_observer.py: the external torque that it sees; momentum, and its rate without actuator
# torque, of the last state and of the present one; the torque that the actuators apply, a dead time
# behind the command that left last; when the last state was observed (entry 0; NaN for none).
RESIDUAL, MOMENTUM, MOMENTUM_RATE, NEXT_MOMENTUM, NEXT_RATE = range(54, 59)
ACTING_TORQUE, LAST_COMMAND, OBSERVED_AT = range(59, 62)
# The command as the residual sees it: through the same filter.
FILTERED_COMMAND = 62
# Of motion_watch.py: the smoothed velocity error; how far the joint has moved of late by its
# positions, and by its velocities; its velocity by its positions; the noise of the measured
# velocity, which is set from outside (NaN while it is not known).
SMOOTH_VELOCITY_ERROR, MOVED_BY_POSITION, MOVED_BY_VELOCITY = range(63, 66)
POSITION_RATE, VELOCITY_NOISE = range(66, 68)
# The last state; for how long positions and velocities have contradicted each other.
WATCHED_POSITION, WATCHED_VELOCITY, CONTRADICTING_FOR = range(68, 71)
# Which way a joint is desired to slide, for how long it has slid that way, and the residual that
# goes with that.
SLIDING_WAY, SLIDING_FOR, SLIDING_RESIDUAL = range(71, 74)
# Residual and filtered command when a bound was violated last.
FOUND_RESIDUAL, FOUND_COMMAND = range(74, 76)
# Of arrest.py: since when braking acts on an arm that is being arrested (entry 0; NaN if it is
# not), how fast each joint was before, and at most until then; and how much of the feedback is in
# force (entry 0).
BRAKED_SINCE, ARREST_SPEED, ARREST_PEAK, FEEDBACK_SHARE = range(76, 80)
# The damping of a joint in an arm that was let go; 0 where that is not allowed.
LET_GO_DAMPING = 80
# Of motion_watch.py: the noise of the residual, set with that of the velocity.
RESIDUAL_NOISE = 81
UNREST = 82  # share of the last second in which a held joint has moved (entry 0)
# Of trajectory.py: by how much a pause of the states has delayed the motion, and whether trajectory
# time does not run at its target yet since (entry 0).
PAUSE_DELAY, PAUSE_LASTS = 83, 84
PREVIOUS_COMMAND = 85  # of output_stage.py: COMMAND before the last step
STATE_ROWS = 86

# Rows of the numbers array. Of trajectory.py: where the trajectory stands, of how many segments,
# and how many there have been. Of stopping.py: which stop is spare, where stops are planned, and by
# which code.
STARTS_AT, COEFFICIENTS_AT, SEGMENTS, REVISION, SPARE = range(5)
STOP_STARTS_AT, STOP_COEFFICIENTS_AT, LINE_STARTS_AT, LINE_AT, SHIFT_AT, SCRATCH_AT = range(5, 11)
STOP_CODE = 11
# The model and the workspace.
BODIES_AT, BODY_COUNT, BODY_SIZE, MEMORY_AT, MEMORY_ROWS, MEMORY_COLUMNS, MATRIX_AT = range(12, 19)
# Of step.py: the code of a step, which of the settings are in force (1: those that hold any
# arm), the number of the motion that is followed (0 for none), how often the desired position was
# taken from the arm, how many findings there have been, what the last step of a measured state has
# returned, whether the last torques were for a predicted state, and how often that has begun.
STEP_CODE, BRACED, MOTION, GAVE_WAY, FINDINGS, OUTCOME, PREDICTING, GAPS = range(19, 27)
# Of mode.py: which bounds the motion has, see motion_watch.py.
WATCH = 27
# Of step.py: whether the controller has let go of the arm, and the code of `watch`.
POWERLESS, WATCH_CODE = 28, 29
# Of motion_watch.py: where the last states and commands are recorded, and how many there have been.
RECORD_AT, RECORDED = 30, 31
# Whether the residual of the last state was beyond a bound.
SUSPECTED = 32
IS_RESTLESS = 33  # 1 while an arm that is held does not stand still; see unrest.py
NUMBERS = 34

# Columns of a finding: what was found, the motion that it ended, the joint, the quantity, the
# violation and the tolerance, in the order of the rows from VIOLATING_JOINT on, and the trajectory
# time of it.
KIND, ENDED, JOINT, QUANTITY, EXCESS, ALLOWED, FOUND_AT = range(7)
# The velocity of the joint, and the external torque at it.
MOVING_AT, EXTERNAL_TORQUE = 7, 8
LATE_BY = 9  # delay of the motion by pauses of the states [s]
FINDING_SIZE = 10
# The kinds. Of motion.py: the motion goes on, has ended well, or has violated a tolerance; of
# step.py: the arm was torn away, torque was at its limit for too long, or a joint shakes; from
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
# Of a recorded state: its time; then positions, velocities and the command that answers it.
RECORD_ROWS, RECORD_TIME, RECORD_STATE = 600, 0, 1
