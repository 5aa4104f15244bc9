"""What makes a recording differ from a model, and efforts that are not the robot's torques."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from identification_bench import hidden_robot, recording_of
from robots import PANDA_JOINTS, example_robot, load_quietly, two_link_arm

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.exceptions import IdentificationError
from rnea_control.identification import hypotheses
from rnea_control.identification.diagnosis import Diagnosis, diagnose
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording
from rnea_control.model import RobotModel
from rnea_control.parameters.settings import quietly

SECONDS = 20.0
OFFSETS = [1.0, -1.0, 0.5, 0.5, 0.2, 0.1, 0.1]


def panda() -> RobotModel:
    model = load_quietly(example_robot("panda"), PANDA_JOINTS)
    model.damping = model.friction = np.zeros(7)
    return model


@cache
def found_for(*changes: Callable[[RobotModel], None], **options: float) -> Diagnosis:
    robot = panda()
    for change in changes:
        change(robot)
    return found_in(recording_of(robot, SECONDS, 5, **{"rate": 250.0, **options}))


def found_in(recording: Recording) -> Diagnosis:
    return diagnose(panda(), motion_of(recording))


def only(found: Diagnosis, cause: str) -> str:
    (one,) = found.contributions
    assert one.cause.name == cause
    return one.sentence


def of_joints(words: str) -> dict[int, float]:
    """The first number that is said of each joint, by the joint's."""
    pairs = re.findall(r"panda_joint(\d) ([+-]?[\d.]+)", words)
    return {int(joint): float(number) for joint, number in pairs}


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


def payload_is_right(words: str) -> None:
    found = re.match(r"a load of \+(\S+) kg on panda_link7, center of mass \[.*, (\S+)\] m", words)
    assert found is not None
    assert float(found[1]) == pytest.approx(1.5, rel=0.05)
    assert float(found[2]) == pytest.approx(0.1, abs=0.01)


def friction_is_right(words: str) -> None:
    assert of_joints(words) == {joint: pytest.approx(1.0, abs=0.15) for joint in range(1, 8)}
    assert " Nm s/rad" in words


def offsets_are_right(words: str) -> None:
    found = of_joints(words)
    assert {1, 2, 3, 4} <= found.keys()
    for joint, offset in found.items():
        assert offset == pytest.approx(OFFSETS[joint - 1], abs=0.1)


CAUSES: dict[str, tuple[Callable, Callable[[str], object]]] = {
    "payload": (load, payload_is_right),
    "friction": (friction, friction_is_right),
    "offset": (offsets, offsets_are_right),
    "rotor": (rotors, lambda words: None),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_one_cause_is_named_alone_with_the_numbers_of_the_robot(cause: str) -> None:
    change, is_right = CAUSES[cause]
    explanation = found_for(change)
    words = only(explanation, cause)
    is_right(words)
    assert explanation.contributions[0].part > 0.95
    np.testing.assert_allclose(explanation.rms_left, explanation.noise, rtol=0.2)
    assert ("fit" in words or "Set " in words) and "nan" not in words


def test_motor_current_in_place_of_torque() -> None:
    recording = recording_of(panda(), SECONDS, 6, noise=1e-3, rate=250.0)
    factors = np.array([0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2])
    explanation = found_in(replace(recording, effort=factors * recording.effort))
    words = only(explanation, "unit")
    found = of_joints(words)
    assert [found[joint] for joint in range(1, 5)] == pytest.approx(factors[:4], abs=0.01)
    assert "panda_joint2 0.1" in words and "Nm and N?" in words and "gear ratio" in words


def test_gravity_that_the_hardware_compensates() -> None:
    model = panda()
    recording = recording_of(model, SECONDS, 7, rate=250.0)
    still = np.zeros_like(recording.q)
    effort = recording.effort - inverse_dynamics_batch(model, recording.q, still, still)
    words = only(found_in(replace(recording, effort=effort)), "gravity")
    assert "hardware_compensates_gravity" in words


def test_delay() -> None:
    words = only(found_for(noise=1e-3, delay=0.008), "delay")
    milliseconds = re.match(r"the efforts are (\S+) ms later", words)
    assert milliseconds is not None and float(milliseconds[1]) == pytest.approx(8.0, abs=0.5)


def test_two_causes_are_both_named_and_neither_stands_for_the_other() -> None:
    found = found_for(load, coulomb).contributions
    assert {each.cause.name for each in found} == {"payload", "friction"}
    assert sum(each.part or 0.0 for each in found) == pytest.approx(1.0, abs=0.05)


def ur10() -> RobotModel:
    return load_quietly(example_robot("ur10_robot"))


def of_ur10(seed: int = 1, **options: float) -> Recording:
    """Of a UR10 that is not as its URDF."""
    return recording_of(hidden_robot(ur10(), seed), SECONDS, seed, **{"rate": 100.0, **options})


def judged(recording: Recording, damping: float = 0.0) -> Diagnosis:
    model = ur10()
    model.damping = np.full(6, damping)
    return diagnose(model, motion_of(recording))


@pytest.mark.parametrize("seed", range(3))
def test_robots_that_are_a_fifth_off_raise_no_doubts(seed: int) -> None:
    """Friction and offsets of a light joint are larger than all that the URDF knows of it."""
    found = judged(of_ur10(seed, delay=0.002 * seed))
    assert found.doubts == () and found.contributions and not found.question


def test_declared_load_that_is_not_there_is_a_payload_and_no_unit() -> None:
    model = ur10()
    model.set_payload("wrist_3_link", 3.0, (0.0, 0.03, 0.08))
    first = diagnose(model, motion_of(of_ur10())).contributions[0]
    assert first.cause.name == "payload" and "-3" in first.sentence


def without_gravity(effort: np.ndarray) -> np.ndarray:
    q = of_ur10().q
    return effort - inverse_dynamics_batch(hidden_robot(ur10(), 1), q, 0.0 * q, 0.0 * q)


def times(*factors: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda effort: effort * factors


def clipped(effort: np.ndarray) -> np.ndarray:
    most = 0.5 * np.abs(effort).max(axis=0)
    return np.clip(effort, -most, most)


def rounded(effort: np.ndarray) -> np.ndarray:
    step = np.std(effort, axis=0)
    return step * np.round(effort / step)


LIES: list[tuple[Callable[[np.ndarray], np.ndarray], str, str]] = [
    (without_gravity, "gravity", "gravity is not in the efforts"),
    (times(*[5.0] * 6), "unit", "of all joints are"),
    (times(*[1e3] * 6), "unit", "Nmm"),
    (times(0.02, 0.02, 0.03, 0.1, 0.1, 0.1), "unit", "gear ratio"),
    (times(1.0, 1.3, 1.0, 1.0, 1.0, 1.0), "unit", "shoulder_lift_joint 1."),
    (lambda effort: effort[:, [0, 2, 1, 3, 4, 5]], "exchange", "elbow_joint is called should"),
    (clipped, "clipping", "are clipped"),
    (rounded, "rounding", "coarse steps"),
]


@pytest.mark.parametrize("damping", [0.0, pytest.param(10.0, marks=pytest.mark.explores)])
@pytest.mark.parametrize(("lie", "cause", "words"), LIES)
def test_lies_are_told_whatever_friction_the_urdf_has(lie, cause, words, damping) -> None:
    recording = of_ur10(noise=0.005)
    found = judged(replace(recording, effort=lie(recording.effort)), damping)
    assert found.contributions[0].cause.name == cause
    assert words in found.doubts[0]


def geared(seed: int) -> RobotModel:
    """A UR10 with gears as those of a real UR10e: its wrist feels friction and hardly any mass."""
    robot = hidden_robot(ur10(), seed)
    robot.friction = np.array([20.0, 22.0, 8.0, 3.0, 3.0, 3.0])
    robot.damping = np.array([19.0, 20.0, 9.0, 3.3, 2.4, 3.0])
    robot.armature = np.array([6.0, 6.0, 2.0, 0.6, 0.6, 0.6])
    return robot


@cache
def of_geared(seed: int = 1) -> Recording:
    return recording_of(geared(seed), 50.0, seed, rate=100.0, noise=0.001)


# Clipping and rounding are seen without a model, so that no robot makes a difference.
GEARED_LIES = [
    (lambda effort: effort - weight_of_geared(), "gravity", "gravity is not in the efforts"),
    *LIES[1:6],
]


def weight_of_geared() -> np.ndarray:
    q = of_geared().q
    robot = geared(1)
    robot.friction = robot.damping = robot.torque_offset = np.zeros(6)
    return inverse_dynamics_batch(robot, q, 0.0 * q, 0.0 * q)


@pytest.mark.parametrize(("lie", "cause", "words"), GEARED_LIES)
def test_lies_are_told_of_a_robot_whose_wrist_feels_friction_alone(lie, cause, words) -> None:
    found = judged(replace(of_geared(), effort=lie(of_geared().effort)))
    assert found.contributions[0].cause.name == cause
    assert words in found.doubts[0]


@pytest.mark.parametrize("seed", range(4))
def test_torques_of_a_robot_whose_wrist_feels_friction_alone_raise_no_doubts(seed: int) -> None:
    assert judged(of_geared(seed)).doubts == ()


@pytest.mark.parametrize("seed", range(4))
def test_motor_currents_of_a_robot_whose_wrist_feels_friction_alone(seed: int) -> None:
    gains = np.random.default_rng(seed).uniform(0.07, 0.13, 6)  # [A/Nm]
    found = judged(replace(of_geared(seed), effort=gains * of_geared(seed).effort))
    first = found.contributions[0]
    assert first.cause.name == "unit" and first.part is not None and first.part > 0.5


@pytest.mark.parametrize(("factor", "is_doubted"), [(0.3, True), (0.6, False), (3.5, True)])
def test_gravity_torque_far_from_that_of_the_urdf_is_a_doubt(
    factor: float, is_doubted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else is found: here nothing."""
    monkeypatch.setattr("rnea_control.identification.readings.MOST", 0)
    found = judged(replace(of_geared(), effort=factor * of_geared().effort))
    causes = [each.cause.name for each in found.contributions]
    assert ("strength" in causes) is is_doubted
    if is_doubted:
        assert found.doubts[0].startswith("in slow motion the effort of shoulder_lift_joint is ")


NEW_CAUSE = """
from rnea_control.identification.hypotheses.hypothesis import Signal
from rnea_control.plausibility.causes import Cause, told

class Halved(Signal):
    cause = Cause("halved", "the efforts of {joints} are too small", "Double them")

    def signal(self, model, motion):
        return told(self.cause, model, abs(motion.effort).max(axis=0) < 0.1)

HYPOTHESES = (Halved(),)
"""


def test_a_file_is_all_that_a_new_cause_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halved_efforts.py").write_text(NEW_CAUSE)
    monkeypatch.setattr(hypotheses, "__path__", [*hypotheses.__path__, str(tmp_path)])
    recording = of_geared()
    small = recording.effort * np.where(np.arange(6) == 4, 1e-3, 1.0)
    first, *_ = judged(replace(recording, effort=small)).contributions
    assert first.sentence == f"the efforts of {ur10().joint_names[4]} are too small. Double them"


@pytest.mark.parametrize("joint", range(6))
def test_reversed_sign_is_told_of_its_joint_alone(joint: int) -> None:
    factors = np.ones(6)
    factors[joint] = -1.0
    recording = of_ur10(noise=0.005)
    (one,) = judged(replace(recording, effort=recording.effort * factors)).doubts
    names = [name for name in ur10().joint_names if name in one]
    assert names == [ur10().joint_names[joint]] and "reversed" in one


def test_masses_may_be_in_links_that_are_fixed_to_those_that_move() -> None:
    joint = '<joint name="to_\\1" type="fixed"><parent link="\\1"/><child link="of_\\1"/></joint>'
    apart = rf'<link name="\1"/><link name="of_\1">\2</link>{joint}'
    fixed, bare = (
        re.sub(r'<link name="(upper|lower)">(.*?)</link>', each, two_link_arm())
        for each in (apart, r'<link name="\1"/>')
    )
    loaded = RobotModel.from_urdf_string(two_link_arm())
    loaded.set_payload("lower", 1.0, (0.2, 0.0, 0.1))
    motion = motion_of(recording_of(loaded, 8.0, 1, rate=100.0))

    def words(urdf: str) -> list[str]:
        found = diagnose(quietly(RobotModel.from_urdf_string, urdf), motion)
        return [each.words for each in found.contributions]

    assert words(fixed) == words(two_link_arm()) != []
    with pytest.raises(IdentificationError, match="no link of 'two_link_arm' that moves has a"):
        words(bare)
