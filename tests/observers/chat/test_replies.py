"""Replies as chat models write them: the option that a person would read in each, or none."""

from __future__ import annotations

import time

import pytest

from cuebench.labels import label_map
from cuebench.observers.chat.answers import VERSION, read_answer

CLASSES = label_map("in16").names
ECHO = "\n".join(f"{letter}. {name}" for letter, name in zip("ABCDEFGHIJKLMNOP", CLASSES))
CAT = [
    *("H", "h", " H \n", "(H)", "[H]", "{H}", "H)", "H:", "H."),
    *('"H"', "**H**", "__H__", "`H`", "- H", "> H", "H!", "H ✅"),
    *("H. cat", "H cat", "H: cat", "H - cat", "H, cat", "H, a cat", "H (cat)", "(H) cat", "**H. cat**", "**H**: cat"),
    *("cat", "Cat.", "a cat", "A cat", "cat (H)", "Cat - H", "cat, H", "This is a cat (option H).", "It is a cat."),
    *("Answer: cat (H)", "The answer is cat (H)", "Answer: H (cat)"),
    *("Answer: **H. cat**", "Option (H)", "Option H: cat"),
    *("H\nReason", "H\nH\nH", "cat\n\nreason", "H. cat\nIt has ears.", "H\n\nIt is not an elephant."),
    "H\n\nThe image shows a cat with the texture of an elephant.",
    *("<answer>H</answer>", "<answer>\ncat\n</answer>", "<answer>H", r"$\boxed{\text{H}}$", r"\boxed{H. cat}"),
    *(r"The final answer is $\boxed{H}$.", "<|begin_of_box|>H<|end_of_box|>", "H</s>", "H<|im_end|>"),
    *("I choose H", "I pick H.", "I'd say H", "I'll go with H.", "I would choose option H.", "My best guess is H."),
    *("H is the correct answer", "Option H is correct", "H is the answer.", "B is wrong, H is right"),
    *("The answer is most likely H", "The answer should be H", "The image shows option H, a cat.", "The letter is H."),
    *("The correct answer is the letter H", "The correct option is H. cat", "The answer is H because it has ears"),
    *('{"answer": "H"}', '{"answer": "H", "confidence": 0.9}', '```json\n{"answer": "cat"}\n```', "### Answer\nH"),
    *("正解はHです", "答えはHです。", "정답은 H입니다.", "答案是H", "Die Antwort ist H.", "Answer：H"),
    *("Sure! H", "Sure! The answer is H.", "I'm sorry for the delay. The answer is H.", "H. It has whiskers."),
    # Thought aloud.
    *("<think>B?</think>H", "The answer is B.\n</think>\n\nH", "The answer is B.</thinking>\nH", "<THINK>B</THINK>H"),
    *("◁think▷The answer is B.◁/think▷H", "a</think>The answer is B.</think>H", "B.◁/think▷\n\nThe answer is H."),
    # Several options are named, and one of them is the answer.
    *(f"{ECHO}\n\nH", f"{ECHO}\nH", f"Options:\n{ECHO}\n\nThe answer is H", "A. airplane\nB. bear\nC. bicycle\n\nH"),
    *("A) airplane\nB) bear\n\nAnswer: H", "I thought about L. elephant and B. bear.\n\nFinal answer: H"),
    *("H. cat or L. elephant? The final answer is H.", "B. or H.: \\boxed{H}"),
    "The answer is L. Wait, actually the answer is H.",
    *("I don't think it's B; the answer is H.", "H. cat (not L. elephant)"),
    *("The answer could be B.\nFinal answer: H", "The answer is H rather than B", "The answer is H, not L."),
]  # fmt: skip
UNDECIDED = [
    # Several options.
    *("H. cat or L. elephant", "H) cat or L) elephant", "(H) and (L)"),
    *("H.\nL.", "H\nL", "H\n\nL", "H or L", "H/L", "H L"),
    "**H. cat** (shape) and **L. elephant** (texture)",
    *("The answer is B (bear) or H (cat)", "B) is not correct; H) is"),
    *("D. bird. Wait, actually H. cat", "H. cat\n\nL. elephant", "Shape: H\nTexture: L", "H. cat, B. bear", "D. E. F."),
    *("A. airplane: no\nB. bear: no\nH. cat: yes", ECHO, "A. airplane\nB. bear\nC. bicycle", "cat\nelephant", "H, L"),
    *("The answer is H. The answer is L.", "The answer is H, or maybe L", "Answer: H, L", "The answer is H (or L)"),
    *("By shape the answer is H, by texture the answer is L.", "The texture answer is B; the shape answer is H"),
    *(r"\boxed{H} or \boxed{L}", r"\boxed{H or L}", "<answer>H</answer><answer>L</answer>", '{"answer": "H or L"}'),
    *("cat (H) or elephant (L)", "A dog or a cat", "A cat on a chair", "Option A is a cat, option B is a dog."),
    *("The answer is H. L. also fits", "H is correct, (L) too"),
    "The answer is H. However, by texture it would be (L).",
    *("It could be option H.", "The answer is H vs L", "The answer is H - or L", "The answer is H; L also fits"),
    *("The answer is H but it could be L", "cat\n\nActually no, it is a dog.", "H\n\nWait, L."),
    "H. This is not a cat.",
    # A letter and another's name, and an option that is talked about.
    *("H. dog", "H (dog)", "dog (H)", "A: H", "Answer: D. cat", "H. dog\nIt has fur.", "H) is wrong", "H. is tempting"),
    *("H: no", "H is not the correct answer", "H is correct if you go by shape", "H?", "Is the answer H?", "Maybe H"),
    # Denials, hedges, refusals.
    *("not H", "Not H.", "neither", "Neither H nor L"),
    *("The answer is not H", "The answer isn't H.", "none", "❌ H", "H ❌"),
    *("The answer cannot be H.", "The answer is definitely not H", "I would not choose H", "I cannot choose option H"),
    *("It is unclear whether the answer is H", "I am not sure the answer is H"),
    *("The answer might be H", "It is no cat"),
    *(r"The answer is not $\boxed{H}$", "I choose neither H nor L", "Not the answer: H", "It is not:\n\nH"),
    *("H: I cannot tell", "I'm sorry, I can't help with that."),
    *("I cannot determine the answer.", "As an AI, I can't see."),
    # Words that are letters, and names in sentences.
    *("I see something", "I'm not sure.", "A blurry picture"),
    *("Answer: A combination of both", "A.I. cannot see", "E.g. cat"),
    *("I think a cat", "n/a", "L-shaped", "B-52 bomber", "P.S. it's a cat", "A cat with elephant skin", "vitamin C"),
    *("The answer is catlike", "The image shows a cat with elephant skin.", "La réponse est l'avion", "8", "Z. zebra"),
    *("", "<think>H", "H</think>", "<answer></answer>", r"\boxed{}", "🐱", "HL", "N.A.", "What is the answer: A or H?"),
]  # fmt: skip


@pytest.mark.parametrize("text", CAT)
def test_a_person_would_read_a_cat(text: str) -> None:
    assert read_answer(text, CLASSES).decision == "cat"


@pytest.mark.parametrize("text", UNDECIDED)
def test_a_person_would_hesitate(text: str) -> None:
    assert read_answer(text, CLASSES).decision == "undecided"


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("C, bicycle", "bicycle"),
        ("C, the bicycle", "bicycle"),
        ("A", "airplane"),
        ("a", "airplane"),
        ("A cat", "cat"),
        ("A is correct", "airplane"),
        ("Option A is correct", "airplane"),
        ("I", "chair"),
        ("I. chair", "chair"),
        ("Answer: I", "chair"),
        ("I choose I.", "chair"),
        ("The answer is a", "airplane"),
        ("The answer is a bear", "bear"),
        ("B.", "bear"),
    ],
)
def test_letters_that_are_words(text: str, decision: str) -> None:
    assert read_answer(text, CLASSES).decision == decision


def test_a_list_in_one_line_is_its_first_and_said_to_be() -> None:
    """As the authors of the published recordings read it; in several lines it is an echo, and undecided."""
    assert read_answer(ECHO.replace("\n", " "), CLASSES) == ("airplane", "first of a list")
    assert read_answer(ECHO, CLASSES) == ("undecided", "several")


def test_the_options_may_be_few_many_or_strange() -> None:
    assert read_answer("B", ["only"]).decision == "undecided"
    assert read_answer("A. hot-dog", ["hot dog", "ice_cream"]).decision == "hot dog"
    assert read_answer("B (ice cream)", ["hot dog", "ice_cream"]).decision == "ice_cream"
    many = [f"thing {i}" for i in range(300)]
    assert read_answer("The answer is 300.", many).decision == "thing 299"
    assert read_answer("301", many).decision == "undecided"
    assert read_answer("0", many).decision == "undecided"
    assert read_answer("12) or 14)", many).decision == "undecided"
    assert read_answer("A", []).decision == "undecided"


@pytest.mark.parametrize(
    "unit", ["\n", "H\n", "(", "A. ", "not A. ", "answer\n", "answer: H ", "<answer>", r"\boxed{", "</think>", "cat "]
)
def test_time_grows_with_the_length(unit: str) -> None:
    """No form may look at the same signs again and again: a reply of eight times the length takes about eight times."""

    def seconds(size: int) -> float:
        start = time.process_time()
        read_answer(unit * (size // len(unit)), CLASSES)
        return time.process_time() - start

    read_answer(unit, CLASSES)
    assert seconds(1 << 18) < 30 * (min(seconds(1 << 15) for _ in range(3)) + 0.003)


def test_readings_of_other_versions_are_not_mixed() -> None:
    assert VERSION == 3  # rises with every change of the lists above
