"""What of JAX can be used on the version at hand; which versions are tested is in `multiop/_loading/versions.py`.

Ops and transforms only use JAX's public API. Custom gradients and the tape need private parts: on a version that is
not of the level `whole`, or lacks some of them, they use the public API as far as it goes, see `_public`.
"""

from __future__ import annotations

import functools
import warnings

import jax

from multiop._loading import versions

versions.refuse_old("jax", jax.__version__)


@functools.cache
def are_parts_known():
    """Say whether this JAX is known to have the parts that custom gradients and the tape need; warn once if not."""
    level = versions.level("jax", jax.__version__)
    if level == "reverse":
        return False
    if level == "untested":
        told = versions.untested_message("jax", jax.__version__)
    else:
        try:
            from . import _internals  # noqa: F401
        except ImportError as error:  # a patch release may move them
            told = versions.lacking("jax", jax.__version__, error)
        else:
            return True
    warnings.warn(told + versions.REVERSE_MODE_ALONE, stacklevel=2)
    return False


def unknown(what):
    """Return the error for `what` this version of JAX cannot do."""
    return versions.unknown_parts("jax", "JAX", jax.__version__, what)
