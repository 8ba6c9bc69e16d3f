"""Every private part of PyTorch that this backend uses; no other file imports private parts.

On an untested version, each part is tried first. A part that is missing or behaves differently is replaced by a
stand-in built from public API, which is slower and gives the safe answer where it cannot tell. Custom gradients and the
tape need all of the parts: on an untested version they use the public API as far as it goes, see `_public`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import operator
import sys
import threading

import torch
import torch.utils.checkpoint
from torch.autograd import Function, forward_ad
from torch.compiler import is_dynamo_compiling
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode

from multiop import errors
from multiop._loading import built_in, imports, versions

VERSION = tuple(map(int, torch.__version__.split(".")[:2]))
versions.refuse_old("torch", torch.__version__)
IS_TESTED = versions.is_whole("torch", torch.__version__)
MISSING = []  # paths of the parts that are missing


def unknown(what):
    """Return the error for `what` this version of PyTorch cannot do."""
    return versions.unknown_parts("torch", "PyTorch", torch.__version__, what)


def _part(path, stand_in=None, is_right=None):
    """Return the part of PyTorch at `path`, or `stand_in` if there is none or it fails `is_right`."""
    module, _, name = path.rpartition(".")
    try:
        part = getattr(importlib.import_module(module), name)
        if IS_TESTED or is_right(part):
            return part
    except Exception:  # an untested version may raise anything
        if IS_TESTED:
            raise
    MISSING.append(path)
    return stand_in


def _constant(function):
    """Do what torch.compiler.assume_constant_result does, without importing torch._dynamo."""
    function._dynamo_marked_constant = True
    return function


# What runs in this thread


@_constant
def _refuses_requires_grad():
    """Say whether torch.func transforms are running: they refuse `requires_grad_`."""
    try:
        torch.empty(()).requires_grad_()
    except RuntimeError:
        return True
    return False


@_constant
def _refuses_no_tangent():
    """Return the level of forward mode, or -1 if it is off: `make_dual` then raises."""
    zero = torch.zeros(())
    try:
        forward_ad.make_dual(zero, zero)
    except RuntimeError:
        return -1
    return 0


class _ForwardMode:
    """The stand-in for `forward_ad`."""

    _current_level = property(lambda self: _refuses_no_tangent())


_AUTOCAST_ON = ("cpu", "cuda", "xpu", "mps", "mtia", "hpu")
_is_any_autocast_enabled = _part("torch._C._is_any_autocast_enabled", lambda: True, lambda part: part() is False)


def autocast_state():
    """Return which devices torch.autocast is on for in this thread, each with its dtype."""
    if not _is_any_autocast_enabled():
        return ()
    return tuple((kind, torch.get_autocast_dtype(kind)) for kind in _AUTOCAST_ON if torch.is_autocast_enabled(kind))


def is_autocast_on(x):
    """Say whether torch.autocast is on for the device of `x`, if that has one: PyTorch raises for `meta`."""
    kind = x.device.type
    return kind in _AUTOCAST_ON and torch.is_autocast_enabled(kind)


@contextlib.contextmanager
def autocast_to(state, enabled=True):
    """Turn torch.autocast on as it was when `autocast_state` returned `state`, or off."""
    with contextlib.ExitStack() as stack:
        for kind, dtype in state:
            stack.enter_context(torch.autocast(kind, dtype, enabled))
        yield


def _traces(make_fx):
    one = torch.ones(1)
    return bool(make_fx(torch.neg)(one)(one) == -1)


are_transforms_active = _part(
    "torch._C._are_functorch_transforms_active", _refuses_requires_grad, lambda part: part() is _refuses_requires_grad()
)
_level = _part("torch.autograd.forward_ad._current_level", None, lambda part: part == _refuses_no_tangent())
forward_mode = _ForwardMode() if _level is None else forward_ad
dispatch_depth = _part("torch._C._len_torch_dispatch_stack", lambda: 1, lambda part: type(part()) is int)
mode_kinds = _part("torch._C._TorchDispatchModeKey", None, lambda part: part.FAKE != part.PROXY != part.FUNCTIONAL)
mode_of_kind = _part("torch._C._get_dispatch_mode", lambda kind: True, lambda part: part(mode_kinds.FAKE) is None)
tracing_state = _part(
    "torch._C._get_tracing_state", lambda: torch.jit.is_tracing() or None, lambda part: part() is None
)
set_grad_enabled = _part(
    "torch._C._set_grad_enabled", torch.set_grad_enabled, lambda part: part(torch.is_grad_enabled()) is None
)
_proxy_mode = _part("torch.fx.experimental.proxy_tensor.get_proxy_mode", None, lambda part: part() is None)
_is_key_included = _part(
    "torch._C._dispatch_tls_is_dispatch_key_included",
    None,
    lambda part: part(torch._C.DispatchKey.PreDispatch) is False,
)
_before_dispatch = _part("torch._ops._mode_stack_state_for_pre_dispatch", None, lambda part: part.get(0) is None)
modes_early = getattr(_before_dispatch, "_ModeStackStateForPreDispatch__infra_modes", ("unknown",))
_tracing_context = _part("torch._guards.TracingContext", None, lambda part: part.try_get() is None)
_tracing = _part("torch._guards.tracing", None, lambda part: part(None).__enter__() is None)
make_fx = _part(
    "torch.fx.experimental.proxy_tensor.make_fx", None, lambda part: _proxy_mode is not None and _traces(part)
)


def _differentiates(run):
    x = torch.ones(1, requires_grad=True)
    found = run((2 * x,), (torch.ones(1),), False, False, (x, x.clone()), allow_unreachable=True, accumulate_grad=False)
    return found[0].item() == 2 and found[1] is None


_engine = _part("torch.autograd.variable.ImperativeEngine", None, lambda part: _differentiates(part().run_backward))


def grads_of(ys, seeds, retain_graph, create_graph, xs):
    """Return the gradient of `ys`, weighted with `seeds`, for each of `xs`, `None` where it is not connected.

    The first two and the last are tuples.
    """
    return torch.autograd.grad(ys, xs, seeds, retain_graph, create_graph, allow_unused=True)


if _engine is not None:  # without checks, which take as long as the pass over a small graph
    grads_of = functools.partial(_engine().run_backward, allow_unreachable=True, accumulate_grad=False)


# operations whose gradient is the upstream one times a factor, or put elsewhere: its transpose is forward mode exactly.
# Of others, PyTorch drops it (sparse tensors), takes 0 times infinity for NaN where forward mode masks it (std, sinc,
# tensors of exponents), or adds up entries of which one is kept (index_put)
_TRANSPOSABLE = {
    "AccumulateGrad", "Abs", "Acos", "Acosh", "Add", "Addmm", "Addmv", "Alias", "Asin", "Asinh", "Atan", "Atanh",
    "Baddbmm", "Bmm", "Cat", "Clamp", "ClampMax", "ClampMin", "Clone", "Complex", "Conj", "ConstantPadNd",
    "Convolution", "Cos", "Cosh", "Cumsum", "Diagonal", "Div", "Dot", "Erf", "Erfc", "Exp", "Exp2", "Expand", "Expm1",
    "FftC2C", "FftC2R", "FftR2C", "Flip", "Gather", "Index", "IndexAdd", "IndexSelect", "Log", "Log10", "Log1P", "Log2",
    "LogSoftmax", "MaskedFill", "Maximum", "Mean", "Minimum", "Mm", "Mul", "Mv", "Neg", "Permute", "PowBackward0",
    "Reciprocal", "Relu", "Repeat", "Roll", "Rsqrt", "Rsub", "ScatterAdd", "Select", "Sigmoid", "Silu", "Sin", "Sinh",
    "Slice", "Softmax", "Softplus", "Split", "SplitWithSizes", "Sqrt", "Squeeze", "Stack", "Sub", "Sum", "T", "Tan",
    "Tanh", "ToCopy", "Transpose", "Tril", "Triu", "Unbind", "Unfold", "UnsafeSplit", "UnsafeView", "Unsqueeze", "View",
    "ViewAsComplex", "ViewAsReal", "Where",
}  # fmt: skip


def is_transposable(node):
    """Say whether the pullback of the pullback of a node of the graph is its forward mode."""
    name = type(node).__name__
    is_users = isinstance(node, torch.autograd.function.BackwardCFunction)  # a class of any name
    return not is_users and (name in _TRANSPOSABLE or name.partition("Backward")[0] in _TRANSPOSABLE)


def empty_zeros_like(x):
    """Return zeros that take no memory, nor do products with them."""
    return getattr(torch, "_efficientzerotensor", torch.zeros)(x.shape, dtype=x.dtype, device=x.device)


def is_transformed():
    """Say whether a torch.func transform or forward mode is active."""
    return are_transforms_active() or forward_mode._current_level >= 0


def is_forward_mode_on():
    return forward_mode._current_level >= 0


def is_tracing():
    """Say whether operations are being traced into a graph in this thread."""
    if not dispatch_depth() and modes_early[0] is None:  # the usual case
        return False
    if _is_key_included is None or mode_kinds is None:
        return _proxy_mode is not None and _proxy_mode() is not None
    return is_traced_early() or mode_of_kind(mode_kinds.PROXY) is not None  # in a third of the calls


def is_traced_early():
    """Say whether this thread traces before dispatch, by a mode on no stack: all threads share `modes_early`."""
    return _is_key_included is None or _is_key_included(torch._C.DispatchKey.PreDispatch)


def is_traced(x):
    """Say whether a tensor is computed by the graph that is being traced, as far as known."""
    mode = None if _proxy_mode is None else _proxy_mode()
    return mode is not None and (_has_proxy is None or _has_proxy(x, mode.tracer))


def is_tracked(*xs):
    """Say whether one of `xs` may be differentiated; if not, a native value is enough."""
    if (
        is_dynamo_compiling()
        or are_transforms_active()
        or dispatch_depth()
        or (modes_early[0] is not None and is_traced_early())
        or tracing_state() is not None
        or forward_mode._current_level >= 0
    ):
        return True
    for x in xs:
        if x.requires_grad:
            return torch.is_grad_enabled()
    return False


# Levels of torch.func


def _knows_levels(functorch):
    """Say whether these parts can still tell the tensors of transforms from others."""
    seen = []

    def note_levels(x):
        kinds = [level.key() for level in functorch.get_interpreter_stack()]
        seen.append((functorch.is_batchedtensor(x), functorch.maybe_get_level(x) > 0, kinds[-1]))
        return x + functorch.get_unwrapped(x).sum() * 0

    x, kinds = torch.zeros(1), functorch.TransformType
    torch.func.vmap(note_levels)(x)
    of_plain = functorch.is_batchedtensor(x), functorch.maybe_get_level(x) > 0, kinds.Jvp
    return seen == [(True, True, kinds.Vmap)] and of_plain == (False, False, kinds.Jvp) and kinds.Jvp != kinds.Vmap


functorch = _part("torch._C._functorch", None, _knows_levels)


def apply_directly(function, *args):
    """Return `function.apply(*args)` of an autograd Function, without PyTorch's own calls that ask for a transform.

    They are six, and bind the signature of a function that sets up its context by itself.
    """
    if functorch is None or are_transforms_active():
        return function.apply(*args)
    args = [functorch.unwrap_if_dead(x) if isinstance(x, torch.Tensor) else x for x in args]
    return super(Function, function).apply(*args)


@functools.lru_cache(1)
def _prepare_mapping():
    torch.vmap(torch.clone)(torch.zeros(1, device="cpu"))  # it registers how to map operations that lack a rule


def map_along(fun, axes, size, tensors):
    """Do what `torch.vmap` does, whose walks over pytrees take longer than a small function that returns a list."""
    if not IS_TESTED or is_dynamo_compiling() or is_tracing():
        return torch.vmap(fun, in_dims=tuple(axes))(*tensors)
    _prepare_mapping()
    level = functorch._vmap_increment_nesting(size, "error")
    try:
        slices = [x if k is None else functorch._add_batch_dim(x, k, level) for x, k in zip(tensors, axes, strict=True)]
        return [functorch._remove_batch_dim(y, level, size, 0) for y in fun(*slices)]
    finally:
        functorch._vmap_decrement_nesting()


@_constant
def is_forward_mode():
    """Say whether forward mode is on: PyTorch differentiates it wrongly where a kernel saves its results."""
    if forward_mode._current_level >= 0:
        return True
    return are_transforms_active() and (functorch is None or functorch.TransformType.Jvp in _kinds())


@_constant
def is_lifted():
    """Say whether torch.func or forward mode differentiates what is computed here."""
    if forward_mode._current_level >= 0:
        return True
    return are_transforms_active() and (functorch is None or not {functorch.TransformType.Vmap}.issuperset(_kinds()))


@_constant
def _loses_derivatives():
    return VERSION < (2, 12) and torch.is_inference_mode_enabled()


def refuse_inference_mode():
    """Raise where what torch.func and forward mode differentiate would be 0: in inference mode, before PyTorch 2.12."""
    if _loses_derivatives():
        raise errors.UnsupportedError(
            f"in inference mode, PyTorch {torch.__version__} computes 0 for forward mode and for what torch.func "
            f"differentiates: leave it with torch.inference_mode(False), or install torch>=2.12: "
            f"https://github.com/pytorch/pytorch/issues/177318"
        )


def _kinds():
    return {level.key() for level in functorch.get_interpreter_stack() or ()}


@_constant
def count_levels():
    """Return how many functorch transforms are active; one that is not reverse mode counts twice."""
    stack = functorch.get_interpreter_stack() or []
    return sum(1 if level.key() == functorch.TransformType.Grad else 2 for level in stack)


def all_levels(x):
    """Return `x` as seen at each level of functorch, the innermost transform first."""
    levels = [x]
    while functorch is not None and functorch.maybe_get_level(levels[-1]) > 0:
        levels.append(functorch.get_unwrapped(levels[-1]))
    return levels


def hides_levels():
    """Say whether transforms are active whose levels this version does not show."""
    return functorch is None and are_transforms_active()


def requires_grad(x):
    """Say whether `x` requires a gradient at any level of functorch."""
    if functorch is None:
        return x.requires_grad or are_transforms_active()
    while not x.requires_grad and functorch.maybe_get_level(x) > 0:
        x = functorch.get_unwrapped(x)
    return x.requires_grad


def is_batched(x):
    """Say whether `x` is mapped over at any level."""
    if functorch is None:
        return are_transforms_active()
    return any(map(functorch.is_batchedtensor, all_levels(x)))


def is_of_transform(x):
    """Say whether `x` belongs to a transform that is running: a level of functorch, or forward mode."""
    if are_transforms_active() if functorch is None else functorch.is_functorch_wrapped_tensor(x):
        return True
    return forward_mode._current_level >= 0 and unpack_dual(x).tangent is not None


def unpack_dual(x):
    """Return `x` and its tangent, or `None`, at the innermost level of forward mode."""
    try:
        return forward_ad.unpack_dual(x, level=0)
    except RuntimeError:  # another thread's level, already exited: the whole process shares one
        return forward_ad.UnpackedDualTensor(x, None)


def has_tangent(x):
    """Say whether `x` has a tangent at any level of functorch or of forward mode."""
    return forward_mode._current_level >= 0 and any(unpack_dual(y).tangent is not None for y in all_levels(x))


def without_tangent(x):
    """Return `x` without its tangent at the innermost level of forward mode."""
    if functorch.is_batchedtensor(x):  # unpacking has no batching rule
        inner = without_tangent(functorch.get_unwrapped(x))
        return functorch._add_batch_dim(inner, functorch.maybe_get_bdim(x), functorch.maybe_get_level(x))
    primal, tangent = unpack_dual(x)
    return x if tangent is None else primal


def _can_be_entered(context):
    with context():
        return True


_clear_stack = _part("torch._functorch.pyfunctorch.temporarily_clear_interpreter_stack", None, _can_be_entered)


def outside_transforms():
    """Return a context outside of the active torch.func transforms."""
    if _clear_stack is None and are_transforms_active():
        raise unknown("what leaves a torch.func transform, as a checkpoint does in its backward pass,")
    return contextlib.nullcontext() if _clear_stack is None else _clear_stack()


# Autograd, for custom gradients and the tape


def _tested_part(path):
    return _part(path) if IS_TESTED else None


sequence_number = _tested_part("torch.autograd._get_sequence_nr") or int  # 0, before which nothing is
saved_tensors_hooks = (
    _tested_part("torch._C._autograd._top_saved_tensors_default_hooks")
    if hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks")
    else lambda ignores_tracing: "unknown"  # before PyTorch 2.8
)
keeps_graph = _tested_part("torch._C._autograd._get_current_graph_task_keep_graph") or (lambda: True)
silu = _tested_part("torch._C._nn.silu") or torch.nn.functional.silu
cross_entropy = _tested_part("torch._C._nn.cross_entropy_loss") or torch.ops.aten.cross_entropy_loss
running_node = _tested_part("torch._C._current_autograd_node")
is_batch_of_gradients = _tested_part("torch._C._functorch.is_legacy_batchedtensor") or (lambda upstream: True)
is_without_memory = _part("torch._is_zerotensor", lambda x: True, lambda part: part(torch.zeros(())) is False)
forward_mode_enabled = _tested_part("torch.autograd.forward_ad._set_fwd_grad_enabled")
without_proxies = _tested_part("torch.fx.experimental.proxy_tensor.disable_proxy_modes_tracing")
_has_proxy = _tested_part("torch.fx.experimental.proxy_tensor.has_proxy_slot")
without_functorch = _tested_part("torch._C._DisableFuncTorch")


# torch.compile


def holds_always(condition):
    """Say whether a condition on sizes holds, under a compiler for all sizes that its program may be given."""
    if type(condition) is bool and not is_dynamo_compiling():
        return condition
    from torch.fx.experimental.symbolic_shapes import statically_known_true  # takes long to import

    return statically_known_true(condition)


def out_of_graphs(function):
    """Make torch.compile run `function` eagerly: it breaks the graph there, or fails under fullgraph=True."""

    def run_out_of_graphs(*args):
        if not is_dynamo_compiling() or may_trace_pullbacks():
            return function(*args)
        refuse_break()
        from .autodiff._untraced import (
            run,  # imported only when torch.compile gets here: torch._dynamo takes a second to import
        )

        return run(function, *args)

    return run_out_of_graphs


# where torch.compile traces a pullback of torch.func that it did not trace the beginning of, as after a graph break,
# the gradients are 0: https://github.com/pytorch/pytorch/issues/172386
LOSES_PULLBACKS = not IS_TESTED or VERSION < (2, 12)


@_constant
def may_trace_pullbacks():
    """Say whether torch.compile may trace what calls torch.func: all of it if nothing may break the graph."""
    if not LOSES_PULLBACKS:
        return True
    transaction = sys.modules["torch._dynamo.symbolic_convert"].tls.current_tx
    return IS_TESTED and bool(getattr(transaction, "one_graph", False))  # fullgraph=True


@_constant
def refuse_break():
    """Raise where torch.func is traced and a break of the graph would lose its pullback."""
    if are_transforms_active() and not may_trace_pullbacks():
        raise errors.UnsupportedError(
            f"inside torch.func transforms, torch.compile of PyTorch {torch.__version__} cannot compile all of "
            f"multiop's transforms, loops, branches and custom gradients, and computes 0 where it leaves one out: use "
            f"multiop's transforms instead of torch.func's, or multiop.jit, or install torch>=2.12: "
            f"https://github.com/pytorch/pytorch/issues/172386"
        )


_lock = threading.RLock()


def tracing_lock():
    """Return the lock that torch.compile holds: tracing is not thread-safe, and must not overlap with compiling."""
    if built_in.is_triton_barred():
        raise errors.UnsupportedError(
            "multiop.jit needs PyTorch's compiler, which imports Triton, and that would end this process, because "
            "TensorFlow was imported first; import triton, or multiop's TensorFlow backend, before tensorflow, or "
            "install tensorflow>=2.22: https://github.com/tensorflow/tensorflow/issues/124205"
        )
    try:
        from torch._dynamo.convert_frame import compile_lock  # takes a second to import
    except ImportError:
        if IS_TESTED:
            raise
        return _lock
    return compile_lock


def traces_autograd():
    """Say whether torch.compile traces calls of autograd; versions before 2.12 do not."""
    return getattr(torch._dynamo.config, "trace_autograd_ops", False)


def retrace():
    """Make torch.compile trace from the start if it is tracing in this thread: the state of multiop has changed."""
    if built_in.compiling():  # which knows that another thread may import the compiler at this moment
        dynamo = sys.modules["torch._dynamo.symbolic_convert"]
        raise dynamo.exc.UnspecializeRestartAnalysis(restart_reason="multiop has loaded its backend")


@contextlib.contextmanager
def describe_by_one_mode():
    """Let a trace describe all its results by one fake mode; each would else have its own, which walks the stack."""
    if _tracing is None or _tracing_context is None:
        yield
        return
    from torch._subclasses.fake_tensor import FakeTensorMode

    context = _tracing(_tracing_context(FakeTensorMode(allow_fallback_kernels=True)))
    context.__enter__()
    try:
        yield
    finally:
        context.__exit__(None, None, None)  # without a user's exception, to which it would add an attribute


def is_operation(target):
    """Say whether the target of a graph node is an ATen or custom operator."""
    return isinstance(target, torch._ops.OpOverload)


def without_values():
    """Return a context in which tensors are fake: they have no values."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    return FakeTensorMode(allow_non_fake_inputs=True)


def while_loop(cond, body, xs):
    """Run a loop as a higher-order operator, which torch.compile can trace."""
    from torch._higher_order_ops.while_loop import while_loop

    return while_loop(cond, body, xs)


def has_saved_tensor_hooks():
    """Say whether hooks, as those of a checkpoint, get what autograd saves in this thread now, as far as known."""
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return top is not None and top(False) is not None


def give_once(hooks):
    """Say whether hooks give a saved tensor a single time, as far as known: those of a checkpoint do."""
    return hooks == "unknown" or getattr(hooks[0], "__module__", None) == torch.utils.checkpoint.__name__


# of tensors, of nodes of autograd's graph, and of operations


is_view = operator.methodcaller("_is_view")
base_of = operator.attrgetter("_base")  # the tensor that another is a view of, or `None`


def storage_of(x):
    """Return the address of a tensor's storage."""
    return x.untyped_storage()._cdata


node_of = operator.itemgetter(0)  # of an edge of the graph
number_of = operator.methodcaller("_sequence_nr")  # by which the nodes of a thread are ordered
metadata_of = operator.attrgetter("_input_metadata")  # for each output of the node's operation


def hook_upstream(y, node, hook):
    """Call `hook` with each upstream gradient of `y`, whose node is `node`; unlike `register_hook`, for ever."""
    y._backward_hooks = {0: hook}
    node._register_hook_dict(y)
    y._backward_hooks = None  # a later one is the user's own


def in_memory(x):
    """Return a tensor whose numbers are those in its memory, as compiled code reads it: it sees no mark beside them."""
    if not (x.is_neg() or x.is_conj() or is_without_memory(x)):
        return x
    return (x.clone() if is_without_memory(x) else x).resolve_conj().resolve_neg()


reduction_of = operator.attrgetter("_saved_reduce")
schema_of = operator.attrgetter("_schema")
# batch normalization that returns its running statistics moved, where the public one writes to them
moving_batch_norm = getattr(torch.ops.aten, "_native_batch_norm_legit_functional", None)
is_exporting = getattr(torch.compiler, "is_exporting", bool)  # since PyTorch 2.7; before it, always False


def _mend_dtensors(_):
    from . import _before_2_11

    if VERSION < (2, 10):
        _before_2_11.mend_moved_dtensors(loses_numbers=VERSION < (2, 9))
    _before_2_11.mend_sums_of_dtensors()


if VERSION < (2, 11):
    imports.when_imported("torch.distributed.tensor", _mend_dtensors)
