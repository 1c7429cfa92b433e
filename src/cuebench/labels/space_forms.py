"""The forms in which label spaces are written: every form says the order of the classes, or is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cuebench.errors import UserError, all_problems
from cuebench.reading import decoded, parse_csv

WORDNET = re.compile("n[0-9]{8}")
"""A WordNet id."""
SPACE_FORM = '["tabby", "golden retriever"], {"names": [...], "ids": [...]}, {"tabby": 0, …} or {"0": "tabby", …}'
"""Examples of a label space."""
SPACE_COLUMNS = ("name", "index", "id")
"""The columns of a label space as CSV."""
SPACE_KEYS = ("about", "name", "names", "ids")
"""The keys of a label space as JSON; ``about`` and ``name`` are for readers."""


def names_and_ids(name: str, data: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the classes in the order of the outputs, from any of the forms of a label space."""
    hint, ids = f"expected {SPACE_FORM}", []
    if isinstance(data, Mapping) and isinstance(data.get("targets"), Mapping) and "names" not in data:
        data = list(data["targets"])  # a map: a model of its few classes
    elif isinstance(data, Mapping) and isinstance(data.get("names"), (list, tuple)):
        if unknown := [str(key) for key in data if key not in SPACE_KEYS]:
            raise UserError(
                f"label space {name}: unknown key{'s' * (len(unknown) > 1)} {', '.join(map(repr, unknown))}",
                f"known: {', '.join(SPACE_KEYS)}; names and ids are in the order of the outputs",
            )
        data, ids = data["names"], data.get("ids", [])
    elif isinstance(data, Mapping) and data and all(map(_is_id_and_name, data.values())):
        ids = _by_their_index(name, {index: pair[0] for index, pair in data.items()})
        data = _by_their_index(name, {index: pair[1] for index, pair in data.items()})
    elif isinstance(data, Mapping) and data:
        data = _by_their_index(name, data)
    if not data or not isinstance(data, (list, tuple)) or not isinstance(ids, (list, tuple)):
        raise UserError(f"{name} holds no class names", hint)
    if bad := [f"{value!r} is no name" for value in [*data, *ids] if not (isinstance(value, str) or _is_whole(value))]:
        raise all_problems(f"label space {name}", bad, hint)
    return tuple(map(str, data)), tuple(map(str, ids))


def _by_their_index(name: str, data: Mapping[Any, Any]) -> list[str]:
    """Return the names of a map name → index, or index → name, in the order of the indices."""
    if all(isinstance(key, str) and _is_whole(value) for key, value in data.items()):
        names, indices = list(data), [str(index) for index in data.values()]
    elif all(isinstance(value, str) and (str(key).isdecimal() or _is_whole(key)) for key, value in data.items()):
        names, indices = list(data.values()), [str(index) for index in data]
    else:
        raise UserError(
            f"{name} holds no class names: it is neither a map from names to indices nor from indices to names",
            f"expected {SPACE_FORM}",
        )
    return [names[place] for place in _order(f"label space {name}", indices, "entry")]


def _is_id_and_name(value: Any) -> bool:
    """Tell whether an entry is one of Keras's imagenet_class_index.json: a WordNet id and a name."""
    pair = isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(part, str) for part in value)
    return pair and WORDNET.fullmatch(value[0]) is not None


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def read_csv_space(path: Path, content: bytes) -> dict[str, list[str]]:
    """Return the names, and the ids where there are some, in the order of the index where there is one."""
    table = parse_csv(decoded(content, str(path)), str(path))
    found: dict[str, list[str]] = {}
    unknown = []
    for column in table.columns:
        cells = [row[column].strip() for row in table.rows]
        if (known := column.lower()) not in SPACE_COLUMNS:
            # Without a name, the numbers of the rows as pandas (from 0) and R (from 1) write them.
            counts = column == "" and any(cells == [str(first + i) for i in range(len(cells))] for first in (0, 1))
            unknown += [] if counts else [column]
        elif known in found:
            raise UserError(f"{path}: two columns are called {known!r}", "rename or remove one of them")
        else:
            found[known] = cells
    if "name" not in found:
        raise UserError(
            f"{path}: missing column name; found {', '.join(table.columns)}", "docs/files.md shows the format"
        )
    if unknown:
        named = ", ".join(repr(column) if column else "one without a name" for column in unknown)
        raise UserError(
            f"label space {path}: unknown column{'s' * (len(unknown) > 1)} {named}",
            f"known: {', '.join(SPACE_COLUMNS)}; rename the column that says which output a class is to index, "
            "and remove what is not needed",
        )
    names = found["name"]
    if not names:
        raise UserError(f"{path} holds no row, only a header", "docs/files.md shows the format")
    if empty := [f"row {i} has no name" for i, name in enumerate(names, 1) if not name]:
        raise all_problems(str(path), empty)
    order = _order(f"label space {path}", found["index"], "row") if "index" in found else range(len(names))
    ids = found.get("id", [])
    ids = [ids[place] for place in order] if any(ids) else []
    if empty := [f"row {i} has no id" for i, text in enumerate(found["id"], 1) if not text] if ids else []:
        raise all_problems(f"label space {path}", empty, "every class has an id of its own, or none has")
    return {"names": [names[place] for place in order], "ids": ids}


def _order(what: str, indices: Sequence[str], entry: str) -> list[int]:
    """Return the place of 0, of 1 … among the indices: they name every output of the model exactly once."""
    placed: dict[str, int] = {}
    problems = []
    wanted = dict.fromkeys(map(str, range(len(indices))))
    for number, index in enumerate(indices, 1):
        if index not in wanted:
            problems.append(f"{entry} {number}: index {index!r} is not one of 0 … {len(indices) - 1}")
        elif index in placed:
            problems.append(f"{entry} {number}: index {index} is that of {entry} {placed[index] + 1} too")
        placed.setdefault(index, number - 1)
    if problems:
        hint = "the index counts the outputs of the model: 0, 1, 2 … without gaps or repeats"
        raise all_problems(what, problems, hint)
    return [placed[index] for index in wanted]
