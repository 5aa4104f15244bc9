r"""How much a motion says about the base parameters, and two numbers for it.

With the base regressor Y_b at each sample and noise of standard deviation sigma_j in the torque of
joint j, independent from sample to sample, least squares finds the base parameters with the
covariance [Swevers et al. 1997]

.. math:: C = G^{-1} / \text{samples}, \qquad
    G = \operatorname{mean} Y_b^T \operatorname{diag}(\sigma)^{-2} Y_b

A criterion is a function of G that becomes smaller as the motion becomes better; it gives its value
f and the matrix S with df = tr(S dG).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np

from rnea_control.array_types import FloatArray

# Added to the diagonal, relative to it: a motion that does not excite a parameter has a cost, too.
REGULARIZATION = 1e-12


class Criterion(str, Enum):
    """The criterion that an exciting motion minimizes."""

    determinant = "determinant"
    """The volume of the confidence ellipsoid: the determinant of the covariance."""

    condition = "condition"
    """The condition number of the weighted base regressor with columns of length 1."""


def condition_number(G: FloatArray) -> float:
    """Of the weighted base regressor with columns of length 1; infinite where it is singular."""
    H, _ = _scaled(G)
    values = np.linalg.eigvalsh(H)
    smallest = values[0]
    rounding = len(G) * np.finfo(float).eps * values[-1]
    return float(np.sqrt(values[-1] / smallest)) if smallest > rounding else np.inf


def covariance(G: FloatArray, samples: float) -> FloatArray:
    """Of the base parameters from this many samples; infinite where G is singular."""
    if not np.isfinite(condition_number(G)):
        return np.full_like(G, np.inf)
    H, d = _scaled(G)
    inverse: FloatArray = np.linalg.inv(H) * np.outer(d, d) / samples
    return inverse


def log_determinant(G: FloatArray) -> tuple[float, FloatArray]:
    """- log det G over its size: the mean logarithm of the variances along the principal axes."""
    H, d = _scaled(G)
    H[np.diag_indices_from(H)] += REGULARIZATION
    L = np.linalg.cholesky(H)
    inverse = np.linalg.inv(L)
    S = -(inverse.T @ inverse) * np.outer(d, d) / len(G)
    S[np.diag_indices_from(S)] *= 1.0 + REGULARIZATION
    return 2.0 * float(np.log(d).sum() - np.log(np.diag(L)).sum()) / len(G), S


def log_condition(G: FloatArray) -> tuple[float, FloatArray]:
    """log of `condition_number`. The derivative is that of the outermost eigenvalues of the scaled
    matrix D G D, where D depends on G too."""
    H, d = _scaled(G)
    H[np.diag_indices_from(H)] += REGULARIZATION
    values, vectors = np.linalg.eigh(H)
    smallest = max(float(values[0]), REGULARIZATION)
    high, low = d * vectors[:, -1], d * vectors[:, 0]
    S = np.outer(high, high) / values[-1] - np.outer(low, low) / smallest
    S[np.diag_indices_from(S)] -= high**2 - low**2
    return 0.5 * float(np.log(values[-1] / smallest)), 0.5 * S


CRITERIA: dict[Criterion, Callable[[FloatArray], tuple[float, FloatArray]]] = {
    Criterion.determinant: log_determinant,
    Criterion.condition: log_condition,
}


def _scaled(G: FloatArray) -> tuple[FloatArray, FloatArray]:
    d = 1.0 / np.sqrt(np.maximum(np.diag(G), np.finfo(float).tiny))
    return G * np.outer(d, d), d
