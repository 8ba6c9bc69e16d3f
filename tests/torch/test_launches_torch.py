"""What a GPU waits for: the Python calls of ops and gradients, counted; and what the short ways must not lose."""

from __future__ import annotations

import functools
import gc
import itertools
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from python_calls import leave_alone
from torch.fx.experimental.proxy_tensor import make_fx

import multiop as mo
from multiop.backends import torch as backend
from multiop.errors import MultiopError

ROOT = Path(__file__).parents[2]
# rows of benchmarks/bench_launch.py, and eight more -> Python calls on Python 3.11, where a comprehension is a call
CALLS = {
    "add": 2, "matmul": 2, "where": 3, "concatenate": 3, "reshape": 3, "mean": 2, "sum": 7, "split": 2, "softmax": 3,
    "gelu": 4, "silu": 2, "layer_normalization": 8, "group_normalization": 4, "rms_normalization": 4,
    "batch_normalization_with_moments": 8, "batch_normalization": 10, "dot_product_attention": 10,
    "sparse_categorical_crossentropy": 8, "categorical_crossentropy": 9, "binary_crossentropy": 7, "conv": 8,
    "max_pool": 8, "average_pool": 8, "take": 7, "get_item": 3, "get_item of a tensor": 7, "one_hot": 10,
    "segment_sum": 7, "scatter_update": 13, "dropout": 25, "normal": 26, "value_and_grad": 17,
    "hvp": 76, "custom gradient": 12, "its gradient": 48,
    "normalize": 7, "argsort": 4, "eye": 6, "zeros": 6, "pad": 12, "unique": 11, "linspace": 9,
    "normal of a generator": 34,
}  # fmt: skip
# steps of its blocks by `multiop.value_and_grad`; those of the native steps are 43, 31, 23, 25, 21, 37 and 24
CALLS_OF_BLOCKS = {
    "ViT block": 82, "UNet block": 51, "LSTM cell": 50, "MLP with dropout": 55, "GNN layer": 44, "diffusion block": 71,
    "embedding bag": 55,
}  # fmt: skip


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the counts are those of Python 3.11")
def test_ops_make_no_more_python_calls(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import bench_launch

    leave_alone(monkeypatch, "torch")

    def tensor(*shape, seed=0):
        return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))

    rows, x = bench_launch.calls_of_ops(mo, tensor), tensor(4, 4)
    rows |= {"normalize": lambda: mo.op_normalize(x), "argsort": lambda: mo.op_argsort(x), "eye": lambda: mo.op_eye(4)}
    whole, generator = torch.arange(8, dtype=torch.int32), mo.random.SeedGenerator(1)
    rows |= {"unique": lambda: mo.op_unique(whole), "linspace": lambda: mo.op_linspace(0.0, 1.0, 8)}
    rows |= {"normal of a generator": lambda: mo.random.normal((8,), seed=generator)}
    rows |= {"zeros": lambda: mo.op_zeros((4, 4)), "pad": lambda: mo.op_pad(x, ((1, 1), (1, 1)))}
    for name, (_, loss, shapes, inputs) in bench_launch.losses_of_blocks(mo).items():
        p = {key: tensor(*shape, seed=k) for k, (key, shape) in enumerate(shapes.items())}
        rows[name] = bench_launch.training.calling(mo.value_and_grad(loss), (p, tensor(*inputs, seed=99)))
    most = CALLS | CALLS_OF_BLOCKS
    found = {name: bench_launch.count_calls(rows[name]) for name in most}
    assert {name: n for name, n in found.items() if n > most[name]} == {}
    assert {name: n for name, n in found.items() if n < most[name]} == {}, "lower the table"


def test_repeats_in_a_tensor_are_read_at_once(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import bench_launch

    rows = [(torch.arange(float(n)), torch.arange(n)) for n in (10, 100)]
    few, many = (bench_launch.count_calls(lambda x=x, n=n: mo.op_repeat(x, n, axis=0)) for x, n in rows)
    assert few == many
    x, n = rows[0]
    assert torch.equal(mo.op_repeat(x, n, axis=0), torch.repeat_interleave(x, n))


def layer_norm_in_steps(x, gamma, beta):
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5) * gamma + beta


def attention_in_steps(query, key, value):
    heads = [x.transpose(1, 2) for x in (query, key, value)]
    weights = torch.softmax(heads[0] @ heads[1].mT / query.shape[-1] ** 0.5, -1)
    return (weights @ heads[2]).transpose(1, 2)


CASES = {
    "layer_normalization": (
        lambda *xs: mo.op_layer_normalization(*xs, epsilon=1e-5), layer_norm_in_steps, [(3, 4), (4,), (4,)],
    ),
    "dot_product_attention": (mo.op_dot_product_attention, attention_in_steps, [(1, 3, 2, 4)] * 3),
}  # fmt: skip


def checkpoint_of_pytorch(f):
    return functools.partial(torch.utils.checkpoint.checkpoint, f, use_reentrant=False)


def operands(shapes):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]


def gradients_of_orders(f, xs, orders, **options):
    """Return the gradients of each order, each that of weighted sums of those before."""
    generator, found = torch.Generator().manual_seed(2), []
    y = f(*xs)
    for _ in range(orders):
        total = sum((one * torch.randn(one.shape, dtype=one.dtype, generator=generator)).sum() for one in _each(y))
        y = torch.autograd.grad(total, xs, create_graph=True, materialize_grads=True)
        found.append(y)
    return found


def _each(y):
    return y if isinstance(y, tuple) else (y,)


@pytest.mark.parametrize("hooks", [False, True], ids=["", "saved-tensor hooks"])
@pytest.mark.parametrize("name", CASES)
def test_every_order_is_that_of_the_formula(name, hooks):
    ours, formula, shapes = CASES[name]
    xs = operands(shapes)
    context = torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x)
    if hooks:
        with context:
            found = gradients_of_orders(ours, xs, 3)
    else:
        found = gradients_of_orders(ours, xs, 3)
    for mine, theirs in zip(found, gradients_of_orders(formula, xs, 3), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("checkpoint", [checkpoint_of_pytorch, mo.checkpoint])
@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_gives_what_it_computes_again_once(name, checkpoint):
    ours, formula, shapes = CASES[name]
    xs = operands(shapes)
    found = gradients_of_orders(checkpoint(ours), xs, 3)
    for mine, theirs in zip(found, gradients_of_orders(formula, xs, 3), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)
    y = checkpoint(ours)(*xs)
    rows = torch.eye(y.numel(), dtype=y.dtype).reshape(-1, *y.shape)
    mapped = torch.autograd.grad(y, xs, rows, is_grads_batched=True)
    for mine, whole in zip(mapped, torch.autograd.grad(formula(*xs).sum(), xs), strict=True):
        torch.testing.assert_close(mine.sum(0), whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_a_batch_of_gradients_is_mapped_without_a_warning(name, order, recwarn):
    ours, formula, shapes = CASES[name]
    xs = operands(shapes)

    def jacobians(f):
        y = f(*xs)
        if order == 2:
            (y,) = torch.autograd.grad((y * y).sum(), xs[:1], create_graph=True)
        rows = torch.eye(y.numel(), dtype=y.dtype).reshape(-1, *y.shape)
        mapped = torch.vmap(lambda row: torch.autograd.grad(y, xs, row, retain_graph=True, materialize_grads=True))
        return mapped(rows), torch.autograd.grad(y, xs, rows[0], materialize_grads=True)

    torch.testing.assert_close(jacobians(ours), jacobians(formula), rtol=1e-9, atol=1e-9)
    assert not [one for one in recwarn if "performance drop" in str(one.message)]


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("name", CASES)
def test_operands_are_let_go_with_what_autograd_saved(name):
    ours, _, shapes = CASES[name]
    xs = operands(shapes)
    inner = [x * 1 for x in xs]
    y = ours(*inner)
    refs = [weakref.ref(x) for x in inner]
    del inner
    torch.autograd.grad(y.sum(), xs)
    gc.collect()
    assert not any(ref() is not None for ref in refs)
    assert y.grad_fn is not None  # the graph is still there


@pytest.mark.parametrize("name", CASES)
def test_an_operand_that_was_changed_is_refused(name):
    ours, _, shapes = CASES[name]
    xs = operands(shapes)
    x = xs[0] * 1
    y = ours(x, *xs[1:])
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(y.sum(), xs, create_graph=True)


@pytest.mark.parametrize("name", CASES)
def test_a_graph_gives_gradients_with_and_without_a_record_and_in_batches_in_any_order(name):
    ours, formula, shapes = CASES[name]
    xs = operands(shapes)
    ways = [{"create_graph": True}, {"retain_graph": True}, {"is_grads_batched": True, "retain_graph": True}]
    y, expected = ours(*xs), formula(*xs)
    rows = torch.eye(y.numel(), dtype=y.dtype).reshape(-1, *y.shape)
    batch = [torch.autograd.grad(expected, xs, row, retain_graph=True) for row in rows]
    batch = [torch.stack(parts) for parts in zip(*batch, strict=True)]
    for order in itertools.permutations(ways):
        y = ours(*xs)
        for way in order:
            is_batch = "is_grads_batched" in way
            found = torch.autograd.grad(y, xs, rows if is_batch else rows[0], **way)
            for mine, theirs in zip(found, batch, strict=True):
                torch.testing.assert_close(mine, theirs if is_batch else theirs[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_what_autograd_captures_in_a_batch_is_not_changed(name):
    ours, _, shapes = CASES[name]
    xs = operands(shapes)
    y = ours(*xs)
    node = y.grad_fn if name == "layer_normalization" else y.grad_fn.next_functions[0][0]
    rows = torch.eye(y.numel(), dtype=y.dtype).reshape(-1, *y.shape)
    (captured, *_) = torch.autograd.grad(
        y, [torch.autograd.graph.GradientEdge(node, 0), *xs], rows, is_grads_batched=True
    )
    assert torch.equal(captured.sum(0), torch.ones(captured.shape[1:], dtype=y.dtype))


def test_hooks_of_the_users_are_those_of_the_tensor_as_it_is():
    xs = operands([(3, 4), (4,), (4,)])
    y = mo.op_layer_normalization(*xs)
    assert y._backward_hooks is None
    (expected,) = torch.autograd.grad(y.sum(), xs[:1], retain_graph=True)
    called = []
    y.mul_(2)
    y.register_hook(lambda upstream: called.append(upstream) or upstream * 3)
    (found,) = torch.autograd.grad(y.sum(), xs[:1])
    torch.testing.assert_close(found, expected * 6)
    assert called[0].tolist() == torch.ones(3, 4).tolist()


def test_a_mask_is_let_go_without_the_collector():
    xs, mask = operands([(1, 3, 2, 4)] * 3), torch.ones(1, 1, 3, 3, dtype=torch.bool)
    held = weakref.ref(mask)
    gc.disable()
    try:
        y = mo.op_dot_product_attention(*xs, mask=mask)
        del mask
        torch.autograd.grad(y.sum(), xs)
        del y
        assert held() is None
    finally:
        gc.enable()


def test_a_plan_is_that_of_its_options():
    x, kernel = torch.ones(1, 6, 6, 1), torch.ones(2, 2, 1, 1)
    for strides in (1, 2, (1, 2)):
        assert mo.op_conv(x, kernel, strides).shape[1:3] == mo.op_max_pool(x, 2, strides).shape[1:3]
    for strides in (True, (1, True), 1.0, (1, 1.0)):
        for call in (lambda s: mo.op_conv(x, kernel, s), lambda s: mo.op_max_pool(x, 2, s)):
            with pytest.raises(MultiopError):
                call(strides)


def test_keys_of_ints_and_slices_are_those_of_numpy():
    x = torch.arange(24.0).reshape(2, 3, 4)
    parts = [0, -1, 2, 5, slice(None), slice(1, None), slice(None, None, -1), slice(5, 9), None, Ellipsis]
    for n in range(4):
        for key in itertools.product(parts, repeat=n):
            try:
                expected = x.numpy()[key]
            except IndexError:
                with pytest.raises(MultiopError):
                    mo.op_get_item(x, key)
            else:
                np.testing.assert_array_equal(mo.op_get_item(x, key).numpy(), expected, err_msg=str(key))


@pytest.mark.parametrize("n", [1, 8, 49, 100, 40_000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_drawn_on_the_host_are_those_of_the_ops(n, dtype, monkeypatch):
    def draw():
        uniform = mo.random.uniform((n,), dtype=dtype, seed=2**40 + 3)
        return uniform, mo.random.normal((n,), dtype=dtype, seed=5), mo.random.split(7, 20)

    on_host = draw()
    for part in ("random_words", "polynomial", "draws_on_host"):
        monkeypatch.delattr(backend.random, part)
    for mine, theirs in zip(on_host, draw(), strict=True):
        assert mine.dtype == theirs.dtype
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("before_dispatch", [False, True])
def test_a_traced_key_is_no_constant(before_dispatch):
    def draw(key):
        whole = mo.random.randint((3,), 0, 9, seed=key)
        return mo.random.normal((3,), 1.0, 2.0, seed=key), mo.random.uniform((3,), seed=key), whole

    program = make_fx(draw, pre_dispatch=before_dispatch)(mo.random.key(3))
    key = mo.random.key(2**40 + 9)
    for mine, expected in zip(program(key), draw(key), strict=True):
        assert torch.equal(mine, expected)


ROWS, UPPER = np.arange(12.0, dtype="float32").reshape(4, 3), np.triu(np.ones((3, 3), "float32"))
# what is looked at where values are at hand, at other operands: what is right for the first ones is then no program
TRACED = {
    "ldexp": (mo.op_ldexp, (ROWS[0], np.array([0, 1, 2], "int32")), (ROWS[1], np.array([3, -1, 0], "int32"))),
    "take": (lambda x, k: mo.op_take(x, k, 0), (ROWS, np.array([0, 1])), (ROWS, np.array([-1, 2]))),
    "get_item": (lambda x, k: mo.op_get_item(x, k), (ROWS, np.array([0, 1])), (ROWS, np.array([-1, 2]))),
    "scatter_update": (
        lambda x, k, y: mo.op_scatter_update(x, k, y),
        (ROWS[0], np.array([[0]]), ROWS[1, :1]),
        (ROWS[0], np.array([[-1]]), ROWS[1, :1]),
    ),
    "slice": (lambda x, k: mo.op_slice(x, k, (2, 2)), (ROWS, np.array([0, 1])), (ROWS, np.array([2, 0]))),
    "slice_update": (
        mo.op_slice_update,
        (ROWS, np.array([0, 1]), UPPER[:2, :2]),
        (ROWS, np.array([2, 0]), UPPER[1:, 1:]),
    ),
    "segment_sum": (
        lambda x, k: mo.op_segment_sum(x, k, 3),
        (ROWS, np.array([0, 1, 1, 2])),
        (ROWS, np.array([-1, 1, 3, 0])),
    ),
    "one_hot": (lambda k: mo.op_one_hot(k, 3), (np.array([0, 1]),), (np.array([-1, 5]),)),
    "solve": (mo.op_solve, (UPPER, ROWS[0]), (UPPER * 2, ROWS[1])),
    "interp": (lambda *xs: mo.op_interp(*xs), (ROWS[0], ROWS[1], ROWS[2]), (ROWS[2], ROWS[1], ROWS[0])),
    "digitize": (mo.op_digitize, (ROWS[0], ROWS[1]), (ROWS[2], ROWS[1])),
    "median": (lambda x: mo.op_median(x), (ROWS,), (np.where(ROWS == 4, np.nan, ROWS),)),
    "mod": (mo.op_mod, (np.array([7, 8]), np.array([3, 3])), (np.array([-7, 8]), np.array([3, -5]))),
    "gradient": (mo.grad(lambda x: mo.op_sum(x**3)), (ROWS,), (-ROWS,)),
}


@pytest.mark.parametrize("before_dispatch", [False, True])
@pytest.mark.parametrize("name", TRACED)
def test_a_traced_program_is_no_constant(name, before_dispatch):
    f, first, other = TRACED[name]
    first, other = ([mo.op_convert_to_tensor(x) for x in xs] for xs in (first, other))
    found = make_fx(f, pre_dispatch=before_dispatch)(*first)(*other)
    assert torch.equal(torch.nan_to_num(found), torch.nan_to_num(f(*other)))


@pytest.mark.parametrize("before_dispatch", [False, True])
def test_a_traced_tensor_is_no_array(before_dispatch):
    program = lambda x: x * mo.op_convert_to_numpy(x)
    with pytest.raises(MultiopError, match="is not known in compiled"):
        make_fx(program, pre_dispatch=before_dispatch)(torch.ones(2))
    of_constant = lambda x: x * mo.op_convert_to_numpy(torch.tensor(3.0))
    assert make_fx(of_constant, pre_dispatch=before_dispatch)(torch.ones(2))(torch.ones(2)).tolist() == [3, 3]


def test_a_trace_of_another_thread_is_not_seen():
    begun, ended, found = threading.Event(), threading.Event(), []

    def count():
        begun.wait(60)
        try:
            with mo.use_backend("torch"):  # the test's own is of its thread
                found.append(mo.op_while_loop(lambda k: k < 3, lambda k: (k + 1,), (torch.tensor(0),)))
        finally:
            ended.set()

    def program(x):
        begun.set()
        ended.wait(60)
        return x + 1

    thread = threading.Thread(target=count)
    thread.start()
    make_fx(program, pre_dispatch=True)(torch.ones(2))
    thread.join()
    assert [k.item() for k in found[0]] == [3]


def test_a_custom_gradient_keeps_few_objects():
    """Each is one that Python's garbage collector visits, as long as the graph is alive."""

    @mo.op_custom_gradient
    def of_input(x):
        return torch.sin(x), lambda upstream: upstream * torch.cos(x)

    @mo.op_custom_gradient
    def of_output(x):
        y = torch.exp(x)
        return y, lambda upstream: upstream * y

    for f in (of_input, of_output):
        y = x = torch.ones(3, requires_grad=True)
        for n in (10, 100):  # the first calls fill caches
            gc.collect()
            before = len(gc.get_objects())
            for _ in range(n):
                y = f(y)
        assert len(gc.get_objects()) - before <= 16 * n
        assert torch.autograd.grad(y.sum(), x)[0].shape == (3,)
