"""What makes a recording differ from a model, and efforts that cannot be the robot's torques."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from identification_bench import hidden_robot, recording_of
from robots import PANDA_JOINTS, example_robot, load_quietly

from rnea_control.analysis import base_parameters, inertial_parameters, inverse_dynamics_batch
from rnea_control.identification.effort_doubts import doubts_of
from rnea_control.identification.explanation import Cause, Explanation, explain, sentence
from rnea_control.identification.least_squares import solve
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording
from rnea_control.identification.torque_equations import TorqueEquations
from rnea_control.model import RobotModel

SECONDS = 20.0
OFFSETS = [1.0, -1.0, 0.5, 0.5, 0.2, 0.1, 0.1]


def panda() -> RobotModel:
    model = load_quietly(example_robot("panda"), PANDA_JOINTS)
    model.damping = model.friction = np.zeros(7)
    return model


@cache
def found_for(*changes: Callable[[RobotModel], None], **options: float) -> Explanation:
    robot = panda()
    for change in changes:
        change(robot)
    return found_in(recording_of(robot, SECONDS, 5, **{"rate": 250.0, **options}))


def found_in(recording: Recording) -> Explanation:
    return explain(panda(), motion_of(recording))


def only(explanation: Explanation, cause: Cause) -> tuple[np.ndarray, str]:
    (found,) = explanation.contributions
    assert found.cause is cause
    return found.values, sentence(panda(), explanation, found)


def load(robot: RobotModel) -> None:
    robot.set_payload("panda_link7", 1.5, (0.0, 0.0, 0.1))


def coulomb(robot: RobotModel) -> None:
    robot.friction = np.full(7, 1.0)


def friction(robot: RobotModel) -> None:
    robot.friction, robot.damping = np.full(7, 1.0), np.full(7, 0.5)


def offsets(robot: RobotModel) -> None:
    robot.torque_offset = np.array(OFFSETS)


def rotors(robot: RobotModel) -> None:
    robot.armature = np.full(7, 0.5)


def test_right_model_has_nothing_to_explain() -> None:
    explanation = found_for()
    assert explanation.at_noise
    assert explanation.contributions == ()


def payload_is_right(values: np.ndarray) -> None:
    assert values[0] == pytest.approx(1.5, rel=0.05)
    assert values[3] / values[0] == pytest.approx(0.1, abs=0.01)


CAUSES: dict[Cause, tuple[Callable, Callable[[np.ndarray], object]]] = {
    Cause.payload: (load, payload_is_right),
    Cause.friction: (friction, lambda v: np.testing.assert_allclose(v[7:], 1.0, atol=0.15)),
    Cause.offset: (offsets, lambda v: np.testing.assert_allclose(v, OFFSETS, atol=0.1)),
    Cause.rotor: (rotors, lambda v: None),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_one_cause_is_named_alone_with_the_numbers_of_the_robot(cause: Cause) -> None:
    change, values_are_right = CAUSES[cause]
    explanation = found_for(change)
    values, words = only(explanation, cause)
    values_are_right(values)
    assert explanation.contributions[0].part > 0.95
    np.testing.assert_allclose(explanation.rms_left, explanation.noise, rtol=0.2)
    assert ("fit" in words or "Set " in words) and "nan" not in words


def test_motor_current_in_place_of_torque() -> None:
    recording = recording_of(panda(), SECONDS, 6, noise=1e-3, rate=250.0)
    factors = np.array([0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2])
    explanation = found_in(replace(recording, effort=factors * recording.effort))
    values, words = only(explanation, Cause.scale)
    np.testing.assert_allclose(1.0 + values[:4], factors[:4], atol=0.01)
    assert "panda_joint2 0.1" in words and "Nm?" in words and "gear ratio" in words


def test_gravity_that_the_hardware_compensates() -> None:
    model = panda()
    recording = recording_of(model, SECONDS, 7, rate=250.0)
    still = np.zeros_like(recording.q)
    effort = recording.effort - inverse_dynamics_batch(model, recording.q, still, still)
    _, words = only(found_in(replace(recording, effort=effort)), Cause.gravity)
    assert "hardware_compensates_gravity" in words


def test_delay() -> None:
    values, words = only(found_for(noise=1e-3, delay=0.008), Cause.delay)
    assert values[0] == pytest.approx(0.008, abs=5e-4)
    assert "8.0 ms later" in words


def test_two_causes_are_both_named_and_neither_stands_for_the_other() -> None:
    found = found_for(load, coulomb).contributions
    assert {each.cause for each in found} == {Cause.payload, Cause.friction}
    assert sum(each.part for each in found) == pytest.approx(1.0, abs=0.05)


def doubts(seed: int, factors: Sequence[float]) -> list[str]:
    """What is doubted of a UR10 that is not as its URDF, its efforts times these factors."""
    model = load_quietly(example_robot("ur10_robot"))
    recording = recording_of(hidden_robot(model, seed), SECONDS, seed, rate=100.0)
    motion = motion_of(replace(recording, effort=recording.effort * factors))
    base = base_parameters(model)
    equations = TorqueEquations(model, base.independent)
    solution = solve(equations, motion, base.values(inertial_parameters(model)))
    return doubts_of(model, motion, base, solution)


@pytest.mark.parametrize("seed", range(3))
def test_robots_that_are_a_fifth_off_raise_no_doubts(seed: int) -> None:
    """Friction and offsets of a light joint are larger than all that the URDF knows of it."""
    assert doubts(seed, np.ones(6)) == []


def test_other_units_are_told() -> None:
    (text,) = doubts(0, np.full(6, 0.02))
    assert "shoulder_lift_joint has 0.02" in text and "gear ratio" in text
    (text,) = doubts(0, np.full(6, 1e3))
    assert "shoulder_lift_joint has 1" in text and "e+03 times their size" in text


@pytest.mark.parametrize("joint", range(6))
def test_each_reversed_sign_is_told(joint: int) -> None:
    factors = np.ones(6)
    factors[joint] = -1.0
    name = load_quietly(example_robot("ur10_robot")).joint_names[joint]
    assert any(name in text for text in doubts(1, factors))
