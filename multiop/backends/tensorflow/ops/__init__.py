"""What each primitive op means on TensorFlow."""
