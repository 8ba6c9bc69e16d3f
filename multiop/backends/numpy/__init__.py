"""The NumPy backend: what each op means, in its shortest form."""

import numpy as np

from . import kernels as kernels, random as random
from ._record import is_differentiated as is_differentiated
from .conversion import *  # noqa: F403
from .ops import *  # noqa: F403

# isort: split
from .autodiff.custom_gradient import custom_call as custom_call, stop_gradient as stop_gradient
from .autodiff.gradients import gradients as gradients
from .autodiff.rules import around as around
from .autodiff.tape import Tape as Tape
from .autodiff.transforms import *  # noqa: F403
from .devices import *  # noqa: F403
from .scopes import name_scope as name_scope

name = "numpy"
version = np.__version__
argument_errors = (ValueError, TypeError, IndexError)
passed_errors = ()
