"""What stands between a user and an op: it is there for errors alone, and a user sees the op itself."""

from __future__ import annotations

import ast
import inspect
import pickle
import traceback
from pathlib import Path

import op_list
import pytest

import multiop
from multiop import random
from multiop._call import boundary, recover

pytestmark = pytest.mark.tier("quick")

BAD = {  # an op that passes on, one that computes first, composites with one and three decorators, one that calls
    "op_max": lambda: multiop.op_max([1.0], 7),
    "op_sum": lambda: multiop.op_sum([1.0], 7),
    "op_median": lambda: multiop.op_median([1.0], 7),
    "op_ptp": lambda: multiop.op_ptp([1.0], 7),
    "op_map": lambda: multiop.op_map(3, [1.0]),
}


@pytest.mark.once
@pytest.mark.parametrize("name", BAD)
def test_a_traceback_shows_the_definition_of_the_op_that_was_called(backend, name):
    with pytest.raises(multiop.errors.MultiopError) as caught:
        BAD[name]()
    frames = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename != __file__]
    assert Path(frames[0].filename).parent.name == "frontends"
    assert (frames[0].name, frames[0].line.split("(")[0]) == (name, f"def {name}")
    assert len(frames) <= 3  # the op, what explains its error, and where it failed
    assert frames[0].colno is None  # no marks below parts of a line that is not what ran
    assert "_boundaries" not in "".join(traceback.format_exception(caught.value))


def fails(x):
    try:
        {}["no such key"]
    except KeyError as error:
        raise RuntimeError("of the user") from error


@multiop.op_custom_gradient
def has_failing_rule(x):
    return x * 2.0, fails


def taped():
    with multiop.GradientTape() as tape:
        x = tape.watch(multiop.op_convert_to_tensor([1.0, 2.0]))
        y = has_failing_rule(x)
    return tape.gradient(y, x)


def origins(error):
    """Yield what an error comes from: JAX puts a cause of its own between, TensorFlow makes a cause a context."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


FAILING = {
    "__call__": [
        lambda x: multiop.grad(fails)(x),
        lambda x: multiop.value_and_grad(fails)(x),
        lambda x: multiop.hessian(fails)(x),
        lambda x: multiop.jacobian(fails)(x),
        lambda x: multiop.vmap(fails)(x),
        lambda x: multiop.jit(fails)(x),
        lambda x: multiop.jit(multiop.grad(multiop.checkpoint(fails)))(x),
        lambda x: multiop.grad(lambda x: multiop.op_sum(has_failing_rule(x)))(x),
    ],
    "vjp": [lambda x: multiop.vjp(fails, x)],
    "pullback": [lambda x: multiop.vjp(has_failing_rule, x)[1](x)],
    "jvp": [lambda x: multiop.jvp(fails, (x,), (x,))],
    "hvp": [lambda x: multiop.hvp(fails, (x,), (x,))],
    "linearize": [lambda x: multiop.linearize(fails, x)],
    "gradient": [lambda x: taped()],
    "op_map": [lambda x: multiop.op_map(fails, x)],
    "sparse_jacobian": [lambda x: multiop.sparse_jacobian(fails, x)],
    "sparse_hessian": [lambda x: multiop.sparse_hessian(fails, x)],
}


@pytest.mark.parametrize("door", FAILING)
def test_an_error_of_the_users_function_shows_its_frame_and_one_of_multiop(backend, door):
    for call in FAILING[door]:
        with pytest.raises(RuntimeError, match="of the user") as caught:
            call(multiop.op_convert_to_tensor([1.0, 2.0]))
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert names[-2:] == [door, "fails"]
        assert set(names[:-2]) <= {inspect.currentframe().f_code.co_name, "<lambda>", "taped"}
        assert any(isinstance(error, KeyError) for error in origins(caught.value))


def test_an_error_of_a_compiled_rule_shows_one_frame_of_multiop_and_its_line(backend):
    slope = multiop.jit(multiop.grad(lambda x: multiop.op_sum(has_failing_rule(x))))
    with pytest.raises(RuntimeError, match="of the user") as caught:
        slope(multiop.op_convert_to_tensor([1.0, 2.0]))
    frames = [frame for error in origins(caught.value) for frame in traceback.extract_tb(error.__traceback__)]
    assert [frame.name for frame in frames if frame.filename != __file__] == ["__call__"]
    notes = "".join(getattr(caught.value, "__notes__", []))  # JAX traces a rule before it is asked for
    assert any(frame.name == "fails" for frame in frames) or __file__ in notes


def test_an_error_of_an_op_in_the_users_function_shows_its_frame_and_the_op(backend):
    with pytest.raises(multiop.errors.MultiopError) as caught:
        multiop.grad(lambda x: multiop.op_sum(x, 7))(multiop.op_convert_to_tensor([1.0]))
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[1:] == ["__call__", "<lambda>", "op_sum"]


def test_the_errors_behind_an_error_show_no_path_through_multiop(backend):
    """The framework's own, of which the line that raised is left, and JAX's note of where a rule was met."""
    x, package = multiop.op_convert_to_tensor([1.0, 2.0]), Path(multiop.__file__).parent
    for call in (lambda x: multiop.op_sum(multiop.op_reshape(x, (7,))), lambda x: multiop.op_sum(has_failing_rule(x))):
        with pytest.raises((multiop.errors.MultiopError, RuntimeError)) as caught:
            multiop.grad(call)(x)
        for error in list(origins(caught.value))[1:]:
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
            ours = [frame.name for frame in frames if frame.filename.startswith(str(package))]
            assert len(frames) < 2 or {*ours} == {"__call__"}, frames


@pytest.mark.once
def test_a_setting_keeps_every_frame(backend, monkeypatch):
    monkeypatch.setenv("MULTIOP_FULL_TRACEBACKS", "1")
    with pytest.raises(RuntimeError, match="of the user") as caught:
        multiop.grad(fails)(1.0)
    assert {"gradient", "vjp"} < {frame.name for frame in traceback.extract_tb(caught.value.__traceback__)}


def test_an_error_that_is_caught_inside_is_no_error(backend):
    def recovers(x):
        try:
            return multiop.op_sum(multiop.grad(fails)(x))
        except RuntimeError:
            return multiop.op_sum(x * x)

    x = multiop.op_convert_to_tensor([1.0, 2.0])
    assert multiop.op_convert_to_numpy(multiop.grad(recovers)(x)).tolist() == [2.0, 4.0]
    assert multiop.op_convert_to_numpy(multiop.jit(multiop.grad(recovers))(x)).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("module", [multiop, random], ids=lambda module: module.__name__)
def test_an_op_is_to_python_what_its_source_says(module):
    for name, op in vars(module).items():
        if inspect.isfunction(op) and op.__code__ in multiop._call.keras_symbols.boundaries:
            written = inspect.unwrap(op)
            assert (op.__name__, op.__qualname__) == (name.removeprefix("op_"), name)
            assert op.__module__ == written.__module__ and f"function {name} at" in repr(op)
            assert op.__doc__ and inspect.signature(op) == inspect.signature(written)
            assert (op.__defaults__, op.__kwdefaults__) == (written.__defaults__, written.__kwdefaults__)
            assert inspect.getsource(op) == inspect.getsource(written)
            assert pickle.loads(pickle.dumps(op)) is op
            definition = Path(op.__code__.co_filename).read_text().splitlines()[op.__code__.co_firstlineno - 1]
            assert definition.startswith(f"def {name}(")
            assert {line for *_, line in op.__code__.co_lines()} == {op.__code__.co_firstlineno}


def test_an_op_that_only_passes_on_has_no_call_between_it_and_the_backend():
    source = ast.parse("def op_f(x, *, k, **o):\n    '''Say.'''\n    return active().op_f(x, k=k, **o)").body[0]
    assert op_list.passed_on(source) == ("", "x, k=k, **o")
    guarded = "if k is None:\n        return other(x)\n    return active().op_f(x, k=k, **o)"
    assert op_list.passed_on(ast.parse(f"def op_f(x, *, k, **o):\n    {guarded}").body[0])[0] == "k is None"
    wrong = [guarded.replace("k is None", "other(k)"), guarded.replace("return other", "x = other")]
    for body in ("return active().op_f(other(x), k=k, **o)", "x = 1\n    return active().op_f(x, k=k, **o)", *wrong):
        assert op_list.passed_on(ast.parse(f"def op_f(x, *, k, **o):\n    {body}").body[0]) is None
    passed_on = {op.name for op in op_list.ops() if op.is_primitive and "op" not in direct_calls(op.name)}
    assert len(passed_on) > 100
    assert {"op_exp", "op_max", "op_sum"} <= passed_on and "op_pad" not in passed_on


def direct_calls(name):
    """Return the names that the boundary of an op calls before it fails."""
    function = next(node for node in BOUNDARIES.body if isinstance(node, ast.FunctionDef) and node.name == name)
    call = function.body[0].body[0].body[-1].value  # what is before it looks at bools
    return {call.func.id if isinstance(call.func, ast.Name) else call.func.attr}


BOUNDARIES = ast.parse(Path(inspect.getfile(multiop._call.boundaries)).read_text())


def op_exp(x, dtype=None):
    return active().op_exp(x)  # noqa: F821


def op_max(x, axis, keepdims, initial):
    return active().op_max(x, axis, bool(keepdims), initial)  # noqa: F821


def op_unheard_of(x):
    return x


@pytest.mark.parametrize("op", [op_exp, op_max, op_unheard_of])
def test_an_op_that_was_changed_asks_for_its_boundary_to_be_made_again(op):
    with pytest.raises(ImportError, match=f"older than {op.__name__}; run: nox -s generate"):
        boundary.boundary(op)


def variadic(x, *rest, k, **options):
    return x, rest, k, options


def test_a_failed_call_is_made_again_as_it_was():
    arguments = {"x": 1, "rest": (2, 3), "k": 4, "other": 5}
    assert recover._call(variadic, variadic, arguments) == (1, (2, 3), 4, {"other": 5})
