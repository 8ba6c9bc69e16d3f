"""PyTorch of an unknown version: `test_versions_torch.py` runs this file in processes of their own."""

from __future__ import annotations

import importlib
import os
import threading
import warnings

import numpy as np
import pytest
import torch
import torch._higher_order_ops  # before it lacks anything
from torch.autograd import forward_ad

from multiop._loading import registry, versions

# what is missing, or otherwise than it was, while multiop is imported; PyTorch's own Python calls these parts too
PARTS = {
    "torch._C._are_functorch_transforms_active", "torch._C._len_torch_dispatch_stack", "torch._C._get_tracing_state",
    "torch._C._TorchDispatchModeKey", "torch._C._get_dispatch_mode", "torch._C._dispatch_tls_is_dispatch_key_included",
    "torch._C._set_grad_enabled", "torch._C._functorch", "torch.autograd.forward_ad._current_level",
    "torch._functorch.pyfunctorch.temporarily_clear_interpreter_stack",
    "torch.fx.experimental.proxy_tensor.get_proxy_mode", "torch.fx.experimental.proxy_tensor.make_fx",
}  # fmt: skip
CASE = os.environ["MULTIOP_TEST_PARTS"]
versions.VERSIONS["torch"] = versions.Versions((2, 0), (2, 0), (2, 1))


def other(needed, *, also):
    """Stand for a part that takes other arguments."""
    raise AssertionError


def loaded():
    """Load the backend; return what it warned of."""
    held = []
    for path in PARTS if CASE != "all" else ():
        module, _, name = path.rpartition(".")
        holder = importlib.import_module(module)
        held.append((holder, name, getattr(holder, name)))
        delattr(holder, name) if CASE == "missing" else setattr(holder, name, other)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            registry.load("torch")
    finally:
        for holder, name, part in held:
            setattr(holder, name, part)
    return [str(one.message) for one in caught]


WARNED = loaded()

import multiop
from multiop import errors, ops
from multiop.backends.torch import _internals

X = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64)
S = torch.sigmoid(X)


@pytest.fixture(autouse=True)
def _torch():
    with multiop.use_backend("torch"):
        yield


@multiop.op_custom_gradient
def log1pexp(x):
    e = ops.exp(x)
    return ops.log1p(e), lambda u: u * (1 - 1 / (1 + e))


def summed(f):
    return lambda *args: ops.sum(f(*args))


def equal(found, expected):
    torch.testing.assert_close(found, torch.as_tensor(expected, dtype=found.dtype), rtol=1e-9, atol=1e-12)


def refused():
    return pytest.raises(errors.UnsupportedError, match=r"not public.*pip install 'torch>=2.0,<2.1'")


def test_it_is_said_once():
    assert [message for message in WARNED if "torch>=2.0,<2.1" in message and "reverse mode alone" in message]
    assert set(_internals.MISSING) == (PARTS if CASE != "all" else set())


def test_ops_and_transforms():
    equal(ops.softmax(X), torch.softmax(X, 0))
    f = summed(lambda x: x**3)
    equal(multiop.grad(f)(X), 3 * X**2)
    equal(multiop.grad(summed(multiop.grad(f)))(X), 6 * X)
    equal(multiop.hvp(f, (X,), (S,)), 6 * X * S)
    equal(multiop.jvp(f, (X,), (S,))[1], (3 * X**2 * S).sum())
    equal(multiop.jvp(multiop.grad(f), (X,), (S,))[1], 6 * X * S)
    equal(multiop.hessian(f)(X), torch.diag(6 * X))
    equal(multiop.vmap(multiop.grad(f))(torch.stack([X, S])), 3 * torch.stack([X, S]) ** 2)
    equal(
        multiop.vmap(lambda x: ops.cond(ops.sum(x) > 1, lambda: x, lambda: -x))(torch.stack([X, S])),
        torch.stack([-X, S]),
    )
    equal(multiop.grad(summed(lambda x: multiop.checkpoint(lambda x: ops.sin(x) ** 2)(x)))(X), torch.sin(2 * X))
    assert ops.scan(lambda c, x: (c + x, c), X[0], X[:0])[1].shape == (0,)


@pytest.mark.parametrize("f", [ops.relu, ops.absolute, ops.logsumexp, ops.max, ops.norm, ops.softmax])
def test_ops_with_derivatives_of_their_own(f):
    native = {
        ops.relu: torch.relu,
        ops.absolute: torch.abs,
        ops.logsumexp: lambda x: torch.logsumexp(x, -1),
        ops.max: torch.max,
        ops.norm: torch.linalg.norm,
        ops.softmax: lambda x: torch.softmax(x, -1),
    }[f]
    found = torch.autograd.functional.jacobian(f, X)
    expected = torch.autograd.functional.jacobian(native, X)
    equal(found, expected)
    equal(torch.func.jacfwd(f)(X), expected)
    equal(torch.func.jacrev(f)(X), expected)
    equal(torch.func.hessian(summed(lambda x: f(x) ** 2))(X), torch.func.hessian(summed(lambda x: native(x) ** 2))(X))


@pytest.mark.parametrize("wrap", [lambda f: f, multiop.jit], ids=["eager", "jit"])
def test_first_second_and_third_order(wrap):
    f, expected = summed(log1pexp), S
    for following in (S * (1 - S), S * (1 - S) * (1 - 2 * S), None):
        f = multiop.grad(f)
        equal(wrap(f)(X), expected)
        f, expected = summed(f), following


def test_native_autograd_and_several_calls():
    x = X.clone().requires_grad_()
    y = log1pexp(x)
    equal(torch.autograd.grad(y.sum(), x, retain_graph=True)[0], S)
    equal(torch.autograd.grad(y.sum(), x)[0], S)
    multiop.op_custom_gradient(lambda x: (x * x, lambda u: u * 100))(x).sum().backward()
    equal(x.grad, torch.full((3,), 100.0))


def test_trees_integers_and_several_outputs():
    @multiop.op_custom_gradient
    def f(tree, k):
        x, y = tree["x"], tree["y"]
        return (x * y, ops.argmax(y)), lambda u, none: ({"x": u * y * 2, "y": None}, None)

    found = multiop.grad(lambda tree: ops.sum(f(tree, torch.tensor(3))[0]))({"x": X, "y": 2 * X})
    equal(found["x"], 4 * X)
    equal(found["y"], 0 * X)


def test_complex():
    f = multiop.op_custom_gradient(lambda z: (z * z, lambda u: u * ops.conj(2 * z)))
    z = torch.tensor(0.5 + 2j)
    equal(multiop.grad(lambda z: ops.real(f(z)))(z), multiop.grad(lambda z: ops.real(z * z))(z))


def test_an_output_that_is_an_input_or_a_view():
    x = X.clone().requires_grad_()
    for f in (lambda x: x, lambda x: x[1:]):
        y = multiop.op_custom_gradient(lambda x, f=f: (f(x), lambda u: ops.ones_like(x) * 5))(x)
        equal(torch.autograd.grad(y.sum(), x)[0], torch.full((3,), 5.0))


def closed_over_by(y):
    return multiop.op_custom_gradient(lambda x: (x * y, lambda u: u * y))


@pytest.mark.parametrize("of", [lambda w: w, lambda w: w * 2], ids=["leaf", "intermediate"])
def test_what_is_closed_over(of):
    w = X.clone().requires_grad_()
    with pytest.raises(errors.ClosedOverError, match="y "):
        closed_over_by(of(w))(X)
    equal(closed_over_by(of(w).detach())(X), X * of(X))
    x = X.clone().requires_grad_()
    with pytest.raises(errors.ClosedOverError):
        closed_over_by(of(x))(x)


def test_variables():
    def rule(u, variables):
        assert variables == []
        return u * 10, []

    f = multiop.op_custom_gradient(lambda x: (x * 2, rule))
    equal(multiop.grad(summed(f))(X), torch.full((3,), 10.0))
    w = X.clone().requires_grad_()
    with refused():
        multiop.op_custom_gradient(lambda x: (x * w, rule))(X)


def test_a_rule_may_close_over_more_than_its_primals():
    w = X.clone().requires_grad_()

    @multiop.op_custom_gradient
    def f(x):
        return x * 1.0, lambda u: u * w

    g = multiop.grad(summed(f))(X)
    equal(g, X)
    equal(torch.autograd.grad(g.sum(), w)[0], torch.ones(3))


def test_what_is_refused():
    with refused(), multiop.GradientTape():
        pass
    with refused():
        multiop.jvp(log1pexp, (X,), (X,))
    with refused():
        multiop.vmap(log1pexp)(X)
    with refused():
        torch.func.grad(summed(log1pexp))(X)
    with forward_ad.dual_level(), refused():
        log1pexp(forward_ad.make_dual(X, X))


def test_a_residual_changed_in_place():
    x = X.clone().requires_grad_()
    held = []

    @multiop.op_custom_gradient
    def f(x):
        e = ops.exp(x)
        held.append(e)
        return e * 1.0, lambda u: u * e

    y = f(x).sum()
    with torch.no_grad():
        held[0].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_half_precision_and_threads():
    found = {}

    def run(k):
        with multiop.use_backend("torch"):
            found[k] = multiop.grad(summed(log1pexp))(X.half() * k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for k, g in found.items():
        assert g.dtype is torch.float16
        np.testing.assert_allclose(g.numpy(), torch.sigmoid(X * k).numpy(), rtol=4e-3)
