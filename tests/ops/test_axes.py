"""An op along an axis is the op along the last axis of what is transposed, in its values and gradients."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import multiop

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype("float32")
SECOND = {  # what the second argument without a default is
    **dict.fromkeys(("x2", "output"), X * 0.5 + 0.1),
    **dict.fromkeys(("n", "k", "shift", "repeats", "kth"), 2),
    "q": 0.3,
}
# the axis is one of the result, or of several tensors
OTHERS = {"op_expand_dims", "op_stack", "op_concatenate", "op_lexsort"}
ALONG = {0: "0", 1: "1", (0, 2): "0 and 2", (0, 1): "0 and 1", (): "none"}
FULL = [axis for axis in ALONG if axis not in (0, (0, 2))]


def arguments(name):
    """Return what `op(x, *arguments, axis=axis)` needs beside `x`; `None` if that is no call of the op."""
    parameters = list(inspect.signature(getattr(multiop, name)).parameters.values())
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    needed = [parameter for parameter in needed[1:] if parameter != "axis"]
    return [SECOND[parameter] for parameter in needed] if set(needed) <= set(SECOND) else None


OPS = sorted(
    name
    for name in dir(multiop)
    if name.startswith("op_") and "axis" in inspect.signature(getattr(multiop, name)).parameters
)
CALLED = [name for name in OPS if name not in OTHERS and arguments(name) is not None]


def test_most_ops_with_an_axis_are_called():
    assert len(CALLED) > 0.75 * len(OPS)


def answers(name, axis, order=None):
    """Return the values and the gradient of an op of `X`, with the dimensions of `X`; `None` if it takes no such axis.

    With `order`, the dimensions of `X` are transposed to it first, and those of the results back.
    """

    def call(*xs):
        xs = [multiop.op_transpose(x, order) if order and multiop.op_shape(x) else x for x in xs]
        return getattr(multiop, name)(*xs, axis=axis)

    xs = [multiop.op_convert_to_tensor(X), *arguments(name)]
    try:
        found = call(*xs)
    except (multiop.errors.ArgumentTypeError, multiop.errors.ArgumentError, TypeError):
        return None
    values = [multiop.op_convert_to_numpy(y) for y in (found if isinstance(found, (tuple, list)) else [found])]
    if order is not None:
        values = [y.transpose(np.argsort(order)) if y.ndim == X.ndim else y for y in values]
    if not values or values[0].dtype.kind != "f":  # one array for each axis, of none none
        return values
    weights = np.random.default_rng(1).normal(size=values[0].shape).astype("float32")

    def loss(x):
        y = call(x, *xs[1:])
        y = y[0] if isinstance(y, (tuple, list)) else y
        if order is not None and len(multiop.op_shape(y)) == X.ndim:
            y = multiop.op_transpose(y, np.argsort(order).tolist())
        return multiop.op_sum(multiop.op_multiply(y, weights))

    return [*values, multiop.op_convert_to_numpy(multiop.grad(loss)(xs[0]))]


@pytest.mark.parametrize(
    "axis", [pytest.param(a, marks=pytest.mark.tier("full") if a in FULL else (), id=ALONG[a]) for a in ALONG]
)
@pytest.mark.parametrize("name", CALLED)
def test_every_axis_is_as_the_last(backend, name, axis):
    found = answers(name, axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    order = [dim for dim in range(X.ndim) if dim not in axes] + list(axes)
    last = tuple(range(X.ndim - len(axes), X.ndim))
    expected = answers(name, last if isinstance(axis, tuple) else -1, order)
    assert (found is None) == (expected is None)
    assert len(found or ()) == len(expected or ())
    for y, wanted in zip(found or (), expected or (), strict=True):
        assert y.dtype == wanted.dtype
        np.testing.assert_allclose(y.astype("float64"), wanted.astype("float64"), rtol=1e-4, atol=1e-5)
