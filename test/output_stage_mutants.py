"""Breaks the output stage and the checks around it, one stage at a time, and tells which breaks the
random histories notice.

Run with NUMBA_DISABLE_JIT=1, so that the stages are Python functions that can be replaced. Prints
one line of JSON for each: its name, and how it was noticed, empty if it was not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import output_histories

from rnea_control.control import belief, output_stage, step

# Those that notice what few others do come first.
FIRST = (0, 32, 11, 5, 6)
HISTORIES = (*FIRST, *sorted(set(range(40)) - set(FIRST)))

Stage = Callable[..., Any]
Break = Callable[[Stage], Stage]


def with_setting(name: str, value: Callable[..., Any]) -> Break:
    """With another value of a setting: `value` of it and of the stage's other arguments."""

    def break_it(stage: Stage) -> Stage:
        def broken(settings: np.ndarray, *others: Any) -> Any:
            settings = settings.copy()
            setattr(settings, name, value(getattr(settings, name), *others))
            return stage(settings, *others)

        return broken

    return break_it


def without(name: str, value: float = np.inf) -> Break:
    return with_setting(name, lambda *_: value)


def answering(answer: Any) -> Break:
    """Does nothing, and answers always the same."""
    return lambda stage: lambda *_: answer


def outward(stage: Stage) -> Stage:
    def broken(settings: np.ndarray, state: np.ndarray, q: np.ndarray, *others: Any) -> bool:
        found = stage(settings, state, q, *others)
        wanted = state.limit_acceleration
        wanted[:] = np.where(q > settings.soft_upper, np.abs(wanted), wanted)
        return found

    return broken


def trusting_gravity(stage: Stage) -> Stage:
    def broken(settings: np.ndarray, state: np.ndarray, v: np.ndarray) -> None:
        torque, gravity = state.torque, state.gravity_torque
        neither = ~np.isfinite(torque) & ~np.isfinite(gravity)
        stage(settings, state, v)
        torque[neither] = np.nan

    return broken


def over_a_whole_gap(stage: Stage) -> Stage:
    def broken(settings: np.ndarray, state: np.ndarray, *others: Any) -> Any:
        state.rate_step = np.inf
        return stage(settings, state, *others)

    return broken


def forgetful(stage: Stage) -> Stage:
    def broken(settings: np.ndarray, state: np.ndarray, *others: Any) -> Any:
        found = stage(settings, state, *others)
        state.command = state.torque
        return found

    return broken


one_sided_saturation = with_setting(
    "effort_limit",
    lambda limit, state, *_: np.where(state.torque < 0.0, np.inf, limit),
)
one_sided_rate = with_setting(
    "torque_rate_limit",
    lambda rate, state, *_: np.where(state.torque < state.command, np.inf, rate),
)
# Name: the stage, by its name in output_stage.py, belief.py or step.py, and how it is broken.
MUTANTS: dict[str, tuple[str, Break]] = {
    "nothing": ("output_stage", lambda stage: stage),
    "soft upper limit pushes outward": ("limit_acceleration", outward),
    "no soft lower limit": ("limit_acceleration", without("soft_lower", -np.inf)),
    "no soft limit where the desired position is beyond it": (
        "limit_acceleration",
        with_setting(
            "soft_upper",
            lambda high, state, *_: np.where(state.desired_position > high, np.inf, high),
        ),
    ),
    "no braking beyond the velocity limit": ("limit_acceleration", without("velocity_limit")),
    "driven on beyond the velocity limit": ("fall_back", without("velocity_limit")),
    "no finite check": ("torques_are_finite", answering(True)),
    "gravity torque that is not finite": ("fall_back", trusting_gravity),
    "no saturation": ("output_stage", without("effort_limit")),
    "saturation on one side": ("output_stage", one_sided_saturation),
    "no rate limit": ("output_stage", without("torque_rate_limit")),
    "rate limit for a rising torque only": ("output_stage", one_sided_rate),
    "rate limit of a whole gap": ("output_stage", over_a_whole_gap),
    "rate limit from what was asked for": ("output_stage", forgetful),
    "no saturation timeout": ("output_stage", without("saturation_timeout")),
    "no bound of the position error": ("violated_position", answering(False)),
    "no blend": ("blend", answering(None)),
    "limits without a torque": ("add_limit_torques", answering(None)),
    "states that are not finite": ("is_finite", answering(True)),
    "states that jump": ("jumping_joint", answering(-1)),
}


def broken(name: str) -> str:
    """How a break is noticed; empty if it is not."""
    stage, break_it = MUTANTS[name]
    owner = next(each for each in (output_stage, belief, step) if hasattr(each, stage))
    whole = getattr(owner, stage)
    broken = break_it(whole)
    try:
        setattr(owner, stage, broken)
        for seed in HISTORIES if broken is not whole else HISTORIES[:3]:
            with np.errstate(all="ignore"):
                output_histories.run(seed)
    except output_histories.Broken as error:
        return str(error)
    finally:
        setattr(owner, stage, whole)
    return ""


if __name__ == "__main__":
    for name in MUTANTS:
        print(json.dumps([name, broken(name)]), flush=True)
