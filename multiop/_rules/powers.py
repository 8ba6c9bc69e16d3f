"""The derivatives of powers of real numbers, of every order, in the operations of any framework."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def differentiate_power(of: Any, x: Any, y: Any, n: int, m: int) -> Any:
    """Return the derivative of `x ** y`, `n` times in `x` and `m` times in `y`, which are of one shape.

    Args:
        of: Where `where`, `power`, `log` and `isinf` are.
        x: The bases.
        y: The exponents. One less than an exponent is rounded, which is made up for.
        n: How often the derivative in `x` is taken.
        m: How often the derivative in `y` is taken. Where `x` is 0 and `y` is not below 0, the power is constant in it.
    """
    lower, at_edge = y - float(n), (x == 0) | of.isinf(x)
    safe = of.where(at_edge, 1.0, x)
    size = abs(safe)
    log = of.log(safe if m else size)
    whole, half = of.power(size, lower), of.power(size, lower * 0.5)
    near_end = of.isinf(whole) | (whole * 2.0**-30 == 0)  # there, the derivative may have digits that `whole` has not
    factor = _factor(y, log, n, m)
    if n:
        moved = lower - y
        lost = of.where(of.isinf(y), 0.0, (y - (lower - moved)) + (-n - moved))
        factor = factor * (1.0 + lost * log)
    sign = of.where(x < 0, of.power(-1.0, y) * (-1.0) ** n, 1.0)
    found = of.where(near_end, half * factor * half, whole * factor) * sign
    edge = of.power(x, lower)
    if m:
        edge = of.where((x == 0) & (y >= 0), 0.0, edge * of.log(x) ** m)
    if not n:
        return of.where(at_edge, edge, found)
    leading = _falling(y, n, 0)
    found = of.where(at_edge, edge if m else edge * leading, found)
    return found if m else of.where(leading == 0, 0.0, found)


def differentiate_usual_power(of: Any, x: Any, y: Any, power: Any, wanted: tuple[bool, bool]) -> list[Any] | None:
    """Return the wanted first derivatives, in `x` and in `y`, in few steps; `None` where a value is not usual.

    A power that is divided by its base has the digits that one less than the exponent lacks.

    Args:
        of: Where `log` and `finfo` are.
        x: The bases, some at least, whose values can be looked at.
        y: The exponents, of the same shape.
        power: The powers.
        wanted: Which derivatives.
    """
    ratio, info = power / x, of.finfo(x.dtype)
    for size in (abs(power), abs(ratio)):
        if not (info.tiny <= size.min() and size.max() <= info.max):  # 0, subnormal, infinite or NaN
            return None
    return [ratio * y if wanted[0] else None, power * of.log(x) if wanted[1] else None]


def _factor(y: Any, log: Any, n: int, m: int) -> Any:
    """Return what `x ** (y - n)` is multiplied by, as Leibniz's rule has it."""
    terms = []
    for j in range(min(n, m) + 1):
        term = _falling(y, n, j) * float(math.comb(m, j))
        for _ in range(m - j):
            term = term * log
        terms.append(term)
    return sum(terms[1:], terms[0])


def _falling(y: Any, n: int, order: int) -> Any:
    """Return a derivative of `y * (y - 1) * ...`, of `n` factors; as a product, it keeps its digits near each root."""
    if not order:
        return math.prod([y - float(k) for k in range(1, n)], start=y) if n else 1.0
    first, *others = np.polyder(np.poly(range(n)), order).tolist()
    value = first
    for coefficient in others:
        value = value * y + coefficient
    return value
