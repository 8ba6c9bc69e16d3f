"""Tests of the backend: each runs once per backend, and compares with kymatio on NumPy's own."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import multiop
from multiop import ops

if importlib.util.find_spec("kymatio") is None:
    pytest.skip("needs kymatio", allow_module_level=True)
spec = importlib.util.spec_from_file_location("kymatio_multiop", Path(__file__).parent / "kymatio_multiop.py")
kymatio_multiop = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kymatio_multiop)
kymatio_multiop.install()
kymatio = importlib.import_module("kymatio")

TRANSFORMS = {
    "1-D": ("Scattering1D", {"J": 3, "shape": 64, "Q": 2}),
    "1-D, a dictionary": ("Scattering1D", {"J": 3, "shape": 64, "out_type": "dict"}),
    "1-D, not averaged": ("Scattering1D", {"J": 2, "shape": 64, "average": False, "out_type": "list"}),
    "2-D": ("Scattering2D", {"J": 2, "shape": (16, 12), "L": 3}),
    "3-D": ("HarmonicScattering3D", {"J": 1, "shape": (8, 8, 8), "L": 2}),
}


def entries(found):
    """Return what a transform returns as one array."""
    found = list(found.values()) if isinstance(found, dict) else found if isinstance(found, list) else [found]
    parts = [part["coef"] if isinstance(part, dict) else part for part in found]
    return np.concatenate([ops.convert_to_numpy(part).ravel() for part in parts])


def own_backend(name):
    """Return kymatio's own backend on NumPy, as it was before."""
    dims = next(digit for digit in name if digit.isdigit())
    module = importlib.import_module(f"kymatio.scattering{dims}d.backend.numpy_backend")
    return getattr(module, f"NumpyBackend{dims}D")


@pytest.mark.parametrize(("name", "options"), TRANSFORMS.values(), ids=TRANSFORMS)
def test_coefficients_are_those_of_numpy(multiop_backend, name, options):
    shape = options["shape"] if isinstance(options["shape"], tuple) else (options["shape"],)
    x = np.random.default_rng(0).normal(size=(2, *shape)).astype(np.float32)
    ours = getattr(kymatio, name)(frontend=multiop_backend, **options)
    expected = getattr(kymatio, name)(frontend="numpy", backend=own_backend(name), **options)
    assert not isinstance(ours.backend, type)
    with multiop.use_backend("numpy"):
        right = entries(expected(x))
    np.testing.assert_allclose(entries(ours(ops.convert_to_tensor(x))), right, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["1-D", "2-D", "3-D"])
def test_gradients_are_those_of_differences(multiop_backend, name):
    name, options = TRANSFORMS[name]
    shape = options["shape"] if isinstance(options["shape"], tuple) else (options["shape"],)
    x, v = np.random.default_rng(1).normal(size=(2, *shape))
    ours = getattr(kymatio, name)(frontend=multiop_backend, **options)
    own = getattr(kymatio, name)(frontend="numpy", backend=own_backend(name), **options)
    slope = multiop.grad(lambda x: ops.sum(ops.square(ours(x))))(ops.convert_to_tensor(x.astype(np.float32)))
    ahead, behind = (np.sum(own(x + h * v).astype(np.float64) ** 2) for h in (1e-3, -1e-3))
    np.testing.assert_allclose(np.vdot(ops.convert_to_numpy(slope), v), (ahead - behind) / 2e-3, rtol=2e-3)


def test_a_silent_signal_has_a_gradient_of_zero(multiop_backend):
    ours = kymatio.HarmonicScattering3D(frontend=multiop_backend, J=1, shape=(8, 8, 8), L=1, integral_powers=(1.0, 2.0))
    slope = multiop.grad(lambda x: ops.sum(ours(x)))(ops.zeros((8, 8, 8)))
    np.testing.assert_array_equal(ops.convert_to_numpy(slope), 0)
