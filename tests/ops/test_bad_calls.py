"""Every op, called badly in every argument: the error is multiop's, and names the op and the argument of that call."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import multiop
from multiop import errors
from multiop._call import boundaries
from multiop._call.explain import explain
from multiop.testing import _worker
from multiop.testing._problem import Problem
from multiop.testing.cases import control_flow, rows

X = np.ones((1, 2), np.float32)
BAD = {
    "an object": object(),
    "a text": "nonsense",
    "nothing": None,
    "ragged lists": [[1], [2, 3]],
    "a dict": {"a": 1},
    "not a number": float("nan"),
    "a large number": 99,
    "a negative number": -99,
    "a complex number": 1j,
    "a function": lambda: 0,
}
LOOPS = {row.op for row in control_flow.ROWS}
# what a framework says of itself: names of kernels, nodes and devices, wrappers, tracers
LEAKS = ("{{", "__wrapped__", "[Op:", "Tracer", "device:", "DynamicJaxpr")
# an object is as good as any other: it is or is no tensor, or is read as true
TAKES_ANYTHING = {("op_is_tensor", "x"), *((op, "keepdims") for op in rows()), ("op_vander", "increasing")}
AXES = {"axis", "axis1", "axis2", "axisa", "axisb", "axisc", "source", "destination"}
# these take two tensors of any shapes
UNLIKE = {"op_outer", "op_kron", "op_cross", "op_append", "op_isin", "op_setdiff1d", "op_union1d", "op_intersect1d"}
NOT_READ = {("op_ctc_decode", "beam_width"), ("op_ctc_decode", "top_paths")}  # in the greedy strategy of the first call


def good_call(op):
    """Return the arguments of the first call of an op's row."""
    row, taken = rows()[op], []

    def call(*args, **kwargs):
        taken.append(inspect.signature(function).bind(*args, **kwargs).arguments)
        return lambda *_: None  # the arguments are all that is wanted

    function = getattr(multiop, op)
    dtype = next((name for name in ("float32", "int32") if name in row.dtypes), row.dtypes[0])
    problem = Problem(call, row.calls[0], dtype=dtype)
    problem.apply(problem.f, problem.arrays)
    return taken[0]


def bad_calls(op, kinds):
    """Yield the arguments of calls of an op, each with one bad argument, its name and what is bad."""
    good = good_call(op)
    for name, parameter in inspect.signature(getattr(multiop, op)).parameters.items():
        # whatever is no function is bad for one; a bad tensor of a loop is for the user's function to refuse
        if op in LOOPS and name in ("init", "init_val", "loop_vars", "operands"):
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        for kind in kinds:
            if kind != "a function" or op not in LOOPS:
                yield good | {name: BAD[kind]}, name, kind


def apply(op, arguments):
    """Call an op with arguments by name."""
    signature = inspect.signature(getattr(multiop, op))
    ordered = {key: arguments[key] for key in signature.parameters if key in arguments}
    given = inspect.BoundArguments(signature, ordered)
    return getattr(multiop, op)(*given.args, **given.kwargs)


def complaint(op, arguments, name, kind):
    """Return what is wrong with the error of a call, or `None`."""
    try:
        apply(op, arguments)
    except errors.MultiopError as error:
        text = str(error)
        if error.op != op or not text.startswith(f"{op}: ") or text.count("\n  in ") != 1:
            return f"blames {error.op}: {text}"
        if f"{name}={multiop._values.args.describe(BAD[kind])}" not in text.split("\n  in ")[1]:
            return f"does not say what {name} is: {text}"
        return next((f"leaks {leak}: {text}" for leak in LEAKS if leak in text.split("\n  in ")[0]), None)
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    if kind == "an object" and (op, name) not in TAKES_ANYTHING | NOT_READ:
        return "is accepted"
    return None


def complaints(ops, kinds):
    found = []
    for op in ops:
        for arguments, name, kind in bad_calls(op, kinds):
            if text := complaint(op, arguments, name, kind):
                found.append(f"{op}({name} is {kind}) {text}")
    return found


@pytest.mark.filterwarnings("ignore")
def test_a_bad_call_is_refused_in_the_words_of_the_call(backend):
    assert not complaints(rows(), ["an object", "ragged lists"])


@pytest.mark.tier("full")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [kind for kind in BAD if kind not in ("an object", "ragged lists")])
def test_any_bad_call_is_refused_in_the_words_of_the_call(backend, kind):
    assert not complaints(rows(), [kind])


def switches():
    """Yield each function of `multiop` with each of its parameters that is a bool."""
    functions = [getattr(multiop, name) for name in dir(multiop) if name.startswith("op_")]
    for function in [*functions, *(getattr(multiop.random, name) for name in dir(multiop.random))]:
        if hasattr(boundaries, function.__qualname__):
            for name, parameter in inspect.signature(function).parameters.items():
                if parameter.annotation == "bool":
                    yield function, name


def test_a_switch_takes_a_bool_alone(backend):
    assert len(list(switches())) > 60
    for function, name in switches():
        parameters = inspect.signature(function).parameters.values()
        needed = {p.name: X for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
        for bad in ("no", 2, None, 0.0, X):
            with pytest.raises(
                errors.ArgumentTypeError, match=f"^{function.__qualname__}: {name} must be a bool, got "
            ):
                function(**{**needed, name: bad})
    assert multiop.op_shape(multiop.op_sum(X, keepdims=np.True_)) == (1, 1)
    with pytest.raises(errors.ArgumentTypeError, match="^op_rot90: k must be an int, got 1.5"):
        multiop.op_rot90(X, 1.5)


def test_an_axis_out_of_range(backend):
    for op in rows():
        for name in AXES & {*inspect.signature(getattr(multiop, op)).parameters}:
            for axis in (99, -99):
                with pytest.raises(errors.ArgumentError, match=f"^{op}: .*(ax[ei]s|{name})"):
                    apply(op, good_call(op) | {name: axis})


def test_an_axis_of_a_diagonal_that_is_a_bool():
    with multiop.use_backend("numpy"):
        for op in (multiop.op_diagonal, multiop.op_trace):
            for axes in ((True, 1), (0, True)):
                with pytest.raises(errors.ArgumentTypeError, match="must be an int, got True"):
                    op(multiop.op_ones((2, 2)), 0, *axes)


def test_shapes_that_do_not_broadcast(backend):
    found = []
    for op, row in rows().items():
        names = [*inspect.signature(getattr(multiop, op)).parameters][:2]
        if names in (["x1", "x2"], ["x", "y"]) and op not in UNLIKE:
            dtype = next(name for name in ("float32", "int32") if name in row.dtypes)
            pair = np.ones((2, 3), dtype), np.ones(2, "int32" if op == "op_ldexp" else dtype)
            with pytest.raises(errors.ArgumentError, match=f"^{op}: "):
                apply(op, good_call(op) | dict(zip(names, pair, strict=True)))
            found.append(op)
    assert len(found) > 40


def test_a_word_that_is_none_of_an_options_words(backend):
    for op in rows():
        for name, parameter in inspect.signature(getattr(multiop, op)).parameters.items():
            if isinstance(parameter.default, str) or name == "data_format":
                with pytest.raises(errors.ArgumentError, match=f"^{op}: .*{name} must be "):
                    apply(op, good_call(op) | {name: "nonsense"})


@pytest.mark.parametrize(
    ("call", "op", "text"),
    [
        (lambda: multiop.op_image_rgb_to_hsv(object()), "op_image_rgb_to_hsv", "images=<object"),
        (lambda: multiop.op_median(None), "op_median", "x=None"),
        (lambda: multiop.op_quantile([1.0, 2.0], None), "op_quantile", "q=None"),
        (lambda: multiop.op_diff([1, 2], 1, 3), "op_diff", r"axis 3 is out of range"),
        (lambda: multiop.op_trapezoid([1, 2], axis=7), "op_trapezoid", "axis 7 is out of range"),
        (lambda: multiop.op_hstack(3), "op_hstack", "xs=3"),
        (lambda: multiop.op_map(3, [1.0]), "op_map", "f must be callable"),
        (lambda: multiop.op_map(lambda x: x, 3), "op_map", "xs=3"),
        (lambda: multiop.op_tri("3"), "op_tri", "N must be an int"),
        (lambda: multiop.op_matmul(X, X), "op_matmul", r"shapes \(1, 2\) and \(1, 2\) do not fit"),
        (lambda: multiop.op_add([1, 2], [1, 2, 3]), "op_add", r"shapes \(2,\) and \(3,\) do not broadcast"),
        (lambda: multiop.op_map(lambda x: multiop.op_sum(x, axis=4), X), "op_sum", "axis 4"),
        (lambda: multiop.op_cond(True, lambda: multiop.op_sum([1.0], 4), lambda: 0.0), "op_sum", "axis 4"),
    ],
)  # fmt: skip
def test_the_op_that_the_user_called_is_named(backend, call, op, text):
    with pytest.raises(errors.MultiopError, match=text) as caught:
        call()
    assert caught.value.op == op and str(caught.value).startswith(f"{op}: ")


def test_an_argument_has_the_name_it_has_in_the_call(backend):
    bad = object()
    error = explain(errors.ArgumentTypeError("x must be a tensor, not 'x'"), "op_within", {"x": bad, "y": 1})
    error = explain(error, "op_called", {"given": bad, "x": 2})
    assert str(error) == f"op_called: given must be a tensor, not 'given'\n  in op_called(given={bad!r}, x=2)"


def test_an_op_that_blames_another_is_found(backend, monkeypatch):
    monkeypatch.setattr(multiop, "op_median", inspect.unwrap(multiop.op_median))
    assert any("blames" in text for text in complaints(["op_median"], ["an object"]))
    monkeypatch.setattr(multiop, "op_abs", lambda x: x)
    monkeypatch.setattr(multiop, "op_exp", lambda x: x + 1)
    assert [text.split(") ")[1].split(":")[0] for text in complaints(["op_abs", "op_exp"], ["an object"])] == [
        "is accepted", "raises TypeError",
    ]  # fmt: skip


UNKNOWN_VALUES = {  # what needs a value: in the result's shape, or as an option
    "bincount": lambda i, n, x: multiop.op_bincount(i, minlength=3),
    "bincount with weights": lambda i, n, x: multiop.op_bincount(i, x),
    "bincount of rows": lambda i, n, x: multiop.op_bincount(multiop.op_reshape(i, (2, 2))),
    "unique": lambda i, n, x: multiop.op_unique(i),
    "nonzero": lambda i, n, x: multiop.op_nonzero(i),
    "where": lambda i, n, x: multiop.op_where(i > 1),
    "a mask": lambda i, n, x: multiop.op_get_item(x, i > 1),
    "values for a mask": lambda i, n, x: multiop.op_set_item(x, i > 1, np.float32([5, 6])),
    "segment_sum": lambda i, n, x: multiop.op_segment_sum(x, i),
    "repeat": lambda i, n, x: multiop.op_repeat(x, i),
    "arange": lambda i, n, x: multiop.op_arange(n),
    "linspace": lambda i, n, x: multiop.op_linspace(0.0, 1.0, n),
    "zeros": lambda i, n, x: multiop.op_zeros((n,)),
    "tri": lambda i, n, x: multiop.op_tri(n),
    "reshape": lambda i, n, x: multiop.op_reshape(x, (n, 2)),
    "broadcast_to": lambda i, n, x: multiop.op_broadcast_to(x, (n, 4)),
    "tile": lambda i, n, x: multiop.op_tile(x, (n,)),
    "pad": lambda i, n, x: multiop.op_pad(x, ((n, 1),)),
    "roll": lambda i, n, x: multiop.op_roll(x, n),
    "slice": lambda i, n, x: multiop.op_slice(x, [0], [n]),
    "split": lambda i, n, x: multiop.op_split(x, [n])[0],
    "sum": lambda i, n, x: multiop.op_sum(x, n - 2),
    "diagonal": lambda i, n, x: multiop.op_diagonal(multiop.op_reshape(x, (2, 2)), n - 2),
    "vander": lambda i, n, x: multiop.op_vander(x, n),
    "round": lambda i, n, x: multiop.op_round(x, n),
    "histogram": lambda i, n, x: multiop.op_histogram(x, 3, (0.0, n)),
    "convert_to_numpy": lambda i, n, x: multiop.op_convert_to_numpy(x),
}


@pytest.mark.parametrize("name", UNKNOWN_VALUES)
def test_a_value_that_compiled_code_lacks(backend, name):
    """Compiled code gives what eager code gives, or multiop's own error, in which no tracer occurs."""
    f = UNKNOWN_VALUES[name]
    args = [multiop.op_convert_to_tensor(x) for x in (np.int32([1, 2, 2, 0]), np.int32(2), np.float32([1, 2, 0.5, 3]))]
    try:
        found = multiop.jit(f)(*args)
    except errors.MultiopError as error:
        message = str(error).split("\n")[0]
        assert not any(word in message for word in (*LEAKS, "Traced", "Symbolic", "hashable", "__index__"))
    else:
        for one, other in zip(leaves(found), leaves(f(*args)), strict=True):
            np.testing.assert_array_equal(one, other)


def leaves(result):
    return [multiop.op_convert_to_numpy(x) for x in (result if isinstance(result, (tuple, list)) else [result])]


@pytest.mark.parametrize(
    ("name", "advice"), [("bincount", "op_segment_sum"), ("unique", "size"), ("where", "x1 and x2")]
)
def test_a_result_whose_size_depends_on_values_says_what_to_do(backend, name, advice):
    if backend != "jax":
        pytest.skip("its compiled code may have results of unknown size")
    args = np.int32([1, 2, 2, 0]), np.int32(2), np.float32([1, 2, 0.5, 3])
    with pytest.raises(errors.ArgumentError, match=f"not known in compiled or mapped code; .*{advice}"):
        multiop.jit(UNKNOWN_VALUES[name])(*map(multiop.op_convert_to_tensor, args))


def test_a_number_read_of_what_is_mapped_is_told_from_other_errors(backend):
    if backend == "numpy":
        pytest.skip("its vmap is a loop")
    with pytest.raises((errors.ArgumentError, errors.ArgumentTypeError)) as caught:
        multiop.vmap(lambda x: multiop.op_convert_to_numpy(x) * x)(multiop.op_ones((2, 3)))
    assert _worker._error_result(caught.value)["reads"]
    with pytest.raises(errors.ArgumentError) as caught:
        multiop.vmap(lambda x: multiop.op_reshape(x, (4,)))(multiop.op_ones((2, 3)))
    assert not _worker._error_result(caught.value)["reads"]


@pytest.mark.parametrize("name", ["reshape", "broadcast_to", "diagonal", "vander", "round", "tile", "zeros"])
def test_an_option_may_be_a_tensor(backend, name):
    args = np.int32([1, 2, 2, 0]), 2, np.float32([1, 2, 0.5, 3])
    given = [multiop.op_convert_to_tensor(np.int32(x) if isinstance(x, int) else x) for x in args]
    if backend == "tensorflow" and name == "tile":
        pytest.skip("TensorFlow's scalar has no __index__")
    f = UNKNOWN_VALUES[name]
    np.testing.assert_array_equal(leaves(f(*given)), leaves(f(args[0], 2, args[2])))
