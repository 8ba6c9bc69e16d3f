"""What tests/test_kernels.py does not compare: digits, ties, errors, memory, graphs, which kernel of PyTorch runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

import multiop as mo
from multiop._loading import kernels, registry
from multiop.backends.torch.kernels import reduction
from multiop.backends.torch.ops import elementwise
from multiop.testing._problem import Problem
from multiop.testing.cases import rows

NAN = float("nan")
MASK = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])[
    None, None
]  # a query sees nothing
BIAS = torch.tensor([[0.5, -1.0, 2.0], [0.0, 1.0, 0.5], [-float("inf"), 1.0, 0.0]], dtype=torch.float64)[None, None]


def tracked(*shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_()


def test_digamma_in_float32_has_its_digits_at_its_roots():
    mp = pytest.importorskip("mpmath")
    points = [1.4616321449683623, -0.5040830082644554, -1.5734984731623905, -2.6107208684441445, 0.1, -7.3, 1e-20, 1e20]
    x = torch.tensor(points, dtype=torch.float32, requires_grad=True)
    y = mo.op_digamma(x)
    assert y.grad_fn.name() == "_FusedBackward"
    exact = [mp.mpf(one) for one in x.tolist()]
    expected = torch.tensor([float(mp.digamma(one)) for one in exact])
    torch.testing.assert_close(y.detach(), expected, rtol=1.2e-7, atol=0)
    (slope,) = torch.autograd.grad(y[:-2].sum(), x)
    expected = torch.tensor([float(mp.polygamma(1, one)) for one in exact[:-2]])
    torch.testing.assert_close(slope[:-2], expected, rtol=1.2e-7, atol=0)


@pytest.mark.parametrize("way", [lambda z: mo.op_hypot(z.real, z.imag), mo.op_abs])
@pytest.mark.parametrize("scale", [2.0**-149, 1.0, 3e38])
def test_the_gradient_of_a_length_is_a_direction_at_either_end_of_the_range(way, scale):
    z = torch.tensor([scale, 1j * scale, -scale, scale - 1j * scale, 0.0], requires_grad=True)
    (found,) = torch.autograd.grad(way(z).sum(), z)
    expected = torch.tensor([1.0, 1j, -1.0, complex(0.5**0.5, -(0.5**0.5)), 0.0])
    if scale < 1e-40:  # the length of the fourth is rounded to one unit
        found, expected = found[[0, 1, 2, 4]], expected[[0, 1, 2, 4]]
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0, None), (None, 0), (0.1, 0.1), (2, -2), (None, 0.1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_clip_has_a_gradient_at_its_bounds_whatever_that_of_clamp_is(dtype, bounds, monkeypatch):
    """From PyTorch 2.14 on, that of clamp is 0 there."""
    monkeypatch.setattr(elementwise, "CLAMPS_WITH_SLOPE", False)
    limits = [math.nextafter(0, way) for way in (-1, 1)]
    values = [-3.0, -1.0, -0.1, *limits, 0.0, 0.1, 1.0, 3.0, 1e30, -1e30]
    x = torch.tensor(values, dtype=dtype).requires_grad_()
    y = mo.op_clip(x, *bounds)
    expected = torch.clamp(x.detach(), *bounds)
    torch.testing.assert_close(y.detach(), expected, rtol=0, atol=0)
    assert torch.equal(torch.signbit(y[x == 0]), torch.signbit(expected[x == 0]))
    (slope,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
    low, high = (None if bound is None else torch.tensor(bound, dtype=dtype) for bound in bounds)
    is_kept = torch.ones_like(x, dtype=torch.bool) if low is None else x >= low
    is_kept = is_kept if high is None else is_kept & (x <= high)
    assert slope.tolist() == is_kept.to(dtype).tolist()
    (once,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    assert torch.equal(torch.autograd.grad(once.sum(), x)[0], 2 * slope)


@pytest.mark.parametrize("approximate", [True, False])
def test_gelu_in_float16_has_its_second_derivative(approximate):
    x = torch.tensor([-60000.0, -300.0, -3.0, 0.5, 41.0, 300.0, 60000.0], dtype=torch.float16)
    exact = x.double().requires_grad_()
    bends = []
    for t in (x.requires_grad_(), exact):
        (slope,) = torch.autograd.grad(mo.op_gelu(t, approximate=approximate).sum(), t, create_graph=True)
        bends.append(torch.autograd.grad(slope.sum(), t)[0].double())
    torch.testing.assert_close(*bends, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_rows_of_equal_entries_are_normalized_to_their_rounding(dtype):
    x = torch.full((2, 1021), 1000.3).to(getattr(torch, dtype)).requires_grad_()
    y = mo.op_layer_normalization(x)
    eps = torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps
    assert float(y.abs().max()) <= 8 * eps * 1000 / 1e-7**0.5
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert slope.isfinite().all()


def groups_in_steps(x, gamma):
    parts = x.reshape(len(x), 2, -1)
    parts = parts - parts.mean(-1, keepdim=True)
    y = parts * torch.rsqrt((parts * parts).mean(-1, keepdim=True) + 1e-5)
    return y.reshape(x.shape) * gamma.reshape(-1, *[1] * (x.ndim - 2))


@pytest.mark.parametrize("shape", [(2, 4, 3, 5), (2, 4, 1, 1), (2, 4, 3, 1, 2)])
@pytest.mark.parametrize("form", ["first", "last in memory", "last"])
def test_groups_of_channels_with_a_large_mean_keep_their_digits(form, shape):
    torch.manual_seed(0)
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0]).reshape(4, *[1] * (len(shape) - 2))  # a deviation of 1 in each group
    x, gamma = torch.randn(shape) * 0.1 + signs + 1e4, torch.randn(4).requires_grad_()
    x = x if form == "first" else x.movedim(1, -1).contiguous().movedim(-1, 1)
    x.requires_grad_()
    if form == "last":
        y = mo.op_group_normalization(x.movedim(1, -1), 2, gamma, epsilon=1e-5).movedim(-1, 1)
    else:
        y = mo.op_group_normalization(x, 2, gamma, axis=1, epsilon=1e-5)
    exact = [t.detach().double().requires_grad_() for t in (x, gamma)]
    wanted, upstream = groups_in_steps(*exact), torch.randn(shape)
    # a unit of x is 1e-3 of its deviation
    torch.testing.assert_close(y.double(), wanted, rtol=0, atol=5e-3)
    found = torch.autograd.grad(y, (x, gamma), upstream, retain_graph=True)
    expected = torch.autograd.grad(wanted, exact, upstream.double())
    torch.testing.assert_close([t.double() for t in found], list(expected), rtol=5e-3, atol=3e-2)
    rows = torch.stack([upstream, -upstream])
    (mapped,) = torch.autograd.grad(y, x, rows, is_grads_batched=True)
    torch.testing.assert_close(mapped, torch.stack([found[0], -found[0]]), rtol=5e-3, atol=1e-3)


@pytest.mark.parametrize("option", ["strides", "dilation_rate"])
@pytest.mark.parametrize("value", [True, 1.0, torch.ones(2).numpy()])
def test_a_convolution_by_one_call_takes_ints(option, value):
    x, kernel = torch.ones(1, 2, 3, 3), torch.ones(1, 1, 2, 3)
    with pytest.raises(mo.errors.ArgumentTypeError, match=f"{option} must hold ints"):
        mo.op_conv(x, kernel, data_format="channels_first", **{"padding": "same", option: value})


@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize("wrong", [-100, -1, 3, 2**31 - 1])
def test_the_loss_of_rows_by_one_call_takes_the_classes_that_there_are(shape, wrong):
    x = torch.arange(12.0).reshape(4, 3).repeat(*shape, 1, 1)
    target = torch.tensor([0, 2, 1, 0], dtype=torch.int32).repeat(*shape, 1)
    expected = torch.logsumexp(x, -1) - torch.take_along_dim(x, target.long()[..., None], -1)[..., 0]
    torch.testing.assert_close(mo.op_sparse_categorical_crossentropy(target, x, from_logits=True), expected)
    target.view(-1)[-1] = wrong
    with pytest.raises(mo.errors.ArgumentError, match="target has a class that is not among the 3"):
        mo.op_sparse_categorical_crossentropy(target, x, from_logits=True)


@pytest.mark.parametrize(("size", "dtype"), [((6, 8), "torch.float32"), ((5, 3), "torch.float64")])
def test_images_are_resized_in_float64_where_float32_lacks_the_places_of_pixels(size, dtype, monkeypatch):
    taken, kernel = [], torch.nn.functional.interpolate
    monkeypatch.setattr(
        torch.nn.functional, "interpolate", lambda x, *a, **k: taken.append(x.dtype) or kernel(x, *a, **k)
    )
    images = tracked(2, 3, 4, 3, dtype=torch.float32)
    y = mo.op_image_resize(images, size)
    assert (names_of_nodes(y), list(map(str, taken))) == ({*names_of_nodes(mo.op_expm1(images))}, [dtype])


KERNELS = {  # one of `fused`, with one result and with several, and one of `recorded`
    "hypot": lambda x: mo.op_hypot(x, x.flip(1) * 2),
    "batch_normalization_with_moments": lambda x: mo.op_batch_normalization_with_moments(x, 1, x[0, :, 0, 0])[0],
    "cdist": lambda x: mo.op_cdist(x, x.flip(1) * 2),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_fused_kernel_keeps_its_graph_as_autograd_does(name):
    x = tracked(2, 3, 2, 4)
    y = KERNELS[name](x).sum()
    (first,) = torch.autograd.grad(y, x, retain_graph=True)
    (second,) = torch.autograd.grad(y, x)
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, x)


@pytest.mark.parametrize("name", KERNELS)
def test_a_fused_kernel_takes_a_batch_of_upstream_gradients(name):
    x = tracked(2, 3, 2, 4)
    y = KERNELS[name](x)
    upstream = torch.stack([torch.ones_like(y), torch.arange(y.numel(), dtype=y.dtype).reshape(y.shape)])
    (found,) = torch.autograd.grad(y, x, upstream, is_grads_batched=True, retain_graph=True)
    expected = [torch.autograd.grad(y, x, one, retain_graph=True)[0] for one in upstream]
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", ["apart", "to themselves", "some short", "all short", "batched"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances_by_a_product_keep_their_digits(dtype, case):
    x, y = (tracked(*shape).detach().to(dtype) for shape in ((2, 70, 64), (2, 80, 64)))
    if case != "batched":
        x, y = x[0], y[0] * 0.9
    if case == "to themselves":
        y = x.clone()
    if case == "some short":
        y[3], y[7] = x[5] + 1e-3, x[7]
    if case == "all short":
        x, y = x + 100, y + 100
    upstream = tracked(*x.shape[:-1], y.shape[-2]).detach()
    found = [x.requires_grad_(), y.requires_grad_()]
    d = mo.op_cdist(*found)
    exact = [z.detach().double().requires_grad_() for z in found]
    squares = (exact[0][..., :, None, :] - exact[1][..., None, :, :]).square().sum(-1)
    expected = torch.sqrt(torch.where(squares == 0, 1.0, squares)) * (squares != 0)
    torch.testing.assert_close(d.double(), expected, rtol=20 * torch.finfo(dtype).eps, atol=0)
    gradients = torch.autograd.grad(d, found, upstream.to(dtype)), torch.autograd.grad(expected, exact, upstream)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(
            one.double(), other, rtol=0, atol=float(other.abs().max()) * torch.finfo(dtype).eps * 20
        )


@pytest.mark.parametrize("k", [1, 3, 40])
@pytest.mark.parametrize("values", ["distinct", "tied", "with NaN"])
def test_top_k_takes_the_first_of_equal_entries(values, k):
    x = tracked(5, 40).detach()
    if values == "tied":
        x = x.round()
    if values == "with NaN":
        x[2, 7] = NAN
    found, places = mo.op_top_k(x, k)
    expected = torch.sort(x, descending=True, stable=True)
    torch.testing.assert_close(found, expected.values[:, :k], rtol=0, atol=0, equal_nan=True)
    assert places.tolist() == expected.indices[:, :k].tolist()


@pytest.mark.parametrize("k", [1, 5, 63, 64])
def test_top_k_of_many_takes_the_first_of_those_that_are_equal_at_its_end(k):
    x = torch.rand(64, 4096, generator=torch.Generator().manual_seed(0))
    order = torch.argsort(x, descending=True)
    rows = torch.arange(64)
    x[rows, order[:, k]] = x[rows, order[:, k - 1]]  # the last that is taken, and the first that is not
    expected = torch.sort(x, descending=True, stable=True).indices[:, :k]
    assert not torch.equal(torch.topk(x, k).indices, expected) or k == 1  # PyTorch's own takes any
    assert mo.op_top_k(x, k)[1].tolist() == expected.tolist()


def test_the_bias_of_attention_has_a_gradient():
    x, bias = tracked(2, 3, 2, 4), BIAS.clone().requires_grad_()
    f = lambda bias: mo.op_dot_product_attention(x.detach(), x.detach() * 2, x.detach(), bias, MASK)
    assert "_FusedBackward" not in names_of_nodes(f(bias))
    assert torch.autograd.gradcheck(f, torch.zeros_like(bias).requires_grad_())


def test_attention_gives_only_the_gradients_that_are_asked_for():
    query, key, value = (tracked(2, 3, 2, 4) for _ in range(3))
    expected = torch.autograd.grad(mo.op_dot_product_attention(query, key, value).sum(), (query, key, value))
    for k, x in enumerate((query, key, value)):
        fixed = [one if k == i else one.detach() for i, one in enumerate((query, key, value))]
        (found,) = torch.autograd.grad(mo.op_dot_product_attention(*fixed).sum(), x)
        torch.testing.assert_close(found, expected[k], rtol=1e-12, atol=1e-12)
    same = mo.op_dot_product_attention(query, query, query).square().sum()
    (once,) = torch.autograd.grad(same, query, create_graph=True)
    (again,) = torch.autograd.grad(same, query)
    torch.testing.assert_close(once, again, rtol=1e-12, atol=1e-12)


FUSED_ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("key_heads", [4, 2])
@pytest.mark.parametrize("way", ["eager", "jit", "compile", "vmap", "autocast"])
def test_attention_is_the_fused_kernel_in_every_dtype_and_way(dtype, key_heads, way):
    torch.manual_seed(0)
    query = torch.randn(2, 6, 4, 8).to(dtype)
    key, value = torch.randn(2, 2, 6, key_heads, 8).to(dtype)
    attend = lambda *xs: mo.op_dot_product_attention(*xs, is_causal=True)
    f, xs = attend, (query, key, value)
    if way == "jit":
        f = mo.jit(attend)
    elif way == "compile":
        f = torch.compile(attend, fullgraph=True, backend="aot_eager")
    elif way == "vmap":
        f = lambda *xs: mo.vmap(attend)(*[x[:, None] for x in xs])[:, 0]
    f(*xs)  # compiled before it is watched
    watched = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    with watched as profile, torch.autocast("cpu", enabled=way == "autocast"):
        y = f(*xs)
    assert FUSED_ATTENTION in {event.name for event in profile.events()}
    exact = [x.double() for x in xs]
    exact[1:] = [x.repeat_interleave(4 // key_heads, 2) for x in exact[1:]]
    logits = torch.einsum("bqhd,bkhd->bhqk", *exact[:2]) / 8**0.5
    logits = logits.masked_fill(~torch.ones(6, 6, dtype=torch.bool).tril(), -math.inf)
    expected = torch.einsum("bhqk,bkhd->bqhd", logits.softmax(-1), exact[2])
    rtol = 8 * torch.finfo(torch.bfloat16 if way == "autocast" and dtype is not torch.float64 else dtype).eps
    torch.testing.assert_close(y.double(), expected, rtol=rtol, atol=rtol)


def names_of_nodes(y):
    found, nodes = set(), [y.grad_fn]
    for node in nodes:
        found.add(node.name())
        nodes += [parent for parent, _ in node.next_functions if parent is not None]
    return found


@pytest.mark.parametrize("dims", [(0, 2, 3), (1,), (-1,), (0, 1, 2, 3)])
@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float32, 1e-6), (torch.float64, 1e-13)])
def test_the_variance_of_many_entries_is_computed_by_steps(dims, dtype, rtol, monkeypatch):
    monkeypatch.setattr(reduction, "WHOLE", 2**15)
    x = (tracked(8, 12, 32, 16).detach() * 3 + 100).to(dtype).requires_grad_()
    y = mo.op_var(x, dims, keepdims=True)
    assert "_FusedBackward" in names_of_nodes(y)
    exact = x.detach().double().requires_grad_()
    expected = torch.var(exact, dims, correction=0, keepdim=True)
    torch.testing.assert_close(y.double(), expected, rtol=rtol, atol=0)
    assert mo.op_var(x, dims).shape == torch.var(x, dims).shape
    (slope,) = torch.autograd.grad(expected.square().sum(), exact)
    (found,) = torch.autograd.grad(y.square().sum(), x)
    torch.testing.assert_close(found.double(), slope, rtol=rtol, atol=rtol * float(slope.abs().max()))


@pytest.mark.parametrize("values", [[NAN], [math.inf], [math.inf, -math.inf], [3e38, -3e38]])
def test_the_variance_of_many_entries_is_that_of_the_kernel_beside_overflow(values):
    x = torch.ones(32, 1024)
    x[0, : len(values)] = torch.tensor(values)
    x[1] = 0.1
    torch.testing.assert_close(mo.op_var(x, 1), torch.var(x, 1, correction=0), equal_nan=True, rtol=0, atol=0)
    assert float(mo.op_var(x, 1)[1]) == 0
    y = torch.full((32, 1024), 0.1).requires_grad_()
    assert float(torch.autograd.grad(mo.op_var(y, 1).sum(), y)[0].abs().max()) == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_the_mean_of_many_entries_has_a_gradient_that_takes_no_memory(axis, dtype):
    x = tracked(16, 32, 10, dtype=dtype)
    y = mo.op_mean(x, axis)
    assert "MeanBackward0" not in names_of_nodes(y)
    expected = torch.mean(x.detach()) if axis is None else torch.mean(x.detach(), axis)
    assert torch.equal(y.detach(), expected)
    (slope,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert slope.untyped_storage().nbytes() <= y.numel() * y.element_size()
    torch.testing.assert_close(slope, torch.full_like(slope, y.numel() / x.numel()), rtol=1e-6, atol=0)


@pytest.mark.parametrize("used", [0, 1, 2])
def test_what_is_not_used_of_a_batch_normalization_has_no_upstream_gradient(used):
    x = tracked(3, 4, 5)
    (found,) = torch.autograd.grad(mo.op_batch_normalization_with_moments(x, 1, epsilon=1e-3)[used].pow(3).sum(), x)
    mean, variance = x.mean((0, 2)), x.var((0, 2), correction=0)
    y = (x - mean[:, None]) / torch.sqrt(variance[:, None] + 1e-3)
    torch.testing.assert_close(found, torch.autograd.grad((y, mean, variance)[used].pow(3).sum(), x)[0])


def test_batch_normalization_with_moments_keeps_its_operand_alone():
    x = tracked(3, 4, 5)
    found = mo.op_batch_normalization_with_moments(x, 1)
    y = StorageWeakRef(found[0].untyped_storage())
    total = found[0].sum()
    del found
    assert y.expired()
    torch.autograd.grad(total, x)


@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("value", [0.3, 1e4])
def test_a_channel_of_equal_entries_is_normalized_to_its_rounding(value, n):
    x = torch.linspace(-1, 1, 4 * n).reshape(n, 4)
    x[:, 1] = value
    x.requires_grad_()
    y, mean, variance = mo.op_batch_normalization_with_moments(x, 1, epsilon=1e-5)
    torch.testing.assert_close(mean, x.detach().mean(0), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(variance, x.detach().var(0, correction=0), rtol=1e-5, atol=1e-6)
    assert float(y.detach()[:, 1].abs().max()) <= 4 * torch.finfo(x.dtype).eps * value / 1e-5**0.5
    (slope,) = torch.autograd.grad(y.square().sum(), x)
    assert slope.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_batch_normalization_in_16_bits_has_moments_that_may_overflow(dtype):
    x = torch.tensor([[-600.0], [600.0]], dtype=dtype).requires_grad_()
    y, mean, _ = mo.op_batch_normalization_with_moments(x, 1)
    assert (y.tolist(), mean.tolist()) == ([[-1.0], [1.0]], [0.0])


@pytest.mark.parametrize("op", [op for op in kernels.names(registry.load("torch")) if rows()[op].differentiable])
def test_a_kernel_takes_an_upstream_of_zeros_without_memory(op, multiop_x64):
    """PyTorch passes it where the gradient of a gradient is zero, as that of `sign` is, and refuses to write to it."""
    for call in rows()[op].calls:
        dtype = "float64" if "float64" in rows()[op].dtypes else rows()[op].dtypes[0]
        problem = Problem(getattr(mo, op), call, dtype=dtype)
        tensors = [mo.op_convert_to_tensor(x) for x in problem.arrays]
        tracked = [tensors[k].requires_grad_() for k in problem.inexact]
        outputs = problem.apply(problem.f, tensors)
        ys = [y for y in (outputs if isinstance(outputs, (list, tuple)) else [outputs]) if y.requires_grad]
        upstreams = [torch._efficientzerotensor(y.shape, dtype=y.dtype) for y in ys]
        for grad in torch.autograd.grad(ys, tracked, upstreams, allow_unused=True) if ys and tracked else ():
            assert grad is None or not grad.any()


def test_the_gradient_of_a_gradient_that_is_zero_goes_through_a_kernel(multiop_x64):
    x = tracked(5)
    (slope,) = torch.autograd.grad(mo.op_abs(mo.op_arctan2(x, 1 + x * x)).sum(), x, create_graph=True)
    (found,) = torch.autograd.grad(slope.sum(), x)
    (slope,) = torch.autograd.grad(torch.atan(x / (1 + x * x)).abs().sum(), x, create_graph=True)
    torch.testing.assert_close(found, torch.autograd.grad(slope.sum(), x)[0])


@pytest.mark.parametrize("axes", [{}, {"axisa": 0}, {"axisb": 0, "axisc": 0}, {"axis": 0}, {"axisa": 0, "axis": 1}])
def test_cross_takes_its_axes_where_each_fits(axes):
    x, y = np.random.default_rng(0).normal(size=(2, 3, 3))
    found = mo.op_cross(torch.tensor(x), torch.tensor(y), **axes)
    np.testing.assert_allclose(found, np.cross(x, y, **axes), rtol=1e-12)


ENDS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.0, 1 / 3, 1e-45, -1e-38, 3e38, 16777217.0, math.inf, -math.inf, math.nan]
PAIRS = np.meshgrid(ENDS, ENDS)
POWERS = np.meshgrid(ENDS, np.array([-(2**31), -300, -149, -1, 0, 1, 127, 128, 300, 2**31 - 1], np.int32))
ON_VALUES = {  # an op of which a value alone takes fewer steps, operands, and NumPy's function of them
    "sign": (mo.op_sign, [ENDS], np.sign),
    "sinc": (mo.op_sinc, [ENDS], lambda x: np.where((x == np.round(x)) & (x != 0), 0 * x, np.sinc(x))),
    "heaviside": (mo.op_heaviside, PAIRS, np.heaviside),
    "ldexp": (mo.op_ldexp, POWERS, np.ldexp),
    "angle of real numbers": (mo.op_angle, [ENDS * 200], lambda x: np.arctan2(0 * np.ones_like(x), x)),
    "angle": (lambda x, y: mo.op_angle(torch.complex(x, y)), PAIRS, lambda x, y: np.arctan2(y, x)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ON_VALUES)
def test_values_that_nothing_differentiates_are_numpys(name, dtype):
    ours, operands, reference = ON_VALUES[name]
    xs = [np.asarray(x, None if isinstance(x, np.ndarray) and x.dtype == np.int32 else dtype) for x in operands]
    found = ours(*map(torch.from_numpy, xs))
    assert found.dtype == getattr(torch, dtype)
    with np.errstate(all="ignore"):
        expected = reference(*xs)
    bounds = {"rtol": 4 * np.finfo(dtype).eps, "atol": 1e-44 if name == "angle" else 0}
    np.testing.assert_allclose(found.numpy(), expected, **bounds)


@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-30, 1e-44, 0.0])
@pytest.mark.parametrize(("axis", "order", "epsilon"), [(1, 2, 1e-12), ((0, 1), 3, 1e-12), (0, 1, 2.0), (-1, 5, 1e-20)])
def test_a_normalized_value_neither_overflows_nor_vanishes(scale, axis, order, epsilon):
    x = (torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * scale).to(torch.float32)
    length = torch.linalg.vector_norm(x.double(), order, axis, True)
    expected = x.double() / length.clamp(min=epsilon)
    torch.testing.assert_close(mo.op_normalize(x, axis, order, epsilon).double(), expected, rtol=1e-6, atol=3e-45)


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.5, 1e3), (2, 2.0), (3e38, -3e38), (0.0, 1e-40), (0.1, 0.7), (-9, 7)])
@pytest.mark.parametrize("is_compiled", [False, pytest.param(True, marks=[pytest.mark.compiler, pytest.mark.rotating])])
def test_numbers_between_two_of_python_are_exact_to_two_units(ends, is_compiled):
    for n in (2, 7, 1001):
        made = mo.jit(lambda n=n: mo.op_linspace(*ends, n, retstep=True)) if is_compiled else None
        numbers, step = made() if made else mo.op_linspace(*ends, n, retstep=True)
        expected, distance = np.linspace(*np.float64(np.float32(ends)), n, retstep=True)
        bound = 2 * np.spacing(np.abs(np.float32(ends)).max()) + n * 7e-46  # half of the smallest number, at each step
        np.testing.assert_allclose(numbers.numpy(), expected, rtol=0, atol=bound)
        assert (numbers[0].item(), numbers[-1].item()) == tuple(map(float, np.float32(ends)))
        np.testing.assert_allclose(step.numpy(), np.float32(distance), rtol=1e-6, atol=1e-45)
        assert numbers.dtype is step.dtype is torch.float32


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_of_kernels_at_the_edges_are_those_of_numpy(dtype, multiop_x64):
    edges = [0.0, -0.0, 1.0, -2.5, 1e-45, -1e-45, 3e38, math.inf, -math.inf, math.nan]
    x, y = np.array(edges, dtype), np.array([*edges[3:], 7.0, -0.0, 0.5], dtype)
    of = torch.from_numpy
    for found, expected in (
        (mo.op_sign(of(x)), np.sign(x)),
        (mo.op_heaviside(of(x), of(y)), np.heaviside(x, y)),
        (mo.op_unique(of(np.repeat(x, 2))), np.unique(x)),
        (mo.op_unique(of(x[:-1])), np.unique(x[:-1])),
        (mo.op_sinc(of(np.array([1.0, 2**23 - 1, 2**30], dtype))), np.zeros(3, dtype)),
        (mo.op_trapezoid(of(np.array([3e38] * 5, "float32")), dx=0.25), np.float32(3e38)),
        (mo.op_trapezoid(of(np.array([math.inf, 1.0, 2.0], dtype))), math.inf),
        (mo.op_trapezoid(of(np.array([1.0, 2.0], dtype)), dx=3), 4.5),
    ):
        np.testing.assert_allclose(mo.op_convert_to_numpy(found), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("size", [8, 32])
def test_sums_along_axes_that_lie_apart_are_those_of_numpy(dtype, keepdims, size, multiop_x64):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(8, 8, 8, size)).astype(dtype)
    x = x + np.flip(x, 0) * 1j if dtype == "complex64" else x
    wide = x.astype("complex128")
    for axis in ((0, 2), (-2, 0), (0, 1, 2), (0, 3)):
        for given in (torch.from_numpy(x), torch.from_numpy(x.conj()).conj()):
            total, mean = mo.op_sum(given, axis, keepdims), mo.op_mean(given, axis, keepdims)
            np.testing.assert_allclose(total.resolve_conj(), wide.sum(axis, keepdims=keepdims), rtol=1e-5, atol=1e-4)
            np.testing.assert_allclose(mean.resolve_conj(), wide.mean(axis, keepdims=keepdims), rtol=1e-5, atol=1e-6)
    half = torch.full((16, 4, 16, 32), 3000.0, dtype=torch.float16)
    assert torch.equal(mo.op_mean(half, (0, 2)), half[0, :, 0])  # the sum overflows


def test_the_derivative_of_a_sum_along_axes_that_lie_apart():
    x = tracked(8, 8, 4, 32)
    for ours, native in ((mo.op_sum, torch.sum), (mo.op_mean, torch.mean)):
        both = [(f(x**3, (0, 2)) ** 2).sum() for f in (ours, native)]
        first = [torch.autograd.grad(y, x, create_graph=True)[0] for y in both]
        torch.testing.assert_close(*first)
        torch.testing.assert_close(*[torch.autograd.grad((g**2).sum(), x)[0] for g in first])
        batch = torch.stack([x.detach()] * 2, -1)
        torch.testing.assert_close(*[torch.vmap(lambda x, f=f: f(x, (0, 2)), -1)(batch) for f in (ours, native)])


@pytest.mark.parametrize("strict", [False, True], ids=["", "strict"])
@pytest.mark.parametrize("op", [mo.op_sum, mo.op_mean])
def test_an_exported_sum_along_axes_that_lie_apart_is_of_any_size(op, strict):
    class Total(torch.nn.Module):
        def forward(self, x):
            return op(x, (0, 2))

    sizes = [torch.export.Dim("b"), None, torch.export.Dim("h"), torch.export.Dim("w")]
    program = torch.export.export(Total(), (torch.ones(8, 8, 4, 32),), dynamic_shapes=(sizes,), strict=strict).module()
    for shape in ((2, 8, 3, 2), (16, 8, 5, 64)):
        torch.testing.assert_close(program(torch.ones(shape)), op(torch.ones(shape), (0, 2)))


class Operations(TorchDispatchMode):
    """The operations that run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.names.append(operation.__name__)
        return operation(*args, **kwargs or {})


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_a_real_tensor_beside_a_complex_one_is_not_copied(name):
    op, native = getattr(mo, f"op_{name}"), getattr(torch, name)
    parts = [0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, NAN, 1e-45, 3e38]
    grid = torch.cartesian_prod(*[torch.tensor(parts)] * 3)
    x, y = torch.complex(grid[:, 0], grid[:, 1]), grid[:, 2].clone()
    for operands in ((x, y), (y, x)):
        with Operations() as found:
            z = op(*operands)
        assert len(found.names) == 1
        expected = native(*[operand.to(torch.complex64) for operand in operands])
        torch.testing.assert_close(z, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.compiler
def test_a_compiled_deviation_of_equal_numbers_has_gradient_0():
    x = torch.randn(40, 1, generator=torch.Generator().manual_seed(0)).expand(40, 7).clone()  # means are other numbers
    assert mo.jit(mo.grad(lambda x: mo.op_sum(mo.op_std(x, 1))))(x).count_nonzero() == 0
