"""Fourier transforms: errors, round trips, and SciPy's answers."""

import numpy as np
import pytest
import scipy.signal

import multiop as mo
from multiop import errors

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def value(x):
    return mo.op_convert_to_numpy(x)


@pytest.mark.parametrize(
    ("op", "args", "error", "match"),
    [
        ("op_fft", (X,), errors.ArgumentTypeError, "x must be a pair"),
        ("op_fft", ((X, X[:2]),), errors.ArgumentError, "not of one tensor"),
        ("op_fft", ((1.0, 1.0),), errors.ArgumentError, "at least 1 dimensions"),
        ("op_fft", ((X[:, :0], X[:, :0]),), errors.ArgumentError, "must not be empty"),
        ("op_fft2", ((X[0], X[0]),), errors.ArgumentError, "at least 2 dimensions"),
        ("op_ifft2", ((X[:0], X[:0]),), errors.ArgumentError, "must not be empty"),
        ("op_fft", ((X * 1j, X),), errors.DTypeError, "complex"),
        ("op_rfft", (X * 1j,), errors.DTypeError, "complex"),
        ("op_rfft", (X, 0), errors.ArgumentError, "fft_length must be at least 1"),
        ("op_rfft", (X, 2.5), errors.ArgumentTypeError, "fft_length must be an int"),
        ("op_irfft", (X,), errors.ArgumentTypeError, "x must be a pair"),
        ("op_irfft", ((X[:, :1], X[:, :1]),), errors.ArgumentError, "fft_length must be given"),
        ("op_extract_sequences", (X, 5, 1), errors.ArgumentError, "does not fit in 4"),
        ("op_extract_sequences", (X, 0, 1), errors.ArgumentError, "sequence_length must be at least 1"),
        ("op_extract_sequences", (X, 2, 0), errors.ArgumentError, "sequence_stride must be at least 1"),
        ("op_stft", (X, 4, 1, 3), errors.ArgumentError, "below sequence_length"),
        ("op_stft", (X, 2, 1, 2, [1.0, 1.0, 1.0]), errors.ArgumentError, "window must have the shape"),
        ("op_stft", (X, 2, 1, 8, None, False), errors.ArgumentError, "does not fit in 4"),
        ("op_stft", (X, 2, 1, 2, "hann", 1), errors.ArgumentTypeError, "center"),
        ("op_stft", (X * 1j, 2, 1, 2), errors.DTypeError, "complex"),
        ("op_istft", (X, 2, 1, 2), errors.ArgumentTypeError, "x must be a pair"),
        ("op_istft", ((X, X), 2, 1, 2), errors.ArgumentError, "4 entries in its last dimension, not 2"),
        ("op_istft", ((X, X), 6, 7, 6), errors.ArgumentError, "leaves gaps"),
        ("op_istft", ((X, X), 6, 3, 6, 99), errors.ArgumentError, "length 99 is more than"),
    ],
)
def test_a_bad_argument(backend, op, args, error, match):
    with pytest.raises(error, match=match):
        getattr(mo, op)(*args)


@pytest.mark.parametrize("window", ["hann", "hamming", None, np.array([0.5, 1.0, 2.0, 0.5, 0.3, 1.0], np.float32)])
@pytest.mark.parametrize("fft_length", [6, 9])
def test_a_signal_comes_back(backend, window, fft_length):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 20)).astype(np.float32)
    spectrum = mo.op_stft(x, 6, 2, fft_length, window)
    found = value(mo.op_istft(spectrum, 6, 2, fft_length, 20, window))
    np.testing.assert_allclose(found, x, atol=1e-5)


@pytest.mark.filterwarnings("ignore:NOLA")
def test_the_window_is_scipys(backend):
    rng = np.random.default_rng(0)
    x = rng.normal(size=40).astype(np.float32)
    for window in ("hann", "hamming"):
        weights = scipy.signal.get_window(window, 8)
        wanted = scipy.signal.stft(x, window=weights, nperseg=8, noverlap=5, boundary=None, padded=False)[-1].T
        real, imag = mo.op_stft(x, 8, 3, 8, window, center=False)
        np.testing.assert_allclose(value(real) + 1j * value(imag), wanted * weights.sum(), atol=1e-5)
        found = mo.op_istft((real, imag), 8, 3, 8, window=window, center=False)
        wanted = scipy.signal.istft(wanted.T, window=weights, nperseg=8, noverlap=5, boundary=False)[-1]
        np.testing.assert_allclose(value(found), wanted, atol=1e-5)


def test_transforms_are_inverses(backend):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 5)).astype(np.float32), rng.normal(size=(2, 3, 5)).astype(np.float32)
    for part, found in zip(x, mo.op_ifft2(mo.op_fft2(x)), strict=True):
        np.testing.assert_allclose(value(found), part, atol=1e-5)
    np.testing.assert_allclose(value(mo.op_irfft(mo.op_rfft(x[0]), 5)), x[0], atol=1e-5)


def test_the_parts_that_a_real_signal_lacks_are_ignored(backend):
    x = mo.op_convert_to_tensor([1.0, 2.0, 3.0]), mo.op_convert_to_tensor([5.0, 1.0, 7.0])
    np.testing.assert_allclose(value(mo.op_irfft(x)), np.fft.irfft([1, 2 + 1j, 3]), atol=1e-6)
    gradient = mo.grad(lambda imag: mo.op_sum(mo.op_square(mo.op_irfft((x[0], imag)))))(x[1])
    assert value(gradient)[[0, 2]].tolist() == [0.0, 0.0]


def test_parts_are_promoted(backend):
    real, imag = mo.op_fft((np.ones(2, np.float16), np.ones(2, np.float32)))
    assert mo.op_dtype(real) == mo.op_dtype(imag) == "float32"


@pytest.mark.parametrize("window", ["hann", "hamming", None])
def test_a_window_of_one_entry_is_one(backend, window):
    x = np.array([1.0, 2.0, 3.0], np.float32)
    real, imag = mo.op_stft(x, 1, 1, 1, window=window, center=False)
    assert value(real).tolist() == [[1.0], [2.0], [3.0]]
    assert value(imag).tolist() == [[0.0], [0.0], [0.0]]
