"""The tables of names that people bring along: each name exists where it is said to, and both sides of a row agree.

A library that is not installed leaves its rows out; autograd is in no environment of the project's own.
"""

import importlib
import inspect
import re
import sys
import unittest.mock

import numpy as np
import pages
import pytest

import multiop
from multiop import ops

pytestmark = pytest.mark.tier("full")

# a page, the head of its table, and the modules of its names, by what these begin with
TABLES = {
    "howto/tensorflow.md": ("TensorFlow", {"tf": ["tensorflow"], "tape": ["tensorflow.GradientTape"]}),
    "howto/jax.md": (
        "JAX, `torch.func`",
        {
            "": [
                *("jax", "jax.numpy", "jax.tree_util", "jax.random", "torch.Tensor", "torch.utils.checkpoint"),
                "torch.func",
            ],
            "lax": ["jax.lax"],
            "nn": ["jax.nn"],
            "random": ["jax.random"],
            "config": ["jax.config"],
            "jax": ["jax"],
            "torch": ["torch"],
            "F": ["torch.nn.functional"],
        },
    ),
    "howto/autograd.md": ("autograd", {"": ["autograd", "autograd.extend"], "autograd": ["autograd"]}),
    "keras.md": ("Keras", {"keras": ["keras"], "ops": ["keras.ops"], "tf": ["tensorflow"], "jax": ["jax"]}),
}
# what stands in the first column beside names: options, a method of any model, a module by its alias, an index
NO_NAMES = {
    *("persistent=True", "watch_accessed_variables", "jit_compile=True", "in_dims", "static_argnums", "donate_argnums"),
    *("x.at[i].set(v)", "x[i] = v", "jnp", "fit", "train_step", "backward", "torch", "tf.distribute", "jit_compile"),
}


def rows(page):
    """Return the rows of a page's table, as the code in the first and in the second column."""
    head = TABLES[page][0]
    lines = (pages.DOCS / page).read_text(encoding="utf-8").partition(f"\n| {head} | ")[2].splitlines()[2:]
    cells = [line.strip("|").split(" | ") for line in lines[: lines.index("")]]
    return [[re.findall("`([^`]+)`", cell) for cell in row] for row in cells]


def found(module, name):
    """Return what a dotted path names, of which the first parts are modules."""
    parts = f"{module}.{name}".split(".")
    here = pytest.importorskip(parts[0])
    for n, part in enumerate(parts[1:], 2):
        if not hasattr(here, part):
            importlib.import_module(".".join(parts[:n]))
        here = getattr(here, part)
    return here


def is_found(module, name):
    try:
        return found(module, name) is not None
    except (AttributeError, ImportError):
        return False


X = np.array([0.5, -1.0, 2.0], "float32")
M = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]], "float32")
V = np.array([1.0, 0.5, -2.0], "float32")


def t(x):
    return ops.convert_to_tensor(x)


def cube(x):
    return ops.sum(x**3)


def curve(x):
    return ops.sin(x) * ops.flip(x)


def _tape(tf, get, x=X, f=lambda tf, x: tf.sin(x) * x[::-1], **options):
    x = tf.constant(x)
    with tf.GradientTape(**options) as tape:
        tape.watch(x)
        y = f(tf, x)
    return get(tape, y, x)


def _our_tape(get, **options):
    with multiop.GradientTape(**options) as tape:
        x = tape.watch(t(X))
        y = curve(x)
    return get(tape, y, x)


def _forward(tf):
    x = tf.constant(X)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(V)) as accumulator:
        y = tf.sin(x) * x[::-1]
    return accumulator.jvp(y)


def _clipped(custom_gradient, identity, clip):
    return custom_gradient(lambda x: (identity(x), lambda upstream: clip(upstream, -1.0, 1.0)))


def _ours_clipped(x):
    return _clipped(multiop.op_custom_gradient, ops.copy, ops.clip)(x)


TENSORFLOW = {
    "tf.custom_gradient": (
        lambda tf: _tape(
            tf,
            lambda tape, y, x: tape.gradient(y, x),
            f=lambda tf, x: 5 * _clipped(tf.custom_gradient, tf.identity, tf.clip_by_value)(x),
        ),
        lambda: multiop.grad(lambda x: ops.sum(5 * _ours_clipped(x)))(t(X)),
    ),
    "tf.stop_gradient": (
        lambda tf: _tape(tf, lambda tape, y, x: tape.gradient(y, x), f=lambda tf, x: x * tf.stop_gradient(x)),
        lambda: multiop.grad(lambda x: ops.sum(x * ops.stop_gradient(x)))(t(X)),
    ),
    "tf.gradients": (
        lambda tf: tf.function(lambda x: tf.gradients(tf.sin(x), x))(tf.constant(X)),
        lambda: _gradients(),
    ),
    "persistent=True": (
        lambda tf: _tape(tf, lambda tape, y, x: [tape.gradient(y, x) for _ in "ab"], persistent=True),
        lambda: _our_tape(lambda tape, y, x: [tape.gradient(y, x) for _ in "ab"], persistent=True),
    ),
    "watch_accessed_variables": (
        lambda tf: _tape(tf, lambda tape, y, x: tape.gradient(y, x), watch_accessed_variables=False),
        lambda: _our_tape(lambda tape, y, x: tape.gradient(y, x), watch_accessed_variables=False),
    ),
    "tape.jacobian": (
        lambda tf: _tape(tf, lambda tape, y, x: tape.jacobian(y, x)),
        lambda: multiop.jacrev(curve)(t(X)),
    ),
    "tape.batch_jacobian": (
        lambda tf: _tape(tf, lambda tape, y, x: tape.batch_jacobian(y, x), M, lambda tf, x: x * x[:, ::-1]),
        lambda: multiop.vmap(multiop.jacrev(lambda x: x * ops.flip(x)))(t(M)),
    ),
    "tf.autodiff.ForwardAccumulator": (_forward, lambda: multiop.jvp(curve, (t(X),), (t(V),))[1]),
    "tf.recompute_grad": (
        lambda tf: _tape(tf, lambda tape, y, x: tape.gradient(y, x), f=lambda tf, x: tf.recompute_grad(tf.sin)(x)),
        lambda: multiop.grad(lambda x: ops.sum(multiop.checkpoint(ops.sin)(x)))(t(X)),
    ),
    "tf.function": (
        lambda tf: tf.function(lambda x: tf.sin(x) * x[::-1], jit_compile=True)(tf.constant(X)),
        lambda: multiop.jit(curve)(t(X)),
    ),
    "tf.vectorized_map": (
        lambda tf: tf.vectorized_map(tf.reduce_sum, tf.constant(M)),
        lambda: multiop.vmap(ops.sum)(t(M)),
    ),
    "tf.map_fn": (lambda tf: tf.map_fn(tf.reduce_sum, tf.constant(M)), lambda: ops.map(ops.sum, t(M))),
    "tf.while_loop": (
        lambda tf: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, tf.constant(X)))[1],
        lambda: ops.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, t(X)))[1],
    ),
    "tf.cond": (
        lambda tf: tf.cond(tf.constant(True), lambda: tf.constant(X), lambda: tf.constant(V)),
        lambda: ops.cond(t(True), lambda: t(X), lambda: t(V)),
    ),
    "tf.scan": (
        lambda tf: tf.scan(lambda carry, x: carry + x, tf.constant(X), tf.constant(0.0)),
        lambda: ops.scan(lambda carry, x: (carry + x, carry + x), t(0.0), t(X))[1],
    ),
    "tf.constant": (lambda tf: tf.constant(X), lambda: ops.convert_to_tensor(X)),
    "tf.convert_to_tensor": (lambda tf: tf.convert_to_tensor([1, 2]), lambda: ops.convert_to_tensor([1, 2])),
    "tf.identity": (lambda tf: tf.identity(X), lambda: ops.copy(t(X))),
    "tf.nest": (
        lambda tf: tf.nest.map_structure(lambda x: 2 * x, {"b": X, "a": (V,)}),
        lambda: multiop.tree.map(lambda x: 2 * x, {"b": X, "a": (V,)}),
    ),
    "tf.random.Generator": (
        lambda tf: tf.random.Generator.from_seed(1).normal((2, 3)).shape.as_list(),
        lambda: tuple(multiop.random.normal((2, 3), seed=multiop.random.SeedGenerator(1)).shape),
    ),
    "tf.random.stateless_normal": (
        lambda tf: tf.random.stateless_normal((2, 3), (1, 2)).shape.as_list(),
        lambda: tuple(multiop.random.normal((2, 3), seed=multiop.random.key(1)).shape),
    ),
    "tf.reduce_sum": (lambda tf: tf.reduce_sum(M, 1), lambda: ops.sum(t(M), 1)),
    "tf.concat": (lambda tf: tf.concat([X, V], 0), lambda: ops.concatenate([t(X), t(V)], 0)),
    "tf.gather": (lambda tf: tf.gather(M, [2, 0]), lambda: ops.take(t(M), [2, 0], 0)),
}


def _gradients():
    x = t(X)
    with multiop.GradientTape() as tape:
        x = tape.watch(x)
        y = ops.sin(x)
    return [tape.gradient(y, x)]


def _at_x(transform):
    """Return a row of a transform of a function of one argument."""
    return (
        lambda jax: getattr(jax, transform)(_their_function(jax, transform))(X),
        lambda: getattr(multiop, transform)(cube if transform in SCALAR else curve)(t(X)),
    )


SCALAR = {"grad", "value_and_grad", "hessian"}


def _their_function(jax, transform):
    jnp = jax.numpy
    return (lambda x: jnp.sum(x**3)) if transform in SCALAR else lambda x: jnp.sin(x) * x[::-1]


def _rule_of_jax(jax):
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, upstream: (jax.numpy.clip(upstream, -1, 1),))
    return jax.grad(lambda x: jax.numpy.sum(5 * f(x)))(X)


def _forward_rule_of_jax(jax):
    f = jax.custom_jvp(lambda x: x**2)
    f.defjvp(lambda primals, tangents: (primals[0] ** 2, 3 * tangents[0]))
    return jax.jvp(f, (X,), (V,))[1]


def _rule_of_torch(_):
    torch = pytest.importorskip("torch")

    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, upstream):
            return upstream.clip(-1, 1)

    x = torch.tensor(X, requires_grad=True)
    (5 * Clipped.apply(x)).sum().backward()
    return x.grad.numpy()


def _our_rule():
    return multiop.grad(lambda x: ops.sum(5 * _ours_clipped(x)))(t(X))


def _our_pullback():
    value, pullback = multiop.vjp(curve, t(X))
    return value, pullback(t(V))


def _their_pullback(jax):
    value, pullback = jax.vjp(_their_function(jax, "vjp"), X)
    return value, pullback(V)


def _sum_of_torch(transform):
    torch = pytest.importorskip("torch")
    return transform(torch, torch.tensor(M)).numpy()


def _entropy_of_torch(_):
    torch = pytest.importorskip("torch")
    return torch.nn.functional.cross_entropy(torch.tensor(M), torch.tensor([0, 1, 0])).numpy()


JAX = {
    **{name: _at_x(name) for name in ("grad", "value_and_grad", "jacrev", "jacfwd", "hessian")},
    "vjp": (_their_pullback, _our_pullback),
    "jvp": (
        lambda jax: jax.jvp(_their_function(jax, "jvp"), (X,), (V,)),
        lambda: multiop.jvp(curve, (t(X),), (t(V),)),
    ),
    "linearize": (
        lambda jax: jax.linearize(_their_function(jax, "jvp"), X)[1](V),
        lambda: multiop.linearize(curve, t(X))[1](t(V)),
    ),
    "checkpoint": (
        lambda jax: jax.grad(jax.checkpoint(lambda x: jax.numpy.sum(x**3)))(X),
        lambda: multiop.grad(multiop.checkpoint(cube))(t(X)),
    ),
    "vmap(in_axes, out_axes)": (
        lambda jax: jax.vmap(lambda x, y: x * y, (0, None), 1)(M, 2.0),
        lambda: multiop.vmap(lambda x, y: x * y, (0, None), 1)(t(M), t(2.0)),
    ),
    "in_dims": (
        lambda _: _sum_of_torch(lambda torch, m: torch.func.vmap(torch.sum, in_dims=1)(m)),
        lambda: multiop.vmap(ops.sum, in_axes=1)(t(M)),
    ),
    "static_argnums": (
        lambda jax: jax.jit(lambda x, n: x**n, static_argnums=1, donate_argnums=0)(jax.numpy.array(X), 3),
        lambda: multiop.jit(lambda x, n: x**n, static_argnums=1, donate_argnums=0)(t(X), 3),
    ),
    "custom_vjp": (_rule_of_jax, _our_rule),
    "custom_jvp": (
        _forward_rule_of_jax,
        lambda: multiop.jvp(multiop.op_custom_gradient(lambda x: (x**2, lambda u: 3 * u)), (t(X),), (t(V),))[1],
    ),
    "torch.autograd.Function": (_rule_of_torch, _our_rule),
    "lax.stop_gradient": (
        lambda jax: jax.grad(lambda x: jax.numpy.sum(x * jax.lax.stop_gradient(x)))(X),
        lambda: multiop.grad(lambda x: ops.sum(x * ops.stop_gradient(x)))(t(X)),
    ),
    "lax.scan": (
        lambda jax: jax.lax.scan(lambda carry, x: (carry + x, carry * x), 0.0, X),
        lambda: ops.scan(lambda carry, x: (carry + x, carry * x), t(0.0), t(X)),
    ),
    "lax.cond": (
        lambda jax: jax.lax.cond(True, lambda x: x, lambda x: -x, X),
        lambda: ops.cond(t(True), lambda x: x, lambda x: -x, t(X)),
    ),
    "lax.while_loop": (
        lambda jax: jax.lax.while_loop(lambda x: x < 9, lambda x: 2 * x, 1.0),
        lambda: ops.while_loop(lambda x: x < 9, lambda x: 2 * x, t(1.0)),
    ),
    "lax.fori_loop": (
        lambda jax: jax.lax.fori_loop(0, 3, lambda i, x: x * 2, X),
        lambda: ops.fori_loop(0, 3, lambda i, x: x * 2, t(X)),
    ),
    "lax.switch": (
        lambda jax: jax.lax.switch(1, [lambda x: x, lambda x: -x], X),
        lambda: ops.switch(1, [lambda x: x, lambda x: -x], t(X)),
    ),
    "lax.map": (lambda jax: jax.lax.map(jax.numpy.sum, M), lambda: ops.map(ops.sum, t(M))),
    "lax.associative_scan": (
        lambda jax: jax.lax.associative_scan(jax.numpy.add, X),
        lambda: ops.associative_scan(ops.add, t(X)),
    ),
    "tree_map": (
        lambda jax: jax.tree_util.tree_map(lambda x: 2 * x, {"b": X, "a": (V,)}),
        lambda: multiop.tree.map(lambda x: 2 * x, {"b": X, "a": (V,)}),
    ),
    "random.key": (
        lambda jax: len(jax.random.split(jax.random.fold_in(jax.random.key(1), 2), 3)),
        lambda: len(multiop.random.split(multiop.random.fold_in(multiop.random.key(1), 2), 3)),
    ),
    "x.at[i].set(v)": (
        lambda jax: jax.numpy.array(X).at[1].set(7.0),
        lambda: ops.set_item(t(X), 1, 7.0),
    ),
    "x[i] = v": (
        lambda jax: jax.numpy.array(X).at[1].set(7.0),
        lambda: ops.scatter_update(t(X), [[1]], t(np.float32([7.0]))),
    ),
    "nn.softmax": (lambda jax: jax.nn.softmax(M), lambda: ops.softmax(t(M))),
    "nn.relu": (lambda jax: jax.nn.relu(X), lambda: ops.relu(t(X))),
    "F.cross_entropy": (
        _entropy_of_torch,
        lambda: ops.mean(ops.sparse_categorical_crossentropy(t(np.array([0, 1, 0])), t(M), from_logits=True)),
    ),
    "jnp": (
        lambda jax: jax.numpy.sum(M, axis=1, keepdims=True),
        lambda: ops.sum(t(M), axis=1, keepdims=True),
    ),
}


def f(x):
    return np.sum(np.tanh(x) ** 2)


def _their(function):
    """Return a function of autograd's NumPy that computes what ours does of NumPy's."""
    anp = importlib.import_module("autograd.numpy")
    return {"f": lambda x: anp.sum(anp.tanh(x) ** 2), "g": lambda x: anp.tanh(x) * x[::-1]}[function]


def g(x):
    return np.tanh(x) * x[::-1]


def h(a, b):
    return np.sum(a**2 * b)


def _pulled(x, v):
    y, pullback = multiop.vjp(g, x)
    return y, pullback(v)[0]


@multiop.op_custom_gradient
def _log1pexp(x):
    return np.logaddexp(0, x), lambda upstream: upstream / (1 + np.exp(-x))


def _log1pexp_of_autograd(autograd):
    anp = importlib.import_module("autograd.numpy")
    extend = importlib.import_module("autograd.extend")
    log1pexp = extend.primitive(lambda x: anp.logaddexp(0, x))
    extend.defvjp(log1pexp, lambda value, x: lambda upstream: upstream / (1 + anp.exp(-x)))
    return autograd.grad(lambda x: anp.sum(log1pexp(x)))(X64)


@unittest.mock.patch.dict(sys.modules, {"funcsigs": inspect})  # which autograd imports there, without a dependency
def _gradients_by_name(autograd):
    return autograd.multigrad_dict(h)(a=X64, b=V64)


X64, V64 = X.astype("float64"), V.astype("float64")
AUTOGRAD = {
    "grad(f, argnum)": (lambda a: a.grad(h, 1)(X64, V64), lambda: multiop.grad(h, 1)(X64, V64)),
    "value_and_grad(f, argnum)": (
        lambda a: a.value_and_grad(h, 1)(X64, V64),
        lambda: multiop.value_and_grad(h, 1)(X64, V64),
    ),
    "grad_and_aux(f)": (
        lambda a: a.grad_and_aux(lambda x: (_their("f")(x), 7.0))(X64),
        lambda: multiop.grad(lambda x: (f(x), 7.0), has_aux=True)(X64),
    ),
    "multigrad_dict(f)": (
        _gradients_by_name,
        lambda: multiop.grad(lambda p: h(**p))({"a": X64, "b": V64}),
    ),
    "grad_named(f, name)": (
        lambda a: a.grad_named(h, "b")(X64, V64),
        lambda: multiop.grad(h, argnums=(0, 1))(X64, V64)[1],
    ),
    "elementwise_grad(f)": (
        lambda a: a.elementwise_grad(_their("g"))(X64),
        lambda: multiop.grad(lambda x: ops.sum(g(x)))(X64),
    ),
    "deriv(f)": (
        lambda a: a.deriv(_their("g"))(X64),
        lambda: multiop.jvp(g, (X64,), (np.ones_like(X64),))[1],
    ),
    "jacobian(f)": (
        lambda a: [a.jacobian(_their("g"))(X64)] * 3,
        lambda: [multiop.jacobian(g)(X64), multiop.jacrev(g)(X64), multiop.jacfwd(g)(X64)],
    ),
    "hessian(f)": (lambda a: a.hessian(_their("f"))(X64), lambda: multiop.hessian(f)(X64)),
    "make_hvp(f)(x)[0](v)": (
        lambda a: found("autograd", "differential_operators.make_hvp")(_their("f"))(X64)[0](V64),
        lambda: multiop.hvp(f, (X64,), (V64,)),
    ),
    "hessian_vector_product(f)(x, v)": (
        lambda a: a.hessian_vector_product(_their("f"))(X64, V64),
        lambda: multiop.hvp(f, (X64,), (V64,)),
    ),
    "vector_jacobian_product(f)(x, v)": (
        lambda a: a.vector_jacobian_product(_their("g"))(X64, V64),
        lambda: _pulled(X64, V64)[1],
    ),
    "make_vjp(f)(x)": (
        lambda a: (lambda pullback, y: [y, pullback(V64)])(*a.make_vjp(_their("g"))(X64)),
        lambda: list(_pulled(X64, V64)),
    ),
    "make_jvp(f)(x)(v)": (
        lambda a: list(a.make_jvp(_their("g"))(X64)(V64)),
        lambda: list(multiop.jvp(g, (X64,), (V64,))),
    ),
    "checkpoint(f)": (
        lambda a: a.grad(a.checkpoint(_their("f")))(X64),
        lambda: multiop.grad(multiop.checkpoint(f))(X64),
    ),
    "primitive": (_log1pexp_of_autograd, lambda: multiop.grad(lambda x: np.sum(_log1pexp(x)))(X64)),
    "autograd.scipy.special": (
        lambda a: a.elementwise_grad(found("autograd", "scipy.special.erf"))(X64),
        lambda: multiop.grad(lambda x: np.sum(found("scipy", "special.erf")(x)))(X64),
    ),
}
KERAS = {
    "keras.ops": (lambda keras: keras.ops.softmax(M), lambda: ops.softmax(t(M))),
    "keras.ops.vectorized_map": (
        lambda keras: keras.ops.vectorized_map(keras.ops.sum, keras.ops.array(M)),
        lambda: multiop.vmap(ops.sum)(t(M)),
    ),
    "jax.grad": (
        lambda _: (lambda jax: jax.grad(lambda x: jax.numpy.sum(x**3))(X))(pytest.importorskip("jax")),
        lambda: multiop.grad(cube)(t(X)),
    ),
}
LIBRARIES = dict(zip(TABLES, ("tensorflow", "jax", "autograd", "keras"), strict=True))
PAIRS = {
    (page, name): pair
    for page, named in zip(TABLES, (TENSORFLOW, JAX, AUTOGRAD, KERAS), strict=True)
    for name, pair in named.items()
}


@pytest.mark.parametrize("page", TABLES)
def test_each_name_of_the_first_column_exists(page):
    for theirs, _ in rows(page):
        for name in [re.match(r"[\w.]*", code)[0] for code in theirs if code not in NO_NAMES]:
            first, _, rest = name.partition(".") if "." in name else ("", "", name)
            assert any(is_found(module, rest) for module in TABLES[page][1][first]), (page, name)


@pytest.mark.parametrize("page", TABLES)
def test_each_row_has_its_pair(page):
    """A row without one says that the library's own stays, or names what another row or test runs."""
    keys = {name for other, name in PAIRS if other == page}
    elsewhere = {'config.update("jax_enable_x64", True)', "ops.custom_gradient", "train_step"}
    found = [set(theirs) for theirs, ours in rows(page) if theirs and ours]
    assert [row for row in found if not row & (keys | elsewhere)] == []
    assert keys <= set().union(*found)


@pytest.mark.parametrize(("page", "name"), PAIRS)
def test_both_sides_of_a_row_agree(page, name, backend):
    if page == "howto/autograd.md" and backend != "numpy":
        pytest.skip("a function of NumPy's functions is differentiated on NumPy")
    theirs, ours = PAIRS[page, name]
    library = pytest.importorskip(LIBRARIES[page])
    expected = [np.asarray(one) for one in multiop.tree.leaves(theirs(library))]
    actual = [ops.convert_to_numpy(one) for one in multiop.tree.leaves(ours())]
    assert len(expected) == len(actual)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
