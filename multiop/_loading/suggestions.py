"""Suggestions for names that do not exist."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any

# names that users of other libraries write -> multiop's, which may be an op's or another module's
ELSEWHERE = {
    "np": "numpy", "jnp": "numpy", "pytorch": "torch", "tf": "tensorflow", "flax": "jax",
    "bmm": "matmul", "mm": "matmul", "cat": "concatenate", "concat": "concatenate", "permute": "transpose",
    "unsqueeze": "expand_dims", "gather": "take", "inverse": "inv", "logsigmoid": "log_sigmoid",
    "neg": "negative", "dim": "ndim", "astype": "cast", "float": "cast", "boolean_mask": "get_item",
    "masked_select": "get_item", "masked_fill": "where", "index_select": "take", "embedding": "take",
    "embedding_lookup": "take", "index_add": "scatter_update", "dynamic_slice": "slice",
    "dynamic_update_slice": "slice_update", "conv1d": "conv", "conv2d": "conv", "conv3d": "conv",
    "avg_pool": "average_pool", "avg_pool2d": "average_pool", "max_pool2d": "max_pool", "foldl": "scan",
    "cross_entropy": "sparse_categorical_crossentropy",
    "sparse_softmax_cross_entropy_with_logits": "sparse_categorical_crossentropy",
    "softmax_cross_entropy_with_logits": "categorical_crossentropy",
    "sigmoid_cross_entropy_with_logits": "binary_crossentropy",
    "binary_cross_entropy_with_logits": "binary_crossentropy",
    "mul": "multiply", "sub": "subtract", "div": "divide", "pow": "power", "clamp": "clip", "clip_by_value": "clip",
    "asarray": "convert_to_tensor", "as_tensor": "convert_to_tensor", "constant": "convert_to_tensor",
    "from_numpy": "convert_to_tensor", "tensor": "convert_to_tensor", "to_numpy": "convert_to_numpy",
    "deriv": "grad", "derivative": "grad", "holomorphic_grad": "grad", "hessians": "hessian",
    "grad_and_value": "value_and_grad",
    "value_and_gradient": "value_and_grad",
    "value_and_gradients": "value_and_grad", "jacobians": "jacobian", "pullback": "vjp", "linear_transpose": "vjp",
    "batch_jacobian": "GradientTape.batch_jacobian", "pushforward": "jvp", "jacobian_vector_product": "jvp",
    "forwardaccumulator": "jvp", "function": "jit", "compile": "jit", "remat": "checkpoint",
    "recompute_grad": "checkpoint", "detach": "stop_gradient", "no_grad": "stop_gradient",
    "no_gradient": "stop_gradient", "nondifferentiable": "stop_gradient", "stop_recording": "stop_gradient",
    "custom_vjp": "custom_gradient", "custom_jvp": "custom_gradient", "registergradient": "custom_gradient",
    "map_fn": "map", "case": "switch", "switch_case": "switch", "tensorarray": "scan", "gather_nd": "get_item",
    "scatter_nd": "scatter", "device_put": "to_device", "manual_seed": "random.set_seed",
    "seed": "random.set_seed", "prngkey": "random.key", "tree_map": "tree.map",
    "tree_flatten": "tree.flatten", "tree_unflatten": "tree.unflatten",
    "tree_leaves": "tree.leaves", "tree_util": "tree", "pytree": "tree",
    "make_vjp": "vjp", "vector_jacobian_product": "vjp", "tensor_jacobian_product": "vjp", "make_jvp": "jvp",
    "hessian_vector_product": "hvp", "hessian_tensor_product": "hvp", "make_hvp": "hvp",
    "eq": "equal", "ne": "not_equal", "gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal",
    "iota": "arange", "rem": "fmod", "rev": "flip", "reverse": "flip", "fill": "full", "repeat_interleave": "repeat",
    "mv": "matmul", "t": "transpose", "chunk": "split", "strided_slice": "get_item", "slice_in_dim": "get_item",
    "dynamic_slice_in_dim": "slice", "dynamic_update_slice_in_dim": "slice_update", "scalar_mul": "multiply",
    "tensor_scatter_nd_add": "scatter_update", "index_put": "set_item", "population_count": "bitwise_count",
    "bessel_i0": "i0", "bitcast": "view", "bitcast_convert_type": "view",
    "permutation": "random.shuffle", "bernoulli": "random.binomial", "rademacher": "random.choice",
    "register_pytree_node": "tree.register", "register_pytree_node_class": "tree.register",
    "register_dataclass": "tree.register", "nest": "tree", "rank": "ndim", "range": "arange", "newaxis": "expand_dims",
    "get_static_value": "convert_to_numpy", "activations": "ops.nn", "grad_pass_through": "custom_gradient",
    "list_backends": "available_backends", "get_backend": "backend", "set_default_dtype": "set_floatx",
    "get_default_dtype": "floatx",
    "port": "porting.trace", "translate": "porting.trace",
    "convert_weights": "porting.map_weights", "load_state_dict": "porting.map_weights",
    "load_weights": "porting.read_weights", "save_weights": "porting.write_weights",
    "compare_layers": "porting.compare",
    "primitive": "custom_gradient", "defvjp": "custom_gradient", "defgrad": "custom_gradient",
    "custom_op": "custom_gradient", "gradcheck": "testing.check_op", "check_grads": "testing.check_op",
    "is_available": "available_backends", "defjvp": "custom_gradient", "check": "testing.check_op",
    "check_gradient": "testing.check_gradients", "check_grad": "testing.check_gradients",
    **dict.fromkeys(["vjp_rule", "jvp_rule", "custom_rule", "custom_grad", "register_gradient"], "custom_gradient"),
    **{f"a{name}": f"arc{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tan2", "tanh")},
    "expand": "broadcast_to", "expand_as": "broadcast_to", "broadcast_in_dim": "broadcast_to", "numel": "size",
    "to_tensor": "convert_to_tensor", "new_tensor": "convert_to_tensor", "scalar_tensor": "convert_to_tensor",
    "batch_norm": "batch_normalization", "layer_norm": "layer_normalization", "rms_norm": "rms_normalization",
    "group_norm": "group_normalization",
    "square_root": "sqrt", "narrow": "slice", "flatten": "ravel", "tape": "GradientTape", "clone": "copy",
    "identity_n": "copy", "addmm": "matmul", "addmv": "matmul", "baddbmm": "matmul", "remainder": "mod",
    "truediv": "true_divide", "realdiv": "true_divide", "floordiv": "floor_divide", "floormod": "mod",
    "igamma": "gammainc", "igammac": "gammaincc", "lbeta": "betaln", "mvlgamma": "multigammaln", "logistic": "sigmoid",
    "matrix_exp": "expm", "matrix_transpose": "swapaxes", "swapdims": "swapaxes", "movedim": "moveaxis",
    "permute_dims": "transpose", "unbind": "unstack", "integer_pow": "power", "histc": "histogram",
    "argwhere": "nonzero", "rint": "round", "positive": "copy", "degrees": "rad2deg", "radians": "deg2rad",
    "var_mean": "moments", "interpolate": "ops.image.resize", "apply_along_axis": "vmap",
    "scatter_add": "scatter_update", "scatter_reduce": "scatter_update", "segment_mean": "segment_sum",
    "interp1d": "interp", "invert": "bitwise_not", "nll_loss": "sparse_categorical_crossentropy",
    "randn": "random.normal", "rand": "random.uniform",
    "standard_normal": "random.normal", "variable_scope": "name_scope",
}  # fmt: skip
_VARIABLE = (
    "a variable is the framework's own: a tf.Variable, a torch.nn.Parameter; on JAX, an argument of the function"
)
_LAYER = "multiop has operations and derivatives; take layers, losses and optimizers from Keras or the framework"
_FIT = "write a loss, and give its value_and_grad to an optimizer, as scipy.optimize.minimize: see docs/howto/tasks.md"
_NAN = "a custom gradient that passes its upstream on shows where NaN begins: see docs/howto/tasks.md"
_TIMED = "call the step once, then time calls, the last of which op_convert_to_numpy waits for: see docs/howto/tasks.md"
_SCALED = "write x * op_minimum(1.0, most / op_norm(x))"
_CALLBACK = "write the function with ops; on NumPy, the backend differentiates calls of NumPy"
_DTYPE = "a dtype is a string: dtype={name!r}"
_MAPPED = "over several devices, use the framework's own around the function: see docs/distributed.md"
_TRACKED = "only what is asked for is differentiated: multiop.grad(f), or op_stop_gradient(x) for a constant"
_SHAPES = "no shape is declared: jit compiles for the shapes of its arguments, and op_shape(x) gives a tensor's"
_BACKEND = "a package brings a backend by an entry point, with multiop.extend: see CONTRIBUTING.md"
_PRINTED = "print(x) shows a tensor; in compiled code, jax.debug.print and tf.print do"
_OWN = "take the framework's own: multiop's tensors are its tensors, and ops run in its programs"
_COMPARED = "compare op_convert_to_numpy(x) with numpy.testing.assert_allclose"
_STATE = "a function of its parameters is differentiated as it is: grad(lambda params: loss(params, x))(params)"
_NEEDLESS = "leave it out"
# names that have no one name in their place -> what to write
INSTEAD = {
    "elementwise_grad": (sums := "for the derivative of each entry, write grad(lambda x: op_sum(f(x)))"), "egrad": sums,
    "grad_and_aux": "write grad(f, has_aux=True)",
    **dict.fromkeys(
        ["multigrad", "multigrad_dict", "grad_named"], "write grad(lambda p: f(**p)), or grad(f, argnums=(0, 1))"
    ),
    "gradient": "write grad(f); op_gradient is NumPy's, of finite differences",
    "mse_loss": "write op_mean(op_square(x - y))", "squared_difference": "write op_square(x - y)",
    "block_until_ready": "op_convert_to_numpy(x) waits for a result",
    "value_and_jacobian": "write jacobian(lambda x: (f(x), f(x)), has_aux=True), which returns (jacobian, value)",
    "l1_loss": "write op_mean(op_abs(x - y))", "linear": "write op_matmul(x, w) + b",
    "at": "write op_set_item(x, i, value)",
    **dict.fromkeys(["item", "tolist"], "float(x) is the number, and op_convert_to_numpy(x) the array"),
    **dict.fromkeys(["to", "cuda", "cpu"], "write op_cast(x, dtype), or take the framework's own for a device"),
    "make_jaxpr": "multiop.jit(f) runs in the framework's compiler; jax.make_jaxpr shows what JAX makes of f",
    "autograd": "write multiop.grad, vjp, jvp, jacobian, hessian, or op_custom_gradient",
    "lax": "control flow is ops: op_cond, op_switch, op_scan, op_map, op_while_loop, op_fori_loop",
    **dict.fromkeys(["math", "signal"], "the functions of tf.{name} are in multiop.ops, under the names of keras.ops"),
    "variable": _VARIABLE, "parameter": _VARIABLE, "module": _LAYER, "layers": _LAYER, "losses": _LAYER,
    "metrics": _LAYER, "optim": _LAYER, "optimizer": _LAYER, "optimizers": _LAYER, "layer": _LAYER, "model": _LAYER,
    "sequential": _LAYER, "initializers": _LAYER, "callbacks": _LAYER, "data": _LAYER, "train": _LAYER,
    "to_flax": "write porting.trace(model, x).as_module('flax'); weights alone, porting.map_weights",
    "curve_fit": _FIT, "fit": _FIT, "minimize": _FIT, "least_squares": _FIT, "debug_nans": _NAN, "debugging": _NAN,
    "detect_anomaly": _NAN, "check_numerics": _NAN, "enable_check_numerics": _NAN, "clip_by_norm": _SCALED,
    "clip_by_global_norm": _SCALED, "global_norm": _SCALED, "bench": _TIMED, "benchmark": _TIMED, "timeit": _TIMED,
    "py_func": _CALLBACK, "py_function": _CALLBACK, "numpy_function": _CALLBACK, "pure_callback": _CALLBACK,
    "io_callback": _CALLBACK,
    **dict.fromkeys(["pmap", "shard_map", "xmap", "psum", "pmean", "pmax", "pmin", "ppermute", "all_gather"], _MAPPED),
    "requires_grad": _TRACKED, "enable_grad": _TRACKED, "set_grad_enabled": _TRACKED, "backward": _TRACKED,
    "inference_mode": _TRACKED, "contiguous": _NEEDLESS,
    "functional_call": _STATE, "functionalize": _STATE, "make_functional": _STATE, "stack_module_state": _STATE,
    "version": "write multiop.__version__", "dispatch": _BACKEND, "register_backend": _BACKEND,
    "register": f"{_BACKEND}; multiop.tree.register is for pytrees", "add_backend": _BACKEND, "print": _PRINTED,
    "ensure_shape": _SHAPES, "set_shape": _SHAPES, "tensorspec": _SHAPES, "inputspec": _SHAPES,
    "shapedtypestruct": _SHAPES, "eval_shape": _SHAPES,
    "control_dependencies": _OWN, "executing_eagerly": _OWN, "init_scope": _OWN,
    "raggedtensor": _OWN, "assert_equal": _COMPARED, "assert_close": _COMPARED, "assert_allclose": _COMPARED,
    **dict.fromkeys(["bool", "bfloat16", "complex64", "complex128"], _DTYPE),
    **dict.fromkeys([f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)], _DTYPE),
    **dict.fromkeys([f"float{bits}" for bits in (16, 32, 64)], _DTYPE),
    "long": _DTYPE.format(name="int64"), "half": _DTYPE.format(name="float16"), "double": _DTYPE.format(name="float64"),
}  # fmt: skip

# keywords that users of other libraries write -> the parameters that may take their place, or what to write
KEYWORDS = {
    **dict.fromkeys(["dim", "dims", "dimension", "reduction_indices", "perm"], ("axis", "axes")),
    **dict.fromkeys(["keep_dims", "keepdim"], ("keepdims",)), "depth": ("num_classes",),
    **dict.fromkeys(["input", "input_tensor", "tensor", "a", "logits", "features", "value"], ("x", "x1")),
    "x": ("x1",), **dict.fromkeys(["y", "b", "other"], ("x2",)), "clip_value_min": ("x_min",),
    "clip_value_max": ("x_max",), "in_dims": ("in_axes",), "out_dims": ("out_axes",),
    **dict.fromkeys(["argnum", "wrt"], ("argnums",)), **dict.fromkeys(["f", "func", "fn", "function"], ("fun",)),
    "input_signature": (shapes := "leave it out: jit compiles for the shapes of its arguments"),
    **dict.fromkeys(["dynamic", "reduce_retracing"], shapes), "axis_name": "reduce what vmap returns",
    **dict.fromkeys(["jit_compile", "fullgraph", "autograph", "mode", "backend", "inline"], _NEEDLESS),
    **dict.fromkeys(["use_reentrant", "prevent_cse", "policy", "vectorize", "holomorphic", "allow_int"], _NEEDLESS),
    **dict.fromkeys(["create_graph", "retain_graph"], "leave it out: any gradient may be differentiated again"),
    "requires_grad": _TRACKED, "device": "write to_device(x, device)", "out": "take the result instead",
    "size": "write shape= for a new tensor; where values decide the size, leave it out",
    **dict.fromkeys(["ddof", "unbiased"], "write op_sum(op_square(x - op_mean(x))) / (n - 1)"),
    **dict.fromkeys(["transpose_a", "transpose_b", "adjoint_a", "adjoint_b"], "write op_swapaxes(x, -1, -2)"),
}  # fmt: skip

PUBLIC: dict[str, Collection[str]] = {}  # the names of each namespace, where one may be that was looked for elsewhere


class _Missing(AttributeError):
    """An `AttributeError` that hides its name, since Python would add a guess of its own to the traceback."""

    name = property(lambda self: None, lambda self, name: None)

    def __reduce__(self) -> tuple[type[AttributeError], tuple[object, ...]]:
        return AttributeError, self.args


_Missing.__module__, _Missing.__qualname__, _Missing.__name__ = "builtins", "AttributeError", "AttributeError"


def similar(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean ...?`, or an empty string if no known name is similar to `name`."""
    import difflib

    known = list(known)
    meant = ELSEWHERE.get(name.lower(), name)
    suggestions = [meant] if meant in known else difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.7)
    return f"; did you mean {' or '.join(map(repr, suggestions))}?" if suggestions else ""


def explain_keyword(error: BaseException | None, function: Callable[..., Any] | None = None) -> None:
    """Say in Python's error about a keyword that a function does not take which one it takes, or what to write.

    Args:
        error: What was raised at a call.
        function: What was called; without it, the error may be about any op.
    """
    if type(error) is not TypeError:  # an exception of the user's has its own arguments, and may have no text
        return
    found = re.match(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'", str(error))
    advice = found and KEYWORDS.get(found[2])
    if not found or not advice:
        return
    if function is None and found[1].startswith("op_"):
        function = getattr(sys.modules["multiop"], found[1], None)
    if function and function.__qualname__ == found[1]:
        taken = inspect.signature(function).parameters
        if isinstance(advice, tuple):
            advice = next((f"write {name}=" for name in advice if name in taken), None)
        if advice and found[2] not in taken:
            error.args = (f"{found[0]}; {advice}",)


def missing(module: str, name: str, known: Collection[str]) -> AttributeError:
    """Return the error about an attribute that a module does not have, with the public name that may be meant."""
    is_package = "__path__" in vars(sys.modules[module])
    if name.startswith("_"):  # asked for by tools, which try many
        hint = ""
    elif is_package and "." not in name and importlib.util.find_spec(f"{module}.{name}") is not None:
        hint = f"; write import {module}.{name} first"
    else:
        bare = (
            name.rstrip("_")
            .removeprefix("op_")
            .removeprefix("reduce_")
            .removeprefix("random_")
            .removeprefix("stateless_")
        )
        meant = ELSEWHERE.get(bare.lower(), bare)
        spellings = (meant, f"op_{meant}")
        found = [spelling for spelling in spellings if spelling in known]
        if not found and "." in meant:  # in a module of multiop
            found = [f"multiop.{meant}"]
        for other, names in () if found else PUBLIC.items():
            found += [f"{other}.{spelling}" for spelling in spellings if spelling in names]
        spelt = next(iter(found), None)
        if advice := INSTEAD.get(name.lower()):
            hint = f"; {advice.format(name=name)}"
        else:
            hint = f"; did you mean {spelt!r}?" if spelt else similar(name, known)
    return _Missing(f"module {module!r} has no attribute {name!r}{hint}")
