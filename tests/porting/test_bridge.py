"""`porting.bridge`: a function of another framework, with its gradients, on the active backend's tensors."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")  # before TensorFlow
jax = pytest.importorskip("jax")
tf = pytest.importorskip("tensorflow")

import jax.numpy as jnp

import multiop
from multiop import errors, ops, porting

pytestmark = pytest.mark.cross

NATIVE = {
    "torch": lambda x, y: torch.tanh(x) @ y,
    "jax": lambda x, y: jnp.tanh(x) @ y,
    "tensorflow": lambda x, y: tf.tanh(x) @ y,
}
X = np.linspace(-1, 1.5, 6, dtype="float32").reshape(2, 3)
Y = np.linspace(2, -1, 6, dtype="float32").reshape(3, 2)
foreigns = pytest.mark.parametrize("foreign", NATIVE)


def numpy(tree):
    return [np.asarray(multiop.op_convert_to_numpy(leaf)) for leaf in (tree if isinstance(tree, tuple) else (tree,))]


def own(x, y):
    return ops.matmul(ops.tanh(x), y)


def loss(f):
    return lambda x, y: ops.sum(f(x, y) ** 2)


def steepness(f):
    return lambda x, y: ops.sum(multiop.grad(loss(f))(x, y) ** 3)


def mapped(f):
    return lambda x, y: multiop.vmap(f)(np.stack([x, 2 * x, x]), np.stack([y, y, -y]))


WAYS = {
    "value": lambda f: f(X, Y),
    "gradient": lambda f: multiop.grad(loss(f), (0, 1))(X, Y),
    "second order": lambda f: multiop.grad(steepness(f), (0, 1))(X, Y),
    "mapped": lambda f: mapped(f)(X, Y),
    "mapped gradient": lambda f: mapped(multiop.grad(loss(f)))(X, Y),
    "compiled": lambda f: multiop.jit(f)(X, Y),
    "compiled gradient": lambda f: multiop.jit(multiop.grad(loss(f), (0, 1)))(X, Y),
    "compiled second order": lambda f: multiop.jit(multiop.grad(steepness(f), (0, 1)))(X, Y),
}


def another_than(backend):
    return "jax" if backend == "torch" else "torch"


@pytest.mark.parametrize("way", WAYS)
@foreigns
def test_a_foreign_function_is_what_it_computes(backend, foreign, way):
    computed, expected = numpy(WAYS[way](porting.bridge(NATIVE[foreign], foreign))), numpy(WAYS[way](own))
    for y, other in zip(computed, expected, strict=True):
        assert y.dtype == other.dtype
        np.testing.assert_allclose(y, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_every_dtype_crosses(backend, dtype):
    foreign = another_than(backend)
    square = porting.bridge(lambda x: x * x, foreign)
    before = multiop.x64()
    multiop.enable_x64(dtype == "float64")
    try:
        x = multiop.op_convert_to_tensor([1.5, -2.0], dtype=dtype)
        for f in (square, multiop.jit(square)):
            y = f(x)
            assert multiop.op_dtype(y) == dtype
            assert numpy(multiop.op_cast(y, "complex64"))[0].tolist() == [2.25, 4]
        _, pullback = multiop.vjp(square, x)
        assert numpy(multiop.op_cast(pullback(multiop.op_ones_like(x))[0], "complex64"))[0].tolist() == [3, -4]
    finally:
        multiop.enable_x64(before)


def test_pytrees_and_integers(backend):
    def pick(inputs, index):
        chosen = inputs["table"][index]
        return {"chosen": chosen * inputs["scale"], "index": index + 1}

    pick = porting.bridge(pick, another_than(backend))
    inputs = {"table": multiop.op_convert_to_tensor(X), "scale": 2.0}
    index = np.array([1, 0, 1], "int32")
    for f in (pick, multiop.jit(pick)):
        computed = f(inputs, index)
        np.testing.assert_array_equal(numpy(computed["chosen"])[0], 2 * X[index])
        assert numpy(computed["index"])[0].tolist() == [2, 1, 2]
    gradient = multiop.grad(lambda inputs: ops.sum(pick(inputs, index)["chosen"]))(inputs)
    np.testing.assert_array_equal(numpy(gradient["table"])[0], [[2] * 3, [4] * 3])
    np.testing.assert_allclose(numpy(gradient["scale"])[0], X[index].sum(), rtol=1e-6)


@pytest.mark.parametrize("active", ["torch", "jax", "tensorflow"])  # NumPy's arrays are copied
def test_memory_is_shared_on_a_cpu(active):
    seen = []

    def address(x):
        seen.append(x.data_ptr() if isinstance(x, torch.Tensor) else torch.from_dlpack(x).data_ptr())
        return x * 1.0

    with multiop.use_backend(active):
        x = multiop.op_convert_to_tensor(np.ones(1024, "float32"))
        porting.bridge(address, "tensorflow" if active == "torch" else "torch")(x)
    assert seen[-1:] == [x.unsafe_buffer_pointer() if active == "jax" else torch.from_dlpack(x).data_ptr()]


@pytest.mark.parametrize("active", ["jax", "tensorflow"])
def test_a_pytorch_model_is_a_function_of_its_parameters(active):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Linear(4, 2))
    bridged = porting.bridge(model)
    assert sorted(bridged.params) == ["0", "2"]
    assert bridged.params["0"]["weight"].shape == (4, 3)
    (model(torch.from_numpy(X)) ** 2).sum().backward()
    with multiop.use_backend(active):
        gradient = multiop.grad(lambda params: ops.sum(bridged(params, X) ** 2))(bridged.params)
        for name, parameter in model.named_parameters():
            layer, kind = name.split(".")
            np.testing.assert_allclose(numpy(gradient[layer][kind])[0], parameter.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_the_gradient_is_that_of_the_very_call():
    """A mask that is drawn anew at each call is the same in the value and in its gradient; JAX calls twice."""
    rng = np.random.default_rng(0)
    x = np.ones(64, "float32")
    for backend, array in (("torch", jnp.asarray), ("tensorflow", torch.from_numpy)):
        dropped = porting.bridge(
            lambda x, array=array: x * array(rng.integers(0, 2, 64).astype("float32")),
            another_than(backend),
        )
        with multiop.use_backend(backend):
            output, pullback = multiop.vjp(dropped, x)
            gradient = pullback(x)[0]
            np.testing.assert_array_equal(numpy(output)[0], numpy(gradient)[0])


def test_two_frameworks_in_one_training_step(backend):
    """Half of a network is foreign; the losses of five steps are those of the whole network in one framework."""
    foreign = another_than(backend)

    def losses(hidden):
        w, v = multiop.op_convert_to_tensor(Y * 0.3), multiop.op_convert_to_tensor(Y[:2] * 0.5)
        step = multiop.jit(
            multiop.value_and_grad(lambda w, v: ops.mean((ops.matmul(hidden(X, w), v) - 1.0) ** 2), (0, 1))
        )
        values = []
        for _ in range(5):
            value, (dw, dv) = step(w, v)
            w, v = w - 0.1 * dw, v - 0.1 * dv
            values.append(float(value))
        return values

    computed = losses(porting.bridge(NATIVE[foreign], foreign))
    assert computed[0] > computed[-1]
    np.testing.assert_allclose(computed, losses(own), rtol=1e-5)


def test_unknown_sizes_stay_open():
    doubled = porting.bridge(lambda x: (x @ torch.ones(3, 2), x.sum(1)), "torch")
    with multiop.use_backend("tensorflow"):
        traced = tf.function(doubled, input_signature=[tf.TensorSpec((None, 3), tf.float32)])
        specs = traced.get_concrete_function().structured_outputs
        assert [tuple(spec.shape) for spec in specs] == [(None, 2), (None,)]
        for rows in (1, 5):
            assert traced(tf.ones((rows, 3)))[0].shape == (rows, 2)


def test_in_the_users_own_compiler():
    f = porting.bridge(NATIVE["jax"], "jax")
    with multiop.use_backend("torch"):
        x = torch.tensor(X, requires_grad=True)
        compiled = torch.compile(lambda x: (f(2 * x, torch.tensor(Y)) ** 2).sum(), backend="eager")
        compiled(x).backward()
        expected = torch.tensor(X, requires_grad=True)
        (torch.tanh(2 * expected) @ torch.tensor(Y)).square().sum().backward()
    np.testing.assert_allclose(x.grad, expected.grad, rtol=1e-5, atol=1e-5)
    f = porting.bridge(NATIVE["torch"], "torch")
    with multiop.use_backend("jax"):
        gradient = jax.jit(jax.grad(lambda x: (f(2 * x, Y) ** 2).sum()))(X)
    np.testing.assert_allclose(gradient, expected.grad, rtol=1e-5, atol=1e-5)


FORWARD = {
    "tangent": lambda f: multiop.jvp(f, (X, Y), (X + 1, Y - 2))[1],
    "many tangents": lambda f: multiop.jvp(lambda x: f(x, Y), (X,), (np.stack([X + 1, -X]),), batched=True)[1],
    "compiled": lambda f: multiop.jit(multiop.jacfwd(f))(X, Y),
    "forward over reverse": lambda f: multiop.hessian(loss(f))(X, Y),
    "with the whole function": lambda f: multiop.jvp(lambda x: ops.sin(f(x * x, Y)), (X,), (X + 1,))[1],
}


@pytest.mark.parametrize("active", ["numpy", "torch", "jax", "tensorflow"])
@pytest.mark.parametrize("way", FORWARD)
def test_forward_mode_is_the_transpose_of_the_gradient(active, way):
    foreign = another_than(active)
    with multiop.use_backend(active):
        found, expected = (numpy(FORWARD[way](f))[0] for f in (porting.bridge(NATIVE[foreign], foreign), own))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("active", ["numpy", "torch", "jax", "tensorflow"])
def test_forward_mode_of_a_gradient_that_is_not_linear_is_refused(active):
    clipped = multiop.op_custom_gradient(lambda x: (2 * x, lambda u: ops.clip(u, -1, 1) * 2))
    f = porting.bridge(clipped, another_than(active))
    with multiop.use_backend(active), pytest.raises(Exception, match="not linear in its upstream"):
        multiop.jvp(f, (X,), (X,))


def test_on_numpy_a_parameter_that_is_closed_over_is_refused():
    layer = torch.nn.Linear(3, 2)
    f = porting.bridge(lambda x: layer(x).sum(), "torch")
    with multiop.use_backend("numpy"):
        for way in (f, multiop.grad(f)):
            with pytest.raises(errors.ClosedOverError, match="pass the parameter as an argument"):
                way(X)


def test_on_numpy_an_argument_is_a_copy():
    """A function that writes into it is told, and the caller's array is as it was."""
    f, x = porting.bridge(lambda x: x.add_(1), "torch"), np.array([1, 2], "int32")
    with multiop.use_backend("numpy"), pytest.raises(errors.ArgumentError, match="writes into an argument"):
        f(x)
    assert x.tolist() == [1, 2]


def test_a_third_derivative():
    cube = porting.bridge(lambda x: x**4, "torch")
    with multiop.use_backend("tensorflow"):
        assert float(multiop.grad(multiop.grad(multiop.grad(cube)))(2.0)) == 48
    with multiop.use_backend("jax"):
        third = multiop.grad(multiop.grad(multiop.grad(cube)))
        assert float(third(2.0)) == 48
        with pytest.raises(errors.UnsupportedError, match="can be differentiated 3 times on the jax backend"):
            multiop.grad(third)(2.0)


def test_on_its_own_backend_it_is_the_function_itself():
    f = porting.bridge(torch.nn.functional.silu, "torch")
    with multiop.use_backend("torch"):
        x = torch.ones(3, requires_grad=True)
        assert f(x).grad_fn.name() == "SiluBackward0"


@pytest.mark.parametrize("active", ["jax", "tensorflow"])
def test_a_parameter_that_is_closed_over_is_refused(active):
    layer = torch.nn.Linear(3, 2)
    with multiop.use_backend(active):
        for way in (lambda f: f, multiop.jit, multiop.grad):
            f = porting.bridge(lambda x: layer(x).sum(), "torch")
            with pytest.raises(errors.ClosedOverError, match="pass the parameter as an argument"):
                way(f)(X)
        layer.requires_grad_(False)
        assert numpy(multiop.grad(porting.bridge(lambda x: layer(x).sum(), "torch"))(X))[0].shape == (2, 3)
        assert numpy(porting.bridge(layer)(porting.bridge(layer).params, X))[0].shape == (2, 2)


LAYER = torch.nn.Linear(3, 2)
NEEDS_VALUES = {
    "a number": lambda x: LAYER(x).sum() * float(x.sum()),
    "a branch": lambda x: (LAYER(x) if x.sum() > 0 else x).sum(),
    "an array": lambda x: (LAYER(x) * torch.from_numpy(x.detach().numpy()[:, :2])).sum(),
    "a parameter itself": lambda x: (LAYER.bias, x * x.sum().item()),
    "inside of a custom function": lambda x: Scaled.apply(LAYER(x)).sum(),
}


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * float(x.sum())

    @staticmethod
    def backward(ctx, upstream):
        return upstream


@pytest.mark.parametrize("name", NEEDS_VALUES)
@pytest.mark.parametrize("active", ["jax", "tensorflow"])
def test_a_parameter_that_is_closed_over_is_refused_where_values_are_needed(active, name):
    f = porting.bridge(NEEDS_VALUES[name], "torch")
    first = lambda x: ops.sum(f(x)[0] if name == "a parameter itself" else f(x))
    with multiop.use_backend(active):
        with pytest.raises(errors.ClosedOverError, match="pass the parameter as an argument"):
            f(X)
        if active == "tensorflow":  # JAX differentiates without values
            with pytest.raises(errors.ClosedOverError, match="pass the parameter as an argument"):
                multiop.grad(first)(X)


@pytest.mark.parametrize("active", ["torch", "jax"])
def test_a_variable_of_tensorflow_that_is_closed_over_is_refused(active):
    w, frozen = tf.Variable([[1.0], [2.0], [3.0]]), tf.Variable(2.0, trainable=False)
    functions = {
        "eager": lambda x: tf.reduce_sum(x @ w),
        "compiled": tf.function(lambda x: tf.reduce_sum(x @ w)),
        "values": lambda x: tf.reduce_sum(x @ w) * float(x[0, 0]),
    }
    with multiop.use_backend(active):
        for name, function in functions.items():
            for way in [lambda f: f] + [multiop.grad] * (name != "values" or active == "torch"):
                with pytest.raises(errors.ClosedOverError, match="pass the parameter as an argument"):
                    way(porting.bridge(function, "tensorflow"))(X)
        shape_alone = porting.bridge(lambda x: tf.reduce_sum(x) * frozen * w.shape[0], "tensorflow")
        assert numpy(multiop.grad(shape_alone)(X))[0].tolist() == np.full_like(X, 6).tolist()


def test_another_branch_may_close_over_a_parameter():
    f = porting.bridge(NEEDS_VALUES["a branch"], "torch")
    with multiop.use_backend("tensorflow"):
        assert float(f(-2 * np.abs(X))) < 0
        with pytest.raises(errors.ClosedOverError):
            f(X)


def test_an_argument_that_is_written_into_is_told():
    f = porting.bridge(lambda x: x.add_(1), "torch")
    with multiop.use_backend("jax"), pytest.raises(errors.ArgumentError, match="writes into an argument"):
        f(np.array([1, 2], "int32"))


def test_values_that_decide_are_seen_eagerly(backend):
    """A function that looks at values has no specs, and needs none where the values are there."""
    f = porting.bridge(lambda x: x * 2 if float(x[0]) > 0 else x * 3, "tensorflow" if backend == "torch" else "torch")
    assert numpy(f(np.float32([1, 2])))[0].tolist() == [2, 4]
    assert numpy(f(np.float32([-1, -2])))[0].tolist() == [-3, -6]


def test_an_error_of_the_function_is_its_own(backend):
    def broken(x):
        raise KeyError("inside")

    f = porting.bridge(broken, another_than(backend))
    for call in (f, multiop.jit(f)):
        with pytest.raises(KeyError, match="inside"):
            call(X)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: porting.bridge(3, "torch"), errors.ArgumentTypeError, "function must be callable"),
        (lambda: porting.bridge(abs, "numpy"), errors.ArgumentError, "backend must be one of torch, jax, tensorflow"),
        (lambda: porting.bridge(abs), errors.ArgumentError, "backend must say which framework"),
        (lambda: porting.bridge(torch.nn.ReLU(), "jax"), errors.ArgumentError, "the model is one of torch"),
        (lambda: porting.bridge(abs, "torch")("text"), errors.ArgumentTypeError, "pytrees of tensors, got 'text'"),
        (lambda: porting.bridge(abs, "torch")(None), errors.ArgumentTypeError, "pytrees of tensors"),
    ],
)
def test_bad_arguments(make, error, words):
    with multiop.use_backend("jax"), pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_a_foreign_function_has_the_pattern_that_is_said_of_it_in_a_sparse_jacobian(backend):
    said = np.eye(3) + np.eye(3)[::-1]
    dense = np.ones((3, 3))
    with multiop.use_backend(backend):
        x = ops.convert_to_tensor(X.ravel())
        for pattern, block in ((said, said != 0), (None, dense != 0)):
            inside = porting.foreign(lambda x: torch.sin(x) * x.flip(0), "torch", pattern)
            J = multiop.sparse_jacobian(lambda x, f=inside: ops.concatenate([f(x[:3]), x[3:] ** 2]), x)
            wanted = np.diag(np.arange(6) >= 3)
            wanted[:3, :3] = block
            np.testing.assert_array_equal(J.pattern.toarray(), wanted)
            v, w = X.ravel()[:3], X.ravel()[2::-1]
            values = np.diag([*(np.cos(v) * w), *(2 * X.ravel()[3:])])
            values[:3, :3] += np.diag(np.sin(v))[:, ::-1]
            np.testing.assert_allclose(J(x).toarray(), values, rtol=1e-5, atol=1e-6)


@pytest.mark.cross
def test_what_cannot_cross_is_named():
    torch, tf = pytest.importorskip("torch"), pytest.importorskip("tensorflow")
    x = np.ones((2, 2), "float32")
    float8 = tf.dtypes.experimental.float8_e5m2
    functions = [
        (
            "tensorflow",
            "torch",
            lambda x: x.to(torch.float8_e5m2),
            errors.DTypeError,
            "TensorFlow hands over no float8",
        ),
        ("torch", "tensorflow", lambda x: tf.cast(x, float8), errors.DTypeError, "TensorFlow hands over no float8"),
        ("numpy", "torch", lambda x: x.to_sparse(), errors.ArgumentTypeError, "layout torch.sparse_coo .*to_dense"),
        ("numpy", "tensorflow", tf.sparse.from_dense, errors.ArgumentTypeError, "SparseTensor is not a dense"),
    ]
    for here, there, function, error, told in functions:
        with multiop.use_backend(here), pytest.raises(error, match=told):
            porting.bridge(function, there)(x)
