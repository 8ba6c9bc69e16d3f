"""What stands around the call of each op."""
