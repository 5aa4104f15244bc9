"""Joints that stick: they come near their goal, and do not hunt about it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from controllers import ARM
from plant import Plant
from supervised_arm import START, SupervisedArm

from rnea_control.control import Mode
from rnea_control.control.observer_margin import USUAL
from rnea_control.model import RobotModel
from rnea_control.parameters.table import OBSERVER

SUBSTEPS = 10  # steps of the bristles within a step of the plant
BRISTLES = 2e4  # stiffness of the bristles [Nm/rad]
DAMPING = 30.0  # damping of the bristles [Nm s/rad]
# Sliding and breakaway torque of the shoulder [Nm], and the Stribeck velocity [rad/s].
FRICTIONS = [
    (0.7, 2.4, 0.02),
    (0.7, 3.3, 0.02),
    (0.7, 3.3, 0.1),
    (2.0, 2.4, 0.05),
    (2.0, 4.0, 0.01),
    (1.0, 1.0, 0.05),
    (0.3, 1.5, 0.005),
    (3.0, 5.0, 0.05),
    (4.0, 4.4, 0.02),
    (0.1, 0.4, 0.01),
]


class StickingPlant(Plant):
    """An arm whose joints have bristles between their surfaces [Canudas de Wit et al. 1995]; the
    elbow's friction is a third of the shoulder's."""

    def __init__(self, model: RobotModel, q: np.ndarray, friction: tuple[float, float, float]):
        super().__init__(model, q)
        share = np.array([1.0, 1.0 / 3.0])
        self.sliding, self.breakaway = friction[0] * share, friction[1] * share
        self.stribeck, self.bent = friction[2], np.zeros(2)
        self.outside = np.zeros(2)

    def step(self, tau: np.ndarray, dt: float = 0.001) -> None:
        for _ in range(SUBSTEPS):
            faded = np.exp(-((self.v / self.stribeck) ** 2))
            level = self.sliding + (self.breakaway - self.sliding) * faded
            # The bristles bend towards their deflection while they slide, exactly.
            slides = np.copysign(level / BRISTLES, self.v)
            left = np.exp(-np.abs(self.v) * BRISTLES / level * dt / SUBSTEPS)
            before, self.bent = self.bent, slides + (self.bent - slides) * left
            rate = (self.bent - before) / (dt / SUBSTEPS)
            self.push = self.outside - (BRISTLES * self.bent + DAMPING * rate)
            super().step(tau, dt / SUBSTEPS)


def held_after_a_swing(
    friction: tuple[float, float, float], bandwidth: float, least_inertia: float = math.nan
) -> SupervisedArm:
    """An arm that holds; its rotors may be missing where no least inertia of the feedback is
    given."""
    arm = SupervisedArm()
    settings = arm.controller.settings
    inertia = np.full(2, least_inertia)
    changed = replace(settings, feedback_inertia=inertia, more={OBSERVER: bandwidth})
    arm.supervisor.change(ARM, changed)
    arm.plant = StickingPlant(ARM, START, friction)
    arm.activate()
    arm.supervisor.judge_robustness()
    arm.follow((1.0, 0.6, -0.8), (2.0, 0.45, -0.65))
    return arm.run(4.0)


def moved(arm: SupervisedArm) -> float:
    """Largest way of a joint within two seconds [rad]."""
    positions = []
    for _ in range(2000):
        arm.tick()
        positions.append(arm.plant.q.copy())
    return float(np.ptp(positions, axis=0).max())


@pytest.mark.parametrize(
    "friction",
    [*FRICTIONS[:2], *(pytest.param(each, marks=pytest.mark.explores) for each in FRICTIONS[2:])],
)
def test_joint_comes_to_its_goal_and_does_not_hunt(friction: tuple[float, float, float]) -> None:
    """With the defaults; without the observer it stops where it sticks first."""
    without, arm = (held_after_a_swing(friction, bandwidth) for bandwidth in (0.0, math.nan))
    assert arm.mode is Mode.HOLDING and arm.error < max(0.25 * without.error, 2e-3)
    assert moved(arm) < 5e-4


@pytest.mark.explores
@pytest.mark.parametrize("friction", FRICTIONS)
def test_joint_whose_inertia_is_known_slips_only_for_a_while(
    friction: tuple[float, float, float],
) -> None:
    """The estimate is faster there, by the full default bandwidth."""
    arm = held_after_a_swing(friction, math.nan, least_inertia=0.0)
    assert (arm.controller.rows.bandwidth == USUAL).all()
    arm.run(10.0)
    assert arm.mode is Mode.HOLDING and moved(arm) < 5e-4 and arm.error < 5e-3
