"""What may be wrong with an arm, its wires and its model, or happen to it: the catalogue.

An `Accident` has a `Fault`: what becomes of commands on their way to the drives, of states on their
way back, and what happens to the arm meanwhile.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from broken_arm import PERIOD, TOOL, Kind, changed, described

from rnea_control.dynamics import Workspace, gravity
from rnea_control.model import RobotModel

if TYPE_CHECKING:
    from accident_run import Run

States = tuple[np.ndarray, np.ndarray]


@dataclass
class Fault:
    """What is wrong in one run; the default is nothing.

    Attributes:
        commands: makes of commands what the drives get.
        states: makes of positions and velocities what is measured.
        stamp: makes of the time of a state what stamps it, [s].
        reaches: whether a state reaches the controller.
        begins: what happens to the arm when the fault begins.
        goes_on: what happens to it in each period from then on.
        model: that of the controller; None for the arm's own.
        settings: of the controller.
        arm: of the `BrokenArm`.
    """

    commands: Callable[[np.ndarray, Run], np.ndarray] = lambda tau, run: tau
    states: Callable[[np.ndarray, np.ndarray, Run], States] = lambda q, v, run: (q, v)
    stamp: Callable[[float], float] = lambda t: t
    reaches: Callable[[Run], bool] = lambda run: True
    begins: Callable[[Run], None] = lambda run: None
    goes_on: Callable[[Run], None] = lambda run: None
    model: RobotModel | None = None
    settings: dict = field(default_factory=dict)
    arm: dict = field(default_factory=dict)


class When(Enum):
    """When a fault begins."""

    ACTIVATED = "from the activation on"  # then a gentle and a fast motion
    RESTING = "at rest"
    GENTLE = "in gentle motion"
    FAST = "in fast motion"


class Accident(NamedTuple):
    """One thing that is wrong.

    Attributes:
        group: of accidents that count as one in a table.
        title: what is wrong, of this joint.
        fault: makes it, for one run.
        when: the times at which it is tried.
        names: what a message must have to name the cause, a regular expression.
        wiring: whether it is a sign, an order or a unit.
    """

    group: str
    title: str
    fault: Callable[[], Fault]
    when: tuple[When, ...]
    names: str = ""
    wiring: bool = False


ALWAYS = (When.ACTIVATED,)
ANY_TIME = (When.RESTING, When.GENTLE, When.FAST)
IN_MOTION = (When.GENTLE, When.FAST)


# What becomes of commands.


def _torque_scaled(factor: float, joint: int | None = None) -> Fault:
    scale = slice(None) if joint is None else joint

    def commands(tau: np.ndarray, _: Run) -> np.ndarray:
        tau[scale] *= factor
        return tau

    return Fault(commands=commands)


def _torque_order(order: list[int]) -> Fault:
    return Fault(commands=lambda tau, run: tau[order])


def _late(periods: int) -> Fault:
    under_way: deque[np.ndarray] = deque()

    def commands(tau: np.ndarray, _: Run) -> np.ndarray:
        under_way.append(tau)
        return under_way.popleft() if len(under_way) > periods else np.zeros_like(tau)

    return Fault(commands=commands)


def _gravity_added(kind: Kind) -> Fault:
    model = described(kind)
    ws, torque = Workspace(model), np.zeros(model.nv)
    return Fault(commands=lambda tau, run: tau + gravity(model, ws, run.arm.q, torque))


# What becomes of states.


def _state_scaled(joint: int | None, position: float, velocity: float) -> Fault:
    scaled = slice(None) if joint is None else joint

    def states(q: np.ndarray, v: np.ndarray, _: Run) -> States:
        q[scaled] *= position
        v[scaled] *= velocity
        return q, v

    return Fault(states=states)


def _state_order(order: list[int]) -> Fault:
    return Fault(states=lambda q, v, run: (q[order], v[order]))


def _offset(joint: int, degrees: float) -> Fault:
    def states(q: np.ndarray, v: np.ndarray, _: Run) -> States:
        q[joint] += math.radians(degrees)
        return q, v

    return Fault(states=states)


def _noisy(velocity: float, position: float = 0.0) -> Fault:
    def states(q: np.ndarray, v: np.ndarray, run: Run) -> States:
        n = len(q)
        return q + run.rng.normal(0.0, position, n), v + run.rng.normal(0.0, velocity, n)

    return Fault(states=states)


def _velocity_late(periods: int) -> Fault:
    under_way: deque[np.ndarray] = deque()

    def states(q: np.ndarray, v: np.ndarray, _: Run) -> States:
        under_way.append(v)
        return q, under_way.popleft() if len(under_way) > periods else under_way[0]

    return Fault(states=states)


def _velocity_filtered(frequency: float) -> Fault:
    share, last = -math.expm1(-2.0 * math.pi * frequency * PERIOD), [np.zeros(0)]

    def states(q: np.ndarray, v: np.ndarray, _: Run) -> States:
        before = last[0] if len(last[0]) else v
        last[0] = before + share * (v - before)
        return q, last[0].copy()

    return Fault(states=states)


def _glitch(joint: int, size: float, every: int = 0) -> Fault:
    def states(q: np.ndarray, v: np.ndarray, run: Run) -> States:
        since = round((run.t - run.fault_at) / PERIOD)
        if since == 0 or (every and since % every == 0):
            q[joint] += size
        return q, v

    return Fault(states=states)


def _jittering(size: float) -> Fault:
    rng, last = np.random.default_rng(0), [-1.0]

    def stamp(t: float) -> float:
        last[0] = max(t + rng.uniform(-size, size), last[0] + 1e-6)
        return last[0]

    return Fault(stamp=stamp)


# What happens to the arm.


def _stiction(share: float) -> Fault:
    return Fault(begins=lambda run: run.arm.rub(share * run.arm.model.effort_limit))


def _cable(joint: int, constant: float, stiffness: float) -> Fault:
    def goes_on(run: Run) -> None:
        way = run.arm.q[joint] - run.start[joint]
        torque = -(constant + stiffness * way) * run.arm.model.effort_limit[joint]
        run.arm.joint_force[joint] = torque

    return Fault(goes_on=goes_on)


def _weak(share: float) -> Fault:
    def begins(run: Run) -> None:
        run.arm.drives = share * run.arm.model.effort_limit

    return Fault(begins=begins)


def _stop_ahead(joint: int) -> Fault:
    def begins(run: Run) -> None:
        run.arm.stop(joint, math.copysign(0.002, run.course.goal[joint] - run.start[joint]))

    return Fault(begins=begins)


def _payload(before: float, after: float, told: float, kind: Kind) -> Fault:
    model = None
    if told:
        model = described(kind)
        model.set_payload(model.child_links[-1], told, tuple(TOOL))
    return Fault(begins=lambda run: run.arm.carry(after), model=model, arm={"payload": before})


def _push(force: float, duration: float, downward: bool) -> Fault:
    direction = [np.array([0.0, 0.0, -1.0])]

    def begins(run: Run) -> None:
        if not downward:
            x, y, _ = run.arm.tool_at()
            direction[0] = np.array([-y, x, 0.0]) / max(math.hypot(x, y), 1e-6)

    def goes_on(run: Run) -> None:
        run.arm.force = force * direction[0] * (run.t < run.fault_at + duration)

    return Fault(begins=begins, goes_on=goes_on)


def _obstacle(stiffness: float, damping: float) -> Fault:
    """A plane across the way of the tool, in the middle of the motion."""

    def begins(run: Run) -> None:
        middle = 0.5 * (run.start + run.course.goal)
        point = run.arm.tool_at(middle)
        ahead = run.arm.tool_at(middle + 0.01 * (run.course.goal - run.start)) - point
        normal = ahead / np.linalg.norm(ahead)

        def contact(at: np.ndarray, velocity: np.ndarray) -> np.ndarray:
            depth = float((at - point) @ normal)
            pressed = stiffness * depth + damping * float(velocity @ normal)
            return -normal * max(pressed, 0.0) if depth > 0.0 else np.zeros(3)

        run.arm.contact = contact

    return Fault(begins=begins, arm={"steps": 4})


# What is wrong with the model.


def _masses(kind: Kind, factor: float, joint: int | None = None) -> Fault:
    model = described(kind)
    links = None if joint is None else {model.child_links[joint]}

    def change(root: ET.Element) -> None:
        for link in root.findall("link"):
            inertial = link.find("inertial")
            if inertial is None or (links is not None and link.get("name") not in links):
                continue
            elements = (inertial.find("mass"), inertial.find("inertia"))
            for element in (each for each in elements if each is not None):
                for name, value in element.attrib.items():
                    element.set(name, repr(max(factor, 1e-6) * float(value)))

    return Fault(model=changed(kind, change))


def _rotors(kind: Kind, factor: float) -> Fault:
    model = described(kind)
    model.armature = factor * model.armature
    return Fault(model=model)


def _wires(kind: Kind) -> Iterator[Accident]:
    nv = described(kind).nv
    base, first, second, _ = kind.telling
    sign, order, unit = "wrong sign|other sign", "order|exchanged", "unit|times as large|too small"

    def pair(a: int, b: int) -> list[int]:
        places = list(range(nv))
        places[a], places[b] = b, a
        return places

    for j in range(nv):
        yield Accident(
            "the torque of a joint has the wrong sign",
            f"torque of joint {j + 1} reversed",
            lambda j=j: _torque_scaled(-1.0, j),
            ALWAYS,
            sign,
            True,
        )
    for j in kind.telling:
        yield Accident(
            "position and velocity of a joint have the wrong sign",
            f"state of joint {j + 1} reversed",
            lambda j=j: _state_scaled(j, -1.0, -1.0),
            ALWAYS,
            sign,
            True,
        )
        yield Accident(
            "the velocity of a joint has the wrong sign",
            f"velocity of joint {j + 1} reversed",
            lambda j=j: _state_scaled(j, 1.0, -1.0),
            ALWAYS,
            sign,
            True,
        )
    title = "all torques reversed"
    all_signs = "all torques have the wrong sign"
    yield Accident(all_signs, title, lambda: _torque_scaled(-1.0), ALWAYS, sign, True)
    for a, b in ((first, second), (base, first), (nv - 2, nv - 1)):
        joints = f"of joints {a + 1} and {b + 1} exchanged"
        yield Accident(
            "the commands of two joints are exchanged",
            f"commands {joints}",
            lambda a=a, b=b: _torque_order(pair(a, b)),
            ALWAYS,
            order,
            True,
        )
        yield Accident(
            "the states of two joints are exchanged",
            f"states {joints}",
            lambda a=a, b=b: _state_order(pair(a, b)),
            ALWAYS,
            order,
            True,
        )
    reverse = list(range(nv))[::-1]
    title = "commands come in reverse order"
    yield Accident(title, title, lambda: _torque_order(reverse), ALWAYS, order, True)
    for factor in (0.001, 0.1, 10.0, 100.0, 1000.0):
        yield Accident(
            "all torques arrive 10 to 1000 times too large or too small",
            f"torques times {factor:g}",
            lambda factor=factor: _torque_scaled(factor),
            ALWAYS,
            unit,
            True,
        )
    for factor in (0.1, 10.0):
        yield Accident(
            "the torque of a joint arrives 10 times too large or too small",
            f"torque of joint {first + 1} times {factor:g}",
            lambda factor=factor: _torque_scaled(factor, first),
            ALWAYS,
            unit,
            True,
        )


def _sensors(kind: Kind) -> Iterator[Accident]:
    _, first, _, wrist = kind.telling
    for j in (first, wrist):
        for degrees in (5, 30, 90):
            yield Accident(
                f"an encoder is off by {degrees} degrees",
                f"encoder of joint {j + 1} off by {degrees} degrees",
                lambda j=j, degrees=degrees: _offset(j, degrees),
                ALWAYS,
                "zero of",
            )
        for factor in (0.5, 2.0):
            yield Accident(
                "a gear ratio is wrong by 2",
                f"state of joint {j + 1} times {factor:g}",
                lambda j=j, factor=factor: _state_scaled(j, factor, factor),
                ALWAYS,
                "gear",
            )
    for title, of_velocity in (
        ("velocities are zero", lambda: _state_scaled(None, 1.0, 0.0)),
        ("velocities are in degrees", lambda: _state_scaled(None, 1.0, math.degrees(1.0))),
        ("velocities are half", lambda: _state_scaled(None, 1.0, 0.5)),
        ("velocities come 20 ms late", lambda: _velocity_late(20)),
        ("velocities are filtered at 10 Hz", lambda: _velocity_filtered(10.0)),
    ):
        yield Accident(title, title, of_velocity, ALWAYS, "veloc")
    for periods in (10, 20, 50):
        title = f"commands act {periods} ms late"
        yield Accident(title, title, lambda n=periods: _late(n), ALWAYS, "late")
    for factor in (0.5, 2.0):
        yield Accident(
            "stamps run at half or twice the speed",
            f"stamps at {factor:g} of the speed",
            lambda factor=factor: Fault(stamp=lambda t: factor * t),
            ALWAYS,
            "stamp|clock",
        )
    for size in (0.5, 2.0 * math.pi):
        yield Accident(
            "one position is far off",
            f"one position of joint {first + 1} {size:.2g} rad off",
            lambda size=size: _glitch(first, size),
            ANY_TIME,
        )


def _mounting(kind: Kind) -> Iterator[Accident]:
    g = 9.81
    for title, where in (
        ("the arm hangs on a wall", (g, 0.0, 0.0)),
        ("the arm hangs on another wall", (0.0, g, 0.0)),
        ("the arm hangs from the ceiling", (0.0, 0.0, g)),
    ):
        mounted = lambda where=where: Fault(arm={"gravity": where})  # noqa: E731
        yield Accident(title, title, mounted, ALWAYS, "gravity")
    title = "the hardware adds gravity, and the YAML says that it does not"
    yield Accident(title, title, lambda: _gravity_added(kind), ALWAYS, "gravity")
    title = "the YAML says that the hardware adds gravity, and it does not"
    settings = {"hardware_compensates_gravity": True}
    yield Accident(title, title, lambda: Fault(settings=settings), ALWAYS, "gravity")


def _encounters(kind: Kind) -> Iterator[Accident]:
    base, first, second, _ = kind.telling
    blocked = "in the way|does not move|slowed"
    for j in (first, second):
        title = f"brake of joint {j + 1} closes"
        closes = lambda j=j: Fault(begins=lambda run: run.arm.brake([j]))  # noqa: E731
        yield Accident("the brake of a joint closes", title, closes, IN_MOTION, blocked)
        title = f"stop in the way of joint {j + 1}"
        stops = lambda j=j: _stop_ahead(j)  # noqa: E731
        yield Accident("a mechanical stop is in the way", title, stops, IN_MOTION, blocked)
    for force in (50.0, 150.0):
        for downward in (False, True):
            for duration in (0.2, 1e9):
                lasting = "for 0.2 s" if duration < 1.0 else "without end"
                where = "downward" if downward else "to the side"
                title = f"push of {force:g} N {where}, {lasting}"
                yield Accident(
                    f"a person pushes the tool with {force:g} N {lasting}",
                    title,
                    lambda f=force, d=duration, down=downward: _push(f, d, down),
                    ANY_TIME,
                    "person|drives|collision",
                )
    for title, stiffness, damping in (
        ("the tool meets a person, 10 N/mm", 1e4, 50.0),
        ("the tool meets a hand, 75 N/mm", 7.5e4, 100.0),
        ("the tool meets a steel table, 1000 N/mm", 1e6, 300.0),
    ):
        meets = lambda k=stiffness, c=damping: _obstacle(k, c)  # noqa: E731
        yield Accident(title, title, meets, IN_MOTION, f"person|drives|collision|{blocked}")
    title = f"cable pulls joint {base + 1} back by 40 % of its limit per rad"
    yield Accident("a cable pulls a joint back", title, lambda: _cable(base, 0.0, 0.4), ALWAYS)
    for share in (0.5, 0.25):
        title = f"drives give {100 * share:.0f} % of their torque"
        yield Accident(title, title, lambda share=share: _weak(share), ANY_TIME)
    title = "3 kg are grabbed, and the payload is not set"
    yield Accident(title, title, lambda: _payload(0.0, 3.0, 0.0, kind), ANY_TIME)
    title = "3 kg are dropped that the model has"
    yield Accident(title, title, lambda: _payload(3.0, 0.0, 3.0, kind), ANY_TIME)
    for factor in (0.0, 0.5, 2.0):
        title = f"the masses of the model are {factor:g} times the arm's"
        yield Accident(title, title, lambda f=factor: _masses(kind, f), ALWAYS, "model|mass|load")


def accidents(kind: Kind) -> list[Accident]:
    """All of them, for one kind of arm."""
    return [*_wires(kind), *_sensors(kind), *_mounting(kind), *_encounters(kind)]


def healthy(kind: Kind) -> list[Accident]:
    """What a right arm may be like: nothing may stop it."""
    cases: list[tuple[str, Callable[[], Fault]]] = [
        ("as described", Fault),
        ("velocity noise of 0.01 rad/s", lambda: _noisy(0.01, 2e-5)),
        ("velocity noise of 0.05 rad/s", lambda: _noisy(0.05, 1e-4)),
        ("masses 10 % too small", lambda: _masses(kind, 0.9)),
        ("masses 20 % too small", lambda: _masses(kind, 0.8)),
        ("masses 10 % too large", lambda: _masses(kind, 1.1)),
        ("half of the rotors unknown", lambda: _rotors(kind, 0.5)),
        ("three times the friction", lambda: Fault(arm={"friction": 3.0})),
        ("1 kg that the model lacks", lambda: Fault(arm={"payload": 1.0})),
        ("commands that act 2 ms late", lambda: _late(2)),
        ("states at 500 Hz", lambda: Fault(reaches=lambda run: run.tick % 2 == 0)),
        ("states at 100 Hz", lambda: Fault(reaches=lambda run: run.tick % 10 == 0)),
        ("10 % of the states lost", lambda: Fault(reaches=lambda run: run.rng.random() > 0.1)),
        ("stamps that jitter by 0.3 ms", lambda: _jittering(3e-4)),
        ("velocities filtered at 50 Hz", lambda: _velocity_filtered(50.0)),
        ("velocities that are 2 ms late", lambda: _velocity_late(2)),
        ("stiction of a tenth of the limits", lambda: _stiction(0.1)),
    ]
    return [Accident("healthy", title, fault, ALWAYS) for title, fault in cases]
