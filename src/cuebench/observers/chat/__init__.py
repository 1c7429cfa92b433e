"""Models that answer in words: prompts, reading their answers, asking an endpoint, and keeping what it answered."""
