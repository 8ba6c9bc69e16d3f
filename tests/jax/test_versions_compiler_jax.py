"""What XLA's compiler for a CPU gets wrong: programs of multiop's own are right, and ops in the user's `jax.jit`.

There, what the user's own operators compute is as JAX has it: see docs/limits.md.
"""

import subprocess
import sys

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

import multiop as mo
from multiop._loading import known_faults
from multiop.backends.jax import _cpu_compiler

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.skipif(
        not known_faults.of("jax", jax.__version__, mended=True), reason="a version without these faults"
    ),
]
COMPILED = [mo.jit, pytest.param(jax.jit, marks=pytest.mark.tier("full"))]
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40_000, 3)).astype("float32")
SMALL = RNG.normal(size=(3, 3)).astype("float32")
PRODUCT = (ROWS.astype(float) @ SMALL.T).T


def transposed(m, x):
    return mo.op_matmul(m, mo.op_transpose(x))


REDUCED = {
    "sum of squares": (lambda m, x: mo.op_sum(mo.op_square(transposed(m, x)), 0), (PRODUCT**2).sum(0)),
    "maximum": (lambda m, x: mo.op_max(transposed(m, x), 0), PRODUCT.max(0)),
    "sum of all": (lambda m, x: mo.op_sum(transposed(m, x)), PRODUCT.sum()),
    "sums of rows": (lambda m, x: mo.op_sum(mo.op_square(transposed(m, x)), 1), (PRODUCT**2).sum(1)),
    "norm": (lambda m, x: mo.op_norm(mo.op_einsum("ij,nj->in", m, x), axis=0), np.linalg.norm(PRODUCT, axis=0)),
}


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("name", REDUCED)
def test_reduced_product_of_many_rows(name, compiled):
    fun, expected = REDUCED[name]
    np.testing.assert_allclose(compiled(fun)(SMALL, ROWS), expected, rtol=1e-3, atol=1e-3)


LEFT = [
    pytest.mark.tier("full"),
    pytest.mark.xfail(strict=True, reason="the sizes are those without the batch: see docs/limits.md"),
]


@pytest.mark.skipif(not known_faults.NARROW_PRODUCTS.concerns(jax.__version__), reason="a version without this fault")
@pytest.mark.parametrize("mapped", [mo.vmap, jax.vmap])
@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        (lambda fun: fun, mo.jit),
        pytest.param(mo.jit, lambda fun: fun, marks=LEFT),
        pytest.param(lambda fun: fun, jax.jit, marks=LEFT),
    ],
)
def test_product_that_vmap_makes_large(inside, outside, mapped):
    norm = inside(lambda row: mo.op_mean(mo.op_square(mo.op_matmul(SMALL, row))))
    np.testing.assert_allclose(outside(mapped(norm))(jnp.asarray(ROWS)), (PRODUCT**2).mean(0), rtol=1e-3, atol=1e-3)


HIGH_RANK = """
import jax, numpy as np, multiop as mo
mo.set_backend("jax")
shape = (3, 1, 2, 2, 8, 8, 8)
a, b = np.random.default_rng(0).normal(size=(2, *shape)).astype("float32")
x, y = jax.numpy.asarray(a), jax.numpy.asarray(b)
for name, expected in (("nansum", a.sum(3)), ("nanvar", a.var(3)), ("nanstd", a.std(3))):
    np.testing.assert_allclose(getattr(mo, "op_" + name)(x, axis=3), expected, rtol=1e-3, atol=1e-5)
for compiled in (mo.jit, jax.jit):
    product = mo.op_multiply if compiled is jax.jit else lambda x, y: x * y
    summed = compiled(lambda x, y: mo.op_sum(product(x, y), axis=3))
    np.testing.assert_allclose(summed(x, y), (a * b).sum(3), rtol=1e-3, atol=1e-5)
    rows = compiled(lambda x, y: mo.op_sum(mo.op_reshape(product(x, y), (6, 2, -1)), axis=1))
    np.testing.assert_allclose(rows(x, y), (a * b).reshape(6, 2, -1).sum(1), rtol=1e-3, atol=1e-5)
"""


def test_sum_of_product_of_high_rank():
    done = subprocess.run([sys.executable, "-c", HIGH_RANK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.returncode} {done.stderr}"


def shift(x):
    return mo.op_set_item(x, slice(1, None), x[:-1])


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("shape", [(8,), (5, 7, 3), (1000, 1)])
def test_shift_then_reshape(shape, compiled):
    x = np.arange(np.prod(shape), dtype="int32").reshape(shape)
    expected = np.concatenate([x[:1], x[:-1]]) * 2
    np.testing.assert_array_equal(compiled(lambda x: mo.op_expand_dims(shift(x * 2), 0))(x), expected[None])
    np.testing.assert_array_equal(compiled(lambda x: mo.op_reshape(shift(x * 2), (-1,)))(x), expected.ravel())


OVERFLOWING = {
    "int8": [-128, 12, 7, 20, 11],
    "int16": [-(2**15), 200, 7, 181, 150],
    "int32": [-(2**31), 50_000, 7, 46_341, -70_000],
}


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("dtype", OVERFLOWING)
def test_integers_that_overflow(dtype, compiled):
    x = np.array(OVERFLOWING[dtype], dtype)
    for fun, native in (
        (lambda x: mo.op_abs(mo.op_multiply(x, x)), lambda x: np.abs(x * x)),
        (lambda x: mo.op_less(mo.op_square(x), 0), lambda x: x * x < 0),
        (lambda x: mo.op_greater_equal(mo.op_power(x, 2), 0), lambda x: x * x >= 0),
        (lambda x: mo.op_less(mo.op_abs(x), 0), lambda x: np.abs(x) < 0),
        (lambda x: mo.op_sign(mo.op_abs(x)), lambda x: np.sign(np.abs(x))),
        (lambda x: mo.op_floor_divide(mo.op_multiply(x, x), 8), lambda x: x * x // 8),
    ):
        np.testing.assert_array_equal(compiled(fun)(x), native(x))


BYTES = {
    "add": (lambda x: mo.op_add(x, x), lambda x: x + x),
    "negative": (lambda x: mo.op_subtract(mo.op_zeros_like(x), x), lambda x: 0 - x),
    "multiply": (lambda x: mo.op_multiply(x, x), lambda x: x * x),
}


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", BYTES)
def test_sums_of_bytes_that_overflow(name, dtype, compiled):
    fun, native = BYTES[name]
    x = RNG.integers(0, 100 if dtype == "int8" else 200, 20_000).astype(dtype)
    expected = native(x).astype("float64")
    np.testing.assert_allclose(compiled(lambda x: mo.op_mean(fun(x)))(x), expected.mean(), rtol=1e-3)
    weighted = compiled(lambda x: mo.op_average(fun(x), weights=mo.op_cast(x, "float32")))
    np.testing.assert_allclose(weighted(x), np.average(expected, weights=x), rtol=1e-3)


FUNCTIONS = ("exp", "exp2", "sinh", "cosh", "tanh", "sigmoid", "softmax", "silu", "elu", "expm1")


OTHERS = pytest.param(
    jax.jit,
    marks=[
        pytest.mark.tier("full"),
        pytest.mark.xfail(
            strict=True, reason="JAX's own, https://github.com/jax-ml/jax/issues/29537: see docs/limits.md"
        ),
    ],
)


@pytest.mark.skipif(not known_faults.NANS.concerns(jax.__version__), reason="a version without this fault")
@pytest.mark.parametrize("compiled", [mo.jit, OTHERS])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_functions_of_nan(dtype, compiled):
    x = mo.op_cast(np.full(17, 0.123, "float32"), dtype)
    for shifted in (lambda x: x * float("nan"), lambda x: x + float("nan")):
        results = compiled(lambda x: [getattr(mo, f"op_{name}")(shifted(x)) for name in FUNCTIONS])(x)
        for name, y in zip(FUNCTIONS, results, strict=True):
            assert np.isnan(np.asarray(y).astype("float32")).all(), name


NANS = np.full(17, np.nan, "float32")
COMPUTED = {  # NaN that the compiler finds by itself
    "logarithm": lambda x: x + jnp.log(jnp.zeros(17, x.dtype) - 1),
    "indices": lambda x: x + jnp.sqrt(-1.0 - jnp.arange(17, dtype=x.dtype)),
    "infinities": lambda x: (x * 0 + jnp.inf) - jnp.inf,
    "bits": lambda x: x + jax.lax.bitcast_convert_type(jnp.full(17, 0x7FC00000, "int32"), "float32").astype(x.dtype),
    "quotient": lambda x: x * (jnp.zeros((), x.dtype) / 0),
    "closed over": lambda x: x * NANS.astype(x.dtype),
    "a program inside": lambda x: jax.jit(lambda y: y * jnp.nan)(x),
    "a branch": lambda x: jax.lax.cond(True, lambda: x * jnp.nan, lambda: x),
    "one step": lambda x: jax.lax.scan(lambda c, _: (c * jnp.nan, None), x, None, length=1)[0],
}
PRIMITIVES = ("exp", "exp2", "sinh", "cosh", "expm1", "logistic")


@pytest.mark.parametrize("dtype", ["bfloat16", pytest.param("float32", marks=pytest.mark.tier("full"))])
@pytest.mark.parametrize("name", COMPUTED)
def test_functions_of_what_is_computed_to_nan(name, dtype):
    x = jnp.full(17, 0.123, dtype)
    computed = COMPUTED[name]
    for y in mo.jit(lambda x: [getattr(jax.lax, function)(computed(x)) for function in PRIMITIVES])(x):
        assert jnp.isnan(y).all()
    for y in mo.jit(lambda x: mo.op_scan(lambda c, _: (c, mo.op_elu(computed(c))), x, jnp.arange(2.0))[1])(x):
        assert jnp.isnan(y).all()


def test_programs_without_a_constant_nan_stay_as_they_are():
    def attended(x, mask):
        biased = jnp.where(mask, x / 2, -jnp.inf) + jnp.where(mask, 0.0, -jnp.inf)
        return mo.op_softmax(biased), mo.op_log_softmax(x), jnp.exp(jnp.max(x, 1)), jax.lax.scan(
            lambda c, x: (c * 0.5 + 1, jnp.exp(c)), 0.0, x
        )  # fmt: skip

    x = jnp.ones((4, 4))
    assert "ne " not in str(jax.make_jaxpr(mo.jit(attended))(x, x > 0))
    assert "ne " in str(jax.make_jaxpr(mo.jit(lambda x: jnp.exp(x * jnp.nan)))(x)) or not known_faults.NANS.concerns(
        jax.__version__
    )


@pytest.mark.skipif(not known_faults.NANS.concerns(jax.__version__), reason="a version without this fault")
def test_a_program_that_is_called_often_is_followed_once(monkeypatch):
    followed, follow = [], _cpu_compiler._follow
    monkeypatch.setattr(_cpu_compiler, "_follow", lambda *given: followed.append(given[0]) or follow(*given))
    called = jax.jit(lambda x: jnp.exp(x) + 1)
    mo.jit(lambda x: [called(x) for _ in range(9)])(jnp.ones(3))
    assert len(followed) == 2  # the outer one, too


def test_derivatives_and_maps_are_of_the_operations():
    x = jnp.arange(3.0)
    np.testing.assert_allclose(jax.jit(jax.hessian(lambda x: jnp.sum(jnp.exp(x))))(x), np.diag(np.exp(x)), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(lambda x: x * jnp.abs(x))))(x), 2 * x)
    assert np.isnan(jax.grad(mo.jit(jnp.exp))(jnp.nan)) and jax.grad(mo.jit(jnp.exp))(-jnp.inf) == 0
    assert np.signbit(mo.jit(jnp.sinh)(-0.0))
    assert mo.jit(jnp.square)(jnp.asarray(2)).weak_type
    assert "reduce_precision" not in str(jax.make_jaxpr(lambda x: jnp.sum(x * x, 0))(jnp.ones((3, 20_000))))


@pytest.mark.parametrize("dtype", OVERFLOWING)
def test_operators_inside_of_multiop_jit(dtype):
    x = np.array(OVERFLOWING[dtype], dtype)
    np.testing.assert_array_equal(mo.jit(lambda x: (x * x // 8, x**2 >= 0))(jnp.asarray(x)), (x * x // 8, x**2 >= 0))
    assert np.isnan(mo.jit(lambda x: jnp.exp(x * jnp.nan))(jnp.ones(17))).all()
