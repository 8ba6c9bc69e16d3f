"""Functions for autoray, written once: `autoray.do` computes with multiop on every framework.

autoray has a table of names, translations and functions for each framework. Here the functions of `multiop.namespace`
take their place on PyTorch, JAX, TensorFlow and NumPy. Random numbers stay autoray's own: its generators have states.

    pytest examples/autoray_backend        its tests, on every backend that is installed

autoray's own tests run on it too: `autoray_tests.py` says how.
"""

from __future__ import annotations

import importlib
from typing import Any

import multiop

# names that autoray has and multiop has not, or has in other words
RENAMED = {"asarray": "convert_to_tensor", "concat": "concatenate", "to_numpy": "convert_to_numpy"}
IN_LINALG = (
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "expm",
    "inv",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
)
CREATED = ("array", "asarray", "empty", "eye", "full", "identity", "ones", "zeros")  # which take a device, too
OWN = (
    "shape",
    "size",
    "ndim",
    "dtype",
    "device",
    "to_device",
    "cast",
    "compile",
)  # of other meanings, or autoray's own


def functions(backend: str) -> dict[str, Any]:
    """Return what `autoray.do` calls on a backend, by name."""
    with multiop.use_backend(backend):
        ops = multiop.namespace(0.0)
    found = {name: function for name, function in vars(ops).items() if callable(function) and name not in OWN}
    found |= {name: found[other] for name, other in RENAMED.items()}
    found |= {name: _on_device(found[name], ops.to_device) for name in CREATED}
    found |= {f"linalg.{name}": found[name] for name in IN_LINALG}

    def svd(x: Any, full_matrices: bool = False) -> Any:
        return ops.svd(x, full_matrices)

    def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
        if trans:
            a, lower = ops.swapaxes(ops.conj(a) if trans in (2, "C") else a, -1, -2), not lower
        if unit_diagonal:
            a = ops.where(ops.eye(a.shape[-1], dtype="bool"), 1, a)
        return ops.solve_triangular(a, b, lower)

    def take(x: Any, indices: Any, axis: int | None = None) -> Any:
        return ops.take(x, ops.convert_to_tensor(indices), axis)

    def indices(dimensions: Any) -> Any:
        return ops.meshgrid(*map(ops.arange, dimensions), indexing="ij")

    def combine(re: Any, im: Any) -> Any:
        return ops.add(re, ops.multiply(im, 1j))

    found |= {"linalg.svd": svd, "scipy.linalg.solve_triangular": solve_triangular, "scipy.linalg.expm": ops.expm}
    return found | {"take": take, "indices": indices, "complex": combine}


def _on_device(function: Any, to_device: Any) -> Any:
    """Return a function that makes a tensor, also on a device that is named."""

    def create(*args: Any, device: Any = None, **options: Any) -> Any:
        x = function(*args, **options)
        return x if device is None else to_device(x, device)

    return create


def install(*backends: str) -> None:
    """Make autoray call multiop on the tensors of some backends, all by default."""
    autoray = importlib.import_module("autoray.autoray")  # which need not be installed to read this file
    backends = backends or tuple(multiop.available_backends())
    for backend in backends:
        for name, function in functions(backend).items():
            autoray.register_function(backend, name, function)

    def learn(x: Any) -> Any:  # the arrays that multiop differentiates on NumPy are of a class of their own
        autoray.register_backend(type(x), "numpy")
        return x

    if "numpy" in backends:
        with multiop.use_backend("numpy"):
            multiop.grad(learn)(0.0)
