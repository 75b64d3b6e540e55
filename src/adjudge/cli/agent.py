"""`adjudge agent`: what is known of the agent that judged a run."""

from __future__ import annotations

from pathlib import Path

import click

from adjudge.cli.common import PATH, print_json, say, write_file
from adjudge.cli.intact import open_intact, unverified_option
from adjudge.cli.view import draw_page
from adjudge.report import numbers
from adjudge.stats.estimate import SHARE, Estimate


@click.group()
def agent() -> None:
    """Ask how good the agent is that judged a run."""


@agent.command()
@click.argument("run", type=PATH)
@click.option(
    "--reference", type=PATH, help="People's verdicts: JSON Lines with `id`, `verdict` and, of several models, `model`."
)
@click.option("-o", "--output", type=PATH, help="Write the validation to a file too.")
@click.option("--json", "as_json", is_flag=True, help="Print the validation on stdout.")
@unverified_option
def validate(run: Path, reference: Path | None, output: Path | None, as_json: bool, unverified: bool) -> int:
    """Hold the verdicts of the agent that judged a RUN against the rules' and against people's.

    The validation is kept in the run, as validation.json, and its page is drawn anew. Gates on verdicts of a language model
    are refused without a validation of the same model, prompt and checklist.

    \b
    Examples:
      adjudge agent validate runs/judged --reference labels.jsonl
      adjudge gate runs/judged --gate 'falcon-a/eligibility_rate.low >= 0.8'
    """
    from adjudge.agents.validation import read_labels, validated_kappa, validation_of
    from adjudge.provenance.canonical import pretty
    from adjudge.runs.writer import REPORT, VALIDATION, add_to_run

    loaded = open_intact(run, unverified=unverified)
    labels = [] if reference is None else read_labels(reference)
    validation = validation_of(loaded, labels, None if reference is None else reference.name)
    data = pretty(validation)
    add_to_run(run, {VALIDATION: data}, loaded.manifest)
    if (run / REPORT).is_file():
        draw_page(run)
    if output is not None:
        write_file(output, data)
    if as_json:
        print_json(validation)
        return 0
    for against in ("people", "rules"):
        counted = validation[against]
        if counted is not None:
            agreement, kappa = (Estimate.from_dict(counted[name]) for name in ("percent_agreement", "kappa"))
            say(
                f"{validation['agent']} against {against}: {numbers.estimate(agreement, unit=SHARE)} agreement, "
                f"κ {numbers.estimate(kappa)}, n {counted['n']}" + (f" ({kappa.why})" if kappa.why else "")
            )
    if validation["people"] and validation["people"]["unmatched"]:
        say(f"{validation['people']['unmatched']} labels are about samples that the judge did not decide")
    if validation["flip_rate"] is not None:
        flip_rate = numbers.estimate(Estimate.from_dict(validation["flip_rate"]), unit=SHARE)
        say(f"votes differ on {flip_rate} of the samples")
    against, kappa = validated_kappa(validation)
    outcome = "held" if kappa.low is not None and kappa.low >= 0.6 else "refused"
    say(f"gates on its verdicts are {outcome} by the κ with {against} (low end, at least 0.6)")
    return 0
