"""Studies with people: designs, the server that runs them, the export, the analysis. Needs the extra ``study``."""
