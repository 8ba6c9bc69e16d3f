"""Hooks on the modules of PyTorch: what each returns, and the gradients there."""

from __future__ import annotations

import numpy as np
import torch

from multiop.porting import _graph, _objects
from multiop.porting._reference import Record, Reference, number_call
from multiop.porting.torch import written
from multiop.porting.torch.weights import kind, tensor_beside, to_numpy, to_tensor

OPTIONS = ("eps", "momentum", "training", "normalized_shape", "num_groups", "p")  # what causes are computed with


def record(module, inputs, cotangents, training, arranged):
    """Run a module, or an exported program, forward and backward, with a hook on each of its modules."""
    title = type(module).__name__
    is_program = isinstance(module, torch.export.ExportedProgram)
    module = module.module() if is_program else module
    records, hooks, counts, gradients = {}, [], {}, {}
    was_training = [(inner, inner.training) for inner in module.modules()]
    if not is_program:
        module.train(training)
    before = state(module)

    def after(name):
        def hook(layer, args, kwargs, output):
            given = [to_numpy(x) for x in [*args, *kwargs.values()] if isinstance(x, torch.Tensor)]
            tensors = flat(output)
            called = number_call(name, counts)
            for n, y in enumerate(tensors):
                full = called if len(tensors) == 1 else f"{called}.{n}"
                if full in records:  # a module inside has that name
                    continue
                records[full] = Record(full, to_numpy(y), given, None, kind(layer), own(layer), options(layer), True)
                if y.requires_grad:
                    y.register_hook(lambda g, full=full: gradients.__setitem__(full, to_numpy(g)))

        return hook

    tensors = [tensor_beside(np.asarray(x), module) for x in inputs]
    for x in tensors:
        if x.is_floating_point() or x.is_complex():
            x.requires_grad_()
    params = {name: x for name, x in module.named_parameters(remove_duplicate=False) if x.requires_grad}
    try:
        for name, inner in module.named_modules():
            if name:
                hooks.append(inner.register_forward_hook(after(name), with_kwargs=True))
        with torch.enable_grad(), written.plain_kernels():
            args, kwargs = arranged(tensors)
            outputs = flat(module(*args, **kwargs))
            values = [to_numpy(y) for y in outputs]
            weights = cotangents(values)
            both = zip(outputs, weights, strict=True)
            pairs = [(y, to_tensor(w).to(y.device)) for y, w in both if w is not None and y.requires_grad]
            wanted = [*(x for x in tensors if x.requires_grad), *params.values()]
            slopes = []
            if pairs and wanted:
                ys, ws = zip(*pairs, strict=True)
                slopes = torch.autograd.grad(ys, wanted, ws, allow_unused=True, materialize_grads=True)
        after_run = state(module)
    finally:
        with torch.no_grad():  # a step in training mode changes the statistics
            for name, x in module.named_buffers():
                x.copy_(to_tensor(before[name]))
        for hook in hooks:
            hook.remove()
        for inner, mode in was_training:
            inner.training = mode
    for name, gradient in gradients.items():
        records[name].gradient = gradient
    slopes = [to_numpy(g) for g in slopes]
    input_gradients = [slopes.pop(0) if x.requires_grad and slopes else None for x in tensors]
    of = {id(x): g for x, g in zip(params.values(), slopes, strict=False)}  # a shared parameter has one gradient
    parameter_gradients = {name: of[id(x)] for name, x in params.items() if id(x) in of}
    return Reference(title, records, values, weights, input_gradients, parameter_gradients, after_run, before)


def flat(output):
    """Return the tensors in what a module returned."""
    return [y for y in _graph.leaves(_objects.open_objects(output)) if isinstance(y, torch.Tensor)]


def own(module):
    arrays = {name: to_numpy(x) for name, x in module.named_parameters() if x.numel() < 1 << 24}
    return arrays | {name: to_numpy(x) for name, x in module.named_buffers() if x is not None}


def options(module):
    return {name: getattr(module, name) for name in OPTIONS if hasattr(module, name)}


def state(module):
    return {name: to_numpy(x) for name, x in module.named_buffers()}
