"""What is known of each built-in backend before it is loaded: its module and its package."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from multiop._loading import imports

F = TypeVar("F", bound=Callable[..., Any])

# name -> (module that implements the backend, the package that it needs, the pip command that installs it)
BUILT_IN: dict[str, tuple[str, str, str]] = {
    "torch": ("multiop.backends.torch", "torch", "pip install 'multiop[torch]'"),
    "jax": ("multiop.backends.jax", "jax", "pip install 'multiop[jax]'"),
    "tensorflow": ("multiop.backends.tensorflow", "tensorflow", "pip install 'multiop[tensorflow]'"),
    "numpy": ("multiop.backends.numpy", "numpy", "pip install numpy scipy"),
}
EMBEDDED = "numpy"  # it needs no framework


def is_package(name: str) -> bool:
    """Say whether a package can be imported; a folder of that name next to the user's script does not count."""
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None


def is_imported(name: str) -> bool:
    """Say whether the program has imported a framework; TensorFlow imports JAX, if that is there, for its own use."""
    module = BUILT_IN[name][1]
    if name != "jax" or module not in sys.modules:
        return module in sys.modules
    names = list(sys.modules)  # in the order in which they were ready
    return names[names.index(module) + 1 :][:1] != ["tensorflow.lite.python.util"]


def of_keras(*, is_chosen: bool = True) -> str | None:
    """Return the backend that Keras runs on; `None` if Keras is not imported, or runs on none of multiop's.

    Args:
        is_chosen: Whether somebody must have chosen it: TensorFlow imports Keras itself, which then runs on TensorFlow.
    """
    chosen = getattr(getattr(sys.modules.get("keras"), "config", None), "backend", None)  # it may be half imported
    name = None if chosen is None else str(chosen())
    if is_chosen and name == "tensorflow" and not os.environ.get("KERAS_BACKEND"):
        return None
    return name if name in BUILT_IN else None


# TensorFlow 2.20 and 2.21 show their LLVM to what is loaded later, and Triton takes it for its own from 3.7 on, which
# ends the process: https://github.com/tensorflow/tensorflow/issues/124205


def prepare(name: str) -> None:
    """Do what must be done before the framework of a backend is imported."""
    if name == "tensorflow" and name not in sys.modules and is_package("triton"):
        with contextlib.suppress(Exception):  # if it cannot be loaded now, it cannot be later
            importlib.import_module("triton")  # which PyTorch's compiler needs


def is_triton_barred() -> bool:
    """Say whether importing Triton, as PyTorch's compiler does, would end the process: TensorFlow came first."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or "triton" in sys.modules or not is_package("triton"):
        return False
    from importlib import metadata  # a tenth of the time that `import multiop` would take

    versions = [getattr(tensorflow, "__version__", "0"), "3.7"]
    with contextlib.suppress(metadata.PackageNotFoundError):  # a Triton by another name may be as new
        versions[1] = metadata.version("triton")
    first, second = (tuple(map(int, re.findall(r"\d+", text)[:2])) for text in versions)
    return (2, 20) <= first < (2, 22) and second >= (3, 7)


def compiling() -> str | None:
    """Return the backend whose compiler traces Python itself, if it does so in this thread; it may not be loaded."""
    dynamo = sys.modules.get("torch._dynamo.symbolic_convert")
    # the module may be incomplete, while another thread imports it
    return None if getattr(getattr(dynamo, "tls", None), "current_tx", None) is None else "torch"


def hide_from_tracer(function: F) -> F:
    """Make such a compiler call `function` while tracing, since it cannot trace an import or the reading of a file."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@hide_from_tracer
def is_traced() -> bool:
    """Say whether a compiler that traces Python itself calls this."""
    return compiling() is not None


def _leave_ops_alone(autograph: Any) -> None:
    with contextlib.suppress(Exception):  # another version may raise anything: each op is then rewritten, at some cost
        autograph.CONVERSION_RULES = (autograph.DoNotConvert("multiop"), *autograph.CONVERSION_RULES)


# AutoGraph meets an op before the backend is loaded, where a `tf.function` calls the first one
imports.when_imported("tensorflow.python.autograph.core.config", _leave_ops_alone)
