import msgspec
import pyarrow as pa
import pytest

from adjudge.errors import ConfigError
from adjudge.protocols.common.plan import BatchPlan, check_choices, check_resamples, configured
from adjudge.provenance.canonical import digest


class Config(msgspec.Struct, forbid_unknown_fields=True):
    mode: str = "a"
    seed: int = 0


class Evidence:
    def __init__(self, text):
        self.text = text

    def differences(self, other):
        return [] if self.text == other.text else [f"{self.text} is not {other.text}"]


class Graph:
    @staticmethod
    def evaluate(batch):
        return Evidence(f"judged {batch}")


class TwoColumns(BatchPlan):
    """Doubles a number, and says whether it is even."""

    source = "the numbers give"
    graph = Graph()

    inputs = judge = partial = finish = None  # of no concern here

    def restore(self, samples):
        return samples.column("n").to_pylist()

    def decided(self, batch, evidence):
        del evidence
        return {"twice": pa.array([2 * n for n in batch]), "even": pa.array([n % 2 == 0 for n in batch])}


SAMPLES = {"n": [1, 2], "twice": [2, 4], "even": [False, True]}


@pytest.mark.parametrize(
    "changed, evidence, problems",
    [
        ({}, "judged [1, 2]", []),
        ({"twice": [2, 5]}, "judged [1, 2]", ["samples.parquet: twice is not what the numbers give"]),
        ({}, "forged", ["evidence: judged [1, 2] is not forged"]),
        (
            {"n": [1, 3]},
            "judged [1, 2]",
            [
                "evidence: judged [1, 3] is not judged [1, 2]",
                "samples.parquet: twice is not what the numbers give",
                "samples.parquet: even is not what the numbers give",
            ],
        ),
    ],
)
def test_a_run_is_judged_again_from_its_columns(changed, evidence, problems):
    assert TwoColumns().recheck(pa.table(SAMPLES | changed), Evidence(evidence)) == problems


def test_digests_leave_out_what_changes_no_number():
    plan = TwoColumns()
    plan.config = {"mode": "a", "outputs": ["here.jsonl"]}
    plan.use_digests(without=("outputs",), rules=[1, 2])
    assert plan.digests == {"config": digest({"mode": "a"}), "rules": digest([1, 2])}


def test_options_that_do_not_fit_name_the_protocol():
    assert configured("gui", {"seed": 3}, Config) == Config(seed=3)
    with pytest.raises(ConfigError, match=r"^gui: .*seed"):
        configured("gui", {"seed": "x"}, Config)


def test_a_word_that_is_not_allowed_is_refused_with_those_that_are():
    check_choices(Config(), {"mode": ("a", "b")})
    with pytest.raises(ConfigError, match=r"^mode is 'c', expected one of a, b$"):
        check_choices(Config(mode="c"), {"mode": ("a", "b")})


def test_too_few_resamples_are_refused():
    check_resamples(100)
    with pytest.raises(ConfigError, match="resamples is 99, expected 100 to"):
        check_resamples(99)
