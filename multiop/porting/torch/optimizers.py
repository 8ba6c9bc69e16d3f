"""Optimizers of PyTorch."""

from __future__ import annotations

import warnings

import torch

from multiop import errors
from multiop.porting import _optimizers, _weights
from multiop.porting.torch.weights import numpy_dtype, to_numpy, to_tensor

# the most special class first
KINDS = {"AdamW": "adamw", "Adam": "adam", "SGD": "sgd", "RMSprop": "rmsprop"}
ADAM = {"exp_avg": "first", "exp_avg_sq": "second", "max_exp_avg_sq": "largest"}
SLOTS = {
    "sgd": {"momentum_buffer": "momentum"},
    "adam": ADAM,
    "adamw": ADAM,
    "rmsprop": {"square_avg": "second", "momentum_buffer": "momentum", "grad_avg": "first"},
}
OPTIONS = {  # by Keras's names
    "lr": "learning_rate",
    "momentum": "momentum",
    "nesterov": "nesterov",
    "eps": "epsilon",
    "amsgrad": "amsgrad",
    "alpha": "rho",
    "centered": "centered",
}
EPSILON = {"adam": "the corrected root", "adamw": "the corrected root", "rmsprop": "the root"}


def read(optimizer, model):
    kind, options = kind_of(optimizer), options_of(optimizer, model)
    names, places = parameters_by_name(optimizer, model), slots_of(kind, options)
    frozen = [name for name, x in names.items() if not x.requires_grad and x not in optimizer.state]
    names = {name: x for name, x in names.items() if name not in frozen}
    slots, steps = {slot: {} for slot in places.values()}, set()
    for name, parameter in names.items():
        kept = optimizer.state.get(parameter, {})
        steps |= {int(kept["step"])} if "step" in kept else set()
        for own, slot in places.items():
            held = kept.get(own)  # nothing where there was no gradient so far
            slots[slot][name] = to_numpy(torch.zeros_like(parameter) if held is None else held)
    if len(steps) > 1:
        raise errors.ArgumentError(f"parameters have made different numbers of steps: {sorted(steps)}")
    step = max(steps, default=None if kind == "sgd" else 0)
    if steps and (late := [name for name, x in names.items() if x not in optimizer.state]):
        warnings.warn(
            f"{_weights.abridge(late)}: without a gradient so far; PyTorch counts steps from the first one on, the other "
            f"optimizer goes on from step {step}",
            stacklevel=3,
        )
    return _optimizers.OptimizerState(kind, step, slots, options, frozen)


def write(optimizer, state, model):
    kind, options = kind_of(optimizer), options_of(optimizer, model)
    names = {name: x for name, x in parameters_by_name(optimizer, model).items() if x.requires_grad}
    slots = slots_of(kind, options)
    _optimizers.check(state, kind, slots.values(), options, names)
    made = {}
    for name, parameter in names.items():
        if slots and name not in next(iter(state.slots.values())):
            continue  # frozen where the state is from
        made[parameter] = {} if kind == "sgd" else {"step": torch.tensor(float(state.step or 0))}
        for own, slot in slots.items():
            x = _optimizers.fit_slot(slot, name, state.slots[slot][name], parameter, numpy_dtype(parameter.dtype))
            made[parameter][own] = to_tensor(x).to(parameter.device)
    optimizer.state.update(made)
    return optimizer


def kind_of(optimizer):
    if isinstance(optimizer, torch.optim.Optimizer):
        for name, kind in KINDS.items():
            if isinstance(optimizer, own := getattr(torch.optim, name)):
                _optimizers.check_class(optimizer, own, "step")
                return kind
    raise errors.ArgumentError(f"optimizer must be one of {', '.join(KINDS)}, got {type(optimizer).__name__}")


def slots_of(kind, options):
    """Return the slots that an optimizer of these settings keeps, by PyTorch's names."""
    kept = _optimizers.slots_of(kind, options)
    return {own: slot for own, slot in SLOTS[kind].items() if slot in kept}


def options_of(optimizer, model):
    """Return the settings by Keras's names; those that groups of parameters do not share by parameter."""
    kind, names = kind_of(optimizer), {id(x): name for name, x in parameters_by_name(optimizer, model).items()}
    groups = []
    for group in optimizer.param_groups:
        if any(group.get(name) for name in ("dampening", "maximize")):
            raise errors.ArgumentError("dampening and maximize are options that PyTorch alone has")
        options = {own: value_of(group[name]) for name, own in OPTIONS.items() if name in group}
        options |= dict(zip(("beta_1", "beta_2"), map(value_of, group.get("betas", ())), strict=False))
        # AdamW alone decays weights, and Adam on request; the others add their squares to the loss
        decay, decays = value_of(group.get("weight_decay", 0.0)), group.get("decoupled_weight_decay", kind == "adamw")
        options |= {"weight_decay": decay if decays else 0.0, "l2": 0.0 if decays else decay}
        groups.append(([names[id(x)] for x in group["params"]], options))
    return _optimizers.join_groups(groups) | ({"epsilon is added to": EPSILON[kind]} if kind in EPSILON else {})


def value_of(x):
    return x.item() if isinstance(x, torch.Tensor) else x


def parameters_by_name(optimizer, model):
    """Return the parameters that the optimizer trains by their names in the model."""
    if not isinstance(model, torch.nn.Module):
        raise errors.ArgumentTypeError(f"model must be the torch.nn.Module that is trained, got {type(model).__name__}")
    trained = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    names = {name: parameter for name, parameter in model.named_parameters() if id(parameter) in trained}
    if len(names) < len(trained):
        raise errors.ArgumentError(f"{len(trained) - len(names)} trained parameters are not those of the model")
    return names
