"""The executable `rnea_controller`."""

from __future__ import annotations

import sys

from rnea_control.jit import side_by_side
from rnea_control.ros.process import run

NODE = "rnea_control.node.controller_node"
# Only argument of a process that compiles all kernels, and ends.
COMPILE = "--compile"


def main() -> int:
    """Runs the controller until a signal; it then brings the arm to rest."""
    if sys.argv[1:] == [COMPILE]:
        return side_by_side.main([NODE])
    return run("rnea_controller", NODE, "ControllerNode")


if __name__ == "__main__":
    sys.exit(main())
