"""Fourier transforms of complex tensors: those of NumPy, in every mode."""

from __future__ import annotations

import numpy as np
import pytest

import multiop as mo
from multiop import array_api as xp, errors, ops

RANDOM = np.random.default_rng(67)
Z = RANDOM.normal(size=(3, 4)) + 1j * RANDOM.normal(size=(3, 4))
X = RANDOM.normal(size=(3, 4))
OPTIONS = [{"n": 6, "axis": 0, "norm": "ortho"}, {}, {"n": 2, "norm": "forward"}]
SEVERAL = [{"s": (5, 3), "axes": (1, 0), "norm": "ortho"}, {}, {"s": (-1, 2), "norm": "forward"}, {"axes": (0,)}]
TRANSFORMS = [
    *(("fft ifft hfft", mo, Z, options) for options in OPTIONS),
    *(("fftn ifftn irfftn", mo, Z, options) for options in SEVERAL),
    ("fft2 ifft2 irfft", mo, Z, {}),
    *(("rfft ihfft", xp.fft, X, options) for options in OPTIONS),
    *(("rfftn", xp.fft, X, options) for options in SEVERAL),
]
CASES = [
    pytest.param(
        name, module, x, options, marks=pytest.mark.tier("full" if is_less else "default"), id=f"{name}{options}"
    )
    for names, module, x, options in TRANSFORMS
    for name in names.split()
    for is_less in [options not in (OPTIONS[0], SEVERAL[0]) or name in ("ifft", "ifftn")]
]


def value(x):
    return mo.op_convert_to_numpy(x)


def matrix(transform, x):
    """Return a linear map of the real and imaginary parts of `x` as a matrix."""
    parts = [1, 1j] if np.iscomplexobj(x) else [1]
    rows = []
    for part in parts:
        for k in range(x.size):
            unit = np.zeros(x.size, x.dtype)
            unit[k] = part
            y = transform(unit.reshape(x.shape)).ravel()
            rows.append(np.concatenate([y.real, y.imag]))
    return np.array(rows)


@pytest.mark.parametrize(("name", "module", "x", "options"), CASES)
def test_a_complex_tensor_is_transformed_as_numpy_does(backend, name, module, x, options):
    """Its gradient is the transposed matrix, and so is the second one, since it is linear."""
    transform, native = getattr(module, f"op_{name}" if module is mo else name), getattr(np.fft, name)
    expected = native(x, **options)
    is_complex = x.dtype.kind == "c"
    x = x.astype("complex64" if is_complex else "float32")
    found = transform(mo.op_convert_to_tensor(x), **options)
    assert mo.dtype_name(found.dtype) == ("complex64" if np.iscomplexobj(expected) else "float32")
    np.testing.assert_allclose(value(found), expected, rtol=1e-4, atol=1e-4)

    weights = np.cos(np.arange(expected.size)).reshape(expected.shape) * (1 + 0.5j * np.iscomplexobj(expected))
    w, weights = weights.ravel(), weights.astype(value(found).dtype)
    rows = matrix(lambda unit: native(unit, **options), x.astype("complex128" if is_complex else "float64"))
    rows = rows[:, : w.size] * w.real + rows[:, w.size :] * w.imag  # of the real parts that the loss squares
    parts = np.concatenate([x.ravel().real, x.ravel().imag]) if is_complex else x.ravel()
    ones = np.repeat([1.0, 0.0], x.size)[: parts.size]

    def loss(x):
        return ops.sum(ops.square(ops.real(ops.multiply(transform(x, **options), np.conj(weights)))))

    def of_parts(flat):
        return (flat[: x.size] + 1j * flat[x.size :] if is_complex else flat).reshape(x.shape)

    def derivatives(x):
        gradient, one = mo.grad(loss), ops.ones_like(x)
        return (
            gradient(x),
            mo.jvp(loss, (x,), (one,))[1],
            mo.jvp(gradient, (x,), (one,))[1],
            mo.grad(lambda x: ops.real(ops.sum(gradient(x))))(x),
            mo.vmap(gradient)(ops.stack([x, ops.multiply(x, 2)])),
        )

    slope, second = of_parts(2 * rows @ (rows.T @ parts)), of_parts(2 * rows @ (rows.T @ ones))
    wanted = slope, 2 * (rows.T @ ones) @ (rows.T @ parts), second, second, np.stack([slope, 2 * slope])
    run = mo.jit(derivatives) if backend in ("jax", "tensorflow") else derivatives  # PyTorch's compiler takes seconds
    for part, right in zip(run(x), wanted, strict=True):
        np.testing.assert_allclose(value(part), right, rtol=2e-3, atol=2e-3 * np.abs(right).max())
    np.testing.assert_allclose(value(mo.jit(lambda x: transform(x, **options))(x)), expected, rtol=1e-4, atol=1e-4)


def test_wide_and_empty_complex_tensors(backend):
    if backend != "jax" or mo.x64():
        found = mo.op_fft(mo.op_convert_to_tensor(Z, "complex128"), 7, 0)
        assert mo.dtype_name(found.dtype) == "complex128"
        np.testing.assert_allclose(value(found), np.fft.fft(Z, 7, 0), atol=1e-12)
    empty = np.zeros((0, 3), "complex64")
    assert value(mo.op_fftn(empty, axes=(1,))).shape == value(mo.op_ifft(empty)).shape == (0, 3)
    assert value(mo.op_irfft(empty, 6)).shape == (0, 6)
    np.testing.assert_array_equal(value(mo.op_fftn(Z.astype("complex64"), axes=())), Z.astype("complex64"))
    deep = RANDOM.normal(size=(2, 3, 2, 3, 2)).astype("complex64")
    np.testing.assert_allclose(value(mo.op_fftn(deep)), np.fft.fftn(deep), atol=1e-4)
    np.testing.assert_allclose(value(xp.fft.rfftn(deep.real)), np.fft.rfftn(deep.real), atol=1e-4)
    np.testing.assert_allclose(
        value(mo.op_irfftn(deep, s=(2, 3, 2, 3, 3))), np.fft.irfftn(deep, (2, 3, 2, 3, 3), range(5)), atol=1e-4
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mo.op_fft(X), errors.ArgumentTypeError, "a complex tensor"),
        (lambda: mo.op_fft(Z, axis=2), errors.ArgumentError, "axis"),
        (lambda: mo.op_fft(Z, 0), errors.ArgumentError, "n must be at least 1"),
        (lambda: mo.op_fft(Z, norm="both"), errors.ArgumentError, "norm must be"),
        (lambda: mo.op_fft2(Z[0]), errors.ArgumentError, "at least 2 dimensions"),
        (lambda: mo.op_ifft(Z[:, :0]), errors.ArgumentError, "must not be empty"),
        (lambda: mo.op_irfft(Z[:, :1]), errors.ArgumentError, "fft_length must be given"),
        (lambda: xp.fft.rfft(Z), errors.DTypeError, "complex"),
    ],
)  # fmt: skip
def test_bad_arguments_beside_complex_tensors(backend, call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_parts_of_a_complex_tensor_are_views(backend):
    """The gradient goes through, and entries that are apart are copied."""
    z = mo.op_convert_to_tensor(Z.astype("complex64"))
    parts = mo.op_view_as_real(z)
    np.testing.assert_array_equal(value(parts), np.stack([Z.real, Z.imag], -1).astype("float32"))
    again = mo.op_view_as_complex(parts)
    np.testing.assert_array_equal(value(again), value(z))
    if backend in ("numpy", "torch"):
        parts[0, 0, 1] = 7.0
        assert z[0, 0].imag == again[0, 0].imag == 7.0
    apart = value(mo.op_view_as_complex(mo.op_transpose(mo.op_convert_to_tensor(Z[:2].real.astype("float32")))))
    np.testing.assert_allclose(apart, Z[0].real + 1j * Z[1].real, rtol=1e-6)
    gradient = mo.grad(lambda z: ops.sum(ops.square(mo.op_view_as_real(z))))(Z.astype("complex64"))
    np.testing.assert_allclose(value(gradient), 2 * Z, rtol=1e-5)
    scaled = mo.grad(lambda x: ops.sum(ops.real(ops.multiply(Z.astype("complex64"), x))))(X.astype("float32"))
    np.testing.assert_allclose(value(scaled), Z.real, rtol=1e-5)
