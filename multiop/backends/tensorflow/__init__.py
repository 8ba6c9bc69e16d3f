"""The TensorFlow backend."""

import os
import re

if is_loud := "TF_CPP_MIN_LOG_LEVEL" not in os.environ:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # TensorFlow logs its CPU features on import

import tensorflow as tf

if is_loud:
    del os.environ["TF_CPP_MIN_LOG_LEVEL"]  # not for the processes that this one starts

from . import _internals, _ranks, _versions, kernels as kernels, random as random
from .conversion import *  # noqa: F403
from .ops import *  # noqa: F403

# isort: split
from .autodiff._programs import composite as composite
from .autodiff.custom_gradient import custom_call as custom_call, linear as linear, stop_gradient as stop_gradient
from .autodiff.gradients import gradients as gradients
from .autodiff.tape import Tape as Tape
from .autodiff.transforms import (
    checkpoint as checkpoint,
    is_differentiated as is_differentiated,
    jit as jit,
    jvp as jvp,
    traced as traced,
    vjp as vjp,
    vmap as vmap,
)
from .devices import device as device, is_at_hand as is_at_hand, to_device as to_device
from .scopes import name_scope as name_scope

if _internals.missing is not None:
    from .autodiff._public import custom_call as custom_call

name = "tensorflow"
if_untested = _versions.LACKS
version = tf.__version__
Tensor = (tf.Tensor, tf.Variable)
argument_errors = (tf.errors.InvalidArgumentError, ValueError, TypeError, IndexError)
passed_errors = ()


def reason(error):
    """Say whether a value was read that a graph lacks, operands differ in dtype, or have too many dimensions."""
    if _ranks.is_refused(error):
        return "unsupported"
    parts = ("'SymbolicTensor'", "a symbolic tensor has no value yet")  # of Python, where an int is read; of multiop
    is_refused = isinstance(error, TypeError) and any(part in str(error) for part in parts)
    if is_refused or isinstance(error, tf.errors.OperatorNotAllowedInGraphError):
        return "unknown value"
    is_mixed = re.search(r"expected to be an? \w+ tensor but is an? |does not match type \w+ of argument", str(error))
    return "two dtypes" if is_mixed else None


def first_line(error):
    """Return the first line of an error's message, without the names of kernels, nodes and devices."""
    if _ranks.is_refused(error):
        return _ranks.explain(error)
    text = error.message if isinstance(error, tf.errors.OpError) else str(error)
    text = re.sub(r"\{\{.*?\}\} ?| \[Op:.*", "", text.strip().split("\n")[0])
    return re.sub(r" for '.*? = .*?' with input shapes", " with input shapes", text)


def compute_again(error, fun):
    """Return what `fun()` returns, which ended in `error`, in a list, where there is another way; else `None`."""
    return [_ranks.compute(fun, error)] if tf.executing_eagerly() and _ranks.is_refused(error) else None


_versions.warn_of_missing_parts()
