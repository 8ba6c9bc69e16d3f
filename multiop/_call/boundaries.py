# made by tools/op_list.py: run `nox -s generate`, do not edit
# ruff: noqa
# fmt: off
# mypy: ignore-errors
"""The functions through which ops are called: what fails within one is recovered, or explained, see `_call/recover`."""

from multiop import config
from multiop._call.frames import shorten
from multiop._call.recover import recover
from multiop._loading import registry
from multiop._values import args, dtypes, windows
from multiop._values.args import bool_flag
from multiop.errors import MultiopError

active = registry.active

COMPOSITES = frozenset(
    """
    op_sparse_plus op_sparse_sigmoid op_squareplus op_sparsemax op_hard_tanh op_hard_swish op_swish op_bitwise_not
    op_bitwise_left_shift op_bitwise_right_shift op_bitwise_count op_frexp op_view_as_real op_saturate_cast op_array
    op_depthwise_conv op_separable_conv op_empty op_empty_like op_identity op_true_divide op_absolute op_conjugate
    op_fabs op_deg2rad op_rad2deg op_angle op_fmax op_fmin op_copysign op_modf op_sinc op_image_rgb_to_grayscale
    op_image_rgb_to_hsv op_image_hsv_to_rgb op_image_crop op_image_pad op_image_resize op_image_affine_transform
    op_image_perspective_transform op_image_map_coordinates op_image_extract_patches op_image_extract_patches_3d
    op_image_reconstruct_patches op_image_gaussian_blur op_image_sobel_edges op_image_ssim op_image_elastic_transform
    op_image_scale_and_translate op_scatter op_ravel_multi_index op_set_item op_add_at op_multiply_at op_maximum_at
    op_minimum_at op_subset op_multi_hot op_eigvalsh op_eigvals op_svdvals op_logdet op_cholesky_inverse op_lstsq
    op_matrix_power op_matrix_rank op_norm op_cdist op_solve_sylvester op_polar_decomposition op_sqrtm op_logm
    op_allclose op_psnr op_batch_normalization_with_moments op_group_normalization op_polyval op_poly op_roots
    op_polyfit op_depth_to_space op_space_to_depth op_trace op_dot op_inner op_outer op_vdot op_kron op_cross
    op_vander op_rearrange op_amax op_amin op_count_nonzero op_ptp op_average op_diff op_interp op_gradient op_unwrap
    op_ravel op_ndim op_size op_hstack op_vstack op_dstack op_column_stack op_append op_array_split op_hsplit
    op_vsplit op_dsplit op_fliplr op_flipud op_rot90 op_broadcast_arrays op_broadcast_shapes op_meshgrid op_diag
    op_diagflat op_tri op_tril op_triu op_set_diag op_tril_indices op_triu_indices op_block_diag op_fft op_ifft
    op_fft2 op_ifft2 op_rfft op_irfft op_stft op_istft op_hfft op_ihfft op_fftfreq op_rfftfreq op_fftshift
    op_ifftshift op_in_top_k op_argpartition op_unique op_lexsort op_isin op_histogram op_setdiff1d op_union1d
    op_intersect1d op_logspace op_geomspace op_lgamma op_digamma op_polygamma op_gammainc op_gammaincc op_betainc
    op_gamma op_betaln op_beta op_xlogy op_xlog1py op_erfcx op_erfcinv op_ndtr op_log_ndtr op_ndtri op_logit op_entr
    op_rel_entr op_kl_div op_multigammaln op_zeta op_jv op_yv op_iv op_ive op_kv op_kve op_convolve op_nansum
    op_nanprod op_nancumsum op_nancumprod op_nanmean op_nanvar op_nanstd op_nanmax op_nanmin op_nanargmax op_nanargmin
    op_quantile op_percentile op_median op_nanquantile op_nanpercentile op_nanmedian op_moments op_corrcoef op_cov
    op_trapezoid op_bartlett op_hanning op_hamming op_blackman
    """.split()
)
GUARDED = {"op_softmax", "op_log_softmax", "op_convert_to_tensor", "op_where", "op_sum"}

def op_attach_gradient(op):
 def op_attach_gradient(fx, gx, x, axis, fx_gx_manually_stopped, name):
  try:
   if fx_gx_manually_stopped is not False and fx_gx_manually_stopped is not True: fx_gx_manually_stopped = bool_flag(fx_gx_manually_stopped, "fx_gx_manually_stopped")
   return op(fx, gx, x, axis, fx_gx_manually_stopped, name)
  except Exception as error: return recover(error, op, {"fx": fx, "gx": gx, "x": x, "axis": axis, "fx_gx_manually_stopped": fx_gx_manually_stopped, "name": name})
 return op_attach_gradient, 1

def op_stop_gradient(op):
 def op_stop_gradient(variable):
  try: return op(variable)
  except Exception as error: return recover(error, op, {"variable": variable})
 return op_stop_gradient, 1

def device(op):
 def device(x):
  try: return (active() if registry.is_overridden else registry._backend).device(x)
  except Exception as error: return recover(error, op, {"x": x})
 return device, 1

def to_device(op):
 def to_device(x, device):
  try: return (active() if registry.is_overridden else registry._backend).to_device(x, device)
  except Exception as error: return recover(error, op, {"x": x, "device": device})
 return to_device, 1

def finfo(op):
 def finfo(dtype):
  try: return op(dtype)
  except Exception as error: return recover(error, op, {"dtype": dtype})
 return finfo, 1

def iinfo(op):
 def iinfo(dtype):
  try: return op(dtype)
  except Exception as error: return recover(error, op, {"dtype": dtype})
 return iinfo, 1

def dtype_name(op):
 def dtype_name(dtype):
  try: return op(dtype)
  except Exception as error: return recover(error, op, {"dtype": dtype})
 return dtype_name, 1

def native_dtype(op):
 def native_dtype(dtype):
  try: return op(dtype)
  except Exception as error: return recover(error, op, {"dtype": dtype})
 return native_dtype, 1

def op_relu(op):
 def op_relu(x):
  try: return (active() if registry.is_overridden else registry._backend).op_relu(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_relu, 1

def op_sigmoid(op):
 def op_sigmoid(x):
  try: return (active() if registry.is_overridden else registry._backend).op_sigmoid(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_sigmoid, 1

def op_softplus(op):
 def op_softplus(x):
  try: return (active() if registry.is_overridden else registry._backend).op_softplus(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_softplus, 1

def op_softmax(op):
 def op_softmax(x, axis):
  try:
   if axis is None or isinstance(axis, (tuple, list)): return op(x, axis)
   return (active() if registry.is_overridden else registry._backend).op_softmax(x, axis)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis})
 return op_softmax, 1

def op_log_softmax(op):
 def op_log_softmax(x, axis):
  try:
   if axis is None or isinstance(axis, (tuple, list)): return op(x, axis)
   return (active() if registry.is_overridden else registry._backend).op_log_softmax(x, axis)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis})
 return op_log_softmax, 1

def op_relu6(op):
 def op_relu6(x):
  try: return (active() if registry.is_overridden else registry._backend).op_relu6(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_relu6, 1

def op_leaky_relu(op):
 def op_leaky_relu(x, negative_slope):
  try: return (active() if registry.is_overridden else registry._backend).op_leaky_relu(x, args.number(negative_slope, 'negative_slope'))
  except Exception as error: return recover(error, op, {"x": x, "negative_slope": negative_slope})
 return op_leaky_relu, 1

def op_elu(op):
 def op_elu(x, alpha):
  try: return (active() if registry.is_overridden else registry._backend).op_elu(x, args.number(alpha, 'alpha'))
  except Exception as error: return recover(error, op, {"x": x, "alpha": alpha})
 return op_elu, 1

def op_celu(op):
 def op_celu(x, alpha):
  try: return op(x, alpha)
  except Exception as error: return recover(error, op, {"x": x, "alpha": alpha})
 return op_celu, 1

def op_selu(op):
 def op_selu(x):
  try: return (active() if registry.is_overridden else registry._backend).op_selu(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_selu, 1

def op_silu(op):
 def op_silu(x):
  try: return (active() if registry.is_overridden else registry._backend).op_silu(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_silu, 1

def op_gelu(op):
 def op_gelu(x, approximate):
  try:
   if approximate is not False and approximate is not True: approximate = bool_flag(approximate, "approximate")
   return (active() if registry.is_overridden else registry._backend).op_gelu(x, approximate)
  except Exception as error: return recover(error, op, {"x": x, "approximate": approximate})
 return op_gelu, 1

def op_glu(op):
 def op_glu(x, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_glu(x, axis)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis})
 return op_glu, 1

def op_log_sigmoid(op):
 def op_log_sigmoid(x):
  try: return (active() if registry.is_overridden else registry._backend).op_log_sigmoid(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_log_sigmoid, 1

def op_softsign(op):
 def op_softsign(x):
  try: return (active() if registry.is_overridden else registry._backend).op_softsign(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_softsign, 1

def op_soft_shrink(op):
 def op_soft_shrink(x, threshold):
  try: return (active() if registry.is_overridden else registry._backend).op_soft_shrink(x, args.not_negative(threshold, 'threshold'))
  except Exception as error: return recover(error, op, {"x": x, "threshold": threshold})
 return op_soft_shrink, 1

def op_hard_shrink(op):
 def op_hard_shrink(x, threshold):
  try: return op(x, threshold)
  except Exception as error: return recover(error, op, {"x": x, "threshold": threshold})
 return op_hard_shrink, 1

def op_tanh_shrink(op):
 def op_tanh_shrink(x):
  try: return (active() if registry.is_overridden else registry._backend).op_tanh_shrink(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_tanh_shrink, 1

def op_threshold(op):
 def op_threshold(x, threshold, default_value):
  try: return (active() if registry.is_overridden else registry._backend).op_threshold(x, args.number(threshold, 'threshold'), args.number(default_value, 'default_value'))
  except Exception as error: return recover(error, op, {"x": x, "threshold": threshold, "default_value": default_value})
 return op_threshold, 1

def op_hard_sigmoid(op):
 def op_hard_sigmoid(x):
  try: return (active() if registry.is_overridden else registry._backend).op_hard_sigmoid(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_hard_sigmoid, 1

def op_hard_silu(op):
 def op_hard_silu(x):
  try: return (active() if registry.is_overridden else registry._backend).op_hard_silu(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_hard_silu, 1

def op_sparse_plus(op):
 def op_sparse_plus(x):
  try: return (active() if registry.is_overridden else registry._backend).op_sparse_plus(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_sparse_plus, 3

def op_sparse_sigmoid(op):
 def op_sparse_sigmoid(x):
  try: return (active() if registry.is_overridden else registry._backend).op_sparse_sigmoid(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_sparse_sigmoid, 3

def op_squareplus(op):
 def op_squareplus(x, b):
  try: return (active() if registry.is_overridden else registry._backend).op_squareplus(x, b)
  except Exception as error: return recover(error, op, {"x": x, "b": b})
 return op_squareplus, 3

def op_sparsemax(op):
 def op_sparsemax(x, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_sparsemax(x, axis)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis})
 return op_sparsemax, 2

def op_hard_tanh(op):
 def op_hard_tanh(x):
  try: return (active() if registry.is_overridden else registry._backend).op_hard_tanh(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_hard_tanh, 1

def op_hard_swish(op):
 def op_hard_swish(x):
  try: return (active() if registry.is_overridden else registry._backend).op_hard_swish(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_hard_swish, 1

def op_swish(op):
 def op_swish(x):
  try: return (active() if registry.is_overridden else registry._backend).op_swish(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_swish, 1

def op_dot_product_attention(op):
 def op_dot_product_attention(query, key, value, bias, mask, scale, is_causal, flash_attention, attn_logits_soft_cap):
  try:
   if is_causal is not False and is_causal is not True: is_causal = bool_flag(is_causal, "is_causal")
   return op(query, key, value, bias, mask, scale, is_causal, flash_attention, attn_logits_soft_cap)
  except Exception as error: return recover(error, op, {"query": query, "key": key, "value": value, "bias": bias, "mask": mask, "scale": scale, "is_causal": is_causal, "flash_attention": flash_attention, "attn_logits_soft_cap": attn_logits_soft_cap})
 return op_dot_product_attention, 1

def op_bitwise_and(op):
 def op_bitwise_and(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_bitwise_and(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_bitwise_and, 1

def op_bitwise_or(op):
 def op_bitwise_or(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_bitwise_or(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_bitwise_or, 1

def op_bitwise_xor(op):
 def op_bitwise_xor(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_bitwise_xor(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_bitwise_xor, 1

def op_bitwise_invert(op):
 def op_bitwise_invert(x):
  try: return (active() if registry.is_overridden else registry._backend).op_bitwise_invert(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_bitwise_invert, 1

def op_left_shift(op):
 def op_left_shift(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_left_shift(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_left_shift, 1

def op_right_shift(op):
 def op_right_shift(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_right_shift(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_right_shift, 1

def op_gcd(op):
 def op_gcd(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_gcd(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_gcd, 1

def op_lcm(op):
 def op_lcm(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_lcm(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_lcm, 1

def op_bitwise_not(op):
 def op_bitwise_not(x):
  try: return (active() if registry.is_overridden else registry._backend).op_bitwise_not(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_bitwise_not, 1

def op_bitwise_left_shift(op):
 def op_bitwise_left_shift(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_bitwise_left_shift(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_bitwise_left_shift, 1

def op_bitwise_right_shift(op):
 def op_bitwise_right_shift(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_bitwise_right_shift(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_bitwise_right_shift, 1

def op_bitwise_count(op):
 def op_bitwise_count(x):
  try: return (active() if registry.is_overridden else registry._backend).op_bitwise_count(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_bitwise_count, 1

def op_frexp(op):
 def op_frexp(x):
  try: return (active() if registry.is_overridden else registry._backend).op_frexp(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_frexp, 1

def op_cond(op):
 def op_cond(pred, true_fn, false_fn, *operands):
  try: return op(pred, true_fn, false_fn, *operands)
  except MultiopError as error: return recover(error, op, {"pred": pred, "true_fn": true_fn, "false_fn": false_fn, "operands": operands}, True)
  except Exception as error: shorten(error); raise
 return op_cond, 1

def op_switch(op):
 def op_switch(index, branches, *operands):
  try: return op(index, branches, *operands)
  except MultiopError as error: return recover(error, op, {"index": index, "branches": branches, "operands": operands}, True)
  except Exception as error: shorten(error); raise
 return op_switch, 1

def op_while_loop(op):
 def op_while_loop(cond, body, loop_vars, maximum_iterations):
  try: return op(cond, body, loop_vars, maximum_iterations)
  except MultiopError as error: return recover(error, op, {"cond": cond, "body": body, "loop_vars": loop_vars, "maximum_iterations": maximum_iterations}, True)
  except Exception as error: shorten(error); raise
 return op_while_loop, 1

def op_fori_loop(op):
 def op_fori_loop(lower, upper, body_fun, init_val):
  try: return op(lower, upper, body_fun, init_val)
  except MultiopError as error: return recover(error, op, {"lower": lower, "upper": upper, "body_fun": body_fun, "init_val": init_val}, True)
  except Exception as error: shorten(error); raise
 return op_fori_loop, 1

def op_scan(op):
 def op_scan(f, init, xs, length, reverse, unroll):
  try:
   if reverse is not False and reverse is not True: reverse = bool_flag(reverse, "reverse")
   return op(f, init, xs, length, reverse, unroll)
  except MultiopError as error: return recover(error, op, {"f": f, "init": init, "xs": xs, "length": length, "reverse": reverse, "unroll": unroll}, True)
  except Exception as error: shorten(error); raise
 return op_scan, 1

def op_associative_scan(op):
 def op_associative_scan(f, elems, reverse, axis):
  try:
   if reverse is not False and reverse is not True: reverse = bool_flag(reverse, "reverse")
   return op(f, elems, reverse, axis)
  except MultiopError as error: return recover(error, op, {"f": f, "elems": elems, "reverse": reverse, "axis": axis}, True)
  except Exception as error: shorten(error); raise
 return op_associative_scan, 1

def op_map(op):
 def op_map(f, xs):
  try: return op(f, xs)
  except MultiopError as error: return recover(error, op, {"f": f, "xs": xs}, True)
  except Exception as error: shorten(error); raise
 return op_map, 1

def op_vectorized_map(op):
 def op_vectorized_map(function, elements):
  try: return op(function, elements)
  except MultiopError as error: return recover(error, op, {"function": function, "elements": elements}, True)
  except Exception as error: shorten(error); raise
 return op_vectorized_map, 1

def op_vectorize(op):
 def op_vectorize(pyfunc, *, excluded, signature):
  try: return op(pyfunc, excluded=excluded, signature=signature)
  except MultiopError as error: return recover(error, op, {"pyfunc": pyfunc, "excluded": excluded, "signature": signature}, True)
  except Exception as error: shorten(error); raise
 return op_vectorize, 1

def op_convert_to_tensor(op):
 def op_convert_to_tensor(x, dtype, sparse, ragged):
  try:
   if sparse or ragged: return op(x, dtype, sparse, ragged)
   return (active() if registry.is_overridden else registry._backend).op_convert_to_tensor(x, dtypes.name_or_none(dtype, dtypes.FLOAT8), sparse, ragged)
  except Exception as error: return recover(error, op, {"x": x, "dtype": dtype, "sparse": sparse, "ragged": ragged})
 return op_convert_to_tensor, 1

def op_convert_to_numpy(op):
 def op_convert_to_numpy(x):
  try: return op(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_convert_to_numpy, 1

def op_cast(op):
 def op_cast(x, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_cast(x, dtypes.name(dtype, dtypes.FLOAT8))
  except Exception as error: return recover(error, op, {"x": x, "dtype": dtype})
 return op_cast, 1

def op_view(op):
 def op_view(x, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_view(x, dtypes.name_or_none(dtype))
  except Exception as error: return recover(error, op, {"x": x, "dtype": dtype})
 return op_view, 1

def op_view_as_complex(op):
 def op_view_as_complex(x):
  try: return (active() if registry.is_overridden else registry._backend).op_view_as_complex(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_view_as_complex, 1

def op_dtype(op):
 def op_dtype(x):
  try: return (active() if registry.is_overridden else registry._backend).op_dtype(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_dtype, 1

def op_shape(op):
 def op_shape(x):
  try: return (active() if registry.is_overridden else registry._backend).op_shape(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_shape, 1

def op_is_tensor(op):
 def op_is_tensor(x):
  try: return (active() if registry.is_overridden else registry._backend).op_is_tensor(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_is_tensor, 1

def op_view_as_real(op):
 def op_view_as_real(x):
  try: return (active() if registry.is_overridden else registry._backend).op_view_as_real(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_view_as_real, 1

def op_saturate_cast(op):
 def op_saturate_cast(x, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_saturate_cast(x, dtype)
  except Exception as error: return recover(error, op, {"x": x, "dtype": dtype})
 return op_saturate_cast, 1

def op_array(op):
 def op_array(x, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_array(x, dtype)
  except Exception as error: return recover(error, op, {"x": x, "dtype": dtype})
 return op_array, 1

def op_conv(op):
 def op_conv(inputs, kernel, strides, padding, data_format, dilation_rate, bias):
  try: return op(inputs, kernel, strides, padding, data_format, dilation_rate, bias)
  except Exception as error: return recover(error, op, {"inputs": inputs, "kernel": kernel, "strides": strides, "padding": padding, "data_format": data_format, "dilation_rate": dilation_rate, "bias": bias})
 return op_conv, 1

def op_conv_transpose(op):
 def op_conv_transpose(inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, groups):
  try: return op(inputs, kernel, strides, padding, output_padding, data_format, dilation_rate, groups)
  except Exception as error: return recover(error, op, {"inputs": inputs, "kernel": kernel, "strides": strides, "padding": padding, "output_padding": output_padding, "data_format": data_format, "dilation_rate": dilation_rate, "groups": groups})
 return op_conv_transpose, 1

def op_unfold(op):
 def op_unfold(x, kernel_size, dilation, padding, stride):
  try: return (active() if registry.is_overridden else registry._backend).op_unfold(x, kernel_size, dilation, padding, stride)
  except Exception as error: return recover(error, op, {"x": x, "kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride})
 return op_unfold, 1

def op_fold(op):
 def op_fold(x, output_size, kernel_size, dilation, padding, stride):
  try: return (active() if registry.is_overridden else registry._backend).op_fold(x, output_size, kernel_size, dilation, padding, stride)
  except Exception as error: return recover(error, op, {"x": x, "output_size": output_size, "kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride})
 return op_fold, 1

def op_depthwise_conv(op):
 def op_depthwise_conv(inputs, kernel, strides, padding, data_format, dilation_rate, bias):
  try: return (active() if registry.is_overridden else registry._backend).op_depthwise_conv(inputs, kernel, strides, padding, data_format, dilation_rate, bias)
  except Exception as error: return recover(error, op, {"inputs": inputs, "kernel": kernel, "strides": strides, "padding": padding, "data_format": data_format, "dilation_rate": dilation_rate, "bias": bias})
 return op_depthwise_conv, 1

def op_separable_conv(op):
 def op_separable_conv(inputs, depthwise_kernel, pointwise_kernel, strides, padding, data_format, dilation_rate, bias):
  try: return (active() if registry.is_overridden else registry._backend).op_separable_conv(inputs, depthwise_kernel, pointwise_kernel, strides, padding, data_format, dilation_rate, bias)
  except Exception as error: return recover(error, op, {"inputs": inputs, "depthwise_kernel": depthwise_kernel, "pointwise_kernel": pointwise_kernel, "strides": strides, "padding": padding, "data_format": data_format, "dilation_rate": dilation_rate, "bias": bias})
 return op_separable_conv, 1

def op_zeros(op):
 def op_zeros(shape, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_zeros(args.size(shape), config.floatx() if dtype is None else dtypes.name(dtype))
  except Exception as error: return recover(error, op, {"shape": shape, "dtype": dtype})
 return op_zeros, 1

def op_ones(op):
 def op_ones(shape, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_ones(args.size(shape), config.floatx() if dtype is None else dtypes.name(dtype))
  except Exception as error: return recover(error, op, {"shape": shape, "dtype": dtype})
 return op_ones, 1

def op_full(op):
 def op_full(shape, fill_value, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_full(args.size(shape), fill_value, dtypes.name_or_none(dtype))
  except Exception as error: return recover(error, op, {"shape": shape, "fill_value": fill_value, "dtype": dtype})
 return op_full, 1

def op_zeros_like(op):
 def op_zeros_like(x, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_zeros_like(x, dtypes.name_or_none(dtype))
  except Exception as error: return recover(error, op, {"x": x, "dtype": dtype})
 return op_zeros_like, 1

def op_ones_like(op):
 def op_ones_like(x, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_ones_like(x, dtypes.name_or_none(dtype))
  except Exception as error: return recover(error, op, {"x": x, "dtype": dtype})
 return op_ones_like, 1

def op_full_like(op):
 def op_full_like(x, fill_value, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_full_like(x, fill_value, dtypes.name_or_none(dtype))
  except Exception as error: return recover(error, op, {"x": x, "fill_value": fill_value, "dtype": dtype})
 return op_full_like, 1

def op_arange(op):
 def op_arange(start, stop, step, dtype):
  try: return op(start, stop, step, dtype)
  except Exception as error: return recover(error, op, {"start": start, "stop": stop, "step": step, "dtype": dtype})
 return op_arange, 1

def op_eye(op):
 def op_eye(N, M, k, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_eye(*args.size((N, N if M is None else M), '(N, M)'), k if type(k) is int else args.integer(k, 'k'), config.floatx() if dtype is None else dtypes.name(dtype))
  except Exception as error: return recover(error, op, {"N": N, "M": M, "k": k, "dtype": dtype})
 return op_eye, 1

def op_copy(op):
 def op_copy(x):
  try: return (active() if registry.is_overridden else registry._backend).op_copy(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_copy, 1

def op_linspace(op):
 def op_linspace(start, stop, num, endpoint, retstep, dtype, axis):
  try:
   if endpoint is not False and endpoint is not True: endpoint = bool_flag(endpoint, "endpoint")
   if retstep is not False and retstep is not True: retstep = bool_flag(retstep, "retstep")
   return op(start, stop, num, endpoint, retstep, dtype, axis)
  except Exception as error: return recover(error, op, {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "retstep": retstep, "dtype": dtype, "axis": axis})
 return op_linspace, 1

def op_empty(op):
 def op_empty(shape, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_empty(shape, dtype)
  except Exception as error: return recover(error, op, {"shape": shape, "dtype": dtype})
 return op_empty, 1

def op_empty_like(op):
 def op_empty_like(x, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_empty_like(x, dtype)
  except Exception as error: return recover(error, op, {"x": x, "dtype": dtype})
 return op_empty_like, 1

def op_identity(op):
 def op_identity(n, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_identity(n, dtype)
  except Exception as error: return recover(error, op, {"n": n, "dtype": dtype})
 return op_identity, 1

def op_add(op):
 def op_add(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_add(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_add, 1

def op_subtract(op):
 def op_subtract(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_subtract(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_subtract, 1

def op_multiply(op):
 def op_multiply(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_multiply(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_multiply, 1

def op_divide(op):
 def op_divide(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_divide(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_divide, 1

def op_floor_divide(op):
 def op_floor_divide(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_floor_divide(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_floor_divide, 1

def op_mod(op):
 def op_mod(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_mod(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_mod, 1

def op_power(op):
 def op_power(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_power(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_power, 1

def op_negative(op):
 def op_negative(x):
  try: return (active() if registry.is_overridden else registry._backend).op_negative(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_negative, 1

def op_reciprocal(op):
 def op_reciprocal(x):
  try: return (active() if registry.is_overridden else registry._backend).op_reciprocal(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_reciprocal, 1

def op_sign(op):
 def op_sign(x):
  try: return (active() if registry.is_overridden else registry._backend).op_sign(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_sign, 1

def op_abs(op):
 def op_abs(x):
  try: return (active() if registry.is_overridden else registry._backend).op_abs(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_abs, 1

def op_square(op):
 def op_square(x):
  try: return (active() if registry.is_overridden else registry._backend).op_square(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_square, 1

def op_sqrt(op):
 def op_sqrt(x):
  try: return (active() if registry.is_overridden else registry._backend).op_sqrt(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_sqrt, 1

def op_rsqrt(op):
 def op_rsqrt(x):
  try: return (active() if registry.is_overridden else registry._backend).op_rsqrt(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_rsqrt, 1

def op_exp(op):
 def op_exp(x):
  try: return (active() if registry.is_overridden else registry._backend).op_exp(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_exp, 1

def op_exp2(op):
 def op_exp2(x):
  try: return (active() if registry.is_overridden else registry._backend).op_exp2(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_exp2, 1

def op_expm1(op):
 def op_expm1(x):
  try: return (active() if registry.is_overridden else registry._backend).op_expm1(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_expm1, 1

def op_log(op):
 def op_log(x):
  try: return (active() if registry.is_overridden else registry._backend).op_log(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_log, 1

def op_log2(op):
 def op_log2(x):
  try: return (active() if registry.is_overridden else registry._backend).op_log2(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_log2, 1

def op_log10(op):
 def op_log10(x):
  try: return (active() if registry.is_overridden else registry._backend).op_log10(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_log10, 1

def op_log1p(op):
 def op_log1p(x):
  try: return (active() if registry.is_overridden else registry._backend).op_log1p(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_log1p, 1

def op_maximum(op):
 def op_maximum(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_maximum(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_maximum, 1

def op_minimum(op):
 def op_minimum(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_minimum(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_minimum, 1

def op_clip(op):
 def op_clip(x, x_min, x_max, *, a_min, a_max, min, max):
  try: return op(x, x_min, x_max, a_min=a_min, a_max=a_max, min=min, max=max)
  except Exception as error: return recover(error, op, {"x": x, "x_min": x_min, "x_max": x_max, "a_min": a_min, "a_max": a_max, "min": min, "max": max})
 return op_clip, 1

def op_round(op):
 def op_round(x, decimals):
  try: return (active() if registry.is_overridden else registry._backend).op_round(x, decimals)
  except Exception as error: return recover(error, op, {"x": x, "decimals": decimals})
 return op_round, 1

def op_floor(op):
 def op_floor(x):
  try: return (active() if registry.is_overridden else registry._backend).op_floor(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_floor, 1

def op_ceil(op):
 def op_ceil(x):
  try: return (active() if registry.is_overridden else registry._backend).op_ceil(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_ceil, 1

def op_trunc(op):
 def op_trunc(x):
  try: return (active() if registry.is_overridden else registry._backend).op_trunc(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_trunc, 1

def op_sin(op):
 def op_sin(x):
  try: return (active() if registry.is_overridden else registry._backend).op_sin(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_sin, 1

def op_cos(op):
 def op_cos(x):
  try: return (active() if registry.is_overridden else registry._backend).op_cos(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_cos, 1

def op_tan(op):
 def op_tan(x):
  try: return (active() if registry.is_overridden else registry._backend).op_tan(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_tan, 1

def op_arcsin(op):
 def op_arcsin(x):
  try: return (active() if registry.is_overridden else registry._backend).op_arcsin(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_arcsin, 1

def op_arccos(op):
 def op_arccos(x):
  try: return (active() if registry.is_overridden else registry._backend).op_arccos(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_arccos, 1

def op_arctan(op):
 def op_arctan(x):
  try: return (active() if registry.is_overridden else registry._backend).op_arctan(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_arctan, 1

def op_arctan2(op):
 def op_arctan2(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_arctan2(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_arctan2, 1

def op_sinh(op):
 def op_sinh(x):
  try: return (active() if registry.is_overridden else registry._backend).op_sinh(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_sinh, 1

def op_cosh(op):
 def op_cosh(x):
  try: return (active() if registry.is_overridden else registry._backend).op_cosh(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_cosh, 1

def op_tanh(op):
 def op_tanh(x):
  try: return (active() if registry.is_overridden else registry._backend).op_tanh(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_tanh, 1

def op_arcsinh(op):
 def op_arcsinh(x):
  try: return (active() if registry.is_overridden else registry._backend).op_arcsinh(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_arcsinh, 1

def op_arccosh(op):
 def op_arccosh(x):
  try: return (active() if registry.is_overridden else registry._backend).op_arccosh(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_arccosh, 1

def op_arctanh(op):
 def op_arctanh(x):
  try: return (active() if registry.is_overridden else registry._backend).op_arctanh(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_arctanh, 1

def op_hypot(op):
 def op_hypot(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_hypot(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_hypot, 1

def op_real(op):
 def op_real(x):
  try: return (active() if registry.is_overridden else registry._backend).op_real(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_real, 1

def op_imag(op):
 def op_imag(x):
  try: return (active() if registry.is_overridden else registry._backend).op_imag(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_imag, 1

def op_conj(op):
 def op_conj(x):
  try: return (active() if registry.is_overridden else registry._backend).op_conj(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_conj, 1

def op_divide_no_nan(op):
 def op_divide_no_nan(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_divide_no_nan(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_divide_no_nan, 1

def op_logaddexp(op):
 def op_logaddexp(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_logaddexp(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_logaddexp, 1

def op_logaddexp2(op):
 def op_logaddexp2(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_logaddexp2(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_logaddexp2, 1

def op_nan_to_num(op):
 def op_nan_to_num(x, nan, posinf, neginf):
  try: return (active() if registry.is_overridden else registry._backend).op_nan_to_num(x, args.number(nan, 'nan'), None if posinf is None else args.number(posinf, 'posinf'), None if neginf is None else args.number(neginf, 'neginf'))
  except Exception as error: return recover(error, op, {"x": x, "nan": nan, "posinf": posinf, "neginf": neginf})
 return op_nan_to_num, 1

def op_cbrt(op):
 def op_cbrt(x):
  try: return (active() if registry.is_overridden else registry._backend).op_cbrt(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_cbrt, 1

def op_fmod(op):
 def op_fmod(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_fmod(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_fmod, 1

def op_heaviside(op):
 def op_heaviside(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_heaviside(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_heaviside, 1

def op_ldexp(op):
 def op_ldexp(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_ldexp(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_ldexp, 1

def op_nextafter(op):
 def op_nextafter(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_nextafter(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_nextafter, 1

def op_polar(op):
 def op_polar(abs_, angle):
  try: return (active() if registry.is_overridden else registry._backend).op_polar(abs_, angle)
  except Exception as error: return recover(error, op, {"abs_": abs_, "angle": angle})
 return op_polar, 1

def op_true_divide(op):
 def op_true_divide(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_true_divide(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_true_divide, 1

def op_absolute(op):
 def op_absolute(x):
  try: return (active() if registry.is_overridden else registry._backend).op_absolute(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_absolute, 1

def op_conjugate(op):
 def op_conjugate(x):
  try: return (active() if registry.is_overridden else registry._backend).op_conjugate(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_conjugate, 1

def op_fabs(op):
 def op_fabs(x):
  try: return (active() if registry.is_overridden else registry._backend).op_fabs(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_fabs, 1

def op_deg2rad(op):
 def op_deg2rad(x):
  try: return (active() if registry.is_overridden else registry._backend).op_deg2rad(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_deg2rad, 1

def op_rad2deg(op):
 def op_rad2deg(x):
  try: return (active() if registry.is_overridden else registry._backend).op_rad2deg(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_rad2deg, 1

def op_angle(op):
 def op_angle(x):
  try: return (active() if registry.is_overridden else registry._backend).op_angle(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_angle, 3

def op_fmax(op):
 def op_fmax(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_fmax(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_fmax, 3

def op_fmin(op):
 def op_fmin(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_fmin(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_fmin, 3

def op_copysign(op):
 def op_copysign(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_copysign(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_copysign, 3

def op_modf(op):
 def op_modf(x):
  try: return (active() if registry.is_overridden else registry._backend).op_modf(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_modf, 1

def op_sinc(op):
 def op_sinc(x):
  try: return (active() if registry.is_overridden else registry._backend).op_sinc(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_sinc, 3

def op_image_rgb_to_grayscale(op):
 def op_image_rgb_to_grayscale(images, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_rgb_to_grayscale(images, data_format)
  except Exception as error: return recover(error, op, {"images": images, "data_format": data_format})
 return op_image_rgb_to_grayscale, 2

def op_image_rgb_to_hsv(op):
 def op_image_rgb_to_hsv(images, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_rgb_to_hsv(images, data_format)
  except Exception as error: return recover(error, op, {"images": images, "data_format": data_format})
 return op_image_rgb_to_hsv, 2

def op_image_hsv_to_rgb(op):
 def op_image_hsv_to_rgb(images, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_hsv_to_rgb(images, data_format)
  except Exception as error: return recover(error, op, {"images": images, "data_format": data_format})
 return op_image_hsv_to_rgb, 2

def op_image_crop(op):
 def op_image_crop(images, top_cropping, left_cropping, bottom_cropping, right_cropping, target_height, target_width, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_crop(images, top_cropping, left_cropping, bottom_cropping, right_cropping, target_height, target_width, data_format)
  except Exception as error: return recover(error, op, {"images": images, "top_cropping": top_cropping, "left_cropping": left_cropping, "bottom_cropping": bottom_cropping, "right_cropping": right_cropping, "target_height": target_height, "target_width": target_width, "data_format": data_format})
 return op_image_crop, 1

def op_image_pad(op):
 def op_image_pad(images, top_padding, left_padding, bottom_padding, right_padding, target_height, target_width, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_pad(images, top_padding, left_padding, bottom_padding, right_padding, target_height, target_width, data_format)
  except Exception as error: return recover(error, op, {"images": images, "top_padding": top_padding, "left_padding": left_padding, "bottom_padding": bottom_padding, "right_padding": right_padding, "target_height": target_height, "target_width": target_width, "data_format": data_format})
 return op_image_pad, 1

def op_image_resize(op):
 def op_image_resize(images, size, interpolation, antialias, crop_to_aspect_ratio, pad_to_aspect_ratio, fill_mode, fill_value, data_format):
  try:
   if antialias is not False and antialias is not True: antialias = bool_flag(antialias, "antialias")
   if crop_to_aspect_ratio is not False and crop_to_aspect_ratio is not True: crop_to_aspect_ratio = bool_flag(crop_to_aspect_ratio, "crop_to_aspect_ratio")
   if pad_to_aspect_ratio is not False and pad_to_aspect_ratio is not True: pad_to_aspect_ratio = bool_flag(pad_to_aspect_ratio, "pad_to_aspect_ratio")
   return (active() if registry.is_overridden else registry._backend).op_image_resize(images, size, interpolation, antialias, crop_to_aspect_ratio, pad_to_aspect_ratio, fill_mode, fill_value, data_format)
  except Exception as error: return recover(error, op, {"images": images, "size": size, "interpolation": interpolation, "antialias": antialias, "crop_to_aspect_ratio": crop_to_aspect_ratio, "pad_to_aspect_ratio": pad_to_aspect_ratio, "fill_mode": fill_mode, "fill_value": fill_value, "data_format": data_format})
 return op_image_resize, 2

def op_image_affine_transform(op):
 def op_image_affine_transform(images, transform, interpolation, fill_mode, fill_value, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_affine_transform(images, transform, interpolation, fill_mode, fill_value, data_format)
  except Exception as error: return recover(error, op, {"images": images, "transform": transform, "interpolation": interpolation, "fill_mode": fill_mode, "fill_value": fill_value, "data_format": data_format})
 return op_image_affine_transform, 2

def op_image_perspective_transform(op):
 def op_image_perspective_transform(images, start_points, end_points, interpolation, fill_value, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_perspective_transform(images, start_points, end_points, interpolation, fill_value, data_format)
  except Exception as error: return recover(error, op, {"images": images, "start_points": start_points, "end_points": end_points, "interpolation": interpolation, "fill_value": fill_value, "data_format": data_format})
 return op_image_perspective_transform, 2

def op_image_map_coordinates(op):
 def op_image_map_coordinates(inputs, coordinates, order, fill_mode, fill_value):
  try: return (active() if registry.is_overridden else registry._backend).op_image_map_coordinates(inputs, coordinates, order, fill_mode, fill_value)
  except Exception as error: return recover(error, op, {"inputs": inputs, "coordinates": coordinates, "order": order, "fill_mode": fill_mode, "fill_value": fill_value})
 return op_image_map_coordinates, 2

def op_image_extract_patches(op):
 def op_image_extract_patches(images, size, strides, dilation_rate, padding, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_extract_patches(images, size, strides, dilation_rate, padding, data_format)
  except Exception as error: return recover(error, op, {"images": images, "size": size, "strides": strides, "dilation_rate": dilation_rate, "padding": padding, "data_format": data_format})
 return op_image_extract_patches, 2

def op_image_extract_patches_3d(op):
 def op_image_extract_patches_3d(volumes, size, strides, dilation_rate, padding, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_extract_patches_3d(volumes, size, strides, dilation_rate, padding, data_format)
  except Exception as error: return recover(error, op, {"volumes": volumes, "size": size, "strides": strides, "dilation_rate": dilation_rate, "padding": padding, "data_format": data_format})
 return op_image_extract_patches_3d, 2

def op_image_reconstruct_patches(op):
 def op_image_reconstruct_patches(patches, size, output_size, strides, padding, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_reconstruct_patches(patches, size, output_size, strides, padding, data_format)
  except Exception as error: return recover(error, op, {"patches": patches, "size": size, "output_size": output_size, "strides": strides, "padding": padding, "data_format": data_format})
 return op_image_reconstruct_patches, 2

def op_image_gaussian_blur(op):
 def op_image_gaussian_blur(images, kernel_size, sigma, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_gaussian_blur(images, kernel_size, sigma, data_format)
  except Exception as error: return recover(error, op, {"images": images, "kernel_size": kernel_size, "sigma": sigma, "data_format": data_format})
 return op_image_gaussian_blur, 2

def op_image_sobel_edges(op):
 def op_image_sobel_edges(images, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_sobel_edges(images, data_format)
  except Exception as error: return recover(error, op, {"images": images, "data_format": data_format})
 return op_image_sobel_edges, 2

def op_image_ssim(op):
 def op_image_ssim(image1, image2, max_val, filter_size, filter_sigma, k1, k2, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_ssim(image1, image2, max_val, filter_size, filter_sigma, k1, k2, data_format)
  except Exception as error: return recover(error, op, {"image1": image1, "image2": image2, "max_val": max_val, "filter_size": filter_size, "filter_sigma": filter_sigma, "k1": k1, "k2": k2, "data_format": data_format})
 return op_image_ssim, 2

def op_image_elastic_transform(op):
 def op_image_elastic_transform(images, alpha, sigma, interpolation, fill_mode, fill_value, seed, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_image_elastic_transform(images, alpha, sigma, interpolation, fill_mode, fill_value, seed, data_format)
  except Exception as error: return recover(error, op, {"images": images, "alpha": alpha, "sigma": sigma, "interpolation": interpolation, "fill_mode": fill_mode, "fill_value": fill_value, "seed": seed, "data_format": data_format})
 return op_image_elastic_transform, 1

def op_image_scale_and_translate(op):
 def op_image_scale_and_translate(images, output_shape, scale, translation, spatial_dims, method, antialias):
  try:
   if antialias is not False and antialias is not True: antialias = bool_flag(antialias, "antialias")
   return (active() if registry.is_overridden else registry._backend).op_image_scale_and_translate(images, output_shape, scale, translation, spatial_dims, method, antialias)
  except Exception as error: return recover(error, op, {"images": images, "output_shape": output_shape, "scale": scale, "translation": translation, "spatial_dims": spatial_dims, "method": method, "antialias": antialias})
 return op_image_scale_and_translate, 2

def op_take(op):
 def op_take(x, indices, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_take(x, indices, axis)
  except Exception as error: return recover(error, op, {"x": x, "indices": indices, "axis": axis})
 return op_take, 1

def op_take_along_axis(op):
 def op_take_along_axis(x, indices, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_take_along_axis(x, indices, axis)
  except Exception as error: return recover(error, op, {"x": x, "indices": indices, "axis": axis})
 return op_take_along_axis, 1

def op_get_item(op):
 def op_get_item(x, key):
  try: return (active() if registry.is_overridden else registry._backend).op_get_item(x, key)
  except Exception as error: return recover(error, op, {"x": x, "key": key})
 return op_get_item, 1

def op_slice(op):
 def op_slice(inputs, start_indices, shape):
  try: return (active() if registry.is_overridden else registry._backend).op_slice(inputs, start_indices, args.size(shape))
  except Exception as error: return recover(error, op, {"inputs": inputs, "start_indices": start_indices, "shape": shape})
 return op_slice, 1

def op_slice_update(op):
 def op_slice_update(inputs, start_indices, updates):
  try: return op(inputs, start_indices, updates)
  except Exception as error: return recover(error, op, {"inputs": inputs, "start_indices": start_indices, "updates": updates})
 return op_slice_update, 1

def op_scatter(op):
 def op_scatter(indices, values, shape):
  try: return (active() if registry.is_overridden else registry._backend).op_scatter(indices, values, shape)
  except Exception as error: return recover(error, op, {"indices": indices, "values": values, "shape": shape})
 return op_scatter, 1

def op_scatter_update(op):
 def op_scatter_update(inputs, indices, updates, reduction):
  try: return op(inputs, indices, updates, reduction)
  except Exception as error: return recover(error, op, {"inputs": inputs, "indices": indices, "updates": updates, "reduction": reduction})
 return op_scatter_update, 1

def op_select(op):
 def op_select(condlist, choicelist, default):
  try: return op(condlist, choicelist, default)
  except Exception as error: return recover(error, op, {"condlist": condlist, "choicelist": choicelist, "default": default})
 return op_select, 1

def op_unravel_index(op):
 def op_unravel_index(indices, shape):
  try: return op(indices, shape)
  except Exception as error: return recover(error, op, {"indices": indices, "shape": shape})
 return op_unravel_index, 1

def op_one_hot(op):
 def op_one_hot(x, num_classes, axis, dtype, sparse):
  try:
   if sparse is not False and sparse is not True: sparse = bool_flag(sparse, "sparse")
   return op(x, num_classes, axis, dtype, sparse)
  except Exception as error: return recover(error, op, {"x": x, "num_classes": num_classes, "axis": axis, "dtype": dtype, "sparse": sparse})
 return op_one_hot, 1

def op_ravel_multi_index(op):
 def op_ravel_multi_index(multi_index, dims):
  try: return (active() if registry.is_overridden else registry._backend).op_ravel_multi_index(multi_index, dims)
  except Exception as error: return recover(error, op, {"multi_index": multi_index, "dims": dims})
 return op_ravel_multi_index, 1

def op_set_item(op):
 def op_set_item(x, key, value):
  try: return (active() if registry.is_overridden else registry._backend).op_set_item(x, key, value)
  except Exception as error: return recover(error, op, {"x": x, "key": key, "value": value})
 return op_set_item, 1

def op_add_at(op):
 def op_add_at(x, key, value):
  try: return (active() if registry.is_overridden else registry._backend).op_add_at(x, key, value)
  except Exception as error: return recover(error, op, {"x": x, "key": key, "value": value})
 return op_add_at, 1

def op_multiply_at(op):
 def op_multiply_at(x, key, value):
  try: return (active() if registry.is_overridden else registry._backend).op_multiply_at(x, key, value)
  except Exception as error: return recover(error, op, {"x": x, "key": key, "value": value})
 return op_multiply_at, 1

def op_maximum_at(op):
 def op_maximum_at(x, key, value):
  try: return (active() if registry.is_overridden else registry._backend).op_maximum_at(x, key, value)
  except Exception as error: return recover(error, op, {"x": x, "key": key, "value": value})
 return op_maximum_at, 1

def op_minimum_at(op):
 def op_minimum_at(x, key, value):
  try: return (active() if registry.is_overridden else registry._backend).op_minimum_at(x, key, value)
  except Exception as error: return recover(error, op, {"x": x, "key": key, "value": value})
 return op_minimum_at, 1

def op_subset(op):
 def op_subset(x, *indices):
  try: return (active() if registry.is_overridden else registry._backend).op_subset(x, *indices)
  except Exception as error: return recover(error, op, {"x": x, "indices": indices})
 return op_subset, 1

def op_multi_hot(op):
 def op_multi_hot(inputs, num_classes, axis, dtype, sparse, **kwargs):
  try:
   if sparse is not False and sparse is not True: sparse = bool_flag(sparse, "sparse")
   return (active() if registry.is_overridden else registry._backend).op_multi_hot(inputs, num_classes, axis, dtype, sparse, **kwargs)
  except Exception as error: return recover(error, op, {"inputs": inputs, "num_classes": num_classes, "axis": axis, "dtype": dtype, "sparse": sparse, **kwargs})
 return op_multi_hot, 1

def op_cholesky(op):
 def op_cholesky(x, upper):
  try:
   if upper is not False and upper is not True: upper = bool_flag(upper, "upper")
   return (active() if registry.is_overridden else registry._backend).op_cholesky(x, upper)
  except Exception as error: return recover(error, op, {"x": x, "upper": upper})
 return op_cholesky, 1

def op_det(op):
 def op_det(x):
  try: return (active() if registry.is_overridden else registry._backend).op_det(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_det, 1

def op_slogdet(op):
 def op_slogdet(x):
  try: return op(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_slogdet, 1

def op_inv(op):
 def op_inv(x):
  try: return (active() if registry.is_overridden else registry._backend).op_inv(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_inv, 1

def op_pinv(op):
 def op_pinv(x, rcond, hermitian):
  try:
   if hermitian is not False and hermitian is not True: hermitian = bool_flag(hermitian, "hermitian")
   return op(x, rcond, hermitian)
  except Exception as error: return recover(error, op, {"x": x, "rcond": rcond, "hermitian": hermitian})
 return op_pinv, 1

def op_solve(op):
 def op_solve(a, b):
  try: return (active() if registry.is_overridden else registry._backend).op_solve(a, b)
  except Exception as error: return recover(error, op, {"a": a, "b": b})
 return op_solve, 1

def op_solve_triangular(op):
 def op_solve_triangular(a, b, lower):
  try:
   if lower is not False and lower is not True: lower = bool_flag(lower, "lower")
   return (active() if registry.is_overridden else registry._backend).op_solve_triangular(a, b, lower)
  except Exception as error: return recover(error, op, {"a": a, "b": b, "lower": lower})
 return op_solve_triangular, 1

def op_expm(op):
 def op_expm(x):
  try: return (active() if registry.is_overridden else registry._backend).op_expm(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_expm, 1

def op_lu_factor(op):
 def op_lu_factor(x):
  try: return op(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_lu_factor, 1

def op_qr(op):
 def op_qr(x, mode, broadening):
  try: return op(x, mode, broadening)
  except Exception as error: return recover(error, op, {"x": x, "mode": mode, "broadening": broadening})
 return op_qr, 1

def op_svd(op):
 def op_svd(x, full_matrices, compute_uv, broadening):
  try:
   if full_matrices is not False and full_matrices is not True: full_matrices = bool_flag(full_matrices, "full_matrices")
   if compute_uv is not False and compute_uv is not True: compute_uv = bool_flag(compute_uv, "compute_uv")
   return op(x, full_matrices, compute_uv, broadening)
  except Exception as error: return recover(error, op, {"x": x, "full_matrices": full_matrices, "compute_uv": compute_uv, "broadening": broadening})
 return op_svd, 1

def op_eigh(op):
 def op_eigh(x, UPLO, broadening):
  try: return op(x, UPLO, broadening)
  except Exception as error: return recover(error, op, {"x": x, "UPLO": UPLO, "broadening": broadening})
 return op_eigh, 1

def op_eig(op):
 def op_eig(x, broadening):
  try: return op(x, broadening)
  except Exception as error: return recover(error, op, {"x": x, "broadening": broadening})
 return op_eig, 1

def op_eigvalsh(op):
 def op_eigvalsh(x, UPLO):
  try: return (active() if registry.is_overridden else registry._backend).op_eigvalsh(x, UPLO)
  except Exception as error: return recover(error, op, {"x": x, "UPLO": UPLO})
 return op_eigvalsh, 1

def op_eigvals(op):
 def op_eigvals(x):
  try: return (active() if registry.is_overridden else registry._backend).op_eigvals(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_eigvals, 1

def op_svdvals(op):
 def op_svdvals(x):
  try: return (active() if registry.is_overridden else registry._backend).op_svdvals(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_svdvals, 1

def op_logdet(op):
 def op_logdet(x):
  try: return (active() if registry.is_overridden else registry._backend).op_logdet(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_logdet, 1

def op_cholesky_inverse(op):
 def op_cholesky_inverse(x, upper):
  try:
   if upper is not False and upper is not True: upper = bool_flag(upper, "upper")
   return (active() if registry.is_overridden else registry._backend).op_cholesky_inverse(x, upper)
  except Exception as error: return recover(error, op, {"x": x, "upper": upper})
 return op_cholesky_inverse, 1

def op_lstsq(op):
 def op_lstsq(a, b, rcond, residuals):
  try:
   if residuals is not False and residuals is not True: residuals = bool_flag(residuals, "residuals")
   return (active() if registry.is_overridden else registry._backend).op_lstsq(a, b, rcond, residuals)
  except Exception as error: return recover(error, op, {"a": a, "b": b, "rcond": rcond, "residuals": residuals})
 return op_lstsq, 1

def op_matrix_power(op):
 def op_matrix_power(x, n):
  try: return (active() if registry.is_overridden else registry._backend).op_matrix_power(x, n)
  except Exception as error: return recover(error, op, {"x": x, "n": n})
 return op_matrix_power, 1

def op_matrix_rank(op):
 def op_matrix_rank(x, tol, hermitian):
  try:
   if hermitian is not False and hermitian is not True: hermitian = bool_flag(hermitian, "hermitian")
   return (active() if registry.is_overridden else registry._backend).op_matrix_rank(x, tol, hermitian)
  except Exception as error: return recover(error, op, {"x": x, "tol": tol, "hermitian": hermitian})
 return op_matrix_rank, 1

def op_norm(op):
 def op_norm(x, ord, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_norm(x, ord, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "ord": ord, "axis": axis, "keepdims": keepdims})
 return op_norm, 1

def op_cdist(op):
 def op_cdist(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_cdist(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_cdist, 1

def op_solve_sylvester(op):
 def op_solve_sylvester(a, b, q):
  try: return (active() if registry.is_overridden else registry._backend).op_solve_sylvester(a, b, q)
  except Exception as error: return recover(error, op, {"a": a, "b": b, "q": q})
 return op_solve_sylvester, 1

def op_polar_decomposition(op):
 def op_polar_decomposition(x, side):
  try: return (active() if registry.is_overridden else registry._backend).op_polar_decomposition(x, side)
  except Exception as error: return recover(error, op, {"x": x, "side": side})
 return op_polar_decomposition, 1

def op_sqrtm(op):
 def op_sqrtm(x):
  try: return (active() if registry.is_overridden else registry._backend).op_sqrtm(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_sqrtm, 1

def op_logm(op):
 def op_logm(x):
  try: return (active() if registry.is_overridden else registry._backend).op_logm(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_logm, 1

def op_equal(op):
 def op_equal(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_equal(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_equal, 1

def op_not_equal(op):
 def op_not_equal(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_not_equal(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_not_equal, 1

def op_less(op):
 def op_less(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_less(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_less, 1

def op_less_equal(op):
 def op_less_equal(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_less_equal(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_less_equal, 1

def op_greater(op):
 def op_greater(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_greater(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_greater, 1

def op_greater_equal(op):
 def op_greater_equal(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_greater_equal(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_greater_equal, 1

def op_isnan(op):
 def op_isnan(x):
  try: return (active() if registry.is_overridden else registry._backend).op_isnan(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_isnan, 1

def op_isinf(op):
 def op_isinf(x):
  try: return (active() if registry.is_overridden else registry._backend).op_isinf(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_isinf, 1

def op_isfinite(op):
 def op_isfinite(x):
  try: return (active() if registry.is_overridden else registry._backend).op_isfinite(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_isfinite, 1

def op_logical_and(op):
 def op_logical_and(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_logical_and(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_logical_and, 1

def op_logical_or(op):
 def op_logical_or(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_logical_or(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_logical_or, 1

def op_logical_xor(op):
 def op_logical_xor(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_logical_xor(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_logical_xor, 1

def op_logical_not(op):
 def op_logical_not(x):
  try: return (active() if registry.is_overridden else registry._backend).op_logical_not(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_logical_not, 1

def op_where(op):
 def op_where(condition, x1, x2):
  try:
   if x1 is None or x2 is None: return op(condition, x1, x2)
   return (active() if registry.is_overridden else registry._backend).op_where(condition, x1, x2)
  except Exception as error: return recover(error, op, {"condition": condition, "x1": x1, "x2": x2})
 return op_where, 1

def op_nonzero(op):
 def op_nonzero(x):
  try: return (active() if registry.is_overridden else registry._backend).op_nonzero(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_nonzero, 1

def op_isposinf(op):
 def op_isposinf(x):
  try: return (active() if registry.is_overridden else registry._backend).op_isposinf(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_isposinf, 1

def op_isneginf(op):
 def op_isneginf(x):
  try: return (active() if registry.is_overridden else registry._backend).op_isneginf(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_isneginf, 1

def op_isreal(op):
 def op_isreal(x):
  try: return (active() if registry.is_overridden else registry._backend).op_isreal(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_isreal, 1

def op_signbit(op):
 def op_signbit(x):
  try: return (active() if registry.is_overridden else registry._backend).op_signbit(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_signbit, 1

def op_isclose(op):
 def op_isclose(x1, x2, rtol, atol, equal_nan):
  try:
   if equal_nan is not False and equal_nan is not True: equal_nan = bool_flag(equal_nan, "equal_nan")
   return (active() if registry.is_overridden else registry._backend).op_isclose(x1, x2, args.not_negative(rtol, 'rtol'), args.not_negative(atol, 'atol'), equal_nan)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "rtol": rtol, "atol": atol, "equal_nan": equal_nan})
 return op_isclose, 1

def op_allclose(op):
 def op_allclose(x1, x2, rtol, atol, equal_nan):
  try:
   if equal_nan is not False and equal_nan is not True: equal_nan = bool_flag(equal_nan, "equal_nan")
   return (active() if registry.is_overridden else registry._backend).op_allclose(x1, x2, rtol, atol, equal_nan)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "rtol": rtol, "atol": atol, "equal_nan": equal_nan})
 return op_allclose, 2

def op_binary_crossentropy(op):
 def op_binary_crossentropy(target, output, from_logits):
  try:
   if from_logits is not False and from_logits is not True: from_logits = bool_flag(from_logits, "from_logits")
   return (active() if registry.is_overridden else registry._backend).op_binary_crossentropy(target, output, from_logits)
  except Exception as error: return recover(error, op, {"target": target, "output": output, "from_logits": from_logits})
 return op_binary_crossentropy, 1

def op_categorical_crossentropy(op):
 def op_categorical_crossentropy(target, output, from_logits, axis):
  try:
   if from_logits is not False and from_logits is not True: from_logits = bool_flag(from_logits, "from_logits")
   return (active() if registry.is_overridden else registry._backend).op_categorical_crossentropy(target, output, from_logits, axis)
  except Exception as error: return recover(error, op, {"target": target, "output": output, "from_logits": from_logits, "axis": axis})
 return op_categorical_crossentropy, 1

def op_sparse_categorical_crossentropy(op):
 def op_sparse_categorical_crossentropy(target, output, from_logits, axis):
  try:
   if from_logits is not False and from_logits is not True: from_logits = bool_flag(from_logits, "from_logits")
   return op(target, output, from_logits, axis)
  except Exception as error: return recover(error, op, {"target": target, "output": output, "from_logits": from_logits, "axis": axis})
 return op_sparse_categorical_crossentropy, 1

def op_ctc_loss(op):
 def op_ctc_loss(target, output, target_length, output_length, mask_index):
  try: return op(target, output, target_length, output_length, mask_index)
  except Exception as error: return recover(error, op, {"target": target, "output": output, "target_length": target_length, "output_length": output_length, "mask_index": mask_index})
 return op_ctc_loss, 1

def op_ctc_decode(op):
 def op_ctc_decode(inputs, sequence_lengths, strategy, beam_width, top_paths, merge_repeated, mask_index):
  try:
   if merge_repeated is not False and merge_repeated is not True: merge_repeated = bool_flag(merge_repeated, "merge_repeated")
   return op(inputs, sequence_lengths, strategy, beam_width, top_paths, merge_repeated, mask_index)
  except Exception as error: return recover(error, op, {"inputs": inputs, "sequence_lengths": sequence_lengths, "strategy": strategy, "beam_width": beam_width, "top_paths": top_paths, "merge_repeated": merge_repeated, "mask_index": mask_index})
 return op_ctc_decode, 1

def op_psnr(op):
 def op_psnr(x1, x2, max_val):
  try: return (active() if registry.is_overridden else registry._backend).op_psnr(x1, x2, max_val)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "max_val": max_val})
 return op_psnr, 2

def op_normalize(op):
 def op_normalize(x, axis, order, epsilon):
  try: return op(x, axis, order, epsilon)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "order": order, "epsilon": epsilon})
 return op_normalize, 1

def op_batch_normalization(op):
 def op_batch_normalization(x, mean, variance, axis, offset, scale, epsilon):
  try: return op(x, mean, variance, axis, offset, scale, epsilon)
  except Exception as error: return recover(error, op, {"x": x, "mean": mean, "variance": variance, "axis": axis, "offset": offset, "scale": scale, "epsilon": epsilon})
 return op_batch_normalization, 1

def op_batch_normalization_with_moments(op):
 def op_batch_normalization_with_moments(x, axis, offset, scale, epsilon, moving_mean, moving_variance, momentum, correction):
  try: return (active() if registry.is_overridden else registry._backend).op_batch_normalization_with_moments(x, axis, offset, scale, epsilon, moving_mean, moving_variance, momentum, correction)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "offset": offset, "scale": scale, "epsilon": epsilon, "moving_mean": moving_mean, "moving_variance": moving_variance, "momentum": momentum, "correction": correction})
 return op_batch_normalization_with_moments, 2

def op_layer_normalization(op):
 def op_layer_normalization(x, gamma, beta, axis, epsilon, **kwargs):
  try: return (active() if registry.is_overridden else registry._backend).op_layer_normalization(x, gamma, beta, axis, args.shift(epsilon, **kwargs))
  except Exception as error: return recover(error, op, {"x": x, "gamma": gamma, "beta": beta, "axis": axis, "epsilon": epsilon, **kwargs})
 return op_layer_normalization, 1

def op_group_normalization(op):
 def op_group_normalization(x, groups, gamma, beta, axis, epsilon):
  try: return (active() if registry.is_overridden else registry._backend).op_group_normalization(x, groups, gamma, beta, axis, epsilon)
  except Exception as error: return recover(error, op, {"x": x, "groups": groups, "gamma": gamma, "beta": beta, "axis": axis, "epsilon": epsilon})
 return op_group_normalization, 2

def op_rms_normalization(op):
 def op_rms_normalization(x, scale, axis, epsilon):
  try: return (active() if registry.is_overridden else registry._backend).op_rms_normalization(x, scale, axis, args.shift(epsilon))
  except Exception as error: return recover(error, op, {"x": x, "scale": scale, "axis": axis, "epsilon": epsilon})
 return op_rms_normalization, 1

def op_polyval(op):
 def op_polyval(p, x):
  try: return (active() if registry.is_overridden else registry._backend).op_polyval(p, x)
  except Exception as error: return recover(error, op, {"p": p, "x": x})
 return op_polyval, 2

def op_poly(op):
 def op_poly(x):
  try: return (active() if registry.is_overridden else registry._backend).op_poly(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_poly, 1

def op_roots(op):
 def op_roots(p):
  try: return (active() if registry.is_overridden else registry._backend).op_roots(p)
  except Exception as error: return recover(error, op, {"p": p})
 return op_roots, 1

def op_polyfit(op):
 def op_polyfit(x, y, deg, rcond, *, w, cov):
  try: return (active() if registry.is_overridden else registry._backend).op_polyfit(x, y, deg, rcond, w=w, cov=cov)
  except Exception as error: return recover(error, op, {"x": x, "y": y, "deg": deg, "rcond": rcond, "w": w, "cov": cov})
 return op_polyfit, 1

def op_average_pool(op):
 def op_average_pool(inputs, pool_size, strides, padding, data_format, ceil_mode, count_include_pad):
  try:
   if ceil_mode is not False and ceil_mode is not True: ceil_mode = bool_flag(ceil_mode, "ceil_mode")
   if count_include_pad is not False and count_include_pad is not True: count_include_pad = bool_flag(count_include_pad, "count_include_pad")
   return op(inputs, pool_size, strides, padding, data_format, ceil_mode, count_include_pad)
  except Exception as error: return recover(error, op, {"inputs": inputs, "pool_size": pool_size, "strides": strides, "padding": padding, "data_format": data_format, "ceil_mode": ceil_mode, "count_include_pad": count_include_pad})
 return op_average_pool, 1

def op_max_pool(op):
 def op_max_pool(inputs, pool_size, strides, padding, data_format, ceil_mode):
  try:
   if ceil_mode is not False and ceil_mode is not True: ceil_mode = bool_flag(ceil_mode, "ceil_mode")
   return op(inputs, pool_size, strides, padding, data_format, ceil_mode)
  except Exception as error: return recover(error, op, {"inputs": inputs, "pool_size": pool_size, "strides": strides, "padding": padding, "data_format": data_format, "ceil_mode": ceil_mode})
 return op_max_pool, 1

def op_adaptive_average_pool(op):
 def op_adaptive_average_pool(inputs, output_size, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_adaptive_average_pool(inputs, output_size, windows.data_format(data_format))
  except Exception as error: return recover(error, op, {"inputs": inputs, "output_size": output_size, "data_format": data_format})
 return op_adaptive_average_pool, 1

def op_adaptive_max_pool(op):
 def op_adaptive_max_pool(inputs, output_size, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_adaptive_max_pool(inputs, output_size, windows.data_format(data_format))
  except Exception as error: return recover(error, op, {"inputs": inputs, "output_size": output_size, "data_format": data_format})
 return op_adaptive_max_pool, 1

def op_depth_to_space(op):
 def op_depth_to_space(x, block_size, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_depth_to_space(x, block_size, data_format)
  except Exception as error: return recover(error, op, {"x": x, "block_size": block_size, "data_format": data_format})
 return op_depth_to_space, 1

def op_space_to_depth(op):
 def op_space_to_depth(x, block_size, data_format):
  try: return (active() if registry.is_overridden else registry._backend).op_space_to_depth(x, block_size, data_format)
  except Exception as error: return recover(error, op, {"x": x, "block_size": block_size, "data_format": data_format})
 return op_space_to_depth, 1

def op_matmul(op):
 def op_matmul(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_matmul(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_matmul, 1

def op_einsum(op):
 def op_einsum(subscripts, *operands, **kwargs):
  try: return op(subscripts, *operands, **kwargs)
  except Exception as error: return recover(error, op, {"subscripts": subscripts, "operands": operands, **kwargs})
 return op_einsum, 1

def op_tensordot(op):
 def op_tensordot(x1, x2, axes):
  try: return (active() if registry.is_overridden else registry._backend).op_tensordot(x1, x2, axes)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "axes": axes})
 return op_tensordot, 1

def op_trace(op):
 def op_trace(x, offset, axis1, axis2):
  try: return (active() if registry.is_overridden else registry._backend).op_trace(x, offset, axis1, axis2)
  except Exception as error: return recover(error, op, {"x": x, "offset": offset, "axis1": axis1, "axis2": axis2})
 return op_trace, 1

def op_dot(op):
 def op_dot(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_dot(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_dot, 1

def op_inner(op):
 def op_inner(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_inner(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_inner, 1

def op_outer(op):
 def op_outer(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_outer(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_outer, 3

def op_vdot(op):
 def op_vdot(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_vdot(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_vdot, 1

def op_kron(op):
 def op_kron(x1, x2, *more):
  try: return (active() if registry.is_overridden else registry._backend).op_kron(x1, x2, *more)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "more": more})
 return op_kron, 1

def op_cross(op):
 def op_cross(x1, x2, axisa, axisb, axisc, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_cross(x1, x2, axisa, axisb, axisc, axis)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "axisa": axisa, "axisb": axisb, "axisc": axisc, "axis": axis})
 return op_cross, 3

def op_vander(op):
 def op_vander(x, N, increasing):
  try:
   if increasing is not False and increasing is not True: increasing = bool_flag(increasing, "increasing")
   return (active() if registry.is_overridden else registry._backend).op_vander(x, N, increasing)
  except Exception as error: return recover(error, op, {"x": x, "N": N, "increasing": increasing})
 return op_vander, 3

def op_rearrange(op):
 def op_rearrange(tensor, pattern, **axes_lengths):
  try: return (active() if registry.is_overridden else registry._backend).op_rearrange(tensor, pattern, **axes_lengths)
  except Exception as error: return recover(error, op, {"tensor": tensor, "pattern": pattern, **axes_lengths})
 return op_rearrange, 1

def op_sum(op):
 def op_sum(x, axis, keepdims, dtype):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   if dtype is not None: return op(x, axis, keepdims, dtype)
   return (active() if registry.is_overridden else registry._backend).op_sum(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims, "dtype": dtype})
 return op_sum, 1

def op_prod(op):
 def op_prod(x, axis, keepdims, dtype):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_prod(x, axis, keepdims, dtypes.name_or_none(dtype))
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims, "dtype": dtype})
 return op_prod, 1

def op_mean(op):
 def op_mean(x, axis, keepdims, dtype):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_mean(x if dtype is None else (active() if registry.is_overridden else registry._backend).op_cast(x, dtypes.of_average(dtype)), axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims, "dtype": dtype})
 return op_mean, 1

def op_var(op):
 def op_var(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_var(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_var, 1

def op_std(op):
 def op_std(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_std(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_std, 1

def op_max(op):
 def op_max(x, axis, keepdims, initial):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_max(x, axis, keepdims, initial)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims, "initial": initial})
 return op_max, 1

def op_min(op):
 def op_min(x, axis, keepdims, initial):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_min(x, axis, keepdims, initial)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims, "initial": initial})
 return op_min, 1

def op_argmax(op):
 def op_argmax(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_argmax(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_argmax, 1

def op_argmin(op):
 def op_argmin(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_argmin(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_argmin, 1

def op_all(op):
 def op_all(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_all(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_all, 1

def op_any(op):
 def op_any(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_any(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_any, 1

def op_logsumexp(op):
 def op_logsumexp(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_logsumexp(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_logsumexp, 1

def op_cumsum(op):
 def op_cumsum(x, axis, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_cumsum(x, axis, dtypes.name_or_none(dtype))
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "dtype": dtype})
 return op_cumsum, 1

def op_cumprod(op):
 def op_cumprod(x, axis, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_cumprod(x, axis, dtypes.name_or_none(dtype))
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "dtype": dtype})
 return op_cumprod, 1

def op_amax(op):
 def op_amax(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_amax(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_amax, 1

def op_amin(op):
 def op_amin(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_amin(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_amin, 1

def op_count_nonzero(op):
 def op_count_nonzero(x, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_count_nonzero(x, axis)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis})
 return op_count_nonzero, 2

def op_ptp(op):
 def op_ptp(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_ptp(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_ptp, 3

def op_average(op):
 def op_average(x, axis, weights):
  try: return (active() if registry.is_overridden else registry._backend).op_average(x, axis, weights)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "weights": weights})
 return op_average, 1

def op_diff(op):
 def op_diff(a, n, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_diff(a, n, axis)
  except Exception as error: return recover(error, op, {"a": a, "n": n, "axis": axis})
 return op_diff, 3

def op_interp(op):
 def op_interp(x, xp, fp, left, right, period):
  try: return (active() if registry.is_overridden else registry._backend).op_interp(x, xp, fp, left, right, period)
  except Exception as error: return recover(error, op, {"x": x, "xp": xp, "fp": fp, "left": left, "right": right, "period": period})
 return op_interp, 2

def op_gradient(op):
 def op_gradient(f, *varargs, axis, edge_order):
  try: return (active() if registry.is_overridden else registry._backend).op_gradient(f, *varargs, axis=axis, edge_order=edge_order)
  except Exception as error: return recover(error, op, {"f": f, "varargs": varargs, "axis": axis, "edge_order": edge_order})
 return op_gradient, 2

def op_unwrap(op):
 def op_unwrap(x, discont, axis, period):
  try: return (active() if registry.is_overridden else registry._backend).op_unwrap(x, discont, axis, period)
  except Exception as error: return recover(error, op, {"x": x, "discont": discont, "axis": axis, "period": period})
 return op_unwrap, 2

def op_segment_sum(op):
 def op_segment_sum(data, segment_ids, num_segments, sorted):
  try:
   if sorted is not False and sorted is not True: sorted = bool_flag(sorted, "sorted")
   return (active() if registry.is_overridden else registry._backend).op_segment_sum(*args.segments((active() if registry.is_overridden else registry._backend), data, segment_ids, num_segments))
  except Exception as error: return recover(error, op, {"data": data, "segment_ids": segment_ids, "num_segments": num_segments, "sorted": sorted})
 return op_segment_sum, 1

def op_segment_max(op):
 def op_segment_max(data, segment_ids, num_segments, sorted):
  try:
   if sorted is not False and sorted is not True: sorted = bool_flag(sorted, "sorted")
   return (active() if registry.is_overridden else registry._backend).op_segment_max(*args.segments((active() if registry.is_overridden else registry._backend), data, segment_ids, num_segments))
  except Exception as error: return recover(error, op, {"data": data, "segment_ids": segment_ids, "num_segments": num_segments, "sorted": sorted})
 return op_segment_max, 1

def op_segment_min(op):
 def op_segment_min(data, segment_ids, num_segments, sorted):
  try:
   if sorted is not False and sorted is not True: sorted = bool_flag(sorted, "sorted")
   return (active() if registry.is_overridden else registry._backend).op_segment_min(*args.segments((active() if registry.is_overridden else registry._backend), data, segment_ids, num_segments))
  except Exception as error: return recover(error, op, {"data": data, "segment_ids": segment_ids, "num_segments": num_segments, "sorted": sorted})
 return op_segment_min, 1

def op_segment_prod(op):
 def op_segment_prod(data, segment_ids, num_segments, sorted):
  try:
   if sorted is not False and sorted is not True: sorted = bool_flag(sorted, "sorted")
   return (active() if registry.is_overridden else registry._backend).op_segment_prod(*args.segments((active() if registry.is_overridden else registry._backend), data, segment_ids, num_segments))
  except Exception as error: return recover(error, op, {"data": data, "segment_ids": segment_ids, "num_segments": num_segments, "sorted": sorted})
 return op_segment_prod, 1

def op_reshape(op):
 def op_reshape(x, newshape):
  try: return (active() if registry.is_overridden else registry._backend).op_reshape(x, args.shape(newshape, 'newshape'))
  except Exception as error: return recover(error, op, {"x": x, "newshape": newshape})
 return op_reshape, 1

def op_transpose(op):
 def op_transpose(x, axes):
  try: return (active() if registry.is_overridden else registry._backend).op_transpose(x, axes)
  except Exception as error: return recover(error, op, {"x": x, "axes": axes})
 return op_transpose, 1

def op_swapaxes(op):
 def op_swapaxes(x, axis1, axis2):
  try: return (active() if registry.is_overridden else registry._backend).op_swapaxes(x, axis1, axis2)
  except Exception as error: return recover(error, op, {"x": x, "axis1": axis1, "axis2": axis2})
 return op_swapaxes, 1

def op_moveaxis(op):
 def op_moveaxis(x, source, destination):
  try: return (active() if registry.is_overridden else registry._backend).op_moveaxis(x, source, destination)
  except Exception as error: return recover(error, op, {"x": x, "source": source, "destination": destination})
 return op_moveaxis, 1

def op_expand_dims(op):
 def op_expand_dims(x, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_expand_dims(x, axis)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis})
 return op_expand_dims, 1

def op_squeeze(op):
 def op_squeeze(x, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_squeeze(x, axis)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis})
 return op_squeeze, 1

def op_concatenate(op):
 def op_concatenate(xs, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_concatenate(xs, axis)
  except Exception as error: return recover(error, op, {"xs": xs, "axis": axis})
 return op_concatenate, 1

def op_stack(op):
 def op_stack(x, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_stack(x, axis)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis})
 return op_stack, 1

def op_split(op):
 def op_split(x, indices_or_sections, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_split(x, indices_or_sections, axis)
  except Exception as error: return recover(error, op, {"x": x, "indices_or_sections": indices_or_sections, "axis": axis})
 return op_split, 1

def op_broadcast_to(op):
 def op_broadcast_to(x, shape):
  try: return (active() if registry.is_overridden else registry._backend).op_broadcast_to(x, args.size(shape))
  except Exception as error: return recover(error, op, {"x": x, "shape": shape})
 return op_broadcast_to, 1

def op_flip(op):
 def op_flip(x, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_flip(x, axis)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis})
 return op_flip, 1

def op_tile(op):
 def op_tile(x, repeats):
  try: return (active() if registry.is_overridden else registry._backend).op_tile(x, args.countable(args.size(repeats, 'repeats'), 'repeats'))
  except Exception as error: return recover(error, op, {"x": x, "repeats": repeats})
 return op_tile, 1

def op_repeat(op):
 def op_repeat(x, repeats, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_repeat(x, args.repeats(repeats), axis)
  except Exception as error: return recover(error, op, {"x": x, "repeats": repeats, "axis": axis})
 return op_repeat, 1

def op_roll(op):
 def op_roll(x, shift, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_roll(x, shift, axis)
  except Exception as error: return recover(error, op, {"x": x, "shift": shift, "axis": axis})
 return op_roll, 1

def op_pad(op):
 def op_pad(x, pad_width, mode, constant_values):
  try: return op(x, pad_width, mode, constant_values)
  except Exception as error: return recover(error, op, {"x": x, "pad_width": pad_width, "mode": mode, "constant_values": constant_values})
 return op_pad, 1

def op_unstack(op):
 def op_unstack(x, num, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_unstack(x, num, axis)
  except Exception as error: return recover(error, op, {"x": x, "num": num, "axis": axis})
 return op_unstack, 1

def op_diagonal(op):
 def op_diagonal(x, offset, axis1, axis2):
  try: return (active() if registry.is_overridden else registry._backend).op_diagonal(x, args.integer(offset, 'offset'), axis1, axis2)
  except Exception as error: return recover(error, op, {"x": x, "offset": offset, "axis1": axis1, "axis2": axis2})
 return op_diagonal, 1

def op_ravel(op):
 def op_ravel(x):
  try: return (active() if registry.is_overridden else registry._backend).op_ravel(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_ravel, 1

def op_ndim(op):
 def op_ndim(x):
  try: return (active() if registry.is_overridden else registry._backend).op_ndim(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_ndim, 1

def op_size(op):
 def op_size(x):
  try: return (active() if registry.is_overridden else registry._backend).op_size(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_size, 1

def op_hstack(op):
 def op_hstack(xs):
  try: return (active() if registry.is_overridden else registry._backend).op_hstack(xs)
  except Exception as error: return recover(error, op, {"xs": xs})
 return op_hstack, 1

def op_vstack(op):
 def op_vstack(xs):
  try: return (active() if registry.is_overridden else registry._backend).op_vstack(xs)
  except Exception as error: return recover(error, op, {"xs": xs})
 return op_vstack, 1

def op_dstack(op):
 def op_dstack(xs):
  try: return (active() if registry.is_overridden else registry._backend).op_dstack(xs)
  except Exception as error: return recover(error, op, {"xs": xs})
 return op_dstack, 1

def op_column_stack(op):
 def op_column_stack(xs):
  try: return (active() if registry.is_overridden else registry._backend).op_column_stack(xs)
  except Exception as error: return recover(error, op, {"xs": xs})
 return op_column_stack, 1

def op_append(op):
 def op_append(x1, x2, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_append(x1, x2, axis)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "axis": axis})
 return op_append, 1

def op_array_split(op):
 def op_array_split(x, indices_or_sections, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_array_split(x, indices_or_sections, axis)
  except Exception as error: return recover(error, op, {"x": x, "indices_or_sections": indices_or_sections, "axis": axis})
 return op_array_split, 1

def op_hsplit(op):
 def op_hsplit(x, indices_or_sections):
  try: return (active() if registry.is_overridden else registry._backend).op_hsplit(x, indices_or_sections)
  except Exception as error: return recover(error, op, {"x": x, "indices_or_sections": indices_or_sections})
 return op_hsplit, 1

def op_vsplit(op):
 def op_vsplit(x, indices_or_sections):
  try: return (active() if registry.is_overridden else registry._backend).op_vsplit(x, indices_or_sections)
  except Exception as error: return recover(error, op, {"x": x, "indices_or_sections": indices_or_sections})
 return op_vsplit, 1

def op_dsplit(op):
 def op_dsplit(x, indices_or_sections):
  try: return (active() if registry.is_overridden else registry._backend).op_dsplit(x, indices_or_sections)
  except Exception as error: return recover(error, op, {"x": x, "indices_or_sections": indices_or_sections})
 return op_dsplit, 1

def op_fliplr(op):
 def op_fliplr(x):
  try: return (active() if registry.is_overridden else registry._backend).op_fliplr(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_fliplr, 1

def op_flipud(op):
 def op_flipud(x):
  try: return (active() if registry.is_overridden else registry._backend).op_flipud(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_flipud, 1

def op_rot90(op):
 def op_rot90(array, k, axes):
  try: return (active() if registry.is_overridden else registry._backend).op_rot90(array, k, axes)
  except Exception as error: return recover(error, op, {"array": array, "k": k, "axes": axes})
 return op_rot90, 2

def op_broadcast_arrays(op):
 def op_broadcast_arrays(*x):
  try: return (active() if registry.is_overridden else registry._backend).op_broadcast_arrays(*x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_broadcast_arrays, 1

def op_broadcast_shapes(op):
 def op_broadcast_shapes(*shapes):
  try: return (active() if registry.is_overridden else registry._backend).op_broadcast_shapes(*shapes)
  except Exception as error: return recover(error, op, {"shapes": shapes})
 return op_broadcast_shapes, 1

def op_meshgrid(op):
 def op_meshgrid(*x, indexing):
  try: return (active() if registry.is_overridden else registry._backend).op_meshgrid(*x, indexing=indexing)
  except Exception as error: return recover(error, op, {"x": x, "indexing": indexing})
 return op_meshgrid, 1

def op_diag(op):
 def op_diag(x, k):
  try: return (active() if registry.is_overridden else registry._backend).op_diag(x, k)
  except Exception as error: return recover(error, op, {"x": x, "k": k})
 return op_diag, 2

def op_diagflat(op):
 def op_diagflat(x, k):
  try: return (active() if registry.is_overridden else registry._backend).op_diagflat(x, k)
  except Exception as error: return recover(error, op, {"x": x, "k": k})
 return op_diagflat, 1

def op_tri(op):
 def op_tri(N, M, k, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_tri(N, M, k, dtype)
  except Exception as error: return recover(error, op, {"N": N, "M": M, "k": k, "dtype": dtype})
 return op_tri, 1

def op_tril(op):
 def op_tril(x, k):
  try: return (active() if registry.is_overridden else registry._backend).op_tril(x, k)
  except Exception as error: return recover(error, op, {"x": x, "k": k})
 return op_tril, 2

def op_triu(op):
 def op_triu(x, k):
  try: return (active() if registry.is_overridden else registry._backend).op_triu(x, k)
  except Exception as error: return recover(error, op, {"x": x, "k": k})
 return op_triu, 2

def op_set_diag(op):
 def op_set_diag(x, diagonal):
  try: return (active() if registry.is_overridden else registry._backend).op_set_diag(x, diagonal)
  except Exception as error: return recover(error, op, {"x": x, "diagonal": diagonal})
 return op_set_diag, 1

def op_tril_indices(op):
 def op_tril_indices(n, k, m):
  try: return (active() if registry.is_overridden else registry._backend).op_tril_indices(n, k, m)
  except Exception as error: return recover(error, op, {"n": n, "k": k, "m": m})
 return op_tril_indices, 1

def op_triu_indices(op):
 def op_triu_indices(n, k, m):
  try: return (active() if registry.is_overridden else registry._backend).op_triu_indices(n, k, m)
  except Exception as error: return recover(error, op, {"n": n, "k": k, "m": m})
 return op_triu_indices, 1

def op_block_diag(op):
 def op_block_diag(*arrs):
  try: return (active() if registry.is_overridden else registry._backend).op_block_diag(*arrs)
  except Exception as error: return recover(error, op, {"arrs": arrs})
 return op_block_diag, 1

def op_fftn(op):
 def op_fftn(x, s, axes, norm):
  try: return op(x, s, axes, norm)
  except Exception as error: return recover(error, op, {"x": x, "s": s, "axes": axes, "norm": norm})
 return op_fftn, 1

def op_ifftn(op):
 def op_ifftn(x, s, axes, norm):
  try: return op(x, s, axes, norm)
  except Exception as error: return recover(error, op, {"x": x, "s": s, "axes": axes, "norm": norm})
 return op_ifftn, 1

def op_rfftn(op):
 def op_rfftn(x, s, axes, norm):
  try: return op(x, s, axes, norm)
  except Exception as error: return recover(error, op, {"x": x, "s": s, "axes": axes, "norm": norm})
 return op_rfftn, 1

def op_irfftn(op):
 def op_irfftn(x, s, axes, norm):
  try: return op(x, s, axes, norm)
  except Exception as error: return recover(error, op, {"x": x, "s": s, "axes": axes, "norm": norm})
 return op_irfftn, 1

def op_extract_sequences(op):
 def op_extract_sequences(x, sequence_length, sequence_stride):
  try: return op(x, sequence_length, sequence_stride)
  except Exception as error: return recover(error, op, {"x": x, "sequence_length": sequence_length, "sequence_stride": sequence_stride})
 return op_extract_sequences, 1

def op_fft(op):
 def op_fft(x, n, axis, norm):
  try: return (active() if registry.is_overridden else registry._backend).op_fft(x, n, axis, norm)
  except Exception as error: return recover(error, op, {"x": x, "n": n, "axis": axis, "norm": norm})
 return op_fft, 1

def op_ifft(op):
 def op_ifft(x, n, axis, norm):
  try: return (active() if registry.is_overridden else registry._backend).op_ifft(x, n, axis, norm)
  except Exception as error: return recover(error, op, {"x": x, "n": n, "axis": axis, "norm": norm})
 return op_ifft, 1

def op_fft2(op):
 def op_fft2(x):
  try: return (active() if registry.is_overridden else registry._backend).op_fft2(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_fft2, 1

def op_ifft2(op):
 def op_ifft2(x):
  try: return (active() if registry.is_overridden else registry._backend).op_ifft2(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_ifft2, 1

def op_rfft(op):
 def op_rfft(x, fft_length):
  try: return (active() if registry.is_overridden else registry._backend).op_rfft(x, fft_length)
  except Exception as error: return recover(error, op, {"x": x, "fft_length": fft_length})
 return op_rfft, 1

def op_irfft(op):
 def op_irfft(x, fft_length):
  try: return (active() if registry.is_overridden else registry._backend).op_irfft(x, fft_length)
  except Exception as error: return recover(error, op, {"x": x, "fft_length": fft_length})
 return op_irfft, 1

def op_stft(op):
 def op_stft(x, sequence_length, sequence_stride, fft_length, window, center):
  try:
   if center is not False and center is not True: center = bool_flag(center, "center")
   return (active() if registry.is_overridden else registry._backend).op_stft(x, sequence_length, sequence_stride, fft_length, window, center)
  except Exception as error: return recover(error, op, {"x": x, "sequence_length": sequence_length, "sequence_stride": sequence_stride, "fft_length": fft_length, "window": window, "center": center})
 return op_stft, 1

def op_istft(op):
 def op_istft(x, sequence_length, sequence_stride, fft_length, length, window, center):
  try:
   if center is not False and center is not True: center = bool_flag(center, "center")
   return (active() if registry.is_overridden else registry._backend).op_istft(x, sequence_length, sequence_stride, fft_length, length, window, center)
  except Exception as error: return recover(error, op, {"x": x, "sequence_length": sequence_length, "sequence_stride": sequence_stride, "fft_length": fft_length, "length": length, "window": window, "center": center})
 return op_istft, 1

def op_hfft(op):
 def op_hfft(x, n, axis, norm):
  try: return (active() if registry.is_overridden else registry._backend).op_hfft(x, n, axis, norm)
  except Exception as error: return recover(error, op, {"x": x, "n": n, "axis": axis, "norm": norm})
 return op_hfft, 1

def op_ihfft(op):
 def op_ihfft(x, n, axis, norm):
  try: return (active() if registry.is_overridden else registry._backend).op_ihfft(x, n, axis, norm)
  except Exception as error: return recover(error, op, {"x": x, "n": n, "axis": axis, "norm": norm})
 return op_ihfft, 1

def op_fftfreq(op):
 def op_fftfreq(n, d, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_fftfreq(n, d, dtype)
  except Exception as error: return recover(error, op, {"n": n, "d": d, "dtype": dtype})
 return op_fftfreq, 1

def op_rfftfreq(op):
 def op_rfftfreq(n, d, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_rfftfreq(n, d, dtype)
  except Exception as error: return recover(error, op, {"n": n, "d": d, "dtype": dtype})
 return op_rfftfreq, 1

def op_fftshift(op):
 def op_fftshift(x, axes):
  try: return (active() if registry.is_overridden else registry._backend).op_fftshift(x, axes)
  except Exception as error: return recover(error, op, {"x": x, "axes": axes})
 return op_fftshift, 1

def op_ifftshift(op):
 def op_ifftshift(x, axes):
  try: return (active() if registry.is_overridden else registry._backend).op_ifftshift(x, axes)
  except Exception as error: return recover(error, op, {"x": x, "axes": axes})
 return op_ifftshift, 1

def op_sort(op):
 def op_sort(x, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_sort(x, axis)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis})
 return op_sort, 1

def op_argsort(op):
 def op_argsort(x, axis, descending):
  try:
   if descending is not False and descending is not True: descending = bool_flag(descending, "descending")
   return op(x, axis, descending)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "descending": descending})
 return op_argsort, 1

def op_searchsorted(op):
 def op_searchsorted(sorted_sequence, values, side):
  try: return (active() if registry.is_overridden else registry._backend).op_searchsorted(sorted_sequence, values, args.choice(side, ('left', 'right'), 'side'))
  except Exception as error: return recover(error, op, {"sorted_sequence": sorted_sequence, "values": values, "side": side})
 return op_searchsorted, 1

def op_top_k(op):
 def op_top_k(x, k, sorted, is_stable):
  try:
   if sorted is not False and sorted is not True: sorted = bool_flag(sorted, "sorted")
   if is_stable is not False and is_stable is not True: is_stable = bool_flag(is_stable, "is_stable")
   return (active() if registry.is_overridden else registry._backend).op_top_k(x, args.count(k, 'k'), sorted)
  except Exception as error: return recover(error, op, {"x": x, "k": k, "sorted": sorted, "is_stable": is_stable})
 return op_top_k, 1

def op_digitize(op):
 def op_digitize(x, bins):
  try: return (active() if registry.is_overridden else registry._backend).op_digitize(x, bins)
  except Exception as error: return recover(error, op, {"x": x, "bins": bins})
 return op_digitize, 1

def op_bincount(op):
 def op_bincount(x, weights, minlength, sparse):
  try:
   if sparse is not False and sparse is not True: sparse = bool_flag(sparse, "sparse")
   return op(x, weights, minlength, sparse)
  except Exception as error: return recover(error, op, {"x": x, "weights": weights, "minlength": minlength, "sparse": sparse})
 return op_bincount, 1

def op_in_top_k(op):
 def op_in_top_k(targets, predictions, k):
  try: return (active() if registry.is_overridden else registry._backend).op_in_top_k(targets, predictions, k)
  except Exception as error: return recover(error, op, {"targets": targets, "predictions": predictions, "k": k})
 return op_in_top_k, 1

def op_argpartition(op):
 def op_argpartition(x, kth, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_argpartition(x, kth, axis)
  except Exception as error: return recover(error, op, {"x": x, "kth": kth, "axis": axis})
 return op_argpartition, 1

def op_unique(op):
 def op_unique(x, sorted, return_index, return_inverse, return_counts, axis, size, fill_value):
  try:
   if sorted is not False and sorted is not True: sorted = bool_flag(sorted, "sorted")
   if return_index is not False and return_index is not True: return_index = bool_flag(return_index, "return_index")
   if return_inverse is not False and return_inverse is not True: return_inverse = bool_flag(return_inverse, "return_inverse")
   if return_counts is not False and return_counts is not True: return_counts = bool_flag(return_counts, "return_counts")
   return (active() if registry.is_overridden else registry._backend).op_unique(x, sorted, return_index, return_inverse, return_counts, axis, size, fill_value)
  except Exception as error: return recover(error, op, {"x": x, "sorted": sorted, "return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts, "axis": axis, "size": size, "fill_value": fill_value})
 return op_unique, 1

def op_lexsort(op):
 def op_lexsort(keys, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_lexsort(keys, axis)
  except Exception as error: return recover(error, op, {"keys": keys, "axis": axis})
 return op_lexsort, 1

def op_isin(op):
 def op_isin(x1, x2, assume_unique, invert):
  try:
   if assume_unique is not False and assume_unique is not True: assume_unique = bool_flag(assume_unique, "assume_unique")
   if invert is not False and invert is not True: invert = bool_flag(invert, "invert")
   return (active() if registry.is_overridden else registry._backend).op_isin(x1, x2, assume_unique, invert)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "assume_unique": assume_unique, "invert": invert})
 return op_isin, 2

def op_histogram(op):
 def op_histogram(x, bins, range):
  try: return (active() if registry.is_overridden else registry._backend).op_histogram(x, bins, range)
  except Exception as error: return recover(error, op, {"x": x, "bins": bins, "range": range})
 return op_histogram, 1

def op_setdiff1d(op):
 def op_setdiff1d(x1, x2, assume_unique):
  try:
   if assume_unique is not False and assume_unique is not True: assume_unique = bool_flag(assume_unique, "assume_unique")
   return (active() if registry.is_overridden else registry._backend).op_setdiff1d(x1, x2, assume_unique)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "assume_unique": assume_unique})
 return op_setdiff1d, 1

def op_union1d(op):
 def op_union1d(x1, x2):
  try: return (active() if registry.is_overridden else registry._backend).op_union1d(x1, x2)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2})
 return op_union1d, 1

def op_intersect1d(op):
 def op_intersect1d(x1, x2, assume_unique, return_indices):
  try:
   if assume_unique is not False and assume_unique is not True: assume_unique = bool_flag(assume_unique, "assume_unique")
   if return_indices is not False and return_indices is not True: return_indices = bool_flag(return_indices, "return_indices")
   return (active() if registry.is_overridden else registry._backend).op_intersect1d(x1, x2, assume_unique, return_indices)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "assume_unique": assume_unique, "return_indices": return_indices})
 return op_intersect1d, 1

def op_logspace(op):
 def op_logspace(start, stop, num, endpoint, base, dtype, axis):
  try:
   if endpoint is not False and endpoint is not True: endpoint = bool_flag(endpoint, "endpoint")
   return (active() if registry.is_overridden else registry._backend).op_logspace(start, stop, num, endpoint, base, dtype, axis)
  except Exception as error: return recover(error, op, {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "base": base, "dtype": dtype, "axis": axis})
 return op_logspace, 1

def op_geomspace(op):
 def op_geomspace(start, stop, num, endpoint, dtype, axis):
  try:
   if endpoint is not False and endpoint is not True: endpoint = bool_flag(endpoint, "endpoint")
   return (active() if registry.is_overridden else registry._backend).op_geomspace(start, stop, num, endpoint, dtype, axis)
  except Exception as error: return recover(error, op, {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "dtype": dtype, "axis": axis})
 return op_geomspace, 1

def op_erf(op):
 def op_erf(x):
  try: return (active() if registry.is_overridden else registry._backend).op_erf(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_erf, 1

def op_erfc(op):
 def op_erfc(x):
  try: return (active() if registry.is_overridden else registry._backend).op_erfc(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_erfc, 1

def op_erfinv(op):
 def op_erfinv(x):
  try: return (active() if registry.is_overridden else registry._backend).op_erfinv(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_erfinv, 1

def op_i0(op):
 def op_i0(x):
  try: return (active() if registry.is_overridden else registry._backend).op_i0(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_i0, 1

def op_lgamma(op):
 def op_lgamma(x):
  try: return (active() if registry.is_overridden else registry._backend).op_lgamma(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_lgamma, 1

def op_digamma(op):
 def op_digamma(x):
  try: return (active() if registry.is_overridden else registry._backend).op_digamma(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_digamma, 1

def op_polygamma(op):
 def op_polygamma(n, x):
  try: return (active() if registry.is_overridden else registry._backend).op_polygamma(n, x)
  except Exception as error: return recover(error, op, {"n": n, "x": x})
 return op_polygamma, 1

def op_gammainc(op):
 def op_gammainc(a, x):
  try: return (active() if registry.is_overridden else registry._backend).op_gammainc(a, x)
  except Exception as error: return recover(error, op, {"a": a, "x": x})
 return op_gammainc, 1

def op_gammaincc(op):
 def op_gammaincc(a, x):
  try: return (active() if registry.is_overridden else registry._backend).op_gammaincc(a, x)
  except Exception as error: return recover(error, op, {"a": a, "x": x})
 return op_gammaincc, 1

def op_betainc(op):
 def op_betainc(a, b, x):
  try: return (active() if registry.is_overridden else registry._backend).op_betainc(a, b, x)
  except Exception as error: return recover(error, op, {"a": a, "b": b, "x": x})
 return op_betainc, 1

def op_gamma(op):
 def op_gamma(x):
  try: return (active() if registry.is_overridden else registry._backend).op_gamma(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_gamma, 1

def op_betaln(op):
 def op_betaln(a, b):
  try: return (active() if registry.is_overridden else registry._backend).op_betaln(a, b)
  except Exception as error: return recover(error, op, {"a": a, "b": b})
 return op_betaln, 1

def op_beta(op):
 def op_beta(a, b):
  try: return (active() if registry.is_overridden else registry._backend).op_beta(a, b)
  except Exception as error: return recover(error, op, {"a": a, "b": b})
 return op_beta, 1

def op_xlogy(op):
 def op_xlogy(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_xlogy(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_xlogy, 1

def op_xlog1py(op):
 def op_xlog1py(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_xlog1py(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_xlog1py, 1

def op_erfcx(op):
 def op_erfcx(x):
  try: return (active() if registry.is_overridden else registry._backend).op_erfcx(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_erfcx, 1

def op_erfcinv(op):
 def op_erfcinv(x):
  try: return (active() if registry.is_overridden else registry._backend).op_erfcinv(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_erfcinv, 1

def op_ndtr(op):
 def op_ndtr(x):
  try: return (active() if registry.is_overridden else registry._backend).op_ndtr(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_ndtr, 1

def op_log_ndtr(op):
 def op_log_ndtr(x):
  try: return (active() if registry.is_overridden else registry._backend).op_log_ndtr(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_log_ndtr, 1

def op_ndtri(op):
 def op_ndtri(x):
  try: return (active() if registry.is_overridden else registry._backend).op_ndtri(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_ndtri, 1

def op_logit(op):
 def op_logit(x):
  try: return (active() if registry.is_overridden else registry._backend).op_logit(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_logit, 1

def op_entr(op):
 def op_entr(x):
  try: return (active() if registry.is_overridden else registry._backend).op_entr(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_entr, 1

def op_rel_entr(op):
 def op_rel_entr(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_rel_entr(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_rel_entr, 1

def op_kl_div(op):
 def op_kl_div(x, y):
  try: return (active() if registry.is_overridden else registry._backend).op_kl_div(x, y)
  except Exception as error: return recover(error, op, {"x": x, "y": y})
 return op_kl_div, 1

def op_multigammaln(op):
 def op_multigammaln(x, p):
  try: return (active() if registry.is_overridden else registry._backend).op_multigammaln(x, p)
  except Exception as error: return recover(error, op, {"x": x, "p": p})
 return op_multigammaln, 1

def op_zeta(op):
 def op_zeta(x, q):
  try: return (active() if registry.is_overridden else registry._backend).op_zeta(x, q)
  except Exception as error: return recover(error, op, {"x": x, "q": q})
 return op_zeta, 1

def op_jv(op):
 def op_jv(v, x):
  try: return (active() if registry.is_overridden else registry._backend).op_jv(v, x)
  except Exception as error: return recover(error, op, {"v": v, "x": x})
 return op_jv, 1

def op_yv(op):
 def op_yv(v, x):
  try: return (active() if registry.is_overridden else registry._backend).op_yv(v, x)
  except Exception as error: return recover(error, op, {"v": v, "x": x})
 return op_yv, 1

def op_iv(op):
 def op_iv(v, x):
  try: return (active() if registry.is_overridden else registry._backend).op_iv(v, x)
  except Exception as error: return recover(error, op, {"v": v, "x": x})
 return op_iv, 1

def op_ive(op):
 def op_ive(v, x):
  try: return (active() if registry.is_overridden else registry._backend).op_ive(v, x)
  except Exception as error: return recover(error, op, {"v": v, "x": x})
 return op_ive, 1

def op_kv(op):
 def op_kv(v, x):
  try: return (active() if registry.is_overridden else registry._backend).op_kv(v, x)
  except Exception as error: return recover(error, op, {"v": v, "x": x})
 return op_kv, 1

def op_kve(op):
 def op_kve(v, x):
  try: return (active() if registry.is_overridden else registry._backend).op_kve(v, x)
  except Exception as error: return recover(error, op, {"v": v, "x": x})
 return op_kve, 1

def op_correlate(op):
 def op_correlate(x1, x2, mode):
  try: return op(x1, x2, mode)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "mode": mode})
 return op_correlate, 1

def op_convolve(op):
 def op_convolve(x1, x2, mode):
  try: return (active() if registry.is_overridden else registry._backend).op_convolve(x1, x2, mode)
  except Exception as error: return recover(error, op, {"x1": x1, "x2": x2, "mode": mode})
 return op_convolve, 1

def op_nansum(op):
 def op_nansum(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nansum(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_nansum, 3

def op_nanprod(op):
 def op_nanprod(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nanprod(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_nanprod, 3

def op_nancumsum(op):
 def op_nancumsum(x, axis, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_nancumsum(x, axis, dtype)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "dtype": dtype})
 return op_nancumsum, 2

def op_nancumprod(op):
 def op_nancumprod(x, axis, dtype):
  try: return (active() if registry.is_overridden else registry._backend).op_nancumprod(x, axis, dtype)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "dtype": dtype})
 return op_nancumprod, 2

def op_nanmean(op):
 def op_nanmean(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nanmean(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_nanmean, 3

def op_nanvar(op):
 def op_nanvar(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nanvar(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_nanvar, 3

def op_nanstd(op):
 def op_nanstd(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nanstd(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_nanstd, 3

def op_nanmax(op):
 def op_nanmax(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nanmax(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_nanmax, 3

def op_nanmin(op):
 def op_nanmin(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nanmin(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_nanmin, 3

def op_nanargmax(op):
 def op_nanargmax(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nanargmax(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_nanargmax, 2

def op_nanargmin(op):
 def op_nanargmin(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nanargmin(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_nanargmin, 2

def op_quantile(op):
 def op_quantile(x, q, axis, method, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_quantile(x, q, axis, method, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "q": q, "axis": axis, "method": method, "keepdims": keepdims})
 return op_quantile, 1

def op_percentile(op):
 def op_percentile(x, q, axis, method, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_percentile(x, q, axis, method, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "q": q, "axis": axis, "method": method, "keepdims": keepdims})
 return op_percentile, 1

def op_median(op):
 def op_median(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_median(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_median, 1

def op_nanquantile(op):
 def op_nanquantile(x, q, axis, method, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nanquantile(x, q, axis, method, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "q": q, "axis": axis, "method": method, "keepdims": keepdims})
 return op_nanquantile, 1

def op_nanpercentile(op):
 def op_nanpercentile(x, q, axis, method, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nanpercentile(x, q, axis, method, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "q": q, "axis": axis, "method": method, "keepdims": keepdims})
 return op_nanpercentile, 1

def op_nanmedian(op):
 def op_nanmedian(x, axis, keepdims):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   return (active() if registry.is_overridden else registry._backend).op_nanmedian(x, axis, keepdims)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "keepdims": keepdims})
 return op_nanmedian, 1

def op_moments(op):
 def op_moments(x, axes, keepdims, synchronized):
  try:
   if keepdims is not False and keepdims is not True: keepdims = bool_flag(keepdims, "keepdims")
   if synchronized is not False and synchronized is not True: synchronized = bool_flag(synchronized, "synchronized")
   return (active() if registry.is_overridden else registry._backend).op_moments(x, axes, keepdims, synchronized)
  except Exception as error: return recover(error, op, {"x": x, "axes": axes, "keepdims": keepdims, "synchronized": synchronized})
 return op_moments, 1

def op_corrcoef(op):
 def op_corrcoef(x):
  try: return (active() if registry.is_overridden else registry._backend).op_corrcoef(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_corrcoef, 3

def op_cov(op):
 def op_cov(x, y, rowvar, bias, ddof, fweights, aweights):
  try:
   if rowvar is not False and rowvar is not True: rowvar = bool_flag(rowvar, "rowvar")
   if bias is not False and bias is not True: bias = bool_flag(bias, "bias")
   return (active() if registry.is_overridden else registry._backend).op_cov(x, y, rowvar, bias, ddof, fweights, aweights)
  except Exception as error: return recover(error, op, {"x": x, "y": y, "rowvar": rowvar, "bias": bias, "ddof": ddof, "fweights": fweights, "aweights": aweights})
 return op_cov, 1

def op_trapezoid(op):
 def op_trapezoid(y, x, dx, axis):
  try: return (active() if registry.is_overridden else registry._backend).op_trapezoid(y, x, dx, axis)
  except Exception as error: return recover(error, op, {"y": y, "x": x, "dx": dx, "axis": axis})
 return op_trapezoid, 3

def op_kaiser(op):
 def op_kaiser(x, beta):
  try: return op(x, beta)
  except Exception as error: return recover(error, op, {"x": x, "beta": beta})
 return op_kaiser, 1

def op_bartlett(op):
 def op_bartlett(x):
  try: return (active() if registry.is_overridden else registry._backend).op_bartlett(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_bartlett, 1

def op_hanning(op):
 def op_hanning(x):
  try: return (active() if registry.is_overridden else registry._backend).op_hanning(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_hanning, 1

def op_hamming(op):
 def op_hamming(x):
  try: return (active() if registry.is_overridden else registry._backend).op_hamming(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_hamming, 1

def op_blackman(op):
 def op_blackman(x):
  try: return (active() if registry.is_overridden else registry._backend).op_blackman(x)
  except Exception as error: return recover(error, op, {"x": x})
 return op_blackman, 1

def binomial(op):
 def binomial(shape, counts, probabilities, dtype, seed):
  try: return op(shape, counts, probabilities, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "counts": counts, "probabilities": probabilities, "dtype": dtype, "seed": seed})
 return binomial, 1

def uniform(op):
 def uniform(shape, minval, maxval, dtype, seed):
  try: return op(shape, minval, maxval, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "minval": minval, "maxval": maxval, "dtype": dtype, "seed": seed})
 return uniform, 1

def normal(op):
 def normal(shape, mean, stddev, dtype, seed):
  try: return op(shape, mean, stddev, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "mean": mean, "stddev": stddev, "dtype": dtype, "seed": seed})
 return normal, 1

def multivariate_normal(op):
 def multivariate_normal(shape, mean, cov, dtype, seed):
  try: return op(shape, mean, cov, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "mean": mean, "cov": cov, "dtype": dtype, "seed": seed})
 return multivariate_normal, 1

def truncated_normal(op):
 def truncated_normal(shape, mean, stddev, dtype, seed):
  try: return op(shape, mean, stddev, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "mean": mean, "stddev": stddev, "dtype": dtype, "seed": seed})
 return truncated_normal, 1

def exponential(op):
 def exponential(shape, scale, dtype, seed):
  try: return op(shape, scale, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "scale": scale, "dtype": dtype, "seed": seed})
 return exponential, 1

def gumbel(op):
 def gumbel(shape, loc, scale, dtype, seed):
  try: return op(shape, loc, scale, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "loc": loc, "scale": scale, "dtype": dtype, "seed": seed})
 return gumbel, 1

def laplace(op):
 def laplace(shape, loc, scale, dtype, seed):
  try: return op(shape, loc, scale, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "loc": loc, "scale": scale, "dtype": dtype, "seed": seed})
 return laplace, 1

def randint(op):
 def randint(shape, minval, maxval, dtype, seed):
  try: return op(shape, minval, maxval, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "minval": minval, "maxval": maxval, "dtype": dtype, "seed": seed})
 return randint, 1

def categorical(op):
 def categorical(logits, num_samples, dtype, seed):
  try: return op(logits, num_samples, dtype, seed)
  except Exception as error: return recover(error, op, {"logits": logits, "num_samples": num_samples, "dtype": dtype, "seed": seed})
 return categorical, 1

def choice(op):
 def choice(a, shape, replace, p, axis, seed):
  try:
   if replace is not False and replace is not True: replace = bool_flag(replace, "replace")
   return op(a, shape, replace, p, axis, seed)
  except Exception as error: return recover(error, op, {"a": a, "shape": shape, "replace": replace, "p": p, "axis": axis, "seed": seed})
 return choice, 1

def dropout(op):
 def dropout(inputs, rate, noise_shape, seed):
  try: return op(inputs, rate, noise_shape, seed)
  except Exception as error: return recover(error, op, {"inputs": inputs, "rate": rate, "noise_shape": noise_shape, "seed": seed})
 return dropout, 1

def shuffle(op):
 def shuffle(x, axis, seed):
  try: return op(x, axis, seed)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "seed": seed})
 return shuffle, 1

def shuffle_along_axis(op):
 def shuffle_along_axis(x, axis, seed):
  try: return op(x, axis, seed)
  except Exception as error: return recover(error, op, {"x": x, "axis": axis, "seed": seed})
 return shuffle_along_axis, 1

def gamma(op):
 def gamma(shape, alpha, dtype, seed):
  try: return op(shape, alpha, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "alpha": alpha, "dtype": dtype, "seed": seed})
 return gamma, 1

def beta(op):
 def beta(shape, alpha, beta, dtype, seed):
  try: return op(shape, alpha, beta, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "alpha": alpha, "beta": beta, "dtype": dtype, "seed": seed})
 return beta, 1

def key(op):
 def key(seed):
  try: return op(seed)
  except Exception as error: return recover(error, op, {"seed": seed})
 return key, 1

def split(op):
 def split(seed, num):
  try: return op(seed, num)
  except Exception as error: return recover(error, op, {"seed": seed, "num": num})
 return split, 1

def fold_in(op):
 def fold_in(seed, data):
  try: return op(seed, data)
  except Exception as error: return recover(error, op, {"seed": seed, "data": data})
 return fold_in, 1

def multinomial(op):
 def multinomial(shape, counts, probabilities, dtype, seed):
  try: return op(shape, counts, probabilities, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "counts": counts, "probabilities": probabilities, "dtype": dtype, "seed": seed})
 return multinomial, 1

def poisson(op):
 def poisson(shape, mean, dtype, seed):
  try: return op(shape, mean, dtype, seed)
  except Exception as error: return recover(error, op, {"shape": shape, "mean": mean, "dtype": dtype, "seed": seed})
 return poisson, 1
