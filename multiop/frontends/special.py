"""Special functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, composite, mark_recomputed
from multiop._rules.composed import with_rule
from multiop._values import args, dtypes, host
from multiop._values.types import ArrayLike, Tensor
from multiop.frontends.conversion import in_float32, op_cast, raised_to_0
from multiop.frontends.creation import op_zeros_like
from multiop.frontends.elementwise import (
    log_of_all,
    op_abs,
    op_add,
    op_arcsinh,
    op_arctanh,
    op_cos,
    op_divide,
    op_exp,
    op_expm1,
    op_floor,
    op_hypot,
    op_log,
    op_log1p,
    op_maximum,
    op_minimum,
    op_multiply,
    op_negative,
    op_power,
    op_round,
    op_sin,
    op_sinc,
    op_sinh,
    op_sqrt,
    op_subtract,
    op_tan,
    op_tanh,
)
from multiop.frontends.logical import (
    op_equal,
    op_not_equal,
    op_where,
)
from multiop.frontends.reduction import op_sum
from multiop.frontends.shapes import op_expand_dims


@boundary
def op_erf(x: ArrayLike) -> Tensor:
    """Compute the error function of each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`, from -1 to 1.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_erf([0.0])).tolist()
        [0.0]
    """
    return active().op_erf(x)


@boundary
def op_erfc(x: ArrayLike) -> Tensor:
    """Compute one minus the error function of each entry of `x`, without loss of digits where that is small.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`, from 0 to 2.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_erfc([0.0])).tolist()
        [1.0]
    """
    return active().op_erfc(x)


@boundary
def op_erfinv(x: ArrayLike) -> Tensor:
    """Compute the inverse of the error function of each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`: infinite at -1 and 1, and NaN beyond.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        Infinity at -1 and 1.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_erfinv([0.0])).tolist()
        [0.0]
    """
    return active().op_erfinv(x)


@boundary
def op_i0(x: ArrayLike) -> Tensor:
    """Compute the modified Bessel function of the first kind, of order 0, of each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`, at least 1.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_i0([0.0])).round(4).tolist()
        [1.0]
    """
    return active().op_i0(x)


# composites: the frameworks' own kernels are wrong in places (for negative numbers, for large `a`, in float32, or in
# their derivatives), and no two of them in the same; those below are differentiated as they stand


@boundary
def op_lgamma(x: ArrayLike) -> Tensor:
    """Compute the logarithm of the absolute value of the gamma function of each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`: infinity at 0, at negative whole numbers, and at both infinities.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        The digamma function, NaN at negative whole numbers. Close to its roots, `op_digamma` itself has more digits.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_lgamma([5.0])).round(4))
        [3.1781]
    """
    x, name = _real(x)
    return op_cast(_lgamma(x), name)


@boundary
def op_digamma(x: ArrayLike) -> Tensor:
    """Compute the derivative of the logarithm of the gamma function at each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`: minus infinity at 0, infinity at -0, and NaN at negative whole numbers.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_digamma([1.0])).round(4))
        [-0.5772]
    """
    x, name = _real(x)
    return op_cast(_polygamma(0, x), name)


@boundary
def op_polygamma(n: int, x: ArrayLike) -> Tensor:
    """Compute a derivative of the digamma function at each entry of `x`.

    Args:
        n: Order of the derivative, an int that is not negative; 0 is the digamma function itself.
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`.

    Raises:
        ArgumentError: `n` is negative.
        ArgumentTypeError: `n` is not an int.
        DTypeError: `x` is complex.

    Gradient:
        With respect to `x`: the polygamma function of the next order.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_polygamma(1, [1.0])).round(4))
        [1.6449]
    """
    n = args.count(n, "n")
    x, name = _real(x)
    return op_cast(_polygamma(n, x), name)


@boundary
def op_gammainc(a: ArrayLike, x: ArrayLike) -> Tensor:
    """Compute the regularized lower incomplete gamma function: the distribution function of gamma numbers.

    Args:
        a: Shape parameter, not negative: tensor, not complex; integers and bool become `floatx`.
        x: Upper limit of the integral, not negative: tensor of a shape that broadcasts with that of `a`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype, from 0 to 1; NaN where an argument is negative, and where
        both are 0 or infinite.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        With respect to both arguments.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_gammainc([1.0], [2.0])).round(4))
        [0.8647]
    """
    return _incomplete(a, x, 0)


@boundary
def op_gammaincc(a: ArrayLike, x: ArrayLike) -> Tensor:
    """Compute one minus the regularized lower incomplete gamma function, without loss of digits where that is small.

    Args:
        a: Shape parameter, not negative: tensor, not complex; integers and bool become `floatx`.
        x: Lower limit of the integral, not negative: tensor of a shape that broadcasts with that of `a`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype, from 0 to 1; NaN where an argument is negative, and where
        both are 0 or infinite.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        With respect to both arguments.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_gammaincc([1.0], [2.0])).round(4))
        [0.1353]
    """
    return _incomplete(a, x, 1)


@boundary
def op_betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Tensor:
    """Compute the regularized incomplete beta function: the distribution function of beta numbers.

    Args:
        a: First shape parameter, not negative: tensor, not complex; integers and bool become `floatx`.
        b: Second shape parameter, not negative: tensor of a shape that broadcasts with that of `a`.
        x: Upper limit of the integral, from 0 to 1: tensor of a shape that broadcasts with those.

    Returns:
        Tensor of the broadcast shape and the promoted dtype, from 0 to 1; NaN where an argument is outside of its
        domain, and where both parameters are 0 or infinite.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        With respect to all arguments.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_betainc([2.0], [3.0], [0.5])).round(4))
        [0.6875]
    """
    (a, b, x), name = _reals(a=a, b=b, x=x)
    return op_cast(_betainc(a, b, x), name)


@boundary
def op_gamma(x: ArrayLike) -> Tensor:
    """Compute the gamma function of each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`: infinity at 0, minus infinity at -0, and NaN at negative whole numbers.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_gamma([5.0])).round(4))
        [24.]
    """
    x, name = _real(x)
    return op_cast(_gamma(x), name)


@boundary
def op_betaln(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Compute the logarithm of the beta function.

    Args:
        a: Tensor, not complex and not negative; integers and bool become `floatx`.
        b: Tensor like `a`, of a shape that broadcasts with that of `a`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype: infinity where an argument is 0, and NaN where one is
        negative.

    Raises:
        DTypeError: An argument is complex.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_betaln([1.0], [2.0])).round(4))
        [-0.6931]
    """
    (a, b), name = _reals(a=a, b=b)
    return op_cast(_betaln(a, b), name)


@boundary
def op_beta(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Compute the beta function.

    Args:
        a: Tensor, not complex and not negative; integers and bool become `floatx`.
        b: Tensor like `a`, of a shape that broadcasts with that of `a`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype: infinity where an argument is 0, and NaN where one is
        negative.

    Raises:
        DTypeError: An argument is complex.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_beta([1.0], [2.0])).round(4))
        [0.5]
    """
    (a, b), name = _reals(a=a, b=b)
    return op_cast(_of_two_gammas(_beta_value, False, a, b), name)


@boundary
def op_xlogy(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Compute `x * log(y)`, which is 0 where `x` is 0.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        y: Tensor like `x`, of a shape that broadcasts with that of `x`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; NaN where `y` is NaN. The sign of a
        zero is not pinned.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        Where `x` is 0 and `y` is not positive: 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_xlogy([0.0, 2.0], [0.0, 1.0])).tolist()
        [0.0, 0.0]
    """
    return _product_with_log(x, y, op_log, 0.0)


@boundary
def op_xlog1py(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Compute `x * log(1 + y)`, which is 0 where `x` is 0, without loss of digits where `y` is close to 0.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        y: Tensor like `x`, of a shape that broadcasts with that of `x`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; NaN where `y` is NaN. The sign of a
        zero is not pinned.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        Where `x` is 0 and `y` is not above -1: 0.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.op_xlog1py([0.0, 2.0], [-1.0, 0.0])).tolist()
        [0.0, 0.0]
    """
    return _product_with_log(x, y, op_log1p, -1.0)


@boundary
def op_erfcx(x: ArrayLike) -> Tensor:
    """Compute `exp(x**2) * erfc(x)` of each entry of `x`, which neither overflows nor vanishes where `x` is large.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`: from 1 at 0 to 0 at infinity.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_erfcx([0.0, 100.0])).round(4))
        [1.     0.0056]
    """
    x, name = _real(x)
    return op_cast(_erfcx(x), name)


@boundary
def op_erfcinv(x: ArrayLike) -> Tensor:
    """Compute the inverse of the complementary error function of each entry of `x`, with all digits where `x` is small.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`: infinity at 0, minus infinity at 2, and NaN beyond.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        Minus infinity at 0 and 2.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_erfcinv([1e-30, 1.0])).round(4))
        [8.1486 0.    ]
    """
    x, name = _real(x)
    return op_cast(_erfcinv(x), name)


@boundary
def op_ndtr(x: ArrayLike) -> Tensor:
    """Compute the distribution function of the standard normal distribution at each entry of `x`.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`, from 0 to 1.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_ndtr([0.0, 1.0])).round(4))
        [0.5    0.8413]
    """
    x, name = _real(x)
    return op_cast(op_multiply(op_erfc(op_multiply(x, -_SQRT_HALF)), 0.5), name)


@boundary
def op_log_ndtr(x: ArrayLike) -> Tensor:
    """Compute the logarithm of the distribution function of the standard normal distribution, also where that is tiny.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`, not positive.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_log_ndtr([-100.0])).round(2))
        [-5005.52]
    """
    x, name = _real(x)
    is_low = x < -1.0
    low = op_multiply(op_where(is_low, x, -1.0), -_SQRT_HALF)
    low = op_subtract(op_log(op_multiply(_erfcx(low), 0.5)), op_multiply(low, low))
    rest = op_erfc(op_multiply(op_where(is_low, 0.0, x), _SQRT_HALF))
    return op_cast(op_where(is_low, low, op_log1p(op_multiply(rest, -0.5))), name)


@boundary
def op_ndtri(x: ArrayLike) -> Tensor:
    """Compute the quantile of the standard normal distribution at each entry of `x`, the inverse of `op_ndtr`.

    Args:
        x: Tensor of probabilities, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`: minus infinity at 0, infinity at 1, and NaN beyond.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        Infinity at 0 and 1.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_ndtri([0.5, 0.975])).round(4))
        [0.   1.96]
    """
    x, name = _real(x)
    return op_cast(op_multiply(_erfcinv(op_multiply(x, 2.0)), -(2.0**0.5)), name)


@boundary
def op_logit(x: ArrayLike) -> Tensor:
    """Compute the logarithm of the odds `x / (1 - x)` of each entry of `x`, the inverse of `op_sigmoid`.

    Args:
        x: Tensor of probabilities, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`: minus infinity at 0, infinity at 1, and NaN beyond.

    Raises:
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_logit([0.5, 0.75])).round(4))
        [0.     1.0986]
    """
    x, name = _real(x)
    # beside 1/2, a difference of two logarithms would have no digits left
    is_near = (x > 0.25) & (x < 0.75)
    near = op_subtract(op_multiply(op_where(is_near, x, 0.5), 2.0), 1.0)
    near = op_multiply(op_arctanh(near), 2.0)
    far = op_where(is_near, 0.25, x)
    return op_cast(op_where(is_near, near, op_subtract(op_log(far), op_log1p(op_negative(far)))), name)


@boundary
def op_entr(x: ArrayLike) -> Tensor:
    """Compute the term `-x * log(x)` of an entropy of each entry of `x`, which is 0 at 0.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.

    Returns:
        Tensor of the shape of `x`; minus infinity where `x` is negative.

    Raises:
        DTypeError: `x` is complex.

    Gradient:
        At 0: 0, as that of `op_xlogy`.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_entr([0.0, 0.5])).round(4))
        [0.     0.3466]
    """
    x, name = _real(x)
    is_below = x < 0.0
    inside = op_where(is_below, 1.0, x)
    logarithm = log_of_all(op_log, op_where(op_equal(inside, 0.0), 1.0, inside))
    inside = op_multiply(inside, logarithm)
    return op_cast(op_where(is_below, -math.inf, op_negative(inside)), name)


@boundary
def op_rel_entr(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Compute the term `x * log(x / y)` of a relative entropy, which is 0 where `x` is 0 and `y` is not negative.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        y: Tensor like `x`, of a shape that broadcasts with that of `x`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; infinity where an argument is negative, and where `y`
        alone is 0.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        Where `x` is 0: 0 with respect to both.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_rel_entr([0.0, 0.5], [0.0, 0.25])).round(4))
        [0.     0.3466]
    """
    (x, y), name = _reals(x=x, y=y)
    return op_cast(_rel_entr(x, y, op_zeros_like(x)), name)


@boundary
def op_kl_div(x: ArrayLike, y: ArrayLike) -> Tensor:
    """Compute the term `x * log(x / y) - x + y` of a divergence, which is `y` where `x` is 0 and `y` is not negative.

    Args:
        x: Tensor, not complex; integers and bool become `floatx`.
        y: Tensor like `x`, of a shape that broadcasts with that of `x`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype, not negative; infinity where an argument is negative, and
        where `y` alone is 0.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        Where `x` is 0: 0 with respect to `x`, and 1 with respect to `y`.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_kl_div([0.0, 0.5], [0.5, 0.25])).round(4))
        [0.5    0.0966]
    """
    (x, y), name = _reals(x=x, y=y)
    # of close numbers, the terms cancel to a rounding error of either sign
    return op_cast(raised_to_0(_rel_entr(x, y, op_subtract(y, x))), name)


@boundary
def op_multigammaln(x: ArrayLike, p: int) -> Tensor:
    """Compute the logarithm of the multivariate gamma function at each entry of `x`.

    Args:
        x: Tensor of numbers above `(p - 1) / 2`, not complex; integers and bool become `floatx`.
        p: The dimension, an int of at least 1.

    Returns:
        Tensor of the shape of `x`; NaN where `x` is not above `(p - 1) / 2`.

    Raises:
        ArgumentError: `p` is less than 1.
        ArgumentTypeError: `p` is not an int.
        DTypeError: `x` is complex.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_multigammaln([2.0], 2)).round(4))
        [0.4516]
    """
    (p,) = args.countable([args.count(p, "p", 1)], "p")
    x, name = _real(x)
    is_inside = (p - 1) / 2 < x
    inside = op_where(is_inside, x, float(p))
    total: Any = p * (p - 1) / 4 * math.log(math.pi)
    for k in range(p):
        total = op_add(total, _lgamma(op_subtract(inside, k / 2)))
    return op_cast(op_where(is_inside, total, math.nan), name)


@boundary
def op_zeta(x: ArrayLike, q: ArrayLike) -> Tensor:
    """Compute Hurwitz's zeta function, the sum of `(k + q)**-x` over whole numbers `k` from 0 on.

    Args:
        x: Exponent, above 1: tensor, not complex; integers and bool become `floatx`.
        q: Offset, positive: tensor of a shape that broadcasts with that of `x`; 1 gives Riemann's function.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; infinity where `x` is 1 or `q` is 0, and NaN where `x` is
        less than 1 or `q` is negative.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        With respect to both arguments.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_zeta([2.0], [1.0])).round(4))
        [1.6449]
    """
    (x, q), name = _reals(x=x, q=q)
    return op_cast(_zeta(x, q), name)


@boundary
def op_jv(v: ArrayLike, x: ArrayLike) -> Tensor:
    """Compute the Bessel function of the first kind.

    Args:
        v: Order, from -16 to 16, not only whole: tensor, not complex; integers and bool become `floatx`.
        x: Argument, real: tensor of a shape that broadcasts with that of `v`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; NaN beyond these orders, and
        where `x` is negative and `v` is not whole.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        With respect to both arguments.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_jv([0.5], [2.0])).round(4))
        [0.513]
    """
    (v, x), name = _reals(v=v, x=x)
    return op_cast(_oscillating(v, x, True), name)


@boundary
def op_yv(v: ArrayLike, x: ArrayLike) -> Tensor:
    """Compute the Bessel function of the second kind.

    Args:
        v: Order, from -16 to 16, not only whole: tensor, not complex; integers and bool become `floatx`.
        x: Argument, real: tensor of a shape that broadcasts with that of `v`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; NaN beyond these orders, and
        where `x` is negative; minus infinity where `x` is 0.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        With respect to both arguments.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_yv([0.5], [2.0])).round(4))
        [0.2348]
    """
    (v, x), name = _reals(v=v, x=x)
    return op_cast(_oscillating(v, x, False), name)


@boundary
def op_iv(v: ArrayLike, x: ArrayLike) -> Tensor:
    """Compute the modified Bessel function of the first kind.

    Args:
        v: Order, not only whole: tensor, not complex; integers and bool become `floatx`.
        x: Argument, real: tensor of a shape that broadcasts with that of `v`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; NaN where `x` is negative and
        `v` is not whole.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        With respect to both arguments.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_iv([0.5], [2.0])).round(4))
        [2.0462]
    """
    (v, x), name = _reals(v=v, x=x)
    return op_cast(_first(v, x, False), name)


@boundary
def op_ive(v: ArrayLike, x: ArrayLike) -> Tensor:
    """Compute the modified Bessel function of the first kind, times `exp(-abs(x))`.

    Args:
        v: Order, not only whole: tensor, not complex; integers and bool become `floatx`.
        x: Argument, real: tensor of a shape that broadcasts with that of `v`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; NaN where `x` is negative and
        `v` is not whole.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        With respect to both arguments.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_ive([0.5], [2.0])).round(4))
        [0.2769]
    """
    (v, x), name = _reals(v=v, x=x)
    return op_cast(_first(v, x, True), name)


@boundary
def op_kv(v: ArrayLike, x: ArrayLike) -> Tensor:
    """Compute the modified Bessel function of the second kind.

    Args:
        v: Order, not only whole: tensor, not complex; integers and bool become `floatx`.
        x: Argument, real: tensor of a shape that broadcasts with that of `v`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; NaN where `x` is negative, and
        infinity where it is 0.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        With respect to both arguments.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_kv([0.5], [2.0])).round(4))
        [0.1199]
    """
    (v, x), name = _reals(v=v, x=x)
    return op_cast(_second(v, x, False), name)


@boundary
def op_kve(v: ArrayLike, x: ArrayLike) -> Tensor:
    """Compute the modified Bessel function of the second kind, times `exp(x)`.

    Args:
        v: Order, not only whole: tensor, not complex; integers and bool become `floatx`.
        x: Argument, real: tensor of a shape that broadcasts with that of `v`.

    Returns:
        Tensor of the broadcast shape and the promoted dtype; NaN where `x` is negative, and
        infinity where it is 0.

    Raises:
        DTypeError: An argument is complex.

    Gradient:
        With respect to both arguments.

    Example:
        >>> import multiop
        >>> print(multiop.op_convert_to_numpy(multiop.op_kve([0.5], [2.0])).round(4))
        [0.8862]
    """
    (v, x), name = _reals(v=v, x=x)
    return op_cast(_second(v, x, True), name)


def _product_with_log(x: Any, y: Any, log: Any, pole: float) -> Any:
    """Return `x * log(y)`, and 0 where `x` is 0, beside which `log` has its pole at `pole` or is infinite."""
    x, y = active().promote_floating(x, y)
    if (name := active().dtype_name(x)) in dtypes.COMPLEX:
        raise errors.DTypeError(f"x and y must be real, got {name}")
    has_no_log = (y <= pole) | op_equal(y, math.inf)
    y = op_where(op_equal(x, 0.0) & has_no_log, pole + 1.0, y)
    return in_float32(lambda x, y: op_multiply(x, log_of_all(log, y)), x, y)


def _reals(**tensors: Any) -> tuple[list[Any], str]:
    """Return tensors in the promoted dtype to compute in, and the name of their own."""
    xs = list(active().together(*tensors.values()))
    first, *others = sorted(range(len(xs)), key=lambda k: host.is_scalar(xs[k]))  # numbers have the digits of tensors
    for k in others:
        xs[first], xs[k] = active().promote_floating(xs[first], xs[k])
    name = active().dtype_name(xs[first])
    if name in dtypes.COMPLEX:
        *names, last = tensors
        raise errors.DTypeError(f"{', '.join(names)} and {last} must be real, got {name}")
    return [op_cast(x, "float64" if name == "float64" else "float32") for x in xs], name


def _real(x: Any) -> tuple[Any, str]:
    """Return `x` in the dtype to compute in, and the name of its own dtype."""
    x = active().floating(x)
    name = active().dtype_name(x)
    if name in dtypes.COMPLEX:
        raise errors.DTypeError(f"x must be real, got {name}")
    return op_cast(x, "float64" if name == "float64" else "float32"), name


# the logarithm of the gamma function of 2 + t over t, in powers of t
_AT_TWO = (
    0.42278433509846713, 0.3224670334241132, -0.0673523010531981, 0.020580808427784546, -0.007385551028673986,
    0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425, -0.00022315475845357939,
    9.945751278180853e-05, -4.492623673813314e-05, 2.050721277567069e-05, -9.439488275268397e-06,
    4.374866789907488e-06, -2.039215753801366e-06, 9.55141213040742e-07, -4.492469198764566e-07,
    2.1207184805554665e-07, -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08,
    1.0838659214896955e-08, -5.183475041970047e-09, 2.4836745438024785e-09, -1.1921401405860912e-09,
    5.731367241678862e-10, -2.7595228851242334e-10,
)  # fmt: skip


@composite
@mark_recomputed
def _lgamma(x: Any) -> Any:
    """Return the logarithm of the absolute gamma function: by reflection below -1/2."""
    is_low = x < -0.5
    low = op_where(is_low, x, -0.75)
    low = op_where(op_equal(low, -math.inf), op_divide(1.0, low), low)  # a pole too, and the gradient is NaN there
    fraction = op_subtract(low, op_round(low))
    mirror = op_subtract(1.0, op_where(op_equal(fraction, 0.0), 0.0, low))
    found = _lgamma_above(op_where(is_low, mirror, x))
    # the derivative of the absolute value is 0 at 0: that of the logarithm is then NaN
    sine = op_abs(op_sin(op_multiply(fraction, math.pi)))
    reflected = op_subtract(op_subtract(math.log(math.pi), op_log(sine)), found)
    return op_where(is_low, reflected, found)


def _lgamma_above(x: Any) -> Any:
    """Return the function for numbers from -1/2 on: by recurrence from around 2, or by Stirling's series."""
    name = active().dtype_name(x)
    is_near, is_infinite = x < 10.5, op_equal(x, math.inf)
    near = op_where(is_near, x, 2.0)
    whole = op_round(near)
    t = op_subtract(near, whole)
    series = op_multiply(t, _polynomial(t, _AT_TWO[: 14 if name == "float32" else None]))
    is_below, is_least = whole < 2.0, whole < 1.0
    product = op_where(is_below, op_add(t, 1.0), 1.0)
    for k in range(2, 10):
        product = op_multiply(product, op_where(float(k) < whole, op_add(t, float(k)), 1.0))
    logarithm = op_multiply(op_log(product), op_where(is_below, -1.0, 1.0))
    # the logarithm of the absolute value, whose derivative keeps the sign of 0
    least = op_where(is_least, near, 1.0)
    least = op_log(op_where(least < 0.0, op_negative(least), least))
    found = op_subtract(op_add(series, logarithm), op_where(is_least, least, 0.0))
    far = op_where(is_near | is_infinite, 16.0, x)
    rest = _stirling(far)
    # of a number close to 1: the square of 1 / x, which second derivatives are made of, may underflow
    size = op_minimum(active().stop_gradient(far), float(np.finfo(name).max) / 8)
    level = op_add(op_log(op_multiply(far, op_divide(1.0, size))), op_log(size))
    rest = op_subtract(op_add(rest, 0.5 * math.log(2 * math.pi)), op_multiply(level, 0.5))
    far = op_add(op_multiply(far, op_subtract(level, 1.0)), rest)
    infinite = op_multiply(op_where(is_infinite, x, 1.0), op_where(is_infinite, math.inf, 1.0))
    return op_where(is_near, found, op_where(is_infinite, infinite, far))


@composite
@mark_recomputed
def _gamma(x: Any) -> Any:
    """Return the gamma function: by reflection below -1/2."""
    is_low = x < -0.5
    low = op_where(is_low, x, -0.75)
    is_pole = op_equal(low, op_round(low)) | op_equal(low, -math.inf)
    low = op_where(is_pole, -0.75, low)
    above = _gamma_above(op_where(is_low, op_negative(low), x))
    sign, angle = _half_turns(low)
    sine = op_multiply(op_sin(angle), sign)
    # 1 - x, whose function the reflection asks for, would be rounded
    reflected = op_divide(op_divide(-math.pi, op_multiply(sine, low)), active().stop_gradient(above))
    level = _lgamma_above(op_negative(low))  # of which the slope is ordinary, where that of the divisor would vanish
    reflected = op_multiply(reflected, op_exp(op_subtract(active().stop_gradient(level), level)))
    reflected = op_multiply(reflected, op_where(is_pole, math.nan, 1.0))
    return op_where(is_low, reflected, above)


def _gamma_above(x: Any) -> Any:
    """Return the function for numbers from -1/2 on: by recurrence from around 2, or by Stirling's formula."""
    name = active().dtype_name(x)
    is_near = x < 10.5
    near = op_where(is_near, x, 2.0)
    whole = op_round(near)
    t = op_subtract(near, whole)
    value = op_exp(op_multiply(t, _polynomial(t, _AT_TWO[: 14 if name == "float32" else None])))
    for k in range(2, 10):
        value = op_multiply(value, op_where(float(k) < whole, op_add(t, float(k)), 1.0))
    value = op_divide(value, op_where(whole < 2.0, op_add(t, 1.0), 1.0))
    value = op_divide(value, op_where(whole < 1.0, near, 1.0))
    # the root of the power, which alone would overflow before the result does; beyond `most`, the result has
    most = 40.0 if name == "float32" else 200.0
    far = op_where(is_near, 16.0, op_where(most < x, most, x))
    fixed = active().stop_gradient(far)
    root = op_power(fixed, op_subtract(op_multiply(fixed, 0.5), 0.25))
    root = op_multiply(root, op_exp(op_multiply(fixed, -0.5)))
    rest = op_exp(op_add(_stirling(fixed), 0.5 * math.log(2 * math.pi)))
    # its derivative is the result times that of its logarithm: derivatives of the factors would overflow before
    level = op_subtract(op_multiply(op_subtract(far, 0.5), op_log(far)), op_subtract(far, _stirling(far)))
    change = op_exp(op_subtract(level, active().stop_gradient(level)))
    far = op_multiply(op_multiply(op_multiply(root, rest), root), change)
    return op_where(is_near, value, far)


def _stirling(x: Any) -> Any:
    """Return what the logarithm of the gamma function of numbers from 10 on is beyond Stirling's formula."""
    inverse = op_divide(1.0, x)
    return op_multiply(inverse, _polynomial(op_multiply(inverse, inverse), _STIRLING))


_GAUSS = (0.5 - math.sqrt(3) / 6, 0.5 + math.sqrt(3) / 6)  # the places of Gauss's rule of two


def _of_two_gammas(value: Any, is_logarithm: bool, a: Any, b: Any) -> Any:
    """Return the beta function, or its logarithm, whose slopes lose no digits beside a small argument."""

    def function(a: Any, b: Any) -> tuple[list[Any], Any]:
        y = value(a, b)

        def rule(upstream: Any) -> list[Any]:
            change = op_negative(upstream if is_logarithm else op_multiply(upstream, y))
            return [op_multiply(change, _polygamma_growth(0, *pair)) for pair in ((a, b), (b, a))]

        return [y], rule

    name = "op_betaln" if is_logarithm else "op_beta"
    return with_rule(name, function, op_add(a, op_zeros_like(b)), op_add(b, op_zeros_like(a)))[0]


def _betaln(a: Any, b: Any) -> Any:
    return _of_two_gammas(_betaln_value, True, a, b)


@composite
def _beta_value(a: Any, b: Any) -> Any:
    """Return the beta function: an exponential would have fewer digits than a quotient."""
    low, high = op_minimum(a, b), op_maximum(a, b)
    few = op_multiply(op_divide(_gamma_above(high), _gamma_above(op_add(low, high))), _gamma_above(low))
    return op_where((low > 0.0) & (high < 10.5), few, op_exp(_betaln_value(a, b)))


@composite
def _betaln_value(a: Any, b: Any) -> Any:
    """Return it by three gamma functions, whose large terms cancel before they do."""
    low, high = op_minimum(a, b), op_maximum(a, b)
    both, ratio = op_add(low, high), op_divide(low, high)
    # one is slight: what it changes of the other's function is a mean of slopes, of which no digits cancel
    is_slight = low < op_multiply(op_add(high, 1.0), 0.03 if active().dtype_name(low) == "float32" else 3e-4)
    after = op_add(high, 1.0)
    slopes = op_add(*(_polygamma_above(0, op_add(after, op_multiply(low, place))) for place in _GAUSS))
    of_low, level = _lgamma_above(low), op_log1p(ratio)
    slight = op_add(of_low, op_subtract(level, op_multiply(op_multiply(low, 0.5), slopes)))
    near = op_subtract(op_add(of_low, _lgamma_above(high)), _lgamma_above(both))
    # one is small: the other's gamma functions are a power of it; both are large: Stirling's formula for all three
    rest = op_subtract(_stirling(high), _stirling(both))
    spread = op_multiply(op_subtract(high, 0.5), level)
    power = op_multiply(low, op_subtract(op_add(op_log(high), level), 1.0))
    one_far = op_subtract(op_subtract(op_add(of_low, rest), spread), power)
    share = op_multiply(op_subtract(low, 0.5), op_log(op_divide(ratio, op_add(1.0, ratio))))
    both_far = op_add(op_add(op_add(_stirling(low), rest), 0.5 * math.log(2 * math.pi)), share)
    both_far = op_subtract(both_far, op_add(op_multiply(op_log(high), 0.5), op_add(spread, op_multiply(level, 0.5))))
    found = op_where(high < 10.5, near, op_where(low > 10.5, both_far, one_far))
    found = op_where(is_slight, slight, found)
    found = op_where(op_equal(high, math.inf), -math.inf, found)
    found = op_where(op_equal(low, 0.0), op_where(op_equal(high, math.inf), math.nan, math.inf), found)
    return op_where((low >= 0.0) & (high >= 0.0), found, math.nan)


# the positive root of the digamma function in two parts, and the function's series around it, lowest power first
_ROOT = {
    "float32": (1.4616321325302124, 1.2438149938918909e-08),
    "float64": (1.4616321449683622, 9.549995429965697e-17),
}
_AT_ROOT = (
    0.9676722454476212, -0.4427631689835921, 0.258499760955651, -0.16394270544240652, 0.10782405069126237,
    -0.07219956125645471, 0.04880428816414311, -0.03316112647484736, 0.022597648232218104, -0.01542476590494896,
    0.010538791616612175, -0.007204534386356869, 0.004926781395729853, -0.003369801655439328, 0.002305126326734928,
    -0.0015769367714301972, 0.0010788252019162967, -0.0007380709389960052, 0.000504953265834602,
    -0.0003454680251063077, 0.00023635601564027053, -0.00016170622091974803, 0.0001106337276874741,
)  # fmt: skip
# Bernoulli's numbers of even order over their factorials
_BERNOULLI = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07, 2.08767569878681e-08,
    -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13, 8.586062056277845e-15,
    -2.174868698558062e-16, 5.5090028283602295e-18,
)  # fmt: skip


@composite
@mark_recomputed
def _polygamma(n: int, x: Any) -> Any:
    """Return the polygamma function: by reflection below -1/2, by recurrence below 10 + n, by a series beyond."""
    is_low = x < -0.5
    found = _polygamma_above(n, op_where(is_low, op_subtract(1.0, x), x))
    low = op_where(is_low, x, -0.75)
    cotangent = op_divide(1.0, op_tan(op_multiply(op_subtract(low, op_round(low)), math.pi)))
    reflected = op_multiply(_of_cotangent(n, cotangent), -(math.pi ** (n + 1)))
    if n == 0:  # the poles on both sides of a negative whole number have different signs
        reflected = op_multiply(reflected, op_where(op_equal(low, op_round(low)), math.nan, 1.0))
        root, rest = _ROOT[active().dtype_name(x)]
        near = op_subtract(x, root)
        is_near = op_abs(near) < 0.3
        near = op_where(is_near, near, 0.0)
        found = op_where(is_near, _polynomial(near, (-rest * _AT_ROOT[0], *_AT_ROOT)), found)
    return op_where(is_low, op_add(op_multiply(found, (-1.0) ** n), reflected), found)


def _polygamma_above(n: int, x: Any) -> Any:
    """Return the polygamma function of numbers above -1/2."""
    steps = 10 + n
    is_small = x < float(steps)
    near = op_where(is_small, x, 1.0)
    shifts = _array_like(x, np.arange(1, steps))
    root = math.exp(math.lgamma(n + 1) / (n + 1))  # of n!, so that no factor overflows before the result does
    below = op_sum(op_power(op_divide(root, op_add(op_expand_dims(near, -1), shifts)), n + 1), -1)
    below = op_add(op_power(op_divide(root, near), n + 1), below)  # the digamma function keeps the sign of 0
    y = op_where(is_small, op_add(x, float(steps)), x)
    inverse = op_divide(1.0, y)
    factors = [c * math.prod(range(n + 1, n + 2 * j + 2)) for j, c in enumerate(_BERNOULLI)]
    series = _polynomial(op_multiply(inverse, inverse), factors)
    rest = op_add(op_multiply(inverse, series), 0.5)
    if n == 0:
        far = op_subtract(op_multiply(inverse, rest), op_log(y))
    else:
        first = math.exp(math.lgamma(n) / n)
        far = op_add(op_power(op_divide(first, y), n), op_multiply(op_power(op_divide(root, y), n + 1), rest))
    return op_multiply(op_add(op_where(is_small, below, 0.0), far), (-1.0) ** (n + 1))


def _polygamma_growth(n: int, a: Any, b: Any) -> Any:
    """Return by how much the polygamma function of `a + b` is above that of `a`, both positive, with all its digits."""

    def growth(a: Any, b: Any) -> tuple[list[Any], Any]:
        def rule(upstream: Any) -> list[Any]:
            slopes = _polygamma_growth(n + 1, a, b), _polygamma_above(n + 1, op_add(a, b))
            return [op_multiply(upstream, slope) for slope in slopes]

        return [_polygamma_growth_value(n, a, b)], rule

    return with_rule("op_betaln", growth, a, b)[0]


@composite
def _polygamma_growth_value(n: int, a: Any, b: Any) -> Any:
    """Return it by recurrence and a series, as a sum of terms of one sign: `x**m - y**m` by its factor `x - y`."""
    steps, factorial = 10 + n, math.factorial(n)
    is_small = a < float(steps)
    place = op_add(op_expand_dims(op_where(is_small, a, 1.0), -1), _array_like(a, np.arange(steps)))
    part = op_expand_dims(b, -1)
    whole = op_add(place, part)
    terms = op_multiply(op_divide(part, whole), _polynomial(op_divide(place, whole), [1.0] * (n + 1)))
    for _ in range(n + 1):
        terms = op_divide(terms, place)
    below = op_multiply(op_sum(terms, -1), float(factorial))
    y = op_where(is_small, op_add(a, float(steps)), a)
    whole = op_add(y, b)
    inverse, part, rest = op_divide(1.0, y), op_divide(b, whole), op_divide(y, whole)
    square = op_multiply(inverse, inverse)
    square_after = op_multiply(op_multiply(square, rest), rest)
    # the polynomial of the first square, and its divided difference to the second
    *factors, series = [c * math.factorial(n + 2 * j + 1) for j, c in enumerate(_BERNOULLI)]
    change: Any = 0.0
    for factor in factors[::-1]:
        change = op_add(op_multiply(change, square_after), series)
        series = op_add(op_multiply(series, square), factor)
    change = op_add(op_multiply(change, square_after), series)
    change = op_multiply(op_multiply(change, op_add(rest, 1.0)), square)
    powers = _polynomial(rest, [1.0] * (n + 1))
    total = op_multiply(op_multiply(inverse, powers), 0.5 * factorial)
    scale = part
    for _ in range(n):
        change, scale = op_multiply(change, rest), op_multiply(scale, inverse)
    total = op_add(total, change)
    if n:
        level = op_add(op_multiply(series, square), float(math.factorial(n - 1)))
        total = op_add(total, op_multiply(level, _polynomial(rest, [1.0] * n)))
    far = op_multiply(scale, total)
    far = far if n else op_add(far, op_log1p(op_divide(b, y)))
    return op_multiply(op_add(op_where(is_small, below, 0.0), far), (-1.0) ** n)


def _of_cotangent(n: int, cotangent: Any) -> Any:
    """Return the derivative of order `n` of the cotangent, a polynomial in it."""
    polynomial = [0, 1]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(polynomial)][1:]
        polynomial = [-(x + y) for x, y in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return _polynomial(cotangent, [float(c) for c in polynomial])


def _polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Return a polynomial of `x`, whose coefficients start with the lowest power."""
    found: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        found = op_add(op_multiply(x, found), c)
    return found


def _incomplete(a: Any, x: Any, which: int) -> Any:
    """Return the lower (0) or the upper (1) regularized incomplete gamma function."""
    a, x = active().promote_floating(a, x)
    name = active().dtype_name(a)
    if name in dtypes.COMPLEX:
        raise errors.DTypeError(f"a and x must be real, got {name}")
    exact = "float64" if name == "float64" else "float32"
    a, x = op_cast(a, exact), op_cast(x, exact)
    return op_cast(_incomplete_gamma(a, x, which), name)


@composite
def _incomplete_gamma(a: Any, x: Any, which: int) -> Any:
    """Return a power series for small arguments, else an integral over the side of `x` where it is smaller."""
    a, x = op_add(a, op_zeros_like(x)), op_add(x, op_zeros_like(a))
    is_inside = (a >= 0.0) & (x >= 0.0)
    is_inside = is_inside & (a < math.inf) & (x < math.inf)
    is_inside = is_inside & (op_maximum(a, x) > 0.0)
    is_small = (x < 1.0) & (a < 10.0)
    is_series = is_inside & is_small
    is_integral = is_inside & (x > 0.0) & ~is_small
    series = _by_series(op_where(is_series, a, 2.0), op_where(is_series, x, 0.5), which)
    integral = _by_integral(op_where(is_integral, a, 2.0), op_where(is_integral, x, 2.0), which)
    # the limits: x is 0 or infinite, or a is
    is_none = (op_equal(x, 0.0) & op_equal(a, 0.0)) | (op_equal(x, math.inf) & op_equal(a, math.inf))
    is_right = (a >= 0.0) & (x >= 0.0) & ~is_none
    lower = op_cast(a < x, active().dtype_name(a))
    limit = op_subtract(1.0, lower) if which else lower
    wrong = op_multiply(op_where(is_right, 1.0, op_add(a, x)), op_where(is_right, 0.0, math.nan))
    limit = op_add(limit, wrong)
    return op_where(is_series, series, op_where(is_integral, integral, limit))


# the logarithm of the gamma function of 1 + f, plus those of 1 + f, 1 + f / 2 and 1 + f / 3, over f, in powers of f
_LOG_GAMMA = (
    1.2561176684318005, 0.14191147786855765, -0.013339955374185749, 0.0018693886746981281, -0.00031250576118427336,
    5.771997866104775e-05, -1.1361430156458442e-05, 2.33630095855835e-06, -4.958402952137287e-07,
    1.0775400096550505e-07, -2.3847713635254224e-08, 5.354323740781491e-09, -1.2161233925261413e-09,
    2.788321840043062e-10, -6.443084294914852e-11, 1.498581415330987e-11, -3.5048396836871797e-12,
    8.235879514810711e-13, -1.9432337901017174e-13, 4.601337334345103e-14, -1.092944389119395e-14,
    2.6032144200298055e-15, -6.215671915921078e-16, 1.4873780760261128e-16, -3.5662792412112285e-17,
)  # fmt: skip


def _by_series(a: Any, x: Any, which: int) -> Any:
    """Return the function for `a` below 10 and `x` below 1."""
    gamma, rest = _gamma_of_one_plus(a)
    excess, share, over = 0.0, 0.0, 1.0  # of a series in x over that of exp(x): of the order of a where that is small
    for k in range(1, 20):
        over = op_multiply(op_multiply(x, 1 / k), over)
        inverse = op_divide(1.0, op_add(a, float(k)))
        share = op_subtract(op_multiply(op_multiply(inverse, float(k)), share), op_multiply(a, inverse))
        excess = op_add(op_multiply(over, share), excess)
    excess = op_multiply(op_exp(op_negative(x)), excess)
    lower = op_divide(op_multiply(op_power(x, a), op_add(excess, 1.0)), gamma)
    if not which:
        return lower
    # where a is small, the lower function is close to 1
    is_close = (a < 1.0) & (x > 0.0)
    small, at = op_where(is_close, a, 0.5), op_where(is_close, x, 0.5)
    logarithm = op_add(op_multiply(small, op_log(at)), op_log1p(op_where(is_close, excess, 0.0)))
    for j in (1, 2, 3):
        logarithm = op_add(op_log1p(op_multiply(small, 1 / j)), logarithm)
    logarithm = op_subtract(logarithm, op_where(is_close, rest, 0.0))
    return op_where(is_close, op_negative(op_expm1(logarithm)), op_subtract(1.0, lower))


def _gamma_of_one_plus(a: Any) -> tuple[Any, Any]:
    """Return the gamma function of `1 + a`, for `a` below 10, and what `_LOG_GAMMA` gives for the fraction of `a`."""
    whole = active().stop_gradient(op_floor(a))
    f = op_subtract(a, whole)
    rest = op_multiply(f, _polynomial(f, _LOG_GAMMA))
    gamma = op_exp(rest)
    for j in (1, 2, 3):
        gamma = op_divide(gamma, op_add(op_multiply(f, 1 / j), 1.0))
    for j in range(1, 10):
        gamma = op_multiply(gamma, op_where(float(j) <= whole, op_add(f, float(j)), 1.0))
    return gamma, rest


# terms of Gauss's rule for the square root of a number from 0 to 1, and the exponent that is neglected
_RULES = {"float32": (16, 19.0), "float64": (50, 38.0)}


def _by_integral(a: Any, x: Any, which: int) -> Any:
    """Return the function for `x` of at least 1 or `a` of at least 10."""
    places, weights = gauss(a, x)
    density = op_exp(
        op_subtract(
            op_multiply(op_expand_dims(op_subtract(a, x), -1), places),
            op_multiply(op_expand_dims(x, -1), expm1_minus(places)),
        )
    )
    tail = op_multiply(_front(a, x), op_sum(op_multiply(density, weights), -1))
    is_upper = a < x
    return op_where(is_upper if which else ~is_upper, tail, op_subtract(1.0, tail))


def gauss(a: Any, x: Any) -> tuple[Any, Any]:
    """Return nodes and weights, in a dimension of their own, for integrals over what is above or below `x`.

    The integrands are smooth functions of `y` times the density of the gamma distribution of shape `a` at `x * exp(y)`.
    The nodes `y` are on the side of `x` where the integral is smaller: positive if `x` is above `a`.
    """
    from multiop._values.quadrature import OF_SQUARE_ROOT

    name = active().dtype_name(a)
    terms, exponent = _RULES[name]
    places, weights = (_array_like(a, numbers) for numbers in OF_SQUARE_ROOT[terms])
    a, x = active().stop_gradient(a), active().stop_gradient(x)
    sign = op_cast(op_where(a < x, 1.0, -1.0), name)
    slope, root = op_abs(op_subtract(a, x)), op_sqrt(x)
    steep = op_divide(slope, root)
    width = op_multiply(root, op_add(op_sqrt(op_add(op_multiply(steep, steep), 2 * exponent)), steep))
    width = op_divide(2 * exponent, width)
    for _ in range(3):  # Newton's iteration for where the density is exp(-exponent) times that at x
        y = op_multiply(sign, width)
        excess = op_subtract(op_multiply(slope, width), op_subtract(exponent, op_multiply(x, expm1_minus(y))))
        width = op_subtract(width, op_divide(excess, op_add(slope, op_multiply(op_multiply(sign, x), op_expm1(y)))))
    width, sign = op_expand_dims(width, -1), op_expand_dims(sign, -1)
    return op_multiply(op_multiply(sign, width), places), op_multiply(width, weights)


def expm1_minus(y: Any) -> Any:
    """Return `exp(y) - 1 - y`."""
    is_near = op_abs(y) < 0.35
    near = op_where(is_near, y, 0.0)
    series = 1.0
    for k in range(13, 2, -1):
        series = op_add(op_multiply(op_multiply(near, series), 1 / k), 1.0)
    series = op_multiply(op_multiply(op_multiply(near, near), 0.5), series)
    return op_where(is_near, series, op_subtract(op_expm1(op_where(is_near, 1.0, y)), y))


# Stirling's series over 1 / b, in powers of 1 / b**2
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _front(a: Any, x: Any) -> Any:
    """Return `x**a * exp(-x)` over the gamma function of `a`, without large terms that cancel."""
    is_small = a < 10.0
    small, near = op_where(is_small, a, 1.0), op_minimum(op_where(is_small, x, 1.0), 1000.0)
    gamma, _ = _gamma_of_one_plus(small)
    found = op_divide(op_multiply(op_multiply(op_power(near, small), op_exp(op_negative(near))), small), gamma)
    a, x = op_where(is_small, 10.0, a), op_where(is_small, 10.0, x)
    distance = op_divide(op_subtract(x, a), a)
    is_near = op_abs(distance) < 0.375
    near = op_where(is_near, distance, 0.0)
    s = op_divide(near, op_add(near, 2.0))
    square = op_multiply(s, s)
    cubes = op_multiply(op_multiply(s, square), _polynomial(square, [2 / k for k in range(3, 29, 2)]))
    share = op_exp(op_multiply(op_subtract(cubes, op_multiply(near, s)), a))
    ratio = op_where(is_near, 1.0, op_multiply(op_divide(x, a), op_exp(op_negative(distance))))
    share = op_where(is_near, share, op_power(ratio, a))
    inverse = op_divide(1.0, a)
    stirling = op_multiply(inverse, _polynomial(op_multiply(inverse, inverse), _STIRLING))
    large = op_multiply(op_multiply(share, op_exp(op_negative(stirling))), op_sqrt(op_multiply(a, 0.5 / math.pi)))
    return op_where(is_small, found, large)


_SQRT_HALF = 0.5**0.5

# (1 + 2 * x) * erfcx(x) in powers of (x - 3.75) / (x + 3.75), lowest first: from its series of Chebyshev polynomials
_ERFCX = (
    1.2375126308378275, -0.14024059858554702, 0.00358541548546369, 0.08227673849015112, -0.10880393014170746,
    0.09230432116019517, -0.05869339859054762, 0.02836227742156851, -0.009746579547619623, 0.0017556258319220233,
    0.00029371359480570737, -0.0002901539763460068, 5.164940777546399e-05, 2.2383900563041527e-05,
    -1.1445049125831309e-05, -9.728189861867202e-07, 1.7534434251106334e-06, -5.831950342145813e-08,
    -2.6114702359900956e-07, 2.4362700816477473e-08, 4.0971223152703005e-08, -4.453191645424103e-09,
    -6.545560212480267e-09, 5.820899514310995e-10, 9.02214970034059e-10, -4.9656323099806433e-11,
    -7.33950500852954e-11, 1.79625782521633e-12,
)  # fmt: skip


@composite
@mark_recomputed
def _erfcx(x: Any) -> Any:
    """Return `exp(x * x) * erfc(x)`: by a series, and by reflection below 0."""
    is_below = x < 0.0
    size = op_where(is_below, op_negative(x), x)
    places = op_subtract(1.0, op_divide(7.5, op_add(size, 3.75)))
    above = op_divide(_polynomial(places, _ERFCX), op_add(op_multiply(size, 2.0), 1.0))
    below = op_where(is_below, x, 0.0)
    return op_where(is_below, op_subtract(op_multiply(op_exp(op_multiply(below, below)), 2.0), above), above)


def _erfcinv(x: Any) -> Any:
    """Return the inverse of `op_erfc`, whose slope is made of itself."""

    def inverse(x: Any) -> tuple[list[Any], Any]:
        def rule(upstream: Any) -> list[Any]:
            is_zero = op_equal(x, 0.0)
            slope = op_divide(_erfcx(_erfcinv(x)), op_where(is_zero, 1.0, x))
            return [op_multiply(upstream, op_multiply(op_where(is_zero, math.inf, slope), -0.5 * math.pi**0.5))]

        return [_erfcinv_value(x)], rule

    return with_rule("op_erfcinv", inverse, x)[0]


@composite
def _erfcinv_value(x: Any) -> Any:
    """Return it by Newton's iteration on logarithms where `x` is small, by `op_erfinv` elsewhere."""
    is_small = (x > 0.0) & (x < 0.2)
    level = op_log(op_where(is_small, x, 0.1))
    y = op_sqrt(op_subtract(op_multiply(op_log(op_multiply(level, -math.pi)), -0.5), level))
    for _ in range(3):
        scaled = _erfcx(y)
        excess = op_subtract(op_subtract(op_log(scaled), op_multiply(y, y)), level)
        y = op_add(y, op_multiply(op_multiply(excess, scaled), 0.5 * math.pi**0.5))
    return op_where(is_small, y, op_erfinv(op_subtract(1.0, op_where(is_small, 1.0, x))))


def _rel_entr(x: Any, y: Any, rest: Any) -> Any:
    """Return `x * log(x / y) + rest`, and infinity outside of its domain."""
    below_x = (x < 0.0) & op_equal(y, y)  # beside NaN, NaN
    is_below = below_x | ((y < 0.0) & op_equal(x, x))
    is_zero = op_equal(x, 0.0)
    is_pole = (x > 0.0) & op_equal(y, 0.0)
    is_usual = ~(is_below | is_zero | is_pole)
    x, y = op_where(is_usual, x, 1.0), op_where(is_usual, y, 1.0)
    # the ratio may overflow, and where it is close to 1 its logarithm has few digits
    difference = op_subtract(x, y)
    is_near = op_abs(difference) < op_multiply(y, 0.5)
    excess = op_divide(op_where(is_near, difference, 0.0), op_where(is_near, y, 1.0))
    logarithm = op_where(is_near, op_log1p(excess), op_subtract(log_of_all(op_log, x), log_of_all(op_log, y)))
    product = op_where(is_usual, op_multiply(x, logarithm), op_where(is_zero, 0.0, math.inf))
    return op_where(is_below, math.inf, op_add(product, rest))


@composite
@mark_recomputed
def _zeta(x: Any, q: Any) -> Any:
    """Return the sum of ten terms, and of the others by Euler's and Maclaurin's formula."""
    x, q = op_add(x, op_zeros_like(q)), op_add(q, op_zeros_like(x))
    is_usual = (x > 1.0) & (q > 0.0)
    is_pole = (op_equal(x, 1.0) & (q >= 0.0)) | ((x > 1.0) & op_equal(q, 0.0))
    exponent, start = op_where(is_usual, x, 2.0), op_where(is_usual, q, 1.0)
    total: Any = 0.0
    for k in range(10):
        total = op_add(op_power(op_add(start, float(k)), op_negative(exponent)), total)
    # the other terms are 0 from there on
    exponent = op_minimum(exponent, 50.0 if active().dtype_name(x) == "float32" else 330.0)
    y = op_add(start, 10.0)
    power = op_power(y, op_negative(exponent))
    integral = op_divide(op_power(y, op_subtract(1.0, exponent)), op_subtract(exponent, 1.0))
    total = op_add(total, op_add(integral, op_multiply(power, 0.5)))
    factor = op_divide(op_multiply(power, exponent), y)
    for k, number in enumerate(_BERNOULLI):
        total = op_add(total, op_multiply(factor, number))
        more = op_multiply(op_add(exponent, 2.0 * k + 1), op_add(exponent, 2.0 * k + 2))
        factor = op_divide(op_divide(op_multiply(factor, more), y), y)
    wrong = op_where(is_pole, math.inf, math.nan)
    return op_where(is_usual, total, wrong)


# Bessel functions of real order, each by what has no cancellation there: a series where the argument is small, else an
# integral over a path on which the integrand does not change its sign, or Hankel's series.

# the exponent that is neglected, nodes of an integral, and where the series of the modified function ends, after terms
_BESSEL = {"float32": (18.0, 64, 10.0, 30), "float64": (40.0, 128, 20.0, 48)}
_STEEP = {"float32": (80.0, 3e38), "float64": (690.0, 1e308)}  # the logarithm of the largest slope, the largest value
_SMALLEST = 1e-9  # below it, the square of the argument is neglected

# half of the logarithm of the gamma function of 1 + v over that of 1 - v, over v, in powers of the square of v
_DELTA = (
    -0.5772156649015329, -0.40068563438653143, -0.20738555102867398, -0.1440498967688461, -0.11133426586956469,
    -0.09095401714582904, -0.0769325164113522, -0.06666870588242046, -0.058823978658684585, -0.05263167937961666,
    -0.047619070330142226, -0.04347826605304026, -0.04000000119214014, -0.037037037312989324, -0.034482758684919304,
    -0.03225806453115042, -0.030303030306558044, -0.02857142857226011, -0.027027027027223673, -0.025641025641072283,
    -0.024390243902450117, -0.023255813953491015, -0.022222222222222855, -0.021276595744681003, -0.02040816326530616,
    -0.019607843137254912, -0.01886792452830189,
)  # fmt: skip


def _array_like(x: Any, numbers: Any) -> Any:
    """Return an array of NumPy as a tensor of the dtype of `x`, where `x` is."""
    return active().on_device_of(x, active().convert(np.asarray(numbers).astype(active().dtype_name(x))))


def _cos_and_sin_of_turns(v: Any) -> tuple[Any, Any]:
    """Return the cosine and the sine of `pi * v`, 0 where they are."""
    sign, angle = _half_turns(v)
    size = op_abs(angle)
    is_low = size < 0.8
    cosine = op_where(is_low, op_cos(angle), op_sin(op_subtract(math.pi / 2, op_where(is_low, 1.0, size))))
    return op_multiply(sign, cosine), op_multiply(sign, op_sin(angle))


def _half_turns(v: Any) -> tuple[Any, Any]:
    """Return -1 to the power of the whole number beside `v`, and `pi` times the rest: an angle within half of `pi`."""
    whole = op_round(v)
    half = op_multiply(whole, 0.5)
    return op_where(op_equal(half, op_round(half)), 1.0, -1.0), op_multiply(op_subtract(v, whole), math.pi)


def _sizes(*xs: Any) -> list[Any]:
    """Return absolute values, whose derivative at 0 is 1."""
    return [op_where(x < 0.0, op_negative(x), x) for x in xs]


def _sign_below(v: Any, x: Any) -> Any:
    """Return what a function of whole order is multiplied by where `x` is negative; NaN for other orders."""
    whole = op_where(op_equal(v, op_round(v)), _half_turns(v)[0], math.nan)
    return op_where(x < 0.0, whole, 1.0)


def _first_terms(v: Any, x: Any, terms: int, sign: float) -> Any:
    """Return the power series of the function of the first kind, for orders from 0 on."""
    square = op_multiply(op_multiply(x, x), 0.25 * sign)
    total: Any = 1.0
    term: Any = 1.0
    for k in range(1, terms):
        term = op_multiply(term, op_divide(square, op_multiply(op_add(v, float(k)), float(k))))
        total = op_add(total, term)
    # the power and the gamma function may overflow before their ratio does
    after = op_add(v, 1.0)
    power = op_power(op_divide(op_multiply(x, math.e / 2), _hold_where_steep(after, op_equal(x, 0.0))), v)
    is_near = after < 10.5
    near, far = op_where(is_near, after, 1.0), op_where(is_near, 16.0, after)
    near = op_subtract(op_multiply(op_subtract(near, 1.0), op_subtract(op_log(near), 1.0)), _lgamma_above(near))
    rest = 1.0 - 0.5 * math.log(2 * math.pi)
    far = op_subtract(op_subtract(rest, op_multiply(op_log(far), 0.5)), _stirling(far))
    return op_multiply(op_multiply(power, op_exp(op_where(is_near, near, far))), total)


@composite
def _second(v: Any, x: Any, is_scaled: bool) -> Any:
    """Return the modified function of the second kind, times `exp(x)` where `is_scaled`."""
    (v,), x = _sizes(op_add(v, op_zeros_like(x))), op_add(x, op_zeros_like(v))
    is_small = (x > 0.0) & (x < _SMALLEST)
    is_usual = (x >= _SMALLEST) & (x < math.inf)
    usual = _second_by_integral(op_where(is_usual, v, 1.0), op_where(is_usual, x, 1.0), is_scaled)
    at = op_where(is_small, x, _SMALLEST)
    small = op_multiply(_second_of_small(op_where(is_small, v, 0.25), at), op_add(at, 1.0) if is_scaled else 1.0)
    is_none = op_equal(x, 0.0)
    pole = op_negative(op_log(op_where(is_none, x, 1.0)))
    ends = op_where(is_none, pole, op_where(op_equal(x, math.inf), 0.0, math.nan))
    ends = op_where(op_equal(v, v), ends, math.nan)
    return op_where(is_usual, usual, op_where(is_small, small, ends))


def _second_by_integral(v: Any, x: Any, is_scaled: bool, i: int = 0, j: int = 0) -> Any:
    """Return the integral of `exp(-x * cosh(t)) * cosh(v * t)` over positive `t`, or its derivative of order `i`, `j`.

    That is an integral, too: a term of it vanishes later than the derivative of a term that is rounded to 0.
    """

    def integral(v: Any, x: Any) -> tuple[list[Any], Any]:
        def rule(upstream: Any) -> list[Any]:
            slopes = (_second_by_integral(v, x, is_scaled, *order) for order in ((i + 1, j), (i, j + 1)))
            return [op_multiply(upstream, slope) for slope in slopes]

        return [_second_value(v, x, is_scaled, i, j)], rule

    return with_rule("op_kve" if is_scaled else "op_kv", integral, v, x)[0]


@composite
def _second_value(v: Any, x: Any, is_scaled: bool, i: int, j: int) -> Any:
    """Return the integral by trapezia."""
    exponent, n, *_ = _BESSEL[active().dtype_name(x)]
    peak, left = _peak(v, x, exponent)
    size, top = _saddle(v, x, is_scaled)
    right = op_multiply(op_arcsinh(op_sqrt(op_divide(exponent / 2, size))), 2.0)
    step = op_multiply(op_add(left, right), 1 / n)
    places = _array_like(x, np.arange(n + 1))
    weights = _array_like(x, [0.25, *[0.5] * (n - 1), 0.25])
    t = op_add(op_expand_dims(op_subtract(peak, left), -1), op_multiply(op_expand_dims(step, -1), places))
    power = op_multiply(op_expand_dims(v, -1), t)
    half = op_sinh(op_multiply(t, 0.5))
    x, lift = op_expand_dims(x, -1), op_expand_dims(top, -1)
    growth = op_multiply(op_multiply(half, half), -2.0)
    level = op_subtract(op_add(power, op_multiply(x, growth)), lift if is_scaled else op_add(x, lift))
    other = op_multiply(power, -2.0)
    terms = op_multiply(op_exp(level), op_negative(op_expm1(other)) if i % 2 else op_add(op_exp(other), 1.0))
    for factor in [t] * i + [growth if is_scaled else op_subtract(growth, 1.0)] * j:
        terms = op_multiply(terms, factor)
    return _lowered(op_multiply(step, op_sum(op_multiply(terms, weights), -1)), size, top)


def _saddle(v: Any, x: Any, is_scaled: bool) -> tuple[Any, Any]:
    """Return the curvature and the value of `v * t - x * cosh(t)`, plus `x` where `is_scaled`, where it is greatest.

    What is integrated is lifted by that value, or less if half of it has no exponential: a term would overflow, or
    vanish, before the integral does.
    """
    size, most = op_hypot(v, x), 2 * _STEEP[active().dtype_name(x)][0]
    top = op_subtract(op_multiply(v, op_arcsinh(op_divide(v, x))), op_subtract(size, x) if is_scaled else size)
    return size, op_maximum(op_minimum(top, most), -most)


def _lowered(integral: Any, size: Any, top: Any) -> Any:
    """Return an integral of which the terms were lifted: times the root of `size`, it hardly changes."""
    half = op_exp(op_multiply(top, 0.5))
    root = op_sqrt(size)  # divided out before the last product, which may be as large as the dtype allows
    return op_multiply(op_divide(op_multiply(op_multiply(integral, root), half), root), half)


def _peak(v: Any, x: Any, exponent: float) -> tuple[Any, Any]:
    """Return where `v * t - x * cosh(t)` is greatest, and how far below that it is less by `exponent`, down to 0."""
    peak = op_arcsinh(op_divide(v, x))
    ratio = op_divide(exponent, op_maximum(v, 1e-6))
    return peak, op_minimum(peak, op_add(ratio, op_sqrt(op_multiply(ratio, 2.0))))


def _second_of_small(v: Any, x: Any) -> Any:
    """Return the modified function of the second kind for small positive `x`: the first terms of its series."""
    level = op_subtract(math.log(2.0), op_log(x))
    is_low, is_lowest = v < 1.0, v < 0.5
    low, lowest = op_where(is_low, v, 0.75), op_where(is_lowest, v, 0.25)
    middle = op_where(is_lowest, 0.75, low)
    difference = op_subtract(_lgamma_above(op_add(middle, 1.0)), _lgamma_above(op_subtract(1.0, middle)))
    delta = op_where(
        is_lowest, _polynomial(op_multiply(lowest, lowest), _DELTA), op_divide(op_multiply(difference, 0.5), middle)
    )
    slope = op_add(level, delta)
    exponent = op_multiply(low, slope)
    root = op_power(op_multiply(x, 0.5), op_multiply(v, -0.5))  # of a power that overflows before half of it does
    # of the exponent: a hyperbolic sine over it
    is_short = exponent < 1e-3
    power = op_where(is_low, op_multiply(root, root), 1.0)
    grown = op_where(is_short, 1.0, op_multiply(power, op_exp(op_multiply(low, delta))))
    long = op_divide(op_multiply(op_subtract(grown, op_divide(1.0, grown)), 0.5), op_where(is_short, 1.0, exponent))
    share = op_where(is_short, op_add(op_multiply(op_multiply(exponent, exponent), 1 / 6), 1.0), long)
    below = op_divide(op_multiply(share, slope), op_sqrt(op_sinc(low)))
    above = op_multiply(op_multiply(op_multiply(root, 0.5), _gamma(op_where(is_low, 1.0, v))), root)
    return op_where(is_low, below, above)


def _is_steep(v: Any, x: Any, sine: Any) -> Any:
    """Say where a sine is 0 beside a function of the second kind whose slope may overflow."""
    name = active().dtype_name(x)
    ratio = op_divide(op_multiply(v, 2 / math.e), op_maximum(x, float(np.finfo(name).tiny)))
    level = op_multiply(op_add(v, 1.0), op_log(ratio))
    return op_equal(sine, 0.0) & (_STEEP[name][0] < level)


def _hold_where_steep(x: Any, is_steep: Any) -> Any:
    """Return `x`, which has no gradient where a slope overflows and is multiplied by 0: NaN would be left of it."""
    return op_where(is_steep, active().stop_gradient(x), x)


def _bound_where_steep(y: Any, is_steep: Any) -> Any:
    """Return a function beside a sine of 0, which its product is finite with, and its tangent."""
    largest = _STEEP[active().dtype_name(y)][1]
    return op_where(is_steep, active().stop_gradient(op_maximum(op_minimum(y, largest), -largest)), y)


@composite
def _first(v: Any, x: Any, is_scaled: bool) -> Any:
    """Return the modified function of the first kind, times `exp(-abs(x))` where `is_scaled`."""
    order, given = op_add(v, op_zeros_like(x)), op_add(x, op_zeros_like(v))
    v, x = _sizes(order, given)
    _, _, edge, terms = _BESSEL[active().dtype_name(x)]
    is_near = x < edge
    is_far = (edge <= x) & (x < math.inf)
    near = op_where(is_near, x, 1.0)
    near = op_multiply(_first_terms(v, near, terms, 1.0), op_exp(op_negative(near)) if is_scaled else 1.0)
    far = _first_by_integral(v, op_where(is_far, x, edge), is_scaled)
    ends = op_where(op_equal(x, math.inf), 0.0 if is_scaled else math.inf, math.nan)
    value = op_where(is_near, near, op_where(is_far, far, ends))
    is_negative = (order < 0.0) & (v < math.inf)
    sine = _cos_and_sin_of_turns(op_where(is_negative, v, 0.0))[1]
    is_steep = is_negative & _is_steep(v, x, sine)
    at, held = (
        op_where(is_negative, _hold_where_steep(x, is_steep), 1.0),
        op_where(is_negative, _hold_where_steep(v, is_steep), 0.25),
    )
    other = op_multiply(_second(held, at, False), op_exp(op_negative(at)) if is_scaled else 1.0)
    other = _bound_where_steep(op_where(is_negative, other, 0.0), is_steep)
    value = op_add(value, op_multiply(sine, op_multiply(other, 2 / math.pi)))
    return op_multiply(value, _sign_below(v, given))


def _first_by_integral(v: Any, x: Any, is_scaled: bool) -> Any:
    """Return the integral over the steepest path through the saddle point; its slopes are integrals, too."""

    def integral(v: Any, x: Any) -> Any:
        def rule(upstream: Any) -> Any:
            return [op_multiply(upstream, slope) for slope in _first_values(v, x, is_scaled)[1:]]

        return _first_values(v, x, is_scaled)[:1], rule

    return with_rule("op_ive" if is_scaled else "op_iv", integral, v, x)[0]


@composite
def _first_values(v: Any, x: Any, is_scaled: bool) -> list[Any]:
    """Return the integral from 0 to `pi`, and what it is of the derivatives of its terms."""
    exponent, n, *_ = _BESSEL[active().dtype_name(x)]
    n //= 2
    size, depth = _saddle(active().stop_gradient(v), active().stop_gradient(x), is_scaled)
    top = op_negative(depth)
    width = op_minimum(op_multiply(op_sqrt(op_divide(exponent / 2, size)), math.pi), math.pi)
    angle = op_multiply(op_expand_dims(width, -1), _array_like(x, (np.arange(n) + 0.5) / n))
    v, x, lift = (op_expand_dims(y, -1) for y in (v, x, top))
    ratio, cosine = op_divide(v, x), op_cos(angle)
    spread = op_divide(angle, op_sin(angle))
    path = op_arcsinh(op_multiply(ratio, spread))
    rise, fall = op_sinh(op_multiply(path, 0.5)), op_sin(op_multiply(angle, 0.5))
    growth = op_subtract(op_multiply(op_multiply(rise, rise), cosine), op_multiply(fall, fall))
    growth = op_multiply(growth, 2.0)
    level = op_subtract(op_multiply(x, growth), op_multiply(v, path))
    level = op_subtract(level, lift) if is_scaled else op_add(level, op_subtract(x, lift))
    # along the path, which moves
    along = op_multiply(op_subtract(1.0, op_multiply(spread, cosine)), op_tanh(path))
    of_x = op_add(growth if is_scaled else op_add(growth, 1.0), op_multiply(ratio, along))
    terms, step = op_exp(level), op_multiply(width, 1 / (n * math.pi))
    sums = terms, op_multiply(terms, op_negative(op_add(path, along))), op_multiply(terms, of_x)
    return [_lowered(op_multiply(step, op_sum(y, -1)), size, top) for y in sums]


_HIGHEST = 16.0  # order, of the functions that oscillate
_TERMS = {"float32": 64, "float64": 112}  # of Gauss's rule


@composite
def _oscillating(v: Any, x: Any, is_first: bool) -> Any:
    """Return the Bessel function of the first kind, or of the second."""
    order, given = op_add(v, op_zeros_like(x)), op_add(x, op_zeros_like(v))
    v, x = _sizes(order, given)
    is_inside = v <= _HIGHEST
    v = op_where(is_inside, v, 1.0)
    cosine, sine = _cos_and_sin_of_turns(v)
    # negative orders by reflection
    is_negative = order < 0.0
    is_mixed = is_negative & op_not_equal(sine, 0.0)
    square = op_multiply(v, v)
    is_series = op_multiply(x, x) <= op_multiply(op_add(v, 1.0), 8.0)
    is_infinite = op_equal(x, math.inf)
    is_far = op_add(op_multiply(square, 0.1875), 25.0) < x
    is_small = x < _SMALLEST
    is_none = op_equal(x, 0.0)
    # what overflows is computed where it is used alone: unused, it would have a gradient of 0 times infinity
    is_steep = is_negative & _is_steep(v, x, sine if is_first else cosine)
    is_integral = ~(is_far | is_small)
    is_limit = is_small & (x > 0.0)
    if is_first:  # the function of the second kind is used for negative orders alone
        is_integral = is_integral & (is_negative | ~is_series)
        is_limit = is_limit & is_negative
    far = op_where(is_far & (x < math.inf), x, 64.0)
    series = _first_terms(v, op_where(is_series, x, 1.0), 28, -1.0)
    held, middle = _hold_where_steep(v, is_steep), op_where(is_integral, _hold_where_steep(x, is_steep), 5.0)
    of_middle, of_far = _oscillating_by_integral(held, middle), _oscillating_far(v, far)
    first = op_where(is_series, series, op_where(is_far, of_far[0], of_middle[0]))
    # the two terms of the function of the second kind for small arguments, of which one is left from order 1 on
    tangent = op_divide(sine, op_add(op_where(v < 1.0, cosine, 1.0), 1.0))
    small = _second_of_small(
        op_where(is_limit, held, 0.25), op_where(is_limit, _hold_where_steep(x, is_steep), _SMALLEST)
    )
    other = op_where(is_small & (v < 1.0), op_multiply(tangent, first), 0.0)
    small = op_where(is_none, 0.0, op_subtract(op_multiply(small, -2 / math.pi), other))
    second = op_where(is_small, small, op_where(is_far, of_far[1], of_middle[1]))
    first, second = (op_where(is_infinite, 0.0, y) for y in (first, second))
    second = _bound_where_steep(second, is_steep)
    if is_first:  # of a negative order, it has a pole at 0
        turned = op_subtract(op_multiply(cosine, first), op_multiply(sine, op_where(is_negative, second, 0.0)))
        turned = op_where(is_none & is_mixed, op_where(sine > 0.0, math.inf, -math.inf), turned)
        value, sign = op_where(is_negative, turned, first), _sign_below(order, given)
    else:
        pole = op_log(op_where(is_none, x, 1.0))
        across = op_multiply(cosine, op_where(is_none, 0.0, second))
        across = op_add(across, op_multiply(sine, first))
        is_left = op_not_equal(cosine, 0.0)
        across = op_where(is_none & is_left, op_multiply(op_where(is_left, cosine, 1.0), pole), across)
        value = op_where(is_negative, across, op_where(is_none, pole, second))
        sign = op_where(given < 0.0, math.nan, 1.0)
    return op_multiply(value, op_where(is_inside, sign, math.nan))


def _oscillating_by_integral(v: Any, x: Any) -> tuple[Any, Any]:
    """Return both functions by Schlaefli's integrals: over angles from 0 to `pi`, and over positive numbers."""
    from multiop._values.quadrature import GAUSS

    exponent, *_ = _BESSEL[active().dtype_name(x)]
    places, weights = GAUSS[_TERMS[active().dtype_name(x)]]
    fixed_v, fixed_x = active().stop_gradient(v), active().stop_gradient(x)
    peak, left = _peak(fixed_v, fixed_x, exponent)
    start: Any = op_subtract(peak, left)
    end: Any = 60.0
    for _ in range(4):
        end = op_arcsinh(op_divide(op_add(op_multiply(fixed_v, end), exponent), fixed_x))
    end = op_subtract(end, start)
    cosine, sine = _cos_and_sin_of_turns(v)
    v, x = op_expand_dims(v, -1), op_expand_dims(x, -1)
    angle = _array_like(x, (places + 1) * (math.pi / 2))
    phase = op_subtract(op_multiply(v, angle), op_multiply(x, op_sin(angle)))
    half = _array_like(x, weights / 2)  # of an integral over the angle, over pi
    first = op_sum(op_multiply(op_cos(phase), half), -1)
    second = op_negative(op_sum(op_multiply(op_sin(phase), half), -1))
    t = op_multiply(op_expand_dims(end, -1), _array_like(x, (places + 1) / 2))
    t = op_add(op_expand_dims(start, -1), t)
    power, level = op_multiply(v, t), op_multiply(x, op_sinh(t))
    scale = op_multiply(end, 1 / math.pi)
    falling = op_multiply(scale, op_sum(op_multiply(op_exp(op_negative(op_add(level, power))), half), -1))
    level = op_subtract(power, op_add(level, math.log(16.0)))  # a term overflows before the function does
    rising = op_multiply(op_multiply(scale, op_sum(op_multiply(op_exp(level), half), -1)), 16.0)
    first = op_subtract(first, op_multiply(sine, falling))
    return first, op_subtract(second, op_add(rising, op_multiply(cosine, falling)))


def _oscillating_far(v: Any, x: Any) -> tuple[Any, Any]:
    """Return both functions of large `x` by Hankel's series."""
    square, inverse = op_multiply(op_multiply(v, v), 4.0), op_divide(0.125, x)
    parts: list[Any] = [1.0, 0.0]
    term: Any = 1.0
    for k in range(1, 34):
        term = op_multiply(op_multiply(term, op_multiply(op_subtract(square, float((2 * k - 1) ** 2)), 1 / k)), inverse)
        parts[k % 2] = op_add(parts[k % 2], op_multiply(term, (-1.0) ** (k // 2)))
    # of x less a quarter of pi and half of v times pi
    turn = op_add(op_multiply(v, 0.5), 0.25)
    (cosine, sine), of_cosine, of_sine = _cos_and_sin_of_turns(turn), op_cos(x), op_sin(x)
    along = op_add(op_multiply(of_cosine, cosine), op_multiply(of_sine, sine))
    across = op_subtract(op_multiply(of_sine, cosine), op_multiply(of_cosine, sine))
    size = op_sqrt(op_divide(2 / math.pi, x))
    first = op_subtract(op_multiply(parts[0], along), op_multiply(parts[1], across))
    second = op_add(op_multiply(parts[0], across), op_multiply(parts[1], along))
    return op_multiply(size, first), op_multiply(size, second)


@composite
def _betainc(a: Any, b: Any, x: Any) -> Any:
    """Return an integral over the side of `x` where it is smaller, in the logarithm of the odds."""
    none = op_add(op_add(op_zeros_like(a), op_zeros_like(b)), op_zeros_like(x))
    a, b, x = op_add(a, none), op_add(b, none), op_add(x, none)
    is_right = (a >= 0.0) & (b >= 0.0) & (x >= 0.0)
    is_right = is_right & (x <= 1.0)
    is_usual = (op_minimum(a, b) > 0.0) & (op_maximum(a, b) < math.inf)
    is_usual = is_usual & is_right & (x > 0.0) & (x < 1.0)
    usual = _betainc_by_integral(op_where(is_usual, a, 1.0), op_where(is_usual, b, 1.0), op_where(is_usual, x, 0.5))
    # the limits: all of the distribution is at 0 or at 1
    is_at_one = (x >= 1.0) | op_equal(a, 0.0) | op_equal(b, math.inf)
    is_at_none = (x <= 0.0) | op_equal(b, 0.0) | op_equal(a, math.inf)
    is_open = op_equal(a, b) & (op_equal(a, 0.0) | op_equal(a, math.inf))
    is_right = is_right & ~is_open
    limit = op_where(op_equal(x, 0.0), 0.0, op_where(is_at_one, 1.0, op_where(is_at_none, 0.0, math.nan)))
    return op_where(is_usual, usual, op_where(is_right, limit, math.nan))


def _log_of_share(part: Any, both: Any, size: Any, shift: Any) -> Any:
    """Return the logarithm of `part * both / size`, which is `1 + shift / size`: of a vanishing part, that is 0."""
    distance = op_divide(shift, size)
    is_close = distance > -0.5
    far = op_log(op_multiply(op_where(is_close, 1.0, part), op_divide(both, size)))
    return op_where(is_close, op_log1p(op_where(is_close, distance, 0.0)), far)


def _betainc_by_integral(a: Any, b: Any, x: Any) -> Any:
    """Return the function for numbers inside of its domain; `p`, `q` and `t` are those of the smaller side."""
    from multiop._values.quadrature import GAUSS

    name = active().dtype_name(x)
    of_x, of_rest = op_log(x), op_log1p(op_negative(x))
    level = op_subtract(op_add(op_multiply(a, of_x), op_multiply(b, of_rest)), _betaln(a, b))
    # below the mean, unless more than half is there, as of a small parameter; further out, the rule has too few terms
    is_lower = op_multiply(x, op_add(a, b)) < a
    is_most = op_exp(level) > op_multiply(op_where(is_lower, a, b), 0.5)
    is_inside = op_multiply(x, op_subtract(1.0, x)) > (1e-3 if name == "float64" else 0.0)
    is_lower = op_not_equal(is_lower, is_most & is_inside)
    p, q = op_where(is_lower, a, b), op_where(is_lower, b, a)
    t = op_where(is_lower, x, op_subtract(1.0, x))
    # by Stirling's formula where the terms are large and cancel
    is_large = op_minimum(a, b) > 10.5
    large_a, large_b, large_x = op_where(is_large, a, 16.0), op_where(is_large, b, 16.0), op_where(is_large, x, 0.5)
    both, rest = op_add(large_a, large_b), op_subtract(1.0, large_x)
    shift = op_subtract(op_multiply(large_x, large_b), op_multiply(rest, large_a))
    large = op_multiply(large_a, _log_of_share(large_x, both, large_a, shift))
    large = op_add(large, op_multiply(large_b, _log_of_share(rest, both, large_b, op_negative(shift))))
    root = op_log(op_divide(op_multiply(large_a, op_divide(large_b, both)), 2 * math.pi))
    large = op_add(large, op_add(op_multiply(root, 0.5), _stirling(both)))
    large = op_subtract(large, op_add(_stirling(large_a), _stirling(large_b)))
    front = op_divide(op_exp(op_where(is_large, large, level)), p)
    # the function of p + 1, whose integrand falls from its end on
    total, after = op_add(op_add(p, q), 1.0), op_add(p, 1.0)
    exponent = _RULES[name][1]
    places, weights = (_array_like(x, numbers / 2) for numbers in GAUSS[_TERMS[name]])
    fixed_total, fixed_after, fixed = (active().stop_gradient(y) for y in (total, after, t))
    slope = op_subtract(fixed_after, op_multiply(fixed_total, fixed))
    slope = op_maximum(slope, op_multiply(fixed_after, 1e-6))
    bend = op_multiply(op_multiply(fixed_total, fixed), op_subtract(1.0, fixed))
    root = op_sqrt(op_add(op_multiply(slope, slope), op_multiply(bend, 2 * exponent)))
    width = op_divide(2 * exponent, op_add(slope, root))
    for _ in range(4):  # Newton's iteration for where the integrand is exp(-exponent) times that at its end
        part = op_multiply(fixed, op_expm1(op_negative(width)))
        excess = op_subtract(
            op_add(op_multiply(fixed_after, width), op_multiply(fixed_total, op_log1p(part))), exponent
        )
        share = op_divide(op_multiply(fixed, op_exp(op_negative(width))), op_add(part, 1.0))
        width = op_subtract(width, op_divide(excess, op_subtract(fixed_after, op_multiply(fixed_total, share))))
    y = op_multiply(op_expand_dims(width, -1), op_add(places, 0.5))
    # in one of two forms, whose terms do not cancel
    of_t, of_rest = op_expand_dims(t, -1), op_expand_dims(op_where(is_lower, op_subtract(1.0, x), x), -1)
    is_few = op_expand_dims(q < after, -1)
    slope = op_expand_dims(op_where(q < after, op_negative(q), after), -1)
    change = op_where(is_few, op_multiply(of_rest, op_expm1(y)), op_multiply(of_t, op_expm1(op_negative(y))))
    fall = op_add(op_multiply(slope, y), op_multiply(op_expand_dims(total, -1), op_log1p(change)))
    integral = op_multiply(width, op_sum(op_multiply(op_exp(op_negative(fall)), weights), -1))
    tail = op_multiply(front, op_add(op_multiply(op_multiply(op_add(p, q), t), integral), 1.0))
    return op_where(is_lower, tail, op_subtract(1.0, tail))
