"""`rnea_tune` without ROS: what it measures of arms whose rotors, friction, masses, noise and dead
time its controller does not know, and what it proposes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import yaml
from hidden_arm import HiddenArm
from identification_bench import hidden_robot
from robots import panda, two_link_arm

from rnea_control.commands.tune.observer_bandwidth import with_observer
from rnea_control.dynamics import Workspace, crba
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.controller_yaml import tuning_yaml
from rnea_control.identification.tuning.joint_estimates import noise
from rnea_control.identification.tuning.joint_experiment import Experiment, JointEstimate
from rnea_control.identification.tuning.proposal import (
    DEAD_TIME,
    LEAST_PERIODS,
    RISE_SHARE,
    Proposal,
    bandwidth_for,
    bandwidth_for_rise,
    propose,
)
from rnea_control.identification.tuning.response import answered_states
from rnea_control.identification.tuning.small_motion import FURTHEST, REACH, burst, passes
from rnea_control.model import RobotModel
from rnea_control.node.parameters import PARAMETERS
from rnea_control.parameters.parameter import expand

ARMS = 20
SHAKING = 1.5  # velocity at rest with the proposal, over its noise, from which an arm shakes
MISSED = 0.05  # part of the true values that may be more than two deviations away


def measured(arm: HiddenArm, joints: range) -> tuple[list[JointEstimate], Proposal]:
    at_rest = arm.wait(0.5)
    model = arm.model
    experiment = Experiment(model, arm, noise(at_rest), arm.period, 0.001)
    experiment.brace(joints)
    estimates = [experiment.measure(joint) for joint in joints]
    proposal = propose(model, arm.period, estimates, arm.settings.torque_rise(model))
    return estimates, with_observer(proposal, model, arm.settings, arm.period)


def misses(arm: HiddenArm, estimates: list[JointEstimate]) -> np.ndarray:
    """Errors of inertia, dead time, friction and damping of each joint, in standard deviations."""
    nv = arm.hidden.nv
    M = crba(arm.hidden, Workspace(arm.hidden), arm.q.copy(), np.zeros((nv, nv)))
    rows = []
    for each in estimates:
        j, found, friction = each.joint, each.inertia, each.friction
        rows.append(
            [
                (found.inertia - M[j, j]) / found.inertia_deviation,
                (found.dead_time - arm.dead_time) / found.dead_time_deviation,
                (friction.coulomb - arm.hidden.friction[j]) / friction.coulomb_deviation,
                (friction.damping - arm.hidden.damping[j]) / friction.damping_deviation,
            ]
        )
    return np.array(rows)


def test_joint_with_a_rotor_friction_and_dead_time() -> None:
    model = RobotModel.from_urdf_string(two_link_arm())
    hidden = model.copy()
    hidden.armature, hidden.friction, hidden.damping = [0.3, 0.1], [2.0, 0.5], [1.0, 0.4]
    arm = HiddenArm(model, hidden, np.array([0.3, -0.4]), latency=0.00225, noise=0.002)
    estimates, proposal = measured(arm, range(1, 2))
    assert np.abs(misses(arm, estimates)).max() < 3.0
    (elbow,) = proposal.joints.values()
    assert elbow.armature == pytest.approx(0.1, abs=4.0 * elbow.armature_deviation)
    assert elbow.bandwidth == pytest.approx(bandwidth_for(arm.dead_time), rel=0.15)
    assert elbow.bound == DEAD_TIME
    assert arm.furthest < FURTHEST
    text = yaml.safe_load(tuning_yaml(proposal, model.name))
    written = dict(flatten(text["/**"]["rnea_controller"]["ros__parameters"]))
    known = expand(PARAMETERS, model.joint_names)
    assert written.keys() == proposal.values().keys()
    for name, value in written.items():
        assert value == pytest.approx(proposal.values()[name], rel=1e-4)
        known[name].check(name, value)


def test_closed_form_leaves_45_degrees() -> None:
    for dead_time in (0.001, 0.0037, 0.012):
        assert bandwidth_for(dead_time) == pytest.approx(searched_bandwidth(dead_time), rel=1e-3)


def comes_to_rest(w: float, dead_time: float, rise: float, ratio: float, speed: float) -> bool:
    """True if a pushed joint whose torque and its rate are bounded comes to rest; `ratio` is its
    inertia as a multiple of the model's, which is 1."""
    step, hold, limit = 1e-4, 10, 50.0
    waiting, x, v, torque = [0.0] * round(dead_time / step), 0.0, speed, 0.0
    for k in range(30_000):
        if k % hold == 0:
            wanted = min(max(-(w**2) * x - 2.0 * w * v, -limit), limit)
            change = limit / rise * hold * step
            torque += min(max(wanted - torque, -change), change)
        waiting.append(torque)
        v += step * waiting.pop(0) / ratio
        x += step * v
    return abs(x) < 1e-3 and abs(v) < 1e-2


@pytest.mark.parametrize("rise", [0.005, 0.02, 0.1])
def test_pushed_joint_comes_to_rest_up_to_a_bandwidth(rise: float) -> None:
    for dead_time in (0.001, 0.003):
        w = bandwidth_for_rise(dead_time, rise)
        for ratio in (0.7, 1.0, 1.5):
            for speed in (0.3, 1.0, 2.0):
                assert comes_to_rest(RISE_SHARE * w, dead_time, rise, ratio, speed)
        assert not comes_to_rest(1.3 * w, dead_time, rise, 1.0, 2.0)


def flatten(parameters: dict, prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in parameters.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def searched_bandwidth(dead_time: float, ratio: float = 1.0) -> float:
    """The same by bisection of the phase margin of a joint whose inertia in the model is `ratio` of
    its own."""

    def margin(w: float) -> float:
        omega = np.geomspace(0.1 * w, 100.0 * w, 20001)
        loop = ratio * (2.0 * w * 1j * omega + w**2) / (1j * omega) ** 2
        crossing = np.interp(0.0, -np.log(np.abs(loop)), omega)
        phase = np.angle(ratio * (2.0 * w * 1j * crossing + w**2) / (1j * crossing) ** 2)
        return math.pi + phase - crossing * dead_time

    low, high = 1e-3 / dead_time, 1.0 / dead_time
    for _ in range(60):
        w = math.sqrt(low * high)
        low, high = (w, high) if margin(w) > math.pi / 4.0 else (low, w)
    return low


def test_blocked_joint() -> None:
    model = RobotModel.from_urdf_string(two_link_arm())
    hidden = model.copy()
    hidden.friction = [100.0, 100.0]
    arm = HiddenArm(model, hidden, np.array([0.3, -0.4]))
    experiment = Experiment(model, arm, np.full(2, 0.001), 0.001, 0.001)
    experiment.brace([1])
    with pytest.raises(IdentificationError, match="elbow does not move under 40 Nm: is a brake"):
        experiment.measure(1)


def test_motions_end_at_rest_where_they_began() -> None:
    for motion in (burst(0, 1.0, 0.2), passes(0, 1.0, 0.5, 0.3, 2, True)):
        for each in (motion.position, motion.velocity, motion.acceleration, motion.effort):
            assert each[0] == pytest.approx(0.0, abs=1e-9) == each[-1]
        assert np.abs(motion.position).max() <= REACH + 1e-9
        assert (np.diff(motion.times) > 0.0).all()


def test_commands_received_in_a_heap() -> None:
    states = 0.001 * np.arange(1000)
    commands = states[3:] + 0.0004
    commands[100:120] = commands[119]  # the process was not awake
    np.testing.assert_array_equal(answered_states(states, commands), np.arange(3, 1000))


@pytest.mark.parametrize("shift", [-1, 0, 2])
def test_commands_at_the_wrong_states(shift: int) -> None:
    model = RobotModel.from_urdf_string(two_link_arm())
    response = HiddenArm(model, model, np.array([0.3, -0.4])).wait(0.4)
    wrong = replace(response, command=np.roll(response.command, shift, axis=0))
    found = wrong.aligned(0.0).command
    np.testing.assert_array_equal(found[2:-2], response.command[2:-2])


@pytest.mark.explores
@pytest.mark.timeout(3600)
def test_hidden_arms() -> None:
    rng, errors, model = np.random.default_rng(0), [], panda()
    for seed in range(ARMS):
        hidden = hidden_robot(model, seed)
        latency = 0.00025 * int(rng.integers(4, 25))
        spread = float(rng.uniform(0.0002, 0.004))
        q = np.array([0.0, -0.4, 0.0, -1.9, 0.0, 1.6, 0.5]) + rng.uniform(-0.3, 0.3, 7)
        arm = HiddenArm(model, hidden, q, latency, spread, seed=seed)
        estimates, proposal = measured(arm, range(6, -1, -1))
        errors.append(misses(arm, estimates))
        arm.apply(proposal)
        rest = arm.wait(5.0).between(4.0, 5.0)
        assert (noise(rest) < SHAKING * spread).all(), f"{seed} shakes: {noise(rest)}"
        held = proposal.observer_bandwidth, arm.furthest, (noise(rest) / spread).max()
        ratios = [
            each.bounds[DEAD_TIME] / searched_bandwidth(arm.dead_time)
            for each in proposal.joints.values()
            if arm.dead_time > LEAST_PERIODS * arm.period
        ]
        print(seed, np.round(errors[-1], 1).tolist(), np.round(ratios, 3), held, flush=True)
        assert ratios == pytest.approx(np.ones(len(ratios)), rel=0.15)
    missed = np.abs(errors) > 2.0
    print(missed.mean(axis=(0, 1)), missed.mean())
    assert missed.mean() <= MISSED
