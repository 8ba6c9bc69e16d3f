#!/usr/bin/env bash
# PyTorch 2.13.0 on a CPU: the gradient of group_norm is what lay in memory, where its upstream is known to be zero.
# The derivative of `sgn`, in the second derivative of `abs`, is a tensor of zeros without memory. Of 12 functions of
# torch.nn.functional behind it, group_norm alone does not take it for zeros: its gradient is large, or NaN, and another
# in each run; the others' is 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 torch==2.13.0
cat > "$folder/program.py" <<'PROGRAM'
import torch
from torch.nn import functional

changed = []
FUNCTIONS = {
    "group_norm": lambda x: functional.group_norm(x, 2),
    "layer_norm": lambda x: functional.layer_norm(x, (8,)),
    "batch_norm": lambda x: functional.batch_norm(x, None, None, training=True),
    "instance_norm": functional.instance_norm,
    "rms_norm": lambda x: functional.rms_norm(x, (8,)),
    "conv1d": lambda x: functional.conv1d(x, torch.ones(4, 4, 3)),
    "scaled_dot_product_attention": lambda x: functional.scaled_dot_product_attention(x, x, x),
    "gelu": functional.gelu,
    "softmax": lambda x: functional.softmax(x, -1),
    "max_pool1d": lambda x: functional.max_pool1d(x, 2),
    "interpolate": lambda x: functional.interpolate(x, scale_factor=2),
    "unfold": lambda x: functional.unfold(x[None], 2),
}


def is_zero(function):
    """Say whether the slope of |y| in y, which is 1 or -1, has a gradient of zeros in what y was computed from."""
    for _ in range(20):
        x = torch.randn(2, 4, 8).requires_grad_()
        y = function(x)
        (sign,) = torch.autograd.grad(y.abs().sum(), y, create_graph=True)
        used = [torch.ones(2, 4, 8) for _ in range(50)]
        del used  # memory that is not zero is there to be given
        (gradient,) = torch.autograd.grad(sign.sum(), x)
        if gradient.any():  # NaN is, too
            return False
    return True


for name, function in FUNCTIONS.items():
    found = is_zero(function)
    print(f"{name}: gradient {'of zeros' if found else 'of what lay in memory'}")
    if found is (name == "group_norm"):
        changed.append(name)

if changed:
    raise SystemExit("changed: " + ", ".join(changed))
PROGRAM
cd "$folder"
"$folder/env/bin/python" -W ignore program.py
