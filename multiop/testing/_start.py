"""Start the process of `multiop check`, so that no user file shadows a module of the standard library.

It is run as a script, with `-P`; its arguments are the module to run and folders to import from.
"""

from __future__ import annotations

import importlib
import os
import sys


def add_import_folder(folder: str) -> None:
    """Add `folder` to the import path, after the standard library and before installed packages."""
    library = os.path.dirname(os.__file__)
    own = [n for n, path in enumerate(sys.path) if path == library or os.path.basename(path) == "lib-dynload"]
    sys.path.insert(max(own, default=-1) + 1, folder)


if __name__ == "__main__":
    os.environ.setdefault("TORCH_CUSTOM_PYTHONPATH", os.pathsep.join(sys.path))  # for the processes that PyTorch starts
    for folder in reversed(sys.argv[2:]):
        add_import_folder(folder)
    importlib.import_module(sys.argv[1]).main()
