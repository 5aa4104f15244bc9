"""Explains what is wrong with the arguments of an algorithm, once a kernel has refused them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnea_control.dynamics.workspace import Workspace
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel


def argument_error(model: RobotModel, ws: Workspace, **arrays: Any) -> ArgumentError:
    """The error for the first argument that does not fit `model`.

    Args:
        model, ws: what the algorithm was called with.
        arrays: its array arguments by name, with the shape each must have: name=(array, shape).
    """
    if not isinstance(model, RobotModel) or not isinstance(ws, Workspace):
        return ArgumentError(
            "the first two arguments must be a RobotModel and a Workspace made for it"
        )
    if ws.model.nv != model.nv:
        return ArgumentError(
            f"the workspace was made for {ws.model!r}, not for {model!r}; make one: "
            "Workspace(model)"
        )
    for name, (array, shape) in arrays.items():
        wanted = f"a C-contiguous float64 array of shape {shape}"
        if not isinstance(array, np.ndarray):
            return ArgumentError(f"{name} is a {type(array).__name__}; it must be {wanted}")
        if array.dtype != np.float64 or array.shape != shape:
            return ArgumentError(
                f"{name} is of {array.dtype} and shape {array.shape}; it must be {wanted}"
            )
        if not array.flags.c_contiguous or not array.flags.writeable:
            return ArgumentError(
                f"{name} is a read-only or strided view; it must be {wanted}, for example "
                f"{name}.copy()"
            )
    return ArgumentError("the arguments do not fit the model")
