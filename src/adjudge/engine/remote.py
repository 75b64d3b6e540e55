"""Remote storage: a run made in a folder and uploaded whole, a run copied down.

The manifest goes up last and goes first when a run is replaced, so that what is half there is no run.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from adjudge.errors import AdjudgeError, InputError, OutputError, RunError
from adjudge.readers.sources import located, said
from adjudge.runs.writer import MANIFEST


class Upload:
    """A run that is made in a folder of its own, which goes with this object, and uploaded to a URL when it is whole.

    That folder is under TMPDIR, which the workers of a cluster must see too.
    """

    def __init__(self, url: str, *, force: bool) -> None:
        try:
            system, root = located(url)
        except InputError as error:
            raise OutputError(str(error)) from None
        with _failing(url, OutputError, "cannot be written"):
            if _exists(system, root):
                if not force:
                    raise OutputError(f"{url} exists already; choose another --out, or --force to replace it")
                if not _exists(system, _inside(root, MANIFEST)) and (system.isfile(root) or system.find(root)):
                    raise OutputError(f"{url} exists and is no run of adjudge, so --force does not replace it")
        self.url, self._system, self._root = url, system, root
        self.folder, self._gone = _folder_of(self, "adjudge-run-")

    def __enter__(self) -> Path:
        return self.folder

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        files = sorted(path for path in self.folder.rglob("*") if path.is_file() and path != self.folder / MANIFEST)
        targets = [_inside(self._root, path.relative_to(self.folder).as_posix()) for path in files]
        manifest, system = _inside(self._root, MANIFEST), self._system
        try:
            with _failing(self.url, OutputError, "cannot be written"):
                if _exists(system, manifest):
                    system.rm_file(manifest)
                if _exists(system, self._root):
                    system.rm(self._root, recursive=True)
                for parent in sorted({target.rpartition("/")[0] for target in targets}):
                    system.makedirs(parent, exist_ok=True)
                system.put([str(path) for path in files], targets)
                system.put_file(str(self.folder / MANIFEST), manifest)
        except OutputError as error:
            self._gone.detach()  # hours of work may be in it
            raise OutputError(f"{error}; the run is kept in {self.folder}") from None


class Copy:
    """A run on remote storage, copied into a folder that goes with this object."""

    def __init__(self, url: str) -> None:
        system, root = located(url)
        with _failing(url, RunError, "cannot be read"):
            if not _exists(system, _inside(root, MANIFEST)):
                raise RunError(f"{url} is not a run: it has no {MANIFEST}")
            self.folder, _ = _folder_of(self, "adjudge-copy-")
            files = system.find(root)
            targets = [self.folder / _relative(path, root) for path in files]
            for folder in {target.parent for target in targets}:
                folder.mkdir(parents=True, exist_ok=True)
            system.get(files, [str(target) for target in targets])


def _folder_of(owner: object, prefix: str) -> tuple[Path, weakref.finalize[[str, bool], Any]]:
    """A place for a run under TMPDIR that is removed with its owner, at the latest when the process ends."""
    home = tempfile.mkdtemp(prefix=prefix)
    return Path(home) / "run", weakref.finalize(owner, shutil.rmtree, home, True)


def _exists(system: Any, path: str) -> bool:
    """Whether there is a file or folder; fsspec's own `exists` takes a store that does not answer for a no."""
    try:
        system.info(path)
    except FileNotFoundError:
        return False
    return True


def _inside(root: str, name: str) -> str:
    return f"{root.rstrip('/')}/{name}"


def _relative(path: str, root: str) -> PurePosixPath:
    """Where a file of a run is in its folder; a name that would leave it is refused."""
    relative = PurePosixPath(path).relative_to(PurePosixPath(root))
    if ".." in relative.parts:
        raise RunError(f"{path}: lies outside the run")
    return relative


@contextmanager
def _failing(url: str, kind: type[AdjudgeError], what: str) -> Iterator[None]:
    """Turns what a filesystem raises into one of our errors."""
    try:
        yield
    except AdjudgeError:
        raise
    except Exception as error:  # noqa: BLE001 -- packages raise kinds of their own
        raise kind(f"{url}: {what}: {said(error)}") from None
