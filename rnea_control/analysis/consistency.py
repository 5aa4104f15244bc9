r"""Whether the inertias of a robot could be those of real bodies.

Ten inertial parameters belong to a body of mass spread in space exactly if its pseudo-inertia
(`model/rigid_body.py`) is positive definite [Wensing, Kim, Slotine 2018]

.. math:: J = \begin{bmatrix} \Sigma & m c \\ (m c)^T & m \end{bmatrix} \succ 0
          \iff m > 0, \quad \Sigma_C = \Sigma - m c c^T \succ 0

with the second moments of mass about the center of mass, Sigma_C. It follows that its inertia is
positive definite and keeps the triangle inequality. Points, rods and plates, where an eigenvalue of
Sigma_C is zero, count as consistent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.model import bodies as layout
from rnea_control.model.rigid_body import pseudo_inertia_of
from rnea_control.model.robot_model import RobotModel

# What rounding in printed numbers may leave of a second moment that is zero, relative to the
# largest.
_TOLERANCE = 1e-6

# Second moments below this, relative to the pseudo-inertia's largest entry, are those of a point.
_POINT = 1e-9


@dataclass(frozen=True)
class BodyConsistency:
    """The inertia of one body: a link with all that is fixed to it, payloads included."""

    link: str  # the one that the body's joint carries
    mass: float  # [kg]
    smallest_eigenvalue: float  # of the pseudo-inertia about the link's origin, in SI units
    # Smallest second moment of mass about the center of mass, divided by the largest: 1 for a
    # sphere, 0 for a plate; below 0, no real body has it.
    relative: float
    consistent: bool  # whether a real body can have this inertia, as also none at all
    words: str  # the same as a phrase, and what is wrong


@dataclass(frozen=True)
class ConsistencyReport:
    """The bodies of a robot: the root if it has an inertia, then those of the joints, then those of
    mimic joints. `print` shows a table."""

    bodies: tuple[BodyConsistency, ...]

    @property
    def consistent(self) -> bool:
        """Whether all bodies are consistent."""
        return all(body.consistent for body in self.bodies)

    def __str__(self) -> str:
        width = max((len(body.link) for body in self.bodies), default=0)
        return "\n".join(
            f"{body.link:{width}}  {body.mass:9.4g} kg  relative {body.relative:9.2e}  "
            f"{'' if body.consistent else 'INCONSISTENT: '}{body.words}"
            for body in self.bodies
        )


def physical_consistency(model: RobotModel) -> ConsistencyReport:
    """Checks the present inertia of each body that moves, and of the root if it has any.

    Links that are fixed to each other are checked as one body; each single link was checked when
    the model was made, with a warning."""
    bodies = []
    has_root = model.bodies[0, layout.INERTIA : layout.INERTIA + 10].any()
    for link in model.joint_links[0 if has_root else 1 :]:
        row = model.bodies[int(model.links[link, layout.LINK_BODY])]
        matrix = pseudo_inertia_of(row[layout.INERTIA : layout.INERTIA + 10])
        bodies.append(_judged(model.link_names[link], matrix))
    return ConsistencyReport(tuple(bodies))


def _judged(link: str, matrix: FloatArray) -> BodyConsistency:
    mass, first_moment = float(matrix[3, 3]), matrix[:3, 3]
    about_center = matrix[:3, :3].copy()
    if mass > 0.0:
        about_center -= np.outer(first_moment, first_moment) / mass
    moments = np.linalg.eigvalsh(about_center)
    largest = max(np.abs(moments).max(), _POINT * np.abs(matrix).max())
    relative = float(moments[0] / largest) if largest > 0.0 else 0.0
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    consistent = False
    if mass < 0.0:
        words = f"the mass is {mass:.4g} kg"
    elif mass == 0.0 and matrix.any():
        words = "it has no mass, but other inertia"
    elif relative < -_TOLERANCE:
        words = _unreal(np.trace(about_center) * np.eye(3) - about_center)
    else:
        consistent = True
        words = "a real body" if relative > _TOLERANCE else "a point, a rod or a plate"
        words = words if mass > 0.0 else "no inertia at all"
    return BodyConsistency(link, mass, smallest, relative, consistent, words)


def _unreal(inertia: FloatArray) -> str:
    """Why no real body has this inertia about its center of mass."""
    a, b, c = np.linalg.eigvalsh(inertia)
    if a < 0.0:
        return f"its smallest principal moment of inertia is {a:.4g} kg m^2"
    return (
        f"its principal moments of inertia {a:.4g}, {b:.4g}, {c:.4g} kg m^2 break the triangle "
        f"inequality by {c - a - b:.2g}"
    )
