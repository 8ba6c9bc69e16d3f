"""One-line models, one or more for each row of the table of ATen calls."""

from __future__ import annotations

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from ported import error_between, leaves, ported, weights

from multiop import porting

__all__ = ["ROWS", "drawn", "error_between", "leaves", "original", "ported", "traced", "weights"]
F = torch.nn.functional
nn = torch.nn


class Line(nn.Module):
    def __init__(self, line):
        super().__init__()
        self.line = line

    def forward(self, *inputs):
        return self.line(*inputs)


def normal(*shape):
    def draw():
        return torch.randn(*shape, dtype=torch.float64)

    return draw


def positive(*shape):
    return lambda: torch.rand(*shape, dtype=torch.float64) + 0.5


def unit(*shape):
    return lambda: torch.rand(*shape, dtype=torch.float64) * 1.6 - 0.8


def integers(*shape, below=5):
    return lambda: torch.randint(0, below, shape)


def bools(*shape):
    return lambda: torch.rand(*shape) > 0.4


X = normal(3, 4)


def matrices():
    return torch.randn(2, 3, 3, dtype=torch.float64) + 3 * torch.eye(3, dtype=torch.float64)


def entrywise(*names, draw=X, module=torch):
    return {f"{module.__name__.rpartition('.')[2]}.{name}": (getattr(module, name), draw) for name in names}


def named(names, *draws, module=torch):
    return {name: (getattr(module, name), *draws) for name in names.split()}


def changed_view(x):
    y = x * 1
    y[:, 1] = 0.5
    y[1:].mul_(2)
    return y + 1


def changed_base(x):
    y = x * 1
    part = y[1]
    y.add_(1)
    return part * 2, y


def add_to_diagonal(x):
    x.diagonal(dim1=-2, dim2=-1).add_(1.0)
    return x


def inverse(x, i):
    """Return `x` and whole numbers in the order of a permutation that is turned round."""
    order = torch.argsort(x)
    back = torch.empty_like(order)
    back[order] = torch.arange(len(x))
    return x[back], torch.zeros_like(i).index_add(0, back, order), torch.zeros_like(back).scatter(0, order, i)


ROWS = {
    **entrywise("sigmoid", "tanh", "exp", "sin", "cos", "sinh", "cosh", "erf", "erfc", "expm1", "exp2", "abs", "neg"),
    **entrywise("sign", "floor", "ceil", "round", "trunc", "square", "relu", "selu", "asinh", "atan"),
    **entrywise("log", "sqrt", "rsqrt", "log2", "log10", "reciprocal", "log1p", draw=positive(3, 4)),
    **entrywise("asin", "acos", "atanh", "erfinv", "tan", draw=unit(3, 4)),
    "acosh": (torch.acosh, lambda: torch.rand(3, 4, dtype=torch.float64) + 1.5),
    **entrywise("silu", "softsign", "logsigmoid", "hardswish", "hardsigmoid", "relu6", "hardtanh", "mish", module=F),
    "hardtanh bounds": (lambda x: F.hardtanh(x, -0.3, 0.4), lambda: torch.tensor([[-0.3, 0.4, 0.1, 2.0]] * 3).double()),
    "relu6 bounds": (F.relu6, lambda: torch.tensor([[0.0, 6.0, 0.1, 7.0]] * 3).double()),
    **entrywise("elu", "celu", "leaky_relu", "softplus", "softshrink", "hardshrink", "glu", module=F),
    "elu alpha": (lambda x: F.elu(x, 0.3), X),
    "leaky_relu slope": (lambda x: F.leaky_relu(x, 0.3), X),
    "softplus beta": (lambda x: F.softplus(x, 2.0, 3.0), lambda: 3 * torch.randn(3, 4, dtype=torch.float64)),
    "threshold": (lambda x: F.threshold(x, 0.1, 2.0), X),
    "prelu": (F.prelu, normal(3, 4, 5), normal(4)),
    "gelu": (F.gelu, X),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), X),
    "softmax": (lambda x: torch.softmax(x, 1), X),
    "softmax first": (lambda x: torch.softmax(x, 0), normal(3, 4)),
    "log_softmax": (lambda x: torch.log_softmax(x, -1), X),
    "logsumexp": (lambda x: torch.logsumexp(x, (1,), keepdim=True), X),
    "logical_not": (lambda x: torch.logical_not(x > 0), X),
    "bitwise_not": (lambda x: ~(x > 0), X),
    # arithmetic
    "add": (lambda x, y: x + y, X, normal(4)),
    "add alpha": (lambda x, y: torch.add(x, y, alpha=3), X, normal(4)),
    "add number": (lambda x: x + 2, X),
    "add int": (lambda x, y: x + y, X, integers(3, 4)),
    "add ints": (lambda x, y: x + y, integers(3, 4), integers(3, 4)),
    "sub": (lambda x, y: x - y, X, normal(3, 1)),
    "rsub": (lambda x: 2.5 - x, X),
    "mul": (lambda x, y: x * y, X, normal(4)),
    "mul bool": (lambda x: x * (x > 0), X),
    "div": (lambda x, y: x / y, X, positive(4)),
    "div ints": (lambda x, y: (x / (y + 1)).double(), integers(3, 4), integers(3, 4)),
    "div floor": (lambda x, y: torch.div(x, y, rounding_mode="floor"), X, positive(4)),
    "div trunc": (lambda x, y: torch.div(x, y, rounding_mode="trunc"), X, positive(4)),
    "div ints trunc, negative": (lambda x: torch.div(x - 3, -2, rounding_mode="trunc"), integers(3, 4)),
    "div ints trunc": (lambda x: torch.div(x - 3, 2, rounding_mode="trunc"), integers(3, 4)),
    "div ints floor": (lambda x: (x - 3) // 2, integers(3, 4)),
    "remainder": (lambda x: x % 0.7, X),
    "fmod": (lambda x: torch.fmod(x, 0.7), X),
    "pow": (lambda x: x**3, X),
    "pow 2": (lambda x: x**2, X),
    "pow half": (lambda x: x**-0.5, positive(3, 4)),
    "pow tensor": (lambda x, y: x**y, positive(3, 4), X),
    "pow base": (lambda x: 2.0**x, X),
    **named("maximum minimum atan2 logaddexp copysign fmax fmin hypot", X, normal(3, 4)),
    "max other": (torch.max, X, normal(3, 4)),
    "clamp": (lambda x: torch.clamp(x, -0.3, 0.4), X),
    "clamp min": (lambda x: torch.clamp(x, min=0.1), X),
    "clamp ints": (lambda i: (i.clamp(max=2), i.clamp(min=1), i.clamp(1, 3)), integers(3, 4)),
    "round decimals": (lambda x: x + x.round(decimals=2) + (1e3 * x).round(decimals=-2) + x.frac(), X),
    "nextafter": (lambda x: torch.nextafter(x.detach(), x.detach() + 1) * x, X),
    "clamp max": (lambda x: torch.clamp_max(x, 0.1), X),
    "addcmul": (lambda x, y, z: torch.addcmul(x, y, z, value=0.5), X, X, X),
    "addcdiv": (lambda x, y, z: torch.addcdiv(x, y, z), X, X, positive(3, 4)),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.3), X, X),
    "comparisons": (lambda x, y: (x > y, x >= 0.1, x < y, x <= 0, x == y, x != y), X, X),
    "logical": (lambda x, y: ((x > 0) & (y > 0), (x > 0) | (y > 0), (x > 0) ^ (y > 0)), X, X),
    **entrywise("digamma", "lgamma", draw=positive(3, 4)),
    **entrywise("angle", "signbit", "isnan", "isfinite"),
    "i0": (torch.special.i0, X),
    "polygamma": (lambda x: torch.polygamma(2, x), positive(3, 4)),
    "gammainc": (lambda x: torch.special.gammainc(torch.full_like(x, 1.5).detach(), x), positive(3, 4)),
    "gammaincc": (lambda x: torch.special.gammaincc(torch.full_like(x, 1.5).detach(), x), positive(3, 4)),
    "copysign number": (lambda x: torch.copysign(x, -2.0), X),
    "gcd": (lambda x, y: torch.gcd(x, y) + torch.lcm(x, y), integers(3, 4, below=30), integers(3, 4, below=30)),
    "shifts": (lambda x: ((x << 2) + (x >> 1), torch.bitwise_left_shift(x, x)), integers(3, 4)),
    "rrelu": (lambda x: F.rrelu(x, 0.1, 0.5), X),
    "names of NumPy": (
        lambda x, y: (
            torch.absolute(x) + torch.arctan(y),
            torch.multiply(x, torch.ops.aten.clip(y, -0.5, 0.5)),
            torch.less(x, y),
        ),
        X,
        X,
    ),
    # complex numbers, inside of models whose weights are real
    "rotation": (
        lambda x, a: torch.view_as_real(torch.view_as_complex(x) * torch.polar(torch.ones_like(a), a)),
        normal(3, 4, 2),
        normal(3, 4),
    ),
    "complex": (lambda x, y: (torch.complex(x, y) * torch.complex(y, x).conj()).real, X, X),
    "imag": (lambda x, y: (torch.complex(x, y) / torch.complex(y, x)).imag, X, X),
    "complex abs": (lambda x, y: torch.complex(x, y).abs() + torch.angle(torch.complex(y, x)), X, X),
    "fft": (lambda x, y: torch.view_as_real(torch.fft.fft(torch.complex(x, y), norm="ortho")), X, X),
    "fft of a cut": (lambda x: torch.view_as_real(torch.fft.fft(x, n=3, dim=0, norm="forward")), normal(5, 4)),
    "ifft2": (lambda x, y: torch.view_as_real(torch.fft.ifft2(torch.complex(x, y))), normal(2, 3, 4), normal(2, 3, 4)),
    "rfft2": (lambda x: torch.view_as_real(torch.fft.rfft2(x, norm="ortho")), normal(2, 3, 5)),
    "irfft": (lambda x: torch.fft.irfft(torch.fft.rfft(x, n=7) * torch.fft.rfft(x, n=7), n=7), X),
    "irfftn": (lambda x: torch.fft.irfftn(torch.fft.fft(x), s=(4, 6), dim=(0, 1), norm="ortho"), normal(4, 4)),
    "convolution by fft": (lambda x, y: torch.fft.irfft2(torch.fft.rfft2(x) * torch.fft.rfft2(y), s=(3, 4)), X, X),
    # products
    "linear": (F.linear, normal(2, 3, 4), normal(5, 4), normal(5)),
    "addbmm": (lambda x, y, z: torch.addbmm(x, y, z, alpha=2), normal(3, 5), normal(2, 3, 4), normal(2, 4, 5)),
    "pdist": (F.pdist, normal(5, 4)),
    "linear bare": (F.linear, X, normal(5, 4)),
    "matmul": (torch.matmul, normal(2, 3, 4), normal(2, 4, 5)),
    "mm": (torch.mm, X, normal(4, 2)),
    "bmm": (torch.bmm, normal(2, 3, 4), normal(2, 4, 5)),
    "mv": (torch.mv, X, normal(4)),
    "dot": (torch.dot, normal(4), normal(4)),
    "outer": (torch.outer, normal(4), normal(3)),
    "addmm": (lambda x, y, z: torch.addmm(x, y, z, beta=0.5, alpha=2), normal(2), X, normal(4, 2)),
    "baddbmm": (torch.baddbmm, normal(2, 3, 5), normal(2, 3, 4), normal(2, 4, 5)),
    "einsum": (lambda x, y: torch.einsum("bij, bkj -> bik", x, y), normal(2, 3, 4), normal(2, 5, 4)),
    "bilinear product": (F.bilinear, normal(2, 3, 4), normal(2, 3, 5), normal(6, 4, 5), normal(6)),
    "cdist": (torch.cdist, normal(2, 3, 4), normal(2, 5, 4)),
    # reductions
    "sum": (lambda x: x.sum(), X),
    "sum axis": (lambda x: x.sum(1, keepdim=True), X),
    "sum bool": (lambda x: (x > 0).sum(1), X),
    "mean": (lambda x: x.mean((0, 2)), normal(2, 3, 4)),
    "prod": (lambda x: x.prod(1), X),
    "var": (lambda x: x.var(1), X),
    "var biased": (lambda x: x.var((1, 2), unbiased=False, keepdim=True), normal(2, 3, 4)),
    "std": (lambda x: x.std(1, keepdim=True), X),
    "amax": (lambda x: x.amax(1), X),
    "amin": (lambda x: x.amin((0, 1)), X),
    "max": (lambda x: x.max(), X),
    "max dim": (lambda x: x.max(1), X),
    "max ties": (lambda x: x.max(1)[0], lambda: torch.tensor([[1.0, 2.0, 2.0], [3.0, 3.0, 1.0]]).double()),
    "min dim": (lambda x: x.min(0, keepdim=True), X),
    "argmax": (lambda x: x.argmax(1), X),
    "argmin": (lambda x: x.argmin(), X),
    "any": (lambda x: (x > 0).any(1), X),
    "all": (lambda x: (x > 0).all(), X),
    "cumsum": (lambda x: x.cumsum(1), X),
    "diff": (lambda x, y: torch.diff(x, prepend=y), X, normal(3, 1)),
    "cumprod": (lambda x: x.cumprod(1), X),
    "norm": (lambda x: x.norm(dim=1, keepdim=True), X),
    "norm all": (lambda x: torch.linalg.vector_norm(x), X),
    "norm of order 3": (lambda x: torch.linalg.vector_norm(x, 3, dim=1, keepdim=True), X),
    "norm of order inf": (lambda x: torch.linalg.vector_norm(x, float("inf")), X),
    "matrix norm": (lambda x: torch.linalg.matrix_norm(x) + torch.linalg.matrix_norm(x, "nuc"), normal(2, 3, 4)),
    "matrix norm 1": (lambda x: torch.linalg.matrix_norm(x, 1), normal(2, 3, 4)),
    "var_mean": (lambda x: torch.var_mean(x, 1, keepdim=True), X),
    "std_mean": (lambda x: torch.std_mean(x, (1, 2), correction=0), normal(2, 3, 4)),
    "median": (lambda x: x[:2].median(), normal(2, 6)),
    "median dim": (lambda x: x.median(1), X),
    "median dim, odd": (lambda x: x.median(1, keepdim=True), normal(3, 5)),
    "kthvalue": (lambda x: x.kthvalue(2, 1), X),
    "normalize": (lambda x: F.normalize(x, dim=-1), X),
    # shapes
    "view": (lambda x: x.view(x.shape[0], -1), normal(2, 3, 4)),
    "flatten": (lambda x: x.flatten(1), normal(2, 3, 4)),
    "unflatten": (lambda x: x.unflatten(1, (2, 2)), X),
    "permute": (lambda x: x.permute(2, 0, 1), normal(2, 3, 4)),
    "transpose": (lambda x: x.transpose(1, 2), normal(2, 3, 4)),
    "t": (lambda x: x.t() + x.T, normal(4, 4)),
    "mT": (lambda x: x.mT, normal(2, 3, 4)),
    "movedim": (lambda x: x.movedim(1, 0), normal(2, 3, 4)),
    "second names of shapes": (
        lambda x, y: torch.concatenate([x.swapaxes(0, 1).moveaxis(1, 0).swapdims(1, 2), y.reshape_as(x.mT)]).ravel(),
        normal(2, 3, 4),
        normal(4, 6),
    ),
    "second names of arithmetic": (
        lambda x, y: torch.subtract(x, y, alpha=2).multiply(y).divide(3, rounding_mode=None).negative().absolute(),
        X,
        X,
    ),
    "second names of functions": (
        lambda x: (
            torch.special.expit(x).arctan() + torch.special.gammaln(x**2 + 1) + torch.arctan2(x, x.greater(0) + 1.0)
        ),
        X,
    ),
    "squeeze": (lambda x: x.unsqueeze(1).squeeze(1).unsqueeze(-1).squeeze(), X),
    "expand": (lambda x: x[:, None].expand(-1, 5, -1), X),
    "expand_as": (lambda x, y: y.expand_as(x), X, normal(4)),
    "select": (lambda x: x[:, -1], X),
    "slice": (lambda x: x[:, 1:-1:2], normal(3, 6)),
    "narrow": (lambda x: x.narrow(1, 1, 2), X),
    "split": (lambda x: x.split(3, 1), normal(2, 7)),
    "split sizes": (lambda x: x.split([1, 2, 4], 1), normal(2, 7)),
    "chunk": (lambda x: x.chunk(2, -1), X),
    "unbind": (lambda x: x.unbind(1), X),
    "cat": (lambda x, y: torch.cat([x, y, x], 1), X, normal(3, 2)),
    "stack": (lambda x, y: torch.stack([x, y], 1), X, X),
    "meshgrid": (lambda x: torch.stack(torch.meshgrid(x[0], x[:, 0].exp(), indexing="ij"), -1), X),
    "meshgrid as a plot": (lambda x: torch.meshgrid(x[0], x[:, 0].exp(), x[0, 0], indexing="xy"), X),
    "meshgrid of one": (lambda x: torch.meshgrid([x[0]], indexing="ij")[0] * 2, X),
    "repeat": (lambda x: x.repeat(2, 1, 2), X),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, dim=1), X),
    "roll": (lambda x: x.roll((1, -1), (0, 1)), X),
    "flip": (lambda x: x.flip(1), X),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=0.5), X),
    "pad negative": (lambda x: F.pad(x, (-1, 2)), X),
    "pad reflect": (lambda x: F.pad(x, (1, 2), mode="reflect"), normal(2, 3, 4)),
    "pad replicate": (lambda x: F.pad(x, (1, 2, 2, 1), mode="replicate"), normal(2, 2, 3, 4)),
    "pad circular": (lambda x: F.pad(x, (1, 2), mode="circular"), normal(2, 3, 4)),
    "tril": (lambda x: x.tril(1) + x.triu(-1), X),
    "diagonal": (lambda x: x.diagonal(1, 0, 1), X),
    "windows": (lambda x: (x.unfold(1, 2, 1), x.unfold(2, 3, 2)), normal(2, 3, 7)),
    "other names of shapes": (
        lambda x: (
            torch.swapaxes(x, 1, 2),
            torch.hsplit(x, 2)[1],
            torch.moveaxis(x, 0, 1),
            torch.tensor_split(x, 3, 2),
        ),
        normal(2, 4, 7),
    ),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), normal(2, 8, 3, 2)),
    "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), normal(2, 3, 4, 2)),
    "channel shuffle": (
        lambda x: x.view(x.shape[0], 2, 2, 3, 3).transpose(1, 2).contiguous().view(x.shape[0], 4, 3, 3),
        normal(2, 4, 3, 3),
    ),
    # layers
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, 2, 1), normal(2, 3, 8), normal(4, 3, 3), normal(4)),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=(1, 2)), normal(2, 3, 6, 7), normal(4, 3, 3, 2)),
    "conv2d groups": (lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 2), normal(2, 4, 6, 7), normal(6, 2, 3, 3)),
    "conv2d depthwise": (lambda x, w: F.conv2d(x, w, groups=4), normal(2, 4, 6, 7), normal(8, 1, 3, 3)),
    "conv2d dilated": (lambda x, w: F.conv2d(x, w, dilation=2), normal(2, 3, 8, 7), normal(4, 3, 3, 3)),
    "conv2d strided and dilated": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=2, dilation=2),
        normal(2, 3, 8, 7),
        normal(4, 3, 3, 3),
    ),
    "conv2d same": (lambda x, w: F.conv2d(x, w, padding="same"), normal(2, 3, 6, 7), normal(4, 3, 2, 4)),
    "conv3d": (F.conv3d, normal(2, 2, 4, 4, 4), normal(3, 2, 2, 2, 2)),
    "conv_transpose1d": (lambda x, w: F.conv_transpose1d(x, w, None, 2, 1, 1), normal(2, 3, 5), normal(3, 4, 3)),
    "conv_transpose2d": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 1), (1, 0)),
        normal(2, 3, 4, 5),
        normal(3, 4, 3, 2),
        normal(4),
    ),
    "conv_transpose2d groups": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 2),
        normal(2, 4, 4, 5),
        normal(4, 3, 3, 3),
        normal(6),
    ),
    "conv_transpose2d dilated": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 3), (1, 2), 1, 2, (2, 3)),
        normal(2, 4, 4, 5),
        normal(4, 3, 3, 2),
        normal(6),
    ),
    "conv_transpose1d, more entries than strides": (
        lambda x, w: F.conv_transpose1d(x, w, None, 1, 1, 1, 1, 2),
        normal(2, 3, 5),
        normal(3, 4, 3),
    ),
    "conv_transpose2d without batch": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2),
        normal(3, 4, 5),
        normal(3, 4, 3, 2),
    ),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2), normal(2, 3, 8)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), normal(2, 3, 7, 8)),
    "max_pool2d ceil": (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), normal(2, 3, 6, 8)),
    "max_pool2d ceil and padding": (lambda x: F.max_pool2d(x, 2, 3, 1, ceil_mode=True), normal(2, 3, 6, 7)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), normal(2, 2, 4, 4, 4)),
    "max_pool2d dilation": (lambda x: F.max_pool2d(x, 3, 2, 1, (2, 1)), normal(2, 3, 9, 8)),
    "max_pool2d dilation and ties": (
        lambda x: F.max_pool2d(F.relu(x), 2, dilation=2, ceil_mode=True),
        normal(2, 3, 8, 8),
    ),
    "max_pool1d without stride": (lambda x: F.max_pool1d(x, 2, dilation=3), normal(2, 3, 9)),
    "max_pool2d without batch": (lambda x: F.max_pool2d(x, 3, 2, 1), normal(3, 7, 8)),
    "avg_pool2d without batch": (lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=4), normal(3, 7, 8)),
    "adaptive_avg_pool2d without batch": (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), normal(3, 7, 8)),
    "adaptive_max_pool2d without batch": (lambda x: F.adaptive_max_pool2d(x, (3, 2)), normal(3, 7, 8)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), normal(2, 3, 7)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2), normal(2, 3, 7, 8)),
    "avg_pool2d padding": (lambda x: F.avg_pool2d(x, 3, 2, 1), normal(2, 3, 7, 8)),
    "avg_pool2d not counted": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), normal(2, 3, 7, 8)),
    "avg_pool2d ceil": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), normal(2, 3, 6, 8)),
    "avg_pool2d ceil not counted": (lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), normal(2, 3, 6, 8)),
    "avg_pool2d divisor": (lambda x: F.avg_pool2d(x, 2, divisor_override=3), normal(2, 3, 6, 8)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 2)), normal(2, 3, 7, 8)),
    "adaptive_avg_pool2d 1": (lambda x: F.adaptive_avg_pool2d(x, 1), normal(2, 3, 7, 8)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (3, 2)), normal(2, 3, 7, 8)),
    "batch_norm": (
        lambda x, m, v, w, b: F.batch_norm(x, m.detach(), v.detach(), w, b, eps=1e-3),
        normal(3, 4, 5),
        normal(4),
        positive(4),
        normal(4),
        normal(4),
    ),
    "batch_norm of batch": (lambda x, w: F.batch_norm(x, None, None, w, training=True), normal(3, 4, 5), normal(4)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (3, 4), w, b, 1e-3), normal(2, 3, 4), normal(3, 4), normal(3, 4)),
    "layer_norm bare": (lambda x: F.layer_norm(x, (4,)), X),
    "rms_norm": (lambda x, w: F.rms_norm(x, (4,), w), X, normal(4)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), normal(2, 4, 5, 3), normal(4), normal(4)),
    "instance_norm": (lambda x: F.instance_norm(x), normal(2, 4, 5, 3)),
    "attention in groups": (
        lambda q, k, m: F.scaled_dot_product_attention(q, k, k * 2, m, scale=0.4),
        normal(2, 3, 2, 5, 4),
        normal(2, 3, 2, 6, 4),
        bools(5, 6),
    ),
    "attention": (F.scaled_dot_product_attention, normal(2, 3, 5, 4), normal(2, 3, 6, 4), normal(2, 3, 6, 4)),
    "attention causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3),
        normal(2, 3, 5, 4),
        normal(2, 3, 5, 4),
        normal(2, 3, 5, 4),
    ),
    **{
        f"attention causal, {n} queries and {m} keys": (
            lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True),
            normal(*shape, n, 4),
            normal(*shape, m, 4),
        )
        for n, m, shape in ((3, 5, (2, 3)), (5, 3, (2,)), (3, 5, (2, 3, 2)))
    },
    "attention mask": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m),
        normal(2, 3, 5, 4),
        lambda: torch.ones(5, 5).tril().bool(),
    ),
    "attention bias": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m),
        normal(2, 3, 5, 4),
        normal(5, 5),
    ),
    "attention without heads": (
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m),
        normal(2, 5, 4),
        normal(2, 6, 4),
        normal(2, 6, 3),
        normal(2, 5, 6),
    ),
    "attention without batch": (
        lambda q: F.scaled_dot_product_attention(q, q * 2, q, is_causal=True),
        normal(5, 4),
    ),
    "embedding": (lambda i, w: F.embedding(i, w), integers(2, 3), normal(5, 4)),
    "embedding padding": (lambda i, w: F.embedding(i, w, padding_idx=1), integers(2, 9), normal(5, 4)),
    **{
        f"embedding_bag {mode}": (
            lambda i, w, mode=mode: F.embedding_bag(i, w, mode=mode),
            integers(2, 3),
            normal(5, 4),
        )
        for mode in ("sum", "mean", "max")
    },
    "embedding_bag offsets": (
        lambda i, w: F.embedding_bag(i, w, torch.tensor([0, 2, 2]), mode="mean"),
        integers(6),
        normal(5, 4),
    ),
    "dropout off": (lambda x: F.dropout(x, 0.5, False) * 2, X),
    **{
        f"grid_sample, {mode}, {padding}, {corners}": (
            functools.partial(F.grid_sample, mode=mode, padding_mode=padding, align_corners=corners),
            normal(2, 3, 5, 6),
            lambda: torch.cat(
                [torch.eye(2)[None, None].expand(2, 1, 2, 2) * 2 - 1, torch.randn(2, 3, 2, 2)], 1
            ).double(),
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for corners in (False, True)
    },
    "grid_sample of volumes": (
        lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        normal(2, 3, 4, 5, 6),
        normal(2, 2, 3, 4, 3),
    ),
    "nearest to many": (lambda x: F.interpolate(x, size=(50, 31), mode="nearest"), normal(2, 1, 7, 5)),
    "nearest exact to many": (lambda x: F.interpolate(x, size=(5, 31), mode="nearest-exact"), normal(2, 1, 7, 5)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), normal(2, 3, 3, 4)),
    "nearest between": (lambda x: F.interpolate(x, size=(5, 3), mode="nearest"), normal(2, 3, 3, 4)),
    "bilinear": (lambda x: F.interpolate(x, size=(5, 8), mode="bilinear"), normal(2, 3, 3, 4)),
    "nearest by a factor": (lambda x: F.interpolate(x, scale_factor=(0.45, 2.2), mode="nearest"), normal(2, 3, 10, 3)),
    "nearest exact": (lambda x: F.interpolate(x, size=(5, 3), mode="nearest-exact"), normal(2, 3, 3, 4)),
    "nearest by more": (lambda x: F.interpolate(x, scale_factor=(2.9, 3.1), mode="nearest"), normal(2, 3, 3, 5)),
    "nearest of one size": (lambda x: F.interpolate(x, scale_factor=1.1), normal(2, 3, 4, 4)),
    "bilinear by a factor": (lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"), normal(2, 3, 3, 5)),
    "bilinear corners": (
        lambda x: F.interpolate(x, size=(5, 2), mode="bilinear", align_corners=True),
        normal(2, 3, 3, 4),
    ),
    "bilinear corners, one": (
        lambda x: F.interpolate(x, size=(1, 7), mode="bilinear", align_corners=True),
        normal(2, 3, 3, 4),
    ),
    "linear resize": (lambda x: F.interpolate(x, size=7, mode="linear"), normal(2, 3, 4)),
    "trilinear": (lambda x: F.interpolate(x, size=(3, 5, 2), mode="trilinear"), normal(2, 2, 2, 3, 4)),
    "smooth bilinear": (lambda x: F.interpolate(x, (2, 8), mode="bilinear", antialias=True), normal(2, 3, 5, 6)),
    "smooth bicubic": (
        lambda x: F.interpolate(x, scale_factor=0.5, mode="bicubic", antialias=True),
        normal(2, 3, 8, 6),
    ),
    "bicubic": (lambda x: F.interpolate(x, size=(7, 5), mode="bicubic"), normal(2, 3, 4, 6)),
    "bicubic by a factor": (lambda x: F.interpolate(x, scale_factor=1.6, mode="bicubic"), normal(2, 3, 4, 6)),
    "bicubic corners": (
        lambda x: F.interpolate(x, size=(7, 5), mode="bicubic", align_corners=True),
        normal(2, 3, 4, 6),
    ),
    # indices and masks
    "index": (lambda x, i: x[:, i], X, integers(2, below=4)),
    "index pairs": (lambda x, i: x[i, i], X, integers(2, below=3)),
    "index_put": (lambda x, i, v: x.index_put((i,), v), X, lambda: torch.tensor([2, 0]), normal(2, 4)),
    "index_put add": (
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        X,
        lambda: torch.tensor([2, 2]),
        normal(2, 4),
    ),
    "scatter": (lambda x, i, v: x.scatter(1, i, v), X, lambda: torch.tensor([[1, 0], [3, 2], [0, 3]]), normal(3, 2)),
    "scatter number": (lambda x, i: x.scatter(0, i, 2.5), X, lambda: torch.tensor([[1, 0, 2, 2]])),
    "scatter add": (lambda x, i, v: x.scatter_add(1, i, v), X, integers(3, 6, below=4), normal(3, 6)),
    **{
        f"scatter {reduce}": (
            lambda x, i, v, reduce=reduce: x.scatter_reduce(1, i, v, reduce),
            X,
            integers(3, 6, below=4),
            normal(3, 6),
        )
        for reduce in ("sum", "prod", "amax", "amin")
    },
    "searchsorted": (
        lambda x, y: (torch.searchsorted(y.sort()[0], x), torch.searchsorted(y.sort()[0], x, side="right")),
        X,
        normal(3, 6),
    ),
    "bucketize": (lambda x: torch.bucketize(x, torch.tensor([-0.5, 0.1]).double(), right=True), X),
    "index_select": (lambda x, i: x.index_select(1, i), X, integers(6, below=4)),
    "gather": (lambda x, i: x.gather(1, i), X, integers(3, 6, below=4)),
    "where": (lambda x, y: torch.where(x > 0, x, y), X, normal(4)),
    "where number": (lambda x: torch.where(x > 0, x, 0.5), X),
    "masked_fill": (lambda x, m: x.masked_fill(m, -1e9), X, bools(3, 4)),
    "topk": (lambda x: x.topk(2), X),
    "argsort": (lambda x: x.argsort(-1, descending=True), X),
    "sort": (lambda x: x.sort(1), X),
    "sort descending": (lambda x: x.sort(0, descending=True)[0], X),
    "topk smallest": (lambda x: x.topk(2, largest=False), X),
    "topk of columns": (lambda x: x.topk(2, 0), X),
    "running extremes": (lambda x: (x.cummax(1), x.cummin(0)), X),
    "running extremes, ties": (lambda x: ((x * 2).round().cummax(0), (x * 2).round().cummin(0)), normal(9, 2)),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), X),
    "histc": (lambda x: (x.histc(4, -1, 1), x.histc(3)), X),
    "bincount": (lambda i, x: torch.bincount(i, x.detach(), minlength=7), integers(9), normal(9)),
    "index_add": (lambda x, i, v: x.index_add(1, i, v, alpha=2), X, integers(5, below=4), normal(3, 5)),
    "index_copy": (lambda x, v: x.index_copy(1, torch.tensor([2, 0]), v), X, normal(3, 2)),
    "index_fill": (lambda x, i: x.index_fill(1, i, 2.5), X, integers(2, below=4)),
    **{
        f"{place} {reduce}, {'with' if own else 'without'} the entries themselves": (
            lambda x, v, reduce=reduce, own=own, place=place: (
                x.index_reduce(1, torch.tensor([0, 2, 0]), v, reduce, include_self=own)
                if place == "index_reduce"
                else x.scatter_reduce(1, torch.tensor([[0, 2, 0]] * 3), v, reduce, include_self=own)
            ),
            X,
            normal(3, 3),
        )
        for place, reduce, own in (
            ("scatter", "mean", True),
            ("scatter", "mean", False),
            ("scatter", "sum", False),
            ("scatter", "amax", False),
            ("index_reduce", "mean", True),
            ("index_reduce", "amax", True),
        )
    },
    "scatter by products": (
        lambda x: x.detach().scatter(1, torch.tensor([[1, 0]]), 3.0, reduce="multiply") * x,
        X,
    ),
    "inverse permutation": (inverse, normal(6), integers(6)),
    "masked_scatter": (lambda x, v: x.masked_scatter(x[..., :1] > 0, v), normal(3, 4, 2), normal(30)),
    "masked_select": (lambda x: x.masked_select(x > 0).sum() * x, X),
    "diagonal_scatter": (lambda x, v: torch.diagonal_scatter(x, v, -1, 1, 2), normal(3, 4, 5), normal(3, 3)),
    "diagonal in place": (lambda x: add_to_diagonal(x * 2), normal(3, 4, 4)),
    "fill_diagonal_": (lambda x: (x * 2).fill_diagonal_(0.5), normal(4, 3)),
    "as_strided": (lambda x: (x * 1).as_strided((3, 2, 3), (2, 3, 1), 1), X),
    "put": (lambda x, v: x.put(torch.tensor([[1, 7]]), v) + x.put(torch.tensor([[1, 1]]), v, True), X, normal(1, 2)),
    "take_along_dim": (lambda x: torch.take_along_dim(x, x.argsort(1), 1), X),
    "quantile": (lambda x: (x.quantile(0.3, 1), x.quantile(torch.tensor([0.1, 0.5]).double())), X),
    # matrices
    **named("inv det qr slogdet matrix_exp", matrices, module=torch.linalg),
    "solve": (torch.linalg.solve, matrices, normal(2, 3, 4)),
    "cholesky": (lambda x: torch.linalg.cholesky(x @ x.mT), matrices),
    "cholesky upper": (lambda x: torch.linalg.cholesky(x @ x.mT, upper=True), matrices),
    "eigvalsh": (lambda x: torch.linalg.eigvalsh(x + x.mT), matrices),
    "eigh": (lambda x: (lambda w, v: (w, (v * v).sum(-1)))(*torch.linalg.eigh(x + x.mT, UPLO="U")), matrices),
    "svdvals": (torch.linalg.svdvals, normal(2, 3, 4)),
    "svd": (lambda x: (lambda u, s, v: ((u * u).sum(-1), s, u * s[..., None, :] @ v))(*torch.linalg.svd(x)), matrices),
    "pinv": (torch.linalg.pinv, normal(2, 4, 3)),
    "solve_triangular": (
        lambda x, y: torch.linalg.solve_triangular(x.tril(), y, upper=False),
        matrices,
        normal(2, 3, 4),
    ),
    "solve_triangular upper": (lambda x, y: torch.linalg.solve_triangular(x, y, upper=True), matrices, normal(2, 3, 4)),
    "cholesky_solve": (
        lambda x, y: torch.cholesky_solve(y, torch.linalg.cholesky(x @ x.mT)),
        matrices,
        normal(2, 3, 4),
    ),
    "eye": (lambda x: x + torch.eye(3, dtype=x.dtype), normal(3, 3)),
    # what PyTorch writes in other calls, which have rows
    "cosine_similarity": (lambda x, y: F.cosine_similarity(x, y, 1), X, X),
    "hinge_embedding_loss": (lambda x: F.hinge_embedding_loss(x, x.sign().detach()), X),
    "cosine_embedding_loss": (lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(3).double()), X, X),
    "cartesian_prod": (lambda x: torch.cartesian_prod(x[0], x[1]), normal(2, 3)),
    "multi_margin_loss": (lambda x: F.multi_margin_loss(x, torch.tensor([0, 1, 2])), X),
    "cross_entropy": (
        lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1, ignore_index=1),
        normal(5, 4),
        lambda: torch.tensor([0, 1, 2, 3, 1]),
    ),
    "binary_cross_entropy": (lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), X, X),
    "unfold and fold": (lambda x: F.fold(F.unfold(x, 3, 1, 1, 2) * 2, (6, 6), 3, 1, 1, 2), normal(2, 3, 6, 6)),
    "grid_sample": (
        lambda x, t: F.grid_sample(x, F.affine_grid(t, (2, 3, 4, 4), False), align_corners=False),
        normal(2, 3, 5, 5),
        normal(2, 2, 3),
    ),
    "lstm_cell": (
        lambda x, h, c, w, u: torch.lstm_cell(x, (h, c), w, u),
        normal(2, 3),
        normal(2, 4),
        normal(2, 4),
        normal(16, 3),
        normal(16, 4),
    ),
    "ctc": (
        lambda x, t: [
            F.ctc_loss(x, t, torch.tensor([6, 5]), torch.tensor([3, 2]), blank=2, reduction=r)
            for r in ("none", "mean", "sum")
        ],
        normal(6, 2, 5),
        lambda: torch.tensor([[1, 3, 3], [0, 1, 2]]),
    ),
    "ctc of targets in a row": (
        lambda x: F.ctc_loss(x.log_softmax(-1), torch.tensor([1, 2, 2, 3, 1]), (6, 2), (3, 2), zero_infinity=True),
        normal(6, 2, 5),
    ),
    "gaussian_nll_loss": (
        lambda x, y, v: F.gaussian_nll_loss(x, y, v.abs(), full=True, eps=0.3),
        X,
        X,
        normal(3, 1),
    ),
    "distributions": (
        lambda x, y: (
            torch.distributions.Normal(x, y).log_prob(x * 0.5),
            torch.distributions.Categorical(logits=x).entropy(),
        ),
        X,
        positive(3, 4),
    ),
    "pad_sequence": (
        lambda x, y: nn.utils.rnn.pad_sequence([x[0], y[0]], batch_first=True, padding_value=0.5),
        normal(3, 4, 2),
        normal(3, 5, 2),
    ),
    "weight_norm": (lambda x, v, g: F.linear(x, torch._weight_norm(v, g)), X, normal(5, 4), positive(5, 1)),
    # creation
    "zeros": (lambda x: torch.zeros(2, 4, dtype=x.dtype) + x[:2], X),
    "full": (lambda x: torch.full((x.shape[0], 1), 2.5, dtype=x.dtype) * x, X),
    "ones_like": (lambda x: torch.ones_like(x) + torch.zeros_like(x) + torch.full_like(x, 3), X),
    "new": (lambda x: x.new_zeros(2, 4) + x.new_ones(4) + x.new_full((1,), 2), normal(2, 4)),
    "windows of a signal": (
        lambda x: x * torch.hann_window(4, dtype=x.dtype) + torch.hamming_window(4, periodic=False, dtype=x.dtype),
        X,
    ),
    "linspace": (lambda x: x + torch.linspace(-1, 2, 4, dtype=x.dtype), X),
    "triangles": (
        lambda x: (x[(..., *torch.tril_indices(3, 4, 1))], x[(..., *torch.triu_indices(3, 4, 1))]),
        normal(2, 3, 4),
    ),
    "frequencies": (lambda x: x * torch.fft.fftfreq(4, dtype=x.dtype) + torch.fft.rfftfreq(6, 0.5, dtype=x.dtype), X),
    "arange": (lambda x: torch.arange(4) * x + torch.arange(1, 9, 2), X),
    "arange batch": (lambda x: torch.arange(x.shape[0])[:, None] * x, X),
    "constant": (lambda x: x * torch.tensor([1.0, 2.0, 3.0, 4.0]).double() + torch.tensor(2.0), X),
    "to": (lambda x: x.to(torch.float32).double() + x.long(), X),
    "type_as": (lambda x, i: i.type_as(x) * x, X, integers(3, 4)),
    "detach": (lambda x: x.detach() * x, X),
    "clone": (lambda x: x.clone().contiguous(), X),
    "mse_loss": (F.mse_loss, X, X),
    "l1_loss": (lambda x, y: F.l1_loss(x, y, reduction="sum"), X, X),
    # in place
    "in place": (lambda x: (x * 2).add_(1).mul_(x).relu_(), X),
    "in place view": (changed_view, X),
    "in place base": (changed_base, X),
    "fill": (lambda x: (x * 1).fill_(2.0) + x, X),
    "zero": (lambda x: x.clone().zero_() + x, X),
    "copy": (lambda x, y: x.clone().copy_(y), X, normal(4)),
    "masked_fill in place": (lambda x: torch.zeros_like(x).masked_fill_(x > 0, float("-inf")).exp() * x, X),
}


def drawn(case):
    torch.manual_seed(0)
    line, *draws = ROWS[case]
    return Line(line), tuple(draw() for draw in draws)


def original(model, inputs, training=False):
    """Return the outputs, the gradients of a weighted sum of them in parameters and inputs, and the new buffers."""
    model.train(training)
    inputs = [x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
    with torch.compiler.set_stance("default"):  # PyTorch compiles branches and loops by a backend of its own
        outputs = leaves(model(*inputs))
    total = sum((y * torch.from_numpy(weights(y.shape))).sum() for y in outputs if y.is_floating_point())
    named = dict(model.named_parameters()) | {f"input {i}": x for i, x in enumerate(inputs) if x.requires_grad}
    gradients = torch.autograd.grad(total, list(named.values()), allow_unused=True) if is_tracked(total) else None
    gradients = gradients or [None] * len(named)
    return (
        [y.detach().numpy() for y in outputs],
        {
            name: np.zeros(tensor.shape) if g is None else g.to_dense().numpy()
            for (name, tensor), g in zip(named.items(), gradients, strict=True)
        },
        {name: buffer.numpy().copy() for name, buffer in model.named_buffers()},
    )


def is_tracked(total):
    return isinstance(total, torch.Tensor) and total.requires_grad


@functools.cache
def traced(case):
    model, inputs = drawn(case)
    return porting.trace(model, *inputs), original(model, inputs)
