"""Transforms of functions: gradients, products with Jacobians, Jacobians, mapping over an axis, compilation.

They nest in any order, work on pytrees, and keep every rule given with `op_custom_gradient`. This file does what is the
same for every backend: it selects and checks arguments, and flattens pytrees. A backend's `vjp`, `jvp`, `vmap` and
`jit` see functions from a list of tensors to a list of tensors.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from multiop import _args, _dtypes, _tree, config, errors
from multiop._recent import Recent
from multiop._registry import active, is_compiling, ready, traced
from multiop._types import PyTree
from multiop.autodiff import _flat
from multiop.autodiff._transformed import transformed
from multiop.frontends.creation import op_ones_like, op_zeros
from multiop.frontends.elementwise import op_add, op_multiply
from multiop.frontends.shapes import op_reshape, op_transpose

P = ParamSpec("P")
T = TypeVar("T")
Aux = TypeVar("Aux")
Argnums = int | Sequence[int]


@overload
def grad(fun: Callable[P, object], argnums: int = 0, has_aux: Literal[False] = False) -> Callable[P, PyTree]: ...
@overload
def grad(
    fun: Callable[P, object], argnums: Sequence[int], has_aux: Literal[False] = False
) -> Callable[P, tuple[PyTree, ...]]: ...
@overload
def grad(
    fun: Callable[P, tuple[object, Aux]], argnums: Argnums = 0, *, has_aux: Literal[True]
) -> Callable[P, tuple[PyTree, Aux]]: ...
@overload
def grad(
    fun: Callable[P, tuple[object, object]], argnums: Argnums = 0, *, has_aux: bool
) -> Callable[P, tuple[Any, Any]]: ...
@overload
def grad(fun: Callable[P, tuple[object, object]], argnums: Argnums, has_aux: bool) -> Callable[P, tuple[Any, Any]]: ...
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
    return transformed(fun, grad, argnums, has_aux)(_gradient(fun, argnums, has_aux, "grad"))


def _gradient(fun: Callable[..., Any], argnums: Argnums, has_aux: bool, name: str) -> Callable[..., Any]:
    differentiated = _value_and_grad(fun, argnums, has_aux, name)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, grads = differentiated(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    vars(gradient)["__wrapped__"] = fun  # whose parameters errors name
    return gradient


@overload
def value_and_grad(
    fun: Callable[P, T], argnums: int = 0, has_aux: Literal[False] = False
) -> Callable[P, tuple[T, PyTree]]: ...
@overload
def value_and_grad(
    fun: Callable[P, T], argnums: Sequence[int], has_aux: Literal[False] = False
) -> Callable[P, tuple[T, tuple[PyTree, ...]]]: ...
@overload
def value_and_grad(
    fun: Callable[P, tuple[T, Aux]], argnums: Argnums = 0, *, has_aux: Literal[True]
) -> Callable[P, tuple[tuple[T, Aux], PyTree]]: ...
@overload
def value_and_grad(
    fun: Callable[P, tuple[object, object]], argnums: Argnums = 0, *, has_aux: bool
) -> Callable[P, tuple[Any, Any]]: ...
@overload
def value_and_grad(
    fun: Callable[P, tuple[object, object]], argnums: Argnums, has_aux: bool
) -> Callable[P, tuple[Any, Any]]: ...
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
    differentiated = _value_and_grad(fun, argnums, has_aux, "value_and_grad")
    return transformed(fun, value_and_grad, argnums, has_aux)(differentiated)


def _value_and_grad(fun: Callable[..., Any], argnums: Argnums, has_aux: bool, name: str) -> Callable[..., Any]:
    _args.function(fun, f"{name}: fun")
    _args.bool_flag(has_aux, f"{name}: has_aux")
    chosen = _flat.argnums(argnums, f"{name}: argnums")

    def differentiated(*args: Any, **kwargs: Any) -> Any:
        backend = active()
        flat = _flat.FlatFunction(fun, args, kwargs, chosen, has_aux, backend, name)
        outputs, pullback, aux = backend.vjp(flat.scalar, flat.primals, False)
        grads = flat.arguments(pullback([op_ones_like(outputs[0])]))
        return ((outputs[0], flat.aux(aux)) if has_aux else outputs[0]), grads

    return differentiated


@overload
def vjp(
    fun: Callable[..., T], *primals: PyTree, has_aux: Literal[False] = False
) -> tuple[T, Callable[[PyTree], tuple[PyTree, ...]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[T, Aux]], *primals: PyTree, has_aux: Literal[True]
) -> tuple[T, Callable[[PyTree], tuple[PyTree, ...]], Aux]: ...
@overload
def vjp(fun: Callable[..., tuple[Any, Any]], *primals: PyTree, has_aux: bool) -> tuple[Any, ...]: ...
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Evaluate a function, and return its vector-Jacobian product.

    Args:
        fun: Function of `primals`; returns a pytree of tensors.
        *primals: Where to evaluate it: pytrees of real or complex tensors.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.

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
    backend = active()
    flat = _flat.FlatFunction(fun, primals, {}, tuple(range(len(primals))), has_aux, backend, "vjp")
    outputs, pull, aux = backend.vjp(flat, flat.primals)
    template = flat.output_template

    def pullback(cotangents: PyTree) -> tuple[Any, ...]:
        try:
            leaves = _flat.leaves_like(cotangents, template.structure)
        except ValueError as error:
            raise errors.ArgumentError(f"vjp: the cotangents must have the structure of the output: {error}") from None
        flat_cotangents = []
        for k, (position, output) in enumerate(zip(template.positions, outputs, strict=True)):
            if backend.dtype_name(output) in _dtypes.INEXACT:
                flat_cotangents.append(_flat.convert_like(leaves[position], output, backend, f"vjp: cotangent {k}"))
            else:
                flat_cotangents.append(None)
        return flat.arguments(pull(flat_cotangents))

    output = template.fill(outputs)
    return (output, pullback, flat.aux(aux)) if has_aux else (output, pullback)


@overload
def jvp(
    fun: Callable[..., T], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: Literal[False] = False
) -> tuple[T, PyTree]: ...
@overload
def jvp(
    fun: Callable[..., tuple[T, Aux]], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: Literal[True]
) -> tuple[T, PyTree, Aux]: ...
@overload
def jvp(
    fun: Callable[..., tuple[Any, Any]], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: bool
) -> tuple[Any, ...]: ...
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Evaluate a function and its Jacobian-vector product, in forward mode.

    Args:
        fun: Function of `primals`; returns a pytree of tensors.
        primals: Tuple or list of the arguments of `fun`: pytrees of real or complex tensors.
        tangents: Tuple or list in the structure, shapes and dtypes of `primals`; `None` is zero.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.

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
    return _jvp(fun, primals, tangents, has_aux, "jvp")


def _jvp(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool,
    name: str,
    is_symmetric: bool = False,
) -> tuple[Any, ...]:
    _args.function(fun, f"{name}: fun")
    _args.bool_flag(has_aux, f"{name}: has_aux")
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
    else:
        outputs, out_tangents, aux = backend.jvp(flat, flat.primals, flat.tangents(tangents))
    template = flat.output_template
    inexact = [
        t if backend.dtype_name(y) in _dtypes.INEXACT else None for y, t in zip(outputs, out_tangents, strict=True)
    ]
    results = template.fill(outputs), template.fill(inexact)
    return (*results, flat.aux(aux)) if has_aux else results


@overload
def op_jvp(
    fun: Callable[..., T], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: Literal[False] = False
) -> tuple[T, PyTree]: ...
@overload
def op_jvp(
    fun: Callable[..., tuple[T, Aux]], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: Literal[True]
) -> tuple[T, PyTree, Aux]: ...
@overload
def op_jvp(
    fun: Callable[..., tuple[Any, Any]], primals: Sequence[PyTree], tangents: Sequence[PyTree], has_aux: bool
) -> tuple[Any, ...]: ...
def op_jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
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
    return _jvp(fun, primals, tangents, has_aux, "op_jvp")


def jacrev(fun: Callable[P, object], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, PyTree]:
    """Return a function that computes the Jacobian of a function row by row, in reverse mode.

    Cheaper than `jacfwd` where there are fewer outputs than inputs.

    Args:
        fun: Function that returns a pytree of real or complex tensors. Its arguments may be pytrees.
        argnums: Position, or positions, of the arguments to differentiate with respect to.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.

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
    return transformed(fun, jacrev, argnums, has_aux)(_jacrev(fun, argnums, has_aux, "jacrev"))


def _jacrev(fun: Callable[..., Any], argnums: Argnums, has_aux: bool, name: str) -> Callable[..., Any]:
    _args.function(fun, f"{name}: fun")
    _args.bool_flag(has_aux, f"{name}: has_aux")
    chosen = _flat.argnums(argnums, f"{name}: argnums")

    @functools.wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        backend = active()
        flat = _flat.FlatFunction(fun, args, kwargs, chosen, has_aux, backend, name)
        outputs, pullback, aux = backend.vjp(flat.inexact, flat.primals)
        flat.refuse_complex_to_complex(outputs)
        units, rows, n = _flat.basis(outputs, backend, name)
        if n:
            pulled = backend.vmap(lambda *cotangents: pullback(list(cotangents)), [0] * len(units), n)(*units)
        else:
            pulled = [op_zeros((0, *x.shape), backend.dtype_name(x)) for x in flat.primals]
        jacobians = []
        for y, own in zip(outputs, rows, strict=True):
            parts = [_joined(rows_of_x[own], _flat.is_complex(y, backend)) for rows_of_x in pulled]
            jacobians.append(
                flat.arguments(
                    [op_reshape(part, (*y.shape, *x.shape)) for part, x in zip(parts, flat.primals, strict=True)]
                )
            )
        result = flat.output_template.fill(jacobians)
        return (result, flat.aux(aux)) if has_aux else result

    return jacobian


def jacfwd(fun: Callable[P, object], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, PyTree]:
    """Return a function that computes the Jacobian of a function column by column, in forward mode.

    Cheaper than `jacrev` where there are fewer inputs than outputs.

    Args:
        fun: Function that returns a pytree of real or complex tensors. Its arguments may be pytrees.
        argnums: Position, or positions, of the arguments to differentiate with respect to.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.

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
    return transformed(fun, jacfwd, argnums, has_aux)(_jacfwd(fun, argnums, has_aux, "jacfwd"))


def _jacfwd(fun: Callable[..., Any], argnums: Argnums, has_aux: bool, name: str) -> Callable[..., Any]:
    _args.function(fun, f"{name}: fun")
    _args.bool_flag(has_aux, f"{name}: has_aux")
    chosen = _flat.argnums(argnums, f"{name}: argnums")

    @functools.wraps(fun)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        backend = active()
        flat = _flat.FlatFunction(fun, args, kwargs, chosen, has_aux, backend, name)
        units, rows, n = _flat.basis(flat.primals, backend, name)
        specs: list[Any] = []

        def push(*tangents: Any) -> list[Any]:
            outputs, pushed, aux = backend.jvp(flat.inexact, flat.primals, list(tangents))
            specs[:] = [tuple(y.shape) for y in outputs]
            flat.refuse_complex_to_complex(outputs)
            return [*pushed, *aux]

        if n:
            pushed = backend.vmap(push, [0] * len(units), n)(*units)
            columns, aux = pushed[: len(specs)], [stacked[0] for stacked in pushed[len(specs) :]]
        else:
            outputs, aux = flat.inexact(*flat.primals)
            specs = [tuple(y.shape) for y in outputs]
            columns = [op_zeros((0, *y.shape), backend.dtype_name(y)) for y in outputs]
        jacobians = []
        for shape, columns_of_y in zip(specs, columns, strict=True):
            blocks = []
            for x, own in zip(flat.primals, rows, strict=True):
                part = _joined(columns_of_y[own], _flat.is_complex(x, backend))
                blocks.append(_swapped(op_reshape(part, (*x.shape, *shape)), len(x.shape), len(shape)))
            jacobians.append(flat.arguments(blocks))
        result = flat.output_template.fill(jacobians)
        return (result, flat.aux(aux)) if has_aux else result

    return jacobian


def _joined(rows: Any, is_complex: bool) -> Any:
    """Return `rows` as one matrix; where `is_complex`, their second half is the imaginary part of the first."""
    if not is_complex:
        return rows
    half = rows.shape[0] // 2
    return op_add(rows[:half], op_multiply(1j, rows[half:]))


def _swapped(x: Any, n_first: int, n_last: int) -> Any:
    """Return `x` with its last `n_last` dimensions moved before its first `n_first`."""
    if not n_first or not n_last:
        return x
    return op_transpose(x, (*range(n_first, n_first + n_last), *range(n_first)))


def hessian(fun: Callable[P, object], argnums: Argnums = 0, has_aux: bool = False) -> Callable[P, PyTree]:
    """Return a function that computes the matrix of second derivatives: the Jacobian of `jacrev`.

    Args:
        fun: Function that returns a pytree of real tensors; of shape `()` for the Hessian proper.
        argnums: Position, or positions, of the arguments to differentiate with respect to.
        has_aux: Whether `fun` returns `(output, aux)`, where `aux` is any pytree and is not differentiated.

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
    forward = _jacfwd(_jacrev(fun, argnums, has_aux, "hessian"), argnums, has_aux, "hessian")
    reverse = _jacrev(_jacrev(_free_of_rules(fun), argnums, has_aux, "hessian"), argnums, has_aux, "hessian")

    @transformed(fun, hessian, argnums, has_aux)
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
        leaves = [output] if backend.is_tensor(output) else _tree.leaves(output)
        if not backend.has_native_derivatives([y for y in leaves if backend.is_tensor(y)]):
            raise _HasRuleError
        return output

    vars(free)["__wrapped__"] = fun  # whose parameters errors name
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

    return _second_derivative(lambda: product(fun, False), lambda: product(_free_of_rules(fun), True))


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

    @transformed(fun, functools.partial(vmap, axis_size=axis_size), in_axes, out_axes)
    def mapped(*args: P.args, **kwargs: P.kwargs) -> T:
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

    return mapped


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
    name = functools.partial(_leaf_name, fun, args, kwargs)
    for i in positions:
        if not _flat.is_array(backend)(leaves[i]):
            raise errors.ArgumentTypeError(
                f"vmap: {name(i)} is mapped over axis {axes[i]}, so it must be a tensor or NumPy array, got "
                f"{_args.describe(leaves[i])}; give None in in_axes for an argument that is not mapped"
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


def _leaf_name(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], i: int) -> str:
    """Return a name for leaf `i` of `(args, kwargs)`."""
    for position, argument in enumerate(args):
        paths = _tree.paths(argument)
        if i < len(paths):
            return _flat.argument_name(fun, position) + paths[i]
        i -= len(paths)
    return f"argument {_tree.paths(kwargs)[i]}"


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


def jit(
    fun: Callable[P, T],
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[P, T]:
    """Return a compiled version of a function: same values and gradients, less time per call.

    The function is traced once for each combination of argument structure, shapes, dtypes and non-tensor values, so its
    Python side effects happen only then. A Python number among the arguments is such a value: give a number that
    changes at every call as a tensor. The 256 programs used last are kept, so that memory stays bounded while shapes
    change; one that was dropped is compiled again (JAX keeps its own programs, by its own rules).

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

    @transformed(fun, jit, static_argnums, static_argnames)
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
                tensors, by_value = _tree.flatten(args)
                is_plain = classes.issuperset(map(type, tensors))
        if not is_plain:
            try:
                call, by_value, tensors = _partial_call(fun, args, kwargs, numbers, names, backend)
            except errors.MultiopError:
                raise _refused(fun, args, kwargs, backend) from None
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
    return lambda *leaves: traced(fun)(*_tree.unflatten(structure, leaves))


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


def _refused(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], backend: Any
) -> errors.MultiopError:
    """Return the error about the first argument that cannot become a tensor."""
    for i, leaf in enumerate(_tree.leaves((args, kwargs))):
        if _flat.is_array(backend)(leaf):
            try:
                backend.convert(leaf)
            except errors.MultiopError as error:
                return type(error)(f"jit: {_leaf_name(fun, args, kwargs, i)}: {error.args[0]}")
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
