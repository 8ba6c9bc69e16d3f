"""NumPy's Fourier transforms by their options, for the ops and their kernels."""

from __future__ import annotations

import numpy as np


def along(one, several):
    """Return one of NumPy's transforms as a function of its options: with one axis, the shorter way to it."""

    def with_options(s, axes, norm):
        if len(axes) == 1:
            return lambda z: one(z, s and s[0], axes[0], norm)
        return lambda z: several(z, s, axes, norm) if axes else z

    return with_options


forward, back = along(np.fft.fft, np.fft.fftn), along(np.fft.ifft, np.fft.ifftn)
forward_of_reals, back_to_reals = along(np.fft.rfft, np.fft.rfftn), along(np.fft.irfft, np.fft.irfftn)
