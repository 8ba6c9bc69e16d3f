"""What torch.compile and threads do to multiop on PyTorch, and what multiop.jit computes there."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import multiop
from multiop import errors, ops, random
from multiop._loading import registry, settings
from multiop.backends.torch import _internals

pytestmark = pytest.mark.compiler


@multiop.op_custom_gradient
def square(x):
    return x * x, lambda upstream: upstream * 5 * x


def with_use_backend(x):
    with multiop.use_backend("torch"):
        return multiop.op_exp(x)


FIRST = {
    "op": lambda x: multiop.op_exp(x),
    "creation": lambda x: x + multiop.op_zeros((3,)),
    "list": lambda x: multiop.op_add(x, [1.0, 2.0, 3.0]),
    "custom gradient": lambda x: square(x),
    "grad": lambda x: multiop.grad(lambda y: multiop.op_sum(y * y))(x),
    "vmap": lambda x: multiop.vmap(multiop.op_sin)(x),
    "jit": lambda x: multiop.jit(multiop.op_sin)(x),
    "stop_gradient": lambda x: multiop.op_stop_gradient({"a": x})["a"],
    "backend": lambda x: x + (multiop.backend() == "torch"),
    "floatx": lambda x: x.to(getattr(torch, multiop.floatx())),
    "x64": lambda x: x + (multiop.x64() in (True, False)),
    "available_backends": lambda x: x + ("torch" in multiop.available_backends()),
    "set_backend": lambda x: (multiop.set_backend("torch"), multiop.op_exp(x))[1],
    "use_backend": with_use_backend,
    "is_tensor": lambda x: x + multiop.op_is_tensor(x) + 2 * multiop.op_is_tensor([1.0]),
    "Tensor": lambda x: x + isinstance(x, multiop.Tensor) + 2 * isinstance([1.0], multiop.Tensor),
}
REFUSED = pytest.mark.xfail(  # https://meta-pytorch.github.io/compile-graph-break-site/gb/gb2736.html
    _internals.VERSION >= (2, 14),
    reason="PyTorch refuses the isinstance of a class that decides it itself",
    raises=torch._dynamo.exc.Unsupported,
    strict=True,
)


@pytest.mark.parametrize("overridden", [False, True], ids=["", "after another backend"])
@pytest.mark.parametrize("first", [pytest.param(one, marks=[REFUSED] if one == "Tensor" else []) for one in FIRST])
def test_torch_compile_may_be_the_first_to_need_a_backend(first, overridden, monkeypatch):
    fun, x = FIRST[first], torch.tensor([1.0, 2.0, 3.0])
    with monkeypatch.context() as fresh:
        fresh.setenv("MULTIOP_BACKEND", "torch")
        fresh.setattr(registry, "_backend", registry._Unloaded())
        fresh.setattr(registry, "is_overridden", overridden)
        fresh.setattr(registry, "_loaded", {})
        fresh.setattr(registry, "_compiler", None)
        fresh.setattr(settings, "floatx", None)
        fresh.setattr(settings, "x64", None)
        settings._file.cache_clear()
        torch._dynamo.reset()
        compiled = torch.compile(fun, fullgraph=True, backend="eager")(x)
    with multiop.use_backend("torch"):
        torch.testing.assert_close(compiled, fun(x))


OF_ANY_BACKEND = {  # each may keep something of the tensors of every backend
    "custom gradient": lambda x: multiop.op_sum(square(x)),
    "grad": multiop.grad(lambda x: multiop.op_sum(x * x)),
    "grad of a dict": lambda x: multiop.grad(lambda y: multiop.op_sum(y["a"] * y["a"]))({"a": x})["a"],
    "grad of grad": multiop.grad(lambda x: multiop.op_sum(multiop.grad(lambda y: multiop.op_sum(y**3))(x))),
    "jvp": lambda x: multiop.jvp(multiop.op_sin, (x,), (x,))[1],
    "vjp": lambda x: multiop.vjp(multiop.op_sin, x)[1](x),
    "vmap": multiop.vmap(multiop.op_sin),
    "jit": multiop.jit(multiop.op_sin),
    "jit of a dict": lambda x: multiop.jit(lambda y: y["a"] * 2)({"a": x}),
    "jit of a static": lambda x: multiop.jit(lambda y, n: y**n, static_argnums=1)(x, 2),
    "checkpoint": multiop.grad(lambda x: multiop.op_sum(multiop.checkpoint(multiop.op_sin)(x))),
    "softmax": multiop.op_softmax,
    "mean": multiop.op_mean,
    "list": lambda x: multiop.op_stack([x, [1.0, 2.0, 3.0]]),
}


@pytest.mark.parametrize("name", OF_ANY_BACKEND)
def test_what_other_backends_ran_stops_no_compiler(name):
    fun = OF_ANY_BACKEND[name]
    for backend in sorted(multiop.available_backends(), key="torch".__eq__):
        with multiop.use_backend(backend):
            x = multiop.op_convert_to_tensor(np.float32([1, 2, 3]))
            expected = [multiop.op_convert_to_numpy(fun(x)) for _ in range(3)][
                -1
            ]  # what it keeps, it has after the third call
    torch._dynamo.reset()
    found = torch.compile(fun, fullgraph=True, backend="eager")(torch.tensor([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.fixture
def another_thread_compiles():
    """Hold another thread inside torch.compile while the test runs."""
    inside, done = threading.Event(), threading.Event()

    def hold(graph, inputs):
        inside.set()
        done.wait(60)
        return graph.forward

    def compile_it():
        torch.compile(lambda x: x + 1, backend=hold)(torch.ones(3))

    torch._dynamo.reset()
    thread = threading.Thread(target=compile_it)
    thread.start()
    assert inside.wait(60)
    yield
    done.set()
    thread.join()


@pytest.fixture
def on_torch():
    with multiop.use_backend("torch"):
        yield


def test_a_compiling_thread_changes_no_other(on_torch, another_thread_compiles):
    # which is what PyTorch says of every thread
    assert torch.compiler.is_compiling() or _internals.VERSION < (2, 12)
    assert not registry.is_compiling()
    with pytest.raises(errors.ArgumentError):
        multiop.op_take(torch.tensor([1.0, 2.0]), [5])
    with pytest.raises(errors.NonLinearRuleError):
        affine = multiop.op_custom_gradient(lambda x: (x * 2, lambda upstream: upstream + 1))
        multiop.jvp(affine, (1.0,), (1.0,))
    with multiop.GradientTape() as tape:
        x = tape.watch(torch.tensor(3.0))
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0


@pytest.mark.cross
def test_a_compiling_thread_changes_no_other_backend(another_thread_compiles):
    with multiop.use_backend("jax"):
        assert multiop.backend() == "jax"
        assert not isinstance(multiop.op_add([1.0], 2.0), torch.Tensor)


SMALL = [1e-6, -1e-8, 1e-20, -0.0, 0.3, 1.5, -0.9, float("inf"), float("nan")]
ALONE = ["op_expm1", "op_erf", "op_erfc", "op_arctanh", "op_elu", "op_selu", "op_gelu"]
TWO = [("op_mod", 1e5, 0.1), ("op_mod", 5.0, float("inf")), ("op_floor_divide", 1e-20, float("-inf"))]


def test_a_users_compiler_draws_with_parameters_that_are_numbers(on_torch):
    def draw(x):
        return random.dropout(x, 0.25, seed=3), random.uniform((4,), 0.3, 1.7, seed=3)

    x, compiled = torch.ones(4), torch.compile(draw, fullgraph=True, backend="eager")
    for found, expected in zip(compiled(x), draw(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)


def test_a_users_compiler_tells_why_a_generator_is_refused(on_torch):
    generator = random.SeedGenerator(3)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"ArgumentError.*SeedGenerator"):
        torch.compile(lambda x: x + random.normal((4,), seed=generator), fullgraph=True, backend="eager")(torch.ones(4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_jit_keeps_the_digits_of_eager_code(on_torch, dtype):
    x = torch.tensor(SMALL * 8, dtype=dtype)  # of which vectors are made

    def alone(x):
        return [getattr(multiop, op)(x) for op in ALONE if hasattr(multiop, op)] + [multiop.op_arccosh(1 / x)]

    for mine, eager in zip(multiop.jit(alone)(x), alone(x), strict=True):
        torch.testing.assert_close(mine, eager, rtol=4 * torch.finfo(dtype).eps, atol=0, equal_nan=True)
    x1, x2 = (torch.tensor([case[k] for case in TWO] * 32, dtype=dtype) for k in (1, 2))

    def two(x1, x2):
        return [getattr(multiop, op)(x1, x2) for op in ("op_mod", "op_floor_divide", "op_nextafter")]

    for mine, eager in zip(multiop.jit(two)(x1, x2), two(x1, x2), strict=True):
        torch.testing.assert_close(mine, eager, rtol=0, atol=0, equal_nan=True)


def test_jit_keeps_the_smallest_integer_negative(on_torch):
    for dtype in (torch.int8, torch.int32, torch.int64):
        least = torch.tensor([torch.iinfo(dtype).min, 5], dtype=dtype)
        for x in (least, least.repeat(16)):  # some compilers are wrong where they make no vectors
            y, below = multiop.jit(lambda x: (multiop.op_abs(x), multiop.op_less(multiop.op_abs(x), 0)))(x)
            assert torch.equal(y, torch.abs(x))
            assert torch.equal(below, torch.abs(x) < 0)


def test_jit_keeps_the_gradient_of_what_it_does_not_compile_itself(on_torch):
    x = torch.linspace(-2, 2, 64)
    compiled = multiop.jit(multiop.op_expm1)
    torch.testing.assert_close(multiop.grad(lambda x: multiop.op_sum(compiled(x)))(x), torch.exp(x))


UNSIGNED = {
    "clip": lambda x: multiop.op_clip(x, 1, 5),
    "isin": lambda x: multiop.op_isin(x, x[1:3]),
    "unique": lambda x: multiop.op_unique(x, size=4),
    "take": lambda x: multiop.op_take(x, [0, 3, -1]),
    "set_item": lambda x: multiop.op_set_item(x, 0, 5),
    "set_item of a mask": lambda x: multiop.op_set_item(x, multiop.op_greater(x, 2), 1),
    "pad": lambda x: multiop.op_pad(x, ((1, 2),), constant_values=5),
    "select": lambda x: multiop.op_select([multiop.op_greater(x, 3)], [x], 7),
    "slice": lambda x: multiop.op_slice(x, multiop.op_argmin(multiop.op_reshape(x, (1, 6)), 1), (1,)),
    "scatter": lambda x: multiop.op_scatter_update(x, [[0], [0]], x[1:3]),
    **{
        f"scatter {how}": lambda x, how=how: multiop.op_scatter_update(x, [[0], [0]], x[1:3], reduction=how)
        for how in ("max", "min", "mul", "add")
    },
}


@pytest.mark.parametrize(
    "dtype", [torch.uint32, *[pytest.param(x, marks=pytest.mark.tier("full")) for x in (torch.uint16, torch.uint64)]]
)
def test_unsigned_integers_compile(on_torch, dtype):
    """Inductor has no code for torch.where of them."""
    x = torch.tensor([3, 1, torch.iinfo(dtype).max, 3, 7, 0], dtype=dtype)

    def every(x):
        return [f(x) for f in UNSIGNED.values()]

    for name, found, wanted in zip(UNSIGNED, torch.compile(every)(x), every(x), strict=True):
        assert (found.dtype, found.tolist()) == (wanted.dtype, wanted.tolist()), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.complex64])
def test_a_product_with_zero_keeps_nan(on_torch, dtype):
    """PyTorch's compiler takes the int 0 times NaN or infinity for 0: https://github.com/pytorch/pytorch/pull/187580"""
    x = torch.tensor([math.nan, math.inf, 1.0]).to(dtype)
    products = [lambda x: x * 0, lambda x: 0 * x, lambda x: x * False, lambda x: x.clone().mul_(0)]
    for f in [*products, lambda x: multiop.op_multiply(x, 0)]:
        assert torch.isnan(multiop.jit(f)(x)).tolist() == [True, True, False]
    assert torch.isnan(torch.compile(lambda x: multiop.op_multiply(x, 0))(x)).tolist() == [True, True, False]
    assert multiop.jit(lambda x: x * 0)(torch.tensor([1, 2])).tolist() == [0, 0]


def test_a_gradient_that_is_nan_stays_nan_when_compiled(on_torch):
    x = torch.tensor([1.0, -2.0])
    gradient = multiop.grad(lambda x: multiop.op_sum(multiop.op_sqrt(multiop.op_abs(x) * 0)))
    assert torch.isnan(gradient(x)).all()
    assert torch.isnan(multiop.jit(gradient)(x)).all()


ROWS, IN_PAIRS = torch.tensor([1, 2, 2]), torch.arange(8) // 2
PLACING = {  # what writes into an expanded tensor, in the derivative of its gradient
    "take": lambda x: ops.take(x, ROWS, axis=0),
    "take of columns": lambda x: ops.take(x, ROWS, axis=1),
    "get_item": lambda x: ops.get_item(x, (ROWS, ROWS)),
    "segment_sum": lambda x: ops.segment_sum(x, IN_PAIRS, 4),
    "segment_max": lambda x: ops.segment_max(x, IN_PAIRS, 4),
    "attention": lambda x: ops.dot_product_attention(*[ops.reshape(x, (1, 8, 2, 2))] * 3, is_causal=True),
}
FEW = ("take", "attention")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FEW else pytest.mark.tier("full")) for name in PLACING]
)
def test_the_compiler_takes_first_and_second_derivatives(on_torch, name):
    """https://github.com/pytorch/pytorch/issues/160391, https://github.com/pytorch/pytorch/issues/185539."""
    x = torch.sin(torch.arange(32, dtype=torch.float64)).reshape(8, 4)

    def loss(x):
        return ops.sum(ops.sin(PLACING[name](x)))

    for derivative in (multiop.grad(loss), lambda x: multiop.hvp(loss, (x,), (x,))):
        found, expected = (multiop.tree.leaves(f(x)) for f in (multiop.jit(derivative), derivative))
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


SIZES = (3, 5, 2, 8, 7, 4, 6, 9)
OF_SIZES = {
    "mean": lambda x: multiop.op_mean(x * x, 0),
    "gradient": lambda x: multiop.grad(lambda y: multiop.op_sum(multiop.op_softmax(y, 0) * y))(x),
    "branch on a size": lambda x: multiop.op_exp(x) * (2.0 if x.shape[0] > 4 else 3.0),
    "text of a size": lambda x: multiop.op_exp(x) * len(str(x.shape[0] + 3)),
    "type of a size": lambda x: multiop.op_exp(x) * (2.0 if isinstance(x.shape[0], int) else 3.0),
    "size in a loop": lambda x: sum(k * x[k] for k in range(2)) / x.shape[0],
    "size as a number": lambda x: multiop.op_exp(x) * math.sqrt(x.shape[0]),
    "size as a result": lambda x: (x * 2, x.shape[0]),
    "indices": lambda x: x[x.shape[0] - 1] + multiop.op_take(x, multiop.op_arange(x.shape[0]), 0),
}
# three for each way in which numbers that are no sizes vary
PROGRAMS = {"branch on a size": 6, "text of a size": 6, "size as a number": 8}


@pytest.mark.parametrize("name", OF_SIZES)
def test_programs_of_jit_are_few_for_many_sizes_and_right_for_each(name, monkeypatch):
    compiled, compile_graph = [], torch.compile
    count = lambda graph, inputs, **options: compiled.append(graph) or graph.forward
    monkeypatch.setattr(torch, "compile", lambda f, dynamic, options: compile_graph(f, dynamic=dynamic, backend=count))
    fun = OF_SIZES[name]
    jitted = multiop.jit(fun)
    for size in SIZES:
        x = torch.arange(16.0 * size).reshape(size, 16) / 100
        found, expected = jitted(x), fun(x)
        for mine, theirs in zip(multiop.tree.leaves(found), multiop.tree.leaves(expected), strict=True):
            assert mine == theirs if isinstance(theirs, int) else torch.allclose(mine, theirs)
    assert 0 < len(compiled) <= PROGRAMS.get(name, 3)


def test_a_program_with_dynamic_sizes_that_the_compiler_refuses_is_made_for_each_size(monkeypatch):
    compile_graph = torch.compile

    def refuse_dynamic(graph, inputs):
        if any(not isinstance(x, torch.Tensor) for x in inputs):
            raise NotImplementedError
        return graph.forward

    monkeypatch.setattr(
        torch, "compile", lambda f, dynamic, options: compile_graph(f, dynamic=dynamic, backend=refuse_dynamic)
    )
    jitted = multiop.jit(lambda x: multiop.op_reshape(x, (-1,)) * 2)
    for size in SIZES:
        assert jitted(torch.ones(size, 2)).shape == (2 * size,)


SELF_MADE = {  # the rule of each asks for a slope that has the same rule
    "polyval": lambda x: ops.polyval([1.0, 2.0, 3.0], x),
    "erfcinv": ops.erfcinv,
    "betaln": lambda x: ops.betaln(x, 2.0),
}


@pytest.mark.parametrize("name", SELF_MADE)
def test_torch_compile_ends_where_a_rule_is_made_of_itself(name):
    slope, x = multiop.grad(lambda x: ops.sum(SELF_MADE[name](x))), torch.tensor([0.25, 0.5])
    torch.testing.assert_close(torch.compile(lambda x: slope(x), backend="eager")(x), slope(x))
