"""What makes a recording differ from a model: each cause alone, and some together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from identification_bench import recording_of
from robots import PANDA_JOINTS, example_robot, load_quietly

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.commands.identify.causes import sentence
from rnea_control.identification.explanation import Cause, Explanation, explain
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording
from rnea_control.model import RobotModel

SECONDS = 20.0


def panda() -> RobotModel:
    model = load_quietly(example_robot("panda"), PANDA_JOINTS)
    model.damping = model.friction = np.zeros(7)
    return model


def found_for(change: Callable[[RobotModel], None], **options: float) -> Explanation:
    robot = panda()
    change(robot)
    return explain(panda(), motion_of(recording_of(robot, SECONDS, 5, **options)))


def found_in(recording: Recording) -> Explanation:
    return explain(panda(), motion_of(recording))


def causes(explanation: Explanation) -> list[Cause]:
    return [each.cause for each in explanation.contributions]


def nothing(robot: RobotModel) -> None:
    return None


def load(robot: RobotModel) -> None:
    robot.set_payload("panda_link7", 1.5, (0.0, 0.0, 0.1))


def friction(robot: RobotModel) -> None:
    robot.friction, robot.damping = np.full(7, 1.0), np.full(7, 0.5)


def offsets(robot: RobotModel) -> None:
    robot.torque_offset = np.array([1.0, -1.0, 0.5, 0.5, 0.2, 0.1, 0.1])


def rotors(robot: RobotModel) -> None:
    robot.armature = np.full(7, 0.5)


def test_right_model_has_nothing_to_explain() -> None:
    explanation = found_for(nothing)
    assert explanation.at_noise
    assert explanation.contributions == ()


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (load, Cause.payload),
        (friction, Cause.friction),
        (offsets, Cause.offset),
        (rotors, Cause.rotor),
    ],
)
def test_one_cause_is_named_alone(change: Callable[[RobotModel], None], cause: Cause) -> None:
    explanation = found_for(change)
    assert causes(explanation) == [cause]
    assert explanation.contributions[0].part > 0.95
    np.testing.assert_allclose(explanation.rms_left, explanation.noise, rtol=0.2)


def test_numbers_are_those_of_the_robot() -> None:
    (found,) = found_for(load).contributions
    assert found.values[0] == pytest.approx(1.5, rel=0.05)
    assert found.values[3] / found.values[0] == pytest.approx(0.1, abs=0.01)
    (found,) = found_for(friction).contributions
    np.testing.assert_allclose(found.values[7:], 1.0, atol=0.15)
    (found,) = found_for(offsets).contributions
    np.testing.assert_allclose(found.values, [1.0, -1.0, 0.5, 0.5, 0.2, 0.1, 0.1], atol=0.1)


def test_motor_current_in_place_of_torque() -> None:
    recording = recording_of(panda(), SECONDS, 6, noise=1e-3)
    factors = np.array([0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2])
    explanation = found_in(replace(recording, effort=factors * recording.effort))
    assert causes(explanation) == [Cause.scale]
    np.testing.assert_allclose(
        1.0 + explanation.contributions[0].values[:4], factors[:4], atol=0.01
    )
    words = sentence(panda(), explanation, explanation.contributions[0])
    assert "panda_joint2 0.1" in words and "Nm?" in words and "gear ratio" in words


def test_gravity_that_the_hardware_compensates() -> None:
    model = panda()
    recording = recording_of(model, SECONDS, 7)
    still = np.zeros_like(recording.q)
    effort = recording.effort - inverse_dynamics_batch(model, recording.q, still, still)
    explanation = found_in(replace(recording, effort=effort))
    assert causes(explanation) == [Cause.gravity]
    words = sentence(model, explanation, explanation.contributions[0])
    assert "hardware_compensates_gravity" in words


def test_delay() -> None:
    explanation = found_for(nothing, noise=1e-3, delay=0.008)
    assert causes(explanation) == [Cause.delay]
    assert explanation.contributions[0].values[0] == pytest.approx(0.008, abs=5e-4)
    words = sentence(panda(), explanation, explanation.contributions[0])
    assert "8.0 ms later" in words


def test_two_causes_are_both_named_and_neither_stands_for_the_other() -> None:
    def both(robot: RobotModel) -> None:
        load(robot)
        robot.friction = np.full(7, 1.0)

    explanation = found_for(both)
    assert set(causes(explanation)) == {Cause.payload, Cause.friction}
    assert sum(each.part for each in explanation.contributions) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("change", [load, friction, offsets, rotors])
def test_every_sentence_says_what_to_do(change: Callable[[RobotModel], None]) -> None:
    explanation = found_for(change)
    words = sentence(panda(), explanation, explanation.contributions[0])
    assert "fit" in words or "Set " in words
    assert "nan" not in words
