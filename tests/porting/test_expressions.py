"""Expressions say how an array is made from others, as text that is read back, and are turned around."""

from __future__ import annotations

import numpy as np
import pytest

from multiop import errors
from multiop.porting import _expressions as ex

RNG = np.random.default_rng(0)
ARRAYS = {
    "a": RNG.normal(size=(4, 6)),
    "b": RNG.normal(size=(2, 6)),
    "c": RNG.normal(size=(2, 3, 4)),
    "x y": np.arange(4),
}
SHAPES = {name: x.shape for name, x in ARRAYS.items()}
a, b, c = ARRAYS["a"], ARRAYS["b"], ARRAYS["c"]
CASES = {
    "a": a,
    "a | transpose 1 0": a.T,
    "c | transpose 2 0 1": c.transpose(2, 0, 1),
    "a | reshape 4x6 -> 2x2x6": a.reshape(2, 2, 6),
    "c | flip 0 2": c[::-1, :, ::-1],
    "a | part 1 2:4/6": a[:, 2:4],
    "a | blocks 1 1 0 2": np.concatenate([a[:, 2:4], a[:, :2], a[:, 4:]], 1),
    "concat 0 (a; b)": np.concatenate([a, b]),
    "concat 1 (a | transpose 1 0; b | transpose 1 0) | blocks 1 2 1 0": np.concatenate([a, b]).T[:, [4, 5, 2, 3, 0, 1]],
    "sum (b; a | part 0 0:2/4)": b + a[:2],
    "equal (a; a | transpose 1 0 | transpose 1 0)": a,
    '"x y"': np.arange(4),
}


@pytest.mark.parametrize("text", CASES)
def test_value_and_text(text):
    expression = ex.parse(text)
    assert ex.parse(str(expression)) == expression
    np.testing.assert_array_equal(ex.evaluate(expression, ARRAYS), CASES[text])
    assert ex.shape(expression, SHAPES) == CASES[text].shape


@pytest.mark.parametrize(
    "text",
    [t for t in CASES if "part" not in t and "equal" not in t and "sum" not in t and "concat" not in t],
)
def test_undone(text):
    solved, left = ex.solve([(ex.parse(text), ex.Name("made"))], SHAPES)
    ((name, back),) = solved.items()
    assert not left
    np.testing.assert_array_equal(ex.evaluate(back, {"made": CASES[text]}), ARRAYS[name])


def test_joins_are_pulled_apart_and_parts_put_together():
    solved, left = ex.solve([(ex.parse("concat 0 (a; b | blocks 1 1 0)"), ex.Name("made"))], SHAPES)
    made = np.concatenate([a, np.roll(b, 3, axis=1)])
    assert not left
    for name in "ab":
        np.testing.assert_array_equal(ex.evaluate(solved[name], {"made": made}), ARRAYS[name])
    pieces = {"p": a[:, :2], "q": a[:, 2:]}
    halves = [("a | part 1 2:6/6", "q"), ("a | part 1 0:2/6", "p")]
    solved, left = ex.solve([(ex.parse(text), ex.Name(name)) for text, name in halves], SHAPES)
    np.testing.assert_array_equal(ex.evaluate(solved["a"], pieces), a)
    assert not left
    assert ex.solve([(ex.parse("a | part 1 0:2/6"), ex.Name("p"))], SHAPES)[1] == [ex.Name("a")]


def test_a_sum_goes_back_to_its_first_term_and_gradients_to_each():
    text = ex.parse("sum (a; a2)")
    solved, _ = ex.solve([(text, ex.Name("s"))], {"a": a.shape, "a2": a.shape})
    np.testing.assert_array_equal(ex.evaluate(solved["a"], {"s": a}), a)
    np.testing.assert_array_equal(ex.evaluate(solved["a2"], {"s": a}), 0 * a)
    np.testing.assert_array_equal(ex.evaluate(solved["a2"], {"s": a}, gradient=True), a)
    np.testing.assert_array_equal(ex.evaluate(text, {"a": a, "a2": a}, gradient=True), a)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a name is missing"),
        ("a | turn 1", "there is no step 'turn'"),
        ("a | reshape 2x3 -> 5", "number of entries"),
        ("concat 0 (a; b", "a bracket is not closed"),
        ("a b", "'b' is not expected"),
        ("a )", "left over"),
    ],
)
def test_bad_text(text, message):
    with pytest.raises(errors.ArgumentError, match=message):
        ex.parse(text)


def test_arrays_that_do_not_fit():
    for text in ("a | part 1 0:2/5", "a | reshape 6x4 -> 24", "c | transpose 1 0", "sum (a; b)"):
        with pytest.raises(errors.ArgumentError):
            ex.evaluate(ex.parse(text), ARRAYS)
    with pytest.raises(errors.ArgumentError, match="the arrays differ"):
        ex.evaluate(ex.parse("equal (a; a | flip 0)"), ARRAYS)
