"""What kernels are made of: their own first derivative in reverse mode, the op's meaning for any other, and the looks.

`run_native`, `run_fused` and `run_recorded` choose by the mode alone: it is the same on a GPU, under autocast and under
a profiler. A look at values takes place on the CPU alone.
"""

from __future__ import annotations

import functools
import math
import threading

import torch
from torch.autograd.function import Function
from torch.compiler import is_dynamo_compiling

from ._internals import (
    apply_directly,
    are_transforms_active,
    dispatch_depth,
    forward_mode,
    give_once,
    grads_of,
    hook_upstream,
    is_batch_of_gradients,
    is_forward_mode_on,
    is_lifted,
    is_traced_early,
    is_tracked,
    is_without_memory,
    keeps_graph,
    mode_kinds,
    mode_of_kind,
    modes_early,
    requires_grad,
    running_node,
    saved_tensors_hooks,
    tracing_state,
)
from .conversion import LONG as LONG

FEW = 2048  # entries


def run_native(native, operation, saved, formula, *xs, has_batches=True):
    """Return `native(*xs)` with PyTorch's own gradients; where they are recorded, those of `formula(*xs)`.

    A step pays for one hook. It reads what the node has saved, as autograd's own hooks give it.

    Args:
        native: Computes the result, in steps or by one operation of `xs`, in their order.
        operation: How the name of that operation's node begins. Steps have derivatives of every order.
        saved: The node's attributes that are `xs`.
        formula: Computes the same in steps, for derivatives that are differentiated again, in either mode.
        xs: Tensors or `None`.
        has_batches: Whether the operation's own gradient can be mapped over a batch of upstreams.

    Returns:
        The result; `None` where a hook may not read what was saved, or does not know which node runs: `run_fused` or
        `run_recorded` then stands.
    """
    if is_dynamo_compiling():  # it has first derivatives alone
        return native(*xs)
    if are_transforms_active() or forward_mode._current_level >= 0:
        return formula(*xs) if is_differentiated(xs) else native(*xs)
    if running_node is None or ((hooks := saved_tensors_hooks(False)) is not None and give_once(hooks)):
        return None
    y = native(*xs)
    if (node := y.grad_fn) is not None and node.name().startswith(operation):
        hook_upstream(y, node, functools.partial(watch, [(saved, formula, has_batches)]))
    return y


def watch(waiting, upstream):
    """Let a running node's gradients be those of a formula, see `add_formula`, from the first that may need it.

    Until then this hook of its result looks at the mode. It takes a fourth of the time of the node's own hooks.
    """
    is_batch = upstream is not None and is_batch_of_gradients(upstream)
    if is_batch or torch.is_grad_enabled() or are_transforms_active():
        with _adding:
            if waiting:
                add_formula(running_node(), *waiting.pop())


_adding = threading.Lock()


def add_formula(node, saved, formula, has_batches):
    """Let gradients of a node of PyTorch's be those of `formula` where they are recorded, or not its to map."""
    batches = {}  # thread -> a batch of upstreams, and the operands

    def before(upstreams):
        batches.pop(threading.get_ident(), None)  # of a pass that failed
        upstream, *others = upstreams
        if upstream is None or not (are_transforms_active() or is_batch_of_gradients(upstream)):
            return None
        batches[threading.get_ident()] = upstream, operands_of(running_node(), saved)
        return torch.zeros(upstream.shape, dtype=upstream.dtype, device=upstream.device), *others

    def after(grads, upstreams):
        is_recording = torch.is_grad_enabled()
        if not (is_recording or batches):
            return None
        upstream, xs = batches.pop(threading.get_ident(), None) or (upstreams[0], operands_of(running_node(), saved))
        wanted = [k for k, grad in enumerate(grads) if grad is not None]
        found = grads_of_formula(formula, xs, wanted, [upstream], is_recording)
        return tuple([found.get(k) for k in range(len(grads))])

    if not has_batches:
        node.register_prehook(before)
    node.register_hook(after)


def operands_of(node, saved):
    return [getattr(node, name) for name in saved]


def grads_of_formula(formula, xs, wanted, upstreams, is_recording):
    """Return the gradients of `formula(*xs)` for those of `xs` at the places `wanted`, by place."""
    with torch.enable_grad():
        inputs = [x if x is None else x.view_as(x) for x in xs]  # two of them may be one tensor
        ys = formula(*inputs)
    ys = ys if isinstance(ys, tuple) else (ys,)
    used = [k for k, upstream in enumerate(upstreams) if upstream is not None and ys[k].requires_grad]
    ends = tuple([ys[k].type(upstreams[k].dtype) for k in used]), tuple([upstreams[k] for k in used])
    found = grads_of(*ends, is_recording, is_recording, tuple([inputs[k] for k in wanted]))
    return dict(zip(wanted, found, strict=True))


def run_fused(kernel, pull, formula, *xs, native=None):
    """Return the result of `kernel(*xs)`, with the gradients `pull(upstream, *xs, *residuals)`, one for each.

    Args:
        kernel: Returns the result, or a list of it and the residuals.
        pull: Takes a tuple of upstreams in the place of one where the result is a tuple.
        formula: Computes the same in steps, for derivatives that are differentiated again, in either mode.
        xs: Tensors or `None`.
        native: Computes the same where autograd does not run, or `torch.compile` traces: PyTorch's public function.
    """
    if is_dynamo_compiling():  # it has first derivatives alone, and fuses formulas
        return (native or formula)(*xs)
    if tracing_state() is not None:  # torch.jit.trace keeps operations, and no results of theirs
        return formula(*xs)
    if forward_mode._current_level >= 0 or are_transforms_active():
        if is_differentiated(xs):
            return formula(*xs)
        if native is not None:
            return native(*xs)
    if torch.is_grad_enabled() and True in [x is not None and x.requires_grad for x in xs]:
        return apply_directly(_Fused, (kernel, pull, formula), *xs)
    result = kernel(*xs)
    return result[0] if isinstance(result, list) else result


def are_values(x1, x2):
    """Say whether `x1` and `x2` are floats of 32 or 64 bits, which nothing differentiates: a native value is enough."""
    are_tensors = isinstance(x1, torch.Tensor) and isinstance(x2, torch.Tensor)
    return are_tensors and (dtype := x1.dtype) is x2.dtype and dtype in LONG and not is_tracked(x1, x2)


def keeping(fn):
    """Return `fn` as a kernel that keeps its result for the way back."""

    def kernel(*xs):
        y = fn(*xs)
        return [y, y]

    return kernel


def run_recorded(kernel, formula, *xs):
    """Return `kernel(*xs)`, whose first derivative is its own, and others those of `formula`."""
    if is_dynamo_compiling():  # Dynamo has first derivatives alone
        return kernel(*xs)
    if tracing_state() is not None:
        return formula(*xs)
    if forward_mode._current_level >= 0 or are_transforms_active():
        return formula(*xs) if is_differentiated(xs) else kernel(*xs)
    if True not in [x.requires_grad for x in xs] or not torch.is_grad_enabled():
        return kernel(*xs)
    with torch.enable_grad():
        inputs = [_Root.apply(torch.empty(0, requires_grad=True), x) if x.requires_grad else x for x in xs]
        y = kernel(*inputs)
    ends = [torch.autograd.graph.get_gradient_edge(x) for x in inputs if x.requires_grad]

    del inputs  # what the kernel saved keeps them, where autograd's hooks see it

    def pull(upstream, *xs):
        grads = iter(torch.autograd.grad((y,), ends, (upstream,), retain_graph=keeps_graph()))
        return [next(grads) if x.requires_grad else None for x in xs]

    return with_formula(y, pull, formula, *xs)


class _Root(Function):
    """The start of a graph of its own, which does not keep the tensor that it starts from."""

    @staticmethod
    def forward(ctx, root, x):
        return x.detach()

    @staticmethod
    def backward(ctx, upstream):
        return None, None


def is_differentiated(xs):
    """Say whether a transform of torch.func, forward mode, or autograd around a vmap may differentiate `xs`."""
    return is_lifted() or (torch.is_grad_enabled() and any(x is not None and requires_grad(x) for x in xs))


def with_formula(y, pull, formula, *xs, residuals=()):
    """Return `y`, the result of a kernel for `xs`, with the gradients `pull(upstream, *xs, *residuals)`, one for each.

    Gradients that are differentiated again are those of `formula(*xs)`, which computes the same. Where `y` is a tuple
    of results, `pull` takes an upstream for each, `None` for one that is not used.
    """
    if tracing_state() is not None:
        return formula(*xs)
    if not torch.is_grad_enabled() or True not in [x is not None and x.requires_grad for x in xs]:
        return y

    def kernel(*_):
        return [tuple([each.detach() for each in y]) if isinstance(y, tuple) else y.detach(), *residuals]

    return _Fused.apply((kernel, pull, formula), *xs)


def give_memory(upstream):
    """Return an upstream that a kernel may read and write: PyTorch may pass zeros without memory."""
    return upstream if upstream is None or not is_without_memory(upstream) else upstream.clone()


class _Fused(Function):
    @staticmethod
    def forward(ctx, parts, *xs):
        kernel, *ctx.parts = parts
        result = kernel(*xs)
        y, *residuals = result if isinstance(result, list) else [result]
        ctx.save_for_backward(*xs, *residuals)
        ctx.is_kernel = True  # not a user's rule
        if isinstance(y, tuple):
            ctx.set_materialize_grads(False)
        return y

    @staticmethod
    def backward(ctx, *upstreams):
        (pull, formula), needed = ctx.parts, ctx.needs_input_grad[1:]
        is_recording = torch.is_grad_enabled()
        # for a batch of gradients a kernel may be wrong
        is_batch = are_transforms_active() or True in [u is not None and is_batch_of_gradients(u) for u in upstreams]
        if not (is_recording or is_batch):
            grads = pull(*map(give_memory, upstreams), *ctx.saved_tensors)
            return None, *[grad if wanted else None for grad, wanted in zip(grads, needed, strict=True)]
        wanted = [k for k, is_needed in enumerate(needed) if is_needed]
        grads = grads_of_formula(formula, ctx.saved_tensors[: len(needed)], wanted, upstreams, is_recording)
        return None, *[grads.get(k) for k in range(len(needed))]


# looks

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_finite(x):
    """Say whether the values of `x`, floats, can be looked at, and all are finite."""
    # a look at the sum, which is not finite if an entry is not, takes a few percent of both ways; no GPU is waited for
    return is_plain() and is_on_host(x) and math.isfinite((x.detach() if x.requires_grad else x).sum().item())


def is_seen_without_nan(x):
    """Say whether the values of `x`, floats, can be looked at, and none is NaN, as far as that is cheap.

    For few entries, a comparison with itself takes a third of the time of a sum, which infinity spoils, too.
    """
    if x.numel() >= FEW:
        return is_finite(x)
    return is_plain() and is_on_host(x) and x.equal(x)


def is_readable(x):
    """Say whether `x` has values, and they can be looked at."""
    return is_plain() and is_on_host(x) and x.numel() > 0


def is_on_host(x):
    """Say whether `x` is a tensor of PyTorch itself, not of a subclass, on the CPU."""
    return type(x) in _PLAIN and x.is_cpu


def _is_imagined():
    """Say whether operations are recorded, or tensors have no values: under a profiler's mode they have."""
    if not dispatch_depth():
        return modes_early[0] is not None and is_traced_early()
    return mode_kinds is None or any(map(mode_of_kind, (mode_kinds.FAKE, mode_kinds.PROXY, mode_kinds.FUNCTIONAL)))


def is_plain():
    """Say whether operations run as they are called: nothing traces or transforms them."""
    return not (
        is_dynamo_compiling()
        or are_transforms_active()
        or _is_imagined()
        or tracing_state() is not None
        or is_forward_mode_on()
    )
