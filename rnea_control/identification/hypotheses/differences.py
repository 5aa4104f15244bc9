"""Parameters of the model that differ from those of the robot; a fit compensates all of them."""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import IntArray
from rnea_control.identification.consistent_parameters import ParameterSpace
from rnea_control.identification.hypotheses.hypothesis import Change, Difference
from rnea_control.model.rigid_body import link_inertia_of
from rnea_control.model.robot_model import units
from rnea_control.plausibility.causes import PAYLOAD, Cause, Contribution, effort_words, told

ROTOR, DAMPING, FRICTION, OFFSET = "rotor", "damping", "friction", "offset"


def of_actuators(space: ParameterSpace, name: str) -> IntArray:
    """Indices of theta with one kind of parameters of the actuators, shape (nv,)."""
    every = np.arange(space.actuators.start, space.actuators.stop).reshape(4, -1)
    return np.asarray(every[(ROTOR, DAMPING, FRICTION, OFFSET).index(name)])


class Friction(Difference):
    """Viscous and Coulomb friction."""

    cause = Cause(
        "friction",
        "friction that the model lacks, or has too much: {rows}",
        "rnea_identify fit writes friction.<joint>",
        fitted=True,
    )

    def columns(self, space: ParameterSpace) -> IntArray:
        return np.append(of_actuators(space, DAMPING), of_actuators(space, FRICTION))

    def change(self, change: Change) -> Contribution:
        model, values = change.model, change.values

        def text(j: int) -> str:
            constant = effort_words(model, j, values[-model.nv :], "+.3g")
            viscous = effort_words(model, j, values, "+.3g")
            return f"{constant} {viscous} s/{units(model, j).position}"

        return told(self.cause, model, change.joints, text, change.part)


class Offset(Difference):
    """Constant torques of the actuators."""

    cause = Cause(
        "offset",
        "constant offsets that the model lacks: {rows}",
        "Set friction.<joint>.offset, or zero the torque sensors",
        fitted=True,
    )

    def columns(self, space: ParameterSpace) -> IntArray:
        return of_actuators(space, OFFSET)

    def change(self, change: Change) -> Contribution:
        model, values = change.model, change.values

        def text(j: int) -> str:
            return effort_words(model, j, values, "+.3g")

        return told(self.cause, model, change.joints, text, change.part)


class Rotor(Difference):
    """Rotor inertias."""

    cause = Cause(
        "rotor",
        "rotor inertia that the model lacks: {rows}",
        "rnea_identify fit writes armature.<joint>",
        fitted=True,
    )

    def columns(self, space: ParameterSpace) -> IntArray:
        return of_actuators(space, ROTOR)

    def change(self, change: Change) -> Contribution:
        model, values = change.model, change.values

        def text(j: int) -> str:
            return f"{values[j]:+.3g} {'kg' if model.joint_types[j] == 'prismatic' else 'kg m^2'}"

        return told(self.cause, model, change.joints, text, change.part)


class Payload(Difference):
    """A load on the last link."""

    cause = PAYLOAD

    def columns(self, space: ParameterSpace) -> IntArray:
        return np.r_[space.load]

    def change(self, change: Change) -> Contribution:
        model, link = change.model, change.model.child_links[-1]
        load = link_inertia_of(link, change.space.load_inertia(change.theta))
        center = ", ".join(f"{round(value, 3) + 0.0:.3f}" for value in load.center_of_mass)
        joints, part, mass = change.joints, change.part, load.mass
        return told(self.cause, model, joints, part=part, link=link, mass=mass, center=center)


class Masses(Difference):
    """Masses, centers of mass and inertias of the links."""

    cause = Cause(
        "masses",
        "masses, centers of mass and inertias of the URDF are off, felt by {rows}",
        "rnea_identify fit writes a new URDF",
        fitted=True,
    )

    def columns(self, space: ParameterSpace) -> IntArray:
        return np.r_[space.links]

    def change(self, change: Change) -> Contribution:
        model = change.model

        def text(j: int) -> str:
            return effort_words(model, j, change.torque)

        return told(self.cause, model, change.joints, text, change.part)


HYPOTHESES = (Friction(), Offset(), Rotor(), Payload(), Masses())
