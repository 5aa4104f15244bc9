"""Checks of streams of targets, of a planner's gains, and of stiffness and wrench of the tip: their
publishers, and whether their rate fits the rate of the states and the parameters. A topic without a
publisher, or one that is silent, gives no finding. The controller's subscriptions are best effort
and volatile, which no publisher's QoS refuses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from rnea_control.commands.evidence import Evidence, Stream
from rnea_control.commands.finding import Finding, error, warning
from rnea_control.commands.state_checks import FEWEST, state_period
from rnea_control.exceptions import listed

# fmt: off
STREAM_TYPE = error("stream-type",
    "a topic of targets has a publisher of another message type: the controller does not "
    "receive its targets",
    "Publish the type that docs/streams.md or docs/task_space.md names, or rename the topic of "
    "that node")
STREAM_UNHEARD = error("stream-unheard",
    "the controller does not subscribe to a topic that has a publisher: the package of its "
    "messages is not installed where the controller runs",
    "Install the package of the message type, and start the controller again")
STREAM_NO_IMPEDANCE = warning("stream-no-impedance",
    "a stiffness or a wrench of the tip is sent, and no law of the parameters is "
    "`cartesian_impedance`: the controller refuses it",
    "Set `task.control_law` or `control_law` to `cartesian_impedance`, or stop the sender")
STREAM_SECOND_PUBLISHER = warning("stream-second-publisher",
    "two publishers send targets: the controller follows the first one, and refuses the targets of "
    "the second",
    "Stop one of them; the log of the controller names both")
STREAM_TOO_FAST = warning("stream-too-fast",
    "targets come faster than the states: the controller takes the last one before each "
    "state, and drops the others",
    "Send targets at the rate of the states at most; 50 to 200 Hz are enough")
STREAM_TOO_SLOW = warning("stream-too-slow",
    "the period of messages is more than half of their timeout: the arm brakes, or a wrench fades, "
    "at each lost one",
    "Send them more often, or set a longer timeout, `stream.target_timeout` or `control_timeout`")
STREAM_BANDWIDTH = warning("stream-bandwidth",
    "`stream.bandwidth` is too high for the rate of the targets or the states: the arm jolts at "
    "each target, or at late ones",
    "Lower `stream.bandwidth`, or raise the rate that the message names")
# fmt: on

IMPEDANCE = "cartesian_impedance"
REFUSED = "stream targets of another publisher"  # counter in the controller's report
FEWEST_TARGETS = 3  # number of targets from which their period is estimated
RATE_TOLERANCE = 0.1  # relative excess of the targets' rate over the states' that is reported
# Bounds of the bandwidth, by benchmark/stream_followers.py.
MOST_PER_TARGET = 2.0  # bandwidth times period of the targets
MOST_PER_STATE = 0.5  # bandwidth times period of the states


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings about streams of targets."""
    yield from _publishers(evidence)
    states = evidence.arm_states
    if len(evidence.states_topic.publishers) > 1 or len(states) < FEWEST:
        return
    period = state_period(states)
    # Targets have no time of a simulation: their times of receipt are compared with the states'.
    received = (states[-1].received - states[0].received) / (len(states) - 1)
    pace = period / received if evidence.simulated and received > 0.0 else 1.0
    for stream in evidence.streams:
        # Targets of two publishers tell no period.
        if len(stream.topic.publishers) <= 1 and len(stream.received) >= FEWEST_TARGETS:
            yield from _timing(evidence, stream, period, pace)


def _publishers(evidence: Evidence) -> Iterator[Finding]:
    for stream in evidence.streams:
        topic, kind = stream.topic, stream.type
        if wrong := [f"{one.node} ({one.type})" for one in topic.publishers if one.type != kind]:
            yield STREAM_TYPE.found(f"{topic.name}: {listed(wrong)}; targets are {kind}")
        elif _is_unheard(evidence, stream):
            yield STREAM_UNHEARD.found(
                f"{topic.name}: {listed(sorted({one.node for one in topic.publishers}))} publishes "
                f"{kind}, which {evidence.controller} does not receive"
            )
        laws = evidence.settings.get("control_law"), evidence.settings.get("task.control_law")
        if stream.of_impedance and IMPEDANCE not in laws:
            yield STREAM_NO_IMPEDANCE.found(
                f"{topic.name} has a publisher, control_law is {laws[0]}, and task.control_law is "
                f"{laws[1]}"
            )
    reports = [each.values for each in evidence.diagnostics.get(evidence.controller, ())]
    counts = [int(values[REFUSED]) for values in reports if REFUSED in values]
    if counts and counts[-1] > counts[0]:
        who = sorted({one.node for each in evidence.streams for one in each.topic.publishers})
        yield STREAM_SECOND_PUBLISHER.found(
            f"{evidence.controller} has refused {counts[-1] - counts[0]} targets of another "
            f"publisher than the first; publishers of targets: {listed(who) or 'none any more'}"
        )


def _is_unheard(evidence: Evidence, stream: Stream) -> bool:
    """True if the controller, which receives states, does not subscribe to the topic."""
    hears = [
        any(one.node == evidence.controller for one in topic.subscriptions)
        for topic in (evidence.states_topic, stream.topic)
    ]
    return hears == [True, False]


def _timing(evidence: Evidence, stream: Stream, states: float, pace: float) -> Iterator[Finding]:
    """Findings about the period of a stream.

    Args:
        states: period of the states [s].
        pace: time of the states per time by the steady clock.
    """
    topic = stream.topic.name
    timeout = evidence.settings.get(stream.timeout) if stream.timeout else math.inf
    bandwidth = evidence.settings.get("stream.bandwidth")
    periods = pace * np.diff(stream.received)
    period = float(np.median(periods))
    if period > 0.5 * timeout:
        yield STREAM_TOO_SLOW.found(
            f"{topic} has a target every {period:.3g} s, and {stream.timeout} is {timeout:g} s"
        )
        return
    going_on = periods[periods <= timeout]  # without the pauses of the stream
    period = max(float(np.mean(going_on)), 1e-6)
    if states > (1.0 + RATE_TOLERANCE) * period:
        yield STREAM_TOO_FAST.found(
            f"{topic} has {1.0 / period:.4g} Hz, and {evidence.states_topic.name} has "
            f"{1.0 / states:.4g} Hz"
        )
    if not stream.filtered:
        return
    for what, each, most in (
        ("targets", max(period, states), MOST_PER_TARGET),
        ("states", states, MOST_PER_STATE),
    ):
        if bandwidth * each > most:
            yield STREAM_BANDWIDTH.found(
                f"{topic}: stream.bandwidth is {bandwidth:g} rad/s; with {what} at "
                f"{1.0 / each:.4g} Hz at most {most / each:.3g} rad/s are smooth"
            )
