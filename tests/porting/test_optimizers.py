"""Training that goes on in another framework makes the steps that it would have made."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from multiop import errors, ops, porting
from multiop.errors import ArgumentError

RATE = 2.0**-5  # settings are numbers of float32, to which Keras rounds them
FULL = pytest.mark.tier("full")
# by kind: the optimizer of PyTorch, of optax and of Keras
KINDS = {
    "sgd": (
        lambda p: torch.optim.SGD(p, RATE, momentum=0.875, nesterov=True),
        lambda optax: optax.sgd(RATE, momentum=0.875, nesterov=True),
        lambda keras: keras.optimizers.SGD(RATE, momentum=0.875, nesterov=True),
    ),
    "adam": (
        lambda p: torch.optim.Adam(p, RATE, (0.75, 0.9375), 1e-16),
        lambda optax: optax.adam(RATE, 0.75, 0.9375, 1e-16),
        lambda keras: keras.optimizers.Adam(RATE, 0.75, 0.9375, 1e-16),
    ),
    "adamw": (
        lambda p: torch.optim.AdamW(p, RATE, (0.875, 0.96875), 1e-16, weight_decay=0.125),
        lambda optax: optax.adamw(RATE, 0.875, 0.96875, 1e-16, weight_decay=0.125),
        lambda keras: keras.optimizers.AdamW(RATE, 0.125, 0.875, 0.96875, 1e-16),
    ),
    "rmsprop": (
        lambda p: torch.optim.RMSprop(p, RATE, 0.875, 1e-30),
        lambda optax: optax.rmsprop(RATE, 0.875, 1e-30),
        lambda keras: keras.optimizers.RMSprop(RATE, 0.875, epsilon=1e-30),
    ),
}
PLAIN = pytest.mark.filterwarnings("ignore:the state's optimizer adds epsilon")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = torch.nn.Linear(3, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 2)

    def forward(self, x):
        return self.down(torch.tanh(self.norm(self.up(x))))


def loss(model, x, target):
    return ops.mean((model(x) - target) ** 2)


@pytest.fixture
def batches():
    generator = np.random.default_rng(0)
    return [(generator.normal(size=(7, 3)), generator.normal(size=(7, 2))) for _ in range(25)]


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().double().train()


def begun(net, kind, batches):
    """Return the optimizer of PyTorch after the first five steps."""
    optimizer = KINDS[kind][0](net.parameters())
    for x, target in batches[:5]:
        optimizer.zero_grad()
        torch.mean((net(torch.tensor(x)) - torch.tensor(target)) ** 2).backward()
        optimizer.step()
    return optimizer


def ported(net, framework):
    module = porting.trace(net, torch.zeros(4, 3, dtype=torch.float64), training=True).as_module(framework)
    if framework != "keras":
        module.train()
    return module


def in_training(model, x, target):
    """Return the loss of a layer of Keras, which has no mode of its own."""
    return ops.mean((model(x, training=True) - target) ** 2)


@PLAIN
@pytest.mark.parametrize("kind", ["adam", *(pytest.param(kind, marks=FULL) for kind in KINDS if kind != "adam")])
def test_training_goes_on_as_a_module_of_torch(kind, net, batches):
    optimizer = begun(net, kind, batches)
    module = ported(net, "torch")
    other = KINDS[kind][0](module.parameters())
    assert porting.write_optimizer(other, porting.read_optimizer(optimizer, net), module) is other
    training = porting.prove_training((net, optimizer), (module, other), loss, batches[5:])
    assert training.agrees and len(training.losses) == 20, training
    assert training.losses[0][0] != training.losses[1][0]


@PLAIN
@FULL
@pytest.mark.parametrize("kind", KINDS)
def test_training_goes_on_in_flax(kind, net, batches):
    nnx, optax = pytest.importorskip("flax.nnx"), pytest.importorskip("optax")
    optimizer = begun(net, kind, batches)
    module = ported(net, "flax")
    other = nnx.Optimizer(module, KINDS[kind][1](optax), wrt=nnx.Param)
    state = porting.read_optimizer(optimizer, net)
    porting.write_optimizer(other, state, module)
    training = porting.prove_training((net, optimizer), (module, other), loss, batches[5:])
    assert training.agrees, training
    again = KINDS[kind][0](net.parameters())
    porting.write_optimizer(again, porting.read_optimizer(other), net)
    one, two = porting.read_optimizer(again, net), porting.read_optimizer(optimizer, net)
    for slot, arrays in two.slots.items():
        for name, x in arrays.items():
            np.testing.assert_allclose(one.slots[slot][name], x, rtol=1e-8, atol=1e-12)
    assert kind == "sgd" or one.step == 25 or kind == "rmsprop"


@PLAIN
@FULL
@pytest.mark.parametrize("kind", KINDS)
def test_training_goes_on_in_keras(kind, net, batches):
    keras = pytest.importorskip("keras")
    optimizer = begun(net, kind, batches)
    layer = ported(net, "keras")
    other = KINDS[kind][2](keras)
    state = porting.read_optimizer(optimizer, net)
    porting.write_optimizer(other, state, layer)
    back = porting.read_optimizer(other, layer)
    for slot, arrays in state.slots.items():
        for name, x in arrays.items():
            np.testing.assert_allclose(back.slots[slot][name], x, rtol=1e-12)
    assert back.step == state.step

    def of_either(model, x, target):
        return (in_training if model is layer else loss)(model, x, target)

    training = porting.prove_training((net, optimizer), (layer, other), of_either, batches[5:])
    assert training.agrees, training


@FULL
def test_a_state_of_optax(net, batches):
    optax, jax = pytest.importorskip("optax"), pytest.importorskip("jax")
    optimizer = begun(net, "adam", batches)
    state = porting.read_optimizer(optimizer, net)
    port = porting.trace(net, torch.zeros(4, 3, dtype=torch.float64), training=True)
    params = jax.tree.map(jax.numpy.asarray, port.params)
    schedule = optax.cosine_decay_schedule(RATE, 100)
    transform = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule, 0.8, 0.95))
    made = porting.write_optimizer(transform.init(params), state)
    counts = [x for x in jax.tree.leaves(made) if x.ndim == 0]
    assert len(counts) == 2 and all(int(x) == 5 for x in counts)
    back = porting.read_optimizer(made)
    assert (back.kind, back.step) == ("adam", 5)
    np.testing.assert_array_equal(back.slots["second"]["up.weight"], state.slots["second"]["up.weight"])
    with pytest.raises(ArgumentError, match="state is one of adam, the optimizer is of the kind sgd"):
        porting.write_optimizer(optax.sgd(0.1, 0.9).init(params), state)


def test_a_planted_difference_is_seen(net, batches):
    optimizer = begun(net, "adam", batches)
    module = copy.deepcopy(net)
    fresh = KINDS["adam"][0](module.parameters())  # without what the optimizer has learned
    assert not porting.prove_training((net, optimizer), (module, fresh), loss, batches[5:9]).agrees


def test_what_does_not_fit_is_refused(net, batches):
    state = porting.read_optimizer(begun(net, "adam", batches), net)
    with pytest.raises(ArgumentError, match=r"settings differ.*learning_rate 0.03125 and 0.5"):
        porting.write_optimizer(torch.optim.Adam(net.parameters(), 0.5, (0.75, 0.9375), 1e-16), state, net)
    with pytest.raises(ArgumentError, match="is one of adam, the optimizer is of the kind rmsprop"):
        porting.write_optimizer(torch.optim.RMSprop(net.parameters()), state, net)
    with pytest.raises(ArgumentError, match="amsgrad False and True"):
        porting.write_optimizer(
            torch.optim.Adam(net.parameters(), RATE, (0.75, 0.9375), 1e-16, amsgrad=True), state, net
        )
    with pytest.raises(ArgumentError, match="SGD, RMSprop, got Adagrad"):
        porting.read_optimizer(torch.optim.Adagrad(net.parameters()), net)
    with pytest.raises(ArgumentError, match="trained parameters are not those of the model"):
        porting.read_optimizer(torch.optim.SGD(net.parameters(), RATE), Net())
    with pytest.raises(errors.ArgumentTypeError, match="optimizer must be one of torch.optim or Keras"):
        porting.read_optimizer(7)
    keyed = torch.optim.Adam(net.down.parameters(), RATE, (0.75, 0.9375), 1e-16)
    with pytest.raises(ArgumentError, match="up.weight, up.bias, norm.weight, norm.bias unknown"):
        porting.write_optimizer(keyed, state, net)


def test_a_state_is_mapped_to_other_layouts(net, batches):
    state = porting.read_optimizer(begun(net, "adam", batches), net)
    target = porting.Weights(
        {name: {"kernel": np.zeros(s), "bias": np.zeros(s[1])} for name, s in (("up", (3, 6)), ("down", (6, 2)))}
        | {"norm": {"gamma": np.zeros(6), "beta": np.zeros(6)}},
        {"norm": {"moving_mean": np.zeros(6), "moving_variance": np.zeros(6)}},
        framework="keras",
    )
    mapped = state.mapped(porting.map_weights(net, target))
    assert (mapped.kind, mapped.step, mapped.options) == ("adam", 5, state.options)
    np.testing.assert_array_equal(mapped.slots["first"]["up.kernel"], state.slots["first"]["up.weight"].T)
    assert set(mapped.slots["second"]) == set(target.arrays) - {"norm.moving_mean", "norm.moving_variance"}
