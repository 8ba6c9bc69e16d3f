"""The `multiop` command: verdicts, exit status, and a plain message for every mistake of a user."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import multiop
from multiop import cli
from multiop.cli import app
from multiop.testing import _processes, _report

ROOT = Path(__file__).parent.parent


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in an empty folder that holds the files given by name; return its result."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    monkeypatch.setattr(sys, "path", [*sys.path])

    def invoke(*arguments, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        result = CliRunner().invoke(app, list(arguments))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


GOOD = """
import multiop
from multiop.testing import example_inputs, positive

@multiop.op_custom_gradient
def square(x):
    return x * x, lambda upstream: 2 * x * upstream

@example_inputs(positive(2), power=3)
@example_inputs(positive(), power=2)
def scaled(x, power):
    print("not JSON")
    return {"y": x * power, "n": power}

def not_marked(x):
    raise AssertionError("only marked functions are checked")
"""


@pytest.mark.once
def test_good_file(run, backend):
    result = run("check", "good.py", "--backends", backend, "--json", good=GOOD)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["agree"] is True
    assert list(report["backends"]) == [backend]
    found = [(one["function"], one["inputs"], one["custom_gradient"]) for one in report["checks"]]
    assert found == [
        ("square", "normal(3)", True),
        ("scaled", "positive(2), power=3", False),
        ("scaled", "positive(), power=2", False),
    ]
    properties = report["checks"][0]["properties"]
    assert list(properties) == [
        "value",
        "gradient",
        "finite differences",
        "second order",
        "forward mode",
        "vmap",
        "compiled",
    ]
    assert {which: cells[backend]["status"] for which, cells in properties.items()} == dict.fromkeys(properties, "ok")


ODD = """
import multiop

@multiop.op_custom_gradient
def straight_through(x):  # check: differs, rounding has no slope
    return multiop.op_round(x), lambda upstream: upstream

@multiop.op_custom_gradient
def wrong_sign(x):
    return multiop.op_sin(x), lambda upstream: -upstream * multiop.op_cos(x)

def reads_the_numbers(x):
    raise multiop.errors.UnsupportedError("there is no such kernel")

@multiop.op_custom_gradient
def calls_numpy(x):
    return reads_the_numbers(x), lambda upstream: upstream

@multiop.op_custom_gradient
def wrong_shape(x):
    return multiop.op_sum(x), lambda upstream: upstream

@multiop.op_custom_gradient
def clipped(x):
    '''check: differs: the gradient is clipped'''
    return x, lambda upstream: multiop.op_clip(upstream, -0.5, 0.5)
"""


@pytest.mark.once
def test_odd_rules(run, backend):
    result = run("check", "odd.py", "--backends", backend, "--json", odd=ODD)
    assert result.exit_code == 1
    checks = {one["function"]: one for one in json.loads(result.stdout)["checks"]}

    one = checks["straight_through"]
    assert one["agrees"]
    assert "differs from finite differences" in one["verdict"]

    one = checks["wrong_sign"]
    assert not one["agrees"]
    assert one["verdict"] == "FAIL: finite differences"

    one = checks["calls_numpy"]
    assert not one["agrees"]
    assert "--allow-refused" in one["properties"]["value"][backend]["message"]
    result = run("check", "odd.py::calls_numpy", "--backends", backend, "--allow-refused", odd=ODD)
    assert result.exit_code == 0
    assert "1 is refused in part" in result.stdout

    cell = checks["wrong_shape"]["properties"]["gradient"][backend]
    assert cell["status"] == "failed"
    assert "wrong_shape" in cell["message"]

    one = checks["clipped"]
    assert one["properties"]["forward mode"][backend]["status"] == "refused"
    assert one["agrees"]


DISAGREE = """
import multiop

def off(x):
    return x * (1 + 1e-9 * (multiop.backend() == "{odd}"))

def fine(x):
    return x * x
"""


@pytest.mark.once
@pytest.mark.cross
def test_backends_that_disagree(run, backend):
    others = [name for name in multiop.available_backends() if name != backend]
    if not others:
        pytest.skip("one backend has none to be compared with")
    names = f"{backend},{others[-1]}"
    result = run("check", "disagree.py", "--backends", names, disagree=DISAGREE.format(odd=backend))
    assert result.exit_code == 1
    assert "FAIL: value" in result.stdout
    assert "FAIL 1e-09" in result.stdout
    assert "1 fails" in result.stdout
    assert "\x1b" not in result.stdout  # no colours where there is no terminal


@pytest.mark.tier("full")
@pytest.mark.cross
def test_backends_that_agree(run, backend):
    names = ",".join(multiop.available_backends())
    result = run("check", "disagree.py::fine", "--backends", names, disagree=DISAGREE.format(odd=backend))
    assert result.exit_code == 0, result.output
    assert "all agree" in result.stdout


PACKAGE_FILE = "from .inner import double\n\ndef f(x):\n    return double(x)\n"


@pytest.mark.once
def test_ways_to_name_a_function(run, backend, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner.py").write_text(
        "def double(x):\n    return 2 * x\n\n\ndef train(steps: int):\n    pass\n"
    )
    (tmp_path / "package" / "outer.py").write_text(PACKAGE_FILE)
    paths = ["package.inner:double", "package/outer.py::f", "package"]
    result = run("check", *paths, "--backends", backend, "--json")
    assert result.exit_code == 0, result.output
    found = [(one["target"], one["function"]) for one in json.loads(result.stdout)["checks"]]
    inner, outer = str(Path("package/inner.py")), str(Path("package/outer.py"))
    assert found == [("package.inner", "double"), (outer, "f"), (inner, "double")]
    assert "left out, no inputs known: train" in result.stderr


@pytest.mark.once
def test_functions_beside_a_marked_one_are_named(run, backend):
    text = (
        "import multiop.testing\n\n@multiop.testing.example_inputs([1.0])\ndef f(x):\n    return 2 * x\n\n"
        "def g(x):\n    return 3 * x\n\ndef main():\n    pass\n"
    )
    result = run("check", "marked.py", "--backends", backend, marked=text)
    assert result.exit_code == 0, result.output
    assert "marked.py: left out, not marked: g\n" in result.stderr


@pytest.mark.once
def test_a_process_that_dies_is_told(run, backend):
    text = "import os\n\ndef f(x):\n    os._exit(7)\n"
    result = run("check", "dies.py", "--backends", backend, dies=text)
    assert result.exit_code == 1
    assert f"the process of {backend} ended with status 7 while checking f" in result.stdout
    assert "died" in result.stdout


HANGS = """
import re
import signal
import time

import multiop

def waits(x):
    time.sleep(10**6)
    return x

@multiop.op_custom_gradient
def backtracks(x):
    def grad(upstream):
        re.match("(a+)+b", "a" * 60)  # one call of C code that lasts for years, and can't be interrupted
        return upstream
    return x, grad

@multiop.op_custom_gradient
def last(x):
    return x, lambda upstream: upstream
"""


@pytest.mark.tier("full")
def test_a_function_that_hangs_fails_and_the_rest_is_checked(run, backend):
    paths = ["hangs.py::waits", "hangs.py", "--backends", backend]
    result = run("check", *paths, "--timeout", "10", "--json", hangs=HANGS)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["timeout"] == 10
    assert report["died"] == {}
    cells = {
        one["function"]: {which: by_backend[backend] for which, by_backend in one["properties"].items()}
        for one in report["checks"]
    }
    assert list(cells) == ["waits", "backtracks", "last"]
    for name, which in [("waits", "value"), ("backtracks", "gradient")]:
        assert cells[name][which]["status"] == "failed"
        message = f"{name} did not end within 10 s on {backend}; --timeout sets the limit"
        assert cells[name][which]["message"].startswith(message)
    assert cells["waits"]["gradient"]["status"] == "none"
    assert cells["backtracks"]["value"]["status"] == "ok"
    assert cells["last"]["value"]["status"] == "ok"


@pytest.mark.tier("full")
def test_a_file_that_hangs_when_it_is_imported(run, backend):
    files = {"loops": "while True:\n    pass\n", "fine": "def f(x):\n    return x\n"}
    result = run("check", "loops.py", "fine.py", "--backends", backend, "--timeout", "2", **files)
    assert result.exit_code == 2
    assert "loops.py cannot be imported: its code did not end within 2 s" in result.stderr


@pytest.mark.once
def test_a_process_that_waits_for_a_core_while_it_imports_is_not_out_of_time(run, backend, monkeypatch):
    monkeypatch.setattr(_processes, "_work_of", lambda _: (1.0, True))  # ready, and without a second more of CPU
    slow = "import time\n\ntime.sleep(2)\n\ndef f(x):\n    return x\n"
    result = run("check", "slow.py", "--backends", backend, "--timeout", "0.5", slow=slow)
    assert result.exit_code == 0, result.output


@pytest.mark.tier("full")
def test_a_thread_that_a_function_leaves_behind_holds_nothing_up(run, backend):
    starts = "import threading, time\nthreading.Thread(target=time.sleep, args=[10**6]).start()\n"
    text = starts + "def f(x):\n    return x\n"
    result = run("check", "leaves.py", "--backends", backend, leaves=text)
    assert result.exit_code == 0, result.output


@pytest.mark.once
def test_an_interrupted_check_shows_what_it_measured(tmp_path, backend):
    text = "import time\n\ndef quick(x):\n    return x\n\ndef waits(x):\n    time.sleep(10**6)\n    return x\n"
    (tmp_path / "slow.py").write_text(text)
    command = [sys.executable, "-m", "multiop.cli", "check", "slow.py", "--backends", backend]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell lets what it runs behind ignore it
    options = {"cwd": tmp_path, "env": environment, "stdout": pipe, "stderr": pipe, "text": True, "preexec_fn": heed}
    with subprocess.Popen(command, **options) as process:
        for line in process.stderr:
            if "quick" in line:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "slow.py::quick" in out and "slow.py::waits" not in out
    assert f"interrupted: on {backend}, 1 of 2 checks were measured" in out
    assert out.strip().endswith("; interrupted")
    assert "Traceback" not in out + err


@pytest.mark.once
def test_a_package_of_one_file_is_checked(run, backend, tmp_path):
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "__init__.py").write_text("from ._constant import TWO\n\ndef f(x):\n    return x * TWO\n")
    (tmp_path / "alone" / "_constant.py").write_text("TWO = 2\n")
    result = run("check", "alone", "--backends", backend)
    assert result.exit_code == 0, result.output
    assert "alone/__init__.py::f" in result.stdout


@pytest.mark.parametrize("command", ["check", "port"])
def test_help_has_an_example(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert f"Example: multiop {command} " in result.stdout


@pytest.mark.once
def test_inputs_that_cannot_be_drawn_are_told(run, backend):
    text = "from multiop.testing import example_inputs, uniform\n\n@example_inputs(uniform(3, low=2.0, high=1.0))\n"
    result = run("check", "draws.py", "--backends", backend, draws=text + "def f(x):\n    return x\n")
    assert result.exit_code == 1
    assert f"value on {backend}: " in result.stdout
    assert "1 check in float64" in result.stdout
    assert "died" not in result.stdout


@pytest.mark.once
def test_an_error_of_the_function_is_told(run, backend):
    text = "def f(x):\n    return {}['missing']\n"
    result = run("check", "raises.py", "--backends", backend, raises=text)
    assert result.exit_code == 1
    assert "KeyError: 'missing'" in result.stdout
    assert "at raises.py, line 2" in result.stdout
    assert "Traceback" not in result.output


@pytest.mark.once
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import no_such_module_here\n",
            "cannot be imported: ModuleNotFoundError: No module named 'no_such_module_here'",
        ),
        ("raise SystemExit('bye')\n", "cannot be imported: SystemExit: bye"),
        ("x = 1\n", "it defines no public function"),
        ("def train(steps: int): ...\n", "no inputs can be drawn for train"),
    ],
)
def test_file_with_nothing_to_check(run, backend, text, message):
    result = run("check", "file.py", "--backends", backend, file=text)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.once
def test_function_that_is_not_there(run, backend):
    result = run("check", "good.py::sqare", "--backends", backend, good=GOOD)
    assert result.exit_code == 2
    assert "there is no function 'sqare'; there are: square, scaled" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "missing.py"], "there is no file missing.py"),
        (["check", "syntax.py"], "syntax.py, line 2: invalid syntax"),
        (["check", "folder"], "there are no Python files in folder"),
        (["check", "folder::f"], "folder is a folder"),
        (["check", "text.txt"], "text.txt is not a Python file"),
        (["check", "a b"], "there is no file a b"),
        (
            ["check", "fine.py", "--backends", "nunpy"],
            "unknown backend 'nunpy'; known backends: torch, jax, tensorflow, numpy",
        ),
        (["check", "fine.py", "--backends", ","], "names no backend"),
        (["check", "fine.py", "--dtype", "int8"], "--dtype must be one of"),
        (["check", "fine.py", "--seed", "-1"], "--seed must not be negative"),
        (["check", "fine.py", "--seed", "x"], "--seed"),
        (["check", "fine.py", "--timeout", "-1"], "--timeout must be"),
        (["check", "fine.py", "--timeout", "nan"], "--timeout must be"),
        (["check"], "PATH"),
        (["chek"], "chek"),
    ],
)
def test_wrong_command(run, tmp_path, arguments, message):
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.txt").write_text("hello")
    result = run(*arguments, syntax="x = 1\ndef f(:\n", fine="def f(x):\n    return x\n")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.output


def let_installed(monkeypatch, is_installed):
    """Make a backend installed if `is_installed(name)`, for multiop and for the command."""
    for module in ("multiop._loading.registry", "multiop.extend"):
        monkeypatch.setattr(f"{module}.is_installed", is_installed)


def test_backend_that_is_not_installed(run, monkeypatch):
    let_installed(monkeypatch, lambda name: name != "jax")
    result = run("check", "fine.py", "--backends", "jax", fine="def f(x):\n    return x\n")
    assert result.exit_code == 2
    assert "backend 'jax' is not installed; install it with: pip install 'multiop[jax]'" in result.stderr


def test_info():
    result = CliRunner().invoke(app, ["info"])
    assert result.exit_code == 0
    for name in ("torch", "jax", "tensorflow"):
        assert name in result.stdout
    assert f"{multiop.backend()} (" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("next: prove a function of yours with multiop check")
    assert not re.search(r" $", result.stdout, re.M)
    assert re.search(r"^fault of jax .*https://\S+$", result.stdout, re.M)  # one line, for grep


@pytest.mark.parametrize(
    ("installed", "variables", "told"),
    [
        (False, {"MULTIOP_BACKEND": "numpy"}, "next: prove .* multiop check FILE.*; pip install 'multiop\\[torch]'"),
        (True, {"MULTIOP_CONFIG": "~nouser/multiop.toml"}, "next: correct the setting marked wrong; "),
    ],
)
def test_info_says_what_to_do_next(monkeypatch, installed, variables, told):
    if not installed:
        let_installed(monkeypatch, lambda name: name == "numpy")
    result = CliRunner().invoke(app, ["info"], env={"COLUMNS": "200"} | variables)
    assert re.match(told, result.stdout.splitlines()[-1])


def test_info_shows_what_to_install(monkeypatch):
    """The pip command stands there whole, brackets included."""
    used = multiop.backend()
    let_installed(monkeypatch, lambda name: name == used)
    result = CliRunner().invoke(app, ["info"], env={"COLUMNS": "200"})
    missing = {"torch", "jax", "tensorflow"} - {used}
    assert all(f"not installed: pip install 'multiop[{name}]'" in result.stdout for name in missing)


def test_info_names_versions_that_were_not_tested(monkeypatch):
    monkeypatch.setattr("multiop.testing._results.version", lambda name: "99.1.2")
    result = CliRunner().invoke(app, ["info"], env={"COLUMNS": "200"})
    for name in multiop.available_backends():
        assert f"99.1.2, outside the tested versions: {name}>=" in result.stdout


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"MULTIOP_BACKEND": "nowhere"}, "wrong: .*nowhere"),
        ({"MULTIOP_FLOATX": "float7"}, "wrong: .*float7"),
        ({"MULTIOP_KERNELS": "some"}, "wrong: MULTIOP_KERNELS .*'some'"),
        ({"MULTIOP_CONFIG": "~nouser/multiop.toml"}, "wrong: .*nouser"),
    ],
)
def test_info_reports_a_wrong_setting_and_prints_the_rest(variables, told):
    environment = os.environ | {"COLUMNS": "300"} | variables
    done = subprocess.run(
        [sys.executable, "-m", "multiop.cli", "info"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 2
    assert re.search(told, done.stdout)
    assert "64-bit mode" in done.stdout and "kernels" in done.stdout
    assert "Traceback" not in done.stderr


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"multiop {multiop.__version__}\n")
    assert importlib.metadata.version("multiop") == multiop.__version__
    done = subprocess.run([sys.executable, "-m", "multiop", "--version"], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, result.stdout)


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow"])
def test_a_folder_named_like_a_framework_is_none(name, tmp_path, monkeypatch):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    found = importlib.machinery.PathFinder.find_spec(name, [str(tmp_path)])
    assert found is not None  # a namespace package
    monkeypatch.setattr("importlib.util.find_spec", lambda name: found)
    assert not multiop._loading.registry.is_installed(name)
    assert multiop.available_backends() == []


def test_help_says_what_the_exit_status_means():
    result = CliRunner().invoke(app, ["check", "--help"])
    assert result.exit_code == 0
    assert "Exit status" in result.stdout


def test_command_imports_no_framework():
    program = (
        "import sys, multiop.cli; print([m for m in ('torch', 'jax', 'tensorflow', 'pytest') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.strip() == "[]"


def test_the_tables_fit_a_terminal_of_80_columns_and_are_the_same_in_a_narrower_one(monkeypatch, capsys):
    cell = _report.Cell(_report.OK, 1e-16)
    cells = {which: dict.fromkeys(["tensorflow"], cell) for which in _report.PROPERTIES}
    report = _report.Report("mine.py", "f", "normal(3)", True, cells, "normal(3)")
    outcome = cli._Outcome([report], {"tensorflow": "2.21.0"}, {}, "float64", 0, 300.0, True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = []
    for width in ("80", "60"):
        monkeypatch.setenv("COLUMNS", width)
        cli._print_tables(outcome)
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert "  tensorflow  ok" in shown[0]
    assert "…" not in shown[0]
