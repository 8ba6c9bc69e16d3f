"""What a call costs on NumPy, in Python functions: a budget that a change may lower."""

from __future__ import annotations

import numpy as np
import pytest
from python_calls import count_calls, leave_alone

import multiop as mo
from multiop.backends.numpy._record import Step

X, Y = np.linspace(0.5, 1.5, 8), np.linspace(1.5, 2.5, 8)
F = X.astype(np.float32)
OPS = {
    "add": (mo.op_add, X, Y), "add in float32": (mo.op_add, F, F), "add a number": (mo.op_add, X, 2.0),
    "add of two dtypes": (mo.op_add, X, F), "exp": (mo.op_exp, X), "sum": (mo.op_sum, X), "mean": (mo.op_mean, X),
    "var": (mo.op_var, X), "max": (mo.op_max, X, 0), "argmax": (mo.op_argmax, X), "cumsum": (mo.op_cumsum, X),
    "where": (mo.op_where, X > 1, X, 0.0), "clip": (mo.op_clip, X, 0.6, 1.2), "matmul": (mo.op_matmul, X, Y),
    "reshape": (mo.op_reshape, X, (2, 4)), "transpose": (mo.op_transpose, X), "index": (mo.op_get_item, X, slice(2)),
    "take": (mo.op_take, X, np.arange(3)), "concatenate": (mo.op_concatenate, [X, Y]), "sort": (mo.op_sort, X),
    "prod": (mo.op_prod, X), "all": (mo.op_all, X), "any": (mo.op_any, X), "median": (mo.op_median, X),
    "flip": (mo.op_flip, X), "logical_not": (mo.op_logical_not, X), "argsort": (mo.op_argsort, X),
    "ravel": (mo.op_ravel, X), "power": (mo.op_power, X, 2.0), "equal": (mo.op_equal, X, Y), "dot": (mo.op_dot, X, Y),
}  # fmt: skip


@pytest.fixture(autouse=True)
def numpy_alone(monkeypatch):
    """Let NumPy be the backend as it is in a process that never chose another one, which costs a call more."""
    leave_alone(monkeypatch, "numpy")


@pytest.mark.parametrize("name", OPS)
def test_an_op_on_arrays(name):
    assert count_calls(*OPS[name]) <= 8


def f(x):
    return mo.op_sum(mo.op_exp(x) * x)


@pytest.mark.parametrize(
    ("transformed", "most"),
    [(mo.value_and_grad(f), 100), (mo.hessian(f), 890), (mo.grad(lambda x: mo.op_sum(mo.grad(f)(x))), 320)],
)
def test_a_derivative(transformed, most):
    """HIPS autograd 1.9.1 takes 183, 1,769 and 587."""
    assert count_calls(transformed, X) <= most


def test_a_step_of_a_loop():
    def loop(n):
        def run(x):
            for _ in range(n):
                x = x + 0.001 * mo.op_sin(x)
            return mo.op_sum(x)

        return count_calls(mo.value_and_grad(run), X)

    assert (loop(20) - loop(10)) / 10 <= 42  # of three ops; HIPS autograd takes 147


M = np.diag(X) + 0.1


@pytest.mark.parametrize(
    ("f", "x", "most"),
    [
        (lambda x: mo.op_einsum("i,ij,j->", x, M, x), X, 206),
        (lambda x: mo.op_sum(mo.op_inv(x)), M, 110),
        (lambda x: mo.op_sum(mo.op_solve(x, X)), M, 150),
        (lambda x: mo.op_sum(mo.op_cholesky(x)), M, 350),
        (lambda x: mo.op_sum(mo.op_pad(x, 1)), M, 190),
        (lambda x: mo.op_sum(mo.op_abs(mo.op_fft(x + 0j))), X, 295),
    ],
)
def test_a_derivative_of_matrices_and_transforms(f, x, most):
    """HIPS autograd takes 172, 140, 153, 201 and, for the last, 269; rules that solve anew, 367, 162, 286 and 439."""
    assert count_calls(mo.value_and_grad(f), x) <= most


def test_a_custom_gradient():
    rule = mo.op_custom_gradient(lambda x: (np.log1p(np.exp(x)), lambda u: u / (1 + np.exp(-x))))
    assert count_calls(mo.grad(lambda x: mo.op_sum(rule(x))), X) <= 118  # HIPS autograd: 102


def test_what_cannot_be_written_is_not_copied():
    steps, fixed = [], X.copy()
    fixed.setflags(write=False)
    mo.vjp(lambda x: steps.append(fixed * x) or mo.op_sum(steps[0]), X)
    assert steps[0].node.args[0] is fixed
    view = np.broadcast_to(X, (1, 8))  # whose numbers can be written
    mo.vjp(lambda x: steps.append(view * x) or mo.op_sum(steps[1]), X)
    assert not np.shares_memory(steps[1].node.args[0], X)


def test_what_many_steps_need_is_kept_once_and_again_where_it_was_changed():
    matrix, kept, n_steps = np.eye(40), [], 4

    def run(x):
        for k in range(n_steps):
            matrix[0, 1] += k // 3  # -0.0 and NaN are told by their bits
            x = matrix @ x
            kept.append(x.node.args[0])
        return mo.op_sum(x)

    gradient = mo.grad(run)(np.ones(40))
    assert kept[0] is kept[1] is kept[2] is not kept[3] and not np.shares_memory(kept[0], matrix)
    assert gradient[:2].tolist() == [1, 2] and gradient[2:].tolist() == [1] * 38
    signed, steps = np.zeros(2000), []
    for sign in (1.0, -1.0):
        np.copysign(signed, sign, out=signed)
        mo.vjp(lambda x: steps.append(signed * x) or mo.op_sum(steps[-1]), signed)
    assert [np.signbit(y.node.args[0]).any() for y in steps] == [False, True]


def test_a_constant_beside_a_list_is_not_kept():
    steps, constant = [], np.ones(5000)
    mo.vjp(lambda x: steps.append(mo.op_concatenate([constant, x])) or mo.op_sum(steps[0]), X)
    held = [cell.cell_contents for cell in steps[0].node.pull.__closure__]
    assert not any(isinstance(x, np.ndarray) and x.size >= 5000 for x in mo.tree.leaves(held))


def test_a_constant_has_no_gradient_and_is_kept_where_it_is_needed():
    steps = []

    def g(x):
        y = X * x + Y
        steps.append(y)
        return mo.op_sum(y)

    _, pullback = mo.vjp(g, X)
    (step,) = [y.node for y in steps]
    assert type(step) is Step and len(step.parts) == 1 and step.args == [None, None]  # a sum needs no operand
    (product,) = [node for node, _ in step.inputs]
    assert len(product.parts) == 1 and product.args[1] is None
    assert product.args[0].tolist() == X.tolist() and not np.shares_memory(product.args[0], X)
    assert pullback(np.ones(()))[0].tolist() == X.tolist()
