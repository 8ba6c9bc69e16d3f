"""How an array of another library becomes a tensor: it shares memory where both may write to it, or neither."""

from __future__ import annotations

from typing import Any

import numpy as np

from multiop import config, errors
from multiop._loading import registry
from multiop._values import args, foreign, host
from multiop._values.types import Tensor
from multiop.frontends.conversion import op_array, op_convert_to_tensor, op_is_tensor

_FROZEN = ("jax", "tensorflow")  # the backends whose tensors never change


def adopt(x: Any, copy: bool | None) -> Tensor:
    """Return `x` as a tensor of the active backend, of the same dtype."""
    value = foreign.value_of_variable(x)
    x = x if value is None else value
    if op_is_tensor(x):
        return op_array(x) if copy else x
    framework = foreign.owner(x)
    if framework is None and not hasattr(x, "__dlpack__"):
        raise errors.ArgumentTypeError(
            f"from_dlpack: x must have __dlpack__, which {args.describe(x)} lacks; use asarray"
        )
    if not copy:
        array, share = _view(x), getattr(registry.active(), "share", None)
        frozen = x if framework in _FROZEN else None
        if array is not None and share and (tensor := share(array, copy is False, frozen)) is not None:
            return tensor
        if copy is False:
            raise errors.ArgumentError(
                f"from_dlpack: {config.backend()} cannot share the memory of this {type(x).__name__}, which is "
                "read-only, or has strides or a dtype that it does not take; leave copy=False out"
            )
    own = registry.load(framework).op_convert_to_numpy(x) if framework else np.array(_view(x), order="C")
    return op_convert_to_tensor(own, None if config.backend() == "jax" else host.name_of(own))


def _view(x: Any) -> np.ndarray[Any, Any] | None:
    """Return an array of NumPy on the memory of `x`; `None` where it cannot look there."""
    if isinstance(x, np.ndarray):
        return x
    if foreign.owner(x) == "torch":
        if x.is_conj() or x.is_neg():  # lazy bits, which PyTorch may not tell
            return None
        x = x.detach()
    try:
        return np.from_dlpack(x)
    except Exception:  # each framework's own, of an accelerator or bfloat16
        if foreign.owner(x) is None:
            raise
        return None
