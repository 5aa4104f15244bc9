"""The receiving end, as measured at a real controller_manager with a ForwardCommandController."""

from __future__ import annotations

import math

import numpy as np
import pytest
from robots import two_link_arm

from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.simulation.effort_controller import EffortController

MODEL = RobotModel.from_urdf_string(two_link_arm())


@pytest.fixture
def effort_controller() -> EffortController:
    controller = EffortController(MODEL)
    assert torque(controller) == [0.0, 0.0]
    assert controller.receive([1.0, -2.0]) is None
    return controller


def torque(controller: EffortController, q=(0.0, 0.0), v=(0.0, 0.0)) -> list[float]:
    return list(controller.limited(np.array(q), np.array(v)))


def test_last_command_is_held_whatever_is_no_command(effort_controller: EffortController) -> None:
    assert effort_controller.receive([]) is None
    for bad in (math.nan, math.inf, -math.inf):
        assert "elbow" in effort_controller.receive([5.0, bad])
        assert torque(effort_controller) == [1.0, -2.0]
    assert effort_controller.receive([1e6, -1e6]) is None
    assert torque(effort_controller) == [100.0, -100.0]  # the effort limits


@pytest.mark.parametrize("length", [1, 3])
def test_wrong_length_deactivates_and_holds_the_last_torque(effort_controller, length) -> None:
    assert "deactivated" in effort_controller.receive([9.0] * length)
    assert not effort_controller.active
    assert effort_controller.receive([5.0, 6.0]) is None
    assert torque(effort_controller) == [1.0, -2.0]
    effort_controller.active = True
    effort_controller.receive([5.0, 6.0])
    assert torque(effort_controller) == [5.0, 6.0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_beyond_a_limit_only_the_way_back_is_open(effort_controller, sign: float) -> None:
    out, back = [sign * 10.0, 0.0], [-sign * 10.0, 0.0]

    def reaching(command: list[float], q: float = 0.0, v: float = 0.0) -> list[float]:
        effort_controller.receive(command)
        return torque(effort_controller, [sign * q, 0.0], [sign * v, 0.0])

    assert reaching(out, q=3.1) == reaching(out, v=10.5) == [0.0, 0.0]
    assert reaching(out, q=3.1, v=-0.1) == reaching(out, v=-10.5) == out
    assert reaching(back, q=3.1) == reaching(back, v=10.5) == back


def test_velocity_limit_of_zero_is_none_as_in_the_model() -> None:
    urdf = two_link_arm().replace('velocity="10"', 'velocity="0"')
    with pytest.warns(RobotModelWarning, match="it is taken as no limit here"):
        controller = EffortController(RobotModel.from_urdf_string(urdf))
    controller.receive([10.0, -10.0])
    assert torque(controller, v=[50.0, -50.0]) == [10.0, -10.0]
