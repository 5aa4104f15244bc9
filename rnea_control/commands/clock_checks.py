"""Whether the nodes and the stamps of the states go by the same clock."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rnea_control.commands.configuration import Configuration
from rnea_control.commands.evidence import Evidence, State
from rnea_control.commands.finding import Finding, error, warning
from rnea_control.commands.state_checks import OTHER_CLOCK, age, of_joints
from rnea_control.exceptions import listed

CLOCK_MISSING = error(
    "clock-missing",
    "use_sim_time is true, and no /clock comes: missing states would never be noticed",
    "On a robot set use_sim_time to false everywhere; in simulation publish /clock (ros_gz_bridge)",
)
CLOCK_UNUSED = error(
    "clock-unused",
    "the states are stamped with the time of /clock, and the controller does not use it",
    "Set use_sim_time to true for rnea_controller and rnea_sentinel",
)
SIM_TIME_DIFFERS = error(
    "sim-time-differs",
    "use_sim_time is true for some nodes and false for others",
    "Set use_sim_time to the same value for all of them",
)
STAMPS_ZERO = error(
    "stamps-zero",
    "joint states have no stamp; the controller's time stands still, and no motion advances",
    "Have the publisher stamp each message; joint_state_broadcaster does",
)
STAMPS_STAND_STILL = error(
    "stamps-stand-still",
    "the stamps of the states do not advance, and with them the controller's time",
    "Start the publisher again; in simulation, see whether it is paused",
)
STAMPS_GO_BACK = error(
    "stamps-go-back",
    "stamps run backward; the controller refuses such states",
    "Look for a second publisher, or a clock that is set while the robot runs",
)
STAMPS_OF_ANOTHER_CLOCK = warning(
    "stamps-of-another-clock",
    "the stamps are not of the clock that the controller uses; trajectories with a start time "
    "begin at the wrong moment, and the age of states is not known",
    "Synchronise the computers' clocks (chrony); in simulation compare use_sim_time of all nodes",
)

SIM_TIME = "use_sim_time"


def check(evidence: Evidence, settings: Configuration) -> Iterator[Finding]:
    """What is wrong with clocks and stamps."""
    simulated = bool(settings.values.get(SIM_TIME))
    known = {
        node: bool(evidence.parameter(node, SIM_TIME))
        for node in (evidence.controller, evidence.sentinel, evidence.manager)
        if evidence.parameter(node, SIM_TIME) is not None
    }
    if len(set(known.values())) > 1:
        words = [f"{str(value).lower()} for {node}" for node, value in known.items()]
        yield SIM_TIME_DIFFERS.found(f"{SIM_TIME} is {listed(words)}")
    if simulated and evidence.clock_times == 0:
        count = len(evidence.clock_topic.publishers)
        yield CLOCK_MISSING.found(
            f"{settings.where}: {SIM_TIME} is true; {evidence.clock_topic.name} has {count} "
            f"publisher(s), and nothing came in {evidence.seconds:g} s"
        )
    states = of_joints(evidence, settings)
    if states:
        yield from _stamps(evidence, simulated, states)


def _stamps(evidence: Evidence, simulated: bool, states: list[State]) -> Iterator[Finding]:
    topic = evidence.states_topic.name
    stamps = np.array([state.stamp for state in states])
    if not stamps.any():
        yield STAMPS_ZERO.found(f"{topic}: all {len(states)} stamps are 0")
        return
    if len(stamps) > 1 and (stamps == stamps[0]).all():
        yield STAMPS_STAND_STILL.found(f"{topic}: all {len(states)} stamps are the same")
        return
    back = int((np.diff(stamps) < 0).sum())
    if back and len(evidence.states_topic.publishers) <= 1:
        yield STAMPS_GO_BACK.found(f"{topic}: {back} of {len(stamps)} stamps go back")
        return
    typical = _typical_age(states, simulated)
    if typical is None or abs(typical) < OTHER_CLOCK:
        return
    other = _typical_age(states, not simulated)
    if not simulated and other is not None and abs(other) < OTHER_CLOCK:
        yield CLOCK_UNUSED.found(
            f"{topic}: the stamps are those of {evidence.clock_topic.name}, and {SIM_TIME} is false"
        )
        return
    clock = evidence.clock_topic.name if simulated else "this computer's clock"
    yield STAMPS_OF_ANOTHER_CLOCK.found(
        f"{topic}: the stamps are {abs(1e-9 * typical):.3g} s "
        f"{'behind' if typical > 0 else 'ahead of'} {clock}"
    )


def _typical_age(states: list[State], simulated: bool) -> float | None:
    ages = [own for state in states if (own := age(state, simulated)) is not None]
    return float(np.median(ages)) if ages else None
