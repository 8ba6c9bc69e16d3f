"""Derivatives of the ops of `ops/windows.py`."""
