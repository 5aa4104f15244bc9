r"""Agreement of a robot's torques with measured efforts, under different readings of the efforts.

A reading is a hypothesis how efforts result from torques: with which gravity, from which joint,
times which scale. With each reading the robot's parameters theta are estimated, near the URDF's
parameters within the URDF's possible error. Therefore no reading wins because the URDF is wrong by
a fifth. Friction and offsets are always estimated freely, as the URDF's damping is often a
placeholder. The cost of a reading is

.. math:: \sum_j \frac{n_j}{2} \log \overline{r_j^2}
          + \tfrac{1}{2} |\theta - \theta_0|^2_\Lambda
          + \tfrac{1}{2} \log \frac{|\Lambda + \sum_j w_j X_j^T X_j|}{|\Lambda|}

which is minus the logarithm of its evidence [MacKay 1992]. The terms are each joint's residual r_j,
the deviation of the parameters, and their freedom to fit other data too. n_j is the number of
independent torques, as noise of real drives is slow. Negative friction and rotor inertia are not
allowed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.ndimage import uniform_filter1d

from rnea_control.array_types import BoolArray, FloatArray, IntArray
from rnea_control.compiled import CompiledRobot
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.consistent_parameters import (
    SIZE,
    ParameterSpace,
    parameters_in_body,
    smat,
)
from rnea_control.identification.least_squares import BLOCK_SECONDS
from rnea_control.identification.motion import Motion
from rnea_control.identification.reading import Fit, Outlook, Proposal, Reading, Trial
from rnea_control.model import RobotModel

MOST_SAMPLES = 3000  # number of samples that is enough
TRUST = 0.3  # relative standard deviation of the URDF's inertias
LEAST_PART = 0.03  # fraction of a link's inertia below which a lower value costs no more
MISSING = 1.2  # largest negative load as a fraction of the declared payload, which may be absent
LOAD_PART = 0.1  # standard deviation of a load's mass as a fraction of the moving mass
FLOOR = 0.005  # residual that counts as zero, as a fraction of the effort
PASSES = 8  # number of iterations of a fit
CLOSE = 5.0  # smallest logarithm of the ratio of likelihoods that separates two readings
LEFT = 0.4  # variance that a supported reading leaves at its best joint, at most, as a fraction
LEAST_EXPLAINED = 0.05  # smallest fraction of the residual that a supported reading explains


class TorqueEvidence:
    """Torques of a robot along a recorded motion, and the costs of readings of its efforts.

    Args:
        model: the robot as described, with its payloads.
        robot: the same robot by `identified_robot`.
        motion: motion of its joints.

    Attributes:
        space: parameter space of theta; its load is attached to the last link.
        declared: theta of `model`, then a 1.
        independent: n_j of the module's docstring, shape (nv,).
        rough: mean square of the high-frequency noise removed from the efforts, shape (nv,).
        spread: variance of the remaining efforts, shape (nv,).
        as_described: the reading of correct efforts.

    Raises:
        IdentificationError: no link that moves has a mass.
    """

    def __init__(self, model: RobotModel, robot: CompiledRobot, motion: Motion) -> None:
        nv = model.nv
        self.model = model
        self.space = space = ParameterSpace(model, motion, with_load=True, trust=TRUST)
        of_actuators = np.arange(space.actuators.start, space.actuators.stop)
        self.declared = np.append(space.start, 1.0)
        self._center = self._bodies(self.declared)
        self._precision = np.append(space.prior, 1.0)
        mass = sum(model.link_inertias[link][3, 3] for link in space.inertias(space.start))
        if not mass:
            raise IdentificationError(
                f"no link of {model.name!r} that moves has a mass, so the efforts cannot be "
                "compared with its torques; give the links masses in the URDF, estimates are enough"
            )
        self._precision[space.load] = (LOAD_PART * mass) ** -2
        self._positive = np.zeros(len(self.declared), np.bool_)
        self._positive[of_actuators[:-nv]] = True
        body, to_body = parameters_in_body(model, model.child_links[-1])
        to_phi = np.column_stack([space.to_phi, space.phi_offset])
        self._to_phi, of_load = to_phi[:-SIZE], to_phi[-SIZE:]
        self._to_phi[SIZE * body : SIZE * (body + 1)] += to_body @ of_load
        moving = np.flatnonzero(motion.counts.any(axis=1))
        step = max(math.ceil(len(moving) / MOST_SAMPLES), 1) // 2 * 2 + 1  # odd
        self._step = step * motion.period
        rows = moving[::step]
        # Means over the steps, so that all efforts are used.
        parts = [uniform_filter1d(motion.effort[part], step, axis=0) for part in motion.parts]
        efforts = np.concatenate(parts)
        self._efforts, self._time = efforts[rows], motion.time[rows]
        self.rough = np.mean((motion.effort - efforts) ** 2, axis=0)
        self.spread = np.var(self._efforts, axis=0)
        self._used = motion.counts[rows]
        self._samples = np.maximum(self._used.sum(axis=0), 1)
        # Sum of squares of each effort (column) while each joint (row) moves.
        self._squares = self._used.T.astype(np.float64) @ self._efforts**2
        blocks = np.floor(self._time / BLOCK_SECONDS)
        self._blocks = np.flatnonzero(np.diff(blocks, prepend=-np.inf))  # first sample of each
        self.independent = self._used.sum(axis=0) * len(self._blocks) / max(len(rows), 1)
        self._robot, self._states = robot, [each[rows] for each in (motion.q, motion.v, motion.a)]
        self._sums = cache(self._sums_under)
        self.as_described = Reading(model.gravity, np.arange(nv), np.ones(nv))

    def weigh(self, fit: Fit) -> None:
        """Sets the number of independent torques by the correlation of a fit's residual: from one
        in each block to all."""
        residual = self.residual(fit)
        sums = np.add.reduceat(residual, self._blocks, axis=0)
        slow = (sums**2).sum(axis=0) / np.maximum((residual**2).sum(axis=0), 1e-300)
        most = len(self._time) / len(self._blocks)
        self.independent = self._used.sum(axis=0) / np.clip(slow, 1.0, most)

    def fit(
        self, reading: Reading, opened: IntArray | None = None, groups: IntArray | None = None
    ) -> Fit:
        """Fits the parameters with a reading.

        Args:
            reading: the reading; its scales are initial values for `groups`.
            opened: indices of theta that may deviate from the model; by default all, with or
                without an unknown load, whichever is likelier.
            groups: number of each joint's group, shape (nv,). Joints with the same number of 0 or
                more have a common unknown scale.
        """
        if opened is None:
            load = self.space.load
            without, loaded = (
                self.fit(reading, np.arange(end), groups) for end in (load.start, load.stop)
            )
            # A load's mass is not negative, except for a declared payload that is absent.
            is_load = loaded.theta[load.stop - 1] >= -MISSING * self.model.payload_mass
            return loaded if is_load and loaded.cost < without.cost else without
        j, (G, C) = np.arange(self.model.nv), self._sums(*reading.gravity)
        c, power = C[j, :, reading.order], self._squares[j, reading.order] / self._samples
        floor = FLOOR**2 * np.maximum(power, 1e-12)
        is_open = np.zeros(len(self.declared), np.bool_)
        is_open[opened] = True
        precision = self._precision.copy()
        # Friction, rotors and offsets have the size of torques, not of efforts.
        precision[self.space.actuators] *= np.tile(np.maximum(reading.scale**2, 1e-12), 4)
        theta, scale, variance, parts = self.declared, reading.scale.copy(), power + floor, 0.0
        for _ in range(PASSES):
            w = self.independent / (self._samples * variance)
            matrix, vector = np.tensordot(w * scale**2, G, 1), (w * scale) @ c
            theta, parts = self._solved(matrix, vector, is_open, precision)
            shares, sizes = c @ theta, (G @ theta) @ theta
            for group in range(int(groups.max()) + 1 if groups is not None else 0):
                own = groups == group
                scale[own] = (w * shares)[own].sum() / max((w * sizes)[own].sum(), 1e-300)
            before = variance
            squares = power - (2.0 * scale * shares - scale**2 * sizes) / self._samples
            variance = np.maximum(squares, 0.0) + floor
            if np.abs(variance / before - 1.0).max() < 1e-3:
                break
        cost = 0.5 * float(self.independent @ np.log(variance)) + parts
        return Fit(replace(reading, scale=scale), cost, theta, variance)

    def _solved(
        self, matrix: FloatArray, vector: FloatArray, opened: BoolArray, precision: FloatArray
    ) -> tuple[FloatArray, float]:
        """Theta by least squares with the prior, and the last two terms of the cost."""
        theta = self.declared.copy()
        if not opened.any():
            return theta, 0.0
        while True:
            prior, center = precision[opened], self._center[opened]
            A = matrix[np.ix_(opened, opened)] + np.diag(prior)
            b = vector[opened] - matrix[np.ix_(opened, ~opened)] @ theta[~opened] + prior * center
            factor = cho_factor(A)
            theta[opened] = cho_solve(factor, b)
            below = opened & self._positive & (theta < 0.0)
            if not below.any():
                break
            theta[below], opened = 0.0, opened & ~below
        volume = np.log(np.diag(factor[0])).sum() - 0.5 * np.log(prior).sum()
        change = theta - self._center
        change[~opened] = change[self.space.links] = 0.0
        squares = 0.5 * (precision * change) @ change
        # The links' inertias cost the divergence of Gaussians, which is the same to second order,
        # and large if a mass vanishes.
        values = np.maximum(np.linalg.eigvalsh(smat(theta[self.space.links])), LEAST_PART)
        divergence = (values - np.log(values) - 1.0).sum() / TRUST**2
        return theta, float(squares + divergence + volume)

    def outlook(self, fit: Fit) -> Outlook:
        """Properties of a fit for hypotheses."""
        own = self.model.gravity
        fits_gravity = own.any() and np.array_equal(fit.reading.gravity, own)
        gravity = self.gravity_of(fit) if fits_gravity else np.zeros(3)
        compared, clock = self.described(fit.reading), self.clock(fit)
        return Outlook(self.model, fit, *compared, gravity, clock, self.independent)

    def trial(self, proposal: Proposal) -> Trial:
        """Fits the readings of a proposal."""
        fits = [self.fit(start, groups=proposal.groups) for start in proposal.starts]
        least = min(fit.cost for fit in fits)
        fit = next(fit for fit in fits if fit.cost <= least + proposal.slack)
        return Trial(proposal.joints, fit.cost + proposal.price, fit)

    def support(self, before: Fit, trial: Trial) -> float:
        """Part of the residual that another reading explains, 0 to 1; 0 if it explains too little,
        or leaves too much of the effort of each of its joints unexplained."""
        strength = self.spread[trial.fit.reading.order]
        left = trial.fit.variance / np.maximum(strength, 1e-300)
        if left[trial.joints].min() > LEFT:
            return 0.0
        part = self._explained(before, trial)
        return part if part >= LEAST_EXPLAINED else 0.0

    def _explained(self, before: Fit, trial: Trial) -> float:
        """Reduction by another reading of the residual that the URDF's masses leave with any
        friction, rotors and offsets; in squares of the noise, as a fraction of the residual above
        the noise.

        The residual with fitted masses is not used, as lighter links explain motor currents too.
        """
        after = trial.fit
        squares, noise = np.empty((2, self.model.nv)), np.empty(self.model.nv)
        for row, reading in zip(squares, (before.reading, after.reading), strict=True):
            row[reading.order] = self.as_declared(reading)
        noise[after.reading.order] = after.variance
        about = before.reading.order[trial.joints]
        now, left = ((self.independent * row / noise)[about].sum() for row in squares)
        above_noise = now - self.independent[about].sum()
        return float(min((now - left) / max(above_noise, 1e-9), 1.0))

    def clock(self, fit: Fit) -> tuple[float, float]:
        """Increase of the efforts' delay from the beginning to the end of the recording, [s], and
        its gain in evidence over a fit.

        To first order, and by the smooth part of the torques, without friction.
        """
        torque = self._torques(self._bodies(fit.theta), fit.reading)
        slope = np.gradient(torque, np.arange(len(self._time)) * self._step, axis=0)
        column = np.where(self._used, -slope * (self._time - self._time.mean())[:, None], 0.0)
        residual = self.residual(fit)
        w = self.independent / (self._samples * fit.variance)
        curvature = (w * (column**2).sum(axis=0)).sum()
        drift = (w * (column * residual).sum(axis=0)).sum() / max(curvature, 1e-300)
        squares = ((residual - drift * column) ** 2).sum(axis=0) / self._samples
        variance = np.maximum(squares, 1e-3 * fit.variance)
        gain = 0.5 * float(self.independent @ np.log(fit.variance / variance))
        return float(drift * np.ptp(self._time)), gain

    def described(self, reading: Reading) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Compares each effort (column) with the URDF's torques of each joint (row).

        Returns:
            Three arrays of shape (nv, nv).
            scale: factor with which the torques of the URDF's masses fit the effort, together with
                any friction, rotor and offset.
            left: fraction of the effort that all of these leave, 0 to 1.
            certainty: squares of the effort that only the masses explain, over the squares that are
                left. Below 1 the effort does not determine its scale.
        """
        (G, C), nv = self._sums(*reading.gravity), self.model.nv
        units, scale, left = np.eye(len(self.declared)), np.ones((nv, nv)), np.empty((nv, nv))
        certainty = np.zeros((nv, nv))
        for j, of_joint in enumerate(np.r_[self.space.actuators].reshape(4, nv).T):
            basis = np.column_stack([self._bodies(self.declared), units[:, of_joint]])
            A, b = basis.T @ G[j] @ basis, basis.T @ C[j]
            size = 1.0 / np.sqrt(np.maximum(np.diag(A), 1e-300))[:, None]
            inverse = np.linalg.pinv(A * size * size.T, rcond=1e-9, hermitian=True)
            x = size * inverse @ (size * b)
            squares = np.maximum(self._squares[j], 1e-300)
            left[j] = np.clip(1.0 - (x * b).sum(axis=0) / squares, 0.0, 1.0)
            if A[0, 0] > 0.0 and inverse[0, 0] > 0.0:
                scale[j] = x[0]
                own = x[0] ** 2 / (inverse[0, 0] * size[0] ** 2 * squares)
                certainty[j] = own / np.maximum(left[j], FLOOR**2)
        return scale, left, certainty

    def as_declared(self, reading: Reading) -> FloatArray:
        """Mean square of each joint's residual with the masses and inertias of the URDF and any
        friction, rotors and offsets, shape (nv,)."""
        return self.fit(reading, np.r_[self.space.actuators]).variance

    def gravity_ratio(self) -> tuple[int, float, float]:
        """Joint with the largest gravity torque by the URDF, its effort in slow motion as a
        multiple of this torque, and the standard deviation of the multiple.

        Slow motion is the half of the samples in which the joint's other torques by the URDF are
        smallest. Coulomb and viscous friction are fitted too. Independent of the evidence.
        """
        phi, (q, v, a) = self._to_phi @ self._bodies(self.declared), self._states
        still = np.zeros_like(q)
        gravity = self._robot.batch("regressor", q, still, still) @ phi
        j = int(np.argmax((gravity**2 * self._used).sum(axis=0)))
        other = np.abs(self._robot.batch("regressor", q, v, a)[:, j] @ phi - gravity[:, j])
        used = self._used[:, j]
        if not used.any() or not gravity[:, j].any():
            return j, 1.0, math.inf
        slow = used & (other <= np.median(other[used]))
        A = np.column_stack([gravity[:, j], np.sign(v[:, j]), v[:, j]])[slow]
        effort = self._efforts[slow, j]
        size = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
        inverse = np.linalg.pinv(A / size, rcond=1e-6)
        x = inverse @ effort
        blocks = len(np.unique(np.floor(self._time[slow] / BLOCK_SECONDS)))
        residual = effort - A / size @ x
        variance = residual @ residual / max(blocks - A.shape[1], 1)
        deviation = math.sqrt(variance * float(inverse[0] @ inverse[0])) / size[0]
        return j, float(x[0] / size[0]), deviation

    def gravity_of(self, fit: Fit) -> FloatArray:
        """Gravity that fits the URDF's masses best, together with friction, rotors and offsets; 0
        in a direction in which gravity makes no torque, as across the plane of a planar arm."""
        nv, phi = self.model.nv, self._to_phi @ self._bodies(self.declared)
        Y = self._regressor(np.zeros(3))
        without = Y @ phi
        by_axis = [self._regressor(axis) @ phi - without for axis in np.eye(3)]
        of_actuators = np.moveaxis(Y[:, :, -4 * nv :], -1, 0)
        weight = self._used / np.sqrt(fit.variance)
        scaled = weight * fit.reading.scale
        A = np.stack([(scaled * each).ravel() for each in (*by_axis, *of_actuators)], axis=1)
        rest = weight * self._efforts[:, fit.reading.order] - scaled * without
        size = np.linalg.norm(A, axis=0)
        size = np.maximum(size, max(1e-9 * size.max(), 1e-300))
        x = np.linalg.lstsq(A / size, rest.ravel(), rcond=1e-6)[0]
        return np.asarray((x / size)[:3])

    def _bodies(self, theta: FloatArray) -> FloatArray:
        """Copy of theta with the parameters of the actuators set to 0."""
        bodies = theta.copy()
        bodies[self.space.actuators] = 0.0
        return bodies

    def torque_of(self, change: FloatArray, reading: Reading) -> FloatArray:
        """Root mean square of the torque of a change of theta, shape (nv,)."""
        squares = (self._sums(*reading.gravity)[0] @ change) @ change
        return np.asarray(np.sqrt(np.maximum(squares, 0.0) / self._samples))

    def residual(self, fit: Fit) -> FloatArray:
        """Measured efforts minus the efforts of a fit, shape (samples, nv); 0 for a joint at
        rest."""
        measured = self._efforts[:, fit.reading.order]
        return np.asarray((measured - self._torques(fit.theta, fit.reading)) * self._used)

    def _torques(self, theta: FloatArray, reading: Reading) -> FloatArray:
        """Torques of theta as efforts, shape (samples, nv)."""
        torques = self._regressor(reading.gravity) @ (self._to_phi @ theta)
        return np.asarray(torques * reading.scale)

    def _regressor(self, gravity: FloatArray) -> FloatArray:
        """Regressor of the robot under a gravity, shape (samples, nv, parameters)."""
        self._robot.model.gravity = gravity
        Y = self._robot.batch("regressor", *self._states)
        self._robot.model.gravity = self.model.gravity
        return Y

    def _sums_under(self, *gravity: float) -> tuple[FloatArray, FloatArray]:
        """X_j^T X_j, shape (nv, theta, theta), and X_j^T tau_k, shape (nv, theta, nv), with the
        torques X_j for a value of 1 of each theta."""
        X = self._regressor(np.array(gravity)) @ self._to_phi
        X *= self._used[:, :, None]  # 0 for a joint at rest
        X = np.ascontiguousarray(X.transpose(1, 2, 0))
        return X @ X.transpose(0, 2, 1), X @ self._efforts
