"""Under torch.autocast, an op has the dtypes of PyTorch's own function, in its result and its gradients."""

from __future__ import annotations

import copy

import pytest

import multiop as mo

torch = pytest.importorskip("torch")

from counted import rows

functional = torch.nn.functional

LOW = {"bfloat16": torch.bfloat16, "float16": torch.float16}
# PyTorch's refuses vectors in 16 bits, or rounds its moments to 16: the gradient of gamma is off by ten units
NOT_NATIVE = {"batch_normalization", "batch_normalization_with_moments", "group_normalization"}
TO_FLOAT32 = [
    "binary_cross_entropy_with_logits",
    "exp",
    "layer_norm",
    "log",
    "logsumexp",
    "native_layer_norm",
    "nll_loss",
    "rms_norm",
    "softplus",
    "pow.Tensor_Scalar",
    "softmax.int",
    "log_softmax.int",
    "sum",
    "sum.dim_IntList",
]
CLASSES, TARGETS = 5, torch.tensor([0, 1, 2, 3], dtype=torch.int32)


def told(result):
    return [str(x.dtype) for x in result]


def differentiated(function, xs, dtype, enabled=True):
    """Return the result and its gradients; as usual, the backward pass is outside of autocast."""
    xs = [x.detach().requires_grad_(x.requires_grad) for x in xs]
    with torch.autocast("cpu", dtype, enabled):
        y = function(*xs)
    y = y[0] if isinstance(y, tuple) else y
    return y, *torch.autograd.grad(y, [x for x in xs if x.requires_grad], torch.ones_like(y))


def operands(xs, dtype):
    """Return operands in `float32`, the first one in 16 bits as after a product, and all of them in 16 bits."""
    low = [x.detach().to(dtype).requires_grad_(x.requires_grad) for x in xs]
    return {"float32": xs, "first": [low[0], *xs[1:]], "low": low}


@pytest.fixture
def casts_of_cuda():
    """Give the CPU those casts to `float32` that autocast has on CUDA."""
    key = torch._C.DispatchKey.AutocastCPU

    def wide(x):
        return x.float() if isinstance(x, torch.Tensor) and x.dtype in LOW.values() else x

    def widened(op):
        def call(*args, **kwargs):
            with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
                return op(*torch.utils._pytree.tree_map(wide, args), **kwargs)

        return call

    with torch.library._scoped_library("aten", "IMPL") as library:
        for name in TO_FLOAT32:
            packet, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, packet), overload or "default")
            library.impl(op, widened(op), "AutocastCPU", allow_override=True)
        yield


def different(dtype, apart=()):
    """Return the ops, but those `apart`, whose dtypes or numbers are not PyTorch's, by the kind of their operands."""
    found = {}
    for name, ours, native, xs in rows(torch.float32, "cpu", t=16, width=32):
        for kind, given in operands(xs, dtype).items():
            mine = differentiated(ours, given, dtype)
            if (kind == "low" and name in NOT_NATIVE) or name in apart:
                continue
            theirs = differentiated(native, given, dtype)
            scales = [max(x.abs().max().item(), 1e-30) for x in theirs]
            errors = [(a - b).abs().max().item() / s for a, b, s in zip(mine, theirs, scales, strict=True)]
            at_tie = name == "maximum_of_number"  # torch.clamp gives all of it to one operand
            if told(mine) != told(theirs) or (max(errors) > 8 * torch.finfo(dtype).eps and not at_tie):
                found[name, kind] = told(mine), told(theirs), errors
    return found


@pytest.mark.parametrize("dtype", LOW)
def test_every_op_has_the_dtypes_of_the_native_function(dtype):
    assert not different(LOW[dtype])


@pytest.mark.parametrize("dtype", LOW)
def test_every_op_has_the_dtypes_of_the_native_function_with_the_casts_of_cuda(dtype, casts_of_cuda):
    x = torch.ones(2, 3, dtype=LOW[dtype])
    with torch.autocast("cpu", LOW[dtype]):
        assert functional.layer_norm(x, (3,)).dtype is torch.float32
    assert not different(LOW[dtype], {"log_softmax"})  # in float16, not PyTorch's on a CPU


def given():
    generator = torch.Generator().manual_seed(0)
    shapes = [(4, 8), (8, 16), (16,), (16,), (16, CLASSES)]
    return [torch.randn(shape, generator=generator) / shape[0] ** 0.5 for shape in shapes]


def step(x, up, gain, shift, down):
    hidden = mo.op_layer_normalization(mo.op_matmul(x, up), gain, shift, epsilon=1e-5)
    logits = mo.op_matmul(mo.op_gelu(hidden), down)
    return mo.op_mean(mo.op_sparse_categorical_crossentropy(TARGETS, logits, from_logits=True))


def native_step(x, up, gain, shift, down):
    hidden = functional.layer_norm(x @ up, (16,), gain, shift, 1e-5)
    return functional.cross_entropy(functional.gelu(hidden, approximate="tanh") @ down, TARGETS.long())


WAYS = {
    "eager": lambda f: f,
    "jit": mo.jit,
    "checkpoint": mo.checkpoint,
    "compiler": lambda f: torch.compile(f, fullgraph=True),
}


@pytest.mark.slow_on(dtype="float16", way="jit")
@pytest.mark.slow_on(dtype="float16", way="compiler")
@pytest.mark.parametrize("way", [*list(WAYS)[:3], pytest.param("compiler", marks=pytest.mark.compiler)])
@pytest.mark.parametrize("dtype", LOW)
def test_a_step_under_autocast_is_the_native_one(dtype, way):
    xs = [x.requires_grad_() for x in given()]
    function = WAYS[way](step)
    truth = differentiated(native_step, xs, None, enabled=False)
    outside = differentiated(function, xs, LOW[dtype], enabled=False)  # the same function, without autocast first
    native, ours = (differentiated(f, xs, LOW[dtype]) for f in (native_step, function))
    again = differentiated(function, xs, LOW[dtype], enabled=False)
    assert told(ours) == told(native) == ["torch.float32"] * 6
    for true, theirs, mine, *exact in zip(truth, native, ours, outside, again, strict=True):
        size, allowed = true.abs().max(), (theirs - true).abs().max()
        assert (mine - true).abs().max() <= 2 * allowed + torch.finfo(LOW[dtype]).eps * size
        assert allowed > 16 * torch.finfo(torch.float32).eps * size  # autocast was on
        assert all((x - true).abs().max() <= 16 * torch.finfo(torch.float32).eps * size for x in exact)


def test_the_gradient_of_a_compiled_step_is_taken_of_what_autocast_computed():
    xs, seen = [x.requires_grad_() for x in given()], []

    @mo.jit
    def f(x, up):
        y = mo.op_matmul(x, up)
        seen.append(y.dtype)
        return mo.op_sum(y)

    differentiated(f, xs[:2], torch.bfloat16)
    assert set(seen) == {torch.bfloat16}


def test_transforms_inside_autocast_differentiate_what_it_computes():
    xs = given()
    with torch.autocast("cpu", torch.bfloat16):
        value, grads = mo.value_and_grad(step, argnums=(0, 1, 2, 3, 4))(*xs)
        _, tangent = mo.jvp(step, xs, xs)
    expected = differentiated(native_step, [x.requires_grad_() for x in xs], torch.bfloat16)
    for mine, theirs in zip((value, *grads), expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=theirs.abs().max().item() * 2.0**-6)
    inner = sum((x * g).sum() for x, g in zip(xs, expected[1:], strict=True))
    torch.testing.assert_close(tangent, inner, rtol=0.05, atol=0.02)


def test_a_loss_of_probabilities_is_in_float32():
    x = torch.softmax(torch.randn(4, CLASSES), -1).to(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert mo.op_sparse_categorical_crossentropy(TARGETS, x).dtype is torch.float32
        assert mo.op_binary_crossentropy(x, x).dtype is torch.float32
    assert mo.op_binary_crossentropy(x, x).dtype is torch.bfloat16


def test_the_pseudoinverse_keeps_its_digits_and_its_gradient():
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    inside, outside = (differentiated(mo.op_pinv, [x], torch.bfloat16, on) for on in (True, False))
    assert all(torch.equal(a, b) for a, b in zip(inside, outside, strict=True))


def test_products_with_float64_are_float64():
    x, y = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16):
        assert mo.op_matmul(x, y).dtype is torch.float64
        assert mo.op_matmul(x, x.bfloat16()).dtype is torch.bfloat16
    assert mo.op_matmul(x, x.bfloat16()).dtype is torch.float32


def test_moments_of_a_layer_in_float32_stay_in_float32():
    x = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0))
    vector, low = torch.ones(3), x.bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        y, mean, variance = mo.op_batch_normalization_with_moments(low, 1, vector, copy.copy(vector))
    assert told((y, mean, variance)) == ["torch.bfloat16", "torch.float32", "torch.float32"]
    assert told(mo.op_batch_normalization_with_moments(low, 1, vector, vector)) == [
        "torch.float32",
        "torch.bfloat16",
        "torch.bfloat16",
    ]
