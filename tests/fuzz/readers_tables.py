"""The tables of a run that figures and analyses read, forged together with the hashes of the record."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import checksums  # type: ignore[import-not-found]
import pyarrow as pa
from base import Reader, picture, unchecked  # type: ignore[import-not-found]

from cuebench.analyses.texture_judgements import identified
from cuebench.analyses.texture_of import association_of
from cuebench.errors import UserError
from cuebench.reports.draw import draw
from cuebench.reports.html import trust
from cuebench.responses.job import JobRecord
from cuebench.runs.record import RunRecord
from cuebench.runs.results import write_scores
from cuebench.stimuli.manifest import write_manifest
from cuebench.types import Score, Stimulus, StimulusSet

TEXTURES, CONFLICTS, PEOPLE, SHAPES = "texture_association", "cue_conflict", "human_alignment", "pure_shape"
_CLASSES = ("cat", "dog", "owl", "pig")
_OBSERVERS = ("red", "blue")


def _both(columns: dict[str, Any]) -> pa.Table:
    """Return a table with the same rows for each of the two observers."""
    size = len(next(iter(columns.values())))
    return pa.table(
        {"observer": [o for o in _OBSERVERS for _ in range(size)], **{k: [*v, *v] for k, v in columns.items()}}
    )


def _tables() -> dict[str, pa.Table]:
    """Return what the protocols write, in small."""
    return {
        f"{TEXTURES}.tav": _both(
            {"texture": ["dots", "dots", "moss"], "label": ["cat", "dog", "owl"], "position": [0, 1, 2],
             "count": [3, 1, 4], "tav": [0.75, 0.25, 1.0]}
        ),
        f"{TEXTURES}.textures": _both(
            {"texture": ["dots", "moss"], "n": [4, 4], "confidence": [0.5, 0.75], "top_label": ["cat", "owl"],
             "top_share": [0.75, 1.0], "too_few": [False, True]}
        ),
        f"{TEXTURES}.confidence": _both({"low": [0.0, 0.5], "high": [0.5, 1.0], "count": [3, 5]}),
        f"{TEXTURES}.groups": _both(
            {"by": ["label", "prediction"], "label": ["cat", "owl"], "texture": ["dots", "moss"], "n": [2, 3],
             "share": [0.5, 1.0], "value": [0.5, 0.25], "dominant": [False, True]}
        ),
        f"{TEXTURES}.images": _both(
            {"part": ["clean", "adversarial"], "stimulus": ["a", "b"], "texture": ["dots", "moss"],
             "texturedness": [0.5, 0.25], "prediction": ["cat", "owl"], "label": ["cat", "dog"],
             "confidence": [0.5, 0.75], "correct": [True, False]}
        ),
        f"{TEXTURES}.agreement": _both({"label": ["cat", "dog"], "prediction": [2, 0], "own": [1, 3]}),
        f"{CONFLICTS}.confusion": _both(
            {"condition": ["4-way"] * 8, "shape": ["cat", "cat", "dog", "dog", "owl", "owl", "pig", "pig"],
             "texture": ["dog", "owl", "cat", "owl", "pig", "dog", "pig", "cat"],
             "response": ["cat", "owl", "dog", "dog", "cat", "owl", "pig", "pig"], "count": [3, 2, 1, 4, 2, 3, 1, 5]}
        ),
        f"{CONFLICTS}.{trust.CALIBRATION}": pa.table(
            {"planted": [0.25, 0.75], "found": [0.3, 0.7], "n": [40, None], "note": ["", "few"], "ok": [True, False]}
        ),
        f"{PEOPLE}.error_consistency": pa.table(
            {"observer": ["red", "blue"], "other": ["blue", "red"], "condition": ["mean", "mean"],
             "value": [0.25, 0.25], "n": [40, 40]}
        ),
    }  # fmt: skip


def _scores() -> list[Score]:
    """Return the numbers that figures want beside the tables."""
    shown = [(CONFLICTS, "4-way", "shape_bias"), (TEXTURES, "all", "texture_agreement"), (PEOPLE, "mean", "accuracy")]
    shown += [(SHAPES, f"silhouettes/16-way/class={label}", "accuracy") for label in _CLASSES]
    return [
        Score(protocol, 1, observer, condition, metric, 0.2 + 0.1 * i, 0.1, 0.9, "stimuli", 40)
        for observer in _OBSERVERS
        for i, (protocol, condition, metric) in enumerate(shown)
    ]


def _run(folder: Path) -> None:
    (folder / "a.png").write_bytes(picture("PNG"))
    shown = (Stimulus("a", "a.png", label="cat"), Stimulus("b", "a.png", label="dog"))
    stimuli = StimulusSet(TEXTURES, shown, root=str(folder))
    manifest = f"{TEXTURES}-{stimuli.fingerprint[:12]}.parquet"
    write_manifest(stimuli, folder / "stimuli" / manifest)
    labels = {"name": "classes", "names": list(_CLASSES), "ids": []}
    jobs = [
        JobRecord(protocol, "native", name, "model", f"ideal:{name}", ("logits",), manifest, f"{name}--0", labels,
                  {"layout": 1})
        for protocol in (TEXTURES, CONFLICTS, PEOPLE, SHAPES) for name in _OBSERVERS
    ]  # fmt: skip
    RunRecord(
        {"observers": list(_OBSERVERS), "protocols": [TEXTURES], "data_root": None},
        status="complete",
        jobs=jobs,
        stimuli={manifest: {"set": TEXTURES, "count": 2, "expected": 0, "partial": [], "root": str(folder)}},
        files=write_scores(folder, _scores(), _tables()),
    ).write(folder)


@lru_cache
def _examples() -> dict[str, bytes]:
    """Return table → its file."""
    with tempfile.TemporaryDirectory() as name:
        _run(Path(name))
        return {p.stem: p.read_bytes() for p in (Path(name) / "tables").iterdir()}


def _forged(table: str, data: bytes, folder: Path) -> Path:
    """Write the run with one table changed, and say so in its record; all else is written once."""
    run, name, before = folder / "run", f"tables/{table}.parquet", folder / "before.json"
    if not before.is_file():
        run.mkdir()
        _run(run)
        shutil.copy(run / "run.json", before)
    body = json.loads(before.read_bytes())
    body["files"][name] = hashlib.sha256(data).hexdigest()
    (run / "run.json").write_bytes(checksums.record(json.dumps(body).encode()))
    (run / name).write_bytes(data)
    return run


def _figure(words: str) -> Callable[[Path], object]:
    """Return a function that draws a figure, ``name`` or ``name?option=value``, of a run."""
    name, _, option = words.partition("?")
    options = dict([option.split("=")]) if option else {}
    return lambda run: draw(name, run, options).unfitted(480, 504)


def _forged_in(table: str, *figures: str, also: Callable[[Path], object] | None = None) -> Reader:
    """Return a reader of a run in which one table was forged; what one figure refuses, another one may read."""
    ways = [*map(_figure, figures), *([also] if also else [])]

    def read(data: bytes, folder: Path) -> None:
        run = _forged(table, data, folder)
        refused = None
        for way in ways:
            try:
                way(run)
            except UserError as error:
                refused = error
        if refused is not None:
            raise refused

    def seeds() -> tuple[bytes, ...]:
        data = _examples()[table]
        return data, unchecked(data)

    return Reader(read, seeds, "parquet", checksums.parquet)


def _associations(run: Path) -> None:
    """Read the matrix as ``texture_of`` does: a row for each texture, a column for each class."""
    found = association_of(run, "red")
    assert found.tav.shape == (len(found.textures), len(_CLASSES))


def _calibration(run: Path) -> None:
    """Show a table that a protocol of somebody's own may write for the report; it declares no columns."""
    trust._calibration(cast(Any, SimpleNamespace(runs=[SimpleNamespace(folder=run)], protocols=[CONFLICTS])))


READERS = {
    "tav_table": _forged_in(f"{TEXTURES}.tav", "tav_heatmap", also=_associations),
    "textures_table": _forged_in(f"{TEXTURES}.textures", also=_associations),
    "confidence_table": _forged_in(f"{TEXTURES}.confidence", "texture_confidence"),
    "groups_table": _forged_in(f"{TEXTURES}.groups", "texture_dominance", also=_associations),
    "images_table": _forged_in(
        f"{TEXTURES}.images", "texture_examples", "texture_examples?part=adversarial", also=identified
    ),
    "agreement_table": _forged_in(f"{TEXTURES}.agreement", "texture_agreement_classes"),
    "confusion_table": _forged_in(f"{CONFLICTS}.confusion", "confusion", "shape_bias", "class_agreement"),
    "calibration_table": _forged_in(f"{CONFLICTS}.{trust.CALIBRATION}", also=_calibration),
    "pairs_table": _forged_in(f"{PEOPLE}.error_consistency", "consistency_matrix"),
}
