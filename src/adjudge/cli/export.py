"""`adjudge export`: a run in other shapes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from adjudge.errors import ConfigError, OutputError


@click.command()
@click.argument("run", type=click.Path())
@click.option("--records", type=click.Choice(["jsonl"]), help="Every sample as one JSON object a line.")
@click.option("--sample", help="Only this sample.")
@click.option("--model", help="Only this model.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write [stdout].")
def export(run: str, records: str | None, sample: str | None, model: str | None, output: Path | None) -> int:
    """Write a RUN's records, with evidence rendered, to stdout or a file."""
    import msgspec

    import adjudge

    if records is None:
        raise ConfigError("say what to export: --records jsonl")
    loaded = adjudge.load_run(run)
    with _sink(output) as sink:
        if sample is not None:
            for row in loaded.find(sample, model):
                sink.write(msgspec.json.encode(loaded.record(sample, row["model"])) + b"\n")
        else:
            for record in loaded.records():
                if model is None or record.get("model_name") == model:
                    sink.write(msgspec.json.encode(record) + b"\n")
    return 0


@contextmanager
def _sink(output: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears when it is whole."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = output.with_name(f".{output.name}.part")
    try:
        with part.open("wb") as stream:
            yield stream
        part.replace(output)
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
