"""What training pays for: an op and its gradient move the bytes of PyTorch's own, with its kernels, or little more."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from counted import DEARER, Count, count, rows

import multiop as mo

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_op_moves_more_bytes_or_launches_more_kernels_than_its_native_form(dtype):
    late = {}
    for name, ours, native, xs in rows(DTYPES[dtype]):
        factor, more, _ = DEARER.get(name, (1.15, 2, ""))
        mine, theirs = count(ours, xs), count(native, xs)
        if mine.bytes > factor * theirs.bytes or mine.kernels > theirs.kernels + more:
            late[name] = mine.bytes / theirs.bytes, mine.names, theirs.names
    assert not late


def test_the_count_sees_a_formula():
    x = torch.empty(64, 64, device="meta", requires_grad=True)
    formula, kernel = count(lambda x: x * torch.sigmoid(x), [x]), count(torch.nn.functional.silu, [x])
    assert kernel.kernels == 2
    assert kernel.bytes == 5 * x.numel() * 4
    assert formula.kernels > 4
    assert formula.bytes > 2 * kernel.bytes


class Watched(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


WATCHERS = {
    "a dispatch mode": Watched,
    "a counter": Count,
    "hooks": lambda: torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x),
    "a profiler": lambda: torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
}


def graph(function, xs):
    """Return the names of the autograd nodes of `function(*xs)`, in the order of a walk from the result."""
    y = function(*xs)
    nodes = [(y[0] if isinstance(y, tuple) else y).grad_fn]
    for node in nodes:
        nodes += [parent for parent, _ in node.next_functions if parent is not None and parent not in nodes]
    return [node.name() for node in nodes]


@pytest.mark.parametrize("watcher", WATCHERS)
def test_the_form_of_an_op_does_not_depend_on_who_is_watching(watcher):
    torch.manual_seed(0)
    other = {}
    for name, ours, _, xs in rows(torch.float32, "cpu", batch=1, t=8, width=16):
        plain = graph(ours, xs)
        with WATCHERS[watcher]():
            watched = graph(ours, xs)
        if plain != watched:
            other[name] = plain, watched
    assert not other


class Operations(torch.utils._python_dispatch.TorchDispatchMode):
    """Collect what is dispatched; of `views_alone`, that for which nothing is launched: views, and looks at dtypes."""

    def __init__(self, views_alone=False):
        super().__init__()
        self.names, self.views_alone = [], views_alone

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not self.views_alone or func.is_view or str(func).startswith("aten.promote_types"):
            self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_moving_moments_are_moved_by_the_kernel_that_normalizes():
    x, vector = torch.rand(4, 3, 5, 5).requires_grad_(), torch.rand(3).requires_grad_()
    mean, variance = torch.randn(3), torch.rand(3)
    given = {"moving_mean": mean.clone(), "moving_variance": variance.clone(), "momentum": 0.9, "correction": 1}
    call = lambda: mo.op_batch_normalization_with_moments(x, 1, vector, vector, **given)
    expected = [torch.nn.functional.batch_norm(x, mean, variance, vector, vector, True, 0.1, 0.001), mean, variance]
    found = list(call())
    torch.testing.assert_close(found, expected)
    for t, moved in zip((given["moving_mean"], given["moving_variance"]), found[1:], strict=True):
        t.copy_(moved.detach())  # as a module does before the gradient is computed
    results = [torch.autograd.grad(torch.sum(torch.sin(y)), x)[0] for y in (found[0], expected[0])]
    torch.testing.assert_close(*results)
    with Operations() as seen:
        call()
    assert seen.names == ["aten._native_batch_norm_legit_functional.default"]


@pytest.mark.parametrize(
    ("name", "views"),
    [("batch_normalization", []), ("batch_normalization_with_moments", ["aten.unbind.int"]), ("arcsinh", [])],
)
def test_a_kernel_with_a_rule_of_its_own_takes_no_views(name, views):
    x, vector = torch.rand(4, 3, 5, 5).requires_grad_(), torch.rand(3).requires_grad_()
    options = {"scale": vector, "offset": vector}
    call = {
        "batch_normalization": lambda: mo.op_batch_normalization(x, vector, vector, 1, **options),
        "batch_normalization_with_moments": lambda: mo.op_batch_normalization_with_moments(x, 1, **options)[0],
        "arcsinh": lambda: mo.op_arcsinh(x),
    }[name]
    call()  # what is looked up once
    with Operations(views_alone=True) as seen:
        y = call()
        upstream = torch.ones(y.shape)
        found = len(seen.names)
        torch.autograd.grad(y, x, upstream)
    assert seen.names[:found] == views
    assert seen.names[found:] == []
