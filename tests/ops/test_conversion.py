"""Conversion: one rule for host values on every backend, and a clear error for anything that is not a tensor."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import multiop as mo
from multiop import errors
from multiop._values import dtypes

BF16 = dtypes.to_numpy("bfloat16")


def numpy(x):
    return mo.op_convert_to_numpy(x)


@pytest.fixture
def x64():
    before = mo.x64()
    mo.enable_x64()
    yield
    mo.enable_x64(before)


@pytest.mark.parametrize(
    ("x", "dtype", "value"),
    [
        (True, "bool", True),
        (3, "int32", 3),
        (1.5, "float32", 1.5),
        (1 + 2j, "complex64", 1 + 2j),
        ([], "float32", []),
        ([[], []], "float32", [[], []]),
        ([1, 2], "int32", [1, 2]),
        ([True, 2], "int32", [1, 2]),
        ([1, 2.5], "float32", [1.0, 2.5]),
        ([1, 2j], "complex64", [1, 2j]),
        (((1, 2), [3, 4]), "int32", [[1, 2], [3, 4]]),
        (range(3), "int32", [0, 1, 2]),
        ([np.float16(1.5), 2.0], "float16", [1.5, 2.0]),
        ([np.int8(1), 2], "int8", [1, 2]),
        ([np.int8(1), 0.5], "float32", [1.0, 0.5]),
        ([np.ones(2, np.float32), [2.0, 3.0]], "float32", [[1.0, 1.0], [2.0, 3.0]]),
        (np.bool_(True), "bool", True),
        (np.uint8(7), "uint8", 7),
        (np.ones((2, 0), np.int16), "int16", [[], []]),
        (np.arange(6.0, dtype=np.float32).reshape(2, 3).T, "float32", [[0, 3], [1, 4], [2, 5]]),
        (np.arange(4, dtype=np.int32)[::-2], "int32", [3, 1]),
        (np.array([1.5, 2.5], ">f4"), "float32", [1.5, 2.5]),
        (np.array([1, 2], ">i2"), "int16", [1, 2]),
        (np.array([1.5, 2.5], BF16), "bfloat16", [1.5, 2.5]),
        (np.array(2.5, np.float16), "float16", 2.5),
    ],
)
def test_host_values(backend, x, dtype, value):
    found = mo.op_convert_to_tensor(x)
    assert mo.op_is_tensor(found)
    assert mo.op_dtype(found) == mo.op_dtype(x) == dtype
    assert mo.op_shape(found) == mo.op_shape(x) == np.shape(value)
    assert numpy(found).dtype == dtypes.to_numpy(dtype)
    np.testing.assert_array_equal(numpy(found), np.asarray(value))


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_every_dtype_comes_back_as_it_went(backend, dtype, x64):
    x = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtypes.to_numpy(dtype))
    found = mo.op_convert_to_tensor(x)
    assert mo.op_dtype(found) == dtype
    assert numpy(found).dtype == x.dtype
    np.testing.assert_array_equal(numpy(found), x)


@pytest.mark.parametrize(
    "spelling",
    ["float16", np.float16, np.dtype("float16"), np.dtype(">f2"), "half"],
    ids=["name", "type", "dtype", "big-endian", "half"],
)
def test_spellings_of_a_dtype(backend, spelling):
    assert mo.op_dtype(mo.op_convert_to_tensor(1, spelling)) == "float16"
    assert mo.op_dtype(mo.op_cast([1.0], spelling)) == "float16"
    assert mo.op_dtype(mo.op_zeros(2, spelling)) == "float16"


def test_python_types_are_dtypes(backend):
    for spelling, name in ((float, "float32"), (int, "int32"), (bool, "bool"), (complex, "complex64")):
        assert mo.op_dtype(mo.op_convert_to_tensor(1, spelling)) == name


def test_the_frameworks_own_dtype_is_a_spelling(backend):
    x = mo.op_convert_to_tensor([1.5])
    assert mo.op_dtype(mo.op_cast([1], x.dtype)) == "float32"


def test_a_tensor_comes_back_as_it_is(backend, host_arrays):
    x = mo.op_convert_to_tensor([1.5, 2.5])
    assert mo.op_convert_to_tensor(x) is x
    assert mo.op_convert_to_tensor(x, "float32") is x
    assert mo.op_cast(x, "float32") is x


def test_converting_copies(backend):
    source = np.ones(3, np.float32)
    x = mo.op_convert_to_tensor(source)
    source[:] = 7
    np.testing.assert_array_equal(numpy(x), [1, 1, 1])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool", "complex64"])
@pytest.mark.parametrize("value", [[1.0, 2.0], 1.0])
def test_the_array_of_a_tensor_is_a_copy_that_can_be_written(backend, dtype, value):
    x = mo.op_cast(value, dtype)
    for tensor in (x, mo.op_conj(x)):
        array = numpy(tensor)
        array[...] = 0
        assert not array.any()
    expected = np.ones_like(value) if dtype == "bool" else value
    np.testing.assert_array_equal(numpy(x).astype(np.complex64), expected)


def test_64_bits_narrow_while_the_mode_is_off(backend, host_arrays):
    with pytest.warns(errors.PrecisionWarning, match="float64 NumPy input becomes float32") as caught:
        x = mo.op_convert_to_tensor(np.array([1.5, 2.5]))
    assert mo.op_dtype(x) == "float32"
    assert caught[0].filename == __file__  # the warning points at the caller
    with pytest.warns(errors.PrecisionWarning):
        assert mo.op_dtype(mo.op_add(mo.op_zeros(1, "float16"), np.float64(1))) == "float32"
    with pytest.warns(errors.PrecisionWarning):
        assert mo.op_dtype(mo.op_convert_to_tensor([np.float64(1), np.float16(1)])) == "float32"
    with pytest.warns(errors.PrecisionWarning):
        assert mo.op_dtype(mo.op_convert_to_tensor(np.array([1j]))) == "complex64"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mo.op_dtype(mo.op_convert_to_tensor(np.array([1, -2]))) == "int32"  # integers are exact
        assert mo.op_dtype(mo.op_convert_to_tensor(np.array([1, 2], np.uint64))) == "uint32"
        assert mo.op_dtype(mo.op_convert_to_tensor(np.array([1.5]), "float32")) == "float32"  # asked for


def test_64_bits_stay_while_the_mode_is_on(backend, x64):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mo.op_dtype(mo.op_convert_to_tensor(np.array([1.5]))) == "float64"
        assert mo.op_dtype(mo.op_convert_to_tensor(np.array([1]))) == "int64"
        assert mo.op_dtype(mo.op_convert_to_tensor([np.float64(1.5), 2.0])) == "float64"
        assert mo.op_dtype(mo.op_convert_to_tensor([1.5])) == "float32"  # floatx decides, not the mode


def test_64_bit_integers_that_do_not_fit_raise(backend, host_arrays):
    with pytest.raises(errors.ArgumentError, match="2147483648 does not fit in int32; turn the 64-bit mode on"):
        mo.op_convert_to_tensor(np.array([2**31]))
    with pytest.raises(errors.ArgumentError, match="does not fit in uint32"):
        mo.op_convert_to_tensor(np.array([2**32], np.uint64))


@pytest.mark.parametrize("x", [2**31, [0, -(2**31) - 1], 2**80, [2**80]])
def test_python_ints_that_do_not_fit_raise(backend, x):
    with pytest.raises(errors.ArgumentError, match="does not fit in"):
        mo.op_convert_to_tensor(x)


@pytest.mark.parametrize(
    ("x", "dtype"), [(300, "int8"), (-1, "uint8"), ([1, 300], "uint8"), (np.array([-1], np.int32), "uint16")]
)
def test_ints_that_the_dtype_cannot_hold_raise(backend, x, dtype):
    with pytest.raises(errors.ArgumentError, match=f"does not fit in {dtype}"):
        mo.op_convert_to_tensor(x, dtype)


@pytest.mark.parametrize("x", [float("nan"), float("inf")])
def test_no_integer_is_made_of_what_is_none(backend, x):
    with pytest.raises(errors.ArgumentError, match="does not fit in int32"):
        mo.op_convert_to_tensor(x, "int32")


def test_large_values_become_infinite(backend):
    assert numpy(mo.op_convert_to_tensor(1e300)) == np.inf
    assert numpy(mo.op_convert_to_tensor(1e6, "float16")) == np.inf
    assert numpy(mo.op_convert_to_tensor([1e300, -1e300], "float32")).tolist() == [np.inf, -np.inf]


def test_lists_of_tensors(backend):
    x = mo.op_convert_to_tensor([1.5, 2.5])
    for nested in ([x, [3.0, 4.0]], (x, (3, 4)), [[x[0], x[1]], [3.0, 4]], [[x[0], 2.5], x + 1.5]):
        found = mo.op_convert_to_tensor(nested)
        assert mo.op_dtype(found) == "float32"
        np.testing.assert_array_equal(numpy(found), [[1.5, 2.5], [3.0, 4.0]])
    half = mo.op_convert_to_tensor(1.5, "float16")
    assert (
        mo.op_dtype(mo.op_convert_to_tensor([[half, 2.0], [3, 4.0]])) == "float16"
    )  # Python scalars are weak here too
    assert mo.op_dtype(mo.op_convert_to_tensor([half, 2.0], "float32")) == "float32"
    with pytest.raises(errors.ArgumentError):
        mo.op_convert_to_tensor([x, [1.0]])


def test_gradients_pass_through_lists_and_casts(backend):
    def f(x):
        return mo.op_sum(mo.op_cast(mo.op_convert_to_tensor([x[0] * 2, 5.0, x[1]]), "float16"))

    np.testing.assert_array_equal(numpy(mo.grad(f)(mo.op_convert_to_tensor([1.0, 2.0]))), [2.0, 1.0])


def test_gradient_through_integers_is_zero(backend):
    def f(x):
        return mo.op_sum(mo.op_cast(mo.op_cast(x, "int32"), "float32") + 0 * x)

    np.testing.assert_array_equal(numpy(mo.grad(f)(mo.op_convert_to_tensor([1.5]))), [0.0])


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        ("text", errors.ArgumentTypeError),
        (None, errors.ArgumentTypeError),
        (object(), errors.ArgumentTypeError),
        ({"a": 1}, errors.ArgumentTypeError),
        ({1, 2}, errors.ArgumentTypeError),
        (["a", "b"], errors.ArgumentTypeError),
        ([None], errors.ArgumentTypeError),
        ([1, "a"], errors.ArgumentTypeError),
        (b"bytes", errors.ArgumentTypeError),
        (np.array(["a"]), errors.DTypeError),
        (np.array([None]), errors.DTypeError),
        (np.array([1], "datetime64[s]"), errors.DTypeError),
        (np.zeros(2, [("a", "f4")]), errors.DTypeError),
        (np.ones(2, np.longdouble), errors.DTypeError),
        (np.ma.masked_array([1.0, 2.0], [True, False]), errors.ArgumentTypeError),
        ([[1, 2], [3]], errors.ArgumentError),
        ([[1], 2], errors.ArgumentError),
    ],
)
def test_what_is_no_tensor_raises(backend, x, kind):
    for call in (mo.op_convert_to_tensor, mo.op_shape, mo.op_exp):
        with pytest.raises(kind, match=f"{call.__name__}: "):
            call(x)


def test_objects_with_an_array_are_arrays(backend):
    class Measured:
        def __array__(self, dtype=None, copy=None):
            return np.array([1.0, 2.0], np.float32)

    np.testing.assert_array_equal(numpy(mo.op_add(Measured(), 1)), [2.0, 3.0])


def test_a_complex_value_does_not_lose_its_imaginary_part(backend):
    for x in (1j, [1j], np.array([1j], np.complex64), mo.op_convert_to_tensor([1j])):
        with pytest.raises(errors.DTypeError, match="imaginary"):
            mo.op_convert_to_tensor(x, "float32")
        with pytest.raises(errors.DTypeError, match="imaginary"):
            mo.op_cast(x, "int32")
    assert numpy(mo.op_cast([1j, 0j], "bool")).tolist() == [True, False]


def test_sparse_and_ragged_are_refused(backend):
    for options in ({"sparse": True}, {"ragged": True}):
        with pytest.raises(errors.UnsupportedError, match="dense"):
            mo.op_convert_to_tensor([1.0], **options)
    assert mo.op_shape(mo.op_convert_to_tensor([1.0], sparse=False, ragged=None)) == (1,)


@pytest.mark.parametrize("dtype", ["float8", "int4", "string", "object", object, "longdouble", 3])
def test_unknown_dtypes_raise(backend, dtype):
    with pytest.raises(errors.DTypeError, match="unknown dtype"):
        mo.op_cast([1.0], dtype)


def test_a_foreign_tensor_names_both_frameworks_and_both_ways_out(backend):
    others = [name for name in ("torch", "jax", "tensorflow") if name != backend and name in mo.available_backends()]
    if not others:
        pytest.skip("needs a second framework")
    for other in others:
        with mo.use_backend(other):
            x = mo.op_convert_to_tensor([1.0])
        for call in (
            lambda x: mo.op_exp(x),
            lambda x: mo.op_add(mo.op_ones(1), x),
            lambda x: mo.op_convert_to_tensor([x, x]),
            lambda x: mo.op_stack([mo.op_ones(1), x]),
        ):
            with pytest.raises(errors.ForeignTensorError, match=f"a {other} tensor .* {backend} backend") as caught:
                call(x)
            assert "op_convert_to_numpy" in str(caught.value)
            assert "set_backend" in str(caught.value)


OF_KERAS = """
import keras, multiop, numpy as np
from multiop import ops

v = keras.Variable(np.array([1.0, 2.0], "float32"))
plain = lambda x: multiop.op_convert_to_numpy(x).tolist()
assert plain(ops.add(v, 1.0)) == [2.0, 3.0] and plain(ops.multiply([2.0, 3.0], v)) == [2.0, 6.0]
assert plain(ops.stack([v, [3.0, 4.0]])) == [[1.0, 2.0], [3.0, 4.0]]
assert plain(ops.convert_to_tensor([v[0], 1.0])) == [1.0, 1.0]
assert plain(ops.convert_to_tensor(v, "int32")) == [1, 2] and ops.shape(v) == (2,) and ops.dtype(v) == "float32"
assert plain(v) == [1.0, 2.0] and plain(ops.where([True, False], v, 0.0)) == [1.0, 0.0]
assert plain(multiop.jit(lambda x: ops.sum(x * ops.convert_to_tensor(v)))(np.ones(2, "float32"))) == 3.0
assert plain(multiop.grad(lambda x: ops.sum(ops.multiply(x, v)))(np.ones(2, "float32"))) == [1.0, 2.0]
with multiop.GradientTape() as tape:
    watched = tape.watch(v)
    x = watched if multiop.backend() == "numpy" else v  # an array of NumPy's cannot record
    loss = ops.sum(ops.square(x))
assert plain(tape.gradient(loss, x)) == [2.0, 4.0]
"""


@pytest.mark.tier("full")
def test_a_keras_variable_is_its_value(backend):
    pytest.importorskip("keras")
    environment = os.environ | {"KERAS_BACKEND": backend, "MULTIOP_BACKEND": backend}
    done = subprocess.run(
        [sys.executable, "-c", OF_KERAS], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_variable_of_the_kind_of_keras_is_its_value(backend):
    class Variable:
        def __init__(self, value):
            self.value, self.shape, self.dtype = value, value.shape, "float32"

        def assign(self, value):
            self.value = value

    Variable.__module__ = "keras.src.backend"
    x = Variable(mo.op_convert_to_tensor([1.0, 2.0]))
    for found in (mo.op_add(x, 1.0), mo.op_add(1.0, x), mo.op_stack([x, x])[0] + 1, mo.op_concatenate([x]) + 1):
        np.testing.assert_array_equal(mo.op_convert_to_numpy(found), [2.0, 3.0])
    assert (mo.op_shape(x), mo.op_dtype(x)) == ((2,), "float32")


# of float8: the bits of the fraction, the least exponent, the largest number, and what is larger
FLOAT8 = {"float8_e4m3fn": (3, -6, 448.0, np.nan), "float8_e5m2": (2, -14, 57344.0, np.inf)}


def rounded_to_float8(x, dtype):
    """Return float64 numbers rounded once to float8, ties to even, by its definition."""
    digits, least, largest, beyond = FLOAT8[dtype]
    with np.errstate(invalid="ignore"):
        step = np.ldexp(1.0, np.maximum(np.frexp(x)[1] - 1, least) - digits)
        y = np.where(np.isfinite(x), np.round(x / step) * step, x)
    return np.copysign(np.where(np.abs(y) > largest, beyond, y), x)


def around_float8(source):
    """Return numbers of `source` at, between and beside all numbers of float8, and far from them."""
    if source == "bool":
        return np.array([False, True])
    if source in dtypes.INTEGER:
        low, high = dtypes.INTEGER_RANGE[source]
        return np.arange(max(low, -70000), min(high, 70000), 1 if high < 300 else 7).astype(source)
    points = [np.arange(256, dtype="uint8").view(dtypes.to_numpy(dtype)).astype("float64") for dtype in FLOAT8]
    points = [np.unique(x[np.isfinite(x)]) for x in points]
    middle = np.concatenate([(x[1:] + x[:-1]) / 2 for x in points])
    near = [middle * (1 + by) for by in (0, 1e-5, -1e-5, 1e-9, -1e-9)]
    far = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 480, 496, 511.5, 600, 7e4, 1e30, 1e-6, -1e-6, 1e-30])
    with np.errstate(over="ignore"):
        return np.concatenate([*points, *near, far, -far]).astype(dtypes.to_numpy(source))


def assert_same_numbers(found, expected):
    found, is_number = found.astype("float64"), ~np.isnan(expected)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])


@pytest.mark.parametrize("dtype", FLOAT8)
@pytest.mark.parametrize("source", [*dtypes.BOOLEAN, *dtypes.INTEGER, *dtypes.FLOATING])
def test_a_cast_to_float8_rounds_once(backend, dtype, source, x64):
    values = around_float8(source)
    expected = rounded_to_float8(values.astype("float64"), dtype)
    x = mo.op_convert_to_tensor(values)

    def f(x):
        return mo.op_cast(x, dtype)

    compiled = [mo.jit(f)] if source in ("int32", "float64") else []
    for found in (f(x), f(values), mo.op_convert_to_tensor(x, dtype), *[g(x) for g in compiled], mo.vmap(f)(x)):
        assert mo.op_dtype(found) == dtype
        assert mo.op_shape(found) == x.shape
        assert numpy(found).dtype == dtypes.to_numpy(dtype)
        assert_same_numbers(numpy(found), expected)


@pytest.mark.parametrize("dtype", FLOAT8)
@pytest.mark.parametrize("target", [*dtypes.ALL, *FLOAT8])
def test_all_numbers_of_float8_are_cast_back(backend, dtype, target, x64):
    bits = np.arange(256, dtype="uint8").view(dtypes.to_numpy(dtype))
    if target in dtypes.INTEGER:
        wide = bits.astype("float64")
        bits = bits[(wide >= 0) & (wide < 128)]
    expected = bits.astype("float32").astype(dtypes.to_numpy(target)) if target not in FLOAT8 else bits
    if target in FLOAT8:
        expected = rounded_to_float8(bits.astype("float64"), target)
    x = mo.op_convert_to_tensor(bits)
    assert numpy(x).view("uint8").tolist() == bits.view("uint8").tolist()
    for found in (mo.op_cast(x, target), mo.vmap(lambda x: mo.op_cast(x, target))(x)):
        assert mo.op_dtype(found) == target
        np.testing.assert_array_equal(numpy(found).astype("complex128"), expected.astype("complex128"))


@pytest.mark.parametrize("dtype", FLOAT8)
def test_host_values_become_float8(backend, dtype):
    nearly = 1.0625 * (1 + 1e-12)  # float32 makes a tie of it in one of the dtypes
    for x in (nearly, True, 7, -0.0, 1e300, [1.3, 2.0], np.float64(nearly), [[1, 2], [3, 4]]):
        assert_same_numbers(numpy(mo.op_cast(x, dtype)), rounded_to_float8(np.asarray(x, "float64"), dtype))
    x = mo.op_convert_to_tensor([1.3, 2.0])
    assert numpy(mo.op_cast([x, x], dtype)).shape == (2, 2)
    y = mo.jit(lambda x: [mo.op_cast(1.3, dtype), mo.op_cast([1.3, 2.0], dtype), mo.op_cast(x, dtype)])(x)
    assert [numpy(one).astype("float32").tolist() for one in y] == [1.25, [1.25, 2.0], [1.25, 2.0]]


@pytest.mark.parametrize("dtype", FLOAT8)
def test_gradient_through_float8_is_zero(backend, dtype):
    def f(x):
        return mo.op_sum(mo.op_cast(mo.op_cast(x, dtype), "float32") * x)

    x = mo.op_convert_to_tensor([1.3, 2.0])
    for found in (mo.grad(f)(x), mo.jit(mo.grad(f))(x), mo.jvp(f, (x,), (mo.op_convert_to_tensor([1.0, 0.0]),))[1]):
        np.testing.assert_array_equal(numpy(found), [1.25, 2.0] if numpy(found).ndim else 1.25)


def test_a_rule_passes_the_gradient_through_float8(backend):
    @mo.op_custom_gradient
    def through(x):
        return mo.op_cast(mo.op_cast(x, "float8_e4m3fn"), "float32"), lambda upstream: upstream

    def f(x):
        return mo.op_sum(through(x) * 1e-6)

    x = mo.op_convert_to_tensor([1.3, 2.0])
    np.testing.assert_array_equal(numpy(through(x)), [1.25, 2.0])
    for g in (mo.grad(f), mo.jit(mo.grad(f)), mo.vmap(mo.grad(f))):
        np.testing.assert_array_equal(numpy(g(x)), np.float32([1e-6, 1e-6]))


@pytest.mark.parametrize("dtype", FLOAT8)
def test_nothing_is_computed_in_float8(backend, dtype):
    x = mo.op_cast([1.0, 2.0], dtype)
    for call in (
        mo.op_exp,
        lambda x: mo.op_add(x, x),
        lambda x: mo.op_subtract(x, 1.0),
        lambda x: mo.op_stack([x, mo.op_ones(2)]),
        mo.op_median,
        mo.op_softmax,
        lambda x: mo.op_correlate(x, x),
        lambda x: mo.op_matmul(x, x),
        lambda x: mo.op_where([True, False], x, 0.0),
    ):
        with pytest.raises(errors.DTypeError, match="cast it first"):
            call(x)
    for call in (
        lambda: mo.op_zeros(2, dtype),
        lambda: mo.op_sum([1.0], dtype=dtype),
        lambda: mo.op_one_hot(1, 2, dtype=dtype),
    ):
        with pytest.raises(errors.DTypeError, match=f"no op computes in {dtype}"):
            call()
    with pytest.raises(errors.DTypeError, match=f"cannot become {dtype}"):
        mo.op_cast(mo.op_ones(2, "complex64"), dtype)


def test_is_tensor(backend):
    assert mo.op_is_tensor(mo.op_ones(2))
    assert not any(mo.op_is_tensor(x) for x in (1.0, [1.0], "x", None))
    assert mo.op_is_tensor(np.ones(1)) == (backend == "numpy")
    others = [name for name in ("torch", "jax", "tensorflow") if name != backend and name in mo.available_backends()]
    for other in others:
        with mo.use_backend(other):
            x = mo.op_ones(1)
        assert not mo.op_is_tensor(x)


def test_inside_a_transform(backend):
    seen = []

    def f(x):
        seen.append((mo.op_is_tensor(x), mo.op_dtype(x), tuple(mo.op_shape(x))))
        return mo.op_sum(mo.op_convert_to_tensor([x[0], x[1]]))

    mo.grad(f)(mo.op_ones(3))
    mo.jit(f)(mo.op_ones(3))
    mo.vmap(f)(mo.op_ones((2, 3)))
    assert set(seen) == {(True, "float32", (3,))}


def test_host_values_inside_compiled_code(backend):
    array = np.array([1.0, 2.0], np.float32)

    def f(x):
        return [
            mo.op_add(x, 2),
            mo.op_multiply(x, [1.0, 2.0]),
            mo.op_add(x, array),
            mo.op_maximum(0.5, x),
            mo.op_where(x > 0, x, -1.0),
        ]

    x = mo.op_convert_to_tensor([0.25, -1.0])
    for compiled, eager in zip(mo.jit(f)(x), f(x), strict=True):
        assert mo.op_dtype(compiled) == "float32"
        np.testing.assert_array_equal(numpy(compiled), numpy(eager))


def test_large_scalars_beside_a_tensor_become_infinite(backend):
    half, single = mo.op_ones(1, "float16"), mo.op_ones(1, "float32")
    assert numpy(mo.op_add(half, 1e6)).tolist() == [np.inf]
    assert numpy(mo.op_add(half, -1_000_000)).tolist() == [-np.inf]
    assert numpy(mo.op_multiply(single, 1e300)).tolist() == [np.inf]
    assert numpy(mo.op_clip(single, -1e300, 1e300)).tolist() == [1.0]
    assert numpy(mo.op_clip(half, -float("inf"), 1e6)).tolist() == [1.0]
    with pytest.raises(errors.ArgumentError, match="does not fit"):
        mo.op_add(single, 10**400)


def test_nan_bounds_make_nan(backend):
    for bounds in ((np.nan, 1.0), (0.0, np.nan), (np.float32("nan"), 1.0)):
        assert np.isnan(numpy(mo.op_clip(mo.op_convert_to_tensor([0.5]), *bounds))).all()
