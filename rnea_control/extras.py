"""The extras of this package: what no robot has to have."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

# What each extra of setup.py brings, by the names that Python imports.
EXTRAS = {
    "sim": ("mujoco",),
    "demo": ("mujoco", "matplotlib", "rich"),
    "move": ("ruckig",),
    "identify": ("scipy", "clarabel", "rosbags", "lxml", "matplotlib", "rich"),
    "panel": ("viser",),
}


def import_or_exit(module: str, executable: str, extra: str) -> ModuleType:
    """Imports a module that needs an extra.

    Raises:
        SystemExit: a package of the extra is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS[extra]:
            raise
        sys.exit(f"{executable} needs {missing}: pip install 'rnea_control[{extra}]'")
