"""Classes as pytrees, whoever registered them, on every backend; and those that nobody registered."""

from __future__ import annotations

import collections
import dataclasses
import types

import attrs
import numpy as np
import pytest

import multiop
from multiop import ops

HERE = ("of multiop, dataclass", "of multiop, attrs", "of multiop, functions", "of optree")
PARAMS = (*HERE, *(pytest.param(kind, marks=pytest.mark.cross) for kind in ("of jax", "of torch")))


def make(kind):
    """Return a new class with the fields `w` and `b`, registered in one of the ways."""

    @dataclasses.dataclass(frozen=True, slots=True)
    class Data:
        w: object
        b: object
        name: str = dataclasses.field(default="x", metadata={"static": True})

        def __post_init__(self):
            assert self.w.shape  # no place for `None`, for an axis or for a bare object

    @attrs.define
    class Attrs:
        w: object
        b: object
        n: int = 3

    class Plain:
        def __init__(self, w, b):
            self.w, self.b = w, b

    take, give = (lambda x: ([x.w, x.b], ["unhashable"])), (lambda metadata, children: Plain(*children))
    if kind == "of multiop, dataclass":
        return multiop.tree.register(Data)
    if kind == "of multiop, attrs":
        return multiop.tree.register(static="n")(Attrs)
    if kind == "of multiop, functions":
        return multiop.tree.register(Plain, flatten=lambda x: ([x.w, x.b], None), unflatten=give)
    if kind == "of optree":
        optree = pytest.importorskip("optree")
        return optree.register_pytree_node(Plain, lambda x: ([x.w, x.b], None), give, namespace="multiop")
    if kind == "of torch":
        pytree = pytest.importorskip("torch.utils._pytree")
        pytree.register_pytree_node(Plain, take, lambda children, context: Plain(*children))
        return Plain
    jax = pytest.importorskip("jax")
    return jax.tree_util.register_dataclass(
        dataclasses.make_dataclass("OfJax", ["w", "b", ("n", int, 2)]), data_fields=["w", "b"], meta_fields=["n"]
    )


def of_data(x):
    return ops.sum(x.w * x.w) * x.b


@multiop.op_custom_gradient
def with_rule(x):
    return of_data(x), lambda upstream: type(x)(upstream * 2 * x.w * x.b, upstream * ops.sum(x.w * x.w))


def nested(cls, x):
    return multiop.grad(lambda tree: of_data(tree["a"][0]))({"a": [x]})["a"][0]


WAYS = {  # each returns the gradient of `of_data` at w = (1, 2), b = 3
    "grad": lambda cls, x: multiop.grad(of_data)(x),
    "nested": nested,
    "jit": lambda cls, x: multiop.jit(multiop.grad(of_data))(x),
    "made in jit": lambda cls, x: multiop.jit(lambda w, b: multiop.grad(of_data)(cls(w, b)))(x.w, x.b),
    "vmap": lambda cls, x: multiop.tree.map(
        lambda g: g[1], multiop.vmap(multiop.grad(of_data))(cls(ops.stack([x.w, x.w]), ops.stack([x.b, x.b])))
    ),
    "custom gradient": lambda cls, x: multiop.grad(with_rule)(x),
    "jvp": lambda cls, x: cls(
        ops.stack([multiop.jvp(of_data, (x,), (cls(unit, ops.zeros(())),))[1] for unit in ops.eye(2)]),
        multiop.jvp(of_data, (x,), (cls(ops.zeros(2), ops.ones(())),))[1],
    ),
    "vjp": lambda cls, x: multiop.vjp(lambda x: cls(x.w * 2 * x.b, of_data(x)), x)[0],
    "checkpoint": lambda cls, x: multiop.grad(multiop.checkpoint(of_data))(x),
}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("kind", PARAMS)
def test_an_instance_of_a_registered_class_is_a_pytree(kind, way, backend):
    cls = make(kind)
    gradient = WAYS[way](cls, cls(ops.array([1.0, 2.0]), ops.array(3.0)))
    assert type(gradient) is cls
    expected = 15.0 if way == "vjp" else 5.0  # there it is the value of `of_data`
    np.testing.assert_allclose(multiop.op_convert_to_numpy(gradient.w), [6.0, 12.0])
    np.testing.assert_allclose(multiop.op_convert_to_numpy(gradient.b), expected)


@pytest.mark.parametrize("kind", PARAMS)
def test_a_scan_carries_it(kind, backend):
    cls = make(kind)
    last, _ = multiop.op_scan(lambda c, y: (cls(c.w + y, c.b), None), cls(ops.zeros(2), ops.zeros(())), ops.ones((3,)))
    assert type(last) is cls
    assert multiop.op_convert_to_numpy(last.w).tolist() == [3.0, 3.0]


@pytest.mark.cross
@pytest.mark.tier("full")
def test_torch_compile_takes_one_in_whole():
    torch = pytest.importorskip("torch")
    with multiop.use_backend("torch"):
        for kind in ("of multiop, dataclass", "of multiop, attrs", "of multiop, functions", "of torch"):
            cls = make(kind)
            x = cls(torch.tensor([1.0, 2.0]), torch.tensor(3.0))
            compiled = torch.compile(lambda x: multiop.grad(of_data)(x).w, fullgraph=True, backend="eager")
            assert compiled(x).tolist() == [6.0, 12.0]


@pytest.mark.cross
@pytest.mark.tier("full")
def test_torch_compile_takes_keys_that_do_not_sort():
    torch = pytest.importorskip("torch")
    with multiop.use_backend("torch"):
        given = {key: torch.tensor(float(k)) for k, key in enumerate([("x", 1), "b", 2, None, "a", 1])}
        f = lambda p: (multiop.tree.leaves(p), multiop.grad(lambda p: p["a"] * p[1] + p[None] * p["x", 1])(p))
        leaves, gradient = torch.compile(f, fullgraph=True, backend="eager")(given)
        assert [float(x) for x in leaves] == [float(x) for x in multiop.tree.leaves(given)]
        assert {key: float(x) for key, x in gradient.items()} == {("x", 1): 3, "b": 0, 2: 0, None: 0, "a": 5, 1: 4}


@dataclasses.dataclass(frozen=True, eq=False)
class Unregistered:
    w: object


@attrs.frozen(eq=False)
class UnregisteredAttrs:
    w: object


REFUSED = {
    "grad": lambda cls, x: multiop.grad(lambda p: ops.sum(p.w))(cls(x)),
    "jit": lambda cls, x: multiop.jit(lambda p: p.w)(cls(x)),
    "out of jit": lambda cls, x: multiop.jit(lambda x: cls(x))(x),
    "vmap": lambda cls, x: multiop.vmap(lambda p: p.w)(cls(x)),
    "out of vmap": lambda cls, x: multiop.vmap(lambda x: cls(x))(x),
    "custom gradient": lambda cls, x: multiop.op_custom_gradient(lambda p: (p.w, lambda upstream: cls(upstream)))(
        cls(x)
    ),
    "out of a custom gradient": lambda cls, x: multiop.op_custom_gradient(lambda x: (cls(x), lambda u: u.w))(x),
    "stop_gradient": lambda cls, x: multiop.op_stop_gradient(cls(x)),
    "jvp": lambda cls, x: multiop.jvp(lambda x: cls(x), (x,), (x,)),
    "scan": lambda cls, x: multiop.op_scan(lambda c, y: (c, None), cls(x), x),
}


@pytest.mark.parametrize("way", list(REFUSED))
@pytest.mark.parametrize("cls", [Unregistered, UnregisteredAttrs])
def test_the_error_about_a_class_that_is_not_registered_says_how_to_register_it(cls, way, backend):
    with pytest.raises(multiop.errors.MultiopError, match=f"make {cls.__name__} a pytree, .*multiop.tree.register"):
        REFUSED[way](cls, ops.array([1.0, 2.0]))


class Listed(list):
    """A list of another class, which is a leaf."""


HOLDERS = {
    "UserDict": lambda x: collections.UserDict(w=x),
    "mappingproxy": lambda x: types.MappingProxyType({"w": x}),
    "Listed": lambda x: Listed([1, x]),
    "ChainMap": lambda x: collections.ChainMap({}, {"w": Listed([x])}),
    "tuple of a class": lambda x: type("Pair", (tuple,), {})((x, x)),
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_a_container_that_is_no_pytree_keeps_no_tensor_unnoticed(hold, backend):
    for call in (
        lambda x: ops.stop_gradient([hold(x)]),
        lambda x: multiop.jit(lambda held: x * 2.0)(hold(x)),
        lambda x: multiop.vmap(lambda x: hold(x))(x),
        lambda x: multiop.grad(lambda p: ops.sum(p["x"]))({"x": x, "held": hold(x)}),
    ):
        with pytest.raises(multiop.errors.ArgumentTypeError):
            call(ops.array([1.0, 2.0]))
    kept = hold(3.0)
    assert ops.stop_gradient(kept) is kept


def test_keys_that_do_not_sort_have_an_order(backend):
    given = {key: ops.array(float(k)) for k, key in enumerate([("x", 1), "b", 2, None, "a", 1])}
    assert [float(x) for x in multiop.tree.leaves(given)] == [3, 5, 2, 4, 1, 0]
    f = lambda p: p["a"] * p[1] + p[None] * p["x", 1]
    found = multiop.grad(f)(given)
    assert {key: float(x) for key, x in found.items()} == {("x", 1): 3, "b": 0, 2: 0, None: 0, "a": 5, 1: 4}
    assert list(found) == list(given)
    if backend == "jax":
        with pytest.raises(multiop.errors.UnsupportedError, match="these do not sort"):
            multiop.jit(multiop.grad(f))(given)
    else:
        assert [float(x) for x in multiop.jit(multiop.grad(f))(given).values()] == [float(x) for x in found.values()]


def test_flatten_unflatten_leaves_and_map():
    Pair = collections.namedtuple("Pair", "x y")
    tree = {"b": Pair(1, [None, 2]), "a": (3,)}
    leaves, treedef = multiop.tree.flatten(tree)
    assert leaves == multiop.tree.leaves(tree) == [3, 1, None, 2]
    assert multiop.tree.unflatten(treedef, leaves) == tree
    assert multiop.tree.flatten({"a": (0,), "b": Pair(0, [0, 0])})[1] == treedef
    assert multiop.tree.map(lambda x, y: (x, y), [1, 2], [3, (4, 5)]) == [(1, 3), (2, (4, 5))]
    with pytest.raises(multiop.errors.ArgumentError, match=r"tree.map: the pytrees must have one structure"):
        multiop.tree.map(lambda x, y: x, [1, 2], [3])
    with pytest.raises(multiop.errors.ArgumentError, match="got 2 leaves for a pytree of 4"):
        multiop.tree.unflatten(treedef, [1, 2])


def test_what_register_refuses():
    @dataclasses.dataclass
    class Params:
        weight: int

    refused = pytest.raises(multiop.errors.MultiopError, match="static names 'wieght', .* did you mean 'weight'")
    with refused:
        multiop.tree.register(Params, static="wieght")
    multiop.tree.register(Params)
    with pytest.raises(multiop.errors.ArgumentError, match="Params is registered already"):
        multiop.tree.register(Params)
    with pytest.raises(multiop.errors.ArgumentTypeError, match="neither a dataclass nor a class of attrs"):
        multiop.tree.register(type("Other", (), {}))
    with pytest.raises(multiop.errors.ArgumentTypeError, match="both flatten and unflatten"):
        multiop.tree.register(type("Other", (), {}), flatten=lambda x: ([], None))
    with pytest.raises(multiop.errors.ArgumentTypeError, match="must be a class"):
        multiop.tree.register(3)


def test_a_class_may_be_registered_after_an_instance_of_it_was_a_leaf():
    @dataclasses.dataclass
    class Late:
        x: int

    assert multiop.tree.leaves([Late(1)]) == [Late(1)]
    multiop.tree.register(Late)
    assert multiop.tree.leaves([Late(1)]) == [1]


@pytest.mark.once
def test_a_field_is_named_in_an_error(backend):
    params = make("of multiop, dataclass")(ops.array([1.0]), ops.array(1))
    with pytest.raises(multiop.errors.DTypeError, match=r"argument 0 \(p\)\.b has dtype int32"):
        multiop.grad(lambda p: ops.sum(p.w))(params)


@pytest.mark.cross
@pytest.mark.tier("full")
def test_a_model_of_equinox_and_a_state_of_flax_are_pytrees():
    jax = pytest.importorskip("jax")
    equinox, nnx = pytest.importorskip("equinox"), pytest.importorskip("flax.nnx")
    with multiop.use_backend("jax"):
        layer = equinox.nn.Linear(2, 1, key=jax.random.key(0))
        gradient = multiop.grad(lambda layer: layer(ops.array([1.0, 2.0]))[0])(layer)
        assert gradient.weight.tolist() == [[1.0, 2.0]]
        assert gradient.bias.tolist() == [1.0]
        graph, state = nnx.split(nnx.Linear(2, 1, rngs=nnx.Rngs(0)))
        gradient = multiop.grad(lambda state: ops.sum(nnx.merge(graph, state)(ops.array([[1.0, 2.0]]))))(state)
        assert gradient["kernel"][...].tolist() == [[1.0], [2.0]]
