"""The executable `rnea_demo`."""

from __future__ import annotations

import sys

from rnea_control.extras import import_or_exit


def main() -> int:
    """Runs the demo, or ends with the name of the missing extra."""
    return import_or_exit("rnea_control.demo.program", "rnea_demo", "demo").main()


if __name__ == "__main__":
    sys.exit(main())
