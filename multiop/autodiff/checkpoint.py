"""Trade time for memory: recompute a function's intermediates in its backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from multiop._loading.registry import active, is_compiling, traced
from multiop._rules import rerun_state
from multiop._values import args as _args, dtypes, tree
from multiop.autodiff import _flat
from multiop.autodiff._transformed import decorate_transformed, explain_keywords

P = ParamSpec("P")
T = TypeVar("T")


@explain_keywords
def checkpoint(fun: Callable[P, T], *, static_argnums: int | Sequence[int] = ()) -> Callable[P, T]:
    """Return a function whose intermediates are not kept for its gradient, but computed again.

    Values and gradients are those of `fun`. Between the forward and the backward pass, only its arguments, its outputs
    and what it closes over are kept.

    Args:
        fun: Function of pytrees that returns a pytree of tensors. It runs again in the backward pass, so it must be
            free of side effects.
        static_argnums: Positions of arguments to pass to `fun` unchanged. Only those with tensors need to be listed.

    Returns:
        Function of the same arguments.

    Raises:
        ArgumentTypeError: `fun` is not callable, or `static_argnums` is not made of ints.
        UnsupportedError: `fun` draws random numbers, or changes a value, in a way that cannot be repeated: TensorFlow's
            `tf.random.normal`, or a `tf.Variable` changed in a `tf.function`.

    Example:
        >>> import multiop
        >>> block = multiop.checkpoint(lambda x: multiop.op_exp(multiop.op_exp(x)))
        >>> round(float(multiop.grad(block)(0.0)), 4)
        2.7183
    """
    _args.function(fun, "checkpoint: fun")
    static = _flat.argnums(static_argnums, "checkpoint: static_argnums")
    static = (static,) if isinstance(static, int) else static

    @decorate_transformed(fun, functools.partial(checkpoint, static_argnums=static_argnums))
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        backend = active()

        def is_differentiable(leaf: Any) -> bool:
            return backend.is_tensor(leaf) and backend.dtype_name(leaf) in dtypes.INEXACT

        fixed = {i % len(args): args[i] for i in static if -len(args) <= i < len(args)}
        free = [None if i in fixed else argument for i, argument in enumerate(args)]
        if not is_compiling():  # it runs again, when the caller may have changed an array of NumPy
            free, kwargs = tree.map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, (free, kwargs))
        template, primals = _flat.take((free, kwargs), is_differentiable)
        returned: list[_flat.Template] = []

        def flat(*tensors: Any) -> list[Any]:
            positional, keyword = template.fill(tensors)
            for i, argument in fixed.items():
                positional[i] = argument
            output, outputs = _flat.take_outputs(traced(fun)(*positional, **keyword), backend)
            returned[:] = [output]
            return outputs

        run = flat  # what is compiled draws from keys alone
        if not is_compiling():
            run = rerun_state.Repeatable(flat, rerun_state.host_generators(fun, (args, kwargs)))
        outputs = backend.checkpoint(run, [backend.convert(x) for x in primals])
        return returned[0].fill(outputs)

    return call
