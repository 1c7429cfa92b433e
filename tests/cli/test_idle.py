"""An option that would do nothing is refused, and the message says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuebench.cli import invoke


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        ("correlate run --out c.csv", "--out would do nothing without --corrected", "add --corrected"),
        ("correlate run -p cue_conflict --same a=b", "--protocol, --same would do nothing", "add --corrected"),
        ("correlate run --corrected --method pearson", "--method would do nothing with --corrected", "leave"),
        ("report run --title Mine --no-figures", "--title, --figures would do nothing in a table", "--out report.html"),
        ("cue --sheet out.png in.png --set grid=4", "--set would do nothing with --sheet", "leave it out"),
        ("published export run --out out --paper x", "--paper would do nothing with a run", "leave it out"),
        ("run -o ideal:shape -p cue_conflict --out o --price 2", "--price would do nothing without --plan", "--plan"),
    ],
)
def test_idle_options_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    call: str,
    message: str,
    hint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(call.split()) == 2
    told = capsys.readouterr().err
    assert message in told
    assert hint in told
    assert not [*tmp_path.iterdir()]
