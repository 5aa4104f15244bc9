"""The receiving end, as measured at a real controller_manager with a ForwardCommandController."""

from __future__ import annotations

import math

import numpy as np
import pytest
from robots import two_link_arm

from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.simulation.effort_controller import EffortController

MODEL = RobotModel.from_urdf_string(two_link_arm())
MIDDLE, STILL = np.zeros(2), np.zeros(2)


@pytest.fixture
def effort_controller() -> EffortController:
    controller = EffortController(MODEL)
    assert controller.receive([1.0, -2.0]) is None
    return controller


def torque(controller: EffortController, q=MIDDLE, v=STILL) -> list[float]:
    return list(controller.limited(np.array(q, dtype=float), np.array(v, dtype=float)))


def test_no_torque_before_the_first_command() -> None:
    assert torque(EffortController(MODEL)) == [0.0, 0.0]


def test_last_command_is_held(effort_controller: EffortController) -> None:
    assert torque(effort_controller) == torque(effort_controller) == [1.0, -2.0]


def test_empty_command_changes_nothing(effort_controller: EffortController) -> None:
    assert effort_controller.receive([]) is None
    assert torque(effort_controller) == [1.0, -2.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_command_that_is_not_finite_is_dropped_whole(effort_controller, bad: float) -> None:
    assert "elbow" in effort_controller.receive([5.0, bad])
    assert torque(effort_controller) == [1.0, -2.0]
    assert effort_controller.receive([5.0, 6.0]) is None
    assert torque(effort_controller) == [5.0, 6.0]


@pytest.mark.parametrize("length", [1, 3])
def test_wrong_length_deactivates_and_holds_the_last_torque(effort_controller, length) -> None:
    assert "deactivated" in effort_controller.receive([9.0] * length)
    assert not effort_controller.active
    assert effort_controller.receive([5.0, 6.0]) is None
    assert torque(effort_controller) == [1.0, -2.0]
    effort_controller.active = True
    effort_controller.receive([5.0, 6.0])
    assert torque(effort_controller) == [5.0, 6.0]


def test_effort_limits_clamp(effort_controller: EffortController) -> None:
    effort_controller.receive([1e6, -1e6])
    assert torque(effort_controller) == [100.0, -100.0]


def test_beyond_a_limit_only_the_way_back_is_open(effort_controller: EffortController) -> None:
    effort_controller.receive([10.0, 10.0])
    assert torque(effort_controller, q=[3.1, -3.1]) == [0.0, 10.0]
    assert torque(effort_controller, q=[3.1, 0.0], v=[-0.1, 0.0]) == [10.0, 10.0]
    assert torque(effort_controller, v=[10.5, -10.5]) == [0.0, 10.0]
    effort_controller.receive([-10.0, -10.0])
    assert torque(effort_controller, q=[3.1, -3.1]) == [-10.0, 0.0]


def test_velocity_limit_of_zero_is_none_as_in_the_model() -> None:
    urdf = two_link_arm().replace('velocity="10"', 'velocity="0"')
    with pytest.warns(RobotModelWarning, match="it is taken as no limit here"):
        model = RobotModel.from_urdf_string(urdf)
    controller = EffortController(model)
    controller.receive([10.0, -10.0])
    assert torque(controller, v=[50.0, -50.0]) == [10.0, -10.0]
