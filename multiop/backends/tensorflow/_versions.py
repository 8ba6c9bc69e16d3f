"""Whether this TensorFlow has the parts that are not public and that custom gradients and the tape stand on.

Ops and transforms stand on the public API alone where it has not.
"""

from __future__ import annotations

import functools
import warnings

import tensorflow as tf

from multiop import _registry, errors

from . import _internals


@functools.cache
def are_parts_known():
    """Say whether this TensorFlow has the parts that custom gradients and the tape stand on; warn once if not."""
    if _internals.missing is None:
        return True
    warnings.warn(
        f"tensorflow {tf.__version__} lacks parts that multiop needs ({_internals.missing}): custom gradients and "
        f"GradientTape are not available, checkpoint saves no memory, and transforms differentiate only what their own "
        f"thread computes; the versions that multiop was tested on are {_registry.tested('tensorflow')}",
        stacklevel=2,
    )
    return False


def unknown(what):
    """Return the error for `what` this version of TensorFlow cannot do."""
    return errors.UnsupportedError(
        f"{what} needs parts of TensorFlow that are not public, and tensorflow {tf.__version__} lacks one "
        f"({_internals.missing}): install a version that multiop was tested on, with: "
        f"pip install '{_registry.tested('tensorflow')}'"
    )
