from __future__ import annotations

import hashlib
import json
import random
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adjudge.engine.verify import verify
from adjudge.errors import ConfigError, InputError
from adjudge.protocols.stability.example import generate
from adjudge.runs.run import Run


def gold(qid, **more):
    return {
        "qid": qid, "question": "?", "answerable": True, "gold_claim_substr": ["30 days"], "gold_citations": ["d1"],
        "constraints": {"lang": "en"}, **more,
    }  # fmt: skip


def answer(qid, number, claim="It lasts 30 days.", citations=("d1",), echo=None):
    echo = {"lang": "en"} if echo is None else echo
    content = {"claim": claim, "citations": list(citations), "constraints_echo": echo}
    return {"qid": qid, "run_id": f"{qid}-{number}", "seed": number, "jitter": "ws", "answer_json": content}


@pytest.fixture
def score(write, run):
    def go(golds, runs, **config):
        files = {"gold": [write("gold.jsonl", golds)], "runs": [write("runs.jsonl", runs)]}
        return run({**files, **config})

    return go


def test_measures_of_one_item_by_hand(score):
    runs = [
        answer("q", 0),
        answer("q", 1, claim="it LASTS, 30\tdays"),
        answer("q", 2, claim="no idea", citations=("d1", "d2")),
        answer("q", 3, claim="It lasts 30 days.", citations=(), echo={"lang": "de"}),
    ]
    path, metrics = score([gold("q")], runs)
    assert metrics["acr"] == 0.75
    assert metrics["cghc"] == 0.75
    # Sets {d1} {d1} {d1,d2} {}: 1 + 1/2 + 1/2 + 0 + 0 + 0 over six pairs.
    assert metrics["css"] == pytest.approx(2 / 6)
    assert metrics["scu"] == 0.75
    assert metrics["iaa"] == pytest.approx(3 / 6)
    assert metrics["rcr"] is None
    assert metrics["gates"]["rcr"]["outcome"] == "pass"
    assert metrics["gates"]["acr"]["outcome"] == "fail"
    assert metrics["unstable"] == ["q"]
    assert verify(Run(path)).problems == []


def test_an_unanswerable_item_answered_in_every_run_fails(score):
    golds = [gold("a"), gold("u", answerable=False, gold_claim_substr=[], gold_citations=[])]
    _, metrics = score(golds, [answer(qid, k) for qid in ("a", "u") for k in range(3)])
    assert metrics["rcr"] == 0.0
    assert metrics["gates"]["rcr"]["outcome"] == "fail"
    assert metrics["unstable"] == ["u"]
    assert metrics["pass"] is False
    refused = [answer("a", k) for k in range(3)] + [
        answer("u", k, claim="not in context", citations=()) for k in range(3)
    ]
    _, metrics = score(golds, refused)
    assert metrics["rcr"] == 1.0
    assert metrics["pass"] is True


@pytest.mark.parametrize("count,bucket", [(0, "missing"), (2, "failed")])
def test_a_gold_item_without_enough_runs_fails_by_name(score, count, bucket):
    runs = [answer("a", k) for k in range(3)] + [answer("b", k) for k in range(count)]
    _, metrics = score([gold("a"), gold("b")], runs, min_runs=3)
    assert metrics["too_few_runs"] == [{"qid": "b", "runs": count}]
    assert metrics["gates"]["runs"]["outcome"] == "fail"
    assert metrics["pass"] is False
    assert metrics["buckets"]["all"][bucket] == 1
    assert any("gold item b has" in note for note in metrics["notes"])


@pytest.mark.parametrize(
    "golds,runs,message",
    [
        (
            [gold("a")],
            [answer("a", 0), answer("zz", 0)],
            r"runs.jsonl:2: run for qid 'zz', which gold.jsonl does not have",
        ),
        ([gold("a"), gold("a")], [answer("a", 0)], "gold.jsonl:2: qid 'a' stands twice"),
        ([gold("a")], [answer("a", 0), answer("a", 0)], "runs.jsonl:2: run_id 'a-0' of qid 'a' stands twice"),
        (
            [gold("a", answerable="yes")],
            [answer("a", 0)],
            "gold.jsonl:1: `answerable` is text, expected true or false; a gold item has",
        ),
        ([gold("a")], ['{"qid": "a"}'], "runs.jsonl:1: the record has no `run_id`; a run has"),
        ([gold("a")], [answer("a", 0), "{]"], "runs.jsonl:2: is not JSON"),
    ],
)
def test_bad_input_is_an_error_with_its_line(score, golds, runs, message):
    with pytest.raises(InputError, match=message):
        score(golds, runs)


def test_wrong_configuration_is_refused(run):
    with pytest.raises(ConfigError, match="no gold file"):
        run({"runs": ["x"]})
    with pytest.raises(ConfigError, match="no measure 'fun'"):
        run({"gold": ["x"], "runs": ["x"], "bounds": {"fun": 1.0}})


def test_example_order_and_workers_change_nothing(tmp_path, run):
    gold, runs = generate(tmp_path / "data", seed=2)
    lines = runs.read_text().splitlines(keepends=True)
    random.Random(0).shuffle(lines)  # noqa: S311 -- an order, no secret
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "runs.jsonl"
    other.write_text("".join(lines))
    one, _ = run({"gold": [str(gold)], "runs": [str(runs)]})
    two, _ = run({"gold": [str(gold)], "runs": [str(other)]}, workers=2)
    for name in ("metrics.json", "samples.parquet", "charts.json", "evidence/part-00000.parquet"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


def test_verify_sees_an_altered_measure(score):
    path, _ = score([gold("a")], [answer("a", k) for k in range(3)])
    table = pq.read_table(path / "samples.parquet")
    place = table.schema.get_field_index("acr_hits")
    pq.write_table(table.set_column(place, "acr_hits", pa.array([0])), path / "samples.parquet")
    assert verify(Run(path)).problems == ["samples.parquet: its content is not the one in the manifest"]
    manifest = json.loads((path / "manifest.json").read_text())
    for entry in manifest["files"]:
        data = (path / entry["path"]).read_bytes()
        entry |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (path / "manifest.json").write_text(json.dumps(manifest))
    problems = verify(Run(path)).problems
    assert any("evidence/part-00000.parquet" in text for text in problems)
    assert any("metrics.json: acr is 1.0, recomputed 0.0" in text for text in problems)


def test_the_command_takes_bounds_and_min_runs(cli, write):
    files = (
        "--gold",
        write("g.jsonl", [gold("a")]),
        "--runs",
        write("r.jsonl", [answer("a", 0), answer("a", 1, "no")]),
    )
    failing = cli("consistency", "stability", *files, "--out", "one", "--json")
    assert failing.return_value == 1
    loose = ("--bound", "acr=0.5", "--bound", "ned50=1")
    passing = cli("consistency", "stability", *files, "--out", "two", "--json", *loose)
    assert passing.return_value == 0
    assert json.loads(passing.stdout)["gates"]["acr"]["bound"] == 0.5


def test_two_hundred_items_of_twenty_runs_score_in_two_seconds(score):
    rng = random.Random(1)  # noqa: S311 -- test data
    letters = "abcdefghij klmnop qrstuv"
    golds = [gold(f"q{i}") for i in range(200)]
    runs = [answer(f"q{i}", k, claim="".join(rng.choices(letters, k=233))) for i in range(200) for k in range(20)]
    start = time.process_time()
    _, metrics = score(golds, runs)
    assert time.process_time() - start < 2.0
    assert metrics["runs"] == 4000


@pytest.mark.parametrize("broken", [b"\\ud800", b"\xff", b"\x00"])
def test_broken_characters_line_ends_and_case_do_not_break_a_run(run, tmp_path, broken):
    golds = [gold("q", constraints={"lang": "HERE", "b": 1}), gold("Q", gold_citations=[7])]
    runs = [answer("q", k, claim="It lasts 30 days HERE", echo={"b": 1, "lang": "HERE"}) for k in range(2)]
    runs += [answer("Q", k, citations=("7",)) for k in range(2)]
    for name, rows in (("gold", golds), ("runs", runs)):
        text = b"\r\n\r\n".join(json.dumps(row).encode().replace(b"HERE", broken) for row in rows)
        (tmp_path / f"{name}.jsonl").write_bytes(b"\xef\xbb\xbf" + text + b"\r\n")
    path, metrics = run({name: [str(tmp_path / f"{name}.jsonl")] for name in ("gold", "runs")})
    assert (metrics["n"], metrics["runs"], metrics["acr"], metrics["cghc"], metrics["scu"]) == (2, 4, 1.0, 1.0, 1.0)
    assert verify(Run(path)).problems == []


def test_citations_must_be_within_what_was_retrieved(score):
    runs = [answer("q", k) | {"retrieved_ids": ["d1", "d2"]} for k in range(3)]
    runs += [answer("free", k) for k in range(3)]
    path, metrics = score([gold("q"), gold("free")], runs)
    assert metrics["cghc"] == 1.0
    assert metrics["unstable"] == []
    assert metrics["pass"] is True
    runs[0]["retrieved_ids"] = ["d2"]
    path, metrics = score([gold("q"), gold("free")], runs, bounds={"cghc": 0.5})
    assert metrics["cghc"] == pytest.approx(5 / 6)
    assert metrics["unstable"] == ["q"]
    assert metrics["sections"][0]["rows"][0][0] == "q"
    assert verify(Run(path)).problems == []


def test_one_unstable_item_fails_its_gate_although_the_aggregates_hold(score):
    golds = [gold(f"q{i}") for i in range(40)]
    runs = [answer(f"q{i}", k) for i in range(40) for k in range(3)]
    runs[0]["answer_json"]["claim"] = "something else entirely"
    _, metrics = score(golds, runs)
    assert metrics["gates"]["acr"]["outcome"] == "pass"
    assert metrics["metrics"]["unstable"] == 1
    gate = metrics["gates"]["unstable"]
    assert (gate["op"], gate["bound"], gate["observed"], gate["outcome"]) == ("==", 0.0, 1.0, "fail")
    assert metrics["pass"] is False


@pytest.mark.parametrize("echo, hits", [(["b", "a"], 1.0), (["a", "b", "b"], 1.0), (["a"], 0.0)])
def test_constraint_echoes_are_compared_as_sets(score, echo, hits):
    runs = [answer("q", k, echo=echo) for k in range(2)]
    _, metrics = score([gold("q", constraints=["a", "b"])], runs)
    assert metrics["scu"] == hits


def test_the_control_jitter_changes_nothing_and_is_accepted(write, cli):
    path = write("gold.jsonl", [gold("q", question="What does it say?")])
    result = cli("consistency", "jitter", path, "--jitters", "none,ws", "--seeds", "0")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["jitter"], row["edits"] == []) for row in rows] == [("none", True), ("ws", False)]
    assert rows[0]["question"] == "What does it say?"


def atoms_of(path, rule):
    """The atom of a rule on the item `q`."""
    run = Run(path)
    return next(atom for atom in run.atoms(run.find("q")[0]) if atom.rule == rule)


@pytest.mark.parametrize(
    "retrieved, outcome, observed",
    [
        ([None, None], "not_applicable", None),
        ([["d1"], None], "pass", 0.0),
        ([["d2"], None], "fail", 1.0),
        ([["d2"], ["d3"]], "fail", 2.0),
    ],
)
def test_citations_are_held_to_what_was_retrieved_where_a_run_says_it(score, retrieved, outcome, observed):
    runs = [{**answer("q", number), "retrieved_ids": ids} for number, ids in enumerate(retrieved)]
    atom = atoms_of(score([gold("q")], runs)[0], "citations.out_of_scope")
    assert (atom.outcome, atom.observed) == (outcome, observed)
    assert (atom.severity == "CRITICAL") is (outcome == "fail")


@pytest.mark.parametrize("runs, outcome", [(1, "not_applicable"), (2, "pass")])
def test_a_share_of_pairs_needs_two_runs(score, runs, outcome):
    path, _ = score([gold("q")], [answer("q", number) for number in range(runs)], min_runs=1)
    assert atoms_of(path, "stability.css").outcome == outcome
    assert atoms_of(path, "stability.acr").outcome == "pass"
