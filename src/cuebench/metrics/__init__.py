"""What responses mean: numbers and their definitions. Needs numpy and scipy only; no image, no model.

``cuebench.metrics.NAME`` is the metric of that public name, whatever file it lives in: a callable that also carries its
definition. Files that hold one metric assign ``METRIC``, files that hold several assign ``METRICS``.

>>> import cuebench.metrics
>>> cuebench.metrics.shape_bias(["cat", "dog", "cat", "car"], ["cat"] * 4, ["dog"] * 4)
0.6666666666666666
"""

from __future__ import annotations

from cuebench.registry import expose, metrics

expose(__name__, metrics)
