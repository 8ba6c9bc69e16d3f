"""A differentiable function of another framework, as a function on the active backend's tensors."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from multiop import config, errors, extend, op_convert_to_numpy, op_custom_gradient, op_stop_gradient, tree, vjp
from multiop.porting._spec import Spec

_EXCHANGES = ("torch", "jax", "tensorflow")  # to a function of theirs; from these and from NumPy


class _Function:
    """A function from a list of another framework's tensors to one, and the means to call it with arrays."""

    def __init__(self, function: Callable[[list[Any]], list[Any]], backend: str, name: str) -> None:
        self.function, self.backend, self.name = function, backend, name
        self._pulled: dict[tuple[int, tuple[int, ...]], _Function] = {}
        self.is_checked = False  # whether it closes over a parameter was asked
        self._floats: tuple[int, ...] | None = None  # of a gradient: the arguments whose specs its results have
        self.linear_from: int | None = None  # of a gradient: the first of its arguments that it is linear in

    def value(self, arrays: Iterable[Any], hand: Callable[[Any], Any] | None = None) -> list[Any]:
        """Return what the function returns, as arrays with `__dlpack__`, or as what `hand` makes of its tensors."""
        there = exchange(self.backend)
        with config.use_backend(self.backend):
            xs = [there.adopt(x) for x in arrays]
            ys = self._results(xs)
            self._check_unwritten(xs)
            return [(hand or there.share)(y) for y in ys]

    def value_and_pullback(
        self, arrays: Iterable[Any], floats: Sequence[int]
    ) -> tuple[list[Any], Callable[[Iterable[Any]], list[Any]]]:
        """Return what the function returns, and the map from upstream gradients to the gradients of some arguments."""
        there = exchange(self.backend)
        with config.use_backend(self.backend):
            xs = [there.adopt(x) for x in arrays]
            pull, outputs = self._vjp(xs, floats)
            self._check_unwritten(xs)
            given = [there.share(y) for y in outputs]

        def pullback(upstreams: Iterable[Any]) -> list[Any]:
            with config.use_backend(self.backend):
                return [there.share(g) for g in pull([there.adopt(u) for u in upstreams])]

        return given, pullback

    def _check_unwritten(self, xs: Sequence[Any]) -> None:
        if any(map(exchange(self.backend).is_written, xs)):  # it is the caller's memory
            raise errors.ArgumentError(f"bridge: {self.name} writes into an argument, which it must not change")

    def check_closed_over(self, given: Sequence[Spec]) -> None:
        """Raise if the function depends on a parameter that it closes over, whose gradient would be lost."""
        if exchange(self.backend).closes_over(self, given):
            self._raise_closed_over()
        self.is_checked = True

    def _results(self, xs: list[Any], given: Sequence[Any] = ()) -> list[Any]:
        """Call the function; raise if results depend on more than `xs` and `given`: on other values, they may not."""
        if self._floats is not None:  # of a gradient, it was asked
            return self.function(xs)
        there = exchange(self.backend)
        with there.recording() as tape:
            ys = self.function(xs)
        if there.depends_on_more(tape, [*xs, *given], ys):
            self._raise_closed_over()
        return ys

    def _raise_closed_over(self) -> None:
        raise errors.ClosedOverError(
            f"bridge: {self.name} closes over a parameter that requires a gradient, which would be lost; pass the "
            "parameter as an argument, bridge the model itself, or freeze the parameter"
        )

    def specs(self, given: Sequence[Spec]) -> list[Spec]:
        """Return the specs of the results; a size that depends on an unknown one is unknown."""
        if self._floats is not None:
            return [given[k] for k in self._floats]
        infer = exchange(self.backend).infer
        if not any(None in spec.shape for spec in given):
            return infer(self, given)
        tried = [
            infer(self, [Spec(tuple(size if n is None else n for n in spec.shape), spec.dtype) for spec in given])
            for size in (2, 3)
        ]
        return [
            Spec(tuple(n if n == m else None for n, m in zip(first.shape, other.shape, strict=True)), first.dtype)
            for first, other in zip(*tried, strict=True)
        ]

    def pulled(self, n: int, floats: tuple[int, ...]) -> _Function:
        """Return the map from `n` arguments and upstream gradients to the gradients of the arguments `floats`."""
        if (n, floats) not in self._pulled:

            def pull(given: list[Any]) -> list[Any]:
                xs, upstreams = given[:n], given[n:]
                grads = list(self._vjp(xs, floats)[0](upstreams))
                self._check_linear(xs, upstreams, floats, grads)
                return grads

            foreign = _Function(pull, self.backend, f"the gradient of {self.name}")
            foreign._floats, foreign.linear_from = floats, n
            self._pulled[n, floats] = foreign
        return self._pulled[n, floats]

    def _check_linear(self, xs: list[Any], upstreams: list[Any], floats: tuple[int, ...], grads: list[Any]) -> None:
        """Raise if a gradient that is transposed, at the upstream gradient zero, has another transpose elsewhere."""
        n, there = self.linear_from, exchange(self.backend)
        if n is None or not there.is_concrete([*xs, *upstreams]):
            return
        arrays, rng = [np.asarray(op_convert_to_numpy(op_stop_gradient(x))) for x in xs[n:]], np.random.default_rng(0)
        if any(x.any() for x in arrays):
            return
        others = [there.adopt((40 * rng.normal(size=x.shape)).astype(x.dtype)) for x in arrays]
        again = self._vjp([*xs[:n], *others], floats)[0](upstreams)
        for k, *pair in zip(floats, grads, again, strict=True):
            a, b = (np.asarray(op_convert_to_numpy(op_stop_gradient(x))).astype(complex) for x in pair)
            if k >= n and not np.allclose(a, b, 1e-2, 1e-3 * np.abs(a).max(initial=0), equal_nan=True):
                raise errors.NonLinearRuleError.of(self.name.removeprefix("the gradient of "), "its transpose varies")

    def refusal(self, error: Exception) -> Callable[..., Any]:
        """Return what is called in place of a pullback that there is not."""

        def pull(given: list[Any]) -> Any:
            raise errors.NoGradientError(f"bridge: {self.name} has no gradient in {self.backend}: {error}") from error

        return pull

    def _vjp(self, xs: list[Any], floats: Sequence[int]) -> tuple[Callable[..., Any], list[Any]]:
        """Return the pullback of the differentiable results to the arguments `floats`, and all results."""

        def of_floats(*given: Any) -> tuple[list[Any], list[Any]]:
            at = dict(zip(floats, given, strict=True))
            ys = self._results([at.get(k, x) for k, x in enumerate(xs)], [*xs, *given])
            return [y for y in ys if extend.load(self.backend).dtype_name(y) in extend.INEXACT], ys

        _, pullback, outputs = vjp(of_floats, *[xs[k] for k in floats], has_aux=True)
        return pullback, outputs


def exchange(backend: str) -> Any:
    """Return the module that hands a framework's tensors over."""
    return importlib.import_module(f"multiop.porting.{backend}.exchange")


def bridge(function: Callable[..., Any], backend: str | None = None) -> Callable[..., Any]:
    """Call a differentiable function of another framework with the active backend's tensors.

    The values and the gradients are the other framework's own. On a CPU, tensors change hands by DLPack without a copy,
    but for NumPy's arrays.
    The function works in eager mode, inside `jax.jit`, `tf.function` and `multiop.jit`, under `vmap`, and in forward
    mode and at second order where the other framework has it.

    Args:
        function: A function of tensors, and of pytrees of tensors, of the other framework, which returns such. A
            `torch.nn.Module` or a Keras model becomes a function of its parameters and its inputs.
        backend: The other framework's backend: `"torch"`, `"jax"` or `"tensorflow"`. A model says it by itself.

    Returns:
        A function of the same arguments on the active backend's tensors. For a model, its attribute `params` holds the
        model's parameters, a dict of NumPy arrays by name, in the form that the first argument has to have.

    Raises:
        ArgumentTypeError: `function` is not callable, or an argument of the result is not a pytree of tensors.
        ArgumentError: `backend` is missing and `function` does not say it, or there is no bridge to it.

    Gradient:
        The other framework's. In a compiled function, and wherever JAX differentiates, the function is called once for
        the value and once more for the gradient; so it must not depend on anything but its arguments, such as the
        state of a random generator.

    Example:
        >>> import multiop, torch
        >>> from multiop import porting
        >>> silu = porting.bridge(torch.nn.functional.silu, "torch")
        >>> with multiop.use_backend("jax"):
        ...     round(float(multiop.grad(silu)(1.0)), 6)
        0.927671
    """
    extend.function(function, "bridge: function")
    if backend is not None and backend not in _EXCHANGES:
        raise errors.ArgumentError(f"bridge: backend must be one of {', '.join(_EXCHANGES)}, got {backend!r}")
    for name in [name for name in _EXCHANGES if name in sys.modules]:  # a model's framework is imported
        model = exchange(name).functional(function)
        if model is not None:
            if backend not in (None, name):
                raise errors.ArgumentError(f"bridge: backend is {backend!r}, but the model is one of {name}")
            bridged = bridge_to(model[0], name)
            bridged.params = model[1]  # type: ignore[attr-defined]
            return bridged
    if backend is None:
        raise errors.ArgumentError(
            f"bridge: backend must say which framework the function is written in: one of {', '.join(_EXCHANGES)}"
        )
    return bridge_to(function, backend)


def foreign(function: Callable[..., Any], backend: str | None = None, pattern: Any = None) -> Callable[..., Any]:
    """Call a function of another framework as `bridge` does, also where a sparse derivative's pattern is found.

    The function counts as one custom gradient, whose rule is the other framework's pullback. Forward mode is the
    transpose of that, its second derivative in the upstream gradient, and many vectors at once are mapped over it.

    Args:
        function: A function of tensors of the other framework, and of pytrees of them.
        backend: The other framework's backend: `"torch"`, `"jax"` or `"tensorflow"`. A model says it by itself.
        pattern: Which entries of the results, leaves in order, depend on which of the arguments: a matrix of SciPy, or
            an array. `None`: any on any.

    Returns:
        A function of the same arguments on the active backend's tensors.

    Raises:
        ArgumentTypeError: `function` is not callable.
        ArgumentError: `backend` is missing and `function` does not say it, or there is no bridge to it.

    Gradient:
        The other framework's.

    Example:
        >>> import multiop, torch
        >>> from multiop import ops, porting
        >>> silu = porting.foreign(torch.nn.functional.silu, "torch", pattern=[[True, False], [False, True]])
        >>> with multiop.use_backend("numpy"):
        ...     multiop.sparse_jacobian(lambda x: 2.0 * silu(x), ops.ones(2)).nnz
        2
    """
    bridged = bridge(function, backend)

    def called(*args: Any) -> Any:
        output, pullback = vjp(bridged, *args)
        return output, pullback

    called.__name__ = called.__qualname__ = getattr(function, "__name__", type(function).__name__)
    called.pattern = pattern  # type: ignore[attr-defined]
    return op_custom_gradient(called)


def bridge_to(function: Callable[..., Any], backend: str) -> Callable[..., Any]:
    name = getattr(function, "__qualname__", None) or type(function).__name__
    flat_functions: dict[Any, tuple[_Function, list[Any]]] = {}  # by structure; a compiled program refers to one weakly

    def flat_function(treedef: Any) -> tuple[_Function, list[Any]]:
        if treedef not in flat_functions:
            structures: list[Any] = []

            def flat(xs: list[Any]) -> list[Any]:
                ys, structure = tree.flatten(function(*tree.unflatten(treedef, xs)))
                structures[:] = [structure]
                return [extend.load(backend).convert(y) for y in ys]

            flat_functions[treedef] = _Function(flat, backend, name), structures
        return flat_functions[treedef]

    @functools.wraps(function, updated=())
    def bridged(*args: Any) -> Any:
        here = extend.active()
        if here.name not in (*_EXCHANGES, "numpy"):
            raise errors.UnsupportedError(f"bridge: there is no way from the {here.name} backend to {backend}")
        if extend.is_compiling() and here.name != backend:
            return exchange(here.name).break_graph(bridged)(*args)
        leaves, treedef = tree.flatten(args)
        for leaf in leaves:
            if leaf is None or isinstance(leaf, (str, bytes)) or callable(leaf):
                raise errors.ArgumentTypeError(
                    f"bridge: the arguments of {name} must be pytrees of tensors, got {extend.describe(leaf)}"
                )
        xs = [here.convert(x) for x in leaves]
        if here.name == backend:
            return function(*tree.unflatten(treedef, xs))
        called, structures = flat_function(treedef)
        if not called.is_checked:
            called.check_closed_over([Spec(tuple(x.shape), here.dtype_name(x)) for x in xs])
        outputs = _apply(called, xs)
        return tree.unflatten(structures[0], list(outputs))

    return bridged


def _apply(
    called: _Function, xs: list[Any], pullback: Callable[..., Any] | None = None, order: int = 0
) -> Sequence[Any]:
    """Return the results of a foreign function, or of its derivative of some order; `pullback`, if given, has them."""
    active = extend.active()
    here = exchange(active.name)
    floats = tuple(k for k, x in enumerate(xs) if active.dtype_name(x) in extend.INEXACT)

    def forward(*xs: Any) -> tuple[tuple[Any, ...], Callable[..., Any]]:
        known = None  # the gradient of this very call
        if not here.is_concrete(xs):
            ys = here.callback(called, xs)
        else:
            arrays = [here.share(x) for x in xs]
            if pullback is not None:
                outputs = pullback(arrays)
            elif floats:
                try:
                    outputs, pull = called.value_and_pullback(arrays, floats)
                    known = lambda given: pull(given[len(xs) :])  # noqa: E731
                except Exception as error:  # a callback has values alone, which is no fault until it is differentiated
                    outputs, known = called.value(arrays), called.refusal(error)
            else:
                outputs = called.value(arrays)
            ys = [here.adopt(y) for y in outputs]

        def rule(*upstreams: Any) -> list[Any]:
            if order == here.orders:
                raise errors.UnsupportedError(
                    f"bridge: {called.name} can be differentiated {here.orders} times on the {active.name} backend"
                )
            given = [u for u in upstreams if u is not None]
            gradients = iter(_apply(called.pulled(len(xs), floats), [*xs, *given], known, order + 1))
            return [next(gradients) if k in floats else None for k in range(len(xs))]

        return tuple(ys), rule

    forward.__qualname__ = forward.__name__ = called.name
    return op_custom_gradient(forward)(*xs)
