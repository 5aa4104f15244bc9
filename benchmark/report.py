"""Runs all benchmarks, prints their tables and writes docs/performance.md."""

from __future__ import annotations

import datetime
import os
import platform
import sys
from importlib import metadata
from pathlib import Path

import bare_tick
import batch
import compiled
import compiled_peers
import growth
import identification
import kernels
import loop
import lost_answers
import operations
import start
import stopped_peer
from table import show

HEAD = """# Performance

Written by `make bench`, or by `python benchmark/report.py loop start` for some of its tables. All
figures of a table are from one run: compare those, not tables of different machines.

"""
OUTPUT = Path(__file__).parents[1] / "docs" / "performance.md"
PACKAGES = ("numba", "numpy", "rclpy", "pin", "mujoco", "dynibo")


DYNAMICS = (kernels, growth, operations, batch, compiled, compiled_peers, identification)
PARTS = (*DYNAMICS, start, bare_tick, loop, lost_answers, stopped_peer)


def main() -> None:
    """Runs the parts that are named, or all."""
    named = sys.argv[1:]
    parts = [part for part in PARTS if part.__name__ in named or not named]
    tables = [table for part in parts for table in part.tables()]
    show(tables)
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    when = (
        f"{datetime.date.today()}, {_processor()}, {os.cpu_count()} CPUs, Linux "
        f"{platform.release()}, Python {platform.python_version()}, {versions}."
    )
    found = {table.title: f"{table.markdown().rstrip()}\n\n{when}\n\n" for table in tables}
    if named:
        kept = OUTPUT.read_text().split("\n## ")[1:]
        found = {each.partition("\n")[0]: f"## {each.rstrip()}\n\n" for each in kept} | found
    OUTPUT.write_text(HEAD + "".join(found.values()).rstrip() + "\n")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
