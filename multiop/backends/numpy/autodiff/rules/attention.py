"""The derivative of attention is that of the ops that it is made of."""
