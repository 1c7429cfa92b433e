"""The classes of a segmentation data set: which numbers in its masks stand for which class.

A file of classes is JSON::

    {"dataset": "oxford_pets",
     "classes": [{"name": "animal", "ids": [1], "members": ["cat", "dog"]},
                 {"name": "background", "ids": [2]}],
     "ignore": [3]}

``ids`` are values in the masks. ``members`` are classes of the *model* that count as this class (default: the name of
the class). An answer that is no member of any class is wrong, never ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.arrays import Array
from cuebench.errors import UserError, all_problems
from cuebench.reading import read_json, user_path

IGNORE = 255
"""Value of pixels that are not scored, in the masks that cuebench writes."""
FORM = '{"classes": [{"name": "road", "ids": [7]}, …], "ignore": [255]}'


@dataclass(frozen=True)
class Classes:
    """The classes of a segmentation data set.

    Parameters
    ----------
    dataset : str
        Its name; a frozen population of models is looked up by it.
    names : tuple of str
        In the order of the positions 0, 1, … in the masks that cuebench writes.
    ids : mapping of int to int
        Value in the masks of the data set → position.
    ignore : frozenset of int
        Values that are not scored.
    members : mapping of str to tuple of str
        Class → classes of a model that count as it.
    """

    dataset: str
    names: tuple[str, ...]
    ids: Mapping[int, int]
    ignore: frozenset[int]
    members: Mapping[str, tuple[str, ...]]

    def unknown(self, mask: Array) -> list[int]:
        """Return the values of a mask that are neither a class nor ignored."""
        return sorted(set(np.unique(mask).tolist()) - set(self.ids) - self.ignore)

    def positions(self, mask: Array) -> Array:
        """Return the mask with positions of classes, and 255 for what is ignored, as uint8."""
        table = np.full(int(max(mask.max(initial=0), *self.ids, *self.ignore, 0)) + 1, IGNORE, np.uint8)
        for value, position in self.ids.items():
            table[value] = position
        return table[mask]

    def label_map(self) -> dict[str, Any]:
        """Return what ``labels.json`` beside the stimuli holds."""
        return {
            "about": f"Classes of {self.dataset}: target → classes of a model; {IGNORE} in a mask is not scored.",
            "dataset": self.dataset,
            "targets": {name: list(self.members[name]) for name in self.names},
        }


def numbered(dataset: str, names: Sequence[str], first: int = 0, ignore: Sequence[int] = (IGNORE,)) -> Classes:
    """Return classes whose values in the masks count up from ``first``."""
    ids = {first + i: i for i in range(len(names))}
    return Classes(dataset, tuple(names), ids, frozenset(ignore), {n: (n,) for n in names})


def read_classes(path: Path) -> Classes:
    """Read a file of classes; the error lists everything that is wrong with it."""
    data = read_json(user_path(path), "classes file", hint=f"expected {FORM}")
    rows = data.get("classes") if isinstance(data, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(r, dict) for r in rows):
        raise UserError(f"{path} holds no list of classes", f"expected {FORM}")
    ignore = data.get("ignore", [])
    if not isinstance(ignore, list) or not isinstance(data.get("dataset", ""), str):
        raise UserError(f"{path}: ignore must be a list of numbers, dataset a name", f"expected {FORM}")
    problems = _problems(rows, ignore)
    if problems:
        raise all_problems(f"classes file {path}", problems, f"expected {FORM}")
    members = {r["name"]: tuple(r.get("members", [r["name"]])) for r in rows}
    ids = {value: position for position, r in enumerate(rows) for value in r["ids"]}
    ignored = frozenset(ignore)
    return Classes(str(data.get("dataset", Path(path).stem)), tuple(members), ids, ignored, members)


def _problems(rows: Sequence[Mapping[str, Any]], ignore: Sequence[Any]) -> list[str]:
    names = [r.get("name") for r in rows]
    problems = [f"class {i} has no name" for i, n in enumerate(names) if not isinstance(n, str) or not n]
    spellings = Counter(str(n).strip().lower() for n in names)
    problems += [f"class {n!r} is listed twice" for n, count in spellings.items() if count > 1]
    problems += [f"class {r.get('name')!r} has no ids" for r in rows if not isinstance(r.get("ids"), list)]
    members = [(r.get("name"), r.get("members", [""])) for r in rows]
    problems += [
        f"the members of class {name!r} are no list of names"
        for name, listed in members
        if not isinstance(listed, list) or not listed or not all(isinstance(m, str) for m in listed)
    ]
    values = [v for r in rows if isinstance(r.get("ids"), list) for v in r["ids"]]
    bad = [v for v in [*values, *ignore] if isinstance(v, bool) or not isinstance(v, int) or not 0 <= v <= 65535]
    problems += [f"id {v!r} is not a whole number from 0 to 65535" for v in bad]
    counts = Counter(v for v in values if isinstance(v, int))
    clashes = sorted(v for v, count in counts.items() if count > 1 or v in ignore)
    problems += [f"id {v} stands for two things" for v in clashes]
    problems += [f"{len(rows)} classes; a mask holds at most {IGNORE}"] * (len(rows) > IGNORE)
    return problems
