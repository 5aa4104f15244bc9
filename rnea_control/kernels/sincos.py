"""Sines and cosines of all joint angles at once.

The recursions need both of every joint, and calls to the mathematics library one by one cost as
much as a third of a whole RNEA. This loop has no branch and no call, so that the compiler works on
four angles at a time. The method is the usual one [Cody, Waite 1980]: take off a multiple of pi/2,
in three parts so that nothing is lost, then the minimax polynomials that C libraries use on [-pi/4,
pi/4]. The error is at most one unit in the last place of 1.
"""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.kernels.inlining import inlined

# pi/2 in three parts, the first two of 33 bits each, so that their products with a whole number
# below 2^20 are exact.
_PI_2_HIGH = 1.57079632673412561417e00
_PI_2_MIDDLE = 6.07710050630396597660e-11
_PI_2_LOW = 2.02226624879595063154e-21
PI_2 = (_PI_2_HIGH, _PI_2_MIDDLE, _PI_2_LOW)
LARGEST_ANGLE = 2.0**19

_S1, _S2, _S3 = -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04
_S4, _S5, _S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
_C1, _C2, _C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
_C4, _C5, _C6 = -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11
# Of z in (s - r) / (r z) and (c - 1 + z / 2) / z^2 below.
SINE = (_S1, _S2, _S3, _S4, _S5, _S6)
COSINE = (_C1, _C2, _C3, _C4, _C5, _C6)


@inlined
def sincos(rows: FloatArray, row: int, angle: int, sine: int, cosine: int, count: int) -> None:
    """Sines and cosines of `count` angles [rad] in a row; each argument is a first column."""
    for i in range(count):
        x = rows[row, angle + i]
        quarters = np.rint(x * (2.0 / math.pi))
        r = ((x - quarters * _PI_2_HIGH) - quarters * _PI_2_MIDDLE) - quarters * _PI_2_LOW
        z = r * r
        s = r + r * z * (_S1 + z * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * _S6)))))
        c = 1.0 - 0.5 * z + z * z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * (_C5 + z * _C6)))))
        quadrant = quarters - 4.0 * np.floor(0.25 * quarters)
        swap = (quadrant == 1.0) | (quadrant == 3.0)
        first = c if swap else s
        second = s if swap else c
        rows[row, sine + i] = -first if quadrant >= 2.0 else first
        rows[row, cosine + i] = -second if (quadrant == 1.0) | (quadrant == 2.0) else second
