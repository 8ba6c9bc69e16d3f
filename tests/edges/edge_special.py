"""Special functions, quotients, polynomials and interpolation, as mpmath computes them.

Special functions have points of their own: where they are defined, with what vanishes and what is large. What rounding
an argument changes is no error of the function; derivatives with respect to an order are quotients of many digits.
"""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
from edge_arrays import Array, rows_of, softmax
from edge_scalars import INF, NAN, Scalar, erfinv, normal, over
from mpmath import mp, mpf

import multiop

SIDE = (0.1, 0.5, 1.0, 1.5, 2.0, 3.75, 10.0, 30.0)
ORDERS = (0.0, 1.0, 2.0, 0.5, 2.25, 7.0, -1.0, -2.5)


def sizes(dtype, *more):
    """Return positive numbers of a dtype, from what nearly vanishes to what is large."""
    info = ml_dtypes.finfo(dtype)
    tiny, largest, eps = float(info.tiny), float(info.max), float(info.eps)
    found = [4 * tiny, tiny**0.5, eps / 8, eps**0.5, 1e-3, *SIDE, 100.0, 700.0, 1e4, *more, largest**0.75, largest / 4]
    return rounded(found, dtype)


def rounded(values, dtype):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    found = np.array(values, np.float64).astype(kind).astype(np.float64)
    return sorted({float(x) for x in found if np.isfinite(x)})


def rows(*columns):
    """Return how to find the rows of a dtype: all pairs, triples, of what each column has."""
    return lambda dtype: [list(row) for row in itertools.product(*(column(dtype) for column in columns))]


def of(*values):
    return lambda dtype: rounded(values, dtype)


def up_to(most, *more):
    return lambda dtype: [x for x in sizes(dtype, *more) if x <= most]


def signed(most, *more):
    return lambda dtype: [sign * x for x in sizes(dtype, *more) if x <= most for sign in (-1.0, 1.0)]


def between(dtype):
    """Return numbers from 0 to 1."""
    info = ml_dtypes.finfo(dtype)
    eps = float(info.eps)
    found = [4 * float(info.tiny), float(info.tiny) ** 0.5, eps, 1e-3, 0.1, 0.25, 0.45, 0.5, 0.6, 0.75, 0.9, 0.99]
    return rounded([*found, 1 - eps, 1 - eps / 2], dtype)


def poles(fn, at_pole=NAN):
    """Return `fn`, with what it has at 0 and negative whole numbers."""
    return lambda x: at_pole if x <= 0 and x == mp.floor(x) else fn(x)


def lgamma(x):
    return mp.re(mp.loggamma(x)) if x > 0 else mp.log(abs(mp.gamma(x)))


def in_order(fn):
    """Return the derivative in the first argument, by a quotient of many digits."""
    return lambda v, *xs: mp.diff(lambda v: fn(v, *xs), v)


def bell(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi) if abs(x) < 10**6 else mpf(0)


def erfcx(x):
    if x > 10**4:
        return (1 - 1 / (2 * x * x) + 3 / (4 * x**4) - 15 / (8 * x**6)) / (x * mp.sqrt(mp.pi))
    return mp.exp(x * x) * mp.erfc(x)


def erfcinv(x):
    """Return the inverse of erfc, of which mpmath has no digits where x is small."""
    if x >= mpf("0.1"):
        return erfinv(1 - x)
    return mp.findroot(lambda y: mp.log(mp.erfc(y)) - mp.log(x), mp.sqrt(-mp.log(x * mp.sqrt(-mp.log(x)) * 2)))


def log_ndtr(x):
    if x < -(10**4):
        return -x * x / 2 - mp.log(-x) - mp.log(2 * mp.pi) / 2 + mp.log1p(-1 / (x * x))
    return mp.log(normal(x)) if x < 0 else mp.log1p(-normal(-x))


def hazard(x):
    """Return the slope of the logarithm of the normal distribution."""
    return -x * (1 + 1 / (x * x)) if x < -(10**4) else bell(x) / normal(x)


def ndtri(p):
    return -mp.sqrt(2) * erfcinv(2 * p) if p < HALF else mp.sqrt(2) * erfcinv(2 * (1 - p))


def xlog(fn):
    return lambda x, y: mpf(0) if x == 0 else x * fn(y)


HALF = mpf("0.5")


def gammainc(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def gammaincc(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def gammainc_slope(a, x):
    """Return the slope in the order, from the smaller function of the two: beside 1, digits are lost."""
    return in_order(gammainc)(a, x) if x <= a else -in_order(gammaincc)(a, x)


def gamma_density(a, x):
    return mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def betainc(a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


def betainc_slope(k):
    """Return the slope in the k-th parameter, from the smaller function of the two: beside 1, digits are lost."""

    def slope(*abx):
        a, b, x = abx
        low, high, sign = (0, x, 1) if x * (a + b) <= a else (x, 1, -1)

        def smaller(y):
            return mp.betainc(*(y if j == k else abx[j] for j in (0, 1)), low, high, regularized=True)

        return sign * mp.diff(smaller, abx[k])

    return slope


def beta_density(a, b, x):
    return mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - betaln(a, b))


def betaln(a, b):
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def betaln_slope(a, b):
    with mp.workdps(60 if b > a * mpf(10) ** -30 else 700):  # which cancel
        return mp.psi(0, a) - mp.psi(0, a + b)


def zeta(x, q):
    """Return zeta, of which mpmath's digits are those of the sum from 1."""
    with mp.workdps(mp.dps + (int(x * mp.log10(q)) if 1 < q < mp.inf else 0)):
        return mp.zeta(x, q)


def besseli(v, x):
    return mp.besseli(abs(v) if v == int(v) else v, x)  # a whole negative order of a small number takes minutes


def besseli_slope(v, x):
    return (besseli(v - 1, x) + besseli(v + 1, x)) / 2


def ive(v, x):
    return besseli(v, x) * mp.exp(-abs(x))


def kve(v, x):
    return mp.besselk(v, x) * mp.exp(x)


def besselk_slope(v, x):
    return -(mp.besselk(v - 1, x) + mp.besselk(v + 1, x)) / 2


def two(op, value, first, second, points, **others):
    return Scalar(op, value, (first, second), points=points, **others)


def one(op, value, slope, points, **others):
    return Scalar(op, value, (slope,), points=rows(points), **others)


def bessel(op, value, slope, **others):
    return two(op, value, in_order(value), slope, rows(of(*ORDERS), up_to(700.0, 300.0)), **others)


def around(dtype):
    """Return numbers of both signs, with what stands between the poles of the gamma function."""
    return [*signed(1e4)(dtype), *of(-1.25, -2.75, -10.25, -30.5)(dtype), *up_to(mpf("inf"))(dtype)]


def polygamma(n):
    return one(
        "op_polygamma",
        poles(lambda x: mp.psi(n, x)),
        poles(lambda x: mp.psi(n + 1, x)),
        (lambda dtype: [x for x in around(dtype) if x > 0 or x != int(x)]) if n < 2 else up_to(1e4),
        call=lambda op, x: op(n, x),
        title=f"op_polygamma, n={n}",
    )


def multigammaln(p):
    def total(fn):
        return lambda x: mp.fsum(fn(x - mpf(k) / 2) for k in range(p))

    constant = mpf(p * (p - 1)) / 4
    return one(
        "op_multigammaln",
        lambda x: constant * mp.log(mp.pi) + total(mp.loggamma)(x),
        total(lambda x: mp.psi(0, x)),
        lambda dtype: [x for x in sizes(dtype, 1.25) if x > (p - 1) / 2],
        options={"p": p},
    )


SPECIAL = [
    one("op_lgamma", poles(lgamma, INF), poles(lambda x: mp.psi(0, x)), around),
    one(
        "op_gamma",
        poles(mp.gamma),
        poles(lambda x: mp.gamma(x) * mp.psi(0, x)),
        lambda dtype: [x for x in around(dtype) if abs(x) < 1e5],
    ),
    one("op_digamma", poles(lambda x: mp.psi(0, x)), poles(lambda x: mp.psi(1, x)), around),
    *map(polygamma, (0, 1, 2, 5)),
    *map(multigammaln, (1, 3)),
    one("op_erfcx", erfcx, lambda x: erfcx_slope(x), lambda dtype: [x for x in signed(mpf("inf"))(dtype) if x > -30]),
    one(
        "op_erfcinv",
        erfcinv,
        lambda x: -mp.sqrt(mp.pi) / 2 * mp.exp(erfcinv(x) ** 2),
        lambda dtype: [*between(dtype), *(2 - x for x in between(dtype) if 0.09 < x < 0.95)],
    ),
    one("op_ndtr", normal, bell, signed(mpf("inf"), 5.0, 12.0)),
    one("op_log_ndtr", log_ndtr, hazard, signed(mpf("inf"), 5.0, 12.0, 20.0)),
    one("op_ndtri", ndtri, lambda p: 1 / bell(ndtri(p)), between),
    one("op_logit", lambda x: mp.log(x) - mp.log1p(-x), lambda x: 1 / (x * (1 - x)), between),
    one("op_entr", lambda x: -x * mp.log(x), lambda x: -mp.log(x) - 1, up_to(mpf("inf"))),
    two("op_xlogy", xlog(mp.log), lambda x, y: mp.log(y), over, rows(signed(1e4), up_to(mpf("inf")))),
    two(
        "op_xlog1py",
        xlog(mp.log1p),
        lambda x, y: mp.log1p(y),
        lambda x, y: over(x, 1 + y),
        rows(signed(1e4), lambda dtype: [*up_to(mpf("inf"))(dtype), *of(-0.5, -0.9, -0.001)(dtype)]),
    ),
    two(
        "op_rel_entr",
        lambda x, y: x * mp.log(x / y),
        lambda x, y: mp.log(x / y) + 1,
        lambda x, y: -x / y,
        rows(up_to(mpf("inf")), up_to(mpf("inf"))),
    ),
    two(
        "op_kl_div",
        lambda x, y: x * mp.log(x / y) - x + y,
        lambda x, y: mp.log(x / y),
        lambda x, y: 1 - x / y,
        rows(up_to(mpf("inf")), up_to(mpf("inf"))),
    ),
    two("op_betaln", betaln, betaln_slope, lambda a, b: betaln_slope(b, a), rows(up_to(1e4), up_to(1e4))),
    two(
        "op_beta",
        lambda a, b: mp.exp(betaln(a, b)),
        lambda a, b: mp.exp(betaln(a, b)) * betaln_slope(a, b),
        lambda a, b: mp.exp(betaln(a, b)) * betaln_slope(b, a),
        rows(up_to(1e4), up_to(1e4)),
        ulps=128,  # slopes are differences of digamma functions
        steep=lambda a, b: abs(betaln(a, b)),
    ),
    two("op_gammainc", gammainc, gammainc_slope, gamma_density, rows(of(*SIDE, 100.0), up_to(1e4)), slack=64),
    two(
        "op_gammaincc",
        gammaincc,
        lambda a, x: -gammainc_slope(a, x),
        lambda a, x: -gamma_density(a, x),
        rows(of(*SIDE, 100.0), up_to(1e4)),
        slack=64,  # terms that vanish before their sum does
    ),
    Scalar(
        "op_betainc",
        betainc,
        (betainc_slope(0), betainc_slope(1), beta_density),
        points=rows(of(0.1, 1.0, 3.75, 30.0), of(0.5, 1.0, 2.0, 30.0), between),
    ),
    two(
        "op_zeta",
        zeta,
        in_order(zeta),
        lambda x, q: -x * zeta(x + 1, q),
        rows(of(1.125, 1.5, 2.0, 3.75, 10.0, 30.0), up_to(1e4)),
    ),
    bessel("op_jv", mp.besselj, lambda v, x: mp.besselj(v, x, 1)),
    bessel("op_yv", mp.bessely, lambda v, x: mp.bessely(v, x, 1)),
    bessel("op_iv", besseli, besseli_slope, scale=besseli),  # docs/limits.md: some slopes have the digits of the value
    bessel("op_ive", ive, lambda v, x: mp.exp(-x) * besseli_slope(v, x) - ive(v, x), scale=ive),
    bessel("op_kv", mp.besselk, besselk_slope),
    bessel("op_kve", kve, lambda v, x: mp.exp(x) * besselk_slope(v, x) + kve(v, x)),
]


def erfcx_slope(x):
    if x > 10**4:
        return -(1 - 3 / (2 * x * x) + 15 / (4 * x**4)) / (x * x * mp.sqrt(mp.pi))
    return 2 * x * erfcx(x) - 2 / mp.sqrt(mp.pi)


def by(op, divisor, round_=None):
    """Return a quotient, or what is left of one, by a constant that a compiler may replace by its reciprocal."""
    value, slope = {
        "op_divide": (lambda x: x / divisor, lambda x: 1 / mpf(divisor)),
        "op_floor_divide": (lambda x: mp.floor(x / mpf(divisor)), lambda x: mpf(0)),
        "op_mod": (lambda x: x - divisor * mp.floor(x / mpf(divisor)), lambda x: mpf(1)),
    }[op]

    def points(dtype):
        info, found = ml_dtypes.finfo(dtype), np.array(divisor)
        if divisor > float(info.max) or 4 / divisor > float(info.max):
            return []
        (exact,) = rounded([divisor], dtype)
        multiples = rounded([divisor * k for k in (0.5, 1, 2, 3, 49, 0.25) if divisor * k < float(info.max)], dtype)
        both = [*multiples, *signed(mpf("inf"))(dtype)]
        return [[x] for x in both] if exact == float(found) else []

    return Scalar(
        op, value, (slope,), points=points, call=lambda op, x: op(x, divisor), title=f"{op}, by {divisor:.6g}"
    )


def by_largest(op, xs):
    return op(xs, multiop.op_max(xs, axis=-1, keepdims=True))


def by_sum(op, xs):
    powers = multiop.op_exp(xs - multiop.op_max(xs, axis=-1, keepdims=True))
    return op(powers, multiop.op_sum(powers, axis=-1, keepdims=True))


def positive(dtype):
    """Return rows of positive numbers, with what is as large as the dtype allows."""
    found = rows_of(dtype)
    return found[[k for k, row in enumerate(found.astype(np.float64)) if (row > 0).all() and np.isfinite(row).all()]]


CONSTANTS = (3.0, 49.0, 2.0**-12, 2.0**15, 2.0**127, 1.5 * 2.0**126, 2.0**1023, 1.5 * 2.0**1022)
QUOTIENTS = [
    *(by(op, divisor) for op in ("op_divide", "op_floor_divide", "op_mod") for divisor in CONSTANTS),
]
# ---- of rows
POINTS, KNOTS = (0.5, 1.0, 1.5, 3.0, 6.25, 8.0, 9.0, 4.0), tuple(range(1, 9))
BETWEEN = (0.375, 1.3125, 2.625, 5.75, 7.25, 9.5, 100.0, 0.0)  # no knots of `increasing`
HEIGHTS = (1.0, -2.0, 4.0, 4.0, 0.25, 7.0, -1.0, 3.0)


def polynomial(xs):
    total = mpf(0)
    for c in xs[:-1]:
        total = total * xs[-1] + c
    return [total]


def interpolated(x, knots, heights):
    if x <= knots[0]:
        return heights[0]
    if x >= knots[-1]:
        return heights[-1]
    k = max(k for k, knot in enumerate(knots) if knot <= x)
    part = (x - knots[k]) / (knots[k + 1] - knots[k])
    return heights[k] * (1 - part) + heights[k + 1] * part


def beside_overflow(dtype):
    """Return rows of coefficients and a number, beside powers that overflow or vanish."""
    largest, tiny = float(ml_dtypes.finfo(dtype).max), float(ml_dtypes.finfo(dtype).tiny)
    extra = [
        [0, 0, 0, 4 / largest, 0, 0, 1, largest**0.5],
        [0, 0, 0, 0, 0, 3, 1, largest**0.75],
        [0, 0, 0, 0, 2, 1, 1, -(largest**0.25)],
        [1, 0, 0, 0, 0, 0, 1, tiny**0.5],
        [1, 2, 3, 4, 5, 6, 7, 0],
        [largest / 4, 0, 0, 0, 0, 0, 1, 0.25],
        [0, 0, 0, 0, 0, 0, 5, largest / 4],
        [1, -2, 1, 0, 0, 0, 0, 1],
    ]
    found = rows_of(dtype)
    return np.concatenate([np.array(extra).astype(found.dtype), found])


def increasing(dtype):
    """Return rows of increasing numbers, with those of which the distances overflow."""
    largest, tiny = float(ml_dtypes.finfo(dtype).max), float(ml_dtypes.finfo(dtype).tiny)
    ramp = np.arange(1.0, 9)
    found = [ramp, ramp - 4.5, ramp * 4 * tiny, ramp * (largest / 16), (ramp - 4.5) * (largest / 4), ramp**3 / 16]
    return np.array(found).astype(rows_of(dtype).dtype)


def interp_heights(op, x):
    points, knots = (multiop.op_cast(np.array(given), multiop.op_dtype(x)) for given in (POINTS, KNOTS))
    return multiop.vmap(lambda heights: op(points, knots, heights))(x)


def interp_knots(op, x):
    points, heights = (multiop.op_cast(np.array(given), multiop.op_dtype(x)) for given in (BETWEEN, HEIGHTS))
    return multiop.vmap(lambda knots: op(points, knots, heights))(x)


ROWS = [
    Array(
        "op_polyval", polynomial, call=lambda op, x: multiop.vmap(lambda r: op(r[:-1], r[-1]))(x), rows=beside_overflow
    ),
    Array(
        "op_interp",
        lambda xs: [interpolated(mpf(x), list(map(mpf, KNOTS)), xs) for x in POINTS],
        call=interp_heights,
        title="op_interp, fp",
    ),
    Array(
        "op_interp",
        lambda xs: [interpolated(mpf(x), xs, list(map(mpf, HEIGHTS))) for x in BETWEEN],
        call=interp_knots,
        rows=increasing,
        title="op_interp, xp",
    ),
    Array(
        "op_divide",
        lambda xs: [x / max(xs) for x in xs],
        call=by_largest,
        ties=False,
        rows=positive,
        title="x / max(x)",
    ),
    Array("op_divide", softmax, call=by_sum, unit=True, cancels="slopes", title="exp(x) / sum(exp(x))"),
]
GRAPH = (-100.0, -1.0, 0.0, 0.5, 3.0, 1000.0), (1.0, -2.0, 4.0, 4.0, 0.25, 7.0)


def graph_slope(x):
    knots, heights = (list(map(mpf, part)) for part in GRAPH)
    if x < knots[0] or x > knots[-1]:
        return mpf(0)
    k = min(max(k for k, knot in enumerate(knots) if knot <= x), len(knots) - 2)
    return (heights[k + 1] - heights[k]) / (knots[k + 1] - knots[k])


def at_knots(dtype):
    return [*signed(mpf("inf"))(dtype), *of(*GRAPH[0], 0.25, -50.0, 999.0)(dtype)]


SPECIAL.append(
    one(
        "op_interp",
        lambda x: interpolated(x, *(list(map(mpf, part)) for part in GRAPH)),
        graph_slope,
        at_knots,
        call=lambda op, x: op(x, *(multiop.op_cast(np.array(part), multiop.op_dtype(x)) for part in GRAPH)),
        title="op_interp, x",
    )
)
