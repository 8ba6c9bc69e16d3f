"""What people do when they move a model: odd checkpoints, tied weights, a batch of one, other weights, the way back."""

import functools
import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn
from typer.testing import CliRunner

from multiop import cli, ops, porting
from multiop.errors import ArgumentError, ArgumentTypeError


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.s, self.h = nn.Embedding(4, 4), nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
        self.h.weight = self.e.weight

    def forward(self, i):
        return self.h(self.s(self.e(i)))


IDS = torch.tensor([[1, 2], [3, 0]])


@pytest.mark.parametrize("heads", [2, 4])
def test_a_batch_of_one_beside_a_mask_for_each_head(heads):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.m = nn.MultiheadAttention(4, heads, batch_first=True)

        def forward(self, x, mask):
            return self.m(x, x, x, attn_mask=mask)[0]

    model = Model().eval().double()
    x, mask = torch.randn(1, 5, 4).double(), torch.ones(heads, 5, 5, dtype=torch.bool).triu(1)
    port = porting.trace(model, x, mask)
    seen = port.function(port.params, port.state, x.numpy(), mask.numpy())[0]
    np.testing.assert_allclose(ops.convert_to_numpy(seen), model(x, mask).detach(), 1e-9)
    assert porting.prove(port, "numpy").agrees


def test_a_size_of_one_that_the_model_needs_stays_one():
    class Model(nn.Module):
        def forward(self, x, w):
            return x.reshape(1, 6) + w.reshape(2, 3).sum()

    x, w = torch.arange(6.0).reshape(1, 2, 3), torch.ones(6)
    port = porting.trace(Model(), x, w)
    np.testing.assert_array_equal(ops.convert_to_numpy(port.function({}, {}, x.numpy(), w.numpy())[0]), Model()(x, w))


@pytest.mark.parametrize("kind", [nn.BatchNorm1d, nn.InstanceNorm1d, nn.BatchNorm2d])
def test_a_normalization_as_the_whole_model(kind):
    model = kind(3, affine=True, track_running_stats=True).double()
    x = torch.randn(5, 3, 4, 2).double() if kind is nn.BatchNorm2d else torch.randn(5, 3, 4).double()
    port = porting.trace(model, x, training=True)
    assert all(porting.prove(port, "numpy", mode).agrees for mode in port.modes)


def test_tied_weights_on_the_way_back():
    model, other = Tied(), Tied()
    tuned = porting.trace(model, IDS).as_module("torch")
    assert porting.write_weights(other, porting.read_weights(tuned)).h.weight is other.e.weight
    np.testing.assert_array_equal(other.e.weight.detach(), model.e.weight.detach())
    torn = model.state_dict() | {"h.weight": model.e.weight.detach() + 1}
    with pytest.raises(ArgumentError, match=r"e.weight and h.weight are one tensor of the model, and differ"):
        porting.write_weights(other, torn)


@pytest.mark.parametrize("framework", ["torch", "keras", "flax"])
def test_a_port_is_mapped_to_its_original_by_name(framework):
    pytest.importorskip({"flax": "flax.nnx"}.get(framework, framework))
    model = Tied()
    tuned = porting.trace(model, IDS).as_module(framework)
    for pair in ((tuned, model), (model, tuned)):
        weight_map = porting.map_weights(*pair)
        assert not weight_map.unresolved and {row.how for row in weight_map.rows.values()} == {"name"}
    made = porting.map_weights(tuned, model).apply(tuned)
    np.testing.assert_array_equal(made.arrays["s.weight"], model.s.weight.detach())
    assert porting.map_weights(tuned, nn.Linear(4, 4)).unresolved  # another model is matched as ever


@pytest.mark.parametrize("made", ["torch", "jax"])
def test_other_weights_are_proved_while_the_original_is_at_hand(made, tmp_path):
    if made == "torch":
        model, other, inputs = Tied().double(), Tied().double(), (IDS,)
        porting.write_weights(tmp_path / "other.npz", other)
        other = tmp_path / "other.npz"
    else:
        jnp = pytest.importorskip("jax.numpy")
        model = functools.partial(lambda p, x: jnp.tanh(x @ p["w"]), {"w": jnp.ones((3, 2))})
        other, inputs = {"w": np.full((3, 2), 0.5)}, (jnp.ones((4, 3)),)
    before = porting.read_weights(model.args[0] if made == "jax" else model)
    port = porting.trace(model, *inputs)
    moved = port.with_weights(other)
    assert porting.prove(moved, "numpy").agrees and moved.modes == [False]
    assert moved.recorded() != port.recorded()
    for name, x in porting.read_weights(model.args[0] if made == "jax" else model).arrays.items():
        np.testing.assert_array_equal(x, before.arrays[name])
    moved.params = {name: {} for name in ()} | port.params  # planted: the weights of before
    assert not porting.prove(moved, "numpy").agrees


def test_names_that_wrappers_and_older_versions_give(tmp_path):
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), nn.Linear(2, 2))
    state = {name: x.numpy() for name, x in model.state_dict().items()}
    old = {
        name.replace("parametrizations.weight.original0", "weight_g").replace(
            "parametrizations.weight.original1", "weight_v"
        ): x
        for name, x in state.items()
    }
    for entries in (
        {f"module._orig_mod.{name}": x for name, x in state.items()},
        {f"_orig_mod.{name}": x for name, x in old.items()},
        {name.replace("1.", "1._orig_mod."): x for name, x in state.items()},
        old,
    ):
        np.savez(tmp_path / "odd.npz", **entries)
        found = porting.read_weights(tmp_path / "odd.npz", like=model)
        assert set(found.arrays) == set(state)
        np.testing.assert_array_equal(found.arrays["1.weight"], state["1.weight"])
        with pytest.raises(ArgumentError, match=r"read_weights\(path, like=model\)"):
            porting.write_weights(model, tmp_path / "odd.npz")


def test_files_that_cannot_be_read_are_named(tmp_path):
    torch.save({"w": torch.ones(3)}, tmp_path / "cut.pt")
    np.savez(tmp_path / "cut.npz", w=np.ones(3))
    porting.write_weights(tmp_path / "cut.safetensors", {"w": np.ones(300)})
    for path, length in itertools.product(list(tmp_path.iterdir()), (100, 0)):
        path.write_bytes(path.read_bytes()[:length])
        with pytest.raises(ArgumentError, match=rf"{path.name}: .* cannot read it: \w"):
            porting.read_weights(path)
    (tmp_path / "w.msgpack").write_bytes(b"")
    (tmp_path / "orbax").mkdir()
    (tmp_path / "orbax" / "_METADATA").write_text("{}")
    for name, package in (("w.msgpack", "flax.serialization"), ("orbax", "orbax.checkpoint")):
        with pytest.raises(ArgumentError, match=package):
            porting.read_weights(tmp_path / name)


def test_an_optimizer_is_no_model():
    model = nn.Linear(3, 2)
    with pytest.raises(ArgumentTypeError, match="got the optimizer Adam"):
        porting.trace(torch.optim.Adam(model.parameters()), torch.ones(2, 3))
    with pytest.raises(ArgumentTypeError, match="port must be .* got Adam"):
        porting.prove(torch.optim.Adam(model.parameters()))


@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_the_first_dimensions_are_opened_by_name(framework):
    package = pytest.importorskip(framework)
    if framework == "torch":
        model, x = nn.Tanh(), torch.ones(4, 5, 3)
    elif framework == "jax":
        model, x = functools.partial(lambda _, x: package.numpy.tanh(x), {}), package.numpy.ones((4, 5, 3))
    else:
        model, x = package.function(package.tanh), package.ones((4, 5, 3))
    port = porting.trace(model, x, dynamic_shapes="batch, length")
    assert "`(batch, length, 3)`" in port.source
    assert port.function({}, {}, np.ones((2, 7, 3), "float32"))[0].shape == (2, 7, 3)


COMMAND = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)

    def forward(self, x, *, scale):
        return torch.tanh(self.fc(x)) * scale

def make():
    return Net(), (torch.ones(4, 5, 3),), {"scale": torch.full((4, 5, 1), 2.0)}

def mixed():
    return torch.nn.Linear(3, 2), (torch.ones(4, 3, dtype=torch.float64),)

def raises():
    class Model(torch.nn.Module):
        def forward(self, x):
            return x * 2 if isinstance(x, torch.nn.Parameter) or torch.compiler.is_compiling() else x.nothing

    return Model(), (torch.ones(4, 3),)
"""


def test_the_command_takes_keywords_names_of_sizes_and_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "_PATIENCE", 0.05)
    (tmp_path / "made.py").write_text(COMMAND)
    wrapped = {"module.fc.weight": torch.full((2, 3), 0.25), "module.fc.bias": torch.ones(2)}
    torch.save(wrapped, tmp_path / "w.pt")
    command = ["port", "made.py::make", "--out", "out", "--backends", "numpy", "--dynamic", "batch,length"]
    result = CliRunner().invoke(cli.app, [*command, "--weights", "w.pt"])
    assert result.exit_code == 0, result.output
    assert "still tracing" in result.stderr
    port = porting.load("out")
    assert "`(batch, length, 3)`" in port.source
    np.testing.assert_array_equal(port.params["fc"]["weight"], wrapped["module.fc.weight"])
    for path in (tmp_path / "out").iterdir():
        assert path.stat().st_mode == (tmp_path / "made.py").stat().st_mode
    result = CliRunner().invoke(cli.app, ["port", "made.py::mixed", "--out", "other", "--backends", "numpy"])
    assert result.exit_code == 2 and "must have the same dtype" in result.stderr
    result = CliRunner().invoke(cli.app, ["port", "made.py::raises", "--out", "other", "--backends", "numpy"])
    assert result.exit_code == 2 and "nothing to be compared with: it raised AttributeError" in result.stderr
