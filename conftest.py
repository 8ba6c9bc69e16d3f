"""Options and fixtures of the whole test suite."""

from __future__ import annotations

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import collections
import datetime
import functools
import gc
import importlib
import importlib.util
import itertools
import sys
import threading
import traceback
import types
import zlib
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent / "tests" / "tables"))  # another suite's run has not this project's settings
from recorded import APART, Record, part_of

from multiop.extend import BUILT_IN
from multiop.testing._tiers import asked_backends, asked_tier

FINISHED = itertools.count(1)
COLLECTED = pytest.StashKey()
CONTEXTS = threading.local()  # of MLIR, in which JAX lowers a program
# XLA has fewer digits where nothing is fused, as in a hasty run; test_cbrt_keeps_its_digits has these numbers, too
DIGITS_BY_FUSION = {"test_pinned[jax-op_cbrt-1]"}
pytest_plugins = ["multiop.testing.plugin"]


def pytest_addoption(parser):
    if not importlib.util.find_spec("pytest_timeout"):  # as on a machine that has a framework and pytest alone
        parser.addini("timeout", "after how many seconds pytest-timeout ends a test")
    parser.addoption("--backends", dest="multiop_backends", default=None, help="the same as --multiop-backends")
    parser.addoption("--tier", dest="multiop_tier", default=None, help="the same as --multiop-tier")
    parser.addoption(
        "--hasty",
        action="store_true",
        help="run what PyTorch traces without its compiler, and leave out the tests marked `compiler`",
    )
    parser.addoption(
        "--part", action="append", choices=["core", *APART], help="collect a part of the suite alone, or several"
    )
    parser.addoption(
        "--week", default=None, help="run the turns of a week, such as 2026-W48, of `this` one, or of `every` week"
    )
    parser.addoption("--record", type=Path, metavar="PATH", help="write the core seconds of each test function to PATH")
    parser.addoption(
        "--as-tested", action="store_true", help="take whichever version is installed for one that everything works on"
    )
    parser.addoption("--versions-table", type=Path, metavar="PATH", help="add this run to docs/tables/versions.csv")
    parser.addoption(
        "--failures", type=Path, metavar="PATH", help="add each failure to PATH as it happens, a line for each"
    )
    parser.addoption("--alarms", action="store_true", help="look for false alarms in 200 functions at 20 seeds")


def pytest_configure(config):
    for name in ("torch", "triton"):  # they must come before TensorFlow in one process
        if runs_tests(config) and importlib.util.find_spec(name):
            importlib.import_module(name)
    asked = " ".join([*config.args, *(config.getoption("part") or ())])
    if runs_tests(config) and "not cross" not in config.option.markexpr and "porting" not in asked:
        os.environ.setdefault("KERAS_BACKEND", "numpy")  # for the fixture `keras`, before a test imports it
    config.addinivalue_line("markers", "tier(name): in these tests, short for `multiop_tier`, the plugin's")
    config.addinivalue_line("markers", "slow_on(**params): left to the full tier where the test has these parameters")
    config.addinivalue_line(
        "markers", "once: does not depend on the backend, so that outside the full tier one backend is enough"
    )
    if not config.pluginmanager.hasplugin("timeout"):
        config.addinivalue_line("markers", "timeout(seconds): when pytest-timeout, which is not here, ends the test")
    config.addinivalue_line("markers", "rotating: outside the full tier, each case runs one week in three")
    if config.getoption("week") is None:  # the processes of pytest-xdist are given it
        config.option.week = "this" if config.args_source is config.ArgsSource.TESTPATHS else "every"
    if config.getoption("week") == "this":
        config.option.week = "{}-W{:02}".format(*datetime.date.today().isocalendar()[:2])
    try:
        count_weeks(config.getoption("week"))
    except ValueError:
        raise pytest.UsageError(
            f"--week must be this, every, or a week such as 2026-W48; got {config.getoption('week')!r}"
        ) from None
    config.addinivalue_line("markers", "traced: about compiled or mapped code that does not know values")
    config.addinivalue_line("markers", "compiler: about what the framework's own compiler makes of a program")
    config.addinivalue_line(
        "markers", "whole: about the collected tests themselves, so left out where a part is collected"
    )
    if config.getoption("as_tested"):
        from multiop._loading.versions import VERSIONS

        for name, levels in VERSIONS.items():
            VERSIONS[name] = levels._replace(reverse=(0, 0), whole=(0, 0), end=(9999, 0))
    if config.getoption("record") is not None:
        config.pluginmanager.register(Record(*map(config.getoption, ("record", "part", "hasty"))))
    if config.getoption("failures") is not None and not hasattr(config, "workerinput"):
        from failures import Failures

        config.pluginmanager.register(Failures(config.getoption("failures")))
    if not hasattr(config, "workerinput"):
        from progress import Progress

        config.pluginmanager.register(Progress())
    if config.getoption("versions_table") is not None:
        from version_table import VersionTable

        (name,) = config.getoption("multiop_backends").split(",")
        config.pluginmanager.register(VersionTable(config.getoption("versions_table"), name))


def runs_tests(config):
    """Say whether a process runs tests itself: that which only gives them to pytest-xdist's needs no framework."""
    return hasattr(config, "workerinput") or not config.getoption("numprocesses", None)


def pytest_ignore_collect(collection_path, config):
    """Leave out the files of other parts than those that are asked for."""
    asked = config.getoption("part")
    is_test = collection_path.suffix == ".py" and collection_path.name.startswith("test_")
    return True if asked and is_test and part_of(collection_path) not in asked else None


# tests of tools, which the default tier runs on the frameworks, and on NumPy where no other backend is asked for
TOOLS = (
    "test_cli",
    "test_examples",
    "test_import_cost",
    "test_package",
    "test_programs",
    "test_toy",
    "test_version_table",
)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc):
    """Drop the cases of the full tier before they are built, unless some are asked for by name: they are a third."""
    yield
    config, test = metafunc.config, metafunc.definition
    if asked_tier(config) == "full" or any("::" in argument for argument in config.args):
        return
    every, own = metafunc._calls, test.own_markers
    around = [mark for node in reversed(test.listchain()[:-1]) for mark in node.own_markers]
    found = [
        case
        for case in every
        if not is_left_to_full(
            test.path, f"{test.nodeid}[{case.id}]", case.params, [*own, *case.marks, *around], config
        )
    ]
    metafunc._calls = found or every[:1]  # pytest needs one, which is then left out


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave to the full tier all backends but one of what depends on none; in a hasty run, leave out the compilers."""
    names = asked_backends(config)
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        marks = list(item.iter_markers())
        tier = next((mark.args for mark in marks if mark.name == "tier"), None)
        if is_left_to_full(item.path, item.nodeid, params, marks, config):
            tier = ("full",)
        if tier is not None:
            item.add_marker(pytest.mark.multiop_tier(*tier))
        if item.name in DIGITS_BY_FUSION:
            item.add_marker(pytest.mark.compiler)
    device = config.getoption("multiop_device")
    if device is not None and not device.startswith("cpu"):
        from elsewhere_table import LOST, reason

        for item in items:
            if found := reason(item.name):
                item.add_marker(pytest.mark.xfail(reason=found, strict=True, run=found != LOST))
    config.stash[COLLECTED] = what_is_proven(items, names)
    part = config.args_source is not config.ArgsSource.TESTPATHS or config.getoption("ignore")
    apart = ["whole"] * bool(part)
    apart += ["compiler"] * config.getoption("hasty")
    left_out = {item for item in items if any(map(item.get_closest_marker, apart))}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def is_left_to_full(path, nodeid, params, marks, config):
    """Say whether the full tier alone has a case: by its marks, of tools on NumPy, or since it is not its week."""
    names, backend = asked_backends(config), params.get("multiop_backend")
    of_tools = path.parent.name in ("porting", "testing") or path.stem.startswith(TOOLS)
    if of_tools and backend == "numpy" and len(names) > 1:  # of that tier, it has two minutes
        return True
    fastest = next((name for name in ("numpy", "jax")[of_tools:] if name in names), names[0])  # to start
    for mark in marks:
        if mark.name == "once" and backend != fastest:
            return True
        if mark.name == "slow_on" and all(params.get(name) == value for name, value in mark.kwargs.items()):
            return True
    if takes_turns(path, nodeid, params, marks) and not is_in_turn(nodeid, backend, config.getoption("week")):
        return True
    return next((mark.args[0] for mark in marks if mark.name == "tier"), None) == "full"


def takes_turns(path, nodeid, params, marks):
    """Say whether a case runs on NumPy each week, and on one of the frameworks.

    So does what is written once for all of them, but for the sentences of the contract: composites, and the tests that
    the backends share; and what is marked `rotating`.
    """
    names, backend = {mark.name for mark in marks}, params.get("multiop_backend")
    if "rotating" in names:
        return True
    if names & {"construct", "once", "whole"}:
        return False
    if path.stem == "test_conformance" and "op" in params:
        from multiop.testing.test_suite import ROWS, _is_primitive, _native

        op, usual = params["op"], (_native(ROWS[params["op"]]), "bfloat16")  # the latter of a composite runs on one
        is_usual = "::test_value[" in nodeid and params["dtype"] in usual
        return not is_usual and not any(_is_primitive(op, name) for name in (backend and [backend]) or BUILT_IN)
    return backend is not None and path.parent.name in SHARED


SHARED = ("autodiff", "ops", "porting", "testing")  # folders of such tests


def is_in_turn(nodeid, backend, week):
    """Say whether a case has its turn in a week: on one framework of three, on each after three weeks."""
    if week == "every" or backend == "numpy":
        return True
    turn = list(BUILT_IN).index(backend) if backend in BUILT_IN else 0  # whichever others are asked for
    return (zlib.crc32(nodeid.replace(f"[{backend}", "[").encode()) + turn + count_weeks(week)) % 3 == 0


def count_weeks(week):
    """Return the number of a week, such as 2026-W48, since the calendar began; that of `every` week is 0."""
    year, _, number = week.partition("-W")
    return 0 if week == "every" else datetime.date.fromisocalendar(int(year), int(number), 1).toordinal() // 7


def pytest_report_header(config):
    return f"tests that take turns, of the week: {config.getoption('week')}"


def what_is_proven(items, names):
    """Return the number of tests in each tier, and what those of the default tier are about."""
    from multiop.testing._tiers import TIERS
    from multiop.testing.plugin import tier_of

    found = collections.defaultdict(set)
    tiers = collections.Counter()
    for item in items:
        tier = tier_of(item)
        tiers[tier] += 1
        if tier == "full":
            continue
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        backend = parameters.get("multiop_backend")
        if "op" in parameters:
            found["ops", backend].add((parameters["op"], item.originalname, parameters.get("dtype", "")))
        construct = item.get_closest_marker("construct")
        if construct is not None:
            found["contract"].add((construct.args[0], construct.kwargs.get("only") or backend))
    sizes = itertools.accumulate(tiers[name] for name in TIERS)
    return found | {"sizes": dict(zip(TIERS, sizes, strict=True)), "backends": names}


@pytest.fixture
def collected(pytestconfig):
    """What the tests that were collected prove, by tier."""
    return pytestconfig.stash[COLLECTED]


@pytest.fixture
def backend(multiop_backend):
    """Run the test with this backend active; the value is the backend's name."""
    return multiop_backend


@pytest.fixture(scope="session", autouse=True)
def _without_torch_compiler(pytestconfig):
    """In a hasty run, make PyTorch run traced code without compiling it: its compiler takes seconds each time."""
    from multiop.testing._shared_process import without_torch_compiler

    with without_torch_compiler(pytestconfig.getoption("hasty")):
        yield


@pytest.fixture(scope="session", autouse=True)
def _without_notes_of_torch(_without_torch_compiler):
    """Keep PyTorch from what it notes of each program for a line of a log, or for an error of its own.

    It times the guards, for which it empties the processor's caches (30 ms), and walks the stack at each step traced.
    """
    without_stacks = types.SimpleNamespace(**vars(traceback) | {"extract_stack": list})
    parts = {"_dynamo.guards": ("profile_guard_manager", lambda *_: 0.0)}
    parts |= {"_subclasses.fake_tensor": ("traceback", without_stacks)}
    with pytest.MonkeyPatch.context() as patch:
        for name, (part, instead) in parts.items():
            if module := sys.modules.get(f"torch.{name}"):
                patch.setattr(module, part, instead, raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _without_stacks_of_tensorflow(pytestconfig):
    """In the core, let TensorFlow note one place for all operations of graphs: each walks the stack for its own."""
    ops = sys.modules.get("tensorflow.python.framework.ops")
    with pytest.MonkeyPatch.context() as patch:
        if ops is not None and pytestconfig.getoption("part") == ["core"]:  # the porter's tests read such places
            once = functools.cache(ops.tf_stack.extract_stack)
            patch.setattr(ops, "tf_stack", types.SimpleNamespace(extract_stack=once))
        yield


@pytest.fixture(scope="session", autouse=True)
def _with_one_context(pytestconfig):
    """In a hasty run, lower JAX's programs in one MLIR context for each thread: to make one is a fifth of the time."""
    is_there = "jax" in asked_backends(pytestconfig) and importlib.util.find_spec("jax")
    if not (pytestconfig.getoption("hasty") and is_there):
        yield
        return
    mlir = importlib.import_module("jax._src.interpreters.mlir")
    make = mlir.make_ir_context

    def make_once():
        if not hasattr(CONTEXTS, "context"):
            CONTEXTS.context = make()
        return CONTEXTS.context

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlir, "make_ir_context", make_once)
        yield


def pytest_runtest_setup(item):
    """Skip what is about code without values where all code has them."""
    if item.get_closest_marker("traced"):
        name = item.callspec.params["multiop_backend"]
        if name == "numpy":
            pytest.skip(f"{name} runs Python code on values, under jit and vmap too")


def pytest_collection_finish():
    """Collect garbage rarely, and leave out what is there by now: it took a fifth of the time."""
    leave_out_of_collections()
    gc.set_threshold(50_000, 50, 100)


def pytest_sessionfinish():
    """Collect once what is there: pytest does it five times at the end, for what objects raise when they go."""
    leave_out_of_collections()


def leave_out_of_collections():
    gc.collect()
    gc.freeze()


@pytest.fixture
def young_heap():
    """Let the collector, and `gc.get_objects`, see only what the test makes: the rest is a million objects."""
    leave_out_of_collections()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item):
    """Drop what the frameworks have compiled, once in 4,000 tests: they grow by gigabytes; end what lost its device.

    After an index out of range, all that PyTorch does on a GPU fails until the process ends.
    """
    if not (item.config.getoption("multiop_device") or "cpu").startswith("cpu") and "torch" in sys.modules:
        try:
            sys.modules["torch"].accelerator.synchronize()
        except RuntimeError as error:
            sys.__stderr__.write(f"{item.nodeid} lost the device: {error}\n")
            os._exit(1)  # pytest-xdist names the test, and goes on in a new process
    if next(FINISHED) % 4000 == 0:
        if "jax" in sys.modules:
            sys.modules["jax"].clear_caches()
            CONTEXTS.__dict__.clear()
        if "torch._dynamo" in sys.modules:
            sys.modules["torch"].compiler.reset()
        leave_out_of_collections()
