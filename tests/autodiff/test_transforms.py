"""The contract of the transforms: pytrees, argnums, aux, nesting in any order, errors that say what to do."""

from __future__ import annotations

import inspect
import threading
from collections import namedtuple

import numpy as np
import pytest

import multiop as mo
from multiop import errors

pytestmark = pytest.mark.tier("quick")  # the contract

construct = pytest.mark.construct
X = np.array([0.5, -1.0, 2.0], np.float32)
A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)
Point = namedtuple("Point", "x y")


def cubes(x):
    return mo.op_sum(x * x * x)


# grad and value_and_grad


@construct("grad")
def test_grad(backend, numpy):
    np.testing.assert_allclose(numpy(mo.grad(cubes)(mo.op_convert_to_tensor(X))), 3 * X**2)
    np.testing.assert_allclose(numpy(mo.grad(cubes)(X)), 3 * X**2)
    assert float(mo.grad(lambda x: x * x)(3.0)) == 6.0


@construct("value_and_grad")
def test_value_and_grad(backend, numpy):
    value, gradient = mo.value_and_grad(cubes)(X)
    np.testing.assert_allclose(float(value), (X**3).sum())
    np.testing.assert_allclose(numpy(gradient), 3 * X**2)


@construct("grad: argnums")
@pytest.mark.parametrize(
    ("argnums", "expected"),
    [
        (0, 12.0),
        (1, 15.0),
        (-1, 20.0),
        ((0,), (12.0,)),
        ([2, 0], (20.0, 12.0)),
        ((0, 1, -1), (12.0, 15.0, 20.0)),
        ((), ()),
    ],
)
def test_argnums(backend, argnums, expected):
    found = mo.grad(lambda x, y, z: x * y * z, argnums)(5.0, 4.0, 3.0)
    assert (tuple(map(float, found)) if isinstance(found, tuple) else float(found)) == expected


@construct("grad: keyword arguments and static arguments")
def test_keyword_arguments(backend):
    f = lambda x, kind, *, scale=1.0: x * x * scale if kind == "square" else x
    assert float(mo.grad(f)(3.0, "square", scale=10.0)) == 60.0
    assert float(mo.grad(f)(3.0, kind="square")) == 6.0


@construct("grad: pytrees")
def test_grad_pytrees(backend, numpy):
    params = {"layers": [(X, 2.0), Point(3.0, np.array([4.0], np.float32))], "none": None}

    def loss(p):
        (w, b), point = p["layers"]
        assert p["none"] is None
        return mo.op_sum(w * w) * b + point.x * mo.op_sum(point.y)

    gradient = mo.grad(loss)(params)
    assert set(gradient) == {"layers", "none"}
    assert gradient["none"] is None
    (gw, gb), point = gradient["layers"]
    assert isinstance(point, Point)
    np.testing.assert_allclose(numpy(gw), 4 * X)
    np.testing.assert_allclose(float(gb), (X**2).sum())
    assert float(point.x) == 4.0
    np.testing.assert_allclose(numpy(point.y), [3.0])


@construct("grad: has_aux")
def test_aux(backend, numpy):
    def f(x):
        return mo.op_sum(x * x), {
            "square": x * x,
            "name": "f",
            "n": 3,
            "none": None,
            "index": mo.op_cast(x, "int32")[2],
        }

    gradient, aux = mo.grad(f, has_aux=True)(X)
    np.testing.assert_allclose(numpy(gradient), 2 * X)
    np.testing.assert_allclose(numpy(aux["square"]), X**2)
    assert (aux["name"], aux["n"], aux["none"], int(aux["index"])) == ("f", 3, None, 2)
    (value, aux), gradient = mo.value_and_grad(f, has_aux=True)(X)
    np.testing.assert_allclose(float(value), (X**2).sum())
    assert aux["name"] == "f"
    # aux may be a bare tensor, and is a plain tensor outside
    gradient, aux = mo.grad(lambda x: (x * x, x * 10), has_aux=True)(2.0)
    assert (float(gradient), float(aux + 1)) == (4.0, 21.0)


@construct("grad: the aux of an inner transform is differentiable")
def test_aux_is_differentiable(backend):
    def f(x):
        _, aux = mo.grad(lambda y: (y * y, y * x), has_aux=True)(x)
        return aux

    assert float(mo.grad(f)(3.0)) == 6.0


@construct("grad: zeros for what the output does not depend on")
def test_unconnected(backend, numpy):
    gx, gy = mo.grad(lambda x, y: mo.op_sum(x), (0, 1))(X, A)
    np.testing.assert_array_equal(numpy(gx), [1, 1, 1])
    np.testing.assert_array_equal(numpy(gy), np.zeros_like(A))
    np.testing.assert_array_equal(numpy(mo.grad(lambda x: mo.op_convert_to_tensor(5.0))(X)), [0, 0, 0])
    assert float(mo.grad(lambda x: 5.0)(2.0)) == 0.0


@pytest.mark.usefixtures("x64")
@construct("grad: structure and dtypes of the arguments")
def test_dtypes(backend):
    p = {d: mo.op_cast(mo.op_convert_to_tensor(X), d) for d in ("float16", "bfloat16", "float32", "float64")}
    gradient = mo.grad(lambda p: sum(mo.op_cast(mo.op_sum(v * v), "float32") for v in p.values()))(p)
    assert {k: mo.op_dtype(g) for k, g in gradient.items()} == {k: k for k in p}


@construct("grad: empty tensors and empty pytrees")
def test_empty(backend, numpy):
    assert numpy(mo.grad(cubes)(np.zeros((0, 2), np.float32))).shape == (0, 2)
    assert mo.grad(lambda p: mo.op_convert_to_tensor(1.0))({}) == {}


@construct("grad: NaN and infinity propagate")
def test_nan(backend, numpy):
    x = np.array([np.nan, np.inf, 1.0], np.float32)
    np.testing.assert_array_equal(numpy(mo.grad(cubes)(x)), [np.nan, np.inf, 3.0])


@construct("grad: does not disturb the caller's tensors")
def test_no_side_effect(backend, numpy):
    x = mo.op_convert_to_tensor(X)
    mo.grad(cubes)(x)
    assert not getattr(x, "requires_grad", False)
    np.testing.assert_array_equal(numpy(x), X)


@construct("grad: metadata of the function is kept")
def test_metadata(backend):
    def f(x, y=1.0):
        """Multiply."""
        return x * y

    for transform in (mo.grad, mo.value_and_grad, mo.jacrev, mo.jacfwd, mo.hessian, mo.vmap, mo.jit, mo.checkpoint):
        assert transform(f).__name__ == "f"
        assert transform(f).__doc__ == "Multiply."
        assert inspect.signature(transform(f)) == inspect.signature(f)


@construct("grad of a non-scalar, complex or integer output", error=True)
@pytest.mark.parametrize(
    ("fun", "error", "message"),
    [
        (
            lambda x: x * x,
            errors.ArgumentError,
            r"fun must return a scalar, it returned float32\[3\].*op_sum.*vjp.*jacrev",
        ),
        (lambda x: mo.op_sum(x)[None], errors.ArgumentError, r"float32\[1\]"),
        (
            lambda x: mo.op_multiply(mo.op_sum(x), 1j),
            errors.DTypeError,
            "real scalar.*complex64.*real or imaginary part.*jvp.*vjp",
        ),
        (lambda x: mo.op_cast(mo.op_sum(x), "int32"), errors.DTypeError, "int32.*no derivative.*has_aux"),
        (lambda x: (mo.op_sum(x), x), errors.ArgumentTypeError, "one scalar tensor.*has_aux=True"),
        (lambda x: {"loss": mo.op_sum(x)}, errors.ArgumentTypeError, "one scalar tensor"),
        (lambda x: None, errors.ArgumentTypeError, "returned None.*forgotten return"),
        (lambda x: "loss", errors.ArgumentTypeError, "must return tensors.*'loss'"),
    ],
)
@pytest.mark.parametrize("name", ["grad", "value_and_grad"])
def test_bad_outputs(backend, fun, error, message, name):
    with pytest.raises(error, match=rf"(?s)^{name}: .*{message}"):
        getattr(mo, name)(fun)(X)


@construct("integer inputs of grad, vjp, jvp, jacobians", error=True)
@pytest.mark.parametrize("x", [3, True, np.array([1, 2]), np.array([True])])
def test_integer_inputs(backend, x):
    f = lambda x: mo.op_sum(mo.op_cast(x, "float32"))
    calls = {
        "grad": lambda: mo.grad(f)(x),
        "value_and_grad": lambda: mo.value_and_grad(f)(x),
        "vjp": lambda: mo.vjp(f, x),
        "jvp": lambda: mo.jvp(f, (x,), (x,)),
        "op_jvp": lambda: mo.op_jvp(f, (x,), (x,)),
        "jacrev": lambda: mo.jacrev(f)(x),
        "jacfwd": lambda: mo.jacfwd(f)(x),
        "hvp": lambda: mo.hvp(f, (x,), (x,)),
        "hessian": lambda: mo.hessian(f)(x),
    }
    for name, call in calls.items():
        with pytest.raises(errors.DTypeError, match=rf"^{name}: argument 0 \(x\).*only float and complex"):
            call()


@construct("a leaf is named in the error", error=True)
def test_leaf_is_named(backend):
    with pytest.raises(errors.DTypeError, match=r"argument 1 \(params\)\['w'\]\[1\] has dtype int32"):
        mo.grad(lambda x, params: x, argnums=(0, 1))(1.0, {"w": [1.0, np.array([1, 2], np.int32)]})
    with pytest.raises(errors.ArgumentTypeError, match=r"argument 0 \(p\)\['kind'\] must be a tensor.*'relu'"):
        mo.grad(lambda p: p)({"kind": "relu"})


@construct("argnums that name no argument", error=True)
@pytest.mark.parametrize(
    ("argnums", "error", "message"),
    [
        (2, errors.ArgumentError, "argnums 2 is out of range for a call with 2 positional"),
        (-3, errors.ArgumentError, "argnums -3 is out of range"),
        ((0, 0), errors.ArgumentError, "names an argument twice"),
        ((0, -2), errors.ArgumentError, "names an argument twice"),
        ("x", errors.ArgumentTypeError, "argnums must be an int or a sequence of ints, got 'x'"),
        (0.0, errors.ArgumentTypeError, "argnums must be"),
        (np.ones(2), errors.ArgumentTypeError, r"got float64\[2\]; the result takes the arguments"),
        (True, errors.ArgumentTypeError, "argnums must be"),
    ],
)
def test_bad_argnums(backend, argnums, error, message):
    for name in ("grad", "value_and_grad", "jacrev", "jacfwd", "hessian"):
        with pytest.raises(error, match=f"{message}"):
            getattr(mo, name)(lambda x, y: x * y, argnums)(1.0, 2.0)


# vjp and jvp


@construct("vjp")
def test_vjp(backend, numpy):
    def f(x, p):
        return {"ax": mo.op_matmul(p["a"], x), "pair": (x * 2, mo.op_cast(x, "int32"), None)}

    output, pullback = mo.vjp(f, X, {"a": A})
    np.testing.assert_allclose(numpy(output["ax"]), A @ X)
    assert mo.op_dtype(output["pair"][1]) == "int32"
    u, v = np.array([1.0, -1.0], np.float32), np.array([1.0, 2.0, 3.0], np.float32)
    for _ in range(2):  # it may be called more than once
        gx, gp = pullback({"ax": u, "pair": (v, None, None)})
        np.testing.assert_allclose(numpy(gx), A.T @ u + 2 * v)
        np.testing.assert_allclose(numpy(gp["a"]), np.outer(u, X))
    gx, gp = pullback({"ax": None, "pair": (v, None, None)})
    np.testing.assert_allclose(numpy(gx), 2 * v)
    np.testing.assert_array_equal(numpy(gp["a"]), np.zeros_like(A))


@construct("vjp: has_aux and Python numbers")
def test_vjp_aux(backend):
    output, pullback, aux = mo.vjp(lambda x, y: (x * y, {"x": x, "tag": "t"}), 2.0, 5.0, has_aux=True)
    assert (float(output), float(aux["x"]), aux["tag"]) == (10.0, 2.0, "t")
    assert [float(g) for g in pullback(10.0)] == [50.0, 20.0]


@construct("vjp: the pullback is differentiable, in the cotangent and in the primal")
def test_pullback_is_differentiable(backend):
    slope = lambda x, u: mo.vjp(lambda y: y * y * y, x)[1](u)[0]
    gx, gu = mo.grad(slope, (0, 1))(2.0, 5.0)  # slope = 3 x² u
    assert (float(gx), float(gu)) == (60.0, 12.0)


@construct("jvp")
def test_jvp(backend, numpy):
    t = np.array([1.0, 2.0, -1.0], np.float32)
    output, tangent = mo.jvp(
        lambda x, p: {"ax": mo.op_matmul(p["a"], x), "k": mo.op_cast(x, "int32")}, (X, {"a": A}), (t, {"a": A})
    )
    np.testing.assert_allclose(numpy(output["ax"]), A @ X)
    np.testing.assert_allclose(numpy(tangent["ax"]), A @ t + A @ X)
    assert tangent["k"] is None
    _, tangent = mo.jvp(lambda x, y: x * y, [2.0, 5.0], [None, 3.0])
    assert float(tangent) == 6.0
    output, tangent, aux = mo.jvp(lambda x: (x * x, "aux"), (3.0,), (1.0,), has_aux=True)
    assert (float(output), float(tangent), aux) == (9.0, 6.0, "aux")
    assert [float(y) for y in mo.op_jvp(lambda x: x * x, (3.0,), (1.0,))] == [9.0, 6.0]


@construct("jvp")
def test_jvp_of_nothing(backend, numpy):
    """The tangent of a constant is zero, also where a pytree of primals is empty."""
    for primals in ((), ({},)):
        y, t = mo.jvp(lambda *_: mo.op_ones(2), primals, primals)
        np.testing.assert_array_equal(numpy(y), [1, 1])
        np.testing.assert_array_equal(numpy(t), [0, 0])


@construct("jvp: an output that does not depend on the primals has the tangent zero")
def test_jvp_unconnected(backend, numpy):
    constant = mo.op_convert_to_tensor(X)
    output, tangent = mo.jvp(lambda x: constant, (1.0,), (1.0,))
    np.testing.assert_array_equal(numpy(output), X)
    np.testing.assert_array_equal(numpy(tangent), [0, 0, 0])


@pytest.mark.usefixtures("x64")
@construct("jvp and vjp are transposes of each other")
def test_duality(backend):
    rng = np.random.default_rng(1)
    x, t, u = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(3, 4))
    f = lambda x: mo.op_transpose(mo.op_sin(x) * mo.op_exp(x))
    _, tangent = mo.jvp(f, (x,), (t,))
    (gradient,) = mo.vjp(f, x)[1](u)
    np.testing.assert_allclose(
        np.vdot(u, mo.op_convert_to_numpy(tangent)), np.vdot(t, mo.op_convert_to_numpy(gradient)), rtol=1e-12
    )


@construct("tangents and cotangents that do not fit", error=True)
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mo.vjp(lambda x: x, X)[1](X[:2]), errors.ArgumentError, r"vjp: cotangent 0 has shape \(2,\).*\(3,\)"),
        (lambda: mo.vjp(lambda x: (x, x), X)[1](X), errors.ArgumentError, "vjp: .*structure of the output"),
        (lambda: mo.vjp(lambda x: x, X)[1]((X,)), errors.ArgumentError, "vjp: .*structure of the output"),
        (lambda: mo.vjp(lambda x: (x, x), X)[1]((X, X, X)), errors.ArgumentError, "vjp: .*structure of the output"),
        (lambda: mo.vjp(lambda x: x, X)[1]("u"), errors.ArgumentTypeError, "vjp: cotangent 0"),
        (
            lambda: mo.vjp(lambda x: x, X)[1](mo.op_cast(mo.op_convert_to_tensor(X), "float16")),
            errors.DTypeError,
            "vjp: cotangent 0 has dtype float16.*float32",
        ),
        (lambda: mo.vjp(lambda x: x, X)[1](X * 1j), errors.DTypeError, "vjp: cotangent 0.*complex"),
        (lambda: mo.jvp(lambda x: x, (X,), (X[:2],)), errors.ArgumentError, r"jvp: tangent 0 has shape \(2,\).*\(3,\)"),
        (lambda: mo.jvp(lambda x: x, (X,), (X, X)), errors.ArgumentError, "jvp: 2 tangents were given for 1 primals"),
        (lambda: mo.jvp(lambda x: x, X, X), errors.ArgumentTypeError, "jvp: primals must be a tuple or list"),
        (lambda: mo.jvp(lambda x: x, (X,), X), errors.ArgumentTypeError, "jvp: tangents must be a tuple or list"),
        (
            lambda: mo.jvp(lambda p: p["a"], ({"a": X},), ({"b": X},)),
            errors.ArgumentError,
            "jvp: tangent 0 must have the structure",
        ),
        (lambda: mo.hvp(cubes, (X,), (X[:2],)), errors.ArgumentError, r"hvp: tangent 0 has shape \(2,\)"),
        (lambda: mo.hvp(cubes, X, X), errors.ArgumentTypeError, "hvp: primals must be a tuple or list"),
    ],
)
def test_bad_tangents(backend, call, error, message):
    with pytest.raises(error, match=f"(?s)^{message}"):
        call()


# Jacobians


@pytest.mark.parametrize("name", [pytest.param(n, marks=construct(n)) for n in ("jacrev", "jacfwd")])
def test_jacobian(backend, numpy, name):
    jacobian = getattr(mo, name)
    np.testing.assert_allclose(numpy(jacobian(lambda x: mo.op_matmul(A, x))(X)), A)
    np.testing.assert_allclose(numpy(jacobian(cubes)(X)), 3 * X**2)
    found = jacobian(lambda a: mo.op_matmul(a, X))(A)  # (2, 2, 3): δ_ij x_k
    np.testing.assert_allclose(numpy(found), np.einsum("ij,k->ijk", np.eye(2), X))
    assert float(jacobian(lambda x: x * x)(3.0)) == 6.0
    np.testing.assert_allclose(numpy(jacobian(lambda x: mo.op_multiply(x, X))(3.0)), X)


@construct("jacrev and jacfwd: pytrees, argnums, aux")
@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobian_pytrees(backend, numpy, name):
    def f(p, y):
        return {"s": p["a"] * y, "t": [mo.op_sum(p["a"]), None]}, ("aux", y * 2)

    jacobian, aux = getattr(mo, name)(f, argnums=(0, 1), has_aux=True)({"a": X}, 3.0)
    (da, dy), (ta, ty) = jacobian["s"], jacobian["t"][0]
    np.testing.assert_allclose(numpy(da["a"]), 3 * np.eye(3))
    np.testing.assert_allclose(numpy(dy), X)
    np.testing.assert_allclose(numpy(ta["a"]), [1, 1, 1])
    assert float(ty) == 0.0
    assert jacobian["t"][1] is None
    assert (aux[0], float(aux[1])) == ("aux", 6.0)


@construct("jacrev and jacfwd: zero-size inputs and outputs")
@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobian_empty(backend, numpy, name):
    jacobian = getattr(mo, name)
    empty = np.zeros((0, 2), np.float32)
    assert numpy(jacobian(lambda x: x * x)(empty)).shape == (0, 2, 0, 2)
    assert numpy(jacobian(lambda x: mo.op_multiply(mo.op_sum(x), X))(empty)).shape == (3, 0, 2)
    assert numpy(jacobian(lambda x: mo.op_multiply(mo.op_sum(x), empty))(X)).shape == (0, 2, 3)


@construct("jacrev and jacfwd: complex outputs of real inputs")
@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobian_complex_output(backend, numpy, name):
    """d/dx of (2+3i) x + i x² is 2+3i + 2i x."""
    f = lambda x: mo.op_cast(x, "complex64") * (2 + 3j) + mo.op_cast(x * x, "complex64") * 1j
    np.testing.assert_allclose(numpy(getattr(mo, name)(f)(X)), np.diag(2 + 3j + 2j * X), rtol=1e-6)


@construct("jacrev and jacfwd: real outputs of complex inputs")
@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobian_complex_input(backend, numpy, name):
    """|z|² has the gradient 2 z in the conjugate convention, Re z has 1, Im z has i."""
    z = np.array([3 + 4j, 1 - 2j], np.complex64)
    f = lambda z: mo.op_stack([mo.op_sum(mo.op_real(z * mo.op_conj(z))), mo.op_real(z)[0], mo.op_imag(z)[1]])
    np.testing.assert_allclose(numpy(getattr(mo, name)(f)(z)), np.stack([2 * z, [1, 0], [0, 1j]]), rtol=1e-6)


@construct("Jacobians from complex to complex, and of integers", error=True)
@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobian_refused(backend, name):
    z = np.array([3 + 4j, 1 - 2j], np.complex64)
    with pytest.raises(errors.DTypeError, match=rf"(?s)^{name}: .*no single Jacobian.*real.*imaginary.*jvp"):
        getattr(mo, name)(lambda z: z * z)(z)
    with pytest.raises(errors.DTypeError, match=rf"(?s)^{name}: .*int32.*no derivative"):
        getattr(mo, name)(lambda x: mo.op_cast(x, "int32"))(X)


@pytest.mark.usefixtures("x64")
@construct("hessian")
def test_hessian(backend):
    rng = np.random.default_rng(2)
    x = rng.normal(size=4)
    f = lambda x: mo.op_sum(mo.op_sin(x)) * mo.op_exp(x[0])
    s, c, e = np.sin(x), np.cos(x), np.exp(x[0])
    first = np.eye(4)[0]
    expected = -np.diag(s) * e + np.outer(c, first) * e + np.outer(first, c) * e + s.sum() * e * np.outer(first, first)
    np.testing.assert_allclose(mo.op_convert_to_numpy(mo.hessian(f)(x)), expected, rtol=1e-10, atol=1e-12)


@construct("hessian: pytrees, argnums, aux")
def test_hessian_pytrees(backend, numpy):
    f = lambda p, y: (mo.op_sum(p["a"] * p["a"]) * y * y, "aux")
    h, aux = mo.hessian(f, argnums=(0, 1), has_aux=True)({"a": X}, 3.0)
    assert aux == "aux"
    np.testing.assert_allclose(numpy(h[0]["a"][0]["a"]), 18 * np.eye(3))
    np.testing.assert_allclose(numpy(h[0]["a"][1]), 12 * X)
    np.testing.assert_allclose(numpy(h[1][0]["a"]), 12 * X)
    np.testing.assert_allclose(float(h[1][1]), 2 * (X**2).sum())


@construct("hessian of complex inputs", error=True)
def test_hessian_complex(backend):
    with pytest.raises(errors.DTypeError, match=r"(?s)^hessian: .*complex"):
        mo.hessian(lambda z: mo.op_sum(mo.op_real(z * mo.op_conj(z))))(np.array([1 + 1j], np.complex64))


@construct("hvp")
def test_hvp(backend, numpy):
    t = np.array([1.0, 2.0, -1.0], np.float32)
    np.testing.assert_allclose(numpy(mo.hvp(cubes, (X,), (t,))), 6 * X * t)
    f = lambda p, y: mo.op_sum(p["a"] * p["a"]) * y * y
    gp, gy = mo.hvp(f, ({"a": X}, 3.0), ({"a": t}, 1.0))
    np.testing.assert_allclose(numpy(gp["a"]), 18 * t + 12 * X)
    np.testing.assert_allclose(float(gy), 12 * X @ t + 2 * (X**2).sum(), rtol=1e-6)
    np.testing.assert_array_equal(numpy(mo.hvp(mo.op_sum, (X,), (t,))), [0, 0, 0])


@construct("hvp and hessian of a rule whose second derivative is not symmetric")
def test_asymmetric_second_derivative(backend):
    @mo.op_custom_gradient
    def product(x, y):
        return x * y, lambda upstream: (upstream * y, upstream * 0 * x)

    def later(x, y):  # not the last operation
        return product(x * 1, y) * 1

    for f in (product, later):
        gx, gy = mo.hvp(f, (2.0, 3.0), (1.0, 10.0))
        assert (float(gx), float(gy)) == (10.0, 0.0)  # the product with the transposed matrix is (0, 1)
        hessian = mo.hessian(f, (0, 1))(2.0, 3.0)
        assert [[float(h) for h in row] for row in hessian] == [[0.0, 1.0], [0.0, 0.0]]


@construct("derivatives of hvp and hessian, by what they close over too")
def test_derivatives_of_second_derivatives(backend):
    cubic = lambda w, x: w * x * x * x
    hvp = lambda w, x, v: mo.hvp(lambda x: cubic(w, x), (x,), (v,))
    assert [float(g) for g in mo.grad(hvp, (0, 1, 2))(5.0, 2.0, 3.0)] == [36.0, 90.0, 60.0]
    hessian = lambda w, x: mo.hessian(lambda x: cubic(w, x))(x)
    assert [float(g) for g in mo.grad(hessian, (0, 1))(5.0, 2.0)] == [12.0, 30.0]


# vmap


@construct("vmap: in_axes and out_axes")
@pytest.mark.parametrize("in_axes", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out_axes", [0, 1, -1])
def test_vmap_axes(backend, numpy, in_axes, out_axes):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    found = mo.vmap(lambda x: x * 2 + 1, in_axes, out_axes)(x)
    expected = np.stack([2 * x.take(i, in_axes) + 1 for i in range(x.shape[in_axes])], out_axes)
    np.testing.assert_array_equal(numpy(found), expected)


@construct("vmap: pytrees and prefixes of them")
def test_vmap_pytrees(backend, numpy):
    def f(p, y, scale):
        return {"s": p["a"] * y * scale, "t": (p["b"], None)}

    a, b, y = A, np.arange(6, dtype=np.float32).reshape(3, 2), np.array([1.0, 2.0], np.float32)
    found = mo.vmap(f, in_axes=({"a": 0, "b": 1}, 0, None), out_axes={"s": 1, "t": 0})({"a": a, "b": b}, y, 10.0)
    np.testing.assert_array_equal(numpy(found["s"]), (a * y[:, None] * 10).T)
    np.testing.assert_array_equal(numpy(found["t"][0]), b.T)
    assert found["t"][1] is None
    found = mo.vmap(f, in_axes=(0, 0, None))({"a": a, "b": b.T}, y, 10.0)  # an int for a whole pytree
    np.testing.assert_array_equal(numpy(found["t"][0]), b.T)
    found = mo.vmap(lambda x, *, scale: x * scale)(X, scale=X)  # keywords are mapped over their first axis
    np.testing.assert_array_equal(numpy(found), X * X)


@construct("vmap: axis_size, constants, and outputs that are not mapped")
def test_vmap_constant(backend, numpy):
    np.testing.assert_array_equal(numpy(mo.vmap(lambda x: x * 2, in_axes=None, axis_size=4)(3.0)), [6, 6, 6, 6])
    np.testing.assert_array_equal(numpy(mo.vmap(lambda x: mo.op_convert_to_tensor(7.0))(X)), [7, 7, 7])
    np.testing.assert_array_equal(numpy(mo.vmap(lambda x: 7.0)(X)), [7, 7, 7])
    index = mo.vmap(lambda k: k + 1)(np.array([1, 2], np.int32))
    assert mo.op_dtype(index) == "int32"
    np.testing.assert_array_equal(numpy(index), [2, 3])


@construct("vmap: nested, and against a loop")
def test_vmap_nested(backend, numpy):
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(4, dtype=np.float32)
    outer = mo.vmap(mo.vmap(mo.vmap(lambda a, b: a * b + a, (None, 0)), (0, None)), (0, None))
    np.testing.assert_array_equal(numpy(outer(x, y)), x[:, :, None] * y + x[:, :, None])


@construct("vmap of gradients, gradients of vmap")
def test_vmap_grad(backend, numpy):
    x = np.stack([X, 2 * X])
    np.testing.assert_allclose(numpy(mo.vmap(mo.grad(cubes))(x)), 3 * x**2)
    np.testing.assert_allclose(numpy(mo.grad(lambda x: mo.op_sum(mo.vmap(cubes)(x)))(x)), 3 * x**2)
    np.testing.assert_allclose(numpy(mo.vmap(mo.hessian(cubes))(x)), np.stack([np.diag(6 * row) for row in x]))
    np.testing.assert_allclose(numpy(mo.vmap(mo.jacfwd(lambda x: x * x))(x)), np.stack([np.diag(2 * row) for row in x]))
    push = lambda x: mo.jvp(mo.vmap(cubes), (x,), (mo.op_ones_like(x),))[1]
    np.testing.assert_allclose(numpy(push(mo.op_convert_to_tensor(x))), (3 * x**2).sum(1))
    values, gradients = mo.vmap(mo.value_and_grad(cubes))(x)
    np.testing.assert_allclose(numpy(values), (x**3).sum(1), rtol=1e-6)
    np.testing.assert_allclose(numpy(gradients), 3 * x**2)


@construct("vmap: axes that do not fit", error=True)
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mo.vmap(lambda x: x, 1)(X), errors.ArgumentError, r"argument 0 \(x\): in_axes 1 is out of range"),
        (lambda: mo.vmap(lambda x: x, -2)(X), errors.ArgumentError, r"argument 0 \(x\): in_axes -2 is out of range"),
        (lambda: mo.vmap(lambda x: x)(3.0), errors.ArgumentTypeError, r"argument 0 \(x\) is mapped over axis 0"),
        (lambda: mo.vmap(lambda x, k: x)(X, "s"), errors.ArgumentTypeError, r"argument 1 \(k\) is mapped.*'s'.*None"),
        (
            lambda: mo.vmap(lambda x, y: x)(X, A),
            errors.ArgumentError,
            r"argument 1 \(y\) has size 2.*argument 0 \(x\) has 3",
        ),
        (lambda: mo.vmap(lambda x, y: x, axis_size=4)(X, X), errors.ArgumentError, "size 3.*axis_size has 4"),
        (lambda: mo.vmap(lambda x: x, (0, 0))(X), errors.ArgumentError, "in_axes has 2 entries for 1 positional"),
        (lambda: mo.vmap(lambda x: x, ({"b": 0},))({"a": X}), errors.ArgumentError, "in_axes does not match"),
        (lambda: mo.vmap(lambda x: x, "0"), errors.ArgumentTypeError, "in_axes must be"),
        (lambda: mo.vmap(lambda x: x, (0.0,))(X), errors.ArgumentTypeError, "in_axes must be an int"),
        (lambda: mo.vmap(lambda x: x, None)(X), errors.ArgumentError, "no argument is mapped"),
        (lambda: mo.vmap(lambda x: x, 0, 1)(X), errors.ArgumentError, "output 0: out_axes 1 is out of range"),
        (lambda: mo.vmap(lambda x: x, 0, None)(X), errors.ArgumentError, "out_axes"),
        (lambda: mo.vmap(lambda x: x, 0, (0, 1))(X), errors.ArgumentError, "out_axes does not match"),
    ],
)
def test_bad_vmap(backend, call, error, message):
    with pytest.raises(error, match=f"(?s)^vmap: .*{message}"):
        call()


# jit


@pytest.mark.traced
@construct("jit: values, pytrees, static values")
@pytest.mark.compiler
def test_jit(backend, numpy):
    traces = []

    @mo.jit
    def f(p, kind, *, scale=2.0):
        traces.append(kind)
        return {"y": p["x"] * scale if kind == "scale" else p["x"], "kind": kind, "none": None}

    x = mo.op_convert_to_tensor(X)
    for _ in range(3):
        out = f({"x": x}, "scale")
        np.testing.assert_array_equal(numpy(out["y"]), 2 * X)
        assert (out["kind"], out["none"]) == ("scale", None)
    np.testing.assert_array_equal(numpy(f({"x": X}, "none")["y"]), X)
    np.testing.assert_array_equal(numpy(f({"x": X}, "scale", scale=10.0)["y"]), 10 * X)
    n = len(traces)
    f({"x": x}, "scale"), f({"x": X}, "none"), f({"x": X}, "scale", scale=10.0)
    assert len(traces) == n  # compiled already


@construct("jit: retraces for another shape, dtype, structure or value")
@pytest.mark.compiler
def test_jit_retraces(backend, numpy):
    f = mo.jit(lambda x, n: [x * n] * (n if isinstance(n, int) else 1))
    assert len(f(X, 2)) == 2
    assert len(f(X, 3)) == 3
    assert len(f(A, 2)) == 2
    np.testing.assert_array_equal(numpy(f(A, 2)[0]), 2 * A)
    assert mo.op_dtype(f(np.array([1, 2], np.int32), 2)[0]) == "int32"
    assert mo.op_dtype(f(X, 2)[0]) == "float32"
    # equal, but not the same value
    g = mo.jit(lambda x, s: x * mo.op_convert_to_tensor(np.copysign(1.0, s).astype(np.float32)))
    assert [float(g(mo.op_convert_to_tensor(1.0), s)) for s in (0.0, -0.0)] == [1.0, -1.0]
    h = mo.jit(lambda x, s: x if s is True else x * 2)
    assert [float(h(mo.op_convert_to_tensor(1.0), s)) for s in (True, 1, 1.0)] == [1.0, 2.0, 2.0]


@pytest.mark.parametrize("reaches", [[], [0], [1], [0, 1]])
def test_jit_of_what_arguments_do_not_reach(backend, numpy, reaches):
    """The gradient of a compiled function is 0 for an argument that its outputs do not depend on."""

    def loss(*xs):
        kept = [x if k in reaches else mo.op_stop_gradient(x) for k, x in enumerate(xs)]
        return mo.op_sum(kept[0] * kept[0]) + 3 * mo.op_sum(kept[1])

    x, y = np.array([1.0, 2.0], "float32"), np.array([5.0], "float32")
    found = mo.grad(mo.jit(loss), (0, 1))(mo.op_convert_to_tensor(x), mo.op_convert_to_tensor(y))
    for k, right in enumerate((2 * x, np.array([3.0]))):
        np.testing.assert_allclose(numpy(found[k]), right if k in reaches else 0 * right, rtol=1e-6)


@pytest.mark.traced
@construct("jit: traced once per signature, and each trace has its own output structure")
@pytest.mark.compiler
def test_jit_traces_once(backend, numpy):
    traces = []

    @mo.jit
    def f(*trees, **named):
        traces.append(1)
        x = trees[0]["a"] if trees and isinstance(trees[0], dict) else [*trees, *named.values()][0]
        if isinstance(x, (tuple, dict)):
            return {"nested": x[0]}
        return {"copies": [x + k for k in range(len(x.shape))], "shape": str(tuple(x.shape)), "none": None}

    def check(out, array):
        assert out["shape"] == str(array.shape) and out["none"] is None
        assert [numpy(y).tolist() for y in out["copies"]] == [(array + k).tolist() for k in range(array.ndim)]

    x, a, scalar = (mo.op_convert_to_tensor(value) for value in (X, A, np.float32(2.0)))
    for _ in range(3):
        for tensor, array in ((x, X), (a, A), (scalar, np.asarray(2.0, np.float32))):
            check(f(tensor), array)
            check(f({"a": tensor, "b": x}), array)
            check(f({"b": x, "a": tensor}), array)  # the order of a dict is nothing
            check(f(value=tensor), array)
    assert len(traces) == 9
    for _ in range(2):  # what looks alike as a pytree is not taken for the same call
        assert list(f((x,), {"value": x})) == ["nested"]
        check(f(x, value=x), X)
        check(f({"a": X, "b": X}), X)  # arrays are tensors
    assert len(traces) == 11


@construct("jit: Python numbers stay weak")
def test_jit_weak(backend):
    f = mo.jit(lambda x, s: mo.op_multiply(x, s))
    x = mo.op_cast(mo.op_convert_to_tensor(X), "bfloat16")
    assert mo.op_dtype(f(x, 2.0)) == mo.op_dtype(mo.op_multiply(x, 2.0)) == "bfloat16"


@construct("jit: static_argnums and static_argnames")
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"static_argnums": 1}, marks=pytest.mark.compiler),
        {"static_argnums": (1, 2)},
        {"static_argnames": "n"},
        {"static_argnames": ["n", "mode"]},
        {"static_argnums": -2},
    ],
    ids=str,
)
def test_jit_statics(backend, numpy, options):
    def f(x, n, mode="a"):
        assert type(n) is tuple
        return x * sum(n) if mode == "a" else x

    g = mo.jit(f, **options)
    np.testing.assert_array_equal(numpy(g(X, (1, 2))), 3 * X)
    np.testing.assert_array_equal(numpy(g(X, n=(1, 3))), 4 * X)
    np.testing.assert_array_equal(numpy(g(X, (1, 2), "b")), X)
    np.testing.assert_array_equal(numpy(g(X, (1, 2), mode="b")), X)


@construct("jit: donate_argnums and donate_argnames")
@pytest.mark.parametrize(
    "options",
    [{"donate_argnums": 0}, {"donate_argnums": (-3,)}, {"donate_argnames": ["state"]}, {"donate_argnames": "state"}],
    ids=str,
)
def test_jit_donates(backend, numpy, options):
    step = mo.jit(lambda state, x, n: {"a": state["a"] + x, "b": (state["b"][0] * n,)}, **options)
    expected_a, expected_b = X + 1, A * 2
    x, state = mo.op_convert_to_tensor(np.float32(1)), {"a": mo.op_convert_to_tensor(X), "b": (mo.op_copy(A),)}
    for call in (lambda state: step(state, x, 2), lambda state: step(state=state, x=x, n=2)):
        for _ in range(2):
            before, state = state, call(state)
            np.testing.assert_array_equal(numpy(state["a"]), expected_a)
            np.testing.assert_array_equal(numpy(state["b"][0]), expected_b)
            expected_a, expected_b = expected_a + 1, expected_b * 2
            if backend == "jax":
                assert before["a"].is_deleted() and before["b"][0].is_deleted()
    assert float(x) == 1.0  # it was not donated
    loss = lambda x: mo.op_sum(step({"a": x * mo.op_convert_to_tensor(X), "b": (A,)}, x, 2)["a"])
    assert float(mo.grad(loss)(1.0)) == X.sum() + X.size


@construct("jit: static arguments that do not fit", error=True)
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mo.jit(lambda x: x, static_argnums=1), errors.ArgumentError, "static_argnums 1 is out of range"),
        (lambda: mo.jit(lambda x: x, static_argnames="y"), errors.ArgumentError, "static_argnames names 'y'"),
        (lambda: mo.jit(lambda x: x, static_argnums="x"), errors.ArgumentTypeError, "static_argnums must be"),
        (lambda: mo.jit(lambda x: x, static_argnames=3), errors.ArgumentTypeError, "static_argnames"),
        (lambda: mo.jit(lambda x: x, donate_argnums=1), errors.ArgumentError, "donate_argnums 1 is out of range"),
        (lambda: mo.jit(lambda x: x, donate_argnames="y"), errors.ArgumentError, "donate_argnames names 'y'"),
        (lambda: mo.jit(lambda x: x, donate_argnums="x"), errors.ArgumentTypeError, "donate_argnums must be"),
        (lambda: mo.jit(lambda x: x, donate_argnames=3), errors.ArgumentTypeError, "donate_argnames"),
        (lambda: mo.jit(lambda x: x, 0, donate_argnums=-1), errors.ArgumentError, "both static and donated"),
        (lambda: mo.jit(lambda x, k: x)(X, {1, 2}), errors.ArgumentTypeError, "hashable"),
        (lambda: mo.jit(lambda x, k: x, static_argnums=1)(X, X), errors.ArgumentTypeError, "hashable"),
    ],
)
def test_bad_jit(backend, call, error, message):
    with pytest.raises(error, match=f"(?s)^jit: .*{message}"):
        call()


@construct("jit: an error in the function is raised, and the next call tries again")
def test_jit_error(backend):
    fail = [True]

    @mo.jit
    def f(x):
        if fail[0]:
            raise KeyError("mine")
        return x * 2

    with pytest.raises(Exception, match="mine"):
        f(mo.op_convert_to_tensor(1.0))
    fail[0] = False
    assert float(f(mo.op_convert_to_tensor(1.0))) == 2.0


@construct("jit: gradients to the third order, in both modes")
def test_jit_gradients(backend, numpy):
    f = mo.jit(lambda x: x * x * x * x)
    orders = [f, mo.grad(f), mo.grad(mo.grad(f)), mo.grad(mo.grad(mo.grad(f)))]
    assert [float(g(mo.op_convert_to_tensor(2.0))) for g in orders] == [16.0, 32.0, 48.0, 48.0]
    assert float(mo.jvp(f, (2.0,), (1.0,))[1]) == 32.0
    assert float(mo.jit(mo.grad(mo.grad(f)))(mo.op_convert_to_tensor(2.0))) == 48.0
    assert float(mo.hvp(f, (2.0,), (1.0,))) == 48.0


@construct("jit: closed-over tensors of an outer transform")
def test_jit_closure(backend):
    def outer(w):
        return mo.jit(lambda x: x * w * w)(mo.op_convert_to_tensor(2.0))

    assert float(mo.grad(outer)(3.0)) == 12.0


@construct("jit: closed-over variables are read at each call, and get gradients")
def test_jit_variable(backend, native):
    if backend == "jax":
        pytest.skip("JAX has no variables")
    weight = native.variable(3.0)
    f = mo.jit(lambda x: x * x * weight)
    for value in (3.0, 5.0):
        weight.assign(value) if backend == "tensorflow" else weight.data.fill_(value)
        with mo.GradientTape() as tape:
            x = tape.watch(mo.op_convert_to_tensor(2.0))
            y = f(x)
        assert float(mo.op_convert_to_numpy(y)) == 4 * value
        assert [float(g) for g in tape.gradient(y, [x, weight])] == [4 * value, 4.0]


@construct("jit: two threads at once")
def test_jit_threads(backend):
    f = mo.jit(lambda x, n: x * n)
    failures = []

    def work(seed):
        try:
            with mo.use_backend(backend):
                for k in range(20):
                    x = mo.op_convert_to_tensor(np.full(1 + k % 3, seed, np.float32))
                    assert mo.op_convert_to_numpy(f(x, 1 + k % 4)).tolist() == [seed * (1 + k % 4)] * (1 + k % 3)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(float(seed),)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# checkpoint


@construct("checkpoint: values and gradients")
def test_checkpoint(backend, numpy):
    f = mo.checkpoint(lambda p, x, power: {"y": p["w"] * x**power, "tag": "t"})
    loss = lambda p, x: mo.op_sum(f(p, x, 2)["y"])
    gp, gx = mo.grad(loss, (0, 1))({"w": X}, 3.0)
    np.testing.assert_allclose(numpy(gp["w"]), np.full(3, 9.0))
    np.testing.assert_allclose(float(gx), 6 * X.sum())
    out = f({"w": X}, np.array([1, 2, 3], np.int32), 1)
    assert out["tag"] == "t"
    seen, numbers = [], [3, 4]
    g = mo.checkpoint(lambda x, n: seen.append(n) or x * sum(n), static_argnums=-1)
    assert float(mo.grad(g)(2.0, numbers)) == 7.0
    assert all(n is numbers for n in seen)  # what is static is passed as it is


@construct("checkpoint: second order and forward mode")
def test_checkpoint_orders(backend):
    f = mo.checkpoint(lambda x: mo.op_exp(x * x))
    e = np.exp(0.25)
    np.testing.assert_allclose(float(mo.grad(f)(0.5)), e, rtol=1e-6)
    np.testing.assert_allclose(float(mo.grad(mo.grad(f))(0.5)), 3 * e, rtol=1e-6)
    np.testing.assert_allclose(float(mo.jvp(f, (0.5,), (1.0,))[1]), e, rtol=1e-6)
    np.testing.assert_allclose(float(mo.jit(mo.grad(f))(mo.op_convert_to_tensor(0.5))), e, rtol=1e-6)


@construct("checkpoint: runs the function again in the backward pass")
def test_checkpoint_recomputes(backend):
    calls = []

    @mo.checkpoint
    def f(x):
        calls.append(1)
        return mo.op_exp(mo.op_sin(x))

    assert float(mo.grad(f)(0.0)) == 1.0
    if backend != "jax":  # JAX traces once and runs the trace again
        assert len(calls) == 2


@construct("checkpoint: closed-over values and variables")
def test_checkpoint_closure(backend, beside):
    loss = lambda w: mo.checkpoint(lambda x: x * w * w)(mo.op_convert_to_tensor(2.0))
    assert float(mo.grad(loss)(3.0)) == 12.0
    if backend not in ("jax", "numpy"):
        weight = beside.variable(3.0)
        with mo.GradientTape() as tape:
            y = mo.checkpoint(lambda x: x * weight * weight)(mo.op_convert_to_tensor(2.0))
        assert float(tape.gradient(y, weight)) == 12.0


# x -> x * x**2 at 2, each as a checkpoint whose inputs come from each other
DEPENDENT = {
    "an argument of another": lambda f, x: f(lambda p, q: p * q)(x, x * x),
    "in the other order": lambda f, x: f(lambda p, q: p * q)(x * x, x),
    "an argument of what is closed over": lambda f, x: f(lambda p: p * x)(x * x),
    "an argument that what is closed over comes from": lambda f, x: (lambda y: f(lambda p: p * y)(x))(x * x),
    "within another": lambda f, x: f(lambda r: f(lambda p, q: p * q)(r, r * r))(x),
    "a chain": lambda f, x: f(lambda p, q: p * q)(*(lambda y: (x, f(lambda p, q: p * q)(y, y / y)))(x * x)),
}


@pytest.mark.parametrize("name", DEPENDENT)
def test_checkpoint_of_inputs_that_come_from_each_other(backend, name):
    f = lambda x: DEPENDENT[name](mo.checkpoint, x)
    assert float(mo.grad(f)(2.0)) == 12.0
    assert float(mo.jvp(f, (2.0,), (1.0,))[1]) == 12.0
    assert float(mo.grad(mo.grad(f))(2.0)) == pytest.approx(12.0, rel=1e-5)
    with mo.GradientTape() as tape:
        x = tape.watch(mo.op_convert_to_tensor(2.0))
        y = f(x)
    assert float(tape.gradient(y, x)) == 12.0


# nesting


def _push(f):
    return lambda x: mo.jvp(f, (x,), (mo.op_ones_like(x),))[1]


def _pull(f):
    return lambda x: mo.vjp(f, x)[1](1.0)[0]


WAYS = {
    "grad": mo.grad,
    "value_and_grad": lambda f: lambda x: mo.value_and_grad(f)(x)[1],
    "vjp": _pull,
    "jvp": _push,
    "jacrev": mo.jacrev,
    "jacfwd": mo.jacfwd,
}
WRAPS = {
    "plain": lambda f: f,
    "jit": mo.jit,
    "vmap": lambda f: lambda x: mo.vmap(f)(x[None])[0],
    "checkpoint": mo.checkpoint,
}


@construct("every transform in every other, twice")
@pytest.mark.parametrize("inner", WAYS)
@pytest.mark.parametrize("outer", WAYS)
def test_nesting(backend, outer, inner):
    """f = x⁴ at 2: second derivative 48, whatever the ways to take it."""
    f = lambda x: x * x * x * x
    assert float(WAYS[outer](WAYS[inner](f))(mo.op_convert_to_tensor(2.0))) == 48.0


@construct("every transform around and inside jit, vmap and checkpoint")
@pytest.mark.parametrize("wrap", list(WRAPS)[1:])
@pytest.mark.parametrize("way", WAYS)
def test_wrapping(backend, way, wrap):
    f = lambda x: x * x * x * x
    x = mo.op_convert_to_tensor(2.0)
    assert float(WRAPS[wrap](WAYS[way](f))(x)) == 32.0
    assert float(WAYS[way](WRAPS[wrap](f))(x)) == 32.0


@construct("three transforms deep")
@pytest.mark.parametrize(
    "chain",
    [
        *[
            pytest.param(chain, marks=[pytest.mark.slow_on(wrap=wrap) for wrap in ("jit", "vmap", "checkpoint")])
            for chain in [
                ("grad", "grad", "grad"),
                ("jvp", "jvp", "jvp"),
                ("grad", "jvp", "grad"),
                ("jacfwd", "jacrev", "grad"),
            ]
        ],
        ("jvp", "grad", "jvp"),
        ("jacrev", "jacfwd", "jacrev"),
    ],
)
@pytest.mark.parametrize("wrap", WRAPS)
def test_three_deep(backend, chain, wrap):
    f = WRAPS[wrap](lambda x: x * x * x * x)
    for way in chain:
        f = WAYS[way](f)
    assert float(f(mo.op_convert_to_tensor(2.0))) == 48.0


@construct("perturbation confusion")
def test_perturbation_confusion(backend):
    """d/dx (x · d/dy (x + y)) = 1, in every mix of modes: the inner derivative must not see the outer's variable."""
    for outer in (mo.grad, _push):
        for inner in (mo.grad, _push):
            f = lambda x: x * inner(lambda y: x + y)(mo.op_convert_to_tensor(1.0))
            assert float(outer(f)(mo.op_convert_to_tensor(1.0))) == 1.0


@construct("multiop's transforms inside the framework's own")
def test_inside_native(backend, native, numpy):
    cube = lambda x: x * x * x
    x = mo.op_convert_to_tensor(X)
    inner = {
        "grad": lambda x: mo.grad(cubes)(x),
        "vjp": lambda x: mo.vjp(cube, x)[1](mo.op_ones_like(x))[0],
        "jvp": lambda x: mo.jvp(cube, (x,), (mo.op_ones_like(x),))[1],
        "vmap": lambda x: mo.vmap(mo.grad(cube))(x),
        "jit": lambda x: mo.jit(mo.grad(cubes))(x),
        "checkpoint": lambda x: mo.grad(lambda x: mo.op_sum(mo.checkpoint(cube)(x)))(x),
    }
    ways = dict(native.reverse())
    for way, forward in native.forward().items():
        ways[way] = lambda f, forward=forward: lambda x: forward(f)(x, mo.op_ones_like(x))
    # PyTorch has one level of forward_ad, and no torch.func with the hooks of its checkpoint: it raises
    refused = {
        ("torch.autograd.forward_ad", "jvp"),
        ("torch.utils.checkpoint", "vmap"),
    }
    for name, f in inner.items():
        for way, transform in ways.items():
            if (way, name) in refused:
                with pytest.raises(RuntimeError, match=r"not supported at the moment|don't yet support"):
                    transform(f)(x)
            else:
                np.testing.assert_allclose(numpy(transform(f)(x)), 6 * X, rtol=1e-6, err_msg=f"{way} of {name}")


@construct("the framework's own transforms inside multiop's")
def test_native_inside(backend, native, numpy):
    cube = lambda x: x * x * x
    x = mo.op_convert_to_tensor(X)
    ways = {"torch": ["torch.func.grad", "torch.func.vjp"], "tensorflow": ["tf.GradientTape"]}
    for way, reverse in native.reverse().items():
        if way not in ways.get(backend, native.reverse()):
            continue  # it cuts its input off from what is outside
        inner = reverse(cube)
        np.testing.assert_allclose(numpy(mo.grad(lambda x: mo.op_sum(inner(x)))(x)), 6 * X, rtol=1e-6, err_msg=way)
        np.testing.assert_allclose(numpy(mo.jvp(inner, (x,), (mo.op_ones_like(x),))[1]), 6 * X, rtol=1e-6, err_msg=way)
        np.testing.assert_allclose(numpy(mo.jit(inner)(x)), 3 * X**2, rtol=1e-6, err_msg=way)
    for way, forward in native.forward().items():
        inner = lambda x: forward(cube)(x, mo.op_ones_like(x))
        np.testing.assert_allclose(numpy(mo.grad(lambda x: mo.op_sum(inner(x)))(x)), 6 * X, rtol=1e-6, err_msg=way)


@construct("an error of the function passes unchanged")
def test_users_error(backend):
    def f(x):
        raise ValueError("mine")

    for call in (
        lambda: mo.grad(f)(1.0),
        lambda: mo.vjp(f, 1.0),
        lambda: mo.jvp(f, (1.0,), (1.0,)),
        lambda: mo.jacrev(f)(1.0),
        lambda: mo.jacfwd(f)(1.0),
        lambda: mo.vmap(f)(X),
    ):
        with pytest.raises(ValueError, match="mine") as caught:
            call()
        assert type(caught.value) is ValueError


@construct("functions that are no functions", error=True)
def test_not_callable(backend):
    for name in ("grad", "value_and_grad", "jacrev", "jacfwd", "hessian", "vmap", "jit", "checkpoint"):
        with pytest.raises(errors.ArgumentTypeError, match="fun must be callable, got 3.0"):
            getattr(mo, name)(3.0)
    with pytest.raises(errors.ArgumentTypeError, match="vjp: fun must be callable"):
        mo.vjp(3.0, 1.0)
    for name in ("jvp", "op_jvp", "hvp"):
        with pytest.raises(errors.ArgumentTypeError, match=f"{name}: fun must be callable"):
            getattr(mo, name)(3.0, (1.0,), (1.0,))


# under the framework's own compilers


def _compiled_calls():
    """Functions of x and their value, for x = X: each transform, on pytrees, as code that a compiler has to trace."""
    cube = lambda x: x * x * x
    loss = lambda p: mo.op_sum(p["w"] * p["w"]) * p["b"]
    return {
        "grad": (lambda x: mo.grad(cubes)(x), 3 * X**2),
        "grad of a dict": (lambda x: mo.grad(loss)({"w": x, "b": 3.0})["w"], 6 * X),
        "value_and_grad": (lambda x: mo.value_and_grad(cubes)(x)[1], 3 * X**2),
        "vjp": (lambda x: mo.vjp(cube, x)[1](x)[0], 3 * X**3),
        "jvp": (lambda x: mo.jvp(cube, (x,), (x,))[1], 3 * X**3),
        "jacrev": (lambda x: mo.jacrev(cube)(x), np.diag(3 * X**2)),
        "jacfwd": (lambda x: mo.jacfwd(cube)(x), np.diag(3 * X**2)),
        "hessian": (lambda x: mo.hessian(cubes)(x), np.diag(6 * X)),
        "hvp": (lambda x: mo.hvp(cubes, (x,), (x,)), 6 * X**2),
        "vmap": (lambda x: mo.vmap(lambda p, k: p["a"] * k, in_axes=({"a": 0}, None))({"a": x}, x[0]), X * X[0]),
        "vmap of grad": (lambda x: mo.vmap(mo.grad(cube))(x), 3 * X**2),
        "checkpoint": (lambda x: mo.grad(lambda x: mo.op_sum(mo.checkpoint(cube)(x)))(x), 3 * X**2),
        "jit": (lambda x: mo.jit(cube)(x), X**3),
        "gradients": (lambda x: mo.gradients(cube, [x])[0], 3 * X**2),
        "stop_gradient": (lambda x: mo.grad(lambda x: mo.op_sum(x * mo.op_stop_gradient([x])[0]))(x), X),
        "attach_gradient": (lambda x: mo.grad(lambda x: mo.op_attach_gradient(5.0, [3, 4, 5], x, None))(x), [3, 4, 5]),
    }


@construct("each transform inside the framework's own compiler")
@pytest.mark.parametrize("name", [name for name in _compiled_calls() if name != "gradients"])
def test_native_compilers(backend, native, numpy, name):
    f, expected = _compiled_calls()[name]
    for compiler, compiled in native.compilers().items():
        np.testing.assert_allclose(
            numpy(compiled(f)(mo.op_convert_to_tensor(X))), expected, rtol=1e-6, err_msg=compiler
        )


@construct("gradients and tapes inside the framework's own compiler", error=("torch",))
@pytest.mark.compiler
def test_tape_in_native_compilers(backend, native, numpy):
    f, expected = _compiled_calls()["gradients"]
    for compiled in native.compilers().values():
        if backend == "torch":  # torch.compile refuses to trace a tape; multiop.grad and multiop.jit are the way
            with pytest.raises(Exception, match=r"(?s)tape.*multiop\.grad.*multiop\.jit.*https://"):
                compiled(f)(mo.op_convert_to_tensor(X))
        else:
            np.testing.assert_allclose(numpy(compiled(f)(mo.op_convert_to_tensor(X))), expected, rtol=1e-6)


@construct("each transform inside multiop.jit")
@pytest.mark.parametrize("name", _compiled_calls())
def test_inside_jit(backend, numpy, name):
    f, expected = _compiled_calls()[name]
    np.testing.assert_allclose(numpy(mo.jit(f)(mo.op_convert_to_tensor(X))), expected, rtol=1e-6)


@construct("shapes that TensorFlow knows only at run time", only="tensorflow")
@pytest.mark.parametrize(
    "name", ["grad", "grad of a dict", "value_and_grad", "vjp", "jvp", "hvp", "vmap", "vmap of grad", "gradients"]
)
def test_unknown_shapes(name):
    tf = pytest.importorskip("tensorflow")
    f, expected = _compiled_calls()[name]
    with mo.use_backend("tensorflow"):
        g = tf.function(f, input_signature=[tf.TensorSpec([None], tf.float32)], autograph=False)
        np.testing.assert_allclose(g(tf.constant(X)).numpy(), expected, rtol=1e-6)


@construct("an outer transform differentiates an inner one's aux")
@pytest.mark.parametrize(
    "inner",
    [
        lambda f, x: mo.grad(f, has_aux=True)(x)[1],
        lambda f, x: mo.vjp(f, x, has_aux=True)[2],
        lambda f, x: mo.jacrev(f, has_aux=True)(x)[1],
        lambda f, x: mo.hessian(f, has_aux=True)(x)[1],
    ],
    ids=["grad", "vjp", "jacrev", "hessian"],
)
def test_aux_is_differentiated_outside(backend, numpy, inner):
    def outer(p):
        return mo.op_sum(inner(lambda x: (mo.op_sum(x * x), p * p * 3), mo.op_convert_to_tensor(X)))

    np.testing.assert_allclose(numpy(mo.grad(outer)(X)), 6 * X, rtol=1e-6)
