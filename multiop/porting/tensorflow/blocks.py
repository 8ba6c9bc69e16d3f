"""Blocks of layers that Keras knows nothing of: layers whose names end in the same number, often one of Keras's own."""

from __future__ import annotations

import collections
import re

from multiop.porting import _graph
from multiop.porting._graph import Expression, Node, Scope

_FEWEST = 3  # layers whose names end in a word and a number make the word a part of the name of their block
_AROUND = {"Activation", "ReLU", "ZeroPadding2D", "Cropping2D"}  # layers that belong to the one in front or behind


def marked(nodes: list[Node], outputs: Expression) -> bool:
    """Put the layers of each block into one scope, where another block has layers of the same names; say if any is."""
    blocks = _Blocks(nodes, outputs)
    kept = blocks.repeated()
    for node, ending in zip(nodes, blocks.endings, strict=True):
        if ending in kept:
            node.scopes = (Scope(f"*{ending}", f"*{ending}", "Block", False), *node.scopes)
    return bool(kept)


class _Blocks:
    """Statements, and the ending of the names of the layers of the block of each, or `None`."""

    def __init__(self, nodes: list[Node], outputs: Expression):
        self.nodes = nodes
        self.tops = [_tops(node) for node in nodes]  # the layers whose weights a statement has
        makers = {id(value): number for number, node in enumerate(nodes) for value in node.outputs}
        self.takes = [
            [makers[id(value)] for value in _graph.values(node.expression) if id(value) in makers] for node in nodes
        ]
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
        others = {
            top for number, tops in enumerate(self.tops) for top in tops if top not in own.get(self.endings[number], ())
        }
        forms = {
            ending: frozenset(top.removesuffix(ending) for top in tops)
            for ending, tops in own.items()
            if len(tops) > 1 and not tops & others and self._is_convex(blocks[ending])
        }
        counts = collections.Counter(forms.values())
        kept = {ending for ending, form in forms.items() if counts[form] > 1}
        return kept if self._is_ordered(kept) else set()

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

    def _is_ordered(self, kept: set[str]) -> bool:
        """Say whether the blocks, and what stands alone, can be computed one after another."""

        def unit(number: int) -> str | int:
            ending = self.endings[number]
            return ending if ending is not None and ending in kept else number

        needs: dict[str | int, set[str | int]] = {unit(number): set() for number in range(len(self.nodes))}
        for number, taken in enumerate(self.takes):
            needs[unit(number)] |= {unit(maker) for maker in taken} - {unit(number)}
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
