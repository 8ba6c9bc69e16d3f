# made by tools/op_list.py: run `nox -s generate`, do not edit
"""Every op without its prefix: `from multiop import ops; ops.add(x, y)`."""

import typing as _typing

from multiop._loading.suggestions import (
    PUBLIC as _PUBLIC,
    public_names as _public_names,
)
from multiop._values.dtypes import (
    ALL as _DTYPES,
)
from multiop.autodiff import (
    attach_gradient as _attach_gradient,
    custom_gradient as _custom_gradient,
    stop_gradient as _stop_gradient,
    transforms as _transforms,
)
from multiop.dtypes import (
    dtype_object as _dtype_object,
)
from multiop.frontends import (
    activations as _activations,
    attention as _attention,
    bitwise as _bitwise,
    control_flow as _control_flow,
    conversion as _conversion,
    convolution as _convolution,
    creation as _creation,
    elementwise as _elementwise,
    images as _images,
    indexing as _indexing,
    linalg as _linalg,
    logical as _logical,
    losses as _losses,
    normalization as _normalization,
    polynomials as _polynomials,
    pooling as _pooling,
    products as _products,
    rearrange as _rearrange,
    reduction as _reduction,
    samples as _samples,
    segment as _segment,
    shapes as _shapes,
    signal as _signal,
    sorting as _sorting,
    spacing as _spacing,
    special as _special,
    statistics as _statistics,
    windows as _windows,
)
from multiop.operation import (
    Operation as Operation,
)
from multiop.ops import (
    image as image,
    linalg as linalg,
    nn as nn,
    numpy as numpy,
)
from multiop.scopes import (
    name_scope as name_scope,
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
bitwise_and = _bitwise.op_bitwise_and
bitwise_or = _bitwise.op_bitwise_or
bitwise_xor = _bitwise.op_bitwise_xor
bitwise_invert = _bitwise.op_bitwise_invert
left_shift = _bitwise.op_left_shift
right_shift = _bitwise.op_right_shift
gcd = _bitwise.op_gcd
lcm = _bitwise.op_lcm
bitwise_not = _bitwise.op_bitwise_not
bitwise_left_shift = _bitwise.op_bitwise_left_shift
bitwise_right_shift = _bitwise.op_bitwise_right_shift
bitwise_count = _bitwise.op_bitwise_count
frexp = _bitwise.op_frexp
cond = _control_flow.op_cond
switch = _control_flow.op_switch
while_loop = _control_flow.op_while_loop
fori_loop = _control_flow.op_fori_loop
scan = _control_flow.op_scan
associative_scan = _control_flow.op_associative_scan
map = _control_flow.op_map
vectorized_map = _control_flow.op_vectorized_map
vectorize = _control_flow.op_vectorize
convert_to_tensor = _conversion.op_convert_to_tensor
convert_to_numpy = _conversion.op_convert_to_numpy
cast = _conversion.op_cast
view = _conversion.op_view
view_as_complex = _conversion.op_view_as_complex
dtype = _conversion.op_dtype
shape = _conversion.op_shape
is_tensor = _conversion.op_is_tensor
view_as_real = _conversion.op_view_as_real
saturate_cast = _conversion.op_saturate_cast
array = _conversion.op_array
conv = _convolution.op_conv
conv_transpose = _convolution.op_conv_transpose
unfold = _convolution.op_unfold
fold = _convolution.op_fold
depthwise_conv = _convolution.op_depthwise_conv
separable_conv = _convolution.op_separable_conv
zeros = _creation.op_zeros
ones = _creation.op_ones
full = _creation.op_full
zeros_like = _creation.op_zeros_like
ones_like = _creation.op_ones_like
full_like = _creation.op_full_like
arange = _creation.op_arange
eye = _creation.op_eye
copy = _creation.op_copy
linspace = _creation.op_linspace
empty = _creation.op_empty
empty_like = _creation.op_empty_like
identity = _creation.op_identity
add = _elementwise.op_add
subtract = _elementwise.op_subtract
multiply = _elementwise.op_multiply
divide = _elementwise.op_divide
floor_divide = _elementwise.op_floor_divide
mod = _elementwise.op_mod
power = _elementwise.op_power
negative = _elementwise.op_negative
reciprocal = _elementwise.op_reciprocal
sign = _elementwise.op_sign
abs = _elementwise.op_abs
square = _elementwise.op_square
sqrt = _elementwise.op_sqrt
rsqrt = _elementwise.op_rsqrt
exp = _elementwise.op_exp
exp2 = _elementwise.op_exp2
expm1 = _elementwise.op_expm1
log = _elementwise.op_log
log2 = _elementwise.op_log2
log10 = _elementwise.op_log10
log1p = _elementwise.op_log1p
maximum = _elementwise.op_maximum
minimum = _elementwise.op_minimum
clip = _elementwise.op_clip
round = _elementwise.op_round
floor = _elementwise.op_floor
ceil = _elementwise.op_ceil
trunc = _elementwise.op_trunc
sin = _elementwise.op_sin
cos = _elementwise.op_cos
tan = _elementwise.op_tan
arcsin = _elementwise.op_arcsin
arccos = _elementwise.op_arccos
arctan = _elementwise.op_arctan
arctan2 = _elementwise.op_arctan2
sinh = _elementwise.op_sinh
cosh = _elementwise.op_cosh
tanh = _elementwise.op_tanh
arcsinh = _elementwise.op_arcsinh
arccosh = _elementwise.op_arccosh
arctanh = _elementwise.op_arctanh
hypot = _elementwise.op_hypot
real = _elementwise.op_real
imag = _elementwise.op_imag
conj = _elementwise.op_conj
divide_no_nan = _elementwise.op_divide_no_nan
logaddexp = _elementwise.op_logaddexp
logaddexp2 = _elementwise.op_logaddexp2
nan_to_num = _elementwise.op_nan_to_num
cbrt = _elementwise.op_cbrt
fmod = _elementwise.op_fmod
heaviside = _elementwise.op_heaviside
ldexp = _elementwise.op_ldexp
nextafter = _elementwise.op_nextafter
polar = _elementwise.op_polar
true_divide = _elementwise.op_true_divide
absolute = _elementwise.op_absolute
conjugate = _elementwise.op_conjugate
fabs = _elementwise.op_fabs
deg2rad = _elementwise.op_deg2rad
rad2deg = _elementwise.op_rad2deg
angle = _elementwise.op_angle
fmax = _elementwise.op_fmax
fmin = _elementwise.op_fmin
copysign = _elementwise.op_copysign
modf = _elementwise.op_modf
sinc = _elementwise.op_sinc
image_rgb_to_grayscale = _images.op_image_rgb_to_grayscale
image_rgb_to_hsv = _images.op_image_rgb_to_hsv
image_hsv_to_rgb = _images.op_image_hsv_to_rgb
image_crop = _images.op_image_crop
image_pad = _images.op_image_pad
image_resize = _images.op_image_resize
image_affine_transform = _images.op_image_affine_transform
image_perspective_transform = _images.op_image_perspective_transform
image_map_coordinates = _images.op_image_map_coordinates
image_extract_patches = _images.op_image_extract_patches
image_extract_patches_3d = _images.op_image_extract_patches_3d
image_reconstruct_patches = _images.op_image_reconstruct_patches
image_gaussian_blur = _images.op_image_gaussian_blur
image_sobel_edges = _images.op_image_sobel_edges
image_ssim = _images.op_image_ssim
image_elastic_transform = _images.op_image_elastic_transform
image_scale_and_translate = _images.op_image_scale_and_translate
take = _indexing.op_take
take_along_axis = _indexing.op_take_along_axis
get_item = _indexing.op_get_item
slice = _indexing.op_slice
slice_update = _indexing.op_slice_update
scatter = _indexing.op_scatter
scatter_update = _indexing.op_scatter_update
select = _indexing.op_select
unravel_index = _indexing.op_unravel_index
one_hot = _indexing.op_one_hot
ravel_multi_index = _indexing.op_ravel_multi_index
set_item = _indexing.op_set_item
add_at = _indexing.op_add_at
multiply_at = _indexing.op_multiply_at
maximum_at = _indexing.op_maximum_at
minimum_at = _indexing.op_minimum_at
subset = _indexing.op_subset
multi_hot = _indexing.op_multi_hot
cholesky = _linalg.op_cholesky
det = _linalg.op_det
slogdet = _linalg.op_slogdet
inv = _linalg.op_inv
pinv = _linalg.op_pinv
solve = _linalg.op_solve
solve_triangular = _linalg.op_solve_triangular
expm = _linalg.op_expm
lu_factor = _linalg.op_lu_factor
qr = _linalg.op_qr
svd = _linalg.op_svd
eigh = _linalg.op_eigh
eig = _linalg.op_eig
eigvalsh = _linalg.op_eigvalsh
eigvals = _linalg.op_eigvals
svdvals = _linalg.op_svdvals
logdet = _linalg.op_logdet
cholesky_inverse = _linalg.op_cholesky_inverse
lstsq = _linalg.op_lstsq
matrix_power = _linalg.op_matrix_power
matrix_rank = _linalg.op_matrix_rank
norm = _linalg.op_norm
cdist = _linalg.op_cdist
solve_sylvester = _linalg.op_solve_sylvester
polar_decomposition = _linalg.op_polar_decomposition
sqrtm = _linalg.op_sqrtm
logm = _linalg.op_logm
equal = _logical.op_equal
not_equal = _logical.op_not_equal
less = _logical.op_less
less_equal = _logical.op_less_equal
greater = _logical.op_greater
greater_equal = _logical.op_greater_equal
isnan = _logical.op_isnan
isinf = _logical.op_isinf
isfinite = _logical.op_isfinite
logical_and = _logical.op_logical_and
logical_or = _logical.op_logical_or
logical_xor = _logical.op_logical_xor
logical_not = _logical.op_logical_not
where = _logical.op_where
nonzero = _logical.op_nonzero
isposinf = _logical.op_isposinf
isneginf = _logical.op_isneginf
isreal = _logical.op_isreal
signbit = _logical.op_signbit
isclose = _logical.op_isclose
allclose = _logical.op_allclose
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
polyval = _polynomials.op_polyval
poly = _polynomials.op_poly
roots = _polynomials.op_roots
polyfit = _polynomials.op_polyfit
average_pool = _pooling.op_average_pool
max_pool = _pooling.op_max_pool
adaptive_average_pool = _pooling.op_adaptive_average_pool
adaptive_max_pool = _pooling.op_adaptive_max_pool
depth_to_space = _pooling.op_depth_to_space
space_to_depth = _pooling.op_space_to_depth
matmul = _products.op_matmul
einsum = _products.op_einsum
tensordot = _products.op_tensordot
trace = _products.op_trace
dot = _products.op_dot
inner = _products.op_inner
outer = _products.op_outer
vdot = _products.op_vdot
kron = _products.op_kron
cross = _products.op_cross
vander = _products.op_vander
rearrange = _rearrange.op_rearrange
sum = _reduction.op_sum
prod = _reduction.op_prod
mean = _reduction.op_mean
var = _reduction.op_var
std = _reduction.op_std
max = _reduction.op_max
min = _reduction.op_min
argmax = _reduction.op_argmax
argmin = _reduction.op_argmin
all = _reduction.op_all
any = _reduction.op_any
logsumexp = _reduction.op_logsumexp
cumsum = _reduction.op_cumsum
cumprod = _reduction.op_cumprod
amax = _reduction.op_amax
amin = _reduction.op_amin
count_nonzero = _reduction.op_count_nonzero
ptp = _reduction.op_ptp
average = _reduction.op_average
diff = _reduction.op_diff
interp = _samples.op_interp
gradient = _samples.op_gradient
unwrap = _samples.op_unwrap
segment_sum = _segment.op_segment_sum
segment_max = _segment.op_segment_max
segment_min = _segment.op_segment_min
segment_prod = _segment.op_segment_prod
reshape = _shapes.op_reshape
transpose = _shapes.op_transpose
swapaxes = _shapes.op_swapaxes
moveaxis = _shapes.op_moveaxis
expand_dims = _shapes.op_expand_dims
squeeze = _shapes.op_squeeze
concatenate = _shapes.op_concatenate
stack = _shapes.op_stack
split = _shapes.op_split
broadcast_to = _shapes.op_broadcast_to
flip = _shapes.op_flip
tile = _shapes.op_tile
repeat = _shapes.op_repeat
roll = _shapes.op_roll
pad = _shapes.op_pad
unstack = _shapes.op_unstack
diagonal = _shapes.op_diagonal
ravel = _shapes.op_ravel
ndim = _shapes.op_ndim
size = _shapes.op_size
hstack = _shapes.op_hstack
vstack = _shapes.op_vstack
dstack = _shapes.op_dstack
column_stack = _shapes.op_column_stack
append = _shapes.op_append
array_split = _shapes.op_array_split
hsplit = _shapes.op_hsplit
vsplit = _shapes.op_vsplit
dsplit = _shapes.op_dsplit
fliplr = _shapes.op_fliplr
flipud = _shapes.op_flipud
rot90 = _shapes.op_rot90
broadcast_arrays = _shapes.op_broadcast_arrays
broadcast_shapes = _shapes.op_broadcast_shapes
meshgrid = _shapes.op_meshgrid
diag = _shapes.op_diag
diagflat = _shapes.op_diagflat
tri = _shapes.op_tri
tril = _shapes.op_tril
triu = _shapes.op_triu
set_diag = _shapes.op_set_diag
tril_indices = _shapes.op_tril_indices
triu_indices = _shapes.op_triu_indices
block_diag = _shapes.op_block_diag
fftn = _signal.op_fftn
ifftn = _signal.op_ifftn
rfftn = _signal.op_rfftn
irfftn = _signal.op_irfftn
extract_sequences = _signal.op_extract_sequences
fft = _signal.op_fft
ifft = _signal.op_ifft
fft2 = _signal.op_fft2
ifft2 = _signal.op_ifft2
rfft = _signal.op_rfft
irfft = _signal.op_irfft
stft = _signal.op_stft
istft = _signal.op_istft
hfft = _signal.op_hfft
ihfft = _signal.op_ihfft
fftfreq = _signal.op_fftfreq
rfftfreq = _signal.op_rfftfreq
fftshift = _signal.op_fftshift
ifftshift = _signal.op_ifftshift
sort = _sorting.op_sort
argsort = _sorting.op_argsort
searchsorted = _sorting.op_searchsorted
top_k = _sorting.op_top_k
digitize = _sorting.op_digitize
bincount = _sorting.op_bincount
in_top_k = _sorting.op_in_top_k
argpartition = _sorting.op_argpartition
unique = _sorting.op_unique
lexsort = _sorting.op_lexsort
isin = _sorting.op_isin
histogram = _sorting.op_histogram
setdiff1d = _sorting.op_setdiff1d
union1d = _sorting.op_union1d
intersect1d = _sorting.op_intersect1d
logspace = _spacing.op_logspace
geomspace = _spacing.op_geomspace
erf = _special.op_erf
erfc = _special.op_erfc
erfinv = _special.op_erfinv
i0 = _special.op_i0
lgamma = _special.op_lgamma
digamma = _special.op_digamma
polygamma = _special.op_polygamma
gammainc = _special.op_gammainc
gammaincc = _special.op_gammaincc
betainc = _special.op_betainc
gamma = _special.op_gamma
betaln = _special.op_betaln
beta = _special.op_beta
xlogy = _special.op_xlogy
xlog1py = _special.op_xlog1py
erfcx = _special.op_erfcx
erfcinv = _special.op_erfcinv
ndtr = _special.op_ndtr
log_ndtr = _special.op_log_ndtr
ndtri = _special.op_ndtri
logit = _special.op_logit
entr = _special.op_entr
rel_entr = _special.op_rel_entr
kl_div = _special.op_kl_div
multigammaln = _special.op_multigammaln
zeta = _special.op_zeta
jv = _special.op_jv
yv = _special.op_yv
iv = _special.op_iv
ive = _special.op_ive
kv = _special.op_kv
kve = _special.op_kve
correlate = _statistics.op_correlate
convolve = _statistics.op_convolve
nansum = _statistics.op_nansum
nanprod = _statistics.op_nanprod
nancumsum = _statistics.op_nancumsum
nancumprod = _statistics.op_nancumprod
nanmean = _statistics.op_nanmean
nanvar = _statistics.op_nanvar
nanstd = _statistics.op_nanstd
nanmax = _statistics.op_nanmax
nanmin = _statistics.op_nanmin
nanargmax = _statistics.op_nanargmax
nanargmin = _statistics.op_nanargmin
quantile = _statistics.op_quantile
percentile = _statistics.op_percentile
median = _statistics.op_median
nanquantile = _statistics.op_nanquantile
nanpercentile = _statistics.op_nanpercentile
nanmedian = _statistics.op_nanmedian
moments = _statistics.op_moments
corrcoef = _statistics.op_corrcoef
cov = _statistics.op_cov
trapezoid = _statistics.op_trapezoid
kaiser = _windows.op_kaiser
bartlett = _windows.op_bartlett
hanning = _windows.op_hanning
hamming = _windows.op_hamming
blackman = _windows.op_blackman
attach_gradient = _attach_gradient.op_attach_gradient
custom_gradient = _custom_gradient.op_custom_gradient
stop_gradient = _stop_gradient.op_stop_gradient
jvp = _transforms.op_jvp


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
    __all__ = _public_names(__name__, "image", "linalg", "nn", "numpy")
    _PUBLIC[__name__] = __all__

    def __dir__() -> list[str]:
        return __all__

    def __getattr__(name: str) -> object:
        from multiop._loading.suggestions import missing

        if name in _DTYPES:
            return _dtype_object(name)

        raise missing(__name__, name, __all__)
