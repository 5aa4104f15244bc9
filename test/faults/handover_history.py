"""Random histories of a hand-over over real processes: drawn, told, and judged by the commands."""

from __future__ import annotations

import random
from collections import deque
from itertools import groupby
from typing import NamedTuple

import numpy as np

from rnea_control.control.output_stage import LATENESS

PROCESSES = ("hardware", "sentinel", "controller")
ACTIONS = {"stop": 4, "kill": 2, "start": 1, "resume": 2, "move": 1}  # and how often
RATE = 500.0  # of the states, [Hz]
RATE_LIMIT = 100.0  # [Nm/s]: in a period about twice what a motion needs
# What docs/handover.md advises for a computer that pauses: this one does, for more than 20 ms.
LEASE, TIMEOUT = 0.030, 0.045
# The output stage counts no longer time than this; its rate is kept over as much, with a period of
# jitter, as in the fault rows, and what each command may be early by, [s].
WINDOW, JITTER = 0.005, 1.0 / RATE
# How long ~/resume may take to have an effect, [s].
LONGEST_REQUEST = 1.0


class Command(NamedTuple):
    """One that was published: when it was, and when it came [s], by which node, and [Nm]."""

    sent: float
    came: float
    who: str
    torque: np.ndarray


class Event(NamedTuple):
    """What is done, when after the begin of the history [s], and to whom."""

    at: float
    action: str
    who: str


def draw(seed: int) -> list[Event]:
    """A history; what cannot be done when its time comes is left out."""
    rng, at, events = random.Random(seed), 0.0, []
    for _ in range(rng.randint(3, 6)):
        at += rng.uniform(0.0, 0.3)
        (action,), who = rng.choices(list(ACTIONS), list(ACTIONS.values())), rng.choice(PROCESSES)
        events.append(Event(at, action, "controller" if action in ("resume", "move") else who))
        if action == "stop":
            events.append(Event(at + rng.uniform(0.005, 0.4), "continue", who))
    return sorted(events)


def told(commands: list[Command], done: list[Event]) -> str:
    """A history for the reader, with times since the first thing done."""
    begin, lines = done[0].at if done else commands[0].sent, [(e.at, e.action, e.who) for e in done]
    for who, group in groupby(commands, lambda command: command.who):
        sent = [command.sent for command in group]
        silence = 1e3 * np.diff(sent).max(initial=0.0)
        lines.append((sent[0], who, f"commands {len(sent)} times, silent for {silence:.1f} ms"))
        lines.append((sent[-1], who, "has commanded"))
    return "\n".join(f"{1e3 * (t - begin):9.1f} ms {what} {who}" for t, what, who in sorted(lines))


def faults(commands: list[Command], done: list[Event]) -> list[str]:
    """What no history may make of the commands; the times of `done` are on their clock."""
    found: list[str] = []
    wakes = [event for event in done if event.action == "continue"]
    requests = [event.at for event in done if event.action == "resume"]
    pauses = [event.at for event in done if event.action == "continue"]  # may be over by then
    new_arm = any(event.who == "hardware" and event.action == "start" for event in done)
    recent = deque(commands[:1])  # those in force within `WINDOW`
    own = {commands[0].who: commands[0]}  # the last one of each node
    for command, after in zip(commands[1:], [*commands[2:], None], strict=True):
        last, before, elapsed = recent[-1], own.get(command.who), WINDOW
        own[command.who], silence = command, command.sent - last.sent
        stray = False
        if command.who != last.who and silence < TIMEOUT:
            woken = [e for e in wakes if e.who == command.who and e.at < command.came]
            asked = [at for at in requests if command.came - LONGEST_REQUEST < at < command.came]
            alone = after is None or after.who != command.who or after.sent - command.sent > TIMEOUT
            stray = bool(woken and alone and before)
            if stray:  # one too many is possible, by the torque before its process was stopped
                wakes.remove(woken[0])
                elapsed = command.came - before.sent
            elif asked and command.who == "controller":
                requests.remove(asked[0])
            elif command.who == "controller" and any(at < command.came for at in pauses):
                pass  # the sentinel gives the arm back by itself
            else:
                found.append(f"two commanders: {command} {1e3 * silence:.1f} ms after {last}")
        while len(recent) > 1 and command.sent - recent[0].sent > WINDOW:
            recent.popleft()
        for count, each in enumerate(reversed(recent), 1):
            time_between = elapsed if stray else min(command.sent - each.sent, WINDOW)
            allowed = RATE_LIMIT * (time_between + JITTER + count * LATENESS)
            step = np.abs(command.torque - each.torque).max()
            if not step <= allowed and not (new_arm and silence > 1.0):
                found.append(f"step: {command} {1e3 * time_between:.1f} ms after {each}")
        if not (stray and after is not None and after.who == last.who):
            recent.append(command)
    return found
