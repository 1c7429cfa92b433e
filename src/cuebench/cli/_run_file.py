"""Settings of ``cuebench run`` from a file or from an earlier run, under those of the command line.

The keys of a file are the flags of the verb: ``--data-root`` is ``data_root``. ``--observer`` and ``--protocol`` are
lists and are called ``observers`` and ``protocols``; ``--set PROTOCOL.OPTION=VALUE`` is the table ``[set.PROTOCOL]``.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from cuebench.cli import ALLOW_CODE, VALUE_OPTIONAL
from cuebench.cli._flags import Flag
from cuebench.errors import UserError, all_problems, did_you_mean
from cuebench.files import is_printed, write_atomic
from cuebench.options import check_types
from cuebench.reading import read_toml

PLURAL = {"observer": "observers", "protocol": "protocols"}
"""Flags that are lists → their key in a file."""
SETTINGS = "set"
ALLOW = ALLOW_CODE.removeprefix("--").replace("-", "_")
NOT_IN_FILES = frozenset({"again", "save_config", "json", SETTINGS})
"""Flags that say where settings come from or go to, and the form of what is printed; ``--set`` is a table."""
NOT_SAVED = frozenset({"fresh", "plan", "nodes", "price", "quiet"})
"""Flags that are about one call: a file with ``fresh`` would delete what was measured whenever it is used, and what is
asked of a plan would do nothing in a run."""
LARGEST_FILE = 1 << 20
FROM_RECORD = {"cues_on": "cues", "settings": SETTINGS}
"""Fields of ``RunOptions`` that have another key here."""


class Wanted(NamedTuple):
    """What a run is asked for: parameter of the verb → value; and the options of protocols."""

    values: dict[str, Any]
    settings: dict[str, Any]


def keys_of(flags: Sequence[Flag]) -> dict[str, Flag]:
    """Return the keys of a file, each with its flag."""
    return {PLURAL.get(f.key, f.key): f for f in flags if f.names and f.key not in NOT_IN_FILES}


def read_file(path: Path, flags: Sequence[Flag]) -> Wanted:
    """Read a file of settings; every problem that can be seen without running is reported at once.

    Parameters
    ----------
    path : Path
        A TOML file.
    flags : sequence of Flag
        Of the verb ``run``.
    """
    return _checked(_parsed(path), flags, str(path))


def _parsed(path: Path) -> dict[str, Any]:
    if not path.is_file():
        hint = "observers are named with -o, protocols with -p; write a file of settings with --save-config FILE"
        raise UserError(f"there is no file {path}", hint)
    if path.stat().st_size > LARGEST_FILE:
        raise UserError(f"{path} has more than {LARGEST_FILE >> 20} MiB: it is no file of settings")
    return read_toml(path, hint="an example is in docs/cli.md")


def _checked(content: Mapping[str, Any], flags: Sequence[Flag], what: str) -> Wanted:
    """Return the values of a file by parameter; raise all problems together."""
    keys, wanted = keys_of(flags), Wanted({}, {})
    problems: list[str] = []
    for key, value in content.items():
        name = PLURAL.get(key, key)
        if key == SETTINGS:
            problems += _add_settings(wanted.settings, value)
        elif key == ALLOW:
            problems += _allow(value)
        elif name not in keys:
            near = difflib.get_close_matches(key, [*keys, SETTINGS, ALLOW], n=1, cutoff=0.5)
            problems.append(f"unknown key {key!r}" + (f". Did you mean {near[0]!r}?" if near else ""))
        else:
            problems += _add_value(wanted.values, keys[name], name, value)
    problems += _problems_of_run(wanted)
    if problems:
        hint = f"keys are the flags of `cuebench run --help`: {', '.join([*keys, SETTINGS, ALLOW])}"
        raise all_problems(what, problems, hint)
    return wanted


def _add_value(values: dict[str, Any], flag: Flag, key: str, value: Any) -> Iterator[str]:
    if flag.kind == list[str] and isinstance(value, str):
        value = [value]
    if value is True and flag.names[0] in VALUE_OPTIONAL:
        value = ""
    try:
        values[flag.parameter] = check_types({key: value}, make_dataclass("Value", [(key, flag.kind)]))[key]
    except UserError as error:
        yield error.message


def _add_settings(settings: dict[str, Any], table: Any) -> Iterator[str]:
    """Add ``[set.PROTOCOL]`` as ``PROTOCOL.OPTION``; a quoted key may hold the dot itself."""
    if not isinstance(table, dict):
        yield f"{SETTINGS}: expected a table, [{SETTINGS}.PROTOCOL] with OPTION = VALUE"
        return
    for name, value in table.items():
        if isinstance(value, dict):
            settings.update({f"{name}.{option}": v for option, v in value.items()})
        else:
            settings[name] = value


def _allow(files: Any) -> Iterator[str]:
    from cuebench.registry import allow_code

    for file in [files] if isinstance(files, str) else files if isinstance(files, list) else [files]:
        if isinstance(file, str) and Path(file).expanduser().is_file():
            allow_code(file)
        else:
            yield f"{ALLOW}: there is no file {file!r}"


def _problems_of_run(wanted: Wanted) -> Iterator[str]:
    """Yield what is wrong with observers, protocols, their options and the options of the run."""
    from cuebench.observers.base import Spec
    from cuebench.registry import adapters, protocols
    from cuebench.runs.record import RunOptions, parse_settings

    def check_observer(text: str) -> None:
        spec = Spec.parse(text)
        if spec.scheme not in adapters:
            raise did_you_mean("source of observers", spec.scheme, adapters)

    for text in wanted.values.get("observer", ()):
        yield from _problems(check_observer, text)
    names = []
    for name in wanted.values.get("protocol", ()):
        problems = list(_problems(lambda name: names.append(protocols.resolve(name)), name))
        yield from problems
    if wanted.settings and len(names) == len(wanted.values.get("protocol", ())) > 0:
        yield from _problems(lambda settings: parse_settings(names, settings), wanted.settings)
    fields = RunOptions.__dataclass_fields__
    chosen = {k: v for k, v in wanted.values.items() if k in fields and k not in ("shard", "cache", "responses")}
    yield from _problems(lambda values: RunOptions(**values), chosen)


def _problems(check: Callable[[Any], object], value: Any) -> Iterator[str]:
    try:
        check(value)
    except UserError as error:
        yield from error.problems or (error.message,)


# ------------------------------------------------------------------------------------------------ an earlier run


def of_record(run: Path, flags: Sequence[Flag]) -> Wanted:
    """Return what a run folder was made with, as if it had been written in a file."""
    from cuebench.registry import SCHEME
    from cuebench.runs.loading import OBJECT
    from cuebench.runs.record import RunOptions, RunRecord

    record = RunRecord.read(run)
    # `cuebench score` may have chosen others since; not its seed, which is another one than that of the stimuli.
    arguments = dict(record.arguments)
    arguments |= {name: record.scored[name] for name in ("resamples", "common") if name in record.scored}
    if objects := [spec for spec in arguments["observers"] if spec.startswith(OBJECT)]:
        names = ", ".join(spec.removeprefix(OBJECT) for spec in objects)
        raise UserError(
            f"{run} was measured with objects of a Python program: {names}",
            "run that program again; a command can repeat observers that have a name, such as python:FILE.py:FACTORY",
        )
    origins = {name: str(described.get("origin", "")) for name, described in record.protocols.items()}
    named = [origins[n] if origins.get(n, "").startswith(SCHEME) else n for n in arguments["protocols"]]
    chosen = {
        FROM_RECORD.get(name, name): value
        for name, value in arguments.items()
        if name in RunOptions.__dataclass_fields__ and value != getattr(RunOptions(), name)
    }
    _check_code(run, [*arguments["observers"], *named])
    places = {"data_root": arguments["data_root"]} if arguments.get("data_root") else {}
    content = {"observers": arguments["observers"], "protocols": named, **places, **chosen}
    content.pop("responses", None)  # the answers of the repetition are its own
    return _checked(content, flags, str(run / "run.json"))


def _check_code(run: Path, specs: Sequence[str]) -> None:
    """Refuse a record that names code which the user has not named: a run folder is data and may come from anybody."""
    from cuebench.registry import SCHEME, allowed_code

    here = Path.cwd()  # that of the run
    for spec in [spec for spec in specs if SCHEME in spec]:
        file = _code_in(spec)
        if str((here / file).resolve()) not in allowed_code():
            hint = f"read it; if you trust it, add {ALLOW_CODE} {here / file}" if file.endswith(".py") else (
                "if you trust it, name the observers again with -o")  # fmt: skip
            raise UserError(f"{run / 'run.json'} names code of its own: {spec}", hint)


def _code_in(spec: str) -> str:
    """Return the Python file that a spec names; of a module, its name."""
    from cuebench.registry import SCHEME

    return spec.partition(SCHEME)[2].partition("?")[0].partition("&")[0].rpartition(":")[0]


def from_here(given: Any) -> Any:
    """Return what was given for a file, a folder or an address as it is meant in the current folder."""
    from cuebench.places import place

    return type(given)(place(given)) if isinstance(given, str) and given else given and given.expanduser().absolute()


def folder_of(run: Path, observers: Sequence[str] | None) -> Path:
    """Return the folder that the command of a run was given in, or the current one where nothing depends on it.

    Parameters
    ----------
    run : Path
        The run folder.
    observers : sequence of str or None
        Those that are named now, from the current folder where that of the run is gone; None: those of the record.

    Raises
    ------
    UserError
        Where the folder is gone and a name of the record is that of a file in the current one, which may be another.
    """
    from cuebench.registry import SCHEME
    from cuebench.runs.record import RunRecord

    arguments = RunRecord.read(run).arguments
    folder = arguments.get("folder")
    if folder and Path(folder).is_dir():
        return Path(folder)
    specs = [] if observers else list(arguments.get("observers", ()))
    texts = [*specs, *(value for value in arguments.get("settings", {}).values() if isinstance(value, str))]
    code = [text for text in texts if SCHEME in text and not Path(_code_in(text)).is_absolute()]
    if unsure := [text for text in texts if text in code or any(map(_is_here, _names_in(text)))]:
        raise UserError(
            f"{run} was made in {folder or 'a folder that is not recorded'}, which is not there any more: "
            f"{', '.join(unsure)} would be looked for in {Path.cwd()}",
            "put that folder back with its files; or name the observers again with -o, from here; or, "
            "where they are no files, repeat the run from a folder without such names",
        )
    return Path()


def _names_in(text: str) -> set[str]:
    """Return all parts of a spec or a setting that may be the name of a file."""
    body = text.partition("?")[0]
    return {unquote(name) for name in [text, body, body.partition(":")[2], *re.split("[?&=:,]", text)] if name}


def _is_here(name: str) -> bool:
    try:
        return not Path(name).is_absolute() and Path(name).exists()
    except (OSError, ValueError):
        return False  # too long for a name, or no text that a file system takes


def repetition_of(run: Path) -> Path:
    """Return the folder of a repetition: ``RUN-again``, or the first of ``RUN-again-2``, … that there is not."""
    base = run.absolute()
    first = base.with_name(f"{base.name}-again")
    return next(p for p in [first, *(base.with_name(f"{first.name}-{i}") for i in range(2, 10_000))] if not p.exists())


class Repeated(NamedTuple):
    """How the scores of a repetition compare with those of the run that it repeats."""

    run: str
    same: bool
    rows: int
    differing: int
    text: str
    """The same in a sentence, with an example of what differs."""


def compare_scores(first: Path, second: Path) -> Repeated:
    """Compare the numbers of a run with those of its repetition, for what the run holds.

    A run that several commands have filled need not hold all its observers on all its protocols; its repetition does.
    """
    from cuebench.runs.scores import Scores, load

    def numbers(scores: Scores) -> dict[tuple[str, ...], tuple[Any, ...]]:
        return {(r.protocol, r.observer, r.condition, r.metric, r.ci_kind): (r.value, r.ci_low, r.ci_high, r.n)
                for r in scores.rows}  # fmt: skip

    loaded = load(first)
    before, repeated = numbers(loaded), numbers(load(second))
    held = {key[:2] for key in before}
    after = {key: row for key, row in repeated.items() if key[:2] in held}
    every = {**before, **after}
    differing = [key for key in every if repr(before.get(key)) != repr(after.get(key))]
    more = ", ".join(sorted({f"{key[1]} on {key[0]}" for key in repeated.keys() - after.keys()}))
    beside = f"; not compared: {more}, which that run does not hold" if more else ""
    if not differing:
        text = f"all {len(after):,} rows of scores are the same as in {first}{beside}"
        return Repeated(str(first), True, len(every), 0, text)
    example = " ".join(filter(None, differing[0]))
    values = " → ".join("absent" if rows is None else f"{rows[0]:.6g}" for rows in
                        (before.get(differing[0]), after.get(differing[0])))  # fmt: skip
    text = f"{len(differing):,} of {len(every):,} rows of scores differ from {first}: {example}: {values}{beside}"
    made, scored = loaded.record.options.scoring(), loaded.record.scored
    if others := [name for name in ("seed", "settings") if scored.get(name, made[name]) != made[name]]:
        text += f"; {first} was scored again with other {' and '.join(others)} than it was made with: that may be why"
    return Repeated(str(first), False, len(every), len(differing), text)


# ------------------------------------------------------------------------------------------------ writing a file


def save(path: Path, values: Mapping[str, Any], settings: Mapping[str, Any], flags: Sequence[Flag]) -> None:
    """Write what was asked for to a file that ``cuebench run FILE`` reads; defaults are left out.

    Observers and protocols are named so that they are found from other folders, too.

    Parameters
    ----------
    path : Path
        The file; one with other content is not replaced.
    values : mapping of str to value
        Parameter of the verb → value.
    settings : mapping of str to value
        ``PROTOCOL.OPTION`` → value.
    flags : sequence of Flag
        Of the verb ``run``.
    """
    lines = ["# cuebench run FILE; flags on the command line go before what is written here"]
    for key, flag in keys_of(flags).items():
        value = values[flag.parameter]
        if flag.parameter in PLURAL and value:
            value = [_from_anywhere(flag.parameter, name) for name in value]
        if key not in NOT_SAVED and value is not None and value != flag.default and value != []:
            alone = value == "" and flag.names[0] in VALUE_OPTIONAL
            lines.append(f"{key} = {_toml(True if alone else value)}")
    if settings:
        lines += ["", f"[{SETTINGS}]", *(f"{_toml(name)} = {_toml(value)}" for name, value in settings.items())]
    text = "\n".join(lines) + "\n"
    if path.is_dir():
        raise UserError(f"--save-config {path} is a folder", f"name a file: --save-config {path / 'run.toml'}")
    if path.is_file() and not is_printed(path) and path.read_bytes() != text.encode():
        raise UserError(f"{path} exists and says something else", "choose another name for --save-config, or delete it")
    write_atomic(path, text.encode())


def _from_anywhere(kind: str, name: str) -> str:
    """Return an observer or a protocol as it is meant in the current folder, for other folders."""
    from cuebench.observers.spec_files import meant
    from cuebench.registry import SCHEME

    if kind == "observer":
        return meant(name, Path.cwd())
    file, colon, part = name.removeprefix(SCHEME).rpartition(":")
    return f"{SCHEME}{from_here(Path(file))}{colon}{part}" if name.startswith(SCHEME) and file else name


def _toml(value: Any) -> str:
    """Write a value as TOML: its strings are those of JSON, but for the character DEL."""
    if isinstance(value, (list, tuple)):
        items = [_toml(item) for item in value]
        short = f"[{', '.join(items)}]"
        return short if len(short) <= 100 else "[\n" + "".join(f"  {item},\n" for item in items) + "]"
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
