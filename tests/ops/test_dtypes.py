"""The promotion table: the dtype of a result is the lattice's, on every backend, for every pair of dtypes."""

import numpy as np
import pytest

import multiop
from multiop import _dtypes

DTYPES = _dtypes.ALL
REAL = [name for name in DTYPES if name not in _dtypes.COMPLEX]
NUMBERS = [name for name in DTYPES if name != "bool"]

# what each op accepts, and the dtype of its result for operands of the lattice's common dtype
ARITHMETIC = {
    "op_add": (DTYPES, lambda dtype: dtype),
    "op_multiply": (DTYPES, lambda dtype: dtype),
    "op_subtract": (NUMBERS, lambda dtype: dtype),
    "op_divide": (DTYPES, _dtypes.to_floating),
    "op_maximum": (REAL, lambda dtype: dtype),
    "op_minimum": (REAL, lambda dtype: dtype),
    "op_equal": (DTYPES, lambda dtype: "bool"),
    "op_not_equal": (DTYPES, lambda dtype: "bool"),
    "op_less": (REAL, lambda dtype: "bool"),
    "op_greater_equal": (REAL, lambda dtype: "bool"),
    "op_logical_and": (DTYPES, lambda dtype: "bool"),
    "op_logical_xor": (DTYPES, lambda dtype: "bool"),
    "op_arctan2": (REAL, _dtypes.to_floating),
    "op_hypot": (REAL, _dtypes.to_floating),
    "op_matmul": (DTYPES, lambda dtype: "int32" if dtype == "int8" else dtype),
}
SCALARS = [True, 2, 0.5, 1j]


@pytest.fixture(autouse=True)
def _x64():
    before = multiop.x64()
    multiop.enable_x64()
    yield
    multiop.enable_x64(before)


def ones(dtype):
    return multiop.op_ones((2, 2), dtype)


def test_lattice_is_that_of_jax():
    jnp = pytest.importorskip("jax.numpy")
    multiop._registry.load("jax")  # so that its 64-bit mode is on
    for dtype1 in DTYPES:
        for dtype2 in DTYPES:
            expected = jnp.promote_types(dtype1, dtype2).name
            # JAX joins int64 and uint64 in its weak float, which is float64 in its 64-bit mode and floatx here
            if {dtype1, dtype2} & {"uint64"} and {dtype1, dtype2} & set(_dtypes.SIGNED):
                expected = multiop.floatx()
            assert _dtypes.result_type(dtype1, dtype2) == expected, (dtype1, dtype2)


@pytest.mark.parametrize("weak", SCALARS)
def test_weak_scalars_are_those_of_jax(weak):
    jnp = pytest.importorskip("jax.numpy")
    multiop._registry.load("jax")
    for dtype in DTYPES:
        found = _dtypes.result_type(dtype, _dtypes.of_scalar(weak))
        expected = jnp.result_type(jnp.ones((), dtype), weak).name
        if dtype == "bool" or (dtype in _dtypes.INTEGER and not isinstance(weak, int)):
            expected = _dtypes.WIDE.get(expected, expected)  # JAX's own default dtypes have 64 bits in its 64-bit mode
        assert found == expected, dtype


def test_joining_is_symmetric_and_associative():
    for a in DTYPES:
        for b in DTYPES:
            assert _dtypes.join(a, b) == _dtypes.join(b, a)
            for c in DTYPES:
                assert _dtypes.join(_dtypes.join(a, b), c) == _dtypes.join(a, _dtypes.join(b, c))


@pytest.mark.parametrize("op", list(ARITHMETIC))
def test_every_pair_of_dtypes(backend, op):
    accepted, result = ARITHMETIC[op]
    wrong = []
    for dtype1 in DTYPES:
        for dtype2 in DTYPES:
            common = _dtypes.result_type(dtype1, dtype2)
            if common not in accepted:
                with pytest.raises(multiop.errors.DTypeError):
                    getattr(multiop, op)(ones(dtype1), ones(dtype2))
                continue
            found = multiop.op_dtype(getattr(multiop, op)(ones(dtype1), ones(dtype2)))
            if found != result(common):
                wrong.append((dtype1, dtype2, found, result(common)))
    assert not wrong


@pytest.mark.parametrize("op", ["op_floor_divide", "op_mod", "op_power"])
def test_every_pair_of_dtypes_of_division_and_power(backend, op):
    for dtype1 in DTYPES:
        for dtype2 in DTYPES:
            common = _dtypes.result_type(dtype1, dtype2)
            expected = "int32" if common == "bool" else common
            if common in _dtypes.COMPLEX and op != "op_power":
                with pytest.raises(multiop.errors.DTypeError):
                    getattr(multiop, op)(ones(dtype1), ones(dtype2))
            elif common != "uint64" or op == "op_power":  # for the others see test_uint64_division
                assert multiop.op_dtype(getattr(multiop, op)(ones(dtype1), ones(dtype2))) == expected, (dtype1, dtype2)


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("op", ["op_add", "op_multiply", "op_divide", "op_where"])
def test_python_scalars_are_weak(backend, op, scalar):
    for dtype in DTYPES:
        x = ones(dtype)
        y = multiop.op_where(True, x, scalar) if op == "op_where" else getattr(multiop, op)(x, scalar)
        common = _dtypes.result_type(dtype, _dtypes.of_scalar(scalar))
        assert multiop.op_dtype(y) == (_dtypes.to_floating(common) if op == "op_divide" else common), dtype


def test_python_scalars_are_weak_on_either_side(backend):
    x = ones("float16")
    assert multiop.op_dtype(multiop.op_subtract(1.5, x)) == "float16"
    assert multiop.op_dtype(multiop.op_maximum(2, x)) == "float16"
    assert multiop.op_dtype(multiop.op_power(2.0, x)) == "float16"


def test_numpy_scalars_are_not_weak(backend):
    assert multiop.op_dtype(multiop.op_add(ones("float16"), np.float32(1))) == "float32"
    assert multiop.op_dtype(multiop.op_add(ones("float16"), np.float64(1))) == "float64"


@pytest.mark.parametrize(("scalar", "dtype"), [(300, "int8"), (-1, "uint8"), (2**31, "int32"), (-(2**31) - 1, "int32")])
def test_an_int_that_does_not_fit_raises(backend, scalar, dtype):
    with pytest.raises(multiop.errors.ArgumentError, match=f"{scalar} does not fit in {dtype}"):
        multiop.op_add(ones(dtype), scalar)


FUNCTIONS = [
    "op_reciprocal",
    "op_sqrt",
    "op_rsqrt",
    "op_exp",
    "op_exp2",
    "op_expm1",
    "op_log",
    "op_log2",
    "op_log10",
    "op_log1p",
    "op_sin",
    "op_cos",
    "op_tan",
    "op_arcsin",
    "op_arccos",
    "op_arctan",
    "op_sinh",
    "op_cosh",
    "op_tanh",
    "op_arcsinh",
    "op_arccosh",
    "op_arctanh",
    "op_sigmoid",
    "op_mean",
]


@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions_make_integers_floats(backend, op):
    for dtype in DTYPES:
        assert multiop.op_dtype(getattr(multiop, op)(ones(dtype))) == _dtypes.to_floating(dtype), dtype


@pytest.mark.parametrize(
    "op",
    [
        "op_softplus",
        "op_softmax",
        "op_log_softmax",
        "op_logsumexp",
        "op_var",
        "op_std",
        "op_floor",
        "op_max",
        "op_relu",
    ],
)
def test_ops_of_real_numbers_refuse_complex(backend, op):
    for dtype in REAL:
        getattr(multiop, op)(ones(dtype))
    for dtype in _dtypes.COMPLEX:
        if op in ("op_var", "op_std"):
            assert multiop.op_dtype(getattr(multiop, op)(ones(dtype))) == (
                "float32" if dtype == "complex64" else "float64"
            )
        else:
            with pytest.raises(multiop.errors.DTypeError, match="complex"):
                getattr(multiop, op)(ones(dtype))


KEPT = {
    "op_negative": NUMBERS,
    "op_sign": NUMBERS,
    "op_conj": DTYPES,
    "op_floor": REAL,
    "op_ceil": REAL,
    "op_trunc": REAL,
    "op_round": NUMBERS,
    "op_square": NUMBERS,
    "op_relu": [name for name in REAL if name != "bool"],
    "op_max": REAL,
    "op_min": REAL,
    "op_transpose": DTYPES,
    "op_reshape": DTYPES,
    "op_flip": DTYPES,
    "op_zeros_like": DTYPES,
    "op_ones_like": DTYPES,
    "op_stack": DTYPES,
    "op_concatenate": DTYPES,
    "op_squeeze": DTYPES,
    "op_expand_dims": DTYPES,
    "op_broadcast_to": DTYPES,
}
EXTRA = {"op_reshape": (4,), "op_expand_dims": (0,), "op_broadcast_to": ((3, 2, 2),)}


@pytest.mark.parametrize("op", list(KEPT))
def test_ops_that_keep_the_dtype(backend, op):
    for dtype in KEPT[op]:
        x = [ones(dtype)] * 2 if op in ("op_stack", "op_concatenate") else ones(dtype)
        y = getattr(multiop, op)(x, *EXTRA.get(op, ()))
        assert multiop.op_dtype(y) == dtype


@pytest.mark.parametrize("op", ["op_sum", "op_prod"])
def test_sums_of_small_integers_are_taken_in_32_bits(backend, op):
    wider = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
    for dtype in DTYPES:
        y = getattr(multiop, op)(ones(dtype))
        assert multiop.op_dtype(y) == wider.get(dtype, dtype)
        assert complex(multiop.op_convert_to_numpy(y)) == (4 if op == "op_sum" else 1)


@pytest.mark.parametrize("op", ["op_floor_divide", "op_mod", "op_fmod", "op_gcd", "op_lcm"])
def test_uint64_division(backend, op):
    reference = getattr(np, op.removeprefix("op_"))
    x1, x2 = np.array([0, 7, 2**64 - 1], np.uint64), np.array([5, 3, 2**33], np.uint64)
    found = multiop.op_convert_to_numpy(getattr(multiop, op)(x1, x2))
    assert found.dtype == "uint64"
    np.testing.assert_array_equal(found, reference(x1, x2))


def test_unsigned_arithmetic_is_numpys(backend):
    rng = np.random.default_rng(0)
    for dtype in _dtypes.UNSIGNED:
        high = np.iinfo(dtype).max
        a, b = (rng.integers(0, high, 50, dtype=dtype, endpoint=True) for _ in range(2))
        b = np.maximum(b, 1)
        pairs = {
            "op_add": np.add,
            "op_subtract": np.subtract,
            "op_multiply": np.multiply,
            "op_maximum": np.maximum,
            "op_minimum": np.minimum,
            "op_less": np.less,
            "op_greater_equal": np.greater_equal,
        }
        if dtype != "uint64":  # see test_uint64_division
            pairs |= {"op_floor_divide": np.floor_divide, "op_mod": np.mod}
        for op, reference in pairs.items():
            found = multiop.op_convert_to_numpy(getattr(multiop, op)(a, b))
            np.testing.assert_array_equal(found, reference(a, b), err_msg=f"{op} {dtype}")
        for op, reference in {
            "op_negative": np.negative,
            "op_abs": np.abs,
            "op_square": np.square,
            "op_sign": np.sign,
        }.items():
            np.testing.assert_array_equal(
                multiop.op_convert_to_numpy(getattr(multiop, op)(a)), reference(a), err_msg=f"{op} {dtype}"
            )
        for op, reference in {"op_max": np.max, "op_min": np.min, "op_argmax": np.argmax}.items():
            assert multiop.op_convert_to_numpy(getattr(multiop, op)(a)) == reference(a), f"{op} {dtype}"
        np.testing.assert_array_equal(multiop.op_convert_to_numpy(multiop.op_power(a, 3)), a ** np.asarray(3, dtype))


def test_creation(backend):
    assert multiop.op_dtype(multiop.op_zeros(2)) == "float32"
    assert multiop.op_dtype(multiop.op_eye(2)) == "float32"
    assert multiop.op_dtype(multiop.op_arange(3)) == "int32"
    assert multiop.op_dtype(multiop.op_arange(3.0)) == "float32"
    assert multiop.op_dtype(multiop.op_arange(0, 1, 0.5)) == "float32"
    assert multiop.op_dtype(multiop.op_full(2, 1)) == "int32"
    assert multiop.op_dtype(multiop.op_full(2, True)) == "bool"
    assert multiop.op_dtype(multiop.op_full(2, 1.0)) == "float32"
    for dtype in DTYPES:
        for made in (
            multiop.op_zeros(2, dtype),
            multiop.op_ones(2, dtype),
            multiop.op_full(2, 1, dtype),
            multiop.op_full_like([1, 2], 1, dtype),
            multiop.op_zeros_like([1.0], dtype),
            multiop.op_ones_like([1.0], dtype),
            multiop.op_eye(2, dtype=dtype),
            multiop.op_empty(2, dtype),
            multiop.op_empty_like([1.0], dtype),
            multiop.op_identity(2, dtype),
        ):
            assert multiop.op_dtype(made) == dtype
        if dtype not in ("bool", *_dtypes.COMPLEX):
            assert multiop.op_dtype(multiop.op_arange(3, dtype=dtype)) == dtype


def test_floatx_decides_what_integers_become(backend):
    multiop.set_floatx("float64")
    try:
        assert multiop.op_dtype(multiop.op_sqrt(4)) == "float64"
        assert multiop.op_dtype(multiop.op_divide([1], [2])) == "float64"
        assert multiop.op_dtype(multiop.op_zeros(2)) == "float64"
        assert multiop.op_dtype(multiop.op_convert_to_tensor(1j)) == "complex128"
    finally:
        multiop.set_floatx("float32")


def test_casting_between_every_pair(backend):
    for source in DTYPES:
        for target in DTYPES:
            x = multiop.op_convert_to_tensor(np.array([0, 1, 3]).astype(_dtypes.to_numpy(source)))
            if source in _dtypes.COMPLEX and target not in (*_dtypes.COMPLEX, "bool"):
                with pytest.raises(multiop.errors.DTypeError, match="imaginary"):
                    multiop.op_cast(x, target)
                continue
            y = multiop.op_cast(x, target)
            assert multiop.op_dtype(y) == target
            expected = np.array([0, 1, 3]).astype(_dtypes.to_numpy(source)).astype(_dtypes.to_numpy(target))
            np.testing.assert_array_equal(multiop.op_convert_to_numpy(y), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_running_sums_of_halves_are_taken_in_float32(backend, dtype):
    x = multiop.op_cast(np.full(2000, 1.001), dtype)  # in 16 bits the sum would stop growing, or lose its digits
    step = float(multiop.op_cast(x[0], "float32"))
    found = multiop.op_convert_to_numpy(multiop.op_cast(multiop.op_cumsum(x), "float64"))
    unit = 2.0**-10 if dtype == "float16" else 2.0**-7
    np.testing.assert_allclose(found, step * np.arange(1, 2001), rtol=unit / 2 * 1.001)


@pytest.mark.parametrize(
    ("initial", "dtype", "values"),
    [
        (None, "bool", (1, 0)),
        (False, "bool", (1, 0)),
        (1, "int32", (1, 0)),
        (2, "int32", (2, 0)),
        (0.5, "float32", (1, 0)),
    ],
)
def test_extremes_of_bools_beside_an_initial_value_promote(backend, initial, dtype, values):
    x = multiop.op_convert_to_tensor(np.array([True, False]))
    for op, value in zip((multiop.op_max, multiop.op_min), values, strict=True):
        found = [(op(x, axis=0, initial=initial), value)]
        if initial is not None:
            found.append((op(x[:0], axis=0, initial=initial), initial))
        for y, expected in found:
            assert multiop.op_dtype(y) == dtype
            assert float(y) == float(expected)
