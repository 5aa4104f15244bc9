"""Rows of the array of friction parameters, one column for each velocity."""

DAMPING, COULOMB, OFFSET = ROWS = range(3)
