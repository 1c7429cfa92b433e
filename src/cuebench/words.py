"""The words that results are printed with: columns, kinds of intervals, conditions, notes.

Metrics, protocols, cues and other parts explain themselves; everything else that stands in a score, a table or a note
is explained here, for ``cuebench explain``. A pattern has ``*`` for any text, as in file names. A condition such as
``16-way/class=cat`` is read part by part. ``textures/sure`` explains two parts together; ``*/label`` explains the part
``label`` where it is not the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from cuebench.interval_methods import METHODS

Kind = Literal[
    "column", "interval", "method", "condition", "instead of a number", "note", "observer", "answer", "prompt", "word"
]


class Word(NamedTuple):
    """A word or pattern, what kind of word it is, what it means, and in which protocols (empty: in all)."""

    pattern: str
    kind: Kind
    meaning: str
    protocols: tuple[str, ...] = ()


class Meaning(NamedTuple):
    """A part of a condition and the words that explain it: several where protocols use it differently."""

    text: str
    words: tuple[Word, ...]


_COLUMNS = {
    "protocol": "the published experiment that the score belongs to; `cuebench explain PROTOCOL`",
    "protocol_version": "version of the protocol; scores of different versions are not comparable",
    "observer": "who answered: a model, a person, people pooled, or an ideal observer",
    "condition": "which stimuli or which way of deciding the number is about; `cuebench explain CONDITION`",
    "metric": "what was computed; `cuebench explain METRIC`",
    "value": "the number; empty (NaN) where it is undefined, and the note says why",
    "ci_low": "lower end of the 95 % interval",
    "ci_high": "upper end of the 95 % interval",
    "ci_kind": "what would be drawn anew in the interval: images, shape_sources, texture_sources, two_way, subjects, "
    "three_way, data_sets, classes, seeds or shuffles; a number has one row in scores.parquet for each kind, and "
    "tables show the widest",
    "ci_method": "how the interval is made: linearised, jackknife, Wilson, percentiles of 1,000 resamples …; "
    "`cuebench explain METHOD`",
    "n": "what the value was divided by: trials, images or people",
    "reliability": "`correlate --corrected`: share of what observers differ by in a headline that other images and "
    "sources would show again; 1 minus the variance of errors that observers do not share, over that of the values",
    "n_excluded": "how many trials are outside the denominator; the note says why",
    "note": "what a reader must know: excluded trials, incomplete stimuli, undefined values, remarks of the observer",
}
_TRIALS = {
    "stimulus": "trials: the picture that was answered",
    "image": "trials: the image that the picture was made from; several conditions may show it",
    "label": "trials: the class of an ordinary image",
    "shape_source": "trials: the object that the shape was taken from (cat3); pictures that share one are not "
    "independent",
    "texture_source": "trials: the picture that the texture was taken from (dog2); pictures that share one are not "
    "independent",
    "person": "trials: who answered, for recorded people",
    "session": "trials: the session of the recording in which the answer was given",
    "decision": "trials: the class that was answered; empty for an answer outside all classes",
    "outcome": "trials: which cue the answer names: shape, texture, both (the two are of one class), other (another "
    "class) or undecided (no class)",
    "correct": "trials: whether the answer is the right class; in cue conflict, the class of the shape",
    "rank": "trials: place of the right class among all classes of the model; 1: answered first",
    "rt": "trials: response time in seconds",
    "difference": "compare: value of the first observer minus that of the second, on the images that both saw",
    "p_holm": "compare: p-value of a difference, corrected by Holm's method for all pairs of the protocol",
    "tied": "compare: observers that share a letter cannot be told apart",
    "needed_images": "compare: further images of the same sources with which the observed difference would be found in "
    "four of five studies, if it is the true one",
    "needed_times": "compare: how many times as many images, shapes and textures would do the same; `cuebench power` "
    "says which of them helps",
    "smallest_difference": "power: the smallest true difference of two observers that is found in four of five studies",
}
_STUDY = {
    "gap": "validity, study: accuracy on shape minus accuracy on texture, with its interval (study: mean of people)",
    "kappa": "study: Fleiss' κ, agreement between people beyond what their habits alone would give; 1: everybody alike",
    "order_effect": "study: mean of the group that answered in one order minus that of the other, over people",
    "reaction_time": "study: geometric mean over people of each person's median reaction time, in ms",
    "shape_matches": "study of triplets: share of choices of the match with the shape of the anchor",
    "tid_agreement": "study of texture words: share of answers that name the texture that TID identified",
    "shown_off": "study: measured minus planned duration of the images, in ms",
    "attention": "study: share of attention checks that were answered right",
    "excluded": "study: why the exclusion rules leave out an answer; empty: it counts",
    "rules_sha256": "study: hash of the exclusion rules, fixed before data were seen",
}
_HEADINGS = {
    "corrected for error": "correlate --corrected: correlation of what is behind two headlines, without errors",
    "given the others": "correlate --corrected: the correlation among observers that are alike in all other headlines",
    "predicted by the others": "correlate --corrected: share of a headline's variance that the others predict",
    "of its own, repeatable": "correlate --corrected: what is no error and not in the other headlines",
    "loading": "correlate --corrected: correlation of a headline with the factor that all have in common",
    "width": "study power: mean width of the 95 % interval",
    "80 % are narrower than": "study power: four of five studies of this size have an interval narrower than this",
    "holds the truth": "study power: share of the simulated studies whose 95 % interval holds what was planted",
    "design": "power: how many images, shapes and textures a study would have",
    "rows": "trials: how many single answers there are",
    "both": "trials: answers that name a class which is that of the shape and of the texture",
    "other": "trials: answers that name a class which is neither that of the shape nor that of the texture",
    "pair": "compare: two observers; the difference is the first minus the second",
    "p": "p-value: how often a difference or correlation at least as large would arise if there were none",
    "p (Holm)": "compare: p-value of the difference, corrected by Holm's method for all pairs of the protocol",
    "p (alone)": "compare: p-value of this difference if it were the only one that was asked for",
    "to tell them apart": "compare: how many more images, or how many times the sources and images, would find the "
    "observed difference in four of five studies, if it is the true one",
    "separable": "compare: whether the two observers can be told apart: p (Holm) below 0.05",
    "verdict": "compare: what the test says of a pair: different, or what it would take to tell them apart. "
    "texture-of: whether the prediction goes with the texture that was found",
    "value_first": "compare: value of the first observer, on the images that both saw",
    "value_second": "compare: value of the second observer, on the images that both saw",
    "interval": "compare: what would be drawn anew in the interval of the difference",
    "low": "lower end of the 95 % interval",
    "high": "upper end of the 95 % interval",
    "low_*": "lower end of the 95 % interval of this kind",
    "high_*": "upper end of the 95 % interval of this kind",
    "model": "compare, published: name of an observer",
    "models": "how many models a number is computed from, or a list holds",
    "first": "compare, published: the first of a pair",
    "second": "compare, published: the second of a pair",
    "x": "correlate: the column on the horizontal axis, METRIC@CONDITION",
    "y": "correlate: the column on the vertical axis, METRIC@CONDITION",
    "correlation": "correlate: how strongly two columns go together over models, with its 95 % interval",
    "Spearman": "correlation of ranks, −1 to 1, with its 95 % interval",
    "Kendall": "Kendall's τ: share of pairs in the same order minus share of pairs in the opposite order",
    "Kendall's τ": "share of pairs in the same order minus share of pairs in the opposite order, −1 to 1",
    "class": "validity: a class of the stimuli",
    "pure cue": "validity: recognition of stimuli that show one cue only, with which an outcome is correlated",
    "over": "validity: what would be drawn anew in the interval beside it",
    "among all": "validity: images that are correct where the answer is chosen among all classes of the model",
    "among the set's": "validity: images that are correct where it is chosen among the classes of the stimuli",
    "distorted": "validity: images that are correct only because all classes but those of the stimuli were removed",
    "paper": "published: the paper that a table is from",
    "table": "published: number of the table in the paper",
    "numbers": "published: how many numbers the table has",
    "metrics": "published: what the table has numbers of",
    "notes": "published: remarks about the table",
    "time": "run --plan: estimated duration",
    "machines": "run --plan: how many machines share the work",
    "price": "run --plan: what the machines cost, with --price for an hour of one",
    "checked": "doctor: what was looked at",
    "state": "doctor: ok, missing (an optional part) or broken",
    "details": "doctor: what was found",
    "what to do": "doctor: the command or step that fixes it",
    "textures by cosine": "texture-of: textures whose features are most similar to those of the image",
    "predictions": "texture-of: classes that the model answers, the most probable first",
    "name": "list: the name by which a part is asked for",
    "kind": "list: which sort of part, cue or label space it is",
    "summary": "list: what the part is, in a line",
    "version": "list: version of a protocol; it rises when scores change",
    "form": "list observers: how an observer of this source is written after -o",
    "example": "an observer of this source, as it is written after -o",
    "status": "list observers: ready, or what has to be installed",
    "drawn from": "list figures: what a figure needs: a run, runs, or nothing",
    "by file": "list suites: models whose weights are a file of their own",
    "present": "list suites: how many models have their weights on this machine",
    "on this machine": "list suites: the first of these models",
}
_INTERVALS = {
    "images": "95 % interval over images: the same experiment with other images from the same sources; it says nothing "
    "of other objects, textures or classes. Of a few correct (or wrong) answers it is conservative: at least 95 %",
    "shape_sources": "95 % interval over shape sources: other objects, the same textures",
    "texture_sources": "95 % interval over texture sources: other textures, the same objects",
    "two_way": "95 % interval over shape sources and texture sources together: other objects and other textures. In "
    "closed form (V = V_shapes + V_textures − V_pairs, on the logit scale); with fewer than 16 sources of a kind, or "
    "few decisions against the majority, it is conservative: it holds at least 95 %",
    "subjects": "95 % interval over people: other people, the same images",
    "three_way": "95 % interval over shape sources, texture sources and people together: other objects, other textures "
    "and other people",
    "data_sets": "95 % interval over data sets: other data sets of this kind, with their own images and people; "
    "Student's t over the data sets at hand",
    "classes": "95 % interval over classes: other classes of the same kind (in texture_association other textures). "
    "Where one class in ten would have nearly all of the value it is none: it held the truth in 84 % of simulated "
    "studies",
    "seeds": "95 % interval over random initialisations of the same architecture",
    "shuffles": "range over repetitions in which the classes were permuted: what arises without any association",
}
_CONFLICT = ("cue_conflict",)
_TEXTURE = ("texture_association",)
_SUPPRESSION = ("feature_suppression",)
_DECOMPOSITION = ("cue_decomposition", "cue_decomposition_segmentation")
_CORRUPTION = ("corruption_robustness",)
_TRIPLETS = ("triplets",)
_REFINED = ("refined_bias",)

_CONDITIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "[0-9]*-way",
        "the answer is chosen among this many classes. With fewer classes than the model has (16-way) its "
        "probabilities are averaged over the members of each class; with all classes of the model (1000-way) the "
        "first answer counts",
        (*_CONFLICT, "pure_shape"),
    ),
    ("silhouettes", "filled silhouettes, black on white: the global shape", ("pure_shape",)),
    ("edges", "edges of the photographs: the local shape", ("pure_shape",)),
    ("partial", "the literature's name of a decision among the classes of the stimuli: 16-way", _CONFLICT),
    ("full", "the literature's name of a decision among all classes of the model: 1000-way", _CONFLICT),
    ("class=*", "only stimuli of this class", ()),
    ("mean_of_subjects", "mean over people of each person's own value, every person with the same weight", _CONFLICT),
    ("with_aligned", "with the images whose shape and texture are of one class, as the authors compute it", _CONFLICT),
    ("top1", "the first answer must be the correct class", ("imagenet_accuracy",)),
    ("top5", "the correct class must be among the first five answers", ("imagenet_accuracy",)),
    ("faithful", "images resized to 256 and cut to 224 pixels, as the authors do for every model", _REFINED),
    ("native", "the whole image, nothing cut off", ()),
    ("weights", "images prepared as the model's own weights ask for", ()),
    ("clean", "without the defective files of the published set", _REFINED),
    ("clean", "ordinary photographs", _TEXTURE),
    ("clean", "the photographs before any corruption", _CORRUPTION),
    ("patch=*", "texture stimuli with this number of patches along a side", _REFINED),
    ("cue=*", "the shape stimuli or the texture stimuli", _REFINED),
    ("original", "the unchanged images", (*_DECOMPOSITION, *_SUPPRESSION)),
    ("eed", "shape cue: edge-enhancing diffusion removed the texture", _DECOMPOSITION),
    ("voronoi", "texture cue: the image cut into 32 Voronoi cells that were shuffled", _DECOMPOSITION),
    ("voronoi[0-9]*", "texture cue: the image cut into this many Voronoi cells that were shuffled", _DECOMPOSITION),
    ("patch", "texture cue: an 8 × 8 grid of square patches was shuffled", _DECOMPOSITION),
    ("diamond", "texture cue: a grid of diamonds was shuffled", _DECOMPOSITION),
    ("tex_eed", "texture cue: the image minus its edge-enhancing diffusion", _DECOMPOSITION),
    ("tex_eed_pat", "texture cue: tex_eed with shuffled patches", _DECOMPOSITION),
    ("edge_blur", "texture cue of Dai et al.: edges blurred, texture kept", _DECOMPOSITION),
    *(
        (f"{cue}/*", "pictures of this cue, only this class", _DECOMPOSITION[1:])
        for cue in ("original", "eed", "voronoi", "voronoi[0-9]*", "patch", "diamond", "tex_eed*", "edge_blur")
    ),
    ("*+*", "computed from the pictures of both cues: the shape cue and the texture cue", _DECOMPOSITION),
    ("*+*", "one picture with both suppressions", _SUPPRESSION),
    ("H=run*", "H, the population that qualities are divided by: the models of this run", _DECOMPOSITION),
    ("H=heinert2025*", "H, the population that qualities are divided by: the models of the paper", _DECOMPOSITION),
    ("H=*", "H, the population that qualities are divided by; `less N`: without N models", _DECOMPOSITION),
    (
        "conflict/*/*/*/*",
        "cue-conflict candidate: mixture (blend or sum), texture cue, weight of the shape, weight of the texture",
        _DECOMPOSITION,
    ),
    ("mean", "mean over all types of corruption", _CORRUPTION),
    ("mean_corrected", "mean over all types of corruption, with the corrected phase noise", _CORRUPTION),
    ("phase_noise_corrected", "phase noise with mirrored shifts, so that the image stays real", _CORRUPTION),
    ("level=*", "contrast that is left", _CORRUPTION),
    ("sigma=*", "standard deviation of the filter in pixels", _CORRUPTION),
    ("width=*", "width of the noise", _CORRUPTION),
    ("factor=*", "factor of the saturation: 0 grey, 1 unchanged", _CORRUPTION),
    ("probability=*", "probability that a pixel is replaced", _CORRUPTION),
    ("all", "all suppressions of shape and of texture together", _SUPPRESSION),
    ("suppress=*", "mean over the suppressions that remove this cue: shape, texture or colour", _SUPPRESSION),
    ("grid=*", "number of patches along a side", _SUPPRESSION),
    ("kernel=*", "width of the filter in pixels", _SUPPRESSION),
    ("strength=*", "strength of the filter", _SUPPRESSION),
    ("diameter=*", "diameter and colour width of the filter", _SUPPRESSION),
    ("alpha=*", "how much of the colour is removed", _SUPPRESSION),
    ("experiment1", "cue-conflict objects whose background fades out", _TRIPLETS),
    ("experiment2", "cue-conflict objects of different sizes", _TRIPLETS),
    ("experiment3", "novel objects of different sizes", _TRIPLETS),
    ("alpha=*", "how far the background has faded: 0 as in the image, 1 gone", (*_TRIPLETS, "textured_silhouettes")),
    ("novel", "novel objects", _TRIPLETS),
    ("match=*", "the two matches share the shape or this (size, colour) with the anchor, and nothing else", _TRIPLETS),
    ("choices", "recorded choices between the two matches of triplets", _TRIPLETS),
    ("size=*", "size of the object as a share of the image", _TRIPLETS),
    ("aligned", "all objects at the centre", _TRIPLETS),
    ("unaligned", "objects at random places", _TRIPLETS),
    ("layer=*", "features of this layer of the network", _TRIPLETS),
    (
        "layer=*",
        "mean over textures of the strongest association of each, with classes read from this layer: the class whose "
        "clean photographs have the nearest mean feature. output: the answers themselves",
        _TEXTURE,
    ),
    ("similarity=*", "similarity of features other than the cosine: dot (product) or euclid (distance)", _TRIPLETS),
    ("random_initialisation", "mean over random initialisations of the same architecture", _TRIPLETS),
    ("pair/texture=*/class=*", "association of one texture with one class", _TEXTURE),
    ("textures", "pictures of textures", _TEXTURE),
    ("textures/sure", "share of the texture pictures that are answered with more than 96 % confidence", _TEXTURE),
    ("textures/class=*", "pictures of this texture", _TEXTURE),
    ("adversarial", "natural adversarial images", _TEXTURE),
    ("adversarial-clean", "natural adversarial images minus clean photographs", _TEXTURE),
    (
        "label",
        "images grouped by their true class; the value of an image is whether it is answered correctly",
        _TEXTURE,
    ),
    ("prediction", "images grouped by the answered class; the value of an image is its confidence", _TEXTURE),
    (
        "*/correlation",
        "over classes: correlation of the share of images with the class's dominant texture and the mean value",
        _TEXTURE,
    ),
    ("*/textures", "mean number of textures in a class", _TEXTURE),
    ("*/with_dominant", "mean value of images that show the dominant texture of their class", _TEXTURE),
    ("*/without_dominant", "mean value of images that do not show the dominant texture of their class", _TEXTURE),
    ("*/gap", "images with the dominant texture of their class minus images without it", _TEXTURE),
    ("*/all", "mean value of all images", _TEXTURE),
    ("clean_errors", "wrong answers to clean photographs", _TEXTURE),
    ("*/prediction", "share of images whose texture is the usual one of the answered class only", _TEXTURE),
    ("*/label", "share of images whose texture is the usual one of the true class only", _TEXTURE),
    ("*/both", "share of images whose texture is the usual one of both classes", _TEXTURE),
    ("*/neither", "share of images whose texture is the usual one of neither class", _TEXTURE),
    ("*/not_label", "share of images whose texture is not the usual one of the true class", _TEXTURE),
    (
        "classes/more_prediction",
        "share of classes in which more images show the texture of the answer than that of the label",
        _TEXTURE,
    ),
    ("classes/only_prediction", "share of classes in which no image shows the texture of the label only", _TEXTURE),
    ("shuffled", "the same number after the classes were permuted: what arises without any association", _TEXTURE),
)
_REASONS = {
    "failed": "this observer could not be measured; the note says why. Exit status 1",
    "not_applicable": "this protocol cannot be applied to this observer (recorded answers to other images, answers "
    "of another kind); the note says why",
}
_NOTES = {
    "partial set*": "the stimuli are incomplete: the note says how many of the published ones there are",
    "limited to*": "--limit restricted the stimuli",
    "decided": "a trial is decided where the answer is the class of the shape or the class of the texture",
    "other": "the answer is a class, but neither that of the shape nor that of the texture",
    "no answer": "nothing was answered, or no class could be read: a person pressed no key, a model refused, named "
    "several classes or wrote something else; its text is stored (docs/chat_models.md)",
    "answers in words*": "what the answers of a model were read by: letter, name, match (a text encoder) or judge "
    "(another model); and why the others are undecided",
    "aligned": "shape and texture are of the same class: such images never count",
    "conflict": "a trial is in conflict where shape and texture are of different classes",
    "resampled": "drawn anew with replacement, in a bootstrap: few intervals are made so; ci_method says how each "
    "is made, ci_kind what it is about",
    "unreadable": "files that could not be decoded; they are excluded and counted",
    "unanswered": "stimuli without any recorded answer",
    "not seen by people": "images that no person of the run answered: they count for accuracy only",
    "in conditions left out": "images of conditions outside the means of human_alignment: control conditions, and "
    "those in which people are right in less than 20 % of the trials",
    "left out of the means*": "the numbers of this condition are not part of any mean; the note says why",
    "headline": "the one number of a protocol, declared with its condition, its direction and the value of people",
    "direction": "what a larger headline means: shape, texture, correct or human (more like people)",
    "plane": "the shape axis and the texture axis of a protocol that measures both",
    "origin": "where a part comes from: cuebench, an installed distribution with its version, a file, or this session",
    "partial": "in published tables: REFINED-BIAS's name for a decision among the 16 classes (16-way)",
    "full": "in published tables: REFINED-BIAS's name for a decision among all 1,000 classes (1000-way)",
    "TAV": "texture association value: how strongly a model ties a texture to a class; `explain texture_association`",
    "percentile": "share of the published models below a value, ties counted half",
    "strict": "a printed figure that follows from the printed digits without any allowance for rounding",
}
_OBSERVERS = {
    "model": "an observer that looks at pixels",
    "person": "one subject of a recording",
    "people": "all people of a recording, their answers pooled",
    "ideal": "an observer that answers from the truth, so that its bias is known",
    "control": "a small network whose bias is known from its training images: `cuebench controls`",
}
_PROMPTS = {
    "vqa": "the prompt that asks which of the lettered options describes the image",
    "vqa_shape": "the prompt that asks which option describes the shape of the object",
    "vqa_texture": "the prompt that asks which option describes the texture",
    "caption": "the prompt that asks for one sentence and shows no options; it is read by the names of the classes",
}
_ANSWERS = {
    "logits": "a number for each class",
    "features": "a vector for each image",
    "masks": "a class for each pixel",
    "decisions": "one class for each image",
    "choices": "which of two matches was chosen, for each triplet",
}

_NOUNS = {
    "cue": "what is left of an image when one kind of information is kept; `cuebench list cues`",
    "stimulus set": "a table of stimuli with their hashes, and the files",
    "response": "what an observer answered to one stimulus: logits, features, a mask, or a decision",
    "estimate": "a number with its intervals, what it was divided by, and what was excluded and why",
    "trial": "one answer of one observer to one stimulus in one condition: a row of `cuebench trials`",
    "score": "one row of the result: protocol, observer, condition, metric, value, interval, n, n excluded and why",
    "run": "a folder: the record (run.json), the manifests of the stimuli, the responses and the scores",
    "record": "run.json: what was asked for, with which versions, on which machine, and what was incomplete",
    "manifest": "the table of a stimulus set: one row for each stimulus, with its hash and what is known of it",
    "recipe": "how a shown picture is made: a file or a drawing, then cues",
    "shard": "the stimuli, 256 as a rule, whose answers are stored in one file",
    "batch": "the stimuli that an observer is shown at once",
    "view": "a named way of showing a protocol's stimuli, such as native: nothing is cut off",
    "part": "anything that can be added: a cue, metric, protocol, figure, reader, maker, dataset, source of observers",
    "callback": "bias during training: cuebench.callbacks.BiasOverTraining, for a PyTorch loop or Lightning; "
    "docs/training.md",
    "confidence interval": "a 95 % interval: ci_kind says what would be drawn anew, ci_method how it is made",
    "bootstrap": "drawing images, sources or people again and again, to see how far a number moves; intervals that are "
    "made so name their resamples in the column ci_method",
    "texture bias": "1 − shape bias: the share of decided trials answered by texture; `cuebench explain shape_bias`",
    "TAV": "texture association values: textures × classes; `cuebench explain texture_association`",
    "mask": "which pixels are the object: white; `NAME_mask.png` beside the picture, or an alpha channel",
    "composition": "`make cue_conflict --by composition`: the object is cut out and filled with the texture picture",
    "style": "`make cue_conflict --by style`: the photograph takes over the texture by style transfer (Gatys et al.)",
    "csv": "answers in a CSV are an observer: `-o recorded:FILE.csv`, one row for each answer; docs/files.md",
    "labels.json": "beside stimuli: which classes of a model count as which class of the stimuli; docs/files.md",
    "sources.csv": "beside stimuli of your own: the files that each was made of, and where its mask came from",
    "notebook": "all of the command line is Python: `cuebench.evaluate`, `load`, `report`; results show themselves",
    "queue": "`cuebench run … --shard i/n` for each of n jobs, or a job for each model and `cuebench merge`",
    "exit status": "0 done; 1 something was not measured or found wrong; 2 a mistake of the command; 130 Ctrl-C",
    "completion": "`cuebench --install-completion`, then a new shell: Tab completes verbs, flags and names",
    "resume": "give the same `cuebench run …` again, with the same --out: it goes on where it stopped",
    "few trials": "a number that rests on fewer trials than say much: look at its interval",
}

WORDS: tuple[Word, ...] = (
    *(Word(word, "word", meaning) for word, meaning in _NOUNS.items()),
    *(Word(word, "column", meaning) for word, meaning in {**_HEADINGS, **_COLUMNS, **_TRIALS, **_STUDY}.items()),
    *(Word(word, "interval", meaning) for word, meaning in _INTERVALS.items()),
    *(Word(word, "method", meaning) for word, meaning in METHODS.items()),
    *(Word(pattern, "condition", meaning, protocols) for pattern, meaning, protocols in _CONDITIONS),
    *(Word(word, "instead of a number", meaning) for word, meaning in _REASONS.items()),
    *(Word(word, "note", meaning) for word, meaning in _NOTES.items()),
    *(Word(word, "observer", meaning) for word, meaning in _OBSERVERS.items()),
    *(Word(word, "answer", meaning) for word, meaning in _ANSWERS.items()),
    *(Word(word, "prompt", meaning) for word, meaning in _PROMPTS.items()),
)
"""Every printed word that is not the name of a part."""


def words_for(text: str) -> list[Word]:
    """Return the words that a text can be, whatever their kind.

    >>> [word.kind for word in words_for("ci_low")]
    ['column']
    """
    matches = [w for w in WORDS if fnmatchcase(text, w.pattern.removeprefix("*/"))]
    return _most_specific([w for w in matches if "/" in text or "/" not in w.pattern.removeprefix("*/")])


def read_condition(condition: str, protocol: str = "", declared: Sequence[Word] = ()) -> list[Meaning]:
    """Explain a condition part by part.

    Parameters
    ----------
    condition : str
        As it stands in a score: ``16-way/class=cat``, ``eed+voronoi H=run``.
    protocol : str
        Whose condition; empty: the meanings in all protocols.
    declared : sequence of Word
        Further words, such as those that protocols of plug-ins declare.

    Returns
    -------
    list of Meaning
        In the order of the parts. A part without words is a name of something else (a cue), or not known.

    Examples
    --------
    >>> [meaning.text for meaning in read_condition("eed+voronoi H=run", "cue_decomposition")]
    ['eed+voronoi', 'eed', 'voronoi', 'H=run']
    """
    words = [w for w in (*WORDS, *declared) if w.kind == "condition"]
    known = [w for w in words if not protocol or not w.protocols or protocol in w.protocols]
    parts = _parts(condition, known)
    meanings, position = [], 0
    while position < len(parts):
        length, matches = _longest(parts, position, known)
        text = "/".join(parts[position : position + length])
        meanings.append(Meaning(text, matches))
        if length == 1 and "+" in text and "=" not in text:
            meanings += [Meaning(cue, _longest([cue], 0, known)[1]) for cue in text.split("+")]
        position += length
    return meanings


def _parts(condition: str, known: Sequence[Word]) -> list[str]:
    """Split a condition at ``/`` and before ``H=``; a class name may itself contain a ``/``."""
    parts: list[str] = []
    for part in condition.replace(" H=", "/H=").split("/"):
        if parts and "=" in parts[-1] and not _longest([parts[0], part], 1, known)[1]:
            parts[-1] += f"/{part}"
        else:
            parts.append(part)
    return parts


def _longest(parts: Sequence[str], position: int, known: Sequence[Word]) -> tuple[int, tuple[Word, ...]]:
    """Return how many parts are explained together from a position on, and by which words."""
    matches: dict[tuple[int, bool], list[Word]] = {}
    for word in known:
        inside = word.pattern.startswith("*/")
        patterns = word.pattern.removeprefix("*/").split("/")
        texts = parts[position : position + len(patterns)]
        fits = len(texts) == len(patterns) and all(fnmatchcase(t, p) for t, p in zip(texts, patterns))
        if fits and (position or not inside):
            matches.setdefault((len(patterns), inside), []).append(word)
    if not matches:
        return 1, ()
    best = max(matches)
    return best[0], tuple(_most_specific(matches[best]))


def _most_specific(words: Sequence[Word]) -> list[Word]:
    """Return the longest pattern of each protocol and kind: ``H=run*`` rather than ``H=*``."""
    longest: dict[tuple[tuple[str, ...], str], Word] = {}
    for word in words:
        key = (word.protocols, word.kind)
        if key not in longest or len(word.pattern) > len(longest[key].pattern):
            longest[key] = word
    return list(longest.values())
