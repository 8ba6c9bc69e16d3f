"""The public types: what a type checker refuses and accepts, and what `isinstance` says."""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import math
import runpy
import typing
from pathlib import Path

import numpy as np
import op_list
import pytest
import type_lines

import multiop
from multiop._loading import registry
from multiop.testing._samplers import Sampler
from multiop.testing.cases import rows

SPACES = ["image", "linalg", "nn", "numpy"]


UNTYPED = "# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators"


def examples():
    """Return the examples of all docstrings and of the README as one file, a function for each."""
    modules = {op.module for op in op_list.ops()} | set(op_list.OTHERS)
    found = [test.examples for name in sorted(modules) for test in doctest.DocTestFinder().find(at(name), name)]
    found.append(doctest.DocTestParser().get_examples((type_lines.ROOT / "README.md").read_text(encoding="utf-8")))
    lines = [UNTYPED]
    for n, statements in enumerate(filter(None, found)):
        lines.append(f"def example_{n}() -> None:")
        for statement in statements:
            if statement.exc_msg is None:
                lines += [f"    {line}" for line in statement.source.splitlines()]
    return lines


def at(name):
    return importlib.import_module(name)


def calls():
    """Return the calls and the pinned inputs of the table of cases as one file: tensors are `x`, NumPy arrays `a`."""
    lines = ["from typing import Any", "import numpy as np", "import multiop"]
    lines.append("def calls(x: multiop.Tensor, a: np.ndarray[Any, Any], other: Any) -> None:")
    for op, row in rows().items():
        for call in (*row.calls, *row.pins):
            words = [*map(word, call.args), *(f"{name}={word(value)}" for name, value in call.kwargs.items())]
            lines.append(f"    multiop.{op}({', '.join(words)})")
    return lines


def word(x):
    if isinstance(x, (Sampler, np.ndarray)):
        return "x" if isinstance(x, Sampler) else "a"
    if type(x) is list:
        return f"[{', '.join(map(word, x))}]"
    if type(x) is tuple:
        return f"({''.join(f'{word(each)}, ' for each in x)})"
    if type(x) is dict:
        return f"{{{', '.join(f'{key!r}: {word(value)}' for key, value in x.items())}}}"
    if type(x) is float:
        return repr(x) if math.isfinite(x) else "1.0"
    return repr(x) if type(x) in (bool, int, str, range, type(None)) else "other"


@pytest.fixture(scope="module")
def verdict(tmp_path_factory):
    """Run mypy once over the lines that it has to accept, and those that it has to refuse; return what it says."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("mypy")
    names = ["accepted.py", "refused.py", "contract.py"]
    for name, lines in (("examples.py", examples()), ("calls.py", calls())):
        names.append(str(folder / name))
        Path(names[-1]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", str(type_lines.ROOT))
        settings = f"--config-file={type_lines.ROOT / 'pyproject.toml'}"
        return type_lines.by_mypy(names, settings, f"--cache-dir={folder / 'cache'}")


def test_mypy_accepts_right_uses_and_refuses_wrong_ones(verdict):
    marked = type_lines.expected(["accepted.py", "refused.py", "contract.py"], "mypy")
    assert len(marked) > 50
    found = {place: codes for place, codes in verdict.items() if place[0] not in ("examples.py", "calls.py")}
    assert type_lines.differences(found, marked) == []


@pytest.mark.parametrize(("name", "lines"), [("examples.py", examples), ("calls.py", calls)], ids=["docs", "table"])
def test_mypy_accepts_what_is_documented_and_tested(verdict, name, lines):
    text = lines()
    assert len(text) > 1000
    wrong = sorted(place[1] for place in verdict if place[0] == name)
    assert [(text[n - 1], verdict[name, n]) for n in wrong] == []


def test_a_line_that_is_not_judged_as_it_is_marked_is_named():
    marked = {("a.py", 1): {"arg-type"}, ("a.py", 2): {"call-arg"}}
    found = {("a.py", 2): {"operator"}, ("b.py", 3): {"misc"}}
    assert type_lines.differences(found, marked) == [
        "a.py:1: found None, marked {'arg-type'}",
        "a.py:2: found {'operator'}, marked {'call-arg'}",
        "b.py:3: found {'misc'}, marked None",
    ]


@pytest.mark.once
def test_accepted_lines_run(backend):
    runpy.run_path(str(type_lines.HERE / "accepted.py"))


def variable(backend):
    """Return what a framework trains."""
    if backend == "torch":
        return pytest.importorskip("torch").nn.Parameter(multiop.op_ones(2))
    if backend == "tensorflow":
        return pytest.importorskip("tensorflow").Variable([1.0, 2.0])
    return multiop.op_ones(2)


NO_TENSORS = [1, 1.0, True, None, "x", [1.0], (1.0,), {"a": 1.0}, np.ones(2), np.float32(1.0), np.dtype("int8"), int]


def test_native_tensors_and_nothing_else_are_tensors(backend, monkeypatch):
    x = multiop.op_ones((2, 3))
    tensors = [x, x > 0, multiop.op_zeros(()), multiop.op_ones(2, "int32"), variable(backend)]
    nothing = [*NO_TENSORS, x.shape, x.dtype, type(x), multiop.op_exp]
    others = [object, int, list, np.ndarray, np.generic]
    if backend == "numpy":  # its tensors are arrays
        nothing = [each for each in nothing if not isinstance(each, (np.ndarray, np.generic))]
        others = [object, int, list]
    for _ in range(2):
        assert all(isinstance(each, multiop.Tensor) and issubclass(type(each), multiop.Tensor) for each in tensors)
        assert not any(isinstance(each, multiop.Tensor) for each in nothing)
        assert not any(issubclass(cls, multiop.Tensor) for cls in others)
        monkeypatch.setattr(registry, "_loaded", {})  # as where the framework is imported, and no op was called yet


@functools.singledispatch
def doubled(x):
    """Return twice a tensor; what is none comes back as it is."""
    return x


@doubled.register
def _(x: multiop.Tensor):
    return 2 * x if isinstance(x, multiop.Tensor) else x


def test_traced_tensors_are_tensors(backend):
    x = multiop.op_ones(3)
    twice = [
        multiop.vmap(doubled)(x),
        multiop.jvp(doubled, (x,), (x,))[1],
        multiop.vjp(doubled, x)[1](x)[0],
        multiop.checkpoint(doubled)(x),
        multiop.jacfwd(lambda x: multiop.op_sum(doubled(x)))(x),
        multiop.vmap(multiop.grad(doubled))(x),
    ]
    assert [multiop.op_convert_to_numpy(y).tolist() for y in twice] == [[2.0] * 3] * 6
    with multiop.GradientTape() as tape:
        y = doubled(tape.watch(x))
    assert isinstance(y, multiop.Tensor)
    assert multiop.op_convert_to_numpy(y).tolist() == [2.0] * 3


def test_compiled_tensors_are_tensors(backend):
    compiled = multiop.jit(lambda x, n: x * 2 if isinstance(x, multiop.Tensor) > isinstance(n, multiop.Tensor) else x)
    assert multiop.op_convert_to_numpy(compiled(multiop.op_ones(2), 3)).tolist() == [2.0, 2.0]


def test_a_third_party_backend_has_tensors(toy):
    with multiop.use_backend(toy):
        x = multiop.op_convert_to_tensor([1.0, 2.0])
        assert isinstance(x, multiop.Tensor)
        assert issubclass(type(x), multiop.Tensor)
        assert not isinstance(np.ones(2), multiop.Tensor)


def test_the_types_stand_in_annotations_and_are_themselves_types():
    def f(x: multiop.Tensor | None, y: multiop.ArrayLike, p: multiop.PyTree, dtype: multiop.DType) -> multiop.Tensor:
        return x

    assert typing.get_type_hints(f)["return"] is multiop.Tensor
    assert issubclass(multiop.Tensor, multiop.Tensor)
    assert isinstance(None, typing.get_type_hints(f)["x"])
    assert list[multiop.Tensor].__args__ == (multiop.Tensor,)
    with pytest.raises(TypeError):
        multiop.Tensor()


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jit", "vmap", "checkpoint", "jacrev", "jacfwd", "hessian"])
def test_a_transform_keeps_the_signature_at_run_time(name):
    def f(x: multiop.Tensor, *, scale: float = 1.0) -> multiop.Tensor:
        return x * scale

    assert inspect.signature(getattr(multiop, name)(f)) == inspect.signature(f)


def test_the_namespace_without_the_prefix_is_declared_and_complete():
    for name in ("Operation", "name_scope"):  # no ops, but Keras has them there
        assert getattr(multiop.ops, name) is getattr(multiop, name)
    declared = set(multiop.ops.__all__) - {*SPACES, "Operation", "name_scope"}
    assert declared == {name.removeprefix("op_") for name in vars(multiop) if name.startswith("op_")}
    assert all(getattr(multiop.ops, name) is getattr(multiop, f"op_{name}") for name in declared)


@pytest.mark.parametrize("space", SPACES)
def test_the_namespaces_hold_the_same_ops(space):
    module = getattr(multiop.ops, space)
    assert module.__all__
    for name in module.__all__:
        whole = {"crop_images": "image_crop", "pad_images": "image_pad"}.get(name, f"image_{name}")
        assert getattr(module, name) is getattr(multiop.ops, whole if space == "image" else name)
