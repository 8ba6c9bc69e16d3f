"""Reductions, normalizations, softmax and losses of rows, as mpmath computes them: what the grid is compared with.

Derivatives are difference quotients of many digits. A row without a reference is compared between backends and ways.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from mpmath import mp, mpf

import multiop


@dataclasses.dataclass(frozen=True)
class Array:
    """A function of rows; `value` takes the entries of one as a list, and returns the results as a list."""

    op: str
    value: Callable[..., Any] | None
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    target: bool = False  # whether a target stands before the row
    unit: bool = False  # whether the function knows sizes, such as that of 1
    cancels: str = (
        ""  # "slopes", where these are differences of numbers near 1, "all" where results are of entries, too
    )
    call: Callable[..., Any] | None = None  # calls the op with what it wants beside a tensor of rows
    ties: bool = True  # whether derivatives are compared where entries are equal
    rows: Callable[..., Any] | None = None  # the rows of a dtype, if they are not those of all
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or self.op + "".join(f", {k}={v}" for k, v in self.options.items() if k != "axis")


N, ONE = 8, mpf(1)
WEIGHTS = [1.0, 2.0, -1.0, 0.5, 3.0, -2.0, 1.5, 4.0]
TARGET = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def rows_of(dtype):
    """Return rows of numbers of a dtype: what is equal, vanishing, huge, mixed, or no number."""
    info = ml_dtypes.finfo(dtype)
    tiny, largest, eps = float(info.tiny), float(info.max), float(info.eps)
    ramp = np.arange(1.0, N + 1)
    inf, nan = np.inf, np.nan
    rows = [
        np.zeros(N),
        np.ones(N),
        np.full(N, 0.1),
        np.full(N, largest / 16),
        ramp,
        ramp - 4.5,
        ramp * 0.1,
        ramp * 4 * tiny,
        ramp * tiny**0.5,
        ramp * tiny**0.25,
        (ramp - 4.5) * largest**0.5 / 8,
        (ramp - 4.5) * largest**0.25,
        (ramp - 4.5) * largest / 64,
        ramp * largest / 64,
        1 + eps * ramp,
        1000 + ramp,
        300.0 * (-1) ** ramp,
        (ramp - 4.5) * 20,
        np.array([largest / 16, 1, tiny * 4, 0, -1, -largest / 16, 0.5, eps]),
        np.array([0.0, 1, 2, 3, -1, -2, 0.5, 7]),
        np.array([0.0, 1, 2, 0, -1, -2, 0.5, 7]),
        np.array([2.0, 2, 1, 0.5, -1, -1, 0.25, 1.5]),
        np.array([inf, 1, 2, 3, -1, -2, 0.5, 7]),
        np.array([-inf, 1, 2, 3, -1, -2, 0.5, 7]),
        np.array([inf, 1, inf, 3, -1, -2, 0.5, 7]),
        np.array([inf, 1, -inf, 3, -1, -2, 0.5, 7]),
        np.full(N, -inf),
        np.array([nan, 1, 2, 3, -1, -2, 0.5, 7]),
    ]
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return np.array(rows).astype(kind)


def default(op, name):
    found = inspect.signature(getattr(multiop, op)).parameters[name].default
    return mpf(1e-7 if found is None else found)


def mean(xs):
    return mp.fsum(xs) / len(xs)


def variance(xs):
    middle = mean(xs)
    return mean([(x - middle) ** 2 for x in xs])


def logsumexp(xs):
    top = max(xs)
    return top + mp.log(mp.fsum(mp.exp(max(x - top, mpf(-(10**6)))) for x in xs))


def softmax(xs):
    total = logsumexp(xs)
    return [mp.exp(max(x - total, mpf(-(10**6)))) for x in xs]


def length(xs):
    return mp.sqrt(mp.fsum(x * x for x in xs))


def so_far(step):
    def found(xs):
        results = xs[:1]
        for x in xs[1:]:
            results.append(step(results[-1], x))
        return results

    return found


def layer(xs):
    middle, root = mean(xs), mp.sqrt(variance(xs) + default("op_layer_normalization", "epsilon"))
    return [(x - middle) / root for x in xs]


def rms(xs):
    root = mp.sqrt(mean([x * x for x in xs]) + default("op_rms_normalization", "epsilon"))
    return [x / root for x in xs]


def normalized(xs):
    size = max(length(xs), default("op_normalize", "epsilon"))
    return [x / size for x in xs]


def gated(xs):
    half = len(xs) // 2
    return [x / (1 + mp.exp(min(-gate, mpf(10**6)))) for x, gate in zip(xs[:half], xs[half:], strict=True)]


def softplus(x):
    return max(x, mpf(0)) + mp.log1p(mp.exp(max(-abs(x), mpf(-(10**6)))))


def batch(xs):
    root = mp.sqrt(mpf(VARIANCE) + mpf(0.25))
    return [(x - mpf(m)) / root for x, m in zip(xs, WEIGHTS, strict=True)]


def in_batch(op, x, **options):
    means = multiop.op_cast(multiop.op_convert_to_tensor(np.array(WEIGHTS)), multiop.op_dtype(x))
    return op(x, means, multiop.op_full_like(means, VARIANCE), **options)


def of_class_1(op, x, **options):
    return op(multiop.op_full(multiop.op_shape(x)[:-1], 1, "int32"), x, **options)


def one_label(op, x):
    """Call `op` for rows that are the logits of 4 classes in 2 steps, and the label 1."""
    lead = multiop.op_shape(x)[:-1]
    label, length, steps = (multiop.op_full((*lead, *more), n, "int32") for more, n in (((1,), 1), ((), 1), ((), 2)))
    return op(label, multiop.op_reshape(x, (*lead, 2, 4)), length, steps)


def aligned(xs):
    first, second = ([x - logsumexp(step) for x in step] for step in (xs[:4], xs[4:]))
    return [-logsumexp([first[1] + second[1], first[1] + second[0], first[0] + second[1]])]


def middle(xs):
    low, high = sorted(xs)[len(xs) // 2 - 1 :][:2]
    return (low + high) / 2


VARIANCE = 2.0
LAST = {"axis": -1}
ARRAYS = [
    Array("op_sum", lambda xs: [mp.fsum(xs)], LAST),
    Array("op_prod", lambda xs: [mp.fprod(xs)], LAST),
    Array("op_mean", lambda xs: [mean(xs)], LAST),
    Array("op_var", lambda xs: [variance(xs)], LAST),
    Array("op_std", lambda xs: [mp.sqrt(variance(xs))], LAST),
    Array("op_max", lambda xs: [max(xs)], LAST, ties=False),
    Array("op_min", lambda xs: [min(xs)], LAST, ties=False),
    Array("op_logsumexp", lambda xs: [logsumexp(xs)], LAST, unit=True),
    Array("op_norm", lambda xs: [length(xs)], LAST),
    Array("op_norm", lambda xs: [mp.fsum(map(abs, xs))], LAST | {"ord": 1}, ties=False),
    Array("op_norm", lambda xs: [max(map(abs, xs))], LAST | {"ord": np.inf}, ties=False),
    Array("op_cumsum", so_far(lambda a, b: a + b), LAST),
    Array("op_cumprod", so_far(lambda a, b: a * b), LAST),
    Array("op_diff", lambda xs: [b - a for a, b in itertools.pairwise(xs)], LAST),
    Array("op_ptp", lambda xs: [max(xs) - min(xs)], LAST, ties=False),
    Array("op_softmax", softmax, LAST, unit=True, cancels="slopes"),
    Array("op_log_softmax", lambda xs: [x - logsumexp(xs) for x in xs], LAST, unit=True, cancels="all"),
    Array("op_sparsemax", None, LAST),
    Array("op_glu", gated, LAST, unit=True, cancels="slopes"),
    Array("op_normalize", normalized, LAST, unit=True),
    Array("op_layer_normalization", layer, LAST, unit=True),
    Array("op_rms_normalization", rms, LAST, unit=True),
    Array("op_batch_normalization", batch, LAST | {"epsilon": 0.25}, call=in_batch, cancels="all"),
    Array("op_average", lambda xs: [mean(xs)], LAST),
    Array("op_nansum", lambda xs: [mp.fsum(xs)], LAST),
    Array("op_nanprod", lambda xs: [mp.fprod(xs)], LAST),
    Array("op_nanmean", lambda xs: [mean(xs)], LAST),
    Array("op_nanvar", lambda xs: [variance(xs)], LAST),
    Array("op_nanstd", lambda xs: [mp.sqrt(variance(xs))], LAST),
    Array("op_nanmax", lambda xs: [max(xs)], LAST, ties=False),
    Array("op_nanmin", lambda xs: [min(xs)], LAST, ties=False),
    Array("op_nancumsum", so_far(lambda a, b: a + b), LAST),
    Array("op_nancumprod", so_far(lambda a, b: a * b), LAST),
    Array("op_median", lambda xs: [middle(xs)], LAST, ties=False),
    Array("op_nanmedian", lambda xs: [middle(xs)], LAST, ties=False),
    Array("op_sparse_categorical_crossentropy", None, LAST, call=of_class_1),
    Array(
        "op_sparse_categorical_crossentropy",
        lambda xs: [logsumexp(xs) - xs[1]],
        LAST | {"from_logits": True},
        call=of_class_1,
        unit=True,
        cancels="all",
    ),
    Array("op_ctc_loss", aligned, call=one_label, unit=True, cancels="all"),
    Array("op_binary_crossentropy", None, target=True),
    Array(
        "op_binary_crossentropy",
        lambda xs: [softplus(x) - x * mpf(t) for x, t in zip(xs, TARGET, strict=True)],
        {"from_logits": True},
        target=True,
        unit=True,
        cancels="all",
    ),
    Array("op_categorical_crossentropy", None, LAST, target=True),
    Array(
        "op_categorical_crossentropy",
        lambda xs: [logsumexp(xs) - xs[1]],
        LAST | {"from_logits": True},
        target=True,
        unit=True,
        cancels="all",
    ),
]


def answers(entry, xs, largest):
    """Return the value, the gradient and the tangent of a row, each with the size of its rounding errors, or None."""
    xs = [float(x) for x in xs]
    if entry.value is None or not np.isfinite(xs).all():
        return None
    xs = list(map(mpf, xs))
    step = mpf(10) ** -65 if entry.unit else min((abs(x) for x in xs if x), default=ONE) * mpf(10) ** -380

    def moved(xs, k, by):
        return [*xs[:k], xs[k] + by, *xs[k + 1 :]]

    def weighted(xs):
        return mp.fsum(mpf(w) * y for w, y in zip(WEIGHTS, entry.value(xs), strict=False))

    def gradient(xs):
        return [(weighted(moved(xs, k, step)) - weighted(moved(xs, k, -step))) / (2 * step) for k in range(len(xs))]

    def tangent(xs):
        up, down = ([x + sign * step * mpf(w) for x, w in zip(xs, WEIGHTS, strict=True)] for sign in (1, -1))
        return [(a - b) / (2 * step) for a, b in zip(entry.value(up), entry.value(down), strict=True)]

    def sized(fn, floor):
        middle, relative = fn(xs), mpf(10) ** -10
        sizes = [floor] * len(middle)
        for k, x in enumerate(xs):
            changed = fn(moved(xs, k, x * relative))
            sizes = [s + abs(b - a) / relative for s, a, b in zip(sizes, middle, changed, strict=True)]
        return middle, sizes

    floor = ONE if entry.cancels else mpf(0)
    kinks = len({abs(x) for x in xs}) < len(xs) or 0 in xs
    derivatives = [None, None] if kinks and not entry.ties else [sized(gradient, floor), sized(tangent, floor)]
    found = sized(entry.value, max(map(abs, xs)) if entry.cancels == "all" else 0)
    beyond = any(abs(y) > largest for y in found[0])  # where the value overflows, its derivatives may be anything
    return [found, *(["any", "any"] if beyond else derivatives)]
