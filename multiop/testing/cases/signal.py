"""Rows of the Fourier transforms."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._case import BOOLEAN, NUMERIC, Row, call, floating, row, same
from .._samplers import normal, positive

REALS = ("int32", "float16", "bfloat16", "float32", "float64")


def _parts(transform: Any) -> Any:
    """Return a NumPy transform as a function of pairs, with a pair for a complex result."""

    def of_pair(x, fft_length=None):
        options = {} if fft_length is None else {"n": fft_length}
        y = transform(x[0] + 1j * x[1] if isinstance(x, (tuple, list)) else x, **options)
        return (y.real, y.imag) if np.iscomplexobj(y) else y

    return of_pair


_rfft, _irfft = _parts(np.fft.rfft), _parts(np.fft.irfft)


def _terms(transform: Any) -> Any:
    """Return the size of the terms that `transform` adds: those of its first entry do not cancel."""
    axes = (-2, -1) if transform in (np.fft.fft2, np.fft.ifft2) else -1

    def of_pair(x, fft_length=None):
        x = (np.abs(x[0]) + np.abs(x[1]), 0) if isinstance(x, (tuple, list)) else np.abs(x)
        y = _parts(transform)(x, fft_length)
        first = y[0] if isinstance(y, tuple) else y
        size = np.broadcast_to(np.max(first, axes, keepdims=True), first.shape)
        return (size, size) if isinstance(y, tuple) else size

    return of_pair


def _of_pairs(transform: Any) -> Any:
    """Return a NumPy transform with options as a function of pairs, with a pair for a complex result."""

    def of_pair(x, *args, **options):
        y = transform(x[0] + 1j * x[1] if isinstance(x, (tuple, list)) else x, *args, **options)
        return (y.real, y.imag) if np.iscomplexobj(y) else y

    return of_pair


def _largest(transform: Any) -> Any:
    """Return the size of the terms that `transform` adds, those of all entries that it could add."""

    def of_pair(x, *args, **options):
        y = _of_pairs(transform)(x, *args, **options)
        x = np.abs(x[0]) + np.abs(x[1]) if isinstance(x, (tuple, list)) else np.abs(x)
        shape = np.shape(y[0] if isinstance(y, tuple) else y)
        # an entry of the half that a transform of reals is given stands for two, and a norm may leave out the factor
        size = 2 * np.sum(x) * (1 if options.get("norm") in (None, "backward") else np.prod(shape))
        return (np.full(shape, size),) * 2 if isinstance(y, tuple) else np.full(shape, size)

    return of_pair


def pair(*shape: int) -> tuple[Any, Any]:
    """Draw a real and an imaginary part."""
    return normal(*shape), normal(*shape)


def _window(window, length, n):
    if isinstance(window, str):
        a = {"hann": 0.5, "hamming": 0.54}[window]
        window = a - (1 - a) * np.cos(2 * np.pi * np.arange(length) / length)
    window = np.ones(length) if window is None else np.asarray(window)
    return np.pad(window, ((n - length) // 2, n - length - (n - length) // 2))


def _sequences(x, sequence_length, sequence_stride):
    return np.lib.stride_tricks.sliding_window_view(x, sequence_length, -1)[..., ::sequence_stride, :]


def _stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True, transform=_rfft):
    if center:
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(fft_length // 2, fft_length // 2)], "reflect")
    pieces = _sequences(x, fft_length, sequence_stride) * _window(window, sequence_length, fft_length)
    return transform(pieces)


def _istft(
    x,
    sequence_length,
    sequence_stride,
    fft_length,
    length=None,
    window="hann",
    center=True,
    transform=_irfft,
):
    pieces = transform(x, fft_length)
    weights = _window(window, sequence_length, fft_length)
    number = pieces.shape[-2]
    signal = np.zeros((*pieces.shape[:-2], fft_length + sequence_stride * (number - 1)))
    covered = np.zeros(signal.shape[-1])
    for i in range(number):
        place = slice(i * sequence_stride, i * sequence_stride + fft_length)
        signal[..., place] += pieces[..., i, :] * weights
        covered[place] += weights**2
    signal /= np.where(covered > 1e-10, covered, 1)
    start = fft_length // 2 if center else 0
    return signal[..., start : signal.shape[-1] - start if length is None else start + length]


of_signals = functools.partial(row, dtypes=REALS, returns=floating, ulps=16)


def of_last_axes(op: str, reference, *calls) -> Row:
    """Make a row of a Fourier transform with no option but `fft_length`."""
    return of_signals(op, _parts(reference), *calls, accumulates=_terms(reference))


def fourier_transform(op: str, reference, *calls) -> Row:
    """Make a row of a Fourier transform with NumPy's options."""
    return of_signals(op, _of_pairs(reference), *calls, accumulates=_largest(reference))


ROWS = [
    *(
        of_last_axes(op, transform, call((normal(3, 4), normal(3, 4))), call((normal(2, 1, 3), normal(2, 1, 3))))
        for op, transform in (("op_fft2", np.fft.fft2), ("op_ifft2", np.fft.ifft2))
    ),
    of_last_axes(
        "op_rfft",
        np.fft.rfft,
        call(normal(2, 5)),
        call(normal(2, 4)),
        call(normal(6), 4),
        call(normal(3), fft_length=5),
    ),
    of_last_axes(
        "op_irfft",
        np.fft.irfft,
        call((normal(2, 3), normal(2, 3))),
        call((normal(2, 3), normal(2, 3)), 5),
        call((normal(4), normal(4)), fft_length=3),
        call((normal(2), normal(2)), 6),
    ),
    row(
        "op_extract_sequences",
        _sequences,
        call(normal(2, 7), 3, 2),
        call(normal(4), sequence_length=2, sequence_stride=3),
        call(normal(0, 3), 3, 1),
        dtypes=BOOLEAN + NUMERIC,
        returns=same,
    ),
    of_signals(
        "op_stft",
        _stft,
        call(normal(2, 9), 4, 2, 4),
        call(normal(8), 3, 2, 5, "hamming"),
        call(normal(7), 3, sequence_stride=1, fft_length=4, window=positive(3), center=False),
        call(normal(6), sequence_length=2, sequence_stride=3, fft_length=2, window=None),
        ulps=64,
        accumulates=functools.partial(_stft, transform=_terms(np.fft.rfft)),
    ),
    of_signals(
        "op_istft",
        _istft,
        call((normal(2, 4, 3), normal(2, 4, 3)), 4, 2, 4),
        call((normal(3, 3), normal(3, 3)), 3, 2, 5, 5, "hamming"),
        call((normal(3, 3), normal(3, 3)), 3, sequence_stride=1, fft_length=4, window=positive(3), center=False),
        call((normal(2, 2), normal(2, 2)), sequence_length=2, sequence_stride=2, fft_length=2, length=1, window=None),
        ulps=64,
        accumulates=functools.partial(_istft, transform=_terms(np.fft.irfft)),
    ),
    fourier_transform(
        "op_fft",
        np.fft.fft,
        call(pair(2, 5)),
        call(pair(3, 2), n=5, axis=0, norm="ortho"),
        call(pair(3), 2, norm="forward"),
        call(pair(0, 3)),
    ),
    fourier_transform(
        "op_ifft",
        np.fft.ifft,
        call(pair(2, 4)),
        call(pair(3, 2), n=5, axis=0, norm="ortho"),
        call(pair(3), 2, norm="forward"),
    ),
    fourier_transform(
        "op_fftn",
        np.fft.fftn,
        call(pair(2, 3)),
        call(pair(2, 3, 2), axes=(0, -1), norm="ortho"),
        call(pair(2, 3), s=(3, 2), axes=(1, 0), norm="forward"),
        call(pair(2, 2), axes=()),
    ),
    fourier_transform(
        "op_ifftn",
        np.fft.ifftn,
        call(pair(2, 3)),
        call(pair(2, 3, 2), axes=(0, -1), norm="ortho"),
        call(pair(2, 3), s=(-1, 2), axes=(1, 0), norm="forward"),
    ),
    fourier_transform(
        "op_rfftn",
        np.fft.rfftn,
        call(normal(2, 3)),
        call(normal(2, 3, 2), axes=(0, 1), norm="ortho"),
        call(normal(2, 3), s=(3, 2), axes=(1, 0), norm="forward"),
    ),
    fourier_transform(
        "op_irfftn",
        np.fft.irfftn,
        call(pair(2, 3)),
        call(pair(3, 2, 2), axes=(2, 0), norm="ortho"),
        call(pair(2, 3), s=(3, 3), axes=(1, 0), norm="forward"),
    ),
    fourier_transform(
        "op_hfft",
        np.fft.hfft,
        call(pair(2, 3)),
        call(pair(3, 2), n=5, axis=0, norm="ortho"),
        call(pair(3), 3, norm="forward"),
    ),
    fourier_transform(
        "op_ihfft",
        np.fft.ihfft,
        call(normal(2, 3)),
        call(normal(4, 2), n=5, axis=0, norm="ortho"),
        call(normal(3), 2, norm="forward"),
    ),
    *(
        row(
            op,
            lambda n, d=1.0, dtype=None, reference=reference: reference(n, d),
            call(5),
            call(6, d=0.5),
            call(1, 2.0, dtype="float16"),
            returns=lambda dtypes: "float32",
            differentiable=False,
            vmap=False,
        )
        for op, reference in (("op_fftfreq", np.fft.fftfreq), ("op_rfftfreq", np.fft.rfftfreq))
    ),
    *(
        row(
            op,
            reference,
            call(normal(2, 5)),
            call(normal(3, 4), axes=0),
            call(normal(2, 1, 3), axes=(0, -1)),
            call(normal(0)),
            dtypes=BOOLEAN + NUMERIC,
            returns=same,
        )
        for op, reference in (("op_fftshift", np.fft.fftshift), ("op_ifftshift", np.fft.ifftshift))
    ),
]
