"""The executable `rnea_simulated_arm`."""

from __future__ import annotations

import sys

from rnea_control.ros.extras import import_or_exit


def main() -> int:
    """Runs the simulated arm, or says which extra is missing."""
    program = import_or_exit("rnea_control.simulation.simulated_arm", "rnea_simulated_arm", "sim")
    return program.main()


if __name__ == "__main__":
    sys.exit(main())
