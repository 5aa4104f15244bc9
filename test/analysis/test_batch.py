"""The batch is `inverse_dynamics` row by row, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import random_mechanism, two_link_arm

from rnea_control.analysis.batch import inverse_dynamics_batch
from rnea_control.dynamics import Workspace, inverse_dynamics
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel

ARM = RobotModel.from_urdf_string(two_link_arm())
SAMPLES = 5


def motion(model: RobotModel, samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    q = np.array([model.random(rng) for _ in range(samples)]).reshape(samples, model.nq)
    v, a = rng.standard_normal((2, samples, model.nv))
    return q, v, a


def row_by_row(model: RobotModel, q, v, a, forces=None) -> np.ndarray:
    ws, tau = Workspace(model), np.zeros((len(q), model.nv))
    for k in range(len(q)):
        external = () if forces is None else (forces[k],)
        inverse_dynamics(model, ws, q[k], v[k], a[k], tau[k], *external)
    return tau


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 12), st.booleans(), st.sampled_from([1, 2, 7]))
def test_equals_inverse_dynamics_of_each_row(seed, joints, floating_base, workers) -> None:
    chain, inertias = random_mechanism(seed, joints, mimics=True)
    model = RobotModel.from_joints("mechanism", chain, inertias, floating_base=floating_base)
    model.torque_offset = np.linspace(-1.0, 1.0, model.nv)
    q, v, a = motion(model, SAMPLES)
    forces = np.random.default_rng(1).standard_normal((SAMPLES, len(model.link_names), 6))
    tau = inverse_dynamics_batch(model, q, v, a, workers=workers)
    np.testing.assert_array_equal(tau, row_by_row(model, q, v, a))
    tau = inverse_dynamics_batch(model, q, v, a, external_forces=forces, workers=workers)
    np.testing.assert_array_equal(tau, row_by_row(model, q, v, a, forces))


def test_no_rows_nothing_that_moves_and_thousands_of_rows_on_all_cores() -> None:
    for workers in (1, 2):
        assert inverse_dynamics_batch(ARM, *motion(ARM, 0), workers=workers).shape == (0, 2)
    stone = RobotModel.from_urdf_string('<robot name="stone"><link name="stone"/></robot>')
    assert inverse_dynamics_batch(stone, *motion(stone, 3)).shape == (3, 0)
    many = motion(ARM, 4001)
    np.testing.assert_array_equal(inverse_dynamics_batch(ARM, *many), row_by_row(ARM, *many))


def test_output_is_filled_and_returned_and_nan_stays_in_its_row() -> None:
    q, v, a = motion(ARM, SAMPLES)
    expected, tau = row_by_row(ARM, q, v, a), np.full((SAMPLES, 2), 7.0)
    q[2] = np.nan
    assert inverse_dynamics_batch(ARM, q, v, a, tau, workers=1) is tau
    assert np.isnan(tau[2]).all()
    np.testing.assert_array_equal(np.delete(tau, 2, 0), np.delete(expected, 2, 0))


OTHER_FORMS = {
    "float32": lambda array: array.astype(np.float32),
    "a list": lambda array: array.tolist(),
    "strided": lambda array: np.repeat(array, 2, axis=1)[:, ::2],
    "Fortran order": np.asfortranarray,
    "other byte order": lambda array: array.astype(">f8"),
    "read-only": lambda array: np.broadcast_to(array, array.shape),
}


def test_arrays_of_other_forms_are_converted() -> None:
    forces = np.random.default_rng(1).standard_normal((SAMPLES, 3, 6))
    numbers = [array.astype(np.float32).astype(float) for array in (*motion(ARM, SAMPLES), forces)]
    expected = row_by_row(ARM, *numbers)
    for name, form in OTHER_FORMS.items():
        q, v, a, forces = (form(array.copy()) for array in numbers)
        tau = inverse_dynamics_batch(ARM, q, v, a, external_forces=forces)
        np.testing.assert_array_equal(tau, expected, name)


WRONG = [
    ("q", np.zeros(2), r"q is of shape \(2,\); it must be .* shape \(samples, 2\)"),
    ("q", np.zeros((SAMPLES, 3)), r"q is of shape \(5, 3\); it must be .* \(samples, 2\)"),
    ("q", [[0.0, 0.0], [0.0]], r"q has rows of several lengths"),
    ("q", np.zeros((SAMPLES, 2), dtype=complex), "q is of complex128"),
    ("q", None, "q is of object"),
    ("v", np.zeros((4, 2)), r"v is of shape \(4, 2\); it must be .* \(5, 2\)"),
    ("external_forces", np.zeros((SAMPLES, 2, 6)), r"is of shape \(5, 2, 6\); .* \(5, 3, 6\)"),
    ("tau", np.zeros((SAMPLES, 3)), r"tau is of float64 and shape \(5, 3\); .* \(5, 2\)"),
    ("tau", np.zeros((SAMPLES, 2), dtype=np.float32), "tau is of float32"),
    ("tau", np.zeros((SAMPLES, 4))[:, ::2], "tau is a read-only or strided"),
    ("tau", np.broadcast_to(np.zeros((SAMPLES, 2)), (SAMPLES, 2)), "tau is a read-only or strided"),
    ("tau", [[0.0, 0.0]] * SAMPLES, "tau is a list"),
    ("workers", 0, "workers is 0; it must be an integer, at least 1"),
    ("workers", [2], r"workers is \[2\]"),
]


def test_wrong_argument_is_named() -> None:
    arguments = dict(zip("qva", motion(ARM, SAMPLES), strict=True))
    for name, wrong, words in WRONG:
        with pytest.raises(ArgumentError, match=words):
            inverse_dynamics_batch(ARM, **{**arguments, name: wrong})
