"""Taps: the results of submodules, under the names of these."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Sequence

from multiop.porting import _graph
from multiop.porting._graph import Expression, Graph, Node, Path, Value


def tap_submodules(graph: Graph) -> Graph:
    """Return a graph in which the result of each submodule is tapped, if it has one.

    What a submodule only passes on is tapped where it is computed. Branches and loops have no taps inside, since
    `compare` cannot look into them.
    """
    last = {id(value): number for number, node in enumerate(graph.nodes) for value in _graph.values(node.expression)}
    last |= {id(value): len(graph.nodes) for value in _graph.values(graph.outputs)}
    starts, ends = _spans(graph.nodes)
    taps: dict[int, Value] = {}

    def change(part: Expression) -> Expression:
        return taps.get(id(part), part)

    nodes: list[Node] = []
    for number, node in enumerate(graph.nodes):
        nodes.append(dataclasses.replace(node, expression=_graph.rebuild(node.expression, change)))
        for depth in ends[number]:
            scope = node.scopes[depth]
            inside = graph.nodes[starts[scope.key] : number + 1]
            computed = [value for each in inside for value in _results(each) if last.get(id(value), -1) > number]
            if len(computed) == 1 and id(computed[0]) not in taps and not scope.path.endswith("*"):
                taps[id(computed[0])] = dataclasses.replace(computed[0])
                tap = _graph.call("porting.tap", Path(scope.path), computed[0])
                nodes.append(Node([taps[id(computed[0])]], tap, node.scopes[: depth + 1], where=node.where))
    return dataclasses.replace(graph, nodes=nodes, outputs=_graph.rebuild(graph.outputs, change))


def _results(node: Node) -> Sequence[Value]:
    """Return what a statement computes, apart from new state."""
    return node.outputs if node.update is None else node.outputs[:-1]


def _spans(nodes: Sequence[Node]) -> tuple[dict[str, int], list[list[int]]]:
    """Return where each call of a submodule starts, and the depths of those that end at each statement.

    Calls whose statements do not stand together have no end.
    """
    keys = [[scope.key for scope in node.scopes] for node in nodes]
    starts: dict[str, int] = {}
    ends: list[list[int]] = []
    runs: collections.Counter[str] = collections.Counter()
    for number, (own, behind) in enumerate(itertools.pairwise([*keys, []])):
        before = keys[number - 1] if number else []
        opened = [depth for depth, key in enumerate(own) if own[: depth + 1] != before[: depth + 1]]
        runs.update(own[depth] for depth in opened)
        starts |= {own[depth]: number for depth in opened}
        ends.append([depth for depth in reversed(range(len(own))) if own[: depth + 1] != behind[: depth + 1]])
    return starts, [[d for d in depths if runs[own[d]] == 1] for own, depths in zip(keys, ends, strict=True)]
