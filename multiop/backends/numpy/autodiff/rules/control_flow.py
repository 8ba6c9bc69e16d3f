"""Derivatives of the ops of `ops/control_flow.py`."""
