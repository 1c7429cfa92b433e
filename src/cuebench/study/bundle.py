"""What a laboratory server needs to run a study: the study, Docker or systemd, a reverse proxy, a backup."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from pathlib import Path

from cuebench._version import __version__
from cuebench.errors import UserError
from cuebench.files import disk_errors
from cuebench.folders import copy_folder, filling
from cuebench.reading import file_kind_problem
from cuebench.study.folder import Study

TEMPLATES = Path(__file__).parent / "deploy"
PASSWORD = ".env"
_POSTGRESQL_ONLY = "compose.override.yaml"
_POSTGRESQL = """
Answers are kept in PostgreSQL: `compose.override.yaml` starts it, with the password in `.env`."""


def write_bundle(
    study: Study, out: Path, *, domain: str, postgresql: bool = False, wheel: Path | None = None
) -> list[str]:
    """Write the bundle of a study; answers that were given so far are not part of it.

    Parameters
    ----------
    study : Study
        An opened study folder.
    out : Path
        A folder that does not exist yet, is empty, or is what a process that was killed left of a bundle.
    domain : str
        Name of the server: ``study.example.org``.
    postgresql : bool
        Keep the answers in PostgreSQL instead of SQLite.
    wheel : Path, optional
        A wheel of cuebench to install; default: the version that runs now, from the package index.

    Returns
    -------
    list of str
        The files of the bundle besides those of the study.
    """
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9-]+)*", domain):
        raise UserError(f"{domain!r} is no name of a server", "give --domain study.example.org")
    if out.resolve().is_relative_to(study.folder.resolve()):
        raise UserError(f"{out} lies in the study itself", "name a folder outside of it")
    if wheel is not None and (problem := file_kind_problem(wheel, filled=True)):
        raise UserError(f"wheel {wheel}: {problem}", "build one: python -m build --wheel")
    values = {
        "TITLE": study.settings.title or study.design.title(study.languages[0]),
        "NAME": study.settings.name,
        "SLUG": re.sub(r"[^a-z0-9]+", "-", study.settings.name.lower()).strip("-") or "study",
        "DESIGN": study.settings.design,
        "MADE_WITH": study.settings.made_with,
        "DOMAIN": domain,
        "REQUIREMENT": f"'cuebench[study]=={__version__}'",
        "POSTGRESQL": _POSTGRESQL if postgresql else "",
    }
    templates = sorted(path.name for path in TEMPLATES.iterdir() if path.is_file())
    with filling(out, ("study", "wheels", PASSWORD, *templates)), disk_errors(out):
        out.chmod(0o700)
        copy_folder(study.folder, out / "study", without="*.sqlite*")
        (out / "wheels").mkdir()
        if wheel is not None:
            shutil.copy(wheel, out / "wheels")
        else:
            (out / "wheels" / ".keep").touch()
        for name in templates if postgresql else [n for n in templates if n != _POSTGRESQL_ONLY]:
            text = re.sub(r"@([A-Z_]+)@", lambda match: values[match[1]], (TEMPLATES / name).read_text("utf-8"))
            (out / name).write_text(text, "utf-8", newline="\n")
        (out / "backup.sh").chmod(0o755)
        if postgresql:
            _write_password(out / PASSWORD)
    return sorted(path.name for path in out.iterdir() if path.is_file())


def _write_password(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
        file.write(f"POSTGRES_PASSWORD={secrets.token_hex(24)}\n")
