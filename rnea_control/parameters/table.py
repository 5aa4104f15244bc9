"""All parameters of controller and sentinel except the control laws: each is one row, only here.

The users' documentation, the checks, a program's settings, and the control step's array (`in_tick`)
are made from the rows. `python -m rnea_control.parameters.table` prints the sentinel's.
"""

from __future__ import annotations

import math
from functools import partial

from rnea_control.parameters.parameter import Parameter, markdown

INF = math.inf
NAN = math.nan
OBSERVER = "disturbance_observer.bandwidth"  # name of a row that others set
DEFAULT = -1.0  # special value of a parameter for a default that depends on the robot
LONGEST_DEAD_TIME = 0.02  # longest prediction of a state from its velocity [s]
# Longest time without commands, [s]: an arm without commands for longer has fallen, also in
# lockstep with a slow machine.
LONGEST_TIMEOUT = 10.0

live = partial(Parameter, live=True)  # row that may change while the node runs
tuned = partial(live, in_tick=True)  # row that may change, and that the control step reads

# fmt: off
ROBOT = (
    Parameter("joints", list[str], None,
        "joints to control, in the order of the effort controller's `joints`; all others are "
        "locked"),
    live("gravity", list[float], [0.0, 0.0, -9.81],
        "acceleration of gravity in the root link's frame; other values for walls and ceilings",
        "m/s^2", at_least=-30.0, at_most=30.0, length=3),  # Jupiter's is 25
    Parameter("hardware_compensates_gravity", bool, False,
        "true if the hardware adds the gravity torque itself, as UR and Franka firmware does; "
        "commands then leave it out", in_tick=True),
    live("friction_compensation", bool, False,
        "add the friction torque of the joints to commands; overestimated friction makes a joint "
        "move by itself"),
    live("friction.<joint>.damping", float, DEFAULT,
        "viscous friction", "Nm s/rad or N s/m", at_least=0.0,
        special=(DEFAULT, "the `damping` of the URDF's `dynamics` tag", NAN)),
    live("friction.<joint>.coulomb", float, DEFAULT,
        "Coulomb friction", "Nm or N", at_least=0.0,
        special=(DEFAULT, "the `friction` of the URDF's `dynamics` tag", NAN)),
    live("friction.<joint>.offset", float, 0.0,
        "constant torque offset of the actuator", "Nm or N"),
    live("armature.<joint>", float, 0.0,
        "rotor inertia of the actuator times the gear ratio squared", "kg m^2 or kg", at_least=0.0,
        at_most=1000.0),  # reflected through the largest gears
    live("payload.link", str, "",
        "link that the payload is fixed to; set it together with mass and center of mass",
        special=("", "the link that the last of `joints` moves")),
    live("payload.mass", float, 0.0,
        "mass of the payload; set it together with its center of mass, while the arm is at rest; "
        "0 for no payload", "kg", at_least=0.0, at_most=5000.0),  # no industrial arm lifts more
    live("payload.center_of_mass", list[float], [0.0, 0.0, 0.0],
        "center of mass of the payload, in the link's frame", "m", at_least=-10.0, at_most=10.0,
        length=3),
    live("payload.inertia", list[float], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        "inertia of the payload about its center of mass: xx, xy, xz, yy, yz, zz, in axes "
        "parallel to the link's", "kg m^2", length=6),
    Parameter("robot_description", str, "",
        "URDF of the robot as text", special=("", "the topic robot_description")),
)

# Limits of every torque of controller and sentinel.
LIMITS = (
    live("effort_limit_scale", float, 1.0,
        "torques are clamped to the effort limits times this factor", above=0.0, at_most=1.0),
    tuned("effort_limits.<joint>", float, DEFAULT,
        "effort limit in place of the URDF's; `effort_limit_scale` applies to it too", "Nm or N",
        above=0.0, special=(DEFAULT, "the `effort` of the URDF's `limit` tag", NAN)),
    tuned("torque_rate_limits.<joint>", float, DEFAULT,
        "largest rate of change of the commands", "Nm/s or N/s", above=0.0, bound=True,
        special=(
            DEFAULT, "fifty times the effort limit in a second: from 0 to the limit in 20 ms", NAN
        )),
    tuned("soft_limits.<joint>.margin", float, 0.05,
        "distance before a position limit within which the joint is pushed back, unless desired "
        "there; at most a tenth of the range; 0: none", "rad or m",
        at_least=0.0),
    tuned("soft_limits.stiffness", float, 900.0,
        "stiffness of the soft limits per inertia, critically damped", "1/s^2", above=0.0),
    tuned("velocity_limit_scale", float, 1.0,
        "joints are braked beyond the URDF's velocity limit times this factor", above=0.0,
        bound=True),
    tuned("max_position_errors.<joint>", float, DEFAULT,
        "largest distance of the joint from its desired position; beyond it the motion ends, and "
        "the arm brakes and holds where it is", "rad or m", above=0.0, zero_is_none=True, special=(
            DEFAULT, "0.3 rad; sliding joints 0.03 m, at most a tenth of the range", NAN
        )),
    tuned("saturation_timeout", float, 0.5,
        "time at its limit after which a torque ends the motion: the arm brakes and holds where it "
        "is", "s", above=0.0, special=(0.0, "no bound", INF)),
    tuned("motion_bounds.velocity", float, 1.2,
        "fraction of a joint's velocity limit beyond which the controller goes into fault and "
        "brakes",
        above=0.0, special=(0.0, "no bound", INF)),
    tuned("motion_bounds.velocity_error", float, 0.7,
        "fraction of a joint's velocity limit; a larger velocity error leads to a fault", above=0.0,
        special=(0.0, "no bound", INF)),
    tuned("motion_bounds.driving_torque", float, 0.25,
        "fraction of a joint's effort limit; a larger external torque along the motion (person, "
        "wrong sign) leads to a fault; doubled in hand guiding", above=0.0,
        special=(0.0, "no bound", INF)),
    tuned("motion_bounds.driving_power", float, DEFAULT,
        "power of external torques along the motion, summed over the joints, that leads to a "
        "fault", "W", above=0.0,
        zero_is_none=True, special=(
            DEFAULT, "2.4 % of the power of all joints, effort limit times velocity limit", NAN
        )),
    tuned("motion_bounds.contact_torque", float, 0.25,
        "fraction of a joint's effort limit; a growing external torque against the motion beyond "
        "it ends the motion: the arm brakes and holds", above=0.0,
        special=(0.0, "no bound", INF)),
    tuned("motion_bounds.unmodeled_payload", float, DEFAULT,
        "mass that may appear at the outermost link; its weight does not count for the bounds of "
        "torque and power above; 0: none", "kg", at_least=0.0, special=(
            DEFAULT, "a weight of 0.3 of the effort limit at the longest lever", NAN
        )),
)

FEEDBACK = (
    tuned("gains.<joint>.p", float, None,
        "position gain", "computed_torque: 1/s^2, else Nm/rad", at_least=0.0),
    tuned("gains.<joint>.d", float, None,
        "velocity gain", "computed_torque: 1/s, else Nm s/rad", at_least=0.0),
    tuned("gains.<joint>.i", float, 0.0,
        "integral gain", "computed_torque: 1/s^3, else Nm/(rad s)", at_least=0.0),
    tuned("gains.<joint>.i_clamp_max", float, 10.0,
        "upper bound of the integral term", "computed_torque: rad/s^2, else Nm", at_least=0.0,
        infinite=True),
    tuned("gains.<joint>.i_clamp_min", float, -10.0,
        "lower bound of the integral term", "computed_torque: rad/s^2, else Nm", at_most=0.0,
        infinite=True),
    tuned("gains.<joint>.error_deadband", float, 0.0,
        "position error up to which the integral term is frozen, so that a joint with stiction "
        "near its goal does not hunt about it", "rad or m", at_least=0.0),
    tuned("feedback_inertia.<joint>", float, DEFAULT,
        "lower bound of the inertia in the feedback of computed_torque, for an unknown rotor; "
        "multiplies the stiffness by its ratio to the model's inertia", "kg m^2 or kg",
        at_least=0.0,
        at_most=10.0,  # for arms up to some hundred kilograms
        special=(
            DEFAULT, "up to 0.1 more than the model's where it has no `armature`", NAN
        )),
    tuned(OBSERVER, float, DEFAULT,
        "bandwidth of the estimate of what the arm does not do as its model says, which is taken "
        "off the torque (docs/tuning.md); 0: off", "rad/s", at_least=0.0, at_most=1000.0,
        special=(DEFAULT, "20, or less where the rotor is not told", NAN)),
    tuned("disturbance_observer.max.<joint>", float, DEFAULT,
        "largest torque that the disturbance observer adds", "Nm or N", above=0.0,
        special=(
            DEFAULT, "0.3 of the effort limit, more for motion_bounds.unmodeled_payload", NAN
        )),
    tuned("dead_time", float, 0.001,
        "time from a measurement until its torque acts, for which the torque is computed ahead; "
        "the default was measured with ros2_control at 1 kHz", "s", at_least=0.0,
        at_most=LONGEST_DEAD_TIME),
)

COMMANDS = (
    Parameter("command_topic", str, "effort_controller/commands",
        "topic of the commands: that of a ForwardCommandController on effort interfaces, which is "
        "found by its subscription"),
    Parameter("command_reliability", str, "reliable",
        "QoS of the commands", choices=("reliable", "best_effort")),
)

HARDWARE = (
    Parameter("controller_manager", str, "controller_manager",
        'name of the controller_manager, which reports whether the effort controller is active; "" '
        'for no such check'),
    Parameter("activate_effort_controller", bool, False,
        "request controller_manager to activate the effort controller once the gravity torque is "
        "commanded"),
)

# Parameters of the controller: missing states, start and end.
SAFETY = (
    Parameter("joint_state_gap", float, 0.02,
        "after a longer gap in joint_states the motion slows down, and torques are computed from "
        "a predicted state", "s", above=0.0),
    Parameter("joint_state_timeout", float, 0.1,
        "after a longer gap in joint_states the motion ends, and the arm brakes and holds by the "
        "model until states arrive again", "s", above=0.0),
    Parameter("max_bad_states", int, 10,
        "number of consecutive unusable states that are ignored (not finite, lacking a joint, a "
        "jump, a decreasing stamp); further states count as missing", at_least=0),
    Parameter("interpreter_timeout", float, 1.0,
        "a longer block of the process's Python interpreter ends the motion: the arm brakes along "
        "its path and holds; infinite for never", "s", above=0.0,
        infinite=True),
    tuned("activation.blend_time", float, 0.5,
        "time of the transition from the torque in force at the start; known from the sentinel or "
        "with `measured_effort_is_trusted`, else gravity torque is the start", "s",
        at_least=0.0),
    Parameter("activation.max_velocity", float, 0.2,
        "the controller does not start while a joint is faster; infinite to catch an arm that "
        "falls, as in a simulation without brakes", "rad/s or m/s", above=0.0, infinite=True),
    Parameter("activation.position_tolerance", float, 0.02,
        "the controller does not start while a joint is further beyond a position limit",
        "rad or m", at_least=0.0),
    Parameter("activation.check", str, "warn",
        "at activation, test the joints with small torques for a wrong sign, order or unit; with "
        "refuse a wrong one leads to mode powerless (docs/safety.md)",
        choices=("off", "warn", "refuse")),
    tuned("gravity_compensation.damping", float, 0.05,
        "damping in hand guiding by ~/gravity_compensation, as a fraction of the velocity gains",
        at_least=0.0),
    Parameter("require_sentinel", bool, False, "activate only while rnea_sentinel guards the arm"),
    tuned("collision_detection.enable", bool, False,
        "brake and hold, in mode fault, when the momentum observer sees an external torque in any "
        "direction beyond a threshold"),
    tuned("collision_detection.gain", float, 25.0,
        "bandwidth of the momentum observer", "1/s", above=0.0),
    tuned("collision_detection.threshold.<joint>", float, DEFAULT,
        "external torque that counts as a collision; set it above the joint's friction and the "
        "model's error", "Nm or N", above=0.0, bound=True,
        special=(DEFAULT, "a quarter of the effort limit", NAN)),
    live("model_check.bound", float, 0.1,
        "fraction of the effort limits by which holding torque and gravity torque may differ "
        "before /diagnostics names the likely cause; 0 for no check", at_least=0.0),
    Parameter("measured_effort_is_trusted", bool, False,
        "the effort in joint_states is the joint torque in Nm or N; the check of the model uses "
        "it, else the controller's own feedback"),
    Parameter("last_command", str, "gravity",
        "last command when the controller stops, which the hardware keeps applying: the gravity "
        "torque, or zero for hardware whose brakes engage", choices=("gravity", "zero")),
    Parameter("power_down", str, "zero",
        "commands in mode powerless: zero torque, then the effort controller is deactivated; or, "
        "without brakes, damping at joints that activation.check has verified",
        choices=("zero", "damp")),
    Parameter("hold_on_shutdown", float, 0.0,
        "time for which the controller holds the arm after SIGINT or SIGTERM; ends early without a "
        "subscriber of the commands, or by a second signal", "s", at_least=0.0,
        special=(DEFAULT, "until the commands have no subscriber")),
)

# Both sides of the hand-over must have the same values.
HANDOVER = (
    Parameter("command_lease", float, DEFAULT,
        "longest time without CPU, or stopped, after which the controller continues; after a "
        "longer absence it yields to the sentinel (docs/handover.md)", "s", above=0.0,
        at_most=LONGEST_TIMEOUT,
        special=(DEFAULT, "0.01, and 0.1 in simulated time")),
    Parameter("command_timeout", float, DEFAULT,
        "time without commands after which the sentinel takes the arm; set it above "
        "`command_lease` by several times the time that a command takes to arrive", "s", above=0.0,
        at_most=LONGEST_TIMEOUT,
        special=(DEFAULT, "1.5 times `command_lease`")),
)

# The names are those of joint_trajectory_controller.
TRAJECTORIES = (
    live("allow_partial_joints_goal", bool, False,
        "accept trajectories of some of the joints; the other joints continue as before"),
    live("allow_nonzero_velocity_at_trajectory_end", bool, False,
        "accept goals whose last point moves; the arm comes to rest there. Trajectories of the "
        "topic may always end in motion"),
    live("allow_integration_in_goal_trajectories", bool, False,
        "accept points without positions, which are integrated from velocities; missing velocities "
        "are integrated from accelerations"),
    live("interpolate_from_desired_state", bool, True,
        "start new trajectories from the desired state, without a jump; false: from the measured "
        "state, as always after an error beyond the path tolerance"),
    Parameter("interpolation_method", str, "splines",
        "curve that joins the points of a trajectory", choices=("splines",)),
    live("positions_upsampling.enable", bool, False,
        "join points that have only positions by a smooth spline, not by lines"),
    live("positions_upsampling.policy_frequency", float, 0.0,
        "point i of a trajectory whose points all have time 0 is due at (i + 1) / frequency", "Hz",
        above=0.0, special=(0.0, "refusing these")),
    live("constraints.stopped_velocity_tolerance", float, 0.01,
        "largest velocity of a joint when the goal is reached", "rad/s or m/s", above=0.0,
        special=(0.0, "any velocity", INF)),
    live("constraints.goal_time", float, 0.0,
        "time after its end in which a trajectory must come within the goal tolerances", "s",
        above=0.0, special=(0.0, "for ever", INF)),
    live("cmd_timeout", float, 0.0,
        "used in place of `constraints.goal_time` if that is 0", "s", above=0.0,
        special=(0.0, "for ever", INF)),
    live("constraints.<joint>.trajectory", float, 0.0,
        "path tolerance: largest position error of a joint while it moves", "rad or m", above=0.0,
        special=(0.0, "any distance", INF)),
    live("constraints.<joint>.goal", float, 0.0,
        "goal tolerance: largest position error of a joint when the goal is reached", "rad or m",
        above=0.0, special=(0.0, "any distance", INF)),
    live("constraints.decelerate_on_cancel", bool, False,
        "brake within `max_deceleration_on_cancel`; false: as hard as the effort limits allow"),
    tuned("constraints.<joint>.max_deceleration_on_cancel", float, 0.0,
        "deceleration of a joint that is stopped along its path", "rad/s^2 or m/s^2",
        above=0.0, special=(0.0, "what the effort limits allow", INF)),
    live("constraints.excessive_effort", str, "warn",
        "treatment of a trajectory for which the model needs more than the effort limits",
        choices=("refuse", "warn", "slow_down")),
    tuned("stream.bandwidth", float, 30.0,
        "bandwidth of the filter by which the arm follows a stream of targets (docs/streams.md)",
        "rad/s", above=0.0, at_most=1000.0),
    tuned("stream.target_timeout", float, 0.1,
        "time without a target of a stream after which the arm comes to rest", "s", above=0.0,
        at_most=10.0),
    tuned("stream.max_distance", float, 0.5,
        "refuse a target of a stream that is further from the desired position; a tenth of it in m "
        "for a prismatic joint", "rad", above=0.0),
    tuned("control_timeout", float, 0.05,
        "time without a message of a planner's gains on `control` after which the arm brakes and "
        "holds", "s", above=0.0, at_most=10.0),
    tuned("stream.max_velocity.<joint>", float, DEFAULT,
        "largest velocity in a stream", "rad/s or m/s", above=0.0,
        special=(DEFAULT, "nine tenths of the velocity limit of the URDF", math.nan)),
    tuned("stream.max_acceleration.<joint>", float, DEFAULT,
        "largest acceleration in a stream", "rad/s^2 or m/s^2", above=0.0,
        special=(DEFAULT, "what nine tenths of the effort limit allow, at most the largest "
        "velocity within 0.2 s", math.nan)),
    tuned("stream.max_jerk.<joint>", float, 0.0,
        "largest change of the acceleration in a stream; the acceleration is at most that divided "
        "by stream.bandwidth, as the joint would swing", "rad/s^3 or m/s^3", at_least=0.0,
        zero_is_none=True),
    live("trajectory.catch_up", bool, False,
        "after a pause of joint_states, catch up with the times of the trajectory within the "
        "limits; false: the rest runs later by the pause"),
    Parameter("speed_scaling.initial_scaling_factor", float, 1.0,
        "speed of trajectories until `~/speed_scaling_input` sets another factor", at_least=0.0,
        at_most=1.0),
    Parameter("action_monitor_rate", float, 20.0,
        "rate of the action's feedback", "Hz", above=0.0, at_most=1000.0),
    Parameter("state_publish_rate", float, 50.0,
        "rate of the topics of the controller's state, such as `~/controller_state` and `sensor`",
        "Hz", above=0.0,
        at_most=1000.0),
)

# The tip in task space, and its references.
TASK = (
    Parameter("task.tip", str, "",
        "link whose frame is moved in task space, such as `tool0` or `panda_hand_tcp`",
        special=("", "the link that the last of `joints` moves")),
    *(
        tuned(f"task.k_{way}_{axis}", float, stiffness,
            f"stiffness of the tip {words} {axis} of the root link's frame; 0: the axis is free",
            unit, at_least=0.0, at_most=1e5)  # stiffer than any arm
        for way, stiffness, words, unit in (
            ("pos", 600.0, "along", "N/m"),
            ("rot", 30.0, "about", "Nm/rad"),
        )
        for axis in "xyz"
    ),
    tuned("task.damping_ratio", float, 1.0,
        "damping ratio of each natural mode of the tip; 1 is critical", at_least=0.1, at_most=5.0),
    tuned("task.error_clip", list[float], [0.1, 0.5],
        "largest distance and angle of the tip from its desired pose that the stiffness acts on",
        "m, rad", above=0.0, length=2),
    tuned("task.max_force", list[float], [60.0, 15.0],
        "largest force and moment of the stiffness", "N, Nm",
        above=0.0, length=2),
    tuned("task.max_power", float, 5.0,
        "largest power that a change of the stiffness adds to the tip", "W", above=0.0),
    tuned("task.bandwidth", float, 20.0,
        "bandwidth of the errors under task_computed_torque", "rad/s", above=0.0, at_most=1000.0),
    tuned("task.max_velocity", list[float], [0.5, 1.5],
        "largest linear and angular velocity of the desired pose", "m/s, rad/s", above=0.0,
        length=2),
    tuned("task.max_acceleration", list[float], [3.0, 10.0],
        "largest linear and angular acceleration of the desired pose", "m/s^2, rad/s^2", above=0.0,
        length=2),
    tuned("task.max_distance", list[float], [0.3, 1.5],
        "refuse a target pose that is further from the desired pose", "m, rad", above=0.0,
        length=2),
    tuned("task.box", list[float], [-100.0, -100.0, -100.0, 100.0, 100.0, 100.0],
        "lower, then upper bounds of x, y and z of the tip in the root link's frame; targets "
        "outside are moved to the nearest point", "m", length=6),
    tuned("nullspace.stiffness", float, 10.0,
        "stiffness of the posture, in the motions that leave the tip where it is", "Nm/rad or N/m",
        at_least=0.0, at_most=1e4),  # stiffer than any arm
    tuned("nullspace.weights.<joint>", float, 1.0,
        "factor of `nullspace.stiffness` for the joint", at_least=0.0, at_most=100.0),
)

REAL_TIME = (
    Parameter("thread_priority", int, 50,
        "SCHED_FIFO priority of the control thread; the other threads of the process get less",
        at_least=1, at_most=98, special=(0, "no change of the scheduling")),
    Parameter("cpu_affinity", list[int], [-1],
        "CPUs that the control thread may use", at_least=0, at_most=65535,
        special=([-1], "all CPUs", [])),
    Parameter("lock_memory", bool, True, "keep all memory of the process in RAM (mlockall)"),
    Parameter("cpu_dma_latency", int, -1,
        "longest time that any CPU may take to wake up (/dev/cpu_dma_latency); 0: CPUs never "
        "sleep, with the lowest latency and the most power", "us", at_least=0,
        at_most=2000000000, special=(-1, "no change of the CPUs' sleep")),
)

# Parameters of the sentinel only.
GUARD = (
    Parameter("stiffness", float, 100.0,
        "position gain of the sentinel's own control, which brakes and holds the arm",
        "1/s^2", at_least=0.0),
    Parameter("damping", float, 20.0,
        "velocity gain of the sentinel's own control", "1/s", at_least=0.0),
    Parameter("velocity_limit_factor", float, 1.5,
        "the sentinel takes over an arm that moves faster than the URDF's velocity limits times "
        "this factor", at_least=1.0),
    Parameter("revoke_frozen_commands", bool, True,
        "take over the arm if the controller repeats a torque for command_timeout while the arm "
        "moves; false for laws that repeat torques on purpose"),
    Parameter("give_back_limit", int, 3,
        "number of times in a minute that the sentinel returns the arm automatically after a "
        "pause of the controller; then it waits for ~/resume", at_least=0),
    Parameter("prediction_gap", float, 0.02,
        "after a longer gap in joint_states, a sentinel that has the arm computes its torques from "
        "a predicted state", "s", above=0.0),
)

# Thresholds of warnings and errors in `/diagnostics`.
DIAGNOSTICS = tuple(
    live(f"diagnostics.{name}.{level}", float, value,
        f"/diagnostics reports {level.upper()} if {meaning} in the last second exceeds this",
        unit, above=0.0)
    for name, meaning, unit, values in (
        ("tick_duration", "the 99 % quantile of the tick duration", "s", (0.0005, 0.005)),
        ("state_age", "the 99 % quantile of the state age", "s", (0.005, 0.05)),
        ("period_jitter", "the 99 % quantile of the period jitter", "s", (0.005, 0.05)),
        ("missed_states", "the fraction of states missed", "", (0.01, 0.1)),
        ("late_states", "the fraction of late states", "", (0.05, 0.5)),
    )
    for level, value in zip(("warn", "error"), values, strict=True)
)

START = (
    Parameter("autostart", bool, True,
        "configure and activate at start, without a lifecycle manager"),
)

LOCKED = "locked_positions."
LOCKED_POSITION = Parameter(f"{LOCKED}<joint>", float, 0.0,
    "position of a joint that is not in `joints`, such as a gripper's", "rad or m")
# fmt: on

SENTINEL = (*ROBOT, *LIMITS, *COMMANDS, HARDWARE[0], *HANDOVER, *GUARD, *REAL_TIME)

ROWS = {
    row.name: row
    for row in (*ROBOT, *LIMITS, *FEEDBACK, *SAFETY, *TRAJECTORIES, *TASK, *REAL_TIME, *GUARD)
}
# Rows that the control step reads; control/layout.py has them by name.
TICK_ROWS = tuple(row for row in ROWS.values() if row.in_tick)


if __name__ == "__main__":
    print(
        "# Parameters of `rnea_sentinel`\n\n"
        "Printed from the table in code by `python -m rnea_control.parameters.table`.\n\n"
        "The section of `rnea_controller` in the same YAML file also applies; values in\n"
        "the section of `rnea_sentinel` take precedence.\n\n"
        + markdown((*SENTINEL, LOCKED_POSITION), False),
        end="",
    )
