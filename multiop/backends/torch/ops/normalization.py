"""Normalization: rescaling entries to a common magnitude."""

from __future__ import annotations

import torch
from torch.nn import functional

from multiop import errors
from multiop._values import args

from ..conversion import (
    floating,
    in_float32,
    is_float,
    promote_operands,
    reject_complex,
)

LEAST = {torch.float32: 2.0**-149, torch.float64: 2.0**-1074}  # above 0


def op_normalize(x, axis, order, epsilon):
    (x,) = (x,) if is_float(x) else reject_complex(floating(x))
    axis = args.axes(axis, x.ndim)
    return in_float32(lambda x: normalize(x, axis, order, epsilon), x) if x.numel() else x


def op_batch_normalization(x, mean, variance, axis, offset, scale, epsilon):
    x, mean, variance, offset, scale = promote_operands(x, mean, variance, offset, scale)
    axis = args.single_axis(axis, x.ndim)
    for name, vector in (("mean", mean), ("variance", variance), ("offset", offset), ("scale", scale)):
        if vector is not None and vector.shape != (x.shape[axis],):
            raise errors.ArgumentError(f"{name} must have the shape ({x.shape[axis]},), got {tuple(vector.shape)}")
    return normalize_and_scale(x, mean, variance, offset, scale, axis, epsilon)


def normalize_and_scale(x, mean, variance, offset, scale, axis, epsilon):
    """Subtract the mean, divide by the standard deviation, multiply by the scale and add the offset, along `axis`."""
    dtype, shape = x.dtype, [-1 if dim == axis else 1 for dim in range(x.ndim)]
    compute = torch.promote_types(dtype, torch.float32)
    x, mean, variance, offset, scale = (t if t is None else t.type(compute) for t in (x, mean, variance, offset, scale))
    factor = torch.rsqrt(variance.reshape(shape) + epsilon)
    if scale is not None:
        factor = factor * scale.reshape(shape)
    x = (x - mean.reshape(shape)) * factor
    return (x if offset is None else x + offset.reshape(shape)).type(dtype)


def op_layer_normalization(x, gamma, beta, axis, epsilon):
    return by_layer_norm(layer_norm, x, gamma, beta, axis, epsilon)


def by_layer_norm(layer_norm, x, gamma, beta, axis, epsilon):
    """Normalize along `axis` by `layer_norm`, which normalizes last dimensions of a given shape."""
    x, gamma, beta = promote_operands(x, gamma, beta)
    axis = sorted(args.axes(axis, x.ndim))
    shape = x.shape[x.ndim - len(axis) :]
    if (
        axis
        and axis == list(range(x.ndim - len(axis), x.ndim))
        and all(t is None or t.shape == shape for t in (gamma, beta))
    ):
        return layer_norm(x, gamma, beta, shape, epsilon)
    if x.dtype in (torch.float16, torch.bfloat16):  # the product with gamma may overflow where the sum does not
        wide = (t if t is None else t.float() for t in (x, gamma, beta))
        return by_layer_norm(layer_norm, *wide, axis, epsilon).type(x.dtype)
    gamma, beta = fit_parameter(gamma, x, axis, "gamma"), fit_parameter(beta, x, axis, "beta")
    x = apply_to_last(lambda x, shape: layer_norm(x, None, None, shape, epsilon), x, axis)
    x = x if gamma is None else x * gamma
    return x if beta is None else x + beta


def layer_norm(x, gamma, beta, shape, epsilon):
    return in_float32(lambda x: standardize(x, gamma, beta, shape, epsilon), x)


def standardize(x, gamma, beta, shape, epsilon):
    """Standardize in separate operations, then scale and shift."""
    dims = tuple(range(x.ndim - len(shape), x.ndim))
    x = x - x.detach()[(..., *[slice(0, 1)] * len(shape))]  # the mean of equal entries is exact
    centred = x - x.mean(dims, keepdim=True)
    x = centred * torch.rsqrt((centred * centred).mean(dims, keepdim=True) + epsilon)
    x = x if gamma is None else x * gamma
    return x if beta is None else x + beta


def op_rms_normalization(x, scale, axis, epsilon):
    if type(axis) is int and axis == -1 and are_along(x, axis, scale):
        return torch.rms_norm(x, x.shape[-1:], scale, epsilon)
    x, scale = promote_operands(x, scale)
    axis = sorted(args.axes(axis, x.ndim))
    if scale is not None and axis == list(range(x.ndim - len(axis), x.ndim)) and scale.shape == x.shape[axis[0] :]:
        return functional.rms_norm(x, scale.shape, scale, epsilon)
    scale = fit_parameter(scale, x, axis, "scale")
    x = apply_to_last(lambda x, shape: functional.rms_norm(x, shape, eps=epsilon), x, axis)
    return x if scale is None else x * scale


def normalize(x, axis, order, epsilon):
    # divide by the largest entry first, so that no power overflows; as a constant, it cancels out
    sizes = x.detach().abs()
    small = x / (sizes.amax(axis, True) if axis else sizes).clamp_min(max(epsilon, LEAST[x.dtype]))
    powers = small * small if order == 2 else small.abs() ** order
    total = (torch.sum(powers, axis, True) if axis else powers).clamp_min(1)  # below 1, the norm is below epsilon
    return small / (torch.sqrt(total) if order == 2 else total ** (1 / order))


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
    moved = x.permute(args.moved_order(axis, last, x.ndim))
    return normalize(moved, [x.shape[dim] for dim in axis]).permute(args.moved_order(last, axis, x.ndim))


def are_along(x, axis, *vectors):
    """Say whether `axis` is one of `x`, a tensor of real floats, and each of `vectors` has its dtype and length."""
    if not (type(axis) is int and isinstance(x, torch.Tensor) and (dtype := x.dtype).is_floating_point):
        return False
    if dtype.itemsize == 1 or not -x.ndim <= axis < x.ndim:
        return False
    size = x.shape[axis]
    for vector in vectors:
        is_fit = vector is None or (isinstance(vector, torch.Tensor) and vector.dtype is dtype)
        if not is_fit or (vector is not None and vector.shape != (size,)):
            return False
    return True
