"""The control loop by itself: bytes in, torques out, no middleware."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from dds import trajectory
from node_bench import JOINTS, LEASE, LoopBench, Q
from rclpy.clock import ROSClock
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_control.control import (
    ControllerSettings,
    Gains,
    Mode,
    MotionRequest,
    Plan,
    SafetySettings,
    Situation,
)
from rnea_control.control.output_stage import LATENESS, LONGEST_RATE_STEP
from rnea_control.exceptions import ControllerError
from rnea_control.loop.handover import UNHEARD, HandoverTimes, Phase
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.trajectory_input import TrajectoryInput
from rnea_control.ros.rcl_calls import Taken

RATE = 1000.0
AHEAD = 0.004


def settings(rate: object = RATE, p: float = 100.0, d: float = 20.0) -> ControllerSettings:
    safety = replace(SafetySettings.none(2), torque_rate_limit=np.zeros(2) + rate)
    return ControllerSettings(Gains.uniform(2, p, d), safety=safety)


class SimulatedClock:
    """Time as a simulation tells it."""

    ros_time_is_active = True

    def now(self) -> object:
        return ROSClock().now()


def begun(sentinel: str) -> tuple[LoopBench, ControlLoop]:
    """A loop that has begun beside a sentinel in this mode, and has got a state."""
    bench = LoopBench(settings())
    bench.loop.start(sentinel)
    bench.tick(0)
    return bench, bench.loop


def command(*torque: float) -> Taken:
    return Taken(serialize_message(Float64MultiArray(data=torque)))


def hear(loop: ControlLoop, *commands: Taken) -> None:
    """Has a loop that listens hear these commands of another node."""
    waiting = deque(commands)
    loop.arm.listen(lambda: waiting.popleft() if waiting else None)
    assert loop.arm.knows_torque()


@pytest.mark.parametrize("simulated", [False, True])
def test_rate_limit_goes_by_the_steady_clock_where_a_stamp_is_ahead(simulated: bool) -> None:
    bench = LoopBench(settings(p=1e5, d=10.0), SimulatedClock() if simulated else None)
    bench.loop.start()
    for k in range(5):  # the first ticks take longer
        begin = time.monotonic()
        bench.tick(k)
    # Further from its desired position than any torque within the rate mends.
    bench.tick(4 + round(AHEAD * 1e9), [0.32, -0.42])
    passed = time.monotonic() - begin
    bench.loop.stop()
    first, second = bench.command.sent[4:6]
    changed = np.abs(second - first).max()
    assert changed > 0.0
    if simulated:
        assert changed == pytest.approx(RATE * AHEAD)
    else:
        assert changed <= RATE * (passed + LATENESS)


def test_burst_of_states_after_a_pause_changes_the_torque_by_what_one_moment_allows() -> None:
    """The hardware gets all their commands in one cycle, whatever their stamps say."""
    bench = LoopBench(settings(p=1e5, d=10.0))
    bench.loop.start()
    for k in range(5):
        bench.tick(k)
    time.sleep(0.05)
    before, begin = bench.command.sent[-1], time.monotonic()
    first = 4 + 50_000_000
    for k in range(40):
        bench.tick(first + k * 1_000_000, [0.32, -0.42])
    passed = time.monotonic() - begin
    bench.loop.stop()
    # A first state for which time has passed, and what the others take.
    changed = np.abs(bench.command.sent[5 + 39] - before).max()
    assert 0.0 < changed <= RATE * (LONGEST_RATE_STEP + passed + LATENESS)


@pytest.mark.parametrize("catch_up", [False, True])
def test_delay_by_a_pause_is_logged_once_and_caught_up_where_asked_for(
    catch_up, monkeypatch
) -> None:
    bench = LoopBench(replace(settings(1e9), more={"trajectory.catch_up": catch_up}))
    loop, controller = bench.loop, bench.loop.controller
    trajectories, warnings = TrajectoryInput(loop), []
    monkeypatch.setattr(loop.arm_loop.log.logger, "warning", warnings.append)
    loop.start()
    bench.tick(0)
    points = [(1.5, Q + 0.1, [0.0] * 2), (2.0, Q + 0.2, [0.0] * 2)]
    motion = trajectories.follow(serialize_message(trajectory(JOINTS, points)))
    due = motion.end + controller.rows.behind
    now = 0

    def answer(ticks: int) -> None:
        nonlocal now
        for _ in range(ticks):
            now += 1_000_000
            bench.tick(now, controller.trajectory.at(controller.trajectory_time)[0])

    answer(200)
    for _ in range(40):  # no states for 40 ms
        now += 1_000_000
        loop.supervisor.answer_gap(controller.time + 0.001, bench.command.torque)
    trajectories.look_for_delay()  # it lasts
    answer(900)
    late = round(1e3 * controller.pause_delay)
    assert 5 <= late <= 40
    for _ in range(3):
        trajectories.look_for_delay()
        answer(1)
    assert not controller.pause_lasts
    (log,) = warnings
    assert log.startswith(f"the trajectory is {late} ms late, as joint_states paused")
    assert log.endswith("it catches up" if catch_up else "set trajectory.catch_up to catch up")
    assert controller.motion is motion
    ends_at = motion.end + controller.rows.behind
    assert ends_at == pytest.approx(due + (0.0 if catch_up else 1e-3 * late), abs=1e-3)
    loop.stop()


def test_states_that_are_refused_spend_no_time_of_the_rate_limit() -> None:
    """Each is answered by a torque from a prediction, which may change as any other."""
    bench = LoopBench(settings())
    loop, spent = bench.loop, []
    loop.start()
    for k in range(5):
        bench.tick(k * 1_000_000)
    for k in range(5, 10):
        time.sleep(0.002)
        before = loop.arm_loop.shared.rate_at
        bench.tick(k * 1_000_000, [math.nan, -0.4])
        assert "nan" in loop.ticks.refused and loop.arm_loop.shared.rate_at == before
        begin = time.monotonic()
        assert loop.ticks.watch()
        spent.append(loop.arm_loop.shared.rate_at - before)
        assert loop.arm_loop.shared.rate_at >= begin  # a torque has left
    loop.stop()
    assert min(spent) >= 0.002


def test_time_goes_on_where_simulated_stamps_stand_still_and_the_arm_does_not() -> None:
    """As when the bridge of /clock is late; a state that is only repeated is no new one."""
    bench = LoopBench(settings(rate=200.0), SimulatedClock())
    loop = bench.loop
    loop.start()
    for k in range(60):
        bench.tick(k * 1_000_000)
    loop.attend()  # the period is known
    for k in range(60):
        bench.tick(59_000_000, [0.3, -0.4 + 0.0003 * k])
    assert loop.now == pytest.approx(0.059 + 0.059, abs=3e-3)
    first, *_, last = bench.command.sent[60:]
    assert np.abs(last - first).max() > 0.15
    bench.tick(130_000_000, [0.3, -0.382])
    assert loop.now == pytest.approx(0.130)
    for _ in range(3):
        bench.tick(130_000_000, [0.3, -0.382])
    assert loop.now == pytest.approx(0.130)


def test_arm_that_it_has_not_had_is_not_taken_in_a_pause_of_the_states() -> None:
    """A start goes by its rules, whatever comes while the controller still listens."""
    _, loop = begun("guarding")
    loop.arm_loop.states.intake.came_at -= 5.0  # seconds without a state
    assert loop.ticks.watch()
    assert loop.supervisor.mode is Mode.WAITING


def test_torque_of_the_sentinel_is_known_before_the_arm_is_taken_back() -> None:
    _, loop = begun("commanding")
    commands: deque[Taken] = deque()
    loop.arm.listen(lambda: commands.popleft() if commands else None)
    commands.append(command(1.0))  # of an arm with one joint
    assert not loop.arm.knows_torque()
    torques = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    first, *others = (command(*torque) for torque in torques)
    commands.append(first)
    assert loop.arm.knows_torque()
    commands.extend(others)  # on their way when the arm was given
    assert loop.arm.receive(time.monotonic())
    np.testing.assert_array_equal(loop.controller.in_force, torques[-1])


def test_who_commands_at_the_start_is_named_once_that_is_known() -> None:
    _, loop = begun(UNHEARD)
    hear(loop, command(1.0, 2.0))
    assert loop.supervisor.mode is Mode.GUARDED
    assert loop.supervisor.reason.startswith(
        "another node commands the arm; the controller takes over"
    )
    loop.arm.hear_sentinel("commanding")
    assert loop.supervisor.reason.startswith("the sentinel commands the arm; ~/resume")
    assert len(loop.changes) == 3  # its first mode, and these two


def test_silence_that_nobody_could_hear_gives_no_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = LoopBench(settings())
    loop, now = bench.loop, [time.monotonic()]
    loop.arm_loop.handover.times = HandoverTimes.of_controller()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    loop.start(Phase.commanding.value)

    def has_arm_later() -> bool:
        for _ in range(300):
            now[0] += 0.001
            bench.tick(round(now[0] * 1e9))
        return loop.arm_loop.handover.commanding

    assert not has_arm_later()  # the executor has not begun to listen
    loop.arm.listen(lambda: None)
    assert has_arm_later()


def test_emergency_stop_while_it_listens_counts_once_there_is_no_sentinel() -> None:
    bench, loop = begun(UNHEARD)
    for pressed in (True, False):  # it is to be resumed
        loop.call(lambda it, pressed=pressed: it.emergency_stop(pressed, "button"))
    loop.arm.hear_sentinel("")
    assert loop.supervisor.reason == "for joint_states"
    bench.tick(1_000_000)
    assert loop.supervisor.mode is Mode.EMERGENCY_STOP


@pytest.mark.parametrize("named", [True, False])
def test_emergency_stop_of_a_publisher_that_has_gone_can_be_ended(named: bool) -> None:
    """By ~/resume where messages tell who sends them, else by anybody's release."""
    bench, loop = begun("")
    loop.arm_loop.names_publishers = named
    loop.ticks.hear_stop(True, b"gone")
    bench.tick(1_000_000)
    assert loop.supervisor.mode is Mode.EMERGENCY_STOP
    loop.ticks.hear_stop(False, b"another")
    if named:
        with pytest.raises(ControllerError, match="held by"):
            loop.supervisor.resume({b"gone": "/button", b"another": "/another"})
    loop.supervisor.resume({b"another": "/another"} if named else None)
    assert loop.supervisor.mode is not Mode.EMERGENCY_STOP


def test_torque_that_does_not_leave_is_not_in_force() -> None:
    bench, loop = begun("commanding")
    hear(loop, command(50.0, 50.0))
    assert loop.arm.receive(time.monotonic())
    assert bench.tick(1_000_000)
    time.sleep(1.2)  # away, and without states
    for _ in range(3):
        time.sleep(0.002)
        assert loop.ticks.watch()
    np.testing.assert_array_equal(loop.controller.in_force, bench.command.sent[-1])
    assert loop.supervisor.mode is Mode.BLIND
    assert len(bench.command.sent) == 1


def test_torque_that_need_not_be_repeated_is_not_computed_either() -> None:
    """Without states the arm is given back at rest, by a sentinel with another torque."""
    bench = LoopBench(settings(np.full(2, 100.0)))
    loop = bench.loop
    loop.start()
    for i in range(3):
        bench.tick(i * 1_000_000)

    def lack(milliseconds: int) -> None:
        for _ in range(milliseconds):
            loop.arm_loop.states.intake.came_at -= 0.001
            time.sleep(0.001)
            assert loop.ticks.watch()

    loop.arm_loop.states.intake.came_at -= 1.0
    lack(300)
    sent = len(bench.command.sent)
    lack(20)
    assert len(bench.command.sent) == sent  # the hardware keeps it
    loop.arm.hear_sentinel("commanding")
    hear(loop, command(5.0, 5.0))
    assert loop.arm.receive(time.monotonic())
    lack(50)
    assert len(bench.command.sent) > sent
    np.testing.assert_array_equal(loop.controller.in_force, bench.command.sent[-1])


def test_loop_whose_python_tick_loses_the_lease_leaves_the_arm_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As machine code does: the mode says who has the arm."""
    bench, now = LoopBench(settings()), [time.monotonic()]
    loop = bench.loop
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    loop.start()
    loop.arm.hear_sentinel("guarding")
    for k in range(3):
        now[0] += 0.001
        bench.tick(k * 1_000_000)
    assert loop.supervisor.mode is Mode.HOLDING
    now[0] += 2.0 * LEASE  # paused, while states came
    sent = len(bench.command.sent)
    bench.tick(round(2.0 * LEASE * 1e9))
    assert len(bench.command.sent) == sent
    assert loop.supervisor.mode is Mode.GUARDED
    assert "it was paused for" in loop.supervisor.reason


def test_loop_that_let_go_before_it_held_the_arm_lasts_without_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is no trajectory, and no torque to command; that ended the loop's thread."""
    bench, now = LoopBench(settings()), [time.monotonic()]
    loop = bench.loop
    loop.arm_loop.handover.times = HandoverTimes.of_controller()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    loop.start("powerless")
    loop.arm.listen(lambda: None)
    for _ in range(300):
        now[0] += 0.001
        bench.tick(round(now[0] * 1e9))
    assert loop.arm_loop.handover.commanding and loop.supervisor.mode is Mode.POWERLESS
    for _ in range(5):
        now[0] += 0.002
        assert loop.ticks.watch()
    assert not bench.command.sent


def test_zero_torque_is_approached_within_the_rate() -> None:
    rate = np.array([500.0, 200.0])
    bench = LoopBench(settings(rate), last_command="zero")
    bench.loop.start()
    bench.tick(0, Q)
    sent = bench.command.sent
    assert len(sent) == 1 and np.abs(sent[0]).max() > 1.0
    assert bench.loop.stop()
    np.testing.assert_array_equal(sent[-1], 0.0)
    steps = np.abs(np.diff(sent, axis=0)) / 0.001
    np.testing.assert_allclose(steps.max(axis=0), rate, rtol=1e-9)


def test_trajectory_that_takes_long_to_plan_is_planned_far_enough_ahead() -> None:
    bench, loop = begun("")
    plan, leads = loop.controller.plan, []

    def slowly(request: MotionRequest, situation: Situation, lead: float, alive: object) -> Plan:
        loop.arm_loop.shared.attended_at = 0.0
        found = plan(request, situation, lead, alive)
        assert loop.arm_loop.shared.attended_at > 0.0  # planning is no hang
        leads.append(lead)
        for k in range(60):  # states of 0.6 s
            bench.tick(len(leads) * 10**9 + k * 10**7)
        return found

    loop.controller.plan = slowly
    message = JointTrajectory(joint_names=JOINTS)
    point = JointTrajectoryPoint(positions=Q + 0.1, velocities=[0.0, 0.0])
    point.time_from_start.sec = 3
    message.points.append(point)
    motion = TrajectoryInput(loop).follow(serialize_message(message))
    assert loop.controller.motion is motion
    first, second = leads
    assert first < 0.6 < second
