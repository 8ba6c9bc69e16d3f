"""Statements that do the same to one submodule after another, as a loop."""

from __future__ import annotations

import functools
import operator
import re
from typing import Any, NamedTuple

from multiop.porting import _graph
from multiop.porting._graph import SEED, Body, Call, Expression, Value
from multiop.porting._printing.regions import swap_values
from multiop.porting._printing.terms import Branch, Statement


class _Numbered(NamedTuple):
    """The path of a submodule, taken apart at its number."""

    before: str
    number: int  # or that of a letter behind a number, as in `block5b`
    behind: str
    is_letter: bool


def found_in(block: Body) -> list[Statement]:
    """Return the statements of a function, with loops."""
    statements: Any = block.nodes
    result: list[Statement] = []
    start = 0
    while start < len(statements):
        end = start + 1
        place = _carried(block, *statements[start : end + 1]) if end < len(statements) else None
        while end < len(statements) and place is not None and place == _carried(block, *statements[end - 1 : end + 1]):
            end += 1
        if end - start >= 2:
            result.append(_loop(statements[start:end], place=place or 0))
        else:
            while end < len(statements) and _grows(statements[end - 1], statements[end]):
                end += 1
            growing = _growing_loop(block, start, end)
            end = end if growing else start + 1
            result += growing or [statements[start]]
        start = end
    return result


def _numbered_path(statement: Statement) -> _Numbered | None:
    """Return the path of the submodule that a statement calls, if it has a number."""
    expression = statement.expression
    if not isinstance(expression, Call) or not expression.function.startswith("self."):
        return None
    path = next((arg.path for arg in expression.args if isinstance(arg, Branch)), "")
    match = re.fullmatch(r"(.*?)(\d+)(_\*)?", path)
    if match:
        return _Numbered(match[1], int(match[2]), match[3] or "", False)
    match = re.fullmatch(r"(.*\d)([a-z])(_\*)?", path)
    if match and SEED not in _graph.walk(expression):  # keys are numbered
        return _Numbered(match[1], ord(match[2]), match[3] or "", True)
    return None


def _is_next(before: Statement, after: Statement) -> bool:
    """Say whether a statement calls what the one before it calls, with the parts of the next number."""
    first, second = _numbered_path(before), _numbered_path(after)
    if first is None or second is None or first._replace(number=first.number + 1) != second:
        return False
    a, b = before.expression, after.expression
    return bool(a.function == b.function and a.kwargs == b.kwargs and len(a.args) == len(b.args))


def _operands(before: Statement, after: Statement) -> list[tuple[Expression, Expression]]:
    """Return the pairs of arguments of two calls that are no branches."""
    pairs = zip(before.expression.args, after.expression.args, strict=True)
    return [(a, b) for a, b in pairs if not isinstance(a, Branch)]


def _grows(before: Statement, after: Statement) -> bool:
    """Say whether a statement does what the one before it does, to the list of that one and its result."""
    if not _is_next(before, after):
        return False
    pairs = _operands(before, after)
    lists = [(a, b) for a, b in pairs if type(a) is list and type(b) is list]
    if len(lists) != 1 or not all(a is b for a, b in pairs if type(a) is not list) or before.results != 1:
        return False
    ((shorter, longer),) = lists
    return len(longer) == len(shorter) + 1 and all(map(operator.is_, longer, [*shorter, before.outputs[0]]))


def _growing_loop(block: Body, start: int, end: int) -> list[Statement]:
    """Return the list, and the loop that adds to it, of such statements; `[]` if their results are used alone."""
    statements: Any = block.nodes
    steps = statements[start:end]
    if len(steps) < 2 or steps[-1].results != 1:
        return []
    init = next(arg for arg in steps[0].expression.args if type(arg) is list)
    results = [step.outputs[0] for step in steps]
    grown = Value((), "list", own="features")
    swap = functools.partial(swap_values, old=[*init, *results], new=grown)
    others = statements[end:]
    changed = [_graph.rebuild(other.expression, swap, inside=False) for other in others]
    if any(value in results for expression in (*changed, block.outputs) for value in _graph.values(expression)):
        return []
    for other, expression in zip(others, changed, strict=True):
        other.expression = expression
    loop = _loop(steps, init)
    call = loop.expression
    loop.expression = Call(call.function, tuple(grown if arg is init else arg for arg in call.args), call.kwargs)
    loop.outputs, loop.carry, loop.grows = loop.outputs[1:], None, grown
    return [Statement([grown], list(init)), loop]


def _carried(block: Body, before: Statement, after: Statement) -> int | None:
    """Return which result of the one before it a statement does the same to, if no other is used."""
    if not _is_next(before, after):
        return None
    changed = [(a, b) for a, b in _operands(before, after) if a is not b]
    results = before.outputs[: before.results]
    place = next((n for n, result in enumerate(results) if len(changed) == 1 and result is changed[0][1]), None)
    statements: Any = block.nodes
    others = [*(each.expression for each in statements if each is not after), block.outputs]
    uses = {value for expression in others for value in _graph.values(expression)}
    uses |= {value for value in _graph.values(after.expression) if place is None or value is not results[place]}
    is_alone = place is not None and isinstance(changed[0][0], Value) and not uses & set(results)
    return place if is_alone else None


def _loop(steps: list[Statement], init: Expression = None, place: int = 0) -> Statement:
    first, last = steps[0], steps[-1]
    numbered = _numbered_path(first)
    assert numbered is not None
    call = first.expression
    if init is None:
        pairs = zip(call.args, steps[1].expression.args, strict=True)
        init = next(a for a, b in pairs if b is first.outputs[place])
    path = f"{numbered.before}{{i}}{numbered.behind}"
    args = tuple(Branch(arg.kind, path) if isinstance(arg, Branch) else arg for arg in call.args)
    numbers = range(numbered.number, numbered.number + len(steps))
    made = Statement(list(last.outputs), Call(call.function, args, call.kwargs), carry=(init, last.outputs[place]))
    made.update = None if first.update is None else path
    made.loop = "".join(map(chr, numbers)) if numbered.is_letter else numbers
    return made
