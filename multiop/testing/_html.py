"""The results of the shared suite as one self-contained HTML file."""

from __future__ import annotations

import dataclasses
import json
from importlib import resources

import numpy as np

from . import _results
from ._divergences import DIVERGENCES, told
from ._results import Results


def page(results: Results) -> str:
    """Return the page."""
    data = {
        "packages": results.packages,
        "backends": results.backends,
        "properties": list(_results.PROPERTIES.values()),
        "cases": [dataclasses.asdict(results.cases[key]) for key in sorted(results.cases)],
        "tests": {what: test for test, what in _results.PROPERTIES.items()},
        "divergences": [
            {
                "title": one.title,
                "ours": told(np.asarray(one.answer)),
                "spelled": one.ours,
                "natives": results.natives[one.title],
            }
            for one in DIVERGENCES
            if one.title in results.natives
        ],
    }
    text = json.dumps(data).replace("<", "\\u003c")  # otherwise a message could end the script
    return (resources.files(__package__) / "report.html").read_text(encoding="utf-8").replace("/*DATA*/ null", text)
