"""A plugin of pytest that runs kymatio's own tests on `kymatio_multiop`, in the place of a framework's backends.

kymatio's tests are in its repository.

    git clone --branch 0.3.0 https://github.com/kymatio/kymatio
    export PYTHONPATH=$PWD/kymatio:FOLDER_OF_THIS_FILE MULTIOP_BACKEND=jax
    pytest -p kymatio_tests kymatio/tests

Some fail on kymatio's own backends too: they use names that SciPy and JAX have no more, or Keras's of before.
"""

from __future__ import annotations

import pathlib

import kymatio_multiop

import multiop

NAMES = {"jax": "jax", "keras": "tensorflow", "numpy": "numpy", "tensorflow": "tensorflow", "torch": "torch"}


def pytest_configure(config):
    """Put multiop in the place of kymatio's backends of the framework that is asked for."""
    kymatio_multiop.install(multiop.backend())


def pytest_ignore_collect(collection_path: pathlib.Path):
    """Leave out the files of other frameworks; those of none run on NumPy."""
    found = {NAMES[word] for word in collection_path.stem.split("_") if word in NAMES} or {"numpy"}
    return True if collection_path.suffix == ".py" and multiop.backend() not in found else None
