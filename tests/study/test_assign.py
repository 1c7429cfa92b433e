"""Trials are balanced over images, groups, options and sides, whatever the number of participants."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cuebench.errors import UserError
from cuebench.study.assign import assign, balanced, place_of, triplet_matches
from cuebench.study.design import Design, read_design
from cuebench.study.stimuli import draw, pink_noise, select
from cuebench.study.types import StudyImage


def image(name: str, **facts: str) -> StudyImage:
    return StudyImage(id=name, file=f"{name}.png", sha256="", size=1, name=name, **facts)


def conflict_images(classes: int = 4, instances: int = 3) -> list[StudyImage]:
    names = ["cat", "dog", "car", "clock"][:classes]
    return [
        image(f"{a}{i}-{b}", shape=a, texture=b, shape_source=f"{a}{i}", texture_source=b)
        for a in names
        for b in names
        for i in range(instances)
    ]


def masks(number: int = 2) -> list[StudyImage]:
    return [image(f"mask_{i}", role="mask") for i in range(number)]


def small(design: Design, **numbers: int) -> Design:
    return replace(design, blocks=tuple(replace(b, **{"familiarisation": 0, **numbers}) for b in design.blocks))


@example(sizes=[6, 5, 5], count=16, people=1, seed=0)  # the first person gets along, the second does not
@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(5, 9), min_size=1, max_size=6),
    count=st.integers(1, 20),
    people=st.integers(1, 40),
    seed=st.integers(0, 5),
)
def test_however_many_people_come_images_of_a_class_were_shown_equally_often(sizes, count, people, seed) -> None:
    images = [image(f"{c}_{i}", shape=str(c)) for c, size in enumerate(sizes) for i in range(size)]
    if -(-count // len(sizes)) > min(sizes):
        with pytest.raises(UserError, match="are needed"):  # the surplus comes to every class in turn
            _ = [balanced(images, count, "shape", window=window, seed=seed) for window in range(len(sizes))]
        return
    windows = [balanced(images, count, "shape", window=w, seed=seed) for w in range(people)]
    assert all(len(w) == count == len({i.id for i in w}) for w in windows), "nobody sees an image twice"
    shown = Counter(i.id for window in windows for i in window)
    for c in {i.shape for i in images}:
        numbers = [shown[i.id] for i in images if i.shape == c]
        assert max(numbers) - min(numbers) <= 1
    by_class = Counter(i.shape for window in windows for i in window)
    assert max(by_class.values()) - min(by_class[str(c)] for c in range(len(sizes))) <= 1


def test_groups_are_dealt_in_turn_and_see_the_same_images_in_the_other_order() -> None:
    design = small(read_design("cue_conflict_both"), count=8, attention=1)
    images = [*conflict_images(), *masks()]
    assert [place_of(design, n) for n in range(4)] == [("A", 0), ("B", 0), ("A", 1), ("B", 1)]
    first, second = (assign(design, images, n, seed=1) for n in (0, 1))
    blocks = [[t.block for t in trials if t.kind == "trial"] for trials in (first, second)]
    assert [list(dict.fromkeys(b)) for b in blocks] == [["shape", "texture"], ["texture", "shape"]]
    seen = [{t.stimuli for t in trials if t.kind == "trial"} for trials in (first, second)]
    assert seen[0] == seen[1]
    assert [t.position for t in first] == list(range(len(first)))
    for trial in first:
        truth = next(i for i in images if i.id == trial.stimuli[0])
        if trial.kind == "trial":
            assert trial.correct == (getattr(truth, trial.task),)
            assert truth.shape != truth.texture


def test_the_same_number_gets_the_same_trials_and_another_one_others() -> None:
    design = small(read_design("cue_conflict"), count=12, practice=0, attention=2)
    images = [*conflict_images(), *masks()]
    assert assign(design, images, 5, seed=1) == assign(design, list(reversed(images)), 5, seed=1)
    orders = {tuple(t.stimuli for t in assign(design, images, n, seed=1)) for n in range(6)}
    assert len(orders) == 6
    assert assign(design, images, 5, seed=2) != assign(design, images, 5, seed=1)


def drawn_for(name: str) -> tuple[Design, list[StudyImage]]:
    """Return a design and its images, as small as they can be."""
    design = read_design(name)
    if name.startswith("cue_conflict"):
        return small(design, count=8, practice=0, attention=2), [*conflict_images(), *masks()]
    return design, [*(row.image for row in select(design, None).chosen), *masks()]


@pytest.mark.parametrize("name", ["cue_conflict", "cue_conflict_both", "texture_words", "triplets"])
def test_a_study_made_anew_gives_the_same_number_the_same_trials(name: str) -> None:
    """Ids are drawn anew for each study; by the names of the images, everything is the same."""
    design, images = drawn_for(name)

    def trials(salt: str) -> list[tuple[tuple[str, ...], ...]]:
        ids = {i.name: hashlib.sha256(f"{salt}{i.name}".encode()).hexdigest() for i in images}
        names = {value: key for key, value in ids.items()}
        given = assign(design, [replace(i, id=ids[i.name]) for i in images], 5, seed=1)
        return [tuple(tuple(names.get(word, word) for word in part) for part in (t.stimuli, t.options)) for t in given]

    assert trials("one") == trials("other")


def test_aligned_checks_have_one_answer_and_lie_inside_the_block() -> None:
    design = small(read_design("cue_conflict"), count=12, practice=0, attention=2)
    trials = assign(design, [*conflict_images(), *masks()], 0, seed=1)
    checks = [t for t in trials if t.kind == "attention"]
    assert len(checks) == 2
    assert all(t.stimuli[0].split("-")[1] == t.correct[0] for t in checks)
    assert all(2 <= t.position < len(trials) - 2 for t in checks)
    assert all(t.planned_ms == 200 for t in trials)
    assert all(t.options == ("car", "cat", "clock", "dog") for t in trials), "a fixed order"


def test_instructed_checks_ask_for_one_of_the_options_and_the_page_is_told_which() -> None:
    design = small(read_design("cue_conflict_both"), count=8, attention=2)
    trials = assign(design, [*conflict_images(), *masks()], 0, seed=1)
    checks = [t for t in trials if t.kind == "attention"]
    assert len(checks) == 4
    for check in checks:
        assert check.correct == (check.asked,)
        assert check.asked in check.options
        assert "correct" not in check.shown()
        assert check.shown()["asked"] == check.asked


def test_options_are_shuffled_by_participant_and_not_within_a_session() -> None:
    design = small(read_design("cue_conflict_both"), count=8, attention=0)
    images = [*conflict_images(), *masks()]
    orders = []
    for number in range(8):
        options = {t.options for t in assign(design, images, number, seed=0)}
        assert len(options) == 1
        orders += options
    assert len(set(orders)) > 3


def novel() -> tuple[Design, list[StudyImage]]:
    design = read_design("triplets")
    return design, [row.image for row in select(design, None).chosen]


def test_triplets_share_one_thing_with_their_anchor_and_sides_are_balanced() -> None:
    design, images = novel()
    by_id = {i.id: i for i in images}
    trials = [t for t in assign(design, images, 3, seed=0) if t.kind == "trial"]
    left = 0
    for trial in trials:
        anchor, *pair = (by_id[name] for name in trial.stimuli)
        assert trial.options == trial.stimuli[1:]
        same_shape = [m.shape == anchor.shape for m in pair]
        assert sorted(same_shape) == [False, True]
        assert [m.texture == anchor.texture for m in pair] == [not s for s in same_shape]
        left += same_shape[0]
    assert len(trials) == 64
    assert left == 32
    assert Counter(by_id[t.stimuli[0]].shape for t in trials) == dict.fromkeys({i.shape for i in images}, 4)


def test_identical_checks_show_the_anchor_itself() -> None:
    design, images = novel()
    by_id = {i.id: i for i in images}
    for check in (t for t in assign(design, images, 0, seed=0) if t.kind == "attention"):
        assert check.correct == (check.stimuli[0],)
        other = next(by_id[o] for o in check.options if o != check.correct[0])
        assert other.shape != by_id[check.stimuli[0]].shape
        assert other.texture != by_id[check.stimuli[0]].texture


def test_matches_agree_with_a_search_over_all_pairs() -> None:
    _, images = novel()
    shape, texture = triplet_matches(images[0], images)
    a = images[0]
    assert {i.id for i in shape} == {i.id for i in images if i.shape == a.shape and i.texture != a.texture}
    assert {i.id for i in texture} == {i.id for i in images if i.texture == a.texture and i.shape != a.shape}


def test_four_words_of_which_one_is_the_image_s_and_everybody_gets_the_same() -> None:
    design = read_design("texture_words")
    images = [*(row.image for row in select(design, None, seed=1).chosen), *masks()]
    by_id = {i.id: i for i in images}
    words = []
    for number in (0, 1):
        trials = [t for t in assign(design, images, number, seed=1) if t.kind == "trial"]
        assert len(trials) == 100
        assert all(len(set(t.options)) == 4 and by_id[t.stimuli[0]].texture in t.options and t.several for t in trials)
        words.append({t.stimuli: frozenset(t.options) for t in trials})
    assert words[0] == words[1]


def test_too_few_images_are_a_problem_of_the_study_and_not_of_the_last_participant(tmp_path) -> None:
    from short_studies import write_data

    with pytest.raises(UserError) as error:
        select(read_design("refined_bias"), write_data(tmp_path))
    assert "block 'shape'" in str(error.value)
    assert "block 'texture'" in str(error.value)


def test_what_the_second_participant_lacks_is_found_before_the_first_comes() -> None:
    images = [image(f"{c}_{i}", shape=str(c)) for c, size in enumerate((6, 5, 5)) for i in range(size)]
    block = replace(read_design("cue_conflict").blocks[0], count=16, balance="shape", draw="participant")
    with pytest.raises(UserError, match="shape '1' has 5 images; 6 are needed"):
        draw(block, images, 0)
    assert len(draw(replace(block, draw="study"), images, 0)) == 16, "the same images for everybody"


def test_examples_are_never_trials_and_are_there_for_each_class(shared) -> None:
    design = read_design("refined_bias")
    selection = select(design, shared, seed=4)
    images = [row.image for row in selection.chosen]
    roles = Counter((i.role, i.shape or i.texture) for i in images)
    classes = {i.shape or i.texture for i in images}
    assert len(classes) == 20
    assert all(roles["trial", c] == 5 and roles["familiarisation", c] == 3 for c in classes)
    assert "327 of 6,000 stimuli" in selection.notes
    trials = assign(design, [*images, *masks()], 1, seed=4)
    kinds = Counter((t.block, t.kind) for t in trials)
    assert kinds["shape", "trial"] == kinds["texture", "trial"] == 50
    assert kinds["shape", "familiarisation"] == kinds["texture", "familiarisation"] == 10
    assert all(len(t.stimuli) == 3 for t in trials if t.kind == "familiarisation")
    assert trials[0].block == "texture", "group B"


def test_noise_is_pink() -> None:
    """The amplitude falls as 1/f: a straight line of slope −1 in logarithms, measured on rings of the spectrum."""
    import io

    import numpy as np
    from PIL import Image

    (_, data), (_, other) = pink_noise(replace(read_design("refined_bias"), masks=2), seed=1)
    pixels = np.asarray(Image.open(io.BytesIO(data)).convert("L"), float)
    assert data != other
    spectrum = np.abs(np.fft.fft2(pixels - pixels.mean()))
    frequency = np.hypot(*np.meshgrid(*[np.fft.fftfreq(side) * side for side in pixels.shape]))
    edges = np.geomspace(3, 80, 12)
    rings = [spectrum[(frequency >= low) & (frequency < high)].mean() for low, high in pairwise(edges)]
    slope = np.polyfit(np.log(np.sqrt(edges[:-1] * edges[1:])), np.log(rings), 1)[0]
    assert slope == pytest.approx(-1, abs=0.1)


def test_a_class_that_no_trial_shows_is_still_an_answer() -> None:
    """48 images of 16 shapes need not show all 16 textures; people choose among all that the examples show."""
    design = read_design("cue_conflict_both")
    block = replace(design.blocks[1], count=4)
    trials = [image(f"{a}-cat", shape=a, texture="cat") for a in ("bear", "car", "dog", "clock")]
    examples = [
        image(f"x-{b}", shape="oven", texture=b, role="familiarisation", cue="texture") for b in ("cat", "boat", "dog")
    ]
    shown = assign(replace(design, blocks=(block,), groups={"A": ("texture",)}), [*trials, *examples, *masks()], 0, 0)
    assert {option for trial in shown if trial.kind == "trial" for option in trial.options} == {"cat", "boat", "dog"}
    assert sorted(t.options for t in shown if t.kind == "familiarisation") == [("boat",), ("cat",), ("dog",)]
