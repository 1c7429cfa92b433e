"""Readers of models and of what they and people answered: weights, controls, chat endpoints, raw data."""

from __future__ import annotations

import hashlib
import io
import json
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any

import checksums  # type: ignore[import-not-found]
import numpy as np
from base import Reader, file, parquet, text  # type: ignore[import-not-found]

from cuebench.analyses.texture_judgements import read_judgements
from cuebench.labels.ranks import best_ranks_in_parquet
from cuebench.observers.adapters.control import _network
from cuebench.observers.adapters.onnx import _hash
from cuebench.observers.chat.answers import names_of, read_answer, read_caption
from cuebench.observers.chat.endpoint import Budget, Endpoint, _Again, _message
from cuebench.observers.chat.journal import Answer, Journal
from cuebench.observers.chat.prompts import read_prompt
from cuebench.observers.control_files import read_record
from cuebench.observers.raw_data import read_raw_data
from cuebench.observers.torch.weights import fit_file

CLASSES = ("cat", "dog", "car", "clock")


@lru_cache
def checkpoints() -> tuple[bytes, ...]:
    """Return checkpoints of a small network as torch writes them: plain, inside of others, and in the old format."""
    import torch

    state = torch.nn.Linear(2, 3).state_dict()
    found = []
    for content, new in ((state, True), ({"state_dict": state, "ema": state, "epoch": 3}, True), (state, False)):
        buffer = io.BytesIO()
        torch.save(content, buffer, _use_new_zipfile_serialization=new)
        found.append(buffer.getvalue())
    return tuple(found)


@lru_cache
def safetensors(architecture: str = "") -> bytes:
    """Return a file of safetensors: of a small network, or of a control."""
    import torch
    from safetensors.torch import save

    from cuebench.observers.torch.models.small import ARCHITECTURES

    network = ARCHITECTURES[architecture](2) if architecture else torch.nn.Linear(2, 3)
    return bytes(save({name: tensor.contiguous() for name, tensor in network.state_dict().items()}))


def fit_weights(path: Path) -> None:
    """Load weights into a network; those that are accepted have its shapes and are finite or not, but numbers."""
    import torch

    network = torch.nn.Linear(2, 3)
    fit_file(network, path)
    assert network.weight.shape == (3, 2)


def use_control(path: Path) -> None:
    """Read the record of a control, as loading it does."""
    record = read_record(path.with_suffix(".safetensors"))
    assert all(isinstance(name, str) for name in record["labels"]["names"])
    assert f"{record['accuracy']:.3f}"


def control_weights(path: Path) -> None:
    """Load the weights of a control."""
    _network("convnet", 2, path)


def read_reply(data: bytes, folder: Path) -> None:
    """Read what an endpoint sends: an answer, or an error."""
    endpoint = Endpoint("http://localhost/v1", "model", "secret-key", "KEY", Budget())
    _message(data)
    try:
        answer = endpoint._read(data)
    except _Again:
        return
    assert isinstance(answer.text, str)
    assert "secret-key" not in answer.text
    assert answer.tokens_in >= 0 <= answer.tokens_out
    json.dumps(vars(answer), allow_nan=False)


def journal_line(record: dict[str, Any]) -> bytes:
    """Return a line of a journal."""
    data = json.dumps(record).encode()
    return hashlib.sha256(data).hexdigest()[:8].encode() + b" " + data + b"\n"


def journal_checksums(data: bytes) -> bytes:
    """Compute the checksum of every line anew."""
    lines = [line.partition(b" ")[2] for line in data.split(b"\n")]
    return b"\n".join(hashlib.sha256(b).hexdigest()[:8].encode() + b" " + b if b else b for b in lines)


def read_journal(path: Path) -> None:
    """Read a journal: what counts are answers in words and finite costs."""
    journal = Journal(path, {})
    journal.read()
    assert all(isinstance(a, Answer) and isinstance(a.text, str) for a in journal.answers.values())
    assert np.isfinite(journal.spent.cost)


def read_words(words: str) -> None:
    """Read an answer in words: it is one of the classes, or undecided."""
    for reading in (read_answer(words, CLASSES), read_caption(words, names_of(CLASSES))):
        assert reading.decision in (*CLASSES, "undecided")


def read_raw(path: Path) -> None:
    """Read raw responses; every row of the file is one of the table."""
    found = read_raw_data(path.parents[1])
    assert found.table.num_rows > 0


def raw_file(data: bytes, folder: Path) -> None:
    """Write the file where raw data are expected: in the folder of a data set."""
    place = folder / "raw" / "cue-conflict"
    place.mkdir(parents=True, exist_ok=True)
    path = place / "cue-conflict_subject-01_session_1.csv"
    path.write_bytes(data)
    read_raw(path)


def ranks(path: Path) -> None:
    """Count ranks in a file of logits."""
    members = [np.array([0]), np.array([1])]
    best = best_ranks_in_parquet(path, np.array([0, 1]), members)
    assert best.min() >= 1


def header(data: bytes) -> bytes:
    """Safetensors: the length of the header, which a change of it makes wrong."""
    body = data[8:]
    depth = end = 0
    for end, byte in enumerate(body, 1):  # noqa: B007 - the place of the closing bracket
        depth += (byte == ord("{")) - (byte == ord("}"))
        if depth == 0:
            break
    while body[end : end + 1] == b" ":  # it is filled up with spaces
        end += 1
    return struct.pack("<Q", end) + body


def onnx_like(*names: str) -> bytes:
    """Return bytes that name files beside a model, as ONNX encodes them."""
    return b"ONNX" + b"".join(b"\n\x08location\x12" + bytes([len(n)]) + n.encode() for n in names)


_RECORD = {"control": "shape", "about": "a", "architecture": "classifier", "seed": 0, "accuracy": 0.98,
           "labels": {"names": ["cat", "dog"], "ids": ["", ""]}}  # fmt: skip
_REPLY = {"choices": [{"message": {"content": "B. dog"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9,
          "completion_tokens": 3}}  # fmt: skip
_PARTS = {"choices": [{"message": {"content": [{"type": "text", "text": "secret-key"}]}}], "usage": None}
_ERROR = {"error": {"message": "too long", "code": 400}}
_JOURNAL = b"".join(
    journal_line(record)
    for record in (
        {"question": {"model": "m"}},
        {"asked": "a", "cost": 0.002},
        {"answer": "a", "text": "B", "finish": "stop", "tokens_in": 9, "tokens_out": 1, "cost": 0.001},
        {"asked": "b", "cost": 0.002},
        {"failed": "b", "why": "429", "cost": 0},
    )
)
_RAW = b"""subj,session,trial,rt,object_response,category,condition,imagename
subject-01,1,1,0.5,cat,cat,0,0001_cue_s01_cat1-dog2.png
subject-01,1,2,NaN,na,dog,0,0002_cue_s01_dog1-cat2.png
"""

READERS: dict[str, Reader] = {
    "weights_torch": Reader(file("w.pt", fit_weights), checkpoints, "zip", checksums.archive),
    "weights_safetensors": Reader(file("w.safetensors", fit_weights), lambda: (safetensors(),), "bytes", header),
    "control_record": Reader(file("shape-0-00.json", use_control), (json.dumps(_RECORD).encode(),), "json"),
    "control_weights": Reader(
        file("w.safetensors", control_weights), lambda: (safetensors("convnet"),), "bytes", header
    ),
    "onnx_files": Reader(file("m.onnx", _hash), (onnx_like("weights.bin", "sub/w"),)),
    "chat_reply": Reader(read_reply, tuple(json.dumps(r).encode() for r in (_REPLY, _PARTS, _ERROR)), "json"),
    "chat_journal": Reader(file("m.jsonl", read_journal), (_JOURNAL,), "lines", journal_checksums),
    "chat_words": Reader(
        text(read_words),
        (b"The answer is (b).", b"**Answer:** C", b"A photo of two dogs.\n\nFinal answer: cat", b"I'm sorry, I can't."),
        "text",
    ),
    "chat_prompt": Reader(file("p.txt", lambda path: read_prompt(str(path))), (b"What is it?\n{options}\n",), "text"),
    "raw_data": Reader(raw_file, (_RAW,), "csv"),
    "judgements": Reader(
        file("j.csv", read_judgements),
        (b"subject,image,options,answer\ns1,a.png,dotted;woven,dotted\ns2,b.png,dotted;woven,dotted;woven\n",),
        "csv",
    ),
    "logits_parquet": Reader(file("l.parquet", ranks), (parquet(logits=[[1.0, 2.0], [3.0, 4.0]]),), "parquet"),
}
