"""A plugin of pytest that runs autoray's own tests on `autoray_multiop`, in the place of its tables.

autoray's wheel has no tests; its source distribution has.

    pip download --no-deps --no-binary :all: autoray && tar xzf autoray-*.tar.gz
    export PYTHONPATH=$PWD/autoray-VERSION:FOLDER_OF_THIS_FILE MULTIOP_X64=1 MULTIOP_BACKEND=jax
    pytest -p autoray_tests autoray-VERSION/tests/test_autoray.py autoray-VERSION/tests/test_linalg.py

What autoray expects to fail on a framework, and passes here, does not count as a failure.
"""

from __future__ import annotations

import autoray_multiop

import multiop


def pytest_configure(config):
    """Put multiop in the place of autoray's table for the backend that is asked for."""
    multiop.enable_tensorflow_numpy()  # the tests multiply complex tensors by real ones
    if multiop.backend() == "numpy":
        multiop.set_floatx("float64")  # the tests ask for the dtype that NumPy gives by itself
    autoray_multiop.install(multiop.backend())


def pytest_collection_modifyitems(config, items):
    """Leave out the tests of other frameworks, which would compute as before; let an expected failure pass."""
    others = {"cupy", "dask", "jax", "mlx", "paddle", "sparse", "tensorflow", "torch"} - {multiop.backend()}
    kept = [item for item in items if not others & set(item.name.replace("]", "-").replace("[", "-").split("-"))]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
    for mark in (mark for item in items for mark in item.iter_markers("xfail")):
        mark.kwargs["strict"] = False
