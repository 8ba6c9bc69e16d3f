"""Custom `autograd.Function`s: one node in the graph of an export, and a graph of forward and backward of its own.

`torch.export` runs the forward of such a function and forgets its backward. While `record_functions` is active, each call is
recorded as one operation, `multiop::custom_function`, and `Recorded.traced` gives what it computes.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
import traceback
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from multiop import errors
from multiop.porting.torch import _internals, written
from multiop.porting.torch._internals import FakeTensorMode, detect_fake_mode, pytree
from multiop.porting.torch.written import Refused

_REENTRANT = ("CheckpointFunction",)  # its backward is that of what it runs, under `no_grad`
_handles = itertools.count()
recorded: weakref.WeakValueDictionary[int, Recorded] = weakref.WeakValueDictionary()


class _Context(torch.autograd.function.FunctionCtx):
    """What `forward`, `setup_context` and `backward` are given."""

    def __init__(self, needs_input_grad: tuple[bool, ...]):
        self.to_save: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.dirty_tensors: tuple[Any, ...] = ()
        self.materialize_grads = True
        self.needs_input_grad = needs_input_grad

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self.to_save


class Recorded:
    """A call of a custom function.

    Attributes:
        name: The name of its class.
        where: The file and line of the call.
        handle: Its number, which stands in the graph.
    """

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], where: str):
        self.function, self.where, self.name = function, where, function.__name__
        self.forward, self.setup = function.forward, function.setup_context
        self.has_setup = self.setup is not torch.autograd.Function.setup_context
        self.leaves, self.structure = pytree.tree_flatten((args, kwargs))
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, torch.Tensor)]
        self.tensors = [self.leaves[i] for i in self.places]
        self.takes = [x.is_floating_point() or x.is_complex() for x in self.tensors]  # a gradient
        for i in self.places:
            self.leaves[i] = None
        self.handle = next(_handles)
        recorded[self.handle] = self

    def run(self, xs: Sequence[Any]) -> tuple[_Context, list[Any], Any]:
        """Run the forward; return the context, the leaves of what it returns, and their structure."""
        leaves = list(self.leaves)
        for i, x in zip(self.places, xs, strict=True):
            leaves[i] = x
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        given = [*args, *kwargs.values()]
        context = _Context(tuple(isinstance(x, torch.Tensor) and x.is_floating_point() for x in given))
        with torch.no_grad():
            if self.has_setup:
                returned = self.forward(*args, **kwargs)
                self.setup(context, args, returned)
            else:
                returned = self.forward(context, *args, **kwargs)
        if context.dirty_tensors:
            raise Refused("it changes an argument in place")
        outputs, structure = pytree.tree_flatten(returned)
        return context, outputs, structure

    def backward(self, context: _Context, outputs: Sequence[Any], upstreams: Sequence[Any]) -> list[Any]:
        """Run the backward on one upstream gradient per tensor; return one gradient per tensor argument or `None`."""
        given = iter(upstreams)
        handed = []
        for y in outputs:
            upstream = next(given) if isinstance(y, torch.Tensor) else None
            if isinstance(y, torch.Tensor) and (
                not y.is_floating_point() or any(y is stopped for stopped in context.non_differentiable)
            ):
                upstream = torch.zeros_like(y) if context.materialize_grads else None
            handed.append(upstream)
        base, own = torch.autograd.Function, self.function
        rule = own.vjp if own.vjp is not base.vjp else own.backward
        if rule is base.backward:
            raise Refused("it has no backward")
        if getattr(own, "boxed_grads_call", False):
            handed = [handed]
        with torch.no_grad():
            gradients = rule(context, *handed)
        gradients = list(gradients) if isinstance(gradients, (tuple, list)) else [gradients]
        args, _ = pytree.tree_unflatten(list(range(len(self.leaves))), self.structure)
        by_place = dict(zip(map(str, args), gradients, strict=False))  # an argument that is no leaf is no number
        return [by_place.get(str(i)) if takes else None for i, takes in zip(self.places, self.takes, strict=True)]

    def traced(self, xs: Sequence[Any], ys: Sequence[Any]) -> tuple[Any, list[bool]]:
        """Return a graph of arguments and upstream gradients, whose results are outputs and gradients.

        Args:
            xs: Tensors without values like the arguments.
            ys: Tensors without values like the results.

        Returns:
            The graph, and which arguments have a gradient.
        """
        from torch.fx.experimental.proxy_tensor import make_fx

        given: list[bool] = []

        def both(*values: Any) -> tuple[list[Any], list[Any]]:
            context, outputs, _ = self.run(values[: len(xs)])
            gradients = self.backward(context, outputs, values[len(xs) :])
            given[:] = [gradient is not None for gradient in gradients]
            tensors = [y for y in outputs if isinstance(y, torch.Tensor)]
            return tensors, [gradient for gradient in gradients if gradient is not None]

        mode = detect_fake_mode((*xs, *ys)) or FakeTensorMode()
        with mode, torch.no_grad():
            upstreams = [torch.empty_like(y) for y in ys]
            graph = make_fx(both, pre_dispatch=True)(*xs, *upstreams)
        return graph, given


@contextlib.contextmanager
def record_functions(missing: Any) -> Iterator[list[Recorded]]:
    """Record every custom function that runs; `missing(name, where)` is told of those that cannot be recorded."""
    calls: list[Recorded] = []
    swapped: dict[Any, dict[str, Any]] = {}

    def restore(function: Any) -> None:
        for name, own in swapped.pop(function, {}).items():
            if own is None:
                delattr(function, name)
            else:
                setattr(function, name, own)

    def swap(function: Any, where: str) -> None:
        has_setup = function.setup_context is not torch.autograd.Function.setup_context

        def forward(*args: Any, **kwargs: Any) -> Any:
            restore(function)
            call = Recorded(function, args if has_setup else args[1:], kwargs, where)
            calls.append(call)
            try:
                ys = iter(torch.ops.multiop.custom_function(call.handle, call.tensors))
            except Refused as reason:
                missing(f"autograd.Function {function.__name__}: {reason}", where)
                return function.forward(*args, **kwargs)
            leaves = [next(ys) if slot is Ellipsis else slot for slot in call.template]
            return pytree.tree_unflatten(leaves, call.returned)

        new = {"forward": forward} | ({"setup_context": lambda ctx, inputs, output: None} if has_setup else {})
        swapped[function] = {name: vars(function).get(name) for name in new}
        for name, method in new.items():
            setattr(function, name, staticmethod(method))

    def inline(function: Any) -> None:
        def forward(ctx: Any, run: Any, preserves: bool, *args: Any) -> Any:
            restore(function)
            return run(*args)

        swapped[function] = {"forward": vars(function).get("forward")}
        function.forward = staticmethod(forward)

    def note_call(args: Any) -> Any:
        frame = sys._getframe(1)
        function: Any = frame.f_locals.get("cls")
        is_custom = isinstance(function, type) and issubclass(function, torch.autograd.Function)
        if is_custom and not _running:
            if function.__name__ in _REENTRANT:
                inline(function)
            else:
                swap(function, _place(frame.f_back))
        return original(args)

    def in_a_transform(function: Any, *args: Any, **kwargs: Any) -> Any:
        where = _place(sys._getframe(2))
        raise errors.TranslationError(
            f"autograd.Function {function.__name__} inside of torch.func is called at {where}"
        )

    try:
        with _internals.functions_seen(note_call, in_a_transform) as original, _Hooks(missing):
            yield calls
    finally:
        for function in list(swapped):
            restore(function)


class _Hooks(TorchFunctionMode):
    """Tells of hooks on the gradients of tensors, which an export forgets, and writes what it cannot follow."""

    def __init__(self, missing: Any):
        super().__init__()
        self.missing = missing

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.Tensor.register_hook:
            frames = [frame for frame, _ in traceback.walk_stack(None)]  # an export passes the call on to itself
            called = [frame.f_back for frame in frames if frame.f_code is torch.Tensor.register_hook.__code__]
            where = _place(called[-1]) if called else ""
            if "/torch/" not in where:
                self.missing("Tensor.register_hook: a gradient that a hook may change", where)
        return written.HANDLERS.get(function, function)(*args, **(kwargs or {}))


def _place(frame: Any) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""


# the operation that stands for a call; it has no gradient, since the graph is not differentiated

_running: list[int] = []  # the calls whose forward runs for the shapes of its results


def _results(handle: int, xs: list[Any]) -> list[Any]:
    call = recorded[handle]
    _running.append(handle)
    try:
        _, outputs, call.returned = call.run(xs)
    finally:
        _running.pop()
    call.template = [Ellipsis if isinstance(y, torch.Tensor) else y for y in outputs]
    return [y.clone() for y in outputs if isinstance(y, torch.Tensor)]  # none may share an argument's memory


_library = torch.library.Library("multiop", "FRAGMENT")
_library.define("custom_function(int handle, Tensor[] xs) -> Tensor[]")
_library.impl("custom_function", _results, "CompositeExplicitAutograd")
_library.impl("custom_function", torch.library.fallthrough_kernel, "Autograd")
torch.library.register_fake("multiop::custom_function", _results, lib=_library)
# what stands for a result of a `no_grad` block where the block itself is about to be lost
_library.define("stopped(Tensor x) -> Tensor")
_library.impl("stopped", lambda x: x.clone(), "CompositeExplicitAutograd")
