"""The promotion table: the dtype of a result is the lattice's, on every backend, for every pair of dtypes."""

import inspect

import numpy as np
import pytest

import multiop
from multiop._values import dtypes as _dtypes
from multiop.testing._problem import Problem
from multiop.testing.cases import control_flow, rows

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
WIDER = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
LOOPS = {row.op for row in control_flow.ROWS}  # their dtypes are those of the user's function
PARAMETERS = {op: {*inspect.signature(getattr(multiop, op)).parameters} for op in rows()}
REDUCTIONS = {op: rows()[op] for op, names in PARAMETERS.items() if {"axis", "keepdims"} <= names}


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
    multiop._loading.registry.load("jax")  # so that its 64-bit mode is on
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
    multiop._loading.registry.load("jax")
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


def test_a_reduction_keeps_its_dimensions_in_every_dtype(backend):
    assert len(REDUCTIONS) > 30
    for op, row in REDUCTIONS.items():
        more = [0.5] * ("q" in PARAMETERS[op])
        for dtype in row.dtypes:
            x = multiop.op_cast(multiop.op_ones((2, 3)), dtype)
            found = multiop.op_shape(getattr(multiop, op)(x, *more, axis=1, keepdims=True))
            assert tuple(found) == (2, 1), (op, dtype)


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


def kinds(dtypes):
    """Return which kinds of numbers are among some dtypes."""
    return {_dtypes.to_numpy(dtype).kind if dtype not in _dtypes.FLOATING else "f" for dtype in dtypes} - {"u"}


def first_call(row, dtype):
    """Return the first call of a row, with operands of a dtype that need not be among those of the row."""
    like = next(known for known in row.dtypes if kinds([known]) == (kinds([dtype]) or {"i"}))
    problem = Problem(getattr(multiop, row.op), row.calls[0], dtype=like)
    drawn = [_dtypes.name(x.dtype) == like for x in problem.arrays]
    cast = [x.astype(_dtypes.to_numpy(dtype)) if own else x for x, own in zip(problem.arrays, drawn, strict=True)]
    problem.arrays = cast
    return problem


def dtypes_of_result(problem):
    """Return the dtypes of a call's results; JAX only traces it."""
    tensors = list(map(multiop.op_convert_to_tensor, problem.arrays))
    if multiop.backend() == "jax":
        import jax

        return [y.dtype.name for y in jax.eval_shape(problem.outputs, *tensors)]
    return list(map(multiop.op_dtype, problem.outputs(*tensors)))


@pytest.mark.parametrize("dtypes", [("uint16", "bfloat16"), pytest.param(DTYPES, marks=pytest.mark.tier("full"))])
def test_every_op_has_the_dtype_of_its_row_in_every_dtype(backend, dtypes):
    """The suite draws some dtypes; here are all, of the kinds that the row has."""
    wrong, compared = [], 0
    for row in rows().values():
        if row.returns is None or row.op in LOOPS or "dtype" in row.calls[0].kwargs:
            continue
        for dtype in (dtype for dtype in dtypes if (kinds([dtype]) or {"i"}) <= kinds(row.dtypes)):
            problem = first_call(row, dtype)
            try:
                found = dtypes_of_result(problem)[0]
                expected = row.returns if isinstance(row.returns, str) else row.returns(problem.operand_dtypes())
            except (multiop.errors.MultiopError, KeyError):  # a short float has no decomposition, an index no sign
                continue
            if isinstance(expected, str):
                compared += 1
                wider = {WIDER.get(expected, expected)} if row.accumulates else set()
                wrong += [(row.op, dtype, found, expected)] if found not in wider | {expected} else []
    assert not wrong
    assert compared > 200 * len(dtypes)


def test_ops_that_say_that_they_refuse_complex_do(backend):
    refusing = 0
    for row in rows().values():
        is_real = "float32" in row.dtypes and "complex64" not in row.dtypes
        if is_real and "not complex" in (inspect.getdoc(getattr(multiop, row.op)) or ""):
            problem = first_call(row, "float32")
            xs = [x.astype("complex64") if x.dtype.kind == "f" else x for x in problem.arrays]
            with pytest.raises(multiop.errors.DTypeError, match=f"^{row.op}: .*complex"):
                problem.outputs(*map(multiop.op_convert_to_tensor, xs))
            refusing += 1
    assert refusing > 50


@pytest.mark.once
def test_ops_that_refuse_complex_say_so(backend):
    silent = []
    for row in rows().values():
        if row.op in LOOPS or "float32" not in row.dtypes or "complex" in inspect.getdoc(getattr(multiop, row.op)):
            continue
        problem = first_call(row, "float32")
        xs = [x.astype("complex64") if x.dtype.kind == "f" else x for x in problem.arrays]
        try:
            problem.outputs(*map(multiop.op_convert_to_tensor, xs))
        except multiop.errors.DTypeError:
            silent.append(row.op)
    assert not silent


@pytest.mark.parametrize("op", ["op_var", "op_std"])
def test_a_variance_of_complex_numbers_is_real(backend, op):
    for dtype, real in (("complex64", "float32"), ("complex128", "float64")):
        assert multiop.op_dtype(getattr(multiop, op)(ones(dtype))) == real


@pytest.mark.parametrize("op", ["op_sum", "op_prod"])
def test_sums_of_small_integers_are_taken_in_32_bits(backend, op):
    for dtype in DTYPES:
        y = getattr(multiop, op)(ones(dtype))
        assert multiop.op_dtype(y) == WIDER.get(dtype, dtype)
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
    assert multiop.op_dtype(multiop.op_arange(multiop.op_convert_to_tensor(3.0))) == "float32"
    assert multiop.op_dtype(multiop.op_arange(multiop.op_convert_to_tensor(3, "int16"))) == "int16"
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


def test_tensordot_keeps_int8(backend):
    x = multiop.op_ones((2, 3), "int8")
    y = multiop.op_convert_to_numpy(multiop.op_tensordot(x, multiop.op_transpose(x), 1))
    assert (y.dtype.name, y.tolist()) == ("int8", [[3, 3], [3, 3]])
