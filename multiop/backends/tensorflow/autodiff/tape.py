"""The tape: TensorFlow's own, and the list of tapes that `gradients` can use."""

from __future__ import annotations

import threading
import weakref

import tensorflow as tf

from multiop import errors

from .. import _internals, _ranks, _versions
from ..conversion import convert

_local = threading.local()  # a thread uses the tapes that it entered


class Tape:
    def __init__(self, persistent, watch_accessed_variables):
        if _internals.missing is not None:
            raise _versions.unknown("GradientTape on TensorFlow")
        # always persistent: inside its block, `gradients` may use any tape any number of times
        self._tape = tf.GradientTape(persistent=True, watch_accessed_variables=watch_accessed_variables)
        self._stays, self._is_inside = persistent, False

    def __enter__(self):
        self._tape.__enter__()
        self._is_inside = True
        tapes = _tapes()
        tapes[:] = [tape for tape in tapes if tape() not in (None, self)] + [weakref.ref(self)]
        return self

    def __exit__(self, *exception):
        self._is_inside = False
        self._tape.__exit__(*exception)
        if not self._stays:
            _tapes()[:] = [tape for tape in _tapes() if tape() not in (None, self)]

    def concerns(self, ys):
        """Say whether it can differentiate `ys`: to a tape inside its block, an unknown tensor is a constant."""
        return self._is_inside or _internals.has_recorded(self._tape, ys)

    def watch(self, x):
        x = x if isinstance(x, tf.Variable) else convert(x)
        self._tape.watch(x)
        return x

    def gradient(self, targets, sources, output_gradients):
        return differentiate(self._tape.gradient, targets, sources, output_gradients)

    def gradient_parts(self, targets, sources, output_gradients):
        """Return, for each source, the very tensor that the backward pass computed."""
        found = self._tape.gradient(targets, sources, output_gradients)
        return [grad.values if isinstance(grad, tf.IndexedSlices) else grad for grad in found]

    def stop_recording(self):
        return self._tape.stop_recording()

    def reset(self):
        self._tape.reset()

    def watched_variables(self):
        return self._tape.watched_variables()


def differentiate(gradient, *args, **options):
    """Call a gradient function of TensorFlow; return dense gradients, `None` where unconnected."""
    try:
        found = gradient(*args, **options)
    except LookupError as error:
        if type(error) is LookupError:  # raised by the gradient registry
            raise errors.NoGradientError(str(error)) from error
        raise
    except (tf.errors.UnimplementedError, tf.errors.InvalidArgumentError) as error:
        if _ranks.is_refused(error):
            raise errors.UnsupportedError(_ranks.explain(error)) from error
        raise
    return [tf.convert_to_tensor(grad) if isinstance(grad, tf.IndexedSlices) else grad for grad in found]


def _tapes():
    """Return references to the tapes of this thread that `gradients` can use, in the order of entry."""
    if not hasattr(_local, "tapes"):
        _local.tapes = []
    return _local.tapes


def known_tapes():
    """Return the tapes of this thread that record or are persistent, in the order of entry."""
    return [tape for tape in (reference() for reference in _tapes()) if tape is not None]
