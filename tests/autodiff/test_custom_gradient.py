"""The contract of `op_custom_gradient`, sentence by sentence, on each backend."""

from __future__ import annotations

import functools
import inspect
import re
import threading
import weakref

import numpy as np
import pytest

import multiop as mo
from multiop import errors

pytestmark = pytest.mark.tier("quick")  # the contract

construct = pytest.mark.construct
X = np.array([0.5, -1.0, 2.0], np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


@mo.op_custom_gradient
def log1pexp(x):
    e = mo.op_exp(x)

    def grad(upstream):
        return upstream * (1 - 1 / (1 + e))

    return mo.op_log(1 + e), grad


@mo.op_custom_gradient
def tenfold(x):
    """The square of x; its rule, 10 x, is not its derivative."""

    def grad(upstream):
        return upstream * 10 * x

    return x * x, grad


@mo.op_custom_gradient
def straight_through(x):
    """The nearest integer; its rule is that of the identity."""
    return mo.op_round(x), lambda upstream: upstream


@mo.op_custom_gradient
def clipped(x):
    """The identity, with a gradient clipped to [-1, 1]: not linear in the upstream gradient."""
    return mo.op_multiply(x, 1.0), lambda upstream: mo.op_clip(upstream, -1.0, 1.0)


def total(f):
    return lambda *args, **kwargs: mo.op_sum(f(*args, **kwargs))


# a decorator for functions and methods


@construct("name, doc and signature are kept")
def test_metadata(backend):
    def scaled(x, *, factor: float = 2.0):
        """Scale."""
        return x * factor, lambda u: u * factor

    wrapped = mo.op_custom_gradient(scaled)
    assert wrapped.__name__ == "scaled"
    assert wrapped.__doc__ == "Scale."
    assert inspect.signature(wrapped) == inspect.signature(scaled)
    assert float(wrapped(mo.op_convert_to_tensor(3.0), factor=4.0)) == 12.0


@construct("the call returns the output alone")
def test_returns_output(backend, numpy):
    np.testing.assert_allclose(numpy(log1pexp(mo.op_convert_to_tensor(X))), np.log1p(np.exp(X)), rtol=1e-5)


@construct("log1pexp: stable gradient at 100")
def test_stable(backend):
    assert float(mo.grad(log1pexp)(100.0)) == 1.0


@construct("methods, static and class methods")
def test_methods(backend):
    class Scale:
        factor = 3.0

        @mo.op_custom_gradient
        def method(self, x):
            return x * self.factor, lambda u: u * 100

        @staticmethod
        @mo.op_custom_gradient
        def static(x):
            return x * 2, lambda u: u * 200

        @classmethod
        @mo.op_custom_gradient
        def of_class(cls, x):
            return x * cls.factor, lambda u: u * 300

    scale = Scale()
    assert [float(f(mo.op_convert_to_tensor(2.0))) for f in (scale.method, scale.static, scale.of_class)] == [6, 4, 6]
    assert [float(mo.grad(f)(2.0)) for f in (scale.method, scale.static, scale.of_class)] == [100, 200, 300]


@construct("partial functions and callable objects")
def test_callables(backend):
    class Power:
        def __call__(self, x, n):
            return x**n, lambda u: u * n * 1000

    assert float(mo.grad(lambda x: mo.op_custom_gradient(Power())(x, 2))(3.0)) == 2000
    assert float(mo.grad(mo.op_custom_gradient(functools.partial(Power(), n=3)))(3.0)) == 3000


# arguments


@construct("NumPy arrays and Python scalars as arguments")
@pytest.mark.parametrize("x", [3.0, np.float32(3.0), np.array(3.0, np.float32)])
def test_host_values(backend, x):
    assert float(tenfold(x)) == 9.0
    assert float(mo.grad(tenfold)(x)) == 30.0


@construct("pytrees as arguments and outputs")
def test_pytrees(backend):
    @mo.op_custom_gradient
    def f(p, pair):
        a, (b, c) = p["a"], pair

        def grad(upstream):
            u, v = upstream["sum"], upstream["rest"][0]
            return {"a": u * 2 + v}, (u * 3, v * 4)

        return {"sum": a + b, "rest": [a * c, "label", None]}, grad

    def loss(p, pair):
        out = f(p, pair)
        assert out["rest"][1:] == ["label", None]
        return out["sum"] * 10 + out["rest"][0]

    ga, (gb, gc) = mo.grad(loss, argnums=(0, 1))({"a": 1.0}, (2.0, 3.0))
    assert [float(g) for g in (ga["a"], gb, gc)] == [21.0, 30.0, 4.0]


@construct("static arguments: str, bool, None, callable, int")
def test_static(backend, numpy):
    @mo.op_custom_gradient
    def f(x, kind, flag, nothing, fn, axis):
        assert (kind, flag, nothing, axis) == ("double", True, None, 1)
        assert type(axis) is int
        assert type(flag) is bool
        return fn(x) if flag else x, lambda u: u * 7

    x = mo.op_convert_to_tensor(X)
    call = lambda x: f(x, "double", True, None, lambda v: v * 2, 1)
    np.testing.assert_allclose(numpy(call(x)), 2 * X)
    np.testing.assert_allclose(numpy(mo.grad(total(call))(x)), [7, 7, 7])


@construct("static arguments: str, bool, None, callable, int")
@pytest.mark.parametrize("entries", ["all", "numbers", "tensors"])
def test_static_entries(backend, entries):
    """A static argument may have its own `None` entry or be left out; so may those that are no numbers."""

    @mo.op_custom_gradient
    def f(x, kind, power, y):
        rules = {
            "all": lambda u: (u * 2, None, None, u * 3),
            "numbers": lambda u: (u * 2, None, u * 3),
            "tensors": lambda u: (u * 2, u * 3),
        }
        return x * y**power, rules[entries]

    assert [float(g) for g in mo.grad(lambda x, y: f(x, "kind", 2, y), (0, 1))(5.0, 6.0)] == [2.0, 3.0]


@construct("keywords are bound to the signature")
def test_functions_of_the_same_code_have_their_own_parameters(backend):
    def make(k, name, keyword):
        def f(x, k=k, *, keyword=keyword):
            return x * k * keyword, lambda upstream: upstream * k * keyword

        def bare(x, k):
            return x * k, lambda upstream: (upstream, None, None)

        bare.__qualname__ = name
        return mo.op_custom_gradient(f), mo.op_custom_gradient(bare)

    for k, name, keyword in ((2.0, "two", 5.0), (3.0, "three", 7.0)):
        f, bare = make(k, name, keyword)
        assert float(mo.grad(f)(1.0)) == k * keyword
        with pytest.raises(errors.GradientRuleError, match=f"gradient function of {name} "):
            mo.grad(lambda x, bare=bare: bare(x, x))(1.0)


@construct("keywords are bound to the signature")
def test_keywords(backend):
    @mo.op_custom_gradient
    def f(x, y, *, scale=1.0):
        def grad(upstream):
            return upstream * 2, upstream * 3, None

        return x * y * scale, grad

    orders = [
        lambda x, y: f(x, y),
        lambda x, y: f(x, y=y),
        lambda x, y: f(y=y, x=x),
        lambda x, y: f(y=y, x=x, scale=1.0),
    ]
    for call in orders:
        assert [float(g) for g in mo.grad(call, (0, 1))(5.0, 6.0)] == [2.0, 3.0]


@construct("keyword-only tensors are differentiated")
def test_keyword_only(backend):
    @mo.op_custom_gradient
    def f(x, *, y):
        return x * y, lambda u: (u * 2, u * 3)

    assert [float(g) for g in mo.grad(lambda x, y: f(x, y=y), (0, 1))(5.0, 6.0)] == [2.0, 3.0]


@construct("default arguments, *args and **kwargs")
def test_variadic(backend):
    @mo.op_custom_gradient
    def f(*xs, **options):
        assert options == {"kind": "sum"}
        return sum(xs), lambda u: tuple(u * (i + 1) for i in range(len(xs)))

    assert [float(g) for g in mo.grad(lambda *xs: f(*xs, kind="sum"), (0, 1, 2))(1.0, 1.0, 1.0)] == [1.0, 2.0, 3.0]

    @mo.op_custom_gradient
    def with_default(x, y=2.0):
        return x * y, lambda u: (u * 5, None)

    assert float(mo.grad(with_default)(3.0)) == 5.0

    @mo.op_custom_gradient
    def whose_rule_has_one(x):
        return (x * 2, x * 3), lambda upstreams, factor=7: upstreams[0] * factor

    assert float(mo.grad(lambda x: whose_rule_has_one(x)[0])(3.0)) == 7.0


@construct("the same tensor given twice")
def test_same_tensor_twice(backend):
    @mo.op_custom_gradient
    def f(x, y):
        return x * y, lambda u: (u * 2, u * 3)

    assert float(mo.grad(lambda x: f(x, x))(4.0)) == 5.0


# the calling convention of the rule


def _rules():
    def of_one(anything):
        return anything * 2

    def of_two(da, db):
        return da * 2 + db * 3

    def of_rest(*upstreams):
        return upstreams[0] * 2 + upstreams[1] * 3

    def of_structure(upstream):
        return upstream["a"] * 2 + upstream["b"] * 3

    def keras(*args, upstream=None):
        (x,) = args
        return upstream * 2 + 0 * x

    def keras_of_structure(*args, upstream):
        (x,) = args
        return upstream["a"] * 2 + upstream["b"] * 3 + 0 * x

    return {
        "grad(upstream)": (lambda x: x * x, of_one, 2),
        "grad(da, db)": (lambda x: (x, x * x), of_two, 5),
        "grad(*upstreams)": (lambda x: [x, x * x], of_rest, 5),
        "grad(upstream) in the output's structure": (lambda x: {"a": x, "b": x * x}, of_structure, 5),
        "grad(*args, upstream=None)": (lambda x: x * x, keras, 2),
        "grad(*args, upstream) in the output's structure": (lambda x: {"a": x, "b": x * x}, keras_of_structure, 5),
    }


class _Rule:
    """A rule that is no function: its signature has to be asked for."""

    def __init__(self, rule):
        self.rule, self.__signature__ = rule, inspect.signature(rule)

    def __call__(self, *args, **kwargs):
        return self.rule(*args, **kwargs)


@pytest.mark.parametrize("wrapped", [None, functools.partial, _Rule], ids=["function", "partial", "object"])
@pytest.mark.parametrize("row", [pytest.param(name, marks=construct(f"rule called as: {name}")) for name in _rules()])
def test_calling_convention(backend, row, wrapped):
    output, rule, expected = _rules()[row]
    f = mo.op_custom_gradient(lambda x: (output(x), wrapped(rule) if wrapped else rule))

    def loss(x):
        out = f(x)
        leaves = out.values() if isinstance(out, dict) else out if isinstance(out, (tuple, list)) else [out]
        return sum(leaves)

    assert float(mo.grad(loss)(3.0)) == expected
    assert float(mo.jvp(loss, (3.0,), (10.0,))[1]) == 10 * expected  # the transpose of the same rule


@construct("rule called as: grad(*args, upstream=None)")
def test_keras_rule_gets_the_arguments(backend):
    @mo.op_custom_gradient
    def f(x, y, kind):
        def grad(*args, upstream=None):
            x, y, kind = args
            assert kind == "product"
            return upstream * y, upstream * x, None

        return x * y, grad

    call = lambda x, y: f(x, y, "product")
    assert [float(g) for g in mo.grad(call, (0, 1))(5.0, 6.0)] == [6.0, 5.0]
    hessian = mo.hessian(call, (0, 1))(5.0, 6.0)  # the arguments that the rule gets are differentiable
    assert [[float(h) for h in row] for row in hessian] == [[0.0, 1.0], [1.0, 0.0]]


@construct("rule called as: grad(upstream) in the output's structure")
def test_tuple_in_one_parameter(backend):
    f = mo.op_custom_gradient(lambda x: ((x, x * x), lambda upstreams: upstreams[0] * 2 + upstreams[1] * 3))
    assert float(mo.grad(lambda x: sum(f(x)))(3.0)) == 5.0


@construct("an output of one tensor in a tuple")
def test_tuple_of_one(backend):
    f = mo.op_custom_gradient(lambda x: ((x * x,), lambda upstream: upstream[0] * 2))
    assert float(mo.grad(lambda x: f(x)[0])(3.0)) == 2.0


@construct("unused outputs get zeros")
def test_unused_output(backend, numpy):
    seen = []

    @mo.op_custom_gradient
    def f(x):
        def grad(da, db):
            seen.append((da is None, db is None))
            return da * 2 + db * 3

        return (x * 2, x * 3), grad

    np.testing.assert_allclose(numpy(mo.grad(lambda x: mo.op_sum(f(x)[1]))(mo.op_convert_to_tensor(X))), [3, 3, 3])
    np.testing.assert_allclose(numpy(mo.grad(lambda x: mo.op_sum(f(x)[0]))(mo.op_convert_to_tensor(X))), [2, 2, 2])
    assert set(seen) == {(False, False)}


@construct("integer outputs get no upstream")
def test_integer_output(backend, numpy):
    seen = []

    @mo.op_custom_gradient
    def f(x):
        def grad(du, dk):
            seen.append(dk)
            return du * 5

        return (x * x, mo.op_cast(mo.op_round(x), "int32")), grad

    x = mo.op_convert_to_tensor(X)
    _, index = f(x)
    assert mo.op_dtype(index) == "int32"
    np.testing.assert_allclose(numpy(mo.grad(lambda x: mo.op_sum(f(x)[0]))(x)), [5, 5, 5])
    assert set(seen) == {None}


@construct("integer and bool inputs")
def test_integer_input(backend, numpy):
    @mo.op_custom_gradient
    def f(x, index, mask):
        def grad(upstream):
            return mo.op_where(mask, upstream * 2, 0.0), None, None

        return mo.op_where(mask, x * mo.op_cast(index, "float32"), 0.0), grad

    x, index = mo.op_convert_to_tensor(X), mo.op_convert_to_tensor(np.array([1, 2, 3], np.int32))
    mask = mo.op_convert_to_tensor(np.array([True, False, True]))
    np.testing.assert_allclose(numpy(f(x, index, mask)), [0.5, 0, 6])
    np.testing.assert_allclose(numpy(mo.grad(lambda x: mo.op_sum(f(x, index, mask)))(x)), [2, 0, 2])


@construct("integer and bool inputs")
def test_bare_gradient_beside_integers(backend):
    """A bare gradient where there is one differentiable argument."""
    f = mo.op_custom_gradient(lambda x, k: (x * mo.op_cast(k, "float32"), lambda u: u * 4))
    k = mo.op_convert_to_tensor(np.array(3, np.int32))
    assert float(mo.grad(lambda x: f(x, k))(2.0)) == 4.0


@construct("integer and bool inputs")
@pytest.mark.parametrize("given", [7.0, [1.0, 2.0], np.array([True]), np.zeros((2, 2))], ids=repr)
def test_what_a_rule_returns_for_an_integer_is_dropped(backend, given):
    """It has no gradient, so that neither shape nor dtype can be wrong."""
    f = mo.op_custom_gradient(lambda x, k: (x * mo.op_cast(k, "float32"), lambda u: (u * 4, given)))
    k = mo.op_convert_to_tensor(np.array(3, np.int32))
    assert float(mo.grad(lambda x: f(x, k))(2.0)) == 4.0
    assert float(mo.jvp(lambda x: f(x, k), (2.0,), (0.5,))[1]) == 2.0


@construct("None means zero")
def test_none_is_zero(backend):
    @mo.op_custom_gradient
    def f(x, y):
        return x * y, lambda u: (None, u * 3)

    assert [float(g) for g in mo.grad(f, (0, 1))(5.0, 6.0)] == [0.0, 3.0]
    assert float(mo.jvp(f, (5.0, 6.0), (1.0, 0.0))[1]) == 0.0


@construct("gradients as a flat list over the tensor leaves")
def test_flat_list(backend):
    @mo.op_custom_gradient
    def f(p, q):
        return p["a"] * p["b"] * q[0], lambda u: [u * 1, u * 2, u * 3]

    gp, gq = mo.grad(f, (0, 1))({"a": 1.0, "b": 1.0}, [1.0])
    assert [float(g) for g in (gp["a"], gp["b"], gq[0])] == [1.0, 2.0, 3.0]


@construct("Python numbers and NumPy arrays as gradients")
def test_host_gradients(backend, numpy):
    f = mo.op_custom_gradient(lambda x, y: (x * mo.op_sum(y), lambda u: (4.0, np.array([1, 2, 3], np.float32))))
    gx, gy = mo.grad(f, (0, 1))(2.0, mo.op_convert_to_tensor(X))
    assert float(gx) == 4.0
    np.testing.assert_allclose(numpy(gy), [1, 2, 3])


@construct("an empty tensor")
def test_empty(backend, numpy):
    x = mo.op_convert_to_tensor(np.zeros((0, 3), np.float32))
    assert numpy(tenfold(x)).shape == (0, 3)
    assert numpy(mo.grad(total(tenfold))(x)).shape == (0, 3)


@construct("no differentiable argument")
def test_no_differentiable_argument(backend):
    f = mo.op_custom_gradient(lambda k: (mo.op_cast(k, "float32") * 2, lambda u: None))
    assert float(f(mo.op_convert_to_tensor(np.array(3, np.int32)))) == 6.0


# checks


def _faults():
    """What is wrong: (function, what its error has to say)."""
    return {
        "forward returns None": (lambda x: None, ["fault", "forgotten return"]),
        "forward returns no rule": (lambda x: x, ["fault", "(output, grad_fn)"]),
        "rule is not a function": (lambda x: (x, 3.0), ["fault", "callable"]),
        "rule returns None": (lambda x: (x * 1, lambda u: None), ["fault", "forgotten return"]),
        "too many gradients": (lambda x: (x * 1, lambda u: (u, u)), ["fault", "returned 2 gradients", "(x)"]),
        "wrong shape": (lambda x: (x * 1, lambda u: mo.op_sum(u)), ["fault", "'x'", "()", "(2,)"]),
        "broadcastable shape": (lambda x: (x * 1, lambda u: u[None]), ["fault", "'x'", "(1, 2)", "(2,)"]),
        "wrong structure": (lambda x: (x * 1, lambda u: {"x": u}), ["fault", "returned 1 gradient"]),
        "complex for a real input": (
            lambda x: (x * 1, lambda u: mo.op_cast(u, "complex64")),
            ["fault", "'x'", "complex64", "float32"],
        ),
        "integer for a real input": (
            lambda x: (x * 1, lambda u: mo.op_cast(u, "int32")),
            ["fault", "'x'", "int32", "float32"],
        ),
        "no tensor": (lambda x: (x * 1, lambda u: "gradient"), ["fault", "'x'", "not a tensor"]),
        "wrong number of parameters": (
            lambda x: ((x * 1, x * 2, x * 3), lambda da, db: da),
            ["fault", "2 required positional parameters", "3 outputs"],
        ),
    }


@pytest.mark.parametrize("name", _faults())
@construct("a rule that breaks its contract", error=True)
def test_broken_rule(backend, name):
    fault, wanted = _faults()[name]
    fault.__name__ = fault.__qualname__ = "fault"
    f = mo.op_custom_gradient(fault)

    def loss(x):
        out = f(x)
        return mo.op_sum(out[0] if isinstance(out, tuple) else out)

    with pytest.raises(errors.GradientRuleError) as caught:
        mo.grad(loss)(mo.op_convert_to_tensor(np.ones(2, np.float32)))
    for text in wanted:
        assert text in str(caught.value)


@pytest.mark.parametrize("name", ["rule returns None", "wrong shape", "complex for a real input"])
@construct("a rule that breaks its contract, under a compiler", error=True)
def test_broken_rule_compiled(backend, name):
    fault, wanted = _faults()[name]
    fault.__name__ = fault.__qualname__ = "fault"
    f = mo.op_custom_gradient(fault)
    gradient = mo.jit(mo.grad(lambda x: mo.op_sum(f(x))))
    with pytest.raises(Exception) as caught:  # a compiler may wrap the error
        gradient(mo.op_convert_to_tensor(np.ones(2, np.float32)))
    for text in wanted:
        assert text in str(caught.value)


@construct("a rule that breaks its contract", error=True)
def test_structure_of_an_argument(backend):
    @mo.op_custom_gradient
    def f(p, y):
        return p["a"] * y, lambda u: ({"b": u}, u)

    with pytest.raises(errors.GradientRuleError, match=r"(?s)f .*'p'.*structure"):
        mo.grad(lambda p: f(p, 2.0))({"a": 1.0})


@construct("a rule that breaks its contract", error=True)
def test_gradient_for_a_static_argument(backend):
    @mo.op_custom_gradient
    def f(x, kind):
        return x * 1, lambda u: (u, u)

    with pytest.raises(errors.GradientRuleError, match=r"(?s)'kind'.*static"):
        mo.grad(lambda x: f(x, "kind"))(1.0)


@construct("a rule that breaks its contract", error=True)
@pytest.mark.parametrize("position", [0, 1])
def test_one_of_many_arguments_is_named(backend, position):
    f = mo.op_custom_gradient(lambda *xs: (xs[0] * xs[1], lambda u: [u[None] if i == position else u for i in (0, 1)]))
    with pytest.raises(errors.GradientRuleError, match=rf"xs\[{position}\]"):
        mo.grad(f, (0, 1))(1.0, 2.0)


@construct("op_custom_gradient of something that is not a function", error=True)
def test_not_callable(backend):
    with pytest.raises(errors.ArgumentTypeError, match="op_custom_gradient: f must be callable"):
        mo.op_custom_gradient(3.0)


@construct("a tensor of another framework", error=True)
def test_foreign_tensor(backend):
    class Foreign:  # what every framework's tensors look like to the others
        __module__ = {"torch": "jax"}.get(backend, "torch")
        shape, dtype = (), "float32"

    with pytest.raises(errors.ForeignTensorError, match=backend):
        tenfold(Foreign())


@construct("missing arguments", error=True)
def test_missing_argument(backend):
    f = mo.op_custom_gradient(lambda x, y: (x * y, lambda u: (u, u)))
    with pytest.raises(TypeError, match="y"):
        f(mo.op_convert_to_tensor(1.0))


@pytest.mark.usefixtures("x64")
@construct("a real gradient of another float width is cast")
@pytest.mark.parametrize(
    ("dtype", "other"),
    [("float32", "float64"), ("float64", "float32"), ("bfloat16", "float32"), ("float16", "float32")],
)
def test_cast(backend, numpy, dtype, other):
    f = mo.op_custom_gradient(lambda x: (x * 1, lambda u: mo.op_cast(u, other) * 0.5))
    g = mo.grad(total(f))(mo.op_cast(mo.op_convert_to_tensor(X), dtype))
    assert mo.op_dtype(g) == dtype
    np.testing.assert_allclose(numpy(g), [0.5, 0.5, 0.5])


# what is differentiated


@construct("the gradient is what the rule says, in reverse mode")
def test_reverse(backend, numpy):
    np.testing.assert_allclose(numpy(mo.grad(total(tenfold))(mo.op_convert_to_tensor(X))), 10 * X)


@construct("the tangent is the transpose of the rule, in forward mode")
def test_forward(backend, numpy):
    t = np.array([1.0, 2.0, -3.0], np.float32)
    value, tangent = mo.jvp(tenfold, (X,), (t,))
    np.testing.assert_allclose(numpy(value), X**2)
    np.testing.assert_allclose(numpy(tangent), 10 * X * t)


@construct("the tangent is the transpose of the rule, in forward mode")
def test_forward_transposes(backend, numpy):
    """A rule that is not diagonal: the tangent map is the transpose, not the rule itself."""
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
    f = mo.op_custom_gradient(lambda x: (mo.op_matmul(a * 7, x), lambda u: mo.op_matmul(a.T, u)))
    t = np.array([1.0, -1.0, 0.5], np.float32)
    np.testing.assert_allclose(numpy(mo.jvp(f, (X,), (t,))[1]), a @ t)


@construct("several inputs and outputs in forward mode")
def test_forward_several(backend):
    @mo.op_custom_gradient
    def f(x, y):
        return (x + y, x * y), lambda u, v: (u * 2 + v * 3, u * 5 + v * 7)

    _, (du, dv) = mo.jvp(f, (1.0, 1.0), (10.0, 100.0))
    assert (float(du), float(dv)) == (2 * 10 + 5 * 100, 3 * 10 + 7 * 100)
    _, (du, dv) = mo.jvp(lambda x: f(x, 2.0), (1.0,), (1.0,))  # one input without a tangent
    assert (float(du), float(dv)) == (2.0, 3.0)


@construct("a rule that is not linear, in reverse mode")
def test_nonlinear_reverse(backend, numpy):
    x = mo.op_convert_to_tensor(X)
    np.testing.assert_allclose(
        numpy(mo.grad(lambda x: mo.op_sum(mo.op_multiply(clipped(x), np.array([5, 0.5, -7], np.float32))))(x)),
        [1, 0.5, -1],
    )


@construct("a rule that is not linear, in forward mode", error=True)
def test_nonlinear_forward(backend):
    with pytest.raises(errors.NonLinearRuleError) as caught:
        mo.op_convert_to_numpy(mo.jvp(clipped, (X,), (X,))[1])
    assert str(caught.value) == not_linear(clipped)
    assert caught.value.__notes__  # what showed it, in the backend's terms
    loose = mo.op_custom_gradient(functools.partial(lambda n, x: (x * n, lambda upstream: upstream * upstream), 2.0))
    with pytest.raises(errors.NonLinearRuleError, match=r"the gradient function of functools\.partial.* is not linear"):
        mo.op_convert_to_numpy(mo.jvp(loose, (X,), (X,))[1])


def not_linear(f):
    """Return what every backend says where the rule of `f` has no transpose, with the line where `f` begins."""
    code = inspect.unwrap(f).__code__
    return (
        f"the gradient function of {f.__qualname__} ({code.co_filename}:{code.co_firstlineno}) is not linear in its "
        f"upstream gradient, so forward mode, which is its transpose, does not exist; use reverse mode"
    )


product = mo.op_custom_gradient(lambda a, b: (mo.op_multiply(a, b), lambda u: (mo.op_multiply(u, b), u * a)))
product2 = mo.op_custom_gradient(lambda a, b: (product(a, b), lambda u: (product(u, b), product(u, a))))
product3 = mo.op_custom_gradient(lambda a, b: (product2(a, b), lambda u: (product2(u, b), product2(u, a))))


def declared(order):
    """Return u cos(b) and u sin(b), whose derivatives in b are given only by their rules."""
    cosine = sine = mo.op_multiply  # of no use: one order too many
    for _ in range(order):
        cosine, sine = (
            mo.op_custom_gradient(
                lambda u, b, c=cosine, s=sine: (
                    u * mo.op_stop_gradient(mo.op_cos(b)),
                    lambda w: (c(w, b), -s(w * u, b)),
                )
            ),
            mo.op_custom_gradient(
                lambda u, b, c=cosine, s=sine: (
                    u * mo.op_stop_gradient(mo.op_sin(b)),
                    lambda w: (s(w, b), c(w * u, b)),
                )
            ),
        )
    return cosine


def on_choice(u, x):
    return mo.op_cond(x[0] > 0, lambda: product(u, x), lambda: u)


def by_scan(u, x):
    return mo.op_scan(lambda carry, e: (carry + e[0], product(carry, e[1])), u[0] * 2, (u, x))[1]


def through_vjp(f):
    """Return the rule that `vjp` makes of a function."""
    return lambda u, x: mo.vjp(f, x)[1](u)


def looped(x):
    return mo.op_fori_loop(0, 2, lambda i, c: mo.op_sin(c), x)


def branched(x):
    return mo.op_cond(x[0] > 0, lambda: mo.op_sin(x), lambda: mo.op_cos(x))


# rules, linear in u, and the map of tangents that they are the transpose of, in terms of NumPy
LINEAR_RULES = {
    "a custom gradient": (lambda u, x: product(u, mo.op_cos(x)), lambda t, x: t * np.cos(x)),
    "two deep": (lambda u, x: product2(mo.op_cos(x), product(u, x)), lambda t, x: t * x * np.cos(x)),
    "three deep": (lambda u, x: product3(x, product2(u, x)), lambda t, x: t * x * x),
    "a derivative declared": (declared(4), lambda t, x: t * np.cos(x)),
    "vjp": (lambda u, x: mo.vjp(lambda x: mo.op_sin(x), x)[1](u), lambda t, x: t * np.cos(x)),
    "vjp of a custom gradient": (lambda u, x: mo.vjp(lambda x: product(x, x), x)[1](u), lambda t, x: 2 * t * x),
    "vjp of a kernel": (through_vjp(lambda x: mo.op_sigmoid(x)), lambda t, x: t / (2 + 2 * np.cosh(x))),
    "vjp of what is not used": (
        lambda u, x: mo.vjp(lambda x, y: product(mo.op_cos(x), x), x, x)[1](u)[0],
        lambda t, x: t * (np.cos(x) - x * np.sin(x)),
    ),
    "vjp of op_map": (
        through_vjp(lambda x: mo.op_map(lambda e: (mo.op_sin(e), mo.op_tanh(x))[0], x)),  # some of it is not used
        lambda t, x: t * np.cos(x),
    ),
    "vjp of op_scan": (
        through_vjp(lambda x: mo.op_scan(lambda c, e: (c + 1.0, mo.op_sin(e)), mo.op_sum(x) * 0, x)[1]),
        lambda t, x: t * np.cos(x),
    ),
    "vjp of op_fori_loop": (through_vjp(looped), lambda t, x: t * np.cos(np.sin(x)) * np.cos(x)),
    "vjp of op_cond": (through_vjp(branched), lambda t, x: t * np.cos(x)),
    "vjp of op_switch": (
        through_vjp(lambda x: mo.op_switch(mo.op_argmax(x), [mo.op_cos, mo.op_cos, mo.op_sin], x)),
        lambda t, x: t * np.cos(x),
    ),
    "vjp of checkpoint": (through_vjp(mo.checkpoint(lambda x: mo.op_sin(x))), lambda t, x: t * np.cos(x)),
    "grad": (lambda u, x: mo.grad(lambda x: mo.op_sum(product(product(x, x), u)))(x), lambda t, x: 2 * t * x),
    "jvp": (lambda u, x: mo.jvp(lambda x: product(x, x), (x,), (u,))[1], lambda t, x: 2 * t * x),
    "vmap": (lambda u, x: mo.vmap(product)(u, mo.op_cos(x)), lambda t, x: t * np.cos(x)),
    "jit": (lambda u, x: mo.jit(product)(u, mo.op_cos(x)), lambda t, x: t * np.cos(x)),
    "checkpoint": (lambda u, x: mo.checkpoint(product)(u, mo.op_cos(x)), lambda t, x: t * np.cos(x)),
    "op_take": (lambda u, x: product(mo.op_take(u, np.array([2, 1, 0])), x), lambda t, x: (t * x)[::-1]),
    "op_cond": (on_choice, lambda t, x: t * x),
    "op_scan": (
        by_scan,
        lambda t, x: np.array([3 * (t @ x) - t[0] * x[0], t[2] * x[2], 0.0]),
    ),
    "op_stop_gradient": (lambda u, x: product(u, mo.op_stop_gradient(x)), None),
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", LINEAR_RULES)
@construct("forward mode of a rule made of custom gradients and transforms")
def test_forward_mode_of_a_composed_rule(backend, numpy, name):
    rule, pushed = LINEAR_RULES[name]
    f = mo.op_custom_gradient(lambda x: (mo.op_sin(x), lambda u: rule(u, x)))
    x, t, step = np.array([0.3, 0.7, 1.1]), np.array([2.0, -3.0, 0.5]), 1e-5

    def jvp(x, t):
        return mo.jvp(f, (x,), (t,))[1]

    if pushed is None:
        pushed, first, second = (lambda t, x: t * x), 0.0, np.zeros(3)
    else:
        first = (pushed(t, x + step * t) - pushed(t, x - step * t)) / (2 * step)
        shifts = step * np.eye(3)
        second = [np.sum(pushed(t, x + h) - pushed(t, x - h)) / (2 * step) for h in shifts]
    xs, ts = mo.op_convert_to_tensor(x), mo.op_convert_to_tensor(t)
    np.testing.assert_allclose(numpy(jvp(xs, ts)), pushed(t, x), rtol=1e-12)
    np.testing.assert_allclose(numpy(mo.jvp(lambda x: jvp(x, ts), (xs,), (ts,))[1]), first + 0 * x, atol=1e-8)
    np.testing.assert_allclose(numpy(mo.grad(lambda x: mo.op_sum(jvp(x, ts)))(xs)), second, atol=1e-8)
    if name in ("two deep", "vjp", "op_cond"):
        both = mo.op_stack([xs, ts]), mo.op_stack([ts, xs])
        np.testing.assert_allclose(numpy(mo.vmap(jvp)(*both))[0], pushed(t, x), rtol=1e-12)
    if name == "two deep":
        np.testing.assert_allclose(numpy(mo.jit(jvp)(xs, ts)), pushed(t, x), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "complex64"])
@construct("forward mode of a rule made of custom gradients and transforms")
def test_forward_mode_of_a_composed_rule_in(backend, numpy, dtype):
    times = mo.op_custom_gradient(
        lambda a, b: (a * b, lambda u: (u * mo.op_conjugate(b), u * mo.op_conjugate(a))),
    )
    f = mo.op_custom_gradient(lambda x: (mo.op_exp(x), lambda u: times(u, mo.op_conjugate(mo.op_exp(x)))))
    x = np.array([0.3, 0.7 + 0.5j] if dtype == "complex64" else [0.3, 0.7], dtype)
    found = mo.jvp(f, (mo.op_convert_to_tensor(x),), (mo.op_convert_to_tensor(x),))[1]
    assert dtype in str(found.dtype)
    found = numpy(found)
    np.testing.assert_allclose(found, x * np.exp(x), rtol=2e-3 if dtype == "float16" else 1e-6)


# what zero goes back through, as an array or in a branch, a loop or a rule
WITHOUT_INFLUENCE = {
    "softsign": mo.op_softsign,
    "divided": lambda y: y / (1 + mo.op_square(y)),
    "summed": lambda y: mo.op_cumsum(mo.op_cumprod(mo.op_tanh(y))),
    "sorted": mo.op_sort,
    "taken": lambda y: mo.op_take(y, [2, 0, 0]),
    "taken, found out later": lambda y: mo.op_take(y, mo.op_argsort(y)),
    "set": lambda y: mo.op_set_item(y, 0, mo.op_hypot(y, 2.0)[1]),
    "convolved": lambda y: mo.op_reshape(
        mo.op_conv(mo.op_reshape(y, (1, 3, 1)), mo.op_ones((2, 1, 1)), padding="same"), (3,)
    ),
    "transformed": lambda y: mo.op_fft((y, y))[0],
    "solved": lambda y: mo.op_solve(mo.op_eye(3) + mo.op_outer(y, y), y),
    "a custom gradient": lambda y: product(y, mo.op_sin(y)),
    "a branch": lambda y: mo.op_cond(mo.op_sum(y) > 0, lambda: mo.op_hypot(y, 1.0), lambda: mo.op_arcsinh(y)),
    "a loop": lambda y: mo.op_fori_loop(0, 3, lambda i, c: mo.op_arcsinh(c) * 0.5, y),
    "a scan": lambda y: mo.op_scan(lambda c, e: (c * e, mo.op_softplus(c)), mo.op_sum(y), y)[1],
    "a branch in a loop": lambda y: mo.op_fori_loop(
        0, 2, lambda i, c: mo.op_cond(mo.op_sum(c) > 0, lambda: mo.op_arctan2(c, y), lambda: c * y), y
    ),
    "checkpoint": mo.checkpoint(lambda y: mo.op_softmax(y) * y),
}


@pytest.mark.parametrize("name", WITHOUT_INFLUENCE)
@pytest.mark.parametrize(
    ("place", "way"),
    [
        ("before", mo.jvp),
        pytest.param("before", mo.jit(mo.jvp, static_argnums=0), marks=pytest.mark.tier("full")),
        pytest.param("in a loop", mo.jvp, marks=pytest.mark.tier("full")),
        pytest.param("in a loop", mo.jit(mo.jvp, static_argnums=0), marks=pytest.mark.tier("full")),
    ],
    ids=["before", "before, compiled", "in a loop", "in a loop, compiled"],
)
@construct("forward mode of a rule made of custom gradients and transforms")
def test_forward_mode_of_a_rule_that_zero_goes_back_through(backend, numpy, name, place, way):
    """Zero that goes back through anything is a zero, not a constant that is added to the upstream gradient."""
    ignores = mo.op_custom_gradient(lambda a, b: (a * 3.0, lambda u: (u * 3.0, mo.op_zeros_like(b))))

    def f(x, y):
        y = WITHOUT_INFLUENCE[name](y)
        if place == "before":
            return ignores(x, y)
        return mo.op_fori_loop(0, 2, lambda i, c: ignores(c, mo.op_silu(y)), x)

    g = mo.op_custom_gradient(lambda x, y: (f(x, y), lambda u: mo.vjp(f, x, y)[1](u)))
    x, t = mo.op_convert_to_tensor(X), mo.op_convert_to_tensor(X[::-1].copy())
    found = numpy(way(g, (x, x), (t, t))[1])
    np.testing.assert_array_equal(found, X[::-1] * (3 if place == "before" else 9))


NOT_LINEAR_RULES = {
    "a square": lambda u, x: product(u, u),
    "a product two deep": lambda u, x: product2(u, product(x, u)),
    "rounded": lambda u, x: straight_through(u),
    "stopped": lambda u, x: product(mo.op_stop_gradient(u), x),
    "affine": lambda u, x: product(u, x) + 1.0,
    "stacked with a constant": lambda u, x: mo.op_sum(mo.op_stack([u, x]), axis=0),
    "ranks": lambda u, x: mo.op_cast(mo.op_argsort(u), "float32"),
    "cut": lambda u, x: mo.op_cast(mo.op_cast(u, "int32"), "float32"),
    "whole parts of a quotient": lambda u, x: mo.op_floor_divide(u, 2.0),
    "a softmax": lambda u, x: mo.op_softmax(u),
    "an inverse": lambda u, x: mo.op_inv(mo.op_outer(u, u))[0],
    "read as NumPy": lambda u, x: mo.op_multiply(mo.op_convert_to_numpy(u), x),
    "of another shape": lambda u, x: mo.op_multiply(mo.op_nonzero(u)[0].shape[0], x),
    "affine by a tangent": lambda u, x: mo.jvp(product, (x, x), (u, x))[1],
    "a loop": lambda u, x: mo.op_scan(lambda carry, e: (carry * e[0], carry * e[1]), u[0], (u, x))[1],
}


@pytest.mark.parametrize("name", NOT_LINEAR_RULES)
@construct("a composed rule that is not linear, in forward mode", error=True)
def test_nonlinear_forward_of_a_composed_rule(backend, name):
    rule = NOT_LINEAR_RULES[name]
    refused = mo.op_custom_gradient(lambda x: (mo.op_sin(x), lambda u: rule(u, x)))
    x = mo.op_convert_to_tensor(X)
    singular = (errors.ArgumentError,) if backend == "numpy" and name == "an inverse" else ()
    read = (errors.UnsupportedError,) if name == "read as NumPy" else ()  # it is refused before the rule has run
    with pytest.raises((errors.NonLinearRuleError, *singular, *read)):
        mo.op_convert_to_numpy(mo.jvp(refused, (x,), (x,))[1])
    if name in ("a square", "affine"):
        with pytest.raises(errors.NonLinearRuleError):
            mo.op_convert_to_numpy(mo.jit(lambda x, t: mo.jvp(refused, (x,), (t,))[1])(x, x))


@pytest.mark.usefixtures("x64")
@construct("second and third order through closed-over intermediates")
def test_higher_orders(backend):
    x = 0.3
    s = sigmoid(x)
    first, second = mo.grad(log1pexp), mo.grad(mo.grad(log1pexp))
    x = mo.op_convert_to_tensor(np.float64(x))
    np.testing.assert_allclose(float(first(x)), s, rtol=1e-12)
    np.testing.assert_allclose(float(second(x)), s * (1 - s), rtol=1e-12)
    np.testing.assert_allclose(float(mo.grad(second)(x)), s * (1 - s) * (1 - 2 * s), rtol=1e-12)


@pytest.mark.usefixtures("x64")
@construct("higher orders through closed-over outputs")
def test_through_outputs(backend):
    @mo.op_custom_gradient
    def exp(x):
        y = mo.op_exp(x)
        return y, lambda u: u * y

    f, x = exp, mo.op_convert_to_tensor(np.float64(0.7))
    for _ in range(4):
        f = mo.grad(f)
        np.testing.assert_allclose(float(f(x)), np.exp(0.7), rtol=1e-12)


# an output that the rule closes over has the function's rule


def _mixed(x):
    """A rule in `x` and `y` that is not the derivative: where y' = x + 2 y, the second is 1 + 2 y', the third 2 y''."""
    y = mo.op_round(x)
    return y, lambda u: u * (x + 2 * y)


def _derivatives_of_mixed(x):
    first = x + 2 * np.round(x)
    return [np.round(x), first, 1 + 2 * first, 2 * (1 + 2 * first), 4 * (1 + 2 * first)]


mixed = mo.op_custom_gradient(_mixed)
OF_OUTPUT = np.array([1.2, 2.7])


def _push(f):
    return lambda x: mo.jvp(f, (x,), (mo.op_ones_like(x),))[1]


def _pull(f):
    return mo.grad(total(f))


@pytest.mark.usefixtures("x64")
@construct("an output that the rule closes over has the function's rule, to the fourth order")
def test_output_of_rule(backend, numpy):
    x, wanted = mo.op_convert_to_tensor(OF_OUTPUT), _derivatives_of_mixed(OF_OUTPUT)
    for modes in ("rr", "rf", "fr", "ff", "rfr", "ffff"):
        f = mixed
        for mode in reversed(modes):
            f = _pull(f) if mode == "r" else _push(f)
        np.testing.assert_allclose(numpy(f(x)), wanted[len(modes)], rtol=1e-12, err_msg=modes)
    np.testing.assert_allclose(numpy(mo.hessian(total(mixed))(x)), np.diag(wanted[2]), rtol=1e-12)
    np.testing.assert_allclose(numpy(mo.hvp(total(mixed), (x,), (x,))), wanted[2] * OF_OUTPUT, rtol=1e-12)
    for order in (2, 3):
        with mo.GradientTape(persistent=True) as tape:
            source = tape.watch(x)
            found = mixed(source)
            for _ in range(order):
                found = tape.gradient(found, source)
        np.testing.assert_allclose(numpy(found), wanted[order], rtol=1e-12)


@pytest.mark.usefixtures("x64")
@construct("an output that the rule closes over, under the framework's own transforms and compilers")
def test_output_of_rule_natively(backend, native, numpy):
    x, wanted = mo.op_convert_to_tensor(OF_OUTPUT), _derivatives_of_mixed(OF_OUTPUT)
    for name, second in native.second().items():
        np.testing.assert_allclose(numpy(second(mixed)(x)), wanted[2], rtol=1e-12, err_msg=name)
    if backend != "torch":  # torch.compile has no second derivative
        for name, compiled in native.compilers().items():
            np.testing.assert_allclose(numpy(_pull(_pull(compiled(mixed)))(x)), wanted[2], rtol=1e-12, err_msg=name)
            np.testing.assert_allclose(numpy(compiled(_pull(_pull(mixed)))(x)), wanted[2], rtol=1e-12, err_msg=name)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("within", [pytest.param("jit", marks=pytest.mark.tier("full")), "vmap", "checkpoint"])
@construct("an output that the rule closes over, under jit, vmap and checkpoint")
def test_output_of_rule_within(backend, numpy, within):
    x, wanted = mo.op_convert_to_tensor(OF_OUTPUT), _derivatives_of_mixed(OF_OUTPUT)
    around = {"jit": mo.jit, "vmap": mo.vmap, "checkpoint": mo.checkpoint}[within]
    np.testing.assert_allclose(numpy(_pull(_pull(around(mixed)))(x)), wanted[2], rtol=1e-12)
    np.testing.assert_allclose(numpy(_pull(_push(around(mixed)))(x)), wanted[2], rtol=1e-12)
    np.testing.assert_allclose(numpy(around(_pull(_pull(_pull(mixed))))(x)), wanted[3], rtol=1e-12)


class _Kept:
    """An object with slots and a method: a rule may close over its output in one."""

    __slots__ = ("y",)

    def __init__(self, y):
        self.y = y

    def pull(self, u):
        return u * self.y


@mo.op_custom_gradient
def _doubled_slope(x):
    return mo.op_exp(x), lambda u: 2 * u


HELD = {}  # name -> (function, the second derivative of the sum of its outputs, by x and r = round(x))


def _held(name, second):
    def register(f):
        HELD[name] = (f, second)
        return f

    return register


@_held("a constant", lambda x, r: r)
def _(x):
    y = mo.op_stop_gradient(mo.op_round(x))
    return y, lambda u: u * y


@_held("a dict in a list", lambda x, r: r)
def _(x):
    box = [{"y": mo.op_round(x)}]
    return box[0]["y"], lambda u: u * box[0]["y"]


@_held("a tuple", lambda x, r: 9 * r)
def _(x):
    pair = mo.op_round(x), 3.0
    return pair[0], lambda u: u * pair[0] * pair[1]


@_held("a partial", lambda x, r: r)
def _(x):
    y = mo.op_round(x)
    return y, functools.partial(lambda y, u: u * y, y)


@_held("a default", lambda x, r: r)
def _(x):
    y = mo.op_round(x)
    return y, lambda u, *, y=y: u * y


@_held("a method", lambda x, r: r)
def _(x):
    kept = _Kept(mo.op_round(x))
    return kept.y, kept.pull


@_held("a nested function", lambda x, r: r)
def _(x):
    y = mo.op_round(x)
    slope = lambda: y
    return y, lambda u: u * slope()


@_held("a transform in the rule", lambda x, r: 18 * r**3)
def _(x):
    y = mo.op_round(x)
    return y, lambda u: u * mo.grad(total(lambda t: t * t * t))(y)


@_held("a custom gradient in the rule", lambda x, r: 2 * np.exp(r))
def _(x):
    y = mo.op_round(x)
    return y, lambda u: u * _doubled_slope(y)


@_held("a custom gradient in the function", lambda x, r: np.exp(x))
def _(x):
    y = _doubled_slope(x)
    return y, lambda u: u * y


@_held("an attached gradient", lambda x, r: r)
def _(x):
    y = mo.op_attach_gradient(mo.op_round(x), 7.0, x)
    return y, lambda u: u * y


@_held("an intermediate of the output", lambda x, r: 4 * r**3)
def _(x):
    y = mo.op_round(x)
    z = 2 * y  # as computed, it is constant
    return y, lambda u: u * z * y


@_held("stopped", lambda x, r: r)
def _(x):
    y = mo.op_round(x)
    return y, lambda u: u * mo.op_stop_gradient(y) * x


@_held("an input", lambda x, r: 5 + 0 * x)
def _(x):
    return x, lambda u: u * 5 * x


@_held("one of several", lambda x, r: r * np.exp(2 * x) + r * r + r * np.exp(x))
def _(x):
    a, b = mo.op_round(x), mo.op_exp(x)
    return (a, b), lambda da, db: da * a * b + db * a


@_held("in a structure", lambda x, r: r * np.exp(2 * x) + r * r + r * np.exp(x))
def _(x):
    a, b = mo.op_round(x), mo.op_exp(x)
    return {"a": a, "rest": [b, None]}, lambda u: u["a"] * a * b + u["rest"][0] * a


@_held("twice", lambda x, r: r + 3)
def _(x):
    y = mo.op_round(x)
    return (y, y), lambda da, db: da * y + 3 * db * x


@_held("reshaped", lambda x, r: 6 * r)
def _(x):
    y = mo.op_round(x)
    z = mo.op_reshape(y, (2, 1))
    return (y, z), lambda dy, dz: dy * mo.op_reshape(z, (2,)) + 3 * mo.op_reshape(dz, (2,)) * y


@_held("an entry", lambda x, r: r * r[0] ** 2 + np.array([np.sum(r) * r[0] + r[0], 0]))
def _(x):
    y = mo.op_round(x)
    first = y[0]  # of the sum of the outputs, the second derivative is by x[0] alone
    return (y, first), lambda dy, d: dy * y * first + d * first * mo.op_convert_to_tensor([1.0, 0.0], "float64")


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", HELD)
@construct("an output that the rule closes over, wherever it is held, alone or one of several")
def test_output_wherever_it_is_held(backend, numpy, name):
    function, second = HELD[name]
    ruled = mo.op_custom_gradient(function)

    def f(x):
        found = ruled(x)
        outputs = [found["a"], found["rest"][0]] if isinstance(found, dict) else found
        return mo.op_sum(outputs) if not isinstance(outputs, (tuple, list)) else sum(map(mo.op_sum, outputs))

    x, wanted = mo.op_convert_to_tensor(OF_OUTPUT), second(OF_OUTPUT, np.round(OF_OUTPUT))
    np.testing.assert_allclose(numpy(mo.grad(total(mo.grad(f)))(x)), wanted, rtol=1e-12)
    ones = mo.op_ones_like(x)
    if name != "an entry":  # whose Hessian is not symmetric
        np.testing.assert_allclose(numpy(mo.jvp(mo.grad(f), (x,), (ones,))[1]), wanted, rtol=1e-12)
        slope = lambda x: mo.jvp(f, (x,), (ones,))[1]
        np.testing.assert_allclose(numpy(mo.jvp(slope, (x,), (ones,))[1]), np.sum(wanted), rtol=1e-12)


@pytest.mark.usefixtures("x64")
@construct("an output that the rule closes over, complex")
def test_complex_output_of_rule(backend, numpy):
    """z -> r with r' = conj(r): of the real part of the sum, the gradients to all orders are conj(r)."""

    @mo.op_custom_gradient
    def f(z):
        r = mo.op_stop_gradient(mo.op_multiply(z, 2.0))
        return r, lambda u: u * mo.op_conj(r)

    z = mo.op_convert_to_tensor(np.array([1.2 + 0.3j, -0.7j]))
    pull = lambda f: mo.grad(lambda z: mo.op_sum(mo.op_real(f(z))))
    wanted = np.conj(2 * np.array([1.2 + 0.3j, -0.7j]))
    np.testing.assert_allclose(numpy(pull(f)(z)), wanted, rtol=1e-12)
    np.testing.assert_allclose(numpy(pull(pull(f))(z)), wanted, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@construct("an output that the rule closes over, in half precision")
def test_half_output_of_rule(backend, numpy, dtype):
    x = mo.op_convert_to_tensor(OF_OUTPUT, dtype)

    @mo.op_custom_gradient
    def f(x):
        y = mo.op_round(x)
        return y, lambda u: u * y

    found = _pull(_pull(f))(x)
    assert dtype in str(found.dtype)
    np.testing.assert_allclose(numpy(found), [1.0, 3.0])


@construct("an output that the rule closes over, of a function that takes variables")
def test_output_of_rule_with_variables(backend, beside, numpy):
    w = mo.op_convert_to_tensor(3.0) if backend in ("jax", "numpy") else beside.variable(3.0)

    @mo.op_custom_gradient
    def f(x):
        y = mo.op_round(x) * w
        return y, lambda u, variables=None: ([u * y * x], [mo.op_sum(u * y)] * len(variables))

    # y' = y x, y'' = y' x + y
    x = mo.op_convert_to_tensor(OF_OUTPUT.astype("float32"))
    y = 3 * np.round(OF_OUTPUT)
    np.testing.assert_allclose(numpy(_pull(_pull(f))(x)), y * OF_OUTPUT**2 + y, rtol=1e-5)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("order", [2, pytest.param(3, marks=pytest.mark.tier("full"))])
@construct("higher orders of a rule that closes over the result of a loop")
def test_output_of_a_loop(backend, numpy, order):
    """Newton's square root: JAX has no reverse mode of the loop, and needs none."""

    @mo.op_custom_gradient
    def sqrt(x):
        start = mo.op_ones_like(x)
        y = mo.op_while_loop(lambda y, k: k < 12, lambda y, k: ((y + x / y) / 2, k + 1), (start, 0))[0]
        return y, lambda u: u / (2 * y)

    x = mo.op_convert_to_tensor(OF_OUTPUT)
    wanted = {2: -0.25 * OF_OUTPUT**-1.5, 3: 0.375 * OF_OUTPUT**-2.5}[order]
    f = g = sqrt
    for _ in range(order):
        f, g = _pull(f), _push(g)
    for found in (f(x), g(x), f(x) if backend == "torch" else mo.jit(f)(x)):
        np.testing.assert_allclose(numpy(found), wanted, rtol=1e-9)


@pytest.mark.usefixtures("no_gc")
@pytest.mark.parametrize("order", [1, 2])
@construct("an output that the rule closes over is freed with the graph")
def test_output_of_rule_is_freed(backend, order):
    outputs = []

    @mo.op_custom_gradient
    def f(x):
        y = mo.op_exp(x)
        outputs.append(weakref.ref(y))
        return y, lambda u: u * y

    def step():
        with mo.GradientTape(persistent=True) as tape:
            x = tape.watch(mo.op_convert_to_tensor(np.ones(1000, np.float32)))
            y = f(x)
            outputs.append(weakref.ref(y))
            for _ in range(order):
                y = tape.gradient(y, x)
            outputs.append(weakref.ref(y))

    for _ in range(2):
        step()
    assert [ref() for ref in outputs[:3]] == [None] * 3


# a rule that calls its own function


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("order", [1, 2, pytest.param(3, marks=pytest.mark.tier("full"))])
@construct("a rule that calls its own function: each order asks for the next alone")
def test_recursive_rule(backend, numpy, order):
    calls = []

    @mo.op_custom_gradient
    def sinc(x):
        calls.append("sinc")
        return mo.op_sin(x) / x, lambda u: u * (mo.op_cos(x) - sinc(x)) / x

    @mo.op_custom_gradient
    def cos(n, x):
        """The derivative of order `n` of the cosine: there is no end to them."""
        calls.append("cos")
        return mo.op_cos(x + n * np.pi / 2), lambda u: u * cos(n + 1, x)

    x, s, c = OF_OUTPUT, np.sin(OF_OUTPUT), np.cos(OF_OUTPUT)
    of_sinc = [
        (c - s / x) / x,
        -s / x - 2 * c / x**2 + 2 * s / x**3,
        -c / x + 3 * s / x**2 + 6 * c / x**3 - 6 * s / x**4,
    ][order - 1]
    for f, wanted in ((sinc, of_sinc), (lambda x: cos(0, x), np.cos(x + order * np.pi / 2))):
        jit = (lambda f: f) if backend == "torch" else mo.jit  # PyTorch runs a rule only where it is asked for
        g, h = jit(f), f
        for _ in range(order):
            g, h = _pull(g), _pull(h)
        for found in (g, jit(h), mo.vmap(g)):
            calls.clear()
            np.testing.assert_allclose(numpy(found(mo.op_convert_to_tensor(x))), wanted, rtol=1e-9)
            assert len(calls) <= 3 * 2**order


def test_recursive_rule_closes_over_a_tracer(backend, numpy):
    """What the rule closes over is still known when its own rule is asked for, after the trace has ended."""

    def exp(w):
        @mo.op_custom_gradient
        def f(x):
            return mo.op_exp(w * x), lambda u: u * w * exp(mo.op_stop_gradient(w))(x)

        return f

    if backend == "torch":
        pytest.skip("PyTorch runs a rule only where it is asked for")
    compiled = mo.jit(lambda w, x: exp(mo.op_stop_gradient(w))(x))
    w, x = mo.op_convert_to_tensor(2.0), mo.op_convert_to_tensor(0.5)
    f = lambda x: compiled(w, x)
    np.testing.assert_allclose(numpy(mo.grad(mo.grad(mo.grad(f)))(x)), 8 * np.e, rtol=1e-5)


# rules that differ from the derivative


@construct("straight-through rules at second order")
def test_straight_through(backend):
    """The second derivative of round(x)² with the identity's rule: 2, not 0 and not that of a smooth square."""
    f = lambda x: straight_through(x) * straight_through(x)
    assert float(f(mo.op_convert_to_tensor(1.3))) == 1.0
    assert float(mo.grad(f)(1.3)) == 2.0
    assert float(mo.grad(mo.grad(f))(1.3)) == 2.0


@construct("a rule that differs from the derivative, at higher orders")
def test_tenfold_orders(backend):
    second = mo.grad(mo.grad(tenfold))
    assert [float(mo.grad(tenfold)(3.0)), float(second(3.0)), float(mo.grad(second)(3.0))] == [30.0, 10.0, 0.0]
    assert float(mo.jvp(mo.grad(tenfold), (3.0,), (2.0,))[1]) == 20.0
    assert float(mo.grad(lambda x: mo.jvp(tenfold, (x,), (2.0,))[1])(3.0)) == 20.0
    push = lambda f: lambda x: mo.jvp(f, (x,), (mo.op_ones_like(x),))[1]
    assert float(push(push(tenfold))(3.0)) == 10.0
    assert float(push(push(push(tenfold)))(3.0)) == 0.0


@pytest.mark.usefixtures("x64")
@construct("forward over forward, reverse over forward, forward over reverse")
def test_modes_agree(backend):
    s = sigmoid(0.3)
    push = lambda f: lambda x: mo.jvp(f, (x,), (mo.op_ones_like(x),))[1]
    x = mo.op_convert_to_tensor(np.float64(0.3))
    for outer in (push, mo.grad):
        for inner in (push, mo.grad):
            np.testing.assert_allclose(float(outer(inner(log1pexp))(x)), s * (1 - s), rtol=1e-12)
            for outermost in (push, mo.grad):
                np.testing.assert_allclose(
                    float(outermost(outer(inner(log1pexp)))(x)), s * (1 - s) * (1 - 2 * s), rtol=1e-11
                )


@construct("second order in the upstream gradient")
def test_upstream_is_differentiable(backend):
    """d/dx of u·10x where u itself depends on x: f(x)³ has the gradient 3 f² · 10 x."""
    f = lambda x: tenfold(x) * tenfold(x) * tenfold(x)
    x = 2.0
    assert float(mo.grad(f)(x)) == 3 * x**4 * 10 * x
    # d/dx (3 f² 10 x) = 6 f f' 10 x + 30 f² with f' = 10 x
    assert float(mo.grad(mo.grad(f))(x)) == 6 * x**2 * (10 * x) * 10 * x + 30 * x**4


@construct("nested custom gradients")
def test_nested(backend):
    @mo.op_custom_gradient
    def outer(x):
        y = tenfold(x)  # its own rule holds inside the rule of `outer` too
        return y * 3, lambda u: u * tenfold(x)

    x = 2.0
    assert float(outer(mo.op_convert_to_tensor(x))) == 12.0
    assert float(mo.grad(outer)(x)) == 4.0  # tenfold(x), as outer's rule says
    assert float(mo.grad(mo.grad(outer))(x)) == 20.0  # 10 x, as tenfold's rule says
    assert float(mo.grad(lambda x: tenfold(tenfold(x)))(x)) == 10 * x**2 * 10 * x
    assert float(mo.jvp(outer, (x,), (1.0,))[1]) == 4.0


@construct("a rule that takes gradients")
def test_rule_takes_gradients(backend):
    @mo.op_custom_gradient
    def f(x):
        return x * x * x, lambda u: u * mo.grad(lambda y: y * y * y * y)(x)

    assert float(mo.grad(f)(2.0)) == 32.0
    assert float(mo.grad(mo.grad(f))(2.0)) == 48.0


@construct("a function that takes gradients")
def test_forward_takes_gradients(backend):
    @mo.op_custom_gradient
    def f(x):
        slope = mo.grad(lambda y: y * y * y)(x)
        return slope, lambda u: u * slope

    assert float(f(mo.op_convert_to_tensor(2.0))) == 12.0
    assert float(mo.grad(f)(2.0)) == 12.0
    assert float(mo.grad(mo.grad(f))(2.0)) == 12.0  # slope depends on x: d/dx 3x²


@construct("custom gradients in a loop, three hundred deep")
def test_deep(backend):
    def f(x):
        for _ in range(300):
            x = straight_through(x) + 0.001
        return x

    assert float(mo.grad(f)(1.0)) == 1.0


# closed-over differentiable values


def _outer_value(f):
    """Return the gradient with respect to `w`, which `f(w)`'s custom function closes over."""
    return mo.grad(f)(mo.op_convert_to_tensor(3.0))


@construct("a closed-over value of an outer transform, without variables", error=True)
def test_closed_over_transform(backend):
    def loss(w):
        @mo.op_custom_gradient
        def scaled(x):
            return x * w, lambda u: u * w

        return scaled(mo.op_convert_to_tensor(2.0))

    with pytest.raises(errors.ClosedOverError, match="scaled"):
        _outer_value(loss)


@construct("a closed-over value of an outer transform, through variables", error=("tensorflow",))
def test_closed_over_transform_variables(backend):
    def loss(w):
        @mo.op_custom_gradient
        def scaled(x):
            def grad(upstream, variables):
                assert len(variables) == 1
                return upstream * 5, [upstream * 7]

            return x * w, grad

        return scaled(mo.op_convert_to_tensor(2.0))

    if backend == "tensorflow":  # its variables are tf.Variables, nothing else
        with pytest.raises(errors.ClosedOverError, match=r"scaled closes over .*tf.Variable"):
            _outer_value(loss)
        return
    assert float(_outer_value(loss)) == 7.0


@construct("a closed-over value that only the rule uses")
def test_closed_over_by_the_rule(backend):
    """The value of scaled does not depend on `w`, its gradient does: d/dw (d scaled/dx) is 1."""

    def loss(w):
        @mo.op_custom_gradient
        def scaled(x):
            return x * 2, lambda u: u * w

        return mo.grad(scaled)(mo.op_convert_to_tensor(2.0))

    assert float(_outer_value(loss)) == 1.0


def _variable(native, backend, value):
    if backend == "jax":
        pytest.skip("JAX has no variables")
    return native.variable(value)


@construct("a closed-over variable, without variables", error=True)
def test_closed_over_variable(backend, native):
    weight = _variable(native, backend, 3.0)

    @mo.op_custom_gradient
    def scaled(x):
        return x * weight, lambda u: u * weight

    with pytest.raises(errors.ClosedOverError, match="scaled"), mo.GradientTape() as tape:
        x = tape.watch(mo.op_convert_to_tensor(2.0))
        tape.gradient(scaled(x), x)


@construct("closed-over variables, through variables")
def test_variables(backend, native):
    weights = [_variable(native, backend, float(k)) for k in range(2, 14)]
    seen = []

    @mo.op_custom_gradient
    def weighted(x):
        def grad(upstream, variables):
            seen.extend(variables)
            # each variable's own number tells it from the others
            return upstream * 5, [upstream * mo.op_convert_to_tensor(v) * 100 for v in variables]

        return sum(x * weight for weight in weights), grad

    with mo.GradientTape() as tape:
        x = tape.watch(mo.op_convert_to_tensor(2.0))
        y = weighted(x) * 10
    gx, gws = tape.gradient(y, [x, weights])
    assert float(gx) == 50.0
    assert [float(g) for g in gws] == [1000.0 * k for k in range(2, 14)]
    assert len(seen) == 12


@construct("closed-over variables: in the same order at every call")
def test_variables_order(backend, native):
    weights = [_variable(native, backend, float(k)) for k in range(2, 14)]
    orders = []

    @mo.op_custom_gradient
    def weighted(x):
        def grad(upstream, variables):
            orders.append([float(mo.op_convert_to_numpy(v)) for v in variables])
            return upstream, [None] * len(variables)

        return sum(x * weight for weight in reversed(weights)), grad

    for _ in range(2):
        with mo.GradientTape() as tape:
            x = tape.watch(mo.op_convert_to_tensor(2.0))
            y = weighted(x)
        assert float(tape.gradient(y, x)) == 1.0
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == [float(k) for k in range(2, 14)]


@construct("variables come in the order of their first use")
def test_variables_come_in_order_of_use(backend, beside):
    order = [3, 1, 4, 0, 2]

    def weighted(weights):
        def f(x):
            def grad(upstream, variables):
                return upstream, [upstream * float(place) for place in range(len(variables))]

            y = x * weights[order[0]]
            for k in order[1:]:
                y = weights[k] * y + weights[order[0]]
            return y, grad

        return mo.op_custom_gradient(f)

    if backend in ("jax", "numpy"):  # which have no variables: closed-over values of an outer transform
        weights = [mo.op_convert_to_tensor(float(k)) for k in range(5)]
        found = mo.grad(lambda weights: weighted(weights)(mo.op_convert_to_tensor(2.0)))(weights)
    else:
        weights = [_variable(beside, backend, float(k)) for k in range(5)]
        with mo.GradientTape() as tape:
            y = weighted(weights)(tape.watch(mo.op_convert_to_tensor(2.0)))
        found = tape.gradient(y, weights)
    assert [float(found[k]) for k in order] == [0.0, 1.0, 2.0, 3.0, 4.0]


@construct("variables: a wrong count of gradients", error=True)
def test_variables_count(backend, native):
    weight = _variable(native, backend, 3.0)

    @mo.op_custom_gradient
    def scaled(x):
        return x * weight, lambda upstream, variables: (upstream, [upstream, upstream])

    with (
        pytest.raises(errors.GradientRuleError, match=r"(?s)scaled.*2 gradients.*1 variable"),
        mo.GradientTape() as tape,
    ):
        tape.gradient(scaled(tape.watch(mo.op_convert_to_tensor(2.0))), [weight])


@construct("a variable as an argument")
def test_variable_argument(backend, native):
    weight = _variable(native, backend, 3.0)
    f = mo.op_custom_gradient(lambda x, w: (x * w, lambda u: (u * 2, u * 7)))
    with mo.GradientTape() as tape:
        x = tape.watch(mo.op_convert_to_tensor(2.0))
        y = f(x, weight)
    assert float(y) == 6.0
    assert [float(g) for g in tape.gradient(y, [x, weight])] == [2.0, 7.0]


@construct("a closed-over constant")
def test_closed_over_constant(backend, numpy):
    constant = mo.op_convert_to_tensor(X)
    f = mo.op_custom_gradient(lambda x: (x * constant, lambda u: u * constant * 3))
    np.testing.assert_allclose(numpy(mo.grad(total(f))(mo.op_convert_to_tensor(X))), 3 * X)


# where it holds


def _check_native(ways, f, x, expected, numpy, *extra, rtol=1e-5):
    assert ways
    for name, way in ways.items():
        found = numpy(way(f)(mo.op_convert_to_tensor(x), *[mo.op_convert_to_tensor(e) for e in extra]))
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-6, err_msg=name)


@construct("the framework's own reverse mode")
def test_native_reverse(backend, native, numpy):
    _check_native(native.reverse(), tenfold, X, 10 * X, numpy)
    _check_native(native.reverse(), log1pexp, X, sigmoid(X), numpy)


@construct("the framework's own reverse mode, a rule that is not linear")
def test_native_reverse_nonlinear(backend, native, numpy):
    ways = {name: way for name, way in native.reverse().items() if "transposed" not in name}  # transposes a tangent map
    _check_native(ways, lambda x: clipped(x) * 5.0, X, [1, 1, 1], numpy)


@construct("the framework's own forward mode")
def test_native_forward(backend, native, numpy):
    t = np.array([1.0, 2.0, -3.0], np.float32)
    _check_native(native.forward(), tenfold, X, 10 * X * t, numpy, t)
    _check_native(native.forward(), log1pexp, X, sigmoid(X) * t, numpy, t)


@construct("the framework's own forward mode, a rule that is not linear", error=True)
def test_native_forward_nonlinear(backend, native, numpy):
    for name, way in native.forward().items():
        with pytest.raises(errors.NonLinearRuleError, match=re.escape(not_linear(clipped))):
            numpy(way(clipped)(mo.op_convert_to_tensor(X), mo.op_convert_to_tensor(X)))
            pytest.fail(name)


@construct("the framework's own second order, all mixes of modes")
def test_native_second(backend, native, numpy):
    s = sigmoid(X)
    _check_native(native.second(), log1pexp, X, s * (1 - s), numpy, rtol=1e-4)
    _check_native(native.second(), tenfold, X, [10, 10, 10], numpy)


@construct("the framework's own vectorising map")
def test_native_vmap(backend, native, numpy):
    x = np.stack([X, 2 * X])
    _check_native(native.mapped(), tenfold, x, x**2, numpy)
    _check_native(native.mapped(), lambda x: mo.grad(total(tenfold))(x), x, 10 * x, numpy)


@construct("the framework's own vectorising map, inside reverse mode")
def test_grad_of_native_vmap(backend, native, numpy):
    x = np.stack([X, 2 * X])
    for name, way in native.mapped().items():
        found = numpy(mo.grad(lambda x: mo.op_sum(way(tenfold)(x)))(mo.op_convert_to_tensor(x)))
        np.testing.assert_allclose(found, 10 * x, err_msg=name)


@construct("compiled: value and gradient")
def test_compiled(backend, native, numpy):
    for f, value, slope in ((tenfold, X**2, 10 * X), (log1pexp, np.log1p(np.exp(X)), sigmoid(X))):
        for name, way in native.reverse().items():
            for compiler_name, compiled in native.compilers().items():
                if backend == "torch" and name not in ("torch.autograd.grad",):
                    continue  # torch.compile of torch.func transforms: below
                found = numpy(way(compiled(f))(mo.op_convert_to_tensor(X)))
                np.testing.assert_allclose(found, slope, rtol=1e-5, err_msg=f"{name} of {compiler_name}")
                np.testing.assert_allclose(numpy(compiled(f)(mo.op_convert_to_tensor(X))), value, rtol=1e-5)


@construct("compiled: pytrees, keywords, static arguments")
def test_compiled_arguments(backend, native, numpy):
    @mo.op_custom_gradient
    def f(p, kind, *, scale, table):
        def grad(upstream):
            return {"w": upstream["y"] * 2, "b": upstream["z"] * 3}, None, None, None

        assert kind == "kind"
        return {"y": mo.op_multiply(p["w"], table) * scale, "z": p["b"] * 1, "tag": "t"}, grad

    values = np.array([1.0, 2.0, 3.0], np.float32)
    table = mo.op_convert_to_tensor(values)

    def loss(x):
        out = f({"w": x, "b": x[0]}, "kind", scale=2.0, table=table)
        return mo.op_sum(out["y"]) + out["z"]

    for name, compiled in native.compilers().items():
        value, gradient = compiled(lambda x: mo.value_and_grad(loss)(x))(mo.op_convert_to_tensor(X))
        np.testing.assert_allclose(numpy(value), 2 * X @ values + X[0], rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(numpy(gradient), [5, 2, 2], err_msg=name)


@construct("compiled by the full compiler (inductor, XLA)")
@pytest.mark.compiler
def test_fully_compiled(backend, native, numpy):
    reverse = next(iter(native.reverse().values()))
    for name, compiled in native.full_compilers().items():
        np.testing.assert_allclose(numpy(reverse(compiled(tenfold))(mo.op_convert_to_tensor(X))), 10 * X, err_msg=name)


def _refuses(x):
    def grad(upstream):
        raise NotImplementedError("no gradient of refuses")

    return x * 2, grad


def _broken(x):
    return x * 2, lambda upstream: mo.op_reshape(upstream, (7, 5))


def _through_a_loop(x):
    def double(y):  # JAX cannot transpose a loop of unknown length
        return mo.op_while_loop(
            lambda i, _: i < mo.op_cast(y[0], "int32") * 0 + 1, lambda i, y: (i + 1, 2 * y), (0, y)
        )[1]

    return double(x), lambda upstream: mo.vjp(double, x)[1](upstream)[0]


@pytest.mark.parametrize("f", [_refuses, _broken, _through_a_loop])
@construct("the value alone of a function whose rule raises")
def test_a_rule_that_raises_is_no_matter_to_the_value(backend, beside, numpy, f):
    f = mo.op_custom_gradient(f)
    x, xs = mo.op_convert_to_tensor(X), mo.op_convert_to_tensor(np.stack([X, 2 * X]))
    compilers = beside.compilers().values() if f.__name__ != "_through_a_loop" else []  # whose length is a value
    for run in (f, mo.jit(f), *(compiled(f) for compiled in compilers)):
        np.testing.assert_allclose(numpy(run(x)), 2 * X)
    for run in (mo.vmap(f), mo.jit(mo.vmap(f)), mo.vmap(mo.jit(f))):
        np.testing.assert_allclose(numpy(run(xs)), 2 * numpy(xs))
    np.testing.assert_allclose(numpy(mo.jit(mo.grad(lambda x: mo.op_sum(x * mo.op_stop_gradient(f(x)))))(x)), 2 * X)


@pytest.mark.parametrize("f", [_refuses, _broken])
@construct("the gradient of a function whose rule raises", error=True)
def test_a_rule_that_raises_raises_where_it_is_differentiated(backend, f):
    custom = mo.op_custom_gradient(f)
    x, xs = mo.op_convert_to_tensor(X), mo.op_convert_to_tensor(np.stack([X, 2 * X]))

    def loss(x):
        return mo.op_sum(custom(x))

    ways = [mo.grad(loss), mo.grad(mo.jit(loss)), mo.jit(mo.grad(loss)), lambda x: mo.jvp(mo.jit(loss), (x,), (x,))]
    wanted = "no gradient of refuses" if f is _refuses else "reshape"
    for way in ways:
        with pytest.raises(Exception, match=wanted):  # a compiler may wrap the error
            way(x)
    with pytest.raises(Exception, match=wanted):
        mo.grad(lambda xs: mo.op_sum(mo.jit(mo.vmap(custom))(xs)))(xs)


def _log1pexp(x):
    e = mo.op_exp(x)
    return mo.op_log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))


@construct("a rule that avoids an infinity, inside a compiled function")
def test_a_rule_avoids_an_infinity_inside_a_compiled_function(backend, numpy):
    f, x = mo.jit(mo.op_custom_gradient(_log1pexp)), mo.op_convert_to_tensor(np.array([0.0, 100.0], np.float32))
    gradients = [
        mo.grad(lambda x: mo.op_sum(f(x)))(x),
        mo.value_and_grad(lambda x: mo.op_sum(2 * f(x)))(x)[1] / 2,
        mo.vjp(f, x)[1](mo.op_ones_like(x)),
        mo.jit(mo.grad(lambda x: mo.op_sum(f(x))))(x),
        mo.op_diagonal(mo.jacrev(f)(x)),
    ]
    for found in gradients:
        np.testing.assert_allclose(numpy(found[0] if isinstance(found, tuple) else found), [0.5, 1.0])


@construct("the compiler around the gradient")
def test_compiled_gradient(backend, native, numpy):
    x = mo.op_convert_to_tensor(X)
    for name, compiled in native.compilers().items():
        found = numpy(compiled(lambda x: mo.grad(total(tenfold))(x))(x))
        np.testing.assert_allclose(found, 10 * X, err_msg=name)


@construct("multiop.jit around and inside every transform")
def test_jit(backend, numpy):
    x, t = mo.op_convert_to_tensor(X), mo.op_convert_to_tensor(np.ones(3, np.float32))
    np.testing.assert_allclose(numpy(mo.jit(tenfold)(x)), X**2)
    np.testing.assert_allclose(numpy(mo.jit(mo.grad(total(tenfold)))(x)), 10 * X)
    np.testing.assert_allclose(numpy(mo.grad(mo.jit(total(tenfold)))(x)), 10 * X)
    np.testing.assert_allclose(numpy(mo.jit(mo.grad(lambda x: mo.op_sum(mo.grad(total(tenfold))(x))))(x)), [10, 10, 10])
    np.testing.assert_allclose(numpy(mo.jit(lambda x, t: mo.jvp(tenfold, (x,), (t,))[1])(x, t)), 10 * X)
    np.testing.assert_allclose(numpy(mo.jit(mo.vmap(mo.grad(tenfold)))(x)), 10 * X)
    np.testing.assert_allclose(numpy(mo.vmap(mo.jit(mo.grad(tenfold)))(x)), 10 * X)
    np.testing.assert_allclose(numpy(mo.jit(mo.hessian(total(tenfold)))(x)), 10 * np.eye(3))


@construct("vmap of a custom gradient")
def test_vmap(backend, numpy):
    x = mo.op_convert_to_tensor(np.stack([X, 2 * X]))
    np.testing.assert_allclose(numpy(mo.vmap(tenfold)(x)), numpy(x) ** 2)
    np.testing.assert_allclose(numpy(mo.vmap(mo.grad(total(tenfold)))(x)), 10 * numpy(x))
    np.testing.assert_allclose(numpy(mo.vmap(mo.vmap(mo.grad(tenfold)))(x)), 10 * numpy(x))
    np.testing.assert_allclose(numpy(mo.vmap(mo.hessian(total(tenfold)))(x)), np.stack([10 * np.eye(3)] * 2))
    push = mo.vmap(lambda x: mo.jvp(tenfold, (x,), (mo.op_ones_like(x),))[1])
    np.testing.assert_allclose(numpy(push(x)), 10 * numpy(x))


@construct("vmap over some arguments only")
def test_vmap_some(backend, numpy):
    @mo.op_custom_gradient
    def f(x, y):
        return mo.op_sum(x * y), lambda u: (u * y * 2, u * x * 3)

    x, y = mo.op_convert_to_tensor(X), mo.op_convert_to_tensor(np.stack([X, 2 * X]))
    gx, gy = mo.vmap(mo.grad(f, (0, 1)), in_axes=(None, 0))(x, y)
    np.testing.assert_allclose(numpy(gx), 2 * numpy(y))
    np.testing.assert_allclose(numpy(gy), np.stack([3 * X, 3 * X]))
    # the gradient with respect to what is not mapped adds up over the mapped axis
    found = mo.grad(lambda x: mo.op_sum(mo.vmap(f, in_axes=(None, 0))(x, y)))(x)
    np.testing.assert_allclose(numpy(found), 2 * numpy(y).sum(0))


@construct("checkpoint of a custom gradient")
def test_checkpoint(backend, numpy):
    np.testing.assert_allclose(numpy(mo.grad(total(mo.checkpoint(tenfold)))(mo.op_convert_to_tensor(X))), 10 * X)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(d, marks=construct(f"dtype: {d}"))
        for d in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
    ],
)
def test_dtypes(backend, numpy, dtype):
    x = mo.op_cast(mo.op_convert_to_tensor(X), dtype)
    g = mo.grad(lambda x: mo.op_sum(mo.op_real(tenfold(x))) if dtype.startswith("complex") else mo.op_sum(tenfold(x)))(
        x
    )
    assert mo.op_dtype(g) == dtype
    np.testing.assert_allclose(numpy(g), 10 * X, rtol=1e-2)
    _, tangent = mo.jvp(tenfold, (x,), (mo.op_ones_like(x),))
    assert mo.op_dtype(tangent) == dtype
    np.testing.assert_allclose(numpy(tangent), 10 * X, rtol=1e-2)


Z = np.array([3 + 4j, -1 + 0.5j], np.complex64)


@construct("complex: the conjugate convention in upstream and result")
def test_complex(backend, numpy):
    @mo.op_custom_gradient
    def square(z):
        return z * z, lambda u: u * mo.op_conj(2 * z)  # as TensorFlow and PyTorch have it

    z = mo.op_convert_to_tensor(Z)
    # d|z²|²: gradient 2 z² · conj(2 z) in the conjugate convention = 4 |z|² z
    loss = lambda z: mo.op_sum(mo.op_real(square(z) * mo.op_conj(square(z))))
    np.testing.assert_allclose(numpy(mo.grad(loss)(z)), 4 * np.abs(Z) ** 2 * Z, rtol=1e-5)
    u = np.array([1 + 2j, -3j], np.complex64)
    _, pullback = mo.vjp(square, z)
    np.testing.assert_allclose(numpy(pullback(mo.op_convert_to_tensor(u))[0]), u * np.conj(2 * Z), rtol=1e-6)


@construct("complex: forward mode")
def test_complex_forward(backend, numpy):
    square = mo.op_custom_gradient(lambda z: (z * z, lambda u: u * mo.op_conj(2 * z)))
    t = np.array([1 + 2j, -3j], np.complex64)
    np.testing.assert_allclose(numpy(mo.jvp(square, (Z,), (t,))[1]), 2 * Z * t, rtol=1e-6)


@construct("complex: second order")
def test_complex_second(backend, numpy):
    """f(z) = |z|², its rule 2 z; the derivative of the gradient in the direction t is 2 t."""
    f = mo.op_custom_gradient(
        lambda z: (mo.op_sum(mo.op_real(z * mo.op_conj(z))), lambda u: mo.op_cast(u, "complex64") * (2 * z))
    )
    t = np.array([1 + 2j, -3j], np.complex64)
    np.testing.assert_allclose(numpy(mo.grad(f)(mo.op_convert_to_tensor(Z))), 2 * Z, rtol=1e-6)
    np.testing.assert_allclose(numpy(mo.hvp(f, (Z,), (t,))), 2 * t, rtol=1e-6)


@construct("complex: from real to complex and back")
def test_complex_mixed(backend, numpy):
    @mo.op_custom_gradient
    def rotate(x):  # real to complex: the gradient is the real part of what a complex input would get
        return mo.op_cast(x, "complex64") * (2 + 3j), lambda u: mo.op_real(u * (2 - 3j))

    x, u = mo.op_convert_to_tensor(X), np.array([1 + 1j, 2j, -1], np.complex64)
    np.testing.assert_allclose(
        numpy(mo.vjp(rotate, x)[1](mo.op_convert_to_tensor(u))[0]), np.real(u * (2 - 3j)), rtol=1e-6
    )
    np.testing.assert_allclose(numpy(mo.jvp(rotate, (x,), (x,))[1]), X * (2 + 3j), rtol=1e-6)


@pytest.mark.usefixtures("x64")
@construct("against finite differences, both modes")
def test_finite_differences(backend):
    def f(x):
        y = log1pexp(mo.op_sin(x) * 3.0)
        return mo.op_sum(y * y) * mo.op_exp(-x[0])

    rng = np.random.default_rng(0)
    x, v = rng.normal(size=5), rng.normal(size=5)
    value = lambda x: float(f(mo.op_convert_to_tensor(x)))
    h = 1e-5
    expected = (value(x + h * v) - value(x - h * v)) / (2 * h)
    np.testing.assert_allclose(float(mo.jvp(f, (x,), (v,))[1]), expected, rtol=1e-8)
    np.testing.assert_allclose(float(np.vdot(mo.op_convert_to_numpy(mo.grad(f)(x)), v)), expected, rtol=1e-8)
    slope = lambda x: float(np.vdot(mo.op_convert_to_numpy(mo.grad(f)(x)), v))
    expected = (slope(x + h * v) - slope(x - h * v)) / (2 * h)
    np.testing.assert_allclose(np.vdot(mo.op_convert_to_numpy(mo.hvp(f, (x,), (v,))), v), expected, rtol=1e-7)


# the frameworks' own checkers


@construct("torch.autograd.gradcheck and gradgradcheck", only="torch")
def test_gradcheck(x64):
    torch = pytest.importorskip("torch")
    with mo.use_backend("torch"):
        x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
        options = {"check_forward_ad": True, "check_batched_grad": True}
        assert torch.autograd.gradcheck(log1pexp, (x,), **options, check_batched_forward_grad=True)
        assert torch.autograd.gradgradcheck(log1pexp, (x,), check_fwd_over_rev=True, check_rev_over_rev=True)


@construct("jax.test_util.check_grads, orders 1 to 3, both modes", only="jax")
def test_check_grads(x64):
    pytest.importorskip("jax")
    from jax.test_util import check_grads

    with mo.use_backend("jax"):
        check_grads(log1pexp, (mo.op_convert_to_tensor(X.astype(np.float64)),), order=3, modes=["fwd", "rev"])


@construct("tf.test.compute_gradient", only="tensorflow")
def test_compute_gradient(x64):
    tf = pytest.importorskip("tensorflow")
    with mo.use_backend("tensorflow"):
        theoretical, numerical = tf.test.compute_gradient(log1pexp, [tf.constant(X.astype(np.float64))])
    np.testing.assert_allclose(theoretical[0], numerical[0], rtol=1e-6)
    np.testing.assert_allclose(np.diag(theoretical[0]), sigmoid(X), rtol=1e-6)


# memory and threads


@construct("residuals are freed with the graph")
@pytest.mark.usefixtures("no_gc")
def test_residuals_are_freed(backend):
    residuals = []

    @mo.op_custom_gradient
    def f(x):
        residual = mo.op_exp(x)
        residuals.append(weakref.ref(residual))
        return residual * 1, lambda u: u * residual

    def step():
        with mo.GradientTape() as tape:
            x = tape.watch(mo.op_convert_to_tensor(np.ones(1000, np.float32)))
            y = mo.op_sum(f(x))
        return tape.gradient(y, x)

    for _ in range(3):
        step()
    alive = [ref for ref in residuals[:-1] if ref() is not None]  # the last call's may still be cached
    assert not alive


@construct("a call without differentiation keeps nothing")
@pytest.mark.usefixtures("no_gc")
def test_plain_call_keeps_nothing(backend):
    residuals = []

    @mo.op_custom_gradient
    def f(x):
        residual = mo.op_exp(x)
        residuals.append(weakref.ref(residual))
        return residual * 1, lambda u: u * residual

    output = f(mo.op_convert_to_tensor(np.ones(1000, np.float32)))
    assert output is not None
    assert residuals[0]() is None


@construct("residuals are visible to saved-tensor hooks", only="torch")
def test_saved_tensor_hooks():
    torch = pytest.importorskip("torch")
    with mo.use_backend("torch"):
        packed = []
        pack = lambda t: packed.append(t.shape) or t.numpy().copy()
        unpack = lambda a: torch.from_numpy(a)
        x = torch.full((7,), 0.5, requires_grad=True, device="cpu")
        with torch.autograd.graph.saved_tensors_hooks(lambda t: pack(t.detach()), unpack):
            y = log1pexp(x)
        assert (7,) in packed
        (g,) = torch.autograd.grad(y.sum(), x)
        np.testing.assert_allclose(g.numpy(), sigmoid(np.full(7, 0.5)), rtol=1e-6)


@construct("in-place changes of residuals are detected", only="torch")
def test_in_place():
    torch = pytest.importorskip("torch")
    kept = []

    @mo.op_custom_gradient
    def f(x):
        residual = mo.op_exp(x)
        kept.append(residual)
        return residual * 2, lambda u: u * residual

    with mo.use_backend("torch"):
        x = torch.ones(3, requires_grad=True)
        y = f(x)
        with torch.no_grad():
            kept[0].zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


@construct("two threads at once")
def test_threads(backend):
    """Each thread selects its backend itself, and sees its own gradients."""
    failures = []

    def work(seed):
        try:
            with mo.use_backend(backend):
                for k in range(50):
                    x = float(seed * 100 + k)
                    assert float(mo.grad(tenfold)(x)) == 10 * x
                    assert float(mo.jvp(tenfold, (x,), (1.0,))[1]) == 10 * x
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("within", ["grad of jit", "jit of grad", "vmap of grad"])
def test_one_of_an_intermediate_inside_another_is_compiled(backend, within):
    @mo.op_custom_gradient
    def inner(a):
        return a * 1.0, lambda upstream: upstream * 3.0

    @mo.op_custom_gradient
    def outer(a):
        return mo.op_sin(inner(mo.op_tanh(a))), lambda upstream: 5.0 * a * upstream

    x = mo.op_convert_to_tensor(2.0)
    if within == "vmap of grad":
        found = mo.vmap(mo.grad(lambda x: outer(x) + outer(2 * x)))(x[None])[0]
    else:
        compiled = mo.jit(lambda x: outer(x) + outer(2 * x))
        found = mo.grad(compiled)(x) if within == "grad of jit" else mo.jit(mo.grad(compiled))(x)
    assert float(found) == 50.0


def sine_by_pullback(x):
    y, pullback = mo.vjp(mo.op_sin, x)
    return y, lambda upstream: pullback(upstream)


def test_a_rule_may_be_a_pullback_that_the_function_made(backend):
    """NumPy gave zeros: what the pullback begins at had become the output of the function."""
    x = np.array([0.5, -1.0, 2.0], np.float32)
    total = lambda x: mo.op_sum(mo.op_custom_gradient(sine_by_pullback)(x))
    np.testing.assert_allclose(mo.op_convert_to_numpy(mo.grad(total)(x)), np.cos(x), rtol=1e-5)


def test_such_a_rule_has_a_derivative_under_each_transform(backend):
    """PyTorch gave zeros: the graph that a pullback goes back through does not know what takes its tensors' places."""
    x = np.array([0.5, -1.0, 2.0], np.float32)
    sine = mo.op_custom_gradient(sine_by_pullback)
    total = lambda x: mo.op_sum(sine(x))
    for found, expected in [
        (mo.hvp(total, (x,), (x,)), -np.sin(x) * x),
        (mo.grad(lambda x: mo.op_sum(mo.grad(total)(x)))(x), -np.sin(x)),
        (mo.hessian(total)(x), np.diag(-np.sin(x))),
        (mo.vmap(mo.grad(sine))(x), np.cos(x)),
        (mo.vmap(mo.grad(mo.grad(sine)))(x), -np.sin(x)),
        (mo.jvp(sine, (x,), (x,))[1], np.cos(x) * x),
    ]:
        np.testing.assert_allclose(mo.op_convert_to_numpy(found), expected, rtol=1e-5, atol=1e-6)
