r"""Inertial parameters of a body: as ten numbers, and as a pseudo-inertia matrix.

The ten numbers are [m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]: mass, mass times center of
mass, and the inertia about the frame's origin. They enter the equations of motion linearly. For
changes of frame and sums the same ten numbers form the symmetric 4x4 pseudo-inertia matrix
[Wensing, Kim, Slotine 2018]

.. math:: J = \begin{bmatrix} \Sigma & m c \\ (m c)^T & m \end{bmatrix}, \quad
          \Sigma = \int r r^T dm = \tfrac{1}{2} \mathrm{tr}(I) 1 - I

because a change of frame is then one product, J_A = X_AB J_B X_AB^T with the homogeneous transform
X_AB, and bodies that move together simply add. Masses of zero need no special case.
"""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import FloatArray

_UPPER = np.triu_indices(3)


def pseudo_inertia(mass: float, center_of_mass: FloatArray, inertia: FloatArray) -> FloatArray:
    """Pseudo-inertia of a body, shape (4, 4), about the origin of the frame that `center_of_mass`
    is given in.

    Args:
        mass: [kg].
        center_of_mass: shape (3,), [m].
        inertia: about the center of mass, in axes parallel to the frame's, shape (3, 3), [kg m^2].
    """
    center_of_mass, inertia = np.asarray(center_of_mass), np.asarray(inertia)
    matrix = np.zeros((4, 4))
    second_moment = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    matrix[:3, :3] = second_moment + mass * np.outer(center_of_mass, center_of_mass)
    matrix[:3, 3] = matrix[3, :3] = mass * center_of_mass
    matrix[3, 3] = mass
    return matrix


def homogeneous(rotation: FloatArray, translation: FloatArray) -> FloatArray:
    """The homogeneous transform X_AB of `rotation` R_AB and `translation` p_AB, shape (4, 4)."""
    transform = np.eye(4)
    transform[:3, :3] = rotation
    transform[:3, 3] = translation
    return transform


def ten_parameters(matrix: FloatArray) -> FloatArray:
    """[m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz] of a pseudo-inertia, shape (10,)."""
    second_moment = matrix[:3, :3]
    inertia = np.trace(second_moment) * np.eye(3) - second_moment
    return np.concatenate([[matrix[3, 3]], matrix[:3, 3], inertia[_UPPER]])


def pseudo_inertia_of(parameters: FloatArray) -> FloatArray:
    """The pseudo-inertia that has these ten parameters, shape (4, 4): the inverse of
    `ten_parameters`."""
    inertia = np.zeros((3, 3))
    inertia[_UPPER] = inertia.T[_UPPER] = parameters[4:]
    matrix = np.zeros((4, 4))
    matrix[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    matrix[:3, 3] = matrix[3, :3] = parameters[1:4]
    matrix[3, 3] = parameters[0]
    return matrix


def principal_second_moments(inertia: FloatArray) -> FloatArray:
    """Second moments of mass along the principal axes, ascending, shape (3,), [kg m^2].

    A real body has none below zero; that is the triangle inequality of its principal moments of
    inertia (A + B >= C), and implies that the inertia is positive semidefinite.
    """
    return np.linalg.eigvalsh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
