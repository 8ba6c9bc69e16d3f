"""Norms in one program."""

from __future__ import annotations

from multiop._values import args

from ..conversion import Tensor, is_inexact
from ..ops.reduction import euclidean_norm


def op_norm(x, ord, axis, keepdims, *, otherwise):
    is_fit = isinstance(x, Tensor) and is_inexact(x) and type(keepdims) is bool
    axes = args.euclidean(ord, axis, x.ndim) if is_fit else None
    return otherwise(x, ord, axis, keepdims) if axes is None else euclidean_norm(x, axes, keepdims)
