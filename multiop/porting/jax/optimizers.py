"""States of optax, and optimizers of nnx."""

from __future__ import annotations

import sys

import jax.numpy as jnp
import numpy as np

from multiop import errors
from multiop.porting import _optimizers, _weights
from multiop.porting.jax import weights

SLOTS = {
    "ScaleByAdamState": {"mu": "first", "nu": "second"},
    "ScaleByRmsState": {"nu": "second"},
    "ScaleByRmsWithCountState": {"nu": "second"},
    "ScaleByRStdDevState": {"mu": "first", "nu": "second"},
    "ScaleByRStdDevWithCountState": {"mu": "first", "nu": "second"},
    "TraceState": {"trace": "momentum"},
}


def read(optimizer, model):
    states = list(parts(state_of(optimizer)))
    slots = {slot: weights.read(place).arrays for slot, place in places_of(states).items()}
    counts = {int(np.asarray(value_of(part.count))) for part in states if "count" in part._fields}
    if len(counts) > 1:
        raise errors.ArgumentError(f"parts of the state have made different numbers of steps: {sorted(counts)}")
    return _optimizers.OptimizerState(kind_of(states), max(counts, default=0), slots)


def write(optimizer, state, model):
    whole = state_of(optimizer)
    states = list(parts(whole))
    places = places_of(states)
    names = {name for place in places.values() for name in weights.read(place).arrays}
    _optimizers.check(state, kind_of(states), places, {}, names if places else state.slots)
    made = {slot: write_arrays(place, state.slots[slot]) for slot, place in places.items()}
    if whole is not optimizer:  # that of nnx, whose variables are changed
        for part in states:
            if "count" in part._fields:
                part.count.set_value(jnp.asarray(state.step, part.count[...].dtype))
        return optimizer
    return replace_slots(whole, made, state.step)


def state_of(optimizer):
    """Return the state of optax that an optimizer of nnx keeps, or a state as it is."""
    nnx = sys.modules.get("flax.nnx")
    return optimizer.opt_state if nnx is not None and isinstance(optimizer, nnx.Optimizer) else optimizer


def parts(state):
    """Yield the named tuples of a state."""
    if not isinstance(state, tuple):
        raise errors.ArgumentError(f"a {type(state).__name__} in the state of optax: this optimizer is not known")
    name, fields = type(state).__name__, getattr(state, "_fields", None)
    if fields is None:
        for part in state:
            yield from parts(part)
    elif "inner_state" in fields and name.startswith("Inject"):
        yield from parts(state.inner_state)
    elif name in SLOTS or not set(fields) - {"count"}:
        yield state
    else:
        raise errors.ArgumentError(f"{name} in the state of optax: only SGD, Adam, AdamW and RMSprop are known")


def places_of(states):
    """Return the trees of arrays by slot."""
    return {slot: getattr(part, field) for part in states for field, slot in SLOTS.get(type(part).__name__, {}).items()}


def kind_of(states):
    slots = places_of(states)
    if any(type(part).__name__ == "ScaleByAdamState" for part in states):
        return "adam"
    if "second" in slots and "momentum" in slots:
        raise errors.ArgumentError(
            "the momentum of optax.rmsprop is multiplied by the learning rate, which a state does not tell"
        )
    return "rmsprop" if "second" in slots else "sgd"


def value_of(x):
    return x[...] if hasattr(x, "set_value") else x


def write_arrays(place, arrays):
    """Return a tree of the structure of `place` with other arrays; the variables of nnx are changed."""
    nnx = sys.modules.get("flax.nnx")
    if nnx is None or not isinstance(place, nnx.State):
        return weights.write(place, _weights.Weights(_weights.nested(arrays)), False, False)
    for name, variable in weights.nnx_variables(place).items():
        variable.set_value(weights.as_leaf(name, arrays[name], variable[...], False))
    return place


def replace_slots(state, made, step):
    """Return a state with other arrays in its slots, and another number of steps."""
    name, fields = type(state).__name__, getattr(state, "_fields", None)
    if fields is None:
        return type(state)(replace_slots(part, made, step) for part in state)
    if name.startswith("Inject"):
        state = state._replace(inner_state=replace_slots(state.inner_state, made, step))
    state = state._replace(**{field: made[slot] for field, slot in SLOTS.get(name, {}).items()})
    return state._replace(count=jnp.asarray(step, jnp.asarray(state.count).dtype)) if "count" in fields else state
