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

# A link that is a point, rod or plate in the URDF is taken for a body of this radius of gyration,
# [m], and one without mass for this mass, [kg].
LEAST_RADIUS = 0.01
LEAST_MASS = 1e-3
# No link is so wide for its mass, [m]; it is as good as unknown.
LARGEST_RADIUS = 2.0
# A body whose links all lack an inertia is taken for a ball of this mass and radius of gyration.
UNKNOWN_MASS, UNKNOWN_RADIUS = 0.1, 0.05

SIZE = 10
# How far the URDF is trusted: inertias may be wrong by this part of themselves, sigma.
TRUST = 0.5
# No link loses more than this part of its URDF's inertia in any direction.
LEAST_SHARE = 1e-3
# An unknown load is compared with a ball of 1 kg and this radius of gyration; it may be that many
# times as heavy.
LOAD_RADIUS, LOAD_TRUST = 0.1, 100.0
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
    """S for 1 of each of its ten unknowns, shape (10, 4, 4): as Clarabel's cones take them, the
    upper triangle column by column, of norm 1."""
    units = np.zeros((SIZE, 4, 4))
    for unit, row, column in zip(units, *np.tril_indices(4), strict=True):
        unit[row, column] = unit[column, row] = 1.0 if row == column else math.sqrt(0.5)
    return units


def smat(unknowns: FloatArray) -> FloatArray:
    """Each S by its ten unknowns, one after the other, shape (matrices, 4, 4)."""
    return np.tensordot(unknowns.reshape(-1, SIZE), _UNITS, 1)


def _ten_of(C: FloatArray, units: Iterable[FloatArray]) -> FloatArray:
    """The ten parameters of C S C^T for each S, shape (10, number of them)."""
    return np.stack([ten_parameters(C @ unit @ C.T) for unit in units], axis=1)


def _ball(mass: float, radius: float) -> FloatArray:
    """C of a ball of this radius of gyration."""
    return math.sqrt(mass) * np.diag([radius / math.sqrt(2.0)] * 3 + [1.0])


_UNITS, _LOAD_ROOT = _units(), _ball(1.0, LOAD_RADIUS)


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
    rows = model.links[model.joint_links[1:], layout.LINK_BODY].tolist()
    if model.links[k, layout.LINK_BODY] not in rows:
        raise IdentificationError(
            f"link {link!r} stands still with {model.root_link!r}: no torque tells what it carries"
        )
    body = rows.index(model.links[k, layout.LINK_BODY])
    X_BC, X_BL = (
        layout.placement(model.links[each], layout.LINK_ROTATION)
        for each in (model.joint_links[body + 1], k)
    )
    X_CL = np.linalg.solve(X_BC, X_BL)
    return body, _ten_of(np.asarray(X_CL, np.float64), map(pseudo_inertia_of, np.eye(SIZE)))


def _roots(model: RobotModel) -> dict[str, FloatArray]:
    """C for each link with inertia that moves; of a body without any, for the one that its joint
    carries."""
    roots: dict[str, FloatArray] = {}
    bodies = model.links[:, layout.LINK_BODY]
    for carried in model.joint_links[1:].tolist():
        names = [model.link_names[k] for k in np.flatnonzero(bodies == bodies[carried])]
        heavy = {name: model.link_inertias[name] for name in names}
        own = {name: _root(inertia) for name, inertia in heavy.items() if inertia.any()}
        roots |= own or {model.link_names[carried]: _ball(UNKNOWN_MASS, UNKNOWN_RADIUS)}
    return roots


def _root(inertia: FloatArray) -> FloatArray:
    """C of the pseudo-inertia nearest to one that a body of some size has; an unknown body's where
    none is near."""
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
    """What armature, damping, friction and offset would be if each alone made the measured torques,
    shape (4, nv)."""
    torque, acceleration, velocity = (
        np.maximum(np.sqrt(np.mean(each**2, axis=0)), least)
        for each, least in ((motion.effort, 1e-6), (motion.a, 1e-2), (motion.v, STANDING))
    )
    return np.stack([torque / acceleration, torque / velocity, torque, torque])


class ParameterSpace:
    """All parameters theta that a robot may have: S of each link that moves, then of the actuators
    armature, damping, friction and offset, then S of an unknown load.

    Args:
        model: the robot as described, payloads included.
        motion: of the robot. What alone made its torques is how large armature, damping, friction
            and offset may be; a value much smaller than that is as good as none.
        with_load: whether it carries an unknown load.
        trust: sigma above.

    Attributes:
        base: its base parameters.
        start, prior: theta of the model, and how precisely that is known, one over variance.
        links, actuators, load: where theta has the links, the actuators and the unknown load.
        to_phi, phi_offset: the parameters of the regressor, and then the ten of the load in its
            link's frame, are to_phi theta + phi_offset.
        to_beta, beta_offset: the base parameters, and then the ten of the load, are to_beta theta +
            beta_offset.

    Raises:
        IdentificationError: a joint of several degrees of freedom.
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
        """The base parameters, and then the ten of the load."""
        return np.asarray(self.to_beta @ theta + self.beta_offset)

    def inertias(self, theta: FloatArray) -> dict[str, FloatArray]:
        """The pseudo-inertia of each link that moves, in its own frame, shape (4, 4), by name."""
        links = zip(self._roots.items(), smat(theta[self.links]), strict=True)
        return {link: root @ S @ root.T for (link, root), S in links}

    def load_inertia(self, theta: FloatArray) -> FloatArray:
        """The pseudo-inertia of the load in its link's frame, shape (4, 4)."""
        return _LOAD_ROOT @ smat(theta[self.load])[0] @ _LOAD_ROOT.T

    @property
    def beta_deviation(self) -> FloatArray:
        """How far the URDF leaves the base parameters open."""
        return np.asarray(np.sqrt((self.to_beta**2 / self.prior).sum(axis=1)))

    def posterior(self, solution: Solution) -> FloatArray:
        """Covariance of the equations' unknowns, after the data and before positivity."""
        matrix, spread = (
            self.to_beta.T @ each @ self.to_beta + np.diag(self.prior)
            for each in (solution.information, solution.vector_covariance)
        )
        gain = np.linalg.solve(matrix, self.to_beta.T)
        return np.asarray(gain.T @ spread @ gain)

    def nearest(self, solution: Solution) -> FloatArray:
        """The theta that fit and are nearest to the robot's own: S - `LEAST_SHARE` of each link and
        S of the load positive semidefinite, and no armature, damping or friction negative.

        Args:
            solution: has A and b above.

        Raises:
            IdentificationError: the solver finds none.
        """
        A, to_theta = solution.information, self.to_beta.T
        matrix = to_theta @ A @ self.to_beta
        vector = to_theta @ (solution.vector - A @ self.beta_offset)
        # Each unknown is scaled by what it weighs, so that the solver's tolerances mean something.
        scale = 1.0 / np.sqrt(np.diag(matrix) + self.prior)
        P = (matrix + np.diag(self.prior)) * np.outer(scale, scale)
        gradient = (matrix @ self.start - vector) * scale  # of the change from the start
        least = np.zeros_like(self.start)
        least[self.links] = LEAST_SHARE * self.start[self.links]
        not_negative = np.r_[self.actuators][: -self.model.nv]  # the offsets may be
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
        # The solver meets the bound of 0 to rounding, from either side.
        theta[not_negative] = np.maximum(theta[not_negative], 0.0)
        return theta
