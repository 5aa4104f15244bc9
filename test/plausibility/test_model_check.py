"""Arms that rest where the model is wrong in one way, and what the check says of it."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from controllers import JOINT_SPACE
from robots import joint, link, two_link_arm

from rnea_control.control import ControlLaw, Controller, ControllerSettings, Gains
from rnea_control.control.controller_state import supporting_torque
from rnea_control.dynamics import Workspace, gravity
from rnea_control.model import RobotModel
from rnea_control.plausibility.causes import GRAVITY, PAYLOAD, UNIT, UNKNOWN, Cause
from rnea_control.plausibility.model_check import ModelCheck, Witness, check_model

READY = np.array([0.3, -0.8, 0.2, -2.0, 0.4, 1.9, 0.8])
FLANGE = joint("flange", "lower", "tool", "fixed", xyz=(0.35, 0.0, 0.0))
TOOL = link("tool", 1e-6, inertia=(1e-9, 0.0, 0.0, 1e-9, 0.0, 1e-9)) + FLANGE
WITH_TOOL = RobotModel.from_urdf_string(two_link_arm().replace("</robot>", TOOL + "</robot>"))
TWO_LINKS = RobotModel.from_urdf_string(two_link_arm())
BENT = np.array([-0.3, 0.7])
FLAG = "hardware_compensates_gravity"


@pytest.fixture(params=["two links", "panda"])
def arm(request, panda) -> tuple[RobotModel, np.ndarray]:
    return (TWO_LINKS, BENT) if request.param == "two links" else (panda, READY)


@pytest.fixture(params=["two links", "panda"])
def carrier(request, panda) -> tuple[RobotModel, np.ndarray, str]:
    """An arm, and where its payload is fixed."""
    two_links = request.param == "two links"
    return (WITH_TOOL, BENT, "tool") if two_links else (panda, READY, panda.child_links[-1])


def held(model: RobotModel, q: np.ndarray) -> np.ndarray:
    return gravity(model, Workspace(model), q, np.zeros(model.nv))


def loaded(model: RobotModel, mass: float, place=(0.0, 0.0, 0.0), link: str = "") -> RobotModel:
    """The robot as it is, where the model is as it was."""
    other = copy.deepcopy(model)
    other.set_payload(link or model.child_links[-1], mass, place)
    return other


def turned(model: RobotModel, gravity: tuple[float, float, float]) -> RobotModel:
    other = copy.deepcopy(model)
    other.gravity = gravity
    return other


def check(
    model: RobotModel, q: np.ndarray, torque, bound=0.5, witness=Witness.effort, **options
) -> ModelCheck:
    bounds = np.full(model.nv, bound)
    return check_model(model, Workspace(model), q, torque, bounds, witness, **options)


def noisy(torque: np.ndarray, size: float = 0.1) -> np.ndarray:
    """Static friction holds a part."""
    return torque + size * np.random.default_rng(0).uniform(-1.0, 1.0, len(torque))


def cause_of(found: ModelCheck) -> Cause:
    assert found.torques and found.likely.sentence
    return found.likely.cause


@pytest.mark.parametrize("witness", Witness)
def test_right_model(arm, witness) -> None:
    model, q = arm
    found = check(model, q, noisy(held(model, q), 0.49), witness=witness)
    assert found.likely is None and not found.torques
    assert 0.0 < np.abs(found.difference).max() < 0.5


def test_torques_of_the_joint_with_units_are_told(arm) -> None:
    model, q = arm
    torque = held(model, q)
    torque[1] += 12.84
    found = check(model, q, torque)
    assert found.difference[1] == pytest.approx(12.84)
    name, before = model.joint_names[1], torque[1] - 12.84
    assert found.torques == (f"{name}: model {before:.1f} Nm, measured {torque[1]:.1f} Nm",)
    assert cause_of(found) is UNKNOWN  # one joint alone has no certain one
    assert found.likely.joints == (name,)
    assert found.likely.words == f"no cause that is known explains the efforts of {name}"


@pytest.mark.parametrize(
    ("measured", "cause", "words"),
    [
        (lambda model, q: np.zeros(model.nv), GRAVITY, "is not in the efforts"),
        (lambda model, q: -held(model, q), GRAVITY, "opposite of the model's"),
        (lambda model, q: 2.0 * held(model, q), UNIT, "joints are 2 times"),
        (lambda model, q: 0.12 * held(model, q), UNIT, "joints are 0.12 times"),
    ],
    ids=["no torque", "opposite", "twice", "ampere"],
)
def test_cause_is_told(arm, measured, cause: Cause, words: str) -> None:
    model, q = arm
    torque = measured(model, q)
    found = check(model, q, noisy(torque, 0.001), 0.3)
    assert cause_of(found) is cause and words in found.likely.words
    found = check(model, q, noisy(torque, 0.001), 0.3, Witness.feedback)
    assert cause_of(found) is GRAVITY and FLAG in found.likely.remedy


def test_arm_on_a_wall(panda) -> None:
    wall = turned(panda, (0.0, 9.81, 0.0))
    found = check(panda, READY, noisy(held(wall, READY)))
    assert cause_of(found) is GRAVITY
    np.testing.assert_allclose(found.values, [0.0, 9.81, 0.0], atol=0.3)
    assert "panda_link0" in found.likely.words
    assert panda.gravity.tolist() == [0.0, 0.0, -9.81]  # the check leaves the model as it is


@pytest.mark.parametrize("mass", [0.8, 3.0])
def test_payload_that_the_model_lacks_or_has_too_much(carrier, mass: float) -> None:
    model, q, link = carrier
    heavy = loaded(model, mass, link=link)
    for robot, declared, lacks in ((heavy, model, mass), (model, heavy, -mass)):
        found = check(declared, q, held(robot, q), link=link)
        assert cause_of(found) is PAYLOAD
        assert f"a load of {lacks:+.3g} kg on {link}, " in found.likely.words
        assert found.values[0] == pytest.approx(lacks)


def test_payload_away_from_the_last_frame(panda) -> None:
    torque = held(loaded(panda, 2.0, (0.05, 0.0, 0.2)), READY)
    found = check(panda, READY, noisy(torque, 0.02), 0.2)
    assert cause_of(found) is PAYLOAD
    mass, *center = found.values
    assert mass == pytest.approx(2.0, rel=0.05)
    # What lies along the direction of gravity makes no torque.
    load = loaded(panda, mass, center)
    np.testing.assert_allclose(held(load, READY), torque, atol=0.3)
    # Two joints do not tell where it is.
    torque = held(loaded(TWO_LINKS, 3.0, (0.1, 0.0, 0.2)), BENT)
    assert cause_of(check(TWO_LINKS, BENT, torque)) is UNKNOWN


def test_joints_without_a_value_are_left_out(panda) -> None:
    torque = held(loaded(panda, 3.0), READY)
    torque[[0, 5]] = np.nan
    found = check(panda, READY, torque)
    assert np.isnan(found.difference[[0, 5]]).all()
    assert not {"panda_joint1", "panda_joint6"} & {*found.likely.joints}
    assert cause_of(found) is PAYLOAD and "+3 kg" in found.likely.words
    assert check(panda, READY, np.full(7, np.nan)).likely is None


def test_a_posture_that_tells_nothing(panda) -> None:
    """Where gravity makes no torques, none are missing."""
    weightless = turned(panda, (0.0, 0.0, 0.0))
    assert check(weightless, READY, np.zeros(7)).likely is None
    found = check(weightless, READY, held(panda, READY))
    assert cause_of(found) is UNKNOWN and len(found.torques) > 2


@pytest.mark.parametrize("believed", [False, True])
@pytest.mark.parametrize("law", [law for law in JOINT_SPACE if law.follows_trajectories])
def test_what_holds_the_arm_is_commanded_or_hardware(law: ControlLaw, believed: bool) -> None:
    least = np.full(2, 0.5)  # more than what the last joint turns
    options = {"hardware_compensates_gravity": believed, "feedback_inertia": least}
    settings = ControllerSettings(Gains.uniform(2, 30.0, 0.0), law, **options)
    controller, commanded = Controller(WITH_TOOL, settings), np.zeros(2)
    controller.hold(0.0, BENT + 0.1)
    controller.step(0.0, BENT, np.zeros(2), commanded)
    holding = supporting_torque(WITH_TOOL, Workspace(WITH_TOOL), settings, controller.snapshot())
    np.testing.assert_allclose(holding, commanded + held(WITH_TOOL, BENT) * believed, atol=1e-9)
