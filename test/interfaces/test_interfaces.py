"""The messages of control_msgs, controller_manager_msgs and linear_feedback_controller_msgs are the
distribution's on the wire."""

from __future__ import annotations

import ctypes
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from build_interfaces import distribution, missing_tools

if find_spec("control_msgs") is None and missing_tools():
    pytest.skip(f"no {', '.join(missing_tools())}", allow_module_level=True)

# What the definitions of control_msgs 5.8.0 hash to, and those of ros2_control 5.16, which are
# Jazzy's, and of linear_feedback_controller_msgs 1.2.2; then those of control_msgs 6.8.0, where the
# feedback of the action has two more fields.
# The hash of an action or a service covers all its messages.
ROWS = Path(__file__).with_name("type_hashes.txt").read_text().splitlines()
COLUMN = 1 if distribution() == "jazzy" else -1
HASHES = {row.split()[0]: row.split()[COLUMN] for row in ROWS}


class TypeHash(ctypes.Structure):
    """rosidl_type_hash_t"""

    _fields_ = (("version", ctypes.c_uint8), ("value", ctypes.c_uint8 * 32))


def type_hash(package: str, name: str) -> tuple[int, str]:
    """Version and value of what the package has compiled in; `name` is "msg/Name" for example."""
    extension = import_module(f"{package}.{package}_s__rosidl_typesupport_c")
    library = ctypes.CDLL(extension.__file__)
    function = library[f"{package}__{name.replace('/', '__')}__get_type_hash"]
    function.restype = ctypes.POINTER(TypeHash)
    found = function(None).contents
    return found.version, bytes(found.value).hex()


@pytest.mark.skipif(distribution() == "humble", reason="humble knows no type hashes")
@pytest.mark.parametrize("name", HASHES)
def test_type_hashes_are_those_of_the_package(name: str) -> None:
    """With the messages on the wire so are fields and types; that they work in another process,
    the tests of the action and of `rnea_doctor` show."""
    package, _, rest = name.partition("/")
    assert type_hash(package, rest) == (1, HASHES[name])
