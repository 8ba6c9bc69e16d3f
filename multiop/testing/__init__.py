"""Prove that operations give the same values and gradients on every backend: multiop's own, and yours.

`multiop check FILE` runs the functions of a file on every installed backend, at the inputs given by `example_inputs`:

    from multiop.testing import example_inputs, positive

    @example_inputs(positive(3))
    def f(x): ...

In your own tests, `check_op` checks one function on every backend, at random inputs:

    from multiop.testing import check_op, normal

    def test_swish():
        check_op(swish, normal(3), reference=torch.nn.functional.silu)

It raises `Mismatch` (an `AssertionError`), which says what differs, where and by how much. `check_values`,
`check_gradients`, `check_second_order`, `check_vmap`, `check_compiled` and `check_dtypes` are its pieces.

`pytest --pyargs multiop.testing --multiop-backends=NAME` runs multiop's own cases on a backend.
"""

from typing import TYPE_CHECKING

from ._check_op import (
    check_compiled as check_compiled,
    check_dtypes as check_dtypes,
    check_gradients as check_gradients,
    check_op as check_op,
    check_second_order as check_second_order,
    check_values as check_values,
    check_vmap as check_vmap,
)
from ._discovery import example_inputs as example_inputs
from ._samplers import (
    booleans as booleans,
    distinct as distinct,
    integers as integers,
    nonzero as nonzero,
    normal as normal,
    positive as positive,
    probabilities as probabilities,
    spd as spd,
    uniform as uniform,
    unit as unit,
)
from ._tolerances import Mismatch as Mismatch

if not TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name: str) -> object:
        from multiop.extend import missing

        raise missing(__name__, name, [name for name in globals() if name.islower() and name[0] != "_"])
