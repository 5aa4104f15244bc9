"""Target poses and twists of the tip over DDS: what moves the tip, who is followed, what is refused
and logged, and where the tip is published; by machine code and by ticks in Python."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pinocchio as pin
import pytest
from dds import wait_for
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from node_bench import GOOD, JOINTS
from rclpy.qos import qos_profile_sensor_data
from robots import PANDA_JOINTS, example_robot, panda
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from stream_bench import FOREIGN, IGNORED, TAKEN, StreamBench, stream_bench, tells_publishers
from task_arm import READY, TCP

from rnea_control.control import layout
from rnea_control.dynamics import Workspace, forward_kinematics, jacobian
from rnea_control.ros.conventions import SINGLE

DOMAIN = 65
ROOT = "panda_link0"


def parameters() -> dict[str, object]:
    """Those of the two-link arm, for the seven axes of the Panda."""
    found = {
        name: value for name, value in GOOD.items() if not any(joint in name for joint in JOINTS)
    }
    own = [name for name in GOOD if JOINTS[0] in name]
    found |= {name.replace(JOINTS[0], joint): GOOD[name] for name in own for joint in PANDA_JOINTS}
    found |= {f"locked_positions.panda_finger_joint{i}": 0.0 for i in (1, 2)}
    description = example_robot("panda").read_text()
    return {
        **found,
        "joints": list(PANDA_JOINTS),
        "robot_description": description,
        "task.tip": TCP,
    }


class PoseBench(StreamBench):
    """The seven-axis arm, which moves as its tip is to move.

    Attributes:
        q, v: measured positions and velocities.
    """

    def __init__(self) -> None:
        self.q, self.v = READY.copy(), np.zeros(7)
        self.model = panda()
        self._workspace = Workspace(self.model)
        super().__init__(**parameters())
        self.poses = self.sender(PoseStamped, "target_pose")
        self.twists = self.sender(TwistStamped, "rnea_controller/delta_twist_cmds")

    def message(self, q=None, v=None, names=PANDA_JOINTS, stamp=None) -> JointState:
        q, v = self.q if q is None else q, self.v if v is None else v
        return super().message(q, v, names, stamp)

    def run(self, states: int = 20) -> None:
        for _ in range(states):
            streams = self.node.loop.controller.streams
            self.v = self.rows.desired_velocity.copy() if streams else np.zeros(7)
            self.q = self.q + 1e-3 * self.v
            self.answer()

    @property
    def rows(self) -> layout.State:
        return self.node.loop.controller.rows

    def pose_of(self, q: np.ndarray) -> np.ndarray:
        poses = np.zeros((len(self.model.link_names), 4, 4))
        forward_kinematics(self.model, self._workspace, q, poses)
        return poses[self.model.link_names.index(TCP)].copy()

    @property
    def pose(self) -> np.ndarray:
        return self.pose_of(self.q)


def pose(X: np.ndarray, frame: str = ROOT) -> PoseStamped:
    message = PoseStamped()
    message.header.frame_id = frame
    place, turn = message.pose.position, message.pose.orientation
    place.x, place.y, place.z = map(float, X[:3, 3])
    turn.x, turn.y, turn.z, turn.w = map(float, pin.Quaternion(X[:3, :3].copy()).coeffs())
    return message


def shifted(X: np.ndarray, way: object, turn: object = (0.0, 0.0, 0.0)) -> np.ndarray:
    to = X.copy()
    to[:3, 3] += way
    to[:3, :3] = pin.exp3(np.array(turn)) @ X[:3, :3]
    return to


def twist(linear: object, angular: object = (0.0, 0.0, 0.0), frame: str = ROOT) -> TwistStamped:
    message = TwistStamped()
    message.header.frame_id = frame
    for part, numbers in ((message.twist.linear, linear), (message.twist.angular, angular)):
        part.x, part.y, part.z = map(float, numbers)
    return message


@pytest.fixture(
    scope="module",
    params=["machine code", pytest.param("python", marks=pytest.mark.explores)],
)
def shared_bench(request: pytest.FixtureRequest) -> Iterator[PoseBench]:
    with stream_bench(PoseBench, DOMAIN, request.param) as bench:
        yield bench


@pytest.fixture
def bench(shared_bench: PoseBench) -> PoseBench:
    """At rest, and a stream may begin."""
    shared_bench.rest()
    return shared_bench


def test_target_poses_move_the_tip_and_the_arm_holds_when_they_end(
    bench: PoseBench, capfd: pytest.CaptureFixture[str]
) -> None:
    to = shifted(bench.pose, [0.03, -0.04, 0.02], [0.0, 0.1, 0.1])
    bench.stream(lambda: pose(to), bench.poses, count=40)
    assert bench.mode == "streaming"
    np.testing.assert_allclose(bench.rows.desired_pose[:3], to[:3, 3], atol=1e-4)
    np.testing.assert_allclose(bench.pose, to, atol=2e-3)
    bench.node.configured.stream_watch.look()
    bench.rest()
    assert bench.mode == "holding" and not bench.v.any()
    name = "/peer" if tells_publishers(bench) else "a node"
    bench.until_logged(capfd, f"target_pose: the arm no longer follows the stream of {name}, whose")


def test_pose_in_the_frame_of_a_link_is_the_same_target(bench: PoseBench) -> None:
    to, X = shifted(bench.pose, [0.0, 0.02, 0.0]), bench.pose
    assert bench.send(pose(np.linalg.inv(X) @ to, TCP), bench.poses) == TAKEN
    np.testing.assert_allclose(bench.rows.target_pose[:3], to[:3, 3], atol=1e-9)


def test_twists_move_the_tip_and_it_stops_when_they_end(bench: PoseBench) -> None:
    begin = bench.pose
    bench.stream(lambda: twist([0.0, 0.1, 0.0]), bench.twists, count=20)
    assert bench.mode == "streaming"
    way = bench.pose[:3, 3] - begin[:3, 3]
    assert 0.02 < way[1] < 0.05 and np.abs(way[[0, 2]]).max() < 2e-3
    bench.rest()
    assert bench.mode == "holding" and not bench.v.any()


REFUSED = {
    "frame": (lambda X: pose(X, "camera"), "its frame_id 'camera' is not a link of the robot"),
    "no frame": (lambda X: pose(X, ""), "its frame_id '' is not a link of the robot"),
    "far": (
        lambda X: pose(shifted(X, [0.4, 0.0, 0.0])),
        "its position is 0.4 m from the desired pose, more than task.max_distance (0.3 m)",
    ),
    "turned": (
        lambda X: pose(shifted(X, [0.0, 0.0, 0.0], [0.0, 0.0, 1.6])),
        "its orientation is 1.6 rad from the desired pose, more than task.max_distance (1.5 rad)",
    ),
    "quaternion": (lambda X: PoseStamped(header=pose(X).header), ""),
    "not finite": (lambda X: pose(shifted(X, [math.nan, 0.0, 0.0])), "a value is not finite"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_targets_move_nothing_and_are_logged(
    bench: PoseBench, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    make, words = REFUSED[kind]
    begin = bench.pose
    message = make(begin)
    if kind == "quaternion":
        message.pose.position.x, message.pose.orientation.w = 0.3, 0.5
        words = "the length of its quaternion is not 1"
    bench.node.configured.stream_watch._logged.clear()
    for _ in range(3):
        assert bench.send(message, bench.poses) == IGNORED
        bench.run(5)
    assert bench.mode == "holding"
    bench.until_logged(capfd, words)
    # In a stream, too, they move nothing.
    bench.rest()
    bench.stream(lambda: pose(begin), bench.poses, count=3)
    assert bench.send(message, bench.poses) == IGNORED
    bench.run()
    np.testing.assert_allclose(bench.pose, begin, atol=1e-6)


def test_twist_in_an_unknown_frame_is_refused(
    bench: PoseBench, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.node.configured.stream_watch._logged.clear()
    assert bench.send(twist([0.1, 0.0, 0.0], frame="wrist_camera"), bench.twists) == IGNORED
    bench.until_logged(capfd, "its frame_id 'wrist_camera' is not a link of the robot")


def test_first_publisher_counts_and_the_second_is_named(
    bench: PoseBench, capfd: pytest.CaptureFixture[str]
) -> None:
    if not tells_publishers(bench):
        pytest.skip("messages do not tell their publisher here")
    begin = bench.pose
    bench.node.configured.stream_watch._logged.clear()
    for _ in range(5):
        assert bench.send(pose(begin), bench.poses) == TAKEN
        bench.run(5)
        assert bench.send(twist([0.2, 0.0, 0.0]), bench.twists) == FOREIGN
        bench.run(5)
    np.testing.assert_allclose(bench.pose, begin, atol=1e-6)
    bench.until_logged(
        capfd, "of /peer are ignored, as the arm follows target_pose of /peer; stop one of them"
    )
    bench.rest()
    assert bench.send(twist([0.0, 0.0, 0.0]), bench.twists) == TAKEN  # the first one has paused


def test_joint_targets_are_the_posture_while_a_pose_is_followed(bench: PoseBench) -> None:
    posture, begin = bench.node.loop.arm_loop.others.posture, bench.pose
    elbow = bench.q + 0.2
    message = JointState(name=list(PANDA_JOINTS), position=elbow.tolist())
    bench.stream(lambda: pose(begin), bench.poses, count=2)
    taken = posture.taken
    bench.targets.publish(message)
    wait_for(lambda: posture.taken > taken, bench.spin)
    np.testing.assert_array_equal(bench.rows.posture, elbow)
    bench.stream(lambda: pose(begin), bench.poses, count=3)
    assert bench.mode == "streaming"
    np.testing.assert_allclose(bench.pose, begin, atol=1e-6)


def test_stiffness_and_wrench_are_set_while_a_pose_is_followed(
    bench: PoseBench, capfd: pytest.CaptureFixture[str]
) -> None:
    others, begin = bench.node.loop.arm_loop.others, bench.pose
    stiffnesses = bench.sender(Float64MultiArray, "target_stiffness", qos=SINGLE)
    wrenches = bench.sender(WrenchStamped, "target_wrench")
    K = [200.0, 300.0, 400.0, 10.0, 15.0, 20.0]
    wrench = WrenchStamped()
    wrench.header.frame_id, wrench.wrench.force.z = ROOT, -4.0
    bench.node.configured.stream_watch._logged.clear()
    stiffnesses.publish(Float64MultiArray(data=K))
    wait_for(lambda: others.stiffness.ignored, bench.spin)
    bench.until_logged(
        capfd, "target_stiffness: 1 message(s) are ignored, the last one as cartesian_imp"
    )
    bench.stream(lambda: pose(begin), bench.poses, count=2)
    for message, publisher, intake in (
        (Float64MultiArray(data=K), stiffnesses, others.stiffness),
        (wrench, wrenches, others.wrench),
    ):
        taken = intake.taken
        publisher.publish(message)
        wait_for(lambda intake=intake, taken=taken: intake.taken > taken, bench.spin)
    np.testing.assert_array_equal(bench.rows.target_stiffness, np.diag(K).ravel())
    np.testing.assert_array_equal(bench.rows.asked_wrench, [0.0, 0.0, -4.0, 0.0, 0.0, 0.0])
    stiffnesses.publish(Float64MultiArray(data=[1e7] * 6))
    bench.until_logged(capfd, "the rate of joint_states and dead_time do not allow this stiffness")


@pytest.mark.parametrize("stop", ["hold", "emergency stop"])
def test_stream_that_goes_on_begins_no_motion(bench: PoseBench, stop: str) -> None:
    begin, loop = bench.pose, bench.node.loop
    bench.stream(lambda: pose(begin), bench.poses, count=2)
    bench.until_streaming()
    if stop == "hold":
        loop.call(lambda it: it.hold())
    else:
        loop.call(lambda it: it.emergency_stop(True, "button"))
        loop.call(lambda it: it.emergency_stop(False, "button"))
    for _ in range(10):
        assert bench.send(pose(shifted(begin, [0.0, 0.05, 0.0])), bench.poses) == IGNORED
        bench.run()
    np.testing.assert_allclose(bench.pose, begin, atol=1e-6)
    assert bench.mode == ("holding" if stop == "hold" else "emergency_stop")
    loop.call(lambda it: it.resume())
    assert bench.send(pose(begin), bench.poses) == TAKEN


def test_pose_and_twist_of_the_tip_are_published(bench: PoseBench) -> None:
    got: dict[str, list] = {"current_pose": [], "current_twist": []}
    for name, kind in (("current_pose", PoseStamped), ("current_twist", TwistStamped)):
        bench.peer.create_subscription(kind, name, got[name].append, qos_profile_sensor_data)
    wait_for(lambda: bench.state() or bench.spin() or all(got.values()))
    rng = np.random.default_rng(4)
    q, v = bench.q + 1e-4 * rng.standard_normal(7), 0.1 * rng.standard_normal(7)
    for values in got.values():
        values.clear()

    def heard() -> bool:
        bench.state(q, v)
        bench.spin()
        return all(len(values) > 2 for values in got.values())

    wait_for(heard)
    X, J = bench.pose_of(q), jacobian(bench.model, bench._workspace, q, TCP, np.zeros((6, 7)))
    last = got["current_pose"][-1]
    assert last.header.frame_id == ROOT and got["current_twist"][-1].header.frame_id == ROOT
    place, turn = last.pose.position, last.pose.orientation
    np.testing.assert_allclose([place.x, place.y, place.z], X[:3, 3], atol=1e-12)
    expected = pin.Quaternion(X[:3, :3].copy()).coeffs()
    assert abs(np.dot([turn.x, turn.y, turn.z, turn.w], expected)) == pytest.approx(1.0, abs=1e-12)
    linear, angular = got["current_twist"][-1].twist.linear, got["current_twist"][-1].twist.angular
    measured = [linear.x, linear.y, linear.z, angular.x, angular.y, angular.z]
    np.testing.assert_allclose(measured, J @ v, atol=1e-12)
