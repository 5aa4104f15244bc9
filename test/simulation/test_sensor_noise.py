"""The noise of the simulated arm's sensors: of the size asked for, and the same each time."""

from __future__ import annotations

import numpy as np
import pytest
from robots import joint, link, robot, two_link_arm

from rnea_control.exceptions import SimulationError
from rnea_control.model import RobotModel
from rnea_control.simulation.sensor_noise import SensorNoise

pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")

MODEL = RobotModel.from_urdf_string(two_link_arm().replace('effort="100"', 'effort="50"', 1))
Q, V, EFFORT = np.array([0.1, -0.2]), np.array([1.0, 2.0]), np.array([30.0, -4.0])


def measured(noise: SensorNoise, states: int) -> tuple[np.ndarray, ...]:
    """Of `states` states that are all the same, each shape (states, 2)."""
    rows = [noise.added(k, Q, V, EFFORT) for k in range(states)]
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def test_noise_has_the_deviation_asked_for() -> None:
    q, v, effort = measured(SensorNoise(MODEL, 1e-4, 0.02, 0.01, 1), 20_000)
    of_effort = effort, EFFORT, [0.5, 1.0]  # a hundredth of the limits
    for samples, true, deviation in ((q, Q, [1e-4, 1e-4]), (v, V, [0.02, 0.02]), of_effort):
        np.testing.assert_allclose(samples.std(axis=0), deviation, rtol=0.03)
        bound = 4.0 * np.array(deviation) / np.sqrt(len(samples))
        assert (np.abs(samples.mean(axis=0) - true) < bound).all()
    correlation = np.corrcoef(np.hstack([q, v, effort]).T)
    assert np.abs(correlation - np.eye(6)).max() < 0.04


def test_same_seed_gives_the_same_noise_of_each_sensor_and_none_is_exact() -> None:
    everything = measured(SensorNoise(MODEL, 1e-4, 0.02, 0.01, 7), 50)
    again = measured(SensorNoise(MODEL, 1e-4, 0.02, 0.01, 7), 50)
    np.testing.assert_array_equal(everything, again)
    for seed, same in ((7, True), (8, False)):
        q, v, alone = measured(SensorNoise(MODEL, 0.0, 0.0, 0.01, seed), 50)
        assert (q == Q).all() and (v == V).all()
        assert ((alone == everything[2]) == same).all()


def test_state_measured_again_is_the_same() -> None:
    noise = SensorNoise(MODEL, 1e-4, 0.02, 0.01, 1)
    first = noise.added(3, Q, V, EFFORT)
    np.testing.assert_array_equal(noise.added(3, Q, V, EFFORT), first)
    assert (noise.added(4, Q, V, EFFORT)[0] != first[0]).all()


def test_share_of_an_effort_limit_needs_one() -> None:
    spin = joint("spin", "base", "wheel", "continuous", limit="")
    unlimited = RobotModel.from_urdf_string(robot(link("base"), link("wheel"), spin))
    SensorNoise(unlimited, 0.1, 0.1, 0.0, 0)
    with pytest.raises(SimulationError, match=r"effort_noise is 0\.01 .* joint 'spin' has none"):
        SensorNoise(unlimited, 0.0, 0.0, 0.01, 0)
