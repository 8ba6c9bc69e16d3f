"""Convert between the pytrees of the public functions and the flat lists of tensors that a backend works on."""

from __future__ import annotations

import collections
import functools
import inspect
import math
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from multiop import errors
from multiop._rules import doors
from multiop._values import args as _args, dtypes, foreign, host, tree as _tree
from multiop.frontends.creation import op_eye, op_zeros, op_zeros_like
from multiop.frontends.elementwise import op_add, op_multiply
from multiop.frontends.shapes import op_reshape


class Template:
    """A pytree whose tensors have been removed: its structure, and the remaining leaves."""

    __slots__ = ("leaves", "positions", "structure")

    def __init__(self, structure: Any, leaves: Sequence[Any], positions: Sequence[int]) -> None:
        self.structure = structure  # None for a bare leaf, which needs no pytree machinery
        self.leaves = leaves
        self.positions = positions

    def fill(self, entries: Iterable[Any]) -> Any:
        """Return the pytree with `entries` where the tensors were."""
        if len(self.positions) == len(self.leaves):
            return next(iter(entries)) if self.structure is None else self.structure.unflatten(iter(entries))
        leaves = list(self.leaves)
        for position, entry in zip(self.positions, entries, strict=True):
            leaves[position] = entry
        return _tree.unflatten(self.structure, leaves)

    def key(self) -> Hashable:
        """Return a key that identifies this template: its structure, and its remaining leaves with their types."""
        if len(self.positions) == len(self.leaves):
            return self.structure
        # the key must distinguish 0.0 from -0.0 and 1 from True, which are equal, but not nan from nan, which are not
        values = tuple([(type(x), repr(x) if isinstance(x, (float, complex)) else x) for x in self.leaves])
        return self.structure, tuple(self.positions), values


BARE = Template(None, (None,), (0,))
"""The template of a tensor that is no container."""


def take(tree: Any, is_wanted: Callable[[Any], bool]) -> tuple[Template, list[Any]]:
    """Remove the leaves of `tree` for which `is_wanted` is true; return the template that remains, and those leaves."""
    if is_wanted(tree):
        return Template(None, [None], [0]), [tree]
    return _split(*_tree.flatten(tree), is_wanted)


def _split(leaves: list[Any], structure: Any, is_wanted: Callable[[Any], bool]) -> tuple[Template, list[Any]]:
    """Take the wanted ones from `leaves`, the leaves of a pytree, which are changed; return what `take` does."""
    if is_wanted is is_given:  # these are leaves, so only `None` is to be left out
        positions = [i for i, leaf in enumerate(leaves) if leaf is not None]
    else:
        positions = [i for i, leaf in enumerate(leaves) if is_wanted(leaf)]
    taken = [leaves[i] for i in positions]
    for i in positions:
        leaves[i] = None  # a template must not keep tensors alive
    return Template(structure, leaves, positions), taken


class Seen:
    """What was seen of the tensors of one backend."""

    # an object, as Dynamo hashes what the sets of a dict hold, of every backend
    __slots__ = ("classes", "inexact", "real")

    def __init__(self) -> None:
        self.classes: set[type] = set()  # whose instances are all tensors that `convert` returns unchanged
        self.inexact: set[Any] = set()  # the native dtypes that are real or complex
        self.real: set[Any] = set()  # of them, those of scalars that were differentiated


seen: collections.defaultdict[str, Seen] = collections.defaultdict(Seen)
"""By the name of the backend."""


def take_tensors(tree: Any, backend: Any) -> tuple[Template, list[Any]]:
    """Remove the tensors and NumPy arrays from `tree`; return the template that remains, and them as tensors."""
    leaves, structure = _tree.flatten(tree)
    classes = seen[backend.name].classes
    if classes.issuperset(map(type, leaves)):
        return Template(structure, (None,) * len(leaves), range(len(leaves))), leaves
    template, given = _split(leaves, structure, is_array(backend))
    _tree.refuse_unregistered(leaves)
    tensors = [backend.convert(x) for x in given]
    learn_classes(given, tensors, backend)
    return template, tensors


def learn_classes(given: Sequence[Any], tensors: Sequence[Any], backend: Any) -> None:
    """Add to `seen` the class of each of `given` that `convert` returned unchanged as one of `tensors`."""
    # whether `convert` changes a NumPy array depends on its dtype, even if a backend counts some as tensors
    found = [type(x) for x, y in zip(given, tensors, strict=True) if x is y and type(x) is not np.ndarray]
    seen[backend.name].classes.update(found)


def are_inexact(xs: Sequence[Any], backend: Any) -> bool:
    """Say whether tensors are all real or complex."""
    if any(backend.dtype_name(x) not in dtypes.INEXACT for x in xs):
        return False
    seen[backend.name].inexact.update([x.dtype for x in xs])
    return True


def is_array(backend: Any) -> Callable[[Any], bool]:
    """Return a predicate for leaves that count as tensors in every context: tensors and NumPy arrays."""

    def is_wanted(leaf: Any) -> bool:
        return backend.is_tensor(leaf) or isinstance(leaf, (np.ndarray, np.generic)) or foreign.owner(leaf) is not None

    return is_wanted


def is_given(leaf: Any) -> bool:
    """Say whether `leaf` is a leaf with a value: `None` is a gap in a pytree, and a list or dict is not a leaf."""
    return leaf is not None and _tree.is_leaf(leaf)


def argnums(given: Any, what: str) -> int | tuple[int, ...]:
    """Return the int or sequence of distinct ints `given`, as an int or a tuple."""
    try:
        if isinstance(given, bool):
            raise TypeError
        if hasattr(given, "__index__"):
            return operator.index(given)
        positions = tuple(operator.index(position) for position in given)
    except TypeError:
        hint = "; the result takes the arguments: write (f)(x), not (f, x)" if hasattr(given, "dtype") else ""
        raise errors.ArgumentTypeError(
            f"{what} must be an int or a sequence of ints, got {_args.describe(given)}{hint}"
        ) from None
    if len(set(positions)) != len(positions):
        raise errors.ArgumentError(f"{what} names an argument twice: {positions}")
    return positions


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
    if backend.is_tensor(leaf):
        x = backend.convert(leaf)
        if backend.dtype_name(x) in dtypes.INEXACT:
            return x
    if host.is_scalar(leaf):
        if isinstance(leaf, (bool, int)):
            raise errors.DTypeError(
                f"{what()} is the {type(leaf).__name__} {leaf!r}; only float and complex can be differentiated: "
                f"write {float(leaf)!r}"
            )
        return backend.convert(leaf)
    if not is_array(backend)(leaf):
        raise errors.ArgumentTypeError(
            f"{what()} must be a tensor, a NumPy array or a Python float, got {_args.describe(leaf)}"
            f"{'; write .to_numpy()' if hasattr(leaf, 'to_numpy') else _tree.how_to_register(leaf)}"
        )
    try:
        x = backend.convert(leaf)
    except errors.MultiopError as error:
        raise type(error)(f"{what()}: {error.args[0]}") from None
    if backend.dtype_name(x) not in dtypes.INEXACT:
        raise errors.DTypeError(
            f"{what()} has dtype {backend.dtype_name(x)}; only float and complex can be differentiated: cast it, or "
            f"close over it"
        )
    return x


def convert_like(leaf: Any, x: Any, backend: Any, what: str, batch: tuple[int, ...] = ()) -> Any:
    """Return `leaf`, a tangent or cotangent, as a tensor of the dtype of `x`, and its shape after that of `batch`.

    `None` is zero.
    """
    if leaf is None:
        return (
            op_zeros_like(x)
            if not batch
            else backend.on_device_of(x, op_zeros((*batch, *x.shape), backend.dtype_name(x)))
        )
    dtype = backend.dtype_name(x)
    if backend.is_tensor(leaf):
        leaf = backend.convert(leaf)
        leaf_dtype = backend.dtype_name(leaf)
        if leaf_dtype != dtype:
            raise errors.DTypeError(f"{what} has dtype {leaf_dtype}, its counterpart has {dtype}; cast it")
    else:
        try:
            leaf = backend.on_device_of(x, backend.convert(leaf, dtype))
        except errors.MultiopError as error:
            raise type(error)(f"{what}: {error.args[0]}") from None
    leaf_shape, shape = static_shape(leaf), static_shape(x)
    shape = shape if shape is None else (*batch, *shape)
    if not _args.fits(leaf_shape, shape):
        raise errors.ArgumentError(f"{what} has shape {leaf_shape}, its counterpart has {shape}")
    return leaf


class Basis:
    """The unit vectors of the space of all entries of `xs`. A complex entry has two: 1 and the imaginary unit.

    Attributes:
        rows: For each of `xs`, the slice of the unit vectors that belongs to it.
        n: How many unit vectors there are.
    """

    def __init__(self, xs: Sequence[Any], backend: Any, name: str) -> None:
        self.xs, self.backend = xs, backend
        self.entries = list(_count_entries(xs, name))
        self.rows: list[slice] = []
        self.n = 0
        for x, k in zip(xs, self.entries, strict=True):
            size = 2 * k if is_complex(x, backend) else k
            self.rows.append(slice(self.n, self.n + size))
            self.n += size

    def units(self, start: int, stop: int) -> list[Any]:
        """Return those from `start` to `stop` along a new first axis: a tensor for each of `xs`."""
        count, found = stop - start, []
        for x, k, own in zip(self.xs, self.entries, self.rows, strict=True):
            dtype, first = self.backend.dtype_name(x), start - own.start
            block = op_eye(count, k, first, dtype)
            if own.stop - own.start > k:
                block = op_add(block, op_multiply(1j, op_eye(count, k, first - k, dtype)))
            found.append(op_reshape(self.backend.on_device_of(x, block), (count, *x.shape)))
        return found


def _count_entries(xs: Sequence[Any], name: str) -> Iterable[int]:
    """Yield how many entries each of `xs` has."""
    for x in xs:
        shape = static_shape(x)
        if shape is None or None in shape:
            raise errors.ArgumentError(f"{name}: a Jacobian needs shapes that are known before the run, got {shape}")
        yield math.prod(shape)


def leading_axis(tree: Any, name: str) -> tuple[Any]:
    """Return the size of the first axis of the first tensor in a pytree of tangents, as a shape."""
    for leaf in _tree.leaves(tree):
        if leaf is not None and (shape := leaf.shape if hasattr(leaf, "shape") else np.shape(leaf)):
            return (shape[0],)
    raise errors.ArgumentError(f"{name}: with batched, tangents and cotangents have an axis for the batch in front")


def is_complex(x: Any, backend: Any) -> bool:
    """Say whether `x` is complex."""
    return backend.dtype_name(x) in dtypes.COMPLEX


def static_shape(x: Any) -> tuple[Any, ...] | None:
    """Return the shape of a tensor, with `None` for what is known only at run time: a dimension, or the whole shape."""
    try:
        return tuple(x.shape)
    except ValueError:  # a TensorFlow shape of unknown rank has no length
        return None


def leaves_like(tree: Any, structure: Any) -> list[Any]:
    """Return the leaves of `tree`, which must have `structure`; `None` for a subtree is `None` for its leaves."""
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


def take_outputs(returned: Any, backend: Any) -> tuple[Template, list[Any]]:
    """Remove the tensors and numbers from what a function returned; return the template, and them as tensors."""

    def is_numeric(leaf: Any) -> bool:
        return is_array(backend)(leaf) or host.is_scalar(leaf)

    template, outputs = take(returned, is_numeric)
    _tree.refuse_unregistered(template.leaves)
    return template, [backend.convert(y) for y in outputs]


def leaf_name(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], i: int) -> str:
    """Return a name for leaf `i` of `(args, kwargs)`."""
    for position, argument in enumerate(args):
        paths = _tree.paths(argument)
        if i < len(paths):
            return argument_name(fun, position) + paths[i]
        i -= len(paths)
    return f"argument {_tree.paths(kwargs)[i]}"


class FlatFunction:
    """A user's function as a function of only the tensors in its chosen arguments, as a backend's transform takes it.

    Attributes:
        primals: Those tensors.
        output_template: The template of what the function returned last.
        is_meant: Whether a gradient was stopped or taken on the way, so that zeros are no surprise.
        is_unconnected: Whether the output depended on none of the primals, and that was not meant.
        is_scalar: Whether the output must be one real scalar.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: int | tuple[int, ...],
        has_aux: bool,
        backend: Any,
        name: str,
    ) -> None:
        self.fun, self.args, self.kwargs, self.has_aux, self.backend = fun, args, kwargs, has_aux, backend
        self.name = name
        self.is_meant = self.is_unconnected = self.is_scalar = False
        self.output_template: Any = None
        self.aux_template: Any = None
        self.is_one_tensor = False
        self.bare = isinstance(argnums, int)
        if isinstance(argnums, int):
            self.positions = [argnums if 0 <= argnums < len(args) else self._position(argnums)]
            template, self.primals = self._take(self.positions[0])
            self.templates, self.is_one_tensor = [template], template is BARE
            structure = template.structure  # optree fills it without a call in Python, where no leaf remains
            is_whole = type(structure) is _tree.optree.PyTreeSpec and len(template.positions) == len(template.leaves)
            self.fill = structure.unflatten if is_whole else template.fill
            return
        is_all = argnums == tuple(range(len(args)))
        self.positions = list(argnums) if is_all else [self._position(i) for i in argnums]
        if len(set(self.positions)) != len(self.positions):
            raise errors.ArgumentError(f"{name}: argnums names an argument twice: {argnums}")
        self.templates, self.primals = [], []
        for position in self.positions:
            template, primals = self._take(position)
            self.templates.append(template)
            self.primals += primals

    def _take(self, position: int) -> tuple[Template, list[Any]]:
        """Remove the tensors from an argument; return the template that remains, and them, which are all inexact."""
        backend, argument = self.backend, self.args[position]
        known = seen[backend.name]
        if type(argument) in known.classes and (argument.dtype in known.inexact or are_inexact([argument], backend)):
            return BARE, [argument]
        is_array = (
            type(argument) is np.ndarray and backend.is_tensor(argument) and backend.convert(argument) is argument
        )
        if is_array and backend.dtype_name(argument) in dtypes.INEXACT:
            return BARE, [argument]
        leaves, structure = _tree.flatten(argument)
        if known.classes.issuperset(map(type, leaves)):
            for x in leaves:
                if x.dtype not in known.inexact and not are_inexact([x], backend):
                    break
            else:  # the usual case
                return Template(structure, [None] * len(leaves), range(len(leaves))), leaves
        template, given = take(argument, is_given if not backend.is_tensor(argument) else backend.is_tensor)
        primals = [
            differentiable(leaf, backend, functools.partial(self._leaf_name, position, k))
            for k, leaf in zip(template.positions, given, strict=True)
        ]
        learn_classes(given, primals, backend)
        return template, primals

    def _position(self, i: int) -> int:
        n = len(self.args)
        if not -n <= i < n:
            raise errors.ArgumentError(
                f"{self.name}: argnums {i} is out of range for a call with {n} positional arguments"
                + ("; an argument given by keyword cannot be chosen" if self.kwargs else "")
            )
        return i % n

    def _leaf_name(self, position: int, k: int) -> str:
        return f"{self.name}: {argument_name(self.fun, position)}{_tree.paths(self.args[position])[k]}"

    def __call__(self, *tensors: Any) -> tuple[list[Any], list[Any]]:
        """Run the function; return the tensors of its output and those of its aux."""
        arguments, backend = list(self.args), self.backend
        if self.is_one_tensor:
            arguments[self.positions[0]] = tensors[0]
        elif len(self.positions) == 1:
            arguments[self.positions[0]] = (self.fill if self.bare else self.templates[0].fill)(tensors)
        else:
            for position, entry in zip(self.positions, self._per_argument(tensors), strict=True):
                arguments[position] = entry
        self.is_meant = False
        before, doors.innermost.run = getattr(doors.innermost, "run", None), self
        try:
            fun = self.fun if backend.traced is None else backend.traced(self.fun)
            output = fun(*arguments, **self.kwargs)
        except Exception as error:
            if isinstance(error.__cause__, errors.UnsupportedError):  # NumPy hides it where an entry is set
                raise error.__cause__ from None
            if doors.is_refusal(error) and doors.is_differentiated(list(tensors), backend):
                raise doors.refusal(self.name) from error
            raise
        finally:
            doors.innermost.run = before
        if not self.has_aux and type(output) in seen[backend.name].classes:  # the usual case
            self.output_template = BARE
            outputs: list[Any] = [output]
            aux: list[Any] = []
        else:
            outputs, aux = self._split_output(output)
        ask = getattr(backend, "is_differentiated", None)  # of the first output, which is enough as a rule
        is_known = self.is_meant or (ask is not None and len(outputs) > 0 and ask(outputs[0]))
        if not is_known and doors.is_differentiated(outputs, backend) is False:
            self.is_unconnected = doors.is_differentiated(list(tensors), backend) is True and any(
                backend.dtype_name(y) in dtypes.INEXACT for y in outputs
            )
        if before is not None:
            before.is_meant = True  # the derivative that an outer transform differentiates
        if self.is_scalar:
            is_usual = self.output_template is BARE and (y := outputs[0]).shape == ()
            if not (is_usual and y.dtype in seen[backend.name].real):
                self._refuse_all_but_scalar(outputs)
        return outputs, aux

    def _split_output(self, output: Any) -> tuple[list[Any], list[Any]]:
        aux: list[Any] = []
        if self.has_aux:
            if not isinstance(output, tuple) or len(output) != 2:
                raise errors.ArgumentTypeError(
                    f"{self.name}: with has_aux, fun must return (output, aux); it returned {_args.describe(output)}"
                )
            output, aux_tree = output
            self.aux_template, aux = take(aux_tree, self.backend.is_tensor)
        if self.backend.is_tensor(output):
            self.output_template = BARE
            tensor = self.backend.convert(output)
            learn_classes([output], [tensor], self.backend)
            return [tensor], aux
        self.output_template, outputs = take(output, is_given)
        if not outputs:
            raise self._no_tensor(output)
        for k, y in enumerate(outputs):
            if not self.backend.is_tensor(y):
                if not (is_array(self.backend)(y) or host.is_scalar(y)):
                    raise self._no_tensor(y)
                y = self.backend.convert(y)
            outputs[k] = self.backend.convert(y)
        return outputs, aux

    def warn_unconnected(self) -> None:
        """Warn if the output depended on nothing that it is differentiated with respect to."""
        if self.is_unconnected:
            doors.warn_unconnected(self.name)

    def _no_tensor(self, returned: Any) -> Exception:
        forgotten = " (a forgotten return?)" if returned is None else ""
        return errors.ArgumentTypeError(
            f"{self.name}: fun must return tensors; it returned {_args.describe(returned)}{forgotten}"
            f"{_tree.how_to_register(returned)}"
        )

    def inexact(self, *tensors: Any) -> tuple[list[Any], list[Any]]:
        """Run the function, whose outputs must all be real or complex."""
        outputs, aux = self(*tensors)
        self.refuse_exact(outputs)
        return outputs, aux

    def refuse_exact(self, outputs: list[Any]) -> None:
        """Raise an error if an output is neither real nor complex."""
        for y in outputs:
            if self.backend.dtype_name(y) not in dtypes.INEXACT:
                way = "leave it out" if self.name.startswith("sparse_") else "return it as aux (has_aux=True)"
                raise errors.DTypeError(
                    f"{self.name}: fun returned {_args.describe(y)}, which has no derivative; {way}"
                )

    def _refuse_all_but_scalar(self, outputs: list[Any]) -> None:
        """Raise an error if the output is not one real scalar."""
        self.refuse_exact(outputs)
        structure = self.output_template.structure
        if structure is not None and not structure.is_leaf():
            hint = "" if self.has_aux else "; for a function that returns (output, aux), give has_aux=True"
            raise errors.ArgumentTypeError(
                f"{self.name}: fun must return one scalar tensor; it returned {len(outputs)} in a container{hint}"
            )
        y = outputs[0]
        if is_complex(y, self.backend):
            raise errors.DTypeError(
                f"{self.name}: fun must return a real scalar, it returned {_args.describe(y)}; differentiate its real "
                f"or imaginary part, or take jvp (the derivative of a holomorphic function), or vjp with a cotangent"
            )
        if not _args.fits(static_shape(y), ()):
            raise errors.ArgumentError(
                f"{self.name}: fun must return a scalar, it returned {_args.describe(y)}; reduce it (op_sum gives the "
                f"gradient of the total), or take vjp with a cotangent, or jacrev for every row"
            )
        if self.output_template is BARE:
            seen[self.backend.name].real.add(y.dtype)

    def refuse_complex_to_complex(self, outputs: list[Any]) -> None:
        """Raise an error if an output and an input are both complex, since they have no single Jacobian."""
        complex_output = any(is_complex(y, self.backend) for y in outputs)
        if complex_output and any(is_complex(x, self.backend) for x in self.primals):
            raise errors.DTypeError(
                f"{self.name}: a complex function of complex numbers has no single Jacobian; split the input or the "
                f"output into real and imaginary part, or take jvp (the derivative of a holomorphic function)"
            )

    def _per_argument(self, entries: Sequence[Any]) -> list[Any]:
        filled, start = [], 0
        for template in self.templates:
            end = start + len(template.positions)
            filled.append(template.fill(entries[start:end]))
            start = end
        return filled

    def arguments(self, entries: Sequence[Any]) -> Any:
        """Put one entry per primal into the structure of the chosen argument, or of the tuple of chosen arguments."""
        if self.is_one_tensor:
            return entries[0]
        return self.fill(entries) if self.bare else tuple(self._per_argument(entries))

    def aux(self, tensors: Sequence[Any]) -> Any:
        """Put the tensors of aux back into its structure."""
        return self.aux_template.fill(tensors)

    def tangents(self, tangents: Sequence[Any], batched: bool = False) -> list[Any]:
        """Lay out tangents, in the structure of the arguments, as one tensor per primal.

        Where they are `batched`, several stand along a first axis, which all have in common.
        """
        batch = leading_axis(tangents, self.name) if batched else ()
        flat: list[Any] = []
        start, known = 0, seen[self.backend.name].classes
        for i, (template, tangent) in enumerate(zip(self.templates, tangents, strict=True)):
            if template is BARE and type(tangent) in known and not batched:  # the usual case
                primal = self.primals[start]
                if tangent.dtype == primal.dtype and tangent.shape == primal.shape:
                    flat.append(tangent)
                    start += 1
                    continue
            try:
                leaves = leaves_like(tangent, template.structure)
            except ValueError as error:
                raise errors.ArgumentError(
                    f"{self.name}: tangent {i} must have the structure of primal {i}: {error}"
                ) from None
            for position, primal in zip(template.positions, self.primals[start:], strict=False):
                flat.append(convert_like(leaves[position], primal, self.backend, f"{self.name}: tangent {i}", batch))
            start += len(template.positions)
        return flat
