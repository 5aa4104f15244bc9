r"""Physically consistent parameters of every link that fit the data and are near the URDF's.

The data determine only base parameters, and these not exactly. Of all parameters that fit them,
this takes those whose pseudo-inertias J are positive definite [Wensing 2018] and nearest to those
of the URDF, J_0. The distance measures mass that moves, and depends on no frame or unit [Lee 2019,
to second order]:

.. math:: \min_{J,\,p} \; \tfrac{1}{2} \beta^T A \beta - b^T \beta
          + \frac{1}{2 \sigma^2} \sum_{links} \mathrm{tr} \left((J_0^{-1} J - 1)^2\right)
          \quad \text{with} \quad J \succ 0

beta being linear in J and the actuators' parameters p >= 0. With J = C S C^T, C C^T = J_0 it is a
quadratic program with semidefinite cones in S, which starts at S = 1; Clarabel solves it.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse

from rnea_control.analysis import BaseParameters, inertial_parameters, parameter_count
from rnea_control.array_types import FloatArray
from rnea_control.dynamics.regressor import ACTUATOR_PARAMETERS
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.motion import STANDING, Motion
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
# How far the URDF is trusted: inertias may be wrong by this part of themselves, sigma.
TRUST = 0.5
# No link loses more than this part of its URDF's inertia in any direction.
LEAST_SHARE = 1e-3
# An unknown load is compared with a ball of 1 kg and this radius of gyration; it may be that many
# times as heavy.
LOAD_RADIUS, LOAD_TRUST = 0.1, 100.0
TOLERANCE = 1e-10


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
    moved = [ten_parameters(X_CL @ pseudo_inertia_of(unit) @ X_CL.T) for unit in np.eye(SIZE)]
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
    moved = [ten_parameters(outer @ smat(unit) @ outer.T) for unit in np.eye(SIZE)]
    return np.stack(moved, axis=1)


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


def root_of(matrix: FloatArray) -> FloatArray:
    """C with C C^T = matrix."""
    return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)


def symmetric(matrix: FloatArray) -> FloatArray:
    return 0.5 * (matrix + matrix.T)


@dataclass(frozen=True, eq=False)
class ConsistentParameters:
    """Full parameters of a robot.

    Attributes:
        inertias: pseudo-inertia of each link that moves, in its own frame, shape (4, 4).
        armature, damping, friction, torque_offset: shape (nv,), SI units.
        beta: the same in the equations' unknowns: base parameters, then those of the load.
        load: pseudo-inertia of the load that was identified beside the robot, in its link's frame,
            or None.
    """

    inertias: dict[str, FloatArray]
    armature: FloatArray
    damping: FloatArray
    friction: FloatArray
    torque_offset: FloatArray
    beta: FloatArray
    load: FloatArray | None


def actuator_scales(motion: Motion) -> FloatArray:
    """What armature, damping, friction and offset would be if each alone made the measured torques,
    shape (4, nv)."""
    torque = np.maximum(_size(motion.effort), 1e-6)
    return np.stack(
        [
            torque / np.maximum(_size(motion.a), 1e-2),
            torque / np.maximum(_size(motion.v), STANDING),
            torque,
            torque,
        ]
    )


def _size(values: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.mean(values**2, axis=0)))


class ParameterSpace:
    """All parameters theta that a robot may have: S of each link that moves, then of the actuators
    armature, damping, friction and offset, then S of an unknown load.

    Args:
        model: the robot as described, payloads included.
        base: its base parameters.
        scales: what armature, damping, friction and offset of each joint may be, shape (4, nv); a
            value much smaller than that is as good as none.
        load_link: that carries an unknown load.
        trust: sigma above.

    Attributes:
        start, prior: theta of the model, and how precisely that is known, one over variance.
        links, actuators, load: where theta has the links, the actuators and the unknown load.
        to_phi, phi_offset: all parameters of the robot but for the load are to_phi theta +
            phi_offset.
        to_load: the load's ten parameters in its link's frame for 1 of each of its theta.
        to_beta, beta_offset: beta = to_beta theta + beta_offset; with a load, its ten parameters
            in its link's frame follow the base parameters.
    """

    def __init__(
        self,
        model: RobotModel,
        base: BaseParameters,
        scales: FloatArray,
        load_link: str | None = None,
        trust: float = TRUST,
    ) -> None:
        self.model = model
        self._links = moving_links(model)
        count, bodies = parameter_count(model), 10 * (len(model.joint_links) - 1)
        size, actuators = SIZE * len(self._links), len(ACTUATOR_PARAMETERS) * model.nv
        free = size + actuators
        total = free + (SIZE if load_link else 0)
        self.start, self.prior = np.zeros(total), np.zeros(total)
        own = inertial_parameters(model)
        self.to_phi, self.phi_offset = np.zeros((count, free)), own.copy()
        self.phi_offset[bodies:] = 0.0
        self._blocks = [slice(SIZE * k, SIZE * (k + 1)) for k in range(len(self._links))]
        for columns, link in zip(self._blocks, self._links, strict=True):
            rows = slice(10 * link.body, 10 * link.body + 10)
            self.to_phi[rows, columns] = link.to_body
            self.phi_offset[rows] -= link.own
            self.start[columns] = svec(np.eye(4))
        self.links, self.actuators = slice(0, size), slice(size, free)
        self.load = slice(free, total)
        self.to_phi[bodies:, self.actuators] = np.eye(actuators)
        self.start[self.actuators] = own[bodies:]
        self.prior[self.links] = trust**-2
        self.prior[self.actuators] = scales.ravel() ** -2
        B = np.zeros((base.rank, count))
        B[np.arange(base.rank), base.independent] = 1.0
        B[:, base.dependent] = base.K
        width = base.rank + (SIZE if load_link else 0)
        self.to_beta, self.beta_offset = np.zeros((width, total)), np.zeros(width)
        self.to_beta[: base.rank, :free] = B @ self.to_phi
        self.beta_offset[: base.rank] = B @ self.phi_offset
        self._load_root = root_of(ball(1.0, LOAD_RADIUS))
        self.to_load = columns_of(self._load_root, np.eye(4))
        if load_link is not None:
            self.to_beta[base.rank :, self.load] = self.to_load
            self.prior[self.load] = LOAD_TRUST**-2

    @property
    def beta(self) -> FloatArray:
        """The base parameters that the URDF gives."""
        return np.asarray(self.to_beta @ self.start + self.beta_offset)

    @property
    def beta_covariance(self) -> FloatArray:
        """How far the URDF leaves them open."""
        return np.asarray((self.to_beta / self.prior) @ self.to_beta.T)

    def posterior(self, information: FloatArray, vector_covariance: FloatArray) -> FloatArray:
        """Covariance of the equations' unknowns, after the data and before positivity; arguments
        as the attributes of `Solution`."""
        matrix = self.to_beta.T @ information @ self.to_beta + np.diag(self.prior)
        scale = 1.0 / np.sqrt(np.diag(matrix))
        inverse = np.linalg.inv(matrix * np.outer(scale, scale)) * np.outer(scale, scale)
        gain = self.to_beta @ inverse
        spread = self.to_beta.T @ vector_covariance @ self.to_beta + np.diag(self.prior)
        return np.asarray(gain @ spread @ gain.T)

    def nearest(self, information: FloatArray, vector: FloatArray) -> ConsistentParameters:
        """The consistent parameters that fit and are nearest to the robot's own.

        Args:
            information, vector: A and b above.

        Raises:
            IdentificationError: the solver finds none.
        """
        load, actuators = self.load, self.actuators
        bounded = slice(actuators.start, actuators.start + 3 * self.model.nv)
        theta = self._minimum(information, vector, bounded)
        # The solver meets the bound of 0 to rounding, from either side.
        theta[bounded] = np.maximum(theta[bounded], 0.0)
        inertias = {}
        for block, link in zip(self._blocks, self._links, strict=True):
            inertias[link.name] = symmetric(link.root @ smat(theta[block]) @ link.root.T)
        _check_definite(inertias)
        found = None
        if load.stop > load.start:
            found = symmetric(self._load_root @ smat(theta[load]) @ self._load_root.T)
        beta = self.to_beta @ theta + self.beta_offset
        armature, damping, friction, offset = theta[actuators].reshape(4, -1)
        return ConsistentParameters(inertias, armature, damping, friction, offset, beta, found)

    def _minimum(self, information: FloatArray, vector: FloatArray, bounded: slice) -> FloatArray:
        """The theta of least cost, with S - `LEAST_SHARE` positive semidefinite for each S of the
        robot, S for that of the load, and theta of `bounded` not negative."""
        matrix = self.to_beta.T @ information @ self.to_beta
        vector = self.to_beta.T @ (vector - information @ self.beta_offset)
        # Each unknown is scaled by what it weighs, so that the solver's tolerances mean something.
        scale = 1.0 / np.sqrt(np.diag(matrix) + self.prior)
        P = (matrix + np.diag(self.prior)) * np.outer(scale, scale)
        gradient = (matrix @ self.start - vector) * scale  # of the change from the start
        bounds = np.zeros(len(self.start))
        for block in self._blocks:
            bounds[block] = LEAST_SHARE * svec(np.eye(4))
        definite = [*self._blocks, *([self.load] if self.load.stop > self.load.start else [])]
        cones = [clarabel.NonnegativeConeT(bounded.stop - bounded.start)]
        cones += [clarabel.PSDTriangleConeT(4) for _ in definite]
        rows = np.concatenate([np.arange(each.start, each.stop) for each in (bounded, *definite)])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
        solution = clarabel.DefaultSolver(
            sparse.csc_matrix(np.triu(P)),
            gradient,
            sparse.csc_matrix(-np.diag(scale)[rows]),
            (self.start - bounds)[rows],
            cones,
            settings,
        ).solve()
        if str(solution.status) not in ("Solved", "AlmostSolved"):
            raise IdentificationError(
                f"no physically consistent parameters were found ({solution.status}). Are the "
                "efforts in Nm and N, and have they the sign of the positions?"
            )
        return np.asarray(self.start + scale * np.array(solution.x))


def _check_definite(inertias: dict[str, FloatArray]) -> None:
    for link, matrix in inertias.items():
        root = np.sqrt(np.diag(matrix)) if (np.diag(matrix) > 0.0).all() else np.ones(4)
        if not np.linalg.eigvalsh(matrix / np.outer(root, root))[0] > 0.0:
            raise IdentificationError(
                f"the inertia found for link {link!r} belongs to no real body; nothing is written. "
                "Record a longer or faster motion"
            )
