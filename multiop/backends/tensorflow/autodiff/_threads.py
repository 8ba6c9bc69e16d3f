"""Tapes that record every thread: TensorFlow's own tapes only record the thread that entered them.

TensorFlow's eager code reaches the tapes of a thread through a few functions, looked up by name in one module. While a
tape of this package records, those names are bound to wrappers that add the tapes of other threads to this thread's.
The interpreter lock guards the tapes, as it does where one thread switches tapes.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from threading import get_ident

import tensorflow as tf

from multiop.errors import UnsupportedError

from .._internals import executing_eagerly, missing, operations_reported_to, passes_gradients, pywrap_tfe

_lock = threading.Lock()
_entered = ()  # (thread, tape) for each tape that records
_only = None  # the thread that entered them, if there is only one
_links = ()  # (thread, link) for each function that is notified of what other threads compute
_local = threading.local()


class Tape(tf.GradientTape):
    """TensorFlow's tape for every thread; persistent, so that other threads cannot write to what a gradient reads."""

    def __init__(self, watch_accessed_variables=False, is_first_order=False):
        """Make a tape; `is_first_order` says that no gradient is taken inside its block."""
        super().__init__(persistent=True, watch_accessed_variables=watch_accessed_variables)
        self.watches_accessed_variables, self.is_first_order = watch_accessed_variables, is_first_order
        self.inside = 0  # how many tapes and accumulators of this thread were entered after it and not left
        self.accumulators = 0  # how many of them are forward accumulators
        self.was_shared = False  # with another thread, while an accumulator was active

    def __enter__(self):
        is_shared = missing is None and executing_eagerly()  # otherwise it is TensorFlow's own, for one thread
        if is_shared and self.is_first_order:
            self.is_first_order = _OWN["TFE_Py_TapeSetIsEmpty"]()
        super().__enter__()
        if is_shared:
            with _lock:
                _set_entered((*_entered, (get_ident(), self)))
        return self

    def __exit__(self, *exception):
        with _lock:
            _set_entered(tuple([entry for entry in _entered if entry[1] is not self]))
        super().__exit__(*exception)

    def has_recorded(self, xs):
        """Say, after its block, whether it watched or recorded any of `xs`, or TensorFlow's tapes around do so now."""
        handles = [x.handle if isinstance(x, tf.Variable) else x for x in xs]
        return _call_with_tapes(_OWN["TFE_Py_TapeSetShouldRecordBackprop"], [self._tape], (handles,))


def _set_entered(entered):
    global _entered, _only
    if bool(entered) != bool(_entered):
        vars(pywrap_tfe).update(_SHARED if entered else _OWN)
    threads = {thread for thread, _ in entered}
    _entered, _only = entered, threads.pop() if len(threads) == 1 else None


def _tapes_of_others():
    """Return the tapes of other threads that must record what this thread does now."""
    if getattr(_local, "is_shared", False):  # they already record it
        return ()
    here = get_ident()
    others = [tape for thread, tape in _entered if thread != here and tape._tape is not None]
    for tape in others:
        tape.was_shared |= tape.accumulators > 0
    return [tape._tape for tape in others]


@contextmanager
def others_reported_to(link):
    """Call `link(inputs, outputs, op_type)` for operations of other threads that tapes of this one may record."""
    global _links
    entry = (get_ident(), link)
    with _lock:
        _links = (*_links, entry)
    try:
        yield
    finally:
        with _lock:
            _links = tuple([other for other in _links if other is not entry])


def _report(inputs, outputs, op_type):
    for thread, link in _links:
        if thread != get_ident():
            link(inputs, outputs, op_type)


def _report_operation(op_type, inputs, outputs):
    if passes_gradients(op_type):
        _report(inputs, outputs, op_type)


def _call_with_tapes(consult, tapes, args):
    """Return `consult(*args)` with `tapes` added to those of this thread."""
    _local.is_shared = True
    for tape in tapes:
        _OWN["TFE_Py_TapeSetAdd"](tape._tape)
    try:
        return consult(*args)
    finally:
        for tape in tapes:
            _OWN["TFE_Py_TapeSetRemove"](tape._tape)
        _local.is_shared = False


def _execute(*args):
    """Run an operation, recorded on the tapes of every thread."""
    if get_ident() == _only or not (tapes := _tapes_of_others()):
        return _OWN["TFE_Py_FastPathExecute"](*args)
    args = [_read(x) for x in args]
    with operations_reported_to(_report_operation) if _links else nullcontext():
        return _call_with_tapes(_OWN["TFE_Py_FastPathExecute"], tapes, args)


def _read(x):
    """Return operand `x` with variables read: otherwise the tapes of other threads would list them as variables."""
    if isinstance(x, tf.Variable):
        return x.value()
    return [_read(value) for value in x] if type(x) in (list, tuple) else x


def _consult(name):
    """Return TensorFlow's function `name`, which asks or notifies this thread's tapes, for every thread's tapes."""
    consult = getattr(pywrap_tfe, name)

    def consult_all(*args):
        if get_ident() == _only or not executing_eagerly() or not (tapes := _tapes_of_others()):
            return consult(*args)
        found = _call_with_tapes(consult, tapes, args)
        if _links and "RecordOperation" in name:  # a function call, or an operation with its own rule
            _report(args[2], args[1], None)
        elif _links and "RecordGradient" in name:
            _report_operation(args[0], args[1], args[3])
        return found

    return consult_all


def _possible_gradient_types(tensors):
    """Return which orders of gradients are possible: only the first if a single first-order tape records.

    TensorFlow assumes any order for a persistent tape, and then passes zeros to the intermediate results of a compiled
    function. That defeats a rule that avoids an infinity, since 0 times infinity is NaN
    (https://github.com/tensorflow/tensorflow/issues/60468).
    """
    found = _consult_types(tensors)
    if found != _ANY_ORDER or len(_entered) != 1 or not executing_eagerly():
        return found
    ((thread, tape),) = _entered
    return _FIRST_ORDER if tape.is_first_order and not tape.inside and thread == get_ident() else found


_MIXED = (
    "another thread computed with TensorFlow while a tf.autodiff.ForwardAccumulator recorded in a transform or tape "
    "of multiop's: TensorFlow then takes that tape for the inner one, and the gradient would be 0; wait for the other "
    "thread first, or use multiop.jvp (https://www.tensorflow.org/api_docs/python/tf/autodiff/ForwardAccumulator)"
)
_FIRST_ORDER, _ANY_ORDER = 1, 2  # TensorFlow's codes; 0 is none


def _count(name, change):
    """Return TensorFlow's function `name`, which enters or leaves a tape or accumulator; outer tapes then count it."""

    def enter_or_leave(*args):
        found = _OWN[name](*args)
        for thread, tape in _entered:
            if thread != get_ident() or tape._tape is None or tape._tape._tape in args:
                continue
            tape.inside += change
            if "Accumulator" in name:
                tape.accumulators += change
                if tape.was_shared:
                    tape.was_shared = False
                    raise UnsupportedError(_MIXED)
        return found

    return enter_or_leave


def _access(variable):
    """Notify the tapes of this thread that it reads a variable; if it has none, tapes of other threads watch it."""
    _OWN["TFE_Py_TapeVariableAccessed"](variable)
    if get_ident() == _only or not executing_eagerly() or not _OWN["TFE_Py_TapeSetIsEmpty"]():
        return
    for thread, tape in _entered:
        if thread != get_ident() and tape.watches_accessed_variables and tape._tape is not None:
            _call_with_tapes(pywrap_tfe.TFE_Py_TapeWatch, [tape._tape], (tape._tape._tape, variable.handle))


if missing is None:
    _consult_types = _consult("TFE_Py_TapeSetPossibleGradientTypes")
    _SHARED = {
        "TFE_Py_TapeSetPossibleGradientTypes": _possible_gradient_types,
        "TFE_Py_FastPathExecute": _execute,
        "TFE_Py_TapeVariableAccessed": _access,
        "TFE_Py_TapeSetNew": _count("TFE_Py_TapeSetNew", 1),
        "TFE_Py_TapeSetAdd": _count("TFE_Py_TapeSetAdd", 1),
        "TFE_Py_TapeSetRemove": _count("TFE_Py_TapeSetRemove", -1),
        "TFE_Py_ForwardAccumulatorSetAdd": _count("TFE_Py_ForwardAccumulatorSetAdd", 1),
        "TFE_Py_ForwardAccumulatorSetRemove": _count("TFE_Py_ForwardAccumulatorSetRemove", -1),
        **{
            name: _consult(name)
            for name in (
                "TFE_Py_RecordGradient",
                "TFE_Py_TapeSetIsEmpty",
                "TFE_Py_TapeSetRecordOperation",
                "TFE_Py_TapeSetRecordOperationBackprop",
                "TFE_Py_TapeSetShouldRecordBackprop",
            )
        },
    }
    _OWN = {name: getattr(pywrap_tfe, name) for name in _SHARED}
