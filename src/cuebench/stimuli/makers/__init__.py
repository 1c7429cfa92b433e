"""Stimulus sets that cuebench makes itself, one file each."""
