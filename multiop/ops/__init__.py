# made by tools/op_list.py: run `nox -s generate`, do not edit
# ruff: noqa: I001
# fmt: off
"""Every op without its prefix: `from multiop import ops; ops.add(x, y)`."""

import typing as _typing

from multiop._loading.suggestions import (
    PUBLIC as _PUBLIC,
)
from multiop._values.dtypes import (
    ALL as _DTYPES,
)
from multiop.autodiff.attach_gradient import (
    op_attach_gradient as attach_gradient,
)
from multiop.autodiff.custom_gradient import (
    op_custom_gradient as custom_gradient,
)
from multiop.autodiff.stop_gradient import (
    op_stop_gradient as stop_gradient,
)
from multiop.autodiff.transforms import (
    op_jvp as jvp,
)
from multiop.dtypes import (
    dtype_object as _dtype_object,
)
from multiop.frontends.activations import (
    op_celu as celu, op_elu as elu, op_gelu as gelu, op_glu as glu, op_hard_shrink as hard_shrink,
    op_hard_sigmoid as hard_sigmoid, op_hard_silu as hard_silu, op_hard_swish as hard_swish, op_hard_tanh as hard_tanh,
    op_leaky_relu as leaky_relu, op_log_sigmoid as log_sigmoid, op_log_softmax as log_softmax, op_relu as relu,
    op_relu6 as relu6, op_selu as selu, op_sigmoid as sigmoid, op_silu as silu, op_soft_shrink as soft_shrink,
    op_softmax as softmax, op_softplus as softplus, op_softsign as softsign, op_sparse_plus as sparse_plus,
    op_sparse_sigmoid as sparse_sigmoid, op_sparsemax as sparsemax, op_squareplus as squareplus, op_swish as swish,
    op_tanh_shrink as tanh_shrink, op_threshold as threshold,
)
from multiop.frontends.attention import (
    op_dot_product_attention as dot_product_attention,
)
from multiop.frontends.bitwise import (
    op_bitwise_and as bitwise_and, op_bitwise_count as bitwise_count, op_bitwise_invert as bitwise_invert,
    op_bitwise_left_shift as bitwise_left_shift, op_bitwise_not as bitwise_not, op_bitwise_or as bitwise_or,
    op_bitwise_right_shift as bitwise_right_shift, op_bitwise_xor as bitwise_xor, op_frexp as frexp, op_gcd as gcd,
    op_lcm as lcm, op_left_shift as left_shift, op_right_shift as right_shift,
)
from multiop.frontends.control_flow import (
    op_associative_scan as associative_scan, op_cond as cond, op_fori_loop as fori_loop, op_map as map, op_scan as scan,
    op_switch as switch, op_vectorize as vectorize, op_vectorized_map as vectorized_map, op_while_loop as while_loop,
)
from multiop.frontends.conversion import (
    op_array as array, op_cast as cast, op_convert_to_numpy as convert_to_numpy,
    op_convert_to_tensor as convert_to_tensor, op_dtype as dtype, op_is_tensor as is_tensor,
    op_saturate_cast as saturate_cast, op_shape as shape, op_view as view, op_view_as_complex as view_as_complex,
    op_view_as_real as view_as_real,
)
from multiop.frontends.convolution import (
    op_conv as conv, op_conv_transpose as conv_transpose, op_depthwise_conv as depthwise_conv, op_fold as fold,
    op_separable_conv as separable_conv, op_unfold as unfold,
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
    op_nan_to_num as nan_to_num, op_negative as negative, op_nextafter as nextafter, op_polar as polar,
    op_power as power, op_rad2deg as rad2deg, op_real as real, op_reciprocal as reciprocal, op_round as round,
    op_rsqrt as rsqrt, op_sign as sign, op_sin as sin, op_sinc as sinc, op_sinh as sinh, op_sqrt as sqrt,
    op_square as square, op_subtract as subtract, op_tan as tan, op_tanh as tanh, op_true_divide as true_divide,
    op_trunc as trunc,
)
from multiop.frontends.images import (
    op_image_affine_transform as image_affine_transform, op_image_crop as image_crop,
    op_image_elastic_transform as image_elastic_transform, op_image_extract_patches as image_extract_patches,
    op_image_extract_patches_3d as image_extract_patches_3d, op_image_gaussian_blur as image_gaussian_blur,
    op_image_hsv_to_rgb as image_hsv_to_rgb, op_image_map_coordinates as image_map_coordinates,
    op_image_pad as image_pad, op_image_perspective_transform as image_perspective_transform,
    op_image_reconstruct_patches as image_reconstruct_patches, op_image_resize as image_resize,
    op_image_rgb_to_grayscale as image_rgb_to_grayscale, op_image_rgb_to_hsv as image_rgb_to_hsv,
    op_image_scale_and_translate as image_scale_and_translate, op_image_sobel_edges as image_sobel_edges,
    op_image_ssim as image_ssim,
)
from multiop.frontends.indexing import (
    op_add_at as add_at, op_get_item as get_item, op_maximum_at as maximum_at, op_minimum_at as minimum_at,
    op_multi_hot as multi_hot, op_multiply_at as multiply_at, op_one_hot as one_hot,
    op_ravel_multi_index as ravel_multi_index, op_scatter as scatter, op_scatter_update as scatter_update,
    op_select as select, op_set_item as set_item, op_slice as slice, op_slice_update as slice_update,
    op_subset as subset, op_take as take, op_take_along_axis as take_along_axis, op_unravel_index as unravel_index,
)
from multiop.frontends.linalg import (
    op_cdist as cdist, op_cholesky as cholesky, op_cholesky_inverse as cholesky_inverse, op_det as det, op_eig as eig,
    op_eigh as eigh, op_eigvals as eigvals, op_eigvalsh as eigvalsh, op_expm as expm, op_inv as inv,
    op_logdet as logdet, op_logm as logm, op_lstsq as lstsq, op_lu_factor as lu_factor, op_matrix_power as matrix_power,
    op_matrix_rank as matrix_rank, op_norm as norm, op_pinv as pinv, op_polar_decomposition as polar_decomposition,
    op_qr as qr, op_slogdet as slogdet, op_solve as solve, op_solve_sylvester as solve_sylvester,
    op_solve_triangular as solve_triangular, op_sqrtm as sqrtm, op_svd as svd, op_svdvals as svdvals,
)
from multiop.frontends.logical import (
    op_allclose as allclose, op_equal as equal, op_greater as greater, op_greater_equal as greater_equal,
    op_isclose as isclose, op_isfinite as isfinite, op_isinf as isinf, op_isnan as isnan, op_isneginf as isneginf,
    op_isposinf as isposinf, op_isreal as isreal, op_less as less, op_less_equal as less_equal,
    op_logical_and as logical_and, op_logical_not as logical_not, op_logical_or as logical_or,
    op_logical_xor as logical_xor, op_nonzero as nonzero, op_not_equal as not_equal, op_signbit as signbit,
    op_where as where,
)
from multiop.frontends.losses import (
    op_binary_crossentropy as binary_crossentropy, op_categorical_crossentropy as categorical_crossentropy,
    op_ctc_decode as ctc_decode, op_ctc_loss as ctc_loss, op_psnr as psnr,
    op_sparse_categorical_crossentropy as sparse_categorical_crossentropy,
)
from multiop.frontends.normalization import (
    op_batch_normalization as batch_normalization,
    op_batch_normalization_with_moments as batch_normalization_with_moments,
    op_group_normalization as group_normalization, op_layer_normalization as layer_normalization,
    op_normalize as normalize, op_rms_normalization as rms_normalization,
)
from multiop.frontends.polynomials import (
    op_poly as poly, op_polyfit as polyfit, op_polyval as polyval, op_roots as roots,
)
from multiop.frontends.pooling import (
    op_adaptive_average_pool as adaptive_average_pool, op_adaptive_max_pool as adaptive_max_pool,
    op_average_pool as average_pool, op_depth_to_space as depth_to_space, op_max_pool as max_pool,
    op_space_to_depth as space_to_depth,
)
from multiop.frontends.products import (
    op_cross as cross, op_dot as dot, op_einsum as einsum, op_inner as inner, op_kron as kron, op_matmul as matmul,
    op_outer as outer, op_tensordot as tensordot, op_trace as trace, op_vander as vander, op_vdot as vdot,
)
from multiop.frontends.rearrange import (
    op_rearrange as rearrange,
)
from multiop.frontends.reduction import (
    op_all as all, op_amax as amax, op_amin as amin, op_any as any, op_argmax as argmax, op_argmin as argmin,
    op_average as average, op_count_nonzero as count_nonzero, op_cumprod as cumprod, op_cumsum as cumsum,
    op_diff as diff, op_logsumexp as logsumexp, op_max as max, op_mean as mean, op_min as min, op_prod as prod,
    op_ptp as ptp, op_std as std, op_sum as sum, op_var as var,
)
from multiop.frontends.samples import (
    op_gradient as gradient, op_interp as interp, op_unwrap as unwrap,
)
from multiop.frontends.segment import (
    op_segment_max as segment_max, op_segment_min as segment_min, op_segment_prod as segment_prod,
    op_segment_sum as segment_sum,
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
    op_triu_indices as triu_indices, op_unstack as unstack, op_vsplit as vsplit, op_vstack as vstack,
)
from multiop.frontends.signal import (
    op_extract_sequences as extract_sequences, op_fft as fft, op_fft2 as fft2, op_fftfreq as fftfreq, op_fftn as fftn,
    op_fftshift as fftshift, op_hfft as hfft, op_ifft as ifft, op_ifft2 as ifft2, op_ifftn as ifftn,
    op_ifftshift as ifftshift, op_ihfft as ihfft, op_irfft as irfft, op_irfftn as irfftn, op_istft as istft,
    op_rfft as rfft, op_rfftfreq as rfftfreq, op_rfftn as rfftn, op_stft as stft,
)
from multiop.frontends.sorting import (
    op_argpartition as argpartition, op_argsort as argsort, op_bincount as bincount, op_digitize as digitize,
    op_histogram as histogram, op_in_top_k as in_top_k, op_intersect1d as intersect1d, op_isin as isin,
    op_lexsort as lexsort, op_searchsorted as searchsorted, op_setdiff1d as setdiff1d, op_sort as sort,
    op_top_k as top_k, op_union1d as union1d, op_unique as unique,
)
from multiop.frontends.spacing import (
    op_geomspace as geomspace, op_logspace as logspace,
)
from multiop.frontends.special import (
    op_beta as beta, op_betainc as betainc, op_betaln as betaln, op_digamma as digamma, op_entr as entr, op_erf as erf,
    op_erfc as erfc, op_erfcinv as erfcinv, op_erfcx as erfcx, op_erfinv as erfinv, op_gamma as gamma,
    op_gammainc as gammainc, op_gammaincc as gammaincc, op_i0 as i0, op_iv as iv, op_ive as ive, op_jv as jv,
    op_kl_div as kl_div, op_kv as kv, op_kve as kve, op_lgamma as lgamma, op_log_ndtr as log_ndtr, op_logit as logit,
    op_multigammaln as multigammaln, op_ndtr as ndtr, op_ndtri as ndtri, op_polygamma as polygamma,
    op_rel_entr as rel_entr, op_xlog1py as xlog1py, op_xlogy as xlogy, op_yv as yv, op_zeta as zeta,
)
from multiop.frontends.statistics import (
    op_convolve as convolve, op_corrcoef as corrcoef, op_correlate as correlate, op_cov as cov, op_median as median,
    op_moments as moments, op_nanargmax as nanargmax, op_nanargmin as nanargmin, op_nancumprod as nancumprod,
    op_nancumsum as nancumsum, op_nanmax as nanmax, op_nanmean as nanmean, op_nanmedian as nanmedian,
    op_nanmin as nanmin, op_nanpercentile as nanpercentile, op_nanprod as nanprod, op_nanquantile as nanquantile,
    op_nanstd as nanstd, op_nansum as nansum, op_nanvar as nanvar, op_percentile as percentile, op_quantile as quantile,
    op_trapezoid as trapezoid,
)
from multiop.frontends.windows import (
    op_bartlett as bartlett, op_blackman as blackman, op_hamming as hamming, op_hanning as hanning, op_kaiser as kaiser,
)
from multiop.operation import (
    Operation as Operation,
)
from multiop.ops import (
    image as image, linalg as linalg, nn as nn, numpy as numpy,
)
from multiop.scopes import (
    name_scope as name_scope,
)

__all__ = [
    "Operation", "abs", "absolute", "adaptive_average_pool", "adaptive_max_pool", "add", "add_at", "all", "allclose",
    "amax", "amin", "angle", "any", "append", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "argmax", "argmin", "argpartition", "argsort", "array", "array_split", "associative_scan",
    "attach_gradient", "average", "average_pool", "bartlett", "batch_normalization", "batch_normalization_with_moments",
    "beta", "betainc", "betaln", "binary_crossentropy", "bincount", "bitwise_and", "bitwise_count", "bitwise_invert",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman", "block_diag",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "cast", "categorical_crossentropy", "cbrt", "cdist", "ceil",
    "celu", "cholesky", "cholesky_inverse", "clip", "column_stack", "concatenate", "cond", "conj", "conjugate", "conv",
    "conv_transpose", "convert_to_numpy", "convert_to_tensor", "convolve", "copy", "copysign", "corrcoef", "correlate",
    "cos", "cosh", "count_nonzero", "cov", "cross", "ctc_decode", "ctc_loss", "cumprod", "cumsum", "custom_gradient",
    "deg2rad", "depth_to_space", "depthwise_conv", "det", "diag", "diagflat", "diagonal", "diff", "digamma", "digitize",
    "divide", "divide_no_nan", "dot", "dot_product_attention", "dsplit", "dstack", "dtype", "eig", "eigh", "eigvals",
    "eigvalsh", "einsum", "elu", "empty", "empty_like", "entr", "equal", "erf", "erfc", "erfcinv", "erfcx", "erfinv",
    "exp", "exp2", "expand_dims", "expm", "expm1", "extract_sequences", "eye", "fabs", "fft", "fft2", "fftfreq", "fftn",
    "fftshift", "flip", "fliplr", "flipud", "floor", "floor_divide", "fmax", "fmin", "fmod", "fold", "fori_loop",
    "frexp", "full", "full_like", "gamma", "gammainc", "gammaincc", "gcd", "gelu", "geomspace", "get_item", "glu",
    "gradient", "greater", "greater_equal", "group_normalization", "hamming", "hanning", "hard_shrink", "hard_sigmoid",
    "hard_silu", "hard_swish", "hard_tanh", "heaviside", "hfft", "histogram", "hsplit", "hstack", "hypot", "i0",
    "identity", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "imag", "image", "image_affine_transform", "image_crop",
    "image_elastic_transform", "image_extract_patches", "image_extract_patches_3d", "image_gaussian_blur",
    "image_hsv_to_rgb", "image_map_coordinates", "image_pad", "image_perspective_transform",
    "image_reconstruct_patches", "image_resize", "image_rgb_to_grayscale", "image_rgb_to_hsv",
    "image_scale_and_translate", "image_sobel_edges", "image_ssim", "in_top_k", "inner", "interp", "intersect1d", "inv",
    "irfft", "irfftn", "is_tensor", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal",
    "istft", "iv", "ive", "jv", "jvp", "kaiser", "kl_div", "kron", "kv", "kve", "layer_normalization", "lcm", "ldexp",
    "leaky_relu", "left_shift", "less", "less_equal", "lexsort", "lgamma", "linalg", "linspace", "log", "log1p", "log2",
    "log10", "log_ndtr", "log_sigmoid", "log_softmax", "logaddexp", "logaddexp2", "logdet", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logit", "logm", "logspace", "logsumexp", "lstsq", "lu_factor", "map",
    "matmul", "matrix_power", "matrix_rank", "max", "max_pool", "maximum", "maximum_at", "mean", "median", "meshgrid",
    "min", "minimum", "minimum_at", "mod", "modf", "moments", "moveaxis", "multi_hot", "multigammaln", "multiply",
    "multiply_at", "name_scope", "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean",
    "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndim", "ndtr",
    "ndtri", "negative", "nextafter", "nn", "nonzero", "norm", "normalize", "not_equal", "numpy", "one_hot", "ones",
    "ones_like", "outer", "pad", "percentile", "pinv", "polar", "polar_decomposition", "poly", "polyfit", "polygamma",
    "polyval", "power", "prod", "psnr", "ptp", "qr", "quantile", "rad2deg", "ravel", "ravel_multi_index", "real",
    "rearrange", "reciprocal", "rel_entr", "relu", "relu6", "repeat", "reshape", "rfft", "rfftfreq", "rfftn",
    "right_shift", "rms_normalization", "roll", "roots", "rot90", "round", "rsqrt", "saturate_cast", "scan", "scatter",
    "scatter_update", "searchsorted", "segment_max", "segment_min", "segment_prod", "segment_sum", "select", "selu",
    "separable_conv", "set_diag", "set_item", "setdiff1d", "shape", "sigmoid", "sign", "signbit", "silu", "sin", "sinc",
    "sinh", "size", "slice", "slice_update", "slogdet", "soft_shrink", "softmax", "softplus", "softsign", "solve",
    "solve_sylvester", "solve_triangular", "sort", "space_to_depth", "sparse_categorical_crossentropy", "sparse_plus",
    "sparse_sigmoid", "sparsemax", "split", "sqrt", "sqrtm", "square", "squareplus", "squeeze", "stack", "std", "stft",
    "stop_gradient", "subset", "subtract", "sum", "svd", "svdvals", "swapaxes", "swish", "switch", "take",
    "take_along_axis", "tan", "tanh", "tanh_shrink", "tensordot", "threshold", "tile", "top_k", "trace", "transpose",
    "trapezoid", "tri", "tril", "tril_indices", "triu", "triu_indices", "true_divide", "trunc", "unfold", "union1d",
    "unique", "unravel_index", "unstack", "unwrap", "vander", "var", "vdot", "vectorize", "vectorized_map", "view",
    "view_as_complex", "view_as_real", "vsplit", "vstack", "where", "while_loop", "xlog1py", "xlogy", "yv", "zeros",
    "zeros_like", "zeta",
]

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
    bfloat16: _DType
    float16: _DType
    float32: _DType
    float64: _DType
    complex64: _DType
    complex128: _DType

if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name
    _PUBLIC[__name__] = __all__

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        if name in _DTYPES:
            return _dtype_object(name)

        raise missing(__name__, name, __all__)
