"""Writers of other tools' logs, from their published shapes: what a reader must give back.

Every writer takes the same attempts (sample, trial, score or None, status) and writes them as its tool would.
"""

import json


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def document(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    return path


def lm_eval(folder, attempts, *, model="acme/large", version=1.0, planned=None, task="capitals"):
    """`samples_*.jsonl` and `results_*.json` of one task with one filter and exact_match."""
    time = "2026-01-05T09-00-00.000001"
    rows = [
        {
            "doc_id": sample,
            "doc": {"question": f"capital {sample}?"},
            "target": "A",
            "arguments": {},
            "resps": [["A"]],
            "filtered_resps": ["[invalid]" if status == "unparsed" else "A"],
            "filter": "strict",
            "metrics": ["exact_match"],
            "doc_hash": f"d{sample}",
            "prompt_hash": f"p{sample}",
            "target_hash": f"t{sample}",
            "exact_match": 0.0 if score is None else score,
        }
        for sample, _, score, status in attempts
        if status != "missing"
    ]
    scores = [row["exact_match"] for row in rows]
    results = {
        "results": {
            task: {"alias": task, "exact_match,strict": sum(scores) / len(scores), "exact_match_stderr,strict": "N/A"}
        },
        "configs": {
            task: {"dataset_path": "acme/capitals", "metric_list": [{"metric": "exact_match", "aggregation": "mean"}]}
        },
        "versions": {task: version},
        "n-shot": {task: 0},
        "n-samples": {task: {"original": planned, "effective": planned}} if planned else {},
        "config": {"model": "hf", "model_args": f"pretrained={model},dtype=float16", "random_seed": 0},
    }
    document(folder / f"results_{time}.json", results)
    return lines(folder / f"samples_{task}_{time}.jsonl", rows)


def promptfoo(path, attempts, *, provider="openai:acme-large", as_lines=False, version=3, lenient=False):
    """The JSON output, or JSON Lines; every test has two assertions. `lenient`: all that was scored counts as a success."""
    results = [
        {
            "promptIdx": 0,
            "testIdx": place,
            "testCase": {
                "vars": {"country": sample},
                "assert": [{"type": "equals", "value": "A"}, {"type": "latency"}],
            },
            "promptId": "p1",
            "provider": {"id": provider, "label": ""},
            "prompt": {"raw": f"capital of {sample}?", "label": "capital of {{country}}?"},
            "vars": {"country": sample},
            "response": {"output": "A", "cached": False},
            "success": score == 1.0 or (lenient and score is not None),
            "score": score or 0.0,
            "failureReason": 2 if status == "errored" else 0 if score == 1.0 else 1,
            "error": "rate limit" if status == "errored" else None,
            "namedScores": {},
            "gradingResult": None
            if status == "errored"
            else {
                "pass": score == 1.0,
                "score": score,
                "reason": "as asked",
                "componentResults": [
                    {"pass": score == 1.0, "score": score, "reason": "", "assertion": {"type": "equals", "value": "A"}},
                    {"pass": True, "score": 1, "reason": "", "assertion": {"type": "latency"}},
                ],
            },
        }
        for place, (sample, _, score, status) in enumerate(attempts)
        if status != "missing"
    ]
    if as_lines:
        return lines(path, results)
    passed, errors = sum(row["success"] for row in results), sum(row["error"] is not None for row in results)
    stats = {"successes": passed, "failures": len(results) - passed - errors, "errors": errors}
    counts = {"testPassCount": passed, "testFailCount": stats["failures"], "testErrorCount": errors}
    return document(
        path,
        {
            "evalId": "eval-1",
            "results": {
                "version": version,
                "results": results,
                "stats": stats,
                "prompts": [{"provider": provider, "label": "capital of {{country}}?", "metrics": counts}],
            },
            "config": {},
        },
    )


def deepeval(path, attempts, *, model="acme-large", threshold=0.5, wrapped=False):
    """A test run with the metric Correctness, and a second one that always passes."""
    cases = [
        {
            "name": f"case {sample} {trial}" if trial > 1 else f"case {sample}",
            "input": f"capital of {sample}?",
            "actualOutput": "A",
            "expectedOutput": "A",
            "success": status == "scored" and score >= threshold,
            "metricsData": [
                {"name": "Correctness", "threshold": threshold, "strictMode": False, "evaluationModel": "judge-1"}
                | (
                    {"error": "judge failed"}
                    if status == "errored"
                    else {"score": score, "success": score >= threshold, "reason": "why"}
                ),
                {"name": "Tone", "threshold": 0.5, "score": 1.0, "success": True, "evaluationModel": "judge-1"},
            ],
        }
        for sample, trial, score, status in attempts
        if status != "missing"
    ]
    scores = [case["metricsData"][0]["score"] for case in cases if "score" in case["metricsData"][0]]
    run = {
        "testCases": cases,
        "conversationalTestCases": [],
        "metricsScores": [{"metric": "Correctness", "scores": scores, "passes": 0, "fails": 0, "errors": 0}],
        "hyperparameters": {"model": model},
        "testPassed": 0,
        "testFailed": 0,
        "runDuration": 1.0,
    }
    return document(path, {"testRunData": run} if wrapped else run)


def helm(folder, attempts, *, model="acme/large"):
    """A run folder with its four files."""
    name = f"capitals:model={model.replace('/', '_')}"
    stats = [
        {
            "instance_id": f"id{sample}",
            "train_trial_index": trial - 1,
            "stats": [
                {"name": {"name": "num_prompt_tokens", "split": "test"}, "count": 1, "sum": 9, "mean": 9.0},
                {"name": {"name": "exact_match", "split": "test"}, "count": int(status == "scored")}
                | ({"sum": score, "mean": score} if status == "scored" else {"sum": 0}),
            ],
        }
        for sample, trial, score, status in attempts
        if status not in {"missing", "errored"}
    ]
    states = [
        {
            "instance": {
                "id": f"id{sample}",
                "split": "test",
                "input": {"text": f"capital {sample}?"},
                "references": [{"output": {"text": "A"}, "tags": ["correct"]}],
            },
            "train_trial_index": trial - 1,
            "result": {
                "success": status != "errored",
                "cached": False,
                "error": "refused" if status == "errored" else None,
                "completions": [{"text": " A"}],
            },
        }
        for sample, trial, _, status in attempts
    ]
    document(
        folder / "run_spec.json",
        {
            "name": name,
            "scenario_spec": {"class_name": "C", "args": {}},
            "adapter_spec": {"model": model, "max_train_instances": 0},
            "metric_specs": [{"class_name": "M", "args": {"names": ["exact_match"]}}],
        },
    )
    document(folder / "scenario_state.json", {"adapter_spec": {}, "request_states": states})
    scores = [score for _, _, score, status in attempts if status == "scored"]
    document(
        folder / "stats.json",
        [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": sum(scores) / len(scores)}],
    )
    return document(folder / "per_instance_stats.json", stats)


def openai_evals(path, attempts, *, model="acme-large", finished=True):
    """Specification, events and final report."""
    rows = [
        {
            "spec": {
                "completion_fns": [model],
                "eval_name": "capitals.dev.v0",
                "base_eval": "capitals",
                "split": "dev",
                "run_config": {"seed": 1},
                "run_id": "r1",
            }
        }
    ]
    for place, (sample, _, score, status) in enumerate(attempts):
        if status == "missing":
            continue
        event = {"run_id": "r1", "event_id": place, "sample_id": f"capitals.dev.{sample}"}
        rows.append(event | {"type": "sampling", "data": {"prompt": f"capital {sample}?", "sampled": ["A"]}})
        if status == "errored":
            rows.append(event | {"type": "error", "data": {"type": "OpenAIError", "msg": "timed out"}})
        elif status == "scored":
            rows.append(event | {"type": "match", "data": {"correct": score == 1.0, "expected": "A", "picked": "A"}})
    if finished:
        scores = [score for _, _, score, status in attempts if status == "scored"]
        rows.append({"final_report": {"accuracy": sum(scores) / len(scores)}, "run_id": "r1"})
    return lines(path, rows)


def every_eval_ever(path, attempts, *, model="acme/large", version="0.3.0"):
    """Instances, with the record beside them."""
    rows = [
        {
            "schema_version": f"instance_level_eval_{version}",
            "evaluation_id": "capitals/acme/1",
            "model_id": model,
            "evaluation_name": "capitals",
            "sample_id": f"s{sample}",
            "sample_hash": f"h{sample}",
            "interaction_type": "single_turn",
            "input": {"raw": f"capital {sample}?", "reference": ["A"]},
            "output": {"raw": ["A"]},
            "answer_attribution": [],
            "evaluation": {"score": score or 0.0, "is_correct": score == 1.0},
            "error": "boom" if status == "errored" else None,
        }
        for sample, _, score, status in attempts
        if status != "missing"
    ]
    record = {
        "schema_version": version,
        "evaluation_id": "capitals/acme/1",
        "model_info": {"name": model, "id": model},
        "evaluation_results": [
            {
                "evaluation_name": "capitals",
                "metric_config": {"metric_name": "accuracy", "lower_is_better": False},
                "score_details": {"score": 0.5},
            }
        ],
    }
    document(path.with_name(path.name.replace("_samples.jsonl", ".json")), record)
    return lines(path, rows)
