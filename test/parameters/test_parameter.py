"""The words for what a parameter may be, and what it refuses."""

from __future__ import annotations

import math

import pytest

from rnea_control.exceptions import ParameterError
from rnea_control.parameters.parameter import (
    GivenParameters,
    Parameter,
    expand,
    markdown,
    values_in_force,
)

WORDS = {
    "boolean": Parameter("x", bool, True, ""),
    "integer, at least 1 and at most 98, or 0 for none": Parameter(
        "x", int, 0, "", at_least=1, at_most=98, special=(0, "none")
    ),
    "double, above 0": Parameter("x", float, 1.0, "", above=0.0),
    'string, or "" for the last link': Parameter("x", str, "", "", special=("", "the last link")),
    "string array (list of non-empty strings)": Parameter("x", list[str], None, ""),
    "integer array, each at least 0, or [-1] for all CPUs": Parameter(
        "x", list[int], [-1], "", at_least=0, special=([-1], "all CPUs")
    ),
    "double array of length 3, each at least -1000 and at most 1000": Parameter(
        "x", list[float], [0.0] * 3, "", at_least=-1000.0, at_most=1000.0, length=3
    ),
    "one of a, b": Parameter("x", str, "a", "", choices=("a", "b")),
}


@pytest.mark.parametrize("words", WORDS)
def test_words_for_what_is_allowed(words: str) -> None:
    parameter = WORDS[words]
    assert parameter.allowed == words
    assert f"| {words} |" in markdown([parameter])
    with pytest.raises(ParameterError) as caught:
        parameter.check("arm.x", [None])
    article = {"o": "", "i": "an "}.get(words[0], "a ")
    assert str(caught.value) == f"parameter 'arm.x' is [None]; it must be {article}{words}"


def test_special_value_is_allowed_and_nothing_else_beyond_the_bounds() -> None:
    friction = Parameter("x", float, -1.0, "", at_least=0.0, special=(-1.0, "that of the URDF"))
    for value in (-1, -1.0, 0.0, 2.5):
        assert friction.check("x", value) == value
    for value in (-0.5, -0.999, -2.0):
        with pytest.raises(ParameterError, match=r"or -1\.0 for that of the URDF"):
            friction.check("x", value)
    cpus = Parameter("x", list[int], [-1], "", at_least=0, special=([-1], "all CPUs"))
    for value in ([-1], [0], [2, 3]):
        assert cpus.check("x", value) == value
    for value in ([-1, 2], [2, -1], [-1, -1], [-2]):
        with pytest.raises(ParameterError, match=r"or \[-1\] for all CPUs"):
            cpus.check("x", value)


def test_plain_values_are_checked_and_have_defaults() -> None:
    table = [Parameter("p.<joint>", float, None, "gain"), Parameter("x", int, 3, "", at_least=0)]
    given = GivenParameters({"p.a": 2, "x": -1, "y": 0}, expand(table, ["a", "b"]))
    assert given["p.a"] == 2.0 and isinstance(given["p.a"], float)
    assert given.unknown() == ["y"]
    faults = given.faults()
    assert len(faults) == 2
    assert "'p.b' is not set; it must be a double: gain" in faults[0] and "'x' is -1" in faults[1]
    assert GivenParameters({}, expand(table, []))["x"] == 3


def test_what_a_value_puts_in_force_and_a_program_may_set() -> None:
    tolerance = Parameter("t.<joint>", float, 0.0, "", above=0.0, special=(0.0, "none", math.inf))
    limit = Parameter("limit", float, 1.0, "", above=0.0, special=(-1.0, "the URDF's", math.nan))
    table = (tolerance, limit, Parameter("rate", float, 2.0, "", above=0.0, bound=True))
    given = GivenParameters({"t.b": 0.5, "limit": -1}, expand(table, ("a", "b")))
    found = values_in_force(given, table, ("a", "b"))
    assert list(found["t.<joint>"]) == [math.inf, 0.5]
    assert math.isnan(found["limit"]) and found["rate"] == 2.0
    for row, good, bad in (
        (tolerance, math.inf, 0.0),
        (limit, math.nan, -1.0),
        (table[2], math.inf, math.nan),
    ):
        assert row.once_in_force.check("x", good) is good
        with pytest.raises(ParameterError, match=f"'x' is {bad}; it must be a double, above 0"):
            row.once_in_force.check("x", bad)
        with pytest.raises(ParameterError):
            row.check("x", good)


def test_value_of_another_is_repeated_in_short_and_on_one_line() -> None:
    parameter = WORDS["double, above 0"]
    for value in ("\x1b[31m\n[FATAL]", "x" * 10**6, 10**5_000_000, [0.0] * 10**6):
        with pytest.raises(ParameterError) as found:
            parameter.check("gains.a\x1b[0m\n.p", value)
        assert str(found.value).isprintable() and len(str(found.value)) < 300
