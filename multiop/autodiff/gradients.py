"""TensorFlow's `tf.gradients`, on every backend."""

from __future__ import annotations

from typing import Any

from multiop import errors
from multiop._call.explain import explain
from multiop._call.frames import shorten
from multiop._loading.registry import active, traced
from multiop._values import args, dtypes, foreign, tree as _tree
from multiop._values.types import PyTree
from multiop.autodiff import _flat
from multiop.autodiff.tape import UNCONNECTED, GradientTape
from multiop.frontends.creation import op_copy, op_ones_like, op_zeros_like


class AggregationMethod:
    """How the terms of a gradient are added up: TensorFlow's constants.

    `ADD_N` (the `DEFAULT`) adds all terms in one operation, `EXPERIMENTAL_TREE` and `EXPERIMENTAL_ACCUMULATE_N` in
    pairs, which can need less memory. The sum is the same. They act on TensorFlow graphs; elsewhere the framework
    chooses.
    """

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def gradients(
    ys: PyTree,
    xs: PyTree,
    grad_ys: PyTree = None,
    name: str | None = None,
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: PyTree = None,
    unconnected_gradients: str = "none",
) -> PyTree:
    """Differentiate the sum of `ys` with respect to each of `xs`.

    Args:
        ys: Tensor or pytree of tensors, computed under a `GradientTape` that is still recording or persistent, in a
            TensorFlow graph, or on PyTorch from tensors that require a gradient; or a function of `xs`, which is
            called as `ys(*xs)` where `xs` is a list or tuple and as `ys(xs)` otherwise.
        xs: Tensor or pytree of tensors; they may be intermediate results, or entries of `ys`.
        grad_ys: Weight for each of `ys`, a tensor of its shape and dtype, in the structure of `ys` or a flat list;
            `None`, for all or one of them, is ones. A complex `y` needs a weight.
        name: String; accepted for compatibility with TensorFlow, and ignored.
        colocate_gradients_with_ops: Put each operation of the gradient on the device of its forward operation. Acts on
            TensorFlow graphs.
        gate_gradients: Compute all gradients of an operation before any is used. Acts on TensorFlow graphs.
        aggregation_method: A constant of `AggregationMethod`. Acts on TensorFlow graphs.
        stop_gradients: Tensor or pytree of tensors to treat as constants, as if each had been passed to
            `op_stop_gradient` where it was computed. Those that are also in `xs` still get a gradient: the partial
            derivative.
        unconnected_gradients: `"none"` gives `None` for an `x` that no `y` depends on, `"zero"` zeros.

    Returns:
        List of gradients, one per entry of `xs`, in the structure of that entry; a list of one for a lone tensor. Where
        `xs` is a dict or another pytree, a pytree of its structure. Integer `xs` are unconnected.

    Raises:
        ArgumentError: Weights of a wrong count or shape, or an unknown option; or nothing recorded `ys`. It is a
            `ValueError`.
        DTypeError: A complex `y` without a weight, or a weight of another dtype.
        ArgumentTypeError: `ys`, `xs` or `stop_gradients` holds something that is not a tensor.
        NoGradientError: An operation between `ys` and `xs` has no gradient. It is a `LookupError`.

    Example:
        >>> import multiop
        >>> g = multiop.gradients(lambda a, b: [a * b, a], [2.0, 5.0])
        >>> [float(x) for x in g]
        [6.0, 2.0]
        >>> with multiop.GradientTape(persistent=True) as tape:
        ...     a = tape.watch(multiop.op_convert_to_tensor(1.0))
        ...     b = 2 * a
        ...     partial = multiop.gradients(a + b, [a, b], stop_gradients=[a, b])
        ...     total = multiop.gradients(a + b, [a, b])
        >>> [float(x) for x in partial], [float(x) for x in total]
        ([1.0, 1.0], [3.0, 1.0])
    """
    backend = active()
    unconnected_gradients = args.choice(unconnected_gradients, UNCONNECTED, "gradients: unconnected_gradients")
    args.choice(aggregation_method, (None, 0, 1, 2), "gradients: aggregation_method")
    args.bool_flag(colocate_gradients_with_ops, "gradients: colocate_gradients_with_ops")
    args.bool_flag(gate_gradients, "gradients: gate_gradients")
    if name is not None and not isinstance(name, str):
        raise errors.ArgumentTypeError(f"gradients: name must be a string, got {name!r}")
    if callable(ys) and not backend.is_tensor(ys):
        with GradientTape() as tape:
            # each input becomes a separate tensor, even if it is given twice or also closed over
            inside = _tree.map(lambda x: op_copy(x) if backend.is_tensor(x) else x, tape.watch(xs))
            returned = traced(ys)(*inside) if type(inside) in (tuple, list) else traced(ys)(inside)
            targets = _tensors(returned, "ys", backend, convert=True)
            weights = _weights(grad_ys, targets, backend)
        template, flat = _flat.take(inside, backend.is_tensor)
        _tensors(stop_gradients, "stop_gradients", backend)
        grads = tape.gradient(targets, flat, weights)
    else:
        template, flat = _flat.take(xs, backend.is_tensor if backend.is_tensor(xs) else _flat.is_given)
        flat = _tensors(flat, "xs", backend)
        targets = _tensors(ys, "ys", backend)
        stops = _tensors(stop_gradients, "stop_gradients", backend)
        weights = _weights(grad_ys, targets, backend)
        grads = [None] * len(flat)
        wanted = [i for i, x in enumerate(flat) if backend.dtype_name(x) in dtypes.INEXACT]
        paired = [(y, w) for y, w in zip(targets, weights, strict=True) if backend.dtype_name(y) in dtypes.INEXACT]
        if wanted and paired:
            try:
                wanted_grads = backend.gradients(
                    [y for y, _ in paired], [flat[i] for i in wanted], [w for _, w in paired], stops,
                    aggregation_method, gate_gradients, colocate_gradients_with_ops,
                )  # fmt: skip
            except Exception as error:
                explained = explain(error, "gradients", {"ys": ys, "xs": xs}, runs_user_code=True)
                shorten(explained)
                raise explained
            if wanted_grads is None:
                raise errors.ArgumentError(
                    "gradients: nothing recorded ys: compute them inside `with multiop.GradientTape() as tape:` from "
                    "`x = tape.watch(x)`, and differentiate them there, or give the tape persistent=True; or give a "
                    "function of xs"
                )
            for i, g in zip(wanted, wanted_grads, strict=True):
                grads[i] = g
    if unconnected_gradients == "zero":
        grads = [op_zeros_like(x) if g is None else g for g, x in zip(grads, flat, strict=True)]
    filled = template.fill(grads)
    return [filled] if template.structure is None else list(filled) if type(filled) is tuple else filled


def _tensors(tree: PyTree, what: str, backend: Any, convert: bool = False) -> list[Any]:
    """Return the leaves of `tree`, which must be tensors, or numbers where `convert`."""
    leaves = [tree] if backend.is_tensor(tree) else [leaf for leaf in _tree.leaves(tree) if leaf is not None]
    if what == "ys" and not leaves:
        forgotten = "; it returned nothing (a forgotten return?)" if convert else ""
        raise errors.ArgumentTypeError(f"gradients: ys must be tensors or a function that returns them{forgotten}")
    for i, leaf in enumerate(leaves):
        if (value := foreign.value_of_variable(leaf)) is not None:
            leaves[i] = leaf = value
        if backend.is_tensor(leaf):
            continue
        if convert or _flat.is_array(backend)(leaf):
            try:
                leaves[i] = backend.convert(leaf)  # refuses another framework's tensor
            except errors.MultiopError as error:
                raise type(error)(f"gradients: {what}[{i}]: {error.args[0]}") from None
        if not convert:
            raise errors.ArgumentTypeError(f"gradients: {what}[{i}] must be a tensor, got {args.describe(leaf)}")
    return leaves


def _weights(grad_ys: PyTree, ys: list[Any], backend: Any) -> list[Any]:
    """Return a weight for each of `ys`."""
    given = [None] * len(ys) if grad_ys is None else [grad_ys] if backend.is_tensor(grad_ys) else _tree.leaves(grad_ys)
    if len(given) != len(ys):
        raise errors.ArgumentError(f"gradients: {len(given)} grad_ys were given for {len(ys)} ys")
    weights = []
    for k, (weight, y) in enumerate(zip(given, ys, strict=True)):
        dtype = backend.dtype_name(y)
        if weight is None and dtype in dtypes.COMPLEX:
            raise errors.DTypeError(
                f"gradients: ys[{k}] has dtype {dtype}, so it needs an entry in grad_ys: there is no default"
            )
        if weight is None or dtype not in dtypes.INEXACT:
            weights.append(op_ones_like(y))
        else:
            weights.append(_flat.convert_like(weight, y, backend, f"gradients: grad_ys[{k}]"))
    return weights
