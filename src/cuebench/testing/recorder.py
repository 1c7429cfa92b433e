"""Record what the functions of metrics return while a protocol scores: what is explained must be what runs."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import numpy as np

from cuebench.metrics.base import Metric
from cuebench.statistics.ratios import Terms, total
from cuebench.types import Estimate

MOST = 150
"""Elements of an array that are kept; larger ones are data or bootstrap draws, not results."""


class Recorder:
    """Numbers that the functions of some metrics returned.

    A ratio of sums is recorded by its ``terms``, or by its ``trials`` where these say yes or no. Of the other metrics,
    everything that functions of their files return is kept together: a public function may be made of smaller ones,
    which protocols call, and one metric may be another one on other images (the quality of a segmentation is a mean
    IoU).
    """

    def __init__(self) -> None:
        self._by_terms: dict[CodeType, set[str]] = {}
        self._trials: dict[CodeType, CodeType] = {}
        self._files: set[str] = set()
        self._by_file: set[str] = set()
        self._lengths: set[int] = set()

    @contextmanager
    def recording(self, metrics: Iterable[Metric]) -> Iterator[None]:
        """Record while the block runs."""
        for metric in metrics:
            if metric.terms is not None:
                self._by_terms[metric.terms.__code__] = set()
                self._trials[metric.trials.__code__] = metric.terms.__code__  # type: ignore[union-attr]
            else:
                self._files.add(self.file_of(metric))
        before = sys.getprofile()
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(before)

    @staticmethod
    def file_of(metric: Metric) -> str:
        """Return the file that the function of a metric is written in."""
        function: Any = metric.terms or metric.compute
        return str(getattr(getattr(function, "__code__", None), "co_filename", ""))

    def returned(self, metric: Metric, value: float, answers: int) -> bool:
        """Tell whether a function of the metric returned this number, or one value for each answer to be averaged.

        Parameters
        ----------
        metric : Metric
            Whose function.
        value : float
            The number.
        answers : int
            How many answers the observer gave.
        """
        if metric.terms is None and answers in self._lengths:
            return True
        numbers = self._by_file if metric.terms is None else self._by_terms.get(metric.terms.__code__, set())
        return _digits(value) in numbers

    def _note(self, frame: FrameType, event: str, returned: Any) -> None:
        if event != "return":
            return
        if frame.f_code in self._by_terms:
            self._by_terms[frame.f_code].update(map(_digits, numbers_in(returned)))
        elif frame.f_code in self._trials and isinstance(returned, np.ndarray) and returned.dtype == np.bool_:
            share = float(returned.mean()) if len(returned) else math.nan
            self._by_terms[self._trials[frame.f_code]].add(_digits(share))
        elif frame.f_code.co_filename in self._files:
            self._by_file.update(map(_digits, numbers_in(returned)))
            if isinstance(returned, np.ndarray) and returned.ndim == 1:
                self._lengths.add(len(returned))


def numbers_in(value: Any) -> list[float]:
    """Return the numbers that a result holds.

    These are the number itself, the ratio of terms, the value of an estimate, the elements of an array, and the numbers
    of the items of a collection.
    """
    if isinstance(value, Terms):
        return [total(value).value]
    if isinstance(value, Estimate):
        return [value.value]
    if isinstance(value, (int, float, np.integer, np.floating)):
        return [float(value)]
    if isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.size <= MOST:
        return value.ravel().astype(float).tolist()
    if isinstance(value, Mapping):
        return [number for item in value.values() for number in numbers_in(item)]
    if isinstance(value, (tuple, list)):
        return [number for item in value for number in numbers_in(item)]
    return []


def _digits(number: float) -> str:
    """Return a number with the digits that two ways to add it up have in common."""
    return f"{number:.10g}"
