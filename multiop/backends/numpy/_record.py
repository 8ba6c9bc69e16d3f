"""What is recorded: a traced array knows the step that made it, and a step how gradients go back through it.

Whatever has no traced array among its operands, or none whose owner is open, is computed on arrays alone.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import weakref

import numpy as np

from multiop import errors
from multiop._call.numpy_protocols import ArrayProtocols
from multiop._values import dtypes

_numbers = itertools.count()
now = functools.partial(next, _numbers)  # a number between those of the nodes so far and of those to come
INEXACT = {dtypes.to_numpy(name) for name in dtypes.INEXACT}
COPIES = {}  # of what many steps need, as a matrix in a loop: references, by the place of what was copied
WIDE = {dtype for dtype in INEXACT if dtype.itemsize > 2}
HALVES = INEXACT - WIDE


class Ops:
    """The backend's ops, by name, as a user's code reaches them: recorded where an operand is."""

    def __getattr__(self, name):
        op = vars(self)[name] = getattr(sys.modules[__package__], f"op_{name}")
        return op

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
    n_open = 0  # of all, in any thread

    def __init__(self, is_tape=False, is_used_once=False):
        self.is_tape, self.is_used_once = is_tape, is_used_once

    def __enter__(self):
        Owner.n_open += not self.is_open
        self.is_open = True
        return self

    def __exit__(self, *error):
        Owner.n_open -= self.is_open
        self.is_open = False


def any_open(owners):
    """Say whether one of some owners is open."""
    for owner in owners:  # noqa: SIM110  `any` takes three times as long
        if owner.is_open:
            return True
    return False


class Node:
    """A step: the places of its inputs, and the map from the gradients of its results to theirs, `None` for zero.

    A place is a node and the number of its result: what is recorded keeps no array that no derivative needs. `rule` is
    the name of the custom gradient that made it, if one did. It is constant if no leaf has gone into it.
    """

    tells_unused = False

    def __init__(self, inputs, pull, results, rule=None):
        self.inputs, self.pull, self.rule, self.number = [], pull, rule, next(_numbers)
        self.owners, self.is_constant, self.specs, self.results = set(), True, [], []
        for x in inputs:
            self.inputs.append(x.place)
            self.is_constant = self.is_constant and x.node.is_constant
            for owner in x.node.owners:
                if owner.is_open:
                    self.owners.add(owner)
        for y in results:
            is_recorded = y.dtype in INEXACT
            self.specs.append((y.shape, y.dtype) if is_recorded else None)
            self.results.append(weakref.ref(y) if is_recorded else None)

    def forget(self):
        """Free what only a derivative would need."""
        self.inputs, self.pull, self.args, self.y = [], None, None, None


class Leaf(Node):
    """The start of a record: what `x` is there, with nothing before it but what passes its gradients on to `before`."""

    rule = None

    def __init__(self, x, owners=(), is_constant=False, before=None):
        self.owners, self.is_constant, self.inputs, self.number = set(owners), is_constant, (), next(_numbers)
        self.specs, self.results = [(x.shape, x.dtype)], [weakref.ref(x)]
        if before is not None:
            self.inputs = (before.place,)
            for owner in before.node.owners:
                if owner.is_open:
                    self.owners.add(owner)

    def pull(self, upstreams):
        return upstreams if self.inputs else ()


class Step(Node):
    """The step of an op that has one result, and a rule for each operand; `parts` are the rules of its inputs."""

    specs, rule = [None], None

    def __init__(self, parts, inputs, owners, is_constant, args, y, result):
        self.is_constant = is_constant
        self.parts, self.inputs, self.owners, self.args, self.y = parts, inputs, owners, args, y
        self.results, self.number = (weakref.ref(result),), next(_numbers)

    def pull(self, upstreams):
        args, y = self.args, self.y
        for owner in self.owners:
            if owner.is_open:
                y = y if y is None else Traced(y, self)
                break
        else:
            for k, x in enumerate(args):
                if isinstance(x, Traced):
                    args = args.copy() if args is self.args else args
                    args[k] = x.array
        grads = []
        for part, shape, dtype in self.parts:
            grad = part(upstreams[0], y, *args)
            if isinstance(grad, np.generic):  # an array goes the short way in the next rule
                grad = np.asarray(grad)
            if grad is not None and (grad.shape != shape or grad.dtype is not dtype):
                grad = fitted(grad, shape, dtype)
            grads.append(grad)
        return grads


def tells_unused(rule):
    """Give a rule `None` for results that nothing has used, where others get zeros: equal values then have a slope."""
    rule.tells_unused = True
    return rule


def needs_shapes(rule):
    """Let a rule of a list get the shapes and dtypes alone of what is not recorded in it."""
    rule.needs_shapes = True
    return rule


class Like:
    """The shape and dtype of an operand whose numbers its rule does not need."""

    def __init__(self, x):
        self.shape, self.dtype, self.ndim = x.shape, x.dtype, len(x.shape)


class Entries:
    """A gradient that is zero but for what an index takes."""

    def __init__(self, key, entries, shape):
        self.key, self.entries, self.shape, self.dtype = key, entries, shape, entries.dtype

    def add_to(self, y):
        """Add it to an array in place; an index of slices and numbers takes no entry twice."""
        y[self.key] += self.entries
        return y

    def array(self):
        return self.add_to(np.zeros(self.shape, self.dtype))


class Traced(ArrayProtocols):
    """An array, and the step that it is a result of."""

    ops = ops

    def __init__(self, array, node, k=0):
        self.array, self.node, self.k = array, node, k
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    size = property(lambda self: self.array.size)
    place = property(lambda self: (self.node, self.k))  # which result of which node: what tells it from others

    def held(self):
        """Return it in the form that a node keeps."""
        return self

    def number(self, kind):
        """Return the array for Python's conversion, which NumPy calls where an entry of an array is set, too."""
        if is_differentiated(self) and any(owner.is_open and not owner.is_tape for owner in self.node.owners):
            raise errors.UnsupportedError(
                f"{kind}() of an array that is differentiated, or an entry of another array set to it, would drop its "
                f"gradient: write np.exp for math.exp, build arrays with multiop.op_stack or op_set_item, give SciPy's "
                f"function its gradient with op_custom_gradient, and take op_stop_gradient for its value"
            )
        return self.array


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
    if isinstance(x, Traced):
        return x.array
    return type(x)(map(array_of, x)) if type(x) is list or type(x) is tuple else x


def locked(x):
    """Return what `array_of` does, as arrays that nobody can write to: the record may need their numbers."""
    if isinstance(x, Traced):
        x.array.flags.writeable = False
        return x.array
    return type(x)(map(locked, x)) if type(x) in (list, tuple) else x


def only_read(x):
    """Return the array of `x` as one that the function that it is given to cannot write to."""
    x = x.array.view()
    x.flags.writeable = False
    return x


def operands(x):
    """Return the tensors and other values in `x`, an operand or a list of them, in order."""
    return [leaf for entry in x for leaf in operands(entry)] if isinstance(x, (list, tuple)) else [x]


def is_traced(x):
    """Say whether what is computed of `x`, an operand or a list of them, is recorded."""
    if isinstance(x, Traced):
        return any_open(x.node.owners)
    return isinstance(x, (list, tuple)) and any(map(is_traced, x))


def is_differentiated(x):
    """Say whether a gradient is being taken of what `x`, an operand or a list of them, is computed from."""
    if isinstance(x, Traced):
        return not x.node.is_constant and any_open(x.node.owners)
    return isinstance(x, (list, tuple)) and any(map(is_differentiated, x))


Traced.is_differentiated, Traced.locked = staticmethod(is_differentiated), staticmethod(locked)


def is_inexact(x):
    return isinstance(x, (np.ndarray, Traced)) and x.dtype in INEXACT


def recorded(op, rule, args, result=None):
    """Return `op(*args)`, which may be known as `result`, and record how its gradients go back.

    `rule` takes the upstream gradient, or a list of them if there are several results, and `args`. It returns the
    gradient of the first of `args`, or a tuple of gradients of as many as it has; that of a list is a list. Or it is a
    tuple of a rule for each operand, see `record_step`. They are written with ops, so that they are recorded too: that
    makes higher derivatives. It computes 16-bit floats in `float32`: on the way to an ordinary number, they would
    overflow or vanish.
    """
    if result is None:
        result = op(*array_of(args))
        is_usual = type(rule) is tuple and type(result) is np.ndarray and result.dtype in WIDE
        if is_usual and (traced := record_step(rule, args, result)) is not None:
            return traced
    several = isinstance(result, (list, tuple))
    results = list(result) if several else [result]
    if not any(map(is_inexact, results)):
        return result
    args = [each(alike if hasattr(rule, "needs_shapes") else kept, x) for x in args]
    leaves = operands(args)
    has_halves = not HALVES.isdisjoint([getattr(x, "dtype", None) for x in [*leaves, *results]])

    def pull(upstreams):
        wide = args
        if has_halves:
            upstreams, wide = list(map(in_float32, upstreams)), [each(in_float32, x) for x in args]
        if type(rule) is tuple:
            y = op(*wide)
            grads = tuple([
                part(upstreams[0], y, *wide) if part and isinstance(x, Traced) else None
                for part, x in zip(rule, args, strict=False)
            ])  # fmt: skip
        else:
            grads = rule(upstreams if several else upstreams[0], *wide)
        return [
            None if g is None else fitted(g, x.shape, x.dtype)
            for x, g in paired(args, grads if isinstance(grads, tuple) else (grads,))
        ]

    node = Node([x for x in leaves if isinstance(x, Traced)], pull, map(array_of, results))
    node.tells_unused = hasattr(rule, "tells_unused")
    traced = [Traced(y, node, k) if is_inexact(y) else y for k, y in enumerate(results)]
    return type(result)(traced) if several else traced[0]


def record_step(rule, args, result):
    """Return the result of an op of wide floats as a traced array, with the rules of those operands that are recorded.

    Each rule takes the upstream gradient, the result, and `args`. It gets, and the step keeps, what its parameters
    name: a name that begins with `_` gets `None`, and one that begins with `like` the shape and dtype alone.
    """
    parts, inputs, owners, is_constant, wanted = [], [], None, True, None
    for part, x in zip(rule, args, strict=False):
        if part is None or not isinstance(x, Traced):
            continue
        node = x.node
        for owner in node.owners:
            if owner.is_open:
                break
        else:
            continue
        if x.dtype not in WIDE:
            return None
        parts.append((part, x.shape, x.dtype))
        inputs.append((node, x.k))
        is_constant = is_constant and node.is_constant
        owners = node.owners if owners is None or owners is node.owners else owners | node.owners
        keeps = getattr(part, "needs", None)
        keeps = find_needs(part) if keeps is None else keeps
        wanted = keeps if wanted is None else wanted | keeps
    if owners is None:  # no gradient passes
        return result
    if len(owners) > 1:
        owners = {owner for owner in owners if owner.is_open}
    held, keeps_all = [], -1 in wanted
    for k, x in enumerate(args, 1):
        if keeps_all or k in wanted:
            is_free = not isinstance(x, np.ndarray) or (x.base is None and not x.flags.writeable)
            held.append(x if is_free else copy_of(x))
        else:
            held.append(Like(x) if -k - 1 in wanted else None)
    step = Step(parts, inputs, owners, is_constant, held, result if 0 in wanted else None, result)
    return Traced(result, step)


def find_needs(rule):
    """Give a rule the numbers of what it needs: 0 the result, k an operand, -1 - k its shape and dtype, -1 all."""
    code = rule.__code__
    names = code.co_varnames[1 : code.co_argcount]
    rule.needs = {-1 - k if name.startswith("like") else k for k, name in enumerate(names) if name[0] != "_"}
    if code.co_flags & inspect.CO_VARARGS and code.co_varnames[code.co_argcount][0] != "_":
        rule.needs.add(-1)
    return rule.needs


def each(fn, x):
    """Return `fn(x)`; for a list, that of each entry."""
    return type(x)(each(fn, entry) for entry in x) if type(x) in (list, tuple) else fn(x)


def kept(x):
    """Return what a node keeps of an operand: a copy of an array, which the caller may change."""
    if isinstance(x, Traced):
        return x if is_traced(x) else copy_of(x.array)
    return copy_of(x) if isinstance(x, np.ndarray) else x


def alike(x):
    return Like(x) if isinstance(x, np.ndarray) else x


def copy_of(x):
    """Return a copy of `x`; of many numbers that which another step keeps, if they have the same bits."""
    if x.size < 1000 or x.dtype.kind == "c":
        return x.copy()
    key = id(x) if x.base is None else (x.__array_interface__["data"][0], x.shape, x.strides)
    known = COPIES.get(key)
    copy = known and known()
    if copy is None or copy.dtype is not x.dtype or copy.shape != x.shape or not have_same_bits(copy, x):
        if len(COPIES) > 1000:  # most are of what is gone
            COPIES.clear()
        copy = x.copy()
        copy.setflags(write=False)
        COPIES[key] = weakref.ref(copy)
    return copy


def have_same_bits(x, y):
    bits = f"u{x.itemsize}"
    return np.array_equal(x.view(bits), y.view(bits))


def in_float32(x):
    if not isinstance(x, (np.ndarray, Traced)) or x.dtype not in HALVES:
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


def fitted(grad, shape, dtype):
    """Return a gradient in the shape and dtype of its operand: summed where that was broadcast, real if it is real."""
    grad = grad.array() if type(grad) is Entries else grad
    if grad.shape != shape:
        axes = summed(grad.shape, shape)
        if isinstance(grad, Traced):
            grad = ops.reshape(ops.sum(grad, axes, False), shape)
        else:
            grad = np.add.reduce(grad, axes).reshape(shape)
    if grad.dtype.kind == "c" and dtype.kind != "c":
        grad = ops.real(grad)
    return grad if grad.dtype == dtype else ops.cast(grad, dtypes.name(dtype))


def summed(shape, operand):
    """Return the axes that an operand was broadcast along."""
    shorter = len(shape) - len(operand)
    return tuple(k for k in range(len(shape)) if k < shorter or operand[k - shorter] != shape[k])
