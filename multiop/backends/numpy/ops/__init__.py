"""What each primitive op means, in NumPy and SciPy as they are."""
