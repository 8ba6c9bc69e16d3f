"""The PyTorch backend."""

import torch

from .conversion import *  # noqa: F403
from .elementwise import *  # noqa: F403

name = "torch"
version = torch.__version__
Tensor = torch.Tensor
argument_errors = (RuntimeError, IndexError, ValueError, TypeError)
passed_errors = (torch.OutOfMemoryError, NotImplementedError)
is_compiling = torch.compiler.is_compiling
