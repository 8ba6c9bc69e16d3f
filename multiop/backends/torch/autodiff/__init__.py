"""Custom gradients, the tape and the transforms of PyTorch."""
