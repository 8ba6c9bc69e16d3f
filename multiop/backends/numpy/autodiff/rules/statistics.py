"""Derivatives of the ops of `ops/statistics.py`."""
