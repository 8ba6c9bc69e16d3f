"""Conversion: the one place where host values become tensors."""

import numpy as np

from multiop import _dtypes, _host


class Tensor(np.ndarray):
    """A NumPy array that has been through `convert`: it keeps its dtype whatever the 64-bit mode is."""


def is_tensor(x):
    return isinstance(x, Tensor)


def set_x64(enable):
    """NumPy has 64-bit dtypes in either mode."""


def native(dtype):
    return _dtypes.to_numpy(_dtypes.name(dtype))


def dtype_name(x):
    return _dtypes.name(x.dtype)


def tensor(array):
    """Return what a NumPy function returned, an array or a scalar, as a tensor."""
    return np.asarray(array).view(Tensor)


def convert(x, dtype=None):
    if is_tensor(x):
        return x if dtype is None else x.astype(_dtypes.to_numpy(dtype))
    return tensor(_host.as_numpy(x, dtype, "toy"))


def floating(x):
    x = convert(x)
    return convert(x, _dtypes.to_floating(dtype_name(x)))


def promote(x1, x2):
    xs = [x if _host.is_scalar(x) else convert(x) for x in (x1, x2)]
    dtype = _dtypes.result_type(*[_dtypes.of_scalar(x) if _host.is_scalar(x) else dtype_name(x) for x in xs])
    return [convert(x, dtype) for x in xs]


def promote_floating(x1, x2):
    x1, x2 = promote(x1, x2)
    return [floating(x1), floating(x2)]


def device(x):
    return "cpu"


def to_device(x, device):
    return convert(x)


def on_device_of(x, made):
    return made


def together(*xs):
    return xs


def op_convert_to_tensor(x, dtype, sparse, ragged):
    return convert(x, None if dtype is None else _dtypes.name(dtype))


def op_convert_to_numpy(x):
    return np.array(convert(x))


def op_cast(x, dtype):
    return convert(x, _dtypes.name(dtype))


def op_dtype(x):
    return dtype_name(convert(x))


def op_shape(x):
    return convert(x).shape


def op_is_tensor(x):
    return is_tensor(x)
