"""XLA on CPU as a second opinion of the reference interpreter: `make test-xla`. Not collected by pytest."""
