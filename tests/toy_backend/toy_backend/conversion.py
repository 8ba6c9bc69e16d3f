"""Tensors, and how host values become them."""

import itertools

import numpy as np

from multiop import errors, extend

_numbers = itertools.count()


class Node:
    """A step of a computation: what it was given, and the map from the gradients of its results to those of that.

    `rule` is the name of the custom gradient that made it, if one did.
    """

    def __init__(self, inputs, pull, size=1, rule=None):
        self.inputs, self.pull, self.size, self.rule, self.number = inputs, pull, size, rule, next(_numbers)


class Tensor:
    """An array, and the node that it is a result of; a constant has none."""

    __array_ufunc__ = None  # NumPy's functions keep no record

    def __init__(self, array, node=None, k=0):
        self.array, self.node, self.k = np.asarray(array), node, k
        self.shape, self.dtype, self.ndim = self.array.shape, self.array.dtype, self.array.ndim

    @property
    def place(self):
        """What tells the tensor from others: which result of which node it is."""
        return (self.node or self, self.k)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype)

    def __float__(self):
        return float(self.array)

    def __int__(self):
        return int(self.array)

    def __bool__(self):
        return bool(self.array)

    def __len__(self):
        return len(self.array)

    def __repr__(self):
        return f"Tensor({self.array})"


def record(function, *pulled, **options):
    """Return `function` of tensors, each given with its pull: the map from the result's gradient to its own.

    A pull is written with ops, so that it is recorded too: that makes higher derivatives. It computes the result anew
    where it needs it, since a result that held itself would be freed late.
    """
    with np.errstate(all="ignore"):
        array = np.asarray(function(*[x.array for x, _ in pulled], **options))
    followed = [(x, pull) for x, pull in pulled if x.node is not None]
    if not followed or extend.dtype_name(array.dtype) not in extend.INEXACT:
        return Tensor(array)
    pulls = [pull for _, pull in followed]
    return Tensor(array, Node([x for x, _ in followed], lambda grads: [pull(grads[0]) for pull in pulls]))


def is_tensor(x):
    return isinstance(x, Tensor)


def set_x64(enable):
    """NumPy has 64-bit dtypes in either mode."""


def dtype_name(x):
    return extend.dtype_name(x.dtype)


def convert(x, dtype=None):
    if not is_tensor(x):
        if isinstance(x, (list, tuple)) and any(map(is_tensor, extend.flatten_list(x))):
            from .shapes import op_stack

            return convert(op_stack([convert(entry) for entry in x], 0), dtype)
        return Tensor(np.array(extend.as_numpy(x, dtype, "toy")))  # not the memory of the caller
    own = dtype_name(x)
    if dtype in (None, own):
        return x
    if own in extend.COMPLEX and dtype not in (*extend.COMPLEX, "bool"):
        raise errors.DTypeError(f"a complex tensor cannot become {dtype}; take op_real first")
    cast = np.ndarray.astype
    return record(cast, (x, lambda u: convert(u if own in extend.COMPLEX else op_real(u), own)), dtype=native(dtype))


def native(dtype):
    return extend.to_numpy_dtype(dtype)


def floating(x):
    x = convert(x)
    return convert(x, extend.to_floating_dtype(dtype_name(x)))


def promote_all(*xs):
    xs = [x if extend.is_scalar(x) else convert(x) for x in xs]
    dtype = extend.result_type(*[extend.dtype_of_scalar(x) if extend.is_scalar(x) else dtype_name(x) for x in xs])
    return [convert(x, dtype) for x in xs]


def promote(x1, x2):
    return promote_all(x1, x2)


def promote_floating(x1, x2):
    return [floating(x) for x in promote(x1, x2)]


def together(*xs):
    return xs


def op_convert_to_tensor(x, dtype, sparse, ragged):
    return convert(x, dtype)


def op_convert_to_numpy(x):
    return np.array(convert(x).array)


def op_cast(x, dtype):
    return convert(x, dtype)


def op_dtype(x):
    return dtype_name(convert(x))


def op_shape(x):
    return convert(x).shape


def op_is_tensor(x):
    return is_tensor(x)


def op_real(x):
    x = convert(x)
    return record(np.real, (x, lambda u: convert(u, dtype_name(x))))
