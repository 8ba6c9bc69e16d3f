"""Elementwise ops and their derivatives as mpmath computes them: what the grid is compared with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import mp, mpf

INF, NAN, ONE, HALF = mpf("inf"), mpf("nan"), mpf(1), mpf("0.5")
# one number to either side of 0 stands for it where a derivative is asked for on the way to an infinity
BEYOND = mpf(10) ** 3000


@dataclasses.dataclass(frozen=True)
class Scalar:
    """One function of real numbers; `slopes` are its derivatives, one for each argument.

    A derivative may be found from rounded numbers of the size `scale(*xs)`, where its own digits cancel; `near` is the
    same for the value. With `points` of its own, a function is held to what rounding its arguments changes.
    """

    op: str
    value: Callable[..., Any]
    slopes: tuple[Callable[..., Any], ...]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    near: Callable[..., Any] | None = None
    scale: Callable[..., Any] | None = None
    ulps: float = 8.0
    within: float | None = None  # where the grid ends
    steep: Callable[..., Any] | None = None  # an exponential: how many times an inner rounding error is magnified
    slack: float = 2.0  # what is vanishing may be off by this much of the smallest number
    points: Callable[..., Any] | None = None  # the rows of a dtype, if they are not those of the grid
    call: Callable[..., Any] | None = None  # calls the op with what it wants beside the numbers
    title: str = ""

    @property
    def name(self) -> str:
        return self.title or self.op + "".join(f", {k}={v}" for k, v in self.options.items())


def unary(op, value, slope, options=None, **others):
    return Scalar(op, value, (slope,), options or {}, **others)


def over(a, b):
    """Return `a / b`, with NumPy's answer where b is 0."""
    if b == 0:
        return NAN if a == 0 or mpmath.isnan(a) else (INF if a > 0 else -INF)
    return mpf(a) / b


def within(low, high, fn):
    """Return `fn` with NaN outside a closed interval."""
    return lambda x: fn(x) if low <= x <= high else NAN


def sign(x):
    return mpf((x > 0) - (x < 0))


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def bell(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def normal(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def gelu_tanh_parts(x):
    k = 2 * mp.sqrt(2 / mp.pi)
    u, du = k * (x + mpf("0.044715") * x**3), k * (1 + 3 * mpf("0.044715") * x**2)
    return sigmoid(u), du * sigmoid(u) * sigmoid(-u)


def erfinv(x):
    if abs(x) == 1:
        return x * INF
    return mp.erfinv(x) if abs(x) < 1 else NAN


def sinc(x):
    return ONE if x == 0 else mp.sinpi(x) / (mp.pi * x)


def sinc_slope(x):
    if abs(x) < mpf(10) ** -20:
        return -(mp.pi**2) * x / 3
    return (mp.cospi(x) - mp.sinpi(x) / (mp.pi * x)) / x


def bessel(x):
    return mp.besseli(0, x) if abs(x) < 2000 else INF


def bessel_slope(x):
    return mp.besseli(1, x) if abs(x) < 2000 else sign(x) * INF


def grown(fn):
    """Return `fn`, whose exponent is too large to be computed far out, with its limits there."""
    return lambda x: fn(max(min(x, mpf(10) ** 6), -(mpf(10) ** 6)))


def squareplus(x, b=4):
    return (x + mp.sqrt(x * x + b)) / 2 if x > 0 else b / 2 / (mp.sqrt(x * x + b) - x)


def squareplus_slope(x, b=4):
    root = mp.sqrt(x * x + b)
    return (1 + x / root) / 2 if x > 0 else b / (2 * root * (root - x))


SELU_ALPHA, SELU_SCALE = mpf("1.6732632423543772848170429916717"), mpf("1.0507009873554804934193349852946")


def elu_of(alpha, scale=ONE):
    return (
        lambda x: scale * (x if x > 0 else alpha * mp.expm1(max(x, -BEYOND))),
        lambda x: scale * (ONE if x > 0 else alpha * mp.exp(max(x, -BEYOND))),
    )


def one(*xs):
    return ONE


def size(*xs):
    return max(map(abs, xs))


THRESHOLD = {"threshold": 0.5, "default_value": 3.0}
UNARY = [
    unary("op_negative", lambda x: -x, lambda x: -ONE),
    unary("op_reciprocal", lambda x: over(1, x), lambda x: over(-1, x * x)),
    unary("op_sign", sign, lambda x: mpf(0)),
    unary("op_abs", abs, sign),
    unary("op_square", lambda x: x * x, lambda x: 2 * x),
    unary("op_sqrt", within(0, INF, mp.sqrt), within(0, INF, lambda x: over(1, 2 * mp.sqrt(x)))),
    unary("op_rsqrt", within(0, INF, lambda x: over(1, mp.sqrt(x))), lambda x: over(-1, 2 * x * mp.sqrt(abs(x)))),
    unary("op_exp", grown(mp.exp), grown(mp.exp), steep=size),
    unary("op_exp2", grown(lambda x: mpf(2) ** x), grown(lambda x: mpf(2) ** x * mp.log(2)), steep=size),
    unary("op_expm1", grown(mp.expm1), grown(mp.exp)),
    unary("op_log", lambda x: mp.log(x) if x > 0 else (-INF if x == 0 else NAN), lambda x: over(1, x)),
    unary(
        "op_log2",
        lambda x: mp.log(x, 2) if x > 0 else (-INF if x == 0 else NAN),
        lambda x: over(1, x * mp.log(2)),
        near=lambda x: ONE / 4,
    ),
    unary(
        "op_log10",
        lambda x: mp.log(x, 10) if x > 0 else (-INF if x == 0 else NAN),
        lambda x: over(1, x * mp.log(10)),
        near=lambda x: ONE / 4,
    ),
    unary("op_log1p", lambda x: mp.log1p(x) if x > -1 else (-INF if x == -1 else NAN), lambda x: over(1, 1 + x)),
    unary("op_sin", mp.sin, mp.cos, within=1e3),
    unary("op_cos", mp.cos, lambda x: -mp.sin(x), within=1e3),
    unary("op_tan", mp.tan, lambda x: 1 + mp.tan(x) ** 2, within=1e3),
    unary("op_arcsin", within(-1, 1, mp.asin), within(-1, 1, lambda x: over(1, mp.sqrt(1 - x * x)))),
    unary("op_arccos", within(-1, 1, mp.acos), within(-1, 1, lambda x: over(-1, mp.sqrt(1 - x * x)))),
    unary("op_arctan", mp.atan, lambda x: 1 / (1 + x * x)),
    unary("op_sinh", grown(mp.sinh), grown(mp.cosh), steep=size),
    unary("op_cosh", grown(mp.cosh), grown(mp.sinh), steep=size),
    unary("op_tanh", grown(mp.tanh), grown(lambda x: mp.sech(x) ** 2), scale=one),
    unary("op_arcsinh", mp.asinh, lambda x: 1 / mp.sqrt(x * x + 1)),
    unary("op_arccosh", within(1, INF, mp.acosh), within(1, INF, lambda x: over(1, mp.sqrt(x - 1) * mp.sqrt(x + 1)))),
    unary(
        "op_arctanh",
        within(-1, 1, lambda x: sign(x) * INF if abs(x) == 1 else mp.atanh(x)),
        within(-1, 1, lambda x: over(1, (1 - x) * (1 + x))),
    ),
    unary("op_cbrt", lambda x: sign(x) * mp.cbrt(abs(x)), lambda x: over(1, 3 * mp.cbrt(abs(x)) ** 2)),
    unary("op_sinc", sinc, sinc_slope, near=one, scale=lambda x: mp.pi, within=1e3),
    unary("op_erf", grown(mp.erf), grown(lambda x: 2 * mp.exp(-x * x) / mp.sqrt(mp.pi)), steep=size),
    unary("op_erfc", grown(mp.erfc), grown(lambda x: -2 * mp.exp(-x * x) / mp.sqrt(mp.pi)), ulps=64, steep=size),
    unary(
        "op_erfinv", erfinv, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(x) ** 2) if abs(x) < 1 else INF, ulps=64
    ),
    unary("op_i0", bessel, bessel_slope, ulps=16, steep=size),
    unary("op_deg2rad", lambda x: x * mp.pi / 180, lambda x: mp.pi / 180),
    unary("op_rad2deg", lambda x: x * 180 / mp.pi, lambda x: 180 / mp.pi),
    unary("op_floor", mp.floor, lambda x: mpf(0)),
    unary("op_ceil", mp.ceil, lambda x: mpf(0)),
    unary("op_trunc", lambda x: sign(x) * mp.floor(abs(x)), lambda x: mpf(0)),
    unary("op_round", mp.nint, lambda x: mpf(0)),
    # to decimals: what is as NumPy's is in the rows; here, that large numbers stay
    unary("op_angle", lambda x: mpf(0) if x > 0 else +mp.pi, lambda x: mpf(0)),
    # activations
    unary("op_relu", lambda x: max(x, mpf(0)), lambda x: mpf(x > 0)),
    unary("op_sigmoid", grown(sigmoid), grown(lambda x: sigmoid(x) * sigmoid(-x)), scale=lambda x: ONE if x > 0 else 0),
    unary("op_softplus", lambda x: mp.log1p(mp.exp(x)) if x < 200 else x, grown(sigmoid), steep=size),
    unary("op_relu6", lambda x: min(max(x, mpf(0)), mpf(6)), lambda x: mpf(0 < x < 6)),
    unary("op_leaky_relu", lambda x: x if x > 0 else x / 5, lambda x: ONE if x > 0 else ONE / 5),
    unary("op_elu", *elu_of(ONE)),
    unary("op_celu", *elu_of(ONE)),
    unary("op_selu", *elu_of(SELU_ALPHA, SELU_SCALE)),
    unary(
        "op_silu",
        lambda x: x * sigmoid(x),
        lambda x: sigmoid(x) * (1 + x * sigmoid(-x)),
        scale=lambda x: 1 + abs(x),
        slack=1000,
    ),
    unary(
        "op_gelu",
        lambda x: x * normal(x),
        lambda x: normal(x) + x * bell(x),
        {"approximate": False},
        scale=one,
        slack=1000,
        steep=lambda x: x * x,
    ),
    unary(
        "op_gelu",
        lambda x: x * gelu_tanh_parts(x)[0],
        lambda x: gelu_tanh_parts(x)[0] + x * gelu_tanh_parts(x)[1],
        {"approximate": True},
        scale=one,
        slack=1000,
        steep=lambda x: 3 * x * x + x**4,
    ),
    unary("op_log_sigmoid", lambda x: -mp.log1p(mp.exp(-x)) if x > -200 else x, grown(lambda x: sigmoid(-x))),
    unary("op_softsign", lambda x: x / (1 + abs(x)), lambda x: 1 / (1 + abs(x)) ** 2),
    unary("op_soft_shrink", lambda x: x - sign(x) / 2 if abs(x) > HALF else mpf(0), lambda x: mpf(abs(x) > HALF)),
    unary("op_hard_shrink", lambda x: x if abs(x) > HALF else mpf(0), lambda x: mpf(abs(x) > HALF)),
    unary("op_tanh_shrink", lambda x: x - grown(mp.tanh)(x), grown(lambda x: mp.tanh(x) ** 2), near=size, scale=one),
    unary("op_hard_sigmoid", lambda x: min(max(x + 3, mpf(0)), mpf(6)) / 6, lambda x: mpf(-3 < x < 3) / 6, near=one),
    unary(
        "op_hard_silu",
        lambda x: x * min(max(x + 3, mpf(0)), mpf(6)) / 6,
        lambda x: (2 * x + 3) / 6 if -3 < x < 3 else mpf(x >= 3),
        near=size,
        scale=one,
        slack=8,
    ),
    unary(
        "op_sparse_plus",
        lambda x: x if x >= 1 else (mpf(0) if x <= -1 else (x + 1) ** 2 / 4),
        lambda x: min(max((x + 1) / 2, mpf(0)), ONE),
        near=one,
        scale=one,
    ),
    unary("op_sparse_sigmoid", lambda x: min(max((x + 1) / 2, mpf(0)), ONE), lambda x: mpf(-1 < x < 1) / 2, near=one),
    unary("op_squareplus", squareplus, squareplus_slope, ulps=16),
    unary("op_hard_tanh", lambda x: min(max(x, -ONE), ONE), lambda x: mpf(-1 <= x <= 1)),
    unary("op_threshold", lambda x: x if x > HALF else mpf(3), lambda x: mpf(x > HALF), THRESHOLD),
    unary("op_clip", lambda x: min(max(x, -ONE), mpf(2)), lambda x: mpf(-1 <= x <= 2), {"x_min": -1.0, "x_max": 2.0}),
]


def power(x, y):
    if y == 0:
        return ONE
    if x == 0:
        return mpf(0) if y > 0 else INF
    if x < 0 and y != mp.floor(y):
        return NAN
    exponent = y * mp.log(abs(x))
    if abs(exponent) > 10**6:
        return (INF if exponent > 0 else mpf(0)) * (-1 if x < 0 and int(y) % 2 else 1)
    return mp.exp(exponent) * (-1 if x < 0 and int(y) % 2 else 1)


def power_in_base(x, y):
    with mp.workdps(330):  # one less than an exponent may differ in its last digit alone
        return mpf(0) if y == 0 else y * power(x, y - 1)


def power_in_exponent(x, y):
    if x == 0:
        return mpf(0) if y >= 0 else -INF
    return power(x, y) * mp.log(x) if x > 0 else NAN


def quotient(round_):
    """Return the function that divides and rounds, of numbers of any sizes."""

    def found(x, y):
        with mp.workdps(700):
            return round_(x / y) if y else NAN

    return found


def rest(round_):
    def found(x, y):
        with mp.workdps(700):
            return x - y * round_(x / y) if y else NAN

    return found


def truncated(x):
    return sign(x) * mp.floor(abs(x))


def none(*xs):
    return mpf(0)


def added(x, y):
    top, low = max(x, y), min(x, y)
    return top + (mp.log1p(mp.exp(low - top)) if top - low < 1e5 else 0)


def share(x, y):
    return grown(sigmoid)(x - y)


def prefers(x, y):
    return HALF if x == y else mpf(x > y)


BINARY = [
    Scalar("op_add", lambda x, y: x + y, (one, one)),
    Scalar("op_subtract", lambda x, y: x - y, (one, lambda x, y: -ONE)),
    Scalar("op_multiply", lambda x, y: x * y, (lambda x, y: y, lambda x, y: x)),
    Scalar("op_divide", over, (lambda x, y: over(1, y), lambda x, y: over(-x, y * y))),
    Scalar(
        "op_divide_no_nan",
        lambda x, y: over(x, y) if y else mpf(0),
        (lambda x, y: over(1, y) if y else mpf(0), lambda x, y: over(-x, y * y) if y else mpf(0)),
    ),
    Scalar(
        "op_power",
        power,
        (power_in_base, power_in_exponent),
        ulps=64,
        slack=1000,
        steep=lambda x, y: (1 + abs(y)) * abs(mp.log(abs(x))) if x else mpf(0),
    ),
    Scalar("op_floor_divide", lambda x, y: quotient(mp.floor)(x, y) if y else over(x, y), (none, none)),
    Scalar("op_mod", rest(mp.floor), (one, lambda x, y: -quotient(mp.floor)(x, y))),
    Scalar("op_fmod", rest(truncated), (one, lambda x, y: -quotient(truncated)(x, y))),
    Scalar("op_heaviside", lambda x, y: y if x == 0 else mpf(x > 0), (none, lambda x, y: mpf(x == 0))),
    Scalar("op_fmax", max, (prefers, lambda x, y: prefers(y, x))),
    Scalar("op_fmin", min, (lambda x, y: prefers(y, x), prefers)),
    Scalar("op_maximum", max, (prefers, lambda x, y: prefers(y, x))),
    Scalar("op_minimum", min, (lambda x, y: prefers(y, x), prefers)),
    Scalar(
        "op_arctan2",
        lambda x, y: mp.atan2(x, y),
        (
            lambda x, y: over(y, x * x + y * y) if x or y else mpf(0),
            lambda x, y: over(-x, x * x + y * y) if x or y else mpf(0),
        ),
    ),
    Scalar(
        "op_hypot",
        mp.hypot,
        (
            lambda x, y: x / mp.hypot(x, y) if x or y else mpf(0),
            lambda x, y: y / mp.hypot(x, y) if x or y else mpf(0),
        ),
    ),
    Scalar("op_logaddexp", added, (share, lambda x, y: share(y, x)), near=one, ulps=16, steep=size),
    Scalar(
        "op_logaddexp2",
        lambda x, y: added(x * mp.log(2), y * mp.log(2)) / mp.log(2),
        (lambda x, y: share(x * mp.log(2), y * mp.log(2)), lambda x, y: share(y * mp.log(2), x * mp.log(2))),
        near=one,
        ulps=16,
        steep=size,
    ),
]
