"""Index sets: for each entry of a tensor, which entries of the inputs it depends on, as a row of a sparse matrix.

A `Traced` tensor has a value, whose shape and dtype matter and whose numbers do not, and the sets of its entries. The
step that made it is its parents, each with the map from the result's entries to its own, and the pairs of
sets whose product is in its second derivative.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from multiop import errors
from multiop._loading import registry
from multiop._values import host
from multiop.frontends.conversion import op_convert_to_numpy

Map = Any
"""From a result's entries to a parent's: `None` for the same, an array of numbers, -1 for none, or a sparse matrix."""


@functools.cache
def sparse() -> Any:
    """Return `scipy.sparse`, which `import multiop` does not import."""
    import scipy.sparse

    return scipy.sparse


def matrix(rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """Return the matrix of bool that is true where `rows` and `columns` say."""
    made = sparse().csr_array((np.ones(len(rows), bool), (rows, columns)), shape)
    made.sum_duplicates()
    return made


def read_pattern(pattern: Any, shape: tuple[int, int], name: str) -> Any:
    """Return a pattern that the caller gives as a matrix of bool; an entry that is there twice counts once."""
    if not hasattr(pattern, "tocoo"):
        try:
            pattern = np.array(op_convert_to_numpy(pattern) if registry.active().is_tensor(pattern) else pattern, bool)
        except ValueError as error:  # of lists of different lengths
            raise errors.ArgumentError(f"{name}: pattern must be a matrix: {error}") from None
    if tuple(pattern.shape) != shape:
        raise errors.ArgumentError(
            f"{name}: pattern has shape {tuple(pattern.shape)}; the output has {shape[0]} entries, x has {shape[1]}"
        )
    given = sparse().coo_array(pattern)
    return matrix(given.row[kept := given.data != 0], given.col[kept], shape)


def empty(n: int, width: int) -> Any:
    """Return `n` empty sets."""
    return sparse().csr_array((n, width), dtype=bool)


def widen(sets: Any, width: int) -> Any:
    """Return `sets` of a space to which entries have been added."""
    if sets.shape[1] == width:
        return sets
    return sparse().csr_array((sets.data, sets.indices, sets.indptr), (sets.shape[0], width))


def narrow(sets: Any, start: int, stop: int) -> Any:
    """Return what of `sets` is between two numbers, counted from the first."""
    return sparse().csr_array(widen(sets, max(stop, sets.shape[1]))[:, start:stop])


def turn(sets: Any) -> Any:
    """Return, for each entry that may be in one of `sets`, those which it is in."""
    return sparse().csr_array(sets.T)


def union(parts: Sequence[Any]) -> Any:
    """Return the union of sets, entry by entry."""
    width = max(part.shape[1] for part in parts)
    return functools.reduce(lambda one, other: one + other, [widen(part, width) for part in parts])


def follow(sets: Any, along: Map) -> Any:
    """Return the sets of a result from those of its parent."""
    if along is None:
        return sets
    if isinstance(along, np.ndarray):
        if along.size and along.min() < 0:  # -1 takes the row that is added
            sets = sparse().vstack([sets, empty(1, sets.shape[1])], format="csr")
        return sets[along]
    return along @ sets


Parents = Sequence[tuple["Traced", Map]]


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """A tensor whose entries know what they depend on."""

    __array_priority__ = 1000  # before the operators of arrays and tensors

    def __init__(self, value: Any, sets: Any, parents: Parents = (), pairs: Any = ()) -> None:
        self.value, self.sets, self.parents, self.pairs = np.asarray(value), sets, parents, pairs
        self.shape, self.dtype, self.ndim = tuple(self.value.shape), self.value.dtype, self.value.ndim
        self.number, self.size = next(_numbers), int(self.value.size)

    def __array_ufunc__(self, ufunc: Any, method: str, *xs: Any, **options: Any) -> Any:
        """Compute a function of NumPy by the op of its name."""
        op = getattr(registry.active(), f"op_{host.name_of_ufunc(ufunc)}", None)
        if op is None or method != "__call__" or options:
            raise self.refusal(f"its values for np.{ufunc.__name__}")
        return op(*xs)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise errors.ArgumentTypeError(str(self.refusal("its values")))  # of this type, TensorFlow's operators give way

    @staticmethod
    def refusal(what: str) -> errors.MultiopError:
        return errors.UnsupportedError(f"{what} are needed, and a pattern holds for all: choose by op_where or op_cond")

    @property
    def T(self) -> Any:  # noqa: N802  the name that arrays have
        return registry.active().op_transpose(self, None)

    def __getitem__(self, key: Any) -> Any:
        return registry.active().op_get_item(self, key)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def __float__(self) -> float:
        raise self.refusal("the values of a tensor")

    __bool__ = __int__ = __index__ = __complex__ = __float__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"a tensor of {self.dtype}{list(self.shape)} whose dependencies are traced"


IN_PLACE = {"add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"}
for _name in IN_PLACE:  # give the name to another tensor: nothing is written to
    setattr(Traced, f"__i{_name}__", getattr(Traced, f"__{_name}__"))
_numbers = itertools.count()


class Pairs:
    """Products of two entries in a second derivative: of `left[ia[k]]` and `right[ib[k]]`, in result `io[k]` or `k`."""

    def __init__(self, left: Any, right: Any, ia: Any, ib: Any, io: Any = None) -> None:
        self.left, self.right, self.ia, self.ib = left, right, ia, ib
        self.io = np.arange(len(ia)) if io is None else io

    def product(self, live: Any, left: slice, right: slice) -> Any:
        """Return the pairs of entries of the inputs that they make in results that are `live`."""
        ia, ib = self.ia, self.ib
        if live is not None and not live.all():
            kept = live[self.io]
            ia, ib = ia[kept], ib[kept]
        a, b = self.left[:, left], self.right[:, right]
        if ia is ib and self.left is self.right and left == right:
            rows = _distinct(a[np.unique(ia)])
            return rows.T @ rows
        return a.T @ (matrix(ia, ib, (a.shape[0], b.shape[0])) @ b)


def _distinct(sets: Any) -> Any:
    """Return `sets` without those that equal another one: their products are the same."""
    sums = sets @ np.random.default_rng(0).integers(2**63, size=sets.shape[1])  # whatever the order
    return sets[np.unique(sums, return_index=True)[1]]


def find_live(
    outputs: Sequence[Traced], steps: Sequence[Traced], below: int, weights: Sequence[Any] | None = None
) -> dict[int, Any]:
    """Return, by number, which entries of the tensors that were traced go into `outputs`, or are numbered `below`.

    Of an output with `weights`, a constant, those count that are not zero.
    """
    live: dict[int, Any] = {}
    for y, weight in zip(outputs, weights or [None] * len(outputs), strict=True):
        wanted = weight.ravel() != 0 if is_fixed(weight) else np.ones(y.size, bool)
        live[y.number] = live.get(y.number, False) | wanted
    live |= {step.number: np.ones(step.size, bool) for step in steps if step.number < below}
    for step in reversed(steps):
        mine = live.get(step.number)
        if mine is None:
            continue
        for parent, along in step.parents:
            theirs = live.setdefault(parent.number, np.zeros(parent.size, bool))
            if along is None:
                theirs |= mine
            elif isinstance(along, np.ndarray):
                theirs[along[mine & (along >= 0)]] = True
            else:
                theirs |= (mine.astype(np.int32) @ along.astype(np.int32)) > 0
    return live


def each(make: Callable[[Any], Any], x: Any) -> Any:
    """Return what `make` returns of `x`, or of each entry of lists, in lists."""
    return type(x)(each(make, entry) for entry in x) if type(x) in (list, tuple) else make(x)


def plain(x: Any) -> Any:
    """Return `x` with values for traced tensors, also in lists."""
    return each(lambda entry: entry.value if isinstance(entry, Traced) else entry, x)


def starts(xs: Sequence[Any]) -> list[int]:
    """Return where the entries of each of `xs` begin in one vector of all."""
    return list(itertools.accumulate(map(np.size, xs), initial=0))[: len(xs)]


def is_fixed(x: Any) -> bool:
    """Say whether the zeros of a constant stay: nobody can write to it, as to what `op_eye` makes in the function."""
    return isinstance(x, np.ndarray) and not x.flags.writeable and (x.base is None or is_fixed(x.base))


def places(shape: Sequence[int]) -> Any:
    """Return the number of each entry of a tensor, in its shape."""
    return np.arange(math.prod(shape), dtype=np.int32).reshape(tuple(shape))


def groups(shape: Sequence[int], axes: Sequence[int]) -> tuple[Any, int]:
    """Return, for each entry, the number of the group that it makes with those along `axes`; and how many there are."""
    kept = [1 if axis in axes else n for axis, n in enumerate(shape)]
    return np.broadcast_to(places(kept), tuple(shape)).ravel(), math.prod(kept)


def join_groups(x: Traced, group: Any, n: int) -> Map:
    """Return the map from `n` groups to the entries of `x`."""
    return matrix(group, np.arange(x.size), (n, x.size))
