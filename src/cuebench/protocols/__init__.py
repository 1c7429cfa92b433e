"""The published experiments, one file each, versioned, never edited after release."""
