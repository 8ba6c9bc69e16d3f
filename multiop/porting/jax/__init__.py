"""What of porting knows this framework."""
