"""Tensors of several frameworks in one process: each op runs where its operands are."""

from __future__ import annotations

import contextvars
import threading

import numpy as np
import pytest

import multiop
from multiop import errors, ops
from multiop._loading import registry
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

X = np.linspace(0.1, 1.0, 6, dtype="float32").reshape(2, 3)


def run_alone(function):
    """Return what a function gives in a new thread without the choices of this one."""
    found = []
    thread = threading.Thread(target=lambda: found.append(contextvars.Context().run(function)))
    thread.start()
    thread.join()
    return found[0]


@pytest.fixture
def elsewhere(backend):
    """Make another backend the default, and return a tensor of the one of the test."""
    x, before = ops.convert_to_tensor(X), registry._backend
    multiop.set_backend("numpy" if backend != "numpy" else "torch")
    try:
        yield x
    finally:
        registry._backend = before


def test_every_kind_of_function_runs_on_the_backend_of_its_operands(backend, elsewhere):
    """An op, a composite, a transform and what it returns, an op of a namespace, and a rule, in any thread."""

    def compute():
        xp, kinds = multiop.namespace(elsewhere), []

        @xp.custom_gradient
        def doubled(x):
            def rule(upstream):
                kinds.append(multiop.backend())
                return ops.multiply(upstream, 3.0)

            return ops.multiply(x, 2.0), rule

        value, pull = xp.vjp(lambda x: ops.sum(ops.square(x)), elsewhere)
        found = [
            xp.add(elsewhere, 1), xp.trace(elsewhere), xp.linalg.norm(elsewhere), xp.nn.softmax(elsewhere), value,
            pull(value)[0], xp.grad(lambda x: ops.sum(doubled(x)))(elsewhere), xp.vmap(lambda x: ops.sum(x))(elsewhere),
            xp.jit(lambda x: ops.logsumexp(x))(elsewhere), xp.random.normal((2,), seed=1), xp.zeros((2,)),
            xp.vectorize(lambda x: ops.square(x))(elsewhere), xp.get_item(elsewhere, [True, False]),
        ]  # fmt: skip
        return found, kinds

    module = registry.load(backend)
    for found, kinds in (compute(), run_alone(compute)):
        assert [module.is_tensor(x) for x in found] == [True] * len(found)
        assert kinds == [backend] * len(kinds) != []
        np.testing.assert_allclose(module.op_convert_to_numpy(found[6]), np.full((2, 3), 3.0))
        np.testing.assert_allclose(module.op_convert_to_numpy(found[5]), 2 * X * (X * X).sum(), rtol=1e-5)


def test_a_compiler_traces_a_namespace(backend, elsewhere):
    def f(x):
        xp = multiop.namespace(x)
        return xp.sum(xp.softmax(xp.add(x, 1.0)) * xp.cast(2.0, xp.float32))

    outside = multiop.namespace(elsewhere)
    for function in (f, lambda x: outside.sum(outside.softmax(x)) * 2.0):
        if backend == "torch":
            import torch

            compiled = torch.compile(function, fullgraph=True, backend="eager")
        elif backend == "jax":
            import jax

            compiled = jax.jit(function)
        elif backend == "tensorflow":
            import tensorflow as tf

            compiled = tf.function(function)
        else:
            compiled = function
        np.testing.assert_allclose(np.asarray(compiled(elsewhere)), 4.0, rtol=1e-5)


def test_a_rule_runs_on_its_backend_when_the_framework_calls_it(multiop_backend):
    if multiop_backend != "torch":
        pytest.skip("the others differentiate within a transform")
    import torch

    seen = []

    @multiop.op_custom_gradient
    def cubed(x):
        def rule(upstream):
            seen.append(multiop.backend())
            return ops.multiply(upstream, 3.0)

        return ops.multiply(x, 1.0), rule

    x = torch.ones(2, requires_grad=True)
    with multiop.use_backend("torch"):
        y = cubed(x).sum()
    with multiop.use_backend("numpy"):
        y.backward()
    assert seen == ["torch"] and x.grad.tolist() == [3.0, 3.0]


@pytest.mark.tier("full")
def test_every_op_runs_on_its_backend(backend):
    """Each call of the table gives what it gives where that backend is the active one."""
    xp, other, differ = multiop.namespace(ops.zeros(2)), "numpy" if backend != "numpy" else "torch", []
    functions = {f.__qualname__: f for part in (xp, xp.image, xp.linalg) for f in vars(part).values() if callable(f)}
    for name, row in rows().items():
        dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
        for n, call in enumerate(row.calls[:2]):
            problem = Problem(getattr(multiop, name), call, dtype=dtype, seed=n)
            xs = [ops.convert_to_tensor(x) for x in problem.arrays]
            expected = multiop.tree.leaves(problem.apply(problem.f, xs))
            with multiop.use_backend(other):
                found = multiop.tree.leaves(problem.apply(functions[name], xs))
            if [*map(type, found)] != [*map(type, expected)]:
                differ.append((name, call))
    assert not differ


def test_which_backend_operands_choose(backend):
    x = ops.convert_to_tensor(X)
    names = {id(multiop.namespace(*xs)) for xs in ([x], [x, X], [2.0, X, [x]], [{"w": x}, None])}
    assert names == {id(multiop.namespace(x))}
    assert multiop.namespace(1.0, "a") is multiop.namespace(x)  # the active one
    assert (multiop.namespace(X).backend(), multiop.namespace(x).backend()) == ("numpy", backend)
    assert multiop.namespace(x).stack.__name__ == ops.stack.__name__
    with pytest.raises(AttributeError, match="no function 'GradientTape'"):
        _ = multiop.namespace(x).GradientTape


def test_a_transform_of_the_active_backend_differentiates_through_a_namespace(backend):
    def f(x):
        return multiop.namespace(x).sum(multiop.namespace(x, X).square(x) * multiop.namespace(x).square(x))

    x = ops.convert_to_tensor(X)
    found = multiop.grad(f)(x), multiop.jvp(f, (x,), (ops.ones_like(x),))[1]
    found += (multiop.grad(lambda x: ops.sum(multiop.grad(f)(x)))(x), multiop.vmap(f)(x))
    expected = 4 * X**3, (4 * X**3).sum(), 12 * X**2, (X**4).sum(1)
    for y, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(y), right, rtol=1e-5)


def test_tensors_of_two_frameworks_are_refused():
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")
    with pytest.raises(errors.ArgumentTypeError, match=r"torch and .* of jax"):
        multiop.namespace(torch.ones(2), [jnp.ones(2)])
    with pytest.raises(errors.ArgumentTypeError, match="numpy, differentiated"), multiop.use_backend("numpy"):
        multiop.grad(lambda x: multiop.namespace(x, torch.ones(2)).sum(x))(X[0])
