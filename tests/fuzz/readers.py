"""Every reader of files that somebody else wrote, as a function of bytes, with valid examples to start from.

The property of all: a reader returns, or raises a ``UserError``. What it returns has not been decided silently: where
an independent reading is possible, both must agree.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import shutil
import tempfile
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import checksums  # type: ignore[import-not-found]
import numpy as np
import readers_models  # type: ignore[import-not-found]
import readers_stored  # type: ignore[import-not-found]
import readers_tables  # type: ignore[import-not-found]
from base import Reader, archive, file, parquet, picture, text, unchecked  # type: ignore[import-not-found]

from cuebench import registry
from cuebench.analyses.families import read_families
from cuebench.csv_text import read_cell
from cuebench.errors import MissingExtra, UserError
from cuebench.labels import LabelSpace, label_map, label_space
from cuebench.observers.adapters import suite
from cuebench.observers.adapters._zero_shot import read_templates
from cuebench.observers.adapters.recorded import OPTIONS
from cuebench.observers.base import Spec
from cuebench.observers.guess import factories, likely_spec
from cuebench.observers.recorded_columns import STIMULUS
from cuebench.observers.recorded_files import Recording, _may_hold_answers, read_recording
from cuebench.options import parse, split
from cuebench.protocols.cue_decomposition.populations import check_population
from cuebench.reports.figures.bias_over_training import bias_over_training
from cuebench.reports.study_rows import share_rows
from cuebench.responses.job import JobRecord
from cuebench.responses.store import Shards, gather
from cuebench.runs.record import RunRecord
from cuebench.runs.results import read_scores
from cuebench.runs.score import score
from cuebench.runs.scores import load
from cuebench.stimuli.answered import write_stimuli
from cuebench.stimuli.apply_cue import _check_claim
from cuebench.stimuli.archive import unpack
from cuebench.stimuli.decomposition.classes import read_classes
from cuebench.stimuli.fetch import _read_record
from cuebench.stimuli.input_log import LOG, InputLog
from cuebench.stimuli.made import made_count, read_made
from cuebench.stimuli.manifest import read_manifest, to_bytes, write_manifest
from cuebench.stimuli.readers import csv_manifest, image_folder
from cuebench.stimuli.refined_bias import sources
from cuebench.stimuli.refined_bias.masks import coco_mask, open_image
from cuebench.stimuli.refined_bias.verdicts import read_verdicts
from cuebench.stimuli.render import check_recipe, decode
from cuebench.types import Failure, Stimulus, StimulusSet

SPACE = LabelSpace("fuzz", ("cat", "dog"))


def _of_studies() -> dict[str, Reader]:
    """Return the readers of studies; none where their packages are missing, as on a machine with a GPU only."""
    try:
        from readers_study import READERS as of_studies  # type: ignore[import-not-found]
    except MissingExtra:
        return {}
    return dict(of_studies)


def rows_of(path: Path, delimiter: str = ",") -> list[list[str]] | None:
    """Return the cells of a CSV as Python's own reader sees them; None where it does not agree with itself."""
    try:
        lines = io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")
        rows = [row for row in csv.reader(lines, strict=True, delimiter=delimiter) if row]
    except (csv.Error, UnicodeDecodeError):
        return None
    return rows if rows and len({len(row) for row in rows}) == 1 else None


def read_csv_manifest(path: Path) -> None:
    """Every row of the file must be a stimulus."""
    stimuli = csv_manifest.read(path)
    rows = rows_of(path)
    assert rows is not None, "a CSV was read that is none"
    assert len(stimuli) == len(rows) - 1, "rows were dropped or added"


def read_recorded_csv(path: Path) -> None:
    """Every cell must be what Python's own reader sees, but for the apostrophe of what would be a formula."""
    assert _may_hold_answers(path) in (True, False)
    recording = read_recording(path, SPACE)
    check_recording(recording)
    assert any(_agrees(recording, rows_of(path, delimiter)) for delimiter in ",;\t"), "other cells than in the file"


def _agrees(recording: Recording, rows: list[list[str]] | None) -> bool:
    """Tell whether a recording has the stimuli of a column of these rows, one for each."""
    if rows is None or len(recording) != len(rows) - 1:
        return False
    columns = [[read_cell(cell).strip() for cell in column] for column in zip(*rows)]
    return any(column[0].lower() in STIMULUS and column[1:] == list(recording.names) for column in columns)


def check_recording(recording: Recording) -> None:
    """The parts of a recording must fit each other."""
    assert len(recording) == len(recording.subjects) == len(recording.rt)
    if recording.logits is not None:
        assert np.isfinite(recording.logits).all()
        assert len(recording.logits) == len(recording)


def read_answered(path: Path) -> None:
    """Write the stimuli of a table of answers, and read them as the protocol does."""
    out = path.parent / "answered"
    shutil.rmtree(out, ignore_errors=True)
    written = write_stimuli(path, out)
    assert len(registry.protocols.get("cue_conflict").read(out)) == written.number


def read_picture(path: Path) -> None:
    """What is decoded is eight bits of red, green and blue."""
    assert decode(path.parent, Stimulus("a", path.name)).mode == "RGB"


def read_labels_csv(path: Path) -> None:
    """Read a folder of one image with its labels."""
    (path.parent / "a.png").write_bytes(PNG)
    image_folder.read(path.parent)


def read_archive(path: Path) -> None:
    """Everything must lie in the target, and nothing may be left of what is refused."""
    target = path.parent / "out" / "in"
    shutil.rmtree(target.parent, ignore_errors=True)
    try:
        unpack(path, target)
    except UserError:
        assert not target.exists()
        raise
    finally:
        assert {p.name for p in target.parent.glob("*")} <= {"in"}
        assert {p.name for p in path.parent.iterdir()} <= {"a", "out"}


def read_coco(path: Path) -> None:
    """Read the objects of a COCO file and draw their masks."""
    (path.parent / "a.png").write_bytes(PNG)
    found, _ = sources.find_sources(path.parent)
    for source in found:
        coco_mask(source.annotation or {}, 6, 5)


def read_sources(path: Path) -> None:
    """Read the classes of a source folder."""
    sources.read_classes(path.parent, ["cat"])


def read_suite(path: Path) -> None:
    """Read a list of models."""
    suite.read_members(path)


def read_setting(words: str) -> None:
    """Read ``--set`` and options of a recording."""
    parse(OPTIONS, split([words]), "fuzz")


def read_spec(words: str) -> None:
    """Read an observer's spec and its options."""
    spec = Spec.parse(words)
    assert spec.name
    parse(OPTIONS, spec.options, f"observer {words!r}")


def read_run(path: Path) -> None:
    """Read a run's record, as ``score`` and ``report`` do."""
    record = RunRecord.read(path.parent)
    assert record.options is not None
    for name in record.protocol_names():
        record.headline(name)


# ------------------------------------------------------------------------------------------ a run folder of somebody's

_SHOWN = StimulusSet(
    "cue_conflict",
    tuple(
        Stimulus(f"{shape}1-{texture}2.png", shape=shape, texture=texture, shape_source=f"{shape}1",
                 texture_source=f"{texture}2", condition="conflict" if shape != texture else "same")
        for shape in ("cat", "dog") for texture in ("cat", "dog")
    ),
    targets="targets",
)  # fmt: skip
_LABELS = {"name": "targets", "names": ["cat", "dog"], "ids": []}


def run_folder(folder: Path) -> Path:
    """Write a small finished run: a record, a manifest, the answers of one observer, and scores."""
    key = {"layout": 1}
    shards = Shards.of_key(folder / "responses" / "red--0", key)
    logits = np.array([[2, 1], [1, 2], [2, 1], [0, 1]], np.float32)
    shards.write(_SHOWN.stimuli, {"logits": logits, "stimulus": np.arange(4, dtype=np.int32)}, {})
    targets = b'{"targets": {"cat": ["cat"], "dog": ["dog"]}}'
    labels = f"labels-{hashlib.sha256(targets).hexdigest()[:12]}.json"
    manifest = f"cue_conflict-{_SHOWN.fingerprint[:12]}.parquet"
    write_manifest(replace(_SHOWN, targets=labels), folder / "stimuli" / manifest)
    (folder / "stimuli" / labels).write_bytes(targets)
    job = JobRecord("cue_conflict", "native", "red", "model", "ideal:random", ("logits",), manifest, "red--0",
                    _LABELS, key)  # fmt: skip
    record = RunRecord(
        arguments={
            "observers": ["red"],
            "protocols": ["cue_conflict"],
            "data_root": None,
            "resamples": 100,
            "shard_size": 32,
        },
        status="complete",
        protocols={"cue_conflict": {"version": 1, "origin": "cuebench", "headline": _HEADLINE}},
        jobs=[job],
        stimuli={manifest: {"set": "cue_conflict", "count": 4, "expected": 0, "partial": [], "root": ""}},
        failures=[Failure("blue", "no such model", "cue_conflict", {"hint": "try another"})],
        skipped=[Failure("green", "gives no logits", "cue_conflict")],
        unreadable={"x.png": "cut"},
        notices=["a notice"],
    )
    record.write(folder)
    score(folder)
    return folder


_CONFUSION = "tables/cue_conflict.confusion"
_HEADLINE = {
    "metric": "shape_bias",
    "conditions": ["16-way", "*-way"],
    "direction": "shape",
    "human": 0.95869,
    "human_source": "people",
}


@lru_cache
def run_files() -> dict[str, bytes]:
    """Return the files of the small run; of its record, nothing that depends on the machine."""
    with tempfile.TemporaryDirectory() as name:
        folder = run_folder(Path(name))
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    body = json.loads(files["run.json"])
    body = {**body, "cuebench": "", "environment": {}, "started": "", "finished": ""}
    return {**files, "run.json": checksums.record(json.dumps(body).encode())}


def of_run(name: str, data: bytes, folder: Path) -> Path:
    """Write the small run with one file changed; the last part of the name is enough."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    for path, content in run_files().items():
        (run / path).parent.mkdir(parents=True, exist_ok=True)
        (run / path).write_bytes(data if path.startswith(name) and path.endswith((".json", ".parquet")) else content)
    return run


def read_run_folder(data: bytes, folder: Path) -> None:
    """Show and score a run whose record was changed: the whole way of ``load`` and ``score``."""
    run = of_run("run.json", data, folder)
    outside = {p.name for p in folder.iterdir()}
    try:
        load(run).headline()
    except UserError:
        score(run)
    else:
        score(run)
    assert {p.name for p in folder.iterdir()} == outside, "something was written outside of the folder"


def read_answers(data: bytes, folder: Path) -> None:
    """Score a run whose answers were changed."""
    score(of_run("responses/red--0/", data, folder) if data else of_run("run.json", data, folder))


def read_shard(data: bytes, folder: Path) -> None:
    """Read one file of answers in every way that there is; what is refused by one is refused by all."""
    shards = Shards(folder)
    shards.path(_SHOWN.stimuli).write_bytes(data)
    stored = shards.stored(_SHOWN.stimuli)
    _, errors = shards.read(_SHOWN.stimuli)
    assert stored == errors, "two readings of one file differ"
    gather(shards, _SHOWN.stimuli, 32)


PNG = picture("PNG")
_CSV = b'path,id,label,seed\r\n,one,cat,3\n,"t,wo",dog,4\n'
_RAW = b"subj,session,trial,rt,object_response,category,condition,imagename\ns1,1,1,0.5,cat,cat,0,cat1-dog2.png\n"
_CLASSES = b'{"dataset": "d", "classes": [{"name": "road", "ids": [7], "members": ["road"]}], "ignore": [255]}'
_COCO = {
    "images": [{"id": 1, "file_name": "a.png"}],
    "categories": [{"id": 2, "name": "cat"}],
    "annotations": [
        {"id": 3, "image_id": 1, "category_id": 2, "segmentation": [[0, 0, 4, 0, 4, 4]]},
        {"id": 4, "image_id": 1, "category_id": 2, "segmentation": {"counts": [10, 10, 10], "size": [6, 5]}},
        {"id": 5, "image_id": 1, "category_id": 2, "segmentation": {"counts": ":::", "size": [6, 5]}},
    ],
}
_PICTURES = (
    *(picture(form) for form in ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")),
    *(picture("PNG", mode) for mode in ("L", "LA", "P", "1", "RGBA")),
    picture("TIFF", "F"), picture("TIFF", "I"), picture("JPEG", "CMYK"), picture("TIFF", compression="tiff_lzw"),
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n",
    picture("DDS"), picture("AVIF"), picture("ICO"), picture("JPEG2000"), picture("PCX"), picture("TGA"),
)  # fmt: skip
_STIMULI = StimulusSet("s", (Stimulus("a", "a.png", "0" * 64, label="cat"), Stimulus("b", seed=3)), "x")

_ANSWER_FILE = next(data for name, data in run_files().items() if name.startswith("responses/red--0/"))
_ANSWERS = (_ANSWER_FILE, unchecked(_ANSWER_FILE))
_SCORES = (run_files()["scores.parquet"], unchecked(run_files()["scores.parquet"]))
_TRAINING = [{"epoch": 1, "values": {"a/b": 0.5}, "low": {"a/b": 0.4}, "high": {"a/b": 0.6}, "headline": {"p": "a/b"}}]
_STUDY = {
    "rows": [
        {"measure": "accuracy", "task": "shape", "part": part, "value": 0.8, "n": 9, "people": 3, "note": "group A",
         "intervals": [{"over": over, "low": 0.6, "high": 0.9, "note": ""} for over in ("people", "images")]}
        for part in ("", "person=p1")
    ]
}  # fmt: skip

READERS: dict[str, Reader] = {
    "csv_manifest": Reader(file("m.csv", read_csv_manifest), (_CSV,), "csv"),
    "image_folder": Reader(file("labels.csv", read_labels_csv), (b"file,label,index\na.png,cat,3\n",), "csv"),
    "recorded_csv": Reader(
        file("r.csv", read_recorded_csv),
        (
            _RAW,
            b"stimulus,logit_0,logit_1\na,1,2\nb,3,4\n",
            b"image,prob_0,prob_1\na,0.5,0.5\n",
            b'id,decision,subject\n"a,b",cat,x\n',
            b'stimulus,logits\na,"[1, 2]"\n',
            b"stimulus,cat,dog\na,1,2\n",
        ),
        "csv",
    ),
    "recorded_parquet": Reader(
        file("r.parquet", lambda path: check_recording(read_recording(path, SPACE))),
        (parquet(stimulus=["a", "b"], logits=[[1.0, 2.0], [3.0, 4.0]]), parquet(id=["a"], decision=["cat"], rt=[0.5])),
        "parquet",
    ),
    "label_space_json": Reader(
        file("s.json", label_space), (b'["cat", "dog"]', b'{"names": ["cat"], "ids": ["n1"]}'), "json"
    ),
    "label_space_csv": Reader(file("s.csv", label_space), (b"name,id,index\ncat,n1,0\ndog,n2,1\n",), "csv"),
    "label_map_json": Reader(file("m.json", label_map), (b'{"targets": {"cat": ["tabby", 3]}}',), "json"),
    "label_map_csv": Reader(file("m.csv", label_map), (b"target,member\ncat,tabby\ndog,n02\n",), "csv"),
    "classes_json": Reader(file("classes.json", read_classes), (_CLASSES,), "json"),
    "source_labels": Reader(
        file("labels.json", read_sources),
        (b'{"targets": {"cat": ["tabby"]}, "shape": ["cat"], "texture": [], "sigma": {"cat": 1.5}}',),
        "json",
    ),
    "coco": Reader(file("annotations.json", read_coco), (json.dumps(_COCO).encode(),), "json"),
    "verdicts": Reader(
        file("v.csv", lambda path: read_verdicts(path, ["cat_1"])), (b"cue,verdict,reason\ncat_1,accept,good\n",), "csv"
    ),
    "population": Reader(
        file("p.json", lambda path: check_population(str(path))),
        (b'{"sets": {"imagenet": {"models": {"m": {"eed": 0.5, "voronoi": 0.8, "group": "cnn"}}}}}',),
        "json",
    ),
    "families": Reader(
        file("f.json", read_families),
        (b'{"baseline": "m", "families": {"vit": {"models": ["a", "b"], "expected": "shape"}}}',),
        "json",
    ),
    "suite": Reader(
        file("s.csv", read_suite),
        (b"model,observer,weights,file,address,sha256,keep,sure,note\nm,timm:m,w,,,,,yes,\n",),
        "csv",
    ),
    "image": Reader(file("a.png", read_picture), _PICTURES, seal=checksums.picture),
    "source_image": Reader(file("a.png", open_image), _PICTURES, seal=checksums.picture),
    "archive": Reader(
        file("a", read_archive),
        tuple(archive(form) for form in ("zip", "", "gz", "bz2", "xz")),
        seal=checksums.archive,
    ),
    "manifest": Reader(
        file("manifest.parquet", read_manifest),
        (to_bytes(_STIMULI), unchecked(to_bytes(_STIMULI))),
        "parquet",
        checksums.parquet,
    ),
    "run_json": Reader(
        file("run.json", read_run),
        (
            run_files()["run.json"],
            b'{"format": 1, "seed": 0, "batch_size": 8, "arguments": {"protocols": ["cue_conflict"]}, "jobs": [], '
            b'"failures": [], "skipped": [], "environment": {}, "created": "", "status": "done"}',
            b'{"format": 2, "arguments": {}, "jobs": [], "protocols": {}, "failures": [], "skipped": []}',
        ),
        "json",
        checksums.record,
    ),
    "run_folder": Reader(read_run_folder, (run_files()["run.json"],), "json", checksums.record),
    "shard": Reader(read_shard, _ANSWERS, "parquet", checksums.parquet),
    "answers": Reader(read_answers, _ANSWERS, "parquet", checksums.parquet),
    "scores": Reader(
        file("scores.parquet", lambda path: read_scores(path.parent)), _SCORES, "parquet", checksums.parquet
    ),
    "made_json": Reader(
        file("made.json", lambda path: (made_count(path.parent), read_made(path.parent))),
        (b'{"maker": "cue_conflict", "count": 3, "version": 1}',),
        "json",
    ),
    "fetched_json": Reader(file("fetched.json", _read_record), (b'{"about": "x", "sha256": {"a.png": "00"}}',), "json"),
    "cue_json": Reader(
        file("cue.json", lambda path: _check_claim(path, {"cue": "contrast"}, [])), (b'{"cue": "contrast"}',), "json"
    ),
    "training_json": Reader(
        file("t.json", lambda path: bias_over_training(path).unfitted(480, 504)),
        (json.dumps(_TRAINING).encode(),),
        "json",
    ),
    "study_json": Reader(file("a.json", share_rows), (json.dumps(_STUDY).encode(),), "json"),
    "input_log": Reader(file(LOG, lambda path: InputLog(path.parent)), (b'["a.png", "00"]\n',), "json"),
    "templates": Reader(
        file("t.txt", lambda path: read_templates(str(path))), (b"a photo of a {class}\n# no\n",), "text"
    ),
    "guess_weights": Reader(file("net.pt", lambda path: likely_spec(str(path))), (archive("zip"),), "zip"),
    "guess_python": Reader(
        file("net.py", lambda path: (factories(str(path)), likely_spec(str(path)))),
        (b"def net():\n    return 1\n",),
        "text",
    ),
    "answered": Reader(
        file("answers.csv", read_answered), (b"stimulus,shape,texture,decision\na,cat,dog,cat\nb,dog,cat,cat\n",), "csv"
    ),
    "spec": Reader(
        text(read_spec), (b"recorded:x.csv?labels=imagenet1k&kind=person", b"timm:resnet50?name=a%20b"), "text"
    ),
    "recipe": Reader(
        text(check_recipe),
        (b"contrast?level=0.3;patch_shuffle?grid=4", b"eed?snapshots=[1, 2]", b"blend?other=file:a.png@00ff&gamma_s=1"),
        "text",
    ),
    "setting": Reader(text(read_setting), (b"kind=person", b"level=0.5", b'x={"a": [1, 2]}', b"grids=1,2,3"), "text"),
    **_of_studies(),
    **readers_models.READERS,
    **readers_stored.READERS,
    **readers_tables.READERS,
}
