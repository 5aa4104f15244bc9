"""Compiled robots against the loop kernels, and what they refuse."""

from __future__ import annotations

import copy
import gc
import pickle
import shutil
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest
import robots
from robots import example_robot, load_quietly, random_mechanism, two_link_arm

from rnea_control import dynamics
from rnea_control.compiled import CompiledRobot, Order, calls, compile_robot, machine_code
from rnea_control.compiled.compiled_robot import BLOCK
from rnea_control.compiled.machine_code import lanes
from rnea_control.compiled.programs import trace
from rnea_control.compiled.straight_line import Precision
from rnea_control.dynamics import Workspace
from rnea_control.dynamics.regressor import parameter_count, regressor
from rnea_control.exceptions import ArgumentError, TraceError
from rnea_control.jit import disk_cache
from rnea_control.model import Joint, RobotModel

RELATIVE = 1e-12
# It takes seconds to compile all algorithms for large robots.
MOST_JOINTS, LARGE = 7, ("talos_reduced",)
MOST_LINKS = 100  # whose poses are compiled: more take ten seconds
ALGORITHMS = {"rnea": "qva", "gravity": "q", "nonlinear_effects": "qv", "crba": "q", "aba": "qvt"}
CHANGED = "has changed since it was compiled"


def samples(model: RobotModel, count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    q = np.array([model.random(rng) for _ in range(count)]).reshape(count, model.nq)
    return [q, *rng.uniform(-3.0, 3.0, (3, count, model.nv))]


def sample(model: RobotModel) -> list[np.ndarray]:
    return [each[0].copy() for each in samples(model, 1)]


def inputs(algorithm: str, *state: np.ndarray) -> list[np.ndarray]:
    by_letter = dict(zip("qvat", state, strict=True))
    return [by_letter[letter] for letter in ALGORITHMS[algorithm]]


def loop(model: RobotModel, algorithm: str, *arrays: np.ndarray) -> np.ndarray:
    out = np.zeros((model.nv, model.nv) if algorithm == "crba" else model.nv)
    return getattr(dynamics, algorithm)(model, Workspace(model), *arrays, out)


def close(found: np.ndarray, expected: np.ndarray, relative: float = RELATIVE) -> None:
    scale = max(np.abs(expected).max(initial=0.0), 1e-3)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=relative * scale)


def assert_agree(model: RobotModel, compiled: CompiledRobot, few: bool = False) -> None:
    ws, states = Workspace(model), samples(model, 3)
    for algorithm in list(ALGORITHMS)[: 2 if few else None]:
        if algorithm == "aba" and model.mimic_joints:
            q, v, _, tau = states
            with pytest.raises(ArgumentError, match="takes no joints that mimic"):
                compiled.aba(q[0], v[0], tau[0], np.zeros(model.nv))
            with pytest.raises(ArgumentError, match="takes no joints that mimic"):
                compiled.batch("aba", q, v, tau)
            continue
        for state in zip(*states, strict=True):
            arrays = inputs(algorithm, *state)
            expected = loop(model, algorithm, *arrays)
            found = getattr(compiled, algorithm)(*arrays, np.full_like(expected, np.nan))
            relative = RELATIVE
            if algorithm == "aba" and model.nv:  # as far as rounding of the inertias lets it
                relative *= max(np.linalg.cond(loop(model, "crba", state[0])), 1.0)
            close(found, expected, relative)
    q, link = states[0][0], model.link_names[-1]
    if len(model.link_names) <= MOST_LINKS:
        poses = np.zeros((len(model.link_names), 4, 4))
        found = compiled.forward_kinematics(q, poses.copy())
        expected = dynamics.forward_kinematics(model, ws, q, poses)
        np.testing.assert_allclose(found, expected, atol=RELATIVE * max(np.abs(poses).max(), 1.0))
    J = np.zeros((6, model.nv))
    found = compiled.jacobian(q, link, J.copy())
    expected = dynamics.jacobian(model, ws, q, link, J)
    atol = RELATIVE * max(np.abs(J).max(initial=0.0), 1.0)
    np.testing.assert_allclose(found, expected, atol=atol)


FEW = "panda", "ur5_robot", "kinova", "talos_reduced", "icub_reduced", "iris_simple"
MORE = (pytest.param(name, marks=pytest.mark.explores) for name in ("baxter", "pr2", "romeo"))
ROBOTS = (*FEW, *MORE)


@pytest.mark.parametrize("name", ROBOTS)
def test_robot(name: str) -> None:
    model = load_quietly(example_robot(name))
    few = model.nv > MOST_JOINTS and name not in LARGE
    assert_agree(model, compile_robot(model), few)


def mechanism(seed: int) -> RobotModel:
    joints, inertias = random_mechanism(seed, 3 + seed % 5, mimics=seed % 2 == 1)
    return RobotModel.from_joints("mechanism", joints, inertias)


@pytest.mark.parametrize("seed", range(14))
def test_every_joint_type_and_the_last_by_base_parameters(seed: int) -> None:
    model = mechanism(seed)
    compiled, ws = compile_robot(model, base_parameters=seed >= 8), Workspace(model)
    assert_agree(model, compiled)
    q, v, a, _ = sample(model)
    shape = (model.nv, parameter_count(model))
    expected = regressor(model, ws, q, v, a, np.zeros(shape))
    found = compiled.regressor(q, v, a, np.full(shape, np.nan))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=RELATIVE * np.abs(expected).max())
    forces = np.random.default_rng(seed).normal(size=(len(model.link_names), 6))
    tau = dynamics.rnea(model, ws, q, v, a, np.zeros(model.nv), forces)
    found = compiled.rnea(q, v, a, np.full(model.nv, np.nan), forces)
    np.testing.assert_allclose(found, tau, rtol=0.0, atol=RELATIVE * np.abs(tau).max())


def test_output_may_lie_over_an_input() -> None:
    model = load_quietly(example_robot("talos_reduced"))  # of several limbs
    robot, (q, v, *_) = compile_robot(model), sample(model)
    expected = robot.nonlinear_effects(q, v, np.zeros(model.nv))
    memory = np.append(0.0, v)
    found = robot.nonlinear_effects(q, memory[1:], memory[:-1])
    np.testing.assert_array_equal(found, expected)


def test_base_parameters_take_less_work(panda) -> None:
    """And change no torque: the tests before and after this one."""
    few, many = (len(trace("rnea", panda, base_parameters=each).order) for each in (True, False))
    assert few < 0.9 * many


@pytest.fixture(scope="module")
def compiled() -> CompiledRobot:
    return compile_robot(robots.panda())


@pytest.mark.parametrize("base_parameters", [False, True])
def test_what_is_variable_may_change(base_parameters: bool, panda) -> None:
    links = "panda_link4", panda.link_names[-1]
    compiled = compile_robot(panda, ("gravity", "armature", *links), base_parameters)
    assert_agree(panda, compiled)
    panda.gravity = (1.0, -2.0, 9.0)
    assert_agree(panda, compiled)
    panda.armature = np.linspace(0.1, 0.4, panda.nv)
    for link in links:
        panda.set_payload(link, 2.0, (0.1, 0.0, 0.2))
        assert_agree(panda, compiled)


CHANGES = {
    "gravity": lambda model: setattr(model, "gravity", (0.0, 0.0, 9.81)),
    "armature": lambda model: setattr(model, "armature", np.full(model.nv, 0.1)),
    "payload": lambda model: model.set_payload(model.link_names[-1], 1.0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_other_change_is_refused_and_taken_back_is_accepted(change: str, panda) -> None:
    compiled = compile_robot(panda, {"gravity", "armature"} - {change})
    q, v, a, _ = sample(panda)
    before = compiled.rnea(q, v, a, np.zeros(7)).copy()
    CHANGES[change](panda)
    tau = np.full(7, 5.0)
    with pytest.raises(ArgumentError, match=CHANGED):
        compiled.rnea(q, v, a, tau)
    assert (tau == 5.0).all()
    with pytest.raises(ArgumentError, match=CHANGED):
        compiled.batch("rnea", *(np.tile(each, (9, 1)) for each in (q, v, a)))
    panda.gravity, panda.armature = (0.0, 0.0, -9.81), np.zeros(7)
    panda.set_payload(panda.link_names[-1], 0.0)
    np.testing.assert_array_equal(compiled.rnea(q, v, a, tau), before)


def batch(
    compiled: CompiledRobot, algorithm: str, arrays: list[np.ndarray], order: Order, **options
) -> np.ndarray:
    """A batch whose samples lie in `order`; with the samples first here."""
    if order is Order.sample_major:
        return compiled.batch(algorithm, *arrays, order=order, **options)
    arrays = [np.ascontiguousarray(np.moveaxis(each, 0, -1)) for each in arrays]
    return np.moveaxis(compiled.batch(algorithm, *arrays, order=order, **options), -1, 0)


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_batches_of_every_length(algorithm: str, order: Order, panda, compiled) -> None:
    most = 101
    arrays = inputs(algorithm, *samples(panda, most))
    expected = np.array([loop(panda, algorithm, *each) for each in zip(*arrays, strict=True)])
    for count in (*range(2 * lanes() + 2), most):
        for workers in (1, 2, 5):
            first = [each[:count] for each in arrays]
            found = batch(compiled, algorithm, first, order, workers=workers)
            np.testing.assert_allclose(found, expected[:count], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("order", Order)
def test_single_precision(order: Order, panda, compiled) -> None:
    width = lanes(Precision.float)
    assert width == 2 * lanes()
    for count in (1, width - 1, width, 2 * width + 3, 100):
        for algorithm in ("rnea", "gravity", "crba"):
            exact = inputs(algorithm, *samples(panda, count))
            arrays = [each.astype(np.float32) for each in exact]
            found = batch(compiled, algorithm, arrays, order)
            assert found.dtype == np.float32
            close(found, compiled.batch(algorithm, *exact), 1e-5)


@pytest.mark.parametrize(
    ("features", "doubles"),
    [("", 2), ("+neon,-sve", 2), ("+avx,-avx512f", 4), ("+avx,+avx512f", 8)],
)
def test_a_register_is_as_wide_as_the_processor_s(
    features: str, doubles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_code, "processor", lambda: ("generic", features))
    assert lanes.__wrapped__() == doubles


@pytest.mark.parametrize("order", Order)
def test_forces_of_each_sample(order: Order, panda, compiled) -> None:
    count = 4 * lanes() + 1
    q, v, a, _ = samples(panda, count)
    forces = np.random.default_rng(1).normal(size=(count, len(panda.link_names), 6))
    expected = [compiled.rnea(q[k], v[k], a[k], np.zeros(7), forces[k]) for k in range(count)]
    for workers in (1, 3):
        found = batch(compiled, "rnea", [q, v, a, forces], order, workers=workers)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("order", Order)
def test_nan_stays_in_its_sample(order: Order, panda, compiled) -> None:
    q, v, a, _ = samples(panda, 3 * lanes() + 1)
    clean = compiled.batch("rnea", q, v, a)
    v[lanes() + 1, 3] = np.nan
    found = batch(compiled, "rnea", [q, v, a], order)
    bad = np.isnan(found).any(axis=1)
    assert bad.nonzero()[0].tolist() == [lanes() + 1]
    np.testing.assert_allclose(found[~bad], clean[~bad], rtol=1e-13)


@pytest.mark.parametrize("turns", [1.0, 1e3, 1e5, 1e6 / 6.283, 1e12])
def test_angles_of_any_size(turns: float, panda, compiled) -> None:
    q, v, a, _ = samples(panda, lanes())
    q[:, ::2] += 2.0 * np.pi * np.round(turns)
    q[1, 0] = 1e-310  # denormal
    expected = [loop(panda, "rnea", *each) for each in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(compiled.batch("rnea", q, v, a), expected, rtol=1e-12, atol=1e-12)
    alone = [compiled.rnea(*each, np.zeros(7)) for each in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(alone, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [0, 1, BLOCK, 2 * BLOCK + 3])
def test_normal_equations(count: int, panda, compiled) -> None:
    q, v, a, tau = samples(panda, count)
    matrix, vector = compiled.normal_equations(q, v, a, tau)
    Y, ws = np.zeros((count, 7, parameter_count(panda))), Workspace(panda)
    for k in range(count):
        regressor(panda, ws, q[k], v[k], a[k], Y[k])
    Y = Y.reshape(-1, Y.shape[2])
    np.testing.assert_allclose(matrix, Y.T @ Y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(vector, Y.T @ tau.ravel(), rtol=1e-9, atol=1e-9)


def test_bound_arrays(panda) -> None:
    compiled = compile_robot(panda, variable=["armature"])
    q, v, a, tau = sample(panda)
    forces = np.random.default_rng(0).normal(size=(len(panda.link_names), 6))
    takes = {name: inputs(name, q, v, a, tau) for name in ALGORITHMS}
    takes |= {"rnea_with_external_forces": [q, v, a, forces], "regressor": [q, v, a]}
    bounds = {}
    for name, arrays in takes.items():
        shape = {"crba": (7, 7), "regressor": (7, parameter_count(panda))}.get(name, (7,))
        out, method = np.zeros(shape), getattr(compiled, name)
        bounds[name] = bound = compiled.bind(name, *arrays, out)
        for _ in range(3):
            q += 0.1
            assert bound() is out
            np.testing.assert_array_equal(out, method(*arrays, np.zeros(shape)))
    panda.armature = np.full(7, 0.1)  # is variable
    for name, bound in bounds.items():
        expected = getattr(compiled, name)(*takes[name], np.zeros_like(bound()))
        np.testing.assert_array_equal(bound(), expected)
        panda.gravity = (0.0, 0.0, 0.0)
        with pytest.raises(ArgumentError, match=CHANGED):
            bound()
        panda.gravity = (0.0, 0.0, -9.81)
        np.testing.assert_array_equal(bound(), expected)


def test_bound_call_outlives_its_robot_and_keeps_its_arrays(panda) -> None:
    q, v, a, tau = sample(panda)
    expected = loop(panda, "rnea", q, v, a)
    compiled = compile_robot(panda)
    bound = compiled.bind("rnea", q, v, a, tau)
    robot = weakref.ref(compiled)
    del compiled, q, v, a
    gc.collect()
    assert robot() is not None  # and so has the code
    np.testing.assert_allclose(bound(), expected, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="resize"):
        tau.resize(100)
    del bound
    gc.collect()
    assert robot() is None


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def test_inputs_may_be_read_only(panda, compiled) -> None:
    q, v, a, tau = samples(panda, 9)
    forces, count = np.ones((9, len(panda.link_names), 6)), parameter_count(panda)
    takes = {name: (inputs(name, q, v, a, tau), (7,)) for name in ALGORITHMS}
    takes |= {"crba": ([q], (7, 7)), "regressor": ([q, v, a], (7, count))}
    takes |= {"forward_kinematics": ([q], (len(panda.link_names), 4, 4))}
    takes |= {"rnea_with_external_forces": ([q, v, a, forces], (7,))}
    for name, (arrays, shape) in takes.items():
        method, bulk = getattr(compiled, name), name.removesuffix("_with_external_forces")
        many = compiled.batch(bulk, *arrays)
        one = method(*(each[0] for each in arrays), np.zeros(shape))
        frozen = [read_only(each.copy()) for each in arrays]
        np.testing.assert_array_equal(compiled.batch(bulk, *frozen), many)
        first = [each[0] for each in frozen]
        np.testing.assert_array_equal(method(*first, np.zeros(shape)), one)
        np.testing.assert_array_equal(compiled.bind(name, *first, np.zeros(shape))(), one)
    J = compiled.jacobian(q[0], panda.link_names[-1], np.zeros((6, 7)))
    frozen = read_only(q[0].copy())
    found = compiled.jacobian(frozen, panda.link_names[-1], np.zeros((6, 7)))
    np.testing.assert_array_equal(found, J)


def test_copies_compute_the_same_and_none_is_made_of_a_changed_robot(panda) -> None:
    compiled = compile_robot(panda, iter(["gravity"]), base_parameters=True)
    q, v, a, _ = sample(panda)
    expected = compiled.rnea(q, v, a, np.zeros(7))
    for copied in (pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled)):
        assert copied.model is not panda
        np.testing.assert_array_equal(copied.rnea(q, v, a, np.zeros(7)), expected)
        copied.model.gravity = (0.0, 0.0, 0.0)  # is variable there too
        assert (copied.rnea(q, v, a, np.zeros(7)) != expected).any()
    panda.armature = np.full(7, 0.1)
    with pytest.raises(ArgumentError, match=CHANGED):
        pickle.dumps(compiled)


V, ROWS = np.zeros(7), np.zeros((9, 7))
RRR = ROWS, ROWS, ROWS
OTHERS = ROWS.astype(np.float32), ROWS.astype(">f8"), np.zeros((9, 14))[:, ::2]
REFUSED = [
    (r"^v is of .* shape \(6,\)", lambda c: c.rnea(V, np.zeros(6), V, V)),
    (r"^a is a list", lambda c: c.rnea(V, V, [0.0] * 7, V)),
    (r"^M is of", lambda c: c.crba(V, np.zeros((7, 6)))),
    ("has no link 'hand_of_god'", lambda c: c.jacobian(V, "hand_of_god", np.zeros((6, 7)))),
    (r"has no link \[7\]", lambda c: c.jacobian(V, [7], np.zeros((6, 7)))),
    ("v is of", lambda c: c.bind("rnea", V, np.zeros(6), V, V)),
    ("algorithm is 'jacobian'", lambda c: c.bind("jacobian", V, np.zeros((6, 7)))),
    ("rnea takes q, v, a, tau, not 5 arrays", lambda c: c.bind("rnea", V, V, V, V, V)),
    ("rnea takes q, v, a, each", lambda c: c.batch("rnea", ROWS, ROWS)),
    ("gravity takes q, each", lambda c: c.batch("gravity", V)),
    ("float64 or float32", lambda c: c.batch("rnea", *[ROWS.astype(int)] * 3)),
    ("v is .* must be a C-contiguous", lambda c: c.batch("rnea", ROWS, np.zeros((8, 7)), ROWS)),
    *(("v is .* must be a C-cont", lambda c, v=v: c.batch("rnea", ROWS, v, V)) for v in OTHERS),
    *(("out is .* must be", lambda c, out=out: c.batch("rnea", *RRR, out=out)) for out in OTHERS),
    ("external_forces is .* must be a C-contiguous float64", lambda c: c.batch("rnea", *RRR, ROWS)),
    ("workers is 0; it must be at least 1", lambda c: c.batch("rnea", *RRR, workers=0)),
    ("workers is 1.5; .* an integer", lambda c: c.batch("rnea", *RRR, workers=1.5)),
    ("order is 'rows'; .* Order.sample_major or", lambda c: c.batch("rnea", *RRR, order="rows")),
    ("out is a read-only", lambda c: c.batch("rnea", *RRR, out=read_only(np.zeros((9, 7))))),
    ("^tau is a read-only", lambda c: c.gravity(V, read_only(np.zeros(7)))),
    (r"^v is of .* \(6,\)", lambda c: c.rnea(read_only(np.zeros(7)), np.zeros(6), V, V)),
    ("out shares memory with a", lambda c: c.batch("rnea", ROWS + 1, ROWS + 1, ROWS, out=ROWS)),
    ("out shares memory", lambda c: c.batch("rnea", *RRR, out=ROWS.view())),
    ("algorithm is 'jacobian'; it must be one of rnea", lambda c: c.batch("jacobian")),
    ("algorithm is 'jacobian'", lambda c: c.address("jacobian")),
    ("algorithm is 'inverse'", lambda c: c.save(".", ["inverse"])),
    ("variable has 'hand_of_god'", lambda c: compile_robot(c.model, variable=["hand_of_god"])),
    ("from a RobotModel", lambda c: compile_robot("panda.urdf")),
    (r"tau must be finite and of shape \(9, 7\)", lambda c: c.normal_equations(*RRR, ROWS[1:])),
    ("v must be .* in float64", lambda c: c.normal_equations(ROWS, OTHERS[0], ROWS, ROWS)),
    ("a must be finite", lambda c: c.normal_equations(ROWS, ROWS, np.full((9, 7), np.nan), ROWS)),
]


@pytest.mark.parametrize("direct", [True, False])
def test_what_does_not_fit_is_named(direct: bool, panda, monkeypatch: pytest.MonkeyPatch) -> None:
    assert calls.direct()
    monkeypatch.setattr(calls, "direct", lambda: direct)
    compiled = compile_robot(panda)
    assert_agree(panda, compiled)
    for words, call in REFUSED:
        with pytest.raises(ArgumentError, match=words):
            call(compiled)


def test_arrays_of_another_class_and_arguments_by_name(panda, compiled) -> None:
    q, v, a, tau = sample(panda)
    expected = compiled.rnea(q, v, a, np.zeros(7))
    q = pickle.loads(pickle.dumps(q))
    held = sys.getrefcount(tau)
    for _ in range(10):
        result = compiled.rnea(q.view(np.recarray), tau=tau, a=a, v=v, external_forces=None)
        assert result is tau
        np.testing.assert_array_equal(result, expected)
        assert compiled.rnea(q, v, a, tau) is tau
    del result
    assert sys.getrefcount(tau) == held


def test_joint_that_moves_nothing_has_no_forward_dynamics() -> None:
    joint = Joint("j", "revolute", "base", "arm")
    model = RobotModel.from_joints("nothing", [joint], {"base": np.eye(4)})
    with pytest.raises(TraceError, match="moves no inertia"):
        compile_robot(model).aba(*np.zeros((4, 1)))


def test_threads_share_it(panda, compiled) -> None:
    states = list(zip(*samples(panda, 50)[:3], strict=True))
    expected = [loop(panda, "rnea", *each) for each in states]

    def work(_: int) -> list[np.ndarray]:
        return [compiled.rnea(*each, np.zeros(7)) for each in states]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, range(4)):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_c_program_calls_the_saved_code(panda, compiled, tmp_path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    *objects, header = compiled.save(tmp_path, ["rnea", "crba"])
    q, v, a, _ = sample(panda)

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
    command = [compiler, "-Werror", "-o", program, tmp_path / "main.c", *objects, "-lm"]
    subprocess.run(command, check=True, timeout=60.0)
    done = subprocess.run([program], check=True, timeout=10.0, stdout=subprocess.PIPE, text=True)
    found = np.reshape([float.fromhex(word) for word in done.stdout.split()], (7, 2))
    np.testing.assert_allclose(found[:, 0], loop(panda, "rnea", q, v, a), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[:, 1], loop(panda, "crba", q)[6], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["7-axis", "Käfer 2", "机", "_x"])
def test_code_is_saved_whatever_the_robots_name(name: str, tmp_path) -> None:
    model = RobotModel.from_urdf_string(two_link_arm(name))
    code, header = compile_robot(model).save(tmp_path, ["gravity"])
    assert code.stem.isascii() and code.stem.isidentifier() and code.stem[0].isalpha()
    assert f"void {code.stem}(const double q[2]" in header.read_text("utf-8")
    assert code.stem.encode() in code.read_bytes()


def test_code_is_kept_on_disk_and_a_damaged_file_is_made_anew(panda, tmp_path, monkeypatch) -> None:
    panda.set_payload(panda.link_names[-1], 0.1234)  # nobody has compiled this one before
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(disk_cache, "_said", set())  # what is said once may have been said
    q, v, a, _ = sample(panda)
    expected = compile_robot(panda).rnea(q, v, a, np.zeros(panda.nv)).copy()
    (path,) = tmp_path.rglob("robot.*.o")
    before = path.stat().st_mtime_ns
    np.testing.assert_array_equal(compile_robot(panda).rnea(q, v, a, np.zeros(panda.nv)), expected)
    assert path.stat().st_mtime_ns == before
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.warns(RuntimeWarning, match="is damaged: its code is compiled again"):
        found = compile_robot(panda).rnea(q, v, a, np.zeros(panda.nv))
    np.testing.assert_array_equal(found, expected)
    assert path.stat().st_mtime_ns != before
