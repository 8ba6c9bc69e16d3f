"""Several devices and processes, on the frameworks' own engines: the same answers as one, with their collectives."""

import importlib.metadata
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "distributed"

LIMIT = 1500  # seconds; the longest program takes 150 of a processor, which it may have to share
pytestmark = [  # `nox -s full -- --part distributed`
    pytest.mark.tier("full"),
    pytest.mark.cross,
    pytest.mark.timeout(LIMIT + 60),
]


def run(*command, **variables):
    paths = os.pathsep.join([str(HERE.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"} | variables
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def version(name):
    return Version(importlib.metadata.version(name))


def needed(name):
    framework = pytest.importorskip(name)
    if name == "jax" and not (hasattr(framework, "set_mesh") and hasattr(framework, "shard_map")):
        pytest.skip("this JAX lacks jax.set_mesh or jax.shard_map")


PROGRAMS = {  # how many comparisons each makes, at the least
    "jax": (600, {"JAX_NUM_CPU_DEVICES": "4", "JAX_PLATFORMS": "cpu"}),
    "torch": (200, {}),
    "tensorflow": (40, {}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_several_devices_agree_with_one(name):
    needed(name)
    least, variables = PROGRAMS[name]
    found = run(str(HERE / f"{name}_program.py"), free_port(), MULTIOP_BACKEND=name, **variables)
    # a DTensor of PyTorch before 2.12 lacks operations, which is an error: docs/versions.md
    is_partial = name == "torch" and version(name) < Version("2.12")
    failures = ("differs: ",) if is_partial else ("differs: ", "raises: ")
    least = 120 if is_partial else least
    lines = [line for line in found.splitlines() if line.startswith(failures)]
    assert not lines, "\n".join(lines)
    assert int(re.search(r"agree: (\d+)", found)[1]) >= least


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_examples_curves_are_those_of_one_device(name):
    needed(name)
    pytest.importorskip("sklearn")
    if name == "torch" and version(name) < Version("2.9"):
        pytest.skip("FSDP2 adds gradients up on CPUs: https://github.com/pytorch/pytorch/issues/162338")
    script = [str(EXAMPLES / f"digits_{name}.py"), "--steps", "60"]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", free_port()]
    found = run(*(launch if name == "torch" else []), *script)
    rows = [line.split() for line in found.splitlines() if re.match(r" *(step|\d+) ", line)]
    ways, *numbers = rows
    assert len(ways) == {"jax": 5, "torch": 5, "tensorflow": 3}[name] and len(numbers) == 6
    for _, one, *others in numbers:
        for way, value in zip(ways[2:], others, strict=True):
            assert float(value) == pytest.approx(float(one), rel=2e-5), way
    assert float(numbers[-1][1]) < 0.1
