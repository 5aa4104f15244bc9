r"""Physically consistent parameters of every link that fit the data and are near the URDF's.

The data determine only base parameters, and these not exactly. Among all parameters that fit the
data, these are the parameters whose pseudo-inertias J are positive definite [Wensing 2018] and
nearest to the URDF's pseudo-inertias J_0. The distance depends on no frame or unit [Lee 2019, to
second order]:

.. math:: \min_{J,\,p} \; \tfrac{1}{2} \beta^T A \beta - b^T \beta
          + \frac{1}{2 \sigma^2} \sum_{links} \mathrm{tr} \left((J_0^{-1} J - 1)^2\right)
          \quad \text{with} \quad J \succ 0

where beta is linear in J and in the actuators' parameters p >= 0. With J = C S C^T, C C^T = J_0
this is a quadratic program with semidefinite cones in S, which starts at S = 1; Clarabel solves it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import clarabel
import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from rnea_control.analysis import base_parameters, inertial_parameters
from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.least_squares import Solution
from rnea_control.identification.motion import STANDING, Motion
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout
from rnea_control.model.rigid_body import homogeneous, pseudo_inertia_of, ten_parameters

LEAST_RADIUS = 0.01  # smallest radius of gyration; a point, rod or plate is raised to it [m]
LEAST_MASS = 1e-3  # smallest mass of a link with inertia; a missing mass is raised to it [kg]
LARGEST_RADIUS = 2.0  # radius of gyration above which the inertia counts as unknown [m]
UNKNOWN_MASS = 0.1  # mass of a body whose inertia is unknown [kg]
UNKNOWN_RADIUS = 0.05  # radius of gyration of such a body, a ball [m]

SIZE = 10
TRUST = 0.5  # sigma: relative standard deviation of the URDF's inertias
LEAST_SHARE = 1e-3  # smallest fraction of the URDF's inertia that a link keeps in any direction
# The unit of an unknown load is a ball of 1 kg.
LOAD_RADIUS = 0.1  # radius of gyration of this ball [m]
LOAD_TRUST = 100.0  # standard deviation of an unknown load in this unit
TOLERANCE = 1e-10


def check_joints(model: RobotModel) -> None:
    """Raises IdentificationError unless each joint has one degree of freedom."""
    for name, kind in zip(model.joint_names, model.joint_types, strict=True):
        if kind not in ("revolute", "continuous", "prismatic"):
            raise IdentificationError(
                f"joint {name!r} is {kind}; only revolute, continuous and prismatic joints can be "
                "identified. Choose others by the option --joints"
            )


def _units() -> FloatArray:
    """S for a value of 1 of each of its ten unknowns, shape (10, 4, 4), each of norm 1. Unknowns in
    the order of Clarabel's cones: the upper triangle column by column."""
    units = np.zeros((SIZE, 4, 4))
    for unit, row, column in zip(units, *np.tril_indices(4), strict=True):
        unit[row, column] = unit[column, row] = 1.0 if row == column else math.sqrt(0.5)
    return units


def smat(unknowns: FloatArray) -> FloatArray:
    """Matrices S from their ten unknowns each, shape (matrices, 4, 4)."""
    return np.tensordot(unknowns.reshape(-1, SIZE), _UNITS, 1)


def _ten_of(C: FloatArray, units: Iterable[FloatArray]) -> FloatArray:
    """Ten parameters of C S C^T for each S, shape (10, number of S)."""
    return np.stack([ten_parameters(C @ unit @ C.T) for unit in units], axis=1)


def _ball(mass: float, radius: float) -> FloatArray:
    """C of a ball with this mass and radius of gyration."""
    return math.sqrt(mass) * np.diag([radius / math.sqrt(2.0)] * 3 + [1.0])


_UNITS, _LOAD_ROOT = _units(), _ball(1.0, LOAD_RADIUS)


def parameters_in_body(model: RobotModel, link: str) -> tuple[int, FloatArray]:
    """Body of a link, by its number in the regressor's columns; and the matrix that transforms ten
    parameters from the link's frame to the body's, shape (10, 10).

    Raises:
        IdentificationError: an unknown link, or a link that does not move.
    """
    if link not in model.link_names:
        raise IdentificationError(
            f"there is no link {link!r}; {model.name!r} has {', '.join(model.link_names)}"
        )
    k = model.link_names.index(link)
    rows = model.links[model.joint_links[1:], layout.LINK_BODY].tolist()
    if model.links[k, layout.LINK_BODY] not in rows:
        raise IdentificationError(
            f"link {link!r} is fixed to {model.root_link!r}: no torque depends on its load"
        )
    body = rows.index(model.links[k, layout.LINK_BODY])
    X_BC, X_BL = (
        layout.placement(model.links[each], layout.LINK_ROTATION)
        for each in (model.joint_links[body + 1], k)
    )
    X_CL = np.linalg.solve(X_BC, X_BL)
    return body, _ten_of(np.asarray(X_CL, np.float64), map(pseudo_inertia_of, np.eye(SIZE)))


def _roots(model: RobotModel) -> dict[str, FloatArray]:
    """C of each moving link with inertia, by name; for a body without inertia, C of its joint's
    child link."""
    roots: dict[str, FloatArray] = {}
    bodies = model.links[:, layout.LINK_BODY]
    for carried in model.joint_links[1:].tolist():
        names = [model.link_names[k] for k in np.flatnonzero(bodies == bodies[carried])]
        heavy = {name: model.link_inertias[name] for name in names}
        own = {name: _root(inertia) for name, inertia in heavy.items() if inertia.any()}
        roots |= own or {model.link_names[carried]: _ball(UNKNOWN_MASS, UNKNOWN_RADIUS)}
    return roots


def _root(inertia: FloatArray) -> FloatArray:
    """C of the nearest pseudo-inertia of a body with an extent; C of an unknown body if none is
    near."""
    mass, center = float(inertia[3, 3]), np.zeros(3)
    if mass > 0.0:
        center = inertia[:3, 3] / mass
    moments, axes = np.linalg.eigh(inertia[:3, :3] - mass * np.outer(center, center))
    mass = max(mass, LEAST_MASS)
    if moments[-1] > mass * LARGEST_RADIUS**2:
        return _ball(UNKNOWN_MASS, UNKNOWN_RADIUS)
    moments = np.maximum(moments, mass * LEAST_RADIUS**2)
    return homogeneous(axes, center) * np.sqrt([*moments, mass])


def _actuator_scales(motion: Motion) -> FloatArray:
    """Values of armature, damping, friction and offset that would each alone explain the measured
    torques, shape (4, nv)."""
    torque, acceleration, velocity = (
        np.maximum(np.sqrt(np.mean(each**2, axis=0)), least)
        for each, least in ((motion.effort, 1e-6), (motion.a, 1e-2), (motion.v, STANDING))
    )
    return np.stack([torque / acceleration, torque / velocity, torque, torque])


class ParameterSpace:
    """All parameters theta of a robot: S of each moving link, then armature, damping, friction and
    offset of the actuators, then S of an unknown load.

    Args:
        model: the robot as described, payloads included.
        motion: motion of the robot. The values of armature, damping, friction and offset that would
            each alone explain its torques are their standard deviations.
        with_load: True if the robot carries an unknown load.
        trust: sigma in the equation of this module.

    Attributes:
        base: base parameters of the robot.
        start: theta of the model.
        prior: precision of `start`, one over variance.
        links, actuators, load: slices of theta with the links, the actuators and the unknown load.
        to_phi, phi_offset: the parameters of the regressor, followed by the ten parameters of the
            load in its link's frame, are to_phi theta + phi_offset.
        to_beta, beta_offset: the base parameters, followed by the ten parameters of the load, are
            to_beta theta + beta_offset.

    Raises:
        IdentificationError: a joint with several degrees of freedom.
    """

    def __init__(
        self, model: RobotModel, motion: Motion, with_load: bool = False, trust: float = TRUST
    ) -> None:
        check_joints(model)
        self.model, self.base = model, base_parameters(model)
        self._roots = _roots(model)
        own, scales = inertial_parameters(model), _actuator_scales(motion)
        count, bodies = len(own), len(own) - scales.size
        of_links = np.zeros((bodies, SIZE * len(self._roots)))
        of_load = [_ten_of(_LOAD_ROOT, _UNITS)] if with_load else []
        self.phi_offset = np.zeros(count + SIZE * len(of_load))
        self.phi_offset[:bodies] = own[:bodies]
        for k, (link, root) in enumerate(self._roots.items()):
            body, to_body = parameters_in_body(model, link)
            rows = slice(SIZE * body, SIZE * (body + 1))
            of_links[rows, SIZE * k : SIZE * (k + 1)] = to_body @ _ten_of(root, _UNITS)
            self.phi_offset[rows] -= to_body @ ten_parameters(model.link_inertias[link])
        self.to_phi = block_diag(of_links, np.eye(scales.size), *of_load)
        end, none = of_links.shape[1], np.zeros(SIZE * len(of_load))
        self.links, self.actuators = slice(end), slice(end, end + scales.size)
        self.load = slice(end + scales.size, self.to_phi.shape[1])
        ones = np.tile(np.trace(_UNITS, axis1=1, axis2=2), len(self._roots))
        self.start = np.concatenate([ones, own[bodies:], none])
        links, actuators = np.full(end, trust**-2), scales.ravel() ** -2
        self.prior = np.concatenate([links, actuators, none + LOAD_TRUST**-2])
        self.to_beta, self.beta_offset = (
            np.concatenate([self.base.values(each[:count]), each[count:]])
            for each in (self.to_phi, self.phi_offset)
        )

    def beta(self, theta: FloatArray) -> FloatArray:
        """Base parameters, followed by the ten parameters of the load."""
        return np.asarray(self.to_beta @ theta + self.beta_offset)

    def inertias(self, theta: FloatArray) -> dict[str, FloatArray]:
        """Pseudo-inertia of each moving link in its own frame, shape (4, 4), by name."""
        links = zip(self._roots.items(), smat(theta[self.links]), strict=True)
        return {link: root @ S @ root.T for (link, root), S in links}

    def load_inertia(self, theta: FloatArray) -> FloatArray:
        """Pseudo-inertia of the load in its link's frame, shape (4, 4)."""
        return _LOAD_ROOT @ smat(theta[self.load])[0] @ _LOAD_ROOT.T

    @property
    def beta_deviation(self) -> FloatArray:
        """Standard deviation of the base parameters by the URDF alone."""
        return np.asarray(np.sqrt((self.to_beta**2 / self.prior).sum(axis=1)))

    def posterior(self, solution: Solution) -> FloatArray:
        """Covariance of the equations' unknowns, given the data, without the constraint of
        positivity."""
        matrix, spread = (
            self.to_beta.T @ each @ self.to_beta + np.diag(self.prior)
            for each in (solution.information, solution.vector_covariance)
        )
        gain = np.linalg.solve(matrix, self.to_beta.T)
        return np.asarray(gain.T @ spread @ gain)

    def nearest(self, solution: Solution) -> FloatArray:
        """Theta that fit the data and are nearest to the model's. S - `LEAST_SHARE` of each link
        and S of the load are positive semidefinite; armature, damping and friction are not
        negative.

        Args:
            solution: A and b of the equation of this module.

        Raises:
            IdentificationError: the solver finds no solution.
        """
        A, to_theta = solution.information, self.to_beta.T
        matrix = to_theta @ A @ self.to_beta
        vector = to_theta @ (solution.vector - A @ self.beta_offset)
        # Each unknown is scaled to a unit weight, so that the solver's tolerances fit all of them.
        scale = 1.0 / np.sqrt(np.diag(matrix) + self.prior)
        P = (matrix + np.diag(self.prior)) * np.outer(scale, scale)
        gradient = (matrix @ self.start - vector) * scale  # by the change from the start
        least = np.zeros_like(self.start)
        least[self.links] = LEAST_SHARE * self.start[self.links]
        not_negative = np.r_[self.actuators][: -self.model.nv]  # offsets may be negative
        definite = np.r_[self.links, self.load]
        rows = np.concatenate([not_negative, definite])
        cones = [clarabel.NonnegativeConeT(len(not_negative))]
        cones += [clarabel.PSDTriangleConeT(4)] * (len(definite) // SIZE)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
        quadratic, constraints = sparse.csc_matrix(np.triu(P)), -sparse.diags(scale).tocsc()[rows]
        slack = (self.start - least)[rows]
        solver = clarabel.DefaultSolver(quadratic, gradient, constraints, slack, cones, settings)
        found = solver.solve()
        theta = self.start + scale * np.array(found.x)
        solved = str(found.status) in ("Solved", "AlmostSolved")
        if not solved or np.linalg.eigvalsh(smat(theta[self.links])).min() <= 0.0:
            raise IdentificationError(
                f"no physically consistent parameters were found ({found.status}). Are the "
                "efforts in Nm and N, and have they the sign of the positions?"
            )
        # The solver reaches the bound of 0 up to rounding, from either side.
        theta[not_negative] = np.maximum(theta[not_negative], 0.0)
        return theta
