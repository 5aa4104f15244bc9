"""Arms that rest where the model is wrong in one way, and what the check says of it."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from robots import PANDA_JOINTS, joint, link, load_quietly, two_link_arm

from rnea_control.control import ControlLaw, Controller, ControllerSettings, Gains
from rnea_control.control.layout import FEEDBACK, INTEGRAL
from rnea_control.control.model_check import (
    Cause,
    ModelCheck,
    Witness,
    check_model,
    holding_torque_of_feedback,
)
from rnea_control.dynamics import Workspace, gravity
from rnea_control.exceptions import ControllerError
from rnea_control.model import RobotModel
from rnea_control.simulation.mujoco_arm import MujocoArm
from rnea_control.simulation.urdf_for_mujoco import ModelErrors

READY = np.array([0.3, -0.8, 0.2, -2.0, 0.4, 1.9, 0.8])
TOOL = link("tool", 1e-6, inertia=(1e-9, 0.0, 0.0, 1e-9, 0.0, 1e-9)) + joint(
    "flange", "lower", "tool", "fixed", xyz=(0.35, 0.0, 0.0)
)
WITH_TOOL = RobotModel.from_urdf_string(two_link_arm().replace("</robot>", TOOL + "</robot>"))
TWO_LINKS = RobotModel.from_urdf_string(two_link_arm())
BENT = np.array([-0.3, 0.7])
HANG = (0.0, 0.0, 9.81)


@pytest.fixture(scope="module")
def panda(panda_urdf) -> RobotModel:
    return load_quietly(panda_urdf, PANDA_JOINTS)


@pytest.fixture(params=["two links", "panda"])
def arm(request, panda) -> tuple[RobotModel, np.ndarray]:
    return (TWO_LINKS, BENT) if request.param == "two links" else (panda, READY)


@pytest.fixture(params=["two links", "panda"])
def carrier(request, panda) -> tuple[RobotModel, np.ndarray, str]:
    """An arm, and where its payload is fixed."""
    if request.param == "two links":
        return WITH_TOOL, BENT, "tool"
    return panda, READY, panda.child_links[-1]


def held(model: RobotModel, q: np.ndarray) -> np.ndarray:
    return gravity(model, Workspace(model), q, np.zeros(model.nv))


def real(model: RobotModel, **changes) -> RobotModel:
    """The robot as it is, where the model is as it was."""
    other = copy.deepcopy(model)
    if "payload" in changes:
        link = changes.get("link", model.child_links[-1])
        other.set_payload(link, *changes["payload"])
    other.gravity = changes.get("gravity", model.gravity)
    return other


def check(
    model: RobotModel,
    q: np.ndarray,
    torque: np.ndarray,
    bound: float = 0.5,
    witness: Witness = Witness.effort,
    **options,
) -> ModelCheck:
    bounds = np.full(model.nv, bound)
    return check_model(model, Workspace(model), q, torque, bounds, witness, **options)


def noisy(torque: np.ndarray, size: float = 0.1) -> np.ndarray:
    """Static friction holds a part."""
    return torque + size * np.random.default_rng(0).uniform(-1.0, 1.0, len(torque))


@pytest.mark.parametrize("witness", Witness)
def test_right_model(arm, witness) -> None:
    model, q = arm
    found = check(model, q, noisy(held(model, q), 0.49), witness=witness)
    assert found.cause == Cause.none
    assert not found.joints and not found.sentences and not found.explanation
    assert 0.0 < np.abs(found.difference).max() < 0.5


def test_sentences_name_joints_values_and_units(arm) -> None:
    model, q = arm
    torque = held(model, q)
    torque[1] += 12.84
    found = check(model, q, torque)
    assert found.joints == (1,)
    assert found.difference[1] == pytest.approx(12.84)
    (sentence,) = found.sentences
    start = f"{model.joint_names[1]}: model {torque[1] - 12.84:.1f} Nm, measured {torque[1]:.1f} Nm"
    assert sentence.startswith(start)


def test_one_joint_alone_has_no_certain_cause(panda) -> None:
    torque = held(panda, READY)
    torque[3] -= 9.0
    found = check(panda, READY, torque)
    assert found.cause == Cause.unknown
    assert found.explanation == "payload, gravity vector, or firmware that compensates?"


def test_no_effort(arm) -> None:
    model, q = arm
    found = check(model, q, noisy(np.zeros(model.nv)))
    assert found.cause == Cause.no_torque
    assert "hardware_compensates_gravity" in found.explanation
    assert "not measured" in found.explanation
    believed = check(model, q, np.zeros(model.nv), hardware_compensates_gravity=True)
    assert believed.cause == Cause.no_torque
    assert "hardware_compensates_gravity" not in believed.explanation


def test_gravity_compensated_twice(arm) -> None:
    model, q = arm
    found = check(model, q, noisy(2.0 * held(model, q)))
    assert found.cause == Cause.twice
    assert "hardware_compensates_gravity" in found.explanation


def test_arm_upside_down(arm) -> None:
    model, q = arm
    hanging = real(model, gravity=HANG)
    found = check(model, q, noisy(held(hanging, q)))
    assert found.cause == Cause.opposite
    assert "gravity is [0, 0, -9.81]" in found.explanation


def test_arm_on_a_wall(panda) -> None:
    wall = real(panda, gravity=(0.0, 9.81, 0.0))
    found = check(panda, READY, noisy(held(wall, READY)))
    assert found.cause == Cause.direction
    words = found.explanation.split("[")[1].split("]")[0]
    vector = np.array([float(number) for number in words.split(",")])
    np.testing.assert_allclose(vector, [0.0, 9.81, 0.0], atol=0.3)
    assert "panda_link0" in found.explanation
    assert panda.gravity.tolist() == [0.0, 0.0, -9.81]  # the check leaves the model as it is


def test_effort_in_ampere(arm) -> None:
    model, q = arm
    found = check(model, q, noisy(0.12 * held(model, q), 0.01), 0.3)
    assert found.cause == Cause.ratio
    assert "0.12" in found.explanation and "ampere" in found.explanation


@pytest.mark.parametrize("mass", [0.8, 3.0])
def test_payload_that_the_model_lacks(carrier, mass: float) -> None:
    model, q, link = carrier
    found = check(model, q, held(real(model, payload=(mass,), link=link), q), link=link)
    assert found.cause == Cause.payload
    assert f"{mass:.2f} kg" in found.explanation
    assert repr(link) in found.explanation and "payload.mass" in found.explanation


def test_two_joints_do_not_tell_where_a_payload_is() -> None:
    loaded = real(TWO_LINKS, payload=(3.0, (0.1, 0.0, 0.2)))
    assert check(TWO_LINKS, BENT, held(loaded, BENT)).cause == Cause.unknown


def test_payload_away_from_the_last_frame(panda) -> None:
    loaded = real(panda, payload=(2.0, (0.05, 0.0, 0.2)))
    found = check(panda, READY, noisy(held(loaded, READY), 0.02), 0.2)
    assert found.cause == Cause.payload
    mass = float(found.explanation.split("payload of ")[1].split(" kg")[0])
    assert mass == pytest.approx(2.0, rel=0.05)
    x, y, z = (float(c) for c in found.explanation.split("[")[1].split("]")[0].split(","))
    # What lies along the direction of gravity makes no torque.
    load = real(panda, payload=(mass, (x, y, z)))
    np.testing.assert_allclose(held(load, READY), held(loaded, READY), atol=0.3)


def test_dropped_payload(carrier) -> None:
    model, q, link = carrier
    loaded = real(model, payload=(2.5,), link=link)
    found = check(loaded, q, held(model, q), link=link)
    assert found.cause == Cause.payload
    assert "2.50 kg less" in found.explanation and "dropped" in found.explanation


def test_joints_without_a_value_are_left_out(panda) -> None:
    torque = held(real(panda, payload=(3.0,)), READY)
    torque[[0, 5]] = np.nan
    found = check(panda, READY, torque)
    assert np.isnan(found.difference[[0, 5]]).all()
    assert not {0, 5} & set(found.joints) and found.joints
    assert found.cause == Cause.payload and "3.00 kg" in found.explanation
    nothing = check(panda, READY, np.full(7, np.nan))
    assert nothing.cause == Cause.none and not nothing.sentences


def test_a_posture_that_tells_nothing(panda) -> None:
    """Where gravity makes no torques, none are missing."""
    weightless = real(panda, gravity=(0.0, 0.0, 0.0))
    assert check(weightless, READY, np.zeros(7)).cause == Cause.none
    found = check(weightless, READY, held(panda, READY))
    assert found.cause == Cause.unknown and len(found.joints) > 2


def settle(
    model: RobotModel, xml: str, q: np.ndarray, law: ControlLaw, gains: Gains, **options
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An arm of MuJoCo held until it rests: where it is, the feedback, and the integral term."""
    errors, firmware = options.pop("errors", None), options.pop("firmware", False)
    start = dict(zip(model.joint_names, q, strict=True))
    arm = MujocoArm(xml, model, 0.001, start, errors=errors)
    controller = Controller(model, ControllerSettings(gains, law, **options))
    controller.hold(0.0, q)
    tau = np.zeros(model.nv)
    for k in range(4000):
        controller.step(0.001 * k, arm.q, arm.v, tau)
        arm.step(tau + (held(model, arm.q) if firmware else 0.0))
    assert np.abs(arm.v).max() < 1e-3
    rows = controller.snapshot().rows
    return arm.q, rows[FEEDBACK].copy(), rows[INTEGRAL].copy()


@pytest.mark.parametrize("law", [ControlLaw.computed_torque, ControlLaw.feedforward_pd])
def test_feedback_of_an_arm_that_carries_an_unknown_load(panda, panda_urdf, law) -> None:
    gains = Gains.uniform(7, 400.0, 40.0, 800.0, 100.0)
    if law == ControlLaw.feedforward_pd:
        p = np.array([400.0, 400.0, 400.0, 400.0, 60.0, 60.0, 10.0])
        d = np.array([40.0, 40.0, 40.0, 40.0, 4.0, 4.0, 0.3])
        gains = replace(gains, p=p, d=d, i=2.0 * p)
    errors = ModelErrors(payload_mass=2.0)
    q, feedback, integral = settle(panda, panda_urdf.read_text(), READY, law, gains, errors=errors)
    ws = Workspace(panda)
    np.testing.assert_allclose(feedback, integral, rtol=0.1, atol=0.5)  # there is no error left
    torque = holding_torque_of_feedback(panda, ws, law, q, feedback)
    np.testing.assert_allclose(torque, held(real(panda, payload=(2.0,)), q), atol=0.1)
    found = check(panda, q, torque, 1.0, Witness.feedback)
    assert found.cause == Cause.payload
    mass = float(found.explanation.split("payload of ")[1].split(" kg")[0])
    assert mass == pytest.approx(2.0, abs=0.1)
    assert " held with " in found.sentences[0]


def test_firmware_that_compensates_and_a_controller_that_does_not_know() -> None:
    gains = Gains.uniform(2, 400.0, 40.0)  # without an integral the error tells as well
    law = ControlLaw.computed_torque
    q, feedback, _ = settle(TWO_LINKS, two_link_arm(), BENT, law, gains, firmware=True)
    torque = holding_torque_of_feedback(TWO_LINKS, Workspace(TWO_LINKS), law, q, feedback)
    found = check(TWO_LINKS, q, torque, witness=Witness.feedback)
    assert found.cause == Cause.no_torque
    assert "hardware_compensates_gravity" in found.explanation


def test_firmware_that_does_not_compensate_though_it_should() -> None:
    gains, law = Gains.uniform(2, 400.0, 40.0), ControlLaw.computed_torque
    q, feedback, _ = settle(
        TWO_LINKS, two_link_arm(), BENT, law, gains, hardware_compensates_gravity=True
    )
    ws = Workspace(TWO_LINKS)
    torque = holding_torque_of_feedback(TWO_LINKS, ws, law, q, feedback, True)
    found = check(TWO_LINKS, q, torque, witness=Witness.feedback, hardware_compensates_gravity=True)
    assert found.cause == Cause.twice
    assert "hardware_compensates_gravity is true" in found.explanation


def test_law_without_a_model_holds_with_its_feedback_alone() -> None:
    gains, law = Gains.uniform(2, 400.0, 20.0), ControlLaw.pd
    q, feedback, _ = settle(TWO_LINKS, two_link_arm(), BENT, law, gains)
    torque = holding_torque_of_feedback(TWO_LINKS, Workspace(TWO_LINKS), law, q, feedback)
    assert check(TWO_LINKS, q, torque, witness=Witness.feedback).cause == Cause.none


def test_hand_guiding_tells_nothing() -> None:
    zeros = np.zeros(2)
    with pytest.raises(ControllerError, match="no feedback"):
        holding_torque_of_feedback(
            TWO_LINKS, Workspace(TWO_LINKS), ControlLaw.gravity_compensation, zeros, zeros
        )
