"""Custom gradients: the function's value."""


def stop_gradient(x):
    return x


def custom_call(call, primals):
    return call.forward(primals)[0]
