"""The controller's configuration: its parameters and its model, and the faults in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rnea_control.commands.evidence import Evidence, Values
from rnea_control.commands.finding import Finding, error, warning
from rnea_control.control import SupervisionSettings
from rnea_control.exceptions import ParameterError, RneaControlError, listed
from rnea_control.model import RobotModel
from rnea_control.node.parameters import PARAMETERS, meaningless
from rnea_control.parameters.parameter import (
    GivenParameters,
    Parameter,
    expand,
    values_in_force,
)
from rnea_control.parameters.settings import load_model, update_model
from rnea_control.parameters.table import LOCKED_POSITION, SAFETY
from rnea_control.ros.node_parameters import BUILT_IN, handover_times

LOCKED = LOCKED_POSITION.name.partition("<")[0]

PARAMETERS_MISSING = error(
    "parameters-missing",
    "the parameters of the controller are not known",
    "Start rnea_controller, or give its YAML file: `--parameters FILE.yaml`",
)
PARAMETER_WRONG = error(
    "parameter-wrong",
    "a parameter of the controller has a value that is not allowed, or none",
    "Correct it in the YAML file; docs/parameters.md has what is allowed",
)
PARAMETER_UNKNOWN = warning(
    "parameter-unknown",
    "parameters that the controller does not know have no effect",
    "Correct their spelling, also of the joint in it, or remove them",
)
PARAMETERS_DIFFER = warning(
    "parameters-differ",
    "the running controller has other parameters than the file that was given",
    "Start the controller again with the file, or change the file",
)
MODEL_REFUSED = error(
    "model-refused",
    "robot description and parameters do not make a model",
    "Correct what the message names, in the URDF or in the YAML file",
)


@dataclass(frozen=True)
class Configuration:
    """The controller's settings, whether it runs or not.

    Attributes:
        where: what the parameters are from, for messages; empty if they are not known.
        values: of the parameters, as given.
        checked: the same, checked, with defaults.
        joints: to control; empty if they are not known.
        description: the URDF that the controller takes; empty without one.
        model: made of it; None if that is not possible.
        fault: why not.
    """

    where: str
    values: Values
    checked: GivenParameters
    joints: tuple[str, ...]
    description: str
    model: RobotModel | None
    fault: str

    def get(self, name: str) -> Any:
        """A parameter, or its default if its value is not allowed."""
        return value_or_default(self.checked, name)


def value_or_default(checked: GivenParameters, name: str) -> Any:
    """A parameter, or its default if its value is not allowed."""
    try:
        return checked[name]
    except ParameterError:
        return known_parameters({}, ())[name].default


def known_parameters(values: Values, joints: tuple[str, ...]) -> dict[str, Parameter]:
    """The controller's parameters by full name, for these joints and locked joints."""
    known = expand(PARAMETERS, joints)
    known |= {name: LOCKED_POSITION for name in values if name.startswith(LOCKED)}
    return known


def checked_parameters(values: Values) -> tuple[GivenParameters, tuple[str, ...]]:
    """The parameters, and the joints that they name, if that is what they should be."""
    try:
        joints = tuple(GivenParameters(values, known_parameters({}, ()))["joints"])
    except ParameterError:
        joints = ()
    return GivenParameters(values, known_parameters(values, joints)), joints


def configuration(evidence: Evidence) -> Configuration:
    """The settings of the running controller, else of the file."""
    values, where = evidence.parameters.get(evidence.controller), evidence.controller
    if values is None:
        values, where = evidence.file_parameters, evidence.file if evidence.file_parameters else ""
    checked, joints = checked_parameters(values)
    own = value_or_default(checked, "robot_description")
    description = own or (evidence.descriptions[0] if evidence.descriptions else "")
    model, fault = None, ""
    if description and joints:
        try:
            model = _model(checked, joints, values, description)
        except RneaControlError as problem:
            fault = str(problem)
    return Configuration(where, values, checked, joints, description, model, fault)


def _model(
    checked: GivenParameters, joints: tuple[str, ...], values: Values, description: str
) -> RobotModel:
    locked = [name.removeprefix(LOCKED) for name in values if name.startswith(LOCKED)]
    model = load_model(checked, list(joints), locked, description)
    update_model(checked, model)
    return model


def check(evidence: Evidence, settings: Configuration) -> Iterator[Finding]:
    """What is wrong with parameters and model."""
    if evidence.file_fault:
        yield PARAMETERS_MISSING.found(evidence.file_fault)
    elif not settings.where:
        there = "does not answer" if evidence.controller in evidence.nodes else "is not there"
        file = ", and no file is given"
        if evidence.file:
            file = f", and {evidence.file} has no section for it"
        yield PARAMETERS_MISSING.found(f"{evidence.controller} {there}{file}")
    if not settings.where:
        return
    checked = settings.checked
    faults = checked.faults()
    for fault in faults or _that_do_not_fit(checked):
        yield PARAMETER_WRONG.found(f"{settings.where}: {fault}")
    unknown = [name for name in checked.unknown() if not name.startswith(BUILT_IN)]
    unknown = [name for name in unknown if not meaningless(name)]
    if unknown and settings.joints:
        yield PARAMETER_UNKNOWN.found(f"{settings.where}: {listed(unknown)}")
    if settings.where == evidence.controller:
        yield from _differences(evidence, settings.values)
    if settings.fault and not (faults and settings.fault in faults):
        yield MODEL_REFUSED.found(settings.fault)


def _that_do_not_fit(checked: GivenParameters) -> list[str]:
    """What is wrong with values that are allowed one by one."""
    found = []
    for look in (
        lambda: handover_times(checked, simulated=False),
        lambda: SupervisionSettings.of(values_in_force(checked, SAFETY, checked["joints"])),
    ):
        try:
            look()
        except ParameterError as problem:
            found.append(str(problem))
    return found


def _differences(evidence: Evidence, running: Values) -> Iterator[Finding]:
    different = [
        f"{name} ({running.get(name)!r} runs, {value!r} in the file)"
        for name, value in evidence.file_parameters.items()
        if running.get(name) != value and not name.startswith(BUILT_IN)
    ]
    if different:
        yield PARAMETERS_DIFFER.found(
            f"{evidence.controller}, {evidence.file}: {listed(different)}"
        )
