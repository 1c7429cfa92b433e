"""One file for each source of observers; ``ADAPTER`` in the file says what it is and how it is spelled."""
