from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cuebench.errors import UserError
from cuebench.labels import LabelMap, LabelSpace, coverage_problems, label_map, label_space, softmax

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
        ("x.csv", "title\ncat\n", "missing columns ['name']"),
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
