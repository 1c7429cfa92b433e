"""Shape bias while a network learns: a callback for plain PyTorch loops and for Lightning.

>>> watch = BiasOverTraining(preprocess=Preprocess(), labels=10, every=5)  # doctest: +SKIP
>>> for epoch in range(90):                                                # doctest: +SKIP
...     train(model)
...     logger.log(watch(epoch, model))    # {} in epochs that are not measured
>>> watch.figure().save("bias.svg")                                        # doctest: +SKIP

With Lightning: ``Trainer(callbacks=[watch.lightning()])``. The pictures are a fixed small set, drawn once; one
measurement is one forward pass over them. The network is left as it was found: mode, device, weights, random numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cuebench.errors import UserError, did_you_mean
from cuebench.files import write_json
from cuebench.labels import LabelSpace, label_space
from cuebench.observers.base import Batch
from cuebench.observers.preprocess import Preprocess
from cuebench.protocols.base import Protocol, ScoreOptions
from cuebench.protocols.triplets.stimuli import novel_objects
from cuebench.registry import protocols as registered
from cuebench.responses.table import Responses
from cuebench.responses.workers import Task, perform
from cuebench.runs.plan import read_stimuli
from cuebench.stimuli.sources import novel_object
from cuebench.types import Score, StimulusSet

CONDITIONS = ("experiment3/size=0.6/aligned", "experiment3/size=0.6/unaligned")
"""Of experiment 3 in the default small set: 8 shapes × 8 textures each, 128 pictures."""


class Shown(NamedTuple):
    """A protocol and its pictures, as the network gets them."""

    protocol: Protocol
    view: str
    preprocess: Preprocess
    stimuli: StimulusSet
    positions: np.ndarray[Any, np.dtype[np.intp]]
    images: np.ndarray[Any, np.dtype[np.uint8]]
    excluded: Mapping[str, str]


class BiasOverTraining:
    """Measure fast protocols every ``every`` epochs and keep the numbers.

    Parameters
    ----------
    preprocess : Preprocess
        How the network wants its images.
    labels : int, str, LabelSpace or None
        Number of classes of the head (enough for features), or what the logits stand for (for protocols that score
        answers); None: the network has no head, its output is the embedding.
    every : int
        Measure in epochs 0, every, 2·every, …
    protocols : sequence of str
        Names. ``triplets`` uses a small set of novel objects unless ``settings`` say otherwise.
    settings : mapping, optional
        Options of the protocols, ``{"triplets.experiments": "3"}``: then the whole set is shown.
    data_root, limit
        For protocols that need data: where it is, and how many stimuli to draw (0: all).
    features : str, optional
        Layer to compare; default: what the classifier reads.
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
        ``{"epoch": 5, "values": {name: number}, "low": {...}, "high": {...}}``, one for each measurement.
    """

    def __init__(
        self,
        *,
        preprocess: Preprocess,
        labels: int | str | LabelSpace | None = None,
        every: int = 1,
        protocols: Sequence[str] = ("triplets",),
        settings: Mapping[str, str] | None = None,
        data_root: str | Path | None = None,
        limit: int = 0,
        features: str | None = None,
        network: Callable[[Any], Any] | None = None,
        log: Callable[[dict[str, float], int], Any] | None = None,
        prefix: str = "",
        seed: int = 0,
        resamples: int = 500,
        batch_size: int = 64,
    ) -> None:
        if every < 1:
            raise UserError(f"every={every}", "measure every 1 epoch or more")
        for name in protocols:
            if name not in registered:
                raise did_you_mean("protocol", name, registered)
        self.every, self.log, self.network, self.prefix = every, log, network, prefix
        self.labels, self.features, self.batch_size = _labels(labels), features, batch_size
        self.options = ScoreOptions(seed, resamples, dict(settings or {}))
        self.history: list[dict[str, Any]] = []
        small = () if settings else ("triplets",)
        self._shown = [
            picture
            for name in dict.fromkeys(protocols)
            for picture in _shown(name, preprocess, data_root, limit, self.options, small=name in small)
        ]

    def __call__(self, epoch: int, model: Any) -> dict[str, float]:
        """Measure in the epochs that are due and return the numbers; ``{}`` in the others."""
        if epoch % self.every:
            return {}
        rows = self.measure(model)
        names = [f"{self.prefix}{r.metric}/{r.condition}" for r in rows]
        record: dict[str, Any] = {"epoch": epoch}
        for field, attribute in (("values", "value"), ("low", "ci_low"), ("high", "ci_high")):
            record[field] = {name: float(getattr(r, attribute)) for name, r in zip(names, rows)}
        self.history.append(record)
        values: dict[str, float] = record["values"]
        if self.log:
            self.log(values, epoch)
        return values

    def measure(self, model: Any) -> list[Score]:
        """Return the scores of the network as it is now; its mode, weights and random state are left as they were."""
        net = self.network(model) if self.network else model
        modes = {part: part.training for part in net.modules()}
        try:
            return [row for shown in self._shown for row in self._scored(shown, net)]
        finally:
            for part, training in modes.items():
                part.training = training

    def _scored(self, shown: Shown, net: Any) -> list[Score]:
        from cuebench.observers.torch.observer import TorchObserver

        device = next((str(p.device) for p in net.parameters()), "cpu")
        observer = TorchObserver(
            net, name="model", preprocess=shown.preprocess, labels=self.labels, device=device, features=self.features
        )
        needs = next((n for n in shown.protocol.needs if set(n) <= observer.capabilities), None)
        if needs is None:
            wanted = " or ".join(" and ".join(n) for n in shown.protocol.needs)
            raise UserError(f"{shown.protocol.name} needs {wanted}", "; ".join(observer.notes) or "give labels=")
        stimuli = [shown.stimuli.stimuli[i] for i in shown.positions]
        parts = [
            observer.respond(Batch(stimuli[k : k + self.batch_size], shown.images[k : k + self.batch_size]), needs)
            for k in range(0, len(stimuli), self.batch_size)
        ]
        columns = {str(name): np.concatenate([p[name] for p in parts]) for name in needs}
        answers = Responses(
            "model", "model", shown.stimuli, shown.positions, columns, self.labels, shown.view, shown.excluded
        )
        return _first_of_each(shown.protocol.score([answers], self.options).scores)

    def figure(self) -> Any:
        """Return the figure of the numbers so far; ``.save("bias.svg")`` or ``.png`` writes it."""
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


def _labels(given: int | str | LabelSpace | None) -> LabelSpace | None:
    if isinstance(given, int):
        return LabelSpace("classes of the head", tuple(f"class {i}" for i in range(given)))
    return None if given is None else label_space(given)


def _shown(
    name: str, preprocess: Preprocess, data_root: str | Path | None, limit: int, options: ScoreOptions, *, small: bool
) -> list[Shown]:
    if small:
        protocol = registered.get(name)
        stimuli = novel_objects(novel_object.SHAPES[::2], novel_object.TEXTURES[::2], conditions=CONDITIONS)
    else:
        own = {k: v for k, v in options.settings.items() if k.partition(".")[0] == name}
        source = read_stimuli([name], data_root, limit=limit, seed=options.seed, settings=own)[0]
        if source.stimuli is None:
            raise source.problem or UserError(f"protocol {name!r} has no stimuli")
        protocol, stimuli = source.protocol, source.stimuli
    return [_pictures(protocol, view.name, view.change(preprocess), stimuli) for view in protocol.views]


def _pictures(protocol: Protocol, view: str, preprocess: Preprocess, stimuli: StimulusSet) -> Shown:
    """Draw every picture once."""
    made = [perform(Task(stimuli.root, (s,), (preprocess.geometry,)))[0] for s in stimuli]
    excluded = {s.id: m for s, m in zip(stimuli, made) if isinstance(m, str)}
    positions = np.array([i for i, m in enumerate(made) if not isinstance(m, str)], np.intp)
    images = np.stack([m[0] for m in made if not isinstance(m, str)])
    return Shown(protocol, view, preprocess, stimuli, positions, images, excluded)


def _first_of_each(rows: Sequence[Score]) -> list[Score]:
    """Return one row for each metric and condition, with its first kind of interval; variants are left out."""
    plain = [r for r in rows if "similarity=" not in r.condition and "/class=" not in r.condition]
    return list({(r.metric, r.condition): r for r in reversed(plain)}.values())[::-1]
