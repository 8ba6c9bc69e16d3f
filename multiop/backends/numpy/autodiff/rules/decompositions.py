"""Derivatives of the ops of `ops/decompositions.py`."""
