"""Parameters of robots that are not as their URDFs say, and of loads, from their joint states."""

from __future__ import annotations

import copy
import os
import re
from dataclasses import replace

import numpy as np
import pytest
from identification_bench import NOISE, hidden_robot, recording_of
from robots import PANDA_JOINTS, example_robot, load_quietly, random_tree

from rnea_control.analysis import base_parameters, inertial_parameters, inverse_dynamics_batch
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.consistent_parameters import ParameterSpace, parameters_in_body
from rnea_control.identification.identify import Certainty, Identification, identify
from rnea_control.identification.motion import Motion, join, motion_of
from rnea_control.identification.payload import Payload, identify_payload
from rnea_control.identification.torque_equations import TorqueEquations, identified_robot
from rnea_control.model import RobotModel
from rnea_control.model.bodies import INERTIA
from rnea_control.model.rigid_body import ten_parameters

SEEDS = int(os.environ.get("IDENTIFICATION_SEEDS", "2"))
# Links on fixed joints keep together what moves together: this arm has several.
LINK = "panda_link8"
MASS, CENTER = 1.3, np.array([0.02, -0.01, 0.07])
ABOUT_CENTER = np.diag([0.004, 0.003, 0.002])
ARMS = {"panda": PANDA_JOINTS, "ur10_robot": None}


def arm(name: str) -> RobotModel:
    return load_quietly(example_robot(name), ARMS.get(name))


def measured(robot: RobotModel, seconds: float, seed: int, **options: float) -> Motion:
    return motion_of(recording_of(robot, seconds, seed, **options))


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
def test_base_parameters_are_within_deviations_and_torques_at_noise(name, report) -> None:
    model = arm(name)
    base = base_parameters(model)
    every = np.arange(len(inertial_parameters(model)))
    standardised, worst = [], 0.0
    for seed in range(SEEDS):
        hidden = hidden_robot(model, seed)
        delay = 0.0013 if seed % 2 else 0.0
        found = identify(model, measured(hidden, 30.0, seed, delay=delay))
        assert not any("no parameter has it" in note for note in found.notes)
        true = base.values(inertial_parameters(hidden))
        standardised.append((found.beta - true) / np.sqrt(np.diag(found.covariance)))
        held_out = measured(hidden, 10.0, seed + 500, delay=delay)
        held_out = held_out.delayed(found.delay)
        equations = TorqueEquations(identified_robot(model), every, held_out)
        error = held_out.effort - equations.predicted(parameters(found))
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


@pytest.mark.explores
@pytest.mark.parametrize("robust", [False, True])
def test_deviations_hold_in_slow_noise(robust: bool) -> None:
    model = arm("ur10_robot")
    base = base_parameters(model)
    standardised = []
    for seed in range(SEEDS):
        hidden = hidden_robot(model, seed)
        recording = recording_of(hidden, 30.0, seed, rate=250.0, correlation=0.4)
        if robust:  # some torques are far off
            rng = np.random.default_rng(seed)
            off = np.where(rng.random(recording.effort.shape) < 0.01, 0.5 * model.effort_limit, 0.0)
            recording = replace(recording, effort=recording.effort + off)
        found = identify(model, motion_of(recording), robust)
        true = base.values(inertial_parameters(hidden))
        standardised.append((found.beta - true) / np.sqrt(np.diag(found.covariance)))
    assert 0.7 < np.sqrt(np.mean(np.square(standardised))) < 1.3


def test_torques_that_no_parameter_has_are_told_and_fitted_beside_them() -> None:
    """Torque ripple of the first joint, Stribeck friction of the second; the others are as ever."""
    model = arm("ur10_robot")
    hidden = hidden_robot(model, 6)
    recording = recording_of(hidden, 30.0, 6, rate=250.0)
    first, second = model.joint_names[:2]
    more = np.zeros_like(recording.effort)
    more[:, 0] = 0.01 * model.effort_limit[0] * np.sin(9.0 * recording.q[:, 0] + 1.0)
    v = np.gradient(recording.q[:, 1], recording.time)
    more[:, 1] = 0.03 * model.effort_limit[1] * np.sign(v) * np.exp(-((v / 0.05) ** 2))
    found = identify(model, motion_of(replace(recording, effort=recording.effort + more)))
    told = [note for note in found.notes if "no parameter has it" in note]
    assert len(told) == 2
    ripple = re.match(f"torque ripple of {first}: (.*) Nm, (.*) times a turn", told[0])
    assert ripple is not None
    assert abs(float(ripple[1]) / (0.01 * model.effort_limit[0]) - 1.0) < 0.2
    assert abs(float(ripple[2]) - 9.0) < 0.3
    assert re.match(f"Stribeck friction of {second}: \\+", told[1])
    true = base_parameters(model).values(inertial_parameters(hidden))
    z = (found.beta - true) / np.sqrt(np.diag(found.covariance))
    assert np.abs(z).max() < 4.0
    assert np.sqrt(np.mean(z**2)) < 1.3


def test_stribeck_friction_that_noise_hides_counts_in_the_deviations() -> None:
    """Of all joints; without it one would have 2.8 deviations too much Coulomb friction."""
    model = arm("ur10_robot")
    hidden = hidden_robot(model, 1)
    recording = recording_of(hidden, 30.0, 1, rate=250.0)
    v = np.gradient(recording.q, recording.time, axis=0)
    more = 0.5 * hidden.friction * np.sign(v) * np.exp(-((v / 0.05) ** 2))
    found = identify(model, motion_of(replace(recording, effort=recording.effort + more)))
    assert not any("no parameter has it" in note for note in found.notes)
    true = base_parameters(model).values(inertial_parameters(hidden))
    z = np.abs(found.beta - true) / np.sqrt(np.diag(found.covariance))
    assert z.max() < 2.5
    assert z[[name.endswith("friction") for name in found.base.names]].max() < 2.0


def test_equations_of_parts_are_those_of_the_whole() -> None:
    model = arm("ur10_robot")
    motion = measured(hidden_robot(model, 0), 12.0, 0, rate=500.0)
    times = np.arange(len(motion.time))

    def column(rows: slice, Y: np.ndarray) -> np.ndarray:
        return np.broadcast_to(times[rows, None, None], (*Y.shape[:2], 1))

    columns = base_parameters(model).independent
    equations = TorqueEquations(identified_robot(model), columns, motion, (column,))
    parts = slice(0, 2500), slice(2500, len(motion.time))
    rows = np.concatenate([equations.rows(part) for part in parts])
    rows = rows * motion.counts[:, :, None]
    np.testing.assert_array_equal(rows[2500, motion.counts[2500], -1], 2500.0)
    sums = np.einsum("kji,kjl->jil", rows, rows)
    np.testing.assert_allclose(sums, equations.normal().G, rtol=1e-9)


def test_exact_torques_give_exact_parameters() -> None:
    model = arm("panda")
    hidden = hidden_robot(model, 1)
    found = identify(model, measured(hidden, 30.0, 1, noise=0.0, rate=500.0))
    true = base_parameters(model).values(inertial_parameters(hidden))
    assert np.abs(found.beta - true).max() < 2e-3
    np.testing.assert_allclose(found.friction, hidden.friction, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(found.damping, hidden.damping, rtol=1e-2, atol=1e-2)


@pytest.mark.explores
def test_delay_between_effort_and_motion_is_found_or_given() -> None:
    model = arm("panda")
    motion = measured(hidden_robot(model, 2), 30.0, 2, noise=1e-3, delay=0.0123, rate=500.0)
    found = identify(model, motion)
    assert abs(found.delay - 0.0123) < 3e-4
    assert any("12." in note and "later" in note for note in found.notes)
    assert identify(model, motion, delay=0.005).delay == 0.005


def test_all_inertias_are_of_real_bodies_even_where_the_urdf_has_none() -> None:
    """A URDF with a point mass, and a link without inertia, and too little motion."""
    model = arm("panda")
    found = identify(model, measured(hidden_robot(model, 3), 2.5, 3))
    assert all(np.linalg.eigvalsh(matrix)[0] > 0.0 for matrix in found.inertias.values())
    assert (np.concatenate([found.armature, found.damping, found.friction]) >= -1e-9).all()


def test_what_is_not_excited_is_said_and_keeps_the_urdf() -> None:
    model = arm("panda")
    hidden = hidden_robot(model, 4)
    recording = recording_of(hidden, 15.0, 4, rate=500.0)
    q = recording.q.copy()
    q[:, :-1] = q[0, :-1]
    v = np.gradient(q, recording.time, axis=0)
    a = np.gradient(v, recording.time, axis=0)
    effort = inverse_dynamics_batch(hidden, q, v, a)
    effort += NOISE * model.effort_limit * np.random.default_rng(0).standard_normal(effort.shape)
    found = identify(model, motion_of(replace(recording, q=q, effort=effort)))
    certainty = {estimate.name: estimate.certainty for estimate in found.estimates}
    assert certainty["panda_joint1.friction"] is Certainty.unidentified
    assert certainty["panda_joint7.friction"] is not Certainty.unidentified
    assert any("panda_joint1 moves for" in note for note in found.notes)
    # What stood still is as the URDF has it.
    own = model.link_inertias["panda_link2"]
    np.testing.assert_allclose(found.inertias["panda_link2"], own, rtol=1e-3, atol=1e-3)


@pytest.mark.explores
def test_outliers_spoil_least_squares_but_not_the_robust_fit() -> None:
    model = arm("panda")
    hidden = hidden_robot(model, 5)
    recording = recording_of(hidden, 20.0, 5, rate=250.0)
    spikes = np.random.default_rng(5).random(recording.effort.shape) < 0.02
    effort = recording.effort + spikes * 5.0 * model.effort_limit
    motion = motion_of(replace(recording, effort=effort))
    true = base_parameters(model).values(inertial_parameters(hidden))
    plain, robust = (identify(model, motion, robust=each) for each in (False, True))

    def error(found: Identification) -> float:
        return float(np.linalg.norm((found.beta - true)[-model.nv :]))  # the offsets

    assert error(robust) < 0.1 * error(plain)


@pytest.mark.explores
def test_several_recordings_count_together() -> None:
    model = arm("ur10_robot")
    hidden = hidden_robot(model, 7)
    motions = [measured(hidden, 12.0, seed, rate=250.0) for seed in (70, 71, 72)]
    one, three = identify(model, motions[0]), identify(model, join(motions))
    assert three.seconds > 2.5 * one.seconds
    assert np.median(np.diag(three.covariance) / np.diag(one.covariance)) < 0.5


def test_a_robot_without_friction_has_none_and_a_payload_once() -> None:
    """The bound of 0 is kept to the last bit: RobotModel and controller refuse what is below."""
    model = arm("panda")
    for name in ("damping", "friction", "armature"):
        setattr(model, name, np.zeros(7))
    model.set_payload(LINK, 2.0, (0.0, 0.0, 0.1))  # which is known, and not counted twice
    found = identify(model, measured(model, 20.0, 9, noise=1e-4, rate=500.0))
    assert abs(found.inertias["panda_link7"][3, 3] - model.link_inertias["panda_link7"][3, 3]) < 0.1
    rows = np.stack([found.armature, found.damping, found.friction])
    assert (rows >= 0.0).all() and rows.min() < 1e-6
    model.friction, model.damping, model.armature = found.friction, found.damping, found.armature


def test_slow_noise_makes_deviations_larger() -> None:
    model = arm("ur10_robot")
    hidden = hidden_robot(model, 8)
    recording = recording_of(hidden, 20.0, 8, noise=1e-3, rate=500.0)
    rng = np.random.default_rng(8)
    phase = rng.uniform(0.0, 2 * np.pi, (40, 1, model.nv))
    frequency = rng.uniform(0.5, 1.5, (40, 1, 1))
    waves = np.sin(2 * np.pi * frequency * recording.time[:, None] + phase).sum(axis=0)
    slow = replace(recording, effort=recording.effort + 1e-3 * model.effort_limit * waves)
    white, colored = (identify(model, motion_of(each), delay=0.0) for each in (recording, slow))
    by_size = colored.noise / white.noise
    ratio = np.median(np.sqrt(np.diag(colored.covariance) / np.diag(white.covariance)))
    assert ratio > 3.0 * by_size.max()


@pytest.mark.parametrize("name", ["panda", "ur10_robot", "ur5_gripper"])
def test_space_starts_at_the_urdf(name: str) -> None:
    """With S = 1 the base parameters are the model's own, links on fixed joints, payloads and all;
    but for links that the URDF makes points or rods."""
    model = arm(name)
    model.set_payload(model.child_links[-1], 0.7, (0.1, 0.0, 0.05))
    space = ParameterSpace(model, measured(model, 3.0, 0))
    own = space.base.values(inertial_parameters(model))
    np.testing.assert_allclose(space.beta(space.start), own, atol=2e-3)


def with_and_without_load(robot: RobotModel, seed: int) -> tuple[Motion, Motion]:
    """Of the robot with a load, on top of inertias that may not be its URDF's, and without."""
    carrying, loaded, inertia = arm("panda"), copy.deepcopy(robot), slice(INERTIA, INERTIA + 10)
    carrying.set_payload(LINK, MASS, CENTER, ABOUT_CENTER)
    loaded.bodies[:, inertia] += carrying.bodies[:, inertia] - arm("panda").bodies[:, inertia]
    seeds = (loaded, seed), (robot, seed + 100)
    return tuple(measured(each, 12.0, n, delay=0.002, rate=500.0) for each, n in seeds)


def assert_within_deviations(found: Payload) -> None:
    assert abs(found.mass - MASS) < 4.0 * found.mass_deviation
    assert (np.abs(found.center_of_mass - CENTER) < 4.0 * found.center_deviation).all()


@pytest.mark.explores
def test_load_of_an_arm_that_is_not_as_its_urdf() -> None:
    robot = hidden_robot(arm("panda"), 1)
    loaded, empty = with_and_without_load(robot, 1)
    found = identify_payload(arm("panda"), LINK, loaded, empty)
    assert_within_deviations(found)
    assert found.mass_deviation < 0.02
    assert found.center_deviation.max() < 0.003
    assert np.linalg.eigvalsh(found.inertia)[0] > 0.0
    assert found.notes == ()
    robot = measured(robot, 12.0, 900, delay=0.002, rate=500.0)
    nothing = identify_payload(arm("panda"), LINK, robot, empty)
    assert nothing.mass < 0.05
    assert any("may be no load" in note for note in nothing.notes)


def test_load_alone_if_the_urdf_is_right() -> None:
    with_load, _ = with_and_without_load(arm("panda"), 2)
    found = identify_payload(arm("panda"), LINK, with_load)
    assert_within_deviations(found)
    assert found.mass_deviation > 0.01
    assert any("without a motion of the empty arm" in note for note in found.notes)


def test_what_cannot_be_identified_is_refused() -> None:
    motion = measured(arm("panda"), 3.0, 4)
    floating = RobotModel.from_urdf_string(random_tree(1, 3), floating_base=True)
    with pytest.raises(IdentificationError, match=r"root_joint.*floating"):
        identify(floating, motion)
    for link, words in (
        ("tool", "no link 'tool'.*panda_link8"),
        ("panda_link0", "fixed to .panda_link0."),
    ):
        with pytest.raises(IdentificationError, match=words):
            identify_payload(arm("panda"), link, motion, motion)
