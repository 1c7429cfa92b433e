"""The pages and the JSON files of a board. Everything that comes from an entry is escaped, or lies in JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cuebench._version import __version__
from cuebench.errors import printable
from cuebench.files import json_bytes
from cuebench.protocols.captions import caption, partial_sets
from cuebench.registry import protocols
from cuebench.reports.board.check import Checked, Model
from cuebench.reports.board.entries import About
from cuebench.reports.board.folder import SiteFolder
from cuebench.reports.board.papers import Published, published
from cuebench.reports.board.standings import RULE, Standing, Track
from cuebench.reports.comparison import LARGER
from cuebench.reports.html.material import metric_of
from cuebench.reports.html.page import ASSETS, colours, json_for_script, template
from cuebench.reports.html.tables import Cell, Table, count, of_score, title, words
from cuebench.reports.html.text import counted
from cuebench.types import Score

API = "api/v1"
MOST_ROWS = 300
"""Numbers of a protocol on the page of a model; all are in its JSON file."""
FIRST = 100
"""Rows of the first ranking that are in the page for those without JavaScript."""
SIZES = ((10e6, "under 10 M"), (50e6, "10–50 M"), (200e6, "50–200 M"), (math.inf, "200 M and more"))
"""Numbers of parameters to filter by."""
LAYERS = {"model": "", "people": "people", "ideal": "ideal observer", "published": "published"}
LAYERS["published people"] = "published people"
_OWN = Path(__file__).parent / "assets"
_COLUMNS = [name for name in Score.columns() if name != "observer"]


def write_site(folder: SiteFolder, heading: str, entries: Sequence[Checked], tracks: Sequence[Track]) -> Path:
    """Write all pages and JSON files; return the first page."""
    style = colours() + (ASSETS / "report.css").read_text("utf-8") + (_OWN / "board.css").read_text("utf-8")
    folder.put("assets/board.css", style.encode())
    for path in (ASSETS / "page.js", _OWN / "board.js"):
        folder.put(f"assets/{path.name}", path.read_bytes())
    accepted = [entry for entry in entries if entry.accepted]
    papers = [p for name in sorted(protocols) for p in published(name)]
    _write_index(folder, heading, entries, tracks, papers)
    _write_api(folder, entries, tracks, papers)
    _write_models(folder, heading, accepted, tracks)
    return folder.out / "index.html"


# --------------------------------------------------------------------------------------------------- the first page


def _write_index(
    folder: SiteFolder, heading: str, entries: Sequence[Checked], tracks: Sequence[Track], papers: Sequence[Published]
) -> None:
    accepted = [entry for entry in entries if entry.accepted]
    models = {m.slug: m for entry in accepted for m in entry.models}
    about = [m.about for m in models.values()]
    page = template("index.html.jinja", _OWN).render(
        title=heading,
        version=__version__,
        root="",
        lede=_lede(accepted, models.values(), tracks),
        tracks=tracks,
        larger=LARGER,
        titles={t.id: track_title(t, tracks) for t in tracks},
        captions={t.id: caption(s.score for s in t.standings) for t in tracks},
        families=sorted({a.family for a in about if a.family}, key=str.casefold),
        training=sorted({a.training_data for a in about if a.training_data}, key=str.casefold),
        sizes=[text for _, text in SIZES],
        first=[_row(s) for s in tracks[0].standings[:FIRST]] if tracks else [],
        refused=[entry for entry in entries if not entry.accepted],
        remarks=[(entry.entry, text) for entry in accepted for text in entry.remarks],
        rule=RULE,
        sources=list(dict.fromkeys(p.source for p in papers if any(p.protocol == t.shown.protocol for t in tracks))),
        data=json_for_script(_data(tracks, papers)),
    )
    folder.put("index.html", page.encode("utf-8", "backslashreplace"))


def _lede(entries: Sequence[Checked], models: Any, tracks: Sequence[Track]) -> str:
    kinds = [m.layer for m in models]
    number = counted(kinds.count("model"), "model")
    return (
        f"{number} from {counted(len(entries), 'entry', 'entries')} in {counted(len(tracks), 'ranking')}. "
        "Every number was computed again from the submitted answers, and stands with a 95 % interval."
    )


def track_title(track: Track, tracks: Sequence[Track]) -> str:
    """Return the name of a ranking: its protocol; where there are several of one protocol, what they differ in."""
    shown = track.shown
    if sum(t.shown.protocol == shown.protocol for t in tracks) == 1:
        return shown.protocol
    parts = [counted(shown.images, "stimulus", "stimuli"), shown.settings, track.id.rpartition("-")[2]]
    return f"{shown.protocol} ({', '.join(filter(None, parts))})"


def _row(standing: Standing) -> dict[str, Any]:
    """Return a row of a ranking for those without JavaScript."""
    value = of_score(standing.score).text
    return {"rank": rank(standing), "model": standing.model, "value": value, "same": same_answers(standing)}


def same_answers(standing: Standing) -> str:
    """Say whose answers an observer has under a name of its own; empty: nobody's."""
    names = standing.same_answers
    return f"same answers as {', '.join(names[:3])}{' …' * (len(names) > 3)}" if names else ""


def rank(standing: Standing) -> str:
    """Return the range of ranks in words: ``3–7``; a dash for those who are not ranked."""
    if not standing.best:
        return "–"
    return str(standing.best) if standing.best == standing.worst else f"{standing.best}–{standing.worst}"


def _data(tracks: Sequence[Track], papers: Sequence[Published]) -> dict[str, Any]:
    """Return what the script of the first page shows: one short list for each row."""
    models: dict[str, int] = {}
    rows: list[list[Any]] = []
    rankings = {}
    for track in tracks:
        lines = []
        for standing in track.standings:
            model = standing.model
            if model.slug not in models:
                models[model.slug] = len(rows)
                rows.append(_about_row(model))
            s = standing.score
            numbers = [s.value, *(_finite(v) for v in (s.ci_low, s.ci_high)), s.n, s.n_excluded]
            same = same_answers(standing)
            lines.append([models[model.slug], *numbers, standing.best, standing.worst, standing.ties, same])
        printed = [[p.layer, p.name, p.value, p.source] for p in papers if p.protocol == track.shown.protocol]
        note = caption(standing.score for standing in track.standings)
        rankings[track.id] = {"rows": lines, "published": printed, "metric": title(track.metric), "note": note}
    return {"models": rows, "tracks": rankings, "sizes": [text for _, text in SIZES], "layers": LAYERS}


def _about_row(model: Model) -> list[Any]:
    a = model.about
    texts = [printable(text) for text in (a.family, a.training_data)]
    return [model.slug, model.name, model.layer, *texts, a.parameters or None, size_class(a.parameters), a.date]


def size_class(parameters: int) -> str:
    """Return the class of sizes that a number of parameters is in; empty where it is unknown.

    >>> size_class(25_557_032), size_class(0)
    ('10–50 M', '')
    """
    return next(text for limit, text in SIZES if parameters < limit) if parameters else ""


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# --------------------------------------------------------------------------------------------------- pages of models


def _write_models(folder: SiteFolder, heading: str, entries: Sequence[Checked], tracks: Sequence[Track]) -> None:
    parts: dict[str, list[tuple[Checked, Model]]] = {}
    for entry in entries:
        for model in entry.models:
            parts.setdefault(model.slug, []).append((entry, model))
    places: dict[str, list[tuple[Track, Standing]]] = {}
    for track in tracks:
        for standing in track.standings:
            places.setdefault(standing.model.slug, []).append((track, standing))
    pairs = _pairs_by_slug(tracks)
    page = template("model.html.jinja", _OWN)
    for slug, submissions in parts.items():
        here = places.get(slug, [])
        about = merged([model.about for _, model in submissions])
        text = page.render(
            title=heading,
            version=__version__,
            root="../",
            slug=slug,
            model=submissions[0][1],
            about=about,
            size=f"{about.parameters:,}" if about.parameters else "",
            layer=LAYERS[submissions[0][1].layer],
            standings=_standings_table(here, tracks) if here else None,
            pairs=pairs.get(slug, []),
            numbers=[
                _numbers(name, model)
                for _, model in submissions
                for name in dict.fromkeys(s.protocol for s in model.shown)
            ],
            provenance=[{"entry": e.entry, "SHA-256 of the entry": e.sha256, **m.facts} for e, m in submissions],
        )
        folder.put(f"models/{slug}.html", text.encode("utf-8", "backslashreplace"))
        data = {**_model_json(slug, submissions, about), "standings": [_standing_json(t, s) for t, s in here]}
        folder.put(f"{API}/models/{slug}.json", json_bytes({"api": 1, **data}))


def merged(known: Sequence[About]) -> About:
    """Return what several entries of the same model say of it; the first that says something counts."""
    values = {
        name: next((v for a in known if (v := asdict(a)[name])), default) for name, default in asdict(About()).items()
    }
    return About(**values)


def _standings_table(here: Sequence[tuple[Track, Standing]], tracks: Sequence[Track]) -> Table:
    rows = [
        [
            words(track_title(track, tracks)),
            Cell("; ".join(filter(None, [_place(track, s), same_answers(s)])), s.best or None),
            words(f"{title(track.metric)}{f' ({track.condition})' * bool(track.condition)}"),
            of_score(s.score, bar=True),
            count(s.score.n),
            count(s.score.n_excluded),
        ]
        for track, s in here
    ]
    helps = {"value": "; ".join(dict.fromkeys(m.formula for t, _ in here if (m := metric_of(t.metric))))}
    columns = ["ranking", "rank", "metric", "value", "n", "excluded"]
    return Table("standings", "Headlines, with 95 % intervals", columns, rows, helps)


def _place(track: Track, standing: Standing) -> str:
    return f"{rank(standing)} of {len(track.models):,}" if standing.best else "not ranked"


def _pairs_by_slug(tracks: Sequence[Track]) -> dict[str, list[dict[str, Any]]]:
    """Return slug → the pairs that it was compared in, with the other one's name."""
    by_slug: dict[str, list[dict[str, Any]]] = {}
    for track in tracks:
        names = {s.model.slug: s.model.name for s in track.standings}
        for row in track.pairs:
            for slug, other, sign in ((row["first"], row["second"], 1), (row["second"], row["first"], -1)):
                difference = "" if row["difference"] is None else f"{sign * row['difference']:+.3f}".replace("-", "−")
                facts = {"other": other, "name": names[other], "track": track.shown.protocol, "difference": difference}
                by_slug.setdefault(slug, []).append({**facts, "verdict": row["verdict"]})
    return by_slug


def _numbers(protocol: str, model: Model) -> Table:
    protocol_rows = [row for row in model.rows if row.protocol == protocol]
    rows = [
        [words(r.condition), words(r.metric), of_score(r), count(r.n), count(r.n_excluded), words(r.note, "note")]
        for r in protocol_rows[:MOST_ROWS]
    ]
    more = f"; {len(protocol_rows) - MOST_ROWS:,} more are in the JSON file" if len(protocol_rows) > MOST_ROWS else ""
    columns = ["condition", "metric", "value", "n", "excluded", "notes"]
    return Table(f"numbers-{protocol}", f"All numbers of {protocol}, 95 % intervals{more}", columns, rows)


# --------------------------------------------------------------------------------------------------- JSON API


def _write_api(
    folder: SiteFolder, entries: Sequence[Checked], tracks: Sequence[Track], papers: Sequence[Published]
) -> None:
    accepted = {m.slug: m for entry in entries if entry.accepted for m in entry.models}
    models = [
        {"slug": slug, "name": m.name, "layer": m.layer, **_known(m.about), **_links(slug)}
        for slug, m in accepted.items()
    ]
    index = {
        "api": 1,
        "cuebench": __version__,
        "rule": RULE,
        "rankings": [{**_track_json(t, tracks), "file": f"{API}/rankings/{t.id}.json"} for t in tracks],
        "models": models,
        "published": f"{API}/published.json",
        "refused": f"{API}/refused.json",
    }
    folder.put(f"{API}/index.json", json_bytes(index))
    for track in tracks:
        standings = [{"slug": s.model.slug, **_standing_json(track, s)} for s in track.standings]
        data = {**_track_json(track, tracks), "standings": standings, "pairs": track.pairs, "notes": track.notes}
        folder.put(f"{API}/rankings/{track.id}.json", json_bytes({"api": 1, **data}))
    folder.put(f"{API}/published.json", json_bytes({"api": 1, "published": [p._asdict() for p in papers]}))
    refused = [{"entry": e.entry, "sha256": e.sha256, "problems": e.problems} for e in entries if not e.accepted]
    folder.put(f"{API}/refused.json", json_bytes({"api": 1, "refused": refused}))


def _known(about: About) -> dict[str, Any]:
    return {name: value or None for name, value in asdict(about).items() if name != "name"}


def _links(slug: str) -> dict[str, str]:
    return {"page": f"models/{slug}.html", "file": f"{API}/models/{slug}.json"}


def _track_json(track: Track, tracks: Sequence[Track]) -> dict[str, Any]:
    s = track.shown
    facts = {"protocol": s.protocol, "protocol_version": s.version, "stimuli": s.images, "settings": s.settings}
    names = {"id": track.id, "title": track_title(track, tracks), **facts}
    larger = {"metric": track.metric, "condition": track.condition, "larger_means": LARGER[track.direction]}
    return {**names, **larger, "models": len(track.models)}


def _standing_json(track: Track, standing: Standing) -> dict[str, Any]:
    s = standing.score
    return {
        "ranking": track.id,
        "name": standing.model.name,
        "layer": standing.model.layer,
        "rank_best": standing.best or None,
        "rank_worst": standing.worst or None,
        "ties": standing.ties,
        "same_answers": list(standing.same_answers),
        "metric": s.metric,
        "condition": s.condition,
        "value": s.value,
        "low": _finite(s.ci_low),
        "high": _finite(s.ci_high),
        "interval": s.ci_kind,
        "method": s.ci_method,
        "partial": "; ".join(partial_sets([s])),
        "n": s.n,
        "n_excluded": s.n_excluded,
    }


def _model_json(slug: str, submissions: Sequence[tuple[Checked, Model]], about: About) -> Mapping[str, Any]:
    first = submissions[0][1]
    return {
        "slug": slug,
        "name": first.name,
        "observer": first.observer,
        "layer": first.layer,
        **_known(about),
        "entries": [{"entry": e.entry, "sha256": e.sha256, **m.facts} for e, m in submissions],
        "scores": [{k: getattr(row, k) for k in _COLUMNS} for _, m in submissions for row in m.rows],
    }
