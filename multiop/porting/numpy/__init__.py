"""NumPy: its arrays cross to a framework's function, and its results back."""
