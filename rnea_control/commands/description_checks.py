"""Whether there is a robot description, the same for all nodes, and what is suspicious in it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from rnea_control.commands.configuration import Configuration
from rnea_control.commands.evidence import Evidence
from rnea_control.commands.finding import Finding, error, warning
from rnea_control.exceptions import RobotModelError, listed
from rnea_control.model import RobotModel, RobotModelWarning

DESCRIPTION_MISSING = error(
    "description-missing",
    "there is no robot description",
    "Start robot_state_publisher, or set the parameter robot_description of rnea_controller",
)
DESCRIPTION_NOT_LATCHED = error(
    "description-not-latched",
    "robot_description is published once and not latched: who comes later does not get it",
    "Publish it with durability TRANSIENT_LOCAL, as robot_state_publisher does",
)
DESCRIPTIONS_DIFFER = error(
    "descriptions-differ",
    "nodes have robot descriptions with different joints, limits or inertias",
    "Give all of them the same URDF, and start those that have an old one again",
)
MODEL_SUSPICIOUS = warning(
    "model-suspicious",
    "the URDF is legal but probably not what its author meant",
    "Correct it in the URDF, as the message says",
)
EFFORT_LIMIT_ZERO = error(
    "effort-limit-zero",
    "<limit effort> of a joint is 0 in the URDF: controller and ros2_control command no torque",
    "Write the effort limit of the actuator into the URDF",
)

PARAMETER = "robot_description"


def check(evidence: Evidence, settings: Configuration) -> Iterator[Finding]:
    """What is wrong with the description."""
    topic = evidence.description_topic
    if not settings.description:
        publishers = listed([publisher.node for publisher in topic.publishers])
        yield DESCRIPTION_MISSING.found(
            f"{topic.name} has {f'the publisher {publishers}' if publishers else 'no publisher'}, "
            f"from which nothing came in {evidence.seconds:g} s, and the parameter "
            f"{PARAMETER} is empty"
        )
    loose = [publisher.node for publisher in topic.publishers if not publisher.latched]
    if loose:
        yield DESCRIPTION_NOT_LATCHED.found(f"{topic.name}: {listed(loose)}")
    if settings.description:
        yield from _others(evidence, settings)
    if settings.model is not None:
        yield from _suspicious(settings.model)


def _suspicious(model: RobotModel) -> Iterator[Finding]:
    without = [
        name
        for name, limit in zip(model.joint_names, model.effort_limit, strict=True)
        if limit == 0.0
    ]
    if without:
        yield EFFORT_LIMIT_ZERO.found(f"{model.source}: {listed(without)}")
    for sentence in model.warnings:
        if "<limit effort> is 0" not in sentence:
            yield MODEL_SUSPICIOUS.found(sentence)


def _others(evidence: Evidence, settings: Configuration) -> Iterator[Finding]:
    """Compares what other nodes have with what the controller takes."""
    topic = evidence.description_topic.name
    sources = {
        f"{topic} (message {number})": text for number, text in enumerate(evidence.descriptions, 1)
    }
    for node in evidence.parameters:
        if text := evidence.parameter(node, PARAMETER):
            sources[f"{node} (parameter {PARAMETER})"] = text
    for source, text in sources.items():
        if difference := _difference(settings.description, text):
            yield DESCRIPTIONS_DIFFER.found(
                f"what {source} has is not what {evidence.controller} takes: {difference}"
            )


def _difference(own: str, other: str) -> str:
    """How another description differs in what torques depend on; empty if it does not."""
    if own == other:
        return ""
    try:
        ours = _read(own)
    except RobotModelError:
        return ""  # which is a finding of its own
    try:
        theirs = _read(other)
    except RobotModelError as problem:
        return str(problem)
    if ours.joint_names != theirs.joint_names:
        return f"it has the joints {listed(theirs.joint_names)}, not {listed(ours.joint_names)}"
    if ours.link_names != theirs.link_names:
        return f"it has the links {listed(theirs.link_names)}, not {listed(ours.link_names)}"
    quantities = {
        "position limits": (ours.lower, theirs.lower, ours.upper, theirs.upper),
        "velocity limits": (ours.velocity_limit, theirs.velocity_limit),
        "effort limits": (ours.effort_limit, theirs.effort_limit),
    }
    different = [
        name
        for name, arrays in quantities.items()
        if not all(map(np.array_equal, arrays[::2], arrays[1::2]))
    ]
    if not np.array_equal(ours.bodies, theirs.bodies):
        masses = f"{ours.total_mass:.6g} and {theirs.total_mass:.6g} kg in total"
        different.append(f"poses of joints or inertias of links ({masses})")
    return f"they differ in {' and '.join(different)}" if different else ""


def _read(text: str) -> RobotModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        return RobotModel.from_urdf_string(text)
