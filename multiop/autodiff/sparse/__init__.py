"""Derivatives with structure: which entries of a Jacobian can differ from zero, and how few products give them all."""
