"""A function at one input, evaluated in each mode of differentiation and compilation."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

import multiop
from multiop import extend, tree

from ._case import Call
from ._samplers import Sampler
from ._tolerances import eps

Array = np.ndarray[Any, Any]
__tracebackhide__ = True  # pytest leaves out the frames of this module
_BATCH = 3


class Problem:
    """A function with drawn inputs: the tensors among its arguments as NumPy arrays, everything else fixed.

    Args:
        f: The function.
        call: Its arguments, with samplers or arrays where tensors go.
        dtype: The dtype of inputs whose sampler leaves it open.
        seed: Seeds the inputs, the cotangents and the tangents.
        name: The function's name, for messages.
        whole: Compile each computation as one program. JAX compiles eager computations too, but step by step.
        together: The names of the methods below that are computed at once; with `whole`, by a single program.

    Attributes:
        name: The function's name, for messages.
        arrays: The inputs that become tensors, in order.
        inexact: The positions in `arrays` of the inputs to differentiate.
        whole: Whether each computation is compiled as one program.
        together: The names of the methods that are computed at once.
        perturbations: How many times inputs are rounded differently, to measure rounding errors of the results.
    """

    perturbations = 3

    def __init__(
        self,
        f: Callable[..., Any],
        call: Call,
        *,
        dtype: str = "float64",
        seed: int = 0,
        name: str | None = None,
        whole: bool = False,
        together: Sequence[str] = (),
    ) -> None:
        self.f, self.call, self.seed = f, call, seed
        self.name = name or getattr(f, "__name__", repr(f))
        self._rng = np.random.default_rng(seed)
        self._leaves, self._structure = tree.flatten((call.args, call.kwargs, call.then))
        self._dtype = dtype
        self.whole, self.together = whole, tuple(together)
        self._where = [i for i, leaf in enumerate(self._leaves) if isinstance(leaf, (Sampler, np.ndarray))]
        self.arrays = self._draw(self._rng)
        self.inexact = [i for i, array in enumerate(self.arrays) if _name(array) in extend.INEXACT]
        self.scales: dict[Callable[..., Any], list[Array]] = {}  # the results of `rounding_scales`
        self.results: dict[Callable[..., Any], list[Array]] = {}
        self._programs: dict[Callable[..., Any], Callable[..., list[Any]]] = {}

    def _draw(self, rng: np.random.Generator) -> list[Array]:
        drawn = []
        for i in self._where:
            leaf = self._leaves[i]
            if isinstance(leaf, Sampler):
                drawn.append(leaf.draw(rng, self._dtype))
            else:  # a given array keeps its kind; floats are cast to the dtype under test
                drawn.append(leaf.astype(extend.to_numpy_dtype(self._dtype)) if leaf.dtype.kind == "f" else leaf)
        return drawn

    @functools.cached_property
    def input_names(self) -> list[str]:
        """The function's name for each of its tensors: `x`, `params['w']`; its position if it has no name."""
        try:
            bound = inspect.signature(self.f).bind(*self.call.args, **self.call.kwargs).arguments
        except (TypeError, ValueError):
            bound = {f"argument {k}": x for k, x in enumerate(self.call.args)} | self.call.kwargs
        names = []
        for name, argument in bound.items():
            paths = optree.tree_paths(argument, none_is_leaf=True, namespace=extend.TREE_NAMESPACE)
            for path, leaf in zip(paths, tree.leaves(argument), strict=True):
                if isinstance(leaf, (Sampler, np.ndarray)):
                    names.append(name + "".join(f"[{part!r}]" for part in path))
        return names if len(names) == len(self.arrays) else [f"input {k}" for k in range(len(self.arrays))]

    def operand_dtypes(self) -> list[str]:
        """Return the dtypes of the operands: tensors and bare Python scalars among the positional arguments."""
        found, taken = [], 0
        for argument in (*self.call.args, *self.call.then):
            if extend.is_scalar(argument):
                found.append(extend.dtype_of_scalar(argument))
            for leaf in tree.leaves(argument):
                if isinstance(leaf, (Sampler, np.ndarray)):
                    found.append(_name(self.arrays[taken]))
                    taken += 1
        return found

    def reference_arrays(self, floating: bool) -> list[Array]:
        """Return the inputs for a NumPy reference: in float64 or complex128, integers and bool unchanged.

        Integers of the dtype under test also become float64 if the result is `floating`, since NumPy computes
        functions of small integers in float16.
        """
        arrays = []
        for place, x in zip(self._where, self.arrays, strict=True):
            leaf = self._leaves[place]
            if x.dtype.kind == "c":
                x = x.astype(np.complex128)
            elif x.dtype.kind not in "bui" or (floating and isinstance(leaf, Sampler) and leaf.dtype is None):
                x = x.astype(np.float64)
            arrays.append(x)
        return arrays

    def apply(self, f: Callable[..., Any], inputs: Sequence[Any]) -> Any:
        """Call `f`, the function or its reference, with `inputs` in place of the tensors."""
        leaves = list(self._leaves)
        for i, x in zip(self._where, inputs, strict=True):
            leaves[i] = x
        args, kwargs, then = tree.unflatten(self._structure, leaves)
        returned = f(*args, **kwargs)
        return returned(*then) if then else returned

    # on tensors of the active backend

    def outputs(self, *tensors: Any) -> list[Any]:
        """Return the results as a flat list of tensors."""
        leaves = tree.leaves(self.apply(self.f, tensors))
        return [
            y if extend.active().is_tensor(y) else extend.active().convert(y)
            for y in leaves
            if y is not None and not isinstance(y, str)
        ]

    def _fill_inexact(self, tensors: Sequence[Any], inexact: Sequence[Any]) -> list[Any]:
        filled = list(tensors)
        for i, x in zip(self.inexact, inexact, strict=True):
            filled[i] = x
        return filled

    def _differentiable(self, tensors: Sequence[Any]) -> Callable[..., list[Any]]:
        """Return the function from the inexact inputs to the inexact outputs."""
        return lambda *inexact: [y for y in self.outputs(*self._fill_inexact(tensors, inexact)) if _is_inexact(y)]

    def primal_tensors(self, *tensors: Any) -> list[Any]:
        """Return the inexact results, computed under differentiation."""
        return self._vjp(tensors)[0]

    def gradient_tensors(self, *tensors: Any) -> list[Any]:
        """Return the pullback of fixed random cotangents, one tensor per inexact input."""
        return self._vjp(tensors)[1]()

    def _vjp(self, tensors: Sequence[Any]) -> tuple[list[Any], Callable[[], list[Any]]]:
        primals, pullback = multiop.vjp(self._differentiable(tensors), *(tensors[i] for i in self.inexact))
        return list(primals), lambda: list(pullback([extend.active().convert(w) for w in self.cotangents]))

    def second_tensors(self, *tensors: Any) -> list[Any]:
        """Return the gradient of the gradient's inner product with fixed random tangents."""

        def first(*inexact: Any) -> list[Any]:
            return self.gradient_tensors(*self._fill_inexact(tensors, inexact))

        _, pullback = multiop.vjp(first, *(tensors[i] for i in self.inexact))
        return list(pullback([extend.active().convert(t) for t in self.tangents]))

    def forward_over_reverse_tensors(self, *tensors: Any) -> list[Any]:
        """Return the pushforward of fixed random tangents through the gradient, one tensor per inexact input."""

        def first(*inexact: Any) -> list[Any]:
            return self.gradient_tensors(*self._fill_inexact(tensors, inexact))

        primals = tuple(tensors[i] for i in self.inexact)
        return list(multiop.jvp(first, primals, tuple(extend.active().convert(t) for t in self.tangents))[1])

    def forward_tensors(self, *tensors: Any) -> list[Any]:
        """Return the pushforward of fixed random tangents, one tensor per inexact output."""
        primals = tuple(tensors[i] for i in self.inexact)
        tangents = tuple(extend.active().convert(t) for t in self.tangents)
        return list(multiop.jvp(self._differentiable(tensors), primals, tangents)[1])

    # the same, from NumPy arrays to NumPy arrays

    def run(self, fun: Callable[..., list[Any]], arrays: Sequence[Array] | None = None) -> list[Array]:
        """Run one of the functions of tensors above on `arrays`; by default on the problem's own, and only once."""
        if arrays is not None:
            run = self._program(fun) if self.whole else fun
            return _arrays(run(*map(extend.active().convert, arrays)))
        if fun not in self.results:
            if getattr(fun, "__name__", "") in self.together:
                found = self._jointly(*map(extend.active().convert, self.arrays))
                for name, results in zip(self.together, found, strict=True):
                    self.results[getattr(self, name)] = _arrays(results)
            else:
                self.results[fun] = self.run(fun, self.arrays)
        return self.results[fun]

    def _program(self, fun: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        name = getattr(fun, "__name__", "")
        if name in self.together:
            return lambda *tensors: self._jointly(*tensors)[self.together.index(name)]
        if fun not in self._programs:
            self._programs[fun] = multiop.jit(fun)
            if fun != self.outputs:
                _ = self.cotangents  # made from the results, which cannot be read while `fun` is traced
        return self._programs[fun]

    @functools.cached_property
    def _jointly(self) -> Callable[..., list[list[Any]]]:
        """What computes all of `together`; a function without a derivative only has results."""

        def everything(*tensors: Any) -> list[list[Any]]:
            found: dict[str, list[Any]] = {}
            if "outputs" in self.together or "cotangents" not in self.__dict__:
                found["outputs"] = self.outputs(*tensors)
                inexact = [_blank(y) for y in found["outputs"] if _is_inexact(y)]
                self.__dict__.setdefault("cotangents", _random_like(inexact, self.seed + 1))
            if not (self.cotangents and self.inexact):
                return [found.get(name, []) for name in self.together]
            if {"primal_tensors", "gradient_tensors"} <= set(self.together):
                found["primal_tensors"], pull_back = self._vjp(tensors)
                found["gradient_tensors"] = pull_back()
            return [found[name] if name in found else getattr(self, name)(*tensors) for name in self.together]

        return multiop.jit(everything) if self.whole else everything

    @property
    def value(self) -> list[Array]:
        """The results."""
        return self.run(self.outputs)

    @property
    def differentiable_value(self) -> list[Array]:
        """The floating and complex results."""
        return [y for y in self.value if _name(y) in extend.INEXACT]

    @property
    def gradient(self) -> list[Array]:
        """The pullback of `cotangents`."""
        return self.run(self.gradient_tensors)

    @functools.cached_property
    def cotangents(self) -> list[Array]:
        """A random cotangent for each differentiable result."""
        return _random_like(self.differentiable_value, self.seed + 1)

    @functools.cached_property
    def tangents(self) -> list[Array]:
        """A random tangent for each inexact input."""
        return _random_like([self.arrays[i] for i in self.inexact], self.seed + 2)

    def inputs_with(self, inexact: Sequence[Array]) -> list[Array]:
        """Return the inputs with `inexact` in place of the differentiable ones."""
        return self._fill_inexact(self.arrays, inexact)

    def perturbed(self, seed: int, arrays: Sequence[Array]) -> list[Array]:
        """Return inputs with each inexact entry moved by one unit in the last place, up or down at random."""
        rng = np.random.default_rng([self.seed, seed])
        return [_nudge(x, rng) if i in self.inexact else x for i, x in enumerate(arrays)]

    def batch(self) -> list[list[Array]]:
        """Return a few sets of inputs: the problem's own, and others drawn like them (given arrays are scaled)."""
        rng = np.random.default_rng([self.seed, 3])
        sets = [self.arrays]
        for n in range(1, _BATCH):
            drawn = self._draw(rng)
            for i, place in enumerate(self._where):
                if not isinstance(self._leaves[place], Sampler) and i in self.inexact:
                    drawn[i] = (drawn[i] * (1 + 0.125 * n)).astype(drawn[i].dtype)
            sets.append(drawn)
        return sets

    @property
    def is_differentiable(self) -> bool:
        """Whether there is an inexact input and an inexact result."""
        return bool(self.inexact and self.differentiable_value)


def compute_values(problems: Sequence[Problem]) -> None:
    """Compute the values of several problems by one program, which takes much less time than one for each."""
    places = list(itertools.accumulate((len(problem.arrays) for problem in problems), initial=0))

    def everything(*tensors: Any) -> list[list[Any]]:
        return [p.outputs(*tensors[i:j]) for p, (i, j) in zip(problems, itertools.pairwise(places), strict=True)]

    found = multiop.jit(everything)(*(extend.active().convert(x) for problem in problems for x in problem.arrays))
    for problem, results in zip(problems, found, strict=True):
        problem.results[problem.outputs] = _arrays(results)


def _name(array: Array) -> str:
    return extend.dtype_name(array.dtype)


def _arrays(tensors: Sequence[Any]) -> list[Array]:
    return [np.asarray(multiop.op_convert_to_numpy(y)) for y in tensors]


def _blank(tensor: Any) -> Array:
    return np.empty(tuple(tensor.shape), extend.to_numpy_dtype(extend.active().dtype_name(tensor)))


def _is_inexact(tensor: Any) -> bool:
    return extend.active().dtype_name(tensor) in extend.INEXACT


def _random_like(arrays: Sequence[Array], seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    drawn = []
    for x in arrays:
        values = rng.normal(size=x.shape)
        drawn.append(
            np.asarray(values + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else values).astype(x.dtype)
        )
    return drawn


def _nudge(x: Array, rng: np.random.Generator) -> Array:
    if x.dtype.kind == "c":
        return (
            x.real * _factor(x.real.dtype, x.shape, rng) + 1j * x.imag * _factor(x.real.dtype, x.shape, rng)
        ).astype(x.dtype)
    return np.asarray(x * _factor(x.dtype, x.shape, rng)).astype(x.dtype)


def _factor(dtype: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    return (1.0 + eps(dtype) * rng.choice([-1.0, 1.0], shape)).astype(np.float64)
