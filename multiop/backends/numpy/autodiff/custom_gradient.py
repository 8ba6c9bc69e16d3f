"""Custom gradients: the function's value."""

from ..conversion import convert, own


def stop_gradient(x):
    return own(convert(x), [x])


def custom_call(call, primals):
    return own(list(call.forward(primals)[0]), primals)
