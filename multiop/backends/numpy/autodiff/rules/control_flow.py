"""Derivatives of control flow are those of the ops in it."""
