"""The hand-over between controller and sentinel, rule by rule, at 1 kHz."""

from __future__ import annotations

import pytest
from handover_world import publishes

from rnea_control.loop.handover import (
    ARMING,
    LONGEST_UNHEARD,
    UNHEARD,
    Handover,
    HandoverTimes,
    Phase,
)
from rnea_control.loop.lease import FRESH_STATES

PERIOD = 0.001


class Clocks:
    """Steady clock and stamps; all sides take every state."""

    def __init__(self, *sides: Handover) -> None:
        self.sides = sides
        self.now, self.stamp = 100.0, 5.0

    def pass_by(self, seconds: float) -> None:
        """Time goes on, for the hardware too, and no side hears of it."""
        self.now, self.stamp = self.now + seconds, self.stamp + seconds

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

    def may_command(self) -> bool:
        return publishes(self.sides[-1], self.now)


def owning(label: str, simulated: bool = False) -> Handover:
    """A controller that owns the arm, beside a sentinel in this mode."""
    owner = Handover(HandoverTimes.of_controller(simulated=simulated))
    owner.start(0.0, alone=True)
    owner.hear_mode(0.0, label)
    return owner


@pytest.fixture
def controller() -> Handover:
    return owning("guarding", simulated=True)


@pytest.fixture
def owner(controller: Handover) -> Clocks:
    return commanding(controller)


def guarding() -> Clocks:
    """A sentinel that guards."""
    clocks = Clocks(Handover(HandoverTimes.of_sentinel()))
    clocks.sides[0].guard(clocks.now)
    return clocks


@pytest.fixture
def clocks() -> Clocks:
    """A sentinel that has heard commands for a second."""
    clocks = guarding()
    clocks.run(0.01)
    assert clocks.run(1.0, command=True) == -1
    return clocks


@pytest.fixture
def sentinel(clocks: Clocks) -> Handover:
    return clocks.sides[0]


def commanding(owner: Handover) -> Clocks:
    """An owner that has commanded a few times."""
    clocks = Clocks(owner)
    for _ in range(5):
        clocks.run(PERIOD)
        assert clocks.may_command()
    return clocks


@pytest.mark.parametrize("before", ["nothing", "stopped", "set back"])
def test_silence_of_the_timeout_is_what_it_takes(before: str, clocks: Clocks, sentinel) -> None:
    if before == "stopped":  # it counts no silence that it did not hear
        clocks.pass_by(0.4)
    elif before == "set back":  # a clock, and silence begins anew
        clocks.run(0.01)
        clocks.stamp = 0.0
    assert clocks.run(1.0) == pytest.approx(16, abs=1)
    assert sentinel.phase is Phase.commanding


def test_no_commands_while_the_stamps_stand_are_no_silence(clocks: Clocks) -> None:
    assert clocks.run(1.0, rate=0.0) == -1
    assert clocks.run(0.1, rate=0.1) == -1
    assert clocks.run(1.0) > 0


def test_silence_must_be_longer_until_commands_were_steady() -> None:
    clocks = guarding()
    assert clocks.run(0.4, command=True) == -1
    assert clocks.run(0.4) == -1  # a stall
    assert not clocks.sides[0].revoke(clocks.now, "absurd")
    assert clocks.run(0.4, command=True) == -1
    assert clocks.run(0.4) == -1
    assert clocks.run(0.502, command=True) == -1
    assert clocks.run(1.0) == pytest.approx(16, abs=1)
    clocks = guarding()
    assert clocks.run(0.2, command=True) == -1
    assert clocks.run(1.0) == pytest.approx(501, abs=1)  # it died right after its start


def test_sentinel_that_was_paused_with_all_others_takes_the_arm_soon(
    clocks: Clocks, sentinel: Handover
) -> None:
    """Nothing commands any more, and the torque is as old as the pause."""
    clocks.pass_by(5.0)
    sentinel.resume_guarding(clocks.now)
    assert clocks.run(1.0) == pytest.approx(46, abs=1)


def test_sentinel_that_was_paused_alone_leaves_the_arm_to_the_controller(
    clocks: Clocks, sentinel: Handover
) -> None:
    """The controller may take the sentinel for gone, and not yield."""
    clocks.pass_by(5.0)
    sentinel.resume_guarding(clocks.now)
    assert clocks.run(0.01, command=True) == -1
    assert clocks.run(0.4) == -1


@pytest.mark.parametrize("waited", [0.001, 0.004, 0.02])
def test_owner_that_was_stopped_yields(controller: Handover, owner: Clocks, waited: float) -> None:
    """Whatever states have waited for it."""
    owner.now += 1.0
    controller.hear_nothing(owner.now)
    for _ in range(3):
        controller.hear_state(owner.stamp + waited, owner.now)
        assert not owner.may_command()
        owner.now, waited = owner.now + 3e-5, waited + PERIOD
    owner.stamp += 1.0
    owner.run(2 * PERIOD)
    assert not owner.may_command()
    assert controller.phase is Phase.guarding
    assert controller.reason.startswith("it was paused for 100")


@pytest.mark.parametrize("away", [0.011, 0.1, 10.0])
def test_pause_that_the_hardware_shared_is_no_absence(
    controller: Handover, owner: Clocks, away: float
) -> None:
    owner.now += away
    for _ in range(FRESH_STATES):
        owner.run(PERIOD)  # may have waited
        assert controller.commanding and not owner.may_command()
    owner.run(PERIOD)
    assert owner.may_command()


@pytest.mark.parametrize(
    ("away", "missed", "lost"),
    [
        (0.032, 0, False),
        (0.032, 4, False),
        (0.032, 5, True),
        (0.032, 30, True),
        # Six states tell of it only if another can have counted its timeout.
        (0.012, 5, False),
        (0.013, 5, True),
    ],
)
def test_states_that_did_not_come_tell_of_the_pause_too(
    controller: Handover, away: float, missed: int, lost: bool
) -> None:
    """Where the hardware stamps its states by a clock that goes on while it stands still."""
    for number in range(5):
        now = 100.0 + number * PERIOD
        controller.hear_state(now - 95.0, now, number)
        assert publishes(controller, now)
    controller.hear_state(now + away - 95.0, now + away, 5 + missed)
    assert publishes(controller, now + away) is not lost


@pytest.mark.parametrize(("away", "goes_on"), [(0.031, True), (0.24, True), (0.26, False)])
def test_owner_goes_on_beside_a_sentinel_that_would_not_take_the_arm(
    away: float, goes_on: bool
) -> None:
    """An owner that yields to a sentinel that is not armed leaves the arm to nobody."""
    sentinel = guarding().sides[0]
    assert sentinel.label == ARMING
    owner = owning(sentinel.label)
    clocks = commanding(owner)
    clocks.pass_by(away)
    clocks.run(7 * PERIOD)
    assert clocks.may_command() is goes_on and owner.commanding is goes_on


def test_sentinel_that_was_paused_arms_from_the_second_command_on() -> None:
    """Until then it takes the arm soon, and an owner must not count on more time."""
    clocks = guarding()
    sentinel = clocks.sides[0]
    sentinel.resume_guarding(clocks.now)
    assert sentinel.label == Phase.guarding.value
    clocks.run(PERIOD, command=True)
    assert sentinel.label == Phase.guarding.value
    clocks.run(PERIOD, command=True)
    assert sentinel.label == ARMING


def test_stray_of_a_controller_that_was_paused_too_does_not_keep_the_arm() -> None:
    clocks = guarding()
    sentinel = clocks.sides[0]
    sentinel.resume_guarding(clocks.now)
    clocks.run(PERIOD, command=True)
    assert clocks.run(0.6) in range(44, 50)


def test_sentinel_says_when_it_is_armed_and_then_the_lease_counts() -> None:
    clocks = guarding()
    clocks.run(0.49, command=True)
    assert clocks.sides[0].label == ARMING
    clocks.run(0.02, command=True)
    assert clocks.sides[0].label == Phase.guarding.value
    owner = owning(ARMING)
    owner.hear_mode(0.0, clocks.sides[0].label)
    clocks = commanding(owner)
    clocks.pass_by(0.031)
    clocks.run(PERIOD)
    assert owner.phase is Phase.guarding


def test_owner_that_was_away_yields_to_the_first_command(controller, owner: Clocks) -> None:
    owner.now += 0.02
    controller.hear_command(owner.now)
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
        clocks.pass_by(1.0)
        for _ in range(states - 2):
            clocks.run(PERIOD)
            assert not clocks.may_command()
        clocks.run(min(states, 2) * PERIOD)
        assert clocks.may_command()


def test_an_owner_alone_answers_however_long_its_tick_took() -> None:
    owner = owning("")
    owner.hear_state(5.0, 100.0)
    assert publishes(owner, 100.0)
    owner.hear_state(5.004, 100.004)
    assert publishes(owner, 100.1)  # it had no CPU while it computed


def test_states_that_waited_are_told_by_the_clock_however_slowly_they_come() -> None:
    """On a busy machine those that came while the process was stopped are taken one by one."""
    owner = owning("guarding")
    clocks = commanding(owner)
    clocks.now += 1.0
    for _ in range(8):
        clocks.now, clocks.stamp = clocks.now + 0.004, clocks.stamp + PERIOD
        owner.hear_state(clocks.stamp, clocks.now)
        assert owner.commanding and not publishes(owner, clocks.now)
    clocks.stamp += 1.024
    clocks.run(PERIOD)
    assert owner.reason.startswith("it was paused for")


def test_owner_that_cannot_tell_for_how_long_it_was_away_yields() -> None:
    """The clock of the stamps was set back meanwhile."""
    owner = owning("guarding")
    clocks = commanding(owner)
    stamp, clocks.now, states = clocks.stamp + PERIOD, clocks.now + 0.02, 0
    while owner.commanding:
        clocks.now, states = clocks.now + PERIOD, states + 1
        owner.hear_state(stamp, clocks.now)
    assert states == pytest.approx(62, abs=1)
    assert owner.reason == "it was paused, and no joint state shows for how long"


@pytest.mark.parametrize("told", ["silence", "taken", "taken and gone"])
def test_owner_that_was_away_yields_whatever_it_hears_since(
    told: str, controller: Handover
) -> None:
    """The sentinel was silent, as its absence explains; began to guard only meanwhile; or has gone
    since."""
    if told == "taken":
        controller.hear_mode(0.0, "idle")
    clocks = commanding(controller)
    clocks.pass_by(1.0)
    if told == "taken":
        clocks.run(PERIOD)
    controller.hear_mode(clocks.now, "" if told == "silence" else "commanding")
    clocks.run(PERIOD)
    if told == "taken and gone":
        controller.hear_mode(clocks.now, "")
        clocks.run(PERIOD)
    assert not clocks.may_command()
    assert controller.phase is Phase.guarding


def test_one_stray_command_is_borne_and_the_second_revokes(clocks: Clocks, sentinel) -> None:
    clocks.run(1.0)
    sentinel.hear_command(clocks.now)
    assert clocks.may_command()
    sentinel.hear_command(clocks.now)
    assert sentinel.phase is Phase.revoking
    assert not clocks.may_command()


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
    assert sentinel.give(clocks.now) and not publishes(sentinel, clocks.now)
    assert not sentinel.give(clocks.now)
    assert not controller.receive(clocks.now, clocks.now - 0.11)
    assert controller.receive(clocks.now, clocks.now - 0.09)
    assert publishes(controller, clocks.now)
    assert clocks.run(1.0) == pytest.approx(196, abs=1)  # nothing was heard of the controller


def test_controller_that_begins_beside_a_sentinel_listens() -> None:
    controller = Handover(HandoverTimes.of_controller())
    clocks = Clocks(controller)
    clocks.run(0.01)
    controller.start(clocks.now, alone=False)
    assert not publishes(controller, clocks.now)
    assert clocks.run(0.05, command=True) == -1
    assert clocks.run(1.0) == pytest.approx(31, abs=1)


def test_controller_that_began_alone_yields_to_a_sentinel_that_commands() -> None:
    controller = Handover(HandoverTimes.of_controller())
    clocks = Clocks(controller)
    clocks.run(0.01)
    controller.start(clocks.now, alone=True)
    assert publishes(controller, clocks.now)
    controller.hear_mode(clocks.now, "commanding")
    assert not publishes(controller, clocks.now)
    assert clocks.run(1.0) == pytest.approx(31, abs=1)


@pytest.mark.parametrize("label", ["guarding", "commanding", "idle", ""])
def test_controller_that_may_have_a_sentinel_waits_to_hear_it(label: str) -> None:
    controller = Handover(HandoverTimes.of_controller())
    clocks = Clocks(controller)
    clocks.run(0.01)
    controller.hear_mode(clocks.now, UNHEARD)
    controller.start(clocks.now, alone=False, wait=LONGEST_UNHEARD)
    assert clocks.run(LONGEST_UNHEARD - 0.1) == -1
    controller.hear_mode(clocks.now, label)
    assert clocks.may_command() == (label in ("idle", ""))
    if not clocks.may_command():
        assert clocks.run(1.0) == pytest.approx(91, abs=1)


@pytest.mark.parametrize("label", ["", "idle"])
def test_controller_that_starts_beside_a_strange_commander_waits_for_its_silence(label) -> None:
    controller = Handover(HandoverTimes.of_controller())
    clocks = Clocks(controller)
    clocks.run(0.01)
    controller.hear_mode(clocks.now, UNHEARD)
    controller.start(clocks.now, alone=False, wait=LONGEST_UNHEARD)
    controller.hear_command(clocks.now)
    controller.hear_mode(clocks.now, label)
    assert not clocks.may_command()
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
    assert now == pytest.approx(0.14, abs=0.04)
    assert owner.commanding


def test_owner_that_is_awake_without_states_goes_on(controller: Handover, owner: Clocks) -> None:
    for _ in range(100):
        owner.now += 0.009
        controller.hear_nothing(owner.now)
    assert owner.may_command()
    owner.now += 0.011
    controller.hear_nothing(owner.now)
    assert not owner.may_command()
    owner.run(3 * PERIOD)
    assert owner.may_command()


@pytest.mark.parametrize(("away", "wait"), [(0.5, 0.06), (2.0, 1.5)])
@pytest.mark.parametrize("heard", [False, True])
def test_owner_that_was_away_for_long_first_discovers_who_has_taken_its_place(
    away: float, wait: float, heard: bool
) -> None:
    """Another controller, started meanwhile, took it for dead: its commands come only late."""
    owner = Handover(HandoverTimes.of_controller(longest_absence=1.0, rediscovery=1.5))
    owner.start(0.0, alone=True)
    owner.hear_mode(0.0, "guarding")
    clocks = commanding(owner)
    clocks.pass_by(away)
    if heard:
        assert clocks.run(0.9 * wait) == -1
        assert clocks.run(2.0, command=True) == -1
    else:
        assert clocks.run(2.0) == pytest.approx(wait / PERIOD, abs=2)
