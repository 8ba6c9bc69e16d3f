"""Functions of matrices whose values, where they can be read, save most of the work."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from ..conversion import is_tracked
from ..devices import is_at_hand
from ..ops.linalg import MOST_SQUARINGS, exponential, matrices, regular_det, squarings


def op_det(x, *, otherwise):
    """Differentiate determinants without singular values, where no matrix is singular."""
    x = matrices(x, square=True)
    is_regular = x.shape[-1] > 3 and is_tracked() and is_at_hand(x) and np.all(tf.linalg.det(tf.stop_gradient(x)))
    return regular_det(x) if is_regular else otherwise(x)


def op_expm(x, *, otherwise):
    """Square as often as the largest matrix asks."""
    x = matrices(x, square=True)
    if not (x.shape[-1] and is_at_hand(x)):
        return otherwise(x)
    wide = tf.cast(x, tf.complex128 if x.dtype.is_complex else tf.float64)
    times = squarings(wide)
    most = min(MOST_SQUARINGS, np.max(np.nan_to_num(times), initial=0))
    return tf.cast(exponential(wide, times, int(most)), x.dtype)
