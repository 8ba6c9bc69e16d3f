"""Weights as they are published: in several files, in half precision, with a prefix, tied, adapted."""

import json

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from safetensors.torch import save_file

import multiop
from multiop import porting
from multiop.errors import ArgumentError


class Model(torch.nn.Module):
    """Predict the next word; the head has the embedding's weights."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(7, 4)
        self.mix = torch.nn.Linear(4, 4)
        self.head = torch.nn.Linear(4, 7, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x):
        return self.head(torch.tanh(self.mix(self.embedding(x))))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Model()


def published(model):
    """Return the tensors that a file holds: a tied one once."""
    tensors = {name: x.detach().clone() for name, x in model.state_dict().items()}
    del tensors["head.weight"]
    return tensors


def sharded(folder, tensors, index=True):
    names = list(tensors)
    files = {}
    for n, part in enumerate((names[:1], names[1:]), 1):
        file = f"model-{n:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file)
        files |= dict.fromkeys(part, file)
    if index:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_folder_of_several_files(index, dtype, model, tmp_path):
    tensors = {name: x.to(dtype) for name, x in published(model).items()}
    sharded(tmp_path, tensors, index)
    weights = porting.read_weights(tmp_path, like=model.to(dtype))
    assert set(weights.arrays) == set(model.state_dict())
    for name, x in model.state_dict().items():
        assert weights.arrays[name].dtype == (ml_dtypes.bfloat16 if dtype is torch.bfloat16 else np.float32)
        np.testing.assert_array_equal(weights.arrays[name].astype("float64"), x.detach().double())
    if index:
        read = porting.read_weights(tmp_path / "model.safetensors.index.json")
        assert set(read.arrays) == set(tensors)


def test_what_a_folder_lacks_is_named(model, tmp_path):
    sharded(tmp_path, published(model))
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises((ArgumentError, FileNotFoundError), match="model-00002-of-00002"):
        porting.read_weights(tmp_path)
    (tmp_path / "model.safetensors.index.json").unlink()
    with pytest.raises(ArgumentError, match="1 of 2 parts"):
        porting.read_weights(tmp_path, like=model)
    with pytest.raises(ArgumentError, match="no .safetensors"):
        porting.read_weights(tmp_path.parent / tmp_path.name / "..", like=model)


def test_several_checkpoints_in_a_folder(model, tmp_path):
    for name in ("a", "b"):
        save_file(published(model), tmp_path / f"{name}.safetensors")
    with pytest.raises(ArgumentError, match=r"several checkpoints, name one: a.safetensors, b.safetensors"):
        porting.read_weights(tmp_path)


@pytest.mark.parametrize(("theirs", "ours"), [("", "model."), ("model.", ""), ("net.model.", "")])
def test_a_prefix(theirs, ours, model, tmp_path):
    wanted = {ours + name: x.detach().numpy() for name, x in model.state_dict().items()}
    save_file({theirs + name: x.clone() for name, x in model.state_dict().items()}, tmp_path / "m.safetensors")
    weights = porting.read_weights(tmp_path, like=porting.read_weights(wanted))
    for name, x in wanted.items():
        np.testing.assert_array_equal(weights.arrays[name], x)


def test_another_model_has_no_prefix_alone(model, tmp_path):
    save_file({f"other.{name}x": x for name, x in published(model).items()}, tmp_path / "m.safetensors")
    with pytest.raises(ArgumentError, match=r"embedding.weight, .* missing"):
        porting.read_weights(tmp_path, like=model)


def test_a_port_takes_a_checkpoint_without_its_tied_head(model, tmp_path):
    x = torch.tensor([[1, 2, 6]])
    port = porting.trace(model, x)
    later = Model()
    sharded(tmp_path, published(later))
    ported = port.with_weights(tmp_path)
    y, _ = ported.function(ported.params, ported.state, x.numpy())
    np.testing.assert_allclose(multiop.op_convert_to_numpy(y), later(x).detach().numpy(), rtol=1e-6, atol=1e-6)


class Adapted(torch.nn.Module):
    """A dense layer with a low-rank adapter beside it."""

    def __init__(self, layer, a, b, scale):
        super().__init__()
        self.layer, self.a, self.b, self.scale = layer, a, b, scale

    def forward(self, x):
        return self.layer(x) + self.scale * torch.nn.functional.linear(torch.nn.functional.linear(x, self.a), self.b)


def adapter(folder, tensors, **config):
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "lora_alpha": 6, "r": 2} | config))
    return folder


@pytest.mark.parametrize(
    ("config", "scale"),
    [({}, 3.0), ({"use_rslora": True}, 6 / 2**0.5), ({"alpha_pattern": {"mix": 10}}, 5.0)],
    ids=["plain", "rslora", "pattern"],
)
def test_an_adapter_is_merged(config, scale, model, tmp_path):
    a, b = torch.randn(2, 4), torch.randn(4, 2)
    names = ("base_model.model.mix.lora_A.weight", "base_model.model.mix.lora_B.weight")
    merged = porting.merge_adapter(model, adapter(tmp_path / "lora", dict(zip(names, (a, b), strict=True)), **config))
    x = torch.randn(5, 4)
    expected = Adapted(model.mix, a, b, scale)(x)
    kernel, bias = (torch.tensor(merged.params["mix"][leaf]) for leaf in ("weight", "bias"))
    torch.testing.assert_close(torch.nn.functional.linear(x, kernel, bias), expected)
    np.testing.assert_array_equal(merged.params["embedding"]["weight"], model.embedding.weight.detach())


def test_adapters_of_convolutions_embeddings_and_turned_kernels(tmp_path):
    base = {
        "conv.weight": torch.randn(3, 2, 3, 3),
        "table.weight": torch.randn(7, 4),
        "turned.weight": torch.randn(4, 6),
    }
    tensors = {
        "base_model.model.conv.lora_A.weight": torch.randn(2, 2, 3, 3),
        "base_model.model.conv.lora_B.weight": torch.randn(3, 2, 1, 1),
        "base_model.model.table.lora_embedding_A": torch.randn(2, 7),
        "base_model.model.table.lora_embedding_B": torch.randn(4, 2),
    }
    merged = porting.merge_adapter(base, adapter(tmp_path / "lora", tensors)).arrays
    x = torch.randn(1, 2, 5, 5)
    conv2d = torch.nn.functional.conv2d
    a, b = (tensors[f"base_model.model.conv.lora_{part}.weight"] for part in "AB")
    expected = conv2d(x, base["conv.weight"]) + 3 * conv2d(conv2d(x, a), b)
    torch.testing.assert_close(conv2d(x, torch.tensor(merged["conv.weight"])), expected, rtol=1e-4, atol=1e-4)
    a, b = (tensors[f"base_model.model.table.lora_embedding_{part}"] for part in "AB")
    torch.testing.assert_close(torch.tensor(merged["table.weight"])[3], base["table.weight"][3] + 3 * b @ a[:, 3])
    tensors = {
        "base_model.model.turned.lora_A.weight": torch.randn(2, 4),
        "base_model.model.turned.lora_B.weight": torch.randn(6, 2),
    }
    merged = porting.merge_adapter(base, adapter(tmp_path / "other", tensors, fan_in_fan_out=True)).arrays
    a, b = tensors.values()
    x = torch.randn(5, 4)
    torch.testing.assert_close(x @ torch.tensor(merged["turned.weight"]), x @ base["turned.weight"] + 3 * x @ a.T @ b.T)


def test_an_adapter_that_does_not_fit_is_refused(model, tmp_path):
    pair = {f"base_model.model.other.lora_{part}.weight": torch.zeros(2, 2) for part in "AB"}
    with pytest.raises(ArgumentError, match=r"changes other.weight, which the weights do not have"):
        porting.merge_adapter(model, adapter(tmp_path / "a", pair))
    with pytest.raises(ArgumentError, match="plain LORA, got use_dora"):
        porting.merge_adapter(model, adapter(tmp_path / "b", pair, use_dora=True))
    with pytest.raises(ArgumentError, match="plain LORA, got IA3"):
        porting.merge_adapter(model, adapter(tmp_path / "c", pair, peft_type="IA3"))
    with pytest.raises(ArgumentError, match=r"there is no adapter_config.json"):
        porting.merge_adapter(model, tmp_path)
