"""What the printer writes, from graphs made by hand: no framework is needed."""

from __future__ import annotations

import ast
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import multiop
from multiop.porting import _graph, _printing
from multiop.porting._graph import Call, Dim, Graph, Infix, Item, Node, Scope, Value, call
from multiop.porting._printing import source_text
from multiop.porting._printing.expressions import Text, string_literal

BATCH = Dim("batch", ("batch",))


class Model:
    """Makes a graph, statement by statement."""

    def __init__(self, *shapes):
        self.inputs = [Value(shape, "float32", "input", name) for name, shape in zip("xyz", shapes, strict=False)]
        self.nodes, self.leaves, self.params, self.state = [], {}, {}, {}

    def leaf(self, path, *shape, kind="params"):
        if path not in self.leaves:
            self.leaves[path] = Value(shape, "float32", kind, path)
            getattr(self, kind)[path] = np.zeros(shape, "float32")
        return self.leaves[path]

    def add(self, expression, shape, *scopes, update=None):
        value = Value(shape, "float32")
        outputs = [value] if update is None else [value, Value((), "dict")]
        self.nodes.append(Node(outputs, expression, tuple(scopes), update))
        return value

    def linear(self, x, path, size, *scopes):
        leaves = {name: self.leaf(f"{path}.{name}", size) for name in ("weight", "bias")}
        return self.add(call("linear", x, **leaves), (BATCH, size), *scopes)

    def source(self, outputs, kind="Net"):
        graph = Graph(kind, self.inputs, self.params, self.state, self.nodes, outputs, self.leaves, "PyTorch")
        return _printing.source(graph, "net")


def body(source, name="net"):
    """Return the lines of a function without its head, its docstring and blank lines."""
    lines = source[source.index(f"def {name}(") :].split("\n\n\n")[0].rstrip().splitlines()
    start = next(i for i, line in enumerate(lines) if line.endswith('"""'))
    return [line.strip() for line in lines[start + 1 :] if line]


def block(model, x, path, size=8, skip=True):
    scope = Scope(path, path, "Block", False)
    y = model.linear(x, f"{path}.first", size, scope)
    y = model.add(call("ops.relu", y), (BATCH, size), scope)
    y = model.linear(y, f"{path}.second", size, scope)
    return model.add(Infix("+", x, y), (BATCH, size), scope) if skip else y


def test_equal_submodules_are_one_function_called_in_a_loop():
    model = Model((BATCH, 8))
    x = model.inputs[0]
    for i in range(3):
        x = block(model, x, f"layers.{i}")
    source = model.source(model.linear(x, "head", 8))
    assert body(source) == [
        "for i in range(3):",
        'x = block(params["layers"][str(i)], x)',
        'return linear(x, **params["head"]), state',
    ]
    assert body(source, "block") == [
        'return x + linear(ops.relu(linear(x, **params["first"])), **params["second"])',
    ]
    assert source.count("def linear(") == source.count("def block(") == 1


def test_what_differs_is_a_parameter_or_another_function():
    model = Model((BATCH, 8))
    x = model.inputs[0]
    for i, rate in enumerate((0.1, 0.2)):
        scope = Scope(f"b.{i}", f"b.{i}", "Block", False)
        for part in ("first", "second"):
            x = model.linear(x, f"b.{i}.{part}", 8, scope)
            x = model.add(call("ops.leaky_relu", x, negative_slope=rate), (BATCH, 8), scope)
    x = block(model, x, "last")
    source = model.source(x)
    first = 'block(params["b"]["0"], x, negative_slope=0.1)'
    assert body(source)[0] == f'x = block(params["b"]["1"], {first}, negative_slope=0.2)'
    assert "negative_slope: float" in source and "def block_2(" in source


def test_an_item_belongs_to_what_two_submodules_have_in_common():
    """As of blocks that take one token each."""
    model = Model((BATCH, 8))
    x = model.inputs[0]
    for i, item in enumerate((0, 1, 0)):
        scope = Scope(f"b.{i}", f"b.{i}", "Block", False)
        y = model.linear(x, f"b.{i}.first", 8, scope)
        y = model.add(Item(y, (slice(None), slice(item, item + 1))), (BATCH, 1), scope)
        y = model.add(Item(y, (slice(None), 0 if i < 2 else -1)), (BATCH,), scope)
        x = model.add(Infix("+", x, call("ops.expand_dims", y, -1)), (BATCH, 8), scope)
    source = model.source(x)
    assert [source.count(f"[:, {key}]") for key in ("0:1", "1:2", "0", "-1")] == [2, 1, 2, 1]
    assert [source.count(f"def {name}(") for name in ("block", "block_2", "block_3")] == [1, 1, 1]


@pytest.mark.parametrize("last", [2, 1])  # which of the blocks is asked for its inner result
def test_a_function_returns_what_any_call_of_it_is_asked_for(last):
    model = Model((BATCH, 8))
    x = model.inputs[0]
    for i in range(3):
        x = block(model, x, f"layers.{i}")
    inner = model.nodes[4 * last + 1].outputs[0]
    source = model.source(model.add(Infix("*", x, inner), (BATCH, 8)))
    assert source.count("def block") == 1
    called = ['y, x = block(params["layers"][str(i)], x)', "return x * y, state"]
    if last == 2:
        assert body(source) == ["for i in range(3):", *called]
    else:
        alone = '_, x = block(params["layers"]["2"], x)'
        assert body(source) == ["for i in range(2):", called[0], alone, called[1]]


def test_a_block_that_is_given_what_differs_is_one_function():
    """As of layers that call a module of the model around them."""
    model = Model((BATCH, 8))
    x = model.inputs[0]
    for i in range(2):
        outer = Scope(f"layers.{i}", f"layers.{i}", "Block", False)
        turn = Scope(f"turn_{i}", f"turn_{i}", "Turn", False)
        y = model.linear(x, f"layers.{i}.first", 8, outer)
        for name in ("ops.relu", "ops.tanh", "ops.exp"):
            y = model.add(call(name, y), (BATCH, 8), outer, turn)
        x = model.add(Infix("+", x, y), (BATCH, 8), outer)
    source = model.source(x)
    assert source.count("def block") == source.count("def turn") == 1


def test_a_loop_keeps_what_is_used_afterwards():
    model = Model((BATCH, 8), (BATCH, 8))
    x, y = model.inputs
    z = x
    for i in range(2):
        z = block(model, z, f"layers.{i}")
    source = model.source(model.add(Infix("+", Infix("*", x, y), z), (BATCH, 8)))
    assert body(source)[:3] == ["z = x", "for i in range(2):", 'z = block(params["layers"][str(i)], z)']


def test_the_state_is_new_where_it_is_replaced_and_kept_elsewhere():
    model = Model((BATCH, 8))
    kept = model.leaf("kept", 8, kind="state")
    leaves = {name: model.leaf(f"norm.{name}", 8, kind="state") for name in ("running_mean", "running_var")}
    expression = call("tracked_batch_norm", model.inputs[0], **leaves, training=_graph.TRAINING)
    x = model.add(expression, (BATCH, 8), update="norm")
    source = model.source(model.add(Infix("+", x, kept), (BATCH, 8)))
    assert body(source) == [
        "new_state: dict[str, Any] = {**state}",
        'x, new_state["norm"] = tracked_batch_norm(x, **state["norm"], training=training)',
        'return x + state["kept"], new_state',
    ]


def test_a_submodule_that_updates_the_state_of_another_leaves_it_to_the_function_around_both():
    model = Model((BATCH, 8))
    count = model.leaf("count", 8, kind="state")
    scope = Scope("child", "child", "Child", False)
    x = model.inputs[0]
    for _ in range(3):
        x = model.add(call("ops.exp", x), (BATCH, 8), scope)
    model.nodes.append(Node([Value((8,), "float32")], Infix("+", count, 1), (scope,), "count"))
    x = model.linear(x, "child.line", 8, scope)
    lines = body(model.source(x))
    assert any(line.startswith('new_state["count"] = state["count"] + 1') for line in lines), lines


def test_keys_are_split_once_for_all_draws():
    model = Model((BATCH, 8))
    x = model.inputs[0]
    for rate in (0.1, 0.2):
        x = model.add(call("dropout", x, rate, _graph.SEED, _graph.TRAINING), (BATCH, 8))
    assert body(model.source(x)) == [
        "keys = random.split(seed, 2) if training else [None] * 2",
        "return dropout(dropout(x, 0.1, keys[0], training), 0.2, keys[1], training), state",
    ]


def test_open_sizes_are_taken_from_a_tensor():
    model = Model((BATCH, 8))
    zeros = call("ops.zeros", (BATCH, 4), dtype=_graph.DType("float32"))
    x = model.add(call("ops.concatenate", [model.inputs[0], zeros], axis=1), (BATCH, 12))
    assert body(model.source(x)) == [
        "batch = ops.shape(x)[0]",
        "return ops.concatenate([x, ops.zeros((batch, 4), dtype=x.dtype)], axis=1), state",
    ]


def test_a_submodule_that_takes_nothing_but_a_size_is_part_of_the_caller():
    """As of positions for a batch, made from its size."""
    model = Model((BATCH, 4))
    scope = Scope("where", "where", "Positions", False)
    table = model.leaf("where.table", 4)
    y = model.add(call("ops.arange", 4), (4,), scope)
    y = model.add(call("ops.multiply", y, table), (4,), scope)
    y = model.add(call("ops.broadcast_to", y, (BATCH, 4)), (BATCH, 4), scope)
    y = model.add(Infix("+", model.inputs[0], y), (BATCH, 4))
    source = model.source(y)
    assert "def positions(" not in source
    assert "batch = ops.shape(x)[0]" in body(source)
    assert 'params["where"]["table"]' in source


def test_a_function_takes_the_state_that_it_only_hands_on():
    """As of coordinates that belong to an attention and are the input of a network in it."""
    model = Model((BATCH, 8))
    outer, inner = Scope("attn", "attn", "Attention", False), Scope("attn.mlp", "attn.mlp", "Mlp", False)
    places = model.leaf("attn.places", 5, 8, kind="state")
    y = model.linear(places, "attn.mlp.first", 8, outer, inner)
    y = model.add(call("ops.relu", y), (5, 8), outer, inner)
    y = model.linear(y, "attn.mlp.second", 8, outer, inner)
    y = model.add(call("ops.sum", y, axis=0), (8,), outer)
    y = model.add(Infix("+", model.inputs[0], y), (BATCH, 8), outer)
    y = model.add(call("ops.tanh", y), (BATCH, 8), outer)
    source = model.source(y)
    assert "def attention_(params: dict[str, Any], state: dict[str, Any], x: Tensor)" in source
    assert 'mlp(params["mlp"], state["places"])' in source


def test_precedence_and_items():
    model = Model((4,), (4,))
    x, y = model.inputs
    first = Infix("*", Infix("+", x, y), Infix("-", x, Infix("-", y, 2.0)))
    source = model.source(model.add(Item(first, (slice(None, None, 2),)), (2,)))
    assert body(source) == ["return ((x + y) * (x - (y - 2.0)))[::2], state"]


def test_exchanges_that_undo_each_other_are_left_out():
    model = Model((2, 3, 4))
    x = model.add(call("ops.swapaxes", model.inputs[0], 1, 2), (2, 4, 3))
    y = model.add(Call("ops.exp", (call("ops.swapaxes", x, 1, 2),)), (2, 3, 4))
    assert body(model.source(y)) == ["return ops.exp(x), state"]


@pytest.mark.parametrize(
    ("keepdims", "before", "after", "text"),
    [
        (True, (BATCH, 3, 1, 1), (-1, 3), "ops.mean(x, axis=(2, 3))"),
        (False, (BATCH, 3), (-1, 3, 1, 1), "ops.mean(x, axis=(2, 3), keepdims=True)"),
        (False, (BATCH, 3), (-1, 1, 3, 1), "ops.reshape(ops.mean(x, axis=(2, 3)), (-1, 1, 3, 1))"),
    ],
)
def test_a_mean_has_the_axes_that_a_reshape_of_it_would_give_it(keepdims, before, after, text):
    model = Model((BATCH, 3, 4, 5))
    y = model.add(call("ops.mean", model.inputs[0], axis=(2, 3), keepdims=keepdims), before)
    y = model.add(call("ops.reshape", y, after), (BATCH, *after[1:]))
    assert body(model.source(y)) == [f"return {text}, state"]


@pytest.mark.parametrize(
    ("reduced", "put", "text"),
    [
        (1, 1, "ops.var(x, axis=1, keepdims=True)"),
        ((1, 2), (-1, -2), "ops.var(x, axis=(1, 2), keepdims=True)"),
        (1, 0, "ops.expand_dims(ops.var(x, axis=1), 0)"),
        (1, (1, 2), "ops.expand_dims(ops.var(x, axis=1), (1, 2))"),
        (None, 0, "ops.expand_dims(ops.var(x), 0)"),
    ],
)
def test_a_reduction_keeps_the_axes_that_are_put_back(reduced, put, text):
    model = Model((2, 3, 4))
    options = {} if reduced is None else {"axis": reduced}
    y = model.add(call("ops.var", model.inputs[0], **options), (2,))
    y = model.add(call("ops.expand_dims", y, put), (2, 1, 1))
    assert body(model.source(y)) == [f"return {text}, state"]


def test_a_reduction_that_is_used_twice_keeps_its_shape():
    model = Model((2, 3))
    y = model.add(call("ops.sum", model.inputs[0], axis=1), (2,))
    z = model.add(call("ops.expand_dims", y, 1), (2, 1))
    assert "keepdims" not in model.source((y, z))


@pytest.mark.parametrize("axes", [(1, 2), (2, 3)])
def test_a_channel_shuffle_is_one_function(axes):
    model = Model((BATCH, 6, 4, 5))
    y = model.add(call("ops.reshape", model.inputs[0], (-1, 2, 3, 4, 5)), (BATCH, 2, 3, 4, 5))
    y = model.add(call("ops.swapaxes", y, *axes), (BATCH, 3, 2, 4, 5))
    y = model.add(call("ops.reshape", y, (-1, 6, 4, 5)), (BATCH, 6, 4, 5))
    assert ("return channel_shuffle(x, 2), state" in model.source(y)) is (axes == (1, 2))


def test_a_list_that_grows_by_the_result_of_each_step_is_a_loop():
    model = Model((BATCH, 8))
    features = [model.inputs[0]]
    for i in range(3):
        scope = Scope(f"layer{i}", f"layer{i}", "Layer", False)
        y = model.add(call("ops.concatenate", list(features), axis=1), (BATCH, 8 * len(features)), scope)
        features.append(model.linear(model.add(call("ops.relu", y), y.shape, scope), f"layer{i}.line", 8, scope))
    source = model.source(model.add(call("ops.concatenate", list(features), axis=1), (BATCH, 32)))
    assert body(source) == [
        "features = [x]",
        "for i in range(3):",
        'features.append(layer(params[f"layer{i}"], features))',
        "return ops.concatenate(features, axis=1), state",
    ]
    alone = model.source(model.add(Infix("+", features[1], features[2]), (BATCH, 8)))
    assert "for i in" not in alone  # the results are used one by one


def parts_of(source, arrays):
    """Run the source on NumPy's arrays."""
    scope = {}
    exec(source, scope)
    with multiop.use_backend("numpy"):
        return scope["net"]({}, {}, *arrays)[0]


@pytest.mark.parametrize("places", [(0, 1, 2), (2, 1, 0), (0, 1), (0, 0, 2)])
def test_the_parts_of_a_tensor_are_taken_at_once_if_they_are_all_there_is(places):
    model = Model((3, 4))
    parts = [model.add(Item(model.inputs[0], (place,)), (4,)) for place in places]
    source = model.source(tuple(parts))
    assert ("ops.unstack(x)" in source) == (places == (0, 1, 2))
    x = np.arange(12.0).reshape(3, 4)
    for computed, place in zip(parts_of(source, [x]), places, strict=True):
        np.testing.assert_array_equal(computed, x[place])


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (
            ((slice(None), slice(None, 2)), (slice(None), slice(None), slice(1, None, 2))),
            "return x[:, :2, 1::2], state",
        ),
        (((slice(1, None),), (slice(None), slice(-1, None))), "return x[1:, -1:], state"),
        (((slice(1, None),), (slice(1, None),)), "return x[1:][1:], state"),
        (((slice(1, None),), (1, slice(2, None))), "return x[1:][1, 2:], state"),
    ],
)
def test_slices_of_different_axes_are_one_key(keys, line):
    model, x = Model((4, 5, 6)), np.arange(120.0).reshape(4, 5, 6)
    first = model.add(Item(model.inputs[0], keys[0]), x[keys[0]].shape)
    second = model.add(Item(first, keys[1]), x[keys[0]][keys[1]].shape)
    source = model.source(second)
    assert body(source) == [line]
    np.testing.assert_array_equal(parts_of(source, [x]), x[keys[0]][keys[1]])


@pytest.mark.parametrize(("put", "taken", "stays"), [(1, 1, False), (-1, 2, False), (1, 0, True)])
def test_an_axis_that_is_put_in_and_taken_away_is_not_written(put, taken, stays):
    model, x = Model((1, 4)), np.arange(4.0)[None]
    wide = np.expand_dims(x, put)
    y = model.add(call("ops.expand_dims", model.inputs[0], put), wide.shape)
    y = model.add(call("ops.squeeze", y, axis=taken), np.squeeze(wide, taken).shape)
    source = model.source(model.add(call("ops.relu", y), y.shape))
    assert ("expand_dims" in source) == stays
    np.testing.assert_array_equal(parts_of(source, [x]), np.squeeze(wide, taken))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ((slice(None), slice(1, None)), "np.s_[:, 1:]"),
        ((slice(None, 2), slice(None, None, 2)), "np.s_[:2, ::2]"),
        (slice(1, None), "np.s_[1:]"),
    ],
)
def test_a_key_with_slices_is_written_as_an_index(key, text):
    model, x = Model((2, 4)), np.arange(8.0).reshape(2, 4)
    y = model.add(call("ops.set_item", model.inputs[0], key, 0.0), (2, 4))
    source = model.source(y)
    assert body(source) == [f"return ops.set_item(x, {text}, 0.0), state"]
    expected = x.copy()
    expected[key] = 0
    np.testing.assert_array_equal(parts_of(source, [x]), expected)


@pytest.mark.parametrize(
    ("axes", "text"),
    [
        ((0, 1, 3), "x[None, None, :, None]"),
        ((0, 0), "x[None, None]"),
        ((1, -1), "x[:, None, None]"),
        ((-1, 0), "x[None, :, None]"),
    ],
)
def test_axes_that_are_put_in_one_by_one_are_an_item(axes, text):
    model, x = Model((4,)), np.arange(4.0)
    y, wanted = model.inputs[0], x
    for axis in axes:
        wanted = np.expand_dims(wanted, axis)
        y = model.add(call("ops.expand_dims", y, axis), wanted.shape)
    source = model.source(y)
    assert body(source) == [f"return {text}, state"]
    np.testing.assert_array_equal(parts_of(source, [x]), wanted)


@pytest.mark.parametrize("is_left", [False, True])
def test_a_mask_and_true_is_the_mask(is_left):
    model, x = Model((4,)), np.array([1.0, -1.0, 0.0, 2.0])
    always = model.add(call("ops.ones", (), dtype=_graph.DType("bool")), ())
    mask = model.add(call("ops.greater", model.inputs[0], 0), (4,))
    always.dtype = mask.dtype = "bool"
    y = model.add(call("ops.bitwise_and", *((mask, always) if is_left else (always, mask))), (4,))
    y.dtype = "bool"
    source = model.source(model.add(call("ops.cast", y, _graph.DType("float64")), (4,)))
    assert "ones" not in source and "bitwise_and" not in source
    np.testing.assert_array_equal(parts_of(source, [x]), x > 0)


@pytest.mark.parametrize(
    ("operator", "number", "is_kept"),
    [("*", 1.0, False), ("/", 1, False), ("-", 0.0, False), ("+", 0.0, True), ("-", -0.0, True), ("*", 2.0, True)],
)
def test_arithmetic_that_changes_nothing_is_not_written(operator, number, is_kept):
    model, x = Model((4,)), np.array([-0.0, 0.0, np.nan, np.inf])
    y = model.add(Infix(operator, model.inputs[0], number), (4,))
    source = model.source(y)
    assert (body(source) != ["return x, state"]) == is_kept
    with np.errstate(all="ignore"):
        expected = eval(f"x {operator} number")
    np.testing.assert_array_equal(np.signbit(parts_of(source, [x])), np.signbit(expected))


def test_a_factor_of_one_stays_where_another_call_of_the_submodule_has_another():
    model = Model((BATCH, 8))
    x = model.inputs[0]
    for i, factor in enumerate((1.0, 0.5)):
        scope = Scope(f"b.{i}", f"b.{i}", "Block", False)
        x = model.add(Infix("*", model.linear(x, f"b.{i}.first", 8, scope), factor), (BATCH, 8), scope)
        x = model.add(call("ops.relu", x), (BATCH, 8), scope)
    source = model.source(x)
    assert source.count("def block(") == 1 and "def block_2(" not in source  # which takes the factor


def test_a_variable_is_named_by_what_it_holds():
    model = Model((3, 4))
    x = model.inputs[0]

    def add(expression, shape, dtype="float32"):
        value = model.add(expression, shape)
        value.dtype = dtype
        return value

    places = add(call("ops.arange", 3), (3,), "int32")
    seen = add(
        call("ops.less_equal", call("ops.expand_dims", places, 0), call("ops.expand_dims", places, 1)), (3, 3), "bool"
    )
    angles = [add(call(f"ops.{name}", x), (3, 4)) for name in ("cos", "sin")]
    best = add(call("ops.argmax", x, axis=-1), (3,), "int32")
    source = model.source((add(Infix("*", *angles), (3, 4)), *angles, seen, best, places))
    for name, op in (("positions", "arange"), ("mask", "less_equal"), ("chosen", "argmax"), ("sin", "sin")):
        assert f"    {name} = ops.{op}(" in source


def test_a_docstring_is_not_broken_inside_of_a_shape():
    lines = source_text.wrapped_docstring(f"Compute {' '.join(['`x`: `(batch, 3, 224, 224)`'] * 6)}.")
    assert len(lines) > 1 and all(line.count("`") % 2 == 0 for line in lines)


def test_an_input_has_no_name_of_a_builtin_and_no_number_is_added_with_two_signs():
    model = Model((BATCH, 2))
    model.inputs[0].name = "input"
    assert body(model.source(model.add(Infix("+", model.inputs[0], -1.0), (BATCH, 2)))) == ["return x - 1.0, state"]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("ResNet", "resnet"),
        ("ConvNeXt", "convnext"),
        ("BasicBlock", "basic_block"),
        ("GPT2MLP", "gpt2_mlp"),
        ("LSTM", "lstm_"),
        ("SqueezeNet", "squeezenet"),
        ("ResNeXtStage", "resnext_stage"),
        ("DeepseekV3MoE", "deepseek_v3_moe"),
        ("MoEBlock", "moe_block"),
        ("LoRALinear", "lora_linear"),
        ("GATv2Conv", "gat_v2_conv"),
        ("DeepseekV2Attention", "deepseek_v2_attention"),
        ("EfficientNetV2", "efficientnet_v2"),
        ("MobileViTV2Layer", "mobile_vit_v2_layer"),
        ("BiLSTM", "bi_lstm"),
        ("Conv3DBlock", "conv3d_block"),
        ("UNet2DConditionModel", "unet2d_condition_model"),
        ("FalconH1DecoderLayer", "falcon_h1_decoder_layer"),
        ("GPT2Block", "gpt2_block"),
        ("T5Stack", "t5_stack"),
        ("Conv1D", "conv1d"),
        ("Conv2dNormAct", "conv2d_norm_act"),
        ("_Block", "_block"),
    ],
)
def test_names_of_classes(kind, name):
    assert _printing.snake(kind) == name


def test_nested_results_are_broken_at_their_entries():
    model = Model((BATCH, 3))
    towers = {
        f"{name}_model_output": {
            key: model.linear(model.inputs[0], f"{name}.{key}", 3) for key in ("last_hidden_state", "pooler_output")
        }
        for name in ("text", "vision")
    }
    text = model.source({"logits": model.inputs[0], 'of "all"': towers})
    returned = ast.parse(text).body[-1].body[-1].value.elts[0]
    assert [ast.literal_eval(name) for name in returned.keys] == ["logits", 'of "all"']
    assert [ast.literal_eval(name) for name in returned.values[1].keys] == ["text_model_output", "vision_model_output"]


LEAVES = st.one_of(
    st.integers(0, 99),
    st.floats(),
    st.text(max_size=40),
    st.none(),
    st.builds(_graph.Name, st.just("layer_normalization_output")),
)


def larger(parts):
    """Return what is made of parts: nested structures, calls, operators and items."""
    keys = st.one_of(st.text(max_size=12), st.integers())
    calls = st.builds(call, st.just("concatenate"), st.lists(parts, max_size=4), axis=st.integers(2, 9))
    return st.one_of(
        st.lists(parts, max_size=4),
        st.lists(parts, max_size=4).map(tuple),
        st.dictionaries(keys, parts, max_size=4),
        *[st.builds(Infix, st.sampled_from("+-*/@"), parts, parts)] * 3,  # more often than not
        calls,
    )


@given(expression=st.recursive(LEAVES, larger, max_leaves=30), indent=st.sampled_from([4, 80]))
@settings(max_examples=300, deadline=None)
def test_a_broken_line_says_what_the_line_says(expression, indent):
    """The oracle is the parser: both texts are the same program, and literals are what they are."""
    write = Text(SimpleNamespace(foreign={}), SimpleNamespace(inputs=[], prefix=""), ())
    line = f"f(x)[0] = {write(expression)}, state"
    broken = source_text.laid_out(write, "f(x)[0] = ", expression, ", state", indent)
    wrapped = "if x:\n" + "\n".join(broken)  # it is indented
    assert ast.dump(ast.parse(wrapped).body[0].body[0]) == ast.dump(ast.parse(line).body[0])


def test_a_long_list_is_broken_at_its_entries():
    write = Text(SimpleNamespace(foreign={}), SimpleNamespace(inputs=[], prefix=""), ())
    entries = [_graph.Name("layer_normalization_output")] * 9
    lines = source_text.laid_out(write, "y = ", call("concatenate", entries, axis=2), "", 4)
    assert len(lines) > len(entries)
    assert max(map(len, lines)) <= 120


@given(value=st.recursive(st.text(), lambda parts: st.dictionaries(st.text(), parts) | st.lists(parts), max_leaves=9))
@settings(max_examples=200, deadline=None)
def test_strings_are_written_as_they_are(value):
    write = Text(SimpleNamespace(foreign={}), SimpleNamespace(inputs=[], prefix=""), ())
    assert ast.literal_eval(write(value)) == value


@given(parts=st.lists(st.text(), min_size=1, max_size=3))
def test_the_number_of_a_loop_stands_in_a_string(parts):
    assert eval(string_literal("{i}".join(parts)), {"i": 7}) == "7".join(parts)
