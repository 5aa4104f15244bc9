"""A control step as one compiled call, its immediate consequences, and requests between two steps.

A step first checks that the state can be true. Then it runs sample, feedback, law, output stage and
checks. A finding is a row of `findings`; it ends the motion, and the arm may have to stop.

A request is a `Box` that `serve` carries out: at once, or in the loop without Python, which looks
into the box between two ticks. Performs no allocation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import (
    FloatArray,
    Matrix,
    RecordArray,
    Vector,
)
from rnea_control.control import (
    arrest,
    belief,
    disturbance_observer,
    feedback,
    laws,
    layout,
    momentum_observer,
    motion_watch,
    output_stage,
    task_space,
)
from rnea_control.control.laws import (
    is_impedance,
    law_in_force,
    only_a_hand_moves,
    resting_reference,
    yields,
)
from rnea_control.control.layout import Arm, Settings, SettingsStack, State
from rnea_control.control.motion import Act, ToleranceRows, check, violated_position
from rnea_control.control.references import (
    HAND,
    TRAJECTORY,
    desired_motion,
    has_path,
    is_guided,
    is_of_gains,
    is_streamed,
)
from rnea_control.control.robot import robot_of
from rnea_control.control.stopping import brake_along, brake_straight
from rnea_control.control.trajectory import advance_scaling, follow, settle
from rnea_control.jit.group import group
from rnea_control.jit.inlining import inlined, shared
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import linked
from rnea_control.jit.record import Record

LONGEST_INTEGRATION_STEP = 0.1  # longest gap between ticks that the integral counts [s]
RESTING = 0.05  # velocity below which the change of a law blends [rad/s] or [m/s]
# A joint shakes when its velocity error often changes sides.
SHAKING_SPEED = 0.2  # fraction of the velocity limit above which a sign change counts
MOST_REVERSALS = 10.0  # sign changes that trip
FORGOTTEN_REVERSALS = 4.0  # decay of the count [1/s]
SHAKING_REST = 0.1  # SHAKING_SPEED of a joint that should rest
NOISE_FACTOR = 4.0  # standard deviations of the noise above which a sign change counts
LEAST_FEEDBACK = 0.1  # share of the feedback below which an arm that still shakes is let go

# The result of a step: SATURATED or 0, plus FOUND times the kind of the finding, as in layout.py;
# or, from BAD_STATE on, the reason why the step failed.
SATURATED = 1  # a torque was clamped
FOUND = 2  # factor of the finding
BAD_STATE = 64  # the state is not finite
BAD_JUMP = 65  # a position has jumped
FROZEN = 66  # the positions do not change although velocities report a motion
BAD_SIZE = 67  # an array has the wrong size
BAD_TORQUE = 68  # the control law gives no finite torque
NO_TRAJECTORY = 69  # there is no trajectory yet

# Kinds of requests.
FINISH, BRAKE, CATCH, GUIDE = (int(act) for act in Act)  # end the motion; what the arm does then
ADOPT = 5  # follow a trajectory
CHANGE = 6  # use other settings
BRACE = 7  # use the settings that hold any arm, or the ordinary ones


@group(
    arm="Arm[::1]",
    settings="SettingsStack",
    tolerances="ToleranceRows",
    state="State",
    findings="Finding[::1]",
)
class StepArrays(NamedTuple):
    """Arrays of the control step."""

    arm: RecordArray
    settings: SettingsStack  # settings of the controller, and settings that hold any arm
    tolerances: ToleranceRows  # tolerances of the motion
    state: State
    findings: RecordArray  # shape (MOST_FINDINGS,)


class Request(Record):
    """A request to the loop between two steps, and the response. Times are in [s]."""

    kind: int = FINISH
    done: bool = False  # the request was carried out
    ended: int = 0  # number of the motion that the request ended; 0 for none

    # FINISH to GUIDE.
    now: float = 0.0  # time of the measured state
    guided: bool = False  # a hand has guided the arm

    # ADOPT: addresses of the trajectory, the number of the replaced trajectory, and of the motion.
    starts_at: int = 0
    coefficients_at: int = 0
    segments: int = 0
    revision: int = 0
    motion: int = 0
    # Trajectory times of the replacement, of the new trajectory's rest, and of its motion's ends.
    begin: float = 0.0
    rest: float = 0.0
    start: float = 0.0
    end: float = 0.0

    # CHANGE, BRACE.
    bodies_at: int = 0  # address of the bodies of the model
    new_model: bool = False  # the model has changed
    braced: bool = False


@group(
    request="Request[::1]",
    measured="f8[:,::1]",
    settings="SettingsStack",
    tolerances="ToleranceRows",
)
class RequestArrays(NamedTuple):
    """A request with its arrays, as kernels take them."""

    request: RecordArray
    measured: FloatArray  # position and velocity, shape (2, nv)
    settings: SettingsStack
    tolerances: ToleranceRows


class Box(NamedTuple):
    """One request, and the same with its arrays for kernels."""

    request: Request
    arrays: RequestArrays

    @classmethod
    def for_joints(cls, nv: int) -> Box:
        """Room for a request to an arm of `nv` joints."""
        request = Request()
        arrays = RequestArrays(
            request=request.argument,
            measured=np.zeros((2, nv)),
            settings=Settings.zeros(nv, 2),
            tolerances=ToleranceRows.none(nv),
        )
        return cls(request, arrays)


@inlined
def _shaken(settings: Settings, state: State, dt: float) -> bool:
    """True if a joint swings to and fro about its desired motion; writes the joint into `state`."""
    shaken = False
    for j in range(settings.shape[1]):
        limit, noise = settings.state_velocity_limit[j], state.velocity_noise[j]
        if math.isnan(noise):
            continue
        rests = state.desired_velocity[j] == 0.0 and has_path(state) and not yields(settings, state)
        share = SHAKING_REST if rests else SHAKING_SPEED
        fast = max(share * limit, NOISE_FACTOR * noise)
        error = state.velocity_error[j]
        count = max(state.reversals[j] - FORGOTTEN_REVERSALS * dt, 0.0)
        if abs(error) > fast:
            side = math.copysign(1.0, error)
            if side == -state.shaken_side[j]:
                count += 1.0
            state.shaken_side[j] = side
        if count > MOST_REVERSALS:
            shaken = True
            count = 0.0
            state.violating_joint = j
        state.reversals[j] = count
    return shaken


@inlined
def _ending(
    arm: Arm, settings: Settings, tolerances: ToleranceRows, state: State, s: float, pressed: bool
) -> int:
    """Kind of the finding that ends the motion, or takes the desired position from the arm, at
    trajectory time `s` [s]; UNDER_WAY for none."""
    found = check(tolerances, state, s) if arm.motion != 0 else layout.UNDER_WAY
    # An arm that is stopped stays near its place, however it is pushed.
    if arm.watch != motion_watch.STOPPED and found in (layout.UNDER_WAY, layout.REACHED):
        # An arm that is held elsewhere does not reach a goal, even without tolerances.
        if violated_position(state, settings.max_position_error):
            found = layout.TORN_AWAY
        elif pressed:
            found = layout.PRESSED
    return found


@kernel()
def step(
    arm: Arm,
    settings: Settings,
    tolerances: ToleranceRows,
    state: State,
    t: float,
    q: Vector,
    v: Vector,
    tau: Vector,
    predicted: bool,
) -> int:
    """Fills `tau`, except for a bad state or size; returns the result of the step, see above.

    Args:
        arm, tolerances, state: see layout.py and motion.py.
        settings: the settings in force.
        t: time of the measurement, [s].
        q, v: positions and velocities of the state, shape (nv,), [rad] or [m], and per second.
        tau: output, shape (nv,), [Nm] or [N].
        predicted: True if the state is to be predicted; then `q` and `v` are filled with it.
    """
    if arm.segments == 0:
        return NO_TRAJECTORY
    nv = state.shape[1]
    if q.shape[0] != nv or v.shape[0] != nv or tau.shape[0] != nv:
        return BAD_SIZE
    if not predicted:
        if not belief.is_finite(t, q, v):
            return BAD_STATE
        if belief.jumping_joint(settings, state, t, q, v) >= 0:
            return BAD_JUMP
        frozen = belief.is_frozen(settings, state, t, q, v)
        belief.remember(state, t, q, v)
        if frozen:
            return FROZEN
    dt = max(t - state.last_time, 0.0)
    advance_scaling(state, dt, predicted)
    # After a prediction the states' stamps may be a little behind: trajectory time waits for them.
    ahead = settings.dead_time * state.scaling
    s = max(t + ahead - state.behind, state.last_trajectory_time)
    state.last_time = t
    state.last_trajectory_time = s
    ended = desired_motion(arm, settings, state, t, dt, s, predicted)
    if predicted:
        feedback.predict_state(settings, state, q, v, dt, not arm.predicting)
        belief.watch_rest(state, t, v)
        disturbance_observer.fade_blind(state, dt)
    else:
        stopped = arm.watch == motion_watch.STOPPED
        feedback.update_feedback(settings, state, q, v, min(dt, LONGEST_INTEGRATION_STEP), stopped)
        q, v = state.predicted_position, state.predicted_velocity
    if arm.powerless:
        output_stage.release(settings, state, v, dt, tau, predicted)
        return layout.UNDER_WAY
    limited = output_stage.limit_acceleration(settings, state, q, v, dt)
    robot = robot_of(arm, nv)
    if is_impedance(settings, state):
        task_space.follow_stiffness(settings, state, dt)
        task_space.follow_wrench(settings, state, t, dt)
    laws.control_torque(arm, robot, settings, state, q, v, predicted)
    if limited:
        output_stage.add_limit_torques(robot, settings, state, q, v, dt)
    output_stage.blend(settings, state, t)
    finite = output_stage.torques_are_finite(state)
    if limited or not finite:
        laws.gravity_torque(robot, settings, state, q)
        output_stage.fall_back(settings, state, v)
    saturated, pressed = output_stage.output_stage(settings, state, dt, tau)
    if not finite:
        return BAD_TORQUE
    found = layout.UNDER_WAY
    if not predicted:
        found = _ending(arm, settings, tolerances, state, s, pressed)
        if not is_guided(state) and _shaken(settings, state, dt):
            found = layout.SHAKEN
        if ended and found == layout.UNDER_WAY:
            found = layout.GAINS_ENDED if is_of_gains(state) else layout.STREAM_ENDED
    return int(saturated) + FOUND * found


_step, _watch = linked(step), linked(motion_watch.watch)


@inlined
def _begin_law(state: State, blends: bool) -> None:
    """The torque of the law before fades out if it `blends`, and its integral ends, as its unit may
    be another."""
    state.blend_start = math.nan if blends else -math.inf
    state.integral[:] = 0.0


@inlined
def _refer_to(settings: Settings, state: State, reference: int, blends: bool) -> None:
    """Changes to another reference, and to its law. An arm that is to be braked does not blend: the
    torque of the law before would move it on."""
    before = law_in_force(settings, state)
    state.reference = reference
    if law_in_force(settings, state) != before:
        _begin_law(state, blends)


@inlined
def _leave_stream(arm: Arm, settings: Settings, state: State) -> None:
    """Brakes straight on from the desired motion of a stream. The stream begins again after a pause
    only."""
    arm.stream_waits = True
    _refer_to(settings, state, TRAJECTORY, True)
    brake_straight(arm, settings, state, state.desired_position, state.desired_velocity)


@shared
def begin_stream(arrays: StepArrays, reference: int, t: float) -> None:
    """Follows a stream of targets, a row of `Reference`, from time `t` [s] on; ends the motion."""
    arm, state = arrays.arm[0], arrays.state
    end_motion(arm, state, arrays.findings, layout.STREAM_BEGAN)
    if state.last_trajectory_time >= state.path_end:
        settle(state)
    _refer_to(arrays.settings[arm.braced], state, reference, True)
    state.path_end, state.unscaled_until = math.inf, -math.inf
    state.stream_step = 0.0
    for j in range(state.shape[1]):  # joints without a target stay
        state.target[j], state.target_rate[j] = state.desired_position[j], 0.0
        state.target_effort[j], state.target_at[j] = 0.0, t


@inlined
def _rests(state: State) -> bool:
    """True if the arm is desired to rest, and hardly moves."""
    rests = True
    for j in range(state.shape[1]):
        rests &= max(abs(state.desired_velocity[j]), abs(state.last_velocity[j])) < RESTING
    return rests


@inlined
def catch(arm: Arm, settings: Settings, state: State, t: float, q: Vector, v: Vector) -> None:
    """Takes the desired position and velocity from the arm, and brakes from there, with the
    stiffness of the settings."""
    task_space.forget_messages(settings, state)
    state.last_time = t
    state.last_trajectory_time = t - state.behind
    if is_streamed(state):
        arm.stream_waits = True
    _refer_to(settings, state, resting_reference(settings), _rests(state))
    state.saturated_since[:] = 0.0
    state.smooth_velocity_error[:] = 0.0
    # A state that is predicted goes on from here: desired motion minus errors.
    state.position_error[:] = state.velocity_error[:] = 0.0
    belief.believe(state)
    brake_straight(arm, settings, state, q, v)


@inlined
def brake(arm: Arm, settings: Settings, state: State, guided: bool) -> None:
    """Brakes along the path, with the stiffness of the settings; where the desired motion is no
    path of the joints, straight on from the last state."""
    task_space.forget_messages(settings, state)
    s = state.last_trajectory_time
    if guided or (is_streamed(state) and not has_path(state)):
        q, v = state.last_position, state.last_velocity
        if arm.predicting:
            q, v = state.predicted_position, state.predicted_velocity
        catch(arm, settings, state, state.last_time, q, v)
    elif is_streamed(state):
        _leave_stream(arm, settings, state)
    elif s < state.path_end and state.unscaled_until <= s:
        brake_along(arm, settings, state, False)


@inlined
def _note_off_goal(settings: Settings, tolerances: ToleranceRows, state: State) -> None:
    """Writes the joint that is furthest from its goal, and its position error, into `state`; an
    error of 0 if all are within `end_slack`. The distance is relative to `end_slack`, and only
    joints without a goal tolerance count."""
    furthest = 1.0
    state.violation = 0.0
    for j in range(state.shape[1]):
        off = abs(state.position_error[j]) / settings.end_slack[j]
        if off > furthest and tolerances.goal_position[j] == math.inf:
            furthest = off
            state.violating_joint = j
            state.violation = state.position_error[j]


@inlined
def end_motion(arm: Arm, state: State, findings: RecordArray, kind: int) -> None:
    """Ends the motion, and keeps the finding."""
    finding = findings[arm.findings % layout.MOST_FINDINGS]
    finding.kind, finding.ended = kind, arm.motion
    finding.found_at = state.last_trajectory_time
    joint, excess = int(state.violating_joint), state.violation
    if kind == layout.PRESSED:
        since = state.saturated_since
        joint = int(since.argmax())
        excess = since[joint]
    finding.joint, finding.excess = joint, excess
    finding.quantity = int(state.violating_quantity)
    finding.allowed = state.violated_tolerance
    finding.moving_at = state.last_velocity[joint]
    finding.external_torque = state.residual[joint]
    finding.late_by = state.pause_delay
    arm.findings += 1
    arm.motion = 0


@inlined
def _stop(arm: Arm, settings: SettingsStack, state: State, t: float, q: Vector, v: Vector) -> None:
    """Brakes the arm from where it is after a violated bound, by a law that holds it there. An arm
    that is stopped already does so."""
    if arm.watch == motion_watch.FREE:
        arm.watch = motion_watch.STOPPED
        if only_a_hand_moves(settings[arm.braced]):
            arm.braced = 1
        catch(arm, settings[arm.braced], state, t, q, v)


@inlined
def _shake_less(arm: Arm, state: State) -> int:
    """Halves the feedback of an arm that shakes although a law that holds any arm brakes it, and
    lets go of the arm in the end."""
    state.feedback_share *= 0.5
    state.violation = 0.0  # there is no speed to report
    return layout.LET_GO if state.feedback_share < LEAST_FEEDBACK else layout.UNDER_WAY


@inlined
def emergency_stop(arrays: StepArrays) -> None:
    """Brakes, and changes to a law that holds the arm."""
    arm, settings, state = arrays.arm[0], arrays.settings, arrays.state
    guided = not has_path(state)
    if only_a_hand_moves(settings[arm.braced]):
        arm.braced = 1
        _refer_to(settings[1], state, TRAJECTORY, False)
    if arm.watch == motion_watch.FREE:
        arm.watch = motion_watch.STOPPED
    end_motion(arm, state, arrays.findings, layout.STOPPED)
    brake(arm, settings[arm.braced], state, guided)


@inlined
def advance(
    arrays: StepArrays,
    t: float,
    q: Vector,
    v: Vector,
    tau: Vector,
    predicted: bool,
) -> int:
    """Performs a step. A finding ends the motion. After a violation the arm brakes from where it
    is, so that it does not press on. Returns the result of the step, see above.

    Args:
        arrays: arrays of the control step.
        t: time of the measurement, [s].
        q, v: positions and velocities of the state, shape (nv,), [rad] or [m], and per second.
        tau: output, shape (nv,), [Nm] or [N].
        predicted: True if the state is to be predicted; then `q` and `v` are filled with it.
    """
    arm, settings, state = arrays.arm[0], arrays.settings, arrays.state
    tolerances, in_force = arrays.tolerances, settings[arm.braced]
    of_step = arm, in_force, tolerances, state, t, q, v, tau, predicted
    outcome = _step(arm.step_code, of_step)
    if outcome < BAD_STATE or outcome == BAD_TORQUE:  # the state counts
        if predicted and not arm.predicting:
            arm.gaps += 1
        arm.predicting = predicted
    if predicted or outcome >= BAD_STATE:
        momentum_observer.start_anew(state)
        return outcome
    arm.outcome = outcome
    found = outcome // FOUND
    watched = _watch(arm.watch_code, (arm, in_force, state, t, q, v))
    if watched != layout.UNDER_WAY:
        found = watched
    if found == layout.SHAKEN and arm.braced != 0:
        found = _shake_less(arm, state)
    if found == layout.UNDER_WAY:
        return outcome % FOUND
    if found == layout.REACHED:
        _note_off_goal(in_force, tolerances, state)
    end_motion(arm, state, arrays.findings, found)
    if found in (layout.PATH_VIOLATED, layout.GOAL_VIOLATED):
        brake_along(arm, in_force, state, True)
    elif found == layout.LET_GO:
        arm.powerless = True
        state.let_go_damping[int(state.violating_joint)] = 0.0
    elif found == layout.STREAM_ENDED:
        _leave_stream(arm, in_force, state)
        arm.stream_waits = False  # the next target begins it again
    elif found == layout.GAINS_ENDED:
        catch(arm, in_force, state, t, q, v)
        arm.stream_waits = False
    elif found in (layout.RESTLESS, layout.CALM):
        pass  # the supervisor changes the mode
    elif found > layout.BLOCKED:
        _stop(arm, settings, state, t, q, v)
    elif found > layout.REACHED:
        arm.gave_way += 1
        catch(arm, in_force, state, t, q, v)
    return outcome % FOUND + FOUND * found


@kernel()
def step_once(
    arrays: StepArrays, t: float, q: Vector, v: Vector, tau: Vector, predicted: bool
) -> int:
    """Kernel of `advance`, for Python."""
    return advance(arrays, t, q, v, tau, predicted)


@inlined
def _copy(rows: Matrix, into: Matrix) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            into[i, j] = rows[i, j]


@inlined
def serve(arrays: StepArrays, asked: RequestArrays) -> None:
    """Carries out a request."""
    arm, settings, state = arrays.arm[0], arrays.settings, arrays.state
    request, measured = asked.request[0], asked.measured
    kind, in_force = request.kind, settings[arm.braced]
    s = state.last_trajectory_time
    request.done, request.ended = True, 0
    replaced = request.revision != arm.revision or is_streamed(state)
    if kind == ADOPT and (replaced or s > request.begin):
        request.done = False  # another trajectory or a stream came between, or it is too late
        return
    if kind <= ADOPT:
        request.ended, arm.motion = arm.motion, 0
    if kind == BRAKE:
        brake(arm, in_force, state, request.guided)
    elif kind == CATCH:
        catch(arm, in_force, state, request.now, measured[0], measured[1])
        arrest.begin_from(in_force, state, request.now, measured[1])
    elif kind == GUIDE:
        _refer_to(in_force, state, HAND, True)
    elif kind == ADOPT:
        if s >= state.path_end:
            settle(state)  # a stop leaves it at full speed
        where = request.starts_at, request.coefficients_at, request.segments
        follow(arm, state, *where, request.rest)
        state.start_time, state.end_time = request.start, request.end
        state.pause_delay = 0.0
        arm.motion = request.motion
    elif kind == CHANGE:
        law = law_in_force(in_force, state)
        for which in range(2):
            _copy(asked.settings[which], settings[which])
        if law_in_force(settings[arm.braced], state) != law:
            _begin_law(state, True)
        if request.new_model and arm.bodies_at != 0:  # not the first one
            before = robot_of(arm, state.shape[1])
            arm.bodies_at = request.bodies_at
            after = robot_of(arm, state.shape[1])
            disturbance_observer.change_model(before, after, settings[arm.braced], state)
            momentum_observer.start_anew(state)
        arm.bodies_at = request.bodies_at
        state.rests_since = math.nan
    elif kind == BRACE:
        arm.braced = 1 if request.braced else 0
    if kind in (ADOPT, CHANGE):
        _copy(asked.tolerances, arrays.tolerances)
    if kind in (CHANGE, BRACE):
        resting = resting_reference(settings[arm.braced])
        if resting == HAND or arm.braced != 0:
            state.reference = resting


@kernel()
def serve_now(arrays: StepArrays, asked: RequestArrays) -> None:
    """Kernel of `serve`, for Python."""
    serve(arrays, asked)
