"""An identification of the Panda arm as a fit would give it, and residuals of synthetic motions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from robots import PANDA_JOINTS, example_robot, load_quietly

from rnea_control.analysis import base_parameters, inertial_parameters
from rnea_control.dynamics import Workspace, rnea
from rnea_control.identification.result import Certainty, Estimate, Identification, Residuals
from rnea_control.model import RobotModel

UNITS = {"m": "kg", "mcx": "kg m", "mcy": "kg m", "mcz": "kg m"}
CERTAINTIES = (Certainty.identified,) * 5 + (Certainty.uncertain,) * 2 + (Certainty.unidentified,)


def panda() -> RobotModel:
    """The arm, its fingers locked."""
    return load_quietly(example_robot("panda"), PANDA_JOINTS)


def identification(model: RobotModel | None = None) -> Identification:
    """Heavier links than the URDF's, friction and rotors."""
    model = panda() if model is None else model
    rng, base, nv = np.random.default_rng(0), base_parameters(model), model.nv
    prior = base.values(inertial_parameters(model))
    estimates = []
    for k, name in enumerate(base.names):
        certainty = CERTAINTIES[k % len(CERTAINTIES)]
        value = prior[k] + 0.2 * rng.standard_normal()
        kind = name.split(" ")[0].rpartition(".")[2]
        unit = UNITS.get(kind, "kg m^2")
        unknown = certainty is Certainty.unidentified
        estimates.append(
            Estimate(name, unit, prior[k], np.nan if unknown else value, 0.01 + unknown, certainty)
        )
    moving = [link for link in model.link_names if link != model.root_link]
    inertias = {link: 1.1 * model.link_inertias[link] for link in moving}
    return Identification(
        model,
        base,
        np.array([estimate.value for estimate in estimates]),
        np.eye(base.rank),
        tuple(estimates),
        inertias,
        np.linspace(0.5, 0.05, nv),
        np.linspace(2.0, 0.5, nv),
        np.linspace(1.5, 0.123456789, nv),
        np.linspace(-0.3, 0.3, nv),
        np.linspace(0.4, 0.05, nv),
        37.0,
        0.0021,
        12.0,
        np.full(nv, 4000.0),
        61.3,
        ("panda_joint7 moves for 0.4 s only; its friction keeps the description's value",),
    )


def residuals(
    held_out: bool = True,
    source: str = "held_out.mcap",
    before: float = 3.0,
    after: float = 1.0,
    seconds: float = 20.0,
    rate: float = 250.0,
) -> Residuals:
    """Of a swinging arm.

    Args:
        held_out, source: of the recording.
        before, after: RMS residual of both models in units of the noise, about.
        seconds, rate: of the motion.
    """
    model, rng = panda(), np.random.default_rng(1)
    ws, nv = Workspace(model), model.nv
    time = np.arange(round(seconds * rate)) / rate
    phase = 2.0 * np.pi * np.outer(time, np.linspace(0.1, 0.4, nv))
    center, swing = 0.5 * (model.lower + model.upper), 0.3 * (model.upper - model.lower)
    w = 2.0 * np.pi * np.linspace(0.1, 0.4, nv)
    q, v, a = (
        center + swing * np.sin(phase),
        swing * w * np.cos(phase),
        -swing * w**2 * np.sin(phase),
    )
    torque = np.array([rnea(model, ws, *row, np.zeros(nv)) for row in zip(q, v, a, strict=True)])
    torque += 1.5 * np.tanh(v / 0.05)
    noise = 0.01 * model.effort_limit
    measured = torque + noise * rng.standard_normal(torque.shape)

    def off(size: float) -> np.ndarray:
        error = np.sqrt(2.0 * max(size**2 - 1.0, 0.0)) * noise
        return torque - error * np.sin(phase + 1.0)

    return Residuals(
        source, held_out, model.joint_names, time, measured, off(before), off(after), noise
    )


def changed(found: Residuals, joint: str, after: float) -> Residuals:
    """The same, with the error after of one joint scaled so."""
    j = found.joints.index(joint)
    predicted = found.after.copy()
    predicted[:, j] = found.measured[:, j] + after * (predicted[:, j] - found.measured[:, j])
    return replace(found, after=predicted)
