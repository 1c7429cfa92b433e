"""What follows from the papers' own numbers: the golden values of definitions.md §2 and §3, and every disagreement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from cuebench.errors import UserError
from cuebench.published import check as module
from cuebench.published.check import check, summary
from cuebench.published.checks.decomposition import blocks, implied_ratios, shape_bias
from cuebench.published.checks.rank_correlations import _cells
from cuebench.published.findings import Finding, corners, jitter, judge
from cuebench.published.tables import Entry, column, entries


@pytest.fixture(scope="module")
def findings():
    return check()


def one(findings, table, quantity):
    found = [f for f in findings if f.table == table and f.quantity == quantity]
    assert len(found) == 1, [f.quantity for f in findings if f.table == table][:40]
    return found[0]


def values(*place):
    return {m: e.value for m, e in column(*place).items()}


# ------------------------------------------------------------------------------------------- golden values, §2


@pytest.mark.parametrize(
    ("family", "p"),
    [
        ("Shape Aug", 0.018),
        ("Contrastive", 0.009),
        ("Texture Dist", 0.010),
        ("Mixed Aug", 0.002),
        ("Adversarial", 0.489),
    ],
)
def test_t_tests_of_refined_bias(findings, family, p):
    found = one(findings, "2", f"{family}: p of refined_bias")
    assert found.printed == p
    assert found.agrees
    assert found.recomputed == pytest.approx(p, abs=0.002)


@pytest.mark.parametrize(
    ("family", "p"),
    [
        ("Mixed Aug", 2.72e-4),
        ("Texture Dist", 0.003),
        ("Shape Aug", 0.181),
        ("Contrastive", 0.684),
        ("Adversarial", 5.19e-5),
    ],
)
def test_t_tests_of_cue_conflict_by_scipy(findings, family, p):
    found = one(findings, "2", f"{family}: p of cue_conflict")
    bias = column("refined_bias", "C", "cue_conflict/partial", "shape_bias")
    own = [e.value for e in bias.values() if e.group == family]
    assert found.recomputed == pytest.approx(stats.ttest_1samp(own, bias["Vanila ResNet-50"].value).pvalue)
    assert (found.printed, found.agrees) == (p, True)


def test_mixed_augmentation_needs_table_d(findings):
    """With table C's own A3 the p-value is .0013, which would print as .001."""
    shape, texture = (values("refined_bias", "C", "refined_bias", f"{cue}_sens") for cue in ("shape", "texture"))
    mixed = ("A1", "A2", "A3", "B", "C1", "C2", "D", "V2")

    def p():
        preference = {m: shape[m] / (shape[m] + texture[m]) for m in shape}
        return stats.ttest_1samp([preference[m] for m in mixed], preference["Vanila ResNet-50"]).pvalue

    assert round(p(), 3) == 0.001
    shape["A3"] = 0.7364
    assert round(p(), 3) == 0.002
    found = one(findings, "2", "Mixed Aug: p of refined_bias")
    assert found.recomputed == pytest.approx(p())
    assert "0.7364" in found.note


@pytest.mark.parametrize(
    ("table", "model", "cue", "value"),
    [
        ("README", "BagNet-9", "shape", 0.0518),
        ("README", "BagNet-17", "shape", 0.0988),
        ("README", "BagNet-33", "shape", 0.2438),
        ("B", "ResNet-18", "shape", 0.5741),
        ("B", "ResNet-18", "texture", 0.5674),
        ("B", "ResNet-50", "shape", 0.5630),
        ("B", "ResNet-50", "texture", 0.5684),
        ("C", "A3", "shape", 0.7737),
    ],
)
def test_golden_sensitivities(table, model, cue, value):
    assert values("refined_bias", table, "refined_bias", f"{cue}_sens")[model] == value


def test_golden_kappas():
    found = {(e.condition, e.metric[13:]): e.value for e in entries("refined_bias", "1")}
    assert found == {("refined_bias", "shape"): 0.9836, ("refined_bias", "texture"): 0.7973,
                     ("cue_conflict", "shape"): 0.7276, ("cue_conflict", "texture"): 0.2937}  # fmt: skip


# ------------------------------------------------------------------------------------------- golden values, §3


def golden_columns():
    """S_cd and R_cd unrounded from the accuracies of the 43 models; the other columns as printed."""
    place = ("cue_decomposition", "VIII")
    models = [m for m, e in column(*place, "accuracy", "Q_O").items() if e.group != "Trained"]
    take = lambda *c: np.array([column(*place, *c)[m].value for m in models])  # noqa: E731
    original, shape, texture = take("accuracy", "Q_O"), take("accuracy", "Q_S"), take("accuracy/voronoi", "Q_T")
    return {
        "Q_S": shape, "t": texture.mean(), "s": shape.mean(), "R_cd": (shape + texture) / (2 * original),
        "S_cd": shape_bias(shape, texture, shape.mean() / texture.mean()),
        "mean": take("relative_robustness", "mean"), "conflict": take("cue_conflict", "shape_bias"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "rho"),
    [("R_cd", "mean", 0.951), ("S_cd", "conflict", 0.905), ("Q_S", "mean", 0.887), ("Q_S", "conflict", 0.925),
     ("S_cd", "mean", 0.707)],
)  # fmt: skip
def test_golden_rank_correlations(first, second, rho):
    c = golden_columns()
    assert round(stats.spearmanr(c[first], c[second]).statistic, 3) == rho


def test_golden_means():
    c = golden_columns()
    assert len(c["Q_S"]) == 43
    assert (round(c["t"], 3), round(c["s"], 3)) == (0.854, 0.584)


def test_r_cd_follows_to_the_printed_digits(findings):
    rows = [f for f in findings if f.quantity.endswith("R_cd") and f.kind == "derived"]
    assert len(rows) == 47 * 5 + 22 + 19
    assert all(f.agrees for f in rows)


def test_s_cd_is_off_by_up_to_five_thousandths_with_the_own_means():
    block = blocks()[0]
    ratio = block.mean(block.shape) / block.mean(block.texture)
    off = [
        abs(shape_bias(block.shape[m].value, block.texture[m].value, ratio) - e.value) for m, e in block.bias.items()
    ]
    assert 0.004 < max(off) < 0.005


def test_one_ratio_explains_each_column_of_s_cd():
    for block in blocks():
        low, high = implied_ratios(block)
        assert low < high, block.name
        own = block.mean(block.shape) / block.mean(block.texture)
        assert (low <= own <= high) == (block.name in {"cityscapes", "ade20k"})


def test_implied_ratio_recovers_a_planted_one():
    """Round a table made with s/t = .7 to three digits: the range must hold .7, and little else."""
    rng = np.random.default_rng(0)
    made = {}
    for i in range(40):
        q, r = rng.uniform(0.2, 0.9, 2)
        row = {"Q_S": q, "Q_T": r, "S": shape_bias(q, r, 0.7)}
        made[str(i)] = {k: Entry("p", "t", str(i), "", "", "", k, f"{v:.3f}", "") for k, v in row.items()}
    columns = {k: {m: row[k] for m, row in made.items()} for k in ("Q_S", "Q_T", "S")}
    block = type(blocks()[0])("x", "t", {}, columns["Q_S"], columns["Q_T"], columns["S"], {})
    low, high = implied_ratios(block)
    assert low <= 0.7 <= high
    assert high - low < 0.005


def test_cityscapes_were_shuffled_with_128_cells():
    found = _cells()
    assert (found.printed, found.recomputed, found.agrees) == (32.0, 128.0, False)
    assert "18 of 18 with 128 cells" in found.note


# ------------------------------------------------------------------------------------------- the whole


def test_bars(findings):
    parts = {s.kind: s for s in summary(findings)}
    assert parts["derived"].agree / parts["derived"].total >= 0.95
    assert parts["all"].agree / parts["all"].total >= 0.95
    assert parts["derived"].total > 900
    assert all(f.note for f in findings if not f.agrees)


DISAGREEMENTS = {
    ("C", "PGD-AT (linf, eps=1): cue_conflict/full/texture_bias"): (0.0229, 0.4429),
    ("C", "A3: shape_sens inside table D's interval"): (0.7737, 0.7364),
    ("C", "PGD-AT (l2, eps=0.5): shape_sens inside table D's interval"): (0.507, 0.5149),
    ("B", "ResNet-50: cue_conflict/full/shape_bias, as in table C"): (0.1944, 0.1784),
    ("B", "ResNet-50: cue_conflict/full/texture_bias, as in table C"): (0.8056, 0.8216),
    ("README", "BagNet-9: refined_bias/shape_sens, as in table B"): (0.0518, 0.0517),
    ("README", "BagNet-17: refined_bias/shape_sens, as in table B"): (0.0988, 0.0995),
    ("README", "BagNet-33: refined_bias/shape_sens, as in table B"): (0.2438, 0.2386),
    ("text", "people: refined_bias/fleiss_kappa/texture, as in table 1"): (0.79, 0.7973),
    ("text", "people: cue_conflict/fleiss_kappa/shape, as in table 1"): (0.72, 0.7276),
    ("text", "people: refined_bias/original order/accuracy_percent/texture"): (86, 87),
    ("text", "Vanila ResNet-50: refined_bias/texture_preference"): (0.49, 0.5024),
    ("text", "Vanila ResNet-50: cue_conflict/partial/texture_preference"): (0.77, 0.7779),
    ("B", "sign of r, accuracy and cue-conflict shape bias (Fig. 8b, ViT)"): ("+", "-"),
    ("VIII", "s/t behind S_cd (voronoi)"): (0.6725, 0.6836),
    ("IX", "s/t behind S_cd (patch)"): (0.8114, 0.8488),
    ("IX", "s/t behind S_cd (diamond)"): (1.7104, 1.7046),
    ("IX", "s/t behind S_cd (tex.EED)"): (0.7717, 0.7699),
    ("IX", "s/t behind S_cd (tex.EEDpat)"): (3.9287, 4.0324),
    ("XIII", "Voronoi cells behind Q_T of Cityscapes"): (32, 128),
    ("text", "DeepLabV3Plus RN101: cityscapes/Q_S, as in table XIII"): (0.18, 0.179),
    ("XI", "long names beside their own model"): (22, 5),
    ("text", "all models: dominant texture/abstract of results/accuracy_gap_percent, as in table text"): (66, 67),
    ("text", "images: tid/text/count, as in table text"): (200, 100),
    ("II", "models with fewer textures in a class"): ("smaller", "larger"),
}


def test_every_disagreement_is_known(findings):
    found = {(f.table, f.quantity): (f.printed, f.recomputed) for f in findings if not f.agrees}
    assert set(found) == set(DISAGREEMENTS)
    for key, (printed, recomputed) in DISAGREEMENTS.items():
        assert found[key][0] == pytest.approx(printed, abs=5e-5) if isinstance(printed, float) else True
        if isinstance(recomputed, str):
            assert found[key][1] == recomputed
        else:
            assert found[key][1] == pytest.approx(recomputed, abs=5e-5)


def test_every_disagreement_is_in_the_docs(findings):
    text = (Path(__file__).resolve().parents[2] / "docs" / "published.md").read_text("utf-8")
    for finding in findings:
        if not finding.agrees:
            assert finding.quantity.replace("|", "\\|") in text, finding.quantity


def test_rows_have_the_documented_fields(findings):
    fields = ["paper", "table", "quantity", "printed", "recomputed", "agrees", "note"]
    assert all(list(f.row()) == fields for f in findings)


def test_same_findings_twice(findings):
    assert [f.row() for f in check()] == [f.row() for f in findings]


# ------------------------------------------------------------------------------------------- the judge can say no


def entry(printed):
    return Entry("p", "t", "m", "", "", "", "q", printed, "")


def test_judge():
    assert judge(entry("0.363"), 0.3634).strict
    assert not judge(entry("0.363"), 0.3637).agrees
    loose = judge(entry("0.363"), 0.3637, (0.3630, 0.3645))
    assert loose.agrees
    assert not loose.strict
    assert "within rounding" in loose.note


def test_corners_of_a_monotone_function():
    assert corners(lambda a, b: a / b, [entry("0.5"), entry("0.25")]) == pytest.approx((0.45 / 0.255, 0.55 / 0.245))


def test_jittered_tables_print_the_same_digits():
    drawn = jitter([entry("0.363"), entry("0.1")], "test", 500)
    assert {f"{v:.3f}" for v in drawn[:, 0]} <= {"0.362", "0.363", "0.364"}
    assert np.abs(drawn[:, 0] - 0.363).max() <= 0.0005
    assert np.abs(drawn[:, 1] - 0.1).max() > 0.01


def test_a_wrong_cell_is_found(monkeypatch):
    """Change one digit of a printed R_cd and of a shape bias: exactly these findings turn."""
    from cuebench.published.checks import complements as file

    real = file.column

    def broken(*place):
        found = dict(real(*place))
        if place == ("refined_bias", "B", "cue_conflict/full", "texture_bias"):
            found["ViT-S"] = Entry(
                *["refined_bias", "B", "ViT-S"], "", "", "cue_conflict/full", "texture_bias", "0.7373", ""
            )
        return found

    monkeypatch.setattr(file, "column", broken)
    wrong = [f for f in file.complements() if not f.agrees]
    assert [f.quantity.partition(":")[0] for f in wrong] == ["ViT-S", "PGD-AT (linf, eps=1)"]


def test_an_unexplained_disagreement_is_a_bug(monkeypatch):
    class OneCheck(dict):
        def get(self, name):
            return lambda: [Finding("triplets", "t", "q", 1.0, 2.0, False)]

    monkeypatch.setattr(module, "CHECKS", OneCheck(x=0))
    with pytest.raises(AssertionError, match="without an explanation"):
        check()


def test_unknown_paper():
    with pytest.raises(UserError, match="Did you mean 'refined_bias'"):
        check("refinedbias")
