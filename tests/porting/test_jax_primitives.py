"""Each row of the table of JAX's primitives: value and gradient against JAX, on each backend."""

from __future__ import annotations

import functools

import numpy as np
import pytest

pytest.importorskip("jax")

import jax_rows
import ported

import multiop
from multiop import errors, porting

INEXACT = {"attention": 1e-6, "causal attention": 1e-6}  # JAX takes their softmax in float32


@pytest.fixture(autouse=True)
def natively_in_64_bits(in_64_bits):
    with jax_rows.jax.enable_x64(True):
        yield


@pytest.mark.parametrize(
    "case",
    [case if case in jax_rows.NEAR else pytest.param(case, marks=pytest.mark.tier("full")) for case in jax_rows.ROWS],
)
def test_row(case, backend):
    port, (outputs, gradients) = jax_rows.traced(case)
    _, inputs = jax_rows.drawn(case)
    with multiop.use_backend(backend):
        computed, slopes, _ = ported.ported(port, inputs)
    assert [y.dtype.kind for y in computed] == [y.dtype.kind for y in outputs]
    assert jax_rows.error_between(computed, outputs) < INEXACT.get(case, 1e-10)
    assert jax_rows.error_between(slopes, gradients) < INEXACT.get(case, 1e-9)


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", ["expi", "exp1", "expn", "gammainc", "gammaincc", "polygamma", "spence"])
def test_special_functions_are_those_of_scipy(name, backend):
    special = pytest.importorskip("scipy.special")
    x = np.random.default_rng(0).uniform(0.2, 40, (7, 3))
    orders = {"expn": (3,), "gammainc": (1.5,), "gammaincc": (1.5,), "polygamma": (2,)}.get(name, ())
    model = functools.partial(lambda p, x: p * getattr(jax_rows.jax.scipy.special, name)(*orders, x), 1.0)
    port = porting.trace(model, jax_rows.jnp.asarray(x))
    with multiop.use_backend(backend):
        (computed,), _, _ = ported.ported(port, [x])
    assert np.abs(computed / getattr(special, name)(*orders, x) - 1).max() < 1e-12


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (lambda special, x: special.betainc(x, 2.0, 0.3), "regularized_incomplete_beta"),
        (lambda special, x: special.zeta(x, 2.0), "zeta"),
        (lambda special, x: special.polygamma(x.astype(int), 2.0), "polygamma: of an order that is computed"),
        (lambda special, x: special.i0e(x) + special.i1e(x), "2 operations"),
    ],
)
def test_other_special_functions_are_refused_by_name(line, words):
    with pytest.raises(errors.TranslationError, match=words):
        porting.trace(
            functools.partial(lambda p, x: line(jax_rows.jax.scipy.special, p * x), 1.0), jax_rows.jnp.ones(3)
        )
