"""Nodes and weights of Gauss's rules, imported by the functions that use them: they are a tenth of `import multiop`."""

from __future__ import annotations

import numpy as np

_BITS = 96  # of the fractions computed with: of the weights of NumPy and SciPy, up to five digits are wrong
_ONE = 1 << _BITS


def _rule(terms: int) -> np.ndarray:
    """Return nodes and weights from -1 to 1, by Newton's iteration from NumPy's nodes; the number of terms is even."""
    found = []
    for start in np.polynomial.legendre.leggauss(terms)[0][terms // 2 :]:
        x = int(start * _ONE)
        for _ in range(2):
            before, value = _ONE, x
            for k in range(2, terms + 1):
                before, value = value, (((2 * k - 1) * x * value >> _BITS) - (k - 1) * before) // k
            room = _ONE - (x * x >> _BITS)
            slope = terms * ((before << _BITS) - x * value) // room
            x -= (value << _BITS) // slope
        found.append((x, 2 * _ONE**4 // (room * slope**2)))
    return np.array([*((-x, weight) for x, weight in reversed(found)), *found]).T


def _rule_of_square_root(terms: int) -> np.ndarray:
    """Return the rule for integrals from 0 to 1 over the square root of the variable."""
    nodes, weights = _rule(terms)
    places = (nodes + _ONE) // 2
    return (np.array([places, weights]) * places / _ONE**2).astype(np.float64)


GAUSS = {terms: (_rule(terms) / _ONE).astype(np.float64) for terms in (12, 64, 112)}  # from -1 to 1
OF_SQUARE_ROOT = {terms: _rule_of_square_root(terms) for terms in (16, 50)}
