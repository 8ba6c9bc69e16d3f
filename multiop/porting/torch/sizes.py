"""Sizes, and numbers computed from them: from the expressions of `torch.export` to those of Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from multiop.porting._graph import CONDITIONS, Call, Dim, Expression, Infix
from multiop.porting._rows import Untranslated, spellings

_INFIX = spellings(  # what stands between two operands
    "FloorDiv=// CleanDiv=// Mod=% PythonMod=% IntTrueDiv=/ FloatTrueDiv=/ PowByNatural=** FloatPow=** LShift=<< "
    "RShift=>>"
)
_CALLS = spellings(  # functions of Python
    "Max=max Min=min TruncToInt=int FloorToInt=math.floor CeilToInt=math.ceil RoundToInt=round RoundDecimal=round "
    "TruncToFloat=math.trunc Abs=abs"
)
_LEVELS = {"+": 1, "-": 1, "<<": 0, ">>": 0, "**": 3} | dict.fromkeys(CONDITIONS, -1)


def expression(number: Any, name: Callable[[str], str]) -> Expression:
    """Return what computes a number of sympy: operators and calls of Python on sizes and literals.

    Args:
        number: The number.
        name: Returns the name of a size of PyTorch.

    Raises:
        Untranslated: There is no such function in Python.
    """
    kind = type(number).__name__
    if kind in ("TruncToInt", "FloorToInt", "CeilToInt") and (whole := _as_ints(number.args[0])) is not None:
        return expression(whole, name)
    parts = [] if number.is_Atom else [expression(part, name) for part in number.args]
    if number.is_Symbol:
        symbol = name(str(number))
        return Dim(symbol, (symbol,))
    if number.is_Integer:
        return int(number)
    if number.is_number and not number.free_symbols:
        return float(number)
    if number.is_Add:
        return _sum([expression(term, name) for term in number.as_ordered_terms()])
    if number.is_Mul:
        factors = [expression(factor, name) for factor in number.as_ordered_factors()]
        product, *rest = factors
        for factor in rest:
            product = Infix("*", product, factor)
        return product
    if number.is_Pow:
        return Infix("**", *parts)
    if kind in ("BooleanTrue", "BooleanFalse"):
        return bool(number)
    if number.is_Relational:
        return Infix(number.rel_op, *parts)
    if kind in ("And", "Or"):
        return functools.reduce(functools.partial(Infix, kind.lower()), parts)
    if kind == "Not":
        return Infix("==", parts[0], False)
    if kind in _INFIX:
        return Infix(_INFIX[kind], *parts)
    if kind in ("ToFloat", "Identity"):
        return parts[0]
    if kind == "CeilDiv":
        return Infix("//", _sum([parts[0], parts[1], -1]), parts[1])
    if kind.startswith("OpaqueUnaryFn_"):
        function = kind.removeprefix("OpaqueUnaryFn_")
        return Infix("**", parts[0], 0.5) if function == "sqrt" else Call(f"math.{function}", tuple(parts))
    if kind in _CALLS:
        return Call(_CALLS[kind], tuple(parts))
    raise Untranslated(f"a size of {number}")


def _as_ints(number: Any) -> Any:
    """Return a number of floats as one of ints, if all are whole; else `None`."""
    if type(number).__name__ == "ToFloat":
        return number.args[0]
    if number.is_Integer or number.is_Float:
        return int(number) if number == int(number) else None
    if not (number.is_Add or number.is_Mul):
        return None
    parts = [_as_ints(part) for part in number.args]
    return None if any(part is None for part in parts) else number.func(*parts)


def _sum(terms: list[Expression]) -> Expression:
    total, *rest = terms
    for term in rest:
        negative = _opposite(term)
        total = Infix("+", total, term) if negative is None else Infix("-", total, negative)
    return total


def _opposite(term: Expression) -> Expression | None:
    """Return what a negative term takes off; `None` for a positive one."""
    if isinstance(term, (int, float)):
        return -term if term < 0 else None
    if isinstance(term, Infix) and term.operator == "*" and (less := _opposite(term.left)) is not None:
        return term.right if less == 1 else Infix("*", less, term.right)
    return None


def size_text(expression: Expression, level: int = -1) -> str:
    """Return the text of such an expression; a product has no spaces."""
    if isinstance(expression, Dim):
        return expression.text
    if isinstance(expression, Call):
        return f"{expression.function}({', '.join(map(size_text, expression.args))})"
    if isinstance(expression, Infix):
        own = _LEVELS.get(expression.operator, 2)
        is_power, is_condition = own == 3, own == -1
        left = size_text(expression.left, own + (is_power or is_condition))
        right = size_text(expression.right, own + 1 - is_power)
        space = "" if expression.operator in ("*", "**") else " "
        text = f"{left}{space}{expression.operator}{space}{right}"
        return f"({text})" if own < level else text
    return repr(expression)


def size(number: Any, name: Callable[[str], str]) -> Any:
    """Return a size of sympy as an int, or as what computes it."""
    made = expression(number, name)
    symbols = tuple(name(symbol) for symbol in sorted(map(str, number.free_symbols)))
    return made if isinstance(made, (int, Dim)) else Dim(size_text(made), symbols)
