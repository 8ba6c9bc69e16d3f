"""Normalization by PyTorch's kernels, which keep two numbers for each row or channel."""

from __future__ import annotations

import functools
import math

import torch
from torch.compiler import is_dynamo_compiling

from multiop._values import args

from .._internals import hook_upstream, is_exporting, is_tracked, moving_batch_norm
from .._kernels import LONG, give_memory, run_fused, run_native
from ..conversion import HALF, promote_operands
from ..ops.normalization import LEAST, are_along, by_layer_norm, normalize


def op_normalize(x, axis, order, epsilon, *, otherwise):
    if not (isinstance(x, torch.Tensor) and x.dtype in LONG and x.numel() and (dims := args.axes(axis, x.ndim))):
        return otherwise(x, axis, order, epsilon)
    if is_tracked(x):
        return normalize(x, dims, order, epsilon)
    largest = torch.maximum(x.amax(dims, True), -x.amin(dims, True))  # ten times as fast as the norm of this order
    y = x / largest.clamp_min_(max(epsilon, LEAST[x.dtype]))
    return y.mul_(torch.linalg.vector_norm(y, order, dims, True).clamp_min_(1).reciprocal_())


def op_batch_normalization(x, mean, variance, axis, offset, scale, epsilon, *, otherwise):
    given = x, mean, variance, axis, offset, scale, epsilon
    if not are_along(x, axis, mean, variance, offset, scale):
        x, mean, variance, offset, scale = promote_operands(x, mean, variance, offset, scale)
        axis = args.single_axis(axis, x.ndim)
        if any(t is not None and t.shape != (x.shape[axis],) for t in (mean, variance, offset, scale)):
            return otherwise(*given)
    if x.ndim == 1 or not x.numel():  # the gradient of the kernel ends the process where there are no entries
        return otherwise(*given)

    def kernel(x, mean, variance, offset, scale):
        return torch.native_batch_norm(x, scale, offset, mean, variance, False, 0.0, epsilon)[0]

    def pull(upstream, x, mean, variance, offset, scale):
        of_moments = mean.requires_grad or variance.requires_grad
        if x.is_cpu and x.dtype in HALF:  # its sums would be rounded to 16 bits
            scale, mean, variance = (t if t is None else t.float() for t in (scale, mean, variance))
        weight = torch.ones_like(mean) if scale is None else scale  # CUDA's kernel fails without one, and without
        saved = mean.new_empty(0)  # the moments of a batch, of which there are none
        options = (weight, mean, variance, saved, saved, False, epsilon, (True, True, True))
        slope, by_scale, total = torch.ops.aten.native_batch_norm_backward(upstream, x, *options)
        if not of_moments:
            return [slope, None, None, total, by_scale]
        inverse = torch.rsqrt(variance + epsilon)
        return [slope, total * -inverse * weight, by_scale * weight * inverse.square() * -0.5, total, by_scale]

    def meaning(x, mean, variance, offset, scale):
        return otherwise(x, mean, variance, 1, offset, scale, epsilon)

    x = x if axis == 1 else x.movedim(axis, 1)  # an operation, and one of the gradient, too
    y = run_fused(kernel, pull, meaning, x, mean, variance, offset, scale)
    return y if axis == 1 else y.movedim(1, axis)


def op_batch_normalization_with_moments(
    x, axis, offset, scale, epsilon, moving_mean, moving_variance, momentum, correction, *, otherwise
):
    given = x, axis, offset, scale, epsilon, moving_mean, moving_variance, momentum, correction
    are_alike = are_along(x, axis, offset, scale)
    if not ((are_alike or are_along(x, axis)) and type(epsilon) in (int, float) and 0 <= epsilon < math.inf):
        return otherwise(*given)
    n, dtype = x.numel() // max(x.shape[axis], 1), x.dtype
    if x.ndim == 1 or n < 2 or type(momentum) not in (int, float) or type(correction) is not int:
        return otherwise(*given)
    if is_exporting():  # torch.onnx takes the moments for those before the batch
        return otherwise(*given)
    if not are_alike:
        if any(t is not None and not isinstance(t, torch.Tensor) for t in (offset, scale)):
            return otherwise(*given)
        x, offset, scale = promote_operands(x, offset, scale)
        if any(t is not None and t.shape != (x.shape[axis],) for t in (offset, scale)):
            return otherwise(*given)
        if any(t is not None and t.dtype is not x.dtype for t in (offset, scale)):
            dtype = torch.float32  # under torch.autocast, moments are those of a model in float32
    wide = torch.float32 if x.dtype in HALF else x.dtype  # the kernel takes its vectors in this dtype, too
    moving = moving_mean, moving_variance
    moves = moving != (None, None)
    if moves and not (
        correction == 1
        and moving_batch_norm is not None
        and all(isinstance(t, torch.Tensor) and t.dtype is wide and t.shape == (x.shape[axis],) for t in moving)
        and not any(t.requires_grad for t in moving)  # others may be overwritten before the gradient is computed
    ):
        return otherwise(*given)

    def kernel(x, offset, scale):
        vectors = scale if scale is None else scale.type(wide), offset if offset is None else offset.type(wide)
        if moves:
            y, center, inverse, *moved = moving_batch_norm(x, *vectors, *moving, True, 1 - momentum, epsilon)
            return [(y, *moved), center, inverse]
        mean, variance = torch.zeros(2, x.shape[1], dtype=wide, device=x.device).unbind()
        y, center, inverse = torch.native_batch_norm(x, *vectors, mean, variance, True, 1.0, epsilon)
        variance = variance * ((n - 1) / n)  # the kernel's is the unbiased one
        return [(y, mean.type(dtype), variance.type(dtype)), center, inverse]

    def pull(upstream, by_mean, by_variance, x, offset, scale, center, inverse):
        slope = by_scale = total = None
        if moves and by_mean is not None:
            by_mean = by_mean * (1 - momentum)
        if moves and by_variance is not None:
            by_variance = by_variance * ((1 - momentum) * n / (n - 1))
        if upstream is not None:
            weight = torch.ones_like(center) if scale is None else scale.type(wide)  # CUDA's kernel fails without one
            options = (weight, None, None, center, inverse, True, epsilon, (True, True, True))
            slope, by_scale, total = torch.ops.aten.native_batch_norm_backward(upstream, x, *options)
        if by_mean is not None or by_variance is not None:
            shape = [-1, *[1] * (x.ndim - 2)]
            more = 0 if by_mean is None else by_mean.reshape(shape) / n
            if by_variance is not None:
                more = more + (x - center.reshape(shape)) * (by_variance * (2 / n)).reshape(shape)
            slope = (more.expand_as(x) if slope is None else slope + more).type(x.dtype)
        return [slope, total if offset is not None else None, by_scale if scale is not None else None]

    def meaning(x, offset, scale):
        return otherwise(x, 1, offset, scale, epsilon, *moving, momentum, correction)

    x = x if axis == 1 else x.movedim(axis, 1)
    y, mean, variance = run_fused(kernel, pull, meaning, x, offset, scale, native=meaning)
    return y if axis == 1 else y.movedim(1, axis), mean, variance


def op_group_normalization(x, groups, gamma, beta, axis, epsilon, *, otherwise):
    given = x, groups, gamma, beta, axis, epsilon
    if not are_along(x, axis, gamma, beta):
        if not are_along(x, axis) or any(t is not None and not isinstance(t, torch.Tensor) for t in (gamma, beta)):
            return otherwise(*given)
        x, gamma, beta = promote_operands(x, gamma, beta)
        if any(t is not None and t.shape != (x.shape[axis],) for t in (gamma, beta)):
            return otherwise(*given)
    axis = axis % x.ndim
    if not axis or type(groups) is not int or groups < 1 or x.shape[axis] % groups or not x.numel():
        return otherwise(*given)
    if gamma is None and beta is not None:
        gamma = torch.ones_like(beta)  # without it, PyTorch's second derivative fails
    moved, is_rounded = x if axis == 1 else x.movedim(axis, 1), x.is_cpu and x.dtype in HALF
    y, lie_last = moved, x.ndim > 3 and moved.stride(1) <= moved.stride(-1)
    if lie_last:  # the kernel for such channels subtracts squares, which cancel, and its derivatives cannot be mapped
        y = y.flatten(2)
    if is_rounded:  # the kernel would round the moments
        y, gamma, beta = (t if t is None else t.float() for t in (y, gamma, beta))
    y = torch.group_norm(y, groups, gamma, beta, args.shift(epsilon))
    if y.requires_grad and not is_dynamo_compiling():  # of zeros, its gradient would be what lies in memory
        hook_upstream(y, y.grad_fn, give_memory)
    y = y.type(x.dtype) if is_rounded else y
    y = y.view(moved.shape) if lie_last else y
    return y if axis == 1 else y.movedim(1, axis)


def op_layer_normalization(x, gamma, beta, axis, epsilon, *, otherwise):
    if type(axis) is int and axis == -1 and are_along(x, axis, gamma, beta):
        return layer_norm(otherwise, x, gamma, beta, x.shape[-1:], epsilon)
    return by_layer_norm(functools.partial(layer_norm, otherwise), x, gamma, beta, axis, epsilon)


_SAVED = ("_saved_input", "_saved_weight", "_saved_bias")


def layer_norm(otherwise, x, gamma, beta, shape, epsilon):
    """Return PyTorch's layer_norm, whose own third derivative, and the second one of forward mode, are wrong.

    https://github.com/pytorch/pytorch/pull/176218, https://github.com/pytorch/pytorch/issues/196700
    """

    def meaning(x, gamma, beta):
        return otherwise(x, gamma, beta, tuple(range(-len(shape), 0)), epsilon)

    def native(x, gamma, beta):
        return torch.layer_norm(x, shape, gamma, beta, epsilon)

    is_rounded = x.is_cpu and x.dtype in HALF
    if not is_rounded and (y := run_native(native, "NativeLayerNorm", _SAVED, meaning, x, gamma, beta)) is not None:
        return y

    def kernel(x, gamma, beta):
        return list(torch.native_layer_norm(x, shape, gamma, beta, epsilon))

    def pull(upstream, *operands):
        *given, mean, inverse = operands
        is_rounded = upstream.is_cpu and upstream.dtype in HALF  # sums over rows would be
        wide = torch.float32 if is_rounded else upstream.dtype  # on a GPU, torch.autocast takes float32
        x, gamma, beta = (t if t is None else t.type(wide) for t in given)
        if is_rounded:
            _, mean, inverse = torch.native_layer_norm(x, shape, None, None, epsilon)
        options = shape, mean, inverse, gamma, beta, [t is not None and t.requires_grad for t in given]
        grads = torch.ops.aten.native_layer_norm_backward(upstream.type(wide), x, *options)
        return [t if t is None else t.type(x.dtype) for t, x in zip(grads, given, strict=True)]

    return run_fused(kernel, pull, meaning, x, gamma, beta, native=native)
