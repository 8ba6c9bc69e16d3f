"""A plugin of pytest that runs einops's own tests on `einops_multiop.Backend`, in the place of a framework's backend.

einops's wheel has no tests; its source distribution has.

    pip download --no-deps --no-binary :all: einops && tar xzf einops-*.tar.gz
    export PYTHONPATH=$PWD/einops-VERSION:FOLDER_OF_THIS_FILE MULTIOP_X64=1 MULTIOP_BACKEND=jax
    pytest -p einops_tests einops-VERSION/einops/tests
"""

from __future__ import annotations

import os
from typing import Any

import einops_multiop
from einops import _backends

import multiop

NAMES = {"torch": "TorchBackend", "jax": "JaxBackend", "tensorflow": "TensorflowBackend"}


class Replacement(einops_multiop.Backend):
    """The backend under the name of the framework, by which the tests select what to compare."""

    framework_name = multiop.backend()

    def from_numpy(self, x: Any) -> Any:
        """Return the array as a tensor, tracked on PyTorch, which the tests rely on."""
        tensor = super().from_numpy(x)
        return tensor.requires_grad_() if multiop.backend() == "torch" and self.is_float_type(tensor) else tensor


setattr(_backends, NAMES[multiop.backend()], Replacement)
os.environ["EINOPS_TEST_BACKENDS"] = f"numpy,{multiop.backend()}"
einops_multiop.install(Replacement())
