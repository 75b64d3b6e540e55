"""How fast `adjudge collect` is against a bare httpx loop, and whether its memory depends on the number of records.

A server process on loopback answers at once, so the client is bound by its own CPU: throughput is records a CPU second
of the client, which other work on the machine does not change; records a second of wall time stand beside it. The bare loop
is written twice: with one client, as most would, whose pool looks at all its connections for every request; and with a
client for each task, as the runner has it. The target is held against the faster. Every measurement is a process of its
own, taken in turns, and the best of each counts. Exits with 1 when a target is missed: 80 % of the bare loop, and less than 16 bytes a record of memory beyond what a tenth of the records take, plus a constant
for the allocator.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RECORDS, IN_FLIGHT, TURNS = 20_000, 64, 3
WHAT = ("bare, one client", "bare, a client each", "ours", "cached")
SHARE = 0.80
SLACK_MB = 8.0
_SERVER = Path(__file__).parent.parent / "tests" / "collect" / "chat_server.py"


@contextmanager
def server() -> Iterator[str]:
    """The address of a server process that ends with this block."""
    process = subprocess.Popen([sys.executable, str(_SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(10)


def write_data(path: Path, count: int) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for number in range(count):
            row = {"id": f"s{number:06d}", "text": f"fast question {number}", "label": "fake", "meta": {"n": number}}
            stream.write(json.dumps(row) + "\n")


async def bare(url: str, lines: list[str], clients: int) -> None:
    """What one would write by hand: so many tasks over one client, or a client each, the answers decoded and dropped."""
    import httpx

    rows = (json.loads(line) for line in lines)
    each = IN_FLIGHT // clients
    limits = httpx.Limits(max_connections=each, max_keepalive_connections=each)
    context = httpx.create_ssl_context()
    opened = [httpx.AsyncClient(limits=limits, timeout=60, trust_env=False, verify=context) for _ in range(clients)]

    async def work(client: httpx.AsyncClient) -> None:
        for row in rows:
            body = {"model": "m", "messages": [{"role": "user", "content": row["text"]}], "temperature": 0}
            answer = await client.post(f"{url}/chat/completions", json=body)
            assert answer.json()["choices"][0]["message"]["content"]

    await asyncio.gather(*(work(client) for client in opened for _ in range(each)))
    for client in opened:
        await client.aclose()


def ours(url: str, data: Path, output: Path, cache: Path | None) -> None:
    from adjudge.collect.cache import Cache
    from adjudge.collect.dataset import Dataset
    from adjudge.collect.output import Output
    from adjudge.collect.redact import Redactor, secrets_of_environment
    from adjudge.collect.runner import Runner
    from adjudge.collect.settings import Settings
    from adjudge.collect.subjects import subject_of

    redactor = Redactor(secrets_of_environment())
    dataset = Dataset(str(data))
    with Output(output, redactor, resume=False) as opened:
        tally = Runner(
            dataset,
            [subject_of("openai:m", base_url=url)],
            Settings(workers=IN_FLIGHT),
            opened,
            cache=None if cache is None else Cache(cache, redactor),
        ).run()
    assert (tally.answered, tally.errors) == (dataset.count, 0)


def child(what: str, url: str, data: Path, folder: Path) -> None:
    """One measurement; prints seconds, CPU seconds and the highest memory of this process."""
    start = time.perf_counter()
    if what.startswith("bare"):
        lines = data.read_text(encoding="utf-8").splitlines()
        asyncio.run(bare(url, lines, 1 if what == "bare, one client" else IN_FLIGHT))
    else:
        ours(url, data, folder / "results.jsonl", folder / "cache" if what == "cached" else None)
    used = resource.getrusage(resource.RUSAGE_SELF)
    found = {"seconds": time.perf_counter() - start, "cpu": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}
    print(json.dumps(found))


def measure(what: str, url: str, data: Path) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        words = ["-m", "benchmarks", "collect", "--child", what, "--url", url, "--data", str(data), "--folder", folder]
        done = subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="collect")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--only", action="append", choices=WHAT, help="a bare loop and ours at least; repeat")
    parser.add_argument("--child")
    parser.add_argument("--url", default="")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args(argv)
    if given.child:
        child(given.child, given.url, given.data, given.folder)
        return 0
    found: dict[str, list[dict[str, float]]] = {what: [] for what in given.only or WHAT}
    with tempfile.TemporaryDirectory() as name, server() as url:
        data, tenth = Path(name) / "data.jsonl", Path(name) / "tenth.jsonl"
        write_data(data, given.records)
        write_data(tenth, max(1, given.records // 10))
        small = measure("ours", url, tenth)["mb"]
        for _ in range(given.turns):
            for what, rows in found.items():
                rows.append(measure(what, url, data))
                print(f"{what}: {rows[-1]['cpu']:.2f} CPU s, {rows[-1]['seconds']:.1f} s", file=sys.stderr, flush=True)
    best: dict[str, Any] = {what: min(rows, key=lambda row: row["cpu"]) for what, rows in found.items()}
    print(f"{given.records} records, {IN_FLIGHT} in flight, best of {given.turns}")
    print("| | records/s (wall) | CPU s | of the faster bare loop | most memory MB |\n|---|---|---|---|---|")
    fastest = min(row["cpu"] for what, row in best.items() if what.startswith("bare"))
    for what, row in best.items():
        part = fastest / row["cpu"]
        fast = given.records / min(other["seconds"] for other in found[what])
        print(f"| {what} | {fast:,.0f} | {row['cpu']:.2f} | {part:.0%} | {row['mb']:.0f} |")
    share = fastest / best["ours"]["cpu"]
    grown = max(row["mb"] for row in found["ours"]) - small
    allowed = SLACK_MB + 16 * given.records / 2**20
    print(f"throughput: {share:.0%} of the faster bare loop (target {SHARE:.0%})")
    print(f"memory: {grown:.1f} MB more than for a tenth of the records (allowed {allowed:.1f})")
    return 0 if share >= SHARE and grown <= allowed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
