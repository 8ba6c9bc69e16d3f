"""Derivatives of the ops of `ops/segment.py`."""
