"""Activations of neural networks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from multiop._values import args

from ..autodiff._held import with_slope
from ..conversion import (
    beyond_float16,
    bool_to_int32,
    convert,
    floating,
    in_float32,
    is_float,
    is_float_along,
    jit_inline,
    reject_complex,
)
from .elementwise import absolute, of_reals, reciprocal, with_sum_of

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
GELU_SCALE = 2 * (2 / np.pi) ** 0.5


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
    return share + x * (share * (1 - share))


def hard_silu_slope(x):
    return jnp.where(jnp.abs(x) < 3, (2 * x + 3) / 6, 1)


def softsign_slope(x):
    """Return the slope of softsign, by steps that end where the result does: that of a quotient would lose digits."""
    wide = x.astype(jnp.promote_types(x.dtype, np.float32))
    return jnp.square(reciprocal(1 + absolute(wide))).astype(x.dtype)


# a slope of its own is one residual and one product, where JAX has both for each step
# the second derivatives of jax.nn's at 0 are those from below
elu, celu = with_slope(elu_value, elu_slope), with_slope(celu_value, celu_slope)
selu = with_slope(lambda x: SELU_SCALE * elu_value(x, SELU_ALPHA), lambda x: SELU_SCALE * elu_slope(x, SELU_ALPHA))
silu = with_slope(jax.nn.silu, silu_slope)


# a square in the slope of jax.nn.soft_sign overflows in float16, and its second derivative at 0 is -2
softsign = with_slope(jax.nn.soft_sign, softsign_slope)
# the second derivatives of jax.nn's at 0 are doubled in a scan
softplus = with_slope(jax.nn.softplus, jax.nn.sigmoid)
log_sigmoid = with_slope(jax.nn.log_sigmoid, lambda x: jax.nn.sigmoid(-x))
# a product in the slope of jax.nn.hard_silu makes NaN of 0 and an infinite upstream gradient
hard_silu = with_slope(jax.nn.hard_silu, hard_silu_slope, lambda x: x <= -3)


def op_relu(x):
    if is_float(x):
        return _relu(x)
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    return _relu(x)


def op_sigmoid(x):
    return _sigmoid(floating(x))


op_softplus = of_reals(softplus)


def op_softmax(x, axis):
    return along(_softmax, x, axis)


def op_log_softmax(x, axis):
    return along(_log_softmax, x, axis)


def op_relu6(x):
    (x,) = reject_complex(*bool_to_int32(convert(x)))
    return _relu6(x)


@of_reals
def op_leaky_relu(x, negative_slope):
    return jnp.where(x > 0, x, negative_slope * x)  # the slope of jax.nn.leaky_relu at 0 is 1


op_elu = of_reals(elu)


op_celu = of_reals(celu)


op_selu = of_reals(selu)


@of_reals
def op_silu(x):
    return beyond_float16(silu, x)


def op_gelu(x, approximate):
    return (_gelu_tanh if approximate else _gelu)(*reject_complex(floating(x)))


def op_glu(x, axis):
    (x,) = reject_complex(floating(x))
    axis = args.halved_axis(axis, x.shape)
    return beyond_float16(lambda x: jax.nn.glu(x, axis), x)


op_log_sigmoid = of_reals(log_sigmoid)


op_softsign = of_reals(softsign)


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
    return _relu6(x + 3) / 6


op_hard_silu = of_reals(hard_silu)


def along(fn, x, axis):
    if is_float_along(x, axis):
        return fn(x, axis)
    (x,) = reject_complex(floating(x))
    return fn(x, args.single_axis(axis, x.ndim))


# jax.nn.relu and jax.nn.relu6 halve the gradient at their kinks in a scan that is differentiated twice: see _held.py
_relu = jit_inline(lambda x: jnp.where(x <= 0, 0, x))
_relu6 = jit_inline(lambda x: jnp.where(x <= 0, 0, jnp.where(x >= 6, 6, x)))


@jit_inline
def _gelu(x):
    return 0.5 * x * jax.lax.erfc(clamp_to_40(x) * -np.sqrt(0.5).astype(x.dtype))


def gelu_tanh(x):
    near = clamp_to_40(x)
    return x * jax.nn.sigmoid(GELU_SCALE * (near + 0.044715 * near**3))


_gelu_tanh = jit_inline(lambda x: in_float32(gelu_tanh, x))


def clamp_to_40(x):
    """Clamp `x` to where a sigmoid or Gaussian still differs from its limit: powers in jax.nn.gelu's slope overflow."""
    return jax.lax.clamp(x.dtype.type(-40), x, x.dtype.type(40))


_sigmoid = jit_inline(jax.nn.sigmoid)
_softmax, _log_softmax = (
    jit_inline(lambda x, axis, fn=fn: with_sum_of(x.shape[axis], lambda x: fn(x, axis), x), static_argnums=1)
    for fn in (jax.nn.softmax, jax.nn.log_softmax)
)
