"""What a function does while it is traced, beside computing: it reads values and writes to memory."""

from __future__ import annotations

import contextlib
import functools

import optree
import torch
from torch.overrides import TorchFunctionMode

from multiop import errors
from multiop._values import args as _args

from .._internals import TorchDispatchMode, base_of, is_traced, is_tracing, schema_of, storage_of

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


class Changed(TorchDispatchMode):
    """Note what operations change that exists outside, tensors and generators of random numbers, and what it was."""

    def __init__(self):
        super().__init__()
        self.fresh = set()  # addresses of what is allocated inside
        self.tensors = {}  # address and layout of what is written to -> it, and a copy
        self.generators = {}  # a generator -> its state

    @classmethod
    def ignore_compile_internals(cls):
        return True  # what is compiled inside is compiled as it would be outside

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        draws, is_writing = _kinds(func)
        if draws:
            self._note_generators(func, args, kwargs)
        if is_writing and writes(func, args):
            given = {a.name: x for a, x in zip(schema_of(func).arguments, args, strict=False)} | kwargs
            written = [given[a.name] for a in schema_of(func).arguments if a.name in given and _is_written(a)]
            for x in _tensors(written):
                key = (_address(x), x.data_ptr(), x.shape, x.stride())
                if key[0] not in self.fresh and key not in self.tensors:
                    self.tensors[key] = x, x.clone()
        results = func(*args, **kwargs)
        if type(results) is torch.Tensor and not is_writing:
            if base_of(results) is None and _address(results) not in map(_address, _tensors((args, kwargs))):
                self.fresh.add(_address(results))
        else:
            self.fresh |= {_address(y) for y in _tensors(results)} - {_address(x) for x in _tensors((args, kwargs))}
        return results

    def _note_generators(self, func, args, kwargs):
        found = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Generator)]
        if not found:
            devices = [x.device for x in _tensors((args, kwargs))]
            devices += [torch.device(x) for x in (kwargs.get("device"),) if x is not None]
            found = [default_generator(device) for device in devices]
        for generator in found:
            if generator is not None and generator not in self.generators:
                self.generators[generator] = generator.get_state()

    @contextlib.contextmanager
    def before(self):
        """Put everything back as it was before, and afterwards as it is now."""
        tensors = [(x, x.detach().clone()) for x, _ in self.tensors.values()]
        generators = [(generator, generator.get_state()) for generator in self.generators]
        try:
            self.undo()
            yield
        finally:
            _write(tensors)
            for generator, state in generators:
                generator.set_state(state)

    def undo(self):
        """Put everything back as it was before."""
        _write(list(self.tensors.values()))
        for generator, state in self.generators.items():
            generator.set_state(state)

    def refuse_history(self):
        """Raise an error if a tensor from outside now has a history: it cannot be put back."""
        for x, _ in self.tensors.values():
            if x.grad_fn is not None:
                raise errors.UnsupportedError(
                    f"a checkpointed function cannot write differentiable values to a tensor from outside "
                    f"({_args.describe(x)}): it would write them again when it runs again; return them "
                    "(https://docs.pytorch.org/docs/stable/checkpoint.html)"
                )


class Undone(Changed):
    """Undo at the end what operations change outside: a trace is followed by the run that counts."""

    def __exit__(self, *error):
        super().__exit__(*error)
        self.undo()


def _write(tensors):
    with torch.no_grad():
        for x, copy in reversed(tensors):
            x.data.copy_(copy)  # `data` has its own version: for autograd, `x` is what it was


def default_generator(device):
    """Return the generator from which random numbers on a device come unless another is given."""
    if device.type == "cpu":
        return torch.default_generator
    module = getattr(torch, device.type, None)
    found = getattr(module, "default_generators", ())
    if not found:
        return None
    return found[module.current_device() if device.index is None else device.index]


@functools.cache
def _kinds(func):
    """Say whether an operation may draw random numbers, and whether it may write to an operand."""
    takes = any("Generator" in str(a.type) for a in schema_of(func).arguments)
    draws = takes or torch.Tag.nondeterministic_seeded in func.tags
    return draws, schema_of(func).is_mutable or func in _BATCH_NORMS


# the schemas of these do not say that they write to the running statistics
_BATCH_NORMS = frozenset({
    torch.ops.aten.native_batch_norm.default, torch.ops.aten.cudnn_batch_norm.default,
    torch.ops.aten.miopen_batch_norm.default,
})  # fmt: skip


def writes(func, args):
    """Say whether an operation of PyTorch writes to one of its operands."""
    return schema_of(func).is_mutable or (func in _BATCH_NORMS and args[3] is not None and args[5])


def _is_written(argument):
    is_written = argument.alias_info is not None and argument.alias_info.is_write
    return is_written or argument.name in ("running_mean", "running_var")


def _tensors(tree):
    return [x for x in optree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def _address(x):
    try:
        return storage_of(x)
    except NotImplementedError:  # a sparse tensor
        return id(x)
