"""Transforms that differentiate functions: gradients, products with Jacobians, Jacobians.

They nest in any order, with `vmap` and `jit` too, work on pytrees, and keep every rule given with `op_custom_gradient`.
These files do what is the same for every backend: they select and check arguments, and flatten pytrees. A backend's
`vjp`, `jvp`, `vmap` and `jit` see functions from a list of tensors to a list of tensors.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

from multiop import errors
from multiop._call.frames import shorten
from multiop._loading import registry
from multiop._loading.registry import active
from multiop._values import args as _args, dtypes, tree
from multiop._values.types import PyTree
from multiop.autodiff import _flat
from multiop.autodiff._transformed import decorate_transformed, explain_keywords
from multiop.frontends.creation import op_zeros
from multiop.frontends.elementwise import op_add, op_multiply
from multiop.frontends.shapes import op_concatenate, op_reshape, op_transpose

P = ParamSpec("P")
T = TypeVar("T")
Aux = TypeVar("Aux")
F = TypeVar("F", bound=Callable[..., Any])
Argnums = int | Sequence[int]
Trees = Sequence[PyTree]
Pullback = Callable[[PyTree], tuple[PyTree, ...]]
Yes = Literal[True]
No = Literal[False]
Pair = tuple[Any, Any]  # what is known of a function's result, or of a transform's, where `has_aux` may be either


@overload
def grad(fun: Callable[P, object], argnums: int = 0, has_aux: No = False) -> Callable[P, PyTree]: ...
@overload
def grad(fun: Callable[P, object], argnums: Sequence[int], has_aux: No = False) -> Callable[P, tuple[PyTree, ...]]: ...
@overload
def grad(
    fun: Callable[P, tuple[object, Aux]], argnums: Argnums = 0, *, has_aux: Yes
) -> Callable[P, tuple[PyTree, Aux]]: ...
@overload
def grad(fun: Callable[P, Pair], argnums: Argnums = 0, *, has_aux: bool) -> Callable[P, Pair]: ...
@overload
def grad(fun: Callable[P, Pair], argnums: Argnums, has_aux: bool) -> Callable[P, Pair]: ...
@explain_keywords
def grad(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar-valued function.

    Args:
        fun: Function that returns one real tensor of shape `()`. Its arguments may be pytrees.
        argnums: Position, or positions, of the arguments to differentiate with respect to.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.

    Returns:
        Function of the same arguments. It returns the gradient in the structure and dtypes of the chosen argument, or
        a tuple of gradients where `argnums` is a sequence; `(gradient, aux)` where `has_aux`.

    Raises:
        ArgumentError: The output is not a scalar, or `argnums` is out of range.
        DTypeError: The output is not real, or a chosen argument holds integers.
        ArgumentTypeError: `fun` is not callable, or does not return a tensor.

    Gradient:
        Zeros for an argument that the output does not depend on. For a complex argument, the gradient follows the
        conjugate convention of TensorFlow and PyTorch: it points where the output grows fastest.

    Example:
        >>> import multiop
        >>> float(multiop.grad(lambda x: x * x * x)(2.0))
        12.0
        >>> gradient = multiop.grad(lambda p: p["w"] * p["w"] + p["b"])({"w": 3.0, "b": 1.0})
        >>> {name: float(g) for name, g in gradient.items()}
        {'w': 6.0, 'b': 1.0}
    """
    chosen = _check_transform(fun, argnums, has_aux, "grad")
    return decorate_transformed(fun, grad, argnums, has_aux)(_gradient(fun, chosen, has_aux, "grad"))


def _gradient(fun: Callable[..., Any], chosen: int | tuple[int, ...], has_aux: bool, name: str) -> Callable[..., Any]:
    differentiated = _value_and_grad(fun, chosen, has_aux, name)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, grads = differentiated(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    gradient.__wrapped__ = fun  # type: ignore[attr-defined]  # whose parameters errors name
    return gradient


@overload
def value_and_grad(fun: Callable[P, T], argnums: int = 0, has_aux: No = False) -> Callable[P, tuple[T, PyTree]]: ...
@overload
def value_and_grad(
    fun: Callable[P, T], argnums: Sequence[int], has_aux: No = False
) -> Callable[P, tuple[T, tuple[PyTree, ...]]]: ...
@overload
def value_and_grad(
    fun: Callable[P, tuple[T, Aux]], argnums: Argnums = 0, *, has_aux: Yes
) -> Callable[P, tuple[tuple[T, Aux], PyTree]]: ...
@overload
def value_and_grad(fun: Callable[P, Pair], argnums: Argnums = 0, *, has_aux: bool) -> Callable[P, Pair]: ...
@overload
def value_and_grad(fun: Callable[P, Pair], argnums: Argnums, has_aux: bool) -> Callable[P, Pair]: ...
@explain_keywords
def value_and_grad(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes a scalar-valued function and its gradient.

    Args:
        fun: Function that returns one real tensor of shape `()`. Its arguments may be pytrees.
        argnums: Position, or positions, of the arguments to differentiate with respect to.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.

    Returns:
        Function of the same arguments that returns `(output, gradient)`, or `((output, aux), gradient)` where
        `has_aux`; the gradient is as `grad` returns it.

    Raises:
        ArgumentError: The output is not a scalar, or `argnums` is out of range.
        DTypeError: The output is not real, or a chosen argument holds integers.
        ArgumentTypeError: `fun` is not callable, or does not return a tensor.

    Example:
        >>> import multiop
        >>> value, gradient = multiop.value_and_grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 5.0)
        >>> float(value), [float(g) for g in gradient]
        (10.0, [5.0, 2.0])
    """
    chosen = _check_transform(fun, argnums, has_aux, "value_and_grad")
    differentiated = _value_and_grad(fun, chosen, has_aux, "value_and_grad")
    return decorate_transformed(fun, value_and_grad, argnums, has_aux)(differentiated)


def _value_and_grad(
    fun: Callable[..., Any], chosen: int | tuple[int, ...], has_aux: bool, name: str
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        backend = active() if registry.is_overridden else registry._backend
        flat = _flat.FlatFunction(fun, args, kwargs, chosen, has_aux, backend, name)
        flat.is_scalar = True
        outputs, pullback, aux = backend.vjp(flat, flat.primals, False)
        if flat.is_unconnected:
            flat.warn_unconnected()
        value = outputs[0]
        grads = pullback([backend.op_ones_like(value, None)])
        grads = grads[0] if flat.is_one_tensor else flat.fill(grads) if flat.bare else flat.arguments(grads)
        return ((value, flat.aux(aux)) if has_aux else value), grads

    return call


def _check_transform(fun: Any, argnums: Any, has_aux: Any, name: str) -> int | tuple[int, ...]:
    """Check the arguments of the transform `name`; return the positions that it differentiates with respect to."""
    _args.function(fun, f"{name}: fun")
    _args.bool_flag(has_aux, f"{name}: has_aux")
    return _flat.argnums(argnums, f"{name}: argnums")


@overload
def vjp(fun: Callable[..., T], *primals: PyTree, has_aux: No = False, batched: bool = False) -> tuple[T, Pullback]: ...
@overload
def vjp(
    fun: Callable[..., tuple[T, Aux]], *primals: PyTree, has_aux: Yes, batched: bool = False
) -> tuple[T, Pullback, Aux]: ...
@overload
def vjp(fun: Callable[..., Pair], *primals: PyTree, has_aux: bool, batched: bool = False) -> tuple[Any, ...]: ...
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, batched: bool = False) -> tuple[Any, ...]:
    """Evaluate a function, and return its vector-Jacobian product.

    Args:
        fun: Function of `primals`; returns a pytree of tensors.
        *primals: Where to evaluate it: pytrees of real or complex tensors.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.
        batched: Whether cotangents have an axis more in front, which the gradients get too: one pullback for each entry
            along it, all in one call.

    Returns:
        `(output, pullback)`, or `(output, pullback, aux)` where `has_aux`. `pullback(cotangents)` takes a pytree in
        the structure of the output, with `None` for zero and for an integer output, and returns a tuple with one
        gradient per primal. It may be called more than once, and be differentiated.

    Raises:
        DTypeError: A primal holds integers, or a cotangent has another dtype than its output.
        ArgumentError: Cotangents of another structure or shape than the output.
        ArgumentTypeError: `fun` is not callable, or does not return tensors.

    Gradient:
        Zeros for a primal that the output does not depend on. Complex cotangents and gradients follow the conjugate
        convention of TensorFlow and PyTorch.

    Example:
        >>> import multiop
        >>> output, pullback = multiop.vjp(lambda x, y: x * y, 2.0, 5.0)
        >>> float(output), [float(g) for g in pullback(10.0)]
        (10.0, [50.0, 20.0])
    """
    _args.function(fun, "vjp: fun")
    _args.bool_flag(has_aux, "vjp: has_aux")
    _args.bool_flag(batched, "vjp: batched")
    backend = active()
    flat = _flat.FlatFunction(fun, primals, {}, tuple(range(len(primals))), has_aux, backend, "vjp")
    try:
        outputs, pull, aux = backend.vjp(flat, flat.primals)
    except Exception as error:
        shorten(error)
        raise
    flat.warn_unconnected()
    template = flat.output_template

    def pullback(cotangents: PyTree) -> tuple[Any, ...]:
        try:
            leaves = _flat.leaves_like(cotangents, template.structure)
        except ValueError as error:
            raise errors.ArgumentError(f"vjp: the cotangents must have the structure of the output: {error}") from None
        flat_cotangents = []
        batch = _flat.leading_axis(cotangents, "vjp") if batched else ()
        for k, (position, output) in enumerate(zip(template.positions, outputs, strict=True)):
            if backend.dtype_name(output) in dtypes.INEXACT:
                flat_cotangents.append(
                    _flat.convert_like(leaves[position], output, backend, f"vjp: cotangent {k}", batch)
                )
            else:
                flat_cotangents.append(None)
        try:
            return flat.arguments(_map_linear(pull, flat_cotangents, batch, backend))
        except Exception as error:
            shorten(error)
            raise

    output = template.fill(outputs)
    return (output, pullback, flat.aux(aux)) if has_aux else (output, pullback)


@overload
def jvp(
    fun: Callable[..., T], primals: Trees, tangents: Trees, has_aux: No = False, batched: bool = False
) -> tuple[T, PyTree]: ...
@overload
def jvp(
    fun: Callable[..., tuple[T, Aux]], primals: Trees, tangents: Trees, has_aux: Yes, batched: bool = False
) -> tuple[T, PyTree, Aux]: ...
@overload
def jvp(
    fun: Callable[..., Pair], primals: Trees, tangents: Trees, has_aux: bool, batched: bool = False
) -> tuple[Any, ...]: ...
def jvp(
    fun: Callable[..., Any], primals: Trees, tangents: Trees, has_aux: bool = False, batched: bool = False
) -> tuple[Any, ...]:
    """Evaluate a function and its Jacobian-vector product, in forward mode.

    Args:
        fun: Function of `primals`; returns a pytree of tensors.
        primals: Tuple or list of the arguments of `fun`: pytrees of real or complex tensors.
        tangents: Tuple or list in the structure, shapes and dtypes of `primals`; `None` is zero.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.
        batched: Whether tangents have an axis more in front, which those of the output get too: `fun` is evaluated
            once for all entries along it.

    Returns:
        `(output, output_tangents)`, or `(output, output_tangents, aux)` where `has_aux`. The tangents have the
        structure of the output, with `None` for an integer output.

    Raises:
        DTypeError: A primal holds integers, or a tangent has another dtype than its primal.
        ArgumentError: Tangents of another structure or shape than the primals.
        ArgumentTypeError: `fun` is not callable, or does not return tensors, or `primals` is not a tuple or list.
        NonLinearRuleError: A custom gradient rule is not linear in its upstream gradient, so that it has no transpose.

    Example:
        >>> import multiop
        >>> output, tangent = multiop.jvp(lambda x, y: x * y, (2.0, 5.0), (1.0, 0.0))
        >>> float(output), float(tangent)
        (10.0, 5.0)
    """
    _args.function(fun, "jvp: fun")
    _args.bool_flag(has_aux, "jvp: has_aux")
    _args.bool_flag(batched, "jvp: batched")
    try:
        return _jvp(fun, primals, tangents, has_aux, "jvp", batched=batched)
    except Exception as error:
        shorten(error)
        raise


def _jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool,
    name: str,
    is_symmetric: bool = False,
    batched: bool = False,
) -> tuple[Any, ...]:
    for what, value in (("primals", primals), ("tangents", tangents)):
        if type(value) not in (tuple, list):
            raise errors.ArgumentTypeError(
                f"{name}: {what} must be a tuple or list of arguments, got {_args.describe(value)}"
            )
    if len(primals) != len(tangents):
        raise errors.ArgumentError(f"{name}: {len(tangents)} tangents were given for {len(primals)} primals")
    backend = active()
    flat = _flat.FlatFunction(fun, tuple(primals), {}, tuple(range(len(primals))), has_aux, backend, name)
    if is_symmetric:  # the Jacobian of `fun`: reverse mode gives its products
        outputs, pullback, aux = backend.vjp(flat, flat.primals, False)
        out_tangents = pullback(flat.tangents(tangents))
    elif batched:
        given = flat.tangents(tangents, True)
        outputs, push, aux = _linearize(flat)
        out_tangents = _map_linear(push, given, _flat.leading_axis(tangents, name), backend)
    else:
        outputs, out_tangents, aux = backend.jvp(flat, flat.primals, flat.tangents(tangents))
    flat.warn_unconnected()
    template = flat.output_template
    inexact = [
        t if backend.dtype_name(y) in dtypes.INEXACT else None for y, t in zip(outputs, out_tangents, strict=True)
    ]
    results = template.fill(outputs), template.fill(inexact)
    return (*results, flat.aux(aux)) if has_aux else results


def _map_linear(fun: Callable[[list[Any]], Any], xs: list[Any], batch: tuple[Any, ...], backend: Any) -> list[Any]:
    """Return `fun(xs)`; where there is a `batch`, that of each entry along the first axis of `xs`, or of `None`."""
    if not batch:
        return list(fun(xs))
    given = [k for k, x in enumerate(xs) if x is not None]

    def one(*slices: Any) -> Any:
        filled: list[Any] = [None] * len(xs)
        for k, x in zip(given, slices, strict=True):
            filled[k] = x
        return list(fun(filled))

    return list(backend.vmap(one, [0] * len(given), batch[0], True)(*(xs[k] for k in given)))


def _linearize(flat: _flat.FlatFunction) -> tuple[list[Any], Callable[[list[Any]], Any], list[Any]]:
    """Return the outputs of a function, the map from tangents to theirs, and the aux.

    Where a backend has no such map, each call of the map evaluates the function again; all entries of a batch together.
    """
    backend = flat.backend
    if hasattr(backend, "linearize") and (found := backend.linearize(flat, flat.primals)) is not None:
        outputs, aux, _, make_push = found
        return outputs, make_push(), aux
    outputs, aux = flat(*flat.primals)
    return outputs, lambda tangents: backend.jvp(flat, flat.primals, tangents)[1], aux


def linearize(fun: Callable[..., T], *primals: PyTree, batched: bool = False) -> tuple[T, Callable[..., PyTree]]:
    """Evaluate a function, and return the map from tangents of its arguments to those of its output.

    On NumPy, and on PyTorch where `fun` is made of common operations, the map goes through what was recorded, and does
    not evaluate `fun` again. Else it does, once for each call, and for all entries of a batch together: under `jit`,
    the compiler takes the copies for one.

    Args:
        fun: Function of `primals`; returns a pytree of tensors.
        *primals: Where to evaluate it: pytrees of real or complex tensors.
        batched: Whether tangents have an axis more in front, which those of the output get too.

    Returns:
        `(output, push)`. `push(*tangents)` takes one pytree like each primal, `None` for zero, and returns the tangents
        in the structure of the output, with `None` for an integer output.

    Raises:
        DTypeError: A primal holds integers, or a tangent has another dtype than its primal.
        ArgumentError: Tangents of another number, structure or shape than the primals.
        ArgumentTypeError: `fun` is not callable, or does not return tensors.
        NonLinearRuleError: A custom gradient rule is not linear in its upstream gradient, so that it has no transpose.

    Example:
        >>> import multiop
        >>> output, push = multiop.linearize(lambda x, y: x * y, 2.0, 5.0)
        >>> float(output), float(push(1.0, 0.0)), float(push(0.0, 1.0))
        (10.0, 5.0, 2.0)
    """
    _args.function(fun, "linearize: fun")
    _args.bool_flag(batched, "linearize: batched")
    backend = active()
    flat = _flat.FlatFunction(fun, primals, {}, tuple(range(len(primals))), False, backend, "linearize")
    try:
        outputs, push_flat, _ = _linearize(flat)
    except Exception as error:
        shorten(error)
        raise
    flat.warn_unconnected()
    template = flat.output_template
    is_inexact = [backend.dtype_name(y) in dtypes.INEXACT for y in outputs]

    def push(*tangents: PyTree) -> PyTree:
        if len(tangents) != len(primals):
            raise errors.ArgumentError(f"linearize: {len(tangents)} tangents were given for {len(primals)} primals")
        batch = _flat.leading_axis(tangents, "linearize") if batched else ()
        try:
            pushed = _map_linear(push_flat, flat.tangents(tangents, batched), batch, backend)
        except Exception as error:
            shorten(error)
            raise
        return template.fill([t if keep else None for t, keep in zip(pushed, is_inexact, strict=True)])

    return template.fill(outputs), push


def _typed_as(other: F) -> Callable[[Callable[..., Any]], F]:
    """Return a decorator that says of a function that it takes and returns what another one does."""
    return lambda fun: cast(F, fun)


@_typed_as(jvp)
def op_jvp(fun: Callable[..., Any], primals: Trees, tangents: Trees, has_aux: bool = False) -> tuple[Any, ...]:
    """Evaluate a function and its Jacobian-vector product: `jvp` under its name among the ops.

    Args:
        fun: Function of `primals`; returns a pytree of tensors.
        primals: Tuple or list of the arguments of `fun`: pytrees of real or complex tensors.
        tangents: Tuple or list in the structure, shapes and dtypes of `primals`; `None` is zero.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.

    Returns:
        `(output, output_tangents)`, or `(output, output_tangents, aux)` where `has_aux`.

    Raises:
        DTypeError: A primal holds integers, or a tangent has another dtype than its primal.
        ArgumentError: Tangents of another structure or shape than the primals.
        ArgumentTypeError: `fun` is not callable, or does not return tensors, or `primals` is not a tuple or list.
        NonLinearRuleError: A custom gradient rule is not linear in its upstream gradient, so that it has no transpose.

    Example:
        >>> import multiop
        >>> output, tangent = multiop.op_jvp(lambda x: x * x, (3.0,), (1.0,))
        >>> float(output), float(tangent)
        (9.0, 6.0)
    """
    _args.function(fun, "op_jvp: fun")
    _args.bool_flag(has_aux, "op_jvp: has_aux")
    try:
        return _jvp(fun, primals, tangents, has_aux, "op_jvp")
    except Exception as error:
        shorten(error)
        raise


op_jvp.__name__ = "jvp"  # as in `multiop.ops`


@explain_keywords
def jacrev(
    fun: Callable[P, object], argnums: Argnums = 0, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[P, PyTree]:
    """Return a function that computes the Jacobian of a function row by row, in reverse mode.

    Cheaper than `jacfwd` where there are fewer outputs than inputs.

    Args:
        fun: Function that returns a pytree of real or complex tensors. Its arguments may be pytrees.
        argnums: Position, or positions, of the arguments to differentiate with respect to.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.
        chunk_size: How many rows to compute at a time, which bounds the memory beside the result; `None` for all.

    Returns:
        Function of the same arguments. For each output, in the output's structure, it returns the pytree of the
        chosen argument (a tuple of them where `argnums` is a sequence) with a tensor of shape
        `(*output.shape, *input.shape)` in place of each input; `(jacobian, aux)` where `has_aux`.

    Raises:
        ArgumentError: `argnums` is out of range.
        DTypeError: An input or output is an integer, or input and output are both complex.
        ArgumentTypeError: `fun` is not callable, or does not return tensors.

    Gradient:
        A complex output of real inputs has the complex derivative. A real output of complex inputs has in each row the
        gradient in the conjugate convention, as `grad` gives it. From complex to complex there is no single matrix
        unless the function is holomorphic, and the call is an error: split the output into real and imaginary part.

    Example:
        >>> import multiop
        >>> x = multiop.op_convert_to_tensor([1.0, 2.0])
        >>> multiop.op_convert_to_numpy(multiop.jacrev(lambda x: x * x)(x)).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    rows = _jacobian(_in_chunks(_by_rows, chunk_size, "jacrev"), fun, argnums, has_aux, "jacrev")
    return decorate_transformed(fun, jacrev, argnums, has_aux, chunk_size)(rows)


def _in_chunks(compute: Callable[..., Any], chunk_size: Any, name: str) -> Callable[..., Any]:
    """Return what computes a Jacobian so many rows, or columns, at a time."""
    if chunk_size is not None:
        chunk_size = _args.count(chunk_size, f"{name}: chunk_size", 1)
    return functools.partial(compute, chunk_size=chunk_size)


def _map_chunks(
    fun: Callable[..., Any], units: Callable[[int, int], list[Any]], n: int, chunk_size: int | None, backend: Any
) -> list[Any]:
    """Return what a linear function makes of `n` units, each result along a new first axis; so many at a time."""
    step = chunk_size or n
    parts = []
    for start in range(0, n, step):
        stop = min(start + step, n)
        given = units(start, stop)
        mapped = backend.vmap(lambda *xs: list(fun(list(xs))), [0] * len(given), stop - start, True)
        parts.append(list(mapped(*given)))
    return parts[0] if len(parts) == 1 else [op_concatenate(list(rows), 0) for rows in zip(*parts, strict=True)]


def _jacobian(
    compute: Callable[..., Any], fun: Callable[..., Any], argnums: Argnums, has_aux: bool, name: str
) -> Callable[..., Any]:
    chosen = _check_transform(fun, argnums, has_aux, name)

    @functools.wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        flat = _flat.FlatFunction(fun, args, kwargs, chosen, has_aux, active(), name)
        blocks, aux = compute(flat)
        flat.warn_unconnected()
        result = flat.output_template.fill(list(map(flat.arguments, blocks)))
        return (result, flat.aux(aux)) if has_aux else result

    return jacobian


def _by_rows(flat: _flat.FlatFunction, chunk_size: int | None = None) -> tuple[list[Any], Any]:
    """Return the derivatives of each output with respect to each input, in reverse mode, and the aux."""
    outputs, pullback, aux = flat.backend.vjp(flat.inexact, flat.primals)
    return _pull_rows(flat, outputs, pullback, aux, chunk_size)


def _pull_rows(
    flat: _flat.FlatFunction, outputs: list[Any], pullback: Callable[..., Any], aux: Any, chunk_size: int | None
) -> tuple[list[Any], Any]:
    backend, primals = flat.backend, flat.primals
    flat.refuse_complex_to_complex(outputs)
    basis = _flat.Basis(outputs, backend, flat.name)
    if basis.n:
        pulled = _map_chunks(pullback, basis.units, basis.n, chunk_size, backend)
    else:
        pulled = [op_zeros((0, *x.shape), backend.dtype_name(x)) for x in primals]
    blocks = []
    for y, own in zip(outputs, basis.rows, strict=True):
        parts = [_join_rows(rows_of_x[own], _flat.is_complex(y, backend)) for rows_of_x in pulled]
        blocks.append([op_reshape(part, (*y.shape, *x.shape)) for part, x in zip(parts, primals, strict=True)])
    return blocks, aux


@explain_keywords
def jacfwd(
    fun: Callable[P, object], argnums: Argnums = 0, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[P, PyTree]:
    """Return a function that computes the Jacobian of a function column by column, in forward mode.

    Cheaper than `jacrev` where there are fewer inputs than outputs.

    Args:
        fun: Function that returns a pytree of real or complex tensors. Its arguments may be pytrees.
        argnums: Position, or positions, of the arguments to differentiate with respect to.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.
        chunk_size: How many columns to compute at a time, which bounds the memory beside the result; `None` for all.

    Returns:
        Function of the same arguments. For each output, in the output's structure, it returns the pytree of the
        chosen argument (a tuple of them where `argnums` is a sequence) with a tensor of shape
        `(*output.shape, *input.shape)` in place of each input; `(jacobian, aux)` where `has_aux`.

    Raises:
        ArgumentError: `argnums` is out of range.
        DTypeError: An input or output is an integer, or input and output are both complex.
        ArgumentTypeError: `fun` is not callable, or does not return tensors.
        NonLinearRuleError: A custom gradient rule is not linear in its upstream gradient, so that it has no transpose.

    Gradient:
        As `jacrev`: the same matrix in every case.

    Example:
        >>> import multiop
        >>> x = multiop.op_convert_to_tensor([1.0, 2.0])
        >>> multiop.op_convert_to_numpy(multiop.jacfwd(lambda x: x * x)(x)).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    columns = _jacobian(_in_chunks(_by_columns, chunk_size, "jacfwd"), fun, argnums, has_aux, "jacfwd")
    return decorate_transformed(fun, jacfwd, argnums, has_aux, chunk_size)(columns)


def _by_columns(flat: _flat.FlatFunction, chunk_size: int | None = None) -> tuple[list[Any], Any]:
    """Return the derivatives of each output with respect to each input, in forward mode, and the aux."""
    backend, primals = flat.backend, flat.primals
    basis = _flat.Basis(primals, backend, flat.name)
    specs: list[Any] = []

    def push(tangents: list[Any]) -> list[Any]:
        outputs, pushed, aux = backend.jvp(flat.inexact, primals, tangents)
        specs[:] = [tuple(y.shape) for y in outputs]
        flat.refuse_complex_to_complex(outputs)
        return [*pushed, *aux]

    linear = backend.linearize(flat.inexact, primals) if basis.n and hasattr(backend, "linearize") else None
    dtypes_given = {backend.dtype_name(x) for x in [*primals, *(linear[0] if linear else ())]}
    if linear is not None and len(dtypes_given) == 1 and sum(math.prod(y.shape) for y in linear[0]) <= basis.n:
        with contextlib.suppress(RuntimeError):  # PyTorch's, of a function that writes to what its gradient needs
            return _pull_rows(flat, linear[0], linear[2], linear[1], chunk_size)
    if linear is not None:
        outputs, aux, _, make_push = linear
        flat.refuse_complex_to_complex(outputs)
        specs, push_one = [tuple(y.shape) for y in outputs], make_push()
        columns = _map_chunks(push_one, basis.units, basis.n, chunk_size, backend)
    elif basis.n:
        pushed = _map_chunks(push, basis.units, basis.n, chunk_size, backend)
        columns, aux = pushed[: len(specs)], [stacked[0] for stacked in pushed[len(specs) :]]
    else:
        outputs, aux = flat.inexact(*primals)
        specs = [tuple(y.shape) for y in outputs]
        columns = [op_zeros((0, *y.shape), backend.dtype_name(y)) for y in outputs]
    blocks: list[Any] = []
    for shape, columns_of_y in zip(specs, columns, strict=True):
        blocks.append([])
        for x, own in zip(primals, basis.rows, strict=True):
            part = _join_rows(columns_of_y[own], _flat.is_complex(x, backend))
            blocks[-1].append(_swap_dimensions(op_reshape(part, (*x.shape, *shape)), len(x.shape), len(shape)))
    return blocks, aux


@explain_keywords
def jacobian(
    fun: Callable[P, object], argnums: Argnums = 0, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[P, PyTree]:
    """Return a function that computes the Jacobian of a function by the mode that takes fewer products.

    That is reverse mode, as `jacrev`, where there are fewer outputs than inputs, and else forward mode, as `jacfwd`.

    Args:
        fun: Function that returns a pytree of real or complex tensors. Its arguments may be pytrees.
        argnums: Position, or positions, of the arguments to differentiate with respect to.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.
        chunk_size: How many rows or columns to compute at a time, which bounds the memory beside the result; `None`
            for all.

    Returns:
        Function of the same arguments that returns what `jacrev` and `jacfwd` return.

    Raises:
        ArgumentError: `argnums` is out of range.
        DTypeError: An input or output is an integer, or input and output are both complex.
        ArgumentTypeError: `fun` is not callable, or does not return tensors.

    Gradient:
        As `jacrev`: the same matrix in every case. A custom gradient rule that is not linear in its upstream gradient
        has no forward mode: the Jacobian is then taken in reverse mode, whatever the shapes.

    Example:
        >>> import multiop
        >>> x = multiop.op_convert_to_tensor([1.0, 2.0])
        >>> multiop.op_convert_to_numpy(multiop.jacobian(lambda x: x * x)(x)).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    compute = _jacobian(_in_chunks(_by_fewer, chunk_size, "jacobian"), fun, argnums, has_aux, "jacobian")
    return decorate_transformed(fun, jacobian, argnums, has_aux, chunk_size)(compute)


def _by_fewer(flat: _flat.FlatFunction, chunk_size: int | None = None) -> tuple[list[Any], Any]:
    """Return the derivatives of each output with respect to each input, by rows or by columns, and the aux."""
    outputs, _ = flat.inexact(*flat.primals)
    n, m = (_flat.Basis(xs, flat.backend, flat.name).n for xs in (flat.primals, outputs))
    if m < n:
        return _by_rows(flat, chunk_size)
    try:
        return _by_columns(flat, chunk_size)
    except errors.NonLinearRuleError:
        return _by_rows(flat, chunk_size)


def _join_rows(rows: Any, is_complex: bool) -> Any:
    """Return `rows` as one matrix; where `is_complex`, their second half is the imaginary part of the first."""
    if not is_complex:
        return rows
    half = rows.shape[0] // 2
    return op_add(rows[:half], op_multiply(1j, rows[half:]))


def _swap_dimensions(x: Any, n_first: int, n_last: int) -> Any:
    """Return `x` with its last `n_last` dimensions moved before its first `n_first`."""
    if not n_first or not n_last:
        return x
    return op_transpose(x, (*range(n_first, n_first + n_last), *range(n_first)))


@explain_keywords
def hessian(
    fun: Callable[P, object], argnums: Argnums = 0, has_aux: bool = False, chunk_size: int | None = None
) -> Callable[P, PyTree]:
    """Return a function that computes the matrix of second derivatives: the Jacobian of `jacrev`.

    Args:
        fun: Function that returns a pytree of real tensors; of shape `()` for the Hessian proper.
        argnums: Position, or positions, of the arguments to differentiate with respect to.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.
        chunk_size: How many columns to compute at a time, which bounds the memory beside the result; `None` for all.

    Returns:
        Function of the same arguments. For each output, in the output's structure, it returns the pytree of the
        chosen argument nested in itself, with tensors of shape `(*output.shape, *input.shape, *input.shape)`;
        `(hessian, aux)` where `has_aux`.

    Raises:
        ArgumentError: `argnums` is out of range.
        DTypeError: An input or output is an integer, or an input is complex: split it into real and imaginary part.
        ArgumentTypeError: `fun` is not callable, or does not return tensors.
        NonLinearRuleError: A custom gradient rule is not linear in its upstream gradient, so that it has no transpose.

    Example:
        >>> import multiop
        >>> x = multiop.op_convert_to_tensor([1.0, 2.0])
        >>> h = multiop.hessian(lambda x: x[0] * x[0] * x[1])(x)
        >>> multiop.op_convert_to_numpy(h).tolist()
        [[4.0, 2.0], [2.0, 0.0]]
    """
    options = argnums, has_aux, "hessian"
    columns, rows = (_in_chunks(compute, chunk_size, "hessian") for compute in (_by_columns, _by_rows))
    forward = _jacobian(columns, _jacobian(_by_rows, fun, *options), *options)
    reverse = _jacobian(rows, _jacobian(_by_rows, _free_of_rules(fun), *options), *options)

    @decorate_transformed(fun, hessian, argnums, has_aux, chunk_size)
    def matrix(*args: P.args, **kwargs: P.kwargs) -> Any:
        return _second_derivative(lambda: forward(*args, **kwargs), lambda: reverse(*args, **kwargs))

    return matrix


class _HasRuleError(Exception):
    """The derivatives of a function are not all the framework's own."""


def _second_derivative(forward: Callable[[], Any], reverse: Callable[[], Any]) -> Any:
    """Take a second derivative in reverse mode alone if the backend says that the result is the same, and faster."""
    has_native_derivatives = getattr(active(), "has_native_derivatives", None)
    if has_native_derivatives is not None and has_native_derivatives(()):  # false where the backend cannot tell
        try:
            return reverse()
        except _HasRuleError:
            pass
    return forward()


def _free_of_rules(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fun`, with an error if a custom gradient is in it: its second derivative need not be symmetric."""

    def free(*args: Any, **kwargs: Any) -> Any:
        backend: Any = active()  # whose `has_native_derivatives` is optional
        output = fun(*args, **kwargs)
        leaves = [output] if backend.is_tensor(output) else tree.leaves(output)
        if not backend.has_native_derivatives([y for y in leaves if backend.is_tensor(y)]):
            raise _HasRuleError
        return output

    free.__wrapped__ = fun  # type: ignore[attr-defined]  # whose parameters errors name
    return free


def hvp(fun: Callable[..., Any], primals: Sequence[PyTree], tangents: Sequence[PyTree]) -> PyTree:
    """Compute the product of a scalar-valued function's Hessian with a vector, without forming the matrix.

    A few times the cost of `fun`, whatever the size of the Hessian.

    Args:
        fun: Function of `primals` that returns one real tensor of shape `()`.
        primals: Tuple or list of the arguments of `fun`: pytrees of real or complex tensors.
        tangents: The vector, in the structure, shapes and dtypes of `primals`; `None` is zero.

    Returns:
        The product in the structure of the primal where there is one, else a tuple with one pytree per primal.

    Raises:
        DTypeError: A primal holds integers, or a tangent has another dtype than its primal.
        ArgumentError: The output is not a scalar, or the tangents have another structure or shape than the primals.
        ArgumentTypeError: `fun` is not callable, or `primals` is not a tuple or list.
        NonLinearRuleError: A custom gradient rule is not linear in its upstream gradient, so that it has no transpose.

    Example:
        >>> import multiop
        >>> float(multiop.hvp(lambda x: x * x * x, (2.0,), (10.0,)))
        120.0
    """
    _args.function(fun, "hvp: fun")
    argnums = 0 if isinstance(primals, (tuple, list)) and len(primals) == 1 else tuple(range(len(primals)))

    def product(fun: Callable[..., Any], is_symmetric: bool) -> Any:
        return _jvp(_gradient(fun, argnums, False, "hvp"), primals, tangents, False, "hvp", is_symmetric)[1]

    try:
        return _second_derivative(lambda: product(fun, False), lambda: product(_free_of_rules(fun), True))
    except Exception as error:
        shorten(error)
        raise
