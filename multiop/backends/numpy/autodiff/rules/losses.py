"""Derivatives of the ops of `ops/losses.py`."""
