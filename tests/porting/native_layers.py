"""Layers of PyTorch with their like in Keras, flax and equinox, and how each is called on the same input."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn


def first(x):
    """Channels last to channels first."""
    return np.moveaxis(x, -1, 1)


def last(x):
    return np.moveaxis(x, 1, -1)


class Sequence(nn.Module):
    """What a recurrent layer gives for a batch of sequences, without its last state."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


class Attend(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x, x, x, need_weights=False)[0]


# name -> (layer, shape of an input with channels last, whether PyTorch has channels first)
TORCH = {
    "dense": (lambda: nn.Linear(4, 4), (2, 4), False),
    "conv1d": (lambda: nn.Conv1d(3, 4, 3), (2, 8, 3), True),
    "conv2d": (lambda: nn.Conv2d(3, 4, (3, 2)), (2, 6, 5, 3), True),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2), (1, 3, 4, 3, 2), True),
    "grouped": (lambda: nn.Conv2d(4, 4, 3, groups=2), (2, 5, 5, 4), True),
    "depthwise": (lambda: nn.Conv2d(3, 6, 3, groups=3), (2, 5, 6, 3), True),
    "transposed": (lambda: nn.ConvTranspose2d(3, 3, (3, 2), stride=2), (2, 4, 5, 3), True),
    "batch norm": (lambda: nn.BatchNorm2d(3, eps=1e-3), (2, 4, 5, 3), True),
    "layer norm": (lambda: nn.LayerNorm(4, eps=1e-3), (2, 3, 4), False),
    "embedding": (lambda: nn.Embedding(5, 5), (2, 3), False),
    "lstm": (lambda: Sequence(nn.LSTM(3, 3, batch_first=True)), (2, 4, 3), False),
    "gru": (lambda: Sequence(nn.GRU(3, 3, batch_first=True)), (2, 4, 3), False),
    "rnn": (lambda: Sequence(nn.RNN(3, 3, batch_first=True)), (2, 4, 3), False),
    "bidirectional": (lambda: Sequence(nn.LSTM(3, 3, batch_first=True, bidirectional=True)), (2, 4, 3), False),
    "attention": (lambda: Attend(nn.MultiheadAttention(4, 2, batch_first=True)), (2, 3, 4), False),
}


def of_torch(name, seed=0):
    """Return a layer with random weights, an input, and its output, both with channels last."""
    make, shape, channels_first = TORCH[name]
    torch.manual_seed(seed)
    layer = make().eval()
    with torch.no_grad():
        for x in [*layer.parameters(), *(b for b in layer.buffers() if b.is_floating_point())]:
            x.uniform_(0.2, 1.2) if x.ndim == 1 else x.normal_()
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, shape) if name == "embedding" else rng.normal(size=shape).astype("float32")
    return layer, x, run_torch(layer, x, channels_first)


def run_torch(layer, x, channels_first):
    with torch.no_grad():
        y = layer(torch.from_numpy(np.ascontiguousarray(first(x) if channels_first else x))).numpy()
    return last(y) if channels_first else y
