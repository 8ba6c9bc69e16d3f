"""Functions of complex numbers on NumPy's side of each branch cut, with derivatives that hold at every magnitude.

XLA loses the sign of a zero, which tells the side. Here each part is computed separately: `1 - z` and `1j * z` lose it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.lax import rsqrt

from ..autodiff._held import custom_jvp, with_slope
from ..conversion import jit_inline


def is_complex(x):
    return x.dtype.kind == "c"


def times_i(z):
    """Return `1j * z`."""
    return jax.lax.complex(-jnp.imag(z), jnp.real(z))


def times_minus_i(z):
    """Return `-1j * z`."""
    return jax.lax.complex(jnp.imag(z), -jnp.real(z))


def shift_real(z, by):
    return jax.lax.complex(jnp.real(z) + by, jnp.imag(z))


def copy_side(y, side):
    """Return `y` with the sign of its imaginary part taken from `side`."""
    return jax.lax.complex(jnp.real(y), jnp.copysign(jnp.imag(y), jnp.imag(side)))


def arcsin_slope(z):
    """Return the derivative of arcsin."""
    return rsqrt(shift_real(-z, 1)) * rsqrt(shift_real(z, 1))


def arctanh_value(z):
    """Return arctanh; XLA's is already infinite near its poles, and loses NaN beside infinity."""
    y, x = jnp.arctanh(z), jnp.abs(jnp.real(z))
    distance = jnp.hypot(1 - x, jnp.imag(z))
    steep = 0.5 * (jnp.log(jnp.hypot(1 + x, jnp.imag(z))) - jnp.log(distance))
    real = jnp.where(distance < 0.1, jnp.copysign(steep, jnp.real(z)), jnp.real(y))
    return copy_side(jax.lax.complex(real, jnp.where(jnp.isnan(jnp.imag(z)), jnp.nan, jnp.imag(y))), z)


def keep_digits(logarithm, z):
    """Return a logarithm, by that of `2 * z` where XLA's log1p loses digits in float64: jax-ml/jax#39707."""
    if z.dtype == jnp.complex64:
        return logarithm(z)
    unit = jnp.where(jnp.abs(jnp.abs(z) - 0.81) < 0.05, 2.0, 1.0)
    return shift_real(logarithm(jax.lax.complex(jnp.real(z) * unit, jnp.imag(z) * unit)), -logarithm(unit))


def reach_far(fn, z):
    """Return sin or cos, by that 1 closer to the real axis: XLA's overflow before the result does."""
    step = jnp.where(jnp.abs(jnp.imag(z)) > 20, jnp.sign(jnp.imag(z)), 0)
    y, scale = fn(jax.lax.complex(jnp.real(z), jnp.imag(z) - step)), jnp.exp(jnp.abs(step))
    return jax.lax.complex(jnp.real(y) * scale, jnp.imag(y) * scale)


def log1p_value(z):
    """Return log1p; XLA's is already infinite near its pole."""
    left = (jnp.real(z) < -0.5) | (jnp.abs(shift_real(z, 1)) < 0.85)
    return jnp.where(left, keep_digits(jnp.log, shift_real(z, 1)), jnp.log1p(jnp.where(left, 0, z)))


def sqrt_value(z):
    return copy_side(jnp.sqrt(z), z)


def sech_squared_value(z):
    """Return the slope of tanh, of which 1 less the square of tanh would keep no digits far out."""
    far = 60 if z.dtype == jnp.complex64 else 400  # beyond, it is 0
    return jnp.square(jnp.reciprocal(cosh(jax.lax.complex(jnp.clip(jnp.real(z), -far, far), jnp.imag(z)))))


sech_squared = with_slope(sech_squared_value, lambda z: -2 * jnp.tanh(z) * sech_squared(z))


@custom_jvp
def _power(z, w):
    zero = z == 0
    at_0 = jnp.where(w == 0, 1, jnp.where(jnp.real(w) > 0, 0, complex(jnp.nan, jnp.nan)))
    return jnp.where(zero, at_0.astype(z.dtype), jnp.power(jnp.where(zero, 1, z), w))


@_power.defjvp
def _power_jvp(primals, tangents):
    z, w = primals
    y, zero = _power(z, w), z == 0
    in_base = jnp.where(w == 0, 0, w * _power(z, jnp.where(w == 0, 0, shift_real(w, -1))))
    in_exponent = jnp.where(zero & ((w == 0) | (jnp.real(w) > 0)), 0, y * jnp.log(z))
    return y, in_base * tangents[0] + in_exponent * tangents[1]


_sqrt = with_slope(sqrt_value, lambda z: 0.5 * jnp.reciprocal(sqrt_value(z)))
_log1p = with_slope(log1p_value, lambda z: jnp.reciprocal(shift_real(z, 1)))
_arcsin = with_slope(lambda z: copy_side(jnp.arcsin(z), z), arcsin_slope)
_arctanh = with_slope(arctanh_value, lambda z: jnp.reciprocal(shift_real(-z, 1)) * jnp.reciprocal(shift_real(z, 1)))

sqrt, log1p, arcsin, arctanh, power = map(jit_inline, (_sqrt, _log1p, _arcsin, _arctanh, _power))
arccos = jit_inline(with_slope(lambda z: copy_side(jnp.arccos(z), -z), lambda z: -arcsin_slope(z)))
arccosh = jit_inline(
    with_slope(lambda z: copy_side(jnp.arccosh(z), z), lambda z: rsqrt(shift_real(z, -1)) * rsqrt(shift_real(z, 1)))
)
arctan = jit_inline(lambda z: times_minus_i(_arctanh(times_i(z))))
arcsinh = jit_inline(lambda z: times_minus_i(_arcsin(times_i(z))))
sin, cos = (jit_inline(lambda z, fn=fn: reach_far(fn, z)) for fn in (jnp.sin, jnp.cos))
sinh = jit_inline(lambda z: times_minus_i(sin(times_i(z))))  # jnp.sinh of a tiny number is 0
cosh = jit_inline(lambda z: cos(times_i(z)))  # the derivative of jnp.cosh is jnp.sinh
tanh = jit_inline(with_slope(jnp.tanh, sech_squared))
tan = jit_inline(with_slope(jnp.tan, lambda z: sech_squared(times_i(z))))
