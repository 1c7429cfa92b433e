from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.labels import (
    MAP_FORM,
    LabelMap,
    LabelSpace,
    coverage_hint,
    coverage_problems,
    label_map,
    label_space,
    missing_members,
    softmax,
)
from cuebench.observers.preprocess import Preprocess
from cuebench.observers.wrap import wrap

SHARED_INDICES = Path(__file__).resolve().parents[2] / "shared"


def test_imagenet_has_a_thousand_names_with_unique_ids() -> None:
    space = label_space("imagenet1k")
    assert len(space) == 1000
    assert len(set(space.ids)) == 1000
    assert space.find("n02123045") == 281  # tabby
    assert space.find("Tabby") == 281


@pytest.mark.parametrize(
    ("name", "file"), [("in16", "in16_indices.json"), ("refined_bias", "refined_bias_indices.json")]
)
def test_built_in_maps_resolve_to_the_published_indices(name: str, file: str) -> None:
    path = SHARED_INDICES / file
    if not path.is_file():
        pytest.skip(f"needs ../shared/{file}")
    data = json.loads(path.read_text())
    expected = data if name == "in16" else {**data["shape"], **data["texture"]}
    resolved = label_map(name).resolve(label_space("imagenet1k"))
    assert {n: m.tolist() for n, m in zip(resolved.names, resolved.members)} == expected
    assert not resolved.missing


def test_the_16_class_map_has_207_members() -> None:
    resolved = label_map("in16").resolve(label_space("imagenet1k"))
    assert sum(len(m) for m in resolved.members) == 207


def test_a_space_that_is_the_targets_maps_one_to_one() -> None:
    space = LabelSpace("own", tuple(reversed(label_map("in16").names)))
    resolved = label_map("in16").resolve(space)
    assert [m.tolist() for m in resolved.members] == [[15 - i] for i in range(16)]


def test_uncovered_targets_are_named_with_their_stimuli() -> None:
    mapping = LabelMap("m", {"cat": ("tabby",), "dog": ("beagle", "pug")})
    resolved = mapping.resolve(LabelSpace("s", ("pug", "oak", "elm")))
    assert resolved.uncovered == ("cat",)
    assert resolved.missing == {"cat": ("tabby",), "dog": ("beagle",)}
    (problem,) = coverage_problems(resolved, ["cat", "cat", "dog"])
    assert "'cat'" in problem
    assert "2 stimuli" in problem


def test_an_uncovered_target_is_never_chosen() -> None:
    resolved = LabelMap("m", {"cat": ("tabby",), "dog": ("pug",)}).resolve(LabelSpace("s", ("pug", "oak", "elm")))
    out = resolved.aggregate(np.array([[-5.0, 0.0, 0.0]]))
    assert out.argmax(axis=1).tolist() == [1]


@pytest.mark.parametrize("how", ["mean", "max"])
def test_aggregate_against_a_loop(how: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.random((7, 1000))
    resolved = label_map("in16").resolve(label_space("imagenet1k"))
    out = resolved.aggregate(values, how)  # type: ignore[arg-type]
    for row in range(7):
        for t, members in enumerate(resolved.members):
            own = [values[row, m] for m in members]
            assert out[row, t] == pytest.approx(sum(own) / len(own) if how == "mean" else max(own))


def test_target_of_inverts_the_members() -> None:
    resolved = label_map("in16").resolve(label_space("imagenet1k"))
    owner = resolved.target_of(1000)
    assert (owner >= 0).sum() == 207
    assert owner[404] == list(resolved.names).index("airplane")


def test_softmax_survives_huge_logits_and_sums_to_one() -> None:
    p = softmax(np.array([[1e4, 0.0], [-1e4, -1e4]], dtype=np.float32))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(p[1], 0.5)


def test_own_label_space_from_csv_and_json(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("index,name,id\n1,dog,n2\n0,cat,n1\n")
    (tmp_path / "b.json").write_text('["cat", "dog"]')
    assert label_space(tmp_path / "a.csv").names == ("cat", "dog")
    assert label_space(tmp_path / "a.csv").ids == ("n1", "n2")
    assert label_space(str(tmp_path / "b.json")).names == ("cat", "dog")


def test_own_label_map_from_csv_and_json(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("target,member\npet,cat\npet,dog\n")
    (tmp_path / "m.json").write_text('{"pet": ["cat", "dog"]}')
    for file in ("m.csv", "m.json"):
        assert label_map(tmp_path / file).targets == {"pet": ("cat", "dog")}


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("x.csv", "title\ncat\n", "missing column name; found title"),
        ("x.json", "{", "not valid JSON"),
        ("x.json", "{}", "no class names"),
    ],
)
def test_bad_label_files_say_what_is_wrong(tmp_path: Path, name: str, text: str, part: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=part.replace("[", r"\[").replace("]", r"\]")):
        label_space(tmp_path / name)


def test_unknown_names_suggest_the_near_one() -> None:
    with pytest.raises(UserError, match="Did you mean 'imagenet1k'"):
        label_space("imagenet_1k")
    with pytest.raises(UserError, match="does not exist"):
        label_map("nowhere.json")


@pytest.mark.parametrize("name", ["c.json", "c.csv"])
def test_a_label_file_that_was_edited_is_read_again(tmp_path: Path, name: str) -> None:
    texts = {"c.json": ('["cat", "dog"]', '["dog", "cat"]'), "c.csv": ("name\ncat\ndog\n", "name\ndog\ncat\n")}[name]
    for text, expected in zip(texts, (("cat", "dog"), ("dog", "cat"))):
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (0, 0))  # the same size at the same time: nothing but its contents tells
        assert label_space(tmp_path / name).names == expected


def test_a_label_map_that_was_edited_is_read_again(tmp_path: Path) -> None:
    for member in ("cat", "dog"):
        (tmp_path / "m.json").write_text(json.dumps({"pet": [member]}))
        os.utime(tmp_path / "m.json", (0, 0))
        assert label_map(tmp_path / "m.json").targets == {"pet": (member,)}


def test_a_member_named_by_id_and_by_name_counts_once() -> None:
    space = LabelSpace("s", ("tabby", "lynx", "dog"), ("n1", "n2", "n3"))
    resolved = LabelMap("m", {"cat": ("n1", "tabby", 0, "n2"), "dog": ("n3",)}).resolve(space)
    assert [m.tolist() for m in resolved.members] == [[0, 1], [2]]
    assert resolved.aggregate(np.array([[0.9, 0.3, 0.5]]))[0].tolist() == pytest.approx([0.6, 0.5])


def test_a_class_of_two_targets_is_an_error_that_names_both() -> None:
    space = LabelSpace("s", ("tabby", "lynx", "dog"), ("n1", "n2", "n3"))
    with pytest.raises(UserError, match=r"'tabby' is a member of 'cat' and of 'pet'"):
        LabelMap("m", {"cat": ("n1", "n2"), "pet": ("tabby", "n3")}).resolve(space)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("name,index\na,0\nb,1\nc,5\n", "row 3: index '5' is not one of 0 … 2"),
        ("name,index\na,0\nb,0\nc,1\n", "row 2: index 0 is that of row 1 too"),
        ("name,index\na,x\n", "row 1: index 'x'"),
        ("name,index\na,0\nb\n", "line 3: wrong number of columns"),
        ("name,index\na,-1\nb,0\n", "row 1: index '-1'"),
        ("name,index\na,0\n,1\n", "row 2 has no name"),
    ],
)
def test_a_csv_index_names_every_output_once(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(UserError) as caught:
        label_space(tmp_path / "c.csv")
    assert part in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "Index,Name\n1,dog\n0,cat\n",
        "NAME,INDEX,Id\ndog,1,n2\ncat,0,n1\n",
        " name , index \n dog , 1 \n cat , 0 \n",
        ",name\n0,cat\n1,dog\n",  # pandas
        '"","name"\n"1","cat"\n"2","dog"\n',  # R
    ],
)
def test_a_csv_of_classes_as_programs_write_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.csv").write_text(text)
    assert label_space(tmp_path / "c.csv").names == ("cat", "dog")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("name,idx\ndog,1\ncat,0\n", "unknown column 'idx'"),
        ("class_id,name\n1,dog\n0,cat\n", "unknown column 'class_id'"),
        ("name,wnid,note\ncat,n1,x\n", "unknown columns 'wnid', 'note'"),
        (",name\n1,dog\n0,cat\n", "unknown column one without a name"),
        ("index,Index,name\n0,1,dog\n1,0,cat\n", "two columns are called 'index'"),
        ("name,id\ncat,n1\ndog,\n", "row 2 has no id"),
    ],
)
def test_a_csv_column_that_could_say_another_order_is_never_ignored(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(UserError) as caught:
        label_space(tmp_path / "c.csv")
    assert part in caught.value.message
    assert "index" in f"{caught.value.message} {caught.value.hint}" or "id" in caught.value.hint


def test_json_keys_that_nobody_reads_are_refused(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"names": ["cat", "dog"], "index": [1, 0]}')
    with pytest.raises(UserError, match="unknown key 'index'") as caught:
        label_space(tmp_path / "c.json")
    assert "names" in caught.value.hint
    (tmp_path / "c.json").write_text('{"about": "pets", "name": "pets", "names": ["cat", "dog"], "ids": ["n1", "n2"]}')
    assert label_space(tmp_path / "c.json").ids == ("n1", "n2")


MAPS = [
    {"dog": 1, "cat": 0},
    {1: "dog", 0: "cat"},
    {"1": "dog", "0": "cat"},
    {"dog": np.int64(1), "cat": np.int64(0)},
]


@pytest.mark.parametrize("source", MAPS, ids=["class_to_idx", "id2label", "id2label of JSON", "numpy"])
def test_a_map_says_the_order_by_its_indices(source: dict[str, int], tmp_path: Path) -> None:
    assert label_space(source).names == ("cat", "dog")
    (tmp_path / "c.json").write_text(json.dumps(source, default=int))
    assert label_space(tmp_path / "c.json").names == ("cat", "dog")


def test_digits_are_the_names_of_digits() -> None:
    assert label_space({"0": 0, "10": 2, "1": 1}).names == ("0", "1", "10")


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ({"cat", "dog"}, "given as a set, which has no order"),
        (frozenset({"cat", "dog"}), "given as a frozenset, which has no order"),
        ({"cat": 1, "dog": 2}, "index '2' is not one of 0 … 1"),
        ({"cat": 0, "dog": 0}, "index 0 is that of entry 1 too"),
        ({1: "cat", 2: "dog"}, "index '2' is not one of 0 … 1"),
        ({"00": "cat", "1": "dog"}, "index '00' is not one of"),
        ({0: 1, 1: 0}, "neither a map from names to indices nor from indices to names"),
        ({"cat": "dog"}, "neither a map from names to indices"),
        ({"cat": True}, "neither a map from names to indices"),
        ({"cat": 0.0}, "neither a map from names to indices"),
        ({"names": ["cat"], "index": [0]}, "unknown key 'index'"),
        ({}, "holds no class names"),
        ([], "holds no class names"),
        ([None, "cat"], "None is no name"),
        (b"cat", "given as bytes"),
        (3, "given as int"),
    ],
)
def test_an_order_that_nobody_chose_is_refused(source: object, part: str) -> None:
    with pytest.raises(UserError) as caught:
        label_space(source)  # type: ignore[arg-type]
    assert part in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("source", [("cat", "dog"), {"cat": 0, "dog": 1}.keys(), np.array(["cat", "dog"]), MAPS[0]])
def test_wrapped_models_take_ordered_names(source: object) -> None:
    preprocess = Preprocess(size=8)
    observer = wrap(np.asarray, preprocess=preprocess, labels=source, fingerprint="1")  # type: ignore[arg-type]
    assert observer.labels is not None
    assert observer.labels.names == ("cat", "dog")
    with pytest.raises(UserError, match="no order"):
        wrap(np.asarray, preprocess=preprocess, labels={"cat", "dog"}, fingerprint="1")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["3", '"cat"', '{"names": "cat"}', '{"names": ["cat"], "ids": "n1"}'])
def test_a_label_space_that_is_no_list_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(UserError, match="no class names"):
        label_space(tmp_path / "s.json")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('["a"]', "is a list, not a map"),
        ("3", "is a int, not a map"),
        ('{"targets": ["a"]}', "is a list, not a map"),
        ('{"cat": "tabby"}', "target 'cat' has no list"),
        ('{"cat": []}', "target 'cat' has no list"),
        ('{"cat": [1.5, true]}', "target 'cat' has the member 1.5"),
        ("{}", "no targets"),
    ],
)
def test_bad_label_maps_say_what_is_wrong(tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(UserError) as caught:
        label_map(tmp_path / "m.json")
    assert part in caught.value.message
    assert caught.value.hint


def test_a_map_from_python_is_checked_too() -> None:
    assert label_map({"cat": np.array([1, 2])}).resolve(LabelSpace("s", ("a", "b", "c"))).members[0].tolist() == [1, 2]  # type: ignore[dict-item]
    with pytest.raises(UserError, match="has no list of members"):
        label_map({"cat": "tabby"})


@pytest.mark.parametrize(("name", "text"), [("x.csv", "name\na\nb\n"), ("x.json", '["a", "b"]')])
def test_the_mark_of_excel_is_no_part_of_a_name(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8-sig")
    assert label_space(tmp_path / name).names == ("a", "b")


def test_another_encoding_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes("name\nGrünspecht\n".encode("latin-1"))
    with pytest.raises(UserError, match="not UTF-8"):
        label_space(tmp_path / "x.csv")


def test_own_classes_named_as_targets_are_their_members():
    """A CIFAR model has no WordNet ids, and more classes than the map: airplane and bird are airplane and bird."""
    space = label_space(["airplane", "bird", "frog"])
    found = label_map({"airplane": ["n02690373"], "bird": ["n01514668", "n01514859"]}).resolve(space)
    assert [m.tolist() for m in found.members] == [[0], [1]]
    assert not found.uncovered


def test_ids_of_another_set_of_classes_say_nothing():
    """The drawn toy world has WordNet ids too: one for each class, others than those of the published maps."""
    space = LabelSpace("toy", ("airplane", "bird"), ("n02691156", "n01503061"))
    resolved = label_map({"airplane": ["n02690373"], "bird": ["n01514668", "n01514859"]}).resolve(space)
    assert [m.tolist() for m in resolved.members] == [[0], [1]]
    assert not resolved.missing


def test_a_listed_member_goes_before_the_name_of_the_target():
    space = label_space(["clock", "wall clock"])
    assert label_map({"clock": ["wall clock"], "x": ["none"]}).resolve(space).members[0].tolist() == [1]


def test_a_map_is_a_space_of_its_targets():
    assert label_space("in16").names == label_map("in16").names


def test_a_label_file_of_another_kind(tmp_path):
    (tmp_path / "mine.txt").write_text("cat")
    with pytest.raises(UserError, match=r"neither \.json nor \.csv"):
        label_space(tmp_path / "mine.txt")


def test_the_hint_names_the_file_that_the_set_reads(tmp_path):
    """A set in the protocol's own folder has its label map there; a set of photographs has none."""
    hint = coverage_hint("cue_conflict", str(tmp_path / "cue_conflict" / "stimuli"))
    assert str(tmp_path / "cue_conflict" / "labels.json") in hint
    assert label_map(json.loads(MAP_FORM)["targets"]).names == ("cat", "car")
    assert "labels.json" not in coverage_hint("imagenet_accuracy", str(tmp_path / "imagenet_val"))


@pytest.mark.parametrize(("read", "form"), [(label_map, "targets"), (label_space, "names")])
def test_a_file_that_is_missing_is_answered_with_its_form(tmp_path, read, form):
    with pytest.raises(UserError, match="does not exist") as error:
        read(tmp_path / "none.json")
    assert form in error.value.hint


IMAGENET = label_space("imagenet1k")


@pytest.mark.parametrize(
    ("members", "found", "missing"),
    [
        (["tabby", "Egyptain cat"], [281], ("Egyptain cat",)),
        (["134"], [134], ()),
        (["134.0", 517], [134, 517], ()),
        (["crane brid"], [], ("crane brid",)),
        (["1000"], [], ("1000",)),
        (["0134"], [], ("0134",)),
        (["n99999999"], [], ("n99999999",)),
    ],
)
def test_what_is_listed_counts_and_never_the_name_of_the_target(members, found, missing):
    resolved = label_map({"crane": members, "zebra": ["n02391049"]}).resolve(IMAGENET)
    assert [m.tolist() for m in resolved.members] == [found, [340]]
    assert resolved.missing == ({"crane": missing} if missing else {})


def test_numbers_are_names_where_a_class_is_called_by_one():
    digits = label_space(["1", "2", "3"])
    resolved = label_map({"even": ["2"], "none": ["0"]}).resolve(digits)
    assert [m.tolist() for m in resolved.members] == [[1], []]
    assert resolved.missing == {"none": ("0",)}


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_positions_are_the_same_in_every_form_of_a_map(suffix, tmp_path):
    (tmp_path / "m.csv").write_text("target,member\ncrane,134\nzebra,340\n")
    (tmp_path / "m.json").write_text('{"crane": [134], "zebra": ["340"]}')
    resolved = label_map(tmp_path / f"m{suffix}").resolve(IMAGENET)
    assert [m.tolist() for m in resolved.members] == [[134], [340]]


def test_listed_names_that_are_missing_go_before_the_name_of_the_target():
    resolved = label_map({"cat": ["n02123045", "Egyptain cat"], "dog": ["n02099601"]}).resolve(
        label_space(["cat", "dog", "frog"])
    )
    assert [m.tolist() for m in resolved.members] == [[], [1]]


def test_missing_members_are_a_note():
    assert missing_members("in16", IMAGENET) == missing_members("refined_bias", IMAGENET) == ()
    assert missing_members("", IMAGENET) == missing_members("in16", None) == ()
    hundred = LabelSpace("imagenet100", IMAGENET.names[200:300], IMAGENET.ids[200:300])
    (note,) = missing_members("in16", hundred)
    resolved = label_map("in16").resolve(hundred)
    assert note.startswith(
        f"{sum(map(len, resolved.missing.values()))} of 207 members of the label map 'in16' are no class"
    )
    assert "'airplane' lists 'n02690373'" in note
    assert ";" not in note  # what separates notes


@pytest.mark.parametrize("space", ["ade20k", "cityscapes", "voc21"])
@pytest.mark.parametrize("targets", ["in16", "refined_bias"])
def test_built_in_maps_have_no_note_in_built_in_spaces(targets, space):
    assert missing_members(targets, label_space(space)) == ()


def test_a_target_that_is_not_covered_says_what_was_listed():
    resolved = label_map({"crane": ["crane brid"], "zebra": ["zebra"]}).resolve(IMAGENET)
    (problem,) = coverage_problems(resolved, ["crane", "zebra"])
    assert "'crane' is none of its classes by its listed members 'crane brid' (1 stimuli have it)" in problem


@pytest.mark.parametrize("source", [{"0": ["n01440764", "tench"], "1": ["n01443537", "gold_fish"]}])
def test_the_class_index_of_keras_is_a_label_space(source, tmp_path):
    (tmp_path / "imagenet_class_index.json").write_text(json.dumps(source))
    for space in (label_space(tmp_path / "imagenet_class_index.json"), label_space(source)):
        assert (space.names, space.ids) == (("tench", "gold_fish"), ("n01440764", "n01443537"))
    with pytest.raises(UserError, match="index '2' is not one of"):
        label_space({"0": ["n01440764", "tench"], "2": ["n01443537", "gold_fish"]})  # type: ignore[dict-item]
    with pytest.raises(UserError, match="neither a map"):
        label_space({"0": ["tench", "a fish"]})  # type: ignore[dict-item]
