"""Damages to formulas: each is a mistake that someone could make, and the tests that should notice it.

A damage replaces one text of one file. ``tests`` are the quick ones for that formula: of the metric, of the protocol on
planted answers, of published numbers; ``calibration NAME`` stands for the simulated studies of one protocol.
"""

from __future__ import annotations

from typing import NamedTuple


class Damage(NamedTuple):
    """One mistake: what it is, where, which text becomes which, and what should notice."""

    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


METRICS, STATISTICS, PROTOCOLS = "tests/metrics", "tests/statistics", "tests/protocols"


def _of(file: str, tests: str, *damages: tuple[str, str, str]) -> list[Damage]:
    return [Damage(what, file, old, new, tuple(tests.split("; "))) for what, old, new in damages]


DAMAGES: list[Damage] = [
    *_of(
        "metrics/cue_conflict.py",
        "tests/metrics/test_ratios.py; calibration cue_conflict",
        (
            "swapped cues",
            "return Outcomes(conflict, conflict & (answer == shapes), conflict & (answer == textures))",
            "return Outcomes(conflict, conflict & (answer == textures), conflict & (answer == shapes))",
        ),
        (
            "shape bias over all conflict trials instead of the decided ones",
            "terms=lambda trials: Terms(trials.shape, trials.decided)",
            "terms=lambda trials: Terms(trials.shape, trials.conflict)",
        ),
        ("aligned images count as conflict", "conflict = shapes != textures", "conflict = np.ones(len(shapes), bool)"),
        (
            "texture accuracy over decided trials",
            "lambda trials: Terms(trials.texture, trials.conflict)",
            "lambda trials: Terms(trials.texture, trials.decided)",
        ),
        (
            "decided fraction counts shape answers only",
            "terms=lambda trials: Terms(trials.decided, trials.conflict)",
            "terms=lambda trials: Terms(trials.shape, trials.conflict)",
        ),
    ),
    *_of(
        "labels/decisions.py",
        "tests/metrics/test_decisions.py",
        ("maximum of the members instead of their mean", 'np.exp(below), "mean")', 'np.exp(below), "max")'),
        ("mean of logits instead of probabilities", "aggregate(np.exp(below)", "aggregate(np.asarray(below)"),
        ("ties decided by rounding", "NONE, first_highest(scores)", "NONE, scores.argmax(axis=1)"),
        (
            "decisions in the whole label space by the lowest logit",
            "[logits.argmax(axis=1)]",
            "[logits.argmin(axis=1)]",
        ),
    ),
    *_of(
        "labels/ranks.py",
        "tests/metrics/test_ranks.py",
        ("rank off by one (numba)", "            larger = 1\n", "            larger = 0\n"),
        ("ties ranked by the later class (numba)", "larger += values[j] >= top", "larger += values[j] > top"),
        (
            "rank off by one (numpy)",
            "ranks = 1 + np.count_nonzero(logits > top",
            "ranks = np.count_nonzero(logits > top",
        ),
        ("rank of the worst member (numpy)", "top = of_members.max(axis=1", "top = of_members.min(axis=1"),
        ("ties ignored (numpy)", "for row in tied:", "for row in tied[:0]:"),
    ),
    *_of(
        "metrics/accuracy.py",
        "tests/metrics/test_accuracy.py; tests/protocols/test_imagenet_accuracy.py",
        ("rank off by one", "ranks: Array = 1 + (", "ranks: Array = 2 + ("),
        ("ties ranked by the later class", "[None] < target[:, None]", "[None] > target[:, None]"),
    ),
    *_of(
        "metrics/refined_bias.py",
        "tests/metrics/test_sensitivity.py; calibration refined_bias",
        ("reciprocal rank off by one", "return 1.0 / values", "return 1.0 / (values + 1)"),
        ("top 5 without the fifth", "lambda ranks: ranks <= 5", "lambda ranks: ranks < 5"),
        (
            "swapped preferences",
            'if cue == "shape" else texture_sensitivity',
            'if cue != "shape" else texture_sensitivity',
        ),
        (
            "distorted predictions among correct ones",
            "best_ranks(logits, target, members) > 1)",
            "best_ranks(logits, target, members) > 0)",
        ),
    ),
    *_of(
        "metrics/cue_decomposition.py",
        "tests/metrics/test_cue_decomposition.py; calibration cue_decomposition",
        ("s and t exchanged", "quotient(shape, s), quotient(texture, t)", "quotient(shape, t), quotient(texture, s)"),
        ("R_cd twice as large", "quotient(shape + texture, 2 * original)", "quotient(shape + texture, original)"),
        (
            "S_cd without the population",
            "quotient(shape, s), quotient(texture, t)",
            "quotient(shape, 1), quotient(texture, 1)",
        ),
    ),
    *_of(
        "protocols/cue_decomposition/populations.py",
        "calibration cue_decomposition; tests/metrics/test_cue_decomposition.py",
        ("models that the paper trained are in H", "!= TRAINED and", '!= "" and'),
        ("first member instead of the mean", "mean = mean_estimate(members)", "mean = members[0]"),
    ),
    *_of(
        "metrics/mean_iou.py",
        "tests/metrics/test_cue_decomposition.py; calibration cue_decomposition_segmentation",
        ("union counts the overlap twice", "union = truth + answer - correct", "union = truth + answer"),
        (
            "absent classes count as 0",
            "where=classes > 0)\n\n\ndef mean_iou(",
            "where=classes < 0) + total / ious.shape[1]\n\n\ndef mean_iou(",
        ),
        ("answered area from the wrong axis", "self.counts[:, :-1].sum(axis=0)", "self.counts[:, :-1].sum(axis=1)"),
    ),
    *_of(
        "metrics/shape_reliance.py",
        "calibration feature_suppression; tests/protocols/test_feature_suppression.py",
        (
            "swapped cues",
            "shape, texture = np.maximum(0.0, 1 - without_shape), np.maximum(0.0, 1 - without_texture)",
            "texture, shape = np.maximum(0.0, 1 - without_shape), np.maximum(0.0, 1 - without_texture)",
        ),
        ("wrong denominator", "quotient(shape, shape + texture)", "quotient(shape, 1 + texture)"),
    ),
    *_of(
        "metrics/relative_accuracy.py",
        "calibration feature_suppression; tests/protocols/test_feature_suppression.py",
        ("best level instead of the mean", "quotient(np.mean(correct, axis=0)", "quotient(np.max(correct, axis=0)"),
    ),
    *_of(
        "protocols/feature_suppression/scores.py",
        "calibration feature_suppression; tests/protocols/test_feature_suppression.py",
        (
            "pairs of suppressions listed among single ones",
            "if len(kinds_of(name)) == 1:",
            "if len(kinds_of(name)) >= 1:",
        ),
        (
            "reliance from exchanged kinds",
            'losses = by_kind["shape"], by_kind["texture"]',
            'losses = by_kind["texture"], by_kind["shape"]',
        ),
    ),
    *_of(
        "metrics/relative_robustness.py",
        "calibration corruption_robustness; tests/metrics/test_cue_decomposition.py",
        ("best level instead of the mean", "mean = np.mean(corrupted, axis=0)", "mean = np.max(corrupted, axis=0)"),
    ),
    *_of(
        "metrics/triplets.py",
        "tests/metrics/test_triplets.py; tests/metrics/test_by_hand.py; calibration triplets",
        ("ties count for shape", "usable & (gap > limit)", "usable & (gap >= -limit)"),
        (
            "swapped matches",
            "to_shape, to_texture = flat[row + triplets.shape], flat[row + triplets.texture]",
            "to_shape, to_texture = flat[row + triplets.texture], flat[row + triplets.shape]",
        ),
        ("cosine without the length of the match", "to_shape * inverse[triplets.shape] -", "to_shape -"),
        (
            "draws added up instead of averaged",
            "np.asarray(np.mean(counts, axis=0))",
            "np.asarray(np.sum(counts, axis=0))",
        ),
    ),
    *_of(
        "metrics/triplet_shape_bias.py",
        "tests/metrics/test_triplets.py; calibration triplets",
        (
            "ties outside the denominator",
            "Terms(decisions.shape, decisions.trials)",
            "Terms(decisions.shape, decisions.shape + decisions.texture)",
        ),
    ),
    *_of(
        "metrics/triplet_bias_gain.py",
        "calibration triplets; tests/protocols/test_triplets.py",
        ("largest baseline instead of the mean", "values.mean(axis=-1)", "values.max(axis=-1)"),
    ),
    *_of(
        "metrics/texture_association.py",
        "tests/metrics/test_texture_association.py; calibration texture_association",
        ("entropy of the class left out", "pt * texture * po * outcome", "pt * texture * po"),
        ("entropy to another base", "base = np.log(np.maximum(ways, 1)", "base = np.log2(np.maximum(ways, 1)"),
        ("least similar texture", "best = first_highest(cosines)", "best = first_highest(-cosines)"),
        ("equal textures told apart by rounding", "best = first_highest(cosines)", "best = cosines.argmax(axis=1)"),
        ("associations of rounding", "np.where(certainty < ROUNDING, 0, certainty)", "certainty"),
        (
            "an interval of the mean of resamples, not of one more sample",
            "spread = draws.std(axis=0, ddof=1)",
            "spread = draws.std(axis=0, ddof=1) / len(draws) ** 0.5",
        ),
    ),
    *_of(
        "metrics/texture_confidence.py",
        "tests/metrics/test_texture_association.py; calibration texture_association",
        ("sure answers are the unsure ones", "(values > SURE)", "(values <= SURE)"),
        ("standard deviation instead of standard error", "/ (self.n - 1) if self.n > 1", "/ 1 if self.n > 1"),
        (
            "second softmax term forgotten",
            "return best, 1 / np.exp(shifted).sum(axis=1)",
            "return best, 1 / np.exp(shifted).max(axis=1)",
        ),
    ),
    *_of(
        "metrics/error_consistency.py",
        "tests/metrics/test_error_consistency.py; tests/metrics/test_by_hand.py; calibration cue_conflict",
        ("agreement only of right answers", "n - first - second + 2 * both", "both"),
        ("agreement by chance of right answers only", "first * second + (n - first) * (n - second)", "first * second"),
        ("trials that one of both saw", "shared = seen[i] & seen[j]", "shared = seen[i] | seen[j]"),
        (
            "undefined pairs count as 0",
            "np.divide(total, number, out",
            "np.divide(total, kappas.shape[1] + 0 * number, out",
        ),
    ),
    *_of(
        "metrics/human_agreement.py",
        "calibration human_alignment; tests/protocols/test_human_alignment.py",
        ("difference of accuracies not squared", "(apart / trials) ** 2", "apart / trials"),
        (
            "observed consistency counts right answers once",
            "(trials - first - second + 2 * both) / trials",
            "(trials - first - second + both) / trials",
        ),
        ("bound from the stronger observer", "most = np.minimum(first, second)", "most = np.maximum(first, second)"),
        ("tied ranks not shared", "np.asarray(below + (equal + 1) / 2)", "np.asarray(below + 1)"),
    ),
    *_of(
        "protocols/human_alignment/numbers.py",
        "tests/protocols/test_human_alignment.py",
        (
            "control conditions in the means",
            "kept = [place for place in places if place not in left_out]",
            "kept = list(places)",
        ),
        ("bias added instead of taken out", "return Spread(values - bias,", "return Spread(values + bias,"),
        ("variance of a pool of people as of independent pairs", "(number - 1) ** 2 / number *", "1 / number *"),
    ),
    *_of(
        "metrics/recognition.py",
        "calibration pure_shape; tests/metrics/test_by_hand.py",
        (
            "wrong answers are right",
            "return Answers(np.asarray(given == truth))",
            "return Answers(np.asarray(given != truth))",
        ),
    ),
    *_of(
        "tables/engine.py",
        "calibration pure_shape; tests/protocols/test_pure_shape.py; tests/tables/test_decide.py",
        ("interval over images where classes are meant", '"classes": "label",', '"classes": "id",'),
        ("missing answers are forgotten", "- len(group.trials) - unreadable", "- len(group.stimuli) * trials.people"),
    ),
    *_of(
        "tables/engine.py",
        "calibration cue_conflict; tests/protocols/test_cue_conflict.py",
        (
            "interval over images where textures are meant",
            '"texture_sources": "texture_source"',
            '"texture_sources": "id"',
        ),
    ),
    *_of(
        "tables/decide.py",
        "calibration cue_conflict; tests/protocols/test_cue_conflict.py; tests/tables/test_decide.py",
        (
            "label spaces exchanged",
            "spaces = {few: columns[AMONG_TARGETS]",
            "spaces = {few: columns[AMONG_ALL]",
        ),
        ("no answer is another class", "nothing = np.tile(unread, count)", "nothing = np.tile(unread & False, count)"),
    ),
    *_of(
        "protocols/refined_bias/scores.py",
        "calibration refined_bias; tests/protocols/test_refined_bias.py",
        ("interval over images where classes are meant", '"classes": "class_numbers"}', '"classes": "images"}'),
    ),
    *_of(
        "statistics/intervals.py",
        "tests/statistics/test_intervals.py; tests/statistics/test_streams.py; calibration textured_silhouettes",
        (
            "unseeded generator",
            'return np.random.default_rng(int.from_bytes(digest[:16], "big"))',
            "return np.random.default_rng()",
        ),
        ("seed ignored", 'f"{seed}|{stream}"', 'f"{stream}"'),
        ("interval over images where sources are meant", "values = getattr(self, kind, None)", "values = self.images"),
        (
            "interval of 90 %",
            "    tail = (1 - level) / 2\n    low, high = np.quantile(defined",
            "    tail = 1 - level\n    low, high = np.quantile(defined",
        ),
        (
            "nothing is drawn: every cluster once",
            "part[:] = np.bincount(draws.ravel(), minlength=part.size).reshape(part.shape)",
            "part[:] = 1",
        ),
    ),
    *_of(
        "statistics/clustered.py",
        "tests/statistics/test_clustered.py; tests/statistics/test_paired.py; calibration textured_silhouettes",
        (
            "noise of single images counted twice",
            "value = base + sum(max(0.0, one_way[way] - base) for way in ways[:2])",
            "value = sum(one_way[way] for way in ways[:2])",
        ),
        (
            "textures left out of both ways",
            "value = base + sum(max(0.0, one_way[way] - base) for way in ways[:2])",
            "value = one_way[ways[0]]",
        ),
        (
            "a share of 0 or 1 is certain",
            "worth = min(trials, sources)",
            "worth = 1e6 * trials",
        ),
        (
            "interval over images where sources are meant",
            "sums, g = np.bincount(self.code, psi, self.number), self.number",
            "sums, g = np.bincount(np.arange(len(psi)), psi), len(psi)",
        ),
        ("normal distribution instead of Student's", "stdtrit(max(df, 1), (1", "stdtrit(max(df, 1e9), (1"),
        ("logit scale without its slope", "reach / span / (share * (1 - share))", "reach / span"),
        ("influence without the ratio", "(top - ratio.value * bottom) / ratio.denominator", "top / ratio.denominator"),
        (
            "gradient twice as large",
            "(moved_values[: len(part)] - moved_values[len(part) :]) / (2 * step)",
            "(moved_values[: len(part)] - moved_values[len(part) :]) / step",
        ),
    ),
    *_of(
        "statistics/paired.py",
        "tests/statistics/test_paired.py",
        ("difference of the wrong sign", "value = a.value - b.value", "value = b.value - a.value"),
        (
            "p at another level than that of the interval",
            "if leaves_out_0(alpha) else (math.log(alpha), 0.0)",
            "if leaves_out_0(alpha / 2) else (math.log(alpha), 0.0)",
        ),
        (
            "people who are not drawn anew",
            '("subjects", "three_way") if "two_way" in by_kind',
            '("subjects",) if "two_way" in by_kind',
        ),
    ),
    *_of(
        "statistics/estimates.py",
        "tests/statistics/test_estimates.py; calibration cue_decomposition_segmentation",
        ("jackknife without its factor", "return float((g - 1) / g *", "return float(1 / g *"),
        (
            "bias added instead of taken away",
            "bias += (g - 1) * (mean - value)",
            "bias -= (g - 1) * (mean - value)",
        ),
        ("variance of single values instead of the mean", "float(values.var(ddof=1)) / n", "float(values.var(ddof=1))"),
    ),
    *_of(
        "statistics/correlations.py",
        "tests/statistics/test_correlations.py",
        (
            "unsorted ties in ranks",
            "middle = np.cumsum(size, axis=1) - (size - 1) / 2",
            "middle = np.cumsum(size, axis=1)",
        ),
        ("Fisher's interval with n", "spare = n - (4 if", "spare = n - (0 if"),
    ),
    *_of(
        "statistics/multiple.py",
        "tests/statistics/test_multiple.py",
        (
            "Holm without accumulation",
            "return np.maximum.accumulate(p * (len(p) - np.arange(len(p))))",
            "return p * (len(p) - np.arange(len(p)))",
        ),
    ),
]
"""Every damage that is tried."""

EXPLAINED: dict[str, str] = {
    "pairs of suppressions listed among single ones": "adds rows for pairs; the means of each kind name their members",
}
"""Damage that no test notices → why none should."""
