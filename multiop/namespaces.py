"""The ops of the backend that given tensors are of, in a process with tensors of several frameworks."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from multiop import config, devices, dtypes, errors, ops, random
from multiop._call import boundaries
from multiop._call.recover import recover
from multiop._loading import registry
from multiop._loading.built_in import hide_from_tracer
from multiop._values import args as _args, dtypes as _dtypes
from multiop.autodiff import checkpoint, gradients, implicit, jit, transforms, vmap
from multiop.autodiff._transformed import Transformed

_FRAMEWORKS = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "tensorflow": "tensorflow", "numpy": "numpy"}
_MORE = [  # beside the ops
    random,
    *(transforms.grad, transforms.value_and_grad, transforms.vjp, transforms.jvp, transforms.linearize),
    *(transforms.jacobian, transforms.jacrev, transforms.jacfwd, transforms.hessian, transforms.hvp, vmap.vmap),
    *(jit.jit, checkpoint.checkpoint, implicit.linear_solve, implicit.root, gradients.gradients),
    *(config.backend, devices.device, devices.to_device, dtypes.dtype_name, dtypes.native_dtype),
    *(dtypes.finfo, dtypes.iinfo),
]
_made: dict[str, Namespace] = {}
_kind: Callable[[Any], Any] = type


class Namespace:
    """The ops and transforms of one backend; `namespace` returns it.

    It has the functions and dtypes of `multiop.ops`, and the transforms and `random` of `multiop`. It has no classes,
    since what is made of one, as a `GradientTape`, computes when it likes.
    """

    def __init__(self, backend: Any, source: Any, more: Iterable[Any] = ()) -> None:
        self._backend, self._source = backend, source
        found = [(name, getattr(source, name)) for name in source.__all__]
        for name, value in found + [(value.__name__.rpartition(".")[2], value) for value in more]:
            if isinstance(value, types.ModuleType):
                vars(self)[name] = Namespace(backend, value)
            elif callable(value) and not isinstance(value, type):
                vars(self)[name] = _bind(value, backend)

    def __repr__(self) -> str:
        return f"<{self._source.__name__} on {self._backend.name}>"

    def __getattr__(self, name: str) -> Any:
        if self._source is ops and name in _dtypes.ALL:
            return registry.run_on(self._backend, getattr, ops, name)
        raise AttributeError(f"the namespace has no function {name!r}")


def namespace(*xs: Any) -> Any:
    """Return the ops and transforms of the backend of tensors: each runs on it, in any thread.

    Args:
        xs: Tensors of one framework. NumPy arrays, numbers, and lists, tuples and dicts may be among them.

    Returns:
        An object with the functions and dtypes of `multiop.ops`, and the transforms and `random` of `multiop`, one for
        each backend. NumPy arrays are of the backend `"numpy"` where they are alone, and beside a framework's tensors
        they go to that framework. Where there are only numbers, it is that of the active backend.

    Raises:
        ArgumentTypeError: The tensors are of two frameworks, or an array that NumPy's backend differentiates is beside
            a framework's tensor.

    Example:
        >>> import numpy as np
        >>> import multiop
        >>> ops = multiop.namespace(np.ones(2))
        >>> ops.add(np.ones(2), 1.0).tolist()
        [2.0, 2.0]
    """
    if registry._is_tracing_python():  # all that is compiled is its own
        return _of(registry.ready().name)
    found = _of_classes(_kind(xs[0])) if len(xs) == 1 else _of_classes(*map(_kind, xs))  # `*` takes a tenth of a us
    return found or _of(_backend_of(xs))


def _of(name: str) -> Namespace:
    if name not in _made:
        _make(name)
    return _made[name]


@hide_from_tracer
def _make(name: str) -> None:
    _made[name] = Namespace(registry.load(name), ops, _MORE)


@functools.lru_cache(maxsize=256)
def _of_classes(*kinds: type) -> Namespace | None:
    """Return the namespace of operands of these classes, where these alone tell it: they are tensors or numbers."""
    names = {_framework(kind) for kind in kinds if kind not in (int, float)}
    if len(names) > 1:
        names.discard("numpy")
    (name,) = names if len(names) == 1 else {None}
    return _of(name) if name else None


def _bind(function: Callable[..., Any], backend: Any) -> Callable[..., Any]:
    """Return a function that runs on a backend, as do the functions of multiop's that it returns."""
    code, name = getattr(function, "__code__", None), function.__qualname__
    asks_again = name == "op_get_item" or (name in boundaries.COMPOSITES and not _has_own(name, backend))  # for masks
    if code is not None and "_backend" in code.co_names and not asks_again:
        return functools.wraps(function)(_redirected(function, backend))
    active, override, restore = registry.active, registry.override_by, registry.restore
    is_op = function.__module__.startswith("multiop.frontends.")
    returns_functions = not is_op or "Callable" in str(function.__annotations__["return"])

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:  # `registry.run_on`, which is a call more
        if active() is backend:
            found = function(*args, **kwargs)
        else:
            token = override(backend)
            try:
                found = function(*args, **kwargs)
            finally:
                restore(token)
        return _bind_found(found, backend) if returns_functions else found

    return call


def _redirected(function: Any, backend: Any) -> Any:
    """Return a function that does nothing but call the active backend as one that calls another: it costs no more."""
    is_composite = function.__qualname__ in boundaries.COMPOSITES
    name = f"{boundaries.__name__}.{backend.name}{'.own' * is_composite}"
    if name not in sys.modules:  # where a compiler that traces Python looks a function's globals up
        sys.modules[name] = types.ModuleType(name)
        chosen = types.SimpleNamespace(_backend=_own[backend] if is_composite else backend, is_overridden=False)
        recovered = functools.partial(registry.run_on, backend, recover)
        vars(sys.modules[name]).update(vars(boundaries), __name__=name, registry=chosen, recover=recovered)
    found = types.FunctionType(function.__code__, vars(sys.modules[name]), closure=function.__closure__)
    found.__defaults__, found.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return found


_own: dict[Any, types.SimpleNamespace] = {}  # the composites that a backend computes itself


def _has_own(name: str, backend: Any) -> bool:
    """Say whether a backend computes a composite itself, and put its function, which falls through on it, in `_own`."""
    kernel = getattr(backend, name)
    if not (getattr(kernel, "__module__", None) or "").startswith(f"{backend.__name__}."):
        return False
    if otherwise := (getattr(kernel, "__kwdefaults__", None) or {}).get("otherwise"):
        bound = types.FunctionType(kernel.__code__, kernel.__globals__, name, kernel.__defaults__, kernel.__closure__)
        bound.__kwdefaults__ = {"otherwise": functools.partial(registry.run_on, backend, otherwise)}
        kernel = bound
    setattr(_own.setdefault(backend, types.SimpleNamespace()), name, kernel)
    return True


def _bind_found(found: Any, backend: Any) -> Any:
    if type(found) is tuple:  # a value and its pullback
        return tuple([_bind_found(entry, backend) for entry in found])
    is_ours = isinstance(found, types.FunctionType) and found.__globals__.get("__name__", "").startswith("multiop.")
    return _bind(found, backend) if is_ours or isinstance(found, Transformed) else found


def _backend_of(xs: Iterable[Any]) -> str:
    """Return the name of the one backend that tensors are of."""
    found: dict[str, Any] = {}
    for x in _leaves(xs):
        found.setdefault(_owner(type(x)), x)
    found.pop("", None)
    if len(found) > 1:
        found.pop("numpy", None)
    if len(found) > 1:
        (first, x), (second, y), *_ = found.items()
        raise errors.ArgumentTypeError(
            f"namespace: tensors of two frameworks, {_args.describe(x)} of {first} and {_args.describe(y)} of "
            f"{second}; convert one of them, as with op_convert_to_numpy"
        )
    return next(iter(found), "").partition(",")[0] or registry.ready().name


def _leaves(xs: Iterable[Any]) -> Iterator[Any]:
    for x in xs:
        if isinstance(x, (list, tuple, dict)):
            yield from _leaves(x.values() if isinstance(x, dict) else x)
        else:
            yield x


def _owner(kind: type) -> str:
    """Return the backend of a class of tensors, an empty string of anything else."""
    if (name := _framework(kind)) is not None:
        return name
    for name, backend in registry.loaded_backends().items():
        if issubclass(kind, backend.Tensor):
            return f"{name}, differentiated" if name == "numpy" else name
    return ""


@functools.lru_cache(maxsize=256)
def _framework(kind: type) -> str | None:
    """Return the built-in backend whose framework made a class; Python's own are nobody's."""
    roots = [base.__module__.partition(".")[0] for base in kind.__mro__]
    is_plain = roots[0] == "builtins"
    return "" if is_plain else next((_FRAMEWORKS[root] for root in roots if root in _FRAMEWORKS), None)
