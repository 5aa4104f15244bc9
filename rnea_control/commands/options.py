"""Options shared by several commands, and readers of their numbers and files. No ROS."""

from __future__ import annotations

import argparse
import math
from typing import Any

import yaml

from rnea_control.exceptions import ParameterError
from rnea_control.ros.parameter_files import section_of

LONGEST = 1.0  # largest magnitude of a delay [s]


def add_controller_options(parser: argparse.ArgumentParser) -> None:
    """Adds namespace and node name of the controller."""
    parser.add_argument("--namespace", default="", help="namespace of the arm")
    parser.add_argument("--node", default="rnea_controller", help="name of the controller's node")


def positive(text: str) -> float:
    """A number above 0, for argparse."""
    value = float(text)
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text}; it must be positive and finite")
    return value


def full_name(text: str) -> str:
    """A full name of a node, for argparse."""
    return f"/{text.strip('/')}"


def delay(text: str) -> float:
    """A delay of the efforts, for argparse."""
    value = float(text)
    if not abs(value) <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text}; it must be at most {LONGEST:g} s")
    return value


def parameters_in(path: str, node: str) -> dict[str, Any]:
    """Parameters of a node in a YAML file, by full name.

    Raises:
        ParameterError: the file cannot be read.
    """
    try:
        return section_of(node, ["--params-file", path])
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ParameterError(f"{path} cannot be read: {error}") from error
