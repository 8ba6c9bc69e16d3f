"""Derivatives of the ops of `ops/special.py`."""
