"""The yardstick of the speed table: what the standard library needs merely to parse the same files."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path


def run(outputs: Path, reference: Path) -> int:
    """Parse every line of both files and the object in every response, keep nothing; the number of outputs."""
    samples = 0
    with outputs.open(encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["response"]
            samples += 1
            start, end = text.find("{"), text.rfind("}")
            if 0 <= start < end:
                try:
                    json.loads(text[start : end + 1])
                except ValueError:
                    continue
    with reference.open(encoding="utf-8") as lines:
        for line in lines:
            json.loads(line)
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("outputs", type=Path)
    parser.add_argument("reference", type=Path)
    arguments = parser.parse_args()
    start = time.process_time()
    samples = run(arguments.outputs, arguments.reference)
    seconds = time.process_time() - start
    print(f"{samples} samples, {seconds / samples * 1e6:.1f} µs of CPU each")


if __name__ == "__main__":
    main()
