"""One-line functions, one or more for each row of the table of JAX's primitives."""

from __future__ import annotations

import functools

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from ported import weights

from multiop import porting

jnp, lax = jax.numpy, jax.lax


def normal(*shape):
    return lambda generator: generator.normal(size=shape)


def positive(*shape):
    return lambda generator: generator.uniform(0.5, 1.5, shape)


def unit(*shape):
    return lambda generator: generator.uniform(-0.8, 0.8, shape)


def integers(*shape, below=3, above=0):
    return lambda generator: generator.integers(above, below, shape)


def bools(*shape):
    return lambda generator: generator.uniform(size=shape) > 0.4


X = normal(3, 4)


def entrywise(*names, draw=X, module=lax):
    return {name: (getattr(module, name), draw) for name in names}


def conv(strides, padding, **options):
    return lambda x, k: lax.conv_general_dilated(x, k, strides, padding, **options)


NHWC = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}


def matrix(x):
    return x @ x.T + 3 * jnp.eye(3)


def parts(z):
    return z.real, z.imag


OUTSIDE = integers(7, above=-9, below=9)
MODES = ("fill", "clip", "promise_in_bounds")
GatherDims = lax.GatherDimensionNumbers


def PLACES(generator):
    return np.array([5, -2, 9, -9, 0])


def places_got(mode, x, i, j):
    return x.at[i].get(mode=mode), x.at[i, j].get(mode=mode), x.at[:, i].get(mode=mode), x.at[i[0]].get(mode=mode)


def places_updated(mode, x, i, v):
    columns = i[:2] % 4
    v = lax.stop_gradient(v) if mode == "promise_in_bounds" else v  # "gradients will not be correct", JAX says
    updated = x.at[i].add(v, mode=mode), x.at[:, columns].set(x[:, :2], mode=mode), x.at[i, i].set(v[:, 0], mode=mode)
    extremes = x.at[i].min(lax.stop_gradient(v), mode=mode), x.at[i].max(lax.stop_gradient(v), mode=mode)
    return *updated, *map(lax.stop_gradient, extremes)


def doubled(carry):
    return carry[0] * 2, carry[1] + 0.3


def window(reduce, start, size, strides, padding="VALID", base=None, dilation=None):
    return lambda x: lax.reduce_window(x, start, reduce, size, strides, padding, base, dilation)


def sum_of_cubes(function):
    return jax.grad(lambda x: jnp.sum(function(x) ** 3))


def logsumexp(x, is_taken_stopped, is_added_stopped):
    taken, added = (
        lax.stop_gradient(top) if is_stopped else top
        for is_stopped, top in ((is_taken_stopped, x.max(1, keepdims=True)), (is_added_stopped, x.max(1)))
    )
    return jnp.log(jnp.exp(x - taken).sum(1)) + added


def normalized(x, epsilon, **options):
    return (x - x.mean(1, keepdims=True)) * lax.rsqrt(x.var(1, keepdims=True, **options) + epsilon)


def attended(q, k, v, scale):
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * scale), v)


NEAR = {  # what differs from an op by little: a number, an axis, what is stopped
    "logsumexp, all stopped": (lambda x: logsumexp(x, True, True), X),
    "logsumexp, none stopped": (lambda x: logsumexp(x, False, False), X),
    "logsumexp, the maximum taken away stopped": (lambda x: logsumexp(x, True, False), X),
    "logsumexp, the maximum added stopped": (lambda x: logsumexp(x, False, True), X),
    "softmax along another axis": (lambda x: (y := jnp.exp(x - x.max(1, keepdims=True))) / y.sum(0, keepdims=True), X),
    "gelu of seven digits": (lambda x: 0.5 * x * (1 + jnp.tanh(0.7978846 * (x + 0.044715 * x**3))), X),
    "gelu erf of seven digits": (lambda x: 0.5 * x * (1 + lax.erf(x * 0.7071068)), X),
    "attention of seven digits": (lambda *x: attended(*x, 0.5773503), *(3 * [normal(2, 3, 2, 3)])),
    "normalization, a negative epsilon": (lambda x: normalized(x, -1e-3), X),
    "normalization, one degree of freedom less": (lambda x: normalized(x, 1e-3, ddof=1), X),
    "rms normalization, a negative epsilon": (
        lambda x: x * lax.rsqrt(jnp.square(x).mean(1, keepdims=True) - 1e-3),
        X,
    ),
}
ROWS = NEAR | {
    **entrywise("abs", "asinh", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "floor"),
    **entrywise("is_finite", "logistic", "neg", "sign", "sin", "sinh", "square", "tanh", "stop_gradient", "cbrt"),
    **entrywise("log", "log1p", "rsqrt", "sqrt", "digamma", "lgamma", draw=positive(3, 4)),
    **entrywise("acos", "asin", "atanh", "erf_inv", "tan", draw=unit(3, 4)),
    "acosh": (lax.acosh, lambda generator: generator.uniform(1.5, 2.5, (3, 4))),
    "round": (lax.round, lambda generator: np.array([-2.5, -1.5, -0.4, 0.5, 1.5, 2.6])),
    "round to even": (jnp.round, lambda generator: np.array([-2.5, -1.5, -0.4, 0.5, 1.5, 2.6])),
    "add": (lambda x, y: x + y, X, normal(4)),
    "add number": (lambda x: x + 2, X),
    "add ints": (lambda x, y: x + y, integers(3, 4), integers(4)),
    "sub": (lambda x, y: x - y, X, normal(3, 1)),
    "sub from a number": (lambda x: 2.5 - x, X),
    "mul": (lambda x, y: x * y, X, normal(4)),
    "mul int": (lambda x, y: x * y, X, integers(3, 4)),
    "mul bool": (lambda x: x * (x > 0), X),
    "div": (lambda x, y: x / y, X, positive(4)),
    "div ints": (lambda x, y: lax.div(x, y), integers(3, 4, above=-9, below=9), integers(3, 4, above=1, below=4)),
    "div by an int": (lambda x: lax.div(x, np.int64(-3)), integers(3, 4, above=-9, below=9)),
    "floor_divide": (lambda x, y: x // y, integers(3, 4, above=-9, below=9), integers(3, 4, above=1, below=4)),
    "remainder": (lambda x: x % 0.7, X),
    "rem": (lambda x: lax.rem(x, 0.7), X),
    "pow": (lambda x, y: x**y, positive(3, 4), normal(4)),
    "pow to an int tensor": (lambda x, y: lax.pow(x, y), positive(3, 4), integers(3, 4)),
    "integer_pow": (lambda x: x**3 + x**-2, positive(3, 4)),
    "max": (lambda x, y: jnp.maximum(x, y), X, normal(4)),
    "max tie": (lambda x: jnp.maximum(x, 0) + jnp.minimum(x, 1), lambda generator: np.array([0.0, 1.0, 0.5, -2.0])),
    "min": (lambda x: jnp.minimum(x, 0.2), X),
    "atan2": (lax.atan2, X, X),
    "nextafter": (lambda x: lax.nextafter(lax.stop_gradient(x), 3.0), X),
    "igamma": (lambda x, y: lax.igamma(lax.stop_gradient(x), y), positive(3, 4), positive(3, 4)),
    "igammac": (lambda x, y: lax.igammac(lax.stop_gradient(x), y), positive(3, 4), positive(3, 4)),
    "polygamma": (lambda x: lax.polygamma(1.0, x), positive(3, 4)),
    "compare": (lambda x: (x == 0.5, x != 0.5, x < 0.5, x <= 0.5, x > 0.5, x >= 0.5), X),
    "logical": (lambda x, y: (x & y, x | y, x ^ y, ~x), bools(3, 4), bools(3, 4)),
    "bits": (lambda x, y: (x & y, x | y, x ^ y, ~x, x << y, x >> y), integers(3, 4, below=9), integers(3, 4)),
    "counts of bits": (lambda x: (lax.population_count(x), lax.clz(x)), integers(3, 4, above=-99, below=99)),
    "counts of small bits": (
        lambda x: (lax.population_count(x.astype("uint8")), lax.clz(x.astype("uint8"))),
        integers(3, 4, below=255),
    ),
    "shifts by any number": (
        lambda x, y: (lax.shift_right_logical(x, y), lax.shift_right_arithmetic(x, y), lax.shift_left(x, y)),
        integers(3, 4, above=-99, below=99),
        integers(3, 4, below=70),
    ),
    "shifts of unsigned": (
        lambda x: lax.shift_right_arithmetic(x.astype("uint32") << 22, jnp.full((3, 4), 3, "uint32")),
        integers(3, 4, below=2000),
    ),
    "bitcast": (
        lambda x: (lax.bitcast_convert_type(x, "int64"), lax.bitcast_convert_type(x, "int32"), x.view("uint8")),
        X,
    ),
    "reductions of bits": (
        lambda x: (
            jnp.bitwise_and.reduce(x, axis=1),
            jnp.bitwise_or.reduce(x, axis=0),
            jnp.bitwise_xor.reduce(x, axis=1),
            lax.reduce(x > 0, np.array(False), lax.bitwise_xor, (1,)),
        ),
        integers(3, 4, above=-9, below=9),
    ),
    "gcd": (lambda x: (jnp.gcd(x, 12), jnp.lcm(x, 4)), integers(3, 4, above=-9, below=9)),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 8, 7), X),
    "select_n": (lambda x: jnp.where(x > 0, x, 0), X),
    "select numbers": (lambda x: jnp.where(x > 0, 1.0, 0.3) * x, X),
    "select tensors": (lambda x, y: jnp.where(x > 0, x, y), X, normal(4)),
    "select of three": (lambda x: jnp.select([x > 1, x > 0], [x, 2 * x], -x), X),
    "clamp": (lambda x: lax.clamp(-0.3, x, 0.4), lambda generator: np.array([-0.3, 0.4, 0.1, 2.0, -1.0])),
    "clip": (lambda x: jnp.clip(x, -0.3, 0.4), lambda generator: np.array([-0.3, 0.4, 0.1, 2.0, -1.0])),
    "abs of zeros": (lambda x: (jnp.abs(x), jnp.linalg.norm(x, 1, axis=-1)), lambda generator: np.eye(3, 4)),
    "mixed widths": (
        lambda x, i: x.astype("float32") + jnp.std(i) + jnp.var(i, 1, keepdims=True) * jnp.sinc(i) + i.mean(),
        X,
        integers(3, 4),
    ),
    "sizes": (lambda x: x * (x.shape[0] + 1) / (2 * x.shape[0]), X),
    "convert_element_type": (lambda x: (x.astype("int32"), (x > 0).astype("float64") * x), X),
    "complex": (lambda x, y: jnp.abs(lax.complex(x, y)) + jnp.real(jnp.conj(lax.complex(x, y)) ** 2), X, X),
    "fft": (lambda x, y: parts(jnp.fft.fft(lax.complex(x, y), norm="ortho")), X, X),
    "fft2": (lambda x: parts(jnp.fft.fft2(x, s=(2, 5))), normal(2, 3, 4)),
    "ifft": (lambda x, y: parts(jnp.fft.ifft(lax.complex(x, y), axis=0)), X, X),
    "rfft": (lambda x: parts(jnp.fft.rfft(x, n=7)), X),
    "rfft2": (lambda x: parts(jnp.fft.rfft2(x, norm="ortho")), normal(2, 3, 5)),
    "irfft2": (lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x) ** 2, s=(3, 5)), normal(2, 3, 5)),
    "dct": (lambda x: jax.scipy.fft.dct(x), X),
    # JAX's own functions
    "relu": (jax.nn.relu, lambda generator: np.array([0.0, 1.0, -1.0])),
    **entrywise("relu6", "silu", "gelu", "softplus", "elu", "selu", "celu", "leaky_relu", "log_sigmoid", module=jax.nn),
    **entrywise("hard_tanh", "hard_swish", "soft_sign", "mish", "glu", "softmax", "log_softmax", module=jax.nn),
    **entrywise("standardize", module=jax.nn),
    "gelu erf": (functools.partial(jax.nn.gelu, approximate=False), X),
    **entrywise("log_ndtr", "ndtr", module=jax.scipy.special),
    "xlogy": (jax.scipy.special.xlogy, X, positive(3, 4)),
    "logaddexp": (jnp.logaddexp, X, normal(4)),
    "softmax first": (functools.partial(jax.nn.softmax, axis=0), X),
    "softmax where": (lambda x: jax.nn.softmax(x, where=x > -0.5), X),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, axis=1), X),
    "logsumexp keepdims": (lambda x: jax.nn.logsumexp(x, axis=(0, 1), keepdims=True), X),
    "logsumexp weights": (lambda x: jax.nn.logsumexp(x, axis=1, b=0.3), X),
    "one_hot": (lambda i: jax.nn.one_hot(i, 5), integers(3, 4)),
    "var": (lambda x: (jnp.var(x), jnp.var(x, 1, ddof=1), jnp.std(x, 1, keepdims=True)), X),
    "mean": (lambda x: (jnp.mean(x), jnp.mean(x, 1), jnp.mean(x, 0, keepdims=True)), X),
    "norm": (lambda x: jnp.linalg.norm(x, axis=-1), X),
    "sinc": (jnp.sinc, X),
    "attention": (jax.nn.dot_product_attention, normal(3, 5, 2, 4), normal(3, 6, 2, 4), normal(3, 6, 2, 4)),
    "causal attention": (lambda x: jax.nn.dot_product_attention(x, x, x, is_causal=True), normal(3, 5, 2, 4)),
    # products
    "matmul": (lambda x, y: x @ y, X, normal(4, 5)),
    "matmul transposed": (lambda x, y: x @ y.T, X, normal(5, 4)),
    "matmul vector": (lambda x, y: (x @ y, y @ x.T, y @ y), X, normal(4)),
    "matmul batch": (lambda x, y: x @ y, normal(3, 2, 4), normal(3, 4, 5)),
    "matmul from behind": (lambda x, y: x.T @ y, X, normal(3, 5)),
    "einsum": (lambda x, y: jnp.einsum("bij,bkj->kib", x, y), normal(3, 2, 4), normal(3, 5, 4)),
    "outer": (jnp.outer, normal(3), normal(4)),
    "tensordot": (lambda x, y: jnp.tensordot(x, y, 2), normal(3, 2, 4), normal(2, 4, 5)),
    "matmul of ints": (lambda x, y: x @ y, integers(3, 4), integers(4, 5)),
    # reductions
    "sum": (lambda x: (x.sum(), x.sum(0), x.sum((0, 2), keepdims=True)), normal(3, 2, 4)),
    "prod": (lambda x: x.prod(1), X),
    "extremes": (lambda x: (x.max(1), x.min(0), x.max()), X),
    "all": (lambda x: ((x > 0).all(1), (x > 0).any(0)), X),
    "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x)), X),
    "reduce": (
        lambda x: lax.reduce((x, x), (1.0, -jnp.inf), lambda a, b: (a[0] * b[0], jnp.maximum(a[1], b[1])), (1,)),
        X,
    ),
    "cumlogsumexp": (lambda x: (lax.cumlogsumexp(x, 1), lax.cumlogsumexp(x, 0, reverse=True)), X),
    "cumsum": (lambda x: (jnp.cumsum(x, 1), lax.cumsum(x, 0, reverse=True)), X),
    "cumprod": (lambda x: jnp.cumprod(x, 0), X),
    # shapes
    "reshape": (lambda x: x.reshape(-1, 2).reshape(x.shape[0], 2, 2), X),
    "transpose": (lambda x: (x.transpose(1, 2, 0), x.swapaxes(1, 2)), normal(3, 2, 4)),
    "squeeze": (lambda x: (x.squeeze(1), x[:, 0, None, 1:]), normal(3, 1, 4)),
    "broadcast_to": (lambda x: (jnp.broadcast_to(x[:, None], (3, 2, 4)), jnp.broadcast_to(x, (2, 3, 4)) + 0), X),
    "expand_dims": (lambda x: x[:, None] * x[None], X),
    "slice": (lambda x: (x[1:], x[:, ::2], x[:, -2:], x[..., 1]), X),
    "rev": (lambda x: (x[::-1], jnp.flip(x)), X),
    "concatenate": (lambda x, y: (jnp.concatenate([x, y], 1), jnp.concatenate([x, x])), X, normal(3, 2)),
    "stack": (lambda x: (jnp.stack([x, 2 * x]), jnp.stack([x, 2 * x], -1)), X),
    "split": (lambda x: (*jnp.split(x, 2, 1), *jnp.split(x, [1], 1)), X),
    "pad": (lambda x: (jnp.pad(x, ((0, 0), (1, 2))), jnp.pad(x, 1, constant_values=0.5)), X),
    "pad between": (lambda x: lax.pad(x, 0.5, ((1, 2, 1), (0, 0, 2))), X),
    "associative_scan": (lambda x: lax.associative_scan(jnp.add, x, axis=1), normal(3, 5)),
    "pad negative": (lambda x: lax.pad(x, 0.0, ((0, 0, 0), (-1, 2, 0))), X),
    "pad reflect": (lambda x: (jnp.pad(x, ((0, 0), (2, 1)), "reflect"), jnp.pad(x, ((0, 0), (1, 1)), "edge")), X),
    "tile": (lambda x: jnp.tile(x, (1, 2)), X),
    "repeat": (lambda x: jnp.repeat(x, 2, 1), X),
    "roll": (lambda x: jnp.roll(x, 1, 1), X),
    "tril": (lambda x: (jnp.tril(x[:, :3]), jnp.triu(x, 1)), X),
    "arange": (lambda x: x + jnp.arange(4) + jnp.arange(3.0)[:, None], X),
    "linspace": (lambda x: x * jnp.linspace(0, 1, 4), X),
    "eye": (lambda x: x @ jnp.eye(4) + jnp.eye(3, 4), X),
    "full": (lambda x: (jnp.zeros((2, 3)), jnp.ones(4) * x, jnp.full((3, 4), 0.3)), X),
    "constant": (lambda x: x * np.arange(12.0).reshape(3, 4) + np.array([1.5, 2.5, 3.5, 4.5]), X),
    "meshgrid": (lambda x: jnp.meshgrid(x[0], x[:, 0]), X),
    # indices
    "take": (lambda x, i: (jnp.take(x, i, 0), x[i]), X, integers(2, 5)),
    "take columns": (lambda x, i: (x[:, i], jnp.take(x, i, 1)), X, integers(5, above=-3)),
    "take pairs": (lambda x, i, j: x[i, j], X, integers(5), integers(5)),
    "take in front": (lambda x, i: x[i, :2], X, integers(5)),
    "take_along_axis": (lambda x, i: jnp.take_along_axis(x, i, 1), X, integers(3, 2)),
    "take_along_axis first": (lambda x, i: jnp.take_along_axis(x, i, 0), X, integers(2, 4)),
    "index": (lambda x: (x[1], x[:, 2], x[-1], x[1, 2]), X),
    "dynamic index": (lambda x, i: (x[i[0]], x[:, i[1]]), X, integers(2)),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (0, i[0]), (3, 2)), X, integers(1, below=9)),
    "dynamic_slice of both": (lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (2, 2)), normal(4, 4), integers(2)),
    "dynamic_update_slice": (lambda x, i: lax.dynamic_update_slice(x, x[:1, :2] * 2, (i[0], 1)), X, integers(1)),
    "at set": (lambda x: x.at[0].set(2.0).at[:, 1].set(x[:, 0]), X),
    "at add": (lambda x, i: x.at[i].add(1.5), X, integers(2)),
    "at add pairs": (lambda x, i: x.at[i, i].add(x[i, i]), X, integers(2)),
    "at max": (lambda x, i: x.at[i].max(0.3).at[i].min(0.9).at[i].multiply(2.0), X, lambda generator: np.array([2, 0])),
    # indices out of range
    **{f"get, {mode}": (functools.partial(places_got, mode), X, OUTSIDE, OUTSIDE) for mode in MODES},
    **{
        f"update, {mode}": (functools.partial(places_updated, mode), normal(6, 4), PLACES, normal(5, 4))
        for mode in MODES
    },
    "get by default": (lambda x, i: (x[i], x[:, i], x[i, :2], x[i[0]], x[i, i]), X, OUTSIDE),
    "take, any mode": (
        lambda x, i: (jnp.take(x, i, 0), jnp.take(x, i, 1, mode="clip"), jnp.take(x, i, mode="wrap")),
        X,
        integers(2, 5, above=-9, below=9),
    ),
    "take_along_axis, any mode": (
        lambda x, i: (jnp.take_along_axis(x, i, 1), jnp.take_along_axis(x, i, 1, mode="clip")),
        X,
        integers(3, 5, above=-9, below=9),
    ),
    "fill of ints": (
        lambda x, i: (x.at[i].get(mode="fill"), (x > 3).at[i].get(mode="fill"), x.at[i].get(mode="fill", fill_value=7)),
        integers(5, below=9),
        OUTSIDE,
    ),
    "indices of 8 bits": (
        lambda x, i: (x[i.astype("uint8")], x.at[i.astype("int8")].get(mode="clip"), x.at[i.astype("uint8")].add(1.5)),
        X,
        integers(7, below=9),
    ),
    "slices out of range": (
        lambda x, i: (
            lax.dynamic_slice(x, (i[0], i[1]), (2, 3)),
            lax.dynamic_slice(x, (i[1], i[0]), (2, 3)),
            lax.dynamic_update_slice(x, x[:2, :3] * 2, (i[0], i[1])),
            lax.dynamic_update_slice(x, x[:2, :3] * 2, (9, -1)),
        ),
        normal(5, 6),
        lambda generator: np.array([9, -9]),
    ),
    "windows": (
        lambda x, i: (
            lax.gather(x, i, GatherDims((1, 2), (), (0, 1)), (2, 3), mode="clip"),
            lax.gather(x, i, GatherDims((1, 2), (), (0, 1)), (2, 3), mode="fill"),
            lax.scatter_add(x, i, jnp.ones((7, 2, 3)), lax.ScatterDimensionNumbers((1, 2), (), (0, 1))),
        ),
        normal(5, 4),
        integers(7, 2, above=-2, below=5),
    ),
    "vmap of slices": (
        lambda x, i: (
            jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))(x, i),
            jax.vmap(lambda i: lax.dynamic_slice(x, (i, 1), (2, 3)))(i),
            jax.vmap(lambda x, i: lax.dynamic_update_slice(x, x[:2] * 3, (i,)))(x, i),
            jax.vmap(lambda x, i: x.at[i].set(1.5))(x, i),
        ),
        X,
        integers(3, above=-9, below=9),
    ),
    "indices apart": (lambda x, i: (x[i, :, i], x.at[i, :, i].set(1.5)), normal(3, 4, 5), integers(2)),
    "segment_sum": (lambda x, i: jax.ops.segment_sum(x, i, 4), normal(7, 2), OUTSIDE),
    "segment_max": (lambda x, i: jax.ops.segment_max(x, i, 4), normal(7, 2), lambda generator: np.arange(7) - 2),
    "at subtract": (lambda x, i, v: x.at[i].subtract(v), normal(6, 4), PLACES, normal(5, 4)),
    "grad of a clipped take": (
        jax.grad(lambda x, i: jnp.sum(x.at[i].get(mode="clip") ** 3) + jnp.sum(x.at[i].set(2.0)[0] ** 3)),
        X,
        OUTSIDE,
    ),
    "sort": (lambda x: jnp.sort(x, 1), X),
    "argsort": (lambda x: jnp.argsort(x, 1), X),
    "searchsorted": (
        lambda x, y: (jnp.searchsorted(jnp.sort(y), x), jnp.searchsorted(jnp.sort(y), x, side="right")),
        normal(3, 4),
        normal(6),
    ),
    "searchsorted of nan": (
        lambda x: jnp.searchsorted(jnp.array([0.0, 1.0, jnp.nan]), jnp.where(x > 0, jnp.nan, x)),
        X,
    ),
    "interp": (lambda x, y: jnp.interp(x, jnp.linspace(-1, 1, 6), y), X, normal(6)),
    "cummax": (lambda x: (lax.cummax(x, 1), lax.cummin(x, 0, reverse=True)), X),
    "signs": (lambda x, y: (jnp.signbit(x), jnp.copysign(x, y), jnp.ldexp(x, 3)), X, X),
    "sort by key": (lambda x, y: lax.sort([x, y], dimension=1, num_keys=1), X, X),
    "sort by two keys": (
        lambda x, y: (lax.sort([jnp.round(x), y, x * y], num_keys=2), jnp.lexsort((x[0], jnp.round(y[0])))),
        X,
        X,
    ),
    "approx_max_k": (lambda x: (lax.approx_max_k(x, 2)[0], lax.approx_min_k(x, 2)[0]), X),
    "at column": (lambda x, i: x.at[:, i[0]].set(2 * x[:, 0]), X, integers(1)),
    "top_k": (lambda x: lax.top_k(x, 2), X),
    # convolution and pooling
    "conv": (conv((1, 1), "SAME"), normal(3, 2, 5, 6), normal(4, 2, 3, 3)),
    "conv last": (conv((2, 1), "VALID", **NHWC), normal(3, 6, 5, 2), normal(3, 2, 2, 4)),
    "conv same with strides": (conv((2, 2), "SAME", **NHWC), normal(3, 6, 5, 2), normal(3, 3, 2, 4)),
    "conv padded": (conv((1, 2), ((2, 1), (0, 3)), **NHWC), normal(3, 6, 5, 2), normal(3, 3, 2, 4)),
    "conv grouped": (conv((1, 1), "SAME", feature_group_count=2, **NHWC), normal(3, 6, 5, 4), normal(3, 3, 2, 6)),
    "conv dilated": (conv((1, 1), "SAME", rhs_dilation=(2, 1), **NHWC), normal(3, 8, 5, 2), normal(3, 3, 2, 4)),
    "conv dilated with strides": (
        conv((2, 2), "VALID", rhs_dilation=(2, 2), **NHWC),
        normal(3, 9, 9, 2),
        normal(3, 3, 2, 4),
    ),
    "conv 1d": (conv((2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")), normal(3, 7, 2), normal(3, 2, 4)),
    "conv mixed": (
        conv((1, 1), "SAME", dimension_numbers=("NHWC", "OIHW", "NCHW")),
        normal(3, 5, 6, 2),
        normal(4, 2, 3, 3),
    ),
    "conv cropped": (conv((2, 1), ((-1, 2), (0, -1)), **NHWC), normal(5, 7, 8, 2), normal(3, 3, 2, 4)),
    "conv cropped, dilated": (
        conv((1, 1), ((-1, 4), (2, -1)), rhs_dilation=(2, 1)),
        normal(3, 2, 7, 8),
        normal(4, 2, 3, 3),
    ),
    "conv of everything": (
        conv((2, 1), ((-1, 3), (2, 1)), lhs_dilation=(2, 3), rhs_dilation=(2, 1), feature_group_count=2, **NHWC),
        normal(5, 5, 6, 4),
        normal(3, 3, 2, 6),
    ),
    "conv of groups of the batch": (
        conv((2, 1), ((1, -1), (2, 0)), batch_group_count=3, **NHWC),
        normal(6, 7, 8, 2),
        normal(3, 3, 2, 6),
    ),
    "grad of conv": (
        lambda x, k: jax.grad(lambda x, k: jnp.sum(conv((2, 2), "SAME", **NHWC)(x, k) ** 3), (0, 1))(x, k),
        normal(5, 6, 7, 2),
        normal(3, 3, 2, 4),
    ),
    "grad of conv in groups": (
        lambda x, k: jax.grad(
            lambda x, k: jnp.sum(conv((1, 1), "SAME", feature_group_count=2, **NHWC)(x, k) ** 3), (0, 1)
        )(x, k),
        normal(5, 6, 7, 4),
        normal(3, 3, 2, 6),
    ),
    "conv_transpose": (lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"), normal(3, 4, 5, 2), normal(3, 3, 2, 4)),
    "conv_transpose valid": (
        lambda x, k: lax.conv_transpose(x, k, (2, 3), "VALID"),
        normal(3, 4, 5, 2),
        normal(3, 2, 2, 4),
    ),
    "conv_transpose kernel": (
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME", transpose_kernel=True),
        normal(3, 4, 5, 2),
        normal(4, 4, 4, 2),
    ),
    "max pool": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 3, 1), (1, 2, 2, 1), "SAME"),
        normal(3, 5, 6, 2),
    ),
    "max pool, wide": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), ((0, 0), (1, 3), (0, 2), (0, 0))),
        normal(3, 5, 6, 2),
    ),
    "max pool first": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
        normal(3, 2, 4, 6),
    ),
    "sum pool": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 1, 1), "SAME"), normal(3, 5, 6, 2)),
    "pool one axis": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 2), "VALID"), X),
    "max pool dilated": (
        lambda x: window(lax.max, -jnp.inf, (1, 3, 2, 1), (1, 2, 1, 1), "SAME", dilation=(1, 2, 3, 1))(
            lax.stop_gradient(x)
        ),
        normal(3, 7, 8, 2),
    ),
    "sum pool dilated": (
        window(lax.add, 0.0, (1, 3, 2, 1), (1, 2, 1, 1), ((0, 0), (2, 1), (0, 3), (0, 0)), (1, 2, 2, 1), (1, 2, 3, 1)),
        normal(3, 7, 8, 2),
    ),
    "max pool over four axes": (window(lax.max, -jnp.inf, (2, 2, 2, 2), (1, 1, 2, 1)), normal(3, 4, 5, 3)),
    "sum pool cropped": (
        window(lax.add, 0.0, (1, 2, 2, 1), (1, 1, 1, 1), ((0, 0), (-1, 1), (0, -1), (0, 0))),
        normal(3, 7, 8, 2),
    ),
    "pools of integers": (
        lambda x: (
            window(lax.max, np.int64(-99), (1, 2, 2), (1, 1, 1), "SAME")(x),
            window(lax.add, np.int64(0), (1, 2, 2), (1, 1, 1), "SAME")(x),
        ),
        integers(3, 5, 6, above=-9),
    ),
    "product pool": (lambda x: window(lax.mul, 1.0, (1, 2, 2), (1, 1, 1))(lax.stop_gradient(x)), normal(3, 5, 6)),
    "max pool from a number": (
        lambda x: window(lax.max, 0.25, (1, 2, 2), (1, 1, 1), "SAME")(lax.stop_gradient(x)),
        normal(3, 5, 6),
    ),
    "grad of max pool": (
        sum_of_cubes(window(lax.max, -jnp.inf, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")),
        normal(3, 7, 8, 2),
    ),
    "jvp of min pool": (
        lambda x: jax.jvp(window(lax.min, jnp.inf, (1, 2, 2, 1), (1, 2, 1, 1)), (x,), (x * x,))[1],
        normal(3, 7, 8, 2),
    ),
    # linear algebra
    "min pool": (
        lambda x: lax.reduce_window(x, jnp.inf, lax.min, (1, 2, 2, 1), (1, 2, 1, 1), "SAME"),
        normal(2, 5, 4, 3),
    ),
    "cholesky": (lambda x: jnp.linalg.cholesky(matrix(x)), normal(3, 3)),
    "qr": (jnp.linalg.qr, normal(4, 3)),
    "qr complete": (lambda x: jnp.abs(jnp.linalg.qr(x, mode="complete")[1]), normal(3, 3)),
    "eigvalsh": (lambda x: jnp.linalg.eigvalsh(x + x.T), normal(3, 3)),
    "eigh": (lambda x: (lambda w, v: (w, v * v))(*jnp.linalg.eigh(x + x.T, UPLO="U")), normal(3, 3)),
    "svd": (lambda x: (lambda u, s, v: (s, u * s @ v))(*jnp.linalg.svd(x)), normal(3, 3)),
    "svdvals": (lambda x: jnp.linalg.svd(x, compute_uv=False), normal(4, 3)),
    "slogdet": (jnp.linalg.slogdet, normal(3, 3)),
    "pinv": (jnp.linalg.pinv, normal(4, 3)),
    "expm": (jax.scipy.linalg.expm, normal(3, 3)),
    "triangular from the right": (
        lambda x, y: lax.linalg.triangular_solve(matrix(x), y, left_side=False, lower=True, transpose_a=True),
        normal(3, 3),
        normal(4, 3),
    ),
    "triangular from the right, upper": (
        lambda x, y: lax.linalg.triangular_solve(matrix(x), y, left_side=False, lower=False),
        normal(3, 3),
        normal(4, 3),
    ),
    "diag": (lambda x: (jnp.diag(x), jnp.diag(x[0])), normal(3, 3)),
    "triangular_solve": (
        lambda x, y: jax.scipy.linalg.solve_triangular(jnp.tril(matrix(x)), y, lower=True),
        normal(3, 3),
        normal(3, 2),
    ),
    "solve": (
        lambda x, y, z: (jnp.linalg.solve(matrix(x), y), jnp.linalg.solve(x, z)),
        normal(3, 3),
        normal(3, 2),
        normal(3),
    ),
    "inv": (lambda x: (jnp.linalg.inv(matrix(x)), jnp.linalg.det(x)), normal(3, 3)),
    "eig": (lambda x: jnp.sort(jnp.abs(jnp.linalg.eigvals(x))), normal(4, 4)),
    "polynomials": (
        lambda p, x: (jnp.polyval(p, x), jnp.abs(jnp.poly(x[0])), jnp.polyder(p), jnp.polymul(p, x[0])),
        normal(5),
        normal(3, 4),
    ),
    "roots": (lambda p: jnp.sort(jnp.abs(jnp.roots(p, strip_zeros=False))), normal(5)),
    # systems that are solved with a gradient of their own
    "solve positive": (lambda x, y: jax.scipy.linalg.solve(matrix(x), y, assume_a="pos"), normal(3, 3), normal(3, 2)),
    "cg": (lambda x, y: jax.scipy.sparse.linalg.cg(matrix(x), y, tol=1e-14)[0], normal(3, 3), normal(3)),
    "cg of each row": (
        lambda x, y: jax.vmap(lambda y: jax.scipy.sparse.linalg.cg(matrix(x), y, tol=1e-14)[0])(y),
        normal(3, 3),
        normal(4, 3),
    ),
    "grad of bicgstab": (
        lambda x, y: jax.grad(lambda y: jnp.sum(jax.scipy.sparse.linalg.bicgstab(matrix(x), y, tol=1e-14)[0] ** 3))(y),
        normal(3, 3),
        normal(3),
    ),
    "custom_linear_solve": (
        lambda x, y: lax.custom_linear_solve(
            lambda v: (x + 4 * jnp.eye(3)) @ v,
            y,
            lambda _, v: jnp.linalg.inv(lax.stop_gradient(x) + 4 * jnp.eye(3)) @ v,
            lambda _, v: jnp.linalg.inv(lax.stop_gradient(x) + 4 * jnp.eye(3)).T @ v,
        ),
        normal(3, 3),
        normal(3),
    ),
    "vmap of a loop": (
        jax.vmap(lambda x: lax.stop_gradient(lax.while_loop(lambda c: c[1] < x, doubled, (x, 0.1))[0])),
        positive(4),
    ),
    # functions of functions
    "jit": (jax.jit(lambda x: jnp.sin(x) * 2), X),
    "checkpoint": (jax.checkpoint(lambda x: jnp.sin(x) * 2), X),
    "grad": (jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)), X),
    "grad of relu": (jax.grad(lambda x: jnp.sum(jax.nn.relu(x) ** 2)), X),
    "grad of softmax": (jax.grad(lambda x: jnp.sum(jax.nn.softmax(x) ** 2)), X),
    "grad of take": (lambda x, i: jax.grad(lambda x: jnp.sum(x[i] ** 3))(x), X, integers(2)),
    "grad of a scan": (jax.grad(lambda x: lax.scan(lambda c, r: (jnp.sin(c + r), 0), x[0], x)[0].sum()), X),
    "vmap": (jax.vmap(lambda x: jnp.outer(x, x).sum(0)), X),
    "psum": (jax.vmap(lambda x: x * lax.psum(x, "row") + lax.pmean(x**2, "row"), axis_name="row"), X),
    "psum of two": (jax.vmap(lambda x: lax.psum((x, x**2), "row")[1] * x, axis_name="row"), X),
    "vmap of take": (lambda x, i: jax.vmap(lambda x, i: x[i])(x, i), X, integers(3)),
    "vmap of take, rows": (lambda x, i: jax.vmap(lambda x, i: x[i])(x, i), normal(3, 4, 2), integers(3)),
    "vmap of take, a table": (lambda x, i: jax.vmap(lambda i: x[i])(i), X, integers(5)),
    "cond": (lambda x: lax.cond(x[0, 0] > 0, jnp.sin, lambda x: x * 2, x), X),
    "switch": (lambda x, i: lax.switch(i[0], [jnp.sin, jnp.cos, lambda x: x * 2], x), X, integers(1)),
    "scan": (lambda x: lax.scan(lambda c, r: (c * r, c + r), x[0], x), X),
    "scan reverse": (lambda x: lax.scan(lambda c, r: ((c[0] * r, c[1] + 1), r), (x[0], 0.0), x, reverse=True), X),
    "map": (lambda x: lax.map(lambda r: (r * 2, jnp.sum(r)), x), X),
    "fori_loop": (lambda x: lax.fori_loop(1, 4, lambda i, c: jnp.sin(c) * i, x), X),
    "fori_loop, the counter is used": (
        lambda x: lax.scan(lambda c, _: ((c[0] + 1, c[1] * 2), None), (0, x), length=3),
        X,
    ),
}


def drawn(case):
    line, *draws = ROWS[case]
    generator = np.random.default_rng(0)
    return line, tuple(jnp.asarray(draw(generator)) for draw in draws)


def leaves(tree):
    return [leaf for leaf in jax.tree.leaves(tree) if leaf is not None]


def original(function, params, inputs):
    """Return the outputs of a function, and the gradients of a weighted sum of them in parameters and inputs."""
    params = {name: jnp.asarray(leaf) for name, leaf in params.items()}
    floats = {f"input {i}": x for i, x in enumerate(inputs) if jnp.issubdtype(x.dtype, jnp.floating)}

    def total(named):
        own = [named.get(f"input {i}", x) for i, x in enumerate(inputs)]
        outputs = leaves(function({name: named[name] for name in params}, *own))
        terms = [jnp.sum(y * weights(y.shape)) for y in outputs if jnp.issubdtype(y.dtype, jnp.floating)]
        return sum(terms, jnp.zeros((), "float64")), outputs

    (_, outputs), slopes = jax.value_and_grad(total, has_aux=True)(params | floats)
    return [np.asarray(y) for y in outputs], {name: np.asarray(slope) for name, slope in slopes.items()}


def error_between(computed, expected):
    """Return the largest difference between two lists or dicts of arrays, relative to the largest entry of each.

    An array of entries that are small beside all the others may be what rounding left of a zero.
    """
    names = list(expected) if isinstance(expected, dict) else range(len(expected))
    assert set(names) == (set(computed) if isinstance(computed, dict) else set(range(len(computed))))
    pairs = [(computed[name].astype("float64"), expected[name].astype("float64")) for name in names]
    largest = max((np.nanmax(np.abs(other), initial=0) for _, other in pairs), default=0)
    worst = 0.0
    for pair, other in pairs:
        assert pair.shape == other.shape
        assert (np.isnan(pair) == np.isnan(other)).all()
        difference = np.abs(np.nan_to_num(pair - other)).max(initial=0)
        worst = max(worst, float(difference / max(np.nanmax(np.abs(other), initial=0), 1e-4 * largest, 1e-30)))
    return worst


@functools.cache
def traced(case):
    line, inputs = drawn(case)
    return porting.trace(line, *inputs), original(lambda _, *inputs: line(*inputs), {}, inputs)
