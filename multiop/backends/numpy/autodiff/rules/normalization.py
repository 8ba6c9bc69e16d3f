"""The derivatives of normalization are those of the ops that it is made of."""
