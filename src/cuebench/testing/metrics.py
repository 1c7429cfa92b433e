"""The check of a metric: its description is complete, and its public function computes what it says."""

from __future__ import annotations

import doctest
import inspect
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cuebench.metrics.base import Metric
from cuebench.registry import metrics
from cuebench.statistics.ratios import total
from cuebench.testing.base import require

KINDS_OF_ANSWERS = frozenset({"logits", "features", "masks", "decisions"})

Planted = tuple[tuple[Any, ...], Any]
"""Arguments of the metric and the value that it must give."""


def check_metric(metric: str | Metric, *, planted: Iterable[Planted] = ()) -> None:
    """Check one metric: described, bounded, callable, documented, right on what is planted.

    Examples in the docstring (``>>> …``) are run too. That a protocol writes the numbers of this function is checked by
    `check_protocol`.

    Parameters
    ----------
    metric : str or Metric
        A name, ``python:FILE.py:NAME``, or the object.
    planted : iterable of (arguments, value)
        Calls with a known result: ``[((["cat"], ["cat"], ["dog"]), 1.0)]``. A last argument that is a mapping with
        string keys is passed as keywords.

    Raises
    ------
    CheckFailed
        With what was expected and what came.
    """
    subject = metrics.get(metric) if isinstance(metric, str) else metric
    require(isinstance(subject, Metric), f"expected a Metric, got a {type(subject).__name__}: {subject!r}")
    _check_description(subject)
    _check_function(subject)
    _check_examples(subject)
    for arguments, expected in planted:
        _check_planted(subject, arguments, expected)


def _check_description(metric: Metric) -> None:
    fields = ("name", "title", "formula", "denominator", "reference", "higher_is")
    missing = [field for field in fields if not str(getattr(metric, field)).strip()]
    require(not missing, f"metric {metric.name!r} does not say its {', '.join(missing)}")
    require(metric.name.isidentifier(), f"metric {metric.name!r}: its name must be usable as cuebench.metrics.NAME")
    low, high = metric.bounds
    require(low < high, f"metric {metric.name!r}: expected bounds (low, high) with low < high, got {metric.bounds}")
    unknown = sorted(set(metric.needs) - KINDS_OF_ANSWERS)
    known = ", ".join(sorted(KINDS_OF_ANSWERS))
    require(not unknown, f"metric {metric.name!r} needs {', '.join(unknown)}; observers give {known}")


def _check_function(metric: Metric) -> None:
    function = metric.compute or metric.trials
    name = f"metric {metric.name!r}"
    require(callable(function), f"{name}: expected a function, got {function!r}")
    doc = inspect.getdoc(function) or ""
    require(doc, f"{name}: its function has no docstring")
    for parameter in inspect.signature(metric).parameters.values():
        require(
            parameter.name.lstrip("_") in doc,
            f"{name}: expected the docstring to say what {parameter.name!r} is; it reads: {doc.partition(chr(10))[0]}",
        )
    if metric.terms is not None:
        require(callable(metric.terms), f"{name}: expected terms to be a function, got {metric.terms!r}")


def _check_examples(metric: Metric) -> None:
    """Run the examples in the docstring of the function, with the names of its module."""
    function = metric.compute or metric.trials
    module = sys.modules.get(getattr(function, "__module__", ""), None)
    names = dict(vars(module)) if module else {}
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(verbose=False)
    reports: list[str] = []
    for example in finder.find(function, metric.name, module=False, globs=names):
        runner.run(example, out=reports.append)
    require(not runner.failures, f"metric {metric.name!r}: an example of its docstring fails:\n{''.join(reports)}")


def _check_planted(metric: Metric, arguments: tuple[Any, ...], expected: Any) -> None:
    keywords: Mapping[str, Any] = {}
    if arguments and isinstance(arguments[-1], Mapping) and all(isinstance(key, str) for key in arguments[-1]):
        arguments, keywords = arguments[:-1], arguments[-1]
    value = metric(*arguments, **keywords)
    call = f"{metric.name}{arguments!r}"
    require(
        np.allclose(np.asarray(value, np.float64), np.asarray(expected, np.float64), equal_nan=True, atol=1e-9),
        f"{call}: expected {expected}, got {value}",
    )
    low, high = metric.bounds
    if np.ndim(value) == 0 and not math.isnan(float(value)):
        inside = low - 1e-9 <= float(value) <= high + 1e-9
        require(inside, f"{call}: expected a value in [{low:g}, {high:g}], got {value}")
    if metric.terms is not None and metric.trials is not None:
        terms = metric.terms(metric.trials(*arguments, **keywords))
        sizes = (len(terms.numerator), len(terms.denominator))
        require(sizes[0] == sizes[1], f"{call}: expected terms of one length, got {sizes[0]} and {sizes[1]}")
        ratio = total(terms).value
        agree = np.allclose(float(value), ratio, equal_nan=True, atol=1e-12)
        require(agree, f"{call}: compute gives {value}, the sums of its terms give {ratio}")
