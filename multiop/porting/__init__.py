"""Port a model from one framework to source that runs on three, and prove each layer of it."""

from __future__ import annotations

from multiop.porting._port import Port, load, trace

__all__ = [
    "Port",
    "load",
    "trace",
]


def __dir__() -> list[str]:
    return __all__
