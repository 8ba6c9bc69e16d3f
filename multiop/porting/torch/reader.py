"""From a PyTorch model to the graph: `torch.export`, before decomposition, row by row."""

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import math
import operator
import re
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from multiop import errors
from multiop.porting import _converters, _graph, _hosts, _objects, _rows
from multiop.porting._graph import (
    Apply,
    Body,
    Call,
    Custom,
    Dim,
    Expression,
    Foreign,
    Graph,
    Node,
    Number,
    Scope,
    Value,
    call,
)
from multiop.porting._reference import is_inexact
from multiop.porting._rows import Row, Untranslated, cast, single, words
from multiop.porting.torch import _internals, custom_functions, operations, sizes, weights, written
from multiop.porting.torch._internals import pytree

_CONTAINERS = ("torch.nn.modules.container.", "torch.nn.modules.module.")
_IGNORED = words(  # where and how a tensor is kept, and how a result is computed, of which the dtype is known
    "compute_mode copy cudnn_enable cudnn_enabled device generator implicit layout memory_format non_blocking out_int32 "
    "pin_memory sorted sparse sparse_grad stable"
)
_LENDING = words("dropout einsum meshgrid unsafe_chunk unsafe_split unsafe_split_with_sizes")  # may return an argument
_BATCH_NORMS = ("batch_norm", "_native_batch_norm_legit_functional")  # the second one returns the new statistics
_BLOCKS = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4}  # how many options stand in front of the graph
_Names: TypeAlias = dict[_objects.Path, dict[int, str]]  # where a tensor is -> axis -> the name of its size
_PARTS = words("narrow select slice")
_PERMUTED = words("mT movedim numpy_T permute t transpose")
_RESHAPED = words(
    "_unsafe_view alias contiguous flatten ravel reshape reshape_as squeeze to unflatten unsqueeze view view_as"
)
_NO_VALUE = ("_assert", "sym_constrain", "_set_grad", "_enter_autocast", "_exit_autocast", "record_function")


def read(
    model: Any,
    inputs: tuple[Any, ...],
    training: bool = False,
    dynamic_shapes: Any = None,
    keywords: dict[str, Any] | None = None,
    partial: bool = False,
    fits: Any = None,
) -> Graph:
    """Return the graph of a `torch.nn.Module` or `ExportedProgram`.

    Args:
        model: What is called with `inputs`.
        inputs: Example inputs.
        training: Whether the model is in training mode.
        dynamic_shapes: The open dimensions, in the terms of `torch.export`, or by name; by default the first one of
            each input.
        keywords: Example inputs by name.
        partial: Whether a bridge may stay where a call has no translation.
        fits: Says of a graph whether it takes the examples; if not, those with a first dimension of 1 are repeated in
            another way.

    Raises:
        TranslationError: Something has no translation; the message lists all of it.
    """
    is_program = isinstance(model, torch.export.ExportedProgram)
    leaves = [x for _, x in _objects.tensors((inputs, keywords or {}))]
    has_one = not is_program and dynamic_shapes is None and any(x.ndim and len(x) == 1 for x in leaves)
    first: Any = None
    for repeat in REPEATS if has_one and fits is not None else REPEATS[:1]:
        try:
            graph = _read_repeated(repeat, model, inputs, training, dynamic_shapes, keywords, partial)
        except errors.TranslationError as error:
            if not str(error).startswith("torch.export cannot"):
                raise
            first = first or error
            continue
        graph.repeat = repeat
        first = graph if first is None else first
        if fits is None or fits(graph):
            return graph
    if isinstance(first, Exception):
        raise first
    return first


def _read_repeated(
    repeat: Any, model: Any, inputs: Any, training: bool, dynamic_shapes: Any, keywords: Any, partial: bool
) -> Graph:
    """Return the graph of a model that is called with repeated examples."""
    missing: dict[str, list[str]] = collections.defaultdict(list)
    changed: set[str] = set()
    differs = False
    if not isinstance(model, torch.export.ExportedProgram):
        weights.check_values(model.state_dict(keep_vars=True))
        with torch.compiler.set_stance("default"), _in_mode(model, training), _hosts.refuse_draws():
            assigned, differs, changed, lost = _observe_calls(model, inputs, keywords or {}, repeat)
        missing |= {f"a change of the parameter {name}": [""] for name in assigned}
        missing |= {words: [""] for words in lost}
    # branches and loops are compiled on the way: a stance that forces another compiler would take them apart
    watched = custom_functions.record_functions(lambda name, where: missing[name].append(where))
    with torch.compiler.set_stance("default"), watched:
        if isinstance(model, torch.export.ExportedProgram):
            program, kind, names = model, _root_kind(model), {}
        else:
            kind = type(model).__name__
            for path in _names_with_hooks(model):
                missing["a hook that may change a gradient"].append(path)
            try:
                with _in_mode(model, training):
                    program, names = _export_model(model, inputs, dynamic_shapes, keywords or {}, repeat)
            except errors.TranslationError as error:
                raise (errors.TranslationError(_graph.list_missing(missing)) if missing else error) from error
        for block in _changes_without_gradient(program.graph):
            missing["a change under no_grad, or by detach, of a tensor that has a gradient"].append(_where(block))
        for call in _changed_while_lent(program.graph):
            words = f"a change in place of a result of {call.target}, which may be the argument that is read afterwards"
            missing[words].append(_where(call))
        tensors = [x for node in program.graph.nodes if (x := _tensor(node)) is not None]
        is_mapped = any(map(_internals.is_mapped, tensors))  # by `torch.func.vmap`, which the decompositions take out
        if is_mapped or _casts(program.graph) or _changes_a_view(program.graph, has_parts=True):
            program = _decompose_calls(program, {})
        modules = _first_paths(model) if isinstance(model, torch.nn.Module) else {}
        read = functools.partial(_Reader, kind=kind, names=names, modules=modules)
        graph = _read_translatable(program, read, missing, partial)
    unseen = _missed_updates(model, graph, changed) if changed else []
    if differs and not _graph.draws(graph.nodes):
        unseen.append("something that is kept from call to call, but is no buffer")
    if unseen:
        raise errors.TranslationError(_graph.list_missing({words: [""] for words in unseen}))
    return graph


def _observe_calls(
    model: torch.nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any], repeat: Any
) -> tuple[set[str], bool, set[str], list[str]]:
    """Call a model three times; return what it does that an export never sees.

    Returns:
        The parameters that a call changes; whether the last call gave something else than the first one, with a call
        with other inputs between them; the buffers that a call changes; and the changes of arguments that are lost.
    """
    params = {name for name, _ in model.named_parameters()}
    before = {name: weights.to_numpy(tensor) for name, tensor in _named_tensors(model).items()}
    changed: set[str] = set()
    results = []
    lost: list[str] = []
    for by in (1, 0.5, 1):
        args, named = _map_tensors(functools.partial(_scaled_copy, by=by, repeat=repeat), (tuple(inputs), keywords))
        arguments = inspect.signature(model.forward).bind(*args, **named).arguments
        given = _Given(arguments)
        with _dtypes_told(model, given), warnings.catch_warnings(), torch.no_grad(), torch.random.fork_rng([]):
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            leaves = _graph.leaves(_structure(_objects.open_objects(model(*args, **named))))
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            results.append([weights.to_numpy(leaf) for leaf in tensors])
            lost = given.lost(tensors)
        with torch.no_grad():
            for name, tensor in _named_tensors(model).items():
                if name in before and weights.to_numpy(tensor).tobytes() != before[name].tobytes():
                    changed.add(name)
                    tensor.copy_(weights.to_tensor(before[name]))
    same = len(results) < 3 or all(map(_is_close, results[0], results[2]))
    return changed & params, not same, changed - params, lost


@contextlib.contextmanager
def _dtypes_told(model: torch.nn.Module, given: _Given) -> Iterator[None]:
    """Raise what a model says of inputs of another dtype than its parameters; what else fails, the export tells."""
    try:
        yield
    except Exception as error:
        own, theirs = ({x.dtype for x in each} for each in (model.parameters(), (x for x, _ in given.tensors.values())))
        is_told = isinstance(error, RuntimeError) and re.search("dtype|datatype|scalar type", str(error))
        if is_told and own and theirs - own:
            names = [", ".join(sorted(map(str, dtypes))) for dtypes in (theirs, own)]
            raise errors.TranslationError(
                f"the model raised {error}; the inputs are {names[0]}, the parameters {names[1]}: cast the one or the other"
            ) from error


def _named_tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return parameters and buffers, those included that no checkpoint has."""
    return model.state_dict() | dict(model.named_buffers())


class _Given:
    """Arguments as they are before a call, by name."""

    def __init__(self, arguments: dict[str, Any]):
        self.arguments = arguments
        if others := [x for _, x in _objects.tensors(arguments) if not isinstance(x, torch.Tensor)]:
            raise errors.ArgumentTypeError(f"inputs must be tensors of PyTorch, got {type(others[0]).__name__}")
        self.tensors = {path: (x, _internals.version(x)) for path, x in _objects.tensors(arguments)}
        self.settings = dict(_objects.settings(arguments))

    def _has(self, path: _objects.Path, x: Any) -> bool:
        """Say whether a tensor is what it was, and where it was."""
        before, version = self.tensors.get(path, (None, 0))
        return before is x and version == _internals.version(x)

    def lost(self, results: list[Any]) -> list[str]:
        """Return the changes that a call made of arguments, and of what is in them, and that its results do not tell."""
        after = dict(_objects.tensors(self.arguments))
        returned = {(_internals.storage(x), x.shape) for x in results}
        words = [
            f"a change of the argument {_objects.path_text(path)}, which is not returned"
            for path, x in after.items()
            if not self._has(path, x) and (_internals.storage(x), x.shape) not in returned
        ]
        if after.keys() == self.tensors.keys():  # else it is another structure, which no next call gets
            words += [
                f"a change of the argument {_objects.path_text(path)} from {self.settings.get(path)!r} to {setting!r}, "
                "which is no tensor"
                for path, setting in _objects.settings(self.arguments)
                if path not in self.settings or not (setting is self.settings[path] or setting == self.settings[path])
            ]
        return words


def _map_tensors(change: Any, arguments: Any) -> Any:
    """Return nested arguments with copies of the objects in them, and of everything else what `change` makes of it."""
    return _objects.map_leaves(arguments, lambda _, leaf: change(leaf))


def _missed_updates(model: torch.nn.Module, graph: Graph, changed: set[str]) -> list[str]:
    """Return the buffers that a model changes and its graph does not."""
    buffers = dict(model.named_buffers(remove_duplicate=False))
    updates = [node.update for node in graph.nodes if node.update is not None]
    known = {id(x) for name, x in buffers.items() for path in updates if not path or f"{name}.".startswith(f"{path}.")}
    return [f"a change of the buffer {name}" for name in changed if id(buffers[name]) not in known]


def _scaled_copy(leaf: Any, by: float, repeat: Any) -> Any:
    leaf = repeat(leaf)
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return leaf * by if leaf.is_floating_point() else leaf.clone()


def _is_close(result: Any, other: Any) -> bool:
    """Say whether two results are the same but for the order of sums."""
    if not is_inexact(result):
        return bool((result == other).all())
    if result.dtype.kind not in "fc":  # no float to NumPy
        result, other = result.astype("float32"), other.astype("float32")
    largest = np.nan_to_num(np.abs(result), posinf=0.0).max(initial=0)
    return bool(np.allclose(result, other, rtol=1e-3, atol=1e-3 * largest, equal_nan=True))


def _decompose_calls(program: Any, table: dict[Any, Any]) -> Any:
    """Return a program without the calls in a table, or in-place calls, which has the gradients that it had."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            _mark_stopped(module.graph, program.graph_signature.output_specs)
            module.recompile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.run_decompositions(table)


def _mark_stopped(graph: Any, specs: Any) -> None:
    """Mark the results of `no_grad` blocks, which a decomposition would write as any other statements."""
    for block in graph.find_nodes(op="call_function", target=torch.ops.higher_order.wrap_with_set_grad_enabled):
        is_one = isinstance(block.meta["val"], torch.Tensor)
        for node in ([block] if is_one else list(block.users)) if block.args[0] is False else []:
            if _tensor(node) is None or not _tensor(node).is_floating_point():
                continue
            with graph.inserting_after(node):
                stopped = graph.call_function(torch.ops.multiop.stopped.default, (node,))
            stopped.meta = dict(node.meta)
            # who may change the tensor gets the tensor itself
            changing = {user for user in node.users if _mutated_tensor(user) is node or str(user.target) in _BLOCKS}
            node.replace_all_uses_with(stopped, lambda user, kept={stopped, *changing}: user not in kept)
            for spec in specs:
                if spec.arg.name == node.name:
                    spec.arg.name = stopped.name


def _read_translatable(program: Any, read: Callable[..., _Reader], missing: dict[str, Any], partial: bool) -> Graph:
    """Return the graph of a program in which calls without a row are those that PyTorch itself makes of them.

    If some are left that have no row, it is that of the same program, and an error names the lines that have them.
    """
    changed, done = program, set()
    while True:
        reader = read(changed)
        if not reader.untranslated:
            return reader.finish(missing)
        places = {place for where in reader.missing.values() for place in where}
        known = _internals.decompositions()
        calls_left = [target for target in reader.untranslated if _internals.is_operation(target)]
        table = {
            target: known.get(target) or _internals.decomposition_of(target)
            for target in calls_left
            if _may_be_written(target)
        }
        table = {target: made for target, made in table.items() if made is not None}
        if not table.keys() - done:
            return read(program, partial=partial).finish(missing, places)
        done |= table.keys()
        changed = _decompose_calls(changed, table)


def _converter(target: Any) -> Row | None:
    """Return the user's converter of a call, or of the call that returns what an in-place one writes."""
    packet, overload = _internals.names(target)
    packets = [packet, packet.removesuffix("_")] if _internals.schema(target).is_mutable else [packet]
    full = [f"{target.namespace}::{each}" for each in packets]
    return _converters.find("torch", *[name for each in full for name in (f"{each}.{overload or 'default'}", each)])


def _may_be_written(target: Any) -> bool:
    """Say whether a call has the gradient of the calls that PyTorch makes of it.

    PyTorch differentiates some calls through these; others have a formula, which agrees but for options that are about
    the gradient alone. Those are what is refused where there is a row, and embeddings have them.
    """
    packet, overload = _internals.names(target)
    has_row = packet in operations.ROWS or f"{packet}.{overload}" in operations.ROWS
    is_composite = _internals.is_composite(target)
    draws = torch.Tag.nondeterministic_seeded in target.tags
    is_lookup = "embedding" in packet and not packet.endswith("_loss")
    return target.namespace == "aten" and not is_lookup and not draws and (is_composite or not has_row)


def _names_with_hooks(model: torch.nn.Module) -> list[str]:
    """Return the modules and parameters that have hooks for the backward pass, which an export forgets."""
    named = [*model.named_modules(), *model.named_parameters()]
    return [path or "the model" for path, owner in named if _internals.has_backward_hooks(owner)]


def _first_paths(model: torch.nn.Module) -> dict[str, str]:
    """Return for each path of a module that has several the first of them, which its parameters have too."""
    first = {id(module): path for path, module in model.named_modules()}
    return {
        path: first[id(module)]
        for path, module in model.named_modules(remove_duplicate=False)
        if path != first[id(module)]
    }


def _root_kind(program: Any) -> str:
    for node in program.graph.nodes:
        for _, kind in (node.meta.get("nn_module_stack") or {}).values():
            return (kind if isinstance(kind, str) else kind.__name__).rpartition(".")[2]
    return "Model"


def _export_model(
    model: torch.nn.Module, inputs: tuple[Any, ...], dynamic_shapes: Any, keywords: dict[str, Any], repeat: Any
) -> tuple[Any, _Names]:
    """Return the program of a model, and the names that the caller gave to sizes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamic_shapes is None:
            inputs, keywords = _map_tensors(repeat, (tuple(inputs), keywords))
        inputs, keywords = _map_tensors(_copy, (tuple(inputs), keywords))  # one tensor given twice is two inputs
        args, named = _objects.open_objects(tuple(inputs)), _objects.open_objects(keywords)
        arguments = dict(inspect.signature(model.forward).bind(*args, **named).arguments)
        names: _Names = {}
        if dynamic_shapes is None:
            auto = torch.export.Dim.AUTO

            def first_open(leaf: Any) -> Any:
                return {0: auto} if isinstance(leaf, torch.Tensor) and leaf.ndim and leaf.shape[0] > 1 else None

            dynamic_shapes = pytree.tree_map(first_open, arguments)
        else:
            by_name = isinstance(dynamic_shapes, dict)
            spec = dict.fromkeys(arguments) | dynamic_shapes if by_name else dynamic_shapes
            named_sizes: dict[int, dict[int, str]] = {}
            dynamic_shapes = _spread(spec, arguments if by_name else tuple(arguments.values()), named_sizes)
            names = {path: named_sizes.get(id(x), {}) for path, x in _objects.tensors((args, named))}
        opened: dict[str, Any] = {}

        def export() -> Any:
            opened.clear()
            with written.keep_sizes_open(), _with_objects(model, (tuple(inputs), keywords), names, opened):
                return torch.export.export(model, args, named, dynamic_shapes=dynamic_shapes, strict=False)

        try:
            program = export()
            _refuse_fixed(model, opened, export)
        except errors.TranslationError:
            raise
        except Exception as error:
            raise errors.TranslationError(_hosts.cannot_trace("torch.export", type(model).__name__, error)) from error
        return program, {path[1:]: sizes for path, sizes in names.items()}


def _refuse_fixed(model: Any, opened: dict[str, Any], export: Callable[[], Any]) -> None:
    """Raise for a size that has a name, so is to stay open, where an export has put a number in its place."""
    for name, size in opened.items():
        fixed = _internals.fixed_size(size)
        if fixed is not None:
            number, place = fixed
            if not place or not _hosts.is_own(place):
                with _Fixing(opened, name) as fixing:  # once more, to find the line
                    export()
                place = fixing.place
            raise errors.TranslationError(
                f"the size {name} is to stay open, and {type(model).__name__} fixes it to {number}"
                + (f", at {place}" if place else "")
            )


class _Fixing(TorchFunctionMode):
    """Tells at which line of the user's source a size is fixed."""

    def __init__(self, opened: dict[str, Any], name: str):
        super().__init__()
        self.opened, self.name, self.place = opened, name, ""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if not self.place and self.name in self.opened and _internals.fixed_size(self.opened[self.name]):
            stack = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_stack()]
            self.place = next(filter(_hosts.is_own, reversed(stack)), "")
        return result


@contextlib.contextmanager
def _with_objects(model: torch.nn.Module, like: Any, names: _Names, sizes: dict[str, Any]) -> Iterator[None]:
    """Let a model take and return dicts in the place of objects, since an export knows no others.

    Sizes that have one name are one; `sizes` is filled with them.
    """

    def before(_: Any, args: Any, keywords: Any) -> Any:
        for path, x in _objects.tensors((args, keywords)):
            for axis, name in names.get(path, {}).items():
                torch._check(sizes.setdefault(name, x.shape[axis]) == x.shape[axis])
        return _objects.close_objects((args, keywords), like)

    hooks = [
        model.register_forward_pre_hook(before, prepend=True, with_kwargs=True),
        model.register_forward_hook(lambda _, args, outputs: _objects.open_objects(outputs)),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _spread(spec: Any, tree: Any, names: dict[int, dict[int, str]]) -> Any:
    """Return the open dimensions of nested arguments in the terms of `torch.export`.

    Args:
        spec: The dimensions as they are given. A dict from axis to size in the place of a structure is that of each
            tensor in it; a size may be a name.
        tree: The arguments.
        names: Filled with the names: by the id of a tensor, then by axis.
    """
    is_axes = isinstance(spec, dict) and bool(spec) and all(isinstance(axis, int) for axis in spec)
    if isinstance(tree, torch.Tensor) and (is_axes or isinstance(spec, (list, tuple))):
        axes = {axis: size for axis, size in (spec.items() if is_axes else enumerate(spec)) if axis < tree.ndim}
        for axis, size in axes.items():
            if isinstance(size, str) and tree.shape[axis] < 2:
                words = f"the size {size} is open, but {tree.shape[axis]} in an example: take examples of at least 2"
                raise errors.ArgumentError(f"{words}, which PyTorch does not take for constants")
        names[id(tree)] = {axis: size for axis, size in axes.items() if isinstance(size, str)}
        return {axis: torch.export.Dim.AUTO if isinstance(size, str) else size for axis, size in axes.items()}
    if isinstance(tree, dict) and isinstance(spec, dict):
        parts = {name: _spread(spec if is_axes else spec.get(name), part, names) for name, part in tree.items()}
        return parts if is_axes else {**spec, **parts}
    if isinstance(tree, (list, tuple)) and (is_axes or isinstance(spec, (list, tuple))):
        specs = [spec] * len(tree) if is_axes else spec
        if len(specs) != len(tree):
            raise errors.ArgumentError(f"dynamic_shapes: {len(specs)} entries where there are {len(tree)} arguments")
        return type(tree)([_spread(part, inner, names) for part, inner in zip(specs, tree, strict=True)])
    return spec


def _copy(leaf: Any) -> Any:
    return leaf.detach().clone().requires_grad_(leaf.requires_grad) if isinstance(leaf, torch.Tensor) else leaf


def _more_than_one(leaf: Any) -> Any:
    """Repeat an example whose first dimension is 1, which `torch.export` would take for a constant."""
    is_one = isinstance(leaf, torch.Tensor) and leaf.ndim and leaf.shape[0] == 1
    return torch.cat([leaf, leaf]) if is_one else leaf


def _twice(leaf: Any) -> Any:
    """Repeat any example: the first dimension of some may be a multiple of the batch."""
    return torch.cat([leaf, leaf]) if isinstance(leaf, torch.Tensor) and leaf.ndim else leaf


REPEATS = (_more_than_one, _twice, lambda leaf: leaf)


@contextlib.contextmanager
def _in_mode(model: torch.nn.Module, training: bool) -> Iterator[None]:
    modes = {module: module.training for module in model.modules()}
    if model.training is not training:
        model.train(training)
    classes = {module: type(module) for module in modes}
    for module, kind in classes.items():
        for own in (_Attention, _Normalization, _Encoder, _Decoder, *written.NETWORKS):
            if isinstance(module, own.__base__):  # this module alone: others may run in another thread
                module.__class__ = _below(kind, own)
    try:
        with written.plain_kernels():
            yield
    finally:
        for module, mode in modes.items():
            module.__class__, module.training = classes[module], mode


def _below(kind: type, written: type) -> type:
    """Return a class like `kind` whose `forward`, or what that calls by `super()`, is the one that is written here."""
    bases = (written,) if kind is written.__base__ else (kind, written)
    return type(kind.__name__, bases, {"__module__": kind.__module__, "__qualname__": kind.__qualname__})


class _Attention(torch.nn.MultiheadAttention):
    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        """Compute what `MultiheadAttention` does, in the steps that a person would write."""
        drops = self.training and self.dropout > 0
        has_one_size = _internals.projects_one_size(self)
        unusual = self.bias_k is not None or self.add_zero_attn or not has_one_size or query.dim() != 3
        if unusual or (need_weights and drops):
            options = (key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal)
            return super().forward(query, key, value, *options)
        F = torch.nn.functional
        if query is key and key is value:
            query = query if self.batch_first else query.transpose(0, 1)
            q, k, v = F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        else:
            biases = [None] * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
            operands = [x if self.batch_first else x.transpose(0, 1) for x in (query, key, value)]
            q, k, v = map(F.linear, operands, self.in_proj_weight.chunk(3), biases)
        q, k, v = (x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2) for x in (q, k, v))
        masks = [] if key_padding_mask is None else [key_padding_mask[:, None, None, :]]
        if attn_mask is not None:
            masks.append(attn_mask if attn_mask.dim() == 2 else attn_mask.unflatten(0, (-1, self.num_heads)))
        masks = [
            torch.zeros_like(mask, dtype=q.dtype).masked_fill(mask, -math.inf) if mask.dtype == torch.bool else mask
            for mask in masks
        ]
        bias = sum(masks[1:], masks[0]) if masks else None
        y = F.scaled_dot_product_attention(q, k, v, bias, self.dropout if drops else 0.0)
        y = self.out_proj(y.transpose(1, 2).flatten(2))
        weights = None
        if need_weights:
            weights = q @ k.transpose(-1, -2) * self.head_dim**-0.5
            weights = torch.softmax(weights if bias is None else weights + bias, -1)
            weights = weights.mean(1) if average_attn_weights else weights
        return (y if self.batch_first else y.transpose(0, 1)), weights


class _Encoder(torch.nn.TransformerEncoder):
    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        """Compute what `TransformerEncoder` does, without a look at the mask: that it is causal is a hint."""
        return super().forward(src, mask, src_key_padding_mask, bool(is_causal))


class _Decoder(torch.nn.TransformerDecoder):
    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        """Compute what `TransformerDecoder` does, without a look at the mask: that it is causal is a hint."""
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return super().forward(tgt, memory, *masks, bool(tgt_is_causal), memory_is_causal)


class _Normalization(_internals.BatchNorm):
    def forward(self, input):  # noqa: A002 - as in PyTorch
        """Compute what `BatchNorm` does, without a Python number of its count: `momentum=None` averages all batches."""
        if self.momentum is not None or self.running_mean is None or not self.training:
            return super().forward(input)
        _internals.check_rank(self, input)
        mean, var = torch.zeros_like(self.running_mean), torch.zeros_like(self.running_var)
        y = torch.nn.functional.batch_norm(input, mean, var, self.weight, self.bias, True, 1.0, self.eps)
        with torch.no_grad():
            self.num_batches_tracked.add_(1)
            share = 1 / self.num_batches_tracked.to(mean.dtype)
            self.running_mean.add_(share * (mean - self.running_mean))
            self.running_var.add_(share * (var - self.running_var))
        return y


def _tensor(node: Any) -> Any:
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return value if isinstance(value, torch.Tensor) else None


def _storage(node: Any) -> int | None:
    value = _tensor(node)
    return None if value is None else _internals.storage(value)


def _casts(graph: Any) -> bool:
    """Say whether an autocast is on in a graph, which the decompositions write as casts."""
    blocks = graph.find_nodes(op="call_function", target=torch.ops.higher_order.wrap_with_autocast)
    return any(block.args[2] is not False for block in blocks)


def _changes_a_view(graph: Any, has_parts: bool = False) -> bool:
    """Say whether a call changes memory that is read through another tensor afterwards, or by `out=`.

    Args:
        graph: The graph.
        has_parts: Whether what changes a view changes the tensor too, and its other views.
    """
    nodes = list(_with_blocks(graph))
    order, origins = {node: number for number, node in enumerate(nodes)}, _origins(nodes)
    roots = _roots(graph, origins) if has_parts else {}
    sharing: dict[int, list[Any]] = collections.defaultdict(list)
    for node in nodes:
        if (storage := _storage(node)) is not None:
            sharing[storage].append(node)
    kept = set(graph.find_nodes(op="placeholder"))  # what is read when the model returns
    for node in nodes:
        if _writes(node):
            return True
        changed = _mutated_tensor(node)
        for statistic in _statistics(node) if changed is None else [changed]:
            same = {statistic, *_chain(statistic, origins)}
            if statistic in roots and _tensor(roots[statistic]).ndim:  # a count has no views that a statement keeps
                same |= {other for other in sharing[_storage(statistic) or 0] if roots.get(other) is roots[statistic]}
            root = _tensor([statistic, *_chain(statistic, origins)][-1])
            for other in sharing[_storage(statistic) or 0]:
                is_name = not other.users and _part_of_memory(_tensor(other)) == _part_of_memory(root)  # another one
                is_later = (other in kept and not is_name) or any(order[user] > order[node] for user in other.users)
                if other is not node and other not in same and order[other] < order[node] and is_later:
                    return True
    return False


def _part_of_memory(x: Any) -> tuple[Any, ...]:
    return x.shape, x.stride(), x.storage_offset()


def _changed_while_lent(graph: Any) -> Iterator[Any]:
    """Yield the calls that may return an argument's memory, unknown to the export, where a change shows in both."""
    nodes = list(_with_blocks(graph))
    order = {node: number for number, node in enumerate(nodes)}
    calls = [node for node in nodes if str(node.target).removeprefix("aten.").partition(".")[0] in _LENDING]
    calls = [call for call in calls if "einsum" not in str(call.target) or len(call.args[1]) == 1]
    results = [(call, y) for call in calls for y in (call, *call.users) if y is call or y.target is operator.getitem]
    lent = {_storage(y): call for call, y in results if _tensor(y) is not None}
    for node in nodes:
        call, seen = lent.get(_storage(changed) if (changed := _mutated_tensor(node)) else None), set()
        while call not in (None, *seen):
            seen.add(call)
            memory, made = {_storage(x) for x in call.all_input_nodes}, {call}
            made |= {x for x in nodes if not made.isdisjoint(x.all_input_nodes) and not made.add(x)}
            others = [x for x in nodes if _storage(x) in memory and x not in made]
            if any(order[user] > order[node] for x in others for user in x.users):
                yield call
            call = next((lent[each] for each in memory if each in lent), None)


def _statistics(node: Any) -> list[Any]:
    """Return the running statistics that a normalization changes."""
    is_normalization = str(node.target) in ("aten.batch_norm.default", "aten.instance_norm.default")
    return [arg for arg in node.args[3:5] if arg is not None] if is_normalization and node.args[5] else []


def _changes_without_gradient(graph: Any) -> Iterator[Any]:
    """Yield the `no_grad` blocks and the calls of `detach` that let a tensor change behind its gradient."""
    for block in graph.find_nodes(op="call_function", target=torch.ops.higher_order.wrap_with_set_grad_enabled):
        if block.args[0] is False:
            inner, operands = _block(block)
            changed = {_storage(x) for node in _with_blocks(inner) if (x := _mutated_tensor(node)) is not None}
            if any(_storage(operand) in changed and _has_gradient(operand) for operand in operands):
                yield block
    order = {node: number for number, node in enumerate(graph.nodes)}
    for block in graph.find_nodes(op="call_function", target=torch.ops.aten.detach.default):
        if _storage(block) is not None and _has_gradient(block.args[0]):
            memory = [x for x in order if _storage(x) == _storage(block)]
            made: set[Any] = set()  # what was detached, and its views
            for x in memory:
                made |= {x} if x.target == block.target or (x.args and x.args[0] in made) else set()
            last = max((order[x] for x in order if _mutated_tensor(x) in made), default=len(order))
            if any(order[y] > last for x in memory if x not in made for y in x.users if y.target != block.target):
                yield block


def _has_gradient(node: Any) -> bool:
    """Say whether a tensor is computed from a parameter or from an input."""
    queue, seen = [node] if node.op != "placeholder" else [], set()
    while queue:
        source = queue.pop()
        tensor = _tensor(source)
        stops = "detach" in str(source.target) or str(source.target) in _BLOCKS
        if source in seen or stops or tensor is None or not tensor.is_floating_point():
            continue
        if source.op == "placeholder" and not source.name.startswith(("b_", "c_")):
            return True
        seen.add(source)
        queue += source.all_input_nodes
    return False


def _writes(node: Any) -> bool:
    """Say whether a call is given a tensor to write its result into, as by `out=`."""
    schema = _internals.schema(node.target) if node.op == "call_function" else None
    return schema is not None and any(argument.is_out for argument in schema.arguments)


def _with_blocks(graph: Any) -> Iterator[Any]:
    """Yield the nodes of a graph in order, those of a `with` block behind the node that calls it."""
    for node in graph.nodes:
        yield node
        if str(node.target) in _BLOCKS:
            yield from _with_blocks(_block(node)[0])


def _block(node: Any) -> tuple[Any, list[Any]]:
    """Return the graph of a `with` block, and its operands."""
    count = _BLOCKS[str(node.target)]
    return getattr(node.graph.owning_module, node.args[count].target).graph, list(node.args[count + 1 :])


def _origins(nodes: Collection[Any]) -> dict[Any, Any]:
    """Return for each node whose tensor is that of another node that node: what it changes, is given or hands out."""
    origins = {node: changed for node in nodes if (changed := _mutated_tensor(node)) is not None}
    firsts: dict[Any, Any] = {}
    for node in nodes:
        tensor = _tensor(node) if node.op == "placeholder" else None
        if tensor is not None and all(isinstance(size, int) and size for size in tensor.shape):
            first = firsts.setdefault((_storage(node), tensor.storage_offset(), tensor.shape, tensor.stride()), node)
            origins |= {node: first} if first is not node else {}
        if str(node.target) in _BLOCKS:
            graph, operands = _block(node)
            origins |= zip(graph.find_nodes(op="placeholder"), operands, strict=True)
            (output,) = graph.find_nodes(op="output")
            results = output.args[0]
            if isinstance(results, (tuple, list)):
                origins |= {user: results[user.args[1]] for user in node.users if user.target is operator.getitem}
            else:
                origins[node] = results
    return origins


def _chain(node: Any, origins: dict[Any, Any]) -> list[Any]:
    """Return the nodes that are the same tensor as `node`, before it."""
    aliases = []
    while (node := origins.get(node)) is not None:
        aliases.append(node)
    return aliases


def _view_source(node: Any) -> Any:
    """Return the tensor that a call returns a view of, if a change of this can be made one of the tensor."""
    source = node.args[0] if _storage(node) is not None and _internals.is_operation(node.target) and node.args else None
    if not isinstance(source, torch.fx.Node) or _storage(source) != _storage(node) or _converter(node.target):
        return None
    is_known = _internals.names(node.target)[0] in (*_PARTS, *_PERMUTED, *_RESHAPED)
    return source if is_known and _tensor(source).dtype == _tensor(node).dtype else None


def _roots(graph: Any, origins: dict[Any, Any]) -> dict[Any, Any]:
    """Return for each node the one whose memory it shows, unless a call makes a name another view of it."""
    roots: dict[Any, Any] = {}
    for node in graph.nodes:
        roots[node] = roots.get(origins.get(node) or _view_source(node), node)
    other = [x for x in roots if torch.Tag.inplace_view in getattr(x.target, "tags", ()) and "detach" not in x.name]
    return {} if other else roots


def _mutated_tensor(node: Any) -> Any:
    """Return the tensor that a call changes in place."""
    schema = _internals.schema(node.target) if node.op == "call_function" else None
    if schema is None or not schema.is_mutable or not schema.name.endswith("_"):
        return None
    return node.args[0] if isinstance(node.args[0], torch.fx.Node) else None


class _Reader:
    def __init__(self, program: Any, kind: str, names: _Names, modules: Mapping[str, str], partial: bool = False):
        self.program, self.kind, self.partial = program, kind, partial
        self.modules = modules  # a path of a module that has several -> the first of them
        self.untranslated: set[Any] = set()  # the calls that have no translation
        self.normalized: set[str] = set()  # the batch normalizations whose new statistics a statement returns
        self.entries: dict[Any, Expression] = {}  # node -> what stands for it
        self.buffers: dict[Any, str] = {}  # node of a buffer -> its path
        self.keys: dict[Any, tuple[Any, ...]] = {}  # node of a part of a tensor -> which one
        self.nodes: list[Node] = []
        self.origins = _origins(list(_with_blocks(program.graph)))  # node -> the node whose tensor it is
        self.roots = _roots(program.graph, self.origins)
        self.missing: dict[str, list[str]] = collections.defaultdict(list)
        self.symbols: dict[str, str] = {}
        self.made: dict[int, Node] = {}  # a value -> the statement that computes it
        self.current: Any = None
        self.place = ""  # the line that calls the function whose statements are read
        pulls = program.graph.find_nodes(op="call_function", target=torch.ops.multiop.gradient.default)
        self.pulled = {x for node in pulls for x in node.args[2]}  # the nodes that a derivative is with respect to
        self.leaves: dict[str, Value] = {}
        self.inputs: list[Value] = []
        self.params: dict[str, Any] = {}
        self.frozen: list[str] = []
        self.state: dict[str, Any] = {}
        self._name_sizes(names)
        self._placeholders()
        self.tracked = self._tracked_submodules()
        for node in program.graph.nodes:
            self._read(node)

    def finish(self, missing: dict[str, list[str]], stuck: Collection[str] = ()) -> Graph:
        """Return the graph, or raise for what is missing, of that what is at the lines in `stuck`."""
        missing = missing | self.missing
        stuck_at = {name: places for name, places in missing.items() if not stuck or set(stuck) & set(places)}
        if missing:
            raise errors.TranslationError(_graph.list_missing(stuck_at or missing))
        outputs = self._outputs()
        nodes = _graph.without_dead(self.nodes, outputs)
        graph = Graph(self.kind, self.inputs, self.params, self.state, nodes, outputs, self.leaves, "PyTorch")
        graph.paths, graph.constants = self._paths()
        graph.guards, graph.frozen = self._guards(), self.frozen
        return graph

    # inputs and leaves

    def _placeholders(self) -> None:
        from torch.export.graph_signature import InputKind

        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        shared: dict[Any, Value] = {}
        for node in self.program.graph.nodes:
            if node.op != "placeholder":
                continue
            spec = specs[node.name]
            if spec.kind == InputKind.USER_INPUT:
                if _tensor(node) is None:
                    self.entries[node] = node.meta.get("val")
                    if isinstance(self.entries[node], (torch.SymInt, torch.SymFloat)):
                        self.missing["an input that is a Python number"].append("")
                    continue
                self.inputs.append(self._skeleton(node.meta["val"], "input", _plain(node.name)))
                self.entries[node] = self.inputs[-1]
                continue
            tensor = self._leaf(spec)
            is_parameter = spec.kind == InputKind.PARAMETER
            if spec.kind == InputKind.CONSTANT_TENSOR and tensor.numel() == 1 and not tensor.is_complex():
                self.entries[node] = _Constant(tensor.item(), self._skeleton(node.meta["val"], "local", ""))
                continue
            path = spec.target
            read_as = (tensor.dtype, tensor.is_conj(), tensor.is_neg(), tensor.shape, tensor.stride())
            memory = (tensor.data_ptr(), *read_as) if tensor.numel() else path
            if memory in shared:  # one tensor under two names is one leaf, under the first of them
                self.entries[node] = shared[memory]
                continue
            kept = self.params if is_parameter else self.state
            kept[path] = weights.to_numpy(tensor)
            if is_parameter and self._is_frozen(path):
                self.frozen.append(path)
            value = self._skeleton(node.meta["val"], "params" if is_parameter else "state", path)
            self.leaves[path] = self.entries[node] = value
            shared[memory] = value
            if spec.kind == InputKind.BUFFER:
                self.buffers[node] = path

    def _name_sizes(self, names: _Names) -> None:
        """Give open sizes the names that the caller has for them."""
        for path, node in self._arguments()[1] if names else ():
            for axis, name in names.get(tuple(path), {}).items():
                self.symbols[str(_tensor(node).shape[axis].node.expr)] = name

    def _arguments(self) -> tuple[list[Any], list[tuple[list[int | str], Any]]]:
        """Return the nodes of the inputs, and where each is among the arguments."""
        from torch.export.graph_signature import InputKind

        specs = self.program.graph_signature.input_specs
        kinds = {spec.arg.name: spec.kind for spec in specs}
        nodes = [node for node in self.program.graph.nodes if node.op == "placeholder"]
        given = [node for node in nodes if kinds[node.name] == InputKind.USER_INPUT]
        args, keywords = self.program.call_spec.in_spec.unflatten(given)
        return given, [*_leaves_of(list(args)), *_leaves_of(keywords)]

    def _paths(self) -> tuple[Any, Any]:
        """Return where each input is among the arguments, and the arguments that are no tensors."""
        given, arguments = self._arguments()
        placed, constants = [], []
        for path, node in arguments:
            if _tensor(node) is None:
                constants.append((path, node.meta.get("val")))
            else:
                placed.append((given.index(node), path))
        placed.sort(key=lambda pair: pair[0])
        return [path for _, path in placed], constants

    def _is_frozen(self, path: str) -> bool:
        leaf = self.program.state_dict.get(path)
        return leaf is not None and not leaf.requires_grad and (leaf.is_floating_point() or leaf.is_complex())

    def _leaf(self, spec: Any) -> Any:
        for place in (self.program.state_dict, self.program.constants):
            if spec.target in place:
                return place[spec.target].detach()
        raise errors.TranslationError(f"{spec.target} is neither in the state_dict nor among the constants")

    # values

    def _skeleton(self, value: Any, kind: str = "local", name: str = "") -> Value:
        return Value(tuple(map(self._size, value.shape)), operations.name_of(value.dtype), kind, name)

    def _skeletons(self, value: Any) -> Any:
        """Return what stands for the tensors of a result, which is one or several."""
        if isinstance(value, (tuple, list)):
            return tuple(self._skeleton(part) if isinstance(part, torch.Tensor) else None for part in value)
        return self._skeleton(value)

    def _size(self, size: Any) -> Any:
        if isinstance(size, int):
            return size
        return sizes.size(size.node.expr, self._symbol)

    def _symbol(self, symbol: str) -> str:
        """Return the name of an open size."""
        return self.symbols.setdefault(symbol, "batch" if not self.symbols else f"size{len(self.symbols)}")

    def _guards(self) -> list[str]:
        """Return what the open sizes of the inputs have to fulfil, where this is not plain from their names."""
        placeholders = self.program.graph.find_nodes(op="placeholder")
        opened = [size for node in placeholders if (x := _tensor(node)) is not None for size in x.shape]
        known = set(self.symbols)
        relations = [guard for guard in _internals.guards(opened) if {str(x) for x in guard.free_symbols} <= known]
        return list(dict.fromkeys(sizes.size_text(sizes.expression(each, self._symbol)) for each in relations))

    def _argument(self, argument: Any, is_first: bool = True) -> Expression:
        if isinstance(argument, torch.fx.Node):
            value = argument.meta.get("val")
            if isinstance(value, torch.SymInt):
                return self._size(value)
            if isinstance(value, (torch.SymFloat, torch.SymBool)):
                number = sizes.expression(value.node.expr, self._symbol)
                return number if isinstance(number, (float, bool)) else Number(number)
            entry = self.entries[argument]
            if isinstance(entry, _Packed):
                raise Untranslated("the entries of a packed sequence, outside of a recurrent network")
            if isinstance(entry, _Constant) and not is_first and not entry.value.shape:
                return entry.number  # a tensor without dimensions promotes as a Python number does
            return _as_value(self, entry)
        if isinstance(argument, (list, tuple)):
            return tuple(self._argument(part) for part in argument)
        if isinstance(argument, torch.dtype):
            return operations.name_of(argument)
        if isinstance(argument, (torch.SymFloat, torch.SymBool)):
            return Number(sizes.expression(argument.node.expr, self._symbol))
        return self._size(argument) if isinstance(argument, torch.SymInt) else argument

    # calls

    def _read(self, node: Any) -> None:
        if node.op != "call_function":
            return
        self.current = node
        value = node.meta.get("val")
        if node.target is operator.getitem:
            source = self.entries.get(node.args[0])
            if isinstance(source, (tuple, list)):
                self.entries[node] = source[node.args[1]]
            return
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)):
            return
        name = str(node.target)
        if name in _BLOCKS:
            self._inline(node, name)
            return
        if any(part in name for part in _NO_VALUE):
            return
        try:
            self._translate(node)
            if node in self.pulled and isinstance(entry := self.entries[node], Value):
                self.entries[node] = Value(entry.shape, entry.dtype, name=entry.name)
                self._add([self.entries[node]], entry)  # the derivative is with respect to this one alone
        except Untranslated as reason:
            self._miss(node, str(reason))

    def _inline(self, node: Any, name: str) -> None:
        """Read the statements of a `with` block; what `no_grad` computes has no gradient."""
        options, (graph, operands) = node.args[: _BLOCKS[name]], _block(node)
        if name == "wrap_with_autocast" and options[2] is not False:
            self._miss(node, "an autocast that is on")
            return
        for inner in graph.nodes:
            if inner.op == "placeholder":
                self.entries[inner] = self.entries.get(operands.pop(0))
                continue
            if inner.op == "output":
                results = inner.args[0]
                break
            self._read(inner)
        self.current = node
        stops = name == "wrap_with_set_grad_enabled" and options[0] is False
        listed = results if isinstance(results, (tuple, list)) else [results]
        stopped = [self._stop_gradient(self.entries[item]) if stops else self.entries[item] for item in listed]
        self.entries[node] = tuple(stopped) if isinstance(results, (tuple, list)) else stopped[0]

    def _stop_gradient(self, value: Any) -> Any:
        """Return a value without a gradient."""
        if isinstance(value, Value) and "float" in value.dtype and _graph.is_differentiated(value, self.made):
            return self._bind(Call("ops.stop_gradient", (value,)), Value(value.shape, value.dtype))
        return value

    def _bridge_call(self, node: Any) -> bool:
        """Leave a bridge to a call of ATen, if it is a function of its tensors."""
        target, results = node.target, node.meta.get("val")
        listed = results if isinstance(results, (tuple, list)) else [results]
        if not _internals.is_operation(target) or not all(isinstance(item, torch.Tensor) for item in listed):
            return False
        tags = {torch.Tag.nondeterministic_seeded, torch.Tag.inplace_view}
        if target.namespace != "aten" or _internals.schema(target).is_mutable or tags & set(target.tags):
            return False
        tensors: list[Expression] = []

        def own(argument: Any) -> str | None:
            if isinstance(argument, torch.fx.Node) and _tensor(argument) is not None:
                tensors.append(self._argument(argument))
                return f"x{len(tensors)}"
            return repr(argument) if isinstance(argument, torch.dtype) else None

        try:
            given = [_rows.as_python(argument, own) for argument in node.args]
            given += [
                f"{name}={_rows.as_python(argument, own)}"
                for name, argument in node.kwargs.items()
                if name not in _IGNORED
            ]
        except Untranslated:
            return False
        names = ", ".join(f"x{i + 1}" for i in range(len(tensors)))
        packet, overload = _internals.names(target)
        source = f"lambda {names}: torch.ops.aten.{packet}.{overload or 'default'}({', '.join(given)})"
        call = Apply(Foreign(packet, source, "torch"), tuple(tensors))
        self.entries[node] = self._bind(call, self._skeletons(results))
        return True

    def _miss(self, node: Any, reason: str = "") -> None:
        self.untranslated.add(node.target)
        if self.partial and self._bridge_call(node):
            return
        name = str(node.target).removesuffix(".default")
        self.missing[f"{name}: {reason}" if reason else name].append(_where(node) or self.place)
        value = node.meta.get("val")
        if isinstance(value, (tuple, list, torch.Tensor)):
            self.entries[node] = self._skeletons(value)

    def _translate(self, node: Any) -> None:
        control = {"cond": self._cond, "while_loop": self._while_loop, "scan": self._scan, "map_impl": self._map}
        if _internals.is_higher_order(node.target) and str(node.target) in control:
            control[str(node.target)](node)
            return
        if not _internals.is_operation(node.target):
            self._miss(node)
            return
        if node.target is torch.ops.multiop.custom_function.default:
            self._custom(node)
            return
        if node.target.namespace == "multiop" and (own := self._own.get(_internals.names(node.target)[0])) is not None:
            own(self, node)
            return
        if node.target is torch.ops.multiop.stopped.default:
            self.entries[node] = self._stop_gradient(self.entries[node.args[0]])
            return
        schema = _internals.schema(node.target)
        bound = {argument.name: arg for argument, arg in zip(schema.arguments, node.args, strict=False)}
        bound |= node.kwargs
        changed = _mutated_tensor(node)
        if changed is not None and self._is_count(node, changed):
            return
        packet, overload = _internals.names(node.target)
        base = packet.removesuffix("_") if changed is not None else packet
        own = _converter(node.target)
        if own is not None:
            self._write(node, own, bound)
            return
        if node.target.namespace not in ("aten", "multiop"):
            base = f"{node.target.namespace}::{base}"
        if base in _BATCH_NORMS and bound["training"] and bound["running_mean"] is not None:
            if self._tracked_by(node) in self.tracked:
                self._batch_norm(node, bound)
                return
            statistics = self._move(node, bound)
            if isinstance(node.meta["val"], tuple):
                y = self._bind(
                    operations.batch_norm(**self._bind_arguments(operations.batch_norm, node.target, bound, None)),
                    self._skeleton(node.meta["val"][0]),
                )
                self.entries[node] = (y, None, None, *statistics)
                return
        if base == "instance_norm" and bound["use_input_stats"] and bound["running_mean"] is not None:
            self._move(node, bound, each=True)
        row = operations.ROWS.get(f"{base}.{overload}") or operations.ROWS.get(base)
        if row is None:
            self._miss(node)
            return
        if base in ("lift_fresh_copy", "lift_fresh", "clone", "detach", "alias") and isinstance(
            self.entries.get(node.args[0]), _Constant
        ):
            self.entries[node] = self.entries[node.args[0]]
            return
        if base == "as_strided" and not _internals.is_whole(_tensor(node.args[0])):
            raise Untranslated("of a view of other memory")
        self._write(node, row, bound)

    def _write(self, node: Any, row: Row, bound: dict[str, Any]) -> None:
        """Add the statement that a row makes of a call."""
        changed = _mutated_tensor(node)
        out = self._skeletons(node.meta.get("val"))
        names = inspect.signature(row).parameters
        if changed is not None and "self" in bound and "self" not in names and "input" in names:
            bound = {"input" if name == "self" else name: argument for name, argument in bound.items()}
        arguments = self._bind_arguments(row, node.target, bound, out)
        try:
            expression = row(**arguments)
        except TypeError:
            if not any(isinstance(part, (Dim, Number)) for part in _graph.walk(list(arguments.values()))):
                raise
            raise Untranslated("with a number that depends on an open size") from None
        if _internals.names(node.target)[0] in _PARTS:
            self.keys[node] = getattr(expression, "key", ())
        self.entries[node] = self._bind(expression, out)
        if changed is not None:
            self._replace(changed, self.entries[node])

    def _bind_arguments(self, row: Any, target: Any, bound: dict[str, Any], out: Any) -> dict[str, Any]:
        parameters = inspect.signature(row).parameters
        takes_all = _rows.takes_all(row)
        arguments: dict[str, Any] = {}
        first = next(iter(bound.values()), None)
        defaults = _internals.defaults(target)
        for name, argument in bound.items():
            if name in _IGNORED and not _converters.is_converter(row):
                continue
            if name in parameters or takes_all:
                arguments[name] = self._argument(argument, is_first=argument is first)
            elif argument is not None and (name not in defaults or argument != defaults[name]):
                raise Untranslated(f"with {name}={argument}")
        return arguments | _rows.special(row, out=out, emit=self._emit)

    def _scopes(self, node: Any) -> tuple[Scope, ...]:
        """Return the modules that a call belongs to; one that has several paths has the first of them."""
        scopes = []
        for key, (path, kind) in (node.meta.get("nn_module_stack") or {}).items():
            if not path:
                continue
            name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
            path = self.modules.get(path, path)
            scopes.append(Scope(key, path, name.rpartition(".")[2], name.startswith(_CONTAINERS)))
        return tuple(scopes)

    def _emit(self, expression: Expression, *outputs: Value) -> list[Value]:
        self._add(list(outputs), expression)
        return list(outputs)

    def _add(self, outputs: list[Value], expression: Expression, update: str | None = None) -> None:
        node = Node(outputs, expression, self._scopes(self.current), update, _where(self.current) or self.place)
        self.made |= {id(y): node for y in outputs}
        self.nodes.append(node)

    def _bind(self, expression: Expression, out: Any) -> Any:
        """Add the statement that computes an expression; one that is a tensor already needs none."""
        if isinstance(expression, (Value, _Constant)):
            return expression
        if isinstance(out, tuple) and isinstance(expression, tuple):
            return tuple(
                None if part is None else self._bind(part, skeleton)
                for part, skeleton in zip(expression, out, strict=False)
            )
        outputs = list(out) if isinstance(out, tuple) else [out]
        self._add(outputs, expression)
        return tuple(outputs) if isinstance(out, tuple) else out

    def _replace(self, changed: Any, value: Any, fresh: Sequence[Any] = ()) -> None:
        """From here on, a tensor that was changed in place is what the call returned; what it is a view of, and views, follow."""
        aliases = [changed, *_chain(changed, self.origins)]
        for tensor in aliases:
            if (entry := self.entries.get(tensor)) is not None and getattr(entry, "kind", "") == "params":
                raise Untranslated(f"a change of the parameter {entry.name}")
            self.entries[tensor] = value
            if tensor in self.buffers:
                result = Value(value.shape, value.dtype)
                self._add([result], value, update=self.buffers[tensor])
        fresh = [*fresh, *aliases]
        view, source, value = aliases[-1], _view_source(aliases[-1]), _as_value(self, value)
        if source is not None:
            key = self.keys.get(view)
            while key and source in self.keys and (whole_key := _graph.join_keys(self.keys[source], key)) is not None:
                key, source = whole_key, source.args[0]
            whole = self._argument(source)
            if key:
                after = call("ops.set_item", whole, key, value)
            elif _internals.names(view.target)[0] in _PERMUTED:
                marked = torch.empty([*range(value.ndim)], device="meta")  # each size tells its axis
                axes = list(view.target(marked, *view.args[1:], **view.kwargs).shape)
                after = operations.permute(value, [axes.index(axis) for axis in range(value.ndim)])
            else:
                after = operations.reshape(value, whole)
            self._replace(source, self._bind(after, Value(whole.shape, whole.dtype)), fresh)
            return
        current, later = self.current, set()
        kin = [node for node, root in self.roots.items() if root in aliases and node in self.entries]
        for node in reversed(kin):
            if any(user in later or user not in self.entries for user in node.users):
                later.add(node)
        for node in kin:
            if node in later and node in self.origins:
                self.entries[node] = self.entries[self.origins[node]]
            elif node in later and node not in fresh:
                self._read(node)
        self.current = current

    def _is_count(self, node: Any, changed: Any) -> bool:
        """Say whether a call counts the batches of a batch normalization, which its own statement does too."""
        prefix, _, name = self._buffer(changed).rpartition(".")
        return name == "num_batches_tracked" and prefix in self.tracked and list(node.args[1:]) == [1]

    def _buffer(self, node: Any) -> str:
        """Return the path of the buffer that a node is, or is another name of."""
        return self.buffers.get([node, *_chain(node, self.origins)][-1], "")

    def _tracked_by(self, node: Any) -> str | None:
        """Return the submodule whose statistics a batch normalization alone reads and changes, under their usual names."""
        mean, var = node.args[3:5]
        (prefix, _, first), (other, _, second) = (self._buffer(statistic).rpartition(".") for statistic in (mean, var))
        if (prefix, first, second) != (other, "running_mean", "running_var"):
            return None
        counter = f"{prefix}.num_batches_tracked".strip(".")
        names = [alias for leaf in (mean, var) for alias in (leaf, *_chain(leaf, self.origins))]
        names += [buffer for buffer, path in self.buffers.items() if path == counter]
        news = [user for user in node.users if user.target is operator.getitem and user.args[1] > 2]
        news += [user for buffer, path in self.buffers.items() if path == counter for user in buffer.users]
        readers = [x for name in names for x in list(name.users)[1:]] + [x for new in news for x in new.users]
        return prefix if all(user.op == "output" for user in readers) else None

    def _tracked_submodules(self) -> set[str | None]:
        """Return the submodules whose statistics the statement of their batch normalization changes, too."""
        targets = [f"aten.{name}.default" for name in _BATCH_NORMS]
        nodes = [block for block in _with_blocks(self.program.graph) if str(block.target) in targets and block.args[5]]
        return {self._tracked_by(node) for node in nodes} - {None}

    def _move(self, node: Any, bound: dict[str, Any], each: bool = False) -> list[Value]:
        """Add the statement that computes new running statistics, and leave a normalization without any in `bound`."""
        names = ("running_mean", "running_var")
        given = [self._argument(bound[name]) for name in names]
        moved = [Value(operand.shape, operand.dtype, own=name) for operand, name in zip(given, names, strict=True)]
        x, momentum = self._argument(bound["input"]), bound["momentum"]
        options = {"each": True} if each else {}
        self._add(moved, call("moved_statistics", x, *given, momentum, **options))
        for name, statistic in zip(names, moved, strict=True):
            if not isinstance(node.meta["val"], tuple):  # a call that returns new statistics changes none
                self._replace(bound[name], statistic)
        bound |= dict.fromkeys(names)
        return moved

    def _batch_norm(self, node: Any, bound: dict[str, Any]) -> None:
        arguments = {name: self._argument(argument) for name, argument in bound.items()}
        prefix = self._tracked_by(node) or ""
        names = {name: f"{prefix}.{name}".strip(".") for name in ("running_mean", "running_var", "num_batches_tracked")}
        leaves = {name: self.leaves[path] for name, path in names.items() if path in self.leaves}
        kwargs = tuple(leaves.items())
        kwargs += tuple((name, arguments[name]) for name in ("weight", "bias"))
        kwargs += (("momentum", arguments["momentum"]), ("epsilon", arguments["eps"]), ("training", _graph.TRAINING))
        value = node.meta["val"]
        is_one = isinstance(value, torch.Tensor)
        out, statistics = self._skeleton(value if is_one else value[0]), Value((), "dict")
        self._add([out, statistics], Call("tracked_batch_norm", (arguments["input"],), kwargs), update=prefix)
        self.normalized.add(prefix)
        self.entries[node] = out if is_one else (out, *[None] * (len(value) - 1))

    # functions

    @contextlib.contextmanager
    def _inside(self, where: str) -> Iterator[list[Node]]:
        """Collect the statements of a function apart from those around it."""
        around, self.nodes = self.nodes, []
        place, self.place = self.place, where or self.place
        try:
            yield self.nodes
        finally:
            self.nodes, self.place = around, place

    def _body(self, node: Any, target: Any, operands: list[Any], name: str) -> Body:
        """Read a function that a call takes; its operands are nodes that it closes over, `None` for parameters."""
        graph = getattr(node.graph.owning_module, target.target).graph
        parameters: list[Value] = []
        with self._inside(_where(node)) as nodes:
            for inner, operand in zip(graph.find_nodes(op="placeholder"), operands, strict=True):
                if operand is None:
                    parameters.append(self._skeleton(inner.meta["val"]))
                    self.entries[inner] = parameters[-1]
                else:
                    self.entries[inner] = self.entries.get(operand)
            for inner in graph.nodes:
                self._read(inner)
            (output,) = graph.find_nodes(op="output")
            results = output.args[0]
            results = results if isinstance(results, (tuple, list)) else (results,)
            outputs = tuple(self._argument(result) for result in results)
            self.current = node
        return Body(name, tuple(parameters), nodes, outputs)

    def _carry_operands(self, operands: list[Any]) -> list[Expression]:
        if not all(isinstance(operand, torch.fx.Node) and _tensor(operand) is not None for operand in operands):
            raise Untranslated("with a Python number that changes from step to step")
        return [self._argument(operand) for operand in operands]

    def _call(self, node: Any, expression: Expression) -> None:
        out = tuple(self._skeleton(y) for y in node.meta["val"])
        self._add(list(out), expression)
        self.entries[node] = out

    def _cond(self, node: Any) -> None:
        pred, yes, no, operands = node.args
        bodies = [self._body(node, branch, list(operands), "branch") for branch in (yes, no)]
        for body in bodies:
            body.outputs = single(body.outputs)
        condition = self._argument(pred)
        if isinstance(condition, Value) and condition.shape:
            condition = call("ops.reshape", condition, ())
        self._call(node, Call("ops.cond", (condition, *bodies)))

    def _while_loop(self, node: Any) -> None:
        cond, body, carried, others = node.args
        init = self._carry_operands(carried)
        operands = [*[None] * len(carried), *others]
        holds, step = self._body(node, cond, operands, "cond"), self._body(node, body, operands, "body")
        holds.outputs, step.outputs = self._flag(holds), single(step.outputs)
        self._call(node, Call("ops.while_loop", (holds, step, single(tuple(init)))))

    def _flag(self, body: Body) -> Expression:
        """Return what a condition computes, as a scalar."""
        flag = single(body.outputs)
        if isinstance(flag, Value) and flag.shape:
            scalar = Value((), flag.dtype)
            body.nodes.append(Node([scalar], call("ops.reshape", flag, ())))
            return scalar
        return flag

    def _scan(self, node: Any) -> None:
        combine, carried, xs, others = node.args
        init, columns = tuple(self._carry_operands(carried)), tuple(self._carry_operands(xs))
        if not columns:
            raise Untranslated("over nothing")
        step = self._body(node, combine, [*[None] * (len(init) + len(columns)), *others], "step")
        n = len(init)
        step.parameters = (single(step.parameters[:n]), single(step.parameters[n:]))
        step.outputs = (single(step.outputs[:n]), single(step.outputs[n:]))
        self._call(node, Call("ops.scan", (step, single(init), single(columns))))

    def _map(self, node: Any) -> None:
        function, xs, others = node.args
        columns = self._carry_operands(xs)
        body = self._body(node, function, [*[None] * len(columns), *others], "body")
        body.parameters, body.outputs = (single(body.parameters),), single(body.outputs)
        self._call(node, Call("ops.map", (body, single(tuple(columns)))))

    def _gradient(self, node: Any) -> None:
        """Write the statements between some tensors and an output as a function, and take its derivative."""
        output, cotangent = (None if arg is None else self._argument(arg) for arg in node.args[:2])
        xs = [self._argument(x) for x in node.args[2]]
        made = [set(map(id, each.outputs)) for each in self._between(xs, output)]
        groups = [[x] for x in xs] if any(id(x) in ids for ids in made for x in xs) else [xs]  # total derivatives
        slopes = [self._pulled_back(output, cotangent, group) for group in groups]
        self.entries[node] = tuple(slope for group in slopes for slope in group)

    def _between(self, xs: list[Value], output: Value) -> list[Node]:
        """Return the statements that compute an output from some tensors."""
        depends, between = set(map(id, xs)), []
        for each in self.nodes:
            if any(id(value) in depends for value in _graph.values(each.expression)):
                depends |= set(map(id, each.outputs))
                between.append(each)
        wanted, kept = {id(output)}, []
        for each in reversed(between):
            if wanted & set(map(id, each.outputs)):
                wanted |= set(map(id, _graph.values(each.expression)))
                kept.append(each)
        return kept[::-1]

    def _pulled_back(self, output: Value, cotangent: Value | None, xs: list[Value]) -> list[Value]:
        """Add the statement that computes the derivatives of an output, and return them."""
        kept = self._between(xs, output)
        used = {id(value) for each in kept for value in _graph.values(each.expression)} | {id(output)}
        if any(id(x) not in used for x in xs):
            raise Untranslated("with respect to what the output does not depend on")
        if any(each.update is not None for each in kept):
            raise Untranslated("through a buffer that changes")
        copies = {id(x): Value(x.shape, x.dtype, name=x.name) for x in xs}
        copies |= {id(v): Value(v.shape, v.dtype, name=v.name) for each in kept for v in each.outputs}

        def copy_of(part: Expression) -> Expression:
            return copies.get(id(part), part) if isinstance(part, Value) else part

        nodes = []
        for each in kept:
            outputs, expression = list(map(copy_of, each.outputs)), _graph.rebuild(each.expression, copy_of)
            nodes.append(Node(outputs, expression, each.scopes, None, each.where))
        body = Body("function", tuple(map(copy_of, xs)), nodes, copy_of(output))
        options = {} if cotangent is None else {"cotangent": cotangent}
        slopes = [Value(x.shape, x.dtype) for x in xs]
        self._add(slopes, call("gradient", body, xs, **options))
        return slopes

    def _pack(self, node: Any) -> None:
        x, lengths = (self._argument(arg) for arg in node.args)
        packed = _Packed(x, lengths, self._skeleton(node.meta["val"][1]).shape[0])
        self.entries[node] = (packed, packed)

    def _packed_network(self, node: Any) -> None:
        kind, packed, *args = node.args
        packed = self.entries[packed]
        names = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
        bound = {name: self._argument(arg) for name, arg in zip(names, args, strict=True)}
        out = tuple(map(self._skeleton, node.meta["val"]))
        row = operations.ROWS[f"{kind}.input"]
        y, *states = row(input=packed.value, lengths=packed.lengths, out=out, emit=self._emit, **bound)
        y, *states = self._bind((y, *states), out)
        self.entries[node] = (_Packed(y, packed.lengths, packed.longest), *states)

    def _unpack(self, node: Any) -> None:
        packed, (value, total) = self.entries[node.args[0]], map(self._argument, node.args[1:])
        options = {"value": value} if total == packed.longest else {"total": total, "value": value}
        y = self._bind(call("unpacked", packed.value, packed.lengths, **options), self._skeleton(node.meta["val"][0]))
        self.entries[node] = (y, packed.lengths)

    def _custom(self, node: Any) -> None:
        """Read the forward and the backward of an `autograd.Function`."""
        if node.meta.get("val") is None:  # it was refused when it was called
            return
        recorded = custom_functions.recorded[node.args[0]]
        xs = [self._argument(arg) for arg in node.args[1]]
        name = f"autograd.Function {recorded.name}"
        ys = list(node.meta["val"])
        self.entries[node] = out = tuple(self._skeleton(y) for y in ys)
        try:
            graph, given = recorded.traced([arg.meta["val"] for arg in node.args[1]], ys)
            if _changes_a_view(graph.graph):
                raise custom_functions.Refused("it changes memory that it reads through another tensor")
            with self._inside(recorded.where) as nodes:
                custom = self._read_custom(recorded, graph, given, len(xs), nodes)
        except Exception as reason:  # whatever the function does that cannot be traced
            text = (str(reason).strip().splitlines() or [""])[0]
            self.missing[f"{name}: {text or type(reason).__name__}"].append(recorded.where)
            return
        self.current = node
        self._add(list(out), Apply(custom, tuple(xs)))

    def _read_custom(self, recorded: Any, module: Any, given: list[bool], count: int, nodes: list[Node]) -> Custom:
        placeholders = module.graph.find_nodes(op="placeholder")
        arguments = []
        for inner in placeholders:
            arguments.append(self._skeleton(inner.meta["val"], "local", _plain(inner.name)))
            self.entries[inner] = arguments[-1]
        for inner in module.graph.nodes:
            if inner.op == "get_attr":
                tensor = getattr(module, inner.target)
                if tensor.numel() != 1:
                    raise custom_functions.Refused("it uses a tensor that is not among its arguments")
                self.entries[inner] = _Constant(tensor.item(), self._skeleton(tensor))
            elif _mutated_tensor(inner) in placeholders:
                raise custom_functions.Refused("it changes an argument in place")
            self._read(inner)
        (output,) = module.graph.find_nodes(op="output")
        outputs, gradients = output.args[0]
        self.current = output
        results = tuple(self._argument(y) for y in outputs)
        parameters, cotangents = arguments[:count], arguments[count:]
        slopes = iter([self._argument(gradient) for gradient in gradients])
        fitted = tuple(
            self._fit_slope(next(slopes), x) if has_one else None for x, has_one in zip(parameters, given, strict=True)
        )
        forward = _graph.without_dead(nodes, results)
        kept = set(map(id, forward))
        rule = _graph.without_dead([node for node in nodes if id(node) not in kept], fitted)
        for cotangent in cotangents:
            cotangent.name = ""
        name = recorded.name.strip("_")
        return Custom(name, parameters, forward, single(results), [], cotangents, rule, single(fitted))

    def _fit_slope(self, slope: Value, x: Value) -> Value:
        """Return a gradient in the dtype of its argument, and summed to its shape, as PyTorch does."""
        if slope.shape != x.shape:
            more = slope.ndim - x.ndim
            axes = tuple(i for i in range(slope.ndim) if i < more or x.shape[i - more] != slope.shape[i])
            total = Value(tuple(1 if i in axes else n for i, n in enumerate(slope.shape)), slope.dtype)
            self._add([total], call("ops.sum", slope, axis=axes, keepdims=True))
            slope = Value(x.shape, total.dtype)
            self._add([slope], call("ops.reshape", total, x.shape))
        if slope.dtype != x.dtype:
            fitted = Value(x.shape, x.dtype)
            self._add([fitted], cast(slope, x.dtype))
            slope = fitted
        return slope

    _own: ClassVar = {"gradient": _gradient, "pack": _pack, "packed": _packed_network, "unpack": _unpack}

    # outputs

    def _outputs(self) -> Expression:
        from torch.export.graph_signature import OutputKind

        (output,) = (node for node in self.program.graph.nodes if node.op == "output")
        leaves = []
        nodes = {node.name: node for node in self.program.graph.nodes}
        for spec, argument in zip(self.program.graph_signature.output_specs, output.args[0], strict=True):
            if spec.kind == OutputKind.USER_OUTPUT:
                leaves.append(self._result(argument))
            elif spec.kind == OutputKind.BUFFER_MUTATION:
                if spec.target.rpartition(".")[0] in self.normalized:
                    continue
                value = self._result(nodes[spec.arg.name])
                if not any(node.update == spec.target for node in self.nodes):
                    self.nodes.append(Node([Value(value.shape, value.dtype)], value, (), spec.target))
            elif spec.kind != OutputKind.USER_INPUT_MUTATION:
                raise errors.TranslationError(f"the model returns something of kind {spec.kind.name}")
        spec = self.program.call_spec.out_spec
        return _structure(pytree.tree_unflatten(leaves, spec))

    def _result(self, argument: Any) -> Any:
        try:
            return self._argument(argument) if isinstance(argument, torch.fx.Node) else argument
        except Untranslated as reason:
            raise errors.TranslationError(f"the model returns {reason}") from None


class _Packed(NamedTuple):
    """A packed sequence: what was packed, `(time, batch, ...)`, how many steps each example has, and the longest."""

    value: Value
    lengths: Value
    longest: Any


class _Constant:
    """A tensor with one entry that the model made of a Python number."""

    def __init__(self, number: Any, value: Value):
        self.number, self.value = number, value


def _as_value(reader: _Reader, entry: Any) -> Any:
    if not isinstance(entry, _Constant):
        return entry
    value = Value(entry.value.shape, entry.value.dtype)
    number: Expression = Call("ops.cast", (entry.number, _graph.DType(value.dtype)))
    if value.shape:
        number = Call("ops.reshape", (number, value.shape))
    reader._add([value], number)
    return value


def run(
    model: Any, inputs: tuple[Any, ...], weights_of: Any, keywords: dict[str, Any] | None = None, training: bool = False
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return what a model computes, the gradients of the weighted sum in its parameters, and its new state."""
    is_program = isinstance(model, torch.export.ExportedProgram)
    model = model.module() if is_program else model

    def place(x: Any) -> Any:
        return weights.tensor_beside(x, model) if isinstance(x, np.ndarray) else x

    args, named = _map_tensors(place, (list(inputs), keywords or {}))  # copies: the model may change them
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.compiler.set_stance("default"), contextlib.nullcontext() if is_program else _in_mode(model, training):
        try:
            returned = model(*args, **named)
        except RuntimeError:  # one that differentiates itself with respect to its inputs
            args, named = _map_tensors(place, (list(inputs), keywords or {}))
            args, named = _map_tensors(_require_gradient, (args, named))
            returned = model(*args, **named)
        every = _structure(_objects.open_objects(returned))
        leaves = [leaf for leaf in _graph.leaves(every) if isinstance(leaf, torch.Tensor)]
        state = {name: weights.to_numpy(buffer) for name, buffer in model.named_buffers()}
        named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        parts = [part for leaf in leaves if leaf.is_complex() for part in (leaf.real, leaf.imag)]
        parts += [leaf for leaf in leaves if leaf.is_floating_point()]
        terms = [(part * torch.from_numpy(weights_of(part.shape)).to(part)).sum() for part in parts]
        total = sum(terms[1:], terms[0]) if terms else None
        gradients = {}
        if named and total is not None and total.requires_grad:  # in the mode still: a checkpoint computes again
            slopes = _slopes(total, list(named.values()))
            gradients = {name: weights.to_numpy(slope) for name, slope in zip(named, slopes, strict=True)}
    with torch.no_grad():  # last, since the gradient may need what the model left there
        for name, buffer in model.named_buffers():
            if not torch.equal(buffer, before[name]):
                buffer.copy_(before[name])
    outputs = _graph.map_leaves(lambda leaf: weights.to_numpy(leaf) if isinstance(leaf, torch.Tensor) else leaf, every)
    return outputs, gradients, state


def _slopes(total: Any, leaves: list[Any]) -> list[Any]:
    """Return the gradients in some leaves by `backward`, which a reentrant checkpoint needs."""
    kept = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    total.backward()
    slopes = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad.to_dense() for leaf in leaves]
    for leaf, grad in zip(leaves, kept, strict=True):
        leaf.grad = grad
    return slopes


def _require_gradient(leaf: Any) -> Any:
    return leaf.requires_grad_() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf


def _attention_without_dropout(part: Call) -> Expression:
    query, key, value, *_ = part.args
    options = dict(part.kwargs)
    mask = options["mask"] if options["mask"] is not None else options["bias"]
    return operations.attention(query, key, value, query, attn_mask=mask, scale=options["scale"])


def _without_update(part: Call) -> Expression:
    kwargs = dict(part.kwargs)
    weight, bias, mean, variance = (kwargs.get(n) for n in ("weight", "bias", "running_mean", "running_var"))
    return operations.batch_norm(part.args[0], weight, bias, False, 0.0, kwargs["epsilon"], mean, variance)


EVALUATED = {"attention": _attention_without_dropout, "tracked_batch_norm": _without_update}  # else in evaluation


def _structure(tree: Any) -> Expression:
    """Return what the model returns as tuples and dicts."""

    def leaf(x: Any) -> Any:
        if not hasattr(x, "__dataclass_fields__") or isinstance(x, (Value, Dim, Number)):
            return x
        fields = {name: getattr(x, name) for name in x.__dataclass_fields__}
        return {name: _structure(part) for name, part in fields.items() if part is not None}

    return _objects.as_tuples(tree, leaf)


def _where(node: Any) -> str:
    """Return where a model calls an operation, from the innermost outwards."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    return _hosts.own_places(reversed(frames))


def _leaves_of(tree: Any, path: tuple[int | str, ...] = ()) -> Iterator[tuple[list[int | str], Any]]:
    """Yield the leaves of nested arguments, each with where it is."""
    if isinstance(tree, (list, tuple, dict)):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from _leaves_of(part, (*path, key))
    elif isinstance(tree, torch.fx.Node):
        yield list(path), tree
    else:
        raise errors.TranslationError(f"an argument holds a {type(tree).__name__}; only dicts, tuples and lists can be")


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def to_numpy(value: Any, repeat: Any = _more_than_one) -> Any:
    """Return an example input as an array, repeated as it was traced."""
    return weights.to_numpy(torch.as_tensor(repeat(value)))
