"""Ticks by machine code do what ticks by Python do, to the last bit: both call the same functions
about a state, and interpret the verdicts alike."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from native_bench import PHASE, Twin, acts

from rnea_control.control import (
    EndKind,
    GoalTolerances,
    MotionRequest,
    Supervisor,
    Waypoint,
    Waypoints,
    layout,
)
from rnea_control.control.motion import Ending
from rnea_control.exceptions import RneaControlError
from rnea_control.jit.record import Record
from rnea_control.loop.other_inputs import MOST_STOPS
from rnea_control.node.control_loop import ControlLoop

STATES = 10_000
ASKED = ("move", "move", "move", "hold", "scale", "guide", "resume", "stop", "reset")
ASKED_IN_STREAMS = ("move", "move", "move", "hold", "scale", "resume", "resume", "resume", "reset")
STALE = 350  # states of a phase in which nothing is asked, so that a stream becomes stale


def act(twin: Twin, index: int) -> None:
    """What is asked of the loop before a state."""
    if not acts(index) or (twin.streams and index % PHASE < STALE):
        return
    loop, rng = twin.loop, np.random.default_rng(index)
    with suppress(RneaControlError):
        what = rng.choice(ASKED_IN_STREAMS if twin.streams else ASKED)
        if what == "move":
            points = [Waypoint(0.05 + 0.2 * rng.uniform(), rng.uniform(-0.1, 0.1, 2), np.zeros(2))]
            kept = twin.endings.append
            request = MotionRequest(
                Waypoints.of(points, 2), on_end=lambda e: kept((e.kind, e.text))
            )
            plan = loop.controller.plan(request, loop.situation(), 0.002)
            loop.call(lambda it: it.adopt(plan))
        elif what == "hold":
            loop.call(Supervisor.hold)
        elif what == "scale":
            loop.controller.speed_scaling = rng.uniform()
        elif what == "guide":
            loop.call(Supervisor.guide)
        elif what == "resume":
            loop.call(Supervisor.resume)
        elif what == "reset":
            loop.call(Supervisor.reset_fault)
        else:
            loop.call(lambda it: it.emergency_stop(True, "button"))
            loop.call(lambda it: it.emergency_stop(False, "button"))


def compared(**twin: Any) -> tuple[Twin, int]:
    """The loop whose ticks are Python, after comparison with the one of machine code; and the
    number of ticks that machine code took."""
    by_python, by_machine = (Twin(len(twin), **twin) for _ in range(2))
    by_python.python(act, STATES)
    ticks = by_machine.natively(act, STATES)
    commands = zip(by_python.command.sent, by_machine.command.sent, strict=False)
    for i, (one, other) in enumerate(commands):
        assert one == other, f"command {i}"
    assert len(by_python.command.sent) == len(by_machine.command.sent) > 0.8 * STATES
    assert by_python.changes == by_machine.changes
    assert by_python.endings == by_machine.endings
    one, other = by_python.loop, by_machine.loop
    records = "lease", "intake", "counts", "stream", "posture", "stiffness", "wrench"
    for name, mine, its in (
        ("state", one.controller.rows, other.controller.rows),
        ("histograms", one.arm_loop.statistics.histograms, other.arm_loop.statistics.histograms),
        *zip(records, *(map(bytes_of, of_records(each)) for each in (one, other)), strict=True),
    ):
        np.testing.assert_array_equal(mine, its, name)
    return by_python, ticks


def of_records(loop: ControlLoop) -> tuple[Record, ...]:
    arm = loop.arm_loop
    return (
        arm.handover.lease,
        arm.states.intake,
        arm.statistics.counts,
        arm.others.stream,
        arm.others.posture,
        arm.others.stiffness,
        arm.others.wrench,
    )


def bytes_of(record: Record) -> np.ndarray:
    return record.array.view(np.uint8)


@pytest.mark.parametrize("watched", [False, True])
def test_commands_and_all_facts_are_the_same_to_the_last_bit(watched: bool) -> None:
    by_python, ticks = compared(**({"watched": True} if watched else {}))
    collisions = [why for _, _, why in by_python.changes if why.startswith("collision?")]
    assert bool(collisions) == watched
    modes = {new for _, new, _ in by_python.changes}
    assert {"holding", "moving", "braking", "gravity_compensation", "blind"} <= modes
    assert "emergency_stop" in modes
    ends = {kind for kind, _ in by_python.endings}
    assert ends >= {
        EndKind.REACHED,
        EndKind.PATH_TOLERANCE_VIOLATED if watched else EndKind.DROPPED,
    }
    assert ticks > 0.6 * STATES


def test_targets_of_streams_move_both_alike_to_the_last_bit() -> None:
    """Targets of all three topics; also targets that are refused, stale, stamped, or of a second
    publisher, and an emergency stop in the stream."""
    by_python, ticks = compared(streams="joints")
    stream = by_python.loop.arm_loop.others.stream
    assert stream.taken > 120 and stream.foreign > 20
    assert stream.refused >= 10 and stream.ignored > stream.refused
    steps = {(old, new) for old, new, _ in by_python.changes}
    for step in (
        ("holding", "streaming"),
        ("moving", "streaming"),
        ("streaming", "braking"),
        ("streaming", "blind"),
        ("streaming", "emergency_stop"),
    ):
        assert step in steps, step
    reasons = " ".join(why for _, _, why in by_python.changes)
    assert "no target has come" in reasons and "a trajectory replaces the stream" in reasons
    assert ticks > 0.6 * STATES


def test_poses_and_twists_move_both_alike_to_the_last_bit() -> None:
    """Also those that are refused, stale, stamped, or of a second publisher, and joint targets that
    replace a stream, or are its posture."""
    by_python, ticks = compared(streams="tip")
    others = by_python.loop.arm_loop.others
    stream = others.stream
    assert stream.taken > 120 and stream.foreign > 10 and others.posture.taken > 3
    assert others.stiffness.taken > 3 and others.stiffness.ignored and others.wrench.taken > 2
    assert stream.refused >= 10 and stream.ignored > stream.refused
    steps = {(old, new) for old, new, _ in by_python.changes}
    for step in (("holding", "streaming"), ("streaming", "braking"), ("streaming", "blind")):
        assert step in steps, step
    assert ticks > 0.6 * STATES


def test_gains_of_a_planner_move_both_alike_to_the_last_bit() -> None:
    """Also those that are refused, stale, stamped, or of a second publisher."""
    pytest.importorskip("linear_feedback_controller_msgs", reason="the ROS 2 wheels lack it")
    by_python, ticks = compared(streams="gains")
    stream = by_python.loop.arm_loop.others.stream
    assert stream.taken > 120 and stream.foreign > 10
    assert stream.refused >= 10 and stream.ignored > stream.refused
    steps = {(old, new) for old, new, _ in by_python.changes}
    for step in (("holding", "streaming"), ("streaming", "braking"), ("streaming", "blind")):
        assert step in steps, step
    reasons = " ".join(why for _, _, why in by_python.changes)
    assert "no message has come for control_timeout" in reasons
    assert ticks > 0.6 * STATES


def test_a_loop_to_which_nobody_listens_any_more_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("native_bench.BEFALLS", {"nothing": 1.0})
    monkeypatch.setattr("native_bench.acts", lambda given: False)
    twin = Twin(0)

    def leave() -> None:
        with twin.loop.arm_loop.paused():
            twin.loop.supervisor.hear_listeners(False, "for a subscription")

    asks = threading.Thread(target=leave)

    def nobody(twin: Twin, given: int) -> None:
        if given >= 1000 and not asks.ident:
            asks.start()

    ticks = twin.natively(lambda twin, given: None, 4000, meanwhile=nobody)
    asks.join()
    assert 500 < ticks < 2000
    assert twin.changes[-1][1:] == ("waiting", "for a subscription")
    assert not twin.loop.is_usual() and twin.loop.supervisor.streaming


def test_arm_that_shakes_is_a_fault_and_torque_at_its_limit_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever has taken the step."""
    monkeypatch.setattr("native_bench.BEFALLS", {"nothing": 1.0})
    monkeypatch.setattr("native_bench.acts", lambda given: False)
    twin, saturated = Twin(0), []

    def shake(twin: Twin, given: int) -> None:
        desired = twin.loop.controller.desired
        fast = 0.5 * twin.loop.controller.model.velocity_limit
        if given >= 100:
            desired[1] = fast if given // 10 % 2 else -fast  # the script measures it
        saturated.append(twin.loop.controller.saturated)

    assert twin.natively(lambda twin, given: None, 400, meanwhile=shake) > 100
    assert any(new == "fault" and "shakes" in why for _, new, why in twin.changes)
    assert any(saturated)


def test_machine_code_does_not_go_on_where_the_loop_is_told_to_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else who has just seen to it that it stands would wait for it for ever."""
    monkeypatch.setattr("native_bench.BEFALLS", {"nothing": 1.0})
    twin = Twin(0)
    assert twin.natively(lambda twin, given: None, 200) > 100
    twin.loop.arm_loop.shared.interruptions = 0
    assert twin.loop.arm_loop.may_run_natively()
    twin.loop.arm_loop.end()
    assert not twin.loop.arm_loop.may_run_natively()


def test_of_more_emergency_stops_than_are_kept_one_was_pressed() -> None:
    twin = Twin(0)
    twin.loop.arm_loop.others.arrays.stops["pressed"] = 0
    twin.loop.arm_loop.shared.stops_received = MOST_STOPS + 1
    twin.loop.attend()
    twin.natively(lambda twin, given: None, 100)
    assert "emergency_stop" in [new for _, new, _ in twin.changes]


def test_motion_ends_for_who_waits_though_what_ended_it_was_overwritten() -> None:
    controller = Twin(0).loop.controller
    controller.hold(0.0, np.zeros(2))
    endings: list[Ending] = []
    points = Waypoints.of([Waypoint(1.0, np.full(2, 0.1), np.zeros(2))], 2)
    request = MotionRequest(points, tolerances=GoalTolerances(), on_end=endings.append)
    assert controller.adopt(controller.plan(request, controller.situation(0.0), 0.1))
    controller.arm.motion = 0
    controller.arm.findings += layout.MOST_FINDINGS + 1
    controller.tell()
    assert [ending.kind for ending in endings] == [EndKind.DROPPED]
