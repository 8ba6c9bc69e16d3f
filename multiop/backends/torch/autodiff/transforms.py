"""Transforms of flat functions.

Reverse mode is plain autograd, 2.5 times faster than `torch.func`, which is only used while a functorch transform or
forward mode is active. Both also differentiate what the function closes over.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import threading

import torch
import torch.utils.checkpoint
from torch.autograd.function import BackwardCFunction, Function

from multiop import errors
from multiop._rules.lru import Recent

from .._compiler import compile_as_one
from .._internals import (
    LOSES_PULLBACKS,
    are_transforms_active,
    autocast_state,
    autocast_to,
    describe_by_one_mode,
    dispatch_depth,
    empty_zeros_like,
    forward_mode,
    grads_of,
    has_saved_tensor_hooks,
    has_tangent,
    hides_levels,
    in_memory,
    is_operation,
    is_tracing,
    is_transformed,
    is_transposable,
    make_fx,
    map_along,
    out_of_graphs,
    outside_transforms,
    refuse_inference_mode,
    requires_grad,
    schema_of,
    sequence_number,
    set_grad_enabled,
    tracing_lock,
    tracing_state,
)
from ..conversion import is_dtensor, is_inexact
from . import _dynamic_sizes, _effects, _rules
from ._graph import detach_unlinked, inside, nodes_of, reach_out
from .custom_gradient import alias, leaf, recording, replaying, retire

_requires_grad_of = operator.attrgetter("requires_grad")


def vjp(fun, primals, persistent=True):
    # Dynamo cannot trace a walk over the graph
    if are_transforms_active() or forward_mode._current_level >= 0 or torch.compiler.is_dynamo_compiling():
        pullback = _Pullback(fun, list(primals))
        outputs, aux = pullback.run()
        return outputs, pullback, aux
    start = sequence_number() if inside.depth else 0
    inside.depth += 1
    try:
        leaves = []
        for x in primals if tracing_state() is None else ():
            if x.requires_grad or x.is_inference():
                break
            leaves.append(x.detach().requires_grad_())
        if len(leaves) < len(primals):
            leaves = [leaf(x) for x in (primals if start else detach_unlinked(primals))]
        if torch.is_grad_enabled() and not torch.is_inference_mode_enabled():
            outputs, aux = fun(*leaves)
        else:
            with recording():
                outputs, aux = fun(*leaves)
    finally:
        inside.depth -= 1
    retire(leaves)
    tracked = list(itertools.compress(itertools.count(), map(_requires_grad_of, outputs)))
    if start or aux or reach_out(outputs) or tracing_state() is not None:
        results = detach_unlinked([*outputs, *aux], start)
        linked = True in [y.requires_grad for y in results[: len(outputs)]]
        if linked:  # a rule may hold the pullback where its function returns the outputs: it starts at others
            outputs = [alias(y) if y.requires_grad else y for y in outputs]
    else:
        results, linked = list(map(torch.Tensor.detach, outputs)), False

    def pullback(cotangents):
        if not tracked:
            return [torch.zeros_like(x) for x in primals]
        ys, seeds = outputs, cotangents
        if len(tracked) < len(outputs):
            ys, seeds = [outputs[k] for k in tracked], [cotangents[k] for k in tracked]
        asks = requires_grad if are_transforms_active() else _requires_grad_of  # a call less for each tensor
        create_graph = torch.is_grad_enabled() and (linked or True in map(asks, seeds))
        retain_graph = persistent or linked  # otherwise each array is freed once it has been used
        grads = grads_of(tuple(ys), tuple(seeds), retain_graph, create_graph, tuple(leaves))
        if True in map(operator.is_, grads, itertools.repeat(None)):
            grads = [torch.zeros_like(x) if g is None else g for g, x in zip(grads, primals, strict=True)]
        return detach_unlinked(grads, start) if create_graph else grads

    return results[: len(outputs)], pullback, results[len(outputs) :]


def is_differentiated(x):
    """Say whether `x` is on a graph that records, or has a tangent."""
    if torch.compiler.is_dynamo_compiling():
        return None
    if x.requires_grad and torch.is_grad_enabled():
        return True
    return None if hides_levels() else (requires_grad(x) and torch.is_grad_enabled()) or has_tangent(x)


def has_native_derivatives(ys):
    """Say whether all derivatives of `ys` are PyTorch's own, so that second derivatives are symmetric.

    Reverse mode then suffices, and is several times faster than `torch.func.jvp`, which runs decompositions in Python.
    """
    if is_transformed() or torch.compiler.is_dynamo_compiling() or (dispatch_depth() and is_tracing()):
        return False  # the first two hide the graph; a compiler gains nothing from it
    for node in nodes_of(ys) if ys else ():
        if isinstance(node, BackwardCFunction) and not hasattr(node, "is_kernel"):
            return False
    return True


class _Pullback:
    """The pullback of a function under a transform.

    A rule may hold it. Its tensors are then replaced by others, which the graph of the first run does not know, so the
    function runs again.
    """

    def __init__(self, fun, primals):
        self.fun, self.primals, self.made = fun, primals, _rules.Hidden(None)

    def run(self):
        outputs, pullback, aux = _func_vjp(self.fun, self.primals)
        self.made.content = pullback
        return outputs, aux

    def __call__(self, cotangents):
        return (_func_vjp(self.fun, self.primals)[1] if _rules.is_carrying() else self.made.content)(cotangents)


def _func_vjp(fun, primals):
    refuse_inference_mode()
    box = _Box(fun)
    outputs, pull, carried = torch.func.vjp(box, *primals, has_aux=True)

    def pullback(cotangents):
        if not box.places:
            return [torch.zeros_like(x) for x in primals]
        return list(pull(tuple(cotangents[k] for k in box.places)))

    every, aux = box.unpack(outputs, carried)
    return every, pullback, aux


class _Box:
    """A flat function for `torch.func`: differentiable outputs first, other tensors as aux, the rest kept aside."""

    def __init__(self, fun):
        self.fun = fun

    def __call__(self, *primals):
        outputs, aux = self.fun(*primals)
        self.places = [k for k, y in enumerate(outputs) if is_inexact(y)]
        self.carried = [k for k, y in enumerate(aux) if isinstance(y, torch.Tensor)]
        self.aside = [None if isinstance(y, torch.Tensor) else y for y in aux]
        rest = [y for k, y in enumerate(outputs) if k not in self.places]
        self.count = len(outputs)
        found = tuple(outputs[k] for k in self.places)
        return found or (torch.zeros(()),), (tuple(rest), tuple(aux[k] for k in self.carried))  # it needs one

    def unpack(self, outputs, carried):
        """Return the outputs and the auxiliary outputs, in their order."""
        rest, carried = list(carried[0]), list(carried[1])
        every = list(outputs) if self.places else []
        for k in range(self.count):
            if k not in self.places:
                every.insert(k, rest.pop(0))
        aux = list(self.aside)
        for k, y in zip(self.carried, carried, strict=True):
            aux[k] = y
        return every, aux


_forward_mode = threading.RLock()  # PyTorch has one level of forward mode for the whole process


def jvp(fun, primals, tangents):
    refuse_inference_mode()
    if any(type(x) is not torch.Tensor and is_dtensor(x) for x in primals):
        raise errors.UnsupportedError(
            "PyTorch has no forward mode of a DTensor; use reverse mode: "
            "https://docs.pytorch.org/docs/stable/distributed.tensor.html"
        )
    if not primals:  # torch.func.jvp wants one
        return jvp(lambda _: fun(), [torch.zeros(())], [torch.zeros(())])
    given = []

    def run(*xs):  # without aux of PyTorch's, which takes longer
        given[:] = fun(*xs)
        return (*given[0], *(y for y in given[1] if isinstance(y, torch.Tensor))) or (torch.zeros(()),)  # it needs one

    with contextlib.nullcontext() if torch.compiler.is_dynamo_compiling() else _forward_mode:
        found, pushed = torch.func.jvp(run, tuple(primals), tuple(tangents))
    outputs, carried = list(found[: len(given[0])]), iter(found[len(given[0]) :])
    pairs = zip(outputs, pushed, strict=False)
    pushed = [t if t.dtype == y.dtype else t.to(y.dtype) for y, t in pairs]  # float64 for a scalar
    return outputs, pushed, [next(carried) if isinstance(y, torch.Tensor) else y for y in given[1]]


def linearize(fun, primals):
    """Return the map of tangents as the pullback of the pullback, which is linear: without decompositions in Python."""
    refuse_inference_mode()
    if torch.compiler.is_dynamo_compiling() or tracing_state() is not None or is_tracing() or is_transformed():
        return None
    if any(type(x) is not torch.Tensor or x.requires_grad or x.is_inference() for x in primals):
        return None
    recorded = []

    def run(*xs):
        recorded[:], aux = fun(*xs)
        return recorded, aux

    outputs, pullback, aux = vjp(run, primals)
    is_known = all(map(is_inexact, outputs)) and all(map(is_transposable, nodes_of(recorded)))
    if not is_known or any(map(_requires_grad_of, outputs)):  # of what the function closes over
        return None

    def make_push():
        try:
            return vjp(lambda *ups: (pullback(list(ups)), []), list(map(empty_zeros_like, outputs)))[1]
        except RuntimeError:  # the function writes to what its gradient needs
            return lambda tangents: jvp(fun, primals, tangents)[1]

    return outputs, aux, pullback, make_push


def vmap(fun, in_axes, axis_size, is_linear=False):
    if all(axis is None for axis in in_axes):

        def call_expanded(*tensors):
            return [y.expand(axis_size, *y.shape) for y in fun(*tensors)]

        return call_expanded
    return lambda *tensors: map_along(fun, in_axes, axis_size, tensors)


def jit(fun):
    """Trace `fun`, including the transforms inside it, down to PyTorch's operations, and compile those.

    `torch.compile` by itself drops custom gradients inside `torch.func` transforms.
    """

    def by_python(*tensors):
        outputs, finish = fun(*tensors)
        return finish(outputs)

    if make_fx is None:  # an untested version
        return by_python
    programs, families = Recent(), Recent()

    def call_compiled(*tensors):
        is_part = (
            is_transformed() or torch.compiler.is_dynamo_compiling() or is_tracing() or tracing_state() is not None
        )
        if is_part:
            return by_python(*tensors)  # the enclosing transform or compiler handles it as a part of itself
        tensors = list(map(in_memory, tensors))
        key = (torch.is_grad_enabled(), autocast_state(), *[(x.shape, x.stride(), x.dtype, x.device) for x in tensors])
        program = programs.get(key)
        if program is None:
            try:
                program = _Program(fun, by_python, tensors, families)
            except Exception as error:
                if not _effects.is_cause(error):
                    raise
                program = by_python
            programs.put(key, program)
        return program(*tensors)

    return call_compiled


# a value that is used more than once and takes more operations than this is stored; at the default of 30, compiling
# indices that take many steps is ten times slower, because each use repeats their operations
_OPTIONS = {"realize_opcount_threshold": 16}


def _saved_apart():
    """Return a context for a trace: within a checkpoint, it is no part of what that one computes again."""
    if not has_saved_tensor_hooks():  # torch.func takes no hooks
        return contextlib.nullcontext()
    # a result that is saved as it is holds the step that saves it: nothing would ever free the two
    return torch.autograd.graph.saved_tensors_hooks(torch.Tensor.detach, lambda x: x)


class _Program:
    """A function traced and compiled for one signature; so is its pullback, and so on for higher orders."""

    def __init__(self, fun, by_python, tensors, families):
        self.fun, self.by_python, self.autocast = fun, by_python, autocast_state()
        with tracing_lock(), _effects.Undone(), _saved_apart(), describe_by_one_mode():
            graph = make_fx(self.outputs)(*[x.detach() for x in tensors])
        graph.graph.eliminate_dead_code()  # it includes autograd's own checks, which the compiler refuses
        _store_operands_of_maxima(graph.graph)
        _keep_digits(graph.graph)
        _keep_products_with_zero(graph.graph)
        _keep_smallest_integers(graph.graph)
        _keep_places(graph.graph)
        graph.recompile()
        held = _constants(graph)
        self.held = list(filter(is_inexact, held))  # any of them may require a gradient at a later call
        # code that draws random numbers or writes to memory cannot run a second time for its gradient
        self.is_pure = not any(_is_impure(node) for node in graph.graph.nodes)
        self.differentiable = [k for k, x in enumerate(tensors) if is_inexact(x)]
        self.compiled = graph.forward  # calling a module is slow
        # otherwise there is nothing to compile, or something that the compiler reads wrongly
        if any(node.op.startswith("call") for node in graph.graph.nodes) and all(x is in_memory(x) for x in held):
            self.compiled = _compile(graph, tensors, families)
        self.pullback = functools.cache(lambda *closed: jit(functools.partial(self.gradients, closed)))

    def __call__(self, *tensors):
        closed = [x for x in self.held if x.requires_grad]
        if not torch.is_grad_enabled():
            outputs = self.run(*tensors)
        elif not closed and True not in [x.requires_grad for x in tensors]:
            set_grad_enabled(False)  # the mode under `_Compiled`, so that it is compiled only once; no_grad() is slow
            try:
                outputs = self.run(*tensors)
            finally:
                set_grad_enabled(True)
        elif self.is_pure:
            outputs = list(_Compiled.apply(self, closed, *tensors, *closed))
        else:
            return self.by_python(*tensors)
        return self.finish(outputs)

    @functools.cached_property
    def beyond(self):
        """The tensors that `fun` closes over and no edge of the graph leads to: a rule may need their gradients."""
        known = set(map(id, self.held))
        return [x for _, x in _rules.reachable(self.fun) if id(x) not in known]

    def outputs(self, *tensors):
        outputs, self.finish = _effects.refused_in(self.fun)(*tensors)
        return list(outputs)

    def run(self, *tensors):
        if self.autocast:  # the casts are in the program
            with autocast_to(self.autocast, enabled=False):
                return self.run_once(*tensors)
        return self.run_once(*tensors)

    def run_once(self, *tensors):
        try:
            return self.compiled(*tensors)
        except RuntimeError as error:
            if "FX to symbolically trace" not in str(error):
                raise
            with tracing_lock():  # another thread was tracing: try again
                return self.compiled(*tensors)

    def gradients(self, closed, *given):
        """Return the gradients of the differentiable tensors and of the closed-over ones.

        Args:
            closed: Tensors of `held`.
            given: The tensors, then a cotangent per differentiable output.
        """
        n = len(given) - self.n_cotangents
        tensors = list(given[:n])
        with outside_transforms():  # the tensors do not belong to a transform of the cotangents, such as a vmap
            for k in self.differentiable:
                tensors[k] = leaf(tensors[k])
        sources = [*[tensors[k] for k in self.differentiable], *closed]
        with recording(), replaying(), outside_transforms(), autocast_to(self.autocast):
            outputs = [y for y in self.fun(*tensors)[0] if is_inexact(y)]
        tracked = [k for k, y in enumerate(outputs) if y.requires_grad]
        if not tracked:
            return [torch.zeros_like(x) for x in sources], list
        ys, seeds = [outputs[k] for k in tracked], [given[n + k] for k in tracked]
        grads = grads_of(tuple(ys), tuple(seeds), True, torch.is_grad_enabled(), tuple(sources))
        return [torch.zeros_like(x) if g is None else g for g, x in zip(grads, sources, strict=True)], list


def _compile(graph, tensors, families):
    """Return the compiled form of a traced graph, which may be that of another one with other numbers in it."""
    # no fullgraph=True: it counts compilations over all threads, and fails if two run at once
    options = _OPTIONS | {"inplace_buffers": not _shares_parts(graph.graph)}
    structure, numbers, held = _dynamic_sizes.describe(graph)
    if structure is None:
        return torch.compile(graph.forward, dynamic=False, options=options)
    kinds = [(x.dtype, x.device, x.ndim, x.is_contiguous() or x.stride()) for x in (*tensors, *held)]
    key = structure, tuple(kinds), options["inplace_buffers"]
    if (family := families.get(key)) is not None:
        return family.program(graph, numbers, held, options)
    families.put(key, _dynamic_sizes.Family(numbers))
    return compile_as_one(_dynamic_sizes.lifted(graph), held, dynamic=False, options=options)


class _Compiled(Function):
    @staticmethod
    def forward(ctx, program, closed, *tensors):
        ctx.save_for_backward(*tensors)
        ctx.program, ctx.closed, ctx.n = program, closed, len(tensors) - len(closed)
        outputs = program.run(*tensors[: ctx.n])
        ctx.inexact = [is_inexact(y) for y in outputs]
        program.n_cotangents = sum(ctx.inexact)
        ctx.mark_non_differentiable(*[y for y, inexact in zip(outputs, ctx.inexact, strict=True) if not inexact])
        return tuple(outputs)

    @staticmethod
    def backward(ctx, *cotangents):
        program, n = ctx.program, ctx.n
        cotangents = [ct for ct, inexact in zip(cotangents, ctx.inexact, strict=True) if inexact]
        found = iter(program.pullback(*ctx.closed)(*ctx.saved_tensors[:n], *cotangents))
        return (None, None, *[next(found) if k in program.differentiable else None for k in range(n)], *found)


def _constants(graph):
    """Return the closed-over tensors of a traced function, in the order of their use."""
    found = [getattr(graph, node.target, None) for node in graph.graph.nodes if node.op == "get_attr"]
    return list({id(x): x for x in found if isinstance(x, torch.Tensor)}.values())


@torch.library.custom_op("multiop::stored", mutates_args=(), schema="(Tensor x) -> Tensor")
def _copy_tensor(x):
    return x.clone()


@_copy_tensor.register_fake
def _(x):
    return torch.empty_like(x)


_CHOICES = (torch.ops.aten.amax.default, torch.ops.aten.amin.default, torch.ops.aten.scatter_reduce.two)


# the operations that put parts together, and those that the compiler makes of them
CONCATENATIONS = {
    "_chunk_cat", "_euclidean_dist", "block_diag", "cat", "constant_pad_nd", "diag_embed", "glu_backward", "isin",
    "stack", "tril_indices", "triu_indices", "upsample_bicubic2d",
}  # fmt: skip


def _shares_parts(graph):
    """Say whether a part of a concatenation may have another use.

    The compiler then computes a result in the place of that part, and gives the memory of the whole away after its last
    use (as in https://github.com/pytorch/pytorch/issues/100314).
    """
    for node in graph.nodes:
        name = node.target.overloadpacket.__name__ if is_operation(node.target) else ""
        if name in CONCATENATIONS and (name != "cat" or any(map(_has_other_uses, node.args[0]))):
            return True
    return False


def _has_other_uses(part):
    """Say whether memory that a value of a graph is a view of is used otherwise."""
    while part.op == "call_function":
        if len(part.users) > 1:
            return True
        source = part.args[0] if part.target is operator.getitem else part  # of an operation with several results
        if schema_of(source.target).returns[0].alias_info is None:
            return False
        part = part.args[0]
    return False  # an argument is not written to


def _store_operands_of_maxima(graph):
    """Make the compiler compute the operand of a maximum only once: the gradient goes to the entries that equal it.

    If the operand is recomputed, without rounding or by other instructions, no entry may equal the maximum, and the
    gradient is lost (https://github.com/pytorch/pytorch/issues/186799).
    """
    for node in list(graph.nodes):
        uses = [user.target for user in node.users]
        if node.op == "call_function" and torch.ops.aten.eq.Tensor in uses and any(use in _CHOICES for use in uses):
            with graph.inserting_after(node):
                stored = graph.call_function(torch.ops.multiop.stored.default, (node,))
            node.replace_all_uses_with(stored, delete_user_cb=lambda user, stored=stored: user is not stored)


# The vectorised code of PyTorch's compiler has its own formulas for these, which lose small numbers, large numbers or
# infinities: exp(x) - 1, log((1 + x) / (1 - x)) / 2, x - floor(x / y) * y and so on
_INEXACT_IN_VECTORS = (
    "acosh", "atanh", "celu", "div.Tensor_mode", "elu", "erf", "erfc", "erfinv", "expm1", "gelu", "nextafter",
    "remainder.Tensor", "softshrink",
)  # fmt: skip
_library = torch.library.Library("multiop", "FRAGMENT")


def _eager(name):
    """Return PyTorch's operation `name`, and an alias of it that the compiler calls as it is."""
    packet, _, overload = name.partition(".")
    operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
    schema = str(schema_of(operation)).partition("(")[2]
    _library.define(f"{packet}({schema}", tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(packet, operation, "CompositeExplicitAutograd")
    return operation, getattr(torch.ops.multiop, packet).default


_EAGER = dict(map(_eager, _INEXACT_IN_VECTORS))


def _keep_digits(graph):
    """Make the compiler call PyTorch's eager kernels where its own CPU code loses digits."""
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in _EAGER:
            continue
        result = node.meta["val"]
        if result.device.type != "cpu" or not result.is_floating_point():  # integers are exact
            continue
        for k, number in enumerate(node.args):
            if isinstance(number, (int, float)) and schema_of(node.target).arguments[k].type.kind() == "TensorType":
                with graph.inserting_before(node):
                    like = {"dtype": result.dtype, "device": result.device}
                    node.update_arg(k, graph.call_function(torch.ops.aten.full.default, ([], number), like))
        node.target = _EAGER[node.target]


_PRODUCTS = (torch.ops.aten.mul.Tensor, torch.ops.aten.mul_.Tensor, torch.ops.aten.mul.Scalar)


def _keep_products_with_zero(graph):
    """Make the compiler multiply by 0, since it takes the int 0 times NaN or infinity for 0.

    https://github.com/pytorch/pytorch/pull/187580
    """
    for node in graph.nodes:
        if node.op == "call_function" and node.target in _PRODUCTS:
            result, number = node.meta["val"], node.args[1]
            if type(number) in (int, bool) and not number and (result.is_floating_point() or result.is_complex()):
                node.update_arg(1, 0.0)


_SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)


def _keep_smallest_integers(graph):
    """Take no absolute value of the smallest integer, which has none: the compiler holds each for positive."""
    aten = torch.ops.aten
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is aten.abs.default and node.meta["val"].dtype in _SIGNED:
            (x,), least = node.args, torch.iinfo(node.meta["val"].dtype).min
            with graph.inserting_before(node):
                is_least = graph.call_function(aten.eq.Scalar, (x, least))
                others = graph.call_function(aten.masked_fill.Scalar, (x, is_least, 0))
                size = graph.call_function(aten.abs.default, (others,))
            node.target, node.args = aten.where.self, (is_least, x, size)


_PLACING = ("index_add", "index_copy", "index_put", "index_reduce", "scatter", "scatter_add", "scatter_reduce")


def _keep_places(graph):
    """Make the compiler write into memory with a place for each entry: it would keep the strides of an expanded tensor.

    https://github.com/pytorch/pytorch/issues/160391
    """
    for node in list(graph.nodes):
        if is_operation(node.target) and node.target.overloadpacket.__name__ in _PLACING:
            written = node.args[0].meta.get("val")  # that of a constant is not known, and it has places
            places = () if written is None else zip(written.stride(), written.shape, strict=True)
            if any(stride == 0 < size - 1 for stride, size in places):
                with graph.inserting_before(node):
                    whole = {"memory_format": torch.contiguous_format}
                    node.update_arg(0, graph.call_function(torch.ops.aten.clone.default, node.args[:1], whole))


def _is_impure(node):
    if not is_operation(node.target):
        return False
    return torch.Tag.nondeterministic_seeded in node.target.tags or _effects.writes(node.target, node.args)


def checkpoint(fun, primals):
    if are_transforms_active() or is_tracing():
        return fun(*primals)  # no saved-tensor hooks there; a traced recomputation would draw other random numbers
    if torch.compiler.is_dynamo_compiling():
        return list(torch.utils.checkpoint.checkpoint(fun, *primals, use_reentrant=False))
    changed, is_first = _effects.Changed(), True

    def run(*primals):
        nonlocal is_first
        if is_first:
            is_first = False
            with changed:
                outputs = fun(*primals)
            changed.refuse_history()
            return outputs
        # the backward pass may run under a vmap of the cotangents, or in inference mode
        mode = recording() if torch.is_grad_enabled() else contextlib.nullcontext()
        with outside_transforms(), mode, changed.before(), replaying():
            return fun(*primals)

    return list(torch.utils.checkpoint.checkpoint(run, *primals, use_reentrant=False))


if LOSES_PULLBACKS:
    _vjp, _vmap = out_of_graphs(vjp), vmap
    jvp = out_of_graphs(jvp)

    def vjp(fun, primals, persistent=True):
        outputs, pullback, aux = _vjp(fun, primals, persistent)
        return outputs, out_of_graphs(pullback), aux

    def vmap(fun, in_axes, axis_size, is_linear=False):
        return out_of_graphs(_vmap(fun, in_axes, axis_size))
