"""Settings: where each comes from, in which order, and what a bad one says."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multiop
from multiop import config, errors
from multiop._loading import registry, settings

pytestmark = pytest.mark.tier("quick")


def test_backend_comes_from_the_environment_before_the_file(fresh, toy, monkeypatch):
    fresh.write_text('backend = "nonesuch"\n')
    monkeypatch.setenv("MULTIOP_BACKEND", toy)
    assert multiop.backend() == "toy"
    assert multiop.op_convert_to_numpy(multiop.op_add(1.0, 2.0)) == 3.0
    assert multiop.backend() == "toy"


def test_backend_comes_from_the_file(fresh, toy):
    fresh.write_text('backend = "toy"\n')
    assert multiop.backend() == "toy"
    assert type(multiop.op_add(1.0, 2.0)).__module__ == "toy_backend.conversion"


@pytest.fixture
def unimported(fresh):
    """Forget which frameworks are imported, for one test that computes nothing."""
    with pytest.MonkeyPatch.context() as patch:
        for framework in ("torch", "jax", "tensorflow", "keras"):
            patch.delitem(sys.modules, framework, raising=False)
        yield patch


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow"])
def test_backend_is_the_framework_that_is_imported_if_it_is_a_single_one(unimported, name):
    first = next(filter(registry.is_installed, ("torch", "jax", "tensorflow")))
    unimported.setitem(sys.modules, name, types.ModuleType(name))
    assert config.backend() == name
    unimported.setattr(registry, "is_installed", lambda name: name == first)  # a module made here has no spec
    unimported.setitem(sys.modules, "torch" if name != "torch" else "jax", types.ModuleType("other"))
    assert config.backend() == first


def test_jax_that_tensorflow_imports_is_no_choice(unimported):
    for module in ("jax", "tensorflow.lite.python.util", "tensorflow"):
        unimported.delitem(sys.modules, module, raising=False)
        unimported.setitem(sys.modules, module, types.ModuleType(module))
    assert config.backend() == "tensorflow"
    unimported.setitem(sys.modules, "torch", types.ModuleType("torch"))
    assert config.backend() == "torch"


def test_of_several_frameworks_that_are_imported_it_is_one(unimported):
    for module in ("tensorflow", "jax"):  # the program's own JAX
        unimported.setitem(sys.modules, module, types.ModuleType(module))
    assert registry.chosen_name() == ("jax", "the first imported of torch, jax, tensorflow")


def test_a_program_of_tensorflow_runs_on_it(tmp_path):
    pytest.importorskip("tensorflow")
    code = (
        "import tensorflow as tf, multiop; print(multiop.backend(), float(multiop.grad(lambda x: x * x)(tf.ones(()))))"
    )
    assert run_without_settings(code, tmp_path) == "tensorflow 2.0\n"


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow", "numpy"])
def test_backend_is_that_of_keras_where_somebody_chose_it(unimported, name):
    unimported.setattr(registry, "is_installed", lambda name: True)
    for framework in ("torch", "jax", "tensorflow"):
        unimported.setitem(sys.modules, framework, types.ModuleType(framework))
    keras: Any = types.ModuleType("keras")
    unimported.setitem(sys.modules, "keras", keras)
    assert config.backend() == "torch"  # Keras is half imported
    keras.config = types.SimpleNamespace(backend=lambda: name)
    unimported.delenv("KERAS_BACKEND", raising=False)
    assert config.backend() == ("torch" if name == "tensorflow" else name)  # TensorFlow imports Keras by itself
    unimported.setenv("KERAS_BACKEND", name)
    assert registry.chosen_name() == (name, "Keras runs on it")
    keras.config = types.SimpleNamespace(backend=lambda: "openvino")
    assert config.backend() == "torch"


def test_a_first_call_with_arrays_of_jax_runs_on_jax(tmp_path):
    pytest.importorskip("jax")
    code = "import jax.numpy as jnp, multiop; print(multiop.grad(lambda x: x * x)(jnp.ones(())), multiop.backend())"
    assert run_without_settings(code, tmp_path) == "2.0 jax\n"


def run_without_settings(code, folder):
    """Return what a program prints in a process without settings of multiop's."""
    without = {key: value for key, value in os.environ.items() if not key.startswith(("MULTIOP_", "KERAS_"))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=without | {"MULTIOP_CONFIG": str(folder / "none.toml")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_backend_falls_back_on_the_first_that_is_installed(unimported):
    assert multiop.backend() == multiop.available_backends()[0]


def test_without_any_framework_it_is_numpy(unimported, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert registry.chosen_name() == ("numpy", "no framework is installed")
    monkeypatch.setenv("MULTIOP_BACKEND", "jax")
    assert registry.chosen_name() == ("jax", "MULTIOP_BACKEND")


def test_file_in_the_configuration_folder(fresh, monkeypatch):
    monkeypatch.delenv("MULTIOP_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(fresh.parent / "settings"))
    path = fresh.parent / "settings" / "multiop" / "config.toml"
    assert config.config_path() == path
    path.parent.mkdir(parents=True)
    path.write_text('floatx = "bfloat16"\nx64 = true\n')
    assert multiop.floatx() == "bfloat16"
    assert multiop.x64() is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("backend = ", "not valid TOML"),
        (
            'backnd = "torch"\n',
            "unknown setting 'backnd'; known: backend, floatx, x64, narrowing, kernels, tensorflow_numpy, "
            "full_tracebacks",
        ),
    ],
)
def test_bad_file_is_an_error_that_names_it(fresh, text, message):
    fresh.write_text(text)
    with pytest.raises(errors.ArgumentError, match=message) as caught:
        multiop.backend()
    assert str(fresh) in str(caught.value)


def table(text):
    """Return the keys and the variables in the table of settings of a text, in order."""
    cells = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in text.splitlines() if line[:2] == "| "]
    return {row[2]: row[1] for row in cells[1:]}


def test_the_settings_are_those_of_the_documentation():
    page = Path(__file__).parent.parent / "docs" / "configuration.md"
    for text in (page.read_text(), config.__doc__):
        assert list(table(text).items()) == list(settings.VARIABLES.items())


@pytest.mark.parametrize("key", settings.VARIABLES)
def test_every_setting_is_read_from_the_file_and_the_environment_before_it(fresh, toy, monkeypatch, key):
    read, value, other = {
        "backend": (multiop.backend, "toy", "torch"),
        "floatx": (multiop.floatx, "float16", "bfloat16"),
        "x64": (multiop.x64, True, False),
        "narrowing": (multiop.narrowing, True, False),
        "kernels": (config.uses_kernels, False, True),
        "tensorflow_numpy": (lambda: settings.flag("tensorflow_numpy"), True, False),
        "full_tracebacks": (lambda: settings.flag("full_tracebacks"), True, False),
    }[key]
    fresh.write_text(f"{key} = {json.dumps(value)}\n")
    assert read() == value
    settings._file.cache_clear()
    settings.floatx = settings.x64 = settings.narrowing = None
    fresh.write_text(f"{key} = {json.dumps(other)}\n")
    monkeypatch.setenv(settings.VARIABLES[key], str(value))
    assert read() == value


def test_a_variable_that_is_no_setting_is_named_once(fresh, toy, monkeypatch):
    monkeypatch.setenv("MULTIOP_BACKEND", toy)
    monkeypatch.setenv("MULTIOP_BAKEND", "jax")
    with pytest.warns(
        UserWarning, match="^MULTIOP_BAKEND is ignored: multiop reads MULTIOP_BACKEND, .*MULTIOP_CONFIG$"
    ):
        assert multiop.backend() == "toy"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert multiop.floatx() == "float32"


def test_file_that_is_not_text_is_an_error_that_names_it(fresh):
    fresh.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(errors.ArgumentError, match="not valid TOML"):
        multiop.backend()


def odd_files():
    def write(content):
        return lambda path: path.write_bytes(content)

    def vast(path):
        with path.open("wb") as file:
            file.truncate(1 << 40)

    return {
        "folder": (lambda path: path.mkdir(), "it is not a regular file"),
        "pipe": (os.mkfifo, "it is not a regular file"),
        "device": (lambda path: path.symlink_to("/dev/zero"), "it is not a regular file"),
        "loop": (lambda path: path.symlink_to(path.name), "cannot be read: Too many levels of symbolic links"),
        "vast": (vast, "it has more than 1048576 bytes"),
        "deep list": (write(b"x64 = " + b"[" * 100_000), "nested too deeply"),
        "deep table": (write(b"x64 = " + b"{a=" * 100_000), "nested too deeply"),
        "long number": (write(b"x64 = " + b"1" * 5000), "not valid TOML"),
        "null byte": (write(b'backend = "\0"'), "not valid TOML"),
    }


@pytest.mark.parametrize("which", odd_files())
def test_file_that_cannot_be_read_is_an_error_that_names_it(fresh, which):
    make, message = odd_files()[which]
    make(fresh)
    for setting in (multiop.backend, multiop.floatx, multiop.x64):
        with pytest.raises(errors.ArgumentError, match=message) as caught:
            setting()
        assert str(fresh) in str(caught.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("~nosuchuser/config.toml", "MULTIOP_CONFIG='~nosuchuser/config.toml': there is no such home folder"),
        ("a" * 5000, "cannot be read: File name too long"),
    ],
)
def test_path_that_can_be_no_file(fresh, monkeypatch, path, message):
    monkeypatch.setenv("MULTIOP_CONFIG", path)
    with pytest.raises(errors.ArgumentError, match=message):
        multiop.floatx()


def test_paths_that_mean_no_file(fresh, monkeypatch):
    (fresh.parent / "file").write_text("")
    for path in (os.devnull, str(fresh), str(fresh.parent / "file" / "below")):
        monkeypatch.setenv("MULTIOP_CONFIG", path)
        settings._file.cache_clear()
        assert settings._file() == {}


def test_file_with_a_byte_order_mark(fresh):
    fresh.write_text('floatx = "float16"\n', encoding="utf-8-sig")
    assert multiop.floatx() == "float16"


def test_process_without_a_home(fresh, monkeypatch):
    for variable in ("MULTIOP_CONFIG", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    assert multiop.floatx() == "float32"


def test_floatx_from_environment_then_file_then_default(fresh, monkeypatch):
    assert multiop.floatx() == "float32"
    fresh.write_text('floatx = "float16"\n')
    settings._file.cache_clear()
    monkeypatch.setattr(settings, "floatx", None)
    assert multiop.floatx() == "float16"
    monkeypatch.setenv("MULTIOP_FLOATX", "bfloat16")
    monkeypatch.setattr(settings, "floatx", None)
    assert multiop.floatx() == "bfloat16"


@pytest.mark.parametrize("dtype", ["int32", "float", "", None, "complex64"])
def test_set_floatx_takes_four_names(fresh, dtype):
    with pytest.raises(
        errors.ArgumentError, match="set_floatx: dtype must be one of float16, bfloat16, float32, float64"
    ):
        multiop.set_floatx(dtype)


def test_floatx_is_the_dtype_of_python_floats(fresh, backend):
    for dtype in ("float16", "bfloat16", "float32"):
        multiop.set_floatx(dtype)
        assert multiop.op_dtype(multiop.op_convert_to_tensor(1.5)) == dtype
        assert multiop.op_dtype(multiop.op_exp(1)) == dtype
    multiop.set_floatx("float32")


@pytest.mark.parametrize(
    ("text", "expected"), [("1", True), ("true", True), ("ON", True), ("0", False), ("no", False), ("", False)]
)
def test_x64_reads_flags(fresh, monkeypatch, text, expected):
    monkeypatch.setenv("MULTIOP_X64", text)
    assert multiop.x64() is expected


@pytest.mark.parametrize("text", ["2", "maybe", "64"])
def test_x64_refuses_other_text(fresh, monkeypatch, text):
    monkeypatch.setenv("MULTIOP_X64", text)
    with pytest.raises(errors.ArgumentError, match=rf"MULTIOP_X64 .* must be 0 or 1, got '{text}'"):
        multiop.x64()


def test_enable_x64_takes_a_bool(fresh):
    with pytest.raises(errors.ArgumentTypeError, match="enable must be a bool, got 'yes'"):
        multiop.enable_x64("yes")


def test_x64_decides_what_64_bit_numpy_input_becomes(fresh, backend, host_arrays):
    wide = np.array([1.0, 2.0])
    multiop.enable_x64(False)
    with pytest.warns(errors.PrecisionWarning, match="float64 NumPy input becomes float32"):
        assert multiop.op_dtype(multiop.op_convert_to_tensor(wide)) == "float32"
    multiop.enable_x64()
    assert multiop.op_dtype(multiop.op_convert_to_tensor(wide)) == "float64"
    multiop.enable_x64(False)


def test_enable_narrowing_takes_a_bool(fresh):
    with pytest.raises(errors.ArgumentTypeError, match="enable must be a bool, got 1"):
        multiop.enable_narrowing(1)


NARROW = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}
ASKING = {  # what takes a dtype -> a function of it, and some that it takes
    "convert": (lambda dtype: multiop.op_convert_to_tensor([1, 2], dtype), NARROW),
    "cast": (lambda dtype: multiop.op_cast(multiop.op_convert_to_tensor([1.5, 2.0]), dtype), NARROW),
    "zeros": (lambda dtype: multiop.op_zeros((2,), dtype), NARROW),
    "full": (lambda dtype: multiop.op_full((2,), 3, dtype), NARROW),
    "full_like": (lambda dtype: multiop.op_full_like(multiop.op_ones(2), 3, dtype), NARROW),
    "arange": (lambda dtype: multiop.op_arange(3, dtype=dtype), ["float64", "int64"]),
    "one_hot": (lambda dtype: multiop.op_one_hot([0, 1], 2, dtype=dtype), ["float64", "int64"]),
    "sum": (lambda dtype: multiop.op_sum([1, 2], dtype=dtype), NARROW),
    "cumsum": (lambda dtype: multiop.op_cumsum([1, 2], dtype=dtype), ["float64", "int64"]),
    "mean": (lambda dtype: multiop.op_mean([1, 2], dtype=dtype), ["float64", "complex128"]),
    "randint": (lambda dtype: multiop.random.randint((2,), 0, 9, dtype=dtype, seed=1), ["int64"]),
    "uniform": (lambda dtype: multiop.random.uniform((50,), dtype=dtype, seed=1), ["float64"]),
    "normal": (lambda dtype: multiop.random.normal((50,), dtype=dtype, seed=1), ["float64"]),
}


@pytest.mark.parametrize("asking", ASKING)
def test_narrowing_decides_what_a_64_bit_dtype_that_is_asked_for_becomes(fresh, backend, asking):
    multiop.enable_x64(False)
    function, dtypes = ASKING[asking]
    for wide in dtypes:
        if backend != "jax":
            multiop.enable_narrowing()
            assert multiop.op_dtype(function(wide)) == wide
            continue
        multiop.enable_narrowing(False)
        with pytest.raises(errors.DTypeError, match=f"{wide} needs JAX's 64-bit mode.*enable_narrowing"):
            function(wide)
        multiop.enable_narrowing()
        with pytest.warns(errors.PrecisionWarning, match=f"{wide} becomes {NARROW[wide]}.*enable_x64") as caught:
            x = function(wide)
        assert {Path(warning.filename) for warning in caught} == {Path(__file__)}
        assert multiop.op_dtype(x) == NARROW[wide]
        expected = multiop.op_convert_to_numpy(function(NARROW[wide]))
        np.testing.assert_array_equal(multiop.op_convert_to_numpy(x), expected)


def test_narrowing_keeps_every_int_and_follows_floatx(fresh, backend):
    if backend != "jax":
        pytest.skip("it has 64-bit dtypes")
    multiop.enable_x64(False)
    multiop.enable_narrowing()
    for wide in (2**40, [2**40], np.array([2**40])):
        with (
            pytest.warns(errors.PrecisionWarning),
            pytest.raises(errors.ArgumentError, match=f"{2**40} does not fit in int32"),
        ):
            multiop.op_convert_to_tensor(wide, "int64")
    multiop.set_floatx("float64")
    with pytest.warns(errors.PrecisionWarning):
        made = [
            multiop.op_ones(2),
            multiop.op_exp(1),
            multiop.op_divide(np.array([1, 2]), 2),
            multiop.random.normal((2,)),
        ]
    assert {multiop.op_dtype(x) for x in made} == {"float32"}
    multiop.enable_x64()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert multiop.op_dtype(multiop.op_cast(1, "float64")) == "float64"
    multiop.enable_x64(False)


def test_set_backend_and_use_backend(fresh, backend, toy):
    assert multiop.backend() == backend
    with multiop.use_backend(toy):
        assert multiop.backend() == "toy"
        with multiop.use_backend(backend):
            assert multiop.backend() == backend
        assert multiop.backend() == "toy"
    assert multiop.backend() == backend


def test_use_backend_ends_with_an_error(fresh, backend, toy):
    with pytest.raises(KeyError), multiop.use_backend(toy):
        raise KeyError
    assert multiop.backend() == backend


def test_set_backend_is_for_every_thread(fresh, toy):
    multiop.set_backend(toy)
    seen = []
    # a thread may inherit the context of the test, in which the fixtures of other tests are not active
    thread = threading.Thread(target=lambda: seen.append(contextvars.Context().run(multiop.backend)))
    thread.start()
    thread.join()
    assert seen == ["toy"]


def test_use_backend_is_for_its_thread_alone(fresh, toy):
    before = multiop.available_backends()[0]
    multiop.set_backend(before)
    entered, done, seen = threading.Event(), threading.Event(), []

    def other():
        with multiop.use_backend(toy):
            entered.set()
            done.wait(10)
            seen.append(multiop.backend())

    thread = threading.Thread(target=other)
    thread.start()
    assert entered.wait(10)
    here = multiop.backend()
    done.set()
    thread.join()
    assert (here, seen) == (before, ["toy"])


def test_use_backend_is_for_its_task_alone(fresh, toy):
    before = multiop.available_backends()[0]
    multiop.set_backend(before)

    async def with_backend(name, steps):
        with multiop.use_backend(name):
            names = []
            for _ in range(steps):
                await asyncio.sleep(0)
                names.append(multiop.backend())
            return names

    async def both():
        return await asyncio.gather(with_backend(toy, 3), with_backend(before, 3))

    assert asyncio.run(both()) == [["toy"] * 3, [before] * 3]


def test_backend_does_not_load_it(fresh, toy, monkeypatch):
    monkeypatch.setenv("MULTIOP_BACKEND", toy)
    assert multiop.backend() == "toy"
    from multiop._loading import registry

    assert "toy" not in registry.loaded_backends()
