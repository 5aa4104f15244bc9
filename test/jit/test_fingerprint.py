"""The fingerprint of a kernel changes with all that it is made of, and with nothing else."""

from __future__ import annotations

import sys
from types import ModuleType

import numba
import numpy as np
import pytest

from rnea_control.jit import fingerprint as fingerprint_module
from rnea_control.jit.fingerprint import FingerprintError, fingerprint

BODIES = """
'''Columns.'''
COLUMN = 3
SHAPE = (4, (5.0, "x"))
UNUSED = 7
"""
SOURCE = '''
import math
import numpy as np
import numba
import bodies_of_it as layout

LIMIT = 2.0
TABLE = np.arange(3.0)
LOG = "some words"


@numba.njit(error_model="numpy")
def inner(x):
    return x + LIMIT


@numba.njit
def outer(x):
    """Twice."""
    # a comment
    return 2.0 * inner(x)


def log(x):
    print(LOG, x)


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


even, odd = numba.njit(even), numba.njit(odd)


def root(x, by=1.5):
    """The whole of it."""
    total = math.sin(x) * layout.COLUMN + TABLE[1] + layout.SHAPE[0]
    for i in range(3):
        total += outer(x) + (lambda y: 3.0 * y + LIMIT)(x) + np.floor(float(i))
    return by * total if even(4) else math.nan
'''
OPTIONS = {"nogil": False, "fastmath": {"contract", "nnan"}}


def stamp(
    source: str = SOURCE,
    bodies: str = BODIES,
    options: dict | None = None,
    *more,
    module="kernels_of_it",
) -> str:
    layout = ModuleType("bodies_of_it")
    exec(bodies, vars(layout))
    sys.modules["bodies_of_it"] = layout
    names = {"__name__": module}
    try:
        exec(source, names)
    finally:
        del sys.modules["bodies_of_it"]
    return fingerprint(names["root"], options or OPTIONS, *more)


def changed(old: str, new: str) -> str:
    assert SOURCE.count(old) == 1
    return SOURCE.replace(old, new)


SAME = {
    "a log text": changed('"some words"', '"other words"'),
    "a docstring": changed("The whole of it", "All of it"),
    "a docstring of a callee": changed("Twice.", "Two times."),
    "a comment": changed("# a comment", "# another\n    # comment"),
    "lines above": "\n\n\n" + SOURCE,
    "a function that is not called": changed("print(LOG, x)", "print(x)"),
    "annotations": changed("def inner(x):", "def inner(x: float) -> float:"),
}


def test_same() -> None:
    before = stamp()
    assert [name for name, source in SAME.items() if stamp(source) != before] == []
    for old, new in (("UNUSED = 7", "UNUSED = 8"), ("Columns.", "Rows.")):
        assert stamp(bodies=BODIES.replace(old, new)) == before


OTHER = {
    "a constant": changed("LIMIT = 2.0", "LIMIT = 2.5"),
    "its type": changed("LIMIT = 2.0", "LIMIT = 2"),
    "a sign of zero": changed("3.0 * y", "-0.0 * y"),
    "an array": changed("np.arange(3.0)", "np.arange(3.0) + 1e-15"),
    "the code": changed("math.sin(x) *", "math.sin(x) +"),
    "a function of a library": changed("math.sin(x)", "math.cos(x)"),
    "a number in a lambda": changed("3.0 * y", "3.5 * y"),
    "a callee": changed("2.0 * inner(x)", "2.0 + inner(x)"),
    "a callee of a callee": changed("return x + LIMIT", "return x - LIMIT"),
    "an option of a callee": changed('error_model="numpy"', 'error_model="python"'),
    "one of two that call each other": changed("return False if", "return True if"),
    "a default": changed("by=1.5", "by=1.25"),
}


def test_other() -> None:
    before = stamp()
    assert [name for name, source in OTHER.items() if stamp(source) == before] == []
    for old, new in (("COLUMN = 3", "COLUMN = 4"), ("5.0", "5.5")):
        assert stamp(bodies=BODIES.replace(old, new)) != before
    # What is kept on disk names the modules that it is of.
    assert stamp(module="moved") != before


def test_fields_of_a_named_tuple() -> None:
    source = """
from typing import NamedTuple
class Pair(NamedTuple):
    first: float
    second: float
def root(x):
    return Pair(x, 1.0).first
"""
    renamed = source.replace("first: float\n    second", "second: float\n    first")
    assert stamp(source) == stamp("# a comment" + source) != stamp(renamed)


def test_options_signature_and_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stamp(options={**OPTIONS, "fastmath": {"nnan", "contract"}}) == stamp()
    assert stamp(options={**OPTIONS, "nogil": True}) != stamp()
    assert stamp(SOURCE, BODIES, OPTIONS, "f8(f8)") != stamp(SOURCE, BODIES, OPTIONS, "f4(f4)")
    before = stamp()
    versions = (np, "__version__", "1.99"), (numba, "__version__", "0.99")
    settings = (numba.config, "BOUNDSCHECK", 1), (numba.config, "CPU_NAME", "generic")
    for owner, name, value in (*versions, *settings):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            fingerprint_module.environment.cache_clear()
            assert stamp() != before
    fingerprint_module.environment.cache_clear()
    assert stamp() == before


def test_closures() -> None:
    def made(factor: float):
        return lambda x: factor * x

    assert fingerprint(made(2.0), OPTIONS) == fingerprint(made(2.0), OPTIONS)
    assert fingerprint(made(2.0), OPTIONS) != fingerprint(made(3.0), OPTIONS)


UNSTAMPED = [
    ("LIMIT = 2.0", "def LIMIT(): pass", "LIMIT is a builtins.function"),
    ("LIMIT = 2.0", "LIMIT = object()", "LIMIT is a builtins.object"),
    ("np.arange(3.0)", "np.array([None])", "root: TABLE"),
    ("layout.SHAPE[0]", "getattr(layout, 'X')", "root: layout is a .*module"),
    ("layout.SHAPE[0]", "layout.SHAPES[0]", "layout.SHAPES, which is not defined"),
]


def test_what_cannot_be_stamped_is_an_error() -> None:
    for old, new, words in UNSTAMPED:
        with pytest.raises(FingerprintError, match=words):
            stamp(changed(old, new))
