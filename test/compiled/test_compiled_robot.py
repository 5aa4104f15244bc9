"""Compiled robots against the loop kernels, and what they refuse."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
import threading
import weakref

import numba
import numpy as np
import pytest
from allocation import allocated
from robots import PANDA_JOINTS, example_robots, load_quietly, random_mechanism

from rnea_control.compiled import CompiledRobot, Order, compile_robot
from rnea_control.compiled.compiled_robot import BLOCK
from rnea_control.compiled.llvm_text import Precision
from rnea_control.compiled.machine_code import lanes
from rnea_control.compiled.programs import trace
from rnea_control.dynamics import (
    Workspace,
    aba,
    crba,
    forward_kinematics,
    gravity,
    jacobian,
    nonlinear_effects,
    rnea,
)
from rnea_control.dynamics.regressor import parameter_count, regressor
from rnea_control.exceptions import ArgumentError, TraceError
from rnea_control.kernels import disk_cache
from rnea_control.model import RobotModel

RELATIVE = 1e-12
# A robot without a name does not load.
MOST_JOINTS, LARGE = 7, ("talos_reduced",)
MOST_LINKS = 100  # whose poses are compiled: more take ten seconds
ROBOTS = [path for path in example_robots() if path.stem != "ur3"]
ALGORITHMS = ("rnea", "gravity", "nonlinear_effects", "crba", "aba")


def samples(model: RobotModel, count: int, seed: int = 0) -> list[np.ndarray]:
    """q, v, a and tau, a row for each sample."""
    rng = np.random.default_rng(seed)
    q = np.array([model.random(rng) for _ in range(count)]).reshape(count, model.nq)
    return [q, *rng.uniform(-3.0, 3.0, (3, count, model.nv))]


def inputs(algorithm: str, q, v, a, tau) -> tuple:
    return {
        "rnea": (q, v, a),
        "gravity": (q,),
        "nonlinear_effects": (q, v),
        "crba": (q,),
        "aba": (q, v, tau),
    }[algorithm]


def loop(model: RobotModel, algorithm: str, *arrays: np.ndarray) -> np.ndarray:
    """By the kernels of dynamics/."""
    function = {f.__name__: f for f in (rnea, gravity, nonlinear_effects, crba, aba)}[algorithm]
    out = np.zeros((model.nv, model.nv) if algorithm == "crba" else model.nv)
    return function(model, Workspace(model), *arrays, out)


def assert_agree(model: RobotModel, compiled: CompiledRobot, few: bool = False) -> None:
    count = 3
    q, v, a, tau = samples(model, count)
    for algorithm in ALGORITHMS[:2] if few else ALGORITHMS:
        if algorithm == "aba" and model.mimic_joints:
            with pytest.raises(ArgumentError, match="takes no joints that mimic"):
                compiled.aba(q[0], v[0], tau[0], a[0])
            with pytest.raises(ArgumentError, match="takes no joints that mimic"):
                compiled.batch("aba", q, v, tau)
            continue
        for k in range(count):
            arrays = inputs(algorithm, q[k], v[k], a[k], tau[k])
            expected = loop(model, algorithm, *arrays)
            if not np.isfinite(expected).all():
                with pytest.raises(TraceError, match="moves nothing that has inertia"):
                    compiled.aba(*arrays, expected)
                continue
            found = getattr(compiled, algorithm)(*arrays, np.full_like(expected, np.nan))
            scale = max(np.abs(expected).max(initial=0.0), 1e-3)
            if algorithm == "aba":  # as far as rounding of the inertias lets it
                scale *= max(np.linalg.cond(loop(model, "crba", q[k])), 1.0) if model.nv else 1.0
            np.testing.assert_allclose(found, expected, rtol=0.0, atol=RELATIVE * scale)
    if len(model.link_names) <= MOST_LINKS:
        poses = np.zeros((len(model.link_names), 4, 4))
        np.testing.assert_allclose(
            compiled.forward_kinematics(q[0], poses.copy()),
            forward_kinematics(model, Workspace(model), q[0], poses),
            atol=RELATIVE * max(np.abs(poses).max(), 1.0),
        )
    link, J = model.link_names[-1], np.zeros((6, model.nv))
    np.testing.assert_allclose(
        compiled.jacobian(q[0], link, J.copy()),
        jacobian(model, Workspace(model), q[0], link, J),
        atol=RELATIVE * max(np.abs(J).max(initial=0.0), 1.0),
    )


FEW = ("panda", "ur5_robot", "xarm7", "kinova", "talos_reduced", "icub_reduced", "solo12")


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[] if p.stem in FEW else [pytest.mark.explores]) for p in ROBOTS],
    ids=lambda path: path.stem,
)
def test_every_example_robot(path) -> None:
    model = load_quietly(path)
    # It takes seconds to compile the others for large robots.
    few = model.nv > MOST_JOINTS and path.stem not in LARGE
    assert_agree(model, compile_robot(model), few)


@pytest.mark.parametrize("seed", range(12))
def test_every_joint_type(seed: int) -> None:
    joints, inertias = random_mechanism(seed, 3 + seed % 8, mimics=seed % 2 == 1)
    model = RobotModel.from_joints("mechanism", joints, inertias)
    assert_agree(model, compile_robot(model))


@pytest.mark.parametrize("path", [p for p in ROBOTS if p.stem in ("panda", "ur5_robot", "hyq")])
def test_base_parameters_change_no_torque(path) -> None:
    model = load_quietly(path)
    assert_agree(model, compile_robot(model, base_parameters=True))
    few, many = (
        len(trace("rnea", model, base_parameters=regroups).order) for regroups in (True, False)
    )
    assert few < 0.9 * many


@pytest.mark.parametrize("seed", range(12))
def test_base_parameters_of_every_joint_type(seed: int) -> None:
    joints, inertias = random_mechanism(seed, 3 + seed % 8, mimics=seed % 2 == 1)
    model = RobotModel.from_joints("mechanism", joints, inertias)
    assert_agree(model, compile_robot(model, base_parameters=True))


def test_payload_that_varies_is_no_base_parameter(fresh) -> None:
    link = fresh.link_names[-1]
    compiled = compile_robot(fresh, variable=(link,), base_parameters=True)
    assert_agree(fresh, compiled)
    fresh.set_payload(link, 2.0, (0.1, 0.0, 0.2))
    assert_agree(fresh, compiled)


@pytest.mark.parametrize("seed", range(6))
def test_regressor_and_external_forces(seed: int) -> None:
    joints, inertias = random_mechanism(seed, 3 + seed % 4, mimics=seed % 2 == 1)
    model = RobotModel.from_joints("mechanism", joints, inertias)
    compiled, ws = compile_robot(model), Workspace(model)
    q, v, a, _ = (each[0] for each in samples(model, 1))
    shape = (model.nv, parameter_count(model))
    expected = regressor(model, ws, q, v, a, np.zeros(shape))
    found = compiled.regressor(q, v, a, np.full(shape, np.nan))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=RELATIVE * np.abs(expected).max())
    forces = np.random.default_rng(seed).normal(size=(len(model.link_names), 6))
    tau = rnea(model, ws, q, v, a, np.zeros(model.nv), forces)
    found = compiled.rnea(q, v, a, np.full(model.nv, np.nan), forces)
    np.testing.assert_allclose(found, tau, rtol=0.0, atol=RELATIVE * np.abs(tau).max())


@pytest.fixture(scope="module")
def panda(panda_urdf) -> RobotModel:
    return load_quietly(panda_urdf, PANDA_JOINTS)


@pytest.fixture
def fresh(panda_urdf) -> RobotModel:
    return load_quietly(panda_urdf, PANDA_JOINTS)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_batches_of_every_length(algorithm: str, order: Order, workers: int, panda) -> None:
    compiled = compile_robot(panda)
    for count in (*range(0, 2 * lanes() + 2), 101):
        arrays = inputs(algorithm, *samples(panda, count))
        expected = np.array(
            [loop(panda, algorithm, *(each[k] for each in arrays)) for k in range(count)]
        )
        if order is Order.entry_major:
            arrays = [np.ascontiguousarray(np.moveaxis(each, 0, -1)) for each in arrays]
        found = compiled.batch(algorithm, *arrays, order=order, workers=workers)
        if order is Order.entry_major:
            found = np.moveaxis(found, -1, 0)
        np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("order", Order)
def test_single_precision(order: Order, panda) -> None:
    compiled, width = compile_robot(panda), lanes(Precision.float)
    assert width == 2 * lanes()
    for count in (1, width - 1, width, 2 * width + 3, 1000):
        for algorithm in ("rnea", "gravity", "crba"):
            exact = inputs(algorithm, *samples(panda, count))
            expected = compiled.batch(algorithm, *exact)
            arrays = [each.astype(np.float32) for each in exact]
            if order is Order.entry_major:
                arrays = [np.ascontiguousarray(np.moveaxis(each, 0, -1)) for each in arrays]
            found = compiled.batch(algorithm, *arrays, order=order)
            assert found.dtype == np.float32
            if order is Order.entry_major:
                found = np.moveaxis(found, -1, 0)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-5 * scale)


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("workers", [1, 3])
def test_forces_of_each_sample(order: Order, workers: int, panda) -> None:
    compiled, count = compile_robot(panda), 4 * lanes() + 1
    q, v, a, _ = samples(panda, count)
    forces = np.random.default_rng(1).normal(size=(count, len(panda.link_names), 6))
    expected = [compiled.rnea(q[k], v[k], a[k], np.zeros(7), forces[k]) for k in range(count)]
    arrays = [q, v, a, forces]
    if order is Order.entry_major:
        arrays = [np.ascontiguousarray(np.moveaxis(each, 0, -1)) for each in arrays]
    found = compiled.batch("rnea", *arrays, order=order, workers=workers)
    found = found if order is Order.sample_major else found.T
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("count", [0, 1, BLOCK, 2 * BLOCK + 3])
def test_normal_equations(count: int, panda) -> None:
    compiled, parameters = compile_robot(panda), parameter_count(panda)
    q, v, a, tau = samples(panda, count)
    matrix, vector = compiled.normal_equations(q, v, a, tau)
    Y = np.zeros((count, 7, parameters))
    ws = Workspace(panda)
    for k in range(count):
        regressor(panda, ws, q[k], v[k], a[k], Y[k])
    Y = Y.reshape(-1, parameters)
    np.testing.assert_allclose(matrix, Y.T @ Y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(vector, Y.T @ tau.ravel(), rtol=1e-9, atol=1e-9)


def test_normal_equations_refuse_what_would_spoil_them(panda) -> None:
    compiled = compile_robot(panda)
    q, v, a, tau = samples(panda, 20)
    with pytest.raises(ArgumentError, match=r"tau must be finite and of shape \(20, 7\)"):
        compiled.normal_equations(q, v, a, tau[:19])
    with pytest.raises(ArgumentError, match=r"v must be .* in float64"):
        compiled.normal_equations(q, v.astype(np.float32), a, tau)
    a[3, 2] = np.nan
    with pytest.raises(ArgumentError, match="a must be finite"):
        compiled.normal_equations(q, v, a, tau)


@pytest.mark.parametrize("order", Order)
def test_nan_stays_in_its_sample(order: Order, panda) -> None:
    compiled = compile_robot(panda)
    q, v, a, _ = samples(panda, 3 * lanes() + 1)
    clean = compiled.batch("rnea", q, v, a)
    v[lanes() + 1, 3] = np.nan
    arrays = (q, v, a)
    if order is Order.entry_major:
        arrays = [np.ascontiguousarray(each.T) for each in arrays]
    found = compiled.batch("rnea", *arrays, order=order)
    found = found if order is Order.sample_major else found.T
    bad = np.isnan(found).any(axis=1)
    assert bad.nonzero()[0].tolist() == [lanes() + 1]
    np.testing.assert_allclose(found[~bad], clean[~bad], rtol=1e-13)


@pytest.mark.parametrize("turns", [1.0, 1e3, 1e5, 1e6 / 6.283, 1e12])
def test_angles_of_any_size(turns: float, panda) -> None:
    compiled = compile_robot(panda)
    q, v, a, _ = samples(panda, lanes())
    q[:, ::2] += 2.0 * np.pi * np.round(turns)
    q[1, 0] = 1e-310  # denormal
    expected = [loop(panda, "rnea", *each) for each in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(compiled.batch("rnea", q, v, a), expected, rtol=1e-12, atol=1e-12)
    alone = [compiled.rnea(*each, np.zeros(7)) for each in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(alone, expected, rtol=1e-12, atol=1e-12)


def test_what_is_variable_may_change(fresh) -> None:
    link = fresh.link_names[-1]
    compiled = compile_robot(fresh, variable=("gravity", "armature", link))
    assert_agree(fresh, compiled)
    fresh.gravity = (1.0, -2.0, 9.0)
    assert_agree(fresh, compiled)
    fresh.armature = np.linspace(0.1, 0.4, fresh.nv)
    assert_agree(fresh, compiled)
    fresh.set_payload(link, 2.0, (0.1, 0.0, 0.2))
    assert_agree(fresh, compiled)


def _gravity(model: RobotModel) -> None:
    model.gravity = (0.0, 0.0, 9.81)


def _armature(model: RobotModel) -> None:
    model.armature = np.full(model.nv, 0.1)


def _payload(model: RobotModel) -> None:
    model.set_payload(model.link_names[-1], 1.0)


@pytest.mark.parametrize("change", [_gravity, _armature, _payload])
def test_any_other_change_is_refused_and_taken_back_is_accepted(change, fresh) -> None:
    compiled = compile_robot(fresh)
    q, v, a, _ = (each[0] for each in samples(fresh, 1))
    before = compiled.rnea(q, v, a, np.zeros(7)).copy()
    change(fresh)
    tau = np.full(7, 5.0)
    with pytest.raises(ArgumentError, match="has changed since it was compiled"):
        compiled.rnea(q, v, a, tau)
    assert (tau == 5.0).all()
    with pytest.raises(ArgumentError, match="has changed since it was compiled"):
        compiled.batch("rnea", *(np.tile(each, (9, 1)) for each in (q, v, a)))
    fresh.gravity, fresh.armature = (0.0, 0.0, -9.81), np.zeros(7)
    fresh.set_payload(fresh.link_names[-1], 0.0)
    np.testing.assert_array_equal(compiled.rnea(q, v, a, tau), before)


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "rnea_with_external_forces", "regressor"])
def test_bound_arrays(algorithm: str, fresh) -> None:
    compiled = compile_robot(fresh, variable=["armature"])
    q, v, a, tau = (each[0].copy() for each in samples(fresh, 1))
    shape = {"crba": (7, 7), "regressor": (7, parameter_count(fresh))}.get(algorithm, (7,))
    out = np.zeros(shape)
    forces = np.random.default_rng(0).normal(size=(len(fresh.link_names), 6))
    more = {"rnea_with_external_forces": (q, v, a, forces), "regressor": (q, v, a)}
    arrays = more.get(algorithm) or inputs(algorithm, q, v, a, tau)
    bound, method = compiled.bind(algorithm, *arrays, out), getattr(compiled, algorithm)
    for _ in range(3):
        q += 0.1
        assert bound() is out
        np.testing.assert_array_equal(out, method(*arrays, np.zeros(shape)))
    counted = allocated(bound)
    assert counted["held"] == 0 and counted["page faults"] == 0
    fresh.armature = np.full(7, 0.1)  # is variable
    np.testing.assert_array_equal(bound(), method(*arrays, np.zeros(shape)))
    fresh.gravity = (0.0, 0.0, 0.0)
    with pytest.raises(ArgumentError, match="has changed since it was compiled"):
        bound()
    fresh.gravity = (0.0, 0.0, -9.81)
    np.testing.assert_array_equal(bound(), method(*arrays, np.zeros(shape)))


def test_bound_call_outlives_its_robot(fresh) -> None:
    q, v, a, _ = (each[0].copy() for each in samples(fresh, 1))
    expected = loop(fresh, "rnea", q, v, a)
    compiled = compile_robot(fresh)
    bound = compiled.bind("rnea", q, v, a, np.zeros(7))
    robot = weakref.ref(compiled)
    del compiled, q, v, a
    gc.collect()
    assert robot() is not None  # and so has the code
    np.testing.assert_allclose(bound(), expected, rtol=1e-12, atol=1e-12)
    del bound
    gc.collect()
    assert robot() is None


def test_what_cannot_be_bound(panda) -> None:
    compiled = compile_robot(panda)
    q, v, a, tau = (each[0].copy() for each in samples(panda, 1))
    with pytest.raises(ArgumentError, match="v is of"):
        compiled.bind("rnea", q, v[:6].copy(), a, tau)
    with pytest.raises(ArgumentError, match="algorithm is 'jacobian'"):
        compiled.bind("jacobian", q, np.zeros((6, 7)))
    with pytest.raises(ArgumentError, match="rnea takes q, v, a, tau"):
        compiled.bind("rnea", q, v, tau)
    with pytest.raises(ArgumentError, match="rnea takes q, v, a, tau, not 5 arrays"):
        compiled.bind("rnea", q, v, a, tau, np.zeros((len(panda.link_names), 6)))
    bound = compiled.bind("rnea", q, v, a, tau)
    with pytest.raises(ValueError, match="resize"):
        tau.resize(100)
    assert np.isfinite(bound()).all()


def test_wrong_arrays_are_named(panda) -> None:
    compiled = compile_robot(panda)
    q, v, a, tau = (each[0] for each in samples(panda, 1))
    with pytest.raises(ArgumentError, match=r"^v is of .* shape \(6,\)"):
        compiled.rnea(q, v[:6].copy(), a, tau)
    with pytest.raises(ArgumentError, match=r"^a is a list"):
        compiled.rnea(q, v, [0.0] * 7, tau)
    with pytest.raises(ArgumentError, match=r"^M is of"):
        compiled.crba(q, np.zeros((7, 6)))
    with pytest.raises(ArgumentError, match="v must be a C-contiguous float64 array of shape"):
        compiled.batch("rnea", np.zeros((9, 7)), np.zeros((8, 7)), np.zeros((9, 7)))
    rows = np.zeros((9, 7))
    with pytest.raises(ArgumentError, match="rnea takes q, v, a, each"):
        compiled.batch("rnea", rows, rows)
    for other in (rows.astype(np.float32), rows.astype(">f8"), np.zeros((9, 14))[:, ::2]):
        with pytest.raises(ArgumentError, match="v must be a C-contiguous float64 array of shape"):
            compiled.batch("rnea", rows, other, rows.copy())
        with pytest.raises(ArgumentError, match="out must be a C-contiguous float64 array"):
            compiled.batch("rnea", rows, rows, rows, out=other)
    with pytest.raises(ArgumentError, match="external_forces must be a C-contiguous float64"):
        compiled.batch("rnea", rows, rows, rows, rows)
    for workers in (0, -1):
        with pytest.raises(ArgumentError, match=r"workers is .*; it must be at least 1"):
            compiled.batch("rnea", rows, rows, rows, workers=workers)
    with pytest.raises(ArgumentError, match="each an array of float64 or float32"):
        compiled.batch("rnea", *[rows.astype(int)] * 3)
    with pytest.raises(ArgumentError, match="gravity takes q, each"):
        compiled.batch("gravity", q)
    for out in (rows, rows.view()):
        with pytest.raises(ArgumentError, match="out shares memory with a"):
            compiled.batch("rnea", rows.copy(), rows.copy(), rows, out=out)
    for call in (compiled.batch, compiled.address):
        with pytest.raises(ArgumentError, match="algorithm is 'jacobian'; it must be one of rnea"):
            call("jacobian")
    with pytest.raises(ArgumentError, match="algorithm is 'inverse'"):
        compiled.save(".", ["inverse"])
    with pytest.raises(ArgumentError, match="has no link 'hand_of_god'"):
        compiled.jacobian(q, "hand_of_god", np.zeros((6, 7)))
    with pytest.raises(ArgumentError, match="variable has 'hand_of_god'"):
        compile_robot(panda, variable=["hand_of_god"])
    with pytest.raises(ArgumentError, match="from a RobotModel"):
        compile_robot("panda.urdf")


def test_threads_share_it(panda) -> None:
    compiled = compile_robot(panda)
    q, v, a, _ = samples(panda, 50)
    expected = [loop(panda, "rnea", *each) for each in zip(q, v, a, strict=True)]
    found = {}

    def work(number: int) -> None:
        found[number] = [compiled.rnea(*each, np.zeros(7)) for each in zip(q, v, a, strict=True)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30.0)
    for each in found.values():
        np.testing.assert_allclose(each, expected, rtol=1e-12, atol=1e-12)
    assert len(found) == 4


def test_c_program_calls_the_saved_code(panda, tmp_path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    *objects, header = compile_robot(panda).save(tmp_path, ["rnea", "crba"])
    q, v, a, _ = (each[0] for each in samples(panda, 1))

    def numbers(values: np.ndarray) -> str:
        return ", ".join(float(value).hex() for value in values)

    (tmp_path / "main.c").write_text(f"""
#include <stdio.h>
#include "{header.name}"
int main(void) {{
    double q[7] = {{{numbers(q)}}}, v[7] = {{{numbers(v)}}}, a[7] = {{{numbers(a)}}};
    double tau[7], M[7][7];
    panda_rnea(q, v, a, 0, tau);
    panda_crba(q, 0, M);
    for (int i = 0; i < 7; i++) printf("%a %a\\n", tau[i], M[6][i]);
}}
""")
    program = tmp_path / "program"
    command = [compiler, "-o", program, tmp_path / "main.c", *objects, "-lm"]
    subprocess.run(command, check=True, timeout=60.0)
    done = subprocess.run([program], check=True, timeout=10.0, stdout=subprocess.PIPE, text=True)
    words = [float.fromhex(word) for word in done.stdout.split()]
    found = np.reshape(words, (7, 2))
    np.testing.assert_allclose(found[:, 0], loop(panda, "rnea", q, v, a), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[:, 1], loop(panda, "crba", q)[6], rtol=1e-12, atol=1e-12)


def test_address_is_callable_through_ctypes(panda) -> None:
    compiled = compile_robot(panda)
    q, v, a, _ = (each[0] for each in samples(panda, 1))
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(compiled.address("rnea"))
    tau = np.zeros(7)
    function(*(each.ctypes.data for each in (q, v, a)), None, tau.ctypes.data)
    np.testing.assert_array_equal(tau, compiled.rnea(q, v, a, np.zeros(7)))


def test_calls_allocate_nothing(panda) -> None:
    compiled = compile_robot(panda)
    q, v, a, tau = (each[0] for each in samples(panda, 1))
    counted = allocated(lambda: compiled.rnea(q, v, a, tau))
    assert counted["held"] == 0 and counted["page faults"] == 0


def test_code_is_kept_on_disk_and_a_damaged_file_is_made_anew(fresh, tmp_path, monkeypatch) -> None:
    fresh.set_payload(fresh.link_names[-1], 0.1234)  # nobody has compiled this one before
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(disk_cache, "_said", set())  # what is said once may have been said
    q, v, a, _ = (each[0] for each in samples(fresh, 1))
    expected = compile_robot(fresh).rnea(q, v, a, np.zeros(fresh.nv)).copy()
    (path,) = tmp_path.rglob("robot.*.o")
    before = path.stat().st_mtime_ns
    np.testing.assert_array_equal(compile_robot(fresh).rnea(q, v, a, np.zeros(fresh.nv)), expected)
    assert path.stat().st_mtime_ns == before
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.warns(RuntimeWarning, match="is damaged: what it held is compiled anew"):
        found = compile_robot(fresh).rnea(q, v, a, np.zeros(fresh.nv))
    np.testing.assert_array_equal(found, expected)
    assert path.stat().st_mtime_ns != before
