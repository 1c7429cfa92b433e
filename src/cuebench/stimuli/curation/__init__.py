"""Curation by people: a local page to keep or reject cues, the log of verdicts, and the agreement of several judges."""
