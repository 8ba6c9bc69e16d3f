"""A map from one set of weights to another: found by names, layouts and shapes, reviewed, edited, applied, inverted."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from multiop import errors
from multiop.testing import _html

from . import _expressions, _io, _layouts, _weights
from ._expressions import Expression, Name, Shape
from ._weights import Weights

FORMAT = 1
SECTIONS = ("params", "state")
COLUMNS = ("target", "shape", "made of", "by")


@dataclasses.dataclass(frozen=True)
class Row:
    """One array of the target.

    Attributes:
        expression: What it is made of.
        how: What it was matched by: "name", "similar name", "order", "shape", "choice" or "file".
    """

    expression: Expression
    how: str


class WeightMap:
    """How each array of a target is made from the arrays of a source.

    `print(map)` shows it as a table; `map.save(path)` writes it as a text that can be edited; `map.apply(weights)`
    makes the target's weights; `map.invert()` is the way back.

    Attributes:
        rows: The target's arrays by name, and what each is made of.
        ambiguous: For each array of the target that may be made in several ways, those ways, as text.
        missing: Arrays of the target that nothing was found for.
        unused: Arrays of the source that nothing is made of, or of a part only.
        kept: Arrays of the target that stay as they are.
        ignored: Arrays of the source that are left out on purpose, and counters, which no other framework has.
    """

    def __init__(self, source: Mapping[str, Shape], target: Weights | Mapping[str, Any]) -> None:
        """Begin a map that has no rows.

        Args:
            source: The shapes of the source's arrays by name.
            target: The target's weights; arrays of the right shapes do.
        """
        self.source = dict(source)
        self._target = target if isinstance(target, Weights) else Weights(dict(target))
        self.target = {name: x.shape for name, x in self._target.arrays.items()}
        self.rows: dict[str, Row] = {}
        self.ambiguous: dict[str, list[str]] = {}
        self.missing: list[str] = []
        self.unused: list[str] = []
        self.kept: list[str] = []
        self.ignored: list[str] = []

    # what is open

    def settle(self) -> None:
        """List anew what is missing and unused."""
        solved, _ = _expressions.solve([(row.expression, Name(n)) for n, row in self.rows.items()], self.source)
        taken = {*self.rows, *self.kept, *self.ambiguous}
        self.missing = [name for name in self.target if name not in taken]
        waiting = {
            n for texts in self.ambiguous.values() for t in texts for n in _expressions.names(_expressions.parse(t))
        }
        self.unused = [name for name in self.source if name not in {*solved, *waiting, *self.ignored}]

    @property
    def unresolved(self) -> list[str]:
        """What keeps the map from being applied, a line each."""
        problems = [f"{name}: ambiguous: {' or '.join(ways)}" for name, ways in self.ambiguous.items()]
        problems += [f"{name}: nothing in the source for it" for name in self.missing]
        return problems + [f"{name}: nothing in the target is made of it, or not of all of it" for name in self.unused]

    @property
    def by_order(self) -> list[str]:
        """The target's arrays that only the order tells from others of the same shape."""
        return [name for name, row in self.rows.items() if row.how == "order"]

    def choose(self, target: str, way: int | str = 0) -> WeightMap:
        """Say what an array of the target is made of.

        Args:
            target: The array's name.
            way: The number of one of the ways in `ambiguous`, from 0, or an expression: `"dense.weight | transpose 1
                0"`.

        Returns:
            The map itself.
        """
        if target not in self.target:
            raise errors.ArgumentError(f"target: there is no {target}")
        if isinstance(way, int):
            ways = self.ambiguous.get(target, [])
            if not 0 <= way < len(ways):
                raise errors.ArgumentError(f"way: {target} has {len(ways)} ways, so {way} is none of them")
            way = ways[way]
        expression = _expressions.parse(way)
        self._check(target, expression)
        self.rows[target] = Row(expression, "choice")
        self.ambiguous.pop(target, None)
        self.kept = [name for name in self.kept if name != target]
        self.settle()
        return self

    def keep(self, *targets: str) -> WeightMap:
        """Leave arrays of the target as they are; `apply` leaves them out. Returns the map itself."""
        for name in targets:
            if name not in self.target:
                raise errors.ArgumentError(f"keep: there is no {name} in the target")
            self.rows.pop(name, None)
            self.ambiguous.pop(name, None)
            self.kept.append(name)
        self.settle()
        return self

    def ignore(self, *sources: str) -> WeightMap:
        """Leave arrays of the source out. Returns the map itself."""
        for name in sources:
            if name not in self.source:
                raise errors.ArgumentError(f"ignore: there is no {name} in the source")
            self.ignored.append(name)
        self.settle()
        return self

    def _check(self, target: str, expression: Expression) -> None:
        unknown = [name for name in _expressions.names(expression) if name not in self.source]
        if unknown:
            raise errors.ArgumentError(f"{target}: there is no {_weights.abridge(unknown)} in the source")
        shape = _expressions.shape(expression, self.source)
        if shape != self.target[target]:
            raise errors.ArgumentError(
                f"{target}: {expression} has shape {shape}, the target has {self.target[target]}"
            )

    # use

    def apply(self, weights: Any, *, unresolved: str = "raise") -> Weights:
        """Make the target's weights.

        Args:
            weights: The source's weights, or what `read_weights` reads. The dtypes stay as they are.
            unresolved: "raise", or "skip" to leave out what is missing, unused or ambiguous.

        Returns:
            The weights in the target's names and layouts, without the arrays that are `kept`.

        Raises:
            ArgumentError: Something is unresolved, or the weights are not those of the source.
        """
        self._raise_unresolved(unresolved)
        arrays = self._with_shared(_io.read_weights(weights).arrays)
        optional = dict.fromkeys(name for name in self.ignored if name not in arrays)
        _weights.check_names(arrays | optional, self.source, "the source's weights")
        for name, x in arrays.items():
            if x.shape != self.source[name]:
                raise errors.ArgumentError(f"{name}: shape {x.shape} where the map has {self.source[name]}")
        made = {name: _expressions.evaluate(row.expression, arrays) for name, row in self.rows.items()}
        like = self._target
        trees = _subtree(like.params, made), _subtree(like.state, made)
        return Weights(*trees, like.framework, dict(like.kinds), like.is_ordered)

    def _with_shared(self, arrays: dict[str, _weights.Array]) -> dict[str, _weights.Array]:
        """Return arrays with those that are missing, but are to be equal to one that is there: tied weights."""
        for row in self.rows.values():
            names = _expressions.names(row.expression)
            present = [name for name in names if name in arrays]
            if isinstance(row.expression, _expressions.Joined) and row.expression.how == "equal" and present:
                arrays = {name: arrays[present[0]] for name in names if name not in arrays} | arrays
        return arrays

    def apply_to_gradients(self, gradients: Mapping[str, Any]) -> dict[str, Any]:
        """Make the gradients of the target's parameters from those of the source's, by name.

        The gradients of two biases that are summed are equal, and each is that of the sum.
        """
        made = {}
        for name, row in self.rows.items():
            if all(name in gradients for name in _expressions.names(row.expression)):
                made[name] = _expressions.evaluate(row.expression, gradients, gradient=True)
        return made

    def _raise_unresolved(self, unresolved: str) -> None:
        if unresolved not in ("raise", "skip"):
            raise errors.ArgumentError(f"unresolved: {unresolved!r} is neither 'raise' nor 'skip'")
        if unresolved == "raise" and self.unresolved:
            lines = self.unresolved
            more = [f"  and {len(lines) - 12} more"] if len(lines) > 12 else []
            head = f"{len(lines)} weights are unresolved; use choose, keep or ignore, edit the saved map, or "
            head += "apply(…, unresolved='skip')"
            raise errors.ArgumentError("\n".join([head, *(f"  {line}" for line in lines[:12]), *more]))

    def invert(self) -> WeightMap:
        """Return the map from the target to the source.

        It is exact but for sums: of two biases that were summed, the first becomes the sum and the others zero.
        """
        equations = [(row.expression, Name(name)) for name, row in self.rows.items()]
        solved, _ = _expressions.solve(equations, self.source)
        original = self._source or Weights(_weights.nested({name: _placeholder(x) for name, x in self.source.items()}))
        inverse = WeightMap(self.target, original)
        inverse._source = self._target
        hows = {n: row.how for row in self.rows.values() for n in _expressions.names(row.expression)}
        inverse.rows = {name: Row(solved[name], hows[name]) for name in self.source if name in solved}
        inverse.kept, inverse.ignored = list(self.ignored), list(self.kept)
        inverse.settle()
        return inverse

    # text

    def __str__(self) -> str:
        """Return the map as a table of at most 100 columns where the names allow it."""
        lines = [COLUMNS, *self._lines()]
        widths = [max(len(line[n]) for line in lines) for n in range(4)]
        text = ["  ".join(x.ljust(width) for x, width in zip(line, widths, strict=True)).rstrip() for line in lines]
        for title in ("missing", "unused", "kept", "ignored"):
            names = getattr(self, title)
            most = 6 if title in ("kept", "ignored") else len(names)
            text += [f"{title}: {_weights.abridge(names, most)}"] * bool(names)
        text += [f"ambiguous: {name}: {' or '.join(ways)}" for name, ways in self.ambiguous.items()]
        if self.by_order:
            text.append(f"by order among layers of one shape: {len(self.by_order)} weights: check them, or compare")
        open_ = len(self.unresolved)
        return "\n".join(
            [*text, f"{len(self.rows)} weights mapped, " + (f"{open_} unresolved" if open_ else "none open")]
        )

    def _lines(self) -> list[tuple[str, str, str, str]]:
        return [
            (name, _expressions.shape_text(self.target[name]), str(row.expression), row.how)
            for name, row in self.rows.items()
        ]

    def __repr__(self) -> str:
        return f"WeightMap({len(self.rows)} weights, {len(self.unresolved)} unresolved)"

    def _repr_html_(self) -> str:
        """Return what is unresolved, and the map as a table, for a notebook."""
        tables: dict[str, tuple[Any, Any]] = {"": (("unresolved",), [[line] for line in self.unresolved])}
        tables = tables if self.unresolved else {}
        summary = str(self).splitlines()[-1]
        return _html.fragment(summary, not self.unresolved, tables | {"the map": (COLUMNS, self._lines())})

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the map as TOML, a line for each weight, to be read with `WeightMap.load`."""
        lines = ["# target = what it is made of. Steps: " + ", ".join(_expressions.STEPS), f"format = {FORMAT}"]
        for which, names in (("keep", self.kept), ("ignore", self.ignored)):
            lines.append(f"{which} = {json.dumps(names)}")
        like = {"params": _weights.flat(self._target.params), "state": _weights.flat(self._target.state)}
        for section in SECTIONS:
            lines += ["", f"[{section}]"]
            lines += [f"{_quote(n)} = {_quote(str(self.rows[n].expression))}" for n in like[section] if n in self.rows]
        if self.ambiguous:
            lines += ["", "# move a line to [params] or [state], and leave one of its ways"]
            lines += ["[ambiguous]", *(f"{_quote(n)} = {json.dumps(ways)}" for n, ways in self.ambiguous.items())]
        for which, shapes in (("source", self.source), ("target", self.target)):
            lines += ["", f"[shapes.{which}]"]
            lines += [f"{_quote(name)} = {json.dumps(list(shape))}" for name, shape in shapes.items()]
        original = self._source or Weights()
        for which, weights in (("source", original), ("target", self._target)):
            lines += ["", f"[layers.{which}]", f"framework = {_quote(weights.framework or '')}"]
            lines += [f"state = {json.dumps(list(_weights.flat(weights.state)))}"]
            lines += [f"is_ordered = {json.dumps(weights.is_ordered)}"]
            lines += [f"kinds = {{ {', '.join(f'{_quote(k)} = {_quote(v)}' for k, v in weights.kinds.items())} }}"]
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> WeightMap:
        """Read a map from a file that `save` wrote, edited or not."""
        try:
            said = tomllib.loads(Path(path).read_text(encoding="utf-8"))
            if said["format"] != FORMAT:
                raise errors.ArgumentError(f"{path}: format {said['format']}, this version reads {FORMAT}")
            ends = {}
            for which in ("source", "target"):
                arrays = {name: _placeholder(shape) for name, shape in said["shapes"][which].items()}
                layers = said["layers"][which]
                state = {name: x for name, x in arrays.items() if name in layers["state"]}
                params = {name: x for name, x in arrays.items() if name not in state}
                trees = _weights.nested(params), _weights.nested(state)
                ends[which] = Weights(*trees, layers["framework"] or None, layers["kinds"], layers["is_ordered"])
            weight_map = cls({name: tuple(shape) for name, shape in said["shapes"]["source"].items()}, ends["target"])
            rows = {name: text for section in SECTIONS for name, text in said.get(section, {}).items()}
        except (KeyError, TypeError, AttributeError, tomllib.TOMLDecodeError) as error:
            raise errors.ArgumentError(f"{path}: not a map of weights: {error!r}") from None
        weight_map._source = ends["source"]
        for name, text in rows.items():
            if name not in weight_map.target:
                raise errors.ArgumentError(f"{path}: there is no {name} in the target")
            expression = _expressions.parse(text)
            weight_map._check(name, expression)
            weight_map.rows[name] = Row(expression, "file")
        weight_map.kept, weight_map.ignored = list(said["keep"]), list(said["ignore"])
        weight_map.ambiguous = {n: ways for n, ways in said.get("ambiguous", {}).items() if n not in rows}
        weight_map.settle()
        return weight_map

    _source: Weights | None = None


def _placeholder(shape: Iterable[int]) -> Any:
    return np.broadcast_to(np.float32(0), tuple(shape))


def _subtree(tree: Mapping[str, Any], arrays: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the part of a tree that there are arrays for."""
    chosen = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            if inner := _subtree(value, arrays, name + "."):
                chosen[key] = inner
        elif name in arrays:
            chosen[key] = arrays[name]
    return chosen


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# matching


@dataclasses.dataclass
class Layer:
    """The arrays of one layer.

    Attributes:
        path: The layer's name.
        leaves: The shapes of its arrays, by their names in the layer.
        names: The full names of its arrays.
        layouts: The types and layouts that it may have.
    """

    path: str
    leaves: dict[str, Shape]
    names: dict[str, str]
    layouts: list[tuple[str, _layouts.Layout]]

    @property
    def types(self) -> list[str]:
        return sorted({kind for kind, _ in self.layouts}) or ["other"]


COLLECTIONS = ("params", "batch_stats", "cache", "constants", "intermediates")


def layers(weights: Weights) -> list[Layer]:
    """Take weights apart into layers, in order."""
    leaves_of: dict[str, dict[str, str]] = {}  # path -> name in the layer -> full name
    arrays = weights.arrays
    together = _wholes(weights)
    for name in arrays:
        bare = _without_collection(name)
        whole = next((path for path in together if bare.startswith(path + ".") or not path), None)
        path, _, leaf = bare.rpartition(".")
        if whole is not None:
            path, leaf = whole, bare[len(whole) + 1 if whole else 0 :]
        elif match := _layouts.NUMBERED.fullmatch(leaf):
            path, leaf = f"{path}@l{match[2]}{match[3] or ''}", match[1]
        elif leaf == "depthwise_kernel":
            path += "@depthwise"
        leaves_of.setdefault(path, {})[leaf] = name
    made = []
    for path, names in leaves_of.items():
        leaves = {leaf: arrays[name].shape for leaf, name in names.items()}
        made.append(Layer(path, leaves, names, _layouts_of(weights, path, leaves, together)))
    return made


def _wholes(weights: Weights) -> dict[str, tuple[str, _layouts.Layout]]:
    """Return the paths below which several layers are one: attention, and recurrent cells of flax."""
    arrays = _weights.flat(weights.params)
    children: dict[str, set[str]] = {}
    for name in arrays:
        parts = name.split(".")
        for n in range(len(parts)):
            children.setdefault(".".join(parts[:n]), set()).add(parts[n])
    wholes: dict[str, tuple[str, _layouts.Layout]] = {}
    for path, below in children.items():
        known = _layouts.KINDS.get(weights.framework or "", {}).get(weights.kinds.get(path, ""))
        whole = [(below, known)] if known is not None and known[0] in ("lstm", "gru", "rnn", "attention") else []
        for names, layout in [*whole, *_layouts.TOGETHER]:
            if names <= below:
                prefix = f"{path}." if path else ""
                shapes = {n.removeprefix(prefix): x.shape for n, x in arrays.items() if n.startswith(prefix)}
                if layout[1](shapes):
                    wholes.setdefault(path, layout)
    return wholes


def _layouts_of(
    weights: Weights, path: str, leaves: dict[str, Shape], together: Mapping[str, tuple[str, _layouts.Layout]]
) -> list[tuple[str, _layouts.Layout]]:
    if set(leaves) <= _weights.COUNTERS:  # which Keras keeps beside the layer that they belong to
        return []
    if path in together:
        return [together[path]]
    bare, _, pseudo = path.partition("@")
    kind = weights.kinds.get(bare)
    if pseudo == "depthwise":
        return [("conv", _layouts.depthwise)]
    if "pointwise_kernel" in leaves:
        return [("conv", _layouts.conv_channels_last)]
    return _layouts.of_kind(weights.framework, kind, leaves)


def ways_between(source: Layer, target: Layer) -> dict[str, list[Expression]]:
    """Return, for each array of `target` by its full name, the ways to make it from the arrays of `source`."""
    ways: dict[str, list[Expression]] = {}
    shapes = {name: source.leaves[leaf] for leaf, name in source.names.items()}
    for (kind, before), (other, after) in itertools.product(source.layouts, target.layouts):
        if kind != other:
            continue
        for expressions in _through(before(source.leaves), after(target.leaves), target):
            full: dict[str, Expression] = {leaf: Name(name) for leaf, name in source.names.items()}
            made = {leaf: _expressions.substitute(expression, full) for leaf, expression in expressions.items()}
            if all(_fits(expression, shapes, target.leaves[leaf]) for leaf, expression in made.items()):
                for leaf, expression in made.items():
                    options = ways.setdefault(target.names[leaf], [])
                    if expression not in options:
                        options.append(expression)
    for leaf, shape in target.leaves.items():  # what no layout knows must have the same name and shape
        same = source.leaves.get(leaf) == shape
        is_extra = leaf not in _layouts.ROLES and leaf.rpartition(".")[2] not in ("kernel", "embedding", "embeddings")
        if same and target.names[leaf] not in ways and (not source.layouts or not target.layouts or is_extra):
            ways[target.names[leaf]] = [Name(source.names[leaf])]
    return ways


def _through(before: list[_layouts.Form], after: list[_layouts.Form], target: Layer) -> Iterable[dict[str, Expression]]:
    """Return the target's arrays in terms of the source's, by the first form that both have."""
    fallback = None
    for first, other in itertools.product(before, after):
        shared = [role for role in other if role in first]
        if not shared:
            continue
        solved, _ = _expressions.solve([(other[role], Name(role)) for role in shared], target.leaves)
        made = {leaf: _expressions.substitute(expression, first) for leaf, expression in solved.items()}
        if set(first) == set(other):
            return [made]
        if fallback is None or len(made) > len(fallback):
            fallback = made
    return [] if fallback is None else [fallback]


def _fits(expression: Expression, shapes: Mapping[str, Shape], wanted: Shape) -> bool:
    try:
        return _expressions.shape(expression, shapes) == wanted
    except errors.ArgumentError:
        return False


def _simple(path: str) -> str:
    """Return a path in the spelling that frameworks share."""
    return re.sub(r"[._/@]+", ".", re.sub(r"(?<=[a-z])(?=[A-Z])", ".", path)).lower().strip(".")


def _without_root(all_layers: list[Layer]) -> dict[str, list[Layer]]:
    """Return layers by their simple names, without the first part if all have it."""
    roots = {_simple(layer.path).partition(".")[0] for layer in all_layers}
    layers_by_path: dict[str, list[Layer]] = {}
    for layer in all_layers:
        name = _simple(layer.path)
        if len(roots) == 1 and len(all_layers) > 1:
            name = name.partition(".")[2]
        layers_by_path.setdefault(name, []).append(layer)
    return layers_by_path


def map_weights(source: Any, target: Any) -> WeightMap:
    """Find how the weights of `target` are made from those of `source`.

    Layers are matched by name, then by names that differ in spelling, then by order and shape among layers of one
    type. The layout of each array follows from the framework and the class of its layer: it is not guessed from the
    shape, where the class is known.

    Args:
        source: `Weights`, or what `read_weights` reads.
        target: The same.

    Returns:
        A `WeightMap`, which lists what is missing, unused and ambiguous: print it.

    Example:
        >>> import numpy as np
        >>> from multiop import porting
        >>> source = porting.Weights({"fc": {"weight": np.ones((3, 2)), "bias": np.zeros(3)}}, framework="torch",
        ...     kinds={"fc": "Linear"})
        >>> target = {"fc": {"kernel": np.ones((2, 3)), "bias": np.zeros(3)}}
        >>> print(porting.map_weights(source, target))
        target     shape  made of                      by
        fc.kernel  2x3    fc.weight | transpose 1 0    name
        fc.bias    3      fc.bias                      name
        2 weights mapped, none open
    """
    source, target = _io.read_weights(source), _io.read_weights(target)
    weight_map = WeightMap({name: x.shape for name, x in source.arrays.items()}, target)
    weight_map._source = source
    if any(weights.kinds.get("") in ("PortedModule", "PortedLayer") for weights in (source, target)):
        weight_map.rows = _by_names_of_port(source, target)
    done = {*weight_map.rows, *(n for row in weight_map.rows.values() for n in _expressions.names(row.expression))}
    waiting, wanted = ([] if done else layers(weights) for weights in (source, target))
    for how, pairs in (("name", _by_path), ("similar name", _by_simple_path)):
        _match(weight_map, waiting, wanted, pairs(waiting, wanted), how)
    _by_order(weight_map, waiting, wanted, source.is_ordered and target.is_ordered)
    _offer_fused_layers(weight_map, waiting, wanted)
    _offer_flatten_orders(weight_map, source, target)
    weight_map.rows = {name: weight_map.rows[name] for name in weight_map.target if name in weight_map.rows}
    used = {n for row in weight_map.rows.values() for n in _expressions.names(row.expression)}
    counters = {name for name in [*source.arrays, *target.arrays] if name.rpartition(".")[2] in _weights.COUNTERS}
    weight_map.ignored = [name for name in source.arrays if name in counters and name not in used]
    weight_map.kept = [name for name in target.arrays if name in counters and name not in weight_map.rows]
    weight_map.settle()
    return weight_map


def _by_names_of_port(source: Weights, target: Weights) -> dict[str, Row]:
    """Return rows by name alone, if all arrays fit: a port has the names and the layouts of its original."""
    arrays, wanted = source.arrays, target.arrays
    bare = {_without_collection(name): name for name in arrays}
    first = {id(x): bare[short] for name, x in wanted.items() if (short := _without_collection(name)) in bare}
    rows = {}
    for name, x in wanted.items():
        if id(x) in first:  # several names of one array are made of one
            own = arrays[first[id(x)]]
            shared = [other for other, y in arrays.items() if y is own and other != first[id(x)]]
            rows[name] = Row(_expressions.equal(*map(Name, (first[id(x)], *shared))), "name")
    used = {n for row in rows.values() for n in _expressions.names(row.expression)}
    left = [name for name in [*wanted, *arrays] if name not in used and name not in rows]
    fits = all(
        arrays[n].shape == wanted[to].shape for to, row in rows.items() for n in _expressions.names(row.expression)
    )
    extra = [n for n in left if n.rpartition(".")[2] not in _weights.COUNTERS and not n.startswith("constant")]
    return rows if fits and not extra else {}


def _without_collection(name: str) -> str:
    first, _, rest = name.partition(".")
    return rest if first in COLLECTIONS and rest else name


def _match(
    weight_map: WeightMap, waiting: list[Layer], wanted: list[Layer], pairs: list[tuple[Layer, Layer]], how: str
) -> None:
    """Put pairs of layers that are related into the map, and take them off the lists."""
    for layer, other in pairs:
        ways = ways_between(layer, other)
        if not ways:
            continue
        for name, expressions in ways.items():
            if len(expressions) == 1:
                weight_map.rows[name] = Row(expressions[0], how)
            else:
                weight_map.ambiguous[name] = list(map(str, expressions))
        waiting.remove(layer)
        wanted.remove(other)


def _by_path(waiting: list[Layer], wanted: list[Layer]) -> list[tuple[Layer, Layer]]:
    by_path = {layer.path: layer for layer in waiting}
    return [(by_path[layer.path], layer) for layer in wanted if layer.path in by_path]


def _by_simple_path(waiting: list[Layer], wanted: list[Layer]) -> list[tuple[Layer, Layer]]:
    own, other = _without_root(waiting), _without_root(wanted)
    # a number alone is no name: 1 is the second layer of a Sequential, and dense_1 the second dense layer
    named = [n for n in other if re.search("[a-z]", n)]
    return [(own[n][0], other[n][0]) for n in named if len(other[n]) == 1 and len(own.get(n, ())) == 1]


def _by_order(weight_map: WeightMap, waiting: list[Layer], wanted: list[Layer], is_ordered: bool) -> None:
    """Match the rest among layers of one type: in order if all fit, else those that fit one layer alone."""
    for kind in sorted({kind for layer in wanted for kind in layer.types}):
        sources = [layer for layer in waiting if kind in layer.types]
        targets = [layer for layer in wanted if kind in layer.types]
        pairs = list(zip(sources, targets, strict=False))
        fit = [_complete(layer, other) for layer, other in pairs]
        if len(sources) == len(targets) and all(fit) and (is_ordered or len(pairs) == 1):
            shapes = [sorted(layer.leaves.values()) for layer in targets]
            for pair, own in zip(pairs, shapes, strict=True):
                _match(weight_map, waiting, wanted, [pair], "shape" if shapes.count(own) == 1 else "order")
            continue
        table = {(s.path, t.path): _complete(s, t) for s in sources for t in targets}
        for other in targets:
            able = [source for source in sources if table[source.path, other.path]]
            if len(able) == 1 and sum(table[able[0].path, t.path] for t in targets) == 1:
                _match(weight_map, waiting, wanted, [(able[0], other)], "shape")
            elif able:
                wanted.remove(other)
                for candidate in able:
                    for name, expressions in ways_between(candidate, other).items():
                        ways = weight_map.ambiguous.setdefault(name, [])
                        ways += [str(expression) for expression in expressions if str(expression) not in ways]


def _complete(source: Layer, target: Layer) -> bool:
    """Return whether all arrays of one layer, but for counters, are made of all those of the other."""
    ways = ways_between(source, target)
    used = {name for expressions in ways.values() for way in expressions for name in _expressions.names(way)}
    return _but_counters(target) <= set(ways) and _but_counters(source) <= used


def _but_counters(layer: Layer) -> set[str]:
    return {name for leaf, name in layer.names.items() if leaf not in _weights.COUNTERS}


def _offer_flatten_orders(weight_map: WeightMap, source: Weights, target: Weights) -> None:
    """List the ways of a dense kernel that may stand behind a flattened image: it is flattened in two orders."""
    first = {"torch": True, "equinox": True, "keras": False, "flax": False, "tensorflow": False}
    before, after = first.get(source.framework or ""), first.get(target.framework or "")
    if before is None or after is None or before == after:
        return
    channels = None
    for layer in layers(target):
        forms = [form for kind, layout in layer.layouts if kind in ("conv", "dense") for form in layout(layer.leaves)]
        if layer.types == ["conv"] and forms:
            channels = _expressions.shape(forms[0]["kernel"], layer.leaves)[-1]
        elif layer.types == ["dense"] and forms and channels:
            size, out = _expressions.shape(forms[0]["kernel"], layer.leaves)
            (name,) = (n for leaf, n in layer.names.items() if leaf in _expressions.names(forms[0]["kernel"]))
            if size % channels == 0 and size > channels and name in weight_map.rows:
                _list_flattened(weight_map, name, forms[0]["kernel"], (channels, size // channels, out), before)
            channels = None


def _list_flattened(
    weight_map: WeightMap, name: str, kernel: Expression, sizes: tuple[int, int, int], from_first: bool
) -> None:
    channels, area, out = sizes
    plain = weight_map.rows.pop(name).expression
    (leaf,) = _expressions.names(kernel)
    in_out = _expressions.substitute(kernel, {leaf: plain})
    ways = []
    heights = sorted((h for h in range(1, area + 1) if area % h == 0), key=lambda h: abs(h - area // h))
    for height in heights:
        image = (channels, height, area // height, out) if from_first else (height, area // height, channels, out)
        order = (1, 2, 0, 3) if from_first else (2, 0, 1, 3)
        moved = _expressions.transpose(_expressions.reshape(in_out, (channels * area, out), image), *order)
        moved = _expressions.reshape(moved, tuple(image[n] for n in order), (channels * area, out))
        solved, _ = _expressions.solve([(kernel, Name("moved"))], {leaf: weight_map.target[name]})
        ways.append(str(_expressions.substitute(solved[leaf], {"moved": moved})))
    weight_map.ambiguous[name] = [*ways, str(plain)]


THIRDS = [("q", "k", "v"), ("query", "key", "value"), ("q_proj", "k_proj", "v_proj"), ("wq", "wk", "wv")]


def _offer_fused_layers(weight_map: WeightMap, waiting: list[Layer], wanted: list[Layer]) -> None:
    """List a dense layer that may be query, key and value at once: their order in it is not known."""
    for thirds in _thirds(wanted):
        for fused in [layer for layer in waiting if "dense" in layer.types]:
            for n, other in enumerate(thirds):
                _list_ways(weight_map, _split(fused, n, len(thirds)), other)
    for thirds in _thirds(waiting):
        for other in [layer for layer in wanted if "dense" in layer.types]:
            _list_ways(weight_map, _side_by_side(thirds), other)


def _thirds(all_layers: list[Layer]) -> list[list[Layer]]:
    by_path = {layer.path: layer for layer in all_layers if "dense" in layer.types}
    thirds = []
    for names in THIRDS:
        for path in by_path:
            parent, _, leaf = path.rpartition(".")
            paths = [f"{parent}.{name}".lstrip(".") for name in names]
            trio = [by_path[each] for each in paths if each in by_path]
            if leaf == names[0] and len(trio) == len(names):
                thirds.append(trio)
    return thirds


def _split(layer: Layer, n: int, of: int) -> list[dict[str, tuple[Expression, Shape]]]:
    """Return, for each layout of a dense layer, the kernel and bias of one part of its outputs."""
    pieces = []
    for kind, layout in layer.layouts:
        for form in layout(layer.leaves) if kind == "dense" else []:
            made = {}
            full: dict[str, Expression] = {leaf: Name(name) for leaf, name in layer.names.items()}
            for role, expression in form.items():
                shape = _expressions.shape(expression, layer.leaves)
                width = shape[-1] // of
                piece = _expressions.part(expression, len(shape) - 1, n * width, (n + 1) * width, shape[-1])
                made[role] = (_expressions.substitute(piece, full), (*shape[:-1], width))
            pieces.append(made)
    return pieces


def _side_by_side(thirds: list[Layer]) -> list[dict[str, tuple[Expression, Shape]]]:
    """Return the kernel and bias of a dense layer that has the outputs of several."""
    whole = [_split(layer, 0, 1)[:1] for layer in thirds]
    if not all(whole):
        return []
    made = {}
    for role in whole[0][0]:
        pieces = [forms[0][role] for forms in whole if role in forms[0]]
        *front, _ = pieces[0][1]
        width = sum(shape[-1] for _, shape in pieces)
        made[role] = (_expressions.concat(len(front), *(piece for piece, _ in pieces)), (*front, width))
    return [made]


def _list_ways(weight_map: WeightMap, forms: list[dict[str, tuple[Expression, Shape]]], target: Layer) -> None:
    for form, (kind, layout) in itertools.product(forms, target.layouts):
        for wanted in layout(target.leaves) if kind == "dense" else []:
            shared = [role for role in wanted if role in form]
            if any(_expressions.shape(wanted[role], target.leaves) != form[role][1] for role in shared):
                continue
            solved, _ = _expressions.solve([(wanted[role], Name(role)) for role in shared], target.leaves)
            by = {role: expression for role, (expression, _) in form.items()}
            for leaf, expression in solved.items():
                ways = weight_map.ambiguous.setdefault(target.names[leaf], [])
                text = str(_expressions.substitute(expression, by))
                ways += [text] if text not in ways else []
