"""Control flow and custom gradients of PyTorch as source: values and gradients against the original."""

from __future__ import annotations

import functools

import pytest

torch = pytest.importorskip("torch")

import numpy as np
import torch_rows
from torch._higher_order_ops import associative_scan, map as mapped, scan, while_loop
from torch_rows import normal

import multiop
from multiop import errors, ops, porting

nn = torch.nn
F = nn.functional
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


# derivatives inside of a model


def energy(model, x):
    distance = ((x[:, None] - x[None]).square().sum(-1) + torch.eye(len(x), dtype=x.dtype)).sqrt()
    return (torch.tanh(model.own(x)).sum(-1) / distance.sum(-1)).sum()


def forces(model, x):
    x.requires_grad_()
    e = energy(model, x)
    return e, -torch.autograd.grad(e, x, create_graph=True)[0]


def penalty(model, x):
    """With respect to a copy, which the output uses beside the tensor itself."""
    y = x.clone()
    total = (torch.tanh(model.own(y)) * x.sin()).sum(0)
    slope = torch.autograd.grad(total, y, grad_outputs=model.shift, create_graph=True)[0]
    return (slope.norm(dim=1) - 1).square().mean()


def two_arguments(model, x):
    y = model.own(x)
    z = y * 2
    slopes = torch.autograd.grad(outputs=(z * y.cos()).sum(), inputs=[y, z])
    return slopes[0] * x, slopes[1] * y


def through_a_custom_function(model, x):
    return torch.autograd.grad(Seven.apply(model.own(x)).sum(), x, create_graph=True)


def of_a_function(model, x):
    slope, (total, aux) = torch.func.grad_and_value(lambda r, s: ((model.own(r) * s).sum(), r * 2), has_aux=True)(x, x)
    return slope * x, total, aux


def of_each_row(model, x):
    return torch.func.vmap(torch.func.grad(lambda row: torch.tanh(model.own(row)).square().sum()))(x)


def second_derivative(model, x):
    inner = torch.func.grad(lambda r: torch.tanh(model.own(r)).sum())
    return torch.func.grad(lambda r: inner(r).square().sum())(x)


def of_several_outputs(model, x):
    y = torch.tanh(model.own(x))
    both = torch.autograd.grad([y[:, 0].sum(), y[:, 1].square().sum()], x, create_graph=True)[0]
    return both, torch.autograd.grad([y, y.sin()], [x], [x, y.detach() * 2], create_graph=True)[0]


def of_a_batch_of_weights(model, x):
    y = torch.tanh(model.own(x))
    weights = torch.eye(3, dtype=x.dtype)[:, None].expand(3, len(x), 3)
    return torch.autograd.grad(y, x, weights, create_graph=True, is_grads_batched=True)[0]


def jacobians(model, x):
    each = torch.vmap(torch.func.jacrev(lambda row: torch.tanh(model.own(row))))(x)
    whole = torch.func.jacrev(lambda r, s: torch.tanh(model.own(r) * s).sum(0), argnums=(0, 1))(x, x.sin())
    return (
        each,
        whole,
        torch.vmap(torch.func.jacrev(torch.func.jacrev(lambda row: torch.tanh(model.own(row)).sum())))(x),
    )


def pulled_back(model, x):
    y, pull = torch.func.vjp(lambda r, s: {"u": model.own(r) * s, "v": r}, x, x.sin())
    _, pull_one, aux = torch.func.vjp(lambda r: (torch.tanh(model.own(r)), r * 2), x, has_aux=True)
    return pull({"u": y["u"].detach(), "v": x}), pull_one(x), aux


DERIVATIVES = {
    function.__name__: function
    for function in (
        forces,
        penalty,
        two_arguments,
        through_a_custom_function,
        of_a_function,
        of_each_row,
        second_derivative,
        of_several_outputs,
        of_a_batch_of_weights,
        jacobians,
        pulled_back,
    )
}


@functools.cache
def derivative(name):
    torch.manual_seed(0)
    model = Flow(DERIVATIVES[name]).double()
    return model, porting.trace(model, normal(4, 3)())


FULL = pytest.mark.tier("full")
QUICK = ("forces", "through_a_custom_function", "of_a_function", "jacobians")


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=FULL) for name in DERIVATIVES])
def test_derivatives_inside(name, backend):
    model, port = derivative(name)
    x = normal(6, 3)()
    if name not in ("of_a_function", "of_each_row", "second_derivative", "jacobians", "pulled_back"):
        x.requires_grad_()
    outputs, gradients, _ = torch_rows.original(model, (x,))
    with multiop.use_backend(backend):
        computed, slopes, _ = torch_rows.ported(port, (x,))
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < 1e-9


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (lambda m, x: torch.func.jvp(m.own, (x,), (x,)), "jvp, jacfwd, hessian have no translation"),
        (lambda m, x: torch.func.jacfwd(m.own)(x[0]), "grad, vjp and jacrev have"),
        (lambda m, x: torch.func.hessian(lambda r: m.own(r).sum())(x[0]), "grad, vjp and jacrev have"),
        (lambda m, x: torch.func.jacrev(m.own)(x), "a Jacobian of an open number of outputs"),
        (lambda m, x: torch.autograd.grad([x.sum(), x.float().sum()], x), "several outputs with different dtypes"),
    ],
)
def test_other_derivatives_are_refused(line, words):
    with pytest.raises(errors.TranslationError, match=words):
        porting.trace(Flow(line).double(), normal(4, 3)().requires_grad_())


# sequences of several lengths, masks, other dtypes inside


class Packed(nn.Module):
    def __init__(self, kind, sorts, total=None):
        super().__init__()
        self.rnn = kind(3, 4, 2, batch_first=True, bidirectional=True)
        self.sorts, self.total = sorts, total

    def forward(self, x, lengths):
        x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=self.sorts)
        x, state = self.rnn(x)
        x, lengths = nn.utils.rnn.pad_packed_sequence(x, True, 0.5, self.total)
        return x, state, lengths


@pytest.mark.parametrize(
    ("kind", "sorts", "total", "lengths"),
    [
        (nn.LSTM, False, None, [2, 4, 1]),
        pytest.param(nn.GRU, True, 6, [4, 2, 1], marks=FULL),
        pytest.param(nn.RNN, False, 5, [1, 3, 5], marks=FULL),
    ],
)
def test_packed_sequences(kind, sorts, total, lengths, backend):
    torch.manual_seed(0)
    model = Packed(kind, sorts, total).double()
    port = porting.trace(model, normal(2, 5, 3)(), torch.tensor([5, 3]))
    inputs = normal(3, 5, 3)(), torch.tensor(lengths)
    outputs, gradients, _ = torch_rows.original(model, inputs)
    with multiop.use_backend(backend):
        computed, slopes, _ = torch_rows.ported(port, inputs)
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < 1e-9


class Longest(Packed):
    def forward(self, x, lengths):
        y = super().forward(x, lengths)[0]
        return y if y.shape[1] > 1 else -y


def test_a_branch_on_the_longest_sequence_is_refused():
    with pytest.raises(errors.TranslationError, match=r"Could not guard on data-dependent expression u0 > 1"):
        porting.trace(Longest(nn.GRU, False).double(), normal(2, 5, 3)(), torch.tensor([5, 3]))


def mean_of_packed(m, x):
    return nn.utils.rnn.pack_padded_sequence(x[:, None], [3, 1], batch_first=False).data.mean()


def test_the_entries_of_a_packed_sequence_are_refused():
    with pytest.raises(errors.TranslationError, match=r"aten\.mean: the entries of a packed sequence"):
        porting.trace(Flow(mean_of_packed).double(), normal(3, 2, 3)(), dynamic_shapes={"inputs": ({},)})


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(4, 2, 1, 1, 8, 0.0, batch_first=True)

    def forward(self, x, y, mask, padding):
        return self.transformer(x, y, tgt_mask=mask, src_key_padding_mask=padding)


@FULL
def test_masks_of_a_transformer_as_inputs(backend):
    torch.manual_seed(0)
    model, mask = Masked().double(), torch.triu(torch.ones(5, 5), 1).bool()
    padding = torch.tensor([[False, False, True]] * 3)
    shapes = ({0: torch.export.Dim.AUTO}, {0: torch.export.Dim.AUTO}, None, {0: torch.export.Dim.AUTO})
    port = porting.trace(model, normal(2, 3, 4)(), normal(2, 5, 4)(), mask, padding[:2], dynamic_shapes=shapes)
    inputs = normal(3, 3, 4)(), normal(3, 5, 4)(), mask, padding
    outputs, gradients, _ = torch_rows.original(model, inputs)
    with multiop.use_backend(backend):
        computed, slopes, _ = torch_rows.ported(port, inputs)
    assert torch_rows.error_between(computed, outputs) < 1e-10
    assert torch_rows.error_between(slopes, gradients) < 1e-9


class Narrow(nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.norm(self.line(x))
            with torch.autocast("cpu", enabled=False):
                y = y.float() @ x.T
        return y


def test_an_autocast_is_the_casts_that_it_makes(backend):
    torch.manual_seed(0)
    port = porting.trace(Narrow(), torch.randn(3, 4))
    assert 'linear(ops.cast(x, "bfloat16")' in port.source
    proof = porting.prove(port, backend)
    assert proof.agrees and proof.tolerance == 2e-2


def fallback(x, weight, ends):
    """Call what transformers' experts call in a trace: an operation of their own."""
    if not hasattr(torch.ops.transformers, "grouped_mm_fallback"):
        schema = "(Tensor input, Tensor weight, Tensor offs) -> Tensor"
        own = torch.library.custom_op(
            "transformers::grouped_mm_fallback", lambda *_: None, mutates_args=(), schema=schema
        )
        own.register_fake(lambda input, weight, offs: input.new_empty((input.shape[0], weight.shape[2])))  # noqa: A006
    return torch.ops.transformers.grouped_mm_fallback(x, weight, ends)


class Experts(nn.Module):
    def __init__(self, own=False):
        super().__init__()
        self.own = own
        self.router, self.weight = nn.Linear(8, 3), nn.Parameter(torch.randn(3, 8, 16))

    def forward(self, x):
        chosen = self.router(x).argmax(-1)
        order = chosen.argsort()
        ends = F.one_hot(chosen, 3).sum(0).cumsum(0).to(torch.int32)
        is_own = self.own and torch.compiler.is_compiling()
        product = fallback(x[order], self.weight, ends) if is_own else F.grouped_mm(x[order], self.weight, offs=ends)
        return product[order.argsort()]


@FULL
@pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="this PyTorch has no product of groups")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("own", [False, True], ids=["of PyTorch", "of transformers"])
def test_a_product_of_groups(backend, dtype, own):
    """In float64, too, which PyTorch's kernel refuses: there the original is what the kernel means."""
    torch.manual_seed(0)
    model, x = Experts(own).to(dtype), torch.randn(10, 8, dtype=dtype)
    port = porting.trace(model, x)
    assert "grouped_matmul" in port.source and porting.prove(port, backend).agrees
    assert port.inputs()[0].dtype == str(dtype).removeprefix("torch.")
    rows = torch.stack([row @ model.weight[one] for row, one in zip(x, model.router(x).argmax(-1), strict=True)])
    with multiop.use_backend(backend):
        y = ops.convert_to_numpy(port.function(port.params, port.state, x.numpy())[0])
    np.testing.assert_allclose(y, rows.detach().numpy(), rtol=1e-4 if dtype is torch.float32 else 1e-12)


class Counted(nn.Module):
    """Changes a parameter, and calls what PyTorch itself writes in other operations."""

    def __init__(self):
        super().__init__()
        self.steps = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        with torch.no_grad():
            self.steps.add_(1.0)
        return x.index_copy(0, torch.tensor([0]), x[1:2])


def test_what_has_a_translation_is_not_listed_as_missing():
    with pytest.raises(errors.TranslationError, match="steps") as raised:
        porting.trace(Counted(), torch.ones(2, 3))
    assert "index_copy" not in str(raised.value)
