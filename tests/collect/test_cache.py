"""The cache: hits are marked, trials are not copies, and a replayed latency is never a measured one."""

import pytest

from adjudge.collect.cache import cache_key

COUNTING = """
import pathlib, time
def answer(request):
    with pathlib.Path("calls").open("a") as stream:
        stream.write(f"{request['id']} {request['trial']} {request['mode']}\\n")
    if request["sample"]["text"] == "fail":
        raise ValueError("no")
    time.sleep(0.25)
    return {"prediction": "real", "confidence": 0.5, "timings": {"vision_llm_seconds": 0.25}}
"""


@pytest.fixture
def calls(tmp_path):
    (tmp_path / "counting.py").write_text(COUNTING, encoding="utf-8")

    def count():
        path = tmp_path / "calls"
        return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0

    return count


def test_a_hit_is_marked_and_its_old_latency_stands_apart(calls, collect, dataset, results):
    data = dataset(["a", "b", "fail"])
    arguments = ("--dataset", data, "--subject", "python:counting:answer", "--trials", 2, "--cache", "store")
    collect(*arguments, "--output", "first.jsonl")
    first = results("first.jsonl")
    assert calls() == 6, "every trial is asked for itself"
    assert not any(record["cache"]["hit"] for record in first.values())
    assert len({record["cache"]["key"] for record in first.values()}) == 6
    done = collect(*arguments, "--output", "second.jsonl")
    assert calls() == 8, "only the failures are asked again"
    assert "4 from the cache" in done.stderr
    for key, record in results("second.jsonl").items():
        old = first[key]
        assert record["cache"]["key"] == old["cache"]["key"]
        if old["error"] is not None:
            assert record["cache"]["hit"] is None
            continue
        assert record["cache"]["hit"] is True
        assert (record["prediction"], record["attempts"]) == ("real", 0)
        assert record["latency_seconds"] < 0.2 < old["latency_seconds"]
        assert set(record["timings"]) == {"cache_seconds", "total_seconds"}
        assert record["cache"]["recorded"] == {
            "latency_seconds": old["latency_seconds"],
            "timings": old["timings"],
            "timestamp": old["timestamp"],
        }


def test_what_changes_an_answer_misses_the_cache(calls, collect, dataset, tmp_path):
    data = dataset(["a"])
    base = ("--dataset", data, "--subject", "python:counting:answer", "--cache", "store")
    collect(*base, "--output", "1.jsonl")
    collect(*base, "--output", "2.jsonl", "--temperature", 1)
    collect(*base, "--output", "3.jsonl", "--modes", "tools")
    collect(*base, "--output", "4.jsonl", "--seed", 1)
    assert calls() == 4
    (tmp_path / "counting.py").write_text(COUNTING + "# changed\n", encoding="utf-8")
    collect(*base, "--output", "5.jsonl")
    assert calls() == 5
    collect(*base, "--output", "6.jsonl", "--workers", 1, "--timeout", 9)
    assert calls() == 5


def test_a_torn_entry_is_a_miss_and_is_written_again(calls, collect, dataset, results, tmp_path):
    base = ("--dataset", dataset(["a"]), "--subject", "python:counting:answer", "--cache", "store")
    collect(*base, "--output", "1.jsonl")
    (entry,) = (tmp_path / "store").rglob("*.json")
    whole = entry.read_bytes()
    entry.write_bytes(whole[:30])
    collect(*base, "--output", "2.jsonl")
    assert calls() == 2
    assert entry.read_bytes() != whole[:30]
    assert [record["cache"]["hit"] for record in results("2.jsonl").values()] == [None]


def test_every_part_of_the_key_matters():
    base = {
        "subject": {"subject": "s"},
        "prompt": {"system": None, "user": "u"},
        "payload": "p",
        "parameters": {"temperature": 0.0},
        "trial": 0,
    }
    others = [
        {"subject": {"subject": "t"}},
        {"prompt": {"system": "u", "user": None}},
        {"payload": "q"},
        {"parameters": {"temperature": 0.1}},
        {"trial": 1},
    ]
    assert len({cache_key(**base), *(cache_key(**{**base, **other}) for other in others)}) == 6
