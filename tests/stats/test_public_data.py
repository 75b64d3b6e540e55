"""Figures of public data sets recomputed from the raw files: PandaLM's κ, and ECE and AURC of two CIFAR-10 networks."""

import json
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from adjudge.stats.agreement import (
    cohen_kappa,
    cohen_kappa_bootstrap,
    fleiss_kappa,
    krippendorff_alpha,
    pair_counts,
    percent_agreement,
)
from adjudge.stats.calibration import brier_value, ece, ece_value
from adjudge.stats.paired import mcnemar_chi2
from adjudge.stats.selective import areas, selective_areas

pytestmark = pytest.mark.realdata
DATA = Path(os.environ.get("ADJUDGE_DATA") or Path(__file__).parents[2].parent / "shared" / "data")
NETWORKS = {"wideresnet": "wideresnet-16-4-cifar-10.npz", "lenet": "lenet-5-cifar-10.npz"}


@pytest.fixture(scope="module")
def published():
    file = DATA / "reference" / "published.json"
    if not file.exists():
        pytest.skip(f"the public data sets are not at {DATA}; set ADJUDGE_DATA")
    return {entry["id"]: entry for entry in json.loads(file.read_text(encoding="utf-8"))}


@pytest.fixture(scope="module")
def pandalm(published):
    return json.loads((DATA / "consistency_pandalm" / "testset-v1.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def network(published):
    def read(name):
        with np.load(DATA / "calibration_softmax" / NETWORKS[name]) as file:
            softmax, truth = file["predictions"], file["ground_truth"]
        return softmax.max(axis=1), softmax.argmax(axis=1) == truth

    return read


@pytest.mark.parametrize("pair", list(combinations("123", 2)))
def test_kappa_of_the_annotators_is_the_published_one(published, pandalm, pair):
    first, second = (np.array([row[f"annotator{k}"] for row in pandalm]) for k in pair)
    matrix = pair_counts(first, second, 3)
    kappa, key = cohen_kappa(matrix), "-".join(pair)
    entry = published["pandalm-kappa"]
    assert kappa.n == 999
    assert round(kappa.value, 6) == entry["recomputed"][key]
    assert round(kappa.value, 2) == entry["published"][key]
    bootstrap = cohen_kappa_bootstrap(matrix, seed=1)
    assert [bootstrap.low, bootstrap.high] == pytest.approx([kappa.low, kappa.high], abs=0.01)
    assert percent_agreement(matrix).value > kappa.value


def test_three_annotators_agree_about_as_pairs_do(pandalm):
    counts = [[sum(row[f"annotator{k}"] == label for k in "123") for label in (0, 1, 2)] for row in pandalm]
    pairs = [0.852023, 0.878944, 0.861661]
    for estimate in (fleiss_kappa(counts, seed=1), krippendorff_alpha(counts, seed=1)):
        assert estimate.value == pytest.approx(np.mean(pairs), abs=0.001)


@pytest.mark.parametrize("name", NETWORKS)
def test_accuracy_ece_and_aurc_of_the_softmax_files(published, network, name):
    entry = published["softmax-cifar10"][name]
    confidence, correct = network(name)
    assert correct.mean() == entry["acc"]
    assert ece_value(confidence, correct) == pytest.approx(entry["ece10"], abs=1e-14)
    assert areas(confidence, correct).aurc == pytest.approx(entry["aurc"], abs=1e-15)


@pytest.mark.parametrize("name", NETWORKS)
def test_ties_of_the_softmax_files_have_no_order(network, name):
    confidence, correct = network(name)
    order = np.random.default_rng(0).permutation(correct.size)
    assert areas(confidence[order], correct[order]) == areas(confidence, correct)
    assert brier_value(confidence[order], correct[order]) == brier_value(confidence, correct)


def test_intervals_of_the_softmax_files_hold_their_values(network):
    confidence, correct = network("wideresnet")
    aurc = selective_areas(confidence, correct, ["aurc"], seed=1, stream="aurc")
    for estimate in (ece(confidence, correct, seed=1), *aurc):
        assert estimate.low < estimate.value < estimate.high
        assert estimate.high - estimate.low < 0.02


def test_mcnemar_of_the_published_table(published):
    entry = published["mcnemar-agresti-1990"]
    b, c = entry["table"][0][1], entry["table"][1][0]
    assert mcnemar_chi2(b, c).statistic == pytest.approx(entry["chi2_corrected"], abs=5e-4)
    assert mcnemar_chi2(b, c).p == pytest.approx(entry["p_corrected"], abs=5e-9)
    assert mcnemar_chi2(b, c, correction=False).p == pytest.approx(entry["p"], abs=5e-9)


def test_fleiss_of_the_published_table(published, reference):
    kappa = fleiss_kappa(reference("agreement")["fleiss_1971"]["counts"], seed=1).value
    assert round(kappa, 3) == published["fleiss-1971"]["value"]
