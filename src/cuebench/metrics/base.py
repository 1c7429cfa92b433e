"""What a metric declares: its definition in words, and the one function that computes it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cuebench.errors import UserError
from cuebench.statistics.ratios import Terms, total


@dataclass(frozen=True)
class Metric:
    """A metric: callable, and described for ``cuebench explain``, reports and boards.

    Protocols call the same function, or for a ratio of sums the same ``terms``, so what is explained is what runs.

    Parameters
    ----------
    name, title : str
        Public name and a human one.
    formula, denominator : str
        The exact definition and what it is divided by.
    reference : str
        The paper that defines it.
    compute : callable
        The metric as a function of trials or of other numbers. Left out for a ratio of sums.
    trials, terms : callable
        For a ratio of sums: ``trials(…)`` checks and prepares the columns that a user gives, ``terms(trials)`` says
        what each trial adds to numerator and denominator.
    caveats : tuple of str
        What a careful reader must know.
    bounds : pair of float
        Smallest and largest possible value.
    chance : str
        The value of an observer that guesses, in words.
    higher_is : str
        What a higher value means (not "better": a shape bias is neither good nor bad).
    needs : tuple of str
        Kinds of answers that it needs.
    """

    name: str
    title: str
    formula: str
    denominator: str
    reference: str
    compute: Callable[..., Any] | None = None
    trials: Callable[..., Any] | None = None
    terms: Callable[[Any], Terms] | None = None
    caveats: tuple[str, ...] = ()
    bounds: tuple[float, float] = (0.0, 1.0)
    chance: str = ""
    higher_is: str = ""
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.compute is None and (self.trials is None or self.terms is None):
            raise UserError(f"metric {self.name!r} has no function", "give compute=, or trials= and terms=")
        function = self.compute or self.trials
        about = inspect.getdoc(function) or ""
        object.__setattr__(self, "__doc__", f"{self.title}: {self.formula}.\n\n{about}")
        object.__setattr__(self, "__name__", self.name)
        object.__setattr__(self, "__signature__", inspect.signature(function))  # type: ignore[arg-type]

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Compute the metric; see its own documentation for the arguments."""
        if self.compute is not None:
            return self.compute(*arguments, **options)
        assert self.trials is not None
        assert self.terms is not None
        return total(self.terms(self.trials(*arguments, **options))).value
