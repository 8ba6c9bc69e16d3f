"""Where a tensor that is being differentiated leaves for the host: its gradient would end there in silence."""

from __future__ import annotations

import sys
import threading
import warnings
from typing import Any

from multiop import errors

innermost = threading.local()
"""`.run` is what this thread is differentiating, the innermost one; `None` where a rule says the derivative.

It has `name`, the transform, and `is_meant`: whether an output that depends on nothing is no surprise, since a gradient
was stopped, or taken, in it.
"""
_NOT_OURS = ("multiop", "torch", "jax", "tensorflow")
# what the frameworks say of a number that they do not give out
_REFUSALS = (
    "Can't call numpy() on Tensor that requires grad",
    "Cannot access data pointer of Tensor that doesn't have storage",
    "The numpy.ndarray conversion method __array__() was called on",
    "Abstract tracer value encountered where concrete value is expected",
)


def expect_no_gradient() -> None:
    """Note in the innermost run that an output that depends on nothing is no surprise."""
    run = getattr(innermost, "run", None)
    if run is not None:
        run.is_meant = True


def refuse(x: Any, backend: Any) -> None:
    """Raise an error if `x`, a tensor or lists of tensors that leave for the host, is being differentiated."""
    run = getattr(innermost, "run", None)
    if run is not None and is_differentiated([backend.convert(x)], backend):
        raise refusal(run.name)


def refusal(name: str) -> errors.UnsupportedError:
    """Return the error for a tensor that leaves for the host while `name` differentiates it."""
    return errors.UnsupportedError(
        f"{name} differentiates this tensor, and its gradient would end where it becomes a NumPy array or a number: "
        f"compute with ops of multiop, and write op_convert_to_tensor(y) for a NumPy array y beside it, or, where all "
        f"of the function is NumPy's, compute on its backend: "
        f"multiop.set_backend('numpy'); give the function a gradient with op_custom_gradient; or, where its value is "
        f"meant as a constant, write op_convert_to_numpy(op_stop_gradient(x))"
    )


def is_refusal(error: Exception) -> bool:
    """Say whether a framework raised `error` because a tensor that it differentiates left for the host."""
    text = "" if isinstance(error, errors.MultiopError) else str(error)
    return text.startswith(_REFUSALS) and "for jit" not in text  # in compiled code nothing has a value


def is_differentiated(xs: list[Any], backend: Any) -> bool | None:
    """Say whether one of `xs` is being differentiated; `None` where the backend cannot tell."""
    ask = getattr(backend, "is_differentiated", None)
    if ask is None:
        return None if xs else False
    found: bool | None = False
    for x in xs:
        answer = ask(x)
        if answer:
            return True
        found = None if answer is None else found
    return found


def warn_unconnected(name: str) -> None:
    """Warn that the output of a function that `name` differentiates depends on none of its arguments."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{name}: the output depends on nothing that it is differentiated with respect to, so all derivatives are 0. "
        f"They end where a tensor becomes a NumPy array or a number (np.asarray, float, a function of SciPy) or an "
        f"integer (argmax, a comparison): compute with ops of multiop, or take op_stop_gradient where 0 is meant",
        errors.UnconnectedWarning,
        stacklevel=level + 1,
    )
