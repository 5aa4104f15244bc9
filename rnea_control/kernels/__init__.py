"""Compilation of numerical functions, and the vector algebra that they use."""
