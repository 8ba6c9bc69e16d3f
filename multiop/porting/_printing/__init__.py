"""From the graph to source: a function per kind of submodule, called as often as it occurs, and loops over blocks.

`taps` marks the results of submodules on request, `simplify` takes out what is needless, `regions` finds the functions,
`statements` and `loops` say what each does, `names` names its values, and `source_text` prints it.
"""

from __future__ import annotations

from multiop import errors
from multiop.porting._graph import Graph
from multiop.porting._printing import endings, limits, names, source_text, taps as _taps
from multiop.porting._printing.names import snake
from multiop.porting._printing.regions import Outline, alike
from multiop.porting._printing.statements import Definition

__all__ = ["alike", "limits", "snake", "source"]


def source(graph: Graph, name: str, taps: bool = False) -> str:
    """Return the source of the module that computes the graph; its function is called `name`."""
    names.take_from_source(graph)
    if taps:
        return _source(_taps.tap_submodules(endings.without(graph)), name)
    try:
        return _source(endings.write_endings(graph), name)
    except errors.TranslationError:  # a function of a block cannot tell an open size
        return _source(endings.without(graph), name)


def _source(graph: Graph, name: str) -> str:
    outline = Outline(graph)
    names.name_functions(outline, name)
    definitions = [Definition(outline, function) for function in outline.functions]
    return source_text.module(
        outline, [source_text.function(definition, names.Namer(definition).naming) for definition in definitions]
    )
