"""Blocks of layers that Keras knows nothing of: layers whose names end in the same number, often one of Keras's own."""

from __future__ import annotations

import collections
import re

from multiop.porting import _graph
from multiop.porting._graph import Expression, Node, Scope

_FEWEST = 3  # layers whose names end in a word and a number make the word a part of the name of their block
_AROUND = {"Activation", "ReLU", "ZeroPadding2D", "Cropping2D"}  # layers that belong to the one in front or behind


def mark_blocks(nodes: list[Node], outputs: Expression) -> bool:
    """Put the layers of each block into one scope, where another block has layers of the same names; say if any is."""
    blocks = _Blocks(nodes, outputs)
    kept = blocks.repeated()
    for node, ending in zip(nodes, blocks.endings, strict=True):
        if ending in kept:
            node.scopes = (Scope(f"*{ending}", f"*{ending}", "Block", False), *node.scopes)
    return bool(kept)


def nested(nodes: list[Node], outputs: Expression) -> bool:
    """Put what is in a block whose layers have a dict of their own, and names that end alike, into a scope."""
    children: dict[str, set[str]] = collections.defaultdict(set)
    for node in nodes:
        if _tops(node) and node.scopes:
            parent, _, layer = node.scopes[0].path.rpartition(".")
            children[parent].add(layer)
    endings: dict[str, str] = {}  # of blocks, outer ones first
    for parent, layers in sorted(children.items()):
        ending = _common_ending([parent.rpartition(".")[2], *layers]) if parent and len(layers) > 1 else ""
        around = [endings[outer] for outer in endings if parent.startswith(f"{outer}.")]
        if ending and all(ending.endswith(other) for other in around):
            endings[parent] = ending
    if not endings:
        return False
    blocks = _Blocks(nodes, outputs)
    homes = [_home(node, endings) for node in nodes]
    for number in reversed(range(len(nodes))):
        users = [homes[user] for user in blocks.users[number]]
        if homes[number] is None and not _tops(nodes[number]) and users and number not in blocks.returned:
            shared = users[0] if all(user == users[0] for user in users) else None
            inside = any(f"{homes[maker]}.".startswith(f"{shared}.") for maker in blocks.takes[number])
            kind = nodes[number].scopes[0].kind if nodes[number].scopes else ""
            homes[number] = shared if inside or kind in _AROUND else None
    chains = [
        [outer for outer in endings if f"{home}.".startswith(f"{outer}.")] if home is not None else [] for home in homes
    ]
    for depth in range(max(map(len, chains))):
        units = [chain[depth] if len(chain) > depth else number for number, chain in enumerate(chains)]
        if not blocks.is_ordered(units):
            return False
    for node, chain in zip(nodes, chains, strict=True):
        made = [
            Scope(path, path, path.rpartition(".")[2].removesuffix(endings[path]), False, endings[path])
            for path in chain
        ]
        node.scopes = (*made, *node.scopes)
    return True


def _common_ending(names: list[str]) -> str:
    """Return the longest ending that names have in common and that begins with `_`."""
    size = 0
    while len({name[-size - 1 :] for name in names}) == 1 and all(len(name) > size for name in names):
        size += 1
    common = names[0][len(names[0]) - size :]
    return common[common.index("_") :] if "_" in common else ""


def _home(node: Node, endings: dict[str, str]) -> str | None:
    """Return the block that a statement is in by the path of its layer, or by the ending of its name."""
    if not node.scopes:
        return None
    path = node.scopes[0].path
    around = [outer for outer in endings if path.startswith(f"{outer}.")]
    if around or _tops(node) or _is_automatic(path, node.scopes[0].kind):
        return max(around, key=len, default=None)
    named = [outer for outer in endings if path.endswith(endings[outer])]
    return min(named, key=lambda outer: (-len(endings[outer]), len(outer)), default=None)


class _Blocks:
    """Statements, and the ending of the names of the layers of the block of each, or `None`."""

    def __init__(self, nodes: list[Node], outputs: Expression):
        self.nodes = nodes
        self.tops = [_tops(node) for node in nodes]  # the layers whose weights a statement has
        makers = {id(value): number for number, node in enumerate(nodes) for value in node.outputs}
        self.takes = [[makers[id(x)] for x in _graph.values(node.expression) if id(x) in makers] for node in nodes]
        self.users: dict[int, set[int]] = collections.defaultdict(set)
        for number, taken in enumerate(self.takes):
            for maker in taken:
                self.users[maker].add(number)
        self.returned = {makers[id(value)] for value in _graph.values(outputs) if id(value) in makers}
        words = collections.Counter(match[1] for top in set().union(*self.tops) if (match := _WORD.search(top)))
        self.endings = [self._ending(number, words) for number in range(len(nodes))]
        self._absorb()

    def _ending(self, number: int, words: collections.Counter[str]) -> str | None:
        node = self.nodes[number]
        if not node.scopes or node.scopes[0].path.endswith("*"):
            return None
        layer, dot, _ = node.scopes[0].path.partition(".")
        match = _NUMBER.search(layer)
        is_numbered_by_keras = match is not None and not self.tops[number] and _is_automatic(layer, node.scopes[0].kind)
        if match is None or dot or is_numbered_by_keras or not self.tops[number] <= {layer}:
            return None
        word = _WORD.search(layer)
        return word[1] if word is not None and words[word[1]] >= _FEWEST else match[1]

    def _absorb(self) -> None:
        """Give what has no weights to the block that alone uses it, and an activation to the block that it follows."""

        def owner(numbers: set[int]) -> str | None:
            endings = {self.endings[number] for number in numbers}
            return endings.pop() if len(endings) == 1 else None

        is_plain = [not tops and node.update is None for node, tops in zip(self.nodes, self.tops, strict=True)]
        kinds = [node.scopes[0].kind if node.scopes else "" for node in self.nodes]
        for number, taken in enumerate(self.takes):
            is_alone = all(self.users[maker] == {number} and maker not in self.returned for maker in taken)
            if self.endings[number] is None and is_plain[number] and kinds[number] in _AROUND and is_alone:
                self.endings[number] = owner(set(taken))
        for number in reversed(range(len(self.nodes))):
            ending = owner(self.users[number])
            inside = any(self.endings[maker] == ending for maker in self.takes[number])
            if self.endings[number] is None and is_plain[number] and number not in self.returned:
                self.endings[number] = ending if inside or kinds[number] in _AROUND else None

    def repeated(self) -> set[str]:
        """Return the endings of blocks with the same layers as another one, each of which can be computed at once."""
        blocks: dict[str, set[int]] = collections.defaultdict(set)
        for number, ending in enumerate(self.endings):
            if ending is not None:
                blocks[ending].add(number)
        own = {ending: set().union(*(self.tops[number] for number in block)) for ending, block in blocks.items()}
        others = {top for n, tops in enumerate(self.tops) for top in tops if top not in own.get(self.endings[n], ())}
        forms = {
            ending: frozenset(top.removesuffix(ending) for top in tops)
            for ending, tops in own.items()
            if len(tops) > 1 and not tops & others and self._is_convex(blocks[ending])
        }
        counts = collections.Counter(forms.values())
        kept = {ending for ending, form in forms.items() if counts[form] > 1}
        units = [ending if ending in kept else number for number, ending in enumerate(self.endings)]
        return kept if self.is_ordered(units) else set()  # type: ignore[arg-type]

    def _is_convex(self, block: set[int]) -> bool:
        """Say whether nothing that a block needs is computed from what it computes."""
        waiting = [user for number in block for user in self.users[number] if user not in block]
        behind: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number not in behind:
                behind.add(number)
                waiting += self.users[number]
        return not behind & block

    def is_ordered(self, units: list[str | int]) -> bool:
        """Say whether units, one for each statement, can be computed one after another."""
        needs: dict[str | int, set[str | int]] = {unit: set() for unit in units}
        for unit, taken in zip(units, self.takes, strict=True):
            needs[unit] |= {units[maker] for maker in taken} - {unit}
        done: set[str | int] = set()
        while len(done) < len(needs):
            ready = {each for each, needed in needs.items() if each not in done and needed <= done}
            if not ready:
                return False
            done |= ready
        return True


_NUMBER = re.compile(r"(_\d+)$")
_WORD = re.compile(r"(_[a-z]+_\d+)$")


def _tops(node: Node) -> set[str]:
    """Return the layers whose weights a statement has."""
    paths = [value.name for value in _graph.values(node.expression) if value.kind in ("params", "state")]
    return {path.partition(".")[0] for path in (*paths, *([] if node.update is None else [node.update]))}


def _is_automatic(layer: str, kind: str) -> bool:
    """Say whether Keras made a name, from that of the class."""
    return layer.rpartition("_")[0].replace("_", "") == kind.lower()
