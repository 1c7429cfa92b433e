import pytest

from cuebench.errors import UserError
from cuebench.registry import readers
from cuebench.stimuli.readers import csv_manifest, cue_conflict, image_folder, texture_folder


def problems_of(call, *arguments, **options):
    with pytest.raises(UserError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def test_registry_finds_the_readers_and_not_the_base():
    assert {"csv_manifest", "cue_conflict", "image_folder"} <= set(readers.names())
    assert "base" not in readers
    for name in readers:
        reader = readers.get(name)
        assert (reader.name, bool(reader.layout), bool(readers.summary(name))) == (name, True, True)


@pytest.mark.parametrize("name", readers.names())
def test_every_reader_says_what_it_expected_and_where_it_looked(name, tmp_path):
    text = problems_of(readers.get(name).read, tmp_path / "nowhere")
    assert "nowhere" in text
    assert readers.get(name).layout in text


@pytest.mark.parametrize(
    ("stem", "sources"),
    [
        ("airplane1-bicycle2", ("airplane", "airplane1", "bicycle", "bicycle2")),
        ("airplane10-bicycle12", ("airplane", "airplane10", "bicycle", "bicycle12")),
        ("wine_bottle3-brain_coral1", ("wine_bottle", "wine_bottle3", "brain_coral", "brain_coral1")),
        ("mp3_player2-cat1", ("mp3_player", "mp3_player2", "cat", "cat1")),
    ],
)
def test_names_are_parsed(stem, sources):
    s = cue_conflict.parse(stem)
    assert (s.id, s.shape, s.shape_source, s.texture, s.texture_source) == (stem, *sources)


@pytest.mark.parametrize("stem", ["cat-dog1", "cat1dog1", "1-2", "cat1-dog", "cat1-dog1-x2", "", "cat1-dog1 (copy)"])
def test_other_names_are_not_parsed(stem):
    assert cue_conflict.parse(stem) is None


def test_cue_conflict_folder(conflict_folder):
    result = cue_conflict.read(conflict_folder, expected=1280)
    assert [s.id for s in result] == ["cat1-dog2", "cat10-cat1", "dog1-cat1", "dog2-dog1"]
    first = result.stimuli[0]
    assert (first.path, first.width, first.height, len(first.sha256)) == ("cat/cat1-dog2.png", 8, 6, 64)
    assert result.partial == ("4 of 1,280 stimuli",)
    assert (result.expected, result.targets, result.root) == (1280, "", str(conflict_folder))
    assert cue_conflict.read(conflict_folder).partial == ()
    assert cue_conflict.read(conflict_folder, expected=4).partial == ()


def test_label_map_beside_the_folder_is_used(conflict_folder):
    (conflict_folder.parent / "labels.json").write_text("{}")
    assert cue_conflict.read(conflict_folder).targets == str(conflict_folder.parent / "labels.json")


def test_all_problems_of_a_cue_conflict_folder_at_once(conflict_folder, picture):
    picture(conflict_folder / "cat" / "dog3-cat1.png")
    picture(conflict_folder / "cat" / "nonsense.png")
    picture(conflict_folder / "dog" / "dog1-cat1.jpg")
    picture(conflict_folder / "loose1-cat1.png")
    (conflict_folder / "cat" / "cat5-dog1.png").touch()
    (conflict_folder / "cat" / "cat6-dog1.png").symlink_to(conflict_folder / "gone.png")
    (conflict_folder / "notes.docx").write_text("x")
    text = problems_of(cue_conflict.read, conflict_folder)
    assert "7 problems" in text
    for part in [
        "says shape 'dog'",
        "nonsense.png: the name",
        "duplicated id 'dog1-cat1': dog/dog1-cat1.jpg, dog/dog1-cat",
    ]:
        assert part in text
    for part in ["loose1-cat1.png: lies 0 folders deep", "(0 bytes)", "a broken link", "notes.docx: not an image"]:
        assert part in text


def test_litter_is_ignored_and_an_empty_folder_is_not(conflict_folder, tmp_path):
    for name in [".DS_Store", "Thumbs.db", "._cat1-dog2.png", "README.md", ".cat9-dog1.png.77.1.tmp"]:
        (conflict_folder / "cat" / name).write_bytes(b"\0")
    assert len(cue_conflict.read(conflict_folder)) == 4
    (tmp_path / "empty" / "cat").mkdir(parents=True)
    (tmp_path / "empty" / ".DS_Store").touch()
    assert "no stimuli found in" in problems_of(cue_conflict.read, tmp_path / "empty")


def test_unfinished_download_is_named(conflict_folder):
    (conflict_folder / "cat" / "cat7-dog1.png.part").write_bytes(b"half")
    assert "an unfinished download; run `cuebench fetch`" in problems_of(cue_conflict.read, conflict_folder)


def test_corrupt_header_is_left_to_the_engine(conflict_folder):
    (conflict_folder / "cat" / "cat1-dog2.png").write_bytes(b"this is not a picture")
    first = cue_conflict.read(conflict_folder).stimuli[0]
    assert (first.width, first.height, len(first.sha256)) == (0, 0, 64)


def test_class_folders_may_be_links(conflict_folder, tmp_path):
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "cat").symlink_to(conflict_folder / "cat")
    (tmp_path / "linked" / "circle").symlink_to(tmp_path / "linked")
    assert "circle/cat/cat1-dog2.png" in problems_of(cue_conflict.read, tmp_path / "linked")
    (tmp_path / "linked" / "circle").unlink()
    assert len(cue_conflict.read(tmp_path / "linked")) == 2


def test_image_folder_by_class(tmp_path, picture):
    picture(tmp_path / "b" / "1.png")
    picture(tmp_path / "a" / "1.jpg")
    result = image_folder.read(tmp_path)
    assert [(s.id, s.path, s.label) for s in result] == [("a/1", "a/1.jpg", "a"), ("b/1", "b/1.png", "b")]


@pytest.mark.parametrize("read", [image_folder.read, texture_folder.read])
def test_folders_of_programs_are_no_classes(tmp_path, picture, read):
    for name in ("banded/1.png", ".ipynb_checkpoints/1-checkpoint.png", "banded/.thumbnails/1.png", ".git/x/y.png"):
        picture(tmp_path / name)
    assert [s.id for s in read(tmp_path)] == ["banded/1"]


@pytest.mark.parametrize("read", [image_folder.read, texture_folder.read])
def test_folders_that_differ_only_by_case_or_spaces_are_not_two_classes(tmp_path, picture, read):
    for name in ("banded", "Banded", "bubbly", "bubbly ", "ice_cream", "ice cream", "braided"):
        picture(tmp_path / name / f"{len(name)}.png")
    (tmp_path / "Braided").mkdir()  # holds no picture
    text = problems_of(read, tmp_path)
    for part in ("3 problems", "'Banded' and 'banded'", "'bubbly' and 'bubbly '", "'ice cream' and 'ice_cream'"):
        assert part in text


@pytest.mark.parametrize(
    ("table", "label"),
    [
        ("file,index,wnid\nx.png,5,n01440764\n", "n01440764"),
        ("file,label\nx.png,cat\n", "cat"),
        ("file,index\nx.png,0\n", "n01440764"),
        ("file,index\nx.png, 999\n", "n15075141"),
    ],
)
def test_flat_folder_with_labels(tmp_path, picture, table, label):
    picture(tmp_path / "x.png")
    (tmp_path / "labels.csv").write_text(table)
    assert [(s.id, s.label) for s in image_folder.read(tmp_path, expected=1)] == [("x", label)]


def test_all_problems_of_labels_at_once(tmp_path, picture):
    picture(tmp_path / "x.png")
    picture(tmp_path / "unlisted.png")
    (tmp_path / "labels.csv").write_text("file,label\nx.png,cat\nx.png,dog\ngone.png,cat\n,cat\n")
    text = problems_of(image_folder.read, tmp_path)
    for part in [
        "4 problems",
        "two labels, 'cat' and 'dog'",
        "gone.png: listed",
        "unlisted.png: has no",
        "line 5: no file",
    ]:
        assert part in text
    (tmp_path / "labels.csv").write_text("file,label\nx.png,Cat\nunlisted.png,cat\n")
    assert "'Cat' and 'cat' differ only by case" in problems_of(image_folder.read, tmp_path)
    (tmp_path / "labels.csv").write_text("name,class\nx.png,cat\n")
    assert "found ['name', 'class']" in problems_of(image_folder.read, tmp_path)


@pytest.mark.parametrize("index", ["1000", "-1", "5.0", "cat"])
def test_an_index_is_one_of_imagenet(tmp_path, picture, index):
    picture(tmp_path / "x.png")
    (tmp_path / "labels.csv").write_text(f"file,index\nx.png,{index}\n")
    text = problems_of(image_folder.read, tmp_path)
    assert f"line 2: index '{index}' is not one of 0 … 999 of ImageNet; name classes of other models" in text


def test_csv_with_paths(tmp_path, picture):
    picture(tmp_path / "im" / "b.png")
    picture(tmp_path / "im" / "a.png")
    (tmp_path / "my.csv").write_text("path,shape,texture,seed\nim/b.png,cat,dog,3\nim/a.png,dog,cat,4\n")
    result = csv_manifest.read(tmp_path / "my.csv", expected=3)
    assert [(s.id, s.shape, s.seed, s.width) for s in result] == [("im/a", "dog", 4, 8), ("im/b", "cat", 3, 8)]
    assert (result.name, result.partial) == ("my", ("2 of 3 stimuli",))


def test_csv_without_files(tmp_path):
    (tmp_path / "my.csv").write_text("id,label\nz,cat\na,dog\n")
    assert [(s.id, s.path, s.sha256) for s in csv_manifest.read(tmp_path / "my.csv")] == [("a", "", ""), ("z", "", "")]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("path,shpe\nx.png,cat\n", ["unknown column 'shpe'. Did you mean 'shape'?"]),
        ("shape,texture\ncat,dog\n", ["needs a column 'path' or 'id'"]),
        ("id,seed\na,x\n,1\n", ["2 problems", "seed is 'x'", "line 3: neither path nor id"]),
        ("id,seed\na,1\na\n", ["line 3: wrong number of columns"]),
        ("id,id\na,b\n", ["column 'id' occurs twice"]),
        ("id;label\na;b\n", ["separated by semicolons"]),
        ('id,label\na,"b\n', ["line 2: unexpected end of data"]),
        ("path\n../x.png\n", ["leads out of the set"]),
        ("path\n/etc/hostname\n", ["an absolute path"]),
        ("id,label\na,b\x1b[2J\n", ["label holds control characters"]),
        ("id,label\na," + "x" * 200_000 + "\n", ["field larger than field limit"]),
        ("id,label\na,cat\na,dog\n", ["duplicated id 'a'"]),
        ("path\ngone.png\n", ["gone.png: no such file"]),
        ("path,sha256\nx.png,123\n", ["the CSV says 123"]),
        ("path,recipe\nx.png,contrst\n", ["line 2: recipe: unknown cue 'contrst'. Did you mean 'contrast'"]),
        ("id,recipe\nx,texture?nam=striped\n", ["unknown option of source 'texture': 'nam'. Did you mean 'name'"]),
        ("id\n", ["no stimuli found"]),
        ("", ["needs a column 'path' or 'id'"]),
    ],
)
def test_csv_problems(tmp_path, picture, text, parts):
    picture(tmp_path / "x.png")
    (tmp_path / "my.csv").write_text(text)
    message = problems_of(csv_manifest.read, tmp_path / "my.csv")
    for part in parts:
        assert part in message
