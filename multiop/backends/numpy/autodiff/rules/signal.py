"""Derivatives of Fourier transforms: real pairs stand for complex numbers."""

from __future__ import annotations

import numpy as np

from ..._record import ops

OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def adjoint_rule(name):
    """Return the rule of a transform: the transform back, without the factor, of what is cut or padded to the size."""

    def rule(u, x, s, axes, norm):
        y = getattr(ops, name)(tuple(u) if is_pair(x) else u, None, axes, OPPOSITE[norm])
        return [resize(part, x[0], axes) for part in y] if is_pair(x) else resize(y, x, axes)

    return rule


op_fftn, op_ifftn = adjoint_rule("ifftn"), adjoint_rule("fftn")


def op_rfftn(u, x, s, axes, norm, in_parts):
    n = s[-1] if s else x.shape[axes[-1]]
    weights = 1 / counts(n, axes, x.ndim)
    u = tuple(scale(part, weights) for part in u) if in_parts else scale(u, weights)
    shape = (u[0] if in_parts else u).shape
    sizes = (*(shape[axis] for axis in axes[:-1]), n)
    return (resize(ops.irfftn(u, sizes, axes, OPPOSITE[norm]), x, axes),)


def op_irfftn(u, x, s, axes, norm):
    y = ops.rfftn(u, None, axes, OPPOSITE[norm], is_pair(x))
    weights = counts(u.shape[axes[-1]], axes, u.ndim)
    if is_pair(x):
        return [resize(scale(part, weights), x[0], axes) for part in y]
    return resize(scale(y, weights), x, axes)


def is_pair(x):
    return isinstance(x, (tuple, list))


def counts(n, axes, ndim):
    """Return for how many frequencies each entry of a first half stands."""
    found = np.where(np.arange(n // 2 + 1) * 2 % n == 0, 1.0, 2.0)
    return found.reshape([-1 if k == axes[-1] else 1 for k in range(ndim)])


def scale(x, weights):
    return x * weights.astype(np.empty(0, x.dtype).real.dtype)


def resize(y, x, axes):
    """Return `y` with the sizes of `x` along the axes: its first entries, or zeros after them."""
    sizes = np.shape(x)  # of a list of arrays, too
    more = [(0, max(sizes[k] - y.shape[k], 0) if k in axes else 0) for k in range(y.ndim)]
    if any(after for _, after in more):
        y = ops.pad(y, more, "constant", 0)
    return y if y.shape == sizes else y[tuple(slice(sizes[k]) if k in axes else slice(None) for k in range(y.ndim))]
