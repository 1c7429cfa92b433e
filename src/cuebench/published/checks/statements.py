"""Figures and claims in the running texts that follow from tables, from each other, or from counting."""

from __future__ import annotations

from itertools import pairwise

from cuebench.published.findings import Finding, judge, same
from cuebench.published.tables import Entry, column, entries
from cuebench.statistics.correlations import correlate

RB, CD, TA = "refined_bias", "cue_decomposition", "texture_association"
_CUT = "cut off after two digits instead of rounded"


def statements() -> list[Finding]:
    """Recompute them all."""
    return [*_people(), *_preferences(), _long_names(), *_textures(), *_signs()]


def _text(paper: str, model: str, condition: str, metric: str) -> Entry:
    return column(paper, "text", condition, metric)[model]


def _people() -> list[Finding]:
    findings = []
    for data in (RB, "cue_conflict"):
        shape, texture = (_text(RB, "people", data, f"accuracy/{cue}/mean") for cue in ("shape", "texture"))
        gap = shape.value - texture.value
        reach = (gap - shape.half - texture.half, gap + shape.half + texture.half)
        findings.append(judge(_text(RB, "people", data, "accuracy_gap"), gap, reach))
        for cue in ("shape", "texture"):
            exact = column(RB, "1", data, f"fleiss_kappa/{cue}")["people"]
            in_text = _text(RB, "people", data, f"fleiss_kappa/{cue}")
            off = abs(exact.value - in_text.value) > in_text.half
            findings.append(same(in_text, exact, note=f"table 1 has {exact.printed}: {_CUT}" if off else ""))
    for cue, note in (("shape", ""), ("texture", "A.3 has 86 %, A.4 has 0.87 for the same people")):
        percent = _text(RB, "people", "refined_bias/original order", f"accuracy_percent/{cue}")
        mean = _text(RB, "people", RB, f"accuracy/{cue}/mean")
        findings.append(judge(percent, 100 * mean.value, note=note, kind="repeated"))
    return findings


def _preferences() -> list[Finding]:
    """Recompute the two preferences of the baseline that §4.1 quotes."""
    shape, texture = (column(RB, "C", RB, f"{cue}_sens")["Vanila ResNet-50"].value for cue in ("shape", "texture"))
    bias = column(RB, "C", "cue_conflict/partial", "texture_bias")["Vanila ResNet-50"].value
    first = _text(RB, "Vanila ResNet-50", RB, "texture_preference")
    second = _text(RB, "Vanila ResNet-50", "cue_conflict/partial", "texture_preference")
    preference = shape / (shape + texture)
    note = f"0.49 is the *shape* preference {preference:.4f}, {_CUT}; the texture preference is above a half"
    return [judge(first, 1 - preference, note=note), judge(second, bias, note=f"{bias:.4f}: {_CUT}")]


def _stated(paper: str, table: str, quantity: str, printed: str, recomputed: str, note: str) -> Finding:
    agrees = printed == recomputed
    return Finding(paper, table, quantity, printed, recomputed, agrees, note, "stated", agrees)


def _long_names() -> Finding:
    """Count the names of table XI that stand beside the model they belong to."""
    listed = entries(CD, "XI")
    right = sum(not e.note for e in listed)
    note = "the long names are sorted, the short ones are not: here they are paired by what they say"
    name = "long names beside their own model"
    return Finding(CD, "XI", name, float(len(listed)), float(right), right == len(listed), note, "stated", False)


def _textures() -> list[Finding]:
    """Check what the texture-association paper says of its tables and twice in its text."""
    first = _text(TA, "all models", "dominant texture/abstract of results", "accuracy_gap_percent")
    second = _text(TA, "all models", "dominant texture/results", "accuracy_gap_percent")
    images = [_text(TA, "images", f"tid/{place}", "count") for place in ("text", "instructions")]
    share = _text(TA, "resnet50", "imagenet_a", "classes_nearer_prediction_percent")
    classes = _text(TA, "classes", "imagenet_a", "count").value
    exact = 100 * (classes - _text(TA, "resnet50", "imagenet_a", "classes_nearer_label").value) / classes
    over = f"over {share.printed}"
    return [
        same(first, second, note="the introduction has 66 %, the results 67 %"),
        same(*images, note="§III.B gives 200 images to each person, the instructions in the appendix 100"),
        _stated(TA, "text", "classes nearer the prediction", over, over if exact > share.value else "less", f"{exact}"),
        *_numbers_of_textures(),
    ]


def _numbers_of_textures() -> list[Finding]:
    findings = []
    for table, condition, claim in (("I", "label", "larger"), ("II", "prediction", "smaller")):
        numbers = {m: e.value for m, e in column(TA, table, condition, "mean_number_of_textures").items()}
        families = (("resnet18", "resnet50", "resnet152"), ("densenet121", "densenet169"))
        falls = all(numbers[a] > numbers[b] for family in families for a, b in pairwise(family))
        actual = "larger" if falls else "smaller"
        note = "from small to large: " + "; ".join(
            ", ".join(f"{m} {numbers[m]}" for m in family) for family in families
        )
        findings.append(_stated(TA, table, "models with fewer textures in a class", claim, actual, note))
    fewest = min(numbers, key=lambda m: numbers[m])
    last = _stated(TA, "II", "model with the fewest textures", "convnext-base", fewest, f"{numbers[fewest]}")
    return [*findings, last]


def _signs() -> list[Finding]:
    """Recompute the Pearson correlations with in-domain accuracy: the figures' r are lost, the text states signs."""
    findings = []
    for figure, table, group, what, claim in (
        ("8a", "C", "", "cue-conflict shape bias", "-"),
        ("8b", "B", "CNN", "cue-conflict shape bias", "+"),
        ("8b", "B", "ViT", "cue-conflict shape bias", "+"),
        ("8c", "C", "", "shape preference", "+"),
        ("8d", "B", "CNN", "shape preference", "+"),
        ("8d", "B", "ViT", "shape preference", "+"),
        ("9a", "C", "", "shape_sens", "+"),
        ("9b", "C", "", "texture_sens", "+"),
    ):
        accuracy = column(RB, table, "imagenet", "in_domain")
        models = [m for m, e in accuracy.items() if group in ("", e.group)]
        measured = _measured(table, what)
        r = correlate([accuracy[m].value for m in models], [measured[m] for m in models], "pearson", how="fisher")
        note = f"r = {r.value:.3f} [{r.low:.2f}, {r.high:.2f}], {r.n} models"
        if group == "ViT" and figure == "8b":
            note += "; the claim holds for the CNNs only, and six transformers decide nothing"
        name = f"sign of r, accuracy and {what} (Fig. {figure}{', ' * bool(group)}{group})"
        findings.append(_stated(RB, table, name, claim, "+" if r.value > 0 else "-", note))
    return findings


def _measured(table: str, what: str) -> dict[str, float]:
    if what == "cue-conflict shape bias":
        return {m: e.value for m, e in column(RB, table, "cue_conflict/partial", "shape_bias").items()}
    shape, texture = (column(RB, table, RB, f"{cue}_sens") for cue in ("shape", "texture"))
    if what == "shape preference":
        return {m: shape[m].value / (shape[m].value + texture[m].value) for m in shape}
    return {m: e.value for m, e in (shape if what == "shape_sens" else texture).items()}
