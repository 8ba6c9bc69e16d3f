"""What multiop asks of torch.compile, which traces Python itself: see `multiop._loading.contract.Compiler`."""

from __future__ import annotations

import weakref

import torch
from torch.compiler import is_dynamo_compiling as is_tracing_python  # noqa: F401  a part of the contract

from . import _internals
from ._internals import retrace as retrace
from .conversion import is_compiling as is_compiling


def refuse_break():
    if _internals.VERSION < (2, 11):  # it cannot trace what takes a function inside of torch.func
        _internals.refuse_break()


def compile_as_one(function, held, **options):
    """Compile a function that was traced once as one step, into which Dynamo does not look: its own trace takes longer.

    Args:
        function: The method of a traced graph that takes all tensors that it uses.
        held: The last of these tensors, which each call has.
        **options: Those of `torch.compile`.
    """
    known = weakref.WeakMethod(function)  # PyTorch keeps the step after its program, which would keep the graph

    @torch.compiler.allow_in_graph
    def step(*operands):  # a method is another object each time, and marks belong to one
        return known()(*operands)

    def run(*operands):
        return step(*operands)

    run.__code__ = run.__code__.replace()  # programs are kept for each code object
    run.function = function
    compiled = torch.compile(run, **options)
    return (lambda *operands: compiled(*operands, *held)) if held else compiled
