#!/usr/bin/env bash
# onnxruntime 1.32.0 skips NaN in ReduceMax, ReduceMin, ArgMax and ScatterND(max), and Unique drops it; ONNX's
# reference 1.23.2 and NumPy keep it.
# Max of two tensors keeps it in both, so a model that checks for NaN by a maximum sees it or not by the form that its
# exporter chose.
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


x = floats(1, np.nan, 2)
see("ReduceMax: onnxruntime, reference", str((run("ReduceMax", x, keepdims=0), refer("ReduceMax", x, keepdims=0))), "(2.0, nan)")
see("ReduceMin: onnxruntime, reference", str((run("ReduceMin", x, keepdims=0), refer("ReduceMin", x, keepdims=0))), "(1.0, nan)")
see("ArgMax: onnxruntime, reference", (run("ArgMax", x, keepdims=0), refer("ArgMax", x, keepdims=0)), (2, 1))
see("Max of two tensors: onnxruntime", str(run("Max", x, floats(1, 1, 1))), "[1.0, nan, 2.0]")
x = floats(2, np.nan, 1, np.nan, 2)
see("Unique: onnxruntime", run("Unique", x), [1.0, 2.0])
see("Unique: reference", str(refer("Unique", x)), "[1.0, 2.0, nan]")
scattered = floats(0, 0), np.array([[0], [0]]), floats(np.nan, 2)
see("ScatterND: onnxruntime", run("ScatterND", *scattered, reduction="max"), [2.0, 0.0])
see("ScatterND: reference", str(refer("ScatterND", *scattered, reduction="max")), "[nan, 0.0]")

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
