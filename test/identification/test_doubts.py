"""Efforts that are not the torques of the robot raise doubts, and those that are raise none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from identification_bench import hidden_robot, recording_of
from robots import example_robot, load_quietly

from rnea_control.analysis import base_parameters, inertial_parameters
from rnea_control.identification.doubts import doubts_of
from rnea_control.identification.least_squares import solve
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording
from rnea_control.identification.torque_equations import TorqueEquations
from rnea_control.model import RobotModel

SECONDS, RATE = 20.0, 100.0


def ur10() -> RobotModel:
    return load_quietly(example_robot("ur10_robot"))


def doubts(recording: Recording) -> list[str]:
    model, motion = ur10(), motion_of(recording)
    base = base_parameters(model)
    equations = TorqueEquations(model, base.independent)
    solution = solve(equations, motion, base.values(inertial_parameters(model)))
    return doubts_of(model, motion, base, solution)


def scaled(seed: int, factors: Sequence[float]) -> Recording:
    recording = recording_of(hidden_robot(ur10(), seed), SECONDS, seed, rate=RATE)
    return replace(recording, effort=recording.effort * factors)


@pytest.mark.parametrize("seed", range(4))
def test_robots_that_are_a_fifth_off_raise_none(seed: int) -> None:
    """Friction and offsets of a light joint are larger than all that the URDF knows of it."""
    assert doubts(scaled(seed, np.ones(6))) == []


def test_other_units_are_told() -> None:
    (text,) = doubts(scaled(0, np.full(6, 0.02)))
    assert "shoulder_lift_joint has 0.02" in text and "gear ratio" in text
    (text,) = doubts(scaled(0, np.full(6, 1e3)))
    assert "shoulder_lift_joint has 1" in text and "e+03 times their size" in text


@pytest.mark.parametrize("joint", range(6))
def test_each_reversed_sign_is_told(joint: int) -> None:
    factors = np.ones(6)
    factors[joint] = -1.0
    assert any(ur10().joint_names[joint] in text for text in doubts(scaled(1, factors)))
