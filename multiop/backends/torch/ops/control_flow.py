"""Control flow on flat lists of tensors: Python's own, unless a value cannot be read, as under vmap."""

from __future__ import annotations

import torch

from multiop._values import args

from .. import _internals
from .._internals import are_transforms_active, is_tracing
from ..autodiff._effects import DependsOnValues
from ..conversion import is_inexact

_UNTRACED = "values are read, which a trace does not have; torch.export with strict=True traces op_cond and loops"


def op_cond(pred, true_fn, false_fn):
    if isinstance(pred, bool) or _is_readable(pred):
        return true_fn() if pred else false_fn()
    yes, no = true_fn(), false_fn()
    if not torch.compiler.is_dynamo_compiling():  # under vmap
        return [torch.where(pred, y, n) for y, n in zip(yes, no, strict=True)]
    # both functions have recorded the structure of their results, which they could not do inside torch.cond
    kinds = [is_inexact(y) for y in yes]
    if len({*kinds}) < 2 or not any(y.requires_grad for y in [*yes, *no]):
        return list(torch.cond(pred, lambda: _copy_tensors(true_fn()), lambda: _copy_tensors(false_fn())))
    parts = []
    for kind in (False, True):  # its backward takes no outputs of both kinds
        places = [k for k, other in enumerate(kinds) if other is kind]
        functions = [lambda f=f, places=places: _copy_tensors([f()[k] for k in places]) for f in (true_fn, false_fn)]
        parts.append(list(torch.cond(pred, *functions)))
    return [parts[kind].pop(0) for kind in kinds]


def op_switch(index, branches):
    if isinstance(index, int) or _is_readable(index):
        return branches[min(max(int(index), 0), len(branches) - 1)]()
    if len(branches) == 1:
        return branches[0]()
    return op_cond(index <= 0, branches[0], lambda: op_switch(index - 1, branches[1:]))


def op_while_loop(cond, body, xs, maximum_iterations):
    if torch.compiler.is_dynamo_compiling():
        if torch.is_grad_enabled() and any(x.requires_grad for x in [*xs, *body(*xs)]):
            from ..autodiff._untraced import run_loop  # imported here as `torch._dynamo` takes a second to import

            return run_loop(_loop_with_gradient, cond, body, xs, maximum_iterations)
        return _compiled_loop(cond, body, xs, maximum_iterations)
    start, steps = xs, 0
    while steps != maximum_iterations:
        going = cond(*xs)
        if _is_readable(going):
            if not going:
                break
            xs = body(*xs)
        elif going.is_meta:  # without values, the results have the shapes of the start
            break
        else:  # under vmap: run until all entries have ended
            if is_tracing():
                raise DependsOnValues(_UNTRACED)
            if not _internals.all_levels(going)[-1].any():
                break
            # an entry that has ended runs on from its start values, where the body works, so that it produces no NaN
            stepped = body(*[torch.where(going, x, first) for x, first in zip(xs, start, strict=True)])
            xs = [torch.where(going, y, x) for y, x in zip(stepped, xs, strict=True)]
        steps += 1
    if not steps:
        args.check_unchosen(lambda: body(*xs), run_without_values)
    return xs


def op_fori_loop(lower, upper, body, xs):
    if not (isinstance(lower, int) or (_is_readable(lower) and _is_readable(upper))):
        state = op_while_loop(
            lambda index, *xs: index < upper, lambda index, *xs: [index + 1, *body(index, *xs)], [lower, *xs], None
        )
        return state[1:]
    dtype = torch.int32 if isinstance(lower, int) else lower.dtype
    indices = range(int(lower), int(upper))
    for index in indices:
        xs = body(torch.scalar_tensor(index, dtype=dtype), *xs)
    if not indices:
        args.check_unchosen(lambda: body(torch.scalar_tensor(0, dtype=dtype), *xs), run_without_values)
    return xs


def op_scan(f, init, xs, length, reverse, unroll):
    columns = [x.unbind(0) for x in xs]
    carry, rows = init, []
    for k in range(length)[:: -1 if reverse else 1]:
        carry, ys = f(carry, [column[k] for column in columns])
        rows.append(ys)
    if not rows:
        ys = run_without_values(lambda: f(init, [x.new_zeros(x.shape[1:]) for x in xs])[1])
        return carry, [torch.zeros((0, *y.shape), dtype=y.dtype, device=y.device) for y in ys]
    return carry, [torch.stack(column) for column in zip(*rows[:: -1 if reverse else 1], strict=True)]


def run_without_values(function):
    """Return what a function would return, as tensors without values."""
    if torch.compiler.is_dynamo_compiling():  # tensors have no values there
        return function()
    with torch.no_grad(), _internals.without_values():
        return function()


def _is_readable(x):
    """Say whether Python can read the value of a tensor; raise in a trace, which is then abandoned."""
    if torch.compiler.is_dynamo_compiling() or x.is_meta or (are_transforms_active() and _internals.is_batched(x)):
        return False
    if is_tracing():
        raise DependsOnValues(_UNTRACED)
    return True


def _loop_with_gradient(cond, body, xs, maximum_iterations):
    """Run a loop so that its results have a gradient even where no step is taken: a loop around it looks at that."""
    ys = op_while_loop(cond, body, xs, maximum_iterations)
    if any(y.requires_grad for y in ys):
        return ys
    return [y.clone().requires_grad_() if is_inexact(y) else y for y in ys]


def _compiled_loop(cond, body, xs, maximum_iterations):
    if maximum_iterations is not None:
        state = _compiled_loop(
            lambda step, *xs: (step < maximum_iterations) & cond(*xs),
            lambda step, *xs: [step + 1, *body(*xs)],
            [torch.zeros((), dtype=torch.int64), *xs],
            None,
        )
        return state[1:]
    return list(_internals.while_loop(cond, lambda *xs: _copy_tensors(body(*xs)), _copy_tensors(xs)))


def _copy_tensors(xs):
    """Return tensors that share no memory with any other, as `torch.cond` and a compiled loop need them."""
    return tuple([x.clone() for x in xs])
