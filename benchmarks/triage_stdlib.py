"""A yardstick of the speed table: a plain triage scorer, one record at a time with the standard library's json, and the same figures."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

FAKE = {"fake", "ai-generated", "synthetic", "manipulated", "tampered", "deepfake", "generated"}
REAL = {"real", "authentic", "natural", "genuine"}
TIMES = ("total_seconds", "vision_llm_seconds", "agent_graph_seconds")


class Scorer:
    """Tallies of one configuration and trial."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str], int] = defaultdict(int)
        self.scored: list[tuple[float, bool]] = []
        self.bins = [[0, 0, 0.0] for _ in range(10)]
        self.confidences: list[float] = []
        self.latencies: list[float] = []
        self.tools: list[float] = []
        self.times: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.carried: dict[str, int] = defaultdict(int)
        self.possibly_cached = 0

    def add(self, record: dict[str, Any]) -> None:
        """Score one record."""
        label, word = record["label"], record.get("prediction")
        if label not in {"fake", "real"}:
            raise ValueError(label)
        normal = word.strip().lower() if isinstance(word, str) else None
        if record.get("error") or record.get("error_type"):
            answer = "error"
        elif normal in FAKE:
            answer = "fake"
        elif normal in REAL:
            answer = "real"
        elif normal == "uncertain":
            answer = "uncertain"
        else:
            answer = "unparsed"
        self.counts[label, answer] += 1
        timings = record.get("timings") or {}
        cache = (record.get("cache") or {}).get("hit")
        state = "unknown" if cache is None else "hit" if cache else "miss"
        for name in TIMES:
            seconds = timings.get(name)
            if seconds is not None:
                self.times[state, name].append(seconds)
        latency = record.get("latency_seconds")
        if latency is not None:
            self.times[state, "latency_seconds"].append(latency)
        vision = timings.get("vision_llm_seconds")
        if cache is None and vision is not None and vision < 0.25:
            self.possibly_cached += 1
        models = record.get("models") or {}
        for name in ("agent", "vision", "structuring"):
            if models.get(name):
                self.carried[f"models.{name}"] += 1
        if record.get("prompt_hashes"):
            self.carried["prompt_hashes"] += 1
        if cache is not None:
            self.carried["cache"] += 1
        if record.get("timestamp"):
            self.carried["timestamp"] += 1
        if (record.get("run_config") or {}).get("temperature") is not None:
            self.carried["temperature"] += 1
        confidence = record.get("confidence")
        if confidence is not None and not 0.0 <= confidence <= 1.0:
            raise ValueError(confidence)
        if answer in {"fake", "real"}:
            self.latencies.append(latency if latency is not None else timings["total_seconds"])
            self.tools.append(math.fsum(tool.get("seconds") or 0.0 for tool in record.get("tool_details") or ()))
            if confidence is not None:
                right = answer == label
                self.confidences.append(confidence)
                self.scored.append((confidence, right))
                place = min(int(confidence * 10 + 1e-9), 9)
                self.bins[place][0] += 1
                self.bins[place][1] += right
                self.bins[place][2] += confidence

    def figures(self) -> dict[str, Any]:
        """Every figure of the trial."""
        get = self.counts
        tp, fn, fp, tn = get["fake", "fake"], get["fake", "real"], get["real", "fake"], get["real", "real"]
        fakes = sum(count for (label, _), count in get.items() if label == "fake")
        reals = sum(count for (label, _), count in get.items() if label == "real")
        answered, n = tp + fn + fp + tn, fakes + reals
        catch, passing = _share(tp, fakes), _share(tn, reals)
        return {
            "accuracy": _share(tp + tn, n),
            "accuracy_answered": _share(tp + tn, answered),
            "coverage": _share(answered, n),
            "precision_fake": _share(tp, tp + fp),
            "recall_fake": _share(tp, tp + fn),
            "f1_fake": _share(2 * tp, 2 * tp + fp + fn),
            "precision_real": _share(tn, tn + fn),
            "recall_real": _share(tn, tn + fp),
            "f1_real": _share(2 * tn, 2 * tn + fp + fn),
            "fake_slip_rate": _share(fn, fakes),
            "fake_catch_rate": catch,
            "real_false_flag_rate": _share(fp, reals),
            "real_pass_rate": passing,
            "abstain_rate": _share(get["fake", "uncertain"] + get["real", "uncertain"], n),
            "error_rate": _share(get["fake", "error"] + get["real", "error"], n),
            "unparsed_rate": _share(get["fake", "unparsed"] + get["real", "unparsed"], n),
            "avg_confidence": math.fsum(self.confidences) / len(self.confidences),
            "avg_latency_seconds": math.fsum(self.latencies) / len(self.latencies),
            "avg_tool_seconds_total": math.fsum(self.tools) / len(self.tools),
            "ece": sum(abs(hits - promised) for _, hits, promised in self.bins) / len(self.scored),
            "brier": math.fsum((c - right) ** 2 for c, right in self.scored) / len(self.scored),
            "aurc": _aurc(self.scored),
            "possibly_cached": self.possibly_cached,
            "carried": dict(self.carried),
            "latency": {f"{state}/{name}": _times(values) for (state, name), values in self.times.items()},
        }


def score(path: Path) -> dict[str, dict[str, Any]]:
    """The figures of every configuration and trial of a file."""
    scorers: dict[str, Scorer] = defaultdict(Scorer)
    seen: set[tuple[str, str]] = set()
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            record = json.loads(line)
            mode = "tools" if record.get("use_tools") else "no-tools"
            key = f"{record['model']}|{mode}|{record.get('trial', 0)}"
            if (record["id"], key) in seen:
                raise ValueError(record["id"])
            seen.add((record["id"], key))
            scorers[key].add(record)
    return {key: scorer.figures() for key, scorer in scorers.items()}


def _share(hits: int, base: int) -> float | None:
    return hits / base if base else None


def _times(values: list[float]) -> dict[str, float]:
    values.sort()
    n = len(values)
    shares = {f"p{share}": values[max(math.ceil(n * share / 100 * (1 - 4e-16)), 1) - 1] for share in (50, 90, 95, 99)}
    return {"mean": math.fsum(values) / n, **shares}


def _aurc(scored: list[tuple[float, bool]]) -> float:
    """The errors of a tie block spread evenly over it."""
    ordered = sorted(scored, key=lambda item: -item[0])
    n, total, before, start = len(ordered), 0.0, 0, 0
    while start < n:
        end = start
        while end < n and ordered[end][0] == ordered[start][0]:
            end += 1
        wrong = sum(1 for _, right in ordered[start:end] if not right)
        for k in range(start + 1, end + 1):
            total += (before + wrong * (k - start) / (end - start)) / k
        before += wrong
        start = end
    return total / n
