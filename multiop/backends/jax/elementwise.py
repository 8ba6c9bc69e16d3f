"""Elementwise arithmetic and functions."""

from __future__ import annotations

import jax.numpy as jnp

from .conversion import floating, promote


def op_add(x1, x2):
    return jnp.add(*promote(x1, x2))


def op_exp(x):
    return jnp.exp(floating(x))


def op_maximum(x1, x2):
    return jnp.maximum(*promote(x1, x2))  # splits ties; the gradient at NaN is the rule's business: see op_minimum
