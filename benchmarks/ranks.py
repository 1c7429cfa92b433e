"""Ranks by counting against ``numpy.argsort`` of the same logits, in the same run. Prints the ratio and the memory.

    python benchmarks/ranks.py --rows 1000000

Both go over the same array in the same pieces (an argsort of 10⁶ × 1,000 at once would need 8 GB for its result alone;
pieces can only help it). The memory is the growth of the peak resident set above the input.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from cuebench.labels.ranks import best_ranks, best_ranks_in_parquet, compiled_counter, count_with_numpy

CLASSES = 1000
PIECE = 10_000


def peak() -> float:
    """Peak resident set in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def by_sorting(logits, target, members):
    """The obvious way: sort every row, look where the members stand."""
    out = np.empty(len(target), np.int32)
    for start in range(0, len(target), PIECE):
        part = slice(start, start + PIECE)
        order = np.argsort(-logits[part], axis=1, kind="stable")
        place = np.empty_like(order)
        np.put_along_axis(place, order, np.arange(CLASSES)[None], axis=1)
        out[part] = [place[i, members[t]].min() + 1 for i, t in enumerate(target[part])]
    return out


def sort_only(logits):
    """``numpy.argsort`` alone, its default kind: the bar's baseline."""
    for start in range(0, len(logits), PIECE):
        np.argsort(logits[start : start + PIECE], axis=1)


def timed(what, do):
    start = time.perf_counter()
    found = do()
    seconds = time.perf_counter() - start
    print(f"{what:<44} {seconds:8.2f} s")
    return found, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_known_args()[0].rows
    rng = np.random.default_rng(0)
    members = [np.sort(rng.choice(CLASSES, rng.integers(1, 4), replace=False)) for _ in range(20)]
    target = rng.integers(20, size=rows)
    logits = rng.standard_normal((rows, CLASSES), np.float32)
    compiled_counter()(logits[:2], np.zeros((2, 1), np.intp))
    before = peak()
    print(f"{rows:,} × {CLASSES:,} float32: {logits.nbytes / 2**20:,.0f} MB")
    counted, quick = timed("best_ranks (numba where installed)", lambda: best_ranks(logits, target, members))
    above = peak() - before
    table = np.array([np.resize(m, 3) for m in members])
    step = CLASSES * 4
    plain, slow = timed(
        "the same without numba",
        lambda: np.concatenate(
            [count_with_numpy(logits[i : i + step], table[target[i : i + step]]) for i in range(0, rows, step)]
        ),
    )
    _, sorting = timed("numpy.argsort alone", lambda: sort_only(logits))
    some = min(rows, 20_000)
    assert (by_sorting(logits[:some], target[:some], members) == counted[:some]).all()
    assert (plain == counted).all()
    print(f"argsort / best_ranks: {sorting / quick:.1f}   argsort / without numba: {sorting / slow:.1f}")
    print(f"memory above the input: {above:.0f} MB")
    parquet(logits, target, members, counted)


def parquet(logits, target, members, counted) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "answers.parquet")
        schema = pa.schema([("logits", pa.list_(pa.float32(), CLASSES))])
        with pq.ParquetWriter(path, schema, compression="zstd") as writer:
            for start in range(0, len(logits), PIECE):
                flat = pa.array(logits[start : start + PIECE].reshape(-1))
                writer.write_table(pa.table([pa.FixedSizeListArray.from_arrays(flat, CLASSES)], schema=schema))
        for mapped in (False, True):
            before = peak()
            what = "from a mapped Parquet" if mapped else "from a Parquet, buffered"
            found, _ = timed(what, lambda m=mapped: best_ranks_in_parquet(path, target, members, mapped=m))
            assert (found == counted).all()
            pages = " (pages of the mapped file, which the system can drop)" if mapped else ""
            print(f"memory above: {peak() - before:.0f} MB{pages}")


if __name__ == "__main__":
    main()
