"""What an op may be given, and what it becomes."""
