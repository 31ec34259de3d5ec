"""Adapter for XLA frontends: will hold the exporters for JAX, torch-xla and XLA dump folders. Empty so far."""
