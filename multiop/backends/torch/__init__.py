"""The PyTorch backend."""

import torch

from multiop._loading import versions

from . import _compiler, _internals, kernels as kernels, random as random
from .conversion import *  # noqa: F403
from .ops import *  # noqa: F403

# isort: split
from .autodiff.custom_gradient import custom_call as custom_call, stop_gradient as stop_gradient
from .autodiff.gradients import gradients as gradients
from .autodiff.tape import Tape as Tape
from .autodiff.transforms import (
    checkpoint as checkpoint,
    has_native_derivatives as has_native_derivatives,
    is_differentiated as is_differentiated,
    jit as jit,
    jvp as jvp,
    linearize as linearize,
    vjp as vjp,
    vmap as vmap,
)
from .devices import device as device, is_at_hand as is_at_hand, to_device as to_device
from .scopes import name_scope as name_scope

if not _internals.IS_TESTED:
    from .autodiff._public import custom_call as custom_call

name = "torch"
compiler = _compiler
if_untested = versions.REVERSE_MODE_ALONE
version = torch.__version__
Tensor = torch.Tensor
argument_errors = (RuntimeError, IndexError, ValueError, TypeError)
passed_errors = (torch.OutOfMemoryError, NotImplementedError)


REASONS = {
    "unsupported": (
        "not implemented for '",
        "getCudnnDataTypeFromScalarType",
        "does not have a sharding strategy registered",
        "Batching rule not implemented",
    ),
    "unknown value": (
        "calling .item() on",
        "can output dynamic shape",
        "get value out of a tracing tensor",
        "Cannot access data pointer of Tensor",
        # of meta tensors, on which Keras traces
        ".item() cannot be called on meta",
        "copy out of meta tensor",
        "as a correct data-independent implementation does not exist",
        "attempted to run this operator with Meta tensors",
    ),
}


def reason(error):
    """Say whether PyTorch has no kernel, such as one of integers on a GPU, or a value is read that it does not know."""
    text = str(error) if isinstance(error, RuntimeError) else ""  # NotImplementedError is a RuntimeError
    return next((name for name, parts in REASONS.items() if any(part in text for part in parts)), None)


def first_line(error):
    """Return the first line of an error's message; for what a later version can do, name that version."""
    text = str(error).strip().split("\n")[0]
    if "Batching rule not implemented for aten::view.dtype" not in text:
        return text
    return (
        f"PyTorch {version} has no vmap of a view in another dtype: install torch>=2.13: "
        f"https://github.com/pytorch/pytorch/issues/180727"
    )
