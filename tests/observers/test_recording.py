"""Recorded forward passes: used where they give the same bits, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from cuebench.observers.base import Batch
from cuebench.observers.preprocess import Preprocess

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from cuebench.labels import label_space  # noqa: E402 - torch first
from cuebench.observers.torch.observer import TorchObserver  # noqa: E402
from cuebench.observers.torch.recording import AFTER, Recordings, _equal, _turned, can_be_recorded  # noqa: E402

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Own(torch.nn.Module):
    """A user's own module."""

    def forward(self, x):
        return x


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    head = torch.nn.Linear(8, 1000)
    pool = torch.nn.AdaptiveAvgPool2d(1)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), pool, torch.nn.Flatten(), head)


def observer(module: torch.nn.Module, device: str, *, frozen: bool = True) -> TorchObserver:
    settings = {"preprocess": Preprocess(size=32), "labels": label_space("imagenet1k")}
    return TorchObserver(module, name="net", device=device, frozen=frozen, **settings)


def images(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, 32, 32, 3), np.uint8)


def test_only_known_code_that_nobody_listens_to_is_recorded() -> None:
    assert can_be_recorded(network())
    assert not can_be_recorded(torch.nn.Sequential(network(), Own()))
    watched = network()
    watched[0].register_forward_hook(lambda *_: None)
    assert not can_be_recorded(watched)
    assert not can_be_recorded(torch.jit.script(network()))


def test_short_runs_are_not_recorded() -> None:
    recordings = Recordings()
    for _ in range(AFTER):
        assert recordings.run(lambda x: x + 1, torch.zeros(2)).tolist() == [1, 1]
    assert not recordings._made


def test_a_recording_is_compared_on_other_batches() -> None:
    """A pass that depends on more than its input in each place must be found out by the order of the images alone."""
    x = torch.randn(5, 3, 4, 4).to(memory_format=torch.channels_last)
    assert torch.equal(_turned(x), x.roll(-1, 0))
    assert _turned(x).stride() == x.stride()
    assert _equal((x, None), (x.clone(), None))
    assert not _equal((x, None), (_turned(x), None))
    assert not _equal((x, None), (x, x))


def test_nothing_is_recorded_on_the_cpu() -> None:
    assert observer(network(), "cpu")._placed._recordings is None


@gpu
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_recording_gives_the_same_bits(precision: str) -> None:
    settings = {"preprocess": Preprocess(size=32), "labels": label_space("imagenet1k"), "precision": precision}
    recorded = TorchObserver(network(), name="net", device="cuda", frozen=True, **settings)
    plain = TorchObserver(network(), name="net", device="cuda", frozen=True, **settings)
    plain._placed._recordings = None
    waiting = []
    for seed in range(AFTER + 6):
        count = 7 if seed % 5 == 4 else 16  # also batches of another size between them
        batch = Batch((), images(count, seed))
        waiting.append((recorded.submit(batch, ["logits"]), plain.respond(batch, ["logits"])["logits"]))
    for fetch, expected in waiting:  # answers that are fetched late are not those of a later batch
        np.testing.assert_array_equal(fetch()["logits"], expected)
    assert any(made is not None for made in recorded._placed._recordings._made.values())
    recorded.release()
    late = Batch((), images(16, 99))
    np.testing.assert_array_equal(
        recorded.respond(late, ["logits"])["logits"], plain.respond(late, ["logits"])["logits"]
    )


@gpu
def test_a_pass_that_cannot_be_recorded_goes_on_as_ever() -> None:
    recordings = Recordings()

    def waits(x):
        return x * float(x.sum().item() > 0)  # a graph cannot wait for a number

    x = torch.ones(4, device="cuda")
    for _ in range(AFTER + 3):
        assert recordings.run(waits, x).tolist() == [1, 1, 1, 1]
    assert list(recordings._made.values()) == [None]
    torch.cuda.synchronize()


@gpu
def test_a_pass_that_differs_from_time_to_time_is_not_repeated() -> None:
    recordings, calls = Recordings(), iter(range(1000))

    def counts(x):
        return x + next(calls)

    x = torch.zeros(1, device="cuda")
    found = [recordings.run(counts, x).item() for _ in range(AFTER + 3)]
    assert found == sorted(set(found))
    assert list(recordings._made.values()) == [None]
