"""A small kernel, and a Python of its own that uses it and tells what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rnea_control

PACKAGE = Path(rnea_control.__file__).parent

SOURCES = {
    "numbers_of_it.py": 'FACTOR = 3.0\n"""A comment."""\n',
    "scaling.py": '''
from rnea_control.kernels.kernel import inlined

@inlined
def scaled(x: float, by: float) -> float:
    """x times by"""
    return by * x
''',
    "tiny.py": '''
import numbers_of_it
from scaling import scaled
from rnea_control.kernels.kernel import kernel

LOG = "so many: %d"

@kernel("f8(f8[::1])")
def first(x):
    """Of an array, scaled."""
    return scaled(x[0], numbers_of_it.FACTOR)
''',
}

PROGRAM = """
import gc, json, sys, warnings
gc.disable()  # there is little garbage, and many starts
folder, prelude = sys.argv[1:]
sys.path.insert(0, folder)
saved = []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    exec(prelude)
    import numpy as np
    from rnea_control.kernels import disk_cache
    save = disk_cache.DiskCache.save_overload
    def counted(self, *arguments):
        saved.append(self._name)
        save(self, *arguments)
    disk_cache.DiskCache.save_overload = counted
    import rnea_control.kernels.kernel
    from tiny import first
    value = first(np.array([2.0, 5.0]))
    try:
        first(np.array([2.0, 5.0])[::-1])
        refused = False
    except TypeError:
        refused = True
said = [str(each.message) for each in caught if each.category is RuntimeWarning]
compiled = sum(name.startswith("tiny.first-") for name in saved)
told = {"value": value, "said": said, "compiled": compiled, "refused": refused}
print(json.dumps({**told, "compiler": "numba.np.linalg" in sys.modules}))
gc.freeze()
"""


Start = Callable[..., dict[str, Any]]


def begin(
    folder: Path, prelude: str = "", package: Path = PACKAGE, **environment: str
) -> subprocess.Popen[str]:
    """Starts a Python that uses the small kernel.

    Args:
        folder: where the kernel's sources are.
        prelude: what it runs before it imports anything of the package.
        package: folder of the rnea_control that it imports.
        environment: variables.
    """
    everything = {**os.environ, "PYTHONPATH": str(package.parent), **environment}
    for name in ("NUMBA_CACHE_DIR", "RNEA_CONTROL_NUMBA_DISPATCH"):
        if name not in environment:
            everything.pop(name, None)
    return subprocess.Popen(
        [sys.executable, "-B", "-c", PROGRAM, str(folder), prelude],
        env=everything,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What it told: the kernel's value, RuntimeWarnings, how often it was compiled, whether it
    refused a strided array, and whether Numba's compiler was set up."""
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    return json.loads(output.splitlines()[-1])


def cached(cache: Path) -> list[Path]:
    return sorted(cache.iterdir()) if cache.is_dir() else []
