"""The derivatives of losses are those of the ops that they are made of."""
