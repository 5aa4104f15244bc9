"""`TemporarySettings`: parameters of the controller that are set for a time. The old ones are in a
file meanwhile, for the case that rnea_tune is killed."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rnea_control.client.live_parameters import LiveParameters
from rnea_control.commands.terminal import say
from rnea_control.exceptions import ArmError, ParameterError, Refused
from rnea_control.parameters.table import OBSERVER

# Parameters that rnea_tune sets.
OF_ARM = ("dead_time", "friction_compensation", "stream.bandwidth", OBSERVER)
OF_JOINT = (
    *("gains.{}.p", "gains.{}.d", "armature.{}", "feedback_inertia.{}", "max_position_errors.{}"),
    *("friction.{}.coulomb", "friction.{}.damping"),
)


class TemporarySettings:
    """Parameters of the controller that are set for a time, and its old ones.

    Args:
        parameters: parameters of the controller.
        controller: full name of the controller's node.
        joints: names of the joints.
        output: folder of the results; the file with the old values is beside it.

    Raises:
        ParameterError: there is the file of a killed rnea_tune, or it cannot be written.
        NotThere: the controller does not answer.
    """

    def __init__(
        self, parameters: LiveParameters, controller: str, joints: Sequence[str], output: Path
    ) -> None:
        self._parameters, self._controller = parameters, controller
        self._path = output.with_name(f"{output.name}_before.yaml")
        names = [*OF_ARM, *(name.format(joint) for joint in joints for name in OF_JOINT)]
        self._old = parameters.get(names)
        self._changed: set[str] = set()  # names of the parameters to set again
        self._write()

    def _write(self) -> None:
        content = {self._controller: {"ros__parameters": self._old}}
        try:
            with self._path.open("x", encoding="utf-8") as file:
                yaml.safe_dump(content, file, sort_keys=False, allow_unicode=True)
        except FileExistsError:
            raise ParameterError(
                f"{self._path} exists: a rnea_tune was killed, and its settings may be in force. "
                f"{self._remedy}, then remove the file"
            ) from None
        except OSError as error:
            raise ParameterError(f"{self._path} cannot be written: {error.strerror}") from error

    def set(self, values: Mapping[str, Any]) -> None:
        """Sets all of the parameters or none.

        Raises:
            Refused: the controller refuses them.
            NotThere: the controller does not answer; they may be set.
        """
        self._changed.update(values)
        self._parameters.set(values)

    def keep(self, names: Iterable[str]) -> None:
        """Leaves these parameters in force, and forgets their old values."""
        self._changed.difference_update(names)

    def restore(self) -> None:
        """Sets the old values of all parameters that were set: all at once, or one by one if the
        controller refuses that.

        Raises:
            Refused: the controller refuses some.
            NotThere: the controller does not answer.
        """
        old = {name: self._old[name] for name in sorted(self._changed)}
        try:
            if old:
                self._parameters.set(old)
        except Refused:
            refused = [error for name in old if (error := self._refusal(name)) is not None]
            if refused:
                raise refused[0] from None
        self._changed.clear()

    def _refusal(self, name: str) -> Refused | None:
        """Refusal of the old value of one parameter."""
        try:
            self._parameters[name] = self._old[name]
        except Refused as error:
            return error
        return None

    def end(self) -> None:
        """Restores the old values, and removes the file; if that fails, says what is in force."""
        try:
            self.restore()
        except ArmError as error:
            say(f"SETTINGS OF THE MEASUREMENT ARE IN FORCE: {error}. {self._remedy}")
        else:
            self._path.unlink(missing_ok=True)

    def copy_to(self, folder: Path) -> None:
        """Copies the file into the folder of the results."""
        shutil.copy(self._path, folder / "before.yaml")

    @property
    def _remedy(self) -> str:
        return f"Start the controller again, or: ros2 param load {self._controller} {self._path}"
