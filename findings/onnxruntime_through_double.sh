#!/usr/bin/env bash
# onnxruntime 1.32.0 computes Pow of two int64 tensors in double precision: 3**40 is the smallest int64, 3**39 is off
# in its last digits.
# ONNX's reference 1.23.2 wraps as NumPy does. A double cast to float16 goes through float32 and is rounded twice: 1 +
# 2**-11 + 2**-40 is 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6 onnx==1.23.2 onnxruntime==1.32.0
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PROGRAM'
import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

changed = []


def see(what, value, expected):
    """Print a value, and remember it where it is not the one that was seen before."""
    print(f"{what}: {value}")
    if repr(value) != repr(expected):
        changed.append(f"{what} was {expected}")


def model(op, inputs, outputs=1, opset=21, **attributes):
    names = [f"input{i}" for i in range(len(inputs))]
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, inputs)
    ]
    results = [onnx.ValueInfoProto(name=f"output{i}") for i in range(outputs)]
    node = helper.make_node(op, names, [result.name for result in results], **attributes)
    graph = helper.make_graph([node], "graph", infos, results)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(made), dict(zip(names, inputs))


def run(op, *inputs, **attributes):
    made, feed = model(op, inputs, **attributes)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feed)[0].tolist()


def refer(op, *inputs, **attributes):
    made, feed = model(op, inputs, **attributes)
    return np.asarray(ReferenceEvaluator(made).run(None, feed)[0]).tolist()


def floats(*values):
    return np.array(values, np.float32)


three = np.array([3])
see("3**40: onnxruntime", run("Pow", three, np.array([40])), [-(2**63)])
see("3**40: reference, which wraps", refer("Pow", three, np.array([40])), [(3**40 + 2**63) % 2**64 - 2**63])
see("3**39 - its value: onnxruntime", run("Pow", three, np.array([39]))[0] - 3**39, int(3.0**39) - 3**39)
x = np.array([1 + 2.0**-11 + 2.0**-40])
see("double to float16: onnxruntime", run("Cast", x, to=onnx.TensorProto.FLOAT16), [1.0])
see("double to float16: reference", refer("Cast", x, to=onnx.TensorProto.FLOAT16), [1.0009765625])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
