"""Robots that are not quite as their URDFs say, and what their joint states would say."""

from __future__ import annotations

import copy

import numpy as np
from scipy.signal import lfilter

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.identification.recording import Recording
from rnea_control.model import RobotModel
from rnea_control.model.bodies import INERTIA
from rnea_control.model.rigid_body import pseudo_inertia_of, ten_parameters

NOISE = 0.02  # of each effort limit
ENCODER = 1e-5


def hidden_robot(model: RobotModel, seed: int) -> RobotModel:
    """The same robot with masses and centers of mass up to a fifth off, friction, rotors and
    offsets."""
    rng = np.random.default_rng(seed)
    hidden = copy.deepcopy(model)
    for row in hidden.bodies[1:]:
        matrix = pseudo_inertia_of(row[INERTIA : INERTIA + 10])
        mass = matrix[3, 3]
        if mass == 0.0:
            continue
        center = matrix[:3, 3] / mass
        about_center = matrix[:3, :3] - mass * np.outer(center, center)
        factor, moved = rng.uniform(0.8, 1.2), center * rng.uniform(0.8, 1.2, 3)
        matrix = np.zeros((4, 4))
        matrix[:3, :3] = about_center + mass * np.outer(moved, moved)
        matrix[:3, 3] = matrix[3, :3] = mass * moved
        matrix[3, 3] = mass
        row[INERTIA : INERTIA + 10] = ten_parameters(factor * matrix)
    size = hidden.effort_limit
    hidden.armature = rng.uniform(0.001, 0.004, model.nv) * size
    hidden.damping = rng.uniform(0.005, 0.02, model.nv) * size
    hidden.friction = rng.uniform(0.005, 0.04, model.nv) * size
    hidden.torque_offset = rng.uniform(-0.01, 0.01, model.nv) * size
    return hidden


def fourier_motion(
    model: RobotModel, seconds: float, rng: np.random.Generator, rate: float = 1000.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    t = np.arange(0.0, seconds, 1.0 / rate)
    q, v, a = np.zeros((3, len(t), model.nv))
    w = 2.0 * np.pi / 10.0
    for j in range(model.nv):
        for k in range(1, 6):
            sine, cosine = rng.standard_normal(2) / k
            s, c = np.sin(k * w * t), np.cos(k * w * t)
            q[:, j] += sine * s + cosine * c
            v[:, j] += k * w * (sine * c - cosine * s)
            a[:, j] -= (k * w) ** 2 * (sine * s + cosine * c)
        lower, upper = max(model.lower[j], -np.pi), min(model.upper[j], np.pi)
        speed = 0.5 * min(model.velocity_limit[j], 3.0)
        scale = min(0.9 * (upper - lower) / np.ptp(q[:, j]), speed / np.abs(v[:, j]).max())
        for each in (q, v, a):
            each[:, j] *= scale
        q[:, j] += 0.5 * (lower + upper - q[:, j].max() - q[:, j].min())
    return t, q, v, a


def recording_of(
    robot: RobotModel,
    seconds: float,
    seed: int,
    noise=NOISE,
    delay=0.0,
    rate=1000.0,
    correlation=0.0,
) -> Recording:
    """What the joint states of a robot say that moves so, with noise, whose correlation falls to
    1/e in so many seconds."""
    rng = np.random.default_rng(1000 + seed)
    t, q, v, a = fourier_motion(robot, seconds, rng, rate)
    tau = inverse_dynamics_batch(robot, q, v, a)
    if delay:
        tau = np.stack([np.interp(t - delay, t, column) for column in tau.T], axis=1)
    kept = np.exp(-1.0 / (rate * correlation)) if correlation else 0.0
    white = rng.standard_normal(tau.shape)
    colored = lfilter([np.sqrt(1.0 - kept**2)], [1.0, -kept], white, axis=0)
    tau += noise * robot.effort_limit * colored
    q = q + ENCODER * rng.standard_normal(q.shape)
    return Recording("recording", robot.joint_names, t, q, tau)
