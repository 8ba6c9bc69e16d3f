"""Derivatives of Fourier transforms: real pairs stand for complex numbers."""

from __future__ import annotations

import numpy as np

from ..._record import ops


def transposed_rule(name):
    """Return the rule of a transform whose matrix is symmetric: the conjugate of the transform of the conjugate."""

    def rule(u, x):
        re, im = getattr(ops, name)((u[0], -u[1]))
        return [re, -im]

    return rule


op_fft, op_fft2, op_ifft2 = transposed_rule("fft"), transposed_rule("fft2"), transposed_rule("ifft2")


def op_rfft(u, x, fft_length):
    n = x.shape[-1] if fft_length is None else fft_length
    re, _ = ops.fft((resize_last_axis(u[0], n), -resize_last_axis(u[1], n)))
    return resize_last_axis(re, x.shape[-1])


def op_irfft(u, x, fft_length):
    given, n = ops.shape(x[0])[-1], u.shape[-1]
    counts = np.where(np.arange(n // 2 + 1) * 2 % n == 0, 1, 2)  # the others stand for two frequencies
    return [resize_last_axis(part * (counts / n), given) for part in ops.rfft(u, n)]


def resize_last_axis(x, size):
    """Return `x` with `size` entries along the last axis: the first ones, or zeros after them."""
    more = max(size - x.shape[-1], 0)
    return ops.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, more)], "constant", 0)[..., :size]
