"""Sparse Jacobians and Hessians, prepared once: a pattern, its colours, and as many products as there are colours."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from multiop import errors
from multiop._call.frames import shorten
from multiop._loading.registry import active
from multiop._values import args as _args, dtypes
from multiop._values.types import PyTree, Tensor
from multiop.autodiff import _flat
from multiop.autodiff.sparse import _coloring, _drawing, _tracing
from multiop.autodiff.sparse._coloring import color_hessian, color_jacobian
from multiop.autodiff.sparse._sets import read_pattern, sparse
from multiop.autodiff.stop_gradient import op_stop_gradient
from multiop.autodiff.transforms import _gradient, _in_chunks, _map_chunks
from multiop.frontends.conversion import op_cast, op_convert_to_numpy
from multiop.frontends.creation import op_zeros
from multiop.frontends.elementwise import op_add, op_subtract
from multiop.frontends.indexing import op_take
from multiop.frontends.segment import op_segment_sum
from multiop.frontends.shapes import op_concatenate, op_reshape

Shapes = list[tuple[tuple[int, ...], str]]


def sparse_jacobian(
    f: Callable[[Any], PyTree], x: PyTree, pattern: Any = None, mode: str = "auto", chunk_size: int | None = None
) -> SparseDerivative:
    """Prepare the Jacobian of a function most of whose entries are zero for every input.

    The pattern of the entries that may not be zero is found by one run of `f`, on any backend. Columns, or rows, that
    share no row, or column, get one colour, and one product with the Jacobian gives all of one colour: a tridiagonal
    Jacobian takes three, whatever its size.

    Args:
        f: Function of one argument, a pytree of real tensors, that returns a pytree of real tensors, written with
            multiop's ops and Python's operators.
        x: Argument of the shapes and dtypes that it will be called with. Its values do not matter for the pattern.
        pattern: The pattern, where it is known: a matrix of SciPy or an array, true or non-zero where an entry may not
            be zero, with a row for each entry of the output and a column for each of `x`, leaves in order. It is
            compared at `x` with a product with a random vector. `None`: it is found, and `f` may use no tensor's values
            for Python's control flow.
        mode: `"forward"`: columns are coloured, and products taken in forward mode; `"reverse"`: rows, in reverse mode;
            `"both"`: each entry by the one or the other, as for a full row and a full column; `"auto"`: what takes the
            fewest products.
        chunk_size: How many products to take at a time, which bounds the memory; `None` for all.

    Returns:
        The prepared Jacobian `J`: `J(x)` is a matrix of SciPy, `J.values(x)` the entries as a tensor.

    Raises:
        ArgumentError: The pattern has the wrong shape, or lacks an entry, which the error names; or `x` or the output
            is empty.
        DTypeError: `x` or the output holds integers or complex numbers.
        UnsupportedError: The pattern cannot be found, because `f` is not written with multiop's ops, or needs values.
        ArgumentTypeError: `f` is not callable, or does not return tensors.

    Gradient:
        `J.values` is differentiable, to any order. A custom gradient has the pattern of its rule.

    Example:
        >>> import multiop
        >>> from multiop import ops
        >>> J = multiop.sparse_jacobian(lambda x: x[1:] * x[:-1], ops.ones(5))
        >>> J.shape, J.nnz, J.n_products
        ((4, 5), 8, 2)
        >>> J(ops.array([1.0, 2.0, 3.0, 4.0, 5.0])).toarray()[0].tolist()
        [2.0, 1.0, 0.0, 0.0, 0.0]
    """
    try:
        return _prepare(f, x, pattern, mode, chunk_size, False)
    except Exception as error:
        shorten(error)
        raise


def sparse_hessian(
    f: Callable[[Any], Tensor], x: PyTree, pattern: Any = None, mode: str = "auto", chunk_size: int | None = None
) -> SparseDerivative:
    """Prepare the Hessian of a scalar-valued function most of whose entries are zero for every input.

    As `sparse_jacobian`, for second derivatives. Pairs of inputs are found term by term, so that a sum of many terms of
    few inputs each has a sparse Hessian; and its symmetry saves products.

    Args:
        f: Function of one argument, a pytree of real tensors, that returns one real tensor of shape `()`.
        x: Argument of the shapes and dtypes that it will be called with.
        pattern: The pattern, where it is known, a square matrix; see `sparse_jacobian`.
        mode: `"symmetric"`: an entry is read in its place, or in that of its mirror image; `"acyclic"`: an entry may be
            the difference of others, which takes up to half as many products, and loses some digits; `"forward"` or
            `"reverse"`: each entry is read in its own place, as a custom gradient needs, whose second derivative need
            not be symmetric; `"auto"`: one of these for a function with a custom gradient, `"symmetric"` for others.
        chunk_size: How many products to take at a time, which bounds the memory; `None` for all.

    Returns:
        The prepared Hessian `H`: `H(x)` is a matrix of SciPy, `H.values(x)` the entries as a tensor.

    Raises:
        ArgumentError: The pattern has the wrong shape, or lacks an entry, which the error names; `x` is empty; or the
            output is not a scalar.
        DTypeError: `x` or the output holds integers or complex numbers.
        UnsupportedError: The pattern cannot be found, because `f` is not written with multiop's ops, or needs values.
        ArgumentTypeError: `f` is not callable, or does not return a tensor.

    Gradient:
        `H.values` is differentiable, to any order.

    Example:
        >>> import multiop
        >>> from multiop import ops
        >>> H = multiop.sparse_hessian(lambda x: ops.sum((x[1:] - x[:-1] ** 2) ** 2), ops.ones(4))
        >>> H.nnz, H.n_products
        (10, 3)
        >>> H(ops.array([1.0, 2.0, 3.0, 4.0])).toarray()[0].tolist()
        [4.0, -4.0, 0.0, 0.0]
    """
    try:
        return _prepare(f, x, pattern, mode, chunk_size, True)
    except Exception as error:
        shorten(error)
        raise


MODES = {False: ("auto", "forward", "reverse", "both"), True: ("auto", "forward", "reverse", "symmetric", "acyclic")}
MIRRORED = ("symmetric", "acyclic")
NAMES = {False: "sparse_jacobian", True: "sparse_hessian"}


def _prepare(f: Any, x: Any, pattern: Any, mode: Any, chunk_size: Any, second: bool) -> SparseDerivative:
    name = NAMES[second]
    _args.function(f, f"{name}: f")
    _args.choice(mode, MODES[second], f"{name}: mode")
    _in_chunks(color_jacobian, chunk_size, name)  # checks it
    flat, tree = _flatten(f, x, name)
    flat.is_scalar = second
    if not _count(inputs := _shapes(flat.primals, flat)):
        raise errors.ArgumentError(f"{name}: x has no entries: {_say(inputs)}")
    outputs = [op_stop_gradient(y) for y in flat.inexact(*flat.primals)[0]]
    _refuse_complex(outputs, flat, "the output of f")
    results, is_given = _shapes(outputs, flat), pattern is not None
    shape = _count(inputs if second else results), _count(inputs)
    if not shape[0]:
        raise errors.ArgumentError(f"{name}: the output of f has no entries: {_say(results)}")
    traced = (read_pattern(pattern, shape, name), not second, True) if is_given else _trace(flat, second, outputs)
    found, has_rules, is_doubtful = traced
    found = sparse().csr_array(found, dtype=bool).sorted_indices()
    is_symmetric = second and _coloring.are_equal(found, found.T)
    if mode in MIRRORED and not is_symmetric:
        raise errors.ArgumentError(f"{name}: mode {mode!r} needs a symmetric pattern")
    # to try in turn: a rule may lack forward mode, or symmetry of its second derivative, a loop on JAX reverse mode
    kinds = "symmetric forward" if is_symmetric and not has_rules else "forward reverse"
    modes = [mode] if mode != "auto" else (kinds if second else "auto reverse forward").split()
    by_rows = flat.backend.name != "jax"  # whose tangent map takes no longer than a pullback

    def prepare(mode: str) -> SparseDerivative:
        is_mirrored = mode in MIRRORED
        colored = color_hessian(found, mode == "acyclic") if is_mirrored else color_jacobian(found, mode, by_rows)
        made = SparseDerivative(f, found, colored, inputs, results, second, chunk_size, tree)
        if is_doubtful or (has_rules and is_mirrored):
            made.check(x)
        elif has_rules or (colored.rows is not None and not by_rows):
            made.values(x)
        return made

    for one in modes[:-1]:
        with contextlib.suppress(errors.ArgumentError, errors.NonLinearRuleError, errors.NoGradientError):
            return prepare(one)
    return prepare(modes[-1])


class SparseDerivative:
    """A Jacobian or Hessian whose pattern and colours are known: what `sparse_jacobian` and `sparse_hessian` return.

    Attributes:
        pattern: The entries that may not be zero, a matrix of bool in CSR form.
        rows: The row of each entry, an array.
        cols: The column of each entry.
        colors: The colour of each column, -1 for none; of each row, in reverse mode; a pair of both in mode `"both"`.
        n_products: How many products with the matrix, or its transpose, give all entries.
        shape: The number of entries of the output, and of the input.
        nnz: How many entries may not be zero.
    """

    def __init__(
        self, f: Any, pattern: Any, colored: Any, inputs: Shapes, outputs: Shapes, second: bool, chunk: Any, tree: str
    ) -> None:
        self._f, self._colored, self._inputs, self._outputs, self._tree = f, colored, inputs, outputs, tree
        self._results = inputs if second else outputs
        self._second, self._chunk_size, self._name = second, chunk, NAMES[second]
        self._n_columns, self._n_rows = _coloring.count(colored.columns), _coloring.count(colored.rows)
        self.pattern, self.n_products, self.nnz = pattern, colored.size, int(pattern.nnz)
        m, n = self.shape = int(pattern.shape[0]), int(pattern.shape[1])
        self.rows, self.cols = pattern.tocoo().row, pattern.indices
        given = tuple(colors for colors in (colored.rows, colored.columns) if colors is not None)
        self.colors = given if len(given) == 2 else given[0]
        color, start = colored.color.astype(np.int64), self._n_columns * m if self._n_rows else 0
        # others are read from the products of rows, or in the place of the mirror image
        sources = np.where(colored.is_column, color * m + self.rows, start + color * n + self.cols)
        self._index = "int32" if sources.max(initial=0) < 2**31 else "int64"
        self._sources, self._kept = sources.astype(self._index), dict[Any, Any]()
        self._steps = list(_find_steps(colored.above))
        if self._steps:  # and then each is taken from where it was read
            self._places = np.where(colored.is_column, np.arange(self.nnz), _coloring.mirror(pattern)).astype(np.int32)

    def values(self, x: PyTree) -> Tensor:
        """Return the entries at `x` as a tensor, in the order of `rows` and `cols`.

        Args:
            x: Pytree of the shapes and dtypes that it was prepared for.

        Returns:
            Tensor of shape `(nnz,)` and the dtype of the output of `f`, or of the gradient for a Hessian, on the device
            of `x`. It is differentiable with respect to what `x` depends on, and what `f` closes over, and can be
            computed under `jit`.

        Raises:
            ArgumentError: `x` has another structure than it was prepared for, or `x` or what `f` returns other shapes.
            DTypeError: `x` holds integers or complex numbers.
        """
        flat = self._flatten(x)
        if not self.nnz:
            return op_zeros((0,), _promote(self._results))
        parts = [part(flat) for part, n in ((self._push, self._n_columns), (self._pull, self._n_rows)) if n]
        compressed, backend = parts[0] if len(parts) == 1 else op_concatenate(parts, 0), flat.backend
        sources = self._sources
        if backend.is_at_hand(compressed):
            (sources,) = self._keep("sources", flat, lambda: [backend.convert(sources, self._index)])
        values = op_take(compressed, sources, 0)
        for k, (moved, targets) in enumerate(self._steps):
            sums = op_segment_sum(op_take(values, moved, 0), targets, self.nnz)
            values = op_add(values, sums) if k else op_subtract(values, sums)
        return op_take(values, self._places, 0) if self._steps else values

    def __call__(self, x: PyTree) -> Any:
        """Return the matrix at `x` on the host.

        Args:
            x: Pytree of the shapes and dtypes that it was prepared for.

        Returns:
            `scipy.sparse.csr_array` of shape `shape`, with an entry for each of the pattern, those that are zero too.

        Raises:
            ArgumentError: `x` has another structure than it was prepared for, or `x` or what `f` returns other shapes.
            DTypeError: `x` holds integers or complex numbers.
        """
        return self.matrix(op_stop_gradient(self.values(x)))

    def matrix(self, values: Tensor) -> Any:
        """Return the matrix of SciPy that has these entries.

        Args:
            values: What `values` returned, or a compiled version of it: `J.matrix(multiop.jit(J.values)(x))`.

        Returns:
            `scipy.sparse.csr_array` of shape `shape`; 16-bit floats, which SciPy lacks, become `float32`.
        """
        host = np.asarray(op_convert_to_numpy(values))
        if host.shape != (self.nnz,):
            raise errors.ArgumentError(f"{self._name}: values has shape {host.shape}; there are {self.nnz} entries")
        host = host.astype(np.float32) if host.dtype.itemsize < 4 else host
        return sparse().csr_array((host, self.pattern.indices.copy(), self.pattern.indptr.copy()), self.pattern.shape)

    def save(self, path: Any) -> None:
        """Write the pattern, the colours and the shapes to a file, from which `load` makes it again.

        Args:
            path: The file, which gets the ending `.npz` if it has none.
        """
        import json

        about = {key: getattr(self, f"_{key}") for key in ("inputs", "outputs", "second", "chunk_size", "tree")}
        arrays = {"shape": self.shape, "indices": self.pattern.indices, "indptr": self.pattern.indptr}
        arrays |= {name: value for name, value in self._colored._asdict().items() if value is not None}
        np.savez_compressed(path, about=np.array(json.dumps(about)), **arrays)

    @classmethod
    def load(cls, path: Any, f: Callable[[Any], Any]) -> SparseDerivative:
        """Return what `save` wrote, for the function `f`, which is neither run nor compared with the pattern.

        Args:
            path: The file.
            f: The function that it was prepared for.

        Raises:
            ArgumentTypeError: `f` is not callable.
            ArgumentError: The file holds something else.
        """
        import json
        import zipfile  # which NumPy imports for this, too

        _args.function(f, "load: f")
        if not hasattr(path, "read") and not os.fspath(path).endswith(".npz"):
            path = f"{path}.npz"  # as `save` adds it
        try:
            with np.load(path) as saved:
                about, indices = json.loads(str(saved["about"])), saved["indices"]
                entries = np.ones(len(indices), bool), indices, saved["indptr"]
                pattern = sparse().csr_array(entries, tuple(saved["shape"].tolist()))
                colored = _coloring.Coloring(*map(saved.get, _coloring.Coloring._fields))
                inputs, outputs = ([(tuple(s), dtype) for s, dtype in about[key]] for key in ("inputs", "outputs"))
                rest = about["second"], about["chunk_size"], about["tree"]
        except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise errors.ArgumentError(f"load: {path} holds no prepared derivative: {error}") from None
        return cls(f, pattern, colored, inputs, outputs, *rest)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}  # which holds tensors of a device

    def __repr__(self) -> str:
        kind = "Hessian" if self._second else "Jacobian"
        name = getattr(self._f, "__qualname__", repr(self._f))
        return (
            f"<sparse {kind} of {name}: {self.shape[0]} x {self.shape[1]}, {self.nnz} entries, "
            f"{self.n_products} products>\n{_drawing.draw_text(self.pattern)}"
        )

    def _repr_html_(self) -> str:
        colors = self._colored.color + np.where(self._colored.is_column, 0, self._n_columns)
        return _drawing.draw_html(repr(self).partition("\n")[0], self.pattern, colors)

    def _flatten(self, x: Any) -> _flat.FlatFunction:
        flat, given = _flatten(_gradient(self._f, 0, False, self._name) if self._second else self._f, x, self._name)
        if given != self._tree:
            raise errors.ArgumentError(f"{self._name}: x is {given}; it was prepared for {self._tree}")
        self._compare(_shapes(flat.primals, flat), self._inputs, "x is")
        return flat

    def _seeds(self, colors: Any, shapes: Shapes, flat: _flat.FlatFunction, start: int, stop: int) -> list[Any]:
        """Return the products' vectors from `start` to `stop`: of ones, where a column or row has the colour."""
        key = colors is self._colored.rows, start, stop, tuple(shapes)
        return self._keep(key, flat, lambda: _split(colors == np.arange(start, stop)[:, None], shapes, flat.backend))

    def _keep(self, key: Any, flat: _flat.FlatFunction, make: Callable[[], list[Any]]) -> list[Any]:
        """Return constants beside the function's own tensors, from an earlier call if there are any."""
        backend, x = flat.backend, flat.primals[0]
        try:
            key = key, backend.name, backend.device(x)
        except (errors.UnsupportedError, AttributeError):  # of a traced one on JAX, or that finds a pattern
            key = None
        if (kept := self._kept.get(key)) is not None:
            return kept
        placed = [backend.on_device_of(x, part) for part in make()]
        # a tensor of a program that is traced, or of PyTorch's inference mode, serves there alone
        if key and all(backend.is_at_hand(part) and not getattr(part, "is_inference", bool)() for part in placed):
            self._kept[key] = placed
        return placed

    def _push(self, flat: _flat.FlatFunction) -> Any:
        """Return the products of columns as one vector, product after product."""
        backend = flat.backend

        def push(tangents: list[Any]) -> list[Any]:
            return list(backend.jvp(flat.inexact, flat.primals, tangents)[1])

        is_mirrored = self._colored.rows is None and not self._colored.is_column.all()  # a symmetric matrix
        if hasattr(backend, "linearize") and (linear := backend.linearize(flat.inexact, flat.primals)) is not None:
            push = linear[2] if is_mirrored else linear[3]()
        seeds = functools.partial(self._seeds, self._colored.columns, _shapes(flat.primals, flat), flat)
        pushed = _map_chunks(push, seeds, self._n_columns, self._chunk_size, backend)
        self._compare([(shape[1:], dtype) for shape, dtype in _shapes(pushed, flat)], self._results, "f returned")
        return _join(pushed, self._n_columns)

    def _pull(self, flat: _flat.FlatFunction) -> Any:
        """Return the products of rows as one vector, product after product."""
        outputs, pullback, _ = flat.backend.vjp(flat.inexact, flat.primals)
        given = _shapes(outputs, flat)
        self._compare(given, self._results, "f returned")
        seeds = functools.partial(self._seeds, self._colored.rows, given, flat)
        pulled = _map_chunks(pullback, seeds, self._n_rows, self._chunk_size, flat.backend)
        return op_cast(_join(pulled, self._n_rows), _promote(given))  # from the dtype of the input

    def _compare(self, given: Shapes, wanted: Shapes, what: str) -> None:
        if [shape for shape, _ in given] != [shape for shape, _ in wanted]:
            raise errors.ArgumentError(f"{self._name}: {what} {_say(given)}; it was prepared for {_say(wanted)}")

    def check(self, x: PyTree) -> None:
        """Compare a product at `x` with that of the entries, as is done once for a pattern that is given.

        Args:
            x: Pytree of the shapes and dtypes that it was prepared for.

        Raises:
            ArgumentError: The derivative at `x` has an entry outside of the pattern, which the error names.
            NonLinearRuleError: A custom gradient rule is not linear in its upstream gradient, so that it has no
                transpose to compare with.
        """
        flat = self._flatten(x)
        backend = flat.backend
        outputs, pullback, _ = backend.vjp(flat.inexact, flat.primals)
        sides = {True: _shapes(outputs, flat), False: _shapes(flat.primals, flat)}
        by_rows = self._n_columns == 0  # what has no forward mode is compared in reverse mode

        def product(vector: Any, by_rows: bool) -> Any:
            parts = [backend.on_device_of(flat.primals[0], y) for y in _split(vector, sides[by_rows], backend)]
            found = pullback(parts) if by_rows else backend.jvp(flat.inexact, flat.primals, parts)[1]
            found = [np.asarray(op_convert_to_numpy(op_stop_gradient(y)), np.float64) for y in found]
            return np.concatenate([y.ravel() for y in found])

        whole = np.random.default_rng(0).uniform(0.5, 1.5, _count(sides[by_rows]))
        matrix = (self(x).T if by_rows else self(x)).astype(np.float64)
        tolerance = max(TOLERANCE.get(dtype, 0.1) for _, dtype in [*sides[True], *sides[False]])
        with np.errstate(all="ignore"):
            wanted, own = product(whole, by_rows), matrix @ whole
            off = np.abs(wanted - own) > tolerance * (np.abs(wanted) + abs(matrix) @ whole)
        for line in np.flatnonzero(off).tolist():
            entries = product(np.eye(1, len(off), line)[0], not by_rows)
            entries[(self.pattern.T if by_rows else self.pattern).tocsr()[[line]].indices] = 0
            other = int(np.abs(entries).argmax())
            if entries[other]:
                i, j = (other, line) if by_rows else (line, other)
                raise errors.ArgumentError(
                    f"{self._name}: the pattern lacks an entry: that of row {i} and column {j} is "
                    f"{entries[other]:.3g} at x"
                )
        if off.any():
            why = "the second derivative at x is not symmetric: give mode='forward'"
            raise errors.ArgumentError(f"{self._name}: {why if self._second else 'f has another derivative each time'}")


def _find_steps(above: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what to add to what, so that each entry loses those above which it is: the first time, to subtract.

    A sum over all that is below an entry, with alternating signs, is that over the distances 1, 2, 4 and so on.
    """
    while above is not None and (above >= 0).any():
        moved = np.flatnonzero(above >= 0).astype(np.int32)
        yield moved, above[moved]
        above = np.where(above >= 0, above[above], -1)


TOLERANCE = {"float32": 1e-4, "float64": 1e-9}  # between a product and that of the entries


def _flatten(f: Callable[..., Any], x: Any, name: str) -> tuple[_flat.FlatFunction, str]:
    """Return `f` as a function of the tensors in `x`, which must be real, and the structure of `x`."""
    flat = _flat.FlatFunction(f, (x,), {}, 0, False, active(), name)
    _refuse_complex(flat.primals, flat, "x")
    return flat, "a tensor" if (tree := flat.templates[0].structure) is None else str(tree)


def _refuse_complex(xs: Sequence[Any], flat: _flat.FlatFunction, what: str) -> None:
    for x in xs:
        if _flat.is_complex(x, flat.backend):
            raise errors.DTypeError(
                f"{flat.name}: {what} holds {_args.describe(x)}, and sparse derivatives are of real numbers: split it "
                f"into its real and imaginary part"
            )


def _shapes(xs: Sequence[Any], flat: _flat.FlatFunction) -> Shapes:
    """Return the shape and dtype of each tensor; they are known before the run."""
    found = []
    for x in xs:
        shape = _flat.static_shape(x)
        if shape is None or None in shape:
            raise errors.ArgumentError(f"{flat.name}: shapes must be known before the run, got {shape}")
        found.append((shape, flat.backend.dtype_name(x)))
    return found


def _split(rows: Any, shapes: Shapes, backend: Any) -> list[Any]:
    """Return a vector, or the rows of a matrix, as a tensor for each of `shapes`."""
    lead, sizes = rows.shape[:-1], [math.prod(shape) for shape, _ in shapes]
    parts = np.split(rows, np.cumsum(sizes)[:-1], -1)
    return [
        backend.convert(part.reshape((*lead, *shape)).astype(dtypes.to_numpy(dtype)), dtype)
        for part, (shape, dtype) in zip(parts, shapes, strict=True)
    ]


def _join(products: Sequence[Any], n: int) -> Any:
    """Return `n` products, a tensor for each output, as one vector."""
    flat = [op_reshape(y, (n, -1)) for y in products]
    return op_reshape(flat[0] if len(flat) == 1 else op_concatenate(flat, 1), (-1,))


def _promote(shapes: Shapes) -> str:
    """Return the dtype that tensors of these dtypes have together."""
    return dtypes.result_type(*(dtype for _, dtype in shapes))


def _say(shapes: Shapes) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in shapes) or "nothing"


def _count(shapes: Shapes) -> int:
    return sum(math.prod(shape) for shape, _ in shapes)


def _trace(flat: _flat.FlatFunction, second: bool, outputs: Sequence[Any]) -> tuple[Any, bool, bool]:
    """Find the pattern by one run of the function on index sets.

    Returns:
        The pattern; whether the function has custom gradients; and whether it took another way than to `outputs`.
    """
    arrays = [_tracing.read(x, flat.backend)[0] for x in flat.primals]

    def run(*leaves: Any) -> list[Any]:
        return _flat.take(flat.fun(*[template.fill(leaves) for template in flat.templates]), _flat.is_given)[1]

    try:
        found, has_rules, values = _tracing.find_pattern(run, arrays, second)
    except Exception as error:
        raise errors.UnsupportedError(
            f"{flat.name}: the pattern of f cannot be found: {type(error).__name__}: {error}. Write f with multiop's "
            f"ops, without Python's control flow on values, or give its pattern"
        ) from error
    if [y.shape for y in values] != [tuple(y.shape) for y in outputs]:
        raise errors.UnsupportedError(f"{flat.name}: f returns other shapes where its pattern is looked for: give it")
    is_known = all(map(flat.backend.is_at_hand, outputs))
    pairs = [
        (_tracing.read(y, flat.backend)[0].astype(float), v) for y, v in zip(outputs, values, strict=True) if is_known
    ]
    with np.errstate(all="ignore"):
        is_odd = any((abs(y - v.astype(float)) > 1e-3 * abs(y).max(initial=0)).any() for y, v in pairs)
    return found, has_rules, is_odd
