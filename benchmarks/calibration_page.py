"""Write the tables and figures of docs/calibration.md from the shipped calibration.

``python -m benchmarks.calibration_page``, after ``cuebench calibrate --out src/cuebench/calibration``. A test holds the
page to the shipped tables.
"""

from __future__ import annotations

import math
from pathlib import Path

from benchmarks._marks import filled
from cuebench.calibration.designs import DESIGNS
from cuebench.calibration.tables import read_coverage
from cuebench.calibration.trust import ALIKE, VARY, Trust, of_protocol, read_trust
from cuebench.reports.draw import draw
from cuebench.statistics.measured import LEAST, MOST

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "calibration.md"
FIGURES = {"calibration": {}, "calibration_coverage": {"show": "coverage"}}
"""Picture of the page → options of the figure."""


def number(value: float, sign: str = "") -> str:
    """Return three digits; a dash where there is no number."""
    return format(value, f"{sign}.3f") if math.isfinite(value) else "–"


def recovered() -> str:
    """Return the table of all numbers: what comes back, what is mixed in, how far it is off, what to beware of."""
    lines = [
        "| protocol | metric, condition | at .2 | at .5 | at .8 | 8 %/2 % | bias | sd | beware |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in DESIGNS:
        for place, t in enumerate(of_protocol(name)):
            values = [number(t.recovered.get(w, math.nan)) for w in (0.2, 0.5, 0.8)]
            metric = f"**{t.metric}**" if not place else t.metric
            cells = [
                f"`{name}`",
                f"{metric}, `{t.condition}`",
                *values,
                number(t.weak),
                number(t.bias, "+") if t.bias else "none",
                number(t.sd),
            ]
            lines.append(f"| {' | '.join(cells)} | {t.verdict} |")
    return "\n".join(lines)


def spaces() -> str:
    """Return how the number of a weak observer moves with the label space that it guesses in."""
    lines = ["| protocol | metric, condition | among 16 | among 1,000 |", "|---|---|---|---|"]
    for t in read_trust().values():
        few, many = (t.among.get(k, math.nan) for k in (16, 1000))
        if abs(few - many) >= 0.05:
            lines.append(f"| `{t.protocol}` | {t.metric}, `{t.condition}` | {number(few)} | {number(many)} |")
    return "\n".join(lines)


def coverage() -> str:
    """Return what the intervals of the headlines hold in every setting that was simulated."""
    headlines = {(t.protocol, t.condition, t.metric) for name in DESIGNS for t in of_protocol(name)[:1]}
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    widths: dict[tuple[str, str, str], float] = {}
    for c in read_coverage():
        if (c.protocol, c.condition, c.metric) in headlines:
            key = c.protocol, f"{c.metric}, `{c.condition}`", c.kind
            found.setdefault(key, {})[c.situation] = c.coverage
            if c.situation == VARY:
                widths[key] = c.mean_width
    settings = list(dict.fromkeys(s for by in found.values() for s in by))
    lines = [f"| protocol | headline | interval | width | {' | '.join(settings)} |", "|---" * (4 + len(settings)) + "|"]
    order = list(DESIGNS)
    for key in sorted(found, key=lambda k: (order.index(k[0]), k)):
        protocol, metric, kind = key
        held = [f"{found[key][s]:.1%}" if s in found[key] else "–" for s in settings]
        lines.append(f"| `{protocol}` | {metric} | {kind} | {number(widths.get(key, math.nan))} | {' | '.join(held)} |")
    return "\n".join(lines)


def bars() -> str:
    """Return how many numbers have an interval that holds what it claims."""
    known = [t for t in read_trust().values() if t.coverage]
    good = [t for t in known if _holds(t, VARY)]
    either = [t for t in good if _holds(t, ALIKE)]
    return (
        f"Of {len(known)} numbers, {len(good)} have an interval that holds the value for new sources in {LEAST:.0%} to "
        f"{MOST:.0%} of the studies in which sources vary, {len(either)} of them also where sources are alike."
    )


def _holds(t: Trust, setting: str) -> bool:
    held = t.coverage.get(t.best_kind, {}).get(setting, math.nan)
    return LEAST <= held <= MOST


def page(text: str) -> str:
    """Return the page with what stands between its marks made anew."""
    return filled(text, {"recovered": recovered(), "spaces": spaces(), "coverage": coverage(), "bars": bars()})


def write() -> None:
    """Write tables and figures."""
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    for name, options in FIGURES.items():
        draw("calibration", options=options).save(DOCS / "img" / f"{name}.svg", "page").data.unlink()


if __name__ == "__main__":
    write()
