"""The JAX backend."""

import jax

from . import _versions as _versions  # first: it refuses what is too old

# isort: split
from . import kernels as kernels, random as random
from .conversion import *  # noqa: F403
from .ops import *  # noqa: F403

# isort: split
from .autodiff._held import linear as linear
from .autodiff.custom_gradient import custom_call as custom_call, stop_gradient as stop_gradient
from .autodiff.gradients import gradients as gradients
from .autodiff.tape import Tape as Tape
from .autodiff.transforms import (
    checkpoint as checkpoint,
    composite as composite,
    is_differentiated as is_differentiated,
    jit as jit,
    jit_donating as jit_donating,
    jvp as jvp,
    vjp as vjp,
    vmap as vmap,
)
from .conversion import is_unknown_value as is_unknown_value
from .devices import device as device, is_at_hand as is_at_hand, to_device as to_device
from .scopes import name_scope as name_scope

name = "jax"
version = jax.__version__
if_untested = None  # `_versions` warns where it matters
Tensor = jax.Array
argument_errors = (TypeError, ValueError, IndexError)
passed_errors = (jax.errors.JAXTypeError, jax.errors.JAXIndexError, jax.errors.UnexpectedTracerError)


def reason(error):
    """Say whether XLA has no kernel for a dtype on a device, or a value was read that is not known."""
    if isinstance(error, jax.errors.JaxRuntimeError) and str(error).startswith("UNIMPLEMENTED"):
        return "unsupported"
    return "unknown value" if is_unknown_value(error) else None
