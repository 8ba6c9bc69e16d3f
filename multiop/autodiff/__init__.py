"""Custom gradients, transforms and tapes: what a user writes. How is the business of the backends."""
