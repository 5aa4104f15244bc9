"""The values that a refusal names."""

from __future__ import annotations

import pytest

from rnea_control.parameters.allowed_value import allowed_values
from rnea_control.parameters.parameter import expand
from rnea_control.parameters.table import FEEDBACK, LIMITS, ROBOT

KNOWN = expand((*ROBOT, *LIMITS, *FEEDBACK), ("a", "b"))
PRESENT = {name: row.default for name, row in KNOWN.items()} | {"joints": ["a", "b"]}
PRESENT |= {f"gains.{joint}.{gain}": 100.0 for joint in "ab" for gain in "pd"}
RATES = "torque_rate_limits.a", "torque_rate_limits.b"


def found(allows, **wanted) -> str:
    names = {name.replace("__", "."): value for name, value in wanted.items()}
    return allowed_values(PRESENT, PRESENT | names, KNOWN, allows)


def test_value_in_place_of_a_default_is_searched_upward() -> None:
    def allows(values) -> bool:
        return values[RATES[0]] == -1.0 or values[RATES[0]] >= 47.3

    words = found(allows, torque_rate_limits__a=1.0)
    name, _, least = words.partition(" is 1, at least ")
    assert name == RATES[0] and 47.3 <= float(least.split()[0]) < 50.0


def test_value_between_two_is_found_on_the_side_that_is_allowed() -> None:
    words = found(lambda values: values["gains.a.d"] <= 234.56, gains__a__d=1000.0)
    assert words.startswith("gains.a.d is 1000, at most 23") and words.endswith("is allowed")
    assert float(words.split("at most ")[1].split()[0]) <= 234.56
    words = found(lambda values: values["payload.mass"] <= 2.0, payload__mass=50.0)
    assert 1.8 < float(words.split("at most ")[1].split()[0]) <= 2.0


def test_joints_of_one_row_change_together() -> None:
    def allows(values) -> bool:
        return all(values[name] in (-1.0,) or values[name] >= 10.0 for name in RATES)

    words = found(allows, torque_rate_limits__a=1.0, torque_rate_limits__b=2.0)
    assert RATES[0] in words and RATES[1] in words


def test_the_row_that_is_to_blame_is_named_alone() -> None:
    words = found(
        lambda values: values["effort_limit_scale"] >= 0.2,
        gains__a__p=150.0,
        effort_limit_scale=0.05,
    )
    assert words.startswith("effort_limit_scale is 0.05, at least 0.2")


def test_vector_goes_part_of_the_way() -> None:
    words = found(
        lambda values: values["payload.center_of_mass"][0] <= 0.5,
        payload__center_of_mass=[1.0, 0.0, 0.0],
    )
    assert words.startswith("payload.center_of_mass: [0.")


@pytest.mark.parametrize("allows", [lambda values: False, lambda values: len(values) == 0])
def test_nothing_is_named_where_no_row_alone_mends_it(allows) -> None:
    assert found(allows, gains__a__p=1.0, effort_limit_scale=0.5) == ""
