"""What is looked after beside the ticks: the description on its topic, and the delay of torques."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
import rclpy
from dds import ros, wait_for
from node_bench import JOINTS, MODEL, LoopBench, joint_state
from plant import Plant
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from rclpy.serialization import serialize_message
from robots import two_link_arm
from std_msgs.msg import String

from rnea_control.control import (
    ControllerSettings,
    Event,
    Gains,
    MotionRequest,
    SafetySettings,
    Waypoint,
    Waypoints,
)
from rnea_control.control.activation_check import Verdict
from rnea_control.dynamics import Workspace, gravity
from rnea_control.node.delay_watch import FEWEST, DelayWatch
from rnea_control.node.description_watch import DescriptionWatch
from rnea_control.ros.conventions import LATCHED
from rnea_control.ros.guarded_node import GuardedNode

OWN = two_link_arm()
HEAVY = OWN.replace('mass value="2.0"', 'mass value="3.0"')


class Managed(GuardedNode, LifecycleNode):
    def __init__(self) -> None:
        super().__init__("watching", enable_rosout=False)


class Watched:
    """A watch, and a publisher of descriptions.

    Attributes:
        told: the difference at each change.
    """

    def __init__(self, undo: ExitStack, in_force: str = OWN) -> None:
        self.node, self.peer = Managed(), rclpy.create_node("peer")
        undo.callback(self.node.destroy_node)
        undo.callback(self.peer.destroy_node)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self.publisher = self.peer.create_publisher(String, "robot_description", LATCHED)
        self.told: list[str] = []
        self.watch = DescriptionWatch(self.node, in_force, self._keep, undo)

    def _keep(self) -> None:
        self.told.append(self.watch.difference)

    def publish(self, text: str) -> None:
        self.publisher.publish(String(data=text))

    def spin(self) -> None:
        self._executor.spin_once(timeout_sec=0.01)


@pytest.fixture
def watched() -> Iterator[Watched]:
    with ros(67), ExitStack() as undo:
        yield Watched(undo)


def test_other_description_is_told_until_the_own_one_is_back(watched: Watched) -> None:
    watched.publish(OWN)
    for _ in range(20):
        watched.spin()
    assert watched.told == []
    watched.publish(HEAVY)
    wait_for(lambda: watched.told, watched.spin)
    (words,) = watched.told
    assert words == watched.watch.difference
    assert words.startswith(
        "the topic robot_description has another robot than the one in force: they differ in poses"
    )
    assert "(4.5 and 5.5 kg in total)" in words
    assert words.endswith("Clean up, configure and activate the controller to take it")
    watched.publish(HEAVY + "\n")  # no news
    watched.publish(OWN)
    wait_for(lambda: len(watched.told) > 1, watched.spin)
    assert watched.told == [words, ""]


def test_description_in_a_parameter_is_what_its_user_wants() -> None:
    with ros(67), ExitStack() as undo:
        watched = Watched(undo, in_force="")
        assert watched.node.count_subscribers("robot_description") == 0
        watched.watch._hear(b"")  # nothing that a middleware may deliver raises
        assert watched.told == []


def test_message_that_is_none_is_refused(watched: Watched, capfd) -> None:
    watched.watch._hear(b"\x00\x01\x00\x00\xff\xff\xff\xff")
    watched.watch._hear(bytes(20_000_001))
    assert watched.told == [] and watched.watch.difference == ""
    said = capfd.readouterr()
    assert "a robot description of 20000001 bytes is ignored" in said.err + said.out


# The delay of the torques.

PERIOD = 0.001
START, GOAL = np.array([0.3, -0.4]), np.array([1.3, 0.8])


class LateArm:
    """A loop whose commands act some periods late, and the watch of that."""

    def __init__(self, late: int = 0, reports_efforts: bool = False, **settings: object) -> None:
        safety = replace(SafetySettings.none(2))
        gains = Gains.uniform(2, 100.0, 20.0)
        self.bench = LoopBench(ControllerSettings(gains, safety=safety, **settings))
        self.loop = self.bench.loop
        self.plant, self._k = Plant(MODEL, START), 0
        held = gravity(MODEL, Workspace(MODEL), START, np.zeros(2))
        self._coming, self._reports = deque([held] * late), reports_efforts
        self._applied = held
        self.loop.start()
        self.watch = DelayWatch(self.loop)

    def run(self, seconds: float) -> LateArm:
        for _ in range(round(seconds / PERIOD)):
            message = joint_state(10**12 + self._k * 10**6, self.plant.q, self.plant.v, JOINTS)
            if self._reports:
                message.effort.extend(self._applied)
            self.loop.ticks.tick(serialize_message(message))
            self._coming.append(self.bench.command.sent[-1])
            self._applied = self._coming.popleft()
            self.plant.step(self._applied, PERIOD)
            self._k += 1
        return self

    def follow(self) -> None:
        controller, zero = self.loop.controller, np.zeros(2)
        there, back = Waypoint(0.6, GOAL, zero, zero), Waypoint(1.2, START, zero, zero)
        request = MotionRequest(Waypoints.of([there, back], 2))
        situation = self.loop.supervisor.situation(controller.time)
        assert self.loop.supervisor.adopt(controller.plan(request, situation, 0.0))


@pytest.mark.parametrize("late", [1, 10])
def test_motion_tells_the_delay_after_some_looks(late: int) -> None:
    arm = LateArm(late).run(0.2)
    arm.watch.look()
    assert math.isnan(arm.watch.delay) and arm.watch.finding == ""  # it rests
    arm.follow()
    for k in range(FEWEST):
        assert math.isnan(arm.watch.delay), k
        arm.run(0.25)
        arm.watch.look()
    assert 1e3 * arm.watch.delay == pytest.approx(late, abs=0.5)
    assert arm.loop.supervisor.seen_delay == arm.watch.delay
    expected = "torques act 10 ms after the states that they answer, and dead_time is 0 ms"
    assert arm.watch.finding.startswith(expected if late == 10 else "")
    assert bool(arm.watch.finding) == (late == 10)


def test_delay_that_is_known_is_no_finding() -> None:
    arm = LateArm(10, dead_time=0.01).run(0.2)
    arm.follow()
    for _ in range(FEWEST):
        arm.run(0.25)
        arm.watch.look()
    assert 1e3 * arm.watch.delay == pytest.approx(10.0, abs=1.0) and arm.watch.finding == ""


def test_until_the_arm_moves_the_check_at_activation_tells() -> None:
    arm = LateArm().run(0.1)
    arm.loop.supervisor.verdict = Verdict(False, "", None, np.ones(2, dtype=bool), 0.02)
    arm.watch.look()
    assert arm.watch.delay == 0.02 == arm.loop.supervisor.seen_delay
    assert arm.watch.finding.startswith("torques act 20 ms after")


def test_reported_efforts_tell_the_age_of_the_torques() -> None:
    """By the steady clock, from the command to the state with it."""
    arm = LateArm(3, reports_efforts=True).run(0.1)
    arm.loop.supervisor.verdict = Verdict(False, "", None, np.ones(2, dtype=bool), 7.0)
    for _ in range(FEWEST + 1):  # commands are kept from when efforts are seen
        assert arm.watch.delay == 7.0 or math.isnan(arm.watch.delay)  # one age tells nothing
        arm.watch.look()
        arm.run(0.1)
    arm.watch.look()
    assert 0.0 < arm.watch.delay < 7.0
    assert arm.loop.supervisor.seen_delay == arm.watch.delay


def test_torques_of_the_sentinel_tell_no_age_of_the_own_ones() -> None:
    arm = LateArm(3, reports_efforts=True).run(0.1)
    for _ in range(FEWEST + 1):
        arm.watch.look()
        arm.run(0.1)
    assert math.isfinite(arm.watch.delay)
    arm.loop.supervisor.happen(Event.TAKEN_OVER, "the sentinel has revoked it")
    arm.watch.look()
    assert math.isnan(arm.watch.delay) and math.isnan(arm.loop.supervisor.seen_delay)
