"""A backend: what a third party has to write, with NumPy in the place of a framework."""

import numpy as np

from multiop.backends import not_implemented

from . import conversion, creation, elementwise, indexing, logical, products, reduction, shapes
from .conversion import (
    Tensor as Tensor,
    convert as convert,
    dtype_name as dtype_name,
    floating as floating,
    is_tensor as is_tensor,
    promote as promote,
    promote_floating as promote_floating,
    set_x64 as set_x64,
    together as together,
)
from .custom_gradient import custom_call as custom_call, stop_gradient as stop_gradient
from .devices import (
    device as device,
    is_at_hand as is_at_hand,
    name_scope as name_scope,
    on_device_of as on_device_of,
    to_device as to_device,
)
from .gradients import gradients as gradients
from .tape import Tape as Tape
from .transforms import checkpoint as checkpoint, jit as jit, jvp as jvp, vjp as vjp, vmap as vmap

name = "toy"
version = np.__version__
argument_errors = (ValueError, TypeError, IndexError)
passed_errors = ()

for _file in (conversion, creation, elementwise, indexing, logical, products, reduction, shapes):
    globals().update({_name: _op for _name, _op in vars(_file).items() if _name.startswith("op_")})


def __getattr__(attribute):
    if attribute.startswith("op_"):
        return not_implemented(f"the toy backend has no {attribute}")
    raise AttributeError(attribute)
