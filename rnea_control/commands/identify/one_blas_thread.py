"""Keeps NumPy and SciPy to one thread, if imported before them.

The matrices of robots are small: on a busy machine the threads of OpenBLAS wait for each other, and
a search takes ten times as long. What the user has set stays.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
