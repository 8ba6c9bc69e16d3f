"""What PyTorch has had silently wrong, in some version, is right or an error in multiop; and an unknown PyTorch.

There, ops and transforms work, and custom gradients in reverse mode.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import multiop
from multiop import ops

X = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64)
V = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)


@pytest.mark.rotating
@pytest.mark.parametrize("parts", ["all", "missing", "other"])
def test_an_unknown_version(parts, passed_alone):
    assert passed_alone("unknown.py", MULTIOP_TEST_PARTS=parts) > 20


@pytest.fixture
def on_torch():
    with multiop.use_backend("torch"):
        yield


@multiop.op_custom_gradient
def tenfold(x):
    return x * x, lambda u: 10 * u * x


def with_break(x):
    torch._dynamo.graph_break()
    return x * x


COMPILED = {
    "grad": (lambda x: multiop.grad(lambda x: ops.sum(x**3))(x), 3 * X**2),
    "grad, a break inside": (lambda x: multiop.grad(lambda x: ops.sum(with_break(x) * x))(x), 3 * X**2),
    "vjp, a break inside": (lambda x: multiop.vjp(with_break, x)[1](V)[0], 2 * X * V),
    "grad of a rule": (lambda x: multiop.grad(lambda x: ops.sum(tenfold(x) * x))(x), 11 * X**2),
    "jvp of a rule": (lambda x: multiop.jvp(tenfold, (x,), (V,))[1], 10 * X * V),
    "vmap of a rule": (lambda x: multiop.vmap(multiop.grad(tenfold))(x), 10 * X),
    "checkpoint": (lambda x: multiop.grad(lambda x: ops.sum(multiop.checkpoint(tenfold)(x)))(x), 10 * X),
    "attach_gradient": (
        lambda x: torch.func.vjp(lambda x: ops.attach_gradient(x * x, 7 * x, x), x)[1](V)[0],
        7 * X * V,
    ),
    "torch.func.vjp of a rule": (lambda x: torch.func.vjp(tenfold, x)[1](V)[0], 10 * X * V),
    "torch.func.jvp of a rule": (lambda x: torch.func.jvp(tenfold, (x,), (V,))[1], 10 * X * V),
    "torch.func.jacrev of a rule": (lambda x: torch.func.jacrev(tenfold)(x), torch.diag(10 * X)),
    "torch.func.vjp of a branch": (
        lambda x: torch.func.vjp(lambda x: ops.cond(ops.sum(x) > 0, lambda: x * x, lambda: -x), x)[1](V)[0],
        2 * X * V,
    ),
    "torch.func.vjp of a loop": (
        lambda x: torch.func.vjp(lambda x: ops.fori_loop(0, 2, lambda i, c: c * x, x), x)[1](V)[0],
        3 * X**2 * V,
    ),
    "torch.func.vjp of vmap": (lambda x: torch.func.vjp(multiop.vmap(lambda y: y * y), x)[1](V)[0], 2 * X * V),
}
SOME = ("vjp, a break inside", "torch.func.vjp of a rule")
REFUSED = (torch._dynamo.exc.TorchDynamoException, multiop.errors.MultiopError)


@pytest.mark.parametrize("is_tracked", [False, pytest.param(True, marks=pytest.mark.tier("full"))], ids=["", "tracked"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in SOME else pytest.mark.tier("full")) for name in COMPILED]
)
def test_the_users_own_compiler_is_right_or_an_error(name, is_tracked, on_torch):
    """Before PyTorch 2.12, a pullback that it did not trace from its beginning is 0 in the graph.

    https://github.com/pytorch/pytorch/issues/172386; Dynamo also drops the jvp of an autograd Function:
    https://github.com/pytorch/pytorch/issues/192985
    """
    fun, expected = COMPILED[name]
    # torch.cond inside of torch.func is an assertion of PyTorch's own
    refused = (*REFUSED, AssertionError) if name.endswith("branch") else REFUSED
    torch._dynamo.reset()
    try:
        found = torch.compile(fun, backend="aot_eager")(X.clone().requires_grad_(is_tracked))
    except refused:
        assert name.startswith("torch.func") or name == "attach_gradient", "multiop's own transforms run"
        return
    torch.testing.assert_close(found.detach(), expected)


@pytest.mark.parametrize("name", ["sum", "rule"])
def test_a_compiled_pullback(name, on_torch):
    """That of PyTorch is 0 before 2.12: https://github.com/pytorch/pytorch/issues/172386."""
    fun, expected = {"sum": (lambda x: x * x, 2 * X * V), "rule": (tenfold, 10 * X * V)}[name]
    pullback = multiop.vjp(fun, X)[1]
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(lambda v: pullback(v)[0], backend="aot_eager")(V), expected)


def matrix(t):
    return ops.stack(
        [ops.stack([2 + t, 1 - t * t, t]), ops.stack([t * t, 3 + t, 1 - t]), ops.stack([1 - t, t, 4 + t * t])]
    )


def vector(t):
    return ops.stack([t, t + 1, 2 - t, t - 1, 2 * t + 1, t + 3])


# https://github.com/pytorch/pytorch/issues/198017, which lists what PyTorch differentiates wrongly in forward mode
SECOND = {
    "det": lambda t: ops.det(matrix(t)),
    "slogdet": lambda t: ops.slogdet(matrix(t))[1],
    "solve": lambda t: ops.solve(matrix(t), vector(t)[:3]),
    "inv": lambda t: ops.inv(matrix(t)),
    "cholesky_inverse": lambda t: ops.cholesky_inverse(matrix(t) @ ops.transpose(matrix(t))),
    "cumprod at 0": lambda t: ops.cumprod(vector(t)),
    "prod at 0": lambda t: ops.prod(vector(t)),
    "segment_prod": lambda t: ops.segment_prod(vector(t), [0, 0, 1, 1, 1, 2], 3),
    "layer_normalization": lambda t: ops.layer_normalization(vector(t), vector(t * t)),
    "logaddexp": lambda t: ops.logaddexp(400 * t, 1 - 400 * t),
    "hard_silu": lambda t: ops.hard_silu(vector(t)),
}


def by_jvp(f):
    return lambda t: multiop.jvp(f, (t,), (torch.ones_like(t),))[1]


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_by_each_mode(name, on_torch):
    """Each of the four is the slope of the first derivative in reverse mode, which PyTorch had right."""
    weights = torch.linspace(-1, 2, 9, dtype=torch.float64)

    def f(t):
        y = ops.reshape(SECOND[name](t), (-1,))
        return ops.sum(y * y * weights[: y.shape[0]])

    t, h = torch.tensor(1.0, dtype=torch.float64), 1e-3
    if name == "hard_silu":
        t = t + 0.25  # its second derivative has steps at the bounds
    first = [float(multiop.grad(f)(t + k * h)) for k in (2, 1, -1, -2)]
    expected = float(np.dot([-1, 8, -8, 1], first)) / (12 * h)
    found = [float(outer(inner(f))(t)) for outer, inner in itertools.product([multiop.grad, by_jvp], repeat=2)]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(float(by_jvp(f)(t)), float(multiop.grad(f)(t)), rtol=1e-10, atol=1e-10)


def test_nested_forward_mode_of_a_rule(on_torch):
    """That of an autograd Function is 0 from the second order on: https://github.com/pytorch/pytorch/issues/197867."""
    square = multiop.op_custom_gradient(lambda x: (x * x, lambda u: 2 * u * x))
    f, x = (lambda x: ops.sum(square(square(x)))), torch.tensor([3.0], dtype=torch.float64)
    for expected in (108.0, 108.0, 72.0):
        f = multiop.jacfwd(f)
        assert float(f(x).squeeze()) == expected


def test_the_gradient_at_the_bounds_of_hard_silu(on_torch):
    """That of PyTorch 2.6 is the parabola's: https://github.com/pytorch/pytorch/issues/147801."""
    x = torch.tensor([-float("inf"), -4.0, -3.0, 3.0, 4.0])
    grads = multiop.grad(lambda x: ops.sum(ops.hard_silu(x)))(x)
    assert grads[1:].tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.fixture
def mesh():
    distributed = torch.distributed
    if not distributed.is_available():
        pytest.skip("this PyTorch has no DTensor")
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield distributed.init_device_mesh("cpu", (1,))
    distributed.destroy_process_group()


BESIDE_NUMBERS = {
    "power": ops.power,
    "clip": lambda s, n: ops.clip(s, n, 9.0),
    "multiply": ops.multiply,
    "operator -": lambda s, n: s - n,
    "operator *": lambda s, n: s * n,
    "operator **": lambda s, n: s**n,
    "operator >": lambda s, n: s > n,
    "reversed operator -": lambda s, n: n - s,
    "leaky_relu": lambda s, n: ops.leaky_relu(-s, n),
    "reshape": lambda s, n: ops.reshape(ops.stack([s] * 6), (int(n), -1)),
}


@pytest.mark.tier("full")
def test_shifts_of_a_dtensor(mesh, on_torch):
    """PyTorch's `<<` and `>>` of one return it, as if they were in place: their names, __lshift__, end as such do."""
    from torch.distributed.tensor import Shard, distribute_tensor

    x, n = torch.tensor([1.0, -2.0, 3.0]), torch.tensor([1, 4, -2])
    found = ops.ldexp(*[distribute_tensor(each, mesh, [Shard(0)]) for each in (x, n)])
    assert found.full_tensor().tolist() == [2.0, -32.0, 0.75]
    for shift, expected in ((ops.bitwise_left_shift, [4, 16, -8]), (ops.bitwise_right_shift, [0, 1, -1])):
        assert shift(distribute_tensor(n, mesh, [Shard(0)]), 2).full_tensor().tolist() == expected


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", BESIDE_NUMBERS)
def test_numbers_beside_a_dtensor_are_those_of_the_call(name, mesh, on_torch):
    """Before 2.9, PyTorch took those of an earlier call: https://github.com/pytorch/pytorch/issues/153603."""
    from torch.distributed.tensor import Shard, distribute_tensor

    x = torch.arange(4.0)
    for number in (3.0, 2.0):
        try:
            found = BESIDE_NUMBERS[name](ops.sum(distribute_tensor(x, mesh, [Shard(0)])), number).full_tensor()
        except multiop.errors.UnsupportedError:  # before PyTorch 2.9, leaky_relu has no sharding strategy
            continue
        torch.testing.assert_close(found, BESIDE_NUMBERS[name](ops.sum(x), number))
