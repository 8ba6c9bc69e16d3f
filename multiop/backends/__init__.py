"""What a backend is: the contract for whoever writes one.

A backend is a module: a package with the frontend's file names in `ops`, and those of `multiop/autodiff` in `autodiff`.
It holds, under the frontend's names and in its order, every primitive op as a short `def`. It imports its framework,
NumPy, its siblings and what stands below it (`errors`, `config`, `scopes` and the private packages), never a frontend;
one outside of this package imports `multiop.extend`, which has all of that under one name.

`ops` says what an op means, right in every mode. A faster form that is not right everywhere stands in `kernels` under
the op's name, primitive or composite, and calls `otherwise`, the op itself, where it does not apply: see
`multiop._loading.kernels`.

Arguments arrive by position, all of them, with the frontend's defaults filled in. Tensors may still be host values
(Python scalars, NumPy arrays, lists); `convert`, `floating` and `promote` in `conversion.py` convert them. Errors are
raised without the op's name: the frontend adds it.

`Backend` in `multiop/_loading/contract.py` lists what a backend holds besides the ops. Loading a backend checks it,
and one error names everything that is missing.

What an op means, read in `numpy/ops`: each in its shortest form. Write the files of ops in the order in which they
import each other: `conversion`, `creation`, `elementwise`, `reduction`, `shapes`, `logical`, `indexing`, `sorting`,
`products`, then the rest in any order; and run the suite after each: `pytest tests/test_conformance.py
--backends=mine -k op_name`.

Results are tensors, also those without dimensions, and share no memory with what a caller may change. What a backend
does around each of its ops, primitive or composite, stands in one place: `around(op)`, see `numpy/autodiff/rules`.

What the op files of the built-in backends share has one meaning and one signature. The rules of dtypes stand in
`conversion.py`:

| name | what it does |
|---|---|
| `bool_to_int32(*xs)`, `without_int8(*xs)`, `halves_to_float32(x)` | cast what the framework does not compute with |
| `not_bool(*xs)`, `reject_complex(*xs)`, `reject_floats(*xs)` | refuse what an op does not take |
| `in_float32(fn, *xs)` | compute 16-bit floats in `float32`, where `fn` would overflow or lose digits |
| `beyond_float16(fn, *xs)` | the same for `float16` alone, where its range is too narrow |
| `where_differentiated(fn, x)` | the same for a selection, where its gradient, a sum, may be taken |
| `promote_operands(*xs)` | tensors of one floating dtype; `None` stays |
| `to_wide_float(*xs)` | the dtype of a loss, and its operands in at least `float32` |
| `comparable(x1, x2)` | two tensors of one dtype that has an order |
| `truth(x)` | a tensor of bool |
| `to_index_integers(x)` | indices in a dtype that holds the size of a dimension |
| `is_known(x)`, `is_at_hand(x)` | whether values can be read, and without waiting for an accelerator, for errors |
| `product_of(fn, *xs)` | a product of matrices in a dtype that the framework multiplies |
| `convolved(x, kernel, ...)` | the framework's convolution, where it takes the dtype |
| `to_data_format(y, data_format)` | the result of a convolution or pooling in the layout of its inputs |
| `combine_segments(combine, x, ids, n)` | the rows of each segment combined pairwise |

Register it in the package's `pyproject.toml`:

    [project.entry-points."multiop.backends"]
    mine = "my_package.my_backend"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from multiop import errors


def not_implemented(reason: str) -> Callable[..., Any]:
    """Return an op that raises `UnsupportedError` with `reason`, which names the upstream URL."""

    def raise_unsupported(*_: Any) -> Any:
        raise errors.UnsupportedError(reason)

    raise_unsupported.reason = reason  # type: ignore[attr-defined]
    return raise_unsupported


if not TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        raise missing(__name__, name, ())
