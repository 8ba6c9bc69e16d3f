"""What multiop asks of torch.compile, which traces Python itself: see `multiop._loading.contract.Compiler`."""

from __future__ import annotations

from torch.compiler import is_dynamo_compiling as is_tracing_python  # noqa: F401  a part of the contract

from . import _internals
from ._internals import retrace as retrace
from .conversion import is_compiling as is_compiling


def refuse_break():
    if _internals.VERSION < (2, 11):  # it cannot trace what takes a function inside of torch.func
        _internals.refuse_break()
