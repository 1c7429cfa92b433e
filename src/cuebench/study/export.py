"""From the database to a tidy table: one row for each answer, which ``recorded:`` reads as people.

Nothing is left out: practice, attention checks and whatever the exclusion rules exclude are rows, too, with their
reason in ``excluded``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuebench.csv_text import csv_text
from cuebench.errors import UserError
from cuebench.files import ending_of, parquet_bytes, write_atomic
from cuebench.study import database as db
from cuebench.study import exclusions
from cuebench.study.folder import Study
from cuebench.study.types import StudyImage, Trial

if TYPE_CHECKING:
    import pyarrow as pa

BETWEEN = "|"
"""What joins several values in a cell."""
_LABELS = ("label", "shape", "texture", "condition")
_TYPES = {
    "position": "int32",
    "planned_ms": "int32",
    "rt_ms": "float64",
    "shown_ms": "float64",
    "focus_losses": "int32",
}
_TRUTHS = ("finished", "correct")
COLUMNS = (
    *("study", "design", "participant", "group", "language", "source", "finished"),
    *("block", "position", "task", "kind", "stimulus", "image", *_LABELS, "options"),
    *("response", "correct", "chosen", "rt_ms", "planned_ms", "shown_ms", "text", "focus_losses", "client"),
    *("answered_at", "excluded", "rules_sha256"),
)
"""The columns of an export, in order."""


def export_rows(study: Study, database: db.Database) -> list[dict[str, Any]]:
    """Return all answers as rows with the columns ``COLUMNS``."""
    trials: dict[int, Sequence[Trial]] = {}
    with database.reading() as connection:
        people = {person.number: person for person in db.participants(connection)}
        stored = list(db.read_answers(connection))
        for number in dict.fromkeys(answer.participant for answer in stored):
            planned = db.read_trials(connection, number)
            if planned is None:  # a server that was killed had drawn them and not stored them: draw the same again
                group, planned = study.assign(people[number].slot)
                people[number] = people[number]._replace(group=group)
            trials[number] = planned
    rows = [_row(study, people[item.participant], trials[item.participant], item) for item in stored]
    applied = exclusions.apply_rules(study.rules, rows)
    for row, reason in zip(rows, applied.rows):
        row["excluded"] = reason
    return rows


def export_table(study: Study, database: db.Database) -> pa.Table:
    """Return all answers as a table."""
    return _table(export_rows(study, database))


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    import pyarrow as pa

    kinds = {name: "bool" if name in _TRUTHS else _TYPES.get(name, "string") for name in COLUMNS}
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in kinds.items()])
    return pa.Table.from_pylist([dict(row) for row in rows], schema)


def csv_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return rows as CSV in UTF-8; an empty cell is no value."""
    words = {True: "true", False: "false"}
    cells = ([words[v] if isinstance(v := row[name], bool) else v for name in COLUMNS] for row in rows)
    return csv_text(COLUMNS, cells).encode()


def write_export(study: Study, database: db.Database, out: Path) -> list[dict[str, Any]]:
    """Write ``out``, a Parquet or CSV file by its ending, and return its rows."""
    ending = ending_of(out, ".csv")
    if ending not in (".parquet", ".csv"):
        raise UserError(f"{out.name} is neither .parquet nor .csv", "name the file answers.parquet or answers.csv")
    rows = export_rows(study, database)
    write_atomic(out, csv_bytes(rows) if ending == ".csv" else parquet_bytes(_table(rows)))
    return rows


def _row(study: Study, person: db.Participant, trials: Sequence[Trial], stored: db.StoredAnswer) -> dict[str, Any]:
    answer, trial = stored.answer, trials[stored.answer.position]
    shown = [study.images[i] for i in trial.stimuli]
    names = {image.id: image.name for image in shown}
    first = shown[0] if shown else StudyImage("", "", "", 0, "")
    losses = answer.client.get("focus_losses")
    why = person.excluded or ("draft" if study.draft else "")
    return {
        "study": study.settings.name,
        "design": study.settings.design,
        "participant": person.name,
        "group": person.group,
        "language": person.language,
        "source": person.source,
        "finished": person.finished_at is not None,
        "block": trial.block,
        "position": trial.position,
        "task": trial.task,
        "kind": trial.kind,
        "stimulus": BETWEEN.join(image.name for image in shown),
        "image": first.name,
        **{name: getattr(first, name) for name in _LABELS},
        "options": BETWEEN.join(names.get(option, option) for option in trial.options),
        "response": BETWEEN.join(names.get(option, option) for option in answer.response),
        "correct": stored.correct,
        "chosen": chosen_cue(trial, answer.response, shown),
        "rt_ms": answer.rt_ms,
        "planned_ms": trial.planned_ms if answer.planned_ms is None else answer.planned_ms,
        "shown_ms": answer.shown_ms,
        "text": answer.text,
        "focus_losses": losses if isinstance(losses, int) else None,
        "client": stored.client_text,
        "answered_at": stored.answered_at,
        "excluded": f"{exclusions.BY_HAND}{why}" if why else "",
        "rules_sha256": study.rules.sha256,
    }


def chosen_cue(trial: Trial, response: Sequence[str], shown: Sequence[StudyImage]) -> str:
    """Return which cue an answer follows: ``shape``, ``texture`` or ``neither``; empty where that is no question.

    Of an image in conflict: the answer is the class of its shape, of its texture, or another. Of a triplet: the chosen
    match shares the shape or the texture with the anchor.
    """
    if trial.kind not in ("trial", "practice") or len(response) != 1 or not shown:
        return ""
    first = shown[0]
    if trial.task == "same_kind":
        match = next((image for image in shown[1:] if image.id == response[0]), None)
        if match is None:
            return ""
        same_shape, same_texture = match.shape == first.shape, match.texture == first.texture
        return "neither" if same_shape == same_texture else "shape" if same_shape else "texture"
    if trial.task == "words" or not first.shape or not first.texture or first.shape == first.texture:
        return ""
    return {first.shape: "shape", first.texture: "texture"}.get(response[0], "neither")
