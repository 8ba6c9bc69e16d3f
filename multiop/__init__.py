# made by tools/op_list.py: run `nox -s generate`, do not edit
# ruff: noqa: I001
# fmt: off
"""Write an operation and its gradient once; run it on TensorFlow, PyTorch, JAX and NumPy.

    >>> import multiop
    >>> @multiop.op_custom_gradient
    ... def log1pexp(x):
    ...     e = multiop.op_exp(x)
    ...     return multiop.op_log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))
    >>> float(multiop.grad(log1pexp)(100.0))
    1.0

Where to look, with `help`:

- `multiop.op_max`, or `multiop.ops.max`: an op; `multiop.ops` has them all, with the names of `keras.ops`
- `multiop.op_custom_gradient`: a function with a gradient of its own
- `multiop.grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `hvp`, `vmap`, `jit`, `checkpoint`: JAX's transforms
- `multiop.sparse_jacobian`, `sparse_hessian`: derivatives most of whose entries are zero
- `multiop.GradientTape`, `multiop.gradients`: TensorFlow's way
- `multiop.random`: random numbers, the same on every backend
- `multiop.tree`: pytrees, and classes of your own that are some
- `multiop.testing.check_op`: the proof that a function is right on every backend
- `multiop.porting`: models and weights from one framework to another
- `multiop.set_backend`, `use_backend`: which framework computes; without them, the one that the program imported
- `multiop.namespace`: the ops of the framework that a tensor is of
"""

import typing as _typing

from multiop import (
    errors as errors, ops as ops, random as random, tree as tree,
)
from multiop._loading.suggestions import (
    PUBLIC as _PUBLIC,
)
from multiop._values.types import (
    ArrayLike as ArrayLike, DType as DType, PyTree as PyTree, Tensor as Tensor,
)
from multiop.autodiff.attach_gradient import (
    op_attach_gradient as op_attach_gradient,
)
from multiop.autodiff.checkpoint import (
    checkpoint as checkpoint,
)
from multiop.autodiff.custom_gradient import (
    op_custom_gradient as op_custom_gradient,
)
from multiop.autodiff.gradients import (
    AggregationMethod as AggregationMethod, gradients as gradients,
)
from multiop.autodiff.implicit import (
    linear_solve as linear_solve, root as root,
)
from multiop.autodiff.jit import (
    jit as jit,
)
from multiop.autodiff.sparse.derivatives import (
    SparseDerivative as SparseDerivative, sparse_hessian as sparse_hessian, sparse_jacobian as sparse_jacobian,
)
from multiop.autodiff.stop_gradient import (
    op_stop_gradient as op_stop_gradient,
)
from multiop.autodiff.tape import (
    GradientTape as GradientTape, UnconnectedGradients as UnconnectedGradients,
)
from multiop.autodiff.transforms import (
    grad as grad, hessian as hessian, hvp as hvp, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev, jvp as jvp,
    linearize as linearize, op_jvp as op_jvp, value_and_grad as value_and_grad, vjp as vjp,
)
from multiop.autodiff.vmap import (
    vmap as vmap,
)
from multiop.config import (
    available_backends as available_backends, backend as backend, enable_narrowing as enable_narrowing,
    enable_tensorflow_numpy as enable_tensorflow_numpy, enable_x64 as enable_x64, floatx as floatx,
    narrowing as narrowing, set_backend as set_backend, set_floatx as set_floatx, use_backend as use_backend,
    x64 as x64,
)
from multiop.devices import (
    device as device, to_device as to_device,
)
from multiop.dtypes import (
    dtype_name as dtype_name, finfo as finfo, iinfo as iinfo, native_dtype as native_dtype,
)
from multiop.frontends.activations import (
    op_celu as op_celu, op_elu as op_elu, op_gelu as op_gelu, op_glu as op_glu, op_hard_shrink as op_hard_shrink,
    op_hard_sigmoid as op_hard_sigmoid, op_hard_silu as op_hard_silu, op_hard_swish as op_hard_swish,
    op_hard_tanh as op_hard_tanh, op_leaky_relu as op_leaky_relu, op_log_sigmoid as op_log_sigmoid,
    op_log_softmax as op_log_softmax, op_relu as op_relu, op_relu6 as op_relu6, op_selu as op_selu,
    op_sigmoid as op_sigmoid, op_silu as op_silu, op_soft_shrink as op_soft_shrink, op_softmax as op_softmax,
    op_softplus as op_softplus, op_softsign as op_softsign, op_sparse_plus as op_sparse_plus,
    op_sparse_sigmoid as op_sparse_sigmoid, op_sparsemax as op_sparsemax, op_squareplus as op_squareplus,
    op_swish as op_swish, op_tanh_shrink as op_tanh_shrink, op_threshold as op_threshold,
)
from multiop.frontends.attention import (
    op_dot_product_attention as op_dot_product_attention,
)
from multiop.frontends.bitwise import (
    op_bitwise_and as op_bitwise_and, op_bitwise_count as op_bitwise_count, op_bitwise_invert as op_bitwise_invert,
    op_bitwise_left_shift as op_bitwise_left_shift, op_bitwise_not as op_bitwise_not, op_bitwise_or as op_bitwise_or,
    op_bitwise_right_shift as op_bitwise_right_shift, op_bitwise_xor as op_bitwise_xor, op_frexp as op_frexp,
    op_gcd as op_gcd, op_lcm as op_lcm, op_left_shift as op_left_shift, op_right_shift as op_right_shift,
)
from multiop.frontends.control_flow import (
    op_associative_scan as op_associative_scan, op_cond as op_cond, op_fori_loop as op_fori_loop, op_map as op_map,
    op_scan as op_scan, op_switch as op_switch, op_vectorize as op_vectorize, op_vectorized_map as op_vectorized_map,
    op_while_loop as op_while_loop,
)
from multiop.frontends.conversion import (
    op_array as op_array, op_cast as op_cast, op_convert_to_numpy as op_convert_to_numpy,
    op_convert_to_tensor as op_convert_to_tensor, op_dtype as op_dtype, op_is_tensor as op_is_tensor,
    op_saturate_cast as op_saturate_cast, op_shape as op_shape, op_view as op_view,
    op_view_as_complex as op_view_as_complex, op_view_as_real as op_view_as_real,
)
from multiop.frontends.convolution import (
    op_conv as op_conv, op_conv_transpose as op_conv_transpose, op_depthwise_conv as op_depthwise_conv,
    op_fold as op_fold, op_separable_conv as op_separable_conv, op_unfold as op_unfold,
)
from multiop.frontends.creation import (
    op_arange as op_arange, op_copy as op_copy, op_empty as op_empty, op_empty_like as op_empty_like, op_eye as op_eye,
    op_full as op_full, op_full_like as op_full_like, op_identity as op_identity, op_linspace as op_linspace,
    op_ones as op_ones, op_ones_like as op_ones_like, op_zeros as op_zeros, op_zeros_like as op_zeros_like,
)
from multiop.frontends.elementwise import (
    op_abs as op_abs, op_absolute as op_absolute, op_add as op_add, op_angle as op_angle, op_arccos as op_arccos,
    op_arccosh as op_arccosh, op_arcsin as op_arcsin, op_arcsinh as op_arcsinh, op_arctan as op_arctan,
    op_arctan2 as op_arctan2, op_arctanh as op_arctanh, op_cbrt as op_cbrt, op_ceil as op_ceil, op_clip as op_clip,
    op_conj as op_conj, op_conjugate as op_conjugate, op_copysign as op_copysign, op_cos as op_cos, op_cosh as op_cosh,
    op_deg2rad as op_deg2rad, op_divide as op_divide, op_divide_no_nan as op_divide_no_nan, op_exp as op_exp,
    op_exp2 as op_exp2, op_expm1 as op_expm1, op_fabs as op_fabs, op_floor as op_floor,
    op_floor_divide as op_floor_divide, op_fmax as op_fmax, op_fmin as op_fmin, op_fmod as op_fmod,
    op_heaviside as op_heaviside, op_hypot as op_hypot, op_imag as op_imag, op_ldexp as op_ldexp, op_log as op_log,
    op_log1p as op_log1p, op_log2 as op_log2, op_log10 as op_log10, op_logaddexp as op_logaddexp,
    op_logaddexp2 as op_logaddexp2, op_maximum as op_maximum, op_minimum as op_minimum, op_mod as op_mod,
    op_modf as op_modf, op_multiply as op_multiply, op_nan_to_num as op_nan_to_num, op_negative as op_negative,
    op_nextafter as op_nextafter, op_polar as op_polar, op_power as op_power, op_rad2deg as op_rad2deg,
    op_real as op_real, op_reciprocal as op_reciprocal, op_round as op_round, op_rsqrt as op_rsqrt, op_sign as op_sign,
    op_sin as op_sin, op_sinc as op_sinc, op_sinh as op_sinh, op_sqrt as op_sqrt, op_square as op_square,
    op_subtract as op_subtract, op_tan as op_tan, op_tanh as op_tanh, op_true_divide as op_true_divide,
    op_trunc as op_trunc,
)
from multiop.frontends.images import (
    op_image_affine_transform as op_image_affine_transform, op_image_crop as op_image_crop,
    op_image_elastic_transform as op_image_elastic_transform, op_image_extract_patches as op_image_extract_patches,
    op_image_extract_patches_3d as op_image_extract_patches_3d, op_image_gaussian_blur as op_image_gaussian_blur,
    op_image_hsv_to_rgb as op_image_hsv_to_rgb, op_image_map_coordinates as op_image_map_coordinates,
    op_image_pad as op_image_pad, op_image_perspective_transform as op_image_perspective_transform,
    op_image_reconstruct_patches as op_image_reconstruct_patches, op_image_resize as op_image_resize,
    op_image_rgb_to_grayscale as op_image_rgb_to_grayscale, op_image_rgb_to_hsv as op_image_rgb_to_hsv,
    op_image_scale_and_translate as op_image_scale_and_translate, op_image_sobel_edges as op_image_sobel_edges,
    op_image_ssim as op_image_ssim,
)
from multiop.frontends.indexing import (
    op_add_at as op_add_at, op_get_item as op_get_item, op_maximum_at as op_maximum_at, op_minimum_at as op_minimum_at,
    op_multi_hot as op_multi_hot, op_multiply_at as op_multiply_at, op_one_hot as op_one_hot,
    op_ravel_multi_index as op_ravel_multi_index, op_scatter as op_scatter, op_scatter_update as op_scatter_update,
    op_select as op_select, op_set_item as op_set_item, op_slice as op_slice, op_slice_update as op_slice_update,
    op_subset as op_subset, op_take as op_take, op_take_along_axis as op_take_along_axis,
    op_unravel_index as op_unravel_index,
)
from multiop.frontends.linalg import (
    op_cdist as op_cdist, op_cholesky as op_cholesky, op_cholesky_inverse as op_cholesky_inverse, op_det as op_det,
    op_eig as op_eig, op_eigh as op_eigh, op_eigvals as op_eigvals, op_eigvalsh as op_eigvalsh, op_expm as op_expm,
    op_inv as op_inv, op_logdet as op_logdet, op_logm as op_logm, op_lstsq as op_lstsq, op_lu_factor as op_lu_factor,
    op_matrix_power as op_matrix_power, op_matrix_rank as op_matrix_rank, op_norm as op_norm, op_pinv as op_pinv,
    op_polar_decomposition as op_polar_decomposition, op_qr as op_qr, op_slogdet as op_slogdet, op_solve as op_solve,
    op_solve_sylvester as op_solve_sylvester, op_solve_triangular as op_solve_triangular, op_sqrtm as op_sqrtm,
    op_svd as op_svd, op_svdvals as op_svdvals,
)
from multiop.frontends.logical import (
    op_allclose as op_allclose, op_equal as op_equal, op_greater as op_greater, op_greater_equal as op_greater_equal,
    op_isclose as op_isclose, op_isfinite as op_isfinite, op_isinf as op_isinf, op_isnan as op_isnan,
    op_isneginf as op_isneginf, op_isposinf as op_isposinf, op_isreal as op_isreal, op_less as op_less,
    op_less_equal as op_less_equal, op_logical_and as op_logical_and, op_logical_not as op_logical_not,
    op_logical_or as op_logical_or, op_logical_xor as op_logical_xor, op_nonzero as op_nonzero,
    op_not_equal as op_not_equal, op_signbit as op_signbit, op_where as op_where,
)
from multiop.frontends.losses import (
    op_binary_crossentropy as op_binary_crossentropy, op_categorical_crossentropy as op_categorical_crossentropy,
    op_ctc_decode as op_ctc_decode, op_ctc_loss as op_ctc_loss, op_psnr as op_psnr,
    op_sparse_categorical_crossentropy as op_sparse_categorical_crossentropy,
)
from multiop.frontends.normalization import (
    op_batch_normalization as op_batch_normalization,
    op_batch_normalization_with_moments as op_batch_normalization_with_moments,
    op_group_normalization as op_group_normalization, op_layer_normalization as op_layer_normalization,
    op_normalize as op_normalize, op_rms_normalization as op_rms_normalization,
)
from multiop.frontends.polynomials import (
    op_poly as op_poly, op_polyfit as op_polyfit, op_polyval as op_polyval, op_roots as op_roots,
)
from multiop.frontends.pooling import (
    op_adaptive_average_pool as op_adaptive_average_pool, op_adaptive_max_pool as op_adaptive_max_pool,
    op_average_pool as op_average_pool, op_depth_to_space as op_depth_to_space, op_max_pool as op_max_pool,
    op_space_to_depth as op_space_to_depth,
)
from multiop.frontends.products import (
    op_cross as op_cross, op_dot as op_dot, op_einsum as op_einsum, op_inner as op_inner, op_kron as op_kron,
    op_matmul as op_matmul, op_outer as op_outer, op_tensordot as op_tensordot, op_trace as op_trace,
    op_vander as op_vander, op_vdot as op_vdot,
)
from multiop.frontends.rearrange import (
    op_rearrange as op_rearrange,
)
from multiop.frontends.reduction import (
    op_all as op_all, op_amax as op_amax, op_amin as op_amin, op_any as op_any, op_argmax as op_argmax,
    op_argmin as op_argmin, op_average as op_average, op_count_nonzero as op_count_nonzero, op_cumprod as op_cumprod,
    op_cumsum as op_cumsum, op_diff as op_diff, op_logsumexp as op_logsumexp, op_max as op_max, op_mean as op_mean,
    op_min as op_min, op_prod as op_prod, op_ptp as op_ptp, op_std as op_std, op_sum as op_sum, op_var as op_var,
)
from multiop.frontends.samples import (
    op_gradient as op_gradient, op_interp as op_interp, op_unwrap as op_unwrap,
)
from multiop.frontends.segment import (
    op_segment_max as op_segment_max, op_segment_min as op_segment_min, op_segment_prod as op_segment_prod,
    op_segment_sum as op_segment_sum,
)
from multiop.frontends.shapes import (
    op_append as op_append, op_array_split as op_array_split, op_block_diag as op_block_diag,
    op_broadcast_arrays as op_broadcast_arrays, op_broadcast_shapes as op_broadcast_shapes,
    op_broadcast_to as op_broadcast_to, op_column_stack as op_column_stack, op_concatenate as op_concatenate,
    op_diag as op_diag, op_diagflat as op_diagflat, op_diagonal as op_diagonal, op_dsplit as op_dsplit,
    op_dstack as op_dstack, op_expand_dims as op_expand_dims, op_flip as op_flip, op_fliplr as op_fliplr,
    op_flipud as op_flipud, op_hsplit as op_hsplit, op_hstack as op_hstack, op_meshgrid as op_meshgrid,
    op_moveaxis as op_moveaxis, op_ndim as op_ndim, op_pad as op_pad, op_ravel as op_ravel, op_repeat as op_repeat,
    op_reshape as op_reshape, op_roll as op_roll, op_rot90 as op_rot90, op_set_diag as op_set_diag, op_size as op_size,
    op_split as op_split, op_squeeze as op_squeeze, op_stack as op_stack, op_swapaxes as op_swapaxes,
    op_tile as op_tile, op_transpose as op_transpose, op_tri as op_tri, op_tril as op_tril,
    op_tril_indices as op_tril_indices, op_triu as op_triu, op_triu_indices as op_triu_indices,
    op_unstack as op_unstack, op_vsplit as op_vsplit, op_vstack as op_vstack,
)
from multiop.frontends.signal import (
    op_extract_sequences as op_extract_sequences, op_fft as op_fft, op_fft2 as op_fft2, op_fftfreq as op_fftfreq,
    op_fftn as op_fftn, op_fftshift as op_fftshift, op_hfft as op_hfft, op_ifft as op_ifft, op_ifft2 as op_ifft2,
    op_ifftn as op_ifftn, op_ifftshift as op_ifftshift, op_ihfft as op_ihfft, op_irfft as op_irfft,
    op_irfftn as op_irfftn, op_istft as op_istft, op_rfft as op_rfft, op_rfftfreq as op_rfftfreq, op_rfftn as op_rfftn,
    op_stft as op_stft,
)
from multiop.frontends.sorting import (
    op_argpartition as op_argpartition, op_argsort as op_argsort, op_bincount as op_bincount,
    op_digitize as op_digitize, op_histogram as op_histogram, op_in_top_k as op_in_top_k,
    op_intersect1d as op_intersect1d, op_isin as op_isin, op_lexsort as op_lexsort, op_searchsorted as op_searchsorted,
    op_setdiff1d as op_setdiff1d, op_sort as op_sort, op_top_k as op_top_k, op_union1d as op_union1d,
    op_unique as op_unique,
)
from multiop.frontends.spacing import (
    op_geomspace as op_geomspace, op_logspace as op_logspace,
)
from multiop.frontends.special import (
    op_beta as op_beta, op_betainc as op_betainc, op_betaln as op_betaln, op_digamma as op_digamma, op_entr as op_entr,
    op_erf as op_erf, op_erfc as op_erfc, op_erfcinv as op_erfcinv, op_erfcx as op_erfcx, op_erfinv as op_erfinv,
    op_gamma as op_gamma, op_gammainc as op_gammainc, op_gammaincc as op_gammaincc, op_i0 as op_i0, op_iv as op_iv,
    op_ive as op_ive, op_jv as op_jv, op_kl_div as op_kl_div, op_kv as op_kv, op_kve as op_kve, op_lgamma as op_lgamma,
    op_log_ndtr as op_log_ndtr, op_logit as op_logit, op_multigammaln as op_multigammaln, op_ndtr as op_ndtr,
    op_ndtri as op_ndtri, op_polygamma as op_polygamma, op_rel_entr as op_rel_entr, op_xlog1py as op_xlog1py,
    op_xlogy as op_xlogy, op_yv as op_yv, op_zeta as op_zeta,
)
from multiop.frontends.statistics import (
    op_convolve as op_convolve, op_corrcoef as op_corrcoef, op_correlate as op_correlate, op_cov as op_cov,
    op_median as op_median, op_moments as op_moments, op_nanargmax as op_nanargmax, op_nanargmin as op_nanargmin,
    op_nancumprod as op_nancumprod, op_nancumsum as op_nancumsum, op_nanmax as op_nanmax, op_nanmean as op_nanmean,
    op_nanmedian as op_nanmedian, op_nanmin as op_nanmin, op_nanpercentile as op_nanpercentile,
    op_nanprod as op_nanprod, op_nanquantile as op_nanquantile, op_nanstd as op_nanstd, op_nansum as op_nansum,
    op_nanvar as op_nanvar, op_percentile as op_percentile, op_quantile as op_quantile, op_trapezoid as op_trapezoid,
)
from multiop.frontends.windows import (
    op_bartlett as op_bartlett, op_blackman as op_blackman, op_hamming as op_hamming, op_hanning as op_hanning,
    op_kaiser as op_kaiser,
)
from multiop.namespaces import (
    namespace as namespace,
)
from multiop.operation import (
    Operation as Operation,
)
from multiop.scopes import (
    name_scope as name_scope,
)

__version__ = "0.1.0"

__all__ = [
    "AggregationMethod", "ArrayLike", "DType", "GradientTape", "Operation", "PyTree", "SparseDerivative", "Tensor",
    "UnconnectedGradients", "available_backends", "backend", "checkpoint", "device", "dtype_name", "enable_narrowing",
    "enable_tensorflow_numpy", "enable_x64", "errors", "finfo", "floatx", "grad", "gradients", "hessian", "hvp",
    "iinfo", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "linear_solve", "linearize", "name_scope", "namespace",
    "narrowing", "native_dtype", "op_abs", "op_absolute", "op_adaptive_average_pool", "op_adaptive_max_pool", "op_add",
    "op_add_at", "op_all", "op_allclose", "op_amax", "op_amin", "op_angle", "op_any", "op_append", "op_arange",
    "op_arccos", "op_arccosh", "op_arcsin", "op_arcsinh", "op_arctan", "op_arctan2", "op_arctanh", "op_argmax",
    "op_argmin", "op_argpartition", "op_argsort", "op_array", "op_array_split", "op_associative_scan",
    "op_attach_gradient", "op_average", "op_average_pool", "op_bartlett", "op_batch_normalization",
    "op_batch_normalization_with_moments", "op_beta", "op_betainc", "op_betaln", "op_binary_crossentropy",
    "op_bincount", "op_bitwise_and", "op_bitwise_count", "op_bitwise_invert", "op_bitwise_left_shift", "op_bitwise_not",
    "op_bitwise_or", "op_bitwise_right_shift", "op_bitwise_xor", "op_blackman", "op_block_diag", "op_broadcast_arrays",
    "op_broadcast_shapes", "op_broadcast_to", "op_cast", "op_categorical_crossentropy", "op_cbrt", "op_cdist",
    "op_ceil", "op_celu", "op_cholesky", "op_cholesky_inverse", "op_clip", "op_column_stack", "op_concatenate",
    "op_cond", "op_conj", "op_conjugate", "op_conv", "op_conv_transpose", "op_convert_to_numpy", "op_convert_to_tensor",
    "op_convolve", "op_copy", "op_copysign", "op_corrcoef", "op_correlate", "op_cos", "op_cosh", "op_count_nonzero",
    "op_cov", "op_cross", "op_ctc_decode", "op_ctc_loss", "op_cumprod", "op_cumsum", "op_custom_gradient", "op_deg2rad",
    "op_depth_to_space", "op_depthwise_conv", "op_det", "op_diag", "op_diagflat", "op_diagonal", "op_diff",
    "op_digamma", "op_digitize", "op_divide", "op_divide_no_nan", "op_dot", "op_dot_product_attention", "op_dsplit",
    "op_dstack", "op_dtype", "op_eig", "op_eigh", "op_eigvals", "op_eigvalsh", "op_einsum", "op_elu", "op_empty",
    "op_empty_like", "op_entr", "op_equal", "op_erf", "op_erfc", "op_erfcinv", "op_erfcx", "op_erfinv", "op_exp",
    "op_exp2", "op_expand_dims", "op_expm", "op_expm1", "op_extract_sequences", "op_eye", "op_fabs", "op_fft",
    "op_fft2", "op_fftfreq", "op_fftn", "op_fftshift", "op_flip", "op_fliplr", "op_flipud", "op_floor",
    "op_floor_divide", "op_fmax", "op_fmin", "op_fmod", "op_fold", "op_fori_loop", "op_frexp", "op_full",
    "op_full_like", "op_gamma", "op_gammainc", "op_gammaincc", "op_gcd", "op_gelu", "op_geomspace", "op_get_item",
    "op_glu", "op_gradient", "op_greater", "op_greater_equal", "op_group_normalization", "op_hamming", "op_hanning",
    "op_hard_shrink", "op_hard_sigmoid", "op_hard_silu", "op_hard_swish", "op_hard_tanh", "op_heaviside", "op_hfft",
    "op_histogram", "op_hsplit", "op_hstack", "op_hypot", "op_i0", "op_identity", "op_ifft", "op_ifft2", "op_ifftn",
    "op_ifftshift", "op_ihfft", "op_imag", "op_image_affine_transform", "op_image_crop", "op_image_elastic_transform",
    "op_image_extract_patches", "op_image_extract_patches_3d", "op_image_gaussian_blur", "op_image_hsv_to_rgb",
    "op_image_map_coordinates", "op_image_pad", "op_image_perspective_transform", "op_image_reconstruct_patches",
    "op_image_resize", "op_image_rgb_to_grayscale", "op_image_rgb_to_hsv", "op_image_scale_and_translate",
    "op_image_sobel_edges", "op_image_ssim", "op_in_top_k", "op_inner", "op_interp", "op_intersect1d", "op_inv",
    "op_irfft", "op_irfftn", "op_is_tensor", "op_isclose", "op_isfinite", "op_isin", "op_isinf", "op_isnan",
    "op_isneginf", "op_isposinf", "op_isreal", "op_istft", "op_iv", "op_ive", "op_jv", "op_jvp", "op_kaiser",
    "op_kl_div", "op_kron", "op_kv", "op_kve", "op_layer_normalization", "op_lcm", "op_ldexp", "op_leaky_relu",
    "op_left_shift", "op_less", "op_less_equal", "op_lexsort", "op_lgamma", "op_linspace", "op_log", "op_log1p",
    "op_log2", "op_log10", "op_log_ndtr", "op_log_sigmoid", "op_log_softmax", "op_logaddexp", "op_logaddexp2",
    "op_logdet", "op_logical_and", "op_logical_not", "op_logical_or", "op_logical_xor", "op_logit", "op_logm",
    "op_logspace", "op_logsumexp", "op_lstsq", "op_lu_factor", "op_map", "op_matmul", "op_matrix_power",
    "op_matrix_rank", "op_max", "op_max_pool", "op_maximum", "op_maximum_at", "op_mean", "op_median", "op_meshgrid",
    "op_min", "op_minimum", "op_minimum_at", "op_mod", "op_modf", "op_moments", "op_moveaxis", "op_multi_hot",
    "op_multigammaln", "op_multiply", "op_multiply_at", "op_nan_to_num", "op_nanargmax", "op_nanargmin",
    "op_nancumprod", "op_nancumsum", "op_nanmax", "op_nanmean", "op_nanmedian", "op_nanmin", "op_nanpercentile",
    "op_nanprod", "op_nanquantile", "op_nanstd", "op_nansum", "op_nanvar", "op_ndim", "op_ndtr", "op_ndtri",
    "op_negative", "op_nextafter", "op_nonzero", "op_norm", "op_normalize", "op_not_equal", "op_one_hot", "op_ones",
    "op_ones_like", "op_outer", "op_pad", "op_percentile", "op_pinv", "op_polar", "op_polar_decomposition", "op_poly",
    "op_polyfit", "op_polygamma", "op_polyval", "op_power", "op_prod", "op_psnr", "op_ptp", "op_qr", "op_quantile",
    "op_rad2deg", "op_ravel", "op_ravel_multi_index", "op_real", "op_rearrange", "op_reciprocal", "op_rel_entr",
    "op_relu", "op_relu6", "op_repeat", "op_reshape", "op_rfft", "op_rfftfreq", "op_rfftn", "op_right_shift",
    "op_rms_normalization", "op_roll", "op_roots", "op_rot90", "op_round", "op_rsqrt", "op_saturate_cast", "op_scan",
    "op_scatter", "op_scatter_update", "op_searchsorted", "op_segment_max", "op_segment_min", "op_segment_prod",
    "op_segment_sum", "op_select", "op_selu", "op_separable_conv", "op_set_diag", "op_set_item", "op_setdiff1d",
    "op_shape", "op_sigmoid", "op_sign", "op_signbit", "op_silu", "op_sin", "op_sinc", "op_sinh", "op_size", "op_slice",
    "op_slice_update", "op_slogdet", "op_soft_shrink", "op_softmax", "op_softplus", "op_softsign", "op_solve",
    "op_solve_sylvester", "op_solve_triangular", "op_sort", "op_space_to_depth", "op_sparse_categorical_crossentropy",
    "op_sparse_plus", "op_sparse_sigmoid", "op_sparsemax", "op_split", "op_sqrt", "op_sqrtm", "op_square",
    "op_squareplus", "op_squeeze", "op_stack", "op_std", "op_stft", "op_stop_gradient", "op_subset", "op_subtract",
    "op_sum", "op_svd", "op_svdvals", "op_swapaxes", "op_swish", "op_switch", "op_take", "op_take_along_axis", "op_tan",
    "op_tanh", "op_tanh_shrink", "op_tensordot", "op_threshold", "op_tile", "op_top_k", "op_trace", "op_transpose",
    "op_trapezoid", "op_tri", "op_tril", "op_tril_indices", "op_triu", "op_triu_indices", "op_true_divide", "op_trunc",
    "op_unfold", "op_union1d", "op_unique", "op_unravel_index", "op_unstack", "op_unwrap", "op_vander", "op_var",
    "op_vdot", "op_vectorize", "op_vectorized_map", "op_view", "op_view_as_complex", "op_view_as_real", "op_vsplit",
    "op_vstack", "op_where", "op_while_loop", "op_xlog1py", "op_xlogy", "op_yv", "op_zeros", "op_zeros_like", "op_zeta",
    "ops", "random", "root", "set_backend", "set_floatx", "sparse_hessian", "sparse_jacobian", "to_device", "tree",
    "use_backend", "value_and_grad", "vjp", "vmap", "x64",
]

if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name
    _PUBLIC[__name__] = __all__

    def __dir__() -> list[str]:
        return [*__all__, "__version__"]

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        if name == "array_api":
            import multiop.array_api

            return multiop.array_api

        raise missing(__name__, name, __all__)
