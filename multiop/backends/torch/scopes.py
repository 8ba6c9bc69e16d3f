"""Names for parts of a computation."""

import torch


def name_scope(name):
    return torch.profiler.record_function(name)
