"""Converters: a user's translation of an operation, on each of the three readers, and what is refused."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from multiop import errors, porting
from multiop.porting import _converters

X = np.linspace(-2.0, 2.0, 12).reshape(4, 3)


@pytest.fixture(autouse=True)
def restored():
    before = dict(_converters._rows)
    yield
    _converters._rows.clear()
    _converters._rows.update(before)


def swish(x, beta):
    return porting.call("ops.multiply", x, porting.call("ops.sigmoid", porting.call("ops.multiply", x, beta)))


def both(x, out):
    """Give the two results of an operation, the first as it is."""
    assert [result.shape[1:] for result in out] == [(3,), (3,)] and [result.dtype for result in out] == ["float64"] * 2
    return x, porting.call("ops.square", x)


@functools.cache
def torch_operations():
    """Define the operations of a library that PyTorch's users may have."""
    torch = pytest.importorskip("torch")
    library = torch.library.Library("multiop_shop", "DEF")

    def define(schema, compute, fake, backward):
        name = f"multiop_shop::{schema.partition('(')[0]}"
        library.define(schema)
        torch.library.impl(name, "CPU", compute, lib=library)
        torch.library.register_fake(name, fake, lib=library)
        torch.library.register_autograd(
            name, backward, setup_context=lambda ctx, inputs, output: setattr(ctx, "inputs", inputs), lib=library
        )

    def swish_gradient(ctx, upstream):
        x, beta = ctx.inputs[:2]
        gate = torch.sigmoid(x * beta)
        return upstream * (gate + x * beta * gate * (1 - gate)), None, None

    define(
        "swish(Tensor x, float beta, bool stable=True) -> Tensor",
        lambda x, beta, stable=True: x * torch.sigmoid(x * beta),
        lambda x, beta, stable=True: torch.empty_like(x),
        swish_gradient,
    )
    define(
        "both(Tensor x) -> (Tensor, Tensor)",
        lambda x: (x.clone(), x**2),
        lambda x: (torch.empty_like(x), torch.empty_like(x)),
        lambda ctx, first, second: first + second * 2 * ctx.inputs[0],
    )
    return library


def torch_model(line):
    torch = pytest.importorskip("torch")
    torch_operations()
    shop = torch.ops.multiop_shop

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor([0.5, -1.5, 2.0], dtype=torch.float64))

        def forward(self, x):
            return line(shop, x * self.scale)

    return Model(), torch.tensor(X)


@functools.cache
def jax_primitives():
    jax = pytest.importorskip("jax")
    from jax.extend.core import Primitive
    from jax.interpreters import ad, mlir

    def define(name, compute, results=1):
        primitive = Primitive(name)
        primitive.multiple_results = results > 1
        primitive.def_impl(compute)
        primitive.def_abstract_eval(lambda x, **options: x if results == 1 else [x] * results)
        mlir.register_lowering(primitive, mlir.lower_fun(compute, multiple_results=results > 1))
        ad.primitive_jvps[primitive] = lambda primals, tangents, **options: jax.jvp(
            functools.partial(compute, **options), primals, tangents
        )
        return primitive

    def both(x):
        return [x * 1.0, x**2]

    return {
        "shop_swish": define("shop_swish", lambda x, beta, mode=None: x * jax.nn.sigmoid(x * beta)),
        "shop_both": define("shop_both", both, 2),
    }


def jax_model(line):
    jax = pytest.importorskip("jax")
    primitives = jax_primitives()

    def model(params, x):
        return line(primitives, x * params["scale"])

    params = {"scale": jax.numpy.array([0.5, -1.5, 2.0])}
    return functools.partial(model, params), jax.numpy.asarray(X)


def tensorflow_model(line):
    tf = pytest.importorskip("tensorflow")

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.scale = tf.Variable([0.5, -1.5, 2.0], dtype="float64", name="scale")

        def __call__(self, x):
            return line(tf, x * self.scale)

    return Model(), tf.constant(X)


def nth(input, n, out, reverse=False):  # noqa: A002 - as TensorFlow calls it
    if reverse:
        raise NotImplementedError("from the end")
    assert input.dtype == out.dtype
    return porting.call("ops.get_item", porting.call("ops.sort", input), (..., n))


MODELS = {
    "torch": (torch_model, lambda shop, x: shop.swish(x, 1.5) + 1, "multiop_shop::swish", swish),
    "jax": (jax_model, lambda shop, x: shop["shop_swish"].bind(x, beta=1.5) + 1, "shop_swish", swish),
    "tensorflow": (
        tensorflow_model,
        lambda tf, x: tf.raw_ops.NthElement(input=x, n=1) + 1,
        "NthElement",
        nth,
    ),
}


@pytest.fixture
def natively_in_64_bits():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("framework", MODELS)
def test_a_converter_is_what_an_operation_is(framework, backend, natively_in_64_bits):
    make, line, operation, function = MODELS[framework]
    model, x = make(line)
    with pytest.raises(errors.TranslationError, match=operation.rpartition(":")[2]):
        porting.trace(model, x)
    assert porting.converter(operation, framework)(function) is function
    port = porting.trace(model, x)
    assert not port.bridged and ("ops.sigmoid(" in port.source) is (framework != "tensorflow")
    proof = porting.prove(port, backend)
    assert proof.agrees and proof.compared == 2 and max(proof.value, proof.gradient) < 1e-12


TWO = {
    "torch": (torch_model, lambda shop, x: sum(shop.both(x)), "multiop_shop::both", both),
    "jax": (jax_model, lambda shop, x: sum(shop["shop_both"].bind(x)), "shop_both", both),
}


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_an_operation_may_have_several_results(framework, backend, natively_in_64_bits):
    make, line, operation, function = TWO[framework]
    porting.converter(operation, framework)(function)
    proof = porting.prove(porting.trace(*make(line)), backend)
    assert proof.agrees and max(proof.value, proof.gradient) < 1e-12


def test_it_comes_before_multiops_own_translation():
    torch = pytest.importorskip("torch")
    porting.converter("aten::relu", "torch")(lambda self: porting.call("ops.maximum", self, 0.0))
    model, x = torch_model(lambda shop, x: torch.relu(x) + torch.relu_(x * 2))
    assert porting.trace(model, x).source.count("ops.maximum(") == 2
    porting.converter("aten::relu.default", "torch")(lambda self: porting.call("ops.silu", self))
    assert "ops.silu(" in porting.trace(model, x).source


@pytest.mark.parametrize(
    ("make", "line", "operation", "framework", "word"),
    [
        (torch_model, lambda shop, x: shop.swish(x, 1.5, False), "multiop_shop::swish", "torch", "with stable=False"),
        (jax_model, lambda shop, x: shop["shop_swish"].bind(x, beta=1.0, mode=1), "shop_swish", "jax", "with mode=1"),
    ],
)
def test_an_option_that_it_does_not_take_is_refused(make, line, operation, framework, word):
    porting.converter(operation, framework)(swish)
    with pytest.raises(errors.TranslationError, match=word):
        porting.trace(*make(line))


def test_what_it_does_not_support_has_no_translation():
    porting.converter("NthElement", "tensorflow")(nth)
    model, x = tensorflow_model(lambda tf, x: tf.raw_ops.NthElement(input=x, n=1, reverse=True))
    with pytest.raises(errors.TranslationError, match="NthElement: from the end"):
        porting.trace(model, x)


WRONG = {  # `x` is called `input` by TensorFlow
    "nothing": (lambda *x, **_: None, r"the converter of .*test_converters\.py:\d+\), returned None"),
    "an array": (lambda *x, **_: np.zeros(3), "returned a ndarray"),
    "a number": (lambda *x, **_: 1.0, "returned a float"),
    "text": (lambda *x, **_: "x * 2", "returned a str"),
    "too many": (lambda x=None, input=None, **_: (input if x is None else x,) * 2, "returned a tuple"),  # noqa: A006
}


@pytest.mark.parametrize("framework", MODELS)
@pytest.mark.parametrize("what", WRONG)
def test_what_a_converter_must_not_return(framework, what):
    make, line, operation, _ = MODELS[framework]
    function, words = WRONG[what]
    porting.converter(operation, framework)(function)
    model, x = make(line)
    with pytest.raises(errors.ArgumentTypeError, match=words):
        porting.trace(model, x)


@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: (x,), errors.ArgumentError, "returned 1 results: the operation has 2"),
        (lambda x: (x, 2.0), errors.ArgumentTypeError, "returned a float among its results"),
        (lambda x: [x, None], errors.ArgumentTypeError, "returned None among its results"),
    ],
)
def test_what_it_must_not_return_for_several_results(framework, function, error, words):
    make, line, operation, _ = TWO[framework]
    porting.converter(operation, framework)(function)
    model, x = make(line)
    with pytest.raises(error, match=words):
        porting.trace(model, x)


@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_what_is_to_be_returned_is_no_operand(framework):
    make, line, operation, _ = MODELS[framework]
    porting.converter(operation, framework)(lambda x, out, **_: porting.call("ops.add", x, out))
    model, x = make(line)
    with pytest.raises(errors.ArgumentError, match="computes with out, which has a shape and a dtype"):
        porting.trace(model, x)


def test_what_cannot_be_registered():
    with pytest.raises(errors.ArgumentError, match="framework must be one of torch, jax, tensorflow, got 'keras'"):
        porting.converter("relu", "keras")
    with pytest.raises(errors.ArgumentError, match="is called namespace::name, such as aten::relu, got 'relu'"):
        porting.converter("relu", "torch")
    with pytest.raises(errors.ArgumentTypeError, match="operation must be a name, got a function"):
        porting.converter(swish, "torch")
    with pytest.raises(errors.ArgumentTypeError, match="needs a function, got a str"):
        porting.converter("shop", "jax")("swish")
    porting.converter("shop", "jax")(swish)
    with pytest.raises(errors.ArgumentError, match=r"shop of jax has a converter, swish \(.*test_converters\.py:\d+\)"):
        porting.converter("shop", "jax")(both)
    porting.converter("shop", "tensorflow")(both)
    porting.converter("shop", "jax", replace=True)(both)


@pytest.mark.parametrize(
    ("op", "args", "error", "words"),
    [
        ("ops.swish_of_shop", (1.0,), errors.ArgumentError, "there is no op 'ops.swish_of_shop'"),
        ("op_sigmoid", (1.0,), errors.ArgumentError, "as in the source, such as ops.sigmoid"),
        ("ops.sigmoid", (1.0, 2.0), errors.ArgumentError, "ops.sigmoid: too many positional arguments"),
        ("ops.sigmoid", (np.ones(3),), errors.ArgumentTypeError, "ops.sigmoid gets a ndarray, which has no source"),
        ("ops.stack", ([1.0, np.float32(2)],), errors.ArgumentTypeError, "ops.stack gets a float32"),
    ],
)
def test_what_cannot_be_called(op, args, error, words):
    with pytest.raises(error, match=words):
        porting.call(op, *args)
