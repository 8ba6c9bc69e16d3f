"""The results of the shared suite: collected under pytest, and kept as JSON.

    pytest --pyargs multiop.testing --multiop-backends=torch --multiop-results=results.json

A second run adds to the file: other backends, other cases, or the same cases again. So the suite can be run in parts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
from pathlib import Path

import multiop
from multiop import extend

# test of the shared suite -> the property that it proves
PROPERTIES = {
    "test_value": "value",
    "test_gradient": "gradient",
    "test_complex_gradient": "complex gradient",
    "test_second_order": "second order",
    "test_forward_mode": "forward mode",
    "test_vmap": "vmap",
    "test_compiled": "compiled",
    "test_pinned": "pinned answers",
}
_LARGEST = 1 << 28  # maximum size in bytes of a results file
PASSED, FAILED, KNOWN = "passed", "failed", "known failure"


@dataclasses.dataclass(frozen=True)
class Result:
    """The outcome of one test of the shared suite.

    Attributes:
        op: The op's name.
        backend: The backend's name.
        what: What was checked, one of the values of `PROPERTIES`.
        case: The dtype, the pinned input, or which calls were compiled; empty if a property is checked once.
        outcome: `passed`, `failed` or `known failure`.
        ulps: The largest error in units in the last place; `None` if none was measured.
        message: What is wrong, or why it is known to fail.
        error: The largest relative error of a case that failed, if numbers differ.
        allowed: How large it may be.
    """

    op: str
    backend: str
    what: str
    case: str
    outcome: str
    ulps: float | None = None
    message: str = ""
    error: float | None = None
    allowed: float | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What was tested."""
        return self.op, self.backend, self.what, self.case


@dataclasses.dataclass
class Results:
    """The outcomes of one or more runs, and the versions that were tested."""

    versions: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)  # backend -> package -> its version
    cases: dict[tuple[str, str, str, str], Result] = dataclasses.field(default_factory=dict)

    def add(self, result: Result) -> None:
        """Add one outcome."""
        self.cases[result.key] = result

    @property
    def backends(self) -> list[str]:
        """The names of the backends, in order."""
        return sorted({result.backend for result in self.cases.values()})

    def write(self, path: Path) -> None:
        """Write the outcomes to `path`, and keep those already there for the same versions.

        A case replaces its own earlier outcome; other cases stay. Outcomes of a backend that was tested in another
        version, or with another multiop, are dropped.
        """
        merged = read(path) if path.is_file() else Results()
        for backend in self.versions:
            if merged.versions.get(backend) != self.versions[backend]:
                merged.drop(backend)
        merged.versions |= self.versions
        merged.cases |= self.cases
        cases = [dataclasses.asdict(merged.cases[key]) for key in sorted(merged.cases)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"versions": merged.versions, "cases": cases}, indent=1), encoding="utf-8")

    def drop(self, backend: str) -> None:
        """Forget everything about one backend."""
        self.versions.pop(backend, None)
        self.cases = {key: one for key, one in self.cases.items() if one.backend != backend}


def read(path: Path) -> Results:
    """Read what `Results.write` wrote.

    Raises:
        ValueError: The file is something else.
    """
    if path.exists() and not path.is_file():  # reading from a pipe or device may never end
        raise ValueError(f"{path} holds no results of the suite: it is not a regular file")
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"it has more than {_LARGEST} bytes")
        stored = json.loads(path.read_text(encoding="utf-8-sig"))
        if not isinstance(stored, dict) or not {"versions", "cases"} <= stored.keys():
            raise TypeError("it has no versions and cases, so another tool wrote it")
        results = Results(_names(stored["versions"]))
        for case in stored["cases"]:
            results.add(_check_outcome(Result(**case)))
    except RecursionError as error:
        raise ValueError(f"{path} holds no results of the suite: it is nested too deeply") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no results of the suite: {error}") from error
    return results


def _names(stored: object) -> dict[str, dict[str, str]]:
    """Check and return a mapping from name to name to text, as read."""
    if not isinstance(stored, dict) or not all(isinstance(inner, dict) for inner in stored.values()):
        raise TypeError("an object of objects is expected")
    if not all(isinstance(text, str) for inner in stored.values() for text in inner.values()):
        raise TypeError("a text is expected")
    return stored


def _check_outcome(case: Result) -> Result:
    texts = (case.op, case.backend, case.what, case.case, case.outcome, case.message)
    if not all(isinstance(text, str) for text in texts) or case.outcome not in (PASSED, FAILED, KNOWN):
        raise TypeError(f"this is not an outcome of a case: {case}"[:200])
    for name in ("ulps", "error", "allowed"):
        if (number := getattr(case, name)) is not None and not isinstance(number, (int, float)):
            raise TypeError(f"{name} must be a number, got {number!r}"[:200])
    return case


_UNKNOWN = "version unknown"


def version(backend: str) -> str:
    """Return the version of the package behind a backend, or of multiop itself."""
    package = extend.BUILT_IN[backend][1] if backend in extend.BUILT_IN else backend
    for distribution in (package, f"{package}-cpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(distribution)
    if extend.is_package(package):  # as tf-nightly is; to ask whose a package is takes a second
        for distribution in importlib.metadata.packages_distributions().get(package, ()):
            return importlib.metadata.version(distribution)
    return _UNKNOWN


def is_unknown(version: str) -> bool:
    """Say whether `version` found none."""
    return version == _UNKNOWN


def own_version() -> str:
    """Return multiop's version with a digest of its source, since the version alone does not identify the source."""
    digest = hashlib.sha256()
    folder = Path(multiop.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return f"{version('multiop')} (source {digest.hexdigest()[:8]})"
