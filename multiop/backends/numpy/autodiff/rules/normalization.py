"""Derivatives of the ops of `ops/normalization.py`."""
