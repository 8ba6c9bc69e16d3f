"""NumPy's functions and methods of what is differentiated: each is called as the op of its name, on its arguments."""

from __future__ import annotations

import functools
import inspect
import string
import sys

import numpy as np

words = str.split
FUNCTIONS = set(  # which take and return what their ops do
    words("""sum prod mean var std max min amax amin cumsum cumprod nansum nanprod nancumsum nancumprod nanmean
    nanvar nanstd nanmax nanmin nanmedian nanquantile nanpercentile ptp where clip concatenate stack vstack hstack
    dstack column_stack split array_split hsplit vsplit dsplit reshape ravel transpose swapaxes moveaxis expand_dims
    squeeze broadcast_to broadcast_arrays meshgrid tile repeat roll rot90 flip fliplr flipud pad append diag
    diagflat diagonal trace tril triu dot vdot inner outer tensordot einsum kron cross matrix_power norm solve inv
    det slogdet cholesky eigh eigvals eigvalsh svd qr pinv sort take take_along_axis median quantile percentile
    average bincount correlate cov corrcoef diff gradient interp trapezoid unwrap convolve polyfit polyval vander
    linspace logspace geomspace real imag angle conj sinc nan_to_num round around full_like copy select fftshift
    ifftshift unstack unique poly roots svdvals""")
)
FACTS = set(  # which are constant but where they jump
    words("""shape ndim size iscomplexobj isrealobj iscomplex isreal isneginf isposinf result_type can_cast
    array_equal array_equiv allclose isclose array_repr array_str argmax argmin nanargmax nanargmin argsort
    argpartition lexsort searchsorted digitize nonzero flatnonzero argwhere count_nonzero isin matrix_rank all any
    zeros_like ones_like empty_like shares_memory may_share_memory""")
)
NAMES = {"amax": "max", "amin": "min", "around": "round"}
RENAMED = {"shape": "newshape"}
IGNORED = {"out", "order", "optimize", "casting", "subok", "like", "copy", "kind", "stable", "overwrite_input"}
OPTIONS = {"where", "initial", "dtype", "ddof", "axis", "keepdims", "hermitian"}
METHODS = set(
    words("""all any argmax argmin argsort clip conj conjugate copy cumprod cumsum diagonal dot max mean min nonzero
    prod ravel repeat round searchsorted squeeze std sum swapaxes take trace var""")
)


def op_of(name):
    """Return the public op of a name, with its defaults; `None` if there is none."""
    return getattr(sys.modules["multiop"], f"op_{NAMES.get(name, name)}", None)


signature = functools.lru_cache(1024)(inspect.signature)


@functools.lru_cache(1024)
def alike(function, op):
    """Return how many positional arguments of a function are those of its op, and the names of all of the op's."""
    names = signature(op).parameters
    try:
        pairs = list(zip(signature(function).parameters.values(), names, strict=False))
    except ValueError:  # it is written in C
        pairs = []
    differ = [p.kind is p.VAR_POSITIONAL or (p.name != name and p.name in OPTIONS | IGNORED) for p, name in pairs]
    n = differ.index(True) if True in differ else max(1, len(differ))
    return n, names.keys() - {"dtype", "copy"}


def called_by_op(function, args, kwargs):
    """Return what an op makes of the arguments of NumPy's function; `NotImplemented` if it cannot."""
    name = function.__name__
    if function in ADAPTED:
        return NotImplemented if kwargs.get("out") is not None else ADAPTED[function](*args, **kwargs)
    if name not in FUNCTIONS or not (function.__module__ or "").startswith("numpy"):
        return NotImplemented
    op = op_of(name)
    n_alike, names = alike(function, op)
    if len(args) <= n_alike and kwargs.keys() <= names:
        return op(*args, **kwargs)
    wanted = list(signature(op).parameters.values())
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
        parameters = signature(function).parameters
        given = signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # a function written in C has no signature
        return args, {name: value for name, value in kwargs.items() if name not in IGNORED}
    names, order = {p.name for p in wanted}, list(parameters)
    positional, options = [], {}
    for name, value in given.items():
        is_next = order[len(positional)] == name
        kind, default = parameters[name].kind, parameters[name].default
        name = name if name in names else RENAMED.get(name, name)
        if kind is inspect.Parameter.VAR_POSITIONAL:
            positional += value
        elif kind is inspect.Parameter.VAR_KEYWORD:
            options |= {key: option for key, option in value.items() if key not in IGNORED}
        elif is_next and len(positional) < len(wanted) and name not in OPTIONS | IGNORED:
            positional.append(value)
        elif name in names or (value is not default and (name not in IGNORED or name == "out")):
            options[name] = value
    return positional, options


def method_of(x, name):
    """Return a method of an array as the function of its name, or a property; `None` if there is no such."""
    if name in METHODS:
        return functools.partial(getattr(np, name), x)
    if name in ("real", "imag"):
        return op_of(name)(x)
    if name == "mT":
        return np.matrix_transpose(x)
    if name == "flatten":
        return functools.partial(np.ravel, x)
    if name == "astype":
        return lambda dtype, *_, **__: op_of("cast")(x, dtype)
    if name in ("reshape", "transpose"):
        return lambda *shape, **options: getattr(np, name)(
            x, *([shape[0] if len(shape) == 1 else shape] if shape else []), **options
        )
    return None


# functions that take something else than their ops


def _along_one(name):
    """Return a transform of NumPy's by that of the array API, whose options only have names."""
    transform = _of_array_api("fft", name)
    return lambda a, n=None, axis=-1, norm=None: transform(a, n=n, axis=axis, norm=norm or "backward")


def _along_several(name, default):
    transform = _of_array_api("fft", name)
    return lambda a, s=None, axes=default, norm=None: transform(a, s=s, axes=axes, norm=norm or "backward")


def _of_array_api(part, name):
    """Return a function of the array API, which stands above: it is looked up when it is called."""

    def call(*args, **options):
        return getattr(getattr(sys.modules["multiop"].array_api, part), name)(*args, **options)

    return call


def _einsum(*args, **options):
    """Spell labels that are lists of numbers as letters, in the order of those."""
    if type(args[0]) is not str:
        letters = string.ascii_uppercase + string.ascii_lowercase
        terms = ["".join("..." if k is ... else letters[k] for k in term) for term in [*args[1::2], args[-1]]]
        n = len(args) // 2
        args = ",".join(terms[:n]) + (f"->{terms[-1]}" if len(args) % 2 else ""), *args[: 2 * n : 2]
    return op_of("einsum")(*args, **{name: value for name, value in options.items() if name not in IGNORED})


def _eig(a):
    """Return what is real in real numbers, as NumPy does."""
    found = op_of("eig")(a)
    are_real = a.dtype.kind != "c" and not found[0].array.imag.any()
    return tuple(map(np.real, found)) if are_real else found


def _at_least(ndim):
    def reshaped(*xs):
        found = []
        for x in xs:
            shape = np.shape(x)
            after = (1,) * (ndim == 3 and len(shape) in (1, 2))
            found.append(np.reshape(x, (1,) * (ndim - len(shape) - len(after)) + shape + after))
        return found[0] if len(found) == 1 else tuple(found)

    return reshaped


def _block(arrays):
    def depth(x):
        return 1 + depth(x[0]) if isinstance(x, list) else 0

    def join(x, axis):
        return np.concatenate([join(entry, axis + 1) for entry in x], axis) if isinstance(x, list) else whole(x)

    whole = _at_least(depth(arrays))
    return join(arrays, -depth(arrays))


def _rollaxis(a, axis, start=0):
    start += a.ndim * (start < 0)
    return np.moveaxis(a, axis, start - (axis % a.ndim < start))


def _sliding_window_view(x, window_shape, axis=None, **_):
    sizes, ndim = np.atleast_1d(window_shape).tolist(), x.ndim
    axes = range(ndim) if axis is None else np.atleast_1d(axis).tolist()
    for size, k in zip(sizes, axes, strict=True):
        places = np.arange(x.shape[k % ndim] - size + 1)[:, None] + np.arange(size)
        x = np.moveaxis(np.take(x, places, k % ndim), k % ndim + 1, -1)
    return x


TRANSFORMS = {getattr(np.fft, f): _along_one(f) for f in words("fft ifft rfft irfft hfft ihfft")} | {
    getattr(np.fft, f + end): _along_several(f"{f}n", axes)
    for f in words("fft ifft rfft irfft")
    for end, axes in {"n": None, "2": (-2, -1)}.items()
}
ADAPTED = TRANSFORMS | {
    np.einsum: _einsum,
    np.linalg.eig: _eig,
    np.atleast_1d: _at_least(1),
    np.atleast_2d: _at_least(2),
    np.atleast_3d: _at_least(3),
    np.block: _block,
    np.partition: lambda a, kth, axis=-1, *_, **__: np.take_along_axis(a, np.argpartition(a, kth, axis), axis),
    np.rollaxis: _rollaxis,
    np.compress: lambda condition, a, axis=None, **_: np.take(a, np.flatnonzero(condition), axis),
    np.extract: lambda condition, a: np.take(a, np.flatnonzero(condition)),
    np.delete: lambda a, obj, axis=None: np.take(a, np.delete(np.arange(np.size(a, axis)), obj), axis),
    np.matrix_transpose: _of_array_api("linalg", "matrix_transpose"),
    **{getattr(np.linalg, f): _of_array_api("linalg", f) for f in words("matrix_transpose matrix_norm vector_norm")},
    np.linalg.multi_dot: lambda arrays, **_: functools.reduce(np.matmul, arrays),
    np.lib.stride_tricks.sliding_window_view: _sliding_window_view,
    np.real_if_close: lambda a, tol=100: np.real(a) if np.isrealobj(np.real_if_close(a.array, tol)) else a,
}
