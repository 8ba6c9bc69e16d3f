"""Which backend is active, the default float type, and the 64-bit switch.

Each setting is read from its environment variable, else from the configuration file, else it has a default:

| setting | variable | key in the file | default |
|---|---|---|---|
| backend | `MULTIOP_BACKEND` | `backend` | the imported one of torch, jax, tensorflow; the first installed; or numpy |
| default float dtype | `MULTIOP_FLOATX` | `floatx` | `float32` |
| 64-bit mode | `MULTIOP_X64` | `x64` | off |
| 64-bit dtypes that are asked for become narrow ones on JAX | `MULTIOP_NARROWING` | `narrowing` | off: an error |
| kernels | `MULTIOP_KERNELS` | `kernels` | on: the faster forms of ops, which fall through to their meaning |
| TensorFlow's NumPy behaviour | `MULTIOP_TENSORFLOW_NUMPY` | `tensorflow_numpy` | off |
| every frame of an error's traceback | `MULTIOP_FULL_TRACEBACKS` | `full_tracebacks` | off |

The file is `config.toml` in the user's configuration folder for multiop, or the path in `MULTIOP_CONFIG`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from multiop import errors
from multiop._loading import imports, registry, settings, tensorflow_operators
from multiop._loading.built_in import hide_from_tracer
from multiop._loading.settings import config_path as config_path, uses_kernels as uses_kernels


def backend() -> str:
    """Return the name of the active backend, without loading it.

    Returns:
        `"numpy"`, `"torch"`, `"jax"`, `"tensorflow"`, or the name of a registered third-party backend.

    Example:
        >>> import multiop
        >>> with multiop.use_backend("torch"):
        ...     multiop.backend()
        'torch'
    """
    module = registry.active()
    if isinstance(module, registry._Unloaded):
        return registry.default()
    return str(getattr(module, "stands_for", module.name))  # a run that finds a pattern is one of the backend


def set_backend(name: str) -> None:
    """Make `name` the default backend of the process.

    Tensors that exist already stay tensors of the backend that made them.

    Args:
        name: `"numpy"`, `"torch"`, `"jax"`, `"tensorflow"` or a registered third-party backend.

    Raises:
        BackendError: The name is unknown, or its framework is not installed.

    Example:
        >>> import multiop
        >>> before = multiop.backend()
        >>> multiop.set_backend("torch")
        >>> multiop.backend()
        'torch'
        >>> multiop.set_backend(before)
    """
    registry.set_default(name)


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Make `name` the active backend inside a `with` block, only for this thread or async task.

    Args:
        name: `"numpy"`, `"torch"`, `"jax"`, `"tensorflow"` or a registered third-party backend.

    Raises:
        BackendError: The name is unknown, or its framework is not installed.

    Example:
        >>> import multiop
        >>> with multiop.use_backend("torch"):
        ...     float(multiop.op_exp(0.0))
        1.0
    """
    module = registry.load(name)
    if registry.is_compiling() and registry.ready() is module:
        yield  # the backend inside torch.compile is PyTorch anyway, and it cannot trace a ContextVar
        return
    token = registry.override_by(module)
    try:
        yield
    finally:
        registry.restore(token)


@hide_from_tracer
def available_backends() -> list[str]:
    """Return the names of the backends that can be used here, built-in ones first.

    Example:
        >>> import multiop
        >>> "torch" in multiop.available_backends()
        True
    """
    return [name for name in registry.list_known() if registry.is_installed(name)]


def floatx() -> str:
    """Return the dtype that Python floats get if nothing else determines it: `"float32"` unless set.

    Example:
        >>> import multiop
        >>> multiop.floatx()
        'float32'
    """
    if settings.floatx is None:
        _settle_floatx()
    assert settings.floatx is not None
    return settings.floatx


@hide_from_tracer
def _settle_floatx() -> None:
    settings.settle_floatx()
    registry.retrace()


def set_floatx(dtype: str) -> None:
    """Set the dtype that Python floats get if nothing else determines it.

    Args:
        dtype: One of `"float16"`, `"bfloat16"`, `"float32"`, `"float64"`. `"float64"` needs the 64-bit mode on JAX.

    Raises:
        ArgumentError: `dtype` is not one of the four.

    Example:
        >>> import multiop
        >>> multiop.set_floatx("float32")
    """
    settings.set_floatx(dtype)


def x64() -> bool:
    """Say whether the 64-bit mode is on; on JAX, that is JAX's own switch, whoever turned it.

    Example:
        >>> import multiop
        >>> isinstance(multiop.x64(), bool)
        True
    """
    if settings.x64 is None:
        _settle_x64()
    asked_for = bool(settings.x64)
    module = registry.active()
    if isinstance(module, registry._Unloaded):
        # asked of JAX last: PyTorch's compiler cannot trace it
        switches = getattr(sys.modules.get("jax"), "config", None)  # None while JAX is being imported
        return asked_for if registry.default() != "jax" else bool(getattr(switches, "jax_enable_x64", asked_for))
    own: Any = getattr(module, "x64", None)
    return asked_for if own is None else bool(own())


def how_to_enable_x64() -> str:
    """Return the words of an error about how to turn the 64-bit mode on."""
    if settings.x64 and not x64():
        return (
            "it was turned on with multiop, and off again by jax.config.update('jax_enable_x64', False) or "
            "jax.enable_x64(False): turn it on there"
        )
    return "turn the 64-bit mode on with multiop.enable_x64() or MULTIOP_X64=1"


@hide_from_tracer
def _settle_x64() -> None:
    settings.settle_x64()
    registry.retrace()


def enable_x64(enable: bool = True) -> None:
    """Turn the 64-bit mode on or off, for every backend.

    With the mode off, 64-bit NumPy input becomes 32-bit on every backend: floats with a `PrecisionWarning`, integers
    after a check that they fit. With it on, 64-bit NumPy input keeps its dtype. A 64-bit dtype that is requested by
    name works on TensorFlow and PyTorch in either mode, and raises an error on JAX while the mode is off. What has no
    dtype of its own follows `floatx` in either mode: `op_linspace(0, 1, 3)` is `float32` until `set_floatx("float64")`.

    JAX's own switch, `jax_enable_x64`, is turned too: at once, or when JAX is imported. `MULTIOP_X64=1` turns it when
    multiop or JAX is imported, whichever comes last.

    Args:
        enable: `True` to turn it on, `False` to turn it off.

    Raises:
        ArgumentError: JAX is tracing a function, of which a part would have 64 bits.
        ArgumentTypeError: `enable` is not a bool.

    Example:
        >>> import multiop
        >>> multiop.enable_x64(multiop.x64())  # leave it as it is
    """
    if not isinstance(enable, bool):
        raise errors.ArgumentTypeError(f"enable_x64: enable must be a bool, got {enable!r}")
    _set_x64(enable)


def _set_x64(enable: bool) -> None:
    settings.set_x64(enable)
    for module in registry.loaded_backends().values():
        if module.name != "jax":
            module.set_x64(enable)


def narrowing() -> bool:
    """Say whether a 64-bit dtype that is asked for, and that the backend lacks, becomes the narrow one.

    Example:
        >>> import multiop
        >>> isinstance(multiop.narrowing(), bool)
        True
    """
    settings.settle_narrowing()
    return bool(settings.narrowing)


def enable_narrowing(enable: bool = True) -> None:
    """Have a 64-bit dtype that is asked for become the 32-bit one where the backend lacks it, as JAX's functions do.

    That is on JAX, while the 64-bit mode is off: `dtype="float64"` then is `dtype="float32"`, with a
    `PrecisionWarning`. `int64`, `uint64`, `complex128`, and `set_floatx("float64")` follow the same rule. An int that
    does not fit in the narrow dtype is an error. Without it, asking is an error. The other backends have 64-bit dtypes
    in either mode, and keep them. It is for all threads, and is read when a function is traced.

    Args:
        enable: `True` to narrow, `False` to raise an error.

    Raises:
        ArgumentTypeError: `enable` is not a bool.

    Example:
        >>> import multiop
        >>> multiop.enable_narrowing(multiop.narrowing())  # leave it as it is
    """
    if not isinstance(enable, bool):
        raise errors.ArgumentTypeError(f"enable_narrowing: enable must be a bool, got {enable!r}")
    settings.set_narrowing(enable)


def enable_tensorflow_numpy() -> None:
    """Give TensorFlow's tensors NumPy's methods and indexing, and ops as operators, for the rest of the process.

    `x.T`, `x.reshape`, `x.astype`, and masks and lists as indices then work on TensorFlow's tensors as on those of
    PyTorch and JAX, in your code as in other libraries'. This is
    `tf.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode="off")`, which cannot be undone.
    Python's operators on tensors and variables are ops, so that operands of two dtypes are promoted as ops promote
    them, and the quotient of integers is `floatx`. Sums, products and comparisons of one floating dtype stay
    TensorFlow's own. `x.__array_namespace__()` is `multiop.array_api`, with which SciPy and scikit-learn compute where
    they follow the standard: docs/scipy.md has what they do then.
    It acts at once, or when TensorFlow is imported. On other backends it changes nothing.

    Example:
        >>> import multiop
        >>> multiop.enable_tensorflow_numpy()  # doctest: +SKIP
    """
    imports.when_imported("tensorflow", _give_numpy)


def _give_numpy(tensorflow: Any) -> None:
    tensorflow.experimental.numpy.experimental_enable_numpy_behavior(dtype_conversion_mode="off")
    tensorflow_operators.promote(tensorflow)
    tensorflow.Tensor.__array_namespace__ = _namespace_of_array_api


def _namespace_of_array_api(self: Any, /, *, api_version: str | None = None) -> Any:
    """Return the namespace of the array API standard, by which libraries compute with the tensor."""
    return sys.modules["multiop"].array_api  # which stands above, and is imported on demand


def _reach_frameworks() -> None:
    """Let the settings that a framework has too reach it; a setting that is wrong is an error where it is used."""
    with contextlib.suppress(errors.ArgumentError):
        if settings.flag("x64"):
            settings.set_x64(True)
    with contextlib.suppress(errors.ArgumentError):
        if settings.flag("tensorflow_numpy"):
            enable_tensorflow_numpy()


_reach_frameworks()
