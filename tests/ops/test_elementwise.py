"""What the rows of bits, windows, spaced numbers and elementwise functions cannot say."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import multiop as mo
from multiop import errors
from multiop._values import dtypes

X = np.ones((2, 3), np.float32)
I = np.ones((2, 3), np.int32)  # noqa: E741
Z = np.ones((2, 3), np.complex64)
B = np.ones((2, 3), bool)

BITS = ["op_bitwise_and", "op_bitwise_or", "op_bitwise_xor", "op_left_shift", "op_right_shift"]
PAIRS = ["op_logaddexp", "op_logaddexp2", "op_fmod", "op_heaviside", "op_nextafter", "op_polar", "op_fmax", "op_fmin"]
SINGLE = ["op_cbrt", "op_erf", "op_erfc", "op_erfinv", "op_i0", "op_isposinf", "op_isneginf", "op_signbit"]


def values(x):
    return mo.op_convert_to_numpy(x)


def derivatives(f, x, order):
    """Return the derivatives of `f`, entry by entry, up to `order`, in reverse mode."""
    found = []
    for _ in range(order):
        f = slope(f)
        found.append(values(f(x)).tolist())
    return found


def slope(f):
    def gradient(x):
        y, pullback = mo.vjp(f, x)
        return pullback(mo.op_ones_like(y))[0]

    return gradient


@pytest.mark.parametrize(
    ("op", "args"),
    [
        *((op, (X, I)) for op in [*BITS, "op_gcd", "op_lcm"]),
        *((op, (B, B)) for op in ("op_gcd", "op_lcm")),
        ("op_bitwise_invert", (X,)),
        ("op_bitwise_not", (Z,)),
        ("op_ldexp", (X, X)),
        ("op_ldexp", (Z, I)),
        *((op, (Z, Z)) for op in PAIRS),
        *((op, (Z,)) for op in SINGLE),
    ],
)
def test_a_dtype_that_is_not_accepted(backend, op, args):
    with pytest.raises(errors.DTypeError):
        getattr(mo, op)(*args)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: mo.op_linspace(0, 1, -1), errors.ArgumentError, "num must not be negative"),
        (lambda: mo.op_linspace(0, 1, 2.0), errors.ArgumentTypeError, "num must be an int"),
        (lambda: mo.op_linspace(0, 1, 2, endpoint=1), errors.ArgumentTypeError, "endpoint"),
        (lambda: mo.op_linspace(0, 1, 2, retstep="yes"), errors.ArgumentTypeError, "retstep"),
        (lambda: mo.op_linspace(X, I[:, :2], 2), errors.ArgumentError, "op_linspace"),
        (lambda: mo.op_linspace(1j, 2, 3, dtype="int32"), errors.DTypeError, "imaginary|complex"),
        (lambda: mo.op_logspace(0, 1, -1), errors.ArgumentError, "num must not be negative"),
        (lambda: mo.op_geomspace(0, 1, 3), errors.ArgumentError, "start must not be 0"),
        (lambda: mo.op_geomspace(1, 0.0, 3), errors.ArgumentError, "stop must not be 0"),
        (lambda: mo.op_geomspace(Z, 2, 3), errors.DTypeError, "complex"),
        (lambda: mo.op_isclose(X, X, rtol=-1.0), errors.ArgumentError, "rtol must not be negative"),
        (lambda: mo.op_isclose(X, X, atol=float("nan")), errors.ArgumentError, "atol"),
        (lambda: mo.op_allclose(X, X, atol="x"), errors.ArgumentTypeError, "atol must be a real number"),
        (lambda: mo.op_allclose(X, X, equal_nan=None), errors.ArgumentTypeError, "equal_nan must be a bool"),
        (lambda: mo.op_nan_to_num(X, nan=None), errors.ArgumentTypeError, "nan must be a real number"),
        (lambda: mo.op_nan_to_num(X, posinf=1j), errors.ArgumentTypeError, "posinf must be a real number"),
        (lambda: mo.op_kaiser(3, "x"), errors.ArgumentTypeError, "beta must be a real number"),
        *(
            (lambda op=op, x=x: getattr(mo, op)(x, *[1.0] * (op == "op_kaiser")), error, f"{op}: x must")
            for op in ("op_bartlett", "op_blackman", "op_hamming", "op_hanning", "op_kaiser")
            for x, error in ((-1, errors.ArgumentError), (2.5, errors.ArgumentTypeError))
        ),
    ],
)
def test_a_bad_option(backend, call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("dtype", dtypes.INTEGER)
def test_shifts_of_every_width(backend, dtype, multiop_x64):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 1, 5], dtype)[:, None]
    y = np.array([0, 1, info.bits - 1, info.bits, 100], dtype)
    np.testing.assert_array_equal(values(mo.op_left_shift(x, y)), np.left_shift(x, y))
    np.testing.assert_array_equal(values(mo.op_right_shift(x, y)), np.right_shift(x, y))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_divisors_of_the_most_negative_integer(backend, dtype, multiop_x64):
    low = np.iinfo(dtype).min
    x1, x2 = np.array([[low, 0, 6, low // 2]], dtype), np.array([[low], [0], [-4], [3]], dtype)
    np.testing.assert_array_equal(values(mo.op_gcd(x1, x2)), np.gcd(x1, x2))
    tensors = mo.op_convert_to_tensor(x1), mo.op_convert_to_tensor(x2)
    np.testing.assert_array_equal(values(mo.jit(mo.op_gcd)(*tensors)), np.gcd(x1, x2))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(values(mo.op_lcm(x1, x2)), np.lcm(x1, x2))


def test_bool_shifts_are_those_of_integers(backend):
    assert mo.op_dtype(mo.op_left_shift(B, 1)) == "int32"
    assert values(mo.op_left_shift(True, 3)).tolist() == 8


def test_sinc_at_zero(backend, multiop_x64):
    first, second, third = derivatives(mo.op_sinc, mo.op_convert_to_tensor([0.0, 1e-8], "float64"), 3)
    np.testing.assert_allclose(first, [0.0, -(np.pi**2) / 3 * 1e-8], rtol=1e-12)
    np.testing.assert_allclose(second, [-(np.pi**2) / 3] * 2, rtol=1e-12)
    np.testing.assert_allclose(third, [0.0, np.pi**4 / 5 * 1e-8], rtol=1e-12)


def test_sinc_of_large_numbers(backend):
    assert values(mo.op_sinc(np.float32([1e4 + 0.5, 123456.0, 1e30]))).tolist()[1:] == [0.0, 0.0]
    np.testing.assert_allclose(values(mo.op_sinc(np.float32([10000.5]))), np.sinc([10000.5]), rtol=1e-6)


def test_logaddexp_at_a_tie_and_far_apart(backend, multiop_x64):
    for op, scale in ((mo.op_logaddexp, 1.0), (mo.op_logaddexp2, np.log(2))):
        x = mo.op_convert_to_tensor([0.0, 2000.0, -2000.0, np.inf, -np.inf], "float64")
        first, second = derivatives(lambda x, op=op: op(x, 0.0), x, 2)
        np.testing.assert_allclose(first, [0.5, 1.0, 0.0, 1.0, 0.0])
        np.testing.assert_allclose(second, [0.25 * scale, 0.0, 0.0, 0.0, 0.0])


def test_bessel_at_zero(backend, multiop_x64):
    first, second = derivatives(mo.op_i0, mo.op_convert_to_tensor([0.0, 1e-3], "float64"), 2)
    np.testing.assert_allclose(first, [0.0, 5.000000625e-4], rtol=1e-9)
    np.testing.assert_allclose(second, [0.5, 0.5000001875], rtol=1e-9)


def test_erfinv_at_the_ends(backend, multiop_x64):
    x = mo.op_convert_to_tensor([-1.0, 0.0, 1.0], "float64")
    (first,) = derivatives(mo.op_erfinv, x, 1)
    assert first == [np.inf, pytest.approx(np.sqrt(np.pi) / 2), np.inf]


@pytest.mark.compiler  # XLA's cube root has fewer digits where nothing is fused
def test_cbrt_keeps_its_digits(backend):
    x = np.float32([8, 27, 1e-30, 1e30, 1.2e-38, 5, -64, 1e-37, 3e38])
    np.testing.assert_allclose(values(mo.op_cbrt(x)), np.cbrt(x.astype("float64")), rtol=2e-7)


def test_ends_of_two_dtypes(backend, multiop_x64):
    x = mo.op_convert_to_tensor([0.5], "float64")
    assert values(mo.op_linspace(x, 0.1, 2))[-1].tolist() == [0.1]
    assert mo.op_dtype(mo.op_linspace(mo.op_convert_to_tensor(1, "float16"), 2, 3)) == "float16"
    assert mo.op_dtype(mo.op_geomspace(x, mo.op_convert_to_tensor(1, "float32"), 3)) == "float64"


def test_linspace_of_large_halves(backend):
    found = values(mo.op_linspace(np.float16(0), np.float16(60000), 3))
    assert found.tolist() == [0.0, 30000.0, 60000.0]


def test_integers_between_integers(backend):
    assert values(mo.op_linspace(0, 7, 50, dtype="int32")).tolist() == [k // 7 for k in range(50)]
    assert values(mo.op_linspace(0, -10, 4, dtype="int32")).tolist() == [0, -4, -7, -10]
    assert values(mo.op_logspace(0, 4, 5, dtype="int32")).tolist() == [1, 10, 100, 1000, 10000]
    assert values(mo.op_geomspace(1, 256, 9, dtype="int32")).tolist() == [2**k for k in range(9)]


def test_spaced_numbers_have_gradients_at_both_ends(backend):
    for op in (mo.op_linspace, mo.op_geomspace):
        y, pullback = mo.vjp(lambda a, b, op=op: op(a, b, 3), *map(mo.op_convert_to_tensor, (2.0, 8.0)))
        for k, ratio in enumerate((0.0, 0.5, 1.0)):
            seed = np.eye(3, dtype=np.float32)[k]
            grads = [float(values(g)) for g in pullback(mo.op_convert_to_tensor(seed))]
            middle = float(values(y)[k]) if op is mo.op_geomspace else 1.0
            by = (2.0, 8.0) if op is mo.op_geomspace else (1.0, 1.0)
            np.testing.assert_allclose(grads, [(1 - ratio) * middle / by[0], ratio * middle / by[1]], rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_windows_are_of_floatx(backend, dtype, multiop_x64):
    before = mo.floatx()
    mo.set_floatx(dtype)
    try:
        for op, reference, options in ((mo.op_hamming, np.hamming, ()), (mo.op_kaiser, np.kaiser, (8.6,))):
            found = values(op(33, *options))
            assert found.dtype == dtype
            np.testing.assert_allclose(found, reference(33, *options), rtol=8 * np.finfo(dtype).eps)
    finally:
        mo.set_floatx(before)


def test_the_length_of_a_window_may_be_a_tensor(backend):
    assert mo.op_shape(mo.op_hanning(mo.op_convert_to_tensor(5))) == (5,)


def test_isclose_of_integers_is_exact(backend):
    x = np.array([2**31 - 1, -(2**31), 2**24 + 1], np.int32)
    y = np.array([-(2**31), 2**31 - 1, 2**24], np.int32)
    assert values(mo.op_isclose(x, y, rtol=0.0, atol=0.5)).tolist() == [False, False, False]
    assert values(mo.op_isclose(x, x, rtol=0.0, atol=0.0)).all()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_every_derivative_of_expm1_keeps_its_digits(backend, multiop_x64, dtype):
    x = np.asarray([-40.0, -20.0, -1.0, 0.0, 2.0]).astype(dtype)  # expm1(x) + 1 has no digit left at -40
    x = x * (1 + 0.01j) if dtype == "complex128" else x
    t, conjugate = np.asarray([1.0, 2.0, 3.0, 4.0, 5.0]).astype(dtype), np.conj

    def total(x):
        return mo.op_sum(mo.op_real(mo.op_expm1(x)))

    def close(found, expected):
        np.testing.assert_allclose(mo.op_convert_to_numpy(found), expected, rtol=1e-14)

    tensor, gradient = mo.op_convert_to_tensor(x), mo.grad(total)
    close(mo.op_expm1(tensor), np.expm1(x))
    close(gradient(tensor), conjugate(np.exp(x)))
    close(mo.jit(gradient)(tensor), conjugate(np.exp(x)))
    close(mo.vmap(mo.grad(lambda x: mo.op_real(mo.op_expm1(x))))(tensor), conjugate(np.exp(x)))
    close(mo.jvp(mo.op_expm1, (tensor,), (mo.op_convert_to_tensor(t),))[1], np.exp(x) * t)
    close(mo.grad(lambda x: mo.op_sum(mo.op_real(gradient(x))))(tensor), conjugate(np.exp(x)))
    close(mo.jvp(gradient, (tensor,), (mo.op_convert_to_tensor(t),))[1], conjugate(np.exp(x) * t))


@pytest.mark.parametrize("dtype", dtypes.FLOATING)
def test_ldexp_is_exact_at_the_extremes_compiled_too(backend, dtype, multiop_x64):
    info = ml_dtypes.finfo(dtype)
    sizes = [0.0, float(info.tiny), float(info.eps), 1.0, 1.5, 3.0, float(info.max), np.inf]
    powers = [0, 3, 14, 30, 126, 127, 150, 200, 300, 1022, 1100, 5000, 2**31 - 1]
    pairs = itertools.product([*sizes, *[-x for x in sizes], np.nan], [*powers, *[-n for n in powers], -(2**31)])
    x1, x2 = map(np.array, zip(*pairs, strict=True))
    with np.errstate(over="ignore", under="ignore"):
        expected = [np.ldexp(x, x2.astype(np.int32)).astype(dtypes.to_numpy(dtype)) for x in (x1, np.ones_like(x1))]
    x1, x2 = mo.op_cast(x1, dtype), mo.op_convert_to_tensor(x2.astype(np.int32))

    def both(x):
        y, pullback = mo.vjp(lambda x: mo.op_ldexp(x, x2), x)
        return y, pullback(mo.op_ones_like(y))[0], mo.op_ldexp(x, x2)

    for way in (both, mo.jit(both)):
        for found, exact in zip(way(x1), [*expected, expected[0]], strict=True):
            found, exact = values(found).astype(np.float64), exact.astype(np.float64)
            flushed = (found == 0) & (np.abs(exact) < float(info.tiny))  # some compilers have nothing below `tiny`
            np.testing.assert_array_equal(np.where(flushed, exact, found), exact)


@pytest.mark.parametrize("op", ["op_mod", "op_floor_divide", "op_fmod", "op_power", "op_gcd", "op_left_shift"])
@pytest.mark.parametrize("way", ["jit", "vmap"])
def test_traced_integers_beside_one_of_the_host(backend, op, way):
    x = np.array([7, -5, 3], np.int32)
    expected = mo.op_convert_to_numpy(getattr(mo, op)(x, 2)).tolist()
    for second in (2, np.int32(2)):
        found = getattr(mo, way)(lambda x, second=second: getattr(mo, op)(x, second))(mo.op_convert_to_tensor(x))
        assert mo.op_convert_to_numpy(found).tolist() == expected


@pytest.mark.parametrize("n", [4.0, np.float32(4), np.array(4.0), True, np.bool_(True), 0.0])
def test_windows_of_whole_numbers_of_any_kind(backend, n):
    for op in (mo.op_bartlett, mo.op_hanning, lambda x: mo.op_kaiser(x, 2.0)):
        expected = mo.op_convert_to_numpy(op(int(n)))
        np.testing.assert_array_equal(mo.op_convert_to_numpy(op(n)), expected, strict=True)
        np.testing.assert_array_equal(mo.op_convert_to_numpy(op(mo.op_convert_to_tensor(n))), expected, strict=True)


def test_a_kaiser_window_is_differentiated_in_its_shape(backend, multiop_x64):
    weights = np.arange(1.0, 6)
    for beta in (3.0, -3.0, 0.5):
        window = mo.op_kaiser(5, mo.op_convert_to_tensor(beta, "float64"))
        assert mo.op_dtype(window) == "float64"
        np.testing.assert_allclose(mo.op_convert_to_numpy(window), np.kaiser(5, beta), 1e-12)
        first = mo.grad(lambda beta: mo.op_sum(mo.op_multiply(mo.op_kaiser(5, beta), weights)))
        ends = [(weights * np.kaiser(5, beta + step)).sum() for step in (1e-5, -1e-5)]
        beta = mo.op_convert_to_tensor(beta, "float64")
        np.testing.assert_allclose(mo.op_convert_to_numpy(first(beta)), (ends[0] - ends[1]) / 2e-5, 1e-8)
        slopes = [float(mo.op_convert_to_numpy(first(mo.op_add(beta, step)))) for step in (1e-4, -1e-4)]
        np.testing.assert_allclose(
            mo.op_convert_to_numpy(mo.grad(first)(beta)), (slopes[0] - slopes[1]) / 2e-4, 1e-6, 1e-8
        )
    first = mo.grad(lambda beta: mo.op_sum(mo.op_multiply(mo.op_kaiser(5, beta), weights)))
    zero = mo.op_convert_to_tensor(0.0, "float64")
    assert float(mo.op_convert_to_numpy(first(zero))) == 0.0
    curve = -0.5 * (weights * np.array([1.0, 0.25, 0.0, 0.25, 1.0])).sum()
    np.testing.assert_allclose(mo.op_convert_to_numpy(mo.grad(first)(zero)), curve, 1e-12)
    with pytest.raises(errors.ArgumentError, match="beta"):
        mo.op_kaiser(3, mo.op_convert_to_tensor([1.0, 2.0]))
    with pytest.raises(errors.DTypeError):
        mo.op_kaiser(3, mo.op_convert_to_tensor(1j))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint8", "bool", "complex64"])
def test_sums_and_means_in_a_dtype(backend, dtype):
    x = np.array([[100, 27, 3], [0, 0, 2]], np.float32)
    total = mo.op_sum(x, 1, dtype=dtype)
    assert mo.op_dtype(total) == dtype
    native = mo.op_convert_to_numpy(mo.op_cast(x, dtype)).dtype
    expected = x.astype(native).sum(1, dtype=native)
    np.testing.assert_array_equal(mo.op_convert_to_numpy(total), expected)
    if dtype in ("int8", "uint8", "bool"):
        with pytest.raises(errors.DTypeError, match="average"):
            mo.op_mean(x, dtype=dtype)
        return
    mean = mo.op_mean(x.astype(np.int32), 0, True, dtype)
    assert mo.op_dtype(mean) == dtype
    np.testing.assert_array_equal(mo.op_convert_to_numpy(mean), x.astype(native).mean(0, keepdims=True))
    slope = mo.grad(lambda x: mo.op_real(mo.op_sum(x, dtype=dtype)))(mo.op_convert_to_tensor(x))
    np.testing.assert_array_equal(mo.op_convert_to_numpy(slope), np.ones_like(x), strict=True)


def test_a_complex_sum_keeps_its_imaginary_part(backend):
    for op in (mo.op_sum, mo.op_mean):
        with pytest.raises(errors.DTypeError):
            op([1j], dtype="float32")


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal"])
def test_a_comparison_that_is_negated_is_true_of_nan(backend, name):
    """In a graph, TensorFlow would exchange the comparison for its opposite, which is false of NaN too."""
    x, y = np.array([np.nan, 1.0, np.nan, 2.0], "float32"), np.array([1.0, np.nan, np.nan, 3.0], "float32")
    compare = getattr(mo, f"op_{name}")
    expected = ~getattr(np, name)(2 * x, y)
    for negate in (mo.op_logical_not, mo.op_bitwise_invert):
        function = mo.jit(lambda x, y, negate=negate: negate(compare(mo.op_multiply(x, 2.0), y)))
        np.testing.assert_array_equal(mo.op_convert_to_numpy(function(x, y)), expected)
    power = mo.jit(lambda x, y: mo.op_power(mo.op_multiply(x, 0.0), y))
    np.testing.assert_array_equal(mo.op_convert_to_numpy(power(np.ones(2, "float32"), y[2:])), [np.nan, 0.0])


@pytest.mark.parametrize("name", ["log", "log2", "log10", "log1p"])
def test_the_second_derivative_of_a_logarithm_in_float16(backend, name):
    op = getattr(mo, f"op_{name}")
    x = np.float16([0.00390625, 0.0625, 1, 100, 256, 320, 512, 1000])
    slope = mo.grad(lambda x: mo.op_sum(mo.grad(lambda x: mo.op_sum(op(x)))(x)))
    found = mo.op_convert_to_numpy(slope(mo.op_convert_to_tensor(x)))
    base = {"log2": 2, "log10": 10}.get(name, np.e)
    wanted = -1 / np.square(np.float64(x) + (name == "log1p")) / np.log(base)
    finite = np.isfinite(np.float16(wanted))
    np.testing.assert_allclose(found[finite], np.float16(wanted)[finite], rtol=4e-3, atol=1e-7)


@pytest.mark.parametrize("mode", ["reverse", "forward", "second"])
def test_the_slope_of_arccosh_keeps_its_digits_close_to_1(backend, mode):
    """The square of a number close to 1, less 1, would lose half of them."""
    x = np.array([1 + 2.0**-23, 1 + 2.0**-12, 1.0001, 1.001, 1.5, 1e30], np.float32)
    exact = x.astype(np.float64)
    if mode == "second":
        found = values(slope(slope(mo.op_arccosh))(mo.op_convert_to_tensor(x)))[:5]
        expected = (-exact / ((exact - 1) * (exact + 1)) ** 1.5)[:5]
    else:
        given = mo.op_convert_to_tensor(x)
        found = slope(mo.op_arccosh)(given) if mode == "reverse" else mo.jvp(mo.op_arccosh, (given,), (given,))[1]
        found, expected = values(found), 1 / np.sqrt((exact - 1) * (exact + 1))
        expected = expected if mode == "reverse" else expected * exact
    np.testing.assert_allclose(found, expected, rtol=2e-6)


BESIDE = {"log", "log1p", "arctan", "arcsinh", "arccosh"}  # PyTorch and TensorFlow lose the product, docs/limits.md


@pytest.mark.parametrize("name", ["reciprocal", "rsqrt", "cbrt", "divide", "softsign", *sorted(BESIDE)])
def test_a_second_derivative_beyond_the_range_times_what_it_is_composed_with(backend, multiop_x64, name):
    """That of the op alone is subnormal, but the one of `op(exp(x))` is ordinary."""
    owned = {("divide", "tensorflow"), ("softsign", "torch")}
    if (name in BESIDE and backend not in ("numpy", "jax")) or (name, backend) in owned:
        pytest.skip(f"{name} is the framework's own")
    options = [1.0] if name == "divide" else []
    points = {"reciprocal": (30.0, -1), "divide": (30.0, -1), "arctan": (28.0, -1), "softsign": (32.0, -1)}
    x, power = {**points, "rsqrt": (48.0, -0.5), "cbrt": (58.0, 1 / 3)}.get(name, (60.0, 0))

    def slope(x):
        return mo.vjp(lambda x: getattr(mo, f"op_{name}")(*options, mo.op_exp(x)), x)[1](mo.op_ones_like(x))[0]

    x = mo.op_convert_to_tensor(np.float32([x]))
    ones = mo.op_ones_like(x)
    sign = -1 if name in ("arctan", "softsign") else 1
    wanted = sign * power**2 * np.exp(power * values(x).astype(float)) * (power != 0)
    for found in (mo.vjp(slope, x)[1](ones)[0], mo.jit(lambda x: mo.vjp(slope, x)[1](ones)[0])(x)):
        np.testing.assert_allclose(values(found), wanted, rtol=1e-5, atol=1e-6 * (power == 0))


INF = np.inf
FAR = np.float32([[INF, INF, -INF, 1, INF, INF], [0, 1, 1, INF, INF, -INF]])
TOWARDS = np.float32([[1, 1, -1, 0, 0.5**0.5, 0.5**0.5], [0, 0, 0, 1, 0.5**0.5, -(0.5**0.5)]])


def test_a_slope_of_a_length_at_an_infinite_operand_is_its_limit(backend):
    upstream, z = np.ones(6, np.float32), np.empty(6, np.complex64)
    z.real, z.imag = FAR
    slopes = mo.vjp(mo.op_hypot, *FAR)[1](upstream)
    np.testing.assert_allclose(list(map(values, slopes)), TOWARDS, rtol=1e-6, atol=1e-37)
    of_abs = values(mo.vjp(mo.op_abs, z)[1](upstream)[0])
    np.testing.assert_allclose([of_abs.real, of_abs.imag], TOWARDS, rtol=1e-6, atol=1e-37)
    change = mo.jvp(mo.op_hypot, tuple(FAR), (upstream, np.zeros_like(upstream)))[1]
    np.testing.assert_allclose(values(change), TOWARDS[0], rtol=1e-6, atol=1e-37)
    curved = mo.vjp(lambda x: mo.vjp(mo.op_hypot, x, FAR[1])[1](upstream)[0], FAR[0])[1](upstream)[0]
    np.testing.assert_allclose(values(curved), 0, atol=1e-37)
    turned = mo.vjp(mo.op_arctan2, *FAR[:, :4])[1](upstream[:4])
    np.testing.assert_allclose(list(map(values, turned)), 0, atol=1e-37)


def test_the_slope_of_the_size_of_a_subnormal_complex_number(backend):
    """NumPy's quotient of complex numbers is NaN by a number of which the reciprocal overflows."""
    z = np.array([1e-40, -1e-40j, 3 - 4j], np.complex64)
    turned = [values(mo.vjp(mo.op_abs, z)[1](np.ones(3, np.float32))[0])]
    turned.append(values(mo.vmap(lambda z: mo.vjp(mo.op_abs, z)[1](np.float32(1))[0])(z)))
    for found in turned:  # a compiler may take what is subnormal for 0
        kept = found != 0
        assert kept[2]
        np.testing.assert_allclose(found[kept], np.complex64([1, -1j, 0.6 - 0.8j])[kept], rtol=1e-5)


def test_the_slope_of_rsqrt_does_not_overflow_before_it_is_halved(backend):
    if backend == "torch":
        pytest.skip("the slope is PyTorch's own, and overflows: see the table of docs/limits.md")
    x = np.float32([2e-26])  # its power -1.5 is 3.5e38
    slope = values(mo.vjp(mo.op_rsqrt, x)[1](np.ones(1, np.float32))[0])
    change = values(mo.jvp(mo.op_rsqrt, (x,), (np.ones(1, np.float32),))[1])
    np.testing.assert_allclose([slope, change], [-0.5 * x.astype(np.float64) ** -1.5] * 2, rtol=1e-6)


def test_the_slope_of_i0_keeps_its_digits_at_small_numbers(backend, multiop_x64):
    x = mo.op_convert_to_tensor([-1e-38, 1e-100, 1e-150], "float64")
    (slope,) = derivatives(mo.op_i0, x, 1)
    np.testing.assert_allclose(np.array(slope) * 2, [-1e-38, 1e-100, 1e-150], rtol=1e-15)


def test_digits_of_log1p_and_arctanh_between_half_and_a_quarter(backend, multiop_x64):
    """XLA's polynomial serves beyond its range, and is off by 129 units there: jax-ml/jax#39707."""
    x = np.linspace(-0.5, -0.25, 64)
    for op, exact in ((mo.op_log1p, np.log1p), (mo.op_arctanh, np.arctanh)):
        for f in (op, mo.jit(op)):
            np.testing.assert_allclose(mo.op_convert_to_numpy(f(x)), exact(x), rtol=2.0**-50)
    loss = mo.op_binary_crossentropy(np.zeros(64), -x)
    np.testing.assert_allclose(mo.op_convert_to_numpy(loss), -np.log1p(x), rtol=2.0**-50)


def test_digits_of_logarithms_of_complex_numbers_of_a_length_below_1(backend, multiop_x64):
    """XLA finds them by that polynomial."""
    for dtype, digits in (("complex64", 21), ("complex128", 50)):
        z = (np.linspace(0.75, 0.87, 64) * np.exp(1j * np.geomspace(1e-9, 3, 64))).astype(dtype)
        for op, exact in ((mo.op_log, np.log), (mo.op_log2, np.log2), (mo.op_log10, np.log10), (mo.op_log1p, np.log)):
            x = z - 1 if op is mo.op_log1p else z
            expected = exact((x + 1 if op is mo.op_log1p else x).astype("complex128"))
            np.testing.assert_allclose(mo.op_convert_to_numpy(op(x)), expected, rtol=2.0**-digits)


@pytest.mark.parametrize(("op", "exact"), [("op_sinh", (np.sinh, np.cosh)), ("op_cosh", (np.cosh, np.sinh))])
def test_slopes_of_hyperbolic_functions_are_finite_as_far_as_they_are(backend, multiop_x64, op, exact):
    f, x = getattr(mo, op), mo.op_convert_to_tensor([709.0, 709.9, 710.4, -710.4, 80.5], "float64")
    numbers = mo.op_convert_to_numpy(x)
    np.testing.assert_allclose(derivatives(f, x, 2), [exact[1](numbers), exact[0](numbers)], rtol=2e-13)
    tangent = mo.jvp(f, (x,), (mo.op_ones_like(x),))[1]
    np.testing.assert_allclose(mo.op_convert_to_numpy(tangent), exact[1](numbers), rtol=2e-13)


def test_hyperbolic_functions_of_complex_numbers_reach_as_far_as_their_results(backend, multiop_x64):
    """Those of JAX are found by sine and cosine, which XLA lets overflow before."""
    z = np.array([710.2 + 0.5j, -710.2 + 1j, 709.9 - 0.1j, 20.5 + 3j])
    one = mo.op_convert_to_tensor(np.ones_like(z))
    for op, exact, derivative in ((mo.op_sinh, np.sinh, np.cosh), (mo.op_cosh, np.cosh, np.sinh)):
        y, pullback = mo.vjp(op, mo.op_convert_to_tensor(z))
        np.testing.assert_allclose(mo.op_convert_to_numpy(y), exact(z), rtol=1e-12)
        np.testing.assert_allclose(mo.op_convert_to_numpy(pullback(one)[0]), np.conj(derivative(z)), rtol=1e-12)
