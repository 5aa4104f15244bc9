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

from rnea_control.model import bodies as layout
from rnea_control.model.rigid_body import (
    impossible_inertias,
    link_inertia_of,
    pseudo_inertia_of,
    second_moment,
)
from rnea_control.model.robot_model import RobotModel

# Second moments below this, relative to the pseudo-inertia's largest entry, are those of a point.
_POINT = 1e-9


@dataclass(frozen=True)
class BodyConsistency:
    """The inertia of one body: a link with all that is fixed to it, payloads included."""

    link: str  # the one that the body's joint carries
    mass: float  # [kg]
    # Smallest second moment of mass about the center of mass, divided by the largest: 1 for a
    # sphere, 0 for a plate; below 0, no real body has it.
    relative: float
    fault: str  # what is wrong; empty if a real body can have this inertia, as also none at all

    @property
    def consistent(self) -> bool:
        """Whether a real body can have this inertia."""
        return not self.fault

    def __str__(self) -> str:
        words = f"INCONSISTENT: {self.fault}" if self.fault else "consistent"
        return f"{self.link}: {self.mass:.4g} kg, relative {self.relative:.2e}, {words}"


def physical_consistency(model: RobotModel) -> tuple[BodyConsistency, ...]:
    """Checks the present inertia of each body: of the root if it has any, then of those that joints
    carry, then of those of mimic joints.

    Links that are fixed to each other are checked as one body, in the same way as each single link
    was when the model was made, with a warning."""
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
