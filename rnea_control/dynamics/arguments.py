"""Explains what is wrong with the arguments of an algorithm, once a kernel has refused them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from rnea_control.dynamics.workspace import Workspace
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel

P = ParamSpec("P")
T = TypeVar("T")


def explained(
    **shapes: tuple[str | int, ...],
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator for an algorithm that returns False if its arguments do not fit: then the error
    says which one, and what it must be.

    Args:
        shapes: of the array arguments by name, as for `argument_error`.
    """

    def decorate(algorithm: Callable[P, T]) -> Callable[P, T]:
        def explanation(arguments: tuple, keywords: dict) -> ArgumentError:
            bound = inspect.signature(algorithm).bind(*arguments, **keywords).arguments
            arrays = {
                name: (bound[name], shape)
                for name, shape in shapes.items()
                if name in bound and not (bound[name] is None and name == "external_forces")
            }
            return argument_error(bound["model"], bound["ws"], **arrays)

        @wraps(algorithm)
        def checked(*arguments: P.args, **keywords: P.kwargs) -> T:
            try:
                output = algorithm(*arguments, **keywords)
            except (TypeError, AttributeError) as error:
                raise explanation(arguments, keywords) from error
            if output is False:
                raise explanation(arguments, keywords)
            return output

        return checked

    return decorate


def argument_error(model: RobotModel, ws: Workspace, **arrays: Any) -> ArgumentError:
    """The error for the first argument that does not fit `model`.

    Args:
        model, ws: what the algorithm was called with.
        arrays: its array arguments by name, with the shape each must have: name=(array, shape);
            "nq", "nv", "links", and "joints", which counts the root's too, stand for the model's.
    """
    if not isinstance(model, RobotModel) or not isinstance(ws, Workspace):
        return ArgumentError(
            "the first two arguments must be a RobotModel and a Workspace made for it"
        )
    if ws.model is not model and ws.model.bodies.shape != model.bodies.shape:
        return ArgumentError(
            f"the workspace was made for {ws.model!r}, not for {model!r}; make one: "
            "Workspace(model)"
        )
    sizes = {
        "nq": model.nq,
        "nv": model.nv,
        "links": len(model.link_names),
        "joints": len(model.joint_links),
    }
    for name, (array, symbols) in arrays.items():
        shape = tuple(sizes.get(symbol, symbol) for symbol in symbols)
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
