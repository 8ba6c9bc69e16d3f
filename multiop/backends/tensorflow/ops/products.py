"""Products of matrices and of tensors."""

from __future__ import annotations

import itertools

import tensorflow as tf

from multiop import errors
from multiop._values import args

from ..conversion import (
    are_words,
    cached_ints,
    in_float32_on_cpu,
    known_shape,
    op_shape,
    promote,
    promote_all,
    rank,
    without_int8,
)

# dtypes without kernels in TensorFlow; the results hold modulo 2**64
_WIDER = {
    tf.int8: tf.int32,
    tf.int16: tf.int32,
    tf.uint8: tf.int32,
    tf.uint16: tf.int32,
    tf.uint32: tf.int64,
    tf.uint64: tf.int64,
}


def op_matmul(x1, x2):
    if are_words(x1, x2) and x1.shape.rank and x2.shape.rank == 2:
        (*batch, n), matrix = x1.shape.as_list(), x2.shape.as_list()
        if n and 0 not in batch and 0 not in matrix:
            if len(batch) == 1:
                return tf.raw_ops.MatMul(a=x1, b=x2)
            if batch and None not in batch and None not in matrix and matrix[0] == n:
                return multiply_rows(x1, x2, batch, *matrix)
    x1, x2 = promote(x1, x2)
    if x1.shape.rank == 0 or x2.shape.rank == 0:
        raise errors.ArgumentError("x1 and x2 must have at least one dimension")
    return product_of(matmul, *without_int8(x1, x2))


def op_einsum(subscripts, operands):
    xs = promote_all(*operands)
    if subscripts.partition("->")[0].count("...") == 1:
        subscripts = spell_ellipsis(subscripts, xs)
    if any(1 in x.shape.as_list() for x in xs if x.shape.rank):
        subscripts, xs = without_size_1(subscripts, xs)
    return product_of(lambda *xs: tf.einsum(subscripts, *xs), *without_int8(*xs))


def spell_ellipsis(subscripts, xs):
    """Give letters to the dimensions of the only `...`: TensorFlow makes a product for each entry of such ones."""
    for term, x in zip(subscripts.partition("->")[0].split(","), xs, strict=False):
        if "..." in term and x.shape.rank is not None:
            letters = itertools.islice(args.unused_letters(subscripts), max(0, x.shape.rank - len(term) + 3))
            return subscripts.replace("...", "".join(letters))
    return subscripts


def without_size_1(subscripts, xs):
    """Drop the dimensions of size 1 whose letter has another size elsewhere: they broadcast, but not in TensorFlow."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if not arrow:  # the frontend completes those with an ellipsis
        letters = inputs.replace(",", "")
        output = "".join(sorted(letter for letter in letters if letters.count(letter) == 1))
    if len(terms) != len(xs):
        return subscripts, xs
    places = []
    for term, x in zip(terms, xs, strict=True):
        before, _, behind = term.partition("...")
        axes = [*range(len(before)), *range(rank(x) - len(behind), rank(x))]
        places.append(list(zip(before + behind, axes, strict=True)))
    long = {letter for x, at in zip(xs, places, strict=True) for letter, axis in at if x.shape[axis] != 1}
    for k, at in enumerate(places):
        axes = [axis for letter, axis in at if letter in long and xs[k].shape[axis] == 1]
        if axes and len(set(at)) == len({letter for letter, _ in at}):
            gone = {letter for letter, axis in at if axis in axes}
            terms[k] = "".join(letter for letter in terms[k] if letter not in gone)
            xs = [*xs[:k], tf.squeeze(xs[k], axes), *xs[k + 1 :]]
    return f"{','.join(terms)}->{output}", xs


def op_tensordot(x1, x2, axes):
    x1, x2 = promote_all(x1, x2)
    dims = args.axes_to_contract(axes, known_shape(x1), known_shape(x2))
    if 0 in (*x1.shape, *x2.shape):  # see matmul
        free = [None] * (x2.shape.rank - len(dims[1]))
        return product_of(lambda a, b: tf.reduce_sum(a, dims[0])[(..., *free)] * tf.reduce_sum(b, dims[1]), x1, x2)
    return product_of(lambda x1, x2: tf.tensordot(x1, x2, dims), x1, x2)


def product_of(fn, *xs):
    dtype = xs[0].dtype
    if dtype is tf.bool:  # NumPy's product of bools is `or` over `and`
        return fn(*[tf.cast(x, tf.int32) for x in xs]) != 0
    if dtype in _WIDER:
        return tf.cast(fn(*[tf.cast(x, _WIDER[dtype]) for x in xs]), dtype)
    return in_float32_on_cpu(fn, *xs)


def multiply_rows(x1, x2, batch, n, m):
    """Multiply by one matrix, which a product of batches would repeat for each, to sum its gradient over them."""
    rows = tf.raw_ops.MatMul(a=tf.raw_ops.Reshape(tensor=x1, shape=cached_ints((-1, n))), b=x2)
    return tf.raw_ops.Reshape(tensor=rows, shape=cached_ints((*batch, m)))


def matmul(x1, x2):
    if x1.shape.rank != 1 and x2.shape.rank != 1:
        if 0 in (x1.shape[-1], x1.shape[-2], x2.shape[-1]):  # tf.vectorized_map gives it or its gradient a wrong shape
            return tf.reduce_sum(x1[..., None] * x2[..., None, :, :], -2)
        is_one = x1.shape.rank > 2 == x2.shape.rank and x1.shape[-1] == x2.shape[0] is not None
        return multiply_rows(x1, x2, op_shape(x1)[:-1], *op_shape(x2)) if is_one else tf.matmul(x1, x2)
    if x1.shape.rank == 1:
        return tf.tensordot(x1, x2, 1) if x2.shape.rank == 1 else tf.squeeze(tf.matmul(x1[None, :], x2), -2)
    return tf.linalg.matvec(x1, x2)
