"""Edge-enhancing diffusion on one GPU: is it right, and how fast? ``PYTHONPATH=src python benchmarks/eed_gpu.py``.

1,200 crops of scikit-image's photographs, against 16,384 explicit steps: five timed runs of each variant of the fast
scheme, its worst image, and how many miss 45 dB. ``--check`` compares the kernels with NumPy first (output buffers are
poisoned with NaN), ``--sweep`` tunes the tiles, ``--yardsticks`` times eager and compiled PyTorch. Times are device
events unless a line says otherwise. With ``$OUT`` set, the decibels of every image go to ``$OUT/eed_gpu.npz``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "cues"))

from cuebench.cues import eed
from cuebench.cues._eed import plan as plans
from cuebench.cues._eed import torch_batch
from cuebench.cues._eed.accuracy import cycles_for
from cuebench.cues._eed.plan import Cycle, cycle_plan
from cuebench.cues._eed.scheme import Scheme
from cuebench.cues._eed.triton_batch import Batch, Tile, Tiles

COUNT, SIZE, TIME = 1200, 224, 6553.6
SCHEME = Scheme()
NAMES = ("astronaut", "chelsea", "coffee", "rocket", "camera", "coins", "page", "moon", "brick", "grass", "gravel")
RUNS = 5
WITHOUT_RAMP = {"RAMP": 0, "GROWTH": 8.0, "LEAD": 0.3}
"""The plan until November 2026, for comparison."""


def decibels_of(a, b) -> torch.Tensor:
    error = torch.mean((a.double().clamp(0, 255) - b.double().clamp(0, 255)) ** 2, dim=(1, 2, 3))
    return 10 * torch.log10(255.0**2 / error.clamp(min=1e-12))


def psnr(a, b) -> float:
    return float(decibels_of(a, b).min())


def milliseconds(work, repeats: int = 5, inner: int = 1) -> float:
    work()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(inner):
            work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / inner)
    return float(np.median(times))


def photographs(count: int) -> torch.Tensor:
    """Crops of scikit-image's photographs at many places, flips and scales: content like a test set's."""
    try:
        import skimage.data
        from skimage.transform import resize
    except ImportError:
        print("no scikit-image here: random textures instead of photographs")
        coarse = torch.randn(count, 3, 28, 28, device="cuda")
        smooth = torch.nn.functional.interpolate(coarse, size=(SIZE, SIZE), mode="bicubic")
        return (128 + 60 * smooth.sign() + 25 * smooth + 5 * torch.randn_like(smooth)).clamp(0, 255)

    rng = np.random.default_rng(0)
    sources = []
    for name in NAMES:
        try:
            image = np.asarray(getattr(skimage.data, name)())
        except Exception as error:  # noqa: BLE001 - a picture that would have to be downloaded
            print(f"no picture {name}: {type(error).__name__}")
            continue
        image = np.repeat(image[..., None], 3, -1) if image.ndim == 2 else image[..., :3]
        low = 226 / min(image.shape[:2])
        for scale in (max(low, 0.5), max(low, 0.75), max(low, 1.0)):
            size = [round(scale * n) for n in image.shape[:2]]
            sources.append(resize(image, size, anti_aliasing=True, preserve_range=True).astype(np.float32))
    out = np.empty((count, 3, SIZE, SIZE), np.float32)
    for k in range(count):
        image = sources[k % len(sources)]
        y, x = rng.integers(image.shape[0] - SIZE), rng.integers(image.shape[1] - SIZE)
        out[k] = np.moveaxis(image[y : y + SIZE, x : x + SIZE, :: rng.choice((-1, 1))], -1, 0)
    return torch.from_numpy(out).cuda()


def poisoned(u, scheme=SCHEME, tiles=None, **options) -> Batch:
    batch = Batch(u.clone(), scheme, tiles, **options)
    for buffer in (batch.x, batch.y, batch.abc, batch.tensor):
        buffer.fill_(float("nan"))
    return batch


def check() -> None:
    """Every option, odd sizes, one and three channels, against the NumPy float64 reference."""
    from eed_reference import eed_reference

    worst = 999.0
    options = (
        {},
        {"boundary": "mirror"},
        {"diffusivity": "paper"},
        {"orientation_smoothing": False},
        {"kernel_size": 3},
    )
    cases = [(option, (37, 53, 3)) for option in options]
    cases += [({}, shape) for shape in ((65, 129, 1), (1, 40, 3), (40, 1, 1), (1, 1, 3), (224, 224, 3))]
    for option, (h, w, c) in cases:
        u = 255 * torch.rand(2, c, h, w, device="cuda")
        batch = poisoned(u, Scheme(**option))
        for _ in range(40):
            batch.explicit(0.4)
        names = {"orientation_smoothing": "smoothing", "kernel_size": "size"}
        plain = {names.get(k, k): v for k, v in option.items()}
        want = np.stack([eed_reference(np.moveaxis(i, 0, -1), 40, **plain) for i in u.cpu().numpy()])
        explicit = psnr(batch.u, torch.from_numpy(np.moveaxis(want, -1, 1)).cuda())
        cycles = []
        for n, split in ((7, False), (8, True)):
            tiles = Tiles(linear=Tile(32, 16, 1, 2, split), two=Tile(32, 24, 1, 1, split))
            batch = poisoned(u, Scheme(**option), tiles)
            batch.cycle(Cycle(n, 0.45))
            cycles.append(psnr(batch.u, torch_batch.run_cycle(u.double(), Scheme(**option), Cycle(n, 0.45))))
        worst = min(worst, explicit, *cycles)
        if min(explicit, *cycles) < 95:
            print(f"  LOW {option} {h}×{w}×{c}: explicit {explicit:.1f} dB, cycles {cycles} dB")
    print(f"check: worst of all options and sizes {worst:.1f} dB (float32; bar 95)")
    again = [poisoned(u) for _ in range(2)]
    for batch in again:
        batch.cycle(Cycle(25, 0.47))
    print(f"check: two runs are bit-identical: {bool((again[0].u == again[1].u).all())}")


def sweep(u) -> Tiles:
    """Time every kernel with several tiles; return the best."""
    best = {}
    weights = ((0.2, 0.5), (0.3, 0.55))
    cuts = ((32, 1), (64, 1), (64, 2), (128, 2), (128, 4), (256, 4))  # columns and warps: one or two pixels a thread
    works = {
        "structure": (Batch.structure, [Tile(c, r, w) for (c, w), r in product(cuts, (32, 57, 113))]),
        "tensor": (Batch.freeze, [Tile(c, r, w) for (c, w), r in product(cuts, (32, 57, 113))]),
        "explicit": (lambda b: b.explicit(1e-6), [Tile(c, r, w) for (c, w), r in product(cuts, (28, 56, 112))]),
        "linear": (
            lambda b: b.linear(0.2, 1e-7),
            [Tile(c, r, w, *k) for (c, w), r, k in product(cuts, (14, 28, 56), product((1, 2, 3), (False, True)))],
        ),
        "two": (
            lambda b: b.two(*weights),
            [Tile(c, r, w, 1, k) for (c, w), r, k in product(cuts, (28, 56, 112, 224), (False, True))],
        ),
    }
    batch = poisoned(u, graphs=False)
    batch.freeze()
    for name, (work, tiles) in works.items():
        rows = []
        for tile in tiles:
            batch.tiles = Tiles(**{**best, name: tile})
            batch.u = u.clone()
            batch.old.copy_(u)
            try:
                rows.append((milliseconds(lambda w=work: w(batch), 3, 2), tile))
            except Exception as error:  # noqa: BLE001 - a tile that does not fit is no failure of the script
                print(f"  {name} {tile}: {type(error).__name__} {str(error)[:80]}")
        rows.sort(key=lambda row: row[0])
        best[name] = rows[0][1]
        line = "; ".join(f"{t:.3f} {tuple(tile)}" for t, tile in (*rows[:4], rows[-1]))
        print(f"{name:9s} ms (columns, rows, warps, stages, split): {line}", flush=True)
        if name == "linear":
            for stages, split in product((1, 2, 3), (False, True)):
                some = [row for row in rows if row[1].stages == stages and row[1].split == split]
                print(f"    stages {stages} split {split}: best {some[0][0]:.3f} {tuple(some[0][1])}" if some else "")
        if name == "two":
            for split in (False, True):
                some = [row for row in rows if row[1].split == split]
                print(f"    split {split}: best {some[0][0]:.3f} for two steps {tuple(some[0][1])}" if some else "")
    return Tiles(**best)


def events(work) -> tuple[float, object]:
    """Seconds of device time, and what the work returns."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    result = work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3, result


def advanced(u, part: tuple[Cycle, ...], tiles: Tiles, graphs: bool = False) -> torch.Tensor:
    batch = Batch(u.clone(), SCHEME, tiles, graphs=graphs)
    batch.advance(part, lambda _: None)
    return batch.u


def gpu_state() -> str:
    """Clocks, temperature and power, and why the clock is lower than it might be."""
    fields = "clocks.sm,clocks.mem,temperature.gpu,power.draw,clocks_event_reasons.active"
    try:
        command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return f"nvidia-smi: {type(error).__name__}"


def in_plan(work, **settings):
    """Call with other constants of the plan."""
    before = {name: getattr(plans, name) for name in settings}
    for name, value in settings.items():
        setattr(plans, name, value)
    try:
        return work()
    finally:
        for name, value in before.items():
            setattr(plans, name, value)


def variant(name: str, work, reference, bar: float = 45) -> np.ndarray:
    """Time a variant, its first run (which may compile) apart, and print its line; return each image's decibels."""
    cold, found = events(work)
    each = decibels_of(found, reference).cpu().numpy()
    del found
    times = sorted(events(work)[0] for _ in range(RUNS))
    line = f"{name:58s} cold {cold:6.3f}  min {times[0]:6.3f}  median {times[RUNS // 2]:6.3f}  max {times[-1]:6.3f} s"
    worst = ", ".join(f"{k}: {each[k]:.1f}" for k in np.argsort(each)[:4])
    print(
        f"{line}  worst {each.min():5.2f} dB  {int((each < bar).sum())} below {bar:g}  ({worst})  [{gpu_state()}]",
        flush=True,
    )
    return each


def yardsticks(u) -> None:
    copy = torch.empty_like(u)
    print(f"plain copy of the batch          {milliseconds(lambda: copy.copy_(u), 9):8.3f} ms")
    with torch.inference_mode():
        eager = milliseconds(lambda: torch_batch.explicit(u, SCHEME, 0.4), 3)
        print(f"eager PyTorch explicit step      {eager:8.3f} ms  ({eager * 16.384:.0f} s for 16,384)", flush=True)
    try:
        step = torch.compile(lambda x: torch_batch.explicit(x, SCHEME, 0.4))
        start = time.perf_counter()
        with torch.inference_mode():
            compiled = milliseconds(lambda: step(u), 5)
        print(
            f"torch.compile explicit step      {compiled:8.3f} ms  (compiled in {time.perf_counter() - start:.0f} s)",
            flush=True,
        )
    except Exception as error:  # noqa: BLE001 - a yardstick only
        print(f"torch.compile failed: {type(error).__name__} {str(error)[:200]}")


def main() -> None:
    if not torch.cuda.is_available():
        print("eed on a GPU: no CUDA device here, skipped")
        return
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    begin = time.perf_counter()
    if "--check" in sys.argv:
        check()
    u = photographs(COUNT)
    print(f"loaded in {time.perf_counter() - begin:.0f} s", flush=True)
    if "--yardsticks" in sys.argv:
        yardsticks(u)
    tiles = sweep(u) if "--sweep" in sys.argv else Tiles()
    advanced(u, (Cycle(1, 0.4),) * 2, tiles)
    seconds, reference = events(lambda: advanced(u, (Cycle(1, 0.4),) * 16384, tiles))
    print(
        f"explicit, 16,384 steps of {COUNT} images {SIZE}×{SIZE}×3: {seconds:.1f} s (bar 60 s)  [{gpu_state()}]",
        flush=True,
    )
    found = variants(u, tiles, reference)
    found |= calibration(u, tiles, reference)
    if folder := os.environ.get("OUT"):
        np.savez(Path(folder) / "eed_gpu.npz", **found)
    one = Batch(u[:1].clone(), SCHEME, tiles)
    part = plan_of(45)
    print(f"one image, accuracy=45: {milliseconds(lambda: one.advance(part, lambda _: None), 3):.1f} ms")
    against_numpy(u, tiles)
    print(f"whole script {time.perf_counter() - begin:.0f} s")


def plan_of(decibels: float = 0, cycles: int = 0) -> tuple[Cycle, ...]:
    """Return the plan for an accuracy, or of so many cycles."""
    wanted = cycles_for(decibels, TIME) if decibels else None
    number, horizon = wanted or (cycles, TIME)
    return cycle_plan([TIME], number, SCHEME.longest_step, horizon).parts[0]


def variants(u, tiles: Tiles, reference) -> dict[str, np.ndarray]:
    """Candidates: the bar is 2 s at 45 dB on every image, in every run."""
    found = {}

    def told(name: str, part: tuple[Cycle, ...], **options) -> None:
        title = f"{name}: {len(part)} cycles, {sum(c.steps for c in part)} linear steps"
        found[name] = variant(title, lambda: advanced(u, part, tiles, **options), reference)

    in_plan(lambda: told("without ramp", plan_of(cycles=72)), **WITHOUT_RAMP)
    told("accuracy=45", plan_of(45))
    told("accuracy=45 with graphs", plan_of(45), graphs=True)
    for cycles in (60, 64, 68, 80):
        told(f"cycles={cycles}", plan_of(cycles=cycles))
    in_plan(lambda: told("growth 5, lead 0.4, 68", plan_of(cycles=68)), GROWTH=5.0)
    in_plan(lambda: told("growth 4, lead 0.35, 68", plan_of(cycles=68)), LEAD=0.35)
    in_plan(lambda: told("growth 3, lead 0.4, 68", plan_of(cycles=68)), GROWTH=3.0)
    whole(u, reference)
    return found


def whole(u, reference) -> None:
    """The public function on bytes that lie on the device: everything included, by the wall clock."""
    images = u.round().clamp(0, 255).to(torch.uint8).movedim(1, -1).contiguous()
    seconds = []
    for _ in range(RUNS + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = eed(images, accuracy=45)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    cold, *rest = seconds
    assert result.shape == images.shape
    times = f"cold {cold:.3f}  min {min(rest):.3f}  median {np.median(rest):.3f}  max {max(rest):.3f} s"
    print(f"eed(uint8 tensor on the device, accuracy=45), wall clock: {times}  [{gpu_state()}]", flush=True)


def calibration(u, tiles: Tiles, reference) -> dict[str, np.ndarray]:
    """The crops' column of the table in ``cues/_eed/accuracy.py``."""
    found = {}
    for cycles in (16, 32, 48, 64, 96, 128, 192, 256, 512):
        part = plan_of(cycles=cycles)
        each = decibels_of(advanced(u, part, tiles), reference).cpu().numpy()
        found[f"calibration {cycles}"] = each
        low = f"worst {each.min():5.2f}  1 % {np.percentile(each, 1):5.2f}  median {np.median(each):5.2f}"
        print(f"    {cycles:4d} cycles {sum(c.steps for c in part):5d} steps  {low}", flush=True)
    return found


def against_numpy(u, tiles: Tiles) -> None:
    from eed_reference import eed_reference

    crop = np.moveaxis(u[0, :, :96, :96].cpu().numpy(), 0, -1)
    want = torch.from_numpy(np.moveaxis(eed_reference(crop, 500), -1, 0)[None]).cuda()
    got = poisoned(u[:1, :, :96, :96].contiguous(), tiles=tiles)
    got.advance((Cycle(1, 0.4),) * 500, lambda _: None)
    print(f"500 explicit steps against NumPy float64 (96×96 photograph): {psnr(got.u, want):.1f} dB")


if __name__ == "__main__":
    main()
