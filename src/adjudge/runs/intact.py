"""Whether the files of a run are those that its manifest lists."""

from __future__ import annotations

from adjudge.provenance.canonical import file_digest
from adjudge.runs.run import Run
from adjudge.runs.signature import SIGNATURE
from adjudge.runs.writer import MANIFEST


def file_problems(run: Run) -> dict[str, str]:
    """Every file that is missing, altered or foreign, and in which way; a signature beside the manifest is not listed."""
    problems = {}
    listed = {entry.path: entry for entry in run.manifest.files}
    present = {path.relative_to(run.path).as_posix() for path in run.path.rglob("*") if path.is_file()}
    for name, entry in listed.items():
        path = run.path / name
        try:
            if not path.resolve().is_relative_to(run.path.resolve()):
                problems[name] = "lies outside the run"
            elif name not in present:
                problems[name] = "is missing"
            elif path.stat().st_size != entry.bytes or file_digest(path) != entry.sha256:
                problems[name] = "its content is not the one in the manifest"
        except OSError as error:
            problems[name] = f"cannot be read: {error.strerror}"
        except ValueError as error:  # a name that no file system takes
            problems[name] = f"cannot be read: {error}"
    if len(listed) < len(run.manifest.files):
        problems[MANIFEST] = "it lists a file twice"
    foreign = sorted(present - listed.keys() - {MANIFEST, SIGNATURE})
    return problems | dict.fromkeys(foreign, "is not listed in the manifest")
