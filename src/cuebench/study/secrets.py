"""What a study keeps secret, and what is derived from it: tokens, hashes of identifiers, completion codes.

A participant's token is a keyed hash of their number: nothing has to be looked up to check it, the database holds
none, and without the key nobody can make one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import NamedTuple

from cuebench.errors import UserError
from cuebench.reading import read_toml

FILE = "secret"
_CODE_LETTERS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""Of completion codes: nothing that looks alike."""


class Secrets(NamedTuple):
    """The key of all hashes, and the token that opens the admin page."""

    key: str
    admin_token: str

    def _hash(self, purpose: str, text: str) -> bytes:
        return hmac.digest(self.key.encode(), f"{purpose}\0{text}".encode(), "sha256")

    def token(self, number: int) -> str:
        """Return the token of a participant."""
        digest = base64.urlsafe_b64encode(self._hash("token", str(number))).decode().rstrip("=")
        return f"{number}.{digest}"

    def number_of(self, token: str) -> int | None:
        """Return whose token this is; None where it is nobody's."""
        number, _, _ = token.partition(".")
        if not (number.isascii() and number.isdigit() and len(number) <= 9):
            return None
        right = hmac.compare_digest(self.token(int(number)).encode(), token.encode("utf-8", "replace"))
        return int(number) if right else None

    def is_admin(self, token: str) -> bool:
        """Tell whether this is the admin token, in a time that does not depend on where it differs."""
        return hmac.compare_digest(self.admin_token.encode(), token.encode("utf-8", "replace"))

    def entry_hash(self, source: str, identifier: str) -> str:
        """Return what is stored instead of an identifier of Prolific or MTurk."""
        return self._hash(f"entry {source}", identifier).hex()

    def key_hash(self, key: str) -> str:
        """Return what is stored instead of the key that a browser drew to begin."""
        return self._hash("key", key).hex()

    def completion_code(self, number: int) -> str:
        """Return a code that proves that this participant has finished."""
        return "".join(_CODE_LETTERS[byte % len(_CODE_LETTERS)] for byte in self._hash("code", str(number))[:10])

    def image_id(self, data: bytes) -> str:
        """Return the opaque id of an image."""
        return hashlib.sha256(self._hash("image", "") + data).hexdigest()[:16]


def make_secrets(folder: Path) -> Secrets:
    """Draw the secrets of a new study and write them, readable for the owner only."""
    made = Secrets(secrets.token_hex(32), secrets.token_urlsafe(24))
    descriptor = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(
            "# Anyone with this file can read and change the study. Keep it with the database; do not share it.\n"
        )
        file.write("".join(f'{name} = "{value}"\n' for name, value in made._asdict().items()))
    return made


def read_secrets(folder: Path) -> Secrets:
    """Return the secrets of a study."""
    path = folder / FILE
    hint = "put the file back from your backup: without it nobody can go on with a session"
    if path.exists() and not os.access(path, os.R_OK):
        hint = f"it belongs to another user: run as that user, or sudo chown -R USER {folder}"
    try:
        values = read_toml(path, "secrets", hint=hint)
        study_secrets = Secrets(**{name: str(values[name]) for name in Secrets._fields})
    except KeyError as error:
        raise UserError(f"secrets {path} cannot be read: {error}", hint) from None
    if min(map(len, study_secrets)) < 16:
        raise UserError(f"secrets {path}: a key or a token has fewer than 16 characters", hint)
    return study_secrets
