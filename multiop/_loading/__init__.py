"""Which backend runs: found, checked, completed and configured."""
