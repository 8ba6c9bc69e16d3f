"""Custom gradients under PyTorch's own machinery: autograd, functorch, forward mode, hooks, memory, torch.compile."""

from __future__ import annotations

import collections
import contextlib
import contextvars
import dataclasses
import functools
import gc
import threading
import types
import typing
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")

import torch.autograd.forward_ad as fw

import multiop as mo
from multiop import errors

F = torch.func
softplus = torch.nn.functional.softplus


@pytest.fixture(autouse=True)
def _compile_anew():
    yield
    torch._dynamo.reset()


@mo.op_custom_gradient
def log1pexp(x):
    e = torch.exp(x)

    def grad(upstream):
        return upstream * (1 - 1 / (1 + e))

    return torch.log(1 + e), grad


@mo.op_custom_gradient
def tenfold(x):
    """Square, whose rule says 10 x."""
    y = mo.op_exp(x) * 0 + x

    def grad(upstream):
        return upstream * 10 * y

    return y * y, grad


def total(f):
    return lambda x: f(x).sum()


def point(requires_grad=False):
    return torch.tensor([0.3, -1.2, 2.1], dtype=torch.float64, requires_grad=requires_grad)


def compiled(f, **options):
    return torch.compile(f, backend="aot_eager", **options)


TRANSFORMS = {
    "grad": lambda f, x: F.grad(total(f))(x),
    "jvp": lambda f, x: F.jvp(f, (x,), (x,))[1],
    "jvp jvp": lambda f, x: F.jvp(lambda x: F.jvp(f, (x,), (x,))[1], (x,), (x,))[1],
    "jvp grad": lambda f, x: F.jvp(F.grad(total(f)), (x,), (x,))[1],
    "grad jvp": lambda f, x: F.grad(lambda x: F.jvp(f, (x,), (torch.ones(3, dtype=x.dtype),))[1].sum())(x),
    "hessian": lambda f, x: F.hessian(total(f))(x),
    "jacfwd jacfwd": lambda f, x: F.jacfwd(F.jacfwd(total(f)))(x),
    "jacrev jacrev": lambda f, x: F.jacrev(F.jacrev(total(f)))(x),
    "jacrev jacfwd": lambda f, x: F.jacrev(F.jacfwd(total(f)))(x),
    "vmap grad": lambda f, x: F.vmap(F.grad(f))(x),
    "vmap hessian": lambda f, x: F.vmap(F.hessian(f))(x),
    "grad vmap": lambda f, x: F.grad(total(F.vmap(f)))(x),
    "grad grad grad": lambda f, x: F.vmap(F.grad(F.grad(F.grad(f))))(x),
    "jacfwd grad jacfwd": lambda f, x: F.vmap(F.jacfwd(F.grad(F.jacfwd(f))))(x),
    "jacfwd four times": lambda f, x: F.vmap(F.jacfwd(F.jacfwd(F.jacfwd(F.jacfwd(f)))))(x),
    "linearize": lambda f, x: F.linearize(f, x)[1](x),
    "functional.jacobian": lambda f, x: torch.autograd.functional.jacobian(f, x),
    "functional.jacobian, vectorized": lambda f, x: torch.autograd.functional.jacobian(f, x, vectorize=True),
    "functional.jacobian, forward": lambda f, x: torch.autograd.functional.jacobian(
        f, x, vectorize=True, strategy="forward-mode"
    ),
    "functional.hessian": lambda f, x: torch.autograd.functional.hessian(total(f), x),
    "functional.hessian, forward": lambda f, x: torch.autograd.functional.hessian(
        total(f), x, vectorize=True, outer_jacobian_strategy="forward-mode"
    ),
    "functional.hvp": lambda f, x: torch.autograd.functional.hvp(total(f), x, x)[1],
    "functional.vhp": lambda f, x: torch.autograd.functional.vhp(total(f), x, x)[1],
    "functional.jvp": lambda f, x: torch.autograd.functional.jvp(f, x, x)[1],
    "functional.vjp": lambda f, x: torch.autograd.functional.vjp(f, x, x)[1],
    "multiop grad in torch grad": lambda f, x: F.grad(total(mo.grad(total(f))))(x),
    "torch grad in multiop grad": lambda f, x: mo.grad(total(F.grad(total(f))))(x),
    "multiop grad in torch jvp": lambda f, x: F.jvp(mo.grad(total(f)), (x,), (x,))[1],
    "multiop hvp in torch vmap": lambda f, x: F.vmap(lambda x: mo.hvp(f, (x,), (x,)))(x),
    "multiop hessian": lambda f, x: mo.hessian(total(f))(x),
    "multiop jacrev of multiop jacfwd": lambda f, x: mo.jacrev(mo.jacfwd(total(f)))(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    x = point()
    torch.testing.assert_close(TRANSFORMS[name](log1pexp, x), TRANSFORMS[name](softplus, x))


def test_dual_numbers():
    def tangent(f):
        with fw.dual_level():
            return fw.unpack_dual(f(fw.make_dual(point(), point()))).tangent

    def reverse_over_forward(f):
        x = point(requires_grad=True)
        with fw.dual_level():
            out = fw.unpack_dual(f(fw.make_dual(x, torch.ones_like(x)))).tangent
        return torch.autograd.grad(out.sum(), x)[0]

    def forward_over_reverse(f):
        with fw.dual_level():
            x = fw.make_dual(point(requires_grad=True), point())
            return fw.unpack_dual(torch.autograd.grad(f(x).sum(), x)[0]).tangent

    def without_grad(f):
        with torch.no_grad():
            return tangent(f)

    for way in (tangent, reverse_over_forward, forward_over_reverse, without_grad):
        torch.testing.assert_close(way(log1pexp), way(softplus), msg=way.__name__)


def test_gradcheck():
    x = point(requires_grad=True)
    assert torch.autograd.gradcheck(
        log1pexp, x, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    )
    assert torch.autograd.gradgradcheck(log1pexp, x, check_fwd_over_rev=True, check_batched_grad=True)


def test_gradcheck_complex():
    z = torch.tensor([0.3 + 1j, -1.2 - 0.5j], dtype=torch.complex128, requires_grad=True)

    def cubic(z):
        return z * z * z.conj()

    square = mo.op_custom_gradient(lambda z: (z * z, lambda u: u * 2 * z.conj()))
    norm = mo.op_custom_gradient(lambda z: ((z * z.conj()).real, lambda u: u * 2 * z))
    through_vjp = mo.op_custom_gradient(lambda z: (cubic(z), lambda u: mo.vjp(cubic, z)[1](u)))
    for f in (square, norm, through_vjp):
        assert torch.autograd.gradcheck(f, z, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(f, z)


# what a rule closes over


def _rules():
    class Rule:
        def __init__(self, e):
            self.e = e

        def method(self, u):
            return u * self.e

        __call__ = method

    def recursive(x):
        e = torch.exp(x)

        def go(u, n):
            return u * e if n == 0 else go(u, n - 1)

        return e, lambda u: go(u, 3)

    def default(x):
        e = torch.exp(x)

        def grad(u, scale=e):
            return u * scale

        return e, grad

    def keras(x):
        def grad(*args, upstream=None):
            return upstream * torch.exp(args[0])

        return torch.exp(x), grad

    def partial(x):
        e = torch.exp(x)
        return e, functools.partial(lambda e, u: u * e, e)

    def containers(x):
        kept = {"a": [torch.exp(x)]}
        return kept["a"][0], lambda u: u * kept["a"][0]

    return {
        "method": lambda x: (lambda e: (e, Rule(e).method))(torch.exp(x)),
        "callable object": lambda x: (lambda e: (e, Rule(e)))(torch.exp(x)),
        "recursive": recursive,
        "default": default,
        "keras": keras,
        "partial": partial,
        "containers": containers,
    }


@pytest.mark.parametrize("name", _rules())
def test_closures(name):
    """Whatever holds the residual, every order sees that it depends on x: all derivatives of exp are exp."""
    f = mo.op_custom_gradient(_rules()[name])
    x = torch.tensor(0.5, dtype=torch.float64)
    for order in (F.grad, lambda f: F.grad(F.grad(f)), lambda f: F.jacfwd(F.jacfwd(f)), lambda f: mo.grad(mo.grad(f))):
        torch.testing.assert_close(order(f)(x), torch.exp(x))


def test_closure_state_is_shared():
    """A list and a `nonlocal` that hold no tensor stay the caller's own."""
    seen, count = [], 0

    @mo.op_custom_gradient
    def f(x):
        e = torch.exp(x)

        def grad(u):
            nonlocal count
            count += 1
            seen.append("called")
            return u * e

        return e, grad

    x = point(requires_grad=True)
    f(x).sum().backward()
    assert seen == ["called"] and count == 1


class _Average:
    def __init__(self):
        self.value = torch.tensor(0.0)

    def rule(self, u):
        self.value = 0.5 * self.value + 0.5 * u
        return self.value


class _Slots:
    __slots__ = ("value",)


def _averages():
    """Rules that keep a running average of their upstream gradients, each in another place."""

    def entry(kept, key):
        def grad(u):
            kept[key] = 0.5 * kept[key] + 0.5 * u
            return kept[key]

        return grad

    def attribute(kept):
        def grad(u):
            kept.value = 0.5 * kept.value + 0.5 * u
            return kept.value

        return grad

    def name():
        value = torch.tensor(0.0)

        def grad(u):
            nonlocal value
            value = 0.5 * value + 0.5 * u
            return value

        return grad

    def inner():
        grad = name()
        return lambda u: grad(u)

    slots, default = _Slots(), {"value": torch.tensor(0.0)}
    slots.value = torch.tensor(0.0)

    def in_default(u, kept=default):
        return entry(kept, "value")(u)

    return {
        "dict": entry({"value": torch.tensor(0.0)}, "value"),
        "dict, nested": entry({"value": torch.tensor(0.0), "other": [torch.ones(2)]}, "value"),
        "list": entry([torch.tensor(0.0)], 0),
        "nonlocal": name(),
        "nonlocal, inner": inner(),
        "method": _Average().rule,
        "object": attribute(_Average()),
        "slots": attribute(slots),
        "default": in_default,
        "partial": functools.partial(lambda grad, u: grad(u), name()),
    }


def _through_hooks(f):
    x = torch.tensor(1.0, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
        y = f(x)
    return torch.autograd.grad(y, x)[0]


@pytest.mark.parametrize(
    "gradient",
    [
        lambda f: torch.autograd.grad(f(x := torch.tensor(1.0, requires_grad=True)), x)[0],
        lambda f: F.grad(f)(torch.tensor(1.0)),
        lambda f: mo.grad(f)(torch.tensor(1.0)),
        _through_hooks,
    ],
    ids=["autograd", "torch.func", "multiop", "hooks"],
)
@pytest.mark.parametrize("name", _averages())
def test_state_of_a_rule(name, gradient):
    """What a rule writes to is what it closes over, not a copy."""
    rule = _averages()[name]
    f = mo.op_custom_gradient(lambda x: (x * 1, rule))
    assert [float(gradient(f)) for _ in range(3)] == [0.5, 0.75, 0.875]


@pytest.mark.parametrize("name", ["dict", "nonlocal", "method", "object"])
def test_state_of_a_rule_on_one_graph(name):
    rule = _averages()[name]
    x = torch.tensor(1.0, requires_grad=True)
    y = mo.op_custom_gradient(lambda x: (x * 1, rule))(x)
    assert [float(torch.autograd.grad(y, x, retain_graph=True)[0]) for _ in range(3)] == [0.5, 0.75, 0.875]


@pytest.mark.parametrize("name", ["dict", "list", "nonlocal", "method", "object", "slots"])
def test_state_of_a_rule_in_forward_mode(name):
    """Inside the transposition there is no value that could be kept."""
    rule = _averages()[name]
    f = mo.op_custom_gradient(lambda x: (x * 1, rule))
    with pytest.raises(errors.NonLinearRuleError, match="keeps a value"):
        F.jvp(f, (torch.tensor(1.0),), (torch.tensor(1.0),))
    assert float(F.grad(f)(torch.tensor(1.0))) == 0.5  # and none was


@pytest.mark.parametrize("hooks", [False, True], ids=["plain", "hooks"])
@pytest.mark.parametrize("transform", [None, F.grad], ids=["autograd", "torch.func"])
def test_late_binding(transform, hooks):
    """A rule reads a name when it runs, as any Python function does."""
    scale, kept = torch.tensor(2.0), {"bias": torch.tensor(1.0)}
    f = mo.op_custom_gradient(lambda x: (x * 1, lambda u: u * scale + kept["bias"]))

    def later(x):
        nonlocal scale
        y = f(x)
        scale, kept["bias"] = torch.tensor(5.0), torch.tensor(7.0)
        return y

    if transform is not None:
        assert float(transform(later)(torch.tensor(1.0))) == 12.0
        return
    x = torch.tensor(1.0, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x) if hooks else contextlib.nullcontext():
        y = later(x)
    assert float(torch.autograd.grad(y, x, retain_graph=True)[0]) == 12.0
    scale = torch.tensor(1.0, requires_grad=True)  # what is rebound may be differentiable
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert float(torch.autograd.grad(g, scale)[0]) == 1.0


def test_rule_that_needs_arguments_to_be_made():
    class Rule:
        def __new__(cls, e):
            made = super().__new__(cls)
            made.e = e
            return made

        def __call__(self, u):
            return u * self.e

    f = mo.op_custom_gradient(lambda x: (lambda e: (e, Rule(e)))(torch.exp(x)))
    x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(torch.autograd.grad(f(x), x)[0], torch.exp(x))
    torch.testing.assert_close(F.grad(F.grad(f))(x.detach()), torch.exp(x))
    torch.testing.assert_close(F.jvp(f, (x.detach(),), (x.detach(),))[1], x * torch.exp(x))


@pytest.mark.compiler
def test_closed_over_parameter():
    w = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

    @mo.op_custom_gradient
    def scaled(x):
        return x * w, lambda u: u * w

    x = point()
    for run in (
        lambda: scaled(point(requires_grad=True)),
        lambda: scaled(x),
        lambda: F.grad(total(scaled))(x),
        lambda: F.jvp(scaled, (x,), (x,)),
        lambda: F.vmap(scaled)(x),
        lambda: mo.grad(total(scaled))(x),
        lambda: compiled(scaled)(point(requires_grad=True)),
    ):
        with pytest.raises(errors.ClosedOverError, match=r"scaled.*closes over.*\bw \(a Parameter"):
            run()
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="closes over"):
        compiled(scaled, fullgraph=True)(point(requires_grad=True))
    with torch.no_grad():
        torch.testing.assert_close(scaled(x), 2 * x)


def test_closed_over_through_a_module():
    linear = torch.nn.Linear(3, 2)
    f = mo.op_custom_gradient(lambda x: (linear(x), lambda u: u @ linear.weight))
    with pytest.raises(errors.ClosedOverError, match=r"linear\.weight.*linear\.bias|linear\.bias.*linear\.weight"):
        f(torch.ones(3))


def test_closed_over_tangent():
    """Forward mode leaves no graph: a closed-over tangent is found all the same."""

    def outer(w):
        return mo.op_custom_gradient(lambda x: (x * w, lambda u: u))(point())

    w = torch.tensor(2.0, dtype=torch.float64)
    with pytest.raises(errors.ClosedOverError, match=r"\bw \("):
        F.jvp(outer, (w,), (w,))
    with fw.dual_level(), pytest.raises(errors.ClosedOverError, match=r"\bw \("):
        outer(fw.make_dual(w, w))

    def unused(w):
        return mo.op_custom_gradient(lambda x: (x + 0 * len(w.shape), lambda u: u * w))(point())

    torch.testing.assert_close(F.jvp(unused, (w,), (w,))[1], torch.zeros(3, dtype=torch.float64))


def test_closed_over_by_the_rule_alone():
    w = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
    f = mo.op_custom_gradient(lambda x: (x * 1, lambda u: u * w * x))
    x = point(requires_grad=True)
    (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    for found, want in zip(torch.autograd.grad(g.sum(), [w, x]), (x.sum(), w.expand(3)), strict=True):
        torch.testing.assert_close(found, want)
    for gradient in (mo.grad(total(f)), F.grad(total(f))):
        torch.testing.assert_close(torch.autograd.grad(gradient(point()).sum(), w)[0], x.sum())
    with mo.GradientTape() as tape:
        watched = tape.watch(point())
        y = f(watched).sum()
    torch.testing.assert_close(torch.autograd.grad(tape.gradient(y, watched).sum(), w)[0], x.sum())


GLOBAL = torch.nn.Parameter(torch.tensor(3.0, dtype=torch.float64))


def test_global_in_the_rule_alone():
    f = mo.op_custom_gradient(lambda x: (x * 1, lambda u: u * GLOBAL * x))
    torch.testing.assert_close(torch.autograd.grad(mo.grad(total(f))(point()).sum(), GLOBAL)[0], point().sum())


def test_variables():
    w, b = (torch.nn.Parameter(torch.tensor(v, dtype=torch.float64)) for v in (2.0, 3.0))
    given = []

    @mo.op_custom_gradient
    def affine(x):
        def grad(u, variables=None):
            given.append([v is w for v in variables])
            return u * w, [(u * x).sum() * 10, u.sum() * 10]

        return x * w + b, grad

    x = point(requires_grad=True)
    gx, gw, gb = torch.autograd.grad(affine(x).sum(), [x, w, b], create_graph=True)
    assert given == [[True, False]]
    torch.testing.assert_close((gx, gw, gb), (w.expand(3), 10 * x.sum(), torch.tensor(30.0, dtype=torch.float64)))
    torch.testing.assert_close(torch.autograd.grad(gx.sum(), w)[0], torch.tensor(3.0, dtype=torch.float64))
    torch.testing.assert_close(torch.autograd.grad(affine(point()).sum(), w)[0], gw)  # no primal asks for a gradient
    torch.testing.assert_close(torch.autograd.grad(compiled(affine)(x).sum(), w)[0], gw)


def _hidden(h):
    """Functions that read `h`, each from another place."""

    class Slots:
        __slots__ = ("h",)

    class Attribute:
        pass

    class Called:
        value = h

        def __call__(self):
            return self.value

    slots, module, context = Slots(), types.ModuleType("settings"), contextvars.ContextVar("h")
    slots.h = Attribute.h = module.h = h
    context.set(h)
    deep = [h]
    for _ in range(15):
        deep = [deep]

    def bottom(entry):
        return bottom(entry[0]) if isinstance(entry, list) else entry

    queue, view, proxy = collections.deque([h]), {"h": h}.values(), types.MappingProxyType({"h": h})
    return {
        "slots": lambda: slots.h,
        "class": lambda: Attribute.h,
        "callable": Called().__call__,
        "module": lambda: module.h,
        "deque": lambda: queue[0],
        "dict view": lambda: next(iter(view)),
        "mapping": lambda: proxy["h"],
        "context variable": lambda: context.get(),
        "deep": lambda: bottom(deep),
        "name": lambda: h,
    }


@pytest.mark.parametrize("in_thread", [False, True], ids=["", "another thread"])
@pytest.mark.parametrize("name", _hidden(torch.ones(())))
def test_variables_are_what_is_closed_over(name, in_thread):
    """Not the leaf behind it: the rule gives the gradient of h = w * w, autograd the rest."""
    w = torch.tensor(3.0, requires_grad=True)
    made = []

    def make():
        for _ in range(100 if in_thread else 1):  # a thread has its own running numbers
            h = w * w
        made.append(h)

    if in_thread:
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
    else:
        make()
    read = _hidden(made[0])[name]

    @mo.op_custom_gradient
    def scaled(x):
        return x * read(), lambda u, variables: (u * read(), [u * x for _ in variables])

    x = torch.tensor(2.0, requires_grad=True)
    gw, gx = torch.autograd.grad(scaled(x), [w, x])
    assert (float(gw), float(gx)) == (2 * 3.0 * 2.0, 9.0)


def test_variables_out_of_reach():
    w = torch.tensor(3.0, requires_grad=True)
    hidden = iter([w * w])
    f = mo.op_custom_gradient(lambda x: (x * next(hidden), lambda u, variables: (u, [u for _ in variables])))
    with pytest.raises(errors.ClosedOverError, match="out of reach.*as an argument"):
        f(torch.tensor(2.0, requires_grad=True))


@pytest.mark.parametrize("mode", ["reverse", "forward", "torch.func"])
def test_order_of_variables(mode):
    """As the function first uses them, whatever their names and where the rule reads them."""
    x = torch.tensor(1.0, dtype=torch.float64)
    orders = []

    def loss(a, b, c, d):
        kept = [c]

        def grad(u, variables):
            orders.append(len(variables))
            gd, gb, gc, ga = 2 * u, 3 * u, 5 * u, 7 * u
            return u, [gd, gb, gc, ga]

        return mo.op_custom_gradient(lambda x: (x * d + b * kept[0] + a + d * b, grad))(x)

    given = tuple(torch.tensor(v, dtype=torch.float64) for v in (1.0, 2.0, 3.0, 4.0))
    want = [7.0, 3.0, 5.0, 2.0]
    if mode == "reverse":
        leaves = [v.requires_grad_() for v in given]
        found = torch.autograd.grad(loss(*leaves), leaves)
    elif mode == "torch.func":
        found = F.grad(loss, argnums=(0, 1, 2, 3))(*given)
    else:
        found = [F.jvp(loss, given, tuple(unit.unbind()))[1] for unit in torch.eye(4, dtype=torch.float64)]
    assert [float(g) for g in found] == want
    assert set(orders) == {4}


def test_variables_of_a_functional_call():
    linear = torch.nn.Linear(3, 2)

    @mo.op_custom_gradient
    def apply(x):
        def grad(u, variables):
            weight = next(v for v in variables if v.ndim == 2)
            return u @ weight, [torch.outer(u, x) if v.ndim == 2 else u for v in variables]

        return linear(x), grad

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = linear

        def forward(self, x):
            return apply(x)

    model, x = Model(), torch.tensor([1.0, 2.0, 3.0])
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    found = F.grad(lambda p: torch.func.functional_call(model, p, (x,)).sum())(parameters)
    want = torch.autograd.grad(linear(x).sum(), list(linear.parameters()))
    torch.testing.assert_close(tuple(found.values()), want)


# memory, hooks, in-place changes


@pytest.mark.usefixtures("young_heap")
def test_memory():
    kept = []

    @mo.op_custom_gradient
    def f(x):
        e = torch.exp(x)
        y = torch.log(1 + e)
        kept.extend([weakref.ref(e), weakref.ref(y)])
        return y, lambda u: u * (1 - 1 / (1 + e)) + 0 * y

    def alive():
        return [reference() is not None for reference in kept]

    x = point(requires_grad=True)
    gc.collect()
    gc.disable()  # only reference counts may free them
    try:
        y = f(x)
        assert alive() == [True, True]
        y.sum().backward()
        assert alive() == [False, False]  # as the graph's own residuals, although y still has its graph
        kept.clear()
        y = f(x)
        torch.autograd.grad(y.sum(), x, create_graph=True)
        assert alive() == [True, True]
        del y
        assert alive() == [False, False]
    finally:
        gc.enable()


class _Log1pExp(torch.autograd.Function):
    """`log1pexp` as one writes it by hand."""

    @staticmethod
    def forward(ctx, x):
        e = torch.exp(x)
        ctx.save_for_backward(e)
        return torch.log(1 + e)

    @staticmethod
    def backward(ctx, upstream):
        (e,) = ctx.saved_tensors
        return upstream * (1 - 1 / (1 + e))


@pytest.mark.usefixtures("young_heap")
def test_memory_is_that_of_a_hand_written_function():
    class Packed:
        def __init__(self, x):
            self.x = x.detach()
            alive.add(self)

    @mo.op_custom_gradient
    def ours(x):
        e = mo.op_exp(x)
        return mo.op_log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    @mo.op_custom_gradient
    def over_output(x):
        y = torch.sigmoid(x)
        return y, lambda upstream: upstream * y * (1 - y)

    def kept():
        return {packed.x.untyped_storage().data_ptr() for packed in alive}

    x = point(requires_grad=True)
    gc.collect()
    gc.disable()  # only reference counts may free them
    try:
        for f in (_Log1pExp.apply, ours, over_output):
            alive = weakref.WeakSet()
            with torch.autograd.graph.saved_tensors_hooks(Packed, lambda packed: packed.x):
                y = f(x)
            assert len(kept()) == 1
            (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
            assert not alive
            torch.testing.assert_close(gradient, torch.sigmoid(x) if f is not over_output else y * (1 - y))
    finally:
        gc.enable()


def test_memory_of_primals():
    """An activation that the rule does not close over is not kept."""
    double = mo.op_custom_gradient(lambda x: (x * 2, lambda u: u * 2))
    hidden = point(requires_grad=True) + 1
    reference = weakref.ref(hidden)
    y = double(hidden)
    del hidden
    assert reference() is None
    assert y.requires_grad


def test_saved_tensor_hooks():
    packed = []
    constant = torch.arange(7.0, dtype=torch.float64)

    @mo.op_custom_gradient
    def f(x):
        e = torch.exp(x)
        return x * 1, lambda u: u * e * constant.sum()

    def pack(x):
        packed.append(tuple(x.shape))
        return x * 2

    x = point(requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        y = f(x)
    assert (3,) in packed and (7,) in packed
    # what others hold too is theirs, and saves no memory: the rule reads it as it is
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], 2 * 21 * torch.exp(x))


def test_in_place_change_of_a_residual():
    held = []

    @mo.op_custom_gradient
    def f(x):
        e = torch.exp(x)
        held.append(e.detach())
        return x * 1, lambda u: u * e

    x = point(requires_grad=True)
    y = f(x)
    held[0].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_in_place_change_of_an_output():
    x = point(requires_grad=True)
    double = mo.op_custom_gradient(lambda x: ((x * 2).reshape(3, 1), lambda u: 3 * u.reshape(3)))
    y = double(x)
    y.mul_(5)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], torch.full((3,), 15.0, dtype=torch.float64))
    reverse = mo.op_custom_gradient(lambda x: (x, lambda u: -u))
    torch.testing.assert_close(torch.autograd.grad(reverse(x).sum(), x)[0], -torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        reverse(x).mul_(2)  # it would change x behind autograd's back


def test_random_numbers_are_drawn_once():
    @mo.op_custom_gradient
    def dropout(x):
        mask = (torch.rand_like(x) > 0.5).to(x.dtype)
        return x * mask, lambda u: u * mask

    x = torch.ones(64, requires_grad=True)
    y = dropout(x)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x, create_graph=True)[0], y)
    y, tangent = F.jvp(dropout, (x.detach(),), (torch.ones(64),))
    torch.testing.assert_close(y, tangent)


def test_checkpoint():
    x = point(requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda x: log1pexp(2 * x), x, use_reentrant=False)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], 2 * torch.sigmoid(2 * x))


def test_threads_share_nothing():
    failures = []

    def work(k):
        try:
            with mo.use_backend("torch"):
                f = mo.op_custom_gradient(lambda x: (lambda e: (e, lambda u: u * e * k))(torch.exp(k * x)))
                for _ in range(30):
                    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
                    want = k * torch.exp(k * x)
                    torch.testing.assert_close(torch.autograd.grad(f(x).sum(), x)[0], want)
                    torch.testing.assert_close(mo.jvp(f, (x,), (torch.ones_like(x),))[1], want)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# forward mode of a rule that has no transpose

NON_LINEAR = {
    "clamp": lambda u: u.clamp(-1, 1),
    "relu": lambda u: torch.relu(u),
    "abs": lambda u: u.abs(),
    "sign": lambda u: u.sign(),
    "round": lambda u: u.round(),
    "square": lambda u: u * u,
    "comparison": lambda u: torch.where(u > 0, u, 0 * u),
    "maximum": lambda u: torch.maximum(u, torch.zeros_like(u)),
    "norm": lambda u: u / u.norm(),
    "detach": lambda u: u.detach() * 3,
    "item": lambda u: u * u.sum().item(),
    "affine": lambda u: u + 1,
    "sort": lambda u: u.sort()[0],
    "amax": lambda u: u.amax().expand(3),
    "scatter_reduce": lambda u: torch.zeros_like(u).scatter_reduce(0, torch.tensor([0, 0, 1]), u, "amax"),
    "solve": lambda u: torch.linalg.solve(torch.diag(u + 1), torch.ones_like(u)) * u,
    "convolution of two": lambda u: torch.nn.functional.conv1d(u[None, None], u[None, None, :1])[0, 0],
}

LINEAR = {
    "matmul": lambda u: torch.eye(3, dtype=u.dtype) @ u,
    "cumsum": lambda u: u.cumsum(0),
    "gather": lambda u: u.gather(0, torch.tensor([2, 0, 0])),
    "index": lambda u: u[[1, 2, 0]],
    "mask": lambda u: torch.where(torch.tensor([True, False, True]), u, 0.0),
    "mean": lambda u: u.mean().expand(3),
    "roll": lambda u: u.roll(1) - 2 * u.flip(0),
    "fft": lambda u: torch.fft.irfft(torch.fft.rfft(u) * 2, n=3),
    "conv": lambda u: torch.nn.functional.conv1d(u[None, None], torch.ones(1, 1, 3, dtype=u.dtype), padding=1)[0, 0],
    "solve": lambda u: torch.linalg.solve(torch.arange(9.0, dtype=u.dtype).reshape(3, 3) + torch.eye(3), u),
    "scatter_reduce": lambda u: torch.zeros_like(u).scatter_reduce(0, torch.tensor([0, 0, 1]), u, "sum"),
    "pad and pool": lambda u: torch.nn.functional.avg_pool1d(
        torch.nn.functional.pad(u[None, None], (1, 1), mode="reflect"), 3, 1
    )[0, 0],
    "complex": lambda u: torch.complex(u, 2 * u).imag + (u * (1 + 2j)).real,
    "in place": lambda u: torch.zeros_like(u).index_add(0, torch.tensor([0, 0, 2]), u).add_(u),
    "cast": lambda u: u.to(torch.float32).to(torch.float64) / 3,
    "shape of the upstream": lambda u: torch.zeros_like(u) + u * u.numel(),
    "zero": lambda u: torch.zeros_like(u),
    "none": lambda u: (None,),
}


@pytest.mark.parametrize("name", NON_LINEAR)
def test_forward_mode_of_a_non_linear_rule(name):
    f = mo.op_custom_gradient(lambda x: (x * 1, NON_LINEAR[name]))
    with pytest.raises(errors.NonLinearRuleError, match="not linear"):
        F.jvp(f, (point(),), (point(),))
    x = point(requires_grad=True)
    upstream = torch.tensor([2.0, -3.0, 0.1], dtype=torch.float64)
    torch.testing.assert_close(torch.autograd.grad(f(x), x, upstream)[0], NON_LINEAR[name](upstream))


@pytest.mark.parametrize("name", LINEAR)
def test_forward_mode_is_the_transpose(name):
    rule = LINEAR[name]
    f = mo.op_custom_gradient(lambda x: (x * 1, rule))
    units = torch.eye(3, dtype=torch.float64)
    matrix = torch.stack([torch.zeros_like(u) if name == "none" else rule(u) for u in units])
    tangents = torch.stack([F.jvp(f, (point(),), (t,))[1] for t in units])
    torch.testing.assert_close(tangents, matrix.T)


product = mo.op_custom_gradient(lambda a, b: (a * b, lambda u: (u * b, u * a)))


def test_forward_mode_of_a_rule_made_of_custom_gradients_under_native_transforms():
    x, t = point(), torch.tensor([2.0, -3.0, 0.5], dtype=torch.float64)
    f = mo.op_custom_gradient(lambda x: (torch.sin(x), lambda u: product(torch.cos(x), product(u, x))))
    expected = t * x * torch.cos(x)
    torch.testing.assert_close(F.jvp(f, (x,), (t,))[1], expected)
    torch.testing.assert_close(F.jacfwd(f)(x) @ t, expected)
    torch.testing.assert_close(F.linearize(f, x)[1](t), expected)
    torch.testing.assert_close(F.vmap(lambda x, t: F.jvp(f, (x,), (t,))[1])(x, t), expected)
    with fw.dual_level():
        torch.testing.assert_close(fw.unpack_dual(f(fw.make_dual(x, t))).tangent, expected)


def test_forward_mode_of_a_rule_made_of_a_custom_gradient_with_variables():
    def rule(u, x):
        inner = mo.op_custom_gradient(lambda v: (v * x, lambda w, variables: (w * x, [w * v for _ in variables])))
        return inner(u)

    x, t = point(), torch.tensor([2.0, -3.0, 0.5], dtype=torch.float64)
    f = mo.op_custom_gradient(lambda x: (torch.sin(x), lambda u: rule(u, x)))
    torch.testing.assert_close(F.jvp(f, (x,), (t,))[1], t * x)
    torch.testing.assert_close(F.jacfwd(F.jacfwd(total(f)))(x), torch.eye(3, dtype=torch.float64))
    torch.testing.assert_close(F.grad(lambda x: F.jvp(f, (x,), (t,))[1].sum())(x), t)


KERNELS = {  # with gradients that are kernels of their own
    "elu": torch.nn.functional.elu,
    "gelu": torch.nn.functional.gelu,
    "hardtanh": torch.nn.functional.hardtanh,
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (3,)),
    "log_sigmoid": torch.nn.functional.logsigmoid,
    "log_softmax": lambda x: torch.log_softmax(x, 0),
    "max_pool": lambda x: torch.nn.functional.max_pool1d(x[None], 2, 1)[0],
    "sigmoid": torch.sigmoid,
    "silu": torch.nn.functional.silu,
    "smooth_l1": lambda x: torch.nn.functional.smooth_l1_loss(x, torch.ones_like(x), reduction="none"),
    "softmax": lambda x: torch.softmax(x, 0),
    "softplus": torch.nn.functional.softplus,
    "tanh": torch.tanh,
}


@pytest.mark.parametrize("name", KERNELS)
def test_forward_mode_of_a_rule_made_of_a_kernel_of_a_gradient(name):
    kernel, x = KERNELS[name], point()
    t = torch.tensor([2.0, -3.0, 0.5], dtype=torch.float64)
    for vjp in (mo.vjp, F.vjp):

        def rule(u, x, vjp=vjp):
            found = vjp(kernel, x)[1](u)
            return found[0] if isinstance(found, tuple) else found

        f = mo.op_custom_gradient(lambda x, rule=rule: (kernel(x), lambda u: rule(u, x)))
        torch.testing.assert_close(F.jvp(f, (x,), (t,))[1], F.jvp(kernel, (x,), (t,))[1])


@pytest.mark.parametrize("name", ["gelu", "sigmoid", "softmax", "tanh"])
def test_forward_mode_of_a_rule_with_its_upstream_in_the_point_of_a_gradient(name):
    kernel = KERNELS[name]
    for rule in (
        lambda u, x: F.vjp(kernel, u)[1](x)[0],
        lambda u, x: F.vjp(kernel, u)[1](u)[0],
        lambda u, x: F.vjp(kernel, x)[1](u.detach())[0],
    ):
        f = mo.op_custom_gradient(lambda x, rule=rule: (kernel(x), lambda u: rule(u, x)))
        with pytest.raises(errors.NonLinearRuleError):
            F.jvp(f, (point(),), (point(),))


def test_forward_mode_of_a_rule_that_asks_for_the_gradient_of_what_was_not_used():
    first = mo.op_custom_gradient(lambda a, b: (a * 1, lambda u: (u, torch.zeros_like(b))))

    def through(a, b):
        return first(a, torch.sin(b)) * 2

    f = mo.op_custom_gradient(lambda a, b: (through(a, b), lambda u: F.vjp(through, a, b)[1](u)))
    x, t = point(), torch.tensor([2.0, -3.0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(F.jvp(f, (x, x), (t, x))[1], 2 * t)


TRANSFORMS_IN_A_RULE = {
    "multiop.vjp": lambda u, x: mo.vjp(torch.sin, x)[1](u)[0],
    "vjp": lambda u, x: F.vjp(torch.sin, x)[1](u)[0],
    "jvp": lambda u, x: F.jvp(torch.sin, (x,), (u,))[1],
    "grad": lambda u, x: F.grad(lambda x: (u * torch.sin(x)).sum())(x),
    "vmap": lambda u, x: F.vmap(lambda x, u: u * torch.cos(x))(x, u),
    "jacrev": lambda u, x: u @ F.jacrev(torch.sin)(x),
}


@pytest.mark.parametrize("name", TRANSFORMS_IN_A_RULE)
def test_transforms_in_a_rule_under_transforms(name):
    """What the rule closes over may belong to a transform that has ended when it runs."""
    f = mo.op_custom_gradient(lambda x: (torch.sin(x), lambda u: TRANSFORMS_IN_A_RULE[name](u, x)))
    x, t = point(), torch.tensor([2.0, -3.0, 0.5], dtype=torch.float64)
    both = torch.stack([x, t])
    for grad in (F.grad, mo.grad):
        torch.testing.assert_close(F.vmap(grad(total(f)))(both), torch.cos(both))
        torch.testing.assert_close(F.jvp(grad(total(f)), (x,), (t,))[1], -t * torch.sin(x))
        torch.testing.assert_close(grad(total(grad(total(f))))(x), -torch.sin(x))
        mapped = F.vmap(lambda x, t, grad=grad: F.jvp(grad(total(f)), (x,), (t,))[1])(both, both)
        torch.testing.assert_close(mapped, -both * torch.sin(both))


class _Slotted:
    __slots__ = ("e",)

    def __init__(self, e):
        self.e = e


class _Named(typing.NamedTuple):
    e: object


@dataclasses.dataclass(frozen=True)
class _Frozen:
    e: object


RESIDUALS_ON_OBJECTS = {
    "namespace": lambda e: types.SimpleNamespace(e=e),
    "slots": _Slotted,
    "named tuple": _Named,
    "frozen dataclass": _Frozen,
    "nested": lambda e: types.SimpleNamespace(inner=_Slotted(e)),
}


@pytest.mark.parametrize("name", RESIDUALS_ON_OBJECTS)
def test_residuals_on_objects(name):
    """They are residuals as any other: in every order and mode, and guarded against changes in place."""
    held = []

    @mo.op_custom_gradient
    def f(x):
        e = torch.exp(x)
        ctx = RESIDUALS_ON_OBJECTS[name](e)
        held.append(e.detach())
        return x * 1, lambda u: u * getattr(ctx, "inner", ctx).e

    x, t = point(), torch.tensor([2.0, -3.0, 0.5], dtype=torch.float64)
    torch.testing.assert_close(F.jvp(f, (x,), (t,))[1], t * torch.exp(x))
    torch.testing.assert_close(F.grad(total(F.grad(total(f))))(x), torch.exp(x))
    torch.testing.assert_close(F.jacfwd(F.jacfwd(total(f)))(x), torch.diag(torch.exp(x)))
    x.requires_grad_()
    y = f(x)
    held[-1].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# torch.compile


def test_compile():
    x = point(requires_grad=True)
    (found,) = torch.autograd.grad(compiled(tenfold, fullgraph=True)(x).sum(), x)
    torch.testing.assert_close(found, 10 * x)


def test_compile_pytrees():
    @mo.op_custom_gradient
    def f(p, n, kind="a", *, scale=2.0):
        def grad(da, db, dn):
            return {"x": da * p["y"] * scale, "y": None}, None

        return {"a": p["x"] * p["y"] * scale, "b": (p["x"] + 1, n + 1)}, grad

    x, y = point(requires_grad=True), point(requires_grad=True)
    out = compiled(lambda x, y, n: f({"x": x, "y": y}, n, kind="b", scale=3.0), fullgraph=True)(x, y, torch.arange(3))
    torch.testing.assert_close(out["a"], 3 * x * y)
    assert not out["b"][1].requires_grad
    gx, gy = torch.autograd.grad(out["a"].sum() + out["b"][0].sum(), [x, y], allow_unused=True)
    torch.testing.assert_close(gx, 3 * y)
    assert gy is None or not gy.any()


def test_compile_nested_and_repeated():
    inner = mo.op_custom_gradient(lambda x: (x * x, lambda u: u * x * 10))

    @mo.op_custom_gradient
    def outer(x, z):
        y = inner(x)
        return (y * z, y, y), lambda a, b, c: (a * y + 10 * b, c)

    def loss(x):
        a, b, c = outer(inner(x), x)
        d, _, _ = outer(x, x)  # the same tensor twice
        return a.sum() + 2 * b.sum() + 3 * c.sum() + d.sum()

    x = point(requires_grad=True)
    found = torch.autograd.grad(compiled(loss, fullgraph=True)(x), x)[0]
    torch.testing.assert_close(found, torch.autograd.grad(loss(x), x)[0])


def test_compile_under_no_grad():
    x = point(requires_grad=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(tenfold, fullgraph=True)(x), x * x)

    def inside(x):
        with torch.no_grad():
            y = tenfold(x)
        return y * x

    torch.testing.assert_close(torch.autograd.grad(compiled(inside, fullgraph=True)(x).sum(), x)[0], (x * x).detach())


@pytest.mark.parametrize("transform", [F.grad, mo.grad], ids=["torch.func", "multiop"])
def test_compile_around_one_gradient(transform):
    x = point()
    torch.testing.assert_close(compiled(transform(total(tenfold)), fullgraph=True)(x), 10 * x)


AROUND = {
    "vmap grad": F.vmap(F.grad(tenfold)),
    "vmap": F.vmap(tenfold),
    "grad grad": F.grad(total(F.grad(total(tenfold)))),
    "jvp": lambda x: F.jvp(tenfold, (x,), (x,))[1],
    "hessian": F.hessian(total(tenfold)),
    "multiop vmap grad": mo.vmap(mo.grad(tenfold)),
    "multiop hvp": lambda x: mo.hvp(total(tenfold), (x,), (x,)),
}


@pytest.mark.rotating
@pytest.mark.compiler
@pytest.mark.parametrize("name", AROUND)
def test_compile_around_transforms(name):
    """PyTorch drops the backward there (issue 193279): an error if it must compile, right if it may not."""
    x = point()
    torch.testing.assert_close(compiled(AROUND[name])(x), AROUND[name](x))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(AROUND[name], fullgraph=True)(x)


@pytest.mark.compiler
def test_compile_around_a_gradient_inside_autograd():
    x = point(requires_grad=True)
    gradient = F.grad(total(tenfold))
    (found,) = torch.autograd.grad(compiled(gradient)(x).sum(), x)
    torch.testing.assert_close(found, torch.full((3,), 10.0, dtype=torch.float64))
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="multiop.jit"):
        compiled(gradient, fullgraph=True)(x)


@pytest.mark.compiler
def test_compile_and_forward_mode():
    f, x = compiled(lambda x: tenfold(x)), point()
    f(x)  # compiled outside of forward mode; that program must not be used inside it
    with fw.dual_level():
        torch.testing.assert_close(fw.unpack_dual(f(fw.make_dual(x, x))).tangent, 10 * x * x)
    torch._dynamo.reset()
    f = compiled(lambda x: tenfold(x), fullgraph=True)
    f(x)
    with fw.dual_level(), pytest.raises(torch._dynamo.exc.Unsupported, match="forward.mode"):
        f(fw.make_dual(x, x))


@pytest.mark.compiler
def test_compile_around_transforms_of_a_rule_with_a_parameter():
    w = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
    f = mo.op_custom_gradient(lambda x: (x * 1, lambda u: u * w * x))
    gradient = F.grad(total(f))
    torch.testing.assert_close(torch.autograd.grad(compiled(gradient)(point()).sum(), w)[0], point().sum())
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.Unsupported, match="closes over"):
        compiled(gradient, fullgraph=True)(point())


def test_compile_with_defaults_in_the_rule():
    @mo.op_custom_gradient
    def f(x):
        def grad(u, variables=None):
            assert variables == []
            return u * 7, []

        return x * 1, grad

    x = point(requires_grad=True)
    (found,) = torch.autograd.grad(compiled(f, fullgraph=True)(x).sum(), x)
    torch.testing.assert_close(found, torch.full((3,), 7.0, dtype=torch.float64))


def test_rule_that_closes_over_dicts():
    log, unit = {}, {}

    @mo.op_custom_gradient
    def f(p, x):
        both = {"x": x, "again": x}

        def grad(upstream):
            log["calls"] = log.get("calls", 0) + 1
            assert both["x"] is both["again"]
            unit.setdefault("same", []).append(p["w"])
            return {"w": upstream * both["x"]}, upstream * p["w"]

        return p["w"] * x, grad

    w, x = torch.tensor(3.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    gw, gx = torch.autograd.grad(f({"w": w}, x), (w, x), create_graph=True)
    assert (float(gw.detach()), float(gx.detach())) == (2.0, 3.0)
    assert log == {"calls": 1} and len(unit["same"]) == 1  # written to the dicts themselves, no copies
    assert [float(g) for g in torch.autograd.grad(gw + 10 * gx, (w, x))] == [10.0, 1.0]


def test_rules_that_share_a_dict():
    @mo.op_custom_gradient
    def f(x):
        kept = {"x": x}

        def slope():
            return kept["x"] * 2

        def grad(upstream):
            kept["x"] = kept["x"] + 0  # seen by `slope`
            assert slope().requires_grad
            return upstream * slope()

        return x * x, grad

    x = torch.tensor(3.0, requires_grad=True)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    assert float(g.detach()) == 6.0
    assert float(torch.autograd.grad(g, x)[0]) == 2.0


# torch.jit.trace: a record runs later, with other values and sizes


def traced(f, x, tracks):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.jit.trace is old, and of sizes
        return torch.jit.trace(f, (x.clone().requires_grad_(tracks),))


def first_and_second(f, x):
    x = x.clone().requires_grad_()
    (first,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    return first, torch.autograd.grad(first.sum(), x)[0]


@mo.op_custom_gradient
def steep_cube(x):
    return x**3, lambda u: u * 6 * x * x


@mo.op_custom_gradient
def steep_exp(x):
    y = torch.exp(x)
    return y, lambda u: 2 * u * y


@mo.op_custom_gradient
def scaled_pair(x, k, more):
    return (x * k, more["a"].argmax()), lambda u, _: (2 * u * k * x, None, {"a": u})


def with_closed_over(x):
    s = x.detach().sum()

    @mo.op_custom_gradient
    def scale(v):
        return v * s, lambda u: u * s * v

    return scale(x)


@pytest.mark.parametrize("seed", [mo.random.SeedGenerator(1), None])
def test_jit_trace_refuses_a_seed_whose_numbers_it_would_keep(seed):
    with pytest.raises(errors.ArgumentError, match="would draw the same numbers at each call"):
        traced(lambda x: x + mo.random.uniform((3,), seed=seed), torch.zeros(3), False)


@pytest.mark.parametrize("tracks", [False, True])
def test_jit_trace_keeps_custom_gradients(tracks):
    """Whether what it records requires a gradient or not, and for every value and size that the record runs on."""
    x, z = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 0.25, 4.0, 2.0])
    functions = [steep_cube, steep_exp, with_closed_over, lambda x: scaled_pair(x, 3.0, {"a": x})[0]]
    functions += [mo.jit(steep_cube), lambda x: mo.op_attach_gradient(x**2, x**3, x) * x]
    for f in functions:
        record = traced(f, x, tracks)
        torch.testing.assert_close(record(z), f(z))
        torch.testing.assert_close(first_and_second(record, z), first_and_second(f, z))


@pytest.mark.parametrize("tracks", [False, True])
def test_jit_trace_keeps_what_transforms_and_kernels_compute(tracks):
    x, z = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 0.25, 4.0])

    def taped(x):
        with mo.GradientTape() as tape:
            x = tape.watch(x)
            y = mo.op_sum(steep_cube(x) * x)
        return x + tape.gradient(y, x)

    functions = {
        "checkpoint": lambda x: x + mo.checkpoint(steep_cube)(x),
        "grad": lambda x: x + mo.grad(lambda v: mo.op_sum(steep_cube(v)))(x),
        "hypot": lambda x: mo.op_hypot(x, x * x),
        "power": lambda x: mo.op_power(x, x),
        "tape": taped,
        "value_and_grad": lambda x: x + mo.value_and_grad(lambda v: mo.op_sum(steep_cube(v)))(x)[0],
        "vjp": lambda x: x + mo.vjp(steep_cube, x)[0],
    }
    for name, f in functions.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record = torch.jit.trace(f, (x.clone().requires_grad_(tracks),), check_trace=False)
        torch.testing.assert_close(record(z), f(z), msg=name)
        torch.testing.assert_close(first_and_second(record, z), first_and_second(f, z), msg=name)
    with pytest.raises(errors.UnsupportedError, match=r"torch.jit.trace cannot record steep_cube"):
        traced(mo.vmap(steep_cube), x, tracks)
