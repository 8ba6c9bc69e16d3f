"""Tensors of more dimensions than TensorFlow's kernels take: XLA, which takes any number, computes with them."""

from __future__ import annotations

import re

import tensorflow as tf

from multiop import errors

MOST_SLICED = 8
_URL = "https://www.tensorflow.org/xla"
_REFUSALS = re.compile(
    r"Broadcast between \[|inputs rank not in \[|Unhandled input dimensions|does not work on tensors with more than"
    r"|only support up to \d+ input dim|reverse is not implemented for|rank \d+ is not supported|not supported for rank"
    r"|Unhandled dimensions|[Oo]nly ranks up to \d+ supported"
)


def is_refused(error):
    """Say whether an error is that of a kernel, or of a graph with one, which does not take that many dimensions."""
    is_of_kernel = isinstance(error, (tf.errors.UnimplementedError, tf.errors.InvalidArgumentError, ValueError))
    return is_of_kernel and _REFUSALS.search(str(error)) is not None


def explain(error):
    """Return what to say of such an error."""
    line = re.sub(r"\{\{.*?\}\} ?| \[Op:.*| for '.*? = .*?'", "", str(error).strip().partition("\n")[0])
    return f"TensorFlow has no kernel for so many dimensions ({line}); merge some of them with op_reshape: {_URL}"


def compute(fun, error, *args):
    """Return `fun(*args)`, which ended in `error`, computed by XLA.

    Raises:
        UnsupportedError: XLA cannot do so either: it knows no values, and no sizes that depend on them.
    """
    try:
        return tf.function(fun, jit_compile=True, autograph=False)(*args)
    except Exception:
        raise errors.UnsupportedError(explain(error)) from error


def slice_by_key(x, key):
    """Return `x[key]`, of slices: from 9 dimensions on, TensorFlow's gradient of it is what lies in memory."""
    if x.shape.rank <= MOST_SLICED:
        return x[key]
    return tf.function(lambda x: x[key], jit_compile=True, autograph=False)(x)
