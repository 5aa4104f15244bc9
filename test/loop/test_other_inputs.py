"""Targets of streams in the loop: while an emergency stop was not read, or the interpreter stands
still, none begins."""

from __future__ import annotations

import numpy as np
import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from supervised_arm import START, SupervisedArm

from rnea_control.control import stream_intake
from rnea_control.loop.loop_state import LoopState
from rnea_control.loop.other_inputs import TARGET_JOINT, OtherInputs, hear_targets_once
from rnea_control.loop.state_intake import StateIntake

NAMES = ["shoulder", "elbow"]
LINKS = ["base", "upper_arm"]
CLOCK = -1  # stamps are of a simulation


def send(arm: SupervisedArm, loop: LoopState, others: OtherInputs) -> int:
    """A target near the arm, as from a process."""
    states = StateIntake(NAMES, 0.1)
    states.intake.time = arm.t
    message = serialize_message(JointState(name=NAMES, position=list(START + 0.1)))
    others.arrays.message[: len(message)] = np.frombuffer(message, np.uint8)
    return hear_targets_once(
        *(loop.argument, others.arrays, arm.controller.arrays, states.intake.argument),
        *(TARGET_JOINT, len(message), (1, 2), CLOCK, 0.0),
    )


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({}, stream_intake.TAKEN),
        ({"hangs": True}, stream_intake.NOT_NOW),
        ({"stops_received": 3, "stops_read": 2}, stream_intake.NOT_NOW),
        ({"stops_received": 3, "stops_read": 3}, stream_intake.TAKEN),
    ],
)
def test_stream_begins_only_where_python_has_seen_all(fields: dict, result: int) -> None:
    arm = SupervisedArm().activate()
    loop = LoopState()
    for name, value in fields.items():
        setattr(loop, name, value)
    assert send(arm, loop, OtherInputs(NAMES, LINKS)) == result
    assert arm.controller.streams == (result == stream_intake.TAKEN)


def test_stream_goes_on_beside_a_publisher_of_released_stops() -> None:
    """A stop that is pressed ends it at once."""
    arm, loop, others = SupervisedArm().activate(), LoopState(), OtherInputs(NAMES, LINKS)
    assert send(arm, loop, others) == stream_intake.TAKEN
    loop.stops_received = 1
    assert send(arm, loop, others) == stream_intake.TAKEN
    arm.supervisor.emergency_stop(True)
    assert send(arm, loop, others) == stream_intake.NOT_NOW
    loop.stops_read = 1
    assert send(arm, loop, others) == stream_intake.NOT_NOW and not arm.controller.streams
