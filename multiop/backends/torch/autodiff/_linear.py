"""Forward mode from a reverse rule: the tangent map is the rule's transpose, if the rule is linear in the upstream."""

from __future__ import annotations

import functools

import torch
from torch.overrides import TorchFunctionMode

from multiop import errors

from .._internals import functorch, reduction_of, without_functorch, without_proxies
from ..conversion import is_compiling

# Linear operations: their gradient uses only the shape or dtype of an operand
_LINEAR = {
    "AdaptiveAvgPool2DBackward0", "AdaptiveAvgPool3DBackward0", "AvgPool2DBackward0", "AvgPool3DBackward0",
    "ComplexBackward0", "FftC2CBackward0", "FftC2RBackward0", "FftR2CBackward0", "GatherBackward0",
    "IndexAddBackward0", "IndexCopyBackward0", "MaskedSelectBackward0", "PutBackward0", "ReflectionPad1DBackward0",
    "ReflectionPad2DBackward0", "ReflectionPad3DBackward0", "ReplicationPad1DBackward0", "ReplicationPad2DBackward0",
    "ReplicationPad3DBackward0", "TakeBackward0",
}  # fmt: skip
# Linear in each operand; their gradient saves all of them
_BILINEAR = {"ConvolutionBackward0", "ConvolutionOverrideableBackward0"}
# Linear in the operand at this index, not in the others
_LINEAR_AT = {
    "CholeskySolveBackward0": 0, "GridSampler2DBackward0": 0, "GridSampler3DBackward0": 0, "LinalgLuSolveBackward0": 1,
    "LinalgSolveExBackward0": 1, "LinalgSolveTriangularBackward0": 1,
}  # fmt: skip
# Linear for these values of the option `reduce`
_LINEAR_REDUCE = {"ScatterReduceBackward0": ("sum", "mean"), "SegmentReduceBackward0": ("sum", "mean")}
# Step functions: their gradient is zero or that of the identity, and no saved tensor reveals them
_STEPS = {
    "CeilBackward0", "DivBackward2", "DivBackward3", "FloorBackward0", "FmodBackward0", "FmodBackward1",
    "FracBackward0", "HeavisideBackward0", "RemainderBackward0", "RemainderBackward1", "RoundBackward0",
    "RoundBackward1", "SgnBackward0", "SignBackward0", "TruncBackward0",
}  # fmt: skip
# Their result depends on the shape of the operand, not on its values
_OF_SHAPE = {
    "empty_like", "full_like", "is_same_size", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros",
    "ones_like", "rand_like", "randint_like", "randn_like", "zeros_like",
}  # fmt: skip
# They attach a tensor to another as its tangent
_MAKE_DUAL = {"_make_dual", "make_dual"}
# The names under which gradient kernels save their incoming gradient; they are linear in it, and always save it
_UPSTREAM = {"_saved_grad", "_saved_grad_out", "_saved_grad_output"}
# They read values
_READS = {
    "__array__", "__bool__", "__complex__", "__float__", "__index__", "__int__", "allclose", "equal", "item", "numpy",
    "tolist",
}  # fmt: skip


def transpose(rule, name, upstreams, cotangents):
    """Apply the transpose of `rule`, a function of `len(upstreams)` tensors, to `cotangents`.

    Args:
        rule: Returns a list of tensors, and `None` for zero.
        name: The function that the rule belongs to, for the error.
        upstreams: Zeros, one per argument of `rule`.
        cotangents: One per entry that `rule` returns; `None` for zero.
    """
    chosen = []

    def run_watched(*upstreams):
        level = functorch.maybe_current_level()
        with _Watch(level, name):
            returned = rule(*upstreams)
        pairs = enumerate(zip(returned, cotangents, strict=True))
        chosen[:] = [k for k, (g, t) in pairs if g is not None and t is not None]
        _check(returned, level, name)
        return tuple(returned[k] for k in chosen) or upstreams  # torch.func.vjp requires an output

    if not upstreams:
        return []
    with torch.enable_grad():
        found, pull = torch.func.vjp(run_watched, *upstreams)
        if not chosen:
            return list(upstreams)
        return list(pull(tuple(cotangents[k].to(g.dtype) for k, g in zip(chosen, found, strict=True))))


class _Watch(TorchFunctionMode):
    """Refuse operations that read the upstream's values, or detach it, without leaving a trace in the graph.

    But a call of another framework that is linear in it: the custom gradient around that has the transpose.
    """

    def __init__(self, level, name):
        super().__init__()
        self.level, self.name = level, name

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        called = getattr(func, "__name__", "")
        if called == "__get__":
            called = getattr(getattr(func, "__self__", None), "__name__", "")
        if (
            called in _OF_SHAPE | _MAKE_DUAL
            or (called == "foreign" and args[2] is not None and not self._of_upstream(args[1][: args[2]]))
            or not any(self._of_upstream(x) for x in (*args, *(kwargs or {}).values()))
        ):
            return result
        results = result if isinstance(result, (tuple, list)) else (result,)
        cut = [y for y in results if isinstance(y, torch.Tensor) and not self._of_upstream(y)]
        if called == "grad" and _keeps_graph(*args, **(kwargs or {})):
            cut = [y for y in cut if _is_affine(y)]  # without a dependence, the gradient is zeros
        if called in _READS or cut:
            raise _fault(self.name, called)
        return result

    def _of_upstream(self, x):
        if isinstance(x, (tuple, list)):
            return any(self._of_upstream(entry) for entry in x)
        if not isinstance(x, torch.Tensor):
            return False
        while functorch.maybe_get_level(x) > self.level:  # wrapped by a transform inside the rule
            x = functorch.get_unwrapped(x)
        return functorch.maybe_get_level(x) == self.level and x.requires_grad


def _keeps_graph(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, *rest, **more):
    """Say whether `torch.autograd.grad` with these arguments keeps its results on the graph."""
    return create_graph


def _check(returned, level, name):
    """Walk the graph of the rule's results at upstream zero; at this level only the upstream requires grad."""
    seen, stack = set(), []
    for g in returned:
        if isinstance(g, torch.Tensor):
            if _is_affine(g):
                raise _fault(name, "a term that does not depend on the upstream")
            if functorch.maybe_get_level(g) == level and g.grad_fn is not None:
                stack.append(g.grad_fn)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        kind = node.name()
        places = [k for k, (parent, _) in enumerate(node.next_functions) if parent is not None]
        if (plan := getattr(node, "plan", None)) is not None:  # a custom gradient: its outputs have to be linear
            places = [k for k in places if k <= plan.residuals_from]
        stack.extend(node.next_functions[k][0] for k in places)
        if (
            plan is not None
            or kind in _LINEAR
            or (kind in _BILINEAR and len(places) == 1)
            or places == [_LINEAR_AT.get(kind)]
        ):
            continue
        if kind in _LINEAR_REDUCE and reduction_of(node) in _LINEAR_REDUCE[kind]:
            continue
        kept = {saved for saved in _saved_names(type(node)) if _requires_grad(getattr(node, saved), level)}
        if kind in _STEPS or not (kept <= _UPSTREAM if places == [0] else not kept):
            raise _fault(name, kind.removesuffix("0").removesuffix("1").removesuffix("Backward").lower())


def _is_affine(grad):
    """Say whether a gradient at upstream zero is known to be nonzero."""
    while functorch.maybe_get_level(grad) > 0:
        grad = functorch.get_unwrapped(grad)
    if type(grad) is not torch.Tensor or grad.is_meta or is_compiling():
        return False  # its value is not available
    with without_proxies(), without_functorch():  # under tracing, read the value of the example input
        grad = grad.detach()
        return bool(((grad != 0) & (grad == grad)).any())


@functools.lru_cache(maxsize=512)
def _saved_names(node_type):
    names = [name for name in dir(node_type) if name.startswith("_saved_")]
    return names if names or not hasattr(node_type, "saved_tensors") else ["saved_tensors"]


def _requires_grad(saved, level):
    if isinstance(saved, (tuple, list)):
        return any(_requires_grad(entry, level) for entry in saved)
    return isinstance(saved, torch.Tensor) and saved.requires_grad and functorch.maybe_get_level(saved) == level


def _fault(name, what):
    return errors.NonLinearRuleError.of(name, what)
