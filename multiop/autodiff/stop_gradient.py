"""Cut the flow of gradients."""

from __future__ import annotations

from typing import Any

from multiop._call.boundary import boundary
from multiop._loading.registry import active
from multiop._rules import doors
from multiop._values import tree
from multiop._values.types import PyTree
from multiop.autodiff import _flat


@boundary
def op_stop_gradient(variable: PyTree) -> PyTree:
    """Return `variable` as a constant: the same value, with a derivative of zero in both modes.

    Args:
        variable: Tensor, variable, NumPy array, Python scalar, or a pytree of them.

    Returns:
        Pytree of the same structure. Tensors, variables and NumPy arrays become tensors of the same shape and dtype;
        anything else, a Python scalar or `None`, is returned as it is.

    Raises:
        ForeignTensorError: A leaf is a tensor of another framework.

    Gradient:
        Zero, at every order, in reverse and in forward mode.

    Example:
        >>> import multiop
        >>> float(multiop.grad(lambda x: x * multiop.op_stop_gradient(x))(3.0))
        3.0
    """
    doors.expect_no_gradient()
    backend = active()
    if backend.is_tensor(variable):
        return backend.stop_gradient(variable)
    is_array = _flat.is_array(backend)

    def stop(leaf: Any) -> Any:
        if backend.is_tensor(leaf):
            return backend.stop_gradient(leaf)
        tree.refuse_unregistered([leaf])
        return backend.stop_gradient(backend.convert(leaf)) if is_array(leaf) else leaf

    return tree.map(stop, variable)
