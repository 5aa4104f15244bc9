"""Laws of users: compiled into the tick, behind the same limits; what is wrong with one is said."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from default_safety import default_safety
from robots import panda
from supervised_arm import SupervisedArm
from task_arm import READY

from rnea_control.control import ControlLaw, Controller, ControllerSettings, Gains, Mode
from rnea_control.control.own_law import (
    gravity,
    inverse_dynamics,
    load,
    mass_matrix,
    own_law,
    per_joint,
)
from rnea_control.dynamics import Workspace, crba, rnea
from rnea_control.dynamics import gravity as gravity_of
from rnea_control.exceptions import ControllerError

MODEL = panda()
GAINS = Gains.uniform(7, 400.0, 40.0)


@own_law(stiffness=per_joint(200.0), damping=20.0)
def spring(robot, settings, state, own, q, v, tau):
    """A spring to the desired position, with gravity."""
    gravity(robot, q, tau)
    for j in range(q.shape[0]):
        e = state.desired_position[j] - q[j]
        tau[j] += own.stiffness[j] * e + own.damping * (state.desired_velocity[j] - v[j])


@own_law()
def computed_torque(robot, settings, state, own, q, v, tau):
    a = state.model_acceleration
    for j in range(q.shape[0]):
        a[j] = state.desired_acceleration[j] + state.feedback[j]
    inverse_dynamics(robot, q, v, a, tau)


@own_law(share=0.5)
def through_the_matrix(robot, settings, state, own, q, v, tau):
    mass_matrix(robot, q)
    for i in range(q.shape[0]):
        tau[i] = own.share * robot.matrix[i, i]


@own_law()
def allocating(robot, settings, state, own, q, v, tau):
    tau[:] = np.zeros(q.shape[0])


@own_law()
def misspelled(robot, settings, state, own, q, v, tau):
    for j in range(q.shape[0]):
        tau[j] = state.desired_postion[j]


@own_law()
def infinite(robot, settings, state, own, q, v, tau):
    for j in range(q.shape[0]):
        tau[j] = 1.0 / v[j]


@own_law()
def slow(robot, settings, state, own, q, v, tau):
    total = 0.0
    for i in range(300_000):
        total += math.sin(total + i)
    tau[:] = total


def plain(robot, settings, state, own, q, v, tau):
    tau[:] = 0.0


def settings_with(law, **more) -> ControllerSettings:
    return ControllerSettings(GAINS, ControlLaw.own, own_law=law, **more)


def test_torque_is_that_of_the_function() -> None:
    values = {"stiffness": np.arange(1.0, 8.0), "damping": 3.0}
    controller = Controller(MODEL, settings_with(spring, own_values=values))
    rng = np.random.default_rng(3)
    q, v, tau = READY + 0.02 * rng.standard_normal(7), rng.standard_normal(7), np.zeros(7)
    controller.hold(0.0, READY)
    controller.step(0.001, q, v, tau)
    g = gravity_of(MODEL, Workspace(MODEL), q, np.zeros(7))
    expected = g + values["stiffness"] * (READY - q) - 3.0 * v
    np.testing.assert_allclose(controller.rows.torque, expected, atol=1e-12)


def test_function_may_be_the_law_that_is_built_in() -> None:
    both = [
        Controller(MODEL, settings)
        for settings in (settings_with(computed_torque), ControllerSettings(GAINS))
    ]
    rng, torques = np.random.default_rng(4), []
    q, v = READY + 0.02 * rng.standard_normal(7), 0.1 * rng.standard_normal(7)
    for controller in both:
        controller.hold(0.0, READY)
        controller.step(0.001, q, v, np.zeros(7))
        torques.append(controller.rows.torque.copy())
    np.testing.assert_array_equal(*torques)


def test_functions_for_the_model_agree_with_those_of_the_package() -> None:
    controller = Controller(MODEL, settings_with(through_the_matrix))
    controller.hold(0.0, READY)
    controller.step(0.001, READY, np.zeros(7), np.zeros(7))
    M = crba(MODEL, Workspace(MODEL), READY, np.zeros((7, 7)))
    np.testing.assert_allclose(controller.rows.torque, 0.5 * np.diag(M), rtol=1e-12)
    assert rnea(MODEL, Workspace(MODEL), READY, *np.zeros((2, 7)), np.zeros(7)).any()


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (allocating, "does not compile: it allocates memory"),
        (misspelled, r"line \d+\) does not compile: .*desired_postion"),
        (infinite, "gives no finite torque at rest"),
        (slow, "us; at most 100 us are allowed"),
    ],
)
def test_law_that_cannot_run_is_refused_before_it_has_an_arm(law, words: str) -> None:
    with pytest.raises(ControllerError, match=words):
        Controller(MODEL, settings_with(law))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("test_own_law.plain", "must name a function with the decorator own_law"),
        ("test_own_law.nothing", "cannot be imported: AttributeError"),
        ("no_such_package.law", "cannot be imported: ModuleNotFoundError"),
        ("spring", "must name a function with the decorator own_law"),
        ("", "must name a function"),
    ],
)
def test_name_of_no_law_is_refused(path: str, words: str) -> None:
    with pytest.raises(ControllerError, match=words):
        load(path)


def test_law_is_found_by_its_name() -> None:
    assert load(f"{__name__}.spring") is spring
    assert spring.name.endswith("test_own_law.spring")


@pytest.mark.parametrize(
    "parameters", [{"Gain": 1.0}, {"for": 1.0}, {"function": 1.0}, {"x": "high"}, {"a-b": 1.0}]
)
def test_parameters_that_cannot_be_declared_are_refused(parameters: dict) -> None:
    with pytest.raises(ControllerError, match="parameter"):
        own_law(**parameters)


def test_more_parameters_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(ControllerError, match="a law may have 8 parameters, not 9"):
        own_law(**{f"p{i}": 0.0 for i in range(9)})


def test_other_arguments_are_refused() -> None:
    with pytest.raises(ControllerError, match=r"has the arguments \(q, v\)"):
        own_law()(lambda q, v: None)


def test_settings_without_a_function_are_refused() -> None:
    with pytest.raises(ControllerError, match=r"own_law\.function must name the function"):
        ControllerSettings(GAINS, ControlLaw.own).check(MODEL.joint_names)


class OwnArm(SupervisedArm):
    """A supervised arm under a law of a user."""

    def __init__(self, law, **values: float) -> None:
        super().__init__(model=MODEL, q=READY)
        held = replace(
            self.controller.settings, control_law=ControlLaw.own, own_law=law, own_values=values
        )
        self.controller.settings = held


def test_arm_follows_holds_and_stops_within_all_limits() -> None:
    """Parameters change while it runs; the torque's rate is bounded at each tick."""
    arm = OwnArm(computed_torque).activate()
    arm.follow((1.0, *(READY + 0.2)))
    arm.run(1.5)
    assert arm.mode is Mode.HOLDING and arm.error < 1e-3
    arm.follow((1.0, *READY))
    arm.run(0.5)
    arm.supervisor.emergency_stop(True)
    arm.run(0.5)
    assert arm.mode is Mode.EMERGENCY_STOP and arm.speed < 0.01


def test_parameters_change_while_it_runs() -> None:
    arm = OwnArm(spring, damping=20.0).activate()
    stiff = replace(arm.controller.settings, own_values={"stiffness": np.full(7, 50.0)})
    arm.supervisor.change(arm.model if hasattr(arm, "model") else MODEL, stiff)
    assert (arm.controller.arrays.settings[0].own[0] == 50.0).all()
    assert default_safety(MODEL) is not None


def test_torque_that_is_not_finite_in_motion_is_never_sent() -> None:
    arm = OwnArm(breaks_in_motion).activate()
    arm.plant.v[:] = 0.2
    with pytest.raises(Exception, match="finite"):
        arm.run(0.1)
    assert np.isfinite(arm.tau).all()


@own_law()
def breaks_in_motion(robot, settings, state, own, q, v, tau):
    gravity(robot, q, tau)
    if abs(v[0]) > 0.1:
        tau[0] = math.nan
