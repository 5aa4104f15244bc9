"""Checks of joint_states: joints, values, rate, publishers, and stamps."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.commands.evidence import SIM_TIME, Evidence, State
from rnea_control.commands.finding import Code, Finding, error, warning
from rnea_control.commands.manager_checks import is_gone
from rnea_control.exceptions import ParameterError, listed
from rnea_control.loop.handover import HandoverTimes
from rnea_control.ros import middleware
from rnea_control.ros.node_parameters import handover_times

# fmt: off
STATES_MISSING = error("states-missing",
    "no joint state was received",
    "Load and activate joint_state_broadcaster; compare namespaces and ROS_DOMAIN_ID")
STATES_LACK_JOINTS = error("states-lack-joints",
    "joint states lack controlled joints",
    "Correct `joints`, or export position and velocity of these joints in the <ros2_control> tag")
STATES_NAME_TWICE = error("states-name-twice",
    "a message names a joint twice; the controller refuses it",
    "Give each joint one state interface of each kind")
STATES_INCOMPLETE = error("states-incomplete",
    "positions or velocities are missing or not finite; the controller refuses such states",
    "Export both state interfaces, position and velocity, of all joints in the <ros2_control> tag")
STATES_SECOND_PUBLISHER = error("states-second-publisher",
    "several nodes publish joint_states, and the controller would see the arm jump",
    "Stop all publishers but one, or remap the others, such as joint_state_publisher")
RATE_TOO_LOW = error("rate-too-low",
    "the time between two states is longer than `joint_state_gap`: each period counts as a gap",
    "Raise update_rate of controller_manager; 500 Hz or more is usual for torque control")
RATE_LOW = warning("rate-low",
    "seven states take longer than `command_timeout`, which delays the sentinel's reaction",
    "Raise update_rate of controller_manager, or command_timeout")
RATE_DIFFERS = warning("rate-differs",
    "the rate of the states is not the update_rate of controller_manager",
    "Give controller_manager real-time priority and CPU time; look for overruns in its log")
STATES_PAUSE = warning("states-pause",
    "states were missing for longer than `joint_state_gap`; the controller then slows down the "
    "motion",
    "If the stamps pause too, controller_manager was paused; else the messages were late. "
    f"docs/realtime.md has the remedies; for late messages the {middleware.NAME} profile")
STATES_JITTER = warning("states-jitter",
    "the period of the states varies by more than `diagnostics.period_jitter.warn`",
    "Run controller_manager and other programs on different CPUs (docs/realtime.md)")
STATES_OLD = warning("states-old",
    "the age of states at receipt exceeds `diagnostics.state_age.warn`",
    "Run the controller on the computer of controller_manager, synchronize the clocks (chrony), or "
    "reduce the load of the computer")
CLOCK_MISSING = error("clock-missing",
    "use_sim_time is true without a /clock: missing states would never be detected",
    "On a robot set use_sim_time to false everywhere; in simulation publish /clock (ros_gz_bridge)")
CLOCK_UNUSED = error("clock-unused",
    "the states are stamped with the time of /clock, and the controller does not use it",
    "Set use_sim_time to true for rnea_controller and rnea_sentinel")
SIM_TIME_DIFFERS = error("sim-time-differs",
    "use_sim_time is true for some nodes and false for others",
    "Set use_sim_time to the same value for all of them")
STAMPS_ZERO = error("stamps-zero",
    "joint states have no stamp; the controller's time stands still, and no motion advances",
    "Let the publisher stamp each message, as joint_state_broadcaster does")
STAMPS_STAND_STILL = error("stamps-stand-still",
    "the stamps of the states do not advance, and with them the controller's time",
    "Restart the publisher; in simulation, check whether it is paused")
STAMPS_GO_BACK = error("stamps-go-back",
    "stamps run backward; the controller refuses such states",
    "Look for a second publisher, or a clock that is set while the robot runs")
STAMPS_OF_ANOTHER_CLOCK = warning("stamps-of-another-clock",
    "the stamps are of another clock than the controller's; trajectories with a start time begin "
    "wrongly, and the age of states is unknown",
    "Synchronize the computers' clocks (chrony); in simulation compare use_sim_time of all nodes")
# fmt: on

RATE_TOLERANCE = 0.1  # relative deviation from update_rate that is reported
OTHER_CLOCK = 1_000_000_000  # age of states that means a stamp of another clock [ns]
FEWEST = 10  # number of states from which the rate is estimated


def are_complete(states: list[State], joints: tuple[str, ...]) -> bool:
    """True if each state has one finite position and velocity for every joint."""
    return bool(states) and all(_fault(state, joints) is None for state in states)


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings about joint_states, clocks and stamps."""
    yield from _publishers(evidence)
    if evidence.states:
        yield from _content(evidence)
        if len(evidence.states_topic.publishers) <= 1 and len(evidence.arm_states) >= FEWEST:
            yield from _timing(evidence)
    yield from _clock(evidence)
    if evidence.arm_states:
        yield from _stamps(evidence)


def _publishers(evidence: Evidence) -> Iterator[Finding]:
    topic = evidence.states_topic
    nodes = listed(sorted(publisher.node for publisher in topic.publishers))
    if len(topic.publishers) > 1:
        yield STATES_SECOND_PUBLISHER.found(f"{topic.name}: {nodes}")
    if not evidence.states and not is_gone(evidence):
        asleep = [
            f", and {each.name} is {each.state}"
            for each in evidence.controllers or ()
            if each.type.startswith("joint_state_broadcaster/") and each.state != "active"
        ]
        yield STATES_MISSING.found(
            f"no message on {topic.name} in {evidence.seconds:g} s; {nodes or 'no node'} "
            f"publishes it{''.join(asleep[:1])}"
        )


def _content(evidence: Evidence) -> Iterator[Finding]:
    topic, joints = evidence.states_topic.name, evidence.settings.joints
    states = evidence.arm_states
    if joints and not states:
        names = sorted({name for state in evidence.states for name in state.names})
        yield STATES_LACK_JOINTS.found(
            f"{topic} has none of {listed(joints)}; it has {listed(names) or 'no names'}"
        )
    faults = Counter(filter(None, (_fault(state, joints) for state in states)))
    for (code, words), count in faults.items():
        yield code.found(f"{topic}: {words} (in {count} of {len(states)} messages)")


def _fault(state: State, joints: tuple[str, ...]) -> tuple[Code, str] | None:
    """Code and description of the fault of a message; None without a fault."""
    if missing := [joint for joint in joints if joint not in state.names]:
        return STATES_LACK_JOINTS, f"{listed(missing)} missing"
    if twice := sorted(name for name, count in Counter(state.names).items() if count > 1):
        return STATES_NAME_TWICE, f"{listed(twice)} twice"
    for quantity in ("position", "velocity"):
        values = getattr(state, quantity)
        if len(values) != len(state.names):
            words = f"{len(values)} {quantity} values for {len(state.names)} names"
            return STATES_INCOMPLETE, words
        numbers = zip(joints, state.of(joints, quantity), strict=True)
        if broken := [joint for joint, number in numbers if not math.isfinite(number)]:
            return STATES_INCOMPLETE, f"{quantity} of {listed(broken)} is not finite"
    return None


def _steps(states: list[State]) -> tuple[FloatArray, FloatArray]:
    """Times from each state to the next, by their receipt and by their stamps, [s]."""
    received = np.diff([state.received for state in states])
    return received, 1e-9 * np.diff([state.stamp for state in states])


def state_period(states: list[State]) -> float:
    """Period of the states [s], by their stamps if these advance."""
    received, stamped = _steps(states)
    if (stamped > 0.0).all():
        return float(np.median(stamped))
    return float(np.mean(stamped if stamped.any() else received))


def _timing(evidence: Evidence) -> Iterator[Finding]:
    topic, settings, states = evidence.states_topic.name, evidence.settings, evidence.arm_states
    received, stamped = _steps(states)
    advances = bool((stamped > 0.0).all())
    period = state_period(states)
    rate, gap, timeout = 1.0 / period, settings.get("joint_state_gap"), math.inf
    with suppress(ParameterError):  # reported by configuration_checks
        timeout = handover_times(settings, evidence.simulated)[1]
    if period >= gap:
        yield RATE_TOO_LOW.found(f"{topic} has {rate:.4g} Hz, and joint_state_gap is {gap:g} s")
    elif HandoverTimes.of_sentinel().states * period > timeout:
        yield RATE_LOW.found(f"{topic} has {rate:.4g} Hz, and command_timeout is {timeout:g} s")
    nominal = evidence.parameter(evidence.manager, "update_rate")
    if nominal and abs(rate / nominal - 1.0) > RATE_TOLERANCE:
        yield RATE_DIFFERS.found(
            f"{topic} has {rate:.4g} Hz, and {evidence.manager} has update_rate {nominal}"
        )
    if evidence.simulated or not advances:
        return  # simulated time does not advance with the steady clock
    if received.max() > gap > period:
        yield STATES_PAUSE.found(
            f"{topic}: the longest pause was {1e3 * received.max():.3g} ms, by the stamps "
            f"{1e3 * stamped.max():.3g} ms; joint_state_gap is {1e3 * gap:g} ms"
        )
    jitter = float(np.quantile(np.abs(received - stamped), 0.99))
    bound = settings.get("diagnostics.period_jitter.warn")
    if jitter > bound:
        yield STATES_JITTER.found(
            f"{topic}: 99 % of the periods are within {1e3 * jitter:.3g} ms of that of the stamps; "
            f"the bound is {1e3 * bound:g} ms"
        )
    ages = [state.clock - state.stamp for state in states]
    oldest, bound = np.quantile(ages, 0.99), settings.get("diagnostics.state_age.warn")
    if 1e9 * bound < oldest < OTHER_CLOCK:
        yield STATES_OLD.found(
            f"{topic}: 99 % of the states are at most {1e-6 * oldest:.3g} ms old at receipt; the "
            f"bound is {1e3 * bound:g} ms"
        )


def _clock(evidence: Evidence) -> Iterator[Finding]:
    nodes = evidence.controller, evidence.sentinel, evidence.manager
    known = {node: evidence.parameter(node, SIM_TIME) for node in nodes}
    known = {node: bool(value) for node, value in known.items() if value is not None}
    if len(set(known.values())) > 1:
        words = [f"{str(value).lower()} for {node}" for node, value in known.items()]
        yield SIM_TIME_DIFFERS.found(f"{SIM_TIME} is {listed(words)}")
    if evidence.simulated and evidence.clock_times == 0:
        topic, count = evidence.clock_topic.name, len(evidence.clock_topic.publishers)
        yield CLOCK_MISSING.found(
            f"{evidence.settings.where}: {SIM_TIME} is true; {topic} has {count} publisher(s), and "
            f"no message arrived in {evidence.seconds:g} s"
        )


def _stamps(evidence: Evidence) -> Iterator[Finding]:
    topic, states, simulated = evidence.states_topic.name, evidence.arm_states, evidence.simulated
    stamps = np.array([state.stamp for state in states])
    back = int((np.diff(stamps) < 0).sum())
    age, clock = _typical_age(states, simulated), evidence.clock_topic.name
    if not stamps.any():
        yield STAMPS_ZERO.found(f"{topic}: all {len(states)} stamps are 0")
    elif len(stamps) > 1 and (stamps == stamps[0]).all():
        yield STAMPS_STAND_STILL.found(f"{topic}: all {len(states)} stamps are the same")
    elif back and len(evidence.states_topic.publishers) <= 1:
        yield STAMPS_GO_BACK.found(f"{topic}: {back} of {len(stamps)} stamps go back")
    elif not simulated and abs(_typical_age(states, simulated=True)) < OTHER_CLOCK <= abs(age):
        yield CLOCK_UNUSED.found(
            f"{topic}: the stamps are those of {clock}, and {SIM_TIME} is false"
        )
    elif abs(age) >= OTHER_CLOCK:
        off = f"{abs(1e-9 * age):.3g} s {'behind' if age > 0 else 'ahead of'}"
        whose = clock if simulated else "this computer's clock"
        yield STAMPS_OF_ANOTHER_CLOCK.found(f"{topic}: the stamps are {off} {whose}")


def _typical_age(states: list[State], simulated: bool) -> float:
    """Median age of states at receipt by the system clock or /clock [ns]; NaN without it."""
    times = ((state.simulated if simulated else state.clock, state.stamp) for state in states)
    ages = [now - stamp for now, stamp in times if now is not None]
    return float(np.median(ages)) if ages else math.nan
