"""Random numbers that are the same on every backend, with the names and arguments of `keras.random`.

docs/random.md explains how the numbers are computed, and how far the backends agree.
"""

import typing as _typing

from multiop._loading.suggestions import PUBLIC as _PUBLIC
from multiop.random._binomial import binomial
from multiop.random._continuous import (
    exponential,
    gumbel,
    laplace,
    multivariate_normal,
    normal,
    truncated_normal,
    uniform,
)
from multiop.random._discrete import categorical, choice, dropout, randint, shuffle, shuffle_along_axis
from multiop.random._gamma import beta, gamma
from multiop.random._keys import SeedGenerator, fold_in, key, set_seed, split
from multiop.random._multinomial import multinomial
from multiop.random._poisson import poisson

__all__ = [
    "SeedGenerator",
    "beta",
    "binomial",
    "categorical",
    "choice",
    "dropout",
    "exponential",
    "fold_in",
    "gamma",
    "gumbel",
    "key",
    "laplace",
    "multinomial",
    "multivariate_normal",
    "normal",
    "poisson",
    "randint",
    "set_seed",
    "shuffle",
    "shuffle_along_axis",
    "split",
    "truncated_normal",
    "uniform",
]

_PUBLIC["multiop.random"] = __all__


def __dir__() -> list[str]:
    return __all__


if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        raise missing(__name__, name, __all__)
