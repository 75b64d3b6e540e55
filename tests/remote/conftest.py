"""An object store on loopback, and a process that has a filesystem package for it installed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("fsspec", reason="needs the `remote` extra")


class Store(BaseHTTPRequestHandler):
    """GET (with ranges), HEAD, PUT, DELETE of keys; `GET /?prefix` lists. What was asked stands in `server.log`."""

    def do_GET(self):
        key = self._asked()
        if key.startswith("?"):
            found = {name: data for name, data in self.server.keys.items() if name.startswith(key[1:])}
            listed = [{"name": name, "size": len(data), "ETag": tag(data)} for name, data in found.items()]
            return self._answer(200, json.dumps(listed).encode())
        data = self.server.keys.get(key)
        if data is None:
            return self._answer(404)
        if between := self.headers.get("Range"):
            start, end = map(int, between.removeprefix("bytes=").split("-"))
            return self._answer(206, data[start : end + 1])
        return self._answer(200, data)

    def do_HEAD(self):
        data = self.server.keys.get(self._asked())
        self._answer(404 if data is None else 200, data or b"")

    def do_PUT(self):
        key = self._asked()
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if key.startswith("full/"):
            return self._answer(507)
        self.server.keys[key] = data
        return self._answer(200)

    def do_DELETE(self):
        self.server.keys.pop(self._asked(), None)
        self._answer(204)

    def _asked(self):
        key = unquote(self.path[1:])
        self.server.log.append((self.command, key, self.headers.get("X-Process"), "Range" in self.headers))
        return key

    def _answer(self, status, data=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", tag(data))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_):
        pass


def tag(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def store():
    """The server; `keys` is what it holds."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        server.keys, server.log = {}, []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """A folder with an installed package that provides bucket://."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(Path(__file__).parent / "bucketfs.py", folder)
    info = folder / "bucketfs-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bucketfs\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[fsspec.specs]\nbucket = bucketfs.BucketFileSystem\n")
    return folder


@pytest.fixture
def cli(store, package, tmp_path):
    """Run `adjudge` in a process of its own, after some statements; its exit code, output and errors."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(package),
        "BUCKET_ADDRESS": f"127.0.0.1:{store.server_address[1]}",
        "TMPDIR": str(tmp_path),
    }

    def run(*words, before="", **changed):
        program = f"{before}\nfrom adjudge.cli.main import run; run()"
        command = [sys.executable, "-c", program, *map(str, words)]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment | changed, timeout=120
        )
        assert "Traceback" not in done.stderr
        return done

    return run
