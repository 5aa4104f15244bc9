"""Two `Handover` machines, a channel that delays and loses, and everything that may befall them.

Time runs in steps of one period of the states. A world branches at every step: into each event,
each order of the two processes, and each fate of the commands that they publish. Worlds that
differ only in when they began are the same, so that the number of worlds is finite.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TypeVar

from rnea_control.loop import lease
from rnea_control.loop.handover import Handover, HandoverTimes, Phase
from rnea_control.loop.lease import Lease

RUNNING, STOPPED, DEAD = "running", "stopped", "dead"
# Steps: short, so that there are few worlds; in the proportions of the real ones.
CONTROLLER = HandoverTimes(
    lease=3.0,
    timeout=9.0,
    recovery=18.0,
    grace=22.0,
    awake=2.0,
    tolerated=4.0,
    states=4,
    accept=2.0,
    simulated=True,
)
SENTINEL = HandoverTimes(
    lease=5.0,
    timeout=6.0,
    recovery=14.0,
    grace=28.0,
    awake=2.0,
    arming=8.0,
    yielding=12.0,
    states=4,
    revokes=True,
    accept=0.0,
    simulated=True,
)
REAL = replace(CONTROLLER, simulated=False), replace(SENTINEL, simulated=False)
# For how long the arm may be without a command while a process that may take it runs.
LONGEST_SILENCE = 34
# An owner that comes back sooner than this after it lost the arm alternates with the other.
SHORTEST_TURN = 3
# In a pause longer than this nobody takes the arm.
LONGEST_PAUSE = 7
# How long a process needs to start again.
RESTART = 4


@dataclass
class Side:
    """One process.

    Attributes:
        handover: its machine.
        state: running, stopped or dead.
        since: how long it has been so.
        commands, modes: what has come and is not yet taken; of commands two at most, as more make
            no difference.
        batch: commands and modes that were taken and not looked at when it was stopped.
        late: what comes with the next step.
        withheld: whether it was stopped between `may_answer` and publishing.
        lost: how many of its last commands were lost.
        missed: stamp of the state that it finds first when it goes on, with the next one at once;
            None for the newest.
    """

    handover: Handover
    state: str = RUNNING
    since: int = 0
    commands: int = 0
    modes: tuple[str, ...] = ()
    batch: tuple[int, tuple[str, ...]] | None = None
    late: tuple[str, ...] = ()
    withheld: bool = False
    lost: int = 0
    missed: float | None = None


@dataclass
class World:
    """All of it at one moment; a step mutates it.

    Attributes:
        controller, sentinel: the two processes.
        now, stamp: the clocks.
        number: how many states there were.
        paused: whether no states come.
        pause: for how many steps.
        request: when the controller asked for the arm and got it; None if it did not.
        quiet: steps in which nobody published although somebody could.
        turn: steps since the arm changed hands.
        owner: who published last, not counting strays.
        standstill: whether all stand still, the hardware too; then whose arm it was.
        fault: what must not happen, and did.
        events: how many there were.
    """

    controller: Side
    sentinel: Side
    now: float = 0.0
    stamp: float = 0.0
    number: int = 0
    paused: bool = False
    pause: int = 0
    request: float | None = None
    quiet: int = 0
    turn: int = 99
    owner: str = ""
    standstill: str = ""
    fault: str = ""
    events: int = 0

    @property
    def sides(self) -> dict[str, Side]:
        return {"controller": self.controller, "sentinel": self.sentinel}


def beginning(
    controller: HandoverTimes = CONTROLLER,
    sentinel: HandoverTimes = SENTINEL,
    machine: type[Handover] = Handover,
) -> World:
    """A controller that has just begun and a sentinel that has not heard it."""
    world = World(Side(machine(controller)), Side(machine(sentinel)))
    world.controller.handover.hear_mode(0.0, Phase.idle.value)
    world.controller.handover.start(0.0, alone=True)
    return world


def guarded(
    controller: HandoverTimes = CONTROLLER,
    sentinel: HandoverTimes = SENTINEL,
    machine: type[Handover] = Handover,
) -> World:
    """The controller was stopped and goes on; the sentinel has taken the arm meanwhile."""
    world = beginning(controller, sentinel, machine)
    quiet = [""] * 12
    for event in (*quiet, "stop controller", *quiet, "continue controller", *quiet):
        ways = successors(world, 0)
        world = next(new for (what, *fates), new in ways if what == event and "late" not in fates)
    assert world.owner == "sentinel" and world.controller.handover.phase is Phase.guarding
    return world


T = TypeVar("T")


def _copy(it: T) -> T:
    """As copy.copy, at a fifth of its time."""
    twin = object.__new__(type(it))
    twin.__dict__.update(it.__dict__)
    return twin


def duplicate(world: World) -> World:
    new = _copy(world)
    for name, side in world.sides.items():
        twin = _copy(side)
        twin.handover = _copy(side.handover)
        twin.handover.lease = _plain(side.handover.lease)
        setattr(new, name, twin)
    return new


def _plain(lease: Lease | SimpleNamespace) -> SimpleNamespace:
    """The same facts as an object that is copied faster."""
    if isinstance(lease, SimpleNamespace):
        return SimpleNamespace(**vars(lease))
    return SimpleNamespace(**{name: getattr(lease, name) for name in Lease.dtype.names})


def events(world: World) -> Iterator[str]:
    """What may happen next."""
    yield ""
    if world.standstill == "now":
        yield "continue everything"
        return
    if world.controller.state == world.sentinel.state == RUNNING and not world.paused:
        yield "stop everything"
    if world.paused:
        yield "continue states"
        yield "continue states late"  # they were late, and their stamps say so
    else:
        yield "pause states"
    for name, side in world.sides.items():
        if side.state == RUNNING:
            yield f"stop {name}"
            yield f"stop {name} before publishing"
            yield f"stop {name} while taking"
            yield f"kill {name}"
        elif side.state == STOPPED:
            yield f"continue {name}"
            yield f"continue {name} with old states"
            yield f"kill {name}"
        elif side.since >= RESTART:
            yield f"restart {name}"
    if world.controller.state == world.sentinel.state == RUNNING:
        phases = world.controller.handover.phase, world.sentinel.handover.phase
        if phases == (Phase.guarding, Phase.commanding) and world.request is None:
            yield "ask for the arm"
        if phases[1] is Phase.guarding:
            yield "revoke"
    if world.request is not None and world.controller.state == RUNNING:
        yield "receive the arm"


def apply(world: World, event: str) -> str:
    """Lets an event happen; returns who is stopped in the middle of its round, and where."""
    word, _, rest = event.partition(" ")
    name = rest.partition(" ")[0]
    if name == "everything":
        for each, side in world.sides.items():
            _change_state(world, word, side, each)
        world.paused = word == "stop"
        world.standstill = "now" if world.paused else world.owner
    elif name == "states":
        if rest == "states late":
            world.stamp += world.pause
        world.paused = word == "pause"
    elif event == "ask for the arm":
        world.request = world.now
        world.sentinel.handover.give(world.now)
    elif event == "receive the arm":
        world.controller.handover.receive(world.now, world.request)
        world.request = None
    elif event == "revoke":
        world.sentinel.handover.revoke(world.now, "absurd")
    elif rest.endswith(("before publishing", "while taking")):
        return rest
    elif word:
        side = world.sides[name]
        if rest.endswith("with old states"):
            side.missed = side.handover.lease.stamp + 1.0
        _change_state(world, word, side, name)
    return ""


def _change_state(world: World, word: str, side: Side, name: str) -> None:
    now, times = world.now, side.handover.times
    guard = world.sentinel
    if word == "restart":
        side.handover = type(side.handover)(times)
        side.commands, side.modes, side.late, side.withheld, side.lost = 0, (), (), False, 0
        side.batch = None
        if name == "controller":
            world.request = None
            known = guard.state == RUNNING and guard.handover.phase is not Phase.idle
            side.handover.start(now, alone=not known)
            if known:
                side.modes = (guard.handover.label,)
            elif guard.state == RUNNING:
                side.handover.hear_mode(now, Phase.idle.value)
    if word == "continue" and name == "sentinel":
        if side.since >= RESTART and side.handover.phase is Phase.guarding:
            side.handover.resume_guarding(now)
        world.controller.late += (side.handover.label,)
    if word == "continue" and name == "controller":
        # Its first thought may be that the sentinel was silent for as long as it was away.
        side.modes = ("", *side.modes)
        if guard.state == RUNNING:
            side.late += (guard.handover.label,)
    if word == "kill" and name == "controller":
        world.request = None
    side.state = {"stop": STOPPED, "kill": DEAD}.get(word, RUNNING)
    side.since = 0


# What becomes of a command: it arrives at once or with the next step, or is lost.
FATES = ("now", "late", "lost")


def successors(
    world: World, losses: int = 1, eventful: bool = True
) -> Iterator[tuple[tuple, World]]:
    """All worlds one step later, with what led there.

    Args:
        losses: how many commands in a row may be lost.
        eventful: whether anything may happen but that commands come late or are lost.
    """
    both = world.controller.state == world.sentinel.state == RUNNING
    for event in events(world) if eventful else ("",):
        # Who goes first makes no difference to one alone.
        for first in ("controller", "sentinel") if both or event else ("controller",):
            pending = [((event, first), [])]
            while pending:
                label, fates = pending.pop()
                new = duplicate(world)
                asked = _step(new, event, first, fates, losses)
                if asked is None:
                    yield (*label, *fates), new
                else:
                    pending += [(label, [*fates, fate]) for fate in asked]


def _step(
    world: World, event: str, first: str, fates: list[str], losses: int
) -> tuple[str, ...] | None:
    """One step; or the fates of the next command, if `fates` has too few."""
    world.now += 1.0
    for side in world.sides.values():
        side.commands = min(side.commands + side.late.count("command"), 2)
        side.modes += tuple(word for word in side.late if word != "command")
        side.late = ()
        side.since = min(side.since + 1, RESTART)
    halted = apply(world, event)
    world.pause = min(world.pause + 1, LONGEST_PAUSE) if world.paused else 0
    if not world.paused:
        world.stamp += 1.0
        world.number += 1
    elif world.standstill == "now" and not world.controller.handover.times.simulated:
        world.stamp += 1.0  # the hardware's clock goes on
    left = list(fates)
    published: list[str] = []
    names = [first, "sentinel" if first == "controller" else "controller"]
    for name in names:
        side = world.sides[name]
        if side.state != RUNNING:
            continue
        if halted == f"{name} while taking":
            side.batch = _take(side)
            side.state, side.since = STOPPED, 0
            continue
        sent = _run(world, side, name)
        if halted == f"{name} before publishing":
            side.withheld, side.state, side.since = sent[1], STOPPED, 0
            sent = (sent[0], False)
        for is_command in (sent[0], sent[1]):
            if not is_command:
                continue
            if not left:
                return FATES if side.lost < losses else FATES[:2]
            _send(world, name, "command", left.pop(0))
        if sent[1]:
            published.append(name)
    _judge(world, event, published)
    return None


def _take(side: Side) -> tuple[int, tuple[str, ...]]:
    """The messages that wait; those that were taken before it was stopped come first."""
    if side.batch is not None:
        batch, side.batch = side.batch, None
        return batch
    batch = side.commands, side.modes
    side.commands, side.modes = 0, ()
    return batch


def _run(world: World, side: Side, name: str) -> tuple[bool, bool]:
    """One round of a process; whether it publishes what it withheld, and a command of its own."""
    handover, now = side.handover, world.now
    stray, side.withheld = side.withheld, False
    before, label = handover.phase, handover.label
    commands, modes = _take(side)
    for mode in modes:
        handover.hear_mode(now, mode)
    for _ in range(commands):
        if handover.phase is Phase.idle:
            handover.guard(now)
        else:
            handover.hear_command(now)
    revokes = handover.phase is Phase.revoking and before is not Phase.revoking
    if name == "sentinel" and revokes and handover.strays > 1 and world.owner == "controller":
        world.fault = "evicted by one that had lost the arm"
    if not world.paused:
        # A process that wakes up may find the oldest states that it missed.
        for behind in (2, 1) if side.missed is not None else (0,):
            late = side.missed is not None and world.stamp - side.missed > 2.0 - behind
            stamp = side.missed + 2.0 - behind if late else world.stamp
            handover.hear_state(stamp, now, world.number - round(world.stamp - stamp))
        side.missed = None
    else:
        handover.hear_nothing(now)
    if handover.look(now) and world.pause >= LONGEST_PAUSE:
        world.fault = "taken although no states come"
    if name == "sentinel" and handover.label != label:
        _send(world, name, handover.label, "late")
    return stray, not world.paused and publishes(handover, now)


def publishes(handover: Handover, now: float) -> bool:
    """Whether a command is published."""
    allowed = handover.may_answer(now)
    if allowed:
        lease.answered(handover.lease, now)
    return allowed


def _send(world: World, name: str, what: str, fate: str) -> None:
    sender = world.sides[name]
    receiver = world.sides["sentinel" if name == "controller" else "controller"]
    if what == "command":
        sender.lost = sender.lost + 1 if fate == "lost" else 0
    if receiver.state == DEAD or fate == "lost":
        return
    if fate == "late" or what != "command":
        receiver.late += (what,)
    else:
        receiver.commands = min(receiver.commands + 1, 2)


def _judge(world: World, event: str, published: list[str]) -> None:
    world.turn = min(world.turn + 1, 99)
    if len(published) > 1:
        world.fault = "both publish in one period"
    for name in published:
        if world.standstill not in ("", name):
            world.fault = "lost in a pause that the hardware shared"
        if world.owner not in ("", name):
            if world.turn < SHORTEST_TURN and world.sides[world.owner].state == RUNNING:
                world.fault = "they alternate"
            world.turn = 0
        world.owner = name
    able = world.controller.state == RUNNING or (
        world.sentinel.state == RUNNING and world.sentinel.handover.phase is not Phase.idle
    )
    if event and not event.endswith("everything"):
        world.standstill = ""  # another reason to lose it
    world.quiet = 0 if event or published or world.paused or not able else world.quiet + 1
    if world.quiet > LONGEST_SILENCE:
        world.fault = "nobody publishes"


def signature(world: World) -> tuple:
    """Equal for worlds that go on alike."""
    return (
        world.paused,
        world.pause,
        None if world.request is None else min(world.now - world.request, 9.0),
        world.quiet,
        min(world.turn, SHORTEST_TURN),
        world.owner,
        world.standstill,
        *(_of_side(world, side) for side in world.sides.values()),
    )


def _of_side(world: World, side: Side) -> tuple:
    if side.state == DEAD:
        return DEAD, side.since
    handover, now, stamp, times = side.handover, world.now, world.stamp, side.handover.times
    own = handover.lease
    phase = handover.phase
    # Beyond this, an age makes no difference.
    oldest = max(times.grace, times.recovery, times.yielding) + 1.0

    def age(then: float, present: float) -> float:
        return max(min(present - then, oldest), -oldest) if math.isfinite(then) else -1.0

    values: tuple = (phase, own.guarded, own.tolerated)
    values += (age(own.stamp, stamp), age(own.looked_at, now))
    values += (handover._may_be_stray,)
    values += (handover._armed or min(now - handover._steady_since, times.arming),)
    if phase in (Phase.guarding, Phase.revoking):
        values += (own.silence, age(own.silent_since, now), age(own.silent_since_stamp, stamp))
        values += (min(own.silent_states, times.states),)
        values += (age(max(handover._no_revocation_until, now), now),)
    if phase is Phase.revoking:
        values += (age(handover._revoked_at, now), age(own.revoked_stamp, stamp))
    if phase is Phase.commanding:
        values += (min(handover.strays, 2), own.has_commanded)
        values += (age(own.awake_at, now), age(own.commanded_stamp, stamp))
        values += (own.was_away,)
        values += (min(world.number - own.commanded_number, times.states + 1),)
        if own.was_away:
            values += (stamp - now + own.clock_minus_stamp,)
            values += (age(own.evidence_stamp, stamp), age(own.evidence_at, now))
            values += (own.in_time,)
    missed = None if side.missed is None else age(side.missed, stamp)
    channel = (side.commands, side.modes, side.batch, side.late, side.withheld, side.lost, missed)
    return side.state, side.since, channel, values


@dataclass(frozen=True)
class Exploration:
    """How many worlds were seen, and the first way to a fault."""

    worlds: int
    fault: str
    way: tuple


def explore(start: World, most_events: int, losses: int = 1) -> Exploration:
    """Breadth first through all worlds that so many events lead to, at any moment each."""
    seen = {(0, signature(start))}
    parents: dict = {(0, signature(start)): None}
    queue = deque([start])
    while queue:
        world = queue.popleft()
        key = (world.events, signature(world))
        for label, new in successors(world, losses, world.events < most_events):
            new.events += bool(label[0])
            new_key = (new.events, signature(new))
            if new.fault:
                return Exploration(len(seen), new.fault, (*_way(parents, key), label))
            if new_key not in seen:
                seen.add(new_key)
                parents[new_key] = (key, label)
                queue.append(new)
    return Exploration(len(seen), "", ())


def _way(parents: dict, key: tuple) -> tuple:
    way = []
    while parents[key] is not None:
        key, label = parents[key]
        way.append(label)
    return tuple(reversed(way))
