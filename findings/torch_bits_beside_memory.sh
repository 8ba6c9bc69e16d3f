#!/usr/bin/env bash
# PyTorch 2.13.0 conjugates and negates by a bit that is not in memory, and two ways out of it leave the bit behind.
# `z.conj().imag` is a negated view: DLPack hands NumPy 2.4.6, and PyTorch itself, its numbers with the other sign. A
# conjugated tensor is refused there, and `.numpy()` refuses both. safetensors 0.8.0 writes what is in memory, so V of a
# complex singular value decomposition, which is `vh.mH`, is read back as its conjugate.
# https://github.com/safetensors/safetensors/issues/831
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 torch==2.13.0 safetensors==0.8.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import numpy as np
import torch
from safetensors.torch import load, save

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def refused(function):
    """Return the class of the error that a function raises."""
    try:
        return function().tolist()
    except (RuntimeError, BufferError) as error:
        return type(error).__name__


z = torch.tensor([1 + 2j, 3 + 4j])
negated = z.conj().imag
see("negated", negated.tolist(), [-2.0, -4.0])
see("negated, numpy.from_dlpack", np.from_dlpack(negated).tolist(), [2.0, 4.0])
see("negated, torch.from_dlpack", torch.from_dlpack(negated).tolist(), [2.0, 4.0])
see("negated, resolved, numpy.from_dlpack", np.from_dlpack(negated.resolve_neg()).tolist(), [-2.0, -4.0])
see("negated, .numpy()", refused(negated.numpy), "RuntimeError")
see("conjugated, numpy.from_dlpack", refused(lambda: np.from_dlpack(z.conj())), "BufferError")
see("conjugated, safetensors", load(save({"z": z.conj()}))["z"].tolist(), z.tolist())
see("conjugated, resolved, safetensors", load(save({"z": z.conj().resolve_conj()}))["z"].tolist(), z.conj().tolist())

torch.manual_seed(0)
matrix = torch.randn(3, 3, dtype=torch.complex64)
u, s, vh = torch.linalg.svd(matrix)
v = vh.mH
see("V is contiguous, so safetensors takes it", v.is_contiguous(), True)
stored = load(save({"v": v}))["v"]
see("U S V^H is the matrix", torch.allclose(u * s @ v.mH, matrix, atol=1e-5), True)
see("U S V^H is the matrix, V from the file", torch.allclose(u * s @ stored.mH, matrix, atol=1e-5), False)
see("V from the file is V's conjugate", torch.equal(stored, v.conj()), True)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
