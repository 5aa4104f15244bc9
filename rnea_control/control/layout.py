"""The arrays that the control step works on: what is in which row."""

# Rows of the settings array, one column a joint; of the last two, entry 0 is that of the arm.
P_GAIN, I_GAIN, D_GAIN, I_CLAMP_MAX, I_CLAMP_MIN, EFFORT_LIMIT, CONTINUOUS = range(7)
FRICTION = 7  # three rows: what `friction_torque` takes
LAW, HARDWARE_ADDS_GRAVITY = range(10, 12)
SETTINGS_ROWS = 12

# Rows of the state array, one column a joint; from LAST_TIME on, entry 0 is that of the arm.
DESIRED_POSITION, DESIRED_VELOCITY, DESIRED_ACCELERATION, DESIRED_EFFORT = range(4)
POSITION_ERROR, VELOCITY_ERROR, INTEGRAL, FEEDBACK = range(4, 8)
MODEL_POSITION, MODEL_VELOCITY, MODEL_ACCELERATION, TORQUE, GRAVITY_TORQUE = range(8, 13)
LAST_TIME, LAST_TRAJECTORY_TIME, SEGMENT = range(13, 16)
# Of time_scaling.py: by how much trajectory time is behind, and until when it is not scaled.
BEHIND, TARGET_SCALING, LEADING_SCALING, SCALING, SCALING_RATE, UNSCALED_UNTIL = range(16, 22)
# Of tolerances.py: whether a trajectory is checked, when it starts and ends, and what was found.
CHECKED, START_TIME, END_TIME = range(22, 25)
VIOLATING_JOINT, VIOLATING_QUANTITY, VIOLATION, VIOLATED_TOLERANCE = range(25, 29)
STATE_ROWS = 29
