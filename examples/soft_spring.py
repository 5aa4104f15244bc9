"""A law of your own: gravity, and a spring that pulls with a bounded torque, so that a hand can
push the arm away. docs/own_law.md runs it on the simulated arm."""

import math

from rnea_control.control.own_law import gravity, own_law, per_joint


@own_law(stiffness=per_joint(100.0), damping=per_joint(10.0), most=per_joint(20.0))
def soft_spring(robot, settings, state, own, q, v, tau):
    gravity(robot, q, tau)
    for j in range(q.shape[0]):
        e = state.desired_position[j] - q[j]
        pull = own.most[j] * math.tanh(own.stiffness[j] * e / own.most[j])
        tau[j] += pull + own.damping[j] * (state.desired_velocity[j] - v[j])
