"""The hand-over between controller and sentinel, rule by rule, at 1 kHz."""

from __future__ import annotations

import pytest

from rnea_control.control.handover import FRESH_STATES, Handover, HandoverTimes, Phase

PERIOD = 0.001


class Clocks:
    """Steady clock and stamps; both sides take every state."""

    def __init__(self, *sides: Handover) -> None:
        self.sides = sides
        self.now, self.stamp = 100.0, 5.0

    def run(self, seconds: float, rate: float = 1.0, command: bool = False) -> int:
        """Lets time pass, stamps at a rate; how many states it took the last side to take the arm,
        or -1."""
        for i in range(round(seconds / PERIOD)):
            self.now += PERIOD
            self.stamp += rate * PERIOD
            for side in self.sides:
                side.hear_state(self.stamp, self.now)
            if command:
                self.sides[-1].hear_command(self.now)
            if self.sides[-1].look(self.now):
                return i + 1
        return -1


@pytest.fixture
def sentinel() -> Handover:
    return Handover(HandoverTimes.of_sentinel())


@pytest.fixture
def controller() -> Handover:
    owner = Handover(HandoverTimes.of_controller(simulated=True))
    owner.start(0.0, alone=True)
    owner.hear_mode(0.0, "guarding")
    return owner


@pytest.fixture
def clocks(sentinel: Handover) -> Clocks:
    """A sentinel that has heard commands for a second."""
    clocks = Clocks(sentinel)
    clocks.run(0.01)
    sentinel.guard(clocks.now)
    assert clocks.run(1.0, command=True) == -1
    return clocks


def test_silence_of_the_timeout_is_what_it_takes(clocks: Clocks, sentinel: Handover) -> None:
    assert clocks.run(1.0) == pytest.approx(16, abs=1)
    assert sentinel.phase is Phase.commanding


def test_no_commands_while_the_stamps_stand_are_no_silence(clocks: Clocks) -> None:
    assert clocks.run(1.0, rate=0.0) == -1
    assert clocks.run(0.1, rate=0.1) == -1
    assert clocks.run(1.0) > 0


def test_silence_must_be_longer_until_commands_were_steady() -> None:
    sentinel = Handover(HandoverTimes.of_sentinel())
    clocks = Clocks(sentinel)
    sentinel.guard(clocks.now)
    assert clocks.run(0.4, command=True) == -1
    assert clocks.run(0.4) == -1  # a stall
    assert not sentinel.revoke(clocks.now, "absurd")
    assert clocks.run(0.4, command=True) == -1
    assert clocks.run(0.4) == -1
    assert clocks.run(0.502, command=True) == -1
    assert clocks.run(1.0) == pytest.approx(16, abs=1)


def test_controller_that_dies_right_after_its_start_is_noticed() -> None:
    sentinel = Handover(HandoverTimes.of_sentinel())
    clocks = Clocks(sentinel)
    sentinel.guard(clocks.now)
    assert clocks.run(0.2, command=True) == -1
    assert clocks.run(1.0) == pytest.approx(501, abs=1)


def commanding(owner: Handover) -> Clocks:
    """An owner that has commanded a few times."""
    clocks = Clocks(owner)
    for _ in range(5):
        clocks.run(PERIOD)
        assert owner.may_command(clocks.now)
    return clocks


@pytest.mark.parametrize("waited", [0.001, 0.004, 0.02])
def test_owner_that_was_stopped_yields(controller: Handover, waited: float) -> None:
    """Whatever states have waited for it."""
    clocks = commanding(controller)
    clocks.now += 1.0
    controller.hear_nothing(clocks.now)
    for _ in range(3):
        controller.hear_state(clocks.stamp + waited, clocks.now)
        assert not controller.may_command(clocks.now)
        clocks.now, waited = clocks.now + 3e-5, waited + PERIOD
    clocks.stamp += 1.0
    clocks.run(2 * PERIOD)
    assert not controller.may_command(clocks.now)
    assert controller.phase is Phase.guarding
    assert controller.reason.startswith("it was away for 100")


@pytest.mark.parametrize("away", [0.011, 0.1, 10.0])
def test_pause_that_the_hardware_shared_is_no_absence(controller: Handover, away: float) -> None:
    clocks = commanding(controller)
    clocks.now += away
    for _ in range(FRESH_STATES):
        clocks.run(PERIOD)  # may have waited
        assert controller.commanding and not controller.may_command(clocks.now)
    clocks.run(PERIOD)
    assert controller.may_command(clocks.now)


def test_pause_that_the_hardware_shared_in_part(controller: Handover) -> None:
    for advanced, over in ((0.006, False), (0.010, True)):
        clocks = commanding(controller)
        clocks.now, clocks.stamp = clocks.now + 0.02, clocks.stamp + advanced
        clocks.run(3 * PERIOD)
        assert controller.may_command(clocks.now) is not over
    assert controller.phase is Phase.guarding


@pytest.mark.parametrize(("missed", "lost"), [(0, False), (1, False), (2, True), (30, True)])
def test_states_that_did_not_come_tell_of_the_pause_too(
    controller: Handover, missed: int, lost: bool
) -> None:
    """Where the hardware stamps its states by a clock that goes on while it stands still."""
    now, stamp = 100.0, 5.0
    for number in range(5):
        now, stamp = now + PERIOD, stamp + PERIOD
        controller.hear_state(stamp, now, number)
        assert controller.may_command(now)
    now, stamp = now + 0.032, stamp + 0.032
    controller.hear_state(stamp, now, 5 + missed)
    assert controller.may_command(now) is not lost


@pytest.mark.parametrize(("away", "lost"), [(0.012, False), (0.013, True)])
def test_three_states_tell_of_the_pause_while_no_other_can_have_counted_its_timeout(
    controller: Handover, away: float, lost: bool
) -> None:
    for number in range(5):
        controller.hear_state(5.0 + number * PERIOD, 100.0 + number * PERIOD, number)
        assert controller.may_command(100.0 + number * PERIOD)
    now = 100.0 + 4 * PERIOD + away
    controller.hear_state(5.0 + 4 * PERIOD + away, now, 7)
    assert controller.may_command(now) is not lost


def test_who_listens_counts_only_while_it_is_awake(clocks: Clocks, sentinel: Handover) -> None:
    assert clocks.run(0.005) == -1
    for _ in range(10):
        clocks.now, clocks.stamp = clocks.now + 0.012, clocks.stamp + 0.012
        assert not sentinel.look(clocks.now)
        sentinel.hear_state(clocks.stamp, clocks.now)
    assert clocks.run(1.0) == pytest.approx(11, abs=1)


def test_owner_that_was_away_yields_to_the_first_command(controller: Handover) -> None:
    clocks = commanding(controller)
    clocks.now += 0.02
    controller.hear_command(clocks.now)
    assert controller.phase is Phase.guarding and controller.strays == 0


@pytest.mark.parametrize(("label", "states"), [("", 1), ("idle", 7)])
def test_without_a_guard_the_lease_does_not_count(
    controller: Handover, label: str, states: int
) -> None:
    """A sentinel that was idle may have begun to guard meanwhile, and needs time to say so. Where
    there is none, the state is answered: hardware in lockstep sends no other."""
    controller.hear_mode(0.0, label)
    clocks = commanding(controller)
    for _ in range(5):
        clocks.now, clocks.stamp = clocks.now + 1.0, clocks.stamp + 1.0
        for _ in range(states - 2):
            clocks.run(PERIOD)
            assert not controller.may_command(clocks.now)
        clocks.run(min(states, 2) * PERIOD)
        assert controller.may_command(clocks.now)


def test_states_that_waited_are_told_by_the_clock_however_slowly_they_come() -> None:
    """On a busy machine those that came while the process was stopped are taken one by one."""
    owner = Handover(HandoverTimes.of_controller())
    owner.start(0.0, alone=True)
    owner.hear_mode(0.0, "guarding")
    clocks = commanding(owner)
    clocks.now += 1.0
    for _ in range(8):
        clocks.now, clocks.stamp = clocks.now + 0.004, clocks.stamp + PERIOD
        owner.hear_state(clocks.stamp, clocks.now)
        assert owner.commanding and not owner.may_command(clocks.now)
    clocks.stamp += 1.024
    clocks.run(PERIOD)
    assert owner.reason.startswith("it was away for")


def test_owner_that_cannot_tell_for_how_long_it_was_away_yields() -> None:
    """The clock of the stamps was set back meanwhile."""
    owner = Handover(HandoverTimes.of_controller())
    owner.start(0.0, alone=True)
    owner.hear_mode(0.0, "guarding")
    clocks = commanding(owner)
    stamp, clocks.now, states = clocks.stamp + PERIOD, clocks.now + 0.02, 0
    while owner.commanding:
        clocks.now, states = clocks.now + PERIOD, states + 1
        owner.hear_state(stamp, clocks.now)
    assert states == pytest.approx(62, abs=1)
    assert owner.reason == "it was away, and no state tells for how long"


def test_silence_of_the_sentinel_that_an_absence_explains(controller: Handover) -> None:
    clocks = commanding(controller)
    clocks.now, clocks.stamp = clocks.now + 1.0, clocks.stamp + 1.0
    controller.hear_mode(clocks.now, "")
    clocks.run(PERIOD)
    assert controller.phase is Phase.guarding


def test_guard_that_came_while_the_owner_was_away(controller: Handover) -> None:
    controller.hear_mode(0.0, "idle")
    clocks = commanding(controller)
    clocks.now, clocks.stamp = clocks.now + 1.0, clocks.stamp + 1.0
    clocks.run(PERIOD)
    controller.hear_mode(clocks.now, "commanding")
    clocks.run(PERIOD)
    assert not controller.may_command(clocks.now)
    assert controller.phase is Phase.guarding


def test_sentinel_that_was_stopped_counts_no_silence(clocks: Clocks) -> None:
    clocks.now, clocks.stamp = clocks.now + 0.4, clocks.stamp + 0.4
    assert clocks.run(1.0) == pytest.approx(16, abs=1)


def test_clock_set_back_begins_silence_anew(clocks: Clocks) -> None:
    clocks.run(0.01)
    clocks.stamp = 0.0
    assert clocks.run(1.0) == pytest.approx(16, abs=1)


def test_one_stray_command_is_borne_and_the_second_revokes(
    clocks: Clocks, sentinel: Handover
) -> None:
    clocks.run(1.0)
    sentinel.hear_command(clocks.now)
    assert sentinel.may_command(clocks.now)
    sentinel.hear_command(clocks.now)
    assert sentinel.phase is Phase.revoking
    assert not sentinel.may_command(clocks.now)


def test_revocation_in_vain_is_given_up(clocks: Clocks, sentinel: Handover) -> None:
    assert sentinel.revoke(clocks.now, "absurd")
    assert clocks.run(0.04, command=True) == -1
    assert sentinel.phase is Phase.revoking
    assert clocks.run(0.02, command=True) == -1
    assert sentinel.phase is Phase.guarding
    assert sentinel.contested
    assert not sentinel.revoke(clocks.now, "absurd")
    clocks.run(1.1, command=True)
    assert sentinel.revoke(clocks.now, "absurd")
    assert 0 < clocks.run(1.0) <= 16
    assert not sentinel.contested


def test_hand_back(clocks: Clocks, sentinel: Handover, controller: Handover) -> None:
    clocks.run(1.0)
    clocks.sides = (controller, sentinel)
    clocks.run(PERIOD)
    controller.hear_mode(clocks.now, "revoking")
    assert sentinel.give(clocks.now) and not sentinel.may_command(clocks.now)
    assert not sentinel.give(clocks.now)
    assert not controller.receive(clocks.now, clocks.now - 0.11)
    assert controller.receive(clocks.now, clocks.now - 0.09)
    assert controller.may_command(clocks.now)
    assert clocks.run(1.0) == pytest.approx(196, abs=1)  # nothing was heard of the controller


def test_controller_that_begins_beside_a_sentinel_listens() -> None:
    controller = Handover(HandoverTimes.of_controller())
    clocks = Clocks(controller)
    clocks.run(0.01)
    controller.start(clocks.now, alone=False)
    assert not controller.may_command(clocks.now)
    assert clocks.run(0.05, command=True) == -1
    assert clocks.run(1.0) == pytest.approx(31, abs=1)


def test_who_listens_does_so_between_slow_states() -> None:
    """At 50 Hz, less than one state a lease: a look with each, and in between word of nothing."""
    owner, now = Handover(HandoverTimes.of_controller()), 0.0
    owner.start(now, alone=False)
    owner.hear_mode(now, "guarding")
    for tick in range(2000):
        now = 0.001 * tick
        if tick % 20 == 0:
            owner.hear_state(now, now)
            if owner.look(now):
                break
        elif tick % 3 == 0:
            owner.hear_nothing(now)
    assert now == pytest.approx(0.1, abs=0.04)
    assert owner.commanding


def test_owner_that_is_awake_without_states_goes_on(controller: Handover) -> None:
    clocks = Clocks(controller)
    clocks.run(PERIOD)
    assert controller.may_command(clocks.now)
    for _ in range(100):
        clocks.now += 0.009
        controller.hear_nothing(clocks.now)
    assert controller.may_command(clocks.now)
    clocks.now += 0.011
    controller.hear_nothing(clocks.now)
    assert not controller.may_command(clocks.now)
    clocks.run(3 * PERIOD)
    assert controller.may_command(clocks.now)


def test_owner_that_was_away_yields_although_the_sentinel_has_gone_since(
    controller: Handover,
) -> None:
    clocks = Clocks(controller)
    clocks.run(PERIOD)
    assert controller.may_command(clocks.now)
    clocks.now, clocks.stamp = clocks.now + 1.0, clocks.stamp + 1.0
    controller.hear_mode(clocks.now, "commanding")
    clocks.run(PERIOD)
    controller.hear_mode(clocks.now, "")
    clocks.run(PERIOD)
    assert not controller.may_command(clocks.now)
    assert controller.phase is Phase.guarding
