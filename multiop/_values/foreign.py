"""Which framework owns a tensor, and the refusal of one that is not the active backend's."""

from __future__ import annotations

from typing import Any

from multiop import errors

# top-level module of a tensor's class -> the framework that owns it
_OWNERS = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "tensorflow": "tensorflow", "keras": "keras"}
LINEAR_FROM = "multiop_linear_from_"  # and a number name a call of another framework, linear from that operand on
_NOT_OWNED = (str, bool, int, float, complex)  # nor is a subclass, as of a literal in JAX


def linear_from(name: str) -> int | None:
    """Return from which operand on the call of this name is linear, if it says so; TensorFlow adds to a name."""
    own = name.rpartition("/")[2]
    number = own.removeprefix(LINEAR_FROM).partition("_")[0]
    return int(number) if own.startswith(LINEAR_FROM) and number.isdigit() else None


def owner(x: Any) -> str | None:
    """Return the name of the framework whose tensor `x` is, or `None`."""
    if x is None or isinstance(x, _NOT_OWNED):  # torch.compile cannot trace the loop over their classes
        return None
    for cls in type(x).__mro__:
        framework = _OWNERS.get((cls.__module__ or "").partition(".")[0])
        if framework is not None and hasattr(x, "shape") and hasattr(x, "dtype"):
            return framework
    return None


def value_of_variable(x: Any) -> Any:
    """Return the tensor in a Keras variable, or `None` for anything else."""
    return x.value if owner(x) == "keras" and hasattr(x, "value") and hasattr(x, "assign") else None


def refuse_tensor(x: Any, backend: str) -> None:
    """Raise an error if `x` is a tensor, but not a dense tensor of `backend`."""
    framework = owner(x)
    if framework is None or (framework == backend and hasattr(x, "__array__")):
        return
    if framework == backend:
        raise errors.ArgumentTypeError(f"{type(x).__name__} is not a dense {backend} tensor; make it one first")
    if framework == "keras":
        raise errors.ForeignTensorError(
            f"a Keras {type(x).__name__} was passed, which has no values; make the function an operation of "
            "Keras, with multiop.keras.Op(function)(...), or call it where there are values, as in the call method of "
            "a keras.Layer"
        )
    raise errors.ForeignTensorError(
        f"a {framework} tensor was passed while the {backend} backend is active; convert it "
        f"(multiop.op_convert_to_numpy under use_backend({framework!r})), or switch with "
        f"multiop.set_backend({framework!r})"
    )
