"""Loops that a model runs in Python are loops in the source of its port: values and gradients against the original."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from test_source import BATCH, Model, body

import multiop
from multiop import porting
from multiop.porting._graph import Infix, Item, call

# recurrences of PyTorch: what each is, and the loops that it is printed as

T = 6


def stacked(ys):
    import torch

    return torch.stack(list(ys), 1)


def tokens(m, a, b):
    h, ys = a[:, 0] * 0, []
    for t in range(T):
        h = a[:, t] * h + b[:, t]
        ys.append(h)
    return stacked(ys)


def first_step_differs(m, a, b):
    h = b[:, 0].sin()
    ys = [h]
    for t in range(1, T):
        h = a[:, t] * h + b[:, t]
        ys.append(h)
    return stacked(ys)


def last_step_needs_less(m, a, b):
    s, ys = a[:, :3] * 0, []
    for t in range(T):
        q, k = a[:, t], b[:, t]
        ys.append((q[:, None] @ s)[:, 0] + k)
        s = s * 0.9 + k[:, :, None] * q[:, None]
    return stacked(ys)


def last_step_does_less(m, a, b):
    h, ys = a[:, 0], []
    for t in range(T):
        ys.append(h * b[:, t])
        h = h.sin() + a[:, t + 1] if t + 1 < T else h
    return stacked(ys)


def rows_of_a_matrix(m, a, b):
    attn = -(a @ b.transpose(1, 2)).tril(-1)
    for i in range(1, T):
        row, sub = attn[..., i, :i].clone(), attn[..., :i, :i].clone()
        attn[..., i, :i] = row + (row[..., None] * sub).sum(-2)
    return attn


def written_into(m, a, b):
    h, ys = a[:, 0] * 0, a * 0
    for t in range(T):
        h = a[:, t].tanh() * h + b[:, t]
        ys[:, t] = h
    return ys


def cell(m, a, b):
    h, ys = b[:, 0], []
    for x in a.unbind(1):
        h = m.cell(x, h)
        ys.append(h)
    return stacked(ys)


def both_ways_and_twice(m, a, b):
    xs = a.unbind(1)
    for i in range(2):
        h, ys = b[:, i], []
        for x in xs[::-1] if i else xs:
            h = (x @ m.w + h).tanh()
            ys.append(h)
        xs = ys
    return stacked(xs[::-1])


def two_carries_that_cross(m, a, b):
    h, c, ys = b[:, 0], b[:, 1], []
    for t in range(T):
        h, c = (a[:, t] + h * c).tanh(), c * 0.5 + h
        ys.append(h + c)
    return stacked(ys), c


def shifted_carries(m, a, b):
    p, q, r = a[:, 0], b[:, 0], b[:, 1]
    for _ in range(T):
        p, q, r = q, r, (p + q * r).sin()
    return p, q, r


def two_lists_and_last_values(m, a, b):
    h, c = a[:, 0], b[:, 0]
    hs, cs = [h], []
    for t in range(1, T):
        i, f = (h @ m.w + a[:, t]).sigmoid(), (c + b[:, t]).sigmoid()
        c = f * c + i * h.tanh()
        h = i * c.tanh()
        hs.append(h)
        cs.append(c)
    return stacked(hs), stacked(cs), h, c, i, cs[1] * cs[2]


def many_statements(m, a, b):
    h = c = n = b[:, 0]
    ys = []
    for t in range(T):
        x = a[:, t] @ m.w + h @ m.w.T
        i, f, o = x.sigmoid(), (x * 2).sigmoid(), (x + b[:, t]).exp()
        top = (n + i).exp()
        k = (i - top).exp()
        c, n = f * c + k * (x - c).tanh(), f * n + k
        h = o * c / (n.abs() + 1)
        ys.append(h)
    return stacked(ys), n


def in_each_other(m, a, b):
    h, ys = a[:, 0] * 0, []
    for t, s in itertools.product(range(T), range(4)):
        h = (h * a[:, t] + b[:, s]).sin()
        ys = [*ys, h] if s == 3 else ys
    return stacked(ys)


def backwards(m, a, b):
    h, ys = a[:, 0] * 0, []
    for t in reversed(range(T)):
        h = a[:, t] * h + b[:, t]
        ys.append(h)
    return stacked(ys[::-1])


def in_steps_of_two(m, a, b):
    h, ys = a[:, 0] * 0, []
    for t in range(0, T, 2):
        h = (a[:, t] * h).sin() + b[:, t + 1]
        ys.append(h)
    return stacked(ys)


def in_chunks(m, a, b):
    import torch

    s, ys = a[:, :3] * 0, []
    a, b = torch.cat([a, b], 1), torch.cat([b, a], 1)
    for t in range(0, 2 * T, 2):
        q, k = a[:, t : t + 2], b[:, t : t + 2]
        ys.append(q @ s + (q @ k.transpose(1, 2)).tril() @ k)
        s = s + k.transpose(1, 2) @ q
    return torch.cat(ys, 1)


def in_windows(m, a, b):
    return stacked((a[:, t : t + 3] * b[:, :3]).sum(1).tanh() for t in range(T - 2))


def the_same_again(m, a, b):
    for _ in range(5):
        a = (a @ m.w + b).tanh()
    return a


def numbers_that_jump(m, a, b):
    h = a[:, 0]
    for t, c in ((0, 1.0), (3, 2.0), (1, 4.0), (5, 8.5), (2, 3.0), (4, 7.0)):
        h = a[:, t] * h * c + b[:, t]
    return h


def layers(m, a, b):
    for line in m.lines:
        a = line(a).tanh() + b
    return a


LOOPS = {
    tokens: ["for t in range(6):"],
    first_step_differs: ["for t in range(1, 6):"],
    last_step_needs_less: ["for t in range(6):"],
    last_step_does_less: ["for t in range(5):"],
    rows_of_a_matrix: ["for t in range(1, 6):"],
    written_into: ["for t in range(6):"],
    cell: ["for t in range(6):"],
    both_ways_and_twice: ["for t in range(6):", "for t in reversed(range(6)):"],
    two_carries_that_cross: ["for t in range(6):"],
    shifted_carries: [],
    two_lists_and_last_values: ["for t in range(1, 6):"],
    many_statements: ["for t in range(6):"],
    in_each_other: ["for t in range(6):", "for s in range(4):"],
    backwards: ["for t in reversed(range(6)):"],
    in_steps_of_two: ["for t in range(0, 6, 2):"],
    in_chunks: ["for t in range(0, 12, 2):"],
    in_windows: ["for t in range(4):"],
    the_same_again: ["for _ in range(5):"],
    numbers_that_jump: [],
    layers: [],
}


@functools.cache
def recurrences():
    """Return the port of a model with a submodule for each recurrence, its inputs, and what the original computes."""
    torch = pytest.importorskip("torch")
    import torch_rows

    def forward(self, a, b):
        return type(self).function(self, a * self.scale, b * self.scale)

    def init(self):
        torch.nn.Module.__init__(self)
        self.w, self.scale = (torch.nn.Parameter(torch.randn(n, 3) / 2 + 0.5) for n in (3, 1))
        self.cell, self.lines = torch.nn.GRUCell(3, 3), torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(4))

    kinds = [
        type(f"{function.__name__}_", (torch.nn.Module,), {"__init__": init, "forward": forward, "function": function})
        for function in LOOPS
    ]

    class Recurrences(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.each = torch.nn.ModuleList(kind() for kind in kinds)

        def forward(self, a, b):
            return [each(a, b) for each in self.each]

    torch.manual_seed(0)
    model, inputs = Recurrences().double(), tuple(torch.randn(2, T, 3, dtype=torch.float64) for _ in "ab")
    return porting.trace(model, *inputs), inputs, torch_rows.original(model, inputs)


@pytest.mark.tier("full")
def test_values_and_gradients_are_those_of_the_loop(backend):
    port, inputs, (outputs, gradients, _) = recurrences()
    from ported import error_between, ported

    with multiop.use_backend(backend):
        computed, slopes, _ = ported(port, inputs)
    assert error_between(computed, outputs) < 1e-10
    assert error_between(slopes, gradients) < 1e-9


@pytest.mark.tier("full")
def test_a_loop_is_printed_as_one():
    source = recurrences()[0].source
    for function, heads in LOOPS.items():
        start = source.index(f"def {function.__name__.strip('_')}(")
        text = source[start:].partition("\n\n\n")[0]
        found = [line.strip() for line in text.splitlines() if line.strip().startswith("for ")]
        assert found == heads, text


@pytest.mark.tier("full")
def test_a_list_is_written_once():
    source = recurrences()[0].source
    text = source[source.index("def two_lists_and_last_values(") :].partition("\n\n\n")[0]
    assert "hs = [x]" in text and "ops.stack(hs, axis=1)" in text and "cs[1] * cs[2]" in text


@pytest.mark.tier("full")
def test_recurrences_of_jax():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def model(params, a, b):
        h, ys = jnp.zeros_like(a[:, 0]), []
        for t in range(T):
            h = jnp.tanh(a[:, t] @ params["w"] + h * b[:, t])
            ys.append(h)
        return jnp.stack(ys, 1)

    arrays = [jnp.asarray(np.random.default_rng(i).standard_normal((2, T, 3))) for i in range(2)]
    port = porting.trace(functools.partial(model, {"w": jnp.eye(3) * 0.5}), *arrays)
    assert "for t in range(1, 6):" in port.source and "hs = [h]" in port.source  # zeros without a shape: one step apart
    assert porting.prove(port, "numpy").agrees


@pytest.mark.tier("full")
def test_recurrences_of_tensorflow():
    pytest.importorskip("torch")  # before TensorFlow
    tf = pytest.importorskip("tensorflow")

    class Recurrence(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(np.eye(3) * 0.5)

        @tf.function
        def __call__(self, a, b):
            h, ys = tf.zeros_like(a[:, 0]), []
            for t in range(T):
                h = tf.tanh(a[:, t] @ self.w + h * b[:, t])
                ys.append(h)
            return tf.stack(ys, 1)

    arrays = [tf.constant(np.random.default_rng(i).standard_normal((2, T, 3))) for i in range(2)]
    port = porting.trace(Recurrence(), *arrays)
    assert "for t in range(6):" in port.source
    assert porting.prove(port, "numpy").agrees


# graphs made by hand: no framework is needed


def chain(steps, factor=lambda t: 2.0):
    """Return a model that adds the entries of its input, one after the other, and how often a statement is visited."""
    model = Model((BATCH, steps, 8))
    h = model.add(call("ops.zeros", (8,)), (8,))
    for t in range(steps):
        row = model.add(Item(model.inputs[0], (slice(None), t)), (BATCH, 8))
        scaled = model.add(Infix("*", h, factor(t)), (BATCH, 8))
        h = model.add(call("ops.tanh", model.add(Infix("+", scaled, row), (BATCH, 8))), (BATCH, 8))
    return model, h


def test_a_loop_of_a_graph_made_by_hand(backend):
    model, h = chain(5)
    source = model.source(h)
    assert body(source) == [
        "y = ops.zeros((8,))",
        "for t in range(5):",
        "y = ops.tanh(y * 2.0 + x[:, t])",
        "return y, state",
    ]
    scope = {}
    exec(compile(source, "<net>", "exec"), scope)
    x = np.random.default_rng(0).standard_normal((2, 5, 8)).astype("float32")
    expected = np.zeros(8)
    for t in range(5):
        expected = np.tanh(expected * 2 + x[:, t])
    with multiop.use_backend(backend):
        computed, _ = scope["net"]({}, {}, multiop.op_convert_to_tensor(x))
        np.testing.assert_allclose(multiop.op_convert_to_numpy(computed), expected, rtol=1e-5)


def test_what_differs_in_one_number_is_no_loop():
    model, h = chain(5, lambda t: (2.0, 3.0, 5.0, 2.0, 2.0)[t])
    assert "for " not in model.source(h)


def test_the_search_visits_each_statement_a_few_times(monkeypatch):
    from multiop.porting._printing import recurrences as searched

    counts = []
    own = searched._Search._moves

    def moves(self, number, period):
        counts[-1] += 1
        return own(self, number, period)

    monkeypatch.setattr(searched._Search, "_moves", moves)
    for steps in (100, 400):
        counts.append(0)
        model, h = chain(steps)
        assert f"for t in range({steps}):" in model.source(h)
    assert counts[1] < 4.5 * counts[0]
