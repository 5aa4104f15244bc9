r"""Physical consistency of a robot's inertias.

A body with mass distributed in space can have ten given inertial parameters exactly if their
pseudo-inertia (`model/rigid_body.py`) is positive definite [Wensing, Kim, Slotine 2018]

.. math:: J = \begin{bmatrix} \Sigma & m c \\ (m c)^T & m \end{bmatrix} \succ 0
          \iff m > 0, \quad \Sigma_C = \Sigma - m c c^T \succ 0

with the second moments of mass about the center of mass, Sigma_C. Then the inertia is positive
definite and satisfies the triangle inequality. Points, rods and plates, for which an eigenvalue of
Sigma_C is zero, count as consistent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnea_control.model import bodies as layout
from rnea_control.model.rigid_body import (
    impossible_inertias,
    link_inertia_of,
    pseudo_inertia_of,
    second_moment,
)
from rnea_control.model.robot_model import RobotModel

_POINT = 1e-9  # largest second moment of a point mass, over the pseudo-inertia's largest entry


@dataclass(frozen=True)
class BodyConsistency:
    """Inertia of one body: a link with all links fixed to it, payloads included."""

    link: str  # child link of the body's joint
    mass: float  # [kg]
    # Smallest second moment of mass about the center of mass, divided by the largest: 1 for a
    # sphere, 0 for a plate; no real body is below 0.
    relative: float
    fault: str  # description of the fault; empty if a real body can have this inertia, or for none

    @property
    def consistent(self) -> bool:
        """True if a real body can have this inertia."""
        return not self.fault

    def __str__(self) -> str:
        words = f"INCONSISTENT: {self.fault}" if self.fault else "consistent"
        return f"{self.link}: {self.mass:.4g} kg, relative {self.relative:.2e}, {words}"


def physical_consistency(model: RobotModel) -> tuple[BodyConsistency, ...]:
    """Checks the present inertia of each body: the root if it has an inertia, then the bodies
    of joints, then of mimic joints.

    Links that are fixed to each other are checked as one body. Each single link was checked in the
    same way when the model was made, with a warning."""
    bodies = []
    has_root = model.bodies[0, layout.PARAMETERS].any()
    for link in model.joint_links[0 if has_root else 1 :]:
        row = model.bodies[int(model.links[link, layout.LINK_BODY])]
        matrix = pseudo_inertia_of(row[layout.PARAMETERS])
        body = link_inertia_of(model.link_names[link], matrix)
        moments = np.linalg.eigvalsh(second_moment(body.inertia))
        largest = max(np.abs(moments).max(), _POINT * np.abs(matrix).max())
        relative = float(moments[0] / largest) if largest > 0.0 else 0.0
        fault = "".join(impossible_inertias([body]))
        bodies.append(BodyConsistency(body.link, body.mass, relative, fault))
    return tuple(bodies)
