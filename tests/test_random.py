"""Random numbers: published bits, the same numbers on every backend and in every mode, and the right distributions."""

from __future__ import annotations

import concurrent.futures
import copy
import functools
import hashlib
import itertools
import math
import pickle
import re
import sys
import threading
from unittest import mock

import mpmath
import numpy as np
import pytest
from scipy import special, stats

import multiop
from multiop import errors, random
from multiop._loading.registry import random_part
from multiop._values import philox
from multiop.random import _arithmetic, _binomial, _gamma, _host, _normal, _philox, _poisson

MASK = 0xFFFFFFFF
NAN, INF = float("nan"), float("inf")

# Random123, kat_vectors: philox 4x32 10: counter, key, words
PUBLISHED = {
    "zeros": ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    "ones": ((MASK,) * 4, (MASK,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    "pi": (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
}


def to_numpy(x):
    return np.asarray(multiop.op_convert_to_numpy(x))


@pytest.fixture
def x64():
    before = multiop.x64()
    multiop.enable_x64()
    yield
    multiop.enable_x64(before)


def words(seed, n, stream=0):
    """Return random words by NumPy, in 64 bits."""
    c = [
        np.arange(-(-n // 4), dtype=np.uint64),
        *[np.zeros(-(-n // 4), np.uint64) + np.uint64(k) for k in (0, stream, 0)],
    ]
    k = [np.uint64(seed & MASK), np.uint64(seed >> 32 & MASK)]
    low, half = np.uint64(MASK), np.uint64(32)
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(q >> half) ^ c[1] ^ k[0], q & low, (p >> half) ^ c[3] ^ k[1], p & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return np.stack(c, -1).reshape(-1)[:n]


MODES = {
    "eager": lambda f: f,
    "compiled": multiop.jit,
    "mapped": lambda f: lambda key: multiop.vmap(f)(multiop.op_stack([key, random.key(0), key]))[2],
}
modes = pytest.mark.parametrize("mode", MODES)


def slow_but(kept, names, *where):
    """Return `names` as parameters that are left to the full tier on some backends in a mode, all but `kept`."""
    marks = [pytest.mark.slow_on(**one) for one in where]
    return [pytest.param(name, marks=() if name in kept else marks) for name in names]


SLOW = (  # a second and more a program
    {"multiop_backend": "torch", "mode": "compiled"},
    {"multiop_backend": "tensorflow", "mode": "mapped"},
)


# left to the full tier on the frameworks, which draw the same numbers and compile for seconds
BY_NUMPY = [pytest.mark.slow_on(multiop_backend=name) for name in ("torch", "jax", "tensorflow")]


def by_numpy(test):
    return functools.reduce(lambda marked, mark: mark(marked), BY_NUMPY, test)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_words(backend, name):
    counter, key, expected = PUBLISHED[name]
    assert tuple(_philox.block_of_ints(counter, key)) == expected
    key = multiop.op_convert_to_tensor(np.array(key, np.uint32))
    for blocks in (_philox.block_words, _philox._block_words):  # the framework's own, if there is one, and ours
        assert tuple(to_numpy(blocks(key, 4, counter)).tolist()) == expected


@modes
def test_words_are_those_of_the_key_and_the_index_alone(backend, mode):
    for n in (0, 1, 5, 1030):
        found = MODES[mode](lambda key, n=n: multiop.op_cast(_philox.words(key, (n,), 3), "uint32"))(
            random.key(2**40 + 7)
        )
        assert to_numpy(found).tolist() == words(2**40 + 7, n, 3).tolist()
        if mode != "eager":
            break


SIZES = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


@modes
@pytest.mark.parametrize("dtype", slow_but(["float32"], SIZES, *SLOW))
def test_uniform_is_the_first_bits(backend, mode, dtype, request):
    if dtype == "float64":
        request.getfixturevalue("x64")
    found = to_numpy(MODES[mode](lambda key: random.uniform((70, 3), dtype=dtype, seed=key))(random.key(5)))
    bits = (words(5, 210).astype(object) << 32) | words(5, 210, 1).astype(object)
    expected = [float(int(w) >> (64 - SIZES[dtype])) * 2.0 ** -SIZES[dtype] for w in bits]
    assert found.dtype.name == dtype
    assert found.astype("float64").ravel().tolist() == expected


@modes
def test_uniform_between_bounds_is_rounded_twice(backend, mode):
    found = to_numpy(MODES[mode](lambda key: random.uniform((999,), -1.7, 3.3, seed=key))(random.key(5)))
    u = (words(5, 999) >> np.uint64(8)).astype("float32") * np.float32(2.0**-24)
    low, high = np.float32(-1.7), np.float32(3.3)
    assert found.tolist() == (u * (high - low) + low).tolist()


def test_uniform_never_gives_its_upper_bound(backend):
    above = float(np.nextafter(np.float32(1), np.float32(2)))
    for bounds in ((1.0, above), (np.array(1.0, "float32"), np.array(above, "float32"))):
        assert set(to_numpy(random.uniform((64,), *bounds, seed=1)).tolist()) == {1.0}


INTEGERS = {
    "die": ("int32", 1, 7),
    "many": ("int32", -1000, 10**6),
    "half": ("int32", -(2**31), 5),
    "whole": ("int32", -(2**31), 2**31),
    "unsigned": ("uint32", 0, 2**32 - 1),
    "bytes": ("int8", -128, 128),
    "long": ("int64", -(2**62) - 9, 2**62 + 2**61),
    "longer": ("uint64", 3, 2**64 - 1),
    "longest": ("int64", -(2**63), 2**63),
}


def expected_integers(dtype, low, high, n, seed):
    streams = [words(seed, n, k).astype(object) for k in range(4)]
    limbs = 1 if high - low <= 1024 else 4 if dtype in ("int64", "uint64") else 2
    digits = sum(int(2 ** (32 * (limbs - 1 - k))) * streams[k] for k in range(limbs))
    return [low + (int(d) * (high - low) >> 32 * limbs) for d in digits]


@modes
@pytest.mark.parametrize("case", slow_but(["many"], INTEGERS, *SLOW))
def test_integers_are_the_whole_part_of_a_product(backend, mode, case, request):
    dtype, low, high = INTEGERS[case]
    if dtype in ("int64", "uint64"):
        request.getfixturevalue("x64")
    found = to_numpy(MODES[mode](lambda key: random.randint((50,), low, high, dtype, seed=key))(random.key(9)))
    assert found.dtype.name == dtype
    assert found.tolist() == expected_integers(dtype, low, high, 50, 9)


@pytest.mark.parametrize(
    "case", [case for case in INTEGERS if "whole" not in case and case not in ("bytes", "longest")]
)
def test_integers_between_tensors_are_those_between_ints(backend, case, x64):
    dtype, low, high = INTEGERS[case]
    lows, highs = np.full((50,), low, dtype), np.array(high, dtype)
    assert to_numpy(random.randint((50,), lows, highs, dtype, seed=9)).tolist() == expected_integers(
        dtype, low, high, 50, 9
    )
    assert to_numpy(random.randint((50,), highs, highs, dtype, seed=9)).tolist() == [high] * 50


# the first eight bytes of the SHA-256 of 4096 numbers, which are those of every backend
DIGESTS = {
    "normal float16": "168970a9776b1ea8",
    "normal bfloat16": "b3c1a4137f53687e",
    "normal float32": "9dcb5097f05317e6",
    "normal float64": "68af9a5d05f3f8e8",
    "truncated float32": "9c3ca636d83c9ad8",
    "truncated float64": "1d45dcc0c7fc984e",
    "categorical": "d8f9635aed772c9d",
    "dropout": "d817cd8f0dd554eb",
    "shuffle": "e4f364d2e6c069c5",
    "shuffle_along_axis": "595c821350da774c",
    "gamma float16": "b780da61917b77ad",
    "gamma float32": "24b943519df3a051",
    "gamma float64": "a4273312ed8a7c6b",
    "gamma float32 of a number": "c6e08157ae3f03da",
    "gamma float64 of a number": "c9f907c18eba1685",
    "beta float32": "97fb0ae64bc21049",
    "beta float64": "4cec54a032f2fc58",
    "binomial float16": "fe7ea0e125a29e72",
    "binomial float32": "7b8890d9f8335190",
    "binomial float64": "01882432100465e6",
    "binomial float32 of numbers": "b2c9bc2327cd8587",
    "binomial float32 of small numbers": "4ee779cb5fbc1215",
    "multinomial float32": "d633c92d1b24f436",
    "poisson float16": "7b2326e3b35167da",
    "poisson float32": "97cc7962d55d5ca4",
    "poisson float64": "59a9140ec130e4d1",
    "exponential float32": "e78e0d5cbe0f8cfb",
    "exponential float64": "2f6e54a07425778e",
    "gumbel bfloat16": "863e1eaf179c7433",
    "gumbel float32": "18d66b581cd0a79a",
    "laplace float16": "512a4c602a798d82",
    "laplace float32": "87b0bd9cc89b1e41",
    "laplace float64": "363a08c06a6929fd",
    "normal complex64": "9ebdc16e14b34d83",
    "normal complex128": "e83804ff500ced27",
    "uniform complex64": "6513fc9713246e9d",
}


def digest(x):
    x = to_numpy(x)
    return hashlib.sha256(np.ascontiguousarray(x).view(np.uint8).tobytes()).hexdigest()[:16]


SHAPES = np.array([1e-3, 0.3, 1.0, 1.7, 20.0, 1e4, 0.9, 3.0], "float32")
TRIALS = np.array([5, 10, 1000, 40, 10**6, 0, 3000, 11], "float32")
CHANCES = np.array([0.3, 0.5, 0.002, 0.9, 0.7, 0.5, 0.1, 1.0], "float32")
MEANS = np.array([0.0, 0.3, 5.0, 9.99, 10.0, 10.1, 50.0, 1e6], "float32")
WEIGHTS = np.array([1.0, 2.0, 0.0, 3.0, 0.5, 3.5], "float32")
LOGITS = np.log(np.array([[1, 2, 3, 4], [7, 1, 1, 1]], "float32") / 10)
DRAWS = {
    "normal float16": lambda key: random.normal((4096,), dtype="float16", seed=key),
    "normal bfloat16": lambda key: random.normal((4096,), dtype="bfloat16", seed=key),
    "normal float32": lambda key: random.normal((4096,), seed=key),
    "normal float64": lambda key: random.normal((4096,), dtype="float64", seed=key),
    "truncated float32": lambda key: random.truncated_normal((4096,), seed=key),
    "truncated float64": lambda key: random.truncated_normal((4096,), dtype="float64", seed=key),
    **{
        f"{name} {dtype}": lambda key, name=name, dtype=dtype: getattr(random, name)((4096,), dtype=dtype, seed=key)
        for name, *of in (
            ("exponential", "float32", "float64"),
            ("gumbel", "bfloat16", "float32"),
            ("laplace", "float16", "float32", "float64"),
        )
        for dtype in of
    },
    "normal complex64": lambda key: random.normal((4096,), 1.0 + 2.0j, 3.0, "complex64", key),
    "normal complex128": lambda key: random.normal((4096,), 1.0, 2.0, "complex128", key),
    "uniform complex64": lambda key: random.uniform((4096,), -1.0, 2.0, "complex64", key),
    "categorical": lambda key: random.categorical(LOGITS, 512, seed=key),
    "dropout": lambda key: random.dropout(multiop.op_ones((64, 64)), 0.3, (64, 1), seed=key),
    "shuffle": lambda key: random.shuffle(multiop.op_arange(4096), seed=key),
    "shuffle_along_axis": lambda key: random.shuffle_along_axis(
        multiop.op_reshape(multiop.op_arange(4096), (8, 512)), 1, key
    ),
    **{
        f"gamma {dtype}": lambda key, dtype=dtype: random.gamma((512, 8), SHAPES, dtype, key)
        for dtype in ("float16", "float32", "float64")
    },
    # a compiler may see through parameters that are one number each
    "gamma float32 of a number": lambda key: random.gamma((512, 8), 0.4, seed=key),
    "gamma float64 of a number": lambda key: random.gamma((512, 8), 0.4, "float64", key),
    "binomial float32 of numbers": lambda key: random.binomial((512, 8), 1000, 0.3, seed=key),
    "binomial float32 of small numbers": lambda key: random.binomial((512, 8), 12, 0.3, seed=key),
    "multinomial float32": lambda key: random.multinomial((512,), 100, WEIGHTS, seed=key),
    **{
        f"poisson {dtype}": lambda key, dtype=dtype: random.poisson((512, 8), MEANS, dtype, key)
        for dtype in ("float16", "float32", "float64")
    },
    **{
        f"beta {dtype}": lambda key, dtype=dtype: random.beta((512, 8), SHAPES, 0.4, dtype, key)
        for dtype in ("float32", "float64")
    },
    **{
        f"binomial {dtype}": lambda key, dtype=dtype: random.binomial((512, 8), TRIALS, CHANCES, dtype, key)
        for dtype in ("float16", "float32", "float64")
    },
}


# programs that take long to compile
LONG = [
    name
    for name in DRAWS
    if re.match("gamma|beta|binomial|poisson|multinomial|exponential|gumbel|laplace|.*complex", name)
    and name not in ("gamma float32", "gumbel float32")
]


@modes
@pytest.mark.parametrize(
    "name",
    [
        *slow_but(["normal float32", "shuffle"], [name for name in DRAWS if name not in LONG], *SLOW),
        *[pytest.param(name, marks=BY_NUMPY) for name in LONG],
    ],
)
def test_draws_are_those_of_every_backend(backend, mode, name, request):
    if "float64" in name or "complex128" in name:
        request.getfixturevalue("x64")
    assert digest(MODES[mode](DRAWS[name])(random.key(2**33 + 11))) == DIGESTS[name]


def test_normals_are_quantiles(backend, x64):
    p = (words(4, 20000).astype("float64") + 0.5) / 2.0**32
    exact = special.ndtri(p)
    x = to_numpy(random.normal((20000,), seed=4)).astype("float64")
    assert np.max(np.abs(x - exact) / np.spacing(np.abs(exact).astype("float32"))) < 4
    x = to_numpy(random.normal((20000,), dtype="float64", seed=4))
    assert np.max(np.abs(special.ndtr(x) - p)) < 2.0**-32  # the same numbers, to more digits
    p = ((words(4, 2000).astype(object) << 32) + words(4, 2000, 1).astype(object)).astype("longdouble") + 0.5
    exact = special.ndtri((p / np.longdouble(2) ** 64).astype("float64"))
    is_lower = exact < -0.5  # where a float64 holds the share to digits enough
    x = to_numpy(random.normal((2000,), dtype="float64", seed=4))
    np.testing.assert_array_max_ulp(x[is_lower], exact[is_lower], 10)


def give_words(monkeypatch, w):
    """Let the next draws be made of these words, in tensors and on the host."""
    monkeypatch.setattr(_philox, "words", lambda key, shape, stream: multiop.op_cast(w, _philox.word()))
    monkeypatch.setattr(philox, "parts_on_host", lambda key, n, counter: [w])


QUANTILES = {  # of the distribution at p, whose complement is q
    "exponential": lambda p, q: np.where(p < 0.5, -np.log1p(-p), -np.log(q)),
    "gumbel": lambda p, q: -np.log(np.where(p < 0.5, -np.log1p(-p), -np.log(q))),
    "laplace": lambda p, q: np.where(p < 0.5, np.log(2 * p), -np.log(2 * q)),
}


@pytest.mark.parametrize("name", QUANTILES)
def test_logarithmic_draws_are_quantiles(backend, name, monkeypatch):
    ends = [0, 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]
    w = np.concatenate([ends, words(4, 2000).astype(np.int64)]).astype(np.uint32)
    give_words(monkeypatch, w)
    p, q = (w + 0.5) / 2.0**32, (2.0**32 - w - 0.5) / 2.0**32
    exact = QUANTILES[name](p, q)
    found = to_numpy(getattr(_normal, f"standard_{name}").__wrapped__(random.key(0), w.shape, "float32"))
    np.testing.assert_allclose(found, exact, rtol=6e-7, atol=3e-7 * (name == "gumbel"))
    assert found[0] != 0 and np.isfinite(found).all()
    for dtype, digits in (("float16", 2e-3), ("bfloat16", 1e-2)):
        x = getattr(random, name)(w.shape, dtype=dtype, seed=0)
        assert multiop.dtype_name(x) == dtype
        np.testing.assert_allclose(to_numpy(x).astype("float64"), exact, rtol=digits, atol=digits)


def test_complex_numbers_are_two_real_ones(backend):
    z, half = to_numpy(random.normal((999,), dtype="complex64", seed=4)), np.float32(0.5**0.5)
    assert z.dtype == "complex64" and z.real.tolist() == (to_numpy(random.normal((999,), seed=4)) * half).tolist()
    assert abs(np.mean(np.abs(z) ** 2) - 1) < 0.1 and abs(np.corrcoef(z.real, z.imag)[0, 1]) < 0.1
    u = to_numpy(random.uniform((999,), -1.0, 3.0, "complex64", 4))
    assert u.real.tolist() == to_numpy(random.uniform((999,), -1.0, 3.0, seed=4)).tolist()
    assert (u.imag >= -1).all() and (u.imag < 3).all() and abs(np.corrcoef(u.real, u.imag)[0, 1]) < 0.1
    moved = to_numpy(random.normal((999,), np.array(2 - 1j, "complex64"), 3.0, "complex64", 4))
    np.testing.assert_allclose(moved, z * 3 + (2 - 1j), rtol=1e-5, atol=1e-6)
    assert to_numpy(random.normal((0, 2), dtype="complex64", seed=4)).shape == (0, 2)

    def energy(mean, stddev):
        return multiop.op_sum(multiop.op_square(multiop.op_abs(random.normal((999,), mean, stddev, "complex64", 4))))

    mean, stddev = multiop.grad(energy, (0, 1))(multiop.op_array(np.complex64(2 - 1j)), multiop.op_array(3.0))
    np.testing.assert_allclose(to_numpy(mean), 2 * moved.sum(), rtol=1e-4)
    np.testing.assert_allclose(to_numpy(stddev), 2 * (moved.conj() * z).real.sum(), rtol=1e-4)


def test_a_negative_scale_in_a_tensor_gives_nan(backend):
    for draw in (random.exponential, random.gumbel, random.laplace):
        found = to_numpy(draw((3,), scale=np.array([-1.0, 0.0, 2.0], "float32"), seed=1))
        assert np.isnan(found).tolist() == [True, False, False] and found[1] == 0


def test_a_logarithm_keeps_its_digits_on_both_sides_of_a_quarter(backend):
    x = np.linspace(0.001, 0.499, 999).astype("float32")
    exact = np.log1p(-x.astype("float64"))
    found = to_numpy(_arithmetic.log_1_minus(multiop.op_convert_to_tensor(x)))
    np.testing.assert_array_max_ulp(found, exact.astype("float32"), 4)


def test_the_furthest_normals(backend, monkeypatch):
    w = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    give_words(monkeypatch, w)
    x = to_numpy(_normal.standard_normal.__wrapped__(random.key(0), (5,), "float32")).astype("float64")
    np.testing.assert_allclose(x, special.ndtri((w + 0.5) / 2.0**32), rtol=3e-7)


CONTINUOUS = {
    "uniform": (lambda n, seed: random.uniform((n,), -2.0, 3.0, seed=seed), stats.uniform(-2, 5)),
    "normal": (lambda n, seed: random.normal((n,), 1.0, 2.0, seed=seed), stats.norm(1, 2)),
    "truncated": (lambda n, seed: random.truncated_normal((n,), 1.0, 2.0, seed=seed), stats.truncnorm(-2, 2, 1, 2)),
    "exponential": (lambda n, seed: random.exponential((n,), 2.0, seed=seed), stats.expon(0, 2)),
    "gumbel": (lambda n, seed: random.gumbel((n,), 1.0, 2.0, seed=seed), stats.gumbel_r(1, 2)),
    "laplace": (lambda n, seed: random.laplace((n,), 1.0, 2.0, seed=seed), stats.laplace(1, 2)),
    **{
        f"gamma {a}": (lambda n, seed, a=a: random.gamma((n,), a, seed=seed), stats.gamma(a))
        for a in (0.2, 1.0, 1.3, 50.0, 1e4)
    },
    **{
        f"beta {a}, {b}": (lambda n, seed, a=a, b=b: random.beta((n,), a, b, seed=seed), stats.beta(a, b))
        for a, b in ((0.5, 0.5), (2.0, 7.0), (300.0, 400.0))
    },
}


@pytest.mark.once  # the numbers are the same on the others
@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution_and_moments(backend, name):
    draw, law = CONTINUOUS[name]
    x = to_numpy(draw(10**5, 123)).astype("float64")
    assert stats.kstest(x, law.cdf).pvalue > 1e-3
    mean, var, skew, kurtosis = law.stats("mvsk")
    n = len(x)
    assert abs(x.mean() - mean) < 4 * np.sqrt(var / n)
    assert abs(x.var() / var - 1) < 4 * np.sqrt((kurtosis + 2) / n)
    if kurtosis < 0.5:  # else the skewness of a sample spreads wider
        assert abs(stats.skew(x) - skew) < 4 * np.sqrt(6 / n)


@pytest.mark.once
def test_keys_are_independent(backend):
    keys = [random.key(1), random.key(2), *[random.split(1, 3)[i] for i in range(3)], random.fold_in(1, 0)]
    keys += [random.SeedGenerator(1).next(), random.fold_in(random.fold_in(1, 0), 0), random.fold_in(1, 1)]
    rows = np.stack([to_numpy(random.normal((20000,), seed=key)) for key in keys])
    correlations = np.corrcoef(rows) - np.eye(len(rows))
    assert np.abs(correlations).max() < 4.5 / np.sqrt(20000)
    lagged = np.corrcoef(rows[:, 1:], rows[:, :-1])[: len(rows), len(rows) :]
    assert np.abs(lagged).max() < 4.5 / np.sqrt(20000)
    assert len({tuple(to_numpy(key).tolist()) for key in keys}) == len(keys)


@pytest.mark.once
@pytest.mark.parametrize(("low", "high"), [(0, 10), (-3, 997), (0, 3000)])
def test_integers_are_uniform(backend, low, high):
    x = to_numpy(random.randint((10**5,), low, high, seed=3)) - low
    assert stats.chisquare(np.bincount(x, minlength=high - low)).pvalue > 1e-3


@pytest.mark.once
def test_categories_have_their_probabilities(backend):
    x = to_numpy(random.categorical(LOGITS, 50000, seed=3))
    for row, p in zip(x, np.exp(LOGITS), strict=True):
        assert (
            stats.chisquare(np.bincount(row, minlength=4), p.astype("float64") / p.sum(dtype="float64") * 50000).pvalue
            > 1e-3
        )


def deviation_from(law, x, bins):
    """Return the p-value of the chi-square test of whole numbers against a distribution."""
    edges = np.unique(law.ppf(np.linspace(0, 1, bins + 1)[1:-1]))  # of bins (lower, upper]
    expected = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]])) * len(x)
    edges, expected = (edges[:-1], [*expected[:-2], expected[-2:].sum()]) if expected[-1] == 0 else (edges, expected)
    return stats.chisquare(np.bincount(np.searchsorted(edges, x), minlength=len(expected)), expected).pvalue


@pytest.mark.once
@pytest.mark.parametrize(
    ("n", "p"), [(5, 0.3), (1000, 0.004), (18, 0.5), (21, 0.5), (40, 0.9), (1000, 0.3), (10**5, 1e-4), (10**5, 0.4)]
)
def test_successes_have_their_probabilities(backend, n, p):
    x = to_numpy(random.binomial((20000,), n, p, seed=4)).astype(int)
    assert deviation_from(stats.binom(n, p), x, 60) > 1e-3
    assert x.min() >= 0
    assert x.max() <= n


@pytest.mark.once
@pytest.mark.parametrize(
    ("n", "p"),
    [
        *[
            (10, 0.5),
            (19, 0.5),
            (20, 0.5),
            (22, 0.48),
            (100, 0.3),
            (1000, 0.5),
            (2 * 10**7, 0.5),
        ],  # n p from 5 to 10**7
        *[(5000, 1e-3), (9999, 1e-3), (11000, 1e-3), (30000, 1e-3), (10**6, 0.01), (10**5, 0.97)],
    ],
)
def test_a_million_successes_have_their_probabilities(backend, n, p):
    p = float(np.float32(p))
    x = to_numpy(random.binomial((10**6,), n, p, seed=8)).astype("int64")
    law = stats.binom(n, p)
    assert deviation_from(law, x, 1000) > 1e-3
    assert abs(x.mean() - law.mean()) < 4 * law.std() / 1000
    assert abs(x.var() / law.var() - 1) < 4 * np.sqrt(2 / 10**6)


@pytest.mark.once
def test_few_and_many_among_each_other_have_their_probabilities(backend):
    """An entry of few events, or trials, takes no candidate from one of many, which is drawn in another way."""
    is_many = np.arange(40000) % 40 == 0
    trials, means = (np.where(is_many, many, 3.0).astype("float32") for many in (1000.0, 500.0))
    for x, few, many in (
        (random.binomial(trials.shape, trials, 0.5, seed=3), stats.binom(3, 0.5), stats.binom(1000, 0.5)),
        (random.poisson(means.shape, means, seed=3), stats.poisson(3.0), stats.poisson(500.0)),
    ):
        x = to_numpy(x).astype(int)
        assert deviation_from(few, x[~is_many], 60) > 1e-3
        assert deviation_from(many, x[is_many], 60) > 1e-3
        assert abs(x[is_many].var() / many.var() - 1) < 0.2


@pytest.mark.once
@pytest.mark.parametrize("mean", [0.3, 4.0, 9.9, 10.0, 11.0, 40.0, 1000.0])
def test_events_have_their_probabilities(backend, mean):
    mean = float(np.float32(mean))
    x = to_numpy(random.poisson((20000,), mean, seed=4)).astype(int)
    assert deviation_from(stats.poisson(mean), x, 60) > 1e-3
    assert x.min() >= 0


@pytest.mark.once
@pytest.mark.parametrize("mean", [0.01, 1.0, 9.99, 10.0, 10.5, 13.0, 30.0, 300.0, 1e4, 1e6])
def test_a_million_events_have_their_probabilities(backend, mean):
    mean = float(np.float32(mean))
    x = to_numpy(random.poisson((10**6,), mean, seed=8)).astype("int64")
    assert deviation_from(stats.poisson(mean), x, 1000) > 1e-3
    assert abs(x.mean() - mean) < 4 * np.sqrt(mean) / 1000


@pytest.mark.once
def test_candidates_cover_the_probabilities_of_events(backend, x64):
    u = np.concatenate([np.linspace(0, 1, 20001)[1:-1], np.geomspace(1e-7, 0.1, 2000)])
    words = multiop.op_cast((u * 2**32).astype("int64"), _philox.word())
    for mean in (10.0, 10.3, 11.0, 13.0, 17.0, 30.0, 38.95, 100.0, 1e4, 1e6):
        *hat, mean_of_hat, height = _poisson._hat(multiop.op_convert_to_tensor(np.array([mean])))
        k, _, limit = _binomial.candidate(words, words, words, words, *hat)
        chance = to_numpy(_poisson.chance(k, mean_of_hat, height))
        assert np.max(chance * to_numpy(limit)) < 1
        exact = stats.poisson(mean).pmf(to_numpy(k)) / to_numpy(height)
        np.testing.assert_allclose(chance, exact, rtol=1e-8, atol=1e-300)
        left = 1 - 1 / float(to_numpy(height)[0])  # of the candidates that are refused
        assert all(left**done <= share for (_, share), done in zip(_poisson.STAGES, (0, 1, 5), strict=True))
        assert left ** sum(count for count, _ in _poisson.STAGES) < 1e-14


@by_numpy
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_classes_have_their_probabilities(backend, n):
    weights = np.arange(n, 0.0, -1.0, "float32") if n > 1 else [0.3]
    x = to_numpy(random.multinomial((5000,), 30, weights, seed=4))
    assert x.shape == (5000, n)
    assert np.all(x.sum(-1) == 30)
    assert np.all(x % 1 == 0)
    assert np.all(x >= 0)
    p = np.array(weights) / np.sum(weights)
    for k in range(n):
        assert n == 1 or deviation_from(stats.binom(30, p[k]), x[:, k].astype(int), 20) > 1e-3
    expected = 30 * (np.diag(p) - np.outer(p, p))
    np.testing.assert_allclose(np.atleast_2d(np.cov(x.T)), expected, atol=0.35)


@by_numpy
def test_impossible_events_and_classes_give_nan(backend):
    x = to_numpy(random.poisson((5,), np.array([-1.0, NAN, np.inf, 0.0, 20.0], "float32"), seed=1))
    assert np.isnan(x).tolist() == [True] * 3 + [False] * 2
    weights = np.array([[1, 2], [-1, 2], [0, 0], [NAN, 1], [np.inf, 1], [0, 1]], "float32")
    x = to_numpy(random.multinomial((6,), np.array([9, 9, 9, 9, 9, 2.5], "float32"), weights, seed=1))
    assert np.isnan(x).all(-1).tolist() == [False] + [True] * 5
    assert np.isnan(x).any(-1).tolist() == [False] + [True] * 5
    x = to_numpy(random.multinomial((2,), [4.0, 1000.0], [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], seed=1))
    assert x.tolist() == [[0.0, 4.0, 0.0], [1000.0, 0.0, 0.0]]


@pytest.mark.rotating
@pytest.mark.parametrize(("n", "p"), [(12, 0.3), (100, 0.3), (1000, 0.93)])
def test_parameters_that_are_numbers_draw_what_tensors_full_of_them_draw(backend, n, p):
    x = to_numpy(random.binomial((5000,), n, p, seed=3))
    y = to_numpy(random.binomial((5000,), np.full(5000, n, "float32"), np.full(5000, p, "float32"), seed=3))
    assert x.tolist() == y.tolist()
    assert to_numpy(random.binomial((7,), n, p, seed=3)).tolist() == x[:7].tolist()  # too few for a table


@by_numpy
def test_few_numbers_need_no_table(backend, monkeypatch):
    sizes = []
    monkeypatch.setattr(
        _binomial, "op_arange", lambda size, dtype: sizes.append(size) or multiop.op_arange(size, dtype=dtype)
    )
    random.binomial((300,), 1000, 0.3, seed=3)  # a table would have more entries
    assert not sizes
    random.binomial((3000,), 1000, 0.3, seed=3)
    assert len(sizes) == 1 and sizes[0] > 80


@pytest.mark.rotating
def test_trials_may_be_as_many_as_the_dtype_holds(backend, x64):
    for n, dtype in ((1e38, "float32"), (1e306, "float64")):
        x = to_numpy(random.binomial((9,), n, 0.5, dtype, seed=1))
        np.testing.assert_allclose(x, n / 2, rtol=1e-6)


# small means and large ones, of probabilities from small to even
LAWS = [
    stats.binom(int(np.ceil(mean / p)), p)
    for mean in (10, 10.3, 11, 13, 17, 30, 100, 1e4)
    for p in (1e-4, 0.05, 0.2, 0.4, 0.5)
]


@pytest.mark.once
def test_candidates_cover_the_probabilities(backend, x64):
    u = np.concatenate(
        [np.linspace(0, 1, 20001)[1:-1], np.geomspace(1e-7, 0.1, 2000), 1 - np.geomspace(1e-7, 0.1, 2000)]
    )
    words = multiop.op_cast((u * 2**32).astype("int64"), _philox.word())
    for law in LAWS:
        n, p = law.args
        hat, parameters = _binomial._hat_and_law(*multiop.op_convert_to_tensor(np.array([[n], [p]])))
        k, _, limit = _binomial.candidate(words, words, words, words, *hat)
        chance = to_numpy(_binomial._chance(k, *parameters))
        assert np.max(chance * to_numpy(limit)) < 1
        k, mode = to_numpy(k), np.floor((n + 1) * p)
        exact = law.pmf(k) / law.pmf(mode) / to_numpy(parameters[-1])
        np.testing.assert_allclose(chance, exact, rtol=1e-8, atol=1e-300)


@pytest.mark.once
def test_few_entries_are_left_for_later_candidates(backend):
    for law in LAWS:
        n, p = law.args
        deviation = law.std()
        height = (2.83 + 5.1 / (1.15 + 2.53 * deviation)) * deviation
        rejected = 1 - 1 / (height * law.pmf(np.floor((n + 1) * p)))
        for spread in (_binomial._least_spread(n, p) or _binomial._LEAST_SPREAD, _binomial._LEAST_SPREAD):
            done = 0
            for count, share in _binomial._stages(spread, (2, 4)):
                assert rejected**done <= share
                done += count
            assert rejected**done < 1e-14


@pytest.mark.once
@pytest.mark.parametrize(("dtype", "least"), [("float32", 87), ("float64", 708)])
def test_tables_hold_all_probabilities_that_are_not_0(backend, dtype, least):
    for law in LAWS:
        n, p = law.args
        spread = _binomial._least_spread(n, p) or _binomial._LEAST_SPREAD
        assert spread <= law.std() * (1 + 1e-6)
        half = _binomial._table_size(dtype, spread) // 2
        beyond = np.array([np.floor(law.mean()) - half + 1, np.floor(law.mean()) + half - 2])
        beyond = beyond[(beyond >= 0) & (beyond <= n)]
        assert np.all(law.logpmf(beyond) - law.logpmf(np.floor((n + 1) * p)) < -least)


@pytest.mark.once
def test_a_small_mean_hardly_ever_gives_more_than_the_last_term(backend):
    for dtype, share in (("float32", 2.0**-40), ("float64", 2.0**-70)):
        assert stats.poisson(_binomial.FEW).sf(_binomial.TERMS[dtype]) < share


@pytest.mark.rotating
def test_impossible_trials_and_shapes_give_nan(backend):
    for trials, chances in (([3.0, -1.0, 2.5, NAN, 3.0, 3.0], 0.5), (3.0, [0.5, -0.1, 1.1, NAN, 2.0, -2.0])):
        x = to_numpy(random.binomial((6,), np.array(trials, "float32"), np.array(chances, "float32"), seed=1))
        bad = [not 0 <= one <= 3 for one in x]
        assert bad == [not (n >= 0 and n % 1 == 0 and 0 <= p <= 1) for n, p in np.broadcast(trials, chances)]
    x = to_numpy(random.gamma((4,), np.array([0.0, -1.0, NAN, 1.0], "float32"), seed=1))
    assert np.isnan(x).tolist() == [True, True, True, False]
    x = to_numpy(
        random.beta((2, 3), np.array([0.0, 1.0, 1.0], "float32"), np.array([1.0, -1.0, 1.0], "float32"), seed=1)
    )
    assert np.isnan(x).tolist() == [[True, True, False]] * 2


@pytest.mark.rotating
def test_a_number_does_not_depend_on_the_others(backend):
    alone = to_numpy(random.gamma((41,), 1.0, seed=7)).tolist()
    assert to_numpy(random.gamma((5000,), np.float32(1.0), seed=7))[:41].tolist() == alone
    alone = to_numpy(random.binomial((41,), 30, 0.5, seed=7)).tolist()
    assert to_numpy(random.binomial((5000,), 30, 0.5, seed=7))[:41].tolist() == alone


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compilers_round_a_uniform_number_before_they_subtract_from_it(backend, dtype, x64):
    high, low = words(5, 20000), words(6, 20000)
    scale = 2.0**-32 * (1 - 2.0**-24)
    if dtype == "float32":
        expected = (high.astype("float32") + np.float32(0.5)) * np.float32(scale) - np.float32(0.5)
    else:
        expected = high.astype(float) * 2.0**-32 + (low.astype(float) + 0.5) * (2.0**-64 * (1 - 2.0**-20)) - 0.5

    def centred(high, low):
        return multiop.op_subtract(_normal.inner_uniform_of(high, low if dtype == "float64" else None), 0.5)

    operands = [multiop.op_cast(one.astype("int64"), _philox.word()) for one in (high, low)]
    np.testing.assert_array_equal(to_numpy(multiop.jit(centred)(*operands)), expected)


def test_the_smallest_gamma_numbers_are_positive(backend):
    for dtype, least in (("float32", 2.0**-126), ("bfloat16", 2.0**-126), ("float16", 2.0**-24)):
        assert to_numpy(random.gamma((50,), 1e-3, dtype, seed=1)).astype("float64").min() == least


def test_impossible_categories_are_never_drawn(backend):
    logits = np.array([[0.0, -np.inf, 0.0]], "float32")
    assert set(to_numpy(random.categorical(logits, 200, "uint8", seed=3)).ravel().tolist()) == {0, 2}


@pytest.mark.once
def test_orders_are_uniform(backend):
    rows = np.tile(np.arange(4, dtype="int32"), (24000, 1))
    x = to_numpy(random.shuffle_along_axis(rows, 1, seed=5))
    counts = np.unique(x @ [64, 16, 4, 1], return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-3


def test_shuffle_keeps_slices_and_their_gradients(backend):
    x = np.arange(12, dtype="float32").reshape(3, 4)
    found = to_numpy(random.shuffle(x, 1, seed=1))
    order = found[0].astype(int)
    assert found.tolist() == x[:, order].tolist()
    weights = np.arange(12, dtype="float32").reshape(3, 4)
    grad = to_numpy(
        multiop.grad(lambda x: multiop.op_sum(random.shuffle(x, 1, seed=1) * multiop.op_array(weights)))(
            multiop.op_array(x)
        )
    )
    assert grad[:, order].tolist() == weights.tolist()


def test_dropout_drops_its_share_and_scales_the_rest(backend):
    x = multiop.op_ones((100, 100))
    found = to_numpy(random.dropout(x, 0.25, seed=2))
    assert set(found.ravel().tolist()) == {0.0, float(np.float32(1 / 0.75))}
    assert abs((found == 0).mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 10**4)
    rows = to_numpy(random.dropout(x, 0.25, (None, 1), seed=2))
    assert (rows == rows[:, :1]).all()
    assert (to_numpy(random.dropout(x, multiop.op_array(0.25), seed=2)) == found).all()
    assert (to_numpy(random.dropout(x, 0.0, seed=2)) == 1).all()
    for rate in (1.0, multiop.op_array(1.0)):
        assert (to_numpy(random.dropout(x, rate, seed=2)) == 0).all()
    grad = to_numpy(multiop.grad(lambda x: multiop.op_sum(random.dropout(x, 0.25, seed=2)))(x))
    assert grad.tolist() == found.tolist()


@pytest.mark.parametrize("transform", ["grad", "jacfwd"])
def test_gradients_are_pathwise(backend, transform):
    shape = (5,)
    u = to_numpy(random.uniform(shape, seed=8))
    z = to_numpy(random.normal(shape, seed=8))
    t = to_numpy(random.truncated_normal(shape, seed=8))
    g, e = to_numpy(random.gumbel(shape, seed=8)), to_numpy(random.exponential(shape, seed=8))
    two_sided = to_numpy(random.laplace(shape, seed=8))
    two = np.arange(1.0, 6.0, dtype="float32"), np.arange(7.0, 12.0, dtype="float32")
    for draw, slopes in (
        (random.uniform, (1 - u, u)),
        (random.normal, (1 + 0 * z, z)),
        (random.truncated_normal, (1 + 0 * t, t)),
        (random.gumbel, (1 + 0 * g, g)),
        (random.laplace, (1 + 0 * g, two_sided)),
        (lambda shape, scale, _, seed: random.exponential(shape, scale, seed=seed), (e,)),
    ):
        for which, slope in enumerate(slopes):

            def total(x, which=which, draw=draw):
                arguments = [multiop.op_array(one) for one in two]
                arguments[which] = x
                return multiop.op_sum(draw(shape, *arguments, seed=8))

            found = to_numpy(getattr(multiop, transform)(total)(multiop.op_array(two[which])))
            np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-6)


RANKS = [  # alpha and the number, from far below to far above the middle of the distribution
    (a, float(stats.gamma.ppf(p, a)))
    for a in (0.05, 0.4, 1.0, 2.5, 30.0, 2000.0)
    for p in (0.03, 0.1, 0.4, 0.5, 0.7, 0.99)
]


def moved(a, x):
    """Return how fast the gamma number moves with `a` while its rank stays the same, by differences in 40 digits."""
    with mpmath.workdps(40):
        a, x, h = mpmath.mpf(a), mpmath.mpf(x), mpmath.mpf(10) ** -14 * min(a, 1)
        above, below = (mpmath.gammainc(a + step, 0, x, regularized=True) for step in (h, -h))
        return float(-(above - below) / (2 * h) / (x ** (a - 1) * mpmath.exp(-x) / mpmath.gamma(a)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_moves_along_its_rank(backend, dtype, request):
    if dtype == "float64":
        request.getfixturevalue("x64")
    a, x = np.array(RANKS, dtype).T
    exact = [moved(*pair) / pair[1] for pair in zip(a.astype("float64"), x.astype("float64"), strict=True)]
    found = to_numpy(_gamma._slope(multiop.op_array(a), multiop.op_log(multiop.op_array(x))))
    np.testing.assert_allclose(found, exact, rtol=2e-5 if dtype == "float32" else 1e-11)


def test_gamma_numbers_of_tiny_shapes_move_along_their_rank(backend):
    a, x = np.meshgrid([1e-3, 1e-6, 1e-12], [1e-3, 0.5, 0.999, 2.0])
    a, x = a.ravel().astype("float32"), x.ravel().astype("float32")
    exact = [moved(*pair) / pair[1] for pair in zip(a.astype("float64"), x.astype("float64"), strict=True)]
    found = to_numpy(_gamma._slope(multiop.op_array(a), multiop.op_log(multiop.op_array(x))))
    np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_gradients_of_gamma_and_beta_at_extreme_parameters(backend):
    def slopes(draw, *parameters):
        parameters = [multiop.op_array(np.full(8, p, "float32")) for p in parameters]
        grad = multiop.grad(lambda *p: multiop.op_sum(draw(*p)), argnums=tuple(range(len(parameters))))
        return [to_numpy(g) for g in grad(*parameters)]

    def beta(a, b):
        return random.beta((8,), a, b, seed=0)

    # every number is 0, 1 or the least one, and stays so
    for found in (*slopes(beta, 1e-30, 1e-12), *slopes(lambda a: random.gamma((8,), a, seed=0), 1e-30)):
        assert found.tolist() == [0] * 8
    for found, sign in zip(slopes(beta, 1e30, 1e30), (1, -1), strict=True):  # a / (a + b)
        np.testing.assert_allclose(found, np.full(8, sign * 0.25e-30), rtol=1e-4)


@pytest.mark.slow_on(multiop_backend="jax", transform="jacfwd")
@pytest.mark.slow_on(multiop_backend="tensorflow", transform="jacfwd")
@pytest.mark.parametrize("transform", ["grad", "jacfwd"])
def test_gradients_of_gamma_and_beta_are_implicit(backend, transform, x64):
    a, b = np.array([0.3, 1.0, 2.0, 9.0]), np.array([1.5, 0.7, 4.0, 2.0])

    def total(draw):
        return lambda x: multiop.op_sum(draw(x))

    def slope(draw, at):
        return to_numpy(getattr(multiop, transform)(total(draw))(multiop.op_array(at)))

    x = to_numpy(random.gamma((4,), a, "float64", seed=2))
    expected = [moved(*pair) for pair in zip(a, x, strict=True)]
    np.testing.assert_allclose(slope(lambda a: random.gamma((4,), a, "float64", seed=2), a), expected, rtol=1e-10)
    keys = random.split(2)
    z, w = (to_numpy(random.gamma((4,), one, "float64", seed=key)) for one, key in ((a, keys[0]), (b, keys[1])))
    y = to_numpy(random.beta((4,), a, b, "float64", seed=2))
    np.testing.assert_allclose(y, z / (z + w), rtol=1e-13)
    for which, (one, at) in enumerate(((a, z), (b, w))):
        expected = [(1 - 2 * which) * moved(*pair) / pair[1] for pair in zip(one, at, strict=True)]

        def draw(x, which=which):
            return random.beta(
                (4,), *([x, multiop.op_array(b)] if which == 0 else [multiop.op_array(a), x]), "float64", 2
            )

        np.testing.assert_allclose(slope(draw, one), np.array(expected) * y * (1 - y), rtol=1e-9)


def test_second_derivatives_of_gamma(backend, x64):
    a, h = np.array([0.3, 1.0, 2.0, 9.0, 60.0]), 1e-5

    def first(a):
        return multiop.grad(lambda a: multiop.op_sum(random.gamma((5,), a, "float64", seed=2)))(a)

    found = to_numpy(multiop.grad(lambda a: multiop.op_sum(first(a)))(multiop.op_array(a)))
    expected = []
    for one, x in zip(a, to_numpy(random.gamma((5,), a, "float64", seed=2)), strict=True):
        speed = moved(one, x)
        expected.append((moved(one + h, x + h * speed) - moved(one - h, x - h * speed)) / (2 * h))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    "draw",
    [
        lambda p: random.binomial((3,), 30, p, seed=1),
        pytest.param(lambda p: random.poisson((3,), p, seed=1), marks=BY_NUMPY),
        pytest.param(lambda p: random.multinomial((), 30, p, seed=1), marks=BY_NUMPY),
    ],
    ids=["binomial", "poisson", "multinomial"],
)
def test_whole_numbers_have_no_gradient(backend, draw):
    p = multiop.op_array(np.full(3, 0.4, "float32"))
    found = multiop.grad(lambda p: multiop.op_sum(draw(p) + p))(p)
    assert to_numpy(found).tolist() == [1.0] * 3


def test_gamma_in_a_rule_that_closes_over_its_shape(backend):
    alpha = multiop.op_array(np.array([0.5, 3.0], "float32"))
    x = to_numpy(random.gamma((2,), alpha, seed=6))

    @multiop.op_custom_gradient
    def scaled(y):
        z = random.gamma((2,), alpha, seed=6)
        return y * z, lambda upstream: upstream * z

    assert to_numpy(multiop.grad(lambda y: multiop.op_sum(scaled(y)))(multiop.op_ones(2))).tolist() == x.tolist()

    def closing(alpha):
        @multiop.op_custom_gradient
        def scaled(y):
            return y * random.gamma((2,), alpha, seed=6), lambda upstream: upstream

        return multiop.op_sum(scaled(multiop.op_ones(2)))

    with pytest.raises(errors.ClosedOverError):
        multiop.grad(closing)(alpha)


def test_threads_draw_the_same_numbers(backend):
    def draw(_):
        found = random.gamma((300,), 0.7, seed=3), random.binomial((300,), 30, 0.5, seed=3)
        return [to_numpy(x).tolist() for x in found]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first, second = pool.map(draw, range(2))
    assert first == second == draw(0)


# keys


def test_seeds_of_every_kind(backend):
    def bits(seed):
        return to_numpy(random.key(seed)).tolist()

    assert bits(-1) == bits(2**64 - 1) == bits(np.int8(-1)) == [MASK, MASK]
    assert bits(2**32 - 1) == bits(np.uint32(MASK)) == [MASK, 0]
    assert bits(-(2**63)) == [0, 2**31]
    assert bits(random.key(17)) == bits(np.array([17, 0], np.uint32)) == [17, 0]
    for dtype in ("int8", "int32", "uint8", "uint32"):
        assert bits(multiop.op_array(5, dtype)) == [5, 0]
    assert bits(multiop.op_array(-5, "int32")) == bits(multiop.op_array(-5, "int8")) == bits(-5)
    assert bits(multiop.op_array(2**32 - 5, "uint32")) == bits(2**32 - 5)
    assert to_numpy(random.fold_in(3, multiop.op_array(-5))).tolist() == to_numpy(random.fold_in(3, -5)).tolist()


def test_long_seeds_in_tensors(backend, x64):
    for seed in (2**40 + 3, -(2**40) - 3):
        assert to_numpy(random.key(multiop.op_array(seed, "int64"))).tolist() == to_numpy(random.key(seed)).tolist()


def test_split_and_fold_in_are_words_of_their_own(backend):
    assert to_numpy(random.split(6, 3)).tolist() == [_philox.block_of_ints((i, 0, 0, 1), (6, 0))[:2] for i in range(3)]
    assert to_numpy(random.fold_in(6, 2**35 + 1)).tolist() == _philox.block_of_ints((1, 8, 0, 2), (6, 0))[:2]
    assert to_numpy(random.split(6, 5))[:3].tolist() == to_numpy(random.split(6, 3)).tolist()
    assert to_numpy(random.split(6, 0)).shape == (0, 2)


def test_keys_map(backend):
    keys = random.split(3, 4)
    found = to_numpy(multiop.vmap(lambda key: random.normal((3,), seed=random.fold_in(key, 1)))(keys))
    expected = [to_numpy(random.normal((3,), seed=random.fold_in(keys[i], 1))).tolist() for i in range(4)]
    assert found.tolist() == expected


OF_A_PARAMETER = {
    "uniform": (lambda x: random.uniform((4,), 0.0, x, seed=4), [1.0, 2.0]),
    "normal": (lambda x: random.normal((4,), 1.0, x, seed=4), [1.0, 2.0]),
    "laplace": (lambda x: random.laplace((4,), 1.0, x, seed=4), [1.0, 2.0]),
    "gamma": (lambda x: random.gamma((4,), x, seed=4), [1.0, 2.0]),
    "binomial": (lambda x: random.binomial((4,), 9, x, seed=4), [0.1, 0.2]),
    "poisson": (lambda x: random.poisson((4,), x, seed=4), [1.0, 20.0]),
    "randint": (lambda x: random.randint((4,), 0, x, seed=4), [3, 9]),
    "dropout": (lambda x: random.dropout(multiop.op_ones(4), x, seed=4), [0.1, 0.2]),
}


@pytest.mark.rotating
@pytest.mark.parametrize("name", OF_A_PARAMETER)
def test_parameters_map(backend, name):
    draw, rows = OF_A_PARAMETER[name]
    rows = multiop.op_array(rows)
    expected = [to_numpy(draw(rows[k])).tolist() for k in range(2)]
    assert to_numpy(multiop.vmap(draw)(rows)).tolist() == expected


def test_what_is_folded_in_maps(backend, log_records):
    key = random.key(5)
    found = to_numpy(multiop.vmap(lambda i: random.fold_in(key, i))(multiop.op_arange(4)))
    assert found.tolist() == [to_numpy(random.fold_in(key, i)).tolist() for i in range(4)]
    assert not log_records  # TensorFlow would say that it computes row by row


@pytest.mark.parametrize("seed", [5, -7, 2**64 - 1])
def test_keys_of_a_generator_are_blocks_of_its_seed(seed):
    generator, words = random.SeedGenerator(seed), (seed & _philox.MASK, seed >> 32 & _philox.MASK)
    for n in (*range(70), 2**32 - 1, 2**32, 2**40 + 33):
        generator.state = seed, n
        expected = _philox.block_of_ints((n & _philox.MASK, n >> 32, 0, 3), words)[:2]
        assert to_numpy(generator.next()).tolist() == expected
        assert generator.state == (seed, n + 1)


@pytest.mark.parametrize("n", [0, 1, 5, 383, 384, 385, 4000])
@pytest.mark.parametrize("first", [0, _philox.MASK - 3])
def test_words_of_many_blocks_are_those_of_each(n, first):
    rest, key = (_philox.MASK, 5, 2**31), (_philox.MASK, 2**31 + 7)
    blocks = [_philox.block_of_ints((first + k & _philox.MASK, *rest), key) for k in range(-(-n // 4))]
    words = [word for block in blocks for word in block][:n]
    assert philox.words_on_host(key, n, (first, *rest)).tolist() == words
    if n:
        rows = np.concatenate(list(philox.words_of_keys([(1, 2), key, (3, 4)], n, (first, *rest))), -1)
        assert rows[1].tolist() == words
        assert rows[2].tolist() == philox.words_on_host((3, 4), n, (first, *rest)).tolist()


OF_A_GENERATOR = {  # what is drawn ahead on a host, and a draw of too many numbers for that
    "normal": lambda seed: random.normal((2, 3), seed=seed),
    "normal, reshaped": lambda seed: random.normal((6,), seed=seed),
    "normal, one": lambda seed: random.normal((), 1.0, 2.0, seed=seed),
    "normal, none": lambda seed: random.normal((0,), seed=seed),
    "normal, float64": lambda seed: random.normal((3,), dtype="float64", seed=seed),
    "normal, bfloat16": lambda seed: random.normal((3,), dtype="bfloat16", seed=seed),
    "truncated": lambda seed: random.truncated_normal((3,), seed=seed),
    "uniform": lambda seed: random.uniform((128,), -1.0, 2.0, seed=seed),
    "uniform, float16": lambda seed: random.uniform((5,), -1.0, 0.3, dtype="float16", seed=seed),
    "gumbel": lambda seed: random.gumbel((4,), seed=seed),
    "dropout": lambda seed: random.dropout(multiop.op_ones(4), 0.5, seed=seed),
    "more": lambda seed: random.normal((129,), seed=seed),
}


def drawn_singly(name, key):
    """Return what a key, of two words, draws where nothing is drawn ahead."""
    with mock.patch.object(_host, "_FEW", 0):
        return to_numpy(OF_A_GENERATOR[name](np.array(key, np.uint32))).tolist()


def of_turn(name, seed, number):
    """Return what a generator's turn draws, by its key alone."""
    words = seed & _philox.MASK, seed >> 32 & _philox.MASK
    return drawn_singly(name, _philox.block_of_ints((number & _philox.MASK, number >> 32, 0, 3), words)[:2])


def test_draws_of_a_generator_are_those_of_its_keys(backend, x64):
    if random_part("from_host") is None:
        pytest.skip("nothing is drawn ahead")
    rng, expected = np.random.default_rng(0), {}
    generators = [random.SeedGenerator(seed) for seed in (7, 7, -(2**40))]
    for step in range(900):
        generator = generators[k := step % 3]
        seed, number = generator.state
        draw = list(OF_A_GENERATOR)[rng.integers(len(OF_A_GENERATOR))] if step % 5 else "normal"
        x = OF_A_GENERATOR[draw](generator)
        if (draw, seed, number) not in expected:
            expected[draw, seed, number] = of_turn(draw, seed, number)
        assert to_numpy(x).tolist() == expected[draw, seed, number], (draw, seed, number)
        x[...] = 0  # nobody else holds it
        if step % 50 == 0:
            generators[k] = copy.deepcopy(generator) if step % 100 else pickle.loads(pickle.dumps(generator))
        if step % 41 == 0:
            generator.state = seed, int(rng.choice([0, 30, 127, 2**32 - 1]))


@pytest.mark.parametrize("first", [0, -3, 2**32 - 2, 2**63 - 2, 2**64 - 4])
def test_draws_of_successive_ints_and_of_their_keys_are_those_drawn_singly(backend, x64, first):
    if random_part("from_host") is None:
        pytest.skip("nothing is drawn ahead")
    for name, draw in OF_A_GENERATOR.items():
        for turn, k in itertools.product(range(4), range(4)):  # the first ones singly
            seed = first + k
            key = seed & _philox.MASK, seed >> 32 & _philox.MASK
            expected = drawn_singly(name, key)
            for given in (seed, np.array(key, np.uint32)):
                x = draw(given)
                assert to_numpy(x).tolist() == expected, (name, turn, given)
                x[...] = 0  # nobody else holds it


def test_threads_share_what_is_drawn_ahead(backend):
    if random_part("from_host") is None:
        pytest.skip("nothing is drawn ahead")

    def draw(k):
        generator = random.SeedGenerator(k % 2)
        return [to_numpy(OF_A_GENERATOR["normal"](generator)).tolist() for _ in range(150)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        found = list(pool.map(draw, range(4)))
    for k in range(4):
        assert found[k] == [of_turn("normal", k % 2, number) for number in range(150)]


def test_a_generator_goes_on(backend):
    generator = random.SeedGenerator(5)
    first, second = (to_numpy(random.uniform((4,), seed=generator)).tolist() for _ in range(2))
    assert first != second
    assert generator.state == (5, 2)
    assert to_numpy(generator.next()).tolist() == _philox.block_of_ints((2, 0, 0, 3), (5, 0))[:2]
    again = random.SeedGenerator.from_config(generator.get_config())
    assert to_numpy(random.uniform((4,), seed=again)).tolist() == first
    copy = pickle.loads(pickle.dumps(again))
    again.state = copy.state = (5, 1)
    assert to_numpy(random.uniform((4,), seed=copy)).tolist() == second
    assert random.SeedGenerator().state != random.SeedGenerator().state


REFUSED = [
    lambda seed: random.gamma((3,), -1.0, seed=seed),
    lambda seed: random.gamma((3,), [1.0, 2.0], seed=seed),
    lambda seed: random.beta((3,), 1.0, -2.0, seed=seed),
    lambda seed: random.poisson((3,), -1.0, seed=seed),
    lambda seed: random.binomial((3,), 2, 1.5, seed=seed),
    lambda seed: random.multinomial((3,), 2.5, [0.5, 0.5], seed=seed),
    lambda seed: random.multinomial((3,), 4, [], seed=seed),
    lambda seed: random.multivariate_normal((3,), [0.0, 1.0, 2.0], [[1.0, 0.0], [0.0, 1.0]], seed=seed),
    lambda seed: random.categorical([1.0, 2.0], 3, seed=seed),
    lambda seed: random.choice(5, (9,), False, seed=seed),
    lambda seed: random.shuffle([1.0], 4, seed=seed),
    lambda seed: random.shuffle_along_axis([1.0], 4, seed=seed),
    lambda seed: random.randint((3,), 5, 2, seed=seed),
    lambda seed: random.uniform((3,), 2.0, 1.0, seed=seed),
    lambda seed: random.normal((3,), 0.0, -1.0, seed=seed),
]


def test_a_draw_that_is_refused_takes_no_key(backend):
    generator = random.SeedGenerator(5)
    for draw in REFUSED:
        with pytest.raises(errors.ArgumentError):
            draw(generator)
    assert generator.state == (5, 0)


def test_draws_without_a_seed(backend):
    random.set_seed(12)
    first, second = (to_numpy(random.normal((4,))).tolist() for _ in range(2))
    assert first != second
    random.set_seed(12)
    assert to_numpy(random.normal((4,))).tolist() == first
    assert to_numpy(random.normal((4,), seed=3)).tolist() == to_numpy(random.normal((4,), seed=3)).tolist()


def test_threads_share_a_generator(backend):
    generator, found = random.SeedGenerator(5), []

    def draw():
        found.extend(tuple(to_numpy(generator.next()).tolist()) for _ in range(50))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 200


@pytest.mark.traced
def test_a_compiled_function_takes_a_key_and_no_generator(backend):
    generator = random.SeedGenerator(5)
    for seed in (generator, None):
        with pytest.raises(errors.ArgumentError, match="draw a key outside"):
            multiop.jit(lambda x, seed=seed: x + random.normal((2,), seed=seed))(multiop.op_ones(2))
    assert generator.state == (5, 0)
    draw = multiop.jit(lambda key: random.normal((2,), seed=key))
    keys = generator.next(), generator.next()
    assert [to_numpy(draw(key)).tolist() for key in keys] == [
        to_numpy(random.normal((2,), seed=key)).tolist() for key in keys
    ]


# arguments


@pytest.mark.rotating
@pytest.mark.parametrize("shape", [(), 3, (0,), (2, 0, 3), [2, 3], np.array([2, 3])], ids=str)
def test_shapes(backend, shape):
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for draw in (
        random.uniform,
        random.normal,
        lambda shape, seed: random.randint(shape, 0, 5, seed=seed),
        lambda shape, seed: random.gamma(shape, 1.0, seed=seed),
        lambda shape, seed: random.beta(shape, 1.0, 2.0, seed=seed),
        lambda shape, seed: random.binomial(shape, 20, 0.5, seed=seed),
    ):
        assert tuple(draw(shape, seed=1).shape) == sizes


@by_numpy
@pytest.mark.parametrize("shape", [(), 3, (2, 0, 3)], ids=str)
def test_shapes_of_events_and_classes(backend, shape):
    sizes = (shape,) if isinstance(shape, int) else shape
    assert tuple(random.poisson(shape, 20, seed=1).shape) == sizes
    assert tuple(random.multinomial(shape, 5, [0.5, 0.2, 0.3], seed=1).shape) == (*sizes, 3)


def test_shapes_of_tensors(backend):
    n = multiop.op_array(3)
    assert tuple(random.normal((2, n), seed=1).shape) == (2, 3)


BAD = {
    "seed: a float": (lambda: random.normal((2,), seed=1.5), TypeError, "normal: seed must be an int, a SeedGenerator"),
    "seed: a bool": (lambda: random.normal((2,), seed=True), TypeError, "seed must be an int"),
    "seed: a string": (lambda: random.normal((2,), seed="1"), TypeError, "seed must be an int"),
    "seed: a list": (lambda: random.normal((2,), seed=[1, 2]), TypeError, "seed must be an int"),
    "seed: too large": (lambda: random.key(2**64), ValueError, "key: seed must be from"),
    "seed: too small": (lambda: random.key(-(2**63) - 1), ValueError, "seed must be from"),
    "seed: three words": (lambda: random.key(np.zeros(3, np.uint32)), ValueError, "a key is uint32 of shape"),
    "seed: floats": (lambda: random.key(multiop.op_ones(())), ValueError, "seed must be an integer without dimensions"),
    "seed: of a generator": (lambda: random.SeedGenerator(1.5), TypeError, "SeedGenerator: seed must be an int"),
    "seed: of all": (lambda: random.set_seed(None), TypeError, "set_seed: seed must be an int"),
    "data": (lambda: random.fold_in(1, 1.5), TypeError, "fold_in: data must be an int"),
    "num": (lambda: random.split(1, -1), ValueError, "split: num must not be negative"),
    "shape: negative": (lambda: random.uniform((-1,), seed=1), ValueError, "shape must hold no negative number"),
    "shape: a float": (lambda: random.uniform((1.5,), seed=1), TypeError, "shape must hold ints"),
    "shape: a key": (lambda: random.normal(random.key(7), (2,)), TypeError, r"got uint32\[2\]: give a key as seed="),
    "shape: too large": (lambda: random.uniform((2**17, 2**16), seed=1), ValueError, "at most 2\\*\\*32 at a time"),
    "dtype: an int": (
        lambda: random.normal((2,), dtype="int32", seed=1),
        TypeError,
        "a floating or complex dtype, got int32",
    ),
    "dtype: a float": (
        lambda: random.randint((2,), 0, 2, "float32", seed=1),
        TypeError,
        "an integer dtype, got float32",
    ),
    "minval: equal": (lambda: random.uniform((2,), 1.0, 1.0, seed=1), ValueError, "minval must be below maxval"),
    "minval: above": (lambda: random.randint((2,), 3, 2, seed=1), ValueError, "minval must be below maxval"),
    "minval: half": (lambda: random.randint((2,), 0.5, 2, seed=1), TypeError, "minval must be an int"),
    "minval: too small": (lambda: random.randint((2,), -1, 2, "uint8", seed=1), ValueError, "does not fit in uint8"),
    "maxval: too large": (
        lambda: random.randint((2,), 0, 258, "uint8", seed=1),
        ValueError,
        "beyond the integers of uint8",
    ),
    "minval: its shape": (
        lambda: random.uniform((2,), np.zeros(3, "float32"), 1.0, seed=1),
        ValueError,
        "does not broadcast",
    ),
    "maxval: infinite": (lambda: random.uniform((2,), 0.0, INF, seed=1), ValueError, "maxval must be finite"),
    "maxval: too far": (
        lambda: random.uniform((2,), -3e38, 3e38, seed=1),
        ValueError,
        "maxval - minval must be finite",
    ),
    "minval: complex": (
        lambda: random.uniform((2,), np.zeros(2, "complex64"), seed=1),
        TypeError,
        "minval must be real",
    ),
    "stddev": (lambda: random.normal((2,), 0.0, -1.0, seed=1), ValueError, "stddev must not be negative"),
    "scale": (lambda: random.exponential((2,), -1.0, seed=1), ValueError, "exponential: scale must not be negative"),
    "scale: NaN": (lambda: random.laplace((2,), 0.0, NAN, seed=1), ValueError, "laplace: scale must be finite"),
    "scale: its shape": (lambda: random.gumbel((2,), 0.0, np.ones(3), seed=1), ValueError, "gumbel: scale has the"),
    "loc: complex": (lambda: random.gumbel((2,), np.ones(2, "complex64"), seed=1), TypeError, "loc must be real"),
    "laplace: complex": (lambda: random.laplace((2,), dtype="complex64", seed=1), TypeError, "a real floating dtype"),
    "mean: complex": (lambda: random.normal((2,), 1j, seed=1), TypeError, "normal: mean must be real"),
    "mean: no number": (lambda: random.normal((2,), None, dtype="complex64", seed=1), TypeError, "mean must be a real"),
    "stddev: complex": (
        lambda: random.normal((2,), 0.0, np.ones(2, "complex64"), "complex64", 1),
        TypeError,
        "stddev must be real",
    ),
    "mean": (lambda: random.truncated_normal((2,), NAN, seed=1), ValueError, "truncated_normal: mean must be finite"),
    "mean: a string": (lambda: random.normal((2,), "a", seed=1), TypeError, "mean must be a real number"),
    "alpha: zero": (lambda: random.gamma((2,), 0.0, seed=1), ValueError, "gamma: alpha must be positive, got 0.0"),
    "alpha: infinite": (lambda: random.gamma((2,), INF, seed=1), ValueError, "gamma: alpha must be positive"),
    "alpha: NaN": (lambda: random.beta((2,), NAN, 1.0, seed=1), ValueError, "beta: alpha must be positive"),
    "alpha: its shape": (lambda: random.gamma((2,), np.ones(3), seed=1), ValueError, "alpha has the shape"),
    "alpha: a string": (lambda: random.gamma((2,), "1", seed=1), TypeError, "alpha must be a real number"),
    "beta": (lambda: random.beta((2,), 1.0, -1.0, seed=1), ValueError, "beta: beta must be positive"),
    "beta: its shape": (lambda: random.beta((2,), 1.0, np.ones(3), seed=1), ValueError, "beta has the shape"),
    "gamma: an int": (lambda: random.gamma((2,), 1.0, "int32", seed=1), TypeError, "a real floating dtype, got int32"),
    "counts": (lambda: random.binomial((2,), -1, 0.5, seed=1), ValueError, "binomial: counts must be a whole number"),
    "counts: half": (lambda: random.binomial((2,), 1.5, 0.5, seed=1), ValueError, "counts must be a whole number"),
    "counts: its shape": (lambda: random.binomial((2,), np.ones(3), 0.5, seed=1), ValueError, "counts has the shape"),
    "mean: of events": (
        lambda: random.poisson((2,), -1.0, seed=1),
        ValueError,
        "poisson: mean must be finite and not negative",
    ),
    "mean: shape": (lambda: random.poisson((2,), np.ones(3), seed=1), ValueError, "mean has the shape"),
    "classes": (lambda: random.multinomial((), 3, [], seed=1), ValueError, "multinomial: probabilities must have at"),
    "classes: a number": (lambda: random.multinomial((), 3, 0.5, seed=1), ValueError, "must have at least one class"),
    "classes: counts": (lambda: random.multinomial((), 1.5, [1.0], seed=1), ValueError, "counts must be a whole numb"),
    "classes: shape": (lambda: random.multinomial((2,), 3, np.ones((3, 4)), seed=1), ValueError, "probabilities has"),
    "probabilities": (lambda: random.binomial((2,), 3, 1.5, seed=1), ValueError, "probabilities must be from 0 to 1"),
    "probabilities: NaN": (lambda: random.binomial((2,), 3, NAN, seed=1), ValueError, "probabilities must be from 0"),
    "rate": (lambda: random.dropout(np.ones(2, "float32"), 1.5, seed=1), ValueError, "rate must be from 0 to 1"),
    "inputs": (lambda: random.dropout(np.ones(2, "int32"), 0.5, seed=1), TypeError, "inputs must be floating"),
    "noise_shape": (lambda: random.dropout(np.ones(2, "float32"), 0.5, (3,), seed=1), ValueError, "noise_shape"),
    "logits": (lambda: random.categorical(np.ones(3, "float32"), 2, seed=1), ValueError, "logits must have the shape"),
    "logits: none": (
        lambda: random.categorical(np.ones((2, 0), "float32"), 2, seed=1),
        ValueError,
        "at least one class",
    ),
    "num_samples": (lambda: random.categorical(np.ones((1, 3), "float32"), -1, seed=1), ValueError, "num_samples"),
    "axis": (lambda: random.shuffle(np.ones(3, "float32"), 1, seed=1), ValueError, "axis 1 is out of range"),
    "mean: more than shape": (
        lambda: random.multivariate_normal((), np.zeros((3, 2)), np.eye(2), seed=1),
        ValueError,
        "mean has the shape",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_named(backend, case):
    call, kind, message = BAD[case]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, errors.MultiopError)


def test_every_draw_is_public_and_has_the_boundary():
    assert set(dir(random)) == set(random.__all__)
    for name in random.__all__:
        assert getattr(random, name).__doc__.strip()


def test_choice_follows_its_weights(backend):
    x = to_numpy(random.choice([10, 20, 30], (30000,), p=[1.0, 0.0, 3.0], seed=1))
    assert set(x.tolist()) == {10, 30}
    assert abs((x == 30).mean() - 0.75) < 0.01
    assert to_numpy(random.choice(4, (2, 500), seed=2)).shape == (2, 500)


def test_a_draw_of_choice_takes_few_numbers(backend, monkeypatch):
    asked = []
    words = multiop.random._philox.words
    monkeypatch.setattr(
        multiop.random._philox, "words", lambda key, shape, n: asked.append(shape) or words(key, shape, n)
    )
    weights = np.arange(1000.0, dtype="float32")
    x = to_numpy(random.choice(1000, 3000, p=weights, seed=1))
    assert sum(np.prod(shape) for shape in asked) <= 10 * 3000
    counts, expected = np.bincount(x // 100, minlength=10), 3000 * np.bincount(np.arange(1000) // 100, weights) / 499500
    assert ((counts - expected) ** 2 / expected).sum() < 30  # the 99.95 % quantile of chi-squared


def test_choice_without_replacement_draws_each_once(backend):
    assert sorted(to_numpy(random.choice(50, 50, replace=False, seed=1)).tolist()) == list(range(50))
    p = np.repeat([1.0, 4.0], 1000)  # NumPy draws one after the other
    expected = (np.random.default_rng(0).choice(2000, 800, False, p / p.sum()) >= 1000).sum()
    drawn = to_numpy(random.choice(2000, 800, False, p.astype("float32"), seed=4))
    assert len(set(drawn.tolist())) == 800
    assert abs((drawn >= 1000).sum() - expected) < 50
    rows = np.arange(12.0, dtype="float32").reshape(2, 6)
    assert to_numpy(random.choice(rows, (3,), replace=False, axis=1, seed=3)).shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: random.choice(3, 4, replace=False), "at most 3"),
        (lambda: random.choice(3, 2, p=[1.0, 1.0]), "p must have the shape"),
        (lambda: random.choice(3, 2, replace=False, p=[0.0, 1.0, 0.0], seed=1), "out of range|out of bounds"),
        (lambda: random.choice(3, 2, p=[0.0, 0.0, 0.0], seed=1), "out of range|out of bounds"),
        (lambda: random.choice(0, 2), "at least one slice"),
    ],
)
def test_choice_refuses_what_cannot_be_drawn(backend, call, match):
    with pytest.raises(errors.MultiopError, match=match):
        call()


CHOSEN = [[7, 5, 8, 8, 7, 5, 1, 4], [7, 5, 1, 4, 6, 8, 3, 2]]


def test_choice_is_that_of_every_backend(backend):
    assert to_numpy(random.choice(9, 8, p=np.arange(9.0, dtype="float32"), seed=5)).tolist() == CHOSEN[0]
    assert to_numpy(random.choice(9, 8, False, np.arange(9.0, dtype="float32"), seed=5)).tolist() == CHOSEN[1]


def test_multivariate_normal_of_complex_numbers(backend):
    mean, cov = np.complex64([1j, 2]), np.complex64([[2, 0.5 - 1j], [0.5 + 1j, 3]])
    x = to_numpy(random.multivariate_normal((50000,), mean, cov, "complex64", seed=1))
    assert x.dtype == np.complex64
    rest = x - x.mean(0)
    np.testing.assert_allclose(x.mean(0), mean, atol=0.03)
    np.testing.assert_allclose(rest.T @ rest.conj() / len(x), cov, atol=0.06)
    np.testing.assert_allclose(rest.T @ rest / len(x), 0, atol=0.06)

    def energy(cov):
        x = random.multivariate_normal((5,), mean, cov, "complex64", seed=2)
        return multiop.op_sum(multiop.op_square(multiop.op_abs(x)))

    slope = to_numpy(multiop.grad(energy)(multiop.op_convert_to_tensor(cov)))
    for step in (np.complex64([[1, 0], [0, 0]]), np.complex64([[0, -1j], [1j, 0]]), np.complex64([[0, 1], [1, 0]])):
        ahead, behind = (float(energy(cov + h * step)) for h in (1e-2, -1e-2))
        assert np.vdot(slope, step).real == pytest.approx((ahead - behind) / 2e-2, rel=2e-2)
    with pytest.raises(multiop.errors.DTypeError):
        random.multivariate_normal((5,), mean, cov, "float32", seed=2)


def test_multivariate_normal_has_its_mean_covariance_and_gradient(backend):
    mean, cov = np.array([1.0, -2.0], "float32"), np.array([[2.0, 0.6], [0.6, 0.5]], "float32")
    x = to_numpy(random.multivariate_normal((20000,), mean, cov, seed=1))
    np.testing.assert_allclose(x.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.06)

    def drawn(mean, cov):
        return multiop.op_sum(random.multivariate_normal((), mean, cov, seed=4))

    by_mean, by_cov = multiop.grad(drawn, (0, 1))(multiop.op_array(mean), multiop.op_array(cov))
    z = to_numpy(random.normal((2,), seed=4)).astype("float64")

    def expected_sum(cov):
        return (np.linalg.cholesky(cov) @ z).sum()

    steps = np.eye(4).reshape(4, 2, 2) * 1e-4
    expected = [(expected_sum(cov + step) - expected_sum(cov - step)) / 2e-4 for step in steps]
    np.testing.assert_allclose(to_numpy(by_mean), [1, 1])
    np.testing.assert_allclose(np.tril(to_numpy(by_cov)), np.tril(np.reshape(expected, (2, 2))), rtol=1e-3)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_a_pair_of_ints_is_a_key(dtype, backend):
    if backend == "jax" and dtype == "int64" and not multiop.x64():
        pytest.skip("JAX has no 64-bit integers in its 32-bit mode")
    pair = multiop.op_convert_to_tensor([3, 7], dtype)
    key = multiop.op_convert_to_tensor([3, 7], "uint32")
    assert multiop.op_convert_to_numpy(random.key(pair)).tolist() == [3, 7]
    drawn, wanted = (multiop.op_convert_to_numpy(random.uniform((3,), seed=seed)) for seed in (pair, key))
    np.testing.assert_array_equal(drawn, wanted)


@pytest.mark.parametrize(
    ("name", "module", "is_known"),
    [
        ("SeedGenerator", "keras.src.random.seed_generator", True),
        ("SeedGenerator", "generators", False),
        ("Variable", "keras.src.backend.common.variables", False),
    ],
)
def test_a_generator_of_keras_is_known_by_its_class(backend, name, module, is_known):
    class_of_keras = type(name, (), {"__module__": module, "next": lambda self: np.array([3, 7], np.int32)})
    seed = type("Own", (class_of_keras,), {})()
    if is_known:
        assert to_numpy(random.key(seed)).tolist() == [3, 7]
    else:
        with pytest.raises(errors.ArgumentTypeError, match="SeedGenerator"):
            random.key(seed)


def generators():
    """Yield the name, a function that makes a generator from a seed, and the words of each framework's own draw."""
    yield "numpy", np.random.default_rng, lambda generator: generator.integers(0, 2**32, 2, np.uint32)
    if (torch := sys.modules.get("torch")) is not None:
        make = lambda seed: torch.Generator().manual_seed(seed)
        yield "torch", make, lambda generator: torch.randint(0, 2**32, (2,), generator=generator).numpy()
    if (tf := sys.modules.get("tensorflow")) is not None:
        make = tf.random.Generator.from_seed
        yield "tensorflow", make, lambda generator: generator.uniform_full_int((2,), tf.uint32).numpy()


def test_a_generator_of_a_framework_draws_keys_that_follow_from_its_state(backend):
    for name, make, words in generators():
        generator, own = make(5), make(5)
        keys = [to_numpy(random.key(generator)) for _ in range(2)]
        for key in keys:
            assert key.dtype == np.uint32, name
            np.testing.assert_array_equal(key, words(own))
        assert keys[0].tolist() != keys[1].tolist()
        x, y = (to_numpy(random.normal((3,), seed=seed)) for seed in (make(5), keys[0]))
        np.testing.assert_array_equal(x, y)
        assert to_numpy(random.split(make(5), 2)).tolist() == to_numpy(random.split(keys[0], 2)).tolist()


@pytest.mark.traced
def test_a_generator_of_a_framework_draws_in_no_program_that_would_repeat_it(backend):
    for _, make, _ in generators():
        generator, again = make(5), make(5)
        compiled = multiop.jit(lambda x, generator=generator: x + random.uniform((2,), seed=generator))
        with pytest.raises(errors.ArgumentError, match="draw a key outside"):
            compiled(multiop.op_ones(2))
        assert to_numpy(random.key(generator)).tolist() == to_numpy(random.key(again)).tolist()


def test_a_checkpointed_function_refuses_a_generator_that_it_would_run_on(backend):
    x = multiop.op_array([1.0, 2.0])
    for _, make, _ in generators():
        generator, again = make(5), make(5)
        fun = multiop.checkpoint(lambda x, seed=generator: multiop.op_sum(x * random.uniform((2,), seed=seed)))
        with pytest.raises(errors.ArgumentError, match="draw a key outside"):
            multiop.grad(fun)(x)
        assert to_numpy(random.key(generator)).tolist() == to_numpy(random.key(again)).tolist()


def test_a_typed_key_of_jax_is_a_key():
    jax = pytest.importorskip("jax")
    with multiop.use_backend("jax"):
        wanted = random.uniform((3,), seed=jax.random.key_data(jax.random.key(5)))
        np.testing.assert_array_equal(random.uniform((3,), seed=jax.random.key(5)), wanted)
        np.testing.assert_array_equal(jax.jit(lambda key: random.uniform((3,), seed=key))(jax.random.key(5)), wanted)
        with pytest.raises(multiop.errors.ArgumentError, match="a key is uint32"):
            random.uniform((3,), seed=jax.random.key(5, impl="rbg"))


@pytest.mark.parametrize("spread", [math.sqrt(5), 10.0, 100.0], ids=str)
def test_stages_of_binomial_leave_almost_nothing(spread):
    rng = np.random.default_rng(0)
    candidates = [rng.integers(0, 2**32, 20_000) for _ in range(4)]
    with multiop.use_backend("numpy"):
        hat, law = _binomial._hat_and_law(np.float64(4 * spread**2), np.float64(0.5))
        rejected = 1 - np.mean(_binomial._attempt(*candidates, *hat, *law)[1])
    (first, _), (second, left), (rest, _) = _binomial._stages(spread, (1, 4))
    assert (first, second) == (1, 4)
    assert rejected - 0.01 < left < rejected + 0.02
    assert left ** (first + second + rest) <= 1e-14 < left ** (first + second + rest - 1)
