"""The autodiff constructs: a record of steps, and a walk back through it."""
