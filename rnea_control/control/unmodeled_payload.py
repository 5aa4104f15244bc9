r"""The part of the external torques that the weight of a payload explains which the model lacks.

An arm that has gripped something is neither driven by a person nor in the way of an obstacle. The
weight of a mass m at a link acts on the joints by :math:`m J^T g`, with J the Jacobian of the
link's origin. The mass that explains the external torques r best, as parts of the effort limits, is

.. math::

    m = \frac{\sum_j r_j w_j / \tau_j^2}{\sum_j w_j^2 / \tau_j^2}, \quad w = J^T g

from 0 to the largest mass that is allowed for. It must explain most of them. Other causes may be
like a weight too: a torque on joint 6 of a Panda alone in 17 % of random postures, on joint 5 in
5 %, on others in less, and a horizontal push at the link in 4 %.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control.layout import Settings, State
from rnea_control.control.robot import Robot
from rnea_control.dynamics import body
from rnea_control.dynamics.kinematics import force_torques_after_poses, pose_pass
from rnea_control.jit.inlining import shared
from rnea_control.spatial.vectors import scale

LEAST_FIT = 0.7  # part of the torques' squares, over the effort limits', that a weight explains


@shared
def explain(robot: Robot, settings: Settings, state: State, q: Vector) -> None:
    """Fills `payload_weight` for the residual at positions `q`. Overwrites the workspace."""
    weight, link = state.payload_weight, int(settings.payload_link)
    g = scale(-1.0, body.base_acceleration(robot.bodies))
    pose_pass(robot.bodies, robot.memory, q)
    force_torques_after_poses(robot.bodies, robot.links, robot.memory, link, g, weight)
    product = of_weight = of_residual = 0.0
    for j in range(q.shape[0]):
        limit = settings.effort_limit[j]
        if limit > 0.0 and math.isfinite(limit):
            residual, per_mass = state.residual[j] / limit, weight[j] / limit
            product += residual * per_mass
            of_weight += per_mass * per_mass
            of_residual += residual * residual
    mass = 0.0
    if product > 0.0 and product * product >= LEAST_FIT * of_weight * of_residual:
        mass = min(product / of_weight, settings.unmodeled_payload)
    for j in range(q.shape[0]):
        weight[j] *= mass
