"""A small kernel, and Pythons of their own that use it and tell what came of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rnea_control

PACKAGE = Path(rnea_control.__file__).parent

SOURCES = {
    "numbers_of_it.py": 'FACTOR = 3.0\n"""A comment."""\n',
    "scaling.py": '''
from rnea_control.jit.inlining import inlined

@inlined
def product(x: float, by: float) -> float:
    return by * x

@inlined
def scaled(x: float, by: float) -> float:
    """x times by"""
    return product(x, by)
''',
    "tiny.py": '''
import numbers_of_it
from scaling import scaled
from rnea_control.jit.kernel import kernel

LOG = "so many: %d"

@kernel("f8(f8[::1])")
def first(x):
    """Of an array, scaled."""
    return scaled(x[0], numbers_of_it.FACTOR)
''',
}

# Each start is forked off a process that has only set Numba up, which takes most of its time.
SERVER = """
import gc, json, os, socket, sys, traceback, warnings
import numba, numpy as np
numba.njit("f8(f8[::1])")(lambda x: 2.0 * x[0])
gc.disable()  # there is little garbage, and many starts
starts = socket.socket(fileno=0)
while True:
    data, descriptors, *_ = socket.recv_fds(starts, 1 << 16, 1)
    if not data:
        sys.exit()
    if os.fork() == 0:
        break
    os.close(descriptors[0])
folder, prelude, package, environment = json.loads(data)
os.environ.clear()
os.environ.update(environment)
numba.core.config.reload_config()
os.chdir(folder)
sys.path[:0] = [folder, package]
saved = []
try:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(prelude)
        from rnea_control.jit import disk_cache
        save = disk_cache.DiskCache.save_overload
        def counted(self, *arguments):
            saved.append(self._name)
            save(self, *arguments)
        disk_cache.DiskCache.save_overload = counted
        import rnea_control.jit.kernel
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
except BaseException:
    told = {"failure": traceback.format_exc()}
with open(descriptors[0], "w") as answer:
    json.dump(told, answer)
os._exit(0)
"""


@contextmanager
def starts() -> Iterator[Callable[..., int]]:
    """Gives a function that starts a Python which uses the small kernel, for `result`.

    Its arguments are the folder with the kernel's sources, what runs before anything of the package
    is imported, the folder of the rnea_control to import, and variables of the environment.
    """
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    inherited = {**os.environ}
    for name in ("NUMBA_CACHE_DIR", "RNEA_CONTROL_NUMBA_DISPATCH"):
        inherited.pop(name, None)

    def begin(folder: Path, prelude: str = "", package: Path = PACKAGE, **environment: str) -> int:
        path = str(package.parent)
        request = (str(folder), prelude, path, {**inherited, "PYTHONPATH": path, **environment})
        answer, writer = os.pipe()
        socket.send_fds(here, [json.dumps(request).encode()], [writer])
        os.close(writer)
        return answer

    command = [sys.executable, "-B", "-c", SERVER]
    with subprocess.Popen(command, stdin=there, env=inherited):
        there.close()
        with here:
            yield begin


def result(answer: int) -> dict[str, Any]:
    """What a start told: the kernel's value, RuntimeWarnings, how often it was compiled, and
    whether it refused a strided array; or a failure."""
    with open(answer) as file:
        return json.loads(file.read() or '{"failure": "it died"}')


def cached(cache: Path) -> list[Path]:
    return sorted(cache.iterdir()) if cache.is_dir() else []
