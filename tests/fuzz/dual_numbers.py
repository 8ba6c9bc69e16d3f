"""What multiop should compute, in NumPy alone: the few ops and transforms that programs of seams are made of.

A derivative is carried along with its value, as a dual number whose parts may be dual numbers again. Nothing is
recorded and nothing is run backwards, so no fault of a graph, a tape or a tracer can be shared with it. A function is
called once by each transform, so that it draws the same random numbers.
"""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import multiop

_tags = itertools.count(1)


class Dual:
    """A value, and its derivatives along some directions, which are the leading axis of `tangent`.

    Attributes:
        tag: Which transform it belongs to: one that began later has a larger one.
        primal: The value, which may belong to transforms that began earlier.
        tangent: The derivatives.
    """

    __array_ufunc__ = None  # NumPy leaves operators to this class

    def __init__(self, tag: int, primal: Any, tangent: Any) -> None:
        self.tag, self.primal, self.tangent = tag, primal, tangent

    def __neg__(self) -> Any:
        return mul(self, -1.0)

    def __add__(self, other: Any) -> Any:
        return add(self, other)

    def __sub__(self, other: Any) -> Any:
        return add(self, mul(other, -1.0))

    def __rsub__(self, other: Any) -> Any:
        return add(other, mul(self, -1.0))

    def __mul__(self, other: Any) -> Any:
        return mul(self, other)

    def __truediv__(self, other: Any) -> Any:
        return mul(self, reciprocal(other))

    def __rtruediv__(self, other: Any) -> Any:
        return mul(other, reciprocal(self))

    def __getitem__(self, item: int) -> Any:
        return _linear(lambda x: x[..., item], self)

    __radd__, __rmul__ = __add__, __mul__


def base(x: Any) -> Any:
    """Return the value alone."""
    return base(x.primal) if isinstance(x, Dual) else np.asarray(x)


def _tag(*xs: Any) -> int:
    return max(x.tag if isinstance(x, Dual) else 0 for x in xs)


def _primal(x: Any, tag: int) -> Any:
    return x.primal if isinstance(x, Dual) and x.tag == tag else x


def _tangent(x: Any, tag: int, n: int) -> Any:
    return x.tangent if isinstance(x, Dual) and x.tag == tag else np.zeros((n, *base(x).shape))


def _directions(tag: int, *xs: Any) -> int:
    return next(base(x.tangent).shape[0] for x in xs if isinstance(x, Dual) and x.tag == tag)


def _linear(fun: Callable[[Any], Any], x: Any) -> Any:
    """Apply a function of the last axes that moves or adds entries."""
    return Dual(x.tag, _linear(fun, x.primal), _linear(fun, x.tangent)) if isinstance(x, Dual) else fun(np.asarray(x))


def _expanded(x: Any, shape: tuple[int, ...]) -> Any:
    rank = base(x).ndim
    if base(x).shape == shape:
        return x

    def expand(y: Any) -> Any:
        lead, own = y.shape[: y.ndim - rank], y.shape[y.ndim - rank :]
        return np.broadcast_to(y.reshape(*lead, *[1] * (len(shape) - rank), *own), lead + shape)

    return _linear(expand, x)


def _binary(fun: Callable[[Any, Any], Any], tangent: Callable[[Any, Any, Any, Any], Any], a: Any, b: Any) -> Any:
    tag = _tag(a, b)
    if not tag:
        return fun(a, b)
    shape = np.broadcast_shapes(base(a).shape, base(b).shape)
    a, b = _expanded(a, shape), _expanded(b, shape)
    n = _directions(tag, a, b)
    x, y = _primal(a, tag), _primal(b, tag)
    return Dual(tag, _binary(fun, tangent, x, y), tangent(x, y, _tangent(a, tag, n), _tangent(b, tag, n)))


def add(a: Any, b: Any) -> Any:
    return _binary(np.add, lambda x, y, dx, dy: add(dx, dy), a, b)


def mul(a: Any, b: Any) -> Any:
    return _binary(np.multiply, lambda x, y, dx, dy: add(mul(dx, y), mul(x, dy)), a, b)


def _unary(fun: Callable[[Any], Any], derivative: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def op(x: Any) -> Any:
        if not isinstance(x, Dual):
            return fun(np.asarray(x))
        return Dual(x.tag, op(x.primal), mul(derivative(x.primal), x.tangent))

    return op


reciprocal = _unary(np.reciprocal, lambda x: -square(reciprocal(x)))
square = _unary(np.square, lambda x: mul(2.0, x))
exp = _unary(np.exp, lambda x: exp(x))
log = _unary(np.log, reciprocal)
sin = _unary(np.sin, lambda x: cos(x))
cos = _unary(np.cos, lambda x: -sin(x))
tanh = _unary(np.tanh, lambda x: 1.0 - square(tanh(x)))
sigmoid = _unary(lambda x: 1 / (1 + np.exp(-x)), lambda x: mul(sigmoid(x), 1.0 - sigmoid(x)))
softplus = _unary(lambda x: np.logaddexp(x, 0), sigmoid)
sqrt = _unary(np.sqrt, lambda x: 0.5 / sqrt(x))
arctan = _unary(np.arctan, lambda x: reciprocal(add(1.0, square(x))))


def sum_(x: Any, axis: int | None = None) -> Any:
    axes = tuple(range(-base(x).ndim, 0)) if axis is None else axis - base(x).ndim if axis >= 0 else axis
    return _linear(lambda y: y.sum(axes), x)


def mean(x: Any, axis: int | None = None) -> Any:
    return mul(sum_(x, axis), 1.0 / (base(x).size if axis is None else base(x).shape[axis]))


def matmul(a: Any, b: Any) -> Any:
    """Multiply a matrix and a vector."""
    return sum_(mul(a, b), -1)


def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    rank = base(x).ndim
    return _linear(lambda y: y.reshape(y.shape[: y.ndim - rank] + tuple(shape)), x)


def stack(xs: Sequence[Any]) -> Any:
    return _stacked(xs, base(xs[0]).ndim)


def _stacked(xs: Sequence[Any], rank: int) -> Any:
    tag = _tag(*xs)
    if not tag:
        return np.stack(xs, -1 - rank)
    n = _directions(tag, *xs)
    return Dual(tag, _stacked([_primal(x, tag) for x in xs], rank), _stacked([_tangent(x, tag, n) for x in xs], rank))


def _seeded(x: Any) -> Dual:
    size, shape = base(x).size, base(x).shape
    return Dual(next(_tags), x, np.eye(size).reshape(size, *shape))


def _derivatives(y: Any, x: Dual) -> Any:
    """Return the derivatives of `y`: the entries of `x` come first, as one axis."""
    return _tangent(y, x.tag, base(x).size)


def _without(y: Any, *xs: Dual) -> Any:
    """Return a result without what transforms that end have added to it."""
    if isinstance(y, (tuple, list)):
        return type(y)(_without(part, *xs) for part in y)
    for x in reversed(xs):
        y = _primal(y, x.tag)
    return y


def value_and_grad(fun: Callable[..., Any], has_aux: bool = False) -> Callable[..., Any]:
    def differentiated(x: Any, *rest: Any) -> Any:
        x = _seeded(x)
        returned = fun(x, *rest)
        gradient = reshape(_derivatives(returned[0] if has_aux else returned, x), base(x).shape)
        return _without(returned, x), gradient

    return differentiated


def grad(fun: Callable[..., Any], has_aux: bool = False) -> Callable[..., Any]:
    def gradient(*args: Any) -> Any:
        value, grads = value_and_grad(fun, has_aux)(*args)
        return (grads, value[1]) if has_aux else grads

    return gradient


def jacfwd(fun: Callable[..., Any]) -> Callable[..., Any]:
    def jacobian(x: Any, *rest: Any) -> Any:
        x = _seeded(x)
        y = fun(x, *rest)
        derivatives = _derivatives(y, x)
        return _linear(lambda z: z.swapaxes(-1, -2), derivatives) if base(y).ndim else derivatives

    return jacobian


def hessian(fun: Callable[..., Any]) -> Callable[..., Any]:
    return jacfwd(grad(fun))


def vjp(fun: Callable[..., Any], *primals: Any) -> Any:
    xs = [_seeded(x) for x in primals]
    y = fun(*xs)

    def pullback(cotangent: Any) -> Any:
        grads = []
        for k, x in enumerate(xs):
            moved = mul(_without(_derivatives(_without(y, *xs[k + 1 :]), x), *xs[:k]), cotangent)
            for _ in range(base(y).ndim):
                moved = sum_(moved, -1)
            grads.append(reshape(moved, base(x).shape))
        return tuple(grads)

    return _without(y, *xs), pullback


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    tag = next(_tags)
    y = fun(*(Dual(tag, x, reshape(t, (1, *base(x).shape))) for x, t in zip(primals, tangents, strict=True)))
    return _primal(y, tag), reshape(_tangent(y, tag, 1), base(y).shape)


def hvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    return jvp(grad(fun), primals, tangents)[1]


def vmap(fun: Callable[..., Any], in_axes: Any = 0) -> Callable[..., Any]:
    def mapped(*args: Any) -> Any:
        axes = (in_axes,) * len(args) if isinstance(in_axes, int) else in_axes
        size = next(base(x).shape[0] for x, axis in zip(args, axes, strict=True) if axis == 0)

        def row(x: Any, i: int) -> Any:
            rank = base(x).ndim
            return _linear(lambda y: y.take(i, -rank), x)

        rows = ([x if axis is None else row(x, i) for x, axis in zip(args, axes, strict=True)] for i in range(size))
        return stack([fun(*row) for row in rows])

    return mapped


class GradientTape:
    """A tape of which every derivative is known when it is asked."""

    def __enter__(self) -> GradientTape:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def watch(self, x: Any) -> Any:
        return _seeded(x)

    def gradient(self, y: Any, x: Any, unconnected_gradients: str = "zero") -> Any:
        return reshape(_derivatives(y, x), base(x).shape)


def op_custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Take the tangents from the rule: one entry of the output after the other."""

    def custom(*args: Any) -> Any:
        tag = _tag(*args)
        if not tag:
            return fun(*args)[0]
        n, primals = _directions(tag, *args), [_primal(x, tag) for x in args]
        y, rule = custom(*primals), fun(*primals)[1]
        shape, entries = base(y).shape, []
        for upstream in np.eye(base(y).size):
            grads = rule(upstream.reshape(shape))
            entry: Any = np.zeros(n)
            for x, g in zip(args, grads if isinstance(grads, (tuple, list)) else [grads], strict=True):
                moved = mul(_tangent(x, tag, n), g)
                for _ in range(base(x).ndim):
                    moved = sum_(moved, -1)
                entry = add(entry, moved)
            entries.append(entry)
        return Dual(tag, y, reshape(_stacked(entries, 0), (n, *shape)) if n else y)

    return custom


def dropout(x: Any, rate: float, seed: Any) -> Any:
    """Multiply by what multiop draws in eager mode."""
    return mul(x, multiop.op_convert_to_numpy(multiop.random.dropout(np.ones(base(x).shape), rate, seed=seed)))


def _same(x: Any) -> Any:
    return x


ops = types.SimpleNamespace(
    reciprocal=reciprocal,
    square=square,
    exp=exp,
    log=log,
    sin=sin,
    cos=cos,
    tanh=tanh,
    sigmoid=sigmoid,
    softplus=softplus,
    sqrt=sqrt,
    arctan=arctan,
    sum=sum_,
    mean=mean,
    matmul=matmul,
    reshape=reshape,
    stack=stack,
    add=add,
    multiply=mul,
    broadcast_to=_expanded,
    stop_gradient=base,
    convert_to_numpy=base,
    convert_to_tensor=np.array,
    array=lambda x: _linear(np.array, x),
    copy=lambda x: _linear(np.array, x),
)
random = types.SimpleNamespace(SeedGenerator=multiop.random.SeedGenerator, dropout=dropout)
jacrev, checkpoint, jit = jacfwd, _same, _same
backend, use_backend = str, contextlib.nullcontext
