"""The rows of the case table: an op, its expected results, and the inputs to test it with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import optree

from multiop import extend, tree as _tree

from ._samplers import Sampler

FLOATING = extend.FLOATING
COMPLEX = extend.COMPLEX
INTEGER = ("int8", "uint8", "int32", "int64")
BOOLEAN = extend.BOOLEAN
NUMERIC = INTEGER + FLOATING + COMPLEX
REAL = INTEGER + FLOATING

# dtypes of the operands (tensors, and Python scalars as the weak dtypes) -> dtype of the result
Returns: TypeAlias = Callable[[Sequence[str]], Any] | str | None


def promote_dtypes(dtypes: Sequence[str]) -> str:
    """The operands' common dtype: arithmetic."""
    return extend.result_type(*dtypes)


def floating(dtypes: Sequence[str]) -> str:
    """The operands' common dtype, or `floatx` for integers and bool: functions of real numbers."""
    return extend.to_floating_dtype(extend.result_type(*dtypes))


def same(dtypes: Sequence[str]) -> str:
    """The first operand's dtype: reshaping, selection."""
    return dtypes[0]


def magnitude(dtypes: Sequence[str]) -> str:
    """The common dtype, or its real part's if it is complex: `op_abs`."""
    dtype = promote_dtypes(dtypes)
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def _arguments_text(args: tuple[Any, ...], kwargs: dict[str, Any], word: Callable[[Any], str]) -> str:
    """Return arguments as text, with long arrays shown by their shape."""
    words = [*map(word, args), *(f"{k}={word(v)}" for k, v in kwargs.items())]
    return ", ".join(words)


def _word(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"array({x.tolist()})" if x.size <= 6 else f"array[{', '.join(map(str, x.shape))}]"
    if isinstance(x, (list, tuple)) and type(x) in (list, tuple):
        inside = ", ".join(map(_word, x))
        return f"[{inside}]" if isinstance(x, list) else f"({inside}{',' * (len(x) == 1)})"
    return repr(x)


_LONG = 60  # characters of an argument that a heading shows in full


def _abridge(x: Any) -> str:
    """Return an argument as text; a container of many arrays by the shape of its first, `{w: [8, 16], … 11 arrays}`."""
    text = _word(x)
    if len(text) <= _LONG:
        return text
    if isinstance(x, (Sampler, np.ndarray)):
        return f"{getattr(x, 'kind', 'array')}[{', '.join(map(str, x.shape))}]"
    paths = optree.tree_paths(x, none_is_leaf=True, namespace=extend.TREE_NAMESPACE)
    arrays = [(p, y) for p, y in zip(paths, _tree.leaves(x), strict=True) if isinstance(y, (Sampler, np.ndarray))]
    if not arrays:
        return f"{text[: _LONG - 1]}…"
    path, first = arrays[0]
    opened, closed = "{}" if isinstance(x, dict) else "()" if isinstance(x, tuple) else "[]"
    key = f"{path[0]}: " if isinstance(x, dict) else ""
    return f"{opened}{key}{list(first.shape)}, … {len(arrays)} array{'s' * (len(arrays) > 1)}{closed}"


@dataclasses.dataclass(frozen=True)
class Call:
    """One way to call an op: operands by position, options by keyword; samplers, at any depth, become tensors.

    If the op returns a function, `then` holds the operands of that function.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    then: tuple[Any, ...] = ()

    def on(self, *operands: Any) -> Call:
        """Call the function that the op returns: `call(f).on(normal(3))`."""
        return dataclasses.replace(self, then=operands)

    def __repr__(self) -> str:
        return self._text(_word)

    def abridged(self) -> str:
        """Return the call as a heading: like `repr`, but containers of many arrays by their shapes."""
        return self._text(_abridge)

    def _text(self, word: Callable[[Any], str]) -> str:
        return _arguments_text(self.args, self.kwargs, word) + (
            f")({_arguments_text(self.then, {}, word)}" if self.then else ""
        )


@dataclasses.dataclass(frozen=True)
class Pin:
    """A pinned answer at one input: a kink, a tie, a NaN or an overflow."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    value: Any
    gradient: Any
    dtype: str

    def __repr__(self) -> str:
        return _arguments_text(self.args, self.kwargs, _word)


@dataclasses.dataclass(frozen=True)
class Row:
    """Everything that the suite needs to know about one op; see `row`."""

    op: str
    reference: Callable[..., Any]
    calls: tuple[Call, ...]
    dtypes: tuple[str, ...]
    returns: Returns
    differentiable: bool
    order: int
    ulps: float
    accumulates: bool | Callable[..., Any]
    analytic: bool
    vmap: bool
    jit: bool
    pins: tuple[Pin, ...]

    def __repr__(self) -> str:
        return f"row({self.op!r}, ...)"


def call(*args: Any, **kwargs: Any) -> Call:
    """One way to call an op: `call(normal(2, 3), axis=1)`."""
    return Call(args, kwargs)


_UNSET = object()
OPEN = None  # an entry of a pinned gradient that is not pinned: the value is NaN there, or an operand infinite


def pin(*args: Any, value: Any = None, gradient: Any = _UNSET, dtype: str = "float32", **kwargs: Any) -> Pin:
    """One pinned answer: `pin([0.0], value=[0.0], gradient=[0.0])`.

    Args:
        args: Operands; lists and floats become tensors of `dtype`, ints and other values pass as they are.
        value: The expected result; `None` leaves it open. NaN and infinities count.
        gradient: The gradient of the sum of the results, one per list or float among `args` (bare if there is only
            one); open if it is left out, and where an entry is `OPEN`.
        dtype: The dtype of the operands.
        kwargs: Options of the op.
    """
    return Pin(args, kwargs, value, gradient, dtype)


def has_gradient(pinned: Pin) -> bool:
    """Say whether `pinned` pins the gradient."""
    return pinned.gradient is not _UNSET


def row(
    op: str,
    reference: Callable[..., Any],
    *calls: Call,
    dtypes: Sequence[str] = FLOATING,
    returns: Returns = promote_dtypes,
    differentiable: bool = True,
    order: int = 2,
    ulps: float = 4.0,
    accumulates: bool | Callable[..., Any] = False,
    analytic: bool = False,
    vmap: bool = True,
    jit: bool = True,
    pins: Sequence[Pin] = (),
) -> Row:
    """Make one row of the table.

    Args:
        op: The op's public name, `"op_add"`.
        reference: A NumPy or SciPy function of the same arguments, tensors as NumPy arrays: floats as float64, complex
            as complex128, integers and bool as they are. It may return a tuple where the op returns several tensors.
        calls: The ways to call it, from `call`; together they use every keyword of the op.
        dtypes: The dtypes that the samplers draw, one test each.
        returns: The dtype of the result if a call has no `dtype`: a function of the operands' dtypes (`promote_dtypes`,
            `floating`, `same`, ...), the name of a dtype, or `None` for an op that returns no tensor. The operands are
            the tensors and bare Python scalars among a call's positional arguments.
        differentiable: Whether the gradient is checked (against numerical derivatives of `reference`).
        order: The highest order of derivative that is checked, 1 or 2.
        ulps: How many units in the last place a result may differ from the reference.
        accumulates: The op adds or multiplies many terms: `ulps` counts per term, relative to `reference` of the
            absolute values, since terms may cancel; or a function of these that returns the size of the terms.
        analytic: `reference` is analytic and takes complex input: derivatives come from a complex step.
        vmap: Whether the op is mapped over an added leading axis of every tensor.
        jit: Whether the op is compiled; `False` if the shape of the result depends on values.
        pins: Answers at single inputs, from `pin`.
    """
    return Row(
        op,
        reference,
        calls,
        tuple(dtypes),
        returns,
        differentiable,
        order,
        ulps,
        accumulates,
        analytic,
        vmap,
        jit,
        tuple(pins),
    )


def samplers(tree: Any) -> list[Sampler]:
    """Return the samplers in a pytree, in order."""
    return [leaf for leaf in _tree.leaves(tree) if isinstance(leaf, Sampler)]
