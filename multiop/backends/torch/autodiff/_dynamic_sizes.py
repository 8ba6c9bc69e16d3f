"""Programs for graphs that differ in numbers alone, as those of a function for inputs of other sizes do.

Each graph was traced for its own sizes, so its numbers are right, whatever the function does with a size. What is
compiled for all of them is the graph that takes the numbers which vary: its sizes are dynamic as soon as they change.
"""

from __future__ import annotations

import threading

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_aggregate

from .._compiler import compile_as_one

MOST = 4  # ways in which numbers vary, until each graph is compiled by itself
_CONSTANTS = {bool, float, complex, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format}


class Family:
    """The graphs of one structure."""

    def __init__(self, numbers):
        self.members, self.shared, self.is_refused, self.lock = [numbers], None, False, threading.Lock()

    def program(self, graph, numbers, held, options):
        """Return the compiled form of `graph`, a member, with these numbers and tensors in it."""
        own = compile_as_one(lifted(graph), held, dynamic=False, options=options)
        with self.lock:
            if self.shared is None or grouped(self.shared[1], numbers, self.members[0]) is None:
                if len(self.members) == MOST:
                    return own
                self.members.append(numbers)
                groups = find_groups(self.members)
                self.shared = compile_as_one(lifted(graph, groups), (), dynamic=None, options=options), groups
            compiled, groups = self.shared
        others = *held, *grouped(groups, numbers, numbers)

        def run(*tensors):
            if not self.is_refused:
                try:
                    return compiled(*tensors, *others)
                except Exception as error:
                    if not type(error).__module__.startswith("torch._"):
                        raise
                    self.is_refused = True  # the compiler can do less with dynamic sizes
            return own(*tensors)

        return run


def find_groups(members):
    """Return for each number of a graph which group it is in: in each of `members`, a group is one number.

    `None` is for a number that does not vary.
    """
    order = {}
    return [
        None if len(set(column)) == 1 else order.setdefault(column, len(order)) for column in zip(*members, strict=True)
    ]


def grouped(groups, numbers, usual):
    """Return the number of each group; `None` where those of one group differ, or one of no group is not `usual`."""
    values = {}
    for group, number, constant in zip(groups, numbers, usual, strict=True):
        if number != (constant if group is None else values.setdefault(group, number)):
            return None
    return list(values.values())


def describe(graph):
    """Return what makes the structure of a traced graph, the ints in it, and the tensors that it holds.

    The structure is `None` where it has other parts, such as the graph of a branch.
    """
    structure, numbers, held, places = [], [], [], {}

    def mark(x):
        if isinstance(x, Node):
            return Node, places[x]
        if type(x) is int:
            numbers.append(x)
            return int
        return (type(x), repr(x)) if type(x) in _CONSTANTS else (type(x), object())  # 0.0 is not -0.0

    for node in graph.graph.nodes:
        if node.op == "get_attr":
            held.append(getattr(graph, node.target, None))
        target = node.target if node.op == "call_function" else None
        structure.append((node.op, target, repr(map_aggregate((node.args, node.kwargs), mark))))
        places[node] = len(places)
    return tuple(structure) if all(isinstance(x, torch.Tensor) for x in held) else None, numbers, held


def lifted(graph, groups=()):
    """Return a function of what `graph` takes, of the tensors that it holds, and of the number of each group."""
    new, made, nodes = Graph(), {}, list(graph.graph.nodes)
    for op in ("placeholder", "get_attr"):
        made |= {node: new.placeholder(f"{op}_{k}") for k, node in enumerate(nodes) if node.op == op}
    count = len({group for group in groups if group is not None})
    numbers, rest = [new.placeholder(f"number_{k}") for k in range(count)], iter(groups)

    def replace(x):
        if isinstance(x, Node):
            return made[x]
        group = next(rest, None) if type(x) is int else None
        return x if group is None else numbers[group]

    for node in nodes:
        args, kwargs = map_aggregate((node.args, node.kwargs), replace)
        if node not in made:
            made[node] = new.create_node(node.op, node.target, args, kwargs)
    return GraphModule({}, new).forward
