"""Derivatives of the ops of `ops/activations.py`."""
