"""Control flow on flat lists of tensors."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..conversion import CONCRETE, is_array


def op_cond(pred, true_fn, false_fn):
    if _is_known(pred):  # jax.lax.cond compiles both functions at each call
        return true_fn() if pred else false_fn()
    return jax.lax.cond(pred, true_fn, false_fn)


def op_switch(index, branches):
    if _is_known(index):
        return branches[min(max(int(index), 0), len(branches) - 1)]()
    return jax.lax.switch(index, branches)


def _is_known(x):
    return isinstance(x, int) or type(x) in CONCRETE or is_array(x)


def op_while_loop(cond, body, xs, maximum_iterations):
    if maximum_iterations is None:
        return jax.lax.while_loop(lambda xs: cond(*xs), lambda xs: body(*xs), xs)
    counted = jax.lax.while_loop(
        lambda state: (state[0] < maximum_iterations) & cond(*state[1]),
        lambda state: (state[0] + 1, body(*state[1])),
        (jnp.int32(0), xs),
    )
    return counted[1]


def op_fori_loop(lower, upper, body, xs):
    return jax.lax.fori_loop(lower, upper, lambda index, xs: body(index, *xs), xs)


def op_scan(f, init, xs, length, reverse, unroll):
    return jax.lax.scan(f, init, xs, length, reverse, unroll)
