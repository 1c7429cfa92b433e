"""Applying a cue to files and folders: names, seeds, resuming, masks, failures, and the verb."""

import json
import os
import shutil

import numpy as np
import pytest
from PIL import Image

from cuebench.cli import invoke as run
from cuebench.cues import composite, contrast, voronoi_shuffle
from cuebench.cues.base import CueInfo, on_images
from cuebench.errors import UserError
from cuebench.registry import cues
from cuebench.stimuli.apply_cue import apply_cue
from cuebench.stimuli.cue_files import file_seed, read_image, read_labels, read_mask
from cuebench.stimuli.input_log import LOG

RNG = np.random.default_rng(0)


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    for name in ("a.png", "cats/b.png", "cats/c.png"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(RNG.integers(0, 256, (24, 20, 3), dtype=np.uint8)).save(path)
    return folder


def pixels(path):
    return np.asarray(Image.open(path))


def tree(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_each_file_gets_the_cue_with_its_own_seed(photos, tmp_path):
    done = apply_cue("voronoi_shuffle", photos, tmp_path / "out", options={"sites": 5}, seed=3, workers=1)
    assert (done.made, done.kept, done.failed) == (3, 0, {})
    expected = voronoi_shuffle(pixels(photos / "cats/b.png"), sites=5, rng=file_seed(3, "cats/b.png"))
    assert np.array_equal(pixels(tmp_path / "out/cats/b.png"), expected)
    assert file_seed(3, "cats/b.png") != file_seed(3, "cats/c.png") != file_seed(4, "cats/c.png")


def test_the_number_of_workers_does_not_matter(photos, tmp_path):
    for workers in (1, 2):
        apply_cue("uniform_noise", photos, tmp_path / f"out{workers}", workers=workers)
    assert tree(tmp_path / "out1") == tree(tmp_path / "out2")


def test_a_second_call_goes_on_where_the_first_stopped(photos, tmp_path):
    out = tmp_path / "out"
    apply_cue("voronoi_shuffle", photos, out, workers=1)
    whole = tree(out)
    (out / "cats/b.png").unlink()
    kept_time = (out / "a.png").stat().st_mtime_ns
    done = apply_cue("voronoi_shuffle", photos, out, workers=1)
    assert (done.made, done.kept) == (1, 2)
    assert tree(out) == whole
    assert (out / "a.png").stat().st_mtime_ns == kept_time


def test_a_source_that_changed_is_made_again(photos, tmp_path):
    apply_cue("greyscale", photos, tmp_path / "out", workers=1)
    before = (tmp_path / "out/a.png").read_bytes()
    Image.fromarray(255 - np.asarray(Image.open(photos / "a.png"))).save(photos / "a.png")
    os.utime(photos / "a.png", ns=(10**18, 10**18))  # an older file: times say that the result is newer
    assert apply_cue("greyscale", photos, tmp_path / "out", workers=1).made == 1
    assert (tmp_path / "out/a.png").read_bytes() != before
    assert apply_cue("greyscale", photos, tmp_path / "out", workers=1).made == 0


def test_a_result_of_an_earlier_version_is_kept_unless_its_source_was_replaced(photos, tmp_path):
    apply_cue("greyscale", photos, tmp_path / "out", workers=1)
    (tmp_path / "out" / LOG).unlink()
    assert apply_cue("greyscale", photos, tmp_path / "out", workers=1).made == 0
    log = (tmp_path / "out" / LOG).read_bytes()
    (tmp_path / "out" / LOG).unlink()
    later = (tmp_path / "out/a.png").stat().st_mtime_ns + 10**9
    os.utime(photos / "a.png", ns=(later, later))
    assert apply_cue("greyscale", photos, tmp_path / "out", workers=1).made == 1
    assert (tmp_path / "out" / LOG).read_bytes() == log


@pytest.mark.parametrize(
    ("cue", "more"),
    [("contrast", {}), ("voronoi_shuffle", {"seed": 1}), ("voronoi_shuffle", {"options": {"sites": 9}})],
)
def test_other_parameters_in_the_same_folder_are_refused(photos, tmp_path, cue, more):
    apply_cue("voronoi_shuffle", photos, tmp_path / "out", workers=1)
    with pytest.raises(UserError, match="other parameters") as caught:
        apply_cue(cue, photos, tmp_path / "out", workers=1, **more)
    assert "--fresh" in caught.value.hint
    assert apply_cue(cue, photos, tmp_path / "out", workers=1, fresh=True, **more).made == 3


def test_foreign_files_are_not_taken_for_results(photos, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a.png").write_bytes(b"mine")
    with pytest.raises(UserError, match=r"no cue\.json"):
        apply_cue("greyscale", photos, tmp_path / "out")
    assert (tmp_path / "out/a.png").read_bytes() == b"mine"


def test_the_manifest_says_how_the_folder_was_made(photos, tmp_path):
    apply_cue("contrast", photos, tmp_path / "out", options={"level": 0.3}, seed=7, workers=1)
    record = json.loads((tmp_path / "out/cue.json").read_text())
    assert (record["cue"], record["options"], record["seed"]) == ("contrast", {"level": 0.3}, 7)


def test_unreadable_files_are_named_and_the_rest_is_made(photos, tmp_path):
    (photos / "broken.jpg").write_bytes(b"no picture")
    Image.fromarray(np.zeros((4, 4, 4), np.uint8)).save(photos / "clear.png")
    Image.fromarray(np.full((4, 4, 4), 255, np.uint8)).save(photos / "opaque.png")
    seen = []
    done = apply_cue("greyscale", photos, tmp_path / "out", workers=1, progress=lambda *a: seen.append(a))
    assert done.made == 4
    assert {os.path.basename(name) for name in done.failed} == {"broken.jpg", "clear.png"}
    assert "cannot be decoded" in done.failed[str(photos / "broken.jpg")]
    assert "alpha" in done.failed[str(photos / "clear.png")]
    assert seen[-1][:2] == (6, 6)
    assert sum(bool(message) for _, _, message in seen) == 2
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_one_mistake_is_one_error(photos, tmp_path):
    with pytest.raises(UserError, match="all 3 files failed: sites is -2"):
        apply_cue("voronoi_shuffle", photos, tmp_path / "out", options={"sites": -2}, workers=1)


def test_hidden_folders_of_programs_are_passed_over(photos, tmp_path):
    (photos / "cats/.ipynb_checkpoints").mkdir()
    shutil.copy(photos / "a.png", photos / "cats/.ipynb_checkpoints/a.png")
    assert apply_cue("greyscale", photos, tmp_path / "out", workers=1).made == 3


def test_names_that_differ_only_in_the_suffix_stay_apart(photos, tmp_path):
    Image.fromarray(np.zeros((5, 5, 3), np.uint8)).save(photos / "a.jpg")
    apply_cue("greyscale", photos, tmp_path / "out", workers=1)
    assert {"a.png.png", "a.jpg.png", "cats/b.png"} <= set(tree(tmp_path / "out"))


def test_object_masks_and_their_inverse(photos, tmp_path):
    mask = np.zeros((24, 20), np.uint8)
    mask[5:15, 5:15] = 255
    Image.fromarray(mask).save(tmp_path / "mask.png")
    Image.fromarray(255 - mask).save(tmp_path / "black.png")
    apply_cue("composite", photos, tmp_path / "one", mask=tmp_path / "mask.png", workers=1)
    apply_cue("composite", photos, tmp_path / "two", mask=tmp_path / "black.png", invert_mask=True, workers=1)
    expected = composite(pixels(photos / "a.png"), mask=mask)
    assert np.array_equal(pixels(tmp_path / "one/a.png"), expected)
    assert np.array_equal(pixels(tmp_path / "two/a.png"), expected)


def disc(size=60):
    y, x = np.mgrid[:size, :size] - size / 2 + 0.5
    return np.clip(127.5 + 80 * (size / 4 - np.hypot(x, y)), 0, 255).astype(np.uint8)  # a smooth edge


def palette(values, colours):
    image = Image.fromarray(values).convert("P")
    image.putdata(list(values.ravel()))
    image.putpalette([c for colour in colours for c in colour])
    return image


MASK_FILES = {
    "grey.png": Image.fromarray(disc()),
    "grey.jpg": Image.fromarray(disc()),
    "rgb.jpg": Image.fromarray(disc()).convert("RGB"),
    "white_cut_out.png": Image.merge("LA", [Image.new("L", (60, 60), 255), Image.fromarray(disc())]),
    "black_cut_out.png": Image.merge("RGBA", [*Image.new("RGB", (60, 60)).split(), Image.fromarray(disc())]),
    "opaque.png": Image.fromarray(disc()).convert("RGBA"),
    "one_bit.png": Image.fromarray(disc() > 127),
    "numbers.png": Image.fromarray((disc() > 127).astype(np.uint8)),
    "deep_numbers.png": Image.fromarray((disc() > 127).astype(np.uint16)),
    "deep.png": Image.fromarray((disc() > 127).astype(np.uint16) * 65535),
    "red.png": Image.merge("RGB", [Image.fromarray((disc() > 127) * np.uint8(255)), *[Image.new("L", (60, 60))] * 2]),
    "voc.png": palette((disc() > 127).astype(np.uint8) * 2, [(0, 0, 0), (128, 0, 0), (0, 128, 0)]),
    "white_first.png": palette((disc() <= 127).astype(np.uint8), [(255, 255, 255), (0, 0, 0)]),
}


@pytest.mark.parametrize("name", MASK_FILES)
@pytest.mark.parametrize("invert", [False, True])
def test_the_object_of_a_mask_is_what_is_white_or_opaque(tmp_path, name, invert):
    MASK_FILES[name].save(tmp_path / name)
    inside = read_mask(tmp_path / name, invert=invert)
    assert inside.dtype == bool
    wrong = inside != ((disc() > 127) ^ invert)
    assert wrong.sum() <= (0 if name.endswith("png") else 4)  # JPEG moves a pixel of the edge


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_numbers_of_classes_are_no_object_mask(tmp_path, kind):
    numbers = np.zeros((60, 60), kind)
    numbers[10:30, 10:30], numbers[35:50, 10:50] = 1, 15
    for void in (0, 255):
        numbers[30:32, 10:30] = void
        Image.fromarray(numbers).save(tmp_path / "classes.png")
        with pytest.raises(UserError, match=r"the mask classes\.png: (its values are|16 bits)") as error:
            read_mask(tmp_path / "classes.png", invert=False)
        assert "black and white" in error.value.hint


def test_a_label_mask_is_no_jpeg(tmp_path):
    Image.fromarray(disc()).save(tmp_path / "labels.jpg")
    with pytest.raises(UserError, match="changes the numbers of a label mask"):
        read_labels(tmp_path / "labels.jpg")


def test_label_masks_move_with_the_images(photos, tmp_path):
    masks = tmp_path / "labels"
    for name in ("a.png", "cats/b.png"):
        (masks / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels(photos / name)[..., 0]).save(masks / name)
    done = apply_cue("voronoi_shuffle", photos, tmp_path / "out", mask=masks, workers=1)
    assert [os.path.basename(name) for name in done.failed] == ["c.png"]
    assert "missing" in next(iter(done.failed.values()))
    for name in ("a.png", "cats/b.png"):
        assert np.array_equal(pixels(tmp_path / "out/masks" / name), pixels(tmp_path / "out" / name)[..., 0])


def test_second_images(photos, tmp_path):
    done = apply_cue("blend", photos, tmp_path / "out", other=photos / "a.png", workers=1)
    assert done.made == 3
    assert np.array_equal(pixels(tmp_path / "out/a.png"), pixels(photos / "a.png"))


def test_one_file(photos, tmp_path):
    apply_cue("contrast", photos / "a.png", tmp_path / "deep/result.png", options={"level": 0.5})
    assert np.array_equal(pixels(tmp_path / "deep/result.png"), contrast(pixels(photos / "a.png"), level=0.5))
    apply_cue("contrast", photos / "a.png", tmp_path / "folder")
    assert (tmp_path / "folder/a.png").exists()


def test_grey_stays_grey(tmp_path):
    Image.fromarray(RNG.integers(0, 256, (9, 9), dtype=np.uint8)).save(tmp_path / "grey.png")
    apply_cue("contrast", tmp_path / "grey.png", tmp_path / "out.png")
    assert Image.open(tmp_path / "out.png").mode == "L"


def test_palettes_are_colours_and_16_bits_are_refused(tmp_path):
    picture = Image.fromarray(RNG.integers(0, 256, (9, 9, 3), dtype=np.uint8)).quantize(16)
    picture.save(tmp_path / "palette.png")
    assert read_image(tmp_path / "palette.png").shape == (9, 9, 3)
    Image.fromarray(RNG.integers(0, 60000, (9, 9), dtype=np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(UserError, match="more than 8 bits"):
        read_image(tmp_path / "deep.png")


@pytest.mark.parametrize(
    ("cue", "more", "message"),
    [
        ("voronoi", {}, "Did you mean 'voronoi_shuffle'"),
        ("voronoi_shuffle", {"options": {"site": 4}}, "Did you mean 'sites'"),
        ("voronoi_shuffle", {"options": {"sites": "many"}}, "sites='many': expected a whole number"),
        ("voronoi_shuffle", {"options": {"rng": 1}}, "unknown option"),
        ("contours", {}, "needs an object mask"),
        ("blend", {}, "needs a second image"),
        ("contrast", {"mask": "x.png"}, "takes no mask"),
        ("contrast", {"other": "x.png"}, "takes no second image"),
        ("contrast", {"seed": -1}, "seed=-1"),
    ],
)
def test_mistakes_that_concern_the_whole_call(photos, tmp_path, cue, more, message):
    with pytest.raises(UserError, match=message):
        apply_cue(cue, photos, tmp_path / "out", **more)
    assert not (tmp_path / "out").exists()


def test_bad_places(photos, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="does not exist"):
        apply_cue("contrast", tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(UserError, match="no images"):
        apply_cue("contrast", tmp_path / "empty", tmp_path / "out")
    with pytest.raises(UserError, match="source folder itself"):
        apply_cue("contrast", photos, photos)
    before = (photos / "a.png").read_bytes()
    for target in (photos, photos / "a.png"):  # a.png of the folder would be written over
        with pytest.raises(UserError, match="is the source itself"):
            apply_cue("contrast", photos / "a.png", target)
    assert (photos / "a.png").read_bytes() == before
    with pytest.raises(UserError, match="is the second image itself"):
        apply_cue("blend", photos / "a.png", photos / "b.png", other=photos / "b.png")
    with pytest.raises(UserError, match="is a file"):
        apply_cue("contrast", photos, tmp_path / "x.png")


def test_results_below_the_source_are_not_taken_as_sources(photos):
    apply_cue("contrast", photos, photos / "out", workers=1)
    assert apply_cue("contrast", photos, photos / "out", workers=1).kept == 3


FILE = '''
from cuebench.cues.base import CueInfo, on_images

@CueInfo(kind="corruption", reference="none")
def darken(image, *, by: float = 0.5):
    """Darken an image."""
    return on_images(lambda pixels: pixels * by, image)

@CueInfo(kind="corruption", reference="none")
def breaks(image):
    """Raise."""
    raise ZeroDivisionError("by nothing")
'''


def test_a_cue_of_a_file_runs_in_worker_processes(photos, tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    name = f"python:{tmp_path / 'mine.py'}:darken"
    assert apply_cue(name, photos, tmp_path / "out", options={"by": "0"}, workers=2).made == 3
    assert not pixels(tmp_path / "out/cats/b.png").any()
    assert json.loads((tmp_path / "out/cue.json").read_text())["options"] == {"by": 0.0}
    with pytest.raises(UserError, match="Did you mean 'by'"):
        apply_cue(name, photos, tmp_path / "other", options={"bye": "0"})


@pytest.mark.parametrize("workers", [1, 2])
def test_a_cue_of_a_file_that_raises_is_named(photos, tmp_path, workers):
    (tmp_path / "mine.py").write_text(FILE)
    name = f"python:{tmp_path / 'mine.py'}:breaks"
    with pytest.raises(UserError, match=r"all 3 files failed: cue '\S+:breaks' failed: ZeroDivisionError: by nothing"):
        apply_cue(name, photos, tmp_path / "out", workers=workers)


def test_a_function_is_a_cue_without_a_file(photos, tmp_path):
    @CueInfo(kind="corruption", reference="none")
    def inverted(image):
        return on_images(lambda pixels: 1 - pixels, image)

    try:
        assert apply_cue(inverted, photos, tmp_path / "out", workers=2).made == 3
    finally:
        cues.added.pop("inverted", None)
    assert np.array_equal(pixels(tmp_path / "out/a.png"), 255 - pixels(photos / "a.png"))


def test_the_verb(photos, tmp_path, capsys):
    out = tmp_path / "out"
    call = ["cue", "patch_shuffle", str(photos), str(out), "--set", "grid=4", "--seed", "2", "--workers", "1"]
    assert run(call) == 0
    assert "3 made, 0 kept" in capsys.readouterr().out
    assert run([*call, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["kept"] == 3
    assert all(json.loads(line)["event"] for line in captured.err.splitlines())
    assert run([word.replace("grid=4", "grid=8") for word in call]) == 2
    assert "other parameters" in capsys.readouterr().err


def test_the_verb_exits_1_when_a_file_failed(photos, tmp_path, capsys):
    (photos / "broken.jpg").write_bytes(b"no picture")
    assert run(["cue", "greyscale", str(photos), str(tmp_path / "out"), "--workers", "1", "--quiet"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "broken.jpg" in captured.err


@pytest.mark.parametrize("call", [["cue"], ["cue", "contrast"], ["cue", "--sheet", "x.png"]])
def test_the_verb_without_its_arguments(call, capsys):
    assert run(call) == 2
    assert "cuebench cue" in capsys.readouterr().err


def test_settings_are_typed_by_the_cue(tmp_path, capsys):
    Image.new("RGB", (16, 16), (90, 30, 10)).save(tmp_path / "in.png")
    place = [str(tmp_path / "in.png"), str(tmp_path / "out.png")]
    assert run(["cue", "contrast", *place, "--set", "level=.5", "--set", "keep_colour=true"]) == 0
    assert run(["cue", "low_pass", *place, "--fresh", "--set", "sigma=much"]) == 2
    assert "sigma='much': expected a number" in capsys.readouterr().err
    for bad in ("level", "=3"):
        assert run(["cue", "contrast", *place, "--set", bad]) == 2


def test_a_command_that_made_nothing_does_not_claim_the_folder(tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(2):
        Image.fromarray(np.full((8, 8, 3), i, np.uint8)).save(tmp_path / "in" / f"{i}.png")
    with pytest.raises(UserError, match="all 2 files failed"):
        apply_cue("voronoi_shuffle", tmp_path / "in", tmp_path / "out", options={"sites": -3})
    assert apply_cue("voronoi_shuffle", tmp_path / "in", tmp_path / "out", options={"sites": 3}).made == 2
