"""Run folders as small archives: what scoring needs and the truth, nothing that names a machine."""

from __future__ import annotations

import json
import lzma
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from cuebench.files import hash_file, open_parquet, parquet_bytes
from cuebench.runs.record import _write_body

HERE = Path(__file__).parent
NOT_PACKED = ("data", "scores.json", "report.html", "stimuli.png", ".lock", "segmentation", "parts")


def archive(name: str) -> Path:
    """Return where a frozen folder lies."""
    return HERE / f"{name}.tar.xz"


def pack(name: str, folder: Path) -> Path:
    """Pack a folder; the same files give the same bytes."""
    target = archive(name)
    with lzma.open(target, "wb", preset=9 | lzma.PRESET_EXTREME) as out, tarfile.open(fileobj=out, mode="w") as tar:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size = path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(entry, file)
    return target


def unpack(name: str, folder: Path) -> Path:
    """Unpack a frozen folder: ``run`` (not for recordings of a data set) and ``truth``."""
    with tarfile.open(archive(name)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def copy_run(run: Path, target: Path, renamed: Mapping[str, str]) -> Path:
    """Copy of a run folder what scoring needs, with neutral names of folders; nothing of the machine is left."""
    shutil.copytree(run, target, ignore=shutil.ignore_patterns(*NOT_PACKED))

    def neutral(text: str) -> str:
        for old, new in renamed.items():
            text = text.replace(old, new)
        return text

    body = json.loads(neutral((target / "run.json").read_text("utf-8")))
    body.pop("checksum")
    body["arguments"]["folder"] = next(iter(renamed.values()))
    body["environment"] = {k: body["environment"][k] for k in ("python", "packages")}
    for path in (target / "stimuli").glob("*.parquet"):
        table = open_parquet(path.read_bytes()).file.read()
        metadata = {k: neutral(v.decode()).encode() for k, v in (table.schema.metadata or {}).items()}
        if metadata != (table.schema.metadata or {}):
            path.write_bytes(parquet_bytes(table.replace_schema_metadata(metadata)))
            body["files"][f"stimuli/{path.name}"] = hash_file(path).sha256
    _write_body(target, body)
    return target


def round_answers(run: Path, observer: str, step: float) -> None:
    """Round the logits and features of a real network to a multiple of ``step``: a fifth of the size."""
    for path in run.glob(f"responses/{observer}--*/*.parquet"):
        table = open_parquet(path.read_bytes()).file.read()
        for place, field in enumerate(table.schema):
            if pa.types.is_fixed_size_list(field.type) and pa.types.is_floating(field.type.value_type):
                flat = table.column(place).combine_chunks().flatten().to_numpy(zero_copy_only=False)
                rounded = pa.array((np.rint(flat / step) * step).astype(flat.dtype))
                table = table.set_column(place, field, pa.FixedSizeListArray.from_arrays(rounded, type=field.type))
        path.write_bytes(parquet_bytes(table))


def squeeze(run: Path) -> None:
    """Write the same answers with the bytes of a column's numbers beside each other, where that is smaller."""
    for path in run.glob("responses/*/*.parquet"):
        table = open_parquet(path.read_bytes()).file.read()
        lists = [field for field in table.schema if pa.types.is_fixed_size_list(field.type)]
        split = [f"{f.name}.list.element" for f in lists if pa.types.is_floating(f.type.value_type)]
        if split:
            data = parquet_bytes(table, use_dictionary=False, use_byte_stream_split=split)
            path.write_bytes(min(data, path.read_bytes(), key=len))
