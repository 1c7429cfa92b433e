"""What a stimulus set holds, counted: for a look at one's data before a model is shown it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from cuebench.types import REMOVED, Stimulus, StimulusSet

NEARLY_ALL = 0.9


def overview(stimuli: StimulusSet) -> tuple[str, list[dict[str, Any]]]:
    """Return what is wrong or incomplete in words, and a row of counts for each condition of the set.

    ``sources`` are the shapes and textures that the pictures were made of: stimuli that share one are not independent,
    so that few of them make wide intervals, however many pictures there are.
    """
    groups: dict[str, list[Stimulus]] = defaultdict(list)
    for stimulus in stimuli:
        groups[stimulus.condition].append(stimulus)
    rows = [_counts(condition, members) for condition, members in groups.items()]
    lines = [f"{stimuli.name}: {_number(len(stimuli), 'stimulus', 'stimuli')} in {stimuli.root or 'no folder: drawn'}"]
    lines += [f"! partial set: {reason}" for reason in stimuli.partial]
    lines += [f"! {line}" for line in (*problems_of(list(stimuli)), *odd_sizes(list(stimuli)))]
    lines += [*stimuli.notes]
    if len(lines) == 1:
        lines.append("complete; the header of every picture can be read, and no two are the same")
    return "\n".join(lines), rows


def _counts(condition: str, members: Sequence[Stimulus]) -> dict[str, Any]:
    sizes = Counter(f"{s.width}×{s.height}" for s in members if s.width)
    counts: dict[str, Any] = {"condition": condition or "all", "stimuli": len(members)}
    for name in ("label", "shape", "texture"):
        if values := {value for s in members if (value := getattr(s, name)) and value != REMOVED}:
            counts["classes" if name == "label" else f"{name} classes"] = len(values)
    for name in ("shape_source", "texture_source"):
        if sources := {value for s in members if (value := getattr(s, name))}:
            counts[f"{name.partition('_')[0]} sources"] = len(sources)
    if any(s.shape and s.texture and s.texture != REMOVED for s in members):
        counts["in conflict"] = sum(s.shape != s.texture for s in members)
    more = f" and {len(sizes) - 1} more" if len(sizes) > 1 else ""
    counts["pixels"] = sizes.most_common(1)[0][0] + more if sizes else "–"
    return counts


def problems_of(stimuli: Sequence[Stimulus]) -> list[str]:
    """Say which files cannot be read and which are the same, from their headers and hashes."""
    files = [s for s in stimuli if s.path]
    problems = []
    if unreadable := [s.path for s in files if not s.width]:
        problems.append(f"{_number(len(unreadable), 'file')} cannot be read: {_listed(unreadable)}")
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for s in files:
        if s.sha256:
            alike[s.sha256, s.recipe, str(s.seed), s.condition].append(s.path)
    if repeated := [paths for paths in alike.values() if len(set(paths)) > 1]:
        shown = _listed([" = ".join(paths[:3]) for paths in repeated])
        problems.append(f"{_number(len(repeated), 'group')} of files with the same bytes: {shown}")
    return problems


def odd_sizes(stimuli: Sequence[Stimulus]) -> list[str]:
    """Name every file that has not the size of the others, where more than half of all files have one size."""
    sizes, usual = _sizes(stimuli)
    odd: dict[str, list[str]] = defaultdict(list)
    for path, size in sorted(sizes.items()):
        if usual and size != usual:
            odd[size].append(path)
    if not odd:
        return []
    of = f"of {len(sizes):,} are not {usual} pixels as the others"
    named = "; ".join(f"{size}: {', '.join(paths)}" for size, paths in sorted(odd.items()))
    return [f"{_number(sum(map(len, odd.values())), 'file')} {of}: {named}"]


def size_notice(stimuli: StimulusSet, protocol: str) -> str:
    """Return a line for a run where nine in ten files, but not all, have one size; empty where there is nothing odd."""
    sizes, usual = _sizes(stimuli.stimuli, NEARLY_ALL)
    count = sum(size != usual for size in sizes.values()) if usual else 0
    of = f"{_number(count, 'file')} of {len(sizes):,}" if count else ""
    return of and f"{protocol}: {of} have another size than {usual}; which: cuebench data check {protocol}"


def _sizes(stimuli: Sequence[Stimulus], share: float = 0.5) -> tuple[dict[str, str], str]:
    """Return the size of each file, and that of more than such a share of them; empty where there is none."""
    sizes = {s.path: f"{s.width}×{s.height}" for s in stimuli if s.path and s.width}
    usual, count = Counter(sizes.values()).most_common(1)[0] if sizes else ("", 0)
    return sizes, usual if count > share * len(sizes) else ""


def _number(count: int, singular: str, many: str = "") -> str:
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" … and {len(names) - 3} more" if len(names) > 3 else "")
