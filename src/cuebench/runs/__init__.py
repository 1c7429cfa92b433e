"""One run: the record on disk, and the two verbs that make and re-score it."""
