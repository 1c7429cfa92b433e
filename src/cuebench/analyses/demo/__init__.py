"""The demo: every protocol in a small form, on drawings, with observers whose bias is known and one real network.

Nothing is fetched. The numbers show that the instrument gives back what was planted; they say nothing about networks
on photographs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cuebench.analyses.demo.stimuli import contact_sheet, make_stimuli
from cuebench.errors import UserError
from cuebench.observers.control_files import weights_file, weights_folder
from cuebench.responses.events import Event
from cuebench.runs.evaluate import evaluate
from cuebench.runs.scores import Scores

OBSERVERS = (
    "ideal:shape",
    "ideal:texture",
    "control:shape",
    "control:both",
    "control:texture",
    "lite:efficientnet_lite0",
)
SEGMENTERS = ("ideal:shape", "ideal:texture", "control:segment_shape", "control:segment_texture")
PROTOCOLS = (
    "cue_conflict",
    "textured_silhouettes",
    "pure_shape",
    "refined_bias",
    "cue_decomposition",
    "feature_suppression",
    "triplets",
    "texture_association",
    "human_alignment",
    "corruption_robustness",
    "imagenet_accuracy",
)
SEGMENTATION = "cue_decomposition_segmentation"
LIMIT = 500
"""Most pictures of a set, about: those with many levels are shown fewer images."""
RESAMPLES = 2000


class Demo(NamedTuple):
    """What the demo leaves: both runs, the picture of the stimuli, the folder of the data."""

    scores: Scores
    segmentation: Scores
    sheet: Path
    data: Path

    @property
    def rows(self) -> list[object]:
        """All scores."""
        return [*self.scores.rows, *self.segmentation.rows]

    @property
    def failures(self) -> list[str]:
        """What could not be measured."""
        return [*self.scores.failures, *self.segmentation.failures]


def run_demo(
    out: Path,
    *,
    seed: int = 0,
    stage: Callable[[str], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Demo:
    """Make the stimuli, train the controls that are missing, measure everybody with every protocol.

    Parameters
    ----------
    out : Path
        Run folder; the stimuli go to ``data`` below it, the run of the segmentation to ``segmentation``.
    seed : int
        Of stimuli and scores. The controls have the seed 0.
    stage : callable, optional
        Told in a few words what begins.
    on_event : callable, optional
        As in ``evaluate``.
    """
    say = stage or (lambda text: None)
    data = out / "data"
    with _Training() as training:
        begun = f", and train {len(training.names)} small networks" if training.names else ""
        say(f"draw the stimuli{begun}")
        make_stimuli(data, seed=seed)
        sheet = contact_sheet(data, out / "stimuli.png")
        say(f"stimuli: {sheet}")
        training.wait()
    say(f"show them to {len(OBSERVERS)} observers in {len(PROTOCOLS)} protocols")
    settings = {"triplets.experiments": "3"}
    scores = evaluate(OBSERVERS, PROTOCOLS, data_root=data, out=out, on_event=on_event, seed=seed, limit=LIMIT,
                      resamples=RESAMPLES, settings=settings, offline=True)  # fmt: skip
    say(f"show scenes to {len(SEGMENTERS)} observers that segment")
    masks = evaluate(SEGMENTERS, SEGMENTATION, data_root=data / "segmentation", out=out / "segmentation",
                     on_event=on_event, seed=seed, resamples=RESAMPLES, settings={f"{SEGMENTATION}.keep_masks": "4"},
                     offline=True)  # fmt: skip
    return Demo(scores, masks, sheet, data)


class _Training:
    """The controls that are not there yet, trained in two processes while the stimuli are drawn."""

    def __init__(self) -> None:
        specs = [spec for spec in dict.fromkeys((*OBSERVERS, *SEGMENTERS)) if spec.startswith("control:")]
        folder = weights_folder()
        names = [spec.partition(":")[2] for spec in specs]
        self.names = [name for name in names if not weights_file(name, 0, folder).with_suffix(".json").is_file()]
        # Those of a kind share their parts.
        shares = [[n for n in self.names if n.startswith("segment")], [n for n in self.names if n[:7] != "segment"]]
        self._started = [self._start(share) for share in shares if share]

    def _start(self, names: list[str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "cuebench", "controls", *names, "--quiet"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)

    def wait(self) -> None:
        """Wait until all are trained."""
        for process in self._started:
            _, errors = process.communicate()
            if process.returncode:
                reason = (errors.strip() or "no reason was given").splitlines()[-1]
                hint = f"cuebench controls {' '.join(self.names)}"
                raise UserError(f"the controls could not be trained: {reason}", hint)

    def __enter__(self) -> _Training:
        return self

    def __exit__(self, *reason: object) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()
