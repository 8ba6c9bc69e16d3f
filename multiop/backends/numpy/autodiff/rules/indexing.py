"""Derivatives of the ops of `ops/indexing.py`."""
