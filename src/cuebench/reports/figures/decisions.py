"""Decisions: what every observer answered to one image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from cuebench.errors import UserError, did_you_mean
from cuebench.options import Option
from cuebench.protocols.headline import headline_column
from cuebench.reports.figures.base import Figure
from cuebench.reports.marks import image_url, pictures, table, tooltip
from cuebench.reports.observers import Observers, Series
from cuebench.reports.picture import Picture
from cuebench.reports.run_data import PEOPLE, Run, all_scores, folders, observers_of, shown_observers
from cuebench.reports.text import distinct, words
from cuebench.reports.theme import CONDITIONS, NEUTRAL, SHAPE, TEXTURE
from cuebench.reports.vega import alt
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_stimuli
from cuebench.runs.trials import Trials
from cuebench.stimuli.image_files import read_rgb
from cuebench.types import Stimulus

OUTCOMES = {
    "shape": ("its shape", SHAPE),
    "texture": ("its texture", TEXTURE),
    "both": ("both", CONDITIONS[0]),
    "other": ("another class", NEUTRAL),
    "no answer": ("no answer", NEUTRAL),
}
"""Outcome of a trial → what the legend says, and its colour."""
_NO_CLASS = "no class"
_ROW = 12.0


def decisions(run: Run, *, image: str = "", protocol: str = "cue_conflict", people: str = "pooled") -> Picture:
    """Draw who answered what to one image, with the image where its file is still there.

    Parameters
    ----------
    run : path or sequence of paths
        Run folders with the protocol and its answers.
    image : str
        Name of a stimulus, whole or a part of it; default: the one that divides the observers most.
    protocol : str
        One whose answers are classes.
    people : str
        ``pooled``: the answers of people together; ``each``: every person too.
    """
    observers = observers_of(run)
    answers = _answers(run, protocol)
    chosen = _chosen(answers, image, observers)
    given = [row for row in answers if row["stimulus"] == chosen]
    shown = shown_observers((row["observer"] for row in given), observers, people)
    records = []
    for observer in shown:
        observer_rows = [row for row in given if row["observer"] == observer]
        counts = Counter((row["decision"] or _NO_CLASS, row["outcome"]) for row in observer_rows)
        for (answer, outcome), number in counts.items():
            records.append(
                {"stimulus": chosen, "observer": observer, "name": observers.name(observer), "answer": answer,
                 "outcome": outcome, "answers": number, "share": number / len(observer_rows)}
            )  # fmt: skip
    stimulus, file = _stimulus(run, protocol, chosen)
    truth = (
        [f"shape: {stimulus.shape}", f"texture: {stimulus.texture}"] if stimulus.shape else [f"class: {stimulus.label}"]
    )
    url = _opened(file, stimulus.sha256)
    missing = "" if url else "; its file is not here, or is another one by now"
    return Picture(
        f"What everybody saw in {chosen}",
        lambda room: _chart(records, url, stimulus, room),
        records,
        f"{'; '.join(truth)}. A mark: the class that was answered; its size, for people: how many of them{missing}",
        f"{chosen}: " + "; ".join(f"{r['name']}: {r['answer']}" for r in records[:12]),
    )


def _answers(run: Run, protocol: str) -> list[dict[str, Any]]:
    """Return the rows of the trials, in the condition of the headline."""
    column = headline_column(all_scores(run), protocol)
    fields = ["observer", "condition", "stimulus", "decision", "outcome", "shape", "texture"]
    rows: list[dict[str, Any]] = []
    for folder in folders(run):
        if not (folder / "run.json").is_file():
            raise UserError(f"{folder} holds scores without answers", "name the folder that the run was made in")
        for part in Trials(folder, (protocol,)).parts():
            rows += part.select(fields).to_pylist()
    ways = {row["condition"] for row in rows if "-way" in row["condition"]}
    if column is not None and column.condition in ways:
        rows = [row for row in rows if row["condition"] == column.condition]
    rows = [row for row in rows if row["outcome"]]
    if not rows:
        raise UserError(f"the answers of {protocol} name no cue", "choose --set protocol=cue_conflict")
    return rows


def _chosen(answers: Sequence[Mapping[str, Any]], image: str, observers: Observers) -> str:
    """Return the stimulus that was asked for; the one with the most different outcomes where none was."""
    known = list(dict.fromkeys(str(row["stimulus"]) for row in answers))
    if image:
        matches = [name for name in known if name == image] or [name for name in known if image in name]
        if len(matches) != 1:
            raise did_you_mean("image of this run", image, known)
        return matches[0]
    outcomes: dict[str, Counter[str]] = {}
    for row in answers:
        if observers.kinds.get(row["observer"]) in ("model", "ideal") and row["shape"] != row["texture"]:
            outcomes.setdefault(row["stimulus"], Counter())[row["outcome"]] += 1

    def divided(name: str) -> int:
        return min(outcomes[name]["shape"], outcomes[name]["texture"])

    return max(outcomes, key=divided) if outcomes else known[0]


class _Shown(NamedTuple):
    stimulus: Stimulus
    file: Path | None


def _stimulus(run: Run, protocol: str, name: str) -> _Shown:
    """Return what is known of a stimulus, and its file where the run knows one."""
    without_file: Stimulus | None = None
    for folder in folders(run):
        record = RunRecord.read(folder)
        for manifest in dict.fromkeys(job.stimuli for job in record.jobs if job.protocol == protocol):
            stimuli = read_stimuli(folder, manifest, record)
            for stimulus in stimuli:
                if stimulus.id == name:
                    without_file = stimulus
                    file = Path(stimuli.root) / stimulus.path if stimuli.root and stimulus.path else None
                    if file is not None and file.is_file() and not stimulus.recipe:
                        return _Shown(stimulus, file)
    if without_file is None:
        raise UserError(f"no manifest of the run has {name}", "score the run again: cuebench score RUN")
    return _Shown(without_file, None)


def _opened(file: Path | None, sha256: str) -> str:
    """Return the picture that was shown as a URL; empty where its file is gone or is another one by now."""
    if file is None:
        return ""
    try:
        picture = read_rgb(file, sha256)
    except UserError:
        return ""
    return image_url(picture.resize((224, 224), Image.Resampling.LANCZOS))


def _chart(records: Sequence[dict[str, Any]], url: str, stimulus: Stimulus, room: float) -> Any:
    names = list(dict.fromkeys(r["name"] for r in records))
    known = [c for c in (stimulus.shape, stimulus.texture) if c]
    others = sorted({r["answer"] for r in records} - {*known, _NO_CLASS})
    classes = list(
        dict.fromkeys([*known, *others, *([_NO_CLASS] if any(r["answer"] == _NO_CLASS for r in records) else [])])
    )
    short = dict(zip(classes, distinct([words(c) for c in classes], 18)))
    present = [o for o in OUTCOMES if any(r["outcome"] == o for r in records)]
    rows = [
        {**r, "answer": short[r["answer"]], "answered": OUTCOMES[r["outcome"]][0], "size": 46 * r["share"]}
        for r in records
    ]
    colours = tuple(OUTCOMES[o][1] for o in present)
    series = Series(tuple(OUTCOMES[o][0] for o in present), colours, ("circle",) * len(present))
    beside = bool(url) and room > 300
    side = min(110.0, room)
    wide = room - side - 20 if beside else room
    plot = (
        alt.Chart(table(rows))
        .mark_point(filled=True)
        .encode(
            x=alt.X(
                "answer:N",
                sort=list(short.values()),
                scale=alt.Scale(domain=list(short.values())),
                axis=alt.Axis(
                    title=None, orient="top", labelAngle=-40, ticks=False, domain=False, grid=True, labelOverlap=False
                ),
            ),
            y=alt.Y("name:N", sort=names, axis=alt.Axis(title=None, ticks=False, domain=False, grid=True)),
            size=alt.Size("size:Q", scale=None),
            color=series.colour("answered", legend=series.legend(wide)),
            tooltip=tooltip("name", "answer", share=".0%", answers=","),
        )
        .properties(width=wide, height=_ROW * len(names))
    )
    if not url:
        return plot
    picture = pictures([url], [stimulus.id], room=side, columns=1)
    return alt.hconcat(picture, plot, spacing=12) if beside else alt.vconcat(picture, plot, spacing=8)


FIGURE = Figure(
    "decisions",
    "What every observer answered to one image",
    decisions,
    protocol="cue_conflict",
    options={
        "image": Option("", "name of a stimulus, whole or a part of it; default: the one that divides observers most"),
        "protocol": Option("cue_conflict", "one whose answers are classes"),
        "people": PEOPLE,
    },
    pictures=True,
)
