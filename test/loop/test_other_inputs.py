"""Targets of streams in the loop: while an emergency stop was not read, or the interpreter stands
still, none begins; bytes that are no targets move no arm."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from supervised_arm import START, SupervisedArm
from task_arm import TCP, TaskArm

from rnea_control.control import ControlLaw, stream_intake
from rnea_control.control.pose_settings_intake import NO_STIFFNESS, TOO_STIFF
from rnea_control.loop.loop_state import LoopState
from rnea_control.loop.other_inputs import (
    CONTROL,
    JOG,
    POSITIONS,
    TARGET_JOINT,
    TARGET_POSE,
    TARGET_STIFFNESS,
    TARGET_WRENCH,
    TWIST,
    OtherInputs,
    hear_targets_once,
)
from rnea_control.loop.state_intake import StateIntake
from rnea_control.messages.feedback_control import TOO_LARGE
from rnea_control.messages.joint_targets import (
    NOT_FINITE,
    UNKNOWN_JOINT,
    UNREADABLE,
    WRONG_LENGTH,
)
from rnea_control.messages.tip_targets import NO_ORIENTATION, UNKNOWN_FRAME

NAMES = ["shoulder", "elbow"]
LINKS = ["base", "upper_arm"]
CLOCK = -1  # stamps are of a simulation


def send(arm: SupervisedArm, loop: LoopState, others: OtherInputs) -> int:
    """A target near the arm, as from a process."""
    states = StateIntake(NAMES, 0.1)
    states.intake.time = arm.t
    message = serialize_message(JointState(name=NAMES, position=list(START + 0.1)))
    others.arrays.message[: len(message)] = np.frombuffer(message, np.uint8)
    return hear_targets_once(
        *(loop.argument, others.arrays, arm.controller.arrays, states.intake.argument),
        *(TARGET_JOINT, len(message), (1, 2), CLOCK, 0.0),
    )


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({}, stream_intake.TAKEN),
        ({"hangs": True}, stream_intake.NOT_NOW),
        ({"stops_received": 3, "stops_read": 2}, stream_intake.NOT_NOW),
        ({"stops_received": 3, "stops_read": 3}, stream_intake.TAKEN),
    ],
)
def test_stream_begins_only_where_python_has_seen_all(fields: dict, result: int) -> None:
    arm = SupervisedArm().activate()
    loop = LoopState()
    for name, value in fields.items():
        setattr(loop, name, value)
    assert send(arm, loop, OtherInputs(NAMES, LINKS)) == result
    assert arm.controller.streams == (result == stream_intake.TAKEN)


def test_stream_goes_on_beside_a_publisher_of_released_stops() -> None:
    """A stop that is pressed ends it at once."""
    arm, loop, others = SupervisedArm().activate(), LoopState(), OtherInputs(NAMES, LINKS)
    assert send(arm, loop, others) == stream_intake.TAKEN
    loop.stops_received = 1
    assert send(arm, loop, others) == stream_intake.TAKEN
    arm.supervisor.emergency_stop(True)
    assert send(arm, loop, others) == stream_intake.NOT_NOW
    loop.stops_read = 1
    assert send(arm, loop, others) == stream_intake.NOT_NOW and not arm.controller.streams


# Counts and lengths that lie about what follows.
LIES = (0, 1, 2**16, 2**29, 2**31 - 1, 2**31, 2**32 - 8, 2**32 - 1)
RESULTS = 20  # more than there are results of the intake
FUZZED = 10_000  # messages of one topic
EXPLORED = 1_000_000  # messages of all topics

TOPICS = (TARGET_JOINT, POSITIONS, JOG)
COUNTS = {1, 2, 5, 6, 7, 9}  # counts and lengths in good messages, and no other of their words
FIRST_COUNT = {TARGET_JOINT: 12, POSITIONS: 4, JOG: 12}  # offset of the first of them


def zeroed(message: object) -> bytes:
    """A serialized message whose padding is zero: the middleware leaves there what was in memory,
    which may look like a count."""
    data = bytearray(serialize_message(message))
    for place in range(4, len(data)):
        changed = data.copy()
        changed[place] ^= 0x80
        try:
            has_no_meaning = deserialize_message(bytes(changed), type(message)) == message
        except (RuntimeError, ValueError):
            has_no_meaning = False
        if has_no_meaning:
            data[place] = 0
    return bytes(data)


class Fuzzed:
    """An arm in a stream that gets broken messages.

    Attributes:
        results: number of messages by their result.
    """

    def __init__(self, kind: int, seed: int) -> None:
        self.rng, self.kind = np.random.default_rng(seed), kind
        self.arm, self.loop, self.others = (
            SupervisedArm().activate(),
            LoopState(),
            OtherInputs(NAMES, LINKS),
        )
        self.states, self.results = StateIntake(NAMES, 0.1), np.zeros(RESULTS, int)
        self.good = [np.frombuffer(each, np.uint8) for each in self._good()]
        settings = self.arm.controller.arrays.settings[0]
        self.fastest = settings.stream_max_velocity.copy()
        self.most = settings.stream_max_acceleration.copy()
        self.lower, self.upper = settings.lower_limit.copy(), settings.upper_limit.copy()

    def _good(self) -> list[bytes]:
        """Messages of this topic."""
        position, velocity, effort = START + 0.05, np.full(2, 0.1), np.full(2, 1.0)
        if self.kind == POSITIONS:
            array, plain = (Float64MultiArray(data=position.tolist()) for _ in range(2))
            array.layout.dim = [MultiArrayDimension(label="joints", size=200, stride=200)]
            return [zeroed(array), zeroed(plain)]
        state = JointState(name=NAMES, position=position.tolist(), velocity=velocity.tolist())
        state.header.stamp.sec, state.header.frame_id = 5, "base"
        if self.kind == TARGET_JOINT:
            state.effort = effort.tolist()
            return [zeroed(state)]
        both = zeroed(state)  # a JointJog begins like a JointState
        state.position = []
        return [both, zeroed(state)]

    def broken(self) -> np.ndarray:
        """Bytes of a message with some of them changed, or any bytes."""
        rng = self.rng
        data = self.good[rng.integers(len(self.good))].copy()
        what = rng.integers(6)
        if what == 0:
            return rng.integers(0, 256, int(rng.integers(1, 200)), np.uint8)
        if what == 1:  # only the beginning is one of a message
            data[4:] = rng.integers(0, 256, len(data) - 4, np.uint8)
        if what in (2, 5):  # a lie at any word
            place = 4 * int(rng.integers(1, len(data) // 4))
            data[place : place + 4] = np.array([rng.choice(LIES)], "<u4").view(np.uint8)
        if what in (3, 5):  # bits
            for place in rng.integers(0, 8 * len(data), int(rng.integers(1, 9))):
                data[place // 8] ^= 1 << (place % 8)
        if what == 4:  # a name that does not end
            data[data == 0] = rng.integers(0, 256)
            data[:4] = 0, rng.integers(2), 0, 0
        if rng.random() < 0.3:
            data = data[: rng.integers(1, len(data) + 1)]
        return data

    def send(self, data: np.ndarray) -> int:
        """Sends bytes; what lies beyond them in the memory is another message's."""
        size, message = len(data), self.others.arrays.message
        message[:size] = data
        self.states.intake.time = self.arm.t
        result = hear_targets_once(
            *(self.loop.argument, self.others.arrays, self.arm.controller.arrays),
            *(self.states.intake.argument, self.kind, size, (1, 2), CLOCK, 0.0),
        )
        self.results[result] += 1
        return result

    def check(self) -> None:
        """The state is finite and within the bounds of a stream."""
        rows = self.arm.controller.rows
        position, velocity, acceleration = self.desired
        assert np.isfinite([position, velocity, acceleration, self.arm.tau]).all()
        assert (np.abs(velocity) <= self.fastest * (1.0 + 1e-9)).all(), velocity
        assert (np.abs(acceleration) <= 4.0 * self.most * (1.0 + 1e-9)).all(), acceleration
        assert (self.lower - 1e-6 <= position).all() and (position <= self.upper + 1e-6).all()
        for each in (rows.target, rows.target_rate, rows.target_effort, rows.desired_effort):
            assert np.isfinite(each).all(), each

    @property
    def desired(self) -> np.ndarray:
        """Position, velocity and acceleration."""
        return self.arm.controller.desired[:3]


@pytest.mark.parametrize(
    "messages", [FUZZED, pytest.param(EXPLORED // len(TOPICS), marks=pytest.mark.explores)]
)
@pytest.mark.parametrize("kind", TOPICS)
def test_broken_bytes_move_the_arm_within_its_bounds(kind: int, messages: int) -> None:
    """Bytes that happen to be targets count as targets; all others leave the state as it is."""
    fuzzed = Fuzzed(kind, messages)
    for k in range(messages):
        before = fuzzed.arm.controller.rows.copy()
        result = fuzzed.send(fuzzed.broken() if k % 10 else fuzzed.good[0])
        if result != stream_intake.TAKEN:
            np.testing.assert_array_equal(fuzzed.arm.controller.rows, before)
        if k % 20 == 0:
            fuzzed.arm.tick()
            fuzzed.check()
    assert fuzzed.results[stream_intake.TAKEN] > 0.003 * messages
    assert fuzzed.results[[UNREADABLE, WRONG_LENGTH, NOT_FINITE]].all()


@pytest.mark.parametrize("kind", TOPICS)
@pytest.mark.parametrize("lie", LIES[2:])
def test_count_or_length_that_lies_is_refused(kind: int, lie: int) -> None:
    """Counts of sequences, and lengths of names and labels."""
    fuzzed, lies = Fuzzed(kind, 0), 0
    for good in fuzzed.good:
        for place in range(FIRST_COUNT[kind], len(good) - 3, 4):
            data = good.copy()
            word = data[place : place + 4].view("<u4")
            if word[0] in COUNTS:
                word[0], lies = lie, lies + 1
                assert fuzzed.send(data) != stream_intake.TAKEN, place
    assert lies == {TARGET_JOINT: 7, POSITIONS: 4, JOG: 11}[kind]
    assert fuzzed.send(fuzzed.good[0]) == stream_intake.TAKEN


# Poses and twists of the tip.


class FuzzedTip(Fuzzed):
    """An arm whose tip gets broken poses or twists."""

    def __init__(self, kind: int, seed: int) -> None:
        self.rng, self.kind = np.random.default_rng(seed), kind
        arm = self.arm = TaskArm(ControlLaw.task_computed_torque).activate()
        self.loop, self.others = arm.loop, arm.others
        self.states, self.results = StateIntake(arm.model.joint_names, 0.1), np.zeros(RESULTS, int)
        self.start = arm.pose.copy()
        self.good = [np.frombuffer(each, np.uint8) for each in self._good()]
        settings = arm.controller.arrays.settings[0]
        self.fastest = settings.task_max_velocity.copy()
        self.most = settings.task_max_acceleration.copy()

    def _good(self) -> list[bytes]:
        messages: list[PoseStamped | TwistStamped] = []
        for frame in (self.arm.model.root_link, TCP):
            if self.kind == TARGET_POSE:
                pose = PoseStamped()
                place, turn = pose.pose.position, pose.pose.orientation
                if frame != TCP:
                    place.x, place.y, place.z = self.start[:3, 3].tolist()
                    coefficients = pin.Quaternion(self.start[:3, :3].copy()).coeffs()
                    turn.x, turn.y, turn.z, turn.w = coefficients.tolist()
                messages.append(pose)
            else:
                twist = TwistStamped()
                twist.twist.linear.y, twist.twist.angular.z = 0.01, -0.02
                messages.append(twist)
            messages[-1].header.frame_id = frame
        return [serialize_message(each) for each in messages]

    def check(self) -> None:
        """The state is finite and within the bounds of a stream."""
        rows = self.arm.controller.rows
        names = "desired_pose", "desired_twist", "desired_twist_rate", "target_pose", "target_twist"
        for name in names:
            assert np.isfinite(getattr(rows, name)).all(), name
        assert np.isfinite(self.arm.tau).all()
        for part, fastest, most in zip(
            (slice(0, 3), slice(3, 6)), self.fastest, self.most, strict=True
        ):
            assert np.linalg.norm(rows.desired_twist[part]) <= fastest * (1.0 + 1e-9)
            assert np.linalg.norm(rows.desired_twist_rate[part]) <= 4.0 * most * (1.0 + 1e-9)
        for pose in (rows.desired_pose, rows.target_pose):
            assert abs(np.linalg.norm(pose[3:]) - 1.0) < 1e-9


@pytest.mark.parametrize(
    "messages", [FUZZED, pytest.param(EXPLORED // 2, marks=pytest.mark.explores)]
)
@pytest.mark.parametrize("kind", [TARGET_POSE, TWIST])
def test_broken_poses_and_twists_move_the_tip_within_its_bounds(kind: int, messages: int) -> None:
    """As for targets of joints."""
    fuzzed = FuzzedTip(kind, messages)
    for k in range(messages):
        before = fuzzed.arm.controller.rows.copy()
        result = fuzzed.send(fuzzed.broken() if k % 10 else fuzzed.good[0])
        if result != stream_intake.TAKEN:
            np.testing.assert_array_equal(fuzzed.arm.controller.rows, before)
        if k % 20 == 0:
            fuzzed.arm.tick()
            fuzzed.check()
    assert fuzzed.results[stream_intake.TAKEN] > 0.003 * messages
    refused = [UNREADABLE, NOT_FINITE, UNKNOWN_FRAME]
    assert fuzzed.results[refused].all()
    if kind == TARGET_POSE:
        assert fuzzed.results[[NO_ORIENTATION, stream_intake.TOO_FAR]].all()


@pytest.mark.parametrize("kind", [TARGET_POSE, TWIST])
@pytest.mark.parametrize("lie", LIES)
def test_length_of_the_frame_that_lies_is_refused(kind: int, lie: int) -> None:
    fuzzed = FuzzedTip(kind, 0)
    for good in fuzzed.good:
        data = good.copy()
        data[12:16] = np.array([lie], "<u4").view(np.uint8)
        assert fuzzed.send(data) != stream_intake.TAKEN
    assert fuzzed.send(fuzzed.good[0]) == stream_intake.TAKEN


# What is set while the tip follows poses.


class FuzzedSetting(Fuzzed):
    """An arm whose tip follows a pose, and gets broken stiffnesses or wrenches beside."""

    def __init__(self, kind: int, seed: int) -> None:
        self.rng, self.kind = np.random.default_rng(seed), kind
        arm = self.arm = TaskArm(ControlLaw.cartesian_impedance).activate()
        self.loop, self.others = arm.loop, arm.others
        self.states, self.results = StateIntake(arm.model.joint_names, 0.1), np.zeros(RESULTS, int)
        self.start = arm.pose.copy()
        self.follow()
        self.most = arm.controller.arrays.settings[0].task_max_force
        diagonal = np.array([200.0, 300.0, 400.0, 10.0, 15.0, 20.0])
        messages: list[Float64MultiArray | WrenchStamped] = [
            Float64MultiArray(data=numbers.ravel().tolist())
            for numbers in (diagonal, np.diag(diagonal))
        ]
        if kind == TARGET_WRENCH:
            messages = [WrenchStamped(), WrenchStamped()]
            for message, frame in zip(messages, (arm.model.root_link, TCP), strict=True):
                message.header.frame_id = frame
                message.wrench.force.x, message.wrench.torque.z = 5.0, -0.5
        self.good = [np.frombuffer(serialize_message(each), np.uint8) for each in messages]

    def follow(self) -> None:
        """The pose goes on."""
        assert self.arm.send(self.start[:3, 3], self.start[:3, :3]) == stream_intake.TAKEN

    @property
    def set(self) -> np.ndarray:
        """What the messages set."""
        rows = self.arm.controller.rows
        return np.concatenate([rows.target_stiffness, rows.asked_wrench])

    def check(self) -> None:
        """All is finite, the stiffness is one, and the wrench is within its bounds."""
        rows = self.arm.controller.rows
        K = rows.stiffness.reshape(6, 6)
        assert np.isfinite(self.set).all() and np.isfinite(self.arm.tau).all()
        np.testing.assert_allclose(K, K.T, atol=1e-9)
        assert np.linalg.eigvalsh(K)[0] >= -1e-5 * np.trace(K)
        for part, most in zip((slice(0, 3), slice(3, 6)), self.most, strict=True):
            assert np.linalg.norm(rows.target_wrench[part]) <= most * (1.0 + 1e-9)


@pytest.mark.parametrize(
    "messages", [FUZZED // 2, pytest.param(EXPLORED // 2, marks=pytest.mark.explores)]
)
@pytest.mark.parametrize("kind", [TARGET_STIFFNESS, TARGET_WRENCH])
def test_broken_stiffnesses_and_wrenches_stay_within_their_bounds(kind: int, messages: int) -> None:
    fuzzed = FuzzedSetting(kind, messages)
    for k in range(messages):
        before = fuzzed.set
        result = fuzzed.send(fuzzed.broken() if k % 10 else fuzzed.good[0])
        if result != stream_intake.TAKEN:
            np.testing.assert_array_equal(fuzzed.set, before)
        if k % 20 == 0:
            fuzzed.arm.tick()
            fuzzed.check()
            fuzzed.follow()
    assert fuzzed.results[stream_intake.TAKEN] > 0.003 * messages
    refused = [UNREADABLE, NOT_FINITE]
    refused += [UNKNOWN_FRAME] if kind == TARGET_WRENCH else [WRONG_LENGTH, NO_STIFFNESS, TOO_STIFF]
    assert fuzzed.results[refused].all(), fuzzed.results


# A planner's gains.


class FuzzedGains(Fuzzed):
    """An arm that gets broken messages of a planner."""

    def _good(self) -> list[bytes]:
        from planned_arm import control  # noqa: PLC0415, the ROS 2 wheels lack its message

        K, x = np.array([[100.0, 0.0, 20.0, 0.0], [0.0, 120.0, 0.0, 25.0]]), START + 0.01
        named = control(K, np.ones(2), x, np.full(2, 0.1), NAMES)
        named.header.stamp.sec, named.header.frame_id = 5, "base"
        return [serialize_message(each) for each in (named, control(K, np.ones(2), x, np.ones(2)))]

    def check(self) -> None:
        """The torque is finite and within its limits, and so is what it is made of."""
        controller = self.arm.controller
        rows, tau = controller.rows, self.arm.tau
        assert np.isfinite(tau).all() and (np.abs(tau) <= controller.effort_limit).all()
        for each in (rows.target, rows.target_rate, rows.target_effort, controller.planned_gains):
            assert (np.abs(each) <= 1e12).all(), each


@pytest.mark.parametrize(
    "messages", [FUZZED, pytest.param(EXPLORED // 3, marks=pytest.mark.explores)]
)
def test_broken_gains_give_no_torque_beyond_the_limits(messages: int) -> None:
    """Bytes that happen to be a message count as one; all others leave state and gains as they are.
    The arm begins anew when such gains have thrown it."""
    pytest.importorskip("linear_feedback_controller_msgs", reason="the ROS 2 wheels lack it")
    fuzzed = FuzzedGains(CONTROL, messages)
    for k in range(messages):
        controller = fuzzed.arm.controller
        before, gains = controller.rows.copy(), controller.planned_gains.copy()
        result = fuzzed.send(fuzzed.broken() if k % 10 else fuzzed.good[0])
        if result != stream_intake.TAKEN:
            np.testing.assert_array_equal(controller.rows, before)
            np.testing.assert_array_equal(controller.planned_gains, gains)
        if k % 20 == 0:
            fuzzed.arm.tick()
            fuzzed.check()
        if k % 2000 == 0:
            fuzzed.arm = SupervisedArm().activate()
    assert fuzzed.results[stream_intake.TAKEN] > 0.003 * messages
    refused = [UNREADABLE, WRONG_LENGTH, NOT_FINITE, TOO_LARGE, UNKNOWN_JOINT]
    assert fuzzed.results[refused].all()
