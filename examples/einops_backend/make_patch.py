"""Print a patch of einops that puts one class on multiop in the place of those for NumPy, JAX, PyTorch, TensorFlow.

    pip download --no-deps --no-binary :all: einops==0.8.2 && tar xzf einops-0.8.2.tar.gz
    python make_patch.py einops-0.8.2 > multiop.patch
    patch -p1 -d einops-0.8.2 < multiop.patch

einops keeps a backend for each type of tensor, so each of ours keeps the namespace of its framework. The classes of
what multiop has not stay, as do the layers. Refused, by an error, are NumPy's strings, objects, dates and long doubles,
which multiop has not, and the least and the greatest of complex numbers.
"""

from __future__ import annotations

import ast
import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

CLASSES = '''\
class NumpyBackend(AbstractBackend):
    """NumPy's backend, and by their name that of all frameworks that multiop has"""

    framework_name = "numpy"
    sums = {"bool": "int64", "int": "int64", "uint": "uint64"}  # dtypes of the sums of integers

    def __init__(self):
        import multiop

        with multiop.use_backend(self.framework_name):
            self.ops = multiop.namespace(0)

    def is_appropriate_type(self, tensor):
        return self.ops.is_tensor(tensor)

    def from_numpy(self, x):
        return self.ops.convert_to_tensor(x, dtype=x.dtype.name)

    def to_numpy(self, x):
        return self.ops.convert_to_numpy(x)

    def arange(self, start, stop):
        return self.ops.arange(start, stop, dtype=self.sums.get("int"))

    def shape(self, x):
        return self.ops.shape(x)

    def reshape(self, x, shape):
        return self.ops.reshape(x, shape)

    def transpose(self, x, axes):
        return self.ops.transpose(x, axes)

    def reduce(self, x, operation, axes):
        kind = self.ops.dtype(x).rstrip("0123456789")
        options = {"dtype": self.sums.get(kind)} if operation in ("sum", "prod") else {}
        return getattr(self.ops, operation)(x, axis=axes, **options)

    def stack_on_zeroth_dimension(self, tensors: list):
        return self.ops.stack(tensors)

    def add_axis(self, x, new_position):
        return self.ops.expand_dims(x, new_position)

    def tile(self, x, repeats):
        return self.ops.tile(x, repeats)

    def concat(self, tensors, axis: int):
        return self.ops.concatenate(tensors, axis)

    def is_float_type(self, x):
        return "float" in self.ops.dtype(x)

    def einsum(self, pattern, *x):
        return self.ops.einsum(pattern, *x)


class JaxBackend(NumpyBackend):
    framework_name = "jax"
    sums = {}

    def from_numpy(self, x):
        # float64 where JAX has it
        return self.ops.convert_to_tensor(x)


class TorchBackend(NumpyBackend):
    framework_name = "torch"
    sums = {"bool": "int64", "int": "int64", "uint": "int64"}

    def __init__(self):
        super().__init__()
        # importing would register operations in torch._dynamo for torch.compile
        from . import _torch_specific  # noqa

    def from_numpy(self, x):
        variable = super().from_numpy(x)
        # attach grad only to floating types
        return variable.requires_grad_() if self.is_float_type(variable) else variable

    def add_axes(self, x, n_axes, pos2len):
        for axis_position in pos2len:
            x = self.add_axis(x, axis_position)
        # a view
        return self.ops.broadcast_to(x, [pos2len.get(i, length) for i, length in enumerate(self.shape(x))])

    def layers(self):
        from .layers import torch

        return torch


class TensorflowBackend(NumpyBackend):
    framework_name = "tensorflow"
    sums = {}

    def layers(self):
        from .layers import tensorflow

        return tensorflow
'''


def replace_classes(source: str, new: str = CLASSES) -> str:
    """Return the source with classes in the place of those of the same names."""
    names = {node.name for node in ast.parse(new).body if isinstance(node, ast.ClassDef)}
    old = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name in names]
    if missing := names - {node.name for node in old}:
        raise ValueError(f"the source has no {', '.join(sorted(missing))}: another release?")
    lines = source.splitlines(keepends=True)
    for node in reversed(old):
        end = int(node.end_lineno or 0)
        while end < len(lines) and not lines[end].strip():  # the blank lines before what follows
            end += 1
        lines[node.lineno - 1 : end] = [new, "\n\n" if end < len(lines) else ""] if node is old[0] else []
    return "".join(lines)


def require_multiop(source: str) -> str:
    """Return pyproject.toml with multiop in the place of the comment that there are no dependencies."""
    before, comment, after = source.partition("    # no run-time or installation-time dependencies\n")
    if not comment:
        raise ValueError("pyproject.toml has dependencies: another release?")
    return f'{before}    "multiop",\n{after}'


def make_patch(folder: Path) -> Iterator[str]:
    """Yield the lines of the unified diff of an unpacked source distribution."""
    for name, change in {"einops/_backends.py": replace_classes, "pyproject.toml": require_multiop}.items():
        source = (folder / name).read_text(encoding="utf-8")
        lines = (text.splitlines(keepends=True) for text in (source, change(source)))
        yield from difflib.unified_diff(*lines, f"a/{name}", f"b/{name}")


if __name__ == "__main__":
    sys.stdout.writelines(make_patch(Path(sys.argv[1])))
