"""Rows of the polynomials."""

from __future__ import annotations

import numpy as np

from .._case import COMPLEX, NUMERIC, call, floating, pin, promote_dtypes, row
from .._samplers import normal, positive, spd, uniform

INF, NAN = np.inf, np.nan
LONG = ("int32", "float32", "float64", *COMPLEX)


def apart(*shape: int):
    """Draw places in order, at which powers are well conditioned."""
    return uniform(*shape, low=-1.0, high=1.0)


def _poly(x):
    """Return the coefficients of a product of complex factors."""
    coefficients = np.atleast_1d(np.poly(x))
    return coefficients.astype(complex) if np.iscomplexobj(x) else coefficients.real


def _poly_terms(x):
    largest = np.max(np.abs(np.linalg.eigvals(x) if x.ndim == 2 else x), initial=0.0)
    n = x.shape[0]
    return np.broadcast_to(np.max(np.abs(np.poly([-largest] * n)), initial=1.0), (n + 1,))


def _polyfit(x, y, deg, rcond=None, w=None, cov=False):
    return np.polyfit(x, y, deg, rcond, w=w, cov=cov)


def _polyfit_terms(x, y, deg, rcond=None, w=None, cov=False):
    """Return the largest entry of each result, in its shape."""
    found = _polyfit(x, y, deg, rcond, w, cov)
    sizes = [np.full(np.shape(y), np.max(np.abs(y))) for y in (found if cov else [found])]
    return tuple(sizes) if cov else sizes[0]


def _roots(p):
    return np.roots(p).astype(complex)


ROWS = [
    row(
        "op_polyval",
        np.polyval,
        call(normal(4), normal(2, 3)),
        call(normal(1), normal()),
        call(normal(0), normal(2)),
        call(normal(3), x=normal(0)),
        dtypes=NUMERIC,
        accumulates=True,
        analytic=True,
        pins=[
            pin([2.0, 0.0, 1.0], [0.0, 3.0, NAN], value=[1.0, 19.0, NAN], gradient=([NAN, NAN, 3.0], [0.0, 12.0, NAN])),
            pin([1.0, 0.0], [INF], value=[NAN]),
            pin([3.0, -600.0], [200.0, 300.0], value=[0.0, 300.0], dtype="float16"),
        ],
    ),
    row(
        "op_poly",
        _poly,
        call(normal(4)),
        call(normal(0)),
        call(spd(2, 2)),
        dtypes=LONG,
        returns=floating,
        ulps=32,
        accumulates=_poly_terms,
        pins=[
            pin([2.0, -2.0], value=[1.0, 0.0, -4.0], gradient=[0.0 - 1.0 - 2.0, 0.0 - 1.0 + 2.0]),
            pin([300.0, 2.0**-9], value=[1.0, -300.0, 300 / 512], dtype="float16"),
        ],
    ),
    row(
        "op_roots",
        _roots,
        call(positive(2)),
        call(positive(1)),
        call(np.array([2.0, 0.0])),
        dtypes=("float32", "float64", *COMPLEX),
        returns=lambda dtypes: {"float32": "complex64", "float64": "complex128"}.get(dtypes[0], dtypes[0]),
        ulps=16,
    ),
    row(
        "op_polyfit",
        _polyfit,
        call(np.array([-1.0, -0.5, 0.25, 0.5, 1.0]), normal(5), 2),
        call(apart(4), normal(4), deg=0),
        call(np.array([-1.0, -0.5, 0.5, 1.0]), normal(4, 2), 1, w=positive(4)),
        call(np.array([-1.0, -0.5, 0.5, 1.0]), normal(4), 1, rcond=1e-6, cov=True),
        call(np.array([-1.0, -0.5, 0.5, 1.0]), normal(4, 2), 1, cov=True),
        call(np.array([-1.0, -0.5, 0.5, 1.0]), normal(4, 2), 1, cov="unscaled"),
        dtypes=("float32", "float64"),
        returns=promote_dtypes,
        ulps=64,
        accumulates=_polyfit_terms,
        pins=[
            pin(
                [0.0, 1.0, 2.0, 3.0],
                [1.0, 3.0, 5.0, 7.0],
                1,
                value=[2.0, 1.0],
                gradient=([-0.8, -0.6, -0.4, -0.2], [0.4, 0.3, 0.2, 0.1]),
            )
        ],
    ),
]
