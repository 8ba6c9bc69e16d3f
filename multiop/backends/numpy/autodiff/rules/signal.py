"""Derivatives of the ops of `ops/signal.py`."""
