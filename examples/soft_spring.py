"""A law of your own: gravity, and a spring that pulls with a bounded torque, so that a hand can
push the arm away. docs/own_law.md runs it on the simulated arm."""

import math

from rnea_control.control.own_law import gravity, mass_matrix, own_law, per_joint


@own_law(bandwidth=15.0, most=per_joint(20.0))
def soft_spring(robot, settings, state, own, q, v, tau):
    gravity(robot, q, tau)
    mass_matrix(robot, q)
    for j in range(q.shape[0]):
        inertia, w = robot.matrix[j, j], own.bandwidth
        e = state.desired_position[j] - q[j]
        pull = own.most[j] * math.tanh(inertia * w * w * e / own.most[j])
        tau[j] += pull + 2.0 * inertia * w * (state.desired_velocity[j] - v[j])
