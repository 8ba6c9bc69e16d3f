"""Warnings and errors for a TensorFlow whose private parts are missing or untested.

There, ops and transforms only use the public API, and so do custom gradients as far as it goes: see `_public`.
"""

from __future__ import annotations

import warnings

import tensorflow as tf

from multiop._loading import versions

from . import _internals

LACKS = versions.REVERSE_MODE_ALONE + ", and checkpoint saves no memory"


def warn_of_missing_parts():
    """Warn of what a tested TensorFlow without some private parts cannot do; the registry warns of other versions."""
    if _internals.missing is not None and _internals.IS_TESTED:
        warnings.warn(versions.lacking("tensorflow", tf.__version__, _internals.missing) + LACKS, stacklevel=2)


def unknown(what):
    """Return the error for `what` this version of TensorFlow cannot do."""
    return versions.unknown_parts("tensorflow", "TensorFlow", tf.__version__, what)
