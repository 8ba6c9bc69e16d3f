"""Custom gradients.

The function runs once, on aliases of the primals, with autograd on: autograd itself links what the rule closes over to
the primals. One autograd Function then puts the detached outputs on the graph, with the rule as their gradient. Higher
orders differentiate the rule through its residuals, without a second run. The rule runs as the user wrote it, so it can
read and write what it closes over, like any Python function.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import itertools
import threading
import types

import optree
import torch
from torch.autograd.function import Function
from torch.overrides import TorchFunctionMode

from multiop import errors

from .. import _internals
from .._internals import (
    all_levels,
    base_of,
    functorch,
    is_forward_mode_on,
    is_transformed,
    is_view,
    keeps_graph,
    metadata_of,
    node_of,
    number_of,
    saved_tensors_hooks,
    sequence_number,
    tracing_state,
    unpack_dual,
)
from ..conversion import is_dtensor
from . import _effects, _linear, _rules

_times = itertools.count(1)
replay = threading.local()  # .start: leaves that are retired before it are live again


def stop_gradient(x):
    return x.detach()


_AS_IT_IS = contextlib.nullcontext()  # a tenth of the time of a mode that is on already


def recording():
    """Return a context in which autograd records; enable_grad alone has no effect in inference mode."""
    if torch.is_inference_mode_enabled():
        return torch.inference_mode(False)
    return _AS_IT_IS if torch.is_grad_enabled() else torch.enable_grad()


def leaf(x):
    """Return an alias of `x` to differentiate with respect to; it is on the caller's graph if `x` is."""
    if x.is_inference():  # autograd accepts only a copy
        with torch.inference_mode(False):
            return x.clone().requires_grad_()
    if x.requires_grad and torch.is_grad_enabled():
        return x.view_as(x)
    # torch.jit.trace would record that `x` is detached, and it may be differentiated when the record runs
    return (x.detach() if tracing_state() is None else x.clone()).requires_grad_()


def retire(leaves):
    """Mark leaves whose function has returned: from now on, only its pullback differentiates with respect to them."""
    time = next(_times)
    for x in leaves:
        x.retired_at = time


@contextlib.contextmanager
def replaying():
    """Make the leaves live that are retired by now, while a function runs again as it did when they were."""
    before = getattr(replay, "start", 0)
    replay.start = next(_times)
    try:
        yield
    finally:
        replay.start = before


def is_live(x):
    """Say whether code outside may still differentiate with respect to `x`, a leaf of the graph."""
    return x.requires_grad and getattr(x, "retired_at", -1) < getattr(replay, "start", 0)


_PLAIN = {torch.Tensor, torch.nn.Parameter}


def custom_call(call, primals):
    if torch.compiler.is_dynamo_compiling():
        return _traced_call(call, primals)
    is_recorded = (
        tracing_state() is not None
    )  # by torch.jit.trace, which runs what is called here later on other tensors
    if is_recorded and is_transformed():
        raise errors.UnsupportedError(
            f"torch.jit.trace cannot record {call.name}, which has a gradient of its own, inside vmap, forward mode or "
            "another transform of torch.func; compile it with multiop.jit or torch.compile: "
            "https://docs.pytorch.org/docs/stable/jit.html"
        )
    if is_recorded or is_transformed():
        return _lifted_call(call, primals, _Recorded if is_recorded else _Lifted)
    if not torch.is_grad_enabled():
        return call.forward(primals)[0]
    call.spread = ()
    if not _PLAIN.issuperset(map(type, primals)):
        call.spread = [k for k, x in enumerate(primals) if type(x) is not torch.Tensor and is_dtensor(x)]
    start = sequence_number()
    aliases, seen, is_tracked = [], set(), False
    for x in primals:
        if x.requires_grad:
            x, is_tracked = alias(x), True
            seen.add(x.grad_fn)
        aliases.append(x)
    outputs, rule = call.forward(aliases)
    if not is_tracked and True not in [y.requires_grad for y in outputs]:
        return outputs
    box = [rule]
    del rule  # only the box may hold it
    has_hooks = saved_tensors_hooks(True) is not None
    residuals, places = (
        _rules.closed_over_places(box, outputs) if has_hooks else (_rules.closed_over_tensors(box, outputs), None)
    )
    variables, reaches_beyond = [], False
    if _is_beyond((*outputs, *residuals), seen, start):
        if found := _find_foreign(call, outputs, seen, start):
            variables = _variables(call, found)
        reaches_beyond = _is_beyond(residuals, seen, start)
    returned = find_returned(residuals, outputs, (*aliases, *variables))
    if reaches_beyond and returned:
        reaches_beyond = _is_beyond([x for i, x in enumerate(residuals) if i not in returned], seen, start)
    plan = call, box, places, reaches_beyond, outputs, residuals, returned, variables
    # without PyTorch's own six calls that ask for a transform, of which none runs
    return super(Function, Override).apply(plan, *map(functorch.unwrap_if_dead, (*primals, *variables)))


def find_returned(residuals, outputs, inputs):
    """Return which residuals are outputs: index -> index. An input that is returned stays an input."""
    if set(map(id, outputs)).isdisjoint(map(id, residuals)):  # most rules
        return {}
    given = set(map(id, inputs))
    numbers = {id(y): k for k, y in reversed([*enumerate(outputs)]) if y.is_floating_point() or y.is_complex()}
    return {i: numbers[id(x)] for i, x in enumerate(residuals) if id(x) in numbers and id(x) not in given}


def alias(x):
    """Return `x` with its own node on the graph, where the walk from the outputs stops."""
    return x.view_as(x) if x.layout is torch.strided else x.clone()


def _detach_view(y, inputs):
    """Return a detached view; if it shares memory with an input it stays a view, so that autograd guards it."""
    if any(base_of(y) is (x if base_of(x) is None else base_of(x)) for x in inputs):
        return y.view_as(y)
    return y.detach()


def are_inexact(outputs):
    return [y.is_floating_point() or y.is_complex() for y in outputs]


class Override(Function):
    """The outputs, with the rule for their gradient.

    `reaches_beyond` tells a walk over the graph that the rule depends on a differentiable value that is not a primal.
    """

    @staticmethod
    def forward(ctx, plan, *inputs):
        ctx.call, ctx.box, places, ctx.reaches_beyond, outputs, residuals, returned, variables = plan
        inexact, results = [], []
        for y in outputs:
            inexact.append(y.is_floating_point() or y.is_complex())
            results.append(_detach_view(y, inputs) if is_view(y) else y.detach())
        results = tuple(results)
        save(ctx, places, results, residuals, returned, variables)
        ctx.inexact = inexact if False in inexact else None  # few objects stay, for Python's garbage collector to visit
        if ctx.inexact is not None:
            ctx.mark_non_differentiable(*[y for y, known in zip(results, inexact, strict=True) if not known])
        return results

    @staticmethod
    def backward(ctx, *upstreams):
        saved = ctx.saved_tensors  # raises if one of them was changed in place or freed
        if ctx.inexact is not None:
            upstreams = [u if inexact else None for u, inexact in zip(upstreams, ctx.inexact, strict=True)]
        if ctx.drained:
            detached = {i: saved[i].detach() for i in ctx.returned}  # the rule must not hold its own node
            _rules.refill(ctx.drained, [detached.get(i, x) for i, x in enumerate(saved)])
            ctx.stand_ins = [*ctx.stand_ins, *detached.items()]
            ctx.drained = ()
        box, known, stand_ins = ctx.box, ctx.known, ctx.stand_ins
        if saved and not keeps_graph():  # autograd frees what it saved, and so does the rule
            ctx.box = ctx.known = ctx.stand_ins = None
        backward = _effects.refused_in(ctx.call.backward)
        if ctx.returned and torch.is_grad_enabled():  # of what the rule returns, derivatives may be taken
            pairs = [(x, saved[i]) for i, x in stand_ins or [(i, known[i]) for i in ctx.returned]]
            with vars(ctx).setdefault("lock", threading.RLock()), _rules.with_outputs(box, pairs) as rule:
                grads, variable_grads = backward(rule, upstreams, list(saved[ctx.n_residuals :]))
        else:
            grads, variable_grads = backward(box[0], upstreams, list(saved[ctx.n_residuals :]))
        for k in ctx.call.spread:
            if grads[k] is not None and not is_dtensor(grads[k]):
                raise errors.GradientRuleError(
                    f"the gradient function of {ctx.call.name} returned a plain tensor for argument {k}, a DTensor: it "
                    f"is not said how that is spread over the devices"
                )
        return (None, *grads, *variable_grads)


def save(ctx, places, results, residuals, returned, variables):
    """Save what the rule closes over; an output, as the output of this node, whose rule is thus its derivative."""
    kept = [*residuals, *variables]
    for i, k in returned.items():
        kept[i] = results[k]
    ctx.save_for_backward(*kept)
    # the rule also holds its residuals; with saved-tensor hooks it gives them up until its first run
    ctx.drained, ctx.known = ((), residuals) if places is None else _rules.drain(places, residuals)
    ctx.n_residuals, ctx.returned, ctx.stand_ins = len(residuals), returned, None
    if places is not None:
        held = {id(x) for x in ctx.known}
        ctx.stand_ins = [(i, residuals[i]) for i in returned if id(residuals[i]) in held]


# functorch, and forward mode


def _lifted_call(call, primals, kind):
    if _internals.is_lifted():
        _internals.refuse_inference_mode()
    start = sequence_number()
    aliases = [alias(x) for x in primals]
    outputs, rule = call.forward(aliases)
    found = _find_foreign_at_every_level(call, outputs, aliases, start) if torch.is_grad_enabled() else []
    variables = _variables(call, found) if found else []
    if _internals.is_forward_mode():
        variables += _with_tangents(call, primals, variables)
    box = [rule]
    del rule
    residuals, places = _rules.closed_over_places(box, outputs, kind is _Recorded)
    returned = find_returned(residuals, outputs, (*aliases, *variables))
    plan = _Plan(call, box, places, len(primals), len(variables), outputs, returned)
    return list(kind.apply(plan, *primals, *variables, *outputs, *residuals))


class _Plan:
    """The layout of the inputs of `_Lifted`: primals, variables, outputs and residuals, in this order."""

    def __init__(self, call, box, places, n_primals, n_variables, outputs, returned):
        self.call, self.box, self.places, self.returned = call, box, places, returned
        for place in places:
            place.is_carried = place.is_carried or not returned.keys().isdisjoint(place.numbers)
        self.inexact = are_inexact(outputs)
        self.specs = [(y.shape, y.dtype, y.device) for y in outputs]
        self.n_primals, self.n_variables = n_primals, n_variables
        self.lock = threading.RLock()
        self.outputs_from = n_primals + n_variables
        self.residuals_from = self.outputs_from + len(outputs)

    def __repr__(self):  # torch.jit.trace compares the text of two records
        return self.call.name

    def grads(self, saved, upstreams, call=None):
        """Run the rule; return a gradient per primal and per variable."""
        call = call or self.call
        upstreams = [u if inexact else None for u, inexact in zip(upstreams, self.inexact, strict=True)]
        saved = [functorch.unwrap_if_dead(x) for x in saved]  # a transform inside the rule may have ended
        with _rules.with_tensors(self.box, self.places, saved[self.n_variables :]) as rule:
            backward = _effects.refused_in(call.backward)
            grads, variable_grads = backward(rule, upstreams, list(saved[: self.n_variables]))
        return [*grads, *variable_grads]


class _Lifted(Function):
    """`Override` for functorch and forward mode: every tensor is an input, so that each level sees its own."""

    generate_vmap_rule = True

    @staticmethod
    def forward(plan, *tensors):
        outputs = tensors[plan.outputs_from : plan.residuals_from]
        # for a view, forward mode would require a tangent that is also a view
        return tuple([y.clone() if is_view(y) else y.detach() for y in outputs])

    @staticmethod
    def setup_context(ctx, inputs, output):
        plan, *tensors = inputs
        ctx.plan = plan
        residuals = tensors[plan.residuals_from :]
        for i, k in plan.returned.items():
            residuals[i] = output[k]
        kept = tensors[plan.n_primals : plan.outputs_from] + residuals
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)
        if not all(plan.inexact):
            ctx.mark_non_differentiable(*[y for y, inexact in zip(output, plan.inexact, strict=True) if not inexact])

    @staticmethod
    def backward(ctx, *upstreams):
        grads = ctx.plan.grads(ctx.saved_tensors, upstreams)
        rest = len(ctx.plan.specs) + len(ctx.saved_tensors) - ctx.plan.n_variables
        return (None, *grads, *[None] * rest)

    @staticmethod
    def jvp(ctx, _, *tangents):
        plan = ctx.plan
        places = [k for k, inexact in enumerate(plan.inexact) if inexact]

        def rule(*upstreams):
            every = [None] * len(plan.specs)
            for k, upstream in zip(places, upstreams, strict=True):
                every[k] = upstream
            return plan.grads(saved, every)

        zeros = [torch.zeros(plan.specs[k][0], dtype=plan.specs[k][1], device=plan.specs[k][2]) for k in places]
        with _internals.forward_mode_enabled(True):  # autograd turned it off, also for outer levels
            saved = [_internals.without_tangent(x) for x in ctx.saved_tensors]
            with _rules.refuse_stored_upstream(plan.places, plan.call.rule_name):
                found = _linear.transpose(rule, plan.call.rule_name, zeros, tangents[: plan.outputs_from])
        out_tangents = [None] * len(plan.specs)
        for k, tangent in zip(places, found, strict=True):
            out_tangents[k] = tangent
        return tuple(out_tangents)


class _Recorded(_Lifted):
    """`_Lifted` for torch.jit.trace: a record runs with other inputs, of other sizes, and in any thread."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        _Lifted.setup_context(ctx, inputs, output)
        ctx.call = ctx.plan.call.with_primals(inputs[1 : 1 + ctx.plan.n_primals])

    @staticmethod
    def backward(ctx, *upstreams):
        with ctx.plan.lock:
            grads = ctx.plan.grads(ctx.saved_tensors, upstreams, ctx.call)
        rest = len(ctx.plan.specs) + len(ctx.saved_tensors) - ctx.plan.n_variables
        return (None, *grads, *[None] * rest)


# torch.compile


def _traced_call(call, primals):
    """Run the call under Dynamo, which captures what the rule closes over; there is no second order."""
    levels = _internals.count_levels()
    if _internals.VERSION < (2, 11) and levels:
        _internals.refuse_break()  # there it is one anyway
    if is_forward_mode_on() or levels > 1 or _internals.traces_autograd():
        return _untraced_call(call, primals)
    # aliases: Dynamo refuses the same tensor twice, and only knows `requires_grad` of tensors that it computed
    aliases = [x.view_as(x) for x in primals]
    if levels == 1 and any(functorch._unwrap_for_grad(x, 1).requires_grad for x in aliases):
        return _untraced_call(call, primals)  # a single torch.func.grad is right, but not with autograd around it
    outputs, rule = call.forward([x.detach() for x in aliases])
    if not torch.is_grad_enabled():
        return outputs
    dependent = list(outputs)
    if levels == 1 and not call.is_op:  # autograd around it may differentiate what only the rule closes over
        dependent += [g for g in call.backward(rule, [torch.zeros_like(y) for y in outputs])[0] if g is not None]
        dependent += [functorch._unwrap_for_grad(y, 1) for y in dependent]
    if any(y.requires_grad for y in dependent):  # the primals were detached, so they depend on something else
        return _untraced_call(call, primals)
    if not any(x.requires_grad for x in aliases):
        return outputs
    inexact = are_inexact(outputs)

    def backward(upstreams):
        upstreams = [u if known else None for u, known in zip(upstreams, inexact, strict=True)]
        return call.backward(rule, upstreams)[0]

    return list(_Traced.apply(backward, outputs, *aliases))


def _untraced_call(call, primals):
    _internals.refuse_break()
    from ._untraced import run  # imported only when torch.compile gets here: torch._dynamo takes a second to import

    return run(custom_call, call, primals)


class _Traced(Function):
    """`Override` without the parts that Dynamo cannot trace; Dynamo refuses a Function that defines `jvp`."""

    @staticmethod
    def forward(ctx, backward, outputs, *primals):
        ctx.backward = backward
        inexact = are_inexact(outputs)
        results = tuple([y.detach() for y in outputs])
        if not all(inexact):
            ctx.mark_non_differentiable(*[y for y, known in zip(results, inexact, strict=True) if not known])
        return results

    @staticmethod
    def backward(ctx, *upstreams):
        return (None, None, *ctx.backward(upstreams))


# What a function closes over


def hidden_edges(node):
    """Return edges of the graph to what the rule of a node depends on and no edge leads to; `None` if it is unknown."""
    if (program := getattr(node, "program", None)) is not None:  # of `jit`
        tensors = program.beyond
    elif not hasattr(node, "reaches_beyond"):
        return []
    elif (box := getattr(node, "box", None)) is None:  # the rule has run, and is freed
        return None if node.reaches_beyond else []
    elif box[0] is None:
        return None
    else:
        known = set(map(id, node.known))
        if not node.reaches_beyond and _rules.reads_only(box[0], known):
            return []
        tensors = [x for _, x in _rules.reachable(box[0]) if node.reaches_beyond or id(x) not in known]
    return [edge_of(x) for x in tensors if x.requires_grad]


def edge_of(x):
    """Return the edge of the graph that leads to `x`: a node, and which of its outputs."""
    return torch.autograd.graph.get_gradient_edge(x)[:2]


def _variables(call, found):
    """Return the closed-over tensors `found` if the rule takes variables; otherwise raise."""
    if not call.wants_variables():
        raise closed_over_fault(call, found)
    return list({id(x): x for _, _, x in found}.values())


def _find_foreign_at_every_level(call, outputs, aliases, start):
    seen = {y.grad_fn for alias in aliases for y in all_levels(alias)}
    by_level = itertools.zip_longest(*[reversed(all_levels(y)) for y in outputs])
    found = [entry for ys in by_level for entry in _find_foreign(call, [y for y in ys if y is not None], seen, start)]
    return sorted(found, key=lambda entry: entry[0])


def _is_beyond(xs, seen, start):
    """Say whether the graph from `xs` back to `seen` may contain nodes older than `start`, or leaves."""
    passed = {None, *seen}
    nodes = []
    for x in xs:
        if x.requires_grad:
            if x.grad_fn is not None:
                nodes.append(x.grad_fn)
            elif is_live(x):
                return True
    for node in nodes:  # the list grows during the loop
        if node in passed:
            continue
        variable = getattr(node, "variable", None)
        if number_of(node) < start or (variable is not None and is_live(variable)):
            return True
        passed.add(node)
        nodes.extend(map(node_of, node.next_functions))
    return False


def _find_foreign(call, outputs, seen, start):
    """Walk the graph from `outputs` back to `seen`; return `(use, name, tensor)` for the rest, by first use."""
    found = {}  # leaf, or edge (node, output) of a closed-over tensor -> its first use
    names = direct = None
    end = sequence_number()
    stack = []
    for k, y in enumerate(outputs):
        if y.grad_fn is not None:
            stack.append((y.grad_fn, y.output_nr, (-1, k)))
        elif y.requires_grad and is_live(y):
            found[y] = (-1, k)
    while stack:
        node, output, use = stack.pop()
        if node in seen:
            continue
        key = getattr(node, "variable", None)
        number = number_of(node)
        if key is None:
            names, direct = (names_of(call), _named_edges(call)) if names is None else (names, direct)
            # older than the call, or from another thread, which has its own numbers: a closed-over tensor
            if number < start or number >= end or (0 <= use[0] < number) or (node, output) in direct:
                key = (node, output) if (node, output) in names else None
                if key is None and call.wants_variables():
                    raise _out_of_reach_fault(call, node, output)
        elif not is_live(key):
            continue
        if key is not None:
            found[key] = min(found.get(key, use), use)
            continue
        seen.add(node)
        for k, (parent, parent_output) in enumerate(node.next_functions):
            if parent is not None and parent not in seen:
                stack.append((parent, parent_output, (number, k)))
    if not found:
        return []
    names = names_of(call) if names is None else names
    return [(found[key], *names.get(key, ("a tensor", key))) for key in sorted(found, key=found.get)]


def _named_edges(call):
    """Return the edges of the outer tensors that the function's code reads by name and never assigns."""
    if not isinstance(call.f, types.FunctionType):
        return set()
    assigned = _assigned_names(call.f.__code__)
    variables = [x for name, x in _rules.variables_of(call.f) if name not in assigned and isinstance(x, torch.Tensor)]
    return {(x.grad_fn, x.output_nr) for y in variables for x in all_levels(y)}


@functools.lru_cache(maxsize=512)
def _assigned_names(code):
    """Return the outer names that `code` assigns to."""
    inner = [_assigned_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    stores = ("STORE_DEREF", "STORE_GLOBAL")
    return frozenset(step.argval for step in dis.get_instructions(code) if step.opname in stores).union(*inner)


def names_of(call):
    """Return the name and tensor of what the function can reach, keyed by leaf or by graph edge `(node, output)`."""
    names = {}
    for name, tensor in _rules.reachable(call.f):
        for x in all_levels(tensor):
            names.setdefault(x if x.grad_fn is None else (x.grad_fn, x.output_nr), (name, x))
    return names


def _out_of_reach_fault(call, node, output):
    shape = tuple(metadata_of(node)[output].shape)
    return errors.ClosedOverError(
        f"{call.name} closes over a differentiable value of shape {shape} (computed by "
        f"{node.name().removesuffix('0').removesuffix('Backward')}) that is out of reach, so it cannot be among the "
        f"variables; pass it as an argument, or close over it by name"
    )


def closed_over_fault(call, found):
    names = ", ".join(f"{name} ({_kind(x)} of shape {tuple(x.shape)})" for _, name, x in found)
    return errors.ClosedOverError(
        f"{call.name} closes over differentiable values whose gradient would be dropped: {names}; pass them as "
        f"arguments, give the gradient function a variables parameter, or take op_stop_gradient of them"
    )


def _kind(x):
    return "a Parameter" if isinstance(x, torch.nn.Parameter) else "a tensor"


def _with_tangents(call, primals, known):
    """Return what `call` closes over that carries a tangent into its outputs: forward mode has no graph to walk."""
    reached = [(name, x) for name, x in _rules.reachable(call.f) if _has_tangent(x) and not any(x is y for y in known)]
    if not reached:
        return []
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices), _Uses() as uses:
        outputs, _ = call.forward([x.detach() for x in primals])
    if not any(_has_tangent(y) for y in outputs):
        return []
    reached = sorted([(uses.first.get(id(x), len(uses.first)), name, x) for name, x in reached], key=lambda use: use[0])
    return _variables(call, reached)


class _Uses(TorchFunctionMode):
    """Note which tensors are used, and in which order."""

    def __init__(self):
        super().__init__()
        self.first = {}  # id of a tensor that outlives the block -> its position by first use

    def __torch_function__(self, func, types, args=(), kwargs=None):
        for x in optree.tree_leaves((args, kwargs or {})):
            if isinstance(x, torch.Tensor):
                self.first.setdefault(id(x), len(self.first))
        return func(*args, **(kwargs or {}))


def _has_tangent(x):
    return any(
        not functorch.is_batchedtensor(level) and unpack_dual(level).tangent is not None for level in all_levels(x)
    )
