"""How a process of this package starts another one."""

from __future__ import annotations

import sys
from pathlib import Path

_PROGRAM = (
    "import runpy, sys; sys.path[0] = {folder!r}; "
    "runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
)


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module of this package: of this very copy of it, whatever the
    working directory holds, where `python -m` looks first.

    Args:
        module: its full name.
        arguments: for `sys.argv`.
    """
    folder = str(Path(__file__).parents[1])
    return [sys.executable, "-c", _PROGRAM.format(folder=folder, module=module), *arguments]
