"""Control flow and custom gradients of PyTorch as source: values and gradients against the original."""

from __future__ import annotations

import functools

import pytest

torch = pytest.importorskip("torch")

import torch_rows
from torch._higher_order_ops import associative_scan, map as mapped, scan, while_loop
from torch_rows import normal

import multiop
from multiop import errors, porting

nn = torch.nn
Function = torch.autograd.Function


class Flow(nn.Module):
    """A model with two parameters and a buffer, which a function of it, and of the inputs, uses."""

    def __init__(self, line):
        super().__init__()
        self.line, self.own = line, nn.Linear(3, 3)
        self.register_buffer("shift", torch.tensor([0.3, -0.2, 0.1]))

    def forward(self, *inputs):
        return self.line(self, *inputs)


def chosen(model, x):
    def yes(x):
        return torch.tanh(model.own(x)) + model.shift

    return torch.cond(x.sum() > 0, yes, lambda x: model.own(x) * x.shape[0] + 1, (x,))


def chosen_twice(model, x):
    """Two results; a choice in a branch."""

    def inner(x):
        return torch.cond(x[0, 0] > 0, lambda x: x.sin(), lambda x: model.own(x).cos(), (x,))

    y, z = torch.cond(x.sum() > 100, lambda x: (x + 1, x * 2), lambda x: (inner(x), x * model.shift), (x,))
    return y * z


def scanned(model, x):
    def step(carry, row):
        h, total = carry
        h = torch.tanh(model.own(h) + row)
        return [h, total + h * model.shift], h * 2

    (h, total), ys = scan(step, [torch.zeros(3, dtype=x.dtype), x[0] * 1], x)
    return h, total, ys


def scanned_backwards(model, x):
    def step(carry, row):
        carry = carry * row + model.own.bias.sum()
        return carry, (carry.sin(), carry.cos())

    return scan(step, x[:, 0] * 1, x, dim=1, reverse=True)[1]


def each(model, x):
    return mapped(lambda row, factor: torch.tanh(model.own(row)) * factor, x, model.shift)


def counted(model, x):
    def body(i, x):
        return i + 1, torch.tanh(model.own(x)) * (i + 1.5)

    return while_loop(lambda i, x: i < 3, body, (torch.tensor(0), x * 1))


def until_large(model, x):
    def body(total, x):
        return total + x.abs().sum(), x * 1.5 + model.shift

    return while_loop(lambda total, x: total < 50, body, (x.abs().sum(), x * 1))[1]


def combined(model, x):
    return associative_scan(lambda a, b: a * b + 0.1 * (a + b), x, dim=0, combine_mode="generic")


FLOWS = {
    function.__name__: function
    for function in (chosen, chosen_twice, scanned, scanned_backwards, each, counted, combined)
}


@functools.cache
def flow(name):
    torch.manual_seed(0)
    model, inputs = Flow(FLOWS.get(name, until_large)).double(), (normal(4, 3)(),)
    return porting.trace(model, *inputs), inputs, torch_rows.original(model, inputs)


@pytest.mark.parametrize("name", FLOWS)
def test_control_flow(name, backend):
    port, inputs, (outputs, gradients, _) = flow(name)
    with multiop.use_backend(backend):
        computed, slopes, _ = torch_rows.ported(port, inputs)
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < 1e-9


def test_a_loop_until_a_condition_holds(backend):
    port, inputs, (outputs, gradients, _) = flow("until_large")
    if backend == "jax":  # no reverse mode
        with multiop.use_backend(backend):
            computed, _ = port.function(port.params, port.state, inputs[0].numpy())
            computed = [multiop.op_convert_to_numpy(computed)]
    else:
        with multiop.use_backend(backend):
            computed, slopes, _ = torch_rows.ported(port, inputs)
        assert torch_rows.error_between(slopes, gradients) < 1e-9
    assert torch_rows.error_between(computed, outputs) < 1e-10


def test_control_flow_reads_well():
    for name, words in {
        "chosen": "ops.cond(",
        "scanned": "= ops.scan(step, (",
        "each": "ops.map(",
        "counted": "ops.fori_loop(0, 3, ",
        "until_large": "ops.while_loop(",
    }.items():
        source = flow(name)[0].source
        assert (words in source and '**params["own"]' in source) or name == "until_large"


# functions with a gradient of their own


class Seven(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        return upstream * 7 * torch.cos(x)


bound = Seven.apply


class WithSetup(Function):
    """Options, an argument without a gradient, an intermediate that is kept, two results."""

    @staticmethod
    def forward(x, weight, scale, mode):
        y = torch.sigmoid(x @ weight.t())
        return y * scale, y.argmax(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, ctx.scale, ctx.mode = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(x, weight, output[0])

    @staticmethod
    def backward(ctx, upstream, _):
        x, weight, y = ctx.saved_tensors
        slope = upstream * y * (1 - y / ctx.scale) * (3 if ctx.mode == "three" else 1)
        return slope @ weight, slope.t() @ x if ctx.needs_input_grad[1] else None, None, None


class Reverse(Function):
    """Returns its argument."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, upstream):
        return -0.5 * upstream


class Once(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        z = torch.exp(x)
        z = z.masked_fill(z > 2, 2.0)
        ctx.save_for_backward(z, y)
        return z + y, z * 3

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, first, second):
        z, y = ctx.saved_tensors
        total = torch.zeros_like(z) if first is None else first * z
        if second is not None:
            total = total + second
        return total, (total * y).sum(0, keepdim=True)


class Outer(Function):
    """Calls another in its backward, and sums over an open size."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sum(0, keepdim=True).expand(x.shape[0], 3) / x.shape[0]

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        return Seven.apply(x) * upstream


class ViaVjp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone().mul_(0.5)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def vjp(ctx, upstream):
        return 2 * upstream * ctx.saved_tensors[0]


CUSTOMS = {
    "saved argument": lambda m, x: bound(m.own(x)) + Seven.apply(x),
    "setup_context": lambda m, x: WithSetup.apply(x, m.own.weight, 2.0, "three")[0],
    "both modes": lambda m, x: WithSetup.apply(
        WithSetup.apply(x, m.own.weight, 2.0, "one")[0], m.own.weight, 1.5, "three"
    ),
    "argument returned": lambda m, x: Reverse.apply(m.own(x)) * m.shift,
    "once differentiable": lambda m, x: Once.apply(m.own(x), m.own.bias)[0],
    "two results": lambda m, x: Once.apply(m.own(x), m.own.bias),
    "nested": lambda m, x: Outer.apply(m.own(x)) * x,
    "vjp": lambda m, x: ViaVjp.apply(m.own(x)),
    "in a branch": lambda m, x: torch.cond(x.sum() > 0, lambda x: m.own(x), lambda x: Seven.apply(m.own(x)), (x,)),
}


@functools.cache
def custom(name):
    torch.manual_seed(0)
    model, inputs = Flow(CUSTOMS[name]).double(), (normal(4, 3)(),)
    return porting.trace(model, *inputs), inputs, torch_rows.original(model, inputs)


@pytest.mark.parametrize("name", CUSTOMS)
def test_custom_gradients(name, backend):
    port, inputs, (outputs, gradients, _) = custom(name)
    with multiop.use_backend(backend):
        computed, slopes, _ = torch_rows.ported(port, inputs)
    assert "@ops.custom_gradient" in port.source
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < 1e-9


def test_a_custom_gradient_is_one_function_with_an_open_size():
    source = custom("saved argument")[0].source
    assert source.count("def seven(") == 1 and source.count("seven(") == 3
    port = custom("nested")[0]
    with multiop.use_backend("torch"):
        assert port.function(port.params, port.state, normal(6, 3)())[0].shape == (6, 3)


class Data(Function):
    """Depends on values."""

    @staticmethod
    def forward(ctx, x):
        return x * 2 if float(x.sum()) > 0 else x

    @staticmethod
    def backward(ctx, upstream):
        return upstream


class Dirty(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, upstream):
        return upstream


class View(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y[:, 0] = 0.5
        return y

    @staticmethod
    def backward(ctx, upstream):
        return upstream


class Missing(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


REFUSED = {
    "Dirty": (lambda m, x: Dirty.apply(x * 1), "in place"),
    "View": (lambda m, x: View.apply(x), "through another tensor"),
    "Missing": (lambda m, x: Missing.apply(x), "no backward"),
    "WithSetup": (
        lambda m, x: torch.func.vmap(lambda r: WithSetup.apply(r[None], m.own.weight, 2.0, "")[0])(x),
        "func",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_custom_gradient_that_cannot_be_carried_over_is_refused(name):
    line, words = REFUSED[name]
    with pytest.raises(errors.TranslationError, match=rf"(?s)autograd.Function {name}.*{words}"):
        porting.trace(Flow(line).double(), normal(4, 3)())


def test_the_functions_are_as_before_afterwards():
    before = vars(Seven)["forward"], vars(WithSetup)["setup_context"]
    custom("saved argument"), custom("setup_context")
    assert before == (vars(Seven)["forward"], vars(WithSetup)["setup_context"])
