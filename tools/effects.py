"""Write the table of docs/limits.md: what multiop changes, in a framework or in the process, for code of others.

python tools/effects.py            measures on each backend that is installed, and writes the table
python tools/effects.py --check    fails if something else has changed than the table says

The state of a framework is what can be reached from its modules, by identity: their attributes, those of their classes,
and what is in their dicts, lists and sets. It is taken before multiop is loaded, after it was used, and while a port
records. What changes when the framework alone is used, twice, is not counted.
"""

from __future__ import annotations

import atexit
import contextlib
import fnmatch
import gc
import importlib
import importlib.util
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "docs/limits.md"
START = "<!-- the table of effects is made by tools/effects.py, do not edit -->"
END = "<!-- end of the table of effects -->"
PACKAGES = {  # backend -> whose modules are looked through
    "torch": ("torch", "functorch"),
    "jax": ("jax", "jaxlib"),
    "tensorflow": ("tensorflow", "keras"),
    "numpy": ("numpy",),
}
EVERYWHERE = ("builtins", "copyreg", "math", "pickle", "threading", "warnings")
# what a framework notes of what it has run: caches, counters, times; a function that is replaced is seen there too
NOTES = re.compile(
    r".*\.hide$|sys\.modules\[_cyutility|.*([Cc]ache|counter|COUNTER|count$|metrics|__annotations__|__slotnames__|_time_)|"
    r".*int_oo\._mhash$|torch\._(inductor|logging|prims|refs|library\.simple_registry)\b(?!\.config)|"
    r"torch\._dynamo\.(?!config)|torch\._functorch\._aot|torch\.fx|torch\._functorch\.config|"
    r"torch\._decomp\.decompositions_for_rng\.PhiloxStateTracker\.|"
    r"torch\.(utils\._sympy|_guards|_subclasses|_higher_order_ops)|os\.environ\[_TORCHINDUCTOR|"
    r"torch\.(jit\._builtins|\w+\._lazy_seed|storage|ops\._dir)|torch\.distributed\.tensor\._ops\.\w+\[.*\.\w+$|"
    r"tensorflow\.(.*(_context_switches|_default_graph_stack)|python\.framework\.op_def_registry)|jax\._src\.array\.empty_abstract_mesh"
)
PLAIN = (str, bytes, int, float, complex, bool, type(None))


FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, property, staticmethod, type)


class Effect(NamedTuple):
    """What is changed."""

    backend: str  # or "all"
    places: tuple[str, ...]  # patterns of what the tool reports; none for what it cannot see
    what: str
    whom: str
    undone: str
    why: str
    source: tuple[str, str]  # a file of multiop, and a text in it


ALWAYS = "the end"
EFFECTS = (
    Effect(
        "all", ("numpy.dtype(*)", "numpy.sctypeDict[*"), "NumPy knows `bfloat16`, `float8_*`, `int4` by name",
        "whoever asks NumPy", ALWAYS, "NumPy has no such dtypes; JAX and TensorFlow import ml_dtypes too",
        ("_values/dtypes.py", "ml_dtypes"),
    ),
    Effect(
        "all", ("atexit",), "three functions that free memory at the end", "nobody", ALWAYS,
        "optree registers them when it is imported; its registry has multiop's classes in a namespace `multiop`",
        ("_values/tree.py", "optree"),
    ),
    Effect(
        "all", ("sys.meta_path[multiop.*",), "a finder in `sys.meta_path`",
        "importing Keras, JAX, TensorFlow, optree or DTensor", "that framework is imported",
        "settings made earlier: `enable_x64`, `MULTIOP_X64`; AutoGraph; "
        "DTensor before PyTorch 2.11",
        ("_loading/imports.py", "sys.meta_path.insert"),
    ),
    Effect(
        "all", ("keras.*GLOBAL_CUSTOM_*multiop*",), "names `multiop>op_...` in Keras's registry of what it saves",
        "nobody", ALWAYS, "Keras would save an op by a name of its own, as `relu`, and load its own function",
        ("_call/keras_symbols.py", "register_keras_serializable"),
    ),
    Effect(
        "all", (), "the markers `multiop_tier` and `cross`, the fixtures `multiop_backend`, `multiop_x64`, `measured`",
        "pytest, where multiop is installed", "`-p no:multiop.testing.plugin`",
        "a test runs once per backend; yours of the same name wins",
        ("testing/plugin.py", "multiop_tier"),
    ),
    Effect(
        "all", (), "no handler of pytest's on the logger `torch.__trace`", "pytest, where multiop is installed",
        "`-p no:multiop.testing.plugin`", "pytest would show dozens of empty lines in a failure",
        ("testing/plugin.py", "removeHandler"),
    ),
    Effect(
        "torch", ("torch.ops[multiop::*", "torch dispatch *[multiop::*", "torch.library._*[multiop*",
                  "torch._library.*multiop*", "torch.*[multiop::*", "torch.*[multiop.*"),
        "operators in the namespace `multiop`", "nobody", ALWAYS,
        "`torch.compile` and `torch.export` have to leave them whole",
        ("backends/torch/autodiff/transforms.py", 'Library("multiop"'),
    ),
    Effect(
        "torch", (), "before PyTorch 2.11: `redistribute_local_args` and the sharding rules of linear operations",
        "DTensors", ALWAYS, "PyTorch adds a number to each part "
        "([163193](https://github.com/pytorch/pytorch/issues/163193)), and changes a copy in place of the DTensor",
        ("backends/torch/_before_2_11.py", "dispatcher.redistribute_local_args ="),
    ),
    Effect(
        "torch", ("torch._functorch.eager_transforms.*", "torch._functorch.utils.*", "torch.autograd.function.*",
                  "torch._dynamo.eval_frame._stance", "torch.backends.mha.*", "torch.nn.utils.rnn.invert_permutation",
                  "torch.nn.modules.module._global_buffer_registration_hooks*", "warnings.filters",
                  "torch.initial_seed()", "torch.is_grad_enabled()", "torch.fx.proxy.TracerBase._filter_*"),
        "`torch.func`'s `grad`, `vjp`, `jvp`, and `custom_function_call`, `unwrap_dead_wrappers`; traces keep more "
        "frames; no fast path of attention, no warnings, a seed is set",
        "threads that differentiate, trace or draw numbers",
        "the port is read",
        "PyTorch has no hooks", ("porting/torch/_internals.py", "setattr(eager_transforms"),
    ),
    Effect(
        "torch", ("builtins.len", "math.sqrt", "torch.fx._symbolic_trace._wrapped_fns_to_patch[*[len]",
                  "torch.distributions.*_validate_args", "torch.*.sqrt.__module__",
                  "torch.backends.opt_einsum.enabled"),
        "`len` and `math.sqrt`; distributions do not check their values, and `einsum` looks for no path",
        "other threads that make distributions", "the port is read",
        "PyTorch makes a number of a tensor's length, or a size's root",
        ("porting/torch/written.py", 'replace(builtins, "len"'),
    ),
    Effect(
        "all", ("torch.finfo", "jax.numpy.finfo"), "`torch.finfo` and `jax.numpy.finfo`",
        "other threads' time", "the port is read", "a limit that a model asks for is one of the dtype at run time",
        ("porting/_printing/limits.py", "module.finfo = _Watched"),
    ),
    Effect(
        "jax", ("jax._src.*[custom_gradient*", "jax._src.*[held_jvp_call*", "jax._src.*[multiop.backends.jax.*"),
        "rules of multiop's own primitives and types", "nobody", ALWAYS,
        "a custom gradient is a primitive", ("backends/jax/autodiff/_primitives.py", "register_lowering"),
    ),
    Effect(
        "jax", (), "`jax_enable_x64`", "all of JAX", "`multiop.enable_x64(False)`", "it was asked for",
        ("_loading/settings.py", '"jax_enable_x64"'),
    ),
    Effect(
        "jax", ("builtins.len", "math.*", "jax._src.export.shape_poly._DimExpr.*", "jax._src.source_info_util.*"),
        "`len` and functions of `math`, and the methods of JAX's open sizes",
        "other threads that use open sizes", "the port is read",
        "JAX refuses an array's length, or a size's root",
        ("porting/_hosts.py", "undo.callback(setattr"),
    ),
    Effect(
        "tensorflow", (), "`TF_CPP_MIN_LOG_LEVEL`, unless it is set", "processes started by an import of TensorFlow",
        "TensorFlow is imported", "TensorFlow tells of the processor on each import",
        ("backends/tensorflow/__init__.py", "TF_CPP_MIN_LOG_LEVEL"),
    ),
    Effect(
        "tensorflow", ("tensorflow.python.autograph.core.config.CONVERSION_RULES*",),
        "AutoGraph leaves modules of the package `multiop` alone", "nobody", ALWAYS,
        "it would rewrite each op", ("_loading/built_in.py", "CONVERSION_RULES ="),
    ),
    Effect(
        "tensorflow", ("tensorflow.python.ops.resource_variable_ops.variable_accessed",
                       "tensorflow.python.eager.execute.execute"),
        "`variable_accessed` and `execute.execute`", "other threads' time",
        "no custom gradient runs", "variables that are not trainable, and operations, are reported to nobody else",
        ("backends/tensorflow/_internals.py", '_replace_meanwhile(execute, "execute"'),
    ),
    Effect(
        "tensorflow", ("tensorflow.python.eager.backprop.GradientTape._push_tape",
                       "tensorflow.python.eager.forwardprop.ForwardAccumulator._push_accumulator",
                       "tensorflow.python.ops.gradients_util.PossibleTapeGradientTypes"),
        "`GradientTape._push_tape`, `ForwardAccumulator._push_accumulator`, `PossibleTapeGradientTypes`",
        "other threads' time", "no `grad` or `vjp` runs",
        "a persistent tape multiplies zero by infinity ([60468](https://github.com/tensorflow/tensorflow/issues/60468))",
        ("backends/tensorflow/_internals.py", "GradientTape, \"_push_tape\""),
    ),
    Effect(
        "tensorflow", (), "the gradient function of eager tapes",
        "other threads' time", "no `gradients` looks for dependences",
        "two operands may share a gradient",
        ("backends/tensorflow/_internals.py", "TFE_Py_RegisterGradientFunction(apart)"),
    ),
    Effect(
        "tensorflow", ("tensorflow.python.framework.ops.*gradient_registry*Multiop*",),
        "names `Multiop...` in the registry of gradients", "nobody",
        "their graph is collected", "a node's gradient is found by its name",
        ("backends/tensorflow/_internals.py", "weakref.finalize(graph"),
    ),
    Effect(
        "tensorflow", (), "`ConcreteFunction._select_forward_and_backward_functions`",
        "calls of a `tf.function` that has a guard in it", ALWAYS,
        "a gradient that a custom gradient would drop is refused; only with such a graph",
        ("backends/tensorflow/_internals.py", "_select_forward_and_backward_functions = select_checked"),
    ),
    Effect(
        "tensorflow", (), "in TensorFlow 2.18: how `tf.vectorized_map` converts `MatMul`", "its users", ALWAYS,
        "it conjugates transposed matrices ([52148](https://github.com/tensorflow/tensorflow/issues/52148))",
        ("backends/tensorflow/_internals.py", 'converters["MatMul"] ='),
    ),
    Effect(
        "tensorflow", (), "operators, methods, indexing and the array API namespace of tensors",
        "all of TensorFlow", ALWAYS,
        "it was asked for: `enable_tensorflow_numpy`",
        ("_loading/tensorflow_operators.py", "setattr(cls, name, operator)"),
    ),
    Effect(
        "tensorflow", ("keras.*.__call__", "keras.*.call", "random"),
        "`__call__` of the layers' classes of a model; Keras draws its first seed from Python's `random`",
        "other threads that call such layers", "the port is read", "a layer's calls are told apart",
        ("porting/tensorflow/reader.py", 'type.__setattr__(owner, "__call__"'),
    ),
    Effect(
        "tensorflow", ("tensorflow.python.framework.tensor_shape.TensorShape.*",),
        "methods and comparisons of `tf.TensorShape`", "other threads that read shapes", "the port is read",
        "what a model decides by an open size is known", ("porting/tensorflow/sizes.py", "kind = tf.TensorShape"),
    ),
)  # fmt: skip


def native(backend: str, inside: Callable[[], None] = lambda: None) -> None:
    """Use a framework as its own users do: an operation, a custom gradient, a tape, a compiled function."""
    use: dict[str, Callable[[Callable[[], None]], None]] = {
        "torch": _native_torch, "jax": _native_jax, "tensorflow": _native_tensorflow, "numpy": _native_numpy,
    }  # fmt: skip
    use[backend](inside)


def _native_torch(inside: Callable[[], None]) -> None:
    import torch

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            inside()
            return torch.tanh(x)

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, upstream: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * upstream

    x = torch.ones(3, requires_grad=True)
    torch.autograd.grad(Square.apply(torch.exp(x)).sum(), x)
    torch.func.jvp(torch.func.vmap(torch.sin), (torch.ones(3),), (torch.ones(3),))
    torch.compile(lambda x: torch.sin(x) + 1)(torch.ones(3))
    torch.fx.experimental.proxy_tensor.make_fx(torch.sin)(torch.ones(3))
    torch.export.export(Model(), (torch.ones(1, 3),), strict=False)


def _native_jax(_: Callable[[], None]) -> None:
    import jax

    @jax.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, upstream: (2 * x * upstream,))
    x = jax.numpy.ones(3)
    jax.jit(jax.grad(lambda x: jax.numpy.sum(square(jax.numpy.exp(x)))))(x)
    jax.jvp(jax.vmap(jax.numpy.sin), (x,), (x,))
    jax.make_jaxpr(jax.numpy.sin)(x)


def _native_tensorflow(inside: Callable[[], None]) -> None:
    import tensorflow as tf

    def traced(x: Any) -> Any:
        inside()
        return square(tf.exp(x)) + 1

    @tf.custom_gradient
    def square(x: Any) -> Any:
        return x * x, lambda upstream: 2 * x * upstream

    x = tf.Variable(tf.ones(3))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(square(tf.exp(x)))
    tape.gradient(y, x)
    f = tf.function(traced, autograph=False)
    with tf.GradientTape() as tape:
        y = f(x)
    tape.gradient(y, x)
    with tf.autodiff.ForwardAccumulator(x, tf.ones(3)) as accumulator:
        y = tf.sin(x)
    accumulator.jvp(y)
    tf.vectorized_map(tf.sin, tf.ones((2, 3)))


def _native_numpy(_: Callable[[], None]) -> None:
    import numpy as np

    np.exp(np.ones(3))


def use_multiop(backend: str, inside: Callable[[], None] = lambda: None) -> None:
    """Load multiop on a backend; run an op, a custom gradient, a tape, a jit, and a port that calls `inside`."""
    import multiop

    multiop.set_backend(backend)

    @multiop.op_custom_gradient
    def square(x: Any) -> Any:
        return x * x, lambda upstream: 2 * x * upstream

    x = multiop.op_convert_to_tensor([1.0, 2.0, 3.0])
    multiop.op_exp(x)

    def loss(x: Any) -> Any:
        return multiop.op_sum(square(multiop.op_sin(x)))

    multiop.grad(loss)(x)
    multiop.jvp(loss, (x,), (x,))
    with multiop.GradientTape() as tape:
        watched = tape.watch(x)
        y = loss(watched)
    tape.gradient(y, watched if backend == "numpy" else x)
    multiop.jit(multiop.grad(loss))(x)
    multiop.vmap(square)(x)
    if backend != "numpy":
        _port(backend, inside)


def _port(backend: str, inside: Callable[[], None]) -> None:
    import multiop
    from multiop import porting

    x = multiop.op_ones((2, 3))
    if backend == "torch":
        import torch

        class Model(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                inside()
                return torch.tanh(x)

        model: Any = Model()
    elif backend == "jax":
        import jax

        def model(x: Any) -> Any:
            inside()
            return jax.numpy.tanh(x)
    else:
        import keras

        class Layer(keras.layers.Layer):
            def call(self, x: Any) -> Any:
                inside()
                return keras.ops.tanh(x)

        given = keras.Input((3,))
        model = keras.Model(given, Layer()(given))
    porting.trace(model, x)


State = dict[str, Any]


def state(backend: str) -> State:
    """Return all that may be changed, by place."""
    gc.collect()
    found: State = {}
    seen: set[int] = set()
    owned = PACKAGES[backend] + EVERYWHERE
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] in owned and isinstance(module, types.ModuleType):
            for attribute, value in list(dict.items(vars(module))):
                if not isinstance(value, types.ModuleType) and not attribute.startswith("__"):
                    found[f"{name}.{attribute}"] = value
                    _look_into(found, seen, f"{name}.{attribute}", value, name, owned, 3)
    return found | _process() | _inner(backend)


def _look_into(found: State, seen: set[int], place: str, value: Any, home: str, owned: Any, depth: int) -> None:
    """Add what a value holds: the attributes of a class and of an object of the framework, the items of a container."""
    if isinstance(value, PLAIN) or id(value) in seen or not depth or type(value).__name__.startswith("OpOverload"):
        return
    if isinstance(value, type):
        if value.__module__ != home:
            return
        parts = {f"{place}.{key}": part for key, part in list(vars(value).items())}
    elif isinstance(value, dict):
        parts = {f"{place}[{_label(key)}]": part for key, part in list(dict.items(value))}
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = {f"{place}[{_label(part)}]": part for part in list(value)}
    elif isinstance(value, types.FunctionType):
        parts = {f"{place}.{key}": part for key, part in list(vars(value).items()) if key != "__wrapped__"}
    elif type(value).__module__.partition(".")[0] in owned:
        parts = {f"{place}.{key}": part for key, part in _attributes(value)}
    else:
        return
    seen.add(id(value))
    for inner, part in parts.items():
        if isinstance(part, types.ModuleType) or "<module " in inner:
            continue
        found[inner] = part
        _look_into(found, seen, inner, part, home, owned, depth - 1)


def _attributes(value: Any) -> list[tuple[str, Any]]:
    """Return the attributes of an object, in its slots too: TensorFlow's registries have nothing else."""
    found = getattr(value, "__dict__", None)
    parts = dict(found) if isinstance(found, dict) else {}
    for cls in type(value).__mro__:
        for name, member in vars(cls).items():
            if isinstance(member, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):
                    parts[name] = member.__get__(value)
    return list(parts.items())


def _label(key: Any) -> str:
    """Return a short text of a key, without the addresses of objects."""
    if isinstance(key, (type, types.FunctionType)):
        return f"{key.__module__}.{key.__qualname__}"
    try:
        text = str(key)
    except Exception:
        text = type(key).__name__
    return re.sub(r"0x[0-9a-f]+", "#", text)[:120].replace("\n", " ")


def _process() -> State:
    """Return what belongs to the process: Python's own."""
    found: State = {f"os.environ[{name}]": text for name, text in os.environ.items()}
    found |= {f"warnings.filters[{_label(each)}]": None for each in warnings.filters}
    found |= {f"sys.meta_path[{_label(each)}]": None for each in sys.meta_path}
    found |= {f"sys.path_hooks[{_label(each)}]": None for each in sys.path_hooks}
    found |= {f"sys.path[{each}]": None for each in sys.path}
    found |= {f"sys.{name}": getattr(sys, name) for name in ("excepthook", "unraisablehook", "displayhook")}
    found |= {"sys.gettrace()": sys.gettrace(), "sys.getprofile()": sys.getprofile()}
    found |= {"sys.getrecursionlimit()": sys.getrecursionlimit(), "atexit": atexit._ncallbacks()}
    found |= {"threading.gettrace()": threading.gettrace(), "threading.excepthook": threading.excepthook}
    found |= {f"threading[{re.sub('[0-9]+', '#', each.name)}]": None for each in threading.enumerate()}
    found |= {f"gc.callbacks[{_label(each)}]": None for each in gc.callbacks} | {"gc.threshold": gc.get_threshold()}
    found |= {f"signal[{each.name}]": signal.getsignal(each) for each in signal.Signals}
    aliases = [(name, module) for name, module in sys.modules.items() if isinstance(module, types.ModuleType)]
    found |= {f"sys.modules[{n}]": m for n, m in aliases if not n.startswith("multiop") and n != m.__name__}
    root = logging.getLogger()
    loggers = {"root": root} | {n: x for n, x in root.manager.loggerDict.items() if isinstance(x, logging.Logger)}
    for name, logger in loggers.items():
        if not name.startswith("multiop"):
            found |= {f"logging[{name}].level": logger.level, f"logging[{name}].propagate": logger.propagate}
            found |= {f"logging[{name}].handlers[{_label(each)}]": None for each in logger.handlers}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found |= {"numpy.geterr()": json.dumps(numpy.geterr()), "numpy.random": str(numpy.random.get_state()[1][:3])}
        found["numpy.printoptions"] = str(numpy.get_printoptions())
        found |= {f"numpy.dtype({name})": None for name in ("bfloat16", "float8_e5m2", "int4") if _is_dtype(name)}
    found["random"] = hash(__import__("random").getstate())
    return found


def _is_dtype(name: str) -> bool:
    with contextlib.suppress(TypeError):
        sys.modules["numpy"].dtype(name)
        return True
    return False


def _inner(backend: str) -> State:
    """Return what a framework keeps outside of Python's objects."""
    if backend == "torch":
        import torch

        found: State = {f"torch.ops[{name}]": None for name in torch._C._dispatch_get_all_op_names()}
        for key in ("CPU", "CUDA", "CompositeExplicitAutograd", "Autograd", "AutogradCPU", "Meta", "FuncTorchBatched"):
            with contextlib.suppress(Exception):
                every = torch._C._dispatch_get_registrations_for_dispatch_key(key)
                found |= {f"torch dispatch {key}[{name}]": None for name in every}
        asked = (
            "get_default_dtype", "is_grad_enabled", "is_inference_mode_enabled", "get_num_threads",
            "get_num_interop_threads", "are_deterministic_algorithms_enabled", "is_anomaly_enabled",
            "get_float32_matmul_precision", "get_default_device", "is_warn_always_enabled", "initial_seed",
            "is_deterministic_algorithms_warn_only_enabled",
        )  # fmt: skip
        found |= {f"torch.{name}()": str(getattr(torch, name)()) for name in asked}
        for name in ("_dynamo", "_inductor", "_functorch"):
            config = sys.modules.get(f"torch.{name}.config")
            if config is not None:
                found |= {f"torch.{name}.config[{key}]": repr(v) for key, v in config.get_config_copy().items()}
        return found
    if backend == "jax":
        import jax

        return {f"jax.config[{name}]": repr(value) for name, value in jax.config.values.items()}
    if backend == "tensorflow":
        import tensorflow as tf
        from tensorflow.python.eager import context

        ctx = context.context()
        asked = (
            "executing_eagerly", "soft_device_placement", "log_device_placement", "run_eager_op_as_function",
            "enable_mlir_bridge", "device_policy", "optimizer_jit", "intra_op_parallelism_threads",
            "inter_op_parallelism_threads", "execution_mode",
        )  # fmt: skip
        values = {name: getattr(ctx, name, None) for name in asked}
        found = {f"tf context.{name}": repr(v() if callable(v) else v) for name, v in values.items()}
        found["tf context.op_callbacks"] = len(ctx.op_callbacks)
        found["tf.config.functions_run_eagerly()"] = tf.config.functions_run_eagerly()
        return found
    return {}


def changes(before: State, after: State) -> dict[str, str]:
    """Return the places that differ: added, gone or replaced; what a framework notes of what it ran is left out."""
    found = dict.fromkeys(after.keys() - before.keys(), "added") | dict.fromkeys(before.keys() - after.keys(), "gone")
    for place, value in after.items():
        if place in before and not _is_same(before[place], value):
            found[place] = "function replaced" if isinstance(before[place], FUNCTIONS) else "replaced"
    tops: dict[str, str] = {}
    for place in sorted(found):  # what an object holds comes after it
        if not any(place.startswith((f"{top}.", f"{top}[")) for top in list(tops)[-1:]):
            tops[place] = found[place]
    return {p: how for p, how in tops.items() if how == "function replaced" or not NOTES.match(p)}


def _is_same(x: Any, y: Any) -> bool:
    if x is y:
        return True
    return type(x) is type(y) and isinstance(x, PLAIN) and (x == y or x != x)


def _without_numbers(place: str) -> str:
    return re.sub(r"\d+", "#", place)


def measure(backend: str, planted: Callable[[], None] = lambda: None, modules: str = "") -> dict[str, dict[str, str]]:
    """Return what has changed `after` the use of multiop, and `during` a port, in this process."""
    importlib.import_module(backend)
    for name in filter(None, modules.split(",")):
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    for _ in range(2):
        native(backend)
    first = state(backend)
    native(backend)
    before = state(backend)
    own = set(map(_without_numbers, changes(first, before)))
    inside: dict[str, str] = {}
    native(backend, lambda: inside.update(changes(before, state(backend))))
    during: dict[str, str] = {}
    use_multiop(backend, lambda: during.update(changes(before, state(backend))))
    planted()
    after = changes(before, state(backend))
    found = {"after": after, "during": {p: how for p, how in during.items() if p not in after and p not in inside}}
    return {
        when: {p: how for p, how in sorted(places.items()) if _without_numbers(p) not in own}
        for when, places in found.items()
    }


def unknown(found: dict[str, dict[str, str]], backend: str) -> list[str]:
    """Return the changes that no effect stands for."""
    patterns = [place for effect in EFFECTS if effect.backend in ("all", backend) for place in effect.places]
    regular = [re.compile(fnmatch.translate(place.replace("[", "[[]"))) for place in patterns]
    return [
        f"{when}: {how} {place}"
        for when, places in found.items()
        for place, how in places.items()
        if not any(pattern.match(place) for pattern in regular)
    ]


def measured_apart(backend: str) -> list[str]:
    """Measure in two processes: the first tells which modules are imported, so that the second has them before."""
    command = [sys.executable, "-W", "ignore", __file__, "--backend", backend]
    environment = os.environ | {"MULTIOP_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu"}
    environment["KERAS_BACKEND"] = "tensorflow"
    done = subprocess.run([*command, "--modules"], capture_output=True, text=True, env=environment, check=True)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, input=done.stdout)
    return list(json.loads(done.stdout.splitlines()[-1]))


def table() -> list[str]:
    """Return the lines of the table."""
    titles = {"all": "all", "torch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow", "numpy": "NumPy"}
    lines = ["| on | what | for whom | until | why | in `multiop/` |", "|---|---|---|---|---|---|"]
    for effect in EFFECTS:
        cells = (titles[effect.backend], effect.what, effect.whom, effect.undone, effect.why, f"`{effect.source[0]}`")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def page() -> str:
    """Return the page with the table as it is now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    return f"{before}{START}\n\n" + "\n".join(table()) + f"\n\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Measure; write the page, or check it."""
    if "--backend" in sys.argv:
        backend = sys.argv[sys.argv.index("--backend") + 1]
        if "--modules" in sys.argv:
            native(backend)
            use_multiop(backend)
            print(",".join(name for name in sys.modules if name.partition(".")[0] in PACKAGES[backend]))
        else:
            modules = sys.stdin.read().splitlines()[-1]
            print(json.dumps(unknown(measure(backend, modules=modules), backend)))
        return
    found = [f"{b}: {place}" for b in PACKAGES if importlib.util.find_spec(b) for place in measured_apart(b)]
    if found:
        raise SystemExit("changed, and not in tools/effects.py:\n" + "\n".join(found))
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8", newline="\n")
    elif PAGE.read_text(encoding="utf-8") != page():
        raise SystemExit("docs/limits.md is not current: run python tools/effects.py")


if __name__ == "__main__":
    main()
