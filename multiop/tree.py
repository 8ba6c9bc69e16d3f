"""Pytrees: nested containers of tensors, as every transform takes and returns them.

Tuples, lists, dicts, named tuples, `OrderedDict`, `defaultdict` and `deque` are pytrees, and so are the instances of a
class that is registered: here with `register`, with `jax.tree_util`, with PyTorch's pytree, or with optree. It does
not matter which backend is active. Everything else is a leaf, `None` too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from multiop import errors
from multiop._loading import suggestions
from multiop._values import args, tree as _tree

C = TypeVar("C", bound=type)
__all__ = ["flatten", "leaves", "map", "register", "unflatten"]
suggestions.PUBLIC[__name__] = __all__


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """Take the leaves out of a pytree.

    Args:
        tree: Pytree.

    Returns:
        `(leaves, treedef)`: the leaves from left to right, those of a dict in the order of its sorted keys; and the
        structure, which `unflatten` takes, and which can be compared and hashed.

    Example:
        >>> import multiop
        >>> leaves, treedef = multiop.tree.flatten({"w": 3.0, "b": (1.0, None)})
        >>> leaves
        [1.0, None, 3.0]
    """
    return _tree.flatten(tree)


def unflatten(treedef: Any, leaves: Iterable[Any]) -> Any:
    """Put leaves into a structure.

    Args:
        treedef: What `flatten` returned as the structure.
        leaves: As many leaves as it has. They need not be tensors.

    Returns:
        Pytree of that structure.

    Raises:
        ArgumentError: There are more or fewer leaves.

    Example:
        >>> import multiop
        >>> leaves, treedef = multiop.tree.flatten({"w": 3.0, "b": 1.0})
        >>> multiop.tree.unflatten(treedef, [-leaf for leaf in leaves])
        {'w': -3.0, 'b': -1.0}
    """
    leaves = list(leaves)
    if len(leaves) != treedef.num_leaves:
        raise errors.ArgumentError(f"tree.unflatten: got {len(leaves)} leaves for a pytree of {treedef.num_leaves}")
    return _tree.unflatten(treedef, leaves)


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a pytree.

    Args:
        tree: Pytree.

    Returns:
        The leaves, in the order of `flatten`.

    Example:
        >>> import multiop
        >>> multiop.tree.leaves([1.0, (2.0, {"x": 3.0})])
        [1.0, 2.0, 3.0]
    """
    return _tree.leaves(tree)


def map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply a function to each leaf of a pytree, and to what other pytrees have in its place.

    Args:
        f: Function of a leaf of `tree`, and of one subtree of each of `rest`.
        tree: Pytree.
        *rest: Pytrees that have the structure of `tree`, or more below its leaves.

    Returns:
        Pytree of the structure of `tree`, with the results as its leaves.

    Raises:
        ArgumentError: One of `rest` has another structure.
        ArgumentTypeError: `f` is not callable.

    Example:
        >>> import multiop
        >>> params, grads = {"w": 3.0, "b": 1.0}, {"w": 10.0, "b": 20.0}
        >>> multiop.tree.map(lambda p, g: p - 0.1 * g, params, grads)
        {'w': 2.0, 'b': -1.0}
    """
    args.function(f, "tree.map: f")
    try:
        parts = _tree.flatten_beside(tree, rest)
    except ValueError as error:
        raise errors.ArgumentError(f"tree.map: the pytrees must have one structure: {error}") from None
    treedef, *columns = parts
    return _tree.unflatten(treedef, [f(*entries) for entries in zip(*columns, strict=True)])


@overload
def register(
    cls: C,
    *,
    static: str | Sequence[str] = (),
    flatten: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
    unflatten: Callable[[Any, Any], Any] | None = None,
) -> C: ...
@overload
def register(
    cls: None = None,
    *,
    static: str | Sequence[str] = (),
    flatten: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
    unflatten: Callable[[Any, Any], Any] | None = None,
) -> Callable[[C], C]: ...
def register(
    cls: Any = None,
    *,
    static: str | Sequence[str] = (),
    flatten: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
    unflatten: Callable[[Any, Any], Any] | None = None,
) -> Any:
    """Make the instances of a class pytrees. Use it as a decorator, above that of the dataclass or of attrs.

    A class that is registered with JAX, PyTorch or optree needs no more.

    Args:
        cls: Dataclass, class of attrs, or, with `flatten` and `unflatten`, any class.
        static: Names of the fields that are no children: a size, a name, a function. They are part of the structure,
            and must be hashable for `jit`. A field declared with `metadata={"static": True}` is one too.
        flatten: Function of an instance that returns `(children, metadata)`, for a class that is not made of fields.
        unflatten: Function of `(metadata, children)` that returns an instance. The children may be any objects, such
            as gradients, axes or `None`.

    Returns:
        The class; a decorator where `cls` is left out.

    Raises:
        ArgumentError: The class is registered already, or `static` names no field of it.
        ArgumentTypeError: `cls` is no class, or has no fields and `flatten` or `unflatten` is missing.

    Example:
        >>> import dataclasses, multiop
        >>> @multiop.tree.register(static="power")
        ... @dataclasses.dataclass
        ... class Params:
        ...     w: object
        ...     power: int
        >>> multiop.grad(lambda p: p.w**p.power)(Params(3.0, 2)).w.item()
        6.0
    """
    if cls is None:
        return lambda cls: register(cls, static=static, flatten=flatten, unflatten=unflatten)
    if not isinstance(cls, type):
        raise errors.ArgumentTypeError(f"tree.register: cls must be a class, got {cls!r}")
    if (flatten is None) != (unflatten is None):
        raise errors.ArgumentTypeError("tree.register: give both flatten and unflatten, or neither")
    names = (static,) if isinstance(static, str) else tuple(static)
    declared = _tree.fields(cls)
    try:
        if flatten is not None and unflatten is not None:
            if names:
                raise errors.ArgumentError("tree.register: static is for fields; flatten returns what is static")
            _tree.register(cls, flatten, unflatten)
        elif declared is None:
            raise errors.ArgumentTypeError(
                f"tree.register: {cls.__name__} is neither a dataclass nor a class of attrs; put @dataclass below this "
                f"decorator, or give flatten and unflatten"
            )
        else:
            if unknown := [name for name in names if name not in declared]:
                raise errors.ArgumentError(
                    f"tree.register: static names {unknown[0]!r}, which is no field of {cls.__name__}"
                    f"{suggestions.similar(unknown[0], list(declared))}"
                )
            data = [name for name, is_static in declared.items() if not (is_static or name in names)]
            _tree.register_fields(cls, data, [name for name in declared if name not in data])
    except ValueError as error:
        if isinstance(error, errors.MultiopError):
            raise
        raise errors.ArgumentError(f"tree.register: {cls.__name__} is registered already: {error}") from None
    return cls


if not TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name: str) -> object:
        raise suggestions.missing(__name__, name, __all__)
