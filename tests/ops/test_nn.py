"""What the rows of activations, normalization, losses and attention cannot say: errors, forms at a distance, traces."""

import numpy as np
import pytest

import multiop as mo
from multiop import errors
from multiop.testing.cases.attention import attention

X = np.ones((2, 3), np.float32)
Z = np.ones((2, 3), np.complex64)
V = np.ones(3, np.float32)
Q = np.ones((1, 2, 2, 4), np.float32)
LOGITS = np.zeros((1, 4, 3), np.float32)
LENGTH = np.array([1])


def numbers(x):
    return mo.op_convert_to_numpy(x).tolist()


@pytest.mark.parametrize(
    ("op", "args", "kwargs", "error", "named"),
    [
        ("op_leaky_relu", (X,), {"negative_slope": "a"}, errors.ArgumentTypeError, "negative_slope"),
        ("op_elu", (X,), {"alpha": True}, errors.ArgumentTypeError, "alpha"),
        ("op_elu", (X,), {"alpha": V}, errors.ArgumentTypeError, "alpha"),
        ("op_celu", (X,), {"alpha": 0.0}, errors.ArgumentError, "alpha"),
        ("op_gelu", (X,), {"approximate": 1}, errors.ArgumentTypeError, "approximate"),
        ("op_glu", (X,), {}, errors.ArgumentError, "axis 1 has 3"),
        ("op_glu", (np.float32(1),), {}, errors.ArgumentError, "axis"),
        ("op_soft_shrink", (X,), {"threshold": -1}, errors.ArgumentError, "threshold"),
        ("op_hard_shrink", (X,), {"threshold": np.nan}, errors.ArgumentError, "threshold"),
        ("op_hard_shrink", (X,), {"threshold": None}, errors.ArgumentTypeError, "threshold"),
        ("op_threshold", (X, "a", 1.0), {}, errors.ArgumentTypeError, "threshold"),
        ("op_threshold", (X, 1.0, V), {}, errors.ArgumentTypeError, "default_value"),
        ("op_squareplus", (X,), {"b": -1}, errors.ArgumentError, "b must"),
        ("op_sparsemax", (X,), {"axis": 0.5}, errors.ArgumentTypeError, "axis"),
        ("op_normalize", (X,), {"order": 0}, errors.ArgumentError, "order"),
        ("op_normalize", (X,), {"order": 1.5}, errors.ArgumentTypeError, "order"),
        ("op_normalize", (X,), {"epsilon": 0.0}, errors.ArgumentError, "epsilon"),
        ("op_batch_normalization", (X, V, V, 0), {}, errors.ArgumentError, "(mean|variance)"),
        ("op_batch_normalization", (X, V, V, 1), {"offset": X}, errors.ArgumentError, "offset"),
        ("op_batch_normalization", (X, V, V, 1), {"scale": V[:2]}, errors.ArgumentError, "scale"),
        ("op_batch_normalization", (X, V, V, 1), {"epsilon": -1.0}, errors.ArgumentError, "epsilon"),
        ("op_layer_normalization", (X,), {"gamma": V, "axis": 0}, errors.ArgumentError, "gamma"),
        ("op_layer_normalization", (X,), {"beta": V[:2]}, errors.ArgumentError, "beta"),
        ("op_layer_normalization", (X,), {"rms_scaling": True}, errors.ArgumentTypeError, "rms_scaling"),
        ("op_group_normalization", (X, 2), {}, errors.ArgumentError, "groups must divide .* 3, got 2"),
        ("op_group_normalization", (X, 0), {}, errors.ArgumentError, "groups must be at least 1"),
        ("op_group_normalization", (X, 1.0), {}, errors.ArgumentTypeError, "groups must be an int"),
        ("op_group_normalization", (X, True), {}, errors.ArgumentTypeError, "groups must be an int"),
        ("op_group_normalization", (X, 1), {"axis": 0}, errors.ArgumentError, "axis is 0, the batch"),
        ("op_group_normalization", (X, 1), {"axis": -2}, errors.ArgumentError, "axis is 0, the batch"),
        ("op_group_normalization", (X, 1), {"axis": 2}, errors.ArgumentError, "axis 2 is out of range"),
        ("op_group_normalization", (X, 1), {"axis": (1,)}, errors.ArgumentTypeError, "axis"),
        ("op_group_normalization", (X, 3), {"gamma": V[:2]}, errors.ArgumentError, "gamma"),
        ("op_group_normalization", (X, 3), {"beta": X}, errors.ArgumentError, "beta"),
        ("op_group_normalization", (X, 3), {"epsilon": -1.0}, errors.ArgumentError, "epsilon"),
        ("op_group_normalization", (X, 3), {"epsilon": "a"}, errors.ArgumentTypeError, "epsilon"),
        ("op_group_normalization", (None, 3), {}, errors.ArgumentTypeError, "x must be a tensor"),
        ("op_group_normalization", (Z, 3), {}, errors.DTypeError, "complex"),
        ("op_rms_normalization", (X,), {"scale": V[:2]}, errors.ArgumentError, "scale"),
        ("op_rms_normalization", (X,), {"epsilon": "a"}, errors.ArgumentTypeError, "epsilon"),
        ("op_binary_crossentropy", (X, V), {}, errors.ArgumentError, "target .* output"),
        ("op_binary_crossentropy", (X, X), {"from_logits": None}, errors.ArgumentTypeError, "from_logits"),
        ("op_binary_crossentropy", (X, Z), {}, errors.DTypeError, "complex"),
        ("op_categorical_crossentropy", (X, V), {}, errors.ArgumentError, "target .* output"),
        ("op_sparse_categorical_crossentropy", ([0, 3], X), {}, errors.ArgumentError, "target"),
        ("op_sparse_categorical_crossentropy", ([0, -1], X), {}, errors.ArgumentError, "target"),
        ("op_sparse_categorical_crossentropy", ([0, -100], X), {}, errors.ArgumentError, "target"),
        ("op_sparse_categorical_crossentropy", ([0, 1, 2], X), {}, errors.ArgumentError, "target"),
        ("op_sparse_categorical_crossentropy", ([True, False], X), {}, errors.DTypeError, "target"),
        ("op_sparse_categorical_crossentropy", ([0.0, 0.5], X), {}, errors.ArgumentError, "target"),
        ("op_sparse_categorical_crossentropy", ([0.0, np.inf], X), {}, errors.ArgumentError, "target"),
        ("op_psnr", (X, V, 1.0), {}, errors.ArgumentError, "x1 .* x2"),
        ("op_dot_product_attention", (Q[0], Q, Q), {}, errors.ArgumentError, "query"),
        ("op_dot_product_attention", (Q, Q[:, :1], Q), {}, errors.ArgumentError, "key"),
        ("op_dot_product_attention", (Q[:, :, :1], Q, Q), {}, errors.ArgumentError, "multiple"),
        ("op_dot_product_attention", (Q, Q, Q), {"mask": X[:, :2]}, errors.DTypeError, "mask"),
        ("op_dot_product_attention", (Q, Q, Q), {"mask": X > 0}, errors.ArgumentError, ""),
        ("op_dot_product_attention", (Q, Q, Q), {"scale": "a"}, errors.ArgumentTypeError, "scale"),
        ("op_dot_product_attention", (Q, Q, Q), {"is_causal": 1}, errors.ArgumentTypeError, "is_causal"),
        ("op_dot_product_attention", (Q, Q, Q), {"attn_logits_soft_cap": 0}, errors.ArgumentError, "soft_cap"),
        ("op_ctc_loss", ([[0]], LOGITS, LENGTH, LENGTH), {}, errors.ArgumentError, "target"),
        ("op_ctc_loss", ([[3]], LOGITS, LENGTH, LENGTH), {}, errors.ArgumentError, "target"),
        ("op_ctc_loss", ([[-1]], LOGITS, LENGTH, LENGTH), {}, errors.ArgumentError, "target"),
        ("op_ctc_loss", ([[1]], LOGITS, [2], LENGTH), {}, errors.ArgumentError, "target_length"),
        ("op_ctc_loss", ([[1]], LOGITS, LENGTH, [5]), {}, errors.ArgumentError, "output_length"),
        ("op_ctc_loss", ([[1]], LOGITS, LENGTH, [-1]), {}, errors.ArgumentError, "output_length"),
        ("op_ctc_loss", ([[1]], LOGITS, LENGTH, [1, 1]), {}, errors.ArgumentError, "output_length"),
        ("op_ctc_loss", ([[1], [1]], LOGITS, LENGTH, LENGTH), {}, errors.ArgumentError, "target"),
        ("op_ctc_loss", ([[1]], LOGITS[0], LENGTH, LENGTH), {}, errors.ArgumentError, "output"),
        ("op_ctc_loss", ([[1.0]], LOGITS, LENGTH, LENGTH), {}, errors.DTypeError, "target"),
        ("op_ctc_loss", ([[1]], LOGITS, LENGTH, LENGTH), {"mask_index": 3}, errors.ArgumentError, "mask_index"),
        ("op_ctc_loss", ([[1]], LOGITS, LENGTH, LENGTH), {"mask_index": None}, errors.ArgumentTypeError, "mask_index"),
        ("op_ctc_decode", (LOGITS, [5]), {}, errors.ArgumentError, "sequence_lengths"),
        ("op_ctc_decode", (LOGITS, [1.0]), {}, errors.DTypeError, "sequence_lengths"),
        ("op_ctc_decode", (LOGITS[0], LENGTH), {}, errors.ArgumentError, "inputs"),
        ("op_ctc_decode", (LOGITS, LENGTH), {"merge_repeated": 1}, errors.ArgumentTypeError, "merge_repeated"),
        (
            "op_ctc_decode",
            (LOGITS, LENGTH),
            {"strategy": "beam_search", "beam_width": 0},
            errors.ArgumentError,
            "beam_width",
        ),
        (
            "op_ctc_decode",
            (LOGITS, LENGTH),
            {"strategy": "beam_search", "beam_width": 2, "top_paths": 3},
            errors.ArgumentError,
            "top_paths",
        ),
    ],
)
def test_bad_arguments(backend, op, args, kwargs, error, named):
    with pytest.raises(error, match=f"^{op}: .*{named}"):
        getattr(mo, op)(*args, **kwargs)


SECOND = {  # at the kinks, second derivatives are those of a constant slope
    "op_relu6": ([0.0, 6.0], [0.0, 0.0]),
    "op_leaky_relu": ([0.0], [0.0]),
    "op_elu": ([0.0, -1.0], [0.0, float(np.exp(-1.0))]),
    "op_celu": ([0.0, -1.0], [0.0, float(np.exp(-1.0))]),
    "op_selu": ([0.0], [0.0]),
    "op_softsign": ([0.0, 1.0], [0.0, -0.25]),
    "op_soft_shrink": ([0.5, -0.5], [0.0, 0.0]),
    "op_hard_shrink": ([0.5, -0.5], [0.0, 0.0]),
    "op_hard_sigmoid": ([-3.0, 3.0], [0.0, 0.0]),
    "op_hard_silu": ([-3.0, 0.0, 3.0], [0.0, 1 / 3, 0.0]),
    "op_hard_tanh": ([-1.0, 1.0], [0.0, 0.0]),
    "op_sparse_plus": ([-1.0, 0.0, 1.0], [0.0, 0.5, 0.0]),
    "op_sparse_sigmoid": ([-1.0, 1.0], [0.0, 0.0]),
    "op_sparsemax": ([1.0, 0.0], [0.0, 0.0]),
}


@pytest.mark.parametrize("op", SECOND)
def test_second_derivatives_at_kinks(backend, op):
    x, expected = SECOND[op]

    def slope(x):
        return mo.op_sum(mo.grad(lambda x: mo.op_sum(getattr(mo, op)(x)))(x))

    x = mo.op_convert_to_tensor(np.array(x, np.float32))
    np.testing.assert_allclose(mo.op_convert_to_numpy(mo.grad(slope)(x)), expected, rtol=1e-6)


@pytest.mark.parametrize("op", ["op_binary_crossentropy", "op_categorical_crossentropy"])
@pytest.mark.parametrize("from_logits", [False, True])
def test_losses_promote(backend, op, from_logits):
    half = mo.op_convert_to_tensor(np.array([0.5, 0.5], np.float16))
    full = mo.op_convert_to_tensor(np.array([0.5, 0.5], np.float32))
    assert mo.op_dtype(getattr(mo, op)(half, full, from_logits)) == "float32"
    assert mo.op_dtype(getattr(mo, op)(half, half, from_logits)) == "float16"
    assert mo.op_dtype(getattr(mo, op)([0, 1], half, from_logits)) == "float16"


def test_normalization_promotes(backend):
    half, full = np.ones((2, 3), np.float16), V
    assert mo.op_dtype(mo.op_layer_normalization(half, full)) == "float32"
    assert mo.op_dtype(mo.op_group_normalization(half, 1, full)) == "float32"
    assert mo.op_dtype(mo.op_rms_normalization(half, full[None].astype(np.float16))) == "float16"
    assert mo.op_dtype(mo.op_batch_normalization(half, full, full, 1)) == "float32"


def test_parameters_of_all_dimensions_broadcast(backend):
    x = np.array([[1.0, 3.0], [5.0, 1.0]], np.float32)
    assert numbers(mo.op_layer_normalization(x, [[2.0], [3.0]], axis=1, epsilon=0.0)) == [[-2.0, 2.0], [3.0, -3.0]]
    assert numbers(mo.op_rms_normalization(x, [[1.0, 0.0]], axis=(1, 0), epsilon=0.0)) == [
        pytest.approx([1 / 3, 0.0]),
        pytest.approx([5 / 3, 0.0]),
    ]


@pytest.mark.traced
def test_options_in_compiled_code(backend):
    logits = mo.op_convert_to_tensor(np.zeros((1, 2, 3), np.float32))
    target = mo.op_convert_to_tensor(np.array([3], np.int32))
    length = mo.op_convert_to_tensor(np.array([1], np.int32))
    loss = mo.jit(lambda target, output: mo.op_sparse_categorical_crossentropy(target, output, True))
    assert np.isnan(numbers(loss(target, logits[0, :1]))).all()
    loss = mo.jit(lambda target, output, length: mo.op_ctc_loss(target, output, length, length))
    assert np.isnan(numbers(loss(target[None], logits, length))).all()
    assert np.isfinite(numbers(loss(target[None] - 1, logits, length))).all()


def test_labels_and_lengths_beyond_int32(backend, multiop_x64):
    """Cut to 32 bits, 2**32 + 1 would be 1."""
    logits, beyond = np.zeros((1, 2, 3), np.float32), np.array([2**32 + 1])
    with pytest.raises(errors.ArgumentError, match="target"):
        mo.op_ctc_loss(beyond[None], logits, [1], [2])
    with pytest.raises(errors.ArgumentError, match="output_length"):
        mo.op_ctc_loss([[1]], logits, [1], beyond)
    with pytest.raises(errors.ArgumentError, match="sequence_lengths"):
        mo.op_ctc_decode(logits, beyond)


def test_ctc_loss_of_a_long_sequence(backend):
    """200 steps of two equal classes: every alignment has the probability 2**-200, which float32 cannot hold."""
    logits = np.zeros((1, 200, 2), np.float32)
    found = numbers(mo.op_ctc_loss([[1]], logits, [1], [200]))
    assert found == pytest.approx([200 * np.log(2) - np.log(200 * 201 / 2)], rel=1e-5)


def test_a_narrow_beam(backend):
    """With one beginning kept, the search commits itself to the best one at each step."""
    probabilities = np.array([[[0.6, 0.4], [0.6, 0.4]]], np.float32)
    labels, scores = mo.op_ctc_decode(np.log(probabilities), [2], "beam_search", beam_width=1)
    assert numbers(labels) == [[[-1, -1]]]
    assert numbers(scores) == [pytest.approx([np.log(0.36)], rel=1e-5)]
    labels, scores = mo.op_ctc_decode(np.log(probabilities), [2], "beam_search", beam_width=2, top_paths=2)
    assert numbers(labels) == [[[1, -1]], [[-1, -1]]]
    assert numbers(scores) == [pytest.approx([np.log(0.64), np.log(0.36)], rel=1e-5)]


def test_a_beam_with_too_few_sequences(backend):
    labels, scores = mo.op_ctc_decode(np.zeros((1, 1, 2), np.float32), [1], "beam_search", beam_width=3, top_paths=3)
    assert sorted(numbers(labels)) == [[[-1]], [[-1]], [[1]]]
    assert numbers(scores) == [pytest.approx([np.log(0.5), np.log(0.5), -np.inf])]


def test_causal_attention_sees_no_future(backend):
    value = mo.op_convert_to_tensor(np.arange(3, dtype=np.float32).reshape(1, 3, 1, 1))
    zero = mo.op_zeros((1, 3, 1, 1))
    assert numbers(mo.op_dot_product_attention(zero, zero, value, is_causal=True))[0] == [[[0.0]], [[0.5]], [[1.0]]]


def drawn(*shape):
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


SEEN = np.array([[True, False, True], [False, False, False]])
FUSED = {
    "plain": ((drawn(2, 2, 2, 4), drawn(2, 3, 2, 4), drawn(2, 3, 2, 4)[::-1]), {}),
    "masked": ((drawn(2, 2, 2, 4), drawn(2, 3, 2, 4), drawn(2, 3, 2, 4)[::-1]), {"mask": SEEN, "scale": 0.3}),
    "causal": ((drawn(2, 3, 2, 4), drawn(2, 3, 2, 4), drawn(2, 3, 2, 4)[::-1]), {"is_causal": True}),
    "all": (
        (drawn(2, 2, 4, 4), drawn(2, 3, 2, 4), drawn(2, 3, 2, 4)[::-1]),
        {"mask": SEEN, "bias": drawn(4, 1, 3), "is_causal": True},
    ),
}


@pytest.mark.parametrize("case", FUSED)
def test_fused_attention_is_attention_or_an_error(backend, case):
    tensors, options = FUSED[case]

    def loss(*tensors, flash):
        return mo.op_sum(mo.op_square(mo.op_dot_product_attention(*tensors, **options, flash_attention=flash)))

    if backend != "torch":
        with pytest.raises(errors.UnsupportedError, match="flash_attention: .*https://"):
            loss(*tensors, flash=True)
        return
    found = mo.op_convert_to_numpy(mo.op_dot_product_attention(*tensors, **options, flash_attention=True))
    expected = attention(*(x.astype(np.float64) for x in tensors), **options)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    tensors = [mo.op_convert_to_tensor(x) for x in tensors]
    gradients = [mo.grad(lambda *xs, f=f: loss(*xs, flash=f), argnums=(0, 1, 2))(*tensors) for f in (True, False)]
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(mo.op_convert_to_numpy(one), mo.op_convert_to_numpy(other), rtol=1e-4, atol=1e-5)


def test_fused_attention_has_no_cap_no_gradient_of_the_bias_and_no_second_derivative(backend):
    if backend != "torch":
        pytest.skip("PyTorch alone has a fused kernel")
    with pytest.raises(errors.UnsupportedError, match="attn_logits_soft_cap"):
        mo.op_dot_product_attention(Q, Q, Q, flash_attention=True, attn_logits_soft_cap=2.0)

    def loss(q, bias):
        return mo.op_sum(mo.op_square(mo.op_dot_product_attention(q, Q, Q, bias=bias, flash_attention=True)))

    q, bias = mo.op_convert_to_tensor(Q), mo.op_convert_to_tensor(np.zeros((2, 2), np.float32))
    with pytest.raises(errors.UnsupportedError, match="a bias that is differentiated"):
        mo.grad(loss, argnums=1)(q, bias)
    with pytest.raises((RuntimeError, NotImplementedError), match="not implemented"):
        mo.grad(lambda q: mo.op_sum(mo.grad(lambda q: loss(q, bias))(q)))(q)
    with pytest.raises((RuntimeError, NotImplementedError), match="not been implemented|not implemented"):
        mo.jvp(lambda q: loss(q, bias), (q,), (q,))


def test_a_number_is_normalized_by_itself(backend):
    x = mo.op_convert_to_tensor([[0.0, -2.0, 3.0], [0.25, 0.0, 1.0]])
    value, gradient = mo.value_and_grad(lambda x: mo.op_sum(mo.op_normalize(x, axis=(), epsilon=0.5)))(x)
    assert (float(value), mo.op_convert_to_numpy(gradient).tolist()) == (1.5, [[2, 0, 0], [2, 2, 0]])


@pytest.mark.parametrize("x", [[0.0, 3.0], [1e-30, -2e-30], [1e30, 1e30]])
def test_an_epsilon_that_a_compiled_program_takes_for_0_leaves_a_gradient(backend, x):
    def weighted(x, epsilon):
        return mo.op_sum(mo.op_normalize(x, epsilon=epsilon) * mo.op_convert_to_tensor([1.0, 2.0]))

    x = mo.op_convert_to_tensor(x)
    found, wanted = (mo.op_convert_to_numpy(mo.grad(weighted)(x, epsilon)) for epsilon in (1e-40, 1e-35))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("shape", [(0, 3), (2, 3, 0)])
def test_a_normalization_of_no_entries_has_a_gradient(backend, shape):
    x, vector = mo.op_zeros(shape), mo.op_ones((3,))

    def f(x, scale):
        y = mo.op_batch_normalization(x, vector, vector, 1, scale=scale)
        y = y + mo.op_group_normalization(x, 3, scale, vector, axis=1)
        return mo.op_sum(y) + mo.op_sum(mo.op_layer_normalization(x))

    of_x, of_scale = mo.grad(f, argnums=(0, 1))(x, vector)
    assert of_x.shape == shape
    assert mo.op_convert_to_numpy(of_scale).tolist() == [0, 0, 0]
