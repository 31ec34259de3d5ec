"""Adapter for the Neuron frameworks: will hold the exporters for Transformers NeuronX and NeuronX Distributed. Empty so far."""
