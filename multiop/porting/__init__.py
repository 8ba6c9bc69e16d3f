"""Port a model from one framework to source that runs on three, and prove each layer of it."""

from __future__ import annotations

from multiop.porting._bridge import bridge
from multiop.porting._port import Port, load, trace
from multiop.porting._prove import Proof, prove

__all__ = [
    "Port",
    "Proof",
    "bridge",
    "load",
    "prove",
    "trace",
]


def __dir__() -> list[str]:
    return __all__
