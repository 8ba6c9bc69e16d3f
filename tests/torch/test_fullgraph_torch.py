"""Every op inside the user's own `torch.compile(fullgraph=True)`: it is traced whole, and its gradient is the same."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import multiop
from multiop._values import tree
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

ROWS = rows()
# op -> the option without which the shape of the result depends on values; docs/limits.md says so too
REFUSED = dict.fromkeys(("op_intersect1d", "op_setdiff1d", "op_union1d", "op_unique"), "size")
SLOW = {"op_logm"}  # a branch in a loop in a branch in a loop: minutes to trace; docs/limits.md says so too
WHOLE_WITHOUT_GRADIENT = {"op_while_loop"}
MATRICES = {"op_bincount": range(4, 7)}  # calls whose result has a number of columns that depends on values
# ops whose code looked into values, NumPy arrays or slices: these are traced in every tier
LOOKED = (
    "op_bincount",
    "op_convert_to_numpy",
    "op_cross",
    "op_det",
    "op_diag",
    "op_group_normalization",
    "op_image_pad",
    "op_image_resize",
    "op_istft",
    "op_median",
    "op_pad",
    "op_pinv",
    "op_qr",
    "op_set_item",
    "op_stft",
    "op_subset",
    "op_switch",
    "op_unique",
    "op_view_as_complex",
    "op_view_as_real",
)

pytestmark = pytest.mark.compiler


def called(op, n):
    """Return what call `n` of an op computes, as a function of its tensors."""
    row = ROWS[op]
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    problem = Problem(getattr(multiop, op), row.calls[n], dtype=dtype, seed=n)
    tensors = [multiop.op_convert_to_tensor(x) for x in problem.arrays]
    for i in problem.inexact if op not in WHOLE_WITHOUT_GRADIENT else ():
        tensors[i].requires_grad_()
    leaves = list(problem._leaves)
    for i, x in zip(problem._where, tensors, strict=True):
        leaves[i] = x
    args, kwargs, then = tree.unflatten(problem._structure, leaves)
    return args, kwargs, then, tensors


def results(outputs, tensors):
    """Return the values among `outputs`, and the gradient of the sum of their squares."""
    found = [y for y in tree.leaves(outputs) if y is not None and not isinstance(y, str)]
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


@pytest.mark.rotating
@pytest.mark.parametrize("op", LOOKED)
def test_an_op_that_looked_into_values_is_traced_whole(op):
    with multiop.use_backend("torch"):
        compare(op)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_branches_that_return_what_they_were_given_are_traced_whole(backend):
    def branches(pred, x, z):
        tripled = x * 3
        return [
            multiop.op_cond(pred, lambda: x * 2, lambda: x),
            *multiop.op_cond(pred, lambda: (x, z), lambda: (x, x)),
            *multiop.op_cond(pred, lambda: (x[:1], x[1:]), lambda: (z[:1], x[:1])),
            *multiop.op_cond(pred, lambda: (tripled, tripled[:1]), lambda: (z, z[1:])),
            *multiop.op_switch(multiop.op_cast(pred, "int32"), [lambda: (x, x), lambda: (z, x), lambda: (x, z)]),
        ]

    torch._dynamo.reset()
    with multiop.use_backend("torch"):
        compiled = torch.compile(branches, fullgraph=True, backend=backend)
        x, z = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
        for pred, expected, slope in (
            (True, [2, 4, 1, 2, 3, 4, 1, 2, 3, 6, 3, 3, 4, 1, 2], [2 + 1 + 1 + 3 + 3 + 1, 2 + 1 + 1 + 3 + 1]),
            (False, [1, 2, 1, 2, 1, 2, 3, 1, 3, 4, 4, 1, 2, 1, 2], [1 + 2 + 1 + 2, 1 + 2 + 2]),
        ):
            y = torch.cat(compiled(torch.tensor(pred), x, z))
            torch.testing.assert_close(y, torch.tensor(expected, dtype=torch.float32))
            torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], torch.tensor(slope, dtype=torch.float32))


def test_a_function_with_slopes_inside_a_rule_is_traced_whole():
    @multiop.op_custom_gradient
    def length(x, z):
        y = multiop.op_hypot(x, z) + multiop.op_cbrt(x)  # of two operands, and of one
        return y, lambda upstream: (upstream * x, upstream * z)

    torch._dynamo.reset()
    with multiop.use_backend("torch"):
        x, z = torch.tensor([3.0, 8.0], requires_grad=True), torch.tensor([4.0, 6.0], requires_grad=True)
        y = torch.compile(length, fullgraph=True, backend="aot_eager")(x, z)
        torch.testing.assert_close(y.detach(), torch.tensor([5.0 + 3 ** (1 / 3), 12.0]))
        torch.testing.assert_close(torch.autograd.grad(y.sum(), (x, z)), (x.detach(), z.detach()))


def powers(x, z, n):
    return multiop.op_while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0, z))[1]


def squares(x, z, n):
    return multiop.op_while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * y), (0, x))[1]


def swaps(x, z, n):
    return multiop.op_while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b, a * x), (0, z, z))[1]


def counted(x, z, n):
    return multiop.op_fori_loop(0, n, lambda i, y: y * x, z)


def bounded(x, z, n):
    return multiop.op_while_loop(lambda y: multiop.op_sum(y) < 1e9 * n, lambda y: y * x, z, maximum_iterations=3)


def nested(x, z, n):
    return multiop.op_while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, powers(x, y, n)), (0, z))[1]


def chosen(x, z, n):
    greatest, product = multiop.op_cond(n > 1, lambda: (multiop.op_argmax(x), x * z), lambda: (multiop.op_argmin(x), x))
    return product * (1 + greatest)


LOOPS = {  # function -> its value for a number of steps, in Python
    powers: lambda x, z, n: z * x**n,
    squares: lambda x, z, n: x ** (2**n),
    swaps: lambda x, z, n: z * x ** (n // 2),
    counted: lambda x, z, n: z * x**n,
    bounded: lambda x, z, n: z * x ** (3 if n else 0),
    nested: lambda x, z, n: z * x ** (2 * n),
    chosen: lambda x, z, n: x * z * 3 if n > 1 else x,
}


@pytest.mark.rotating
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.tier("full"))])
@pytest.mark.parametrize("f", LOOPS)
def test_compiled_loops_and_branches_have_the_gradients_of_the_steps_that_were_taken(f, backend):
    """PyTorch's own gradient of a loop is that of a step where none was taken, and it may write into a parameter."""
    x, z = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([3.0, 4.0, 5.0])
    torch._dynamo.reset()
    with multiop.use_backend("torch"):
        compiled = torch.compile(f, backend=backend)
        for n in range(4):
            y, expected = compiled(x, z, torch.tensor(n)), LOOPS[f](x, z, n)
            torch.testing.assert_close(y, expected)
            slopes = [torch.autograd.grad(v.sum() + x.sum(), x)[0] for v in (y, expected)]
            torch.testing.assert_close(*slopes)
    assert x.tolist() == [1, 2, 3] and z.tolist() == [3, 4, 5]


@pytest.mark.parametrize("f", [f for f in LOOPS if f is not chosen])
def test_a_loop_that_needs_a_gradient_is_not_traced_whole(f):
    x, z, n = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([3.0, 4.0, 5.0]), torch.tensor(2)
    torch._dynamo.reset()
    with multiop.use_backend("torch"):
        compiled = torch.compile(f, fullgraph=True, backend="eager")
        with pytest.raises(torch._dynamo.exc.Unsupported, match="issues/184528"):
            compiled(x, z, n)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x, z, n), LOOPS[f](x, z, 2))


def test_the_steps_of_a_loop_may_break_the_graph():
    def step(total, x):
        torch._dynamo.graph_break()
        return {"sum": total["sum"] + x}, None

    torch._dynamo.reset()
    with multiop.use_backend("torch"):
        compiled = torch.compile(lambda x: multiop.op_scan(step, {"sum": x[0]}, x)[0]["sum"], backend="eager")
        assert float(compiled(torch.tensor([1.0, 2.0, 4.0]))) == 8


@pytest.mark.parametrize("op", REFUSED)
def test_a_shape_that_depends_on_values_is_refused(op):
    with multiop.use_backend("torch"), pytest.raises(torch._dynamo.exc.UserError, match="data-dependent"):
        sets = [torch.tensor([3, 1, 3])] * (1 if op == "op_unique" else 2)
        torch.compile(getattr(multiop, op), fullgraph=True, backend="eager")(*sets)


def test_the_counts_of_a_matrix_are_refused():
    with multiop.use_backend("torch"), pytest.raises(torch._dynamo.exc.UserError, match="data-dependent"):
        torch.compile(multiop.op_bincount, fullgraph=True, backend="eager")(torch.tensor([[3, 1, 3]]))


@pytest.mark.tier("full")
@pytest.mark.parametrize("op", [op for op in ROWS if op not in SLOW])
def test_every_op_is_traced_whole(op):
    with multiop.use_backend("torch"):
        compare(op)
