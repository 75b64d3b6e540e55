"""The folder in which a run grows: beside its place, locked while its process lives, removed by the next run if that died."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import socket
from contextlib import suppress
from pathlib import Path

from adjudge.errors import OutputError

_HOST = socket.gethostname()  # locks of one machine need not hold on another that shares the disk


class Workplace:
    """`run` becomes the run at `place`, `old` is the one it replaces, `added` comes to it later; `.scratch` is spilled work."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.folder = place.parent
        self._lock: int | None = None
        self._new_parents: list[Path] = []

    @property
    def run(self) -> Path:
        """Where the run grows."""
        return self.folder / "run"

    def open(self) -> None:
        """Make the folder, after those of processes that died."""
        parents = (self.place.parent, *self.place.parent.parents)
        self._new_parents = [parent for parent in parents if not parent.exists()]
        while True:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            _sweep(self.place.parent)
            self.folder = self.place.parent / f".{self.place.name}.{_HOST}.{secrets.token_hex(4)}.adjudge"
            with suppress(FileNotFoundError):  # somebody who made no run there removed the empty parent
                self.folder.mkdir()
            with suppress(BlockingIOError, FileNotFoundError):  # somebody took the new folder for a dead one
                self._lock = _locked(self.folder)
                if self._lock is None or os.path.samestat(os.fstat(self._lock), self.folder.stat()):
                    break
            self._unlock()

    def settle(self, *, replace: bool, claim: bool) -> None:
        """Put the run in its place. `claim` says that nothing may be there, not even an empty folder."""
        if replace and self.place.exists():
            self.place.rename(self.folder / "old")
        elif claim:
            try:
                self.place.mkdir()
            except FileExistsError:
                raise OutputError(f"{self.place} appeared while the run was made; it is left as it is") from None
        try:
            self.run.rename(self.place)  # fails where the folder is not empty
        except BaseException:
            with suppress(OSError):
                self.place.rmdir()  # ours, and only if it is empty
            raise
        sync(self.place.parent)

    def add(self, files: dict[str, bytes]) -> None:
        """Add files to the run in its place, all or none: whoever clears the folder moves those that are left."""
        waiting = self.folder / "adding"
        waiting.mkdir()
        for name, data in files.items():
            (waiting / name).write_bytes(data)
            sync(waiting / name)
        waiting.rename(self.folder / "added")
        _move_added(self.folder, self.place)
        sync(self.place)

    def close(self) -> None:
        """Remove the folder, and parents that were made for nothing; a run that was not replaced goes back to its place."""
        if self.folder != self.place.parent:
            _clear(self.folder, self.place)
        self._unlock()
        with suppress(OSError):  # the first that is not empty stays, and those above it
            for parent in self._new_parents:
                parent.rmdir()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sync(path: Path) -> None:
    """Have a file or folder on the disk before what follows."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _sweep(parent: Path) -> None:
    """Remove the folders of processes that died in the middle of a run."""
    for folder in parent.glob(f".*.{glob.escape(_HOST)}.*.adjudge"):
        try:
            lock = _locked(folder)
        except OSError:  # in use, or gone
            continue
        if lock is not None:
            _clear(folder, parent / folder.name[1:].removesuffix(".adjudge").rpartition(f".{_HOST}.")[0])
            os.close(lock)


def _clear(folder: Path, place: Path) -> None:
    old = folder / "old"
    try:
        if old.exists() and not place.exists():
            old.rename(place)
        _move_added(folder, place)
    except OSError:
        return  # the next run tries again
    shutil.rmtree(folder, ignore_errors=True)


def _move_added(folder: Path, place: Path) -> None:
    for path in sorted((folder / "added").glob("*"), reverse=True):  # the page before the manifest that lists it
        path.replace(place / path.name)


def _locked(folder: Path) -> int | None:
    """The folder, open and locked until it is closed; None where the system has no locks."""
    try:
        import fcntl
    except ImportError:  # on Windows nothing is locked, and nothing of a dead process removed
        return None
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(number)
        if isinstance(error, OSError) and not isinstance(error, BlockingIOError):
            return None
        raise
    return number
