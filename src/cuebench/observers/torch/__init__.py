"""Observers that are PyTorch modules: forward passes, features, placement on a device, weights, fingerprints."""
