"""A step of training on PyTorch."""

from __future__ import annotations

from multiop.porting.torch.weights import to_tensor


def backend():
    return "torch"


def step(model, optimizer, loss, batch):
    """Make a step, and return the loss before it."""
    device = next(model.parameters()).device
    optimizer.zero_grad()
    y = loss(model, *(to_tensor(x).to(device) for x in batch))
    y.backward()
    optimizer.step()
    return y.detach().item()
