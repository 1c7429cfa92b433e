"""Scores of a run in the layout of the REFINED-BIAS repository: ``results/<across>/refined_bias_<cue>_mrr.json``.

Each file maps a model to its score and the scores of its classes: ``{model: {"score": …, "class_match": {class: …}}}``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cuebench.errors import UserError
from cuebench.files import make_folder, write_atomic
from cuebench.observers.adapters.suite import members
from cuebench.runs.results import read_scores
from cuebench.types import Score

ACROSS = {
    "refined_bias/strategies": "across_learning_strategy",
    "refined_bias/architectures": "across_model_architecture",
}
VIEW = "faithful"


def export_readme_layout(run: str | Path, out: str | Path) -> list[Path]:
    """Write the per-class JSON of a run below ``out/results``; return the files.

    Models of the paper's list of learning strategies go to ``across_learning_strategy``, all others to
    ``across_model_architecture``.
    """
    folder = Path(run).expanduser()
    scores = [s for s in read_scores(folder) if s.protocol == "refined_bias" and s.condition.startswith(VIEW)]
    if not scores:
        raise UserError(f"{folder} has no scores of refined_bias, view {VIEW}", "cuebench run -p refined_bias …")
    written = []
    for across in ACROSS.values():
        for cue in ("shape", "texture"):
            table = _table([s for s in scores if s.metric == f"{cue}_sensitivity" and _across(s.observer) == across])
            if table:
                path = make_folder(Path(out).expanduser() / "results" / across) / f"refined_bias_{cue}_mrr.json"
                write_atomic(path, (json.dumps(table, indent=4, ensure_ascii=False) + "\n").encode())
                written.append(path)
    return written


def _table(scores: Sequence[Score]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for s in scores:
        row = table.setdefault(s.observer, {"score": None, "class_match": {}})
        _, _, name = s.condition.partition("/class=")
        if name:
            row["class_match"][name] = s.value
        elif s.condition == VIEW:
            row["score"] = s.value
    return {observer: row for observer, row in table.items() if row["score"] is not None}


def _across(observer: str) -> str:
    strategies = {m.model for m in members("refined_bias/strategies")}
    return ACROSS["refined_bias/strategies" if observer in strategies else "refined_bias/architectures"]
