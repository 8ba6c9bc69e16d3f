"""What `torch.export` cannot follow, in terms that it can: functions that look at values, or that fix a size.

While `keep_sizes_open` is active, `math.sqrt` and `len` give open numbers, `torch.einsum` goes from left to right,
distributions do not check their values, and `HANDLERS` stand for some functions of PyTorch. Those that are kernels are
operations of the namespace `multiop` with the signatures of PyTorch's own, so that the rows of these apply.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from multiop.porting import _hosts
from multiop.porting.torch import _internals
from multiop.porting.torch._internals import pytree

F: Any = torch.nn.functional


class Refused(Exception):
    """Why a function cannot be traced, in a few words."""


@contextlib.contextmanager
def keep_sizes_open():
    """Let functions of Python give open numbers, and let distributions take values as they are."""
    with _hosts.replacing() as replace:
        root, length, checks = math.sqrt, builtins.len, _internals.checks_distributions()

        def open_root(x, /):
            return torch.sym_sqrt(x) if isinstance(x, (torch.SymInt, torch.SymFloat)) else root(x)

        def open_length(x, /):
            return x.shape[0] if isinstance(x, torch.Tensor) and x.ndim else length(x)

        _internals.keep_frames(replace)
        replace(math, "sqrt", open_root)
        replace(builtins, "len", open_length)
        replace(torch.nn.utils.rnn, "invert_permutation", lambda order: None if order is None else order.argsort())
        replace(torch.backends.opt_einsum, "enabled", False)  # its paths compare sizes, and so fix them
        torch.distributions.Distribution.set_default_validate_args(False)
        try:
            with _internals.replace_transforms(grad_and_value, vjp):
                yield
        finally:
            torch.distributions.Distribution.set_default_validate_args(checks)


# losses


def gaussian_nll(input, target, var, full=False, eps=1e-6, reduction="mean"):  # noqa: A002 - as in PyTorch
    """Compute what `F.gaussian_nll_loss` does; its clip has the gradient of the identity."""
    var = var * torch.ones_like(input) if isinstance(var, float) else var
    var = var.unsqueeze(-1) if var.shape != input.shape and input.shape[:-1] == var.shape else var
    var = var + (var.clamp(min=eps) - var).detach()
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    loss = loss + 0.5 * math.log(2 * math.pi) if full else loss
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def ctc(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """Compute what `F.ctc_loss` does, whose kernel decides by the lengths how much memory it takes."""
    is_one = log_probs.ndim == 2
    log_probs = log_probs.unsqueeze(1) if is_one else log_probs
    lengths = [torch.as_tensor(each, dtype=torch.int64).reshape(-1) for each in (input_lengths, target_lengths)]
    if targets.ndim == 1 and is_one:
        targets = targets.unsqueeze(0)
    elif targets.ndim == 1:  # one behind the other
        starts = lengths[1].cumsum(0) - lengths[1]
        places = starts.unsqueeze(1) + torch.arange(targets.shape[0])
        targets = targets[places.clamp(max=targets.shape[0] - 1)]
    loss = torch.ops.multiop.ctc_loss(log_probs, targets, *lengths, blank)
    loss = torch.where(torch.isinf(loss), 0.0, loss) if zero_infinity else loss
    if reduction in ("mean", 1):
        return (loss / lengths[1].clamp(min=1).to(loss.dtype)).mean()
    loss = loss.squeeze(0) if is_one else loss
    return loss.sum() if reduction in ("sum", 2) else loss


# derivatives


def gradient(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """Stand for `torch.autograd.grad`, which an export does not record."""
    ys, xs, cotangents = (
        [each] if isinstance(each, torch.Tensor) else list(each or ()) for each in (outputs, inputs, grad_outputs)
    )
    if is_grads_batched and (len(ys) != 1 or not isinstance(cotangents[0].shape[0], int)):
        raise Refused("torch.autograd.grad of several outputs, or of an open number of them, with is_grads_batched")
    y, cotangent = _join_outputs(ys, cotangents)
    if is_grads_batched:
        slopes = _of_each(y, cotangents[0].reshape(len(cotangents[0]), *y.shape), xs)
    else:
        slopes = torch.ops.multiop.gradient(y, cotangent, xs)
    return tuple(slopes if create_graph else [slope.detach() for slope in slopes])


def _join_outputs(ys, cotangents):
    """Return outputs and what they are weighted with as one tensor each."""
    if len(ys) == 1:
        return ys[0], cotangents[0] if cotangents else None
    if len({y.dtype for y in ys}) > 1:
        raise Refused("a derivative of several outputs with different dtypes")
    given = cotangents or [None] * len(ys)
    weights = [torch.ones_like(y) if weight is None else weight for y, weight in zip(ys, given, strict=True)]
    y, weights = (torch.cat([each.reshape(-1) for each in listed]) for listed in (ys, weights))
    return y, weights


def _of_each(y, cotangents, xs):
    """Return the derivatives for each row of weights, one below the other."""
    rows = [torch.ops.multiop.gradient(y, cotangent, xs) for cotangent in cotangents]
    return [torch.stack(slopes) for slopes in zip(*rows, strict=True)]


def _with_fresh(args, argnums):
    """Return arguments with new names for the tensors in some of them, these tensors, and how they are nested."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    xs, structure = pytree.tree_flatten([args[number] for number in numbers])
    xs = [torch.ops.multiop.fresh(x) for x in xs]
    given = list(args)
    for number, x in zip(numbers, pytree.tree_unflatten(xs, structure), strict=True):
        given[number] = x
    return given, xs, structure


def vjp(function, *primals, argnums=None, has_aux=False):
    """Stand for `torch.func.vjp`, on which its Jacobians are built: the pullback of arguments without other names."""
    given, xs, structure = _with_fresh(primals, range(len(primals)) if argnums is None else argnums)
    outputs = function(*given)
    outputs, aux = outputs if has_aux else (outputs, None)
    ys, _ = pytree.tree_flatten(outputs)

    def pull(cotangents, **_):
        slopes = list(torch.ops.multiop.gradient(*_join_outputs(ys, pytree.tree_leaves(cotangents)), xs))
        pulled = pytree.tree_unflatten(slopes, structure)
        return pulled[0] if isinstance(argnums, int) else tuple(pulled)

    return (outputs, pull, aux) if has_aux else (outputs, pull)


def grad_and_value(function, argnums, has_aux, args, kwargs):
    """Stand for `torch.func.grad_and_value`: the gradient in arguments that nothing else is a name of."""
    given, xs, structure = _with_fresh(args, argnums)
    y = function(*given, **kwargs)
    slopes = torch.ops.multiop.gradient(y[0] if has_aux else y, None, xs)
    slopes = pytree.tree_unflatten(list(slopes), structure)
    return slopes[0] if isinstance(argnums, int) else tuple(slopes), y


def _mapped_gradient(info, in_dims, y, cotangent, xs):
    """Map over a derivative: that of the sum over all examples, which do not depend on each other."""
    axis, others, axes = in_dims
    if axis is None and others is not None and all(each is None for each in axes):  # a Jacobian: a row for each weight
        if not isinstance(cotangent.shape[others], int):
            raise Refused("a Jacobian of an open number of outputs")
        return _of_each(y, cotangent.movedim(others, 0), xs), [0] * len(xs)
    if axis is None or any(each is None for each in axes):
        raise Refused("torch.func.grad in what torch.func.vmap does not map over")
    if cotangent is not None:
        cotangent = cotangent.unsqueeze(axis).expand_as(y) if others is None else cotangent.movedim(others, axis)
    return torch.ops.multiop.gradient(y, cotangent, xs), list(axes)


# operations that fix a size


def recurrent(name, *args):
    """Call a recurrent network; the schema is that of PyTorch's, with a list of states."""
    if isinstance(args[3], bool):
        x, states, params, *options = args
        states = list(states) if name == "lstm" else [states]
        return tuple(getattr(torch.ops.multiop, name)(x, states, list(params), *options))
    return getattr(torch, name)(*args)


PackedSequence = torch.nn.utils.rnn.PackedSequence


def pack(x, lengths, batch_first):
    """Stand for a kernel whose results have sizes that depend on values: `x` itself stays, time first."""
    x = x.transpose(0, 1) if batch_first else x
    data, batch_sizes = torch.ops.multiop.pack(x, lengths)
    torch._check(batch_sizes.shape[0] <= x.shape[0])
    return data, batch_sizes


def unpack(data, batch_sizes, batch_first, padding_value, total_length):
    """Stand for the kernel that gives back what was packed, with the padding behind each example."""
    y, lengths = torch.ops.multiop.unpack(data, float(padding_value), total_length)
    return (y.transpose(0, 1) if batch_first else y), lengths


def _of_packed(network):
    """Return a recurrent network that takes a packed sequence without the sizes that depend on values."""

    class Network(network):  # type: ignore[misc]
        def forward(self, input, hx=None):  # noqa: A002 - as in PyTorch
            """Compute what the network does."""
            if not isinstance(input, PackedSequence) or not torch.compiler.is_exporting():
                return super().forward(input, hx)
            kind = self.mode.lower()
            width = self.proj_size or self.hidden_size
            widths = [width, self.hidden_size] if kind == "lstm" else [width]
            if hx is None:
                count = self.num_layers * (1 + self.bidirectional)
                shapes = [(count, input.data.shape[1], size) for size in widths]
                states = [torch.zeros(shape, dtype=input.data.dtype) for shape in shapes]
            else:
                hx = self.permute_hidden(hx, input.sorted_indices)
                states = list(hx) if kind == "lstm" else [hx]
            options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
            weights = _internals.recurrent_weights(self)
            y, *states = torch.ops.multiop.packed(kind, input.data, states, weights, *options)
            states = self.permute_hidden(tuple(states) if kind == "lstm" else states[0], input.unsorted_indices)
            return PackedSequence(y, *input[1:]), states

    return Network


def linspace(start, end, steps, dtype=None, **options):
    """Call `torch.linspace`, with a number of steps that may be open."""
    if not isinstance(steps, torch.SymInt) or any(isinstance(bound, torch.Tensor) for bound in (start, end)):
        return torch.linspace(start, end, steps, dtype=dtype, **options)
    return torch.ops.multiop.linspace(start, end, steps, dtype or torch.get_default_dtype())


def diagonal(x, offset=0, dim1=0, dim2=1):
    """Call `torch.diagonal`, with an offset that may be open."""
    if isinstance(offset, torch.SymInt):
        return torch.ops.multiop.diagonal(x, offset, dim1, dim2)
    return torch.diagonal(x, offset, dim1, dim2)


def diag(x, diagonal=0):
    """Call `torch.diag`, with an offset that may be open."""
    if x.ndim == 2 and isinstance(diagonal, torch.SymInt):
        return torch.ops.multiop.diagonal(x, diagonal, 0, 1)
    return torch.diag(x, diagonal)


def take_along(x, indices, dim=None):
    """Call `torch.take_along_dim`; where the other dimensions are the same, that is a gather."""
    if dim is None:
        return x.reshape(-1).gather(0, indices.reshape(-1))
    others = [[n for axis, n in enumerate(each.shape) if axis != dim % x.ndim] for each in (x, indices)]
    if x.ndim == indices.ndim and str(others[0]) == str(others[1]):
        return x.gather(dim, indices)
    return torch.take_along_dim(x, indices, dim)


def grouped_matmul(x, weight, offs=None, **options):
    """Stand for a kernel that takes few dtypes: rows up to each offset, times a matrix of their own."""
    if x.ndim != 2 or weight.ndim != 3 or offs is None or any(option is not None for option in options.values()):
        return _internals.grouped_matmul()(x, weight, offs=offs, **options)
    return torch.ops.multiop.grouped_matmul(x, weight, offs)


class _Groups(TorchFunctionMode):
    """Multiplies rows by a matrix for each group in float64, too, which the kernel does not take."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        given = kwargs or {}
        is_product = function is _internals.grouped_matmul() and not torch.compiler.is_compiling()
        if not is_product or args[0].dtype != torch.float64 or len(args) != 2 or given.get("offs") is None:
            return function(*args, **given)
        x, weight = args
        ends = given["offs"].tolist()
        parts = [x[start:end] @ matrix for start, end, matrix in zip([0, *ends], ends, weight, strict=False)]
        return torch.cat([*parts, x.new_zeros((len(x) - ends[-1], weight.shape[2]))])


@contextlib.contextmanager
def plain_kernels():
    """Let a model compute with the kernels that have hooks and gradients, and in float64."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # it computes the same by operations without a gradient
    try:
        with _Groups():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


NETWORKS = tuple(map(_of_packed, (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)))
_NETWORKS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
HANDLERS: dict[Any, Callable[..., Any]] = {
    torch.autograd.grad: gradient,
    F.gaussian_nll_loss: gaussian_nll,
    F.ctc_loss: ctc,
    torch.ctc_loss: ctc,
    torch.linspace: linspace,
    torch.diag: diag,
    torch.Tensor.diag: diag,
    torch.take_along_dim: take_along,
    torch.Tensor.take_along_dim: take_along,
    torch.diagonal: diagonal,
    torch.Tensor.diagonal: diagonal,
    _internals.grouped_matmul(): grouped_matmul,
    **dict(zip(_internals.packing(), (pack, unpack), strict=True)),
    **{getattr(torch, name): functools.partial(recurrent, name) for name in _NETWORKS},
}


def _recurrent_shapes(x, hx, bidirectional):
    width = hx[0].shape[-1] * (1 + bidirectional)
    return [x.new_empty((*x.shape[:2], width)), *[torch.empty_like(state) for state in hx]]


def _diagonal_shape(x, offset, dim1, dim2):
    rows, columns = x.shape[dim1], x.shape[dim2]
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    others = [size for axis, size in enumerate(x.shape) if axis not in (dim1 % x.ndim, dim2 % x.ndim)]
    return x.new_empty((*others, count))


def _pack_shapes(x, lengths):
    most = x.shape[0] if isinstance(x.shape[0], int) else None
    longest = torch.library.get_ctx().new_dynamic_size(min=1, max=most)
    return torch.empty_like(x), lengths.new_empty((longest,))


def _unpack_shapes(data, padding_value, total):
    return data.new_empty((total, *data.shape[1:])), torch.empty((data.shape[1],), dtype=torch.int64)


_library = torch.library.Library("multiop", "FRAGMENT")
_SCHEMAS = {
    **{
        f"{name}.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, "
        "bool train, bool bidirectional, bool batch_first) -> Tensor[]": lambda x, hx, *options: _recurrent_shapes(
            x, hx, options[-2]
        )
        for name in _NETWORKS
    },
    "linspace(Scalar start, Scalar end, SymInt steps, ScalarType dtype) -> Tensor": lambda start, end, steps, dtype: (
        torch.empty((steps,), dtype=dtype)
    ),
    "diagonal(Tensor self, SymInt offset, int dim1, int dim2) -> Tensor": _diagonal_shape,
    "fresh(Tensor x) -> Tensor": torch.empty_like,
    "pack(Tensor x, Tensor lengths) -> (Tensor, Tensor)": _pack_shapes,
    "packed(str kind, Tensor x, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
    "bool bidirectional) -> Tensor[]": lambda kind, x, hx, *options: _recurrent_shapes(x, hx, options[-1]),
    "unpack(Tensor data, float padding_value, SymInt total) -> (Tensor, Tensor)": _unpack_shapes,
    "gradient(Tensor y, Tensor? cotangent, Tensor[] xs) -> Tensor[]": lambda y, cotangent, xs: list(
        map(torch.empty_like, xs)
    ),
    "grouped_matmul(Tensor x, Tensor weight, Tensor ends) -> Tensor": lambda x, weight, ends: x.new_empty(
        (x.shape[0], weight.shape[2])
    ),
    "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank) "
    "-> Tensor": lambda log_probs, *_: log_probs.new_empty((log_probs.shape[1],)),
}
for _schema, _shape in _SCHEMAS.items():
    _name = _schema.partition("(")[0]
    _library.define(_schema)
    _library.impl(_name, torch.library.fallthrough_kernel, "Autograd")
    torch.library.register_fake(f"multiop::{_name}", _shape, lib=_library)
torch.library.register_vmap("multiop::gradient", _mapped_gradient, lib=_library)
torch.library.register_vmap(
    "multiop::fresh", lambda info, in_dims, x: (torch.ops.multiop.fresh(x), in_dims[0]), lib=_library
)
