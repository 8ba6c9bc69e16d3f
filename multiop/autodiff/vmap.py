"""Mapping a function over an axis of its arguments."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np

from multiop import errors
from multiop._loading.registry import ready, traced
from multiop._values import args as _args, tree as _tree
from multiop.autodiff import _flat
from multiop.autodiff._transformed import decorate_transformed, explain_keywords
from multiop.frontends.shapes import op_transpose

P = ParamSpec("P")
T = TypeVar("T")


@explain_keywords
def vmap(fun: Callable[P, T], in_axes: Any = 0, out_axes: Any = 0, *, axis_size: int | None = None) -> Callable[P, T]:
    """Return a function that maps `fun` over an axis of its arguments.

    Args:
        fun: Function of pytrees that returns a pytree of tensors.
        in_axes: Which axis of each argument to map over, `None` for an argument that is the same for each entry: an
            int for all of them, or a tuple with an int, `None` or a pytree of them per argument. Keyword arguments
            are mapped over their first axis.
        out_axes: Where the mapped axis goes in the outputs: an int, or a pytree of them that matches the output.
        axis_size: Size of the mapped axis; needed only where no argument is mapped.

    Returns:
        Function of the same arguments with one axis more.

    Raises:
        ArgumentError: An axis is out of range, the mapped axes differ in size, or `in_axes` or `out_axes` does not
            match what it is for.
        ArgumentTypeError: `fun` is not callable, an axis is not an int, or a mapped argument is not a tensor.

    Example:
        >>> import multiop
        >>> x = multiop.op_convert_to_tensor([1.0, 2.0, 3.0])
        >>> multiop.op_convert_to_numpy(multiop.vmap(lambda x, y: x * y, in_axes=(0, None))(x, 10.0)).tolist()
        [10.0, 20.0, 30.0]
        >>> multiop.op_convert_to_numpy(multiop.vmap(multiop.grad(lambda x: x * x))(x)).tolist()
        [2.0, 4.0, 6.0]
    """
    _args.function(fun, "vmap: fun")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, (np.ndarray, np.integer)) and not in_axes.shape:
        in_axes = operator.index(in_axes)
    if not (in_axes is None or isinstance(in_axes, (int, tuple))) or isinstance(in_axes, bool):
        raise errors.ArgumentTypeError(
            f"vmap: in_axes must be an int, None or a tuple with an entry per argument, got {in_axes!r}"
        )

    @decorate_transformed(fun, functools.partial(vmap, axis_size=axis_size), in_axes, out_axes)
    def call_mapped(*args: P.args, **kwargs: P.kwargs) -> T:
        backend = ready()
        prefix = (in_axes, 0) if not isinstance(in_axes, tuple) else (_entry_per_argument(in_axes, args), 0)
        axes = _broadcast(prefix, (args, kwargs), "in_axes")
        template, tensors, tensor_axes, size = _mapped_leaves(fun, args, kwargs, axes, axis_size, backend)
        outputs_template: list[_flat.Template] = []

        def flat(*slices: Any) -> list[Any]:
            positional, keyword = template.fill(slices)
            returned, outputs = _flat.take_outputs(traced(fun)(*positional, **keyword), backend)
            outputs_template[:] = [returned]
            return outputs

        outputs = backend.vmap(flat, tensor_axes, size)(*tensors)
        returned = outputs_template[0]
        places = _broadcast(out_axes, returned.fill([0] * len(outputs)), "out_axes")
        return returned.fill(
            [_with_axis_at(y, places[i], k) for k, (i, y) in enumerate(zip(returned.positions, outputs, strict=True))]
        )

    return call_mapped


def _entry_per_argument(in_axes: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(in_axes) != len(args):
        raise errors.ArgumentError(
            f"vmap: in_axes has {len(in_axes)} entries for {len(args)} positional arguments: {in_axes!r}"
        )
    return in_axes


def _broadcast(prefix: Any, tree: Any, name: str) -> list[Any]:
    """Return the entry of `prefix` for each leaf of `tree`."""
    try:
        return _tree.broadcast(prefix, tree)
    except ValueError as error:
        raise errors.ArgumentError(f"vmap: {name} does not match what it is for: {error}") from None


def _mapped_leaves(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    axes: list[Any],
    size: int | None,
    backend: Any,
) -> tuple[_flat.Template, list[Any], list[int], int | None]:
    """Remove the mapped leaves from the arguments; return the template, them as tensors, their axes and the size."""
    leaves, structure = _tree.flatten((args, kwargs))
    positions = [
        i for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)) if leaf is not None and axis is not None
    ]
    tensors, tensor_axes = [], []
    sized_by = -1  # the leaf that gave the size
    name = functools.partial(_flat.leaf_name, fun, args, kwargs)
    for i in positions:
        if not _flat.is_array(backend)(leaves[i]):
            raise errors.ArgumentTypeError(
                f"vmap: {name(i)} is mapped over axis {axes[i]}, so it must be a tensor or NumPy array, got "
                f"{_args.describe(leaves[i])}; give None in in_axes for an argument that is not mapped"
                f"{_tree.how_to_register(leaves[i])}"
            )
        try:
            x = backend.convert(leaves[i])
            axis = _args.single_axis(axes[i], len(x.shape), "in_axes")
        except errors.MultiopError as error:
            raise type(error)(f"vmap: {name(i)}: {error.args[0]}") from None
        length = x.shape[axis]
        if size is None:
            size, sized_by = length, i
        elif length is not None and length != size:
            other = "axis_size" if sized_by < 0 else name(sized_by)
            raise errors.ArgumentError(
                f"vmap: {name(i)} has size {length} along its mapped axis {axes[i]}, but {other} has {size}"
            )
        tensors.append(x)
        tensor_axes.append(axis)
        leaves[i] = None
    if not tensors and size is None:
        raise errors.ArgumentError("vmap: no argument is mapped: give an axis in in_axes, or axis_size")
    return _flat.Template(structure, leaves, positions), tensors, tensor_axes, size


def _with_axis_at(x: Any, place: Any, k: int) -> Any:
    """Return output `x`, whose first axis is the mapped one, with that axis moved to `place`."""
    if place is None:
        raise errors.ArgumentError(
            "vmap: out_axes must be an int for each output; compute outside of vmap what is the same for every entry"
        )
    ndim = len(x.shape)
    try:
        place = _args.single_axis(place, ndim, "out_axes")
    except errors.MultiopError as error:
        raise type(error)(f"vmap: output {k}: {error.args[0]}") from None
    return x if place == 0 else op_transpose(x, (*range(1, place + 1), 0, *range(place + 1, ndim)))
