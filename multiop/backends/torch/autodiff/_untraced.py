"""What torch.compile must not trace: it breaks the graph, or fails under fullgraph=True, and runs eagerly."""

from __future__ import annotations

import torch


def _call_untraced(reason):
    reasons = {"reason": reason} if torch.__version__ >= "2.8" else {}  # PyTorch 2.6 takes none

    @torch.compiler.disable(**reasons)
    def run(function, *args):
        return function(*args)

    return run


run = _call_untraced(
    "torch.compile would drop a custom gradient: inside torch.func transforms (use multiop.jit instead; "
    "https://github.com/pytorch/pytorch/issues/193279), in forward mode "
    "(https://github.com/pytorch/pytorch/issues/192985), or where the function closes over a differentiable value "
    "(pass it as an argument, or use multiop.jit)"
)

run_loop = _call_untraced(
    "torch.compile would compute a wrong gradient of op_while_loop, and of op_fori_loop with bounds that are tensors: "
    "call it in torch.no_grad() if no gradient is needed; else use bounds that are Python ints, op_scan or multiop.jit "
    "(https://github.com/pytorch/pytorch/issues/184528)"
)
