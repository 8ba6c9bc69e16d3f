"""Derivatives of the ops of `ops/convolution.py`."""
