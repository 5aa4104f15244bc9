"""Steps by a robot's own machine code: the torques of the loops, whatever changes meanwhile."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from robots import PANDA_JOINTS, example_robot, load_quietly

from rnea_control.control import ControlLaw, Controller, ControllerSettings, Gains, Waypoint
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel
from rnea_control.model.bodies import INERTIA

LINK = "panda_link7"
VARIABLE = ("gravity", "armature", LINK)
START = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8])


def panda() -> RobotModel:
    model = load_quietly(example_robot("panda"), PANDA_JOINTS)
    model.armature = np.linspace(0.05, 0.2, 7)
    return model


def pair(**settings: object) -> tuple[Controller, Controller]:
    """A controller by the loops and one by code of its robot, on the same motion."""
    gains = Gains.uniform(7, 100.0, 20.0)
    controllers = tuple(
        Controller(panda(), ControllerSettings(gains, **settings)) for _ in range(2)
    )
    for each in controllers:
        each.hold(0.0, START)
        if each.settings.control_law != ControlLaw.gravity_compensation:
            each.follow(0.0, [Waypoint(1.0, START + 0.3, np.zeros(7), np.zeros(7))], 0.0)
    controllers[1].compile_model(VARIABLE)
    return controllers


def assert_alike(pair: tuple[Controller, Controller], begin: float, end: float) -> None:
    rng = np.random.default_rng(0)
    for t in np.arange(begin, end, 0.001):
        q, v = START + 0.2 * rng.standard_normal(7), rng.standard_normal(7)
        loops, code = (each.step(t, q, v, np.zeros(7)).copy() for each in pair)
        np.testing.assert_allclose(code, loops, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("law", list(ControlLaw))
def test_torques_are_those_of_the_loops(law: ControlLaw) -> None:
    controllers = pair(control_law=law)
    assert_alike(controllers, 0.001, 0.1)
    predicted = [each.predict(0.101, np.zeros(7)).copy() for each in controllers]
    np.testing.assert_allclose(predicted[1], predicted[0], rtol=1e-11, atol=1e-11)


def change_payload(model: RobotModel) -> None:
    model.set_payload(LINK, 1.5, (0.02, 0.0, 0.1))


def change_gravity(model: RobotModel) -> None:
    model.gravity = (0.0, 6.9, -6.9)


def change_armature(model: RobotModel) -> None:
    model.armature = np.full(7, 0.3)


def change_other_link(model: RobotModel) -> None:
    model.set_payload("panda_link4", 1.0, (0.0, 0.1, 0.0))


@pytest.mark.parametrize(
    "change", [change_payload, change_gravity, change_armature, change_other_link]
)
def test_a_change_counts_in_the_very_next_step(change) -> None:
    controllers = pair(feedback_inertia=np.full(7, 0.1))
    assert_alike(controllers, 0.001, 0.01)
    for each in controllers:
        change(each.model)
    assert_alike(controllers, 0.01, 0.02)  # nobody has compiled anything again
    controllers[1].compile_model(VARIABLE)
    assert_alike(controllers, 0.02, 0.03)


def test_only_what_is_no_variable_is_compiled_again() -> None:
    _, controller = pair()
    before = controller._code
    change_payload(controller.model)
    change_gravity(controller.model)
    controller.compile_model(VARIABLE)
    assert controller._code.robot is before.robot
    change_other_link(controller.model)
    controller.compile_model(VARIABLE)
    assert controller._code.robot is not before.robot


def test_the_code_is_really_called() -> None:
    """A robot whose numbers change behind the setters' back is the old one for its code only."""
    loops, code = pair()
    for each in (loops, code):
        each.model.bodies[2, INERTIA + 1] += 1.0
    q, v = START.copy(), np.zeros(7)
    by_loops, by_code = (each.step(0.001, q, v, np.zeros(7)).copy() for each in (loops, code))
    assert np.abs(by_loops - by_code).max() > 1.0


def test_unknown_words_are_refused() -> None:
    controller = copy.copy(pair()[0])
    with pytest.raises(ArgumentError, match="'wind'"):
        controller.compile_model(("wind",))
