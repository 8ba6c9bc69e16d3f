"""Which versions of each framework are tested, what works on the others, and what is said of them."""

from __future__ import annotations

import re
from typing import NamedTuple

from multiop import errors
from multiop._loading.built_in import BUILT_IN


class Versions(NamedTuple):
    """Where each level begins among the versions of a framework, see docs/versions.md.

    Attributes:
        reverse: The first that is not refused. Custom gradients have reverse mode alone, on public API.
        whole: The first on which everything works.
        end: The first that the suite was never run on. It is taken for one of the level `reverse`, with a warning.
    """

    reverse: tuple[int, ...]
    whole: tuple[int, ...]
    end: tuple[int, ...]


VERSIONS = {
    "torch": Versions(reverse=(2, 6), whole=(2, 6), end=(2, 16)),
    "jax": Versions(reverse=(0, 5, 3), whole=(0, 5, 3), end=(0, 13)),
    "tensorflow": Versions(reverse=(2, 18), whole=(2, 18), end=(2, 22)),
    "numpy": Versions(reverse=(2, 0), whole=(2, 0), end=(2, 6)),
}


def level(name: str, version: str) -> str:
    """Return what works on `version` of the framework of a backend: "refused", "reverse", "whole", or "untested"."""
    versions = VERSIONS[name]
    numbers = tuple(map(int, re.findall(r"\d+", version)[:3]))
    begins = {"refused": (0, 0), "reverse": versions.reverse, "whole": versions.whole, "untested": versions.end}
    return [level for level, first in begins.items() if first <= numbers][-1]


def is_whole(name: str, version: str) -> bool:
    """Say whether `version` of the framework of a backend is one that everything works on."""
    return level(name, version) == "whole"


def refuse_old(name: str, version: str) -> None:
    """Raise if `version` of the framework of a backend is too old."""
    if level(name, version) == "refused":
        oldest = ".".join(map(str, VERSIONS[name].reverse))
        raise errors.BackendError(
            f"the {name} backend needs {BUILT_IN[name][1]}>={oldest}, and {version} is installed; upgrade it with: "
            f"{BUILT_IN[name][2].replace('install', 'install --upgrade')}"
        )


def tested_requirement(name: str) -> str:
    """Return the versions that everything works on, as a requirement for pip."""
    _, oldest, newest = (".".join(map(str, version)) for version in VERSIONS[name])
    return f"{BUILT_IN[name][1]}>={oldest},<{newest}"


def untested_message(name: str, version: str) -> str:
    """Return the message about a version that the suite was never run on."""
    return f"{name} {version} is outside the versions that multiop was tested on ({tested_requirement(name)})"


def lacking(name: str, version: str, missing: object) -> str:
    """Return the message about a tested version without some of the private parts that it should have."""
    return (
        f"{name} {version} lacks parts that multiop needs ({missing}), unlike the versions that it was tested on "
        f"({tested_requirement(name)})"
    )


# the end of those messages for a backend that then has custom gradients on its framework's public API
REVERSE_MODE_ALONE = ": custom gradients have reverse mode alone, and GradientTape is not available"


def unknown_parts(name: str, title: str, version: str, what: str) -> errors.UnsupportedError:
    """Return the error for `what`, which needs parts of the framework that are not known on this version."""
    return errors.UnsupportedError(
        f"{what} needs parts of {title} that are not public, and multiop does not know those of {name} {version}: "
        f"install a version that it was tested on, with: pip install '{tested_requirement(name)}'"
    )
