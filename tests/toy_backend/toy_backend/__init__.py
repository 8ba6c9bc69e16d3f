"""A backend in three small files: what a third party has to write, with NumPy in the place of a framework."""

import numpy as np

from multiop.backends import not_implemented

from .conversion import *  # noqa: F403
from .conversion import Tensor as Tensor
from .elementwise import *  # noqa: F403

name = "toy"
version = np.__version__
argument_errors = (ValueError, TypeError, IndexError)
passed_errors = ()

_no_gradients = not_implemented("NumPy has no automatic differentiation: https://github.com/numpy/numpy/issues/8247")

custom_call = vjp = jvp = vmap = checkpoint = Tape = gradients = _no_gradients


def stop_gradient(x):
    return convert(x)  # noqa: F405


def jit(fun):
    return fun


def __getattr__(attribute):
    if attribute.startswith("op_"):
        return not_implemented(f"the toy backend has no {attribute}")
    raise AttributeError(attribute)
