"""What each primitive op means on PyTorch."""
