"""Optimizers of Keras, whose backend may be any of the three."""

from __future__ import annotations

import warnings

import keras

from multiop import errors
from multiop.porting import _optimizers
from multiop.porting.tensorflow import _internals, weights

KINDS = {"SGD": "sgd", "Adam": "adam", "AdamW": "adamw", "RMSprop": "rmsprop"}
ADAM = {"momentum": "first", "velocity": "second", "velocity_hat": "largest"}
SLOTS = {
    "sgd": {"momentum": "momentum"},
    "adam": ADAM,
    "adamw": ADAM,
    "rmsprop": {"velocity": "second", "momentum": "momentum", "average_gradient": "first"},
}
OPTIONS = ("momentum", "nesterov", "beta_1", "beta_2", "epsilon", "amsgrad", "rho", "centered")
EPSILON = {"adam": "the root", "adamw": "the root", "rmsprop": "the square"}
CLIPS = ("clipnorm", "clipvalue", "global_clipnorm")
ALONE = ("use_ema", "gradient_accumulation_steps", "loss_scale_factor")


def read(optimizer, model):
    kind, options = kind_of(optimizer), options_of(optimizer, model)
    if not optimizer.built:
        raise errors.ArgumentError("the optimizer has made no step yet")
    if clips := [f"{name} {x}" for name in CLIPS if (x := getattr(optimizer, name, None))]:
        warnings.warn(f"Keras's optimizer clips gradients ({clips[0]}), which the state does not say", stacklevel=3)
    scale = scale_of(kind, options)
    slots = {
        slot: {name: weights.to_numpy(x) / (scale if slot == "momentum" else 1) for name, x in held.items()}
        for slot, held in held_by(optimizer, model, kind, options).items()
    }
    return _optimizers.OptimizerState(kind, int(weights.to_numpy(optimizer.iterations)), slots, options)


def write(optimizer, state, model):
    kind_of(optimizer)
    names = parameters_by_name(model)
    if not optimizer.built:
        optimizer.build(list(names.values()))
    before = int(weights.to_numpy(optimizer.iterations))
    _optimizers.check_schedule(state, _internals.has_schedule(optimizer), before)
    optimizer.iterations.assign(before if state.step is None else state.step)  # which a schedule depends on
    try:
        write_slots(optimizer, state, model, names)
    except errors.ArgumentError:
        optimizer.iterations.assign(before)
        raise
    return optimizer


def write_slots(optimizer, state, model, names):
    kind, options = kind_of(optimizer), options_of(optimizer, model)
    scale = scale_of(kind, options)
    slots = held_by(optimizer, model, kind, options)
    _optimizers.check(state, kind, slots, options, names)
    made = [
        (variable, _optimizers.fit_slot(slot, name, x * (scale if slot == "momentum" else 1), variable, x.dtype))
        for slot, held in slots.items()
        for name, variable in held.items()
        if name in state.slots[slot]  # not what is frozen where the state is from
        for x in (state.slots[slot][name],)
    ]
    for variable, x in made:
        variable.assign(x)


def kind_of(optimizer):
    own = [kind.__name__ for kind in type(optimizer).__mro__ if kind.__module__.startswith("keras.")]
    if not isinstance(optimizer, keras.optimizers.Optimizer) or own[0] not in KINDS:
        raise errors.ArgumentError(f"optimizer must be one of {', '.join(KINDS)}, got {type(optimizer).__name__}")
    _optimizers.check_class(optimizer, getattr(keras.optimizers, own[0]), "update_step")
    alone = [name for name in ALONE if getattr(optimizer, name, None)]
    if alone:
        raise errors.ArgumentError(f"{alone[0]} is an option that Keras alone has")
    return KINDS[own[0]]


def options_of(optimizer, model):
    kind = kind_of(optimizer)
    options = {name: getattr(optimizer, name) for name in OPTIONS if hasattr(optimizer, name)}
    options["learning_rate"] = float(weights.to_numpy(optimizer.learning_rate))
    rate, names = optimizer.weight_decay or 0.0, parameters_by_name(model)
    decay = {name: rate if _internals.decays(optimizer, variable) else 0.0 for name, variable in names.items()}
    options |= {"weight_decay": decay if len(set(decay.values())) > 1 else next(iter(decay.values()), rate), "l2": 0.0}
    if options.get("momentum") and _internals.has_schedule(optimizer):
        warnings.warn(
            "Keras multiplies its momentum by the rate that each step had: steps differ where a schedule changes it",
            stacklevel=4,
        )
    return options | ({"epsilon is added to": EPSILON[kind]} if kind in EPSILON else {})


def scale_of(kind, options):
    """Return what Keras has multiplied the sum of what was subtracted by."""
    return -options["learning_rate"] if kind == "sgd" else options["learning_rate"]


def parameters_by_name(model):
    """Return the parameters that are trained by the names that `read_weights` gives them."""
    if not weights.is_keras(model):
        raise errors.ArgumentTypeError(f"model must be the model of Keras that is trained, got {type(model).__name__}")
    return {name: x for name, x in weights.variables(model).items() if x.trainable}


def held_by(optimizer, model, kind, options):
    """Return the variables of the optimizer by slot and parameter."""
    kept = _optimizers.slots_of(kind, options)
    places = {variable.path.rpartition("/")[2]: variable for variable in optimizer.variables}
    names = parameters_by_name(model)
    slots = {slot: {} for slot in kept}
    for own, slot in SLOTS[kind].items():
        for name, variable in names.items() if slot in kept else ():
            place = f"{variable.path.replace('/', '_')}_{own}"
            if place not in places:
                raise errors.ArgumentError(f"the optimizer does not train {name}")
            slots[slot][name] = places[place]
    return slots
