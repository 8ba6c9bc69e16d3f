"""How TensorFlow's tensors are handed to another framework, and taken from one."""

from __future__ import annotations

import sys

import numpy as np
import tensorflow as tf

from multiop import config, errors, extend, op_convert_to_numpy
from multiop.porting._spec import Spec, closes_over, is_written  # noqa: F401

orders = None  # how often its results can be differentiated: as often as one likes


def share(x):
    """Return `x` as an array with `__dlpack__` on the host."""
    _refuse_float8(x)
    if x.device.endswith("CPU:0"):
        return x
    with tf.device("CPU:0"):
        return tf.identity(x)


def adopt(array):
    """Return an array with `__dlpack__` as TensorFlow's, without a copy if that is possible."""
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return extend.load("tensorflow").convert(array)
    _refuse_float8(array)
    address = array.data_ptr() if hasattr(array, "data_ptr") else array.unsafe_buffer_pointer()
    if address % 64:  # TensorFlow's kernels abort the process there
        array = array.clone() if hasattr(array, "clone") else array.copy()
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def _refuse_float8(x):
    if "float8" in str(x.dtype):
        raise errors.DTypeError("bridge: TensorFlow hands over no float8 by DLPack; cast it inside the function")


def is_concrete(xs):
    """Say whether all of `xs` have values."""
    return tf.executing_eagerly() and all(hasattr(x, "numpy") for x in xs)


def recording():
    """Record which variables are read, for `depends_on_more`."""
    return tf.GradientTape()


def depends_on_more(tape, xs, ys):
    """Say whether `ys` have a gradient in a variable: only those of `xs` are handed over."""
    variables = tape.watched_variables()
    targets = [y for y in ys if y.dtype.is_floating or y.dtype.is_complex]
    return bool(variables and targets) and any(slope is not None for slope in tape.gradient(targets, variables))


def callback(called, xs):
    """Return the results of a foreign function in a graph: a call of the host that the compiler does not look into."""
    if any(x.shape.rank is None for x in xs):
        raise errors.UnsupportedError(
            "bridge: a tensor of unknown rank cannot cross; say what it is with tf.ensure_shape"
        )
    specs = called.specs([Spec(tuple(x.shape), x.dtype.name) for x in xs])
    run = tf.autograph.experimental.do_not_convert(lambda *arrays: called.value(arrays, op_convert_to_numpy))
    name = None if called.linear_from is None else f"{extend.LINEAR_FROM}{called.linear_from}"
    ys = tf.numpy_function(run, xs, [tf.as_dtype(spec.dtype) for spec in specs], stateful=False, name=name)
    return [tf.ensure_shape(y, spec.shape) for y, spec in zip(ys, specs, strict=True)]


def infer(called, specs):
    """Return the specs of the results of a function of TensorFlow, which is traced."""
    with config.use_backend("tensorflow"):
        traced = tf.function(lambda *xs: called.function(list(xs)), autograph=False)
        results = traced.get_concrete_function(*[tf.TensorSpec(spec.shape, spec.dtype) for spec in specs])
    return [Spec(tuple(y.shape), y.dtype.name) for y in results.structured_outputs]


def functional(model):
    """Return a model as a function of its parameters and inputs, and its parameters; `None` for what is a function."""
    keras = sys.modules.get("keras")
    if keras is None or not isinstance(model, keras.Layer) or keras.config.backend() != "tensorflow":
        return None
    trained = list(model.trainable_variables)
    names = [variable.path for variable in trained]

    def call(params, *inputs):
        fixed = [variable.value for variable in model.non_trainable_variables]
        return model.stateless_call([params[name] for name in names], fixed, *inputs)[0]

    call.__qualname__ = call.__name__ = type(model).__name__
    return call, {name: np.array(variable) for name, variable in zip(names, trained, strict=True)}
