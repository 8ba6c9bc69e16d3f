"""Between the pytrees of the public functions and the flat lists of tensors that a backend works on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from multiop import _args, _dtypes, _host, _tree, errors
from multiop.ops.creation import op_ones_like as op_ones_like, op_zeros_like as op_zeros_like
from multiop.ops.elementwise import op_add as op_add


class Template:
    """A pytree whose tensors have been taken out: its structure, and the leaves that stay."""

    __slots__ = ("leaves", "positions", "structure")

    def __init__(self, structure: Any, leaves: list[Any], positions: list[int]) -> None:
        self.structure = structure  # None for a bare leaf, which needs no pytree machinery
        self.leaves = leaves
        self.positions = positions

    def fill(self, entries: Iterable[Any]) -> Any:
        """Return the pytree with `entries` where the tensors were."""
        leaves = list(self.leaves)
        for position, entry in zip(self.positions, entries, strict=True):
            leaves[position] = entry
        return leaves[0] if self.structure is None else _tree.unflatten(self.structure, leaves)

    def key(self) -> Hashable:
        """Return what tells this template from another: structure and remaining leaves, with their types."""
        return self.structure, tuple(self.positions), tuple([(type(leaf), leaf) for leaf in self.leaves])


def take(tree: Any, is_wanted: Callable[[Any], bool]) -> tuple[Template, list[Any]]:
    """Take the leaves that `is_wanted` out of `tree`; return the template that is left, and them."""
    if is_wanted(tree):
        return Template(None, [None], [0]), [tree]
    leaves, structure = _tree.flatten(tree)
    positions = [i for i, leaf in enumerate(leaves) if is_wanted(leaf)]
    taken = [leaves[i] for i in positions]
    for i in positions:
        leaves[i] = None  # a template must not keep tensors alive
    return Template(structure, leaves, positions), taken


def is_array(backend: Any) -> Callable[[Any], bool]:
    """Return the test for a leaf that stands for a tensor whatever it is used for: a tensor or a NumPy array."""

    def wanted(leaf: Any) -> bool:
        return backend.is_tensor(leaf) or isinstance(leaf, (np.ndarray, np.generic)) or _host.owner(leaf) is not None

    return wanted


def is_given(leaf: Any) -> bool:
    """Say whether `leaf` is something: `None` is a gap in a pytree, a list or dict is not a leaf."""
    return leaf is not None and _tree.is_leaf(leaf)


def argument_name(fun: Callable[..., Any], position: int) -> str:
    """Return the name of a positional argument of `fun`, for errors."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        return f"argument {position}"
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return f"argument {position} ({named[position]})" if position < len(named) else f"argument {position}"


def differentiable(leaf: Any, backend: Any, what: Callable[[], str]) -> Any:
    """Return `leaf` as a tensor of real or complex floats, or raise an error about `what()`."""
    if _host.is_scalar(leaf):
        if isinstance(leaf, (bool, int)):
            raise errors.DTypeError(f"{what()} is the {type(leaf).__name__} {leaf!r}; only float and complex can be differentiated: write {float(leaf)!r}")
        return backend.convert(leaf)
    if not is_array(backend)(leaf):
        raise errors.ArgumentTypeError(f"{what()} must be a tensor, a NumPy array or a Python float, got {_args.describe(leaf)}")
    try:
        x = backend.convert(leaf)
    except errors.MultiopError as error:
        raise type(error)(f"{what()}: {error.args[0]}") from None
    if backend.dtype_name(x) not in _dtypes.INEXACT:
        raise errors.DTypeError(
            f"{what()} has dtype {backend.dtype_name(x)}; only float and complex can be differentiated: cast it, or close over it"
        )
    return x


def like(leaf: Any, x: Any, backend: Any, what: Callable[[], str]) -> Any:
    """Return `leaf`, a tangent or cotangent, as a tensor of the shape and dtype of `x`; `None` is zero."""
    if leaf is None:
        return op_zeros_like(x)
    dtype = backend.dtype_name(x)
    if backend.is_tensor(leaf):
        leaf = backend.convert(leaf)
        found = backend.dtype_name(leaf)
        if found != dtype:
            raise errors.DTypeError(f"{what()} has dtype {found}, but it must have that of its counterpart, {dtype}; cast it")
    else:
        try:
            leaf = backend.convert(leaf, dtype)
        except errors.MultiopError as error:
            raise type(error)(f"{what()}: {error.args[0]}") from None
    found_shape, shape = static_shape(leaf), static_shape(x)
    if not shapes_agree(found_shape, shape):
        raise errors.ArgumentError(f"{what()} has shape {found_shape}, but it must have that of its counterpart, {shape}")
    return leaf


def basis(xs: Sequence[Any], backend: Any) -> tuple[list[Any], list[slice], int]:
    """Return the unit vectors of the space of all entries of `xs`, along a new first axis.

    A complex entry has two: 1 and the imaginary unit.

    Returns:
        For each of `xs`, a tensor of shape `(n, *x.shape)`; for each, which of the `n` rows are its own; and `n`.
    """
    sizes = [int(np.prod(x.shape)) * (2 if is_complex(x, backend) else 1) for x in xs]
    starts = np.cumsum([0, *sizes])
    n = int(starts[-1])
    rows = [slice(int(a), int(b)) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    units = []
    for x, own in zip(xs, rows, strict=True):
        block = np.eye(n, dtype=np.int8)[:, own]
        if is_complex(x, backend):
            half = block.shape[1] // 2
            block = (block[:, :half] + 1j * block[:, half:]).astype(np.complex64)
        # added to a tensor, host values take its dtype and device
        units.append(op_add(op_zeros_like(x)[None], block.reshape((n, *x.shape))))
    return units, rows, n


def is_complex(x: Any, backend: Any) -> bool:
    """Say whether `x` is complex."""
    return backend.dtype_name(x) in _dtypes.COMPLEX


def static_shape(x: Any) -> tuple[Any, ...] | None:
    """Return the shape of a tensor; `None` for a dimension, or for all of it, that is known only at run time."""
    try:
        return tuple(x.shape)
    except ValueError:  # a TensorFlow shape of unknown rank has no length
        return None


def shapes_agree(found: tuple[Any, ...] | None, wanted: tuple[Any, ...] | None) -> bool:
    """Say whether two shapes are equal as far as both are known."""
    if found is None or wanted is None:
        return True
    return len(found) == len(wanted) and all(a is None or b is None or a == b for a, b in zip(found, wanted, strict=True))


def leaves_like(tree: Any, structure: Any) -> list[Any]:
    """Return the leaves of `tree`, which must have `structure`; a `None` stands for `None` in each leaf below it."""
    if structure is None or structure.is_leaf():
        if not (tree is None or _tree.is_leaf(tree)):
            raise ValueError(f"expected one tensor, got {_args.describe(tree)}")
        return [tree]
    if tree is None:
        return [None] * int(structure.num_leaves)
    leaves = list(structure.flatten_up_to(tree))
    for leaf in leaves:
        if leaf is not None and not _tree.is_leaf(leaf):
            raise ValueError(f"expected a tensor, got {_args.describe(leaf)}")
    return leaves
