"""A step of training on PyTorch."""

from __future__ import annotations

from multiop.porting.torch.weights import tensor_beside


def backend():
    return "torch"


def step(model, optimizer, loss, batch):
    """Make a step, and return the loss before it."""
    optimizer.zero_grad()
    y = loss(model, *(tensor_beside(x, model) for x in batch))
    y.backward()
    optimizer.step()
    return y.detach().item()
