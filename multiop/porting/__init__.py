"""Port a model from one framework to source that runs on three, and prove each layer of it."""

from __future__ import annotations

from ._compare import Check as Check, Comparison as Comparison, compare as compare
from ._map import WeightMap as WeightMap, map_weights as map_weights
from ._taps import tap as tap
from ._weights import Weights as Weights, read_weights as read_weights, write_weights as write_weights

__all__: list[str] = [
    "Check",
    "Comparison",
    "WeightMap",
    "Weights",
    "compare",
    "map_weights",
    "read_weights",
    "tap",
    "write_weights",
]


def __dir__() -> list[str]:
    return __all__
