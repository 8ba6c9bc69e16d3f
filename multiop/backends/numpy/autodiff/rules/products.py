"""Derivatives of the ops of `ops/products.py`."""
