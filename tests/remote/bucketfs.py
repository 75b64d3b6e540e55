"""A user's filesystem package: fsspec's `bucket://`, an object store behind HTTP at BUCKET_ADDRESS."""

import json
import os
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

from fsspec import AbstractFileSystem
from fsspec.spec import AbstractBufferedFile


class BucketFileSystem(AbstractFileSystem):
    protocol = "bucket"
    cachable = False

    def ls(self, path, detail=True, **_):
        root = self._strip_protocol(path).rstrip("/")
        found = {}
        for entry in json.loads(self._ask("GET", f"?{quote(root)}/")[1]):
            head = entry["name"].removeprefix(f"{root}/").partition("/")
            name = f"{root}/{head[0]}"
            found[name] = {"name": name, "size": 0, "type": "directory"} if head[1] else {**entry, "type": "file"}
        if not found:
            return [self.info(path)] if detail else [self.info(path)["name"]]
        return list(found.values()) if detail else list(found)

    def info(self, path, **_):
        path = self._strip_protocol(path).rstrip("/")
        try:
            headers = self._ask("HEAD", path)[0]
        except FileNotFoundError:
            if json.loads(self._ask("GET", f"?{quote(path)}/")[1]):
                return {"name": path, "size": 0, "type": "directory"}
            raise
        return {"name": path, "size": int(headers["Content-Length"]), "type": "file", "ETag": headers["ETag"]}

    def cat_file(self, path, start=None, end=None, **_):
        between = {} if start is None else {"Range": f"bytes={start}-{end - 1}"}
        return self._ask("GET", self._strip_protocol(path), headers=between)[1]

    def get_file(self, rpath, lpath, **_):
        Path(lpath).write_bytes(self.cat_file(rpath))

    def put_file(self, lpath, rpath, **_):
        self._ask("PUT", self._strip_protocol(rpath), Path(lpath).read_bytes())

    def rm_file(self, path):
        self._ask("DELETE", self._strip_protocol(path))

    def makedirs(self, path, exist_ok=False):
        """Folders are parts of names here."""

    def _open(self, path, mode="rb", **options):
        assert mode == "rb"
        options.pop("autocommit", None)
        return BucketFile(self, path, mode, **options)

    def _ask(self, method, path, body=None, headers=None):
        connection = HTTPConnection(os.environ["BUCKET_ADDRESS"], timeout=20)
        try:
            named = {"X-Process": str(os.getpid()), **(headers or {})}
            connection.request(method, f"/{path if path.startswith('?') else quote(path)}", body, named)
            answer = connection.getresponse()
            if answer.status == 404:
                raise FileNotFoundError(path)
            if answer.status >= 400:
                raise OSError(f"{answer.status} {answer.reason}")
            return answer.headers, answer.read()
        finally:
            connection.close()


class BucketFile(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        return self.fs.cat_file(self.path, start, end)
