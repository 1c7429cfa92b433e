"""Between stored answers and scores: the table of trials, how answers become trials, and the engine of scores."""
