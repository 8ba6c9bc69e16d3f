"""How PyTorch's tensors are handed to another framework, and taken from one."""

import itertools
import weakref

import numpy as np
import torch

from multiop import config, errors, extend
from multiop.backends.torch import devices
from multiop.porting import _weights
from multiop.porting._spec import Spec, recording  # noqa: F401
from multiop.porting.torch._internals import FakeTensorMode, version

_called: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # handle -> the foreign function of a graph's node
_handles = itertools.count()

orders = None  # how often its results can be differentiated: as often as one likes


def share(x):
    """Return `x` as an array with `__dlpack__` on the host."""
    if x.layout is not torch.strided:
        raise errors.ArgumentTypeError(f"bridge: a tensor of layout {x.layout} cannot cross; take its to_dense()")
    return x.detach().cpu().resolve_conj().resolve_neg().contiguous()


def adopt(array):
    """Return an array with `__dlpack__` as PyTorch's, without a copy if that is possible."""
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return extend.load("torch").convert(array)
    return torch.from_dlpack(array)


def is_concrete(xs):
    """Say whether all of `xs` have values that this thread may read now."""
    return all(devices.is_concrete(x) for x in xs)


def is_written(x):
    """Say whether somebody changed `x` in place."""
    return version(x) > 0


def closes_over(called, specs):
    """Say whether a function depends on a parameter that it closes over and that asks for a gradient by itself."""
    try:
        return any(y.requires_grad for y in _without_values(called, specs))
    except Exception:  # it needs values: what its results depend on is asked when it is called with some
        return False


def depends_on_more(tape, xs, ys):
    """Say whether `ys` have a gradient in anything but `xs`."""
    own = {id(x) for x in xs}
    queue, seen = [], {x.grad_fn for x in xs}
    for y in ys:
        if y.requires_grad and y.grad_fn is None and id(y) not in own:
            return True
        queue.append(y.grad_fn)
    while queue:
        node = queue.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) not in own:
            return True
        queue += [function for function, _ in node.next_functions]
    return False


def break_graph(function):
    """Return `function` as one that torch.compile does not trace but calls: it breaks the graph there."""
    return torch.compiler.disable(function)


def callback(called, xs):
    """Return the results of a foreign function on what is traced: one operation that no compiler looks into."""
    handle = getattr(called, "handle", None)
    if handle is None:
        handle = called.handle = next(_handles)
        _called[handle] = called
    return torch.ops.multiop.foreign(handle, list(xs), called.linear_from)


def _foreign(handle, xs, linear_from=None):
    given = [share(x) for x in xs]
    ys = [adopt(y) for y in _called[handle].value(given)]
    pointers = {x.data_ptr() for x in given}
    return [y.clone() if y.data_ptr() in pointers else y for y in ys]  # a result must not share an argument's memory


def _foreign_specs(handle, xs, linear_from=None):
    backend = extend.load("torch")
    specs = _called[handle].specs([Spec(tuple(int(n) for n in x.shape), backend.dtype_name(x)) for x in xs])
    return [torch.empty(spec.shape, dtype=getattr(torch, spec.dtype)) for spec in specs]


def _foreign_mapped(info, in_dims, handle, xs, linear_from=None):
    pairs = list(zip(xs, in_dims[1], strict=True))
    given = [[x if dim is None else x.select(dim, i) for x, dim in pairs] for i in range(info.batch_size)]
    rows = [torch.ops.multiop.foreign(handle, row, linear_from) for row in given]
    ys = [torch.stack(entries) for entries in zip(*rows, strict=True)]
    return ys, [0] * len(ys)


# no gradient is registered: that of op_custom_gradient stands around the operation
_library = torch.library.Library("multiop", "FRAGMENT")
_library.define("foreign(int handle, Tensor[] xs, int? linear_from=None) -> Tensor[]")
_library.impl("foreign", _foreign, "CompositeExplicitAutograd")
_library.impl("foreign", torch.library.fallthrough_kernel, "Autograd")
torch.library.register_fake("multiop::foreign", _foreign_specs, lib=_library)
torch.library.register_vmap("multiop::foreign", _foreign_mapped, lib=_library)


def infer(called, specs):
    """Return the specs of the results of a function of PyTorch, which runs on tensors without values."""
    backend = extend.load("torch")
    return [Spec(tuple(y.shape), backend.dtype_name(y)) for y in _without_values(called, specs)]


def _without_values(called, specs):
    with config.use_backend("torch"), FakeTensorMode(allow_non_fake_inputs=True), torch.enable_grad():
        return called.function([torch.empty(spec.shape, dtype=getattr(torch, spec.dtype)) for spec in specs])


def functional(model):
    """Return a model as a function of its parameters and inputs, and its parameters; `None` for what is a function."""
    if not isinstance(model, torch.nn.Module):
        return None
    params = _weights.nested({name: value.detach().cpu().numpy() for name, value in model.named_parameters()})

    def call(params, *inputs):
        return torch.func.functional_call(model, _weights.flat(params), inputs)

    call.__qualname__ = call.__name__ = type(model).__name__
    return call, params
