"""What responses mean: numbers with intervals, one file for each metric. Numpy and scipy only; no image, no model.

Public names are ``cuebench.metrics.<file>.<function>``, e.g. ``cuebench.metrics.shape_bias.shape_bias``.
"""
