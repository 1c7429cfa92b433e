"""Build a leaderboard: check all entries, rank them, and write a static site with its JSON API."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from cuebench.options import WORKERS, check_types, parse
from cuebench.processes import ProcessPool
from cuebench.reading import user_path, user_paths
from cuebench.reports.board.check import Checked, Model, Shown, check_entry
from cuebench.reports.board.entries import find_entries, fingerprint, opened
from cuebench.reports.board.folder import SiteFolder
from cuebench.reports.board.pages import write_site
from cuebench.reports.board.standings import Compared, Ranked, Track, compare_all, make_tracks

Progress = Callable[[int, int], None]
FEW = 8
"""Entries below which starting processes takes longer than it saves."""


@dataclass(frozen=True)
class _Arguments:
    """Types of what `board` is given."""

    title: str
    workers: int | None


class Board(NamedTuple):
    """What was built.

    Parameters
    ----------
    path : Path
        ``index.html`` of the site.
    entries : tuple of Checked
        All entries as they were checked, refused ones included.
    tracks : tuple of Track
        The rankings.
    known : int
        Entries that an earlier build had checked.
    """

    path: Path
    entries: tuple[Checked, ...]
    tracks: tuple[Track, ...]
    known: int

    @property
    def refused(self) -> list[Checked]:
        """The entries that are not on the board, with their problems."""
        return [entry for entry in self.entries if not entry.accepted]

    @property
    def models(self) -> int:
        """Number of observers on the board."""
        return len({m.slug for entry in self.entries if entry.accepted for m in entry.models})


def board(
    entries: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    title: str = "",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Board:
    """Write a static leaderboard site from run folders or submitted entries.

    Every entry is scored again from its answers; one that is partial or damaged, or whose scores do not follow from its
    answers, is refused and listed with the reason. No entry is changed.

    Parameters
    ----------
    entries : path or sequence of paths
        Run folders, archives of run folders, or folders of them.
    out : path
        Folder of the site: new, empty, or built before; then only new entries are checked.
    title : str
        Heading of the site.
    workers : int, optional
        Processes; 0: none but this one. Default: one for each core, where there is enough to do.
    progress : callable, optional
        Told how many entries of how many are checked.

    Returns
    -------
    Board
        What was accepted and refused, and the rankings.

    Examples
    --------
    >>> cuebench.board(["runs/first", "submitted.zip"], "site")  # doctest: +SKIP
    """
    check_types({"title": title, "workers": workers}, _Arguments, "board")
    if workers is not None:
        parse({"workers": WORKERS}, {"workers": workers}, "a board")
    paths = find_entries(user_paths(entries))
    folder = SiteFolder(user_path(out))
    results, known = _check_all(paths, folder, workers, progress or (lambda done, total: None))
    checked = _without_repeats(results)
    parts = [(path, model) for path, entry in zip(paths, checked) if entry.accepted for model in entry.models]
    homes = {id(model): path for path, model in parts}
    sha256 = {id(model): entry.sha256 for entry in checked for model in entry.models}

    def home(model: Model) -> AbstractContextManager[Path]:
        return opened(homes[id(model)])

    def pairs(ranked: Ranked) -> Compared:
        who = [[slug, sha256[id(model)], model.observer] for slug, model in ranked.models.items()]
        key = [ranked.column.protocol, ranked.column.metric, ranked.column.condition, who]
        if (remembered := folder.remembered("pairs", key)) is not None:
            return Compared(*remembered)
        compared = compare_all(ranked, home)
        folder.remember("pairs", key, compared)
        return compared

    tracks = make_tracks([model for _, model in parts], pairs)
    index = write_site(folder, title or "Shape or texture?", checked, tracks)
    folder.finish()
    return Board(index, tuple(checked), tuple(tracks), known)


def _check_all(
    paths: Sequence[Path], folder: SiteFolder, workers: int | None, progress: Progress
) -> tuple[list[Checked], int]:
    """Check all entries in the order given; return them, and how many an earlier build had checked."""
    results: dict[Path, Checked] = {}
    for path in paths:
        if (earlier := folder.checked(fingerprint(path).sha256)) is not None:
            results[path] = replace(earlier, entry=path.name or path.resolve().name)
    known = len(results)
    missing = [path for path in paths if path not in results]
    chosen = workers if workers is not None else (os.cpu_count() or 1) if len(missing) >= FEW else 0
    for done, checked in enumerate(_checks(missing, min(chosen, len(missing))), known + 1):
        results[missing[done - known - 1]] = checked
        if checked.accepted:  # why one is refused may be gone the next time
            folder.remember_check(checked)
        progress(done, len(paths))
    return [results[path] for path in paths], known


def _checks(paths: Sequence[Path], workers: int) -> Iterator[Checked]:
    with ProcessPool(workers) as pool:
        futures: list[Future[Checked]] = []
        for path in paths:
            futures.append(pool.submit(check_entry, path))
            if not workers:  # the work is done as it is submitted
                yield futures.pop().result()
        for future in futures:
            yield future.result()


def _without_repeats(results: Sequence[Checked]) -> list[Checked]:
    """Leave out what an earlier entry has measured: the same weights, protocol and stimuli.

    The rest of an entry is kept, with a remark; an entry of which nothing is left is refused.
    """
    owners: dict[tuple[str, str, str, str], str] = {}
    kept = []
    for entry in results:
        if not entry.accepted:
            kept.append(entry)
            continue
        repeated: dict[tuple[str, str], list[str]] = {}
        models, new = [], []
        for model in entry.models:
            shown = [s for s in model.shown if _what(model, s) not in owners]
            new += [_what(model, s) for s in shown]
            for s in model.shown:
                if s not in shown:
                    repeated.setdefault((owners[_what(model, s)], s.protocol), []).append(model.name)
            rows = tuple(row for row in model.rows if row.protocol in {s.protocol for s in shown})
            models += [replace(model, shown=tuple(shown), rows=rows)] if shown else []
        owners |= dict.fromkeys(new, entry.entry)
        texts = [
            f"{', '.join(names)}: the entry {owner!r} has the same weights, protocol ({protocol}) and stimuli"
            for (owner, protocol), names in repeated.items()
        ]
        if models:
            remarks = (*entry.remarks, *(f"left out: {text}" for text in texts))
            kept.append(replace(entry, models=tuple(models), remarks=remarks))
        else:
            kept.append(replace(entry, problems=tuple(texts)))
    return kept


def _what(model: Model, shown: Shown) -> tuple[str, str, str, str]:
    return model.slug, shown.protocol, shown.truth, shown.settings
