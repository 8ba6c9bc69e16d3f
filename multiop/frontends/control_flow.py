"""Control flow: choices and loops as functions, over pytrees of tensors.

A backend's functions work on flat lists of tensors. This file checks, for every backend, that structures, shapes and
dtypes stay the same from step to step and from branch to branch.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from multiop import errors
from multiop._call.boundary import boundary
from multiop._call.explain import explain
from multiop._call.frames import shorten
from multiop._loading.registry import active, traced
from multiop._values import args as _args, dtypes as _dtypes, foreign, tree as _tree
from multiop._values.types import ArrayLike, PyTree, Tensor
from multiop.frontends.creation import op_copy
from multiop.frontends.shapes import op_broadcast_to, op_concatenate, op_flip, op_reshape, op_stack

_INTEGRAL = (int, np.integer)
_INT32 = (-(2**31), 2**31 - 1)


@boundary
def op_cond(
    pred: ArrayLike, true_fn: Callable[..., PyTree], false_fn: Callable[..., PyTree], *operands: PyTree
) -> PyTree:
    """Call `true_fn` with `operands` if `pred` is true, otherwise `false_fn`.

    Args:
        pred: Scalar of dtype bool: a tensor, or a Python bool.
        true_fn: Function of `operands` that returns a pytree of tensors, which may contain `None`.
        false_fn: Function that returns the same structure, shapes and dtypes.
        *operands: Pytrees of tensors. A function may close over tensors as well.

    Returns:
        What the chosen function returns, as tensors. Where `pred` has a known value, as in eager code, the other
        function is not called. Where it has none, as under `jit` and `vmap`, both are traced.

    Raises:
        ArgumentError: `pred` is not a scalar; or both functions are traced, and return different structures, shapes or
            dtypes.
        DTypeError: `pred` is a tensor of another dtype than bool.
        ArgumentTypeError: `pred` is neither a tensor nor a bool, or a function is not callable.

    Gradient:
        That of the chosen function, also through what it closes over. Under `vmap` both functions run and the results
        are selected, so a NaN in the gradient of one of them may reach that of the other.

    Example:
        >>> import multiop
        >>> x = multiop.op_convert_to_tensor(3.0)
        >>> float(multiop.op_cond(x > 2.0, lambda: x * x, lambda: -x))
        9.0
    """
    pred = _predicate(pred, "pred")
    branches, seen = _alike([true_fn, false_fn], ["true_fn", "false_fn"], _tensors(operands))
    outputs = active().op_cond(pred, *branches)
    return seen[0][0].fill(outputs)


@boundary
def op_switch(index: ArrayLike, branches: Sequence[Callable[..., PyTree]], *operands: PyTree) -> PyTree:
    """Call the function at `index` of `branches` with `operands`.

    Args:
        index: Scalar integer; one that is out of range means the first or the last branch.
        branches: At least one function of `operands`; all return the same structure, shapes and dtypes.
        *operands: Pytrees of tensors.

    Returns:
        What the chosen function returns, as tensors. Where `index` has a known value, as in eager code, the other
        functions are not called. Where it has none, as under `jit` and `vmap`, all are traced.

    Raises:
        ArgumentError: `index` is not a scalar, or `branches` is empty; or all functions are traced, and return
            different structures, shapes or dtypes.
        DTypeError: `index` is a tensor that does not hold integers.
        ArgumentTypeError: `index` is neither a tensor nor an int, or a branch is not callable.

    Gradient:
        That of the chosen function, as for `op_cond`.

    Example:
        >>> import multiop
        >>> float(multiop.op_switch(1, [lambda x: x + 1, lambda x: x * 10], 2.0))
        20.0
    """
    index = _integer(index, "index")
    if not isinstance(branches, (tuple, list)) or not branches:
        raise errors.ArgumentError(f"branches must be a list of functions, got {_args.describe(branches)}")
    functions, seen = _alike(branches, [f"branches[{k}]" for k in range(len(branches))], _tensors(operands))
    if isinstance(index, int):
        index = min(max(index, 0), len(branches) - 1)
    outputs = active().op_switch(index, functions)
    return seen[0][0].fill(outputs)


@boundary
def op_while_loop(
    cond: Callable[..., ArrayLike],
    body: Callable[..., PyTree],
    loop_vars: PyTree,
    maximum_iterations: int | None = None,
) -> PyTree:
    """Apply `body` to `loop_vars` as long as `cond` of them is true.

    Args:
        cond: Function of the loop variables that returns a scalar bool.
        body: Function of the loop variables that returns their new values, in the same structure, shapes and dtypes.
        loop_vars: Pytree of tensors. A tuple or list is passed to `cond` and `body` as several arguments.
        maximum_iterations: The loop ends after this many steps even if `cond` is still true.

    Returns:
        The last values, in the structure of `loop_vars`.

    Raises:
        ArgumentError: `body` changes the structure, a shape or a dtype; `cond` returns no scalar;
            `maximum_iterations` is negative.
        DTypeError: `cond` returns a tensor of another dtype than bool.
        ArgumentTypeError: A function is not callable, `cond` returns no bool, or `maximum_iterations` is not an int.

    Gradient:
        That of the steps that were taken, also through what `body` closes over. On JAX there is forward mode only:
        reverse mode is a `NoGradientError`; use `op_scan`, or `op_fori_loop` with fixed bounds, instead. Inside the
        user's own `torch.compile`, a loop that needs a gradient runs eagerly.

    Example:
        >>> import multiop
        >>> i, total = multiop.op_while_loop(lambda i, t: i < 4, lambda i, t: (i + 1, t + i), (0, 0))
        >>> int(i), int(total)
        (4, 6)
    """
    _args.function(cond, "cond"), _args.function(body, "body")
    if maximum_iterations is not None:
        maximum_iterations = _count(maximum_iterations, "maximum_iterations")
    template, tensors = _take(loop_vars, "loop_vars")
    several = isinstance(loop_vars, (tuple, list))

    def call(function: Callable[..., Any], entries: Sequence[Any]) -> Any:
        given = template.fill(entries)
        return _step(function, "loop_vars", *given) if several else _step(function, "loop_vars", given)

    def holds(*entries: Any) -> Any:
        return active().convert(_predicate(call(cond, entries), "what cond returns"))

    def step(*entries: Any) -> list[Any]:
        returned = call(body, entries)
        if {type(returned), type(loop_vars)} == {tuple, list}:  # several results are a tuple in Python
            returned = type(loop_vars)(returned)
        return template.same(returned, "what body returns", "loop_vars")

    return template.fill(active().op_while_loop(holds, step, tensors, maximum_iterations))


@boundary
def op_fori_loop(
    lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[Tensor, PyTree], PyTree], init_val: PyTree
) -> PyTree:
    """Apply `body_fun` to a state for each integer from `lower` up to, not including, `upper`.

    Args:
        lower: First index, a scalar integer.
        upper: Where to end, a scalar integer; there is no step where it is not above `lower`.
        body_fun: Function of the index, an `int32` scalar tensor (of the dtype of the bounds where these are tensors),
            and the state, that returns the new state in the same structure, shapes and dtypes.
        init_val: The first state, a pytree of tensors.

    Returns:
        The last state.

    Raises:
        ArgumentError: `body_fun` changes the structure, a shape or a dtype, or a bound is not a scalar, or a Python int
            that does not fit `int32`.
        DTypeError: A bound is a tensor that does not hold integers.
        ArgumentTypeError: `body_fun` is not callable, or a bound is neither a tensor nor an int.

    Gradient:
        That of the steps that were taken. On JAX, reverse mode needs bounds that are Python ints.

    Example:
        >>> import multiop
        >>> int(multiop.op_fori_loop(0, 5, lambda i, total: total + i, 0))
        10
    """
    lower, upper = _integer(lower, "lower"), _integer(upper, "upper")
    _args.function(body_fun, "body_fun")
    if not (isinstance(lower, int) and isinstance(upper, int)):
        lower, upper = active().promote(lower, upper)
    elif not (_INT32[0] <= lower <= _INT32[1] and _INT32[0] <= upper <= _INT32[1]):
        raise errors.ArgumentError(f"bounds that are Python ints must fit int32, got {lower} and {upper}")
    template, tensors = _take(init_val, "init_val")

    def step(index: Any, *entries: Any) -> list[Any]:
        return template.same(
            _step(body_fun, "init_val", index, template.fill(entries)), "what body_fun returns", "init_val"
        )

    return template.fill(active().op_fori_loop(lower, upper, step, tensors))


@boundary
def op_scan(
    f: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[PyTree, PyTree]:
    """Apply `f` to a carry and each entry of `xs` in turn, and stack what it returns next to the carry.

    Args:
        f: Function of the carry and an entry of `xs` that returns `(carry, y)`. The new carry has the structure, shapes
            and dtypes of the old one; `y` is any pytree, with the same structure, shapes and dtypes at every step.
        init: The first carry, a pytree of tensors.
        xs: Pytree of tensors; `f` gets their entries along the first axis. `None`: `f` gets `None`.
        length: Number of steps; needed where `xs` has no tensors.
        reverse: Whether to begin with the last entry of `xs`. The results stay in the order of `xs`.
        unroll: How many steps to compile as one, or `True` for all. It changes no value, and only JAX uses the number.

    Returns:
        The last carry, and the pytree of every `y`, stacked along a new first axis.

    Raises:
        ArgumentError: `f` changes the structure, a shape or a dtype of the carry or of `y`; the lengths differ, or
            none is given; a tensor of `xs` is 0-d; `unroll` is below 1.
        ArgumentTypeError: `f` is not callable or does not return a pair; `length` is not an int.

    Gradient:
        That of the steps, in reverse order, also through what `f` closes over.

    Example:
        >>> import multiop
        >>> total, sums = multiop.op_scan(lambda c, x: (c + x, c + x), 0, multiop.op_convert_to_tensor([1, 2, 3]))
        >>> int(total), multiop.op_convert_to_numpy(sums).tolist()
        (6, [1, 3, 6])
    """
    _args.function(f, "f")
    if not isinstance(unroll, bool) and _count(unroll, "unroll") < 1:
        raise errors.ArgumentError(f"unroll must be at least 1, got {unroll}")
    carry_template, carry = _take(init, "init")
    x_template, columns = _take(xs, "xs")
    size = _common_size(columns, "xs", None if length is None else _count(length, "length"))
    if size is None and not columns:
        raise errors.ArgumentError("length is needed if xs has no tensors")
    seen: list[_Template] = []

    def step(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        returned = _step(f, "init", carry_template.fill(carry), x_template.fill(row))
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            raise errors.ArgumentTypeError(f"f must return (carry, y); it returned {_args.describe(returned)}")
        after = carry_template.same(returned[0], "the carry that f returns", "init")
        if seen:
            return after, seen[0].same(returned[1], "the y that f returns", "that of another step")
        template, ys = _take(returned[1], "the y that f returns")
        seen.append(template)
        return after, ys

    last, stacks = active().op_scan(step, carry, columns, size, bool(reverse), unroll)
    return carry_template.fill(last), seen[0].fill(stacks)


def _step(function: Callable[..., Any], state: str, *args: Any) -> Any:
    """Return what a user's function makes of the state of a loop."""
    backend = active()
    try:
        return traced(function)(*args)
    except backend.argument_errors as error:
        if not hasattr(backend, "reason") or backend.reason(error) != "two dtypes":
            raise
        carried = args[1] if state == "init_val" else args[0]  # a counter comes before it
        raise errors.ArgumentError(
            f"an operator got operands of two dtypes, where {state} has {_args.describe(carried)}: use an op of "
            f"multiop, or cast one of them; a Python int in {state} is an int32 tensor, a float one of floatx"
        ) from error


# composites


@boundary
def op_associative_scan(
    f: Callable[[PyTree, PyTree], PyTree], elems: PyTree, reverse: bool = False, axis: int = 0
) -> PyTree:
    """Combine each entry along an axis with all that come before it, by an associative function.

    The number of calls of `f` grows with the logarithm of the size; each call is on whole tensors.

    Args:
        f: Function of two pytrees like `elems`, of any size along `axis`, that combines them entry by entry and returns
            the same structure, shapes and dtypes. `f(a, f(b, c))` must be `f(f(a, b), c)`.
        elems: Pytree of tensors of one size along `axis`.
        reverse: Whether to combine each entry with all that come after it instead.
        axis: The axis, counted in the first tensor of `elems`, and the same in the others.

    Returns:
        Pytree like `elems`: the first entry, `f` of the first two, and so on.

    Raises:
        ArgumentError: `f` changes the structure, a shape or a dtype; the sizes differ; `axis` is out of range.
        ArgumentTypeError: `f` is not callable, or `elems` has no tensors.

    Gradient:
        That of the calls of `f`.

    Example:
        >>> import multiop
        >>> x = multiop.op_convert_to_tensor([1, 2, 3, 4])
        >>> multiop.op_convert_to_numpy(multiop.op_associative_scan(multiop.op_multiply, x)).tolist()
        [1, 2, 6, 24]
    """
    _args.function(f, "f")
    template, xs = _take(elems, "elems")
    if not xs:
        raise errors.ArgumentTypeError("elems has no tensors")
    axis = _args.single_axis(axis, len(xs[0].shape))
    if _common_size(xs, "elems", None, axis) is None:
        raise errors.ArgumentError("the size along axis must be known before the run")

    def combine(before: list[Any], after: list[Any]) -> list[Any]:
        returned = traced(f)(template.fill(before), template.fill(after))
        return template.like(before).same(returned, "what f returns", "its arguments")

    xs = [op_flip(x, axis) for x in xs] if reverse else xs
    prefixes = [op_copy(y) if y is x else y for x, y in zip(xs, _prefixes(combine, xs, axis), strict=True)]
    return template.fill([op_flip(x, axis) for x in prefixes] if reverse else prefixes)


@boundary
def op_map(f: Callable[[PyTree], PyTree], xs: PyTree) -> PyTree:
    """Apply `f` to each entry of `xs` along the first axis, one after the other, and stack the results.

    `op_vectorized_map` does the same for all entries at once, which takes less time and more memory.

    Args:
        f: Function of a pytree like `xs` without the first axis. It returns a pytree of tensors, with the same
            structure, shapes and dtypes at every call.
        xs: Pytree of tensors of one size along the first axis.

    Returns:
        Pytree of the results, stacked along a new first axis.

    Raises:
        ArgumentError: The sizes differ, there is not a tensor, or `f` returns different structures, shapes or dtypes
            for different entries.
        ArgumentTypeError: `f` is not callable.

    Gradient:
        That of each call.

    Example:
        >>> import multiop
        >>> x = multiop.op_convert_to_tensor([1, 2, 3])
        >>> multiop.op_convert_to_numpy(multiop.op_map(lambda x: x * x, x)).tolist()
        [1, 4, 9]
    """
    _args.function(f, "f")
    scan = inspect.unwrap(op_scan)  # without its boundary: the user called op_map
    return scan(lambda _, x: (None, traced(f)(x)), None, xs)[1]


@boundary
def op_vectorized_map(function: Callable[[PyTree], PyTree], elements: PyTree) -> PyTree:
    """Apply `function` to all entries of `elements` along the first axis at once.

    Args:
        function: Function of a pytree like `elements` without the first axis that returns a pytree of tensors.
        elements: Pytree of tensors of one size along the first axis.

    Returns:
        Pytree of the results, stacked along a new first axis.

    Raises:
        ArgumentError: The sizes differ, or a tensor is 0-d.
        ArgumentTypeError: `function` is not callable, or `elements` has no tensors.

    Gradient:
        That of each call.

    Example:
        >>> import multiop
        >>> x = multiop.op_convert_to_tensor([1, 2, 3])
        >>> multiop.op_convert_to_numpy(multiop.op_vectorized_map(lambda x: x * x, x)).tolist()
        [1, 4, 9]
    """
    _args.function(function, "function")
    template, columns = _take(elements, "elements")
    if not columns:
        raise errors.ArgumentTypeError("elements has no tensors")
    size = _common_size(columns, "elements", None)
    return _map_columns(lambda row: traced(function)(template.fill(row)), columns, [0] * len(columns), size, "function")


@boundary
def op_vectorize(
    pyfunc: Callable[..., Any], *, excluded: Iterable[int | str] | None = None, signature: str | None = None
) -> Callable[..., Any]:
    """Make a function of scalars, or of tensors of few dimensions, broadcast over further dimensions.

    Args:
        pyfunc: Function of scalar tensors, or of tensors with the dimensions of `signature`, that returns a pytree of
            such tensors.
        excluded: Positions and names of the arguments that are passed to `pyfunc` unchanged. Every keyword argument
            must be among them.
        signature: The dimensions that `pyfunc` takes and returns, such as `"(m,n),(n)->(m)"`.

    Returns:
        Function of the same arguments with any leading dimensions, which broadcast as in NumPy. Its results have the
        broadcast dimensions in front of those that `pyfunc` returns.

    Raises:
        ArgumentError: `signature` cannot be read, or, when called: shapes or the number of arguments do not fit it, or
            do not broadcast.
        ArgumentTypeError: `pyfunc` is not callable; `excluded` holds something else; when called: an argument is not a
            tensor, or is given by name and not excluded.

    Gradient:
        That of each call.

    Example:
        >>> import multiop
        >>> dot = multiop.op_vectorize(lambda x, y: multiop.op_sum(x * y), signature="(n),(n)->()")
        >>> x = multiop.op_convert_to_tensor([[1, 2], [3, 4]])
        >>> multiop.op_convert_to_numpy(dot(x, x[0])).tolist()
        [5, 11]
    """
    _args.function(pyfunc, "pyfunc")
    given = tuple(excluded) if isinstance(excluded, Iterable) else () if excluded is None else (None,)
    if isinstance(excluded, str) or not all(isinstance(entry, (int, str)) for entry in given):
        raise errors.ArgumentTypeError(f"excluded must hold positions and names, got {excluded!r}")
    untouched = set(given)
    inputs, outputs = (None, None) if signature is None else _core_dimensions(signature)

    @functools.wraps(pyfunc)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            unknown = kwargs.keys() - untouched
            if unknown:
                raise errors.ArgumentTypeError(f"{min(unknown)} is given by name; give it by position, or exclude it")
            places = [k for k in range(len(args)) if k not in untouched]
            if inputs is not None and len(inputs) != len(places):
                raise errors.ArgumentError(f"{len(places)} arguments for the signature {signature!r}")
            operands = [_tensor(args[k], f"argument {k}") for k in places]
            core = inputs or [()] * len(places)
            sizes: dict[str, int] = {}
            loops = [
                _loop_shape(x, dims, sizes, f"argument {k}") for x, dims, k in zip(operands, core, places, strict=True)
            ]
            loop = _broadcast_shapes(loops)

            def call(row: Sequence[Any]) -> Any:
                given = list(args)
                for k, x in zip(places, row, strict=True):
                    given[k] = x
                return _check_returned(traced(pyfunc)(*given, **kwargs), outputs, sizes)

            if not loop:
                return call(operands)
            n = math.prod(loop)
            axes = [0 if n == 1 or math.prod(own) != 1 else None for own in loops]
            rows = []
            for x, own, axis in zip(operands, loops, axes, strict=True):
                rest = tuple(x.shape)[len(own) :]
                if axis is None:
                    rows.append(op_reshape(x, rest))
                else:
                    rows.append(op_reshape(op_broadcast_to(x, (*loop, *rest)), (n, *rest)))
            results = _map_columns(call, rows, axes, n, "pyfunc")
            return _tree.map(lambda y: None if y is None else op_reshape(y, (*loop, *tuple(y.shape)[1:])), results)
        except errors.MultiopError as error:
            arguments = {"pyfunc": pyfunc, "excluded": excluded, "signature": signature}
            explained = explain(error, "op_vectorize", arguments, runs_user_code=True)
            shorten(explained)
            raise explained

    return call


# pytrees


class _Template:
    """The structure of a pytree of tensors, which may contain `None`, and their shapes and dtypes."""

    def __init__(self, structure: Any, given: list[bool], tensors: Sequence[Any]) -> None:
        self.structure, self.given = structure, given
        self.specs = [_spec(x) for x in tensors]

    def fill(self, tensors: Iterable[Any]) -> Any:
        """Return the pytree with `tensors` in it."""
        entries = iter(tensors)
        return _tree.unflatten(self.structure, [next(entries) if given else None for given in self.given])

    def like(self, tensors: Sequence[Any]) -> _Template:
        """Return the template of the same structure for `tensors`."""
        return _Template(self.structure, self.given, tensors)

    def same(self, tree: Any, what: str, other: str) -> list[Any]:
        """Return the tensors of `tree`, which must have this template; the error calls it that of `other`."""
        template, tensors = _take(tree, what)
        if template.structure != self.structure or template.given != self.given:
            raise errors.ArgumentError(f"{what} must have the structure of {other}, got {_args.describe(tree)}")
        for (shape, dtype), (wanted_shape, wanted_dtype) in zip(template.specs, self.specs, strict=True):
            if dtype != wanted_dtype or not _args.fits(shape, wanted_shape):
                raise errors.ArgumentError(
                    f"{what} has {dtype}{_text(shape)} where {other} has {wanted_dtype}{_text(wanted_shape)}; "
                    f"they must be alike"
                )
        return tensors


def _take(tree: Any, what: str) -> tuple[_Template, list[Any]]:
    """Return the template of a pytree, and its tensors."""
    leaves, structure = _tree.flatten(tree)
    tensors = [_tensor(leaf, what) for leaf in leaves if leaf is not None]
    return _Template(structure, [leaf is not None for leaf in leaves], tensors), tensors


def _tensors(operands: tuple[PyTree, ...]) -> Any:
    """Return the operands of branches, with tensors for their leaves."""
    template, tensors = _take(operands, "operands")
    return template.fill(tensors)


def _tensor(leaf: Any, what: str) -> Any:
    backend = active()
    try:
        x = backend.convert(leaf)
        return backend.convert(x, backend.dtype_name(x))  # no longer weak, on JAX
    except errors.MultiopError as error:
        raise type(error)(f"{what}: {error.args[0]}{_tree.how_to_register(leaf)}") from None


def _spec(x: Any) -> tuple[Any, str]:
    try:
        return tuple(x.shape), active().dtype_name(x)
    except ValueError:  # a TensorFlow shape of unknown rank has no length
        return None, active().dtype_name(x)


def _text(shape: Any) -> str:
    return "[?]" if shape is None else f"[{', '.join(map(str, shape))}]"


def _alike(
    functions: Sequence[Callable[..., Any]], names: Sequence[str], operands: Sequence[Any]
) -> tuple[list[Callable[[], list[Any]]], list[tuple[_Template, str]]]:
    """Return the branches as a backend takes them, and a list to which the first to run adds its template and name."""
    seen: list[tuple[_Template, str]] = []

    def flat(function: Callable[..., Any], name: str) -> list[Any]:
        returned = traced(function)(*operands)
        if seen:
            return seen[0][0].same(returned, f"what {name} returns", f"what {seen[0][1]} returns")
        template, tensors = _take(returned, f"what {name} returns")
        seen.append((template, name))
        return tensors

    for function, name in zip(functions, names, strict=True):
        _args.function(function, name)
    return [functools.partial(flat, *entry) for entry in zip(functions, names, strict=True)], seen


# single arguments


def _predicate(value: Any, what: str) -> Any:
    """Return a Python bool or a scalar tensor of dtype bool."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    return _scalar(value, what, _dtypes.BOOLEAN, "bool")


def _integer(value: Any, what: str) -> Any:
    """Return a Python int or a scalar tensor of integers."""
    if isinstance(value, _INTEGRAL) and not isinstance(value, bool):
        return operator.index(value)
    return _scalar(value, what, _dtypes.INTEGER, "int")


def _scalar(value: Any, what: str, dtypes: tuple[str, ...], kind: str) -> Any:
    if not (active().is_tensor(value) or isinstance(value, np.ndarray) or foreign.owner(value) is not None):
        raise errors.ArgumentTypeError(
            f"{what} must be a scalar {kind} tensor or a Python {kind}, got {_args.describe(value)}"
        )
    x = _tensor(value, what)
    shape, dtype = _spec(x)
    if dtype not in dtypes:
        raise errors.DTypeError(f"{what} must be of dtype {kind}, got {dtype}")
    if not _args.fits(shape, ()):
        raise errors.ArgumentError(f"{what} must be a scalar, got shape {shape}")
    return x


def _count(value: Any, what: str) -> int:
    """Return an int that is not negative."""
    if not isinstance(value, _INTEGRAL) or isinstance(value, bool):
        raise errors.ArgumentTypeError(f"{what} must be an int, got {_args.describe(value)}")
    if value < 0:
        raise errors.ArgumentError(f"{what} must not be negative, got {value}")
    return operator.index(value)


def _common_size(tensors: Sequence[Any], what: str, size: int | None, axis: int = 0) -> int | None:
    """Return the size that all tensors have along an axis, which must be `size` if given; `None` if it is unknown."""
    for x in tensors:
        shape, _ = _spec(x)
        if shape is None:
            raise errors.ArgumentError(f"{what} holds a tensor whose number of dimensions is known only at run time")
        if len(shape) <= axis:
            raise errors.ArgumentError(f"{what} holds a tensor of shape {shape}, which has no axis {axis}")
        if size is not None and shape[axis] not in (None, size):
            raise errors.ArgumentError(f"{what} holds a tensor of size {shape[axis]} along axis {axis}, not {size}")
        size = shape[axis] if size is None else size
    return size


# the associative scan


def _prefixes(combine: Callable[[list[Any], list[Any]], list[Any]], xs: list[Any], axis: int) -> list[Any]:
    """Combine pairs of neighbours, scan these recursively, and fill in the entries between."""
    n = xs[0].shape[axis]
    if n < 2:
        return xs
    odd = _prefixes(combine, combine(_every(xs, axis, 0, n - 1, 2), _every(xs, axis, 1, n, 2)), axis)
    even = _every(xs, axis, 0, 1)
    if n > 2:
        later = combine(_every(odd, axis, 0, (n - 1) // 2), _every(xs, axis, 2, n, 2))
        even = [op_concatenate(pair, axis) for pair in zip(even, later, strict=True)]
    interleaved = []
    for x, y in zip(even, odd, strict=True):
        shape = tuple(y.shape)
        pairs = op_stack([_every([x], axis, 0, n // 2)[0], y], axis + 1)
        whole = op_reshape(pairs, (*shape[:axis], n // 2 * 2, *shape[axis + 1 :]))
        interleaved.append(op_concatenate([whole, *_every([x], axis, n // 2, n - n // 2)], axis) if n % 2 else whole)
    return interleaved


def _every(xs: Sequence[Any], axis: int, start: int, stop: int, step: int = 1) -> list[Any]:
    index = (*[slice(None)] * axis, slice(start, stop, step))
    return [x[index] for x in xs]


# mapping


def _map_columns(
    function: Callable[[Sequence[Any]], Any], columns: Sequence[Any], axes: list[Any], size: int | None, name: str
) -> Any:
    """Map a function of a list of tensors over the first axis of those whose entry in `axes` is 0."""
    seen: list[_Template] = []

    def flat(*row: Any) -> list[Any]:
        template, tensors = _take(function(row), f"what {name} returns")
        seen[:] = [template]
        return tensors

    outputs = active().vmap(flat, axes, size)(*columns)
    return seen[0].fill(outputs)


_CORE = r"\((?:\w+(?:,\w+)*)?\)"
_CORES = rf"{_CORE}(?:,{_CORE})*"


def _core_dimensions(signature: str) -> list[list[tuple[str, ...]]]:
    """Return the names of the dimensions of each argument and of each result."""
    text = re.sub(r"\s", "", signature) if isinstance(signature, str) else ""
    if not re.fullmatch(f"{_CORES}->{_CORES}", text):
        raise errors.ArgumentError(f'signature must look like "(m,n),(n)->(m)", got {signature!r}')
    return [[tuple(re.findall(r"\w+", dims)) for dims in re.findall(_CORE, side)] for side in text.split("->")]


def _loop_shape(x: Any, dims: tuple[str, ...], sizes: dict[str, int], what: str) -> tuple[int, ...]:
    """Return the leading dimensions of an argument; record the sizes of the others by name in `sizes`."""
    shape, _ = _spec(x)
    if shape is None or None in shape:
        raise errors.ArgumentError(f"{what} must have a shape that is known before the run, got {_text(shape)}")
    n = len(shape) - len(dims)
    if n < 0:
        raise errors.ArgumentError(f"{what} has shape {shape}, and the signature gives it {len(dims)} dimensions")
    _note_sizes(shape[n:], dims, sizes, what)
    return tuple(shape[:n])


def _note_sizes(shape: Sequence[int], dims: tuple[str, ...], sizes: dict[str, int], what: str) -> None:
    for dim, size in zip(dims, shape, strict=True):
        wanted = int(dim) if dim.isdigit() else sizes.setdefault(dim, size)
        if wanted != size:
            raise errors.ArgumentError(f"{what} has size {size} for the dimension {dim} of the signature, not {wanted}")


def _broadcast_shapes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise errors.ArgumentError(f"shapes {', '.join(map(str, shapes))} do not broadcast") from None


def _check_returned(returned: Any, core: list[tuple[str, ...]] | None, sizes: dict[str, int]) -> Any:
    """Return what `pyfunc` returned if it has the shapes of the signature, or is scalar if there is no signature."""
    template, tensors = _take(returned, "what pyfunc returns")
    core = [()] * len(tensors) if core is None else core
    if len(core) != len(tensors):
        raise errors.ArgumentError(f"pyfunc returned {len(tensors)} tensors, the signature has {len(core)} results")
    known = dict(sizes)
    for y, dims in zip(tensors, core, strict=True):
        shape, _ = _spec(y)
        if not _args.fits(shape, (None,) * len(dims)):
            raise errors.ArgumentError(f"pyfunc returned a tensor of shape {shape}, not of {len(dims)} dimensions")
        if shape is not None and None not in shape:
            _note_sizes(shape, dims, known, "what pyfunc returns")
    return template.fill(tensors)
