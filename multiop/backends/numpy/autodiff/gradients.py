"""Gradients of tensors that were computed before: NumPy records nothing."""

from __future__ import annotations

from multiop import errors

no_derivatives = (
    "the NumPy backend has values alone in this version, and no derivatives: install a framework, with "
    "pip install 'multiop[torch]' (or [jax], [tensorflow]), and use it, with multiop.set_backend('torch')"
)


def refused(what):
    """Return the error about a derivative."""
    return errors.UnsupportedError(f"{what}: {no_derivatives}")


def gradients(ys, xs, grad_ys, stop_gradients, aggregation_method, gate_gradients, colocate):
    raise refused("gradients")
