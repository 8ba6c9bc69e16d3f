"""The Python array API standard, 2025.12, on the tensors of the active backend.

`from multiop import array_api as xp` gives the namespace that a function with a parameter `xp` expects. Functions are
ops under the standard's names, with its parameters, so that what is written with them has gradients and compiles. A
dtype, as `xp.float32`, is the object of the active backend's framework.

Source: https://data-apis.org/array-api/2025.12/
"""

from __future__ import annotations

import math as _math
import typing as _typing

from multiop.dtypes import dtype_object as _dtype_object
from multiop.frontends.bitwise import (
    op_bitwise_and as bitwise_and,
    op_bitwise_invert as bitwise_invert,
    op_bitwise_left_shift as bitwise_left_shift,
    op_bitwise_or as bitwise_or,
    op_bitwise_right_shift as bitwise_right_shift,
    op_bitwise_xor as bitwise_xor,
)
from multiop.frontends.elementwise import (
    op_abs as abs,
    op_add as add,
    op_arccos as acos,
    op_arccosh as acosh,
    op_arcsin as asin,
    op_arcsinh as asinh,
    op_arctan as atan,
    op_arctan2 as atan2,
    op_arctanh as atanh,
    op_ceil as ceil,
    op_conj as conj,
    op_copysign as copysign,
    op_cos as cos,
    op_cosh as cosh,
    op_divide as divide,
    op_exp as exp,
    op_expm1 as expm1,
    op_floor as floor,
    op_floor_divide as floor_divide,
    op_hypot as hypot,
    op_imag as imag,
    op_log as log,
    op_log1p as log1p,
    op_log2 as log2,
    op_log10 as log10,
    op_logaddexp as logaddexp,
    op_maximum as maximum,
    op_minimum as minimum,
    op_mod as remainder,
    op_multiply as multiply,
    op_negative as negative,
    op_nextafter as nextafter,
    op_power as pow,
    op_real as real,
    op_reciprocal as reciprocal,
    op_round as round,
    op_sign as sign,
    op_sin as sin,
    op_sinh as sinh,
    op_sqrt as sqrt,
    op_square as square,
    op_subtract as subtract,
    op_tan as tan,
    op_tanh as tanh,
    op_trunc as trunc,
)
from multiop.frontends.indexing import op_take as take
from multiop.frontends.logical import (
    op_equal as equal,
    op_greater as greater,
    op_greater_equal as greater_equal,
    op_isfinite as isfinite,
    op_isinf as isinf,
    op_isnan as isnan,
    op_less as less,
    op_less_equal as less_equal,
    op_logical_and as logical_and,
    op_logical_not as logical_not,
    op_logical_or as logical_or,
    op_logical_xor as logical_xor,
    op_nonzero as nonzero,
    op_not_equal as not_equal,
    op_signbit as signbit,
    op_where as where,
)
from multiop.frontends.products import op_matmul as matmul, op_tensordot as tensordot
from multiop.frontends.reduction import (
    op_all as all,
    op_any as any,
    op_argmax as argmax,
    op_argmin as argmin,
    op_max as max,
    op_mean as mean,
    op_min as min,
)
from multiop.frontends.shapes import (
    op_broadcast_shapes as broadcast_shapes,
    op_broadcast_to as broadcast_to,
    op_expand_dims as expand_dims,
    op_flip as flip,
    op_moveaxis as moveaxis,
    op_repeat as repeat,
    op_roll as roll,
    op_squeeze as squeeze,
    op_stack as stack,
    op_tile as tile,
    op_transpose as permute_dims,
    op_tril as tril,
    op_triu as triu,
)

from . import fft, linalg
from ._creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from ._data_types import NAMES as _DTYPES, astype, can_cast, finfo, iinfo, isdtype, result_type
from ._functions import (
    argsort,
    broadcast_arrays,
    clip,
    concat,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    isin,
    matrix_transpose,
    meshgrid,
    positive,
    prod,
    reshape,
    searchsorted,
    sort,
    std,
    sum,
    take_along_axis,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    unstack,
    var,
    vecdot,
)
from ._info import __array_namespace_info__

__array_api_version__ = "2025.12"

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "complex64",
    "complex128",
    "concat",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "divide",
    "e",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "eye",
    "fft",
    "finfo",
    "flip",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "greater",
    "greater_equal",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "prod",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "searchsorted",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "tril",
    "triu",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]


def __dir__() -> list[str]:
    return __all__


if _typing.TYPE_CHECKING:
    from multiop._values.types import DType as _DType

    bool: _DType
    int8: _DType
    int16: _DType
    int32: _DType
    int64: _DType
    uint8: _DType
    uint16: _DType
    uint32: _DType
    uint64: _DType
    float32: _DType
    float64: _DType
    complex64: _DType
    complex128: _DType
else:  # with it, a type checker would accept any name

    def __getattr__(name):
        from multiop._loading.suggestions import missing

        if name in _DTYPES:
            return _dtype_object(name)
        raise missing("multiop.array_api", name, __all__)
