"""Derivatives of losses."""

from __future__ import annotations

import numpy as np

from ..._record import ops
from ...ops.losses import beam_search
from .formula import by_formula


def op_ctc_decode(u, inputs, lengths, beam_width, top_paths, merge_repeated, blank):
    def scores(inputs):
        if not beam_width:
            inside = np.arange(inputs.shape[1]) < lengths[:, None]
            return -ops.sum(ops.where(inside, ops.max(inputs, 2, False, None), 0), 1, True)
        logs = ops.log_softmax(inputs, 2)
        found = [beam_search(x[:n], beam_width, top_paths, blank) for x, n in zip(logs, lengths, strict=True)]
        return ops.stack([ops.stack([score for _, score in paths], 0) for paths in found], 0)

    return by_formula(scores)(u[1], inputs)
