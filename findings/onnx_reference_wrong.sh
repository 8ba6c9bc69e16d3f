#!/usr/bin/env bash
# The reference implementation of ONNX 1.23.2 is wrong in four operators where onnxruntime 1.32.0 is right.
# LpNormalization with p=1 divides by the sum, not by the sum of magnitudes; LogSoftmax is the logarithm of a softmax,
# so that -1000 is -inf; ReduceLogSumExp of nothing but -inf is NaN; GridSample with bicubic samples and a border
# differs from onnxruntime and from PyTorch 2.13 (4.671, 7.2845).
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


x = floats(-1, 3)
see("LpNormalization, p=1: reference", refer("LpNormalization", x, p=1), [-0.5, 1.5])
see("LpNormalization, p=1: onnxruntime", run("LpNormalization", x, p=1), [-0.25, 0.75])
x = floats(1000, 0)
see("LogSoftmax: reference", str(refer("LogSoftmax", x)), "[0.0, -inf]")
see("LogSoftmax: onnxruntime", run("LogSoftmax", x), [0.0, -1000.0])
x = floats(-np.inf, -np.inf)
see("ReduceLogSumExp: reference", str(refer("ReduceLogSumExp", x, keepdims=0)), "nan")
see("ReduceLogSumExp: onnxruntime", str(run("ReduceLogSumExp", x, keepdims=0)), "-inf")
image, grid = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3), np.array([[[[-1.3, 0.5], [0.1, 1.7]]]], np.float32)
options = {"mode": "cubic", "padding_mode": "border", "align_corners": 1}
see("GridSample: reference", np.round(refer("GridSample", image, grid, **options), 3).ravel().tolist(), [4.781, 7.143])
see("GridSample: onnxruntime", np.round(run("GridSample", image, grid, **options), 3).ravel().tolist(), [4.671, 7.285])

if changed:
    raise SystemExit("changed: " + "; ".join(changed))
PROGRAM
