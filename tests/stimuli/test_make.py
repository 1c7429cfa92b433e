import inspect
import json
import re

import numpy as np
import pytest
from PIL import Image

from cuebench.errors import UserError
from cuebench.labels import label_map, label_space
from cuebench.options import Option, split
from cuebench.registry import makers
from cuebench.stimuli.fetch import fetch
from cuebench.stimuli.makers import cue_conflict
from cuebench.stimuli.makers.base import FLAGS, Maker, make
from cuebench.stimuli.readers.cue_conflict import read


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("made")
    return out, make("cue_conflict", out, count=20)


def test_registry_finds_the_maker():
    assert "cue_conflict" in makers.names()
    assert makers.get("cue_conflict").name == "cue_conflict"


def test_set_is_in_the_published_layout(made):
    out, stimuli = made
    assert len(stimuli) == 20
    assert {(s.width, s.height) for s in stimuli} == {(224, 224)}
    assert all(s.shape != s.texture for s in stimuli)
    assert stimuli.root == str(out / "cue_conflict" / "stimuli")
    assert stimuli.partial == ()


def test_every_class_has_members_in_imagenet(made):
    resolved = label_map(made[1].targets).resolve(label_space("imagenet1k"))
    assert set(resolved.names) == {*cue_conflict.SHAPES, *cue_conflict.TEXTURES}
    assert resolved.missing == {}
    assert resolved.uncovered == ()


def test_same_seed_same_bytes_and_other_seed_other_bytes(made, tmp_path):
    make("cue_conflict", tmp_path / "again", count=20)
    assert files(tmp_path / "again") == files(made[0])
    make("cue_conflict", tmp_path / "other", count=1, seed=1)
    name = next(iter(cue_conflict.plan(1))).path
    place = tmp_path / "other" / "cue_conflict" / "stimuli" / name
    assert place.read_bytes() != (made[0] / "cue_conflict" / "stimuli" / name).read_bytes()


def test_random_streams_are_the_same_in_every_process():
    """Fixed numbers: a stream that depended on Python's salted hash() would agree within one process only."""
    assert cue_conflict._rng(0, "zebra", 1).integers(10**9) == 728189925
    assert cue_conflict._rng(7, "teapot", 5).integers(10**9) == 959652523


def test_stopped_and_continued_gives_the_same_bytes(made, tmp_path):
    class Stop(Exception):
        pass

    def stop(done, total):
        if done == 5:
            raise Stop

    with pytest.raises(Stop):
        make("cue_conflict", tmp_path, count=20, progress=stop)
    kept = files(tmp_path)
    assert 5 <= len(kept) < 22
    assert read(tmp_path / "cue_conflict" / "stimuli").partial == (f"{len(kept) - 2} of 20 stimuli",)
    steps = []
    make("cue_conflict", tmp_path, count=20, progress=lambda *s: steps.append(s))
    assert files(tmp_path) == files(made[0])
    assert steps[0] == (len(kept) - 2 + 1, 20)
    assert steps[-1] == (20, 20)


def test_a_bigger_count_continues_and_a_smaller_one_is_refused(tmp_path):
    make("cue_conflict", tmp_path, count=2)
    before = files(tmp_path / "cue_conflict" / "stimuli")
    assert len(make("cue_conflict", tmp_path, count=3)) == 3
    assert before.items() <= files(tmp_path / "cue_conflict" / "stimuli").items()
    with pytest.raises(UserError, match="holds 1 stimuli that are not among the 2"):
        make("cue_conflict", tmp_path, count=2)


def test_sets_are_never_mixed(tmp_path, conflict_folder):
    make("cue_conflict", tmp_path / "a", count=1)
    with pytest.raises(UserError, match="already holds another set"):
        make("cue_conflict", tmp_path / "a", count=1, seed=1)
    conflict_folder.rename(tmp_path / "stimuli_of_user")
    (tmp_path / "b" / "cue_conflict").mkdir(parents=True)
    (tmp_path / "stimuli_of_user").rename(tmp_path / "b" / "cue_conflict" / "stimuli")
    with pytest.raises(UserError, match="not made by cuebench"):
        make("cue_conflict", tmp_path / "b", count=1)


@pytest.mark.parametrize("count", [10, 100, 300, 500, 730])
def test_plan_is_distinct_and_balanced(count):
    pairs = list(cue_conflict.plan(count))
    assert len(set(pairs)) == count
    for field in ("shape", "texture"):
        _, counts = np.unique([getattr(p, field) for p in pairs], return_counts=True)
        assert (len(counts), counts.max() - counts.min() <= 1) == (10, True)
    assert pairs == list(cue_conflict.plan(1000))[:count]


@pytest.mark.parametrize("name", cue_conflict.SHAPES)
def test_shapes_are_drawn_whole_and_antialiased(name):
    for i in (1, 2, 3):
        mask = cue_conflict.draw_shape(name, i)
        assert 0.08 < mask.mean() < 0.6
        assert ((mask > 0) & (mask < 1)).any()
        border = np.concatenate([mask[0], mask[-1], mask[:, 0], mask[:, -1]])
        assert border.max() == 0, "cut off at the border"


@pytest.mark.parametrize("name", cue_conflict.TEXTURES)
def test_textures_fill_the_image_evenly(name):
    texture = cue_conflict.draw_texture(name, 1)
    assert texture.shape == (224, 224, 3)
    assert texture.min() >= 0
    assert texture.max() <= 1
    quarters = [q.std() for half in np.split(texture, 2) for q in np.split(half, 2, axis=1)]
    assert min(quarters) > 0.04


def test_stimulus_is_texture_inside_and_background_outside(tmp_path):
    stimuli = make("cue_conflict", tmp_path, count=1, size=64, background=128)
    pair = next(iter(cue_conflict.plan(1)))
    pixels = np.asarray(Image.open(tmp_path / "cue_conflict" / "stimuli" / stimuli.stimuli[0].path)).astype(float)
    mask = cue_conflict.draw_shape(pair.shape, pair.i, size=64)
    texture = cue_conflict.draw_texture(pair.texture, pair.j, size=64)
    assert (pixels[mask == 0] == 128).all()
    np.testing.assert_allclose(pixels[mask == 1], 255 * texture[mask == 1], atol=0.51)


def test_options_are_checked(tmp_path):
    with pytest.raises(UserError, match="Did you mean 'size'"):
        make("cue_conflict", tmp_path, siez=3)
    with pytest.raises(UserError, match="size='big': expected a whole number ≥ 32"):
        make("cue_conflict", tmp_path, size="big")
    with pytest.raises(UserError, match="size=3: expected a whole number ≥ 32"):
        make("cue_conflict", tmp_path, size=3)
    with pytest.raises(UserError, match="unknown maker"):
        make("cue_conflct", tmp_path)
    with pytest.raises(UserError, match="2 problems") as error:
        split(["size", "seed=3"], FLAGS)
    assert "'seed' is set with --seed" in error.value.message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("refined_bias", {"allow_bad": "ture"}, "allow_bad='ture': expected true or false"),
        ("refined_bias", {"grids": "4,1"}, "grids='4,1': expected whole numbers ≥ 2"),
        ("refined_bias", {"texture": "quilts"}, "expected one of patches, quilting. Did you mean 'quilting'"),
        ("refined_bias", {"margin": 0.5}, "margin=0.5: expected a number ≥ 0 and ≤ 0.39"),
        ("cue_decomposition", {"layout": "cityscape"}, "Did you mean 'cityscapes'"),
        ("cue_decomposition", {"accuracy": "-1", "hours": "long"}, "2 problems"),
        ("cue_decomposition", {"device": "gpu"}, "expected one of auto, cpu, cuda"),
        ("novel_objects", {"colour": "grey"}, "colour='grey': expected true or false"),
        ("textures", {"scale": 0}, "scale=0: expected a number ≥ 0.01"),
    ],
)
def test_every_wrong_value_says_what_is_accepted(tmp_path, name, options, message):
    with pytest.raises(UserError, match=re.escape(message)):
        make(name, tmp_path, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", makers.names())
def test_the_declared_options_are_those_of_the_function(name):
    """Same names, and the default of the declaration is that of the function."""
    maker = makers.get(name)
    parameters = inspect.signature(maker.make).parameters
    defaults = {k: p.default for k, p in parameters.items() if k not in {"out", "seed", "count", "progress"}}
    assert defaults == {k: option.default for k, option in maker.options.items()}
    assert all(option.about for option in maker.options.values())
    assert all(option.parse(option.default) == option.default for option in maker.options.values())


def test_a_maker_of_the_users_own(tmp_path):
    received = {}

    def own_make(out, *, seed, count, progress, fine):
        received.update(seed=seed, count=count, fine=fine)
        return make("cue_conflict", out, count=1, size=32)

    maker = Maker("own", "one stimulus", own_make, {"fine": Option(False, "fine lines")})
    try:
        assert len(make(maker, tmp_path, seed=2, fine="yes")) == 1
        assert received == {"seed": 2, "count": 0, "fine": True}
    finally:
        makers.added.pop("own", None)


def test_damaged_record_is_a_user_error(tmp_path):
    make("cue_conflict", tmp_path, count=1)
    (tmp_path / "cue_conflict" / "made.json").write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        read(tmp_path / "cue_conflict" / "stimuli")
    with pytest.raises(UserError, match="not valid JSON"):
        make("cue_conflict", tmp_path, count=1)


def test_published_files_are_not_fetched_into_a_made_set(tmp_path):
    make("cue_conflict", tmp_path, count=1)
    with pytest.raises(UserError, match="made by `cuebench make`"):
        fetch("cue_conflict", tmp_path, offline=True)


def command_line(*arguments):
    from cuebench.cli import main

    with pytest.raises(SystemExit) as ended:
        main([str(a) for a in arguments])
    return ended.value.code or 0


def test_command_line(tmp_path, capsys):
    arguments = ["make", "cue_conflict", "--out", tmp_path, "--count", 2, "--set", "size=64"]
    assert command_line(*arguments, "--json") == 0
    assert json.loads(capsys.readouterr().out)["stimuli"] == 2
    assert command_line(*arguments) == 0
    assert "2 stimuli in" in capsys.readouterr().out
    assert command_line(*arguments, "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert command_line("fetch", "cue_conflict_silhouettes", "--data-root", tmp_path / "root", "--offline") == 2
    assert "put file stimuli/filled-silhouettes/airplane/airplane1.png with sha256" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["cue_conflict", "textures", "toy_world", "refined_bias"])
def test_a_side_or_a_number_that_cannot_be_is_refused_before_anything_is_written(name, tmp_path):
    for options in ({"size": 100_000}, {"count": 99_999_999_999}):
        with pytest.raises(UserError, match="≤ "):
            make(name, tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_what_is_kept_in_memory_changes_no_byte(made, tmp_path, monkeypatch):
    monkeypatch.setattr(cue_conflict, "MEMORY", 1)
    make("cue_conflict", tmp_path, count=20)
    assert files(tmp_path) == files(made[0])


def test_a_large_set_begins_at_once(tmp_path):
    class Stop(Exception):
        pass

    def stop(done, total):
        raise Stop

    with pytest.raises(Stop):
        make("cue_conflict", tmp_path, count=20_000, size=32, progress=stop)
    assert len(list(tmp_path.rglob("*.png"))) < 2_000
