"""A port as a module of PyTorch."""

from __future__ import annotations

import torch

import multiop
from multiop.porting import _modules, _weights
from multiop.porting.torch.weights import to_tensor

TAKEN = frozenset(dir(torch.nn.Module())) | {"port"}


class PortedModule(torch.nn.Module):
    """Compute a port on PyTorch, with its parameters, and its state as buffers."""

    def __init__(self, port, params, state):
        super().__init__()
        self.port = port  # without weights of its own
        self._register(params, lambda module, name, x: module.register_parameter(name, parameter(x)))
        of_params = _weights.flat(_modules.tree_of(self, params, TAKEN))
        for path in port.frozen:
            of_params[path].requires_grad_(False)
        self._register(state, lambda module, name, x: module.register_buffer(name, to_tensor(x)))
        self.eval()

    def _register(self, tree, register):
        _modules.place(self, tree, TAKEN, lambda module, name: module.add_module(name, torch.nn.Module()), register)

    def forward(self, *inputs, **keywords):
        params, state = (_modules.tree_of(self, tree, TAKEN) for tree in (self.port.params, self.port.state))
        seed = self._key() if self.port.draws(self.training) else None
        with multiop.use_backend("torch"):
            outputs, changed = self.port.function(params, state, *inputs, training=self.training, seed=seed, **keywords)
        if self.training:
            with torch.no_grad():
                _modules.update(state, changed, lambda buffer, x: buffer.copy_(x))
        return outputs

    def _key(self):
        """Draw a key from PyTorch's own generator, where the parameters are."""
        device = next((x.device for x in self.parameters()), None)
        return torch.randint(-(2**31), 2**31, (2,), dtype=torch.int32, device=device).view(torch.uint32)


def parameter(array):
    """Return an array as a parameter, which is differentiated if its dtype allows it."""
    tensor = to_tensor(array)
    return torch.nn.Parameter(tensor, requires_grad=tensor.is_floating_point() or tensor.is_complex())
