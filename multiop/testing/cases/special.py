"""Rows of the special functions."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
from scipy import special

from .._case import BOOLEAN, FLOATING, OPEN, REAL, Pin, Row, call, floating, has_gradient, pin, row
from .._samplers import normal, positive, uniform, unit

INF, NAN = np.inf, np.nan

# where one of the two functions is close to 1, or a framework's own loses its digits
INCOMPLETE = [
    *((0.0009765625, x) for x in (0.0009765625, 0.5, 1.0, 4.0)),
    *((a, x) for a in (0.75, 5.0, 9.5) for x in (0.25, 1.0, 20.0)),
    *((20.0, x) for x in (12.0, 20.0, 30.0)),
    (4096.0, 4096.0),
    (4096.0, 4224.0),
    (1048576.0, 1047552.0),
]
AT_ENDS = [
    [0.0, 0.0, 1.0, INF, INF, 1.0, -1.0, 1.0, NAN, 1.0, 0.0, INF],
    [0.0, 1.0, 0.0, 1.0, INF, INF, 1.0, -1.0, 1.0, NAN, INF, 0.0],
]


def in_both(*args: Any, **options: Any) -> list[Pin]:
    """Pin one answer in float32 and in float64."""
    return [pin(*args, dtype=dtype, **options) for dtype in ("float32", "float64")]


def gather_pins(row: Row) -> Row:
    """Return a row of a function of each entry whose pins of one kind are one: each call is traced anew."""
    kinds: dict[Any, list[Pin]] = {}
    for one in row.pins:
        is_of_lists = not one.kwargs and all(isinstance(x, list) for x in one.args)
        kind = (one.dtype, one.value is None, has_gradient(one)) if is_of_lists else id(one)
        kinds.setdefault(kind, []).append(one)
    return dataclasses.replace(row, pins=tuple(map(join, kinds.values())))


def join(pins: list[Pin]) -> Pin:
    """Make one pin of several, whose entries follow each other."""
    first, options = pins[0], dict[str, Any]()
    if len(pins) == 1:
        return first
    if first.value is not None:
        options["value"] = [y for one in pins for y in one.value]
    if has_gradient(first):
        of_each = [one.gradient if isinstance(one.gradient, tuple) else (one.gradient,) for one in pins]
        sized = [
            [[g] * len(one.args[0]) if g is OPEN else g for g in of] for one, of in zip(pins, of_each, strict=True)
        ]
        options["gradient"] = tuple(list(itertools.chain(*grads)) for grads in zip(*sized, strict=True))
    args = [list(itertools.chain(*lists)) for lists in zip(*(one.args for one in pins), strict=True)]
    return pin(*args, dtype=first.dtype, **options)


def function(op: str, reference, sampler=normal, dtypes=BOOLEAN + REAL, **options) -> Row:
    """Make a row of a function of real numbers."""
    return row(
        op,
        reference,
        call(sampler(2, 3)),
        call(sampler()),
        call(sampler(0)),
        dtypes=dtypes,
        returns=floating,
        ulps=16,
        **options,
    )


def polygamma(n, x):
    """SciPy's, in the dtype of `x`."""
    return special.polygamma(n, x).astype(x.dtype)


# numbers beside the roots of the logarithm of the gamma function, and its values, of which SciPy has half of the digits
ROOTS = [1 - 2.0**-20, 1 + 2.0**-20, 2 - 2.0**-20, 2 + 2.0**-20]
AT_ROOTS = [5.504765026737053e-07, -5.504750066148867e-07, -4.0319826848018475e-07, 4.0319885504430156e-07]
HALVES = [k / 2 for k in range(-9, 25, 2)]
# the logarithm of the beta function, of which SciPy has two thirds of the digits, and its slope at ties
BESIDE = [-20 * np.log(2.0), -237.91916923377553, -3365064.4150237534]
AT_TIES = (special.digamma([2.0, 20.0]) - special.digamma([4.0, 40.0])).tolist()


def of_two(op: str, reference, ulps: int = 16, **options) -> Row:
    """Make a row of a function of two positive numbers."""
    return row(
        op,
        reference,
        call(positive(2, 3), positive(3)),
        call(uniform(4, low=9.0, high=30.0), positive(4)),
        dtypes=BOOLEAN + FLOATING,
        returns=floating,
        ulps=ulps,
        **options,
    )


def lower(a: Any, x: Any) -> Any:
    """SciPy's, with names for its arguments."""
    return special.gammainc(a, x)


def upper(a: Any, x: Any) -> Any:
    """SciPy's, with names for its arguments."""
    return special.gammaincc(a, x)


def divergence(x: Any, y: Any) -> Any:
    """SciPy's function in longer numbers: its terms cancel where the arguments are close."""
    wide = [np.asarray(values, np.longdouble) for values in (x, y)]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(wide[0] == 0, 0, wide[0] * np.log(wide[0] / wide[1]))
    return (terms - wide[0] + wide[1]).astype(special.kl_div(x, y).dtype)


def multigammaln(x: Any, p: int) -> Any:
    """SciPy's, in the dtype of `x`."""
    return np.asarray(special.multigammaln(x, p)).astype(x.dtype)


SHARES = [
    [2.0**-10, 8.0, 0.5, 4096.0, 4096.0, 300.0],
    [8.0, 2.0**-10, 0.5, 4096.0, 3968.0, 2.0],
    [0.25, 0.75, 2.0**-20, 0.5, 0.5, 0.875],
]


def shares(a: Any, b: Any, x: Any) -> Any:
    """SciPy's, with names for its arguments."""
    return special.betainc(a, b, x)


def first(v: Any, x: Any) -> Any:
    """SciPy's, with names for its arguments."""
    return special.jv(v, x)


def second(v: Any, x: Any) -> Any:
    """SciPy's, with names for its arguments."""
    return special.yv(v, x)


def beside(reference: Any) -> list[Any]:
    """Make pins of a Bessel function: small, usual and large arguments, whole, half, small and negative orders."""
    orders = [0.0, 0.0, 1.0, 0.5, 0.25, 7.0, 16.0, 16.0, 2.5, 0.0, -0.5, -1.0, 0.75, 3.0]
    places = [2.0**-40, 1.5, 2.0**-10, 1.0, 2.0**-33, 2.0, 8.0, 36.0, 12.0, 18.8125, 1.0, 3.0, 30.0, 96.0]
    value = reference(np.array(orders), np.array(places)).tolist()
    return in_both(orders, places, value=value)


def bessel(op: str, reference, *pins: Pin) -> Row:
    """Make a row of a Bessel function of any order."""
    return row(
        op,
        reference,
        call(uniform(2, 3, low=2.0, high=5.0), uniform(2, 3, low=0.3, high=2.0)),
        call(uniform(2, 1, low=2.0, high=5.0), uniform(3, low=0.3, high=2.0)),
        call(uniform(low=2.0, high=5.0), uniform(low=0.3, high=2.0)),
        call(uniform(0, low=2.0, high=5.0), uniform(1, low=0.3, high=2.0)),
        returns=floating,
        ulps=256,
        pins=[*beside(reference), *pins],
    )


ROWS = [
    function(
        "op_erf",
        special.erf,
        pins=[
            *in_both([INF, -INF, NAN], value=[1.0, -1.0, NAN], gradient=[0.0, 0.0, OPEN]),
            pin([1e200, -1e300], value=[1.0, -1.0], gradient=[0.0, 0.0], dtype="float64"),
            # a long array, which PyTorch computes in another way
            pin([2.0**-30] * 32, value=[2.0**-29 / np.sqrt(np.pi)] * 32, dtype="bfloat16"),
        ],
    ),
    function(
        "op_erfc",
        special.erfc,
        lambda *shape: normal(*shape, scale=0.5),
        pins=[pin([INF, -INF, 5.0], value=[0.0, 2.0, special.erfc(5.0)])],
    ),
    function(
        "op_erfinv",
        special.erfinv,
        unit,
        dtypes=BOOLEAN + FLOATING,
        pins=[
            pin([1.0, -1.0, 2.0, 0.0], value=[INF, -INF, NAN, 0.0]),
            pin([1.0, -1.0, 0.0], gradient=[INF, INF, np.sqrt(np.pi) / 2]),
            pin([1e-20], value=[1e-20 * np.sqrt(np.pi) / 2]),
            pin(
                [1e-20, 1 - 2.0**-53], value=[1e-20 * np.sqrt(np.pi) / 2, special.erfinv(1 - 2.0**-53)], dtype="float64"
            ),
        ],
    ),
    function(
        "op_i0",
        special.i0,
        pins=[
            pin([0.0, INF, -INF, NAN], value=[1.0, INF, INF, NAN]),
            pin([0.0, 2.0, -2.0], gradient=[0.0, special.i1(2.0), -special.i1(2.0)]),
            pin([INF, -INF, 1e-10, 1000.0, NAN], gradient=[INF, -INF, 5e-11, INF, NAN]),
            pin([11.0], value=[special.i0(11.0)], gradient=[special.i1(11.0)], dtype="float16"),
            pin([100.0, -1e10], value=[special.i0(100.0), INF], gradient=[special.i1(100.0), -INF], dtype="float64"),
        ],
    ),
    function(
        "op_lgamma",
        special.gammaln,
        dtypes=BOOLEAN + FLOATING,
        pins=[
            *in_both(
                [0.0, -0.0, -1.0, -2.0, INF, -INF, NAN],
                value=[INF, INF, INF, INF, INF, INF, NAN],
                gradient=[-INF, INF, NAN, NAN, INF, NAN, OPEN],
            ),
            # beside the roots, where a sum of the usual terms has no digits left
            pin([1.0, 2.0], value=[0.0, 0.0], gradient=[special.digamma(1.0), special.digamma(2.0)]),
            *in_both(ROOTS, value=AT_ROOTS),
            pin([1e200], value=[special.gammaln(1e200)], gradient=[special.digamma(1e200)], dtype="float64"),
            pin([1e-30, -1e-30, 1e30], gradient=[-1e30, 1e30, special.digamma(1e30)]),
            pin([1e-30, -1e-30, 1e30], value=special.gammaln([1e-30, -1e-30, 1e30]).tolist()),
            pin([10.25, 10.75, -1e38], value=[*special.gammaln([10.25, 10.75]), INF]),
            # between two whole numbers, and the one to which they are rounded
            pin(HALVES, value=special.gammaln(HALVES).tolist()),
            pin([300.0], value=[special.gammaln(300.0)], gradient=[special.digamma(300.0)], dtype="float16"),
        ],
    ),
    function(
        "op_gamma",
        special.gamma,
        dtypes=BOOLEAN + FLOATING,
        pins=[
            *in_both(
                [0.0, -0.0, -1.0, -2.0, INF, NAN],
                value=[INF, -INF, NAN, NAN, INF, NAN],
            ),
            pin(HALVES, value=special.gamma(HALVES).tolist()),
            pin([5.0, 34.5, -30.5], value=[24.0, *special.gamma([34.5, -30.5])]),
            pin([1.0, 12.0], gradient=[special.digamma(1.0), special.gamma(12.0) * special.digamma(12.0)]),
            pin([171.5, -150.25, 172.0], value=[*special.gamma([171.5, -150.25]), INF], dtype="float64"),
        ],
    ),
    of_two(
        "op_betaln",
        special.betaln,
        pins=[
            pin([0.0, -1.0, NAN, 0.0], [1.0, 1.0, 1.0, 0.0], value=[INF, NAN, NAN, INF]),
            # where three gamma functions would cancel, and at a tie
            *in_both([1.0, 20.0, 3e6], [2.0**20, 2.0**20, 2e6], value=BESIDE),
            pin([2.0, 20.0], [2.0, 20.0], gradient=(AT_TIES, AT_TIES), dtype="float64"),
        ],
    ),
    of_two(
        "op_beta",
        special.beta,
        ulps=128,  # an exponential of a logarithm: beside mpmath, SciPy's is off by 59 units here, and this by 32
        pins=[pin([0.0, -1.0, NAN, 2.0], [1.0, 1.0, 1.0, 3.0], value=[INF, NAN, NAN, 1 / 12])],
    ),
    of_two(
        "op_xlogy",
        special.xlogy,
        pins=[
            pin([0.0, 0.0, 0.0, 0.0, 2.0], [0.0, INF, -1.0, NAN, 0.0], value=[0.0, 0.0, 0.0, NAN, -INF]),
            pin([0.0, 0.0], [0.0, 2.0], gradient=([0.0, np.log(2.0)], [0.0, 0.0])),
        ],
    ),
    of_two(
        "op_xlog1py",
        special.xlog1py,
        pins=[
            pin([0.0, 0.0, 0.0, 0.0, 2.0], [-1.0, INF, -2.0, NAN, -1.0], value=[0.0, 0.0, 0.0, NAN, -INF]),
            pin([0.0, 0.0], [-1.0, 2.0], gradient=([0.0, np.log(3.0)], [0.0, 0.0])),
            pin([3.0], [1e-20], value=[3e-20]),
        ],
    ),
    function(
        "op_erfcx",
        special.erfcx,
        dtypes=FLOATING,
        pins=[
            pin([INF, -INF, NAN, 1e30], value=[0.0, INF, NAN, 1e-30 / np.sqrt(np.pi)]),
            pin([0.0, 100.0], gradient=[-2 / np.sqrt(np.pi), 200 * special.erfcx(100.0) - 2 / np.sqrt(np.pi)]),
            pin([3.75, 27.0, -26.0], value=special.erfcx([3.75, 27.0, -26.0]).tolist(), dtype="float64"),
        ],
    ),
    function(
        "op_erfcinv",
        special.erfcinv,
        lambda *shape: uniform(*shape, low=0.01, high=1.9),
        dtypes=FLOATING,
        pins=[
            pin([0.0, 2.0, 1.0, -1.0, 3.0, NAN], value=[INF, -INF, 0.0, NAN, NAN, NAN]),
            pin([0.0, 1.0, 2.0], gradient=[-INF, -np.sqrt(np.pi) / 2, -INF]),
            pin([1e-30, 0.2], value=special.erfcinv([float(np.float32(1e-30)), 0.2]).tolist()),
            pin([1e-300, 0.199], value=special.erfcinv([1e-300, 0.199]).tolist(), dtype="float64"),
            pin(
                [1e-30], gradient=[-np.sqrt(np.pi) / 2 * special.erfcx(special.erfcinv(1e-30)) / 1e-30], dtype="float64"
            ),
        ],
    ),
    function(
        "op_ndtr",
        special.ndtr,
        dtypes=FLOATING,
        pins=[
            pin([INF, -INF, NAN, -8.0], value=[1.0, 0.0, NAN, special.ndtr(-8.0)], dtype="float64"),
            pin([0.0], value=[0.5], gradient=[1 / np.sqrt(2 * np.pi)]),
        ],
    ),
    function(
        "op_log_ndtr",
        special.log_ndtr,
        dtypes=FLOATING,
        pins=[
            pin([INF, -INF, NAN, -1e4], value=[0.0, -INF, NAN, special.log_ndtr(-1e4)]),
            pin([-1e4, 40.0], gradient=[1e4 + 1e-4, 0.0]),
            pin([-1.0, 8.0], value=[special.log_ndtr(-1.0), -special.ndtr(-8.0)], dtype="float64"),
        ],
    ),
    function(
        "op_ndtri",
        special.ndtri,
        lambda *shape: uniform(*shape, low=0.01, high=0.95),
        dtypes=FLOATING,
        pins=[
            pin([0.0, 1.0, 0.5, -1.0, 2.0, NAN], value=[-INF, INF, 0.0, NAN, NAN, NAN]),
            pin([0.0, 0.5, 1.0], gradient=[INF, np.sqrt(2 * np.pi), INF]),
            pin([1e-300, 1e-20], value=special.ndtri([1e-300, 1e-20]).tolist(), dtype="float64"),
        ],
    ),
    function(
        "op_logit",
        special.logit,
        lambda *shape: uniform(*shape, low=0.05, high=0.95),
        dtypes=FLOATING,
        pins=[
            pin([0.0, 1.0, 0.5, -1.0, 2.0, NAN], value=[-INF, INF, 0.0, NAN, NAN, NAN]),
            pin([0.25, 0.5, 0.75], gradient=[16 / 3, 4.0, 16 / 3]),
            pin([0.5 + 2.0**-20, 1e-30], value=[2.0**-18, np.log(1e-30)]),
        ],
    ),
    function(
        "op_entr",
        special.entr,
        positive,
        dtypes=BOOLEAN + FLOATING,
        pins=[
            pin([0.0, -1.0, 1.0, INF, NAN], value=[0.0, -INF, 0.0, -INF, NAN]),
            pin([0.0, 1.0], gradient=[0.0, -1.0]),
        ],
    ),
    of_two(
        "op_rel_entr",
        special.rel_entr,
        pins=[
            pin(
                [0.0, 0.0, 1.0, -1.0, 1.0, NAN, 2.0],
                [0.0, 2.0, 0.0, 1.0, -1.0, 1.0, 2.0],
                value=[0.0, 0.0, INF, INF, INF, NAN, 0.0],
            ),
            pin([0.0, 0.0, 2.0], [0.0, 2.0, 2.0], gradient=([0.0, 0.0, 1.0], [0.0, 0.0, -1.0])),
            # where the ratio overflows, and where it is close to 1
            pin([1e30, 1.0], [1e-30, 1 - 2.0**-20], value=[1e30 * np.log(1e60), -np.log1p(-(2.0**-20))]),
        ],
    ),
    of_two(
        "op_kl_div",
        divergence,
        pins=[
            pin(
                [0.0, 0.0, 1.0, -1.0, 1.0, NAN, 2.0],
                [0.0, 2.0, 0.0, 1.0, -1.0, 1.0, 2.0],
                value=[0.0, 2.0, INF, INF, INF, NAN, 0.0],
            ),
            pin([0.0, 0.0, 2.0], [0.5, 2.0, 2.0], gradient=([-1.0, -1.0, 0.0], [1.0, 1.0, 0.0])),
        ],
    ),
    row(
        "op_multigammaln",
        multigammaln,
        call(uniform(2, 3, low=2.0, high=9.0), 1),
        call(uniform(3, low=2.0, high=30.0), 4),
        call(uniform(0, low=2.0, high=9.0), 2),
        returns=floating,
        ulps=32,
        pins=[
            pin([0.5, 0.0, NAN, INF, 2.0], 2, value=[NAN, NAN, NAN, INF, special.multigammaln(2.0, 2)]),
            pin([2.0], 2, gradient=[special.digamma(2.0) + special.digamma(1.5)]),
        ],
    ),
    row(
        "op_zeta",
        special.zeta,
        call(uniform(2, 3, low=1.5, high=4.0), positive(3)),
        call(uniform(4, low=1.1, high=30.0), uniform(low=0.75, high=20.0)),
        call(uniform(0, low=1.5, high=4.0), positive(0)),
        returns=floating,
        ulps=32,
        pins=[
            pin(
                [1.0, 2.0, 0.5, 2.0, NAN, 2.0, 2.0, INF, INF, INF],
                [1.0, 0.0, 1.0, -1.5, 1.0, NAN, INF, 1.0, 2.0, 0.5],
                value=[INF, INF, NAN, NAN, NAN, NAN, 0.0, 1.0, 0.0, INF],
            ),
            pin([2.0, 4.0], [1.0, 1.0], value=[np.pi**2 / 6, np.pi**4 / 90]),
            pin([2.0], [1.0], gradient=([-0.9375482543158438], [-2 * special.zeta(3.0)])),
        ],
    ),
    bessel(
        "op_jv",
        first,
        pin([0.0, 1.0, 0.0, 16.5, NAN], [0.0, 0.0, INF, 1.0, 1.0], value=[1.0, 0.0, 0.0, NAN, NAN]),
        pin([1.0, 0.5, 0.0], [-2.0, -2.0, NAN], value=[-special.jv(1.0, 2.0), NAN, NAN]),
        pin([0.0, 1.0, 2.0], [0.0, 0.0, 0.0], gradient=(OPEN, [0.0, 0.5, 0.0])),
        pin([0.0, 2.5], [3.0, 80.0], gradient=(OPEN, special.jvp([0.0, 2.5], [3.0, 80.0]).tolist())),
    ),
    bessel(
        "op_yv",
        second,
        pin([0.0, 1.0, 0.0, 16.5, NAN], [0.0, 0.0, INF, 1.0, 1.0], value=[-INF, -INF, 0.0, NAN, NAN]),
        pin([1.0, 0.0], [-2.0, NAN], value=[NAN, NAN]),
        pin([0.0, 2.5], [3.0, 80.0], gradient=(OPEN, special.yvp([0.0, 2.5], [3.0, 80.0]).tolist())),
    ),
    bessel(
        "op_iv",
        special.iv,
        pin([0.0, 1.0, 0.0, NAN], [0.0, 0.0, INF, 1.0], value=[1.0, 0.0, INF, NAN]),
        pin([1.0, 0.5, 0.0], [-2.0, -2.0, NAN], value=[-special.iv(1.0, 2.0), NAN, NAN]),
        pin([0.0, 1.0, 2.0], [0.0, 0.0, 0.0], gradient=(OPEN, [0.0, 0.5, 0.0])),
        pin([0.0, 2.5], [3.0, 60.0], gradient=(OPEN, special.ivp([0.0, 2.5], [3.0, 60.0]).tolist())),
    ),
    bessel(
        "op_ive",
        special.ive,
        pin([0.0, 1.0, 0.0, NAN], [0.0, 0.0, INF, 1.0], value=[1.0, 0.0, 0.0, NAN]),
        pin([1.0, 0.5, 0.0], [-2.0, -2.0, NAN], value=[-special.ive(1.0, 2.0), NAN, NAN]),
        pin([0.0, 1.0], [1e6, 1e10], value=[np.sqrt(0.5 / np.pi) / 1e3, np.sqrt(0.5 / np.pi) / 1e5]),
    ),
    bessel(
        "op_kv",
        special.kv,
        pin([0.0, 1.0, 0.0, NAN], [0.0, 0.0, INF, 1.0], value=[INF, INF, 0.0, NAN]),
        pin([1.0, 0.0], [-2.0, NAN], value=[NAN, NAN]),
        pin([0.0, 2.5], [3.0, 40.0], gradient=(OPEN, special.kvp([0.0, 2.5], [3.0, 40.0]).tolist())),
    ),
    bessel(
        "op_kve",
        special.kve,
        pin([0.0, 1.0, 0.0, NAN], [0.0, 0.0, INF, 1.0], value=[INF, INF, 0.0, NAN]),
        pin([1.0, 0.0], [-2.0, NAN], value=[NAN, NAN]),
        pin([0.0, 1.0], [1e6, 1e10], value=[np.sqrt(0.5 * np.pi) / 1e3, np.sqrt(0.5 * np.pi) / 1e5]),
    ),
    row(
        "op_betainc",
        shares,
        call(uniform(2, 3, low=0.5, high=9.0), uniform(3, low=0.5, high=9.0), uniform(2, 1, low=0.1, high=0.9)),
        call(uniform(4, low=9.0, high=30.0), positive(4), uniform(4, low=0.3, high=0.95)),
        call(positive(0), positive(1), uniform(1, low=0.1, high=0.9)),
        returns=floating,
        ulps=128,
        pins=[
            pin(
                [0.0, 1.0, 0.0, INF, 1.0, INF, 1.0, 2.0, 2.0, -1.0, 2.0, 2.0, NAN, 2.0],
                [1.0, 0.0, 0.0, 1.0, INF, INF, 1.0, 3.0, 3.0, 1.0, 3.0, 3.0, 1.0, 3.0],
                [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0, 1.0, 0.5, -0.1, 1.1, 0.5, NAN],
                value=[1.0, 0.0, NAN, 0.0, 1.0, NAN, 0.5, 0.0, 1.0, NAN, NAN, NAN, NAN, NAN],
            ),
            # where the function is small, and where a parameter is, or both are large
            *in_both(*SHARES, value=special.betainc(*np.array(SHARES)).tolist()),
            pin([2.0], [3.0], [0.25], gradient=(OPEN, OPEN, [12 * 0.25 * 0.75**2])),
        ],
    ),
    function(
        "op_digamma",
        special.digamma,
        dtypes=BOOLEAN + FLOATING,
        pins=[
            pin([0.0, -0.0, INF, -1.0, -INF, NAN], value=[-INF, INF, INF, NAN, NAN, NAN]),
            pin([0.0, 1.0, -1.5, INF, NAN], gradient=[INF, np.pi**2 / 6, special.polygamma(1, -1.5), 0.0, NAN]),
            # at the root, where a sum of the usual terms has no digits left
            *[
                pin([one], value=[special.digamma(float(np.float32(one)))], gradient=[special.polygamma(1, one)])
                for one in (1.4616, 1.47)
            ],
            pin([1.4616, -100.25], value=[special.digamma(1.4616), special.digamma(-100.25)], dtype="float64"),
            pin([1e30, 1e-30], value=[special.digamma(1e30), -1e30]),
        ],
    ),
    row(
        "op_polygamma",
        polygamma,
        call(0, positive(2, 3)),
        call(1, positive()),
        call(2, positive(0)),
        call(1, normal(3)),
        call(4, normal(3)),
        dtypes=BOOLEAN + FLOATING,
        returns=floating,
        ulps=32,
        pins=[
            pin(1, [0.0, -0.0, -1.0, -2.0, INF, NAN], value=[INF, INF, INF, INF, 0.0, NAN]),
            pin(2, [0.0, -1.0, -2.0, INF, NAN], value=[-INF, -INF, -INF, 0.0, NAN]),
            pin(1, [1.0, INF], gradient=[special.polygamma(2, 1.0), 0.0]),
            pin(
                1,
                [-8.490407, -45.74024],
                value=special.polygamma(1, np.array([-8.490407, -45.74024], "float32")).tolist(),
            ),
            pin(20, [5744.376], value=[special.polygamma(20, 5744.376)], dtype="float64"),
            pin(40, [20.0], value=[special.polygamma(40, 20.0)]),  # 40! is beyond float32
        ],
    ),
    *[
        row(
            op,
            reference,
            call(positive(2, 3), positive(2, 3)),
            call(positive(2, 1), positive(3)),
            call(positive(), positive()),
            call(positive(0), positive(1)),
            returns=floating,
            ulps=32,
            pins=[
                pin(*AT_ENDS, value=reference(*AT_ENDS).tolist()),
                *in_both(
                    *np.transpose(INCOMPLETE).tolist(),
                    value=reference(*np.transpose(INCOMPLETE)).tolist(),
                ),
                pin(
                    [0.5, 1.0, 2.0, 20.0, 0.0, 0.0, 1.0],
                    [0.0, 0.0, 0.0, 0.0, 0.5, 2.0, INF],
                    gradient=(
                        [0.0, 0.0, 0.0, 0.0, -sign * special.exp1(0.5), -sign * special.exp1(2.0), 0.0],
                        [sign * INF, sign, 0.0, 0.0, 0.0, 0.0, 0.0],
                    ),
                ),
            ],
        )
        for op, reference, sign in (("op_gammainc", lower, 1.0), ("op_gammaincc", upper, -1.0))
    ],
]
ROWS = list(map(gather_pins, ROWS))
