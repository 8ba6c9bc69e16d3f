"""Bad input: each public function of the autodiff part raises the documented class and names the culprit."""

from __future__ import annotations

import numpy as np
import pytest

import multiop as mo
from multiop import errors

pytestmark = pytest.mark.tier("quick")  # the contract

X = np.array([0.5, -1.0, 2.0], np.float32)
K = np.array([1, 2, 3], np.int32)


class Foreign:
    """What a tensor of another framework looks like; `of` makes it one that is foreign to `backend`."""

    shape, dtype = (3,), "float32"

    @staticmethod
    def of(backend):
        owner = {"torch": "jax"}.get(backend, "torch")
        return type("Tensor", (Foreign,), {"__module__": f"{owner}.somewhere"})()


def sum_of_squares(x):
    return mo.op_sum(x * x)


def rule(output, gradient):
    """A custom-gradient function with this output and gradient, under a name to look for."""

    def culprit(x):
        return output(x), gradient

    return mo.op_custom_gradient(culprit)


def taped(method):
    """Call `method(tape, x, y)` on a tape that recorded y = x²."""

    def call(backend):
        with mo.GradientTape(persistent=True) as tape:
            x = tape.watch(mo.op_convert_to_tensor(X))
            y = x * x
            return method(tape, x, y)

    return call


A, T, D, G, F = (
    errors.ArgumentError,
    errors.ArgumentTypeError,
    errors.DTypeError,
    errors.GradientRuleError,
    errors.ForeignTensorError,
)
foreign = Foreign.of
tensor = mo.op_convert_to_tensor

# function -> kind of fault -> (call, class, what the message says)
CASES = {
    "op_custom_gradient": {
        "not callable": (lambda b: mo.op_custom_gradient("f"), T, "op_custom_gradient: f must be callable, got 'f'"),
        "missing return": (lambda b: mo.op_custom_gradient(lambda x: None)(X), G, "lambda.*forgotten return"),
        "missing return of the rule": (
            lambda b: mo.grad(lambda x: mo.op_sum(rule(lambda x: x * 1, lambda u: None)(x)))(X),
            G,
            "culprit.*forgotten return",
        ),
        "count": (
            lambda b: mo.grad(lambda x: mo.op_sum(rule(lambda x: x * 1, lambda u: (u, u, u))(x)))(X),
            G,
            r"culprit returned 3 gradients.*1 argument \(x\)",
        ),
        "shape": (
            lambda b: mo.grad(lambda x: mo.op_sum(rule(lambda x: x * 1, lambda u: u[:2])(x)))(X),
            G,
            r"culprit returned a gradient of shape \(2,\) for argument 'x' of shape \(3,\)",
        ),
        "dtype": (
            lambda b: mo.grad(lambda x: mo.op_sum(rule(lambda x: x * 1, lambda u: mo.op_cast(u, "complex64"))(x)))(X),
            G,
            "culprit returned a gradient of dtype complex64 for argument 'x' of dtype float32",
        ),
        "structure": (
            lambda b: mo.grad(lambda p: rule(lambda p: p["a"] * 1, lambda u: {"b": u})(p))({"a": 1.0}),
            G,
            "culprit returned.*'?x'?",
        ),
        "foreign tensor": (lambda b: rule(lambda x: x, lambda u: u)(foreign(b)), F, "culprit.*tensor was passed"),
        "output that is not a tensor": (
            lambda b: rule(lambda x: object(), lambda u: u)(X),
            G,
            "culprit returned an output",
        ),
    },
    "linear_solve": {
        "not callable": (lambda b: mo.linear_solve(X, X), T, "linear_solve: matvec must be callable"),
        "a solver that is not callable": (
            lambda b: mo.linear_solve(lambda x: x, X, "cg"),
            T,
            "linear_solve: solve must",
        ),
        "arguments": (lambda b: mo.linear_solve(lambda x, a: x, X, args=X), T, "linear_solve: args must be"),
        "shape": (lambda b: mo.linear_solve(lambda x: x, X, lambda f, b: b[:2]), A, "linear_solve.*solve returned"),
    },
    "root": {
        "not callable": (lambda b: mo.root("f", X, lambda f, x: x), T, "root: f must be callable"),
        "arguments": (lambda b: mo.root(lambda x, a: x, X, lambda f, x: x, args=3), T, "root: args must be"),
        "structure": (lambda b: mo.root(lambda x: x, X, lambda f, x: [x]), A, "root.*solve returned"),
    },
    "op_stop_gradient": {
        "foreign tensor": (lambda b: mo.op_stop_gradient([foreign(b)]), F, "op_stop_gradient"),
        "dtype": (lambda b: mo.op_stop_gradient(np.array(["a"])), D, "op_stop_gradient.*<U1"),
    },
    "op_attach_gradient": {
        "count": (lambda b: mo.op_attach_gradient(1.0, [X], [X, X], axis=None), A, "gx has 1 entries for the 2 of x"),
        "shape": (lambda b: mo.op_attach_gradient(X, X[:2], X), A, r"gx has shape \(2,\)"),
        "axis": (lambda b: mo.op_attach_gradient(X, X, X, axis=3), A, "axis 3 is out of range"),
        "dtype": (lambda b: mo.op_attach_gradient(X, X, K), D, "x must be real or complex floats, got int32"),
        "structure": (lambda b: mo.op_attach_gradient(X, X, [X]), T, "x is a list, so gx must be a list"),
        "foreign tensor": (lambda b: mo.op_attach_gradient(foreign(b), X, X), F, "op_attach_gradient: fx"),
    },
    "gradients": {
        "count": (taped(lambda t, x, y: mo.gradients(y, x, grad_ys=[y, y])), A, "2 grad_ys were given for 1 ys"),
        "shape": (taped(lambda t, x, y: mo.gradients(y, x, grad_ys=y[:1])), A, r"grad_ys\[0\] has shape \(1,\)"),
        "dtype": (
            taped(lambda t, x, y: mo.gradients(y, x, mo.op_cast(y, "int32"))),
            D,
            r"grad_ys\[0\] has dtype int32",
        ),
        "structure": (taped(lambda t, x, y: mo.gradients(y, [x, {"a": "b"}])), T, r"xs\[1\] must be a tensor, got 'b'"),
        "option": (
            taped(lambda t, x, y: mo.gradients(y, x, unconnected_gradients=0)),
            A,
            "unconnected_gradients must be",
        ),
        "foreign tensor": (lambda b: mo.gradients(lambda x: x, [foreign(b)]), F, "watch"),
        "missing return": (lambda b: mo.gradients(lambda x: None, X), T, "ys.*forgotten return"),
    },
    "GradientTape": {
        "option": (lambda b: mo.GradientTape(persistent="no"), T, "GradientTape: persistent must be a bool, got 'no'"),
        "count": (taped(lambda t, x, y: t.gradient([y, y], x, [y])), A, "1 output_gradients were given for 2 targets"),
        "shape": (taped(lambda t, x, y: t.gradient(y, x, y[:1])), A, r"output_gradients\[0\] has shape \(1,\)"),
        "dtype": (
            taped(lambda t, x, y: t.gradient(y, x, mo.op_cast(y, "int32"))),
            D,
            r"output_gradients\[0\] has dtype int32",
        ),
        "structure": (taped(lambda t, x, y: t.gradient(y, {"x": 3.0})), T, "sources must hold tensors, got 3.0"),
        "foreign target": (
            lambda b: taped(lambda t, x, y: t.gradient(foreign(b), x))(b),
            F,
            "GradientTape.gradient: target",
        ),
        "foreign source": (
            lambda b: taped(lambda t, x, y: t.gradient(y, foreign(b)))(b),
            F,
            "GradientTape.gradient: sources",
        ),
        "foreign tensor": (lambda b: taped(lambda t, x, y: t.watch(foreign(b)))(b), F, "GradientTape.watch"),
    },
    "grad": {
        "not callable": (lambda b: mo.grad(X), T, r"grad: fun must be callable, got float32\[3\]"),
        "count": (
            lambda b: mo.grad(sum_of_squares)(),
            A,
            "grad: argnums 0 is out of range for a call with 0 positional",
        ),
        "shape": (lambda b: mo.grad(lambda x: x)(X), A, r"grad: fun must return a scalar, it returned float32\[3\]"),
        "dtype": (lambda b: mo.grad(sum_of_squares)(K), D, r"grad: argument 0 \(x\) has dtype int32"),
        "structure": (lambda b: mo.grad(lambda x: [x])(1.0), T, "grad: fun must return one scalar tensor.*container"),
        "missing return": (lambda b: mo.grad(lambda x: None)(X), T, "grad: fun must return tensors.*None.*forgotten"),
        "foreign tensor": (lambda b: mo.grad(sum_of_squares)(foreign(b)), F, r"grad: argument 0 \(x\)"),
        "aux": (
            lambda b: mo.grad(sum_of_squares, has_aux=True)(X),
            T,
            r"grad: with has_aux, fun must return \(output, aux\)",
        ),
        "option": (lambda b: mo.grad(sum_of_squares, has_aux="yes"), T, "grad: has_aux must be a bool"),
    },
    "value_and_grad": {
        "not callable": (lambda b: mo.value_and_grad(None), T, "value_and_grad: fun must be callable, got None"),
        "count": (lambda b: mo.value_and_grad(sum_of_squares, 1)(X), A, "value_and_grad: argnums 1 is out of range"),
        "shape": (lambda b: mo.value_and_grad(lambda x: x)(X), A, r"value_and_grad: .*scalar.*float32\[3\]"),
        "dtype": (lambda b: mo.value_and_grad(sum_of_squares)(K), D, "value_and_grad: argument 0.*int32"),
        "missing return": (lambda b: mo.value_and_grad(lambda x: None)(X), T, "value_and_grad: .*forgotten return"),
        "foreign tensor": (lambda b: mo.value_and_grad(sum_of_squares)(foreign(b)), F, "value_and_grad: argument 0"),
    },
    "vjp": {
        "not callable": (lambda b: mo.vjp(1, X), T, "vjp: fun must be callable, got 1"),
        "shape": (lambda b: mo.vjp(lambda x: x, X)[1](X[:1]), A, r"vjp: cotangent 0 has shape \(1,\).*\(3,\)"),
        "dtype": (lambda b: mo.vjp(sum_of_squares, K), D, "vjp: argument 0.*int32"),
        "structure": (lambda b: mo.vjp(lambda x: {"a": x}, X)[1]({"b": X}), A, "vjp: .*structure of the output"),
        "count": (lambda b: mo.vjp(lambda x: (x, x), X)[1]((X,)), A, "vjp: .*structure of the output"),
        "missing return": (lambda b: mo.vjp(lambda x: None, X), T, "vjp: .*forgotten return"),
        "foreign tensor": (lambda b: mo.vjp(sum_of_squares, foreign(b)), F, "vjp: argument 0"),
        "foreign cotangent": (lambda b: mo.vjp(lambda x: x, X)[1](foreign(b)), F, "vjp: cotangent 0"),
    },
    "jvp": {
        "not callable": (lambda b: mo.jvp(1, (X,), (X,)), T, "jvp: fun must be callable, got 1"),
        "shape": (lambda b: mo.jvp(lambda x: x, (X,), (X[:1],)), A, r"jvp: tangent 0 has shape \(1,\).*\(3,\)"),
        "dtype": (lambda b: mo.jvp(sum_of_squares, (K,), (K,)), D, "jvp: argument 0.*int32"),
        "structure": (
            lambda b: mo.jvp(lambda x: x["a"], ({"a": X},), (X,)),
            A,
            "jvp: tangent 0 must have the structure",
        ),
        "count": (lambda b: mo.jvp(lambda x: x, (X,), ()), A, "jvp: 0 tangents were given for 1 primals"),
        "missing return": (lambda b: mo.jvp(lambda x: None, (X,), (X,)), T, "jvp: .*forgotten return"),
        "foreign tensor": (lambda b: mo.jvp(lambda x: x, (foreign(b),), (X,)), F, "jvp: argument 0"),
        "foreign tangent": (lambda b: mo.jvp(lambda x: x, (X,), (foreign(b),)), F, "jvp: tangent 0"),
    },
    "op_jvp": {
        "not callable": (lambda b: mo.op_jvp(1, (X,), (X,)), T, "op_jvp: fun must be callable, got 1"),
        "shape": (lambda b: mo.op_jvp(lambda x: x, (X,), (X[:1],)), A, r"op_jvp: tangent 0 has shape \(1,\).*\(3,\)"),
        "missing return": (lambda b: mo.op_jvp(lambda x: None, (X,), (X,)), T, "op_jvp: .*forgotten return"),
    },
    "jacrev": {
        "not callable": (lambda b: mo.jacrev(1), T, "jacrev: fun must be callable, got 1"),
        "count": (lambda b: mo.jacrev(lambda x: x)(), A, "jacrev: argnums 0 is out of range"),
        "dtype": (lambda b: mo.jacrev(lambda x: x)(K), D, "jacrev: argument 0.*int32"),
        "missing return": (lambda b: mo.jacrev(lambda x: None)(X), T, "jacrev: .*forgotten return"),
        "foreign tensor": (lambda b: mo.jacrev(lambda x: x)(foreign(b)), F, "jacrev: argument 0"),
    },
    "jacfwd": {
        "not callable": (lambda b: mo.jacfwd(1), T, "jacfwd: fun must be callable, got 1"),
        "count": (lambda b: mo.jacfwd(lambda x: x)(), A, "jacfwd: argnums 0 is out of range"),
        "dtype": (lambda b: mo.jacfwd(lambda x: x)(K), D, "jacfwd: argument 0.*int32"),
        "missing return": (lambda b: mo.jacfwd(lambda x: None)(X), T, "jacfwd: .*forgotten return"),
        "foreign tensor": (lambda b: mo.jacfwd(lambda x: x)(foreign(b)), F, "jacfwd: argument 0"),
    },
    "hessian": {
        "not callable": (lambda b: mo.hessian(1), T, "hessian: fun must be callable, got 1"),
        "count": (lambda b: mo.hessian(lambda x: x)(), A, "hessian: argnums 0 is out of range"),
        "dtype": (lambda b: mo.hessian(lambda x: x)(K), D, "hessian: argument 0.*int32"),
        "missing return": (lambda b: mo.hessian(lambda x: None)(X), T, "forgotten return"),
        "foreign tensor": (lambda b: mo.hessian(sum_of_squares)(foreign(b)), F, "hessian: argument 0"),
    },
    "jacobian": {
        "not callable": (lambda b: mo.jacobian(1), T, "jacobian: fun must be callable, got 1"),
        "count": (lambda b: mo.jacobian(lambda x: x)(), A, "jacobian: argnums 0 is out of range"),
        "chunk": (lambda b: mo.jacobian(lambda x: x, chunk_size=0), A, "jacobian: chunk_size must be at least 1"),
        "dtype": (lambda b: mo.jacobian(lambda x: x)(K), D, "jacobian: argument 0.*int32"),
        "foreign tensor": (lambda b: mo.jacobian(lambda x: x)(foreign(b)), F, "jacobian: argument 0"),
    },
    "linearize": {
        "not callable": (lambda b: mo.linearize(1, X), T, "linearize: fun must be callable, got 1"),
        "count": (lambda b: mo.linearize(lambda x: x, X)[1](X, X), A, "linearize: 2 tangents were given for 1 primals"),
        "shape": (lambda b: mo.linearize(lambda x: x, X)[1](X[:2]), A, r"linearize: tangent 0 has shape \(2,\)"),
        "dtype": (lambda b: mo.linearize(lambda x: x, K), D, "linearize: argument 0.*int32"),
        "foreign tensor": (lambda b: mo.linearize(lambda x: x, foreign(b)), F, "linearize: argument 0"),
    },
    "sparse_jacobian": {
        "not callable": (lambda b: mo.sparse_jacobian(1, X), T, "sparse_jacobian: f must be callable, got 1"),
        "dtype": (lambda b: mo.sparse_jacobian(lambda x: x, K), D, "sparse_jacobian: argument 0.*int32"),
        "shape": (lambda b: mo.sparse_jacobian(lambda x: x, X, np.eye(2)), A, "sparse_jacobian: pattern has shape"),
        "foreign tensor": (lambda b: mo.sparse_jacobian(lambda x: x, foreign(b)), F, "sparse_jacobian: argument 0"),
    },
    "sparse_hessian": {
        "not callable": (lambda b: mo.sparse_hessian(1, X), T, "sparse_hessian: f must be callable, got 1"),
        "shape": (lambda b: mo.sparse_hessian(lambda x: x, X), A, "sparse_hessian: fun must return a scalar"),
        "dtype": (lambda b: mo.sparse_hessian(sum_of_squares, K), D, "sparse_hessian: argument 0.*int32"),
        "foreign tensor": (lambda b: mo.sparse_hessian(sum_of_squares, foreign(b)), F, "sparse_hessian: argument 0"),
    },
    "SparseDerivative": {
        "not callable": (lambda b: mo.SparseDerivative.load("there.npz", 1), T, "load: f must be callable, got 1"),
    },
    "hvp": {
        "not callable": (lambda b: mo.hvp(1, (X,), (X,)), T, "hvp: fun must be callable, got 1"),
        "count": (lambda b: mo.hvp(sum_of_squares, (X,), (X, X)), A, "hvp: 2 tangents were given for 1 primals"),
        "shape": (lambda b: mo.hvp(lambda x: x, (X,), (X,)), A, r"fun must return a scalar, it returned float32\[3\]"),
        "dtype": (lambda b: mo.hvp(sum_of_squares, (K,), (K,)), D, "hvp: argument 0.*int32"),
        "structure": (lambda b: mo.hvp(sum_of_squares, (X,), ([X],)), A, "hvp: tangent 0 must have the structure"),
        "foreign tensor": (lambda b: mo.hvp(sum_of_squares, (foreign(b),), (X,)), F, "hvp: argument 0"),
    },
    "vmap": {
        "not callable": (lambda b: mo.vmap(1), T, "vmap: fun must be callable, got 1"),
        "count": (lambda b: mo.vmap(lambda x: x, (0, 0))(X), A, "vmap: in_axes has 2 entries for 1 positional"),
        "shape": (
            lambda b: mo.vmap(lambda x, y: x)(X, X[:2]),
            A,
            r"vmap: argument 1 \(y\) has size 2.*argument 0 \(x\) has 3",
        ),
        "axis": (lambda b: mo.vmap(lambda x: x, 1)(X), A, r"vmap: argument 0 \(x\): in_axes 1 is out of range"),
        "structure": (lambda b: mo.vmap(lambda x: x, ((0, 0),))(X), A, "vmap: in_axes does not match"),
        "foreign tensor": (lambda b: mo.vmap(lambda x: x)(foreign(b)), F, r"vmap: argument 0 \(x\)"),
    },
    "jit": {
        "not callable": (lambda b: mo.jit(1), T, "jit: fun must be callable, got 1"),
        "unhashable": (lambda b: mo.jit(lambda x, s: x)(X, {1}), T, "jit: .*hashable"),
        "option": (lambda b: mo.jit(lambda x: x, static_argnums=4), A, "jit: static_argnums 4 is out of range"),
        "name": (lambda b: mo.jit(lambda x: x, static_argnames="y"), A, "jit: static_argnames names 'y'"),
        "foreign tensor": (lambda b: mo.jit(lambda x: x)(foreign(b)), F, "jit: argument 0"),
    },
    "checkpoint": {
        "not callable": (lambda b: mo.checkpoint(1), T, "checkpoint: fun must be callable, got 1"),
    },
    "set_backend": {
        "backend name": (lambda b: mo.set_backend("nunpy"), errors.BackendError, "'nunpy'.*torch, jax, tensorflow"),
        "backend type": (lambda b: mo.set_backend(3), T, "backend is named by a string, got 3"),
    },
    "use_backend": {
        "backend name": (lambda b: mo.use_backend("nunpy").__enter__(), errors.BackendError, "'nunpy'.*known backends"),
    },
    "set_floatx": {"dtype": (lambda b: mo.set_floatx("int32"), A, "set_floatx: dtype must be one of.*'int32'")},
    "enable_x64": {"type": (lambda b: mo.enable_x64("on"), T, "enable_x64: enable must be a bool, got 'on'")},
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=pytest.mark.construct(f"bad input: {name}", error=True))
        for name, kinds in CASES.items()
        for kind in kinds
    ],
)
def test_bad_input(backend, name, kind):
    call, error, message = CASES[name][kind]
    with pytest.raises(error, match=f"(?s){message}") as caught:
        call(backend)
    assert isinstance(caught.value, errors.MultiopError)


def test_every_function_has_its_cases():
    """Every public function of the autodiff part is in the table."""
    public = {
        name
        for name, value in vars(mo).items()
        if (getattr(value, "__module__", None) or "").startswith("multiop.autodiff") and callable(value)
    }
    assert public - {"AggregationMethod", "UnconnectedGradients"} <= set(CASES)


@pytest.mark.construct("a real tensor of another framework", error=True)
def test_real_foreign_tensors(backend):
    for other in mo.available_backends():
        if other == backend or other not in ("torch", "jax", "tensorflow"):
            continue
        with mo.use_backend(other):
            x = mo.op_convert_to_tensor(X)
        for call in (
            lambda: mo.grad(sum_of_squares)(x),
            lambda: mo.op_stop_gradient(x),
            lambda: mo.op_attach_gradient(x, X, X),
            lambda: mo.vmap(sum_of_squares)(x),
            lambda: mo.jit(sum_of_squares)(x),
            lambda: rule(lambda x: x, lambda u: u)(x),
            lambda: mo.gradients(sum_of_squares, x),
        ):
            with pytest.raises(errors.ForeignTensorError, match=f"(?s){other} tensor.*{backend} backend"):
                call()
