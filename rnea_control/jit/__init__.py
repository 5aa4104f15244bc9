"""Compilation of numerical Python functions, and calls of their machine code."""
