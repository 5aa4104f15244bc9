"""One control step as one compiled call: sample, feedback, law, checks, limits."""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.control.law import control_torque, update_feedback
from rnea_control.control.time_scaling import advance, scale
from rnea_control.control.tolerances import UNDER_WAY, check
from rnea_control.control.trajectory import sample
from rnea_control.dynamics.body import velocity_count
from rnea_control.kernels.kernel import kernel

# A gap between ticks longer than this counts as this long for the integral, [s].
LONGEST_INTEGRATION_STEP = 0.1

# What a step reports: whether a torque was clamped, plus FOUND times what tolerances.py found; or
# why it left the torques as they were.
SATURATED, FOUND = 1, 2
BAD_STATE, BAD_TORQUE, BAD_SIZE = range(8, 11)


@kernel(
    "i8(f8[:,::1], f8[:,::1], f8[::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8[:,::1], f8, f8[::1], "
    "f8[::1], f8[::1])"
)
def step(
    bodies: FloatArray,
    memory: FloatArray,
    starts: FloatArray,
    coefficients: FloatArray,
    settings: FloatArray,
    tolerances: FloatArray,
    state: FloatArray,
    t: float,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
) -> int:
    nv = velocity_count(bodies)
    if q.shape[0] != nv or v.shape[0] != nv or tau.shape[0] != nv or coefficients.shape[1] != nv:
        return BAD_SIZE
    for j in range(nv):
        if not (math.isfinite(q[j]) and math.isfinite(v[j]) and math.isfinite(t)):
            return BAD_STATE
    dt = max(t - state[layout.LAST_TIME, 0], 0.0)
    advance(state, dt)
    s = t - state[layout.BEHIND, 0]
    state[layout.LAST_TIME, 0] = t
    state[layout.LAST_TRAJECTORY_TIME, 0] = s
    segment = int(state[layout.SEGMENT, 0])
    state[layout.SEGMENT, 0] = sample(starts, coefficients, segment, s, state)
    scale(state)
    update_feedback(settings, state, q, v, min(dt, LONGEST_INTEGRATION_STEP))
    control_torque(bodies, memory, settings, state, q, v)
    for j in range(nv):
        if not math.isfinite(state[layout.TORQUE, j]):
            return BAD_TORQUE
    outcome = 0
    for j in range(nv):
        limit = settings[layout.EFFORT_LIMIT, j]
        torque = state[layout.TORQUE, j]
        tau[j] = min(max(torque, -limit), limit)
        if tau[j] != torque:
            outcome = SATURATED
    found = UNDER_WAY
    if state[layout.CHECKED, 0] != 0.0:
        found = check(tolerances, state, s)
    return outcome + FOUND * found
