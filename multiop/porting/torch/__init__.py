"""The reader of PyTorch's models."""
