"""What PyTorch promises nothing about, in one place: the schemas of its operations, its dispatcher and its hooks."""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._functorch import eager_transforms, utils
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import function as autograd_function
from torch.fx.proxy import TracerBase
from torch.nn.modules.batchnorm import _BatchNorm as BatchNorm
from torch.utils import _pytree as pytree

from multiop.porting import _hosts

__all__ = ["BatchNorm", "FakeTensorMode", "detect_fake_mode", "pytree"]


def is_operation(target: Any) -> bool:
    """Say whether what a node of a graph calls is an operation of the dispatcher."""
    return isinstance(target, torch._ops.OpOverload)


def is_higher_order(target: Any) -> bool:
    """Say whether what a node of a graph calls takes graphs, such as a loop."""
    return isinstance(target, torch._ops.HigherOrderOperator)


def schema(target: Any) -> Any:
    """Return the schema of an operation; `None` for what is none."""
    return getattr(target, "_schema", None)


@functools.lru_cache(1024)
def defaults(target: Any) -> dict[str, Any]:
    """Return the defaults of an operation's arguments: an overload may have none where another has one."""
    packet = target.overloadpacket
    schemas = [*(getattr(packet, name)._schema for name in packet.overloads()), target._schema]
    return {x.name: x.default_value for each in schemas for x in each.arguments if x.has_default_value()}


def names(target: Any) -> tuple[str, str]:
    """Return the name of an operation in its namespace, and that of its overload, which may be empty."""
    return target._schema.name.partition("::")[2], target._overloadname


@functools.cache
def decompositions() -> dict[Any, Any]:
    """Return what PyTorch writes operations as."""
    table = {target: made for target, made in decomposition_table.items() if "_refs" not in made.__module__}
    return table | dict(torch.export.default_decompositions().items())


def is_composite(target: Any) -> bool:
    """Say whether PyTorch differentiates an operation through those that it is composed of."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), "CompositeImplicitAutograd")


def decomposition_of(target: Any) -> Any:
    """Return what writes a call as the calls that PyTorch itself composes it of; `None` if it is a kernel."""
    is_composed = target.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd)
    return target.decompose if is_composed else None


def has_backward_hooks(x: Any) -> bool:
    """Say whether a module or a tensor has a hook for the backward pass."""
    return bool(x._backward_hooks or getattr(x, "_backward_pre_hooks", None))


def guards(sizes: Iterable[Any]) -> list[Any]:
    """Return what open sizes have to fulfil so that a trace holds, as relations of sympy."""
    environments = {id(size.node.shape_env): size.node.shape_env for size in sizes if isinstance(size, torch.SymInt)}
    return [guard.expr for environment in environments.values() for guard in environment.guards]


def fixed_size(size: Any) -> tuple[int, str] | None:
    """Return the number that a trace put in the place of an open size, and the file and line; `None` if it is open."""
    if isinstance(size, int):
        return size, ""
    node = size.node
    if not node.expr.is_number:
        return None
    place = node.shape_env.replacements_slocs.get(node._expr)
    frame = place and (place.maybe_user_loc or place.framework_loc)
    return int(node.expr), f"{frame.filename}:{frame.lineno}" if isinstance(frame, traceback.FrameSummary) else ""


def checks_distributions() -> bool:
    """Say whether distributions check their values where nothing else is asked for."""
    return torch.distributions.Distribution._validate_args


def storage(x: torch.Tensor) -> int:
    """Return what tensors that share memory have in common, those of a transform as well."""
    while torch._C._functorch.is_functorch_wrapped_tensor(x):
        x = torch._C._functorch.get_unwrapped(x)
    return x.untyped_storage()._cdata


def is_whole(x: torch.Tensor) -> bool:
    """Say whether a tensor is all of its memory, in order."""
    size = x.untyped_storage().nbytes()
    return x.is_contiguous() and x.storage_offset() == 0 and bool(size == x.numel() * x.element_size())


def recurrent_weights(network: torch.nn.RNNBase) -> list[torch.Tensor]:
    """Return the weights of a recurrent network in the order of its kernel."""
    return [weight for weight in network._flat_weights if weight is not None]


def grouped_matmul() -> Any:
    """Return the product of the rows of each group with a matrix of its own."""
    return getattr(torch, "_grouped_mm", None)


def packing() -> tuple[Any, Any]:
    """Return the kernels that pack sequences, and undo that."""
    return torch._VF._pack_padded_sequence, torch._VF._pad_packed_sequence


def version(x: torch.Tensor) -> int:
    """Return how often a tensor was changed in place."""
    return x._version


def is_mapped(x: torch.Tensor) -> bool:
    """Say whether `torch.func.vmap` maps over a tensor."""
    return torch._C._functorch.is_batchedtensor(x)


def projects_one_size(attention: torch.nn.MultiheadAttention) -> bool:
    """Say whether queries, keys and values have one size, and so one array of weights."""
    return attention._qkv_same_embed_dim


def check_rank(norm: Any, x: torch.Tensor) -> None:
    """Refuse an input of other dimensions than a normalization takes."""
    norm._check_input_dim(x)


def keep_frames(replace: Callable[[Any, str, Any], None]) -> None:
    """Let an export note all lines of a model that lead to an operation, not only those in a `forward`."""

    def keep(_: Any, stack: traceback.StackSummary) -> traceback.StackSummary:
        first = next((i for i, frame in enumerate(stack) if frame.name == "forward"), len(stack))
        return traceback.StackSummary.from_list([frame for frame in stack[first:] if _hosts.is_own(frame.filename)])

    replace(TracerBase, "_filter_traceback_frames", keep)


@contextlib.contextmanager
def replace_transforms(grad_and_value: Callable[..., Any], vjp: Callable[..., Any]) -> Iterator[None]:
    """Let `torch.func.grad`, `grad_and_value` and `vjp` be what is given, however a user imported them; refuse `jvp`."""

    def grad(function: Any, argnums: Any, has_aux: bool, args: Any, kwargs: Any) -> Any:
        slopes, y = grad_and_value(function, argnums, has_aux, args, kwargs)
        return (slopes, y[1]) if has_aux else slopes

    def refuse_jvp(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("torch.func: jvp, jacfwd, hessian have no translation; grad, vjp and jacrev have")

    own = {"grad_impl": grad, "grad_and_value_impl": grad_and_value}
    own |= {"_vjp_with_argnums": vjp, "_jvp_with_argnums": refuse_jvp}
    kept = {name: getattr(eager_transforms, name) for name in own}
    for name, function in own.items():
        setattr(eager_transforms, name, function)
    try:
        yield
    finally:
        for name, function in kept.items():
            setattr(eager_transforms, name, function)


@contextlib.contextmanager
def functions_seen(before: Callable[[Any], Any], mapped: Callable[..., Any]) -> Iterator[Callable[[Any], Any]]:
    """See each call of an `autograd.Function`, for which PyTorch has no hook.

    Args:
        before: Replaces what `Function.apply` gives its arguments to first, also where a user kept the bound method.
        mapped: Replaces what `Function.apply` does inside of a transform of `torch.func`.

    Yields:
        What `before` stands for.
    """
    original, called = utils.unwrap_dead_wrappers, autograd_function.custom_function_call
    utils.unwrap_dead_wrappers, autograd_function.custom_function_call = before, mapped
    try:
        yield original
    finally:
        utils.unwrap_dead_wrappers, autograd_function.custom_function_call = original, called
