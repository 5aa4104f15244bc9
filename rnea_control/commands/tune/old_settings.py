"""`OldSettings`: the settings before the measurement, in a file for the case that rnea_tune is
killed before it has set them again."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import yaml

from rnea_control.commands.terminal import say
from rnea_control.commands.tune.parameter_client import ParameterClient
from rnea_control.control.settings import OBSERVER
from rnea_control.exceptions import ParameterError

# Parameters that rnea_tune sets.
OF_ARM = ("dead_time", "friction_compensation", "stream.bandwidth", OBSERVER)
OF_JOINT = (
    *("gains.{}.p", "gains.{}.d", "armature.{}", "feedback_inertia.{}", "max_position_errors.{}"),
    *("friction.{}.coulomb", "friction.{}.damping"),
)


class OldSettings:
    """The settings of a controller before the measurement.

    Args:
        parameters: client of the controller.
        controller: full name of the controller's node.
        output: folder of the results; the file is beside it.

    Attributes:
        path: path of the file.
    """

    def __init__(self, parameters: ParameterClient, controller: str, output: Path) -> None:
        self._parameters, self._controller = parameters, controller
        self.path = output.with_name(f"{output.name}_before.yaml")

    def write(self, joints: Sequence[str]) -> None:
        """Writes the file.

        Raises:
            ParameterError: there is one of a killed rnea_tune, or it cannot be written.
        """
        names = [*OF_ARM, *(name.format(joint) for joint in joints for name in OF_JOINT)]
        content = {self._controller: {"ros__parameters": self._parameters.get(names)}}
        try:
            with self.path.open("x", encoding="utf-8") as file:
                yaml.safe_dump(content, file, sort_keys=False, allow_unicode=True)
        except FileExistsError:
            raise ParameterError(
                f"{self.path} exists: a rnea_tune was killed, and its settings may be in force. "
                f"{self._remedy}, then remove the file"
            ) from None
        except OSError as error:
            raise ParameterError(f"{self.path} cannot be written: {error.strerror}") from error

    def restore(self) -> None:
        """Sets the old values of all parameters that are to be restored, and removes the file."""
        try:
            self._parameters.restore()
        except ParameterError as error:
            say(f"SETTINGS OF THE MEASUREMENT ARE IN FORCE: {error}. {self._remedy}")
        else:
            self.path.unlink(missing_ok=True)

    def copy_to(self, folder: Path) -> None:
        """Copies the file into the folder of the results."""
        shutil.copy(self.path, folder / "before.yaml")

    @property
    def _remedy(self) -> str:
        return f"Start the controller again, or: ros2 param load {self._controller} {self.path}"
