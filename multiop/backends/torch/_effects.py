"""What a function does while it is traced, beside computing: it reads values and writes to memory."""

from __future__ import annotations

import optree
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ._internals import is_traced, is_tracing

_READS = frozenset({torch.Tensor.__array__, torch.Tensor.numpy, torch.Tensor.tolist, torch.Tensor.__dlpack__})
_TRACING = "get value out of a tracing tensor"  # PyTorch's words where a number is read


class DependsOnValues(Exception):
    """A function depends on values that a trace does not have."""


class _Refused(TorchFunctionMode):
    """Refuse to read a traced tensor as NumPy or as a list: a graph would keep the values of the first call."""

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


class Undone(TorchDispatchMode):
    """Undo at the end what operations write to memory: a trace is followed by the run that counts."""

    def __init__(self):
        super().__init__()
        self.fresh = set()  # addresses of what the trace has allocated
        self.before = {}  # address and layout of what is written to -> it, and a copy

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if writes(func, args):
            given = {a.name: x for a, x in zip(func._schema.arguments, args, strict=False)} | kwargs
            written = [given[a.name] for a in func._schema.arguments if a.name in given and _is_written(a)]
            for x in _tensors(written):
                key = (_address(x), x.data_ptr(), x.shape, x.stride())
                if key[0] not in self.fresh and key not in self.before:
                    self.before[key] = x, x.clone()
        results = func(*args, **kwargs)
        self.fresh |= {_address(y) for y in _tensors(results)} - {_address(x) for x in _tensors((args, kwargs))}
        return results

    def __exit__(self, *error):
        super().__exit__(*error)
        with torch.no_grad():
            for x, copy in reversed(self.before.values()):
                x.copy_(copy)


# the schemas of these do not say that they write to the running statistics
_BATCH_NORMS = frozenset({
    torch.ops.aten.native_batch_norm.default, torch.ops.aten.cudnn_batch_norm.default,
    torch.ops.aten.miopen_batch_norm.default,
})  # fmt: skip


def writes(func, args):
    """Say whether an operation of PyTorch writes to one of its operands."""
    return func._schema.is_mutable or (func in _BATCH_NORMS and args[3] is not None and args[5])


def _is_written(argument):
    is_written = argument.alias_info is not None and argument.alias_info.is_write
    return is_written or argument.name in ("running_mean", "running_var")


def _tensors(tree):
    return [x for x in optree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def _address(x):
    try:
        return x.untyped_storage()._cdata
    except NotImplementedError:  # a sparse tensor
        return id(x)
