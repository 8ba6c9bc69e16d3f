"""A backend for kymatio, written once: its scattering transforms in one, two and three dimensions on every framework.

kymatio has a module for each number of dimensions and each of PyTorch, JAX, TensorFlow and NumPy. A class that computes
with complex tensors takes their place. On PyTorch, kymatio's transforms keep real and imaginary parts in a last
dimension of size 2, and real numbers in one of size 1; a subclass views these as complex tensors.

    pytest examples/kymatio_backend        its tests, on every backend that is installed

kymatio's own tests run on it too: `kymatio_tests.py` says how.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import scipy.special

import multiop

COMPLEX = {"float32": "complex64", "float64": "complex128"}
REAL = {"complex64": "float32", "complex128": "float64"}


@functools.cache
def dtype_name(dtype: Any) -> str:
    """Return the name of a framework's dtype; NumPy takes microseconds to tell it."""
    return str(getattr(dtype, "name", dtype)).removeprefix("torch.")


class Backend:
    """What kymatio needs of a framework."""

    def __init__(self, name: str, dims: int) -> None:
        """Take a framework's name, by which kymatio knows a backend, and the number of a signal's dimensions."""
        with multiop.use_backend(name):
            self.ops = ops = multiop.namespace(0.0)
        self.name, self.dims = name, dims
        axes = tuple(range(-dims, 0))
        several = functools.partial(ops.fftn, axes=axes), functools.partial(ops.ifftn, axes=axes)
        self._fft, self._ifft = {1: (ops.fft, ops.ifft), 2: (ops.fft2, ops.ifft2)}.get(dims, several)

    def input_checks(self, x: Any) -> None:
        """Raise an error where there is no input."""
        if x is None:
            raise TypeError("The input should be not empty.")

    def to_complex(self, x: Any) -> Any:
        """Return complex numbers of kymatio's as a complex tensor."""
        if dtype_name(x.dtype) not in REAL:
            raise TypeError("The input should be complex.")
        return x

    def to_real(self, x: Any) -> Any:
        """Return real numbers of kymatio's as a real tensor."""
        if dtype_name(x.dtype) not in COMPLEX:
            raise TypeError("The input should be real.")
        return x

    def of_complex(self, x: Any) -> Any:
        """Return a complex tensor as kymatio has it."""
        return x

    def of_real(self, x: Any) -> Any:
        """Return a real tensor as kymatio has it."""
        return x

    def rfft(self, x: Any) -> Any:
        """Transform real numbers."""
        x = self.to_real(x)
        return self.of_complex(self._fft(self.ops.cast(x, self.complex_dtype(x))))

    def complex_dtype(self, x: Any) -> str:
        """Return the dtype of the transform of real numbers: on TensorFlow, kymatio has one."""
        return "complex64" if self.name == "tensorflow" else COMPLEX[dtype_name(x.dtype)]

    def ifft(self, x: Any) -> Any:
        """Transform complex numbers back."""
        return self.of_complex(self._ifft(self.to_complex(x)))

    def irfft(self, x: Any) -> Any:
        """Transform back to real numbers."""
        return self.of_real(self.ops.real(self._ifft(self.to_complex(x))))

    def cdgmm(self, A: Any, B: Any) -> Any:
        """Multiply a complex signal by a filter."""
        signal, weights = self.factors(A, B)
        if tuple(signal.shape[-len(weights.shape) :]) != tuple(weights.shape):
            raise RuntimeError("The inputs are not compatible for multiplication.")
        return self.of_complex(self.ops.multiply(signal, weights))

    def cdgmm3d(self, A: Any, B: Any) -> Any:
        """Multiply a complex signal by a filter, in three dimensions."""
        return self.cdgmm(A, B)

    def factors(self, A: Any, B: Any) -> tuple[Any, Any]:
        """Return a signal and a filter, which is one of NumPy's, as tensors of one precision."""
        dtype, given = dtype_name(A.dtype), dtype_name(B.dtype)
        if dtype not in REAL:
            raise TypeError("The first input must be complex.")
        if given not in COMPLEX | REAL:
            raise TypeError("The second input must be complex or real.")
        is_done = self.ops.is_tensor(B)
        return A, B if is_done else self.ops.convert_to_tensor(B, dtype if given in REAL else REAL[dtype])

    def modulus(self, x: Any) -> Any:
        """Return the sizes of complex numbers."""
        return self.of_real(self.ops.abs(self.to_complex(x)))

    def modulus_rotation(self, x: Any, module: Any = None) -> Any:
        """Return the root of the sum of the squares of complex numbers and of `module`."""
        size = self.modulus(x)
        return size if module is None else self.ops.hypot(module, size)

    def compute_integrals(self, x: Any, powers: Sequence[float]) -> Any:
        """Return the sums of powers of each signal."""
        flat = self.ops.reshape(x, (self.ops.shape(x)[0], -1))
        sums = [self.ops.sum(self.ops.power(flat, float(power)), axis=1) for power in powers]
        return self.ops.cast(self.ops.stack(sums, -1), "float32")

    def subsample_fourier(self, x: Any, k: int) -> Any:
        """Return the transform of each `k`-th entry of a signal: the mean of `k` parts of its own in each dimension."""
        x = self.to_complex(x)
        shape = self.ops.shape(x)
        parts = [n for size in shape[-self.dims :] for n in (k, size // k)]
        x = self.ops.reshape(x, (*shape[: -self.dims], *parts))
        return self.of_complex(self.ops.mean(x, tuple(range(-2 * self.dims, 0, 2))))

    def pad(self, x: Any, pad_left: int, pad_right: int) -> Any:
        """Mirror a signal at its ends."""
        if max(pad_left, pad_right) >= x.shape[-1]:
            raise ValueError("Indefinite padding size (larger than tensor).")
        return self._mirror(x, [(pad_left, pad_right)])

    def Pad(self, pad_size: Sequence[int], input_size: Sequence[int]) -> Callable[[Any], Any]:  # noqa: N802
        """Return a function that mirrors an image at its edges."""
        top, bottom, left, right = pad_size
        return functools.partial(self._mirror, widths=[(top, bottom), (left, right)])

    def _mirror(self, x: Any, widths: list[tuple[int, int]]) -> Any:
        outer = [(0, 0)] * (len(x.shape) - len(widths))
        return self.of_real(self.ops.pad(x, outer + widths, "reflect"))

    def unpad(self, x: Any, start: int = 1, stop: int = -1) -> Any:
        """Cut a signal from `start` to `stop`, an image by an entry at each edge."""
        return x[(..., *[slice(start, stop)] * self.dims)]

    def concatenate(self, arrays: Sequence[Any], L: int = 0) -> Any:
        """Join coefficients along a new dimension; in three dimensions, along one for scales and one for degrees."""
        if self.dims < 3:
            return self.ops.stack(arrays, -1 - self.dims)
        joined = self.ops.stack(arrays, 1)
        batch, count, *rest = self.ops.shape(joined)
        return self.ops.reshape(joined, (batch, count // (L + 1), L + 1, *rest))


class BackendOfPairs(Backend):
    """The backend with parts in a last dimension, and the errors that kymatio's transforms on PyTorch have."""

    def input_checks(self, x: Any) -> None:
        """Raise an error where there is no input, or one that is not contiguous."""
        super().input_checks(x)
        if not x.is_contiguous():
            raise RuntimeError("Tensors must be contiguous.")

    def to_complex(self, x: Any) -> Any:
        """View pairs as a complex tensor."""
        if x.shape[-1] != 2:
            raise TypeError("The input should be complex (i.e. last dimension is 2).")
        self.input_checks(x)
        return self.ops.view_as_complex(x)

    def to_real(self, x: Any) -> Any:
        """Drop the last dimension."""
        self.input_checks(x)
        if x.shape[-1] != 1:
            raise TypeError("The input should be real.")
        return x[..., 0]

    def complex_dtype(self, x: Any) -> str:
        """Return the dtype of the transform of real numbers."""
        return COMPLEX[dtype_name(x.dtype)]

    def of_complex(self, x: Any) -> Any:
        """View a complex tensor as pairs."""
        return self.ops.view_as_real(x)

    def of_real(self, x: Any) -> Any:
        """Add a last dimension."""
        return x[..., None]

    def factors(self, A: Any, B: Any) -> tuple[Any, Any]:
        """Return a signal and a filter."""
        signal, weights = self.to_complex(A), self.to_real(B) if B.shape[-1] == 1 else self.to_complex(B)
        if A.dtype is not B.dtype:
            raise TypeError("Input and filter must be of the same dtype.")
        return signal, weights

    def unpad(self, x: Any, start: int = 1, stop: int = -1) -> Any:
        """Cut a signal, without its last dimension."""
        return super().unpad(x[..., 0], start, stop)


def install(*names: str) -> None:
    """Make kymatio's transforms on some frameworks compute with multiop, on all by default."""
    if not hasattr(scipy.special, "sph_harm"):  # kymatio 0.3.0 imports it; SciPy 1.17 has it under another name
        scipy.special.sph_harm = lambda m, n, theta, phi: scipy.special.sph_harm_y(n, m, phi, theta)
    for name in names or multiop.available_backends():
        for dims in (1, 2, 3):
            module: Any = importlib.import_module(f"kymatio.scattering{dims}d.backend.{name}_backend")
            module.backend = (BackendOfPairs if name == "torch" else Backend)(name, dims)
