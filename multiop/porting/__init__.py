"""Port a model from one framework to source that runs on each backend, and prove each layer of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from multiop.extend import missing
from multiop.porting._adapters import merge_adapter
from multiop.porting._bridge import bridge, foreign
from multiop.porting._compare import Check, Comparison, compare
from multiop.porting._converters import call, converter
from multiop.porting._io import read_weights, write_weights
from multiop.porting._map import WeightMap, map_weights
from multiop.porting._optimizers import OptimizerState
from multiop.porting._port import Port, load, trace
from multiop.porting._prove import Proof, prove
from multiop.porting._taps import tap
from multiop.porting._training import Training, prove_training, read_optimizer, write_optimizer
from multiop.porting._weights import Weights

__all__ = [
    "Check",
    "Comparison",
    "OptimizerState",
    "Port",
    "Proof",
    "Training",
    "WeightMap",
    "Weights",
    "bridge",
    "call",
    "compare",
    "converter",
    "foreign",
    "load",
    "map_weights",
    "merge_adapter",
    "prove",
    "prove_training",
    "read_optimizer",
    "read_weights",
    "tap",
    "trace",
    "write_optimizer",
    "write_weights",
]


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name: str) -> object:
        raise missing(__name__, name, __all__)
