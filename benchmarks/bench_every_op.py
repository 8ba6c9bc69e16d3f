"""Measure every op that has a native counterpart, on 8, 1,000 and 262,144 numbers, forward and both ways.

    nox -s bench -- --all --backends torch
    python benchmarks/bench_every_op.py --only op_max,op_norm
    python benchmarks/bench_every_op.py --few --write benchmarks/measured.md

It finds the outliers among the ops: rows are read from the slowest down. JAX and TensorFlow are measured compiled, too;
PyTorch's compiler takes seconds for each row, so that it only runs with `--only`. On 8 and 1,000 numbers, each op is also measured in
float64: a library calls many ops on a few numbers, and no op may be slow there without a reason.
"""
# ruff: noqa: E501, a row of the table is one line

from __future__ import annotations

import re
import statistics
from typing import Any

from bench_autodiff import NATIVE
from bench_ops import COLUMNS, call, names_for
from bench_pinned import function
from harness import TITLES, Bench, markdown, run

# vectors: x, y of normal numbers, p, q positive, u between -1 and 1, h above 1; b, d bools; i, j ints, f, k positions,
# g segments
# matrices: m, n of normal numbers, l positions along their rows; s symmetric positive definite, r like it, batched
# images: t, with channels last, v with channels first; one expression for each framework, `-` where it has no call
OPS = """
abs(x) | torch.abs(x) | jnp.abs(x) | tf.abs(x)
negative(x) | torch.neg(x) | jnp.negative(x) | tf.negative(x)
square(x) | torch.square(x) | jnp.square(x) | tf.square(x)
sign(x) | torch.sign(x) | jnp.sign(x) | tf.sign(x)
relu(x) | torch.relu(x) | jax.nn.relu(x) | tf.nn.relu(x)
relu6(x) | F.relu6(x) | jax.nn.relu6(x) | tf.nn.relu6(x)
leaky_relu(x, 0.2) | F.leaky_relu(x, 0.2) | jax.nn.leaky_relu(x, 0.2) | tf.nn.leaky_relu(x, 0.2)
elu(x) | F.elu(x) | jax.nn.elu(x) | tf.nn.elu(x)
selu(x) | F.selu(x) | jax.nn.selu(x) | tf.nn.selu(x)
celu(x) | F.celu(x) | jax.nn.celu(x) | -
gelu(x) | F.gelu(x, approximate='tanh') | jax.nn.gelu(x) | tf.nn.gelu(x, approximate=True)
gelu(x, approximate=False) | F.gelu(x) | jax.nn.gelu(x, approximate=False) | tf.nn.gelu(x)
silu(x) | F.silu(x) | jax.nn.silu(x) | tf.nn.silu(x)
softplus(x) | F.softplus(x) | jax.nn.softplus(x) | tf.nn.softplus(x)
softsign(x) | F.softsign(x) | jax.nn.soft_sign(x) | tf.nn.softsign(x)
log_sigmoid(x) | F.logsigmoid(x) | jax.nn.log_sigmoid(x) | tf.math.log_sigmoid(x)
sigmoid(x) | torch.sigmoid(x) | jax.nn.sigmoid(x) | tf.sigmoid(x)
tanh(x) | torch.tanh(x) | jnp.tanh(x) | tf.tanh(x)
tanh_shrink(x) | F.tanhshrink(x) | - | -
soft_shrink(x) | F.softshrink(x) | - | -
hard_shrink(x) | F.hardshrink(x) | - | -
hard_sigmoid(x) | F.hardsigmoid(x) | jax.nn.hard_sigmoid(x) | -
hard_silu(x) | F.hardswish(x) | jax.nn.hard_silu(x) | -
hard_tanh(x) | F.hardtanh(x) | jax.nn.hard_tanh(x) | -
squareplus(x) | - | jax.nn.squareplus(x) | -
threshold(x, 0.5, 2.0) | F.threshold(x, 0.5, 2.0) | - | -
glu(m) | F.glu(m) | jax.nn.glu(m) | -
exp(x) | torch.exp(x) | jnp.exp(x) | tf.exp(x)
exp2(x) | torch.exp2(x) | jnp.exp2(x) | tf.pow(2.0, x)
expm1(x) | torch.expm1(x) | jnp.expm1(x) | tf.math.expm1(x)
sin(x) | torch.sin(x) | jnp.sin(x) | tf.sin(x)
cos(x) | torch.cos(x) | jnp.cos(x) | tf.cos(x)
tan(x) | torch.tan(x) | jnp.tan(x) | tf.tan(x)
sinh(x) | torch.sinh(x) | jnp.sinh(x) | tf.sinh(x)
cosh(x) | torch.cosh(x) | jnp.cosh(x) | tf.cosh(x)
arcsin(u) | torch.asin(u) | jnp.arcsin(u) | tf.asin(u)
arccos(u) | torch.acos(u) | jnp.arccos(u) | tf.acos(u)
arctan(x) | torch.atan(x) | jnp.arctan(x) | tf.atan(x)
arcsinh(x) | torch.asinh(x) | jnp.arcsinh(x) | tf.asinh(x)
arccosh(h) | torch.acosh(h) | jnp.arccosh(h) | tf.acosh(h)
arctanh(u) | torch.atanh(u) | jnp.arctanh(u) | tf.atanh(u)
log(p) | torch.log(p) | jnp.log(p) | tf.math.log(p)
log2(p) | torch.log2(p) | jnp.log2(p) | tf.math.log(p) / 0.6931471805599453
log10(p) | torch.log10(p) | jnp.log10(p) | tf.math.log(p) / 2.302585092994046
log1p(p) | torch.log1p(p) | jnp.log1p(p) | tf.math.log1p(p)
sqrt(p) | torch.sqrt(p) | jnp.sqrt(p) | tf.sqrt(p)
rsqrt(p) | torch.rsqrt(p) | jax.lax.rsqrt(p) | tf.math.rsqrt(p)
cbrt(p) | - | jnp.cbrt(p) | -
reciprocal(p) | torch.reciprocal(p) | jnp.reciprocal(p) | tf.math.reciprocal(p)
erf(x) | torch.erf(x) | jax.lax.erf(x) | tf.math.erf(x)
erfc(x) | torch.erfc(x) | jax.lax.erfc(x) | tf.math.erfc(x)
erfinv(u) | torch.erfinv(u) | jax.lax.erf_inv(u) | tf.math.erfinv(u)
floor(x) | torch.floor(x) | jnp.floor(x) | tf.floor(x)
ceil(x) | torch.ceil(x) | jnp.ceil(x) | tf.math.ceil(x)
round(x) | torch.round(x) | jnp.round(x) | tf.round(x)
trunc(x) | torch.trunc(x) | jnp.trunc(x) | -
isnan(x) | torch.isnan(x) | jnp.isnan(x) | tf.math.is_nan(x)
isinf(x) | torch.isinf(x) | jnp.isinf(x) | tf.math.is_inf(x)
isfinite(x) | torch.isfinite(x) | jnp.isfinite(x) | tf.math.is_finite(x)
signbit(x) | torch.signbit(x) | jnp.signbit(x) | -
nan_to_num(x) | torch.nan_to_num(x) | jnp.nan_to_num(x) | -
deg2rad(x) | torch.deg2rad(x) | jnp.deg2rad(x) | -
sinc(h) | torch.sinc(h) | jnp.sinc(h) | -
digamma(p) | torch.digamma(p) | jax.scipy.special.digamma(p) | tf.math.digamma(p)
lgamma(p) | torch.lgamma(p) | jax.lax.lgamma(p) | tf.math.lgamma(p)
i0(x) | torch.i0(x) | jnp.i0(x) | tf.math.bessel_i0(x)
clip(x, -1.0, 1.0) | torch.clamp(x, -1.0, 1.0) | jnp.clip(x, -1.0, 1.0) | tf.clip_by_value(x, -1.0, 1.0)
cast(x, 'float64') | x.to(torch.float64) | - | tf.cast(x, 'float64')
cast(x, 'int32') | x.to(torch.int32) | x.astype('int32') | tf.cast(x, 'int32')
zeros_like(x) | torch.zeros_like(x) | jnp.zeros_like(x) | tf.zeros_like(x)
ones_like(x) | torch.ones_like(x) | jnp.ones_like(x) | tf.ones_like(x)
full_like(x, 2.0) | torch.full_like(x, 2.0) | jnp.full_like(x, 2.0) | -
logical_not(b) | torch.logical_not(b) | jnp.logical_not(b) | tf.logical_not(b)
bitwise_not(i) | torch.bitwise_not(i) | jnp.bitwise_not(i) | tf.bitwise.invert(i)
add(x, y) | torch.add(x, y) | jnp.add(x, y) | tf.add(x, y)
add(x, 2.0) | torch.add(x, 2.0) | jnp.add(x, 2.0) | tf.add(x, 2.0)
subtract(x, y) | torch.sub(x, y) | jnp.subtract(x, y) | tf.subtract(x, y)
multiply(x, y) | torch.mul(x, y) | jnp.multiply(x, y) | tf.multiply(x, y)
multiply(x, 2.0) | torch.mul(x, 2.0) | jnp.multiply(x, 2.0) | tf.multiply(x, 2.0)
divide(x, p) | torch.div(x, p) | jnp.divide(x, p) | tf.divide(x, p)
divide_no_nan(x, p) | - | - | tf.math.divide_no_nan(x, p)
floor_divide(i, j) | torch.floor_divide(i, j) | jnp.floor_divide(i, j) | tf.math.floordiv(i, j)
mod(x, p) | torch.remainder(x, p) | jnp.mod(x, p) | tf.math.floormod(x, p)
fmod(x, p) | torch.fmod(x, p) | jnp.fmod(x, p) | -
power(p, y) | torch.pow(p, y) | jnp.power(p, y) | tf.pow(p, y)
power(x, 3) | torch.pow(x, 3) | jnp.power(x, 3) | tf.pow(x, 3)
maximum(x, y) | torch.maximum(x, y) | jnp.maximum(x, y) | tf.maximum(x, y)
maximum(x, 0.5) | torch.clamp(x, min=0.5) | jnp.maximum(x, 0.5) | tf.maximum(x, 0.5)
minimum(x, y) | torch.minimum(x, y) | jnp.minimum(x, y) | tf.minimum(x, y)
fmax(x, y) | torch.fmax(x, y) | jnp.fmax(x, y) | -
fmin(x, y) | torch.fmin(x, y) | jnp.fmin(x, y) | -
hypot(x, y) | torch.hypot(x, y) | jnp.hypot(x, y) | tf.sqrt(x * x + y * y)
arctan2(x, y) | torch.atan2(x, y) | jnp.arctan2(x, y) | tf.atan2(x, y)
logaddexp(x, y) | torch.logaddexp(x, y) | jnp.logaddexp(x, y) | -
logaddexp2(x, y) | torch.logaddexp2(x, y) | jnp.logaddexp2(x, y) | -
heaviside(x, y) | torch.heaviside(x, y) | jnp.heaviside(x, y) | -
nextafter(x, y) | torch.nextafter(x, y) | jnp.nextafter(x, y) | tf.math.nextafter(x, y)
ldexp(x, j) | torch.ldexp(x, j) | jnp.ldexp(x, j) | -
greater(x, y) | torch.gt(x, y) | jnp.greater(x, y) | tf.greater(x, y)
less_equal(x, y) | torch.le(x, y) | jnp.less_equal(x, y) | tf.less_equal(x, y)
equal(x, y) | torch.eq(x, y) | jnp.equal(x, y) | tf.equal(x, y)
not_equal(x, 0.0) | torch.ne(x, 0.0) | jnp.not_equal(x, 0.0) | tf.not_equal(x, 0.0)
isclose(x, y) | torch.isclose(x, y) | jnp.isclose(x, y) | -
logical_and(b, d) | torch.logical_and(b, d) | jnp.logical_and(b, d) | tf.logical_and(b, d)
logical_xor(b, d) | torch.logical_xor(b, d) | jnp.logical_xor(b, d) | tf.math.logical_xor(b, d)
bitwise_and(i, j) | torch.bitwise_and(i, j) | jnp.bitwise_and(i, j) | tf.bitwise.bitwise_and(i, j)
left_shift(i, j) | torch.bitwise_left_shift(i, j) | jnp.left_shift(i, j) | tf.bitwise.left_shift(i, j)
gcd(i, j) | torch.gcd(i, j) | jnp.gcd(i, j) | -
gammainc(p, q) | torch.special.gammainc(p, q) | jax.lax.igamma(p, q) | tf.math.igamma(p, q)
where(b, x, y) | torch.where(b, x, y) | jnp.where(b, x, y) | tf.where(b, x, y)
where(b, x, 0.0) | torch.where(b, x, 0.0) | jnp.where(b, x, 0.0) | tf.where(b, x, 0.0)
sum(m) | torch.sum(m) | jnp.sum(m) | tf.reduce_sum(m)
sum(m, axis=1) | torch.sum(m, 1) | jnp.sum(m, 1) | tf.reduce_sum(m, 1)
mean(m, axis=1) | torch.mean(m, 1) | jnp.mean(m, 1) | tf.reduce_mean(m, 1)
max(m, axis=1) | torch.amax(m, 1) | jnp.max(m, 1) | tf.reduce_max(m, 1)
max(m) | torch.amax(m) | jnp.max(m) | tf.reduce_max(m)
min(m, axis=0) | torch.amin(m, 0) | jnp.min(m, 0) | tf.reduce_min(m, 0)
prod(m, axis=1) | torch.prod(m, 1) | jnp.prod(m, 1) | tf.reduce_prod(m, 1)
var(m, axis=1) | torch.var(m, 1, correction=0) | jnp.var(m, 1) | tf.math.reduce_variance(m, 1)
std(m, axis=1) | torch.std(m, 1, correction=0) | jnp.std(m, 1) | tf.math.reduce_std(m, 1)
moments(m, 1) | torch.var_mean(m, 1, correction=0)[::-1] | - | tf.nn.moments(m, [1])
argmax(m, axis=1) | torch.argmax(m, 1) | jnp.argmax(m, 1) | tf.argmax(m, 1)
argmin(m, axis=0) | torch.argmin(m, 0) | jnp.argmin(m, 0) | tf.argmin(m, 0)
any(b) | torch.any(b) | jnp.any(b) | tf.reduce_any(b)
all(b) | torch.all(b) | jnp.all(b) | tf.reduce_all(b)
count_nonzero(m, axis=1) | torch.count_nonzero(m, 1) | jnp.count_nonzero(m, 1) | tf.math.count_nonzero(m, 1)
cumsum(m, axis=1) | torch.cumsum(m, 1) | jnp.cumsum(m, 1) | tf.cumsum(m, 1)
cumprod(m, axis=1) | torch.cumprod(m, 1) | jnp.cumprod(m, 1) | tf.math.cumprod(m, 1)
logsumexp(m, axis=1) | torch.logsumexp(m, 1) | jax.nn.logsumexp(m, 1) | tf.reduce_logsumexp(m, 1)
softmax(m) | torch.softmax(m, -1) | jax.nn.softmax(m) | tf.nn.softmax(m)
log_softmax(m) | torch.log_softmax(m, -1) | jax.nn.log_softmax(m) | tf.nn.log_softmax(m)
norm(x) | torch.linalg.norm(x) | jnp.linalg.norm(x) | tf.norm(x)
norm(m, axis=1) | torch.linalg.norm(m, dim=1) | jnp.linalg.norm(m, axis=1) | tf.norm(m, axis=1)
normalize(m, 1) | F.normalize(m) | - | tf.math.l2_normalize(m, 1)
ptp(m, axis=1) | - | jnp.ptp(m, 1) | -
median(m, axis=1) | torch.quantile(m, 0.5, 1) | jnp.median(m, 1) | -
quantile(m, 0.3, axis=1) | torch.quantile(m, 0.3, 1) | jnp.quantile(m, 0.3, 1) | -
nansum(m, axis=1) | torch.nansum(m, 1) | jnp.nansum(m, 1) | -
nanmean(m, axis=1) | torch.nanmean(m, 1) | jnp.nanmean(m, 1) | -
nanmax(m, axis=1) | - | jnp.nanmax(m, 1) | -
nanstd(m, axis=1) | - | jnp.nanstd(m, 1) | -
sort(m) | torch.sort(m, stable=True)[0] | jnp.sort(m) | tf.sort(m)
argsort(m) | torch.argsort(m, stable=True) | jnp.argsort(m) | tf.argsort(m, stable=True)
top_k(m, 2) | torch.topk(m, 2) | jax.lax.top_k(m, 2) | tf.math.top_k(m, 2)
diff(m) | torch.diff(m) | jnp.diff(m) | -
trapezoid(m) | torch.trapezoid(m) | jnp.trapezoid(m) | -
searchsorted(w, x) | torch.searchsorted(w, x) | jnp.searchsorted(w, x) | tf.searchsorted(w, x)
bincount(k, minlength=9) | torch.bincount(k, minlength=9) | - | tf.math.bincount(k, minlength=9)
unique(k) | torch.unique(k) | - | -
flip(m, axis=1) | torch.flip(m, (1,)) | jnp.flip(m, 1) | tf.reverse(m, [1])
roll(m, 1, axis=1) | torch.roll(m, 1, 1) | jnp.roll(m, 1, 1) | tf.roll(m, 1, 1)
rot90(m) | torch.rot90(m) | jnp.rot90(m) | -
tile(x, 2) | torch.tile(x, (2,)) | jnp.tile(x, 2) | tf.tile(x, [2])
repeat(x, 2) | torch.repeat_interleave(x, 2) | jnp.repeat(x, 2) | tf.repeat(x, 2)
pad(m, 1) | F.pad(m, (1, 1, 1, 1)) | jnp.pad(m, 1) | tf.pad(m, [[1, 1], [1, 1]])
concatenate([x, y]) | torch.cat([x, y]) | jnp.concatenate([x, y]) | tf.concat([x, y], 0)
stack([x, y]) | torch.stack([x, y]) | jnp.stack([x, y]) | tf.stack([x, y])
split(m, 2, axis=1) | torch.chunk(m, 2, 1) | jnp.split(m, 2, 1) | tf.split(m, 2, 1)
unstack(m) | torch.unbind(m) | jnp.unstack(m) | tf.unstack(m)
reshape(m, (-1,)) | torch.reshape(m, (-1,)) | jnp.reshape(m, (-1,)) | tf.reshape(m, (-1,))
transpose(m) | torch.transpose(m, 0, 1) | jnp.transpose(m) | tf.transpose(m)
moveaxis(m, 0, 1) | torch.moveaxis(m, 0, 1) | jnp.moveaxis(m, 0, 1) | -
expand_dims(x, 0) | torch.unsqueeze(x, 0) | jnp.expand_dims(x, 0) | tf.expand_dims(x, 0)
squeeze(e, 0) | torch.squeeze(e, 0) | jnp.squeeze(e, 0) | tf.squeeze(e, [0])
broadcast_to(x, (2, *x.shape)) | torch.broadcast_to(x, (2, *x.shape)) | jnp.broadcast_to(x, (2, *x.shape)) | tf.broadcast_to(x, (2, *x.shape))
meshgrid(x[:4], y[:4]) | torch.meshgrid(x[:4], y[:4], indexing='xy') | jnp.meshgrid(x[:4], y[:4]) | tf.meshgrid(x[:4], y[:4])
take(m, f, axis=0) | torch.index_select(m, 0, f) | jnp.take(m, f, axis=0) | tf.gather(m, f, axis=0)
take(x, k) | torch.take(x, z) | jnp.take(x, k) | tf.gather(x, k)
take_along_axis(m, l, 1) | torch.gather(m, 1, o) | jnp.take_along_axis(m, l, 1) | tf.gather(m, l, axis=1, batch_dims=1)
tril(m) | torch.tril(m) | jnp.tril(m) | tf.linalg.band_part(m, -1, 0)
diagonal(m) | torch.diagonal(m) | jnp.diagonal(m) | tf.linalg.diag_part(m)
diag(x[:4]) | torch.diag(x[:4]) | jnp.diag(x[:4]) | tf.linalg.diag(x[:4])
trace(s[0]) | torch.trace(s[0]) | jnp.trace(s[0]) | tf.linalg.trace(s[0])
one_hot(k, 8) | F.one_hot(z, 8) | jax.nn.one_hot(k, 8) | tf.one_hot(k, 8)
segment_sum(x, g, 8) | - | jax.ops.segment_sum(x, g, 8) | tf.math.unsorted_segment_sum(x, g, 8)
segment_max(x, g, 8) | - | jax.ops.segment_max(x, g, 8) | tf.math.unsorted_segment_max(x, g, 8)
dot(x, y) | torch.dot(x, y) | jnp.dot(x, y) | tf.tensordot(x, y, 1)
outer(x[:8], y[:8]) | torch.outer(x[:8], y[:8]) | jnp.outer(x[:8], y[:8]) | -
cross(m[:, :3], n[:, :3]) | torch.linalg.cross(m[:, :3], n[:, :3]) | jnp.cross(m[:, :3], n[:, :3]) | tf.linalg.cross(m[:, :3], n[:, :3])
matmul(m, a) | torch.matmul(m, a) | jnp.matmul(m, a) | tf.matmul(m, a)
tensordot(m, a, 1) | torch.tensordot(m, a, 1) | jnp.tensordot(m, a, 1) | tf.tensordot(m, a, 1)
einsum('ij,jk->ik', m, a) | torch.einsum('ij,jk->ik', m, a) | jnp.einsum('ij,jk->ik', m, a) | tf.einsum('ij,jk->ik', m, a)
cdist(m, n) | torch.cdist(m, n) | - | -
cholesky(s) | torch.linalg.cholesky(s) | jnp.linalg.cholesky(s) | tf.linalg.cholesky(s)
inv(s) | torch.linalg.inv(s) | jnp.linalg.inv(s) | tf.linalg.inv(s)
solve(s, r) | torch.linalg.solve(s, r) | jnp.linalg.solve(s, r) | tf.linalg.solve(s, r)
det(s) | torch.linalg.det(s) | jnp.linalg.det(s) | tf.linalg.det(s)
slogdet(s) | torch.linalg.slogdet(s) | jnp.linalg.slogdet(s) | tf.linalg.slogdet(s)
eigh(s)[0] | torch.linalg.eigh(s)[0] | jnp.linalg.eigh(s)[0] | tf.linalg.eigh(s)[0]
svd(s)[1] | torch.linalg.svd(s)[1] | jnp.linalg.svd(s)[1] | tf.linalg.svd(s)[0]
qr(s)[1] | torch.linalg.qr(s)[1] | jnp.linalg.qr(s)[1] | tf.linalg.qr(s)[1]
expm(s * 0.01) | torch.linalg.matrix_exp(s * 0.01) | jax.scipy.linalg.expm(s * 0.01) | tf.linalg.expm(s * 0.01)
fft((m, n))[0] | torch.fft.fft(torch.complex(m, n)).real | jnp.fft.fft(jax.lax.complex(m, n)).real | tf.math.real(tf.signal.fft(tf.complex(m, n)))
rfft(m)[0] | torch.fft.rfft(m).real | jnp.fft.rfft(m).real | tf.math.real(tf.signal.rfft(m))
max_pool(v, 2, data_format='channels_first') | F.max_pool2d(v, 2) | - | -
max_pool(t, 2) | - | jax.lax.reduce_window(t, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID') | tf.nn.max_pool2d(t, 2, 2, 'VALID')
average_pool(v, 2, data_format='channels_first') | F.avg_pool2d(v, 2) | - | -
average_pool(t, 2) | - | - | tf.nn.avg_pool2d(t, 2, 2, 'VALID')
conv(v, c, padding='same', data_format='channels_first') | F.conv2d(v, c.permute(3, 2, 0, 1), padding='same') | - | -
conv(t, c, padding='same') | - | jax.lax.conv_general_dilated(t, c, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC')) | tf.nn.conv2d(t, c, 1, 'SAME')
layer_normalization(m, m[0], n[0], epsilon=1e-5) | F.layer_norm(m, m.shape[1:], m[0], n[0], 1e-5) | - | -
group_normalization(v, 1, axis=1, epsilon=1e-5) | F.group_norm(v, 1, None, None, 1e-5) | - | -
rms_normalization(m, m[0], epsilon=1e-5) | F.rms_norm(m, m.shape[1:], m[0], 1e-5) | - | -
binary_crossentropy(q, x, from_logits=True) | F.binary_cross_entropy_with_logits(x, q, reduction='none') | - | tf.nn.sigmoid_cross_entropy_with_logits(q, x)
sparse_categorical_crossentropy(l[:, 0], m, from_logits=True) | F.cross_entropy(m, o[:, 0], reduction='none') | - | tf.nn.sparse_softmax_cross_entropy_with_logits(l[:, 0], m)
logical_or(b, d) | torch.logical_or(b, d) | jnp.logical_or(b, d) | tf.logical_or(b, d)
greater_equal(x, y) | torch.ge(x, y) | jnp.greater_equal(x, y) | tf.greater_equal(x, y)
less(x, y) | torch.lt(x, y) | jnp.less(x, y) | tf.less(x, y)
bitwise_or(i, j) | torch.bitwise_or(i, j) | jnp.bitwise_or(i, j) | tf.bitwise.bitwise_or(i, j)
bitwise_xor(i, j) | torch.bitwise_xor(i, j) | jnp.bitwise_xor(i, j) | tf.bitwise.bitwise_xor(i, j)
right_shift(i, j) | torch.bitwise_right_shift(i, j) | jnp.right_shift(i, j) | tf.bitwise.right_shift(i, j)
lcm(i, j) | torch.lcm(i, j) | jnp.lcm(i, j) | -
isposinf(x) | torch.isposinf(x) | jnp.isposinf(x) | -
rad2deg(x) | torch.rad2deg(x) | jnp.rad2deg(x) | -
angle(x) | torch.angle(x) | jnp.angle(x) | tf.math.angle(x)
polar(p, x) | torch.polar(p, x) | - | -
gammaincc(p, q) | torch.special.gammaincc(p, q) | jax.lax.igammac(p, q) | tf.math.igammac(p, q)
polygamma(1, p) | torch.polygamma(1, p) | jax.scipy.special.polygamma(1, p) | -
gamma(p) | - | jax.scipy.special.gamma(p) | -
betaln(p, q) | - | jax.scipy.special.betaln(p, q) | tf.math.lbeta(tf.stack([p, q], -1))
xlogy(x, p) | torch.xlogy(x, p) | jax.scipy.special.xlogy(x, p) | tf.math.xlogy(x, p)
xlog1py(x, p) | torch.special.xlog1py(x, p) | jax.scipy.special.xlog1py(x, p) | tf.math.xlog1py(x, p)
sum(m, axis=(0, 1)) | torch.sum(m, (0, 1)) | jnp.sum(m, (0, 1)) | tf.reduce_sum(m, (0, 1))
prod(m) | torch.prod(m) | jnp.prod(m) | tf.reduce_prod(m)
var(m) | torch.var(m, correction=0) | jnp.var(m) | tf.math.reduce_variance(m)
average(m, axis=1) | torch.mean(m, 1) | jnp.average(m, 1) | tf.reduce_mean(m, 1)
nancumsum(m, 1) | - | jnp.nancumsum(m, 1) | -
nanmin(m, axis=1) | - | jnp.nanmin(m, 1) | -
nanprod(m, axis=1) | - | jnp.nanprod(m, 1) | -
nanvar(m, axis=1) | - | jnp.nanvar(m, 1) | -
corrcoef(m) | torch.corrcoef(m) | jnp.corrcoef(m) | -
isin(k, f) | torch.isin(k, f) | jnp.isin(k, f) | -
digitize(x, w) | torch.bucketize(x, w, right=True) | jnp.digitize(x, w) | -
correlate(x, y[:4]) | - | jnp.correlate(x, y[:4]) | -
ravel(m) | torch.ravel(m) | jnp.ravel(m) | tf.reshape(m, [-1])
swapaxes(m, 0, 1) | torch.swapaxes(m, 0, 1) | jnp.swapaxes(m, 0, 1) | tf.transpose(m)
fliplr(m) | torch.fliplr(m) | jnp.fliplr(m) | tf.reverse(m, [1])
hstack([x, y]) | torch.hstack([x, y]) | jnp.hstack([x, y]) | tf.concat([x, y], 0)
vstack([x, y]) | torch.vstack([x, y]) | jnp.vstack([x, y]) | tf.stack([x, y])
column_stack([x, y]) | torch.column_stack([x, y]) | jnp.column_stack([x, y]) | tf.stack([x, y], 1)
append(x, y) | torch.cat([x, y]) | jnp.append(x, y) | tf.concat([x, y], 0)
triu(m) | torch.triu(m) | jnp.triu(m) | tf.linalg.band_part(m, 0, -1)
arange(8) | torch.arange(8) | jnp.arange(8) | tf.range(8)
linspace(0.0, 1.0, 8) | torch.linspace(0.0, 1.0, 8) | jnp.linspace(0.0, 1.0, 8) | tf.linspace(0.0, 1.0, 8)
eye(4) | torch.eye(4) | jnp.eye(4) | tf.eye(4)
zeros((4, 2)) | torch.zeros((4, 2)) | jnp.zeros((4, 2)) | tf.zeros((4, 2))
full((4, 2), 2.0) | torch.full((4, 2), 2.0) | jnp.full((4, 2), 2.0) | tf.fill((4, 2), 2.0)
copy(x) | torch.clone(x) | jnp.copy(x) | tf.identity(x)
convert_to_tensor(2.0) | torch.tensor(2.0) | jnp.asarray(2.0, 'float32') | tf.constant(2.0)
convert_to_tensor([1.0, 2.0, 3.0]) | torch.tensor([1.0, 2.0, 3.0]) | jnp.asarray([1.0, 2.0, 3.0], 'float32') | tf.constant([1.0, 2.0, 3.0])
add(x[:3], [1.0, 2.0, 3.0]) | torch.add(x[:3], torch.tensor([1.0, 2.0, 3.0])) | jnp.add(x[:3], jnp.asarray([1.0, 2.0, 3.0], x.dtype)) | tf.add(x[:3], [1.0, 2.0, 3.0])
get_item(m, (0, slice(1, None))) | m[0, 1:] | m[0, 1:] | m[0, 1:]
take(x, 3) | torch.select(x, 0, 3) | jnp.take(x, 3) | tf.gather(x, 3)
take(m, 1, axis=1) | torch.select(m, 1, 1) | jnp.take(m, 1, 1) | tf.gather(m, 1, axis=1)
take(x, [0, 2]) | torch.take(x, torch.tensor([0, 2])) | jnp.take(x, jnp.asarray([0, 2])) | tf.gather(x, [0, 2])
nonzero(x) | torch.nonzero(x, as_tuple=True) | jnp.nonzero(x) | -
slice(m, (0, 1), (2, 2)) | m[0:2, 1:3] | jax.lax.dynamic_slice(m, (0, 1), (2, 2)) | tf.slice(m, (0, 1), (2, 2))
segment_min(x, g, 8) | - | jax.ops.segment_min(x, g, 8) | tf.math.unsorted_segment_min(x, g, 8)
inner(x, y) | torch.inner(x, y) | jnp.inner(x, y) | tf.tensordot(x, y, 1)
vdot(x, y) | torch.vdot(x, y) | jnp.vdot(x, y) | tf.tensordot(x, y, 1)
kron(x[:4], y[:4]) | torch.kron(x[:4], y[:4]) | jnp.kron(x[:4], y[:4]) | -
vander(u[:4]) | torch.linalg.vander(u[:4]).flip(-1) | jnp.vander(u[:4]) | -
eigvalsh(s) | torch.linalg.eigvalsh(s) | jnp.linalg.eigvalsh(s) | tf.linalg.eigvalsh(s)
svdvals(s) | torch.linalg.svdvals(s) | jnp.linalg.svdvals(s) | tf.linalg.svd(s, compute_uv=False)
logdet(s) | torch.logdet(s) | - | tf.linalg.logdet(s)
pinv(s) | torch.linalg.pinv(s) | jnp.linalg.pinv(s) | tf.linalg.pinv(s)
matrix_power(s, 3) | torch.linalg.matrix_power(s, 3) | jnp.linalg.matrix_power(s, 3) | -
solve_triangular(s, r, lower=True) | torch.linalg.solve_triangular(s, r, upper=False) | jax.scipy.linalg.solve_triangular(s, r, lower=True) | tf.linalg.triangular_solve(s, r)
categorical_crossentropy(q[:4], p[:4], from_logits=True) | F.cross_entropy(p[:4], q[:4]) | - | tf.nn.softmax_cross_entropy_with_logits(q[:4], p[:4])
unfold(v, 2) | F.unfold(v, 2) | - | -
conj(x) | torch.conj(x) | jnp.conj(x) | tf.math.conj(x)
real(x) | torch.real(x) | jnp.real(x) | tf.math.real(x)
"""
SIZES = {  # 8 numbers, so many times, and their dtype; the wide ones last, since JAX has them in its 64-bit mode alone
    "[8]": (1, "float32"),
    "[1000]": (125, "float32"),
    "[262144]": (2**15, "float32"),
    "[8] float64": (1, "float64"),
    "[1000] float64": (125, "float64"),
}
SHAPES = {1: ((2, 4), 1, 2, 2, 2), 125: ((25, 40), 10, 10, 5, 8), 2**15: ((512, 512), 16, 64, 64, 8)}
NOT_DIFFERENTIABLE = {"floor", "ceil", "round", "trunc", "sign", "nextafter", "zeros_like", "ones_like", "full_like"}
NOT_DIFFERENTIABLE |= {"heaviside", "one_hot", "gammainc", "gammaincc"}
NOT_DIFFERENTIABLE |= {"cholesky", "eigh", "eigvalsh"}  # whose gradient is that of the lower triangle here
FLOATS = "xypquhmnsrtvcaew"  # what is differentiated
# per backend: the geometric mean on few numbers, the worst row there, and rows on many numbers, eager and compiled
LIMITS = {"torch": (1.25, 2.0), "jax": (0.80, 1.3), "tensorflow": (0.80, 1.3)}
EAGER, COMPILED = 1.10, 1.05
FEW = 3.0  # the worst row on a few numbers, in either dtype, where it is not listed above
TOLERANCE = 1e-3


def operands(bench: Bench, multiop: Any, times: int, dtype: str) -> dict[str, Any]:
    """Return what the expressions read, with 8 numbers `times` times over."""
    ops, size, (matrix, batch, side, high, channels) = multiop.ops, 8 * times, SHAPES[times]

    def tensor(*shape: int, seed: int = 0) -> Any:
        return ops.cast(bench.tensor(*shape, seed=seed), dtype)

    x, y, m, n = tensor(size), tensor(size, seed=1), tensor(*matrix), tensor(*matrix, seed=1)
    square, t = tensor(batch, side, side), tensor(max(1, size // high**2 // channels), high, high, channels)
    whole = ops.cast(ops.abs(x) * 1000, "int32")
    found = {"x": x, "y": y, "p": ops.exp(x), "q": ops.sigmoid(y), "u": ops.tanh(x / 2), "h": ops.exp(x) + 1.5}
    found |= {
        "b": x > 0,
        "d": y > 0,
        "i": whole + 1,
        "j": whole % 5 + 1,
        "k": whole % min(size, 8),
        "f": whole[:4] % 2,
        "g": ops.arange(size) % 8,
    }
    found |= {"m": m, "n": n, "a": ops.transpose(n), "e": x[None], "w": ops.sort(x), "l": ops.argsort(m)}
    found |= {"s": square @ ops.swapaxes(square, 1, 2) / side + ops.eye(side, dtype=dtype), "r": square, "t": t}
    found |= {"v": ops.transpose(t, (0, 3, 1, 2)), "c": tensor(3, 3, channels, channels)}
    if bench.backend == "torch":
        found |= {"v": found["v"].contiguous(), "z": found["k"].long(), "o": found["l"].long()}
    return found


def measure(bench: Bench) -> None:
    """Measure one backend in this process."""
    multiop = bench.load()
    bench.keras = None
    native = NATIVE[bench.backend]()
    names = {"multiop": multiop, **names_for(bench.backend)}
    if bench.backend == "torch":
        names["F"] = native.torch.nn.functional
    worst, ratios = LIMITS[bench.backend][1], []
    for label, (times, dtype) in SIZES.items():
        if bench.few and times == 2**15:
            continue
        if dtype == "float64":
            multiop.enable_x64()
        values = operands(bench, multiop, times, dtype)
        for line in OPS.strip().splitlines():
            ours, *theirs = [part.strip() for part in line.split("|")]
            theirs = theirs[COLUMNS[bench.backend] - 1]
            name = ours.partition("(")[0]
            if theirs == "-" or (bench.only and f"op_{name}" not in bench.only):
                continue
            letters = sorted(set(re.findall(r"(?<![\w.'])([a-z])(?![\w'(])", ours + theirs)))
            pair = {
                "native": function(theirs, letters, names),
                "multiop": function(f"multiop.op_{ours}", letters, names),
            }
            row = Row(bench, f"{ours} {label}", native, letters, [values[one] for one in letters])
            limit = EAGER if times == 2**15 else worst if label == "[8]" else FEW
            found = row.compare("forward", pair, limit)
            ratios += [found] if label == "[8]" and found is not None else []
            if name not in NOT_DIFFERENTIABLE and not bench.few:
                row.compare("both ways", pair, limit)
                if times == 2**15 and (bench.backend != "torch" or bench.only):
                    row.compare("compiled", pair, COMPILED)
    bench.rows.sort(key=lambda row: -row["measured"])
    if ratios:
        bench.note(
            "geometric mean of all forward [8]", statistics.geometric_mean(ratios), LIMITS[bench.backend][0], "x"
        )


class Row:
    """An op, in each of its ways."""

    def __init__(self, bench: Bench, name: str, native: Any, letters: list[str], values: list[Any]) -> None:
        self.bench, self.name, self.native, self.values = bench, name, native, values
        self.wanted = [k for k, letter in enumerate(letters) if letter in FLOATS]

    def compare(self, way: str, pair: dict[str, Any], limit: float) -> float | None:
        """Note the ratio in a way, and return it; `None` where the op has no gradient."""
        if way == "forward":
            calls = {who: call("f(*xs)", {"f": f, "xs": self.values}) for who, f in pair.items()}
        else:
            y = pair["native"](*self.values)
            if not self.wanted or isinstance(y, (tuple, list)) or "float" not in str(y.dtype):
                return None
            turn = self.native.compiled if way == "compiled" else self.native.both_ways
            turned = {who: turn(self.of_floats(f)) for who, f in pair.items()}
            import multiop

            upstream = multiop.op_cast(self.bench.tensor(*y.shape, seed=2), multiop.dtype_name(y))
            given = {"u": upstream, "xs": [self.values[k] for k in self.wanted]}
            calls = {who: call("f(u, *xs)", {"f": f, **given}) for who, f in turned.items()}
        return self.bench.compare(f"{self.name}, {way}", calls, limit, TOLERANCE)["measured"]

    def of_floats(self, f: Any) -> Any:
        """Return `f` as a function of what is differentiated."""

        def g(*xs: Any) -> Any:
            values = list(self.values)
            for k, x in zip(self.wanted, xs, strict=True):
                values[k] = x
            return f(*values)

        return g


def tables(kept: dict[str, Any]) -> dict[str, str]:
    """Return a line for each backend, number of entries and way: targets met, the mean ratio, the slowest ops."""
    rows = []
    for result in kept["results"]:
        groups: dict[str, dict[str, dict[str, Any]]] = {}
        for row in result["rows"]:
            call, _, way = row["name"].rpartition(" [")
            if "ratio" in row:
                groups.setdefault(way.replace("]", ""), {})[call] = row
        for way, found in sorted(groups.items(), reverse=True):
            ratios = {call: row["ratio"]["multiop"][1] for call, row in found.items()}
            slowest = sorted(ratios, key=ratios.__getitem__, reverse=True)[:5]
            rows.append([
                TITLES.get(result["backend"], result["backend"]),
                way,
                f"{sum(row['met'] for row in found.values())} of {len(found)}",
                f"{statistics.geometric_mean(ratios.values()):.2f}",
                ", ".join(f"{call} {ratios[call]:.2f}" for call in slowest),
            ])  # fmt: skip
    about, headings = kept["machine"], ("backend", "numbers, way", "targets met", "mean ratio", "the slowest")
    is_of_few = not any("[262144]" in row["name"] for result in kept["results"] for row in result["rows"])
    name, dtype = ("few numbers", "") if is_of_few else ("every op", ", float32")
    return {name: f"\n{kept['rounds']} rounds, {about['cores']} cores{dtype}.\n\n{markdown(headings, rows)}\n"}


if __name__ == "__main__":
    run(["every_op"], __doc__, rounds=15)
