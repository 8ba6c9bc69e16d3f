# made by tools/op_list.py: run `nox -s generate`, do not edit
# ruff: noqa: I001
# fmt: off
"""Ops of neural networks without prefix, as in `keras.ops.nn`: `ops.nn.softmax(x)`."""

import typing as _typing

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
from multiop.frontends.convolution import (
    op_conv as conv, op_conv_transpose as conv_transpose, op_depthwise_conv as depthwise_conv, op_fold as fold,
    op_separable_conv as separable_conv, op_unfold as unfold,
)
from multiop.frontends.elementwise import (
    op_polar as polar,
)
from multiop.frontends.indexing import (
    op_multi_hot as multi_hot, op_one_hot as one_hot,
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
from multiop.frontends.pooling import (
    op_adaptive_average_pool as adaptive_average_pool, op_adaptive_max_pool as adaptive_max_pool,
    op_average_pool as average_pool, op_depth_to_space as depth_to_space, op_max_pool as max_pool,
    op_space_to_depth as space_to_depth,
)
from multiop.frontends.statistics import (
    op_moments as moments,
)

__all__ = [
    "adaptive_average_pool", "adaptive_max_pool", "average_pool", "batch_normalization",
    "batch_normalization_with_moments", "binary_crossentropy", "categorical_crossentropy", "celu", "conv",
    "conv_transpose", "ctc_decode", "ctc_loss", "depth_to_space", "depthwise_conv", "dot_product_attention", "elu",
    "fold", "gelu", "glu", "group_normalization", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "layer_normalization", "leaky_relu", "log_sigmoid", "log_softmax", "max_pool", "moments", "multi_hot", "normalize",
    "one_hot", "polar", "psnr", "relu", "relu6", "rms_normalization", "selu", "separable_conv", "sigmoid", "silu",
    "soft_shrink", "softmax", "softplus", "softsign", "space_to_depth", "sparse_categorical_crossentropy",
    "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "swish", "tanh_shrink", "threshold", "unfold",
]

if not _typing.TYPE_CHECKING:  # with it, a type checker would accept any name

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        raise missing(__name__, name, __all__)
