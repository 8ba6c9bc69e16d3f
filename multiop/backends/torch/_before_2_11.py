"""What PyTorch before 2.11 computes wrongly of DTensors, mended."""

from __future__ import annotations

import torch
from torch.distributed.tensor import DTensor, Partial
from torch.distributed.tensor._ops import _pointwise_ops

from multiop import errors


def mend_moved_dtensors(loses_numbers):
    """Make an operation that has to move a DTensor be an error in place, where it would change the moved copy alone.

    If PyTorch `loses_numbers`, it computes with its own ones instead of those of an earlier call:
    https://github.com/pytorch/pytorch/issues/153603.
    """
    dispatcher = DTensor._op_dispatcher
    redistribute = dispatcher.redistribute_local_args
    shaped = dispatcher.sharding_propagator.op_to_shape_and_stride_idx  # their numbers are the sizes of a part

    def redistribute_local_args(op_info, schema, *args):
        given = op_info.local_args
        redistribute(op_info, schema, *args)
        name = op_info.schema.op.name().partition(".")[0]
        if name.endswith("_") and not name.endswith("__") and op_info.local_args[0] is not given[0]:
            raise errors.UnsupportedError(
                f"{name}, in place, of a DTensor of which each device has a part: PyTorch {torch.__version__} leaves "
                "it as it is; compute a new tensor, or install torch>=2.12"
            )
        if loses_numbers and op_info.schema.op not in shaped:
            pairs = zip(given, op_info.local_args, strict=True)
            op_info.local_args = tuple(moved if isinstance(x, torch.Tensor) else x for x, moved in pairs)

    dispatcher.redistribute_local_args = redistribute_local_args


def mend_sums_of_dtensors():
    """Make a DTensor of which only parts are known be put together before what does not distribute over the parts.

    A number was added to each part, and norms and products of parts were added:
    https://github.com/pytorch/pytorch/issues/163193
    """
    strategies = DTensor._op_dispatcher.sharding_propagator.op_strategy_funcs
    added = (torch.ops.aten.add.Tensor, torch.ops.aten.add_.Tensor)

    def mend_strategy(of_parts):
        def strategy(*args):
            schema = args[-1]  # PyTorch 2.6 gives the mesh before it
            tensors = [x for x in schema.args_schema if hasattr(x, "strategies")]
            placements = {x.strategies[0].output_spec.placements for x in tensors}
            parts = [p for each in placements for p in each if p.is_partial()]
            kinds = {p.reduce_op if type(p) is Partial else "other" for p in parts}
            distributes = kinds <= {"sum"} or (kinds <= {"sum", "avg"} and len(placements) == 1)
            adds_number = schema.op in added and len(tensors) < 2
            follow = of_parts if distributes and not (parts and adds_number) else _pointwise_ops.pointwise_strategy
            return follow(*args)

        return strategy

    for op in _pointwise_ops.linear_pointwise_ops:
        if op in strategies:
            strategies[op] = mend_strategy(strategies[op])
