"""Models of PyTorch as source: values, gradients, statistics, and what is refused."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch_rows

import multiop
from multiop import errors, ops, porting
from multiop.porting import _weights

nn = torch.nn
F = nn.functional


class Block(nn.Module):
    def __init__(self, size, out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(size, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out, momentum=0.3, eps=1e-3)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, groups=2)
        self.bn2 = nn.BatchNorm2d(out)
        self.down = nn.Conv2d(size, out, 1, stride) if stride > 1 else None

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)), inplace=True)))
        y += x if self.down is None else self.down(x)
        return F.relu(y)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4, affine=False), nn.ReLU())
        self.blocks = nn.Sequential(Block(4, 4), Block(4, 4), Block(4, 8, 2))
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.pool(self.blocks(self.stem(x))).mean((2, 3)))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 8, padding_idx=0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3)

    def forward(self, ids):
        x = self.encoder(self.embedding(ids), src_key_padding_mask=ids == 0)
        return x @ self.embedding.weight.T


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.cross = nn.MultiheadAttention(8, 2)
        self.unusual = nn.MultiheadAttention(8, 2, add_bias_kv=True, batch_first=True)

    def forward(self, x, y):
        y, weights = self.cross(x, y, y)
        return self.unusual(x, y, x)[0], weights


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(8, 4, batch_first=True, bias=False)
        self.rnn = nn.RNN(4, 5, nonlinearity="relu", batch_first=True)

    def forward(self, x):
        x, (hidden, cell) = self.lstm(x)
        x, last = self.gru(x)
        return {"x": self.rnn(x)[0], "hidden": hidden, "cell": cell, "last": last}


class Twice(nn.Module):
    """Calls one submodule twice, and has a buffer that it changes and one that it does not."""

    def __init__(self):
        super().__init__()
        self.line = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("scale", torch.full((4,), 0.5, dtype=torch.float64))

    def forward(self, x):
        self.count += 1
        return self.line(self.line(x)) * self.scale + self.count


class Borrowing(nn.Module):
    """Has layers that call one which lies elsewhere, beside one of their own with the name that it has there."""

    class Line(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.norm, self.out = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4)
            self.register_buffer("scale", torch.arange(4.0))

        def forward(self, x):
            return self.out(torch.tanh(self.norm(self.into(x)) * self.scale))

    class Layer(nn.Module):
        def __init__(self, borrowed):
            super().__init__()
            self.borrowed, self.line = borrowed, Borrowing.Line()

        def forward(self, x):
            return self.borrowed(x) - F.relu(self.line(x)) * self.borrowed(2 * x)

    def __init__(self):
        super().__init__()
        self.line = Borrowing.Line()
        self.layers = nn.ModuleList([Borrowing.Layer(self.line) for _ in range(2)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Dense(nn.Module):
    """Gives each layer the list of all results before it."""

    class Layer(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.norm, self.line = nn.BatchNorm1d(size), nn.Linear(size, 2)

        def forward(self, features):
            return F.relu(self.line(F.relu(self.norm(torch.cat(features, 1)))))

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Dense.Layer(4 + 2 * i) for i in range(4)])

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(layer(features))
        return torch.cat(features, 1)


class Shuffled(nn.Module):
    """Mixes the channels of three groups, and averages what is left."""

    def __init__(self):
        super().__init__()
        self.conv, self.pool = nn.Conv2d(3, 6, 3, groups=3), nn.AdaptiveAvgPool2d(1)

    def forward(self, input):  # noqa: A002 - as in torchvision
        x = self.conv(input)
        batch, channels, height, width = x.shape
        x = x.view(batch, 3, channels // 3, height, width).transpose(1, 2).reshape(batch, channels, height, width)
        return torch.flatten(self.pool(x * torch.arange(6.0, dtype=x.dtype)[:, None, None]), 1)


class Counting(nn.Module):
    """Has a submodule that counts in a buffer of the module around it."""

    class Step(nn.Module):
        def __init__(self, owner):
            super().__init__()
            self.line, self.owner = nn.Linear(4, 4), [owner]
            self.register_buffer("calls", torch.zeros((), dtype=torch.float64))

        def forward(self, x):
            self.owner[0].count.add_(1)
            self.calls.add_(2)
            y = torch.tanh(self.line(x))
            return y * torch.sigmoid(y) * self.calls

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.step = Counting.Step(self)

    def forward(self, x):
        return self.step(x) + self.count


class Tied(nn.Module):
    """Has one parameter under two names."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(4, 4, bias=False), nn.Linear(4, 4)
        self.decoder.weight = self.encoder.weight

    def forward(self, x):
        return self.decoder(torch.tanh(self.encoder(x)))


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


MODELS = {
    "conv net": (ConvNet, lambda: (normal(3, 3, 16, 16),)),
    "conv net, training": (ConvNet, lambda: (normal(3, 3, 16, 16),)),
    "encoder": (Encoder, lambda: (torch.tensor([[1, 2, 0, 0], [3, 4, 5, 6], [1, 6, 0, 0]]),)),
    "attention": (Attention, lambda: (normal(5, 3, 8), normal(5, 3, 8))),
    "recurrent": (Recurrent, lambda: (normal(3, 5, 3),)),
    "tied": (Tied, lambda: (normal(3, 4),)),
    "twice": (Twice, lambda: (normal(3, 4),)),
    "borrowing": (Borrowing, lambda: (normal(3, 4),)),
    "shuffled": (Shuffled, lambda: (normal(3, 3, 6, 5),)),
    "counting": (Counting, lambda: (normal(3, 4),)),
    "dense": (Dense, lambda: (normal(5, 4),)),
    "dense, training": (Dense, lambda: (normal(5, 4),)),
}


@functools.cache
def made(name):
    make, draw = MODELS[name]
    torch.manual_seed(0)
    model, inputs = make().double(), draw()
    training = name.endswith("training")
    port = porting.trace(model, *inputs, training=training)
    return port, inputs, torch_rows.original(model, inputs, training)


@pytest.mark.parametrize("name", MODELS)
def test_values_gradients_and_statistics(name, backend):
    port, inputs, (outputs, gradients, buffers) = made(name)
    with multiop.use_backend(backend):
        computed, slopes, state = torch_rows.ported(port, inputs, name.endswith("training"))
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < 1e-9
    assert set(_weights.flat(port.params)) == {
        gradient for gradient in gradients if not gradient.startswith("input ")
    } and set(state) == set(buffers)
    assert torch_rows.error_between(state, buffers) < 1e-10


def test_any_batch_size_and_both_modes():
    port, _, _ = made("conv net, training")
    model = ConvNet().double().eval()
    model.load_state_dict(
        {name: torch.from_numpy(np.array(leaf)) for name, leaf in _weights.flat(port.params | {}).items()}
        | {name: torch.from_numpy(np.array(leaf)) for name, leaf in _weights.flat(port.state).items()}
    )
    x = normal(7, 3, 16, 16)
    with multiop.use_backend("torch"):
        computed, state = port.function(port.params, port.state, x)
        np.testing.assert_allclose(ops.convert_to_numpy(computed), model(x).detach().numpy(), rtol=1e-10)
        assert (
            torch_rows.error_between(
                {k: ops.convert_to_numpy(v) for k, v in _weights.flat(state).items()}, _weights.flat(port.state)
            )
            == 0
        )
        with pytest.raises(errors.ArgumentError, match=r"must have the shape \(any, 3, 16, 16\)"):
            port.function(port.params, port.state, x[:, :, :8])


def test_a_batch_of_one_stays_open():
    port = porting.trace(nn.Linear(3, 2), torch.ones(1, 3))
    with multiop.use_backend("torch"):
        assert port.function(port.params, port.state, torch.ones(4, 3))[0].shape == (4, 2)


def test_blocks_are_one_function_called_in_a_loop():
    source = made("conv net")[0].source
    assert source.count("def block") == 2 and source.count("for i in range(2):") == 1
    assert "for i in range(3):" in made("encoder")[0].source
    for name in ("dense", "dense, training"):
        assert "features: list[Tensor]" in made(name)[0].source and "for i in range(4):" in made(name)[0].source
    assert "channel_shuffle(conv(x, " in made("shuffled")[0].source


@pytest.mark.parametrize("name", MODELS)
def test_source_is_tidy(name):
    source = made(name)[0].source
    assert max(map(len, source.splitlines())) <= 120
    assert not re.search(r"\baten|\btorch\.|\bfx|getitem|\bsym_", source)
    compile(source, "port.py", "exec")


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.drop(x) * 0 + 1 + self.line(x) * 0)


def test_dropout_draws_from_keys():
    port = porting.trace(Dropped().double(), normal(50, 4), training=True)
    x = normal(50, 4)
    with multiop.use_backend("torch"):
        first, again, other = (port.function(port.params, port.state, x, training=True, seed=s)[0] for s in (1, 1, 2))
        assert (first == again).all() and (first != other).any()
        assert set(first.unique().tolist()) == {0.0, 2.0}
        assert (port.function(port.params, port.state, x)[0] == 1).all()


class Modes(nn.Module):
    def forward(self, x):
        return x.sin() if self.training else x.cos()


def test_a_model_that_differs_between_the_modes_has_the_traced_one_alone():
    port = porting.trace(Modes(), normal(3), training=True)
    with multiop.use_backend("torch"):
        port.function(port.params, port.state, normal(3), training=True)
        with pytest.raises(errors.ArgumentError, match="training=False"):
            port.function(port.params, port.state, normal(3))


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x


bound = Wrong.apply


class Refused(nn.Module):
    def forward(self, x):
        x = torch.special.bessel_j0(x) + torch.special.bessel_j0(2 * x)
        return bound(x) + torch.special.i1e(x)


def test_one_error_lists_all_that_has_no_translation():
    with pytest.raises(errors.TranslationError) as caught:
        porting.trace(Refused(), normal(3, 3))
    message = str(caught.value)
    assert "3 operations have no translation" in message
    assert re.search(r"special_bessel_j0, 2 times: .*test_trace_torch\.py:\d+", message)
    assert "special_i1e, 1 time" in message
    assert "autograd.Function Wrong: it has no backward" in message


class Unknown(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, x):
        x = torch.special.bessel_j0(self.line(x)) + torch.special.bessel_j0(2 * x)
        mantissa, exponent = torch.frexp(x)
        return mantissa, exponent + torch.special.i1(x)


def test_bridges_stay_where_there_is_no_translation(tmp_path, backend):
    torch.manual_seed(0)
    model, x = Unknown().double(), normal(3, 3)
    porting.trace(model, x, partial=True).save(tmp_path)
    port = porting.load(tmp_path)
    assert sorted(set(port.bridged)) == ["frexp", "special_bessel_j0", "special_i1"]
    assert "import torch\n" in port.source and "# no translation: these run in PyTorch\n" in port.source
    assert port.source.count("special_bessel_j0 = porting.bridge(") == 1
    expected = model(x)
    with multiop.use_backend(backend):
        computed, _ = port.function(port.params, port.state, ops.convert_to_tensor(x.numpy()))
    for y, other in zip(computed, expected, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(y), other.detach().numpy(), rtol=1e-10, atol=1e-12)


class Bessel(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, x):
        return torch.special.i1(self.line(x))


def test_gradients_go_through_bridges(backend):
    torch.manual_seed(0)
    model, x = Bessel().double(), normal(4, 3)
    port = porting.trace(model, x, partial=True)
    assert port.bridged == ["special_i1"]
    outputs, gradients, _ = torch_rows.original(model, (x,))
    with multiop.use_backend(backend):
        computed, slopes, _ = torch_rows.ported(port, (x,))
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < 1e-9


def test_a_bridge_does_not_stand_for_what_would_be_lost():
    with pytest.raises(errors.TranslationError, match="poisson"):
        porting.trace(torch_rows.Line(lambda x: torch.poisson(x.abs()) * x), normal(3, 3), partial=True)
    with pytest.raises(errors.TranslationError, match="Wrong"):
        porting.trace(Refused(), normal(3, 3), partial=True)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (lambda x: F.embedding_bag(x.long(), x, scale_grad_by_freq=True), "scale_grad_by_freq"),
        (lambda x: F.interpolate(x[None, None], size=(7, 5), mode="bicubic", antialias=True), "_upsample_bicubic2d_aa"),
        (lambda x: torch.linalg.vector_norm(x, 3), "order 3"),
    ],
)
def test_an_option_without_translation_is_named(line, words):
    with pytest.raises(errors.TranslationError, match=words):
        porting.trace(torch_rows.Line(line), normal(4, 4).abs())


class Inputs(nn.Module):
    """Takes tensors in a dict and a tuple, by name, and numbers."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, batch, pair, power=1, mask=None, *, scale=1.0, bias=None):
        y = self.line(batch["z"]) * pair[0] ** power + pair[1][0]
        y = y if bias is None else y + bias
        return (y if mask is None else y.masked_fill(mask, 0.0)) * scale + batch["a"].sum()


def test_inputs_in_dicts_and_tuples_by_name_and_numbers(backend, tmp_path):
    torch.manual_seed(0)
    model = Inputs().double()
    z, a, x, y, bias = (normal(4, 3) for _ in range(5))
    mask = z > 0.5
    args, named = ({"z": z, "a": a}, (x, [y]), 2), {"mask": mask, "scale": 3.0, "bias": bias}
    porting.trace(model, *args, keywords=named).save(tmp_path)
    port = porting.load(tmp_path)
    assert porting.prove(port, backend).agrees
    expected = model(*args, **named).detach().numpy()
    there = lambda tree: multiop.op_convert_to_tensor(tree.numpy())
    with multiop.use_backend(backend):
        batch, pair = {"a": there(a), "z": there(z)}, (there(x), [there(y)])
        named = {"bias": there(bias), "mask": there(mask), "scale": 3.0}
        for given, kept in (((batch, pair, 2), named), ((batch, pair, 2), {"mask": there(mask), "bias": there(bias)})):
            computed, _ = port.function(port.params, port.state, *given, **kept)
            np.testing.assert_allclose(ops.convert_to_numpy(computed), expected, rtol=1e-12)
        for given, kept, words in (
            ((batch, pair, 3), named, "was traced with 2 as the input 2, got 3"),
            (({"z": there(z)}, pair, 2), named, r"needs the input 0\['a'\]"),
            ((batch, pair, 2), named | {"more": there(x)}, "was traced without the input 'more'"),
            ((batch, pair, 2), named | {"scale": 1.0}, "was traced with 3.0 as the input 'scale', got 1.0"),
        ):
            with pytest.raises(errors.ArgumentError, match=words):
                port.function(port.params, port.state, *given, **kept)


def test_a_name_where_there_is_none_is_told():
    port = porting.trace(nn.Linear(3, 2), torch.ones(2, 3))
    with pytest.raises(errors.ArgumentError, match="takes no inputs by name, got other"):
        port.function(port.params, port.state, torch.ones(2, 3), other=1)


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 4, 3, 2, 1), nn.GroupNorm(2, 4)
        self.pool, self.head = nn.MaxPool2d(2), nn.Linear(4, 3)

    def forward(self, x):
        x = self.pool(self.norm(self.conv(x)).relu())
        positions = torch.arange(x.shape[2] * x.shape[3], dtype=x.dtype)
        tokens = x.flatten(2).transpose(1, 2) + positions[:, None] / positions.shape[0]
        return self.head(tokens), x.mean((2, 3)) * x.shape[3]


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 4)
        layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, x):
        return self.encoder(self.line(x)).mean(1), x[:, -1]


class Products(nn.Module):
    def forward(self, x):
        return torch.einsum("bt,bti,bi->bti", x.sum(2), x, x.sum(1))


OPEN = {
    "products": (Products, lambda n: (n, 2 * n, 3)),
    "images": (Images, lambda n: (n, 2, 8 * n, 4 * n)),
    "sequence": (Sequence, lambda n: (n, 2 * n, 3)),
}


@pytest.mark.parametrize("name", OPEN)
def test_other_open_dimensions(name, backend):
    make, shape = OPEN[name]
    torch.manual_seed(0)
    model, auto = make().double().eval(), torch.export.Dim.AUTO
    axes = {i: auto for i, (a, b) in enumerate(zip(shape(2), shape(3), strict=True)) if a != b}
    port = porting.trace(model, normal(*shape(2)), dynamic_shapes=(axes,))
    x = normal(*shape(3))
    outputs, gradients, _ = torch_rows.original(model, (x,))
    with multiop.use_backend(backend):
        computed, slopes, _ = torch_rows.ported(port, (x,))
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < 1e-9


def test_what_is_not_a_model_is_refused():
    with pytest.raises(errors.ArgumentTypeError, match=r"torch\.nn\.Module"):
        porting.trace(len, normal(2))


def test_an_exported_program_is_read_too():
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval()
    x = torch.randn(4, 3)
    port = porting.trace(torch.export.export(model, (x,), strict=False), x)
    with multiop.use_backend("torch"):
        np.testing.assert_allclose(port.function(port.params, port.state, x)[0].detach(), model(x).detach(), rtol=1e-6)


def test_saved_and_loaded(tmp_path):
    port, inputs, (outputs, _, _) = made("conv net")
    port.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "convnet.map.toml",
        "convnet.py",
        "convnet.safetensors",
        "test_convnet.py",
    }
    again = porting.load(tmp_path)
    assert again.source == port.source and list(_weights.flat(again.params)) == sorted(_weights.flat(port.params))
    with multiop.use_backend("torch"):
        computed, _, _ = torch_rows.ported(again, inputs)
    assert torch_rows.error_between(computed, outputs) < 1e-10
    with pytest.raises(errors.ArgumentError, match="holds the ports"):
        porting.load(tmp_path, "other")


@pytest.mark.parametrize("name", ["conv net", "tied", "twice"])
def test_a_later_checkpoint_of_the_original_loads(name, tmp_path):
    port, inputs, _ = made(name)
    port.save(tmp_path)
    torch.manual_seed(1)
    model = MODELS[name][0]().double().eval()
    torch.save(model.state_dict(), tmp_path / "later.pt")
    for source in (model, tmp_path / "later.pt"):
        later = porting.load(tmp_path).with_weights(source)
        outputs, gradients, _ = torch_rows.original(model, inputs)
        with multiop.use_backend("torch"):
            computed, slopes, _ = torch_rows.ported(later, inputs)
        assert torch_rows.error_between(computed, outputs) < 1e-10
        assert torch_rows.error_between(slopes, gradients) < 1e-9
        model = MODELS[name][0]().double().eval()
        model.load_state_dict(torch.load(tmp_path / "later.pt"))
    with pytest.raises(errors.ArgumentError, match="has other weights"):
        porting.prove(later, "torch")
    with pytest.raises(errors.ArgumentError, match="the source's weights"):
        port.with_weights({"other": np.zeros(3)})


def test_loading_imports_no_framework(tmp_path):
    made("twice")[0].save(tmp_path)
    code = (
        "import sys; from multiop import porting; port = porting.load(sys.argv[1]);"
        "assert not {'torch', 'jax', 'tensorflow'} & set(sys.modules), 'a framework was imported';"
        "print(sorted(port.params))"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['line']"


MAKE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.norm = torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)

    def forward(self, x):
        return {"y": self.norm(torch.relu(self.line(x))), "x": x * self.line.weight.sum()}

def make():
    torch.manual_seed(0)
    return Net(), (torch.randn(5, 4),)
"""


def test_the_proof_sees_a_planted_fault(tmp_path, backend):
    port, _, _ = made("conv net")
    assert porting.prove(port, backend).agrees
    port.save(tmp_path)
    file = tmp_path / "convnet.py"
    file.write_text(file.read_text().replace("epsilon=0.001", "epsilon=0.0011"))
    wrong = porting.prove(porting.load(tmp_path), backend)
    assert not wrong.agrees and wrong.value > 1e-6 and wrong.gradient > 1e-6


class Scaled(nn.Module):
    """A model that makes a tensor of numbers, and returns numbers beside one."""

    def __init__(self, counts):
        super().__init__()
        self.line, self.counts = nn.Linear(3, 2), counts
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        if self.counts:
            self.count.add_(1)
        return self.line(x) * torch.tensor([1.0, 2.0], dtype=x.dtype), 3, x.shape[0]


@pytest.mark.parametrize("counts", [False, True])
def test_a_port_with_a_constant_is_proven_and_its_docstring_tells_of_numbers(counts):
    port = porting.trace(Scaled(counts).double(), normal(4, 3))
    assert porting.prove(port, "torch").agrees
    assert f"return `(batch, 2)`, `3`, `batch` and the {'new ' * counts}state." in port.source


def test_a_proof_without_anything_to_compare_does_not_agree():
    port = porting.trace(torch_rows.Line(lambda x: x * 0), normal(3))
    proof = porting.prove(port, "torch")
    assert proof.compared == 0 and not proof.agrees


def test_the_command_writes_and_proves(tmp_path):
    from typer.testing import CliRunner

    from multiop import cli

    (tmp_path / "model.py").write_text(MAKE)
    target = f"{tmp_path / 'model.py'}::make"
    done = CliRunner().invoke(cli.app, ["port", target, "--out", str(tmp_path / "out"), "--backends=torch", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["agree"] and told["backends"][0]["compared"] == 6
    assert "tap(" not in (tmp_path / "out" / "net.py").read_text(encoding="utf-8")
    done = CliRunner().invoke(
        cli.app, ["port", target, "--out", str(tmp_path / "tapped"), "--backends=torch", "--taps"]
    )
    assert done.exit_code == 0, done.output
    assert "porting.tap(" in (tmp_path / "tapped" / "net.py").read_text(encoding="utf-8")
    done = CliRunner().invoke(cli.app, ["port", f"{tmp_path / 'model.py'}::absent", "--out", str(tmp_path)])
    assert done.exit_code == 2 and "has no function 'absent'" in done.output


class Stopped(nn.Module):
    """Computes without a gradient, beside what `torch.export` has to write in other calls."""

    def __init__(self, what):
        super().__init__()
        self.line, self.norm, self.what = nn.Linear(4, 4), nn.BatchNorm1d(4, momentum=0.3), what

    def forward(self, x):
        with torch.no_grad():
            y = torch.tanh(self.line(x))
        z = self.norm(self.line(x))
        if self.what == "a call without a row":
            return F.cosine_similarity(y, z, 1), y * z
        z = z * 1
        part = z.unfold(1, 4, 4)[1, 0]
        z.add_(1)
        return y * z + part


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("what", ["a call without a row", "a view that changes"])
def test_what_is_decomposed_keeps_what_has_no_gradient_and_its_statistics(what, training, backend):
    torch.manual_seed(0)
    model, x = Stopped(what).double(), normal(3, 4)
    port = porting.trace(model, x, training=training)
    outputs, gradients, state = torch_rows.original(model, [x], training)
    with multiop.use_backend(backend):
        computed, slopes, new = torch_rows.ported(port, [x], training)
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < 1e-9
    assert set(new) == set(state) and torch_rows.error_between(new, state) < 1e-10
    if training:
        assert porting.prove(port, backend, training=True).agrees


def of_module(line):
    line.register_full_backward_hook(lambda module, inner, outer: (inner[0] * 2,))


def of_parameter(line):
    line.weight.register_hook(lambda slope: slope * 2)


def of_tensor(line):
    line.register_forward_hook(lambda module, args, y: y.register_hook(lambda slope: slope * 2) and None)


@pytest.mark.parametrize("hook", [of_module, of_parameter, of_tensor])
def test_a_hook_that_may_change_a_gradient_is_refused(hook):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    hook(model[1])
    with pytest.raises(errors.TranslationError, match="hook"):
        porting.trace(model, torch.randn(3, 4))


VIEWS = {
    "a part of a part": lambda b: b[1:][0, 1:],
    "steps": lambda b: b[:, 1::2][:, :1],
    "a row of the transpose": lambda b: b.t()[-1],
    "permuted": lambda b: b.view(3, 2, 2).permute(2, 0, 1)[1],
    "another shape": lambda b: b.unsqueeze(1).flatten()[2:7],
    "one axis less": lambda b: b[:1].squeeze(0),
    "moved": lambda b: b.view(3, 2, 2).movedim(0, -1).mT[1],
    "narrow": lambda b: b.narrow(1, 1, 2).T,
    "no entry": lambda b: b[:, 2:2],
    "a diagonal": lambda b: b[:, :3].diagonal()[1:],
}
CHANGES = {
    "copy_": lambda v, y: v.copy_(y[0, 0]),
    "mul_": lambda v, y: v.mul_(y[0, 1]).add_(y[1, 1]),
    "fill_": lambda v, y: v.fill_(2.5),
    "masked_fill_": lambda v, y: v.masked_fill_(v.detach() > 0.5, 3.0),
    "index_put_": lambda v, y: v.index_put_((torch.tensor([0]),), y[2, 0]) if v.numel() else v,
}


class Changing(nn.Module):
    """Reads a tensor and its views, made before and after, between changes of one of them."""

    def __init__(self, view, change):
        super().__init__()
        self.view, self.change = VIEWS[view], CHANGES[change]
        self.weight = nn.Parameter(torch.linspace(0.3, 1.4, 12).view(3, 4))

    def forward(self, x):
        b, y = x * self.weight, x + self.weight
        row, column, v, total, rows = b[1], b.t()[1:][0], self.view(b), b.sum(), []
        for i in range(3):
            self.change(v, y * 0.9)
            rows.append(b.sum() * v.sum())
            column.mul_(v.sum() / 9 if i else total / 9)
        return b * 1, row, column.exp(), v * 1, torch.stack(rows), b[0] * v.sum()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_change_of_a_view_is_one_of_the_tensor_and_its_views(view, change, monkeypatch, backend):
    if view != "a diagonal":
        monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", None)  # PyTorch writes views anew by it
    model, x = Changing(view, change).double(), normal(3, 4) / 4
    port = porting.trace(model, x)
    outputs, gradients, _ = torch_rows.original(model, [x])
    with multiop.use_backend(backend):
        computed, slopes, _ = torch_rows.ported(port, [x])
    assert torch_rows.error_between(computed, outputs) < 1e-12
    assert torch_rows.error_between(slopes, gradients) < 1e-11


@pytest.mark.parametrize("is_read", [True, False])
def test_a_change_by_detach_of_what_has_a_gradient_is_refused(is_read):
    class Model(nn.Module):
        def forward(self, x):
            y = x * 2
            y.detach()[0].add_(x.detach()[1])
            return (y if is_read else y.detach()) * x

    x = normal(3, 4)
    if is_read:
        with pytest.raises(errors.TranslationError, match="by detach"):
            porting.trace(Model(), x)
    else:
        computed = ops.convert_to_numpy(porting.trace(Model(), x)(x.numpy()))
        np.testing.assert_allclose(computed, Model()(x).numpy(), 1e-15)


LENT = {  # each may return what it is given, or a view of it
    "dropout": lambda x: F.dropout(x, 0.5, training=False),
    "dropout of a part": lambda x: F.dropout(F.dropout(x[:, 1:], 0.5, False), 0.5, False)[:, 1],
    "einsum": lambda x: torch.einsum("ij->ji", x),
    "meshgrid": lambda x: torch.meshgrid(x[0], x[0, :1], indexing="ij")[0],
    "unsafe_chunk": lambda x: torch.unsafe_chunk(x, 1)[0],
}


@pytest.mark.parametrize("name", LENT)
def test_what_may_be_the_argument_is_not_changed_in_place(name):
    class Model(nn.Module):
        def __init__(self, is_read):
            super().__init__()
            self.is_read = is_read

        def forward(self, x):
            x = x * 2
            y = LENT[name](x)
            y.mul_(3)
            return (x, y) if self.is_read else y

    x = torch.randn(3, 4, dtype=torch.float64)
    with pytest.raises(errors.TranslationError, match=r"a result of aten\.\w+.*, which may be the argument"):
        porting.trace(Model(is_read=True), x)
    port = porting.trace(Model(is_read=False), x)
    np.testing.assert_allclose(ops.convert_to_numpy(port(x.numpy())), Model(is_read=False)(x).numpy(), 1e-15)


def test_a_model_that_cannot_be_exported_says_where():
    class Deciding(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(errors.TranslationError, match=r"cannot trace Deciding, at .*test_trace_torch\.py:\d+: Guard"):
        porting.trace(Deciding(), torch.randn(3, 4))


def test_training_is_proven_unless_it_draws(tmp_path, backend):
    port, _, _ = made("conv net, training")
    port.save(tmp_path)
    assert port.modes == [False, True] and porting.prove(porting.load(tmp_path), backend, training=True).agrees
    file = tmp_path / "convnet.py"
    file.write_text(file.read_text().replace("momentum=0.3", "momentum=0.31"))
    wrong = porting.prove(porting.load(tmp_path), backend, training=True)
    assert not wrong.agrees and wrong.state > 1e-3 and wrong.value < 1e-9


class Variational(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 4), nn.Linear(2, 6)

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, -1)
        z = mean + torch.exp(log_variance / 2) * torch.randn_like(mean)
        kept = torch.rand(z.shape, dtype=z.dtype) + torch.bernoulli(torch.full_like(z, 0.5))
        return self.decoder(z), kept


@pytest.mark.parametrize("training", [False, True])
def test_what_is_drawn_in_evaluation_too_comes_from_the_seed(training, backend):
    port = porting.trace(Variational().double(), normal(300, 6), training=training)
    x = np.zeros((300, 6))
    with multiop.use_backend(backend):
        outputs = [port.function(port.params, port.state, x, training=training, seed=seed)[0] for seed in (1, 1, 2)]
        computed = [[multiop.op_convert_to_numpy(side) for side in pair] for pair in outputs]
    assert all(map(np.array_equal, computed[0], computed[1]))
    assert not np.array_equal(computed[0][0], computed[2][0])
    kept = computed[0][1]
    assert 0 <= kept.min() < 0.05 and 1.95 < kept.max() < 2 and abs(kept.mean() - 1) < 0.1
    mode = "training" if training else "evaluation"
    with pytest.raises(errors.ArgumentError, match=f"draws random numbers in {mode}"):
        porting.prove(port, backend, training=training)


def test_a_mode_that_draws_or_was_not_traced_is_not_proven():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)).double()
    port = porting.trace(model, normal(3, 4), training=True)
    assert port.modes == [False]
    with pytest.raises(errors.ArgumentError, match="draws random numbers"):
        porting.prove(port, "torch", training=True)
    with pytest.raises(errors.ArgumentError, match="was traced in the other mode"):
        porting.prove(made("conv net")[0], "torch", training=True)


WRONG = """
import torch

number = 3

def alone():
    return torch.nn.Linear(4, 3), torch.randn(5, 4)

def failing():
    return 1 / 0

def refused():
    return torch.nn.Linear(4, 3), (torch.randn(5, 3),)
"""


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("model.py::number", "has no function 'number'"),
        ("model.py", "name a file and a function"),
        ("absent.py::make", "there is no file"),
        ("model.py::alone", "must return a model and a tuple of inputs"),
        ("model.py::failing", "failing() failed, line 10: ZeroDivisionError"),
        ("model.py::refused", "torch.export cannot trace Linear"),
    ],
)
def test_the_command_tells_what_is_wrong_with_the_file(target, words, tmp_path):
    from typer.testing import CliRunner

    from multiop import cli

    (tmp_path / "model.py").write_text(WRONG)
    done = CliRunner().invoke(cli.app, ["port", f"{tmp_path}/{target}", "--out", f"{tmp_path}/out", "--backends=torch"])
    assert done.exit_code == 2 and words in done.output.replace("\n", " "), done.output


class Below(nn.MultiheadAttention):
    """Calls what it inherits."""

    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0] * 2


class Averaged(nn.BatchNorm1d):
    def forward(self, x):
        return super().forward(x) * 2


@pytest.mark.parametrize("kind", ["attention", "normalization"])
def test_what_a_subclass_inherits_is_written_as_a_person_would(kind, backend):
    torch.manual_seed(0)
    model = Below(4, 2, batch_first=True) if kind == "attention" else Averaged(4, momentum=None)
    x = torch.randn(3, 5, 4) if kind == "attention" else torch.randn(3, 4)
    training = kind == "normalization"
    port = porting.trace(model.double(), x.double(), training=training)
    assert "ops.split(x, 3, axis=-1)" in port.source or training
    assert porting.prove(port, backend, training).agrees


def test_no_class_of_pytorch_is_changed_while_a_model_is_traced():
    """Another thread may use them."""
    kinds = (nn.MultiheadAttention, nn.BatchNorm1d, nn.Linear, torch.Tensor, torch.autograd.Function)
    before = [dict(vars(kind)) for kind in kinds]
    seen = []

    class Watching(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention, self.norm = nn.MultiheadAttention(4, 2), nn.BatchNorm1d(4)

        def forward(self, x):
            seen.append([dict(vars(kind)) for kind in kinds] == before)
            return self.norm(self.attention(x, x, x)[0].mean(1))

    model = Watching().eval()
    porting.trace(model, torch.randn(3, 5, 4))
    assert seen and all(seen)
    assert type(model.attention) is nn.MultiheadAttention and "forward" not in vars(model.norm)


def test_a_model_in_bfloat16_that_takes_few_numbers_is_recorded_with_those():
    class Years(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(4, 3)

        def forward(self, year):
            return self.table(year.long() - 100) * 2

    port = porting.trace(Years().bfloat16(), torch.tensor([100, 101, 103], dtype=torch.bfloat16))
    assert [x.tolist() for x in port.inputs()] == [[100, 101, 103]]
    assert porting.prove(port, "torch").agrees


def test_a_port_in_64_bits_is_proven_in_64_bits_with_the_mode_off(backend):
    port = porting.trace(torch.nn.Linear(3, 2, dtype=torch.float64), torch.ones(4, 3, dtype=torch.float64))
    multiop.enable_x64(False)
    assert porting.prove(port, backend).agrees and not multiop.x64()


def test_a_shape_that_differs_between_blocks_is_called_shape():
    class Block(torch.nn.Module):
        def __init__(self, n):
            super().__init__()
            self.n, self.fc = n, torch.nn.Linear(12 // n, 12 // n)

        def forward(self, x):
            y = torch.relu(self.fc(torch.tanh(x).reshape(2, self.n, 12 // self.n)))
            return y.reshape(2, 12).sin()

    model = torch.nn.Sequential(Block(2), Block(3))
    port = porting.trace(model, torch.ones(2, 12), dynamic_shapes=({},))
    assert "shape: tuple" in port.source and "newshape" not in port.source
    assert porting.prove(port, "torch").agrees


class Seen(nn.Module):
    """Two buffers of one memory: numbers, and the same bits in another dtype, conjugated or negated."""

    def __init__(self, seen):
        super().__init__()
        z = torch.complex(*torch.randn(2, 3, 3, dtype=torch.float64))
        own, other = seen(z)
        self.register_buffer("own", own)
        self.register_buffer("other", other)

    def forward(self, x):
        y = x * self.own + self.other * 1e-20 if self.other.dtype == torch.int64 else x * self.own + 2 * self.other
        return torch.view_as_real(y) if y.is_complex() else y


@pytest.mark.parametrize(
    "seen",
    [lambda z: (z, z.conj()), lambda z: (z.imag, z.conj().imag), lambda z: (x := z.imag.clone(), x.view(torch.int64))],
    ids=["conjugated", "negated", "bits"],
)
def test_memory_that_is_read_in_two_ways_is_two_leaves(seen, backend):
    model, x = Seen(seen), torch.randn(2, 3, 3, dtype=torch.float64)
    port = porting.trace(model, x)
    with multiop.use_backend(backend):
        computed, _ = port.function(port.params, port.state, x.numpy())
        np.testing.assert_allclose(ops.convert_to_numpy(computed), model(x), rtol=1e-14)


class Attended(nn.Module):
    """Scores where a mask of them is true, and 0 elsewhere."""

    def __init__(self, mask):
        super().__init__()
        self.mask = mask

    def forward(self, scores, keep):
        k, b = torch.arange(scores.shape[-1]), torch.arange(scores.shape[0])
        return torch.where(self.mask(k[:, None], k[None], b, keep), scores, 0.0)


def packed(q, k, b, keep):
    """Look at the tokens of the same sequence that stand before each one, of sequences found as transformers does."""
    positions = k.expand(len(b), -1)
    number = (torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1) != 1).cumsum(-1)
    b, q, k = b[:, None, None], q[None], k[None]
    return (k <= q) & (number[b, q] == number[b, k])


def padded(q, k, b, keep):
    return q.new_ones((), dtype=torch.bool) & (k <= q)[None] & keep[b[:, None, None], k[None]]


LENGTHS = {"scores": {0: "batch", 1: "length", 2: "length"}, "keep": {0: "batch", 1: "length"}}
LOWER = 'ops.tril(ops.ones((length, length), dtype="bool"))'
MASKS = [
    (lambda q, k, b, keep: k <= q, f"ops.where({LOWER}, scores, 0.0)"),
    (lambda q, k, b, keep: q < k, 'ops.triu(ops.ones((length, length), dtype="bool"), 1)'),
    (lambda q, k, b, keep: (k <= q) & (k > q - 3), LOWER.replace("ops.tril", "ops.triu(ops.tril") + ", -2)"),
    (lambda q, k, b, keep: k > q - 9, 'ops.triu(ops.ones((length, length), dtype="bool"), -8)'),  # more than there are
    (lambda q, k, b, keep: (k - q + 1 <= 2) & (k >= 0), LOWER[:-1] + ", 1)"),
    (packed, 'ops.tril(ops.ones((batch, length, length), dtype="bool"))'),
    (padded, 'ops.bitwise_and(ops.tril(ops.ones((1, length, length), dtype="bool")), keep[:, None])'),
    (lambda q, k, b, keep: 2 * k <= q, "ops.less_equal("),
    (lambda q, k, b, keep: k.flip(1) <= q, "ops.less_equal("),
    (lambda q, k, b, keep: k[0][k - 3] <= q, "ops.less_equal("),  # counted from the end
    (lambda q, k, b, keep: k[:, [0]] == q - k[:, [0]], "ops.equal("),
    (lambda q, k, b, keep: torch.cat([k[:, :2], k[:, :-2]], 1) <= q, "ops.less_equal("),
    (lambda q, k, b, keep: q.int() + (2**31 - 3) >= k, "ops.greater_equal("),  # passes the end of 32 bits
]


@functools.cache
def masked(mask):
    model = Attended(mask).double()
    inputs = [torch.rand(2, 5, 5, dtype=torch.float64), torch.rand(2, 5) > 0.3]
    return model, porting.trace(model, *inputs, dynamic_shapes=LENGTHS)


@pytest.mark.parametrize(
    ("mask", "text"),
    [row if row[0] in (packed, padded) else pytest.param(*row, marks=pytest.mark.tier("full")) for row in MASKS],
)
def test_a_mask_of_positions_is_one_call(mask, text, backend):
    model, port = masked(mask)
    assert text in port.source
    inputs = [torch.rand(3, 12, 12, dtype=torch.float64), torch.rand(3, 12) > 0.3]
    computed, _ = port.function(port.params, port.state, *map(np.asarray, inputs))
    np.testing.assert_array_equal(ops.convert_to_numpy(computed), model(*inputs).numpy())
