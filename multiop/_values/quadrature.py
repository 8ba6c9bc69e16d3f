"""Nodes and weights of Gauss's rules, imported by the functions that use them: they are a tenth of `import multiop`."""

from __future__ import annotations

import numpy as np

GAUSS = {terms: np.polynomial.legendre.leggauss(terms) for terms in (12, 64, 112)}  # from -1 to 1


def _of_square_root(terms: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rule for integrals from 0 to 1 over the square root of the variable."""
    places, weights = np.polynomial.legendre.leggauss(terms)
    places = (places + 1) / 2
    return places * places, places * weights


OF_SQUARE_ROOT = {terms: _of_square_root(terms) for terms in (16, 50)}
