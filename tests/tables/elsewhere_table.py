"""What must fail where tensors are made on a GPU (`--multiop-device=cuda`), and why; docs/devices.md tells it."""

from __future__ import annotations

import re

# the shape of the result depends on values, or values decide what runs
WAITS = {"op_bincount", "op_cond", "op_nonzero", "op_switch", "op_unique", "op_while_loop", "op_convert_to_numpy"} | {
    "op_logm",
    "op_sqrtm",
    "op_setdiff1d",
    "op_union1d",
    "op_intersect1d",
}
# their results are no tensors, and lie where the suite makes tensors of them
OF_THE_HOST = {"op_is_tensor", "op_ndim", "op_shape", "op_size", "op_dtype"}

UNSEEN = "values are looked at on the CPU alone: a look would wait for the GPU"
LOST = "PyTorch's kernel ends in a device-side assertion, after which the process cannot use the GPU"
INTEGERS = "PyTorch has no kernel for integers on a GPU"
UNSIGNED = "PyTorch 2.11 has no kernel for unsigned integers on a GPU"
DIGITS = "the GPU's logarithm has fewer digits here"
COMPLEX = "complex functions of the GPU overflow, or are off by more, at extremes"
CREATED = "PyTorch runs such a rule without the default device, as it does autograd.Function.jvp"

TABLE = {
    r"test_an_index_of_a_tensor_that_is_out_of_range_raises\[torch": LOST,
    r"test_the_largest_unsigned_index_is_no_negative_one\[torch": LOST,
    r"test_an_unsigned_index_does_not_become_negative\[torch": LOST,
    r"test_take_refuses_what_is_out_of_range\[torch": LOST,
    r"test_options_and_indices_that_are_not_accepted\[torch-op_(take-args[01]-|take_along_axis-args2-)": LOST,
    r"test_a_bad_argument\[torch-op_(get_item-args2|scatter-args33|scatter_update-args37)-": LOST,
    r"test_a_bad_argument\[torch-op_(set_item-args1[01]|maximum_at-args25|minimum_at-args26)-": LOST,
    r"test_labels_and_lengths_beyond_int32\[torch": LOST,
    r"test_quantiles_of_shares_that_are_tensors\[": UNSEEN,
    r"test_(29_integers|an_integer)_divided_by_0\[jax": UNSEEN,
    r"test_an_integer_to_a_negative_power\[jax": UNSEEN,
    r"test_an_index_of_a_tensor_that_is_out_of_range_raises\[jax": UNSEEN,
    r"test_a_(singular_matrix_is_named_in_the_same_words|sylvester_equation_names_what_does_not_fit)\[": UNSEEN,
    r"test_bad_arguments_of_products_and_powers\[\w+-<lambda>7\]": UNSEEN,
    r"test_labels_and_lengths_beyond_int32\[jax": UNSEEN,
    r"test_(the_largest_unsigned_index_is_no_negative_one|an_unsigned_index_does_not_become_negative)\[jax": UNSEEN,
    r"test_a_bad_argument\[jax-op_(get_item-args2|scatter-args33|scatter_update-args37)-": UNSEEN,
    r"test_a_bad_argument\[jax-op_(set_item-args1[01]|maximum_at-args25|minimum_at-args26)-": UNSEEN,
    r"test_take_refuses_what_is_out_of_range\[jax": UNSEEN,
    r"test_four_threads_of_one_backend\[jax": UNSEEN,
    r"test_options_and_indices_that_are_not_accepted\[jax-op_(take-args[01]-|take_along_axis-args2-)": UNSEEN,
    r"test_a_bad_argument\[\w+-op_(unravel_index-args4[12]|digitize-args52)-": UNSEEN,
    r"test_bad_arguments\[\w+-op_sparse_categorical_crossentropy-args3[01256]-": UNSEEN,
    r"test_bad_arguments\[\w+-op_ctc_(loss-args(4[6-9]|5[01])|decode-args58)-": UNSEEN,
    r"test_bad_matrices\[\w+-op_(inv|solve|solve_triangular|cholesky|cholesky_inverse|svd|pinv)-args[0-6]\]": UNSEEN,
    r"test_bad_matrices\[jax-op_(eigh-args7|eig-args8)\]": UNSEEN,
    r"test_value\[torch-op_(conv|conv_transpose|depthwise_conv|separable_conv|max_pool)-int32\]": INTEGERS,
    r"test_two_operands_meet_in_their_common_dtype\[torch-(bool|uint8|uint32)-": INTEGERS,
    r"test_integers_of_64_bits_are_exact\[torch": INTEGERS,
    r"test_small_integers_wrap\[torch": INTEGERS,
    r"test_the_largest_integer\[torch": INTEGERS,
    r"test_branch_cuts_and_sizes\[torch-op_(log|log2|log10)-complex64\]": COMPLEX,
    r"test_branch_cuts_and_sizes\[torch-op_(arctan|arctanh)-": COMPLEX,
    r"test_branch_cuts_and_sizes\[torch-op_rsqrt-complex128\]": COMPLEX,
    r"test_value\[\w+-op_ctc_decode-float32\]": DIGITS,
    r"test_pinned\[torch-op_signbit-0\]": "a GPU forgets the sign of NaN when it casts",
    r"test_fused_attention_(is_attention_or_an_error\[torch-all|has_no_cap)": "kernels of the GPU refuse such a mask",
    r"test_(outside|reset)\[torch": "a GPU's threads number operations for themselves: a tape cannot tell when one was",
    r"test_threads_beside_a_tape_are_undisturbed\[torch": "a GPU's threads number operations for themselves",
    r"test_(leaving_by_other_doors|a_stopped_gradient_is_meant)\[torch-(np|an array|a function)": "NumPy reads no GPU",
    r"test_(recorded_value_behaves_as_the_array|results_share_memory_as_documented\[torch)": "NumPy reads no GPU",
    r"test_gradient\[torch-op_hard_(sigmoid|silu|swish)\]": "the GPU's kernel divides by 6 in float32",
    r"test_entries\[torch-(argpartition|get_item|isin|maximum_at|sort|top_k)-uint(16_0|32)\]": UNSIGNED,
    r"test_(updates_by_key_keep_the_dtype\[torch-uint(16|32)|indices\[torch-isin-uint32)\]": UNSIGNED,
    r"test_derivatives_of_what_is_unique\[torch-(svd-2x4x2|svd_complete-4x2)-complex128\]": "PyTorch asserts otherwise",
    r"test_a_cast_to_float8_rounds_once\[torch-float64-float8_e4m3fn\]": "PyTorch 2.11 maps no view in another dtype",
    r"test_a_row\[jax-layer_normalization of equal entries\]": "XLA rounds the means of two programs differently",
    r"test_forward_mode_of_a_rule_that_zero_goes_back_through\[torch-before-(convolved|solved)\]": CREATED,
    r"test_a_checkpoint_repeats_what_was_drawn_and_leaves_what_one_run_leaves\[torch": "draws from the CPU's generator",
}


def reason(name: str) -> str | None:
    """Return why the test of this name must fail, or `None`; what ends in `LOST` must not run."""
    return next((found for pattern, found in TABLE.items() if re.match(pattern, name)), None)
