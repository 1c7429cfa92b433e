"""Label spaces, and maps from many classes to few.

A ``LabelSpace`` is the ordered list of classes that an observer's logits stand for. A ``LabelMap`` says which of them
make up each *target* class of a stimulus set. Members are matched by id (WordNet id) first and by name second, so the
same 16-class map serves ImageNet-1k, ImageNet-21k and a user's own classes; what is not covered is reported, never
guessed. Built-in data: ``labels/*.json``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, KeysView, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from cuebench.arrays import Array, Floats, Positions
from cuebench.errors import UserError, all_problems, did_you_mean
from cuebench.labels.space_forms import SPACE_FORM, WORDNET, names_and_ids, read_csv_space
from cuebench.reading import decoded, is_regular, parse_csv, parse_json, read_bytes, user_path

FOLDER = Path(__file__).parent
FILE = "labels.json"
"""Name of the label map that lies with a stimulus set."""
MAP_FORM = '{"targets": {"cat": ["tabby", "n02123394"], "car": ["sports car"]}}'
"""An example of a label map."""
Aggregation = Literal["mean", "max"]
_POSITION = re.compile(r"(0|[1-9][0-9]{0,8})(?:\.0)?")
"""A position as text; pandas writes 281.0 where a column has gaps."""


@dataclass(frozen=True)
class LabelSpace:
    """The ordered classes of an observer's answers.

    Parameters
    ----------
    name : str
        Public name (``imagenet1k``) or the file it was read from.
    names : tuple of str
        Human-readable class names, in the order of the logits.
    ids : tuple of str
        Stable ids such as WordNet ids, same order; empty where there are none.
    """

    name: str
    names: tuple[str, ...]
    ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.ids and len(self.ids) != len(self.names):
            raise UserError(f"label space {self.name!r}: {len(self.names)} names but {len(self.ids)} ids")
        if len(set(self.ids)) < len(self.ids):
            repeated = [f"id {k!r} stands for {n} classes" for k, n in Counter(self.ids).items() if n > 1]
            raise all_problems(f"label space {self.name!r}", repeated, "every class has an id of its own")

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> dict[str, int]:
        """Id or name (as written, and normalised) → position. Ids win over names; an ambiguous name is left out."""
        normal = [_normal(n) for n in self.names]
        unique = {n for n, count in Counter(normal).items() if count == 1}
        positions = {n: i for i, n in enumerate(normal) if n in unique}
        positions.update({n: i for i, n in enumerate(self.names) if _normal(n) in unique})
        positions.update({k: i for i, k in enumerate(self.ids)})
        return positions

    def find(self, label: str | int) -> int | None:
        """Return the position of an id, a name or an index; None where the space has no such class."""
        if isinstance(label, int):
            return label if 0 <= label < len(self) else None
        return self.index.get(label, self.index.get(_normal(label)))

    def place(self, label: str | int) -> int | None:
        """Return the position of an id, a name or a position, also as text; None where the space has no such class.

        Where a class is called by a number, numbers as text are names.

        >>> LabelSpace("pets", ("cat", "dog")).place("1"), LabelSpace("digits", ("1", "2")).place("1")
        (1, 0)
        """
        found = self.find(label)
        number = None if found is not None or isinstance(label, int) else _POSITION.fullmatch(label.strip())
        return found if number is None or self._has_numbers else self.find(int(number[1]))

    @cached_property
    def _has_numbers(self) -> bool:
        return any(map(str.isdecimal, (*self.names, *self.ids)))


SUBSET = "?classes="
"""``in16?classes=cat,dog``: the label map with these target classes only."""


@dataclass(frozen=True)
class LabelMap:
    """Which classes of a big label space make up each target class.

    Parameters
    ----------
    name : str
        Public name (``in16``) or the file it was read from.
    targets : mapping of str to tuple
        Target class → members (ids, names, or positions in the observer's own space).
    """

    name: str
    targets: Mapping[str, tuple[str | int, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """The target classes, in order."""
        return tuple(self.targets)

    def only(self, names: Sequence[str]) -> LabelMap:
        """Return the map with some of its target classes, in its order."""
        if unknown := [name for name in names if name not in self.targets]:
            raise did_you_mean(f"target of the label map {self.name!r}:", unknown[0], self.targets)
        return LabelMap(self.name, {name: m for name, m in self.targets.items() if name in names})

    def resolve(self, space: LabelSpace) -> ResolvedMap:
        """Find every member in ``space``; a class that is named twice, by its id and by its name, counts once.

        Where a target lists nothing but WordNet ids, and the space has none that the map lists, a class with the name
        of the target is its member: such ids say nothing about these classes. Whatever else is listed and not found is
        ``missing``.

        Raises
        ------
        UserError
            A class is a member of two targets: an answer with it would be an answer with both.
        """
        by_name = {t: space.find(t) for t in self.targets}
        if len(space) == len(self.targets) and None not in by_name.values():
            return ResolvedMap(self.names, tuple(np.array([i]) for i in by_name.values()), {})
        members, missing, owners = [], {}, dict[int, list[str]]()
        ids = {m for listed in self.targets.values() for m in listed if WORDNET.fullmatch(str(m))}
        others = ids if all(space.find(m) is None for m in ids) else set()  # of another set of classes
        for target, listed in self.targets.items():
            found = {m: space.place(m) for m in listed if m not in others}
            positions = {i for i in found.values() if i is not None}
            if not found and (position := by_name[target]) is not None:
                positions = {position}
            members.append(np.array(sorted(positions), dtype=np.intp))
            if unknown := tuple(m for m, i in found.items() if i is None):
                missing[target] = unknown
            for i in positions:
                owners.setdefault(i, []).append(target)
        shared = [(space.names[i], targets) for i, targets in sorted(owners.items()) if len(targets) > 1]
        if shared:
            problems = [f"{name!r} is a member of {' and of '.join(map(repr, targets))}" for name, targets in shared]
            raise all_problems(f"label map {self.name!r}", problems, "list every class under one target only")
        return ResolvedMap(self.names, tuple(members), missing)


@dataclass(frozen=True)
class ResolvedMap:
    """A label map with its members as positions in one label space."""

    names: tuple[str, ...]
    members: tuple[Positions, ...]
    missing: Mapping[str, tuple[str | int, ...]]

    @property
    def uncovered(self) -> tuple[str, ...]:
        """Targets without a single member in the space: an observer can never answer them."""
        return tuple(n for n, m in zip(self.names, self.members) if not len(m))

    @property
    def covered(self) -> tuple[str, ...]:
        """Targets that an observer can answer."""
        return tuple(n for n, m in zip(self.names, self.members) if len(m))

    def target_of(self, size: int) -> Positions:
        """Position in the space → position of its target, −1 where it belongs to none."""
        owner = np.full(size, -1, dtype=np.intp)
        for t, m in enumerate(self.members):
            owner[m] = t
        return owner

    def aggregate(self, values: Array, how: Aggregation = "mean") -> Array:
        """Turn n × classes into n × targets by the mean or the maximum of each target's members.

        An uncovered target gives −inf, so that it is never the arg max.
        """
        out = np.full((len(values), len(self.names)), -np.inf)
        for t, m in enumerate(self.members):
            if len(m):
                of_members = values[:, m].astype(np.float64)
                out[:, t] = of_members.mean(axis=1) if how == "mean" else of_members.max(axis=1)
        return out


def coverage_problems(resolved: ResolvedMap, labels: Iterable[str]) -> list[str]:
    """Return a line for each target that an observer cannot answer, with the number of its stimuli."""
    counts = Counter(labels)
    problems = []
    for target in resolved.uncovered:
        members = [repr(member) for member in resolved.missing.get(target, ())]
        listed = f" by its listed members {', '.join(members[:3])}{' …' * (len(members) > 3)}" if members else ""
        problems.append(f"{target!r} is none of its classes{listed} ({counts[target]} stimuli have it)")
    return problems


def missing_members(targets: str, space: LabelSpace | None) -> tuple[str, ...]:
    """Return a note of the members that a label map lists and a label space does not have; empty where it has all.

    Parameters
    ----------
    targets : str
        Name or file of the label map; empty: none.
    space : LabelSpace or None
        Of an observer.
    """
    missing = label_map(targets).resolve(space).missing if targets and space is not None else {}
    if space is None or not missing:
        return ()
    number = sum(map(len, missing.values()))
    listed = sum(map(len, label_map(targets).targets.values()))
    shown = [f"{target!r} lists {member!r}" for target, members in missing.items() for member in members]
    name = "the label map" if map_file(targets) else f"the label map {targets!r}"
    return (
        f"{number:,} of {listed:,} members of {name} are no class of {space.name!r} and do not count "
        f"({', '.join(shown[:3])}{' …' * (number > 3)})",
    )


def shown_only(problems: Iterable[str]) -> list[str]:
    """Return the lines of `coverage_problems` about targets that some stimulus has: the others are never the answer."""
    return [p for p in problems if not p.endswith("(0 stimuli have it)")]


def coverage_hint(protocol: str, root: str) -> str:
    """Return what to do where an observer has no class for some stimuli of a protocol.

    Parameters
    ----------
    protocol : str
        Its name; a set in the folder of that name may have a label map there.
    root : str
        Folder of the stimuli.
    """
    hint = "name the observer's classes with ?labels=FILE, one for each logit"
    home = next((p for p in (Path(root), *Path(root).parents) if p.name == protocol), None)
    if home is None:
        return hint
    return f"{hint}; or list them as members of the stimuli's classes in {home / FILE}, e.g. {MAP_FORM}"


def softmax(logits: Array) -> Floats:
    """Return softmax over the last axis in float64: exp(z − max z) / Σ exp(z − max z)."""
    z = logits.astype(np.float64)
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def are_probabilities(values: Array) -> bool:
    """Tell whether every row is a distribution over classes: two or more, none below 0, their sum within 0.01 of 1."""
    sums = values.sum(axis=-1, dtype=np.float64)
    return values.shape[-1] > 1 and bool((np.abs(sums - 1) < 0.01).all() and (values >= 0).all())


def logits_of(probabilities: Array) -> Array:
    """Return the logarithms of probabilities, which softmax turns back.

    >>> softmax(logits_of(np.array([0.25, 0.75, 0.0]))).round(6).tolist()
    [0.25, 0.75, 0.0]
    """
    # The smallest float32: softmax of its logarithm gives 0 in every printed digit, and the logit stays finite.
    return np.asarray(np.log(np.maximum(probabilities, np.finfo(np.float32).tiny)))


Labels = str | Path | Sequence[str] | Mapping[str, int] | Mapping[int, str] | LabelSpace
"""What a label space can be given as: `label_space` reads it."""


def label_space(source: Labels) -> LabelSpace:
    """Return a label space from a built-in name, a JSON or CSV file, or names in the order of the outputs.

    JSON: ``{"names": [...], "ids": [...]}``, a plain list, or a map from names to indices or from indices to names (or
    to WordNet id and name, as in Keras's ``imagenet_class_index.json``).
    CSV: a column ``name``, optionally ``id`` and ``index``. In Python, a list or one of these maps (``class_to_idx``
    of torchvision, ``id2label`` of transformers).

    >>> label_space({"cat": 1, "dog": 0}).names
    ('dog', 'cat')
    """
    if isinstance(source, LabelSpace):
        return source
    if not isinstance(source, (str, Path)):
        return _space_in_python(source)
    path = _locate(source, "label space")
    return _read_space(path, read_bytes(path, "label space"))


def label_map(source: str | Path | Mapping[str, Sequence[str | int]] | LabelMap) -> LabelMap:
    """Return a label map from a built-in name, a JSON file ``{target: [members]}``, a CSV (target, member), a dict."""
    if isinstance(source, LabelMap):
        return source
    if isinstance(source, Mapping):
        return LabelMap("custom", _checked_targets("custom", source))
    whole, subset, names = str(source).partition(SUBSET)
    if subset:
        return label_map(whole).only(names.split(","))
    path = _locate(source, "label map")
    return _read_map(path, read_bytes(path, "label map"))


def members_by_name(name: str) -> tuple[str | int, ...]:
    """Return the ImageNet classes that a class of the user's is, by its name alone; empty where the name says nothing.

    The 16 classes of Geirhos et al. 2019 come first, then the names of ImageNet classes.

    >>> members_by_name("zebra"), len(members_by_name("cat")), members_by_name("blorp")
    (('n02391049',), 6, ())
    """
    imagenet = label_space("imagenet1k")
    position = imagenet.find(name)
    return tuple(label_map("in16").targets.get(name, () if position is None else (imagenet.ids[position],)))


class MapFile(NamedTuple):
    """A label map in a file of the user's, and which of its classes are meant."""

    path: Path
    subset: str
    """``?classes=…``, or empty."""


def map_file(source: str) -> MapFile | None:
    """Return the file of a label map; None for one that ships with cuebench, and for none."""
    whole, mark, names = source.partition(SUBSET)
    return MapFile(Path(whole), mark + names) if Path(whole).suffix else None


def built_in() -> dict[str, str]:
    """Return name → kind (``space`` or ``map``) of the label files that ship with cuebench."""
    return {p.stem: "map" if "targets" in json.loads(p.read_text("utf-8")) else "space" for p in _files()}


def _space_in_python(source: Iterable[Any]) -> LabelSpace:
    """Return the label space of names in an order that somebody chose."""
    kind, hint = type(source).__name__, "a list of names, in the order of the outputs"
    if isinstance(source, Set) and not isinstance(source, KeysView):
        raise UserError(f"a label space was given as a {kind}, which has no order", hint)
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        raise UserError(f"a label space was given as {kind}", f"{hint}; a file or a name such as imagenet1k")
    names, ids = names_and_ids("custom", source if isinstance(source, Mapping) else list(source))
    return LabelSpace("custom", names, ids)


# Kept by their contents, not by their path: a file that is edited in a notebook is read again.
@lru_cache(maxsize=64)
def _read_space(path: Path, content: bytes) -> LabelSpace:
    data = read_csv_space(path, content) if path.suffix.lower() == ".csv" else _json(path, content)
    names, ids = names_and_ids(str(path), data)
    # Ids tell ImageNet's Cardigan, a dog, from cardigan.
    if bad := [] if ids else spelled_differently(names):
        raise all_problems(f"label space {path}", bad, f"expected {SPACE_FORM}")
    return LabelSpace(path.stem, names, ids)


@lru_cache(maxsize=64)
def _read_map(path: Path, content: bytes) -> LabelMap:
    targets: Any = {}
    if path.suffix.lower() == ".csv":
        for row in _csv_rows(path, content, {"target", "member"}):
            targets.setdefault(row["target"], []).append(row["member"])
    else:
        data = _json(path, content)
        targets = data.get("targets", data) if isinstance(data, dict) else data
    return LabelMap(path.stem, _checked_targets(str(path), targets))


def _checked_targets(name: str, targets: Any) -> dict[str, tuple[str | int, ...]]:
    """Return target → members; refuse anything that is not a map from targets to lists of members."""
    hint = f"expected {MAP_FORM}"
    if not isinstance(targets, Mapping):
        raise UserError(f"label map {name} is a {type(targets).__name__}, not a map", hint)
    bad = [
        f"target {target!r} has no list of members"
        for target, members in targets.items()
        if isinstance(members, (str, Mapping)) or not isinstance(members, Iterable) or not list(members)
    ]
    bad += spelled_differently([str(target) for target in targets])
    if bad or not targets:
        raise all_problems(f"label map {name}", bad or ["no targets"], hint)
    checked = {
        str(target): tuple(int(m) if isinstance(m, np.integer) else m for m in members)
        for target, members in targets.items()
    }
    bad = [
        f"target {target!r} has the member {m!r}"
        for target, members in checked.items()
        for m in members
        if isinstance(m, bool) or not isinstance(m, (str, int))
    ]
    if bad:
        raise all_problems(f"label map {name}", bad, "a member is an id, a name or a position")
    return checked


def spelled_differently(names: Iterable[str]) -> list[str]:
    """Return a problem for names that differ only by case, hyphens or spaces: an answer would be an answer with both.

    Two names that are alike to the letter are no mistake, as two classes of ImageNet are called ``crane``: such a name
    finds neither of them.
    """
    spellings: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        spellings.setdefault(_normal(name), []).append(name)
    return [f"{' and '.join(map(repr, same))} differ only by case or spaces" for same in spellings.values() if same[1:]]


def _locate(source: str | Path, kind: str) -> Path:
    path = user_path(source)
    if path.suffix.lower() in {".json", ".csv"}:
        if is_regular(path):
            return path
        form = MAP_FORM if kind == "label map" else SPACE_FORM
        raise UserError(f"{kind} file {path} does not exist", f"write it, as JSON: {form}")
    if is_regular(path):
        raise UserError(f"{kind} file {path} is neither .json nor .csv", "docs/files.md shows the two formats")
    built = {p.stem: p for p in _files()}
    if str(source) not in built:
        raise did_you_mean(kind, str(source), built)
    return built[str(source)]


def _files() -> list[Path]:
    return sorted(FOLDER.glob("*.json"))


def _json(path: Path, content: bytes) -> Any:
    return parse_json(decoded(content, str(path)), str(path))


def _csv_rows(path: Path, content: bytes, needed: set[str]) -> list[dict[str, str]]:
    rows = parse_csv(decoded(content, str(path)), str(path), needed=sorted(needed)).rows
    if not rows:
        raise UserError(f"{path} holds no row, only a header", "docs/files.md shows the format")
    short = [f"row {i} has no {c}" for i, row in enumerate(rows, 1) for c in sorted(needed) if not row[c]]
    if short:
        raise all_problems(str(path), short)
    return rows


def _normal(name: str) -> str:
    return name.strip().lower().replace("_", " ").replace("-", " ")
