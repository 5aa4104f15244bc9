"""Breaks the laws of task space, the pose stream and its intake, one line at a time, and tells
which tests fail then."""

from __future__ import annotations

import sys
from pathlib import Path

from mutants import Mutant, report

FOLDER = Path(__file__).parent / "control"
TESTS = [str(FOLDER / f"test_{name}.py") for name in ("pose_streams", "task_space")]


def _law(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.task_space", old, new, "test_task_space.py")


def _stream(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.pose_stream", old, new)


def _intake(old: str, new: str) -> Mutant:
    return Mutant("rnea_control.control.pose_intake", old, new)


MUTANTS = {
    "nothing": _law("", ""),
    # The laws.
    "damping of the wrong sign": _law(
        "state.work[c] = 2.0 * settings.task_damping_ratio",
        "state.work[c] = -2.0 * settings.task_damping_ratio",
    ),
    "wrench without its lever": _law(
        "out[j] += state.jacobian[r, j] * state.wrench[r]",
        "out[j] += state.jacobian[r, r] * state.wrench[r]",
    ),
    "error is not clipped": _law("clipped(way, clip[0]), clipped(turn, clip[1])", "way, turn"),
    "force is not clipped": _law(
        "force = clipped(add(force, position_in(target)), most[0])",
        "force = add(force, position_in(target))",
    ),
    "no regularization": _law("LARGEST_DAMPING = 0.04", "LARGEST_DAMPING = 1e-9"),
    "fixed directions are singular": _law("IMMOVABLE = 1e-6", "IMMOVABLE = 0.0"),
    "posture is not projected": _law(
        "        state.torque[j] -= out[j]\n", "        state.torque[j] -= 0.0\n"
    ),
    "own acceleration is ignored": _law(
        "state.task_error[r] - own - state.work[r]", "state.task_error[r] - state.work[r]"
    ),
    "stiffness without a bound of power": _law(
        "share if share * energy <= most else most / energy", "share"
    ),
    # The stream.
    "targets never get old": _stream(
        "fresh = t - state.stream_at <= settings.stream_timeout", "fresh = True"
    ),
    "singular postures do not slow": _stream("    if excess <= 0.0:\n", "    if True:\n"),
    "rest goes on moving": _stream("velocity = turning = a = turning_rate = ORIGIN", "pass"),
    "no box": _stream(
        "target = _within_box(settings, add(add(p, way)", "target = (add(add(p, way)"
    ),
    "any velocity": _stream(
        "    bounded = clipped(add(v, scale(h, a)), fastest)\n",
        "    bounded = add(v, scale(h, a))\n",
    ),
    "rotation in the wrong order": _stream(
        "product(quaternion_of_vector(turn), e)", "product(e, quaternion_of_vector(turn))"
    ),
    # The intake.
    "frame of a pose is ignored": _intake(
        "store_pose(target, add(p, rotate(R, position_in(target))), normalized(orientation))",
        "store_pose(target, position_in(target), normalized(quaternion_in(target)))",
    ),
    "frame of a twist is ignored": _intake(
        "rotate(R, position_in(target)), rotate(R, rotation_part(target)))",
        "position_in(target), rotation_part(target))",
    ),
    "quaternions in the wrong order": _intake(
        "product(quaternion_of_rotation(R), normalized(quaternion_in(target)))",
        "product(normalized(quaternion_in(target)), quaternion_of_rotation(R))",
    ),
    "any distance": _intake("if distance > settings.task_max_distance[0]:", "if False:"),
    "posture of anybody": _intake("if intake.known and not stale and", "if False and"),
}


if __name__ == "__main__":
    report(MUTANTS, TESTS, sys.argv[1:])
