"""Sums on the way to an ordinary number: small integers do not wrap, and 16-bit floats are added up in float32."""

import numpy as np
import pytest

import multiop
from multiop import ops

HALF = {"float16": (5000, 2.0**-9), "bfloat16": (700, 2.0**-6)}  # more ones than can be counted one by one


def on_host(x):
    return np.asarray(multiop.op_convert_to_numpy(x)).astype(np.float64)


def check(function, arrays, expected, dtype, tolerance):
    tensors = [ops.cast(np.asarray(x, "float32"), dtype) for x in arrays]
    found = on_host(function(*tensors))
    np.testing.assert_allclose(found, expected, rtol=tolerance, err_msg=dtype)


def many(n):
    """Return functions of `n` entries with their operands and results, by name."""
    at_0, ones, pair = np.zeros(n, "int32"), np.ones(n), np.ones(2)
    rows = np.ones((n, 2))

    def gradient(function):
        return multiop.grad(lambda *xs: ops.sum(function(*xs)))

    return {
        "einsum, vectors": (lambda a, b: ops.einsum("i,i->", a, b), (ones, ones), n),
        "einsum, matrices": (lambda a, b: ops.einsum("ij,jk->ik", a, b), (rows.T, rows), np.full((2, 2), n)),
        "einsum, three": (lambda a, b, c: ops.einsum("i,i,i->", a, b, c), (ones,) * 3, n),
        "einsum, one": (lambda a: ops.einsum("ij->j", a), (rows,), [n, n]),
        "matmul": (ops.matmul, (rows.T, rows), np.full((2, 2), n)),
        "correlate": (ops.correlate, (ones, ones), [n]),
        "scatter": (lambda u: ops.scatter(at_0[:, None], u, (2,)), (ones,), [n, 0]),
        "add_at": (lambda x, u: ops.add_at(x, at_0, u), (np.zeros(2), 1.0), [n, 0]),
        "bincount": (lambda w: ops.bincount(at_0, weights=w), (ones,), [n]),
        "segment_sum": (lambda x: ops.segment_sum(x, at_0, 2), (ones,), [n, 0]),
        "conv_transpose": (
            lambda x, w: ops.conv_transpose(x, w)[:, n - 1],
            (ones.reshape(1, n, 1), ones.reshape(n, 1, 1)),
            [[n]],
        ),
        "gradient of take": (gradient(lambda x: ops.take(x, at_0, 0)), (np.ones((2, 1)),), [[n], [0]]),
        "gradient of take_along_axis": (gradient(lambda x: ops.take_along_axis(x, at_0, 0)), (pair,), [n, 0]),
        "gradient of get_item": (gradient(lambda x: ops.get_item(x, at_0)), (pair,), [n, 0]),
        "gradient of get_item, two": (
            gradient(lambda x: ops.get_item(x, (at_0, at_0))),
            (np.eye(2),),
            [[n, 0], [0, 0]],
        ),
        "gradient of pad": (gradient(lambda x: ops.pad(x, (n, 0), "edge")), (pair,), [n + 1, 1]),
        "gradient of broadcast_to": (gradient(lambda x: ops.broadcast_to(x, (n, 2))), (pair,), [n, n]),
        "gradient of repeat": (gradient(lambda x: ops.repeat(x, n, 0)), (pair[None],), [[n, n]]),
        "gradient of tile": (gradient(lambda x: ops.tile(x, n)), (pair,), [n, n]),
        "gradient of add": (gradient(ops.add), (pair, rows), [n, n]),
        "gradient of multiply": (gradient(ops.multiply), (pair, rows), [n, n]),
        "gradient of maximum": (gradient(ops.maximum), (2 * pair, rows), [n, n]),
        "gradient of where": (gradient(lambda x, y: ops.where(y > 0, x, y)), (pair, rows), [n, n]),
        "gradient of clip": (gradient(lambda x, y: ops.clip(y, x, 5)), (2 * pair, rows), [n, n]),
        "gradient of beta": (gradient(lambda b, x: ops.layer_normalization(x, beta=b)), (pair, rows), [n, n]),
        "gradient of gamma": (
            gradient(lambda g, x: ops.layer_normalization(x, g)),
            (pair, np.tile([-1.0, 1.0], (n, 1))),
            [-n, n],
        ),
    }


@pytest.mark.parametrize("dtype", HALF)
def test_many_terms_in_16_bits(backend, dtype):
    n, tolerance = HALF[dtype]
    wrong = []
    for name, (function, arrays, expected) in many(n).items():
        try:
            check(function, arrays, expected, dtype, tolerance)
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("axis", [None, 0])
def test_many_exponentials_in_float16(backend, axis):
    x, n = np.zeros((70000, 1) if axis == 0 else 70000), 70000
    check(lambda x: ops.logsumexp(x, axis), [x], np.full(() if axis is None else 1, np.log(n)), "float16", 2e-3)
    axis = -1 if axis is None else axis
    check(lambda x: ops.max(ops.softmax(x, axis)), [x], 1 / n, "float16", 2e-2)
    check(lambda x: ops.max(ops.log_softmax(x, axis)), [x], -np.log(n), "float16", 2e-3)


LARGE = {
    "batch_normalization": (
        lambda x: ops.batch_normalization_with_moments(x, -1)[0],
        [[[-600.0], [600.0]]],
        [[-1.0], [1.0]],
    ),
    "layer_normalization": (
        lambda x, g, b: ops.layer_normalization(x, g, b)[0, -1:],
        [[[-1.0, -1.0, -1.0, 6.0]], np.full(4, 5e4), np.full(4, -5e4)],
        [5e4 * 3**0.5 - 5e4],
    ),
    "group_normalization": (
        lambda x, g, b: ops.group_normalization(x, 1, g, b)[0, -1:],
        [[[-1.0, -1.0, -1.0, 6.0]], np.full(4, 5e4), np.full(4, -5e4)],
        [5e4 * 3**0.5 - 5e4],
    ),
    "average": (lambda x, w: ops.average(x, weights=w), [[1e3, 1e3], [1e3, 1e3]], 1e3),
    "cross": (ops.cross, [[300.0, 300.0, 300.0], [300.0, 299.0, 301.0]], [600.0, -300.0, -300.0]),
    "prod": (ops.prod, [[512.0, 512.0, 2.0**-9, 2.0**-9]], 1.0),
    "median": (ops.median, [[6e4, 6e4]], 6e4),
    "quantile": (lambda x: ops.quantile(x, 0.25), [[-6e4, 6e4]], -3e4),
    "attention": (
        lambda q, k, v: ops.dot_product_attention(q, k, v)[0, 0, 0],
        [
            np.full((1, 1, 1, 4), 300.0),
            np.reshape([100.0] * 4 + [300.0] * 4, (1, 2, 1, 4)),
            np.reshape([1.0, 2.0], (1, 2, 1, 1)),
        ],
        [2.0],
    ),
    **{
        f"norm of order {p}": (
            lambda x, p=p: ops.norm(x, p),
            [[100.0, 200.0]],
            np.linalg.norm([100.0, 200.0], p),
        )
        for p in (0.5, 2, 3, 4, -2)
    },
}


@pytest.mark.parametrize("case", LARGE)
def test_large_terms_in_float16(backend, case):
    function, arrays, expected = LARGE[case]
    check(
        function, arrays, expected, "float16", 2e-2 if case in ("layer_normalization", "group_normalization") else 2e-3
    )


@pytest.mark.compiler
@pytest.mark.tier("full")
@pytest.mark.parametrize("case", ["median", "average", "norm of order 3", "batch_normalization", "cross", "attention"])
def test_large_terms_in_compiled_float16(backend, case):
    function, arrays, expected = LARGE[case]
    check(multiop.jit(function), arrays, expected, "float16", 2e-3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_integers_become_floats_before_they_overflow(backend, dtype):
    low, top = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([top, top, low, top - 1], dtype)
    wide = x.astype(np.float64)
    for name, function, expected in (
        ("average", lambda x: ops.average(x, weights=ops.abs(ops.cast(x, "int32") > 0)), wide[wide > 0].mean()),
        ("average by itself", lambda x: ops.average(x[:2], weights=x[:2]), float(top)),
        ("mean", ops.mean, wide.mean()),
        ("std", ops.std, wide.std()),
        ("median", ops.median, np.median(wide)),
        ("norm", ops.norm, np.linalg.norm(wide)),
        ("trapezoid", lambda x: ops.trapezoid(np.ones(2, "float32"), x[1:3]), wide[2] - wide[1]),
        ("linspace", lambda x: ops.linspace(x[2], x[0], 3)[1], (low + top) / 2),
    ):
        np.testing.assert_allclose(on_host(function(ops.convert_to_tensor(x))), expected, 1e-6, err_msg=name)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.compiler)])
def test_a_median_of_large_float32(backend, compiled):
    function = multiop.jit(ops.median) if compiled else ops.median
    for x in ([3e38, 3e38], [-3e38, -2e38]):
        np.testing.assert_allclose(on_host(function(np.array(x, "float32"))), np.mean(x), 1e-6)
    assert on_host(function(np.array([-3e38, 3e38], "float32"))) == 0


@pytest.mark.parametrize("method", ["linear", "midpoint"])
def test_a_quantile_beside_infinity(backend, method):
    inf, q = np.inf, [0.0, 0.25, 0.75, 1.0]
    for low, high, between in (
        (-inf, inf, np.nan),
        (-inf, -inf, -inf),
        (inf, inf, inf),
        (1.0, inf, inf),
        (-inf, 1.0, -inf),
    ):
        x = np.array([low, high], "float32")
        for share in (q, np.array(q, "float32"), ops.convert_to_tensor(q)):
            found = on_host(ops.quantile(x, share, method=method))
            np.testing.assert_array_equal(found, [low, between, between, high])


def test_einsum_broadcasts_as_numpy(backend):
    rng = np.random.default_rng(0)
    for subscripts, *shapes in (
        ("...,...", (2, 3), (3,)),
        ("...,...,...", (2, 3), (3,), ()),
        ("...ij,jk...", (2, 3), (3, 4, 5)),
        ("...i,i...", (2, 3), (3, 2)),
        ("...b,...a", (2, 3), (4,)),
        ("ij,ij", (1, 3), (2, 3)),
        ("ij,ij->ij", (1, 3), (2, 1)),
        ("...i,...i->...", (2, 1, 3), (4, 1)),
        ("i...->...i", (2, 3)),
    ):
        xs = [rng.normal(size=shape).astype("float32") for shape in shapes]
        found = on_host(ops.einsum(subscripts, *xs))
        np.testing.assert_allclose(found, np.einsum(subscripts, *xs), 1e-5, 1e-5, err_msg=subscripts)
    with pytest.raises(multiop.errors.ArgumentError, match="ellipsis"):
        ops.einsum("...i->i", np.ones((2, 3), "float32"))
