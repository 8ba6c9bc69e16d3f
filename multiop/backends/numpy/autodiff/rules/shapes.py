"""Derivatives of the ops of `ops/shapes.py`."""
