"""Control flow beyond its rows: errors, derivatives of loops, what is mapped and compiled, rules inside bodies."""

import itertools

import numpy as np
import pytest

import multiop as mo
from multiop import errors
from multiop._values import dtypes

X = np.array([1.0, 2.0, 3.0], np.float32)


def numpy(tree):
    return np.asarray(mo.op_convert_to_numpy(tree))


def refused(fun, error, match):
    """Check that an error is raised eagerly and in compiled code."""
    for one in (fun, mo.jit(fun)):
        with pytest.raises(error, match=match):
            one(mo.op_convert_to_tensor(X))


DIFFERENT = {
    "structure": (lambda x: (x, x), lambda x: [x, x]),
    "gap": (lambda x: (x, None), lambda x: (x, x)),
    "shape": (lambda x: x, lambda x: x[:2]),
    "rank": (lambda x: x, lambda x: x[0]),
    "dtype": (lambda x: x, lambda x: mo.op_cast(x, "int32")),
}


@pytest.mark.traced
@pytest.mark.parametrize("case", DIFFERENT)
def test_what_changes_is_refused(backend, case):
    first, second = DIFFERENT[case]
    wrong = errors.ArgumentError
    refused(
        lambda x: mo.op_while_loop(lambda s: False, lambda s: {"k": second(x)}, {"k": first(x)}),
        wrong,
        "what body returns",
    )
    refused(lambda x: mo.op_fori_loop(0, 2, lambda i, s: second(x), first(x)), wrong, "what body_fun returns")
    refused(lambda x: mo.op_fori_loop(0, 0, lambda i, s: second(x), first(x)), wrong, "what body_fun returns")
    refused(lambda x: mo.op_scan(lambda c, e: (second(x), e), first(x), x), wrong, "the carry that f returns")
    if case != "gap":
        refused(
            lambda x: mo.op_associative_scan(lambda a, b: second(x), first(x) if case != "rank" else x),
            wrong,
            "what f returns",
        )


@pytest.mark.traced
@pytest.mark.parametrize("case", DIFFERENT)
def test_branches_that_differ_are_refused_where_both_are_traced(backend, case):
    first, second = DIFFERENT[case]

    def chosen(x):
        return mo.op_cond(x[0] > 0, lambda: first(x), lambda: second(x))

    def switched(x):
        return mo.op_switch(mo.op_cast(x[0], "int32"), [first, first, second], x)

    for function, name in ((chosen, "op_cond"), (switched, "op_switch")):
        with pytest.raises(errors.ArgumentError, match=f"{name}: what"):
            mo.vmap(function)(mo.op_convert_to_tensor(np.stack([X, -X])))


def test_only_the_chosen_branch_runs_where_its_choice_is_known(backend):
    def never(*_):
        raise AssertionError("called")

    x = mo.op_convert_to_tensor(X)
    assert numpy(mo.op_cond(x[0] > 0, lambda: x * x, never)).tolist() == [1, 4, 9]
    assert numpy(mo.op_cond(False, never, lambda: x + 1)).tolist() == [2, 3, 4]
    assert numpy(mo.op_cond(x[0] > 0, lambda x, y: x + y[0], never, x, [X])).tolist() == [2, 4, 6]
    assert numpy(mo.op_switch(mo.op_cast(x[1], "int32"), [never, never, lambda x: x, never], x)).tolist() == [1, 2, 3]
    assert numpy(mo.op_switch(-1, [lambda x: -x, never], x)).tolist() == [-1, -2, -3]
    assert numpy(mo.grad(lambda x: mo.op_sum(mo.op_cond(x[0] > 0, lambda: x * x, never)))(x)).tolist() == [2, 4, 6]


BAD = {
    "pred of floats": (lambda x: mo.op_cond(x[0], lambda: x, lambda: x), errors.DTypeError),
    "pred of several": (lambda x: mo.op_cond(x > 0, lambda: x, lambda: x), errors.ArgumentError),
    "pred is an int": (lambda x: mo.op_cond(1, lambda: x, lambda: x), errors.ArgumentTypeError),
    "pred is None": (lambda x: mo.op_cond(None, lambda: x, lambda: x), errors.ArgumentTypeError),
    "branch is not a function": (lambda x: mo.op_cond(True, lambda: x, x), errors.ArgumentTypeError),
    "branch returns text": (lambda x: mo.op_cond(True, lambda: "x", lambda: "x"), errors.ArgumentTypeError),
    "index of floats": (lambda x: mo.op_switch(x[0], [lambda: x]), errors.DTypeError),
    "index is a bool": (lambda x: mo.op_switch(True, [lambda: x]), errors.ArgumentTypeError),
    "index of several": (lambda x: mo.op_switch(np.array([1, 2]), [lambda: x]), errors.ArgumentError),
    "no branches": (lambda x: mo.op_switch(0, []), errors.ArgumentError),
    "cond of floats": (lambda x: mo.op_while_loop(lambda s: s[0], lambda s: s, x), errors.DTypeError),
    "cond of several": (lambda x: mo.op_while_loop(lambda s: s > 0, lambda s: s, x), errors.ArgumentError),
    "maximum": (lambda x: mo.op_while_loop(lambda s: True, lambda s: s, x, -1), errors.ArgumentError),
    "maximum is a float": (lambda x: mo.op_while_loop(lambda s: True, lambda s: s, x, 1.5), errors.ArgumentTypeError),
    "bound of floats": (lambda x: mo.op_fori_loop(0, x[0], lambda i, s: s, x), errors.DTypeError),
    "bound is a float": (lambda x: mo.op_fori_loop(0, 2.0, lambda i, s: s, x), errors.ArgumentTypeError),
    "bound beyond int32": (lambda x: mo.op_fori_loop(0, 2**70, lambda i, s: s, x), errors.ArgumentError),
    "bound below int32": (lambda x: mo.op_fori_loop(-(2**31) - 1, 0, lambda i, s: s, x), errors.ArgumentError),
    "no pair": (lambda x: mo.op_scan(lambda c, e: c, x, x), errors.ArgumentTypeError),
    "lengths": (lambda x: mo.op_scan(lambda c, e: (c, c), x, (x, x[:2])), errors.ArgumentError),
    "another length": (lambda x: mo.op_scan(lambda c, e: (c, c), x, x, length=2), errors.ArgumentError),
    "no length": (lambda x: mo.op_scan(lambda c, e: (c, c), x), errors.ArgumentError),
    "scalar xs": (lambda x: mo.op_scan(lambda c, e: (c, c), x, x[0]), errors.ArgumentError),
    "unroll": (lambda x: mo.op_scan(lambda c, e: (c, c), x, x, unroll=0), errors.ArgumentError),
    "axis": (lambda x: mo.op_associative_scan(lambda a, b: a + b, x, axis=1), errors.ArgumentError),
    "no elems": (lambda x: mo.op_associative_scan(lambda a, b: a + b, ()), errors.ArgumentTypeError),
    "nothing to map": (lambda x: mo.op_map(lambda e: e, ()), errors.ArgumentError),
    "no elements": (lambda x: mo.op_vectorized_map(lambda e: e, []), errors.ArgumentTypeError),
    "sizes": (lambda x: mo.op_vectorized_map(lambda e: e[0], [x, x[:2]]), errors.ArgumentError),
    "signature": (lambda x: mo.op_vectorize(lambda x: x, signature="(n)")(x), errors.ArgumentError),
    "too few": (lambda x: mo.op_vectorize(lambda x: x, signature="(n),(n)->()")(x), errors.ArgumentError),
    "core sizes": (
        lambda x: mo.op_vectorize(lambda x, y: x[0], signature="(n),(n)->()")(x, x[:2]),
        errors.ArgumentError,
    ),
    "not as signed": (lambda x: mo.op_vectorize(lambda x: x, signature="(n)->()")(x), errors.ArgumentError),
    "not scalar": (lambda x: mo.op_vectorize(lambda e: mo.op_stack([e, e]))(x), errors.ArgumentError),
    "no broadcast": (lambda x: mo.op_vectorize(lambda a, b: a)(x, x[:2]), errors.ArgumentError),
    "by name": (lambda x: mo.op_vectorize(lambda a, b: a)(x, b=x), errors.ArgumentTypeError),
    "excluded": (lambda x: mo.op_vectorize(lambda a: a, excluded=[None])(x), errors.ArgumentTypeError),
    "view of parts": (lambda x: mo.op_view(x, "complex64"), errors.ArgumentError),
    "view of a scalar": (lambda x: mo.op_view(x[0], "int8"), errors.ArgumentError),
    "saturate complex": (lambda x: mo.op_saturate_cast(mo.op_cast(x, "complex64"), "int8"), errors.DTypeError),
    "not two parts": (lambda x: mo.op_view_as_complex(x), errors.ArgumentError),
    "complex parts": (lambda x: mo.op_view_as_complex(mo.op_cast(x[:2], "complex64")), errors.DTypeError),
    "real": (lambda x: mo.op_view_as_real(x), errors.DTypeError),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(backend, case):
    fun, error = BAD[case]
    with pytest.raises(error, match=r"op_\w+: ") as caught:
        fun(mo.op_convert_to_tensor(X))
    assert type(caught.value) is error


def test_an_error_of_the_caller_passes_unchanged(backend):
    def body(*_):
        raise KeyError("mine")

    for run in (
        lambda: mo.op_cond(True, body, body),
        lambda: mo.op_while_loop(lambda x: x < 3.0, body, 1.0),
        lambda: mo.op_scan(body, 0.0, X),
        lambda: mo.op_vectorized_map(body, X),
    ):
        with pytest.raises(KeyError, match="mine"):
            run()


@mo.op_custom_gradient
def tripled(x):
    """The identity, with three times its gradient."""
    return x * 1.0, lambda upstream: upstream * 3.0


RULES = {
    "cond": (lambda x: mo.op_cond(x[0] > 0, lambda: tripled(x), lambda: x), [3, 3, 3]),
    "switch": (lambda x: mo.op_switch(mo.op_cast(x[0], "int32"), [lambda y: y, tripled], x), [3, 3, 3]),
    "scan": (lambda x: mo.op_scan(lambda c, e: (tripled(c) + e, None), 0.0, x)[0], [9, 3, 1]),
    "fori": (lambda x: mo.op_fori_loop(0, 2, lambda i, s: tripled(s), x), [9, 9, 9]),
    "map": (lambda x: mo.op_map(tripled, x), [3, 3, 3]),
    "vectorized_map": (lambda x: mo.op_vectorized_map(tripled, x), [3, 3, 3]),
    "vectorize": (lambda x: mo.op_vectorize(tripled)(x), [3, 3, 3]),
    "associative_scan": (lambda x: mo.op_associative_scan(lambda a, b: tripled(a) + b, x)[2], [9, 3, 1]),
}


@pytest.mark.parametrize("case", RULES)
def test_a_custom_gradient_keeps_its_rule(backend, case):
    fun, expected = RULES[case]

    def total(x):
        return mo.op_sum(fun(x))

    x = mo.op_convert_to_tensor(X)
    for gradient in (mo.grad(total), mo.jit(mo.grad(total)), mo.grad(mo.jit(total))):
        np.testing.assert_array_equal(numpy(gradient(x)), expected)
    tangent = mo.jvp(total, (x,), (mo.op_convert_to_tensor([1.0, 10.0, 100.0]),))[1]
    assert float(tangent) == np.dot(expected, [1, 10, 100])


def powers(x):
    """Multiply by `x` until the sum exceeds 100."""
    return mo.op_sum(mo.op_while_loop(lambda i, s: mo.op_sum(s) < 100.0, lambda i, s: (i + 1, s * x), (0, x))[1])


def test_derivatives_of_while_loop(backend):
    x, v = mo.op_convert_to_tensor(X), mo.op_convert_to_tensor([1.0, 0.0, 2.0])
    output, tangent = mo.jvp(powers, (x,), (v,))
    assert (float(output), float(tangent)) == (276.0, 815.0)
    if backend == "jax":
        for gradient in (mo.grad(powers), mo.jit(mo.grad(powers))):
            with pytest.raises(errors.NoGradientError, match="while_loop"):
                gradient(x)
        return
    for gradient in (mo.grad(powers), mo.jit(mo.grad(powers)), mo.grad(mo.jit(powers))):
        np.testing.assert_allclose(numpy(gradient(x)), [5, 80, 405], rtol=1e-6)
    np.testing.assert_allclose(numpy(mo.hvp(powers, (x,), (v,))), [20, 0, 1080], rtol=1e-6)
    second = mo.jit(mo.grad(lambda x: mo.op_sum(mo.grad(powers)(x) * v)))
    np.testing.assert_allclose(numpy(second(x)), [20, 0, 1080], rtol=1e-6)


def test_a_loop_ends_after_its_maximum_of_iterations(backend):
    def doubled(x):
        return mo.op_while_loop(lambda x: mo.op_sum(x) < 100, lambda x: 2 * x, x, maximum_iterations=2)

    for fun in (doubled, mo.jit(doubled)):
        np.testing.assert_array_equal(numpy(fun(mo.op_convert_to_tensor(X))), 4 * X)


def test_while_loop_ends_for_each_entry_by_itself(backend):
    xs = mo.op_convert_to_tensor([[1.0, 2.0, 3.0], [2.0, -3.0, 0.5]])
    for mapped in (mo.vmap(powers), mo.jit(mo.vmap(powers))):
        np.testing.assert_allclose(numpy(mapped(xs)), [276.0, 793.015625])
    if backend != "jax":
        expected = [[5, 80, 405], [192, -1458, 0.1875]]
        np.testing.assert_allclose(numpy(mo.vmap(mo.grad(powers))(xs)), expected, rtol=1e-6)


def test_fori_loop_with_bounds_of_run_time(backend):
    def fun(n, x):
        return mo.op_fori_loop(1, n, lambda i, s: s * mo.op_cast(i, "float32"), x)

    for one in (fun, mo.jit(fun)):
        assert [float(one(mo.op_convert_to_tensor(n), 2.0)) for n in (5, 0)] == [48.0, 2.0]
    counts = mo.vmap(fun, in_axes=(0, None))(mo.op_convert_to_tensor([0, 3, 5]), 2.0)
    assert numpy(counts).tolist() == [2.0, 4.0, 48.0]


def test_closed_over_values_have_gradients(backend):
    def fun(x, y):
        chosen = mo.op_cond(mo.op_sum(x) > 0.0, lambda: x * y, lambda: x)
        return mo.op_sum(mo.op_scan(lambda c, e: (c * y + e, c), y, chosen)[0])

    x, y = mo.op_convert_to_tensor(X), mo.op_convert_to_tensor(2.0)
    wanted = [[8.0, 4.0, 2.0], 4 * 8 + 3 * 4 * 1 + 2 * 2 * 2 + 3.0]
    for gradient in (mo.grad(fun, (0, 1)), mo.jit(mo.grad(fun, (0, 1)))):
        for found, expected in zip(gradient(x, y), wanted, strict=True):
            np.testing.assert_allclose(numpy(found), expected, rtol=1e-6)


def test_the_branch_not_taken_does_not_spoil_the_gradient(backend):
    def fun(x):
        return mo.op_cond(x > 0.0, lambda: mo.op_log(x), lambda: x * 0.0)

    zero = mo.op_convert_to_tensor(0.0)
    for gradient in (mo.grad(fun), mo.jit(mo.grad(fun)), mo.grad(mo.jit(fun))):
        assert float(gradient(zero)) == 0.0


def test_nothing_to_scan(backend):
    xs = mo.op_zeros((0, 2))
    for scan in (mo.op_scan, mo.jit(mo.op_scan, static_argnums=0)):
        carry, ys = scan(lambda c, x: (c + 1.0, {"y": x[0] > c, "none": None}), 1.0, xs)
        assert (float(carry), ys["none"], numpy(ys["y"]).shape, mo.op_dtype(ys["y"])) == (1.0, None, (0,), "bool")
    assert mo.op_shape(mo.op_map(lambda x: mo.op_stack([x, x]), xs)) == (0, 2, 2)
    assert mo.op_shape(mo.op_vectorized_map(lambda x: mo.op_stack([x, x]), xs)) == (0, 2, 2)
    assert mo.op_shape(mo.op_associative_scan(lambda a, b: a + b, xs)) == (0, 2)


def test_control_flow_nests(backend):
    def body(carry, x):
        grown = mo.op_while_loop(lambda c: c < 10.0, lambda c: c * 2.0, carry)
        return mo.op_cond(x > 1.5, lambda: grown, lambda: carry), grown

    for scan in (mo.op_scan, mo.jit(mo.op_scan, static_argnums=0)):
        carry, ys = scan(body, 1.0, mo.op_convert_to_tensor(X))
        assert (float(carry), numpy(ys).tolist()) == (16.0, [16.0, 16.0, 16.0])


def test_indices_and_carries_have_the_dtypes_of_tensors(backend):
    seen = []
    mo.op_fori_loop(0, 1, lambda i, s: seen.append(mo.op_dtype(i)) or s, 0.0)
    assert seen == ["int32"]
    carry, _ = mo.op_scan(lambda c, x: (c + 1, x), 0, X)
    assert (int(carry), mo.op_dtype(carry)) == (3, "int32")
    assert mo.op_dtype(mo.op_cond(True, lambda: 1, lambda: 2)) == "int32"


SMALL = [name for name in dtypes.ALL if name not in dtypes.COMPLEX]
VALUES = [-np.inf, -1e300, -70000.0, -129.0, -1.5, -0.0, 0.0, 0.5, 1.0, 127.0, 255.9, 65520.0, 2.0**31, 2.0**63, np.inf]


@pytest.mark.parametrize("source", SMALL)
def test_saturate_cast_between_all_dtypes(backend, source, multiop_x64):
    for target in SMALL:
        if source in dtypes.FLOATING:
            with np.errstate(over="ignore"):
                x = np.array(VALUES).astype(dtypes.to_numpy(source))
        elif source == "bool":
            x = np.array([False, True])
        else:
            low, high = dtypes.INTEGER_RANGE[source]
            x = np.array([low, low + 1, 0, 1, 100, high - 1, high], source)
        found = numpy(mo.op_saturate_cast(mo.op_convert_to_tensor(x, dtype=source), target))
        expected = [saturated(value, source, target) for value in x.tolist()]
        with np.errstate(over="ignore"):
            expected = np.array(expected, float if target in dtypes.FLOATING else target)
            expected = expected.astype(dtypes.to_numpy(target))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, err_msg=f"{source} to {target}")


def saturated(value, source, target):
    """What one number becomes, in Python's unbounded arithmetic."""
    if "bool" in (source, target):
        return value
    low, high = dtypes.EXTREMES[target]
    if target in dtypes.INTEGER:
        return low if value < low else high if value > high else int(value)
    widened = source in dtypes.FLOATING and dtypes.EXTREMES[source][1] <= high
    return value if widened else min(max(value, low), high)


WIDTHS = [name for name in dtypes.ALL if name != "bool"]


@pytest.mark.parametrize("source", WIDTHS)
def test_view_is_that_of_numpy(backend, source, multiop_x64):
    bits = np.random.default_rng(0).integers(0, 100, (2, 16), np.uint8)
    x = bits.view(dtypes.to_numpy(source))
    for target in WIDTHS:
        found = numpy(mo.op_view(mo.op_convert_to_tensor(x), target))
        expected = x.view(dtypes.to_numpy(target))
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.tobytes() == expected.tobytes(), f"{source} as {target}"


def test_view_of_bool(backend):
    x = mo.op_convert_to_tensor([True, False, True, True])
    assert numpy(mo.op_view(x, "uint8")).tolist() == [1, 0, 1, 1]
    assert numpy(mo.op_view(x, "int32")).tolist() == [1 + 2**16 + 2**24]
    assert numpy(mo.op_view(np.array([0, 1, 2], np.uint8), "bool")).tolist() == [False, True, True]


def test_view_has_no_gradient_but_for_the_same_dtype(backend):
    z = mo.op_convert_to_tensor([1.0 + 2.0j])
    for dtype, expected in (("float32", 0.0), ("complex64", 2.0)):
        gradient = mo.grad(lambda z, d=dtype: mo.op_sum(mo.op_real(mo.op_view(z, d) * 2.0)))(z)
        assert numpy(gradient).tolist() == [expected]


def test_views_of_what_is_not_contiguous(backend):
    x = mo.op_transpose(mo.op_convert_to_tensor(np.arange(4, dtype=np.float32).reshape(2, 2)))
    assert numpy(mo.op_view_as_complex(x)).tolist() == [2j, 1 + 3j]
    assert (
        numpy(mo.op_view(x, "int32")).tolist()
        == np.arange(4, dtype=np.float32).reshape(2, 2).T.copy().view(np.int32).tolist()
    )
    assert mo.op_shape(mo.op_view_as_real(mo.op_zeros((0, 3), "complex64"))) == (0, 3, 2)
    z = mo.op_conj(mo.op_convert_to_tensor([1 + 2j]))
    assert numpy(mo.op_view_as_real(z)).tolist() == [[1.0, -2.0]]


def test_vectorize_with_signatures(backend):
    def outer(x, y):
        return mo.op_reshape(x, (-1, 1)) * y, mo.op_sum(x)

    found = mo.op_vectorize(outer, signature="(m),(n)->(m,n),()")(np.ones((4, 1, 2)), np.arange(6.0).reshape(2, 3))
    assert [mo.op_shape(y) for y in found] == [(4, 2, 2, 3), (4, 2)]
    power = mo.op_vectorize(lambda x, n, scale: x**n * scale, excluded=[1, "scale"])
    assert numpy(power(np.float32([1, 2, 3]), 2, scale=10.0)).tolist() == [10, 40, 90]
    assert mo.op_shape(mo.op_vectorize(lambda a, b: a + b)(np.zeros((0, 1)), np.zeros(3))) == (0, 3)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 13])
def test_associative_scan_of_each_size(backend, n):
    calls = itertools.count()

    def concatenate(a, b):  # associative, but not commutative
        next(calls)
        return {"value": a["value"] * b["scale"] + b["value"], "scale": a["scale"] * b["scale"]}

    elems = {"value": np.arange(1.0, n + 1, dtype=np.float32), "scale": np.full(n, 2.0, np.float32)}
    found = numpy(mo.op_associative_scan(concatenate, elems)["value"])
    expected = list(itertools.accumulate(np.arange(1.0, n + 1), lambda a, b: a * 2 + b))
    np.testing.assert_array_equal(found, np.float32(expected))
    assert next(calls) <= 2 * np.ceil(np.log2(n)) + 1
