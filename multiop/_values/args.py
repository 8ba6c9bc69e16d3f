"""Check arguments and bring them to a canonical form; errors name the argument. Nothing here needs a framework."""

from __future__ import annotations

import enum
import inspect
import itertools
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from multiop import errors
from multiop._loading import registry
from multiop._values import dtypes
from multiop._values.types import Axis, Shape


def place(fun: Callable[..., Any]) -> str:
    """Return where a function begins, as an editor takes it; nothing for what has no source."""
    code = getattr(inspect.unwrap(fun), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def describe(value: Any, depth: int = 0) -> str:
    """Return a short text for an argument: `float32[2, 3]` for a tensor, the value itself for a small option."""
    if isinstance(value, np.ndarray) and registry.is_compiling():  # torch.compile cannot look into it
        return "a NumPy array"
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if shape is not None and type(value).__module__.partition(".")[0] == "pandas":  # asked of tensors and tables alone
        kind = dtype if dtype is not None else ", ".join(sorted({str(one) for one in value.dtypes}))
        return f"pandas.{type(value).__name__} of {kind}[{', '.join(map(str, shape))}]"
    if dtype is not None and shape is not None:
        kind = f"{type(value).__name__} of " if hasattr(value, "nnz") else ""
        try:
            return f"{kind}{getattr(dtype, 'name', str(dtype).rpartition('.')[2])}[{', '.join(str(n) for n in shape)}]"
        except (TypeError, ValueError):  # a TensorFlow shape of unknown rank has no length
            return f"{dtype}[?]"
    if isinstance(value, (list, tuple)) and depth < 2:
        inside = ", ".join(describe(v, depth + 1) for v in value[:6]) + (", ..." if len(value) > 6 else "")
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    try:
        text = repr(value)
    except RecursionError:  # of nested lists
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def is_endless(value: Any) -> bool:
    """Say whether lists and tuples are nested deeper than any tensor, as in a list that contains itself."""
    level = [value]
    for _ in range(65):
        lists = {id(one): one for one in level if isinstance(one, (list, tuple))}
        level = [entry for one in lists.values() for entry in one]
        if not level:
            return False
    return True


def axes(axis: Axis, ndim: int, name: str = "axis") -> tuple[int, ...]:
    """Return `axis` as a tuple of distinct non-negative ints; `None` is every axis of `ndim` dimensions."""
    if axis is None:
        return tuple(range(ndim))
    if isinstance(axis, (tuple, list, range)):
        distinct = tuple([
            entry if type(entry) is int and 0 <= entry < ndim else single_axis(entry, ndim, name) for entry in axis
        ])  # fmt: skip
        if len(set(distinct)) != len(distinct):
            raise errors.ArgumentError(f"{name} names a dimension twice: {tuple(axis)}")
        return distinct
    return (single_axis(axis, ndim, name),)


def euclidean(order: Any, axis: Any, ndim: int) -> tuple[int, ...] | None:
    """Return the axes that a Euclidean norm reduces; `None` for another norm, or an axis that is no int or tuple."""
    n = ndim if axis is None else 1 if type(axis) is int else len(axis) if type(axis) is tuple else 0
    is_euclidean = (order is None and (axis is None or n in (1, 2))) or (n == 2 and order == "fro")
    if not is_euclidean and not (n == 1 and type(order) in (int, float) and order == 2):
        return None
    return axes(axis, ndim)


def single_axis(axis: Any, ndim: int, name: str = "axis") -> int:
    """Return `axis` as one non-negative int below `ndim`."""
    if type(axis) is int and -ndim <= axis < ndim:
        return axis + ndim if axis < 0 else axis
    try:
        if isinstance(axis, (bool, np.bool_)):
            raise TypeError
        index = operator.index(axis)
    except TypeError:
        raise errors.ArgumentTypeError(f"{name} must be an int, got {describe(axis)}") from None
    if not -ndim <= index < ndim:
        raise errors.ArgumentError(f"{name} {index} is out of range for a tensor of {ndim} dimensions")
    return index + ndim if index < 0 else index


def halved_axis(axis: Any, shape: Sequence[Any]) -> int:
    """Return `axis`, along which a tensor of `shape` is cut into halves, as a non-negative int."""
    dim = single_axis(axis, len(shape))
    if shape[dim] is not None and shape[dim] % 2:
        raise errors.ArgumentError(f"axis {dim} has {shape[dim]} entries, which do not make two halves")
    return dim


def permutation(axes_: Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return `axes_`, a permutation of `ndim` dimensions, as non-negative ints."""
    if type(axes_) is tuple and {int}.issuperset(map(type, axes_)) and sorted(axes_) == list(range(ndim)):
        return axes_  # the usual case
    order = axes(axes_, ndim, "axes")
    if len(order) != ndim:
        raise errors.ArgumentError(f"axes must name each of {ndim} dimensions once, got {axes_!r}")
    return order


def moved_order(source: Axis, destination: Axis, ndim: int) -> tuple[int, ...]:
    """Return the permutation that moves the dimensions `source` to `destination`; the others keep their order."""
    source, destination = axes(source, ndim, "source axis"), axes(destination, ndim, "destination axis")
    if len(source) != len(destination):
        raise errors.ArgumentError(f"{len(source)} source axes cannot go to {len(destination)} destination axes")
    order = [dim for dim in range(ndim) if dim not in source]
    for position, dim in sorted(zip(destination, source, strict=True)):
        order.insert(position, dim)
    return tuple(order)


def two_axes(axis1: int, axis2: int, ndim: int) -> tuple[int, int]:
    """Return two different axes as non-negative ints."""
    pair = single_axis(axis1, ndim, "axis1"), single_axis(axis2, ndim, "axis2")
    if pair[0] == pair[1]:
        raise errors.ArgumentError(f"axis1 and axis2 are both {axis1}")
    return pair


def axes_to_squeeze(axis: Axis, shape: Sequence[Any]) -> tuple[int, ...]:
    """Return the axes to remove from a tensor of `shape`, each of size 1, as non-negative ints."""
    dims = axes(axis, len(shape))
    if any(shape[dim] not in (1, None) for dim in dims):
        raise errors.ArgumentError(f"axis {axis} has more than one entry in shape {tuple(shape)}")
    return dims


def axis_to_unstack(axis: Any, num: int | None, shape: Sequence[Any]) -> int:
    """Return the axis to take `num` entries apart along, as a non-negative int."""
    dim = single_axis(axis, len(shape))
    if None not in (num, shape[dim]) and num != shape[dim]:
        raise errors.ArgumentError(f"num is {num}, but axis {dim} has {shape[dim]} entries")
    return dim


def axes_to_contract(
    axes_: Any, shape1: Sequence[Any], shape2: Sequence[Any]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes of two tensors to contract, given as their number or as a pair of axes or sequences of axes."""
    if isinstance(axes_, (tuple, list)):
        if len(axes_) != 2:
            raise errors.ArgumentError(f"axes must be an int or a pair, got {axes_!r}")
        pair = axes(axes_[0], len(shape1), "axes"), axes(axes_[1], len(shape2), "axes")
    else:
        if not 0 <= operator.index(axes_) <= min(len(shape1), len(shape2)):
            raise errors.ArgumentError(f"axes {axes_} is out of range for {len(shape1)} and {len(shape2)} dimensions")
        pair = tuple(range(len(shape1) - axes_, len(shape1))), tuple(range(axes_))
    sizes = [shape1[dim] for dim in pair[0]], [shape2[dim] for dim in pair[1]]
    if not fits(*sizes):
        raise errors.ArgumentError(f"axes {axes_!r}: sizes {sizes[0]} of x1 do not fit {sizes[1]} of x2")
    return pair


def labels(subscripts: str, ndims: Sequence[int]) -> tuple[list[str], str]:
    """Return the labels of each operand of a sum and of the result, with letters in place of an ellipsis."""
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    if not arrow:
        result = "".join(sorted(c for c in left if c.isalpha() and left.count(c) == 1))
    terms = left.split(",")
    widest = max([ndim - len(term) + 3 for term, ndim in zip(terms, ndims, strict=True) if "..." in term], default=0)
    dims = "".join(itertools.islice(unused_letters(subscripts), widest))
    given = [
        term.replace("...", dims[len(dims) - (ndim - len(term) + 3) :]) for term, ndim in zip(terms, ndims, strict=True)
    ]
    return given, result.replace("...", dims)


def unused_letters(letters: str) -> Iterator[str]:
    """Yield the letters that are not among some."""
    import string  # which `import multiop` does not import

    return (c for c in string.ascii_letters if c not in letters)


def matrices(shape: Sequence[Any], square: bool = False, name: str = "x") -> tuple[Any, Any]:
    """Return the numbers of rows and columns of the matrices in the last two dimensions of a tensor of `shape`."""
    if len(shape) < 2:
        raise errors.ArgumentError(f"{name} must have at least two dimensions, not {len(shape)}")
    rows, columns = shape[-2], shape[-1]
    if rows is None or columns is None:
        raise errors.ArgumentError(
            f"{name}: the size of the matrices must be known; say what it is with tf.ensure_shape"
        )
    if square and rows != columns:
        raise errors.ArgumentError(f"{name} must hold square matrices, not {rows} by {columns}")
    return rows, columns


def complex_parts(shape: Sequence[Any], dtype: str) -> None:
    """Check that a tensor of `shape` has real and imaginary parts in its last dimension."""
    if dtype in dtypes.COMPLEX:
        raise errors.DTypeError(f"x is complex already: {dtype}")
    if not shape or (isinstance(shape[-1], int) and shape[-1] != 2):
        raise errors.ArgumentError(f"the last dimension of x must be of size 2, got shape {shape}")


def is_vector_rhs(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Say whether the right-hand sides of shape `b`, for square matrices of shape `a`, are vectors."""
    rows, _ = matrices(a, square=True, name="a")
    vectors = len(b) in (1, len(a) - 1)
    if not len(b):
        raise errors.ArgumentError("b must have a dimension")
    if b[-1 if vectors else -2] != rows:
        raise errors.ArgumentError(f"b must have {rows} rows like a, not {b[-1 if vectors else -2]}")
    return vectors


def fits(shape: Sequence[Any] | None, wanted: Sequence[Any] | None) -> bool:
    """Say whether two shapes are equal as far as both are known."""
    if shape == wanted or shape is None or wanted is None:
        return True
    return len(shape) == len(wanted) and all(
        n == m or n is None or m is None for n, m in zip(shape, wanted, strict=True)
    )


def same_shape(shape1: Sequence[Any] | None, shape2: Sequence[Any] | None, name1: str, name2: str) -> None:
    """Check that two tensors have the same shape."""
    if shape1 is not None and shape2 is not None and not fits(shape1, shape2):
        raise errors.ArgumentError(f"{name1} has the shape {tuple(shape1)}, {name2} {tuple(shape2)}")


def lacks_axis(target: Sequence[Any], output: Sequence[Any], axis: int) -> bool:
    """Say whether `target`, a shape, lacks the dimension `axis` of `output`; if present, it must have size 1."""
    rest = (*output[:axis], *output[axis + 1 :])
    lacking = len(target) == len(rest)
    if target != rest and not fits(target, rest if lacking else (*output[:axis], 1, *output[axis + 1 :])):
        raise errors.ArgumentError(f"target must have the shape of output without axis {axis}, {list(rest)}")
    return lacking


def sequences(output: Sequence[Any], name: str, lengths: dict[str, Any], target: Sequence[Any] | None = None) -> None:
    """Check the shapes of class scores per step (`output`), of the sequence lengths, and of the labels (`target`)."""
    if len(output) != 3:
        raise errors.ArgumentError(f"{name} must have 3 dimensions, not {len(output)}")
    if target is not None and not fits(target, (output[0], None)):
        raise errors.ArgumentError(f"target must have the shape ({output[0]}, labels), got {tuple(target)}")
    for which, length in lengths.items():
        if length is not None and not fits(length, output[:1]):
            raise errors.ArgumentError(f"{which} must have the shape ({output[0]},), got {tuple(length)}")


def attention(query: Sequence[Any], key: Sequence[Any], value: Sequence[Any]) -> None:
    """Check the shapes of the operands of attention."""
    for name, shape in {"query": query, "key": key, "value": value}.items():
        if len(shape) != 4:
            raise errors.ArgumentError(f"{name} must have 4 dimensions, not {len(shape)}")
    if not (fits(key[:3], value[:3]) and fits((key[0], key[3]), (query[0], query[3]))):
        raise errors.ArgumentError(
            f"the shapes {tuple(query)} of query, {tuple(key)} of key, {tuple(value)} of value do not fit"
        )
    heads, groups = query[2], key[2]
    if heads is not None and groups is not None and (groups == 0 or heads % groups):
        raise errors.ArgumentError(f"query has {heads} heads, not a multiple of the {groups} of key")


def rows(sequences: Sequence[Any], values: Sequence[Any]) -> None:
    """Check the shapes of one or more sorted vectors and of the values to search for in them."""
    if not len(sequences):
        raise errors.ArgumentError("sorted_sequence must have a dimension")
    if len(sequences) > 1 and (len(values) != len(sequences) or not fits(values[:-1], sequences[:-1])):
        raise errors.ArgumentError(
            f"values must have the shape {(*sequences[:-1], 'm')} beside a sorted_sequence of {tuple(sequences)}"
        )


def integers(dtype: str, name: str) -> None:
    """Check that an argument holds integers."""
    if dtype not in dtypes.INTEGER:
        raise errors.DTypeError(f"{name} must hold integers")


def shifts(shift: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return one shift for each of `axes`, as NumPy: a single shift is for all axes; several for one axis add up."""
    given = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,)
    found = tuple(operator.index(one) for one in given)
    if len(found) == 1:
        return found * len(axes)
    if len(axes) == 1:
        return (sum(found),)
    if len(found) != len(axes):
        raise errors.ArgumentError(f"{len(found)} shifts do not fit {len(axes)} axes")
    return found


def narrow_shifts(shifts: tuple[int, ...], sizes: Sequence[int | None]) -> tuple[int, ...]:
    """Return shifts by which dimensions of these sizes move alike, in the 32 bits that a kernel takes."""
    if all(-(2**31) <= one < 2**31 for one in shifts):
        return shifts
    if None in sizes:
        raise errors.ArgumentError("shift is beyond 32 bits, for a dimension of a size that is not known")
    return tuple(one % (size or 1) for one, size in zip(shifts, sizes, strict=True))


def pairs(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    """Return how much to pad at the start and the end of each of `ndim` dimensions."""
    are_tuples = type(pad_width) is tuple and len(pad_width) == ndim > 0 and {tuple}.issuperset(map(type, pad_width))
    if are_tuples and {2}.issuperset(map(len, pad_width)):
        flat = list(itertools.chain(*pad_width))
        if all_natural(flat) and max(flat) < _MOST_ENTRIES:
            return list(pad_width)  # the usual case
    # what NumPy's broadcast to (ndim, 2) does, but torch.compile cannot read a NumPy array
    if not ndim and isinstance(pad_width, int):
        raise errors.ArgumentError(f"pad_width {pad_width!r} does not fit 0 dimensions")
    widths = pad_width if isinstance(pad_width, (int, tuple, list)) else np.asarray(pad_width).tolist()
    rows: list[Any] = list(widths) if isinstance(widths, (tuple, list)) else [widths]
    if not any(isinstance(row, (tuple, list)) for row in rows):
        rows = [rows]
    rows = rows * ndim if len(rows) == 1 else rows
    if len(rows) != ndim or not all(isinstance(row, (tuple, list)) and len(row) in (1, 2) for row in rows):
        raise errors.ArgumentError(f"pad_width {pad_width!r} does not fit {ndim} dimensions")
    befores_and_afters = [(_width_of(row[0], pad_width), _width_of(row[-1], pad_width)) for row in rows]
    if any(before < 0 or after < 0 for before, after in befores_and_afters):
        raise errors.ArgumentError(f"pad_width must hold no negative number, got {pad_width!r}")
    countable([max([0, *[n for row in befores_and_afters for n in row]])], "pad_width")
    return befores_and_afters


def _width_of(width: Any, pad_width: Any) -> int:
    if type(width) is int:
        return width
    if isinstance(width, (bool, np.bool_)) or not hasattr(width, "__index__"):
        raise errors.ArgumentTypeError(f"pad_width must hold ints, got {pad_width!r}")
    return operator.index(width)


def padding_indices(size: int | None, pair: tuple[int, int], mode: str) -> np.ndarray[Any, Any]:
    """Return, for each entry of a padded dimension, the index of the entry that it repeats."""
    if size is None:
        raise errors.ArgumentError(f"mode {mode!r} needs a dimension whose size is known")
    not_empty(size, mode)
    return np.pad(np.arange(size), pair, mode)  # type: ignore[call-overload]


def not_empty(size: int, mode: str) -> None:
    """Check that a dimension that is padded with its own entries is not empty."""
    if size == 0:
        raise errors.ArgumentError(f"mode {mode!r} has nothing to repeat in an empty dimension")


def sequence(xs: Any) -> Any:
    """Return `xs` if it is a sequence of at least one tensor."""
    if not isinstance(xs, (tuple, list)) and not getattr(xs, "shape", ()):
        raise errors.ArgumentTypeError(f"expected a sequence of tensors, got {describe(xs)}")
    if len(xs) == 0:
        raise errors.ArgumentError("expected at least one tensor, got an empty sequence")
    return xs


def all_natural(entries: Sequence[Any], least: int = 0) -> bool:
    """Say whether all of `entries` are Python ints, and none is below `least`."""
    for entry in entries:  # noqa: SIM110  a third of the time of all()
        if type(entry) is not int or entry < least:
            return False
    return True


def size(shape: Shape, name: str = "shape") -> tuple[Any, ...]:
    """Return the shape of a new tensor as a tuple without negative numbers; traced sizes pass."""
    if type(shape) is int and shape >= 0:
        return (shape,)
    if isinstance(shape, (tuple, list)) and all_natural(shape):
        return tuple(shape)
    entries = _entries(shape, name)
    if any(isinstance(entry, int) and entry < 0 for entry in entries):
        raise errors.ArgumentError(f"{name} must hold no negative number, got {entries!r}")
    return entries


def shape(shape: Shape, name: str = "shape") -> tuple[Any, ...]:
    """Return `shape` as a tuple in which one entry may be -1; traced sizes pass."""
    if type(shape) is int and shape >= -1:
        return (shape,)
    if isinstance(shape, (tuple, list)):
        n_open = 0
        for size in shape:
            if type(size) is not int or size < -1:
                break
            n_open += size < 1
        else:
            if n_open < 2 or -1 not in shape:
                return tuple(shape)
    entries = _entries(shape, name)
    if sum(isinstance(entry, int) and entry < 0 for entry in entries) > 1 or any(
        isinstance(entry, int) and entry < -1 for entry in entries
    ):
        raise errors.ArgumentError(f"{name} must hold no negative number but one -1, got {entries!r}")
    sizes = [entry for entry in entries if isinstance(entry, int)]
    if -1 in sizes and 0 in sizes:
        raise errors.ArgumentError(f"{name} leaves open what -1 is: beside 0 it can be any number, got {entries!r}")
    return entries


def _entries(shape: Any, name: str) -> tuple[Any, ...]:
    try:
        if hasattr(shape, "__index__") and not len(getattr(shape, "shape", ())):
            return (operator.index(shape),)
        if isinstance(shape, (set, frozenset, dict)):  # these have no order
            raise TypeError
        entries = tuple(int(entry) if isinstance(entry, np.integer) else entry for entry in shape)
    except (TypeError, AttributeError):  # TensorFlow's, of a float
        raise errors.ArgumentTypeError(f"{name} must be an int or a sequence of ints, got {shape!r}") from None
    for entry in entries:
        is_other = isinstance(entry, (bool, float, complex, str, tuple, list, np.inexact, np.bool_)) or entry is None
        is_other = is_other or dtypes.name(getattr(entry, "dtype", "int32")) not in dtypes.INTEGER
        if is_other or len(getattr(entry, "shape", ())):
            raise errors.ArgumentTypeError(f"{name} must hold ints, got {describe(entry)} in {describe(entries)}")
    return entries


_MOST_ENTRIES = 2**56  # more than a machine can hold


def repeats(given: int | Sequence[int]) -> tuple[Any, ...]:
    """Return how often entries are repeated, a number for all of them or one for each."""
    if type(given) is int and 0 <= given < _MOST_ENTRIES:
        return (given,)
    backend = registry.active()
    if backend.is_tensor(given) and backend.is_at_hand(given):  # read at once, not entry by entry
        given = backend.op_convert_to_numpy(given).tolist()
    found = size(given, "repeats")
    countable([max([n for n in found if type(n) is int], default=0)], "repeats")
    return found


def segments(backend: Any, data: Any, segment_ids: Any, n: int | None) -> tuple[Any, Any, int | None]:
    """Return a tensor, the ids of its segments and how many there are."""
    x, ids = backend.together(data, segment_ids)
    rows, numbers = getattr(x, "shape", None), getattr(ids, "shape", None)
    if not (isinstance(rows, tuple) and isinstance(numbers, tuple)):  # Python's numbers, or sizes that a graph computes
        x, ids = backend.convert(x), backend.convert(ids)
        rows, numbers = backend.op_shape(x), backend.op_shape(ids)
    rows = rows[:1]
    known = {int}.issuperset(map(type, rows + numbers))
    if len(rows) != 1 or len(numbers) != 1 or (known and rows != numbers):
        raise errors.ArgumentError(f"segment_ids {describe(ids)} do not fit data {describe(x)}")
    return x, ids, n if n is None or (type(n) is int and n >= 0) else count(n, "num_segments")


def countable(sizes: Sequence[Any], name: str = "shape") -> Sequence[Any]:
    """Return `sizes`, whose product, as far as it is known, may be the number of entries of a tensor."""
    n = 1
    for size in sizes:
        if type(size) is int:
            n *= size
    if n >= _MOST_ENTRIES:
        raise errors.ArgumentError(f"{name} {tuple(sizes)} makes more entries than a machine can hold")
    return sizes


def view_shape(shape: Sequence[Any], before: int, after: int) -> tuple[Any, ...]:
    """Return the shape of a tensor with entries of `before` bytes after a view as entries of `after` bytes."""
    if before == after:
        return tuple(shape)
    if not shape:
        raise errors.ArgumentError(f"a scalar of {before} bytes cannot be seen as one of {after} bytes")
    if shape[-1] * before % after:
        raise errors.ArgumentError(f"{shape[-1]} entries of {before} bytes do not make entries of {after} bytes")
    return (*shape[:-1], shape[-1] * before // after)


def choice(value: Any, accepted: tuple[Any, ...], name: str) -> Any:
    """Return `value`, or what it stands for in an enumeration of another library, if it is one of `accepted`."""
    if type(value).__hash__ is None or value not in accepted:  # whether an array is among them has no one answer
        if isinstance(value, enum.Enum) and value.value in accepted:
            return value.value
        raise errors.ArgumentError(f"{name} must be one of {', '.join(map(repr, accepted))}; got {value!r}")
    return value


def number(value: Any, name: str) -> float:
    """Return `value`, a real number that is not a tensor, as a float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise errors.ArgumentTypeError(f"{name} must be a real number, got {describe(value)}")
    return float(value)


def entry(value: Any, size: int, name: str) -> int:
    """Return the index of one of `size` entries as a non-negative int below `size`."""
    if isinstance(value, (bool, np.bool_)) or not hasattr(value, "__index__"):
        raise errors.ArgumentTypeError(f"{name} must be an int, got {describe(value)}")
    index = operator.index(value)
    if not -size <= index < size:
        raise errors.ArgumentError(f"{name} {index} is out of range for {size} entries")
    return index % size


def function(value: Any, name: str) -> Any:
    """Return `value` if it can be called."""
    registry.refuse_break()
    if isinstance(value, classmethod):
        raise errors.ArgumentTypeError(f"{name} must be a function, got a classmethod; put @classmethod above it")
    if not callable(value):
        raise errors.ArgumentTypeError(f"{name} must be callable, got {describe(value)}")
    return value


def count(value: Any, name: str, least: int = 0) -> int:
    """Return `value`, an int of at least `least`."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        n = operator.index(value)
    except TypeError:
        raise errors.ArgumentTypeError(f"{name} must be an int, got {describe(value)}") from None
    if n < least:
        wanted = f"be at least {least}" if least else "not be negative"
        raise errors.ArgumentError(f"{name} must {wanted}, got {n}")
    return n


def host_ints(value: Any) -> tuple[int, ...] | None:
    """Return a sequence of Python or NumPy ints as a tuple; `None` for anything else."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)) and all(type(entry) is int or isinstance(entry, np.integer) for entry in value):
        return tuple(int(entry) for entry in value)
    return None


def host_indices(value: Any, size: int) -> np.ndarray[Any, Any] | None:
    """Return a NumPy array of indices into `size` entries, checked and not negative; `None` for anything else."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
        return None
    low, high = (int(value.min()), int(value.max())) if value.size else (0, -1)
    check_indices(low, high, size)
    value = value.astype(np.int32 if size < 2**31 else np.int64, copy=False)
    return np.where(value < 0, value + size, value) if low < 0 else value


def check_indices(low: int, high: int, size: int) -> None:
    """Check that the lowest and the highest index are within `size` entries."""
    if low < -size or high >= size:
        raise out_of_range(size)


def out_of_range(size: int) -> errors.ArgumentError:
    """Return the error about an index that is not within `size` entries."""
    return errors.ArgumentError(f"an index is out of range for {size} entries")


def corner(starts: Sequence[int], sizes: Sequence[Any], shape: Sequence[int]) -> tuple[int, ...]:
    """Return `starts`, where a block of `shape` starts in dimensions of `sizes`, without negative numbers."""
    if not len(starts) == len(sizes) == len(shape):
        raise errors.ArgumentError(
            f"start_indices has {len(starts)} entries and the block {len(shape)} dimensions, for {len(sizes)}"
        )
    for start, size, n in zip(starts, sizes, shape, strict=True):
        if size is not None and not -size <= start <= (size if start >= 0 else 0) - n:
            raise errors.ArgumentError(f"start_indices: {n} entries from {start} on do not fit in {size}")
    return tuple(start if start >= 0 else start + size for start, size in zip(starts, sizes, strict=True))


def block(starts: Any, sizes: Sequence[Any], shape: Sequence[int]) -> None:
    """Check a block of `shape` within dimensions of `sizes` as far as the unknown `starts` allow."""
    if tuple(starts.shape) != (len(sizes),) or len(shape) != len(sizes):
        raise errors.ArgumentError(
            f"start_indices {describe(starts)} and {tuple(shape)} do not fit {len(sizes)} dimensions"
        )
    if any(size is not None and n > size for n, size in zip(shape, sizes, strict=True)):
        raise errors.ArgumentError(f"a block of shape {tuple(shape)} does not fit in {tuple(sizes)}")


def normalize_key(key: Any, sizes: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return the key of `x[key]`, which has NumPy's meaning, in canonical form for an `x` of shape `sizes`.

    Returns:
        A list of an int, a slice or an index tensor for each dimension, and `None` for each new dimension; and the
        positions of the index tensors in that list. If there is an index tensor, ints count as index tensors.
    """
    return expand_masks(parts(key, sizes))


def is_static(key: Any) -> bool:
    """Say whether a key selects without a tensor, but perhaps in the bounds of a slice."""
    if type(key) is not tuple:
        return type(key) in _STATIC
    for entry in key:  # noqa: SIM110  a third of the time of all()
        if type(entry) not in _STATIC:
            return False
    return True


_STATIC = {int, slice, type(None), type(Ellipsis)}


def selects_inside(key: Any, sizes: Sequence[Any], are_inside: Callable[[Any, Any], bool]) -> bool:
    """Say whether a key holds slices and tensors alone, whose indices `are_inside` says to lie in their dimensions."""
    entries = key if type(key) is tuple else (key,)
    if len(entries) > len(sizes):
        return False
    for entry, size in zip(entries, sizes, strict=False):
        if type(entry) is not slice and not are_inside(entry, size):
            return False
    return True


def expand_masks(parts: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return what `normalize_key` does, for a key that `parts` has checked."""
    entries: list[Any] = []
    for one in parts:
        entries += _places(one) if is_mask(one) else [one]
    basic = all(is_basic(one) for one in entries)
    return entries, [] if basic else [place for place, one in enumerate(entries) if is_advanced(one)]


def parts(key: Any, sizes: Sequence[Any]) -> list[Any]:
    """Return the entries of a key like `normalize_key`, but keep a mask as a single entry for all its dimensions."""
    given = [_entry(one) for one in (key if isinstance(key, tuple) else (key,))]
    used = sum(_width(one) for one in given)
    if used > len(sizes):
        raise errors.ArgumentError(f"key has {used} indices for {len(sizes)} dimensions")
    places = [place for place, part in enumerate(given) if part is Ellipsis] or [len(given)]
    if len(places) > 1:
        raise errors.ArgumentError("key has more than one Ellipsis")
    is_empty = used == len(sizes) and places[0] < len(given)
    given[places[0] : places[0] + 1] = [slice(None)] * (len(sizes) - used)
    if is_empty and not all(map(is_basic, given)):
        indices = [place for place, one in enumerate(given) if is_advanced(one)]
        if indices[0] < places[0] <= indices[-1] and index_axis(indices):
            raise errors.ArgumentError(
                "key: an Ellipsis that stands for no dimension parts its indices, so that NumPy puts theirs in front; "
                "leave it out, or move them with op_moveaxis"
            )
    left = list(sizes)
    for one in given:
        here = [left.pop(0) for _ in range(_width(one))]
        if is_mask(one):
            if None not in here and list(one.shape) != here:
                raise errors.ArgumentError(f"key: a mask {describe(one)} does not fit dimensions of {here} entries")
        elif isinstance(one, int) and here[0] is not None and not -here[0] <= one < here[0]:
            raise errors.ArgumentError(f"key: index {one} is out of range for {here[0]} entries")
    return given


def _places(mask: Any) -> Sequence[Any]:
    """Return the indices of the true entries of a mask, one index tensor per dimension.

    In compiled code, only a mask from the host can be converted.
    """
    if isinstance(mask, np.ndarray):
        return [place.astype(np.int32) for place in np.nonzero(mask)]
    return registry.active().op_nonzero(mask)


def is_basic(one: Any) -> bool:
    """Say whether an entry of a key is basic: an int, a slice or `None`."""
    return one is None or isinstance(one, (int, slice))


def is_advanced(one: Any) -> bool:
    """Say whether an entry belongs to the advanced part of a key with index tensors: a tensor or an int."""
    return not (one is None or isinstance(one, slice))


def _entry(part: Any) -> Any:
    """Return one entry of a key, checked, as `None`, `Ellipsis`, a slice of ints, an int, or a tensor."""
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, slice):
        bounds = [end if end is None else count(end, "a bound of a slice", -sys.maxsize) for end in _bounds(part)]
        if bounds[2] == 0:
            raise errors.ArgumentError("key: the step of a slice must not be 0")
        return slice(*bounds)
    if isinstance(part, (bool, np.bool_, float, complex, str)):
        raise errors.ArgumentTypeError(f"key must hold ints, slices, None, Ellipsis and integer tensors, got {part!r}")
    if isinstance(part, (int, np.integer)):
        return int(part)
    part = np.zeros(np.shape(part), np.int32) if isinstance(part, (list, tuple)) and not len(part) else part
    is_known = isinstance(part, np.ndarray) and part.dtype == bool and not registry.is_compiling()
    tensor = part if is_known else registry.active().convert(part)
    if not len(tensor.shape) and is_mask(tensor):
        raise errors.ArgumentTypeError("key: a mask needs a dimension")
    return tensor


def _bounds(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def is_mask(one: Any) -> bool:
    """Say whether an entry of a key is a mask, a bool tensor."""
    if isinstance(one, (slice, np.ndarray)):  # torch.compile cannot call hasattr on a slice
        return isinstance(one, np.ndarray) and one.dtype == bool
    return hasattr(one, "shape") and registry.active().dtype_name(one) == "bool"


def _width(one: Any) -> int:
    """Return the number of dimensions of `x` that an entry of a key consumes."""
    return len(one.shape) if is_mask(one) else int(one is not None and one is not Ellipsis)


def within_last(k: int, sizes: Sequence[Any]) -> None:
    """Check that the last of the dimensions of `sizes` has at least `k` entries."""
    if not len(sizes):
        raise errors.ArgumentError("x must have a dimension")
    if sizes[-1] is not None and k > sizes[-1]:
        raise errors.ArgumentError(f"k is {k}, but there are {sizes[-1]} entries")


def index_axis(places: Sequence[int]) -> int:
    """Return the axis where the dimensions of index tensors go: the first of `places` if these are adjacent, else 0."""
    return places[0] if places[-1] - places[0] + 1 == len(places) else 0


def check_given(**tensors: Any) -> None:
    """Raise for a required tensor that is `None`."""
    for name, x in tensors.items():
        if x is None:
            raise errors.ArgumentTypeError(f"{name} must be a tensor, got None")


def integer(value: Any, name: str) -> Any:
    """Return `value` if it is an int; a traced one passes."""
    is_traced = getattr(value, "shape", None) == () and not isinstance(value, np.generic)
    if isinstance(value, (bool, np.bool_)) or not (hasattr(value, "__index__") or is_traced):
        raise errors.ArgumentTypeError(f"{name} must be an int, got {describe(value)}")
    return value


def bool_flag(value: Any, name: str) -> bool:
    """Return `value` if it is a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise errors.ArgumentTypeError(f"{name} must be a bool, got {value!r}")
    return bool(value)


def not_negative(value: Any, name: str) -> float:
    """Return `value` if it is a real number of Python or NumPy, and not negative."""
    as_float = number(value, name)
    if not as_float >= 0:
        raise errors.ArgumentError(f"{name} must not be negative, got {as_float}")
    return as_float


EPSILON = 1e-7  # added to a variance


def shift(epsilon: float | None, rms_scaling: Any = False, **others: Any) -> float:
    """Return `epsilon`, which is added to a variance, if it is a number that is not negative."""
    if rms_scaling is not False or others:
        raise errors.ArgumentTypeError(
            f"unexpected keyword {min(others, default='rms_scaling')!r}; to scale by the root mean square, use "
            "op_rms_normalization"
        )
    if type(epsilon) is float and epsilon >= 0:
        return epsilon
    return EPSILON if epsilon is None else not_negative(epsilon, "epsilon")


def check_unchosen(function: Any, run_without_values: Any) -> None:
    """Run an unchosen function without values, so that its result is checked whatever the values are."""
    try:
        run_without_values(function)
    except errors.MultiopError as error:
        if error.op is None:  # not an error of an op inside it
            raise
    except Exception:  # the function reads values, or only works for those that choose it
        return
