"""Matrix decompositions, and ops built on them."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from multiop import errors
from multiop._values import args

from ..autodiff._programs import in_one_call
from ..autodiff.custom_gradient import with_rule
from ..conversion import (
    broadcast_together,
    cached_ints,
    choose,
    dtype_name,
    floating,
    in_this_graph,
    is_tracked,
    known_shape,
    promote,
    rank,
)
from ..devices import is_at_hand

# TensorFlow computes 1 / x of gaps between eigenvalues as x / (x ** 2 + 1e-20), which is wrong for small matrices and
# silent where two are equal; some of its derivatives are missing. `with_gradients` replaces them.


def op_cholesky(x, upper):
    x = matrices(x, square=True)
    if x.shape[-1] == 0:
        return x
    # TensorFlow's own reads the lower triangle alone, but its gradient is for both
    factor = tf.linalg.cholesky(x if x.dtype.is_floating and not is_tracked() else hermitian(x))
    if is_at_hand(factor) and not np.isfinite(factor).all():
        raise errors.ArgumentError("x is not positive definite")
    return tf.linalg.adjoint(factor) if upper else factor


def op_det(x):
    x = matrices(x, square=True)
    if x.shape[-1] <= 3:
        return small_det(x)
    if not is_tracked():
        return tf.linalg.det(x)
    singular = tf.equal(tf.stop_gradient(tf.linalg.det(x)), 0)  # there, tf.linalg.det has no gradient
    masks, eye = singular[..., None, None], tf.eye(x.shape[-1], dtype=x.dtype)
    change = singular_det(choose(masks, x, eye))
    return choose(singular, change - tf.stop_gradient(change), regular_det(choose(masks, eye, x)))


@in_one_call
def op_slogdet(x):
    x = matrices(x, square=True)
    if not is_tracked():
        sign, logabsdet = tf.linalg.slogdet(x)
        return sign, tf.math.real(logabsdet)
    singular = tf.equal(tf.math.real(tf.stop_gradient(tf.linalg.slogdet(x)[1])), -math.inf)
    safe = choose(singular[..., None, None], tf.eye(x.shape[-1], dtype=x.dtype), x)
    sign, logabsdet = with_gradients(safe, tf.linalg.slogdet(safe), slogdet_rule)
    change = x - tf.stop_gradient(x)
    change = tf.reduce_sum(tf.math.real(change * tf.math.conj(change)), [-2, -1])
    none = tf.sqrt(choose(singular, change, tf.ones_like(change)))  # 0 with a gradient of NaN
    return choose(singular, tf.cast(none, x.dtype), sign), choose(singular, none - math.inf, tf.math.real(logabsdet))


def op_inv(x):
    return invertible(tf.linalg.inv, "x", matrices(x, square=True))


def op_pinv(x, rcond):
    x = matrices(x)
    if 0 in x.shape:
        return tf.linalg.adjoint(x)
    s, u, v = tf.linalg.svd(x)
    s = check_finite(s)
    rcond = max(x.shape[-2:]) * tf.experimental.numpy.finfo(s.dtype.as_numpy_dtype).eps if rcond is None else rcond
    counts = s > tf.cast(rcond, s.dtype) * s[..., :1]
    inverses = choose(counts, 1 / choose(counts, s, tf.ones_like(s)), tf.zeros_like(s))
    inverse = tf.matmul(v * tf.cast(inverses, x.dtype)[..., None, :], u, adjoint_b=True)
    return with_gradients(x, [inverse], pinv_rule)[0]


def op_solve(a, b):
    a, b = map(reject_halves, map(floating, promote(a, b)))
    vectors = args.is_vector_rhs(known_shape(a), known_shape(b))
    solution = invertible(tf.linalg.solve, "a", *broadcast_together(a, b[..., None] if vectors else b, 2))
    return solution[..., 0] if vectors else solution


def op_solve_triangular(a, b, lower):
    a, b = map(reject_halves, map(floating, promote(a, b)))
    vectors = args.is_vector_rhs(known_shape(a), known_shape(b))
    singular = tf.reduce_any(tf.equal(tf.linalg.diag_part(a), 0)) if a.shape[-1] else tf.constant(False)
    if is_at_hand(singular) and bool(singular):
        raise errors.ArgumentError("a is singular")
    solution = tf.linalg.triangular_solve(*broadcast_together(a, b[..., None] if vectors else b, 2), lower)
    return solution[..., 0] if vectors else solution


def op_expm(x):
    x = matrices(x, square=True)
    if x.shape[-1] == 0:
        return x
    # Higham, "The scaling and squaring method for the matrix exponential revisited"; tf.linalg.expm has only 3 digits
    wide = tf.cast(x, tf.complex128 if x.dtype.is_complex else tf.float64)
    return tf.cast(exponential(wide, squarings(wide), MOST_SQUARINGS), x.dtype)


def op_lu_factor(x):
    x = matrices(x)
    rows, columns = x.shape[-2:]
    if rows != columns or rows == 0:
        return eliminate(x)
    try:
        factors, order = tf.linalg.lu(x)
    except tf.errors.InvalidArgumentError:  # TensorFlow refuses singular matrices
        return eliminate(x)
    return with_gradients(x, [factors], lu_rule(order))[0], pivots(order)


def op_qr(x, mode):
    x = matrices(x)
    rows, columns = x.shape[-2:]
    if rows < columns:
        q, r = tf.linalg.qr(x[..., :rows])
        return q, tf.concat([r, tf.matmul(q, x[..., rows:], adjoint_a=True)], -1)
    q, r = tf.linalg.qr(x)
    if mode == "reduced" or rows == columns:
        return q, r
    others = tf.linalg.qr(tf.stop_gradient(x), full_matrices=True)[0][..., columns:]
    below = tf.zeros(tf.concat([tf.shape(r)[:-2], [rows - columns, columns]], 0), r.dtype)
    return complete_basis(q, others), tf.concat([r, below], -2)


def op_svd(x, full_matrices, compute_uv):
    x = matrices(x)
    if 0 in x.shape[-2:]:
        u, s, vh = empty_svd(x, full_matrices)
        return (u, s, vh) if compute_uv else s
    s, u, v = with_gradients(x, tf.linalg.svd(x), singular_value_rule, singular_vector_rule)
    s = check_finite(s)
    if not compute_uv:
        return s
    if full_matrices:
        u = complete_basis(u) if u.shape[-2] > u.shape[-1] else u
        v = complete_basis(v) if v.shape[-2] > v.shape[-1] else v
    return u, s, adjoint(v)


def op_eigh(x):
    x = matrices(x, square=True)
    if x.shape[-1] == 0:
        return tf.math.real(tf.zeros(tf.shape(x)[:-1], x.dtype)), x
    # TensorFlow's own reads the lower triangle alone, but its gradient is for both
    x = x if x.dtype.is_floating and not is_tracked() else hermitian(x)
    values, vectors = tf.linalg.eigh(x)
    values, vectors = with_gradients(x, [tf.math.real(values), vectors], eigh_value_rule, eigh_vector_rule)
    return check_finite(values), vectors


def op_eig(x):
    x = matrices(x, square=True)
    x = x if x.dtype.is_complex else tf.complex(x, tf.zeros_like(x))
    values, vectors = with_gradients(x, tf.linalg.eig(x), eig_value_rule, eig_vector_rule)
    return check_finite(values), vectors


# derivatives


def with_gradients(x, results, rule, rule_of_others=None):
    """Return `results` with the gradients `rule(x, results, *upstreams)` for `x`, to all orders.

    Vectors have none where values coincide: `rule_of_others` is theirs, and `rule` that of the first result, the
    values. TensorFlow gives zeros for what is not used; in a shared rule these would be NaN there, or NaN be lost.
    """
    if not is_tracked():
        return results
    x, *results = map(in_this_graph, (x, *results))
    n = len(results)

    def link_results(rule_of_these, these):
        def pull(x, *tensors):
            linked_results = with_gradients(x, tensors[:n], rule, rule_of_others)
            return [rule_of_these(x, linked_results, *tensors[n:]), *[None] * n]

        return with_rule("decomposition", these, pull, x, *results)

    if rule_of_others is None:
        return link_results(rule, results)
    return link_results(rule, results[:1]) + link_results(rule_of_others, results[1:])


def eigh_value_rule(x, results, upstream):
    _, vectors = results
    return between(vectors * tf.cast(upstream, vectors.dtype)[..., None, :], vectors)


def eigh_vector_rule(x, results, upstream):
    values, vectors = results
    turned = tf.matmul(vectors, upstream, adjoint_a=True)
    return between(tf.matmul(vectors, divide_by_gaps(tf.cast(values, vectors.dtype), turned)), vectors)


def singular_value_rule(x, results, upstream):
    _, u, v = results
    return between(u * tf.cast(upstream, u.dtype)[..., None, :], v)


def singular_vector_rule(x, results, gu, gv):
    s, u, v = results
    squared, s = tf.cast(tf.square(s), u.dtype), tf.cast(s, u.dtype)
    uu, vv = tf.matmul(u, gu, adjoint_a=True), tf.matmul(v, gv, adjoint_a=True)
    left, right = divide_by_gaps(squared, uu), divide_by_gaps(squared, vv)
    left, right = left + tf.linalg.adjoint(left), right + tf.linalg.adjoint(right)
    middle = left * s[..., None, :] + s[..., None] * right
    inverse = reciprocal(s)
    if u.dtype.is_complex:
        phase = tf.linalg.diag_part(vv)
        middle += tf.linalg.diag(multiply_or_zero(inverse, (tf.math.conj(phase) - phase) / 2))
    gradient = between(tf.matmul(u, middle), v)
    if u.shape[-2] > u.shape[-1]:
        outside = multiply_or_zero(tf.broadcast_to(inverse[..., None, :], tf.shape(u)), gu - tf.matmul(u, uu))
        gradient += between(outside, v)
    if v.shape[-2] > v.shape[-1]:
        outside = multiply_or_zero(tf.broadcast_to(inverse[..., None, :], tf.shape(v)), gv - tf.matmul(v, vv))
        gradient += tf.matmul(u, outside, adjoint_b=True)
    return gradient


def eig_value_rule(x, results, upstream):
    _, vectors = results
    return turned_back(tf.linalg.diag(upstream), vectors)


def eig_vector_rule(x, results, upstream):
    values, vectors = results
    turned = tf.matmul(vectors, upstream, adjoint_a=True)
    length = tf.cast(tf.math.real(tf.linalg.diag_part(turned)), turned.dtype)
    turned -= tf.matmul(vectors, vectors, adjoint_a=True) * length[..., None, :]
    return turned_back(divide_by_gaps(tf.math.conj(values), turned), vectors)


def turned_back(middle, vectors):
    """Return `middle`, given in the basis `vectors`, in that of the matrices."""
    return tf.linalg.solve(tf.linalg.adjoint(vectors), tf.matmul(middle, vectors, adjoint_b=True))


def pinv_rule(x, results, upstream):
    (inverse,), g = results, tf.linalg.adjoint(upstream)
    conjugate = tf.linalg.adjoint(inverse)
    rows = tf.matmul(tf.matmul(g, inverse), conjugate)
    columns = tf.matmul(conjugate, tf.matmul(inverse, g))
    gradient = rows - tf.matmul(x, tf.matmul(inverse, rows)) + columns - tf.matmul(tf.matmul(columns, inverse), x)
    return gradient - tf.matmul(tf.matmul(conjugate, tf.linalg.adjoint(g)), conjugate)


def det_rule(x, results, upstream):
    # TensorFlow's own gradient multiplies by the determinant of a complex matrix instead of its conjugate
    return (upstream * tf.math.conj(results[0]))[..., None, None] * tf.linalg.inv(x, adjoint=True)


def regular_det(x):
    return with_gradients(x, [tf.linalg.det(x)], det_rule)[0]


def slogdet_rule(x, results, of_sign, slope):
    if x.dtype.is_complex:  # tf.linalg.slogdet has no gradient for the sign
        turn = -tf.math.imag(tf.math.conj(of_sign) * results[0])
        slope = tf.complex(tf.math.real(slope), turn)
    return slope[..., None, None] * tf.linalg.inv(x, adjoint=True)


def lu_rule(order):
    def rule(x, results, g):
        (factors,) = results
        lower = tf.linalg.set_diag(tf.linalg.band_part(factors, -1, 0), tf.ones_like(factors[..., 0]))
        upper = tf.linalg.band_part(factors, 0, -1)
        below = tf.matmul(lower, strictly_lower(g), adjoint_a=True)
        above = tf.matmul(tf.linalg.band_part(g, 0, -1), upper, adjoint_b=True)
        middle = strictly_lower(below) + tf.linalg.band_part(above, 0, -1)
        middle = tf.linalg.triangular_solve(lower, middle, adjoint=True)
        middle = tf.linalg.adjoint(tf.linalg.triangular_solve(upper, tf.linalg.adjoint(middle), lower=False))
        return tf.gather(middle, tf.argsort(order), batch_dims=rank(order) - 1, axis=-2)

    return rule


def divide_by_gaps(values, numerators):
    """Divide by `values[j] - values[i]`: NaN where two are equal, but 0 on the diagonal."""
    gaps = values[..., None, :] - values[..., None]
    inverse = reciprocal(tf.linalg.set_diag(gaps, tf.ones_like(values)))
    return tf.linalg.set_diag(numerators, tf.zeros_like(values)) * inverse


def multiply_or_zero(x, y):
    """Multiply; 0 where `y` is 0. The gradient of tf.math.multiply_no_nan does not conjugate complex numbers."""
    if not x.dtype.is_complex:
        return tf.math.multiply_no_nan(x, y)
    x1, x2, y1, y2 = tf.math.real(x), tf.math.imag(x), tf.math.real(y), tf.math.imag(y)
    product = tf.math.multiply_no_nan
    return tf.complex(product(x1, y1) - product(x2, y2), product(x1, y2) + product(x2, y1))


def reciprocal(x):
    zero = tf.equal(x, 0)
    return choose(zero, tf.constant(math.nan, x.dtype), 1 / choose(zero, tf.ones_like(x), x))


def between(left, right):
    return tf.matmul(left, right, adjoint_b=True)


# operands and results


def reject_halves(x):
    if x.dtype in (tf.float16, tf.bfloat16):
        raise errors.DTypeError(f"{dtype_name(x)} is too short for a decomposition; cast to float32 first")
    return x


def matrices(x, square=False):
    x = reject_halves(floating(x))
    args.matrices(known_shape(x), square)
    return x


def invertible(fn, name, *xs):
    """Call `fn`; TensorFlow's error says nothing but that a matrix is not invertible."""
    try:
        return fn(*xs)
    except tf.errors.InvalidArgumentError as error:
        if "not invertible" in error.message:
            raise errors.ArgumentError(f"{name} is singular") from error
        raise


def empty_svd(x, full=False):
    """Return the SVD of matrices without rows or columns, with arbitrary bases: TensorFlow has none."""
    rows, columns = x.shape[-2:]
    batch = tf.shape(x)[:-2]
    u = tf.eye(rows, rows if full else 0, batch, x.dtype)
    vh = tf.eye(columns if full else 0, columns, batch, x.dtype)
    return u, tf.math.real(tf.zeros(tf.concat([batch, [0]], 0), x.dtype)), vh


def strictly_lower(x):
    return tf.linalg.set_diag(tf.linalg.band_part(x, -1, 0), tf.zeros_like(x[..., 0]))


def hermitian(x):
    """Return the Hermitian matrices given by the lower triangles of `x`."""
    strict = strictly_lower(x)
    diagonal = tf.cast(tf.math.real(tf.linalg.diag_part(x)), x.dtype)
    return tf.linalg.set_diag(strict + tf.linalg.adjoint(strict), diagonal)


def check_finite(result):
    """Return `result`; raise if it is known and not finite."""
    if is_at_hand(result) and not np.isfinite(result).all():
        raise errors.ArgumentError("x must be finite")
    return result


def pivots(order):
    """Return the rows to swap with rows 0, 1, ... in turn, to bring the rows into `order`."""
    n = order.shape[-1]
    rows = tf.range(n)

    def swap(i, now, found):
        wanted = order[..., i, None]
        pivot = tf.argmax(tf.cast(tf.equal(now, wanted), tf.int32), -1, tf.int32)[..., None]
        now = choose(tf.equal(rows, pivot), now[..., i, None], choose(tf.equal(rows, i), wanted, now))
        return i + 1, now, choose(tf.equal(rows, i), pivot, found)

    start = (tf.constant(0), tf.zeros_like(order) + rows, tf.zeros_like(order))
    return tf.while_loop(lambda i, *_: i < n, swap, start, maximum_iterations=n)[2]


def eliminate(x):
    """Return factors and pivots of matrices that TensorFlow's kernel refuses: not square, or singular."""
    rows, columns = x.shape[-2:]
    chosen, places = [], tf.range(rows)
    for i in range(min(rows, columns)):
        sizes = tf.abs(tf.stop_gradient(x[..., i]))
        pivot = tf.argmax(choose(places < i, -tf.ones_like(sizes), sizes), -1, tf.int32)[..., None]
        order = choose(tf.equal(places, pivot), tf.constant(i), choose(tf.equal(places, i), pivot, places))
        x = tf.gather(x, order, batch_dims=rank(x) - 2, axis=-2)
        top, left = x[..., i, None, i + 1 :], x[..., i + 1 :, i, None]
        head = x[..., i, None, i, None]
        left /= choose(tf.equal(head, 0), tf.ones_like(head), head)
        rest = tf.concat([left, x[..., i + 1 :, i + 1 :] - left * top], -1)
        x = tf.concat([x[..., : i + 1, :], tf.concat([x[..., i + 1 :, :i], rest], -1)], -2)
        chosen.append(pivot)
    return x, tf.concat(chosen, -1) if chosen else tf.zeros(tf.concat([tf.shape(x)[:-2], [0]], 0), tf.int32)


def complete_basis(thin, others=None):
    """Complete orthonormal columns `thin` by constant columns `others`, rotated to stay orthogonal to `thin`.

    `others` follow the reflection that takes the current value of `thin` to `thin`, which is exact to all orders.
    """
    first = tf.stop_gradient(thin)
    if others is None:
        others = tf.linalg.qr(first, full_matrices=True)[0][..., first.shape[-1] :]
    within = tf.eye(thin.shape[-1], dtype=thin.dtype) + tf.matmul(thin, first, adjoint_a=True)
    turned = tf.matmul(thin + first, tf.linalg.solve(within, tf.matmul(thin, others, adjoint_a=True)))
    return tf.concat([thin, others - turned], -1)


def small_det(x):
    """Return determinants of matrices with at most three rows as polynomials, whose derivatives are exact."""
    n = x.shape[-1]
    if n == 0:
        return tf.ones(tf.shape(x)[:-2], x.dtype)
    if n == 1:
        return x[..., 0, 0]
    if n == 2:
        (a, b), (c, d) = (unstack(row, -1) for row in unstack(x, -2))
        return tf.raw_ops.Sub(x=tf.raw_ops.Mul(x=a, y=d), y=tf.raw_ops.Mul(x=b, y=c))
    first, *rows = unstack(x, -2)
    (y1, y2), (z1, z2) = ([tf.gather(row, order, axis=-1) for row in rows] for order in ([1, 2, 0], [2, 0, 1]))
    return tf.reduce_sum(first * (y1 * z2 - z1 * y2), -1)


def adjoint(x):
    """Return what `tf.linalg.adjoint` does, of a known rank, in less time."""
    order = cached_ints((*range(rank(x) - 2), rank(x) - 1, rank(x) - 2))
    return (tf.raw_ops.ConjugateTranspose if x.dtype.is_complex else tf.raw_ops.Transpose)(x=x, perm=order)


def unstack(x, axis):
    """Return what `tf.unstack` does, of a known size, in less time."""
    return tf.raw_ops.Unpack(value=x, num=x.shape[axis], axis=axis)


def singular_det(x):
    """Return determinants whose derivatives up to the third are right where they are 0.

    In constant bases of singular vectors, the block of all but the last three singular values is invertible wherever
    these derivatives are nonzero; the rest is a polynomial.
    """
    n = x.shape[-1]
    s, u, v = tf.linalg.svd(tf.stop_gradient(x))
    constant = s[..., n - 4] <= n * tf.experimental.numpy.finfo(s.dtype.as_numpy_dtype).eps * s[..., 0]
    turned = tf.matmul(u, tf.matmul(x, v), adjoint_a=True)
    block = choose(constant[..., None, None], tf.eye(n - 3, dtype=x.dtype), turned[..., : n - 3, : n - 3])
    below = tf.matmul(turned[..., n - 3 :, : n - 3], tf.linalg.solve(block, turned[..., : n - 3, n - 3 :]))
    det = regular_det(block) * small_det(turned[..., n - 3 :, n - 3 :] - below)
    return choose(constant, tf.zeros_like(det), det * tf.linalg.det(u) * tf.math.conj(tf.linalg.det(v)))


MOST_SQUARINGS = 16  # the limit that JAX uses
PADE_NORM = 5.371920351148152  # the largest norm at which the approximation is accurate to float64
PADE = [math.perm(26 - k, 13) // math.factorial(k) for k in range(14)]  # its coefficients, that of 1 first


def squarings(x):
    """Return how often the exponential of a fraction of each matrix is squared."""
    norm = tf.stop_gradient(tf.reduce_max(tf.reduce_sum(tf.abs(x), -2, keepdims=True), -1, keepdims=True))
    return tf.math.ceil(tf.math.log(tf.maximum(norm / PADE_NORM, 1)) / math.log(2))


def exponential(x, times, most):
    """Return the exponentials of matrices, each squared `times` times, which is `most` at the most."""
    power = pade(x * tf.cast(tf.pow(tf.constant(0.5, tf.float64), times), x.dtype))
    for i in range(most):
        power = choose(i < times, tf.matmul(power, power), power)
    return choose(times <= MOST_SQUARINGS, power, tf.cast(math.nan, x.dtype))


def pade(x):
    """Return the Padé approximation of degree 13 to the exponentials of matrices."""
    b = [tf.constant(float(one), x.dtype) for one in PADE]
    eye = tf.eye(x.shape[-1], dtype=x.dtype)
    x2 = tf.matmul(x, x)
    x4 = tf.matmul(x2, x2)
    x6 = tf.matmul(x4, x2)
    odd, even = (
        tf.matmul(x6, b[12 + i] * x6 + b[10 + i] * x4 + b[8 + i] * x2)
        + b[6 + i] * x6
        + b[4 + i] * x4
        + b[2 + i] * x2
        + b[i] * eye
        for i in (1, 0)
    )
    odd = tf.matmul(x, odd)
    return tf.linalg.solve(even - odd, even + odd)
