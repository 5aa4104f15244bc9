"""The types of arrays in signatures."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
WordArray = npt.NDArray[np.uint64]
RecordArray = npt.NDArray[np.void]

# By their dimensions, for signatures that kernels are compiled for: see jit/kernel.py.
Vector = FloatArray
Matrix = FloatArray
Matrices = FloatArray
IntVector = IntArray
