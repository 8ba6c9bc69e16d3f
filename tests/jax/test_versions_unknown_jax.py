"""A JAX whose parts are not known: ops and transforms work, custom gradients in reverse mode, the rest is an error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp

import multiop
from multiop import errors, ops
from multiop._loading import versions
from multiop.backends.jax import _versions
from multiop.backends.jax.autodiff import custom_gradient

X = np.array([0.3, -0.7, 1.1], np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.fixture(autouse=True)
def unknown(monkeypatch):
    """Take the installed JAX for one that is newer than any tested."""
    monkeypatch.setitem(versions.VERSIONS, "jax", versions.Versions((0, 1), (0, 1), (0, 2)))
    for cached in (_versions.are_parts_known, custom_gradient._custom_call):
        cached.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _versions.are_parts_known()
    yield
    monkeypatch.undo()
    for cached in (_versions.are_parts_known, custom_gradient._custom_call):
        cached.cache_clear()


@multiop.op_custom_gradient
def log1pexp(x):
    e = ops.exp(x)
    return ops.log1p(e), lambda u: u * (1 - 1 / (1 + e))


def summed(f):
    return lambda *args: ops.sum(f(*args))


def test_value_outside_of_transforms():
    np.testing.assert_allclose(log1pexp(X), np.log1p(np.exp(X)), rtol=1e-6)


def test_a_rule_that_calls_its_own_function():
    @multiop.op_custom_gradient
    def tanh(x):
        return ops.tanh(x), lambda u: u * (1 - tanh(x) ** 2)

    y, derivative = np.tanh(0.5), tanh
    for expected in (y, 1 - y**2, -2 * y * (1 - y**2), (6 * y**2 - 2) * (1 - y**2)):
        np.testing.assert_allclose(derivative(0.5), expected, rtol=1e-5)
        np.testing.assert_allclose(jax.jit(derivative)(0.5), expected, rtol=1e-5)
        derivative = multiop.grad(derivative)


WRAPS = {
    "eager": lambda f: f,
    "jit": jax.jit,
    "multiop.jit": multiop.jit,
    "scan": lambda f: lambda x: jax.lax.scan(lambda _, x: (None, f(x)), None, x[None])[1][0],
    "cond": lambda f: lambda x: jax.lax.cond(x[0] > 0, f, lambda x: 0 * x, x),
    "checkpoint": jax.checkpoint,
}


@pytest.mark.parametrize("wrap", WRAPS)
def test_first_second_and_third_order(wrap):
    f = summed(log1pexp)
    s = sigmoid(X)
    expected = s
    for following in (s * (1 - s), s * (1 - s) * (1 - 2 * s), None):
        f = jax.grad(f)
        np.testing.assert_allclose(WRAPS[wrap](f)(jnp.asarray(X)), expected, rtol=2e-5)
        f, expected = summed(f), following


def test_hvp_and_hessian():
    s = sigmoid(X)
    np.testing.assert_allclose(multiop.hvp(summed(log1pexp), (X,), (2 * X,)), 2 * X * s * (1 - s), rtol=1e-5)
    np.testing.assert_allclose(multiop.hessian(summed(log1pexp))(X), np.diag(s * (1 - s)), rtol=1e-5, atol=1e-7)


def test_vmap():
    x = np.stack([X, 2 * X])
    np.testing.assert_allclose(multiop.vmap(multiop.grad(summed(log1pexp)))(x), sigmoid(x), rtol=1e-5)
    np.testing.assert_allclose(multiop.grad(lambda x: ops.sum(multiop.vmap(log1pexp)(x)))(x), sigmoid(x), rtol=1e-5)


def test_what_is_not_mapped_gets_the_sum():
    scaled = multiop.op_custom_gradient(lambda x, w: (x * w, lambda u: (u * w * 10, u * x)))
    found = multiop.grad(lambda w: ops.sum(multiop.vmap(scaled, in_axes=(0, None))(X, w)))(2.0)
    np.testing.assert_allclose(found, X.sum(), rtol=1e-6)


def test_the_rule_runs_and_not_the_derivative():
    doubled = multiop.op_custom_gradient(lambda x: (x * x, lambda u: u * 100))
    assert float(multiop.grad(doubled)(3.0)) == 100.0
    assert float(jax.jit(jax.grad(lambda x: doubled(x) * x))(3.0)) == 309.0


def test_trees_integers_and_several_outputs():
    @multiop.op_custom_gradient
    def f(tree, k):
        x, y = tree["x"], tree["y"]
        return (x * y, ops.argmax(y)), lambda u, none: ({"x": u * y * 2, "y": None}, None)

    tree = {"x": jnp.asarray(X), "y": jnp.asarray(2 * X)}
    found = jax.jit(jax.grad(lambda tree: jnp.sum(f(tree, jnp.int32(3))[0])))(tree)
    np.testing.assert_allclose(found["x"], 4 * X, rtol=1e-6)
    np.testing.assert_allclose(found["y"], 0 * X)


def test_residuals_of_integers():
    """What the function computes for its rule may be no float."""

    @multiop.op_custom_gradient
    def biggest(x):
        order = ops.argsort(x)
        return ops.take(x, order[-1:]), lambda u: ops.where(ops.arange(3) == order[-1], 10 * u, 0 * u)

    for wrap in (lambda f: f, jax.jit, lambda f: jax.grad(jax.jit(lambda x: jnp.sum(f(x) * 0) + jnp.sum(biggest(x))))):
        np.testing.assert_allclose(wrap(jax.grad(lambda x: jnp.sum(biggest(x))))(jnp.asarray(X)), [0, 0, 10])


def test_complex():
    """The rule takes and returns gradients in the conjugate convention."""
    f = multiop.op_custom_gradient(lambda z: (z * z, lambda u: u * ops.conj(2 * z)))
    z = jnp.asarray(0.5 + 2j)
    found = multiop.grad(lambda z: ops.real(f(z)))(z)
    expected = multiop.grad(lambda z: ops.real(z * z))(z)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_variables(wrap):
    def outer(x, w):
        @multiop.op_custom_gradient
        def f(x):
            def rule(u, variables):
                (w,) = variables
                return u * w * 10, [u * x * 100]

            return x * w, rule

        return f(x)

    found = wrap(jax.grad(outer, (0, 1)))(2.0, 3.0)
    np.testing.assert_allclose(found, [30.0, 200.0])


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_what_is_closed_over_and_lost_is_an_error(wrap):
    def outer(w):
        return multiop.op_custom_gradient(lambda x: (x * w, lambda u: u * w))(2.0)

    with pytest.raises(errors.ClosedOverError, match="'w'"):
        wrap(jax.grad(outer))(3.0)
    assert float(wrap(lambda w: jax.grad(lambda x: outer(w) * x)(5.0))(3.0)) == 6.0  # w is not differentiated


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_what_the_rule_alone_closes_over_is_differentiated_at_second_order(wrap):
    def outer(w):
        return jax.grad(multiop.op_custom_gradient(lambda x: (x * 1.0, lambda u: u * w * w)))(2.0)

    assert float(wrap(jax.grad(outer))(3.0)) == 6.0


def test_forward_mode_is_an_error():
    with pytest.raises(errors.UnsupportedError, match="forward mode.*jax>=0.1,<0.2"):
        multiop.jvp(log1pexp, (X,), (X,))


def test_the_tape_is_an_error():
    with pytest.raises(errors.UnsupportedError, match="GradientTape"), multiop.GradientTape():
        pass
    x = jnp.asarray(X)
    with pytest.raises(errors.UnsupportedError, match="gradients"):
        multiop.gradients([x * x], [x])


def test_errors_of_a_rule_are_those_of_the_contract():
    f = multiop.op_custom_gradient(lambda x: (x * 1.0, lambda u: (u, u)))
    with pytest.raises(errors.GradientRuleError, match="returned 2 gradients"):
        multiop.grad(f)(2.0)


def test_one_warning_names_the_tested_versions():
    _versions.are_parts_known.cache_clear()
    custom_gradient._custom_call.cache_clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        multiop.grad(summed(log1pexp))(X)
        multiop.grad(summed(log1pexp))(X)
    told = [str(one.message) for one in caught if "outside the versions" in str(one.message)]
    assert len(told) == 1
    assert "jax>=0.1,<0.2" in told[0]


UNKNOWN = """
jax.__version__, jax.__version_info__ = "99.0.0", (99, 0, 0)
sys.modules["multiop.backends.jax._internals"] = None
"""
LACKING = "del sys.modules['jax._src.core'].escaped_tracer_error"  # a tested version without one of the parts
PROGRAM = """
import sys
import jax
SIMULATED
for name in ("_primitives", "_recorded", "_recording", "_operations", "_tape"):
    sys.modules["multiop.backends.jax.autodiff." + name] = None  # whose import fails
import warnings
warnings.showwarning = lambda told, *_: print(told, file=sys.stderr)
import multiop
from multiop import ops
f = multiop.op_custom_gradient(lambda x: (ops.sum(ops.square(x)), lambda u: u * ops.cos(x)))
x = ops.convert_to_tensor([0.0])
print(float(multiop.grad(f)(x)[0]), float(multiop.jit(multiop.grad(lambda x: ops.sum(ops.erf(x))))(x)[0]))
print(float(multiop.jvp(lambda x: ops.sum(ops.sin(x)), (x,), (x + 2,))[1]))
print(ops.cast(ops.take(ops.convert_to_tensor([5.0, 7.0]), [1]), "int32"))
"""


@pytest.mark.parametrize(
    ("simulated", "told"),
    [
        (UNKNOWN, "jax 99.0.0 is outside the versions that multiop was tested on"),
        (LACKING, f"jax {jax.__version__} lacks parts that multiop needs (cannot import name 'escaped_tracer_error'"),
    ],
    ids=["unknown", "lacking"],
)
def test_parts_that_are_missing_are_not_missed(simulated, told):
    done = run(PROGRAM.replace("SIMULATED", simulated))
    assert done.stdout, done.stderr
    (warned,) = [line for line in done.stderr.splitlines() if "reverse mode alone" in line]
    assert warned.startswith(told)
    *numbers, taken = done.stdout.split()
    np.testing.assert_allclose([float(x) for x in numbers], [1, 2 / np.sqrt(np.pi), 2], rtol=1e-6)
    assert taken == "[7]"


def test_a_version_that_is_too_old_is_refused():
    done = run("import jax; jax.__version__ = '0.4.38'; import multiop; multiop.op_exp(1)")
    assert "BackendError" in done.stderr
    assert re.search(r"the jax backend needs jax>=0\.[5-9][.0-9]*, and 0\.4\.38 is installed", done.stderr)


def run(program):
    environment = os.environ | {"MULTIOP_BACKEND": "jax"}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
