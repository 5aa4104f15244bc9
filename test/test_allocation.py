"""Nothing is allocated in the algorithms and in the control step."""

from __future__ import annotations

import gc
import inspect
import itertools
import struct
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from controllers import JOINT_SPACE
from default_safety import default_safety
from measuring import allocated
from numba.core.errors import TypingError
from rclpy.clock import ROSClock
from rclpy.logging import get_logger
from rclpy.serialization import serialize_message
from robots import PANDA_JOINTS
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from task_arm import READY, TaskArm

from rnea_control import control, dynamics
from rnea_control.analysis import parameter_names, regressor
from rnea_control.compiled import compile_robot
from rnea_control.control import Controller, Event, Mode, laws, stream_intake
from rnea_control.dynamics import Workspace
from rnea_control.dynamics.workspace import SHAPES
from rnea_control.jit.kernel import kernel
from rnea_control.loop import other_inputs
from rnea_control.loop.handover import Handover, HandoverTimes
from rnea_control.loop.loop_state import LoopState
from rnea_control.loop.other_inputs import (
    JOG,
    POSITIONS,
    TARGET_JOINT,
    OtherInputs,
    hear_targets_once,
)
from rnea_control.loop.state_intake import StateIntake
from rnea_control.messages.cdr import HEADER
from rnea_control.model import RobotModel
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.python_ticks import LoopSettings
from rnea_control.ros.effort_command import Command
from rnea_control.ros.rcl_calls import GID_SIZE, Taken

pytestmark = pytest.mark.one_thread

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
    monkeypatch.setattr("measuring.CALLS", 2_000)


def calls(model: RobotModel) -> dict[str, Callable[[], object]]:
    ws, rng, n, links = Workspace(model), np.random.default_rng(0), model.nv, len(model.link_names)
    q = model.random(rng)
    v, a, v_r, a_r = (row.copy() for row in rng.standard_normal((4, n)))
    sizes = {"nq": model.nq, "nv": n, "links": links, "wrenches": 1 + len(model.joint_names)}
    sizes["parameters"] = len(parameter_names(model))
    given: dict[str, object] = {
        name: np.zeros([sizes.get(size, size) for size in shape]) for name, shape in SHAPES.items()
    }
    given |= {"q": q, "q0": q, "q1": q, "v": v, "a": a, "v_r": v_r, "a_r": a_r}
    given |= {"link": model.link_names[-1], "external_forces": np.ones((links, 6))}
    found = {}
    for name in {*dynamics.__all__, "regressor"} - {"Workspace"}:
        algorithm = regressor if name == "regressor" else getattr(dynamics, name)
        names = list(inspect.signature(algorithm).parameters)[2:]
        arguments = [model, ws, *(given[each] for each in names)]
        found[name] = partial(algorithm, *arguments)
        if names[-1] == "external_forces":
            found[name] = partial(algorithm, *arguments[:-1])
            found[f"{name} with forces"] = partial(algorithm, *arguments)
    return found


def assert_keeps_nothing(function: Callable[[], object], peak: int, held: int = 0) -> None:
    counted = allocated(function)
    assert counted["held"] <= held and counted["page faults"] == 0
    assert counted["peak"] < peak


def test_algorithms_allocate_nothing(panda) -> None:
    for name, call in calls(panda).items():
        # at most the tuple that hands the arguments on, and a number
        assert_keeps_nothing(call, 3 * LESS_THAN_AN_ARRAY)
        if name in ("rnea", "gravity", "crba", "aba", "rnea with forces", "regressor"):
            assert allocated(call) == NOTHING, name


def test_compiled_robot_allocates_nothing(panda) -> None:
    compiled, rng = compile_robot(panda), np.random.default_rng(0)
    q, v, a, tau = panda.random(rng), *rng.standard_normal((3, 7))
    vector, Y = np.zeros(7), np.zeros((7, len(parameter_names(panda))))
    assert_keeps_nothing(lambda: compiled.rnea(q, v, a, tau), LESS_THAN_AN_ARRAY)
    for algorithm, *arrays in (
        ("rnea", q, v, a, vector),
        ("gravity", q, vector),
        ("nonlinear_effects", q, v, vector),
        ("crba", q, np.zeros((7, 7))),
        ("aba", q, v, tau, vector),
        ("rnea_with_external_forces", q, v, a, np.ones((len(panda.link_names), 6)), vector),
        ("regressor", q, v, a, Y),
    ):
        assert_keeps_nothing(compiled.bind(algorithm, *arrays), LESS_THAN_AN_ARRAY)


def controller_of(panda: RobotModel, **settings: object) -> Controller:
    gains = control.Gains.uniform(7, 400.0, 40.0, 10.0)
    return Controller(panda, control.ControllerSettings(gains, **settings))


@pytest.mark.parametrize("law", JOINT_SPACE)
def test_limits_at_work_and_predictions_allocate_nothing(panda, law: control.ControlLaw) -> None:
    """All stages of the output at once, and torques without states."""
    limits = {"torque_rate_limit": np.full(7, 10.0), "position_margin": np.full(7, 0.05)}
    others = {"velocity_limit_scale": 0.5, "blend_time": 1e9, "check_jumps": True}
    safety = replace(control.SafetySettings.none(7), **limits, **others)
    gains = control.Gains.uniform(7, 400.0, 40.0, 10.0)
    settings = control.ControllerSettings(gains, law, 0.05, safety=safety)
    controller = Controller(panda, settings)
    q, v, tau = panda.upper - 0.01, 0.9 * panda.velocity_limit, np.zeros(7)
    other = q - 1e-6  # positions that stand still would be refused
    controller.in_force = 1.0
    controller.start(0.0, 0.5 * (panda.lower + panda.upper))
    ticks = itertools.count(1)

    def step_and_predict() -> None:
        controller.step(1e-3 * next(ticks), q, v, tau)
        time = 1e-3 * next(ticks)
        controller.step(time, other, v, tau)
        controller.predict(time, tau)

    assert_keeps_nothing(step_and_predict, LESS_THAN_AN_ARRAY)
    assert (controller.at_work.max(axis=1) > 0.0).all()


@pytest.mark.parametrize("law", laws.TASK_LAWS)
def test_tip_that_follows_poses_allocates_nothing(law: control.ControlLaw) -> None:
    """With a message in each tick, and predictions."""
    arm = TaskArm(law).activate().hold_pose(0.1)
    controller, q, v, tau = arm.controller, arm.plant.q, arm.plant.v, np.zeros(7)
    ticks, messages = itertools.count(1), itertools.count()
    pose = arm.others.arrays.message.copy()
    intake, begin = arm._states.intake, arm.t

    def hear_and_step() -> None:
        t = begin + 1e-3 * next(ticks)
        intake.time = t
        arm.others.arrays.message[-1] = next(messages) % 2
        heard = hear_targets_once(
            *(arm.loop.argument, arm.others.arrays, controller.arrays, intake.argument),
            *(other_inputs.TARGET_POSE, len(pose), (1, 2), -1, 0.0),
        )
        assert heard == stream_intake.TAKEN
        controller.step(t, q, v, tau)
        controller.predict(t + 5e-4, tau)

    # and the tuple that hands the arguments on
    assert_keeps_nothing(hear_and_step, 2 * LESS_THAN_AN_ARRAY)
    assert arm.controller.streams


def test_stiffness_of_the_tip_allocates_nothing() -> None:
    """With a whole matrix in each tick."""
    arm = TaskArm().activate().hold_pose(0.1)
    K = np.diag([200.0, 300.0, 400.0, 10.0, 15.0, 20.0]).ravel().tolist()
    assert arm.hear(other_inputs.TARGET_STIFFNESS, Float64MultiArray(data=K), (1, 2)) == 0
    arrays = arm.loop.argument, arm.others.arrays, arm.controller.arrays
    message = other_inputs.TARGET_STIFFNESS, len(serialize_message(Float64MultiArray(data=K)))

    def hear() -> None:
        heard = hear_targets_once(*arrays, arm._states.intake.argument, *message, (1, 2), -1, 0.0)
        assert heard == stream_intake.TAKEN

    assert_keeps_nothing(hear, 2 * LESS_THAN_AN_ARRAY)


def test_planned_gains_allocate_nothing(panda: RobotModel) -> None:
    """With a message in each tick, and predictions."""
    pytest.importorskip("linear_feedback_controller_msgs", reason="the ROS 2 wheels lack it")
    from planned_arm import PLANNER, PlannedArm  # noqa: PLC0415, needs the message

    arm = PlannedArm(model=panda, q=READY).activate().hold(0.1)
    controller, q, v, tau = arm.controller, arm.plant.q, arm.plant.v, np.zeros(7)
    ticks = itertools.count(1)
    intake, begin, size = arm.intake, arm.t, arm.size

    def hear_and_step() -> None:
        t = begin + 1e-3 * next(ticks)
        intake.time = t
        heard = hear_targets_once(
            *(arm.loop.argument, arm.others.arrays, controller.arrays, intake.argument),
            *(other_inputs.CONTROL, size, PLANNER, -1, 0.0),
        )
        assert heard == stream_intake.TAKEN
        controller.step(t, q, v, tau)
        controller.predict(t + 5e-4, tau)

    # and the tuple that hands the arguments on
    assert_keeps_nothing(hear_and_step, 2 * LESS_THAN_AN_ARRAY)
    assert controller.streams


@pytest.mark.parametrize("watched", [False, True])
def test_supervisor_allocates_nothing(panda, watched: bool) -> None:
    bounds = {"safety": default_safety(panda)} if watched else {}
    controller = controller_of(panda, **bounds)
    supervisor = control.Supervisor(controller, control.SupervisionSettings())
    middle, v, tau = 0.5 * (panda.lower + panda.upper), np.zeros(7), np.zeros(7)
    q = middle.copy()
    supervisor.activate()
    supervisor.answer(0.0, q, v, tau)
    assert supervisor.mode is Mode.HOLDING
    ticks = itertools.count(1)

    def answer() -> None:
        supervisor.answer(1e-3 * next(ticks), q, v, tau)

    def answer_gap() -> None:
        supervisor.answer_gap(1e-3 * next(ticks), tau)

    asserted = partial(assert_keeps_nothing, peak=2 * LESS_THAN_AN_ARRAY)
    asserted(answer)
    points = [control.Waypoint(2.0 * (i + 1.0), middle + 1e-3 * (i % 2), v) for i in range(100)]
    request = control.MotionRequest(control.Waypoints.of(points, 7))
    supervisor.adopt(controller.plan(request, supervisor.situation(1e-3 * next(ticks)), 0.0))
    asserted(answer)
    assert supervisor.mode is Mode.MOVING
    asserted(answer_gap)
    supervisor.happen(Event.LOST, "no states")
    asserted(answer_gap)
    assert supervisor.mode is Mode.BLIND
    answer()
    supervisor.emergency_stop(True)
    asserted(answer)
    assert supervisor.mode is Mode.EMERGENCY_STOP


def test_a_kernel_that_allocates_does_not_compile() -> None:
    with pytest.raises(TypingError, match="Only accept returning of array passed"):

        @kernel("f8(i8)")
        def allocates(n: int) -> float:
            return np.zeros(n).sum()


def state_message() -> bytes:
    q = array("d", [0.1, 0.1, 0.1, -1.0, 0.1, 1.0, 0.1])
    state = JointState(name=list(PANDA_JOINTS), position=q)
    state.velocity = array("d", [0.0] * 7)
    state.header.stamp.sec = 1000
    return serialize_message(state)


def test_whole_tick_of_the_loop_holds_nothing(panda) -> None:
    """With decoder, lock, clocks, checks, statistics and encoder: a count and a stamp, which are
    Python's numbers."""
    controller = controller_of(panda)
    handover = Handover(HandoverTimes.of_controller())
    settings = LoopSettings(1e9, 1e9)
    rest = handover, settings, get_logger("test"), ROSClock()
    loop = ControlLoop(controller, Command(7), *rest)
    data, count = state_message(), 0
    loop.start()

    def tick() -> None:
        nonlocal count
        count += 1
        loop.ticks.tick(data, count)

    assert_keeps_nothing(tick, 2_000, LESS_THAN_AN_ARRAY)
    assert loop.arm_loop.statistics.ticks == count and not loop.fault


def targets(kind: int, sign: float) -> bytes:
    """A message of a stream, with all its fields: a target, or a velocity with this sign."""
    values = np.array([0.1, 0.1, 0.1, -1.0, 0.1, 1.0, 0.1]) + 0.05 * sign
    if kind == POSITIONS:
        return serialize_message(Float64MultiArray(data=values.tolist()))
    message = JointState(name=list(PANDA_JOINTS), velocity=[0.1 * sign] * 7)
    message.header.stamp.sec = 1000
    if kind == TARGET_JOINT:  # the bytes of a JointJog with velocities begin as those without
        message.position, message.effort = values.tolist(), [0.1 * sign] * 7
    return serialize_message(message)


@pytest.mark.parametrize("kind", [TARGET_JOINT, POSITIONS, JOG])
def test_a_step_in_a_stream_and_its_decoder_allocate_nothing(panda, kind: int) -> None:
    controller, loop, others = (
        controller_of(panda),
        LoopState(),
        OtherInputs(PANDA_JOINTS, panda.link_names),
    )
    intake = StateIntake(list(PANDA_JOINTS), 0.1).intake
    q, v, tau = 0.5 * (panda.lower + panda.upper), np.zeros(7), np.zeros(7)
    q[:] = [0.1, 0.1, 0.1, -1.0, 0.1, 1.0, 0.1]
    controller.start(0.0, q)
    controller.arm.takes_streams = True
    messages = [np.frombuffer(targets(kind, sign), np.uint8) for sign in (1.0, -1.0)]
    ticks = itertools.count(1)
    buffers = [(others.arrays.message[: len(each)], each) for each in messages]
    arrays = loop.argument, others.arrays, controller.arrays, intake.argument
    rest = kind, len(messages[0]), (1, 2), -1, 0.0

    def tick() -> None:
        count = next(ticks)
        intake.time = 1e-3 * count
        into, message = buffers[count // 50 % 2]
        into[:] = message
        hear_targets_once(*arrays, *rest)
        controller.step(intake.time, q, v, tau)

    assert_keeps_nothing(tick, 4 * LESS_THAN_AN_ARRAY)
    assert others.stream.taken == next(ticks) - 1 and controller.streams
    assert np.abs(controller.desired[1]).min() > 0.0


@pytest.mark.parametrize("kind", [TARGET_JOINT, POSITIONS, JOG])
def test_whole_tick_in_a_stream_holds_nothing(panda, kind: int) -> None:
    controller = controller_of(panda)
    rest = Handover(HandoverTimes.of_controller()), LoopSettings(1e9, 1e9)
    loop = ControlLoop(controller, Command(7), *rest, get_logger("test"), ROSClock())
    loop.arm_loop.others.arrays.kinds[0] = kind
    data, count = bytearray(state_message()), 0
    beside = tuple((1, Taken(targets(kind, sign), 1, bytes(GID_SIZE))) for sign in (1.0, -1.0))
    loop.start()

    def tick() -> None:
        nonlocal count
        count += 1
        loop.ticks.hear_beside((beside[count // 50 % 2],))
        struct.pack_into("<iI", data, HEADER, *divmod(1_000 * 10**9 + 10**6 * count, 10**9))
        loop.ticks.tick(bytes(data), count)

    tick()
    loop.supervisor.resume()
    assert_keeps_nothing(tick, 3_000, LESS_THAN_AN_ARRAY)
    assert loop.arm_loop.others.stream.taken > 0.9 * count and controller.streams
    assert np.abs(controller.desired[1]).min() > 0.0
