"""What torch.compile must not trace."""

from __future__ import annotations

import torch

_REASON = {
    "reason": "torch.compile would drop a custom gradient: inside torch.func transforms (use multiop.jit instead; "
    "https://github.com/pytorch/pytorch/issues/193279), in forward mode "
    "(https://github.com/pytorch/pytorch/issues/192985), or where the function closes over a differentiable value "
    "(pass it as an argument, or use multiop.jit)"
}


@torch.compiler.disable(**_REASON if torch.__version__ >= "2.8" else {})  # PyTorch 2.6 takes none
def run(function, *args):
    """Break the graph, or fail under fullgraph=True: `function` would be compiled wrongly, so it runs eagerly."""
    return function(*args)
