"""Consistency of parameters, robot description and model, also with those of other nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rnea_control.client.configuration import Configuration
from rnea_control.commands.evidence import Evidence
from rnea_control.commands.finding import Finding, error, warning
from rnea_control.control import SupervisionSettings
from rnea_control.exceptions import ParameterError, RneaControlError, listed
from rnea_control.node.parameters import PARAMETERS, dotted_key, meaningless
from rnea_control.parameters.description_difference import description_difference
from rnea_control.parameters.parameter import joint_of, values_in_force
from rnea_control.parameters.table import SAFETY
from rnea_control.plausibility import suspicions
from rnea_control.ros.node_parameters import BUILT_IN, handover_times

# fmt: off
PARAMETERS_MISSING = error("parameters-missing",
    "the parameters of the controller are not known",
    "Start rnea_controller, or give its YAML file: `--parameters FILE.yaml`")
PARAMETER_WRONG = error("parameter-wrong",
    "a parameter of the controller has a value that is not allowed, or none",
    "Correct it in the YAML file; docs/parameters.md has what is allowed")
PARAMETER_UNKNOWN = warning("parameter-unknown",
    "parameters that the controller does not know have no effect",
    "Correct their spelling, or remove them")
PARAMETER_OF_OTHER_JOINT = warning("parameter-of-other-joint",
    "parameters of joints that are not in `joints` have no effect",
    "Add the joint to `joints`, correct its name, or remove them")
PARAMETERS_DIFFER = warning("parameters-differ",
    "the running controller has other parameters than the file that was given",
    "Start the controller again with the file, or change the file")
MODEL_REFUSED = error("model-refused",
    "robot description and parameters do not make a model",
    "Correct what the message names, in the URDF or in the YAML file")
DESCRIPTION_MISSING = error("description-missing",
    "there is no robot description",
    "Start robot_state_publisher, or set the parameter robot_description of rnea_controller")
DESCRIPTION_NOT_LATCHED = error("description-not-latched",
    "robot_description is published once and not latched: late joiners do not receive it",
    "Publish it with durability TRANSIENT_LOCAL, as robot_state_publisher does")
DESCRIPTIONS_DIFFER = error("descriptions-differ",
    "nodes have robot descriptions with different joints, limits or inertias",
    "Give all nodes the same URDF, and restart the nodes with an old one")
MODEL_SUSPICIOUS = warning("model-suspicious",
    "the URDF is valid, and probably not what its author meant",
    "Correct the URDF, as the message says")
EFFORT_LIMIT_ZERO = error("effort-limit-zero",
    "<limit effort> of a joint is 0 in the URDF: controller and ros2_control command no torque",
    "Write the effort limit of the actuator into the URDF")
# fmt: on


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings about parameters, model and description."""
    yield from _parameters(evidence)
    yield from _description(evidence)


def _parameters(evidence: Evidence) -> Iterator[Finding]:
    settings = evidence.settings
    if evidence.file_fault:
        yield PARAMETERS_MISSING.found(evidence.file_fault)
    elif not settings.where:
        there = "does not answer" if evidence.controller in evidence.nodes else "is not there"
        file = f"{evidence.file} has no section for it" if evidence.file else "no file is given"
        yield PARAMETERS_MISSING.found(f"{evidence.controller} {there}, and {file}")
    if not settings.where:
        return
    faults = settings.faults()
    for sentence in faults or _that_do_not_fit(settings):
        yield PARAMETER_WRONG.found(f"{settings.where}: {sentence}")
    own = [name for name in settings.unknown() if not name.startswith(BUILT_IN)]
    joint = {name: joint_of(name, PARAMETERS) for name in own if not meaningless(name)}
    unknown = [name for name in joint if not joint[name]]
    if unknown and settings.joints:
        yield PARAMETER_UNKNOWN.found(f"{settings.where}: {listed(unknown)}")
    of_others = [name for name in joint if joint[name]]
    if of_others and settings.joints:
        whose = dict.fromkeys(joint[name] for name in of_others)
        dotted = next(filter(None, (dotted_key(one, settings.joints) for one in whose)), "")
        yield PARAMETER_OF_OTHER_JOINT.found(
            f"{settings.where}: {listed(of_others)}; `joints` lacks {listed(whose)}{dotted}"
        )
    different = [
        f"{name} ({settings.values.get(name)!r} runs, {value!r} in the file)"
        for name, value in evidence.file_parameters.items()
        if settings.values.get(name) != value and not name.startswith(BUILT_IN)
    ]
    if different and settings.where == evidence.controller:
        yield PARAMETERS_DIFFER.found(
            f"{evidence.controller}, {evidence.file}: {listed(different)}"
        )
    fault = settings.robot
    if isinstance(fault, RneaControlError) and str(fault) not in faults:
        yield MODEL_REFUSED.found(fault.with_code)


def _that_do_not_fit(settings: Configuration) -> Iterator[str]:
    """Errors in combinations of values that are each allowed."""
    for look in (
        lambda: handover_times(settings, simulated=False),
        lambda: SupervisionSettings.of(values_in_force(settings, SAFETY, settings.joints)),
    ):
        try:
            look()
        except ParameterError as problem:
            yield str(problem)


def _description(evidence: Evidence) -> Iterator[Finding]:
    topic, settings = evidence.description_topic, evidence.settings
    if not settings.description:
        publishers = listed([publisher.node for publisher in topic.publishers])
        yield DESCRIPTION_MISSING.found(
            f"{topic.name} has {f'the publisher {publishers}' if publishers else 'no publisher'} "
            f"and no message in {evidence.seconds:g} s, and the parameter robot_description is "
            "empty"
        )
    if loose := [publisher.node for publisher in topic.publishers if not publisher.latched]:
        yield DESCRIPTION_NOT_LATCHED.found(f"{topic.name}: {listed(loose)}")
    sources = {
        f"{topic.name} (message {k})": text for k, text in enumerate(evidence.descriptions, 1)
    }
    for node in evidence.parameters:
        if text := evidence.parameter(node, "robot_description"):
            sources[f"{node} (parameter robot_description)"] = text
    for source, text in sources.items():
        if difference := description_difference(settings.description, text):
            yield DESCRIPTIONS_DIFFER.found(
                f"{source} is not the URDF that {evidence.controller} uses: {difference}"
            )
    if (model := settings.model) is None:
        return
    if without := [model.joint_names[j] for j in np.flatnonzero(model.effort_limit == 0.0)]:
        yield EFFORT_LIMIT_ZERO.found(f"{model.source}: {listed(without)}")
    for sentence in suspicions(model):
        if "<limit effort> is 0" not in sentence:
            yield MODEL_SUSPICIOUS.found(sentence)
