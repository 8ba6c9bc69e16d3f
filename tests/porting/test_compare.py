"""compare names the layer and the cause of a planted mistake; right ports agree; dead layers are told apart."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import multiop
from multiop import errors, ops, porting
from multiop.porting import tap

spec = importlib.util.spec_from_file_location("planted", Path(__file__).with_name("planted.py"))
planted = importlib.util.module_from_spec(spec)
sys.modules["planted"] = planted
spec.loader.exec_module(planted)

BLOCKS = {
    "image": (planted.Image, planted.image, lambda rng: rng.normal(size=(2, 4, 8, 8))),
    "attention": (planted.Attention, planted.attention, lambda rng: np.array([[0, 3, 5], [1, 2, 6]])),
    "sequences": (planted.Sequences, planted.sequences, lambda rng: rng.normal(size=(2, 4, 3))),
}


@pytest.fixture(scope="module")
def blocks():
    computed = {}
    for name, (make, port, draw) in BLOCKS.items():
        torch.manual_seed(0)
        model = make().double().eval()
        with torch.no_grad():
            for x in [*model.parameters(), *(b for b in model.buffers() if b.is_floating_point())]:
                x.uniform_(0.3, 1.3) if x.ndim == 1 else x.normal_()
        weights = porting.read_weights(model)
        merged = {k: {**weights.params.get(k, {}), **weights.state.get(k, {})} for k in weights.params}
        computed[name] = (model, port, [draw(np.random.default_rng(0))], merged)
    return computed


def planted_in(blocks, mistake, backend="torch"):
    model, port, inputs, params = blocks[mistake.block]
    candidate = lambda p, x: port(p, x, **mistake.parts)
    return porting.compare(model, candidate, inputs, params=params, backends=backend, end_to_end=False)


@pytest.mark.parametrize("block", ["image", "attention", pytest.param("sequences", marks=pytest.mark.tier("full"))])
def test_the_right_port_agrees(blocks, block, backend):
    model, port, inputs, params = blocks[block]
    computed = porting.compare(model, port, inputs, params=params, backends=backend)
    print(computed)
    dead = {check.layer for check in computed.vacuous}
    assert computed.first_difference is None
    assert dead <= {"attn"}  # the gradient of a key's bias is zero, whatever it is
    assert max(map(len, str(computed).splitlines())) <= 80
    page = computed.to_html()
    assert page.count("<tr>") == len(computed.checks) + 1 and computed.verdict.split()[0] in page
    said = json.loads(computed.to_json())
    assert said["agree"] == computed.agree
    assert {check["mode"] for check in said["checks"]} == {"single step", "end to end"}


@pytest.mark.parametrize("name", planted.MISTAKES)
def test_a_planted_mistake(blocks, name):
    mistake = planted.MISTAKES[name]
    computed = planted_in(blocks, mistake)
    first = computed.first_difference
    assert (first.layer, first.mode) == (mistake.layer, "single step"), computed.verdict
    assert {check.layer for check in computed.differences if check.quantity == "value"} <= {mistake.layer, "output"}
    if mistake.cause is not None:
        assert computed.cause is not None, first
        assert mistake.cause in computed.cause
    else:
        assert computed.cause is None
    assert len(str(first)) < 1000


def test_the_table_of_mistakes_is_large_enough():
    assert len(planted.MISTAKES) >= 30
    assert sum(mistake.cause is not None for mistake in planted.MISTAKES.values()) >= 20


@pytest.mark.parametrize("name", ["bn, eps", "softmax, axis", "gelu, gradient stopped"])
def test_a_planted_mistake_on_each_backend(blocks, name, backend):
    mistake = planted.MISTAKES[name]
    computed = planted_in(blocks, mistake, backend)
    assert (computed.first_difference.layer, computed.first_difference.backend) == (mistake.layer, backend)
    assert mistake.cause in computed.cause


def chain(x, wrong=False):
    x = tap("first", ops.exp(x) if not wrong else ops.exp(x) + 1e-3)
    return tap("second", ops.sin(x))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_tolerances_follow_the_dtype(dtype, backend):
    x = np.linspace(-1, 1, 7).astype(dtype)
    assert porting.compare(chain, chain, [x]).agree
    slightly = lambda x: tap("second", ops.sin(tap("first", ops.exp(x) * (1 + 3e-6))))
    assert porting.compare(chain, slightly, [x]).agree == (dtype != "float64")
    computed = porting.compare(chain, lambda x: chain(x, wrong=dtype != "float16"), [x])
    assert (computed.first_difference is None) == (dtype == "float16")


def test_a_narrower_dtype_is_a_cause(backend):
    narrow = lambda x: tap("second", ops.sin(tap("first", ops.exp(ops.cast(x, "float32")))))
    computed = porting.compare(chain, narrow, [np.linspace(-1, 1, 7)])
    assert computed.cause == "computed in float32 where the reference has float64"
    counted = lambda x: tap("second", ops.cast(ops.sin(tap("first", ops.exp(x))), "int32"))
    assert porting.compare(chain, counted, [np.linspace(-1, 1, 7)]).first_difference.layer == "second"


def test_what_could_not_fail_is_vacuous_and_no_agreement():
    dead = lambda x: tap("tail", tap("relu", ops.relu(x - 10)) * 2)
    wrong = lambda x: tap("tail", tap("relu", ops.relu(x - 10)) * 3)
    x = np.linspace(-1.0, 1.0, 5)
    computed = porting.compare(dead, dead, [x])
    assert not computed.agree
    assert not computed.differences
    assert {check.layer for check in computed.vacuous} >= {"relu", "tail"}
    assert "could not have differed" in computed.verdict
    assert porting.compare(dead, wrong, [x]).first_difference.quantity == "gradient"
    assert porting.compare(dead, dead, [x], accept_vacuous=["relu", "tail", "output"]).agree
    assert not porting.compare(lambda x: x, lambda x: x, [np.zeros(0)]).agree


def test_a_lost_custom_gradient_is_found_where_the_value_is_exact():
    @multiop.op_custom_gradient
    def clipped(x):
        return ops.exp(x), lambda upstream: ops.clip(upstream * ops.exp(x), -0.05, 0.05)

    clipping = lambda x: tap("tail", ops.sin(tap("clipped", clipped(x))))
    other = lambda x: tap("tail", ops.sin(tap("clipped", ops.exp(x))))
    computed = porting.compare(clipping, other, [np.linspace(-1.0, 1.0, 5)])
    assert (computed.first_difference.layer, computed.first_difference.quantity) == ("clipped", "input gradient")
    assert "its rule is lost" in computed.cause


def test_statistics_after_a_step_in_training_mode():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(3)).double()
    params = {"0": porting.read_weights(model).params["0"]}
    state = {"0": {k: x for k, x in porting.read_weights(model).state["0"].items() if k != "num_batches_tracked"}}

    def port(momentum=0.1, ddof=1):
        def run(p, s, x):
            mean, var, count = ops.mean(x, 0), ops.var(x, 0), x.shape[0]
            y = tap("0", (x - mean) / ops.sqrt(var + 1e-5) * p["0"]["weight"] + p["0"]["bias"])
            s = s["0"]
            var = var * count / (count - ddof)
            old = {k: ops.convert_to_tensor(v) for k, v in s.items()}
            new = {
                "running_mean": (1 - momentum) * old["running_mean"] + momentum * mean,
                "running_var": (1 - momentum) * old["running_var"] + momentum * var,
            }
            return y, {"0": new}

        return run

    x = np.random.default_rng(0).normal(size=(5, 3))
    causes = {}
    for options in ({}, {"momentum": 0.9}, {"ddof": 0}):
        computed = porting.compare(
            model, port(**options), [x], params=params, state=state, training=True, accept_vacuous=["0"]
        )
        causes[str(options)] = computed.cause
        assert computed.agree == (not options), computed.verdict
    assert "momentum 0.9 where the reference has 0.1" in causes["{'momentum': 0.9}"]
    assert "biased" in causes["{'ddof': 0}"]
    assert not model[0].num_batches_tracked


def test_integers_have_values_alone(backend):
    count = lambda x: tap("count", x * 2 + 1)
    computed = porting.compare(count, count, [np.arange(4)])
    assert computed.agree
    assert {check.quantity for check in computed.checks} == {"value"}
    assert porting.compare(count, lambda x: tap("count", x * 2), [np.arange(4)]).first_difference.layer == "count"


def test_who_raised_is_said():
    class Broken(torch.nn.Module):
        def forward(self, x):
            raise ValueError("no such thing")

    with pytest.raises(
        errors.ReferenceRaisedError, match="the reference, Broken, raised ValueError, not the candidate: no such"
    ):
        porting.compare(Broken(), lambda x: x, [np.ones(2)])

    def port(x):
        raise KeyError("gone")

    with pytest.raises(errors.ArgumentError, match=r"the candidate, port on \w+, raised KeyError, not the reference"):
        porting.compare(torch.nn.ReLU(), port, [np.ones(2)])


def test_taps_that_have_no_counterpart_are_listed():
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()).double()
    w = porting.read_weights(model).params["0"]
    port = lambda x: tap("other", ops.tanh(tap("0", ops.add(x @ ops.transpose(w["weight"]), w["bias"]))))
    computed = porting.compare(model, port, [np.random.default_rng(0).normal(size=(3, 2))])
    assert "tap other: the reference has no layer of this name" in computed.not_compared
    assert computed.agree
    named = porting.compare(model, port, [np.ones((3, 2))], names={"other": "1"})
    assert not named.not_compared


def test_a_tap_is_the_identity(backend):
    x = multiop.op_convert_to_tensor([1.0, 2.0])
    assert tap("a", x) is x
    inside = multiop.jit(lambda x: tap("b", x) * 2)
    np.testing.assert_array_equal(multiop.op_convert_to_numpy(inside(x)), [2.0, 4.0])
    np.testing.assert_array_equal(
        multiop.op_convert_to_numpy(multiop.grad(lambda x: ops.sum(tap("c", x) ** 2))(x)), [2.0, 4.0]
    )


def test_images_with_channels_last():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Tanh()).double()
    w = porting.read_weights(model).params["0"]
    kernel = w["weight"].transpose(2, 3, 1, 0)
    port = lambda p, x: tap(
        "1", ops.tanh(tap("0", ops.conv(x, p["0"]["kernel"], data_format="channels_last") + p["0"]["bias"]))
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 6))
    params = porting.Weights({"0": {"kernel": kernel, "bias": w["bias"]}}, {}, "keras", {"0": "Conv2D"})
    assert porting.compare(model, port, [x], params=params, channels_last=True).agree
    params.params["0"]["bias"] = 2 * w["bias"]
    computed = porting.compare(model, port, [x], params=params, channels_last=True)
    assert computed.cause == "the bias is added twice"


def test_a_port_is_compared_without_taps():
    """The gradient of a bias in front of a normalization is rounding on both sides, which proves nothing."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.GELU()).double()
    x = np.random.default_rng(0).normal(size=(2, 2, 6, 6))
    port = porting.trace(net, torch.tensor(x), training=True)
    assert porting.compare(net.eval(), port, x).agree  # a lone array is one input, not its rows
    np.testing.assert_allclose(ops.convert_to_numpy(port(x)), net(torch.tensor(x)).detach().numpy(), rtol=1e-10)
    training = porting.compare(net.train(), port, [x], training=True)
    assert not training.differences and {check.name for check in training.vacuous} == {"0.bias"}
    port.params["1"]["weight"] = 2 * port.params["1"]["weight"]
    assert porting.compare(net.eval(), port, [x]).first_difference is not None


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.fc = torch.nn.LayerNorm(4), torch.nn.Linear(4, 4)
        self.rnn = torch.nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        return x + self.rnn(torch.nn.functional.gelu(self.fc(self.norm(x))))[0]


class Blocks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))
        self.head = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh())

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return {"logits": self.head(x), "hidden": x}


def test_a_port_with_taps_tells_at_which_layer_it_parts():
    torch.manual_seed(0)
    net, x = Blocks().double().eval(), np.random.default_rng(0).normal(size=(2, 3, 4))
    port = porting.trace(net, torch.tensor(x), taps=True)
    assert 'porting.tap(f"{name}.norm", ' in port.source and 'f"blocks.{i}"' in port.source
    assert porting.trace(net, torch.tensor(x)).source.count("tap") == 0
    comparison = porting.compare(net, port, [x])
    blocks = {f"blocks.{i}.{name}" for i in range(3) for name in ("norm", "fc", "rnn.0")}
    assert comparison.agree, comparison
    assert {check.layer for check in comparison.checks} >= blocks | {"head.0", "head.1"}
    assert 'porting.tap("head"' not in port.source  # which passes on what `head.1` returns
    port.params["blocks"]["1"]["norm"]["weight"] = port.params["blocks"]["1"]["norm"]["weight"] * 1.01
    assert porting.compare(net, port, [x]).first_difference.layer == "blocks.1.norm"


class Shared(torch.nn.Module):
    """Calls one block by several paths, and one layer before whose call is not used."""

    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = self.first
        self.blocks = torch.nn.ModuleList([self.first, Block()])

    def forward(self, x):
        self.first.fc(x + 1)
        x = self.second(self.first(x))
        for block in self.blocks:
            x = block(x)
        return self.second.fc(x)


def test_the_calls_of_a_shared_layer_are_told_apart():
    torch.manual_seed(0)
    net, x = Shared().double().eval(), np.random.default_rng(0).normal(size=(2, 3, 4))
    port = porting.trace(net, torch.tensor(x), taps=True)
    comparison = porting.compare(net, port, [x])
    calls = {f"first.fc{mark}" for mark in ("#2", "#3", "#4", "#5")} | {"first.norm", "first.norm#2", "first.norm#3"}
    assert comparison.agree, comparison
    assert {check.layer for check in comparison.checks} >= calls | {"blocks.1.fc"}
    told = [line for line in comparison.not_compared if "rnn" not in line]  # whose second result is not used
    assert told == ["layer first.fc: the candidate has no tap of this name"]
    port.params["blocks"]["1"]["fc"]["weight"] = port.params["blocks"]["1"]["fc"]["weight"] * 1.01
    assert porting.compare(net, port, [x]).first_difference.layer == "blocks.1.fc"


def test_the_gradient_of_a_layer_that_is_called_twice_is_that_of_both_calls():
    fc = torch.nn.Linear(4, 4).double()
    net, x = torch.nn.Sequential(fc, torch.nn.Tanh(), fc), np.random.default_rng(0).normal(size=(2, 4))
    comparison = porting.compare(net, porting.trace(net, torch.tensor(x), taps=True), [x])
    assert comparison.agree and {"0", "0#2"} <= {check.layer for check in comparison.checks}, comparison


@dataclasses.dataclass
class Result:
    logits: torch.Tensor
    hidden: torch.Tensor


class Structured(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x, other, scale=2.0):
        hidden = self.fc(other["b"] - other["a"]).tanh()
        return Result(hidden * x * scale, hidden)


def test_inputs_and_outputs_are_nested_as_the_original_has_them():
    net = Structured().double()
    x, a, b = np.random.default_rng(0).normal(size=(3, 2, 4))
    given = {"a": torch.tensor(a), "b": torch.tensor(b)}
    port = porting.trace(net, torch.tensor(x), keywords={"other": given, "scale": 3.0}, taps=True)
    comparison = porting.compare(net, port, [x, a, b])
    assert comparison.agree and len({check.name for check in comparison.checks if "input" in check.name}) == 3
    port = porting.trace(net, torch.tensor(x), given, taps=True)
    assert porting.compare(net, port, [x, {"a": a, "b": b}]).agree
    same = lambda x, other: {"a": tap("sin", ops.sin(other["b"])), "b": ops.cos(other["a"]) * x}
    comparison = porting.compare(same, same, [x, {"a": a, "b": b}])
    assert comparison.agree and "sin" in {check.layer for check in comparison.checks}


def test_an_exported_program_is_compared_without_layers():
    net, x = Blocks().double().eval(), np.random.default_rng(0).normal(size=(2, 3, 4))
    program = torch.export.export(net, (torch.tensor(x),))
    port = porting.trace(program, torch.tensor(x))
    assert porting.compare(program, port, [x]).agree
    port.params["head"]["0"]["weight"] = port.params["head"]["0"]["weight"] * 1.01
    assert porting.compare(program, port, [x]).differences


def test_a_cause_that_is_smaller_than_the_tolerance_of_its_dtype_is_found():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))

    def net(params, x):
        x = tap("0", x @ ops.transpose(params["0"]["weight"]) + params["0"]["bias"])
        x = tap("1", ops.gelu(x, approximate=True))
        return tap("2", x @ ops.transpose(params["2"]["weight"]) + params["2"]["bias"])

    x = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
    comparison = porting.compare(model, net, [x], params=porting.read_weights(model).params, backends=["torch"])
    assert comparison.cause == "gelu with tanh where the reference has gelu (erf)"


def test_a_proof_in_few_digits_hints_at_more():
    far = porting.Proof("jax", 0.0, 3e-3, 1e-4, 4)
    assert not far.agrees
    assert "in float64" in far.hint
    assert not porting.Proof("jax", 0.0, 3e-3, 1e-9, 4).hint
    assert not porting.Proof("jax", 0.5, 0.0, 1e-4, 4).hint
    assert not porting.Proof("jax", 0.0, 1e-5, 1e-4, 4).hint


def test_a_proof_that_fails_tells_how_far_rounding_moves_the_original():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(64, 4, bias=False)

        def forward(self, x):
            return torch.sin(self.linear(x) * 1e8)  # the order of a sum decides the ninth digit

    model = Model().double()
    port = porting.trace(model, torch.randn(2, 64, dtype=torch.float64))
    proof = porting.prove(port, "numpy")
    assert not proof.agrees and proof.tolerance < proof.distance <= proof.moved
    assert "the original moves by" in proof.hint
    with torch.no_grad():
        model.linear.weight += 1  # what has been trained since says nothing about what was traced
    assert not porting.prove(port, "numpy").moved


def test_a_fault_is_no_rounding():
    model, x = torch.nn.Linear(3, 2).double(), torch.ones(4, 3, dtype=torch.float64)
    port = porting.trace(model, x)
    port.params["weight"] = port.params["weight"] * (1 + 1e-6)
    proof = porting.prove(port, "numpy")
    assert not proof.agrees and 0 < proof.moved < proof.distance and not proof.hint


class Turned(torch.nn.Module):
    """Turns pairs of features by an angle of their place, as positions do: (i, i + n/2), or (2i, 2i + 1)."""

    def __init__(self, halves, sign=1):
        super().__init__()
        self.halves, self.sign = halves, sign

    def forward(self, x):
        count = x.shape[-1] // 2
        angle = self.sign * torch.arange(x.shape[-2])[:, None] / 10.0 ** torch.arange(count, dtype=x.dtype)
        pairs = x.unflatten(-1, (2, count)) if self.halves else x.unflatten(-1, (count, 2)).transpose(-1, -2)
        a, b = pairs.unbind(-2)
        turned = torch.stack((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), -2)
        return turned.flatten(-2) if self.halves else turned.transpose(-1, -2).flatten(-2)


F, IMAGE, QUERIES = torch.nn.functional, (2, 4, 6, 6), (2, 3, 5, 8)
resize = lambda size, mode, **options: lambda x: F.interpolate(x, size, mode=mode, **options)
resized = lambda size, mode, **options: torch.nn.Upsample(size, mode=mode, **options)
GENERAL = {  # a layer, what stands in its place, the shape of the input, and what the cause has to say
    "layer norm for group norm": (
        torch.nn.GroupNorm(1, 4),
        lambda x: F.layer_norm(x.movedim(1, -1), (4,)).movedim(-1, 1),
        IMAGE,
        "normalised over other axes of (2, 6, 6, 1, 4) than [1, 2, 4], [4]",
    ),
    "group norm for layer norm": (
        torch.nn.LayerNorm(6),
        lambda x: F.group_norm(x, 1),
        IMAGE,
        "normalised over other axes of (2, 4, 6, 6) than [3], [1, 2, 3]",
    ),
    "another number of groups": (torch.nn.GroupNorm(2, 4), lambda x: F.group_norm(x, 1), IMAGE, "[1, 2, 3, 4]"),
    "pairs of features": (Turned(True), Turned(False), QUERIES, "(2i, 2i + 1) are turned where"),
    "halves of features": (Turned(False), Turned(True), QUERIES, "(i, i + n/2) are turned where"),
    "the other direction": (Turned(True), Turned(True, -1), QUERIES, "the other way round"),
    "interleaved": (
        torch.nn.Tanh(),
        lambda x: torch.tanh(x).unflatten(-1, (2, 4)).transpose(-1, -2).flatten(-2),
        QUERIES,
        "axis 3 are in another order, 0, 4, 1, 5, 2, 6 and 2 more",
    ),
    "aligned corners": (
        resized((9, 4), "bilinear"),
        resize((9, 4), "bilinear", align_corners=True),
        IMAGE,
        "linear with aligned corners where the reference has linear with half-pixel centres",
    ),
    "half pixels": (
        resized((9, 4), "bicubic", align_corners=True),
        resize((9, 4), "bicubic"),
        IMAGE,
        "cubic (-0.75) with half-pixel centres where the reference has cubic (-0.75) with aligned corners",
    ),
    "antialias": (
        resized((3, 4), "bilinear"),
        resize((3, 4), "bilinear", antialias=True),
        IMAGE,
        "linear with half-pixel centres, antialiased where the reference has linear with half-pixel centres",
    ),
    "nearest": (
        resized((9, 4), "nearest-exact"),
        resize((9, 4), "nearest"),
        IMAGE,
        "rounded down with aligned upper left corners where the reference has nearest with half-pixel",
    ),
    "gelu": (torch.nn.GELU(), lambda x: x * torch.sigmoid(1.702 * x), IMAGE, "gelu with a sigmoid where"),
}


@pytest.mark.parametrize("name", GENERAL)
def test_a_cause_of_a_general_kind(name):
    layer, wrong, shape, cause = GENERAL[name]
    model = torch.nn.Sequential(layer, torch.nn.Tanh()).double().eval()
    candidate = lambda x: tap("1", ops.tanh(tap("0", wrong(x))))
    with multiop.use_backend("torch"):
        computed = porting.compare(model, candidate, [np.random.default_rng(0).normal(size=shape)])
    assert computed.first_difference.layer == "0"
    assert cause in computed.cause
