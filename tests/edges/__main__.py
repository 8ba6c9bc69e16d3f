"""Hold every elementwise op to a reference of high precision at the edges of every dtype: `nox -s edges`.

The grid is values x dtypes x backends x ways to run: as one long array, entry by entry, in forward mode, under vmap,
and compiled. It prints each class of disagreement (op, what, backend, way) with its first examples, and exits with 1
if there is any. What is documented is in `known.py`.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import sys
import warnings

import ml_dtypes
import mpmath
import numpy as np
from known import known
from mpmath import mp, mpf
from scalars import BEYOND, BINARY, INF, NAN, UNARY

import multiop

DTYPES = ("float16", "bfloat16", "float32", "float64")
WAYS = ("array", "single", "jvp", "vmap", "jit")
mp.dps = 60


def finfo(dtype):
    return ml_dtypes.finfo(dtype)


def as_array(values, dtype):
    return np.array(values, np.float64).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def smallest(dtype):
    """Return the smallest number that is no zero; in 16 bits, what is subnormal is kept."""
    info = finfo(dtype)
    return float(info.smallest_subnormal if dtype == "float16" else info.tiny)


def grid(dtype):
    """Return numbers of a dtype, without what is subnormal: that may be taken for 0."""
    info = finfo(dtype)
    tiny, largest, eps = float(info.tiny), float(info.max), float(info.eps)
    sizes = [tiny, 4 * tiny, tiny**0.5, tiny**0.5 / 4, tiny**0.75, eps / 8, eps, eps**0.5, 1e-4, 1e-3, 0.03, 0.1, 0.2]
    sizes += [
        0.25,
        0.5,
        0.7,
        0.9,
        1 - eps / 2,
        1,
        1 + eps,
        1.5,
        2,
        2.5,
        3,
        3.5,
        5,
        6,
        6.5,
        8,
        10,
        12,
        15,
        20,
        30,
        50,
        88,
        89,
        709.9,
    ]
    sizes += [
        90,
        100,
        150,
        200,
        300,
        656,
        700,
        1000,
        largest**0.5 / 4,
        largest**0.5,
        largest**0.75,
        largest / 4,
        largest,
    ]
    sizes += [
        10.0**k
        for k in (-300, -200, -150, -100, -38, -30, -20, -15, -10, -7, 5, 7, 10, 19, 20, 30, 38, 100, 160, 200, 300)
    ]
    found = {float(x) for x in as_array([x for x in sizes if tiny <= x <= largest], dtype).astype(np.float64)}
    found = sorted(found)
    return [-np.inf, *[-x for x in reversed(found)], -0.0, 0.0, *found, np.inf, np.nan]


def few(dtype):
    """Return a shorter grid, for pairs."""
    info = finfo(dtype)
    tiny, largest, eps = float(info.tiny), float(info.max), float(info.eps)
    sizes = [tiny, tiny**0.5, eps, 1e-4, 0.1, 0.5, 1, 1 + eps, 2, 3, 10, 300, 1000, largest**0.5, largest / 4, largest]
    found = sorted({float(x) for x in as_array(sizes, dtype).astype(np.float64)})
    return [-np.inf, *[-x for x in reversed(found)], -0.0, 0.0, *found, np.inf, np.nan]


def at(fn, xs):
    """Return `fn` of numbers, or its limit where some are infinite, or None where that is not found."""
    if any(np.isnan(x) for x in xs):
        return NAN
    xs = [mpf(x) for x in xs]
    if not any(mpmath.isinf(x) for x in xs):
        return guarded(fn, xs)
    if len(xs) > 1:
        return None
    near, far = (
        guarded(fn, [x if mpmath.isfinite(x) else (1 if x > 0 else -1) * n for x in xs]) for n in (BEYOND, BEYOND**2)
    )
    if near is None or far is None or mpmath.isnan(far):
        return far
    if mpmath.isinf(far) or (abs(far) > 1000 and abs(far) > abs(near) * mpf("1.2")):
        return INF if far > 0 else -INF
    return mpf(0) if abs(far) < mpf(10) ** -1000 else far


def guarded(fn, xs):
    try:
        y = fn(*xs)
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    return y if isinstance(y, mpf) else (mpf(y.real) if getattr(y, "imag", 0) == 0 else NAN)


def disagrees(found, expected, scale, dtype, ulps, slack):
    """Say whether a number is another than expected; `None` expects nothing."""
    if expected is None:
        return False
    info = finfo(dtype)
    found, largest = float(found), mpf(float(info.max))
    if mpmath.isnan(expected) or np.isnan(found):
        return bool(mpmath.isnan(expected)) != bool(np.isnan(found))
    room = mpf(float(info.eps)) * ulps
    if np.isinf(found):
        return not (abs(expected) > largest * (1 - room) and (expected > 0) == (found > 0))
    if abs(expected) > largest * (1 + room):
        return True
    return abs(mpf(found) - expected) > max(room * max(abs(expected), scale), mpf(smallest(dtype)) * slack)


def runs(way, fn, tensors):
    """Run an op and its derivatives in one way; return the value and one gradient for each argument, or None."""
    ones = multiop.op_ones_like(tensors[0])
    if way == "jvp":
        slopes = []
        zeros = multiop.op_zeros_like(tensors[0])
        for k in range(len(tensors)):
            value, slope = multiop.jvp(fn, tensors, tuple(ones if i == k else zeros for i in range(len(tensors))))
            slopes.append(slope)
        return [value, *slopes]

    def both(*xs):
        value, back = multiop.vjp(fn, *xs)
        slopes = back(multiop.op_ones_like(value))
        return [value, *slopes]

    if way == "vmap":
        return multiop.vmap(both)(*tensors)
    if way == "jit":
        return multiop.jit(both)(*tensors)
    if way == "single":
        parts = [both(*[t[k] for t in tensors]) for k in range(tensors[0].shape[0])]
        return [multiop.op_stack([multiop.op_cast(p[k], "float64") for p in parts]) for k in range(len(parts[0]))]
    value = fn(*tensors)  # what is not tracked may have another path
    return [value, *both(*tensors)]


class Report:
    """The disagreements, by class."""

    def __init__(self):
        self.classes = collections.defaultdict(list)
        self.compared = 0

    def add(self, key, text):
        self.classes[key].append(text)

    def show(self, examples):
        merged = collections.defaultdict(list)
        for (op, what, dtype, backend, way), found in self.classes.items():
            merged[op, what, backend, way].append((dtype, found))
        for (op, what, backend, way), parts in sorted(merged.items()):
            print(op, what, backend, way, *[f"{dtype}: {len(found)}" for dtype, found in parts], sep=", ")
            print("   ", "; ".join(parts[-1][1][:examples]))
        print(f"{self.compared} numbers compared, {len(self.classes)} classes of disagreement")


def check_scalars(entries, arguments, report, backends, dtypes, ways):
    for entry in entries:
        for dtype in dtypes:
            if arguments == 1:
                rows = [[x] for x in grid(dtype) if entry.within is None or not abs(x) > entry.within]
            else:
                values = few(dtype)
                rows = [[a, b] for a in values for b in values]
            parts = (entry.value, *entry.slopes)
            expected = [[at(part, row) for row in rows] for part in parts]
            for k, row in enumerate(rows):
                settle(
                    entry, row, [part[k] for part in expected], lambda part, y, k=k: expected[part].__setitem__(k, y)
                )
            scales = [
                [(at(fn, row) or mpf(0)) if fn and all(map(np.isfinite, row)) else mpf(0) for row in rows]
                for fn in (entry.near, *[entry.scale] * len(entry.slopes))
            ]
            columns = [as_array(column, dtype) for column in zip(*rows, strict=True)]
            for backend in backends:
                with multiop.use_backend(backend):
                    op = getattr(multiop, entry.op)
                    fn = lambda *xs, op=op, entry=entry: op(*xs, **entry.options)
                    tensors = [multiop.op_convert_to_tensor(c) for c in columns]
                    for way in ways:
                        try:
                            results = [multiop.op_convert_to_numpy(r) for r in runs(way, fn, tensors)]
                        except Exception as error:
                            report.add(
                                (entry.name, "raises", dtype, backend, way), f"{type(error).__name__}: {error}"[:200]
                            )
                            continue
                        wanted = range(len(parts)) if len(results) == len(parts) else [0, *range(len(parts))]
                        for part, found in zip(wanted, results, strict=True):
                            what = "value" if part == 0 else f"gradient{part if arguments > 1 else ''}"
                            for row, y, e, s in zip(
                                rows, found.astype(np.float64), expected[part], scales[part], strict=True
                            ):
                                report.compared += 1
                                ulps = entry.ulps + (
                                    entry.steep(*map(mpf, row)) if entry.steep and np.isfinite(row).all() else 0
                                )
                                if disagrees(y, e, s, dtype, ulps, entry.slack) and not known(entry.op, what, row):
                                    at_ = ", ".join(f"{x:.6g}" for x in row)
                                    told = f"({at_}) -> {y:.6g}, not {mpmath.nstr(e, 6)}"
                                    report.add((entry.name, what, dtype, backend, way), told)


def settle(entry, row, expected, put):
    """Take back what no document says: derivatives where a value is NaN, and pairs with an infinity."""
    given = list(map(np.isnan, row))
    undefined = expected[0] is None or mpmath.isnan(expected[0])
    loses = entry.op in ("op_power", "op_divide_no_nan", "op_hypot")  # another operand decides
    if entry.op in ("op_arctan2", "op_angle") and 0 in row:  # mpmath has no -0
        put(0, mpf(float(np.arctan2(*row) if len(row) > 1 else np.angle(row[0]))))
    if any(given) and loses:
        put(0, None)
    for part in range(1, len(expected)):
        if undefined:
            put(part, NAN if entry.spreads and given[part - 1] else None)
        if any(x == 0 and np.signbit(x) for x in row) and expected[part] is not None and mpmath.isinf(expected[part]):
            put(part, None)  # the side of the pole is the sign of 0, which mpmath has not
    if any(x == 0 and np.signbit(x) for x in row) and expected[0] is not None and mpmath.isinf(expected[0]):
        put(0, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default="", help="names of ops, with commas")
    parser.add_argument("--backends", default="torch,jax,tensorflow")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--examples", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    backends = options.backends.split(",")
    for backend in sorted(options.backends.split(","), reverse=True):  # torch before TensorFlow, in one process
        importlib.import_module(backend)
    multiop.set_backend(backends[0])
    multiop.enable_x64()
    chosen = set(filter(None, options.ops.split(",")))
    backends, dtypes, ways = (x.split(",") for x in (options.backends, options.dtypes, options.ways))
    report = Report()
    for entries, arguments in ((UNARY, 1), (BINARY, 2)):
        entries = [entry for entry in entries if not chosen or entry.op in chosen]
        slow = [way for way in ways if arguments == 1 or way != "single"]
        with np.errstate(all="ignore"):
            check_scalars(entries, arguments, report, backends, dtypes, slow)
    report.show(options.examples)
    sys.exit(1 if report.classes else 0)


if __name__ == "__main__":
    main()
