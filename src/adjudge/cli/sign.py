"""`adjudge sign`: sign a run with an SSH key."""

from __future__ import annotations

from pathlib import Path

import click

from adjudge.cli.common import PATH, say


@click.command()
@click.argument("run", type=PATH)
@click.option("--key", type=PATH, required=True, help="Your SSH key, such as ~/.ssh/id_ed25519.")
def sign(run: Path, key: Path) -> int:
    """Sign a RUN with an SSH key (ssh-keygen): the signature of its manifest stands in manifest.json.sig beside it.

    The manifest holds the digest of every file of the run, so the signature covers them all. Whoever has the public key
    checks it with `adjudge verify RUN --key PUBLIC_KEY`. A run whose files are not those of its manifest is not signed.

    \b
    Example:
      adjudge sign runs/a --key ~/.ssh/id_ed25519
    """
    import adjudge
    from adjudge.runs.shapes import refuse_altered
    from adjudge.runs.signature import sign as write_signature

    loaded = adjudge.load_run(run)
    refuse_altered(loaded, flag=None)
    place = write_signature(loaded, key.expanduser())
    say(f"{place}: the signature of sha256:{loaded.digest}")
    return 0
