"""Vectors, rotations and spatial algebra, as functions that are compiled into kernels."""
