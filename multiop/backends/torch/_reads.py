"""Reading values of what a trace computes: its graph would keep those of the first call, so no graph is made."""

from __future__ import annotations

import torch
from torch.overrides import TorchFunctionMode

from ._internals import is_traced, is_tracing

_READS = frozenset({torch.Tensor.__array__, torch.Tensor.numpy, torch.Tensor.tolist, torch.Tensor.__dlpack__})
_TRACING = "get value out of a tracing tensor"  # PyTorch's words where a number is read


class DependsOnValues(Exception):
    """A function depends on values that a trace does not have."""


class _Refused(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in _READS and is_traced(args[0]):
            raise DependsOnValues
        return func(*args, **(kwargs or {}))


def refused_in(function):
    """Return a function in which reading a traced tensor raises; so does a rule, which autograd runs without modes."""
    if not is_tracing():
        return function

    def refusing(*args):
        with _Refused():
            return function(*args)

    return refusing


def is_cause(error):
    """Say whether an error, or what it comes from, is about values that a trace does not have."""
    while error is not None:
        if isinstance(error, DependsOnValues) or (isinstance(error, RuntimeError) and _TRACING in str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False
