"""Training that goes on in another framework makes the steps that it would have made."""

import copy
import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from multiop import errors, ops, porting
from multiop.errors import ArgumentError

RATE = 2.0**-5  # settings are numbers of float32, to which Keras rounds them
BETAS = 0.875, 0.96875
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


def begun(net, make, batches):
    """Return the optimizer of PyTorch after the first five steps."""
    optimizer = (KINDS[make][0] if make in KINDS else make)(net.parameters())
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
    assert back.step == (state.step or 0)  # SGD of PyTorch counts none

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


def trained(model, optimizer, steps=2):
    for n in range(steps):
        optimizer.zero_grad()
        (model(torch.ones(4, 3, dtype=torch.float64) * (n + 1)) ** 2).sum().backward()
        optimizer.step()
    return model, optimizer


def two_groups(decays=(0.125, 0.0), rates=(RATE, RATE)):
    model = torch.nn.Linear(3, 2).double()
    named = zip((model.weight, model.bias), decays, rates, strict=True)
    groups = [{"params": [x], "weight_decay": decay, "lr": rate} for x, decay, rate in named]
    return trained(model, torch.optim.AdamW(groups, betas=BETAS, eps=1e-16))


def layer_of(model):
    return porting.trace(model, torch.ones(4, 3, dtype=torch.float64), training=True).as_module("keras")


def grouped(kind, decays=(0.125, 0.125), rates=(RATE, RATE)):
    """Return what makes an optimizer with a group for kernels and one for biases."""

    def make(parameters):
        every = list(parameters)
        parts = [[p for p in every if (p.ndim > 1) is is_kernel] for is_kernel in (True, False)]
        named = zip(parts, decays, rates, strict=True)
        return kind([{"params": p, "weight_decay": decay, "lr": rate} for p, decay, rate in named], RATE, BETAS, 1e-16)

    return make


@pytest.mark.parametrize(
    ("right", "slip", "step"),
    [
        pytest.param(grouped(torch.optim.AdamW, (0.125, 0.0)), grouped(torch.optim.AdamW), 5, id="decay of a group"),
        pytest.param(grouped(torch.optim.Adam, rates=(RATE, 0.25)), grouped(torch.optim.Adam), 5, id="rate of a group"),
        pytest.param(grouped(torch.optim.Adam), grouped(torch.optim.AdamW), 5, id="L2 taken for decoupled decay"),
        pytest.param(grouped(torch.optim.Adam), grouped(torch.optim.Adam), 0, id="count begins anew"),
    ],
)
def test_a_planted_slip_is_seen(right, slip, step, net, batches):
    optimizer = begun(net, right, batches)

    def carried(make, count):
        model = copy.deepcopy(net)
        other = make(model.parameters())
        for ours, theirs in zip(model.parameters(), net.parameters(), strict=True):
            other.state[ours] = copy.deepcopy(optimizer.state[theirs]) | {"step": torch.tensor(float(count))}
        return model, other

    for make, count, agrees in ((right, 5, True), (slip, step, False)):
        training = porting.prove_training(carried(right, 5), carried(make, count), loss, batches[5:9])
        assert training.agrees is agrees, training


@FULL
def test_a_planted_schedule_that_begins_anew_is_seen(batches):
    keras = pytest.importorskip("keras")
    halving = keras.optimizers.schedules.ExponentialDecay(2 * RATE, 5, 0.5, staircase=True)
    for begun_at, agrees in ((5, True), (0, False)):
        sides = [(layer_of(torch.nn.Linear(3, 2).double()), keras.optimizers.SGD(halving, 0.5)) for _ in range(2)]
        sides[1][0].set_weights(sides[0][0].get_weights())
        for (_, optimizer), count in zip(sides, (5, begun_at), strict=True):
            optimizer.iterations.assign(count)
        training = porting.prove_training(*sides, loss, batches[:3])
        assert training.agrees is agrees, training


@PLAIN
def test_groups_of_parameters_are_carried_or_refused():
    model, optimizer = two_groups()
    state = porting.read_optimizer(optimizer, model)
    assert state.options["weight_decay"] == {"weight": 0.125, "bias": 0.0}
    again, other = two_groups()
    porting.write_optimizer(other, state, again)
    with pytest.raises(ArgumentError, match="weight_decay 0.0 and 0.125 of bias"):
        porting.write_optimizer(torch.optim.AdamW(model.parameters(), RATE, BETAS, 1e-16, 0.125), state, model)
    with pytest.raises(ArgumentError, match="groups of parameters that differ in amsgrad"):
        groups = [{"params": [model.weight], "amsgrad": True}, {"params": [model.bias]}]
        porting.read_optimizer(torch.optim.Adam(groups, RATE), model)
    target = porting.Weights({"kernel": np.zeros((3, 2)), "bias": np.zeros(2)}, framework="keras")
    mapped = state.mapped(porting.map_weights(model, target))
    assert mapped.options["weight_decay"] == {"kernel": 0.125, "bias": 0.0}


@PLAIN
def test_groups_of_parameters_in_keras(batches):
    keras = pytest.importorskip("keras")
    model, optimizer = two_groups()
    state, layer = porting.read_optimizer(optimizer, model), layer_of(model)
    excluding = keras.optimizers.AdamW(RATE, 0.125, *BETAS, 1e-16)
    with pytest.raises(ArgumentError, match="weight_decay 0.0 and 0.125 of bias"):
        porting.write_optimizer(keras.optimizers.AdamW(RATE, 0.125, *BETAS, 1e-16), state, layer)
    excluding.exclude_from_weight_decay([layer.params["bias"]])
    porting.write_optimizer(excluding, state, layer)
    back = porting.read_optimizer(excluding, layer)
    assert back.options["weight_decay"] == {"weight": 0.125, "bias": 0.0}
    training = porting.prove_training((model, optimizer), (layer, excluding), loss, batches[:5])
    assert training.agrees, training
    dropped = keras.optimizers.AdamW(RATE, 0.125, *BETAS, 1e-16)  # planted: all are decayed
    shared = dataclasses.replace(state, options=state.options | {"weight_decay": 0.125})
    porting.write_optimizer(dropped, shared, layer)
    assert not porting.prove_training((model, optimizer), (layer, dropped), loss, batches[:5]).agrees
    with pytest.raises(ArgumentError, match="learning_rate 0.25 and 0.03125 of bias"):
        model, optimizer = two_groups((0.125, 0.125), (RATE, 0.25))
        porting.write_optimizer(dropped, porting.read_optimizer(optimizer, model), layer)


def test_groups_of_parameters_in_optax():
    optax, jnp = pytest.importorskip("optax"), pytest.importorskip("jax.numpy")
    model, optimizer = two_groups()
    state = porting.read_optimizer(optimizer, model)
    params = {"weight": jnp.ones((2, 3)), "bias": jnp.ones(2)}
    masked = optax.adamw(RATE, mask={"weight": True, "bias": False})
    labels = {"weight": "decayed", "bias": "plain"}
    partition = optax.multi_transform({"decayed": optax.adamw(RATE), "plain": optax.adam(RATE)}, labels)
    for transform in (masked, optax.chain(optax.clip_by_global_norm(1.0), partition)):
        back = porting.read_optimizer(porting.write_optimizer(transform.init(params), state))
        assert back.step == 2
        for slot, arrays in state.slots.items():
            for name, x in arrays.items():
                np.testing.assert_array_equal(back.slots[slot][name], x)
    with pytest.raises(ArgumentError, match="weight_decay differs between the state's groups"):
        porting.write_optimizer(optax.adamw(RATE).init(params), state)
    single = torch.optim.AdamW(model.parameters(), RATE, eps=1e-16)
    with pytest.warns(UserWarning, match="optimizer has groups of parameters"):
        porting.write_optimizer(single, porting.read_optimizer(partition.init(params)), model)


def slips(optax):
    """Return what makes an optimizer of PyTorch, the same of optax and one with a slip; and what refuses the slip."""
    jax = pytest.importorskip("jax")

    def labelled(of_kernels, of_others):
        return lambda params: jax.tree.map(lambda x: of_kernels if x.ndim > 1 else of_others, params)

    def masked(decays_kernels):
        mask = labelled(decays_kernels, not decays_kernels)
        return optax.chain(optax.add_decayed_weights(0.125, mask), optax.adam(RATE, *BETAS, 1e-16))

    def partition(*rates):
        kinds = {str(n): optax.inject_hyperparams(optax.sgd)(rate, momentum=0.875) for n, rate in enumerate(rates)}
        return optax.multi_transform(kinds, labelled("0", "1"))

    def sgd(parameters, slower=0.25 * RATE, **options):
        every = list(parameters)
        groups = [{"params": [p for p in every if (p.ndim > 1) is is_kernel]} for is_kernel in (True, False)]
        return torch.optim.SGD([groups[0], groups[1] | {"lr": slower}], RATE, **options)

    def decoupled(parameters):
        return torch.optim.AdamW(parameters, RATE, weight_decay=0.125)

    def adam(parameters):
        return torch.optim.Adam(parameters, RATE)

    inject = optax.inject_hyperparams
    momentum = {"momentum": 0.875}
    return {
        "nesterov": (
            lambda p: torch.optim.SGD(p, RATE, nesterov=True, **momentum),
            lambda: optax.sgd(RATE, nesterov=True, **momentum),
            lambda: optax.sgd(RATE, **momentum),
            None,
        ),
        "a mask of L2": (grouped(torch.optim.Adam, (0.125, 0.0)), lambda: masked(True), lambda: masked(False), None),
        "labels": (
            lambda p: sgd(p, **momentum),
            lambda: partition(RATE, 0.25 * RATE),
            lambda: partition(0.25 * RATE, RATE),
            "settings differ.*learning_rate",
        ),
        "labels lost": (
            sgd,
            lambda: optax.multi_transform({"0": optax.sgd(RATE), "1": optax.sgd(0.25 * RATE)}, labelled("0", "1")),
            lambda: optax.sgd(RATE),
            "learning_rate differs between the state's groups",
        ),
        "decay": (
            decoupled,
            lambda: inject(optax.adamw)(RATE, weight_decay=0.125),
            lambda: inject(optax.adamw)(RATE, weight_decay=0.25),
            "weight_decay 0.125 and 0.25",
        ),
        "rate": (adam, lambda: inject(optax.adam)(RATE), lambda: inject(optax.adam)(0.5 * RATE), "learning_rate"),
        "eps_root": (adam, lambda: optax.adam(RATE), lambda: optax.adam(RATE, eps_root=1e-3), None),
        "eps_root, told": (
            adam,
            lambda: inject(optax.adam)(RATE),
            lambda: inject(optax.adam)(RATE, eps_root=1e-3),
            "eps_root is an option that optax alone has",
        ),
        "a schedule": (
            adam,
            lambda: inject(optax.adam)(optax.piecewise_constant_schedule(7 * RATE, {5: 1 / 7})),
            lambda: inject(optax.adam)(optax.piecewise_constant_schedule(RATE, {8: 7.0})),
            None,
        ),
        "order": (
            adam,
            lambda: optax.chain(optax.scale_by_adam(), optax.scale(-RATE)),
            lambda: optax.chain(optax.scale(-RATE), optax.scale_by_adam()),
            None,
        ),
        "a bias corrected": (
            lambda p: torch.optim.RMSprop(p, RATE, 0.875),
            lambda: optax.rmsprop(RATE, 0.875, eps_in_sqrt=False),
            lambda: optax.rmsprop(RATE, 0.875, eps_in_sqrt=False, bias_correction=True),
            "ScaleByRmsWithCountState in the state of optax",
        ),
    }


SLIPS = ["nesterov", "a mask of L2", "labels", "labels lost", "decay", "rate", "eps_root", "eps_root, told"]
SLIPS += ["a schedule", "order", "a bias corrected"]


@PLAIN
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name == "labels" else FULL) for name in SLIPS])
def test_a_planted_slip_of_optax_is_seen(name, net, batches):
    nnx, optax = pytest.importorskip("flax.nnx"), pytest.importorskip("optax")
    make, right, slip, refusal = slips(optax)[name]
    state = porting.read_optimizer(begun(net, make, batches), net)

    def training(transform):
        model, module = copy.deepcopy(net), ported(net, "flax")
        optimizer, other = make(model.parameters()), nnx.Optimizer(module, transform, wrt=nnx.Param)
        porting.write_optimizer(optimizer, state, model)
        porting.write_optimizer(other, state, module)
        back = porting.read_optimizer(other)
        for slot, arrays in state.slots.items():
            for leaf, x in arrays.items():
                np.testing.assert_array_equal(back.slots[slot][leaf], x)
        return porting.prove_training((model, optimizer), (module, other), loss, batches[5:12])

    assert training(right()).agrees
    if refusal is None:
        assert not training(slip()).agrees
    else:
        with pytest.raises(ArgumentError, match=refusal):
            training(slip())


def test_steps_and_schedules():
    keras = pytest.importorskip("keras")
    model = torch.nn.Linear(3, 2).double()
    model, optimizer = trained(model, torch.optim.SGD(model.parameters(), RATE, momentum=0.5))
    state, layer = porting.read_optimizer(optimizer, model), layer_of(model)
    assert state.step is None
    halving = keras.optimizers.schedules.ExponentialDecay(2 * RATE, 5, 0.5, staircase=True)
    other = keras.optimizers.SGD(halving, momentum=0.5)
    other.iterations.assign(5)
    with pytest.warns(UserWarning, match="Keras multiplies its momentum by the rate"):
        porting.write_optimizer(other, state, layer)
    assert (int(other.iterations), float(other.learning_rate)) == (5, RATE)
    fresh = keras.optimizers.SGD(halving, momentum=0.5)
    with pytest.warns(UserWarning, match="tells no step"), pytest.raises(ArgumentError, match="learning_rate"):
        porting.write_optimizer(fresh, state, layer)
    with pytest.warns(UserWarning, match="Keras multiplies"):
        porting.write_optimizer(fresh, dataclasses.replace(state, step=5), layer)
    assert int(fresh.iterations) == 5
    late = porting.OptimizerState("adam", 5, dict.fromkeys(("first", "second"), state.slots["momentum"]))
    late.options = {"learning_rate": RATE}
    adam = keras.optimizers.Adam(halving)  # that gives the state's rate at the state's step
    porting.write_optimizer(adam, late, layer)
    assert int(adam.iterations) == 5
    late.options = {"learning_rate": 7.0}
    late.step = 9
    with pytest.raises(ArgumentError, match="learning_rate"):
        porting.write_optimizer(adam, late, layer)
    assert int(adam.iterations) == 5  # a refusal changes nothing


def test_steps_and_decays_of_optax():
    optax, jnp = pytest.importorskip("optax"), pytest.importorskip("jax.numpy")
    params = {"weight": jnp.ones((2, 3)), "bias": jnp.ones(2)}
    model = torch.nn.Linear(3, 2).double()
    model, optimizer = trained(model, torch.optim.SGD(model.parameters(), RATE, momentum=0.5))
    begun = optax.sgd(optax.cosine_decay_schedule(RATE, 100), 0.5).init(params)
    with pytest.warns(UserWarning, match="tells no step"):
        porting.write_optimizer(begun, porting.read_optimizer(optimizer, model))
    made = porting.write_optimizer(begun, dataclasses.replace(porting.read_optimizer(optimizer, model), step=5))
    assert int(made[1].count) == 5
    assert int(porting.write_optimizer(made, porting.read_optimizer(optimizer, model))[1].count) == 5
    for decoupled in (False, True):
        kind = torch.optim.AdamW if decoupled else torch.optim.Adam
        model, optimizer = trained(model, kind(model.parameters(), RATE, weight_decay=0.125))
        state = porting.read_optimizer(optimizer, model)
        before = optax.chain(optax.add_decayed_weights(0.125), optax.adam(RATE))
        right, wrong = (optax.adamw(RATE), before) if decoupled else (before, optax.adamw(RATE))
        porting.write_optimizer(right.init(params), state)
        with pytest.raises(ArgumentError, match="decays weights by" if decoupled else "adds squares of weights"):
            porting.write_optimizer(wrong.init(params), state)
    model, optimizer = trained(model, torch.optim.Adam(model.parameters(), RATE))
    with pytest.warns(UserWarning, match="does not decay weights"):
        porting.write_optimizer(optax.adamw(RATE).init(params), porting.read_optimizer(optimizer, model))


def test_what_is_frozen_has_no_state():
    keras = pytest.importorskip("keras")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4).requires_grad_(False), torch.nn.Linear(4, 2)).double()
    model, optimizer = trained(model, torch.optim.AdamW(model.parameters(), RATE, BETAS, 1e-16, 0.125))
    state, layer = porting.read_optimizer(optimizer, model), layer_of(model)
    assert state.frozen == ["0.weight", "0.bias"] and set(state.slots["first"]) == {"1.weight", "1.bias"}
    other = keras.optimizers.AdamW(RATE, 0.125, *BETAS, 1e-16)
    with pytest.warns(UserWarning, match="adds epsilon to"):
        porting.write_optimizer(other, state, layer)
    again = torch.optim.AdamW(model.parameters(), RATE, BETAS, 1e-16, 0.125)
    porting.write_optimizer(again, state, model)
    model.requires_grad_(True)
    with pytest.warns(UserWarning, match="0.weight, 0.bias: frozen where the state is from"):
        porting.write_optimizer(again, state, model)
    assert model[0].weight not in again.state


@FULL
def test_what_is_frozen_is_proven_in_flax(batches):
    nnx, optax, jax = pytest.importorskip("flax.nnx"), pytest.importorskip("optax"), pytest.importorskip("jax")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4).requires_grad_(False), torch.nn.Linear(4, 2)).double()
    model, optimizer = trained(model, torch.optim.Adam(model.parameters(), RATE))
    state = porting.read_optimizer(optimizer, model)
    for way in ("there", "back"):
        module = ported(copy.deepcopy(model), "flax")
        kinds = {"trained": optax.adam(RATE), "frozen": optax.set_to_zero()}
        transform = optax.multi_transform(kinds, lambda params: jax.tree.map(lambda x: "trained", params))
        other = nnx.Optimizer(module, transform, wrt=nnx.Param)
        porting.write_optimizer(other, state, module)
        sides = [(copy.deepcopy(model), None), (module, other)]
        sides[0] = sides[0][0], torch.optim.Adam(sides[0][0].parameters(), RATE)
        porting.write_optimizer(sides[0][1], state, sides[0][0])
        training = porting.prove_training(*(sides if way == "there" else sides[::-1]), loss, batches[:5])
        assert training.agrees, training


def test_a_class_that_makes_its_own_steps_is_refused():
    keras = pytest.importorskip("keras")

    class Renamed(torch.optim.AdamW):
        pass

    class Signed(torch.optim.AdamW):
        def step(self, closure=None):
            return super().step(closure)

    class Scaled(keras.optimizers.Adam):
        def update_step(self, gradient, variable, learning_rate):
            super().update_step(2 * gradient, variable, learning_rate)

    model = torch.nn.Linear(3, 2).double()
    scheduled = torch.optim.SGD(model.parameters(), RATE)
    torch.optim.lr_scheduler.StepLR(scheduled, 2)  # which puts a step of its own on the optimizer itself
    for optimizer in (Renamed(model.parameters(), RATE), scheduled, torch.optim.Adam(model.parameters(), fused=True)):
        assert porting.read_optimizer(*trained(model, optimizer)[::-1]).kind in ("adamw", "sgd", "adam")
    with pytest.raises(ArgumentError, match="Signed has its own `step`, not that of AdamW"):
        porting.read_optimizer(*trained(model, Signed(model.parameters(), RATE))[::-1])
    layer = layer_of(model)
    for made, words in ((Scaled(RATE), "Scaled has its own `update_step`"), (keras.optimizers.Adam(RATE), "")):
        made.build(layer.trainable_variables)
        if words:
            with pytest.raises(ArgumentError, match=words):
                porting.read_optimizer(made, layer)
    clipping = keras.optimizers.Adam(RATE, clipnorm=0.5)
    clipping.build(layer.trainable_variables)
    with pytest.warns(UserWarning, match=r"clips gradients \(clipnorm 0.5\)"):
        porting.read_optimizer(clipping, layer)


def test_a_parameter_without_a_gradient_so_far_has_made_no_step():
    model = torch.nn.ModuleDict({"used": torch.nn.Linear(3, 2), "late": torch.nn.Linear(3, 2)}).double()
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    trained(lambda x: model["used"](x), optimizer)
    with pytest.warns(UserWarning, match=r"late.weight, late.bias: without a gradient so far; .* from step 2"):
        porting.read_optimizer(optimizer, model)


@pytest.mark.parametrize("decay", [0.125, 0.5])
def test_weights_that_are_tied_are_trained_once(decay, batches):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.h, self.o = (torch.nn.Linear(3, n, bias=False) for n in (3, 3, 2))
            self.h.weight = self.e.weight

        def forward(self, x):
            return self.o(self.h(torch.tanh(self.e(x))))

    def grouped_by(model, decay):
        tied = [{"params": [model.get_parameter("e.weight")], "weight_decay": decay}]
        return torch.optim.AdamW([*tied, {"params": [model.get_parameter("o.weight")], "weight_decay": 0.0}], RATE)

    model, optimizer = trained(model := Tied().double(), grouped_by(model, 0.125))
    module = porting.trace(model, torch.zeros(4, 3, dtype=torch.float64), training=True).as_module("torch").train()
    other, state = grouped_by(module, decay), porting.read_optimizer(optimizer, model)
    if decay == 0.125:
        porting.write_optimizer(other, state, module)
        assert porting.prove_training((model, optimizer), (module, other), loss, batches[:4]).agrees
    else:
        with pytest.raises(ArgumentError, match="weight_decay 0.125 and 0.5 of e.weight"):
            porting.write_optimizer(other, state, module)
