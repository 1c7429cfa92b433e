"""Intervals, correlations, tests and rankings: pure functions of numbers. Needs numpy and scipy only."""
