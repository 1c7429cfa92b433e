"""How far judges agree about which cues to keep: Fleiss' κ of all, Cohen's κ of each pair, and where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from cuebench.errors import UserError
from cuebench.statistics.agreement import Kappa, cohen_kappa, counts_of, fleiss_kappa
from cuebench.stimuli.curation.verdict_log import KEEP, REJECT, Verdict

Verdicts = Mapping[str, Mapping[str, Verdict]]
"""Judge → cue → verdict."""


def agreement(verdicts: Verdicts) -> dict[str, Any]:
    """Summarise the verdicts of several judges.

    Parameters
    ----------
    verdicts : mapping of judge to verdicts
        From ``verdict_log.read_logs``.

    Returns
    -------
    dict
        ``judges`` (how many each has judged and kept), ``both`` (cues that two or more have judged), ``same`` (the
        share of those about which all agree), ``fleiss`` and ``pairs`` (κ with interval, or why there is none), and
        ``differ`` (cues about which they do not agree).
    """
    cues = sorted({cue for by_cue in verdicts.values() for cue in by_cue})
    ratings = {cue: [by_cue[cue].verdict for by_cue in verdicts.values() if cue in by_cue] for cue in cues}
    several = {cue: given for cue, given in ratings.items() if len(given) > 1}
    differ = [cue for cue, given in several.items() if len(set(given)) > 1]
    pairs = []
    for a, b in combinations(verdicts, 2):
        shared = [cue for cue in cues if cue in verdicts[a] and cue in verdicts[b]]
        first, second = ([verdicts[judge][cue].verdict for cue in shared] for judge in (a, b))
        pairs.append({"judges": [a, b], "n": len(shared), **_kappa(lambda f=first, s=second: cohen_kappa(f, s))})
    return {
        "judges": {
            judge: {"judged": len(by_cue), "kept": sum(v.verdict == KEEP for v in by_cue.values())}
            for judge, by_cue in verdicts.items()
        },
        "both": len(several),
        "same": 1 - len(differ) / len(several) if several else None,
        "fleiss": _kappa(lambda: fleiss_kappa(counts_of(list(several.values()), (KEEP, REJECT)))),
        "pairs": pairs,
        "differ": differ,
    }


def _kappa(compute: Any) -> dict[str, Any]:
    try:
        kappa: Kappa = compute()
    except UserError as error:
        return {"value": None, "low": None, "high": None, "note": f"{error.message}: {error.hint}"}
    return {"value": kappa.value, "low": kappa.low, "high": kappa.high, "note": kappa.note}
