"""Figures, one file for each: a function that returns a ``Drawing``, and ``FIGURE``, which declares it."""
