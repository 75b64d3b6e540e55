"""Signatures of runs: OpenSSH signs the manifest, which holds the digest of every other file."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from adjudge.errors import ConfigError, InstrumentError, RunError
from adjudge.runs.run import Run
from adjudge.runs.tables import write_whole
from adjudge.runs.writer import MANIFEST

SIGNATURE = f"{MANIFEST}.sig"
NAMESPACE = "adjudge-run"
"""What the signature is for; one that was made for anything else, such as a commit, does not count."""

_ARMOUR = re.compile(rb"-----BEGIN SSH SIGNATURE-----\n(?:[A-Za-z0-9+/=]+\n)+-----END SSH SIGNATURE-----\n")
"""What ssh-keygen writes; it would also read other white space, and whatever follows."""
_SIGNER = "signer"
_SECONDS = 120


def sign(run: Run, key: Path) -> Path:
    """Write the signature of a run's manifest by an SSH key beside it; a key with a passphrase is asked for."""
    if not key.is_file():
        raise ConfigError(f"{key}: there is no such key; expected an SSH key such as ~/.ssh/id_ed25519")
    data = (run.path / MANIFEST).read_bytes()
    done = _ssh_keygen("-Y", "sign", "-q", "-f", str(key), "-n", NAMESPACE, data=data)
    if done.returncode or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise ConfigError(f"{key}: cannot sign: {_words(done)}")
    place = run.path / SIGNATURE
    write_whole(place, done.stdout)
    return place


def signature_problem(run: Run, key: Path) -> str | None:
    """Why the run is not signed by a public key, or by one of those that an allowed-signers file lists; None if it is."""
    place = run.path / SIGNATURE
    if not place.is_file():
        return f"{SIGNATURE}: the run is not signed"
    if not _ARMOUR.fullmatch(place.read_bytes()):
        return f"{SIGNATURE}: is not as ssh-keygen writes a signature"
    with tempfile.TemporaryDirectory() as folder:
        signers = Path(folder) / "signers"
        signers.write_text("".join(f'{_SIGNER} namespaces="{NAMESPACE}" {line}\n' for line in _public_keys(key)))
        words = ("-Y", "verify", "-q", "-f", str(signers), "-I", _SIGNER, "-n", NAMESPACE, "-s", str(place))
        done = _ssh_keygen(*words, data=(run.path / MANIFEST).read_bytes())
    return None if done.returncode == 0 else f"{SIGNATURE}: is not the signature of {MANIFEST} by {key}: {_words(done)}"


def _public_keys(key: Path) -> list[str]:
    """The keys in a file of public keys, or of allowed signers: from the key type on, each."""
    try:
        lines = key.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{key}: is not a public key that can be read") from None
    keys = []
    for words in (line.split() for line in lines if not line.startswith("#")):
        places = [place for place, word in enumerate(words) if word.startswith(("ssh-", "ecdsa-", "sk-"))]
        if places and places[0] + 1 < len(words):
            keys.append(" ".join(words[places[0] : places[0] + 2]))
    if not keys:
        raise ConfigError(f"{key}: has no SSH public key; expected a file such as ~/.ssh/id_ed25519.pub")
    return keys


def _ssh_keygen(*words: str, data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *words], input=data, capture_output=True, check=False, timeout=_SECONDS)
    except FileNotFoundError:
        raise InstrumentError("ssh-keygen is not installed; signatures are made and checked by OpenSSH") from None
    except subprocess.TimeoutExpired:
        raise RunError(f"ssh-keygen did not answer within {_SECONDS} seconds") from None


def _words(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else f"ssh-keygen ended with {done.returncode}"
