"""Shape bias while a network learns: a callback for plain PyTorch loops and for Lightning.

>>> watch = BiasOverTraining(preprocess=Preprocess(), labels=10, every=5)  # doctest: +SKIP
>>> for epoch in range(90):                                                # doctest: +SKIP
...     train(model)
...     logger.log(watch(epoch, model))    # {} in epochs that are not measured
>>> watch.figure().save("bias.svg")                                        # doctest: +SKIP

With Lightning: ``Trainer(callbacks=[watch.lightning()])``. The pictures are a fixed set, decoded or drawn once; one
measurement is one forward pass over them, checked, reduced and scored as in a run. The network's mode, device and
weights and the state of the random numbers are left as they were.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.arrays import Pixels
from cuebench.errors import UserError
from cuebench.files import write_json
from cuebench.labels import Labels, LabelSpace, are_probabilities, label_space, logits_of
from cuebench.labels.checks import refuse_shares
from cuebench.observers.arguments import as_preprocess
from cuebench.observers.base import ObserverBase, complete
from cuebench.observers.preprocess import Geometry, Preprocess
from cuebench.observers.wrap import wrap
from cuebench.options import SEED, Option, check_types, parse
from cuebench.protocols.base import Protocol, ScoreOptions, score_rows
from cuebench.protocols.captions import caption
from cuebench.protocols.headline import chosen_condition, headline_column, measured, one_row_each
from cuebench.registry import protocols as registered
from cuebench.responses.job import Pieces, Question
from cuebench.responses.pictures import BatchPictures, DecodePool
from cuebench.responses.store import batches
from cuebench.responses.table import Responses
from cuebench.runs.experiments import Experiment, read_experiments
from cuebench.runs.plan import check_labels, questions
from cuebench.types import Score, Stimulus

UNALIGNED = "experiment3/size=0.6/unaligned"
"""Beside the condition of the headline in the small set of triplets: 8 shapes × 8 textures each, 128 pictures."""
FINE = ("class=", "texture=", "similarity=", "layer=", "size=1.0/unaligned")
"""Parts of conditions that are too fine to be watched over epochs; an object of full size has one place only."""


NUMBERS = {
    "every": Option(1, "epochs", low=1),
    "limit": Option(0, "0: all", low=0),
    "seed": SEED,
    "resamples": Option(500, low=1),
    "batch_size": Option(64, low=1),
}


@dataclass(frozen=True)
class _Arguments:
    """Types of what the callback is given."""

    every: int
    limit: int
    seed: int
    resamples: int
    batch_size: int
    features: str | None
    task: str
    prefix: str


class ShownBatch(NamedTuple):
    """A batch of stimuli as the network gets them: what cannot be shown, and the images of each geometry."""

    start: int
    stimuli: Sequence[Stimulus]
    errors: Mapping[int, str]
    images: Mapping[Geometry, Pixels]


class BiasOverTraining:
    """Measure fast protocols every ``every`` epochs and keep the numbers.

    Parameters
    ----------
    preprocess : Preprocess, transform of torchvision, or callable
        How the network wants its images; see ``cuebench.wrap``.
    labels : int, str, sequence of str, map, LabelSpace or None
        Number of classes of the head (enough for features), or what the logits stand for (for protocols that score
        answers); None: the network has no head, its output is the embedding.
    every : int
        Measure in epochs 0, every, 2·every, …
    protocols : str, Protocol, or several
        Names, ``python:FILE.py:NAME``, or protocol objects. ``triplets`` uses a small set of novel objects unless
        ``settings`` say otherwise; its headline is in the condition that it has in a run of all novel objects.
    settings : mapping, optional
        Options of the protocols, ``{"triplets.experiments": "3"}``: then the whole set is shown.
    data_root, limit
        For protocols that need data: where it is, and approximately how many stimuli to draw (0: all).
    features : str, optional
        Layer to compare; default: what the classifier reads.
    task : str
        ``classification``, or ``segmentation`` for a network that returns logits N×classes×h×w.
    network : callable, optional
        How to get the network out of what the callback is given, for a LightningModule that holds it as an attribute.
    log : callable, optional
        ``log(values, epoch)``, called after each measurement.
    prefix : str
        Before the name of each number.
    seed, resamples, batch_size : int
        Of the draws and intervals; pictures in a forward pass.

    Attributes
    ----------
    history : list of dict
        ``{"epoch": 5, "values": {name: number}, "low": {...}, "high": {...}, "headline": {protocol: name}, "about":
        ...}``, one for each measurement. A name is ``metric/condition``, with the protocol before it where there are
        several; ``about`` is what the headlines rest on.
    """

    def __init__(
        self,
        *,
        preprocess: Preprocess | Callable[[Any], Any],
        labels: int | Labels | None = None,
        every: int = 1,
        protocols: str | Protocol | Sequence[str | Protocol] = ("triplets",),
        settings: Mapping[str, Any] | None = None,
        data_root: str | Path | None = None,
        limit: int = 0,
        features: str | None = None,
        task: str = "classification",
        network: Callable[[Any], Any] | None = None,
        log: Callable[[dict[str, float], int], Any] | None = None,
        prefix: str = "",
        seed: int = 0,
        resamples: int = 500,
        batch_size: int = 64,
    ) -> None:
        numbers = {"every": every, "limit": limit, "seed": seed, "resamples": resamples, "batch_size": batch_size}
        check_types({**numbers, "features": features, "task": task, "prefix": prefix}, _Arguments, "BiasOverTraining")
        parse(NUMBERS, numbers, "BiasOverTraining")
        preprocess = as_preprocess(preprocess)
        if not all(function is None or callable(function) for function in (network, log)):
            raise UserError(f"network={network!r:.60}, log={log!r:.60}", "each is a function, or left out")
        several = [protocols] if isinstance(protocols, (str, Protocol)) else protocols
        names = list(dict.fromkeys(registered.resolve(protocol) for protocol in several))
        self.every, self.log, self.network, self.prefix = every, log, network, prefix
        self.preprocess, self.labels = preprocess, _label_space(labels)
        self.features, self.task = features, task
        self.seed, self.resamples, self.batch_size = seed, resamples, batch_size
        self.history: list[dict[str, Any]] = []
        self._shown = [
            (experiment, self._decode(experiment))
            for experiment in _experiments(names, data_root, limit, seed, settings or {})
        ]

    def __call__(self, epoch: int, model: Any) -> dict[str, float]:
        """Measure in the epochs that are due and return the numbers; ``{}`` in the others."""
        if epoch % self.every:
            return {}
        rows = self.measure(model)
        several = len(self._shown) > 1
        names = [f"{self.prefix}{f'{r.protocol}/' if several else ''}{r.metric}/{r.condition}" for r in rows]
        record: dict[str, Any] = {"epoch": epoch}
        for field, attribute in (("values", "value"), ("low", "ci_low"), ("high", "ci_high")):
            record[field] = {name: float(getattr(r, attribute)) for name, r in zip(names, rows)}
        headlines = {row.protocol: name for name, row in zip(reversed(names), reversed(rows))}  # the first of each
        record["headline"] = {protocol: headlines[protocol] for protocol in dict.fromkeys(r.protocol for r in rows)}
        record["about"] = caption((r for r, name in zip(rows, names) if name in headlines.values()), short=True)
        self.history.append(record)
        values: dict[str, float] = record["values"]
        if self.log:
            self.log(values, epoch)
        return values

    def measure(self, model: Any) -> list[Score]:
        """Return the scores of the network as it is now; its mode, weights and random state are left as they were.

        The headline of a protocol comes first, then its other numbers in coarse conditions; each has its widest
        interval.
        """
        network = self.network(model) if self.network else model
        modes = {part: part.training for part in network.modules()}
        device = next((str(p.device) for p in network.parameters()), "cpu")
        try:
            observer = complete(
                wrap(network, name="model", preprocess=self.preprocess, labels=self.labels, device=device,
                     features=self.features, task=self.task)
            )  # fmt: skip
            return [row for experiment, shown in self._shown for row in self._score(experiment, shown, observer)]
        finally:
            for part, training in modes.items():
                part.training = training

    def _decode(self, experiment: Experiment) -> list[ShownBatch]:
        """Decode or draw every picture once, for all views of the protocol."""
        stimuli = experiment.stimuli
        if stimuli is None:
            raise experiment.problem or UserError(f"protocol {experiment.protocol.name!r} has no stimuli")
        if self.labels is not None:
            check_labels(experiment.protocol, "the network", self.labels, stimuli)
        prepared = [view.prepared(self.preprocess) for view in experiment.protocol.views]
        # The network is not here yet: where it may accept its own size only, both ways of showing are decoded.
        resized = zip(experiment.protocol.views, list(prepared))
        prepared += [v.fixed(self.preprocess) for v, p in resized if v.fixed and p.hw != self.preprocess.hw]
        geometries = list(dict.fromkeys(p.geometry for p in prepared))
        shown = []
        with DecodePool(0) as pool:
            for start, batch in batches(stimuli.stimuli, self.batch_size):
                pictures = BatchPictures.request(pool, stimuli.root, batch, geometries)
                errors = pictures.unreadable()
                images = {geometry: pictures.of(geometry) for geometry in geometries}
                shown.append(ShownBatch(start, batch, errors, images))
        return shown

    def _score(self, experiment: Experiment, shown: Sequence[ShownBatch], observer: ObserverBase) -> list[Score]:
        """Ask and score as in a run; the answers are kept in memory only."""
        protocol, stimuli = experiment.protocol, experiment.stimuli
        assert stimuli is not None
        asked = questions(protocol, observer, stimuli)
        responses = [_answers(question, shown, self.batch_size) for question in asked]
        options = ScoreOptions(self.seed, self.resamples, experiment.values)
        rows = measured(score_rows(protocol, protocol.score(responses, options)))
        column = headline_column(rows, protocol.name, protocol.headline)
        first = list(column.rows.values()) if column else []
        coarse = [r for r in rows if not any(part in r.condition for part in FINE)]
        # By value they may be NaN, which equals nothing: compare what they are the number of.
        return list({(r.metric, r.condition): r for r in [*first, *one_row_each(coarse)]}.values())

    def figure(self) -> Any:
        """Return the figure of the numbers so far; ``.save("bias.svg")`` writes it, as do .pdf, .png and .html."""
        from cuebench.registry import figures

        return figures.get("bias_over_training")(self.history)

    def save(self, path: str | Path) -> Path:
        """Write the numbers as JSON, for ``figures.bias_over_training`` and for resuming."""
        target = Path(path).expanduser()
        write_json(target, self.history)
        return target

    def lightning(self) -> Any:
        """Return a Lightning callback that measures at the end of a training epoch and logs the numbers.

        The base class is taken from the Lightning that the program has already imported; cuebench imports none.
        """
        base = next(
            (sys.modules[n].Callback for n in _LIGHTNING if hasattr(sys.modules.get(n), "Callback")),
            None,
        )
        if base is None:
            raise UserError("Lightning is not imported", "import lightning (or pytorch_lightning) before this call")
        watch = self

        class CuebenchCallback(base):  # type: ignore[misc, valid-type]
            """Measures shape bias at the end of training epochs."""

            def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
                if not getattr(trainer, "is_global_zero", True):
                    return
                values = watch(trainer.current_epoch, pl_module)
                if values:
                    pl_module.log_dict(values, rank_zero_only=True)

            def state_dict(self) -> dict[str, Any]:
                return {"history": watch.history}

            def load_state_dict(self, state_dict: dict[str, Any]) -> None:
                watch.history[:] = state_dict["history"]

        return CuebenchCallback()


_LIGHTNING = ("lightning.pytorch.callbacks", "pytorch_lightning.callbacks", "lightning.pytorch", "pytorch_lightning")


def _label_space(labels: int | Labels | None) -> LabelSpace | None:
    if isinstance(labels, int):
        return LabelSpace("classes of the head", tuple(f"class {i}" for i in range(labels)))
    return None if labels is None else label_space(labels)


def _experiments(
    names: Sequence[str], data_root: str | Path | None, limit: int, seed: int, settings: Mapping[str, Any]
) -> list[Experiment]:
    """Configure the protocols and read their stimuli; triplets without settings show a small set of novel objects."""
    if "triplets" not in names or settings:
        return read_experiments(names, data_root, limit=limit, seed=seed, settings=settings)
    from cuebench.protocols.triplets.stimuli import EXPERIMENTS, novel_objects
    from cuebench.stimuli.sources import novel_object

    triplets: Protocol = registered.get("triplets")
    values = {name: option.default for name, option in triplets.options.items()}
    headline = chosen_condition(triplets.headline, EXPERIMENTS["3"])
    assert headline is not None
    stimuli = novel_objects(novel_object.SHAPES[::2], novel_object.TEXTURES[::2], conditions=(headline, UNALIGNED))
    small = Experiment(triplets, values, limit, seed, stimuli)
    others = [name for name in names if name != "triplets"]
    read = read_experiments(others, data_root, limit=limit, seed=seed) if others else []
    return sorted([small, *read], key=lambda experiment: names.index(experiment.protocol.name))


def _answers(question: Question, shown: Sequence[ShownBatch], batch_size: int) -> Responses:
    """Ask one question about every batch; return the answers as a run would read them from its folder."""
    assert question.geometry is not None
    pieces = Pieces(batch_size)
    parts = []
    for batch in shown:
        columns = question.answer(batch.stimuli, batch.errors, batch.images[question.geometry], pieces)
        columns["stimulus"] = columns["stimulus"].astype(np.intp) + batch.start
        parts.append(columns)
    filled = [part for part in parts if len(part["stimulus"])]
    if not filled:
        raise UserError(f"none of the stimuli of {question.stimuli.name} could be shown")
    columns = {name: np.concatenate([part[name] for part in filled]) for name in filled[0]}
    if "logits" in columns:
        if are_probabilities(columns["logits"]):
            columns["logits"] = logits_of(columns["logits"])
        refuse_shares(columns["logits"], question.observer.name)
    return Responses(
        observer=question.observer.name,
        kind=question.observer.kind,
        stimuli=question.stimuli,
        stimulus=columns.pop("stimulus"),
        columns=columns,
        labels=question.observer.labels,
        view=question.view,
        excluded={b.stimuli[i].id: reason for b in shown for i, reason in b.errors.items()},
        notes=(question.note,) if question.note else (),
    )
