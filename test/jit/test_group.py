"""Named tuples of arrays as arguments of kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from rnea_control.array_types import FloatArray, RecordArray, Vector
from rnea_control.jit.group import group, spelled_out
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.record import Record
from rnea_control.jit.rows import Rows


class Counted(Record):
    """A count."""

    count: int = 0


class Place(Rows):
    """Where joints are."""

    position: Vector


@group(counted="Counted[::1]", place="Place", scale="f8[::1]")
class Arrays(NamedTuple):
    """What a kernel takes."""

    counted: RecordArray
    place: Place
    scale: FloatArray


@group(counted="Counted[::1]", place="Place", scale="f8[::1]")
class Others(NamedTuple):
    """The same fields, another class."""

    counted: RecordArray
    place: Place
    scale: FloatArray


def arrays() -> Arrays:
    place = Place.zeros(2)
    place.position[:] = 1.0, 2.0
    return Arrays(Counted().array, place, np.array([3.0]))


@inlined
def scaled(arrays: Arrays, factor: float) -> float:
    total = 0.0
    for j in range(arrays.place.position.shape[0]):
        arrays.place.position[j] *= factor * arrays.scale[0]
        total += arrays.place.position[j]
    arrays.counted[0].count += 1
    return total


@kernel("f8(Arrays, f8)")
def scale_all(arrays: Arrays, factor: float) -> float:
    return scaled(arrays, factor)


def test_kernel_reads_and_writes_the_arrays() -> None:
    ours = arrays()
    assert scale_all(ours, 2.0) == 18.0
    assert ours.place.position.tolist() == [6.0, 12.0]
    assert ours.counted["count"].tolist() == [1]


WRONG = (
    tuple(arrays()),
    Others(*arrays()),
    arrays()[:2],
    arrays()._replace(scale=np.array([3])),
    arrays()._replace(place=Place.zeros(2).view(np.ndarray)),
    arrays()._replace(counted=None),
    list(arrays()),
    None,
)


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_another_argument_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"^not a "):
        scale_all(wrong, 1.0)
    assert scale_all(arrays(), 1.0) == 9.0


def test_fields_are_a_part_of_the_signature() -> None:
    words = spelled_out("f8(Arrays, f8)")
    assert "counted: Counted[::1], place: Place, scale: f8[::1]" in words
    with pytest.raises(TypeError, match="has the fields"):
        group(other="f8")(Arrays)


@pytest.mark.explores
@pytest.mark.parametrize("mode", ["NUMBA_DISABLE_JIT", "RNEA_CONTROL_NUMBA_DISPATCH"])
def test_without_machine_code_or_its_entry(mode: str) -> None:
    tests = [test_kernel_reads_and_writes_the_arrays, test_fields_are_a_part_of_the_signature]
    if mode != "NUMBA_DISABLE_JIT":
        tests.append(test_another_argument_is_refused)
    names = [f"{__file__}::{test.__name__}" for test in tests]
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *names]
    environment = {**os.environ, mode: "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
