"""Custom gradients: the function's value."""

from ..conversion import own


def stop_gradient(x):
    return own(x, [x])


def custom_call(call, primals):
    return own(list(call.forward(primals)[0]), primals)
