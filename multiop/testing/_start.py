"""Start the process of `multiop check`, so that no file of the user's stands in for a module of Python's own.

It is run as a script, with `-P`; its arguments are folders to import from.
"""

from __future__ import annotations

import importlib
import os
import sys


def behind_the_library(folder: str) -> None:
    """Import from `folder` too: what the standard library lacks, and before what is installed."""
    library = os.path.dirname(os.__file__)
    own = [n for n, path in enumerate(sys.path) if path == library or os.path.basename(path) == "lib-dynload"]
    sys.path.insert(max(own, default=-1) + 1, folder)


if __name__ == "__main__":
    os.environ.setdefault("TORCH_CUSTOM_PYTHONPATH", os.pathsep.join(sys.path))  # of the processes PyTorch starts
    for folder in reversed(sys.argv[1:]):
        behind_the_library(folder)
    importlib.import_module("multiop.testing._worker").main()
