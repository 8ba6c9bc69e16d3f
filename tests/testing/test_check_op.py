"""`check_op` passes what is right, and names the culprit of each planted fault."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import multiop as mo
from multiop._loading import registry
from multiop._values import dtypes
from multiop.testing import (
    Mismatch,
    check_compiled,
    check_dtypes,
    check_gradients,
    check_op,
    check_second_order,
    check_values,
    check_vmap,
    distinct,
    integers,
    normal,
    positive,
    spd,
)
from multiop.testing._case import has_gradient
from multiop.testing._checks import check_gradient as check_row_gradient, check_pin, check_row_values
from multiop.testing._problem import Problem
from multiop.testing.cases import rows


def product(x, y):
    return x * x * y


def with_rule(rule):
    """Return `product` with the gradient `rule(upstream, x, y)`."""

    @mo.op_custom_gradient
    def product(x, y):
        return x * x * y, lambda upstream: rule(upstream, x, y)

    return product


right = with_rule(lambda u, x, y: (2 * u * x * y, u * x * x))


@pytest.mark.parametrize("dtype", sorted({*dtypes.INTEGER, *dtypes.FLOATING}))
def test_distinct_draws_distinct_entries(dtype):
    drawn = distinct(4, 5).draw(np.random.default_rng(0), dtype)
    assert np.unique(drawn).size == 20


def test_a_notebook_shows_what_was_checked(backend):
    shown = check_op(product, normal(3), normal(3), backends=[backend], fast=True)._repr_html_()
    assert "all checks pass" in shown and "<th>gradient</th>" in shown


def test_what_is_right_passes(backend):
    found = check_op(right, normal(2, 3), positive(2, 3), reference=product, backends=[backend])
    assert set(found) == {"value", "gradient", "second order", "forward mode", "vmap", "compiled"}
    assert max(found.values()) < 1e-9


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_every_dtype(backend, dtype):
    found = check_op(product, normal(3), normal(3), backends=[backend], dtypes=[dtype], compiled=False)
    assert {"value", "gradient", "second order"} <= set(found)


def test_the_pieces(backend):
    only = {"backends": [backend]}
    assert check_values(product, normal(3), normal(3), reference=product, **only) < 1e-15
    assert check_gradients(product, normal(3), normal(3), **only) < 1e-9
    assert check_second_order(product, normal(3), normal(3), **only) < 1e-9
    assert check_vmap(product, normal(3), normal(3), **only) < 1e-14
    assert check_compiled(product, normal(3), normal(3), **only) < 1e-14
    check_dtypes(product, normal(3), normal(3), **only)
    check_dtypes(mo.op_isfinite, normal(3), returns="bool", **only)


def test_what_was_not_checked_is_not_told(backend):
    assert set(check_op(mo.op_floor, integers(3), backends=[backend], vmap=False, compiled=False)) == {"value"}
    assert set(check_op(product, normal(3), normal(3), backends=[backend], order=0, vmap=False, compiled=False)) == {
        "value"
    }


def test_fast_checks_the_value_and_the_gradient(backend):
    assert set(check_op(right, normal(3), positive(3), backends=[backend], fast=True)) == {"value", "gradient"}
    wrong = with_rule(lambda u, x, y: (2 * u * x * y, -u * x * x))
    with pytest.raises(
        Mismatch, match=r"(?s)gradient of product.*respect to y.*, in \S*test_check_op.py:\d+; .*fast=True"
    ):
        check_op(wrong, normal(3), positive(3), backends=[backend], fast=True)
    assert set(check_op(right, normal(3), positive(3), backends=[backend], fast=True, order=0)) == {"value"}


def test_pytrees_and_fixed_arguments(backend):
    def loss(params, x, labels, scale=1.0):
        y = mo.op_matmul(x, params["w"]) + params["b"]
        return scale * mo.op_sum(mo.op_take_along_axis(y, mo.op_expand_dims(labels, 1), axis=1))

    params = {"w": normal(3, 4), "b": normal(4)}
    check_op(loss, params, np.ones((2, 3)), integers(2, low=0, high=4), scale=2.0, backends=[backend], compiled=False)


def test_matrices(backend):
    def trace_of_square(a):
        return mo.op_sum(mo.op_matmul(a, a) * mo.op_eye(3, dtype=mo.op_dtype(a)))

    check_op(trace_of_square, spd(3, 3), backends=[backend], compiled=False)


def stateful():
    counter = itertools.count(1)
    return lambda x: x * next(counter)


def in_float32(x):
    return mo.op_cast(mo.op_sin(mo.op_cast(x, "float32")), "float64")


def detached_residual(x, y):
    return with_rule(lambda u, x, y: (2 * u * mo.op_stop_gradient(x) * y, u * x * x))(x, y)


def summed_wrongly(x, y):
    @mo.op_custom_gradient
    def scale(x, y):
        return x * y, lambda u: (u * y, mo.op_sum(u * x, axis=1))

    return scale(x, y)


def reads_values(x):
    return x * 2.0 if mo.op_convert_to_numpy(mo.op_sum(x)) < 1e9 else x


# what is wrong, the function, its inputs, what the message says
FAULTS = [
    ("a wrong sign", with_rule(lambda u, x, y: (2 * u * x * y, -u * x * x)), 2, "gradient of product.*respect to y"),
    ("a dropped term", with_rule(lambda u, x, y: (2 * u * x * y, None)), 2, "gradient of product.*respect to y"),
    ("a missing factor", with_rule(lambda u, x, y: (u * x * y, u * x * x)), 2, "gradient of product.*respect to x"),
    ("swapped gradients", with_rule(lambda u, x, y: (u * x * x, 2 * u * x * y)), 2, "gradient of product"),
    ("the upstream left out", with_rule(lambda u, x, y: (2 * x * y, u * x * x)), 2, "gradient of product|NonLinear"),
    ("half an error", with_rule(lambda u, x, y: (2.000001 * u * x * y, u * x * x)), 2, "respect to x"),
    ("a residual without its gradient", detached_residual, 2, "second order of detached_residual"),
    ("a sum over the wrong axis", summed_wrongly, (normal(3, 3), normal(3)), "respect to y"),
    ("a gradient of the wrong shape", with_rule(lambda u, x, y: (mo.op_sum(u), u * x * x)), 2, "GradientRuleError"),
    ("one gradient of two", with_rule(lambda u, x, y: u * x), 2, "raises GradientRuleError"),
    ("a gradient that is NaN", with_rule(lambda u, x, y: (2 * u * x * y * np.nan, u * x * x)), 2, "respect to x"),
    ("state", stateful(), 1, "a second call gives another result"),
    ("float32 inside", in_float32, 1, "less precision than float64"),
    ("a Python branch on values", reads_values, 1, "reads_values.* raises"),
    ("a function that fails", lambda x: mo.op_matmul(x, mo.op_ones((7, 7))), 1, "raises ArgumentError"),
]


@pytest.mark.parametrize(("f", "inputs", "message"), [one[1:] for one in FAULTS], ids=[one[0] for one in FAULTS])
def test_faults_in_functions(backend, f, inputs, message):
    args = inputs if isinstance(inputs, tuple) else [normal(4)] * inputs
    if f is reads_values and backend == "numpy":  # which traces nothing: a derivative finds the branch
        message = "its gradient would end"
    with pytest.raises(Mismatch, match=f"(?s){message}") as caught:
        check_op(f, *args, backends=[backend])
    assert backend in str(caught.value)
    assert "again: check_op(" in str(caught.value)
    assert "inputs of float64" in str(caught.value)


def wrong_transform(monkeypatch, name, fault):
    faultless = getattr(mo, name)
    monkeypatch.setattr(mo, name, lambda *args, **kwargs: fault(faultless, *args, **kwargs))


def test_a_rule_ignored_in_forward_mode(backend, monkeypatch):
    wrong_transform(monkeypatch, "jvp", lambda jvp, f, xs, ts: (jvp(f, xs, ts)[0], [t * 0 for t in jvp(f, xs, ts)[1]]))
    with pytest.raises(Mismatch, match="forward mode of product"):
        check_op(product, normal(3), normal(3), backends=[backend])


def test_entries_mixed_up_by_vmap(backend, monkeypatch):
    wrong_transform(monkeypatch, "vmap", lambda vmap, f: lambda *xs: [mo.op_flip(y, 0) for y in vmap(f)(*xs)])
    with pytest.raises(Mismatch, match="vmap of the value of product"):
        check_op(product, normal(3), normal(3), backends=[backend])


def test_a_gradient_lost_by_the_compiler(backend, monkeypatch):
    wrong_transform(monkeypatch, "jit", lambda jit, f: lambda *xs: [f(*xs)[0], *(y * 0 for y in f(*xs)[1:])])
    with pytest.raises(Mismatch, match="compiled gradient of product"):
        check_op(product, normal(3), normal(3), backends=[backend])


def test_wrong_dtypes(backend):
    with pytest.raises(Mismatch, match=r"is float32 for inputs of float64; float64 is expected"):
        check_dtypes(lambda x: mo.op_cast(x, "float32"), normal(3), dtypes=["float64"], backends=[backend])


def test_a_numpy_reference(backend):
    with pytest.raises(Mismatch, match=r"relative error .*worst is entry \[\d\]: .* is expected"):
        check_op(mo.op_var, normal(4, 2), axis=0, backends=[backend], reference=lambda x, axis: x.var(axis, ddof=1))


def test_options_are_checked(backend):
    for options, message in [
        ({"modes": "reverse"}, "modes"),
        ({"modes": ["backward"]}, "modes"),
        ({"order": 3}, "order"),
        ({"dtypes": "float32"}, "dtypes: 'float32' is given; a sequence"),
        ({"backend": "jax"}, "op_exp has no parameter 'backend'; did you mean 'backends'?"),
        ({"dtype": "float32"}, "op_exp has no parameter 'dtype'; did you mean 'dtypes'?"),
        ({"reference": lambda x: undefined(x)}, "reference: it takes the tensors of no backend"),  # noqa: F821
    ]:
        with pytest.raises(mo.errors.ArgumentError, match=message):
            check_op(mo.op_exp, normal(3), backends=[backend], compiled=False, **options)
    with pytest.raises(mo.errors.ArgumentError, match="backends: 'torch' is given; a sequence"):
        check_op(mo.op_exp, normal(3), backends="torch")
    with pytest.raises(mo.errors.DTypeError, match="unknown dtype 'float31'; known dtypes"):
        check_op(mo.op_exp, normal(3), backends=[backend], dtypes=["float31"])


def test_keywords_of_the_function_pass(backend):
    def raised(x, dtype=3, **more):
        return x ** (dtype + more.get("orders", 0))

    assert check_op(raised, normal(3), backends=[backend], compiled=False, dtype=1, orders=1)


def test_a_rule_that_differs_on_purpose(backend):
    @mo.op_custom_gradient
    def straight_through(x):
        return mo.op_round(x), lambda u: u

    with pytest.raises(Mismatch, match="gradient of straight_through"):
        check_op(straight_through, normal(3), backends=[backend], compiled=False)
    assert check_op(straight_through, normal(3), backends=[backend], compiled=False, numerical=False)["gradient"] == 0.0


# faults planted in a backend

BACKEND_FAULTS = [
    ("op_tanh", lambda f: lambda x: f(x) * 1.00001),
    ("op_negative", lambda f: lambda x: x),
    ("op_subtract", lambda f: lambda x1, x2: f(x2, x1)),
    ("op_var", lambda f: lambda x, axis, keepdims: f(x, axis, keepdims) * 1.5),
    ("op_where", lambda f: lambda condition, x1, x2: f(condition, x2, x1)),
    ("op_sum", lambda f: lambda x, axis, keepdims: f(x, axis, False)),
    ("op_exp", lambda f: lambda x: registry.active().stop_gradient(f(x))),
    ("op_maximum", lambda f: lambda x1, x2: mo.op_where(mo.op_greater_equal(x1, x2), x1, x2)),
    ("op_relu", lambda f: lambda x: mo.op_where(mo.op_greater_equal(x, 0), x, 0)),
    ("op_argmax", lambda f: lambda x, axis, keepdims: f(x, axis, keepdims) + 1),
    ("op_logsumexp", lambda f: lambda x, axis, keepdims: mo.op_log(mo.op_sum(mo.op_exp(x), axis, keepdims))),
    ("op_concatenate", lambda f: lambda xs, axis: f(xs[::-1], axis)),
]


def check_row(op):
    row = rows()[op]
    for n, one in enumerate(row.calls):
        problem = Problem(getattr(mo, op), one, dtype="float32", seed=n, name=op)
        check_row_values(problem, row)
        problem = Problem(getattr(mo, op), one, dtype="float64", seed=n, name=op)
        if row.differentiable and problem.is_differentiable:
            check_row_gradient(problem, row.reference, analytic=row.analytic)
    for pin in row.pins:
        if has_gradient(pin) or pin.value is not None:
            check_pin(getattr(mo, op), pin, ulps=row.ulps, name=op)


@pytest.mark.parametrize(("op", "fault"), BACKEND_FAULTS, ids=[op for op, _ in BACKEND_FAULTS])
def test_faults_in_a_backend(backend, multiop_x64, monkeypatch, op, fault):
    check_row(op)
    monkeypatch.setattr(registry.active(), op, fault(getattr(registry.active(), op)))
    with pytest.raises(Mismatch, match=f"{op}.* on {backend}"):
        check_row(op)


# faults that show in a comparison


def only_on(name, fault):
    """Return a function that is wrong on only one backend."""

    def swish(x):
        y = x * mo.op_sigmoid(x)
        return fault(x, y) if mo.backend() == name else y

    return swish


DIFFERENCES = [
    ("a value", lambda x, y: y * (1 + 1e-12), "value of swish"),
    ("a sign", lambda x, y: -y, "value of swish"),
    ("a shape", lambda x, y: mo.op_expand_dims(y, 0), "shape"),
    ("a dtype", lambda x, y: mo.op_cast(y, "float32"), "dtype|less precision"),
    ("one result more", lambda x, y: (y, y), "results where"),
    ("a NaN", lambda x, y: y * np.nan, "value of swish"),
    ("an exception", lambda x, y: mo.op_reshape(y, (99,)), "raises ArgumentError"),
    ("a missing gradient", lambda x, y: mo.op_stop_gradient(y), "gradient of swish"),
]


@pytest.mark.cross
@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow"])
@pytest.mark.parametrize(("fault", "message"), [one[1:] for one in DIFFERENCES], ids=[one[0] for one in DIFFERENCES])
def test_the_backend_that_is_off_is_named(name, fault, message):
    with pytest.raises(Mismatch, match=message) as caught:
        check_op(only_on(name, fault), normal(4), compiled=False, vmap=False, numerical=False)
    assert f"{name} is off" in str(caught.value) or f"on {name}" in str(caught.value)


@pytest.mark.cross
def test_native_references_of_each_framework():
    import jax
    import tensorflow as tf
    import torch

    def swish(x):
        return x * mo.op_sigmoid(x)

    for reference in (torch.nn.functional.silu, jax.nn.silu, tf.nn.silu, lambda x: x / (1 + np.exp(-x))):
        found = check_op(swish, normal(4), reference=reference, compiled=False, vmap=False)
        assert 0 <= found["gradient"] < 1e-9
    for wrong in (torch.nn.functional.relu, jax.nn.relu, tf.nn.relu, np.tanh):
        with pytest.raises(Mismatch, match=r"value of swish|swish\(normal\(4\)\) on"):
            check_op(swish, normal(4), reference=wrong, compiled=False, vmap=False)


@pytest.mark.cross
def test_a_kink_is_held_against_the_native_gradient():
    import torch

    @mo.op_custom_gradient
    def magnitude(x):
        return mo.op_abs(x), lambda u: u * x / mo.op_abs(x)

    with pytest.raises(Mismatch, match=r"gradient of magnitude.*entry \[0\]: nan where 0 is expected"):
        check_op(magnitude, np.array([0.0, 1.0]), reference=torch.abs, numerical=False, compiled=False, vmap=False)
