"""The tables against the seeds, cell by cell, by another way of reading than the one that made them.

The tables were made by splitting rows and columns. Here a region of the seed's text is reduced to its number tokens:
they must be exactly the printed values of the CSV, in the same order, none missing and none left over.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.published import tables
from cuebench.published.tables import COLUMNS, EXPORTED, column, entries, export, half_unit, listing, names

SEEDS = Path(__file__).resolve().parents[3] / "shared" / "seeds"
SEED = {"refined_bias": "000", "cue_decomposition": "001", "triplets": "002", "texture_association": "004"}
THREE, FOUR, TWO = r"(?<![\w.])-?\d\.\d{3}(?!\d)", r"(?<![\w.])\d\.\d{4}(?!\d)", r"(?<![\w.])\d+\.\d\d(?!\d)"

NORM = {"l2": "l2l_{2}", "linf": "ll_{\\infty}"}
"""How the seed's text prints the norms."""

# (paper, table): where the region begins (the last one before its end), where it ends, what a number looks like.
REGIONS = {
    ("refined_bias", "1"): ("Table 1: Inter-rater", "To measure how consistently", FOUR),
    ("refined_bias", "2"): ("Table 2: tt-test", "For adversarial training, results", r"(?<=p==)[\d.e-]+"),
    ("refined_bias", "A"): ("Table A: tt-test", "A.9 Valid Shape", r"(?<=p==)[\d.e-]+"),
    ("refined_bias", "B"): ("Arch. Models In-domain", "Appendix C Comparison of Model", FOUR),
    ("refined_bias", "C"): ("Models In-domain Shape-Sens", "C.2 Confidence Intervals for", FOUR),
    ("refined_bias", "D"): ("Models Lower Mean Upper", "C.3 Configurations of Models", FOUR),
    ("cue_decomposition", "I"): ("Dataset: ImageNet", "TABLE I: (left)", THREE),
    ("cue_decomposition", "II"): ("Dataset: ImageNet", "TABLE II: (left)", THREE),
    ("cue_decomposition", "III"): ("Arch.\tModel\tCityscapes", "TABLE III: Cue", THREE),
    ("cue_decomposition", "IV"): ("Arch.\tModel\tCityscapes", "TABLE IV: Relative", THREE),
    ("cue_decomposition", "V"): ("Dataset: Cityscapes", "TABLE V: Rank", THREE),
    ("cue_decomposition", "VI"): ("Dataset: ADE20k", "TABLE VI: Rank", THREE),
    ("cue_decomposition", "VIII"): ("Dataset: ImageNet", "TABLE VIII: (left)", THREE),
    ("cue_decomposition", "IX"): ("Dataset: ImageNet", "TABLE IX: Different", THREE),
    ("cue_decomposition", "X"): ("Dataset: ImageNet", "TABLE X: Rank", THREE),
    ("cue_decomposition", "XIII"): ("Arch.\tModel\tCityscapes", "TABLE XIII: Cue", THREE),
    ("cue_decomposition", "XIV"): ("Arch.\tModel\tCityscapes", "TABLE XIV: Relative", THREE),
    ("texture_association", "I"): ("TABLE I\nLABEL", "Fig. 9. The accuracy", TWO),
    ("texture_association", "II"): ("TABLE II\nPREDICTION", "the image contains the most dominant", TWO),
    ("texture_association", "III"): ("TABLE III\nACCURACY", "Fig. 20. Confidence", TWO),
}


def seed(paper: str) -> str:
    if not SEEDS.is_dir():
        pytest.skip("needs the papers in ../shared/seeds, which are not part of the repository")
    return next(SEEDS.glob(f"{SEED[paper]}_*")).read_text("utf-8")


def region(paper: str, table: str) -> str:
    text = seed(paper)
    start, end, _ = REGIONS[paper, table]
    stop = text.index(end)
    return text[text.rindex(start, 0, stop) : stop]


@pytest.mark.parametrize(("paper", "table"), REGIONS, ids="-".join)
def test_every_cell_and_no_other(paper, table):
    printed = re.findall(REGIONS[paper, table][2], region(paper, table))
    assert [e.printed for e in entries(paper, table)] == printed


@pytest.mark.parametrize(
    ("paper", "table"), [k for k in REGIONS if k[1] not in {"1", "2", "A", "II", "V", "VI", "X"}], ids="-".join
)
def test_models_in_the_order_of_the_table(paper, table):
    """Every model's name stands before its own first value and after the last value of the model before it."""
    text, place = region(paper, table), 0
    rows: dict[str, list[str]] = {}
    for e in entries(paper, table):
        rows.setdefault(e.model, []).append(e.printed)
    for model, values in rows.items():
        eps = re.match(r"PGD-AT \((l2|linf), eps=(.*)\)", model)
        name = f"{NORM[eps[1]]}, ϵ={eps[2]}" if eps else model
        found = text.index(name, place)
        assert not re.search(REGIONS[paper, table][2], text[place:found]), model
        place = found + len(name)
        for value in values:
            place = text.index(value, place) + len(value)


def test_training_settings_of_table_e():
    text = seed("refined_bias")
    block = text[text.index("Augmentations A1 A2") : text.index("C.4 Visual Examples")]
    plain = re.sub(r"\\cellcolor\[HTML\]\w{6}", "", block)
    rows = [line.split() for line in plain.splitlines()[1:] if line.strip()]
    cells = [cell for row in rows for cell in row[-8:]]
    stored = [
        e.metric.partition(":")[2] or {"used": "O", "not used": "X"}.get(e.note, e.printed)
        for e in entries("refined_bias", "E")
    ]
    assert stored == cells


def test_readme():
    if not SEEDS.is_dir():
        pytest.skip("needs the papers in ../shared/seeds, which are not part of the repository")
    text = next(SEEDS.glob("003_*")).read_text("utf-8")
    assert {e.weights: e.printed for e in entries("refined_bias", "README")} == dict(
        re.findall(r"(bagnet\d+)\s+: ([\d.]+)", text)
    )


@pytest.mark.parametrize("table", ["VII", "XI", "XII"])
def test_long_names_of_models(table):
    text = seed("cue_decomposition")
    stop = text.index(f"TABLE {table}: ")
    block = text[text.rindex("Long Model Name", 0, stop) : stop]
    listed = [line.rstrip().rpartition("\t")[2] for line in block.splitlines()[1:] if line.strip()]
    stored = entries("cue_decomposition", table)
    assert sorted(e.weights for e in stored) == sorted(listed)
    if table != "XI":
        assert [e.weights for e in stored] == listed
    for e in stored:
        assert e.model.lower() in block.lower()


@pytest.mark.parametrize("paper", SEED)
def test_numbers_of_the_running_text_are_there(paper):
    text = seed(paper)
    for e in entries(paper, "text"):
        if "in words" in e.note:
            continue
        number = f"{int(e.printed):,}" if e.printed.isdigit() else e.printed
        assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d])", text.replace("\\%", "%")) or number in text, e


def test_shape_of_the_data():
    assert len(names()) == 29
    assert sum(len(entries(p, t)) for p, t in names()) == 3506
    for paper, table in names():
        found = entries(paper, table)
        assert {(e.paper, e.table) for e in found} == {(paper, table)}
        keys = [(e.model, e.group, e.condition, e.metric) for e in found]
        assert len(keys) == len(set(keys)), (paper, table)


def test_the_weights_of_table_vii_are_on_every_row():
    listed = {e.model: e.weights for e in entries("cue_decomposition", "VII")}
    for table in ("I", "VIII", "IX"):
        assert all(e.weights == listed[e.model] for e in entries("cue_decomposition", table))


@pytest.mark.parametrize(("printed", "half"), [("0.840", 0.0005), ("2.72e-04", 5e-7), ("46", 0.5), ("7e-6", 5e-7)])
def test_half_unit(printed, half):
    assert half_unit(printed) == pytest.approx(half)


def test_export_round_trip(tmp_path):
    path = export(tmp_path / "all.csv", entries())
    rows = list(csv.DictReader(path.open(encoding="utf-8")))
    assert tuple(rows[0]) == EXPORTED == ("paper", "table", "model", "weights", "metric", "value", "note")
    assert len(rows) == len(entries())
    found = [r for r in rows if (r["table"], r["model"], r["metric"]) == ("VIII", "ResNet50", "accuracy/Q_S")]
    assert [(r["value"], r["weights"]) for r in found] == [("0.243", "resnet50")]
    assert export(tmp_path / "again.csv", entries()).read_bytes() == path.read_bytes()


def test_filters():
    assert {e.model for e in entries("refined_bias", "B", model="bagnet")} == {"BagNet-9", "BagNet-17", "BagNet-33"}
    assert {e.model for e in entries("cue_decomposition", "VIII", model="EVA02_large")} == {"EVA02 L"}
    assert all("S_cd" in e.quantity for e in entries(metric="s_cd"))


def test_listing():
    rows = {(r["paper"], r["table"]): r for r in listing()}
    assert rows["cue_decomposition", "VIII"]["models"] == "47"
    assert rows["refined_bias", "C"]["models"] == "32"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: entries("refined-bias"), "Did you mean 'refined_bias'"),
        (lambda: entries("refined_bias", "VIII"), "unknown table of refined_bias 'VIII'"),
        (lambda: entries(model="no such model"), "no published number with model 'no such model'"),
        (lambda: export("x.json", []), "ends in .csv"),
        (lambda: export(Path(__file__) / "x.csv", []), "cannot write"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises(UserError) as raised:
        call()
    assert words in str(raised.value)


def test_a_damaged_table_is_a_bug_and_crashes(tmp_path, monkeypatch):
    bad = tmp_path / "paper.T.csv"
    bad.write_text(",".join(COLUMNS) + "\npaper,T,m,,,,x,0.5?,\n")
    with pytest.raises(ValueError, match=r"'0.5\?' is not a number"):
        tables._read(bad)
    bad2 = tmp_path / "paper.U.csv"
    bad2.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="has columns"):
        tables._read(bad2)
    with pytest.raises(KeyError):
        column("refined_bias", "B", "refined_bias", "no_metric")
