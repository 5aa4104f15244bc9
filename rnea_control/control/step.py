"""A control step as one compiled call, what follows from it at once, and what is asked for between
two steps.

A step asks whether the state can be true; then come sample, feedback, law, output stage and checks.
Its finding is a row of `findings`; it ends the motion, and the arm may have to stop. A request is a
`Box` that `serve` carries out: at once, or in the loop that steps without Python, which
looks into the box between two ticks. Performs no allocation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rnea_control.array_types import (
    FloatArray,
    IntVector,
    Matrices,
    Matrix,
    RecordArray,
    Vector,
)
from rnea_control.control import (
    arrest,
    belief,
    laws,
    layout,
    momentum_observer,
    motion_watch,
    output_stage,
)
from rnea_control.control.laws import is_hand_law
from rnea_control.control.motion import GOAL_POSITION, Act, check, violated
from rnea_control.control.stopping import brake_along, brake_straight
from rnea_control.control.trajectory import advance_scaling, follow, path_of, sample, scale, settle
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import linked
from rnea_control.jit.record import Record

# A gap between ticks longer than this counts as this long for the integral, [s].
LONGEST_INTEGRATION_STEP = 0.1
# A joint shakes when its velocity error, beyond this part of the velocity limit, has changed sides
# so often; so many changes a second are forgotten. The part is another one where it should rest.
SHAKING_SPEED, MOST_REVERSALS, FORGOTTEN_REVERSALS = 0.2, 10.0, 4.0
SHAKING_REST = 0.1
NOISE_FACTOR = 4.0  # velocity errors within so many standard deviations of the noise are no shaking
LEAST_FEEDBACK = 0.1  # share of the feedback below which an arm that still shakes is let go

# The result of a step: whether a torque was clamped, plus FOUND times what was found, as in
# layout.py; or, from BAD_STATE on, the fault of the state.
SATURATED, FOUND = 1, 2
BAD_STATE, BAD_JUMP, FROZEN, BAD_SIZE, BAD_TORQUE, NO_TRAJECTORY = range(64, 70)

# Kinds of requests.
FINISH, BRAKE, CATCH, GUIDE = (int(act) for act in Act)  # end the motion; what the arm does then
ADOPT = 5  # follow a trajectory
CHANGE = 6  # use other settings
BRACE = 7  # use the settings that hold any arm, or the ordinary ones


class Request(Record):
    """What is asked of the loop between two steps, and the answer. Times are in [s]."""

    kind: int = FINISH
    done: bool = False  # it was carried out
    ended: int = 0  # number of the motion that it ended; 0 for none

    # FINISH to GUIDE.
    now: float = 0.0  # time of the measured state
    guided: bool = False  # a hand has guided the arm

    # ADOPT: addresses of the trajectory, the number of the one that it replaces, and of its motion.
    starts_at: int = 0
    coefficients_at: int = 0
    segments: int = 0
    revision: int = 0
    motion: int = 0
    # By trajectory time: it replaces the present trajectory, and is at rest; its motion.
    begin: float = 0.0
    rest: float = 0.0
    start: float = 0.0
    end: float = 0.0

    # CHANGE, BRACE.
    bodies_at: int = 0  # address of the bodies of the model
    new_model: bool = False  # the model is another one
    braced: bool = False


class Box(NamedTuple):
    """One request with its arrays."""

    request: Request
    measured: FloatArray  # position and velocity, shape (2, nv)
    settings: FloatArray  # shape (2, SETTINGS_ROWS, nv)
    tolerances: FloatArray  # rows as of `check`

    @property
    def arrays(self) -> tuple[RecordArray, FloatArray, FloatArray, FloatArray]:
        """What a kernel takes."""
        return (self.request.array, *self[1:])


@inlined
def _shaken(settings: Matrix, state: Matrix, dt: float) -> bool:
    """Whether a joint swings to and fro about its desired motion; which, in `state`."""
    shaken = False
    for j in range(settings.shape[1]):
        limit, noise = settings[layout.STATE_VELOCITY_LIMIT, j], state[layout.VELOCITY_NOISE, j]
        if math.isnan(noise):
            continue
        share = SHAKING_REST if state[layout.DESIRED_VELOCITY, j] == 0.0 else SHAKING_SPEED
        fast = max(share * limit, NOISE_FACTOR * noise)
        error = state[layout.VELOCITY_ERROR, j]
        count = max(state[layout.REVERSALS, j] - FORGOTTEN_REVERSALS * dt, 0.0)
        if abs(error) > fast:
            side = math.copysign(1.0, error)
            if side == -state[layout.SHAKEN_SIDE, j]:
                count += 1.0
            state[layout.SHAKEN_SIDE, j] = side
        if count > MOST_REVERSALS:
            shaken = True
            count = 0.0
            state[layout.VIOLATING_JOINT, 0] = j
        state[layout.REVERSALS, j] = count
    return shaken


@inlined
def _ending(
    n: IntVector, settings: Matrix, tolerances: Matrix, state: Matrix, s: float, pressed: bool
) -> int:
    """What ends the motion, or takes the desired position from the arm, at trajectory time `s`."""
    found = check(tolerances, state, s) if n[layout.MOTION] != 0 else layout.UNDER_WAY
    # An arm that is stopped stays about one place, however it is pushed.
    if n[layout.WATCH] != motion_watch.STOPPED and found in (layout.UNDER_WAY, layout.REACHED):
        # A goal without tolerances is not reached by an arm that is held elsewhere.
        if violated(state, settings, layout.MAX_POSITION_ERROR, 1):
            found = layout.TORN_AWAY
        elif pressed:
            found = layout.PRESSED
    return found


@kernel()
def step(
    n: IntVector,
    settings: Matrix,
    tolerances: Matrix,
    state: Matrix,
    t: float,
    q: Vector,
    v: Vector,
    tau: Vector,
    predicted: bool,
) -> int:
    """Fills `tau`, but for a bad state or size; returns what was found, see above. Arguments are as
    of `advance`, but for `settings`: those in force."""
    if n[layout.SEGMENTS] == 0:
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
    dt = max(t - state[layout.LAST_TIME, 0], 0.0)
    advance_scaling(state, dt, predicted)
    # After a prediction the states' stamps may be a little behind: trajectory time waits for them.
    ahead = settings[layout.DEAD_TIME, 0] * state[layout.SCALING, 0]
    s = max(t + ahead - state[layout.BEHIND, 0], state[layout.LAST_TRAJECTORY_TIME, 0])
    state[layout.LAST_TIME, 0] = t
    state[layout.LAST_TRAJECTORY_TIME, 0] = s
    starts, coefficients = path_of(n, nv)
    segment = int(state[layout.SEGMENT, 0])
    state[layout.SEGMENT, 0] = sample(starts, coefficients, segment, s, 0.0, state)
    scale(state)
    if predicted:
        laws.predict_state(settings, state, q, v, dt)
        belief.watch_rest(state, t, v)
    else:
        stopped = n[layout.WATCH] == motion_watch.STOPPED
        laws.update_feedback(settings, state, q, v, min(dt, LONGEST_INTEGRATION_STEP), stopped)
        q, v = state[layout.PREDICTED_POSITION], state[layout.PREDICTED_VELOCITY]
    if n[layout.POWERLESS] != 0:
        output_stage.release(settings, state, v, dt, tau, predicted)
        return layout.UNDER_WAY
    limited = output_stage.limit_acceleration(settings, state, q, v, dt)
    robot = laws.robot_of(n, nv)
    laws.control_torque(robot, settings, state, q, v, predicted)
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
        found = _ending(n, settings, tolerances, state, s, pressed)
        if state[layout.GUIDED, 0] == 0.0 and _shaken(settings, state, dt):
            found = layout.SHAKEN
    return int(saturated) + FOUND * found


_step, _watch = linked(step), linked(motion_watch.watch)


@inlined
def catch(n: IntVector, settings: Matrix, state: Matrix, t: float, q: Vector, v: Vector) -> None:
    """Takes the desired position and velocity from the arm, and brakes from there."""
    state[layout.LAST_TIME, 0] = t
    state[layout.LAST_TRAJECTORY_TIME, 0] = t - state[layout.BEHIND, 0]
    state[layout.GUIDED, 0] = 1.0 if is_hand_law(settings) else 0.0
    state[layout.SATURATED_SINCE, :] = 0.0
    state[layout.SMOOTH_VELOCITY_ERROR, :] = 0.0
    belief.believe(state)
    brake_straight(n, settings, state, q, v)


@inlined
def brake(n: IntVector, settings: Matrix, state: Matrix, guided: bool) -> None:
    """Brakes along the path; where a hand guides the arm, straight on from its last state."""
    s = state[layout.LAST_TRAJECTORY_TIME, 0]
    if guided:
        q, v = state[layout.LAST_POSITION], state[layout.LAST_VELOCITY]
        if n[layout.PREDICTING] != 0:
            q, v = state[layout.PREDICTED_POSITION], state[layout.PREDICTED_VELOCITY]
        catch(n, settings, state, state[layout.LAST_TIME, 0], q, v)
    elif s < state[layout.PATH_END, 0] and state[layout.UNSCALED_UNTIL, 0] <= s:
        brake_along(n, settings, state, False)


@inlined
def _note_off_goal(settings: Matrix, tolerances: Matrix, state: Matrix) -> None:
    """Writes which joint is furthest from its goal, as a part of what it may be off without a word,
    and how far; of those that have no tolerance there."""
    furthest = 1.0
    state[layout.VIOLATION, 0] = 0.0
    for j in range(state.shape[1]):
        off = abs(state[layout.POSITION_ERROR, j]) / settings[layout.END_SLACK, j]
        if off > furthest and tolerances[GOAL_POSITION, j] == math.inf:
            furthest = off
            state[layout.VIOLATING_JOINT, 0] = j
            state[layout.VIOLATION, 0] = state[layout.POSITION_ERROR, j]


@inlined
def end_motion(n: IntVector, state: Matrix, findings: Matrix, kind: int) -> None:
    """Ends the motion, and keeps why."""
    row = findings[n[layout.FINDINGS] % layout.MOST_FINDINGS]
    row[layout.KIND], row[layout.ENDED] = kind, n[layout.MOTION]
    row[layout.FOUND_AT] = state[layout.LAST_TRAJECTORY_TIME, 0]
    for k in range(layout.FOUND_AT - layout.JOINT):
        row[layout.JOINT + k] = state[layout.VIOLATING_JOINT + k, 0]
    if kind == layout.PRESSED:
        since = state[layout.SATURATED_SINCE]
        row[layout.JOINT] = j = since.argmax()
        row[layout.EXCESS] = since[j]
    joint = int(row[layout.JOINT])
    row[layout.MOVING_AT] = state[layout.LAST_VELOCITY, joint]
    row[layout.EXTERNAL_TORQUE] = state[layout.RESIDUAL, joint]
    row[layout.LATE_BY] = state[layout.PAUSE_DELAY, 0]
    n[layout.FINDINGS] += 1
    n[layout.MOTION] = 0


@inlined
def _stop(n: IntVector, settings: Matrices, state: Matrix, t: float, q: Vector, v: Vector) -> None:
    """A bound of the motion was violated: the arm brakes from where it is, by a law that holds it,
    and stays about that place. An arm that is stopped already does so."""
    if n[layout.WATCH] == motion_watch.FREE:
        n[layout.WATCH] = motion_watch.STOPPED
        if is_hand_law(settings[n[layout.BRACED]]):
            n[layout.BRACED] = 1
        catch(n, settings[n[layout.BRACED]], state, t, q, v)


@inlined
def _shake_less(n: IntVector, state: Matrix) -> int:
    """An arm that shakes though a law brakes it that holds any arm gets half of the feedback, and
    in the end none."""
    state[layout.FEEDBACK_SHARE, 0] *= 0.5
    state[layout.VIOLATION, 0] = 0.0  # no speed tells of it
    return layout.LET_GO if state[layout.FEEDBACK_SHARE, 0] < LEAST_FEEDBACK else layout.UNDER_WAY


@inlined
def emergency_stop(n: IntVector, settings: Matrices, state: Matrix, findings: Matrix) -> None:
    """Brakes, and goes by a law that holds the arm; arguments as of `advance`."""
    guided = state[layout.GUIDED, 0] != 0.0
    if is_hand_law(settings[n[layout.BRACED]]):
        n[layout.BRACED] = 1
        state[layout.GUIDED, 0] = 0.0
    if n[layout.WATCH] == motion_watch.FREE:
        n[layout.WATCH] = motion_watch.STOPPED
    end_motion(n, state, findings, layout.STOPPED)
    brake(n, settings[n[layout.BRACED]], state, guided)


@inlined
def advance(
    n: IntVector,
    settings: Matrices,
    tolerances: Matrix,
    state: Matrix,
    findings: Matrix,
    t: float,
    q: Vector,
    v: Vector,
    tau: Vector,
    predicted: bool,
) -> int:
    """A step; one that finds something ends the motion, and if a bound was violated, the arm brakes
    from where it is, so that it does not press on. Returns what `step` does.

    Args:
        n, state: see layout.py.
        settings: those of the controller and those that hold any arm, shape (2, SETTINGS_ROWS, nv).
        tolerances: of the motion, as of `check`.
        findings: shape (MOST_FINDINGS, FINDING_SIZE).
        t, q, v, tau: as of `Controller.step`.
        predicted: whether the state is to be predicted; it is filled into `q` and `v` then.
    """
    in_force = settings[n[layout.BRACED]]
    of_step = n, in_force, tolerances, state, t, q, v, tau, predicted
    outcome = _step(n[layout.STEP_CODE], of_step)
    if outcome < BAD_STATE or outcome == BAD_TORQUE:  # the state counts
        if predicted and n[layout.PREDICTING] == 0:
            n[layout.GAPS] += 1
        n[layout.PREDICTING] = 1 if predicted else 0
    if predicted or outcome >= BAD_STATE:
        momentum_observer.start_anew(state)
        return outcome
    n[layout.OUTCOME] = outcome
    found = outcome // FOUND
    watched = _watch(n[layout.WATCH_CODE], (n, in_force, state, t, q, v))
    if watched != layout.UNDER_WAY:
        found = watched
    if found == layout.SHAKEN and n[layout.BRACED] != 0:
        found = _shake_less(n, state)
    if found == layout.UNDER_WAY:
        return outcome
    if found == layout.REACHED:
        _note_off_goal(in_force, tolerances, state)
    end_motion(n, state, findings, found)
    if found in (layout.PATH_VIOLATED, layout.GOAL_VIOLATED):
        brake_along(n, in_force, state, True)
    elif found == layout.LET_GO:
        n[layout.POWERLESS] = 1
        state[layout.LET_GO_DAMPING, int(state[layout.VIOLATING_JOINT, 0])] = 0.0
    elif found in (layout.RESTLESS, layout.CALM):
        pass  # the mode tells
    elif found > layout.BLOCKED:
        _stop(n, settings, state, t, q, v)
    elif found > layout.REACHED:
        n[layout.GAVE_WAY] += 1
        catch(n, in_force, state, t, q, v)
    return outcome % FOUND + FOUND * found


# `advance` by itself, for Python.
step_once = kernel()(advance)


@inlined
def _copy(rows: Matrix, into: Matrix) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            into[i, j] = rows[i, j]


@inlined
def serve(
    n: IntVector,
    settings: Matrices,
    tolerances: Matrix,
    state: Matrix,
    request: Request,
    measured: Matrix,
    new_settings: Matrices,
    new_tolerances: Matrix,
) -> None:
    """Carries out a request; the first arguments are as of `advance`, the others a `Box`'s."""
    kind, in_force = request.kind, settings[n[layout.BRACED]]
    s = state[layout.LAST_TRAJECTORY_TIME, 0]
    request.done, request.ended = True, 0
    if kind == ADOPT and (request.revision != n[layout.REVISION] or s > request.begin):
        request.done = False  # another trajectory has come between, or it is too late
        return
    if kind <= ADOPT:
        request.ended, n[layout.MOTION] = n[layout.MOTION], 0
    if kind == BRAKE:
        brake(n, in_force, state, request.guided)
    elif kind == CATCH:
        catch(n, in_force, state, request.now, measured[0], measured[1])
        arrest.begin_from(in_force, state, request.now, measured[1])
    elif kind == GUIDE:
        state[layout.GUIDED, 0] = 1.0
    elif kind == ADOPT:
        if s >= state[layout.PATH_END, 0]:
            settle(state)  # a stop leaves it at full speed
        where = request.starts_at, request.coefficients_at, request.segments
        follow(n, state, *where, request.rest)
        state[layout.START_TIME, 0], state[layout.END_TIME, 0] = request.start, request.end
        state[layout.PAUSE_DELAY, 0] = 0.0
        n[layout.MOTION] = request.motion
    elif kind == CHANGE:
        for which in range(2):
            _copy(new_settings[which], settings[which])
        n[layout.BODIES_AT] = request.bodies_at
        if request.new_model:
            momentum_observer.start_anew(state)
        state[layout.RESTS_SINCE, 0] = math.nan
    elif kind == BRACE:
        n[layout.BRACED] = 1 if request.braced else 0
    if kind in (ADOPT, CHANGE):
        _copy(new_tolerances, tolerances)
    if kind in (CHANGE, BRACE):
        by_hand = is_hand_law(settings[n[layout.BRACED]])
        if by_hand or n[layout.BRACED] != 0:
            state[layout.GUIDED, 0] = 1.0 if by_hand else 0.0


@kernel(
    "void(i8[::1], f8[:,:,::1], f8[:,::1], f8[:,::1], "
    "Request[::1], f8[:,::1], f8[:,:,::1], f8[:,::1])"
)
def serve_now(
    n: IntVector,
    settings: Matrices,
    tolerances: Matrix,
    state: Matrix,
    requests: RecordArray,
    measured: Matrix,
    new_settings: Matrices,
    new_tolerances: Matrix,
) -> None:
    """`serve` by itself, for Python."""
    serve(n, settings, tolerances, state, requests[0], measured, new_settings, new_tolerances)
