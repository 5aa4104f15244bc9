"""A supervised arm that follows streams of targets: begin, end, other publishers, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from streamed_arm import JOYSTICK, StreamedArm
from supervised_arm import START

from rnea_control.control import Mode, stream_intake

OTHER = (7, 10)


def streamed(**arguments) -> StreamedArm:
    arm = StreamedArm(**arguments)
    arm.activate()
    return arm


def sine(t: float) -> np.ndarray:
    return START + 0.2 * np.sin(2.0 * math.pi * 0.5 * t) * np.array([1.0, -1.0])


def rest(t: float) -> np.ndarray:
    return START


def test_arm_follows_a_stream_and_comes_to_rest_when_it_ends() -> None:
    arm = streamed().stream(sine, 2.2)
    assert arm.mode is Mode.STREAMING and arm.speed > 0.1
    assert np.abs(arm.plant.q - sine(2.2)).max() < 0.03
    arm.run(0.9)
    assert arm.mode is Mode.HOLDING and arm.speed < 1e-3
    assert "no target has come for stream.target_timeout" in arm.changes[-2][2]
    arm.stream(lambda t: arm.controller.desired[0], 0.1)  # the next target goes on from there
    assert arm.mode is Mode.STREAMING


def test_torque_answers_a_target_at_the_next_state() -> None:
    arm = streamed()
    before = arm.tau.copy()
    arm.send(START + 0.1)
    arm.tick()
    assert np.abs(arm.tau - before).max() > 0.01


def test_target_is_carried_on_for_a_short_time_only() -> None:
    arm = streamed()
    arm.send(START, velocity=[1.0, 0.0])
    arm.run(0.09)
    assert 0.02 < arm.controller.desired[0, 0] - START[0] < 0.08


def test_joints_without_a_target_stay() -> None:
    arm = streamed()
    for _ in range(50):
        arm.send([START[0] + 0.2, math.nan])
        arm.run(0.02)
    np.testing.assert_allclose(arm.plant.q, START + np.array([0.2, 0.0]), atol=2e-3)


def test_far_target_is_refused() -> None:
    arm = streamed()
    assert arm.send(START + np.array([0.0, 0.6])) == stream_intake.TOO_FAR
    assert arm.intake.joint == 1 and arm.intake.value == pytest.approx(0.6)
    arm.run(0.1)
    assert arm.mode is Mode.HOLDING and arm.speed < 1e-6


def test_first_publisher_counts_until_it_pauses() -> None:
    arm = streamed().stream(rest, 0.2)
    assert arm.send(START + 0.1, publisher=OTHER) == stream_intake.FOREIGN
    arm.run(0.15)
    assert arm.send(START + 0.1, publisher=OTHER) == stream_intake.TAKEN
    assert arm.send(START, publisher=JOYSTICK) == stream_intake.FOREIGN


def test_stamp_that_goes_back_is_refused() -> None:
    arm = streamed()
    assert arm.send(START, stamp=5.0) == stream_intake.TAKEN
    assert arm.send(START + 0.1, stamp=4.9) == stream_intake.BACKWARD
    assert arm.intake.refused == 1


def test_stream_goes_on_after_a_stop_when_its_clock_is_set_back() -> None:
    arm = streamed()
    assert arm.send(START, stamp=100.0) == stream_intake.TAKEN
    results = []
    for k in range(10):
        arm.run(0.02)
        results.append(arm.send(START, stamp=0.02 * k))
    assert set(results[:4]) == {stream_intake.BACKWARD}
    assert set(results[6:]) == {stream_intake.TAKEN}


@pytest.mark.parametrize("stop", ["hold", "emergency"])
def test_stream_that_goes_on_does_not_pull_the_arm_out_of_a_stop(stop: str) -> None:
    arm = streamed().stream(sine, 0.6)
    if stop == "hold":
        arm.supervisor.hold()
    else:
        arm.supervisor.emergency_stop(True)
        arm.supervisor.emergency_stop(False)
    arm.run(0.02)
    for _ in range(40):
        assert arm.send(START + 0.1) == stream_intake.NOT_NOW
        arm.run(0.02)
    here = arm.plant.q.copy()
    assert arm.mode in (Mode.HOLDING, Mode.EMERGENCY_STOP) and arm.speed < 1e-3
    answer = arm.supervisor.resume()
    assert stop == "emergency" or "a stream of targets may begin" in answer
    arm.stream(lambda t: here, 0.1)
    assert arm.mode is Mode.STREAMING


def test_no_stream_begins_while_the_controller_ends() -> None:
    arm = streamed()
    arm.follow((2.0, 0.8, 0.0))
    arm.run(0.5)
    assert arm.supervisor.end("SIGINT")
    assert arm.send(arm.controller.desired[0]) == stream_intake.NOT_NOW


def test_stream_begins_again_after_a_pause() -> None:
    arm = streamed().stream(sine, 0.4)
    arm.supervisor.hold()
    arm.run(0.02)
    assert arm.send(START) == stream_intake.NOT_NOW
    arm.run(0.5)
    assert arm.send(arm.controller.desired[0]) == stream_intake.TAKEN


def test_stream_and_trajectory_replace_each_other() -> None:
    arm = streamed()
    motion = arm.follow((2.0, 0.8, 0.0))
    arm.run(1.0)
    arm.send(arm.controller.desired[0])
    arm.tick()
    assert motion.ending.text == "a stream of targets has replaced it"
    arm.stream(lambda t: arm.controller.desired[0], 0.3)
    assert arm.mode is Mode.STREAMING
    goal = arm.follow((1.0, 0.3, -0.5))
    for _ in range(60):
        arm.send(START)  # the stream goes on, but must pause first
        arm.run(0.02)
    assert goal.ending.text == "the goal is reached" and arm.mode is Mode.HOLDING


def test_jog_moves_with_a_velocity_and_stops() -> None:
    arm = streamed()
    for _ in range(25):
        assert arm.send(velocity=[0.4, math.nan], is_jog=True) == stream_intake.TAKEN
        arm.run(0.02)
    np.testing.assert_allclose(arm.plant.v, [0.4, 0.0], atol=0.01)
    arm.run(1.0)
    assert arm.mode is Mode.HOLDING and arm.speed < 1e-3
    here = arm.plant.q.copy()
    for step in [0.01] * 5 + [0.0] * 10:
        arm.send([step, math.nan], is_jog=True)
        arm.run(0.02)
    np.testing.assert_allclose(arm.plant.q, here + np.array([0.05, 0.0]), atol=2e-3)


def test_jog_stops_at_a_position_limit() -> None:
    arm = streamed()
    upper = arm.controller.model.upper[0]
    for _ in range(500):
        arm.send(velocity=[1.0, math.nan], is_jog=True)
        arm.run(0.02)
    assert arm.plant.q[0] < upper + 1e-3
    assert arm.controller.desired[0, 0] <= upper + 1e-6


def test_missing_states_brake_a_stream() -> None:
    arm = streamed().stream(lambda t: START + 0.5 * t, 0.5)
    assert np.abs(arm.controller.desired[1]).min() > 0.45
    arm.lack(0.08)
    assert np.abs(arm.controller.desired[1]).max() < 0.1
    arm.stream(lambda t: arm.controller.desired[0], 0.4)
    assert arm.mode is Mode.STREAMING


def test_effort_of_a_target_is_added_smoothly_and_ends() -> None:
    arm = streamed()
    arm.send(START, effort=[10.0, -0.5])
    arm.tick()
    assert 0.0 < arm.controller.desired[3, 0] < 2.0
    arm.stream(rest, 0.5, effort=[1.0, -0.5])
    np.testing.assert_allclose(arm.controller.desired[3], [1.0, -0.5])
    arm.run(1.0)
    assert not arm.controller.desired[3].any()


def test_targets_while_the_time_stands_still_say_nothing_about_the_period() -> None:
    """As of a simulation that is paused, whose senders go on."""
    arm = StreamedArm().activate()
    start = arm.controller.desired[0].copy()
    arm.stream(lambda t: start + 0.1 * t, 0.5)
    for _ in range(50):
        assert arm.send(start + 0.05) == stream_intake.TAKEN
    assert 0.015 < arm.intake.period < 0.025
    arm.stream(lambda t: start + 0.05 + 0.1 * t, 0.1)
    assert np.abs(arm.controller.rows.target_rate).max() < 0.11
