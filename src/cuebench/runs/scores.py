"""The result of a run in Python: all rows, one number at a time, and tables for notebooks and papers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cuebench.csv_text import csv_text
from cuebench.errors import UserError, did_you_mean
from cuebench.files import write_atomic
from cuebench.protocols.captions import caption
from cuebench.protocols.cautions import cautions
from cuebench.protocols.headline import chosen_condition, headline_column, headline_of, measured, one_row_each
from cuebench.reading import user_path
from cuebench.runs.optional import import_optional
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores, scores_table
from cuebench.runs.table_text import html, html_table, latex_table, markdown_table
from cuebench.types import Axis, Score

if TYPE_CHECKING:
    import pyarrow as pa

    from cuebench.runs.trials import Trials


def load(run: str | Path) -> Scores:
    """Read the scores of a finished run folder.

    Parameters
    ----------
    run : path
        The run folder; one that an earlier cuebench wrote is read too.

    See Also
    --------
    cuebench.score : compute them again, for example with another seed.
    """
    folder = user_path(run)
    record = RunRecord.read(folder)
    return Scores(tuple(read_scores(folder)), folder, record)


class _Cells(NamedTuple):
    """A table of texts: what all rows share, the columns, the rows, which columns are numbers, and the caption."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    right: frozenset[str]
    note: str


@dataclass(frozen=True, repr=False)
class Scores(Sequence[Score]):
    """The rows of a run: a sequence of ``Score`` with one row for each interval of each number.

    What is shown, printed and exported has one row for each number, with its widest interval, the one that makes the
    weakest claim; ``all_intervals=True`` exports every row.

    Parameters
    ----------
    rows : tuple of Score
        Every row, also those of observers that could not be measured.
    out : Path
        The run folder.
    record : RunRecord
        What was run, and what went wrong.

    Examples
    --------
    >>> scores = cuebench.load("runs/first")             # doctest: +SKIP
    >>> scores.value("timm:resnet50")                    # doctest: +SKIP
    >>> scores.headline().to_latex("table.tex")          # doctest: +SKIP
    """

    rows: tuple[Score, ...]
    out: Path
    record: RunRecord = field(repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return Scores(self.rows[index], self.out, self.record) if isinstance(index, slice) else self.rows[index]

    @property
    def failures(self) -> list[str]:
        """Why observers could not be measured."""
        return list(dict.fromkeys(f"{f.observer}: {f.reason}" for f in self.record.failures))

    @property
    def observers(self) -> list[str]:
        """The observers that were measured, in order."""
        return list(dict.fromkeys(row.observer for row in measured(self.rows)))

    @property
    def protocols(self) -> list[str]:
        """The protocols that anybody was measured with, in order."""
        return list(dict.fromkeys(row.protocol for row in measured(self.rows)))

    # ------------------------------------------------------------------------------------------ numbers

    def value(
        self, observer: str, metric: str | None = None, condition: str | None = None, protocol: str = ""
    ) -> float:
        """Return one number.

        Parameters
        ----------
        observer : str
            As in the rows.
        metric : str, optional
            Default: that of the protocol's headline.
        condition : str, optional
            Default: the only one there is, or the one in which the headline is read.
        protocol : str
            Needed where the run has several and the metric does not tell which is meant.

        Raises
        ------
        UserError
            Where there is no such row, or more than one number fits; with the names there are.
        """
        rows = _rows_with(self.rows, "observer", observer)
        if protocol and measured(rows):
            rows = _rows_with(rows, "protocol", protocol)
        numbers = measured(rows)
        if not numbers:
            raise UserError(f"{observer} was not measured: {rows[0].note}")
        if metric is None:
            axis = self._headline(_only_protocol(numbers, "the run has several protocols"))
            if axis is None:
                raise UserError(f"the headline of {numbers[0].protocol!r} is not known", "name a metric")
            metric = axis.metric
        numbers = _rows_with(numbers, "metric", metric)
        name = _only_protocol(numbers, f"{metric!r} belongs to several protocols")
        condition = self._usual_condition(name, metric, numbers) if condition is None else condition
        return _rows_with(numbers, "condition", condition)[0].value

    def headline(self, protocol: str = "") -> Scores:
        """Return the headline of every protocol, or of one: a row for each observer, with its widest interval."""
        if protocol and protocol not in self.protocols:
            raise did_you_mean("protocol of this run", protocol, self.protocols)
        rows: list[Score] = []
        for name in [protocol] if protocol else self.protocols:
            column = headline_column(self.rows, name, self._headline(name))
            rows += column.rows.values() if column else []
        return Scores(tuple(rows), self.out, self.record)

    def select(
        self,
        *,
        protocol: str | None = None,
        observer: str | None = None,
        condition: str | None = None,
        metric: str | None = None,
    ) -> Scores:
        """Return the rows with these values: ``scores.select(metric="shape_bias", condition="16-way")``."""
        rows: Sequence[Score] = self.rows
        wanted = {"protocol": protocol, "observer": observer, "condition": condition, "metric": metric}
        for column, value in wanted.items():
            rows = rows if value is None else _rows_with(rows, column, value)
        return Scores(tuple(rows), self.out, self.record)

    def _headline(self, protocol: str) -> Axis | None:
        """Return the declared headline; of a protocol that is not here any more, the recorded one."""
        try:
            return headline_of(protocol)
        except UserError:
            return self.record.headline(protocol)

    def _usual_condition(self, protocol: str, metric: str, numbers: Sequence[Score]) -> str:
        """Return the condition that is meant where none is named."""
        present = list(dict.fromkeys(row.condition for row in numbers))
        axis = self._headline(protocol)
        if len(present) > 1 and axis is not None:
            everywhere = [r for r in self.rows if (r.protocol, r.metric) == (protocol, metric) and r.value == r.value]
            condition = chosen_condition(axis, list(dict.fromkeys(r.condition for r in everywhere)))
            present = [condition] if condition in present else present
        if len(present) > 1:
            raise UserError(f"{metric!r} has several conditions", f"name one of: {', '.join(present)}")
        return present[0]

    def trials(self, protocol: str | Sequence[str] = (), observer: str | Sequence[str] = ()) -> Trials:
        """Return the single answers behind the scores, of some protocols and observers or of all.

        Returns
        -------
        Trials
            ``.to_pandas()``, ``.to_polars()``, ``.table()`` (pyarrow), ``.parts()`` (a part at a time) and
            ``.write(FILE)``. One row for each answer in each condition.
        """
        from cuebench.runs.trials import Trials

        protocols, observers = (tuple(_several(names)) for names in (protocol, observer))
        return Trials(self.out, protocols, observers)

    # ------------------------------------------------------------------------------------------ tables

    def table(self, *, all_intervals: bool = False) -> pa.Table:
        """Return the tidy table as a ``pyarrow.Table``: one row for each number, or for each interval of each."""
        return scores_table(self._exported(all_intervals))

    def to_pandas(self, *, all_intervals: bool = False) -> Any:
        """Return the tidy table as a ``pandas.DataFrame``."""
        import_optional("pandas", "Scores.to_pandas", "take the pyarrow table: scores.table()")
        return self.table(all_intervals=all_intervals).to_pandas()

    def to_polars(self, *, all_intervals: bool = False) -> Any:
        """Return the tidy table as a ``polars.DataFrame``."""
        polars = import_optional("polars", "Scores.to_polars", "take the pyarrow table: scores.table()")
        return polars.from_arrow(self.table(all_intervals=all_intervals))

    def to_csv(self, path: str | Path | None = None, *, all_intervals: bool = False) -> str | None:
        """Return the tidy table as CSV, or write it to a file."""
        columns = Score.columns()
        rows = ([getattr(row, name) for name in columns] for row in self._exported(all_intervals))
        return _returned(csv_text(columns, rows), path)

    def to_markdown(self, path: str | Path | None = None, *, all_intervals: bool = False) -> str | None:
        """Return a Markdown table with a value and its interval in each row, or write it to a file."""
        cells = self._cells(self._exported(all_intervals), all_intervals)
        lines = markdown_table(*cells)
        lines += [f"\nNot measured: {reason}" for reason in self.failures]
        return _returned("\n".join(lines) + "\n", path)

    def to_latex(self, path: str | Path | None = None, *, all_intervals: bool = False) -> str | None:
        """Return a LaTeX table (package booktabs) with a value and its interval in each row, or write it to a file."""
        cells = self._cells(self._exported(all_intervals), all_intervals)
        lines = latex_table(*cells)
        lines += [f"% not measured: {' '.join(reason.split())}" for reason in self.failures]
        return _returned("\n".join(lines) + "\n", path)

    def _exported(self, all_intervals: bool) -> Sequence[Score]:
        return self.rows if all_intervals else one_row_each(self.rows)

    def _cells(self, scores: Sequence[Score], all_intervals: bool) -> _Cells:
        """Return the numbers as texts; a column in which all rows agree becomes a part of the title."""
        numbers = measured(scores)
        shared = [c for c in ("protocol", "metric", "condition") if len({getattr(s, c) for s in numbers}) == 1]
        title = " · ".join(getattr(numbers[0], c) for c in shared) if numbers else ""
        columns = [c for c in ("protocol", "observer", "condition", "metric") if c not in shared]
        kind = ["interval over"] if all_intervals else []
        rows = [
            [*(getattr(s, c) for c in columns), _number(s), *([s.ci_kind] if all_intervals else []), f"{s.n:,}"]
            for s in numbers
        ]
        return _Cells(title, [*columns, _VALUE, *kind, "n"], rows, _RIGHT, caption(numbers))

    # ------------------------------------------------------------------------------------------ display

    def __repr__(self) -> str:
        some = ", ".join(self.observers[:3]) + (" …" if len(self.observers) > 3 else "")
        gaps = f", {len(self.failures)} not measured" if self.failures else ""
        count = len(one_row_each(measured(self.rows)))
        return f"<Scores: {count} numbers of {some} on {', '.join(self.protocols)}{gaps}; {self.out}>"

    def __str__(self) -> str:
        blocks = []
        for cells in self._headline_tables():
            widths = [max(len(row[i]) for row in [cells.columns, *cells.rows]) for i in range(len(cells.columns))]
            lines = [cells.title]
            for row in [cells.columns, *cells.rows]:
                texts = [
                    text.rjust(width) if column in _RIGHT else text.ljust(width)
                    for text, width, column in zip(row, widths, cells.columns)
                ]
                lines.append("  ".join(texts).rstrip())
            lines.append(cells.note)
            blocks.append("\n".join(lines))
        return "\n\n".join([*blocks, self._footer()])

    def _repr_html_(self) -> str:
        """Return the headline as HTML: what a notebook shows."""
        tables = "".join(html_table(*cells) for cells in self._headline_tables())
        cautious = [line for name in self.protocols for line in self._cautions(name)]
        lines = "<br>".join(html(line) for line in [*cautious, *self._footer().split("\n")])
        return f"<div>{tables}<p>{lines}</p></div>"

    def _cautions(self, protocol: str) -> list[str]:
        """Return what changes the reading of a headline."""
        shown = self.headline(protocol).rows
        if not shown:
            return []
        metric, condition = shown[0].metric, shown[0].condition
        rows = [r for r in one_row_each(self.rows) if (r.protocol, r.condition) == (protocol, condition)]
        return cautions(rows, metric)

    def _headline_tables(self) -> list[_Cells]:
        return [self._cells(rows, False) for name in self.protocols if (rows := self.headline(name).rows)]

    def _footer(self) -> str:
        failures = [f"not measured: {reason}" for reason in self.failures]
        count = len(one_row_each(measured(self.rows)))
        return "\n".join([*failures, f"{count:,} numbers in all: .table(), .to_pandas(), .to_csv(), .to_latex() …"])


_VALUE = "value [95 % interval]"
_RIGHT = frozenset({_VALUE, "n"})
"""Columns that are aligned to the right."""


def _rows_with(rows: Sequence[Score], column: str, value: str) -> list[Score]:
    matches = [row for row in rows if getattr(row, column) == value]
    if not matches:
        raise did_you_mean(column, value, {getattr(row, column) for row in rows})
    return matches


def _only_protocol(rows: Sequence[Score], problem: str) -> str:
    names = list(dict.fromkeys(row.protocol for row in rows))
    if len(names) > 1:
        raise UserError(f"{problem}: {', '.join(names)}", "say which with protocol=")
    return names[0]


def _number(score: Score) -> str:
    if math.isnan(score.value):
        return "–"
    if not (math.isfinite(score.ci_low) and math.isfinite(score.ci_high)):
        return f"{score.value:.3f}"
    return f"{score.value:.3f} [{score.ci_low:.3f}, {score.ci_high:.3f}]"


def _several(names: str | Sequence[str]) -> Sequence[str]:
    return names if isinstance(names, Sequence) and not isinstance(names, str) else [names]


def _returned(text: str, path: str | Path | None) -> str | None:
    """Return a text, or write it to a file."""
    if path is None:
        return text
    write_atomic(user_path(path), text.encode())
    return None
