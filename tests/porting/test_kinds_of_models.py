"""Numbers among the outputs, complex parameters, gradients that are rounding, and errors that name what is wrong."""

from __future__ import annotations

import functools
import re
from types import SimpleNamespace

import numpy as np
import pytest

import multiop
from multiop import errors, ops, porting
from multiop.porting import _printing, _prove
from multiop.porting._graph import Dim, Graph, Infix, Node, Value


def test_a_size_is_a_factor_as_a_whole_and_may_be_returned():
    batch, more = Dim("batch", ("batch",)), Dim("batch + 1", ("batch",))
    x, y = Value((batch, 3), "float32", "input", "x"), Value((batch, 3), "float32")
    graph = Graph("Net", [x], {}, {}, [Node([y], Infix("/", x, more))], (y, more), {}, "PyTorch")
    source = _printing.source(graph, "net")
    assert "x / (batch + 1)" in source
    assert "batch = ops.shape(x)[0]" in source


def test_a_gradient_that_rounding_alone_has_made_is_vacuous():
    """A bias of keys in attention has no gradient; in float32, what is left of it has no digit in common."""
    kernel, bias = np.ones((2, 3), "float32"), np.zeros(3, "float32")
    x = np.ones((4, 2), "float32")

    def port(slope, expected):
        def function(params, state, x, training=False):
            return ops.matmul(x, params["kernel"]) + slope * params["bias"], state

        recorded = {"outputs": [[0.0, 24.0]], "gradients": {"kernel": [0.0, 0.0], "bias": expected}, "state": {}}
        computed = _prove.compute_port(SimpleNamespace(function=function, params=params, state={}), (x,))
        found = _prove.digest(*computed, params)
        recorded |= {"outputs": found["outputs"], "form": found["form"]}
        recorded["gradients"]["kernel"] = found["gradients"]["kernel"]
        own = {"recorded": lambda training: recorded, "inputs": lambda: (x,), "params": params, "state": {}}
        own |= {"narrowest": "", "source": "", "limits": ()}
        return SimpleNamespace(function=function, **own)

    params = {"kernel": kernel, "bias": bias}
    with multiop.use_backend("numpy"):
        rounding = porting.prove(port(1e-6, [-3e-6, 4e-6]), "numpy")
        wrong = porting.prove(port(1e-2, [3e-2, 4e-2]), "numpy")
    assert rounding.agrees and rounding.vacuous == ("bias",)
    assert not wrong.agrees and not wrong.vacuous


# form


def scaled_model():
    torch = pytest.importorskip("torch")

    class Scaled(torch.nn.Module):
        """A weight and a counter of shape (), as CLIP's logit_scale is one, and outputs in a structure."""

        def __init__(self):
            super().__init__()
            self.logit_scale = torch.nn.Parameter(torch.tensor(0.5, dtype=torch.float64))
            self.register_buffer("calls", torch.tensor(2.0, dtype=torch.float64))

        def forward(self, x):
            self.calls.add_(1.0)
            y = x * self.logit_scale.exp() + self.calls
            return {"y": y, "more": (y.sum(), y.argmax(), None)}

    return Scaled(), torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(3, 4)


def test_weights_of_no_dimensions_come_back_from_a_saved_port(tmp_path, multiop_backend):
    model, x = scaled_model()
    port = porting.trace(model, x, name="scaled")
    port.save(tmp_path)
    loaded = porting.load(tmp_path)
    assert [leaf.shape for leaf in (loaded.params["logit_scale"], loaded.state["calls"])] == [(), ()]
    porting.write_weights(model, {**loaded.params, **loaded.state})
    assert porting.prove(loaded, multiop_backend).agrees


def change(outputs=lambda y: y, state=lambda s: s):
    return lambda function: lambda *args, **options: (lambda y, s: (outputs(y), state(s)))(*function(*args, **options))


PLANTED = {  # each is none for a comparison of sums
    "shape of an output": (change(lambda o: o | {"y": ops.reshape(o["y"], (4, 3))}), r"outputs.y: float64 \(4, 3\)"),
    "an axis more": (
        change(lambda o: o | {"more": (o["more"][0][None], *o["more"][1:])}),
        r"outputs.more\[0\]: float64 \(1,\) where the original has float64 \(\)",
    ),
    "dtype of an output": (change(lambda o: o | {"y": ops.cast(o["y"], "complex128")}), "outputs.y: complex128"),
    "dtype of an index": (
        change(lambda o: o | {"more": (o["more"][0], ops.cast(o["more"][1], "float64"), None)}),
        r"outputs.more\[1\]: float64 \(\)",
    ),
    "a name": (change(lambda o: {"z": o["y"], "more": o["more"]}), "outputs: 'y' is missing"),
    "a list of dicts": (
        change(lambda o: [o["more"], o["y"]]),
        "outputs: a sequence of 2 where the original has a dict",
    ),
    "no None": (change(lambda o: o | {"more": o["more"][:2]}), r"outputs.more: a sequence of 2 where .* of 3"),
    "a text": (change(lambda o: o | {"more": (*o["more"][:2], "text")}), r"outputs.more\[2\]: 'text' .* None"),
    "shape of the state": (change(state=lambda s: {"calls": s["calls"][None]}), r"state.calls: float64 \(1,\)"),
    "dtype of the state": (change(state=lambda s: {"calls": ops.cast(s["calls"], "float32")}), "state.calls: float32"),
    "more state": (change(state=lambda s: s | {"seen": s["calls"]}), "state: 'seen' is more than the original has"),
    "less state": (change(state=lambda s: {}), "state: 'calls' is missing"),
}


def test_a_proof_compares_shapes_dtypes_and_structure(multiop_backend):
    model, x = scaled_model()
    port = porting.trace(model, x)
    function = port._function
    assert porting.prove(port, multiop_backend).agrees
    for name, (plant, told) in PLANTED.items():
        port._function = plant(function)
        proof = porting.prove(port, multiop_backend)
        assert not proof.agrees, name
        assert re.search(told, proof.form), (name, proof.form)
        assert proof.form == proof.hint
    port._function = function
    port.params["logit_scale"] = port.params["logit_scale"][None]
    assert "(1,) where the original has float64 ()" in porting.prove(port, multiop_backend).form
    port.params["logit_scale"] = port.params["logit_scale"][0]
    for kind in ("params", "gradients"):
        port._about["recorded"]["form"][kind]["logit_scale"] = "float32 ()"
        assert porting.prove(port, multiop_backend).form.startswith(f"{kind}.logit_scale: float64 ()")
        port._about["recorded"]["form"][kind]["logit_scale"] = "float64 ()"
    del port._about["recorded"]["form"]
    with pytest.raises(errors.ArgumentError, match="without shapes: trace it again"):
        porting.prove(port, multiop_backend)


# PyTorch


def lines_of(line, *inputs):
    torch = pytest.importorskip("torch")

    class Line(torch.nn.Module):
        def forward(self, *inputs):
            return line(*inputs)

    return porting.trace(Line(), *inputs)


def test_numbers_and_sizes_among_the_outputs(backend):
    torch = pytest.importorskip("torch")
    port = lines_of(lambda x: {"y": x * 2, "n": x.shape[0], "more": 2 * x.shape[0] + 1, "f": 1.5}, torch.ones(2, 3))
    with multiop.use_backend(backend):
        outputs, _ = port.function({}, {}, np.ones((5, 3), "float32"))
    assert (int(outputs["n"]), int(outputs["more"]), outputs["f"]) == (5, 11, 1.5)
    assert porting.prove(port, backend).agrees


@pytest.mark.tier("full")
def test_a_resampling_is_a_function_of_the_source():
    torch = pytest.importorskip("torch")
    grid = torch.rand(2, 4, 4, 2)
    port = lines_of(
        lambda x, grid: torch.nn.functional.grid_sample(x, grid, align_corners=False), torch.ones(2, 3, 5, 5), grid
    )
    assert len(port.source.splitlines()) < 90
    assert port.operations == 1


def of_torch(name):
    torch = pytest.importorskip("torch")
    nn, layer = torch.nn, torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    return {
        "lazy": nn.LazyLinear(3),
        "meta": nn.Linear(2, 2, device="meta"),
        "sparse": {"a": torch.eye(2).to_sparse()},
        "optimizer": optimizer,
        "a tensor": torch.ones(2),
        "quantized": {"a": torch.ones(2), "dtype": torch.qint8, "packed": torch.ones(2)},
    }[name]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lazy", "weight has no shape yet"),
        ("meta", "weight is on the meta device"),
        ("sparse", "a is sparse"),
        ("optimizer", "not the optimizer Adam"),
        ("a tensor", "not a Tensor"),
        ("quantized", "dtype: not a tensor"),
    ],
)
def test_what_holds_no_weights_of_pytorch_is_named(name, words):
    with pytest.raises(errors.ArgumentError, match=words):
        porting.read_weights(of_torch(name))
    if name in ("lazy", "meta"):
        torch = pytest.importorskip("torch")
        with pytest.raises(errors.ArgumentError, match=words):
            porting.trace(of_torch(name), torch.ones(2, 2))


# JAX


def test_the_gradient_of_complex_parameters_is_the_conjugate_of_that_of_jax(backend):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        generator = np.random.default_rng(0)
        c = jax.numpy.asarray(generator.normal(size=3) + 1j * generator.normal(size=3))

        def operator(params, x):
            return jax.numpy.fft.irfft(jax.numpy.fft.rfft(x) * params["c"])

        x = jax.numpy.asarray(generator.normal(size=(2, 4)))
        port = porting.trace(functools.partial(operator, {"c": c}), x)
        assert porting.prove(port, backend).agrees

        def total(params):
            return jax.numpy.sum(operator(params, x) * _prove.weights((2, 4)))

        native = np.asarray(jax.grad(total)({"c": c})["c"])
    with multiop.use_backend(backend):
        _, slopes, _ = _prove.compute_port(port, (np.asarray(x),))
    np.testing.assert_allclose(slopes["c"], native.conj(), rtol=1e-12, atol=1e-14)
    assert np.abs(native.imag).max() > 0.1
    wrong = _prove.digest([], {"c": native}, {}, {})["gradients"]["c"][0]
    assert abs(wrong - port.recorded()["gradients"]["c"][0]) > 1e-3  # what is recorded tells the two apart


@pytest.mark.parametrize("name", ["numpy in a scan", "a number", "a choice", "a string"])
def test_what_jax_cannot_trace_is_named(name):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def scanned(x):
        return jax.lax.scan(lambda c, r: (np.tanh(c) + r, np.asarray(c)), x[0], x)

    lines = {
        "numpy in a scan": scanned,
        "a number": lambda x: x * float(x[0, 0]),
        "a choice": lambda x: x if x[0, 0] > 0 else -x,
        "a string": lambda x: (x, "name"),
    }
    with pytest.raises(
        errors.TranslationError, match="the model returns 'name'|JAX cannot trace .*test_kinds_of_models"
    ):
        porting.trace(lines[name], jnp.ones((3, 4)))


def test_indices_out_of_range_do_what_jax_does(backend):
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def line(x, i):
        filled, clipped = x.at[i].get(mode="fill", fill_value=7.0), x.at[i].get(mode="clip")
        return filled * 2 + clipped * x[i] + x.at[i].set(filled)[:1] + jnp.take(x, i % 3, 0) + x.at[i].add(1.0)[1:2]

    x, i = np.arange(12.0, dtype="float32").reshape(3, 4), np.array([0, 5, -2, -9])
    port = porting.trace(line, jnp.asarray(x), jnp.asarray(i))

    def of(function, x):
        return multiop.value_and_grad(lambda x: ops.sum(ops.sin(function(x))))(x)

    expected = jax.value_and_grad(lambda x: jnp.sum(jnp.sin(line(x, i))))(jnp.asarray(x))
    with multiop.use_backend(backend):
        computed = of(lambda x: port.function({}, {}, x, i)[0], ops.convert_to_tensor(x))
        for got, wanted in zip(computed, expected, strict=True):
            np.testing.assert_allclose(ops.convert_to_numpy(got), np.asarray(wanted), rtol=2e-4, atol=2e-4)
