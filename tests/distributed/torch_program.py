"""DTensors and wrapped modules in two processes against one; prints what differs, a line each, and how many agree."""

import os
import sys
import warnings

warnings.simplefilter("ignore")

import torch
import torch.distributed as dist
from compared import CONSTRUCTS, Comparison, loss, summed

import multiop as mo
from multiop import ops

K = torch.tensor([[[0.5]], [[2.0]], [[-1.0]]])  # of a convolution
X, W = torch.arange(8.0) / 4, torch.tensor(1.5)
OPS = {
    "add": lambda x: ops.add(x, 1.0),
    "argmax": ops.argmax,
    "clip": lambda x: ops.clip(x, 0.5, 1.0),
    "concatenate": lambda x: ops.concatenate([x, x]),
    "cumsum": ops.cumsum,
    "flip": ops.flip,
    "gelu": ops.gelu,
    "get_item": lambda x: ops.get_item(x, [1, 3]),
    "host array": lambda x: ops.add(x, X.numpy()),
    "layer_normalization": ops.layer_normalization,
    "logsumexp": ops.logsumexp,
    "matmul": lambda x: ops.matmul(x, x),
    "max": ops.max,
    "maximum": lambda x: ops.maximum(x, 1.0),
    "mean": ops.mean,
    "min": ops.min,
    "norm": ops.norm,
    "one_hot": lambda x: ops.one_hot(ops.cast(x, "int32"), 4),
    "pad": lambda x: ops.pad(x, (1, 1)),
    "power": lambda x: ops.power(x, 2.0),
    "relu": ops.relu,
    "reshape": lambda x: ops.reshape(x, (4, 2)),
    "softmax": ops.softmax,
    "sort": ops.sort,
    "std": ops.std,
    "take": lambda x: ops.take(x, [1, 3], 0),
    "where": lambda x: ops.where(x > 1, x, 0.0),
}


OF_PARTS = {  # what does not distribute over the parts of a sum
    "sub": lambda x: ops.subtract(x, 2.0),
    "multiply": lambda x: ops.multiply(x, 3.0),
    "number": lambda x: x + 2.0,
    "square": lambda x: ops.power(x, 2.0),
    "cube": lambda x: ops.power(x, 3.0),
    "cast": lambda x: ops.cast(x, "int32"),
    "cast to bool": lambda x: ops.cast(x - 1.0, "bool"),
    "count_nonzero": ops.count_nonzero,
    "prod": lambda x: ops.prod(x + 1.0),
    "prod along an axis": lambda x: ops.prod(x + 1.0, 0),
    "amax": lambda x: ops.amax(x, 0),
    "view": lambda x: ops.view(x, "int32"),
    "ldexp": lambda x: ops.ldexp(x, ops.cast(x, "int32")),
    "sparse_sigmoid": ops.sparse_sigmoid,
    "conv": lambda x: ops.conv(ops.reshape(x, (1, 8, 1)), K),
    "conv of a batch": lambda x: ops.conv(ops.reshape(x, (2, 4, 1)), K, padding="same"),
    "conv with itself": lambda x: ops.conv(
        ops.reshape(x, (1, 8, 1)), ops.reshape(x, (8, 1, 1)), bias=ops.reshape(ops.sum(x), (1,))
    ),
    "conv_transpose": lambda x: ops.conv_transpose(ops.reshape(x, (1, 8, 1)), ops.reshape(x, (8, 1, 1))),
    "correlate": lambda x: ops.correlate(x, x),
    "sum of norms": lambda x: ops.norm(x) + ops.norm(x - 3.0),
    "norm and a number": lambda x: ops.add(ops.norm(x), 1.0),
    "sum of products": lambda x: ops.prod(x + 1.0) + ops.prod(x + 2.0),
    "sum of maxima": lambda x: ops.max(x) + ops.max(-x),
    "mean and a number": lambda x: ops.add(ops.mean(x), 1.0),
}


def plain(x, w):
    return (torch.sin(x) * w).sum()


def backward(function, x, w):
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    function(x, w).backward()
    return x.grad, w.grad


def on_a_tape(x, w):
    with mo.GradientTape() as tape:
        x, w = tape.watch(x), tape.watch(w)
        y = loss(x, w)
    return tape.gradient(y, [x, w])


def whole(y):
    return y.full_tensor() if hasattr(y, "full_tensor") else y


def right_or_refused(op, x, plain):
    try:
        return op(x)
    except (mo.errors.MultiopError, RuntimeError):  # of PyTorch's own operations
        return op(plain)


def main(rank, size, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
    from torch.distributed.tensor.debug import CommDebugMode

    mesh, comparison = init_device_mesh("cpu", (size,)), Comparison(whole, is_told=rank == 0)
    check = comparison.check

    def refused(name, function, kind):
        def outcome():
            try:
                function()
            except kind:
                return torch.ones(())
            return torch.zeros(())

        check(name, outcome, torch.ones(()))

    first = torch.func.grad(plain, (0, 1))(X, W)
    for place in (Shard(0), Replicate()):
        x, w = distribute_tensor(X.clone(), mesh, [place]), distribute_tensor(W.clone(), mesh, [Replicate()])
        check(f"{place} backward", lambda: backward(loss, x, w), first)
        check(f"{place} grad", lambda: mo.grad(loss, (0, 1))(x, w), first)
        check(f"{place} tape", lambda: on_a_tape(x, w), first)
        check(f"{place} second order", lambda: mo.hvp(lambda x: ops.sum(ops.sin(x)), (x,), (x * 0 + 1,)), -torch.sin(X))
        refused(f"{place} forward mode", lambda: mo.jvp(loss, (x, w), (x, w)), mo.errors.UnsupportedError)
        refused(f"{place} beside a plain tensor", lambda: ops.add(x, X), mo.errors.ArgumentError)
        careless = mo.op_custom_gradient(lambda x: (x * 2, lambda u: torch.ones(8)))
        refused(
            f"{place} plain gradient",
            lambda: backward(lambda x, w: careless(x).sum(), x, w),
            mo.errors.GradientRuleError,
        )
        counts = []
        for function in (loss, plain):
            with CommDebugMode() as counted:
                backward(function, x, w)
            counts.append(counted.get_total_counts())
        check(f"{place} collectives", lambda: torch.tensor(counts[0]), torch.tensor(counts[1]))
        for name, construct in CONSTRUCTS.items():
            check(f"{place} {name}", lambda: backward(summed(construct), x, w), backward(summed(construct), X, W))
        for name, op in OPS.items():
            check(f"{place} {name}", lambda: op(x), op(X))
            if name not in ("argmax", "one_hot"):
                check(
                    f"{place} gradient of {name}",
                    lambda: mo.grad(lambda z: ops.sum(ops.sin(op(z))))(x),
                    mo.grad(lambda z: ops.sum(ops.sin(op(z))))(X),
                )
    parts = [X * torch.sin(9 * X), X - X * torch.sin(9 * X)]
    pending = DTensor.from_local(parts[rank], mesh, [Partial()])
    sharded = distribute_tensor(X.clone(), mesh, [Shard(0)])
    for kind, x in {"pending": pending, "sharded": sharded}.items():
        for name, op in {**OPS, **OF_PARTS}.items():
            check(f"{kind} {name}", lambda: right_or_refused(op, x, X), op(X))
    for name, change in {"+=": lambda x: x.add_(2.0), "-=": lambda x: x.sub_(2.0), "*=": lambda x: x.mul_(3.0)}.items():
        check(f"pending {name}", lambda: right_or_refused(change, pending.clone(), X.clone()), change(X.clone()))
    comparison.end()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(main, (2, int(sys.argv[1])), 2)
