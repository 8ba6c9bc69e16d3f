"""NumPy's functions and methods of what is differentiated: each is called as the op of its name, on its arguments."""

from __future__ import annotations

import functools
import inspect
import sys

import numpy as np

FUNCTIONS = {  # which take and return what their ops do
    "sum", "prod", "mean", "var", "std", "max", "min", "amax", "amin", "argmax", "argmin", "all", "any", "cumsum",
    "cumprod", "where", "clip", "concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "split",
    "array_split", "reshape", "ravel", "transpose", "swapaxes", "moveaxis", "expand_dims", "squeeze",
    "broadcast_to", "tile", "repeat", "roll", "flip", "fliplr", "flipud", "pad", "diag", "diagonal", "trace",
    "tril", "triu", "dot", "vdot", "inner", "outer", "tensordot", "einsum", "kron", "cross", "norm", "solve", "inv",
    "det", "slogdet", "cholesky", "eigh", "eigvalsh", "svd", "pinv", "sort", "argsort", "take", "take_along_axis",
    "median", "quantile", "percentile", "average", "diff", "interp", "trapezoid", "convolve", "real", "imag",
    "conj", "nan_to_num", "round", "around", "zeros_like", "ones_like", "full_like", "copy", "select", "append",
    "nonzero",
}  # fmt: skip
FACTS = {"shape", "ndim", "size", "iscomplexobj", "isrealobj", "result_type", "array_equal", "array_repr", "array_str"}
NAMES = {"amax": "max", "amin": "min", "around": "round"}
RENAMED = {"shape": "newshape"}
IGNORED = {"out", "order", "optimize", "casting", "subok", "like", "copy", "kind", "stable", "overwrite_input"}
OPTIONS = {"where", "initial", "dtype", "ddof", "axis", "keepdims"}
METHODS = {
    "all", "any", "argmax", "argmin", "argsort", "clip", "conj", "copy", "cumprod", "cumsum", "diagonal", "dot", "max",
    "mean", "min", "nonzero", "prod", "ravel", "repeat", "round", "squeeze", "std", "sum", "swapaxes", "take", "trace",
    "var",
}  # fmt: skip


def op_of(name):
    """Return the public op of a name, with its defaults; `None` if there is none."""
    return getattr(sys.modules["multiop"], f"op_{NAMES.get(name, name)}", None)


def called_by_op(function, args, kwargs):
    """Return what an op makes of the arguments of NumPy's function; `NotImplemented` if it cannot."""
    module, name = function.__module__ or "", function.__name__
    if module.endswith("fft") and name in FOURIER:
        return FOURIER[name](*args, **kwargs)
    if name in ("atleast_1d", "atleast_2d") and len(args) == 1 and not kwargs:
        x, ndim = args[0], int(name[8])
        return x if len(x.shape) >= ndim else op_of("reshape")(x, (1,) * (ndim - len(x.shape)) + tuple(x.shape))
    if name not in FUNCTIONS or not module.startswith("numpy"):
        return NotImplemented
    op = op_of(name)
    wanted = list(inspect.signature(op).parameters.values())
    positional, options = _bind_arguments(function, args, kwargs, wanted)
    ddof = options.pop("ddof", 0) if name in ("var", "std") else 0
    if any(option not in {p.name for p in wanted} for option in options):
        return NotImplemented
    y = op(*positional, **options)
    if not ddof:
        return y
    x = positional[0]
    n = op_of("size")(x) // max(1, op_of("size")(y))
    return y * (n / (n - ddof)) ** (0.5 if name == "std" else 1)


def _bind_arguments(function, args, kwargs, wanted):
    """Return the arguments of NumPy's function by position as far as those of the op go, and the others by name."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):  # a function written in C has no signature
        return args, {name: value for name, value in kwargs.items() if name not in IGNORED}
    names = {p.name for p in wanted}
    positional, options = [], {}
    parameters = list(given.signature.parameters)
    for name, value in given.arguments.items():
        is_next = parameters[len(positional)] == name
        kind = given.signature.parameters[name].kind
        name = name if name in names else RENAMED.get(name, name)
        if kind is inspect.Parameter.VAR_POSITIONAL:
            positional += value
        elif kind is inspect.Parameter.VAR_KEYWORD:
            options |= {key: option for key, option in value.items() if key not in IGNORED}
        elif is_next and len(positional) < len(wanted) and name not in OPTIONS | IGNORED:
            positional.append(value)
        elif name in names or (value is not given.signature.parameters[name].default and name not in IGNORED):
            options[name] = value
    if any(value is not None for name, value in given.arguments.items() if name == "out"):
        options["out"] = given.arguments["out"]
    return positional, options


def method_of(x, name):
    """Return a method of an array as the function of its name, or a property; `None` if there is no such."""
    if name in METHODS:
        return functools.partial(getattr(np, name), x)
    if name in ("real", "imag"):
        return op_of(name)(x)
    if name == "flatten":
        return functools.partial(np.ravel, x)
    if name == "astype":
        return lambda dtype, *_, **__: op_of("cast")(x, dtype)
    if name in ("reshape", "transpose"):
        return lambda *shape, **options: getattr(np, name)(
            x, *([shape[0] if len(shape) == 1 else shape] if shape else []), **options
        )
    return None


def _complex(pair):
    return op_of("view_as_complex")(op_of("stack")(list(pair), -1))


def _pair(x):
    op = op_of("real"), op_of("imag")
    return op[0](x), op[1](x)


def _resize_last_axis(x, n, axis):
    """Return `x` with `n` entries along its last axis, the only one that these transforms take."""
    if axis not in (-1, len(x.shape) - 1):
        return op_of("swapaxes")(x, axis, -1)
    size = x.shape[-1]
    if n is None or n == size:
        return x
    return x[..., :n] if n < size else op_of("pad")(x, [(0, 0)] * (len(x.shape) - 1) + [(0, n - size)])


def _transform_axis(name, n, x, axis, norm):
    if norm is not None:
        return NotImplemented
    is_last = axis in (-1, len(x.shape) - 1)
    x = _resize_last_axis(x, n, axis)
    y = name(x)
    return y if is_last else op_of("swapaxes")(y, axis, -1)


FOURIER = {
    "rfft": lambda a, n=None, axis=-1, norm=None: _transform_axis(
        lambda x: _complex(op_of("rfft")(x, n)), None, a, axis, norm
    ),
    "irfft": lambda a, n=None, axis=-1, norm=None: _transform_axis(
        lambda x: op_of("irfft")(_pair(x), n), None, a, axis, norm
    ),
    "fft": lambda a, n=None, axis=-1, norm=None: _transform_axis(
        lambda x: _complex(op_of("fft")(_pair(x))), n, a, axis, norm
    ),
    "ifft": lambda a, n=None, axis=-1, norm=None: _transform_axis(
        lambda x: _complex(op_of("ifft")(_pair(x))), n, a, axis, norm
    ),
}
