"""Ask for the device of a tensor, and move a tensor to another, by names that are the same on every framework."""

from __future__ import annotations

from typing import Any

from multiop._call.boundary import boundary
from multiop._loading.registry import active
from multiop._values.types import ArrayLike, Tensor


@boundary
def device(x: ArrayLike) -> Any:
    """Return the device that `x` is on.

    Args:
        x: Tensor, or a host value (the answer is then the device on which its tensor would be created).

    Returns:
        Name of the device: `"cpu"`, `"cuda:0"` (a GPU, on TensorFlow and JAX too), `"tpu:1"`, and on PyTorch `"meta"`.
        For an array that JAX shards over several devices, its sharding.

    Raises:
        UnsupportedError: `x` is traced, so it is on no device yet.

    Example:
        >>> import multiop
        >>> multiop.device(multiop.op_zeros(3))
        'cpu'
    """
    return active().device(x)


@boundary
def to_device(x: ArrayLike, device: Any) -> Tensor:
    """Return `x` on `device`.

    Args:
        x: Tensor of any dtype and shape, or a host value.
        device: Name of a device, as `multiop.device` returns it (`"cuda"` is the first GPU, and so is `"gpu"`), or the
            framework's own: a `torch.device`, a `jax.Device` or JAX sharding, TensorFlow's name.

    Returns:
        Tensor of the dtype and shape of `x`; `x` itself if it is already on `device`.

    Raises:
        ArgumentError: There is no such device.
        ArgumentTypeError: `device` is neither a name nor one of the framework's.

    Gradient:
        1; the gradient is moved back to the device of `x`.

    Example:
        >>> import multiop
        >>> x = multiop.to_device([1.0, 2.0], "cpu")
        >>> multiop.device(x)
        'cpu'
    """
    return active().to_device(x, device)
