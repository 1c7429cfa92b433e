"""What calibration found, as tables: how each number moves with what was planted, and what its intervals hold.

``recovered.csv``, ``coverage.csv`` and ``settings.json`` are shipped with cuebench; ``cuebench calibrate --out DIR``
writes the same three files.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuebench.calibration.planted import GRID, WEAK
from cuebench.errors import UserError
from cuebench.files import json_text, write_atomic
from cuebench.reading import read_csv, read_json
from cuebench.statistics import measured

if TYPE_CHECKING:
    from cuebench.calibration.studies import Result

SHIPPED = Path(__file__).parent
RECOVERED, COVERAGE, SETTINGS = "recovered.csv", "coverage.csv", "settings.json"
_AGAIN = "choose another folder, or delete the file: cuebench calibrate --out DIR writes it anew"
MISREAD = "taken for other sources"
"""Said of a kind that draws only some of what a study draws anew: its row shows what happens when it is misread."""
CLASSES = (16, 1000)
"""Label spaces in which the expected value for a weak observer is given besides."""


@dataclass(frozen=True)
class Recovered:
    """One number in one setting: what it should be, and what it was in simulated studies.

    Parameters
    ----------
    protocol, metric, condition : str
        The number.
    setting : str
        ``grid``, a setting of the intervals, or ``16 classes`` and ``1000 classes``: the expected value if guesses
        were spread over so many classes, without studies.
    weight, competence, spread, images : float
        What was planted.
    studies, undefined : int
        Studies in which the number was defined, and others.
    truth, mean, sd : float
        Expected value, mean and standard deviation over studies.
    n, excluded : float
        Mean denominator, and what was left out of it.
    """

    protocol: str
    metric: str
    condition: str
    setting: str
    weight: float
    competence: float
    spread: float
    images: float
    studies: int
    undefined: int
    truth: float
    mean: float
    sd: float
    n: float
    excluded: float

    @property
    def bias(self) -> float:
        """Mean minus truth."""
        return self.mean - self.truth


@dataclass(frozen=True)
class Coverage(measured.Coverage):
    """How often a kind of interval holds the value for new images, shapes and textures.

    ``setting`` begins with the condition of the protocol: ``16-way; sources vary``.
    """

    @property
    def claims(self) -> bool:
        """Whether the interval claims to hold what it was compared with; others are rows that say `MISREAD`."""
        return not self.kind.endswith(MISREAD)

    @property
    def over(self) -> str:
        """What is drawn anew in the interval: its kind."""
        return self.kind.removesuffix(f", {MISREAD}")

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What one row of the table is about."""
        return self.protocol, self.metric, self.kind, self.setting

    @property
    def condition(self) -> str:
        """The condition of the protocol."""
        return self.setting.partition("; ")[0]

    @property
    def situation(self) -> str:
        """What was simulated, without the condition."""
        return self.setting.partition("; ")[2]


def recovered_rows(results: Sequence[Result]) -> list[Recovered]:
    """Return a row for each number in each setting, and the expected values in other label spaces."""
    rows = []
    for r in results:
        for (condition, metric), tally in r.tallies.items():
            studies = tally.studies
            rows.append(
                Recovered(
                    r.protocol, metric, condition, r.setting, r.planted.weight, r.planted.competence, r.planted.spread,
                    r.planted.images, studies, tally.undefined, tally.truth, tally.truth + tally.bias, tally.sd,
                    tally.n / studies if studies else 0.0, tally.excluded / studies if studies else 0.0,
                )
            )  # fmt: skip
    weak = [r for r in results if r.setting == GRID and (r.planted.weight, r.planted.competence) == WEAK]
    return rows + [row for r in weak for row in _other_label_spaces(r)]


def _other_label_spaces(result: Result) -> Iterable[Recovered]:
    from cuebench.calibration.designs import DESIGNS

    planted, nan = result.planted, float("nan")
    for classes in CLASSES:
        truths = DESIGNS[result.protocol].truths(replace(planted, classes=classes))
        for condition, metric in result.tallies:
            yield Recovered(
                result.protocol, metric, condition, f"{classes} classes", planted.weight, planted.competence,
                planted.spread, planted.images, 0, 0, truths[condition, metric], nan, nan, 0.0, 0.0,
            )  # fmt: skip


def coverage_rows(results: Sequence[Result]) -> list[Coverage]:
    """Return a row for each kind of interval of each number, in every setting that is meant for intervals."""
    return [
        Coverage(
            r.protocol, metric, kind if kind in claims_of(tally.made) else f"{kind}, {MISREAD}",
            f"{condition}; {r.setting}", made, tally.held[kind] / made, tally.width[kind] / made, tally.bias,
        )
        for r in results
        if r.setting != GRID
        for (condition, metric), tally in r.tallies.items()
        for kind, made in tally.made.items()
    ]  # fmt: skip


def claims_of(kinds: Iterable[str]) -> set[str]:
    """Return which of the kinds of interval of a number claim to hold where every source is drawn anew.

    >>> sorted(claims_of(["images", "shape_sources", "texture_sources", "two_way"])), sorted(claims_of(["images"]))
    (['two_way'], ['images'])
    """
    known = set(kinds)
    return next(({widest} for widest in ("three_way", "two_way", "data_sets", "classes") if widest in known), known)


# -------------------------------------------------------------------------------------------------------- files


def write_tables(results: Sequence[Result], settings: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """Write the three files; rows of protocols and settings that were not simulated this time are kept.

    Parameters
    ----------
    results : sequence of Result
        Of `calibrate`.
    settings : mapping of str to mapping
        Protocol → what its rows depend on, with the date.
    folder : Path
        Is made where it does not exist.
    """
    folder.mkdir(parents=True, exist_ok=True)
    simulated = {r.protocol for r in results}
    path = folder / RECOVERED
    kept = [row for row in (_read(path, Recovered) if path.is_file() else []) if row.protocol not in simulated]
    rows = sorted([*kept, *recovered_rows(results)], key=lambda r: (r.protocol, r.metric, r.condition, r.setting,
                                                                    r.weight, r.competence))  # fmt: skip
    _write(path, rows)
    write_coverage(coverage_rows(results), folder / COVERAGE)
    known = {**read_settings(folder), **settings}
    write_atomic(folder / SETTINGS, json_text(dict(sorted(known.items()))).encode())


def write_coverage(rows: Sequence[Coverage], path: Path) -> None:
    """Write coverages; all rows of the same protocol and situation are replaced, so that no withdrawn kind stays."""
    fresh = {(row.protocol, row.situation) for row in rows}
    known = [
        row for row in (_read(path, Coverage) if path.is_file() else []) if (row.protocol, row.situation) not in fresh
    ]
    _write(path, sorted([*known, *rows], key=lambda row: row.key))


def read_recovered(folder: Path = SHIPPED) -> tuple[Recovered, ...]:
    """Read what each number is in every setting; default: what is shipped with cuebench."""
    return _known(folder / RECOVERED, Recovered)


def read_coverage(folder: Path = SHIPPED) -> tuple[Coverage, ...]:
    """Read what the intervals hold; default: what is shipped with cuebench."""
    return _known(folder / COVERAGE, Coverage)


def read_settings(folder: Path = SHIPPED) -> dict[str, dict[str, Any]]:
    """Read protocol → what its rows depend on: studies, seed, date, version of the protocol."""
    path = folder / SETTINGS
    by_protocol = read_json(path, "settings of a calibration") if path.is_file() else {}
    if not isinstance(by_protocol, dict) or not all(isinstance(settings, dict) for settings in by_protocol.values()):
        raise UserError(f"{path} does not say what its protocols were simulated with", _AGAIN)
    return by_protocol


def _known(path: Path, kind: type) -> tuple[Any, ...]:
    return _cached(path, kind, path.stat().st_mtime_ns) if path.is_file() else ()


@lru_cache(maxsize=8)
def _cached(path: Path, kind: type, written: int) -> tuple[Any, ...]:
    return tuple(_read(path, kind))


def _read(path: Path, kind: type) -> list[Any]:
    types = {f.name: {"str": str, "int": int, "float": float}[str(f.type)] for f in fields(kind)}
    table = read_csv(path, "calibration", needed=types, hint=_AGAIN)
    rows = []
    for row, line in zip(table.rows, table.lines):
        try:
            rows.append(kind(**{name: of(row[name]) for name, of in types.items()}))
        except ValueError as error:
            raise UserError(f"calibration {path} line {line}: {error}", _AGAIN) from None
    return rows


def _write(path: Path, rows: Sequence[Any]) -> None:
    text = io.StringIO()
    names = [f.name for f in fields(rows[0])] if rows else []
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in asdict(row).items()})
    write_atomic(path, text.getvalue().encode())
