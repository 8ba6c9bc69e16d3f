"""Faster forms of ops on PyTorch: each stands for the op of its name, and falls through to it as `otherwise`."""

from .activations import (
    op_gelu as op_gelu,
    op_hard_sigmoid as op_hard_sigmoid,
)
from .attention import (
    op_dot_product_attention as op_dot_product_attention,
)
from .elementwise import (
    op_abs as op_abs,
    op_angle as op_angle,
    op_arccosh as op_arccosh,
    op_arcsinh as op_arcsinh,
    op_arctan2 as op_arctan2,
    op_expm1 as op_expm1,
    op_fmax as op_fmax,
    op_fmin as op_fmin,
    op_fmod as op_fmod,
    op_heaviside as op_heaviside,
    op_hypot as op_hypot,
    op_ldexp as op_ldexp,
    op_logaddexp as op_logaddexp,
    op_logaddexp2 as op_logaddexp2,
    op_mod as op_mod,
    op_power as op_power,
    op_sign as op_sign,
    op_sinc as op_sinc,
)
from .images import (
    op_image_resize as op_image_resize,
)
from .indexing import op_one_hot as op_one_hot
from .linalg import (
    op_cdist as op_cdist,
    op_det as op_det,
    op_norm as op_norm,
    op_slogdet as op_slogdet,
)
from .losses import op_categorical_crossentropy as op_categorical_crossentropy
from .normalization import (
    op_batch_normalization as op_batch_normalization,
    op_batch_normalization_with_moments as op_batch_normalization_with_moments,
    op_group_normalization as op_group_normalization,
    op_layer_normalization as op_layer_normalization,
    op_normalize as op_normalize,
)
from .products import (
    op_cross as op_cross,
)
from .reduction import (
    op_allclose as op_allclose,
    op_count_nonzero as op_count_nonzero,
    op_logsumexp as op_logsumexp,
    op_mean as op_mean,
    op_nanmean as op_nanmean,
    op_nansum as op_nansum,
    op_quantile as op_quantile,
    op_std as op_std,
    op_trapezoid as op_trapezoid,
    op_var as op_var,
)
from .shapes import (
    op_diag as op_diag,
    op_pad as op_pad,
    op_ravel as op_ravel,
    op_trace as op_trace,
    op_tril as op_tril,
    op_triu as op_triu,
)
from .signal import (
    op_fft as op_fft,
    op_fft2 as op_fft2,
    op_ifft as op_ifft,
    op_ifft2 as op_ifft2,
    op_view_as_complex as op_view_as_complex,
    op_view_as_real as op_view_as_real,
)
from .sorting import (
    op_digitize as op_digitize,
    op_isin as op_isin,
    op_searchsorted as op_searchsorted,
    op_top_k as op_top_k,
    op_unique as op_unique,
)
from .special import (
    op_digamma as op_digamma,
    op_gammainc as op_gammainc,
    op_gammaincc as op_gammaincc,
    op_i0 as op_i0,
    op_lgamma as op_lgamma,
    op_polygamma as op_polygamma,
    op_xlog1py as op_xlog1py,
    op_xlogy as op_xlogy,
)
