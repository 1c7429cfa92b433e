"""Files that somebody else wrote: nothing is decided silently, nothing ends in a traceback, nothing blocks."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from cuebench.cli import invoke
from cuebench.errors import UserError, printable
from cuebench.files import hash_file
from cuebench.labels import LabelSpace, label_map, label_space
from cuebench.observers import preprocess
from cuebench.observers.base import Spec
from cuebench.observers.preprocess import Geometry, Preprocess
from cuebench.observers.recorded_files import read_recording
from cuebench.options import split
from cuebench.reading import parse_csv, parse_json, parse_parquet, parse_toml, read_bytes, read_json
from cuebench.stimuli.decomposition.classes import read_classes
from cuebench.stimuli.readers import image_folder
from cuebench.stimuli.readers.scan import check_hashes
from cuebench.stimuli.render import check_recipe
from cuebench.types import Stimulus, StimulusSet


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' occurs 2 times"),
        ('{"x": {"b": 1, "c": 1, "b": 1}}', "the key 'b' occurs 2 times"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("[" * 980 + "]" * 980, "nested too deeply"),  # Python reads it, and cannot print it a few calls later
        ("{", "not valid JSON"),
    ],
)
def test_json_is_strict(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_json(text, "x.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,a\n1,2\n", "column 'a' occurs twice"),
        ("a, a\n1,2\n", "column 'a' occurs twice"),
        ("a;b\n1;2\n", "separated by semicolons"),
        ("a\tb\n1\t2\n", "separated by tabs"),
        ("a,b\n1\n", "line 2: wrong number of columns"),
        ('a,b\n1,"2\n3,4\n', "unexpected end of data"),
        ("a,b\n1," + "x" * 200_000 + "\n", "field larger than field limit"),
        ("a,b\n1,\0\n", "null bytes"),
        ("b\n1\n", "missing column a; found b"),
    ],
)
def test_csv_is_strict(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_csv(text, "x.csv", needed=["a"])


def test_latin_1_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes('{"a": 1,\n"b": "é"}'.encode("latin-1"))
    with pytest.raises(UserError, match=r"not UTF-8 text \(byte 15, line 2\)"):
        read_json(tmp_path / "x.json")


def test_pipes_folders_and_large_files_are_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(UserError, match=f"{path} is no regular file"):
            read_bytes(path)
    (tmp_path / "large").write_bytes(b"123")
    with pytest.raises(UserError, match="at most 2 are read"):
        read_bytes(tmp_path / "large", most=2)


def test_damaged_parquet_and_repeated_columns(tmp_path: Path) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), sink)
    data = sink.getvalue().to_pybytes()
    with pytest.raises(UserError, match="column 'a' occurs twice"):
        parse_parquet(data, "x")
    with pytest.raises(UserError, match="x cannot be read"):
        parse_parquet(data[:-9], "x")


# ------------------------------------------------------------------------------------------------------ the last wins


def recorded(tmp_path: Path, text: str, labels: LabelSpace | None = None) -> None:
    (tmp_path / "r.csv").write_text(text)
    read_recording(tmp_path / "r.csv", labels)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stimulus,logit_0,logit_00\na,1,2\n", "logit_0 and logit_00 have the same number"),
        ("stimulus,cat,Cat,dog\na,1,2,3\n", "'cat' and 'Cat' are both class 'cat'"),
        ("stimulus,decision,decision\na,cat,dog\n", "'decision' occurs twice"),
        ("stimulus;decision\na;cat;dog\n", "wrong number of columns"),
        ("stimulus,logit_0\na,1_0\n", "logit_0 is '1_0', not a number"),
    ],
)
def test_two_columns_of_one_class_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        recorded(tmp_path, text, LabelSpace("x", ("cat", "dog")))


def test_many_columns_take_linear_time(tmp_path: Path) -> None:
    head = ",".join(f"logit_{i}" for i in range(20_000))
    row = ",".join(["1"] * 20_000)
    (tmp_path / "r.csv").write_text(f"stimulus,{head}\na,{row}\n")
    start = time.monotonic()
    recording = read_recording(tmp_path / "r.csv", None)
    assert recording.logits is not None
    assert recording.logits.shape == (1, 20_000)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.json", '{"targets": {"cat": ["a"], "Cat": ["b"]}}', "'cat' and 'Cat' differ only by case"),
        ("m.json", '{"targets": {"cat": ["a"], "cat": ["b"]}}', "the key 'cat' occurs 2 times"),
        ("m.json", '{"targets": {"cat": [["a"]]}}', "has the member"),
        ("m.json", "[" * 50_000, "nested too deeply"),
        ("m.csv", "target;member\ncat;a\n", "separated by semicolons"),
    ],
)
def test_label_maps(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=message):
        label_map(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["cat", "Cat"]', "'cat' and 'Cat' differ only by case"),
        ('["cat", ["dog"]]', r"\['dog'\] is no name"),
        ('{"names": ["cat", "dog"], "ids": ["n1", "n1"]}', "id 'n1' stands for 2 classes"),
        ('{"names": ["cat", null]}', "None is no name"),
    ],
)
def test_label_spaces(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(UserError, match=message):
        label_space(tmp_path / "s.json")


@pytest.mark.parametrize(
    "text",
    [
        '{"classes": [{"name": "road", "ids": [7]}], "ignore": 3}',
        '{"classes": [{"name": "road", "ids": [[7]]}]}',
        '{"classes": [{"name": "road", "ids": [7], "members": "road"}]}',
        '{"classes": [{"name": ["road"], "ids": [7]}]}',
        '{"classes": [{"name": "road", "ids": [7]}, {"name": "Road", "ids": [8]}]}',
        '{"classes": [{"name": "road", "ids": [7], "ids": [8]}]}',
        '{"classes": [{"name": "road", "ids": {"a": 1}}], "dataset": []}',
    ],
)
def test_classes_of_wrong_types(tmp_path: Path, text: str) -> None:
    (tmp_path / "classes.json").write_text(text)
    with pytest.raises(UserError):
        read_classes(tmp_path / "classes.json")


def test_options_that_are_written_twice() -> None:
    with pytest.raises(UserError, match="option 'labels' is written twice"):
        Spec.parse("recorded:x.csv?labels=a&labels=b")
    with pytest.raises(UserError, match="option 'level' is written twice"):
        check_recipe("contrast?level=0.1&level=0.2")
    with pytest.raises(UserError, match="'level' is given twice"):
        split(["level=0.1", "level=0.2"])


# ------------------------------------------------------------------------------------------------------- what is shown

ESCAPE = "net\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


def test_escape_codes_never_reach_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Neither from an error message nor from a name in a table."""
    (tmp_path / "r.csv").write_text(f"stimulus,observer,decision\nairplane1-bicycle2,{ESCAPE},airplane\n", "utf-8")
    assert invoke(["run", "-p", "cue_conflict", "-o", f"recorded:{tmp_path / 'r.csv'}", "--out", str(tmp_path / "o"),
                   "--data-root", str(tmp_path)]) in (0, 1, 2)  # fmt: skip
    assert invoke(["explain", ESCAPE]) == 2
    shown = capsys.readouterr()
    for code in ("\x1b", "\x9b", "\x07", "\u202e"):
        assert code not in shown.out + shown.err


def test_what_a_verb_prints_is_cleaned_and_json_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    from cuebench.cli._console import clean_output, plain_console
    from cuebench.cli._json import print_json

    with clean_output():
        print(ESCAPE)
        plain_console().print(ESCAPE)
        print_json({"name": ESCAPE})
    text = capsys.readouterr().out
    assert printable(text) == text
    assert text.count("�]0;owned") == 2
    assert "\\u202e" in text


def test_warnings_are_cleaned() -> None:
    from cuebench.cli._console import clean_output

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with clean_output():
            warnings.warn(ESCAPE, RuntimeWarning, stacklevel=1)
        warnings.warn(ESCAPE, RuntimeWarning, stacklevel=1)
    cleaned, untouched = (str(warning.message) for warning in caught)
    assert cleaned == printable(ESCAPE) != ESCAPE
    assert untouched == ESCAPE


def test_warnings_of_ours_are_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    from cuebench import processes
    from cuebench.cli._console import clean_output

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with clean_output():
            warnings.warn_explicit("look here", RuntimeWarning, processes.__file__, 66)
    assert capsys.readouterr().err == "warning: look here\n"


def test_arguments_and_names_that_are_not_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["report", "\udcff"]) == 2
    assert "is not UTF-8" in capsys.readouterr().err
    for number, name in enumerate((b"cat/\xff.png", b"c\xfft/a.png")):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = os.fsencode(folder) + b"/" + name
        os.makedirs(os.path.dirname(path))
        with open(path, "wb") as file:
            Image.new("RGB", (4, 4)).save(file, "PNG")
        with pytest.raises(UserError, match="not UTF-8; rename it"):
            image_folder.read(folder)


# ---------------------------------------------------------------------------------------------------------------- costs


def test_sizes_of_numpy_are_those_of_python() -> None:
    sizes = Preprocess(size=np.int64(32), resize=(np.int32(40), np.int64(50)))  # type: ignore[arg-type]
    assert sizes == Preprocess(size=32, resize=(40, 50))
    assert sizes.fingerprint == Preprocess(size=32, resize=(40, 50)).fingerprint
    for wrong in (0, -1, 1.5, True, "x", (1, 2, 3), 10**9, None):
        with pytest.raises(UserError, match="Preprocess size"):
            Preprocess(size=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("centre", ["even", "down"])
@pytest.mark.parametrize("size", [(40, 31), (31, 40), (90, 17), (17, 91), (20, 20)])
@pytest.mark.parametrize("resize", [24, (50, 60), 15])
def test_resizing_only_what_is_kept_gives_the_same_pixels(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], resize: int | tuple[int, int], centre: preprocess.Centre
) -> None:
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3)).astype(np.uint8))
    geometry = Geometry((20, 21), resize, centre=centre)
    whole = geometry.apply(image).astype(int)
    monkeypatch.setattr(preprocess, "MOST_PIXELS", 0)
    assert np.abs(geometry.apply(image).astype(int) - whole).max() <= 2  # rounded in other places


def test_a_very_long_image_costs_little() -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert Geometry((224, 224), 256).apply(Image.new("RGB", (20_000, 1), "red")).shape == (224, 224, 3)
    with pytest.raises(UserError, match="does not fit"):
        Geometry((224, 224), 256, crop=False).apply(Image.new("RGB", (20_000, 1)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_a_manifest_is_compared_with_its_files(tmp_path: Path) -> None:
    import hashlib

    (tmp_path / "a.png").write_bytes(b"1")
    (tmp_path / "m.png").write_bytes(b"2")
    hashes = [hashlib.sha256(data).hexdigest() for data in (b"1", b"2")]
    stimuli = StimulusSet("s", (Stimulus("a", "a.png", hashes[0], mask="m.png", mask_sha256=hashes[1]),), str(tmp_path))
    check_hashes(stimuli)
    (tmp_path / "m.png").write_bytes(b"3")
    with pytest.raises(UserError, match=r"m\.png: is not the file that the manifest names"):
        check_hashes(stimuli)
    (tmp_path / "a.png").unlink()
    with pytest.raises(UserError, match=r"a\.png: no such file"):
        check_hashes(stimuli)


def test_a_swapped_image_is_never_stored(tmp_path: Path) -> None:
    """A worker says that it cannot be read at the moment: nothing may be stored of that."""
    from cuebench.responses.pictures import BatchPictures, DecodePool

    Image.new("RGB", (4, 4), "red").save(tmp_path / "a.png")
    right = Stimulus("a", "a.png", hash_file(tmp_path / "a.png").sha256)
    wrong = Stimulus("b", "a.png", "0" * 64)
    with DecodePool(0) as pool:
        for batch in ([wrong], [right, wrong], [wrong, right]):
            pictures = BatchPictures.request(pool, str(tmp_path), batch, [Geometry((4, 4))])
            with pytest.raises(UserError, match="has changed since the set was read"):
                pictures.unreadable()
        assert BatchPictures.request(pool, str(tmp_path), [right], [Geometry((4, 4))]).unreadable() == {}


# ------------------------------------------------------------------------------------------------------------- the code


def test_every_picture_is_opened_with_a_list_of_formats_and_no_foreign_code_is_run() -> None:
    """``Image.open`` guesses the format, and PostScript starts a program; ``from_pretrained`` may ask to run code."""
    import re

    import cuebench

    wrong = []
    for path in Path(cuebench.__file__).parent.rglob("*.py"):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
            opens = "Image.open(" in line and "formats=" not in line and "for example" not in line
            loads = re.search(r"Auto\w+\.from_pretrained\(|kind\.from_pretrained\(", line)
            if opens or (loads and "trust_remote_code=False" not in line):
                wrong.append(f"{path.name}:{number}")
    assert not wrong


def test_a_repository_with_code_of_its_own_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from cuebench.observers.load import load

    (tmp_path / "config.json").write_text(
        '{"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config", "AutoModelForImageClassification": "evil.N"}}'
    )
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\n")
    with pytest.raises(UserError):
        load(f"transformers:{tmp_path}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("text", ["a." * 3_000 + "a = 1", "a = " + "[" * 200 + "]" * 200, "[" * 3_000])
def test_deep_toml_is_refused(text):
    with pytest.raises(UserError, match=r"nested too deeply|not valid TOML"):
        parse_toml(text, "design.toml")


def test_toml_of_some_depth_is_read():
    found = parse_toml("a." * 90 + "a = [[1]]", "design.toml")
    for _ in range(91):
        found = found["a"]
    assert found == [[1]]
