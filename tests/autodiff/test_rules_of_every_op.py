"""Forward mode of rules made of each op: right where the rule is linear in the upstream gradient, otherwise refused."""

from __future__ import annotations

import numpy as np
import pytest

import multiop as mo
from multiop import errors
from multiop._loading.registry import active
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

pytestmark = pytest.mark.tier("full")

ROWS = {op: row for op, row in rows().items() if "float32" in row.dtypes}
# the size of its results depends on values, which a compiled program does not have
SIZED_BY_VALUES = {"op_bincount"}
# a rule is looked at where the upstream gradient is 0: an op that has no value there may say so
WITHOUT_VALUE_AT_ZERO = {"op_roots": errors.ArgumentError}
# NumPy tries a rule on two lists of numbers: what it raises there, and what looks linear on them, or is NaN on both
RAISED_ON_NUMPY = {
    "op_cholesky": errors.ArgumentError,
    "op_logm": errors.ArgumentError,
    **dict.fromkeys(["op_intersect1d", "op_nonzero", "op_setdiff1d"], errors.GradientRuleError),
    **dict.fromkeys(["op_union1d", "op_unique"], errors.GradientRuleError),
}
RAISED = {"numpy": RAISED_ON_NUMPY, "torch": {"op_convert_to_numpy": errors.UnsupportedError}}
MISSED_ON_NUMPY = {
    "op_batch_normalization",
    "op_erfcinv",
    "op_hard_shrink",
    "op_isclose",
    "op_logit",
    "op_ndtri",
    "op_segment_max",
    "op_segment_min",
}


def problems(op):
    """Return the first calls of an op, with inputs in float32."""
    return [Problem(getattr(mo, op), call, dtype="float32", name=op) for call in ROWS[op].calls[:3]]


def real_part(y):
    return mo.op_cast(mo.op_real(y) if "complex" in mo.op_dtype(y) else y, "float32")


@mo.op_custom_gradient
def first_of(x, y):
    """The threefold of x; zero goes back to y."""
    return 3.0 * x, lambda upstream: (3.0 * upstream, mo.op_zeros_like(y))


def with_rule(rule, x):
    """Return a custom gradient whose rule maps an upstream gradient of the shape of `x` to a list of tensors."""

    def grad(upstream):
        found = rule(upstream)
        return found if len(found) > 1 else found[0]

    return mo.op_custom_gradient(lambda *primals: (x * 1.0, grad))


def as_rule(problem, i):
    """Return the op as a function of its operand `i`, whose results are in float32."""
    tensors = [active().convert(x) for x in problem.arrays]
    return lambda x: [real_part(y) for y in problem.outputs(*tensors[:i], x, *tensors[i + 1 :])]


@pytest.mark.parametrize("op", sorted(ROWS))
def test_a_rule_that_is_an_op_is_linear_or_refused(backend, op, request):
    """What is accepted is additive, and forward mode is its transpose."""
    raised = WITHOUT_VALUE_AT_ZERO | RAISED.get(backend, {})
    refusals = (errors.NonLinearRuleError, raised.get(op, errors.NonLinearRuleError))
    if backend == "numpy" and op in MISSED_ON_NUMPY:
        request.applymarker(pytest.mark.xfail(strict=True, raises=AssertionError, reason="two tries do not show it"))
    rng = np.random.default_rng(0)
    for problem in problems(op):
        outputs = problem.run(problem.outputs)
        for i in problem.inexact if outputs else ():
            x = problem.arrays[i]
            if x.dtype.kind == "c":
                continue
            rule = as_rule(problem, i)
            primals = tuple(mo.op_zeros(y.shape) for y in outputs)
            custom = with_rule(rule, active().convert(x))
            try:
                tangent = mo.jvp(custom, primals, tuple(map(mo.op_ones_like, primals)))[1]
            except refusals:
                continue
            a, b = rng.normal(size=(2, *x.shape)).astype("float32")
            of_a, of_b, of_sum = ([mo.op_convert_to_numpy(y) for y in rule(active().convert(u))] for u in (a, b, a + b))
            for y, z, total in zip(of_a, of_b, of_sum, strict=True):
                np.testing.assert_allclose(y + z, total, rtol=1e-3, atol=1e-3)
            transposed = np.sum(mo.op_convert_to_numpy(tangent) * a)
            np.testing.assert_allclose(transposed, sum(map(np.sum, of_a)), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("op", sorted({op for op in ROWS if ROWS[op].differentiable} - SIZED_BY_VALUES))
@pytest.mark.parametrize("wrap", [lambda f: f, mo.jit], ids=["eager", "compiled"])
def test_zero_goes_back_through_every_op(backend, op, wrap):
    """Zero that goes back through an op in a rule is no constant."""
    for problem in problems(op):
        tensors = [active().convert(x) for x in problem.arrays]
        tangents = [active().convert(t) for t in problem.tangents]
        tangent = wrap(tangent_of(problem._differentiable(tensors)))
        found = tangent(mo.op_convert_to_tensor(2.0), [tensors[i] for i in problem.inexact], tangents)
        assert float(found) == 3.0


def tangent_of(op):
    """Return forward mode, in x, of a rule that differentiates `first_of(x, op(ys))`."""

    def f(x, *ys):
        return first_of(x, sum(mo.op_sum(real_part(y)) for y in op(*ys)))

    custom = mo.op_custom_gradient(lambda x, *ys: (f(x, *ys), lambda upstream: mo.vjp(f, x, *ys)[1](upstream)))
    return lambda x, ys, tangents: mo.jvp(custom, (x, *ys), (mo.op_ones_like(x), *tangents))[1]
