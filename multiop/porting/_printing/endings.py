"""Blocks of layers whose names end alike, under names that begin alike, as the printer has those of other blocks."""

from __future__ import annotations

import collections
import dataclasses
import re

from multiop.porting import _graph
from multiop.porting._graph import Expression, Graph, Node, Scope, Value

MARK = "~"  # what such names begin with; no layer of Keras may have it in its name


def write_endings(graph: Graph) -> Graph:
    """Return the graph with `~4_conv` for `conv_4` of a block `*_4`, and `conv{ending}` in a block with a dict."""
    names: dict[str, str] = {}  # of the layers
    for node in graph.nodes:
        if node.scopes and node.scopes[0].path.startswith("*"):
            ending = node.scopes[0].path[1:]
            paths = [value.name for value in _graph.values(node.expression) if value.kind in ("params", "state")]
            for path in [*paths, *([] if node.update is None else [node.update]), *(s.path for s in node.scopes[1:])]:
                layer = path.partition(".")[0]
                names[layer] = f"{_beginning(ending)}{layer.removesuffix(ending)}"
    blocks = {scope.path: scope.ending for node in graph.nodes for scope in node.scopes if scope.ending}
    if not names and not blocks:
        return graph
    homes: dict[str, set[str]] = collections.defaultdict(set)  # the outermost blocks in which a name occurs
    for path in (*graph.params, *graph.state):
        for part in path.split(".")[1:]:
            homes[part].add(path.partition(".")[0])

    def path_of(path: str) -> str:
        layer, *rest = path.split(".")
        changed, ending = [names.get(layer, layer)], ""
        for number, part in enumerate(rest, 1):
            ending = blocks.get(".".join([layer, *rest[: number - 1]]), ending)
            is_own = ending and part.endswith(ending) and len(homes[part]) < 2
            changed.append(f"{part.removesuffix(ending)}{{ending}}" if is_own else part)
        return ".".join(changed)

    leaves = {path: dataclasses.replace(leaf, name=path_of(path)) for path, leaf in graph.leaves.items()}
    by_id = {id(leaf): leaves[path] for path, leaf in graph.leaves.items()}

    def change(part: Expression) -> Expression:
        return by_id.get(id(part), part) if isinstance(part, Value) else part

    def scope(given: Scope) -> Scope:
        is_block = given.path.startswith("*")
        path = f"{_beginning(given.path[1:])}*" if is_block else path_of(given.path)
        around = [ending for outer, ending in blocks.items() if given.path.startswith(f"{outer}.")]
        inner = max(around, key=len, default="")
        ending = f"{given.ending.removesuffix(inner)}{{ending}}" if given.ending and inner else given.ending
        return dataclasses.replace(given, path=path, ending=ending)

    def statement(node: Node) -> Node:
        update = None if node.update is None else path_of(node.update)
        scopes = tuple(map(scope, node.scopes))
        expression = _graph.rebuild(node.expression, change)
        return dataclasses.replace(node, expression=expression, scopes=scopes, update=update)

    return dataclasses.replace(
        graph,
        params={path_of(path): leaf for path, leaf in graph.params.items()},
        state={path_of(path): leaf for path, leaf in graph.state.items()},
        nodes=list(map(statement, graph.nodes)),
        outputs=_graph.rebuild(graph.outputs, change),
        leaves={path_of(path): leaf for path, leaf in leaves.items()},
    )


def without(graph: Graph) -> Graph:
    """Return the graph without such blocks: a tap has the whole name of its layer, which no beginning is a part of."""
    nodes = [
        dataclasses.replace(node, scopes=tuple(s for s in node.scopes if not s.path.startswith("*") and not s.ending))
        for node in graph.nodes
    ]
    return dataclasses.replace(graph, nodes=nodes)


def _beginning(ending: str) -> str:
    return f"{MARK}{ending[1:]}_"


def ending_of(beginning: str) -> str | None:
    """Return how names end in the original that begin so here; `None` for names that are the original's."""
    return f"_{beginning[len(MARK) : -1]}" if beginning.startswith(MARK) else None


def original(name: str) -> str:
    """Return the name that a layer has in the original."""
    match = re.fullmatch(rf"{MARK}((?:[a-z]+_)?(?:\d+|{{i}}))_(.*)", name)
    return name if match is None else f"{match[2]}_{match[1]}"
