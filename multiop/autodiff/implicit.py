"""Solutions of equations, differentiated by the equation that they solve and not through the solver's steps."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from multiop import errors
from multiop._loading.registry import active
from multiop._values import args as _args, dtypes, tree as _tree
from multiop._values.types import PyTree
from multiop.autodiff import _flat
from multiop.autodiff.custom_gradient import op_custom_gradient
from multiop.autodiff.stop_gradient import op_stop_gradient
from multiop.autodiff.transforms import vjp
from multiop.autodiff.vmap import vmap
from multiop.frontends.creation import op_eye, op_zeros_like
from multiop.frontends.elementwise import op_negative
from multiop.frontends.linalg import op_solve
from multiop.frontends.shapes import op_concatenate, op_reshape, op_transpose

Solve = Callable[[Callable[[Any], Any], Any], Any]


def linear_solve(
    matvec: Callable[..., PyTree],
    b: PyTree,
    solve: Solve | None = None,
    transpose_solve: Solve | None = None,
    args: Sequence[PyTree] = (),
) -> PyTree:
    """Solve a linear system that is given as a function, with the derivatives of the solution.

    The solver may do what it likes: its steps are not differentiated. A derivative is one more solve: with the
    transposed system in reverse mode, with the system itself in forward mode.

    Args:
        matvec: Function `matvec(x, *args)`, linear in `x`, that returns a pytree like `b`. It is a square matrix.
        b: Right-hand side, a pytree of real or complex tensors.
        solve: Function `solve(matvec, b)` of a linear function of `x` alone and a right-hand side that returns the
            solution. `None`: the matrix is formed, and factored; for small systems of one dtype.
        transpose_solve: The same for the transposed system (for the adjoint, of complex numbers), whose function it is
            given. `None`: `solve`, which suits solvers that need no symmetry, and symmetric systems.
        args: What `matvec` depends on: pytrees, with respect to whose tensors the solution is differentiable.

    Returns:
        The solution, a pytree like `b`.

    Raises:
        ArgumentTypeError: `matvec` or a solver is not callable, or `args` is not a tuple or list.
        ArgumentError: `solve` returned something of another structure or shape than `b`.
        ClosedOverError: `matvec` closes over a differentiable value: give it in `args`.
        NonLinearRuleError: Forward mode, on JAX or TensorFlow, of a solver whose steps are not linear in `b`, such as a
            loop until convergence.

    Gradient:
        That of the exact solution, at every order and in both modes, with respect to `b` and `args`.

    Example:
        >>> import multiop
        >>> from multiop import ops
        >>> def matvec(x, diagonal):
        ...     return diagonal * x
        >>> def jacobi(matvec, b):
        ...     return b / matvec(ops.ones_like(b))
        >>> f = lambda d: ops.sum(multiop.linear_solve(matvec, ops.array([2.0, 3.0]), jacobi, args=(d,)))
        >>> ops.convert_to_numpy(multiop.grad(f)(ops.array([1.0, 2.0]))).tolist()
        [-2.0, -0.75]
    """
    name = "linear_solve"
    _check(name, args, matvec=matvec, solve=solve, transpose_solve=transpose_solve)
    forward = _solve_with_matrix if solve is None else solve
    return _linear_solve(matvec, b, forward, transpose_solve or forward, args, name)


def root(
    f: Callable[..., PyTree],
    x0: PyTree,
    solve: Solve,
    tangent_solve: Solve | None = None,
    args: Sequence[PyTree] = (),
) -> PyTree:
    """Solve an equation, with the derivatives of the solution by the implicit function theorem.

    The solver may do what it likes: its steps are not differentiated. A derivative is one linear solve at the solution.

    Args:
        f: Function `f(x, *args)` that returns a pytree like `x`, and is zero at the solution.
        x0: Where the solver begins: a pytree of real tensors.
        solve: Function `solve(f, x0)` of a function of `x` alone that returns the solution.
        tangent_solve: Function `tangent_solve(matvec, b)` that solves a linear system with the Jacobian of `f` with
            respect to `x`, or its transpose, given as a function. `None`: the matrix is formed, and factored; for small
            systems of one dtype.
        args: What `f` depends on: pytrees, with respect to whose tensors the solution is differentiable.

    Returns:
        The solution, a pytree like `x0`.

    Raises:
        ArgumentTypeError: `f` or a solver is not callable, or `args` is not a tuple or list.
        ArgumentError: `solve` returned something of another structure or shape than `x0`.
        ClosedOverError: `f` closes over a differentiable value: give it in `args`.
        NonLinearRuleError: Forward mode, on JAX or TensorFlow, of a `tangent_solve` whose steps are not linear in `b`,
            such as a loop until convergence.

    Gradient:
        That of the exact solution, at every order and in both modes, with respect to `args`; zero for `x0`. If the
        Jacobian of `f` is singular at the solution, it is what `tangent_solve` makes of that.

    Example:
        >>> import multiop
        >>> from multiop import ops
        >>> def newton(f, x):
        ...     for _ in range(6):
        ...         y, slope = multiop.jvp(f, (x,), (ops.ones_like(x),))
        ...         x = x - y / slope
        ...     return x
        >>> sqrt = lambda a: multiop.root(lambda x, a: x * x - a, ops.array(1.0), newton, args=(a,))
        >>> round(float(sqrt(ops.array(4.0))), 4), round(float(multiop.grad(sqrt)(4.0)), 4)
        (2.0, 0.25)
    """
    name = "root"
    _check(name, args, f=f, solve=solve, tangent_solve=tangent_solve)
    template, primals = _differentiable(args)
    tangent = tangent_solve or _solve_with_matrix

    def pull_back(w: Any, x: Any, *tensors: Any) -> Any:
        return vjp(lambda x: f(x, *template.fill(tensors)), x)[1](w)[0]

    @op_custom_gradient
    def solution(x0: Any, *tensors: Any) -> Any:
        x = _solve_equation(solve, lambda x: f(x, *template.fill(tensors)), x0, name)

        def grad(upstream: Any) -> Any:
            w = _linear_solve(pull_back, upstream, tangent, tangent, (x, *tensors), name)
            return (None, *_negative_pull(lambda *tensors: f(x, *template.fill(tensors)), tensors, w))

        return x, grad

    return solution(_tree.map(op_stop_gradient, _tensors(x0)), *primals)


def _linear_solve(
    matvec: Callable[..., Any], b: Any, solve: Solve, transpose_solve: Solve, args: Sequence[Any], name: str
) -> Any:
    template, primals = _differentiable(args)

    def pull_back(w: Any, *tensors: Any) -> Any:
        return vjp(lambda x: matvec(x, *template.fill(tensors)), _tree.map(op_zeros_like, w))[1](w)[0]

    @op_custom_gradient
    def solution(b: Any, *tensors: Any) -> Any:
        x = _solve_equation(solve, lambda x: matvec(x, *template.fill(tensors)), b, name)

        def grad(upstream: Any) -> Any:
            w = _linear_solve(pull_back, upstream, transpose_solve, solve, tensors, name)
            return (w, *_negative_pull(lambda *tensors: matvec(x, *template.fill(tensors)), tensors, w))

        return x, grad

    return solution(_tensors(b), *primals)


def _negative_pull(f: Callable[..., Any], tensors: Sequence[Any], w: Any) -> list[Any]:
    """Return minus the gradients with respect to `tensors`, of which there may be none."""
    return list(map(op_negative, vjp(f, *tensors)[1](w))) if tensors else []


def _check(name: str, args: Any, **functions: Any) -> None:
    for key, function in functions.items():
        if function is not None or (key == "solve" and name == "root"):
            _args.function(function, f"{name}: {key}")
    if type(args) not in (tuple, list):
        raise errors.ArgumentTypeError(f"{name}: args must be a tuple or list of arguments, got {_args.describe(args)}")


def _differentiable(args: Sequence[Any]) -> tuple[_flat.Template, list[Any]]:
    """Remove the real and complex tensors from `args`; return the template, and them."""
    backend = active()

    def is_differentiable(leaf: Any) -> bool:
        return backend.is_tensor(leaf) and backend.dtype_name(leaf) in dtypes.INEXACT

    template, primals = _flat.take(tuple(args), is_differentiable)
    _tree.refuse_unregistered(template.leaves)
    return template, [backend.convert(x) for x in primals]


def _tensors(tree: Any) -> Any:
    return _tree.map(active().convert, tree)


def _solve_equation(solve: Solve, f: Callable[[Any], Any], start: Any, name: str) -> Any:
    """Return what a solver makes of an equation, as tensors like `start`."""
    x = solve(f, start)
    try:
        _, leaves, others = _tree.flatten_beside(start, [x])
    except ValueError as error:
        raise errors.ArgumentError(f"{name}: solve returned another structure than it was given: {error}") from None
    like = functools.partial(_flat.convert_like, backend=active(), what=f"{name}: what solve returned")
    return _tree.unflatten(_tree.structure(start), [like(y, x) for y, x in zip(others, leaves, strict=True)])


def _solve_with_matrix(matvec: Callable[[Any], Any], b: Any) -> Any:
    """Solve a linear system with the matrix of `matvec`."""
    backend = active()
    leaves, structure = _tree.flatten(b)
    shapes = [tuple(x.shape) for x in leaves]
    sizes = list(map(math.prod, shapes))

    def vector(tree: Any) -> Any:
        parts = [op_reshape(x, (-1,)) for x in _tree.leaves(tree)]
        return parts[0] if len(parts) == 1 else op_concatenate(parts)

    def tree(vector: Any) -> Any:
        parts, start = [], 0
        for shape, size in zip(shapes, sizes, strict=True):
            parts.append(op_reshape(vector[start : start + size], shape))
            start += size
        return _tree.unflatten(structure, parts)

    flat = vector(b)
    units = backend.on_device_of(flat, op_eye(sum(sizes), dtype=backend.dtype_name(flat)))
    columns = vmap(lambda unit: vector(matvec(tree(unit))))(units)
    return tree(op_solve(op_transpose(columns), flat))
