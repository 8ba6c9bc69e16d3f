"""What an optimizer has learned of its parameters, in terms of no framework."""

from __future__ import annotations

import dataclasses
import inspect
import math
import warnings
from typing import Any

from multiop import errors
from multiop.porting import _expressions, _weights
from multiop.porting._map import WeightMap
from multiop.porting._weights import Array


@dataclasses.dataclass
class OptimizerState:
    """What an optimizer has learned, in terms of no framework.

    Attributes:
        kind: "sgd", "adam", "adamw" or "rmsprop"; what optax has does not tell the second from the third.
        step: How many steps have been made; `None` where the optimizer counts none, as SGD of PyTorch. Then that of
            the other one stays, or `dataclasses.replace(state, step=…)` says it.
        slots: Arrays by the names of parameters: "momentum", the sum of what was subtracted, before it is multiplied
            by the learning rate; "first" and "second", the averages of gradients and of their squares; "largest", the
            largest second one so far (`amsgrad`).
        options: The settings by Keras's names, as far as the optimizer tells them: optax tells the "groups" that it
            has, and what `inject_hyperparams` holds. One that differs between groups of parameters is a dict, by
            parameter.
        frozen: Parameters that the optimizer has, and does not train.
    """

    kind: str
    step: int | None
    slots: dict[str, dict[str, Array]]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    frozen: list[str] = dataclasses.field(default_factory=list)

    def mapped(self, weight_map: WeightMap) -> OptimizerState:
        """Return the state for the parameters of another model.

        Args:
            weight_map: What `map_weights` returned for the two models.

        Returns:
            The state in the names and layouts of the map's target.

        Raises:
            ArgumentError: The map joins several parameters into one, whose training goes on differently.
        """
        sources = {name: _expressions.names(row.expression) for name, row in weight_map.rows.items()}

        def carried(option: Any) -> Any:
            if not isinstance(option, dict):
                return option
            made = {name: {option[part] for part in parts if part in option} for name, parts in sources.items()}
            torn = [name for name, values in made.items() if len(values) > 1]
            if torn:
                raise errors.ArgumentError(f"{_weights.abridge(torn)}: made of parameters of groups that differ")
            return {name: values.pop() for name, values in made.items() if values}

        joined = [name for name, row in weight_map.rows.items() if "sum (" in str(row.expression)]
        if joined:
            names = _weights.abridge(joined)
            raise errors.ArgumentError(
                f"{names}: a sum of several parameters, which one optimizer moves more than the other"
            )
        slots = {slot: weight_map.apply_to_gradients(arrays) for slot, arrays in self.slots.items()}
        options = {name: carried(option) for name, option in self.options.items()}
        frozen = [name for name, parts in sources.items() if parts and set(parts) <= set(self.frozen)]
        return dataclasses.replace(self, slots=slots, options=options, frozen=frozen)


def option_of(options: dict[str, Any], name: str, parameter: str, default: Any = 0.0) -> Any:
    """Return a setting as it is for one parameter."""
    option = options.get(name, default)
    return option.get(parameter, default) if isinstance(option, dict) else option


def join_groups(groups: list[tuple[list[str], dict[str, Any]]]) -> dict[str, Any]:
    """Return the settings that all groups of parameters tell as one, those that differ by parameter."""
    groups = [group for group in groups if group[0]] or groups
    options = {name: x for name, x in groups[0][1].items() if all(name in others for _, others in groups)}
    for name, option in options.items():
        if any(others[name] != option for _, others in groups):
            if name in ("momentum", "nesterov", "amsgrad", "centered"):
                raise errors.ArgumentError(f"groups of parameters that differ in {name} have no translation")
            options[name] = {parameter: others[name] for parameters, others in groups for parameter in parameters}
    return options


def slots_of(kind: str, options: dict[str, Any]) -> list[str]:
    """Return the slots that an optimizer of a kind keeps with its options."""
    if kind in ("adam", "adamw"):
        return ["first", "second", *["largest"] * bool(options["amsgrad"])]
    momentum = ["momentum"] * bool(options["momentum"])
    return momentum if kind == "sgd" else ["second", *momentum, *["first"] * bool(options["centered"])]


def check_class(optimizer: Any, own: type, method: str) -> None:
    """Refuse an optimizer of a class that is derived from a known one, and makes its steps otherwise."""
    here, there = (inspect.unwrap(getattr(kind, method)) for kind in (type(optimizer), own))
    if here is not there:
        raise errors.ArgumentError(f"{type(optimizer).__name__} has its own `{method}`, not that of {own.__name__}")


def check(state: OptimizerState, kind: str, slots: Any, options: dict[str, Any], names: Any) -> None:
    """Refuse a state that is not one of an optimizer of this kind, with these slots, settings and parameters."""
    places = [x["epsilon is added to"] for x in (state.options, options) if "epsilon is added to" in x]
    kinds = {kind, state.kind}
    if len(kinds) > 1 and kinds != {"adam", "adamw"}:
        raise errors.ArgumentError(f"the state is one of {state.kind}, the optimizer is of the kind {kind}")
    shared = [name for name in state.options if name in options and name != "epsilon is added to"]
    differing = []
    for name in shared:
        by_name = [x for x in (state.options[name], options[name]) if isinstance(x, dict)]
        for parameter in next(iter(by_name), [""]):
            ours, theirs = (option_of(x, name, parameter) for x in (state.options, options))
            if not _is_same(ours, theirs):
                differing.append(f"{name} {ours} and {theirs}" + (f" of {parameter}" if parameter else ""))
    if differing:
        raise errors.ArgumentError(
            f"the settings differ, of the state and of the optimizer: {_weights.abridge(differing)}"
        )
    if "groups" in state.options and options and not any(isinstance(x, dict) for x in options.values()):
        _warn("the state's optimizer has groups of parameters, whose settings optax does not tell; the other has none")
    if len(set(places)) > 1:
        _warn(
            f"the state's optimizer adds epsilon to {places[0]}, the other one to {places[1]}: steps differ where "
            "gradients are small"
        )
    if set(state.slots) != set(slots):
        raise errors.ArgumentError(
            f"the state has {_slot_names(state.slots)}, the optimizer keeps {_slot_names(slots)}: their settings differ"
        )
    kept = [name for name in state.frozen if name in names and not any(name in x for x in state.slots.values())]
    if kept and slots:
        _warn(f"{_weights.abridge(kept)}: frozen where the state is from, and trained by the other optimizer")
    for slot, arrays in state.slots.items():
        _weights.check_names(arrays, {name: None for name in names if name not in kept}, f"the slot {slot!r}")


def check_schedule(state: OptimizerState, has_schedule: bool, step: int) -> None:
    """Warn where a schedule begins anew because the state's optimizer counts no steps."""
    if has_schedule and state.step is None and not step:
        _warn("the state tells no step, so the schedule begins at its first one: dataclasses.replace(state, step=…)")


def _warn(words: str) -> None:
    warnings.warn(words, stacklevel=5)


def _is_same(a: Any, b: Any) -> bool:
    return math.isclose(a, b, rel_tol=1e-6) if isinstance(a, float) or isinstance(b, float) else bool(a == b)


def _slot_names(slots: Any) -> str:
    return ", ".join(sorted(slots)) or "no slots"


def fit_slot(slot: str, name: str, x: Array, like: Any, dtype: Any) -> Array:
    """Return an array for the place of another one, which must have its shape, in a dtype without loss."""
    return _weights.fit_array(f"{slot} of {name}", x, tuple(like.shape), dtype, False)
