"""Products of matrices and of tensors."""

from __future__ import annotations

import jax.numpy as jnp

from multiop import errors
from multiop._values import args

from ..conversion import are_floats, jit_inline, promote, promote_all, without_int8


def op_matmul(x1, x2):
    if are_floats(x1, x2) and x1.ndim and x2.ndim:
        return _matmul(x1, x2)
    x1, x2 = promote(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise errors.ArgumentError("x1 and x2 must have at least one dimension")
    return _matmul(*without_int8(x1, x2))


def op_einsum(subscripts, operands):
    return _einsum(subscripts, *without_int8(*promote_all(*operands)))


def op_tensordot(x1, x2, axes):
    x1, x2 = promote_all(x1, x2)
    return jnp.tensordot(x1, x2, args.axes_to_contract(axes, x1.shape, x2.shape))


_matmul, _einsum = jit_inline(jnp.matmul), jit_inline(jnp.einsum, static_argnums=0)
