"""What each primitive op means on JAX."""
