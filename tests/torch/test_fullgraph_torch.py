"""Every op inside the user's own `torch.compile(fullgraph=True)`: it is traced whole, and its gradient is the same."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import multiop
from multiop import _tree
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

ROWS = rows()
# op -> the option without which the shape of the result depends on values; docs/limits.md says so too
REFUSED = {"op_unique": "size"}
MATRICES = {"op_bincount": range(4, 7)}  # calls whose result has a number of columns that depends on values
# ops whose code looked into values, NumPy arrays or slices: these are traced in every tier
LOOKED = (
    "op_bincount",
    "op_convert_to_numpy",
    "op_cross",
    "op_diag",
    "op_image_pad",
    "op_image_resize",
    "op_istft",
    "op_median",
    "op_pad",
    "op_pinv",
    "op_stft",
    "op_subset",
    "op_switch",
    "op_unique",
)

pytestmark = pytest.mark.compiler


def called(op, n):
    """Return what call `n` of an op computes, as a function of its tensors."""
    row = ROWS[op]
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    problem = Problem(getattr(multiop, op), row.calls[n], dtype=dtype, seed=n)
    tensors = [multiop.op_convert_to_tensor(x) for x in problem.arrays]
    for i in problem.inexact:
        tensors[i].requires_grad_()
    leaves = list(problem._leaves)
    for i, x in zip(problem._where, tensors, strict=True):
        leaves[i] = x
    args, kwargs, then = _tree.unflatten(problem._structure, leaves)
    return args, kwargs, then, tensors


def results(outputs, tensors):
    """Return the values among `outputs`, and the gradient of the sum of their squares."""
    found = [y for y in _tree.leaves(outputs) if y is not None and not isinstance(y, str)]
    found = [y if isinstance(y, torch.Tensor) else torch.tensor(y) for y in found]
    losses = [(y * y.conj()).real.sum().double() for y in found if y.requires_grad]
    sources = [x for x in tensors if x.requires_grad]
    grads = torch.autograd.grad(sum(losses), sources, materialize_grads=True) if losses and sources else ()
    return [y.detach() for y in found] + list(grads)


def compare(op):
    f = getattr(multiop, op)

    def all_calls(calls):
        outputs = []
        for args, kwargs, then in calls:
            y = f(*args, **kwargs)
            outputs.append(y(*then) if then else y)
        return outputs

    numbers = [n for n, call in enumerate(ROWS[op].calls) if op not in REFUSED or REFUSED[op] in call.kwargs]
    numbers = [n for n in numbers if n not in MATRICES.get(op, ())]
    calls = [called(op, n) for n in numbers]
    inputs, tensors = [one[:3] for one in calls], [x for one in calls for x in one[3]]
    torch._dynamo.reset()
    compiled = torch.compile(all_calls, fullgraph=True, backend="eager")(inputs)
    torch.testing.assert_close(
        results(compiled, tensors), results(all_calls(inputs), tensors), rtol=1e-6, atol=1e-6, equal_nan=True
    )


@pytest.mark.parametrize("op", LOOKED)
def test_an_op_that_looked_into_values_is_traced_whole(op):
    with multiop.use_backend("torch"):
        compare(op)


@pytest.mark.parametrize("op", REFUSED)
def test_a_shape_that_depends_on_values_is_refused(op):
    with multiop.use_backend("torch"), pytest.raises(torch._dynamo.exc.UserError, match="data-dependent"):
        torch.compile(getattr(multiop, op), fullgraph=True, backend="eager")(torch.tensor([3, 1, 3]))


def test_the_counts_of_a_matrix_are_refused():
    with multiop.use_backend("torch"), pytest.raises(torch._dynamo.exc.UserError, match="data-dependent"):
        torch.compile(multiop.op_bincount, fullgraph=True, backend="eager")(torch.tensor([[3, 1, 3]]))


@pytest.mark.tier("full")
@pytest.mark.parametrize("op", ROWS)
def test_every_op_is_traced_whole(op):
    with multiop.use_backend("torch"):
        compare(op)
