"""A study folder: everything that a study is made of, in files that people can read.

study.toml          name, seed, languages, codes of Prolific and MTurk, limits: may be edited
design/             a copy of the design: trials, timeline, texts
exclusions.toml     the exclusion rules; study.toml keeps their hash
stimuli.parquet     what is known of every image
images/             the images under names that say nothing of their class
secret              the key of all tokens, and the admin token
study.sqlite        the answers, unless they are in PostgreSQL; draft.sqlite those of drafts
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets as random
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cuebench._version import __version__
from cuebench.errors import UserError, all_problems, did_you_mean
from cuebench.files import disk_errors, hash_file, parquet_bytes, write_atomic
from cuebench.folders import copy_folder, filling
from cuebench.options import Option, check_types, parse
from cuebench.reading import file_kind_problem, parse_parquet, path_problem, read_bytes, read_toml
from cuebench.study import exclusions
from cuebench.study.assign import assign, place_of
from cuebench.study.database import DRAFT, Facts, now, sqlite_url
from cuebench.study.design import Design, placeholders, read_design
from cuebench.study.secrets import FILE as SECRETS
from cuebench.study.secrets import Secrets, make_secrets, read_secrets
from cuebench.study.stimuli import Chosen, pink_noise, select
from cuebench.study.types import ROLES, StudyImage, Trial

SETTINGS, DESIGN, STIMULI, IMAGES, SQLITE = "study.toml", "design", "stimuli.parquet", "images", "study.sqlite"
DRAFT_SQLITE = "draft.sqlite"
BROWSER_KINDS = (".png", ".jpg", ".jpeg", ".webp", ".gif")
"""Files that every browser shows; others become PNG."""


@dataclass(frozen=True)
class Settings:
    """What ``study.toml`` says.

    Parameters
    ----------
    name, title : str
        Name in exports; title that participants see (default: that of the design).
    identity : str
        Random: no two studies can share a database by mistake.
    seed : int
        Of images, orders and groups.
    participants : int
        How many people are wanted; later ones are sent away. 0: any number.
    rules_sha256 : str
        Hash of the exclusion rules when the study was made.
    completion_code, return_url : str
        Of Prolific or MTurk; without a code everybody gets their own. ``{code}`` in the address is replaced.
    drop_out_minutes : int
        After how long without an answer an unfinished session is given to somebody else as well.
    requests_per_second, starts_per_minute : int
        Limits: of each participant; of new sessions from each address.
    frame_ancestors : tuple of str
        Hosts that may show the study in a frame.
    contact : str
        Whom participants can write to.
    """

    name: str
    identity: str
    design: str
    made_at: str = ""
    made_with: str = ""
    rules_sha256: str = ""
    title: str = ""
    contact: str = ""
    seed: int = 0
    participants: int = 0
    completion_code: str = ""
    return_url: str = ""
    drop_out_minutes: int = 120
    requests_per_second: int = 10
    starts_per_minute: int = 120
    frame_ancestors: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study:
    """An opened study folder."""

    folder: Path
    settings: Settings
    design: Design
    images: dict[str, StudyImage]
    secrets: Secrets
    rules: exclusions.Rules
    draft: bool = False
    """Served to be looked at: with a banner and a database of its own, whose answers do not count."""

    def assign(self, slot: int) -> tuple[str, list[Trial]]:
        """Return group and trials of an assignment, numbered from 0."""
        trials = assign(self.design, list(self.images.values()), slot, self.settings.seed)
        return place_of(self.design, slot).group, trials

    @property
    def languages(self) -> list[str]:
        """The languages that participants can choose, the default first."""
        return [code for code in self.settings.languages if code in self.design.languages] or self.design.languages

    def language(self, wanted: str) -> str:
        """Return the wanted language, or the default of the study where it is not offered."""
        near = [code for code in self.languages if code.split("-")[0] == wanted.split("-")[0]]
        return wanted if wanted in self.languages else (near or self.languages)[0]

    @property
    def database_url(self) -> str:
        """The address of the database in the folder."""
        return sqlite_url(self.folder / (DRAFT_SQLITE if self.draft else SQLITE))

    @property
    def gaps(self) -> list[str]:
        """Placeholders in ⟨angle brackets⟩ in what participants read: file, and what is to be filled in."""
        files: dict[str, Any] = {f"{DESIGN}/{name}": texts for name, texts in self.design.shown(self.languages).items()}
        files[SETTINGS] = [self.settings.title, self.settings.contact]
        return [f"{name}: {gap}" for name, texts in files.items() for gap in placeholders(texts)]

    @cached_property
    def facts(self) -> Facts:
        """What the database of this study is checked with; the texts of a draft may change at any time."""
        if self.draft:
            return Facts(f"{DRAFT}{self.settings.identity}", "", self.rules.sha256)
        digest = hashlib.sha256(f"seed {self.settings.seed}\n".encode())
        files = [*sorted(p for p in (self.folder / DESIGN).rglob("*") if p.is_file()), self.folder / STIMULI]
        for path in files:
            digest.update(f"{path.relative_to(self.folder).as_posix()} {hash_file(path).sha256}\n".encode())
        return Facts(self.settings.identity, digest.hexdigest(), self.rules.sha256)

    @property
    def rules_note(self) -> str:
        """Say that the exclusion rules are not those that the study was made with; empty where they are."""
        if self.rules.sha256 == self.settings.rules_sha256:
            return ""
        return f"{exclusions.FILE} was changed after the study was made"


# ------------------------------------------------------------------------------------------------------- new


NUMBERS = {
    "seed": Option(0, "the same seed gives the same study", low=0, high=2**62),
    "participants": Option(0, "0: any number", low=0, high=10**9),
}


@dataclass(frozen=True)
class NewStudy:
    """What a new study is made of; see ``Settings``."""

    design: str
    data_root: str | Path | None = None
    run: str | Path | None = None
    name: str = ""
    title: str = ""
    contact: str = ""
    seed: int = 0
    participants: int = 0
    languages: tuple[str, ...] = ()
    completion_code: str = ""
    return_url: str = ""


def new_study(folder: Path, new: NewStudy, progress: Callable[[int, int], None] | None = None) -> Study:
    """Make a study folder.

    Parameters
    ----------
    folder : Path
        Where; it must be empty or absent, or what a process that was killed left of a new study.
    new : NewStudy
        What it is made of.
    progress : callable, optional
        Called with the number of images that are done and of all.

    Raises
    ------
    UserError
        With everything that does not fit; the folder is then left as it was.
    """
    with filling(folder, (SETTINGS, DESIGN, STIMULI, IMAGES, exclusions.FILE, SECRETS)):
        _fill(folder, new, progress)
    return open_study(folder)


def _fill(folder: Path, new: NewStudy, progress: Callable[[int, int], None] | None) -> None:
    parse(NUMBERS, {name: getattr(new, name) for name in NUMBERS}, "a study")
    if problem := _return_problem(new.return_url):
        raise UserError(problem, "for example https://app.prolific.com/submissions/complete?cc={code}")
    design = read_design(new.design)
    unknown = [f"no texts in {code!r}" for code in new.languages if code not in design.languages]
    if unknown:
        raise all_problems(f"design {design.name}", unknown, f"languages: {', '.join(design.languages)}")
    selection = select(design, new.data_root, seed=new.seed, run=new.run)
    secrets = make_secrets(folder)
    copy_folder(design.folder, folder / DESIGN, without="__pycache__")
    write_atomic(folder / exclusions.FILE, exclusions.TEMPLATE.encode())
    images = _write_images(folder, secrets, selection.chosen, selection.root, progress)
    images += _write_masks(folder, secrets, pink_noise(design, seed=new.seed))
    write_atomic(folder / STIMULI, parquet_bytes(_table(images)))
    shared_fields = {key: value for key, value in asdict(new).items() if key not in ("design", "data_root", "run")}
    settings = Settings(
        **{**shared_fields, "name": new.name or folder.name},
        identity=random.token_hex(16),
        design=design.name,
        made_at=now(),
        made_with=f"cuebench {__version__}",
        rules_sha256=exclusions.read_rules(folder).sha256,
        notes=selection.notes,
    )
    write_atomic(folder / SETTINGS, _toml(settings).encode())


def _write_images(
    folder: Path, secrets: Secrets, chosen: list[Chosen], root: str, progress: Callable[[int, int], None] | None
) -> list[StudyImage]:
    images: dict[str, StudyImage] = {}
    for done, (stimulus, image) in enumerate(chosen, 1):
        data, ending = _picture(root, stimulus)
        written = _write_image(folder, secrets, replace(image, name=stimulus.id), data, ending, images)
        images[written.id] = written
        if progress is not None:
            progress(done, len(chosen))
    return list(images.values())


def _write_masks(folder: Path, secrets: Secrets, masks: Iterable[tuple[str, bytes]]) -> list[StudyImage]:
    rows = []
    for name, data in masks:
        row = StudyImage(id="", file="", sha256="", size=0, name=name, role="mask")
        rows.append(_write_image(folder, secrets, row, data, ".png", {}))
    return rows


def _picture(root: str, stimulus: Any) -> tuple[bytes, str]:
    """Return the bytes that a browser shows and their ending: the file itself, or a PNG of what models are shown.

    The file itself only where a browser shows it as they see it: on white what is transparent, no inks of a printer.
    """
    from cuebench.stimuli.png import png_bytes
    from cuebench.stimuli.render import decode, is_shown_as_stored, render

    ending = Path(stimulus.path).suffix.lower()
    if stimulus.path and not stimulus.recipe and ending in BROWSER_KINDS:
        data = read_bytes(Path(root) / stimulus.path, "stimulus")
        if stimulus.sha256 and hashlib.sha256(data).hexdigest() != stimulus.sha256:
            raise UserError(f"{stimulus.path} changed while it was read", "run the same command again")
        if is_shown_as_stored(data, stimulus.path):
            return data, ending
    return png_bytes(render(root, decode(root, stimulus), stimulus)), ".png"


def _write_image(
    folder: Path, secrets: Secrets, row: StudyImage, data: bytes, ending: str, others: dict[str, StudyImage]
) -> StudyImage:
    identity, copies = secrets.image_id(data), 0
    while identity in others:  # two stimuli with the same pixels are two stimuli
        copies += 1
        identity = secrets.image_id(data + b"copy %d" % copies)
    # Not synced one by one, which takes seconds: study.toml, which is written last, makes the folder a study.
    (folder / IMAGES).mkdir(exist_ok=True)
    with disk_errors(folder):
        (folder / IMAGES / f"{identity}{ending}").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    return replace(row, id=identity, file=f"{identity}{ending}", sha256=digest, size=len(data))


def _table(images: list[StudyImage]) -> Any:
    import pyarrow as pa

    ordered = sorted(images, key=lambda image: image.id)  # the order of the file says nothing either
    columns = {f.name: [getattr(image, f.name) for image in ordered] for f in fields(StudyImage)}
    return pa.table({n: pa.array(v, pa.int64() if n == "size" else pa.string()) for n, v in columns.items()})


_COMMENTS = {
    "name": "Edit what you need and start the server again. Do not change name, identity, design and seed.",
    "participants": "How many people are wanted; 0: any number.",
    "completion_code": "Of Prolific; empty: a code for each person. {code} in return_url is replaced by it.",
    "drop_out_minutes": "After so long without an answer, the trials of a session are given to somebody else, too.",
    "requests_per_second": "Of one participant. Starts: of new sessions from one address (a class room has one).",
    "frame_ancestors": 'Hosts that may show the study in a frame, such as "https://workersandbox.mturk.com".',
}


def _toml(settings: Settings) -> str:
    """Return the settings as TOML; JSON's texts, numbers and lists are TOML's, too."""
    lines = []
    for key, value in asdict(settings).items():
        lines += ["", f"# {_COMMENTS[key]}"] if key in _COMMENTS else []
        lines.append(f"{key} = {json.dumps(value, ensure_ascii=True)}")
    return "\n".join(lines).lstrip() + "\n"


# ------------------------------------------------------------------------------------------------------ open


def open_study(folder: Path, *, draft: bool = False) -> Study:
    """Open a study folder and check that everything is there; ``draft``: to be looked at only.

    Raises
    ------
    UserError
        With everything that is missing or wrong.
    """
    if not (folder / SETTINGS).is_file():
        raise UserError(
            f"{folder} is no study folder: it has no {SETTINGS}", "make one: cuebench study new DIR --design NAME"
        )
    images = _read_images(folder)
    absent = [i.file for i in images if file_kind_problem(folder / IMAGES / i.file, filled=True)]
    if absent:
        raise all_problems(
            f"study {folder}", [f"{IMAGES}/{name} cannot be read" for name in absent], "copy the whole folder"
        )
    return Study(
        folder,
        read_settings(folder / SETTINGS),
        read_design(folder / DESIGN),
        {image.id: image for image in images},
        read_secrets(folder),
        exclusions.read_rules(folder),
        draft,
    )


def read_settings(path: Path) -> Settings:
    """Read ``study.toml``; unknown names and wrong types are reported at once."""
    values = read_toml(path, "settings", hint="correct the line that it names")
    known = [f.name for f in fields(Settings)]
    problems = [did_you_mean("name", name, known).message for name in values if name not in known]
    problems += [f"{name} is missing" for name in ("name", "identity", "design") if name not in values]
    if problems:
        raise all_problems(f"settings {path}", problems, f"known: {', '.join(known)}")
    checked = check_types(values, Settings, str(path))
    typed: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in checked.items()}
    settings = Settings(**typed)
    below = [name for name in known if isinstance(getattr(settings, name), int) and getattr(settings, name) < 0]
    hosts = [
        host for host in settings.frame_ancestors if not re.fullmatch(r"(https?://)?[A-Za-z0-9.*:-]+|'self'", host)
    ]
    problems = [f"{name} is below 0" for name in below if name != "seed"] + [f"frame_ancestors: {h!r}" for h in hosts]
    problems += filter(None, [_return_problem(settings.return_url)])
    if problems:
        raise all_problems(f"settings {path}", problems)
    return settings


def _return_problem(address: str) -> str:
    """Say what is wrong with the address that people return to; empty where nothing is, or there is none."""
    if address and not re.match(r"https?://[^/?#\s]", address):
        return f"return_url {address!r} is no address of the web"
    unknown = [part for part in re.findall(r"\{[^{}]*\}", address) if part != "{code}"]
    return f"return_url {address!r}: nothing replaces {unknown[0]}; only {{code}} is replaced" if unknown else ""


def _read_images(folder: Path) -> list[StudyImage]:
    path, hint = folder / STIMULI, "put the file back, or make the study again"
    table = parse_parquet(read_bytes(path, "images", hint=hint), f"images {path}", hint=hint)
    names = [f.name for f in fields(StudyImage)]
    if missing := [name for name in names if name not in table.column_names]:
        raise UserError(f"images {path}: no column {', '.join(missing)}", hint)
    try:
        images = [StudyImage(**check_types(row, StudyImage)) for row in table.select(names).to_pylist()]
    except UserError as error:
        raise UserError(f"images {path}: {error.message}", hint) from None
    ids = {image.id for image in images}
    if len(ids) < len(images):
        raise UserError(f"images {path}: {len(images) - len(ids)} ids occur twice", hint)
    if unknown := {image.role for image in images} - set(ROLES):
        raise UserError(f"images {path}: unknown role {min(unknown)!r}; one of {', '.join(ROLES)}", hint)
    if outside := [image.file for image in images if path_problem(image.file) or "/" in image.file]:
        raise UserError(f"images {path} names files outside of {IMAGES}/: {outside[0]!r}", hint)
    return images
