from dataclasses import replace

from cuebench.stimuli.readers.cue_conflict import read
from cuebench.stimuli.verify import verify
from cuebench.types import Stimulus


def test_a_set_agrees_with_itself(conflict_folder):
    assert verify(read(conflict_folder), read(conflict_folder)) == []


def test_every_kind_of_problem_at_once(conflict_folder, picture):
    known = read(conflict_folder)
    (conflict_folder / "cat" / "cat1-dog2.png").unlink()
    picture(conflict_folder / "cat" / "cat9-dog9.png", (1, 2, 3))
    picture(conflict_folder / "dog" / "dog1-cat1.png", (1, 2, 3), (9, 9))
    (conflict_folder / "dog" / "dog2-dog1.png").write_bytes((conflict_folder / "cat" / "cat10-cat1.png").read_bytes())
    picture(conflict_folder / "dog" / "dog7-cat1.png", (4, 2, 3))
    text = "\n".join(verify(read(conflict_folder), known))
    for part in [
        "5 stimuli, expected 4",
        "missing: cat1-dog2",
        "not in the manifest: cat9-dog9",
        "9×9 pixels, expected 8×6",
    ]:
        assert part in text
    assert "dog1-cat1: sha256" in text
    assert "same bytes: cat10-cat1, dog2-dog1" in text


def test_what_the_manifest_leaves_open_is_not_compared(conflict_folder):
    stimuli = read(conflict_folder)
    open_manifest = replace(stimuli, stimuli=tuple(Stimulus(s.id) for s in stimuli))
    assert verify(stimuli, open_manifest) == []
    wrong = replace(stimuli, stimuli=tuple(replace(s, shape="bear") for s in stimuli))
    assert len(verify(stimuli, wrong)) == 4
