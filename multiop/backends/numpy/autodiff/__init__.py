"""The autodiff constructs: values alone, so far."""
