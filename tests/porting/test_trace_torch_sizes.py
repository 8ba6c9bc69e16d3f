"""Models of PyTorch whose sizes are open: values and gradients at sizes that they were not traced with."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch_rows
from torch_rows import Line, normal

import multiop
from multiop import errors, porting

nn = torch.nn
F = nn.functional
AUTO = torch.export.Dim.AUTO


def barlow_twins(x, y):
    x, y = ((z - z.mean(0)) / z.std(0) for z in (x, y))
    return x.T @ y / len(x)


def contrasted(x):
    x = F.normalize(torch.cat([x, x.roll(1, 1)]), dim=1)
    similarity = (x @ x.T / 0.5).masked_fill(torch.eye(len(x), dtype=torch.bool), float("-inf"))
    count = len(x) // 2
    labels = torch.cat([torch.arange(count) + count, torch.arange(count)])
    return F.cross_entropy(similarity, labels) + torch.diag(similarity, count).sum()


def guided(x):
    half = x[: len(x) // 2].sin()
    first, second = torch.cat([half, 2 * half]).split(len(x) // 2)
    return second + 3 * (first - second), torch.cat([x, x]).chunk(2)[1]


def halves(x):
    x = F.pad(x, (0, -x.shape[1] % 4, 0, x.shape[0] - 3))
    return x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2], x.split([1, x.shape[1] - 1], 1)[1]


def filled(x):
    x = x * 2
    x[:, x.shape[1] // 2 :] = 0.5
    return x + torch.full((1,), 1 / x.shape[1], dtype=x.dtype) + torch.linspace(0, 1, x.shape[1], dtype=x.dtype)


def upsampled(x, y):
    size = y.shape[-2:]
    modes = ({"mode": "nearest"}, {"mode": "bilinear"}, {"mode": "bicubic", "align_corners": True})
    by_factor = [F.interpolate(x, scale_factor=factor) for factor in (2, 1.5)]
    return [y + F.interpolate(x, size=size, **mode) for mode in modes], by_factor


SIZES = {  # the function, and two shapes of each input: its open axes are those that differ
    "divided by a root": (lambda x: (x / math.sqrt(x.shape[1]), x * x.shape[1] ** -0.5), [((3, 5), (4, 9))]),
    "centred": (lambda x: (x - (x.shape[1] - 1) / 2) * (2 / (len(x) + 1)), [((3, 5), (4, 9))]),
    "variances": (lambda x: (x.var(1), x.std((0, 1)), torch.var_mean(x, 0)), [((3, 5, 2), (4, 9, 2))]),
    "median": (lambda x: (x.median(1)[0], x.kthvalue(2, 1)[0]), [((3, 5), (4, 8))]),
    "barlow twins": (barlow_twins, [((3, 4), (5, 4))] * 2),
    "contrasted": (contrasted, [((3, 4), (5, 4))]),
    "guided": (guided, [((4, 3), (6, 3))]),
    "halves": (halves, [((5, 7), (4, 9))]),
    "filled": (filled, [((3, 6), (4, 9))]),
    "upsampled": (upsampled, [((2, 2, 4, 6), (3, 2, 6, 4)), ((2, 2, 7, 9), (3, 2, 8, 5))]),
    "pooled": (
        lambda x: (F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, True, False)),
        [((2, 3, 6, 8), (3, 3, 7, 9))],
    ),
    "largest share": (lambda x: x.topk(max(1, x.shape[1] // 2), 1)[0].mean(1), [((3, 6), (4, 9))]),
    "compared": (
        lambda x: (
            x + (x.shape[1] > 6),
            x * torch.sym_not((x.shape[1] > 4) & (x.shape[0] * 2 < 7)),
            (x > 0) & (x.shape[1] % 3 == 0),
            torch.full((2,), x.shape[1] / 2 != 3, dtype=x.dtype),
        ),
        [((3, 6), (4, 9))],
    ),
    "repeated": (lambda x: x.repeat(len(x), 1).view(len(x), len(x), -1) - x[:, None], [((3, 4), (5, 4))]),
}


def drawn(shapes):
    torch.manual_seed(0)
    return [normal(*shape)() for shape in shapes]


def opened(pairs):
    return tuple({i: AUTO for i, (a, b) in enumerate(zip(*pair, strict=True)) if a != b} for pair in pairs)


@functools.cache
def ported_at(name):
    line, pairs = SIZES[name]
    return porting.trace(Line(line), *drawn(a for a, _ in pairs), dynamic_shapes={"inputs": opened(pairs)})


FULL = pytest.mark.tier("full")
QUICK = ("divided by a root", "variances", "guided", "compared")


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=FULL) for name in SIZES])
def test_other_sizes(name, backend):
    line, pairs = SIZES[name]
    for shapes in zip(*pairs, strict=True):
        inputs = drawn(shapes)
        outputs, gradients, _ = torch_rows.original(Line(line), inputs)
        with multiop.use_backend(backend):
            computed, slopes, _ = torch_rows.ported(ported_at(name), inputs)
        assert torch_rows.error_between(computed, outputs) < 1e-10
        assert torch_rows.error_between(slopes, gradients) < 1e-9


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True, proj_size=2, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(4, 3, batch_first=True)

    def forward(self, x):
        x, state = self.lstm(x)
        return self.gru(x)[0], state


def test_an_open_number_of_steps(backend):
    torch.manual_seed(0)
    model = Steps().double()
    port = porting.trace(model, normal(2, 5, 3)(), dynamic_shapes=({0: AUTO, 1: AUTO},))
    x = normal(3, 7, 3)()
    outputs, gradients, _ = torch_rows.original(model, (x,))
    with multiop.use_backend(backend):
        computed, slopes, _ = torch_rows.ported(port, (x,))
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < 1e-9


@pytest.mark.parametrize(
    "line",
    [
        lambda x: x * 2 if x.shape[1] == 6 else x,
        lambda x: x.sin() + torch.ones(6),
        lambda x: sum(x[:, i] for i in range(x.shape[1])),
        lambda x: x.reshape(-1, 6),
        lambda x: x * int(x.shape[1]) ** 0.5 @ torch.ones(6, 2, dtype=x.dtype),
    ],
)
def test_a_size_that_has_a_name_and_is_fixed_is_refused(line):
    place = rf"test_trace_torch_sizes.py:{line.__code__.co_firstlineno}$"
    words = f"size length is to stay open, and Line fixes it to 6, at .*{place}"
    with pytest.raises(errors.TranslationError, match=words):
        porting.trace(Line(line), normal(3, 6)(), dynamic_shapes="batch, length")
    assert porting.trace(Line(lambda x: x * x.shape[1]), normal(3, 6)(), dynamic_shapes="batch, length")
    program = torch.export.export(Line(lambda x: x * 2), (normal(3, 6)(),))
    with pytest.raises(errors.ArgumentError, match="sizes that it was exported with"):
        porting.trace(program, normal(3, 6)(), dynamic_shapes="batch, length")


@pytest.mark.parametrize(
    ("line", "shape", "words"),
    [
        (lambda x: x * 2 if x.shape[1] > 4 else x * 3, (3, 3), "size1 > 4, got size1 = 3"),
        (lambda x: x * 2 if len(x) % 3 == 0 else x * 3, (4, 6), "batch % 3 == 0, got batch = 4"),
        (lambda x: x[:, : int(x.shape[1] * 0.5)], (3, 9), "== 3, got size1 = 9"),
    ],
)
def test_sizes_where_the_original_does_something_else(line, shape, words):
    port = porting.trace(Line(line), normal(3, 6)(), dynamic_shapes={"inputs": ({0: AUTO, 1: AUTO},)})
    with multiop.use_backend("torch"):
        port.function(port.params, port.state, normal(6, 6)())
        with pytest.raises(errors.ArgumentError, match=words):
            port.function(port.params, port.state, normal(*shape)())


def test_numbers_made_of_sizes_are_returned(backend):
    line = Line(lambda x: (x, x.shape[1] / 4, x.shape[1] > 6, x.shape[1]))
    port = porting.trace(line, normal(3, 6)(), dynamic_shapes="batch, length")
    with multiop.use_backend(backend):
        outputs, _ = port.function(port.params, port.state, normal(2, 9)().numpy())
    assert outputs[1:] == (2.25, True, 9)


@pytest.mark.parametrize("names", [None, "batch, length", [[{0: "a"}, {0: "b"}]]])
def test_one_tensor_given_twice_is_two_inputs(names, backend):
    x, y = drawn([(3, 4), (3, 4)])
    port = porting.trace(Line(lambda x, y: torch.cat([x, 2 * y])), x, x, dynamic_shapes=names)
    with multiop.use_backend(backend):
        outputs, _ = port.function(port.params, port.state, x.numpy(), y.numpy())
        np.testing.assert_array_equal(multiop.op_convert_to_numpy(outputs), torch.cat([x, 2 * y]))
    assert names != [[{0: "a"}, {0: "b"}]] or all(f"`({name}, 4)`" in port.source for name in "ab")


def test_the_paths_of_einsum_are_switched_as_before_a_port():
    """The switch is a property, which an attribute of that name hides."""
    switch = torch.backends.opt_einsum
    porting.trace(Line(lambda x: torch.einsum("ij,jk,kl->il", x, x, x)), normal(3, 3)())
    with switch.flags(enabled=False):
        assert not switch.enabled
    assert switch.enabled == switch.is_available()
