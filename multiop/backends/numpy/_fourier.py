"""SciPy's Fourier transforms by their options, for the ops and their kernels: NumPy's take up to four times as long."""

from __future__ import annotations

from scipy import fft


def along(one, several):
    """Return one of SciPy's transforms as a function of its options: with one axis, the shorter way to it."""

    def with_options(s, axes, norm):
        if len(axes) == 1:
            return lambda z: one(z, s and s[0], axes[0], norm)
        return lambda z: several(z, s, axes, norm) if axes else z

    return with_options


forward, back = along(fft.fft, fft.fftn), along(fft.ifft, fft.ifftn)
forward_of_reals, back_to_reals = along(fft.rfft, fft.rfftn), along(fft.irfft, fft.irfftn)
