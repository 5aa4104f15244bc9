"""Breaks the bounds of the motion, the arrest and what follows it, one line at a time, and tells
which tests fail then.

Run with NUMBA_DISABLE_JIT=1, so that a changed source is in force at once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mutants import Mutant, report

FOLDER = Path(__file__).parent / "control"
TESTS = [str(FOLDER / f"test_{name}.py") for name in ("arrest", "letting_go", "motion_watch")]


def _watch(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.motion_watch", old, new)


def _payload(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.unmodeled_payload", old, new)


def _arrest(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.arrest", old, new)


def _release(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.output_stage", old, new)


def _step(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.step", old, new)


MUTANTS = {
    "nothing": _watch("", ""),
    # Bound 1.
    "no contradiction": _watch("contradicting_for[j] > LASTING", "contradicting_for[j] > 1e9"),
    "contradiction at once": _watch("LASTING = 0.015", "LASTING = -1.0"),
    "contradiction after long": _watch("LASTING = 0.015", "LASTING = 0.15"),
    "contradiction of one slow state": _watch("else min(h, LASTING))", "else h)"),
    "contradiction does not last": _watch(
        "        return 0.0\n    lasted",
        "        return state.contradicting_for[j]\n    lasted",
    ),
    "contradiction far too wide": _watch("CONTRADICTION = 0.02", "CONTRADICTION = 0.2"),
    "contradiction far too narrow": _watch("CONTRADICTION = 0.02", "CONTRADICTION = 0.002"),
    "contradiction of slow joints as of fast ones": _watch(
        "min(most, CONTRADICTION)", "CONTRADICTION"
    ),
    "contradiction without the noise": _watch("GAP_MARGIN = 4.0", "GAP_MARGIN = 0.0"),
    "contradiction with enormous noise": _watch("GAP_MARGIN = 4.0", "GAP_MARGIN = 400.0"),
    "one position contradicts by any amount": _watch(
        "FASTEST_CONTRADICTION = 2.0", "FASTEST_CONTRADICTION = 1e9"
    ),
    "positions and velocities never forget": _watch("MEMORY = 0.1 ", "MEMORY = 100.0 "),
    "positions and velocities forget at once": _watch("MEMORY = 0.1 ", "MEMORY = 0.005 "),
    "turns of continuous joints count": _watch(
        "shortest_way(settings, j, q[j] - state.watched_position[j])",
        "q[j] - state.watched_position[j]",
    ),
    "gaps start nothing anew": _watch("starts = not h > 0.0", "starts = False"),
    "gaps leave contradictions": _watch(
        "state.contradicting_for[j] = 0.0\n            state.smooth",
        "state.smooth",
    ),
    # Bounds 2 and 3.
    "no velocity bound": _watch("if abs(velocity) > bound + margin", "if False"),
    "velocity bound on one side": _watch("if abs(velocity) > bound", "if velocity > bound"),
    "no bound of the velocity error": _watch("if abs(error) > bound + margin", "if False"),
    "bound of the velocity error on one side": _watch("if abs(error) > bound", "if error > bound"),
    "velocity error not smoothed": _watch("SMOOTHING = 0.005", "SMOOTHING = 1e-6"),
    "velocity error smoothed for long": _watch("SMOOTHING = 0.005", "SMOOTHING = 0.1"),
    # Bounds 4 and 5.
    "no driving torque": _watch("and abs(residual) > bound:", "and False:"),
    "driving torque of joints at rest": _watch("if moves and part > 0.0", "if part > 0.0"),
    "driving torque against the motion": _watch("if moves and part > 0.0", "if moves"),
    "hand as anybody": _watch("HAND_FACTOR = 2.0", "HAND_FACTOR = 1.0"),
    "hand as it likes": _watch("HAND_FACTOR = 2.0", "HAND_FACTOR = 20.0"),
    "no driving power": _watch("if not pushed and power >", "if not pushed and 0.0 * power >"),
    "power of a hand": _watch("if not pushed and power >", "if power >"),
    "power of the strongest joint only": _watch("power += part", "power = max(power, part)"),
    "power against the motion not taken off": _watch("power += part", "power += max(part, 0.0)"),
    # Bounds 6 and 7.
    "no contact torque": _watch("if against > bound and", "if False and"),
    "friction is contact": _watch("GROWTH * bound", "-1e9"),
    "contact only beyond all growth": _watch("GROWTH = 0.6", "GROWTH = 60.0"),
    "friction of the other direction": _watch(
        "if way != state.sliding_way[j] or not h > 0.0:", "if not h > 0.0:"
    ),
    "friction never drifts": _watch("FRICTION_DRIFT = 1.0", "FRICTION_DRIFT = 1e-9"),
    "friction drifts at once": _watch("FRICTION_DRIFT = 1.0", "FRICTION_DRIFT = 100.0"),
    "contact of an unsettled residual": _watch("UNSETTLED = 2.0", "UNSETTLED = 1.0"),
    "no contact before it has settled": _watch("UNSETTLED = 2.0", "UNSETTLED = 200.0"),
    "contact along the motion": _watch("against = -way *", "against = way *"),
    "joint that does not slide has settled": _watch(
        "elif way * arrest.smooth_velocity(state, j) > least:", "else:"
    ),
    "no collision": _watch(
        "if abs(residual) > bound:\n            _note(state, j, residual, bound)\n"
        "            return layout.COLLIDED",
        "if False:\n            return layout.COLLIDED",
    ),
    "collision on one side": _watch("if abs(residual) > bound:\n", "if residual > bound:\n"),
    # A payload that the model lacks.
    "nothing is explained by a payload": _payload("mass = min(", "mass = 0.0 * min("),
    "a payload explains all": _watch(
        "return min(max(state.residual[j], min(weight, 0.0)), max(weight, 0.0))",
        "return state.residual[j]",
    ),
    "what is explained stays": _watch("    state.payload_weight[:] = 0.0\n", ""),
    "a bound is told that does not hold": _watch("bound + abs(explained))", "bound)"),
    "contact has not grown by the payload": _watch("+ _explained(state, j) - state", "- state"),
    "a payload of any mass": _payload(", settings.unmodeled_payload)", ", 1e9)"),
    "a payload that pushes upward": _payload("if product > 0.0 and", "if"),
    "a payload explains what is unlike it": _payload("LEAST_FIT = 0.7", "LEAST_FIT = 0.0"),
    "weight upward": _payload("scale(-1.0,", "scale(1.0,"),
    "contact of a guided arm": _watch("== FREE and not pushed", "== FREE"),
    "contact of a stopped arm": _watch("arm.watch == FREE and not pushed", "not pushed"),
    "external torque of one state": _watch(
        "return found if suspected else layout", "return found if True else layout"
    ),
    # Noise.
    "residual without its noise": _watch("RESIDUAL_MARGIN = 4.0", "RESIDUAL_MARGIN = 0.0"),
    "residual with enormous noise": _watch("RESIDUAL_MARGIN = 4.0", "RESIDUAL_MARGIN = 40.0"),
    "velocity without its noise": _arrest("NOISE_MARGIN = 2.0", "NOISE_MARGIN = 0.0"),
    "velocity with enormous noise": _arrest("NOISE_MARGIN = 2.0", "NOISE_MARGIN = 20.0"),
    # Which bounds there are, and what follows.
    "model of a law without one": _watch("or not uses_model(settings, state)", ""),
    "no bounds without a model": _watch(
        "    found = _unmodeled(settings, state)\n",
        "    if not uses_model(settings, state):\n"
        "        return layout.UNDER_WAY\n    found = _unmodeled(settings, state)\n",
    ),
    "bounds of an arm that nobody commands": _watch(
        "arm.watch == UNWATCHED or arm.powerless", "arm.powerless"
    ),
    "bounds of an arm that was let go": _watch(
        "arm.watch == UNWATCHED or arm.powerless", "arm.watch == UNWATCHED"
    ),
    "stopped arm tells": _watch(
        "if arm.watch == STOPPED:\n            return", "if False:\n            return"
    ),
    "blocked arm is arrested": _watch(
        "found not in (layout.UNDER_WAY, layout.BLOCKED)", "found != layout.UNDER_WAY"
    ),
    "no arrest": _watch("        arrest.begin(settings, state, t)\n", ""),
    "arrest in vain is not told": _watch(
        "if helps else layout.LET_GO", "if True else layout.LET_GO"
    ),
    "states after letting go are recorded": _watch("if not arm.powerless:", "if True:"),
    "record of another state": _watch(
        "arm.recorded % layout.RECORD_ROWS", "(arm.recorded + 1) % layout.RECORD_ROWS"
    ),
    "feedback stays small": _watch("    state.feedback_share = 1.0\n", ""),
    # The arrest.
    "arrest without an end": _arrest("    if over:\n", "    if False:\n"),
    "arrest ends with the first slow joint": _arrest(
        "over &= speed <= SLOW", "over = speed <= SLOW"
    ),
    "arrest ends early": _arrest("SLOW = 0.1 ", "SLOW = 0.2 "),
    "arrest ends late": _arrest("SLOW = 0.1 ", "SLOW = 0.01 "),
    "joint may get faster": _arrest("if speed > bound or", "if"),
    "joint may gain nothing at first": _arrest("GAIN = 0.4", "GAIN = 0.0"),
    "joint may gain all at first": _arrest("GAIN = 0.4", "GAIN = 40.0"),
    "gain for ever": _arrest("before + GAIN if since < 0.0 else peak", "before + GAIN"),
    "no peak": _arrest("state.arrest_peak[j] = max(peak, speed)", "pass"),
    "slow joints are lively": _arrest("LIVELY = 0.3", "LIVELY = 0.1"),
    "lively joints are slow": _arrest("LIVELY = 0.3", "LIVELY = 3.0"),
    "braking acts at once": _arrest("REACTION = 0.03 ", "REACTION = 0.0 "),
    "braking acts late": _arrest("= t + REACTION", "= t + FIRST_REACTION"),
    "caught arm reacts at once": _arrest("= t + FIRST_REACTION", "= t + REACTION"),
    "joint need not be slower": _arrest("or not_slower", ""),
    "joint must be slower at once": _arrest("EFFECT = 0.07", "EFFECT = 0.0"),
    "slow joint must be slower": _arrest("UNHURRIED = 0.2", "UNHURRIED = 0.0"),
    "no coupling": _arrest("COUPLING = 0.5", "COUPLING = 0.0"),
    "coupling as fast as the fastest": _arrest("COUPLING = 0.5", "COUPLING = 1.0"),
    "coupled joint must be slower": _arrest(
        "max(UNHURRIED, coupled, peak)", "max(UNHURRIED, peak)"
    ),
    "arrest for ever": _arrest("or too_long", ""),
    "arrest is short": _arrest("LONGEST_ARREST = 0.5", "LONGEST_ARREST = 0.2"),
    "velocities alone tell the speed": _arrest("if state.contradicting_for[j] > 0.0:", "if False:"),
    "joint of the finding": _arrest("state.violating_joint = j", "pass"),
    "speed of the finding": _arrest("state.violation = speed", "pass"),
    "speed before, of the finding": _arrest("state.violated_tolerance = before", "pass"),
    # Letting go.
    "fade is a jump": _release("change = limit * dt / RELEASE_TIME", "change = 1e9"),
    "no fade": _release("change = limit * dt / RELEASE_TIME", "change = 0.0"),
    "fade over half a second": _arrest("RELEASE_TIME = 0.02", "RELEASE_TIME = 0.5"),
    "damping drives": _release("-state.let_go_damping[j] * v[j]", "state.let_go_damping[j] * v[j]"),
    "damping of predictions": _release("if not predicted:", "if True:"),
    "damping beyond the effort limit": _release(
        "min(max(-state.let_go_damping[j] * v[j], -limit), limit)",
        "-state.let_go_damping[j] * v[j]",
    ),
    "no damping": _release("if not predicted:", "if False:"),
    "unknown torque": _release(
        "        if not math.isfinite(last):\n            last = 0.0\n        tau", "        tau"
    ),
    "torque after letting go": _step(
        "    if arm.powerless:\n        output", "    if False:\n        output"
    ),
    "letting go is forgotten": _step("arm.powerless = True", "pass"),
    "violating joint is damped": _step(
        "state.let_go_damping[int(state.violating_joint)] = 0.0", "pass"
    ),
    "violated bound brakes nothing": _step(
        "        _stop(arm, settings, state, t, q, v)\n", "        pass\n"
    ),
    "shaking keeps the feedback": _step("feedback_share *= 0.5", "feedback_share *= 1.0"),
    "shaking for ever": _step("LEAST_FEEDBACK = 0.1 ", "LEAST_FEEDBACK = -1.0 "),
    "shaking is let go at once": _step("LEAST_FEEDBACK = 0.1 ", "LEAST_FEEDBACK = 0.6 "),
    "own law shakes less": _step("== layout.SHAKEN and arm.braced != 0", "== layout.SHAKEN"),
    "caught arm is not arrested": _step(
        "        arrest.begin_from(in_force, state, request.now, measured[1])\n", ""
    ),
}


if __name__ == "__main__":
    report(MUTANTS, TESTS, sys.argv[1:])
