r"""Closed loops and contacts: dynamics of a tree with links held together at points.

With J the constraints' Jacobian, f the constraint forces, and S selecting the actuated joints,

.. math::

    M a + C v + g = S^T \tau + J^T f, \qquad J a + \dot J v = 0

[Featherstone 2008, ch. 8]. If the constraint forces are not unique, the result has the least norm.
These functions are for analysis and allocate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.dynamics.crba import crba
from rnea_control.dynamics.friction import inverse_dynamics
from rnea_control.dynamics.kinematics import forward_kinematics, jacobian, link_acceleration
from rnea_control.dynamics.workspace import Workspace, link_index
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel
from rnea_control.model.rigid_body import skew

_TOLERANCE = 1e-8  # largest residual of a solved equation, as a fraction of its largest term
_GAP = 1e-6  # largest distance of points that are held together [m]
_RANK = 1e-9  # smallest singular value of independent constraints, as a fraction of the largest


@dataclass(frozen=True)
class Constraint:
    """Two links held together at a point of each: a loop's closing joint, or a contact. Raises
    ArgumentError for a point that is not three finite numbers."""

    link: str  # link on which the constraint force acts
    # Point in the link's URDF frame, shape (3,), [m].
    point: FloatArray = field(default_factory=lambda: np.zeros(3))
    other: str = ""  # the holding link; by default the root link, for contact with the ground
    # Point in the frame of `other`, shape (3,), [m]; None for a contact: the place of `point` at
    # the given q.
    other_point: FloatArray | None = None
    welded: bool = False  # True if the relative orientation is fixed too, by a moment

    @property
    def rows(self) -> int:
        """Number of rows in J."""
        return 6 if self.welded else 3

    def __post_init__(self) -> None:
        given = {"point": self.point, "other_point": self.other_point}
        for name in given if self.other_point is not None else ("point",):
            point = given[name]
            try:
                vector = np.array(point, dtype=np.float64)
            except (TypeError, ValueError):
                vector = np.zeros(0)
            if vector.shape != (3,) or not np.isfinite(vector).all():
                raise ArgumentError(f"{name} is {point}; it must be three finite numbers [m]")
            object.__setattr__(self, name, vector)


def constraint_jacobian(
    model: RobotModel, ws: Workspace, q: FloatArray, constraints: Sequence[Constraint]
) -> FloatArray:
    """Jacobian J: the relative velocity of the points held together is J v, which must be 0.

    Returns:
        shape (m, nv): three rows for each constraint, or six for a welded constraint (linear,
        angular), expressed in the root link's frame.

    Raises:
        ArgumentError: an unknown link; an array that is not C-contiguous float64 of the model's
            size. `constraint_bias` and `constraint_error` raise the same.
    """
    _, J, _ = _relative_motion(model, ws, q, np.zeros(model.nv), constraints)
    return J


def constraint_bias(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    constraints: Sequence[Constraint],
) -> FloatArray:
    """dJ/dt v: relative acceleration of the points at zero joint acceleration, shape (m,)."""
    _, _, bias = _relative_motion(model, ws, q, v, constraints)
    return bias


def constraint_error(
    model: RobotModel, ws: Workspace, q: FloatArray, constraints: Sequence[Constraint]
) -> FloatArray:
    """Displacement between the points at `q`, shape (constraints, 3), [m], in the root's frame."""
    gaps, _, _ = _relative_motion(model, ws, q, np.zeros(model.nv), constraints)
    return gaps


def constrained_inverse_dynamics(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    constraints: Sequence[Constraint],
    driven: Sequence[str] | None = None,
    external_forces: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Torques of the actuated joints, and constraint forces, for a motion that J allows.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s].
        a: joint accelerations, shape (nv,), [rad/s^2] or [m/s^2].
        constraints: the constraints.
        driven: names of the actuated joints; all by default.
        external_forces: forces of the world on each link, shape (number of links, 6): force [N],
            then moment about the link frame's origin [Nm], both expressed in the link's URDF frame;
            rows ordered as `model.link_names`. None: no forces.

    Returns:
        tau, shape (nv,), 0 for joints that are not actuated; and the forces on `Constraint.link`,
        shape (m,), in the order of the rows of `constraint_jacobian`. Both together have the least
        norm.

    Raises:
        ArgumentError: an unknown joint or link; a position, velocity or acceleration that the
            constraints do not allow; an acceleration that the actuated joints cannot produce.
    """
    gaps, J, bias = _relative_motion(model, ws, q, v, constraints)
    speed, acceleration = (np.abs(x).max(initial=0.0) for x in (v, a))
    for name, broken, allowed in (
        ("the distance of the points", gaps, _GAP),
        ("J v", J @ v, _TOLERANCE * (1.0 + speed)),
        ("J a + dJ/dt v", J @ a + bias, _TOLERANCE * (1.0 + acceleration + speed**2)),
    ):
        if not np.abs(broken).max(initial=0.0) <= allowed:
            raise ArgumentError(
                f"the motion breaks the constraints: {name} is {broken}; it must be 0"
            )
    needed = inverse_dynamics(model, ws, q, v, a, np.zeros(model.nv), external_forces)
    S = _selection(model, driven)
    A = np.column_stack([S.T, J.T])
    x = np.asarray(np.linalg.lstsq(A, needed, rcond=1e-12)[0], dtype=np.float64)
    left = np.abs(A @ x - needed).max(initial=0.0)
    if left > _TOLERANCE * (1.0 + np.abs(needed).max(initial=0.0)):
        raise ArgumentError(
            f"the actuated joints and the constraints cannot give this motion, {left:.3g} Nm or N "
            "are missing; is an actuated joint missing in `driven`?"
        )
    count = len(S)
    return S.T @ x[:count], x[count:]


def constrained_forward_dynamics(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
    constraints: Sequence[Constraint],
    external_forces: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Accelerations that the torques `tau` give, and constraint forces.

    Args:
        model: the robot.
        ws: a workspace made for `model`.
        q: joint positions, shape (nq,), [rad] or [m].
        v: joint velocities, shape (nv,), [rad/s] or [m/s]. J v should be 0: the constraint forces
            do not bring it back to 0.
        tau: actuator torques, shape (nv,), [Nm] or [N].
        constraints: the constraints.
        external_forces: forces of the world on each link, shape (number of links, 6): force [N],
            then moment about the link frame's origin [Nm], both expressed in the link's URDF frame;
            rows ordered as `model.link_names`. None: no forces.

    Returns:
        a, shape (nv,), with J a + dJ/dt v = 0; and the forces on `Constraint.link`, shape (m,), of
        least norm.

    Raises:
        ArgumentError: an unknown link; an array of the wrong size or not finite; constraints that
            no acceleration satisfies; a joint that can move and moves no inertia.
    """
    n = model.nv
    for name, array, size in (("q", q, model.nq), ("v", v, n), ("tau", tau, n)):
        if np.shape(array) != (size,) or not np.isfinite(array).all():
            raise ArgumentError(f"{name} is {array}; it must be {size} finite numbers")
    bias = inverse_dynamics(model, ws, q, v, np.zeros(n), np.zeros(n), external_forces)
    M = crba(model, ws, q, np.zeros((n, n)))
    _, J, gamma = _relative_motion(model, ws, q, v, constraints)
    # A particular acceleration that satisfies the constraints, plus any acceleration in the null
    # space N of J: so the rank depends on the geometry alone, not on the masses.
    U, sizes, VT = np.linalg.svd(J)
    rank = int((sizes > _RANK * sizes.max(initial=0.0)).sum())
    U, sizes, V, N = U[:, :rank], sizes[:rank], VT[:rank].T, VT[rank:].T
    kept = -V @ (U.T @ gamma / sizes)
    broken = np.abs(J @ kept + gamma).max(initial=0.0)
    if not broken <= _TOLERANCE * (1.0 + np.abs(gamma).max(initial=0.0)):
        raise ArgumentError(
            f"no acceleration keeps the constraints at this velocity, {broken:.3g} m/s^2 or "
            "rad/s^2 are left: the mechanism is singular here, or the velocity breaks them"
        )
    try:
        L = np.linalg.cholesky(N.T @ M @ N)
    except np.linalg.LinAlgError as error:
        raise ArgumentError(
            "the constrained mechanism moves something that has no inertia; give every moving "
            "link one, or its joint an armature"
        ) from error
    free = np.linalg.solve(L.T, np.linalg.solve(L, N.T @ (tau - bias - M @ kept)))
    a: FloatArray = kept + N @ free
    f: FloatArray = np.asarray(U @ (V.T @ (M @ a + bias - tau) / sizes), dtype=np.float64)
    return a, f


def _relative_motion(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    v: FloatArray,
    constraints: Sequence[Constraint],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Results of `constraint_error`, `constraint_jacobian` and `constraint_bias`."""
    poses = forward_kinematics(model, ws, q, np.zeros((len(model.link_names), 4, 4)))
    gaps = np.zeros((len(constraints), 3))
    blocks, biases = [np.zeros((0, model.nv))], [np.zeros(0)]
    for gap, constraint in zip(gaps, constraints, strict=True):
        links = constraint.link, constraint.other or model.root_link
        X, Y = (poses[link_index(model, link)] for link in links)
        point = X[:3, :3] @ constraint.point + X[:3, 3]
        other_point = point
        if constraint.other_point is not None:
            other_point = Y[:3, :3] @ constraint.other_point + Y[:3, 3]
        gap[:] = point - other_point
        J, bias = np.zeros((6, model.nv)), np.zeros(6)
        levers = point - X[:3, 3], other_point - Y[:3, 3]
        for link, lever, sign in zip(links, levers, (1.0, -1.0), strict=True):
            # Motion of the link's origin, then moved to the point.
            twist = jacobian(model, ws, q, link, np.zeros((6, model.nv)))
            change = link_acceleration(model, ws, q, v, np.zeros(model.nv), link, np.zeros(6))
            w = twist[3:] @ v
            twist[:3] -= skew(lever) @ twist[3:]
            change[:3] += np.cross(change[3:], lever) + np.cross(w, np.cross(w, lever))
            J += sign * twist
            bias += sign * change
        blocks.append(J[: constraint.rows])
        biases.append(bias[: constraint.rows])
    return gaps, np.concatenate(blocks), np.concatenate(biases)


def _selection(model: RobotModel, driven: Sequence[str] | None) -> FloatArray:
    """Selection matrix S: a row with a single 1 for each velocity of the actuated joints."""
    names = list(model.joint_names if driven is None else driven)
    distinct_joints = {*names} & {*model.joint_names}
    if isinstance(driven, str) or len(distinct_joints) != len(names):
        raise ArgumentError(
            f"driven is {driven!r}; it must be a list of joint names, each once, of "
            f"{', '.join(model.joint_names)}"
        )
    rows = (np.eye(model.nv)[model.v_slices[name]] for name in names)
    return np.concatenate([np.zeros((0, model.nv)), *rows])
