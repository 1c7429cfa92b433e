"""Observers that do not fit the device together take turns; those that do share one decoding."""

from __future__ import annotations

from pathlib import Path

import pytest
from counting import Counting, answers, job

from cuebench.observers.base import Answers, Batch, ObserverBase
from cuebench.responses.collect import collect
from cuebench.responses.device import Device
from cuebench.responses.pictures import DecodePool
from cuebench.stimuli.readers.cue_conflict import read
from cuebench.types import StimulusSet

ROOM = 100


class Heavy(Counting, ObserverBase):
    """Takes 40 bytes of a device that has 100 for networks, and knows who else is there."""

    memory = 40
    there: list[str]
    log: list[str]

    def respond(self, batch: Batch, needs: object) -> Answers:
        if self.name not in self.there:
            self.there.append(self.name)
            self.log.append(f"{self.name} in")
        assert len(self.there) * self.memory <= ROOM
        return super().respond(batch, needs)  # type: ignore[arg-type]

    def release(self) -> None:
        self.there.remove(self.name)
        self.log.append(f"{self.name} out")


def heavy(names: str) -> list[Heavy]:
    there: list[str] = []
    log: list[str] = []
    made = [Heavy(name) for name in names]
    for one in made:
        one.there, one.log = there, log
    return made


def device() -> Device:
    return Device(lambda observer: round(ROOM / 0.6) - 40)  # what is free beside the first


@pytest.fixture
def stimuli(data_root: Path) -> StimulusSet:
    return read(data_root / "cue_conflict" / "stimuli")


def test_those_that_do_not_fit_take_turns(stimuli: StimulusSet, tmp_path: Path) -> None:
    observers = heavy("abcde")
    light = Counting("light")
    jobs = [job(o, stimuli, tmp_path) for o in (*observers, light)]
    with DecodePool(0) as pool:
        progress = collect(jobs, pool, shard_size=4, on_event=lambda e: None, device=device())
    assert not progress.failures
    assert progress.done == progress.total == 6 * 32
    assert pool.decoded == 3 * 32  # ab, cd, e and the light one
    assert all(len(answers(one, 4)) == 32 for one in jobs)
    log = observers[0].log
    assert log.count("a in") == 2, "once for the probe, once for all batches"


def test_where_all_fit_nobody_moves_and_every_image_is_decoded_once(stimuli: StimulusSet, tmp_path: Path) -> None:
    observers = heavy("ab")
    jobs = [job(o, stimuli, tmp_path) for o in observers]
    with DecodePool(0) as pool:
        collect(jobs, pool, shard_size=4, on_event=lambda e: None, device=device())
    assert pool.decoded == 32
    assert observers[0].log == ["a in", "b in"]


def test_jobs_of_one_observer_stay_together(stimuli: StimulusSet, tmp_path: Path) -> None:
    a, b, c = heavy("abc")
    place = device()
    place.admit(a)
    jobs = [job(o, stimuli, tmp_path) for o in (a, b, c, a)]
    assert [[j.observer.name for j in group] for group in place.groups(jobs)] == [["a", "a", "b"], ["c"]]
    assert len(Device(lambda observer: None).groups(jobs)) == 1


def test_loading_one_more_makes_room_for_it() -> None:
    observers = heavy("abc")
    place = device()
    for one in observers:
        one.there.append(one.name)
        place.admit(one)
    assert observers[0].there == ["b", "c"]
    place.admit(observers[1])
    observers[0].there.append("a")
    place.admit(observers[0])
    assert observers[0].there == ["b", "a"]
