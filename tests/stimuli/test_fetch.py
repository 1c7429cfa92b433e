"""Fetch against a server on the loopback address; nothing here leaves the machine."""

import hashlib
import http.server
import io
import json
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from cuebench.errors import UserError
from cuebench.stimuli import _download
from cuebench.stimuli.datasets.base import Dataset, RemoteFile
from cuebench.stimuli.fetch import fetch
from cuebench.stimuli.structure import png, table

DATA = bytes(range(256)) * 4096  # 1 MiB


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves ``server.files``; ``server.cut`` lists bytes after which the next answers break off."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.asked.append((self.path, self.headers.get("Range")))
        if self.path not in server.files:
            self.send_error(404)
            return
        data, kind = server.files[self.path]
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        if start and server.ranges:
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            data = data[start:]
        else:
            self.send_response(200)
        self.send_header("Content-Type", kind)
        if server.length != "none":
            self.send_header("Content-Length", server.length or str(len(data)))
        self.end_headers()
        self.wfile.write(data[: server.cut.pop(0)] if server.cut else data)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(_download, "PAUSE", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.files, httpd.cut, httpd.asked, httpd.ranges, httpd.length = {}, [], [], True, ""
    httpd.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield httpd
    httpd.shutdown()
    httpd.server_close()
    thread.join(5)


def serve(server, path, data=DATA, kind="application/octet-stream"):
    server.files[path] = (data, kind)


def known(path="d/a.bin", source="a.bin", data=DATA, **more):
    return RemoteFile(path, source, hashlib.sha256(data).hexdigest(), len(data), **more)


def dataset(*files, mirrors=()):
    return Dataset("d", "", "", "", "d", tuple(mirrors), lambda: tuple(files))


def refused(*arguments, **options):
    with pytest.raises(UserError) as caught:
        fetch(*arguments, **options)
    return str(caught.value)


def test_success_and_the_second_time_asks_nobody(server, tmp_path):
    for name in "abc":
        serve(server, f"/{name}.bin")
    files = [known(f"d/{n}.bin", f"{n}.bin") for n in "abc"]
    seen = []
    result = fetch(dataset(*files, mirrors=[server.url]), tmp_path, progress=lambda *step: seen.append(step))
    assert (result.files, result.downloaded, result.by_hash, result.by_structure) == (3, 3, 3, 0)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert (tmp_path / "d" / "b.bin").read_bytes() == DATA
    assert sorted(p.name for p in (tmp_path / "d").iterdir()) == ["a.bin", "b.bin", "c.bin"]
    server.asked.clear()
    assert fetch(dataset(*files, mirrors=[server.url]), tmp_path).downloaded == 0
    assert server.asked == []


def test_cut_connection_is_resumed_not_restarted(server, tmp_path):
    serve(server, "/a.bin")
    server.cut = [100_000]
    fetch(dataset(known(), mirrors=[server.url]), tmp_path)
    assert (tmp_path / "d" / "a.bin").read_bytes() == DATA
    assert [r for _, r in server.asked] == [None, "bytes=100000-"]


def test_part_of_an_earlier_fetch_is_continued(server, tmp_path):
    serve(server, "/a.bin")
    server.cut = [1000, 1000, 1000]
    data = dataset(known(), mirrors=[server.url])
    assert "ended after 3,000 of 1,048,576 bytes" in refused(data, tmp_path)
    assert (tmp_path / "d" / "a.bin.part").stat().st_size == 3000
    server.asked.clear()
    fetch(data, tmp_path)
    assert server.asked == [("/a.bin", "bytes=3000-")]
    assert (tmp_path / "d" / "a.bin").read_bytes() == DATA


@pytest.mark.parametrize("ranges", [True, False])
def test_stale_part_is_thrown_away(server, tmp_path, ranges):
    serve(server, "/a.bin")
    server.ranges = ranges
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.bin.part").write_bytes(b"another file" * 50)
    fetch(dataset(known(), mirrors=[server.url]), tmp_path)
    assert (tmp_path / "d" / "a.bin").read_bytes() == DATA


def test_wrong_hash_is_never_renamed_into_place(server, tmp_path):
    serve(server, "/a.bin", DATA[:-1] + b"x")
    text = refused(dataset(known(), mirrors=[server.url]), tmp_path)
    assert "expected " + hashlib.sha256(DATA).hexdigest() in text
    assert list((tmp_path / "d").iterdir()) == []


def test_mirrors_in_order_and_the_users_own_first(server, tmp_path):
    serve(server, "/good/a.bin")
    serve(server, "/bad/a.bin", b"x" * len(DATA))
    data = dataset(known(), mirrors=[f"{server.url}/none", f"{server.url}/good/"])
    fetch(data, tmp_path, mirrors=[f"{server.url}/bad"])
    assert [path for path, _ in server.asked] == ["/bad/a.bin", "/none/a.bin", "/good/a.bin"]
    assert (tmp_path / "d" / "a.bin").read_bytes() == DATA


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        ("text/html; charset=utf-8", b"Please log in"),
        ("application/octet-stream", b"\n<!DOCTYPE html><html><body>Please log in</body></html>"),
    ],
)
def test_web_page_is_not_written_as_data(server, tmp_path, kind, page):
    serve(server, "/a.bin", page, kind)
    text = refused(dataset(RemoteFile("d/a.bin", "a.bin"), mirrors=[server.url]), tmp_path)
    assert "a web page came instead" in text
    assert not any(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file())


def test_404_is_not_retried_and_names_every_file(server, tmp_path):
    serve(server, "/a.bin")
    files = [known(), known("d/b.bin", "b.bin"), known("d/c.bin", "c.bin")]
    text = refused(dataset(*files, mirrors=[server.url]), tmp_path)
    assert "HTTP 404" in text
    for name in "bc":
        assert f"put file {name}.bin with sha256 {hashlib.sha256(DATA).hexdigest()} at {tmp_path}/d/{name}.bin" in text
    assert "put file a.bin" not in text
    assert (tmp_path / "d" / "a.bin").is_file()
    assert len(server.asked) == 3


def test_dead_server_is_asked_for_few_files_only(tmp_path, monkeypatch):
    tried = []

    def nobody(url, part, size):
        tried.append(url)
        raise _download.Unreachable("no answer")

    monkeypatch.setattr("cuebench.stimuli.fetch.download", nobody)
    files = [known(f"d/{n}.bin", f"{n}.bin") for n in range(200)]
    text = refused(dataset(*files, mirrors=["http://127.0.0.1:9"]), tmp_path)
    assert len(tried) <= 8
    assert text.count("put file") == 200


def test_nobody_listening(tmp_path, monkeypatch):
    monkeypatch.setattr(_download, "PAUSE", 0.0)
    assert "no answer" in refused(dataset(known(), mirrors=["http://127.0.0.1:9"]), tmp_path)


@pytest.mark.parametrize("address", ["file:///etc", "ftp://127.0.0.1"])
def test_other_schemes_are_refused(tmp_path, address):
    assert "only http and https" in refused(dataset(known(), mirrors=[address]), tmp_path)


def test_offline_never_connects_and_names_all_files(tmp_path, monkeypatch):
    monkeypatch.setattr("cuebench.stimuli.fetch.download", lambda *_: pytest.fail("network used"))
    files = [known(f"d/{n}.bin", f"{n}.bin") for n in range(50)]
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "7.bin").write_bytes(DATA)
    text = refused(dataset(*files, mirrors=["http://127.0.0.1:9"]), tmp_path, offline=True)
    assert "49 of 50 files are missing" in text
    assert text.count("put file") == 49
    assert f"at {tmp_path}/d/49.bin" in text
    for f in files:
        (tmp_path / f.path).write_bytes(DATA)
    assert fetch(dataset(*files), tmp_path, offline=True).by_hash == 50


def test_wrong_files_are_named_and_not_overwritten(server, tmp_path):
    serve(server, "/a.bin")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.bin").write_bytes(b"mine")
    text = refused(dataset(known(), mirrors=[server.url]), tmp_path)
    assert "nothing was overwritten" in text
    assert (tmp_path / "d" / "a.bin").read_bytes() == b"mine"
    assert server.asked == []


def test_without_a_published_hash_the_structure_counts_and_the_hash_is_remembered(server, tmp_path, picture):
    image = picture(tmp_path / "x.png", size=(224, 224)).read_bytes()
    serve(server, "/x.png", image, "image/png")
    data = dataset(RemoteFile("d/x.png", "x.png", check=png(224, 224)), mirrors=[server.url])
    result = fetch(data, tmp_path / "root")
    assert "0 files verified by hash, 1 by structure only" in str(result)
    record = json.loads((tmp_path / "root" / "d" / "fetched.json").read_text())
    assert record["sha256"] == {"d/x.png": hashlib.sha256(image).hexdigest()}
    other = picture(tmp_path / "y.png", (9, 9, 9), (224, 224)).read_bytes()
    serve(server, "/x.png", other, "image/png")
    (tmp_path / "root" / "d" / "x.png").unlink()
    assert "but it was fetched before with" in refused(data, tmp_path / "root")


def test_structure_checks_find_damage(tmp_path, picture):
    path = picture(tmp_path / "x.png", size=(224, 224))
    whole, check = path.read_bytes(), png(224, 224)
    assert check(path) == ""
    assert "8×6 pixels" in check(picture(tmp_path / "small.png"))
    for damaged in [b"", b"GIF89a", whole[:-1], whole[:-12], whole[:40] + b"?" + whole[41:], whole + b"more"]:
        path.write_bytes(damaged)
        assert check(path), damaged[:20]
    sheet, csv_check = tmp_path / "t.csv", table(["a", "b"], 2)
    for text, problem in [
        ("a,b\n1,2\n3,4\n", ""),
        ("a,b\n1,2\n", "1 rows, expected 2"),
        ("a,b\n1,2\n3\n", "1 rows have"),
    ]:
        sheet.write_text(text)
        assert csv_check(sheet).startswith(problem)
        assert bool(csv_check(sheet)) == bool(problem)


def archive(*names, link=False):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name in names:
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o120777 if link else 0o100644) << 16
            file.writestr(info, b"data")
    return buffer.getvalue()


def test_archive_is_unpacked_once(server, tmp_path):
    data = archive("cat/1.png", "dog/2.png")
    serve(server, "/a.zip", data)
    result = dataset(known("d/a.zip", "a.zip", data, unpack="d/images"), mirrors=[server.url])
    fetch(result, tmp_path)
    assert (tmp_path / "d" / "images" / "dog" / "2.png").read_bytes() == b"data"
    assert fetch(result, tmp_path, offline=True).downloaded == 0


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (archive("ok.png", "../evil"), "'../evil': leads out of the folder"),
        (archive("/etc/evil"), "absolute path"),
        (archive("C:\\evil"), "absolute path"),
        (archive("link", link=True), "a link or a device"),
        (archive("a.png", "A.PNG"), "occurs twice"),
        (b"not an archive" * 100, "neither a zip nor a tar"),
    ],
)
def test_dangerous_archives_are_refused_whole(server, tmp_path, data, problem):
    serve(server, "/a.zip", data)
    result = dataset(known("r/d/a.zip", "a.zip", data, unpack="r/d/images"), mirrors=[server.url])
    assert problem in refused(result, tmp_path)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [".d.lock", "a.zip"]
    assert not (tmp_path / "r" / "d" / "images").exists()


def test_tar_links_are_refused(tmp_path):
    import tarfile

    from cuebench.stimuli.archive import unpack

    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as file:
        info = tarfile.TarInfo("escape")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc"
        file.addfile(info)
        file.addfile(tarfile.TarInfo("escape/passwd"))
    with pytest.raises(UserError, match="a link or a device"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("length", ["abc", "-5", "١٢", "", "none", "1e9", "9" * 30])
def test_a_nonsensical_content_length_is_no_traceback(server, tmp_path, length):
    serve(server, "/a.bin", DATA[:1000])
    server.length = length.encode().decode("latin-1")
    result = dataset(known(data=DATA[:1000]), mirrors=[server.url])
    try:
        fetch(result, tmp_path)
    except UserError:
        assert not (tmp_path / "d" / "a.bin").exists()
    else:
        assert (tmp_path / "d" / "a.bin").read_bytes() == DATA[:1000]


@pytest.mark.parametrize("length", ["", "none"])
def test_a_download_is_bounded_by_its_known_size(server, tmp_path, length):
    serve(server, "/a.bin", DATA + b"more")
    server.length = length
    message = refused(dataset(known(), mirrors=[server.url]), tmp_path)
    assert "expected 1,048,576 at most" in message or "more than 1,048,576 bytes came" in message
    assert not list((tmp_path / "d").iterdir())


def test_a_download_of_unknown_size_is_bounded(server, tmp_path, monkeypatch):
    monkeypatch.setattr(_download, "LARGEST", 1000)
    serve(server, "/a.bin")
    assert "1,000 at most" in refused(dataset(RemoteFile("d/a.bin", "a.bin"), mirrors=[server.url]), tmp_path)


def test_parallel_fetches_do_not_share_unfinished_files(server, tmp_path):
    """The second process, which does not get the lock, continues no unfinished file of the first."""
    import fcntl

    serve(server, "/a.bin")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.bin.part").write_bytes(DATA[:3000])
    with (tmp_path / ".d.lock").open("a") as lock:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX)
        fetch(dataset(known(), mirrors=[server.url]), tmp_path)
    assert server.asked == [("/a.bin", None)]
    assert (tmp_path / "d" / "a.bin.part").read_bytes() == DATA[:3000]
    assert (tmp_path / "d" / "a.bin").read_bytes() == DATA
    assert sorted(p.name for p in (tmp_path / "d").iterdir()) == ["a.bin", "a.bin.part"]


@pytest.mark.parametrize("position", range(0, 400, 7))
@pytest.mark.parametrize("kind", ["zip", "tar", "tgz"])
def test_damaged_archives_are_user_errors(tmp_path, kind, position):
    import tarfile

    from cuebench.stimuli.archive import unpack

    if kind == "zip":
        data = bytearray(archive("cat/1.png", "dog/2.png"))
    else:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz" if kind == "tgz" else "w") as file:
            info = tarfile.TarInfo("cat/1.png")
            info.size = 4
            file.addfile(info, io.BytesIO(b"data"))
        data = bytearray(buffer.getvalue())
    data[position % len(data)] ^= 0x55
    (tmp_path / "a").write_bytes(data)
    try:
        unpack(tmp_path / "a", tmp_path / "out")
    except UserError:
        assert not (tmp_path / "out").exists()


def test_a_member_that_unpacks_to_more_than_it_says_is_refused(tmp_path):
    from cuebench.stimuli.archive import unpack

    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.bin", bytes(10_000_000))
    data = (tmp_path / "a.zip").read_bytes()
    size = (10_000_000).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(data.replace(size, (5).to_bytes(4, "little")))
    with pytest.raises(UserError):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_full_disk_stops_the_fetch_and_keeps_the_rest(server, tmp_path, monkeypatch):
    serve(server, "/a.bin")

    def full(file, chunk, part):
        raise _download.write_error(Path(part), OSError(28, "No space left on device"))

    monkeypatch.setattr(_download, "_write", full)
    assert "the disk is full" in refused(dataset(known(), mirrors=[server.url]), tmp_path)


# --- archives of pictures -------------------------------------------------------------------------------------------


def picture_archive(names):
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 4
            file.addfile(info, io.BytesIO(b"data"))
    return buffer.getvalue()


def test_an_archive_of_pictures_is_checked_by_md5_and_structure_and_unpacked_by_class(server, tmp_path):
    from cuebench.stimuli.structure import archive as archive_check

    names = ["dtd/images/banded/1.jpg", "dtd/images/dotted/2.jpg", "dtd/labels/x.txt", "dtd/images/dotted/.hidden"]
    data = picture_archive(names)
    serve(server, "/a.tar.gz", data)
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    file = RemoteFile("d/a.tar.gz", "a.tar.gz", md5=md5, check=archive_check(2, 2), unpack="d/images", pictures=True)
    summary = fetch(dataset(file, mirrors=[server.url]), tmp_path)
    assert (summary.by_hash, summary.by_structure) == (1, 0)
    found = sorted(p.relative_to(tmp_path / "d" / "images").as_posix() for p in (tmp_path / "d/images").rglob("*.*"))
    assert found == ["banded/1.jpg", "dotted/2.jpg"]
    assert "md5 is" in refused(dataset(replace(file, md5="0" * 32), mirrors=[server.url]), tmp_path / "other")
    fewer = replace(file, md5="", check=archive_check(2, 3))
    assert "expected 2 or more in 3" in refused(dataset(fewer, mirrors=[server.url]), tmp_path / "third")


def test_an_archive_of_archives_says_what_to_do(tmp_path):
    from cuebench.stimuli.archive import unpack

    (tmp_path / "a.tar.gz").write_bytes(picture_archive(["ptd/part1.zip"]))
    with pytest.raises(UserError, match="unpack it by hand"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "out", pictures=True)
