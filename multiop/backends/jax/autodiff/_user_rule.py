"""A user's rule in JAX's terms, and what a user's function closes over."""

from __future__ import annotations

import contextlib
import functools

from multiop import errors
from multiop._values import args

from ..conversion import conjugate


def pullback(call, grad_fn, inexact, variables):
    """Return the rule as a map from cotangents of the inexact outputs to gradients of all primals, then variables.

    JAX's cotangents are the conjugates of what the rule takes and returns.

    Args:
        call: The call.
        grad_fn: The gradient function that the user's function returned.
        inexact: Which outputs have a differentiable dtype.
        variables: What the function closes over, if the rule takes it.
    """

    def pull(cotangents):
        cotangents = iter(cotangents)
        upstreams = [conjugate(next(cotangents)) if given else None for given in inexact]
        grads, variable_grads = call.backward(grad_fn, upstreams, variables)
        return [None if g is None else conjugate(g) for g in (*grads, *variable_grads)]

    return pull


def reachable(f, seen=None):
    """Yield what `f` closes over or is bound to, and what containers and functions among these hold."""
    seen = set() if seen is None else seen
    if id(f) in seen:
        return
    seen.add(id(f))
    if isinstance(f, functools.partial):
        held = [f.func, *f.args, *f.keywords.values()]
    elif isinstance(f, dict):
        held = list(f.values())  # it may change during the walk
    elif isinstance(f, (tuple, list)):
        held = list(f)
    else:
        held = [getattr(f, "__self__", None)]
        for cell in getattr(f, "__closure__", None) or ():
            with contextlib.suppress(ValueError):  # not assigned yet
                held.append(cell.cell_contents)
    for x in held:
        yield x
        if callable(x) or isinstance(x, (tuple, list, dict)):
            yield from reachable(x, seen)


def code_of(f):
    """Return what tells the function `f` from others, also where it is defined anew in each call of another."""
    while (inner := getattr(f, "func", None) or getattr(f, "__func__", None)) is not None:
        f = inner
    return getattr(f, "__code__", None) or getattr(type(f).__call__, "__code__", f)


def name_of(x, call):
    """Return a description of `x`, which the function of `call` closes over."""
    code, cells = getattr(call.f, "__code__", None), getattr(call.f, "__closure__", None) or ()
    for name, cell in zip(code.co_freevars if code else (), cells, strict=True):
        with contextlib.suppress(ValueError):
            held = cell.cell_contents
            if held is x or any(leaf is x for leaf in reachable(held)):
                return f"{name!r} ({args.describe(x)})"
    return f"a value {args.describe(x)}"


def closed_over_error(function, names):
    """Return the error for values that a function closes over and that its rule has no gradient for."""
    return errors.ClosedOverError(
        f"{function} closes over {', '.join(names)}, which is being differentiated, and its gradient function says "
        f"nothing about it; pass it to {function} as an argument, or give the gradient function a `variables` parameter"
    )
