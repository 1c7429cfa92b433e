"""Drawn stimuli: ``SOURCE(seed=…, **options)`` draws a uint8 H×W×3 array; one file for each source."""
