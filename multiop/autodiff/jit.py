"""Compiling a function, once for each signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ParamSpec, TypeVar

from multiop import config, errors
from multiop._loading.registry import is_compiling, ready, traced
from multiop._rules.lru import Recent
from multiop._values import args as _args, tree
from multiop.autodiff import _flat
from multiop.autodiff._transformed import decorate_transformed

P = ParamSpec("P")
T = TypeVar("T")


def jit(
    fun: Callable[P, T],
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[P, T]:
    """Return a compiled version of a function: same values and gradients, less time per call.

    The function is traced once for each combination of argument structure, shapes, dtypes and non-tensor values, so its
    Python side effects happen only then. A Python number among the arguments is such a value: give a number that
    changes at every call as a tensor. The 256 programs used last are kept, so that memory stays bounded while shapes
    change; one that was dropped is compiled again (JAX keeps its own programs, by its own rules). NumPy has
    no compiler: there, the function runs as it is.

    Args:
        fun: Function of pytrees that returns a pytree of tensors.
        static_argnums: Positions of arguments to take by value even though they hold arrays; they must be hashable.
        static_argnames: Names of such arguments.

    Returns:
        Function of the same arguments.

    Raises:
        ArgumentError: `static_argnums` or `static_argnames` names no parameter of `fun`.
        ArgumentTypeError: `fun` is not callable, or a static value is not hashable.

    Example:
        >>> import multiop
        >>> @multiop.jit
        ... def f(x):
        ...     return x * x
        >>> float(multiop.grad(f)(3.0)), float(f(multiop.op_convert_to_tensor(3.0)))
        (6.0, 9.0)
    """
    _args.function(fun, "jit: fun")
    numbers, names = _statics(fun, static_argnums, static_argnames)
    has_statics = bool(numbers or names)
    traces = Recent()

    @decorate_transformed(fun, jit, static_argnums, static_argnames)
    def compiled(*args: P.args, **kwargs: P.kwargs) -> T:
        backend = ready()
        classes = _flat.tensor_classes[backend.name]
        if is_compiling():
            return fun(*args, **kwargs)  # it is compiled as a part of its caller
        call: Any = None
        by_value: Hashable
        tensors: Sequence[Any] = args
        if is_plain := not (kwargs or has_statics):
            if classes.issuperset(map(type, args)):
                call, by_value = fun, len(args)
            else:
                tensors, by_value = tree.flatten(args)
                is_plain = classes.issuperset(map(type, tensors))
        if not is_plain:
            try:
                call, by_value, tensors = _partial_call(fun, args, kwargs, numbers, names, backend)
            except errors.MultiopError:
                raise _argument_error(fun, args, kwargs, backend) from None
        key = backend.name, config.floatx(), config.x64(), by_value  # the backend handles shapes and dtypes
        try:
            trace = traces.get(key)
        except TypeError as error:
            raise errors.ArgumentTypeError(
                f"jit: an argument that is not a tensor is taken by value, and must be hashable: {error}"
            ) from None
        if trace is not None:
            return trace(*tensors)
        trace = backend.jit(_flat_call(call or _of_leaves(fun, by_value), backend))
        result = trace(*tensors)
        traces.put(key, trace)  # only after it ran: a failed trace must not be kept
        return result

    return compiled


def _of_leaves(fun: Callable[..., Any], structure: Any) -> Callable[..., Any]:
    """Return `fun` as a function of the leaves of its arguments, which have this structure together."""
    return lambda *leaves: traced(fun)(*tree.unflatten(structure, leaves))


def _flat_call(call: Callable[..., Any], backend: Any) -> Callable[..., tuple[list[Any], Callable[[Any], Any]]]:
    """Return `call` as a function that returns tensors, and what makes of these the pytree that `call` returned."""

    def flat(*tensors: Any) -> tuple[list[Any], Callable[[Any], Any]]:
        template, outputs = _flat.take_outputs(traced(call)(*tensors), backend)
        return outputs, template.fill

    return flat


def _partial_call(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    numbers: set[int],
    names: set[str],
    backend: Any,
) -> tuple[Callable[..., Any], Hashable, Sequence[Any]]:
    """Return `fun` as a function of the arrays in its arguments, a key for the other arguments, and the tensors."""
    if not (kwargs or numbers or names):
        template, tensors = _flat.take_tensors(args, backend)
        if template.structure.num_nodes == len(tensors) + 1:  # nothing but arrays, each an argument
            return fun, len(args), tensors
        return lambda *given: traced(fun)(*template.fill(given)), template.key(), tensors
    n = len(args)
    fixed = {i % n: args[i] for i in numbers if -n <= i < n}
    fixed_names = {name: kwargs[name] for name in sorted(names & kwargs.keys())}
    free = [argument for i, argument in enumerate(args) if i not in fixed]
    free_names = {name: value for name, value in kwargs.items() if name not in fixed_names}
    template, tensors = _flat.take_tensors((free, free_names), backend)
    by_value, _ = _flat.take((list(fixed.items()), fixed_names), lambda leaf: False)

    def call(*given: Any) -> Any:
        left, keyword = template.fill(given)
        remaining = iter(left)
        positional = [fixed[i] if i in fixed else next(remaining) for i in range(n)]
        return traced(fun)(*positional, **keyword, **fixed_names)

    return call, (template.key(), by_value.key()), tensors


def _argument_error(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], backend: Any
) -> errors.MultiopError:
    """Return the error about the first argument that cannot become a tensor."""
    for i, leaf in enumerate(tree.leaves((args, kwargs))):
        try:
            if _flat.is_array(backend)(leaf):
                backend.convert(leaf)
            else:
                tree.refuse_unregistered([leaf])
        except errors.MultiopError as error:
            return type(error)(f"jit: {_flat.leaf_name(fun, args, kwargs, i)}: {error.args[0]}")
    raise AssertionError("called for arguments that all make tensors")


def _statics(
    fun: Callable[..., Any], static_argnums: int | Sequence[int] | None, static_argnames: str | Sequence[str] | None
) -> tuple[set[int], set[str]]:
    """Return the positions and the names of static arguments, each completed from the other by the signature."""
    given = () if static_argnums is None else _flat.argnums(static_argnums, "jit: static_argnums")
    numbers = {given} if isinstance(given, int) else set(given)
    if static_argnames is None:
        static_argnames = ()
    names = {static_argnames} if isinstance(static_argnames, str) else static_argnames
    if not isinstance(names, (tuple, list, set, frozenset)) or not all(isinstance(name, str) for name in names):
        raise errors.ArgumentTypeError(f"jit: static_argnames must be a string or several, got {names!r}")
    names = set(names)
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        return numbers, names
    if any(p.kind is p.VAR_KEYWORD for p in parameters) is False and (unknown := names - {p.name for p in parameters}):
        raise errors.ArgumentError(
            f"jit: static_argnames names {min(unknown)!r}, "
            f"which is not a parameter of {getattr(fun, '__qualname__', fun)}"
        )
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        for i in numbers:
            if not -len(positional) <= i < len(positional):
                raise errors.ArgumentError(
                    f"jit: static_argnums {i} is out of range for a function of {len(positional)} positional parameters"
                )
        numbers = {i % len(positional) for i in numbers}
    names |= {positional[i] for i in numbers if 0 <= i < len(positional)}
    return numbers | {i for i, name in enumerate(positional) if name in names}, names
