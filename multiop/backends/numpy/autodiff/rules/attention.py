"""Derivatives of the ops of `ops/attention.py`."""
