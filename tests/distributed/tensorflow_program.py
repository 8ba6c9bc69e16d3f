"""Constructs and ops under MirroredStrategy on two CPUs; prints what differs, a line each, and how many agree."""

import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

from compared import CONSTRUCTS, Comparison, scaled_sine, summed

import multiop as mo
from multiop import ops

mo.set_backend("tensorflow")
X, W = np.arange(8, dtype=np.float32) / 4, np.float32(1.5)
OPS = (
    "relu",
    "softmax",
    "logsumexp",
    "max",
    "mean",
    "std",
    "cumsum",
    "sort",
    "gelu",
    "layer_normalization",
    "norm",
    "flip",
)
comparison = Comparison()
check = comparison.check


strategy = tf.distribute.MirroredStrategy([device.name for device in tf.config.list_logical_devices("CPU")])
with strategy.scope():
    weight = tf.Variable(W)


@mo.op_custom_gradient
def with_variable(x):
    def rule(u, variables):
        return u * ops.cos(x) * variables[0], [ops.sum(u * ops.sin(x))]

    return ops.sin(x) * weight, rule


def part():
    k = tf.distribute.get_replica_context().replica_id_in_sync_group
    return ops.take(tf.constant(X.reshape(2, 4)), k, 0)


def total(values):
    return strategy.reduce("SUM", values, axis=None)


def through(function):
    def step():
        with mo.GradientTape() as tape:
            x = tape.watch(part())
            y = ops.sum(function(x))
        gx, gw = tape.gradient(y, [x, weight])
        return y, ops.sum(gx), gw

    return step


def replicated(function, *arguments):
    def run():  # a name of its own: AutoGraph mistakes lambdas for each other
        return tf.nest.map_structure(total, strategy.run(function, arguments))

    return run


def second_order():
    return ops.sum(mo.hvp(lambda x: ops.sum(scaled_sine(x, W)), (part(),), (part(),)))


def forward_mode():
    return mo.jvp(lambda x: ops.sum(scaled_sine(x, W)), (part(),), (part(),))[1]


def of_construct(construct):
    def step():
        return [ops.sum(g) for g in mo.grad(summed(construct), (0, 1))(part(), W)]

    return step


def of_op(op):
    return lambda: ops.sum(ops.sin(getattr(ops, op)(part())))


sine, cosine = np.sum(np.sin(X)), np.sum(np.cos(X))
for name, way in (("eager", lambda f: f), ("compiled", tf.function)):
    check(f"{name}, argument", way(replicated(through(lambda x: scaled_sine(x, weight)))), (W * sine, W * cosine, sine))
    check(f"{name}, variable", way(replicated(through(with_variable))), (W * sine, W * cosine, sine))
    check(f"{name}, second order", way(replicated(second_order)), np.sum(-np.sin(X) * W * X))
    check(f"{name}, forward mode", way(replicated(forward_mode)), np.sum(np.cos(X) * W * X))
    for label, construct in CONSTRUCTS.items():
        if label == "a rule with variables":
            continue  # they are tf.Variables here, as `weight` is
        halves = [mo.grad(summed(construct), (0, 1))(half, W) for half in X.reshape(2, 4)]
        wanted = [sum(float(ops.sum(half[k])) for half in halves) for k in range(2)]
        check(f"{name}, {label}", way(replicated(of_construct(construct))), wanted)
    for op in OPS:
        wanted = sum(float(ops.sum(ops.sin(getattr(ops, op)(half)))) for half in X.reshape(2, 4))
        check(f"{name}, {op}", way(replicated(of_op(op))), wanted)
comparison.end()
