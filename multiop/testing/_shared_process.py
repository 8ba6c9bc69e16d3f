"""Precautions for a process that runs several backends or several dtypes."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import multiop
from multiop import extend


def torch_first(names: Sequence[str]) -> None:
    """Import PyTorch first if TensorFlow is among the backends `names`: after it, PyTorch or Triton may crash."""
    if "tensorflow" in names and importlib.util.find_spec("torch"):
        importlib.import_module("torch")
        extend.prepare_import("tensorflow")


@contextlib.contextmanager
def x64_mode_for(dtype: str) -> Iterator[None]:
    """Turn on the 64-bit mode inside the context if `dtype` needs it; both switches, JAX's own too, return."""
    if dtype not in extend.WIDE:
        yield
        return
    asked_for, jax = bool(extend.settings.x64), sys.modules.get("jax")
    own = jax is not None and jax.config.jax_enable_x64  # which may be on alone
    multiop.enable_x64()
    try:
        yield
    finally:
        multiop.enable_x64(asked_for)
        if jax is not None and jax.config.jax_enable_x64 != own:
            jax.config.update("jax_enable_x64", own)


@contextlib.contextmanager
def without_torch_compiler(asked: bool, backend: str = "aot_eager") -> Iterator[None]:
    """If `asked`, make PyTorch run traced code without compiling it: its compiler takes seconds each time.

    The backend `aot_eager` traces what autograd makes of the code, too; `eager` runs what was traced.
    """
    if not asked or "torch" not in sys.modules:
        yield
        return
    with sys.modules["torch"].compiler.set_stance("default", force_backend=backend):
        yield


def set_default_device(device: str, backend: str) -> None:
    """Make the framework of a backend create its tensors on `device` in this process from now on."""
    with multiop.use_backend(backend):
        there: Any = multiop.to_device(0.0, device)  # raises if there is no such device
    if backend == "torch":
        torch = importlib.import_module("torch")
        torch.set_default_device(there.device)
        torch.backends.cudnn.allow_tf32 = False  # by default, float32 convolutions on a GPU have 11 bits
    elif backend == "jax":
        jax = importlib.import_module("jax")
        jax.config.update("jax_default_device", next(iter(there.devices())))
        jax.config.update("jax_default_matmul_precision", "float32")
