"""Triangles and diagonals by TensorFlow's kernels."""

from __future__ import annotations

import tensorflow as tf

from ..conversion import convert, is_tensor


def op_tril(x, k, *, otherwise):
    return band(x, k, False) if is_banded(x, k) else otherwise(x, k)


def op_triu(x, k, *, otherwise):
    return band(x, -k, True) if type(k) is int and is_banded(x, -k) else otherwise(x, k)


def is_banded(x, beyond):
    """Say whether a triangle of `x` that goes `beyond` the main diagonal is a band that the kernel takes."""
    if type(beyond) is not int or beyond < 0 or not is_tensor(x) or (x.shape.rank or 0) < 2:
        return False
    return not (beyond and None in x.shape[-2:])


def band(x, beyond, is_upper):
    x, beyond = convert(x), min(beyond, *x.shape[-2:]) if beyond else 0
    return tf.raw_ops.MatrixBandPart(
        input=x, num_lower=beyond if is_upper else -1, num_upper=-1 if is_upper else beyond
    )


def op_diag(x, k, *, otherwise):
    if is_tensor(x) and x.shape.rank == 1 and type(k) is int:
        return tf.linalg.diag(convert(x), k=k)
    return otherwise(x, k)
