#!/usr/bin/env bash
# OpenVINO 2026.4.1 on a CPU: a model of int64 or float64 gives tensors of that dtype, and has computed in half of it.
# So 2**33 equals 2**34, a product of float64 beyond 3.4e38 is that number, not an infinity, and 1 + 2**-40 is 1, under
# the hint to prefer accuracy too. A power of int32 is of float32. Where small integers overflow, uint8 and int8 stay at
# their bounds, and int16 and int32 wrap as NumPy's do.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 openvino==2026.4.1
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import numpy as np
import openvino
from openvino import opset13

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def run(function, dtype, *operands):
    operands = [np.array([operand], dtype) for operand in operands]
    parameters = [opset13.parameter([1], dtype) for _ in operands]
    model = openvino.Model([function(*parameters)], parameters)
    compiled = openvino.compile_model(model, "CPU", {"EXECUTION_MODE_HINT": "ACCURACY"})
    (result,) = compiled(operands).values()
    return result.dtype.name, result[0].item()


see("2**33 == 2**34 of int64", run(opset13.equal, np.int64, 2**33, 2**34), ("bool", True))
see("2**33 + 1 of int64", run(opset13.add, np.int64, 2**33, 1), ("int64", 1))
see("2**20 * 2**20 of int64", run(opset13.multiply, np.int64, 2**20, 2**20), ("int64", 0))
largest = float(np.finfo(np.float32).max)
see("1e200 * 1e100 of float64", run(opset13.multiply, np.float64, 1e200, 1e100), ("float64", largest))
see("1 + 2**-40 of float64", run(opset13.add, np.float64, 1.0, 2.0**-40), ("float64", 1.0))
see("3**19 of int32, less its value", run(opset13.power, np.int32, 3, 19)[1] - 3**19, 37)
see("200 + 100 of uint8", run(opset13.add, np.uint8, 200, 100), ("uint8", 255))
see("1 - 2 of uint8", run(opset13.subtract, np.uint8, 1, 2), ("uint8", 0))
see("-100 - 100 of int8", run(opset13.subtract, np.int8, -100, 100), ("int8", -128))
see("300 * 300 of int16", run(opset13.multiply, np.int16, 300, 300), ("int16", 300 * 300 - 2**16))
see("2**31 - 1 + 1 of int32", run(opset13.add, np.int32, 2**31 - 1, 1), ("int32", -(2**31)))

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
