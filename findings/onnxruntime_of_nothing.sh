#!/usr/bin/env bash
# onnxruntime 1.32.0: the mean of an empty axis is 0, and the normalization of a constant image is NaN; ONNX's
# reference 1.23.2 has NaN and 0.
# So the two swap the places where a NaN shows. (ReduceMean along an axis of size 0; MeanVarianceNormalization, whose
# formula has an epsilon of 1e-9 behind a square root.)
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


empty = np.ones((0, 2), np.float32), np.array([0])
see("ReduceMean: onnxruntime", run("ReduceMean", *empty, keepdims=0), [0.0, 0.0])
see("ReduceMean: reference", str(refer("ReduceMean", *empty, keepdims=0)), "[nan, nan]")
constant = np.ones((1, 1, 2, 2), np.float32)
see("MeanVarianceNormalization: onnxruntime", str(run("MeanVarianceNormalization", constant)), "[[[[nan, nan], [nan, nan]]]]")
see("MeanVarianceNormalization: reference", np.abs(refer("MeanVarianceNormalization", constant)).max().item(), 0.0)

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
