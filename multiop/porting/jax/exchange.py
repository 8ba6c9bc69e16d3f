"""How JAX's arrays are handed to another framework, and taken from one."""

from __future__ import annotations

import functools

import jax
import numpy as np

from multiop import config, extend, op_convert_to_numpy
from multiop.porting._spec import Spec, closes_over, depends_on_more, functional, is_written, recording  # noqa: F401

_WIDE = ("int64", "uint64", "float64", "complex128")
orders = 3  # how often its results can be differentiated: multiop traces a rule's rules ahead


def share(x):
    """Return `x` as an array with `__dlpack__` on the host."""
    return jax.device_put(x, jax.devices("cpu")[0]) if isinstance(x, jax.Array) else np.asarray(x)


def adopt(array):
    """Return an array with `__dlpack__` as JAX's, without a copy if that is possible."""
    backend = extend.load("jax")
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return backend.convert(array)
    if not config.x64() and str(array.dtype).removeprefix("torch.") in _WIDE:
        return backend.convert(np.from_dlpack(array))  # which says what becomes of 64 bits
    return jax.numpy.from_dlpack(array)


def is_concrete(xs):
    """Say whether all of `xs` have values."""
    return not any(isinstance(x, jax.core.Tracer) for x in xs)


def callback(called, xs):
    """Return the results of a foreign function on tracers: a call of the host that the compiler does not look into."""
    specs = called.specs([Spec(x.shape, x.dtype.name) for x in xs])
    results = [jax.ShapeDtypeStruct(spec.shape, spec.dtype) for spec in specs]

    def call(*xs):
        return jax.pure_callback(functools.partial(_run, called), results, *xs, vmap_method="sequential")

    if called.linear_from is not None:
        call.__name__ = f"{extend.LINEAR_FROM}{called.linear_from}"
        call = jax.jit(call)
    return call(*xs)


def _run(called, *xs):
    return called.value([np.asarray(x) for x in xs], op_convert_to_numpy)


def infer(called, specs):
    """Return the specs of the results of a function of JAX."""
    with config.use_backend("jax"):
        results = jax.eval_shape(called.function, [jax.ShapeDtypeStruct(spec.shape, spec.dtype) for spec in specs])
    return [Spec(result.shape, result.dtype.name) for result in results]
