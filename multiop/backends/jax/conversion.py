"""Conversion: the one place where host values become JAX arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from multiop import _dtypes, _host, errors

Tensor = jax.Array


def is_tensor(x):
    return isinstance(x, Tensor)


def set_x64(enable):
    if jax.config.jax_enable_x64 != enable:
        jax.config.update("jax_enable_x64", enable)


def native(dtype):
    """Return the NumPy dtype of any spelling of `dtype`, refusing 64 bits that JAX would truncate."""
    name = _dtypes.name(dtype)
    if name in _dtypes.WIDE and not jax.config.jax_enable_x64:
        raise errors.DTypeError(
            f"dtype {name} needs JAX's 64-bit mode, which is off; turn it on with multiop.enable_x64() or MULTIOP_X64=1"
        )
    return _dtypes.to_numpy(name)


def dtype_name(x):
    try:
        return _dtypes.name(x.dtype)
    except errors.DTypeError:
        raise errors.DTypeError(f"a tensor of dtype {x.dtype} is not supported; cast it first") from None


def convert(x, dtype=None):
    """Return `x`, a tensor or a host value, as a tensor; `dtype` is a name."""
    if isinstance(x, Tensor):
        return x if dtype is None or x.dtype.name == dtype else x.astype(native(dtype))
    if isinstance(x, (list, tuple)) and any(isinstance(leaf, Tensor) for leaf in x):
        return jnp.stack([convert(leaf, dtype) for leaf in promote_all(*x)])
    array = _host.as_numpy(x, dtype, "jax", wide=jax.config.jax_enable_x64)
    return jnp.asarray(array, native(array.dtype))


def floating(x):
    """Return `x` as a tensor of real or complex floats: integers and bool become `floatx`."""
    x = convert(x)
    return x if jnp.issubdtype(x.dtype, np.inexact) else x.astype(native(_dtypes.to_floating(dtype_name(x))))


def promote(x1, x2):
    """Return two operands as tensors of the one dtype of the promotion table; Python scalars are weak."""
    if isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype == x2.dtype:
        return x1, x2
    return promote_all(x1, x2)


def promote_all(*xs):
    """Return any number of operands as tensors of the one dtype of the promotion table."""
    xs = [x if _host.is_scalar(x) else convert(x) for x in xs]
    dtype = _dtypes.result_type(*[dtype_name(x) if isinstance(x, Tensor) else _dtypes.of_scalar(x) for x in xs])
    return [convert(x, dtype) for x in xs]


def promote_floating(x1, x2):
    """Return two operands as tensors of one dtype of real or complex floats."""
    x1, x2 = promote(x1, x2)
    return floating(x1), floating(x2)


def op_convert_to_tensor(x, dtype, sparse, ragged):
    return convert(x, None if dtype is None else _dtypes.name(dtype))


def op_convert_to_numpy(x):
    return np.asarray(convert(x))


def op_cast(x, dtype):
    return convert(x, _dtypes.name(dtype))


def op_dtype(x):
    return dtype_name(convert(x))


def op_shape(x):
    return tuple(convert(x).shape)


def op_is_tensor(x):
    return isinstance(x, Tensor)
