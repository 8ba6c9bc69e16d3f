"""Tests of the backend: each runs once per backend, and compares with einops on NumPy."""

import importlib.util
import itertools
import runpy
import types
from pathlib import Path

import numpy as np
import pytest

from multiop import ops
from multiop.testing import check_op, normal

einops = pytest.importorskip("einops")
spec = importlib.util.spec_from_file_location("einops_multiop", Path(__file__).parent / "einops_multiop.py")
einops_multiop = importlib.util.module_from_spec(spec)
spec.loader.exec_module(einops_multiop)
make_patch = runpy.run_path(str(Path(__file__).parent / "make_patch.py"))

X = np.random.default_rng(0).normal(size=(2, 3, 4, 6)).astype(np.float32)

# (pattern, sizes) of each function
REARRANGE = [
    ("b c h w -> b (c h) w", {}),
    ("b c (h h2) (w w2) -> (h2 w2 b) c h w", {"h2": 2, "w2": 3}),
    ("... w -> w ...", {}),
    ("b c h w -> (b c h w)", {}),
    ("b c h (w 1) -> b 1 w (h c)", {}),
]
REPEAT = [
    ("b c h w -> b c (h 2) (w 3)", {}),
    ("b c h w -> b new c h w", {"new": 4}),
    ("... -> 2 ... 1", {}),
]
REDUCE = [("b c h w -> b c", {}), ("b c (h 2) (w 3) -> b h w c", {}), ("b c h w ->", {}), ("b ... -> b 1", {})]
EINSUM = ["a b c d, a b c d -> a d", "a b c d, a e c d -> b e", "a b c d, e b c d -> a e c"]


def random_pattern(rng):
    """Draw a pattern that splits, permutes and merges axes, and the sizes of the parts."""
    left, names, sizes = [], [], {}
    for axis, size in zip("abcd", X.shape, strict=True):
        part = rng.choice([n for n in range(1, size + 1) if size % n == 0])
        left.append(f"({axis} {axis}1)")
        names += [axis, f"{axis}1"]
        sizes[f"{axis}1"] = int(part)
    names = list(rng.permutation(names))
    cuts = [0, *sorted(rng.choice(np.arange(1, 8), 3, replace=False)), 8]
    right = [f"({' '.join(names[i:j])})" for i, j in itertools.pairwise(cuts)]
    return f"{' '.join(left)} -> {' '.join(right)}", sizes


def check(f, *arrays):
    """Compare `f` on tensors with `f` on NumPy arrays."""
    expected, found = f(*arrays), f(*map(ops.convert_to_tensor, arrays))
    assert ops.is_tensor(found)
    assert ops.dtype(found) == expected.dtype.name
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize(("pattern", "sizes"), REARRANGE)
def test_rearrange(multiop_backend, pattern, sizes):
    check(lambda x: einops.rearrange(x, pattern, **sizes), X)


def test_rearrange_by_drawn_patterns(multiop_backend):
    rng = np.random.default_rng(1)
    for _ in range(50):
        pattern, sizes = random_pattern(rng)
        found = einops.rearrange(ops.convert_to_tensor(X), pattern, **sizes)
        np.testing.assert_array_equal(ops.convert_to_numpy(found), einops.rearrange(X, pattern, **sizes), pattern)


@pytest.mark.parametrize(("pattern", "sizes"), REPEAT)
def test_repeat(multiop_backend, pattern, sizes):
    check(lambda x: einops.repeat(x, pattern, **sizes), X)


@pytest.mark.parametrize(("pattern", "sizes"), REDUCE)
@pytest.mark.parametrize("reduction", ["min", "max", "sum", "mean", "prod"])
def test_reduce(multiop_backend, pattern, sizes, reduction):
    check(lambda x: einops.reduce(x, pattern, reduction, **sizes), X)


@pytest.mark.parametrize("reduction", ["any", "all"])
def test_reduce_bools(multiop_backend, reduction):
    check(lambda x: einops.reduce(x, "b c h w -> c h", reduction), X > 0.5)


@pytest.mark.parametrize("pattern", EINSUM)
def test_einsum(multiop_backend, pattern):
    check(lambda x, y: einops.einsum(x, y, pattern), X, X[::-1].copy())


def test_pack_and_unpack(multiop_backend):
    parts = [ops.convert_to_tensor(X[:, 0]), ops.convert_to_tensor(X[:, 1, 0]), ops.convert_to_tensor(X)]
    packed, shapes = einops.pack(parts, "b * w")
    expected, expected_shapes = einops.pack([X[:, 0], X[:, 1, 0], X], "b * w")
    np.testing.assert_array_equal(ops.convert_to_numpy(packed), expected)
    assert list(map(tuple, shapes)) == list(map(tuple, expected_shapes))
    for part, again in zip(parts, einops.unpack(packed, shapes, "b * w"), strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(again), ops.convert_to_numpy(part))


def test_a_list_is_stacked(multiop_backend):
    tensors = [ops.convert_to_tensor(x) for x in X]
    found = einops.rearrange(tensors, "b c h w -> (b h) (c w)")
    np.testing.assert_array_equal(ops.convert_to_numpy(found), einops.rearrange(list(X), "b c h w -> (b h) (c w)"))


def test_means_of_integers_are_refused(multiop_backend):
    with pytest.raises(NotImplementedError, match="reduce_mean is not available"):
        einops.reduce(ops.convert_to_tensor([[1, 2]]), "a b -> a", "mean")


def attention(x, w):
    projected = einops.einsum(x, w, "b n d, d e -> b n e")
    q, k, v = ops.unstack(einops.rearrange(projected, "b n (three h e) -> three b h n e", three=3, h=2))
    weights = ops.softmax(einops.einsum(q, k, "b h n e, b h m e -> b h n m"))
    return einops.reduce(einops.einsum(weights, v, "b h n m, b h m e -> b h n e"), "b h n e -> b (h e)", "mean")


def test_compiled_mapped_and_differentiated(multiop_backend):
    """`check_op` compares values, derivatives, `vmap` and compiled code, here of what einops makes of an attention."""
    check_op(attention, normal(2, 3, 4), normal(4, 12), backends=[multiop_backend])


SOURCE = """
class AbstractBackend:
    def add_axes(self, x, n_axes, pos2len):
        repeats = [1] * n_axes
        for position, length in pos2len.items():
            x = self.add_axis(x, position)
            repeats[position] = length
        return self.tile(x, tuple(repeats))

class NumpyBackend(AbstractBackend):
    old = True

class JaxBackend(NumpyBackend):
    old = True

class CupyBackend(AbstractBackend):
    kept = True

class TorchBackend(AbstractBackend):
    old = True

class TensorflowBackend(AbstractBackend):
    old = True
"""


def test_the_patch_replaces_the_classes(multiop_backend):
    """What it makes computes as NumPy; the widths of integers are the framework's own."""
    source = make_patch["replace_classes"](SOURCE)
    assert "old" not in source
    assert "kept" in source
    module = types.ModuleType("einops._backends")
    vars(module)["__package__"] = "einops"
    exec(source, vars(module))
    backend = getattr(module, f"{multiop_backend.capitalize()}Backend")()
    x = backend.from_numpy(X)
    assert backend.is_appropriate_type(x)
    for operation in ("min", "max", "sum", "mean", "prod"):
        found = backend.to_numpy(backend.reduce(x, operation, (0, 2)))
        np.testing.assert_allclose(found, getattr(X, operation)((0, 2)), rtol=1e-5, atol=1e-6)
    repeated = backend.add_axes(x, 6, {1: 3, 5: 2})
    expected = np.tile(X[:, None, ..., None], (1, 3, 1, 1, 1, 2))
    np.testing.assert_array_equal(backend.to_numpy(repeated), expected)
    if multiop_backend in {"numpy", "torch"}:
        large = backend.from_numpy(np.full(4, 2**30, np.int32))
        assert int(backend.reduce(large, "sum", (0,))) == 2**32


def test_another_source_is_refused():
    with pytest.raises(ValueError, match="the source has no JaxBackend"):
        make_patch["replace_classes"](SOURCE.replace("JaxBackend", "XlaBackend"))
