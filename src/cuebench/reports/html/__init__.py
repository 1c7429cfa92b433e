"""The report of one or several runs as one HTML file that needs nothing else."""
