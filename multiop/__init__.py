"""Write an operation and its gradient once; run it on TensorFlow, PyTorch and JAX."""

from multiop.config import (
    available_backends as available_backends,
    backend as backend,
    enable_x64 as enable_x64,
    floatx as floatx,
    set_backend as set_backend,
    set_floatx as set_floatx,
    use_backend as use_backend,
    x64 as x64,
)
from multiop.ops.conversion import op_convert_to_numpy as op_convert_to_numpy, op_convert_to_tensor as op_convert_to_tensor
from multiop.ops.elementwise import op_add as op_add, op_exp as op_exp
