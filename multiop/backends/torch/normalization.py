"""Normalization: rescaling entries to a common magnitude."""

from __future__ import annotations

import math

import torch
from torch.autograd.function import Function
from torch.nn import functional

from multiop import _args, errors

from ._fused import with_formula
from ._internals import (
    are_transforms_active,
    is_lifted,
    is_plain,
    is_readable,
    is_tracked,
    requires_grad,
)
from .conversion import floating, is_float, promote_all
from .elementwise import in_float32, reject_complex
from .reduction import op_max, op_sum


def op_normalize(x, axis, order, epsilon):
    (x,) = reject_complex(floating(x))
    axis = _args.axes(axis, x.ndim)
    return in_float32(lambda x: normalize(x, axis, order, epsilon), x) if x.numel() else x


def op_batch_normalization(x, mean, variance, axis, offset, scale, epsilon):
    x, mean, variance, offset, scale = promote_operands(x, mean, variance, offset, scale)
    axis = _args.single_axis(axis, x.ndim)
    for name, vector in (("mean", mean), ("variance", variance), ("offset", offset), ("scale", scale)):
        if vector is not None and vector.shape != (x.shape[axis],):
            raise errors.ArgumentError(f"{name} must have the shape ({x.shape[axis]},), got {tuple(vector.shape)}")
    y = rescaled_by_kernel(x, mean, variance, offset, scale, epsilon) if axis == 1 else None
    return rescaled(x, mean, variance, axis, offset, scale, epsilon) if y is None else y


def rescaled(x, mean, variance, axis, offset, scale, epsilon):
    """Subtract the mean, divide by the standard deviation, multiply by the scale and add the offset, along `axis`."""
    dtype, shape = x.dtype, [-1 if dim == axis else 1 for dim in range(x.ndim)]
    compute = torch.promote_types(dtype, torch.float32)
    x, mean, variance, offset, scale = (t if t is None else t.to(compute) for t in (x, mean, variance, offset, scale))
    factor = torch.rsqrt(variance.reshape(shape) + epsilon)
    if scale is not None:
        factor = factor * scale.reshape(shape)
    x = (x - mean.reshape(shape)) * factor
    return (x if offset is None else x + offset.reshape(shape)).to(dtype)


def is_safe(mean, inverse, factor, epsilon):
    """Say whether PyTorch's kernel is exact, which subtracts the scaled mean from the scaled entry.

    Neither may be large beside their difference, and the factor must be finite.
    """
    unsafe = mean.abs().mul_(0.125).clamp_(min=1.001 * math.sqrt(epsilon)).mul_(inverse)
    return unsafe.amax().item() < 1 and math.isfinite(factor.sum().item())


def rescaled_by_kernel(x, mean, variance, offset, scale, epsilon):
    """Return the result of PyTorch's kernel for channels in dimension 1; `None` where it may be inexact."""
    if not (x.dtype in (torch.float32, torch.float64) and is_readable(x)):
        return None
    with torch.no_grad():
        inverse = torch.rsqrt(variance + epsilon)
        factor = inverse if scale is None else inverse * scale
        if not is_safe(mean, inverse, factor, epsilon):
            return None
        y = torch.native_batch_norm(x, scale, offset, mean, variance, False, 0.0, epsilon)[0]

    def pull(upstream, x, mean, variance, *_):
        wanted = (x.requires_grad, True, True)
        options = (scale, mean, variance, None, None, False, epsilon, wanted)
        slope, by_scale, total = torch.ops.aten.native_batch_norm_backward(upstream, x, *options)
        by_inverse = by_scale if scale is None else by_scale * scale
        grads = [slope, total * -factor, by_inverse * inverse.square() * -0.5]
        return [*grads, *[one for one, given in ((total, offset), (by_scale, scale)) if given is not None]]

    def formula(x, mean, variance, *rest):
        rest = iter(rest)
        shift, factor = (None if given is None else next(rest) for given in (offset, scale))
        return rescaled(x, mean, variance, 1, shift, factor, epsilon)

    return with_formula(y, pull, formula, x, mean, variance, *[t for t in (offset, scale) if t is not None])


def native_batch_normalization(x, axis, offset, scale, epsilon):
    """Return the result of PyTorch's kernel with the moments of `x`; `None` where it has none, or may be inexact."""
    x, offset, scale = promote_operands(x, offset, scale)
    n = x.numel() // max(x.shape[axis], 1)
    vectors = [t for t in (offset, scale) if t is not None]
    fits = axis == 1 and n > 1 and all(t.shape == (x.shape[1],) for t in vectors)
    if not (fits and x.dtype in (torch.float32, torch.float64) and is_readable(x)):
        return None
    with torch.no_grad():
        mean, variance = x.new_zeros(2, x.shape[1])
        y, _, inverse = torch.native_batch_norm(x, scale, offset, mean, variance, True, 1.0, epsilon)
        if not is_safe(mean, inverse, inverse if scale is None else inverse * scale, epsilon):
            return None
        variance.mul_((n - 1) / n)  # the kernel's is the unbiased one

    def pull(upstream, by_mean, by_variance, x, *_):
        slope = by_scale = total = None
        if upstream is not None:
            options = (scale, None, None, mean, inverse, True, epsilon, (True, True, True))
            slope, by_scale, total = torch.ops.aten.native_batch_norm_backward(upstream, x, *options)
        if by_mean is not None or by_variance is not None:
            shape = [-1, *[1] * (x.ndim - 2)]
            more = 0 if by_mean is None else by_mean.reshape(shape) / n
            if by_variance is not None:
                more = more + (x - mean.reshape(shape)) * (by_variance * (2 / n)).reshape(shape)
            slope = more.expand_as(x) if slope is None else slope + more
        return [slope, *[one for one, given in ((total, offset), (by_scale, scale)) if given is not None]]

    def formula(x, *rest):
        rest, dims = iter(rest), [dim for dim in range(x.ndim) if dim != 1]
        shift, factor = (None if given is None else next(rest) for given in (offset, scale))
        mean, variance = torch.mean(x, dims), torch.var(x, dims, correction=0)
        return rescaled(x, mean, variance, 1, shift, factor, epsilon), mean, variance

    return with_formula((y, mean, variance), pull, formula, x, *vectors)


def op_layer_normalization(x, gamma, beta, axis, epsilon):
    x, gamma, beta = promote_operands(x, gamma, beta)
    if x.dtype in (torch.float16, torch.bfloat16):  # the product with gamma may overflow where the sum does not
        wide = (t if t is None else t.to(torch.float32) for t in (x, gamma, beta))
        return op_layer_normalization(*wide, axis, epsilon).to(x.dtype)
    axis = sorted(_args.axes(axis, x.ndim))
    if axis == list(range(x.ndim - len(axis), x.ndim)):
        y = normalized_by_kernel(x, gamma, beta, x.shape[x.ndim - len(axis) :], epsilon)
        if y is not None:
            return y
    gamma, beta = fit_parameter(gamma, x, axis, "gamma"), fit_parameter(beta, x, axis, "beta")
    x = apply_to_last(lambda x, shape: standardize(x, shape, epsilon), x, axis)
    x = x if gamma is None else x * gamma
    return x if beta is None else x + beta


def op_rms_normalization(x, scale, axis, epsilon):
    x, scale = promote_operands(x, scale)
    axis = sorted(_args.axes(axis, x.ndim))
    scale = fit_parameter(scale, x, axis, "scale")
    x = apply_to_last(lambda x, shape: functional.rms_norm(x, shape, eps=epsilon), x, axis)
    return x if scale is None else x * scale


def normalize(x, axis, order, epsilon):
    limits = torch.finfo(x.dtype)
    if order == 2 and is_readable(x):
        length = torch.linalg.vector_norm(x, 2, axis, True)
        shortest, longest = (bound.item() for bound in torch.aminmax(length.detach()))
        # no square overflows or underflows
        if length.numel() < x.numel() and max(epsilon, limits.tiny**0.4) < shortest and longest < limits.max**0.4:
            return x / length
    # divide by the largest entry first, so that no power overflows; as a constant, it cancels out
    largest = op_max(x.detach().abs(), axis, True, None)
    small = x / torch.where(largest == 0, 1, largest)
    total = op_sum(small * small if order == 2 else small.abs() ** order, axis, True)
    total = torch.where(largest == 0, 1, total)
    length = torch.sqrt(total) if order == 2 else total ** (1 / order)
    return torch.where(largest * length < epsilon, x / epsilon, small / length)


def standardize(x, shape, epsilon):
    """Return `x` with mean 0 and variance 1 over its last dimensions `shape`; a row of equal entries becomes 0.

    Subtracting the first entry makes the mean of such a row exact.
    """
    x = x - x.detach()[(..., *[slice(0, 1)] * len(shape))]
    if is_lifted():
        return standardize_by_steps(x, shape, epsilon)[0]
    if torch.compiler.is_dynamo_compiling() or not is_tracked(x):  # Dynamo has only first derivatives
        return functional.layer_norm(x, shape, eps=epsilon)
    if are_transforms_active():  # only vmap
        return (
            standardize_by_steps(x, shape, epsilon)[0]
            if requires_grad(x)
            else functional.layer_norm(x, shape, eps=epsilon)
        )
    return _Standardized.apply(x, None, None, shape, epsilon, None)


def normalized_by_kernel(x, gamma, beta, shape, epsilon):
    """Return the result of PyTorch's kernel for the last dimensions `shape` of `x`; `None` where it may be inexact.

    It is where an entry of a row, or the deviation, is small beside the mean, so that the mean's last digit counts.
    """
    fits = (gamma is None or gamma.shape == shape) and (beta is None or beta.shape == shape)
    if not (fits and shape and x.numel() and x.dtype in (torch.float32, torch.float64) and x.is_cpu and is_plain()):
        return None
    with torch.no_grad():
        outputs = torch.native_layer_norm(x, shape, gamma, beta, epsilon)
        _, mean, inverse = outputs
        unsafe = mean.abs().mul_(0.125).clamp_(min=1.001 * math.sqrt(epsilon)).mul_(inverse).amax().item()
    if not unsafe < 1:  # a row of equal entries is not 0
        return None
    if not torch.is_grad_enabled() or not any(p is not None and p.requires_grad for p in (x, gamma, beta)):
        return outputs[0]
    return _Standardized.apply(x, gamma, beta, shape, epsilon, outputs)


def standardize_by_steps(x, shape, epsilon):
    """Standardize in separate operations; return the result and the inverse standard deviation."""
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    centred = x - x.mean(dims, keepdim=True)
    inverse = torch.rsqrt((centred * centred).mean(dims, keepdim=True) + epsilon)
    return centred * inverse, inverse


class _Standardized(Function):
    """PyTorch's kernel with derivatives of any order: its own third derivative, and that of forward mode, are wrong.

    https://github.com/pytorch/pytorch/pull/176218, https://github.com/pytorch/pytorch/issues/196700
    """

    @staticmethod
    def forward(ctx, x, gamma, beta, shape, epsilon, outputs):
        result, mean, inverse = outputs or torch.native_layer_norm(x, shape, gamma, beta, epsilon)
        ctx.save_for_backward(x, gamma, beta, mean, inverse)
        ctx.shape, ctx.epsilon, ctx.is_exact = shape, epsilon, outputs is not None
        ctx.is_kernel = True  # not a user's rule
        return result

    @staticmethod
    def backward(ctx, upstream):
        x, gamma, beta, mean, inverse = ctx.saved_tensors
        wanted, dims = ctx.needs_input_grad[:3], tuple(range(x.ndim - len(ctx.shape), x.ndim))
        if ctx.is_exact and not torch.is_grad_enabled():
            options = (ctx.shape, mean, inverse, gamma, beta, wanted)
            return *torch.ops.aten.native_layer_norm_backward(upstream, x, *options), None, None, None
        inner = upstream if gamma is None else upstream * gamma
        # first, before a factor rounds what the entries have in common
        inner = inner - inner.mean(dims, keepdim=True)
        if not torch.is_grad_enabled():
            options = (ctx.shape, mean, inverse, None, None, [True, False, False])
            return torch.ops.aten.native_layer_norm_backward(inner, x, *options)[0], *[None] * 5
        result, inverse = standardize_by_steps(x, ctx.shape, ctx.epsilon)
        return (
            inverse * (inner - result * (inner * result).mean(dims, keepdim=True)),
            (upstream * result).sum_to_size(ctx.shape) if wanted[1] else None,
            upstream.sum_to_size(ctx.shape) if wanted[2] else None,
            *[None] * 3,
        )


def promote_operands(*xs):
    """Return tensors of one floating dtype; `None` stays `None`."""
    given = promote_all(*[x for x in xs if x is not None])
    if not is_float(given[0]):
        given = reject_complex(*map(floating, given))
    rest = iter(given)
    return [None if x is None else next(rest) for x in xs]


def fit_parameter(parameter, x, axis, name):
    """Return `parameter`, shaped like the dimensions `axis` of `x`, with as many dimensions as `x`."""
    if parameter is None or parameter.ndim == x.ndim:
        return parameter
    if tuple(parameter.shape) != tuple(x.shape[dim] for dim in axis):
        raise errors.ArgumentError(f"{name} has the shape {tuple(parameter.shape)}, which does not fit axis {axis}")
    return parameter.reshape([x.shape[dim] if dim in axis else 1 for dim in range(x.ndim)])


def apply_to_last(normalize, x, axis):
    """Call `normalize`, which works on last dimensions of a given shape, on the dimensions `axis` of `x`."""
    if not axis:  # each entry by itself
        return normalize(x[..., None], [1])[..., 0]
    last = tuple(range(x.ndim - len(axis), x.ndim))
    if tuple(axis) == last:
        return normalize(x, x.shape[last[0] :])
    moved = x.permute(_args.moved(axis, last, x.ndim))
    return normalize(moved, [x.shape[dim] for dim in axis]).permute(_args.moved(last, axis, x.ndim))
