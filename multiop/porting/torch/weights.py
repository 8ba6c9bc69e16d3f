"""Weights of PyTorch's modules, state dicts and files."""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Mapping

import ml_dtypes
import numpy as np
import torch

from multiop import errors
from multiop.porting import _layouts, _weights

# dtypes that NumPy lacks: the integers of the same width, and the dtype of ml_dtypes
EXTENDED = {
    getattr(torch, name): (torch.int16 if name == "bfloat16" else torch.int8, getattr(ml_dtypes, name))
    for name in ("bfloat16", *(f"float8_{kind}" for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")))
    if hasattr(torch, name)  # float8_e8m0fnu since 2.7
}


def to_numpy(tensor):
    """Return a copy of a tensor's values."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype in EXTENDED:
        integer, dtype = EXTENDED[tensor.dtype]
        return np.array(tensor.view(integer).numpy()).view(dtype)
    return np.array(tensor.numpy())


def numpy_dtype(dtype):
    """Return NumPy's dtype, or that of ml_dtypes, for one of PyTorch's."""
    return to_numpy(torch.empty((), dtype=dtype)).dtype


def to_tensor(array):
    """Return an array as a tensor of its own."""
    for dtype, (integer, extended) in EXTENDED.items():
        if array.dtype == extended:
            width = np.dtype(f"i{array.dtype.itemsize}")
            return torch.from_numpy(np.array(array).view(width)).view(integer).view(dtype).reshape(array.shape)
    return torch.from_numpy(np.array(array, array.dtype.newbyteorder("=")))


def tensor_beside(array, model):
    """Return an array as a tensor of its own, where a model's are."""
    return to_tensor(array).to(next((x.device for x in itertools.chain(model.parameters(), model.buffers())), None))


def read(source):
    if isinstance(source, torch.nn.Module):
        entries = source.state_dict(keep_vars=True)
        kinds = {name: kind(module) for name, module in source.named_modules()}
    else:
        entries, kinds = source, {}
    check(entries)
    if not kinds and not any(isinstance(x, torch.nn.Parameter) for x in entries.values()):
        return _weights.split_state({name: to_numpy(x) for name, x in entries.items()}, "torch")
    arrays = {id(x): to_numpy(x) for x in entries.values()}  # what is shared is one array
    params = {name: arrays[id(x)] for name, x in entries.items() if isinstance(x, torch.nn.Parameter)}
    state = {name: arrays[id(x)] for name, x in entries.items() if name not in params}
    return _weights.Weights(_weights.nested(params), _weights.nested(state), "torch", kinds)


def kind(module):
    """Return the name of the first class of a module that has a known layout, or of its own class."""
    known = (cls.__name__ for cls in type(module).__mro__ if cls.__name__ in _layouts.KINDS["torch"])
    name = next(known, type(module).__name__)
    if name.startswith("ConvTranspose") and module.groups > 1:
        return f"{name} of {module.groups} groups"
    return name


def check(entries):
    if not isinstance(entries, Mapping):
        raise errors.ArgumentError(f"weights: give a module or a state_dict of PyTorch, not {_kind_text(entries)}")
    others = [name for name, x in entries.items() if not isinstance(x, torch.Tensor)]
    if others:
        inside = [name for name in others if isinstance(entries[name], dict)]
        hint = f"; it may be in [{inside[0]!r}]" if inside else ""
        raise errors.ArgumentError(f"{_weights.abridge(others)}: not a tensor, so this is no state_dict{hint}")
    check_values(entries)


def _kind_text(x):
    is_optimizer = isinstance(x, torch.optim.Optimizer)
    kind = type(x).__name__
    return f"the optimizer {kind}, whose state belongs to no layer" if is_optimizer else f"a {kind}"


def check_values(entries):
    """Refuse what stands for no array: what is lazy, on no device, sparse or quantized."""
    for name, x in entries.items():
        if torch.nn.parameter.is_lazy(x):
            raise errors.ArgumentError(f"{name} has no shape yet: call the lazy module once, with an example")
        if isinstance(x, torch.Tensor) and x.is_meta:
            raise errors.ArgumentError(f"{name} is on the meta device, and has no values")
        if isinstance(x, torch.dtype) or (isinstance(x, torch.Tensor) and x.is_quantized):
            raise errors.ArgumentError(f"{name} is quantized, which has no translation: give the model in floats")
        if isinstance(x, torch.Tensor) and not _is_of_numpy(x.dtype):
            raise errors.ArgumentError(f"{name} is {x.dtype}, which NumPy and ml_dtypes lack: cast it first")
        if isinstance(x, torch.Tensor) and x.layout is not torch.strided:
            raise errors.ArgumentError(f"{name} is sparse ({x.layout}): give it as `to_dense()`")


@functools.lru_cache(64)
def _is_of_numpy(dtype):
    """Say whether NumPy or ml_dtypes has one of PyTorch's dtypes."""
    try:
        return numpy_dtype(dtype) is not None
    except (TypeError, RuntimeError):
        return False


def read_file(path):
    try:
        entries = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        way = "if you trust it, read_weights(torch.load(path, weights_only=False))"
        raise errors.ArgumentError(f"{path.name}: it holds more than tensors: {way}") from error
    except (RuntimeError, EOFError) as error:
        raise errors.ArgumentError(
            f"{path.name}: PyTorch cannot read it: {str(error).partition(chr(10))[0] or 'it is cut short'}"
        ) from error
    return read(entries)


def write_file(path, arrays):
    tensors = {}
    for name, x in arrays.items():
        try:
            tensors[name] = to_tensor(x)
        except TypeError:
            raise errors.ArgumentError(
                f"{path.name}: {name} is {x.dtype.name}, which PyTorch lacks; cast it, or write an .npz file"
            ) from None
    torch.save(tensors, path)


@torch.no_grad()
def write(module, weights, cast, partial):
    if not isinstance(module, torch.nn.Module):
        check(module)
        places = module
    else:
        places = module.state_dict(keep_vars=True)
    arrays = weights.arrays
    given = {}  # tensor -> the name of its array: one tensor may have several names
    for name, x in arrays.items():
        first = given.setdefault(id(places.get(name, x)), name)
        if first != name and not np.array_equal(x, arrays[first]):
            raise errors.ArgumentError(f"{first} and {name} are one tensor of the model, and differ in the weights")
    needed = {name: x for name, x in places.items() if name in arrays or id(x) not in given}
    _weights.check_written(arrays, needed, partial)
    fitted = {
        name: _weights.fit_array(name, x, places[name].shape, numpy_dtype(places[name].dtype), cast)
        for name, x in arrays.items()
    }
    for name, x in fitted.items():
        places[name].copy_(to_tensor(x))
    return module
