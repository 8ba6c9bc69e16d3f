"""Pairs of ops, one after the other, compiled against the same two called by themselves.

A compiler rewrites what stands together: `not x < y` becomes `x >= y`, which differs for NaN; `x * 0` becomes 0. A
search of one op at a time cannot see it. Eager calls are what the other searches hold to many digits; so a compiled
pair must give an eager answer, of numbers that are at most a few units of the last place away.
"""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np
from edge_scalars import BINARY, UNARY

import multiop

# what may stand between, beside what eager calls compute: other last digits, and the other zero
MOVES = {f"{k:+}": lambda y, k=k: y * (1 + k * _eps(y)) for k in (1, -1, 4, -4)} | {"-0": lambda y: _signed(y, -0.0)}
MOVES["+0"] = lambda y: _signed(y, 0.0)
CONSTANTS = (0.0, 1.0, -1.0)
ALGEBRA = (
    "op_add",
    "op_subtract",
    "op_multiply",
    "op_divide",
    "op_power",
    "op_maximum",
    "op_minimum",
)  # what is simplified
COMPARISONS = ("op_equal", "op_not_equal", "op_less", "op_less_equal", "op_greater", "op_greater_equal")
PREDICATES = ("op_isnan", "op_isinf", "op_isfinite", "op_signbit", "op_isposinf", "op_isneginf")
REDUCTIONS = (
    *("op_sum", "op_prod", "op_mean", "op_max", "op_min", "op_argmax", "op_argmin", "op_any", "op_all"),
    *("op_logsumexp", "op_count_nonzero", "op_cumsum", "op_cumprod", "op_sort", "op_argsort", "op_softmax"),
)
ROWS = [[1.0, 2.0, 3.0], [-1.0, 0.5, -0.0], [np.nan, 1.0, 2.0], [np.inf, 1.0, -1.0], [-np.inf, np.nan, 0.0]]
ROWS += [[np.inf, -np.inf, 1.0], [0.0, -0.0, 0.0], [-np.inf] * 3, [np.nan] * 3, [1e30, 1e30, -1e30]]
SELDOM = ("op_erfinv", "op_i0", "op_cbrt")  # programs of their own, dozens of steps each


def numbers(dtype):
    """Return the numbers at which pairs are compared."""
    info = ml_dtypes.finfo(dtype)
    sizes = [1e-4, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 10.0, 100.0, float(info.max) ** 0.75, float(info.max)]
    signed = [-np.inf, *[-x for x in reversed(sizes)], -0.0, 0.0, *sizes, np.inf, np.nan]
    return np.array(signed, np.float64).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def inner():
    """Return the functions that stand first, by name: of one number, with a constant, and of a number with itself."""
    found = {}
    for entry in UNARY:
        if entry.op not in SELDOM:
            found[entry.name] = functools.partial(_one, entry.op, entry.options)
    for name in [entry.op for entry in BINARY] + list(COMPARISONS):
        found[f"{name}(x, x)"] = functools.partial(_self, name)
        for c in CONSTANTS if name in ALGEBRA + COMPARISONS else ():
            found[f"{name}(x, {c:g})"] = functools.partial(_with, name, c, False)
            found[f"{name}({c:g}, x)"] = functools.partial(_with, name, c, True)
    for name in PREDICATES:
        found[name] = functools.partial(_one, name, {})
    return found


def outer():
    """Return the functions that stand last: those of `inner`, and those of what came between and the number itself."""
    found = {name: functools.partial(_alone, f) for name, f in inner().items()}
    for name in [entry.op for entry in BINARY] + list(COMPARISONS):
        found[f"{name}(y, x)"] = functools.partial(_beside, name)
    for name in ("op_logical_not", "op_logical_and", "op_logical_or", "op_logical_xor"):
        found[name] = functools.partial(_logical, name)
    found["op_where(y, x, 0)"] = lambda y, x: multiop.op_where(y, x, multiop.op_zeros_like(x))
    found["op_where(y, 0, x)"] = lambda y, x: multiop.op_where(y, multiop.op_zeros_like(x), x)
    found["op_nan_to_num"] = lambda y, x: multiop.op_nan_to_num(y)
    for name in ("float16", "float64", "int32"):
        found[f"op_cast {name}"] = functools.partial(_cast, name)
    for name in REDUCTIONS:
        found[name] = functools.partial(_reduced, name)
    return found


def _one(name, options, x):
    return getattr(multiop, name)(x, **options)


def _self(name, x):
    return getattr(multiop, name)(x, x)


def _with(name, c, first, x):
    op = getattr(multiop, name)
    return op(c, x) if first else op(x, c)


def _alone(f, y, x):
    return f(y)


def _beside(name, y, x):
    return getattr(multiop, name)(y, x)


def _logical(name, y, x):
    op = getattr(multiop, name)
    return op(y) if name == "op_logical_not" else op(y, multiop.op_less(x, 1.0))


def _cast(name, y, x):
    return multiop.op_cast(multiop.op_where(multiop.op_isfinite(y), y, 0) if name == "int32" else y, name)


def _reduced(name, y, x):
    return getattr(multiop, name)(y, axis=-1)


def _eps(y):
    return float(ml_dtypes.finfo(multiop.op_dtype(y)).eps)


def _signed(y, zero):
    return multiop.op_where(multiop.op_equal(y, 0.0), multiop.op_cast(zero, multiop.op_dtype(y)), y)


def is_float(tensor):
    return multiop.op_dtype(tensor) in ("float16", "bfloat16", "float32", "float64")


def answers(f, g, x, sloped, move=None):
    """Return the value of `g(f(x), x)` and, if it is `sloped`, its gradient; `move` changes what is between."""

    def pair(x):
        y = f(x)
        return g(move(y) if move and is_float(y) else y, x)

    if not sloped:
        return [pair(x)]
    value, back = multiop.vjp(pair, x)
    if not is_float(value):
        return [value]
    (gradient,) = back(multiop.op_ones_like(value))
    return [value, gradient]


def fits(found, near, dtype):
    """Say for each entry whether it is among eager answers, or between them."""
    found, near = found.astype(np.float64), np.stack(near).astype(np.float64)
    with np.errstate(all="ignore"):
        same = (found == near).any(0) | (np.isnan(found) & np.isnan(near).any(0))
        low, high = np.fmin.reduce(near), np.fmax.reduce(near)
        room = 16 * float(ml_dtypes.finfo(dtype).eps) * np.maximum(np.abs(low), np.abs(high))
        return same | ((found >= low - room) & (found <= high + room))


def check(report, backends, dtypes, chosen=""):
    """Compare the pairs whose name has `chosen` in it; add what differs to the report.

    All are compared in their values; those of two ops of one number, in their gradients too.
    """
    first, last = inner(), outer()
    slopes = [entry.name for entry in UNARY if entry.op not in SELDOM]
    for dtype in dtypes:
        for backend in backends:
            with multiop.use_backend(backend):
                for sloped, names in ((False, list(last)), (True, slopes)):
                    for rows in (False, True):
                        ends = [name for name in names if (name in REDUCTIONS) == rows]
                        starts = slopes if sloped else list(first)
                        pairs = {f"{end} of {start}": (first[start], last[end]) for end in ends for start in starts}
                        pairs = {title: pair for title, pair in pairs.items() if chosen in title}
                        x = np.array(ROWS).astype(dtype) if rows else numbers(dtype)
                        for batch in batches(pairs, 400 if sloped else 4000):
                            compare(report, backend, dtype, batch, x, sloped)


def batches(pairs, size):
    titles = list(pairs)
    return [{title: pairs[title] for title in titles[k : k + size]} for k in range(0, len(titles), size)]


def compare(report, backend, dtype, pairs, x, sloped):
    """Compile pairs as one program, and add what differs from eager calls to the report."""
    x, eager = multiop.op_convert_to_tensor(x), {}
    for title, pair in pairs.items():
        try:
            eager[title] = list(map(multiop.op_convert_to_numpy, answers(*pair, x, sloped)))
        except (multiop.errors.MultiopError, TypeError, ValueError):
            continue  # not made for each other
    if not eager:
        return
    try:
        results = multiop.jit(lambda x: [answers(*pairs[title], x, sloped) for title in eager])(x)
    except Exception as error:
        report.add((next(iter(eager)), "raises", dtype, backend, "pairs"), f"{type(error).__name__}: {error}"[:300])
        return
    points = multiop.op_convert_to_numpy(x)
    for title, found in zip(eager, results, strict=True):
        found, near = list(map(multiop.op_convert_to_numpy, found)), [eager[title]]
        if not all(fits(y, [e], dtype).all() for y, e in zip(found, near[0], strict=True)):
            moved = [answers(*pairs[title], x, sloped, move) for move in MOVES.values()]
            near += [list(map(multiop.op_convert_to_numpy, one)) for one in moved]
        for k, what in enumerate(("value", "gradient")[: len(found)]):
            report.compared += found[k].size
            right = fits(found[k], [one[k] for one in near], dtype)
            for at in np.flatnonzero(~right.reshape(len(right), -1).all(1)):
                told = f"{points[at]} -> {found[k][at]}, not {near[0][k][at]}"
                report.add((title, what, dtype, backend, "pairs"), told)
