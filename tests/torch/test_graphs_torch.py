"""What a transform or tape returns is on a graph only where the caller's own tensors are."""

from __future__ import annotations

import gc
import itertools

import pytest

torch = pytest.importorskip("torch")

import multiop as mo
from multiop import errors


@pytest.fixture(autouse=True)
def _torch():
    with mo.use_backend("torch"):
        yield


def point():
    return torch.tensor([0.3, -1.2, 2.1], dtype=torch.float64)


def by_tape(f, x):
    with mo.GradientTape() as tape:
        x = tape.watch(x)
        y = f(x).sum()
    return tape.gradient(y, x)


def by_tape_inside(f, x):
    with mo.GradientTape(persistent=True) as tape:
        tape.watch(x)
        return tape.gradient(f(x).sum(), x)


def by_finished_tape(f, x):
    with mo.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x).sum()
    return mo.gradients(y, x)[0]


def by_tape_jacobian(f, x):
    with mo.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.jacobian(y, x).sum(0)


def by_custom_gradient(f, x):
    @mo.op_custom_gradient
    def derivative(x):
        y, pull = mo.vjp(f, x)
        return pull(torch.ones_like(y))[0], lambda u: mo.vjp(lambda x: of_sum(f)(x), x)[1](u)[0]

    return derivative(x)


def of_sum(f):
    return mo.grad(lambda x: f(x).sum())


# each returns the gradient of the sum of f(x)
WAYS = {
    "grad": lambda f, x: of_sum(f)(x),
    "value_and_grad": lambda f, x: mo.value_and_grad(lambda x: f(x).sum())(x)[1],
    "vjp": lambda f, x: mo.vjp(f, x)[1](torch.ones_like(x))[0],
    "jvp": lambda f, x: torch.stack([mo.jvp(f, (x,), (e,))[1].sum() for e in torch.eye(3, dtype=x.dtype)]),
    "jacrev": lambda f, x: mo.jacrev(f)(x).sum(0),
    "jacfwd": lambda f, x: mo.jacfwd(f)(x).sum(0),
    "hessian": lambda f, x: (
        mo.hessian(lambda d, x: f(x + d * d / 2 + d).sum())(0 * x, x).sum(0)
        - mo.jvp(of_sum(f), (x,), (torch.ones_like(x),))[1]
    ),
    "hvp": lambda f, x: mo.hvp(lambda s: (s[0] * f(x + s[1:])).sum(), (torch.zeros(4, dtype=x.dtype),), (UNIT,))[1:],
    "vmap": lambda f, x: mo.vmap(of_sum(f))(x[None])[0],
    "checkpoint": lambda f, x: of_sum(mo.checkpoint(f))(x),
    "gradients": lambda f, x: mo.gradients(f, x)[0],
    "aux": lambda f, x: mo.grad(lambda s: (s * 1, of_sum(f)(x) * 1), has_aux=True)(torch.ones((), dtype=x.dtype))[1],
    "tape": by_tape,
    "tape inside": by_tape_inside,
    "finished tape": by_finished_tape,
    "tape jacobian": by_tape_jacobian,
    "custom gradient": by_custom_gradient,
}
UNIT = torch.tensor([1.0, 0, 0, 0], dtype=torch.float64)
FORWARD = {"jvp", "jacfwd", "vmap"}
TAPES = {"tape", "tape inside", "finished tape", "tape jacobian", "gradients"}
# no tape records there; torch.func takes no checkpoint around it; a custom gradient must not close over what it drops
REFUSED = {("checkpoint", "hessian"), ("checkpoint", "vmap"), *itertools.product({*FORWARD, "hessian", "hvp"}, TAPES)}
PAIRS = [
    pytest.param(outer, inner, marks=[] if inner in ("grad", "tape") else pytest.mark.tier("full"))
    for outer, inner in itertools.product(WAYS, WAYS)
    if (outer, inner) not in REFUSED and inner != "custom gradient"
]


def residual(inner, w, t):
    return (WAYS[inner](lambda t: torch.sin(w * t), t) - 1) ** 2


def want(w, t):
    """The gradient with respect to w of the sum of (w cos(w t) - 1)^2."""
    return 2 * (w * torch.cos(w * t) - 1) * (torch.cos(w * t) - w * t * torch.sin(w * t))


@pytest.mark.parametrize(("outer", "inner"), PAIRS, ids=lambda way: way.replace(" ", "_"))
def test_no_graph_is_carried_out(outer, inner):
    w, t = point(), point() + 1
    found = WAYS[outer](lambda w: residual(inner, w, t), w)
    torch.testing.assert_close(found.detach(), want(w, t))
    if outer != "tape inside":  # there the tape still records
        assert found.grad_fn is None and not found.requires_grad
    assert not w.requires_grad and not t.requires_grad


def test_triple_nesting():
    w, t, s = point(), point() + 1, point() - 1

    def innermost(w, t):
        return of_sum(lambda s: torch.sin(w * t * s))(s) ** 2

    found = of_sum(lambda w: of_sum(lambda t: innermost(w, t))(t) ** 2)(w)
    leaf = w.clone().requires_grad_()
    u = t.clone().requires_grad_()
    inner = (torch.cos(leaf * u * s) * leaf * u) ** 2
    (outer,) = torch.autograd.grad(inner.sum(), u, create_graph=True)
    torch.testing.assert_close(found, torch.autograd.grad((outer**2).sum(), leaf)[0])
    assert not found.requires_grad


@pytest.mark.parametrize("inner", ["grad", "vjp", "jacrev", "tape", "gradients", "aux", "checkpoint"])
@pytest.mark.parametrize("outer", ["grad", "vjp", "jacrev", "tape", "gradients", "aux", "checkpoint", "jvp"])
def test_the_callers_own_graph_stays(outer, inner):
    """A Parameter that the inner function closes over, and a scale of the outer one, are reached from outside."""
    if (outer, inner) in REFUSED:
        pytest.skip("no tape there")
    w, t, p = point(), point() + 1, torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))
    found = WAYS[outer](lambda w: (WAYS[inner](lambda t: p * torch.sin(w * t), t) - 1) ** 2, w)
    leaf = w.clone().requires_grad_()
    (expected,) = torch.autograd.grad(((p * leaf * torch.cos(leaf * t) - 1) ** 2).sum(), leaf, create_graph=True)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found.sum(), p)[0], torch.autograd.grad(expected.sum(), p)[0])


def test_each_result_has_its_own_graph():
    """Of two gradients and an auxiliary output, only what depends on the Parameter is on its graph."""
    p = torch.nn.Parameter(point())

    def f(x1, x2):
        return (torch.sin(x1) ** 2).sum() + (p * x2**2).sum(), (x1 * 2, x2 * p, p * 3)

    (value, aux), grads = mo.value_and_grad(f, argnums=(0, 1), has_aux=True)(point(), point())
    assert [y.requires_grad for y in (value, *aux, *grads)] == [True, False, True, True, False, True]


def test_a_custom_gradient_takes_gradients_of_constants():
    t = point()

    @mo.op_custom_gradient
    def f(x):
        _, pull = mo.vjp(lambda t: torch.sin(x * t), t)  # with a leaf of its own, which is not the caller's
        return pull(torch.ones_like(t))[0], lambda u: u * (torch.cos(x * t) - x * t * torch.sin(x * t))

    torch.testing.assert_close(of_sum(f)(t), torch.cos(t * t) - t * t * torch.sin(t * t))


def live_tensors():
    gc.collect()
    return sum(issubclass(type(x), torch.Tensor) for x in gc.get_objects())


def nodes(x):
    seen, stack = set(), [x.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack += [parent for parent, _ in node.next_functions]
    return len(seen)


STEPS = [pytest.param(50), pytest.param(1000, marks=pytest.mark.tier("full"))]


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("outer", ["grad", "tape", "tape inside", "finished tape", "gradients"])
@pytest.mark.parametrize("inner", ["grad", "tape"])
def test_loops_are_flat(outer, inner, steps):
    """Graph nodes and live tensors do not grow with the steps of a loop."""
    w, t = point(), point() + 1
    counts = []
    gc.collect()  # what other tests have left
    for step in range(steps):
        w = w - 0.01 * WAYS[outer](lambda w: residual(inner, w, t), w)
        if step in (4, steps - 1):
            counts.append((nodes(w), live_tensors()))
    assert counts[0][0] == counts[1][0]
    assert counts[0][1] >= counts[1][1]
    if outer != "tape inside":
        assert counts[0][0] == 0


def test_a_state_that_a_tape_left_is_cut_where_it_is_watched():
    x = point()
    for _ in range(3):
        with mo.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert tape.gradient(y, x).tolist() == (2 * x.detach()).tolist()
        x = y / 2
    assert nodes(x) < 5
    assert not mo.grad(lambda x: (x**2).sum())(x).requires_grad


def test_gradients_of_what_nothing_recorded():
    x, p = point(), torch.nn.Parameter(point())
    with torch.no_grad():
        unrecorded = p * 2
    with torch.inference_mode():
        inferred = x * 2
    with mo.GradientTape() as tape:
        tape.watch(x)
        over = x * 2
    del tape
    for ys in (x * 2, [x, x * 2], (p * 2).detach(), unrecorded, inferred, over):
        for options in ({}, {"unconnected_gradients": "zero"}, {"stop_gradients": [x]}):
            with pytest.raises(errors.ArgumentError, match=r"nothing recorded ys.*GradientTape.*function of xs"):
                mo.gradients(ys, [x], **options)
    assert mo.gradients(p * 2, [x]) == [None]
    assert mo.gradients([x * 2, p * 2], [x, p])[0] is None
    assert mo.gradients(p * 2, [x], unconnected_gradients="zero")[0].tolist() == [0, 0, 0]


def with_rule(a, h):
    @mo.op_custom_gradient
    def f(a):
        return mo.op_sin(a), lambda u: u * mo.op_cos(a) * h

    return f(a)


# functions of `a` in which `h` is used by no edge of the graph, or in a program of its own, and their slopes in both
BY_RULE = (lambda a, h: h * torch.cos(a), lambda a, _: 0 * a)
PRODUCT = (lambda _, h: h, lambda a, _: a)
HIDDEN = {
    "rule": (with_rule, *BY_RULE),
    "compiled rule": (lambda a, h: mo.jit(lambda a: with_rule(a, h))(a), *BY_RULE),
    "compiled": (lambda a, h: mo.jit(lambda a: a * h)(a), *PRODUCT),
    "compiled pullback": (lambda a, h: mo.jit(lambda a: mo.vjp(lambda b: b * h, a)[1](a)[0])(a), *PRODUCT),
    "compiled pullback of it": (lambda a, h: mo.jit(lambda a: a * mo.vjp(lambda b: 1.0 * b, a)[1](h)[0])(a), *PRODUCT),
    "compiled tape": (lambda a, h: mo.jit(lambda a: by_tape(lambda b: b * h, a) * a)(a), *PRODUCT),
    "checkpointed pullback": (lambda a, h: mo.checkpoint(lambda a: mo.vjp(lambda b: b * h, a)[1](a)[0])(a), *PRODUCT),
    "rule in a checkpoint": (lambda a, h: mo.checkpoint(lambda a: with_rule(a, h))(a), *BY_RULE),
}


@pytest.mark.parametrize("through", [lambda x: x, mo.op_sin], ids=["itself", "sin"])
@pytest.mark.parametrize("name", HIDDEN)
def test_what_a_function_closes_over_carries_no_graph_out(name, through):
    f, slope, slope_of_hidden = HIDDEN[name]
    loss = lambda w: mo.op_sum(f(2 * w, through(w)))
    w = abs(point())
    value, gradient = mo.value_and_grad(loss)(w)
    second = mo.grad(lambda w: mo.op_sum(mo.grad(loss)(w)))(w)
    assert not (value.requires_grad or gradient.requires_grad or second.requires_grad)
    (change,) = torch.autograd.functional.jvp(through, w, torch.ones_like(w))[1:]
    expected = 2 * slope(2 * w, through(w)) + slope_of_hidden(2 * w, through(w)) * change
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("through", [lambda x: x, mo.op_sin], ids=["itself", "sin"])
@pytest.mark.parametrize("name", HIDDEN)
def test_what_a_function_closes_over_keeps_the_callers_graph(name, through):
    f, slope, _ = HIDDEN[name]
    own = point().requires_grad_()
    gradient = mo.grad(lambda w: mo.op_sum(f(w, through(own))))(abs(point()))
    (expected,) = torch.autograd.grad(slope(abs(point()), through(own)).sum(), own)
    torch.testing.assert_close(torch.autograd.grad(gradient.sum(), own)[0], expected)


class Exported(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


def test_an_exported_graph_has_no_node_that_exporters_mistake():
    """`torch.onnx` takes the moments of `native_batch_norm` for those of earlier batches, and knows no `signbit`.

    onnxruntime has no `sinh` and `cosh` of float64.
    """
    x = torch.tensor([[1.0, -2.0], [3.0, 0.5], [0.0, 4.0]])
    functions = [
        (
            lambda x: mo.op_batch_normalization_with_moments(x, 1)[0],
            lambda x: torch.nn.functional.batch_norm(x, None, None, training=True, eps=1e-3),
        ),
        (mo.op_cbrt, lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3)),
        # at 89.2, sinh is still finite
        (lambda x: mo.op_sinh(x * 22.3), lambda x: torch.sinh((x * 22.3).double()).float()),
        (lambda x: mo.op_cosh(x * 22.3), lambda x: torch.cosh((x * 22.3).double()).float()),
    ]
    for ours, theirs in functions:
        program = torch.export.export(Exported(lambda x, ours=ours: ours(x)), (x,))
        nodes = [(getattr(node.target, "__name__", ""), node.args) for node in program.graph.nodes]
        assert not [name for name, args in nodes if "signbit" in name or ("native_batch_norm" in name and args[5])]
        assert torch.float64 not in {arg for _, args in nodes for arg in args if isinstance(arg, torch.dtype)}
        torch.testing.assert_close(program.module()(x), theirs(x))


def test_an_export_of_a_branch_says_how_it_is_traced():
    branches = Exported(lambda x: mo.op_cond(x.sum() > 0, lambda: x * 2, lambda: -x))
    with pytest.raises(Exception, match="strict=True"):
        torch.export.export(branches, (torch.ones(3),), strict=False)
