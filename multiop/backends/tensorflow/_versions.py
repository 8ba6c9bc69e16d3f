"""Whether this TensorFlow has the parts that are not public and that custom gradients and the tape stand on.

Ops and transforms stand on the public API alone where it has not.
"""

from __future__ import annotations

import warnings

import tensorflow as tf

from multiop import _registry, errors

from . import _internals


def warn_of_missing_parts():
    """Say what a TensorFlow cannot do that lacks parts which custom gradients and the tape stand on."""
    if _internals.missing is None:
        return
    warnings.warn(
        f"tensorflow {tf.__version__} lacks parts that multiop needs ({_internals.missing}): custom gradients and "
        f"GradientTape are not available, checkpoint saves no memory, and transforms differentiate only what their own "
        f"thread computes; the versions that multiop was tested on are {_registry.tested('tensorflow')}",
        stacklevel=2,
    )


def unknown(what):
    """Return the error for `what` this version of TensorFlow cannot do."""
    return errors.UnsupportedError(
        f"{what} needs parts of TensorFlow that are not public, and tensorflow {tf.__version__} lacks one "
        f"({_internals.missing}): install a version that multiop was tested on, with: "
        f"pip install '{_registry.tested('tensorflow')}'"
    )
