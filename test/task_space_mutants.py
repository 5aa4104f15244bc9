"""Breaks the laws of task space, what sets them, and the stream of a planner's gains, one line at a
time, and tells which tests fail then.

Run with NUMBA_DISABLE_JIT=1, so that a changed source is in force at once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mutants import Mutant, report

FOLDER = Path(__file__).parent
FORMULAS = str(FOLDER / "control" / "test_task_formulas.py")
STREAMS = str(FOLDER / "control" / "test_pose_streams.py")
SETTINGS = str(FOLDER / "control" / "test_pose_settings.py")
GAINS = str(FOLDER / "control" / "test_gains_stream.py")
MESSAGES = str(FOLDER / "messages" / "test_feedback_control.py")


def _of(file: str, *names: str) -> list[str]:
    return [f"{file}::test_{name}" for name in names]


# Tests that need few steps: the others take minutes where nothing is compiled.
TESTS = [
    FORMULAS,
    MESSAGES,
    *_of(
        SETTINGS,
        "stiffness_that_is_none_or_too_large_changes_nothing",
        "without_a_pose_or_an_impedance_nothing_is_taken",
        "wrench_is_bounded_and_a_second_publisher_waits",
        "wrench_counts_from_its_arrival_in_the_frame_of_the_link",
        "matrix_is_symmetric_in_force",
        "stream_begins_with_the_stiffness_of_the_parameters_and_no_wrench",
    ),
    *_of(
        STREAMS,
        "target_that_is_refused_moves_nothing",
        "pose_in_the_frame_of_a_link",
        "posture_stays_within_the_limits",
        "missing_states_end_the_motion_of_the_tip",
    ),
    *_of(
        GAINS,
        "torque_is_that_of_linear_feedback_controller",
        "law_is_its_formula",
        "continuous_joint_turns_the_shortest_way",
        "timeout_changes_while_messages_come",
        "second_publisher_is_refused_until_the_first_pauses",
        "stamp_before_that_of_the_last_message_is_refused",
        "refused_message_changes_nothing",
        "arm_brakes_and_holds_when_messages_end",
        "arm_comes_to_rest_while_states_are_missing",
        "emergency_stop_brakes_from_where_the_arm_is",
    ),
]


def _tip(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.tip", old, new)


def _impedance(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.task_space", old, new)


def _law(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.laws", old, new)


def _gains_law(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.laws", old, new, "law_is_its_formula")


def _pose(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.pose_stream", old, new)


def _settings(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.pose_settings_intake", old, new, "second_publisher_waits")


def _gains(old: str, new: str) -> Mutant:
    return Mutant(
        "rnea_control.control.gains_stream", old, new, "timeout_changes_while_messages_come"
    )


def _intake(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.gains_intake", old, new, "refused_message_changes_nothing")


def _targets(old: str, new: str) -> Mutant:
    return Mutant(
        "rnea_control.control.stream_intake", old, new, "continuous_joint_turns_the_shortest_way"
    )


def _message(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.messages.feedback_control", old, new, "test_feedback_control.py")


MUTANTS = {
    "nothing": _tip("", ""),
    # The tip: its error, inertia and singularities.
    "error turned around": _tip(
        "way = subtract(position_in(target), position_in(pose))",
        "way = subtract(position_in(pose), position_in(target))",
    ),
    "orientation error turned around": _tip(
        "product(quaternion_in(target), conjugate(quaternion_in(pose)))",
        "product(quaternion_in(pose), conjugate(quaternion_in(target)))",
    ),
    "orientation error in axes of the tip": _tip(
        "product(quaternion_in(target), conjugate(quaternion_in(pose)))",
        "product(conjugate(quaternion_in(pose)), quaternion_in(target))",
    ),
    "error that is not clipped": _impedance(
        "clipped(way, clip[0]), clipped(turn, clip[1])", "way, turn"
    ),
    "orientation error clipped as a way": _impedance(
        "clipped(turn, clip[1])", "clipped(turn, clip[0])"
    ),
    "clipped to the length alone": _tip(
        "return scale(most / length, a) if length > most else a",
        "return scale(most / length, a)",
    ),
    "tip twist of the desired motion": _tip(
        "total += J[r, j] * v[j]\n            Y[r, j]",
        "total += J[r, j] * state.desired_velocity[j]\n            Y[r, j]",
    ),
    "inertia of a single pass": _tip("for _ in range(2):", "for _ in range(0):"),
    "mass matrix for its factor": _tip("    _factor_mass_matrix(L)\n    for r", "    for r"),
    "no regularization": _tip(
        "state.regularization = (LARGEST_DAMPING * share) ** 2 * inertia_trace / max(trace, 1e-12)",
        "state.regularization = 0.0",
    ),
    "regularized everywhere": _tip(
        "state.regularization, state.condition = 0.0, 1.0",
        "state.regularization, state.condition = 0.01, 1.0",
    ),
    "singular posture that is not seen": _tip(
        "    if cholesky(G, work, 0.0):\n        return\n", "    return\n"
    ),
    "condition of the weakest direction that is none": _tip(
        "if IMMOVABLE * IMMOVABLE * trace < value <", "if -1.0 < value <"
    ),
    "gradient turned around": _tip(
        "state.singular_gradient[r] = total", "state.singular_gradient[r] = -total"
    ),
    "gradient of the columns of one joint": _tip("if k != i:", "if False:"),
    # The impedance.
    "stiffness that pushes away": _impedance(
        "total += K[SIZE * k + m] * e[m]", "total -= K[SIZE * k + m] * e[m]"
    ),
    "diagonal of the stiffness alone": _impedance(
        "total += K[SIZE * k + m] * e[m]", "total += K[SIZE * k + m] * e[m] if k == m else 0.0"
    ),
    "moment that is not the gradient": _impedance(
        "screw_velocity(rotation_part(e), rotation_part(wrench))", "rotation_part(wrench)"
    ),
    "no target wrench": _impedance(
        "clipped(add(position_in(wrench), position_in(target)), most[0])",
        "clipped(position_in(wrench), most[0])",
    ),
    "target wrench turned around": _impedance(
        "clipped(add(moment, rotation_part(target)), most[1])",
        "clipped(subtract(moment, rotation_part(target)), most[1])",
    ),
    "force without a bound": _impedance(
        "clipped(add(position_in(wrench), position_in(target)), most[0])",
        "add(position_in(wrench), position_in(target))",
    ),
    "moment without a bound": _impedance(
        "clipped(add(moment, rotation_part(target)), most[1])",
        "add(moment, rotation_part(target))",
    ),
    "no damping": _impedance(
        "state.work[c] = 2.0 * settings.task_damping_ratio * frequency * along",
        "state.work[c] = 0.0",
    ),
    "half the damping": _impedance(
        "2.0 * settings.task_damping_ratio * frequency", "settings.task_damping_ratio * frequency"
    ),
    "damping without its ratio": _impedance("2.0 * settings.task_damping_ratio", "2.0"),
    "damping that drives": _impedance(
        "x[r] -= state.basis[r, j] * out[j]", "x[r] += state.basis[r, j] * out[j]"
    ),
    "damping of the velocity alone": _impedance(
        "x[r] = state.desired_twist[r]\n    into_basis", "x[r] = 0.0\n    into_basis"
    ),
    "damping of the inertia alone": _impedance(
        "    _scaled_stiffness(state)\n    B, V",
        "    set_identity(state.scaled_stiffness)\n    B, V",
    ),
    "free directions without damping": _impedance(
        "K[SIZE * k + k] = max(K[SIZE * k + k], least)", "pass"
    ),
    "rotations damped as ways": _impedance(
        "LEAST_STIFFNESS if k < 3 else", "LEAST_STIFFNESS if True else"
    ),
    "wrench by the transpose of another row": _impedance(
        "out[j] += state.jacobian[r, j] * state.wrench[r]",
        "out[j] += state.jacobian[r, j] * state.wrench[(r + 3) % SIZE]",
    ),
    "wrench of the arm on the tip": _impedance(
        "out[j] += state.jacobian[r, j] * state.wrench[r]",
        "out[j] -= state.jacobian[r, j] * state.wrench[r]",
    ),
    # How stiffness and wrench change.
    "stiffness at once": _impedance(
        "share, most = -math.expm1(-dt / STIFFNESS_TIME), settings.task_max_power * dt",
        "share, most = 1.0, math.inf",
    ),
    "ramp without a bound of the power": _impedance("if share * energy > most:", "if False:"),
    "power of the whole energy": _impedance(
        "energy += 0.5 * e[k] * change * e[m]", "energy += e[k] * change * e[m]"
    ),
    "power of the diagonal alone": _impedance(
        "energy += 0.5 * e[k] * change * e[m]",
        "energy += 0.5 * e[k] * change * e[m] if k == m else 0.0",
    ),
    "power of the error's size": _impedance(
        "energy += 0.5 * e[k] * change * e[m]", "energy += 0.5 * abs(e[k] * change * e[m])"
    ),
    "stiffness that is never reached": _impedance(
        "elif missing <= SAME_STIFFNESS * largest:", "elif False:"
    ),
    "parameters that change nothing": _impedance("    if changed:\n", "    if False:\n"),
    "message that a stop leaves": _impedance(
        '    """The stiffness of the settings is approached, and no wrench."""\n'
        "    take_settings(settings, state)\n",
        '    """The stiffness of the settings is approached, and no wrench."""\n',
    ),
    "wrench that a stop leaves": _impedance("    state.asked_wrench[:] = 0.0\n", "    pass\n"),
    "wrench at once": _impedance(
        "    share = -math.expm1(-dt / STIFFNESS_TIME)\n    fresh", "    share = 1.0\n    fresh"
    ),
    "wrench without a timeout": _impedance(
        "fresh = t - state.wrench_at <= settings.stream_timeout", "fresh = True"
    ),
    # The posture.
    "posture that is left": _impedance(
        "torque *= state.posture[j] - q[j]", "torque *= q[j] - state.posture[j]"
    ),
    "posture that moves the tip": _impedance(
        "        state.torque[j] -= out[j]\n", "        pass\n"
    ),
    "posture without its damping": _impedance(
        "- max(damping, NULL_DAMPING * inertia) * rate", "- 0.0 * rate"
    ),
    "posture damped by its stiffness alone": _impedance(
        "max(damping, NULL_DAMPING * inertia) * rate", "damping * rate"
    ),
    "no limits of joints": _impedance("if zone < math.inf:", "if False:"),
    "limits that attract": _impedance(
        "torque -= LIMIT_STIFFNESS * inertia * outside",
        "torque += LIMIT_STIFFNESS * inertia * outside",
    ),
    "lower limits alone": _impedance("max(q[j] - (upper - zone), 0.0) - max", "-max"),
    "limits without damping": _impedance("if outside != 0.0:", "if False:"),
    "weights that count nothing": _impedance(
        "torque = settings.nullspace_stiffness * settings.nullspace_weight[j]",
        "torque = settings.nullspace_stiffness",
    ),
    "posture of the desired velocity": _law(
        "    task_space.find_null_torque(robot, settings, state, q, v, of_joints)\n",
        "    task_space.find_null_torque(robot, settings, state, q, v, not of_joints)\n",
    ),
    # The laws.
    "law of the last pose": _law(
        "    tip.observe_tip(robot, settings, state, q, v)\n"
        "    task_space.find_error(settings, state)\n    task_space.find_wrench",
        "    task_space.find_error(settings, state)\n"
        "    tip.observe_tip(robot, settings, state, q, v)\n    task_space.find_wrench",
    ),
    "law of the last wrench": _law("    task_space.find_wrench(settings, state)\n", ""),
    "impedance at the state before": _law(
        "    tip.observe_tip(robot, settings, state, q, v)\n"
        "    task_space.find_error(settings, state)\n    task_space.find_wrench",
        "    tip.observe_tip(robot, settings, state, state.last_position, v)\n"
        "    task_space.find_error(settings, state)\n    task_space.find_wrench",
    ),
    "impedance without a posture": _law("    task_space.add_null_torque(robot, state)\n", ""),
    "joints that are not aimed at": _law("    if of_joints:\n", "    if False:\n"),
    "acceleration that is not wanted": _law(
        "    if not of_joints:\n        _find_desired_velocity",
        "    if of_joints:\n        _find_desired_velocity",
    ),
    "tip that is not accelerated": _impedance(
        "x[r] = state.desired_twist_rate[r] + w * w", "x[r] = w * w"
    ),
    "tip without stiffness": _impedance("+ w * w * state.task_error[r]", "+ 0.0"),
    "tip with stiffness of w": _impedance("w * w * state.task_error[r]", "w * state.task_error[r]"),
    "tip without damping": _impedance(
        "x[r] += 2.0 * w * (state.desired_twist[r] - state.twist[r])", "pass"
    ),
    "tip that damps the desired twist": _impedance(
        "x[r] += 2.0 * w * (state.desired_twist[r] - state.twist[r])",
        "x[r] -= 2.0 * w * (state.desired_twist[r] - state.twist[r])",
    ),
    "no acceleration of its own": _impedance(
        "state.task_error[r] - own -", "state.task_error[r] -"
    ),
    "posture that accelerates the tip": _impedance("- own - state.work[r]", "- own"),
    "posture without its inertia": _impedance(
        "a[j], out[j] = out[j] / inertia, 0.0", "a[j], out[j] = out[j], 0.0"
    ),
    # The stream of poses.
    "targets without a timeout": _pose(
        "fresh = t - state.stream_at <= settings.stream_timeout", "fresh = True"
    ),
    "targets outside the box": _pose(
        "target = _within_box(settings, add(add(p, way), scale(passed, rate)))",
        "target = add(add(p, way), scale(passed, rate))",
    ),
    "box with one side": _pose("min(max(p[1], box[1]), box[4])", "min(p[1], box[4])"),
    "velocity without a bound": _pose(
        "bounded = clipped(add(v, scale(h, a)), fastest)", "bounded = add(v, scale(h, a))"
    ),
    "acceleration without a bound": _pose(
        "clipped(_approach(e, rate, v, w, most, h), most)", "_approach(e, rate, v, w, most, h)"
    ),
    "braking without a bound": _pose(
        "return clipped(scale(1.0 / h, subtract(bounded, v)), HARDEST_BRAKING * most)",
        "return scale(1.0 / h, subtract(bounded, v))",
    ),
    "target of the arrival": _pose(
        "_time_carried_and_faded(state, w, t + settings.dead_time)",
        "_time_carried_and_faded(state, w, t)",
    ),
    "twist without an end": _pose("    if passed <= span:\n", "    if passed < math.inf:\n"),
    "turn in axes of the tip": _pose(
        "e = normalized(product(quaternion_of_vector(turn), e))",
        "e = normalized(product(e, quaternion_of_vector(turn)))",
    ),
    "targets while states are missing": _pose(
        "follows = fresh and not predicted", "follows = fresh"
    ),
    "stream that begins at its last pose": _pose(
        "    find_pose(robot, settings, state.last_position, state.desired_pose)\n", ""
    ),
    "stream that begins with the last wrench": _pose(
        "(state.target_wrench, state.asked_wrench, state.task_error)", "(state.task_error,)"
    ),
    "stream that begins with the last stiffness": _pose("    take_settings(settings, state)\n", ""),
    "stream that begins at the last posture": _pose(
        "state.posture[j] = state.last_position[j]", "pass"
    ),
    "toward a singular posture at full speed": _pose("    if excess <= 0.0:\n", "    if True:\n"),
    "away from a singular posture slowly": _pose("turning) >= 0.0:", "turning) >= math.inf:"),
    # What may be set meanwhile.
    "any publisher": _settings("<= silence and not same:", "<= silence and False:"),
    "first publisher for ever": _settings(
        "if intake.known and t - intake.heard_at <= silence and", "if intake.known and"
    ),
    "stiffness under any law": _settings(
        "    if not (arm.takes_streams and is_impedance(settings, state)):\n"
        "        note(intake, NOT_NOW)\n        return NOT_NOW\n"
        "    if not _follows(intake, publisher, t, STIFFNESS_SILENCE):",
        "    if not _follows(intake, publisher, t, STIFFNESS_SILENCE):",
    ),
    "wrench under any law": _settings(
        "    if not (arm.takes_streams and is_impedance(settings, state)):\n"
        "        note(intake, NOT_NOW)\n        return NOT_NOW\n"
        "    if not _follows(intake, publisher, t, settings.stream_timeout):\n"
        "        return FOREIGN\n    if decoded == TAKEN:\n        intake.taken += 1\n"
        "        into_root",
        "    if not _follows(intake, publisher, t, settings.stream_timeout):\n"
        "        return FOREIGN\n    if decoded == TAKEN:\n        intake.taken += 1\n"
        "        into_root",
    ),
    "any stiffness": _settings("if is_stiffness(state, numbers):", "if True:"),
    "stiffness of any frequency": _settings(
        "if not frequency <= arm.most_tip_frequency:", "if False:"
    ),
    "stiffness that was refused": _settings(
        "result, intake.value = TOO_STIFF, (arm", "intake.value = (arm"
    ),
    "diagonal in every column": _settings("entry if k == m else 0.0", "entry"),
    "upper half of the matrix alone": _settings(
        "0.5 * (numbers[SIZE * k + m] + numbers[SIZE * m + k])", "numbers[SIZE * k + m]"
    ),
    "wrench in the frame of the root": _settings(
        "        into_root(robot_of(arm, state.shape[1]), state, frame, wrench, True)\n", ""
    ),
    "wrench that is asked for without a bound": _settings(
        "clipped(position_in(wrench), most[0])", "position_in(wrench)"
    ),
    "wrench that never counts": _settings("        state.wrench_at = t\n", ""),
    "wrench that was not read": _settings(
        "    if decoded == TAKEN:\n        intake.taken += 1\n        into_root",
        "    if True:\n        intake.taken += 1\n        into_root",
    ),
    "posture beyond the limits": _settings(
        "min(max(q, settings.lower_limit[j]), settings.upper_limit[j])", "q"
    ),
    # A planner's gains.
    "gains without their torque": _gains_law("torque = state.target_effort[i]", "torque = 0.0"),
    "gains that push away": _gains_law(
        "torque += K[i, j] * state.position_error[j] +",
        "torque += -K[i, j] * state.position_error[j] +",
    ),
    "gains without damping": _gains_law("+ K[i, nv + j] * state.velocity_error[j]", ""),
    "gains that drive": _gains_law(
        "+ K[i, nv + j] * state.velocity_error[j]", "- K[i, nv + j] * state.velocity_error[j]"
    ),
    "gains transposed": _gains_law("torque += K[i, j] * state", "torque += K[j, i] * state"),
    "gains of the positions twice": _gains_law("+ K[i, nv + j] *", "+ K[i, j] *"),
    "gains without a timeout": _gains(
        "return not t - state.stream_at <= settings.control_timeout", "return False"
    ),
    "timeout of targets": _gains("settings.control_timeout", "settings.stream_timeout"),
    "gains for the last state": _gains("state.desired_position[j] = state.target[j]\n", "pass\n"),
    "velocity of the state before": _gains(
        "            state.desired_velocity[j] = state.target_rate[j]\n", ""
    ),
    "state of any distance": _intake(
        "if result == TAKEN and is_distant(", "if False and is_distant("
    ),
    "distance of one side": _targets(
        "if abs(way) > settings.stream_max_distance[j]:",
        "if -way > settings.stream_max_distance[j]:",
    ),
    "gains of the message before": _intake("in_force[i, k] = gains[i, k]", "pass"),
    "gains of the positions alone": _intake("for k in range(2 * nv):", "for k in range(nv):"),
    "gains that were refused": _intake(
        "        result = TOO_FAR\n    if result == TAKEN:\n",
        "        result = TOO_FAR\n    if True:\n",
    ),
    # Its message.
    "gains in the order of the message": _message(
        "gains[joints[i], half * nv + joints[j]] = word", "gains[i, half * nv + j] = word"
    ),
    "columns in the order of the message": _message(
        "gains[joints[i], half * nv + joints[j]] = word", "gains[joints[i], half * nv + j] = word"
    ),
    "torques in the order of the message": _message(
        "bits[2, joints[i]] = word", "bits[2, i] = word"
    ),
    "any number": _message("result = max(result, _judge(word))\n        bits", "bits"),
    "any gain": _message("result = max(result, _judge(word))\n                gains", "gains"),
    "any large number": _message("TOO_LARGE if word & _MAGNITUDE > LARGEST else READ", "READ"),
    "large negative numbers": _message("word & _MAGNITUDE > LARGEST", "LARGEST < word < 2**63"),
    "any state": _message("if _judge(bits[row, j]) != READ:", "if False:"),
    "state that is missing": _message(
        "if not cdr.is_finite(bits[row, j]):  # NaN: the sequence is empty", "if False:"
    ),
    "gains of any shape": _message(
        "fits &= cdr.word(data, position, big_endian) == (rows if k == 0 else columns)", "pass"
    ),
    "gains transposed in the message": _message(
        "(rows if k == 0 else columns)", "(columns if k == 0 else rows)"
    ),
    "gains of any length": _message(
        "fits &= cdr.word(data, position + 4, big_endian) == rows * columns", "pass"
    ),
    "some of the joints": _message(
        "    elif result == READ and count != nv:\n", "    elif False:\n"
    ),
}


if __name__ == "__main__":
    report(MUTANTS, TESTS, sys.argv[1:])
