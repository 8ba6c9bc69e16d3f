"""Tests of the functions: each runs once per backend, and compares with autoray on NumPy's own."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from multiop import ops
from multiop.testing import check_op, normal

autoray = pytest.importorskip("autoray")
spec = importlib.util.spec_from_file_location("autoray_multiop", Path(__file__).parent / "autoray_multiop.py")
autoray_multiop = importlib.util.module_from_spec(spec)
spec.loader.exec_module(autoray_multiop)

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(2, 3, 3)).astype(np.float32), rng.normal(size=(3, 3)).astype(np.float32)

CALLS = [
    ("sum", (X,), {"axis": (0, 2), "keepdims": True}),
    ("clip", (X, -0.5, 0.5), {}),
    ("take", (X, [2, 0]), {"axis": 1}),
    ("pad", (Y, ((1, 0), (0, 2))), {}),
    ("einsum", ("abc,cd->abd", X, Y), {}),
    ("tensordot", (X, Y), {"axes": [(1,), (0,)]}),
    ("transpose", (X, (2, 0, 1)), {}),
    ("concatenate", ((X, X),), {"axis": 2}),
    ("split", (X, 3), {"axis": 1}),
    ("linalg.svd", (X,), {}),
    ("linalg.solve", (Y, Y), {}),
    ("linalg.norm", (Y,), {"ord": 1}),
    ("scipy.linalg.solve_triangular", (Y, Y), {"lower": True}),
]


@pytest.fixture(autouse=True)
def restored():
    """Leave autoray as it was."""
    before = dict(autoray.autoray._FUNCS)
    yield
    autoray.autoray._FUNCS.clear()
    autoray.autoray._FUNCS.update(before)


@pytest.mark.parametrize(("name", "args", "options"), CALLS, ids=[name for name, _, _ in CALLS])
def test_values_are_those_of_numpy(multiop_backend, name, args, options):
    expected = autoray.do(name, *args, **options, like="numpy")

    def tensor(x):
        return tuple(map(tensor, x)) if isinstance(x, tuple) else ops.convert_to_tensor(x) if hasattr(x, "ndim") else x

    autoray_multiop.install(multiop_backend)
    found = autoray.do(name, *map(tensor, args), **options, like=multiop_backend)
    if name == "linalg.svd":  # the vectors have any sign
        u, s, vh = (ops.convert_to_numpy(part) for part in found)
        np.testing.assert_allclose(s, expected[1], rtol=1e-5)
        found, expected = ops.convert_to_tensor(u * s[..., None, :] @ vh), X
    for y, right in zip(
        *(part if isinstance(part, (list, tuple)) else [part] for part in (found, expected)), strict=True
    ):
        assert ops.is_tensor(y)
        np.testing.assert_allclose(ops.convert_to_numpy(y), right, rtol=1e-4, atol=1e-5)


def test_what_is_made_is_like_what_is_named(multiop_backend):
    autoray_multiop.install(multiop_backend)
    made = autoray.do("zeros", (2, 3), like=ops.convert_to_tensor(X))
    assert ops.is_tensor(made)
    assert ops.shape(made) == (2, 3)
    assert autoray.infer_backend(made) == multiop_backend


def energy(x, y):
    z = autoray.do("einsum", "abc,cd->abd", x, y)
    return autoray.do("sum", autoray.do("tanh", z) * autoray.do("linalg.norm", y))


def test_compiled_mapped_and_differentiated(multiop_backend):
    """`check_op` compares values, derivatives, `vmap` and compiled code."""
    autoray_multiop.install(multiop_backend)
    check_op(energy, normal(2, 3, 3), normal(3, 3), backends=[multiop_backend])
