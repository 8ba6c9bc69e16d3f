# made by tools/op_list.py: run `nox -s generate`, do not edit
"""Ops of neural networks without prefix, as in `keras.ops.nn`: `ops.nn.softmax(x)`."""

import typing as _typing

from multiop._loading.suggestions import (
    public_names as _public_names,
)
from multiop.frontends import (
    activations as _activations,
    attention as _attention,
    convolution as _convolution,
    elementwise as _elementwise,
    indexing as _indexing,
    losses as _losses,
    normalization as _normalization,
    pooling as _pooling,
    statistics as _statistics,
)

relu = _activations.op_relu
sigmoid = _activations.op_sigmoid
softplus = _activations.op_softplus
softmax = _activations.op_softmax
log_softmax = _activations.op_log_softmax
relu6 = _activations.op_relu6
leaky_relu = _activations.op_leaky_relu
elu = _activations.op_elu
celu = _activations.op_celu
selu = _activations.op_selu
silu = _activations.op_silu
gelu = _activations.op_gelu
glu = _activations.op_glu
log_sigmoid = _activations.op_log_sigmoid
softsign = _activations.op_softsign
soft_shrink = _activations.op_soft_shrink
hard_shrink = _activations.op_hard_shrink
tanh_shrink = _activations.op_tanh_shrink
threshold = _activations.op_threshold
hard_sigmoid = _activations.op_hard_sigmoid
hard_silu = _activations.op_hard_silu
sparse_plus = _activations.op_sparse_plus
sparse_sigmoid = _activations.op_sparse_sigmoid
squareplus = _activations.op_squareplus
sparsemax = _activations.op_sparsemax
hard_tanh = _activations.op_hard_tanh
hard_swish = _activations.op_hard_swish
swish = _activations.op_swish
dot_product_attention = _attention.op_dot_product_attention
conv = _convolution.op_conv
conv_transpose = _convolution.op_conv_transpose
unfold = _convolution.op_unfold
fold = _convolution.op_fold
depthwise_conv = _convolution.op_depthwise_conv
separable_conv = _convolution.op_separable_conv
polar = _elementwise.op_polar
one_hot = _indexing.op_one_hot
multi_hot = _indexing.op_multi_hot
binary_crossentropy = _losses.op_binary_crossentropy
categorical_crossentropy = _losses.op_categorical_crossentropy
sparse_categorical_crossentropy = _losses.op_sparse_categorical_crossentropy
ctc_loss = _losses.op_ctc_loss
ctc_decode = _losses.op_ctc_decode
psnr = _losses.op_psnr
normalize = _normalization.op_normalize
batch_normalization = _normalization.op_batch_normalization
batch_normalization_with_moments = _normalization.op_batch_normalization_with_moments
layer_normalization = _normalization.op_layer_normalization
rms_normalization = _normalization.op_rms_normalization
average_pool = _pooling.op_average_pool
max_pool = _pooling.op_max_pool
adaptive_average_pool = _pooling.op_adaptive_average_pool
adaptive_max_pool = _pooling.op_adaptive_max_pool
depth_to_space = _pooling.op_depth_to_space
space_to_depth = _pooling.op_space_to_depth
moments = _statistics.op_moments


if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name
    __all__ = _public_names(__name__)

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        raise missing(__name__, name, __all__)
