"""The tables of real networks in the docs, from the run folders that the pages tell how to make.

``python -m benchmarks.real_tables RUNS`` prints every table whose runs are below the folder RUNS, named as the pages
name them (``real``, ``field``, ``rb``, …); ``--write`` puts them into the pages in place of the tables that are there.
No number of these tables is typed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cuebench.reports.comparison import compare_runs
from cuebench.runs.results import read_scores
from cuebench.types import Score

DOCS = Path(__file__).parents[1] / "docs"
NETWORKS = {
    "EfficientNet-Lite0": ("lite:efficientnet_lite0",),
    "EfficientNet-Lite1": ("lite:efficientnet_lite1",),
    "EfficientNet-Lite2": ("lite:efficientnet_lite2",),
    "MobileNetV2": ("checkpoint:mobilenet_v2",),
    "SqueezeNet 1.1": ("onnx:squeezenet1_1", "checkpoint:squeezenet1_1"),
    "DeiT-tiny": ("checkpoint:deit_tiny_patch16_224",),
}
"""Name in the docs → its names in runs."""
SHORT = {name: name.replace("EfficientNet-", "").replace(" 1.1", "").replace("-tiny", "") for name in NETWORKS}
DEIT = "DeiT-tiny"


class Table(NamedTuple):
    """A table of a page: it replaces the ``which``-th table there whose first line starts with ``start``."""

    page: str
    start: str
    which: int
    lines: list[str]


class Run:
    """The scores of a run folder by what they are about."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: dict[tuple[str, ...], Score] = {}
        self.first: dict[tuple[str, ...], Score] = {}
        for s in read_scores(folder):
            key = (s.protocol, s.observer, s.condition, s.metric)
            self.rows[*key, s.ci_kind] = s
            self.first.setdefault(key, s)

    def get(self, protocol: str, network: str, condition: str, metric: str, kind: str = "") -> Score:
        """Return one number of a network, with the interval of a kind (default: the first)."""
        for name in NETWORKS.get(network, (network,)):
            key = (protocol, name, condition, metric)
            found = self.rows.get((*key, kind)) if kind else self.first.get(key)
            if found is not None:
                return found
        raise KeyError((str(self.folder), protocol, network, condition, metric, kind))


@cache
def run(folder: Path) -> Run:
    """Return a run, read once."""
    return Run(folder)


def num(value: float, digits: int = 3) -> str:
    """Write a number as the pages do: no 0 before the point, a true minus."""
    text = f"{abs(value):.{digits}f}"
    text = text[1:] if text.startswith("0.") else text
    return ("−" if value < 0 else "") + text


def span(s: Score, digits: int = 2, between: str = "–") -> str:
    """Write the interval alone."""
    return f"{num(s.ci_low, digits)}{between}{num(s.ci_high, digits)}"


def with_interval(s: Score, digits: int = 2, value_digits: int = 3) -> str:
    """Write a number with its interval in brackets."""
    return f"{num(s.value, value_digits)} [{num(s.ci_low, digits)}, {num(s.ci_high, digits)}]"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return the lines of a table."""
    rule = ["---:" if i in right else "---" for i in range(len(head))]
    lines = [f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |") for cells in (head, *rows)]
    return [lines[0], f"|{'|'.join(rule)}|", *lines[1:]]


# ------------------------------------------------------------------------------------------------- the tables


def real_models(runs: Path) -> list[Table]:
    """Cue conflict and accuracy, and who differs (docs/real_models.md)."""
    r = run(runs / "real")
    rows = []
    for name in [*NETWORKS, "people"]:
        bias = {
            k: r.get("cue_conflict", name, "16-way", "shape_bias", k)
            for k in ("images", "shape_sources", "texture_sources", "two_way")
        }
        decided = r.get("cue_conflict", name, "16-way", "decided_fraction")
        kappa = r.get("cue_conflict", name, "16-way", "error_consistency")
        person = name == "people"
        tops = (
            ""
            if person
            else " / ".join(num(r.get("imagenet_accuracy", name, c, "accuracy").value) for c in ("top1", "top5"))
        )
        wide = (
            ""
            if person
            else (lambda s: f"{num(s.value)} (n = {s.n})")(r.get("cue_conflict", name, "1000-way", "shape_bias"))
        )
        rows.append(
            [
                "ten people, pooled" if person else name,
                tops,
                num(bias["images"].value),
                *(span(s) for s in bias.values()),
                wide,
                num(decided.value, 2),
                num(kappa.value),
            ]
        )
    head = [
        "network",
        "top-1 / top-5",
        "shape bias",
        "these images",
        "new shapes",
        "new textures",
        "both",
        "1000-way",
        "decided",
        "κ with people",
    ]
    return [
        Table("real_models.md", "| network | top-1", 0, markdown(head, rows)),
        Table("real_models.md", "| pair | difference", 0, who_differs(runs)),
    ]


def who_differs(runs: Path) -> list[str]:
    """All pairs of the six networks in cue conflict."""
    names = {spec: SHORT[name] for name, specs in NETWORKS.items() for spec in specs}
    wanted = [o for o in names if ("cue_conflict", o, "16-way", "shape_bias") in run(runs / "real").first]
    found = compare_runs([runs / "real"], protocols=["cue_conflict"], observers=wanted).paired["cue_conflict"]
    rows = []
    for p in sorted(found.pairs, key=lambda p: p.p_holm):
        d, interval = p.difference, p.difference.interval
        images, times = p.advice
        advice = (
            "different"
            if p.separable
            else f"about {images:,} more images"
            if images
            else (f"{times:g} times the sources and images" if times else "too alike")
        )
        ends = f" [{num(interval.low, 2)}, {num(interval.high, 2)}]" if interval else ""
        rows.append([f"{names[p.first]} − {names[p.second]}", f"{num(d.value)}{ends}", _p(d.p), _p(p.p_holm), advice])
    print("tie groups:", ", ".join(f"{names[o]} {g}" for o, g in found.groups.items()))
    return markdown(
        ["pair", "difference [95 %, other shapes and textures]", "p", f"p (Holm, {len(rows)} pairs)", ""], rows
    )


def _p(p: float) -> str:
    return "1" if p >= 0.995 else num(p, 4) if p < 0.01 else num(p, 3) if p < 0.1 else num(p, 2)


def refined_bias(runs: Path) -> list[Table]:
    """Sensitivities in both views (docs/refined_bias.md)."""
    r, found = run(runs / "rb"), []
    for view in ("faithful", "native"):
        rows = []
        for name in NETWORKS:
            get = lambda metric, kind="images", name=name, view=view: r.get("refined_bias", name, view, metric, kind)  # noqa: E731
            rows.append(
                [
                    name,
                    with_interval(get("shape_sensitivity")),
                    with_interval(get("texture_sensitivity")),
                    with_interval(get("shape_preference")),
                    num(get("shape_top1").value),
                    num(get("texture_top1").value),
                    f"[{span(get('shape_preference', 'classes'), between=', ')}]",
                ]
            )
        head = [
            f"`{view}`",
            "shape sens.",
            "texture sens.",
            "shape preference",
            "shape top-1",
            "texture top-1",
            "over classes",
        ]
        # The second `native` table of the page is about other cues.
        found.append(Table("refined_bias.md", f"| `{view}` | shape sens.", 0, markdown(head, rows)))
    return found


SUPPRESSED = (
    *("suppress=shape", "suppress=texture", "suppress=colour", "patch_shuffle", "patch_rotation", "bilateral"),
    *("gaussian_blur", "non_local_means", "greyscale", "channel_shuffle"),
)


def suppression(runs: Path) -> list[Table]:
    """Share of the accuracy that is left (docs/refined_bias.md)."""
    found = []
    for which, mode in enumerate(("corrected", "faithful")):
        if not (runs / mode / "scores.parquet").is_file():
            continue
        r = run(runs / mode)
        rows = [
            [name, *(num(r.get("feature_suppression", name, c, "relative_accuracy").value) for c in SUPPRESSED)]
            for name in NETWORKS
        ]
        head = [
            "network",
            *(
                c.removeprefix("suppress=")
                .replace("_", " ")
                .replace("gaussian", "Gaussian")
                .replace("non local", "non-local")
                for c in SUPPRESSED
            ),
        ]
        found.append(Table("refined_bias.md", "| network | shape | texture | colour", which, markdown(head, rows)))
    return found


FIVE = (
    ("cue conflict", "real", "cue_conflict", "16-way", "shape_bias"),
    ("triplets", "triplets", "triplets", "experiment1/alpha=1.0", "triplet_shape_bias"),
    ("suppression, `faithful`", "faithful", "feature_suppression", "all", "shape_reliance"),
    ("suppression, `corrected`", "corrected", "feature_suppression", "all", "shape_reliance"),
    ("cue decomposition", "cd", "cue_decomposition", "eed+voronoi H=heinert2025", "shape_bias_cd"),
    ("REFINED-BIAS", "rb", "refined_bias", "faithful", "shape_preference"),
)
"""The headlines that are set side by side: heading, run, protocol, condition, metric."""


def five(runs: Path) -> list[Table]:
    """The headlines of five protocols (docs/refined_bias.md)."""
    rows = [
        [
            name,
            *(
                with_interval(run(runs / r).get(protocol, name, condition, metric, "images"))
                for _, r, protocol, condition, metric in FIVE
            ),
        ]
        for name in NETWORKS
    ]
    head = ["larger = more shape", *(name for name, *_ in FIVE)]
    return [Table("refined_bias.md", "| larger = more shape", 0, markdown(head, rows))]


def decomposition(runs: Path) -> list[Table]:
    """Qualities and relative robustness (docs/cue_decomposition.md)."""
    r = run(runs / "cd")
    h = "eed+voronoi H="
    numbers = {
        "Q_O": ("original", "quality_original"),
        "Q_S (EED)": ("eed", "quality_shape"),
        "Q_T (Voronoi)": ("voronoi", "quality_texture"),
        "S_cd, H = run": (f"{h}run", "shape_bias_cd"),
        "S_cd, H = heinert2025": (f"{h}heinert2025", "shape_bias_cd"),
        "R_cd": ("eed+voronoi", "robustness_cd"),
    }
    first = [
        [name, *(with_interval(r.get("cue_decomposition", name, *n)) for n in numbers.values())] for name in NETWORKS
    ]
    kinds = {
        "contrast": "contrast",
        "high pass": "high_pass",
        "low pass": "low_pass",
        "uniform noise": "uniform_noise",
        "phase noise": "phase_noise",
        "corrected": "phase_noise_corrected",
        "mean": "mean",
        "mean, corrected": "mean_corrected",
    }
    second = [
        [name, *(with_interval(r.get("corruption_robustness", name, c, "relative_robustness")) for c in kinds.values())]
        for name in NETWORKS
    ]
    return [
        Table("cue_decomposition.md", "| model | Q_O", 0, markdown(["model", *numbers], first)),
        Table("cue_decomposition.md", "| model | contrast", 0, markdown(["model", *kinds], second)),
    ]


TRIPLETS = (
    *(f"experiment1/alpha={a}" for a in ("0.0", "0.6", "1.0")),
    *("experiment2/size=0.2/aligned", "experiment2/size=0.2/unaligned", "experiment2/size=0.6/unaligned"),
    *("experiment3/size=0.2/aligned", "experiment3/size=1.0/aligned", "experiment3/size=0.2/unaligned"),
    "experiment3/size=0.6/unaligned",
)


def triplets(runs: Path) -> list[Table]:
    """Shape bias by condition, and by two procedures (docs/triplets.md)."""
    r, metric = run(runs / "triplets"), "triplet_shape_bias"
    rows = []
    for c in TRIPLETS:
        cells = [f"`{c}`"]
        for name in NETWORKS:
            trained = r.get("triplets", name, c, metric, "two_way")
            untrained = r.get("triplets", name, f"{c}/random_initialisation", metric)
            cells.append(f"{with_interval(trained)} / {num(untrained.value)}")
        rows.append(cells)
    alphas = []
    for a in ("0.0", "0.2", "0.4", "0.6", "0.8", "1.0"):
        cells = [a]
        for name in NETWORKS:
            bias, decided = (
                r.get("textured_silhouettes", name, f"alpha={a}", m) for m in ("shape_bias", "decided_fraction")
            )
            by_triplets = r.get("triplets", name, f"experiment1/alpha={a}", metric)
            cells.append(f"{num(bias.value)} ({num(decided.value)}) / {num(by_triplets.value)}")
        alphas.append(cells)
    heads = list(SHORT.values())
    return [
        Table("triplets.md", "| condition | Lite0", 0, markdown(["condition", *heads], rows)),
        Table("triplets.md", "| α | Lite0", 0, markdown(["α", *heads], alphas)),
    ]


def textures(runs: Path) -> list[Table]:
    """Associations, confidence and photographs (docs/texture_association.md)."""
    r, p = run(runs / "textures"), "texture_association"
    strongest = []
    for name in NETWORKS:
        pairs = [
            s
            for s in r.first.values()
            if s.observer in NETWORKS[name] and s.metric == p and s.condition.startswith("pair/texture=")
        ]
        cells = [name]
        for s in sorted(pairs, key=lambda s: -s.value)[:5]:
            texture, answer = (part.partition("=")[2] for part in s.condition.removeprefix("pair/").split("/", 1))
            cells.append(f"{texture} → {answer} {with_interval(s, 2, 2)}")
        strongest.append(cells)
    drawn = {"mean confidence": "textures", "share above .96": "textures/sure"}
    confidence = [
        [what, *(with_interval(r.get(p, name, c, "texture_confidence"), 3) for name in NETWORKS)]
        for what, c in drawn.items()
    ]
    photographs = {
        "accuracy": ("clean", "accuracy"),
        "texturedness": ("clean", "texturedness"),
        "… permuted": ("clean/shuffled", "texturedness"),
        "correlation of share and confidence": ("prediction/correlation", "texture_dominance"),
        "… permuted ": ("prediction/correlation/shuffled", "texture_dominance"),
        "confidence with the dominant texture": ("prediction/with_dominant", "texture_dominance"),
        "confidence without": ("prediction/without_dominant", "texture_dominance"),
        "gap": ("prediction/gap", "texture_dominance"),
        "… permuted  ": ("prediction/gap/shuffled", "texture_dominance"),
    }
    rows = []
    for what, (condition, metric) in photographs.items():
        cells = [what.strip()]
        for name in NETWORKS:
            s = r.get(p, name, condition, metric)
            shuffled = condition.endswith("shuffled")
            cells.append(
                num(s.value)
                if metric == "accuracy"
                else f"{num(s.value)} ({span(s, 3)})"
                if shuffled
                else with_interval(s, 3)
            )
        rows.append(cells)
    heads = list(SHORT.values())
    page = "texture_association.md"
    return [
        Table(page, "| | 1 | 2 | 3", 0, markdown(["", "1", "2", "3", "4", "5"], strongest)),
        Table(page, "| on drawn textures", 0, markdown(["on drawn textures", *heads], confidence)),
        Table(page, "| | Lite0", 0, markdown(["", *heads], rows)),
    ]


def field(runs: Path) -> list[Table]:
    """The table of the field (docs/field.md): names stay as the page has them, numbers come from the run."""
    r = run(runs / "field")
    comparison = compare_runs([runs / "field"], protocols=["cue_conflict"])
    groups = comparison.paired["cue_conflict"].groups
    apart = sum(p.separable for p in comparison.paired["cue_conflict"].pairs)
    print(f"field: {apart} of {len(comparison.paired['cue_conflict'].pairs)} pairs differ")
    known = {(cells[1], cells[5]): cells[0] for cells in _rows_of("field.md", "| observer | shape bias")}
    rows = []
    for observer, score in sorted(comparison.columns[0].rows.items(), key=lambda item: -item[1].value):
        get = lambda metric, kind="", observer=observer: r.get("cue_conflict", observer, "16-way", metric, kind)  # noqa: E731
        shown = next((n for n, specs in NETWORKS.items() if observer in specs), "")
        name = f"**{shown}**, 240" if shown else known.get((num(score.value), f"{score.n:,}"), observer)
        unread = _unread(r, observer)
        rows.append(
            [
                name,
                num(score.value),
                span(get("shape_bias", "images")),
                span(get("shape_bias", "two_way")),
                groups.get(observer, ""),
                f"{score.n:,}",
                num(get("decided_fraction").value, 2),
                unread,
                num(get("error_consistency").value),
            ]
        )
    head = ["observer", "shape bias", "these images", "other sources", "tied", "n", "decided", "unread", "κ"]
    return [Table("field.md", "| observer | shape bias", 0, markdown(head, rows, (1, 5, 6, 7, 8)))]


def _unread(r: Run, observer: str) -> str:
    """Return how many conflict trials of an observer have no readable answer, as the page has it."""
    cells = [
        c
        for c in _rows_of("field.md", "| observer | shape bias")
        if c[1] == num(r.get("cue_conflict", observer, "16-way", "shape_bias").value)
    ]
    return cells[0][7] if len({c[7] for c in cells}) == 1 and cells else ""


def _rows_of(page: str, start: str) -> list[list[str]]:
    lines = (DOCS / page).read_text().splitlines()
    first, last = _place(lines, start, 0)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[first + 2 : last]]


def transformer(runs: Path) -> list[Table]:
    """DeiT-tiny minus each convolutional network in the headline of each protocol (docs/real_models.md)."""
    sources = {
        "cue_conflict": "real",
        "refined_bias": "rb",
        "triplets": "triplets1",
        "textured_silhouettes": "triplets1",
        "pure_shape": "pure",
        "feature_suppression": "corrected",
        "cue_decomposition": "cd",
        "corruption_robustness": "cd",
        "human_alignment": "networks",
        "texture_association": "textures",
        "imagenet_accuracy": "real",
    }
    others = [n for n in NETWORKS if n != DEIT]
    rows = []
    for protocol, name in sources.items():
        if not (runs / name / "scores.parquet").is_file():
            continue
        present = {s.observer for s in run(runs / name).first.values()}
        wanted = [o for specs in NETWORKS.values() for o in specs if o in present]
        comparison = compare_runs([runs / name], protocols=[protocol], observers=wanted)
        column, found = comparison.columns[0], comparison.paired[protocol]
        value = column.rows[NETWORKS[DEIT][0]]
        pairs = {frozenset((p.first, p.second)): p for p in found.pairs}
        cells = [f"`{protocol}`", num(value.value)]
        for other in others:
            spec = next(o for o in NETWORKS[other] if o in present)
            pair = pairs.get(frozenset((spec, value.observer)))
            cells.append(_difference(pair, value.observer) if pair else f"{num(value.value - column.rows[spec].value)}")
        if not found.pairs:
            print(f"{protocol}: {'; '.join(found.notes)}")
        rows.append(cells)
    head = ["protocol", DEIT, *(f"− {SHORT[n]}" for n in others)]
    return [Table("real_models.md", "| protocol | DeiT", 0, markdown(head, rows))]


def _difference(pair, of: str) -> str:  # type: ignore[no-untyped-def]
    d, interval = pair.difference, pair.difference.interval
    sign = 1 if pair.first == of else -1
    ends = sorted(sign * e for e in (interval.low, interval.high)) if interval else []
    text = num(sign * d.value) + (f" [{num(ends[0], 2)}, {num(ends[1], 2)}]" if ends else "")
    return f"**{text}**" if pair.separable else text


TABLES: tuple[Callable[[Path], list[Table]], ...] = (
    *(real_models, refined_bias, suppression, five, decomposition, triplets, textures, field, transformer),
)


# ------------------------------------------------------------------------------------------------- writing them


def _place(lines: Sequence[str], start: str, which: int) -> tuple[int, int]:
    """Return the first line of a table and the line after its last."""
    heads = [i for i, line in enumerate(lines) if line.startswith(start)]
    if len(heads) <= which:
        raise SystemExit(f"no table {which + 1} that starts with {start!r}")
    end = heads[which]
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    return heads[which], end


def write(table: Table) -> None:
    """Put a table into its page."""
    path = DOCS / table.page
    lines = path.read_text().splitlines()
    first, last = _place(lines, table.start, table.which)
    path.write_text("\n".join([*lines[:first], *table.lines, *lines[last:]]) + "\n")


def main() -> None:
    """Print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="names of functions of this module")
    parser.add_argument("--write", action="store_true", help="into the pages")
    args = parser.parse_args()
    for make in TABLES:
        if args.only and make.__name__ not in args.only:
            continue
        try:
            tables = make(args.runs)
        except (KeyError, OSError) as error:
            print(f"{make.__name__}: not there: {error}")
            continue
        for table in tables:
            print(f"\n{table.page}\n" + "\n".join(table.lines))
            if args.write:
                write(table)


if __name__ == "__main__":
    main()
