"""Files of data sets: where they are looked for, and downloads that are whole or not kept."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import threading

import platformdirs
import pytest

from isrlearn.paper.datasets import files
from isrlearn.paper.datasets.files import DataError, Resource, content, folders

BODY = b"the content of a data set " * 1000


class Handler(http.server.BaseHTTPRequestHandler):
    """Complete at /whole, cut off at /cut, something else at /other."""

    def do_GET(self):
        if self.path == "/missing":
            self.send_error(404)
            return
        packed = gzip.compress(BODY if self.path != "/other" else BODY[:-1], mtime=0)
        self.send_response(200)
        self.send_header("Content-Length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed[:50] if self.path == "/cut" else packed)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("ISRLEARN_DATA", raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")


def resource(url: str) -> Resource:
    return Resource("set/file.gz", url, hashlib.sha256(BODY).hexdigest())


def test_a_download_is_checked_and_kept(address, tmp_path):
    file = resource(f"{address}/whole")
    assert content(file) == BODY
    kept = tmp_path / "cache" / "set" / "file.gz"
    assert gzip.decompress(kept.read_bytes()) == BODY
    assert content(resource("http://127.0.0.1:1/gone")) == BODY  # from the cache, no connection


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("cut", r"could not be downloaded .*50 bytes read, \d+ more expected"),
        ("other", "is not the published file: its content has the sha256"),
        ("missing", "could not be downloaded .*404"),
    ],
)
def test_a_bad_download_leaves_nothing(address, tmp_path, page, message):
    with pytest.raises(DataError, match=message):
        content(resource(f"{address}/{page}"))
    assert not (tmp_path / "cache").exists()


def test_nobody_answers(tmp_path):
    with pytest.raises(DataError, match=r"could not be downloaded .*ISRLEARN_DATA"):
        content(resource("http://127.0.0.1:1/nothing"))


@pytest.mark.parametrize("name", ["file.gz", "file"])
def test_the_named_folder_comes_first_packed_or_not(tmp_path, monkeypatch, name):
    path = tmp_path / "mine" / "set" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(BODY, mtime=0) if name.endswith(".gz") else BODY)
    monkeypatch.setenv("ISRLEARN_DATA", str(tmp_path / "mine"))
    assert folders() == [tmp_path / "mine", tmp_path / "cache"]
    assert content(resource("http://127.0.0.1:1/none")) == BODY


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (BODY + b"!", "is not the published file.*delete it to have it downloaded again"),
        (gzip.compress(BODY, mtime=0)[:40], "is a damaged gzip file"),
    ],
)
def test_a_file_that_lies_is_not_used(tmp_path, damaged, message):
    path = tmp_path / "set" / "file.gz"
    path.parent.mkdir()
    path.write_bytes(damaged)
    with pytest.raises(DataError, match=message):
        content(resource("http://x"), tmp_path)


def test_the_cache_follows_the_conventions_of_the_system(monkeypatch):
    monkeypatch.undo()  # of the fixture's cache
    assert files.cache_folder() == platformdirs.user_cache_path("isrlearn", appauthor=False)
    assert "isrlearn" in files.cache_folder().parts
