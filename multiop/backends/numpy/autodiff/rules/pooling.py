"""Derivatives of the ops of `ops/pooling.py`."""
