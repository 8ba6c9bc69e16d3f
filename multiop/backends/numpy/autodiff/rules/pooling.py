"""The derivatives of pooling are those of the ops that it is made of."""
