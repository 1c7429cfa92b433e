"""Figures, one file for each: ``<name>(run, …) -> Drawing``, made from the tables of a run folder."""
