"""What is an ordinary number stays one where a step on the way to it, or the value beside a slope, overflows."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import multiop as mo
from multiop import array_api, errors

INF, BIG = np.inf, 1.7e308
WAYS = {"eager": lambda f: f, "jit": mo.jit}
MODES = {
    "reverse": lambda f, x: mo.vjp(f, x)[1](mo.op_ones_like(x))[0],
    "forward": lambda f, x: mo.jvp(f, (x,), (mo.op_ones_like(x),))[1],
}
pytestmark = pytest.mark.usefixtures("multiop_x64")


@pytest.fixture(params=WAYS)
def way(request):
    return WAYS[request.param]


@pytest.fixture(params=MODES)
def slope(request):
    mode = MODES[request.param]
    return lambda f: lambda x: mode(f, x)


def tensor(x, dtype="float64"):
    return mo.op_cast(mo.op_convert_to_tensor(np.asarray(x)), dtype)


def host(x):
    return np.asarray(mo.op_convert_to_numpy(x))


def test_interp_beside_an_infinity(backend, way):
    points = tensor([1.0, 2, 3])
    interp = way(lambda x, values: mo.op_interp(x, points, values))
    x = tensor([0.0, 1, 3, 5])
    assert host(interp(x, tensor([1, INF, 4]))).tolist() == [1, 1, 4, 4]
    assert host(interp(x, tensor([-INF, INF, 4])))[2:].tolist() == [4, 4]


def test_interp_beside_an_infinity_in_other_dtypes(backend):
    x, points = tensor([0.0, 1, 3, 5]), tensor([1.0, 2, 3])
    assert host(mo.op_interp(x, points, tensor([1, INF, 4]), right=7.0)).tolist() == [1, 1, 4, 7]
    assert host(mo.op_interp(x, points, tensor([1, INF, 4j + 4], "complex128"))).tolist()[2:] == [4 + 4j] * 2
    values = tensor([1, INF, 4], "bfloat16")
    assert host(mo.op_interp(tensor([3.0], "bfloat16"), points[:], values)).astype(float).tolist() == [4]


def test_forward_mode_of_polyval_where_the_slope_in_a_coefficient_overflows(backend):
    p, x = tensor([0.0, 0, 0, 0, 2, 1, 1]), tensor(-1e77)
    polyval = lambda x: mo.op_polyval(p, x)
    value, tangent = mo.jvp(polyval, (x,), (tensor(1.0),))
    np.testing.assert_allclose(host(value), 2e154, rtol=1e-12)
    np.testing.assert_allclose(host(tangent), -4e77, rtol=1e-12)
    _, tangent = mo.jvp(mo.op_polyval, (p, x), (tensor([0.0, 0, 0, 0, 0, 0, 1]), tensor(1.0)))
    assert not np.isfinite(host(tangent)) or np.isclose(host(tangent), -4e77)  # 0 times infinity


def test_gradient_of_interp_outside_of_close_points(backend, way):
    x, points, heights = tensor([-1.0, 1.0]), tensor(np.arange(1, 4) * 1e-307), tensor([1.0, -2, 4])
    gradient = way(lambda x, points, heights: mo.vjp(mo.op_interp, x, points, heights)[1](mo.op_ones_like(x)))
    found = list(map(host, gradient(x, points, heights)))
    assert [y.tolist() for y in found] == [[0, 0], [0, 0, 0], [1, 0, 1]]


def test_interp_of_more_than_the_range(backend, way):
    points = tensor([0.0, 4, 5])
    interp = lambda x: mo.op_interp(x, points, tensor([-BIG, BIG, BIG]))
    assert host(way(interp)(tensor([0.0, 1, 2, 4.5, 5]))).tolist() == [-BIG, -BIG / 2, 0, BIG, BIG]
    assert host(way(mo.grad(lambda x: mo.op_sum(interp(x))))(tensor([1.0, 4.5]))).tolist() == [BIG / 2, 0]
    assert host(way(lambda x: mo.op_interp(x, tensor([-BIG, BIG]), tensor([0.0, 1])))(tensor([0.0]))).tolist() == [0.5]


def order_of_exp2(x, order):
    return mpf(2) ** mpf(float(x)) * mpmath.log(2) ** order


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_slopes_of_exp2(backend, slope, dtype, way):
    edge = {"float16": 16, "float64": 1024}.get(dtype, 128)
    x = tensor([edge + 0.25, edge - 1, 3.5], dtype)
    first = slope(mo.op_exp2)
    eps = {"float16": 2e-3, "bfloat16": 2e-2, "float64": 1e-12}.get(dtype, 1e-4)
    for order, f in ((1, first), (2, slope(first))):
        want = [float(order_of_exp2(v, order)) for v in host(x).astype(float)]
        np.testing.assert_allclose(host(way(f)(x)).astype(float), want, rtol=eps)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_power_of_2_in_16_bits(backend, way, dtype):
    x = tensor([-13.5, 0.25, 15] if dtype == "float16" else [-100, 0.25, 127], dtype)
    found = host(way(mo.op_exp2)(x)).astype(float)
    np.testing.assert_allclose(found, 2.0 ** host(x).astype(float), rtol=1e-3 if dtype == "float16" else 4e-3)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_logarithms_of_determinants_of_two_rows(backend, way, size):
    x = tensor([[0, 2 * size], [size, 3 * size]], "float32")
    sign, value = way(mo.op_slogdet)(x)
    assert (host(sign), host(value)) == (-1, pytest.approx(np.log(2) + 2 * np.log(size), rel=1e-6))
    slope = host(way(mo.grad(lambda x: mo.op_slogdet(x)[1]))(x)) * size
    np.testing.assert_allclose(slope, [[-1.5, 0.5], [1, 0]], rtol=1e-6)


@pytest.mark.parametrize("base", [1.1, 2.0, 0.75])
def test_slope_of_a_power_by_its_exponent(backend, slope, base, way):
    exponent = 128.2 * np.log(2) / np.log(base)  # where the value is just past the range of float32
    f = lambda x: mo.op_power(mo.op_full_like(x, base), x)
    want = float(order_of_exp2(128.2, 1) / mpmath.log(2) * mpmath.log(mpf(base)))
    np.testing.assert_allclose(host(way(slope(f))(tensor([exponent], "float32"))), [want], rtol=1e-3)
    power = lambda x: mo.op_sum(mo.op_logspace(x, x, 1, base=base))
    np.testing.assert_allclose(host(way(mo.grad(power))(tensor(exponent, "float32"))), want, rtol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_of_lengths(backend, dtype, way):
    side = {"float32": 3e38, "float64": BIG}[dtype]
    x = tensor([side, 3.0], dtype)
    by_x, by_y = way(mo.grad(lambda x, y: mo.op_sum(mo.op_hypot(x, y)), argnums=(0, 1)))(x, tensor([side, 4.0], dtype))
    np.testing.assert_allclose(host(by_x), [0.5**0.5, 0.6], rtol=1e-6)
    np.testing.assert_allclose(host(by_y), [0.5**0.5, 0.8], rtol=1e-6)
    z = tensor([side + side * 1j, 3 + 4j], {"float32": "complex64", "float64": "complex128"}[dtype])
    found = host(way(mo.grad(lambda z: mo.op_sum(mo.op_abs(z))))(z))
    np.testing.assert_allclose(found, [0.5**0.5 * (1 + 1j), 0.6 + 0.8j], rtol=1e-6)


@pytest.mark.parametrize(("dtype", "side"), [("complex64", 3e38), ("complex128", BIG), ("complex64", 1e-30)])
def test_signs_of_complex_numbers(backend, way, dtype, side):
    z = tensor([side + side * 1j, -side, 0], dtype)
    np.testing.assert_allclose(host(way(mo.op_sign)(z)), [0.5**0.5 * (1 + 1j), -1, 0], rtol=1e-6)
    turn = way(mo.grad(lambda z: mo.op_sum(mo.op_imag(mo.op_sign(z)))))(tensor([-3.0], dtype))
    np.testing.assert_allclose(host(turn), [1j / 3], rtol=1e-6)


@pytest.mark.parametrize("zeros", [pytest.param(0, marks=pytest.mark.tier("full")), 3])
@pytest.mark.parametrize(
    ("dtype", "scale", "at"),
    [
        ("float64", 1e-300, 1e150),
        ("float32", 1e-30, 1e15),
        pytest.param("bfloat16", 1e-30, 1e15, marks=pytest.mark.tier("full")),
        ("complex128", 1e-300j, 1e150),
    ],
)
def test_slopes_of_a_polynomial(backend, way, dtype, zeros, scale, at):
    p, x = tensor([0] * zeros + [scale, 0, 0, 1], dtype), tensor([at, -at], dtype)
    f = lambda x: mo.op_polyval(p, x)
    cubic, linear = 3 * scale * at * at, 6 * scale * at
    rel = 2e-2 if dtype == "bfloat16" else 1e-6
    as_complex = lambda x: host(x).astype(complex)
    of = lambda x: mo.vjp(f, x)[1](mo.op_ones_like(x))[0]
    forward = lambda x: mo.jvp(f, (x,), (mo.op_ones_like(x),))[1]
    assert as_complex(way(of)(x)) == pytest.approx(np.conj([cubic, cubic]), rel=rel)
    assert as_complex(way(forward)(x)) == pytest.approx([cubic, cubic], rel=rel)
    if dtype == "complex128":
        return
    summed = lambda x: mo.op_sum(of(x))
    assert as_complex(way(mo.grad(summed))(x)) == pytest.approx([linear, -linear], rel=rel)
    assert as_complex(way(mo.vmap(mo.grad(f)))(x)) == pytest.approx([cubic, cubic], rel=rel)
    mixed = way(mo.jacrev(lambda p: mo.op_sum(mo.grad(lambda x: mo.op_polyval(p, x))(x[0]))))(p)
    assert as_complex(mixed)[-3:].tolist() == pytest.approx([2 * at, 1, 0], rel=rel)


def test_a_polynomial_at_infinity(backend):
    assert np.isnan(host(mo.op_polyval(tensor([1.0]), tensor([INF, -INF])))).all()  # as in NumPy


def test_second_derivative_of_tanh_near_0(backend):
    second = mo.grad(mo.grad(mo.op_tanh))
    np.testing.assert_allclose([float(host(second(tensor(x, "float32")))) for x in (1e-6, 1e-8)], [-2e-6, -2e-8], 1e-5)


@pytest.mark.parametrize(
    ("op", "exact"),
    [
        (mo.op_tanh, lambda x: mpmath.sech(x) ** 2),
        (mo.op_sigmoid, lambda x: mpmath.sech(x / 2) ** 2 / 4),
        (mo.op_erf, lambda x: 2 * mpmath.exp(-x * x) / mpmath.sqrt(mpmath.pi)),
    ],
)
def test_slopes_far_out(op, exact):
    with mo.use_backend("numpy"):  # docs/limits.md has those of the frameworks
        for x in (0.3, -5.7, 18.0, 20.0):
            assert float(host(mo.grad(op)(tensor(x)))) == pytest.approx(float(exact(mpf(x))), rel=2e-15)
            assert float(host(mo.grad(mo.grad(op))(tensor(x)))) == pytest.approx(
                float(mpmath.diff(exact, mpf(x))), rel=2e-13
            )
        small = float(host(mo.grad(mo.grad(mo.op_arcsin))(tensor(1e-9))))
        assert small == pytest.approx(1e-9) == float(host(mo.grad(mo.grad(mo.op_arctanh))(tensor(1e-9)))) / 2


@pytest.mark.parametrize("op", [mo.op_log, mo.op_log2, mo.op_log10, mo.op_log1p])
def test_second_derivatives_of_a_product_with_a_logarithm(slope, op):
    with mo.use_backend("numpy"):  # docs/limits.md has those of the frameworks
        x = tensor([1e-25, 1.0, 1e30], "float32")
        base = {mo.op_log2: 2, mo.op_log10: 10}.get(op, mpmath.e)
        start = 1 if op is mo.op_log1p else 0
        found = host(slope(lambda x: MODES["reverse"](lambda x: mo.op_multiply(x, op(x)), x))(x))
        of_one = lambda x: (1 / (x + start) + start / (x + start) ** 2) / mpmath.log(base)
        np.testing.assert_allclose(found, [float(of_one(mpf(float(v)))) for v in host(x)], rtol=1e-5)


def cubed(x, y):
    return mpmath.hypot(x, y) ** 3


def power(x, y):
    return mpmath.exp(y * mpmath.log(x))


SLOPES = {  # the op, its second derivatives (in the first operand twice, mixed, in the second twice), how to draw
    "op_hypot": (
        lambda x, y: y * y / cubed(x, y),
        lambda x, y: -x * y / cubed(x, y),
        lambda x, y: x * x / cubed(x, y),
    ),
    "op_power": (
        lambda x, y: y * (y - 1) * power(x, y - 2),
        lambda x, y: power(x, y - 1) * (1 + y * mpmath.log(x)),
        lambda x, y: power(x, y) * mpmath.log(x) ** 2,
    ),
    "op_cbrt": (lambda x: -2 / (9 * mpmath.cbrt(x) ** 5),),
    "op_log": (lambda x: -1 / x**2,),
    "op_log10": (lambda x: -1 / (x**2 * mpmath.log(10)),),
    "op_arctanh": (lambda x: 2 * x / (1 - x * x) ** 2,),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", SLOPES)
def test_second_derivatives_keep_their_digits(backend, op, dtype, way):
    rng, info = np.random.default_rng(5), np.finfo(dtype)
    most = (
        info.maxexp // 3 if op != "op_arctanh" else -1
    )  # so that what is squared, or to the power of 5/3, is in range
    points = [np.ldexp(1 + rng.random(40), rng.integers(-info.maxexp // 3, most, 40)).astype(dtype)]
    if op == "op_hypot":
        points.append((points[0] * np.ldexp(1.0, rng.integers(-30, 30, 40))).astype(dtype))
    elif op == "op_power":  # where neither power, nor 1 + y log(x), is close to 0
        points[0] = np.ldexp(points[0], 3)
        points.append((rng.choice([0.07, -0.31, 0.6], 40) * (1 + rng.random(40))).astype(dtype))
    f, places = getattr(mo, op), range(len(points))

    def by(f, place):
        return lambda *xs: mo.vjp(f, *xs)[1](mo.op_ones_like(xs[0]))[place]

    second = [by(by(f, j), k) for j in places for k in range(j, len(points))]
    found = way(lambda *xs: [g(*xs) for g in second])(*[tensor(x, dtype) for x in points])
    for got, exact in zip(found, SLOPES[op], strict=True):
        with mpmath.workdps(60):
            want = np.array([float(exact(*map(mpf, map(float, at)))) for at in zip(*points, strict=True)])
        room = {"op_power": 40, "op_cbrt": 4}.get(op, 8)
        np.testing.assert_allclose(host(got).astype(float), want, rtol=room * float(info.eps))


def test_second_derivatives_of_a_length_keep_their_digits_in_a_map(backend):
    x, y = [1e10, 2.0, 1e-10, 3.0], [1.0, 1e-8, 1.0, 4.0]
    found = mo.vmap(mo.grad(mo.grad(mo.op_hypot)))(tensor(x), tensor(y))
    np.testing.assert_allclose(host(found), [1e-30, 1.25e-17, 1.0, 0.128], rtol=1e-14)


@pytest.mark.parametrize(("dtype", "small", "smaller"), [("float64", 1e-160, 1e-200), ("float32", 3e-20, -1e-27)])
def test_second_derivatives_of_an_angle_where_squares_vanish(backend, slope, way, dtype, small, smaller):
    small, smaller = (float(np.dtype(dtype).type(x)) for x in (small, smaller))
    for x1, x2 in ((smaller, small), (small, smaller)):
        by_x1 = slope(slope(lambda x: mo.op_arctan2(x, tensor([x2], dtype))))
        by_x2 = slope(slope(lambda x: mo.op_arctan2(tensor([x1], dtype), x)))
        found = way(lambda x1, x2: [by_x1(x1), by_x2(x2)])(tensor([x1], dtype), tensor([x2], dtype))
        a, b = mpf(x1), mpf(x2)
        want = float(2 * a * b / (a * a + b * b) ** 2)
        np.testing.assert_allclose([host(y)[0] for y in found], [-want, want], rtol=1e-5)


def test_linspace_over_more_than_the_range(backend, way):
    found = way(lambda x: mo.op_linspace(-x, x, 5))(tensor(BIG))
    np.testing.assert_allclose(host(found), [-BIG, -BIG / 2, 0, BIG / 2, BIG])


@pytest.mark.parametrize(
    ("upstream", "endpoint", "want"),
    [([1, 1, 1, 3e30], True, [2, 3e30]), ([1, 1, 1, INF], True, [2, INF]), ([3e30, 1, 1], False, [3e30, 1])],
)
def test_an_end_of_linspace_beside_a_large_row(backend, upstream, endpoint, want):
    space = lambda x, y: mo.op_linspace(x, y, len(upstream), endpoint)
    pull = lambda x, y, u: mo.vjp(space, x, y)[1](u)
    found = pull(*[tensor(x, "float32") for x in (0.0, 3.0, upstream)])
    np.testing.assert_allclose(list(map(host, found)), want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_of_powers_that_grow_far(backend, way, dtype):
    top = {"float32": 128.25, "float64": 1024.25}[dtype]  # the last number is past the range, its slope is not
    f = lambda x, y: mo.op_sum(mo.op_logspace(x, y, 5, base=2.0))
    found = way(mo.grad(f, argnums=(0, 1)))(tensor(0.0, dtype), tensor(top, dtype))
    log, numbers = mpmath.log(2), [mpf(2) ** (mpf(top) * k / 4) for k in range(5)]
    want = [float(log * sum(x * w / 4 for x, w in zip(numbers, by, strict=True))) for by in ((4, 3, 2, 1, 0), range(5))]
    np.testing.assert_allclose(list(map(host, found)), want, rtol={"float32": 1e-4, "float64": 1e-12}[dtype])


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_slopes_of_products_with_logarithms_of_huge_numbers(backend, way, dtype):
    """The slope of the logarithm alone is subnormal there, which JAX and TensorFlow take for 0."""
    x, one = tensor({"float64": BIG}.get(dtype, 3e38), dtype), tensor(1.0, dtype)
    huge = float(host(x))
    log, root = np.log(huge), huge**0.5 / 2
    wanted = {
        lambda x, y: mo.op_entr(x): (-log - 1, 0),
        mo.op_rel_entr: (log + 1, -huge),
        mo.op_kl_div: (log, 1 - huge),
        lambda x, y: mo.op_xlogy(x, x): (log + 1, 0),
        lambda x, y: mo.op_xlog1py(x, x): (log + 1, 0),
        lambda x, y: mo.op_geomspace(x, y, 5)[2]: (root / huge, root),
        lambda x, y: mo.op_geomspace(y, x, 1): (0, 1),
    }
    rel = {"bfloat16": 2e-2, "float32": 1e-5}.get(dtype, 1e-12)
    for f, slopes in wanted.items():
        found = way(lambda x, y, f=f: mo.vjp(lambda x, y: mo.op_sum(f(x, y)), x, y)[1](mo.op_ones_like(x)))(x, one)
        assert [float(host(y)) for y in found] == pytest.approx(slopes, rel=rel)


def test_what_is_not_negative(backend, way):
    x, y = tensor([1.0, 1.0000001, 3], "float32"), tensor([1.0000001, 1, 3], "float32")
    assert (host(way(mo.op_kl_div)(x, y)) >= 0).all()
    label, one, two = np.array([[1]], "int32"), np.array([1], "int32"), np.array([2], "int32")
    loss = way(lambda o: mo.op_ctc_loss(label, o, one, two))
    for z in (17.0, 25.0):
        assert 0 <= host(loss(tensor([[[0.0, z], [0, z]]], "float32")))[0] < 1e-6


def test_the_curvature_of_a_divergence(backend):
    divergence = lambda y: mo.op_sum(mo.op_kl_div(tensor([1.0, 2]), y))
    assert host(mo.hessian(divergence)(tensor([1.0, 2]))).tolist() == [[1, 0], [0, 0.5]]


def test_similarity_is_at_most_1(backend):
    image = 200 + np.random.default_rng(0).normal(size=(16, 16, 1))
    other = image + 1e-3 * np.random.default_rng(1).normal(size=image.shape)
    found = host(mo.op_image_ssim(tensor(image, "float32"), tensor(other, "float32"), max_val=255.0))
    assert 0.99999 < found <= 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("unusual", [None, 0.0, INF, 1e-45])
def test_slopes_of_powers_have_all_digits_beside_others(backend, way, dtype, unusual):
    """Where each number is usual, few steps are enough; one that is not changes the way of all."""
    x = [0.3, 1.0000001, 7.5, 1e-9, 2e7, 3.0] + ([] if unusual is None else [unusual])
    y = [2.5, -40.0, 1e-7, 1.25, -0.5, 0.0] + ([] if unusual is None else [2.0])
    x, y = tensor(x, dtype), tensor(y, dtype)
    slopes = way(mo.grad(lambda x, y: mo.op_sum(mo.op_power(x, y)), argnums=(0, 1)))(x, y)
    exact = [(mpf(float(a)), mpf(float(b))) for a, b in zip(host(x)[:6], host(y)[:6], strict=True)]
    by_base, by_exponent = (host(slope)[:6] for slope in slopes)
    rtol = {"float32": 2e-6, "float64": 4e-15}[dtype]
    np.testing.assert_allclose(by_base, [float(b * a ** (b - 1)) for a, b in exact], rtol=rtol)
    np.testing.assert_allclose(by_exponent, [float(a**b * mpmath.log(a)) for a, b in exact], rtol=rtol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [0.5, -0.5, 1.5, 2.5, -1.5, 0.3])
def test_slopes_of_powers_of_numbers(backend, way, dtype, exponent):
    x = tensor([0.3, 7.5, 1e-6, 2e7, -0.0], dtype)
    slope = mo.grad(lambda x: mo.op_sum(mo.op_power(x, exponent)))
    first, second = (host(way(f)(x)) for f in (slope, mo.grad(lambda x: mo.op_sum(slope(x)))))
    for found, factor, left in ((first, exponent, exponent - 1), (second, exponent * (exponent - 1), exponent - 2)):
        want = [float(factor * mpf(float(a)) ** left) for a in host(x)[:4]]
        np.testing.assert_allclose(found[:4], want, rtol={"float32": 2e-6, "float64": 4e-15}[dtype])
        end = np.copysign(INF, factor) if left < 0 else 0
        # PyTorch's square root of -0.0 turns the sign of a second one
        assert found[4] == end or (backend == "torch" and left < 0 and found is second and found[4] == -end)


def test_a_power_of_one_half(backend, way):
    for exponent in (0.5, tensor(0.5), tensor([0.5])):
        found = host(way(lambda x, exponent=exponent: mo.op_power(x, exponent))(tensor([-INF, -0.0, 4])))
        assert found.tolist() == [INF, 0, 2]
        assert not np.signbit(found[1])
        slope = host(way(mo.grad(lambda x, exponent=exponent: mo.op_sum(mo.op_power(x, exponent))))(tensor([-0.0, 4])))
        assert slope.tolist() == [INF, 0.25]
    found = host(way(lambda x: mo.op_power(x, -0.5))(tensor([-INF, -0.0, 4])))
    assert found.tolist() == [0, INF, 0.5]


def test_vecdot_is_of_one_size(backend):
    with pytest.raises(errors.ArgumentError, match="one size"):
        array_api.vecdot(np.ones((2, 1)), np.ones((2, 3)))
    assert host(array_api.vecdot(np.ones((2, 3)), np.ones(3))).tolist() == [3, 3]


QUOTIENTS = {
    "by a number": lambda x: mo.op_divide(x, 3e38),
    "by a tensor": lambda x: mo.op_divide(x, tensor(3e38, "float32")),
    "by a constant": lambda x: mo.op_divide(x, mo.op_add(tensor(1e38, "float32"), tensor(2e38, "float32"))),
    "by the largest": lambda x: mo.op_divide(x, mo.op_max(x)),
    "by rows": lambda x: mo.op_divide(mo.op_stack([x, x]), mo.op_max(mo.op_stack([x, x]), -1, True))[0],
    "no nan": lambda x: mo.op_divide_no_nan(x, 3e38),
    "in 16 bits": lambda x: mo.op_cast(mo.op_divide(mo.op_cast(x, "bfloat16"), 3e38), "float32"),
    "complex": lambda x: mo.op_real(mo.op_divide(mo.op_cast(x, "complex64"), 3e38)),
    "in 64 bits": lambda x: mo.op_divide(mo.op_cast(x, "float64") * 5e269, 1.5e308),
    "in a branch": lambda x: mo.op_cond(x[0] > 0, lambda: mo.op_divide(x, 3e38), lambda: x),
    "rounded": lambda x: mo.op_divide(mo.op_round(x, -37), 3e38),
    "spaced": lambda x: mo.op_gradient(x, -1.5e38) * tensor([1, 0.5], "float32"),
    "tangent": lambda x: mo.jvp(lambda x: mo.op_divide(x, 3e38), (x,), (x,))[1],
    "gradient": lambda x: mo.vjp(lambda x: mo.op_divide(x, 3e38), x)[1](x)[0],
}


@pytest.mark.parametrize("mapped", [False, pytest.param(True, marks=pytest.mark.tier("full"))], ids=["", "mapped"])
@pytest.mark.parametrize("quotient", QUOTIENTS)
def test_quotients_of_large_numbers(backend, way, mapped, quotient):
    f, x = QUOTIENTS[quotient], tensor([3e38, 1.5e38], "float32")
    found = host(way(mo.vmap(f))(mo.op_stack([x, x])))[1] if mapped else host(way(f)(x))
    assert found.tolist() == pytest.approx([1, 0.5], rel=5e-3 if quotient == "in 16 bits" else 1e-6)


def test_whole_quotients_of_large_numbers(backend, way):
    x = tensor([3e38, 1.5e38], "float32")
    assert host(way(lambda x: mo.op_floor_divide(x, 3e38))(x)).tolist() == [1, 0]
    assert host(way(lambda x: mo.op_mod(x, 2.5e38))(x)) == pytest.approx([5e37, 1.5e38], rel=1e-6)
    if backend != "tensorflow":  # its own slope in the divisor makes a step 0
        by_divisor = mo.grad(lambda d: mo.op_sum(mo.op_divide(x, d)) * 3e38)
        assert host(way(by_divisor)(tensor(3e38, "float32"))) == pytest.approx(-1.5)


def test_a_quotient_has_its_last_digit(backend, way):
    assert host(way(lambda x: mo.op_divide(x, 49.0))(tensor([49.0, 98.0]))).tolist() == [1, 2]
