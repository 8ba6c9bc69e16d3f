"""Derivatives of what is made like a tensor: none."""

from .formula import zero

op_ones_like = op_zeros_like = zero
