"""Base parameters: the same torques from fewer inertial parameters.

A part of a body that is symmetric about the axis of its revolute joint, and that has no moment of
inertia about it, feels nothing of the joint: it may as well belong to the parent. So m, mcz and Iyy
of each body become 0, and Ixx the difference of both. The moments and products of inertia of a body
on a prismatic joint belong to its parent altogether [Khalil, Dombre 2004, ch. 9.4]. What the root
gets, no joint feels.

Torques and the mass matrix are the same in exact arithmetic; the bodies by themselves are no longer
possible ones.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.model import bodies as layout
from rnea_control.model.rigid_body import homogeneous, pseudo_inertia_of, ten_parameters

_M, _MCZ, _IXX, _IYY = 0, 3, 4, 7


def regrouped(bodies: FloatArray, kept: Collection[int] = ()) -> FloatArray:
    """A copy of `model.bodies` with the inertial parameters of the bodies moved to their parents as
    far as no torque changes.

    Args:
        bodies: of a model.
        kept: rows whose inertial parameters stay as they are.
    """
    bodies = bodies.copy()
    for i in range(len(bodies) - 1, 0, -1):
        row = bodies[i]
        parent = int(row[layout.PARENT])
        if row[layout.MOTION] != layout.AXIS or i in kept or parent in kept:
            continue
        own = row[layout.INERTIA : layout.INERTIA + 10]
        moved = np.zeros(10)
        if row[layout.S_LINEAR] == 0.0:
            moved[[_M, _MCZ, _IXX, _IYY]] = own[[_M, _MCZ, _IYY, _IYY]]
        elif row[layout.S_ANGULAR] == 0.0:
            moved[_IXX:] = own[_IXX:]
        own -= moved
        R_PB = row[layout.ROTATION : layout.ROTATION + 9].reshape(3, 3)
        X_PB = homogeneous(R_PB, row[layout.TRANSLATION : layout.TRANSLATION + 3])
        in_parent = ten_parameters(X_PB @ pseudo_inertia_of(moved) @ X_PB.T)
        bodies[parent, layout.INERTIA : layout.INERTIA + 10] += in_parent
    return bodies
