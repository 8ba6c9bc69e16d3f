"""The PyTorch backend."""

import torch

from multiop import _registry

from . import _internals
from ._internals import retrace as retrace
from .activations import *  # noqa: F403
from .attention import *  # noqa: F403
from .bitwise import *  # noqa: F403
from .control_flow import *  # noqa: F403
from .conversion import *  # noqa: F403
from .convolution import *  # noqa: F403
from .creation import *  # noqa: F403
from .custom_gradient import custom_call as custom_call, stop_gradient as stop_gradient
from .decompositions import *  # noqa: F403
from .devices import device as device, to_device as to_device
from .elementwise import *  # noqa: F403
from .gradients import gradients as gradients
from .indexing import *  # noqa: F403
from .logical import *  # noqa: F403
from .losses import *  # noqa: F403
from .normalization import *  # noqa: F403
from .pooling import *  # noqa: F403
from .products import *  # noqa: F403
from .reduction import *  # noqa: F403
from .segment import *  # noqa: F403
from .shapes import *  # noqa: F403
from .signal import *  # noqa: F403
from .sorting import *  # noqa: F403
from .special import *  # noqa: F403
from .statistics import *  # noqa: F403
from .tape import Tape as Tape
from .transforms import (
    checkpoint as checkpoint,
    is_free_of_rules as is_free_of_rules,
    jit as jit,
    jvp as jvp,
    vjp as vjp,
    vmap as vmap,
)
from .windows import *  # noqa: F403

if not _internals.IS_TESTED:
    from ._public import custom_call as custom_call

name = "torch"
if_untested = _registry.REVERSE_MODE_ALONE
version = torch.__version__
Tensor = torch.Tensor
argument_errors = (RuntimeError, IndexError, ValueError, TypeError)
passed_errors = (torch.OutOfMemoryError, NotImplementedError)


def is_unsupported(error):
    """Say whether PyTorch has no kernel for a dtype on a device, as for integers on a GPU."""
    text = str(error) if isinstance(error, RuntimeError) else ""  # of which NotImplementedError is one
    reasons = (
        "not implemented for '",
        "getCudnnDataTypeFromScalarType",
        "does not have a sharding strategy registered",
    )
    return any(reason in text for reason in reasons)
