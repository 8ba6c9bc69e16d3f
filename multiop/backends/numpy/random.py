"""The NumPy part of random numbers."""


def draws_on_host(x):
    return True


def from_host(x):
    return x
