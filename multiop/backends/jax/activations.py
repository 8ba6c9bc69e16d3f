"""Activations of neural networks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from multiop import _args

from ._held import with_slope
from .conversion import compiled, convert, floating, is_float, is_float_along
from .elementwise import _abs, bool_to_int32, expm1, keep_nan_gradient, of_reals, reciprocal, reject_complex

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
GELU_SCALE = 2 * (2 / np.pi) ** 0.5


def op_relu(x):
    if is_float(x):
        return _relu(x)
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    return _relu(x)


def op_sigmoid(x):
    return _sigmoid(floating(x))


def op_softplus(x):
    return _softplus(*reject_complex(floating(x)))


def op_softmax(x, axis):
    if is_float_along(x, axis):
        return _softmax(x, axis)
    (x,) = reject_complex(floating(x))
    return _softmax(x, _args.single_axis(axis, x.ndim))


def op_log_softmax(x, axis):
    if is_float_along(x, axis):
        return _log_softmax(x, axis)
    (x,) = reject_complex(floating(x))
    return _log_softmax(x, _args.single_axis(axis, x.ndim))


def op_relu6(x):
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    return _relu6(x)


@of_reals
def op_leaky_relu(x, negative_slope):
    return jnp.where(x > 0, x, negative_slope * x)


@of_reals
def op_elu(x, alpha):
    # at 0 the slope is alpha, and constant, so the second derivative is 0
    return jnp.where(x < 0, alpha * expm1(jnp.where(x < 0, x, 0)), x * jnp.where(x == 0, alpha, 1))


@of_reals
def op_celu(x, alpha):
    return jnp.where(x < 0, alpha * expm1(jnp.where(x < 0, x, 0) / alpha), x)


@of_reals
def op_selu(x):
    return SELU_SCALE * op_elu(x, SELU_ALPHA)


@of_reals
def op_silu(x):
    return in_float32(lambda x: replace_neg_inf(x) * jax.nn.sigmoid(x), x)


def op_gelu(x, approximate):
    return (_gelu_tanh if approximate else _gelu)(*reject_complex(floating(x)))


def op_glu(x, axis):
    (x,) = reject_complex(floating(x))
    axis = _args.halved_axis(axis, x.shape)
    return in_float32(lambda x: jax.nn.glu(x, axis), x)


def op_log_sigmoid(x):
    return -_softplus(-reject_complex(floating(x))[0])


@of_reals
def op_softsign(x):
    size = 1 + _abs(x)
    # for large x, the slope of the quotient would suffer from cancellation
    return jnp.where(size < 2, jnp.where(size < 2, x, 0) / size, jnp.sign(x) * (1 - reciprocal(size)))


@of_reals
def op_soft_shrink(x, threshold):
    return jnp.where(jnp.abs(x) <= threshold, 0, x - jnp.sign(x) * threshold)


@of_reals
def op_hard_shrink(x, threshold):
    return jnp.where(jnp.abs(x) <= threshold, 0, x)


@of_reals
def op_tanh_shrink(x):
    return x - jnp.tanh(x)


@of_reals
def op_threshold(x, threshold, default_value):
    return jnp.where(x <= threshold, jnp.asarray(default_value, x.dtype), x)


@of_reals
def op_hard_sigmoid(x):
    return op_relu6(x + 3) / 6


@of_reals
def op_hard_silu(x):
    bent = jnp.abs(x) < 3
    safe = jnp.where(bent, x, 0)
    return jnp.where(bent, safe * (safe + 3) / 6, jnp.where(x <= -3, 0, x))


@compiled
def _sigmoid(x):
    return in_float32(jax.nn.sigmoid, x)


@compiled
def _relu(x):
    return jnp.where(x <= 0, 0, keep_nan_gradient(x))


@compiled
def _relu6(x):
    return jnp.where(x <= 0, 0, jnp.where(x >= 6, 6, keep_nan_gradient(x)))


@compiled
def _gelu(x):
    return in_float32(
        lambda x: 0.5 * replace_neg_inf(x) * jax.lax.erfc(clamp_to_40(x) * -np.sqrt(0.5).astype(x.dtype)), x
    )


@compiled
def _gelu_tanh(x):
    # written as a sigmoid, (1 + tanh(u)) / 2 keeps its digits where it is small
    return in_float32(
        lambda x: replace_neg_inf(x) * jax.nn.sigmoid(GELU_SCALE * (clamp_to_40(x) + 0.044715 * clamp_to_40(x) ** 3)), x
    )


def replace_neg_inf(x):
    """Replace -inf by the lowest finite number, so that a product with 0 is 0."""
    return jnp.where(x == -jnp.inf, jnp.finfo(x.dtype).min, x)


def clamp_to_40(x):
    """Clamp `x` to where a sigmoid or Gaussian still differs from its limit."""
    return jnp.where(x < -40, -40, jnp.where(x > 40, 40, x))


def in_float32(fn, x):
    """Compute float16 and bfloat16 in float32: they would overflow or lose too many digits."""
    return fn(x.astype(np.float32)).astype(x.dtype) if x.dtype.itemsize == 2 else fn(x)


_softplus = compiled(with_slope(jax.nn.softplus, jax.nn.sigmoid))
_softmax, _log_softmax = (compiled(fn, static_argnums=1) for fn in (jax.nn.softmax, jax.nn.log_softmax))
