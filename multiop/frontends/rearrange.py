"""Rearranging dimensions by a pattern that names them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from multiop import errors
from multiop._call.boundary import boundary
from multiop._values import args
from multiop._values.types import ArrayLike, Tensor

from .conversion import op_convert_to_tensor, op_shape
from .shapes import op_reshape, op_transpose

# composites


@boundary
def op_rearrange(tensor: ArrayLike, pattern: str, **axes_lengths: int) -> Tensor:
    """Split, permute and merge dimensions by a pattern of einops.

    Args:
        tensor: Tensor of any dtype and shape.
        pattern: Names of the dimensions of `tensor`, `->`, and the same names for the result, separated by spaces.
            Names in parentheses are one dimension, in which the last name varies fastest; `1` and `()` are a dimension
            of size 1, and `...` is any number of dimensions.
        **axes_lengths: Sizes of dimensions by name: of all but one of those that a dimension is split into.

    Returns:
        Tensor with the entries and the dtype of `tensor`.

    Raises:
        ArgumentError: The pattern is malformed, or does not fit the shape or the sizes.
        ArgumentTypeError: `pattern` is not a string, or a size is not an int.

    Example:
        >>> import multiop
        >>> found = multiop.op_rearrange([[1, 2, 3, 4], [5, 6, 7, 8]], "h (w c) -> c (h w)", c=2)
        >>> multiop.op_convert_to_numpy(found).tolist()
        [[1, 3, 5, 7], [2, 4, 6, 8]]
    """
    if not isinstance(pattern, str):
        raise errors.ArgumentTypeError(f"pattern must be a string, got {args.describe(pattern)}")
    tensor = op_convert_to_tensor(tensor)
    shape = op_shape(tensor)
    sides = pattern.split("->")
    if len(sides) != 2:
        raise errors.ArgumentError(f"pattern {pattern!r} must have one ->")
    before, after = (_groups(side, pattern) for side in sides)
    rest = len(shape) - len(before) + 1  # the number of dimensions in `...`
    if ["..."] not in before:
        rest = 0
        if any("..." in group for group in (*before, *after)):
            raise errors.ArgumentError(f"pattern {pattern!r} must have ... before the ->, not in parentheses")
    before, after = _expand_ellipsis(before, rest), _expand_ellipsis(after, rest)
    if rest < 0 or len(before) != len(shape):
        raise errors.ArgumentError(f"pattern {pattern!r} does not have the {len(shape)} dimensions of tensor")
    names = [name for group in before for name in group]
    wanted = [name for group in after for name in group]
    if sorted(names) != sorted(wanted) or len(set(names)) != len(names):
        raise errors.ArgumentError(f"pattern {pattern!r} must name each dimension once on each side")
    sizes = _sizes(before, shape, axes_lengths, pattern)
    if len(names) != len(before) or [] in before:
        tensor = op_reshape(tensor, [sizes[name] for name in names])
    if names != wanted:
        tensor = op_transpose(tensor, [names.index(name) for name in wanted])
    if len(wanted) != len(after) or [] in after:
        tensor = op_reshape(tensor, [math.prod([sizes[name] for name in group]) for group in after])
    return tensor


def _groups(side: str, pattern: str) -> list[list[str]]:
    """Return the names in each dimension of one side of a pattern; `1` has none."""
    groups: list[list[str]] = []
    inside = False
    for word in side.replace("(", " ( ").replace(")", " ) ").replace("...", " ... ").split():
        if word in ("(", ")"):
            if inside == (word == "("):
                raise errors.ArgumentError(f"pattern {pattern!r} has parentheses that do not match")
            inside = not inside
            if inside:
                groups.append([])
            continue
        if word != "1" and word != "..." and not word.isidentifier():
            raise errors.ArgumentError(f"pattern {pattern!r} has {word!r}, which is not a name")
        if not inside:
            groups.append([])
        if word != "1":
            groups[-1].append(word)
    if inside:
        raise errors.ArgumentError(f"pattern {pattern!r} has parentheses that do not match")
    return groups


def _expand_ellipsis(groups: list[list[str]], rest: int) -> list[list[str]]:
    """Return the groups with names for the `rest` dimensions of `...`."""
    names = [f"...{i}" for i in range(rest)]
    found: list[list[str]] = []
    for group in groups:
        if group == ["..."]:
            found += [[name] for name in names]
        else:
            found.append([one for name in group for one in (names if name == "..." else [name])])
    return found


def _sizes(groups: list[list[str]], shape: Sequence[Any], given: dict[str, int], pattern: str) -> dict[str, Any]:
    """Return the size of each name."""
    sizes: dict[str, Any] = {name: args.count(size, name) for name, size in given.items()}
    for name in sizes:
        if not any(name in group for group in groups):
            raise errors.ArgumentError(f"pattern {pattern!r} has no {name}")
    for group, size in zip(groups, shape, strict=True):
        unknown = [name for name in group if name not in sizes]
        known = math.prod([sizes[name] for name in group if name in sizes])
        if len(unknown) > 1 or (unknown and known == 0):
            raise errors.ArgumentError(f"pattern {pattern!r} leaves the sizes of {' and '.join(unknown)} open")
        if isinstance(size, int) and (size % known if unknown else size != known):
            raise errors.ArgumentError(f"pattern {pattern!r} with {given} does not fit a dimension of {size}")
        for name in unknown:
            sizes[name] = size // known
    return sizes
