"""Colourings of a pattern: rows or columns of one colour share a product, and each entry can be read from one of them.

The greedy algorithms keep the colours that a vertex may not take as the bits of an integer. A distance-2 colouring of
columns, or rows, costs one operation for each entry; a star or acyclic colouring of a symmetric pattern as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from multiop.autodiff.sparse._sets import matrix, sparse, turn

MOST_TRIES = 60_000  # entries of a pattern up to which all orders are tried


class Coloring(NamedTuple):
    """Colours, and where in the products each entry of the pattern is.

    Attributes:
        columns: The colour of each column, -1 for none: a product with the matrix for each. `None`: there is none.
        rows: The colour of each row: a product with the transposed matrix for each colour.
        is_column: For each entry of the pattern, row by row, whether it is read from a product of columns.
        color: The number of that product.
        above: For each entry, another one from which it is then to be subtracted, -1 for none. `None`: there are none.
    """

    columns: Any
    rows: Any
    is_column: Any
    color: Any
    above: Any = None

    @property
    def size(self) -> int:
        """How many products there are."""
        return sum(map(count, (self.columns, self.rows)))


def count(colors: Any) -> int:
    """Return how many products with the matrix, or the transposed one, there are."""
    return 0 if colors is None else int(colors.max(initial=-1)) + 1


def color_jacobian(pattern: Any, mode: str, by_rows: bool = False) -> Coloring:
    """Colour a pattern, a matrix in CSR form: its columns ("forward"), rows ("reverse"), or what takes the fewest.

    Of columns and rows that take as many products, rows are taken if `by_rows`.
    """
    sides = {"auto": ["forward", "reverse"][:: -1 if by_rows else 1], "both": []}.get(mode, [mode])
    found: list[Coloring] = []
    for side in sides:
        sizes = np.diff(pattern.indptr) if (is_forward := side == "forward") else np.bincount(pattern.indices)
        if found and (sizes.max(initial=1) >= found[0].size or are_equal(pattern, pattern.T)):
            break  # no colouring of this side has fewer
        colors = _color_columns(pattern if is_forward else turn(pattern))
        columns, rows = (colors, None) if is_forward else (None, colors)
        color = colors[pattern.indices if is_forward else pattern.tocoo().row]
        found.append(Coloring(columns, rows, np.full(pattern.nnz, is_forward), color))
    are_few = min((one.size for one in found), default=0) <= (3 if pattern.nnz <= MOST_TRIES else 50)
    lines = map(np.bincount, pattern.tocoo().coords)  # where all are about as full, the fullest ones stay in
    if mode == "both" or not (are_few or sides[1:] == [] or all(n.max() * n.size <= 2 * pattern.nnz for n in lines)):
        found.append(_color_both(pattern))
    return min(found, key=lambda one: one.size)


def color_hessian(pattern: Any, is_acyclic: bool = False) -> Coloring:
    """Colour the columns of a symmetric pattern, so that each entry, or its mirror image, can be read.

    Where `is_acyclic`, it may have to be read as the difference of others.
    """
    color = _acyclic if is_acyclic else _star
    sizes, is_cheap = np.diff(pattern.indptr), pattern.nnz <= MOST_TRIES
    orders = _orders(sizes, lambda: pattern) if is_cheap else [np.arange(len(sizes))]
    best = _take_best(lambda order: color(pattern, order), orders, 2 if is_acyclic else 3)
    rows, columns = pattern.tocoo().coords
    is_own, above = _find_above(pattern, best) if is_acyclic else (_occurs_once(rows, best[columns]), None)
    return Coloring(best, None, is_own, np.where(is_own, best[columns], best[rows]), above)


def are_equal(one: Any, other: Any) -> bool:
    """Say whether two patterns are the same."""
    return one.shape == other.shape and (one != other).nnz == 0


def mirror(pattern: Any) -> Any:
    """Return the number of the mirror image of each entry of a symmetric pattern."""
    return np.lexsort((pattern.tocoo().row, pattern.indices)).astype(np.int32)


def _find_above(pattern: Any, colors: Any) -> tuple[Any, Any]:
    """Return which entries an acyclic colouring reads in their own place, and the entry that has each as a part.

    Entries of two colours are the edges of trees. A product has, of a vertex, the sum of its edges in one tree: from
    this sum those that lead away from the root are subtracted, and one is left.
    """
    rows, columns = pattern.tocoo().coords
    keys = rows.astype(np.int64) * (int(colors.max(initial=0)) + 2) + colors[columns]
    nodes, start = np.unique(keys, return_inverse=True)  # a vertex, in its tree with another colour
    end, n, is_edge = start[mirror(pattern)], len(nodes), rows != columns
    graph = sparse().csgraph
    _, tree = graph.connected_components(matrix(start[is_edge], end[is_edge], (n, n)), directed=False)
    sizes = np.bincount(start, minlength=n)  # the root is in the middle of a star
    order = np.lexsort((-sizes, tree))
    roots = order[np.flatnonzero(np.diff(tree[order], prepend=-1))]
    links = np.r_[start[is_edge], np.full(len(roots), n)], np.r_[end[is_edge], roots]
    before = graph.breadth_first_order(matrix(*links, (n + 1, n + 1)), n)[1]
    is_own = is_edge & (before[start] == end)
    upward = np.full(n, -1, np.int32)
    upward[start[is_own]] = np.flatnonzero(is_own)
    return is_own | ~is_edge, np.where(is_own, upward[end], -1).astype(np.int32)


def _occurs_once(lines: Any, colors: Any) -> Any:
    """Say of each entry whether no other one on its line has its colour."""
    keys = lines.astype(np.int64) * (int(colors.max(initial=0)) + 2) + colors
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[inverse] == 1


def _orders(sizes: Any, graph: Callable[[], Any] | None) -> Iterator[Any]:
    """Yield orders of vertices: as they stand, the largest first, and where their graph is at hand, smallest last."""
    yield np.arange(len(sizes))
    if len(set(sizes.tolist())) > 1:
        yield np.argsort(-sizes, kind="stable")
    if graph:
        yield _smallest_last(graph())


def _smallest_last(pattern: Any) -> Any:
    """Return the vertices so that each has the fewest neighbours among those before it."""
    degrees, indptr, indices = np.diff(pattern.indptr).tolist(), pattern.indptr.tolist(), pattern.indices.tolist()
    waiting: list[list[int]] = [[] for _ in range(max(degrees, default=0) + 1)]  # the last one was reached last
    for v, degree in enumerate(degrees):
        waiting[degree].append(v)
    least, order = 0, list[int]()
    while len(order) < len(degrees):
        while not waiting[least]:
            least += 1
        if degrees[v := waiting[least].pop()] != least:
            continue  # it is waiting among those of its degree, or done
        degrees[v] = -1
        order.append(v)
        for w in indices[indptr[v] : indptr[v + 1]]:
            if degrees[w] > 0:
                degrees[w] -= 1
                waiting[degrees[w]].append(w)
        least = max(least - 1, 0)
    return np.array(order[::-1])


def _color_columns(pattern: Any) -> Any:
    """Colour columns so that no two of a colour have an entry in one row; the best of several orders."""
    least = int(np.diff(pattern.indptr).max(initial=0))
    if (cyclic := _cyclic(pattern, least)) is not None:
        return cyclic
    by_column = sparse().csc_array(pattern)
    is_cheap = pattern.nnz <= MOST_TRIES and least <= 200
    graph = (lambda: sparse().csr_array(pattern.T @ pattern)) if is_cheap else None  # columns that meet in a row
    enough = least if pattern.nnz <= 4 * MOST_TRIES else pattern.shape[1]
    return _take_best(lambda order: _greedy(by_column, order), _orders(np.diff(by_column.indptr), graph), enough)


def _take_best(color: Callable[[Any], Any], orders: Iterable[Any], enough: float) -> Any:
    """Return the colours of the order that takes the fewest; of the first that takes no more than `enough`."""
    tried = []
    for order in orders:
        tried.append(color(order))
        if tried[-1].max() < enough:
            break
    return min(tried, key=lambda colors: colors.max())


def _cyclic(pattern: Any, k: int) -> Any:
    """Return colours that repeat after `k` columns, as suit a band, if there are no fewer; else `None`."""
    colors = (np.arange(pattern.shape[1]) % max(k, 1)).astype(np.int32)
    if not _occurs_once(pattern.tocoo().row, colors[pattern.indices]).all():
        return None
    return np.where(np.bincount(pattern.indices, minlength=len(colors)) > 0, colors, -1).astype(np.int32)


def _greedy(by_column: Any, order: Any) -> Any:
    """Give each column, in order, the first colour that no row of its entries has."""
    indptr, indices = by_column.indptr.tolist(), by_column.indices.tolist()
    taken, colors = [0] * by_column.shape[0], [-1] * by_column.shape[1]
    for j in order.tolist():
        rows, used = indices[indptr[j] : indptr[j + 1]], 0
        if not rows:
            continue  # an empty column is in no product
        for i in rows:
            used |= taken[i]
        bit = ~used & (used + 1)
        colors[j] = bit.bit_length() - 1
        for i in rows:
            taken[i] |= bit
    return np.array(colors, np.int32)


def _visit(pattern: Any, order: Any, colors: list[int]) -> Iterator[tuple[int, list[int], dict[int, list[int]]]]:
    """Yield the vertices of a symmetric pattern in order, with their neighbours, and those of each of `colors`."""
    indptr, indices = pattern.indptr.tolist(), pattern.indices.tolist()
    for v in order.tolist():
        around = [w for w in indices[indptr[v] : indptr[v + 1]] if w != v]
        by_color: dict[int, list[int]] = {}
        for w in around:
            if (c := colors[w]) >= 0:
                by_color.setdefault(c, []).append(w)
        if around or indptr[v] != indptr[v + 1]:
            yield v, around, by_color


def _acyclic(pattern: Any, order: Any) -> Any:
    """Colour the vertices of a symmetric pattern so that each cycle has three colours, and neighbours differ."""
    colors, near = [-1] * pattern.shape[0], [0] * pattern.shape[0]
    above: dict[tuple[int, int], tuple[int, int]] = {}  # a vertex and the other colour of a tree -> one nearer its root

    def root(key: tuple[int, int]) -> tuple[int, int]:
        while (up := above.get(key, key)) != key:
            above[key] = key = above.get(up, up)
        return key

    for v, around, by_color in _visit(pattern, order, colors):
        used = near[v]
        for same in by_color.values():
            seen = set()  # trees that this vertex would close to a cycle
            for w in same if len(same) > 1 else ():
                for c in range((near[w] & ~used).bit_length()):
                    if near[w] & ~used & 1 << c:
                        used |= ((tree := root((w, c))) in seen) << c
                        seen.add(tree)
        bit = ~used & (used + 1)
        colors[v] = bit.bit_length() - 1
        for w in around:
            near[w] |= bit
        for c, same in by_color.items():
            for w in same:
                above[root((w, colors[v]))] = root((v, c))
    return np.array(colors, np.int32)


def _star(pattern: Any, order: Any) -> Any:
    """Colour the vertices of a symmetric pattern so that each path of four has three colours, and neighbours differ."""
    n = pattern.shape[0]
    colors = [-1] * n
    near = [0] * n  # colours of the neighbours
    centres = [0] * n  # colours of those neighbours that have another neighbour of this vertex's colour
    first: dict[tuple[int, int], int] = {}  # vertex and colour -> the first neighbour of that colour, -1 for several
    for v, around, by_color in _visit(pattern, order, colors):
        used = near[v]
        for same in by_color.values():
            for w in same:
                used |= centres[w] | (near[w] if len(same) > 1 else 0)
        bit = ~used & (used + 1)
        colors[v] = c_v = bit.bit_length() - 1
        for w in around:
            near[w] |= bit
        for c, same in by_color.items():
            first[v, c] = same[0] if len(same) == 1 else -1
            for w in same:
                centres[w] |= bit if len(same) > 1 else 0
                other = first.get((w, c_v))
                if other is None:
                    first[w, c_v] = v
                    continue
                centres[v] |= 1 << c  # the neighbour is in the middle of several of this colour
                if other >= 0:
                    centres[other] |= 1 << c
                    first[w, c_v] = -1
    return np.array(colors, np.int32)


def _color_both(pattern: Any) -> Coloring:
    """Read the entries of the fullest rows from products of rows, all others from products of columns; or reverse."""
    best: Coloring | None = None
    (m, n), (i, j) = pattern.shape, pattern.tocoo().coords
    for lines, size in ((i, m), (j, n)):
        sizes = np.bincount(lines, minlength=size)
        order, k = np.argsort(-sizes, kind="stable"), 1
        while k < size and sizes[order[k - 1]] > 2 and (best is None or k < 4 * best.size):
            is_column = np.isin(lines, order[:k], invert=lines is i)
            columns = _color_columns(matrix(i[is_column], j[is_column], (m, n)))
            rows = _color_columns(matrix(j[~is_column], i[~is_column], (n, m)))
            found = Coloring(columns, rows, is_column, np.where(is_column, columns[j], rows[i]))
            if best is None or found.size < best.size:
                best = found
            k *= 2
    return best or color_jacobian(pattern, "forward")
