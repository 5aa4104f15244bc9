"""Runs all benchmarks, prints their tables and writes docs/performance.md."""

from __future__ import annotations

import datetime
import os
import platform
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
import stopped_peer

OUTPUT = Path(__file__).parents[1] / "docs" / "performance.md"
PACKAGES = ("numba", "numpy", "rclpy", "pin", "mujoco", "dynibo")


def main() -> None:
    dynamics = (kernels, growth, operations, batch, compiled, compiled_peers, identification)
    tables = [
        table
        for part in (*dynamics, bare_tick, loop, lost_answers, stopped_peer)
        for table in part.tables()
    ]
    for table in tables:
        table.show()
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)
    head = (
        "# Performance\n\n"
        "Written by `make bench`: all figures are from one run. Compare the figures within a "
        "table, not with those of another machine.\n\n"
        f"{datetime.date.today()}, {_processor()}, {os.cpu_count()} CPUs, Linux "
        f"{platform.release()}, Python {platform.python_version()}, {versions}.\n\n"
    )
    OUTPUT.write_text(head + "\n".join(table.markdown() for table in tables))


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
