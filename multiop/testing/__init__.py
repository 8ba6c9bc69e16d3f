"""Prove that operations give the same values and gradients on every backend: multiop's own, and yours.

`multiop check FILE` runs the functions of a file on every installed backend. `example_inputs` says at which inputs:

    from multiop.testing import example_inputs, positive

    @example_inputs(positive(3))
    def f(x): ...

`pytest --pyargs multiop.testing --multiop-backends=NAME` runs multiop's own cases on a backend. In a test of your own,
make a `Problem` and hand it to the checks; each raises `Mismatch` (an `AssertionError`) or returns the largest error.
"""

from ._case import call as call
from ._checks import (
    NoEstimate as NoEstimate,
    check_agreement as check_agreement,
    check_compiled as check_compiled,
    check_forward_mode as check_forward_mode,
    check_gradient as check_gradient,
    check_gradient_through_compiled as check_gradient_through_compiled,
    check_second_order as check_second_order,
    check_values as check_values,
    check_vmap as check_vmap,
)
from ._discovery import example_inputs as example_inputs
from ._problem import Problem as Problem
from ._samplers import (
    booleans as booleans,
    distinct as distinct,
    integers as integers,
    nonzero as nonzero,
    normal as normal,
    positive as positive,
    probabilities as probabilities,
    uniform as uniform,
    unit as unit,
)
from ._tolerances import Mismatch as Mismatch
