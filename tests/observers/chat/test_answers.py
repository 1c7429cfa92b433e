"""Reading answers in words: forms that are accepted, forms that are not, and prompts."""

from __future__ import annotations

import pytest

from cuebench.errors import UserError
from cuebench.labels import label_map
from cuebench.observers.chat.answers import named_classes, names_of, read_answer, read_caption, reading_notes
from cuebench.observers.chat.prompts import STEERING, built_in, letters, ordered, read_prompt

CLASSES = label_map("in16").names
ACCEPTED = """D
d
D.
D
(d)
(D)
[D]
**D**
D)
D:
D. bird
D. Bird
D: bird
D) a bird
d - bird
D – bird
Option D
`D`
Ｄ．
Ｄ
D。
「D」
【D】
D：bird
答案是D。
答え：D
Ответ: D
정답은 D
The answer is D
the answer is d.
The answer is (D).
Answer: D
**Answer:** D
My answer is D, because
Die Antwort ist D.
La réponse est D
La respuesta es D.
The best option is D.
$\\boxed{D}$
The correct answer is **D. bird**
<think>It could be A. A cat?</think>D
bird
Bird.
a bird
It is a bird.
This is a bird!
The image shows a bird.
The image looks most like a bird."""


@pytest.mark.parametrize(
    "text",
    [
        *ACCEPTED.splitlines(),
        *("The feathers and the beak tell it.\n\nD", "Let me think. It could be a cat or a bird.\n\n**D. bird**"),
        "First I thought the answer is A. No: the answer is D.",
    ],
)
def test_an_answer_is_read(text: str) -> None:
    assert read_answer(text, CLASSES).decision == "bird"


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("I'm sorry, I can't assist with that request.", "refusal"),
        ("I cannot identify the object.", "refusal"),
        ("BLOCKED", "refusal"),
        ("It is either a cat or a dog.", "several"),
        ("A cat on a chair", "several"),
        ("D. cat", "contradiction"),
        ("Q", "nothing"),
        ("", "nothing"),
        ("I", "letter"),
        ("I think so.", "nothing"),
        ("A blurry picture.", "nothing"),
        ("It does not look like a bird.", "nothing"),
        ("JnCnDnEnFn", "nothing"),
    ],
)
def test_why_an_answer_is_undecided(text: str, how: str) -> None:
    reading = read_answer(text, CLASSES)
    assert reading.how == how
    assert (reading.decision == "undecided") == (how != "letter")


@pytest.mark.parametrize(
    ("text", "decision", "how"),
    [
        ("The answer is a dog.", "dog", "name"),
        ("Answer: a dog", "dog", "name"),
        ("Answer: A dog", "dog", "name"),
        ("The answer is dog because of its fur", "dog", "name"),
        ("First I thought the answer is A. No: the answer is a dog.", "dog", "name"),
        ("I think a cat", "undecided", "nothing"),
        ("The answer is a big dog.", "undecided", "nothing"),
        ("The answer is I think a dog", "undecided", "nothing"),
        ("Answer: I'm not sure.", "undecided", "nothing"),
        ("The answer isn't clear.", "undecided", "nothing"),
        ("The answer is, e.g., a dog", "undecided", "nothing"),
        ("e.g. a dog", "undecided", "nothing"),
        ("I... see a dog", "undecided", "nothing"),
        ("I can't answer a question like this.", "undecided", "refusal"),
        ("La réponse est l'avion", "undecided", "nothing"),
        ("A resposta é o cão.", "undecided", "nothing"),
        ('It may be read as the letter "H" or as a pattern.', "undecided", "nothing"),
        ("I don't think the answer is D.", "undecided", "nothing"),
        ("The correct answer is not option D.", "undecided", "nothing"),
        ("Option A is a cat, option B is a dog.", "undecided", "several"),
        ("The answer is D or E.", "undecided", "several"),
        ("Answer: A, B", "undecided", "several"),
        ("Answer: dog or cat", "undecided", "several"),
        ("Answer: D. cat", "undecided", "contradiction"),
        ("A: It is a dog.", "undecided", "contradiction"),
        ("The answer is a", "airplane", "letter"),
        ("The answer is A", "airplane", "letter"),
        ("The answer is (a) airplane", "airplane", "letter"),
        ("The answer is A because of the wings", "airplane", "letter"),
        ("The answer is A, an airplane.", "airplane", "letter"),
        ("The answer is D, I believe.", "bird", "letter"),
        ("I choose option D", "bird", "letter"),
        ("\u0130", "chair", "letter"),  # a capital I with a dot
    ],
)  # fmt: skip
def test_a_letter_is_no_word_of_the_sentence(text: str, decision: str, how: str) -> None:
    assert read_answer(text, CLASSES) == (decision, how)


def test_letters_follow_the_order_that_was_shown() -> None:
    shown = ordered(CLASSES, shuffle=3)
    assert sorted(shown) == sorted(CLASSES)
    assert shown != CLASSES
    assert shown == ordered(CLASSES, shuffle=3) != ordered(CLASSES, shuffle=4)
    for letter, name in zip(letters(16), shown):
        assert read_answer(f"{letter}.", shown).decision == name
        assert read_answer(f"{letter}. {name}", shown).decision == name


def test_more_options_than_letters_are_numbered() -> None:
    classes = [f"thing {i}" for i in range(40)]
    assert read_answer("13", classes).decision == "thing 12"
    assert read_answer("The answer is 4.", classes).decision == "thing 3"
    assert read_answer("thing 39", classes).decision == "thing 39"
    assert read_answer("Answer: 2 dogs", classes).decision == "undecided"


@pytest.mark.parametrize(
    ("caption", "decision"),
    [
        ("Two bikes lean on a wall.", "bicycle"),
        ("A close-up of kitchen knives", "knife"),
        ("A golden retriever puppy.", "dog"),
        ("A hot dog on a plate", "undecided"),
        ("A hot dog beside a car", "car"),
        ("A motorbike", "undecided"),
        ("A cat on a chair.", "undecided"),
        ("A fire truck", "truck"),
        ("A semi-truck on a road", "truck"),
        ("An abstract pattern.", "undecided"),
        ("The concatenation of scars", "undecided"),
    ],
)
def test_captions_are_read_by_names(caption: str, decision: str) -> None:
    assert read_caption(caption, names_of(CLASSES)).decision == decision


def test_names_of_other_classes_are_their_own() -> None:
    names = names_of(["traffic_light", "zebra"])
    assert named_classes("traffic lights and a zebra", names) == ["traffic_light", "zebra"]


def test_no_name_belongs_to_two_classes() -> None:
    owners: dict[str, list[str]] = {}
    for name, listed in names_of(CLASSES).items():
        for word in {w.lower() for w in listed}:
            owners.setdefault(word, []).append(name)
    assert not {word: names for word, names in owners.items() if len(names) > 1}


def test_built_in_prompts() -> None:
    assert set(built_in()) == {*STEERING, "caption"}
    assert len({read_prompt(name).sha256 for name in built_in()}) == 4
    text = read_prompt("vqa").ask(["cat", "dog"])
    assert "A. cat\nB. dog" in text
    assert "{options}" not in text
    assert not read_prompt("caption").lettered


def test_bad_prompts(tmp_path) -> None:
    with pytest.raises(UserError, match="Did you mean 'vqa_shape'"):
        read_prompt("vqa_shap")
    with pytest.raises(UserError, match="does not exist"):
        read_prompt(str(tmp_path / "a.txt"))
    own = tmp_path / "own.txt"
    own.write_text("What is it?")
    with pytest.raises(UserError, match=r"does not contain \{options\}") as caught:
        read_prompt(str(own))
    assert "match=names" in caught.value.hint
    assert not read_prompt(str(own), captions=True).lettered
    own.write_text("What is it?\n{options}\n")
    assert read_prompt(str(own)).name == "own"
    own.write_text(" \n")
    with pytest.raises(UserError, match="is empty"):
        read_prompt(str(own))


def test_options_must_be_the_classes() -> None:
    with pytest.raises(UserError, match="'horse' is no class") as caught:
        ordered(["cat", "dog"], ["cat", "horse"])
    assert "class 'dog' is missing" in caught.value.message
    assert caught.value.hint.endswith("options=cat,dog")
    assert ordered(["cat", "dog"], ["dog", "cat"]) == ("dog", "cat")


def test_a_model_that_always_says_the_same_is_noticed() -> None:
    assert len(reading_notes(["letter"] * 40, ["cat"] * 40)) == 2
    assert "does the model see the pictures" in reading_notes(["letter"] * 40, ["cat"] * 40)[1]
    assert len(reading_notes(["letter"] * 40, ["cat"] * 39 + ["dog"])) == 1
    assert len(reading_notes(["letter"] * 4, ["cat"] * 4)) == 1
