"""The floor in C (floor.c): compiled where there is a compiler, and run in this process, whose only
thread of Python waits in it."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import rclpy
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

SOURCE = Path(__file__).with_name("floor.c")
COMPILER = shutil.which("cc") or shutil.which("gcc")


def available() -> bool:
    """True if the floor can be compiled."""
    return COMPILER is not None and _includes() != []


def _includes() -> list[str]:
    """The folders of ROS's headers, one a package."""
    prefixes = [Path(sys.prefix), *(Path(each).parent for each in rclpy.__path__)]
    root = next((each / "include" for each in prefixes if (each / "include/rcl").is_dir()), None)
    return [] if root is None else [f"-I{each}" for each in root.iterdir() if each.is_dir()]


def main() -> int:
    # Loads the libraries that it is linked to when it is loaded itself.
    for kind in (JointState, Float64MultiArray):
        serialize_message(kind())
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.rpartition(" ")[2]
        if ".so" in path and any(each in path for each in ("librcl", "librmw", "typesupport_c")):
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    ctypes.CDLL(rclpy_implementation.__file__, mode=ctypes.RTLD_GLOBAL)
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "floor.so")
        command = [COMPILER, "-O2", "-shared", "-fPIC", str(SOURCE), "-o", library, *_includes()]
        subprocess.run(command, check=True)
        return int(ctypes.CDLL(library).run())


if __name__ == "__main__":
    sys.exit(main())
