"""The NumPy backend: what each op means, in its shortest form."""

import numpy as np

from . import kernels as kernels
from .conversion import *  # noqa: F403
from .ops import *  # noqa: F403

# isort: split
from .autodiff.custom_gradient import custom_call as custom_call, stop_gradient as stop_gradient
from .autodiff.gradients import gradients as gradients
from .autodiff.rules import around as around
from .autodiff.tape import Tape as Tape
from .autodiff.transforms import (
    checkpoint as checkpoint,
    has_native_derivatives as has_native_derivatives,
    is_differentiated as is_differentiated,
    jit as jit,
    jvp as jvp,
    linearize as linearize,
    vjp as vjp,
    vmap as vmap,
)
from .devices import (
    device as device,
    is_at_hand as is_at_hand,
    on_device_of as on_device_of,
    to_device as to_device,
)
from .scopes import name_scope as name_scope

name = "numpy"
version = np.__version__
argument_errors = (ValueError, TypeError, IndexError)
passed_errors = ()
