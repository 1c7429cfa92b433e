"""From qualities on originals, shape cues and texture cues to rows. Private to the cue-decomposition protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cuebench.metrics.cue_decomposition import Population
from cuebench.metrics.quality import Quality
from cuebench.metrics.robustness_cd import robustness_cd
from cuebench.metrics.shape_bias_cd import shape_bias_cd
from cuebench.protocols.base import Protocol, ScoreOptions, partial_notes
from cuebench.protocols.cue_decomposition.populations import BOTH, check_name, populations
from cuebench.responses.table import Responses
from cuebench.stimuli.decomposition.cue_list import ORIGINAL, SHAPE, keeps
from cuebench.types import Score

if TYPE_CHECKING:
    import pyarrow as pa

OPTIONS = {"population": BOTH, "leave_out": ""}
"""What ``--set cue_decomposition.NAME=VALUE`` can change: the population H, and models that are no members of it."""


def checked(protocol: Protocol, settings: Mapping[str, str]) -> Protocol:
    """Return the protocol; a population that does not exist fails here, before anything is spent."""
    check_name(ScoreOptions(settings=settings).of(protocol.name, **OPTIONS)["population"])
    return protocol


@dataclass(frozen=True)
class Measured:
    """One observer: its qualities by condition, and what must stand beside them."""

    responses: Responses
    qualities: Mapping[str, Quality]
    measure: str

    @property
    def name(self) -> str:
        """Public name."""
        return self.responses.observer

    def note(self, *more: str) -> str:
        """Return the measure, what is partial or excluded, and further notes."""
        stimuli = self.responses.stimuli
        unreadable = f"{len(self.responses.excluded):,} unreadable" if self.responses.excluded else ""
        partial = "".join(partial_notes(stimuli.partial))
        found = (self.measure, *more, unreadable, partial, *stimuli.notes, *self.responses.notes)
        return "; ".join(n for n in found if n)


@dataclass(frozen=True)
class Decomposition:
    """All observers of a run on one decomposed data set."""

    protocol: str
    version: int
    dataset: str
    observers: Sequence[Measured]
    options: ScoreOptions

    def rows(self) -> list[Score]:
        """Return for each observer Q_O, Q_S, Q_T, S_cd and R_cd, for each texture cue and each population."""
        return [row for one in self.observers for row in self._rows(one)]

    @property
    def textures(self) -> list[str]:
        """Texture cues that were shown, in the order in which they occur."""
        found = (c for one in self.observers for c in one.qualities if keeps(c) == "texture" and "/" not in c)
        return list(dict.fromkeys(found))

    def populations(self, texture: str) -> list[Population]:
        """Return the populations of one pair of cues, as the options want them."""
        given = self.options.of(self.protocol, **OPTIONS)
        models = [one for one in self.observers if one.responses.kind == "model"] or list(self.observers)
        run = {one.name: one.qualities for one in models}
        left = [name.strip() for name in given["leave_out"].split(",") if name.strip()]
        return populations(given["population"], self.dataset, SHAPE, texture, run, left)

    def _rows(self, one: Measured) -> list[Score]:
        own = one.qualities
        rows = [self._row(one, ORIGINAL, "quality_original", own[ORIGINAL])] if ORIGINAL in own else []
        rows += [self._row(one, SHAPE, "quality_shape", own[SHAPE])] if SHAPE in own else []
        rows += [self._row(one, t, "quality_texture", own[t]) for t in self.textures if t in own]
        if SHAPE not in own:
            return rows
        for texture in (t for t in self.textures if t in own):
            rows += self._pair(one, texture)
        return rows

    def _pair(self, one: Measured, texture: str) -> list[Score]:
        shape, other, original = one.qualities[SHAPE], one.qualities[texture], one.qualities.get(ORIGINAL)
        rows, pair = [], f"{SHAPE}+{texture}"
        n = shape.n + other.n
        for h in self.populations(texture):
            s, t = h.draws(len(shape.draws))
            value = shape_bias_cd(shape.value, other.value, h.s, h.t)
            draws = shape_bias_cd(shape.draws, other.draws, s, t)
            found = Quality(value, draws, n)
            rows.append(self._row(one, f"{pair} H={h.name}", "shape_bias_cd", found, h.described()))
        if original is not None:
            value = robustness_cd(shape.value, other.value, original.value)
            draws = robustness_cd(shape.draws, other.draws, original.draws)
            rows.append(self._row(one, pair, "robustness_cd", Quality(value, draws, n + original.n)))
        return rows

    def _row(self, one: Measured, condition: str, metric: str, found: Quality, *notes: str) -> Score:
        boot = found.interval()
        asked = {"quality_original": {ORIGINAL}, "quality_shape": {SHAPE}}.get(
            metric, set(condition.split()[0].split("+"))
        )
        if metric == "robustness_cd":
            asked = asked | {ORIGINAL}
        total = sum(s.condition in asked for s in one.responses.stimuli)
        return Score(
            self.protocol,
            self.version,
            one.name,
            condition,
            metric,
            found.value,
            boot.interval.low,
            boot.interval.high,
            boot.interval.kind,
            found.n,
            total - found.n,
            one.note(*notes, boot.note),
        )

    def population_table(self) -> pa.Table:
        """Return every H with its members, s and t: S_cd means nothing without them."""
        import pyarrow as pa

        rows = [
            {"population": p.name, "source": p.source, "cues": f"{SHAPE}+{texture}", "model": m,
             "quality_shape": p.shape[m].value, "quality_texture": p.texture[m].value, "s": p.s, "t": p.t}
            for texture in self.textures
            for p in self.populations(texture)
            for m in p.shape
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, schema=_schema())


def _schema() -> pa.Schema:
    import pyarrow as pa

    words, numbers = ("population", "source", "cues", "model"), ("quality_shape", "quality_texture", "s", "t")
    return pa.schema([*((w, pa.string()) for w in words), *((n, pa.float64()) for n in numbers)])
