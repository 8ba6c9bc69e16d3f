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
    "hessian": lambda f, x: mo.hessian(lambda d, x: f(x + d * d / 2 + d).sum())(0 * x, x).sum(0)
    - mo.jvp(of_sum(f), (x,), (torch.ones_like(x),))[1],
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
FORWARD = {"jvp", "jacfwd", "vmap"}  # no tape records inside them
TAPES = {"tape", "tape inside", "finished tape", "tape jacobian", "gradients"}
PAIRS = [
    pair
    for pair in itertools.product(WAYS, WAYS)
    if not (pair[1] in TAPES and pair[0] in FORWARD | {"hessian", "hvp"} or pair[1] == "custom gradient")
]


def residual(inner, w, t):
    return (WAYS[inner](lambda t: torch.sin(w * t), t) - 1) ** 2


def want(w, t):
    """The gradient with respect to w of the sum of (w cos(w t) - 1)^2."""
    return 2 * (w * torch.cos(w * t) - 1) * (torch.cos(w * t) - w * t * torch.sin(w * t))


@pytest.mark.parametrize("outer, inner", PAIRS, ids=lambda way: way.replace(" ", "_"))
def test_no_graph_is_carried_out(outer, inner):
    w, t = point(), point() + 1
    found = WAYS[outer](lambda w: residual(inner, w, t), w)
    torch.testing.assert_close(found.detach(), want(w, t))
    if outer != "tape inside":  # there the tape still records
        assert found.grad_fn is None and not found.requires_grad
    assert not w.requires_grad and not t.requires_grad
