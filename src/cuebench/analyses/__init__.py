"""Questions that are asked of one model or of the scores of several, beyond the tables of a protocol."""
