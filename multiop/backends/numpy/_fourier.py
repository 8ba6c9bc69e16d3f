"""SciPy's Fourier transforms by their options, for the ops and their kernels: NumPy's take up to four times as long."""

from __future__ import annotations

import functools


@functools.lru_cache(16)
def scipy_transform(name):
    from scipy import fft  # it imports scipy.special, which takes as long as multiop

    return getattr(fft, name)


def along(name):
    """Return one of SciPy's transforms as a function of its options: with one axis, the shorter way to it."""

    def with_options(s, axes, norm):
        if len(axes) == 1:
            return lambda z: scipy_transform(name)(z, s and s[0], axes[0], norm)
        return lambda z: scipy_transform(f"{name}n")(z, s, axes, norm) if axes else z

    return with_options


def along_one(name):
    """Return one of SciPy's transforms along an axis."""
    return lambda x, n=None, axis=-1, norm=None: scipy_transform(name)(x, n, axis, norm)


forward, back, forward_of_reals, back_to_reals = map(along, ("fft", "ifft", "rfft", "irfft"))
