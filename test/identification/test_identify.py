"""Parameters of robots that are not as their URDFs say, from what their joint states say."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from identification_bench import NOISE, hidden_robot, recording_of
from robots import PANDA_JOINTS, example_robot, load_quietly, random_tree

from rnea_control.analysis import base_parameters, inertial_parameters, inverse_dynamics_batch
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.consistent_parameters import (
    ParameterSpace,
)
from rnea_control.identification.identify import actuator_scales, identify
from rnea_control.identification.motion import join, motion_of
from rnea_control.identification.moving_links import parameters_in_body
from rnea_control.identification.result import Certainty, Identification
from rnea_control.identification.torque_equations import TorqueEquations
from rnea_control.model import RobotModel
from rnea_control.model.inertia import ten_parameters

SEEDS = int(os.environ.get("IDENTIFICATION_SEEDS", "3"))
# Links on fixed joints keep together what moves together: this arm has several.
ARMS = {"panda": PANDA_JOINTS, "ur10_robot": None}


def arm(name: str) -> RobotModel:
    return load_quietly(example_robot(name), ARMS.get(name))


def parameters(found: Identification) -> np.ndarray:
    """All parameters, from the inertias of the links."""
    model = found.model
    phi = np.zeros(len(inertial_parameters(model)))
    for link, matrix in found.inertias.items():
        body, to_body = parameters_in_body(model, link)
        phi[10 * body : 10 * body + 10] += to_body @ ten_parameters(matrix)
    rows = [found.armature, found.damping, found.friction, found.torque_offset]
    phi[-4 * model.nv :] = np.concatenate(rows)
    return phi


@pytest.mark.parametrize("name", ARMS)
def test_base_parameters_are_within_their_deviations_and_torques_at_noise(
    name: str, report: Callable[[str], None]
) -> None:
    model = arm(name)
    base = base_parameters(model)
    equations = TorqueEquations(model, np.arange(len(inertial_parameters(model))))
    standardised, worst = [], 0.0
    for seed in range(SEEDS):
        hidden = hidden_robot(model, seed)
        delay = 0.0013 if seed % 2 else 0.0
        found = identify(model, motion_of(recording_of(hidden, 30.0, seed, delay=delay)))
        true = base.values(inertial_parameters(hidden))
        standardised.append((found.beta - true) / np.sqrt(np.diag(found.covariance)))
        held_out = motion_of(recording_of(hidden, 10.0, seed + 500, delay=delay))
        held_out = held_out.delayed(found.delay)
        error = held_out.effort - equations.torques(held_out, parameters(found))
        rms = np.sqrt(np.mean(error**2, axis=0, where=held_out.counts))
        worst = max(worst, float((rms / (NOISE * model.effort_limit)).max()))
    z = np.abs(np.concatenate(standardised))
    report(
        f"{name}, {SEEDS} hidden robots: {100.0 * np.mean(z <= 3.0):.2f} % of {z.size} base "
        f"parameters within 3 deviations (must be 99), RMS {np.sqrt(np.mean(z**2)):.2f}; torques "
        f"held out at most {worst:.3f} times the noise (must be 1.2)"
    )
    assert worst <= 1.2
    assert np.mean(z <= 3.0) >= 0.99
    # Deviations ten times too large would hold everything; these are as large as the errors.
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.3


def test_exact_torques_give_exact_parameters() -> None:
    model = arm("panda")
    hidden = hidden_robot(model, 1)
    recording = recording_of(hidden, 30.0, 1, noise=0.0)
    found = identify(model, motion_of(recording))
    base = base_parameters(model)
    true = base.values(inertial_parameters(hidden))
    assert np.abs(found.beta - true).max() < 2e-3
    np.testing.assert_allclose(found.friction, hidden.friction, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(found.damping, hidden.damping, rtol=1e-2, atol=1e-2)


def test_delay_between_effort_and_motion_is_found() -> None:
    model = arm("panda")
    recording = recording_of(hidden_robot(model, 2), 30.0, 2, noise=1e-3, delay=0.0123)
    found = identify(model, motion_of(recording))
    assert abs(found.delay - 0.0123) < 3e-4
    assert any("12." in note and "later" in note for note in found.notes)


def test_given_delay_is_taken() -> None:
    model = arm("panda")
    recording = recording_of(hidden_robot(model, 2), 10.0, 2, delay=0.005)
    assert identify(model, motion_of(recording), delay=0.005).delay == 0.005


def test_all_inertias_are_of_real_bodies_even_where_the_urdf_has_none() -> None:
    """A URDF with a point mass, and a link without inertia, and too little motion."""
    model = arm("panda")
    found = identify(model, motion_of(recording_of(hidden_robot(model, 3), 2.5, 3)))
    for matrix in found.inertias.values():
        assert np.linalg.eigvalsh(matrix)[0] > 0.0
    assert (np.concatenate([found.armature, found.damping, found.friction]) >= -1e-9).all()


def test_what_is_not_excited_is_said_and_keeps_the_urdf() -> None:
    """Only the last joint moves: of the first one nothing is known."""
    model = arm("panda")
    recording = recording_of(hidden_robot(model, 4), 15.0, 4)
    q = recording.q.copy()
    q[:, :-1] = q[0, :-1]
    # The torques of that motion.
    t = recording.time
    v = np.gradient(q, t, axis=0)
    a = np.gradient(v, t, axis=0)
    rng = np.random.default_rng(0)
    effort = inverse_dynamics_batch(hidden_robot(model, 4), q, v, a)
    effort += NOISE * model.effort_limit * rng.standard_normal(effort.shape)
    found = identify(model, motion_of(replace(recording, q=q, effort=effort)))
    by_name = {estimate.name: estimate for estimate in found.estimates}
    assert by_name["panda_joint1.friction"].certainty is Certainty.unidentified
    assert by_name["panda_joint7.friction"].certainty is not Certainty.unidentified
    assert any("panda_joint1 moves for" in note for note in found.notes)
    # What stood still is as the URDF has it.
    own = model.link_inertias["panda_link2"]
    np.testing.assert_allclose(found.inertias["panda_link2"], own, rtol=1e-3, atol=1e-3)


def test_outliers_spoil_least_squares_but_not_the_robust_fit() -> None:
    model = arm("panda")
    hidden = hidden_robot(model, 5)
    recording = recording_of(hidden, 20.0, 5)
    rng = np.random.default_rng(5)
    spikes = rng.random(recording.effort.shape) < 0.02
    effort = recording.effort + spikes * 5.0 * model.effort_limit
    motion = motion_of(replace(recording, effort=effort))
    true = base_parameters(model).values(inertial_parameters(hidden))
    plain, robust = (identify(model, motion, robust=each) for each in (False, True))

    def error(found: Identification) -> float:
        return float(np.linalg.norm((found.beta - true)[-model.nv :]))  # the offsets

    assert error(robust) < 0.1 * error(plain)


def test_known_payload_is_not_counted_twice() -> None:
    model = arm("panda")
    hidden = hidden_robot(model, 6)
    for robot in (model, hidden):
        robot.set_payload("panda_link8", 2.0, (0.0, 0.0, 0.1))
    # hidden_robot writes into the bodies: the payload comes on top of the URDF's inertia there.
    found = identify(model, motion_of(recording_of(model, 20.0, 6, noise=1e-4)))
    assert abs(found.inertias["panda_link7"][3, 3] - model.link_inertias["panda_link7"][3, 3]) < 0.1


def test_several_recordings_count_together() -> None:
    model = arm("ur10_robot")
    hidden = hidden_robot(model, 7)
    motions = [motion_of(recording_of(hidden, 12.0, seed)) for seed in (70, 71, 72)]
    one, three = identify(model, motions[0]), identify(model, join(motions))
    assert three.seconds > 2.5 * one.seconds
    assert np.median(np.diag(three.covariance) / np.diag(one.covariance)) < 0.5


def test_a_robot_without_friction_has_none() -> None:
    """The bound of 0 is kept to the last bit: RobotModel and controller refuse what is below."""
    model = arm("panda")
    for name in ("damping", "friction", "armature"):
        setattr(model, name, np.zeros(7))
    found = identify(model, motion_of(recording_of(model, 20.0, 9)))
    rows = np.stack([found.armature, found.damping, found.friction])
    assert (rows >= 0.0).all() and rows.min() < 1e-6
    model.friction, model.damping, model.armature = found.friction, found.damping, found.armature


def test_slow_noise_makes_deviations_larger() -> None:
    """Noise of 1 Hz is worth far fewer samples than there are."""
    model = arm("ur10_robot")
    hidden = hidden_robot(model, 8)
    recording = recording_of(hidden, 20.0, 8, noise=1e-3)
    rng = np.random.default_rng(8)
    phase = rng.uniform(0.0, 2 * np.pi, (40, 1, model.nv))
    frequency = rng.uniform(0.5, 1.5, (40, 1, 1))
    waves = np.sin(2 * np.pi * frequency * recording.time[:, None] + phase).sum(axis=0)
    slow = replace(recording, effort=recording.effort + 1e-3 * model.effort_limit * waves)
    white, coloured = (identify(model, motion_of(each), delay=0.0) for each in (recording, slow))
    by_size = coloured.noise / white.noise
    ratio = np.median(np.sqrt(np.diag(coloured.covariance) / np.diag(white.covariance)))
    assert ratio > 3.0 * by_size.max()


def test_joints_of_several_degrees_of_freedom_are_refused() -> None:
    floating = RobotModel.from_urdf_string(random_tree(1, 3), floating_base=True)
    motion = motion_of(recording_of(arm("panda"), 3.0, 0))
    with pytest.raises(IdentificationError, match=r"root_joint.*floating"):
        identify(floating, motion)


def test_motion_at_rest_is_refused() -> None:
    model = arm("panda")
    recording = recording_of(model, 5.0, 0)
    still = replace(recording, q=np.tile(recording.q[0], (len(recording.time), 1)))
    with pytest.raises(IdentificationError, match="no joint moves"):
        identify(model, motion_of(still))


@pytest.mark.parametrize("name", ["panda", "ur10_robot", "ur5_gripper"])
def test_space_starts_at_the_urdf(name: str) -> None:
    """With S = 1 the base parameters are the model's own, links on fixed joints, payloads and all;
    but for links that the URDF makes points or rods."""
    model = arm(name)
    model.set_payload(model.child_links[-1], 0.7, (0.1, 0.0, 0.05))
    base = base_parameters(model)
    motion = motion_of(recording_of(model, 3.0, 0))
    space = ParameterSpace(model, base, actuator_scales(motion))
    np.testing.assert_allclose(space.beta, base.values(inertial_parameters(model)), atol=2e-3)
