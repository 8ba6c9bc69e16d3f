"""The search for disagreements at the edges of every dtype.

The grid is values x dtypes x backends x ways to run: as one long array, what is no NaN and not huge alone (there native
kernels may do), entry by entry, in forward mode, under vmap, and compiled. What is documented is in `edge_known.py`.
"""

from __future__ import annotations

import collections
import functools
import itertools

import edge_complex
import ml_dtypes
import mpmath
import numpy as np
from edge_arrays import ARRAYS, TARGET, WEIGHTS, N, answers, rows_of
from edge_known import known
from edge_scalars import BEYOND, BINARY, INF, NAN, UNARY, size
from edge_special import QUOTIENTS, ROWS, SPECIAL
from mpmath import mp, mpf

import multiop
from multiop.frontends import activations, losses, normalization

ACTIVATIONS = {name for name in vars(activations) if name.startswith("op_")}
MASKED = ("op_softmax", "op_log_softmax", "op_logsumexp", "op_max")  # where masks put -inf
# these have the digits of a framework's kernel, and its answers at infinity
KERNELS = {name for module in (activations, losses, normalization) for name in vars(module)} - {*MASKED}

DTYPES = ("float16", "bfloat16", "float32", "float64")
WAYS = ("array", "moderate", "single", "jvp", "vmap", "jit")
LOSING = (
    "op_power",
    "op_divide_no_nan",
    "op_hypot",
    "op_heaviside",
    "op_fmax",
    "op_fmin",
)  # NaN to what another decides
mp.dps = 60


def finfo(dtype):
    return ml_dtypes.finfo(dtype)


def as_array(values, dtype):
    return np.array(values, np.float64).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def smallest(dtype):
    """Return the smallest number that does not count as zero; in 16 bits, subnormal numbers are kept."""
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


def moderate(rows, dtype):
    """Return which rows have no NaN and nothing huge in them, so that the sum of all is finite."""
    bound = float(finfo(dtype).max) ** 0.5
    return [k for k, row in enumerate(rows) if (np.abs(np.asarray(row, np.float64)) <= bound).all()]


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
        for k, x in enumerate(tensors):  # the others are constants: 0 times their slopes may be NaN
            alone = lambda x, k=k: fn(*tensors[:k], x, *tensors[k + 1 :])
            value, slope = multiop.jvp(alone, (x,), (ones,))
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
    return [*both(*tensors), fn(*tensors)]  # what is not tracked may have another path


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


def conditioned(fn):
    """Return how much `fn` changes where its arguments change by a part of themselves, for each unit of that part."""
    part = mpf(10) ** -20

    def changed(*xs):
        middle, total = fn(*xs), mpf(0)
        for k, x in enumerate(xs):
            y = guarded(fn, [*xs[:k], x * (1 + part), *xs[k + 1 :]])
            total += abs(y - middle) / part if y is not None and mpmath.isfinite(y) else 0
        return abs(middle) + total

    return changed


def scaled(entry):
    """Return the sizes of the numbers that a value, and its slopes, are found from, as functions of the arguments."""
    if entry.points:
        parts = [conditioned(part) for part in (entry.value, *entry.slopes)]
        beside = entry.scale or (lambda *xs: 0)
        return [parts[0], *(lambda *xs, part=part: part(*xs) + beside(*xs) for part in parts[1:])]
    at_operands = size if entry.op in ACTIVATIONS else None  # where the digits of a kernel are measured
    return [entry.near or at_operands, *[entry.scale or at_operands] * len(entry.slopes)]


def rows_for(entry, dtype):
    """Return the numbers, or pairs of numbers, at which an entry is compared."""
    if entry.points:
        return entry.points(dtype)
    if len(entry.slopes) == 1:
        return [[x] for x in grid(dtype) if entry.within is None or not abs(x) > entry.within]
    return [list(row) for row in itertools.product(few(dtype), repeat=2)]


def check_scalars(entries, report, backends, dtypes, ways):
    for entry in entries:
        arguments = len(entry.slopes)
        for dtype in dtypes:
            rows = rows_for(entry, dtype)
            if not rows:
                continue
            parts = (entry.value, *entry.slopes)
            expected = [[at(part, row) for row in rows] for part in parts]
            for k, row in enumerate(rows):
                settle(
                    entry, row, [part[k] for part in expected], lambda part, y, k=k: expected[part].__setitem__(k, y)
                )
            scales = [
                [(at(fn, row) or mpf(0)) if fn and all(map(np.isfinite, row)) else mpf(0) for row in rows]
                for fn in scaled(entry)
            ]
            columns = [as_array(column, dtype) for column in zip(*rows, strict=True)]
            for backend in backends:
                with multiop.use_backend(backend):
                    op = getattr(multiop, entry.op)
                    fn = functools.partial(*((entry.call, op) if entry.call else (op,)), **entry.options)
                    every = [multiop.op_convert_to_tensor(c) for c in columns]
                    for way in ways:
                        chosen, tensors = range(len(rows)), every
                        if way == "moderate":
                            chosen = moderate(rows, dtype)
                            tensors = [multiop.op_convert_to_tensor(c[chosen]) for c in columns]
                        try:
                            results = [multiop.op_convert_to_numpy(r) for r in runs(way, fn, tensors)]
                        except Exception as error:
                            report.add(
                                (entry.name, "raises", dtype, backend, way), f"{type(error).__name__}: {error}"[:200]
                            )
                            continue
                        for part, found in zip([*range(len(parts)), 0], results, strict=False):
                            what = "value" if part == 0 else f"gradient{part if arguments > 1 else ''}"
                            for k, y in zip(chosen, found.astype(np.float64), strict=True):
                                row, e, s = rows[k], expected[part][k], scales[part][k]
                                if part and overflows(expected[0][k], dtype):
                                    continue
                                report.compared += 1
                                ulps = entry.ulps + (
                                    entry.steep(*map(mpf, row)) if entry.steep and np.isfinite(row).all() else 0
                                )
                                if disagrees(y, e, s, dtype, ulps, entry.slack) and not known(entry.op, what, row):
                                    at_ = ", ".join(f"{x:.6g}" for x in row)
                                    told = f"({at_}) -> {y:.6g}, not {mpmath.nstr(e, 6)}"
                                    report.add((entry.name, what, dtype, backend, way), told)


def settle(entry, row, expected, put):
    """Take back what is not pinned: slopes where a value is NaN or an operand infinite, activations of infinities."""
    given = list(map(np.isnan, row))
    undefined = expected[0] is None or mpmath.isnan(expected[0])
    loses = entry.op in LOSING
    if entry.op in ("op_arctan2", "op_angle") and 0 in row:  # mpmath has no -0
        put(0, mpf(float(np.arctan2(*row) if len(row) > 1 else np.angle(row[0]))))
    if any(given) and loses:
        put(0, None)
    infinite = any(map(np.isinf, row))
    if infinite and entry.op in ACTIVATIONS:
        put(0, None)
    for part in range(1, len(expected)):
        if undefined or infinite:
            put(part, None)
        if any(x == 0 and np.signbit(x) for x in row) and expected[part] is not None and mpmath.isinf(expected[part]):
            put(part, None)  # the side of the pole is the sign of 0, which mpmath has not
    if any(x == 0 and np.signbit(x) for x in row) and expected[0] is not None and mpmath.isinf(expected[0]):
        put(0, None)


def overflows(y, dtype):
    """Say whether a finite value is infinite in `dtype`: there, no slope is pinned."""
    return y is not None and mpmath.isfinite(y) and abs(y) > float(finfo(dtype).max)


def rows_in(way, fn, x, weights):
    """Run a function of rows, and its derivatives, in one way; return the value, the gradient and the tangent."""

    def value_and_gradient(x):
        value, back = multiop.vjp(fn, x)
        shape = multiop.op_shape(value)
        along = weights[: shape[1]] if len(shape) > 1 else weights[0]
        (gradient,) = back(multiop.op_broadcast_to(along, shape))
        return value, gradient

    if way == "vmap":
        return [*multiop.vmap(lambda x: tuple(y[0] for y in value_and_gradient(x[None])))(x), None]
    if way == "jit":
        return [*multiop.jit(value_and_gradient)(x), None]
    if way == "jvp":
        value, tangent = multiop.jvp(fn, (x,), (multiop.op_broadcast_to(weights, multiop.op_shape(x)),))
        return [value, None, tangent]
    return [fn(x), value_and_gradient(x)[1], None]


def check_arrays(entries, report, backends, dtypes, ways):
    for entry in entries:
        for dtype in dtypes:
            rows, first = (entry.rows or rows_of)(dtype), {}
            with mp.workdps(450 if entry.unit else 1400):
                expected = [answers(entry, row, float(finfo(dtype).max)) for row in rows]
            for backend in backends:
                with multiop.use_backend(backend):
                    every = multiop.op_convert_to_tensor(rows)
                    fn = row_function(entry, dtype)
                    weights = multiop.op_cast(multiop.op_convert_to_tensor(np.array(WEIGHTS)), dtype)
                    for way in ways:
                        chosen, tensor = range(len(rows)), every
                        if way == "moderate":
                            chosen = moderate(rows, dtype)
                            tensor = multiop.op_convert_to_tensor(rows[chosen])
                        try:
                            results = [
                                None if r is None else multiop.op_convert_to_numpy(r).astype(np.float64)
                                for r in rows_in(way, fn, tensor, weights)
                            ]
                        except Exception as error:
                            told = f"{type(error).__name__}: {error}"[:200]
                            report.add((entry.name, "raises", dtype, backend, way), told)
                            continue
                        for part, what in enumerate(("value", "gradient", "tangent")):
                            if results[part] is None:
                                continue
                            others = first.setdefault(part, dict(zip(chosen, results[part], strict=True)))
                            for k, found in zip(chosen, map(np.atleast_1d, results[part]), strict=True):
                                row = rows[k]
                                if not is_pinned(entry.op, part, row):
                                    continue
                                report.compared += found.size
                                exact = expected[k] and expected[k][part]
                                like = np.atleast_1d(others.setdefault(k, found))
                                wrong = missed(found, exact, like, dtype)
                                if wrong is not None and not known(entry.op, what, row.astype(np.float64)):
                                    report.add((entry.name, what, dtype, backend, way), f"{row.tolist()} -> {wrong}")


def is_pinned(op, part, row):
    """Say whether the value of a row, part 0, or a derivative, is pinned: at -inf where masks meet it."""
    row = row.astype(np.float64)
    if np.isfinite(row).all():
        return True
    if part == 0:
        return op not in KERNELS
    return op in MASKED and not (np.isnan(row) | (row == np.inf)).any()


def row_function(entry, dtype):
    op = getattr(multiop, entry.op)
    if entry.call is not None:
        return lambda x: entry.call(op, x, **entry.options)
    if not entry.target:
        return lambda x: op(x, **entry.options)
    target = multiop.op_cast(multiop.op_convert_to_tensor(np.array(TARGET)), dtype)
    return lambda x: op(multiop.op_broadcast_to(target, multiop.op_shape(x)), x, **entry.options)


def missed(found, exact, like, dtype):
    """Say how the entries of a row differ from what is exact, or from another backend's where nothing is."""
    room = float(finfo(dtype).eps) * 8 * N
    if exact == "any":
        return None
    if exact is None:
        with np.errstate(all="ignore"):
            same = (found == like) | (np.isnan(found) & np.isnan(like))
            same |= np.abs(found - like) <= room * np.maximum(np.abs(like), 1)
        return None if same.all() else f"{found.tolist()}, and {like.tolist()} elsewhere"
    for y, e, scale in zip(found, *exact, strict=True):
        if disagrees(y, e, scale, dtype, 8 * N, 64):
            return f"{found.tolist()}, not {[mpmath.nstr(e, 6) for e in exact[0]]}"
    return None


def check_complex(ops, report, backends, ways):
    for op, dtype in itertools.product(ops, edge_complex.SIZES):
        z, long = edge_complex.points(op, dtype)
        value, slope = (part(long) for part in edge_complex.FUNCTIONS[op])
        for backend in backends:
            with multiop.use_backend(backend):
                for way in ways:
                    results = runs(way, getattr(multiop, op), [multiop.op_convert_to_tensor(z)])
                    for found, what in zip(results, ["value", "gradient"] * 2, strict=False):
                        found = multiop.op_convert_to_numpy(found)
                        exact = value if what == "value" else slope if way == "jvp" else np.conj(slope)
                        report.compared += found.size
                        for k in edge_complex.missed(found, exact, dtype):
                            report.add((op, what, dtype, backend, way), f"({z[k]}) -> {found[k]}, not {exact[k]}")


def search(ops, backends, dtypes=DTYPES, ways=WAYS):
    """Compare some ops, or all, and return a report."""
    report = Report()
    with np.errstate(all="ignore"):
        for entries in (UNARY, BINARY, SPECIAL, QUOTIENTS):
            chosen = [way for way in ways if entries is UNARY or way != "single"]
            check_scalars([entry for entry in entries if not ops or entry.op in ops], report, backends, dtypes, chosen)
        ways = [way for way in ways if way != "single"]
        check_arrays(
            [entry for entry in (*ARRAYS, *ROWS) if not ops or entry.op in ops], report, backends, dtypes, ways
        )
        ways = [way for way in ways if way != "moderate"]
        check_complex([op for op in edge_complex.FUNCTIONS if not ops or op in ops], report, backends, ways)
    return report
