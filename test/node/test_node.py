"""The controller node over real DDS: what it takes, what it refuses, and that it goes on."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator

import numpy as np
import pytest
import rclpy
from dds import ros, trajectory, wait_for
from diagnostic_msgs.msg import DiagnosticStatus
from node_bench import GOOD, GRAVITY, JOINTS, Bench, Q, gravity_torque
from rclpy.lifecycle import TransitionCallbackReturn
from robots import two_link_arm
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_control.control import Mode
from rnea_control.control.feasibility import MEASURED_STATES
from rnea_control.dynamics import Workspace, gravity
from rnea_control.loop.arm_loop import ArmLoop
from rnea_control.loop.loop_records import LoopStatistics, record
from rnea_control.model import RobotModel

ZERO, GOAL = [0.0, 0.0], [0.5, -0.5]
WAY = trajectory(JOINTS, [(1.0, GOAL, ZERO)])


@pytest.fixture(scope="module")
def shared_bench() -> Iterator[Bench]:
    """One for the file: of a participant that has seen many nodes come and go, Fast DDS sometimes
    tells another one of the same process no publishers."""
    with ros(82):
        bench = Bench(**GOOD)
        yield bench
        bench.destroy()


@pytest.fixture
def bench(shared_bench: Bench) -> Bench:
    """The file's node, activated anew."""
    shared_bench.reset()
    return shared_bench


def test_holds_the_measured_position_at_first(bench: Bench) -> None:
    assert bench.status.message == "waiting for joint_states"
    bench.refusal([math.nan, 0.0])
    assert not bench.commands  # nothing is held yet
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    np.testing.assert_allclose(bench.node.loop.controller.trajectory.at(0.0)[0], Q)
    assert bench.node.loop.arm_loop.statistics.ticks == 1


def test_jumbled_joint_order_and_foreign_joints(bench: Bench) -> None:
    bench.answer()
    expected = bench.answer([0.31, -0.42], [0.1, 0.2])
    names = ["finger", "elbow", "wheel", "shoulder"]
    q, v = [9.0, -0.42, math.nan, 0.31], [9.0, 0.2, math.nan, 0.1]
    np.testing.assert_allclose(bench.answer(q, v, names), expected, rtol=1e-12)
    names = ["elbow", "shoulder"]  # the list of names may change
    np.testing.assert_allclose(bench.answer([-0.42, 0.31], [0.2, 0.1], names), expected, rtol=1e-12)
    bench.state([0.1], [0.0], ["gripper"])  # another device's
    bench.answer()
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    assert bench.node.loop.fault == ""
    assert bench.node.loop.supervisor.bad_states == 0


def test_reason_to_wait_says_why_no_state_can_be_used(bench: Bench) -> None:
    supervisor = bench.node.loop.supervisor
    bench.state([0.1, 0.2], [0.0, 0.0], ["left/shoulder", "left/elbow"])
    words = "joint_states name left/shoulder, left/elbow, and none of `joints`, shoulder, elbow"
    wait_for(lambda: words in supervisor.reason, bench.spin)
    assert supervisor.mode is Mode.WAITING and words in bench.status.message
    assert "velocity nan" in bench.refusal([0.1, 0.2], [0.0, math.nan])
    assert "velocity nan" in supervisor.reason
    bench.answer()
    assert supervisor.mode is Mode.HOLDING


NAMELESS = ([], [], []), "lacks shoulder, elbow .* it has no names"
NAN = ([0.1, math.nan], [0.0, 0.0]), "joint 'elbow' has position nan"


@pytest.mark.parametrize(("state", "words"), [NAMELESS, NAN])
def test_bad_state_is_answered_by_the_model(bench: Bench, state: tuple, words: str) -> None:
    bench.answer()
    count = len(bench.commands)
    assert re.search(words, bench.refusal(*state))
    assert re.search(words, bench.status.message)
    wait_for(lambda: len(bench.commands) > count + 3, bench.spin)
    np.testing.assert_allclose(bench.commands[count:], np.tile(GRAVITY, (4, 1)), rtol=1e-12)
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    assert bench.status.message == "in control" and bench.values["motion"] == "holding"
    assert bench.node.loop.arm_loop.statistics.counts.missed == 0  # it was refused


def test_bad_states_do_not_let_time_run_faster(bench: Bench) -> None:
    bench.answer()
    loop, begin = bench.node.loop, time.monotonic()
    before = loop.now
    for _ in range(10):
        time.sleep(0.02)
        bench.refusal(Q, (5.0, 0.0), stamp=bench.time + 0.02)  # it stands still and moves
    assert loop.now - before == pytest.approx(0.2)
    # A torque is predicted every millisecond.
    wait_for(lambda: loop.controller.time - before >= 0.2)
    assert loop.controller.time - before < 1.2 * (time.monotonic() - begin)


def test_thresholds_of_diagnostics(bench: Bench) -> None:
    def reported(recent: LoopStatistics) -> tuple[bytes, str]:
        status = bench.node.diagnostics(recent).status[0]
        return status.level, status.message

    bench.answer()
    slow, missed = LoopStatistics(), LoopStatistics()
    for _ in range(100):
        record(slow.arrays, 0.001, 0.0, 0.0, 0.0, 0)
        record(missed.arrays, 0.0, 0.0, 0.0, 0.0, 0)
    level, message = reported(slow)
    assert level == DiagnosticStatus.WARN
    assert "tick duration 0.001 exceeds the warn threshold, 0.0005" in message
    bench.set(diagnostics__tick_duration__error=0.0009)
    assert reported(slow)[0] == DiagnosticStatus.ERROR
    missed.counts.missed = 10
    assert "missed states 0.09" in reported(missed)[1]
    missed.counts.foreign = 2
    level, message = reported(missed)
    assert level == DiagnosticStatus.ERROR
    assert "2 joint_states of another publisher were ignored" in message


def test_states_too_old_for_the_observer_are_reported(bench: Bench) -> None:
    bench.answer()
    rows, old = bench.node.loop.controller.rows, LoopStatistics()
    assert math.isnan(rows.state_age)  # the stamps are from another clock
    for _ in range(100):
        record(old.arrays, 0.0, 0.0045, 0.0, 0.0, 0)
    words = "joint_states are 0.0045 s old, more than 0.003 s"
    rows.longest_age, rows.bandwidth = 0.003, 0.0
    assert words not in bench.node.diagnostics(old).status[0].message
    rows.bandwidth = 20.0
    status = bench.node.diagnostics(old).status[0]
    assert status.level == DiagnosticStatus.WARN and words in status.message
    rows.bandwidth = 0.0


def test_two_publishers_are_named(bench: Bench) -> None:
    other = rclpy.create_node("other")
    cases = (
        (JointState, "joint_states", "is published by /other and /peer; only one"),
        (
            Float64MultiArray,
            "effort_controller/commands",
            "is published by /rnea_controller, /other (GID ",
        ),
    )
    for kind, topic, words in cases:
        publisher = other.create_publisher(kind, topic, 1)
        wait_for(lambda words=f"/{topic} {words}": words in bench.status.message, bench.spin)
        assert bench.status.level == DiagnosticStatus.ERROR
        other.destroy_publisher(publisher)
        wait_for(lambda topic=topic: bench.node.count_publishers(topic) == 1, bench.spin)
    other.destroy_node()


def test_states_of_before_activation_are_not_answered(bench: Bench) -> None:
    bench.answer()
    bench.node.trigger_deactivate()
    for _ in range(5):
        bench.state()
    for _ in range(5):
        bench.spin()
    count = len(bench.commands)
    bench.node.trigger_activate()
    for _ in range(5):
        bench.spin()
    assert len(bench.commands) == count and bench.node.loop.now is None


def test_failure_of_the_loop_leaves_the_gravity_torque(bench: Bench, monkeypatch) -> None:
    bench.answer()
    assert not np.allclose(bench.answer(v=[1.0, 1.0]), GRAVITY, rtol=1e-3)

    def broken(*arguments) -> None:
        raise RuntimeError("a fault of the program")

    monkeypatch.setattr(ArmLoop, "record", broken)
    bench.state(v=[1.0, 1.0])
    # The queue of one may drop the answer that comes right before.
    wait_for(lambda: np.allclose(bench.commands[-1], GRAVITY, rtol=1e-12, atol=0.0), bench.spin)
    assert "a fault of the program" in bench.status.message
    assert bench.status.level == DiagnosticStatus.ERROR


# Trajectories by topic, also where control_msgs is not installed.


def test_trajectory_with_a_stamp_in_another_joint_order_is_followed(bench: Bench) -> None:
    bench.answer()
    points = [(0.05, [-0.45, 0.33], ZERO)]
    assert bench.send(trajectory(["elbow", "shoulder"], points, start=bench.time + 0.02))
    for _ in range(19):
        bench.answer()
    np.testing.assert_allclose(bench.node.loop.controller.desired[0], Q)
    for _ in range(55):
        bench.answer()
    np.testing.assert_allclose(bench.node.loop.controller.desired[0], [0.33, -0.45], rtol=1e-12)


def test_gap_in_time_drops_the_motion(bench: Bench) -> None:
    bench.answer()
    assert bench.send(WAY)
    before, moved = bench.answer(), Q + 0.01
    # No time passes for the controller: the torque stays for a state.
    np.testing.assert_array_equal(bench.answer(moved, stamp=bench.time + 30.0), before)
    np.testing.assert_allclose(bench.answer(moved), gravity_torque(moved), rtol=1e-12)
    # An error of a busy machine would come first.
    bench.set(diagnostics__tick_duration__error=10.0, diagnostics__state_age__error=10.0)
    status = bench.node.diagnostics(bench.node.loop.arm_loop.statistics.copy()).status[0]
    assert "trajectory dropped 1 times" in status.message


def test_time_that_goes_back_is_ignored_for_a_while_and_drops_the_motion(bench: Bench) -> None:
    bench.answer()
    assert bench.send(WAY)
    bench.answer()
    bench.time = 5.0
    for _ in range(10):
        assert "the stamps of joint_states jumped by -" in bench.refusal()
    assert bench.node.loop.controller.motion is not None
    bench.answer()
    assert bench.node.loop.controller.motion is None
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    assert bench.node.loop.supervisor.bad_states == 11


def test_states_without_a_stamp_are_timed_by_the_node(bench: Bench) -> None:
    np.testing.assert_allclose(bench.answer(stamp=0.0), GRAVITY, rtol=1e-12)
    np.testing.assert_allclose(bench.answer(stamp=0.0), GRAVITY, rtol=1e-12)
    assert 0.0 < bench.node.loop.now < 100.0


# Parameters and lifecycle.


def test_a_sentinel_that_listens_is_no_effort_controller(bench: Bench) -> None:
    """Nor is the hidden node by which it does."""
    command = bench.node.configured.command
    hidden = rclpy.create_node("_rnea_sentinel_commands", namespace=bench.peer.get_namespace())
    subscription = hidden.create_subscription(Float64MultiArray, command.topic, print, 1)
    before = command.listeners(without=("rnea_sentinel",))
    wait_for(lambda: command.listeners() > before, bench.spin)
    wait_for(lambda: hidden.get_name() in bench.node.get_node_names(), bench.spin)
    assert command.listeners(without=("rnea_sentinel",)) == before
    hidden.destroy_subscription(subscription)
    hidden.destroy_node()


def test_parameters_while_active(bench: Bench) -> None:
    bench.answer()
    off = Q + np.array([0.01, 0.0])
    soft = bench.answer(off)
    assert bench.set(gains__shoulder__p=300) == ""  # an integer will do
    stiff = bench.answer(off)
    assert stiff[0] < soft[0] - 0.1
    assert "'gains.shoulder.p' is -1.0; it must be" in bench.set(gains__shoulder__p=-1.0)
    np.testing.assert_allclose(bench.answer(off), stiff, rtol=1e-12)
    assert "cannot change now; clean the node up" in bench.set(command_topic="elsewhere")
    assert "'gravity'" in bench.set(gravity=[0.0])
    payload = {"payload__mass": 1.5, "payload__center_of_mass": [0.1, 0.0, 0.05]}
    assert bench.set(**payload) == ""
    loaded = RobotModel.from_urdf_string(two_link_arm())
    loaded.set_payload("lower", 1.5, [0.1, 0.0, 0.05])
    expected = gravity(loaded, Workspace(loaded), Q, np.zeros(2))
    np.testing.assert_allclose(bench.answer(Q), expected, rtol=1e-9)
    refused = bench.set(payload__inertia=[1.0, 0.0, 0.0, 1.0, 0.0, 9.0])
    assert "belongs to no real body" in refused
    assert list(bench.node.get_parameter("payload.inertia").value) == [0.0] * 6
    np.testing.assert_allclose(bench.answer(Q), expected, rtol=1e-9)
    assert bench.set(payload__inertia=[0.1, 0.0, 0.0, 0.1, 0.0, 0.1]) == ""
    assert bench.set(payload__mass=0.0) == ""  # none, whatever its inertia
    np.testing.assert_allclose(bench.answer(Q), GRAVITY, rtol=1e-9)
    assert "cannot change now" in bench.set(use_sim_time=True)
    assert bench.set(use_sim_time=False) == ""  # as it is
    assert bench.set(gravity=[0.0, 0.0, 0.0]) == ""
    np.testing.assert_allclose(bench.answer(Q), 0.0, atol=1e-12)
    assert bench.set(effort_limit_scale=0.1) == ""
    assert np.abs(bench.answer(off, np.array([1.0, 0.0]))).max() == pytest.approx(10.0)
    assert "to be held, and its effort limit is 10" in bench.set(gravity=[0.0, 0.0, -9.81])
    assert "'gravity' is [0.0, 0.0, -981.0]" in bench.set(gravity=[0.0, 0.0, -981.0])
    for _ in range(MEASURED_STATES):
        bench.answer(off)
    assert "states at 1000 Hz" in bench.set(gains__elbow__d=2000.0)
    assert bench.set(gains__elbow__d=25.0) == ""


def test_control_law_changes_while_the_arm_rests(bench: Bench) -> None:
    bench.answer()
    units = ("p", 60.0), ("d", 12.0)  # Nm/rad and Nm s/rad
    gains = {f"gains__{name}__{gain}": value for name in JOINTS for gain, value in units}
    before = {key: bench.node.parameters[key.replace("__", ".")] for key in gains}
    assert bench.set(control_law="pd_gravity", **gains) == ""
    off = Q + np.array([0.01, 0.0])
    for _ in range(700):  # the torque of the law before fades out
        torque = bench.answer(off)
    np.testing.assert_allclose(torque, gravity_torque(off) - [0.6, 0.0], rtol=1e-6)
    assert bench.set(control_law="gravity_compensation") == ""
    assert bench.node.loop.supervisor.mode is Mode.GRAVITY_COMPENSATION
    assert bench.set(control_law="computed_torque", **before) == ""
    assert bench.node.loop.supervisor.mode is Mode.BRAKING


def test_mass_alone_is_a_doubtful_payload_and_its_link_may_change(bench: Bench, capfd) -> None:
    bench.answer()
    assert bench.set(payload__mass=1.5) == ""
    assert "payload.mass is 1.5 kg, with payload.center_of_mass and" in (
        log := capfd.readouterr().err
    )
    assert "a point in the origin of 'lower', with which" in log
    assert bench.set(payload__mass=1.5, gains__elbow__d=25.0) == ""
    assert bench.set(payload__center_of_mass=[0.1, 0.0, 0.05]) == ""
    assert "payload" not in capfd.readouterr().err
    for link in ("lower", "upper"):
        assert bench.set(payload__link=link) == ""
        loaded = RobotModel.from_urdf_string(two_link_arm())
        loaded.set_payload(link, 1.5, [0.1, 0.0, 0.05])
        expected = gravity(loaded, Workspace(loaded), Q, np.zeros(2))
        np.testing.assert_allclose(bench.answer(Q), expected, rtol=1e-9)
    assert "payload's link is 'tray'" in bench.set(payload__link="tray")


@pytest.mark.parametrize("active", [True, False])
def test_values_with_which_the_arm_cannot_be_braked_are_refused(bench: Bench, active) -> None:
    """With the values that are allowed; also while the controller waits, as it may start then."""
    if active:
        bench.answer()
    refused = bench.set(torque_rate_limits__shoulder=1.0)
    number, _, why = refused.removeprefix("torque_rate_limits.shoulder is 1, at least ").partition(
        " is allowed: else the arm could be braked from "
    )
    assert why.startswith("0") and "from 0.5 with the values in force" in why
    assert bench.node.get_parameter("torque_rate_limits.shoulder").value == 1e9
    assert bench.set(torque_rate_limits__shoulder=float(number)) == ""
    assert "effort_limit_scale is 0.01, at least 0." in bench.set(effort_limit_scale=0.01)
    both = {"torque_rate_limits__shoulder": 2.0, "torque_rate_limits__elbow": 2.0}
    assert bench.set(**both).count("at least") == 2
    assert "armature.elbow is 1000, at most" in bench.set(armature__elbow=1000.0)


def test_gains_with_which_a_pushed_arm_would_swing_are_refused(bench: Bench) -> None:
    """With the gains that are allowed: they ask for torques faster than these may change."""
    bench.answer()
    rates = {f"torque_rate_limits__{joint}": 5000.0 for joint in ("shoulder", "elbow")}
    assert bench.set(**rates) == ""
    stiff = {f"gains__{joint}__p": 1e4 for joint in ("shoulder", "elbow")}
    stiff |= {f"gains__{joint}__d": 200.0 for joint in ("shoulder", "elbow")}
    refused = bench.set(**stiff)
    assert "is allowed: else pushed to 0." in refused and "the arm would swing: " in refused
    allowed = re.findall(r"gains\.(\w+)\.p is 10000, at most (\d+)", refused)
    assert [joint for joint, _ in allowed] == ["shoulder", "elbow"]
    stiff |= {f"gains__{joint}__p": float(value) for joint, value in allowed}
    assert bench.set(**stiff) == ""


def test_lifecycle_there_and_back(bench: Bench) -> None:
    bench.answer()
    bench.node.trigger_deactivate()
    wait_for(lambda: len(bench.commands) == 2, bench.spin)
    np.testing.assert_allclose(bench.commands[-1], GRAVITY, rtol=1e-12)
    bench.state()
    for _ in range(10):
        bench.spin()
    assert len(bench.commands) == 2  # inactive: no command
    bench.node.trigger_activate()
    moved = Q + 0.1
    # Holds where it is now.
    np.testing.assert_allclose(bench.answer(moved), gravity_torque(moved), rtol=1e-12)
    count = len(bench.commands)
    bench.node.trigger_deactivate()
    wait_for(lambda: len(bench.commands) > count, bench.spin)
    assert bench.node.trigger_cleanup() == TransitionCallbackReturn.SUCCESS
    wait_for(lambda: not bench.states.get_subscription_count(), bench.spin)
    friction = {"offset": 0.7, "damping": 3.0, "coulomb": 0.5}
    given = {f"friction__elbow__{name}": value for name, value in friction.items()}
    assert bench.set(**given, friction_compensation=True) == ""
    assert bench.node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    bench.node.trigger_activate()
    bench.await_matches()
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-9)
    expected = GRAVITY + np.array([0.0, friction["offset"]])
    np.testing.assert_allclose(bench.answer(), expected, rtol=1e-9)
    model = bench.node.loop.controller.model
    assert (model.damping[1], model.friction[1]) == (friction["damping"], friction["coulomb"])
    bench.node.trigger_shutdown()
    wait_for(lambda: np.allclose(bench.commands[-1], expected), bench.spin)
