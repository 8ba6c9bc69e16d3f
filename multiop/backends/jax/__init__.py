"""The JAX backend."""

import jax

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
    composite as composite,
    jit as jit,
    jvp as jvp,
    vjp as vjp,
    vmap as vmap,
)
from .windows import *  # noqa: F403

name = "jax"
version = jax.__version__
Tensor = jax.Array
argument_errors = (TypeError, ValueError, IndexError)
passed_errors = (jax.errors.JAXTypeError, jax.errors.JAXIndexError, jax.errors.UnexpectedTracerError)


def is_unsupported(error):
    """Say whether XLA has no kernel for a dtype on a device."""
    return isinstance(error, jax.errors.JaxRuntimeError) and str(error).startswith("UNIMPLEMENTED")
