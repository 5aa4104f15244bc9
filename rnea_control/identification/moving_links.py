"""The links that move, as unknowns: each a matrix S that is 1 for the URDF's inertia."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.regressor import BODY_PARAMETERS
from rnea_control.exceptions import IdentificationError
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout
from rnea_control.model.rigid_body import homogeneous, pseudo_inertia_of, ten_parameters

# A link that is a point, rod or plate in the URDF is taken for a body of this radius of gyration,
# [m], and one without mass for this mass, [kg].
LEAST_RADIUS = 0.01
LEAST_MASS = 1e-3
# No link is so wide for its mass, [m]; it is as good as unknown.
LARGEST_RADIUS = 2.0
# A body whose links all lack an inertia is taken for a ball of this mass and radius of gyration.
UNKNOWN_MASS, UNKNOWN_RADIUS = 0.1, 0.05

_ROWS, _COLUMNS = np.tril_indices(4)
# Clarabel's cone takes the upper triangle column by column, with products scaled so.
_SCALE = np.where(_ROWS == _COLUMNS, 1.0, np.sqrt(2.0))
SIZE = 10


@dataclass(frozen=True, eq=False)
class MovingLink:
    """A link that moves: where its ten parameters count, and by how much for those of S."""

    name: str
    body: int
    root: FloatArray  # C of its J_0
    to_body: FloatArray  # shape (10, 10): the body's parameters for each entry of S
    own: FloatArray  # the body's parameters by the URDF's inertia of the link


def parameters_in_body(model: RobotModel, link: str) -> tuple[int, FloatArray]:
    """The body that a link belongs to, counted as the regressor's columns are, and the matrix that
    takes ten parameters in the link's frame to the body's, shape (10, 10).

    Raises:
        IdentificationError: no such link, or it does not move.
    """
    if link not in model.link_names:
        raise IdentificationError(
            f"there is no link {link!r}; {model.name!r} has {', '.join(model.link_names)}"
        )
    k = model.link_names.index(link)
    rows = model.links[model.joint_links[1:], layout.LINK_BODY]
    bodies = np.flatnonzero(rows == model.links[k, layout.LINK_BODY])
    if not len(bodies):
        raise IdentificationError(
            f"link {link!r} stands still with {model.root_link!r}: no torque tells what it carries"
        )
    body = int(bodies[0])
    X_CL = np.linalg.solve(_placement(model, model.joint_links[body + 1]), _placement(model, k))
    units = np.eye(SIZE)
    moved = [ten_parameters(X_CL @ pseudo_inertia_of(unit) @ X_CL.T) for unit in units]
    return body, np.stack(moved, axis=1)


def moving_links(model: RobotModel) -> list[MovingLink]:
    """The links with inertia that move; of a body without any, the one that its joint carries."""
    links = []
    for body, carried in enumerate(model.joint_links[1:].tolist()):
        X_BC = _placement(model, carried)
        row = model.links[carried, layout.LINK_BODY]
        there = np.flatnonzero(model.links[:, layout.LINK_BODY] == row).tolist()
        heavy = [k for k in there if model.link_inertias[model.link_names[k]].any()]
        for k in heavy or [carried]:
            X_CL = np.asarray(np.linalg.solve(X_BC, _placement(model, k)), dtype=np.float64)
            name = model.link_names[k]
            own = model.link_inertias[name] if heavy else ball(UNKNOWN_MASS, UNKNOWN_RADIUS)
            root = root_of(_definite(own))
            share = ten_parameters(X_CL @ model.link_inertias[name] @ X_CL.T)
            links.append(MovingLink(name, body, root, columns_of(root, X_CL), share))
    return links


def _placement(model: RobotModel, link: int) -> FloatArray:
    """X_BL of a link in its body's row."""
    row = model.links[link]
    rotation = row[layout.LINK_ROTATION : layout.LINK_ROTATION + 9].reshape(3, 3)
    return homogeneous(rotation, row[layout.LINK_TRANSLATION : layout.LINK_TRANSLATION + 3])


def columns_of(root: FloatArray, transform: FloatArray) -> FloatArray:
    """The ten parameters in another frame for 1 of each entry of S, shape (10, 10)."""
    outer = transform @ root
    columns = np.empty((len(BODY_PARAMETERS), SIZE))
    for k in range(SIZE):
        columns[:, k] = ten_parameters(outer @ smat(np.eye(SIZE)[k]) @ outer.T)
    return columns


def root_of(matrix: FloatArray) -> FloatArray:
    """C with C C^T = matrix."""
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def _definite(matrix: FloatArray) -> FloatArray:
    """The pseudo-inertia nearest to one that a body of some size has; an unknown body's where none
    is near."""
    mass = max(float(matrix[3, 3]), LEAST_MASS)
    center = matrix[:3, 3] / matrix[3, 3] if matrix[3, 3] > 0.0 else np.zeros(3)
    about_center = matrix[:3, :3] - matrix[3, 3] * np.outer(center, center)
    moments, axes = np.linalg.eigh(symmetric(about_center))
    if moments[-1] > mass * LARGEST_RADIUS**2:
        return ball(UNKNOWN_MASS, UNKNOWN_RADIUS)
    moments = np.maximum(moments, mass * LEAST_RADIUS**2)
    result = np.zeros((4, 4))
    result[:3, :3] = (axes * moments) @ axes.T + mass * np.outer(center, center)
    result[:3, 3] = result[3, :3] = mass * center
    result[3, 3] = mass
    return result


def ball(mass: float, radius: float) -> FloatArray:
    """Pseudo-inertia of a body of this radius of gyration about the origin."""
    return mass * np.diag([radius**2 / 2.0] * 3 + [1.0])


def svec(matrix: FloatArray) -> FloatArray:
    return np.asarray(matrix[_ROWS, _COLUMNS] * _SCALE)


def smat(vector: FloatArray) -> FloatArray:
    matrix = np.zeros((4, 4))
    matrix[_ROWS, _COLUMNS] = matrix[_COLUMNS, _ROWS] = vector / _SCALE
    return matrix


def symmetric(matrix: FloatArray) -> FloatArray:
    return 0.5 * (matrix + matrix.T)
