r"""The gains of a planner, such as a model predictive controller.

A message has the gains K about a state x_0, and the torque tau_0 there, for

.. math:: \tau = \tau_0 + K (x_0 - x).

K has a row for each joint, and a column for each position, then for each velocity. x_0 stays as it
is until the next message. It is a state, not a path: the arm moves by tau_0 while x_0 stands.

When messages are missing for `control_timeout`, the arm brakes from where it is. While states are
missing it comes to rest by the law of predicted states.
"""

from __future__ import annotations

from rnea_control.control.layout import Settings, State
from rnea_control.jit.inlining import inlined


@inlined
def follow_gains(settings: Settings, state: State, t: float, predicted: bool) -> bool:
    """Fills in the state x_0 as the desired motion; returns True once messages are missing.

    Args:
        t: time [s].
        predicted: True while no state comes: then the arm is desired to rest.
    """
    state.integral[:] = 0.0  # the law has none
    state.desired_acceleration[:] = 0.0
    state.desired_effort[:] = 0.0
    for j in range(state.shape[1]):
        if predicted:
            state.velocity_error[j] -= state.desired_velocity[j]
            state.desired_velocity[j] = 0.0
        else:
            state.desired_position[j] = state.target[j]
            # A message changes no velocity of the arm, which is watched by this error.
            change = state.target_rate[j] - state.desired_velocity[j]
            state.smooth_velocity_error[j] += change
            state.desired_velocity[j] = state.target_rate[j]
    return not t - state.stream_at <= settings.control_timeout
