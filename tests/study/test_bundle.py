"""The bundle for a laboratory server."""

from __future__ import annotations

import re
import sqlite3
import subprocess

import pytest

from cuebench.cli import invoke
from cuebench.errors import UserError
from cuebench.study.bundle import write_bundle
from cuebench.study.folder import open_study
from small_study import make_study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    made = make_study(tmp_path_factory.mktemp("study"))
    connection = sqlite3.connect(made.folder / "study.sqlite")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (7)")
    connection.commit()
    connection.close()
    return made


def test_a_bundle_is_whole(study, tmp_path):
    yaml = pytest.importorskip("yaml")
    out = tmp_path / "bundle"
    files = write_bundle(study, out, domain="study.example.org", postgresql=True)
    assert {"README.md", "Dockerfile", "compose.yaml", "Caddyfile", "nginx.conf", "backup.sh", ".env"} <= set(files)
    texts = {name: (out / name).read_text() for name in files}
    assert not [name for name, text in texts.items() if re.search(r"@[A-Z_]+@", text)]
    services = yaml.safe_load(texts["compose.yaml"])["services"]
    assert set(services) == {"study", "caddy"}
    assert "ports" not in services["study"]  # only the proxy can be reached
    assert set(yaml.safe_load(texts["compose.override.yaml"])["services"]) == {"study", "database"}
    assert "study.example.org {" in texts["Caddyfile"]
    assert (out / ".env").stat().st_mode & 0o077 == 0
    assert out.stat().st_mode & 0o077 == 0
    copy = open_study(out / "study")
    assert copy.secrets == study.secrets
    assert not (out / "study" / "study.sqlite").exists()  # answers stay where they were given


def test_without_postgresql_nothing_of_it_is_there(study, tmp_path):
    files = write_bundle(study, tmp_path / "bundle", domain="localhost")
    assert not {"compose.override.yaml", ".env"} & set(files)


def test_the_backup_is_a_copy(study, tmp_path):
    out = tmp_path / "bundle"
    write_bundle(study, out, domain="localhost")
    subprocess.run([out / "backup.sh", study.folder, tmp_path / "kept"], check=True, timeout=60)
    (copy,) = (tmp_path / "kept").glob("study-*.sqlite")
    assert sqlite3.connect(copy).execute("SELECT a FROM t").fetchall() == [(7,)]
    assert (tmp_path / "kept" / "secret").stat().st_mode & 0o077 == 0


def test_a_backup_of_nothing_is_an_error_and_makes_no_empty_database(study, tmp_path):
    out = tmp_path / "bundle"
    write_bundle(study, out, domain="localhost")
    done = subprocess.run([out / "backup.sh", out / "study", tmp_path / "kept"], capture_output=True, timeout=60)
    assert done.returncode == 1
    assert b"is not there" in done.stderr
    assert not (out / "study" / "study.sqlite").exists()
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("domain", ["", "a b", "x;y", "-a", "study.example.org {"])
def test_a_domain_is_a_name(study, tmp_path, domain):
    with pytest.raises(UserError, match="no name of a server"):
        write_bundle(study, tmp_path / "bundle", domain=domain)


def test_a_bundle_does_not_lie_in_its_study(study):
    with pytest.raises(UserError, match="lies in the study itself"):
        write_bundle(study, study.folder / "bundle", domain="study.example.org")
    assert not (study.folder / "bundle").exists()


def test_on_the_command_line(study, tmp_path, capsys):
    command = ["study", "bundle", str(study.folder), "--out", str(tmp_path / "b"), "--domain", "study.example.org"]
    assert invoke(command) == 0
    assert "compose.yaml" in capsys.readouterr().out
    assert invoke(command) == 2
    assert "is there already" in capsys.readouterr().err
    assert invoke([*command[:4], str(tmp_path / "c"), *command[5:], "--wheel", str(tmp_path / "no.whl")]) == 2
    assert not (tmp_path / "c").exists()
