"""Activations of neural networks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from multiop import _args

from ._held import with_slope
from .conversion import compiled, convert, floating, is_float, is_float_along
from .elementwise import _abs, bool_to_int32, in_float32, keep_nan_gradient, of_reals, reciprocal, reject_complex

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
GELU_SCALE = 2 * (2 / np.pi) ** 0.5


def op_relu(x):
    if is_float(x):
        return _relu(x)
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    return _relu(x)


def op_sigmoid(x):
    return _sigmoid(floating(x))


@of_reals
def op_softplus(x):
    return softplus(x)


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
    return leaky_relu(x, negative_slope)


@of_reals
def op_elu(x, alpha):
    return elu(x, alpha)


@of_reals
def op_celu(x, alpha):
    return celu(x, alpha)


@of_reals
def op_selu(x):
    return selu(x)


@of_reals
def op_silu(x):
    return in_float32(silu, x)


def op_gelu(x, approximate):
    return (_gelu_tanh if approximate else _gelu)(*reject_complex(floating(x)))


def op_glu(x, axis):
    (x,) = reject_complex(floating(x))
    axis = _args.halved_axis(axis, x.shape)
    return in_float32(lambda x: jax.nn.glu(x, axis), x)


@of_reals
def op_log_sigmoid(x):
    return log_sigmoid(x)


@of_reals
def op_softsign(x):
    return softsign(x)


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
    return hard_sigmoid(x)


@of_reals
def op_hard_silu(x):
    return hard_silu(x)


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


def leaky_relu_slope(x, negative_slope):
    return jnp.where(x > 0, 1, negative_slope).astype(x.dtype)


def elu_value(x, alpha):
    return jnp.where(x <= 0, alpha * jnp.expm1(jnp.where(x <= 0, x, 0)), x)


def elu_slope(x, alpha):
    # at 0 the slope is alpha, and constant, so the second derivative is 0
    return jnp.where(x <= 0, alpha * jnp.exp(jnp.where(x < 0, x, 0)), 1)


def celu_value(x, alpha):
    return jnp.where(x < 0, alpha * jnp.expm1(jnp.where(x < 0, x, 0) / alpha), x)


def celu_slope(x, alpha):
    return jnp.where(x < 0, jnp.exp(jnp.where(x < 0, x, 0) / alpha), 1)


def silu_slope(x):
    share = jax.nn.sigmoid(x)
    return share + replace_neg_inf(x) * (share * (1 - share))


def softsign_value(x):
    return jnp.where(jnp.isinf(x), jnp.sign(x), x / (1 + jnp.abs(x)))


def hard_sigmoid_slope(x):
    return jnp.where(jnp.isnan(x), x, 1 / 6)


def hard_silu_value(x):
    return jnp.where(jnp.abs(x) < 3, x * (x + 3) / 6, jnp.where(x <= -3, 0, x))


def hard_silu_slope(x):
    return jnp.where(jnp.abs(x) < 3, (2 * x + 3) / 6, 1)


# a slope of its own is one residual and one product, where JAX has both for each step
leaky_relu = with_slope(lambda x, negative_slope: jnp.where(x > 0, x, negative_slope * x), leaky_relu_slope)
elu, celu = with_slope(elu_value, elu_slope), with_slope(celu_value, celu_slope)
selu = with_slope(lambda x: SELU_SCALE * elu_value(x, SELU_ALPHA), lambda x: SELU_SCALE * elu_slope(x, SELU_ALPHA))
silu = with_slope(lambda x: replace_neg_inf(x) * jax.nn.sigmoid(x), silu_slope)
# the slope of the quotient would suffer from cancellation where x is large
softsign = with_slope(softsign_value, lambda x: jnp.square(reciprocal(1 + _abs(x))))
softplus = with_slope(jax.nn.softplus, lambda x: in_float32(jax.nn.sigmoid, x))
log_sigmoid = with_slope(lambda x: -jax.nn.softplus(-x), lambda x: in_float32(jax.nn.sigmoid, -x))
hard_sigmoid = with_slope(lambda x: jnp.clip(x + 3, 0, 6) / 6, hard_sigmoid_slope, lambda x: jnp.abs(x) >= 3)
hard_silu = with_slope(hard_silu_value, hard_silu_slope, lambda x: x <= -3)
_softmax, _log_softmax = (
    compiled(lambda x, axis, fn=fn: in_float32(lambda x: fn(x, axis), x), static_argnums=1)
    for fn in (jax.nn.softmax, jax.nn.log_softmax)
)
