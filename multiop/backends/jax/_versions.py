"""Which versions of JAX are known.

Ops and transforms stand on JAX's public API alone. Custom gradients and the tape need parts that are not public: a
version that they were never tested on has them on the public API as far as that goes, see `_public`.
"""

from __future__ import annotations

import functools
import warnings

import jax

from multiop import _registry, errors

OLDEST = (0, 7, 0)

if jax.__version_info__ < OLDEST:
    raise errors.BackendError(
        f"the jax backend needs jax>={'.'.join(map(str, OLDEST))}, and {jax.__version__} is installed; "
        f"upgrade it with: pip install --upgrade 'multiop[jax]'"
    )


@functools.cache
def are_parts_known():
    """Say whether this JAX has the parts that custom gradients and the tape stand on; warn once if not."""
    if _registry.is_tested("jax", jax.__version__):
        return True
    tested = _registry.tested("jax")
    warnings.warn(
        f"jax {jax.__version__} is outside the versions that multiop was tested on ({tested}): custom gradients have "
        f"reverse mode alone, and GradientTape is not available",
        stacklevel=2,
    )
    return False


def unknown(what):
    """Return the error for `what` this version of JAX cannot do."""
    tested = _registry.tested("jax")
    return errors.UnsupportedError(
        f"{what} needs parts of JAX that are not public, and multiop does not know those of jax {jax.__version__}: "
        f"install a version that it was tested on, with: pip install '{tested}'"
    )
