"""What the programs share: functions with custom gradients, and how answers are compared."""

import numpy as np

import multiop as mo
from multiop import ops
from multiop._values import tree as _tree


@mo.op_custom_gradient
def scaled_sine(x, w):
    return ops.sin(x) * w, lambda u: (u * ops.cos(x) * w, ops.sum(u * ops.sin(x)))


def loss(x, w):
    return ops.sum(scaled_sine(x, w))


@mo.op_custom_gradient
def straight(x):
    return ops.round(x), lambda u: u


@mo.op_custom_gradient
def nested(x, w):
    y, pull = mo.vjp(scaled_sine, x, w)
    return straight(y), lambda u: [2 * g for g in pull(u)]


@mo.op_custom_gradient
def tree(xs):
    x, w = xs["x"], xs["w"]
    return {"sine": ops.sin(x), "scaled": x * w}, lambda u: {
        "x": u["sine"] * ops.cos(x) + u["scaled"] * w,
        "w": ops.sum(u["scaled"] * x),
    }


def of_tree(x, w):
    y = tree({"x": x, "w": w})
    return y["sine"] * y["scaled"]


def closes_over(x, w):
    @mo.op_custom_gradient
    def scaled(x):
        def rule(u, variables):
            (w,) = variables
            return u * w, [3 * ops.sum(u * x)]

        return x * w, rule

    return scaled(x)


CONSTRUCTS = {
    "a rule that is not the derivative": lambda x, w: straight(x * w),
    "a rule inside a rule": nested,
    "a rule of trees": of_tree,
    "a rule with variables": closes_over,
    "an attached gradient": lambda x, w: mo.op_attach_gradient(ops.round(x), ops.cos(x), x) * w,
    "a stopped gradient": lambda x, w: mo.op_stop_gradient(ops.exp(x)) * x * w,
    "a checkpoint": mo.checkpoint(scaled_sine),
}  # name -> function of `x`, which may be sharded, and the scalar `w`


def summed(function):
    return lambda x, w: ops.sum(ops.sin(function(x, w)))


class Comparison:
    """Print a line for each answer that differs, and in the end how many agree."""

    def __init__(self, whole=lambda y: y, is_told=True):
        self.whole, self.is_told, self.agree = whole, is_told, 0

    def tell(self, line):
        if self.is_told:
            print(line, flush=True)

    def check(self, name, function, wanted):
        try:
            found, wanted = self.leaves(function()), self.leaves(wanted)
            right = all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in zip(found, wanted, strict=True))
            self.agree += right
            if not right:
                self.tell(f"differs: {name}: {found} for {wanted}")
        except Exception as error:
            self.tell(f"raises: {name}: {type(error).__name__}: {str(error).splitlines()[0]}")

    def leaves(self, tree):
        return [mo.op_convert_to_numpy(self.whole(y)) for y in _tree.leaves(tree)]

    def end(self):
        self.tell(f"agree: {self.agree}")
