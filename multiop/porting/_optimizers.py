"""What an optimizer has learned of its parameters, in terms of no framework."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

from multiop import errors
from multiop.porting import _weights
from multiop.porting._map import WeightMap
from multiop.porting._weights import Array


@dataclasses.dataclass
class OptimizerState:
    """What an optimizer has learned, in terms of no framework.

    Attributes:
        kind: "sgd", "adam", "adamw" or "rmsprop"; what optax has does not tell the second from the third.
        step: How many steps have been made.
        slots: Arrays by the names of parameters: "momentum", the sum of what was subtracted, before it is multiplied
            by the learning rate; "first" and "second", the averages of gradients and of their squares; "largest", the
            largest second one so far (`amsgrad`).
        options: The settings by Keras's names, as far as the optimizer tells them: optax tells none.
    """

    kind: str
    step: int
    slots: dict[str, dict[str, Array]]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    def mapped(self, weight_map: WeightMap) -> OptimizerState:
        """Return the state for the parameters of another model.

        Args:
            weight_map: What `map_weights` returned for the two models.

        Returns:
            The state in the names and layouts of the map's target.

        Raises:
            ArgumentError: The map joins several parameters into one, whose training goes on differently.
        """
        joined = [name for name, row in weight_map.rows.items() if "sum (" in str(row.expression)]
        if joined:
            names = _weights.abridge(joined)
            raise errors.ArgumentError(
                f"{names}: a sum of several parameters, which one optimizer moves more than the other"
            )
        slots = {slot: weight_map.apply_to_gradients(arrays) for slot, arrays in self.slots.items()}
        return dataclasses.replace(self, slots=slots)


def slots_of(kind: str, options: dict[str, Any]) -> list[str]:
    """Return the slots that an optimizer of a kind keeps with its options."""
    if kind in ("adam", "adamw"):
        return ["first", "second", *["largest"] * bool(options["amsgrad"])]
    momentum = ["momentum"] * bool(options["momentum"])
    return momentum if kind == "sgd" else ["second", *momentum, *["first"] * bool(options["centered"])]


def check(state: OptimizerState, kind: str, slots: Any, options: dict[str, Any], names: Any) -> None:
    """Refuse a state that is not one of an optimizer of this kind, with these slots, settings and parameters."""
    places = [x["epsilon is added to"] for x in (state.options, options) if "epsilon is added to" in x]
    kinds = {kind, state.kind}
    if len(kinds) > 1 and kinds != {"adam", "adamw"}:
        raise errors.ArgumentError(f"the state is one of {state.kind}, the optimizer is of the kind {kind}")
    differing = [
        f"{name} {state.options[name]} and {options[name]}"
        for name in state.options
        if name in options and name != "epsilon is added to" and not _is_same(state.options[name], options[name])
    ]
    if differing:
        raise errors.ArgumentError(f"the settings differ, of the state and of the optimizer: {', '.join(differing)}")
    if len(set(places)) > 1:
        warnings.warn(
            f"the state's optimizer adds epsilon to {places[0]}, the other one to {places[1]}: steps differ where "
            "gradients are small",
            stacklevel=4,
        )
    if set(state.slots) != set(slots):
        raise errors.ArgumentError(
            f"the state has {_slot_names(state.slots)}, the optimizer keeps {_slot_names(slots)}: their settings differ"
        )
    for slot, arrays in state.slots.items():
        _weights.check_names(arrays, dict.fromkeys(names), f"the slot {slot!r}")


def _is_same(a: Any, b: Any) -> bool:
    return math.isclose(a, b, rel_tol=1e-6) if isinstance(a, float) or isinstance(b, float) else bool(a == b)


def _slot_names(slots: Any) -> str:
    return ", ".join(sorted(slots)) or "no slots"


def fit_slot(slot: str, name: str, x: Array, like: Any, dtype: Any) -> Array:
    """Return an array for the place of another one, which must have its shape, in a dtype without loss."""
    return _weights.fit_array(f"{slot} of {name}", x, tuple(like.shape), dtype, False)
