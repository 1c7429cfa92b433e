"""Analyses beyond the table of a protocol: the texture of one image, families of models, balanced classes."""
