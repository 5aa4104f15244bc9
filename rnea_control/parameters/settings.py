"""`Settings`: dataclasses whose fields are rows of the table, as programs set them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from rnea_control.exceptions import ControllerError, ParameterError
from rnea_control.parameters.parameter import JOINT, Parameter
from rnea_control.parameters.table import ROWS

S = TypeVar("S", bound="Settings")


def row(name: str = "", default: Any = MISSING) -> Any:
    """The field for a row of the table: an array of shape (nv,) where the name has a joint.

    Args:
        name: of the row; empty for a field that no parameter sets.
        default: of programs; None is as if nothing were set.
    """
    return field(default=default, metadata={"row": ROWS[name] if name else None})


class Settings:
    """The base class of settings. Infinity is no bound."""

    @classmethod
    def of(cls: type[S], values: Mapping[str, Any], **given: Any) -> S:
        """Those of `values` that the fields are rows of, as `values_in_force` gives
        them; `given` fields go before them."""
        own = {each.name: each.metadata.get("row") for each in fields(cls)}  # type: ignore[arg-type]
        taken = {name: values[r.name] for name, r in own.items() if r and r.name in values}
        return cls(**{**taken, **given})

    def numbers(self) -> Iterator[tuple[Parameter, Any]]:
        """What is set, with its row, also of the settings within."""
        for each in fields(self):  # type: ignore[arg-type]
            value, of_table = getattr(self, each.name), each.metadata.get("row")
            if isinstance(value, Settings) and is_dataclass(value):
                yield from value.numbers()
            elif of_table is not None and value is not None:
                yield of_table, value

    def check(self, joint_names: Sequence[str]) -> None:
        """Refuses settings that do not fit these joints.

        Raises:
            ControllerError: a wrong size, or a value that the table does not allow. The message
                names the parameter and the joint.
        """
        for of_table, value in self.numbers():
            names, values = [of_table.name], [value]
            if JOINT in of_table.name or np.ndim(value):
                if np.shape(value) != (len(joint_names),):
                    raise ControllerError(
                        f"{of_table.name} has shape {np.shape(value)}; it needs one number for "
                        f"each of the {len(joint_names)} joints"
                    )
                names = [of_table.name.replace(JOINT, joint) for joint in joint_names]
                values = np.asarray(value, dtype=float).tolist()
            elif isinstance(value, np.generic):
                values = [value.item()]
            allowed = of_table.once_in_force
            try:
                for name, number in zip(names, values, strict=True):
                    allowed.check(name, number)
            except ParameterError as error:
                raise ControllerError(str(error)) from error
