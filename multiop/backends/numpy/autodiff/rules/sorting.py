"""Derivatives of the ops of `ops/sorting.py`."""
