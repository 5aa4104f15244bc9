"""The receiving end as measured at a real controller_manager with a ForwardCommandController, and
the noise of the sensors: of the size asked for, and the same each time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from robots import joint, link, robot, two_link_arm

from rnea_control.exceptions import SimulationError
from rnea_control.model import RobotModel
from rnea_control.plausibility import suspicions
from rnea_control.simulation.simulated_arm import EffortController, SensorNoise

MODEL = RobotModel.from_urdf_string(two_link_arm())
UNEVEN = RobotModel.from_urdf_string(two_link_arm().replace('effort="100"', 'effort="50"', 1))
Q, V, EFFORT = np.array([0.1, -0.2]), np.array([1.0, 2.0]), np.array([30.0, -4.0])


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
    model = RobotModel.from_urdf_string(urdf)
    assert ["it is taken as no limit here" in each for each in suspicions(model)] == [True]
    controller = EffortController(model)
    controller.receive([10.0, -10.0])
    assert torque(controller, v=[50.0, -50.0]) == [10.0, -10.0]


def measured(noise: SensorNoise, states: int) -> tuple[np.ndarray, ...]:
    """Of `states` states that are all the same, each shape (states, 2)."""
    rows = [noise.added(k, Q, V, EFFORT) for k in range(states)]
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def test_noise_has_the_deviation_asked_for() -> None:
    q, v, effort = measured(SensorNoise(UNEVEN, 1e-4, 0.02, 0.01, 1), 20_000)
    of_effort = effort, EFFORT, [0.5, 1.0]  # a hundredth of the limits
    for samples, true, deviation in ((q, Q, [1e-4, 1e-4]), (v, V, [0.02, 0.02]), of_effort):
        np.testing.assert_allclose(samples.std(axis=0), deviation, rtol=0.03)
        bound = 4.0 * np.array(deviation) / np.sqrt(len(samples))
        assert (np.abs(samples.mean(axis=0) - true) < bound).all()
    correlation = np.corrcoef(np.hstack([q, v, effort]).T)
    assert np.abs(correlation - np.eye(6)).max() < 0.04


def test_same_seed_gives_the_same_noise_of_each_sensor_and_none_is_exact() -> None:
    everything = measured(SensorNoise(UNEVEN, 1e-4, 0.02, 0.01, 7), 50)
    again = measured(SensorNoise(UNEVEN, 1e-4, 0.02, 0.01, 7), 50)
    np.testing.assert_array_equal(everything, again)
    for seed, same in ((7, True), (8, False)):
        q, v, alone = measured(SensorNoise(UNEVEN, 0.0, 0.0, 0.01, seed), 50)
        assert (q == Q).all() and (v == V).all()
        assert ((alone == everything[2]) == same).all()


@pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")
def test_share_of_an_effort_limit_needs_one() -> None:
    spin = joint("spin", "base", "wheel", "continuous", limit="")
    unlimited = RobotModel.from_urdf_string(robot(link("base"), link("wheel"), spin))
    SensorNoise(unlimited, 0.1, 0.1, 0.0, 0)
    with pytest.raises(SimulationError, match=r"effort_noise is 0\.01 .* joint 'spin' has none"):
        SensorNoise(unlimited, 0.0, 0.0, 0.01, 0)
