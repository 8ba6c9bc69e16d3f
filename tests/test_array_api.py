"""`multiop.array_api`: the standard's names, values as NumPy's own namespace has them, gradients, and dtypes."""

from __future__ import annotations

import contextlib
import inspect
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import multiop
from multiop import array_api as xp, errors

# the functions of the standard, 2025.12, with their parameters
FUNCTIONS = """
arange(start, /, stop, step, *, dtype, device)
asarray(obj, /, *, dtype, device, copy)
empty(shape, *, dtype, device)
empty_like(x, /, *, dtype, device)
eye(n_rows, n_cols, /, *, k, dtype, device)
from_dlpack(x, /, *, device, copy)
full(shape, fill_value, *, dtype, device)
full_like(x, /, fill_value, *, dtype, device)
linspace(start, stop, /, num, *, dtype, device, endpoint)
meshgrid(*arrays, indexing)
ones(shape, *, dtype, device)
ones_like(x, /, *, dtype, device)
tril(x, /, *, k)
triu(x, /, *, k)
zeros(shape, *, dtype, device)
zeros_like(x, /, *, dtype, device)
astype(x, dtype, /, *, copy, device)
can_cast(from_, to, /)
finfo(type, /)
iinfo(type, /)
isdtype(dtype, kind)
result_type(*arrays_and_dtypes)
clip(x, /, min, max)
take(x, indices, /, *, axis)
take_along_axis(x, indices, /, *, axis)
matmul(x1, x2, /)
matrix_transpose(x, /)
tensordot(x1, x2, /, *, axes)
vecdot(x1, x2, /, *, axis)
broadcast_arrays(*arrays)
broadcast_to(x, /, shape)
concat(arrays, /, *, axis)
expand_dims(x, /, axis)
flip(x, /, *, axis)
moveaxis(x, source, destination, /)
permute_dims(x, /, axes)
repeat(x, repeats, /, *, axis)
reshape(x, /, shape, *, copy)
roll(x, /, shift, *, axis)
squeeze(x, /, axis)
stack(arrays, /, *, axis)
tile(x, repetitions, /)
unstack(x, /, *, axis)
argmax(x, /, *, axis, keepdims)
argmin(x, /, *, axis, keepdims)
count_nonzero(x, /, *, axis, keepdims)
nonzero(x, /)
searchsorted(x1, x2, /, *, side, sorter)
where(condition, x1, x2, /)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unique_values(x, /)
argsort(x, /, *, axis, descending, stable)
sort(x, /, *, axis, descending, stable)
isin(x1, x2, /, *, invert)
broadcast_shapes(*shapes)
cumulative_prod(x, /, *, axis, dtype, include_initial)
cumulative_sum(x, /, *, axis, dtype, include_initial)
max(x, /, *, axis, keepdims)
mean(x, /, *, axis, keepdims)
min(x, /, *, axis, keepdims)
prod(x, /, *, axis, dtype, keepdims)
std(x, /, *, axis, correction, keepdims)
sum(x, /, *, axis, dtype, keepdims)
var(x, /, *, axis, correction, keepdims)
all(x, /, *, axis, keepdims)
any(x, /, *, axis, keepdims)
diff(x, /, *, axis, n, prepend, append)
linalg.cholesky(x, /, *, upper)
linalg.cross(x1, x2, /, *, axis)
linalg.det(x, /)
linalg.diagonal(x, /, *, offset)
linalg.eig(x, /)
linalg.eigh(x, /)
linalg.eigvals(x, /)
linalg.eigvalsh(x, /)
linalg.inv(x, /)
linalg.matmul(x1, x2, /)
linalg.matrix_norm(x, /, *, keepdims, ord)
linalg.matrix_power(x, n, /)
linalg.matrix_rank(x, /, *, rtol)
linalg.matrix_transpose(x, /)
linalg.outer(x1, x2, /)
linalg.pinv(x, /, *, rtol)
linalg.qr(x, /, *, mode)
linalg.slogdet(x, /)
linalg.solve(x1, x2, /)
linalg.svd(x, /, *, full_matrices)
linalg.svdvals(x, /)
linalg.tensordot(x1, x2, /, *, axes)
linalg.trace(x, /, *, offset, dtype)
linalg.vecdot(x1, x2, /, *, axis)
linalg.vector_norm(x, /, *, axis, keepdims, ord)
fft.fft(x, /, *, n, axis, norm)
fft.ifft(x, /, *, n, axis, norm)
fft.fftn(x, /, *, s, axes, norm)
fft.ifftn(x, /, *, s, axes, norm)
fft.rfft(x, /, *, n, axis, norm)
fft.irfft(x, /, *, n, axis, norm)
fft.rfftn(x, /, *, s, axes, norm)
fft.irfftn(x, /, *, s, axes, norm)
fft.hfft(x, /, *, n, axis, norm)
fft.ihfft(x, /, *, n, axis, norm)
fft.fftfreq(n, /, *, d, dtype, device)
fft.rfftfreq(n, /, *, d, dtype, device)
fft.fftshift(x, /, *, axes)
fft.ifftshift(x, /, *, axes)
""".strip().splitlines()
UNARY = """
abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log
log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc
"""
BINARY = """
add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide
greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply
nextafter not_equal pow remainder subtract
"""
FUNCTIONS += [f"{name}(x, /)" for name in UNARY.split()] + [f"{name}(x1, x2, /)" for name in BINARY.split()]
SIZES = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (32, 64), "complex": (64, 128)}
DTYPES = ["bool", *(f"{kind}{bits}" for kind, sizes in SIZES.items() for bits in sizes)]


FULL = pytest.mark.tier("full")


def reached(namespace, name):
    for part in name.split("."):
        namespace = getattr(namespace, part)
    return namespace


@pytest.mark.once
def test_the_standards_functions_are_there_with_their_parameters(backend):
    for function in FUNCTIONS:
        check_signature(function)


def check_signature(function):
    name, _, parameters = function.rstrip(")").partition("(")
    known = inspect.signature(reached(xp, name)).parameters
    positional, _, rest = parameters.rpartition("/") if "/" in parameters else ("", "", parameters)
    by_position = [entry for entry in positional.strip(", ").split(", ") if entry]
    if not parameters.startswith("*"):
        assert len(known) >= len(by_position)
    by_name = {entry for entry in rest.strip(", ").split(", ") if entry and not entry.startswith("*")}
    accepts = {key for key, p in known.items() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    assert by_name <= accepts
    assert name.partition(".")[0] in xp.__all__


def test_dtypes_are_those_of_tensors(backend):
    for name in DTYPES:
        dtype = getattr(xp, name)
        assert dtype == getattr(xp, name)
        assert [other for other in DTYPES if getattr(xp, other) == dtype] == [name]
        if name in xp.__array_namespace_info__().dtypes():
            assert xp.zeros(2, dtype=dtype).dtype == dtype
        else:
            assert backend == "jax"
            with pytest.raises(errors.DTypeError, match="64"):
                xp.zeros(2, dtype=dtype)
    assert xp.isdtype(xp.zeros(2).dtype, "real floating")
    assert not xp.isdtype(xp.int32, ("bool", "unsigned integer"))
    assert xp.result_type(xp.int8, xp.uint8) == xp.int16 == xp.result_type(xp.zeros(1, dtype=xp.int16), 3)
    assert xp.can_cast(xp.int8, xp.int16)
    assert not xp.can_cast(xp.float32, xp.int32)
    assert xp.finfo(xp.complex64).dtype == xp.float32
    assert xp.iinfo(xp.int8).max == 127
    assert xp.__array_api_version__ == "2025.12"
    with pytest.raises(errors.ArgumentError, match="floats"):
        xp.isdtype(xp.int32, "floats")
    with pytest.raises(AttributeError, match="did you mean"):
        xp.concatt


def test_info_is_about_the_active_backend(backend):
    info = xp.__array_namespace_info__()
    x = xp.zeros(2)
    assert info.devices() == (info.default_device(),) == (x.device,)
    assert xp.zeros(2, device=x.device).device == xp.zeros(2, device="cpu").device == x.device
    jitted: list[Any] = []
    multiop.jit(lambda x: (jitted.append(info.default_device()), x)[1])(x)
    assert jitted[0] in (None, x.device)
    assert info.default_dtypes()["real floating"] == xp.zeros(1).dtype
    assert info.default_dtypes()["integral"] == xp.asarray([1]).dtype
    assert info.default_dtypes()["complex floating"] == xp.asarray([1j]).dtype
    assert info.default_dtypes()["indexing"] == xp.argmax(xp.asarray([1, 2])).dtype
    assert set(info.dtypes(kind=("bool", "signed integer"))) >= {"bool", "int8", "int16", "int32"}
    assert set(info.dtypes(kind="complex floating")) >= {"complex64"}


RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(3, 4)).astype(np.float32)
Y = RANDOM.normal(size=(3, 4)).astype(np.float32)
A = (RANDOM.normal(size=(2, 3, 3)) + 4 * np.eye(3)).astype(np.float32)
Z = (X + 1j * Y).astype(np.complex64)
I = np.array([3, 1, 3, 2, 1], np.int32)  # noqa: E741
N = np.array([np.nan, 1, np.nan, 1], np.float32)

# what is computed with a namespace, and NumPy's own is the reference
VALUES = {
    "clip": lambda xp, c: xp.clip(c(X), -0.5, 0.5),
    "clip from below": lambda xp, c: xp.clip(c(X), min=0.0),
    "copysign": lambda xp, c: xp.copysign(c(X), c(np.where(Y > 0, Y, np.float32(-0.0)))),
    "positive": lambda xp, c: xp.positive(c(I)),
    "take_along_axis": lambda xp, c: xp.take_along_axis(c(X), xp.argsort(c(X))),
    "vecdot": lambda xp, c: xp.vecdot(c(Z), c(Z[::-1]), axis=-2),
    "vecdot of ints": lambda xp, c: xp.vecdot(c(I), c(I)),
    "concat": lambda xp, c: xp.concat([c(X), c(Y)], axis=None),
    "unstack": lambda xp, c: xp.stack(xp.unstack(c(X), axis=1)[::-1]),
    "reshape": lambda xp, c: xp.reshape(c(X), (2, 6), copy=True),
    "count_nonzero": lambda xp, c: xp.astype(xp.count_nonzero(c(I > 1), keepdims=True), xp.int32),
    "searchsorted": lambda xp, c: xp.astype(xp.searchsorted(c(I), c(I), sorter=xp.argsort(c(I))), xp.int32),
    "sort": lambda xp, c: xp.sort(c(X), axis=0),
    "argsort": lambda xp, c: xp.astype(xp.argsort(c(I), stable=True), xp.int32),
    "unique values": lambda xp, c: xp.sort(xp.unique_values(c(I))),
    "unique": lambda xp, c: xp.concat([xp.astype(part, xp.int32) for part in xp.unique_all(c(I))]),
    "unique inverse": lambda xp, c: xp.astype(xp.unique_inverse(c(np.tile(I, (2, 1)))).inverse_indices, xp.int32),
    "cumulative_sum": lambda xp, c: xp.cumulative_sum(c(X), axis=1, include_initial=True),
    "cumulative_prod": lambda xp, c: xp.cumulative_prod(c(X[0]), include_initial=True),
    "sum": lambda xp, c: xp.sum(c(I), dtype=xp.float32, keepdims=True),
    "var": lambda xp, c: xp.var(c(X), axis=(0, 1), correction=1.5),
    "std": lambda xp, c: xp.std(c(X), axis=0, correction=1, keepdims=True),
    "diff": lambda xp, c: xp.diff(c(X), axis=0, n=2, prepend=c(Y), append=c(Y)),
    "linspace": lambda xp, c: xp.linspace(0, 1, 4, endpoint=False, dtype=xp.float32),
    "eye": lambda xp, c: xp.eye(2, 3, k=1, dtype=xp.int8),
    "cross": lambda xp, c: xp.linalg.cross(c(X), c(Y), axis=0),
    "diagonal": lambda xp, c: xp.linalg.diagonal(c(A), offset=1),
    "eigh": lambda xp, c: xp.linalg.eigh(c(A + A.transpose(0, 2, 1))).eigenvalues,
    "matrix_norm": lambda xp, c: xp.linalg.matrix_norm(c(A), ord="nuc", keepdims=True),
    "matrix_rank": lambda xp, c: xp.astype(xp.linalg.matrix_rank(c(A), rtol=c(np.float32([0.9, 1e-3]))), xp.int32),
    "pinv": lambda xp, c: xp.linalg.pinv(c(A), rtol=c(np.float32([0.9, 1e-3]))),
    "solve a vector": lambda xp, c: xp.linalg.solve(c(A), c(X[:, 0])),
    "solve matrices": lambda xp, c: xp.linalg.solve(c(A[:, :2, :2]), c(X[:2, :2])),
    "isin": lambda xp, c: xp.isin(c(I), c(I[:2]), invert=True),
    "broadcast_shapes": lambda xp, c: c(np.zeros(xp.broadcast_shapes((2, 1), (3,)), np.float32)),
    "eig": lambda xp, c: xp.sort(xp.real(xp.linalg.eig(c(A + A.transpose(0, 2, 1)))[0])),
    "eigvals": lambda xp, c: xp.sort(xp.real(xp.linalg.eigvals(c(A + A.transpose(0, 2, 1))))),
    "slogdet": lambda xp, c: xp.linalg.slogdet(c(A)).logabsdet,
    "svd": lambda xp, c: xp.linalg.svd(c(A), full_matrices=False).S,
    "qr": lambda xp, c: xp.abs(xp.linalg.qr(c(A)).R),
    "trace": lambda xp, c: xp.linalg.trace(c(A), offset=-1),
    "vector_norm": lambda xp, c: xp.linalg.vector_norm(c(A), axis=(0, 2), ord=3, keepdims=True),
    "vector_norm of all": lambda xp, c: xp.linalg.vector_norm(c(Z)),
    "fft": lambda xp, c: xp.fft.fft(c(Z), n=5, axis=0, norm="ortho"),
    "ifft": lambda xp, c: xp.fft.ifft(c(Z), n=3),
    "fftn": lambda xp, c: xp.fft.fftn(c(Z), s=(2, 5), axes=(0, 1)),
    "ifftn": lambda xp, c: xp.fft.ifftn(c(Z), norm="forward"),
    "rfft": lambda xp, c: xp.fft.rfft(c(X), n=6),
    "irfft": lambda xp, c: xp.fft.irfft(c(Z), n=5, norm="ortho"),
    "rfftn": lambda xp, c: xp.fft.rfftn(c(X), axes=(1, 0)),
    "irfftn": lambda xp, c: xp.fft.irfftn(c(Z)),
    "hfft": lambda xp, c: xp.fft.hfft(c(Z), n=7, norm="forward"),
    "ihfft": lambda xp, c: xp.fft.ihfft(c(X)),
    "fftfreq": lambda xp, c: xp.astype(xp.fft.fftfreq(5, d=0.5), xp.float32),
    "rfftfreq": lambda xp, c: xp.astype(xp.fft.rfftfreq(6), xp.float32),
    "fftshift": lambda xp, c: xp.fft.fftshift(c(X), axes=1),
    "ifftshift": lambda xp, c: xp.fft.ifftshift(c(X)),
}


# the others are held by the suite of the standard too, see `nox -s full -- --part array-api`
QUICK = (
    "solve a vector",
    "solve matrices",
    "isin",
    "eig",
    "clip",
    "copysign",
    "vecdot of ints",
    "concat",
    "unique",
    "cumulative_sum",
    "std",
    "pinv",
    "irfft",
)


@pytest.mark.parametrize("function", [pytest.param(name, marks=[] if name in QUICK else FULL) for name in VALUES])
@pytest.mark.filterwarnings("ignore::multiop.errors.PrecisionWarning")
def test_values_are_those_of_numpys_namespace(backend, function):
    found = multiop.op_convert_to_numpy(VALUES[function](xp, xp.asarray))
    expected = VALUES[function](np, np.asarray)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.slow_on(multiop_backend="jax")
def test_each_nan_is_distinct(backend):
    values, indices, inverse, counts = map(multiop.op_convert_to_numpy, xp.unique_all(xp.asarray(N)))
    np.testing.assert_array_equal(values, [1, np.nan, np.nan])
    assert indices.tolist() == [1, 0, 2] and inverse.tolist() == [1, 0, 2, 0] and counts.tolist() == [2, 1, 1]
    z = xp.unique_counts(xp.asarray(np.complex64([1j, 1, 1j])))
    assert multiop.op_convert_to_numpy(z.values).tolist() == [1j, 1]
    assert multiop.op_convert_to_numpy(z.counts).tolist() == [2, 1]
    assert xp.unique_values(xp.zeros(0)).shape == (0,)


SUM = X.sum(dtype=np.float64)
GRADIENTS = {  # a function of x, and its derivative
    "clip": (lambda x: xp.sum(xp.clip(x, -0.5, 0.5)), (np.abs(X) < 0.5) * 1.0),
    "copysign": (lambda x: xp.sum(xp.copysign(x, xp.asarray(Y))), np.sign(X) * np.sign(Y)),
    "var": (lambda x: xp.var(x, correction=1), 2 * (X - SUM / 12) / 11),
    "std": (lambda x: xp.std(x, correction=1), (X - SUM / 12) / 11 / X.std(ddof=1)),
    "vector_norm": (lambda x: xp.linalg.vector_norm(x, axis=(0, 1)), X / np.sqrt(np.sum(X**2))),
    "fft": (lambda x: xp.sum(xp.fft.irfft(xp.fft.rfft(x)) ** 2), 2 * X),
    "hfft": (lambda x: xp.sum(xp.abs(xp.fft.fftn(x, norm="ortho")) ** 2), 2 * X),
    "diff": (lambda x: xp.sum(xp.diff(x, prepend=xp.zeros((3, 1)))), np.eye(4)[[3] * 3]),
    "trace": (lambda x: xp.linalg.trace(x, offset=1), np.eye(3, 4, 1)),
    "vecdot": (lambda x: xp.sum(xp.vecdot(x, x)), 2 * X),
    "astype": (lambda x: xp.sum(xp.astype(x, xp.float32)), np.ones_like(X)),
    "sort": (lambda x: xp.sort(xp.reshape(x, (-1,)), descending=True)[0], (X.max() == X) * 1.0),
    "unique_values": (lambda x: xp.sum(xp.unique_values(x) ** 2), 2 * X),
    "cumulative_sum": (
        lambda x: xp.sum(xp.cumulative_sum(x, axis=1, include_initial=True)),
        np.tile([4.0, 3.0, 2.0, 1.0], (3, 1)),
    ),
}


@pytest.mark.parametrize(
    "function", [pytest.param(name, marks=[] if name in ("copysign", "std", "fft") else FULL) for name in GRADIENTS]
)
def test_gradients_flow(backend, function):
    fun, expected = GRADIENTS[function]
    found = multiop.op_convert_to_numpy(multiop.grad(fun)(xp.asarray(X)))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_copies_are_made_where_they_are_asked_for(backend):
    x = xp.asarray([1.0, 2.0])
    assert xp.asarray(x) is x and xp.asarray(x, copy=False) is x and xp.asarray(x, dtype=xp.float32) is x
    assert xp.asarray(x, copy=True) is not x and xp.astype(x, xp.float32) is not x
    for dtype in (xp.int32, None):
        with pytest.raises(errors.ArgumentError, match="copy"):
            xp.asarray(x if dtype else [1.0], dtype=dtype, copy=False)
    with pytest.raises(errors.ArgumentError, match="copy=False"):
        xp.reshape(x, (2, 1), copy=False)
    with pytest.raises(errors.ArgumentError, match="axis"):
        xp.cumulative_sum(xp.zeros((2, 2)))
    with pytest.raises(errors.ArgumentError, match="norm"):
        xp.fft.fft(x, norm="none")


class Wrapped:
    """An array of a library that nobody knows."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **kwargs):
        return self.x.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def arrays_of(library, x):
    """Return `x`, an array of NumPy, as one of a library."""
    if library == "numpy":
        return x
    if library == "unknown":
        return Wrapped(x)
    if library not in multiop.available_backends():
        pytest.skip(f"needs {library}")
    with multiop.use_backend(library):
        return multiop.op_convert_to_tensor(x, x.dtype.name)


def array_of_dtype(dtype):
    return (np.arange(6).reshape(2, 3) % 4).astype(getattr(ml_dtypes, dtype, dtype))


IN_32_BITS = [name for name in DTYPES if not name.endswith("64") and name != "complex128"] + ["complex64"]
LIBRARIES = ("numpy", "torch", "jax", "tensorflow", "unknown")


@pytest.mark.parametrize("library", LIBRARIES)
def test_dlpack_comes_in_from_each_library(backend, library):
    for dtype in (*IN_32_BITS, "float16", "bfloat16", "float8_e5m2"):
        if library == "unknown" and dtype in ("bfloat16", "float8_e5m2"):
            continue  # NumPy does not hand these out
        for x in (array_of_dtype(dtype), array_of_dtype(dtype)[0, 0, ...], array_of_dtype(dtype)[:0]):
            for options in ({}, {"copy": True}, {"device": "cpu"}, {"copy": True, "device": "cpu"}):
                y = xp.from_dlpack(arrays_of(library, x), **options)
                found = multiop.op_convert_to_numpy(y)
                assert multiop.op_is_tensor(y) and found.dtype == x.dtype and found.shape == x.shape
                np.testing.assert_array_equal(found.astype(np.complex128), x.astype(np.complex128))


X3 = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
LAID_OUT = {
    "backwards": X3[::-1, :, ::-2],  # at which torch.from_dlpack ends the process
    "turned": X3.transpose(2, 0, 1),
    "strided": X3[:, ::2],
    "broadcast": np.broadcast_to(X3[0], (5, 3, 4)),
    "read-only": np.frombuffer(X3.tobytes(), np.float32),
    "of the other byte order": X3.astype(">f4"),
    "not aligned": np.frombuffer(bytearray(b"x" + X3.tobytes()), np.float32, offset=1),
    "a field": np.array([(1.0, 2), (3.0, 4)], [("a", "f4"), ("b", "i2")])["a"],
}


@pytest.mark.parametrize("layout", LAID_OUT)
def test_dlpack_takes_any_layout_of_numpy(backend, layout):
    x = LAID_OUT[layout]
    for copy in (None, True):
        np.testing.assert_array_equal(multiop.op_convert_to_numpy(xp.from_dlpack(x, copy=copy)), x)
    with contextlib.suppress(errors.ArgumentError):
        np.testing.assert_array_equal(multiop.op_convert_to_numpy(xp.from_dlpack(x, copy=False)), x)


def test_dlpack_takes_the_lazy_tensors_of_pytorch(backend):
    torch = pytest.importorskip("torch")
    z = torch.tensor([1.0 + 2.0j, 3.0j])
    cases = {"conjugate": z.conj(), "negative": z.conj().imag, "turned": torch.ones(2, 3).T[::2], "sliced": z[::2]}
    cases["with a gradient"] = torch.nn.Parameter(torch.ones(2))
    for name, x in cases.items():
        expected = x.detach().resolve_conj().resolve_neg().numpy()
        found = multiop.op_convert_to_numpy(xp.from_dlpack(x))
        np.testing.assert_array_equal(found, expected, err_msg=name)


def _pointer(x):
    return np.from_dlpack(x).ctypes.data


def test_what_is_shared_through_dlpack_is_written_on_both_sides_or_on_none(backend):
    for library in LIBRARIES[1:4]:
        x = arrays_of(library, np.zeros(64, np.float32))
        if library == backend:
            assert xp.from_dlpack(x) is x
        elif backend == "numpy":
            y = xp.from_dlpack(x)
            assert np.shares_memory(y, np.from_dlpack(x)) and y.flags.writeable == (library == "torch")
        elif {library, backend} == {"jax", "tensorflow"}:  # neither side can write
            for copy in (None, False):
                assert _pointer(xp.from_dlpack(x, copy=copy)) == _pointer(x)
            assert _pointer(xp.from_dlpack(x, copy=True)) != _pointer(x)
        elif library != "torch":
            with pytest.raises(errors.ArgumentError, match="copy=False"):
                xp.from_dlpack(x, copy=False)
    x = np.zeros(64, np.float32)
    for copy, is_shared in {True: False, None: backend in ("numpy", "torch")}.items():
        x[0] = 0
        y = xp.from_dlpack(x, copy=copy)
        x[0] = 1
        assert (multiop.op_convert_to_numpy(y)[0] == 1) == is_shared
    memory = np.zeros(128, np.float32)
    start = -memory.ctypes.data % 64 // 4
    x = memory[start : start + 64]  # aligned, as each backend needs it
    y = xp.from_dlpack(x, copy=False)
    x[0] = 2
    assert multiop.op_convert_to_numpy(y)[0] == 2


@pytest.mark.parametrize("k", [-(2**70), 2**64, 5])
def test_a_diagonal_far_outside_of_a_matrix_is_none_of_its_own(backend, k):
    np.testing.assert_array_equal(multiop.op_convert_to_numpy(xp.eye(2, 3, k=k)), np.zeros((2, 3)))


def test_tensors_of_tensorflow_have_the_namespace_where_it_is_asked_for():
    pytest.importorskip("tensorflow")
    code = "import multiop, tensorflow as tf; multiop.enable_tensorflow_numpy(); from multiop import array_api"
    code += "; print(tf.constant(1.0).__array_namespace__(api_version='2025.12') is array_api)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


def test_what_dlpack_cannot_take_is_said(backend):
    for x in ([1.0], 1.0, None, "x"):
        with pytest.raises(errors.ArgumentTypeError, match="__dlpack__"):
            xp.from_dlpack(x)


@pytest.mark.once
def test_it_is_imported_on_demand(backend):
    program = "import sys, multiop\nassert 'multiop.array_api' not in sys.modules\nmultiop.array_api.pi"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


EXTRA = {  # array-api-extra's functions, and what NumPy says
    "cov": (lambda xpx, c, **k: xpx.cov(c(X), **k), np.cov(X)),
    "kron": (lambda xpx, c, **k: xpx.kron(c(X), c(Y), **k), np.kron(X, Y)),
    "create_diagonal": (lambda xpx, c, **k: xpx.create_diagonal(c(X[0]), offset=1, **k), np.diag(X[0], 1)),
    "expand_dims": (lambda xpx, c, **k: xpx.expand_dims(c(X), axis=(0, 3), **k), X[None, :, :, None]),
    "atleast_nd": (lambda xpx, c, **k: xpx.atleast_nd(c(X), ndim=3, **k), X[None]),
    "sinc": (lambda xpx, c, **k: xpx.sinc(c(X), **k), np.sinc(X)),
    "pad": (lambda xpx, c, **k: xpx.pad(c(X), 2, **k), np.pad(X, 2)),
    "setdiff1d": (lambda xpx, c, **k: xpx.setdiff1d(c(I), c(I[:2]), **k), np.setdiff1d(I, I[:2])),
    "isclose": (lambda xpx, c, **k: xpx.isclose(c(X), c(X + 1e-9), **k), np.ones_like(X)),
    "one_hot": (lambda xpx, c, **k: xpx.one_hot(c(I), 4, **k), np.eye(4)[I]),
    "nunique": (lambda xpx, c, **k: xpx.nunique(c(I), **k), 3),
}


@FULL
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its functions that the next standard has
@pytest.mark.parametrize("function", EXTRA)
def test_array_api_extra_runs_on_it(backend, function):
    xpx = pytest.importorskip("array_api_extra")
    if backend == "jax" and function in ("cov", "nunique"):
        pytest.skip("cov asks for float64, and nunique for a parameter of JAX's own functions")
    if backend == "tensorflow" and function in ("create_diagonal", "pad", "isclose"):
        pytest.skip("they ask array-api-compat for the device of a tensor, and it knows none of TensorFlow's")
    call, expected = EXTRA[function]
    found = call(xpx, xp.asarray, xp=xp)
    np.testing.assert_allclose(multiop.op_convert_to_numpy(found), expected, rtol=1e-5, atol=1e-6)
