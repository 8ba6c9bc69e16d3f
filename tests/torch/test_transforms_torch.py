"""Transforms, the tape and `gradients` together with PyTorch's own autograd."""

from __future__ import annotations

import ast
import functools
import gc
import inspect
import itertools
import re
import weakref
from unittest import mock

import pytest

torch = pytest.importorskip("torch")

import numpy as np
from torch import _refs
from torch._decomp import decompositions
from torch._inductor import decomposition

import multiop as mo
from multiop import errors
from multiop.backends.torch import _internals
from multiop.backends.torch.autodiff import transforms
from multiop.testing import test_suite
from multiop.testing._problem import Problem
from multiop.testing._shared_process import x64_mode_for

F = torch.func


@pytest.fixture(autouse=True)
def _compile_anew():
    yield
    torch._dynamo.reset()


@pytest.fixture
def w():
    return torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))


def point(requires_grad=False):
    return torch.tensor([0.3, -1.2, 2.1], dtype=torch.float64, requires_grad=requires_grad)


def cube(x):
    return (x**3).sum()


class Kept:
    """A tensor that autograd keeps for the gradient."""

    def __init__(self, x):
        self.x = x


WAYS = {
    "grad": lambda f, x: mo.grad(f)(x),
    "vjp": lambda f, x: mo.vjp(f, x)[1](torch.ones((), dtype=x.dtype))[0],
    "jvp": lambda f, x: mo.jvp(f, (x,), (torch.ones_like(x),))[1],
    "jacrev": lambda f, x: mo.jacrev(f)(x),
    "jacfwd": lambda f, x: mo.jacfwd(f)(x),
    "vmap grad": lambda f, x: mo.vmap(mo.grad(f))(x),
    "jit grad": lambda f, x: mo.jit(mo.grad(f))(x),
    "grad jit": lambda f, x: mo.grad(mo.jit(f))(x),
    "grad checkpoint": lambda f, x: mo.grad(mo.checkpoint(f))(x),
    "torch.func.grad": lambda f, x: F.grad(f)(x),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_closed_over_parameter_is_reached(name, w):
    """Autograd outside differentiates the derivative with respect to a Parameter: d/dw of d/dx of w x^3."""
    found = WAYS[name](lambda x: (w * x**3).sum(), point())
    torch.testing.assert_close(torch.autograd.grad(found.sum(), w)[0], (3 * point() ** 2).sum())


@pytest.mark.parametrize("name", WAYS)
def test_autograd_around_a_transform(name):
    x = point(requires_grad=True)
    found = WAYS[name](cube, x)
    torch.testing.assert_close(torch.autograd.grad(found.sum(), x)[0], 6 * x)


@pytest.mark.parametrize("name", WAYS)
def test_nothing_is_recorded_without_need(name, w):
    """What no one can differentiate carries no graph; under no_grad neither does what depends on a Parameter."""
    assert not WAYS[name](cube, point()).requires_grad
    with torch.no_grad():
        found = WAYS[name](lambda x: (w * x**3).sum(), point(requires_grad=True))
    assert not found.requires_grad
    torch.testing.assert_close(found.sum(), (6 * point() ** 2).sum())


@pytest.mark.parametrize("name", ["grad", "jvp", "jacrev", "jacfwd", "vmap grad", "grad checkpoint"])
def test_inside_torch_func(name):
    x = point()
    torch.testing.assert_close(F.grad(lambda x: WAYS[name](cube, x).sum())(x), 6 * x)
    torch.testing.assert_close(F.jvp(lambda x: WAYS[name](cube, x).sum(), (x,), (x,))[1], (6 * x * x).sum())
    batch = torch.stack([x, 2 * x])
    torch.testing.assert_close(F.vmap(lambda x: WAYS[name](cube, x).sum())(batch), (3 * batch**2).sum(1))


def test_jit_sees_parameter_updates(w):
    f = mo.jit(lambda x: (w * x).sum())
    assert float(f(point())) == pytest.approx(2 * 1.2)
    with torch.no_grad():
        w.mul_(10)
    assert float(f(point())) == pytest.approx(20 * 1.2)


def test_jit_of_a_training_step(w):
    """Gradients with respect to a Parameter, inside what is compiled."""

    def loss(w, x):
        return ((w * x - 1) ** 2).sum()

    x = point()
    torch.testing.assert_close(mo.jit(mo.grad(loss))(w, x), mo.grad(loss)(w, x))


def marked(x):
    """Return what equals a tensor: a negative that is only marked, a conjugate, and zeros without memory."""
    negative = torch.complex(x, -x).conj().imag
    assert negative.is_neg() and negative.equal(x)
    return negative, torch.complex(x, -x).conj(), torch._efficientzerotensor(x.shape, dtype=x.dtype)


def test_jit_reads_marks_beside_memory():
    f = mo.jit(lambda x: mo.op_exp(x) * x + mo.op_sin(mo.op_real(x)))
    x = torch.tensor([0.3, -1.2, 2.1])
    for like in (x, torch.complex(x, x), *marked(x), *marked(-x)):
        whole = like.clone().resolve_conj().resolve_neg()
        torch.testing.assert_close(f(like).resolve_conj(), torch.exp(whole) * whole + torch.sin(whole.real))
    for like in marked(x):  # what is closed over, and upstream gradients
        whole = like.clone().resolve_conj().resolve_neg()
        torch.testing.assert_close(mo.jit(lambda x, like=like: mo.op_exp(x) * like)(x), torch.exp(x) * whole)
    for like in (x, *marked(x)[::2]):
        given = x.clone().requires_grad_()
        (found,) = torch.autograd.grad(mo.jit(lambda x: mo.op_exp(x) * 2)(given), given, like)
        torch.testing.assert_close(found, torch.exp(x) * like.clone().resolve_neg() * 2)


def test_jit_takes_zeros_without_memory_as_upstream():
    f, x = mo.jit(lambda x: mo.op_exp(x) * x), torch.tensor([0.3, -1.2, 2.1], requires_grad=True)
    torch.autograd.grad(f(x).sum(), x)  # the pullback is compiled
    y = f(x)
    (sign,) = torch.autograd.grad(y.abs(), y, torch.ones(3), create_graph=True)
    assert torch.autograd.grad(sign, x, torch.ones(3))[0].tolist() == [0.0] * 3


def test_jit_at_third_order():
    f = mo.jit(lambda x: (x**4).sum())
    x = torch.tensor([0.5, -2.0], dtype=torch.float64)

    def total_gradient(f):
        return lambda x: mo.grad(f)(x).sum()

    torch.testing.assert_close(mo.grad(total_gradient(total_gradient(f)))(x), 24 * x)


def power_of(steps):
    return lambda x: functools.reduce(torch.mul, [x] * steps)


def test_a_trace_makes_one_fake_mode_however_many_its_steps(monkeypatch):
    """Each new one would walk the stack."""
    made, mode = [], torch._subclasses.fake_tensor.FakeTensorMode
    init = mode.__init__
    monkeypatch.setattr(mode, "__init__", lambda *args, **kwargs: (made.append(1), init(*args, **kwargs))[1])
    for steps in (2, 20):
        made.clear()
        with _internals.describe_by_one_mode():
            graph = _internals.make_fx(power_of(steps))(point())
        assert len(made) == 1
        torch.testing.assert_close(graph(point()), point() ** steps)
    assert torch._guards.TracingContext.try_get() is None


def test_jit_adds_nothing_to_a_users_exception():
    error = ValueError("mine")

    def fails(x):
        raise error

    with pytest.raises(ValueError) as found:
        mo.jit(fails)(point())
    assert found.value is error and not vars(error)


def test_jit_draws_random_numbers_once():
    """A random program is not run again for its gradient: the mask of value and gradient is one."""
    f = mo.jit(lambda x: (x * (torch.rand_like(x) > 0.5)).sum())
    x = torch.ones(64, dtype=torch.float64)
    y, g = mo.value_and_grad(f)(x)
    assert float(y) == float(g.sum()) and 0 < float(y) < 64
    assert not torch.equal(mo.grad(f)(x), g)


def test_checkpoint_recomputes_with_the_same_random_numbers(w):
    calls = []

    def f(x):
        calls.append(1)
        return w * (x * (torch.rand_like(x) > 0.5)).sum()

    x = torch.ones(64, dtype=torch.float64)
    y, g = mo.value_and_grad(mo.checkpoint(f))(x)
    assert len(calls) == 2
    assert float(y) == float(g.sum())


def test_pullback_of_what_is_not_connected():
    x = point()
    _, pullback = mo.vjp(lambda x: torch.ones(2), x)
    torch.testing.assert_close(pullback(torch.ones(2))[0], torch.zeros_like(x))


# the tape, and gradients


def test_watch_leaves_the_tensor_alone():
    x = point()
    with mo.GradientTape() as tape:
        watched = tape.watch(x)
        y = cube(watched)
    assert not x.requires_grad
    torch.testing.assert_close(tape.gradient(y, watched), 3 * x**2)


def test_watch_under_no_grad_and_of_a_tracked_tensor():
    x = point(requires_grad=True)
    with torch.no_grad(), mo.GradientTape() as tape:
        watched = tape.watch(x)
        y = cube(watched)
    torch.testing.assert_close(tape.gradient(y, watched), 3 * x.detach() ** 2)
    with mo.GradientTape() as tape:
        watched = tape.watch(x)
        y = cube(watched)
    gradient = tape.gradient(y, watched)  # x asks for a gradient outside of the tape, so this is differentiable
    torch.testing.assert_close(torch.autograd.grad(gradient.sum(), x)[0], 6 * x)


def test_gradient_penalty(w):
    """The gradient of a module's output can be part of a loss that is differentiated by PyTorch."""
    with mo.GradientTape() as tape:
        x = tape.watch(point())
        y = (w * x**2).sum()
    penalty = (tape.gradient(y, x) ** 2).sum()
    torch.testing.assert_close(torch.autograd.grad(penalty, w)[0], (8 * w * x**2).sum())


def test_variables_of_the_tape(w):
    b = torch.nn.Parameter(torch.tensor(1.0, dtype=torch.float64))
    with mo.GradientTape() as tape:
        y = (w * point() + b).sum()
    assert [float(g) for g in tape.gradient(y, [w, b])] == pytest.approx([1.2, 3.0])
    assert [v is p for v, p in zip(tape.watched_variables(), (w, b), strict=True)] == [True, True]
    with mo.GradientTape(watch_accessed_variables=False) as tape:
        y = (w * point() + b).sum()
    assert tape.gradient(y, [w, b]) == [None, None]
    with mo.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        y = (w * point() + b).sum()
    gw, gb = tape.gradient(y, [w, b])
    assert float(gw) == pytest.approx(1.2) and gb is None


def test_tape_inside_functorch():
    def f(x):
        with mo.GradientTape() as tape:
            x = tape.watch(x)
            y = cube(x)
        return tape.gradient(y, x)

    with pytest.raises(errors.UnsupportedError, match="func.ux_limitations"):
        mo.vmap(f)(point())


def test_stop_gradients_is_op_stop_gradient():
    x = point(requires_grad=True)

    def graph(stop):
        a = x * 2
        b, c = torch.stack([a * x, a]).unbind()  # two outputs of one node, of which one is stopped
        b = stop(b)
        return x, a, b, (b * c * x).sum()

    x_, a, b, y = graph(lambda t: t)
    found = mo.gradients(y, [x_, a, b], stop_gradients=[b])
    x_, a, b, y = graph(mo.op_stop_gradient)
    want = mo.gradients(y, [x_, a])
    torch.testing.assert_close(found[:2], want)
    torch.testing.assert_close(found[2], 2 * x * x)
    x_, a, b, y = graph(lambda t: t)
    assert mo.gradients((b * 1).sum(), [x], stop_gradients=[b]) == [None]


def test_stop_gradients_through_infinity():
    """Nothing arrives beyond a stop: not 0 times infinity either."""
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    root = torch.sqrt(x)
    y = (root + x).sum()
    torch.testing.assert_close(mo.gradients(y, [x], stop_gradients=[root])[0], torch.ones(2))


def test_stop_gradients_at_a_custom_gradient():
    x = point(requires_grad=True)
    f = mo.op_custom_gradient(lambda x: (x * 2, lambda u: u * 3))
    a = f(x)
    y = (a * x).sum()
    torch.testing.assert_close(mo.gradients(y, [x, a], stop_gradients=[a]), [2 * x, x.detach()])
    assert mo.gradients(a.sum(), [x], stop_gradients=[a]) == [None]


def test_gradients_sparse_and_dense():
    table = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    rows = torch.nn.functional.embedding(torch.tensor([1, 1, 3]), table, sparse=True)
    (found,) = mo.gradients([rows.sum(), (table**2).sum()], [table])
    want = 2 * table.detach()
    want[1] += 2
    want[3] += 1
    torch.testing.assert_close(found.to_dense(), want, check_layout=False)


def test_gradients_of_a_constant():
    constant, x = point(), point(requires_grad=True)
    y = x * 2
    torch.testing.assert_close(mo.gradients([y, constant], [constant])[0], torch.ones(3, dtype=torch.float64))
    assert mo.gradients(x * 2, [constant]) == [None]


@pytest.mark.compiler
@pytest.mark.parametrize("dtype", [torch.float16, pytest.param(torch.float32, marks=pytest.mark.tier("full"))], ids=str)
def test_compiled_gradient_of_a_maximum_is_not_lost(dtype):
    # the compiler computes what the maximum is of a second time, unrounded or by other instructions
    x = torch.linspace(-3, 3, 39).reshape(3, 13).to(dtype)
    y = torch.linspace(1, 2, 13).to(dtype)

    def f(x, y):
        smallest = mo.op_min(mo.op_arctan2(x, y), axis=1)
        chosen = mo.op_segment_max(mo.op_sin(x) * y, [0, 0, 1], num_segments=2)
        return mo.op_sum(smallest) + mo.op_sum(chosen)

    eager, tolerance = mo.grad(f)(x, y), 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(mo.jit(mo.grad(f))(x, y), eager, rtol=tolerance, atol=tolerance)
    leaf = x.clone().requires_grad_()
    (found,) = torch.autograd.grad(mo.jit(f)(leaf, y), leaf)
    torch.testing.assert_close(found, eager, rtol=tolerance, atol=tolerance)


def test_compiled_result_in_the_place_of_a_concatenated_part_is_not_lost():
    # the compiler gives the memory of the whole to what is computed after it
    def f(x, y, u, v):
        a, b = mo.op_sum(x, axis=1), mo.op_sum(y, axis=1)
        scaled = a * mo.op_max(mo.op_concatenate([a, b]))
        return scaled, mo.op_matmul(mo.op_reshape(mo.op_cumsum(mo.op_reshape(mo.op_matmul(u, v), (8,))), (2, 4)), v)

    generator = torch.Generator().manual_seed(0)
    x, y, u, v = [torch.randn(shape, generator=generator) for shape in ((4, 3), (4, 3), (2, 4), (4, 4))]
    torch.testing.assert_close(mo.jit(f)(x, y, u, v), f(x, y, u, v))


@pytest.mark.parametrize("shift", [mo.op_exp, mo.op_transpose, lambda x: mo.op_squeeze(mo.op_expand_dims(x, 0), 0)])
def test_compiled_result_in_the_place_of_a_part_seen_through_a_view_is_not_lost(shift):
    def f(x, y):
        a, b = mo.op_exp(x), mo.op_exp(y)
        whole = mo.op_concatenate([shift(a), shift(b)])
        scaled = a * mo.op_max(whole)
        return scaled, mo.op_cumsum(mo.op_matmul(whole, x))

    x, y = torch.linspace(0, 1, 16).reshape(4, 4), torch.linspace(-1, 0, 16).reshape(4, 4)
    torch.testing.assert_close(mo.jit(f)(x, y), f(x, y))


@pytest.mark.compiler
def test_compiled_memory_is_used_again_where_parts_have_no_other_use():
    def f(x):
        return mo.op_cumsum(mo.op_concatenate([mo.op_exp(x), mo.op_sin(x)])) * 2

    with mock.patch.object(torch, "compile", side_effect=lambda f, **kwargs: f) as compiled:
        mo.jit(f)(torch.rand(4))
        mo.jit(lambda x: (f(x), mo.op_stack([x, x * 2])))(torch.rand(4))
    assert [call.kwargs["options"]["inplace_buffers"] for call in compiled.call_args_list] == [True, False]


def test_what_the_compiler_makes_concatenations_of_is_known():
    joins = re.compile(r"\b(?:cat|[hv]?stack)\(")
    names = set()
    for module in (decompositions, decomposition, _refs):
        source = inspect.getsource(module)
        for function in ast.parse(source).body:
            if isinstance(function, ast.FunctionDef) and joins.search("".join(map(ast.unparse, function.body))):
                for decorator in map(ast.unparse, function.decorator_list):
                    if decorator.startswith("register_decomposition"):
                        names |= set(re.findall(r"aten\.(\w+)", decorator))
    assert "diag_embed" in names
    assert {name for name in names if not name.startswith(("rnn", "lstm", "gru"))} <= transforms.CONCATENATIONS


class _Asymmetric(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, upstream):
        x, y = ctx.saved_tensors
        return upstream * y, upstream * 0 * x

    @staticmethod
    def jvp(ctx, dx, dy):
        _, y = ctx.saved_tensors
        return dx * y


def test_hvp_of_a_function_of_pytorch():
    x, y, v, w = (torch.tensor(value) for value in (2.0, 3.0, 1.0, 10.0))
    product = lambda x, y: _Asymmetric.apply(x * 1, y) * 1
    assert [float(g) for g in mo.hvp(product, (x, y), (v, w))] == [10.0, 0.0]
    hessian = mo.hessian(product, (0, 1))(x, y)
    assert [[float(h) for h in row] for row in hessian] == [[0.0, 1.0], [0.0, 0.0]]


def test_hvp_takes_reverse_mode_alone():
    x, v = torch.rand(3, dtype=torch.float64), torch.rand(3, dtype=torch.float64)
    levels = []

    def f(x):
        levels.append(torch._C._are_functorch_transforms_active())
        return mo.op_sum(mo.op_sin(x) * x)

    expected = (2 * torch.cos(x) - x * torch.sin(x)) * v
    torch.testing.assert_close(mo.hvp(f, (x,), (v,)), expected)
    torch.testing.assert_close(mo.hessian(f)(x) @ v, expected)
    assert levels == [False, False]  # and the function ran once for each


def test_forward_mode_of_many_tangents_is_the_pullback_of_the_pullback(monkeypatch):
    def f(x):
        return mo.op_sin(x[1:] * x[:-1]) + x[1:]

    x, v = torch.rand(4, dtype=torch.float64), torch.rand(2, 4, dtype=torch.float64)
    expected = F.jacfwd(f)(x)
    with monkeypatch.context() as patch:
        patch.setattr(F, "jvp", None)  # which runs decompositions in Python
        torch.testing.assert_close(mo.jacfwd(f)(x), expected)
        torch.testing.assert_close(mo.jvp(f, (x,), (v,), batched=True)[1], v @ expected.T)
        torch.testing.assert_close(mo.sparse_jacobian(f, x).values(x), expected[expected != 0])


class Exp(torch.autograd.Function):  # as in PyTorch's manual, with another gradient
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, upstream):
        return upstream.clamp(-0.5, 0.5) * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * ctx.saved_tensors[0]


def write_to_output(x):
    y = x.exp()
    return y.mul_(2)


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (torch.sinc, [0.0, 1.0], [0.0, -1.0]),
        (lambda x: x ** x.new_zeros(2), [0.0, 1.0], [0.0, 0.0]),
        (torch.std, [2.0, 2.0], 0.0),
        (lambda x: x * 1 + x.index_put((torch.tensor([0, 0]),), x), [1.0, 2.0], [2.0, 2.0]),
        (Exp.apply, [0.0, 0.0], [1.0, 1.0]),
        (write_to_output, [0.0, 0.0], [2.0, 2.0]),
        (lambda x: write_to_output(x).sum(), [0.0, 0.0], 4.0),
    ],
)
def test_linear_map_is_that_of_forward_mode_where_the_second_pullback_is_not(f, x, expected):
    x, v = torch.tensor(x), torch.ones(2)
    torch.testing.assert_close(mo.linearize(f, x)[1](v), torch.tensor(expected))
    torch.testing.assert_close(mo.jacfwd(f)(x) @ v, torch.tensor(expected))


def test_linear_map_refuses_memory_that_changed_and_what_has_no_forward_mode():
    x, w = torch.rand(3), torch.rand(3)
    push = mo.linearize(lambda x: torch.sin(x * w), x)[1]
    w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        push(x)
    with pytest.raises(NotImplementedError, match="forward AD"):  # its second pullback is 0
        mo.linearize(lambda x: torch.sparse_coo_tensor([[0, 1, 2]], x, (3,)).to_dense(), x)[1](x)


def test_linear_map_holds_what_the_function_has_and_no_gradients():
    def f(x):
        for _ in range(10):
            x = torch.sin(x) * x
        return x

    x, v, kept = torch.rand(5), torch.rand(5), []
    with torch.autograd.graph.saved_tensors_hooks(lambda y: kept.append(y) or y, lambda y: y):
        push = mo.linearize(f, x)[1]
    held = {y.untyped_storage().data_ptr() for y in kept if not y._is_zerotensor()}
    assert len(held) <= 31  # the arguments of 20 operations, and their 10 factors
    torch.testing.assert_close(push(v), torch.func.jvp(f, (x,), (v,))[1])
    weight = torch.rand(5, requires_grad=True)
    (found,) = torch.autograd.grad(push(weight).sum(), weight)
    torch.testing.assert_close(found, torch.func.vjp(f, x)[1](torch.ones(5))[0])


@mo.op_custom_gradient
def tenfold(x):
    return x * 1, lambda upstream: upstream * 10


def cubes(x):
    return mo.op_sum(x * x * x)


def on_a_tape(x):
    with mo.GradientTape() as tape:
        watched = tape.watch(x)
        y = cubes(watched)
    return tape.gradient(y, watched)


def since_2_12(*parameters):
    refused = pytest.mark.xfail(
        _internals.VERSION < (2, 12), reason="pytorch issue 177318", raises=errors.UnsupportedError, strict=True
    )
    return pytest.param(*parameters, marks=refused)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (mo.grad(cubes), lambda x: 3 * x**2),
        (lambda x: mo.vjp(cubes, x)[1](1.0)[0], lambda x: 3 * x**2),
        (lambda x: mo.hvp(cubes, (x,), (x,)), lambda x: 6 * x**2),
        (mo.hessian(cubes), lambda x: torch.diag(6 * x)),
        (mo.jacrev(cubes), lambda x: 3 * x**2),
        since_2_12(mo.jacfwd(cubes), lambda x: 3 * x**2),
        since_2_12(mo.vmap(mo.grad(lambda x: x * x)), lambda x: 2 * x),
        (lambda x: mo.grad(lambda x: mo.op_sum(mo.grad(cubes)(x)))(x), lambda x: 6 * x),
        (mo.grad(lambda x: mo.op_sum(tenfold(x))), lambda x: 0 * x + 10),
        since_2_12(lambda x: mo.jvp(tenfold, (x,), (x,))[1], lambda x: 10 * x),
        since_2_12(lambda x: mo.hvp(lambda x: mo.op_sum(tenfold(x) * x), (x,), (x,)), lambda x: 20 * x),
        (mo.jit(mo.grad(cubes)), lambda x: 3 * x**2),
        (mo.grad(mo.jit(cubes)), lambda x: 3 * x**2),
        (mo.grad(mo.checkpoint(cubes)), lambda x: 3 * x**2),
        (mo.grad(lambda x: mo.op_attach_gradient(5.0, [3.0, 4.0, 5.0], x, None)), lambda x: x * 0 + torch.arange(3, 6)),
        (on_a_tape, lambda x: 3 * x**2),
        (lambda x: mo.gradients(cubes, [x])[0], lambda x: 3 * x**2),
    ],
)
def test_inference_mode(f, expected):
    given = torch.tensor([1.0, -2.0, 3.0])
    with torch.inference_mode():
        inner = given * 1
        found = [f(given), f(inner)]
    for one in (*found, f(inner)):  # made in inference mode, used outside of it
        assert not one.requires_grad
        torch.testing.assert_close(one.clone(), expected(given))


def before_2_12(f):
    return pytest.param(f, marks=pytest.mark.skipif(_internals.VERSION >= (2, 12), reason="PyTorch is right"))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: mo.jvp(cubes, (x,), (x,))[1],
        mo.jacfwd(cubes),
        mo.jit(lambda x: mo.jvp(cubes, (x,), (x,))[1]),
        mo.vmap(mo.grad(lambda x: x * x)),
        torch.vmap(mo.grad(lambda x: x * x)),
        before_2_12(lambda x: F.jvp(mo.grad(cubes), (x,), (x,))[1]),  # later ones leave inference mode themselves
        before_2_12(F.grad(lambda x: mo.op_sum(tenfold(x)))),
        before_2_12(lambda x: F.jvp(tenfold, (x,), (x,))[1]),
    ],
)
def test_inference_mode_before_version_2_12(f, monkeypatch):
    """What torch.func differentiates there is 0 in silence (pytorch issue 177318)."""
    monkeypatch.setattr(_internals, "VERSION", (2, 11))
    x = torch.tensor([1.0, -2.0, 3.0])
    with torch.inference_mode(), pytest.raises(errors.UnsupportedError, match=r"torch>=2\.12: .*177318"):
        f(x)
    f(x)  # outside of it, as ever


def test_inference_mode_is_refused_to_derivatives_alone(monkeypatch):
    monkeypatch.setattr(_internals, "VERSION", (2, 11))
    x = torch.tensor([1.0, -2.0, 3.0])
    with torch.inference_mode():
        torch.testing.assert_close(mo.vmap(tenfold)(x), tenfold(x))
        torch.testing.assert_close(mo.grad(cubes)(x), 3 * x**2)


def test_forward_mode_of_integer_results_alone_is_none():
    x = torch.tensor([1.0, 3.0])
    value, tangent = mo.jvp(mo.op_argmax, (x,), (x,))
    assert (value.item(), tangent) == (1, None)


@pytest.mark.parametrize("op", [mo.op_abs, mo.op_sinc, lambda x: 1.0 + x * 0.5])
def test_the_tangent_of_a_number_has_its_dtype(op):
    x = torch.tensor(0.5)
    value, tangent = mo.jvp(op, (x,), (torch.ones(()),))
    assert value.dtype is tangent.dtype is torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_forward_mode_of_a_gated_unit_in_16_bits(dtype):
    x = torch.tensor([2.0, 0.0], dtype=dtype)
    _, tangent = mo.jvp(mo.op_glu, (x,), (torch.tensor([0.0, 1.0], dtype=dtype),))
    assert tangent.tolist() == [0.5]


def test_the_gradient_of_one_output_channel_in_a_batch_of_one():
    x, kernel = torch.randn(1, 5, 5, 3, dtype=torch.float64), torch.randn(3, 3, 3, 1, dtype=torch.float64)
    x.requires_grad_(), kernel.requires_grad_()
    assert torch.autograd.gradcheck(lambda x, kernel: mo.op_conv(x, kernel, 1, "same"), (x, kernel))


@pytest.mark.parametrize(
    ("shape", "kernel", "options"),
    [
        ((2, 2, 3, 4, 2), (3, 2, 1, 2, 3), {"padding": "same"}),
        ((2, 1, 8, 8, 2), (3, 3, 3, 2, 3), {"padding": "same"}),
        ((2, 2, 4, 4, 2), (2, 1, 1, 2, 3), {"padding": "same", "dilation_rate": 2}),
        ((2, 2, 3, 3, 8), (3, 3, 3, 4, 4), {"padding": "same"}),
        ((1, 2, 2, 4), (3, 2, 2, 2), {"padding": ((0, 2), (1, 1)), "strides": 3}),
        ((1, 4, 2, 4), (2, 2, 4, 1), {"padding": ((2, 1), (1, 1)), "strides": 3}),
    ],
)
@pytest.mark.parametrize("order", ["channels_last", "channels_first"])
def test_the_gradient_of_windows_beyond_the_image_in_bfloat16(shape, kernel, options, order):
    x, kernel = torch.randint(-4, 5, shape) / 2, torch.randint(-4, 5, kernel) / 2
    x = x if order == "channels_last" else x.movedim(-1, 1)
    slopes = mo.grad(lambda *xs: mo.op_sum(mo.op_square(mo.op_conv(*xs, data_format=order, **options))), (0, 1))
    found, exact = slopes(x.bfloat16(), kernel.bfloat16()), slopes(x.double(), kernel.double())
    for mine, expected in zip(found, exact, strict=True):
        torch.testing.assert_close(mine.double(), expected, rtol=0.05, atol=0.05 * float(expected.abs().max()))


# ops whose native kernels keep what PyTorch's own formulas then take for constant
KEEPING = ["op_det", "op_glu", "op_layer_normalization", "op_logdet", "op_lstsq", "op_pinv", "op_slogdet", "op_solve"]
UNSETTLED = {"op_eigh"}  # PyTorch's NaN
OF_FULL_RANK = {
    "op_pinv": 2,
    "op_lstsq": 2,
}  # how many of the calls: where the rank may change, the first derivative jumps
TWICE = [op for op in test_suite._SECOND if op not in UNSETTLED and "float64" in test_suite.ROWS[op].dtypes]


@pytest.mark.parametrize(
    "op", [op if op in KEEPING else pytest.param(op, marks=pytest.mark.tier("full")) for op in TWICE]
)
def test_second_derivatives_are_the_same_in_every_order_of_modes(op):
    with x64_mode_for("float64"):
        for n, call in enumerate(test_suite.ROWS[op].calls[: OF_FULL_RANK.get(op)]):
            problem = Problem(getattr(mo, op), call, seed=n)
            arrays = [*problem.value, *(problem.arrays[i] for i in problem.inexact)]
            if not problem.is_differentiable or any(x.dtype.kind == "c" for x in arrays):
                continue
            ct, tangents = ([torch.from_numpy(x) for x in xs] for xs in (problem.cotangents, problem.tangents))
            tensors = [torch.from_numpy(np.asarray(x)) for x in problem.arrays]
            f = problem._differentiable(tensors)
            inexact = tuple(tensors[i] for i in problem.inexact)

            def forward(*xs, f=f, tangents=tuple(tangents)):
                return mo.jvp(f, xs, tangents)[1]

            twice_in_reverse = problem.run(problem.second_tensors)
            for grad, right in zip(mo.vjp(forward, *inexact)[1](ct), twice_in_reverse, strict=True):
                np.testing.assert_allclose(mo.op_convert_to_numpy(grad), right, 1e-7, 1e-8)
            twice_forward = mo.jvp(forward, inexact, tuple(tangents))[1]
            found = sum(float((y * w).sum()) for y, w in zip(twice_forward, ct, strict=True))
            right = sum(np.sum(g * t) for g, t in zip(twice_in_reverse, problem.tangents, strict=True))
            assert found == pytest.approx(right, 1e-6, 1e-7)


def standardized(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + 0.1)


BY_HAND = {
    "layer_normalization": (lambda x: mo.op_layer_normalization(x, epsilon=0.1), standardized),
    "glu": (mo.op_glu, lambda x: x[:, :2] / (1 + torch.exp(-x[:, 2:]))),
}


@pytest.mark.parametrize("name", BY_HAND)
@pytest.mark.parametrize("transform", ["autograd", "torch.func", "jit", "vmap"])
def test_third_derivatives(name, transform):
    torch.manual_seed(0)
    x, v = torch.randn(2, 4, 4, dtype=torch.float64)
    fun, by_hand = BY_HAND[name]

    def third(f, grad):
        def along(g):
            return lambda x: (grad(g)(x) * v).sum()

        return along(along(along(lambda x: f(x).sin().sum())))

    grad = F.grad if transform == "torch.func" else mo.grad
    found = third(fun, grad)
    if transform == "vmap":
        found = third(mo.vmap(lambda row: fun(row[None])[0]), grad)
    found = mo.jit(found)(x) if transform == "jit" else found(x)
    assert float(found) == pytest.approx(float(third(by_hand, F.grad)(x)), rel=1e-9)


def test_second_derivatives_of_the_determinant_of_equal_singular_values():
    hessian = F.hessian(mo.op_det)(torch.eye(4, dtype=torch.float64))  # x_ii x_jj - x_ij x_ji
    right = torch.zeros(4, 4, 4, 4, dtype=torch.float64)
    for i in range(4):
        for j in range(4):
            if i != j:
                right[i, i, j, j], right[i, j, j, i] = 1, -1
    torch.testing.assert_close(hessian, right)


# functions that read values of their argument, as NumPy, as numbers of Python, or as a size
READS = {
    "an array": lambda x: torch.as_tensor(np.asarray(x)) * 2,
    "a product with an array": lambda x: x * torch.from_numpy(x.detach().numpy()),
    "a number of NumPy": lambda x: x + float(np.sum(x.detach().numpy())),
    "a list": lambda x: x * x.tolist()[0],
    "dlpack": lambda x: x * torch.from_dlpack(np.from_dlpack(x.detach())),
    "op_convert_to_numpy": lambda x: x * float(mo.op_convert_to_numpy(x)[0]),
    "item": lambda x: x * x[0].item(),
    "a number": lambda x: x * float(x[0]),
    "a condition": lambda x: x if x[0] > 1 else -x,
    "a length": lambda x: sum(x * k for k in range(int(x[0]))) + x,
    "a slice": lambda x: x[: int(x[0])],
    "op_unique": mo.op_unique,
    "op_repeat": lambda x: mo.op_repeat(x, mo.op_cast(x, "int32")),
    "op_nonzero": lambda x: mo.op_nonzero(x)[0],
    "a branch": lambda x: mo.op_cond(x[0] > 1, lambda: x * x.tolist()[1], lambda: x),
    "a loop": lambda x: mo.op_fori_loop(0, 2, lambda i, c: c * x.tolist()[0], x),
}


@pytest.mark.parametrize("name", READS)
def test_a_compiled_function_that_reads_values_does_not_keep_those_of_the_first_call(name):
    f = READS[name]
    compiled = mo.jit(f)
    for values in ([1.0, 0.0, 2.0], [3.0, 1.0, 0.0], [0.0, 1.0, 5.0]):
        x = torch.tensor(values)
        torch.testing.assert_close(compiled(x), f(x), rtol=0, atol=0)
        torch.testing.assert_close(mo.jit(lambda x: compiled(x) + 0)(x), f(x), rtol=0, atol=0)


def test_a_compiled_rule_that_reads_values_does_not_keep_those_of_the_first_call():
    @mo.op_custom_gradient
    def f(x):
        return x * x, lambda upstream: upstream * float(np.max(x.detach().numpy()))

    compiled = mo.jit(mo.grad(lambda x: mo.op_sum(f(x))))
    for values in ([1.0, 2.0], [5.0, 3.0]):
        assert compiled(torch.tensor(values)).tolist() == [max(values)] * 2


def test_a_closed_over_tensor_is_read_when_the_function_is_compiled():
    w = torch.tensor([2.0, 3.0])
    compiled = mo.jit(lambda x: x * float(w.numpy()[1]))
    assert compiled(torch.tensor([1.0, 2.0])).tolist() == [3.0, 6.0]


STATE = torch.zeros(3)


def _written_to_in_a_loop(x):
    for _ in range(3):
        STATE[:2].add_(x[:2])
        x.mul_(2)
    return x + STATE


# functions that write to their argument, or to a tensor that they close over
WRITES = {
    "argument": lambda x: x.mul_(2) + 1,
    "closed over": lambda x: x * STATE.add_(1),
    "view": lambda x: (x[:2].add_(1), x * 1)[1],
    "entry": lambda x: (STATE.__setitem__(0, x[1]), STATE * x)[1],
    "out": lambda x: torch.add(x, STATE, out=STATE) * 1,
    "foreach": lambda x: (torch._foreach_mul_([STATE, x], 2), x + STATE)[1],
    "own": lambda x: x.clone().mul_(3).add_(x),
    "loop": _written_to_in_a_loop,
    "and reads": lambda x: x.mul_(2) * float(STATE.add_(1).numpy()[0]) * x.tolist()[0],
    "branch": lambda x: mo.op_cond(x[0] > 0, lambda: STATE.add_(x) * 1, lambda: x.mul_(2) * 1),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_compiled_function_writes_once_in_each_call(name):
    """The trace of the first call leaves no mark."""
    results = []
    for wrap in (lambda f: f, mo.jit):
        f = wrap(WRITES[name])
        STATE.zero_()
        for values in ([1.0, 2.0, 3.0], [-4.0, 5.0, 6.0], [7.0, 8.0, 9.0]):
            x = torch.tensor(values)
            results.append([f(x).tolist(), x.tolist(), STATE.tolist()])
    assert results[:3] == results[3:]


def test_running_statistics_are_updated_once_in_each_call():
    results = []
    for wrap in (lambda f: f, mo.jit):
        norm = torch.nn.BatchNorm1d(3, dtype=torch.float64)
        f = wrap(mo.grad(lambda x, norm=norm: mo.op_sum(norm(x) ** 3)))
        for seed in range(2):
            f(torch.from_numpy(np.random.default_rng(seed).normal(size=(5, 3))))
        results.append([*norm.running_mean.tolist(), int(norm.num_batches_tracked)])
    assert results[0][3] == 2
    np.testing.assert_allclose(*results, rtol=1e-12)


def test_a_training_step_takes_no_more_memory_than_native_code():
    functional = torch.nn.functional
    p = {"up": torch.randn(32, 128) / 6, "down": torch.randn(128, 32) / 6}
    p |= {"scale": torch.ones(32), "shift": torch.zeros(32)}
    x = torch.randn(64, 32)

    def native(p, x):
        h = functional.layer_norm(x, (32,), p["scale"], p["shift"])
        y = functional.gelu(h @ p["up"]) @ p["down"]
        return functional.softmax(y, -1).square().mean()

    def ours(p, x):
        h = mo.op_layer_normalization(x, p["scale"], p["shift"], epsilon=1e-5)
        y = mo.op_gelu(h @ p["up"], approximate=False) @ p["down"]
        return mo.op_mean(mo.op_square(mo.op_softmax(y)))

    def native_step():
        leaves = {key: t.detach().requires_grad_() for key, t in p.items()}
        return torch.autograd.grad(native(leaves, x), list(leaves.values()))

    peaks = []
    for step in (native_step, lambda: mo.value_and_grad(ours)(p, x)):
        step()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiled:
            step()
        events = [event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]
        events.sort(key=lambda event: event.start_ns())
        peaks.append(max(itertools.accumulate(event.nbytes() for event in events)))
    assert peaks[1] <= 1.05 * peaks[0]


@pytest.mark.parametrize("what", ["nothing", "mask", "padding", "bias", "groups"])
@pytest.mark.skipif(torch.__version__ < "2.13", reason="PyTorch has no fused kernel for groups on a CPU")
def test_memory_of_attention_is_that_of_the_kernel(what):
    given = torch.Generator().manual_seed(0)
    heads = 2 if what == "groups" else 4
    query, *others = (torch.randn(2, 512, n, 16, generator=given).bfloat16() for n in (4, heads, heads))
    masks = {
        "mask": torch.ones(512, 512, dtype=torch.bool).tril(),
        "padding": torch.ones(2, 1, 1, 512, dtype=torch.bool),
    }
    mask, bias = masks.get(what), torch.zeros(1, 1, 512, 512).bfloat16() if what == "bias" else None

    def native(*xs):
        turned = (x.transpose(1, 2) for x in xs)
        added = mask if bias is None else bias
        return torch.nn.functional.scaled_dot_product_attention(*turned, added, enable_gqa=what == "groups")

    peaks = []
    for attend in (native, lambda *xs: mo.op_dot_product_attention(*xs, bias=bias, mask=mask)):
        for _ in range(2):
            xs = [x.clone().requires_grad_() for x in (query, *others)]
            with torch.profiler.profile(
                activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
            ) as profiled:
                torch.autograd.grad(attend(*xs).sum(), xs)
        events = [event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]
        events.sort(key=lambda event: event.start_ns())
        peaks.append(max(itertools.accumulate(event.nbytes() for event in events)))
    assert peaks[1] <= 1.1 * peaks[0]


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("way", ["grad", "vjp"])
def test_memory_of_activations(way):
    """`grad` frees what an operation has kept once it is differentiated; the pullback of `vjp` may be called again."""
    alive, counts = weakref.WeakSet(), []

    def pack(x):
        alive.add(kept := Kept(x))
        return kept

    def f(x):
        for _ in range(5):
            x = mo.op_exp(x)
            x.register_hook(lambda upstream: counts.append(len(alive)))
        return mo.op_sum(x)

    gc.collect()
    gc.disable()  # only reference counts may free them
    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.x):
            WAYS[way](f, torch.tensor(-1.0))
    finally:
        gc.enable()
    assert counts == ([5, 4, 3, 2, 1] if way == "grad" else [5, 5, 5, 5, 5])


def test_what_a_compiled_function_closes_over_may_require_a_gradient_later():
    calls, w, b = [], torch.ones(3), torch.full((3,), 2.0)

    @mo.jit
    def loss(x):
        calls.append(None)
        return mo.op_sum((x * w + b) ** 2)

    x = torch.tensor([1.0, 2.0, 3.0])
    assert not loss(x).requires_grad
    for step in range(6):  # as two networks that are trained in turns
        w.requires_grad_(step % 2 == 0), b.requires_grad_(step % 2 == 1)
        (found,) = torch.autograd.grad(loss(x), w if step % 2 == 0 else b)
        torch.testing.assert_close(found, 2 * (x + 2) * (x if step % 2 == 0 else 1))
    assert len(calls) == 3  # the function, and a gradient for each
    w.requires_grad_(False), b.requires_grad_(False)
    assert not loss(x).requires_grad
