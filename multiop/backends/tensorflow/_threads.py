"""Tapes that record every thread: TensorFlow's own record what the thread that entered them computes, and no other.

What a thread computes eagerly reaches its tapes through a few functions of TensorFlow, by their names in one module.
While a tape of this package records, those names stand for the same functions, called with the tapes of other threads
among those of this one. The lock of the interpreter guards the tapes, as it does where one thread switches tapes.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext
from threading import get_ident

import tensorflow as tf

from ._internals import executing_eagerly, missing, operations_reported_to, passes_gradients, pywrap_tfe

_lock = threading.Lock()
_entered = ()  # (thread, tape) for each tape that records
_only = None  # the thread that entered all of them, where it is one
_links = ()  # (thread, link) for each function that is told what other threads compute
_local = threading.local()


class Tape(tf.GradientTape):
    """TensorFlow's tape, for every thread; persistent, so that another thread cannot write to what a gradient reads."""

    def __init__(self, watch_accessed_variables=False):
        super().__init__(persistent=True, watch_accessed_variables=watch_accessed_variables)
        self.watches_accessed_variables = watch_accessed_variables

    def __enter__(self):
        super().__enter__()
        if missing is None and executing_eagerly():  # else it is TensorFlow's, for one thread
            with _lock:
                _set_entered((*_entered, (get_ident(), self)))
        return self

    def __exit__(self, *exception):
        with _lock:
            _set_entered(tuple([entry for entry in _entered if entry[1] is not self]))
        super().__exit__(*exception)


def _set_entered(entered):
    global _entered, _only
    if bool(entered) != bool(_entered):
        vars(pywrap_tfe).update(_SHARED if entered else _OWN)
    threads = {thread for thread, _ in entered}
    _entered, _only = entered, threads.pop() if len(threads) == 1 else None


def _tapes_of_others():
    """Return the tapes of other threads that are to see what this one does now."""
    if getattr(_local, "is_shared", False):  # they do already
        return ()
    here = get_ident()
    return [tape._tape for thread, tape in _entered if thread != here and tape._tape is not None]


@contextmanager
def others_reported_to(link):
    """Call `link(inputs, outputs, op_type)` for what other threads compute that tapes of this one may record."""
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


def _shared(consult, tapes, args):
    """Return `consult(*args)`, with `tapes` among those of this thread."""
    _local.is_shared = True
    for tape in tapes:
        pywrap_tfe.TFE_Py_TapeSetAdd(tape._tape)
    try:
        return consult(*args)
    finally:
        for tape in tapes:
            pywrap_tfe.TFE_Py_TapeSetRemove(tape._tape)
        _local.is_shared = False


def _execute(*args):
    """Run an operation."""
    if get_ident() == _only or not (tapes := _tapes_of_others()):
        return _OWN["TFE_Py_FastPathExecute"](*args)
    args = [_read(x) for x in args]
    with operations_reported_to(_report_operation) if _links else nullcontext():
        return _shared(_OWN["TFE_Py_FastPathExecute"], tapes, args)


def _read(x):
    """Return operand `x` with variables read: TensorFlow would list them as variables of tapes of other threads."""
    if isinstance(x, tf.Variable):
        return x.value()
    return [_read(value) for value in x] if type(x) in (list, tuple) else x


def _consult(name):
    """Return the function `name`, which asks the tapes of this thread or tells them, so that it asks every thread's."""
    consult = getattr(pywrap_tfe, name)

    def consult_all(*args):
        if get_ident() == _only or not executing_eagerly() or not (tapes := _tapes_of_others()):
            return consult(*args)
        found = _shared(consult, tapes, args)
        if _links and "RecordOperation" in name:  # a call of a function, or one with its own rule
            _report(args[2], args[1], None)
        elif _links and "RecordGradient" in name:
            _report_operation(args[0], args[1], args[3])
        return found

    return consult_all


def _access(variable):
    """Tell the tapes of this thread of a variable that it reads; where it has none, those of others watch it too."""
    _OWN["TFE_Py_TapeVariableAccessed"](variable)
    if get_ident() == _only or not executing_eagerly() or not _OWN["TFE_Py_TapeSetIsEmpty"]():
        return
    for thread, tape in _entered:
        if thread != get_ident() and tape.watches_accessed_variables and tape._tape is not None:
            _shared(pywrap_tfe.TFE_Py_TapeWatch, [tape._tape], (tape._tape._tape, variable.handle))


if missing is None:
    _SHARED = {
        "TFE_Py_FastPathExecute": _execute,
        "TFE_Py_TapeVariableAccessed": _access,
        **{
            name: _consult(name)
            for name in (
                "TFE_Py_RecordGradient",
                "TFE_Py_TapeSetIsEmpty",
                "TFE_Py_TapeSetPossibleGradientTypes",
                "TFE_Py_TapeSetRecordOperation",
                "TFE_Py_TapeSetRecordOperationBackprop",
                "TFE_Py_TapeSetShouldRecordBackprop",
            )
        },
    }
    _OWN = {name: getattr(pywrap_tfe, name) for name in _SHARED}
