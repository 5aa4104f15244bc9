"""Breaks sources of the package, one line at a time, and tells which tests fail then.

Each mutant runs in a process of its own, which imports the package with the one source changed.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import multiprocessing
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = "rnea_control"
PARALLEL = 2


class Mutant(NamedTuple):
    """One change of a source: `old` stands there once, and becomes `new`."""

    module: str  # as "rnea_control.control.step"
    old: str
    new: str
    first: str = ""  # test file that runs before the others, as it is likely to notice


def path_of(module: str) -> Path:
    """The source of a module of the installed package, which is not imported for it."""
    package = importlib.util.find_spec(PACKAGE)
    assert package is not None and package.origin
    return Path(package.origin).parents[1].joinpath(*module.split(".")).with_suffix(".py")


def mutated(mutant: Mutant) -> str:
    """The source of its module with the change."""
    text = path_of(mutant.module).read_text()
    assert not mutant.old or text.count(mutant.old) == 1, (mutant.module, mutant.old)
    return text.replace(mutant.old, mutant.new, 1) if mutant.old else text


class Finder(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports the module of a mutant with its change."""

    def __init__(self, mutant: Mutant) -> None:
        self._module, self._source = mutant.module, mutated(mutant)

    def find_spec(self, name: str, path, target=None) -> importlib.machinery.ModuleSpec | None:
        if name != self._module:
            return None
        return importlib.util.spec_from_file_location(name, path_of(name), loader=self)

    def get_filename(self, name: str) -> str:
        return str(path_of(name))

    def get_data(self, path: str) -> bytes:
        return self._source.encode()


class FirstFailure:
    """Plugin of pytest: which test has failed."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.rpartition("/")[2]


def _first_failure(mutant: Mutant, tests: list[str], sender) -> None:
    sys.meta_path.insert(0, Finder(mutant))
    plugin, unheard = FirstFailure(), io.StringIO()
    with contextlib.redirect_stdout(unheard), contextlib.redirect_stderr(unheard):
        quiet = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=100"]
        ordered = sorted(tests, key=lambda test: not test.endswith(mutant.first))
        status = pytest.main([*quiet, *ordered], [plugin])
    sender.send(plugin.name or (f"pytest: {status}" if status else ""))


def noticed(mutant: Mutant, tests: list[str]) -> str:
    """The first of some tests that a mutant makes fail; empty if none does."""
    assert PACKAGE not in sys.modules
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_first_failure, args=(mutant, tests, sender))
    process.start()
    sender.close()
    try:
        answer: str = receiver.recv()
    except EOFError:
        answer = "the process has ended"
    process.join()
    return answer


def report(mutants: Mapping[str, Mutant], tests: list[str], wanted: Iterable[str]) -> None:
    """Prints one line of JSON for each mutant, all or those wanted: its name, and the first test
    that fails; empty if none does."""
    names = list(wanted) or list(mutants)
    with ThreadPoolExecutor(PARALLEL) as threads:
        answers = threads.map(lambda name: noticed(mutants[name], tests), names)
        for name, answer in zip(names, answers, strict=True):
            print(json.dumps([name, answer]), flush=True)
