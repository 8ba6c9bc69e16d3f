"""Functions inside of what the printer writes, which is run: branches, loops, gradients of their own."""

from __future__ import annotations

import types

import numpy as np
import pytest
from test_source import BATCH, Model, body

import multiop
from multiop import errors, ops
from multiop.porting import _graph, _weights
from multiop.porting._graph import Apply, Body, Call, Custom, Infix, Item, Node, Scope, Value, call

EYE = np.eye(3)


def value(*shape, name="", dtype="float64"):
    return Value(shape, dtype, name=name)


class Lines:
    """Makes the statements of a function."""

    def __init__(self, *scopes):
        self.nodes, self.scopes = [], scopes

    def add(self, expression, *shape, name="", dtype="float64", scopes=None):
        added = value(*shape, name=name, dtype=dtype)
        self.nodes.append(Node([added], expression, tuple(self.scopes if scopes is None else scopes)))
        return added

    def several(self, expression, *outputs):
        self.nodes.append(Node(list(outputs), expression, tuple(self.scopes)))
        return outputs


class Graphed(Model):
    """A model in float64."""

    def __init__(self, *shapes):
        super().__init__(*shapes)
        for x in self.inputs:
            x.dtype = "float64"

    def leaf(self, path, *shape, kind="params"):
        added = super().leaf(path, *shape, kind=kind)
        added.dtype = "float64"
        return added

    def several(self, expression, *outputs):
        self.nodes.append(Node(list(outputs), expression))
        return outputs


def computed(source, params, state, *inputs, gradients=True):
    """Return what the source computes, and the gradients of a weighted sum of it in its parameters and inputs."""
    module = types.ModuleType("net")
    exec(compile(source, "net.py", "exec"), vars(module))
    weights = [0.7, -0.3, 1.1]

    def total(params, inputs):
        outputs, _ = module.net(params, state, *inputs)
        outputs = [leaf for leaf in _graph.leaves(outputs) if "float" in ops.dtype(leaf)]
        terms = [ops.sum(ops.sin(y)) * weight for y, weight in zip(outputs, weights, strict=False)]
        return sum(terms[1:], terms[0]), outputs

    tensors = ops.convert_to_tensor
    params = _weights.nested({name: tensors(param) for name, param in params.items()})
    if not gradients:
        return [ops.convert_to_numpy(y) for y in total(params, list(map(tensors, inputs)))[1]], []
    derivative = multiop.value_and_grad(total, (0, 1), has_aux=True)
    (_, outputs), (slopes, others) = derivative(params, list(map(tensors, inputs)))
    arrays = [ops.convert_to_numpy(slope) for slope in (*_weights.flat(slopes).values(), *others)]
    return [ops.convert_to_numpy(y) for y in outputs], arrays


def expected(function, params, *inputs):
    """The same of a function of NumPy arrays, by complex steps."""
    weights = [0.7, -0.3, 1.1]

    def total(arrays):
        outputs = function(dict(zip(params, arrays, strict=False)), *arrays[len(params) :])
        return sum(np.sum(np.sin(y)) * weight for y, weight in zip(outputs, weights, strict=False))

    arrays = [np.asarray(x, "complex128") for x in (*params.values(), *inputs)]
    slopes = []
    for array in arrays:
        slope = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            array[place] += 1e-30j
            slope[place] = total(arrays).imag / 1e-30
            array[place] -= 1e-30j
        slopes.append(slope)
    outputs = function(params, *inputs)
    return outputs, slopes


def check(model, outputs, reference, backend, gradients=True):
    """Print the model, run it, compare it with NumPy; return the source."""
    generator = np.random.default_rng(0)
    sizes = [tuple(4 if isinstance(n, _graph.Dim) else n for n in x.shape) for x in model.inputs]
    inputs = [generator.normal(size=size) for size in sizes]
    params = {name: generator.normal(size=param.shape) for name, param in model.params.items()}
    source = model.source(outputs)
    with multiop.use_backend(backend):
        results, slopes = computed(source, params, {}, *inputs, gradients=gradients)
    values, derivatives = expected(reference, params, *inputs)
    for y, other in zip(results, values, strict=True):
        np.testing.assert_allclose(y, other, rtol=1e-12, atol=1e-14)
    if gradients:
        for y, other in zip(slopes, derivatives, strict=True):
            np.testing.assert_allclose(y, other, rtol=1e-11, atol=1e-13)
    return source


def test_a_choice_between_expressions(backend):
    model = Graphed((BATCH, 3))
    (x,) = model.inputs
    scale = model.leaf("scale", 3)
    first, second = Lines(), Lines()
    pred = model.add(call("ops.greater", Item(x, (0, 0)), 5.0), ())
    yes = Body("branch", (), first.nodes, first.add(Infix("*", x, scale), BATCH, 3))
    y = second.add(call("ops.exp", x), BATCH, 3)
    no = Body("branch", (), second.nodes, second.add(Infix("+", Infix("*", y, scale), y), BATCH, 3))
    source = check(
        model,
        model.add(Call("ops.cond", (pred, yes, no)), (BATCH, 3)),
        lambda p, x: [np.exp(x) * p["scale"] + np.exp(x)],
        backend,
    )
    assert body(source) == [
        "def branch() -> Tensor:",
        "y = ops.exp(x)",
        'return y * params["scale"] + y',
        'return ops.cond(ops.greater(x[0, 0], 5.0), lambda: x * params["scale"], branch), state',
    ]


def recurrent(x, start, weight, scopes=(), factor=0.5):
    """Return a scan with two tensors to carry, and its results."""
    h, c, row = value(BATCH, 3, name="h"), value(BATCH, 3, name="c"), value(BATCH, 3)
    lines = Lines(*scopes)
    new = lines.add(call("ops.tanh", Infix("+", call("ops.matmul", h, weight), row)), BATCH, 3)
    total = lines.add(Infix("+", c, Infix("*", new, factor)), BATCH, 3)
    y = lines.add(Infix("*", total, new), BATCH, 3)
    step = Body("step", ((h, c), row), lines.nodes, ((new, total), y))
    results = value(BATCH, 3), value(BATCH, 3), value(5, BATCH, 3)
    return Call("ops.scan", (step, (start, start), x)), results


def numpy_recurrent(x, start, weight, factor=0.5):
    h, c, ys = start, start, []
    for row in x:
        h = np.tanh(h @ weight + row)
        c = c + h * factor
        ys.append(c * h)
    return h, c, np.stack(ys)


def test_a_scan_that_carries_two_tensors(backend):
    model = Graphed((5, BATCH, 3), (BATCH, 3))
    x, start = model.inputs
    expression, results = recurrent(x, start, model.leaf("weight", 3, 3))
    h, _, ys = model.several(expression, *results)
    source = check(model, (h, ys), lambda p, x, y: [numpy_recurrent(x, y, p["weight"])[i] for i in (0, 2)], backend)
    assert body(source) == [
        "def step(carry: Any, x: Tensor) -> Any:",
        "h, c = carry",
        'h = ops.tanh(ops.matmul(h, params["weight"]) + x)',
        "c = c + h * 0.5",
        "return (h, c), c * h",
        "(x, _), y = ops.scan(step, (y, y), x)",
        "return (x, y), state",
    ]


def test_a_scan_in_repeated_blocks_with_literals_that_differ(backend):
    model = Graphed((5, BATCH, 3), (BATCH, 3))
    x, start = model.inputs
    for i, factor in enumerate((0.5, 0.25)):
        scope = Scope(f"cells.{i}", f"cells.{i}", "Layer", False)
        weight = model.leaf(f"cells.{i}.weight", 3, 3)
        expression, results = recurrent(x, start, weight, (scope,), factor)
        model.nodes.append(Node(list(results), expression, (scope,)))
        for function in ("ops.sin", "ops.cos"):
            x = model.add(call(function, results[2] if function == "ops.sin" else x), (5, BATCH, 3), scope)

    def reference(p, x, y):
        for i, factor in enumerate((0.5, 0.25)):
            x = np.cos(np.sin(numpy_recurrent(x, y, p[f"cells.{i}.weight"], factor)[2]))
        return [x]

    source = check(model, x, reference, backend)
    assert source.count("def layer(") == source.count("def step(") == 1
    assert "size=0.25)" in source


def test_submodules_inside_of_a_loop(backend):
    """A submodule that is called in each step is a function, and its parameters are found where they are."""
    model = Graphed((5, 3), (3,))
    x, start = model.inputs
    outer = Scope("rnn", "rnn", "RNN", False)
    cell = Scope("rnn.cell", "rnn.cell", "Cell", False)
    leaves = [model.leaf(f"rnn.cell.{name}", 3) for name in ("w", "b")]
    h, row = value(3, name="h"), value(3)
    lines = Lines(outer, cell)
    z = lines.add(Infix("+", Infix("*", h, leaves[0]), row), 3)
    z = lines.add(call("ops.sigmoid", z), 3)
    z = lines.add(Infix("-", Infix("*", z, z), leaves[1]), 3)
    twice = lines.add(Infix("*", z, 2.0), 3, scopes=(outer,))
    step = Body("step", (h, row), lines.nodes, (z, twice))
    last, ys = value(3), value(5, 3)
    model.nodes.append(Node([last, ys], Call("ops.scan", (step, start, x)), (outer,)))
    y = model.add(call("ops.exp", ys), (5, 3), outer)
    y = model.add(Infix("+", y, last), (5, 3), outer)

    def reference(p, x, h):
        ys = []
        for row in x:
            s = 1 / (1 + np.exp(-(h * p["rnn.cell.w"] + row)))
            h = s * s - p["rnn.cell.b"]
            ys.append(2 * h)
        return [np.exp(np.stack(ys)) + h]

    source = check(model, y, reference, backend)
    assert 'cell(params["cell"], ' in source and "def cell(" in source and "def rnn_(" in source


def test_a_loop_that_closes_over_what_has_the_name_of_its_own_values(backend):
    """What the function closes over keeps its name; nothing in it is called so."""
    model = Graphed((3,), (3,))
    x, y = model.inputs
    i, z = value(name="i", dtype="int32"), value(3, name="x")
    lines = Lines()
    new = lines.add(call("ops.sin", Infix("+", Infix("*", z, x), y)), 3, name="x")
    other = lines.add(Infix("*", new, new), 3, name="y")
    new = lines.add(Infix("-", new, Infix("*", other, Infix("+", other, y))), 3)
    step = Body("body", (i, z), lines.nodes, new)
    last = model.add(Call("ops.fori_loop", (0, 3, step, x)), (3,))

    def reference(p, x, y):
        z = x
        for _ in range(3):
            s = np.sin(z * x + y)
            z = s - s * s * (s * s + y)
        return [z * x]

    check(model, model.add(Infix("*", last, x), (3,)), reference, backend)


@pytest.mark.parametrize("bound", ["number", "tensor"])
def test_a_loop_with_a_condition(backend, bound):
    """One that counts to a number is a loop over a range."""
    model = Graphed((3,))
    upper = 3 if bound == "number" else model.add(call("ops.convert_to_tensor", 3), ())
    (x,) = model.inputs
    i, z = value(name="i", dtype="int32"), value(3)
    lines = Lines()
    counted = lines.add(call("ops.add", i, 1), dtype="int32")
    step = Body("body", (i, z), lines.nodes, (counted, lines.add(Infix("*", z, x), 3)))
    j, w = value(name="i", dtype="int32"), value(3)
    lines = Lines()
    holds = Body("cond", (j, w), lines.nodes, lines.add(call("ops.less", j, upper), dtype="bool"))
    _, last = model.several(Call("ops.while_loop", (holds, step, (0, x))), value(dtype="int32"), value(3))
    source = check(model, last, lambda p, x: [x**4], backend, gradients=backend != "jax" or bound == "number")
    if bound == "number":
        assert body(source) == ["return ops.fori_loop(0, 3, lambda _, y: y * x, x), state"]
    else:
        assert body(source) == [
            "y = ops.convert_to_tensor(3)",
            "_, x = ops.while_loop(lambda i, _: ops.less(i, y), lambda i, y: (ops.add(i, 1), y * x), (0, x))",
            "return x, state",
        ]


def clipped(name="slow", factor=0.1):
    """A function with a wrong gradient, so that a lost rule shows."""
    x = value(BATCH, 3, name="x")
    lines, rule = Lines(), Lines()
    e = lines.add(call("ops.exp", x), BATCH, 3)
    y = lines.add(call("ops.log", Infix("+", e, 1.0)), BATCH, 3)
    u = value(BATCH, 3)
    g = rule.add(Infix("*", u, Infix("*", Infix("/", e, Infix("+", e, 1.0)), factor)), BATCH, 3)
    return Custom(name, [x], lines.nodes, y, [e], [u], rule.nodes, g)


def test_a_gradient_of_its_own_that_two_blocks_share(backend):
    model = Graphed((BATCH, 3))
    x = model.inputs[0]
    for i in range(2):
        scope = Scope(f"layers.{i}", f"layers.{i}", "Block", False)
        x = model.add(Infix("*", x, model.leaf(f"layers.{i}.scale", 3)), (BATCH, 3), scope)
        x = model.add(Apply(clipped(), (x,)), (BATCH, 3), scope)
        x = model.add(Infix("-", x, model.leaf(f"layers.{i}.shift", 3)), (BATCH, 3), scope)
    source = model.source(x)
    assert source.count("@ops.custom_gradient") == source.count("def block(") == 1
    assert body(source, "slow") == [
        "x = ops.exp(x)",
        "def grad(upstream: Tensor) -> Tensor:",
        "return upstream * (x / (x + 1.0) * 0.1)",
        "return ops.log(x + 1.0), grad",
    ]
    generator = np.random.default_rng(1)
    x, leaves = generator.normal(size=(4, 3)), {name: generator.normal(size=3) for name in model.params}
    with multiop.use_backend(backend):
        outputs, slopes = computed(source, leaves, {}, x)
    slope = 0.7
    for i in range(2):
        x = x * leaves[f"layers.{i}.scale"]
        slope = slope * leaves[f"layers.{i}.scale"] * 0.1 / (1 + np.exp(-x))
        x = np.log1p(np.exp(x)) - leaves[f"layers.{i}.shift"]
    np.testing.assert_allclose(outputs[0], x, rtol=1e-12)
    np.testing.assert_allclose(slopes[-1], slope * np.cos(x), rtol=1e-12)


def test_gradients_of_their_own_that_differ_are_two_functions():
    model = Graphed((BATCH, 3))
    x = model.inputs[0]
    for factor in (0.1, 0.1, 0.2):
        x = model.add(Apply(clipped(factor=factor), (x,)), (BATCH, 3))
    assert body(model.source(x)) == ["return slow_2(slow(slow(x))), state"]


def test_a_gradient_of_its_own_with_several_arguments_and_results(backend):
    """Sizes that are open, a buffer that is closed over, an argument that has no gradient."""
    model = Graphed((BATCH, 3), (3,))
    kept = model.leaf("kept", 3, kind="state")
    x, y = value(BATCH, 3), value(3)
    lines, rule = Lines(), Lines()
    new = lines.add(Infix("*", x, y), BATCH, 3)
    second = lines.add(Infix("+", new, call("ops.ones", (BATCH, 3), dtype="float64")), BATCH, 3)
    u, v = value(BATCH, 3), value(BATCH, 3)
    gx = rule.add(Infix("*", Infix("+", u, v), Infix("*", y, kept)), BATCH, 3)
    gx = rule.add(Infix("+", gx, call("ops.zeros", (BATCH, 3), dtype="float64")), BATCH, 3)
    function = Custom("scaled", [x, y], lines.nodes, (new, second), [y], [u, v], rule.nodes, (gx, None))
    a, b = model.several(Apply(function, tuple(model.inputs)), value(BATCH, 3), value(BATCH, 3))
    source = model.source((a, b))
    data, factor, buffer = np.arange(6.0).reshape(2, 3) / 7, np.array([0.3, 0.5, -1.0]), np.array([2.0, 3.0, 4.0])
    with multiop.use_backend(backend):
        outputs, (first, second) = computed(source, {}, {"kept": ops.convert_to_tensor(buffer)}, data, factor)
    assert "def grad(upstream_1: Tensor, upstream_2: Tensor)" in source
    np.testing.assert_allclose(outputs[1], data * factor + 1, rtol=1e-12)
    upstream = 0.7 * np.cos(outputs[0]) - 0.3 * np.cos(outputs[1])
    np.testing.assert_allclose(first, upstream * factor * buffer, rtol=1e-12)
    np.testing.assert_array_equal(second, 0 * factor)


def test_a_gradient_of_its_own_inside_of_a_loop_with_a_choice(backend):
    """Functions in functions in functions."""
    model = Graphed((5, 3), (3,))
    x, start = model.inputs
    h, row = value(3, name="h"), value(3)
    ahead, other, lines = Lines(), Lines(), Lines()
    inner = clipped(factor=1.0)
    for node in (*inner.nodes, *inner.rule_nodes):
        node.outputs[0].shape = (3,)
    inner.parameters[0].shape = inner.cotangents[0].shape = (3,)
    first = ahead.add(Apply(inner, (h,)), 3)
    yes = Body("branch", (), ahead.nodes, ahead.add(Infix("*", first, row), 3))
    no = Body("branch", (), other.nodes, other.add(Infix("-", h, row), 3))
    pred = lines.add(call("ops.greater", Item(row, (0,)), 0.0), dtype="bool")
    z = lines.add(Call("ops.cond", (pred, yes, no)), 3)
    step = Body("step", (h, row), lines.nodes, (z, None))
    (last,) = model.several(Call("ops.scan", (step, start, x)), value(3))

    def reference(p, x, h):
        for row in x:
            h = np.log(1 + np.exp(h)) * row if row[0].real > 0 else h - row
        return [h]

    source = check(model, last, reference, backend)
    assert "ops.cond(ops.greater(" in source and "y, _ = ops.scan(step" in source


def test_operands_of_a_choice_are_closed_over():
    model = Graphed((3,))
    (x,) = model.inputs
    branches = []
    for function in ("ops.sin", "ops.cos"):
        lines, operand = Lines(), value(3)
        branches.append(Body("branch", (operand,), lines.nodes, lines.add(call(function, operand), 3)))
    pred = call("ops.greater", Item(x, (0,)), 0.0)
    y = model.add(Call("ops.cond", (pred, *branches, x)), (3,))
    assert body(model.source(y)) == [
        "return ops.cond(ops.greater(x[0], 0.0), lambda: ops.sin(x), lambda: ops.cos(x)), state"
    ]


def test_a_function_that_is_called_by_name(backend):
    model = Graphed((3,), (3,))
    x, y = model.inputs
    lines, z = Lines(), value(3)
    first = lines.add(call("ops.sin", Infix("*", z, model.leaf("scale", 3))), 3)
    twice = Body("twice", (z,), lines.nodes, lines.add(Infix("*", first, first), 3))
    a = model.add(Apply(twice, (x,)), (3,))
    b = model.add(Apply(twice, (y,)), (3,))
    total = model.add(Infix("+", a, b), (3,))
    sine = lambda p, x: np.sin(x * p["scale"]) ** 2
    source = check(model, total, lambda p, x, y: [sine(p, x) + sine(p, y)], backend)
    assert source.count("def twice(") == 1 and body(source)[-1] == "return twice(x) + twice(y), state"


def test_dead_statements_inside_are_left_out():
    model = Graphed((5, 3), (3,))
    x, start = model.inputs
    h, row = value(3), value(3)
    lines = Lines()
    lines.add(call("ops.exp", h), 3)
    step = Body("step", (h, row), lines.nodes, (lines.add(Infix("*", h, row), 3), None))
    (last,) = model.several(Call("ops.scan", (step, start, x)), value(3))
    assert "exp" not in model.source(last)


def closing_over_a_parameter(model):
    custom = clipped()
    custom.rule_nodes[0].expression = Infix("*", custom.cotangents[0], model.leaf("scale", 3))
    return model.add(Apply(custom, tuple(model.inputs)), (BATCH, 3))


def updating_inside(model):
    lines = Lines()
    y = lines.add(call("ops.exp", model.inputs[0]), BATCH, 3)
    lines.nodes[-1].update = "kept"
    branches = [Body("branch", (), lines.nodes, y), Body("branch", (), [], model.inputs[0])]
    return model.add(Call("ops.cond", (True, *branches)), (BATCH, 3))


def drawing_in_a_loop(model):
    h, row = value(3), value(3)
    lines = Lines()
    y = lines.add(call("dropout", h, 0.5, _graph.SEED, _graph.TRAINING), 3)
    step = Body("step", (h, row), lines.nodes, (y, y))
    return model.add(Call("ops.scan", (step, model.inputs[0], model.inputs[0])), (3,))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (closing_over_a_parameter, "closes over scale"),
        (updating_inside, "kept is updated inside"),
        (drawing_in_a_loop, "draws random numbers"),
    ],
)
def test_what_cannot_be_written_is_refused(make, words):
    model = Graphed((BATCH, 3))
    with pytest.raises(errors.TranslationError, match=words):
        model.source(make(model))
