"""Backends by name: built-in, third-party, missing, broken; and what a tensor of another framework says."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import multiop
from multiop import errors
from multiop._loading import built_in, registry, versions

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.tier("quick")
LEVELS = {"reverse": (1, 5), "whole": (1, 10), "end": (2, 4)}


@pytest.mark.parametrize("use", [multiop.set_backend, lambda name: multiop.use_backend(name).__enter__()])
def test_unknown_name_lists_the_known_ones(use):
    with pytest.raises(errors.BackendError, match="unknown backend 'pytorch'; known backends: torch, jax, tensorflow"):
        use("pytorch")


@pytest.mark.parametrize("use", [multiop.set_backend, lambda name: multiop.use_backend(name).__enter__()])
@pytest.mark.parametrize("name", [None, 3, ["torch"]])
def test_name_that_is_no_string(use, name):
    with pytest.raises(errors.ArgumentTypeError, match="a backend is named by a string"):
        use(name)


@pytest.mark.parametrize("name", list(registry.BUILT_IN))
def test_missing_framework_gives_the_pip_command(name, monkeypatch):
    monkeypatch.setattr(registry, "_loaded", {})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    command = "numpy scipy" if name == "numpy" else f"'multiop[{name}]'"
    with pytest.raises(
        errors.BackendError, match=re.escape(f"{name} is not installed; install it with: pip install {command}")
    ):
        multiop.set_backend(name)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_collector_rests_while_a_backend_loads_and_is_then_as_before(is_enabled, tmp_path, monkeypatch):
    (tmp_path / "resting.py").write_text("import gc\nraise ImportError(gc.isenabled())\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(registry.BUILT_IN, "resting", ("resting", "numpy", ""))
    gc.enable() if is_enabled else gc.disable()
    try:
        with pytest.raises(ImportError, match="False"):
            registry.load("resting")
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable()


def test_backend_error_is_an_import_error():
    with pytest.raises(ImportError):
        multiop.set_backend("nonesuch")


def test_third_party_backend_is_found_by_its_entry_point(toy):
    assert toy in multiop.available_backends()
    with multiop.use_backend(toy):
        assert multiop.backend() == "toy"
        total = multiop.op_add([1, 2], np.float32(0.5))
        assert multiop.op_is_tensor(total)
        assert multiop.op_dtype(total) == "float32"
        np.testing.assert_array_equal(multiop.op_convert_to_numpy(total), [1.5, 2.5])


def test_third_party_backend_gets_errors_that_name_the_op(toy):
    with (
        multiop.use_backend(toy),
        pytest.raises(errors.ArgumentError, match=r"op_add: .*broadcast.*\n  in op_add\(x1=\[1, 2\]"),
    ):
        multiop.op_add([1, 2], [1, 2, 3])


def test_what_a_third_party_backend_lacks_is_unsupported(toy):
    with multiop.use_backend(toy):
        with pytest.raises(errors.UnsupportedError, match="op_erf: the toy backend has no op_erf"):
            multiop.op_erf(1.0)
        with pytest.raises(errors.UnsupportedError, match="op_erf: the toy backend has no op_erf"):
            multiop.grad(multiop.op_erf)(1.0)


def test_third_party_backend_needs_no_framework(toy_paths):
    program = (
        "import sys, multiop; total = multiop.op_add([1.0], 2.0); "
        "print(multiop.backend(), float(total[0]), sorted({'torch', 'jax', 'tensorflow'} & set(sys.modules)))"
    )
    path = os.pathsep.join([*toy_paths, *filter(None, sys.path)])
    environment = os.environ | {"PYTHONPATH": path, "MULTIOP_BACKEND": "toy"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "toy 3.0 []"


def test_third_party_backend_that_fails_to_load_is_named(toy_paths, monkeypatch, tmp_path):
    info = tmp_path / "toy_backend-0.1.0.dist-info" / "entry_points.txt"
    info.write_text("[multiop.backends]\nbroken = no_such_module_here\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "broken" in multiop.available_backends()
    with pytest.raises(
        errors.BackendError, match=r"'broken' \(no_such_module_here\) failed to load: ModuleNotFoundError"
    ):
        multiop.set_backend("broken")


@pytest.fixture
def as_installed(tmp_path, monkeypatch):
    """A function that lays out a package of one file, and its version, before all others on `sys.path`."""

    def lay_out(name, version, source="pass"):
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        for file, text in ((f"{name}/__init__.py", source), (f"{name}-{version}.dist-info/METADATA", metadata)):
            (tmp_path / file).parent.mkdir()
            (tmp_path / file).write_text(text)

    monkeypatch.syspath_prepend(tmp_path)
    return lay_out


@pytest.mark.parametrize("first", ["", "import tensorflow; "])
def test_triton_is_imported_before_tensorflow_or_not_at_all(first, as_installed, tmp_path):
    as_installed("triton", "3.9.0", "print('triton')")
    as_installed("tensorflow", "2.21.0", "print('tensorflow')")
    program = (
        f"{first}from multiop._loading import registry\ntry: registry.load('tensorflow')\nexcept AttributeError: pass"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == (["tensorflow"] if first else ["triton", "tensorflow"])


@pytest.mark.parametrize(
    ("tensorflow", "triton", "is_barred"),
    [("2.21.0", "3.9.0", True), ("2.20.0", "3.7.1", True), ("2.21.0", "3.6.0", False), ("2.19.1", "3.9.0", False),
     ("2.22.0rc1", "3.9.0", False), (None, "3.9.0", False), ("2.21.0", None, False), ("2.21.0", "unnamed", True),
     ("2.19.1", "unnamed", False), ("2.21.0", "folder", False)],
)  # fmt: skip
def test_triton_is_barred_by_some_versions_of_tensorflow(
    tensorflow, triton, is_barred, as_installed, tmp_path, monkeypatch
):
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow and types.SimpleNamespace(__version__=tensorflow))
    if triton is None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    else:
        version = triton if triton[0].isdigit() else "3.9.0"
        as_installed("triton", version)
        if triton != version:  # of a distribution with another name, or a folder beside the script
            shutil.rmtree(tmp_path / f"triton-{version}.dist-info")
        if triton == "folder":
            (tmp_path / "triton" / "__init__.py").unlink()
    assert built_in.is_triton_barred() == is_barred


def test_jit_refuses_to_import_a_triton_that_is_barred(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(built_in, "is_triton_barred", lambda: True)
    with multiop.use_backend("torch"):
        x = torch.tensor(3.0)
        with pytest.raises(errors.UnsupportedError, match=r"import triton, .* before tensorflow.*issues/124205"):
            multiop.jit(lambda x: x * x)(x)


def test_available_backends_are_those_that_load(backend):
    assert backend in multiop.available_backends()
    assert registry.load(backend).name == backend
    assert registry.load(backend) is registry.load(backend)


def test_a_pattern_leaves_the_look_for_another_backend_as_it_was(monkeypatch):
    """Each op has that look, once a second backend was chosen."""
    monkeypatch.setattr(registry, "is_overridden", False)
    monkeypatch.setattr(registry, "_n_overrides", 0)
    x, seen = np.ones(3), []
    multiop.sparse_jacobian(lambda x: (seen.append(registry.is_overridden), x * x)[1], multiop.op_convert_to_tensor(x))
    assert seen == [False, True]
    assert not registry.is_overridden
    with multiop.use_backend(multiop.backend()):
        assert not registry.is_overridden
    registry.restore(registry.override_by(object()))
    assert registry.is_overridden  # a task that was begun there may still run


def test_tensor_of_another_framework_names_both_and_both_ways_out(backend, monkeypatch):
    class ForeignTensor:
        shape, dtype = (2,), "float32"

    ForeignTensor.__module__ = "mindspore.nn"
    monkeypatch.setitem(multiop._values.foreign._OWNERS, "mindspore", "mindspore")
    with pytest.raises(
        errors.ForeignTensorError, match=f"a mindspore tensor was passed while the {backend} backend"
    ) as caught:
        multiop.op_add(ForeignTensor(), 1.0)
    assert "op_convert_to_numpy" in str(caught.value)
    assert "set_backend('mindspore')" in str(caught.value)


@pytest.mark.cross
@pytest.mark.parametrize("other", ["torch", "jax", "tensorflow"])
def test_tensors_of_the_other_built_in_frameworks(backend, other):
    with multiop.use_backend(other):
        foreign = multiop.op_convert_to_tensor([1.0, 2.0])
    if other == backend:
        np.testing.assert_array_equal(multiop.op_convert_to_numpy(multiop.op_add(foreign, 1.0)), [2.0, 3.0])
        return
    for arguments in [(foreign, 1.0), (1.0, foreign), ([foreign], 1.0)]:
        with pytest.raises(errors.ForeignTensorError, match=f"a {other} tensor was passed while the {backend} backend"):
            multiop.op_add(*arguments)


@pytest.mark.parametrize("name", list(registry.BUILT_IN))
def test_the_oldest_version_that_is_not_refused_is_the_one_that_is_asked_for(name):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = project["dependencies"] if name == "numpy" else project["optional-dependencies"][name]
    oldest = ".".join(map(str, versions.VERSIONS[name].reverse))
    assert f"{registry.BUILT_IN[name][1]}>={oldest}" in needed


@pytest.mark.parametrize("name", list(registry.BUILT_IN))
def test_levels_begin_where_the_table_says(name, monkeypatch):
    monkeypatch.setitem(versions.VERSIONS, name, versions.VERSIONS[name]._replace(**LEVELS))
    releases = ["0.9.9", "1.4.0a1", "1.5.0", "1.9.3", "1.10.0+cpu", "2.3.1", "2.4.0.dev20260101", "3.0.0"]
    levels = ["refused"] * 2 + ["reverse"] * 2 + ["whole"] * 2 + ["untested"] * 2
    assert [versions.level(name, version) for version in releases] == levels
    assert versions.tested_requirement(name) == f"{registry.BUILT_IN[name][1]}>=1.10,<2.4"
    with pytest.raises(errors.BackendError, match=rf"{name} backend needs {name}>=1.5, and 1.4.1 is .* --upgrade "):
        versions.refuse_old(name, "1.4.1")
    versions.refuse_old(name, "1.5.0")


def test_a_level_may_begin_with_a_patch_release():
    releases = ["0.5", "0.5.2", "0.5.3.dev1", "0.5.3", "0.5.10", "0.6.0"]
    assert [versions.level("jax", version) for version in releases] == ["refused"] * 2 + ["whole"] * 4


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_a_version_that_was_not_tested_is_told_once(name, monkeypatch):
    pytest.importorskip(name)
    monkeypatch.setattr(registry, "_loaded", {})
    monkeypatch.setitem(versions.VERSIONS, name, versions.Versions((0, 1), (0, 1), (0, 2)))
    with pytest.warns(UserWarning, match=rf"{name} .* is outside the versions .*{name}>=0\.1,<0\.2"):
        registry.load(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registry.load(name)
