"""Pictures from nothing: ``SOURCE(seed=…, **options)`` makes a uint8 H×W×3 array; one file for each source."""
