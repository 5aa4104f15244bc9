"""Breaks the output stage and the checks around it, one line at a time, and tells which breaks the
random histories notice.

Run with NUMBA_DISABLE_JIT=1, so that the stages are Python functions that can be replaced. Prints
one line of JSON for each: its name, and how it was noticed, empty if it was not.
"""

from __future__ import annotations

import inspect
import json
import sys
from types import ModuleType

import numpy as np
import output_histories

from rnea_control.control import output_stage, state_check, step

# Those that notice what few others do come first.
FIRST = (0, 32, 11, 5, 6)
HISTORIES = (*FIRST, *sorted(set(range(40)) - set(FIRST)))

# Name: module, what its source has, and what it has then.
MUTANTS: dict[str, tuple[ModuleType, str, str]] = {
    "nothing": (output_stage, "finite = True", "finite = True"),
    "soft upper limit pushes outward": (
        output_stage,
        "acceleration -= _push(q[j] - upper",
        "acceleration += _push(q[j] - upper",
    ),
    "no soft lower limit": (output_stage, "if q[j] < lower:", "if False:"),
    "no soft limit where the desired position is beyond it": (
        output_stage,
        "upper, outward = desired, v[j] - max(rate, 0.0)",
        "upper, outward = upper + 1.0, v[j]",
    ),
    "no braking beyond the velocity limit": (
        output_stage,
        "acceleration -= math.copysign(BRAKING_RATE",
        "acceleration += 0.0 * math.copysign(BRAKING_RATE",
    ),
    "driven on beyond the velocity limit": (output_stage, "if driving > 0.0:", "if False:"),
    "no finite check": (
        output_stage,
        "finite &= math.isfinite(state[layout.TORQUE, j])",
        "finite &= True",
    ),
    "gravity torque that is not finite": (
        output_stage,
        "if not math.isfinite(holding)",
        "if False",
    ),
    "no saturation": (output_stage, "min(max(torque, -limit), limit)", "torque"),
    "saturation on one side": (
        output_stage,
        "min(max(torque, -limit), limit)",
        "min(torque, limit)",
    ),
    "no rate limit": (
        output_stage,
        "TORQUE_RATE_LIMIT, j] * dt_rate",
        "TORQUE_RATE_LIMIT, j] * math.inf",
    ),
    "rate limit for a rising torque only": (
        output_stage,
        "elif limited < last - change:",
        "elif False:",
    ),
    "rate limit of a whole gap": (output_stage, "min(dt, state[layout.RATE_STEP, 0])", "dt"),
    "rate limit from what was asked for": (
        output_stage,
        "state[layout.COMMAND, j] = limited",
        "state[layout.COMMAND, j] = torque",
    ),
    "no saturation timeout": (
        output_stage,
        "                too_long = True",
        "                too_long = False",
    ),
    "no bound of the position error": (step, "return torn", "return False"),
    "no blend": (output_stage, "+= left * state", "+= 0.0 * state"),
    "limits without a torque": (output_stage, "TORQUE, j] += inertia *", "TORQUE, j] += 0.0 *"),
    "states that are not finite": (
        state_check,
        "finite &= math.isfinite(q[j]) & math.isfinite(v[j])",
        "finite &= True",
    ),
    "states that jump": (
        state_check,
        "            jumping = j\n",
        "            jumping = -1\n",
    ),
}


def broken(name: str) -> str:
    """How a break is noticed; empty if it is not."""
    module, old, new = MUTANTS[name]
    source = inspect.getsource(module)
    assert source.count(old) == 1, f"{name}: its line is in the source {source.count(old)} times"
    names_before = dict(vars(module))
    everywhere = [m for n, m in sys.modules.items() if n.startswith("rnea_control.control")]
    before = [(other, dict(vars(other))) for other in everywhere]
    made = dict(names_before)
    exec(compile(source.replace(old, new), module.__file__ or name, "exec"), made)
    try:
        for other in everywhere:
            for key, value in list(vars(other).items()):
                if inspect.isfunction(value) and value is names_before.get(key):
                    setattr(other, key, made[key])
        for seed in HISTORIES if old != new else HISTORIES[:3]:
            with np.errstate(all="ignore"):
                output_histories.run(seed)
    except output_histories.Broken as error:
        return str(error)
    finally:
        for other, names in before:
            vars(other).update(names)
    return ""


if __name__ == "__main__":
    for name in MUTANTS:
        print(json.dumps([name, broken(name)]), flush=True)
