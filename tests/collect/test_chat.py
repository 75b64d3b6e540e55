"""A chat-completions server process: every question ends as one record that says what came of it."""

import base64
import hashlib
import json
import time

import pytest

from adjudge.collect.chat import public_url, retry_after

# question → (error_type or None, how often the server was asked, words of the error)
FAULTS = {
    "plain question": (None, 1, ""),
    "slow question": (None, 1, ""),
    "rate limited": (None, 3, ""),
    "flaky once": (None, 2, ""),
    "broken always": ("http", 3, "status 503: oops"),
    "forbidden": ("http", 1, "status 401"),
    "patience": ("http", 1, "it asked to wait 86400 s"),
    "malformed body": ("invalid", 1, "is no chat completion"),
    "shapeless body": ("invalid", 1, "no choices"),
    "truncated body": ("http", 3, "RemoteProtocolError"),
    "drip by drip": ("timeout", 1, "no answer within 1 s"),
    "hang": ("timeout", 1, "no answer within 1 s"),
    "huge body": ("invalid", 1, "more than 16777216 bytes"),
    "refuse politely": ("refused", 1, "I would rather not"),
}


def test_every_fault_of_a_server_is_one_record(server, collect, dataset, results):
    data = dataset(FAULTS)
    collect(
        *("--dataset", data, "--subject", "openai:echo", "--base-url", server.url, "--output", "results.jsonl"),
        *("--timeout", 1, "--retries", 2, "--workers", 16),
    )
    found = results()
    seen = server.counts()["seen"]
    assert len(found) == len(FAULTS)
    for number, (question, (kind, asked, words)) in enumerate(FAULTS.items()):
        record = found[f"s{number:05d}", "echo", False, 0]
        assert record["error_type"] == kind, question
        assert words in (record["error"] or ""), question
        assert seen[question] == asked, question
        assert record["attempts"] == asked, question
        assert (record["prediction"] == "fake") is (kind is None), question
    assert {key for key in found if found[key]["error"] is None} == {(f"s0000{n}", "echo", False, 0) for n in range(4)}


def test_retry_after_is_waited_for_and_is_no_latency(server, collect, dataset, results):
    data = dataset(["rate limited"])
    start = time.perf_counter()
    collect("--dataset", data, "--subject", "openai:echo", "--base-url", server.url, "--output", "results.jsonl")
    (record,) = results().values()
    assert time.perf_counter() - start > 0.4
    assert record["timings"]["total_seconds"] > 0.4
    assert record["latency_seconds"] < 0.2


def test_what_is_sent_and_what_is_recorded(server, collect, dataset, results, tmp_path):
    (tmp_path / "ask.j2").write_text(
        "{% block system %}Be brief.{% endblock %}{% block user %}body {{ text }}{% endblock %}", encoding="utf-8"
    )
    (tmp_path / "dot.png").write_bytes(b"\x89PNG not really")
    data = dataset(["one"], image="dot.png")
    collect(
        *("--dataset", data, "--subject", "mine=openai:echo", "--base-url", server.url, "--output", "results.jsonl"),
        *("--prompt", "ask.j2", "--json-mode", "--max-tokens", 50, "--seed", 5, "--trials", 2, "--temperature", 0.5),
    )
    found = results()
    assert sorted(found) == [("s00000", "mine", False, 0), ("s00000", "mine", False, 1)]
    record = found["s00000", "mine", False, 1]
    body = json.loads(record["response"])
    picture = "data:image/png;base64," + base64.b64encode(b"\x89PNG not really").decode()
    assert body == {
        "model": "echo",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "body one"},
                    {"type": "image_url", "image_url": {"url": picture}},
                ],
            },
        ],
        "temperature": 0.5,
        "seed": 6,
        "max_tokens": 50,
        "response_format": {"type": "json_object"},
    }
    assert record["prompt_hashes"] == {
        "system": hashlib.sha256(b"Be brief.").hexdigest(),
        "user": hashlib.sha256(b"body one").hexdigest(),
    }
    assert record["label"] == "real"
    assert record["meta"] == {"source": "secret-hint"}
    assert record["models"] == {"agent": "echo-2026-01", "vision": "echo-2026-01"}
    assert record["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert record["cache"] == {"hit": None, "key": None}
    assert record["run_config"]["temperature"] == 0.5
    assert record["run_config"]["base_url"] == server.url
    assert record["attempts"] == 1
    assert 0 < record["timings"]["model_seconds"] <= record["latency_seconds"] <= record["timings"]["total_seconds"]
    assert record["timestamp"].endswith("+00:00")


def test_tools_are_run_timed_and_only_offered_in_their_mode(server, collect, dataset, results, tmp_path):
    (tmp_path / "my_tools.py").write_text(
        'def measure(width: int, unit: str = "mm") -> str:\n    """Measure it."""\n    return f"{width * 2} {unit}"\n',
        encoding="utf-8",
    )
    data = dataset(["tool please", "endless"])
    collect(
        *("--dataset", data, "--subject", "openai:echo", "--base-url", server.url, "--output", "results.jsonl"),
        *("--modes", "tools,no-tools", "--tool", "my_tools:measure"),
    )
    found = results()
    used = found["s00000", "echo", True, 0]
    first, second, third = json.loads(used["response"])
    assert first == "6 mm"
    assert "ValidationError" in second
    assert "no tool 'nothing'" in third
    assert used["tool_usage"] == ["measure", "measure", "nothing"]
    assert [detail["status"] for detail in used["tool_details"]] == ["ok", "error", "unknown"]
    assert used["tool_details"][0]["seconds"] > 0
    assert used["usage"]["total_tokens"] == 20
    assert used["timings"]["tool_seconds"] > 0
    assert found["s00000", "echo", False, 0]["tool_details"] == []
    assert found["s00000", "echo", False, 0]["prediction"] == "fake"
    assert "after 8 rounds" in found["s00001", "echo", True, 0]["error"]


def test_verdicts_are_taken_as_said_and_never_guessed(server, collect, dataset, results):
    data = dataset(["plain", "unsure", "prose"])
    done = collect("--dataset", data, "--subject", "openai:m", "--base-url", server.url, "--output", "results.jsonl")
    plain, unsure, prose = (results()[f"s0000{n}", "m", False, 0] for n in range(3))
    assert (plain["prediction"], plain["confidence"], plain["parse"]["method"]) == ("fake", 0.75, "whole")
    assert (unsure["prediction"], unsure["confidence"], unsure["parse"]["method"]) == ("uncertain", 0.4, "embedded")
    assert (prose["prediction"], prose["confidence"]) == (None, None)
    assert prose["parse"]["error"] == "no JSON object found"
    assert "1 answered, 1 abstained, 1 unparsed, 0 errored" in done.stderr


def test_at_most_so_many_requests_are_in_flight(server, collect, dataset):
    data = dataset([f"slow {n}" for n in range(40)])
    collect(
        *("--dataset", data, "--subject", "openai:m", "--base-url", server.url, "--output", "results.jsonl"),
        *("--workers", 7),
    )
    assert server.counts()["most"] == 7


def test_a_server_that_is_not_there_is_an_error_on_every_record(collect, dataset, results):
    data = dataset(["a", "b"])
    collect(
        *("--dataset", data, "--subject", "openai:m", "--base-url", "http://127.0.0.1:9/v1"),
        *("--output", "results.jsonl", "--retries", 1),
        code=1,
    )
    assert {(r["error_type"], r["attempts"]) for r in results().values()} == {("http", 2)}


@pytest.mark.parametrize(
    "url, shown",
    [
        ("https://me:pass@host.example:8443/v1?key=abc#x", "https://host.example:8443/v1"),
        ("http://127.0.0.1/v1", "http://127.0.0.1/v1"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
    ],
)
def test_addresses_are_shown_without_credentials(url, shown):
    assert public_url(url) == shown


@pytest.mark.parametrize(
    "value, seconds",
    [(None, None), ("3", 3.0), (" 0.5 ", 0.5), ("soon", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("-1", None)],
)
def test_retry_after_is_a_number_or_a_date(value, seconds):
    assert retry_after(value) == seconds


def test_what_a_server_says_beside_its_answer_is_kept(server, collect, dataset, results):
    data = dataset(["generous"])
    collect("--dataset", data, "--subject", "openai:echo", "--base-url", server.url, "--output", "results.jsonl")
    (record,) = results().values()
    assert (record["prediction"], record["rationale"], record["cache"]["hit"]) == ("fake", "it glows", True)
    assert {key: record[key] for key in record if key.startswith("key_")} == {f"key_{n}": n for n in range(10)}
    assert record["models"] == {"agent": "echo-2026-01", "vision": "v-1"}
    assert record["timings"]["vision_llm_seconds"] == 0.5
    assert record["reasoning_content"] == "hm"
    assert record["reply"] == {"id": "c"}
    assert record["id"] == "s00000"
