"""Statistics: the ops that are not composed of others."""

from __future__ import annotations

import numpy as np


def op_correlate(x1, x2, before, after):
    return np.lib.stride_tricks.sliding_window_view(np.pad(x1, (before, after)), x2.shape[0]) @ x2
