"""Derivatives of the ops of `ops/reduction.py`."""
