"""What a transform returns: a function that is called, bound, copied and pickled as the one that it is made of."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar, cast

from multiop._call import keras_symbols
from multiop._call.frames import shorten
from multiop._loading.built_in import is_traced
from multiop._loading.suggestions import explain_keyword

F = TypeVar("F", bound=Callable[..., Any])


def decorate_transformed(
    fun: Callable[..., Any], make: Callable[..., Any], *options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator of the function that `make(fun, *options)` returns."""
    return lambda call: Transformed(call, fun, make, options)


def explain_keywords(make: F) -> F:
    """Let an error about a keyword that a transform does not take say which one it takes."""

    @functools.wraps(make)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return make(*args, **kwargs)
        except TypeError as error:
            explain_keyword(error, call)
            raise

    return cast(F, call)


class _Signature:
    """The signature of an instance, which `inspect` takes for a method of C because it has `__get__`; no class's."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        return None if instance is None else inspect.signature(instance.__wrapped__)


@keras_symbols.save_as_ours
class Transformed:
    """A function made of another one."""

    __signature__ = _Signature()

    def __init__(
        self, call: Callable[..., Any], fun: Callable[..., Any], make: Callable[..., Any], options: tuple[Any, ...]
    ) -> None:
        # before PyTorch 2.12, torch.compile cannot trace an update of an object's attributes
        functools.update_wrapper(self, fun, updated=() if is_traced() else functools.WRAPPER_UPDATES)
        # names of multiop's own: what wraps this, as tf.function, takes every attribute over into itself
        self._multiop_call, self._multiop_made_by = call, (make, (fun, *options))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._multiop_call(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        is_static = instance is None or isinstance(self._multiop_made_by[1][0], staticmethod)
        return self if is_static else types.MethodType(self, instance)

    def __repr__(self) -> str:
        make, (fun, *_) = self._multiop_made_by
        return f"<multiop.{getattr(make, 'func', make).__qualname__} of {fun!r}>"

    def is_made_by(self, make: Callable[..., Any]) -> bool:
        """Say whether the transform `make` returned it."""
        return self._multiop_made_by[0] is make

    def get_config(self) -> dict[str, Any]:
        """Return what Keras saves of it, as an activation: the name under which it is registered."""
        return {"name": keras_symbols.saved_name(self)}

    @staticmethod
    def from_config(config: dict[str, Any]) -> Any:
        """Return the function that Keras has saved."""
        return keras_symbols.load_saved(config["name"])

    def __reduce__(self) -> Any:
        """Return how to make it again; its name, if that stands for it: it decorates a function of a module."""
        name = getattr(self, "__qualname__", None)
        there: Any = sys.modules.get(getattr(self, "__module__", ""))
        for part in (name or "").split("."):
            there = getattr(there, part, None)
        return name if there is self else self._multiop_made_by
