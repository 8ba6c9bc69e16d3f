"""What is recorded: a traced array knows the step that made it, and a step how gradients go back through it.

Whatever has no traced array among its operands, or none whose owner is open, is computed on arrays alone.
"""

from __future__ import annotations

import itertools
import sys
import weakref

import numpy as np

from multiop import errors
from multiop._values import dtypes

_numbers = itertools.count()


class Ops:
    """The backend's ops, by name, as a user's code reaches them: recorded where an operand is."""

    def __getattr__(self, name):
        return getattr(sys.modules[__package__], f"op_{name}")

    def stop_gradient(self, x):
        return array_of(x)

    def stack(self, xs, axis):
        return sys.modules[__package__].op_stack(xs, axis) if is_traced(xs) else np.stack(xs, axis)  # float8 too


ops = Ops()


class Owner:
    """What takes gradients: a transform, or a tape. What comes from its leaves is recorded while it is open.

    Within a tape, code reads numbers, as to print them; within a transform, that would drop a gradient.
    """

    is_open = False

    def __init__(self, is_tape=False):
        self.is_tape = is_tape

    def __enter__(self):
        self.is_open = True
        return self

    def __exit__(self, *error):
        self.is_open = False


class Node:
    """A step: its inputs, and the map from the gradients of its results to theirs, `None` where there is none.

    `rule` is the name of the custom gradient that made it, if one did. It is constant if no leaf has gone into it.
    """

    def __init__(self, inputs, pull, results, owners=(), rule=None, is_leaf=False):
        self.inputs, self.pull = [x.held() for x in inputs], pull
        self.owners = {owner for x in inputs for owner in x.node.owners if owner.is_open}.union(owners)
        self.specs = [(y.shape, y.dtype) if is_inexact(y) else None for y in results]
        self.rule, self.number = rule, next(_numbers)
        self.tells_unused = False
        self.is_constant = not is_leaf and all(x.node.is_constant for x in inputs)


def tells_unused(rule):
    """Give a rule `None` for results that nothing has used, where others get zeros: equal values then have a slope."""
    rule.tells_unused = True
    return rule


def has_op(name):
    return hasattr(sys.modules[__package__], f"op_{name}")


def refused(function, name):
    """Return the error for a function of NumPy that would lose the record."""
    which = f"multiop.op_{name}" if has_op(name) else "one of those in docs/ops.md"
    return errors.UnsupportedError(
        f"np.{function} of an array that is differentiated: use an op of multiop, {which}, or take op_stop_gradient of "
        f"it first, where its value is meant as a constant"
    )


class Traced:
    """An array, and the step that it is a result of."""

    def __init__(self, array, node, k=0):
        self.array, self.node, self.k = array, node, k
        self.shape, self.dtype, self.ndim, self.size = array.shape, array.dtype, array.ndim, array.size

    @property
    def place(self):
        """Which result of which node it is: what tells it from others."""
        return self.node, self.k

    def held(self):
        """Return it in the form that a node keeps."""
        return self

    def number(self, kind):
        """Return the array for Python's conversion, which NumPy calls where an entry of an array is set, too."""
        if is_differentiated(self) and any(owner.is_open and not owner.is_tape for owner in self.node.owners):
            raise errors.UnsupportedError(
                f"{kind}() of an array that is differentiated, or an entry of another array set to it, would drop its "
                f"gradient: build arrays with multiop.op_stack or op_set_item, and take op_stop_gradient for its value"
            )
        return self.array

    def __array__(self, dtype=None, copy=None):
        if is_differentiated(self):
            raise refused("asarray", "stack")
        return np.array(self.array, dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        """Compute a function of NumPy by the op of its name."""
        if not any(map(is_differentiated, inputs)):
            return getattr(ufunc, method)(*map(array_of, inputs), **options)
        name = {"absolute": "abs", "remainder": "mod"}.get(ufunc.__name__, ufunc.__name__)
        if not has_op(name) or method != "__call__" or options:
            raise refused(ufunc.__name__, name)
        return getattr(ops, name)(*inputs)

    def __array_function__(self, function, types, args, kwargs):
        if not is_differentiated(args):
            return function(*map(array_of, args), **kwargs)
        raise refused(function.__name__, function.__name__)

    def __getattr__(self, name):
        """Return what an array has, of one that is no longer differentiated."""
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"a tensor has no attribute {name!r}")
        if is_differentiated(self):
            raise AttributeError(str(refused(f"ndarray.{name}", name)))
        return getattr(self.array, name)

    def __repr__(self):
        return repr(self.array)

    def __len__(self):
        return len(self.array)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key):
        return ops.get_item(self, key)

    def __float__(self):
        return float(self.number("float"))

    def __int__(self):
        return int(self.array)

    def __index__(self):
        return self.array.__index__()

    def __complex__(self):
        return complex(self.number("complex"))

    def __bool__(self):
        return bool(self.array)

    def __neg__(self):
        return ops.negative(self)

    def __pos__(self):
        return self

    def __abs__(self):
        return ops.abs(self)

    @property
    def T(self):  # noqa: N802  NumPy's name
        return ops.transpose(self, None)


def _operators():
    """Give `Traced` Python's operators of two operands, by the ops that they stand for."""
    names = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
        "mod": "mod", "pow": "power", "matmul": "matmul",
    }  # fmt: skip
    for operator, name in names.items():
        setattr(Traced, f"__{operator}__", lambda x, y, name=name: getattr(ops, name)(x, y))
        setattr(Traced, f"__r{operator}__", lambda x, y, name=name: getattr(ops, name)(y, x))
    for operator, name in {
        "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    }.items():  # fmt: skip
        setattr(Traced, f"__{operator}__", lambda x, y, name=name: getattr(ops, name)(x, y))
    Traced.__hash__ = object.__hash__


_operators()


class Output(Traced):
    """A result of a custom gradient's function as its rule, which the node holds, closes over it: without a cycle."""

    @property
    def node(self):
        return self.outer() or self.inner

    def held(self):
        return Traced(self.array, *self.place)


def become_output(x, node, k):
    """Make `x`, a traced array within a custom gradient's function, a result of the function."""
    x.inner = vars(x).pop("node")
    x.__class__, x.outer, x.k = Output, weakref.ref(node), k


def array_of(x):
    """Return `x` with the traced arrays in it, also in lists and tuples, as plain ones."""
    return each(lambda leaf: leaf.array if isinstance(leaf, Traced) else leaf, x)


def operands(x):
    """Return the tensors and other values in `x`, an operand or a list of them, in order."""
    return [leaf for entry in x for leaf in operands(entry)] if isinstance(x, (list, tuple)) else [x]


def is_traced(x):
    """Say whether what is computed of `x`, an operand or a list of them, is recorded."""
    return any(isinstance(leaf, Traced) and any(owner.is_open for owner in leaf.node.owners) for leaf in operands(x))


def is_differentiated(x):
    """Say whether a gradient is being taken of what `x`, an operand or a list of them, is computed from."""
    return any(isinstance(leaf, Traced) and is_traced(leaf) and not leaf.node.is_constant for leaf in operands(x))


def is_inexact(x):
    return isinstance(x, (np.ndarray, Traced)) and dtypes.name(x.dtype, dtypes.FLOAT8) in dtypes.INEXACT


def recorded(op, rule, args):
    """Return `op(*args)`, and record how its gradients go back.

    `rule` takes the upstream gradient, or a list of them if there are several results, and `args`. It returns the
    gradient of the first of `args`, or a tuple of gradients of as many as it has; that of a list is a list. They are
    written with ops, so that they are recorded too: that makes higher derivatives. It computes 16-bit floats in
    `float32`: on the way to an ordinary number, they would overflow or vanish.
    """
    result = op(*map(array_of, args))
    several = isinstance(result, (list, tuple))
    results = list(result) if several else [result]
    if not any(map(is_inexact, results)):
        return result
    args = [each(kept, x) for x in args]

    def pull(upstreams):
        upstreams, wide = map(in_float32, upstreams), [each(in_float32, x) for x in args]
        grads = rule(list(upstreams) if several else next(upstreams), *wide)
        return [fitted(g, x) for x, g in paired(args, grads if isinstance(grads, tuple) else (grads,))]

    node = Node([x for x in operands(args) if isinstance(x, Traced)], pull, results)
    node.tells_unused = hasattr(rule, "tells_unused")
    traced = [Traced(y, node, k) if is_inexact(y) else y for k, y in enumerate(results)]
    return type(result)(traced) if several else traced[0]


def each(fn, x):
    """Return `fn(x)`; for a list, that of each entry."""
    return type(x)(each(fn, entry) for entry in x) if type(x) in (list, tuple) else fn(x)


def kept(x):
    """Return what a node keeps of an operand: a copy of an array, which the caller may change."""
    return x if is_traced(x) else array_of(x).copy() if isinstance(x, (np.ndarray, Traced)) else x


def in_float32(x):
    if not is_inexact(x) or x.dtype.itemsize != 2:
        return x
    y = ops.cast(x, "float32")
    return Traced(y, *x.place) if isinstance(x, Traced) and not isinstance(y, Traced) else y  # rules ask which are


def paired(args, grads):
    """Return each traced array among the operands with its gradient; `None` is zero."""
    pairs = []
    for x, grad in itertools.zip_longest(args, grads):
        if isinstance(x, Traced):
            pairs.append((x, grad))
        elif isinstance(x, (list, tuple)):
            pairs += paired(x, () if grad is None else grad)
    return pairs


def fitted(grad, x):
    """Return a gradient in the shape and dtype of its operand: summed where that was broadcast, real if it is real."""
    if grad is None:
        return None
    if grad.shape != x.shape:
        grad = ops.reshape(ops.sum(grad, summed(grad.shape, x.shape), False), x.shape)
    if grad.dtype.kind == "c" and x.dtype.kind != "c":
        grad = ops.real(grad)
    return grad if grad.dtype == x.dtype else ops.cast(grad, dtypes.name(x.dtype))


def summed(shape, operand):
    """Return the axes that an operand was broadcast along."""
    shorter = len(shape) - len(operand)
    return tuple(k for k in range(len(shape)) if k < shorter or operand[k - shorter] != shape[k])
