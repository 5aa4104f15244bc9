"""The disturbance observer: a constant error of the model costs nothing in the end, and nothing
else becomes worse."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from controllers import ARM
from robots import panda
from supervised_arm import PERIOD, START, SupervisedArm

from rnea_control.control import ControlLaw, Gains, Mode, disturbance_observer
from rnea_control.control import observer_margin as margin
from rnea_control.control.disturbance_observer import HUNTING, NEAR, STANDING_SHARE
from rnea_control.control.observer_margin import largest_bandwidth, spectral_radius
from rnea_control.model import RobotModel
from rnea_control.parameters.table import OBSERVER

PUSH = np.array([4.0, -1.5])  # external torque [Nm]
PANDA_HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
SWING = (0.8, 0.9, -0.9), (1.6, 0.1, 0.2), (2.4, 0.8, -0.7)  # times and positions


class Arm(SupervisedArm):
    """An arm whose robustness is judged as in a node, beside the ticks."""

    def run(self, duration: float) -> Arm:
        self.supervisor.judge_robustness()
        return super().run(duration)

    def change(self, model: RobotModel = ARM, **more: object) -> Arm:
        """Changes parameters while it runs, by the names of their rows."""
        settings = self.controller.settings
        self.supervisor.change(model, replace(settings, more={**settings.more, **more}))
        return self

    @property
    def disturbance(self) -> np.ndarray:
        return self.controller.rows.disturbance


def arm(bandwidth: float = math.nan, law: ControlLaw = ControlLaw.computed_torque, **given) -> Arm:
    """An arm at rest with an observer of this bandwidth; NaN for the default."""
    return Arm(law, **given).change(**{OBSERVER: bandwidth}).activate().run(0.1)


def payload(mass: float) -> RobotModel:
    model = ARM.copy()
    model.set_payload(model.child_links[-1], mass, (0.0, 0.0, -0.3))
    return model


def swing_error(made: SupervisedArm) -> float:
    """RMS of the position errors of a swing, [rad]."""
    made.follow(*SWING)
    errors = []
    for _ in range(2400):
        made.tick()
        errors.append(made.controller.desired[0] - made.plant.q)
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.parametrize(
    "law", [ControlLaw.computed_torque, ControlLaw.feedforward_pd, ControlLaw.pd_gravity]
)
def test_constant_torque_costs_nothing_in_the_end(law: ControlLaw) -> None:
    made = arm(law=law)
    made.plant.push[:] = PUSH
    made.run(4.0)
    assert made.error < 1e-6 and made.speed < 1e-6
    np.testing.assert_allclose(made.disturbance, PUSH, rtol=1e-5)
    np.testing.assert_allclose(made.controller.external_torque, PUSH, rtol=1e-5)


def test_without_bandwidth_nothing_is_compensated() -> None:
    made = arm(0.0)
    made.plant.push[:] = PUSH
    made.run(1.0)
    assert not made.disturbance.any() and made.error > 1e-3


def test_load_that_was_not_told_costs_a_quarter() -> None:
    """And the arm that is as its model says is followed as before."""
    for real, factor in ((payload(0.5), 0.25), (ARM, 1.5)):
        with_observer, without = arm(real=real), arm(0.0, real=real)
        assert swing_error(with_observer) < factor * swing_error(without) + 1e-6


def test_estimate_is_bounded() -> None:
    bound = np.array([2.0, 0.5])
    made = arm().change(**{"disturbance_observer.max.<joint>": bound})
    made.plant.push[:] = PUSH
    made.run(1.0)
    np.testing.assert_array_equal(made.disturbance, np.copysign(bound, PUSH))


def test_joint_that_presses_on_something_presses_hardly_harder() -> None:
    """A hard stop that the model does not know."""
    pressed = []
    for bandwidth in (0.0, 20.0):
        made = arm(bandwidth, **{"max_contact_torque": math.inf})
        made.plant.upper[0] = made.plant.q[0] + 0.02
        made.follow((1.0, START[0] + 0.05, START[1]))
        made.run(3.0)
        assert made.mode is Mode.HOLDING
        pressed.append(made.controller.in_force[0])
    slack = STANDING_SHARE * made.controller.effort_limit[0]
    assert 0.0 < pressed[1] - pressed[0] < 1.1 * slack


def test_torque_at_its_limit_freezes_the_estimate() -> None:
    """A push that is stronger than the joint: what the joint cannot do anyway is not summed up."""
    limit = np.array([20.0, 10.0])
    made = arm(effort_limit=limit, saturation_timeout=math.inf)
    made.plant.push[0] = -3.0 * limit[0]
    made.run(0.2)
    assert made.controller.rows.saturated_since[0] > 0.0
    before = made.disturbance[0]
    made.run(0.1)
    assert made.disturbance[0] == before


def test_it_fades_under_a_hand() -> None:
    """And begins anew afterwards, without a jump of the torque."""
    largest = {}
    for bandwidth in (0.0, 20.0):
        made = arm(bandwidth)
        made.plant.push[:] = 0.2 * PUSH
        made.run(1.0)
        made.supervisor.guide()
        made.run(1.5)
        assert np.abs(made.disturbance).max() < 1e-3
        made.supervisor.resume()
        changes = [made.tau.copy()]
        for _ in range(1000):
            made.tick()
            changes.append(made.tau.copy())
        largest[bandwidth] = np.abs(np.diff(changes, axis=0)).max()
    assert largest[20.0] < 1.2 * largest[0.0]


def test_bandwidth_changes_without_a_jump() -> None:
    made = arm(0.0)
    made.plant.push[:] = PUSH
    made.run(1.0)
    last = made.tau.copy()
    for bandwidth in (30.0, 5.0, 0.0):
        made.change(**{OBSERVER: bandwidth}).run(0.001)
        largest = 0.0
        for _ in range(1500):
            made.tick()
            largest = max(largest, float(np.abs(made.tau - last).max()))
            last = made.tau.copy()
        assert largest < 0.05 * np.abs(PUSH).max()


def test_load_that_the_observer_carries_may_be_told() -> None:
    """The torque goes on, and the estimate is free again."""
    real = payload(0.5)
    made = arm(real=real)
    made.run(1.0)
    assert np.abs(made.disturbance).max() > 0.5
    before = made.tau.copy()
    made.change(real).tick()
    np.testing.assert_allclose(made.tau, before, atol=1e-3)
    np.testing.assert_allclose(made.disturbance, 0.0, atol=5e-3)
    made.run(0.5)
    assert made.error < 1e-5


def test_estimate_and_added_inertia_fade_while_states_are_late_and_come_back() -> None:
    made = arm()
    rows = made.controller.rows
    made.plant.push[:] = PUSH
    made.run(1.0)
    before = made.disturbance.copy()
    assert rows.added_inertia.all() and rows.added_share == 1.0
    rows.state_age = 0.99 * rows.longest_age
    made.run(0.1)
    assert rows.added_share == 1.0
    rows.state_age = 1.01 * rows.longest_age
    made.run(0.1)
    assert rows.added_share < 0.05 and (np.abs(made.disturbance) < 0.05 * np.abs(before)).all()
    rows.state_age = math.nan  # an age that is not known is none
    made.run(2.0)
    assert rows.added_share > 0.99
    np.testing.assert_allclose(made.disturbance, before, rtol=0.01)


def test_positions_that_may_be_frozen_tell_of_no_disturbance() -> None:
    made = arm()
    made.follow(*SWING)
    made.run(0.4)
    q, v = made.plant.q.copy(), made.plant.v.copy()
    frozen = []
    for _ in range(8):
        made.bad(q, v)
        frozen.append(made.disturbance.copy())
    speed = np.abs(v).max()
    assert 0.002 < 6 * PERIOD * speed < 8 * PERIOD * speed < 0.02
    np.testing.assert_array_equal(frozen[6], frozen[7])
    assert (frozen[0] != frozen[1]).all()


@pytest.mark.parametrize(("residual", "is_compensated"), [(4.0, True), (-4.0, False)])
def test_joint_that_is_too_fast_gets_no_torque_that_makes_it_faster(
    residual: float, is_compensated: bool
) -> None:
    """The joint moves forward; a torque from outside that pushes it forward is to be braked."""
    made = arm()
    arrays, rows = made.controller.arrays, made.controller.rows
    rows.velocity_error[0] = -0.16 * arrays.settings[0].reference_speed[0]
    rows.raw_residual[0] = rows.residual[0] = residual
    disturbance_observer.estimate(arrays.settings[0], arrays.state, 0.001, made.plant.q, False)
    assert (abs(made.disturbance[0]) > 0.05) == is_compensated
    rows.velocity_error[0] *= 0.9
    disturbance_observer.estimate(arrays.settings[0], arrays.state, 0.001, made.plant.q, False)
    assert abs(made.disturbance[0]) > 0.05


def test_joint_that_slips_to_the_other_side_of_its_place_is_near_further_away() -> None:
    made = arm()
    near = []
    for way in (0.005, -0.010, 0.010):
        made.plant.q[0] += way
        made.tick()
        near.append(made.controller.rows.near[0] / NEAR)
    np.testing.assert_allclose(near, [1.0, HUNTING, HUNTING**2])
    assert near[0] < near[1] < near[2]
    made.follow(*SWING)
    made.run(0.1)
    assert made.controller.rows.near[0] == NEAR


def test_default_is_never_refused_and_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parameter that is set while the arm is held would take as long as the judgement."""
    made = arm()
    monkeypatch.delattr(margin, "judge")
    assert made.supervisor.objection(ARM, made.controller.settings) == ""
    asked = replace(made.controller.settings, more={OBSERVER: 900.0})
    with pytest.raises(NameError):
        made.supervisor.objection(ARM, asked)


def test_it_fades_while_the_arm_brakes_without_states() -> None:
    """What friction has needed would drive a joint on. A gap of some states costs little."""
    made = arm()
    made.plant.push[:] = PUSH
    made.run(1.0)
    before = np.abs(made.disturbance)
    made.lack(0.015)
    assert (np.abs(made.disturbance) > 0.5 * before).all()
    made.run(0.5)
    assert made.error < 1e-3 and made.mode is Mode.HOLDING
    made.plant.push[:] = 0.0
    made.lack(0.8)
    assert (np.abs(made.disturbance) < 0.01 * before).all()


# The margin.


def loop_grows(bandwidth: float, ratio: float, inertia: float, late: int) -> bool:
    """Whether an error grows in a joint as the controller runs it."""
    x, v, estimate = 1.0, 0.0, 0.0
    waiting = [0.0] * late
    lag_left = math.exp(-1.0)  # the dead time is a period
    filtered = -math.expm1(-bandwidth * PERIOD)
    before, command, sizes = v, 0.0, []
    assumed = 0.0
    for _ in range(8000):
        torque = -ratio * (400.0 * x + 40.0 * v) - estimate
        behind = assumed - command
        seen = (v - before) / PERIOD - (command + (1.0 - lag_left) * behind)
        assumed = command + lag_left * behind
        estimate += filtered * (seen - estimate)
        command, before = torque, v
        waiting.append(torque)
        acted = waiting.pop(0) / inertia
        x, v = x + PERIOD * v + 0.5 * PERIOD**2 * acted, v + PERIOD * acted
        sizes.append(abs(x))
        if not abs(x) < 1e6:
            return True
    return max(sizes[-2000:]) > max(sizes[2000:4000])


@pytest.mark.parametrize("bandwidth", [5.0, 20.0, 60.0, 200.0])
@pytest.mark.parametrize("inertia", [0.3, 1.0, 6.0, 12.0, 40.0])
@pytest.mark.parametrize("ratio", [1.0, 5.0])
def test_margin_is_that_of_the_loop(bandwidth: float, inertia: float, ratio: float) -> None:
    radius = spectral_radius(400.0, 40.0, bandwidth, ratio, inertia, 0.002, PERIOD, PERIOD)
    if abs(radius - 1.0) > 3e-4:
        assert loop_grows(bandwidth, ratio, inertia, 2) == (radius > 1.0)


def test_bound_without_delay_is_the_closed_form() -> None:
    p, d, K, period = 400.0, 40.0, 10.0, 1e-4
    bound = (d + K) * (p + d * K) / (p * K)
    for factor, stable in ((0.95, True), (1.05, False)):
        radius = spectral_radius(p, d, K, 1.0, factor * bound, period, period, period)
        assert (radius < 1.0) == stable


SLOW = margin.Delays(PERIOD, 0.012, 0.012)  # a torque that acts late
QUICK = margin.Delays(PERIOD, PERIOD, PERIOD)


def test_bandwidth_that_is_too_large_is_refused_with_the_largest() -> None:
    made = arm(20.0)
    told = {"dead_time": SLOW.dead_time, "feedback_inertia": np.zeros(2)}
    settings = replace(made.controller.settings, **told)
    words = made.supervisor.objection(ARM, replace(settings, more={OBSERVER: 500.0}))
    assert OBSERVER in words and "allow" in words
    allowed = float(words.split("allow ")[1].split(" at most")[0])
    assert not made.supervisor.objection(ARM, replace(settings, more={OBSERVER: 0.98 * allowed}))
    found = margin.judge(ARM, replace(settings, more={OBSERVER: 500.0}), SLOW)
    assert found.objection == words and found.bandwidth.min() == pytest.approx(allowed, rel=0.01)


def test_unknown_rotor_is_named() -> None:
    words = margin.judge(ARM, replace(arm().controller.settings, more={OBSERVER: 900.0}), SLOW)
    assert "give armature." in words.objection


def light_wrist(armature: float = 0.0) -> RobotModel:
    model = ARM.copy()
    model.bodies[2, 12:22] *= 1e-3
    model.armature = [armature, armature]
    return model


def test_joint_that_may_have_a_rotor_is_stable_with_and_without() -> None:
    model, settings = light_wrist(), arm().controller.settings
    found, inertia = margin.judge(model, settings, QUICK), margin.free_inertia(model)[0]
    assert found.bandwidth[0] == margin.USUAL and 0.0 < found.bandwidth[1] < 5.0
    for rotor in (0.0, margin.ROTOR):
        for j in range(2):
            ratio = (inertia[j] + found.added_inertia[j]) / inertia[j]
            real = (inertia[j] + rotor) / inertia[j]
            of_loop = 400.0, 40.0, found.bandwidth[j], ratio, real
            assert spectral_radius(*of_loop, QUICK.delay, QUICK.dead_time, PERIOD) < 1.0


def test_joint_whose_rotor_is_told_gets_all() -> None:
    settings = arm().controller.settings
    found = margin.judge(light_wrist(0.1), settings, QUICK)
    assert not found.added_inertia.any() and (found.bandwidth == margin.USUAL).all()
    told = replace(settings, feedback_inertia=np.array([0.0, 0.05]))
    assert not margin.judge(light_wrist(), told, QUICK).added_inertia.any()


def test_largest_bandwidth_is_none_where_the_gains_are_too_high() -> None:
    assert largest_bandwidth(50.0, 1600.0, 80.0, 12.0, 30.0, 0.003, 0.001, 0.001) == 0.0


# Wrong arms.


def wrong(seed: int) -> RobotModel:
    """The arm, with each of its parameters up to two times off."""
    rng = np.random.default_rng(seed)
    model = ARM.copy()
    model.bodies[1:, 12:22] *= 2.0 ** rng.uniform(-1.0, 1.0, (model.nv, 1))
    model.armature = rng.uniform(0.0, 0.2, model.nv)
    return model


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(s, marks=pytest.mark.explores) for s in range(4, 200))]
)
def test_wrong_arm_does_not_swing(seed: int) -> None:
    """It comes to rest, or the controller ends it."""
    made = arm(real=wrong(seed))
    made.follow(*SWING)
    made.run(4.5)
    if made.mode is Mode.HOLDING:
        assert made.speed < 0.01 and made.error < 0.005
    else:
        assert made.mode is Mode.FAULT


class LateArm(Arm):
    """An arm whose torques act some periods late."""

    late = 0

    def _pass(self) -> None:
        self._on_the_way = [*getattr(self, "_on_the_way", []), self.tau.copy()][-self.late - 1 :]
        self.plant.step(self._on_the_way[0], PERIOD)
        self.t += PERIOD


def wrong_panda(rng: np.random.Generator) -> RobotModel:
    """The Panda with the masses, centers of mass and inertias of each body up to two times off,
    rotors that the model lacks, and viscous friction of up to a twentieth of the effort limit."""
    model = panda()
    model.bodies[1:, 12:22] *= 2.0 ** rng.uniform(-1.0, 1.0, (model.nv, 1))
    model.armature = rng.uniform(0.0, 0.2, model.nv)
    model.damping = rng.uniform(0.0, 0.05, model.nv) * model.effort_limit / model.velocity_limit
    return model


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(s, marks=pytest.mark.explores) for s in range(2, 40))]
)
def test_wrong_panda_does_not_swing(seed: int) -> None:
    """It comes to rest by the gains of the demo and of a tuned arm."""
    rng = np.random.default_rng(seed)
    real, w = wrong_panda(rng), (20.0, 48.0)[seed % 2]
    made = LateArm(model=panda(), q=PANDA_HOME, real=real)
    made.late = int(rng.integers(4))
    gains = Gains.uniform(7, w**2, 2.0 * w)
    made.supervisor.change(panda(), replace(made.controller.settings, gains=gains))
    made.activate().run(0.1)
    made.follow(*((t, *(PANDA_HOME + d)) for t, d in ((1.0, 0.4), (2.0, -0.3), (3.0, 0.2))))
    made.run(4.5)
    before = max(made.run(0.01).speed for _ in range(100))
    made.run(1.5)
    after = max(made.run(0.01).speed for _ in range(100))
    assert made.mode is Mode.HOLDING
    assert after < 0.002 or after < 0.8 * before
