"""The JAX backend."""

import jax

from . import _versions as _versions  # first: it refuses what is too old

# isort: split
from . import _cpu_compiler, kernels as kernels, random as random
from ._ops import *  # noqa: F403
from .autodiff._held import linear as linear
from .autodiff.custom_gradient import custom_call as custom_call, stop_gradient as stop_gradient
from .autodiff.gradients import gradients as gradients
from .autodiff.tape import Tape as Tape
from .autodiff.transforms import (
    checkpoint as checkpoint,
    composite as composite,
    is_differentiated as is_differentiated,
    jit as jit,
    jvp as jvp,
    vjp as vjp,
    vmap as vmap,
)
from .conversion import (
    convert as convert,
    dtype_name as dtype_name,
    floating as floating,
    is_tensor as is_tensor,
    is_unknown_value as is_unknown_value,
    on_device_of as on_device_of,
    promote as promote,
    promote_floating as promote_floating,
    set_x64 as set_x64,
    together as together,
    x64 as x64,
)
from .devices import device as device, is_at_hand as is_at_hand, to_device as to_device
from .scopes import name_scope as name_scope

_cpu_compiler.mend()

name = "jax"
version = jax.__version__
if_untested = None  # `_versions` warns where it matters
Tensor = jax.Array
argument_errors = (TypeError, ValueError, IndexError)
passed_errors = (jax.errors.JAXTypeError, jax.errors.JAXIndexError, jax.errors.UnexpectedTracerError)


def is_unsupported(error):
    """Say whether XLA has no kernel for a dtype on a device."""
    return isinstance(error, jax.errors.JaxRuntimeError) and str(error).startswith("UNIMPLEMENTED")
