"""What the speed table compares with, each a program that people would write: `python -m benchmarks.yardsticks NAME FILE …`.

Each prints the figures it found as JSON. It runs as a process of its own and imports only what it needs.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

LABELS = ("VALID", "NOT_IN_CONTEXT", "REJECT", "ABSTAIN")
RESAMPLES = 20  # of the 2,000 that ours takes; all would take minutes


def json_loads(outputs: Path, *references: Path) -> dict[str, Any]:
    """Parse every line of the files and the object in every response with the standard library; keep nothing."""
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
    for reference in references:
        with reference.open(encoding="utf-8") as lines:
            for line in lines:
                json.loads(line)
    return {"n": samples}


def struct_per_atom(outputs: Path, reference: Path) -> dict[str, Any]:
    """Flight S1 with one msgspec Struct for every atom, written as JSON."""
    from benchmarks.flight_objects import run

    return run(outputs, reference, outputs.with_name("records.jsonl"))


def triage(results: Path) -> dict[str, Any]:
    """The figures of every configuration with the standard library."""
    from benchmarks.triage_stdlib import score

    return score(results)


def consistency(pairs: Path) -> dict[str, Any]:
    """Load every row, then score: agreement, and the finals of disagreements in a TSV. Checks nothing else."""
    with pairs.open(encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream if line.strip()]
    first = Counter(row["scholar"]["label"] for row in rows)
    second = Counter(row["auditor"]["label"] for row in rows)
    agreed = abstained = 0
    with pairs.with_suffix(".tsv").open("w", encoding="utf-8") as stream:
        stream.write("qid\tscholar\tauditor\tfinal\twhy\n")
        for row in rows:
            labels = row["scholar"]["label"], row["auditor"]["label"]
            abstained += "ABSTAIN" in labels
            if labels[0] == labels[1]:
                agreed += 1
            else:
                stream.write("\t".join((row["qid"], *labels, *_arbitrated(row))) + "\n")
    n = len(rows)
    chance = sum(first[label] * second[label] for label in LABELS) / n**2
    kappa = (agreed / n - chance) / (1 - chance)
    rates = {"percent_agreement": agreed / n, "kappa": kappa, "abstain_rate": abstained / n}
    return {"n": n, **rates, "disagreements": n - agreed}


def _arbitrated(row: dict[str, Any]) -> tuple[str, str]:
    flags = row.get("flags") or {}
    if flags.get("provenance_violation") or flags.get("constraints_mismatch"):
        return "REJECT", "hard_flag"
    if not set(row["answer_json"]["citations"]) <= set(row["retrieved_ids"]):
        return "REJECT", "citation_out_of_scope"
    if row["auditor"]["label"] != "VALID":
        return "REJECT", "auditor_veto"
    if row["scholar"]["label"] in {"VALID", "NOT_IN_CONTEXT"}:
        return "VALID", "auditor_ok"
    return "REJECT", "incoherent_pair"


def gui(episodes: Path, predictions: Path) -> dict[str, Any]:
    """An object for every step and atom, written as JSON."""
    from benchmarks.gui_objects import evaluate

    return evaluate(episodes, predictions, episodes.with_name("objects.jsonl"))


def anomaly(scores: Path, splits: Path) -> dict[str, Any]:
    """AUROC and average precision of the test flights with scikit-learn, once, without intervals."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from sklearn import metrics

    table = pq.read_table(scores, columns=["flight", "score", "label"])
    tests = pa.array(json.loads(splits.read_text(encoding="utf-8"))["test_flights"])
    table = table.filter(pc.is_in(table.column("flight").cast(pa.string()), tests))
    label, score = table.column("label").to_numpy(), table.column("score").to_numpy()
    auroc, precision = metrics.roc_auc_score(label, score), metrics.average_precision_score(label, score)
    return {"auroc": float(auroc), "average_precision": float(precision)}


def auroc_loop(scores: Path, positive: Path, cluster: Path) -> dict[str, Any]:
    """scikit-learn's AUROC, and that of 20 resamples of the clusters, one after the other."""
    import numpy as np
    from sklearn.metrics import roc_auc_score

    score, label, place = np.load(scores), np.load(positive), np.load(cluster)
    clusters, rng = int(place.max()) + 1, np.random.default_rng(0)
    values = []
    for _ in range(RESAMPLES):
        times = np.bincount(rng.integers(0, clusters, clusters), minlength=clusters)
        rows = np.repeat(np.arange(place.size), times[place])
        values.append(float(roc_auc_score(label[rows], score[rows])))
    return {"value": float(roc_auc_score(label, score))}


def auroc_ours(scores: Path, positive: Path, cluster: Path) -> dict[str, Any]:
    """The same AUROC with the interval of 2,000 resamples, by `adjudge.stats`. It is ours, as a program of two lines."""
    import numpy as np

    from adjudge.stats import ranking

    found = ranking.auroc_by_cluster(np.load(scores), np.load(positive), np.load(cluster), seed=1, stream="auroc")
    return {"value": found.value}


def counts(run: Path) -> dict[str, Any]:
    """Atoms by rule and severity with PyArrow, row group by row group."""
    import pyarrow.parquet as pq

    total: Counter[str] = Counter()
    for path in sorted((run / "evidence").glob("*.parquet")):
        file = pq.ParquetFile(path)
        for index in range(file.num_row_groups):
            table = file.read_row_group(index, columns=["rule", "severity"])
            for row in table.group_by(["rule", "severity"]).aggregate([([], "count_all")]).to_pylist():
                total[f"{row['rule']} {row['severity']}"] += row["count_all"]
    return dict(total)


def inspect_samples(log: Path) -> dict[str, Any]:
    """Unpack every sample of an Inspect log and parse it with the standard library; keep nothing."""
    import zipfile

    with zipfile.ZipFile(log) as archive:
        for name in archive.namelist():
            if name.startswith("samples/"):
                json.loads(archive.read(name))
    return {}


def json_lines(path: Path) -> dict[str, Any]:
    """Parse every line with the standard library; keep nothing."""
    with path.open("rb") as lines:
        for line in lines:
            json.loads(line)
    return {}


def imports() -> dict[str, Any]:
    """Import NumPy and PyArrow, and do nothing."""
    import numpy as np
    import pyarrow as pa

    return {"versions": [np.__version__, pa.__version__]}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*map(Path, sys.argv[2:]))))
