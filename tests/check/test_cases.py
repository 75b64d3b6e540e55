"""Cases that must come out right: names, places in lists, sequences, limits on what is observed, self-tests."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge.engine.evaluate import Options, evaluate
from adjudge.engine.verify import verify
from adjudge.protocols.base import protocol
from adjudge.protocols.check.compiled import compiled
from adjudge.protocols.check.rows import OutputReader
from adjudge.protocols.check.sandbox import Sandbox
from adjudge.runs.run import Run

from .conftest import atoms_of, lines, rules_of


def test_names_that_are_keywords_have_spaces_quotes_dots_or_differ_in_case(judge):
    rules = r'''
        adjudge: 1
        fields:
          order: {type: number}
          a b: {path: '$["a b"]', type: number}
          say "hi": {path: '$["say \"hi\""]', type: number}
          x.y: {path: '$["x.y"]', type: number}
          total: number
          Total: number
          Größe: number
        rules:
          n.order: '"order" = 1'
          n.space: '"a b" = 2'
          n.quote: '"say ""hi""" = 3'
          n.dot: '"x.y" = 4'
          n.lower: total = 5
          n.upper: Total = 6
          n.umlaut: Größe = 7
          n.both: Total > total
    '''
    answer = {"order": 1, "a b": 2, 'say "hi"': 3, "x.y": 4, "total": 5, "Total": 6, "Größe": 7}
    run = judge(rules, [answer, dict.fromkeys(answer, 0)])
    first, second = (atoms_of(run, name) for name in ("s000", "s001"))
    codes = [code for code in first if code.startswith("n.")]
    assert len(codes) == 8
    assert {first[code][0] for code in codes} == {"pass"}
    assert {second[code][0] for code in codes} == {"fail"}
    assert verify(run).exit_code == 0


def test_a_list_may_hold_lists_and_objects(judge):
    rules = """
        adjudge: 1
        fields:
          grid: "list(list(number))"
          boxes: "list(object(x number, y list(text)))"
        rules:
          grid.corner: grid[2][1] = 3
          boxes.x: boxes[1].x > 0
    """
    right = {"grid": [[1, 2], [3, 4]], "boxes": [{"x": 1, "y": ["a"]}]}
    run = judge(rules, [right, {"grid": [["x", 2], [3]], "boxes": [{"x": -1, "y": ["a"]}]}])
    first, second = (atoms_of(run, name) for name in ("s000", "s001"))
    assert {first[code][0] for code in ("grid.corner", "boxes.x")} == {"pass"}
    assert second["field.type grid"] == (
        "fail",
        "grid is not of type list(list(number)): `[0][0]` is text, expected a number",
    )
    assert second["boxes.x"][0] == "fail"
    assert verify(run).exit_code == 0


def test_a_path_into_a_list_leaves_an_atom_a_place(judge):
    rules = """
        adjudge: 1
        fields:
          qty: {path: "$.lines[*].qty", type: number, places: 3, range: [0, 10]}
        rules:
          sum.qty: list_sum(qty) < 100
    """
    run = judge(
        rules,
        [
            {"lines": [{"qty": 1}, {"qty": "two"}, {}]},
            {"lines": [{"qty": 1}, {"qty": 2}, {"qty": 3}, {"qty": 99}, {"qty": 1}]},
            {"lines": [{"qty": 1}]},
            {"lines": "none"},
            {"other": 1, "lines": None},
        ],
    )
    atoms = [atoms_of(run, f"s{row:03d}") for row in range(4)]
    assert [atoms[0][f"place.type qty[{place}]"][0] for place in range(3)] == ["pass", "fail", "pass"]
    assert [atoms[0][f"place.present qty[{place}]"][0] for place in range(3)] == ["pass", "pass", "fail"]
    assert atoms[0]["place.present qty[3…]"][0] == "not_applicable"
    assert atoms[0]["field.type qty"][0] == "fail"
    assert "qty[1]" in atoms[0]["field.type qty"][1]
    assert atoms[0]["sum.qty"] == ("not_applicable", "not applicable: needs field.type on qty")
    assert atoms[1]["place.value qty[3…]"][0] == "fail"
    assert atoms[1]["sum.qty"][0] == "fail"
    assert atoms[2]["sum.qty"][0] == "pass"
    assert atoms[3]["field.type qty"][0] == "fail"
    assert verify(run).exit_code == 0


def test_the_sample_before_in_a_sequence(tmp_path):
    rules = """
adjudge: 1
fields: {level: number}
meta: {flight: text, second: number}
sequence: meta.flight
order: meta.second
rules:
  jump.level: {observed: level - previous.level, severity: {warning: 5, critical: 10}}
"""
    rows = [
        {"id": f"{flight}{second}", "model": model, "response": msgspec.json.encode({"level": level}).decode(),
         "meta": {"flight": flight, "second": second}}
        for model in ("a", "b")
        for flight in "xyz"
        for second, level in enumerate([0, 3, 9, 30 if model == "b" else 12])
    ]  # fmt: skip
    np.random.default_rng(0).shuffle(rows)
    (tmp_path / "rules.yaml").write_text(rules)
    (tmp_path / "outputs.jsonl").write_bytes(lines(rows))
    config = {"outputs": [str(tmp_path / "outputs.jsonl")], "rule_file": str(tmp_path / "rules.yaml")}
    run = Run(evaluate(protocol("check"), config, Options(out=tmp_path / "run")))
    found = {}
    for _, samples, evidence in run.batches():
        (position,) = evidence.layout.positions_of("jump.level")
        names = zip(samples.column("sample").to_pylist(), samples.column("model").to_pylist(), strict=True)
        found |= dict(
            zip(names, zip(evidence.outcome[position], evidence.observed[position], strict=True), strict=True)
        )
    assert found["x0", "a"][0] == 2  # not applicable: there is none before it
    assert [float(found[f"y{second}", "a"][1]) for second in (1, 2, 3)] == [3, 6, 3]
    assert [int(found[f"z{second}", "b"][0]) for second in (1, 2, 3)] == [0, 1, 1]
    assert verify(run).exit_code == 0


@pytest.mark.parametrize(
    "severity, more, values, expected",
    [
        ("{warning: 1, critical: 10}", "", [0.5, -2, 20], ["pass", "WARNING", "CRITICAL"]),
        ("{warning: 1, critical: 10}", "signed: true, ", [0.5, -20, 2], ["pass", "pass", "WARNING"]),
        ("{critical: 3}", "", [3, -4, 2], ["pass", "CRITICAL", "pass"]),
        ("{warning: 3}", "", [3, -400, 2], ["pass", "WARNING", "pass"]),
        ("{warning: 1, critical: 10}", "check: n < 5, ", [7, 20, 4], ["WARNING", "CRITICAL", "pass"]),
    ],
)
def test_limits_on_what_is_observed(judge, severity, more, values, expected):
    rules = f"""
        adjudge: 1
        fields: {{n: number}}
        rules: {{a.n: {{observed: n, {more}severity: {severity}}}}}
    """
    run = judge(rules, [{"n": value} for value in values])
    atoms = [next(atom for atom in run.record(f"s{row:03d}")["atoms"] if atom["rule"] == "a.n") for row in range(3)]
    assert [atom["severity"] if atom["outcome"] == "fail" else atom["outcome"] for atom in atoms] == expected


@pytest.mark.parametrize(
    "expression", ["n / z > 1", "z / z < 1", "n / z >= 1", "ln(z) < 5", "sqrt(-n) > 0", "n * big * big > 0"]
)
def test_what_is_not_finite_neither_passes_nor_fails(judge, expression):
    rules = f"""
        adjudge: 1
        fields: {{n: number, z: number, big: number}}
        rules: {{a.n: {expression}}}
    """
    atoms = atoms_of(judge(rules, [{"n": 4, "z": 0, "big": 1e300}]), "s000")
    assert atoms["a.n"][0] == "not_applicable"


def test_a_message_has_the_unit_that_its_fields_share(judge):
    rules = """
        adjudge: 1
        fields: {total: {type: number, unit: EUR}, parts: "list(number)"}
        rules:
          a.sum: {observed: total - list_sum(parts), severity: {critical: 1}, failed: "differs by {observed} {unit}"}
    """
    assert atoms_of(judge(rules, [{"total": 10, "parts": [4, 4]}]), "s000")["a.sum"] == ("fail", "differs by 2 EUR")


def test_lenient_takes_numbers_in_quotes(judge):
    rules = """
        adjudge: 1
        fields: {n: {type: number, lenient: true}, b: {type: boolean, lenient: true}, d: {type: date, lenient: true}}
        rules: {a.n: n = 12.5, a.b: b, a.d: d = date '2026-01-02'}
    """
    run = judge(rules, [{"n": "12.5", "b": "True", "d": "2026-01-02T10:00:00"}, {"n": "12,5", "b": "ja", "d": "soon"}])
    first, second = (atoms_of(run, name) for name in ("s000", "s001"))
    assert {first[code][0] for code in ("a.n", "a.b", "a.d")} == {"pass"}
    assert {second[f"field.type {name}"][0] for name in "nbd"} == {"fail"}


def test_rows_that_are_answers_themselves(judge):
    rules = """
        adjudge: 1
        extract: none
        fields: {score: {type: number, range: [0, 1]}}
        rules: {a.score: score < 0.9}
    """
    rows = [{"id": str(row), "response": "", "model": "m", "score": row / 4} for row in range(5)]
    run = judge(rules, rows)
    assert run.metrics["metrics"]["pass_rate"] == 0.8


def test_gates_of_the_file_hold_the_run(judge):
    rules = """
        adjudge: 1
        fields: {n: number}
        rules: {a.n: n > 0}
        gates: ["pass_rate >= 0.5", "a.n.pass_rate.low >= 0.9"]
    """
    run = judge(rules, [{"n": 1}, {"n": 2}, {"n": -1}])
    assert {name: gate["outcome"] for name, gate in run.metrics["gates"].items()} == {
        "pass_rate >= 0.5": "pass",
        "a.n.pass_rate.low >= 0.9": "fail",
    }


def test_a_score_counts_what_an_answer_withholds(judge):
    rules = """
        adjudge: 1
        fields: {n: number, k: {type: text, required: false}}
        rules: {a.n: n > 0, a.k: length(k) > 1, a.g: n = gold.n}
        scores: {q: {weights: {a.n: 2, a.k: 1, a.g: 1}}}
    """
    run = judge(rules, [{"n": 1, "k": "xy"}, {"n": 1}, {"k": "xy"}, "nothing", {"n": -1, "k": "x"}])
    scores = [run.record(f"s{row:03d}")["score"]["q"] for row in range(5)]
    assert scores == pytest.approx([1.0, 1.0, 1 / 4, 0.0, 0.0])


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
    | st.sampled_from(["2026-01-02", "EUR", 1, 0]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["n", "t", "b", "d", "l", "qty", "other"]), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip
ANSWERS = st.dictionaries(st.sampled_from(["n", "t", "b", "d", "l", "other"]), JSON_VALUES, max_size=6)
READERS = {}


def readers():
    """A reader as it is, and one that looks at every answer closely."""
    if not READERS:
        file = rules_of(
            """
            adjudge: 1
            fields: {n: number, t: text, b: boolean, d: date, l: "list(qty number)"}
            rules: {}
            """
        )
        sandbox = Sandbox()
        quick, close = (OutputReader(compiled(file, sandbox), repairs=True, by_line=False) for _ in range(2))
        close.answers.decoder = None
        READERS.update(quick=quick, close=close)
        sandbox.close()
    return READERS["quick"], READERS["close"]


@settings(max_examples=300, deadline=None)
@given(st.lists(ANSWERS, max_size=4), st.sampled_from(["{}", "```json\n{}\n```", "The answer: {}.", "{} and {{}}"]))
def test_answers_that_decode_at_once_are_those_that_a_close_look_finds(answers, around):
    texts = [around.replace("{}", msgspec.json.encode(answer).decode()) for answer in answers]
    quick, close = readers()
    assert quick.again(texts).to_pylist() == close.again(texts).to_pylist()
