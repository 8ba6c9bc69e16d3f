"""Ports as modules of PyTorch, flax and Keras: they train as the original does, in the framework's own loop."""

import copy
import functools
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import multiop
from multiop import porting

RATE, STEPS = 0.1, 3


class Net(torch.nn.Module):
    def __init__(self, rate=0.0):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.fc = torch.nn.Linear(4, 2)
        self.rate = rate

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x))).mean((2, 3))
        return self.fc(torch.nn.functional.dropout(x, self.rate, self.training))


@pytest.fixture(scope="module")
def batches():
    return np.random.default_rng(0).normal(size=(STEPS, 5, 3, 6, 6))


@pytest.fixture
def net(rng_seed=0):
    torch.manual_seed(rng_seed)
    return Net().double()


@pytest.fixture
def port(net, batches):
    return porting.trace(net, torch.tensor(batches[0]), training=True)


def trained(net, batches):
    """Return what the original has after some steps of SGD, and what it gives in evaluation then."""
    optimizer = torch.optim.SGD(net.parameters(), RATE)
    net.train()
    for x in torch.tensor(batches):
        optimizer.zero_grad()
        net(x).square().sum().backward()
        optimizer.step()
    return net.eval()(torch.tensor(batches[0])).detach().numpy()


def test_a_module_of_torch_trains_as_the_original(net, port, batches):
    module = port.as_module("torch")
    assert not module.training
    torch.testing.assert_close(module(torch.tensor(batches[0])), net.eval()(torch.tensor(batches[0])))
    torch.testing.assert_close(dict(module.state_dict()), dict(net.state_dict()))
    np.testing.assert_allclose(trained(module, batches), trained(net, batches), rtol=1e-9)
    torch.testing.assert_close(module.norm.running_var, net.norm.running_var)
    assert module.norm.num_batches_tracked == STEPS


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
def test_a_module_of_torch_is_copied(copied, port, batches):
    module = port.as_module("torch")
    x = torch.tensor(batches[0])
    with torch.no_grad():
        module.fc.bias.add_(1)
    torch.testing.assert_close(copied(module)(x), module(x))
    assert port.params["fc"]["bias"].max() < 1  # the module has weights of its own


@pytest.mark.tier("full")
@pytest.mark.compiler
def test_a_module_of_torch_compiles(port, batches):
    module, x = port.as_module("torch").train(), torch.tensor(batches[0])
    compiled = torch.compile(copy.deepcopy(module), fullgraph=True)
    torch.testing.assert_close(compiled(x), module(x))
    torch.testing.assert_close(compiled.norm.running_mean, module.norm.running_mean)


def test_dropout_draws_from_the_generator_of_torch(batches):
    x = torch.tensor(batches[0])
    module = porting.trace(Net(0.5).double(), x, training=True).as_module("torch").train()
    torch.manual_seed(1)
    first, second = module(x), module(x)
    torch.manual_seed(1)
    assert torch.equal(module(x), first) and not torch.equal(first, second)


@pytest.mark.tier("full")
@pytest.mark.parametrize("framework", ["torch", "flax", "keras"])
def test_names_that_a_module_has_already(framework):
    """`half` is a method of PyTorch's modules, `train` one of flax's, `call` one of Keras's layers."""
    if framework != "torch":
        pytest.importorskip({"flax": "flax.nnx"}.get(framework, framework))
    jnp = pytest.importorskip("jax.numpy")
    weights = {"half": jnp.ones(3), "train": {"call": jnp.arange(3.0)}, "port": jnp.ones(())}
    expected = weights["half"] + 2 * weights["train"]["call"] + weights["port"]

    def function(params, x):
        return params["half"] * x + params["train"]["call"] * x * 2 + params["port"]

    port = porting.trace(functools.partial(function, weights), jnp.ones((1, 3)))
    x = {"torch": torch.ones(1, 3, dtype=torch.float64), "flax": jnp.ones((1, 3))}.get(framework, np.ones((1, 3)))
    y = port.as_module(framework)(x)
    np.testing.assert_allclose(y.detach() if isinstance(y, torch.Tensor) else y, expected[None])


@pytest.mark.tier("full")
@pytest.mark.parametrize("framework", ["torch", "flax", "keras"])
def test_what_the_original_does_not_train_is_not_trained(framework, net, batches):
    module_of = {"flax": "flax.nnx"}.get(framework, framework)
    library = pytest.importorskip(module_of)
    net.conv.requires_grad_(False)
    port = porting.trace(net, torch.tensor(batches[0]), training=True)
    assert port.frozen == ["conv.weight", "conv.bias"]
    module = port.as_module(framework)
    if framework == "torch":
        wanted = {name: parameter.requires_grad for name, parameter in net.named_parameters()}
        assert {name: parameter.requires_grad for name, parameter in module.named_parameters()} == wanted
        np.testing.assert_allclose(trained(module, batches), trained(net, batches), rtol=1e-9)
    elif framework == "flax":
        names = {".".join(map(str, path)) for path, _ in library.to_flat_state(library.state(module, library.Param))}
        assert names == {"norm.weight", "norm.bias", "fc.weight", "fc.bias"}
    else:
        assert len(module.trainable_weights) == 4


def test_a_port_of_evaluation_does_not_train(net, batches):
    x = torch.tensor(batches[0])
    module = porting.trace(net.eval(), x).as_module("torch")
    with pytest.raises(multiop.errors.ArgumentError, match="trace it with training=True"):
        module.train()(x)


@pytest.mark.tier("full")
def test_a_module_of_flax_trains_as_the_original(net, port, batches):
    nnx, jax = pytest.importorskip("flax.nnx"), pytest.importorskip("jax")
    module = port.as_module("flax")
    x = jax.numpy.asarray(batches[0])
    np.testing.assert_allclose(module(x), net.eval()(torch.tensor(batches[0])).detach().numpy(), rtol=1e-9)

    @nnx.jit
    def step(module, x):
        slopes = nnx.grad(lambda module: jax.numpy.sum(module(x) ** 2))(module)
        nnx.update(module, jax.tree.map(lambda p, g: p - RATE * g, nnx.state(module, nnx.Param), slopes))

    module.train()
    for x in batches:
        step(module, jax.numpy.asarray(x))
    module.eval()
    expected = trained(net, batches)
    np.testing.assert_allclose(module(jax.numpy.asarray(batches[0])), expected, rtol=1e-9)
    np.testing.assert_allclose(module.norm.running_var[...], net.norm.running_var.numpy(), rtol=1e-9)


@pytest.mark.tier("full")
def test_dropout_of_flax_draws_from_rngs(batches):
    nnx = pytest.importorskip("flax.nnx")
    port = porting.trace(Net(0.5).double(), torch.tensor(batches[0]), training=True)
    module = port.as_module("flax", rngs=nnx.Rngs(0))
    module.train()
    first, second, again = module(batches[0]), module(batches[0]), port.as_module("flax", rngs=nnx.Rngs(0))
    again.train()
    assert np.array_equal(again(batches[0]), first) and not np.array_equal(first, second)
    again = port.as_module("flax")
    again.train()
    with pytest.raises(multiop.errors.ArgumentError, match=r"rngs=nnx.Rngs\(0\)"):
        again(batches[0])


@pytest.mark.tier("full")
def test_a_layer_of_keras_trains_as_the_original(net, port, batches):
    keras = pytest.importorskip("keras")
    layer = port.as_module("keras")
    inputs = keras.Input(batches.shape[2:], dtype="float64")
    model = keras.Model(inputs, layer(inputs))
    assert model.output_shape == (None, 2)
    assert len(model.trainable_weights) == len(list(net.parameters()))
    size = float(np.prod((*batches.shape[1:2], 2)))
    model.compile(keras.optimizers.SGD(RATE * size), loss=lambda wanted, y: keras.ops.mean(keras.ops.square(y)))
    for x in batches:
        model.fit(x, np.zeros((len(x), 2)), batch_size=len(x), verbose=0)
    np.testing.assert_allclose(model.predict(batches[0], verbose=0), trained(net, batches), rtol=1e-6)
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(layer.state["norm.running_var"]), net.norm.running_var.numpy(), rtol=1e-6
    )


def test_an_unknown_framework(port, tmp_path):
    with pytest.raises(multiop.errors.ArgumentError, match="one of torch, flax, keras, got 'tensorflow'"):
        port.as_module("tensorflow")
    with pytest.raises(multiop.errors.ArgumentError, match="one of torch, flax, keras, got 'tensorflow'"):
        port.save(tmp_path, "tensorflow")


def test_a_saved_module(port, net, batches, tmp_path, monkeypatch):
    port.save(tmp_path, "torch")
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__(f"{port.name}_torch").make()
    torch.testing.assert_close(module(torch.tensor(batches[0])), net.eval()(torch.tensor(batches[0])))
