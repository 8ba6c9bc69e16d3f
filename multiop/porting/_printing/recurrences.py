"""Statements that a model computed in a loop of Python, as that loop.

A recurrence is found by its period: from one step to the next, each statement takes what stands one period later, the
same tensor as before, or the next of numbers that move evenly. What does not fit this exactly stays as it is, so that
the loop, unrolled, is the statements that were there.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from multiop.porting import _graph
from multiop.porting._graph import SEED, Body, Call, Expression, Infix, Item, Value, is_call
from multiop.porting._printing.terms import Loop, Statement, is_for

_STEPS, _SAVED = 3, 4  # the fewest steps of a loop, and the fewest statements that it takes away
_MAPPED = 3  # the fewest statements in each step of a loop that carries nothing
_PERIODS = 48  # how many periods are tried
_LONGEST = 7  # periods are told by up to 2 ** this many statements

Take = Callable[[Any], Any]


def fold_recurrences(block: Body) -> None:
    """Put loops in the place of the steps of recurrences in a function, inner loops first."""
    ends: dict[tuple[int, Any], Value] = {}
    while _Search(block, ends).fold():
        pass
    if ends:
        _begin_lists(block, ends)


# statements, taken apart


def _take_apart(expression: Expression, take: Take, labels: list[Any]) -> Expression:
    """Return an expression in which `take` has replaced tensors and whole numbers; `labels` tells all that is left."""
    if isinstance(expression, (Value, int)) and not isinstance(expression, bool):
        labels.append(int if isinstance(expression, int) else Value)
        return take(expression)
    if isinstance(expression, Loop):
        return _take_loop_apart(expression, take, labels)
    if isinstance(expression, Body) or expression == SEED:
        labels.append(object())  # equal to nothing
        return expression
    if isinstance(expression, Item):
        key = _with_bounds(expression.key, expression.x)
        inner = [_take_apart(expression.x, take, labels), *_take_key_apart(expression.key, key, take, labels)]
        return Item(inner[0], tuple(inner[1:]))
    if is_call(expression, "ops.set_item"):
        x, key, *rest = expression.args
        labels += ["set_item", len(rest), *(name for name, _ in expression.kwargs)]
        parts = key if isinstance(key, tuple) else (key,)
        taken = [_take_apart(part, take, labels) for part in (x, *rest)]
        bounded = _take_key_apart(parts, _with_bounds(parts, x), take, labels)
        return Call(expression.function, (taken[0], bounded if isinstance(key, tuple) else bounded[0], *taken[1:]))
    unfolded = _graph.unfold(expression)
    if unfolded is None:
        labels.append((type(expression), repr(expression) if isinstance(expression, (float, complex)) else expression))
        return expression
    labels.append((unfolded.label, len(unfolded.parts)))
    return unfolded.fold([_take_apart(part, take, labels) for part in unfolded.parts])


def _with_bounds(key: Sequence[Any], x: Expression) -> list[Any]:
    """Return a key with the bounds of slices as numbers, as far as these are known."""
    shape = x.shape if isinstance(x, Value) and x.dtype != "list" else ()
    taken = sum(part is not None and part is not Ellipsis for part in key)
    bounded, axis = [], 0
    for part in key:
        if isinstance(part, slice) and part != slice(None) and part.step is None:
            size = shape[axis] if 0 <= axis < len(shape) else None  # below 0: behind an ellipsis of an unknown rank
            stop = size if part.stop is None and isinstance(size, int) else part.stop
            bounded.append(slice(part.start or 0, stop))
        else:
            bounded.append(part)
        axis += len(shape) - taken if part is Ellipsis else part is not None
    return bounded


def _take_key_apart(key: Sequence[Any], bounded: Sequence[Any], take: Take, labels: list[Any]) -> tuple[Any, ...]:
    """Return a key with what `take` makes of it; a bound that stays what it is stays as it was written."""
    parts: list[Any] = []
    labels.append(len(key))
    for part, numbers in zip(key, bounded, strict=True):
        if isinstance(part, slice):
            bounds = ((part.start, numbers.start), (part.stop, numbers.stop), (part.step, numbers.step))
            taken = [(own, number, _take_apart(number, take, labels)) for own, number in bounds]
            parts.append(slice(*[own if again is number else again for own, number, again in taken]))
        else:
            parts.append(_take_apart(part, take, labels))
    return tuple(parts)


def _take_loop_apart(loop: Loop, take: Take, labels: list[Any]) -> Loop:
    """Take apart the statements of a loop; what it computes itself is told by its number."""
    inner = {id(value): number for number, value in enumerate(_graph.own(loop))}

    def take_outer(part: Any) -> Any:
        if isinstance(part, Value) and id(part) in inner:
            labels.append(inner[id(part)])
            return part
        return take(part)

    labels += ["for", len(loop.nodes), len(loop.parameters)]
    numbers = tuple(_take_apart(part, take_outer, labels) for part in loop.numbers)
    statements: Any = loop.nodes
    nodes: Any = [_take_statement_apart(statement, take_outer, labels) for statement in statements]
    return dataclasses.replace(
        loop, nodes=nodes, numbers=numbers, outputs=_take_apart(loop.outputs, take_outer, labels)
    )


def _take_statement_apart(statement: Statement, take: Take, labels: list[Any]) -> Statement:
    if statement.update is not None or statement.size or statement.pattern is not None or statement.grows is not None:
        labels.append(object())
        return statement
    labels += [tuple(value is None for value in statement.outputs), statement.loop]
    return dataclasses.replace(statement, expression=_take_apart(statement.expression, take, labels))


# the search


class _Place(NamedTuple):
    """Where a tensor is computed: the number of a statement, and of its result."""

    statement: int
    output: int


@dataclasses.dataclass
class _Found:
    """The statements of a recurrence."""

    start: int
    period: int
    steps: int
    inits: dict[_Place, Value]  # what the first step takes for what the others carry, by where it is computed there
    columns: list[list[tuple[int, int] | None]]  # of each statement, what moves: the first number, and by how much
    unpacked: set[int]  # the statements whose results are taken one by one

    @property
    def end(self) -> int:
        """The number of the first statement behind it."""
        return self.start + self.period * self.steps


class _Search:
    """One pass over the statements of a function."""

    def __init__(self, block: Body, ends: dict[tuple[int, Any], Value]):
        self.block = block
        self.ends = ends  # the id of a list and the key of its last part -> that part, if it has a name behind its loop
        self.statements: list[Statement] = block.nodes  # type: ignore[assignment]
        self.slots: list[list[Any]] = []  # the tensors and the numbers in each statement
        self.tokens: list[int] = []  # what else is in each
        self.places: dict[int, _Place] = {}
        self.uses: dict[int, list[int]] = collections.defaultdict(list)  # a tensor -> the statements that take it
        self.lists: dict[int, Item] = {}  # a tensor -> which one of a list it is
        tokens: dict[Any, int] = {}
        for number, statement in enumerate(self.statements):
            slots: list[Any] = []
            labels: list[Any] = []
            _take_statement_apart(statement, functools.partial(_keep, slots), labels)
            self.slots.append(slots)
            self.tokens.append(tokens.setdefault(tuple(labels), len(tokens)))
            self.places.update(
                (id(value), _Place(number, output))
                for output, value in enumerate(statement.outputs)
                if value is not None
            )
            for value in _graph.values(statement.expression):
                self.uses[id(value)].append(number)
        for value in _graph.values(block.outputs):
            self.uses[id(value)].append(len(self.statements))

    def fold(self) -> bool:
        """Put loops in the place of the recurrences that are found; say whether there are any."""
        taken, unpacked = [False] * len(self.statements), [False] * len(self.statements)
        loops: list[_Found] = []
        for period in self._periods():
            for found in self._recurrences(period):
                inside = slice(found.start, found.end)
                if any(taken[inside]) or any(unpacked[inside]) or any(taken[number] for number in found.unpacked):
                    continue
                taken[inside] = [True] * (found.end - found.start)
                for number in found.unpacked:
                    unpacked[number] = True
                loops.append(found)
        loops.sort(key=lambda found: found.start)
        missing = [statement for found in loops for statement in self._missing(found)]
        if missing:
            for number, statement in reversed(missing):
                self.statements.insert(number, statement)
        elif loops:
            self._write(loops)
        return bool(loops)

    def _periods(self) -> list[int]:
        """Return the distances in which equal statements stand, the shortest first."""
        counts: collections.Counter[int] = collections.Counter()
        grams, width = list(self.tokens), 1
        for _ in range(_LONGEST):
            last: dict[int, int] = {}
            for number, gram in enumerate(grams):
                if gram in last:
                    counts[number - last[gram]] += 1
                last[gram] = number
            pairs: dict[tuple[int, int], int] = {}
            grams = [pairs.setdefault(pair, len(pairs)) for pair in zip(grams, grams[width:], strict=False)]
            width *= 2
        often = [period for period, count in counts.most_common() if count >= period][:_PERIODS]
        return sorted({period * factor for period in often for factor in (1, 2, 3)})

    def _recurrences(self, period: int) -> Iterator[_Found]:
        """Yield the recurrences of one period."""
        lowest, first, moves = 0, 0, collections.deque[list[Any]](maxlen=period)  # those of the last period
        for last in range(len(self.statements) - period + 1):
            move = self._moves(last, period) if last < len(self.statements) - period else None
            is_alike = move is not None and (last - first < period or moves[0] == move)
            if not is_alike and last - first >= period * (_STEPS - 2):  # each step is as the one before it
                found = self._turned(lowest, first, last + period, period)
                if found is not None:
                    lowest = found.end
                    yield found
            if move is None:
                first = last + 1
            else:
                first = first if is_alike else last - period + 1
                moves.append(move)

    def _moves(self, number: int, period: int) -> list[Any] | None:
        """Return how what a statement takes moves to the statement a period later, if that does the same."""
        if self.tokens[number] != self.tokens[number + period]:
            return None
        moves: list[Any] = []
        for before, after in zip(self.slots[number], self.slots[number + period], strict=True):
            a, b = self.places.get(id(before)), self.places.get(id(after))
            if isinstance(before, int):
                moves.append(after - before)
            elif before is after:
                moves.append("stays")
            elif a is None or b is None:
                return None
            elif a.statement == b.statement:
                moves.append((a.statement, b.output - a.output))
            elif b == (a.statement + period, a.output):
                moves.append("follows")
            else:
                return None
        return moves

    def _turned(self, lowest: int, first: int, end: int, period: int) -> _Found | None:
        """Return the loop of which each step leaves least, wherever in a step it starts."""
        starts = range(max(first - period, lowest), min(first + period, end - 2 * period + 1))
        left = {start: self._left(start, period) for start in starts}
        for least in sorted(set(left.values())):
            turned = [self._steps(start, period, (end - start) // period) for start in starts if left[start] == least]
            options = [each for each in turned if each.steps >= _STEPS and period * (each.steps - 1) >= _SAVED]
            options = [each for each in options if each.inits or (period >= _MAPPED and each.steps > _STEPS)]
            if options:
                return max(options, key=lambda each: each.steps)
        return None

    def _left(self, start: int, period: int) -> int:
        """Return how many results of a step are used behind it."""
        outputs = [value for statement in self.statements[start : start + period] for value in statement.outputs]
        return sum(any(use >= start + period for use in self.uses[id(value)]) for value in outputs)

    def _steps(self, start: int, period: int, steps: int) -> _Found:
        """Return the loop that starts at a statement, with as many steps as are alike."""
        found = _Found(start, period, steps, {}, [], set())
        for number in range(start, start + period):
            found.columns.append([])
            is_alike = found.steps >= _STEPS and self.tokens[number] == self.tokens[number + period]
            for slot in range(len(self.slots[number])) if is_alike else ():
                if found.steps < 2:
                    break
                column = [self.slots[number + period * step][slot] for step in range(found.steps)]
                moves, found.steps = self._column(column, found)
                found.columns[-1].append(moves if moves and moves[1] else None)
            if not is_alike:
                found.steps = 0
                break
        return found

    def _column(self, column: list[Any], found: _Found) -> tuple[tuple[int, int] | None, int]:
        """Return how a slot moves from step to step, and for how many steps."""
        start, period = found.start, found.period
        if isinstance(column[0], int):
            return _evenly(column)
        places = [self.places.get(id(value)) for value in column]
        before, place = places[:2]
        is_known = before is None or before.statement < start
        if place is None or column[0] is column[1]:
            return None, _length(value is column[0] for value in column) if is_known else 0
        if place.statement < start:  # the results of one statement, one by one
            source = self.statements[place.statement]
            is_plain = source.update is None and source.loop is None and source.pattern is None
            if not is_plain or is_for(source.expression):
                return None, 0
            same = itertools.takewhile(lambda each: each is not None and each.statement == place.statement, places)
            found.unpacked.add(place.statement)
            return _evenly([each.output for each in same if each is not None])
        is_carry = place.statement < start + period
        if is_carry and not (is_known and found.inits.setdefault(place, column[0]) is column[0]):
            return None, 0
        wanted = [(place.statement + period * (step - 1), place.output) for step in range(len(column))]
        return None, is_carry + _length(map(operator.eq, places[is_carry:], wanted[is_carry:]))

    def _missing(self, found: _Found) -> list[tuple[int, Statement]]:
        """Return what a last step lacks because nothing uses its results, each with the number of what is behind it.

        What moves is not made up: the model may have left it out, as behind `if t + 1 < length`.
        """
        at, last = found.end, found.end - found.period
        after: dict[int, Any] = {}  # a tensor of the last whole step, or of that before it -> that of the step behind
        for number in range(last - found.period, last):
            later = self.statements[number + found.period].outputs
            after |= {id(value): new for value, new in zip(self.statements[number].outputs, later, strict=True)}
        missing: list[tuple[int, Statement]] = []
        for number in range(last, found.end):
            statement, moves = self.statements[number], found.columns[number - last]
            slots = [
                self._next_of(part, moved) if moved else after.get(id(part), part)
                for part, moved in zip(self.slots[number], moves, strict=True)
            ]
            if at < len(self.statements) and self.tokens[at] == self.tokens[number] and self.slots[at] == slots:
                outputs = self.statements[at].outputs
                at += 1
            else:
                if any(moves):
                    return []
                fills = iter(slots)
                outputs = [value and dataclasses.replace(value) for value in statement.outputs]
                made = _take_statement_apart(statement, lambda _, fills=fills: next(fills), [])  # type: ignore[misc]
                missing.append((at, dataclasses.replace(made, outputs=outputs)))
            after |= {id(value): new for value, new in zip(statement.outputs, outputs, strict=True)}
        return missing if at - found.end >= max(2, found.period // 3) else []

    def _next_of(self, part: Any, moved: tuple[int, int]) -> Any:
        """Return the number of the next step, or the result that it takes; nothing if there is none."""
        if isinstance(part, int):
            return part + moved[1]
        place = self.places[id(part)]
        outputs = self.statements[place.statement].outputs
        return outputs[place.output + moved[1]] if 0 <= place.output + moved[1] < len(outputs) else None

    # the loops

    def _write(self, loops: list[_Found]) -> None:
        kept: list[Statement] = []
        at = 0
        for found in loops:
            kept += [*self.statements[at : found.start], self._loop(found)]
            at = found.end
        kept += self.statements[at:]
        for statement in kept:
            self._list_in(statement)
        outputs = self.block.outputs  # a list of results is none of the model's
        self.block.outputs = [*map(self._listed, outputs)] if type(outputs) is list else self._listed(outputs)
        self.block.nodes = kept  # type: ignore[assignment]

    def _loop(self, found: _Found) -> Statement:
        """Return a loop: the last step, in terms of what the one before it computes."""
        start, period, steps = found.start, found.period, found.steps
        last = found.end - period
        places = [
            _Place(number, output)
            for number in range(start, start + period)
            for output in range(len(self.statements[number].outputs))
        ]
        columns: dict[_Place, list[Any]] = {
            place: [self.statements[place.statement + period * step].outputs[place.output] for step in range(steps)]
            for place in places
        }
        finals: list[Any] = [columns[place][-1] for place in found.inits]
        appended, grown = [], []
        for place, column in columns.items():
            taken = [any(not start <= use < found.end for use in self.uses[id(value)]) for value in column]
            if any(taken[:-1]):
                grown.append(Value((steps,), "list", own=column[-1].own))
                appended.append(column[-1])
                self.lists |= {id(value): Item(grown[-1], (step,)) for step, value in enumerate(column)}
                self.ends |= {(id(grown[-1]), (steps - 1,)): column[-1]} if place in found.inits else {}
            elif taken[-1] and place not in found.inits:
                finals.append(column[-1])
        first, step = _count([column for row in found.columns for column in row if column is not None])
        counter = Value((), "counter")
        nodes: Any = []
        for number in range(last, found.end):
            slots = zip(self.slots[number], found.columns[number - last], strict=True)
            fills = iter(
                [part if moves is None else self._moving(part, *moves, counter, first, step) for part, moves in slots]
            )
            nodes.append(_take_statement_apart(self.statements[number], lambda _, fills=fills: next(fills), []))  # type: ignore[misc]
        parameters = (counter, *(columns[place][-2] for place in found.inits))
        outputs = (tuple(finals), tuple(appended))
        loop = Loop("for", parameters, nodes, outputs, (first, first + steps * step, step))
        inits = tuple(found.inits.values())
        return Statement([*finals, *grown], Call("for", (loop, inits, tuple([] for _ in grown))))

    def _moving(self, part: Any, first: int, move: int, counter: Value, start: int, step: int) -> Expression:
        """Return a number that moves with the counter, or which one of the results of a statement it is."""
        factor = move // step
        rest = first - factor * start
        index: Expression = counter
        if factor == -1:
            index = Infix("-", rest, counter)
        else:
            index = counter if factor == 1 else Infix("*", factor, counter)
            index = Infix("+", index, rest) if rest else index
        if isinstance(part, int):
            return index
        if id(part) not in self.lists:
            statement = self.statements[self.places[id(part)].statement]
            results = Value((len(statement.outputs),), "list", own=part.own)
            self.lists |= {id(value): Item(results, (number,)) for number, value in enumerate(statement.outputs)}
            statement.outputs = [results]
        return Item(self.lists[id(part)].x, (index,))

    def _list_in(self, statement: Statement) -> None:
        statement.expression = self._listed(statement.expression)
        if statement.carry is not None:
            statement.carry = tuple(map(self._listed, statement.carry))

    def _listed(self, expression: Expression) -> Expression:
        """Return an expression with parts of lists for the tensors that are in these."""
        if isinstance(expression, Value):
            return self.lists.get(id(expression), expression)
        if isinstance(expression, Body):
            outer = {id(value) for value in _graph.values(expression)}
            if not outer & self.lists.keys():
                return expression
            around, own = self.lists, set(map(id, _graph.own(expression)))
            self.lists = {key: item for key, item in around.items() if key not in own}
            nodes: Any = expression.nodes
            for statement in nodes:
                self._list_in(statement)
            expression.outputs = self._listed(expression.outputs)
            self.lists = around
            return expression
        unfolded = _graph.unfold(expression)
        if unfolded is None:
            return expression
        parts = [self._listed(part) for part in unfolded.parts]
        return _joined(parts) if type(expression) is list else unfolded.fold(parts)


def _keep(slots: list[Any], part: Any) -> Any:
    slots.append(part)
    return part


def _length(holds: Iterable[bool]) -> int:
    """Return how many hold, before the first one that does not."""
    return sum(1 for _ in itertools.takewhile(bool, holds))


def _evenly(numbers: list[int]) -> tuple[tuple[int, int] | None, int]:
    """Return where numbers start and by how much they grow, and how many of them grow so."""
    if len(numbers) < 2:
        return None, 0
    first, move = numbers[0], numbers[1] - numbers[0]
    return (first, move), _length(number == first + move * step for step, number in enumerate(numbers))


def _count(moving: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the number at which a loop starts to count, and its step: those of the numbers that occur most."""
    counts = collections.Counter(moving)
    first, step = max(counts, key=lambda each: (counts[each], each[0] >= 0, each[1] > 0), default=(0, 1))
    return (0, 1) if any(move % step for _, move in moving) else (first, step)


# lists


def _joined(parts: list[Any]) -> Expression:
    """Return a list of parts, with whole lists for their parts one by one, in their order or turned round."""
    joined: list[Expression] = []
    start = 0
    while start < len(parts):
        part = parts[start]
        if isinstance(part, Item) and isinstance(part.x, Value) and part.x.dtype == "list":
            size = part.x.shape[0] if part.x.shape else 0
            stretch = [each.key if isinstance(each, Item) and each.x is part.x else () for each in parts[start:][:size]]
            numbers = [(number,) for number in range(size)]
            if size and stretch in (numbers, numbers[::-1]):
                is_turned = stretch != numbers
                joined.append(Item(part.x, (slice(None, None, -1),)) if is_turned else part.x)
                start += size
                continue
        if not joined or type(joined[-1]) is not list:
            joined.append([])
        joined[-1].append(part)
        start += 1
    return functools.reduce(lambda left, right: Infix("+", left, right), joined) if joined else []


def _begin_lists(block: Body, ends: dict[tuple[int, Any], Value]) -> None:
    """Begin a list with what is put before it where it is used, if that is known before the loop.

    The last part of a list that has a name is called by it.
    """
    statements: Any = block.nodes

    def end(part: Expression) -> Expression:
        return (
            ends.get((id(part.x), part.key), part)
            if isinstance(part, Item) and not isinstance(part.key[0], slice)
            else part
        )

    for statement in statements:
        statement.expression = _graph.rebuild(statement.expression, end)
    block.outputs = _graph.rebuild(block.outputs, end)
    sums: dict[int, list[Any]] = collections.defaultdict(list)
    counts: collections.Counter[int] = collections.Counter()
    for expression in (*[statement.expression for statement in statements], block.outputs):
        for part in _graph.walk(expression):
            if isinstance(part, Value):
                counts[id(part)] += part.dtype == "list"
            elif isinstance(part, Infix) and type(part.left) is list:
                sums[id(part.right)].append(part)
    known: set[int] = set()
    made = {id(value) for statement in statements for value in statement.outputs}
    begun: set[int] = set()
    for statement in statements:
        expression = statement.expression
        if is_for(expression):
            loop, inits, starts = expression.args
            grown = statement.outputs[len(statement.outputs) - len(starts) :]
            begins = []
            for start, value in zip(starts, grown, strict=True):
                (found, *more) = sums[id(value)] or [None]
                is_known = found and all(id(x) in known or id(x) not in made for x in _graph.values(found.left))
                if is_known and not more and counts[id(value)] == 1:
                    start = found.left
                    begun.add(id(value))
                begins.append(start)
            statement.expression = Call("for", (loop, inits, tuple(begins)))
        known.update(map(id, statement.outputs))

    def begin(part: Expression) -> Expression:
        return part.right if isinstance(part, Infix) and type(part.left) is list and id(part.right) in begun else part

    for statement in statements if begun else ():
        statement.expression = _graph.rebuild(statement.expression, begin)
    block.outputs = _graph.rebuild(block.outputs, begin)
