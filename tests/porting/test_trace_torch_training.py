"""What models of PyTorch do beside their outputs: buffers that they change, numbers that they draw, what is refused."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch_rows
from torch.utils import checkpoint

import multiop
from multiop import errors, ops, porting

nn = torch.nn
F = nn.functional


class Model(nn.Module):
    """Has a linear layer and a few buffers; what it computes is a function."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.line, self.compute = nn.Linear(4, 4), forward
        self.register_buffer("mean", torch.ones(4))
        self.register_buffer("queue", torch.linspace(-1, 1, 24).reshape(6, 4))
        self.register_buffer("place", torch.zeros(1, dtype=torch.int64))
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.compute(self, x)


def in_a_view(self, x):
    y = self.line(x)
    self.queue[:, 1] = 2.0
    self.queue[2:4].mul_(y.detach()[0])
    return y


def in_a_view_without_gradient(self, x):
    """The queue of momentum contrast."""
    y = F.normalize(self.line(x), dim=1)
    logits = y @ self.queue.clone().detach().T
    with torch.no_grad():
        self.queue[(self.place + torch.arange(5)) % 6] = y
        self.place[0] = (self.place[0] + 5) % 6
    return logits


def in_several_blocks(self, x):
    y = self.line(x)
    with torch.no_grad():
        self.mean.add_(1)
    y = y * self.mean.clone()
    with torch.no_grad():
        self.mean.mul_(2)
    self.mean.add_(y.detach().mean(0))
    with torch.no_grad():
        self.mean.sub_(1)
    return y * self.mean.clone()


def into_an_argument(self, x):
    y = self.line(x)
    with torch.no_grad():
        torch.mul(self.mean, y[0], out=self.mean)
        self.mean.copy_(F.normalize(self.mean, dim=0))
    return y * self.mean.clone()


def through_a_shared_norm(self, x):
    for block in self.blocks:
        x = torch.tanh(block(x))
    return x


def shared_norm():
    norm = nn.BatchNorm1d(4)
    return {"blocks": nn.ModuleList([nn.Sequential(nn.Linear(4, 4), norm) for _ in range(3)])}


def of_an_input(self, x):
    x = x.clone()
    x.add_(1)
    return self.line(x)


def twice(self, x):
    return self.norm(torch.tanh(self.norm(self.line(x))))


def twice_beside_a_view(self, x):
    y = self.norm(self.line(x))
    self.mean[0] = y.detach()[0, 0]
    return self.norm(y * x)


def under_two_names(self, x):
    return self.other(torch.tanh(self.norm(x)))


def statistics_read(self, x):
    return self.norm(self.line(x)) * self.norm.running_mean.clone()


def of_other_names(self, x):
    return F.batch_norm(self.line(x), self.mean, self.queue[0], training=self.training, momentum=0.3)


def of_each(self, x):
    return self.norm(self.line(x)[:, :, None] * x[:, None])


def left_out_of_checkpoints(self, x):
    self.kept = 0.5 * self.kept + self.line(x).detach().mean(0)
    return self.line(x) * self.kept


def spectral(self, x):
    return self.norm(torch.tanh(self.norm(x)))


def batch_norm(**options):
    return lambda: {"norm": nn.BatchNorm1d(4, **options)}


def shared():
    norm = nn.BatchNorm1d(4)
    return {"norm": norm, "other": norm}


PARTS = {
    in_a_view: dict,
    in_a_view_without_gradient: dict,
    in_several_blocks: dict,
    into_an_argument: dict,
    of_an_input: dict,
    through_a_shared_norm: shared_norm,
    twice: batch_norm(momentum=0.3),
    twice_beside_a_view: batch_norm(),
    under_two_names: shared,
    statistics_read: batch_norm(),
    of_other_names: dict,
    of_each: lambda: {"norm": nn.InstanceNorm1d(4, momentum=0.3, affine=True, track_running_stats=True)},
    left_out_of_checkpoints: lambda: {"kept": nn.Buffer(torch.ones(4), persistent=False)},
    spectral: lambda: {"norm": nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))},
}
MODELS = {
    line.__name__: functools.partial(lambda line, parts: Model(line, **parts()), line, parts)
    for line, parts in PARTS.items()
}
MODELS["an average of all batches"] = lambda: Model(twice, norm=nn.BatchNorm1d(4, momentum=None))
MODELS["a sparse gradient"] = lambda: nn.Sequential(nn.Embedding(5, 4, sparse=True), nn.Tanh())


def drawn(name):
    torch.manual_seed(0)
    model = MODELS[name]().double()
    return model, torch.tensor([[0, 3], [1, 3]]) if name == "a sparse gradient" else torch.randn(5, 4).double()


@functools.cache
def made(name):
    """Return a port, the input, and what the original computes in two steps."""
    model, x = drawn(name)
    port = porting.trace(model, x, training=True)
    model, _ = drawn(name)
    return port, x, [torch_rows.original(model, [x], True) for _ in range(2)]


@pytest.mark.parametrize("name", MODELS)
def test_two_steps_change_the_state_as_the_original_does(name, backend):
    port, x, steps = made(name)
    state = None
    with multiop.use_backend(backend):
        for outputs, gradients, buffers in steps:
            computed, slopes, state = torch_rows.ported(port, [x], True, state)
            assert torch_rows.error_between(computed, outputs) < 1e-10
            assert torch_rows.error_between(slopes, gradients) < 1e-9
            assert set(state) <= set(buffers) and torch_rows.error_between(state, buffers) < 1e-10
    assert backend != "torch" or porting.prove(port, "torch", training=True).agrees


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_is_computed_again_is_so_in_the_mode_that_is_compared(reentrant):
    """A checkpoint computes again when the gradient is; the statistics are those of the forward pass."""
    parts = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    model = Model(lambda self, x: checkpoint.checkpoint(self.parts, self.line(x), use_reentrant=reentrant), parts=parts)
    model.train()
    port = porting.trace(model.double(), torch.randn(5, 4).double())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert porting.prove(port, "torch").agrees


def changed_parameter(self, x):
    with torch.no_grad():
        self.line.weight.mul_(0.9)
    return self.line(x)


def changed_data(self, x):
    self.line.weight.data = torch.renorm(self.line.weight.data, 2, 0, 0.1)
    return self.line(x)


def changed_buffer(self, x):
    self.mean.data = self.mean + 1
    return self.line(x) * self.mean


def counted(self, x):
    self.count = getattr(self, "count", 0) + 1
    return self.line(x) * self.count


def remembered(self, x):
    last, self.last = getattr(self, "last", 0.0), x.detach()
    return self.line(x) + last


def drawn_by_python(self, x):
    return self.line(x) if random.random() < 0.5 else -self.line(x)


def drawn_by_numpy(self, x):
    return self.line(x) * float(np.random.uniform())  # noqa: NPY002 - what is refused


def gradient_left_out(self, x):
    y = self.line(x)
    with torch.no_grad():
        y[:, 0] = 0
    return y


REFUSED = {
    changed_parameter: "a change of the parameter line.weight",
    changed_data: "a change of the parameter line.weight",
    changed_buffer: "a change of the buffer mean",
    counted: "something that is kept from call to call, but is no buffer",
    remembered: "something that is kept from call to call, but is no buffer",
    drawn_by_python: "a draw from random",
    drawn_by_numpy: "a draw from numpy.random",
    gradient_left_out: "a change under no_grad, or by detach, of a tensor that has a gradient",
}


@pytest.mark.parametrize("forward", REFUSED)
def test_what_an_export_forgets_is_refused(forward):
    model = Model(forward).double()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(errors.TranslationError, match=REFUSED[forward]):
        porting.trace(model, torch.randn(3, 4).double(), training=True)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def open_(line):
    return lambda x: line(torch.empty_like(x))


DRAWS = {  # functions of a tensor of shape (count, 6, 3)
    "uniform_": open_(lambda x: x.uniform_(-1, 2)),
    "normal_": open_(lambda x: x.normal_(1, 2)),
    "exponential_": open_(lambda x: x.exponential_(2.0)),
    "bernoulli_": open_(lambda x: x.bernoulli_(0.3)),
    "normal": lambda x: torch.normal(x, x.abs() + 1),
    "randint": lambda x: torch.randint(-2, 4, x.shape) + torch.randint_like(x, 3),
    "multinomial": lambda x: x + torch.multinomial(torch.exp(x[0]), len(x), True).T[:, :, None],
    "randperm": lambda x: torch.stack([x[:, 0] * 0 + row for row in torch.randperm(5).to(x).unbind()], 1)[:1],
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, 0.7),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "dropout1d": lambda x: F.dropout1d(x, 0.3),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.3, True),
    "feature_alpha_dropout": lambda x: F.feature_alpha_dropout(x, 0.3, True),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.4),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_distributed_as_those_of_the_original(name):
    count = 20 if name == "randperm" else 4000
    x = torch.linspace(-1, 2, 18).double().reshape(6, 3).expand(count, 6, 3).contiguous()
    torch.manual_seed(0)
    model = torch_rows.Line(DRAWS[name])
    port = porting.trace(model, x, training=True)
    expected = model(x).double().numpy()
    with multiop.use_backend("torch"):
        drawn, other = (
            ops.convert_to_numpy(port.function(port.params, port.state, x.numpy(), training=True, seed=seed)[0])
            for seed in (1, 2)
        )
    assert drawn.shape == expected.shape and not np.array_equal(drawn, other)
    if name == "randperm":
        assert np.array_equal(np.sort(drawn, 1), np.sort(expected, 1))
        return
    for moment in (1, 2, 3):
        error = np.std(expected**moment, 0) * (2 / count) ** 0.5
        assert (np.abs(np.mean(drawn**moment, 0) - np.mean(expected**moment, 0)) <= 5 * error + 1e-9).all()
    pairs = [np.mean(y[:, 0, 0] * y[:, 0, 1]) for y in (drawn, expected)]  # what is dropped together
    assert abs(pairs[0] - pairs[1]) < 5 * np.std(expected[:, 0, 0] * expected[:, 0, 1]) * (2 / count) ** 0.5 + 1e-9
