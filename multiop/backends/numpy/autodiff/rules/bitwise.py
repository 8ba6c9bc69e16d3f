"""Derivatives of the ops of `ops/bitwise.py`."""
