from __future__ import annotations

import json

import numpy as np
import pytest

from adjudge.engine.verify import verify
from adjudge.errors import ConfigError, InputError
from adjudge.runs.run import Run


@pytest.fixture
def three(write):
    """Three raters of 40 items over their own labels; the third leaves out four."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 40)
    paths, said = [], {}
    for name, error in (("ann", 0.1), ("ben", 0.2), ("cy", 0.3)):
        labels = np.where(rng.random(40) < error, rng.integers(0, 3, 40), truth)
        said[name] = labels
        rows = [{"item": i, "label": "abc"[c]} for i, c in enumerate(labels) if name != "cy" or i >= 4]
        paths.append(write(f"{name}.jsonl", rows))
    return paths, said


def value(metrics, name, where=""):
    return next(e["value"] for e in metrics["estimates"] if (e["name"], e["slice"]) == (name, where))


def test_three_raters_equal_the_oracles(three, run):
    import krippendorff
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    paths, said = three
    path, metrics = run({"raters": paths, "labels": ["a", "b", "c"]})
    assert metrics["raters"] == ["ann", "ben", "cy"]
    assert metrics["n"] == 40
    assert value(metrics, "kappa", "raters=ann~ben") == pytest.approx(cohen_kappa_score(said["ann"], said["ben"]))
    assert value(metrics, "kappa", "raters=ben~cy") == pytest.approx(cohen_kappa_score(said["ben"][4:], said["cy"][4:]))
    table, _ = aggregate_raters(np.stack([column[4:] for column in said.values()], axis=1))
    assert value(metrics, "fleiss_kappa") == pytest.approx(fleiss_kappa(table))
    units = np.stack([column.astype(float) for column in said.values()])
    units[2, :4] = np.nan
    alpha = krippendorff.alpha(reliability_data=units, level_of_measurement="nominal")
    assert value(metrics, "krippendorff_alpha") == pytest.approx(alpha)
    assert any("4 of 40 items lack a rating" in note for note in metrics["notes"])
    assert [chart["name"] for chart in json.loads((path / "charts.json").read_text())] == ["raters"]
    assert verify(Run(path)).problems == []


def test_items_with_most_disagreement_come_first(write, run):
    paths = [
        write(f"{name}.jsonl", [{"qid": q, "label": label} for q, label in zip("pqr", labels, strict=True)])
        for name, labels in (("one", "aab"), ("two", "abb"), ("three", "acb"))
    ]
    _, metrics = run({"raters": paths, "labels": ["a", "b", "c"]})
    assert [entry["item"] for entry in metrics["most_disagreement"]] == ["q"]
    assert metrics["most_disagreement"][0]["labels"] == {"one": "a", "two": "b", "three": "c"}
    assert metrics["buckets"]["all"]["failed"] == 1


def test_a_long_table_gives_the_same_numbers_as_a_file_each(three, run, tmp_path):
    paths, said = three
    lines = [
        f"{i},{name},{'abc'[c]}"
        for name, labels in said.items()
        for i, c in enumerate(labels)
        if name != "cy" or i >= 4
    ]
    table = tmp_path / "long.csv"
    table.write_text("item,rater,label\n" + "\n".join(reversed(lines)) + "\n")
    one, _ = run({"raters": paths, "labels": ["a", "b", "c"]})
    two, _ = run({"raters": [str(table)], "labels": ["a", "b", "c"]})
    assert (one / "metrics.json").read_bytes() == (two / "metrics.json").read_bytes()
    assert (one / "samples.parquet").read_bytes() == (two / "samples.parquet").read_bytes()


def test_ordered_labels_add_weighted_kappa(three, run):
    from sklearn.metrics import cohen_kappa_score

    paths, said = three
    _, metrics = run({"raters": paths[:2], "labels": ["a", "b", "c"], "ordered": True})
    for weights in ("linear", "quadratic"):
        oracle = cohen_kappa_score(said["ann"], said["ben"], weights=weights)
        assert metrics["metrics"][f"kappa_{weights}"] == pytest.approx(oracle)
    assert metrics["kappa"] == pytest.approx(cohen_kappa_score(said["ann"], said["ben"]))


def test_a_judge_against_the_truth(write, run):
    # Human knows 100 of 300: judge has Se 45/50, Sp 40/50 there, and passes 165 of 300.
    human = [{"item": i, "label": "pass" if i < 50 else "fail"} for i in range(100)]
    judge = [{"item": i, "label": "pass" if i < 45 or 50 <= i < 60 or 100 <= i < 210 else "fail"} for i in range(300)]
    paths = [write("human.jsonl", human), write("judge.jsonl", judge)]
    path, metrics = run({"raters": paths, "labels": ["pass", "fail"], "reference": "human"})
    assert value(metrics, "sensitivity", "judge=judge") == 0.9
    assert value(metrics, "specificity", "judge=judge") == 0.8
    assert value(metrics, "apparent_pass_rate", "judge=judge") == 0.55
    corrected = next(e for e in metrics["estimates"] if e["name"] == "corrected_pass_rate")
    assert corrected["value"] == pytest.approx((0.55 + 0.8 - 1) / 0.7)
    assert corrected["low"] < corrected["value"] < corrected["high"]
    assert metrics["buckets"]["all"]["missing"] == 200
    assert verify(Run(path)).problems == []


@pytest.mark.parametrize(
    "config,error,message",
    [
        ({"labels": ["a", "a"]}, ConfigError, "two different labels"),
        ({"labels": ["a", "b"]}, InputError, r"label 'c' is not one of a, b.*--labels a,b,c declares it"),
        ({}, InputError, "label '[abc]' is not one of VALID"),
        ({"labels": ["a", "b", "c"], "reference": "dan"}, ConfigError, "'dan' is not one of the raters ann, ben, cy"),
        ({"labels": ["a", "b", "c"], "positive": "z"}, ConfigError, "positive label 'z'"),
    ],
)
def test_wrong_raters_are_refused(three, run, config, error, message):
    with pytest.raises(error, match=message):
        run({"raters": three[0], **config})


def test_one_rater_and_double_ratings_are_refused_or_skipped(write, run):
    lonely = write("one.jsonl", [{"item": 1, "label": "a"}])
    with pytest.raises(ConfigError, match="agreement needs two"):
        run({"raters": [lonely], "labels": ["a", "b"]})
    rows = [{"item": 1, "label": "a"}, {"item": 1, "label": "b"}, {"item": 2, "label": "x"}]
    twice = write("two.jsonl", rows[:2])
    with pytest.raises(InputError, match=r"two.jsonl:2: item '1' is labelled twice by 'two'"):
        run({"raters": [lonely, twice], "labels": ["a", "b"]})
    twice = write("two.jsonl", rows)
    with pytest.raises(InputError, match=r"two.jsonl:3: label 'x' is not one of a, b"):
        run({"raters": [lonely, twice], "labels": ["a", "b"]})
    _, metrics = run({"raters": [lonely, twice], "labels": ["a", "b"], "on_bad_row": "skip"})
    assert [entry["at"] for entry in metrics["bad_rows"]["listed"]] == ["two.jsonl:2", "two.jsonl:3"]
    # Item 1 is labelled by one, and twice by two; item 2 has only a row that cannot be used: every item once.
    assert metrics["buckets"]["all"] | {"unparsed": 2, "missing": 0, "n": 2} == metrics["buckets"]["all"]


def test_every_item_is_counted_once_when_bad_rows_are_skipped(write, run):
    labels = {"ann": "aab", "ben": "aab", "cy": "aax"}
    paths = [
        write(f"{name}.jsonl", [{"item": item, "label": label} for item, label in zip("pqr", said, strict=True)])
        for name, said in labels.items()
    ]
    lone = write("dan.jsonl", [{"item": "p", "label": "x"}, {"item": "s", "label": "x"}, {"label": "a"}])
    path, metrics = run({"raters": [*paths, lone], "labels": ["a", "b"], "on_bad_row": "skip"})
    buckets = metrics["buckets"]["all"]
    # p, q and r have two good ratings or more; s has only a bad row, and one row names no item.
    assert (buckets["passed"], buckets["unparsed"], buckets["missing"], buckets["n"]) == (3, 2, 0, 5)
    assert metrics["n"] == 3
    assert metrics["bad_rows"]["count"] == 4
    assert verify(Run(path)).problems == []


def test_the_first_bad_line_of_ratings_is_the_one_reported(write, run):
    good = write("one.jsonl", [{"item": 1, "label": "a"}])
    rows = [{"item": 1, "label": "a"}, {"item": 2, "label": None}, '{"item": ', {"item": 3, "label": "x"}]
    with pytest.raises(InputError, match=r"two.jsonl:2: two has no label"):
        run({"raters": [good, write("two.jsonl", rows)], "labels": ["a", "b"]})
    with pytest.raises(InputError, match=r"two.jsonl:2: is not JSON"):
        run({"raters": [good, write("two.jsonl", [rows[0], *rows[2:]])], "labels": ["a", "b"]})


def pandalm(data, write):
    """Three people and two models as files of our own shape."""
    test = json.loads((data / "testset-v1.json").read_text())
    paths = [
        write(f"annotator{k + 1}.jsonl", [{"item": row["idx"], "label": row[f"annotator{k + 1}"]} for row in test])
        for k in range(3)
    ]
    for name, key, file in (
        ("gpt", "gpt_result", "gpt-3.5-turbo-testset-v1.json"),
        ("pandalm", "pandalm_result", "pandalm-7b-testset-v1.json"),
    ):
        rows = json.loads((data / file).read_text())
        paths.append(write(f"{name}.jsonl", [{"item": row["idx"], "label": row[key]} for row in rows]))
    return paths


@pytest.mark.realdata
def test_pandalm_annotators_give_the_published_kappa(data, write, run):
    path, metrics = run({"raters": pandalm(data, write)[:3], "labels": ["0", "1", "2"]})
    assert metrics["n"] == 999
    for pair, published in (
        ("annotator1~annotator2", 0.85),
        ("annotator1~annotator3", 0.88),
        ("annotator2~annotator3", 0.86),
    ):
        assert round(value(metrics, "kappa", f"raters={pair}"), 2) == published
    assert verify(Run(path)).problems == []


@pytest.mark.realdata
def test_pandalm_models_use_labels_that_must_be_declared(data, write, run):
    paths = pandalm(data, write)
    with pytest.raises(
        InputError, match=r"(gpt|pandalm).jsonl:\d+: label '(Tie|garbage)' is not one of 0, 1, 2.*--labels 0,1,2,"
    ):
        run({"raters": paths, "labels": ["0", "1", "2"]})
    found = set()
    labels = ["0", "1", "2"]
    for _ in range(2):
        with pytest.raises(InputError) as error:
            run({"raters": paths, "labels": labels})
        found.add(error.value.what.split("'")[1])
        labels = [*labels, error.value.what.split("'")[1]]
    assert found == {"Tie", "garbage"}
    _, metrics = run({"raters": paths, "labels": labels, "reference": "annotator1", "positive": "1"})
    assert len(metrics["pairwise"]) == 10
    assert value(metrics, "corrected_pass_rate", "judge=gpt") is not None
