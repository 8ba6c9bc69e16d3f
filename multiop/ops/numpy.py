# made by tools/op_list.py: run `nox -s generate`, do not edit
# ruff: noqa: I001
# fmt: off
"""Array ops without prefix, as in `keras.ops.numpy`: `ops.numpy.add(x, y)`."""

import typing as _typing

from multiop.frontends.bitwise import (
    op_bitwise_and as bitwise_and, op_bitwise_count as bitwise_count, op_bitwise_invert as bitwise_invert,
    op_bitwise_left_shift as bitwise_left_shift, op_bitwise_not as bitwise_not, op_bitwise_or as bitwise_or,
    op_bitwise_right_shift as bitwise_right_shift, op_bitwise_xor as bitwise_xor, op_frexp as frexp, op_gcd as gcd,
    op_lcm as lcm, op_left_shift as left_shift, op_right_shift as right_shift,
)
from multiop.frontends.control_flow import (
    op_vectorize as vectorize,
)
from multiop.frontends.conversion import (
    op_array as array, op_view as view,
)
from multiop.frontends.creation import (
    op_arange as arange, op_copy as copy, op_empty as empty, op_empty_like as empty_like, op_eye as eye,
    op_full as full, op_full_like as full_like, op_identity as identity, op_linspace as linspace, op_ones as ones,
    op_ones_like as ones_like, op_zeros as zeros, op_zeros_like as zeros_like,
)
from multiop.frontends.elementwise import (
    op_abs as abs, op_absolute as absolute, op_add as add, op_angle as angle, op_arccos as arccos,
    op_arccosh as arccosh, op_arcsin as arcsin, op_arcsinh as arcsinh, op_arctan as arctan, op_arctan2 as arctan2,
    op_arctanh as arctanh, op_cbrt as cbrt, op_ceil as ceil, op_clip as clip, op_conj as conj,
    op_conjugate as conjugate, op_copysign as copysign, op_cos as cos, op_cosh as cosh, op_deg2rad as deg2rad,
    op_divide as divide, op_divide_no_nan as divide_no_nan, op_exp as exp, op_exp2 as exp2, op_expm1 as expm1,
    op_fabs as fabs, op_floor as floor, op_floor_divide as floor_divide, op_fmax as fmax, op_fmin as fmin,
    op_fmod as fmod, op_heaviside as heaviside, op_hypot as hypot, op_imag as imag, op_ldexp as ldexp, op_log as log,
    op_log1p as log1p, op_log2 as log2, op_log10 as log10, op_logaddexp as logaddexp, op_logaddexp2 as logaddexp2,
    op_maximum as maximum, op_minimum as minimum, op_mod as mod, op_modf as modf, op_multiply as multiply,
    op_nan_to_num as nan_to_num, op_negative as negative, op_nextafter as nextafter, op_power as power,
    op_rad2deg as rad2deg, op_real as real, op_reciprocal as reciprocal, op_round as round, op_sign as sign,
    op_sin as sin, op_sinc as sinc, op_sinh as sinh, op_sqrt as sqrt, op_square as square, op_subtract as subtract,
    op_tan as tan, op_tanh as tanh, op_true_divide as true_divide, op_trunc as trunc,
)
from multiop.frontends.indexing import (
    op_get_item as get_item, op_select as select, op_take as take, op_take_along_axis as take_along_axis,
    op_unravel_index as unravel_index,
)
from multiop.frontends.linalg import (
    op_slogdet as slogdet,
)
from multiop.frontends.logical import (
    op_allclose as allclose, op_equal as equal, op_greater as greater, op_greater_equal as greater_equal,
    op_isclose as isclose, op_isfinite as isfinite, op_isinf as isinf, op_isnan as isnan, op_isneginf as isneginf,
    op_isposinf as isposinf, op_isreal as isreal, op_less as less, op_less_equal as less_equal,
    op_logical_and as logical_and, op_logical_not as logical_not, op_logical_or as logical_or,
    op_logical_xor as logical_xor, op_nonzero as nonzero, op_not_equal as not_equal, op_signbit as signbit,
    op_where as where,
)
from multiop.frontends.polynomials import (
    op_poly as poly, op_polyfit as polyfit, op_polyval as polyval, op_roots as roots,
)
from multiop.frontends.products import (
    op_cross as cross, op_dot as dot, op_einsum as einsum, op_inner as inner, op_kron as kron, op_matmul as matmul,
    op_outer as outer, op_tensordot as tensordot, op_trace as trace, op_vander as vander, op_vdot as vdot,
)
from multiop.frontends.reduction import (
    op_all as all, op_amax as amax, op_amin as amin, op_any as any, op_argmax as argmax, op_argmin as argmin,
    op_average as average, op_count_nonzero as count_nonzero, op_cumprod as cumprod, op_cumsum as cumsum,
    op_diff as diff, op_max as max, op_mean as mean, op_min as min, op_prod as prod, op_ptp as ptp, op_std as std,
    op_sum as sum, op_var as var,
)
from multiop.frontends.samples import (
    op_gradient as gradient, op_interp as interp, op_unwrap as unwrap,
)
from multiop.frontends.shapes import (
    op_append as append, op_array_split as array_split, op_block_diag as block_diag,
    op_broadcast_arrays as broadcast_arrays, op_broadcast_shapes as broadcast_shapes, op_broadcast_to as broadcast_to,
    op_column_stack as column_stack, op_concatenate as concatenate, op_diag as diag, op_diagflat as diagflat,
    op_diagonal as diagonal, op_dsplit as dsplit, op_dstack as dstack, op_expand_dims as expand_dims, op_flip as flip,
    op_fliplr as fliplr, op_flipud as flipud, op_hsplit as hsplit, op_hstack as hstack, op_meshgrid as meshgrid,
    op_moveaxis as moveaxis, op_ndim as ndim, op_pad as pad, op_ravel as ravel, op_repeat as repeat,
    op_reshape as reshape, op_roll as roll, op_rot90 as rot90, op_set_diag as set_diag, op_size as size,
    op_split as split, op_squeeze as squeeze, op_stack as stack, op_swapaxes as swapaxes, op_tile as tile,
    op_transpose as transpose, op_tri as tri, op_tril as tril, op_tril_indices as tril_indices, op_triu as triu,
    op_triu_indices as triu_indices, op_vsplit as vsplit, op_vstack as vstack,
)
from multiop.frontends.sorting import (
    op_argpartition as argpartition, op_argsort as argsort, op_bincount as bincount, op_digitize as digitize,
    op_histogram as histogram, op_intersect1d as intersect1d, op_isin as isin, op_lexsort as lexsort,
    op_searchsorted as searchsorted, op_setdiff1d as setdiff1d, op_sort as sort, op_union1d as union1d,
    op_unique as unique,
)
from multiop.frontends.spacing import (
    op_geomspace as geomspace, op_logspace as logspace,
)
from multiop.frontends.special import (
    op_i0 as i0,
)
from multiop.frontends.statistics import (
    op_convolve as convolve, op_corrcoef as corrcoef, op_correlate as correlate, op_cov as cov, op_median as median,
    op_nanargmax as nanargmax, op_nanargmin as nanargmin, op_nancumprod as nancumprod, op_nancumsum as nancumsum,
    op_nanmax as nanmax, op_nanmean as nanmean, op_nanmedian as nanmedian, op_nanmin as nanmin,
    op_nanpercentile as nanpercentile, op_nanprod as nanprod, op_nanquantile as nanquantile, op_nanstd as nanstd,
    op_nansum as nansum, op_nanvar as nanvar, op_percentile as percentile, op_quantile as quantile,
    op_trapezoid as trapezoid,
)
from multiop.frontends.windows import (
    op_bartlett as bartlett, op_blackman as blackman, op_hamming as hamming, op_hanning as hanning, op_kaiser as kaiser,
)

__all__ = [
    "abs", "absolute", "add", "all", "allclose", "amax", "amin", "angle", "any", "append", "arange", "arccos",
    "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argpartition", "argsort",
    "array", "array_split", "average", "bartlett", "bincount", "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "block_diag",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "cbrt", "ceil", "clip", "column_stack", "concatenate",
    "conj", "conjugate", "convolve", "copy", "copysign", "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cov",
    "cross", "cumprod", "cumsum", "deg2rad", "diag", "diagflat", "diagonal", "diff", "digitize", "divide",
    "divide_no_nan", "dot", "dsplit", "dstack", "einsum", "empty", "empty_like", "equal", "exp", "exp2", "expand_dims",
    "expm1", "eye", "fabs", "flip", "fliplr", "flipud", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp",
    "full", "full_like", "gcd", "geomspace", "get_item", "gradient", "greater", "greater_equal", "hamming", "hanning",
    "heaviside", "histogram", "hsplit", "hstack", "hypot", "i0", "identity", "imag", "inner", "interp", "intersect1d",
    "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "kaiser", "kron", "lcm", "ldexp",
    "left_shift", "less", "less_equal", "lexsort", "linspace", "log", "log1p", "log2", "log10", "logaddexp",
    "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "logspace", "matmul", "max", "maximum",
    "mean", "median", "meshgrid", "min", "minimum", "mod", "modf", "moveaxis", "multiply", "nan_to_num", "nanargmax",
    "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod",
    "nanquantile", "nanstd", "nansum", "nanvar", "ndim", "negative", "nextafter", "nonzero", "not_equal", "ones",
    "ones_like", "outer", "pad", "percentile", "poly", "polyfit", "polyval", "power", "prod", "ptp", "quantile",
    "rad2deg", "ravel", "real", "reciprocal", "repeat", "reshape", "right_shift", "roll", "roots", "rot90", "round",
    "searchsorted", "select", "set_diag", "setdiff1d", "sign", "signbit", "sin", "sinc", "sinh", "size", "slogdet",
    "sort", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take",
    "take_along_axis", "tan", "tanh", "tensordot", "tile", "trace", "transpose", "trapezoid", "tri", "tril",
    "tril_indices", "triu", "triu_indices", "true_divide", "trunc", "union1d", "unique", "unravel_index", "unwrap",
    "vander", "var", "vdot", "vectorize", "view", "vsplit", "vstack", "where", "zeros", "zeros_like",
]

if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        raise missing(__name__, name, __all__)
