#!/usr/bin/env bash
# PyTorch 2.13.0: an exported program has the values of its module, and may have another gradient, without an error.
# `torch.export` takes a `torch.autograd.Function` for the operations of its forward, and leaves hooks out. Its
# `run_decompositions()` drops `detach` and `no_grad`: the gradient of x * x.detach() is 2 x, and that of
# x + (round(x) - x).detach(), which is 1, is 0. With an empty table of decompositions `detach` is kept, `no_grad` not.
# A function that is registered by `torch.library` keeps its rule throughout. `torch.compile` (aot_eager) has all right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 setuptools torch==2.13.0
cat > "$folder/program.py" <<'PROGRAM'
import torch

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, upstream):
        return 5 * upstream


@torch.library.custom_op("findings::rounded", mutates_args=())
def rounded(x: torch.Tensor) -> torch.Tensor:
    return torch.round(x)


rounded.register_fake(torch.empty_like)
rounded.register_autograd(lambda ctx, upstream: 5 * upstream)


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def hooked(x):
    y = 2 * x
    y.register_hook(lambda upstream: 10 * upstream)
    return 3 * y


def unrecorded(x):
    with torch.no_grad():
        y = 2 * x
    return x * y


def slope(module):
    return torch.autograd.grad(module(x), x)[0].item()


x = torch.tensor(1.5, requires_grad=True)
for name, function, expected in (
    ("autograd.Function", Rounded.apply, (5.0, 5.0, 0.0, 0.0, 0.0)),
    ("hook", hooked, (60.0, 60.0, 6.0, 6.0, 6.0)),
    ("detach", lambda x: x * x.detach(), (1.5, 1.5, 1.5, 1.5, 3.0)),
    ("no_grad", unrecorded, (3.0, 3.0, 3.0, 6.0, 6.0)),
    ("straight through", lambda x: x + (torch.round(x) - x).detach(), (1.0, 1.0, 1.0, 1.0, 0.0)),
    ("torch.library", rounded, (5.0, 5.0, 5.0, 5.0, 5.0)),
):
    module = Module(function)
    program = torch.export.export(module, (x,))
    ways = module, torch.compile(module, backend="aot_eager"), program.module()
    ways += program.run_decompositions({}).module(), program.run_decompositions().module()
    see(f"{name}: the same values", len({way(x).item() for way in ways}), 1)
    see("  slopes: eager, compiled, exported, {}, decomposed", tuple(map(slope, ways)), expected)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
cd "$folder" && "$folder/env/bin/python" -W ignore program.py
