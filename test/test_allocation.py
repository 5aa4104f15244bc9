"""Nothing is allocated in the algorithms and in the control step."""

from __future__ import annotations

import gc
import sys
from array import array
from collections.abc import Callable, Iterator

import numba
import numpy as np
import pytest
from allocation import allocated
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.core.runtime import _nrt_python, rtsys
from rclpy.clock import ROSClock
from rclpy.logging import get_logger
from rclpy.serialization import serialize_message
from robots import PANDA_JOINTS, load_quietly, two_link_arm
from sensor_msgs.msg import JointState

import rnea_control.dynamics
from rnea_control.analysis import parameter_names, regressor
from rnea_control.control import (
    ControlLaw,
    Controller,
    ControllerSettings,
    Gains,
    Mode,
    MotionRequest,
    SafetySettings,
    SupervisionSettings,
    Supervisor,
    Waypoint,
    Waypoints,
)
from rnea_control.control.handover import Handover, HandoverTimes
from rnea_control.control.momentum_observer import MomentumObserver
from rnea_control.dynamics import (
    Workspace,
    aba,
    center_of_mass,
    coriolis_matrix,
    crba,
    difference,
    forward_dynamics,
    forward_kinematics,
    friction,
    generalized_momentum,
    gravity,
    integrate,
    inverse_dynamics,
    jacobian,
    joint_wrenches,
    kinetic_energy,
    link_acceleration,
    nonlinear_effects,
    passivity_torque,
    potential_energy,
    rnea,
    static_torque,
    world_to_link_force,
)
from rnea_control.kernels.kernel import kernel
from rnea_control.messages.float64_multi_array import Float64MultiArrayEncoder
from rnea_control.messages.joint_state import JointStateDecoder
from rnea_control.model import RobotModel
from rnea_control.node.control_loop import ControlLoop, LoopSettings
from rnea_control.node.statistics import LoopStatistics
from rnea_control.node.warm_up import Unsent

NOTHING = {"held": 0, "peak": 0, "page faults": 0}

# The float that carries the time lives for an instant. The smallest array takes more.
LESS_THAN_AN_ARRAY = 100


@pytest.fixture(scope="module", autouse=True)
def objects_of_other_tests_are_not_collected() -> Iterator[None]:
    """Looking through them takes most of the time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def fewer_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as it takes to see a byte for each: the benchmark makes more."""
    monkeypatch.setattr("allocation.CALLS", 2_000)


@pytest.fixture(scope="module")
def panda(panda_urdf):
    return load_quietly(panda_urdf, PANDA_JOINTS)


def calls(model: RobotModel) -> dict[str, Callable[[], object]]:
    """A call of every algorithm."""
    ws, n, links = Workspace(model), model.nv, len(model.link_names)
    q, result = model.random(np.random.default_rng(0)), np.zeros(model.nq)
    v, a = (row.copy() for row in np.random.default_rng(0).standard_normal((2, n)))
    tau, matrix, six, com = np.zeros(n), np.zeros((n, n)), np.zeros(6), np.zeros(3)
    forces, poses, J = np.ones((links, 6)), np.zeros((links, 4, 4)), np.zeros((6, n))
    wrenches = np.zeros((1 + len(model.joint_names), 6))
    Y = np.zeros((n, len(parameter_names(model))))
    link = model.link_names[-1]
    return {
        "rnea": lambda: rnea(model, ws, q, v, a, tau),
        "gravity": lambda: gravity(model, ws, q, tau),
        "nonlinear_effects": lambda: nonlinear_effects(model, ws, q, v, tau),
        "external forces": lambda: rnea(model, ws, q, v, a, tau, forces),
        "static_torque": lambda: static_torque(model, ws, q, forces, tau),
        "inverse_dynamics": lambda: inverse_dynamics(model, ws, q, v, a, tau),
        "friction": lambda: friction(model, ws, v, tau),
        "crba": lambda: crba(model, ws, q, matrix),
        "aba": lambda: aba(model, ws, q, v, a, tau),
        "forward_dynamics": lambda: forward_dynamics(model, ws, q, v, a, tau, forces),
        "coriolis_matrix": lambda: coriolis_matrix(model, ws, q, v, matrix),
        "passivity_torque": lambda: passivity_torque(model, ws, q, v, v, a, tau),
        "generalized_momentum": lambda: generalized_momentum(model, ws, q, v, a, tau),
        "joint_wrenches": lambda: joint_wrenches(model, ws, q, v, a, wrenches, forces),
        "forward_kinematics": lambda: forward_kinematics(model, ws, q, poses),
        "jacobian": lambda: jacobian(model, ws, q, link, J),
        "link_acceleration": lambda: link_acceleration(model, ws, q, v, a, link, six),
        "world_to_link_force": lambda: world_to_link_force(model, ws, q, link, six, six),
        "kinetic_energy": lambda: kinetic_energy(model, ws, q, v),
        "potential_energy": lambda: potential_energy(model, ws, q),
        "center_of_mass": lambda: center_of_mass(model, ws, q, com),
        "integrate": lambda: integrate(model, ws, q, v, result),
        "difference": lambda: difference(model, ws, q, q, tau),
        "regressor": lambda: regressor(model, ws, q, v, a, Y),
    }


TWO_LINKS = RobotModel.from_urdf_string(two_link_arm())


@pytest.mark.parametrize("name", calls(TWO_LINKS))
def test_algorithms_allocate_nothing(panda, name: str) -> None:
    counted = allocated(calls(panda)[name])
    assert counted["held"] <= 0
    assert counted["page faults"] == 0
    # at most the tuple that hands the arguments on, and a number
    assert counted["peak"] < 3 * LESS_THAN_AN_ARRAY
    if name in ("rnea", "gravity", "crba", "aba", "external forces"):
        assert counted == NOTHING


def test_every_algorithm_is_called() -> None:
    assert set(rnea_control.dynamics.__all__) - {"Workspace"} <= set(calls(TWO_LINKS))


@pytest.mark.parametrize("law", ControlLaw)
def test_control_step_allocates_nothing(panda, law: ControlLaw) -> None:
    controller = Controller(panda, ControllerSettings(Gains.uniform(7, 400.0, 40.0, 10.0), law))
    q, v, tau = np.zeros(7), np.zeros(7), np.zeros(7)
    controller.hold(0.0, q)
    middle = 0.5 * (panda.lower + panda.upper)
    points = [Waypoint(2.0 * (i + 1.0), middle + 0.1 * (i % 2), np.zeros(7)) for i in range(40)]
    if law != ControlLaw.gravity_compensation:
        controller.follow(0.0, points, 0.0)
    time = 0.0

    def step() -> None:
        nonlocal time
        time += 0.001
        controller.step(time, q, v, tau)

    counted = allocated(step)
    assert counted["held"] == 0
    assert counted["page faults"] == 0
    assert counted["peak"] < LESS_THAN_AN_ARRAY


@pytest.mark.parametrize("law", ControlLaw)
def test_limits_at_work_and_predictions_allocate_nothing(panda, law: ControlLaw) -> None:
    """All stages of the output at once, and torques without states."""
    safety = SafetySettings.none(7).changed(
        torque_rate_limit=np.full(7, 10.0),
        position_margin=np.full(7, 0.05),
        velocity_limit_scale=0.5,
        blend_time=1e9,
        check_jumps=True,
    )
    gains = Gains.uniform(7, 400.0, 40.0, 10.0)
    controller = Controller(panda, ControllerSettings(gains, law, 0.05, safety=safety))
    q, v, tau = panda.upper - 0.01, 0.9 * panda.velocity_limit, np.zeros(7)
    other = q - 1e-6  # positions that stand still would be refused
    controller.in_force = 1.0
    controller.start(0.0, 0.5 * (panda.lower + panda.upper))
    time = 0.0

    def step_and_predict() -> None:
        nonlocal time
        time += 0.001
        controller.step(time, q, v, tau)
        time += 0.001
        controller.step(time, other, v, tau)
        controller.predict(time, tau)

    counted = allocated(step_and_predict)
    assert (controller.at_work.max(axis=1) > 0.0).all()
    assert counted["held"] == 0
    assert counted["page faults"] == 0
    assert counted["peak"] < LESS_THAN_AN_ARRAY


@pytest.mark.parametrize("watched", [False, True])
def test_supervisor_allocates_nothing(panda, watched: bool) -> None:
    """With states and without, while it holds and while it moves."""
    controller = Controller(panda, ControllerSettings(Gains.uniform(7, 400.0, 40.0, 10.0)))
    observer = MomentumObserver(panda, 25.0, np.full(7, 1e9)) if watched else None
    supervisor = Supervisor(controller, SupervisionSettings(), observer)
    middle, v, tau = 0.5 * (panda.lower + panda.upper), np.zeros(7), np.zeros(7)
    q = middle.copy()
    supervisor.activate()
    supervisor.answer(0.0, q, v, tau)
    assert supervisor.mode is Mode.HOLDING
    time = 0.0

    def answer() -> None:
        nonlocal time
        time += 0.001
        supervisor.answer(time, q, v, tau)

    def answer_gap() -> None:
        nonlocal time
        time += 0.001
        supervisor.answer_gap(time, 0.05, tau)

    def asserted(function: Callable[[], None]) -> None:
        counted = allocated(function)
        assert counted["held"] == 0
        assert counted["page faults"] == 0
        assert counted["peak"] < 2 * LESS_THAN_AN_ARRAY

    asserted(answer)
    request = MotionRequest(Waypoints.of([Waypoint(1e6, middle + 0.1, np.zeros(7))], 7))
    supervisor.adopt(controller.plan(request, supervisor.situation(time), 0.0))
    asserted(answer)
    assert supervisor.mode is Mode.MOVING
    asserted(answer_gap)
    supervisor.lose("no states")
    asserted(answer_gap)
    assert supervisor.mode is Mode.BLIND
    supervisor.answer(time, q, v, tau)
    supervisor.emergency_stop(True)
    asserted(answer)
    assert supervisor.mode is Mode.EMERGENCY_STOP


def test_a_kernel_that_allocates_does_not_compile() -> None:
    with pytest.raises(
        TypingError, match="Only accept returning of array passed into the function"
    ):

        @kernel("f8(i8)")
        def allocates(n: int) -> float:
            return np.zeros(n).sum()


def test_tick_from_bytes_to_bytes_allocates_nothing(panda) -> None:
    """All that a tick makes is the bytes of its command; those that carry the state in are the
    other object that rclpy needs."""
    decoder, command = JointStateDecoder(PANDA_JOINTS), Float64MultiArrayEncoder(7)
    controller = Controller(panda, ControllerSettings(Gains.uniform(7, 400.0, 40.0, 10.0)))
    state = JointState(
        name=list(PANDA_JOINTS), position=array("d", [0.1, 0.1, 0.1, -1.0, 0.1, 1.0, 0.1])
    )
    state.velocity = array("d", [0.0] * 7)
    state.header.stamp.sec = 1000
    data = serialize_message(state)
    controller.hold(0.0, np.full(7, 0.1))
    statistics = LoopStatistics()
    sent = command.encode()

    def tick() -> None:
        nonlocal sent
        stamp = decoder.decode(data)
        controller.step(1e-9 * stamp, decoder.q, decoder.v, command.values)
        sent = command.encode()
        statistics.record(1e-5, 1e-4, 1e-6, 1e-3)

    before = numba_allocations()
    counted = allocated(tick)
    assert numba_allocations() == before
    assert counted["held"] <= sys.getsizeof(sent)  # the last command
    assert counted["page faults"] == 0
    # The slice of the decoder's memory that a state is copied to lives for an instant.
    assert counted["peak"] < sys.getsizeof(sent) + 4 * LESS_THAN_AN_ARRAY
    allocating(1)
    assert numba_allocations() != before  # the count does count


def test_whole_tick_of_the_loop_holds_nothing(panda) -> None:
    """With lock, clocks, checks and statistics: a count and a stamp, which are Python's numbers."""
    controller = Controller(panda, ControllerSettings(Gains.uniform(7, 400.0, 40.0, 10.0)))
    loop = ControlLoop(
        controller,
        Unsent(7),
        Handover(HandoverTimes.of_controller()),
        LoopSettings(SupervisionSettings(1e9, 1e9)),
        get_logger("test"),
        ROSClock(),
    )
    state = JointState(
        name=list(PANDA_JOINTS), position=array("d", [0.1, 0.1, 0.1, -1.0, 0.1, 1.0, 0.1])
    )
    state.velocity = array("d", [0.0] * 7)
    state.header.stamp.sec = 1000
    data, count = serialize_message(state), 0
    loop.start()

    def tick() -> None:
        nonlocal count
        count += 1
        loop.tick(data, count)

    counted = allocated(tick)
    assert loop.statistics.ticks == count and not loop.fault
    assert counted["held"] <= LESS_THAN_AN_ARRAY
    assert counted["page faults"] == 0


@numba.njit
def allocating(n: int) -> float:
    return np.zeros(n).sum()


def numba_allocations() -> tuple[int, int]:
    """How many pieces of memory, and handles of arrays, Numba's memory manager has handed out."""
    rtsys.initialize(cpu_target.target_context)
    _nrt_python.memsys_enable_stats()
    statistics = rtsys.get_allocation_stats()
    return statistics.alloc, statistics.mi_alloc
