"""Tables of answers as programs and people write them: what could be read in two ways is refused with what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.observers.adapters.recorded import RecordedObserver, load
from cuebench.observers.base import LoadOptions, Spec

CLASSES = ("bear", "cat", "dog")


def observers(path: Path, options: str = "", targets: Sequence[str] = CLASSES) -> list[RecordedObserver]:
    return load(Spec.parse(f"recorded:{path}{options}"), LoadOptions(targets=tuple(targets)))  # type: ignore[return-value]


def text(folder: Path, content: str, name: str = "m.csv") -> Path:
    (folder / name).write_text(content, "utf-8")
    return folder / name


def decisions(file: Path, options: str = "") -> list[str]:
    (found,) = observers(file, options)
    return found.columns["decisions"].tolist()


# ------------------------------------------------------------------------------------- answers and who gave them


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("image,decision,response", ["a,cat,cat", "b,,dog"], "line 3: .*decision is '' and response is 'dog'"),
        ("image,decision,answer", ["a,cat,cat", "b,na,dog"], "line 3: .*decision is '' and answer is 'dog'"),
        ("image,decision,answer", ["a,cat,cat", "b,dog,"], "line 3: .*decision is 'dog' and answer is ''"),
        ("image,decision,answer", ["a,,cat", "b,,dog"], "line 2: .*decision is '' and answer is 'cat'"),
    ],
)
def test_an_answer_in_one_of_two_columns_is_refused(header, rows, message, tmp_path):
    with pytest.raises(UserError, match=message) as error:
        observers(text(tmp_path, "\n".join([header, *rows]) + "\n"))
    assert "rename or remove" in error.value.hint


def test_no_answer_in_both_columns_is_no_answer(tmp_path):
    assert decisions(text(tmp_path, "image,decision,answer\na,cat,cat\nb,na,\nc,,\n")) == ["cat", "na", "na"]
    assert decisions(text(tmp_path, "image,decision,answer\na,cat,\nb,,\n")) == ["cat", "na"]  # an unused column


@pytest.mark.parametrize(
    "name", ["participant_id", "Subject_ID", "worker_id", "Participant ID", "WorkerId", "participant-id"]
)
def test_columns_of_people_are_people(name, tmp_path):
    found = observers(text(tmp_path, f"{name},image,decision\nann,a,cat\nbob,b,dog\n"))
    assert [(o.name, o.kind) for o in found] == [("ann", "person"), ("bob", "person"), ("people", "people")]


def test_a_column_model_names_models(tmp_path):
    found = observers(text(tmp_path, "model,image,decision\nvit,a,cat\nresnet,a,dog\n"))
    assert [(o.name, o.kind) for o in found] == [("resnet", "model"), ("vit", "model")]


@pytest.mark.parametrize("other", ["participant", "worker_id", "model", "observer"])
def test_two_columns_of_subjects_that_differ_are_refused(other, tmp_path):
    with pytest.raises(UserError, match="could be the subject"):
        observers(text(tmp_path, f"participant_id,{other},image,decision\nann,x,a,cat\nbob,x,b,dog\n"))
    found = observers(text(tmp_path, f"participant_id,{other},image,decision\nann,ann,a,cat\nbob,bob,b,dog\n"))
    assert {o.name for o in found} == {"ann", "bob", "people"} - ({"people"} if other == "observer" else set())
