"""States of optax, and optimizers of nnx."""

from __future__ import annotations

import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np

from multiop import errors
from multiop.porting import _optimizers, _weights
from multiop.porting.jax import weights

SLOTS = {  # RMSprop with a count corrects a bias, as no other framework does
    "ScaleByAdamState": {"mu": "first", "nu": "second"},
    "ScaleByRStdDevState": {"mu": "first", "nu": "second"},
    "ScaleByRmsState": {"nu": "second"},
    "TraceState": {"trace": "momentum"},
}
INSIDE = ("inner_state", "inner_states", "hyperparams_states")  # fields that hold states
SCHEDULES = ("ScaleByScheduleState", "WrappedScheduleState")
OPTIONS = {  # by Keras's names
    "learning_rate": "learning_rate",
    "b1": "beta_1",
    "b2": "beta_2",
    "eps": "epsilon",
    "momentum": "momentum",
    "decay": "rho",
    "weight_decay": "weight_decay",
}


def read(optimizer, model):
    groups = chains(state_of(optimizer))
    states = parts(groups)
    slots = {slot: arrays_in(places) for slot, places in places_of(states).items()}
    counts = {int(np.asarray(value_of(part.count))) for part in states if "count" in part._fields}
    if len(counts) > 1:
        raise errors.ArgumentError(f"parts of the state have made different numbers of steps: {sorted(counts)}")
    options = options_of(groups)
    if len(groups) > 1:
        options["groups"] = {name: n for n, group in enumerate(groups) for name in names_in(group)}
    return _optimizers.OptimizerState(kind_of(states), max(counts, default=None), slots, options)


def write(optimizer, state, model):
    whole = state_of(optimizer)
    groups = chains(whole)
    states = parts(groups)
    places = places_of(states)
    names = {name for slot in places.values() for name in arrays_in(slot)}
    _optimizers.check(state, kind_of(states), places, options_of(groups), names if places else state.slots)
    check_groups(groups, state)
    steps = [part.count for part in states if type(part).__name__ in SCHEDULES]
    _optimizers.check_schedule(state, bool(steps), max((int(np.asarray(value_of(x))) for x in steps), default=0))
    if whole is optimizer:
        return replace_slots(whole, state)
    for part in states:  # that of nnx, whose variables are changed
        replaced(part, state)
    return optimizer


def state_of(optimizer):
    """Return the state of optax that an optimizer of nnx keeps, or a state as it is."""
    nnx = sys.modules.get("flax.nnx")
    return optimizer.opt_state if nnx is not None and isinstance(optimizer, nnx.Optimizer) else optimizer


def chains(state):
    """Return the named tuples of a state in their order, in a list for each group of parameters."""
    if not isinstance(state, tuple):
        raise errors.ArgumentError(f"a {type(state).__name__} in the state of optax: this optimizer is not known")
    name, fields = type(state).__name__, getattr(state, "_fields", None)
    if fields is None:
        groups = [[]]
        for part in state:
            groups = [[*before, *after] for before in groups for after in chains(part)]
        return groups
    if "inner_states" in fields:  # that of `partition`
        return [group for inner in state.inner_states.values() for group in chains(inner)]
    if name.startswith("Inject"):  # which tells its options
        told = [state, *getattr(state, "hyperparams_states", {}).values()]
        return [[*told, *group] for group in chains(state.inner_state)]
    if name == "MaskedState" and state.inner_state:
        return chains(state.inner_state)
    if name in SLOTS or name == "MaskedState" or not set(fields) - {"count"}:
        return [[state]]
    raise errors.ArgumentError(f"{name} in the state of optax: only SGD, Adam, AdamW and RMSprop are known")


def parts(groups):
    """Return the named tuples of all groups, each once."""
    return list({id(part): part for group in groups for part in group}.values())


def places_of(states):
    """Return the trees of arrays by slot."""
    places = {}
    for part in states:
        for field, slot in SLOTS.get(type(part).__name__, {}).items():
            places.setdefault(slot, []).append(getattr(part, field))
    return places


def arrays_in(places):
    """Return the arrays of some trees by name."""
    return {name: x for place in places if jax.tree.leaves(place) for name, x in weights.read(place).arrays.items()}


def names_in(group):
    return {name for places in places_of(group).values() for name in arrays_in(places)}


def options_of(groups):
    """Return the settings that states tell, those of `inject_hyperparams`, by Keras's names."""
    told = []
    for group in groups:
        own = {"epsilon is added to": "the corrected root"} if kind_of(group) == "adam" else {}
        masked = {"weight_decay"} if "MaskedState" in [type(part).__name__ for part in group] else set()
        for part in group:
            given = getattr(part, "hyperparams", {})
            if "learning_rate" in given:  # of an optimizer, not of a part of one
                if float(value_of(given.get("eps_root", 0.0))):
                    raise errors.ArgumentError("eps_root is an option that optax alone has")
                numbers = given.keys() - getattr(part, "hyperparams_states", {}).keys() - masked
                own |= {OPTIONS[name]: float(value_of(given[name])) for name in numbers & OPTIONS.keys()}
        told.append((sorted(names_in(group)), own))
    return _optimizers.join_groups(told)


def check_groups(groups, state):
    """Refuse groups that differ where those of optax do not, and a decay that an optimizer of optax has no place for."""
    by_parameter = [name for name, option in state.options.items() if isinstance(option, dict) and name != "groups"]
    for group in groups:
        kinds = [kind for part in group if not (kind := type(part).__name__).startswith(("Inject", "Wrapped"))]
        names = names_in(group)
        slot = next((n for n, kind in enumerate(kinds) if kind in SLOTS), None)
        place = len(kinds) - 2 if slot is None else slot
        maskable = {"l2": kinds[:place], "weight_decay": kinds[place:]}
        for option in by_parameter:
            places = names or (state.options[option] if len(groups) == 1 else ())
            values = {_optimizers.option_of(state.options, option, name) for name in places}
            if len(values) > 1 and "MaskedState" not in maskable.get(option, ()):
                raise errors.ArgumentError(
                    f"{option} differs between the state's groups of parameters, and not between those of the "
                    "optimizer: give optax.multi_transform, or a mask"
                )
        l2, decay = (
            max((_optimizers.option_of(state.options, option, name) for name in names or [""]), default=0.0)
            for option in ("l2", "weight_decay")
        )
        if l2 and place < 1:
            raise errors.ArgumentError(
                f"the state's optimizer adds squares of weights to the loss (l2 {l2}), and nothing in front of that "
                f"of optax does: optax.chain(optax.add_decayed_weights({l2}), …)"
            )
        # behind the slots there is the rate, and of RMSprop a momentum that may be none
        has_decay = len(kinds) - (slot or 0) > 2 + ("ScaleByR" in "".join(kinds))
        if decay and not has_decay:
            raise errors.ArgumentError(f"the state's optimizer decays weights by {decay}, that of optax does not")
        if "ScaleByAdamState" in kinds and has_decay and not decay and "weight_decay" in state.options:
            warnings.warn("the state's optimizer does not decay weights, that of optax may, as adamw", stacklevel=4)


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
        arrays = {name: arrays.get(name, x) for name, x in arrays_in([place]).items()}
        return weights.write(place, _weights.Weights(_weights.nested(arrays)), False, False) if arrays else place
    for name, variable in weights.nnx_variables(place).items():
        if name in arrays:
            variable.set_value(weights.as_leaf(name, arrays[name], variable[...], False))
    return place


def replace_slots(whole, state):
    """Return a state with what another optimizer has learned in its slots, and its number of steps."""
    if isinstance(whole, dict):
        return {label: replace_slots(part, state) for label, part in whole.items()}
    if not hasattr(whole, "_fields"):
        return type(whole)(replace_slots(part, state) for part in whole)
    made = {field: replace_slots(getattr(whole, field), state) for field in INSIDE if field in whole._fields}
    return replaced(whole, state)._replace(**made)


def replaced(part, state):
    """Return a named tuple with what is known of it replaced; of nnx, variables are changed."""
    slots = SLOTS.get(type(part).__name__, {})
    made = {field: write_arrays(getattr(part, field), state.slots[slot]) for field, slot in slots.items()}
    if "count" in part._fields and state.step is not None:
        count = jnp.asarray(state.step, jnp.asarray(value_of(part.count)).dtype)
        if hasattr(part.count, "set_value"):
            part.count.set_value(count)
        else:
            made["count"] = count
    return part._replace(**made)
