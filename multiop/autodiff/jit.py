"""Compiling a function, once for each signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ParamSpec, TypeVar

from multiop import config, errors
from multiop._loading import registry, settings
from multiop._loading.built_in import is_traced
from multiop._loading.registry import is_compiling, ready, traced
from multiop._rules.lru import Recent
from multiop._values import args as _args, tree
from multiop.autodiff import _flat
from multiop.autodiff._transformed import decorate_transformed, explain_keywords

P = ParamSpec("P")
T = TypeVar("T")


@explain_keywords
def jit(
    fun: Callable[P, T],
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
) -> Callable[P, T]:
    """Return a compiled version of a function: same values and gradients, less time per call.

    The function is traced once for each combination of argument structure, shapes, dtypes and non-tensor values, so its
    Python side effects happen only then. A Python number among the arguments is such a value: give a number that
    changes at every call as a tensor. The 256 programs used last are kept, so that memory stays bounded while shapes
    change; one that was dropped is compiled again (JAX keeps its own programs, by its own rules). On PyTorch, traces
    that differ in sizes alone share one compiled program from the third on. NumPy has no compiler: there, the
    function runs as it is.

    Args:
        fun: Function of pytrees that returns a pytree of tensors.
        static_argnums: Positions of arguments to take by value even though they hold arrays; they must be hashable.
        static_argnames: Names of such arguments.
        donate_argnums: Positions of arguments whose tensors are not used again, as the state of a training step: the
            program may put its outputs in their place. On JAX it does, and a later use of one is an error; elsewhere
            they stay as they are.
        donate_argnames: Names of such arguments.

    Returns:
        Function of the same arguments.

    Raises:
        ArgumentError: An option names no parameter of `fun`, or one that is both static and donated.
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
    numbers, names = _chosen(fun, static_argnums, static_argnames, "static")
    donated = _chosen(fun, donate_argnums, donate_argnames, "donate")
    if both := sorted(map(str, numbers & donated[0])) or sorted(names & donated[1]):
        raise errors.ArgumentError(f"jit: argument {both[0]} is both static and donated; name it in one option alone")
    has_statics = bool(numbers or names)
    traces = Recent()

    @decorate_transformed(fun, jit, static_argnums, static_argnames, donate_argnums, donate_argnames)
    def compiled(*args: P.args, **kwargs: P.kwargs) -> T:
        backend = ready()
        classes = _flat.seen[backend.name].classes
        if registry._compiler is not None and is_compiling():
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
        # the backend handles shapes and dtypes; the 64-bit mode is asked of it, whose own switch may have been turned
        key = backend.name, settings.floatx or config.floatx(), config.x64(), by_value
        try:
            trace = traces.get(key)
        except TypeError as error:
            raise errors.ArgumentTypeError(
                f"jit: an argument that is not a tensor is taken by value, and must be hashable: {error}"
            ) from None
        if trace is not None:
            return trace(*tensors)
        flat, donating = _flat_call(call or _of_leaves(fun, by_value), backend), getattr(backend, "jit_donating", None)
        if donating is not None and any(donated):
            trace = donating(flat, _places(args, kwargs, numbers | names, set().union(*donated), backend))
        else:
            trace = backend.jit(flat)
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


def _places(
    args: tuple[Any, ...], kwargs: dict[str, Any], statics: set[Any], donated: set[Any], backend: Any
) -> tuple[int, ...]:
    """Return the places of the tensors of donated arguments among those that `_partial_call` returns."""
    n = len(args)
    statics, donated = ({i % n if isinstance(i, int) and -n <= i < n else i for i in of} for of in (statics, donated))
    is_array = _flat.is_array(backend)

    def mark(which: Any, argument: Any) -> Any:
        return tree.map(lambda leaf: which in donated if is_array(leaf) else None, argument)

    free = [mark(i, x) for i, x in enumerate(args) if i not in statics]
    free_names = {name: mark(name, x) for name, x in kwargs.items() if name not in statics}
    marks = [given for given in tree.leaves((free, free_names)) if given is not None]
    return tuple(k for k, is_donated in enumerate(marks) if is_donated)


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


def _chosen(
    fun: Callable[..., Any], argnums: int | Sequence[int] | None, argnames: str | Sequence[str] | None, which: str
) -> tuple[set[int], set[str]]:
    """Return the positions and the names of chosen arguments, each completed from the other by the signature."""
    given = () if argnums is None else _flat.argnums(argnums, f"jit: {which}_argnums")
    numbers = {given} if isinstance(given, int) else set(given)
    if argnames is None:
        argnames = ()
    chosen = {argnames} if isinstance(argnames, str) else argnames
    if not isinstance(chosen, (tuple, list, set, frozenset)) or not all(isinstance(name, str) for name in chosen):
        raise errors.ArgumentTypeError(f"jit: {which}_argnames must be a string or several, got {chosen!r}")
    names = set(chosen)
    if not (numbers or names) or is_traced():  # a compiler of the caller cannot trace a signature, and compiles all
        return numbers, names
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        return numbers, names
    if any(p.kind is p.VAR_KEYWORD for p in parameters) is False and (unknown := names - {p.name for p in parameters}):
        raise errors.ArgumentError(
            f"jit: {which}_argnames names {min(unknown)!r}, "
            f"which is not a parameter of {getattr(fun, '__qualname__', fun)}"
        )
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        for i in numbers:
            if not -len(positional) <= i < len(positional):
                raise errors.ArgumentError(
                    f"jit: {which}_argnums {i} is out of range "
                    f"for a function of {len(positional)} positional parameters"
                )
        numbers = {i % len(positional) for i in numbers}
    names |= {positional[i] for i in numbers if 0 <= i < len(positional)}
    return numbers | {i for i, name in enumerate(positional) if name in names}, names
