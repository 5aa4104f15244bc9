"""The executable `rnea_panel`."""

from __future__ import annotations

import sys

from rnea_control.extras import import_or_exit


def main() -> int:
    """Serves the page, or ends with the name of the missing extra."""
    return import_or_exit("rnea_control.panel.program", "rnea_panel", "panel").main()


if __name__ == "__main__":
    sys.exit(main())
