"""What autodiff and the backends share about rules and compiled programs."""
